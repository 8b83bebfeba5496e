//! The functions of cuSPARSE that are called, and the values of its enums, according to the documentation of
//! CUDA 12 and 13.

use std::ffi::{c_void, CStr};

use tarsia::facade::Operation;

use super::super::library::Library;
use crate::Result;

/// Pointer type of handles and descriptors.
pub type Raw = *mut c_void;

/// CUSPARSE_INDEX_32I
pub const INDEX_32: i32 = 2;
/// CUSPARSE_INDEX_64I
pub const INDEX_64: i32 = 3;
/// CUSPARSE_INDEX_BASE_ZERO
pub const BASE_ZERO: i32 = 0;
/// CUSPARSE_OPERATION_NON_TRANSPOSE
pub const NON_TRANSPOSE: i32 = 0;
/// CUSPARSE_OPERATION_TRANSPOSE
pub const TRANSPOSE: i32 = 1;
/// CUSPARSE_ORDER_COL
pub const ORDER_COL: i32 = 1;
/// CUSPARSE_ORDER_ROW
pub const ORDER_ROW: i32 = 2;

/// cusparseSpMVAlg_t
pub mod spmv {
    /// CUSPARSE_SPMV_ALG_DEFAULT
    pub const DEFAULT: i32 = 0;
    /// CUSPARSE_SPMV_COO_ALG1
    pub const COO_1: i32 = 1;
    /// CUSPARSE_SPMV_CSR_ALG1
    pub const CSR_1: i32 = 2;
    /// CUSPARSE_SPMV_CSR_ALG2
    pub const CSR_2: i32 = 3;
    /// CUSPARSE_SPMV_COO_ALG2
    pub const COO_2: i32 = 4;
    /// CUSPARSE_SPMV_SELL_ALG1
    pub const SELL: i32 = 5;
    /// CUSPARSE_SPMV_BSR_ALG1
    pub const BSR: i32 = 6;
}

/// cusparseSpMMAlg_t
pub mod spmm {
    /// CUSPARSE_SPMM_ALG_DEFAULT
    pub const DEFAULT: i32 = 0;
    /// CUSPARSE_SPMM_CSR_ALG1
    pub const CSR_1: i32 = 4;
    /// CUSPARSE_SPMM_CSR_ALG2
    pub const CSR_2: i32 = 6;
    /// CUSPARSE_SPMM_CSR_ALG3
    pub const CSR_3: i32 = 12;
    /// CUSPARSE_SPMM_BSR_ALG1
    pub const BSR: i32 = 14;
}

/// cusparseSpGEMMAlg_t
pub mod spgemm {
    /// CUSPARSE_SPGEMM_DEFAULT
    pub const DEFAULT: i32 = 0;
    /// CUSPARSE_SPGEMM_CSR_ALG_DETERMINITIC (cuSPARSE's own spelling)
    pub const DETERMINISTIC: i32 = 1;
    /// CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC
    pub const NON_DETERMINISTIC: i32 = 2;
    /// CUSPARSE_SPGEMM_ALG1
    pub const ALG_1: i32 = 3;
    /// CUSPARSE_SPGEMM_ALG2
    pub const ALG_2: i32 = 4;
    /// CUSPARSE_SPGEMM_ALG3
    pub const ALG_3: i32 = 5;
}

const STATUSES: [&str; 12] = [
    "SUCCESS",
    "NOT_INITIALIZED",
    "ALLOC_FAILED",
    "INVALID_VALUE",
    "ARCH_MISMATCH",
    "MAPPING_ERROR",
    "EXECUTION_FAILED",
    "INTERNAL_ERROR",
    "MATRIX_TYPE_NOT_SUPPORTED",
    "ZERO_PIVOT",
    "NOT_SUPPORTED",
    "INSUFFICIENT_RESOURCES",
];

/// Returns cuSPARSE's value for an operation on a stored matrix.
pub fn operation(op: Operation) -> i32 {
    if op.transposes() {
        TRANSPOSE
    } else {
        NON_TRANSPOSE
    }
}

/// Converts the status of a function to a result, whose error names the status.
pub fn check(status: i32, function: &str) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let name = usize::try_from(status).ok().and_then(|at| STATUSES.get(at));
    Err(match name {
        Some(name) => format!("{function} CUSPARSE_STATUS_{name}"),
        None => format!("{function} cuSPARSE status {status}"),
    }
    .into())
}

macro_rules! functions {
    (
        required { $($name:ident: ($($ty:ty),*);)* }
        optional { $($extra:ident: ($($extra_ty:ty),*);)* }
    ) => {
        /// Names of the functions that every version has.
        #[cfg(test)]
        pub const REQUIRED: &[&str] = &[$(stringify!($name)),*];

        /// Pointers to the functions; those that older versions lack are optional.
        #[allow(non_snake_case)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($ty),*) -> i32,)*
            $(pub $extra: Option<unsafe extern "C" fn($($extra_ty),*) -> i32>,)*
        }

        impl Functions {
            /// Looks up all functions of a library.
            pub fn load(library: &Library) -> Result<Self> {
                Ok(Functions {
                    // SAFETY: these are the types that the documentation gives.
                    $($name: unsafe { library.required(c_name(concat!(stringify!($name), "\0")))? },)*
                    // SAFETY: as above.
                    $($extra: unsafe { library.symbol(c_name(concat!(stringify!($extra), "\0"))) },)*
                })
            }
        }
    };
}

fn c_name(name: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default()
}

type Const = *const c_void;

functions! {
    required {
    cusparseCreate: (*mut Raw);
    cusparseDestroy: (Raw);
    cusparseGetProperty: (i32, *mut i32);
    cusparseCreateConstCsr: (*mut Raw, i64, i64, i64, Const, Const, Const, i32, i32, i32, i32);
    cusparseCreateCsr: (*mut Raw, i64, i64, i64, Raw, Raw, Raw, i32, i32, i32, i32);
    cusparseCreateConstCoo: (*mut Raw, i64, i64, i64, Const, Const, Const, i32, i32, i32);
    cusparseDestroySpMat: (Const);
    cusparseSpMatGetSize: (Const, *mut i64, *mut i64, *mut i64);
    cusparseCsrSetPointers: (Raw, Raw, Raw, Raw);
    cusparseCreateConstDnVec: (*mut Raw, i64, Const, i32);
    cusparseCreateDnVec: (*mut Raw, i64, Raw, i32);
    cusparseDestroyDnVec: (Const);
    cusparseCreateConstDnMat: (*mut Raw, i64, i64, i64, Const, i32, i32);
    cusparseCreateDnMat: (*mut Raw, i64, i64, i64, Raw, i32, i32);
    cusparseDestroyDnMat: (Const);
    cusparseSpMV: (Raw, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    cusparseSpMV_bufferSize: (Raw, i32, Const, Const, Const, Const, Raw, i32, i32, *mut usize);
    cusparseSpMM: (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    cusparseSpMM_bufferSize: (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, *mut usize);
    cusparseSpMM_preprocess: (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    cusparseSpGEMM_createDescr: (*mut Raw);
    cusparseSpGEMM_destroyDescr: (Raw);
    cusparseSpGEMM_workEstimation:
        (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw, *mut usize, Raw);
    cusparseSpGEMM_compute:
        (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw, *mut usize, Raw);
    cusparseSpGEMM_copy: (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    }
    optional {
    cusparseCreateConstBsr:
        (*mut Raw, i64, i64, i64, i64, i64, Const, Const, Const, i32, i32, i32, i32, i32);
    cusparseCreateConstSlicedEll:
        (*mut Raw, i64, i64, i64, i64, i64, Const, Const, Const, i32, i32, i32, i32);
    cusparseSpMV_preprocess: (Raw, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    cusparseSpGEMM_estimateMemory: (
        Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw, f32, *mut usize, Raw, *mut usize
    );
    cusparseSpGEMMreuse_workEstimation: (Raw, i32, i32, Const, Const, Raw, i32, Raw, *mut usize, Raw);
    cusparseSpGEMMreuse_nnz: (
        Raw, i32, i32, Const, Const, Raw, i32, Raw, *mut usize, Raw, *mut usize, Raw, *mut usize, Raw
    );
    cusparseSpGEMMreuse_copy: (Raw, i32, i32, Const, Const, Raw, i32, Raw, *mut usize, Raw);
    cusparseSpGEMMreuse_compute:
        (Raw, i32, i32, Const, Const, Const, Const, Raw, i32, i32, Raw);
    cusparseSpMVOp_bufferSize: (Raw, i32, Const, Const, Raw, Raw, i32, i32, *mut usize);
    cusparseSpMVOp_createDescr: (Raw, *mut Raw, i32, Const, Const, Raw, Raw, i32, i32, Raw);
    cusparseSpMVOp_destroyDescr: (Raw);
    cusparseSpMVOp_createPlan: (Raw, Raw, *mut Raw, Const, usize);
    cusparseSpMVOp_destroyPlan: (Raw);
    cusparseSpMVOp: (Raw, Raw, Const, Const, Const, Const, Raw);
    }
}

/// Returns the function, or an error that names it if it is missing.
pub fn need<F: Copy>(function: Option<F>, name: &str) -> Result<F> {
    Ok(function.ok_or_else(|| format!("this libcusparse has no {name}"))?)
}
