//! The enums of the library, each written once: C type, name in Rust, and for every value its name in Rust,
//! its number and its C enumerator. The comments are also those of include/tarsia.h.
//!
//! `code_enums!` reads the list twice: src/types.rs defines the Rust enums from it, and the build script
//! (build/enums.rs) the `#[repr(C)]` ones, from which cbindgen writes the header. scripts/fortran-module.py
//! derives the Fortran module from the header. Nothing else may stand in this file.

code_enums! {
    /// Status that a call returns. Names and numbers are cuSPARSE's where the meaning is the same; additional
    /// ones have numbers from 100 on.
    pub enum Status = tarsiaStatus_t {
        /// The call succeeded.
        Success = 0, TARSIA_STATUS_SUCCESS;
        /// The handle is NULL, destroyed, or another kind of object.
        NotInitialized = 1, TARSIA_STATUS_NOT_INITIALIZED;
        /// Memory could not be allocated; every object stays usable.
        AllocFailed = 2, TARSIA_STATUS_ALLOC_FAILED;
        /// An argument is wrong; tarsiaGetLastErrorMessage names it.
        InvalidValue = 3, TARSIA_STATUS_INVALID_VALUE;
        /// The library has no machine code for the device, and the driver cannot compile its PTX.
        ArchMismatch = 4, TARSIA_STATUS_ARCH_MISMATCH;
        /// Device memory could not be mapped.
        MappingError = 5, TARSIA_STATUS_MAPPING_ERROR;
        /// A kernel could not be launched or failed.
        ExecutionFailed = 6, TARSIA_STATUS_EXECUTION_FAILED;
        /// An internal error of the library, or an error of CUDA that has no status of its own.
        InternalError = 7, TARSIA_STATUS_INTERNAL_ERROR;
        /// The matrix type is not supported by the operation.
        MatrixTypeNotSupported = 8, TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
        /// A zero pivot was met (reserved for solvers).
        ZeroPivot = 9, TARSIA_STATUS_ZERO_PIVOT;
        /// The combination of operation, format, types and backend is not supported.
        NotSupported = 10, TARSIA_STATUS_NOT_SUPPORTED;
        /// A workspace, a buffer or the memory limit is too small, or C is larger than the device's memory;
        /// the message gives the bytes needed.
        InsufficientResources = 11, TARSIA_STATUS_INSUFFICIENT_RESOURCES;
        /// The call is not allowed in the object's present state.
        InvalidState = 100, TARSIA_STATUS_INVALID_STATE;
    }

    /// Type of stored values; the numbers are those of cudaDataType.
    ///
    /// An array that is to be aligned to its elements begins at a multiple of their size. Complex
    /// numbers are aligned to the real type of their parts and need no more: 4 bytes for
    /// TARSIA_C_32F, 8 for TARSIA_C_64F, as C aligns float complex and double complex and Fortran
    /// complex(4) and complex(8). Multiples of 16 bytes are read and written in the fewest accesses.
    pub enum DataType = tarsiaDataType_t {
        /// 32-bit real (float).
        R32F = 0, TARSIA_R_32F;
        /// 64-bit real (double).
        R64F = 1, TARSIA_R_64F;
        /// 16-bit IEEE half.
        R16F = 2, TARSIA_R_16F;
        /// 8-bit integer; no operation takes it yet.
        R8I = 3, TARSIA_R_8I;
        /// Complex of two floats, real part first.
        C32F = 4, TARSIA_C_32F;
        /// Complex of two doubles, real part first.
        C64F = 5, TARSIA_C_64F;
        /// 32-bit integer; no operation takes it yet.
        R32I = 10, TARSIA_R_32I;
        /// bfloat16.
        R16BF = 14, TARSIA_R_16BF;
    }

    /// Type in which products are formed and summed; alpha and beta have it. The numbers are those of
    /// cudaDataType; additional types have numbers from 100 on.
    pub enum ComputeType = tarsiaComputeType_t {
        /// 32-bit real; never silently TF32.
        ///
        /// A sum of n products of 16-bit values is off by at most 3 (n + 2) · 2^-23 · Σ|a · b|, before alpha,
        /// beta and one rounding to the type of y or C. On CUDA TARSIA_SPMV_ALG_DASP and
        /// TARSIA_SPMM_ALG_WINDOW, SMAT and DENSE (any of them may be DEFAULT), and TARSIA_SPGEMM_ALG_HASH
        /// where both factors are nearly dense, multiply 16-bit values on tensor cores, which align the
        /// products that they add by the exponents of the factors as stored, and a subnormal is stored with
        /// the least exponent. No product is lost, but in this bound a factor that is not 0 counts there as
        /// at least 2^-14 (fp16; bf16: 2^-126) in magnitude: small terms beside a subnormal times a large one
        /// keep fewer digits.
        ///
        /// Values of 32 bits on CUDA: TARSIA_SPMM_ALG_WINDOW, and DENSE where nHint is 48 or more and the
        /// product so large that the device gains by it (both may be DEFAULT), multiply them on tensor cores,
        /// each split exactly into three parts of bf16; six of the nine products of parts are added. A sum of
        /// n products is off by at most 3 n · 2^-23 · Σ|a · b|, and 2 · 2^-23 · |alpha · sum| for alpha and
        /// beta. In addition, up to 2^-134 may be lost of a factor below 2^-110 in magnitude. Otherwise
        /// TARSIA_SPMM_ALG_DENSE may use cublasLt, whose arithmetic is its own (CUBLAS_COMPUTE_32F). All
        /// other algorithms multiply and add 32-bit reals.
        R32F = 0, TARSIA_COMPUTE_32F;
        /// 64-bit real.
        R64F = 1, TARSIA_COMPUTE_64F;
        /// Complex of two floats.
        C32F = 4, TARSIA_COMPUTE_C_32F;
        /// Complex of two doubles.
        C64F = 5, TARSIA_COMPUTE_C_64F;
        /// 32-bit real whose factors may be rounded to TF32 before they are
        /// multiplied; alpha, beta and sums are 32-bit reals.
        Tf32 = 100, TARSIA_COMPUTE_TF32;
        /// TARSIA_COMPUTE_32F by IEEE 754 operations of 32-bit reals alone: each product is exact and added
        /// to its sum without being rounded (FMA; on CUDA always where a sum is kept in registers), or is
        /// rounded once; each addition is rounded to nearest; subnormals count. A sum of n products is off by
        /// at most n · 2^-24 · Σ|a · b| to the first order. No tensor cores, no cublasLt, no atomics: on CUDA
        /// TARSIA_SPMM_ALG_DENSE uses the library's own kernels and TARSIA_SPMM_ALG_SWIFT the form of
        /// deterministic mode. Takes the types of TARSIA_COMPUTE_32F; alpha and beta are as for it.
        /// NOT_SUPPORTED if chosen by name on CUDA: TARSIA_SPMM_ALG_WINDOW and SMAT, and for values of 16
        /// bits TARSIA_SPMM_ALG_DENSE and TARSIA_SPMV_ALG_DASP; DEFAULT chooses among the others. (On CUDA
        /// TARSIA_SPGEMM_ALG_TILE multiplies and adds 32-bit values as doubles, also on tensor cores, and
        /// rounds each sum once.)
        R32FPedantic = 101, TARSIA_COMPUTE_32F_PEDANTIC;
        /// TARSIA_COMPUTE_64F by IEEE 754 operations of 64-bit reals alone, with the bound above for 2^-53.
        /// Tensor cores multiply and add doubles by FMA, so that all algorithms of TARSIA_COMPUTE_64F take
        /// it, with DENSE by the library's own kernels and SWIFT in the form of deterministic mode.
        R64FPedantic = 102, TARSIA_COMPUTE_64F_PEDANTIC;
    }

    /// Width of offsets and indices.
    pub enum IndexType = tarsiaIndexType_t {
        /// 16-bit unsigned; reserved, no user array may have it.
        U16 = 1, TARSIA_INDEX_16U;
        /// 32-bit signed.
        I32 = 2, TARSIA_INDEX_32I;
        /// 64-bit signed.
        I64 = 3, TARSIA_INDEX_64I;
    }

    /// Index base: number of the first row and column.
    pub enum IndexBase = tarsiaIndexBase_t {
        /// Rows and columns count from 0.
        Zero = 0, TARSIA_INDEX_BASE_ZERO;
        /// Rows and columns count from 1.
        One = 1, TARSIA_INDEX_BASE_ONE;
    }

    /// Operation op(A) that is applied to a matrix.
    pub enum Operation = tarsiaOperation_t {
        /// A itself.
        NonTranspose = 0, TARSIA_OPERATION_NON_TRANSPOSE;
        /// The transpose of A.
        Transpose = 1, TARSIA_OPERATION_TRANSPOSE;
        /// The conjugate transpose of A.
        ConjugateTranspose = 2, TARSIA_OPERATION_CONJUGATE_TRANSPOSE;
    }

    /// Storage order of a dense matrix, and of the values inside a BSR block.
    pub enum Order = tarsiaOrder_t {
        /// Columns are contiguous; ld is the distance between columns.
        Col = 1, TARSIA_ORDER_COL;
        /// Rows are contiguous; ld is the distance between rows.
        Row = 2, TARSIA_ORDER_ROW;
    }

    /// Format of a sparse matrix. 5 (blocked ELL) and 7 (sliced ELL) are reserved.
    pub enum Format = tarsiaFormat_t {
        /// Compressed sparse rows.
        Csr = 1, TARSIA_FORMAT_CSR;
        /// Compressed sparse columns.
        Csc = 2, TARSIA_FORMAT_CSC;
        /// Coordinates.
        Coo = 3, TARSIA_FORMAT_COO;
        /// Blocked compressed sparse rows.
        Bsr = 6, TARSIA_FORMAT_BSR;
        /// Sparse tiles of 16 x 16 in memory of the library (tarsiaCreateTile).
        Tile = 100, TARSIA_FORMAT_TILE;
    }

    /// Location of the scalars alpha and beta.
    pub enum PointerMode = tarsiaPointerMode_t {
        /// In host memory; read before the call returns.
        Host = 0, TARSIA_POINTER_MODE_HOST;
        /// In the backend's memory; read when the operation runs.
        Device = 1, TARSIA_POINTER_MODE_DEVICE;
    }

    /// Backend that executes a product.
    pub enum BackendKind = tarsiaBackend_t {
        /// CUDA where there is a driver and a device, else the host.
        Auto = 0, TARSIA_BACKEND_AUTO;
        /// Threads of the CPU.
        Host = 1, TARSIA_BACKEND_HOST;
        /// An NVIDIA GPU.
        Cuda = 2, TARSIA_BACKEND_CUDA;
        /// One thread; slow, but simple enough to check other results against.
        Reference = 3, TARSIA_BACKEND_REFERENCE;
    }

    /// Effort that analysis may spend.
    pub enum Effort = tarsiaEffort_t {
        /// Choose by the cost model. On a GPU the statistics that decide are counted in the pattern first
        /// (for SpMV where the rows of op(A) are stored in place); otherwise, and on the CPU backends, the
        /// model uses shapes alone.
        Default = 0, TARSIA_EFFORT_DEFAULT;
        /// Convert nothing where the format allows it, and use shapes alone.
        Quick = 1, TARSIA_EFFORT_QUICK;
        /// Build and time the best candidates of the cost model (SpMV and SpMM); not reproducible, so
        /// deterministic mode refuses it.
        Tuned = 2, TARSIA_EFFORT_TUNED;
    }

    /// Row reordering. The named policies (values from 2 on) give the order in which the rows of op(A) are
    /// processed, by SpMV's CSR and by SpMM's ROW and CSR; most are those of Mehrabi et al., "Learning sparse
    /// matrix row permutations for efficient SpMM on GPU architectures" (ISPASS 2021, section III), for
    /// blocks of 32 warps of which warp i takes the rows i, i + 32, i + 64 and so on of the order. A row's
    /// *load* is ceil(entries / 32); how *near* two rows are is the Hamming distance of their bit masks,
    /// which have a bit for each block of 32 columns, set where the row has an entry. Near rows are searched
    /// among candidates, in time near linear in the entries, not among all rows as in the paper. Remaining
    /// ties are broken by the rows' numbers.
    pub enum Reorder = tarsiaReorder_t {
        /// The library decides.
        Auto = 0, TARSIA_REORDER_AUTO;
        /// Keep the user's order.
        None = 1, TARSIA_REORDER_NONE;
        /// Rows by falling load.
        PlainSort = 2, TARSIA_REORDER_PLAIN_SORT;
        /// Rows by falling load, every second group of 32 reversed.
        FlippedSort = 3, TARSIA_REORDER_FLIPPED_SORT;
        /// Longest processing time: by falling load, each row goes to the warp with the least load so far
        /// that does not have its share of rows yet.
        Lpt = 4, TARSIA_REORDER_LPT;
        /// Each row is near to the one 32 positions before it, which the same warp takes.
        WarpAware = 5, TARSIA_REORDER_WARP_AWARE;
        /// Each row is near to the one before it, which the previous warp takes.
        CtaAware = 6, TARSIA_REORDER_CTA_AWARE;
        /// Rows by falling load; of equal loads, each row is near to the one before it.
        Hybrid1 = 7, TARSIA_REORDER_HYBRID_1;
        /// CTA_AWARE; of equally near rows the one of a load nearest to that of the row before.
        Hybrid21 = 8, TARSIA_REORDER_HYBRID_2_1;
        /// CTA_AWARE; of equally near rows the one nearest to the row 32 positions before.
        Hybrid22 = 9, TARSIA_REORDER_HYBRID_2_2;
        /// WARP_AWARE; of equally near rows the one of a load nearest to that of the row before.
        Hybrid23 = 10, TARSIA_REORDER_HYBRID_2_3;
        /// Densified CSR: rows with entries first, those without last.
        Dcsr = 11, TARSIA_REORDER_DCSR;
        /// Reverse Cuthill-McKee of the pattern of A and its transpose; op(A) must be square.
        Rcm = 12, TARSIA_REORDER_RCM;
        /// Rows ascending by the numbers whose Gray codes are their bit masks.
        GrayCode = 13, TARSIA_REORDER_GRAY_CODE;
        /// The order, among those above and the user's, for which the product's time is predicted to be
        /// least, by a small network that takes 24 features of the pattern and was trained on times of an
        /// H100. tarsiaPlan_getInfo reports which; NOT_SUPPORTED for a product for which no network was
        /// trained.
        Learned = 14, TARSIA_REORDER_LEARNED;
    }

    /// SpMV algorithm. Values from 6 on are reserved for further layouts.
    pub enum SpmvAlg = tarsiaSpMVAlg_t {
        /// The library chooses.
        Default = 0, TARSIA_SPMV_ALG_DEFAULT;
        /// Rows of CSR.
        Csr = 1, TARSIA_SPMV_ALG_CSR;
        /// Slices of rows that are sorted by length (SELL-C-sigma), with columns of 16 bits where they fit;
        /// on CUDA longer rows take more lanes, and for large matrices in which few columns have most
        /// entries, x of those columns is kept in shared memory. Analysis makes a copy.
        Sell = 2, TARSIA_SPMV_ALG_SELL;
        /// Equal tiles of nonzeros (merge path, CSR5), with columns of 16 bits where they fit: the same work
        /// for every warp whatever the lengths of the rows. Analysis makes a copy.
        Stream = 3, TARSIA_SPMV_ALG_STREAM;
        /// DASP (Lu, Liu 2023): long, medium and short rows, in blocks that matrix units multiply (fp64,
        /// fp16, bf16; other types by fused multiply-adds). Analysis makes a copy.
        Dasp = 4, TARSIA_SPMV_ALG_DASP;
        /// Blocks of 8 or 4 rows and 4 columns, whichever take fewer bytes: a bit mask says which entries
        /// exist, and only those are stored. Reads the fewest bytes where blocks are at least a quarter full,
        /// as in matrices with several unknowns per node. Analysis makes a copy. The sums of a row are added
        /// in an order different from CSR's, but the same from run to run. Up to 2^31 - 1 rows and columns of
        /// op(A).
        MaskBlock = 5, TARSIA_SPMV_ALG_MASK_BLOCK;
    }

    /// SpMM algorithm. Other values up to 255 are reserved for further layouts.
    pub enum SpmmAlg = tarsiaSpMMAlg_t {
        /// The library chooses.
        Default = 0, TARSIA_SPMM_ALG_DEFAULT;
        /// Rows of CSR, tiles over the columns of B.
        Row = 1, TARSIA_SPMM_ALG_ROW;
        /// Windows of 8, 16, 32 or 64 rows with the union of their columns, for matrix units: a row of B is
        /// read once per window instead of once per entry. Half types (fp16, bf16) are stored in dense tiles
        /// and summed in fp32; fp32, TF32 and fp64 are stored as the entries alone, with a mask for 8 rows
        /// and 8 columns. On CUDA rows with similar columns are put into the same windows where a model
        /// predicts that this pays, unless tarsiaPlan_setReorder says NONE. Analysis makes a copy. The sums
        /// of a row are added in an order different from CSR's, but the same from run to run. Up to 2^31 - 1
        /// rows and columns of op(A).
        Window = 2, TARSIA_SPMM_ALG_WINDOW;
        /// BCSR after Okanovic et al., SMaT (SC 2024): dense blocks of 16 rows and 8 columns, or 16 columns
        /// for fp16 and bf16, wherever op(A) has an entry in them, multiplied by matrix units;
        /// tarsiaPlan_setBlockDims chooses the size, or else the paper's time model (T = T_e · n_e + T_init).
        /// Halves are summed in fp32. Rows with similar columns are put into the same blocks where the model
        /// gains by it, unless tarsiaPlan_setReorder says NONE. Best where blocks are well filled: a block
        /// costs the same with one entry as with all. Analysis makes a copy. The sums of a row are added in
        /// an order different from CSR's, but the same from run to run. Up to 2^31 - 1 rows and columns of
        /// op(A), less than 2^31 blocks.
        Smat = 3, TARSIA_SPMM_ALG_SMAT;
        /// op(A) with all its zeros, by a product of dense matrices: for pruned layers. On CUDA small
        /// products, and values of 32 bits with TARSIA_COMPUTE_32F and an nHint of 48 or more, are computed
        /// by kernels of the library, others by cublasLt where that is installed; in a plan that is analyzed
        /// in deterministic mode (tarsiaSetDeterministic) all are computed by kernels of the library, and a
        /// plan that uses cublasLt is refused there. A and B must have real types of one width. Results that
        /// are not finite are computed again from the stored entries, so that an Inf in B affects only
        /// results that a stored entry multiplies it into. Rows are added in an order different from CSR's,
        /// but the same from run to run (with cublasLt, for one version of it). NOT_SUPPORTED where the dense
        /// matrix would take more than 64 MiB and more than 64 times the bytes of the stored entries.
        Dense = 4, TARSIA_SPMM_ALG_DENSE;
        /// Slices of rows that are sorted by length, with 16-bit columns, as for SpMV; fast for up to 16
        /// columns of B. Real types. Analysis makes a copy. Up to 2^31 - 1 rows and columns of op(A).
        Sell = 5, TARSIA_SPMM_ALG_SELL;
        /// Columns of op(A) sorted by length, after Hu et al., Swift: blocks with an entry of each of 32
        /// neighbouring columns, eight of which have their entries added by row before these sums are added
        /// to C, and the entries that fill no whole block, by columns. fp32 and fp64. On CUDA sums are added
        /// to C by atomics, so that the last bits differ from run to run; a plan that is analyzed in
        /// deterministic mode (tarsiaSetDeterministic) uses bands of 16 rows instead, whose entries are
        /// sorted by column, and a plan that was not is refused there. Analysis makes a copy. Only by name:
        /// the library never chooses it. Up to 2^31 - 1 rows and columns of op(A).
        Swift = 6, TARSIA_SPMM_ALG_SWIFT;
        /// CSR in the output-stationary form of Mehrabi et al. (2021, algorithm 1): on CUDA a block of 32
        /// warps takes a few columns of B and C and goes over the rows of op(A), row i by warp i mod 32,
        /// lanes along its entries. Made for B and C in column-major order and for comparing the orders of
        /// tarsiaPlan_setReorder; ROW is faster on nearly all matrices. Only by name: the library never
        /// chooses it.
        Csr = 7, TARSIA_SPMM_ALG_CSR;
    }

    /// SpGEMM algorithm. Values from 3 on are reserved for further layouts.
    pub enum SpgemmAlg = tarsiaSpGEMMAlg_t {
        /// The library chooses: HASH, or on a device (unless effort is QUICK) TILE.
        Default = 0, TARSIA_SPGEMM_ALG_DEFAULT;
        /// Gustavson's row products with hash or dense accumulators.
        Hash = 1, TARSIA_SPGEMM_ALG_HASH;
        /// Sparse tiles of 16 x 16 after Niu et al., TileSpGEMM (PPoPP 2022): A and B are copied into tiles
        /// with masks of 16 bits per row; the tiles of C are found first, then their masks, then their
        /// values, in registers. Best where tiles hold many entries: a pair of tiles of one entry costs about
        /// as much as one of ten. Sums are the same from run to run; entries of A or B with the same row and
        /// column are added up first. Up to 2^31 - 1 rows and columns, less than 2^32 tiles of A and of B.
        /// tarsiaSpGEMM_symbolic takes about 120 bytes for each tile in which a tile of A and one of B may
        /// meet; where that much memory is not available, it processes some rows of tiles at a time.
        Tile = 2, TARSIA_SPGEMM_ALG_TILE;
    }

    /// Operation of a plan.
    pub enum OpKind = tarsiaOpKind_t {
        /// Sparse matrix times dense vector.
        Spmv = 1, TARSIA_OP_SPMV;
        /// Sparse matrix times dense matrix.
        Spmm = 2, TARSIA_OP_SPMM;
        /// Sparse matrix times sparse matrix.
        Spgemm = 3, TARSIA_OP_SPGEMM;
    }

    /// Layout that analysis has built.
    pub enum LayoutKind = tarsiaLayout_t {
        /// The plan is not analyzed.
        None = 0, TARSIA_LAYOUT_NONE;
        /// CSR: the user's own arrays, or a copy with sorted rows and 32-bit columns.
        Csr = 1, TARSIA_LAYOUT_CSR;
        /// A list of (row, column, value), which the reference backend uses.
        Triplets = 2, TARSIA_LAYOUT_TRIPLETS;
        /// Slices of rows that are sorted by length (SELL-C-sigma).
        Sell = 3, TARSIA_LAYOUT_SELL;
        /// Equal tiles of nonzeros.
        Stream = 4, TARSIA_LAYOUT_STREAM;
        /// Rows in classes by length, in blocks of 8 rows and 4 slots per row (DASP).
        Dasp = 5, TARSIA_LAYOUT_DASP;
        /// Blocks of 8 or 4 rows and 4 columns with bit masks and packed values.
        MaskBlock = 6, TARSIA_LAYOUT_MASK_BLOCK;
        /// Windows of rows with the union of their columns, in dense tiles or packed.
        Window = 7, TARSIA_LAYOUT_WINDOW;
        /// Dense blocks of 16 rows at multiples of their width (BCSR).
        Bcsr = 8, TARSIA_LAYOUT_BCSR;
        /// op(A) with all its zeros, by rows.
        Dense = 9, TARSIA_LAYOUT_DENSE;
        /// Sparse tiles of 16 x 16 with bit masks.
        Tile = 10, TARSIA_LAYOUT_TILE;
        /// Columns sorted by length, in blocks of 32 (Swift).
        Swift = 11, TARSIA_LAYOUT_SWIFT;
    }

    /// Component of the version number.
    pub enum Property = tarsiaProperty_t {
        /// Major version.
        Major = 0, TARSIA_PROPERTY_MAJOR_VERSION;
        /// Minor version.
        Minor = 1, TARSIA_PROPERTY_MINOR_VERSION;
        /// Patch level.
        Patch = 2, TARSIA_PROPERTY_PATCH_LEVEL;
    }

    /// Severity of a log line.
    pub enum LogLevel = tarsiaLogLevel_t {
        /// A call failed.
        Error = 1, TARSIA_LOG_ERROR;
        /// A call works, but not as well as it could.
        Warning = 2, TARSIA_LOG_WARNING;
        /// The choice that analysis made, and the reason.
        Info = 3, TARSIA_LOG_INFO;
    }
}
