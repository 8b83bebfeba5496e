//! Results as pictures: the speed-up of each matrix, the fraction of the copy rate, and performance profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::FontTransform;

use super::compare::{geomean, Baseline};
use super::machine::Machines;
use super::report::{Key, Row, DEFAULT, OURS};
use crate::plot::{failed, save, text, Area, Format, Picture, GREY, LABEL, LIGHT, SUBTITLE, TITLE};
use crate::Result;

/// Sizes in pixels: of a picture, of a line of a bar chart, and what is left free at the edges: above for the
/// title and what is below it, below for the axis, and at the sides.
const WIDTH: u32 = 1600;
const HEIGHT: u32 = 900;
const LINE: i32 = 30;
const TOP: i32 = 136;
const BOTTOM: i32 = 84;
const SIDE: i32 = 28;
/// Width in pixels of the numbers at the ends of bars, and of a coloured field of a legend.
const NUMBER: i32 = 76;
const FIELD: i32 = 30;

const GREEN: RGBColor = RGBColor(27, 120, 55);
const RED_: RGBColor = RGBColor(178, 24, 43);
/// Colours of the profiles, that of the library's own choice first.
const COLORS: [RGBColor; 14] = [
    GREEN,
    RED_,
    RGBColor(33, 102, 172),
    RGBColor(230, 130, 0),
    RGBColor(118, 42, 131),
    RGBColor(0, 140, 140),
    GREY,
    RGBColor(140, 81, 10),
    RGBColor(231, 41, 138),
    RGBColor(120, 180, 40),
    RGBColor(100, 170, 220),
    BLACK,
    RGBColor(190, 150, 220),
    RGBColor(170, 170, 60),
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
pub fn draw(rows: &[Row], baseline: &Baseline, folder: &Path, format: Format) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let machines = Machines::of(rows);
    let mut out = Vec::new();
    let mut draw_as = |name: String, picture: &dyn Drawn| {
        let path = folder.join(format!("{name}.{}", format.ending()));
        picture.save(&path, format)?;
        out.push(path);
        Ok::<(), Box<dyn std::error::Error>>(())
    };
    let ours = |row: &&Row| row.implementation == OURS && row.alg == DEFAULT && row.counts();
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(ours).filter(|row| row.is_product()) {
        groups.entry((&row.case.op, &row.case.precision, row.case.n)).or_default().push(row);
    }
    for ((op, precision, n), rows_of) in &groups {
        let (case, measured) = (case_title(op, precision, *n), measured_on(rows_of.iter().copied()));
        let fraction = |row: &Row, time: f64| machines.floor_us(row) / time;
        let (mut speedups, mut fractions) = (Vec::new(), Vec::new());
        for row in rows_of {
            let (name, other) = (row.case.matrix.as_str(), baseline.time(row));
            if let Some(time) = other {
                speedups.push(Bar { name, value: time / row.median_us, mark: None });
            }
            if row.floor_us > 0.0 {
                let mark = other.map(|time| fraction(row, time));
                fractions.push(Bar { name, value: fraction(row, row.median_us), mark });
            }
        }
        for (name, bars, scale) in [("speedup", speedups, Scale::Around), ("floor", fractions, Scale::Part)] {
            if !bars.is_empty() {
                let chart = BarChart::new(&case, &measured, bars, scale);
                draw_as(format!("{name}_{op}_{precision}_{n}"), &chart)?;
            }
        }
    }
    let ops: BTreeSet<&String> = rows.iter().filter(|row| row.is_product()).map(|row| &row.case.op).collect();
    for op in ops {
        let profiles = profiles(rows, op);
        if profiles.len() > 1 {
            let measured = measured_on(rows.iter().filter(|row| &row.case.op == op));
            draw_as(format!("profile_{op}"), &ProfileChart { op: op_title(op), measured, profiles })?;
        }
    }
    Ok(out)
}

/// A picture of any kind.
trait Drawn {
    fn save(&self, path: &Path, format: Format) -> Result<()>;
}

impl<P: Picture> Drawn for P {
    fn save(&self, path: &Path, format: Format) -> Result<()> {
        save(self, path, format)
    }
}

/// Returns the usual name of an operation.
fn op_title(op: &str) -> &str {
    match op {
        "spmv" => "SpMV",
        "spmm" => "SpMM",
        "spgemm" => "SpGEMM",
        other => other,
    }
}

fn case_title(op: &str, precision: &str, n: usize) -> String {
    let columns = if op == "spmm" { format!(", N = {n}") } else { String::new() };
    format!("{}, {precision}{columns}", op_title(op))
}

/// Names the machine of the results and the days on which they were measured.
fn measured_on<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let (mut machines, mut dates) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let driver = match row.origin.driver.as_str() {
            "" | "-" => String::new(),
            driver => format!(", driver {driver}"),
        };
        machines.extend(Some(format!("{}{driver}", row.origin.device)).filter(|name| !name.is_empty()));
        dates.extend(Some(row.origin.date.as_str()).filter(|date| !date.is_empty()));
    }
    let dates = match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.copied().unwrap_or_default().to_string(),
    };
    let mut parts: Vec<String> = machines.into_iter().collect();
    parts.extend(Some(dates).filter(|dates| !dates.is_empty()));
    parts.join(", ")
}

/// Returns for each implementation its distances from the best time of each case, ascending; infinite for a
/// case without a correct result. (Dolan, Moré: Benchmarking optimization software with performance profiles,
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
    // Ours come first, and the default before all others.
    let default = format!("{OURS} {DEFAULT}");
    out.sort_by_key(|(who, _)| (*who != default, !who.starts_with(OURS), who.clone()));
    out
}

/// Scale of a bar chart.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// Speed-ups: logarithmic around 1.
    Around,
    /// Fractions: linear from 0 on.
    Part,
}

/// A chart with a bar for each matrix.
struct BarChart<'a> {
    title: String,
    /// Text below the title: the mean, and where and when it was measured.
    facts: String,
    bars: Vec<Bar<'a>>,
    scale: Scale,
}

impl<'a> BarChart<'a> {
    fn new(case: &str, measured: &str, mut bars: Vec<Bar<'a>>, scale: Scale) -> Self {
        bars.sort_by(|a, b| b.value.total_cmp(&a.value));
        let values: Vec<f64> = bars.iter().map(|bar| bar.value).collect();
        let matrices = if bars.len() == 1 { "matrix" } else { "matrices" };
        let mean = format!("{} {matrices}, geometric mean {:.2}", bars.len(), geomean(&values));
        let facts = if measured.is_empty() { mean } else { format!("{mean}; {measured}") };
        let what = match scale {
            Scale::Around => "tarsia's default against the best other",
            Scale::Part => "how near the speed comes to that of a memory copy",
        };
        BarChart { title: format!("{case}: {what}"), facts, bars, scale }
    }

    fn axis(&self) -> &'static str {
        match self.scale {
            Scale::Around => "speed-up: time of the best other / time of tarsia (logarithmic)",
            Scale::Part => {
                "time to copy the bytes that must move / time of the product (over 1: partly in cache)"
            }
        }
    }

    /// Lists what the colours mean.
    fn legend(&self) -> Vec<(RGBColor, &'static str)> {
        match self.scale {
            Scale::Around if self.bars.iter().any(|bar| bar.value < 1.0) => {
                vec![(GREEN, "tarsia is faster"), (RED_, "the other is faster")]
            }
            Scale::Around => vec![(GREEN, "tarsia is faster")],
            Scale::Part if self.bars.iter().any(|bar| bar.mark.is_some()) => {
                vec![(GREEN, "tarsia's default"), (BLACK, "the best other")]
            }
            Scale::Part => vec![(GREEN, "tarsia's default")],
        }
    }
}

impl Picture for BarChart<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, (LINE * self.bars.len() as i32 + TOP + BOTTOM) as u32)
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<'_, B>) -> Result<()> {
        head(area, &self.title, &self.facts)?;
        let mut x = SIDE;
        for (color, what) in self.legend() {
            area.fill((x, TOP - 34), (x + FIELD, TOP - 18), color)?;
            area.write(what, text(LABEL, &BLACK, HPos::Left, VPos::Center), (x + FIELD + 8, TOP - 26))?;
            x += FIELD + 40 + area.width([what])?;
        }
        let values = self.bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]).flatten();
        let most = values.clone().fold(1.0, f64::max);
        let least = values.fold(1.0, f64::min);
        let names = area.width(self.bars.iter().map(|bar| bar.name))?;
        // Maps values to positions from the left edge to the right one. Names take a third at the most.
        let (left, right) = (SIDE + names.min(WIDTH as i32 / 3) + 12, WIDTH as i32 - SIDE - NUMBER);
        let place = |value: f64| {
            let part = match self.scale {
                Scale::Around => (value / least).ln() / (most / least).ln().max(1e-9),
                Scale::Part => value / most,
            };
            left + (part * f64::from(right - left)).round() as i32
        };
        let bottom = TOP + LINE * self.bars.len() as i32;
        for tick in ticks(least, most, self.scale) {
            let x = place(tick);
            area.line((x, TOP), (x, bottom), if tick == 1.0 { BLACK } else { LIGHT })?;
            let style = text(LABEL, &GREY, HPos::Center, VPos::Top);
            area.write(&format!("{tick}"), style, (x, bottom + 8))?;
        }
        let style = text(LABEL, &BLACK, HPos::Center, VPos::Top);
        area.write(self.axis(), style, ((left + right) / 2, bottom + 42))?;
        let start = if self.scale == Scale::Around { place(1.0) } else { left };
        for (bar, y) in self.bars.iter().zip((TOP..).step_by(LINE as usize)) {
            let (middle, end) = (y + LINE / 2, place(bar.value));
            let color = if self.scale == Scale::Around && bar.value < 1.0 { RED_ } else { GREEN };
            area.fill((start.min(end), y + 4), (start.max(end), y + LINE - 4), color)?;
            let mark = bar.mark.map(place);
            if let Some(x) = mark {
                area.fill((x - 2, y + 1), (x + 2, y + LINE - 1), BLACK)?;
            }
            area.write(bar.name, text(LABEL, &BLACK, HPos::Right, VPos::Center), (left - 10, middle))?;
            let at = (end.max(start).max(mark.unwrap_or(0)) + 8, middle);
            area.write(&format!("{:.2}", bar.value), text(LABEL, &GREY, HPos::Left, VPos::Center), at)?;
        }
        Ok(())
    }
}

/// Writes the title of a picture and the facts below it.
fn head<B: DrawingBackend>(area: &Area<'_, B>, title: &str, facts: &str) -> Result<()> {
    area.write(title, text(TITLE, &BLACK, HPos::Left, VPos::Top), (SIDE, 18))?;
    area.write(facts, text(SUBTITLE, &GREY, HPos::Left, VPos::Top), (SIDE, 62))
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

/// Performance profiles of an operation.
struct ProfileChart<'a> {
    op: &'a str,
    measured: String,
    /// Implementations with their distances from the best time of each case.
    profiles: Vec<(String, Vec<f64>)>,
}

impl Picture for ProfileChart<'_> {
    fn size(&self) -> (u32, u32) {
        (WIDTH, HEIGHT.max((TOP + BOTTOM + LINE * self.profiles.len() as i32) as u32))
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<'_, B>) -> Result<()> {
        let cases = self.profiles.first().map_or(0, |(_, distances)| distances.len());
        let facts = format!("performance profiles of {cases} cases; {}", self.measured);
        let title = format!("{}: how often each implementation is within a factor of the fastest", self.op);
        head(area, &title, facts.trim_end_matches("; "))?;
        let names = area.width(self.profiles.iter().map(|(who, _)| who.as_str()))?;
        let label = || text(LABEL, &BLACK, HPos::Center, VPos::Top);
        let mut chart = ChartBuilder::on(area.canvas)
            .margin_top(TOP)
            .margin_left(SIDE + 40)
            .margin_right(names + FIELD + 3 * SIDE)
            .margin_bottom(44)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d((1.0..FARTHEST).log_scale().base(2.0), 0.0..1.02)
            .map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.label_style(text(LABEL, &GREY, HPos::Center, VPos::Top)).axis_style(GREY);
        mesh.bold_line_style(LIGHT).light_line_style(WHITE);
        mesh.x_label_formatter(&|x| format!("{x:.0}")).y_label_formatter(&|y| format!("{:.0} %", 100.0 * y));
        mesh.draw().map_err(failed)?;
        for (at, (who, distances)) in self.profiles.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let share = |count: usize| count as f64 / distances.len() as f64;
            let mut steps = vec![(1.0, 0.0)];
            for (count, &distance) in distances.iter().enumerate().filter(|(_, d)| **d <= FARTHEST) {
                steps.push((distance, share(count)));
                steps.push((distance, share(count + 1)));
            }
            steps.push((FARTHEST, steps.last().map_or(0.0, |last| last.1)));
            chart.draw_series(LineSeries::new(steps, color.stroke_width(4))).map_err(failed)?;
            let (x, y) = (WIDTH as i32 - SIDE - names - FIELD - 8, TOP + at as i32 * LINE + LINE / 2);
            area.fill((x, y - 4), (x + FIELD, y + 4), color)?;
            area.write(who, text(LABEL, &BLACK, HPos::Left, VPos::Center), (x + FIELD + 8, y))?;
        }
        let (columns, rows) = chart.plotting_area().get_pixel_range();
        let (middle, bottom) = ((columns.start + columns.end) / 2, rows.end + 44);
        area.write("time / time of the fastest (logarithmic)", label(), (middle, bottom))?;
        let style = label().transform(FontTransform::Rotate270);
        area.write("share of the cases", style, (SIDE - 8, (rows.start + rows.end) / 2))
    }
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
        let baseline = Baseline::best_vendor(&rows);
        let names = ["speedup_spmv_f64_1", "floor_spmv_f64_1", "profile_spmv"];
        for format in [Format::Png, Format::Svg] {
            let paths = draw(&rows, &baseline, &folder.path().join("new"), format).unwrap();
            assert_eq!(paths.len(), names.len());
            for (path, name) in paths.iter().zip(names) {
                assert_eq!(path.file_name().unwrap().to_str(), Some(&*format!("{name}.{}", format.ending())));
                let bytes = fs::read(path).unwrap();
                if format == Format::Png {
                    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
                    let width = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
                    assert!(width == WIDTH && bytes.len() > 1000, "{} bytes", bytes.len());
                } else {
                    // Title, axis and units, in words that a search finds.
                    let text = String::from_utf8(bytes).unwrap();
                    assert!(text.contains("SpMV") && text.contains("time of"), "{text}");
                }
            }
        }
        assert!(draw(&[], &Baseline::default(), folder.path(), Format::Png).unwrap().is_empty());
    }

    #[test]
    fn marks_are_explained_where_there_are_some() {
        let bar = |mark| Bar { name: "a", value: 0.5, mark };
        let legend = |bars| BarChart::new("SpMV, f64", "", bars, Scale::Part).legend().len();
        assert_eq!(legend(vec![bar(None), bar(None)]), 1);
        assert_eq!(legend(vec![bar(None), bar(Some(0.3))]), 2);
    }

    #[test]
    fn machine_and_days_are_named() {
        let on = |device: &str, date: &str| {
            let mut row = row("a", OURS, DEFAULT, 5.0);
            (row.origin.device, row.origin.driver) = (device.into(), "-".into());
            row.origin.date = date.into();
            row
        };
        let of = |rows: &[Row]| measured_on(rows.iter());
        assert_eq!(of(&[on("H100", "2026-01-02"), on("H100", "2026-01-02")]), "H100, 2026-01-02");
        let several = [on("H100", "2026-01-02"), on("A100", "2026-01-03"), on("", "")];
        assert_eq!(of(&several), "A100, H100, 2026-01-02 to 2026-01-03");
        assert_eq!((of(&[on("", "")]), of(&[])), (String::new(), String::new()));
    }

    #[test]
    fn profiles_are_of_cases_that_several_were_asked_for() {
        let found = profiles(&rows(), "spmv");
        assert_eq!(found[0], ("tarsia default".to_string(), vec![1.0, 1.0, 3.0]));
        assert_eq!(found[1], ("cusparse".to_string(), vec![1.0, 2.0, f64::INFINITY]));
        assert!(profiles(&rows(), "spmm").is_empty());
    }
}
