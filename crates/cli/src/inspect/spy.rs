//! Positions of the entries of a matrix: counts on a grid, as text and as a picture.

use std::io::{BufWriter, Write};

use matrices::owned::OwnedCsr;
use plotters::prelude::*;
use rayon::prelude::*;
use tarsia::facade::run_in_pool;

use crate::plot::png;
use crate::Result;

/// Largest width and height of the text in characters, and height over width of a character.
const TERMINAL: (usize, usize) = (72, 36);
const CHARACTER: f64 = 2.0;
/// Pixels of the longer side of the picture, and of its margin.
const SIDE: usize = 1024;
const MARGIN: usize = 16;
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

/// Draws the picture of a matrix and writes it as PNG.
pub fn plot<V: Sync, W: Write>(a: &OwnedCsr<V>, out: W) -> Result<()> {
    let ratio = ratio(a);
    let sides = (SIDE as f64 * ratio.min(1.0), SIDE as f64 * (1.0 / ratio).min(1.0));
    let (height, width) = (sides.0.round() as usize, sides.1.round() as usize);
    let grid = Grid::of(a, height, width)?;
    let (all_width, all_height) = (width + 2 * MARGIN, height + 2 * MARGIN);
    let mut pixels: Vec<u8> = crate::demo::products::zeros(3 * all_width * all_height)?;
    {
        let size = (all_width as u32, all_height as u32);
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        area.fill(&WHITE)?;
        let margin = MARGIN as i32;
        let frame = [(margin - 2, margin - 2), (margin + width as i32 + 1, margin + height as i32 + 1)];
        area.draw(&Rectangle::new(frame, RGBColor(128, 128, 128)))?;
        // A cell is a pixel, or several for a small matrix.
        let edge = |cell: usize, cells: usize, points: usize| margin + (cell * points / cells) as i32;
        for row in 0..grid.height {
            for col in 0..grid.width {
                let Some(level) = grid.level(row, col) else { continue };
                let (left, right) = (edge(col, grid.width, width), edge(col + 1, grid.width, width));
                let (top, bottom) = (edge(row, grid.height, height), edge(row + 1, grid.height, height));
                // A filled rectangle ends before its second corner.
                let corners = [(left, top), (right, bottom)];
                area.draw(&Rectangle::new(corners, colour(level).filled()))?;
            }
        }
        area.present()?;
    }
    Ok(png::write(BufWriter::new(out), (all_width as u32, all_height as u32), &pixels)?)
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
