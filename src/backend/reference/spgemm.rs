//! SpGEMM: a row of C is the sum of rows of op(B), accumulated in a dense row with a list of its columns.

use std::sync::Arc;

use super::arrays::{Indices, Values};
use super::entries::{Entry, Factor};
use super::number::{is_complex, scalar, stored, Number};
use super::tiles::{self, have_same_pattern, make, plain_of, write_offsets, Plain};
use super::{triplets, Reference};
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::{Error, Result};
use crate::matrix::tiles::{other_pattern, TileFactors, Tiles};
use crate::matrix::{SparseArrays, SparseMatrix, TileShape};
use crate::memory::{Buffer, Context};
use crate::operation::SpgemmBackend;
use crate::problem::SpgemmProblem;
use crate::select::{Choice, SpgemmInspection};
use crate::support::Types;
use crate::types::{Address, Operation};
use num_complex::Complex64;

impl SpgemmBackend for Reference {
    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        _choice: &Choice,
        _inspection: Option<SpgemmInspection>,
        factors: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        let [a, b] = factors;
        let plain =
            |tiles: &Option<Arc<Tiles>>, name| tiles.as_ref().map(|tiles| plain_of(tiles, name)).transpose();
        Ok(Box::new(Spgemm::build(cx, problem, [plain(a, "A")?, plain(b, "B")?])?))
    }

    fn make_tiles(&self, cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
        make(cx, a)
    }

    fn write_tiles(&self, cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
        tiles::write(cx, tiles, b)
    }
}

/// A plan for SpGEMM.
pub(super) struct Spgemm {
    types: Types,
    /// A, with its entries sorted by rows of op(A).
    a: Factor,
    b: Factor,
    /// For every entry of A, in the order of `a`: the range in `b` of the row of op(B) that it multiplies.
    partners: Buffer<[usize; 2]>,
    products: i64,
    /// CSR or CSC arrays of A and B, each if it is in tiles.
    plain: [Option<Arc<Plain>>; 2],
}

/// Reads a factor with its entries in the order of the rows of op, and within a row in the user's order.
fn by_rows(cx: &Context, a: &SparseMatrix, op: Operation, name: &str) -> Result<Factor> {
    let mut factor = Factor::read(cx, a, op, name)?;
    factor.entries.sort_unstable_by_key(|entry| (entry.place(op).0, entry.position));
    Ok(factor)
}

/// Returns the range [start, end) of the entries of one row.
fn row_of(factor: &Factor, row: usize) -> [usize; 2] {
    let row_of = |entry: &Entry| entry.place(factor.op).0;
    let start = factor.entries.partition_point(|entry| row_of(entry) < row);
    let end = factor.entries.partition_point(|entry| row_of(entry) <= row);
    [start, end]
}

/// The row of C that is being computed.
struct Row<N: Number> {
    /// Sum for every column, valid if `used` is 1.
    sums: Buffer<N>,
    /// 1 for the columns in which the row has entries, otherwise 0.
    used: Buffer<u8>,
    /// Columns in which the row has entries: the first `count` elements.
    touched: Buffer<usize>,
    count: usize,
}

impl<N: Number> Row<N> {
    fn new(cx: &Context, cols: usize) -> Result<Self> {
        Ok(Row {
            sums: Buffer::zeroed(&cx.allocator, cols)?,
            used: Buffer::zeroed(&cx.allocator, cols)?,
            touched: Buffer::zeroed(&cx.allocator, cols)?,
            count: 0,
        })
    }

    fn clear(&mut self) {
        for at in 0..self.count {
            self.used[self.touched[at]] = 0;
        }
        self.count = 0;
    }

    fn add(&mut self, col: usize, product: N) {
        if self.used[col] == 0 {
            self.used[col] = 1;
            self.sums[col] = N::ZERO;
            self.touched[self.count] = col;
            self.count += 1;
        }
        self.sums[col] += product;
    }

    /// Returns the columns, in the order of their first products, or ascending after a sort.
    fn columns(&self) -> &[usize] {
        &self.touched[..self.count]
    }

    fn sort(&mut self) {
        self.touched[..self.count].sort_unstable();
    }
}

impl Spgemm {
    /// Creates a plan, reading both patterns.
    pub(super) fn build(
        cx: &Context,
        problem: &SpgemmProblem,
        plain: [Option<Arc<Plain>>; 2],
    ) -> Result<Self> {
        let matrix = |given: &SparseMatrix, plain: &Option<Arc<Plain>>| {
            plain.as_ref().map_or(*given, |plain| plain.matrix)
        };
        let a = by_rows(cx, &matrix(&problem.a, &plain[0]), problem.op_a, "A")?;
        let b = by_rows(cx, &matrix(&problem.b, &plain[1]), problem.op_b, "B")?;
        let mut partners = Buffer::<[usize; 2]>::zeroed(&cx.allocator, a.entries.len())?;
        let mut products = 0_i64;
        for (entry, partner) in a.entries.iter().zip(partners.iter_mut()) {
            let [start, end] = row_of(&b, entry.place(a.op).1);
            *partner = [start, end];
            products = products.saturating_add((end - start) as i64);
        }
        Ok(Spgemm { types: problem.types, a, b, partners, products, plain })
    }

    /// Returns the rows and columns of C.
    fn shape(&self) -> (usize, usize) {
        (self.a.shape().0, self.b.shape().1)
    }

    /// Computes row `i` of C: each entry is the sum of `product` over its pairs of entries of A and B.
    fn make_row<N: Number>(&self, i: usize, row: &mut Row<N>, product: impl Fn(&Entry, &Entry) -> N) {
        row.clear();
        let [start, end] = row_of(&self.a, i);
        for (a, &[first, last]) in self.a.entries[start..end].iter().zip(&self.partners[start..end]) {
            for b in &self.b.entries[first..last] {
                row.add(b.place(self.b.op).1, product(a, b));
            }
        }
    }

    fn run<N: Number>(&self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let alpha: N = scalar("alpha", alpha, self.types.compute)?;
        let (rows, cols) = self.shape();
        let (m, by_columns) = match &c.arrays {
            SparseArrays::Csr(m) => (m, false),
            SparseArrays::Csc(m) => (m, true),
            _ => return Err(Error::unsupported("C: SpGEMM writes CSR and CSC")),
        };
        let mut row = Row::<N>::new(cx, cols)?;
        // Position of the next entry of each row (CSR) or column (CSC) of C. Entries are computed by rows,
        // and in each row by columns, so both formats get sorted.
        let mut next = Buffer::<usize>::zeroed(&cx.allocator, m.major as usize)?;
        for i in 0..rows {
            self.make_row(i, &mut row, |_, _| N::ZERO);
            for &j in row.columns() {
                next[if by_columns { j } else { i }] += 1;
            }
        }
        let total: usize = next.iter().sum();
        if total as i64 != m.nnz {
            return Err(Error::invalid("C", format!("it has room for {} entries, expected {total}", m.nnz)));
        }
        write_offsets("C", m, &mut next)?;

        // SAFETY: C's descriptor promises room for nnz indices, which nothing else accesses while this call
        // runs.
        let mut indices = unsafe { Indices::open_mut("C", m.indices, total, m.index_type)? };
        let mut values = Values::write("C", c)?;
        let sources = if alpha == N::ZERO { None } else { Some((self.a.values("A")?, self.b.values("B")?)) };
        for i in 0..rows {
            self.make_row(i, &mut row, |a, b| match &sources {
                Some((a_values, b_values)) => {
                    stored::<N>(a_values, a.position, self.a.op)
                        * stored::<N>(b_values, b.position, self.b.op)
                }
                None => N::ZERO,
            });
            row.sort();
            for &j in row.columns() {
                let (major, minor) = if by_columns { (j, i) } else { (i, j) };
                indices.set(next[major], minor as i64 + i64::from(m.base.code()))?;
                values.set(next[major], (alpha * row.sums[j]).value());
                next[major] += 1;
            }
        }
        Ok(())
    }
}

impl SpgemmExecutor for Spgemm {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let (rows, cols) = self.shape();
        let mut row = Row::<f64>::new(cx, cols)?;
        let mut nnz = 0;
        for i in 0..rows {
            self.make_row(i, &mut row, |_, _| 0.0);
            nnz += row.count as i64;
        }
        Ok(nnz)
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        if is_complex(self.types.compute) {
            self.run::<Complex64>(cx, alpha, c)
        } else {
            self.run::<f64>(cx, alpha, c)
        }
    }

    fn numeric_tiles(&mut self, cx: &Context, into: &Context, alpha: Address) -> Result<Tiles> {
        let (rows, cols) = self.shape();
        let (rows, cols, nnz) = (rows as i64, cols as i64, self.symbolic(cx)?);
        let shape = TileShape { rows, cols, nnz, tiles: 0, value_type: self.types.y, by_columns: false };
        let c = Plain::room(cx, &shape)?;
        self.numeric(cx, alpha, &c.matrix)?;
        make(into, &c.matrix)
    }

    fn update_tiles(&mut self, _cx: &Context, factors: &TileFactors) -> Result<()> {
        for (at, (tiles, name)) in factors.iter().zip(["A", "B"]).enumerate() {
            let Some(tiles) = tiles else {
                continue;
            };
            let renewed = plain_of(tiles, name)?;
            if !self.plain[at].as_ref().is_some_and(|plain| have_same_pattern(plain, &renewed)) {
                return Err(other_pattern(name));
            }
            (if at == 0 { &mut self.a } else { &mut self.b }).matrix = renewed.matrix;
            self.plain[at] = Some(renewed);
        }
        Ok(())
    }

    fn update_values(&mut self, _cx: &Context, a: Address, b: Address) -> Result<()> {
        if !a.is_null() {
            self.a.renew("A", a)?;
        }
        if !b.is_null() {
            self.b.renew("B", b)?;
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        triplets()
    }

    fn products(&self) -> i64 {
        self.products
    }
}
