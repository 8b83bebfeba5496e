//! Results as pictures: the speed-up of each matrix, the fraction of the floor, and performance profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::compare::Reference;
use super::machine::Machines;
use super::report::{Key, Row, DEFAULT, OURS};
use crate::plot::{Canvas, Pen};
use crate::Result;

/// Sizes in pixels: height of a line of a picture, margins around the lines, width of a letter, and least and
/// largest width of the names, which depends on the longest name.
const LINE: u32 = 16;
const MARGIN: u32 = 48;
const LETTER: i32 = 6;
const NAMES: (i32, i32) = (130, 300);
const WIDTH: u32 = 900;
/// Width in pixels of the legend of profiles.
const LEGEND: i32 = 170;
/// Height of letters in pixels.
const LETTERS: i32 = 9;
const TITLE: i32 = 18;

const GREEN: RGBColor = RGBColor(27, 120, 55);
const RED_: RGBColor = RGBColor(178, 24, 43);
const GREY: RGBColor = RGBColor(110, 110, 110);
/// Colours of the profiles, the library's first.
const COLORS: [RGBColor; 8] = [
    GREEN,
    RED_,
    RGBColor(33, 102, 172),
    RGBColor(230, 130, 0),
    RGBColor(118, 42, 131),
    RGBColor(0, 140, 140),
    GREY,
    RGBColor(140, 81, 10),
];
/// End of the profiles' axis, as a multiple of the best time of a case.
const FARTHEST: f64 = 16.0;

/// A bar of a bar chart.
struct Bar<'a> {
    name: &'a str,
    value: f64,
    /// Value of the best other implementation, drawn as a mark.
    mark: Option<f64>,
}

/// Draws all pictures for which there are results into the folder; returns their files.
pub fn draw(rows: &[Row], reference: &Reference, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let machines = Machines::of(rows);
    let mut out = Vec::new();
    let ours = |row: &&Row| row.implementation == OURS && row.alg == DEFAULT && row.counts();
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(ours).filter(|row| row.is_product()) {
        groups.entry((&row.case.op, &row.case.precision, row.case.n)).or_default().push(row);
    }
    for ((op, precision, n), rows_of) in &groups {
        let end = format!("{op}_{precision}_{n}.png");
        let title = format!("{op} {precision} N = {n}");
        let mut bars = Vec::new();
        for row in rows_of {
            if let Some(time) = reference.time(row) {
                bars.push(Bar { name: &row.case.matrix, value: time / row.median_us, mark: None });
            }
        }
        if !bars.is_empty() {
            bars.sort_by(|a, b| b.value.total_cmp(&a.value));
            let path = folder.join(format!("speedup_{end}"));
            draw_bars(
                &path,
                &format!("{title}: speed-up of the default over the best other"),
                &bars,
                Scale::Around,
            )?;
            out.push(path);
        }
        let fraction = |row: &Row, time: f64| machines.floor_us(row) / time;
        let mut bars = Vec::new();
        for row in rows_of.iter().filter(|row| row.floor_us > 0.0) {
            let (value, mark) = (fraction(row, row.median_us), reference.time(row));
            let mark = mark.map(|time| fraction(row, time));
            bars.push(Bar { name: &row.case.matrix, value, mark });
        }
        if !bars.is_empty() {
            bars.sort_by(|a, b| b.value.total_cmp(&a.value));
            let path = folder.join(format!("floor_{end}"));
            draw_bars(&path, &floor_title(&title, &bars), &bars, Scale::Part)?;
            out.push(path);
        }
    }
    let ops: BTreeSet<&String> = rows.iter().filter(|row| row.is_product()).map(|row| &row.case.op).collect();
    for op in ops {
        let profiles = profiles(rows, op);
        if profiles.len() > 1 {
            let path = folder.join(format!("profile_{op}.png"));
            draw_profiles(&path, &format!("{op}: part of the cases within a factor of the best"), &profiles)?;
            out.push(path);
        }
    }
    Ok(out)
}

/// Title of the picture of floors; it explains marks if there are any.
fn floor_title(case: &str, bars: &[Bar<'_>]) -> String {
    let marks = if bars.iter().any(|bar| bar.mark.is_some()) { " (mark: the best other)" } else { "" };
    format!("{case}: fraction of the copy rate{marks}")
}

/// Returns for each implementation its distances from the best time of each case, ascending; infinite for a
/// case without a right result. (Dolan, Moré: Benchmarking optimization software with performance profiles,
/// Mathematical Programming 91, 2002.)
fn profiles(rows: &[Row], op: &str) -> Vec<(String, Vec<f64>)> {
    let mut cases: BTreeMap<Key, BTreeMap<String, f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.case.op == op) {
        // A vendor's formats count as separate implementations; among their algorithms and versions a user
        // can choose, so the best counts.
        let name = row.who();
        let who = if row.is_ours() { format!("{name} {}", row.alg) } else { name };
        let best = cases.entry(row.key()).or_default().entry(who).or_insert(f64::INFINITY);
        if row.counts() {
            *best = best.min(row.median_us);
        }
    }
    // A case that only one of them was asked for is no comparison.
    cases.retain(|_, times| times.len() > 1);
    let everybody: BTreeSet<&String> = cases.values().flat_map(|times| times.keys()).collect();
    let mut out: Vec<(String, Vec<f64>)> = Vec::new();
    for who in everybody {
        let distance = |times: &BTreeMap<String, f64>| {
            let best = times.values().copied().fold(f64::INFINITY, f64::min);
            // This is infinity over infinity if nobody has a result.
            times.get(who).filter(|time| time.is_finite()).map_or(f64::INFINITY, |time| time / best)
        };
        let mut distances: Vec<f64> = cases.values().map(distance).collect();
        distances.sort_by(f64::total_cmp);
        out.push((who.clone(), distances));
    }
    // Ours comes first and gets the first colour.
    out.sort_by_key(|(who, _)| (!who.starts_with(OURS), who.clone()));
    out
}

/// Scale of a bar chart.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// Logarithmic around 1.
    Around,
    /// Linear from 0 on.
    Part,
}

fn text(size: i32, color: &RGBColor, h_pos: HPos, v_pos: VPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(color).pos(Pos::new(h_pos, v_pos))
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("drawing: {error}")
}

fn draw_bars(path: &Path, title: &str, bars: &[Bar<'_>], scale: Scale) -> Result<()> {
    let mut canvas = Canvas::new(WIDTH, LINE * bars.len() as u32 + 2 * MARGIN);
    let area = canvas.pen().into_drawing_area();
    let style = text(TITLE, &BLACK, HPos::Left, VPos::Top);
    area.draw(&Text::new(title.to_string(), (12, 12), style)).map_err(failed)?;
    let values = bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
    let most = values.clone().fold(1.0, f64::max);
    let least = values.fold(1.0, f64::min);
    // Maps values to positions from the left edge to the right one.
    let longest = bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0) as i32;
    let (left, right) = ((LETTER * longest + 16).clamp(NAMES.0, NAMES.1), WIDTH as i32 - 80);
    let place = |value: f64| {
        let part = match scale {
            Scale::Around => (value / least).ln() / (most / least).ln().max(1e-9),
            Scale::Part => value / most,
        };
        left + (part * f64::from(right - left)).round() as i32
    };
    let (top, bottom) = (MARGIN as i32, (MARGIN + LINE * bars.len() as u32) as i32);
    for tick in ticks(least, most, scale) {
        let x = place(tick);
        let color = if tick == 1.0 { BLACK } else { RGBColor(215, 215, 215) };
        area.draw(&PathElement::new(vec![(x, top), (x, bottom)], color)).map_err(failed)?;
        let style = text(LETTERS, &GREY, HPos::Center, VPos::Top);
        area.draw(&Text::new(format!("{tick}"), (x, bottom + 6), style)).map_err(failed)?;
    }
    let start = if scale == Scale::Around { place(1.0) } else { left };
    for (bar, y) in bars.iter().zip((top..).step_by(LINE as usize)) {
        let middle = y + LINE as i32 / 2;
        let color = if scale == Scale::Around && bar.value < 1.0 { RED_ } else { GREEN };
        let end = place(bar.value);
        let corners = [(start.min(end), y + 3), (start.max(end), y + LINE as i32 - 4)];
        area.draw(&Rectangle::new(corners, color.filled())).map_err(failed)?;
        if let Some(mark) = bar.mark {
            let x = place(mark);
            let corners = [(x - 1, y + 1), (x + 1, y + LINE as i32 - 2)];
            area.draw(&Rectangle::new(corners, BLACK.filled())).map_err(failed)?;
        }
        let style = text(LETTERS, &BLACK, HPos::Right, VPos::Center);
        area.draw(&Text::new(bar.name.to_string(), (left - 6, middle), style)).map_err(failed)?;
        let style = text(LETTERS, &GREY, HPos::Left, VPos::Center);
        let at = (end.max(start).max(bar.mark.map_or(0, place)) + 5, middle);
        area.draw(&Text::new(format!("{:.2}", bar.value), at, style)).map_err(failed)?;
    }
    area.present().map_err(failed)?;
    drop(area);
    canvas.save(path)
}

/// Returns round numbers in the range, for the axis.
fn ticks(least: f64, most: f64, scale: Scale) -> Vec<f64> {
    match scale {
        Scale::Around => {
            let digits: &[f64] = if most / least < 4.0 {
                &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
            } else {
                &[1.0, 2.0, 5.0]
            };
            let all = (-4..=4).flat_map(|power: i32| digits.iter().map(move |digit| (power, digit)));
            // Divided, not multiplied, so that 0.1 is exactly the nearest number to a tenth.
            let tick = |(power, digit): (i32, &f64)| match power {
                0.. => digit * 10f64.powi(power),
                _ => digit / 10f64.powi(-power),
            };
            all.map(tick).filter(|tick| (least..=most).contains(tick)).collect()
        }
        Scale::Part => {
            let step = if most > 2.0 { 0.5 } else { 0.2 };
            (0..=(most / step) as i32).map(|at| (f64::from(at) * step * 10.0).round() / 10.0).collect()
        }
    }
}

fn draw_profiles(path: &Path, title: &str, profiles: &[(String, Vec<f64>)]) -> Result<()> {
    let mut canvas = Canvas::new(WIDTH, 560);
    let area = canvas.pen().into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, text(TITLE, &BLACK, HPos::Left, VPos::Top))
        .margin(12)
        .margin_right(LEGEND)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d((1.0..FARTHEST).log_scale().base(2.0), 0.0..1.02)
        .map_err(failed)?;
    let mut mesh = chart.configure_mesh();
    let style = text(LETTERS, &BLACK, HPos::Center, VPos::Top);
    mesh.label_style(style).x_desc("times the best of the case").light_line_style(WHITE);
    mesh.x_label_formatter(&|x| format!("{x:.0}")).y_label_formatter(&|y| format!("{y:.1}"));
    mesh.draw().map_err(failed)?;
    for (at, (who, distances)) in profiles.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        let share = |count: usize| count as f64 / distances.len() as f64;
        let mut steps = vec![(1.0, 0.0)];
        for (count, &distance) in distances.iter().enumerate().filter(|(_, d)| **d <= FARTHEST) {
            steps.push((distance, share(count)));
            steps.push((distance, share(count + 1)));
        }
        steps.push((FARTHEST, steps.last().map_or(0.0, |last| last.1)));
        chart.draw_series(LineSeries::new(steps, color.stroke_width(2))).map_err(failed)?;
        legend(&area, who, color, at as i32)?;
    }
    area.present().map_err(failed)?;
    drop(chart);
    drop(area);
    canvas.save(path)
}

type Area<'a> = DrawingArea<Pen<'a>, plotters::coord::Shift>;

fn legend(area: &Area<'_>, who: &str, color: RGBColor, at: i32) -> Result<()> {
    let (x, y) = (WIDTH as i32 - LEGEND + 12, MARGIN as i32 + at * LINE as i32);
    area.draw(&Rectangle::new([(x, y), (x + 16, y + 6)], color.filled())).map_err(failed)?;
    let style = text(LETTERS, &BLACK, HPos::Left, VPos::Center);
    Ok(area.draw(&Text::new(who.to_string(), (x + 24, y + 3), style)).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use super::super::report::Case;
    use super::*;

    fn row(matrix: &str, implementation: &str, alg: &str, median_us: f64) -> Row {
        let case = Case {
            op: "spmv".into(),
            precision: "f64".into(),
            n: 1,
            matrix: matrix.into(),
            ..Case::default()
        };
        let (implementation, alg) = (implementation.into(), alg.into());
        Row { case, implementation, alg, median_us, floor_us: 4.0, ..Row::default() }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("a", OURS, DEFAULT, 5.0),
            row("a", "cusparse", "X", 10.0),
            row("a", "cusparse@12.9.4", "Y", 20.0),
            row("b", OURS, DEFAULT, 30.0),
            row("b", "cusparse", "X", 10.0),
            row("c", OURS, DEFAULT, 8.0),
            row("c", "cusparse", "X", -1.0),
        ]
    }

    #[test]
    fn pictures_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let rows = rows();
        let paths = draw(&rows, &Reference::best_vendor(&rows), &folder.path().join("new")).unwrap();
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["speedup_spmv_f64_1.png", "floor_spmv_f64_1.png", "profile_spmv.png"]);
        for path in &paths {
            let bytes = std::fs::read(path).unwrap();
            assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
            let width = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
            assert!(width == WIDTH && bytes.len() > 1000, "{} bytes", bytes.len());
        }
        assert!(draw(&[], &Reference::default(), folder.path()).unwrap().is_empty());
    }

    #[test]
    fn marks_are_explained_where_there_are_some() {
        let bar = |mark| Bar { name: "a", value: 0.5, mark };
        let title = "spmv f64 N = 1: fraction of the copy rate";
        assert_eq!(floor_title("spmv f64 N = 1", &[bar(None), bar(None)]), title);
        let both = floor_title("spmv f64 N = 1", &[bar(None), bar(Some(0.3))]);
        assert_eq!(both, format!("{title} (mark: the best other)"));
    }

    #[test]
    fn profiles_are_of_cases_that_several_were_asked_for() {
        let found = profiles(&rows(), "spmv");
        assert_eq!(found[0], ("tarsia default".to_string(), vec![1.0, 1.0, 3.0]));
        assert_eq!(found[1], ("cusparse".to_string(), vec![1.0, 2.0, f64::INFINITY]));
        assert!(profiles(&rows(), "spmm").is_empty());
    }
}
