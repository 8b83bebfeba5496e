//! SpGEMM on the host, algorithm `tile`: C = alpha · op(A) · op(B) with sparse tiles of 16 × 16
//! (src/format/tile.rs), in the steps of Niu et al., TileSpGEMM (PPoPP 2022), section 3.3. A thread computes
//! rows of tiles. Where the paper intersects lists of tiles, a thread here has a table of the tile of C in
//! every column: it goes through A's tiles and the corresponding rows of tiles of B, so that entries of C add
//! their products in the order of A's row.
//!
//! build makes the tiles of A and B, or takes the user's (tiles.rs); symbolic computes the pattern of C's
//! tiles (steps 1 and 2); numeric computes its values, first in tiles (step 3), which may be the result, and
//! then copies them to the user's arrays.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::output::{self, Output, Staged, Target};
use super::tiles::{contents, count_products, TileFactor};
use super::{rows, Operands};
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::Result;
use crate::format::tile::{before, bits, cut, shares, TileLayout, TilePattern, TileSource, SIDE};
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::SparseMatrix;
use crate::memory::{self, pieces, pool, Allocator, Buffer, Context};
use crate::operation::not_counted;
use crate::problem::SpgemmProblem;
use crate::select::Choice;
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// The executor of algorithm `tile`.
pub struct HostTile<C: Combo> {
    problem: SpgemmProblem,
    a: TileFactor<C::A, C::Acc>,
    b: TileFactor<C::X, C::Acc>,
    /// True if the tiles are those of op(A)ᵀ and op(B)ᵀ, and the product is Cᵀ = op(B)ᵀ · op(A)ᵀ.
    transposed: bool,
    products: i64,
    product: Option<TileProduct>,
}

/// The pattern of C, which the symbolic phase computes.
struct TileProduct {
    pattern: Arc<TilePattern>,
    /// Offsets of C's rows.
    offsets: Buffer<i64>,
}

/// The two factors, as the source of the tiles of left · right.
struct Pairs<'a>(&'a TilePattern, &'a TilePattern);

impl Pairs<'_> {
    /// Returns the pairs of a tile of the left factor and a tile of the right factor that are multiplied for
    /// a row of tiles of C.
    fn of_row(&self, tile_row: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let Pairs(left, right) = self;
        let meets = |tile: usize| right.tiles(left.columns[tile] as usize).map(move |other| (tile, other));
        left.tiles(tile_row).flat_map(meets)
    }
}

impl TileSource for Pairs<'_> {
    fn weight(&self, tile_row: usize) -> usize {
        let Pairs(left, right) = self;
        left.tiles(tile_row).map(|tile| right.tiles(left.columns[tile] as usize).len()).sum()
    }

    fn for_each_column(&self, tile_row: usize, mut f: impl FnMut(usize)) {
        self.of_row(tile_row).for_each(|(_, other)| f(self.1.columns[other] as usize));
    }

    fn mark(&self, tile_row: usize, slots: &[u32], masks: &mut [u16]) {
        let Pairs(left, right) = self;
        for (tile, other) in self.of_row(tile_row) {
            let slot = slots[right.columns[other] as usize] as usize * SIDE;
            for (row, mask) in masks[slot..slot + SIDE].iter_mut().enumerate() {
                *mask |= bits(left.mask(tile, row)).fold(0, |all, k| all | right.mask(other, k));
            }
        }
    }
}

impl<C: Combo> HostTile<C> {
    /// Makes the tiles of the factors and counts the multiplications.
    pub fn new(cx: &Context, problem: SpgemmProblem, operands: Operands<C>) -> Result<Self> {
        let (left, right) = operands.factors()?;
        let (_, products) = rows::count_products(cx, &left, &right)?;
        let Operands { a, b, transposed } = operands;
        let a = TileFactor::of_operand(cx, a, problem.op_a, "A")?;
        let b = TileFactor::of_operand(cx, b, problem.op_b, "B")?;
        Ok(HostTile { problem, a, b, transposed, products, product: None })
    }

    /// Creates the executor if A or B is in tiles.
    pub fn of_tiles(
        cx: &Context,
        problem: SpgemmProblem,
        choice: &Choice,
        [a, b]: &TileFactors,
    ) -> Result<Self> {
        let keep = problem.value_updates;
        let (of_a, of_b) = ((&problem.a, problem.op_a, choice.a), (&problem.b, problem.op_b, choice.b));
        let a = TileFactor::new(cx, a.as_deref(), of_a, keep, "A")?;
        let b = TileFactor::new(cx, b.as_deref(), of_b, keep, "B")?;
        let mut tile =
            HostTile { problem, a, b, transposed: choice.method.is_transposed(), products: 0, product: None };
        let (left, right) = tile.factors();
        tile.products = count_products(cx, &left.pattern, &right.pattern)?;
        Ok(tile)
    }

    /// Returns the left and the right factor.
    fn factors(&self) -> (&TileLayout<C::Acc>, &TileLayout<C::Acc>) {
        if self.transposed {
            (&self.b, &self.a)
        } else {
            (&self.a, &self.b)
        }
    }

    /// Computes the values of C, tile by tile (step 3 of the paper).
    fn multiply(
        &self,
        cx: &Context,
        into: &Arc<Allocator>,
        alpha: C::Acc,
        product: &TilePattern,
    ) -> Result<Buffer<C::Acc>> {
        let mut values = Buffer::<C::Acc>::zeroed(into, product.nnz())?;
        if alpha == C::Acc::ZERO {
            return Ok(values);
        }
        let (left, right) = self.factors();
        let pairs = Pairs(&left.pattern, &right.pattern);
        product.fill_rows(
            &cx.allocator,
            &mut values,
            |row| pairs.weight(row),
            |row, tiles_of, sums| {
                let shift = product.entries(row).start;
                for (tile, other) in pairs.of_row(row) {
                    let to = tiles_of[right.pattern.columns[other] as usize] as usize;
                    for row in 0..SIDE {
                        let (mask, first) = (product.mask(to, row), product.position(to, row) - shift);
                        let sums = &mut sums[first..first + mask.count_ones() as usize];
                        multiply_row((left, tile, row), (right, other), mask, sums);
                    }
                }
                sums.iter_mut().for_each(|sum| *sum = alpha * *sum);
            },
        )?;
        Ok(values)
    }

    /// Runs the numeric phase.
    fn write(&self, cx: &Context, alpha: Address, c: &SparseMatrix, product: &TileProduct) -> Result<()> {
        let TileProduct { pattern, offsets } = product;
        let target = Target::check(c, "C", shape_of(pattern, self.transposed), self.problem.types.y)?;
        // SAFETY: alpha points to a scalar of the compute type in host memory.
        let alpha: C::Acc = unsafe { memory::read_scalar("alpha", alpha)? };
        let values = self.multiply(cx, &cx.allocator, alpha, pattern)?;
        store::<C::Acc, C::Y>(cx, (pattern, offsets), values, self.transposed, &target)
    }
}

/// Returns the rows, columns and entries of a matrix in tiles, or with `transposed` those of its transpose.
pub fn shape_of(pattern: &TilePattern, transposed: bool) -> (usize, usize, i64) {
    let (rows, cols) = (pattern.row_count, pattern.col_count);
    let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
    (rows, cols, pattern.nnz() as i64)
}

/// Writes tiles into a matrix in CSR or CSC of their shape; `offsets` are those of their rows. `values` are
/// freed as soon as they have been copied.
pub fn store<T: Accumulator, Y: Storage<T>>(
    cx: &Context,
    (pattern, offsets): (&TilePattern, &[i64]),
    values: impl Deref<Target = [T]>,
    transposed: bool,
    c: &Target,
) -> Result<()> {
    if c.takes_rows(transposed) {
        // SAFETY: C has been checked, and its owner does not access it while the call runs.
        return unsafe {
            let out = Output::<i32, Y>::direct(c)?;
            copy_rows(cx, pattern, offsets, &values, &out)?;
            output::write_offsets(c, offsets)
        };
    }
    let mut columns = Buffer::<i32>::zeroed(&cx.allocator, pattern.nnz())?;
    let mut staged = Buffer::<Y>::zeroed(&cx.allocator, pattern.nnz())?;
    let mut starts = c.starts(cx)?;
    copy_rows(cx, pattern, offsets, &values, &Output::staging(Some(&mut columns), &mut staged))?;
    drop(values);
    let staged = Staged { offsets, columns: output::Rows::Plain(&columns), values: &staged };
    // SAFETY: as for `Output::direct` above.
    unsafe { staged.transpose_into(c, &mut starts, pool::size()) }
}

/// Adds the products of one row of a tile of the left factor with a tile of the right one to the sums of that
/// row of a tile of C, whose columns are `mask`.
#[inline(always)]
fn multiply_row<T: Accumulator>(
    (left, tile, row): (&TileLayout<T>, usize, usize),
    (right, other): (&TileLayout<T>, usize),
    mask: u16,
    sums: &mut [T],
) {
    let first = left.pattern.position(tile, row);
    for (i, k) in bits(left.pattern.mask(tile, row)).enumerate() {
        let factor = left.values[first + i];
        let met = right.pattern.mask(other, k);
        let from = right.pattern.position(other, k);
        let values = &right.values[from..from + met.count_ones() as usize];
        if met == mask {
            // The row has exactly the columns of C, so no position is computed.
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += factor * *value;
            }
        } else {
            for (column, value) in bits(met).zip(values) {
                sums[before(mask, column)] += factor * *value;
            }
        }
    }
}

/// Writes the columns and values of C by rows.
fn copy_rows<T: Accumulator, Y: Storage<T>>(
    cx: &Context,
    pattern: &TilePattern,
    offsets: &[i64],
    values: &[T],
    out: &Output<i32, Y>,
) -> Result<()> {
    let shares = shares(pattern.tile_rows(), |row| pattern.entries(row).len());
    let longest = offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
    let mut lists = Buffer::<i32>::zeroed(&cx.allocator, longest.saturating_mul(shares.len()))?;
    let mut rest = &mut lists[..];
    let part = |range: &Range<usize>| (range.clone(), cut(&mut rest, longest));
    let mut parts: Vec<_> = shares.iter().map(part).collect();
    pieces::for_each(pieces::each(&mut parts), |_, (range, list)| {
        for row in range.start * SIDE..(range.end * SIDE).min(pattern.row_count) {
            let own = offsets[row] as usize..offsets[row + 1] as usize;
            let list = &mut list[..own.len()];
            let mut at = 0;
            pattern.for_each_of_row(row, |column, _| {
                list[at] = column as i32;
                at += 1;
            });
            // SAFETY: each row is in one part, which one thread has, and the ranges of rows are disjoint; the
            // creator of the output keeps its arrays borrowed.
            let to = unsafe { out.row(own, list) };
            let mut at = 0;
            pattern.for_each_of_row(row, |_, position| {
                to[at] = Y::round(values[position]);
                at += 1;
            });
        }
    });
    Ok(())
}

impl<C: Combo> SpgemmExecutor for HostTile<C> {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        if self.product.is_none() {
            let (left, right) = self.factors();
            let (left, right) = (&*left.pattern, &*right.pattern);
            let shape = (left.row_count, right.col_count);
            let pattern = TilePattern::build(&cx.allocator, shape, &Pairs(left, right))?;
            let offsets = pattern.row_offsets(&cx.allocator)?;
            self.product = Some(TileProduct { pattern: Arc::new(pattern), offsets });
        }
        Ok(self.product.as_ref().map_or(0, |product| product.pattern.nnz() as i64))
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        self.write(cx, alpha, c, self.product.as_ref().ok_or_else(not_counted)?)
    }

    fn numeric_tiles(&mut self, cx: &Context, into: &Context, alpha: Address) -> Result<Tiles> {
        let TileProduct { pattern, .. } = self.product.as_ref().ok_or_else(not_counted)?;
        // SAFETY: alpha points to a scalar of the compute type in host memory.
        let alpha: C::Acc = unsafe { memory::read_scalar("alpha", alpha)? };
        let values = self.multiply(cx, &into.allocator, alpha, pattern)?;
        let layout = TileLayout { pattern: Arc::clone(pattern), values };
        Ok(contents(Arc::new(layout), self.transposed))
    }

    /// Updates A's values first: if B's fail (out of memory), A's new ones stay, and the call can be
    /// repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        if !a.is_null() {
            let renewed = self.problem.a.with_values(a);
            self.a.update_values(cx, &renewed)?;
            self.problem.a = renewed;
        }
        if !b.is_null() {
            let renewed = self.problem.b.with_values(b);
            self.b.update_values(cx, &renewed)?;
            self.problem.b = renewed;
        }
        Ok(())
    }

    fn update_tiles(&mut self, cx: &Context, [a, b]: &TileFactors) -> Result<()> {
        if let Some(tiles) = a {
            self.a.update_tiles(cx, tiles)?;
        }
        if let Some(tiles) = b {
            self.b.update_tiles(cx, tiles)?;
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let in_place = self.a.in_place() && self.b.in_place();
        LayoutInfo { kind: LayoutKind::Tile, in_place, fill: 1.0 }
    }

    fn products(&self) -> i64 {
        self.products
    }
}
