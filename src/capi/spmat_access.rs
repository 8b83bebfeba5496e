//! Sparse matrix descriptors: getters and setters.

use libc::c_void;

use super::boundary::{answer, guard, not_live, Out};
use super::enums::{
    tarsiaDataType_t, tarsiaFormat_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaOrder_t, tarsiaStatus_t,
};
use super::objects::{self, sparse, tarsiaConstSpMatDescr_t, tarsiaSpMatDescr_t};
use crate::error::{Error, Result};
use crate::matrix::{compressed, no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::{Address, Format};

fn format_error(found: &SparseMatrix, expected: Format) -> Error {
    Error::invalid(
        "A",
        format!("it is a {} matrix, this function is for {}", found.format().short(), expected.short()),
    )
}

fn csr(A: tarsiaConstSpMatDescr_t) -> Result<Compressed> {
    match sparse("A", A)? {
        SparseMatrix { arrays: SparseArrays::Csr(m), .. } => Ok(m),
        other => Err(format_error(&other, Format::Csr)),
    }
}

fn csc(A: tarsiaConstSpMatDescr_t) -> Result<Compressed> {
    match sparse("A", A)? {
        SparseMatrix { arrays: SparseArrays::Csc(m), .. } => Ok(m),
        other => Err(format_error(&other, Format::Csc)),
    }
}

fn coo(A: tarsiaConstSpMatDescr_t) -> Result<Coo> {
    match sparse("A", A)? {
        SparseMatrix { arrays: SparseArrays::Coo(m), .. } => Ok(m),
        other => Err(format_error(&other, Format::Coo)),
    }
}

fn bsr(A: tarsiaConstSpMatDescr_t) -> Result<Bsr> {
    match sparse("A", A)? {
        SparseMatrix { arrays: SparseArrays::Bsr(m), .. } => Ok(m),
        other => Err(format_error(&other, Format::Bsr)),
    }
}

fn writable(A: tarsiaSpMatDescr_t) -> Result<SparseMatrix> {
    let a = sparse("A", A)?;
    if !a.writable {
        return Err(Error::invalid("A", "it was made from const arrays; use the Const getter"));
    }
    Ok(a)
}

/// A matrix whose arrays are the user's.
fn with_arrays(a: SparseMatrix) -> Result<SparseMatrix> {
    match a.arrays {
        SparseArrays::Tile(_) => Err(no_arrays("A")),
        _ => Ok(a),
    }
}

fn replace(A: tarsiaSpMatDescr_t, new: SparseMatrix) -> Result<()> {
    objects::SPARSE
        .update(A.addr(), |a| *a = objects::Sparse::Arrays(new))
        .ok_or_else(|| not_live("A", A.is_null(), "sparse matrix descriptor"))
}

/// All fields of a CSR descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from
/// const arrays; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCsrGet(
    A: tarsiaSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    rowOffsets: *mut *mut c_void,
    colInd: *mut *mut c_void,
    values: *mut *mut c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let m = csr(A)?;
        answer! {
            rows: set(m.major),
            cols: set(m.minor),
            nnz: set(m.nnz),
            rowOffsets: set(m.offsets.as_mut_ptr()),
            colInd: set(m.indices.as_mut_ptr()),
            values: set(m.values.as_mut_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// As tarsiaCsrGet, for any CSR descriptor, with pointers to const.
///
/// Statuses: INVALID_VALUE (A is not a live CSR descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstCsrGet(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    rowOffsets: *mut *const c_void,
    colInd: *mut *const c_void,
    values: *mut *const c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let m = csr(A)?;
        answer! {
            rows: set(m.major),
            cols: set(m.minor),
            nnz: set(m.nnz),
            rowOffsets: set(m.offsets.as_ptr()),
            colInd: set(m.indices.as_ptr()),
            values: set(m.values.as_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// Replaces the arrays of a CSR descriptor; sizes and types stay. A plan
/// copies the descriptor's fields, so this reaches no plan: one that was created keeps
/// its arrays, and tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
///
/// Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from
/// const arrays; a misaligned array).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCsrSetPointers(
    A: tarsiaSpMatDescr_t,
    rowOffsets: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let mut m = csr(A)?;
        m.offsets = Address::new(rowOffsets);
        m.indices = Address::new(colInd);
        m.values = Address::new(values);
        m.check_pointers(&compressed::CSR)?;
        replace(A, SparseMatrix { arrays: SparseArrays::Csr(m), writable: true, temporary: false })
    })
}

/// All fields of a CSC descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from
/// const arrays; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCscGet(
    A: tarsiaSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    colOffsets: *mut *mut c_void,
    rowInd: *mut *mut c_void,
    values: *mut *mut c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let m = csc(A)?;
        answer! {
            rows: set(m.minor),
            cols: set(m.major),
            nnz: set(m.nnz),
            colOffsets: set(m.offsets.as_mut_ptr()),
            rowInd: set(m.indices.as_mut_ptr()),
            values: set(m.values.as_mut_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// As tarsiaCscGet, for any CSC descriptor, with pointers to const.
///
/// Statuses: INVALID_VALUE (A is not a live CSC descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstCscGet(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    colOffsets: *mut *const c_void,
    rowInd: *mut *const c_void,
    values: *mut *const c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let m = csc(A)?;
        answer! {
            rows: set(m.minor),
            cols: set(m.major),
            nnz: set(m.nnz),
            colOffsets: set(m.offsets.as_ptr()),
            rowInd: set(m.indices.as_ptr()),
            values: set(m.values.as_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// Replaces the arrays of a CSC descriptor; sizes and types stay. A plan
/// copies the descriptor's fields, so this reaches no plan: one that was created keeps
/// its arrays, and tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
///
/// Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from
/// const arrays; a misaligned array).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCscSetPointers(
    A: tarsiaSpMatDescr_t,
    colOffsets: *mut c_void,
    rowInd: *mut c_void,
    values: *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let mut m = csc(A)?;
        m.offsets = Address::new(colOffsets);
        m.indices = Address::new(rowInd);
        m.values = Address::new(values);
        m.check_pointers(&compressed::CSC)?;
        replace(A, SparseMatrix { arrays: SparseArrays::Csc(m), writable: true, temporary: false })
    })
}

/// All fields of a COO descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from
/// const arrays; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCooGet(
    A: tarsiaSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    rowInd: *mut *mut c_void,
    colInd: *mut *mut c_void,
    values: *mut *mut c_void,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let m = coo(A)?;
        answer! {
            rows: set(m.rows),
            cols: set(m.cols),
            nnz: set(m.nnz),
            rowInd: set(m.row_indices.as_mut_ptr()),
            colInd: set(m.col_indices.as_mut_ptr()),
            values: set(m.values.as_mut_ptr()),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// As tarsiaCooGet, for any COO descriptor, with pointers to const.
///
/// Statuses: INVALID_VALUE (A is not a live COO descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstCooGet(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
    rowInd: *mut *const c_void,
    colInd: *mut *const c_void,
    values: *mut *const c_void,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
) -> tarsiaStatus_t {
    guard(|| {
        let m = coo(A)?;
        answer! {
            rows: set(m.rows),
            cols: set(m.cols),
            nnz: set(m.nnz),
            rowInd: set(m.row_indices.as_ptr()),
            colInd: set(m.col_indices.as_ptr()),
            values: set(m.values.as_ptr()),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
        }
        Ok(())
    })
}

/// Replaces the arrays of a COO descriptor; sizes and types stay. A plan
/// copies the descriptor's fields, so this reaches no plan: one that was created keeps
/// its arrays, and tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
///
/// Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from
/// const arrays; a misaligned array).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCooSetPointers(
    A: tarsiaSpMatDescr_t,
    rowInd: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let mut m = coo(A)?;
        m.row_indices = Address::new(rowInd);
        m.col_indices = Address::new(colInd);
        m.values = Address::new(values);
        m.check_pointers()?;
        replace(A, SparseMatrix { arrays: SparseArrays::Coo(m), writable: true, temporary: false })
    })
}

/// All fields of a BSR descriptor. Answers: host, each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from
/// const arrays; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaBsrGet(
    A: tarsiaSpMatDescr_t,
    blockRows: *mut i64,
    blockCols: *mut i64,
    blockNnz: *mut i64,
    rowBlockSize: *mut i64,
    colBlockSize: *mut i64,
    rowOffsets: *mut *mut c_void,
    colInd: *mut *mut c_void,
    values: *mut *mut c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
    blockOrder: *mut tarsiaOrder_t,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let m = bsr(A)?;
        answer! {
            blockRows: set(m.block_rows),
            blockCols: set(m.block_cols),
            blockNnz: set(m.block_nnz),
            rowBlockSize: set(m.row_block),
            colBlockSize: set(m.col_block),
            rowOffsets: set(m.offsets.as_mut_ptr()),
            colInd: set(m.indices.as_mut_ptr()),
            values: set(m.values.as_mut_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
            blockOrder: set_enum(m.block_order),
        }
        Ok(())
    })
}

/// As tarsiaBsrGet, for any BSR descriptor, with pointers to const.
///
/// Statuses: INVALID_VALUE (A is not a live BSR descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstBsrGet(
    A: tarsiaConstSpMatDescr_t,
    blockRows: *mut i64,
    blockCols: *mut i64,
    blockNnz: *mut i64,
    rowBlockSize: *mut i64,
    colBlockSize: *mut i64,
    rowOffsets: *mut *const c_void,
    colInd: *mut *const c_void,
    values: *mut *const c_void,
    offsetType: *mut tarsiaIndexType_t,
    indexType: *mut tarsiaIndexType_t,
    base: *mut tarsiaIndexBase_t,
    valueType: *mut tarsiaDataType_t,
    blockOrder: *mut tarsiaOrder_t,
) -> tarsiaStatus_t {
    guard(|| {
        let m = bsr(A)?;
        answer! {
            blockRows: set(m.block_rows),
            blockCols: set(m.block_cols),
            blockNnz: set(m.block_nnz),
            rowBlockSize: set(m.row_block),
            colBlockSize: set(m.col_block),
            rowOffsets: set(m.offsets.as_ptr()),
            colInd: set(m.indices.as_ptr()),
            values: set(m.values.as_ptr()),
            offsetType: set_enum(m.offset_type),
            indexType: set_enum(m.index_type),
            base: set_enum(m.base),
            valueType: set_enum(m.value_type),
            blockOrder: set_enum(m.block_order),
        }
        Ok(())
    })
}

/// Replaces the arrays of a BSR descriptor; sizes and types stay. A plan
/// copies the descriptor's fields, so this reaches no plan: one that was created keeps
/// its arrays, and tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
///
/// Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from
/// const arrays; a misaligned array).
#[no_mangle]
pub unsafe extern "C" fn tarsiaBsrSetPointers(
    A: tarsiaSpMatDescr_t,
    rowOffsets: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        writable(A)?;
        let mut m = bsr(A)?;
        m.offsets = Address::new(rowOffsets);
        m.indices = Address::new(colInd);
        m.values = Address::new(values);
        m.pattern().check_pointers(&compressed::BSR)?;
        replace(A, SparseMatrix { arrays: SparseArrays::Bsr(m), writable: true, temporary: false })
    })
}

/// Rows, columns and stored entries, in scalars also for BSR. Answers: host,
/// each may be NULL.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor; a misaligned answer).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetSize(
    A: tarsiaConstSpMatDescr_t,
    rows: *mut i64,
    cols: *mut i64,
    nnz: *mut i64,
) -> tarsiaStatus_t {
    guard(|| {
        let shape = sparse("A", A)?.shape();
        answer! {
            rows: set(shape.0),
            cols: set(shape.1),
            nnz: set(shape.2),
        }
        Ok(())
    })
}

/// Format of a descriptor.
///
/// format: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, format is NULL).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetFormat(
    A: tarsiaConstSpMatDescr_t,
    format: *mut tarsiaFormat_t,
) -> tarsiaStatus_t {
    guard(|| {
        let a = sparse("A", A)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("format", format)? }.set_enum(a.format());
        Ok(())
    })
}

/// Index base of a descriptor.
///
/// base: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, base is NULL),
/// NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetIndexBase(
    A: tarsiaConstSpMatDescr_t,
    base: *mut tarsiaIndexBase_t,
) -> tarsiaStatus_t {
    guard(|| {
        let a = sparse("A", A)?;
        let a = with_arrays(a)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("base", base)? }.set_enum(a.base());
        Ok(())
    })
}

/// Value array of a descriptor.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or was made from const
/// arrays, values is NULL), NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatGetValues(
    A: tarsiaSpMatDescr_t,
    values: *mut *mut c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(writable(A)?)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(a.values().as_mut_ptr());
        Ok(())
    })
}

/// Value array of any descriptor, to read.
///
/// values: host.
///
/// Statuses: INVALID_VALUE (A is not a live descriptor, values is NULL),
/// NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaConstSpMatGetValues(
    A: tarsiaConstSpMatDescr_t,
    values: *mut *const c_void,
) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(sparse("A", A)?)?;
        // SAFETY: the caller promises a valid pointer or NULL.
        unsafe { Out::new("values", values)? }.set(a.values().as_ptr());
        Ok(())
    })
}

/// Replaces the value array of a descriptor. A plan copies the descriptor's fields, so this
/// reaches no plan: one that was created keeps its array until tarsiaPlan_updateValues (for the
/// second factor of SpGEMM tarsiaSpGEMM_updateValues) gives it another. (After changing values a program calls that in any case; until
/// then a product may have the old or the new ones.)
///
/// Statuses: INVALID_VALUE (A is not a live descriptor or was made from const
/// arrays, misaligned values), NOT_SUPPORTED (A is in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaSpMatSetValues(A: tarsiaSpMatDescr_t, values: *mut c_void) -> tarsiaStatus_t {
    guard(|| {
        let a = with_arrays(writable(A)?)?;
        let values = Address::new(values);
        crate::matrix::check_align("values", values, a.value_type().align())?;
        replace(A, a.with_values(values))
    })
}
