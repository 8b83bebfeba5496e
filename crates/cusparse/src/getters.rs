//! Descriptions of cuSPARSE's handles and descriptors, read by its public getters at each call.

use std::ffi::{c_int, c_void, CStr};
use std::ptr::null;
use std::sync::OnceLock;

use tarsia::facade::direct::{Compressed, DenseMatrix, DenseVector, SparseArrays, SparseMatrix};
use tarsia::facade::{Address, DataType, IndexBase, IndexType, Order, PointerMode};

use crate::arguments::Object;
use crate::decision::Outcome;
use crate::real;

type Pointer = *const c_void;
type GetStream = unsafe extern "C" fn(Object, *mut Pointer) -> c_int;
type GetInt = unsafe extern "C" fn(Object, *mut c_int) -> c_int;
/// Type of the getters of CSR and CSC, whose offsets and indices each have a type.
type GetCompressed = unsafe extern "C" fn(
    Object,
    *mut i64,
    *mut i64,
    *mut i64,
    *mut Pointer,
    *mut Pointer,
    *mut Pointer,
    *mut c_int,
    *mut c_int,
    *mut c_int,
    *mut c_int,
) -> c_int;
type GetVector = unsafe extern "C" fn(Object, *mut i64, *mut Pointer, *mut c_int) -> c_int;
type GetMatrix =
    unsafe extern "C" fn(Object, *mut i64, *mut i64, *mut i64, *mut Pointer, *mut c_int, *mut c_int) -> c_int;
type GetBatches = unsafe extern "C" fn(Object, *mut c_int, *mut i64) -> c_int;

/// `CUSPARSE_FORMAT_CSR`
const FORMAT_CSR: c_int = 1;
/// `CUSPARSE_FORMAT_CSC`
const FORMAT_CSC: c_int = 2;

/// Addresses of the getters of the real cuSPARSE.
pub struct Getters {
    stream: GetStream,
    pointer_mode: GetInt,
    format: GetInt,
    const_csr: GetCompressed,
    csr: GetCompressed,
    const_csc: GetCompressed,
    const_vector: GetVector,
    vector: GetVector,
    const_matrix: GetMatrix,
    matrix: GetMatrix,
    sparse_batches: GetInt,
    dense_batches: GetBatches,
}

/// Returns the getters, which are looked up once; `None` if this cuSPARSE lacks one.
pub fn getters() -> Option<&'static Getters> {
    static GETTERS: OnceLock<Option<Getters>> = OnceLock::new();
    GETTERS.get_or_init(Getters::find).as_ref()
}

/// Turns the status of a getter into a result: an error means that the object is not described.
fn answered(status: c_int) -> Result<(), Outcome> {
    if status == 0 {
        Ok(())
    } else {
        Err(Outcome::NotDescribed)
    }
}

impl Getters {
    fn find() -> Option<Self> {
        let cusparse = real::cusparse()?;
        macro_rules! find {
            ($function:ty, $name:literal) => {
                // SAFETY: the function of this name has this type in all known versions, see decision.rs.
                unsafe { std::mem::transmute::<Pointer, $function>(named(cusparse, $name)?) }
            };
        }
        Some(Getters {
            stream: find!(GetStream, c"cusparseGetStream"),
            pointer_mode: find!(GetInt, c"cusparseGetPointerMode"),
            format: find!(GetInt, c"cusparseSpMatGetFormat"),
            const_csr: find!(GetCompressed, c"cusparseConstCsrGet"),
            csr: find!(GetCompressed, c"cusparseCsrGet"),
            const_csc: find!(GetCompressed, c"cusparseConstCscGet"),
            const_vector: find!(GetVector, c"cusparseConstDnVecGet"),
            vector: find!(GetVector, c"cusparseDnVecGet"),
            const_matrix: find!(GetMatrix, c"cusparseConstDnMatGet"),
            matrix: find!(GetMatrix, c"cusparseDnMatGet"),
            sparse_batches: find!(GetInt, c"cusparseSpMatGetStridedBatch"),
            dense_batches: find!(GetBatches, c"cusparseDnMatGetStridedBatch"),
        })
    }

    /// Returns the stream of a handle.
    pub fn stream(&self, handle: Object) -> Result<Address, Outcome> {
        let mut stream = null();
        // SAFETY: the handle is the program's, which is not NULL, and `stream` is valid for a write. The same
        // holds for the objects and results of the functions below.
        answered(unsafe { (self.stream)(handle, &mut stream) })?;
        Ok(Address::new(stream))
    }

    /// Returns the pointer mode of a handle.
    pub fn pointer_mode(&self, handle: Object) -> Result<PointerMode, Outcome> {
        let mut mode = -1;
        // SAFETY: as above.
        answered(unsafe { (self.pointer_mode)(handle, &mut mode) })?;
        PointerMode::from_code(mode).ok_or(Outcome::NotDescribed)
    }

    /// Returns the description of a sparse matrix that is only read; fails unless it is a single matrix in CSR or
    /// CSC.
    pub fn sparse(&self, matrix: Object) -> Result<SparseMatrix, Outcome> {
        let (mut format, mut batches) = (0, 0);
        // SAFETY: as above.
        answered(unsafe { (self.format)(matrix, &mut format) })?;
        let arrays = match format {
            FORMAT_CSR => SparseArrays::Csr(compressed(self.const_csr, matrix)?),
            FORMAT_CSC => {
                let m = compressed(self.const_csc, matrix)?;
                SparseArrays::Csc(Compressed { major: m.minor, minor: m.major, ..m })
            }
            _ => return Err(Outcome::Format),
        };
        // SAFETY: as above.
        answered(unsafe { (self.sparse_batches)(matrix, &mut batches) })?;
        if batches > 1 {
            return Err(Outcome::Batches);
        }
        Ok(SparseMatrix { arrays, writable: false, temporary: false })
    }

    /// Returns the description of a CSR matrix that is to be written, whose descriptor must not be const.
    pub fn csr_to_write(&self, matrix: Object) -> Result<Compressed, Outcome> {
        match self.sparse(matrix)?.arrays {
            SparseArrays::Csr(_) => compressed(self.csr, matrix),
            _ => Err(Outcome::Format),
        }
    }

    /// Returns the description of a dense vector; if it is to be written, its descriptor must not be const.
    pub fn vector(&self, vector: Object, to_write: bool) -> Result<DenseVector, Outcome> {
        let get = if to_write { self.vector } else { self.const_vector };
        let (mut len, mut values, mut value) = (0, null(), -1);
        // SAFETY: as above.
        answered(unsafe { get(vector, &mut len, &mut values, &mut value) })?;
        let (values, value_type) = (Address::new(values), data_type(value)?);
        Ok(DenseVector { len, values, value_type, writable: to_write })
    }

    /// Returns the description of a dense matrix without batches; if it is to be written, its descriptor must
    /// not be const.
    pub fn matrix(&self, matrix: Object, to_write: bool) -> Result<DenseMatrix, Outcome> {
        let get = if to_write { self.matrix } else { self.const_matrix };
        let (mut rows, mut cols, mut ld, mut values) = (0, 0, 0, null());
        let (mut value, mut order, mut batches, mut distance) = (-1, 0, 0, 0);
        // SAFETY: as above.
        unsafe {
            answered(get(matrix, &mut rows, &mut cols, &mut ld, &mut values, &mut value, &mut order))?;
            answered((self.dense_batches)(matrix, &mut batches, &mut distance))?;
        }
        if batches > 1 {
            return Err(Outcome::Batches);
        }
        let order = Order::from_code(order).ok_or(Outcome::NotDescribed)?;
        let (values, value_type) = (Address::new(values), data_type(value)?);
        Ok(DenseMatrix { rows, cols, ld, values, value_type, order, writable: to_write })
    }
}

/// Returns the address of cuSPARSE's function with a name.
fn named(cusparse: &real::Cusparse, name: &CStr) -> Option<Pointer> {
    cusparse.function(name).map(|function| function.as_ptr().cast_const())
}

/// Reads a CSR or CSC matrix, with rows as the major dimension; the caller swaps the dimensions of CSC.
fn compressed(get: GetCompressed, matrix: Object) -> Result<Compressed, Outcome> {
    let (mut rows, mut cols, mut nnz) = (0, 0, 0);
    let (mut offsets, mut indices, mut values) = (null(), null(), null());
    let (mut offset, mut index, mut base, mut value) = (0, 0, -1, -1);
    // SAFETY: the matrix is the program's, which is not NULL, and the results are valid for writes.
    answered(unsafe {
        get(
            matrix,
            &mut rows,
            &mut cols,
            &mut nnz,
            &mut offsets,
            &mut indices,
            &mut values,
            &mut offset,
            &mut index,
            &mut base,
            &mut value,
        )
    })?;
    Ok(Compressed {
        major: rows,
        minor: cols,
        nnz,
        offsets: Address::new(offsets),
        indices: Address::new(indices),
        values: Address::new(values),
        offset_type: index_type(offset)?,
        index_type: index_type(index)?,
        base: index_base(base)?,
        value_type: data_type(value)?,
    })
}

/// Returns the data type with a code of cuSPARSE, whose codes Tarsia uses too.
fn data_type(code: c_int) -> Result<DataType, Outcome> {
    DataType::from_code(code).ok_or(Outcome::Types)
}

fn index_type(code: c_int) -> Result<IndexType, Outcome> {
    // The library has no indices of 16 bits.
    IndexType::from_code(code).filter(|&index| index != IndexType::U16).ok_or(Outcome::Types)
}

fn index_base(code: c_int) -> Result<IndexBase, Outcome> {
    IndexBase::from_code(code).ok_or(Outcome::NotDescribed)
}
