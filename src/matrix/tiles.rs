//! Matrices in sparse tiles (src/format/tile.rs) that the library owns: what
//! tarsiaCreateTile makes, products fill, and the next product reads in place.
//!
//! Contents are never changed once they are made: what fills a [`TileMatrix`] puts new ones in
//! their place, and a plan keeps those that it was made with until it is told to take others.
//! Their memory goes with the last that has them. An allocator that is theirs alone ([`Contents`])
//! remembers the work of the plans that have let go of them, so that it goes behind that work.

use std::any::Any;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::matrix::{check_not_negative, SparseArrays, SparseMatrix, TileShape};
use crate::memory::{Allocator, Context};
use crate::types::{BackendKind, DataType};

/// Contents, in memory of the backend that made them.
pub struct Tiles {
    /// What is known of them without a look.
    pub shape: TileShape,
    /// The backend's own type.
    pub contents: Box<dyn Any + Send + Sync>,
}

impl Tiles {
    /// Its descriptor, of a matrix without arrays.
    pub fn matrix(&self) -> SparseMatrix {
        SparseMatrix { arrays: SparseArrays::Tile(self.shape), writable: true, temporary: false }
    }
}

/// The tiles of A and B of a product, of those that are in tiles.
pub type TileFactors = [Option<Arc<Tiles>>; 2];

/// The contents of a matrix, with the allocator of their memory, which has no other.
#[derive(Clone)]
pub struct Contents {
    /// The contents.
    pub tiles: Arc<Tiles>,
    /// Where their memory comes from.
    pub memory: Arc<Allocator>,
}

/// A matrix whose contents come and go.
pub struct TileMatrix {
    backend: BackendKind,
    device: i32,
    /// The shape while nothing is in it.
    empty: TileShape,
    contents: RwLock<Option<Contents>>,
}

impl TileMatrix {
    /// One of a device of a backend, with nothing in it.
    pub fn new(
        (backend, device): (BackendKind, i32),
        (rows, cols): (i64, i64),
        value_type: DataType,
    ) -> Result<Self> {
        for (name, extent) in [("rows", rows), ("cols", cols)] {
            check_not_negative(name, extent)?;
            if i32::try_from(extent).is_err() {
                return Err(Error::invalid(
                    name,
                    format!("{extent} is more than tiles can number (2^31 - 1)"),
                ));
            }
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

    /// What is known without a look; no entries where nothing is in it.
    pub fn shape(&self) -> TileShape {
        self.contents.read().as_ref().map_or(self.empty, |contents| contents.tiles.shape)
    }

    /// The contents; `name` is the argument that errors name.
    pub fn contents(&self, name: &str) -> Result<Contents> {
        self.contents.read().clone().ok_or_else(|| {
            Error::state(format!(
                "{name}: nothing is in it yet; tarsiaSparseToTile and tarsiaSpGEMM_numeric fill a matrix in tiles"
            ))
        })
    }

    /// Puts others in, of the same shape and type, which `make` makes in the memory of the context that it gets:
    /// `cx` with an allocator for them alone.
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
        // The old ones go after the lock.
        let old = self.contents.write().replace(Contents { tiles: Arc::new(tiles), memory });
        drop(old);
        Ok(())
    }

    /// It must be of this backend and device.
    pub fn require_backend(&self, name: &str, backend: BackendKind, device: i32) -> Result<()> {
        if (self.backend, self.device) == (backend, device) {
            return Ok(());
        }
        Err(Error::invalid(
            name,
            format!(
                "it is of {} device {}, the handle of {} device {device}",
                self.backend.c_name(),
                self.device,
                backend.c_name()
            ),
        ))
    }
}

/// `INVALID_VALUE`: a plan cannot take these contents.
pub fn other_pattern(name: &str) -> Error {
    Error::invalid(
        name,
        "its tiles have entries at other places than when the plan was made: make a new plan",
    )
}
