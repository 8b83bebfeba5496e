//! Facts about the machine: name, driver, date, and the times of a copy and of an empty launch.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use client::Session;
use tarsia::facade::{driver_version, pool_size, run_in_pool, Address, BackendKind, Stopwatch};

use super::report::{Case, Origin, Row, COPY, LAUNCH_US, NONE};
use super::timer::Timer;
use crate::demo::bandwidth;
use crate::demo::products::median;
use crate::Result;

/// Prefix in the note of the line `copy`: the rate (GB/s) of the floors of its table, if it is not [`COPY`].
const FLOOR_RATE: &str = "floor_GB/s=";
/// Number of empty launches behind a median.
const LAUNCHES: usize = 25;

/// Returns device, driver and date; `commit` as given, else as the build recorded it.
pub fn origin(session: &Session, commit: Option<&str>) -> Result<Origin> {
    let (device, driver) = match session.kind() {
        BackendKind::Cuda => {
            let watch = Stopwatch::new(0, Address::NULL)?;
            (watch.device().properties().name.clone(), cuda_driver()?)
        }
        BackendKind::Reference => (format!("{}, 1 thread", processor()), "-".into()),
        _ => (format!("{}, {} threads", processor(), pool_size()), "-".into()),
    };
    let commit = commit.or(option_env!("TARSIA_COMMIT")).unwrap_or_default();
    let [device, driver, commit] = [device.as_str(), driver.as_str(), commit]
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(Origin { device, driver, date: today(), commit })
}

/// Measures the lines `copy` and `empty`, from which floors are computed on this machine.
pub fn rows(session: &Session, timer: &dyn Timer) -> Result<Vec<Row>> {
    let of = |op: &str, alg: &str, median_us: f64, note: String| Row {
        case: Case { op: op.into(), precision: "-".into(), matrix: "-".into(), ..Case::default() },
        implementation: "machine".into(),
        alg: alg.into(),
        median_us,
        max_rel_err: NONE,
        peak_bytes: NONE,
        note,
        ..Row::default()
    };
    // The time is that of a gigabyte read and written, whatever size was copied.
    let copied = |rate: f64, note: String| {
        let note = format!("GB/s={:.1}{note}", 1e-9 * rate);
        of("copy", "1GB", 1e15 / rate, note)
    };
    if session.kind() != BackendKind::Cuda {
        let copy = bandwidth::measure()?;
        // Floors on the CPU use its own rate: that of a GPU says nothing about it.
        let note = format!(
            ";threads={};array_bytes={};{FLOOR_RATE}{:.3}",
            copy.threads,
            copy.array_bytes,
            1e-9 * copy.bytes_per_second
        );
        let call = timer.warm(1000, &mut || {
            run_in_pool(|| ());
            Ok(())
        })?;
        return Ok(vec![
            copied(copy.bytes_per_second, note),
            of("empty", "call", call, "of the threads".into()),
        ]);
    }
    let watch = Stopwatch::new(0, Address::NULL)?;
    let mut empty = Vec::new();
    for _ in 0..LAUNCHES {
        empty.push(timer.cold(&mut || Ok(watch.launch_nothing()?))?);
    }
    let warm = timer.warm(LAUNCHES, &mut || Ok(watch.launch_nothing()?))?;
    let empty = of("empty", "kernel", median(empty), format!("warm_us={warm:.2}"));
    Ok(vec![copied(watch.copy_rate()?, String::new()), empty])
}

/// Copy rate (GB/s) and time of an empty launch (µs) of the devices that appear in rows.
#[derive(Debug, Default)]
pub struct Machines {
    by_device: HashMap<String, (f64, f64)>,
    /// Rate (GB/s) of the floors of tables where it is not [`COPY`].
    floor_rates: HashMap<Origin, f64>,
}

impl Machines {
    /// Reads the lines `copy` and `empty`.
    pub fn of(rows: &[Row]) -> Self {
        let mut out = Machines::default();
        for row in rows.iter().filter(|row| row.case.op == "copy") {
            if let Some(rate) = rate(row, "GB/s=") {
                out.by_device.insert(row.origin.device.clone(), (rate, 0.0));
            }
            if let Some(rate) = rate(row, FLOOR_RATE) {
                out.floor_rates.insert(row.origin.clone(), rate);
            }
        }
        for row in rows.iter().filter(|row| row.case.op == "empty") {
            if let Some(device) = out.by_device.get_mut(&row.origin.device) {
                device.1 = row.median_us;
            }
        }
        out
    }

    fn device(&self, row: &Row) -> (f64, f64) {
        self.by_device.get(&row.origin.device).copied().unwrap_or((COPY, LAUNCH_US))
    }

    /// Returns the factor for floors at [`COPY`] in a table of this origin.
    pub fn floor_scale(&self, origin: &Origin) -> f64 {
        COPY / self.floor_rates.get(origin).copied().unwrap_or(COPY)
    }

    /// The floor of a row in microseconds, at the rate of its device.
    pub fn floor_us(&self, row: &Row) -> f64 {
        row.floor_us * COPY / self.floor_scale(&row.origin) / self.device(row).0
    }

    /// Returns the row's time over the least time that a launch with its traffic can take.
    pub fn over_limit(&self, row: &Row) -> f64 {
        row.median_us / (self.floor_us(row) + self.device(row).1)
    }
}

/// Reads a rate (GB/s) from the note of a `copy` line.
fn rate(row: &Row, name: &str) -> Option<f64> {
    let value = row.note.split(';').find_map(|part| part.strip_prefix(name)?.parse().ok());
    value.filter(|rate| *rate > 0.0)
}

/// Returns the versions of driver and CUDA, such as `580.159.04, CUDA 13.0`.
fn cuda_driver() -> Result<String> {
    let version = driver_version()?;
    let cuda = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    Ok(match kernel_module(&text) {
        Some(number) => format!("{number}, {cuda}"),
        None => cuda,
    })
}

/// Returns the first number with a point in the line of the kernel module.
fn kernel_module(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM"))?;
    line.split_whitespace().find(|word| {
        word.contains('.') && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    })
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).into()
}

/// Returns the date in UTC, such as `2026-01-31`.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns year, month and day of the date `days` days after 1970-01-01.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    for (month, length) in (1..).zip([31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) {
        if days < length {
            return (year, month, days + 1);
        }
        days -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        // 2000-02-29 is day 11016, 2026-11-21 day 20778.
        let found = [0, 58, 59, 364, 365, 11_016, 20_778].map(civil);
        let (leap, late) = ((2000, 2, 29), (2026, 11, 21));
        let early = [(1970, 1, 1), (1970, 2, 28), (1970, 3, 1), (1970, 12, 31), (1971, 1, 1)];
        assert_eq!(found[..5], early);
        assert_eq!((found[5], found[6]), (leap, late));
    }

    #[test]
    fn the_driver_has_a_number() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12.1";
        assert_eq!(kernel_module(text), Some("580.159.04"));
        assert_eq!(kernel_module(""), None);
    }

    #[test]
    fn limits_are_those_of_the_device() {
        let line = |op: &str, device: &str, median_us, note: &str| {
            let mut row = Row { median_us, floor_us: 4.0, note: note.into(), ..Row::default() };
            (row.case.op, row.origin.device) = (op.into(), device.into());
            row
        };
        let rows = [line("copy", "slow", 1.0, "GB/s=1514.0;x=1"), line("empty", "slow", 2.0, "")];
        let machines = Machines::of(&rows);
        let (slow, other) = (line("spmv", "slow", 20.0, ""), line("spmv", "other", 7.6, ""));
        assert_eq!((machines.floor_us(&slow), machines.over_limit(&slow)), (8.0, 2.0));
        assert_eq!((machines.floor_us(&other), machines.over_limit(&other)), (4.0, 1.0));
        assert_eq!(machines.floor_scale(&slow.origin), 1.0);
        // Floors on a CPU are at its own rate already; another day's rate may differ.
        let (copy, cpu) =
            (line("copy", "cpu", 1.0, "GB/s=30.3;floor_GB/s=30.280"), line("spmv", "cpu", 20.0, ""));
        let mut before = line("spmv", "cpu", 20.0, "");
        before.origin.date = "2026-01-02".into();
        let machines = Machines::of(&[copy]);
        assert!((machines.floor_scale(&cpu.origin) - 100.0).abs() < 1e-9);
        let floors = [&cpu, &before].map(|row| machines.floor_us(row));
        assert!((floors[0] - 4.0).abs() < 0.01 && (floors[1] - 400.0).abs() < 1.0, "{floors:?}");
    }
}
