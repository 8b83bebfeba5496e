//! Output for people: tables, paragraphs, numbers with units. Colours are in the text as a terminal takes them;
//! anstream removes them where the output goes elsewhere.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

/// Largest width of a line in characters.
pub const WIDTH: usize = 108;
/// Indentation of the text under a line of the table.
const INDENT: usize = 2;
/// Style of the names of columns.
const HEAD: Style = Style::new().bold();
/// Styles of good and of bad news.
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// A text in a style.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Makes a text in the style of good news, or of bad.
    pub fn news(text: impl Into<String>, is_good: bool) -> Self {
        Cell { text: text.into(), style: if is_good { GOOD } else { BAD } }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell { text, style: Style::new() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Cell { text, style } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// A table with columns as wide as what they hold. A row may have fewer cells than there are columns, and text
/// below it; the last column may be of any length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<Cell>,
    /// Columns whose cells are at the right edge.
    at_right: Vec<bool>,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
enum Line {
    Row(Vec<Cell>),
    Note(String),
}

impl Table {
    /// Makes an empty table. The name of a column of numbers, whose cells are at its right edge, begins with `>`.
    pub fn new<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) -> Self {
        let mut out = Table::default();
        for name in columns {
            let name = name.as_ref();
            let text = name.trim_start_matches('>').to_string();
            out.at_right.push(name.len() != text.len());
            out.head.push(Cell { text, style: HEAD });
        }
        out
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.lines.push(Line::Row(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds text below the last row.
    pub fn note(&mut self, text: impl Into<String>) {
        self.lines.push(Line::Note(text.into()));
    }

    /// Returns the width of a column.
    fn width(&self, at: usize) -> usize {
        let rows = std::iter::once(&self.head).chain(self.lines.iter().filter_map(|line| match line {
            Line::Row(cells) => Some(cells),
            Line::Note(_) => None,
        }));
        rows.filter_map(|row| row.get(at)).map(|cell| length(&cell.text)).max().unwrap_or(0)
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.head.len()).map(|at| self.width(at)).collect();
        let row = |f: &mut Formatter<'_>, cells: &[Cell]| {
            for (at, cell) in cells.iter().enumerate() {
                let space = " ".repeat(widths[at] - length(&cell.text));
                let (before, after) = if self.at_right[at] { (&*space, "") } else { ("", &*space) };
                // Nothing is behind the last cell.
                let after = if at + 1 == cells.len() { "" } else { after };
                write!(f, "{}{before}{cell}{after}", if at == 0 { "" } else { "  " })?;
            }
            writeln!(f)
        };
        row(f, &self.head)?;
        for line in &self.lines {
            match line {
                Line::Row(cells) => row(f, cells)?,
                Line::Note(text) => f.write_str(&paragraph(text))?,
            }
        }
        Ok(())
    }
}

/// Prints a text under a line of a table, or anywhere, broken into lines.
pub fn note(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(paragraph(text).as_bytes())
}

/// Breaks a text into indented lines.
fn paragraph(text: &str) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && INDENT + length(&line) + 1 + length(word) > WIDTH {
            out += &format!("{:INDENT$}{line}\n", "");
            line.clear();
            // Continuation lines are indented by one more space.
            line.push(' ');
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        out += &format!("{:INDENT$}{line}\n", "");
    }
    out
}

/// Counts the characters of a text that are seen.
fn length(text: &str) -> usize {
    anstream::adapter::strip_str(text).map(|part| part.chars().count()).sum()
}

/// Returns `PASS` or `FAIL`.
pub fn verdict(passed: bool) -> Cell {
    Cell::news(if passed { "PASS" } else { "FAIL" }, passed)
}

/// Formats a scaled error, such as `0`, `0.031`, `2.3e-5`.
pub fn ratio(error: f64) -> String {
    match error {
        0.0 => "0".into(),
        0.001..1000.0 => format!("{error:.3}"),
        _ => format!("{error:.1e}"),
    }
}

/// Formats a time, such as `3.21 µs`, `1.25 ms`, `2.00 s`.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..1e-3 => three_digits(seconds * 1e6, "µs"),
        ..1.0 => three_digits(seconds * 1e3, "ms"),
        _ => three_digits(seconds, "s"),
    }
}

/// Formats a number with a unit: at least three digits, such as `0.25`, `3.21`, `52.1`, `1,250`.
pub fn three_digits(number: f64, unit: &str) -> String {
    match number {
        ..10.0 => format!("{number:.2} {unit}"),
        ..100.0 => format!("{number:.1} {unit}"),
        _ => format!("{} {unit}", grouped(number.round() as u64)),
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
        assert_eq!([3.21e-6, 0.0125, 0.5, 1250.0].map(time), ["3.21 µs", "12.5 ms", "500 ms", "1,250 s"]);
        assert_eq!(
            ["0", "0.031", "2.3e-5", "inf"].map(String::from),
            [0.0, 0.031, 2.3e-5, f64::INFINITY].map(ratio)
        );
    }

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let mut table = Table::new(["name", ">µs", "more"]);
        table.row(["Größe".into(), "1.5".into(), Cell::news("x", true)]);
        table.note("of one");
        table.row(["b", "12345", "of any length"]);
        table.row(["c"]);
        let text = anstream::adapter::strip_str(&table.to_string()).to_string();
        let lines =
            ["name      µs  more", "Größe    1.5  x", "  of one", "b      12345  of any length", "c", ""];
        assert_eq!(text, lines.join("\n"));
        // Styles end where they begin, around the text alone.
        assert!(table.to_string().contains("\u{1b}[32mx\u{1b}[0m\n"));
    }

    #[test]
    fn notes_keep_to_the_width() {
        let mut out = Vec::new();
        note(&mut out, &"Größe über alles · ".repeat(30)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH));
    }
}
