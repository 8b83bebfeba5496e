//! Sparse patterns in every format, index width and base, with the arrays that a user would pass, and the
//! decoder by which the naive loops read them.

use std::ops::Range;

use bytemuck::Pod;
use client::{Session, Sparse, View};
use tarsia::facade::{BackendKind, Element, Format, Index, IndexBase, IndexType, Order};

use super::staged::{Operand, Staged};
use super::Outcome;

/// Offsets or indices of either width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ints {
    /// 32 bits.
    I32(Vec<i32>),
    /// 64 bits.
    I64(Vec<i64>),
}

impl Ints {
    /// Stores numbers in this width.
    pub fn new(width: IndexType, numbers: impl IntoIterator<Item = i64>) -> Self {
        let numbers = numbers.into_iter();
        match width {
            IndexType::I32 => Ints::I32(numbers.map(|n| i32::try_from(n).expect("fits 32 bits")).collect()),
            IndexType::I64 => Ints::I64(numbers.collect()),
            IndexType::U16 => unreachable!("no user array has 16 bits"),
        }
    }

    /// Returns the number at a position.
    pub fn get(&self, at: usize) -> i64 {
        match self {
            Ints::I32(numbers) => i64::from(numbers[at]),
            Ints::I64(numbers) => numbers[at],
        }
    }

    /// Returns the count of numbers.
    pub fn len(&self) -> usize {
        match self {
            Ints::I32(numbers) => numbers.len(),
            Ints::I64(numbers) => numbers.len(),
        }
    }

    /// Returns all numbers.
    pub fn to_vec(&self) -> Vec<i64> {
        (0..self.len()).map(|at| self.get(at)).collect()
    }
}

/// Combination of offset and index types that the library accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// Offsets and indices of 32 bits.
    Narrow,
    /// Offsets of 64 bits, indices of 32.
    Mixed,
    /// Offsets and indices of 64 bits.
    Wide,
}

impl Widths {
    /// All combinations.
    pub const ALL: [Widths; 3] = [Widths::Narrow, Widths::Mixed, Widths::Wide];

    /// Returns the type of offsets.
    pub fn offset(self) -> IndexType {
        match self {
            Widths::Narrow => i32::TYPE,
            Widths::Mixed | Widths::Wide => i64::TYPE,
        }
    }

    /// Returns the type of indices.
    pub fn index(self) -> IndexType {
        match self {
            Widths::Narrow | Widths::Mixed => i32::TYPE,
            Widths::Wide => i64::TYPE,
        }
    }
}

/// Format of a pattern, with index types, base and blocks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Format.
    pub format: Format,
    /// Widths of offsets and indices (COO: of indices).
    pub widths: Widths,
    /// Index base.
    pub base: IndexBase,
    /// Rows and columns of a block of BSR.
    pub block: (usize, usize),
    /// Order inside a block of BSR.
    pub block_order: Order,
}

impl Style {
    /// CSR with 32-bit numbers and base 0.
    pub const PLAIN: Style = Style {
        format: Format::Csr,
        widths: Widths::Narrow,
        base: IndexBase::Zero,
        block: (1, 1),
        block_order: Order::Row,
    };
}

/// Pattern of a sparse matrix, with its arrays.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Format, index types and base.
    pub style: Style,
    /// Number of rows, in scalars.
    pub rows: usize,
    /// Number of columns, in scalars.
    pub cols: usize,
    /// Offsets (COO: row indices).
    pub outer: Ints,
    /// Column indices (CSC: row indices; BSR: block columns).
    pub inner: Ints,
}

impl Pattern {
    /// Stores entries at these (row, column) places, in this order if the format prescribes none. For BSR,
    /// shape and places are those of blocks.
    pub fn new(style: Style, (rows, cols): (usize, usize), places: &[(usize, usize)]) -> Self {
        let base = i64::from(style.base.code());
        let (offset, index) = (style.widths.offset(), style.widths.index());
        let compress = |extent: usize, places: &[(usize, usize)]| {
            let mut sorted = places.to_vec();
            sorted.sort_by_key(|place| place.0);
            let mut offsets = vec![base; extent + 1];
            for &(outer, _) in places {
                offsets[outer + 1] += 1;
            }
            for at in 1..=extent {
                offsets[at] += offsets[at - 1] - base;
            }
            let inner = sorted.iter().map(|place| place.1 as i64 + base);
            (Ints::new(offset, offsets), Ints::new(index, inner))
        };
        let (outer, inner) = match style.format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr | Format::Bsr => compress(rows, places),
            Format::Csc => {
                let swapped: Vec<_> = places.iter().map(|&(row, col)| (col, row)).collect();
                compress(cols, &swapped)
            }
            Format::Coo => (
                Ints::new(index, places.iter().map(|place| place.0 as i64 + base)),
                Ints::new(index, places.iter().map(|place| place.1 as i64 + base)),
            ),
        };
        let (height, width) = if style.format == Format::Bsr { style.block } else { (1, 1) };
        Pattern { style, rows: rows * height, cols: cols * width, outer, inner }
    }

    /// Returns (row, column) of every stored value, in the order of the value array.
    pub fn entries(&self) -> Vec<(usize, usize)> {
        let base = i64::from(self.style.base.code());
        let number = |ints: &Ints, at: usize| (ints.get(at) - base) as usize;
        let compressed = || {
            let offsets = 0..self.outer.len().saturating_sub(1);
            offsets.flat_map(|outer| {
                let range = number(&self.outer, outer)..number(&self.outer, outer + 1);
                range.map(move |position| (outer, number(&self.inner, position)))
            })
        };
        match self.style.format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr => compressed().collect(),
            Format::Csc => compressed().map(|(col, row)| (row, col)).collect(),
            Format::Coo => {
                let positions = 0..self.inner.len();
                positions.map(|at| (number(&self.outer, at), number(&self.inner, at))).collect()
            }
            Format::Bsr => {
                let (height, width) = self.style.block;
                let inside = |at: usize| match self.style.block_order {
                    Order::Row => (at / width, at % width),
                    Order::Col => (at % height, at / height),
                };
                let of_block = |(row, col): (usize, usize)| {
                    (0..height * width)
                        .map(move |at| (row * height + inside(at).0, col * width + inside(at).1))
                };
                compressed().flat_map(of_block).collect()
            }
        }
    }

    /// Converts the matrix to CSR, with the entries of a row in the order in which they are stored.
    pub fn to_csr<V: Copy>(&self, values: &[V]) -> (Pattern, Vec<V>) {
        let entries = self.entries();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| entries[at].0);
        let style = Style { format: Format::Csr, ..self.style };
        let pattern = Pattern::new(style, (self.rows, self.cols), &entries);
        (pattern, order.into_iter().map(|at| values[at]).collect())
    }

    /// Copies the arrays, with these values, to a backend's memory.
    pub fn store<V: Operand + ?Sized>(&self, kind: BackendKind, values: &V) -> Stored<V::Item> {
        let stage = |ints: &Ints| match ints {
            Ints::I32(numbers) => StagedInts::I32(Staged::new(kind, numbers)),
            Ints::I64(numbers) => StagedInts::I64(Staged::new(kind, numbers)),
        };
        let (outer, inner) = (stage(&self.outer), stage(&self.inner));
        let shape = (self.rows as i64, self.cols as i64);
        Stored { style: self.style, shape, outer, inner, values: values.stage(kind), range: values.range() }
    }
}

enum StagedInts {
    I32(Staged<i32>),
    I64(Staged<i64>),
}

impl StagedInts {
    fn spoil(&self, session: &Session) {
        match self {
            StagedInts::I32(array) => array.spoil(session),
            StagedInts::I64(array) => array.spoil(session),
        }
    }
}

/// Sparse matrix in a backend's memory.
pub struct Stored<V: Pod> {
    style: Style,
    shape: (i64, i64),
    outer: StagedInts,
    inner: StagedInts,
    values: Staged<V>,
    /// Range of the values in their memory.
    range: Range<usize>,
}

impl<V: Element> Stored<V> {
    /// Creates the library's descriptor.
    pub fn open(&self) -> Outcome<Sparse<'_>> {
        let is_coo = self.style.format == Format::Coo;
        match (&self.outer, &self.inner) {
            (StagedInts::I32(row), StagedInts::I32(col)) if is_coo => self.describe_coo(row, col),
            (StagedInts::I64(row), StagedInts::I64(col)) if is_coo => self.describe_coo(row, col),
            (StagedInts::I32(outer), StagedInts::I32(inner)) => self.describe(outer, inner),
            (StagedInts::I64(outer), StagedInts::I32(inner)) => self.describe(outer, inner),
            (StagedInts::I64(outer), StagedInts::I64(inner)) => self.describe(outer, inner),
            (StagedInts::I32(_), StagedInts::I64(_)) => Err("32-bit offsets with 64-bit indices".into()),
        }
    }

    /// Overwrites all three arrays with bytes of 0xff, as a caller may who no longer needs them.
    pub fn spoil(&self, session: &Session) {
        self.outer.spoil(session);
        self.inner.spoil(session);
        self.values.spoil(session);
    }

    /// Returns the address of the offsets (COO: of the row indices).
    pub fn offsets_address(&self) -> *const libc::c_void {
        match &self.outer {
            StagedInts::I32(array) => array.view().as_ptr().cast(),
            StagedInts::I64(array) => array.view().as_ptr().cast(),
        }
    }

    /// Returns the array of values.
    pub fn values(&self) -> View<'_, V> {
        self.values.part(self.range.clone())
    }

    fn describe_coo<'a, J: Index>(&'a self, row: &'a Staged<J>, col: &'a Staged<J>) -> Outcome<Sparse<'a>> {
        Ok(Sparse::coo(self.shape, row.view(), col.view(), self.values(), self.style.base)?)
    }

    fn describe<'a, I: Index, J: Index>(
        &'a self,
        outer: &'a Staged<I>,
        inner: &'a Staged<J>,
    ) -> Outcome<Sparse<'a>> {
        let (shape, base) = (self.shape, self.style.base);
        let (offsets, indices, values) = (outer.view(), inner.view(), self.values());
        Ok(match self.style.format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr => Sparse::csr(shape, offsets, indices, values, base)?,
            Format::Csc => Sparse::csc(shape, offsets, indices, values, base)?,
            Format::Coo => return Err("COO with indices of two types".into()),
            Format::Bsr => {
                let block = (self.style.block.0 as i64, self.style.block.1 as i64);
                let shape = (shape.0 / block.0, shape.1 / block.1);
                Sparse::bsr(shape, block, offsets, indices, values, base, self.style.block_order)?
            }
        })
    }
}
