//! Sparse matrix descriptors: create, destroy, check.

use std::mem::MaybeUninit;

use libc::{c_int, c_void};

use super::boundary::{check_enum, guard, guard_handle, Out};
use super::enums::{tarsiaDataType_t, tarsiaIndexBase_t, tarsiaIndexType_t, tarsiaOrder_t, tarsiaStatus_t};
use super::objects::{
    self, const_pointer, destroy, pointer, sparse, tarsiaConstSpMatDescr_t, tarsiaHandle_t,
    tarsiaSpMatDescr_t, Sparse,
};
use crate::error::Result;
use crate::matrix::{compressed, no_arrays, Bsr, Compressed, Coo, SparseArrays, SparseMatrix};
use crate::types::Address;

fn insert<T>(out: Out<T>, arrays: SparseArrays, writable: bool, wrap: impl FnOnce(usize) -> T) -> Result<()> {
    out.set(wrap(objects::SPARSE.insert(Sparse::Arrays(SparseMatrix {
        arrays,
        writable,
        temporary: false,
    }))?));
    Ok(())
}

#[derive(Clone, Copy)]
struct CompressedArgs {
    major: i64,
    minor: i64,
    nnz: i64,
    offsets: Address,
    indices: Address,
    values: Address,
    offset_type: MaybeUninit<tarsiaIndexType_t>,
    index_type: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    value_type: MaybeUninit<tarsiaDataType_t>,
}

impl CompressedArgs {
    fn check(self, names: &compressed::Names) -> Result<Compressed> {
        let m = self.unchecked()?;
        m.check(names)?;
        Ok(m)
    }

    fn unchecked(self) -> Result<Compressed> {
        Ok(Compressed {
            major: self.major,
            minor: self.minor,
            nnz: self.nnz,
            offsets: self.offsets,
            indices: self.indices,
            values: self.values,
            offset_type: check_enum("offsetType", self.offset_type)?,
            index_type: check_enum("indexType", self.index_type)?,
            base: check_enum("base", self.base)?,
            value_type: check_enum("valueType", self.value_type)?,
        })
    }
}

fn bsr(
    blocks: CompressedArgs,
    row_block: i64,
    col_block: i64,
    order: MaybeUninit<tarsiaOrder_t>,
) -> Result<Bsr> {
    let blocks = blocks.unchecked()?;
    let m = Bsr {
        block_rows: blocks.major,
        block_cols: blocks.minor,
        block_nnz: blocks.nnz,
        row_block,
        col_block,
        offsets: blocks.offsets,
        indices: blocks.indices,
        values: blocks.values,
        offset_type: blocks.offset_type,
        index_type: blocks.index_type,
        base: blocks.base,
        value_type: blocks.value_type,
        block_order: check_enum("blockOrder", order)?,
    };
    m.check()?;
    Ok(m)
}

/// Describes a CSR matrix: row i has the entries rowOffsets[i] - base up to but
/// not including rowOffsets[i + 1] - base.
///
/// The descriptor borrows the arrays and copies nothing; nothing is read here.
/// rowOffsets: rows + 1 offsets; colInd, values: nnz each; all in the backend's
/// memory, aligned to their elements, NULL allowed until the matrix is used.
/// Columns may be unsorted and stored twice (they add up). (offset, index)
/// types: 32/32, 64/32 or 64/64 bits.
///
/// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
/// for its index type or for memory; a misaligned array; not a value of an
/// enum), NOT_SUPPORTED (index or value type that no operation takes),
/// ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateCsr(
    A: *mut tarsiaSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    rowOffsets: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let args = CompressedArgs {
            major: rows,
            minor: cols,
            nnz,
            offsets: Address::new(rowOffsets),
            indices: Address::new(colInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        insert(out, SparseArrays::Csr(args.check(&compressed::CSR)?), true, pointer)
    })
}

/// As tarsiaCreateCsr, from const arrays: the descriptor cannot be the C of a
/// SpGEMM.
///
/// Statuses: those of tarsiaCreateCsr.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstCsr(
    A: *mut tarsiaConstSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    rowOffsets: *const c_void,
    colInd: *const c_void,
    values: *const c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let args = CompressedArgs {
            major: rows,
            minor: cols,
            nnz,
            offsets: Address::new(rowOffsets),
            indices: Address::new(colInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        insert(out, SparseArrays::Csr(args.check(&compressed::CSR)?), false, const_pointer)
    })
}

/// Describes a CSC matrix: column j has the entries colOffsets[j] - base up to
/// but not including colOffsets[j + 1] - base.
///
/// The descriptor borrows the arrays and copies nothing; nothing is read here.
/// colOffsets: cols + 1 offsets; rowInd, values: nnz each; all in the backend's
/// memory, aligned to their elements, NULL allowed until the matrix is used.
/// Rows may be unsorted and stored twice (they add up). (offset, index) types:
/// 32/32, 64/32 or 64/64 bits.
///
/// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
/// for its index type or for memory; a misaligned array; not a value of an
/// enum), NOT_SUPPORTED (index or value type that no operation takes),
/// ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateCsc(
    A: *mut tarsiaSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    colOffsets: *mut c_void,
    rowInd: *mut c_void,
    values: *mut c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let args = CompressedArgs {
            major: cols,
            minor: rows,
            nnz,
            offsets: Address::new(colOffsets),
            indices: Address::new(rowInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        insert(out, SparseArrays::Csc(args.check(&compressed::CSC)?), true, pointer)
    })
}

/// As tarsiaCreateCsc, from const arrays: the descriptor cannot be the C of a
/// SpGEMM.
///
/// Statuses: those of tarsiaCreateCsc.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstCsc(
    A: *mut tarsiaConstSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    colOffsets: *const c_void,
    rowInd: *const c_void,
    values: *const c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let args = CompressedArgs {
            major: cols,
            minor: rows,
            nnz,
            offsets: Address::new(colOffsets),
            indices: Address::new(rowInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        insert(out, SparseArrays::Csc(args.check(&compressed::CSC)?), false, const_pointer)
    })
}

/// Describes a COO matrix: entry p is in row rowInd[p] - base, column
/// colInd[p] - base. Any order; entries stored twice add up.
///
/// The descriptor borrows the arrays and copies nothing; nothing is read here.
/// rowInd, colInd, values: nnz each, in the backend's memory, aligned to their
/// elements, NULL allowed until the matrix is used. Both index arrays have
/// indexType, 32 or 64 bits.
///
/// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
/// for its index type or for memory; a misaligned array; not a value of an
/// enum), NOT_SUPPORTED (index or value type that no operation takes),
/// ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateCoo(
    A: *mut tarsiaSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    rowInd: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let m = Coo {
            rows,
            cols,
            nnz,
            row_indices: Address::new(rowInd),
            col_indices: Address::new(colInd),
            values: Address::new(values),
            index_type: check_enum("indexType", indexType)?,
            base: check_enum("base", base)?,
            value_type: check_enum("valueType", valueType)?,
        };
        m.check()?;
        insert(out, SparseArrays::Coo(m), true, pointer)
    })
}

/// As tarsiaCreateCoo, from const arrays.
///
/// Statuses: those of tarsiaCreateCoo.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstCoo(
    A: *mut tarsiaConstSpMatDescr_t,
    rows: i64,
    cols: i64,
    nnz: i64,
    rowInd: *const c_void,
    colInd: *const c_void,
    values: *const c_void,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let m = Coo {
            rows,
            cols,
            nnz,
            row_indices: Address::new(rowInd),
            col_indices: Address::new(colInd),
            values: Address::new(values),
            index_type: check_enum("indexType", indexType)?,
            base: check_enum("base", base)?,
            value_type: check_enum("valueType", valueType)?,
        };
        m.check()?;
        insert(out, SparseArrays::Coo(m), false, const_pointer)
    })
}

/// Describes a BSR matrix: a CSR pattern of dense blocks of rowBlockSize ×
/// colBlockSize values. The matrix has blockRows · rowBlockSize rows and
/// blockCols · colBlockSize columns. Every value of a stored block is a stored
/// entry, zeros included.
///
/// The descriptor borrows the arrays and copies nothing; nothing is read here.
/// rowOffsets: blockRows + 1 offsets in blocks; colInd: blockNnz block columns;
/// values: blockNnz · rowBlockSize · colBlockSize, block after block, inside a
/// block in blockOrder; all in the backend's memory, aligned to their elements,
/// NULL allowed until the matrix is used. Blocks may be unsorted and stored
/// twice (they add up). SpMV and SpMM take it.
///
/// Statuses: INVALID_VALUE (A is NULL; a dimension or blockNnz is negative, too
/// large for its index type or for memory; a block size below 1; a misaligned
/// array; not a value of an enum), NOT_SUPPORTED (index or value type that no
/// operation takes), ALLOC_FAILED.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateBsr(
    A: *mut tarsiaSpMatDescr_t,
    blockRows: i64,
    blockCols: i64,
    blockNnz: i64,
    rowBlockSize: i64,
    colBlockSize: i64,
    rowOffsets: *mut c_void,
    colInd: *mut c_void,
    values: *mut c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
    blockOrder: MaybeUninit<tarsiaOrder_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let blocks = CompressedArgs {
            major: blockRows,
            minor: blockCols,
            nnz: blockNnz,
            offsets: Address::new(rowOffsets),
            indices: Address::new(colInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        let m = bsr(blocks, rowBlockSize, colBlockSize, blockOrder)?;
        insert(out, SparseArrays::Bsr(m), true, pointer)
    })
}

/// As tarsiaCreateBsr, from const arrays.
///
/// Statuses: those of tarsiaCreateBsr.
#[no_mangle]
pub unsafe extern "C" fn tarsiaCreateConstBsr(
    A: *mut tarsiaConstSpMatDescr_t,
    blockRows: i64,
    blockCols: i64,
    blockNnz: i64,
    rowBlockSize: i64,
    colBlockSize: i64,
    rowOffsets: *const c_void,
    colInd: *const c_void,
    values: *const c_void,
    offsetType: MaybeUninit<tarsiaIndexType_t>,
    indexType: MaybeUninit<tarsiaIndexType_t>,
    base: MaybeUninit<tarsiaIndexBase_t>,
    valueType: MaybeUninit<tarsiaDataType_t>,
    blockOrder: MaybeUninit<tarsiaOrder_t>,
) -> tarsiaStatus_t {
    guard(|| {
        // SAFETY: the caller promises a valid pointer or NULL.
        let out = unsafe { Out::new("A", A)? };
        let blocks = CompressedArgs {
            major: blockRows,
            minor: blockCols,
            nnz: blockNnz,
            offsets: Address::new(rowOffsets),
            indices: Address::new(colInd),
            values: Address::new(values),
            offset_type: offsetType,
            index_type: indexType,
            base,
            value_type: valueType,
        };
        let m = bsr(blocks, rowBlockSize, colBlockSize, blockOrder)?;
        insert(out, SparseArrays::Bsr(m), false, const_pointer)
    })
}

/// Destroys a sparse matrix descriptor, not the arrays; of tarsiaCreateTile also the
/// tiles, once no plan reads them. NULL does nothing. Plans made with it stay
/// usable, as long as the arrays are there.
///
/// Statuses: INVALID_VALUE (not a live descriptor).
#[no_mangle]
pub extern "C" fn tarsiaDestroySpMat(A: tarsiaConstSpMatDescr_t) -> tarsiaStatus_t {
    guard(|| destroy(&objects::SPARSE, A.addr(), "A", "sparse matrix descriptor").map(drop))
}

/// Reads the whole pattern of a matrix that is not trusted: offsets start at the
/// base, never decrease and end at base + nnz; indices are in range.
/// tarsiaPlan_analyze does the same; this call tells what else there is to know.
///
/// sorted, unique: host, each may be NULL. sorted: 1 if indices ascend inside
/// every row (CSR, BSR: of blocks), column (CSC), or entries ascend by (row,
/// column) (COO). unique: 1 if it is sorted and nothing is stored twice. Neither
/// is an error: SpMV, SpMM and SpGEMM take unsorted matrices and add up what is
/// stored twice.
///
/// Blocks; not inside a capture. Does not read the values.
///
/// Statuses: NOT_INITIALIZED, INVALID_VALUE (A is not a live descriptor, has a
/// NULL array, or its pattern is wrong: the text says where), NOT_SUPPORTED (A is
/// in tiles).
#[no_mangle]
pub unsafe extern "C" fn tarsiaCheckSpMat(
    handle: tarsiaHandle_t,
    A: tarsiaConstSpMatDescr_t,
    sorted: *mut c_int,
    unique: *mut c_int,
) -> tarsiaStatus_t {
    guard_handle(handle, |handle| {
        // SAFETY: the caller promises valid pointers or NULL.
        let (sorted, unique) =
            unsafe { (Out::optional("sorted", sorted)?, Out::optional("unique", unique)?) };
        if let Sparse::Tiles(_) = objects::sparse_or_tiles("A", A)? {
            return Err(no_arrays("A"));
        }
        handle.backend().require_blocking(handle.stream(), "tarsiaCheckSpMat")?;
        let found = handle.backend().check_sparse(&handle.context(), &sparse("A", A)?, "A")?;
        if let Some(out) = sorted {
            out.set(c_int::from(found.sorted));
        }
        if let Some(out) = unique {
            out.set(c_int::from(found.unique));
        }
        Ok(())
    })
}
