//! The enums of the C API. They are written out for cbindgen; their values are
//! those of `crate::types` and `crate::error`, which a test compares. No
//! function receives one as a Rust enum: arguments are `MaybeUninit` and pass
//! `boundary::check_enum`.

#![allow(non_camel_case_types)]

use crate::error::Status;
use crate::types;

/// An enum of the C API and what it stands for inside.
pub trait CEnum {
    /// The inner enum.
    type Value: Copy;
    /// Name of the C type.
    const C_NAME: &'static str;
    /// Inner value of an integer.
    fn from_code(code: i32) -> Option<Self::Value>;
    /// Integer of an inner value.
    fn code(value: Self::Value) -> i32;
}

/// What a call reports. Names and numbers are cuSPARSE's where the meaning is
/// the same; ours start at 100.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaStatus_t {
    /// The call did what it says.
    TARSIA_STATUS_SUCCESS = 0,
    /// The handle is NULL, destroyed, or of another kind.
    TARSIA_STATUS_NOT_INITIALIZED = 1,
    /// Memory could not be allocated; every object stays usable.
    TARSIA_STATUS_ALLOC_FAILED = 2,
    /// An argument is wrong; tarsiaGetLastErrorMessage names it.
    TARSIA_STATUS_INVALID_VALUE = 3,
    /// The device lacks a feature that the operation needs.
    TARSIA_STATUS_ARCH_MISMATCH = 4,
    /// Device memory could not be mapped.
    TARSIA_STATUS_MAPPING_ERROR = 5,
    /// A kernel could not be launched or failed.
    TARSIA_STATUS_EXECUTION_FAILED = 6,
    /// A fault of the library itself.
    TARSIA_STATUS_INTERNAL_ERROR = 7,
    /// The matrix type is not supported by the operation.
    TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
    /// A zero pivot was met (reserved for solvers).
    TARSIA_STATUS_ZERO_PIVOT = 9,
    /// The combination of operation, format, types and backend is not supported.
    TARSIA_STATUS_NOT_SUPPORTED = 10,
    /// The workspace or the memory limit is too small; the message says the
    /// bytes needed.
    TARSIA_STATUS_INSUFFICIENT_RESOURCES = 11,
    /// The call is not allowed in the object's present state.
    TARSIA_STATUS_INVALID_STATE = 100,
}

impl From<Status> for tarsiaStatus_t {
    fn from(status: Status) -> Self {
        match status {
            Status::Success => Self::TARSIA_STATUS_SUCCESS,
            Status::NotInitialized => Self::TARSIA_STATUS_NOT_INITIALIZED,
            Status::AllocFailed => Self::TARSIA_STATUS_ALLOC_FAILED,
            Status::InvalidValue => Self::TARSIA_STATUS_INVALID_VALUE,
            Status::ArchMismatch => Self::TARSIA_STATUS_ARCH_MISMATCH,
            Status::MappingError => Self::TARSIA_STATUS_MAPPING_ERROR,
            Status::ExecutionFailed => Self::TARSIA_STATUS_EXECUTION_FAILED,
            Status::InternalError => Self::TARSIA_STATUS_INTERNAL_ERROR,
            Status::MatrixTypeNotSupported => Self::TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
            Status::ZeroPivot => Self::TARSIA_STATUS_ZERO_PIVOT,
            Status::NotSupported => Self::TARSIA_STATUS_NOT_SUPPORTED,
            Status::InsufficientResources => Self::TARSIA_STATUS_INSUFFICIENT_RESOURCES,
            Status::InvalidState => Self::TARSIA_STATUS_INVALID_STATE,
        }
    }
}

/// Type of stored values; the numbers are those of cudaDataType.
///
/// An array that is to be aligned to its elements begins at a multiple of their size. Complex
/// numbers are aligned to the real type of their parts and need no more: 4 bytes for
/// TARSIA_C_32F, 8 for TARSIA_C_64F, as C aligns float complex and double complex and Fortran
/// complex(4) and complex(8). Multiples of 16 bytes are read and written in the fewest accesses.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaDataType_t {
    /// 32-bit real (float).
    TARSIA_R_32F = 0,
    /// 64-bit real (double).
    TARSIA_R_64F = 1,
    /// 16-bit IEEE half.
    TARSIA_R_16F = 2,
    /// 8-bit integer; no operation takes it yet.
    TARSIA_R_8I = 3,
    /// Complex of two floats, real part first.
    TARSIA_C_32F = 4,
    /// Complex of two doubles, real part first.
    TARSIA_C_64F = 5,
    /// 32-bit integer; no operation takes it yet.
    TARSIA_R_32I = 10,
    /// bfloat16.
    TARSIA_R_16BF = 14,
}

/// Type in which products are formed and summed; alpha and beta have it. The
/// numbers are those of cudaDataType, and 100 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaComputeType_t {
    /// 32-bit real; never silently TF32.
    ///
    /// A sum of n products of 16-bit values is off by at most 3 (n + 2) · 2^-23 · Σ|a · b|, before
    /// alpha, beta and one rounding to the type of y or C. On CUDA TARSIA_SPMV_ALG_DASP and
    /// TARSIA_SPMM_ALG_WINDOW, SMAT and DENSE (any of them may be DEFAULT) multiply 16-bit values on
    /// tensor cores, which align the products that they add by the exponents of the factors as stored,
    /// and a subnormal is stored with the least exponent. No product is lost, but in this bound a
    /// factor that is not 0 counts there as at least 2^-14 (fp16; bf16: 2^-126) in magnitude: small
    /// terms beside a subnormal times a large one keep fewer digits.
    ///
    /// Values of 32 bits on CUDA: TARSIA_SPMM_ALG_WINDOW (which may be DEFAULT) multiplies them on tensor
    /// cores, each in three parts of bf16, which are exact; six of the nine products of parts are added. A sum
    /// of n products is off by at most 3 n · 2^-23 · Σ|a · b|, and 2 · 2^-23 · |alpha · sum| for alpha and beta.
    /// Of a factor below 2^-110 in magnitude up to 2^-134 may be lost beside. TARSIA_SPMM_ALG_DENSE may take
    /// cublasLt, whose arithmetic is its own (CUBLAS_COMPUTE_32F). All others multiply and add 32-bit reals.
    TARSIA_COMPUTE_32F = 0,
    /// 64-bit real.
    TARSIA_COMPUTE_64F = 1,
    /// Complex of two floats.
    TARSIA_COMPUTE_C_32F = 4,
    /// Complex of two doubles.
    TARSIA_COMPUTE_C_64F = 5,
    /// 32-bit real whose factors may be rounded to TF32 before they are
    /// multiplied; alpha, beta and sums are 32-bit reals.
    TARSIA_COMPUTE_TF32 = 100,
    /// TARSIA_COMPUTE_32F by IEEE 754 operations of 32-bit reals alone: each product is exact, goes into its
    /// sum without being rounded (FMA; on CUDA always where a sum is kept in registers), or is rounded once;
    /// each addition is rounded to nearest; subnormals count. A sum of n products is off by at most
    /// n · 2^-24 · Σ|a · b| to the first order. No tensor cores, no cublasLt, no atomics: on CUDA
    /// TARSIA_SPMM_ALG_DENSE takes the library's own kernels and TARSIA_SPMM_ALG_SWIFT the form of
    /// deterministic mode. Takes the types of TARSIA_COMPUTE_32F, alpha and beta are as for it.
    /// NOT_SUPPORTED by name on CUDA: TARSIA_SPMM_ALG_WINDOW and SMAT, and for values of 16 bits
    /// TARSIA_SPMM_ALG_DENSE and TARSIA_SPMV_ALG_DASP; DEFAULT chooses among the others.
    TARSIA_COMPUTE_32F_PEDANTIC = 101,
    /// TARSIA_COMPUTE_64F by IEEE 754 operations of 64-bit reals alone, as above with 2^-53. Tensor cores
    /// multiply and add doubles by FMA, so that all algorithms of TARSIA_COMPUTE_64F take it, with
    /// DENSE by the library's own kernels and SWIFT in the form of deterministic mode.
    TARSIA_COMPUTE_64F_PEDANTIC = 102,
}

/// Width of offsets and indices.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaIndexType_t {
    /// 16-bit unsigned; reserved, no user array may have it.
    TARSIA_INDEX_16U = 1,
    /// 32-bit signed.
    TARSIA_INDEX_32I = 2,
    /// 64-bit signed.
    TARSIA_INDEX_64I = 3,
}

/// Number of the first row and column.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaIndexBase_t {
    /// Rows and columns count from 0.
    TARSIA_INDEX_BASE_ZERO = 0,
    /// Rows and columns count from 1.
    TARSIA_INDEX_BASE_ONE = 1,
}

/// op(A).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaOperation_t {
    /// A.
    TARSIA_OPERATION_NON_TRANSPOSE = 0,
    /// The transpose.
    TARSIA_OPERATION_TRANSPOSE = 1,
    /// The conjugate transpose.
    TARSIA_OPERATION_CONJUGATE_TRANSPOSE = 2,
}

/// Storage order of a dense matrix, and of the values inside a BSR block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaOrder_t {
    /// Columns are contiguous; ld is the distance between columns.
    TARSIA_ORDER_COL = 1,
    /// Rows are contiguous; ld is the distance between rows.
    TARSIA_ORDER_ROW = 2,
}

/// Format of a sparse matrix. 5 (blocked ELL) and 7 (sliced ELL) are reserved.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaFormat_t {
    /// Compressed sparse rows.
    TARSIA_FORMAT_CSR = 1,
    /// Compressed sparse columns.
    TARSIA_FORMAT_CSC = 2,
    /// Coordinates.
    TARSIA_FORMAT_COO = 3,
    /// Blocked compressed sparse rows.
    TARSIA_FORMAT_BSR = 6,
    /// Sparse tiles of 16 x 16 in memory of the library (tarsiaCreateTile).
    TARSIA_FORMAT_TILE = 100,
}

/// Where alpha and beta live.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaPointerMode_t {
    /// In host memory; read before the call returns.
    TARSIA_POINTER_MODE_HOST = 0,
    /// In the backend's memory; read when the operation runs.
    TARSIA_POINTER_MODE_DEVICE = 1,
}

/// Who executes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaBackend_t {
    /// CUDA where there is a driver and a device, else the host.
    TARSIA_BACKEND_AUTO = 0,
    /// Threads of the CPU.
    TARSIA_BACKEND_HOST = 1,
    /// An NVIDIA GPU.
    TARSIA_BACKEND_CUDA = 2,
    /// One thread, obviously right, slow: to check results against.
    TARSIA_BACKEND_REFERENCE = 3,
}

/// How much analysis may cost.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaEffort_t {
    /// Choose by the cost model. On a GPU what decides is counted in the pattern
    /// first (for SpMV where the rows of op(A) are stored in place); else, and on
    /// the CPU backends, shapes choose.
    TARSIA_EFFORT_DEFAULT = 0,
    /// Convert nothing where the format allows it, and look at shapes alone.
    TARSIA_EFFORT_QUICK = 1,
    /// Build and time the best candidates of the cost model (SpMV and SpMM); not
    /// reproducible, so deterministic mode refuses it.
    TARSIA_EFFORT_TUNED = 2,
}

/// Row reordering. The policies by name (values from 2 on) say in which order the rows of
/// op(A) are worked on, by SpMV's CSR and by SpMM's ROW and CSR; most are those of Mehrabi et
/// al., "Learning sparse matrix row permutations for efficient SpMM on GPU architectures"
/// (ISPASS 2021, section III), for blocks of 32 warps of which warp i has the rows i, i + 32,
/// i + 64 and so on of the order. A row's *load* is ceil(entries / 32); two rows are as *near* as their
/// entries are in the same blocks of 32 columns (Hamming distance of bit masks). Near rows are
/// found among candidates, in time near linear in the entries, not among all as in the paper.
/// What is still equal goes by the rows' numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaReorder_t {
    /// The library decides.
    TARSIA_REORDER_AUTO = 0,
    /// Keep the user's order.
    TARSIA_REORDER_NONE = 1,
    /// By falling load.
    TARSIA_REORDER_PLAIN_SORT = 2,
    /// By falling load, every second 32 rows backwards.
    TARSIA_REORDER_FLIPPED_SORT = 3,
    /// Longest processing time: by falling load, each row to the warp with the least load so
    /// far that has not its share of rows yet.
    TARSIA_REORDER_LPT = 4,
    /// Each row is near to the one 32 positions before it, which the same warp has.
    TARSIA_REORDER_WARP_AWARE = 5,
    /// Each row is near to the one before it, which the next warp has.
    TARSIA_REORDER_CTA_AWARE = 6,
    /// By falling load; of equal loads, each row is near to the one before it.
    TARSIA_REORDER_HYBRID_1 = 7,
    /// CTA_AWARE; of equally near rows the one of a load nearest to that of the row before.
    TARSIA_REORDER_HYBRID_2_1 = 8,
    /// CTA_AWARE; of equally near rows the one nearest to the row 32 positions before.
    TARSIA_REORDER_HYBRID_2_2 = 9,
    /// WARP_AWARE; of equally near rows the one of a load nearest to that of the row before.
    TARSIA_REORDER_HYBRID_2_3 = 10,
    /// Densified CSR: rows with entries first, those without last.
    TARSIA_REORDER_DCSR = 11,
    /// Reverse Cuthill-McKee of the pattern of A and its transpose; op(A) must be square.
    TARSIA_REORDER_RCM = 12,
    /// By the numbers of which the masks of the blocks of 32 columns are the Gray codes.
    TARSIA_REORDER_GRAY_CODE = 13,
}

/// SpMV algorithm. Values from 6 on are reserved for the layouts by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaSpMVAlg_t {
    /// The library chooses.
    TARSIA_SPMV_ALG_DEFAULT = 0,
    /// Rows of CSR.
    TARSIA_SPMV_ALG_CSR = 1,
    /// Slices of rows that are sorted by length (SELL-C-sigma), with columns of 16
    /// bits where they fit; on CUDA as many lanes a row as its length deserves, and
    /// for large matrices in which few columns have most entries x of those in
    /// shared memory. A copy that analysis makes.
    TARSIA_SPMV_ALG_SELL = 2,
    /// Equal tiles of nonzeros (merge path, CSR5), with columns of 16 bits where
    /// they fit: the same work for every warp whatever the lengths of the rows. A
    /// copy that analysis makes.
    TARSIA_SPMV_ALG_STREAM = 3,
    /// DASP (Lu, Liu 2023): long, medium and short rows, in blocks that matrix units
    /// multiply (fp64, fp16, bf16; other types by fused multiply-adds). A copy that
    /// analysis makes.
    TARSIA_SPMV_ALG_DASP = 4,
    /// Blocks of 8 or 4 rows and 4 columns, whichever take fewer bytes: a bit a place
    /// says which entries exist, and only those are stored. Reads least where blocks
    /// are at least a quarter full, as in matrices with several unknowns a node. A
    /// copy that analysis makes. Sums of a row are added in an order of their own, the
    /// same from run to run. Up to 2^31 - 1 rows and columns of op(A).
    TARSIA_SPMV_ALG_MASK_BLOCK = 5,
}

/// SpMM algorithm. Other values up to 255 are reserved for the layouts by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaSpMMAlg_t {
    /// The library chooses.
    TARSIA_SPMM_ALG_DEFAULT = 0,
    /// Rows of CSR, tiles over the columns of B.
    TARSIA_SPMM_ALG_ROW = 1,
    /// Windows of 8, 16, 32 or 64 rows with the columns that they have, for matrix
    /// units: a row of B is read once a window and not once an entry. Half types (fp16,
    /// bf16) in dense tiles with sums in fp32; fp32, TF32 and fp64 as the entries alone,
    /// with a mask for 8 rows and 8 columns. On CUDA rows of like columns are put into the
    /// same windows where a model says that this pays, unless tarsiaPlan_setReorder says
    /// NONE. A copy that analysis makes. Sums of a row are added in an order of their own,
    /// the same from run to run. Up to 2^31 - 1 rows and columns of op(A).
    TARSIA_SPMM_ALG_WINDOW = 2,
    /// BCSR after Okanovic et al., SMaT (SC 2024): blocks of 16 rows and 8 columns, or 16 of
    /// fp16 and bf16, dense, wherever op(A) has an entry in them, multiplied by matrix units;
    /// tarsiaPlan_setBlockDims chooses, or the paper's model of their times (T = T_e · n_e +
    /// T_init). Halves have sums in fp32. Rows of like columns are put into the same blocks
    /// where the model gains by it, unless tarsiaPlan_setReorder says NONE. Best where blocks are well
    /// filled: a block costs the same with one entry as with all. A copy that analysis makes.
    /// Sums of a row are added in an order of their own, the same from run to run. Up to
    /// 2^31 - 1 rows and columns of op(A), less than 2^31 blocks.
    TARSIA_SPMM_ALG_SMAT = 3,
    /// op(A) with all its zeros, by a product of dense matrices: for pruned layers. On
    /// CUDA small ones by kernels of the library, others by cublasLt where that is installed;
    /// in a plan that is analyzed in deterministic mode (tarsiaSetDeterministic) all by kernels of the
    /// library, and a plan that takes cublasLt is refused there. Real types of one width for A and B. Of a row whose product is not finite, what is not
    /// finite is computed again from the stored entries, so that an Inf in B reaches
    /// only what an entry says. Rows are added in an order of their own, the same from
    /// run to run (of cublasLt, with one version of it). NOT_SUPPORTED where the dense matrix would take more than 64 MiB and
    /// more than 64 times the bytes of the stored entries.
    TARSIA_SPMM_ALG_DENSE = 4,
    /// Slices of rows that are sorted by length, with 16-bit columns, as SpMV's; fast for
    /// up to 16 columns. Real types. A copy that analysis makes. Up to 2^31 - 1 rows and
    /// columns of op(A).
    TARSIA_SPMM_ALG_SELL = 5,
    /// Columns of op(A) sorted by length, after Hu et al., Swift: blocks of entries of 32
    /// neighbouring columns, eight of which have their entries added by row before these
    /// sums go to C, and the entries that make no whole block, by columns. fp32 and fp64. On
    /// CUDA sums meet in C by atomics, so that the last bits differ from run to run; a plan
    /// that is analyzed in deterministic mode (tarsiaSetDeterministic) takes bands of 16 rows
    /// instead, whose entries are sorted by column, and a plan that was not is refused there.
    /// A copy that analysis makes. Only by name: the library never chooses it. Up to
    /// 2^31 - 1 rows and columns of op(A).
    TARSIA_SPMM_ALG_SWIFT = 6,
    /// CSR in the output-stationary form of Mehrabi et al. (2021, algorithm 1): on CUDA a block
    /// of 32 warps has a few columns of B and C and goes over the rows of op(A), row i by warp
    /// i mod 32, lanes along its entries. Made for B and C by columns and for comparing the
    /// orders of tarsiaPlan_setReorder; ROW is faster on nearly all matrices. Chosen by name
    /// only.
    TARSIA_SPMM_ALG_CSR = 7,
}

/// SpGEMM algorithm. Values from 3 on are reserved for the layouts by name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaSpGEMMAlg_t {
    /// The library chooses: HASH, or on a device (unless effort is QUICK) TILE.
    TARSIA_SPGEMM_ALG_DEFAULT = 0,
    /// Gustavson's row products with hash or dense accumulators.
    TARSIA_SPGEMM_ALG_HASH = 1,
    /// Sparse tiles of 16 x 16 after Niu et al., TileSpGEMM (PPoPP 2022): A and B are copied
    /// into tiles with masks of 16 bits a row, the tiles of C are found first, then their masks,
    /// then their values, in registers. Best where tiles hold many entries: a pair of tiles of
    /// one entry costs about as much as one of ten. Sums are the same from run to run; entries of A
    /// or B at one place are added up first. Up to 2^31 - 1 rows and columns, less than 2^32
    /// tiles of A and of B. tarsiaSpGEMM_symbolic takes about 120 bytes for each tile that a tile of
    /// A and one of B may meet in; where they are missing, some rows of tiles at a time.
    TARSIA_SPGEMM_ALG_TILE = 2,
}

/// What a plan computes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaOpKind_t {
    /// Sparse matrix times dense vector.
    TARSIA_OP_SPMV = 1,
    /// Sparse matrix times dense matrix.
    TARSIA_OP_SPMM = 2,
    /// Sparse matrix times sparse matrix.
    TARSIA_OP_SPGEMM = 3,
}

/// What analysis built.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaLayout_t {
    /// The plan is not analyzed.
    TARSIA_LAYOUT_NONE = 0,
    /// CSR: the user's own arrays, or a copy with sorted rows and 32-bit columns.
    TARSIA_LAYOUT_CSR = 1,
    /// A list of (row, column, value), of the reference backend.
    TARSIA_LAYOUT_TRIPLETS = 2,
    /// Slices of rows that are sorted by length (SELL-C-sigma).
    TARSIA_LAYOUT_SELL = 3,
    /// Equal tiles of nonzeros.
    TARSIA_LAYOUT_STREAM = 4,
    /// Rows in classes by length, in blocks of 8 rows and 4 places (DASP).
    TARSIA_LAYOUT_DASP = 5,
    /// Blocks of 8 or 4 rows and 4 columns with bit masks and packed values.
    TARSIA_LAYOUT_MASK_BLOCK = 6,
    /// Windows of rows with the columns that they have, in dense tiles or packed.
    TARSIA_LAYOUT_WINDOW = 7,
    /// Dense blocks of 16 rows at multiples of their width (BCSR).
    TARSIA_LAYOUT_BCSR = 8,
    /// op(A) with all its zeros, by rows.
    TARSIA_LAYOUT_DENSE = 9,
    /// Sparse tiles of 16 x 16 with bit masks.
    TARSIA_LAYOUT_TILE = 10,
    /// Columns sorted by length, in blocks of 32 (Swift).
    TARSIA_LAYOUT_SWIFT = 11,
}

/// Parts of the version number.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaProperty_t {
    /// Major version.
    TARSIA_PROPERTY_MAJOR_VERSION = 0,
    /// Minor version.
    TARSIA_PROPERTY_MINOR_VERSION = 1,
    /// Patch level.
    TARSIA_PROPERTY_PATCH_LEVEL = 2,
}

/// Weight of a log line.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tarsiaLogLevel_t {
    /// A call failed.
    TARSIA_LOG_ERROR = 1,
    /// Something works, but not as well as it could.
    TARSIA_LOG_WARNING = 2,
    /// What analysis chose, and why.
    TARSIA_LOG_INFO = 3,
}

impl From<types::LogLevel> for tarsiaLogLevel_t {
    fn from(level: types::LogLevel) -> Self {
        match level {
            types::LogLevel::Error => Self::TARSIA_LOG_ERROR,
            types::LogLevel::Warning => Self::TARSIA_LOG_WARNING,
            types::LogLevel::Info => Self::TARSIA_LOG_INFO,
        }
    }
}

macro_rules! bind {
    ($($c:ident => $value:path;)*) => {
        $(impl CEnum for $c {
            type Value = $value;
            const C_NAME: &'static str = stringify!($c);
            fn from_code(code: i32) -> Option<$value> { <$value>::from_code(code) }
            fn code(value: $value) -> i32 { value.code() }
        })*

        /// Every C enum: its name and its (enumerator, value) pairs as the
        /// inside of the library knows them. Tests compare the header and the
        /// Fortran module with it.
        pub fn all() -> Vec<(&'static str, Vec<(&'static str, i32)>)> {
            vec![$((stringify!($c), <$value>::ALL.iter().map(|v| (v.c_name(), v.code())).collect()),)*]
        }
    };
}

bind! {
    tarsiaStatus_t => Status;
    tarsiaDataType_t => types::DataType;
    tarsiaComputeType_t => types::ComputeType;
    tarsiaIndexType_t => types::IndexType;
    tarsiaIndexBase_t => types::IndexBase;
    tarsiaOperation_t => types::Operation;
    tarsiaOrder_t => types::Order;
    tarsiaFormat_t => types::Format;
    tarsiaPointerMode_t => types::PointerMode;
    tarsiaBackend_t => types::BackendKind;
    tarsiaEffort_t => types::Effort;
    tarsiaReorder_t => types::Reorder;
    tarsiaSpMVAlg_t => types::SpmvAlg;
    tarsiaSpMMAlg_t => types::SpmmAlg;
    tarsiaSpGEMMAlg_t => types::SpgemmAlg;
    tarsiaOpKind_t => types::OpKind;
    tarsiaLayout_t => types::LayoutKind;
    tarsiaProperty_t => types::Property;
    tarsiaLogLevel_t => types::LogLevel;
}
