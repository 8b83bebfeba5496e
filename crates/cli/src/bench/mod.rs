//! `tarsia bench`: times products, checks them, and compares them with other implementations.
//!
//! - [`args`]: command-line arguments
//! - [`input`]: patterns from files and from the gallery
//! - [`number`]: precisions, seeded operands
//! - [`timer`]: clocks for cold and for warm caches
//! - [`paired`]: runs in turns, and the confidence interval of the ratio of two times
//! - [`pairs`]: products of two matrices, and those of multigrid hierarchies
//! - [`cases`]: the cases of a matrix, from the contestants to the rows of the table
//! - [`runs`]: the library's entries of a case
//! - [`vendor`]: cuSPARSE, cuBLAS, MKL and AOCL
//! - [`check`]: checks against sums with twice the digits
//! - [`machine`]: facts about the machine
//! - [`report`]: the table of results
//! - [`compare`]: speed-ups over vendors and other tables
//! - [`totals`]: totals of preparation and executes
//! - [`orders`]: speed-ups of row orders
//! - [`reproduce`]: whether a vendor's times are those of an earlier table
//! - [`plots`]: the comparison as pictures
//! - [`sample`]: `tarsia sample`, which times candidates on many matrices

pub mod args;
mod cases;
pub mod check;
mod compare;
mod cuda;
mod input;
mod machine;
pub mod number;
mod orders;
mod paired;
mod pairs;
mod plots;
mod report;
mod reproduce;
pub mod runs;
pub mod sample;
mod timer;
mod totals;
pub mod vendor;

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};

use client::Session;
use tarsia::facade::Status;

use self::args::Against;
pub use self::args::{Args, Op};
use self::cases::{done, Bench};
use self::compare::{summary, with_new_values, Baseline};
use self::machine::Machines;
use self::pairs::{Hierarchy, Pair};
use self::report::{is_on_terminal, Row, Table, Writer};
use self::reproduce::{Earlier, Factors};
use self::runs::Setting;
use self::vendor::{cpu::Peers, cublas::Cublas, cusparse::Libraries, Nobody, Vendor};
use crate::progress::{say, step, Bar};
use crate::Result;

/// Reason why a case is not run, although nothing has failed.
#[derive(Clone, Debug)]
struct Declined(String);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Declined {}

/// Returns whether the library does not support a case, or memory is missing for it.
fn is_declined(error: &(dyn Error + 'static)) -> bool {
    let statuses = [Status::NotSupported, Status::InsufficientResources, Status::AllocFailed];
    let status = error.downcast_ref::<tarsia::facade::Error>().map(|error| error.status);
    error.is::<Declined>() || status.is_some_and(|status| statuses.contains(&status))
}

/// Runs the benchmark; false if a result of the library is wrong or a case of it failed.
pub fn run(args: &Args) -> Result<bool> {
    args.check()?;
    args.gallery()?;
    args.files_exist()?;
    // The tables for comparison are read before hours of measuring.
    let others = Others::read(args)?;
    let hierarchies =
        args.hierarchy.iter().map(|folder| Hierarchy::find(folder)).collect::<Result<Vec<_>>>()?;
    let (rows, passed) = if args.results.is_empty() {
        measure(args, &hierarchies)?
    } else {
        let mut rows = Vec::new();
        for path in &args.results {
            rows.extend(Table::read(path)?.rows()?);
        }
        let passed = !rows.iter().any(|row: &Row| row.is_ours() && row.is_wrong());
        (rows, passed)
    };
    let mut said = others.summary(&rows)?;
    if let Some(folder) = &args.plot {
        for path in plots::draw(&rows, &others.baseline(&rows), folder, args.plot_format)? {
            said += &format!("{}\n", path.display());
        }
    }
    if args.table_on_stdout() && is_on_terminal() {
        say("The table with all columns: --out FILE, or stdout into a pipe");
    }
    if args.table_on_stdout() {
        // Programs read the table from stdout, so nothing else goes there.
        anstream::eprint!("{said}");
    } else {
        anstream::print!("{said}");
    }
    Ok(passed)
}

/// Tables with which results are compared.
struct Others {
    bar: Option<(String, Baseline, Earlier)>,
    reproduced: Option<(String, Earlier)>,
    table: Option<(String, Baseline)>,
}

impl Others {
    fn read(args: &Args) -> Result<Self> {
        let bar = args.bar.as_ref().map(|path| -> Result<_> {
            let (table, column) = (Table::read(path)?, &args.bar_column);
            let title = format!("{column} of {}", path.display());
            Ok((title, Baseline::new(&table, column, &[])?, Earlier::new(&table, column)?))
        });
        let reproduced = args.reproduces.as_ref().map(|path| -> Result<_> {
            Ok((path.display().to_string(), Earlier::new(&Table::read(path)?, "median_us")?))
        });
        let table = args.table.as_ref().map(|path| -> Result<_> {
            let (implementation, alg) = (args.implementation.as_deref(), args.table_alg.as_deref());
            let wanted = [("impl", implementation), ("alg", alg)];
            let filters: Vec<_> =
                wanted.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            let who: Vec<&str> = filters.iter().map(|(_, value)| *value).collect();
            let title = format!("{} of {}", who.join(" "), path.display());
            Ok((title, Baseline::new(&Table::read(path)?, "median_us", &filters)?))
        });
        Ok(Others { bar: bar.transpose()?, reproduced: reproduced.transpose()?, table: table.transpose()? })
    }

    /// Returns the factors by which this machine is slower than that of the tables.
    fn factors(&self, rows: &[Row]) -> Factors {
        let earlier = self.reproduced.as_ref().map(|(_, earlier)| earlier);
        let earlier = earlier.or(self.bar.as_ref().map(|(_, _, earlier)| earlier));
        earlier.map(|earlier| earlier.factors(rows)).unwrap_or_default()
    }

    fn summary(&self, rows: &[Row]) -> Result<String> {
        let mut out = String::new();
        let best = Baseline::best_vendor(rows);
        if !best.is_empty() && rows.iter().any(|row| row.is_ours() && row.is_product()) {
            out += &summary(rows, &best, "Speed-up over the best of the vendor, measured beside it")?;
            let again = with_new_values(rows);
            if !again.is_empty() {
                let title = "SpGEMM with new values (reuse_us): speed-up over the best of the vendor, \
                             its reuse_us or a whole product";
                out += &summary(&again, &Baseline::best_vendor(&again), title)?;
            }
        }
        if let Some((title, bar, _)) = &self.bar {
            out += &summary(rows, bar, &format!("Speed-up over {title}, as it is"))?;
            let factors = self.factors(rows);
            if !factors.is_empty() {
                let title = format!("Speed-up over {title}, corrected: {}", factors.describe());
                out += &summary(rows, &bar.corrected(&factors), &title)?;
            }
        }
        if let Some((title, baseline)) = &self.table {
            out += &summary(rows, baseline, &format!("Speed-up over {title}"))?;
        }
        if let Some((title, earlier)) = &self.reproduced {
            out += &earlier.summary(rows, title)?;
        }
        out += &totals::summary(rows)?;
        out += &orders::summary(rows)?;
        // Prints nothing beside the table if nothing is compared.
        if out.is_empty() {
            return Ok(out);
        }
        let mut machine = String::new();
        for row in rows.iter().filter(|row| !row.is_product()) {
            let (case, origin) = (&row.case, &row.origin);
            let what = format!("{} {}: {:.2} µs, {}", case.op, row.alg, row.median_us, row.note);
            machine += &format!("{what} ({}, {}, {})\n", origin.device, origin.driver, origin.date);
        }
        Ok(machine + &out)
    }

    /// Returns the times for the pictures: those of the vendor of the run, else of the bar, else of the
    /// table.
    fn baseline(&self, rows: &[Row]) -> Baseline {
        let best = Baseline::best_vendor(rows);
        if !best.is_empty() {
            return best;
        }
        let bar = self.bar.as_ref().map(|(_, bar, _)| bar.corrected(&self.factors(rows)));
        bar.or(self.table.as_ref().map(|(_, table)| table.clone())).unwrap_or_default()
    }
}

fn measure(args: &Args, hierarchies: &[Hierarchy]) -> Result<(Vec<Row>, bool)> {
    let session = Session::new(args.kind())?;
    match args.against[..] {
        [] => measure_with(args, hierarchies, &session, Nobody),
        [Against::Cusparse] => {
            let vendor = Libraries::open(&session, &args.library, args.bsr_fill)?;
            measure_with(args, hierarchies, &session, vendor)
        }
        [Against::Cublas] => measure_with(args, hierarchies, &session, Cublas::open(&session)?),
        _ => measure_with(args, hierarchies, &session, Peers::open(&session, &args.peers())?),
    }
}

fn measure_with<V: Vendor>(
    args: &Args,
    hierarchies: &[Hierarchy],
    session: &Session,
    vendor: V,
) -> Result<(Vec<Row>, bool)> {
    let begin = Instant::now();
    let timer = timer::of(session)?;
    let setting = Setting {
        session,
        timer: &*timer,
        repeat: args.repeat as usize,
        check: !args.no_check,
        features: args.features,
        expected_executes: args.expected_executes,
        max_c_bytes: args.max_c_gib * 1024f64.powi(3),
    };
    let (writer, rows) = match &args.out {
        Some(path) if args.append => Writer::append(path)?,
        path => (Writer::new(path.as_deref())?, Vec::new()),
    };
    let mut bench = Bench {
        args,
        setting,
        vendor,
        writer,
        done: rows.iter().flat_map(done).collect(),
        rows,
        passed: true,
        deadline: args.time_limit.map(|seconds| begin + Duration::from_secs(seconds)),
        left: 0,
        floor_scale: 1.0,
        origin: machine::origin(session, args.commit.as_deref())?,
    };
    let origin = bench.origin.clone();
    say(format!("{} · {} · {}", origin.device, origin.driver, bench.vendor.version()));
    for row in machine::rows(session, &*timer)? {
        say(format!("{}: {:.2} µs, {}", row.case.op, row.median_us, row.note));
        // Written once per machine and day in a table.
        let is_it = |old: &Row| old.case.op == row.case.op && old.origin == origin;
        if !bench.rows.iter().any(is_it) {
            bench.add(row)?;
        }
    }
    // Uses the copy rate in the table: a continued table keeps that of its first run.
    bench.floor_scale = Machines::of(&bench.rows).floor_scale(&origin);
    let gallery = args.gallery()?;
    let levels = hierarchies.iter().map(Hierarchy::levels).sum::<usize>();
    let bar = Bar::new(args.files.len() + gallery.len() + args.pairs().count() + levels);
    for path in &args.files {
        if bench.begins() {
            bench.input(&step(&format!("reading {}", path.display()), || input::read(path))?)?;
        }
        bar.advance();
    }
    for name in &gallery {
        if bench.begins() {
            bench.input(&step(&format!("making {name}"), || input::generate(name))?)?;
        }
        bar.advance();
    }
    for (a, b) in args.pairs() {
        if bench.begins() {
            bench.pair(&step("reading the pair", || Pair::read(a, b))?)?;
        }
        bar.advance();
    }
    for hierarchy in hierarchies {
        for level in 0..hierarchy.levels() {
            if bench.begins() {
                let name = format!("{} level {level}", hierarchy.name);
                for pair in &step(&name, || hierarchy.products(level))? {
                    bench.pair(pair)?;
                }
            }
            bar.advance();
        }
    }
    drop(bar);
    if bench.left > 0 {
        let left = bench.left;
        say(format!("time is up: at least {left} cases were not begun; --append goes on with them"));
    }
    Ok((bench.rows, bench.passed))
}
