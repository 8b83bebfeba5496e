//! Matrices in sparse tiles, whose memory the library owns.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::boundary::{answer, check_enum, guard, guard_handle, out};
use super::enums::{tarsiaDataType_t, tarsiaStatus_t};
use super::objects::{
    self, pointer, sparse, sparse_or_tiles, tarsiaConstSpMatDescr_t, tarsiaHandle_t, tarsiaSpMatDescr_t,
    Sparse,
};
use crate::context::Handle;
use crate::error::{refuse_if, Error, Result};
use crate::matrix::tiles::TileMatrix;
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::operation::check_writable;
use crate::types::DataType;

/// Looks up an argument that must be a matrix in tiles.
fn tiles(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<Arc<TileMatrix>> {
    let found = sparse_or_tiles(name, descr)?;
    let format = found.matrix().format();
    found.tiles().ok_or_else(|| {
        Error::invalid(name, format!("it is a {} matrix, this function is for tiles", format.short()))
    })
}

/// Looks up an argument that must be a matrix in CSR or CSC, with its arrays.
fn compressed(name: &str, descr: tarsiaConstSpMatDescr_t) -> Result<SparseMatrix> {
    let found = sparse(name, descr)?;
    match found.arrays {
        SparseArrays::Csr(_) | SparseArrays::Csc(_) => {
            found.require_arrays(name)?;
            Ok(found)
        }
        _ => Err(Error::unsupported(format!(
            "{name}: tiles are made of CSR and CSC, and those of tiles, not {}",
            found.format().short()
        ))),
    }
}

fn check_backend(handle: &Handle, name: &str, tiles: &TileMatrix) -> Result<()> {
    let backend = handle.backend();
    tiles.require_backend(name, backend.kind(), backend.device())
}

/// Checks that a matrix has the shape of A.
fn check_shapes(name: &str, found: (i64, i64), expected: (i64, i64)) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let ((rows, cols), (m, n)) = (found, expected);
    Err(Error::invalid(name, format!("it is {rows} × {cols}, expected {m} × {n} as A has")))
}

/// Creates an empty matrix in sparse tiles of 16 × 16, whose memory is the library's.
///
/// tarsiaSparseToTile and, with TARSIA_SPGEMM_ALG_TILE, tarsiaSpGEMM_numeric fill it, each time anew; a
/// product takes it as A or B without conversion, so that a chain of products (A · A · A, or P^T · (A · P))
/// stays in tiles; tarsiaTileToSparse converts it to CSR or CSC. tarsiaTileGet and tarsiaSpMatGetSize give
/// its numbers of entries and tiles. tarsiaDestroySpMat destroys it. Functions that need arrays of the user
/// (SpMV, SpMM, tarsiaCheckSpMat, tarsiaCsrGet, tarsiaSpMatGetValues ...) refuse it and say so.
///
/// A: host. valueType: the type of the values, R_32F, R_64F, C_32F or C_64F; fp16 and bf16 matrices become
/// R_32F, exactly. The memory that it is filled with comes from the allocator of the handle that the filling
/// call has; the functions of tarsiaSetAllocator must stay valid, and the stream that the handle has then
/// must live, until the matrix and the plans that read it are destroyed. Neither tarsiaDestroySpMat, nor
/// calls that fill the matrix anew, nor tarsiaPlan_destroy wait for products that read its tiles: their
/// memory is reused only when the last of these products is done. A tile takes 60 bytes, an entry its value
/// and one byte.
///
/// Source of the layout: Y. Niu et al., "TileSpGEMM", PPoPP 2022, section 3.2.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (A is NULL, a dimension is negative or 2^31 or
/// more, valueType is not a tarsiaDataType_t), NOT_SUPPORTED (another valueType), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateTile(
    handle: tarsiaHandle_t,
    A: *mut tarsiaSpMatDescr_t,
    rows: i64,
    cols: i64,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let out = out!(A);
        let value_type: DataType = check_enum("valueType", valueType)?;
        let backend = handle.backend();
        let matrix = TileMatrix::new((backend.kind(), backend.device()), (rows, cols), value_type)?;
        out.set(pointer(objects::SPARSE.insert(Sparse::Tiles(Arc::new(matrix)))?))
    })
}

/// Gets the sizes of a matrix of tarsiaCreateTile: its stored entries and the tiles that have at least one,
/// both 0 before it is filled. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or not in tiles; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaTileGet(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    tileCount: *mut i64,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let shape = tiles("A", A)?.shape();
        answer! {
            rows: set(shape.rows),
            cols: set(shape.cols),
            nnz: set(shape.nnz),
            tileCount: set(shape.tiles),
            valueType: set_enum(shape.value_type),
        }
    })
}

/// Converts the CSR or CSC matrix A to tiles: B = A.
///
/// A: CSR or CSC, any index types, either base; unsorted rows are sorted, entries stored twice are added up.
/// B: of tarsiaCreateTile, of A's shape, with A's value type (R_32F for an fp16 or bf16 A); its previous
/// contents are replaced. From CSC the tiles are made by columns; a product needs no copy of such tiles where
/// both factors have them, or where op transposes this factor and not the other.
///
/// Blocks, allocates; not inside a capture. Validates A. Plans that read B keep its previous contents
/// (tarsiaSpGEMM_updateValues takes new values of the same pattern).
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (A or B is not a live descriptor, A has a NULL array
/// or a wrong pattern, B is not in tiles, of another shape, type, backend or device),
/// NOT_SUPPORTED (format of A, 2^32 tiles or more), INVALID_STATE (a capture), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaSparseToTile(
    handle: tarsiaHandle_t,
    A: tarsiaConstSpMatDescr_t,
    B: tarsiaSpMatDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let (a, b) = (compressed("A", A)?, tiles("B", B)?);
        check_backend(handle, "B", &b)?;
        let (shape, (rows, cols, _)) = (b.shape(), a.shape());
        check_shapes("B", (shape.rows, shape.cols), (rows, cols))?;
        let sums = match a.value_type() {
            DataType::R16F | DataType::R16BF => DataType::R32F,
            other => other,
        };
        refuse_if!(
            shape.value_type != sums,
            invalid("B"),
            "its values are {}, those of tiles of a {} matrix are {}",
            shape.value_type.short(),
            a.value_type().short(),
            sums.short()
        );
        let backend = handle.backend();
        backend.require_blocking(handle.stream(), "tarsiaSparseToTile")?;
        b.fill(&handle.context(), |cx| backend.make_tiles(cx, &a))
    })
}

/// Converts the matrix A in tiles to CSR or CSC: B = A.
///
/// A: of tarsiaCreateTile, filled. B: CSR or CSC of A's shape and value type with room for the number of
/// entries that tarsiaTileGet gives, any index types that hold them, either base; rows (columns for CSC) come
/// out sorted, without duplicates.
///
/// Blocks, may allocate; not inside a capture.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (A or B is not a live descriptor, A is not in tiles, or of
/// another backend or device; B is const, of another shape, type or number of entries, or has a NULL array),
/// NOT_SUPPORTED (format of B), INVALID_STATE (A was never filled, a capture), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaTileToSparse(
    handle: tarsiaHandle_t,
    A: tarsiaConstSpMatDescr_t,
    B: tarsiaSpMatDescr_t,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        let (a, b) = (tiles("A", A)?, compressed("B", B)?);
        check_backend(handle, "A", &a)?;
        let a = a.contents("A")?.tiles;
        check_writable("B", b.writable, "a tarsiaCreateConst function")?;
        let (shape, (rows, cols, nnz)) = (a.shape, b.shape());
        check_shapes("B", (rows, cols), (shape.rows, shape.cols))?;
        if nnz != shape.nnz {
            return Err(Error::invalid(
                "B",
                format!("it has room for {nnz} entries, expected the {} of A", shape.nnz),
            ));
        }
        if b.value_type() != shape.value_type {
            let (found, expected) = (b.value_type().short(), shape.value_type.short());
            return Err(Error::invalid("B", format!("its values are {found}, those of A {expected}")));
        }
        let backend = handle.backend();
        backend.require_blocking(handle.stream(), "tarsiaTileToSparse")?;
        let written = backend.write_tiles(&handle.context(), &a, &b);
        objects::note_sorted(B, written.is_ok());
        written
    })
}
