//! Matrices in tiles.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use super::array::Place;
use super::{arg, check, Plan, Scalar, Session, Sparse};
use tarsia::capi::enums::{tarsiaDataType_t, CEnum};
use tarsia::capi::{spgemm, tile};
use tarsia::facade::{DataType, Error, Result};

/// Answers of `tarsiaTileGet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileInfo {
    /// Rows.
    pub rows: i64,
    /// Columns.
    pub cols: i64,
    /// Stored entries.
    pub nnz: i64,
    /// Number of tiles that have at least one entry.
    pub tiles: i64,
    /// Type of the values.
    pub value_type: DataType,
}

impl Sparse<'static> {
    /// Calls `tarsiaCreateTile`.
    pub fn tile(session: &Session, (rows, cols): (i64, i64), value_type: DataType) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the answer is valid for a write.
        check(unsafe { tile::tarsiaCreateTile(session.raw, &mut raw, rows, cols, arg(value_type)) })?;
        Ok(Sparse { raw, value_type, place: Place::Of(session.kind), arrays: PhantomData })
    }

    /// Calls `tarsiaSparseToTile`, which converts A into this matrix in tiles.
    pub fn take(&self, session: &Session, a: &Sparse<'_>) -> Result<()> {
        a.place.require_readable("A", session)?;
        // SAFETY: A's arrays live as long as it does.
        check(unsafe { tile::tarsiaSparseToTile(session.raw, a.raw, self.raw.cast_mut()) })
    }
}

impl Sparse<'_> {
    /// Calls `tarsiaTileGet`.
    pub fn tile_info(&self) -> Result<TileInfo> {
        let (mut rows, mut cols, mut nnz, mut tiles) = (0, 0, 0, 0);
        let mut value_type = MaybeUninit::<tarsiaDataType_t>::uninit();
        let to_type = value_type.as_mut_ptr();
        // SAFETY: the answers are valid for writes.
        check(unsafe { tile::tarsiaTileGet(self.raw, &mut rows, &mut cols, &mut nnz, &mut tiles, to_type) })?;
        // SAFETY: the call has written it, as an int.
        let code = unsafe { to_type.cast::<i32>().read() };
        let value_type = tarsiaDataType_t::from_code(code)
            .ok_or_else(|| Error::invalid("valueType", format!("{code} is not a type")))?;
        Ok(TileInfo { rows, cols, nnz, tiles, value_type })
    }
}

impl Plan<'_> {
    /// Calls `tarsiaSpGEMM_numeric` with a matrix in tiles as the result.
    pub fn numeric_tile<S: Scalar>(&self, session: &Session, alpha: S, c: &Sparse<'static>) -> Result<()> {
        self.check_scalars::<S>(session)?;
        // SAFETY: alpha has the compute type; C's memory is the library's.
        let code =
            unsafe { spgemm::tarsiaSpGEMM_numeric(session.raw, self.raw, alpha.address(), c.raw.cast_mut()) };
        check(code)
    }

    /// Calls `tarsiaSpGEMM_updateValues` with NULL, which takes the values that factors in tiles have now.
    pub fn take_tiles(&self, session: &Session) -> Result<()> {
        // SAFETY: no array is given.
        check(unsafe { spgemm::tarsiaSpGEMM_updateValues(session.raw, self.raw, null(), null()) })
    }
}
