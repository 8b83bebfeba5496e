//! Positions of the entries of a matrix: counts on a grid, as text and as a picture.

use std::path::Path;

use matrices::owned::OwnedCsr;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::FontTransform;
use rayon::prelude::*;
use tarsia::facade::run_in_pool;

use crate::plot::{failed, save, text, Area, Format, Picture, GREY, LABEL, TITLE};
use crate::table::grouped;
use crate::Result;

/// Largest width and height of the text in characters, and height over width of a character.
const TERMINAL: (usize, usize) = (72, 36);
const CHARACTER: f64 = 2.0;
/// Pixels of the longer side of the cells; and at the left of them, above, at the right and below, where title,
/// indices and names of the axes are.
const SIDE: usize = 1024;
const MARGINS: (usize, usize, usize, usize) = (180, 116, 60, 96);
/// Least width of the whole picture.
const NARROWEST_PICTURE: usize = 800;
/// Pixels between two indices along an axis, at least.
const TICK: f64 = 150.0;
/// Width and height of a cell of an SVG file in pixels.
const SVG_CELL: usize = 4;
/// Least length of the shorter side over that of the longer one, however narrow the matrix is.
const NARROWEST: f64 = 0.1;
/// Characters for cells from little to much.
const RAMP: &[u8] = b".:-=+*#%@";
/// Colours for cells from little to much, light to dark blue, between which values are interpolated.
const COLOURS: [[f64; 3]; 3] = [[158.0, 202.0, 225.0], [49.0, 130.0, 189.0], [8.0, 29.0, 88.0]];

/// Numbers of stored entries in the cells of a grid over a matrix.
#[derive(Debug)]
pub struct Grid {
    /// Rows of cells.
    pub height: usize,
    /// Columns of cells.
    pub width: usize,
    /// Counts, row by row.
    counts: Vec<u64>,
    /// Largest number of positions of the matrix in a cell.
    places: f64,
}

impl Grid {
    /// Counts entries in a grid of at most `height` × `width` cells, never more than the matrix has
    /// positions.
    fn of<V: Sync>(a: &OwnedCsr<V>, height: usize, width: usize) -> Result<Self> {
        let (height, width) = (height.min(a.rows), width.min(a.cols));
        let mut counts = crate::demo::products::zeros(height * width)?;
        let cell = |index: usize, size: usize, cells: usize| index as u128 * cells as u128 / size as u128;
        run_in_pool(|| {
            counts.par_chunks_mut(width.max(1)).enumerate().for_each(|(at, counts)| {
                // The first row of this row of cells, and the first of the next one.
                let first = |at: usize| (at as u128 * a.rows as u128).div_ceil(height as u128) as usize;
                for row in first(at)..first(at + 1) {
                    for &col in a.row(row).0 {
                        counts[cell(col as usize, a.cols, width) as usize] += 1;
                    }
                }
            });
        });
        let side = |size: usize, cells: usize| size.div_ceil(cells.max(1)) as f64;
        Ok(Grid { height, width, counts, places: side(a.rows, height) * side(a.cols, width) })
    }

    /// Makes the grid for a terminal: with the matrix's proportions, as far as they fit.
    pub fn for_terminal<V: Sync>(a: &OwnedCsr<V>) -> Result<Self> {
        // Height over width, in characters.
        let ratio = ratio(a) / CHARACTER;
        let (width, height) = (TERMINAL.0 as f64, TERMINAL.1 as f64);
        let width = width.min(height / ratio);
        Self::of(a, ((width * ratio).round() as usize).max(1), (width.round() as usize).max(1))
    }

    /// Returns the level of a cell, from 0 (one entry) to 1 (all positions); `None` if it is empty. The scale
    /// is logarithmic, because cells of a sparse matrix hold few of the entries that they could.
    fn level(&self, row: usize, col: usize) -> Option<f64> {
        match self.counts[row * self.width + col] {
            0 => None,
            _ if self.places <= 1.0 => Some(1.0),
            count => Some(((count as f64).ln() / self.places.ln()).clamp(0.0, 1.0)),
        }
    }

    /// Returns a line of text for each row of cells.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let shade = |level: Option<f64>| match level {
            None => ' ',
            Some(level) => char::from(RAMP[((level * RAMP.len() as f64) as usize).min(RAMP.len() - 1)]),
        };
        (0..self.height).map(move |row| (0..self.width).map(|col| shade(self.level(row, col))).collect())
    }
}

/// Returns height over width of the matrix, limited to a range that can be displayed.
fn ratio<V>(a: &OwnedCsr<V>) -> f64 {
    (a.rows.max(1) as f64 / a.cols.max(1) as f64).clamp(NARROWEST, 1.0 / NARROWEST)
}

/// The picture of a matrix: its cells, with rows and columns at the edges.
struct Spy<'a> {
    grid: Grid,
    /// Width and height of the cells in pixels.
    inner: (usize, usize),
    /// Rows, columns and entries of the matrix.
    shape: (usize, usize, usize),
    name: &'a str,
}

impl Picture for Spy<'_> {
    fn size(&self) -> (u32, u32) {
        let ((width, height), (left, top, right, bottom)) = (self.inner, MARGINS);
        // However narrow the matrix is, there is room for the title.
        ((width + left + right).max(NARROWEST_PICTURE) as u32, (height + top + bottom) as u32)
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<'_, B>) -> Result<()> {
        let (rows, cols, nnz) = self.shape;
        let ((width, height), (left, top, ..)) = (self.inner, MARGINS);
        let [left, top, right, bottom] = [left, top, left + width, top + height].map(|at| at as i32);
        let at_left = |size, color| text(size, color, HPos::Left, VPos::Top);
        area.write(self.name, at_left(TITLE, &BLACK), (left, 20))?;
        let count = |number: usize| grouped(number as u64);
        let facts = format!("{} × {}, {} entries", count(rows), count(cols), count(nnz));
        area.write(&facts, at_left(LABEL, &GREY), (left, 66))?;
        let corners = [(left - 2, top - 2), (right + 1, bottom + 1)];
        area.canvas.draw(&Rectangle::new(corners, GREY)).map_err(failed)?;
        // A cell is a pixel, or several for a small matrix.
        let edge = |cell: usize, cells: usize, pixels: usize| (cell * pixels / cells) as i32;
        for row in 0..self.grid.height {
            let (y, below) = (edge(row, self.grid.height, height), edge(row + 1, self.grid.height, height));
            let colour_of = |col| self.grid.level(row, col).map(colour);
            // Neighbours of one colour are one rectangle.
            let mut col = 0;
            while col < self.grid.width {
                let (first, colour) = (col, colour_of(col));
                while col < self.grid.width && colour_of(col) == colour {
                    col += 1;
                }
                let Some(colour) = colour else { continue };
                let (x, end) = (edge(first, self.grid.width, width), edge(col, self.grid.width, width));
                area.fill((left + x, top + y), (left + end, top + below), colour)?;
            }
        }
        for (index, part) in ticks(cols, width) {
            let x = left + part;
            area.line((x, bottom + 2), (x, bottom + 10), GREY)?;
            area.write(&index, text(LABEL, &GREY, HPos::Center, VPos::Top), (x, bottom + 14))?;
        }
        let ticks = ticks(rows, height);
        for (index, part) in &ticks {
            let y = top + part;
            area.line((left - 11, y), (left - 3, y), GREY)?;
            area.write(index, text(LABEL, &GREY, HPos::Right, VPos::Center), (left - 16, y))?;
        }
        let widest = area.width(ticks.iter().map(|(index, _)| index.as_str()))?;
        area.write(
            "column",
            text(LABEL, &BLACK, HPos::Center, VPos::Top),
            ((left + right) / 2, bottom + 48),
        )?;
        let style = text(LABEL, &BLACK, HPos::Center, VPos::Top).transform(FontTransform::Rotate270);
        area.write("row", style, (left - widest - 58, (top + bottom) / 2))
    }
}

/// Lists round indices along a side of this many rows or columns, with their distances in pixels.
fn ticks(size: usize, pixels: usize) -> Vec<(String, i32)> {
    let wanted = (pixels as f64 / TICK).max(1.0);
    let power = 10f64.powf((size as f64 / wanted).max(1.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| (digit * power) as usize);
    let step = steps.into_iter().find(|step| (size / step) as f64 <= wanted).unwrap_or(steps[3]);
    let tick = |index: usize| (grouped(index as u64), (index * pixels / size.max(1)) as i32);
    (0..size).step_by(step).map(tick).collect()
}

/// Draws the picture of a matrix into a file.
pub fn plot<V: Sync>(a: &OwnedCsr<V>, name: &str, path: &Path, format: Format) -> Result<()> {
    let ratio = ratio(a);
    let sides = (SIDE as f64 * ratio.min(1.0), SIDE as f64 * (1.0 / ratio).min(1.0));
    let (height, width) = (sides.0.round() as usize, sides.1.round() as usize);
    // Each cell with an entry is a shape of an SVG file, so there must not be too many of them.
    let coarser = if format == Format::Svg { SVG_CELL } else { 1 };
    let grid = Grid::of(a, height.div_ceil(coarser), width.div_ceil(coarser))?;
    let shape = (a.rows, a.cols, a.nnz());
    save(&Spy { grid, inner: (width, height), shape, name }, path, format)
}

fn colour(level: f64) -> RGBColor {
    let at = level * (COLOURS.len() - 1) as f64;
    let from = (at as usize).min(COLOURS.len() - 2);
    let part = |k: usize| {
        let (low, high) = (COLOURS[from][k], COLOURS[from + 1][k]);
        (low + (high - low) * (at - from as f64)).round() as u8
    };
    RGBColor(part(0), part(1), part(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_what_is_in_them() {
        let entries = (0..100).map(|i| (i, i * i % 70, 1.0)).collect();
        let a = OwnedCsr::from_triplets(100, 70, entries).unwrap();
        for (height, width) in [(1, 1), (7, 9), (100, 70), (300, 300), (99, 1)] {
            let grid = Grid::of(&a, height, width).unwrap();
            let (height, width) = (height.min(100), width.min(70));
            assert_eq!((grid.height, grid.width), (height, width));
            let mut expected = vec![0; height * width];
            for i in 0..100 {
                expected[i * height / 100 * width + (i * i % 70) * width / 70] += 1;
            }
            assert_eq!(grid.counts, expected);
        }
    }

    #[test]
    fn text_of_a_diagonal() {
        let entries = (0..4).map(|i| (i, i, 1.0)).collect();
        let a = OwnedCsr::from_triplets(4, 4, entries).unwrap();
        let lines: Vec<String> = Grid::of(&a, 9, 9).unwrap().lines().collect();
        assert_eq!(lines, ["@   ", " @  ", "  @ ", "   @"]);
        let half: Vec<String> = Grid::of(&a, 2, 2).unwrap().lines().collect();
        assert_eq!(half, ["+ ", " +"]);
        let none = OwnedCsr::<f64>::from_triplets(0, 3, Vec::<(i32, i32, f64)>::new()).unwrap();
        assert_eq!(Grid::for_terminal(&none).unwrap().lines().count(), 0);
        let wide = OwnedCsr::from_triplets(1, 9000, vec![(0, 8999, 1.0)]).unwrap();
        let lines: Vec<String> = Grid::for_terminal(&wide).unwrap().lines().collect();
        assert!(lines.len() == 1 && lines[0].len() == 72 && lines[0].trim_start() == ".", "{lines:?}");
    }
}
