//! Matrices in sparse tiles in host memory (src/matrix/tiles.rs): conversion from and to CSR and CSC, and
//! factors of algorithm `tile`.

use std::ops::Deref;
use std::sync::Arc;

use super::output::Target;
use super::tile::{shape_of, store};
use crate::backend::host::operand::Operand;
use crate::error::{Error, Result};
use crate::format::tile::{bits, TileLayout, TilePattern, SIDE};
use crate::matrix::tiles::{other_pattern, Plain, Tiles};
use crate::matrix::{SparseMatrix, TileShape};
use crate::memory::Context;
use crate::operation::too_many_products;
use crate::select::Source;
use crate::support::{dispatch_spgemm, Combo, ComboVisitor, Types};
use crate::types::{Accumulator, ComputeType, DataType, Element, Format, Operation, Storage};

/// Returns the types of a product of matrices with these values.
fn types_of(a: DataType) -> Types {
    let compute = match a {
        DataType::R64F => ComputeType::R64F,
        DataType::C32F => ComputeType::C32F,
        DataType::C64F => ComputeType::C64F,
        _ => ComputeType::R32F,
    };
    Types { a, x: a, y: compute.scalar(), compute }
}

/// Checks that rows and columns can be numbered by 31 bits.
fn check_shape(rows: usize, cols: usize, name: &str) -> Result<()> {
    let most = rows.max(cols);
    if i32::try_from(most).is_ok() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{name}: algorithm tile takes less than 2^31 rows and columns, not {most}"
    )))
}

/// Wraps a layout, or with `by_columns` that of the transpose, as the contents of a matrix in tiles.
pub fn contents<T: Accumulator>(layout: Arc<TileLayout<T>>, by_columns: bool) -> Tiles {
    let pattern = &layout.pattern;
    let (rows, cols) = (pattern.row_count as i64, pattern.col_count as i64);
    let (rows, cols) = if by_columns { (cols, rows) } else { (rows, cols) };
    let (nnz, tiles) = (pattern.nnz() as i64, pattern.columns.len() as i64);
    let shape = TileShape { rows, cols, nnz, tiles, value_type: <T as Element>::TYPE, by_columns };
    Tiles { shape, contents: Box::new(layout) }
}

/// Returns the layout in the contents of a matrix in tiles.
pub fn layout_of<T: Accumulator>(tiles: &Tiles, name: &str) -> Result<Arc<TileLayout<T>>> {
    tiles
        .contents
        .downcast_ref::<Arc<TileLayout<T>>>()
        .map(Arc::clone)
        .ok_or_else(|| Error::invalid(name, "its tiles are of another type or backend than the plan's"))
}

/// Implements [`crate::backend::Backend::make_tiles`].
pub fn make(cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
    struct Make<'a>(&'a Context, &'a SparseMatrix);
    impl ComboVisitor for Make<'_> {
        type Output = Tiles;
        fn visit<C: Combo>(self) -> Result<Tiles> {
            let Make(cx, a) = self;
            let operand =
                Operand::<C::A>::build(cx, a, Operation::NonTranspose, Source::InPlace, "A", false)?;
            let layout = build::<C::A, C::Acc>(cx, &operand, "A")?;
            Ok(contents(Arc::new(layout), a.format() == Format::Csc))
        }
    }
    dispatch_spgemm(types_of(a.value_type()), Make(cx, a))
}

/// Implements [`crate::backend::Backend::write_tiles`].
pub fn write(cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
    struct Write<'a>(&'a Context, &'a Tiles, &'a SparseMatrix);
    impl ComboVisitor for Write<'_> {
        type Output = ();
        fn visit<C: Combo>(self) -> Result<()> {
            let Write(cx, tiles, b) = self;
            let layout = layout_of::<C::Acc>(tiles, "A")?;
            let offsets = layout.pattern.row_offsets(&cx.allocator)?;
            let by_columns = tiles.shape.by_columns;
            let shape = shape_of(&layout.pattern, by_columns);
            let target = Target::check(b, "B", shape, <C::Y as Element>::TYPE)?;
            store::<C::Acc, C::Y>(cx, (&layout.pattern, &offsets), &layout.values[..], by_columns, &target)
        }
    }
    dispatch_spgemm(types_of(tiles.shape.value_type), Write(cx, tiles, b))
}

/// Converts a matrix in tiles to CSR, or to CSC if it is by columns, in memory of the call's allocator.
fn plain(cx: &Context, tiles: &Tiles) -> Result<Plain<i32>> {
    let room = Plain::room(cx, &tiles.shape)?;
    write(cx, tiles, &room.matrix)?;
    Ok(room)
}

fn build<V: Storage<T>, T: Accumulator>(
    cx: &Context,
    operand: &Operand<V>,
    name: &str,
) -> Result<TileLayout<T>> {
    operand.with_plain(cx, name, |rows| {
        check_shape(rows.pattern.major, rows.pattern.minor, name)?;
        TileLayout::build(&cx.allocator, &rows.pattern, rows.values)
    })
}

/// The tiles of a factor, by who owns them.
enum FactorTiles<T: Accumulator> {
    /// The plan's own copy.
    Plan(TileLayout<T>),
    /// The user's tiles, in place.
    Shared(Arc<TileLayout<T>>),
}

/// A factor of algorithm `tile`: the tiles of op(A) or, if columns of C are computed, of its transpose.
pub struct TileFactor<V: Element, T: Accumulator> {
    name: &'static str,
    op: Operation,
    tiles: FactorTiles<T>,
    /// Operand from which the tiles are made; `None` if A is in tiles.
    operand: Option<Operand<V>>,
    /// The pattern of A if it is in tiles.
    pattern: Option<Arc<TilePattern>>,
}

impl<V: Storage<T>, T: Accumulator> TileFactor<V, T> {
    /// Creates a factor from the user's tiles, or without these from the rows of op(A).
    pub fn new(
        cx: &Context,
        tiles: Option<&Tiles>,
        (a, op, source): (&SparseMatrix, Operation, Source),
        keep_positions: bool,
        name: &'static str,
    ) -> Result<Self> {
        match tiles {
            Some(tiles) => Self::of_tiles(cx, tiles, op, source == Source::InPlace, name),
            None => {
                let operand = Operand::build(cx, a, op, source, name, keep_positions)?;
                Self::of_operand(cx, operand, op, name)
            }
        }
    }

    /// Creates the factor from an operand.
    pub fn of_operand(cx: &Context, operand: Operand<V>, op: Operation, name: &'static str) -> Result<Self> {
        let tiles = FactorTiles::Plan(build(cx, &operand, name)?);
        Ok(TileFactor { name, op, tiles, operand: Some(operand), pattern: None })
    }

    /// Creates the factor from tiles, which are shared if `in_place` and otherwise copied.
    fn of_tiles(
        cx: &Context,
        tiles: &Tiles,
        op: Operation,
        in_place: bool,
        name: &'static str,
    ) -> Result<Self> {
        let layout = layout_of::<T>(tiles, name)?;
        let pattern = Some(Arc::clone(&layout.pattern));
        let tiles = if in_place {
            FactorTiles::Shared(layout)
        } else {
            let plain = plain(cx, tiles)?;
            // Values of tiles have the type of the sums, and for a matrix in tiles that is also V.
            let rows = Operand::<V>::build(cx, &plain.matrix, op, Source::Canonical, name, false)?;
            FactorTiles::Plan(build(cx, &rows, name)?)
        };
        Ok(TileFactor { name, op, tiles, operand: None, pattern })
    }

    /// Returns whether the user's tiles are read without a copy.
    pub fn in_place(&self) -> bool {
        matches!(self.tiles, FactorTiles::Shared(_))
    }

    /// Takes new values; `a` is the matrix with its values at the new address.
    pub fn update_values(&mut self, cx: &Context, a: &SparseMatrix) -> Result<()> {
        let (Some(operand), FactorTiles::Plan(layout)) = (&mut self.operand, &mut self.tiles) else {
            return Err(Error::invalid(self.name, "it is in tiles and takes no array of values"));
        };
        operand.update_values(cx, a, self.op, self.name)?;
        operand.with_plain(cx, self.name, |rows| layout.refill(&cx.allocator, &rows.pattern, rows.values))
    }

    /// Takes new contents of the matrix in tiles, which must have the same pattern.
    pub fn update_tiles(&mut self, cx: &Context, tiles: &Tiles) -> Result<()> {
        let layout = layout_of::<T>(tiles, self.name)?;
        let same = |of: &Arc<TilePattern>| {
            Arc::ptr_eq(of, &layout.pattern)
                || ((of.row_count, of.col_count) == (layout.pattern.row_count, layout.pattern.col_count)
                    && of.rows[..] == layout.pattern.rows[..]
                    && of.columns[..] == layout.pattern.columns[..]
                    && of.masks[..] == layout.pattern.masks[..])
        };
        if !self.pattern.as_ref().is_some_and(same) {
            return Err(other_pattern(self.name));
        }
        *self = Self::of_tiles(cx, tiles, self.op, self.in_place(), self.name)?;
        Ok(())
    }
}

impl<V: Element, T: Accumulator> Deref for TileFactor<V, T> {
    type Target = TileLayout<T>;
    fn deref(&self) -> &TileLayout<T> {
        match &self.tiles {
            FactorTiles::Plan(layout) => layout,
            FactorTiles::Shared(layout) => layout,
        }
    }
}

/// Returns the number of multiplications of entries of `left` with entries of `right`.
pub fn count_products(cx: &Context, left: &TilePattern, right: &TilePattern) -> Result<i64> {
    let offsets = right.row_offsets(&cx.allocator)?;
    let mut products = 0_i64;
    for (tile, &column) in left.columns.iter().enumerate() {
        for row in 0..SIDE {
            for inner in bits(left.mask(tile, row)) {
                let k = column as usize * SIDE + inner;
                products = products.checked_add(offsets[k + 1] - offsets[k]).ok_or_else(too_many_products)?;
            }
        }
    }
    Ok(products)
}
