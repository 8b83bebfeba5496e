//! Output of the demo: numbers, paragraphs, and the table of the products.

use std::io::{self, Write};

/// Largest width of a line in characters.
pub const WIDTH: usize = 108;
/// Indentation of the text under a line of the table.
const INDENT: usize = 2;

/// Widths of the columns, without the space between two.
const OPERATION: usize = 18;
const LAYOUT: usize = 20;
const NUMBERS: [usize; 6] = [11, 11, 8, 8, 8, 9];

/// A timed product.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Seconds of analysis.
    pub analysis: f64,
    /// Median seconds of an execution.
    pub execute: f64,
    /// Number of operations.
    pub flops: f64,
    /// Least number of bytes that must move.
    pub bytes: f64,
}

/// Prints the head of the table.
pub fn head(out: &mut impl Write) -> io::Result<()> {
    let numbers = ["analysis ms", "execute ms", "GFLOP/s", "GB/s", "of copy", "error"];
    write!(out, "{:OPERATION$} {:LAYOUT$}", "operation", "layout")?;
    for (name, width) in numbers.into_iter().zip(NUMBERS) {
        write!(out, " {name:>width$}")?;
    }
    writeln!(out)?;
    writeln!(out, "{}", "─".repeat(OPERATION + 1 + LAYOUT + 6 + NUMBERS.iter().sum::<usize>() + 5))
}

/// Prints a line with numbers; `copy` is the copy bandwidth in bytes a second.
pub fn line(
    out: &mut impl Write,
    operation: &str,
    layout: &str,
    timing: &Timing,
    copy: f64,
    (error, passed): (f64, bool),
) -> io::Result<()> {
    let rate = |amount: f64| if timing.execute > 0.0 { amount / timing.execute } else { 0.0 };
    let bandwidth = rate(timing.bytes);
    let cells = [
        milliseconds(timing.analysis),
        milliseconds(timing.execute),
        format!("{:.2}", rate(timing.flops) / 1e9),
        format!("{:.1}", bandwidth / 1e9),
        format!("{:.0} %", 100.0 * bandwidth / copy),
        ratio(error),
    ];
    write!(out, "{operation:OPERATION$} {layout:LAYOUT$}")?;
    for (cell, width) in cells.into_iter().zip(NUMBERS) {
        write!(out, " {cell:>width$}")?;
    }
    writeln!(out, " {}", verdict(passed))
}

/// Prints a line of the table that has no numbers.
pub fn remark(out: &mut impl Write, operation: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{operation:OPERATION$} {text}")
}

/// Prints a text under a line of the table, or anywhere, broken into lines.
pub fn note(out: &mut impl Write, text: &str) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && INDENT + length(&line) + 1 + length(word) > WIDTH {
            writeln!(out, "{:INDENT$}{line}", "")?;
            line.clear();
            // Continuation lines are indented by one more space.
            line.push(' ');
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.is_empty() {
        return Ok(());
    }
    writeln!(out, "{:INDENT$}{line}", "")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns `PASS` or `FAIL`.
pub fn verdict(passed: bool) -> &'static str {
    if passed {
        "PASS"
    } else {
        "FAIL"
    }
}

/// Formats a scaled error, such as `0`, `0.031`, `2.3e-5`.
pub fn ratio(error: f64) -> String {
    match error {
        0.0 => "0".into(),
        0.001..1000.0 => format!("{error:.3}"),
        _ => format!("{error:.1e}"),
    }
}

fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        ..0.1 => format!("{ms:.5}"),
        ..10.0 => format!("{ms:.3}"),
        ..1000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// Formats a number with separators: 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats bytes with a binary unit.
pub fn size(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"].map(String::from),
            [0, 999, 1000, 1_234_567].map(grouped)
        );
        assert_eq!(["12 bytes", "1.5 KiB", "12.4 GiB"].map(String::from), [12.0, 1536.0, 1.33e10].map(size));
        assert_eq!(
            ["0", "0.031", "2.3e-5", "inf"].map(String::from),
            [0.0, 0.031, 2.3e-5, f64::INFINITY].map(ratio)
        );
    }

    #[test]
    fn notes_keep_to_the_width() {
        let mut out = Vec::new();
        note(&mut out, &"Größe über alles · ".repeat(30)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
