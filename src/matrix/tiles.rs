//! Matrices in sparse tiles (src/format/tile.rs) that the library owns: tarsiaCreateTile makes them, products
//! fill them, and the next product reads them in place.
//!
//! Contents never change once they are made: filling a [`TileMatrix`] replaces its contents by new ones, and
//! a plan keeps those that it was made with until it is told to take others. Their memory is released with
//! their last owner. Each [`Contents`] has an allocator for its memory alone, which records the work of plans
//! that have given up the contents, so that the memory is released behind that work.

use std::any::Any;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::error::{refuse_if, require, Error, Result};
use crate::matrix::{check_not_negative, SparseArrays, SparseMatrix, TileShape};
use crate::memory::{Allocator, Buffer, Context};
use crate::types::{BackendKind, DataType, Index};

/// Contents of a matrix in tiles, in memory of the backend that made them.
pub struct Tiles {
    /// Properties that are known without reading the contents.
    pub shape: TileShape,
    /// Contents in the backend's own type.
    pub contents: Box<dyn Any + Send + Sync>,
}

impl Tiles {
    /// Returns a descriptor of the matrix, which has no arrays.
    pub fn matrix(&self) -> SparseMatrix {
        SparseMatrix { arrays: SparseArrays::Tile(self.shape), writable: true, temporary: false }
    }
}

/// A matrix in arrays that the library owns: CSR, or CSC if it is by columns, with 64-bit offsets and indices J.
#[derive(Debug)]
pub struct Plain<J: Index> {
    /// Descriptor of the arrays below.
    pub matrix: SparseMatrix,
    /// Offsets, in `matrix`.
    pub offsets: Buffer<i64>,
    /// Indices, in `matrix`.
    pub indices: Buffer<J>,
    /// The buffer owns the values of `matrix`.
    _values: Buffer<u64>,
}

impl<J: Index> Plain<J> {
    /// Allocates zeroed arrays for a matrix of this shape.
    pub fn room(cx: &Context, shape: &TileShape) -> Result<Self> {
        let major = if shape.by_columns { shape.cols } else { shape.rows };
        let offsets = Buffer::<i64>::zeroed(&cx.allocator, major as usize + 1)?;
        let indices = Buffer::<J>::zeroed(&cx.allocator, shape.nnz as usize)?;
        let words = (shape.nnz as usize).saturating_mul(shape.value_type.size()).div_ceil(8);
        let values = Buffer::<u64>::zeroed(&cx.allocator, words)?;
        let matrix = shape.in_arrays(offsets.address(), (indices.address(), J::TYPE), values.address());
        Ok(Plain { matrix, offsets, indices, _values: values })
    }
}

/// Tiles of the factors A and B of a product; `None` for a factor that is not in tiles.
pub type TileFactors = [Option<Arc<Tiles>>; 2];

/// Contents of a matrix, with the allocator that serves their memory alone.
#[derive(Clone)]
pub struct Contents {
    /// Tiles with their shape.
    pub tiles: Arc<Tiles>,
    /// Allocator of the tiles' memory.
    pub memory: Arc<Allocator>,
}

/// Matrix in tiles whose contents can be replaced.
pub struct TileMatrix {
    backend: BackendKind,
    device: i32,
    /// Shape while the matrix has no contents.
    empty: TileShape,
    contents: RwLock<Option<Contents>>,
}

impl TileMatrix {
    /// Creates an empty matrix for a device of a backend.
    pub fn new(
        (backend, device): (BackendKind, i32),
        (rows, cols): (i64, i64),
        value_type: DataType,
    ) -> Result<Self> {
        for (name, extent) in [("rows", rows), ("cols", cols)] {
            check_not_negative(name, extent)?;
            refuse_if!(
                i32::try_from(extent).is_err(),
                invalid(name),
                "{extent} is more than tiles can number (2^31 - 1)"
            );
        }
        if !matches!(value_type, DataType::R32F | DataType::R64F | DataType::C32F | DataType::C64F) {
            return Err(Error::unsupported(format!(
                "valueType: tiles have the type of sums, fp32, fp64, complex fp32 or complex fp64, not {}; matrices \
                 of half types become fp32",
                value_type.short()
            )));
        }
        let empty = TileShape { rows, cols, nnz: 0, tiles: 0, value_type, by_columns: false };
        Ok(TileMatrix { backend, device, empty, contents: RwLock::new(None) })
    }

    /// Returns the shape, with no entries where the matrix has no contents.
    pub fn shape(&self) -> TileShape {
        self.contents.read().as_ref().map_or(self.empty, |contents| contents.tiles.shape)
    }

    /// Returns the contents; `name` is the argument that errors name.
    pub fn contents(&self, name: &str) -> Result<Contents> {
        self.contents.read().clone().ok_or_else(|| {
            Error::state(format!(
                "{name}: nothing is in it yet; tarsiaSparseToTile and tarsiaSpGEMM_numeric fill a matrix in tiles"
            ))
        })
    }

    /// Replaces the contents by new ones of the same shape and type. `make` makes these in the memory of the
    /// context that it gets: `cx` with an allocator for them alone.
    pub fn fill(&self, cx: &Context, make: impl FnOnce(&Context) -> Result<Tiles>) -> Result<()> {
        let memory = cx.allocator.scoped(usize::MAX);
        let tiles = make(&Context { allocator: Arc::clone(&memory), ..cx.clone() })?;
        let TileShape { rows, cols, value_type, .. } = tiles.shape;
        if (rows, cols, value_type) != (self.empty.rows, self.empty.cols, self.empty.value_type) {
            return Err(Error::new(
                crate::error::Status::InternalError,
                format!("{rows} × {cols} tiles of {} for another matrix", value_type.short()),
            ));
        }
        // The old contents are dropped after the lock is released.
        let old = self.contents.write().replace(Contents { tiles: Arc::new(tiles), memory });
        drop(old);
        Ok(())
    }

    /// Returns an error if the matrix belongs to another backend or device.
    pub fn require_backend(&self, name: &str, backend: BackendKind, device: i32) -> Result<()> {
        require!(
            (self.backend, self.device) == (backend, device),
            invalid(name),
            "it is of {} device {}, the handle of {} device {device}",
            self.backend.c_name(),
            self.device,
            backend.c_name()
        );
        Ok(())
    }
}

/// Returns the `INVALID_VALUE` error for a plan that cannot take contents of another pattern.
pub fn other_pattern(name: &str) -> Error {
    Error::invalid(
        name,
        "its tiles have entries at other places than when the plan was made: make a new plan",
    )
}
