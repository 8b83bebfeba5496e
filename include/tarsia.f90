! SPDX-License-Identifier: MIT OR Apache-2.0
!
! Fortran interface of tarsia: sparse matrix products behind handles, descriptors and plans.
!
! Generated from include/tarsia.h by scripts/fortran-module.py; do not edit. Names, arguments and their
! order are those of tarsia.h, whose first page also says what blocks, what a CUDA graph may capture, and
! what threads, streams, fork() and memory mean for all of it. Comments here are C's: NULL is c_null_ptr.
!
! Compile this file with your program: module files of different compilers do not fit together.
!
!   handles, descriptors, plans   type(c_ptr); c_null_ptr is C's NULL
!   enums                         integer(c_int), with the parameters below
!   dimensions, counts of nnz     integer(c_int64_t)
!   sizes in bytes                integer(c_size_t)
!   alpha, beta                   real or complex of the compute type's kind, without c_loc, which the call
!                                 reads before it returns (pointer mode HOST); or type(c_ptr)
!   paths                         character, without the blanks at its end; or type(c_ptr)
!   arrays                        type(c_ptr): what tarsiaMalloc gave, or c_loc(x) of a target; and, see
!                                 below, arrays of Fortran
!   callbacks                     type(c_funptr): c_funloc(f) of a bind(C) procedure; the abstract
!                                 interfaces tarsiaAllocFn_t ... say which arguments it has
!   answers                       intent(out). Those that C may leave out with NULL are optional: use
!                                 keywords, as in tarsiaSpMatGetSize(A, nnz=nnz). After a call that
!                                 failed an answer is undefined.
!
! The types of alpha and beta are not converted: 1.0 is of 32 bits, 1.0_c_double of 64.
!
! Forms for arrays of Fortran, in memory of the host, real or complex of 4 or 8 bytes a part, indices of 4
! or 8 bytes. Sizes and types come from the arrays:
!
!   tarsiaMemcpyToDevice(handle, dst, src)        src(:) or src(:, :), integers too; whole array
!   tarsiaMemcpyToHost(handle, dst, src)          dst(:) or dst(:, :), integers too; whole array
!   tarsiaCreateCsr(A, rows, cols, rowOffsets, colInd, values, base)
!   tarsiaCreateCsc(A, rows, cols, colOffsets, rowInd, values, base)
!   tarsiaCreateCoo(A, rows, cols, rowInd, colInd, values, base)
!   tarsiaCreateDnVec(x, values)
!   tarsiaCreateDnMat(B, values, rows)            values(:, :) by columns; rows: the first of each, optional
!   tarsiaCreateConstCsr ... ConstDnMat           the same of arrays that are only read
!   tarsiaPlan_updateValues(handle, plan, values)
!
! Descriptors and plans borrow arrays: they must be targets of the caller that live as long as they are used,
! and contiguous, since a copy of a section would be gone after the call. A form for arrays returns
! TARSIA_STATUS_INVALID_VALUE for one that is not contiguous or has another size than the arguments beside it
! say; tarsiaCheck and tarsiaLastMessage name it. Such arrays serve handles of the CPU backends; a GPU needs
! tarsiaMalloc's.
!
! Fortran's arrays count from 1 and are stored by columns: TARSIA_INDEX_BASE_ONE, TARSIA_ORDER_COL. Texts of
! errors count positions from 0, as C does, and say so: colInd[4] is colInd(5) here.
module tarsia
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private

    ! Version of the header that this module was made from; tarsiaGetVersion tells the library's.
    integer(c_int), parameter, public :: TARSIA_VERSION_MAJOR = 0
    integer(c_int), parameter, public :: TARSIA_VERSION_MINOR = 2
    integer(c_int), parameter, public :: TARSIA_VERSION_PATCH = 0
    integer(c_int), parameter, public :: TARSIA_VERSION = 200

    ! tarsiaStatus_t: Status that a call returns. Names and numbers are cuSPARSE's where the meaning
    ! is the same; additional ones have numbers from 100 on.

    ! The call succeeded.
    integer(c_int), parameter, public :: TARSIA_STATUS_SUCCESS = 0
    ! The handle is NULL, destroyed, or another kind of object.
    integer(c_int), parameter, public :: TARSIA_STATUS_NOT_INITIALIZED = 1
    ! Memory could not be allocated; every object stays usable.
    integer(c_int), parameter, public :: TARSIA_STATUS_ALLOC_FAILED = 2
    ! An argument is wrong; tarsiaGetLastErrorMessage names it.
    integer(c_int), parameter, public :: TARSIA_STATUS_INVALID_VALUE = 3
    ! The library has no machine code for the device, and the driver cannot compile its PTX.
    integer(c_int), parameter, public :: TARSIA_STATUS_ARCH_MISMATCH = 4
    ! Device memory could not be mapped.
    integer(c_int), parameter, public :: TARSIA_STATUS_MAPPING_ERROR = 5
    ! A kernel could not be launched or failed.
    integer(c_int), parameter, public :: TARSIA_STATUS_EXECUTION_FAILED = 6
    ! An internal error of the library, or an error of CUDA that has no status of its own.
    integer(c_int), parameter, public :: TARSIA_STATUS_INTERNAL_ERROR = 7
    ! The matrix type is not supported by the operation.
    integer(c_int), parameter, public :: TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8
    ! A zero pivot was met (reserved for solvers).
    integer(c_int), parameter, public :: TARSIA_STATUS_ZERO_PIVOT = 9
    ! The combination of operation, format, types and backend is not supported.
    integer(c_int), parameter, public :: TARSIA_STATUS_NOT_SUPPORTED = 10
    ! A workspace, a buffer or the memory limit is too small, or C is larger than the device's
    ! memory; the message gives the bytes needed.
    integer(c_int), parameter, public :: TARSIA_STATUS_INSUFFICIENT_RESOURCES = 11
    ! The call is not allowed in the object's present state.
    integer(c_int), parameter, public :: TARSIA_STATUS_INVALID_STATE = 100

    ! tarsiaProperty_t: Component of the version number.

    ! Major version.
    integer(c_int), parameter, public :: TARSIA_PROPERTY_MAJOR_VERSION = 0
    ! Minor version.
    integer(c_int), parameter, public :: TARSIA_PROPERTY_MINOR_VERSION = 1
    ! Patch level.
    integer(c_int), parameter, public :: TARSIA_PROPERTY_PATCH_LEVEL = 2

    ! tarsiaBackend_t: Backend that executes a product.

    ! CUDA where there is a driver and a device, else the host.
    integer(c_int), parameter, public :: TARSIA_BACKEND_AUTO = 0
    ! Threads of the CPU.
    integer(c_int), parameter, public :: TARSIA_BACKEND_HOST = 1
    ! An NVIDIA GPU.
    integer(c_int), parameter, public :: TARSIA_BACKEND_CUDA = 2
    ! One thread; slow, but simple enough to check other results against.
    integer(c_int), parameter, public :: TARSIA_BACKEND_REFERENCE = 3

    ! tarsiaPointerMode_t: Location of the scalars alpha and beta.

    ! In host memory; read before the call returns.
    integer(c_int), parameter, public :: TARSIA_POINTER_MODE_HOST = 0
    ! In the backend's memory; read when the operation runs.
    integer(c_int), parameter, public :: TARSIA_POINTER_MODE_DEVICE = 1

    ! tarsiaLogLevel_t: Severity of a log line.

    ! A call failed.
    integer(c_int), parameter, public :: TARSIA_LOG_ERROR = 1
    ! A call works, but not as well as it could.
    integer(c_int), parameter, public :: TARSIA_LOG_WARNING = 2
    ! The choice that analysis made, and the reason.
    integer(c_int), parameter, public :: TARSIA_LOG_INFO = 3

    ! tarsiaIndexType_t: Width of offsets and indices.

    ! 16-bit unsigned; reserved, no user array may have it.
    integer(c_int), parameter, public :: TARSIA_INDEX_16U = 1
    ! 32-bit signed.
    integer(c_int), parameter, public :: TARSIA_INDEX_32I = 2
    ! 64-bit signed.
    integer(c_int), parameter, public :: TARSIA_INDEX_64I = 3

    ! tarsiaIndexBase_t: Index base: number of the first row and column.

    ! Rows and columns count from 0.
    integer(c_int), parameter, public :: TARSIA_INDEX_BASE_ZERO = 0
    ! Rows and columns count from 1.
    integer(c_int), parameter, public :: TARSIA_INDEX_BASE_ONE = 1

    ! tarsiaDataType_t: Type of stored values; the numbers are those of cudaDataType.
    !
    ! An array that is to be aligned to its elements begins at a multiple of their size. Complex
    ! numbers are aligned to the real type of their parts and need no more: 4 bytes for
    ! TARSIA_C_32F, 8 for TARSIA_C_64F, as C aligns float complex and double complex and Fortran
    ! complex(4) and complex(8). Multiples of 16 bytes are read and written in the fewest accesses.

    ! 32-bit real (float).
    integer(c_int), parameter, public :: TARSIA_R_32F = 0
    ! 64-bit real (double).
    integer(c_int), parameter, public :: TARSIA_R_64F = 1
    ! 16-bit IEEE half.
    integer(c_int), parameter, public :: TARSIA_R_16F = 2
    ! 8-bit integer; no operation takes it yet.
    integer(c_int), parameter, public :: TARSIA_R_8I = 3
    ! Complex of two floats, real part first.
    integer(c_int), parameter, public :: TARSIA_C_32F = 4
    ! Complex of two doubles, real part first.
    integer(c_int), parameter, public :: TARSIA_C_64F = 5
    ! 32-bit integer; no operation takes it yet.
    integer(c_int), parameter, public :: TARSIA_R_32I = 10
    ! bfloat16.
    integer(c_int), parameter, public :: TARSIA_R_16BF = 14

    ! tarsiaOrder_t: Storage order of a dense matrix, and of the values inside a BSR block.

    ! Columns are contiguous; ld is the distance between columns.
    integer(c_int), parameter, public :: TARSIA_ORDER_COL = 1
    ! Rows are contiguous; ld is the distance between rows.
    integer(c_int), parameter, public :: TARSIA_ORDER_ROW = 2

    ! tarsiaFormat_t: Format of a sparse matrix. 5 (blocked ELL) and 7 (sliced ELL) are reserved.

    ! Compressed sparse rows.
    integer(c_int), parameter, public :: TARSIA_FORMAT_CSR = 1
    ! Compressed sparse columns.
    integer(c_int), parameter, public :: TARSIA_FORMAT_CSC = 2
    ! Coordinates.
    integer(c_int), parameter, public :: TARSIA_FORMAT_COO = 3
    ! Blocked compressed sparse rows.
    integer(c_int), parameter, public :: TARSIA_FORMAT_BSR = 6
    ! Sparse tiles of 16 x 16 in memory of the library (tarsiaCreateTile).
    integer(c_int), parameter, public :: TARSIA_FORMAT_TILE = 100

    ! tarsiaEffort_t: Effort that analysis may spend.

    ! Choose by the cost model. On a GPU the statistics that decide are counted in the pattern first
    ! (for SpMV where the rows of op(A) are stored in place); otherwise, and on the CPU backends,
    ! the model uses shapes alone.
    integer(c_int), parameter, public :: TARSIA_EFFORT_DEFAULT = 0
    ! Convert nothing where the format allows it, and use shapes alone.
    integer(c_int), parameter, public :: TARSIA_EFFORT_QUICK = 1
    ! Build and time the best candidates of the cost model (SpMV and SpMM); not reproducible, so
    ! deterministic mode refuses it.
    integer(c_int), parameter, public :: TARSIA_EFFORT_TUNED = 2

    ! tarsiaReorder_t: Row reordering. The named policies (values from 2 on) give the order in which
    ! the rows of op(A) are processed, by SpMV's CSR and by SpMM's ROW and CSR; most are those of
    ! Mehrabi et al., "Learning sparse matrix row permutations for efficient SpMM on GPU
    ! architectures" (ISPASS 2021, section III), for blocks of 32 warps of which warp i takes the
    ! rows i, i + 32, i + 64 and so on of the order. A row's *load* is ceil(entries / 32); how
    ! *near* two rows are is the Hamming distance of their bit masks, which have a bit for each
    ! block of 32 columns, set where the row has an entry. Near rows are searched among candidates,
    ! in time near linear in the entries, not among all rows as in the paper. Remaining ties are
    ! broken by the rows' numbers.

    ! The library decides.
    integer(c_int), parameter, public :: TARSIA_REORDER_AUTO = 0
    ! Keep the user's order.
    integer(c_int), parameter, public :: TARSIA_REORDER_NONE = 1
    ! Rows by falling load.
    integer(c_int), parameter, public :: TARSIA_REORDER_PLAIN_SORT = 2
    ! Rows by falling load, every second group of 32 reversed.
    integer(c_int), parameter, public :: TARSIA_REORDER_FLIPPED_SORT = 3
    ! Longest processing time: by falling load, each row goes to the warp with the least load so far
    ! that does not have its share of rows yet.
    integer(c_int), parameter, public :: TARSIA_REORDER_LPT = 4
    ! Each row is near to the one 32 positions before it, which the same warp takes.
    integer(c_int), parameter, public :: TARSIA_REORDER_WARP_AWARE = 5
    ! Each row is near to the one before it, which the previous warp takes.
    integer(c_int), parameter, public :: TARSIA_REORDER_CTA_AWARE = 6
    ! Rows by falling load; of equal loads, each row is near to the one before it.
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_1 = 7
    ! CTA_AWARE; of equally near rows the one of a load nearest to that of the row before.
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_1 = 8
    ! CTA_AWARE; of equally near rows the one nearest to the row 32 positions before.
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_2 = 9
    ! WARP_AWARE; of equally near rows the one of a load nearest to that of the row before.
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_3 = 10
    ! Densified CSR: rows with entries first, those without last.
    integer(c_int), parameter, public :: TARSIA_REORDER_DCSR = 11
    ! Reverse Cuthill-McKee of the pattern of A and its transpose; op(A) must be square.
    integer(c_int), parameter, public :: TARSIA_REORDER_RCM = 12
    ! Rows ascending by the numbers whose Gray codes are their bit masks.
    integer(c_int), parameter, public :: TARSIA_REORDER_GRAY_CODE = 13
    ! The order, among those above and the user's, for which the product's time is predicted to be
    ! least, by a small network that takes 24 features of the pattern and was trained on times of an
    ! H100. tarsiaPlan_getInfo reports which; NOT_SUPPORTED for a product for which no network was
    ! trained.
    integer(c_int), parameter, public :: TARSIA_REORDER_LEARNED = 14

    ! tarsiaOpKind_t: Operation of a plan.

    ! Sparse matrix times dense vector.
    integer(c_int), parameter, public :: TARSIA_OP_SPMV = 1
    ! Sparse matrix times dense matrix.
    integer(c_int), parameter, public :: TARSIA_OP_SPMM = 2
    ! Sparse matrix times sparse matrix.
    integer(c_int), parameter, public :: TARSIA_OP_SPGEMM = 3

    ! tarsiaLayout_t: Layout that analysis has built.

    ! The plan is not analyzed.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_NONE = 0
    ! CSR: the user's own arrays, or a copy with sorted rows and 32-bit columns.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_CSR = 1
    ! A list of (row, column, value), which the reference backend uses.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_TRIPLETS = 2
    ! Slices of rows that are sorted by length (SELL-C-sigma).
    integer(c_int), parameter, public :: TARSIA_LAYOUT_SELL = 3
    ! Equal tiles of nonzeros.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_STREAM = 4
    ! Rows in classes by length, in blocks of 8 rows and 4 slots per row (DASP).
    integer(c_int), parameter, public :: TARSIA_LAYOUT_DASP = 5
    ! Blocks of 8 or 4 rows and 4 columns with bit masks and packed values.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_MASK_BLOCK = 6
    ! Windows of rows with the union of their columns, in dense tiles or packed.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_WINDOW = 7
    ! Dense blocks of 16 rows at multiples of their width (BCSR).
    integer(c_int), parameter, public :: TARSIA_LAYOUT_BCSR = 8
    ! op(A) with all its zeros, by rows.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_DENSE = 9
    ! Sparse tiles of 16 x 16 with bit masks.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_TILE = 10
    ! Columns sorted by length, in blocks of 32 (Swift).
    integer(c_int), parameter, public :: TARSIA_LAYOUT_SWIFT = 11

    ! tarsiaOperation_t: Operation op(A) that is applied to a matrix.

    ! A itself.
    integer(c_int), parameter, public :: TARSIA_OPERATION_NON_TRANSPOSE = 0
    ! The transpose of A.
    integer(c_int), parameter, public :: TARSIA_OPERATION_TRANSPOSE = 1
    ! The conjugate transpose of A.
    integer(c_int), parameter, public :: TARSIA_OPERATION_CONJUGATE_TRANSPOSE = 2

    ! tarsiaComputeType_t: Type in which products are formed and summed; alpha and beta have it. The
    ! numbers are those of cudaDataType; additional types have numbers from 100 on.

    ! 32-bit real; never silently TF32.
    !
    ! A sum of n products of 16-bit values is off by at most 3 (n + 2) * 2^-23 * sum of |a * b|,
    ! before alpha, beta and one rounding to the type of y or C. On CUDA TARSIA_SPMV_ALG_DASP and
    ! TARSIA_SPMM_ALG_WINDOW, SMAT and DENSE (any of them may be DEFAULT), and
    ! TARSIA_SPGEMM_ALG_HASH where both factors are nearly dense, multiply 16-bit values on tensor
    ! cores, which align the products that they add by the exponents of the factors as stored, and a
    ! subnormal is stored with the least exponent. No product is lost, but in this bound a factor
    ! that is not 0 counts there as at least 2^-14 (fp16; bf16: 2^-126) in magnitude: small terms
    ! beside a subnormal times a large one keep fewer digits.
    !
    ! Values of 32 bits on CUDA: TARSIA_SPMM_ALG_WINDOW, and DENSE where nHint is 48 or more and the
    ! product so large that the device gains by it (both may be DEFAULT), multiply them on tensor
    ! cores, each split exactly into three parts of bf16; six of the nine products of parts are
    ! added. A sum of n products is off by at most 3 n * 2^-23 * sum of |a * b|, and 2 * 2^-23 *
    ! |alpha * sum| for alpha and beta. In addition, up to 2^-134 may be lost of a factor below
    ! 2^-110 in magnitude. Otherwise TARSIA_SPMM_ALG_DENSE may use cublasLt, whose arithmetic is its
    ! own (CUBLAS_COMPUTE_32F). All other algorithms multiply and add 32-bit reals.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_32F = 0
    ! 64-bit real.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_64F = 1
    ! Complex of two floats.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_C_32F = 4
    ! Complex of two doubles.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_C_64F = 5
    ! 32-bit real whose factors may be rounded to TF32 before they are multiplied; alpha, beta and
    ! sums are 32-bit reals.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_TF32 = 100
    ! TARSIA_COMPUTE_32F by IEEE 754 operations of 32-bit reals alone: each product is exact and
    ! added to its sum without being rounded (FMA; on CUDA always where a sum is kept in registers),
    ! or is rounded once; each addition is rounded to nearest; subnormals count. A sum of n products
    ! is off by at most n * 2^-24 * sum of |a * b| to the first order. No tensor cores, no cublasLt,
    ! no atomics: on CUDA TARSIA_SPMM_ALG_DENSE uses the library's own kernels and
    ! TARSIA_SPMM_ALG_SWIFT the form of deterministic mode. Takes the types of TARSIA_COMPUTE_32F;
    ! alpha and beta are as for it. NOT_SUPPORTED if chosen by name on CUDA: TARSIA_SPMM_ALG_WINDOW
    ! and SMAT, and for values of 16 bits TARSIA_SPMM_ALG_DENSE and TARSIA_SPMV_ALG_DASP; DEFAULT
    ! chooses among the others. (On CUDA TARSIA_SPGEMM_ALG_TILE multiplies and adds 32-bit values as
    ! doubles, also on tensor cores, and rounds each sum once.)
    integer(c_int), parameter, public :: TARSIA_COMPUTE_32F_PEDANTIC = 101
    ! TARSIA_COMPUTE_64F by IEEE 754 operations of 64-bit reals alone, with the bound above for
    ! 2^-53. Tensor cores multiply and add doubles by FMA, so that all algorithms of
    ! TARSIA_COMPUTE_64F take it, with DENSE by the library's own kernels and SWIFT in the form of
    ! deterministic mode.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_64F_PEDANTIC = 102

    ! tarsiaSpMVAlg_t: SpMV algorithm. Values from 6 on are reserved for further layouts.

    ! The library chooses.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_DEFAULT = 0
    ! Rows of CSR.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_CSR = 1
    ! Slices of rows that are sorted by length (SELL-C-sigma), with columns of 16 bits where they
    ! fit; on CUDA longer rows take more lanes, and for large matrices in which few columns have
    ! most entries, x of those columns is kept in shared memory. Analysis makes a copy.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_SELL = 2
    ! Equal tiles of nonzeros (merge path, CSR5), with columns of 16 bits where they fit: the same
    ! work for every warp whatever the lengths of the rows. Analysis makes a copy.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_STREAM = 3
    ! DASP (Lu, Liu 2023): long, medium and short rows, in blocks that matrix units multiply (fp64,
    ! fp16, bf16; other types by fused multiply-adds). Analysis makes a copy.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_DASP = 4
    ! Blocks of 8 or 4 rows and 4 columns, whichever take fewer bytes: a bit mask says which entries
    ! exist, and only those are stored. Reads the fewest bytes where blocks are at least a quarter
    ! full, as in matrices with several unknowns per node. Analysis makes a copy. The sums of a row
    ! are added in an order different from CSR's, but the same from run to run. Up to 2^31 - 1 rows
    ! and columns of op(A).
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_MASK_BLOCK = 5

    ! tarsiaSpMMAlg_t: SpMM algorithm. Other values up to 255 are reserved for further layouts.

    ! The library chooses.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_DEFAULT = 0
    ! Rows of CSR, tiles over the columns of B.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_ROW = 1
    ! Windows of 8, 16, 32 or 64 rows with the union of their columns, for matrix units: a row of B
    ! is read once per window instead of once per entry. Half types (fp16, bf16) are stored in dense
    ! tiles and summed in fp32; fp32, TF32 and fp64 are stored as the entries alone, with a mask for
    ! 8 rows and 8 columns. On CUDA rows with similar columns are put into the same windows where a
    ! model predicts that this pays, unless tarsiaPlan_setReorder says NONE. Analysis makes a copy.
    ! The sums of a row are added in an order different from CSR's, but the same from run to run. Up
    ! to 2^31 - 1 rows and columns of op(A).
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_WINDOW = 2
    ! BCSR after Okanovic et al., SMaT (SC 2024): dense blocks of 16 rows and 8 columns, or 16
    ! columns for fp16 and bf16, wherever op(A) has an entry in them, multiplied by matrix units;
    ! tarsiaPlan_setBlockDims chooses the size, or else the paper's time model (T = T_e * n_e +
    ! T_init). Halves are summed in fp32. Rows with similar columns are put into the same blocks
    ! where the model gains by it, unless tarsiaPlan_setReorder says NONE. Best where blocks are
    ! well filled: a block costs the same with one entry as with all. Analysis makes a copy. The
    ! sums of a row are added in an order different from CSR's, but the same from run to run. Up to
    ! 2^31 - 1 rows and columns of op(A), less than 2^31 blocks.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SMAT = 3
    ! op(A) with all its zeros, by a product of dense matrices: for pruned layers. On CUDA small
    ! products, and values of 32 bits with TARSIA_COMPUTE_32F and an nHint of 48 or more, are
    ! computed by kernels of the library, others by cublasLt where that is installed; in a plan that
    ! is analyzed in deterministic mode (tarsiaSetDeterministic) all are computed by kernels of the
    ! library, and a plan that uses cublasLt is refused there. A and B must have real types of one
    ! width. Results that are not finite are computed again from the stored entries, so that an Inf
    ! in B affects only results that a stored entry multiplies it into. Rows are added in an order
    ! different from CSR's, but the same from run to run (with cublasLt, for one version of it).
    ! NOT_SUPPORTED where the dense matrix would take more than 64 MiB and more than 64 times the
    ! bytes of the stored entries.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_DENSE = 4
    ! Slices of rows that are sorted by length, with 16-bit columns, as for SpMV; fast for up to 16
    ! columns of B. Real types. Analysis makes a copy. Up to 2^31 - 1 rows and columns of op(A).
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SELL = 5
    ! Columns of op(A) sorted by length, after Hu et al., Swift: blocks with an entry of each of 32
    ! neighbouring columns, eight of which have their entries added by row before these sums are
    ! added to C, and the entries that fill no whole block, by columns. fp32 and fp64. On CUDA sums
    ! are added to C by atomics, so that the last bits differ from run to run; a plan that is
    ! analyzed in deterministic mode (tarsiaSetDeterministic) uses bands of 16 rows instead, whose
    ! entries are sorted by column, and a plan that was not is refused there. Analysis makes a copy.
    ! Only by name: the library never chooses it. Up to 2^31 - 1 rows and columns of op(A).
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SWIFT = 6
    ! CSR in the output-stationary form of Mehrabi et al. (2021, algorithm 1): on CUDA a block of 32
    ! warps takes a few columns of B and C and goes over the rows of op(A), row i by warp i mod 32,
    ! lanes along its entries. Made for B and C in column-major order and for comparing the orders
    ! of tarsiaPlan_setReorder; ROW is faster on nearly all matrices. Only by name: the library
    ! never chooses it.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_CSR = 7

    ! tarsiaSpGEMMAlg_t: SpGEMM algorithm. Values from 3 on are reserved for further layouts.

    ! The library chooses: HASH, or on a device (unless effort is QUICK) TILE.
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_DEFAULT = 0
    ! Gustavson's row products with hash or dense accumulators.
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_HASH = 1
    ! Sparse tiles of 16 x 16 after Niu et al., TileSpGEMM (PPoPP 2022): A and B are copied into
    ! tiles with masks of 16 bits per row; the tiles of C are found first, then their masks, then
    ! their values, in registers. Best where tiles hold many entries: a pair of tiles of one entry
    ! costs about as much as one of ten. Sums are the same from run to run; entries of A or B with
    ! the same row and column are added up first. Up to 2^31 - 1 rows and columns, less than 2^32
    ! tiles of A and of B. tarsiaSpGEMM_symbolic takes about 120 bytes for each tile in which a tile
    ! of A and one of B may meet; where that much memory is not available, it processes some rows of
    ! tiles at a time.
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_TILE = 2

    ! Answer of tarsiaPlan_getInfo. Later versions append fields.
    ! structSize is set here, so that a variable can be passed as it is.
    type, bind(C), public :: tarsiaPlanInfo_t
        ! Input: sizeof(tarsiaPlanInfo_t) of the caller. Must be set before the call.
        integer(c_size_t) :: structSize = 664_c_size_t
        ! Operation of the plan.
        integer(c_int) :: operation
        ! 1 after tarsiaPlan_analyze has succeeded, else 0.
        integer(c_int) :: analyzed
        ! Algorithm as a number of the enum of the operation's algorithms; 0 before analysis.
        integer(c_int) :: algorithm
        ! Layout that analysis built.
        integer(c_int) :: layout
        ! Row reordering in use.
        integer(c_int) :: reorder
        ! Effort that was set.
        integer(c_int) :: effort
        ! 1 if value updates are set, else 0.
        integer(c_int) :: valueUpdates
        ! 1 if the user's arrays are read in place, perhaps but for the columns, 0 if the plan has a
        ! copy.
        integer(c_int) :: inPlace
        ! Rows of op(A).
        integer(c_int64_t) :: rows
        ! Columns of op(A).
        integer(c_int64_t) :: cols
        ! Stored entries of A (BSR: values of all stored blocks).
        integer(c_int64_t) :: nnz
        ! Stored entries of C of a SpGEMM plan after symbolic, else -1.
        integer(c_int64_t) :: nnzC
        ! Multiplications of a SpGEMM plan, else 0.
        integer(c_int64_t) :: products
        ! Bytes that the plan holds now.
        integer(c_size_t) :: planBytes
        ! The most bytes that the plan held at one time.
        integer(c_size_t) :: peakBytes
        ! Bytes of workspace that execute needs (SpMM: at nHint columns).
        integer(c_size_t) :: workspaceBytes
        ! Slots for values in the layout over stored entries; 1 is no padding.
        real(c_double) :: fill
        ! Wall time of analysis in seconds.
        real(c_double) :: analysisSeconds
        ! Seconds of one execute: predicted by the cost model, or measured with effort TUNED; 0 if
        ! unknown.
        real(c_double) :: predictedSeconds
        ! Name of the algorithm, ended by 0.
        character(kind=c_char) :: algorithmName(32)
        ! Reason for the choice, ended by 0. For SpMV with pattern statistics: the bytes that the
        ! layout moves, the limit that bounds it, the predicted seconds of every layout, and the
        ! statistics.
        character(kind=c_char) :: reason(480)
        ! Executes that the plan is for (tarsiaPlan_setExpectedExecutes); 0: not known.
        integer(c_int64_t) :: expectedExecutes
        ! 1 if every execute reads the values in the user's arrays, else 0.
        integer(c_int) :: valuesInPlace
        ! 1 if tarsiaSetChecks was on in analysis, so that executes can be checked, else 0.
        integer(c_int) :: checked
        ! 1 if the rows of C of a SpGEMM plan come out sorted (tarsiaPlan_setSortedOutput), else 0;
        ! 1 for other plans.
        integer(c_int) :: sortedOutput
        ! Always 0; reserved for a later version.
        integer(c_int) :: reserved
    end type tarsiaPlanInfo_t

    ! Does not compile (division by 0) where structSize is not the size of the type.
    type(tarsiaPlanInfo_t) :: probe_tarsiaPlanInfo_t
    integer, parameter :: check_tarsiaPlanInfo_t = 1/merge(1, 0, storage_size(probe_tarsiaPlanInfo_t) == 8*664)

    ! Callbacks.
    abstract interface
        ! A user's allocation function. It returns at least bytes (> 0) bytes of the backend's
        ! memory, aligned to 256 bytes, or NULL on failure. Memory with less alignment is passed to
        ! the free function at once and counts as a failure; the call that needed it returns
        ! ALLOC_FAILED. ctx is the pointer that tarsiaSetAllocator got. stream is, for a plan's
        ! memory, the stream that the handle of tarsiaPlan_analyze had then, whenever the memory is
        ! taken; for other memory it is the handle's stream. The function may be called from any
        ! thread that calls the library, and from the library's own threads, on behalf of a call
        ! that waits for them. It must not throw.
        !
        ! The function is called in the midst of a call of the library. It may call the library
        ! itself, with these limits: a call from this thread with the plan that is being made or
        ! changed (tarsiaPlan_analyze, new values, tarsiaSpGEMM_symbolic and _numeric,
        ! tarsiaPlan_destroy) returns INVALID_STATE, and so does tarsiaDestroy with the call's
        ! handle. Such a refused call changes nothing. Other plans and handles may be used without
        ! these limits. The function must not wait indefinitely for a thread that waits for this
        ! call: a getter of another thread with a plan that this call changes waits for its end, so
        ! two allocators that ask for each other's plan while both are analyzed hang. The same holds
        ! for the logger where it logs a call that the allocation function made.
        function tarsiaAllocFn_t(ctx, bytes, stream) bind(C)
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: ctx
            integer(c_size_t), value, intent(in) :: bytes
            type(c_ptr), value, intent(in) :: stream
            type(c_ptr) :: tarsiaAllocFn_t
        end function tarsiaAllocFn_t

        ! A user's function that frees ptr, memory of bytes bytes (the size that was asked for) from
        ! its allocation function. stream is the stream that the allocation function got. The memory
        ! may be used again behind the work that is on this stream when the function is called; the
        ! library has made the stream wait for all other work that uses the memory. The function may
        ! call the library as the allocation function may.
        subroutine tarsiaFreeFn_t(ctx, ptr, bytes, stream) bind(C)
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: ctx
            type(c_ptr), value, intent(in) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            type(c_ptr), value, intent(in) :: stream
        end subroutine tarsiaFreeFn_t

        ! A user's function that receives log lines. message ends with 0, has no newline, and lives
        ! until the function returns. No lock is held: the function may call the library, also with
        ! the plan and the handle of the call that logs, and may destroy the plan, but not the
        ! handle (INVALID_STATE; in another thread tarsiaDestroy waits for the call's end). It must
        ! not throw.
        subroutine tarsiaLogFn_t(ctx, level, message) bind(C)
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: ctx
            integer(c_int), value, intent(in) :: level
            type(c_ptr), value, intent(in) :: message
        end subroutine tarsiaLogFn_t
    end interface
    public :: tarsiaAllocFn_t
    public :: tarsiaFreeFn_t
    public :: tarsiaLogFn_t

    interface
        ! Returns the name of a status, such as "TARSIA_STATUS_INVALID_VALUE"; "unknown status" for
        ! any other integer. The string lives as long as the library; never NULL.
        function tarsiaGetErrorName(status) bind(C, name="tarsiaGetErrorName")
            import :: c_int, c_ptr
            integer(c_int), value, intent(in) :: status
            type(c_ptr) :: tarsiaGetErrorName
        end function tarsiaGetErrorName
    end interface

    interface
        ! Returns one sentence on the meaning of a status. The string lives as long as the library;
        ! never NULL.
        function tarsiaGetErrorString(status) bind(C, name="tarsiaGetErrorString")
            import :: c_int, c_ptr
            integer(c_int), value, intent(in) :: status
            type(c_ptr) :: tarsiaGetErrorString
        end function tarsiaGetErrorString
    end interface

    interface
        ! Copies the text of the calling thread's last failed call to buf: which argument, what was
        ! found, what was expected. A call that succeeds leaves the text as it is; before the first
        ! failure it is empty.
        !
        ! buf: host, len bytes; the text is cut to fit and always ended by 0 (512 bytes hold almost
        ! every text).
        !
        ! Statuses: INVALID_VALUE (buf is NULL or len is 0).
        function tarsiaGetLastErrorMessage(buf, len) bind(C, name="tarsiaGetLastErrorMessage")
            import :: c_char, c_int, c_size_t
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value, intent(in) :: len
            integer(c_int) :: tarsiaGetLastErrorMessage
        end function tarsiaGetLastErrorMessage
    end interface

    interface
        ! Gets the version of the library as 10000*major + 100*minor + patch. TARSIA_VERSION is the
        ! same number for the header that a program was compiled with; TARSIA_VERSION_MAJOR, _MINOR
        ! and _PATCH are its parts.
        !
        ! version: host.
        !
        ! Statuses: INVALID_VALUE (version is NULL).
        function tarsiaGetVersion(version) bind(C, name="tarsiaGetVersion")
            import :: c_int
            integer(c_int), intent(out) :: version
            integer(c_int) :: tarsiaGetVersion
        end function tarsiaGetVersion
    end interface

    interface
        ! Gets one part of the library's version.
        !
        ! value: host.
        !
        ! Statuses: INVALID_VALUE (property is not a tarsiaProperty_t, value is NULL).
        function tarsiaGetProperty(property, value) bind(C, name="tarsiaGetProperty")
            import :: c_int
            integer(c_int), value, intent(in) :: property
            integer(c_int), intent(out) :: value
            integer(c_int) :: tarsiaGetProperty
        end function tarsiaGetProperty
    end interface

    interface
        ! Sets how many threads the host backend uses for calls that begin from now on, of all
        ! handles of the process. n >= 1: that many threads, the calling thread among them for
        ! products. 0: the default, which is TARSIA_NUM_THREADS (an environment variable) or one per
        ! core that the process may use. n, like that variable, is limited to 64, or to four per
        ! core where that is more. The number of threads changes no result.
        !
        ! May be called at any time, from any thread, also while others compute, and from a callback
        ! (tarsiaSetAllocator, tarsiaSetLogger): calls that run meanwhile use the old or the new
        ! number, which may change between their steps. Threads are created when a call first needs
        ! them, up to 2 n for a number n that was not in use before, and stay asleep until the
        ! number is set again: a program should use few different numbers. The child of a fork has
        ! its parent's number.
        !
        ! Statuses: INVALID_VALUE (n is negative).
        function tarsiaSetNumThreads(n) bind(C, name="tarsiaSetNumThreads")
            import :: c_int
            integer(c_int), value, intent(in) :: n
            integer(c_int) :: tarsiaSetNumThreads
        end function tarsiaSetNumThreads
    end interface

    interface
        ! Gets how many threads the next call uses: the number of tarsiaSetNumThreads or the
        ! default, or fewer where so many could not be created.
        !
        ! n: host.
        !
        ! Statuses: INVALID_VALUE (n is NULL).
        function tarsiaGetNumThreads(n) bind(C, name="tarsiaGetNumThreads")
            import :: c_int
            integer(c_int), intent(out) :: n
            integer(c_int) :: tarsiaGetNumThreads
        end function tarsiaGetNumThreads
    end interface

    interface
        ! Creates a handle: on the device of the calling thread's current CUDA context, else on
        ! device 0, else (no CUDA driver or device, or a library built without CUDA) on the host.
        !
        ! handle: host. Blocks. One handle per concurrent stream; destroy with tarsiaDestroy.
        !
        ! Statuses: INVALID_VALUE (handle is NULL), ALLOC_FAILED, NOT_SUPPORTED (a device for which
        ! there are no kernels, a driver too old for the kernels: a device is never passed over for
        ! the host).
        function tarsiaCreate(handle) bind(C, name="tarsiaCreate")
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: handle
            integer(c_int) :: tarsiaCreate
        end function tarsiaCreate
    end interface

    interface
        ! Creates a handle on a backend by name. device is 0 on the CPU backends; with CUDA it is
        ! the driver's number of the device.
        !
        ! With CUDA the library works in the calling thread's current context if that is one of the
        ! device, else in the device's primary context (the CUDA runtime's), and every call leaves
        ! the caller's current context as it was. The context must outlive the handle and its plans.
        !
        ! handle: host. Blocks.
        !
        ! Statuses: INVALID_VALUE (handle is NULL, backend is not a tarsiaBackend_t, no such
        ! device), ALLOC_FAILED, NOT_SUPPORTED (the library has no code for this backend or device,
        ! a driver that is too old for the kernels), NOT_INITIALIZED (CUDA: no driver, no device;
        ! the text says which).
        function tarsiaCreateWithBackend(handle, backend, device &
                ) bind(C, name="tarsiaCreateWithBackend")
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: handle
            integer(c_int), value, intent(in) :: backend
            integer(c_int), value, intent(in) :: device
            integer(c_int) :: tarsiaCreateWithBackend
        end function tarsiaCreateWithBackend
    end interface

    interface
        ! Destroys a handle and its workspace; plans made with it stay usable through other handles
        ! of the same backend and device. NULL does nothing.
        !
        ! Waits for other threads' calls with the handle to return, but not for their work on a
        ! device: the workspace is reused only after that work is done, and a graph that has
        ! captured calls keeps it until the graph is destroyed and its last launch is done. The
        ! stream may be destroyed before the handle, except with tarsiaSetAllocator, which says what
        ! must live.
        !
        ! Statuses: NOT_INITIALIZED (not a live handle), INVALID_STATE (called from the allocator or
        ! the logger while it serves a call of this handle; a graph keeps the workspace, which is
        ! memory of tarsiaSetAllocator's functions: the handle stays).
        function tarsiaDestroy(handle) bind(C, name="tarsiaDestroy")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int) :: tarsiaDestroy
        end function tarsiaDestroy
    end interface

    interface
        ! Sets the stream (a cudaStream_t) on which the handle's calls run from now on; NULL is the
        ! default stream. The host backend keeps but ignores it.
        !
        ! The handle's workspace moves to the new stream: an event makes the next product begin
        ! after the handle's last one on the previous stream. Products that a graph has captured
        ! with a handle use its workspace too, and the library does not order them: the graph must
        ! not run at the same time as other work of the handle, or as another graph of it.
        !
        ! Statuses: NOT_INITIALIZED.
        function tarsiaSetStream(handle, stream) bind(C, name="tarsiaSetStream")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: stream
            integer(c_int) :: tarsiaSetStream
        end function tarsiaSetStream
    end interface

    interface
        ! Gets the handle's stream.
        !
        ! stream: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (stream is NULL).
        function tarsiaGetStream(handle, stream) bind(C, name="tarsiaGetStream")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: stream
            integer(c_int) :: tarsiaGetStream
        end function tarsiaGetStream
    end interface

    interface
        ! Sets whether alpha and beta are on the host or on the device from now on; HOST after
        ! create. On the host backend both are host memory.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (mode is not a tarsiaPointerMode_t).
        function tarsiaSetPointerMode(handle, mode) bind(C, name="tarsiaSetPointerMode")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: mode
            integer(c_int) :: tarsiaSetPointerMode
        end function tarsiaSetPointerMode
    end interface

    interface
        ! Gets whether alpha and beta are on the host or on the device.
        !
        ! mode: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (mode is NULL).
        function tarsiaGetPointerMode(handle, mode) bind(C, name="tarsiaGetPointerMode")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: mode
            integer(c_int) :: tarsiaGetPointerMode
        end function tarsiaGetPointerMode
    end interface

    interface
        ! Sets deterministic mode (0 after create): 1 refuses what cannot give the same bits from
        ! run to run, such as effort TUNED. On CUDA, a plan that is analyzed in this mode uses
        ! another form of TARSIA_SPMM_ALG_SWIFT, and for TARSIA_SPMM_ALG_DENSE, by name or chosen,
        ! the library's own kernels: never cublasLt, whose choice of kernels depends on the version
        ! that is installed. Plans of these two algorithms that were analyzed outside of the mode
        ! and use atomics or cublasLt are refused in it (NOT_SUPPORTED). A plan that effort TUNED
        ! has analyzed outside of the mode is accepted in it: it repeats its own bits, and only the
        ! choice of algorithm may differ between runs.
        !
        ! Everything else is deterministic in either mode, with two exceptions. Arrays must have the
        ! same alignment to 16 bytes from run to run: an array that is aligned to less may be read,
        ! and summed, in other pieces. And the order in which SpGEMM sums on a device depends on C's
        ! format and on the memory that is free (tarsiaSpGEMM_createPlan).
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (deterministic is not 0 or 1).
        function tarsiaSetDeterministic(handle, deterministic &
                ) bind(C, name="tarsiaSetDeterministic")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: deterministic
            integer(c_int) :: tarsiaSetDeterministic
        end function tarsiaSetDeterministic
    end interface

    interface
        ! Gets whether deterministic mode is on (1) or off (0).
        !
        ! deterministic: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (deterministic is NULL).
        function tarsiaGetDeterministic(handle, deterministic &
                ) bind(C, name="tarsiaGetDeterministic")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: deterministic
            integer(c_int) :: tarsiaGetDeterministic
        end function tarsiaGetDeterministic
    end interface

    interface
        ! Sets checks for development (0 after create): 1 finds values and patterns that were
        ! changed without a call that brings them into a plan. tarsiaPlan_analyze then remembers
        ! 128-bit fingerprints of the plan's index arrays and values (with
        ! tarsiaPlan_setValuesInPlace: of the index arrays only), and the calls with new values
        ! renew the fingerprints of the values. Every product with the plan reads the arrays once
        ! more (tarsiaSpGEMM_symbolic: the index arrays alone), also where alpha is 0, and returns
        ! INVALID_STATE before it computes anything if they have changed; the text says which array,
        ! and which call is needed: tarsiaPlan_updateValues for values (tarsiaSpGEMM_updateValues
        ! for B's), a new plan for a pattern. The same error is returned if the descriptor that the
        ! plan was created from still has the plan's index arrays, but got another value array
        ! (tarsiaSpMatSetValues, which reaches no plan) after the plan took its values. A descriptor
        ! that got other index arrays counts as another matrix and is not compared. Matrices in
        ! tiles are not checked.
        !
        ! Every product of a plan that was analyzed while checks were off returns INVALID_STATE on a
        ! handle with checks on. A self-contained plan reads none of A's arrays and is not compared
        ! with them (tarsiaPlanInfo_t.checked is 0). A plan whose values were updated while checks
        ! were off returns INVALID_STATE, and says so, until they are updated with checks on.
        !
        ! On CUDA every product, with a plan or without, also asks the driver where its operands
        ! are, and returns INVALID_VALUE, with the argument's name, before a kernel or the program
        ! would fault: for x, y, z, B, C and D in ordinary host memory on a device that cannot use
        ! it, for alpha and beta in device memory with TARSIA_POINTER_MODE_HOST, and for alpha and
        ! beta in ordinary host memory with TARSIA_POINTER_MODE_DEVICE.
        !
        ! Checked calls block, also in a capture: there the arrays are read at once on a stream of
        ! the library's own, so that work which writes them must be done before, and the capture
        ! goes on. Replays of the graph are not checked.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (checks is not 0 or 1).
        function tarsiaSetChecks(handle, checks) bind(C, name="tarsiaSetChecks")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: checks
            integer(c_int) :: tarsiaSetChecks
        end function tarsiaSetChecks
    end interface

    interface
        ! Gets whether checks are on (1) or off (0).
        !
        ! checks: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (checks is NULL).
        function tarsiaGetChecks(handle, checks) bind(C, name="tarsiaGetChecks")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: checks
            integer(c_int) :: tarsiaGetChecks
        end function tarsiaGetChecks
    end interface

    interface tarsiaSetPlanCache
        ! Sets a folder in which the decisions of tarsiaPlan_analyze are stored for later analyses,
        ! also in other processes. An analysis with this handle looks there for the decisions of an
        ! earlier analysis of the same problem (all that tarsiaPlan_setDecisions lists, effort and
        ! deterministic mode). If it finds them, it builds the same layout without pattern
        ! statistics, cost model or timings; else it decides as usual and stores the decisions. To
        ! recognise a problem it reads A's index arrays (SpGEMM: and B's) once. tarsiaPlan_getInfo's
        ! reason says where decisions came from. Plans that were given decisions by
        ! tarsiaPlan_setDecisions do not use the folder.
        !
        ! The folder has one file per problem, as large as tarsiaPlan_getDecisions says. Any number
        ! of processes, also on several machines, may share the folder, and any file in it may be
        ! deleted. A damaged file, or one with other contents, is logged as a warning and written
        ! again. Where nothing can be written, analysis works as without a folder, logs a warning,
        ! and says so in its reason.
        !
        ! Only users whom the program trusts should be able to write to the folder: the program's
        ! own user, or a group that shares its decisions. This is not checked, nor who owns the
        ! folder and its files, nor links on the path to the folder. These protections exist: files
        ! are made anew under random names and renamed, so that nothing is written through a link;
        ! only regular files (no links, devices or FIFOs) of at most 64 KiB and 4 bytes per row of
        ! op(A) are read; and their contents are verified like those of tarsiaPlan_setDecisions.
        ! Whoever can write there can thus make plans slow, by decisions that are valid and bad, or
        ! keep decisions from being stored, and no more. Files that a process left unfinished more
        ! than a day ago are removed.
        !
        ! folder: host; a path that ends with 0; a relative path is resolved now, wherever the
        ! process goes later. The folder is created if it does not exist. NULL, as after create: no
        ! folder.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (folder: its path is empty, it cannot be made or
        ! written to).
        function tarsiaSetPlanCache(handle, folder) bind(C, name="tarsiaSetPlanCache")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: folder
            integer(c_int) :: tarsiaSetPlanCache
        end function tarsiaSetPlanCache
        module procedure tarsiaSetPlanCache_text
    end interface tarsiaSetPlanCache

    interface
        ! Takes memory for plans, conversions and the handle's own workspace from the user's
        ! functions; NULL for both goes back to the library's. Allowed until the first plan is
        ! created or analyzed with the handle, or the first product without a plan has allocated. An
        ! allocation that fails makes the call that needed it return ALLOC_FAILED and leaves every
        ! object usable.
        !
        ! All memory of a plan comes from the handle that tarsiaPlan_analyze gets, also what later
        ! calls with other handles allocate for the plan. The functions and ctx must stay valid
        ! until the handle, all plans that were analyzed with it, and the matrices in tiles that it
        ! has filled are destroyed. So must every stream that the handle had when it allocated:
        ! memory is freed on the stream that it was allocated for, in that stream's order, so that
        ! tarsiaDestroy and tarsiaPlan_destroy must not be called while that stream is captured.
        ! Some 64 KiB that tarsiaCreate allocates for a handle on a GPU never come from these
        ! functions.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (one of the functions is NULL), INVALID_STATE (a
        ! plan was created or analyzed already, or a product without a plan has allocated).
        function tarsiaSetAllocator(handle, alloc, free, ctx) bind(C, name="tarsiaSetAllocator")
            import :: c_funptr, c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_funptr), value, intent(in) :: alloc
            type(c_funptr), value, intent(in) :: free
            type(c_ptr), value, intent(in) :: ctx
            integer(c_int) :: tarsiaSetAllocator
        end function tarsiaSetAllocator
    end interface

    interface
        ! Sends the handle's log lines to callback: calls with this handle that failed (ERROR),
        ! failures that the library worked around, such as an unreadable file of the plan cache
        ! (WARNING), and what analysis chose and why (INFO). NULL stops it. Calls that take no
        ! handle, those on plans and descriptors alone, are not logged; tarsiaGetLastErrorMessage
        ! has their text. callback and ctx must stay valid until callback is replaced, or until the
        ! handle is destroyed.
        !
        ! Statuses: NOT_INITIALIZED.
        function tarsiaSetLogger(handle, callback, ctx) bind(C, name="tarsiaSetLogger")
            import :: c_funptr, c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_funptr), value, intent(in) :: callback
            type(c_ptr), value, intent(in) :: ctx
            integer(c_int) :: tarsiaSetLogger
        end function tarsiaSetLogger
    end interface

    interface
        ! Sets the memory that execute uses as workspace: bytes bytes of the backend's memory,
        ! aligned to 16 bytes, that nothing else uses while the handle's calls run. NULL with 0
        ! bytes goes back to the handle's own workspace, which tarsiaPlan_analyze,
        ! tarsiaPlan_prepare and tarsiaSpMM_once grow.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (ptr without bytes, bytes without ptr, ptr is
        ! misaligned, or ordinary host memory on CUDA).
        function tarsiaSetWorkspace(handle, ptr, bytes) bind(C, name="tarsiaSetWorkspace")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaSetWorkspace
        end function tarsiaSetWorkspace
    end interface

    interface
        ! Gets the handle's backend: HOST, CUDA or REFERENCE.
        !
        ! backend: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (backend is NULL).
        function tarsiaGetBackend(handle, backend) bind(C, name="tarsiaGetBackend")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: backend
            integer(c_int) :: tarsiaGetBackend
        end function tarsiaGetBackend
    end interface

    interface
        ! Gets the number of the handle's device; 0 on the CPU backends.
        !
        ! device: host.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (device is NULL).
        function tarsiaGetDevice(handle, device) bind(C, name="tarsiaGetDevice")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: device
            integer(c_int) :: tarsiaGetDevice
        end function tarsiaGetDevice
    end interface

    interface
        ! Allocates bytes bytes of the backend's memory, aligned to at least 256 bytes (not through
        ! tarsiaSetAllocator). 0 bytes give NULL.
        !
        ! ptr: host. May block.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (ptr is NULL), ALLOC_FAILED.
        function tarsiaMalloc(handle, ptr, bytes) bind(C, name="tarsiaMalloc")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMalloc
        end function tarsiaMalloc
    end interface

    interface
        ! Frees memory of tarsiaMalloc. NULL does nothing. Returns at once: the memory is reused
        ! only after all work that calls of this library, with any handle, have enqueued by now is
        ! done, and all work on this handle's stream. Work of the program's own on other streams
        ! that uses the memory must be done before.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_STATE (the handle's stream is being captured).
        function tarsiaFree(handle, ptr) bind(C, name="tarsiaFree")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: ptr
            integer(c_int) :: tarsiaFree
        end function tarsiaFree
    end interface

    interface tarsiaMemcpyToDevice
        ! Copies bytes bytes from host memory (src) to the backend's memory (dst), in the order of
        ! the handle's stream; src may be reused when the call returns.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (a pointer is NULL), EXECUTION_FAILED.
        function tarsiaMemcpyToDevice(handle, dst, src, bytes) bind(C, name="tarsiaMemcpyToDevice")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: dst
            type(c_ptr), value, intent(in) :: src
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMemcpyToDevice
        end function tarsiaMemcpyToDevice
        module procedure tarsiaMemcpyToDevice_int32_1d
        module procedure tarsiaMemcpyToDevice_int32_2d
        module procedure tarsiaMemcpyToDevice_int64_1d
        module procedure tarsiaMemcpyToDevice_int64_2d
        module procedure tarsiaMemcpyToDevice_real32_1d
        module procedure tarsiaMemcpyToDevice_real32_2d
        module procedure tarsiaMemcpyToDevice_real64_1d
        module procedure tarsiaMemcpyToDevice_real64_2d
        module procedure tarsiaMemcpyToDevice_complex32_1d
        module procedure tarsiaMemcpyToDevice_complex32_2d
        module procedure tarsiaMemcpyToDevice_complex64_1d
        module procedure tarsiaMemcpyToDevice_complex64_2d
    end interface tarsiaMemcpyToDevice

    interface tarsiaMemcpyToHost
        ! Copies bytes bytes from the backend's memory (src) to host memory (dst), in the order of
        ! the handle's stream. Blocks until dst is written.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (a pointer is NULL), EXECUTION_FAILED.
        function tarsiaMemcpyToHost(handle, dst, src, bytes) bind(C, name="tarsiaMemcpyToHost")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: dst
            type(c_ptr), value, intent(in) :: src
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMemcpyToHost
        end function tarsiaMemcpyToHost
        module procedure tarsiaMemcpyToHost_int32_1d
        module procedure tarsiaMemcpyToHost_int32_2d
        module procedure tarsiaMemcpyToHost_int64_1d
        module procedure tarsiaMemcpyToHost_int64_2d
        module procedure tarsiaMemcpyToHost_real32_1d
        module procedure tarsiaMemcpyToHost_real32_2d
        module procedure tarsiaMemcpyToHost_real64_1d
        module procedure tarsiaMemcpyToHost_real64_2d
        module procedure tarsiaMemcpyToHost_complex32_1d
        module procedure tarsiaMemcpyToHost_complex32_2d
        module procedure tarsiaMemcpyToHost_complex64_1d
        module procedure tarsiaMemcpyToHost_complex64_2d
    end interface tarsiaMemcpyToHost

    interface
        ! Blocks until all work on the handle's stream is done. Returns at once on the CPU backends,
        ! where every call is synchronous.
        !
        ! Statuses: NOT_INITIALIZED, EXECUTION_FAILED (work on the stream failed).
        function tarsiaSynchronize(handle) bind(C, name="tarsiaSynchronize")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int) :: tarsiaSynchronize
        end function tarsiaSynchronize
    end interface

    interface tarsiaCreateCsr
        ! Describes a CSR matrix: row i has the entries rowOffsets[i] - base up to but not including
        ! rowOffsets[i + 1] - base.
        !
        ! The descriptor borrows the arrays and copies nothing; nothing is read here. rowOffsets:
        ! rows + 1 offsets; colInd, values: nnz each; all in the backend's memory, aligned to their
        ! elements, NULL allowed until the matrix is used. Columns may be unsorted and stored twice
        ! (they add up). (offset, index) types: 32/32, 64/32 or 64/64 bits.
        !
        ! Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large for its
        ! index type or for memory; a misaligned array; not a value of an enum), NOT_SUPPORTED
        ! (index or value type that no operation takes), ALLOC_FAILED.
        function tarsiaCreateCsr(A, rows, cols, nnz, rowOffsets, colInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCreateCsr")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateCsr
        end function tarsiaCreateCsr
        module procedure tarsiaCreateCsr_int32_real32
        module procedure tarsiaCreateCsr_int32_real64
        module procedure tarsiaCreateCsr_int32_complex32
        module procedure tarsiaCreateCsr_int32_complex64
        module procedure tarsiaCreateCsr_int64_real32
        module procedure tarsiaCreateCsr_int64_real64
        module procedure tarsiaCreateCsr_int64_complex32
        module procedure tarsiaCreateCsr_int64_complex64
    end interface tarsiaCreateCsr

    interface tarsiaCreateConstCsr
        ! Like tarsiaCreateCsr, but from const arrays: the descriptor cannot be the C of a SpGEMM.
        !
        ! Statuses: those of tarsiaCreateCsr.
        function tarsiaCreateConstCsr(A, rows, cols, nnz, rowOffsets, colInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCreateConstCsr")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateConstCsr
        end function tarsiaCreateConstCsr
        module procedure tarsiaCreateConstCsr_int32_real32
        module procedure tarsiaCreateConstCsr_int32_real64
        module procedure tarsiaCreateConstCsr_int32_complex32
        module procedure tarsiaCreateConstCsr_int32_complex64
        module procedure tarsiaCreateConstCsr_int64_real32
        module procedure tarsiaCreateConstCsr_int64_real64
        module procedure tarsiaCreateConstCsr_int64_complex32
        module procedure tarsiaCreateConstCsr_int64_complex64
    end interface tarsiaCreateConstCsr

    interface tarsiaCreateCsc
        ! Describes a CSC matrix: column j has the entries colOffsets[j] - base up to but not
        ! including colOffsets[j + 1] - base.
        !
        ! The descriptor borrows the arrays and copies nothing; nothing is read here. colOffsets:
        ! cols + 1 offsets; rowInd, values: nnz each; all in the backend's memory, aligned to their
        ! elements, NULL allowed until the matrix is used. Rows may be unsorted and stored twice
        ! (they add up). (offset, index) types: 32/32, 64/32 or 64/64 bits.
        !
        ! Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large for its
        ! index type or for memory; a misaligned array; not a value of an enum), NOT_SUPPORTED
        ! (index or value type that no operation takes), ALLOC_FAILED.
        function tarsiaCreateCsc(A, rows, cols, nnz, colOffsets, rowInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCreateCsc")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: colOffsets
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateCsc
        end function tarsiaCreateCsc
        module procedure tarsiaCreateCsc_int32_real32
        module procedure tarsiaCreateCsc_int32_real64
        module procedure tarsiaCreateCsc_int32_complex32
        module procedure tarsiaCreateCsc_int32_complex64
        module procedure tarsiaCreateCsc_int64_real32
        module procedure tarsiaCreateCsc_int64_real64
        module procedure tarsiaCreateCsc_int64_complex32
        module procedure tarsiaCreateCsc_int64_complex64
    end interface tarsiaCreateCsc

    interface tarsiaCreateConstCsc
        ! Like tarsiaCreateCsc, but from const arrays: the descriptor cannot be the C of a SpGEMM.
        !
        ! Statuses: those of tarsiaCreateCsc.
        function tarsiaCreateConstCsc(A, rows, cols, nnz, colOffsets, rowInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCreateConstCsc")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: colOffsets
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateConstCsc
        end function tarsiaCreateConstCsc
        module procedure tarsiaCreateConstCsc_int32_real32
        module procedure tarsiaCreateConstCsc_int32_real64
        module procedure tarsiaCreateConstCsc_int32_complex32
        module procedure tarsiaCreateConstCsc_int32_complex64
        module procedure tarsiaCreateConstCsc_int64_real32
        module procedure tarsiaCreateConstCsc_int64_real64
        module procedure tarsiaCreateConstCsc_int64_complex32
        module procedure tarsiaCreateConstCsc_int64_complex64
    end interface tarsiaCreateConstCsc

    interface tarsiaCreateCoo
        ! Describes a COO matrix: entry p is in row rowInd[p] - base, column colInd[p] - base. Any
        ! order; entries stored twice add up.
        !
        ! The descriptor borrows the arrays and copies nothing; nothing is read here. rowInd,
        ! colInd, values: nnz each, in the backend's memory, aligned to their elements, NULL allowed
        ! until the matrix is used. Both index arrays have indexType, 32 or 64 bits.
        !
        ! Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large for its
        ! index type or for memory; a misaligned array; not a value of an enum), NOT_SUPPORTED
        ! (index or value type that no operation takes), ALLOC_FAILED.
        function tarsiaCreateCoo(A, rows, cols, nnz, rowInd, colInd, values, indexType, base, &
                valueType) bind(C, name="tarsiaCreateCoo")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateCoo
        end function tarsiaCreateCoo
        module procedure tarsiaCreateCoo_int32_real32
        module procedure tarsiaCreateCoo_int32_real64
        module procedure tarsiaCreateCoo_int32_complex32
        module procedure tarsiaCreateCoo_int32_complex64
        module procedure tarsiaCreateCoo_int64_real32
        module procedure tarsiaCreateCoo_int64_real64
        module procedure tarsiaCreateCoo_int64_complex32
        module procedure tarsiaCreateCoo_int64_complex64
    end interface tarsiaCreateCoo

    interface tarsiaCreateConstCoo
        ! Like tarsiaCreateCoo, but from const arrays.
        !
        ! Statuses: those of tarsiaCreateCoo.
        function tarsiaCreateConstCoo(A, rows, cols, nnz, rowInd, colInd, values, indexType, &
                base, valueType) bind(C, name="tarsiaCreateConstCoo")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: nnz
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateConstCoo
        end function tarsiaCreateConstCoo
        module procedure tarsiaCreateConstCoo_int32_real32
        module procedure tarsiaCreateConstCoo_int32_real64
        module procedure tarsiaCreateConstCoo_int32_complex32
        module procedure tarsiaCreateConstCoo_int32_complex64
        module procedure tarsiaCreateConstCoo_int64_real32
        module procedure tarsiaCreateConstCoo_int64_real64
        module procedure tarsiaCreateConstCoo_int64_complex32
        module procedure tarsiaCreateConstCoo_int64_complex64
    end interface tarsiaCreateConstCoo

    interface
        ! Describes a BSR matrix: a CSR pattern of dense blocks of rowBlockSize x colBlockSize
        ! values. The matrix has blockRows * rowBlockSize rows and blockCols * colBlockSize columns.
        ! Every value of a stored block is a stored entry, zeros included.
        !
        ! The descriptor borrows the arrays and copies nothing; nothing is read here. rowOffsets:
        ! blockRows + 1 offsets in blocks; colInd: blockNnz block columns; values: blockNnz *
        ! rowBlockSize * colBlockSize, block after block, inside a block in blockOrder; all in the
        ! backend's memory, aligned to their elements, NULL allowed until the matrix is used. Blocks
        ! may be unsorted and stored twice (they add up). SpMV and SpMM take it.
        !
        ! Statuses: INVALID_VALUE (A is NULL; a dimension or blockNnz is negative, too large for its
        ! index type or for memory; a block size below 1; a misaligned array; not a value of an
        ! enum), NOT_SUPPORTED (index or value type that no operation takes), ALLOC_FAILED.
        function tarsiaCreateBsr(A, blockRows, blockCols, blockNnz, rowBlockSize, colBlockSize, &
                rowOffsets, colInd, values, offsetType, indexType, base, valueType, blockOrder &
                ) bind(C, name="tarsiaCreateBsr")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: blockRows
            integer(c_int64_t), value, intent(in) :: blockCols
            integer(c_int64_t), value, intent(in) :: blockNnz
            integer(c_int64_t), value, intent(in) :: rowBlockSize
            integer(c_int64_t), value, intent(in) :: colBlockSize
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int), value, intent(in) :: blockOrder
            integer(c_int) :: tarsiaCreateBsr
        end function tarsiaCreateBsr
    end interface

    interface
        ! Like tarsiaCreateBsr, but from const arrays.
        !
        ! Statuses: those of tarsiaCreateBsr.
        function tarsiaCreateConstBsr(A, blockRows, blockCols, blockNnz, rowBlockSize, &
                colBlockSize, rowOffsets, colInd, values, offsetType, indexType, base, valueType, &
                blockOrder) bind(C, name="tarsiaCreateConstBsr")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: blockRows
            integer(c_int64_t), value, intent(in) :: blockCols
            integer(c_int64_t), value, intent(in) :: blockNnz
            integer(c_int64_t), value, intent(in) :: rowBlockSize
            integer(c_int64_t), value, intent(in) :: colBlockSize
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: offsetType
            integer(c_int), value, intent(in) :: indexType
            integer(c_int), value, intent(in) :: base
            integer(c_int), value, intent(in) :: valueType
            integer(c_int), value, intent(in) :: blockOrder
            integer(c_int) :: tarsiaCreateConstBsr
        end function tarsiaCreateConstBsr
    end interface

    interface
        ! Destroys a sparse matrix descriptor, but not the arrays; for a matrix of tarsiaCreateTile
        ! also the tiles, once no plan reads them. NULL does nothing. Plans made with the descriptor
        ! stay usable, as long as the arrays are there.
        !
        ! Statuses: INVALID_VALUE (not a live descriptor).
        function tarsiaDestroySpMat(A) bind(C, name="tarsiaDestroySpMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int) :: tarsiaDestroySpMat
        end function tarsiaDestroySpMat
    end interface

    interface
        ! Validates the whole pattern of a matrix that is not trusted: offsets start at the base,
        ! never decrease and end at base + nnz; indices are in range. tarsiaPlan_analyze validates
        ! the same; this call also says whether the matrix is sorted and free of duplicates.
        !
        ! sorted, unique: host, each may be NULL. sorted: 1 if indices ascend inside every row (CSR;
        ! BSR: of blocks) or column (CSC), or entries ascend by (row, column) (COO). unique: 1 if it
        ! is sorted and nothing is stored twice. An unsorted matrix or one with duplicates is not an
        ! error: SpMV, SpMM and SpGEMM take unsorted matrices and add up entries that are stored
        ! twice. tarsiaSpMatGetSorted returns this value of sorted from then on.
        !
        ! Blocks; not inside a capture. Does not read the values.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (A is not a live descriptor, has a NULL array, or
        ! its pattern is wrong: the text says where), NOT_SUPPORTED (A is in tiles).
        function tarsiaCheckSpMat(handle, A, sorted, unique) bind(C, name="tarsiaCheckSpMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out), optional :: sorted
            integer(c_int), intent(out), optional :: unique
            integer(c_int) :: tarsiaCheckSpMat
        end function tarsiaCheckSpMat
    end interface

    interface
        ! Gets all fields of a CSR descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from const arrays; a
        ! misaligned answer).
        function tarsiaCsrGet(A, rows, cols, nnz, rowOffsets, colInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCsrGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            type(c_ptr), intent(out), optional :: rowOffsets
            type(c_ptr), intent(out), optional :: colInd
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: offsetType
            integer(c_int), intent(out), optional :: indexType
            integer(c_int), intent(out), optional :: base
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaCsrGet
        end function tarsiaCsrGet
    end interface

    interface
        ! Like tarsiaCsrGet, but for any CSR descriptor, with pointers to const.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSR descriptor; a misaligned answer).
        function tarsiaConstCsrGet(A, rows, cols, nnz, rowOffsets, colInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaConstCsrGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out) :: rows
            integer(c_int64_t), intent(out) :: cols
            integer(c_int64_t), intent(out) :: nnz
            type(c_ptr), intent(out) :: rowOffsets
            type(c_ptr), intent(out) :: colInd
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: offsetType
            integer(c_int), intent(out) :: indexType
            integer(c_int), intent(out) :: base
            integer(c_int), intent(out) :: valueType
            integer(c_int) :: tarsiaConstCsrGet
        end function tarsiaConstCsrGet
    end interface

    interface
        ! Replaces the arrays of a CSR descriptor; sizes and types stay. A plan copies the
        ! descriptor's fields, so this reaches no plan: an existing plan keeps its arrays, and
        ! tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from const arrays; a
        ! misaligned array).
        function tarsiaCsrSetPointers(A, rowOffsets, colInd, values &
                ) bind(C, name="tarsiaCsrSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCsrSetPointers
        end function tarsiaCsrSetPointers
    end interface

    interface
        ! Gets all fields of a CSC descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from const arrays; a
        ! misaligned answer).
        function tarsiaCscGet(A, rows, cols, nnz, colOffsets, rowInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaCscGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            type(c_ptr), intent(out), optional :: colOffsets
            type(c_ptr), intent(out), optional :: rowInd
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: offsetType
            integer(c_int), intent(out), optional :: indexType
            integer(c_int), intent(out), optional :: base
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaCscGet
        end function tarsiaCscGet
    end interface

    interface
        ! Like tarsiaCscGet, but for any CSC descriptor, with pointers to const.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSC descriptor; a misaligned answer).
        function tarsiaConstCscGet(A, rows, cols, nnz, colOffsets, rowInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaConstCscGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out) :: rows
            integer(c_int64_t), intent(out) :: cols
            integer(c_int64_t), intent(out) :: nnz
            type(c_ptr), intent(out) :: colOffsets
            type(c_ptr), intent(out) :: rowInd
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: offsetType
            integer(c_int), intent(out) :: indexType
            integer(c_int), intent(out) :: base
            integer(c_int), intent(out) :: valueType
            integer(c_int) :: tarsiaConstCscGet
        end function tarsiaConstCscGet
    end interface

    interface
        ! Replaces the arrays of a CSC descriptor; sizes and types stay. A plan copies the
        ! descriptor's fields, so this reaches no plan: an existing plan keeps its arrays, and
        ! tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
        !
        ! Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from const arrays; a
        ! misaligned array).
        function tarsiaCscSetPointers(A, colOffsets, rowInd, values &
                ) bind(C, name="tarsiaCscSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: colOffsets
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCscSetPointers
        end function tarsiaCscSetPointers
    end interface

    interface
        ! Gets all fields of a COO descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from const arrays; a
        ! misaligned answer).
        function tarsiaCooGet(A, rows, cols, nnz, rowInd, colInd, values, indexType, base, &
                valueType) bind(C, name="tarsiaCooGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            type(c_ptr), intent(out), optional :: rowInd
            type(c_ptr), intent(out), optional :: colInd
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: indexType
            integer(c_int), intent(out), optional :: base
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaCooGet
        end function tarsiaCooGet
    end interface

    interface
        ! Like tarsiaCooGet, but for any COO descriptor, with pointers to const.
        !
        ! Statuses: INVALID_VALUE (A is not a live COO descriptor; a misaligned answer).
        function tarsiaConstCooGet(A, rows, cols, nnz, rowInd, colInd, values, indexType, base, &
                valueType) bind(C, name="tarsiaConstCooGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out) :: rows
            integer(c_int64_t), intent(out) :: cols
            integer(c_int64_t), intent(out) :: nnz
            type(c_ptr), intent(out) :: rowInd
            type(c_ptr), intent(out) :: colInd
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: indexType
            integer(c_int), intent(out) :: base
            integer(c_int), intent(out) :: valueType
            integer(c_int) :: tarsiaConstCooGet
        end function tarsiaConstCooGet
    end interface

    interface
        ! Replaces the arrays of a COO descriptor; sizes and types stay. A plan copies the
        ! descriptor's fields, so this reaches no plan: an existing plan keeps its arrays, and
        ! tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
        !
        ! Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from const arrays; a
        ! misaligned array).
        function tarsiaCooSetPointers(A, rowInd, colInd, values &
                ) bind(C, name="tarsiaCooSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCooSetPointers
        end function tarsiaCooSetPointers
    end interface

    interface
        ! Gets all fields of a BSR descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from const arrays; a
        ! misaligned answer).
        function tarsiaBsrGet(A, blockRows, blockCols, blockNnz, rowBlockSize, colBlockSize, &
                rowOffsets, colInd, values, offsetType, indexType, base, valueType, blockOrder &
                ) bind(C, name="tarsiaBsrGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: blockRows
            integer(c_int64_t), intent(out), optional :: blockCols
            integer(c_int64_t), intent(out), optional :: blockNnz
            integer(c_int64_t), intent(out), optional :: rowBlockSize
            integer(c_int64_t), intent(out), optional :: colBlockSize
            type(c_ptr), intent(out), optional :: rowOffsets
            type(c_ptr), intent(out), optional :: colInd
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: offsetType
            integer(c_int), intent(out), optional :: indexType
            integer(c_int), intent(out), optional :: base
            integer(c_int), intent(out), optional :: valueType
            integer(c_int), intent(out), optional :: blockOrder
            integer(c_int) :: tarsiaBsrGet
        end function tarsiaBsrGet
    end interface

    interface
        ! Like tarsiaBsrGet, but for any BSR descriptor, with pointers to const.
        !
        ! Statuses: INVALID_VALUE (A is not a live BSR descriptor; a misaligned answer).
        function tarsiaConstBsrGet(A, blockRows, blockCols, blockNnz, rowBlockSize, colBlockSize, &
                rowOffsets, colInd, values, offsetType, indexType, base, valueType, blockOrder &
                ) bind(C, name="tarsiaConstBsrGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out) :: blockRows
            integer(c_int64_t), intent(out) :: blockCols
            integer(c_int64_t), intent(out) :: blockNnz
            integer(c_int64_t), intent(out) :: rowBlockSize
            integer(c_int64_t), intent(out) :: colBlockSize
            type(c_ptr), intent(out) :: rowOffsets
            type(c_ptr), intent(out) :: colInd
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: offsetType
            integer(c_int), intent(out) :: indexType
            integer(c_int), intent(out) :: base
            integer(c_int), intent(out) :: valueType
            integer(c_int), intent(out) :: blockOrder
            integer(c_int) :: tarsiaConstBsrGet
        end function tarsiaConstBsrGet
    end interface

    interface
        ! Replaces the arrays of a BSR descriptor; sizes and types stay. A plan copies the
        ! descriptor's fields, so this reaches no plan: an existing plan keeps its arrays, and
        ! tarsiaPlan_updateValues moves it to other values. NULL allowed until the matrix is used.
        !
        ! Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from const arrays; a
        ! misaligned array).
        function tarsiaBsrSetPointers(A, rowOffsets, colInd, values &
                ) bind(C, name="tarsiaBsrSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaBsrSetPointers
        end function tarsiaBsrSetPointers
    end interface

    interface
        ! Gets the numbers of rows, columns and stored entries, in scalars also for BSR. Answers:
        ! host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor; a misaligned answer).
        function tarsiaSpMatGetSize(A, rows, cols, nnz) bind(C, name="tarsiaSpMatGetSize")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            integer(c_int) :: tarsiaSpMatGetSize
        end function tarsiaSpMatGetSize
    end interface

    interface
        ! Gets the format of a descriptor.
        !
        ! format: host.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor, format is NULL).
        function tarsiaSpMatGetFormat(A, format) bind(C, name="tarsiaSpMatGetFormat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out) :: format
            integer(c_int) :: tarsiaSpMatGetFormat
        end function tarsiaSpMatGetFormat
    end interface

    interface
        ! Gets the index base of a descriptor.
        !
        ! base: host.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor, base is NULL), NOT_SUPPORTED (A is in
        ! tiles).
        function tarsiaSpMatGetIndexBase(A, base) bind(C, name="tarsiaSpMatGetIndexBase")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out) :: base
            integer(c_int) :: tarsiaSpMatGetIndexBase
        end function tarsiaSpMatGetIndexBase
    end interface

    interface
        ! Gets whether the indices of each row are known to ascend (CSC: of each column; BSR: of
        ! blocks; COO: entries by row and column), in the sense of sorted of tarsiaCheckSpMat: an
        ! index that is stored twice does not change it.
        !
        ! sorted: host. 1: the last call of the library that has checked or written the whole
        ! pattern of this descriptor found or wrote it sorted: tarsiaCheckSpMat,
        ! tarsiaSpGEMM_numeric of a plan whose output is sorted, tarsiaTileToSparse; for a matrix in
        ! tiles always. 0: not known. That is the answer for a descriptor that has just been
        ! created, after new pointers (tarsiaCsrSetPointers and so on; not tarsiaSpMatSetValues,
        ! which leaves the pattern), after tarsiaCheckSpMat has found another order or an error, and
        ! after tarsiaSpGEMM_numeric of a plan of tarsiaPlan_setSortedOutput(plan, 0), whatever
        ! order it wrote. A call that fails leaves 0, or the previous answer. tarsiaPlan_analyze
        ! changes no descriptor.
        !
        ! Work on a device that writes the matrix may still be under way when the answer is known.
        ! The call reads nothing of the matrix: a program that writes indices itself calls
        ! tarsiaCheckSpMat again. No operation needs sorted indices.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor, sorted is NULL).
        function tarsiaSpMatGetSorted(A, sorted) bind(C, name="tarsiaSpMatGetSorted")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out) :: sorted
            integer(c_int) :: tarsiaSpMatGetSorted
        end function tarsiaSpMatGetSorted
    end interface

    interface
        ! Gets the value array of a descriptor.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor or was made from const arrays, values
        ! is NULL), NOT_SUPPORTED (A is in tiles).
        function tarsiaSpMatGetValues(A, values) bind(C, name="tarsiaSpMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaSpMatGetValues
        end function tarsiaSpMatGetValues
    end interface

    interface
        ! Gets the value array of any descriptor, as a pointer to const.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor, values is NULL), NOT_SUPPORTED (A is
        ! in tiles).
        function tarsiaConstSpMatGetValues(A, values) bind(C, name="tarsiaConstSpMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstSpMatGetValues
        end function tarsiaConstSpMatGetValues
    end interface

    interface
        ! Replaces the value array of a descriptor. A plan copies the descriptor's fields, so this
        ! reaches no plan: an existing plan keeps its array until tarsiaPlan_updateValues (for the
        ! second factor of SpGEMM tarsiaSpGEMM_updateValues) gives it another. (A program calls that
        ! after every change of values; until then a product may use the old or the new ones.)
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor or was made from const arrays,
        ! misaligned values), NOT_SUPPORTED (A is in tiles).
        function tarsiaSpMatSetValues(A, values) bind(C, name="tarsiaSpMatSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaSpMatSetValues
        end function tarsiaSpMatSetValues
    end interface

    interface
        ! Creates an empty matrix in sparse tiles of 16 x 16, whose memory is the library's.
        !
        ! tarsiaSparseToTile and, with TARSIA_SPGEMM_ALG_TILE, tarsiaSpGEMM_numeric fill it, each
        ! time anew; a product takes it as A or B without conversion, so that a chain of products (A
        ! * A * A, or P^T * (A * P)) stays in tiles; tarsiaTileToSparse converts it to CSR or CSC.
        ! tarsiaTileGet and tarsiaSpMatGetSize give its numbers of entries and tiles.
        ! tarsiaDestroySpMat destroys it. Functions that need arrays of the user (SpMV, SpMM,
        ! tarsiaCheckSpMat, tarsiaCsrGet, tarsiaSpMatGetValues ...) refuse it and say so.
        !
        ! A: host. valueType: the type of the values, R_32F, R_64F, C_32F or C_64F; fp16 and bf16
        ! matrices become R_32F, exactly. The memory that it is filled with comes from the allocator
        ! of the handle that the filling call has; the functions of tarsiaSetAllocator must stay
        ! valid, and the stream that the handle has then must live, until the matrix and the plans
        ! that read it are destroyed. Neither tarsiaDestroySpMat, nor calls that fill the matrix
        ! anew, nor tarsiaPlan_destroy wait for products that read its tiles: their memory is reused
        ! only when the last of these products is done. A tile takes 60 bytes, an entry its value
        ! and one byte.
        !
        ! Source of the layout: Y. Niu et al., "TileSpGEMM", PPoPP 2022, section 3.2.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (A is NULL, a dimension is negative or 2^31 or
        ! more, valueType is not a tarsiaDataType_t), NOT_SUPPORTED (another valueType),
        ! ALLOC_FAILED.
        function tarsiaCreateTile(handle, A, rows, cols, valueType) bind(C, name="tarsiaCreateTile")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateTile
        end function tarsiaCreateTile
    end interface

    interface
        ! Gets the sizes of a matrix of tarsiaCreateTile: its stored entries and the tiles that have
        ! at least one, both 0 before it is filled. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (A is not a live descriptor or not in tiles; a misaligned answer).
        function tarsiaTileGet(A, rows, cols, nnz, tileCount, valueType &
                ) bind(C, name="tarsiaTileGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            integer(c_int64_t), intent(out), optional :: tileCount
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaTileGet
        end function tarsiaTileGet
    end interface

    interface
        ! Converts the CSR or CSC matrix A to tiles: B = A.
        !
        ! A: CSR or CSC, any index types, either base; unsorted rows are sorted, entries stored
        ! twice are added up. B: of tarsiaCreateTile, of A's shape, with A's value type (R_32F for
        ! an fp16 or bf16 A); its previous contents are replaced. From CSC the tiles are made by
        ! columns; a product needs no copy of such tiles where both factors have them, or where op
        ! transposes this factor and not the other.
        !
        ! Blocks, allocates; not inside a capture. Validates A. Plans that read B keep its previous
        ! contents (tarsiaSpGEMM_updateValues takes new values of the same pattern).
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (A or B is not a live descriptor, A has a NULL
        ! array or a wrong pattern, B is not in tiles, of another shape, type, backend or device),
        ! NOT_SUPPORTED (format of A, 2^32 tiles or more), INVALID_STATE (a capture), ALLOC_FAILED.
        function tarsiaSparseToTile(handle, A, B) bind(C, name="tarsiaSparseToTile")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaSparseToTile
        end function tarsiaSparseToTile
    end interface

    interface
        ! Converts the matrix A in tiles to CSR or CSC: B = A.
        !
        ! A: of tarsiaCreateTile, filled. B: CSR or CSC of A's shape and value type with room for
        ! the number of entries that tarsiaTileGet gives, any index types that hold them, either
        ! base; rows (columns for CSC) come out sorted, without duplicates.
        !
        ! Blocks, may allocate; not inside a capture.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (A or B is not a live descriptor, A is not in
        ! tiles, or of another backend or device; B is const, of another shape, type or number of
        ! entries, or has a NULL array), NOT_SUPPORTED (format of B), INVALID_STATE (A was never
        ! filled, a capture), ALLOC_FAILED.
        function tarsiaTileToSparse(handle, A, B) bind(C, name="tarsiaTileToSparse")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaTileToSparse
        end function tarsiaTileToSparse
    end interface

    interface tarsiaCreateDnVec
        ! Describes a dense vector of size elements, contiguous.
        !
        ! The descriptor borrows the array and copies nothing. values: in the backend's memory,
        ! aligned to its elements, NULL allowed until the vector is used.
        !
        ! Statuses: INVALID_VALUE (x is NULL, size is negative or more than memory holds, misaligned
        ! values, valueType is not a tarsiaDataType_t), NOT_SUPPORTED (value type that no operation
        ! takes), ALLOC_FAILED.
        function tarsiaCreateDnVec(x, size, values, valueType) bind(C, name="tarsiaCreateDnVec")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: x
            integer(c_int64_t), value, intent(in) :: size
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateDnVec
        end function tarsiaCreateDnVec
        module procedure tarsiaCreateDnVec_real32
        module procedure tarsiaCreateDnVec_real64
        module procedure tarsiaCreateDnVec_complex32
        module procedure tarsiaCreateDnVec_complex64
    end interface tarsiaCreateDnVec

    interface tarsiaCreateConstDnVec
        ! Like tarsiaCreateDnVec, but from a const array: the descriptor cannot be y.
        !
        ! Statuses: those of tarsiaCreateDnVec.
        function tarsiaCreateConstDnVec(x, size, values, valueType &
                ) bind(C, name="tarsiaCreateConstDnVec")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: x
            integer(c_int64_t), value, intent(in) :: size
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateConstDnVec
        end function tarsiaCreateConstDnVec
        module procedure tarsiaCreateConstDnVec_real32
        module procedure tarsiaCreateConstDnVec_real64
        module procedure tarsiaCreateConstDnVec_complex32
        module procedure tarsiaCreateConstDnVec_complex64
    end interface tarsiaCreateConstDnVec

    interface
        ! Destroys a dense vector descriptor, not the array. NULL does nothing.
        !
        ! Statuses: INVALID_VALUE (not a live descriptor).
        function tarsiaDestroyDnVec(x) bind(C, name="tarsiaDestroyDnVec")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int) :: tarsiaDestroyDnVec
        end function tarsiaDestroyDnVec
    end interface

    interface
        ! Gets all fields of a dense vector descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const array; a
        ! misaligned answer).
        function tarsiaDnVecGet(x, size, values, valueType) bind(C, name="tarsiaDnVecGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int64_t), intent(out), optional :: size
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaDnVecGet
        end function tarsiaDnVecGet
    end interface

    interface
        ! Like tarsiaDnVecGet, but for any dense vector descriptor, with a pointer to const.
        !
        ! Statuses: INVALID_VALUE (x is not a live descriptor; a misaligned answer).
        function tarsiaConstDnVecGet(x, size, values, valueType) bind(C, name="tarsiaConstDnVecGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int64_t), intent(out) :: size
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: valueType
            integer(c_int) :: tarsiaConstDnVecGet
        end function tarsiaConstDnVecGet
    end interface

    interface
        ! Gets the array of a dense vector descriptor.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const array, values
        ! is NULL).
        function tarsiaDnVecGetValues(x, values) bind(C, name="tarsiaDnVecGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaDnVecGetValues
        end function tarsiaDnVecGetValues
    end interface

    interface
        ! Gets the array of any dense vector descriptor, as a pointer to const.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (x is not a live descriptor, values is NULL).
        function tarsiaConstDnVecGetValues(x, values) bind(C, name="tarsiaConstDnVecGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstDnVecGetValues
        end function tarsiaConstDnVecGetValues
    end interface

    interface
        ! Replaces the array of a dense vector descriptor; size and type stay.
        !
        ! Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const array,
        ! misaligned values).
        function tarsiaDnVecSetValues(x, values) bind(C, name="tarsiaDnVecSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaDnVecSetValues
        end function tarsiaDnVecSetValues
    end interface

    interface tarsiaCreateDnMat
        ! Describes a dense matrix of rows x cols elements. Element (i, j) is at values[i + j*ld] in
        ! order COL (ld >= rows) and at values[i*ld + j] in order ROW (ld >= cols); ld >= 1, in
        ! elements.
        !
        ! The descriptor borrows the array and copies nothing. values: in the backend's memory,
        ! aligned to its elements, NULL allowed until the matrix is used.
        !
        ! Statuses: INVALID_VALUE (B is NULL, a dimension is negative, ld is too small or the matrix
        ! more than memory holds, misaligned values, not a value of an enum), NOT_SUPPORTED (value
        ! type that no operation takes), ALLOC_FAILED.
        function tarsiaCreateDnMat(B, rows, cols, ld, values, valueType, order &
                ) bind(C, name="tarsiaCreateDnMat")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: B
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: ld
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int), value, intent(in) :: order
            integer(c_int) :: tarsiaCreateDnMat
        end function tarsiaCreateDnMat
        module procedure tarsiaCreateDnMat_real32
        module procedure tarsiaCreateDnMat_real64
        module procedure tarsiaCreateDnMat_complex32
        module procedure tarsiaCreateDnMat_complex64
    end interface tarsiaCreateDnMat

    interface tarsiaCreateConstDnMat
        ! Like tarsiaCreateDnMat, but from a const array: the descriptor cannot be C.
        !
        ! Statuses: those of tarsiaCreateDnMat.
        function tarsiaCreateConstDnMat(B, rows, cols, ld, values, valueType, order &
                ) bind(C, name="tarsiaCreateConstDnMat")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: B
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int64_t), value, intent(in) :: ld
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int), value, intent(in) :: order
            integer(c_int) :: tarsiaCreateConstDnMat
        end function tarsiaCreateConstDnMat
        module procedure tarsiaCreateConstDnMat_real32
        module procedure tarsiaCreateConstDnMat_real64
        module procedure tarsiaCreateConstDnMat_complex32
        module procedure tarsiaCreateConstDnMat_complex64
    end interface tarsiaCreateConstDnMat

    interface
        ! Destroys a dense matrix descriptor, not the array. NULL does nothing.
        !
        ! Statuses: INVALID_VALUE (not a live descriptor).
        function tarsiaDestroyDnMat(B) bind(C, name="tarsiaDestroyDnMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaDestroyDnMat
        end function tarsiaDestroyDnMat
    end interface

    interface
        ! Gets all fields of a dense matrix descriptor. Answers: host, each may be NULL.
        !
        ! Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const array; a
        ! misaligned answer).
        function tarsiaDnMatGet(B, rows, cols, ld, values, valueType, order &
                ) bind(C, name="tarsiaDnMatGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: B
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: ld
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: valueType
            integer(c_int), intent(out), optional :: order
            integer(c_int) :: tarsiaDnMatGet
        end function tarsiaDnMatGet
    end interface

    interface
        ! Like tarsiaDnMatGet, but for any dense matrix descriptor, with a pointer to const.
        !
        ! Statuses: INVALID_VALUE (B is not a live descriptor; a misaligned answer).
        function tarsiaConstDnMatGet(B, rows, cols, ld, values, valueType, order &
                ) bind(C, name="tarsiaConstDnMatGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: B
            integer(c_int64_t), intent(out) :: rows
            integer(c_int64_t), intent(out) :: cols
            integer(c_int64_t), intent(out) :: ld
            type(c_ptr), intent(out) :: values
            integer(c_int), intent(out) :: valueType
            integer(c_int), intent(out) :: order
            integer(c_int) :: tarsiaConstDnMatGet
        end function tarsiaConstDnMatGet
    end interface

    interface
        ! Gets the array of a dense matrix descriptor.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const array, values
        ! is NULL).
        function tarsiaDnMatGetValues(B, values) bind(C, name="tarsiaDnMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaDnMatGetValues
        end function tarsiaDnMatGetValues
    end interface

    interface
        ! Gets the array of any dense matrix descriptor, as a pointer to const.
        !
        ! values: host.
        !
        ! Statuses: INVALID_VALUE (B is not a live descriptor, values is NULL).
        function tarsiaConstDnMatGetValues(B, values) bind(C, name="tarsiaConstDnMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstDnMatGetValues
        end function tarsiaConstDnMatGetValues
    end interface

    interface
        ! Replaces the array of a dense matrix descriptor; shape, order and type stay.
        !
        ! Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const array,
        ! misaligned values).
        function tarsiaDnMatSetValues(B, values) bind(C, name="tarsiaDnMatSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaDnMatSetValues
        end function tarsiaDnMatSetValues
    end interface

    interface
        ! Sets how much tarsiaPlan_analyze may cost; DEFAULT after create.
        !
        ! Statuses: INVALID_VALUE (plan, effort), INVALID_STATE (analyzed already).
        function tarsiaPlan_setEffort(plan, effort) bind(C, name="tarsiaPlan_setEffort")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: effort
            integer(c_int) :: tarsiaPlan_setEffort
        end function tarsiaPlan_setEffort
    end interface

    interface
        ! Sets the row reordering; AUTO after create. y and C keep the user's order whatever is
        ! chosen: kernels write a row where the user has it.
        !
        ! AUTO lets SpMM's WINDOW and SMAT put rows with similar columns together. A policy by name
        ! is for SpMV's CSR and SpMM's ROW and CSR, and the library then chooses among these;
        ! analysis makes a copy of the matrix with its rows in that order (on CUDA too the order is
        ! computed on the host, from a copy of the pattern). tarsiaPlan_updateValues keeps the
        ! order, and behaves as with setValueUpdates(1).
        !
        ! LEARNED lets analysis compute 24 features of the pattern (on CUDA on the host, from a copy
        ! of it) and use the policy, or the rows' own order, whose product is predicted to be
        ! fastest. It serves SpMV's CSR and SpMM's ROW (learned with B and C by rows) and CSR (by
        ! columns). It was learned from times in fp32 and with 128 columns on an H100, and is
        ! applied to other types, columns, orders of B and C and machines, too. tarsiaPlan_getInfo
        ! says which order it is, and its reason that it was predicted.
        !
        ! Statuses: INVALID_VALUE (plan, reorder), INVALID_STATE (analyzed already).
        ! tarsiaPlan_analyze returns NOT_SUPPORTED for a policy by name with another algorithm by
        ! name, for SpGEMM, for op(A) of 2^31 rows or columns and more, for RCM where op(A) is not
        ! square, and for LEARNED where no times of such products were measured. The reference
        ! backend takes every policy and changes nothing.
        function tarsiaPlan_setReorder(plan, reorder) bind(C, name="tarsiaPlan_setReorder")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: reorder
            integer(c_int) :: tarsiaPlan_setReorder
        end function tarsiaPlan_setReorder
    end interface

    interface
        ! Sets the block size of TARSIA_SPMM_ALG_SMAT: 16 x 16 (values of 16 bits only) or 16 x 8. 0
        ! x 0 (after create) leaves the choice to a cost model, which uses the number of blocks of
        ! each size.
        !
        ! Statuses: INVALID_VALUE (plan is NULL or not of SpMM, rowBlockDim, colBlockDim),
        ! INVALID_STATE (analyzed already). tarsiaPlan_analyze returns NOT_SUPPORTED for a plan of
        ! another algorithm, and for blocks that its types do not have.
        function tarsiaPlan_setBlockDims(plan, rowBlockDim, colBlockDim &
                ) bind(C, name="tarsiaPlan_setBlockDims")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: rowBlockDim
            integer(c_int64_t), value, intent(in) :: colBlockDim
            integer(c_int) :: tarsiaPlan_setBlockDims
        end function tarsiaPlan_setBlockDims
    end interface

    interface
        ! Sets whether values will change. 1: the plan stores where each value goes, so that
        ! tarsiaPlan_updateValues is asynchronous and O(nnz); SpGEMM keeps C's pattern, and on a
        ! device, where entries of C have few products, the positions of their factors (8 bytes per
        ! product and 4 per entry, up to three times the bytes of C and once those of A and B). 0
        ! (after create): the plan needs less memory, and may store values in fewer bytes where that
        ! keeps every bit; updateValues may rebuild and block, and is refused while a graph has
        ! captured products that would continue to use the previous arrays. This setting determines
        ! what tarsiaPlan_updateValues costs, not when new values take effect: see there.
        !
        ! Statuses: INVALID_VALUE (plan, valueUpdates not 0 or 1), INVALID_STATE (analyzed already).
        function tarsiaPlan_setValueUpdates(plan, valueUpdates &
                ) bind(C, name="tarsiaPlan_setValueUpdates")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: valueUpdates
            integer(c_int) :: tarsiaPlan_setValueUpdates
        end function tarsiaPlan_setValueUpdates
    end interface

    interface
        ! Sets whether the plan is self-contained (0 after create). 1: analysis copies all that the
        ! plan needs, so that when tarsiaPlan_analyze has returned the caller may change and free
        ! the arrays of A (SpGEMM: and of B). Layouts that are copies in any case take no more
        ! memory by it; those that read CSR in place become a copy of op(A) in CSR with 32-bit
        ! columns. tarsiaPlan_updateValues then needs tarsiaPlan_setValueUpdates(plan, 1), since the
        ! pattern cannot be read any more. Factors in tiles belong to the plan in any case.
        !
        ! Statuses: INVALID_VALUE (plan, selfContained not 0 or 1), INVALID_STATE (analyzed
        ! already). tarsiaPlan_analyze returns NOT_SUPPORTED where op(A) has more than 2^31 - 1
        ! columns, since such a matrix is never copied, and with tarsiaPlan_setValuesInPlace(plan,
        ! 1); tarsiaPlan_updateValues returns INVALID_STATE without setValueUpdates(1).
        function tarsiaPlan_setSelfContained(plan, selfContained &
                ) bind(C, name="tarsiaPlan_setSelfContained")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: selfContained
            integer(c_int) :: tarsiaPlan_setSelfContained
        end function tarsiaPlan_setSelfContained
    end interface

    interface
        ! Sets whether every execute reads the present values of the user's arrays (0 after create).
        ! 1: a program may change values in place when the products that it has enqueued with the
        ! plan are done, or in the order of their stream, and needs no further call. Analysis reads
        ! the pattern alone (the value array must exist; its values may be anything then).
        ! tarsiaPlan_updateValues with another array moves the plan to that array, asynchronously,
        ! since only its address changes (a CUDA graph goes on with the address that it was captured
        ! with, and as long as there is such a graph the call is refused outside of a capture). With
        ! setValueUpdates(1) SpGEMM also keeps C's pattern.
        !
        ! The algorithms TARSIA_SPMV_ALG_CSR, TARSIA_SPMM_ALG_ROW and TARSIA_SPGEMM_ALG_HASH support
        ! it; DEFAULT then takes the one of the operation, whatever the effort. They do for matrices
        ! whose values have the order of op(A)'s rows: CSR with op N, CSC with op T, and with op C
        ! for real values; for SpGEMM both factors, or both by columns (CSC with op N, CSR with op
        ! T).
        !
        ! On a device a plan of SpMV may then keep columns of its own in 16 bits, which analysis
        ! makes from the pattern: with fp64 a product moves 10 bytes per entry instead of 12, with
        ! fp32 6 instead of 8, and has the same bits. They count in planBytes: 2 bytes per entry
        ! and, where op(A) has more than 65536 columns, 4 per row or 4 per 32 entries. Efforts
        ! DEFAULT and TUNED make them where that is predicted to pay, which it does not for small
        ! matrices and for few executes (tarsiaPlan_setExpectedExecutes). Where 16 bits cannot hold
        ! the distances between columns, or memory is missing, the plan reads the user's columns.
        ! tarsiaPlan_getInfo says in reason which it does. Offsets are read in place, so that all
        ! arrays of A must stay.
        !
        ! On the host a plan of SpMM on rows in place, whatever this setting, copies their columns
        ! if offsets and indices have 32 bits, B and C are real and of the compute type, and C is
        ! stored by rows of up to 256 bytes (by nHint): 2 or 4 bytes per entry, for which products
        ! for beta = 0 need not check columns. It does so with efforts DEFAULT and TUNED, if stated
        ! executes pay for it, and memory is there.
        !
        ! Statuses: INVALID_VALUE (plan, valuesInPlace not 0 or 1), INVALID_STATE (analyzed
        ! already). tarsiaPlan_analyze returns NOT_SUPPORTED for another algorithm by name, another
        ! format or op, a matrix in tiles, and a reordering by name; the text says which, and what
        ! would be supported.
        function tarsiaPlan_setValuesInPlace(plan, valuesInPlace &
                ) bind(C, name="tarsiaPlan_setValuesInPlace")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: valuesInPlace
            integer(c_int) :: tarsiaPlan_setValuesInPlace
        end function tarsiaPlan_setValuesInPlace
    end interface

    interface
        ! Sets how often the plan will be executed (SpGEMM: its numeric phase). The choice then
        ! minimises the predicted time of analysis and of executes products together, so that a plan
        ! for few products converts nothing and reads A in place, as with effort QUICK; effort TUNED
        ! builds and times only candidates that may gain more than that takes. A plan may be
        ! executed more often, or less; one that was told a few executions and has many can take
        ! twice as long for each as one that was told nothing. 0 (after create): not known; the
        ! choice minimises the time of one product and ignores that of analysis, as if the plan were
        ! executed very often.
        !
        ! Statuses: INVALID_VALUE (plan, executes < 0), INVALID_STATE (analyzed already).
        function tarsiaPlan_setExpectedExecutes(plan, executes &
                ) bind(C, name="tarsiaPlan_setExpectedExecutes")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: executes
            integer(c_int) :: tarsiaPlan_setExpectedExecutes
        end function tarsiaPlan_setExpectedExecutes
    end interface

    interface
        ! Sets whether SpGEMM sorts the columns of each row of C (1 after create). 0: every row of C
        ! = alpha * op(A) * op(B) has the same entries with the same bits, but in the order that
        ! costs least, which may be ascending for some rows, or for all, and differs between
        ! versions, backends and devices. The order is the same in every numeric phase, with any
        ! alpha, and in other plans of the same problem and settings; with
        ! tarsiaPlan_setValueUpdates(plan, 1) it is kept with the pattern. This suits results whose
        ! readers need no order: another product, SpMV and SpMM (all of which take unsorted rows),
        ! multigrid, counting of triangles.
        !
        ! C is then CSR, and DEFAULT takes TARSIA_SPGEMM_ALG_HASH, never TILE. tarsiaSpMatGetSorted
        ! says whether a matrix is known to be sorted.
        !
        ! Statuses: INVALID_VALUE (plan is NULL or not of SpGEMM, sortedOutput not 0 or 1),
        ! INVALID_STATE (analyzed already). With 0, tarsiaPlan_analyze returns NOT_SUPPORTED for
        ! TARSIA_SPGEMM_ALG_TILE by name and for A or B in tiles, tarsiaSpGEMM_numeric for C in CSC
        ! or in tiles.
        function tarsiaPlan_setSortedOutput(plan, sortedOutput &
                ) bind(C, name="tarsiaPlan_setSortedOutput")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: sortedOutput
            integer(c_int) :: tarsiaPlan_setSortedOutput
        end function tarsiaPlan_setSortedOutput
    end interface

    interface
        ! Sets the most bytes that the plan may hold at one time, including temporary memory of
        ! analysis and of SpGEMM's phases, but not C; 0 removes the limit (after create: the memory
        ! that the backend has left). SpGEMM on a device works part by part where an intermediate
        ! result does not fit as a whole: on some rows of C, or of its tiles, at a time
        ! (tarsiaSpGEMM_createPlan says how that may change bits). A call that would still need more
        ! returns INSUFFICIENT_RESOURCES and says how much; the plan stays as it was.
        !
        ! Statuses: INVALID_VALUE (plan), INVALID_STATE (analyzed already).
        function tarsiaPlan_setMemoryLimit(plan, bytes) bind(C, name="tarsiaPlan_setMemoryLimit")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: plan
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaPlan_setMemoryLimit
        end function tarsiaPlan_setMemoryLimit
    end interface

    interface
        ! Reads and validates the matrix (offsets ascend and end at nnz, indices are in range),
        ! chooses algorithm and layout, converts, and grows the handle's own workspace to the size
        ! that execute will need. Once per plan; a failure leaves the plan as it was, so that the
        ! call may be repeated.
        !
        ! The plan may or may not have copied A's values when this returns: after changing values a
        ! program calls tarsiaPlan_updateValues, and until then a product may use the old or the new
        ! values (with tarsiaPlan_setValuesInPlace always the new ones, and values are not read
        ! here). With tarsiaSetChecks(handle, 1) it takes fingerprints of the arrays.
        !
        ! Blocks; may allocate; not inside a capture. Never reads alpha or beta.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan; A or B has a NULL array or an invalid
        ! pattern: the text says where; handle of another backend or device), INVALID_STATE
        ! (analyzed already), NOT_SUPPORTED (effort TUNED in deterministic mode; a matrix that must
        ! be converted has more than 2^31 - 1 columns; values that cannot be read in place, where
        ! tarsiaPlan_setValuesInPlace asks for it), ALLOC_FAILED, INSUFFICIENT_RESOURCES (memory
        ! limit).
        function tarsiaPlan_analyze(handle, plan) bind(C, name="tarsiaPlan_analyze")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_analyze
        end function tarsiaPlan_analyze
    end interface

    interface
        ! Writes the decisions of a plan's analysis into a buffer: the algorithm, the layout or the
        ! arrays that A and B are read from, reordering and block size, with effort TUNED as
        ! measured. They include the order of the rows of op(A) where the host has computed one,
        ! which is the slow part of analysis: the order of a policy by name (tarsiaPlan_setReorder;
        ! DCSR's is computed again, which takes little), and on the host backend the clusters of
        ! SMAT. They do not include clusters that a device finds, pointers, or values of A. A file,
        ! a message or a database may keep the decisions: tarsiaPlan_setDecisions gives them to a
        ! plan of the same problem, whose analysis then builds the same layout without choosing it.
        !
        ! buffer: host, of room bytes; NULL only asks for the number of bytes. bytes: host; the size
        ! of the decisions: some hundred bytes, and 4 bytes more per row of op(A) with an order of
        ! rows; at most 64 KiB and 4 bytes per row.
        !
        ! Reads A's index arrays (SpGEMM: and B's) once, for a 128-bit fingerprint of their
        ! contents; a self-contained plan has kept it. Blocks; not inside a capture.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, bytes is NULL, handle of another backend
        ! or device), INVALID_STATE (not analyzed; the stream is being captured),
        ! INSUFFICIENT_RESOURCES (buffer is too small; the text says the bytes needed),
        ! NOT_SUPPORTED (A or B is in tiles, for which analysis decides nothing).
        function tarsiaPlan_getDecisions(handle, plan, buffer, room, bytes &
                ) bind(C, name="tarsiaPlan_getDecisions")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: buffer
            integer(c_size_t), value, intent(in) :: room
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: tarsiaPlan_getDecisions
        end function tarsiaPlan_getDecisions
    end interface

    interface
        ! Gives a plan, before tarsiaPlan_analyze and after its other settings, the decisions of
        ! another plan of the same problem. Its analysis then computes no pattern statistics, uses
        ! no cost model, times nothing and computes no order of rows that the decisions contain. It
        ! builds the layout of the other plan, and its products have the same bits (in deterministic
        ! mode `swift` and `dense` on a device have the bits of that mode). Effort may differ from
        ! the other plan's: decisions that TUNED has measured may be used with any effort, and in
        ! deterministic mode, except those for algorithm `dense` on a device, which have cublasLt's
        ! algorithms timed again.
        !
        ! The same problem means: the same operation, ops, types (computeType too), orders, nHint,
        ! format, shape, number of entries, index types, index base, contents of the index arrays,
        ! valueUpdates, valuesInPlace, selfContained, expected executes, sortedOutput, reorder and
        ! blocks; and the same version of the library, backend and model of the device or processor.
        ! The contents of buffer are verified: data that are damaged, cut off, or for another
        ! problem are an error whose text says what differs, and the plan stays as it was; an order
        ! of rows must have each row of op(A) once.
        !
        ! buffer: host; NULL with 0 bytes removes decisions that were given before. bytes: the size
        ! of buffer, as tarsiaPlan_getDecisions gave it.
        !
        ! Reads the index arrays once. Blocks; not inside a capture.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, handle of another backend or device;
        ! buffer is NULL and bytes is not 0, or the reverse; damaged data; decisions for another
        ! problem or other settings; A or B has a NULL array), INVALID_STATE (analyzed already; the
        ! stream is being captured), NOT_SUPPORTED (decisions of another version of the library or
        ! of the format, of another backend or model of device; A or B is in tiles).
        ! tarsiaPlan_analyze returns INVALID_VALUE if the settings have changed after this call.
        function tarsiaPlan_setDecisions(handle, plan, buffer, bytes &
                ) bind(C, name="tarsiaPlan_setDecisions")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: buffer
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaPlan_setDecisions
        end function tarsiaPlan_setDecisions
    end interface

    interface
        ! Gets the bytes of workspace that execute needs with n columns (SpMM; SpMV and SpGEMM
        ! ignore n).
        !
        ! bytes: host.
        !
        ! Statuses: INVALID_VALUE (plan, n < 0, bytes is NULL), INVALID_STATE (not analyzed; called
        ! by an allocator that a change of this plan has called).
        function tarsiaPlan_workspaceSize(plan, n, bytes) bind(C, name="tarsiaPlan_workspaceSize")
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: n
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: tarsiaPlan_workspaceSize
        end function tarsiaPlan_workspaceSize
    end interface

    interface
        ! Prepares this handle for executes of the plan: grows its own workspace to the plan's need
        ! at nHint columns, or checks that the user's is large enough. tarsiaPlan_analyze does this
        ! for the handle that it is called with; call this for every other handle.
        !
        ! Blocks; may allocate; not inside a capture.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, handle of another backend or device),
        ! INVALID_STATE (not analyzed), ALLOC_FAILED, INSUFFICIENT_RESOURCES (the user's workspace
        ! is too small; the text says the bytes needed).
        function tarsiaPlan_prepare(handle, plan) bind(C, name="tarsiaPlan_prepare")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_prepare
        end function tarsiaPlan_prepare
    end interface

    interface tarsiaPlan_updateValues
        ! Gives the plan new values of A for the same pattern: O(nnz), no new analysis. For SpGEMM
        ! these are the values of A alone; tarsiaSpGEMM_updateValues takes those of both factors.
        !
        ! newValues: in the backend's memory, in the order and type of A's value array. It must stay
        ! valid until it is replaced, or for the plan's life (a plan may read it in place); for a
        ! self-contained plan until the work of this call is done. May be A's own array after the
        ! program changed it.
        !
        ! After a program has changed values it calls this: until then a product may use the old or
        ! the new values, whichever way they changed (in A's array, or by new pointers of the
        ! descriptor, which reach no plan). Only a plan of tarsiaPlan_setValuesInPlace needs no call
        ! for values that changed in its array.
        !
        ! With setValueUpdates(1) or setValuesInPlace(1) asynchronous and capturable; else it may
        ! allocate and block. Blocks with tarsiaSetChecks(handle, 1), where it renews the
        ! fingerprint of the values. Products of other threads use either the old values or the new
        ! ones, never some of both.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, newValues is NULL, misaligned or ordinary
        ! host memory on CUDA, handle of another backend or device), INVALID_STATE (not analyzed;
        ! and while a graph keeps the plan, which goes on with the arrays of its capture: for SpGEMM
        ! with a factor in tiles; where newValues is another array than the one that the plan reads
        ! in place, unless the call itself is captured, for the calls after it in its graph; and for
        ! a plan without setValueUpdates(1) whose own arrays would be replaced), ALLOC_FAILED.
        function tarsiaPlan_updateValues(handle, plan, newValues &
                ) bind(C, name="tarsiaPlan_updateValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: newValues
            integer(c_int) :: tarsiaPlan_updateValues
        end function tarsiaPlan_updateValues
        module procedure tarsiaPlan_updateValues_real32
        module procedure tarsiaPlan_updateValues_real64
        module procedure tarsiaPlan_updateValues_complex32
        module procedure tarsiaPlan_updateValues_complex64
    end interface tarsiaPlan_updateValues

    interface
        ! Gets the plan's settings and the choices of its analysis. Allowed before analysis too.
        !
        ! info: host; the caller sets info->structSize = sizeof(tarsiaPlanInfo_t) first. A smaller
        ! (older) struct gets the fields that it has; in a larger (newer) one the rest is zeroed;
        ! structSize itself stays.
        !
        ! Statuses: INVALID_VALUE (plan, info is NULL, structSize below the first field's end or
        ! above 64 KiB), INVALID_STATE (called by an allocator that a change of this plan has
        ! called).
        function tarsiaPlan_getInfo(plan, info) bind(C, name="tarsiaPlan_getInfo")
            import :: c_int, c_ptr, tarsiaPlanInfo_t
            type(c_ptr), value, intent(in) :: plan
            type(tarsiaPlanInfo_t), intent(inout) :: info
            integer(c_int) :: tarsiaPlan_getInfo
        end function tarsiaPlan_getInfo
    end interface

    interface
        ! Destroys a plan. NULL does nothing.
        !
        ! Waits for other threads' calls with the plan to return, but not for their work on a
        ! device: the plan's memory, and that of tiles which nothing else uses, is reused only after
        ! that work is done. A graph that has captured calls with the plan keeps its memory, and may
        ! be launched, until the graph is destroyed and its last launch is done. A's arrays, where
        ! the plan reads them in place, and dense operands are the caller's in any case. Streams on
        ! which the plan has run may be destroyed before the plan, except for plans whose memory
        ! comes from tarsiaSetAllocator's functions: these are called with the stream that the
        ! handle had at tarsiaPlan_analyze, which must still exist.
        !
        ! Statuses: INVALID_VALUE (not a live plan), INVALID_STATE (called by an allocator that a
        ! call with this plan has called; a graph keeps the plan, whose memory is from
        ! tarsiaSetAllocator's functions; the plan stays).
        function tarsiaPlan_destroy(plan) bind(C, name="tarsiaPlan_destroy")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_destroy
        end function tarsiaPlan_destroy
    end interface

    interface
        ! Creates a plan for y = alpha * op(A) * x + beta * y.
        !
        ! A is m x k as stored; op(A) decides which of its dimensions x and y have. The plan copies
        ! the descriptor's fields, so A may be destroyed after this call; A's arrays must stay
        ! valid, with an unchanged pattern, for the plan's life (with tarsiaPlan_setSelfContained
        ! until it is analyzed). xType, yType, computeType: a combination of the table on this
        ! header's first page; half types sum in 32 bits and round once at the store. alg: DEFAULT
        ! lets the library choose.
        !
        ! Values: after a program has changed values of A it calls tarsiaPlan_updateValues; until
        ! then a product may use the old or the new values, depending on whether the algorithm has a
        ! copy of them or reads them in place. tarsiaPlan_setValuesInPlace(plan, 1) makes a plan
        ! that reads the present values at every execute, and tarsiaSetChecks finds where a call is
        ! missing.
        !
        ! plan: host. Does not read A's arrays. All algorithms here are deterministic.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value of its type),
        ! NOT_SUPPORTED (no algorithm takes the combination; the text says which part of it),
        ! ALLOC_FAILED.
        function tarsiaSpMV_createPlan(handle, plan, opA, A, xType, yType, computeType, alg &
                ) bind(C, name="tarsiaSpMV_createPlan")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: plan
            integer(c_int), value, intent(in) :: opA
            type(c_ptr), value, intent(in) :: A
            integer(c_int), value, intent(in) :: xType
            integer(c_int), value, intent(in) :: yType
            integer(c_int), value, intent(in) :: computeType
            integer(c_int), value, intent(in) :: alg
            integer(c_int) :: tarsiaSpMV_createPlan
        end function tarsiaSpMV_createPlan
    end interface

    interface tarsiaSpMV
        ! Computes y = alpha * op(A) * x + beta * y with an analyzed plan.
        !
        ! x has the columns of op(A), y its rows, both in the types of createPlan and in the
        ! backend's memory, not overlapping; y shares no memory with A's arrays either. alpha and
        ! beta: one value of the compute type each, not in y, on the host or the device by pointer
        ! mode. beta == 0 never reads y; alpha == 0 reads neither A's values nor x. Entries that are
        ! not stored never contribute; stored zeros count (0 * Inf is NaN).
        !
        ! Asynchronous on the handle's stream and capturable; never allocates, never synchronises
        ! (synchronous on the CPU backends). Several handles may execute one plan at once, each
        ! after tarsiaPlan_prepare with it. Deterministic: the same bits from run to run, whatever
        ! the number of threads. With tarsiaSetChecks(handle, 1) it blocks.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, alpha, x, beta or y is NULL, of the wrong
        ! length or type, y overlaps x, alpha, beta or an array of A, y is const, handle of another
        ! backend or device; with checks on, an operand is in memory that the call cannot use),
        ! INVALID_STATE (the plan is not analyzed; with checks on, A's arrays have changed),
        ! INSUFFICIENT_RESOURCES (workspace; the text says the bytes needed), EXECUTION_FAILED.
        function tarsiaSpMV(handle, plan, alpha, x, beta, y) bind(C, name="tarsiaSpMV")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: y
            integer(c_int) :: tarsiaSpMV
        end function tarsiaSpMV
        module procedure tarsiaSpMV_real32
        module procedure tarsiaSpMV_real64
        module procedure tarsiaSpMV_complex32
        module procedure tarsiaSpMV_complex64
    end interface tarsiaSpMV

    interface tarsiaSpMV_into
        ! Computes z = alpha * op(A) * x + beta * y with an analyzed plan: tarsiaSpMV with a
        ! separate result, for residuals such as b - A * x.
        !
        ! y and z have the rows of op(A) and the type yType of createPlan. z may be y, that is, the
        ! same array, whichever descriptors they have: then this is tarsiaSpMV, and also a const y
        ! is overwritten. Otherwise z shares no memory with y, which is only read, nor with x. alpha
        ! and beta are not in z. beta == 0 never uses y's values, but y must still be a vector of
        ! the right length and type. Everything else is as for tarsiaSpMV.
        !
        ! TARSIA_SPMV_ALG_CSR and TARSIA_SPMV_ALG_SELL on CUDA, and all algorithms on the host
        ! backend, read y where it is, in the same pass that writes z. Other algorithms copy y to z
        ! first, one more pass over both, in the stream's order; so do all algorithms on CUDA for a
        ! y that kernels of the device cannot read. Nothing is copied where z is y, or where beta is
        ! 0 in host memory. Asynchronous and capturable.
        !
        ! Statuses: those of tarsiaSpMV, with z in the place of its y, and INVALID_VALUE for y of
        ! the wrong length or type, and for z that shares some of y's memory.
        function tarsiaSpMV_into(handle, plan, alpha, x, beta, y, z) bind(C, name="tarsiaSpMV_into")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: y
            type(c_ptr), value, intent(in) :: z
            integer(c_int) :: tarsiaSpMV_into
        end function tarsiaSpMV_into
        module procedure tarsiaSpMV_into_real32
        module procedure tarsiaSpMV_into_real64
        module procedure tarsiaSpMV_into_complex32
        module procedure tarsiaSpMV_into_complex64
    end interface tarsiaSpMV_into

    interface tarsiaSpMV_once
        ! Computes y = alpha * op(A) * x + beta * y in one call, for a matrix that is used once.
        !
        ! The types are those of the descriptors; tarsiaSpMV says which operands are read.
        ! Deterministic.
        !
        ! CSR with op N and CSC with op T (for real values also op C) need no conversion: with the
        ! CUDA backend this call then only launches one kernel, asynchronously on the handle's
        ! stream, may be captured, and does not validate the matrix: a matrix that tarsiaCheckSpMat
        ! would refuse is undefined behaviour. For any other input, and on the CPU backends, it
        ! builds a temporary plan, which validates, and blocks.
        !
        ! Statuses: those of tarsiaSpMV_createPlan, tarsiaPlan_analyze and tarsiaSpMV.
        function tarsiaSpMV_once(handle, opA, alpha, A, x, beta, y, computeType &
                ) bind(C, name="tarsiaSpMV_once")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: opA
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: y
            integer(c_int), value, intent(in) :: computeType
            integer(c_int) :: tarsiaSpMV_once
        end function tarsiaSpMV_once
        module procedure tarsiaSpMV_once_real32
        module procedure tarsiaSpMV_once_real64
        module procedure tarsiaSpMV_once_complex32
        module procedure tarsiaSpMV_once_complex64
    end interface tarsiaSpMV_once

    interface
        ! Creates a plan for C = alpha * op(A) * op(B) + beta * C, B and C dense.
        !
        ! bOrder, cOrder: storage orders of B and C as the user stores them (opB does not change B's
        ! order). nHint: the columns of C that the plan is made for; any number of columns may be
        ! executed. The plan copies the descriptor's fields, so A may be destroyed after this call;
        ! A's arrays must stay valid, with an unchanged pattern, for the plan's life (with
        ! tarsiaPlan_setSelfContained until it is analyzed). bType, cType, computeType: a
        ! combination of the table on this header's first page. computeType TF32 allows factors to
        ! be rounded to TF32; 32F never does.
        !
        ! Values: after a program has changed values of A it calls tarsiaPlan_updateValues; until
        ! then a product may use the old or the new values, depending on whether the algorithm has a
        ! copy of them or reads them in place. tarsiaPlan_setValuesInPlace(plan, 1) makes a plan
        ! that reads the present values at every execute, and tarsiaSetChecks finds where a call is
        ! missing.
        !
        ! plan: host. Does not read A's arrays. All algorithms here are deterministic, except, on
        ! CUDA outside deterministic mode, TARSIA_SPMM_ALG_SWIFT, and TARSIA_SPMM_ALG_DENSE where it
        ! uses cublasLt, whose version determines the bits.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value of its type,
        ! nHint < 0), NOT_SUPPORTED (no algorithm takes the combination; the text says which part of
        ! it), ALLOC_FAILED.
        function tarsiaSpMM_createPlan(handle, plan, opA, opB, A, bOrder, cOrder, nHint, bType, &
                cType, computeType, alg) bind(C, name="tarsiaSpMM_createPlan")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: plan
            integer(c_int), value, intent(in) :: opA
            integer(c_int), value, intent(in) :: opB
            type(c_ptr), value, intent(in) :: A
            integer(c_int), value, intent(in) :: bOrder
            integer(c_int), value, intent(in) :: cOrder
            integer(c_int64_t), value, intent(in) :: nHint
            integer(c_int), value, intent(in) :: bType
            integer(c_int), value, intent(in) :: cType
            integer(c_int), value, intent(in) :: computeType
            integer(c_int), value, intent(in) :: alg
            integer(c_int) :: tarsiaSpMM_createPlan
        end function tarsiaSpMM_createPlan
    end interface

    interface tarsiaSpMM
        ! Computes C = alpha * op(A) * op(B) + beta * C with an analyzed plan.
        !
        ! op(A) is m x k, op(B) k x n, C m x n; B and C have the types and orders of createPlan, any
        ! ld, in the backend's memory, sharing no element. alpha and beta: one value of the compute
        ! type each, not in C, on the host or the device by pointer mode. beta == 0 never reads C;
        ! alpha == 0 reads neither A's values nor B. Entries of A that are not stored never
        ! contribute; stored zeros count. Nothing between the columns or rows of C (padding of ld)
        ! is touched.
        !
        ! Asynchronous on the handle's stream and capturable; never allocates, never synchronises
        ! (synchronous on the CPU backends). Several handles may execute one plan at once, each
        ! after tarsiaPlan_prepare with it. Deterministic, except, on CUDA outside deterministic
        ! mode, TARSIA_SPMM_ALG_SWIFT and, where it uses cublasLt, TARSIA_SPMM_ALG_DENSE. With
        ! tarsiaSetChecks(handle, 1) it blocks.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan, alpha, B, beta or C is NULL, of the wrong
        ! shape, type or order, C overlaps B, alpha, beta or an array of A, C is const, handle of
        ! another backend or device; with checks on, an operand is in memory that the call cannot
        ! use), INVALID_STATE (the plan is not analyzed; with checks on, A's arrays have changed),
        ! INSUFFICIENT_RESOURCES (workspace for this n; the text says the bytes needed),
        ! NOT_SUPPORTED (a plan of TARSIA_SPMM_ALG_SWIFT that was analyzed outside deterministic
        ! mode, in it), EXECUTION_FAILED.
        function tarsiaSpMM(handle, plan, alpha, B, beta, C) bind(C, name="tarsiaSpMM")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: C
            integer(c_int) :: tarsiaSpMM
        end function tarsiaSpMM
        module procedure tarsiaSpMM_real32
        module procedure tarsiaSpMM_real64
        module procedure tarsiaSpMM_complex32
        module procedure tarsiaSpMM_complex64
    end interface tarsiaSpMM

    interface tarsiaSpMM_into
        ! Computes D = alpha * op(A) * op(B) + beta * C with an analyzed plan: tarsiaSpMM with a
        ! separate result.
        !
        ! C and D are m x n, of the type cType and the order cOrder of createPlan, each with an ld
        ! of its own. D may be C, that is, have the same elements, whichever descriptors they have:
        ! then this is tarsiaSpMM, and also a const C is overwritten. Otherwise D shares no element
        ! with C, which is only read, nor with B. alpha and beta are not in D. beta == 0 never uses
        ! C's values, but C must still be a matrix of the right shape and type. Everything else is
        ! as for tarsiaSpMM.
        !
        ! TARSIA_SPMM_ALG_SELL on CUDA, and all algorithms on the host backend, read C where it is,
        ! in the same pass that writes D. Other algorithms copy C to D first, one more pass over
        ! both, in the stream's order; so does TARSIA_SPMM_ALG_SELL on CUDA for a C that kernels of
        ! the device cannot read, and for a single column that has gaps in C (an ld above 1 in row
        ! order) and none in D. Nothing is copied where D is C, or where beta is 0 in host memory.
        ! Asynchronous and capturable.
        !
        ! Statuses: those of tarsiaSpMM, with D in the place of its C, and INVALID_VALUE for C of
        ! the wrong shape, type or order, and for D that shares some of C's elements.
        function tarsiaSpMM_into(handle, plan, alpha, B, beta, C, D) bind(C, name="tarsiaSpMM_into")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: C
            type(c_ptr), value, intent(in) :: D
            integer(c_int) :: tarsiaSpMM_into
        end function tarsiaSpMM_into
        module procedure tarsiaSpMM_into_real32
        module procedure tarsiaSpMM_into_real64
        module procedure tarsiaSpMM_into_complex32
        module procedure tarsiaSpMM_into_complex64
    end interface tarsiaSpMM_into

    interface tarsiaSpMM_once
        ! Computes C = alpha * op(A) * op(B) + beta * C in one call, for a matrix that is used once.
        !
        ! Types and orders are those of the descriptors; tarsiaSpMM says which operands are read.
        ! Deterministic.
        !
        ! CSR with op N and CSC with op T (for real values also op C) need no conversion: with the
        ! CUDA backend this call then only launches kernels, asynchronously on the handle's stream,
        ! may be captured, and does not validate the matrix: a matrix that tarsiaCheckSpMat would
        ! refuse is undefined behaviour. It needs workspace: at most 16 MiB for partial sums of long
        ! rows, lists of these parts (at most 6 bytes per entry of A), and copies of B and C by rows
        ! of at most 64 MiB, or of 32 columns where these are larger. B is copied where op(B) is
        ! contiguous by columns or conjugated and has more than 8 columns, and where its rows are
        ! long, not aligned to 128 bytes, and read often; C where it is in column order and has more
        ! than 8 columns, if it has more than 2^19 elements, and in some products of fewer whose C
        ! has the type of the sums. In a large product of real values with B and C both by columns,
        ! neither is copied if a kernel of the call finds rows to be short and neighbouring rows to
        ! have neighbouring columns; the workspace has room for the copies all the same. Where both
        ! are by columns and C has 2 to 32 of them, neither is copied if A has real values and at
        ! most 2^20 (up to 8 columns), 2^18 (up to 16) or 196,608 entries (up to 32), and the
        ! workspace has no room for copies. The handle's own workspace grows to that size, and the
        ! call that makes it grow blocks. If a workspace that tarsiaSetWorkspace has set is too
        ! small, the call allocates memory of its own and blocks. In a capture neither is possible:
        ! call it once before with matrices of the same sizes, or the call in the capture returns
        ! INVALID_STATE. For any other input, for a matrix with more than 2^31 - 1 rows and more
        ! than 2^31 - 1 entries, and on the CPU backends, it builds a temporary plan, which
        ! validates, and blocks.
        !
        ! Statuses: those of tarsiaSpMM_createPlan, tarsiaPlan_analyze and tarsiaSpMM; INVALID_STATE
        ! (see above).
        function tarsiaSpMM_once(handle, opA, opB, alpha, A, B, beta, C, computeType &
                ) bind(C, name="tarsiaSpMM_once")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: opA
            integer(c_int), value, intent(in) :: opB
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), value, intent(in) :: beta
            type(c_ptr), value, intent(in) :: C
            integer(c_int), value, intent(in) :: computeType
            integer(c_int) :: tarsiaSpMM_once
        end function tarsiaSpMM_once
        module procedure tarsiaSpMM_once_real32
        module procedure tarsiaSpMM_once_real64
        module procedure tarsiaSpMM_once_complex32
        module procedure tarsiaSpMM_once_complex64
    end interface tarsiaSpMM_once

    interface
        ! Creates a plan for C = alpha * op(A) * op(B), all three sparse.
        !
        ! A and B: CSR, CSC or tiles (tarsiaCreateTile), of one value type; op(A) is m x k and op(B)
        ! k x n. C has the compute type as its value type (fp16 and bf16 products give 32-bit C).
        ! The plan copies the descriptors' fields; the arrays of A and B must stay valid, with an
        ! unchanged pattern, for the plan's life (with tarsiaPlan_setSelfContained until it is
        ! analyzed).
        !
        ! There is no beta: C is the product alone, with its pattern. The sum with another sparse
        ! matrix would have another pattern, and is left to the program.
        !
        ! Values: after a program has changed values of A or B it calls tarsiaSpGEMM_updateValues
        ! (for A alone: tarsiaPlan_updateValues); until then a product may use the old or the new
        ! values, depending on whether the algorithm has a copy of them or reads them in place.
        ! tarsiaPlan_setValuesInPlace(plan, 1) makes a plan that reads the present values at every
        ! execute, and tarsiaSetChecks finds where a call is missing.
        !
        ! plan: host. Does not read the arrays. The order of calls is createPlan,
        ! tarsiaPlan_analyze, tarsiaSpGEMM_symbolic, tarsiaSpGEMM_numeric (as often as wanted). With
        ! tarsiaPlan_setValueUpdates(plan, 1) the plan keeps C's pattern, and every numeric phase
        ! after the first computes values only. tarsiaPlan_setMemoryLimit bounds what the plan may
        ! hold besides C, and tarsiaPlan_setSortedOutput(plan, 0) leaves out the sorting of C's
        ! rows.
        !
        ! TARSIA_SPGEMM_ALG_TILE, which DEFAULT then chooses, reads a factor in tiles where it is,
        ! without conversion; other algorithms do not take it. Where op transposes the factor, or
        ! the tiles of A are by rows and those of B by columns (made from CSC), the plan has a copy
        ! of one of them. The plan takes the tiles that the matrix has when it is analyzed, and
        ! keeps them when the matrix is filled again or destroyed.
        !
        ! Sources of the algorithms: F. G. Gustavson, "Two fast algorithms for sparse matrices", ACM
        ! TOMS 4(3), 1978 (TARSIA_SPGEMM_ALG_HASH); Y. Niu et al., "TileSpGEMM: a tiled algorithm
        ! for parallel sparse general matrix-matrix multiplication on GPUs", PPoPP 2022, section 3
        ! (TARSIA_SPGEMM_ALG_TILE).
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (an argument is NULL or not a value of its type,
        ! inner dimensions differ), NOT_SUPPORTED (not in the support table; the text says which
        ! part), ALLOC_FAILED.
        function tarsiaSpGEMM_createPlan(handle, plan, opA, opB, A, B, computeType, alg &
                ) bind(C, name="tarsiaSpGEMM_createPlan")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: plan
            integer(c_int), value, intent(in) :: opA
            integer(c_int), value, intent(in) :: opB
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            integer(c_int), value, intent(in) :: computeType
            integer(c_int), value, intent(in) :: alg
            integer(c_int) :: tarsiaSpGEMM_createPlan
        end function tarsiaSpGEMM_createPlan
    end interface

    interface
        ! Counts the stored entries of C, so that the caller can allocate it: entries whose sum
        ! cancels to zero are stored. Reads the patterns of A and B only.
        !
        ! nnzC: host. Blocks; may allocate, in proportion to the rows of C and the longest row
        ! (TARSIA_SPGEMM_ALG_TILE: to the tiles of C); not inside a capture. A second call returns
        ! the same count without work. For `hash` a device also takes up to 32 bytes for each entry
        ! of B while it counts, of which the plan keeps half, and 140 bytes for each 1,024 columns
        ! that a row with many products spans; where that memory is missing, it works part by part,
        ! or by other methods.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan, nnzC is
        ! NULL), INVALID_STATE (not analyzed; with checks on, index arrays of A or B have changed),
        ! ALLOC_FAILED, INSUFFICIENT_RESOURCES (memory limit, or C is larger than the device's
        ! memory; the text says the bytes needed).
        function tarsiaSpGEMM_symbolic(handle, plan, nnzC) bind(C, name="tarsiaSpGEMM_symbolic")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), intent(out) :: nnzC
            integer(c_int) :: tarsiaSpGEMM_symbolic
        end function tarsiaSpGEMM_symbolic
    end interface

    interface tarsiaSpGEMM_numeric
        ! Computes C = alpha * op(A) * op(B): writes C's offsets, indices and values.
        !
        ! C: CSR or CSC with room for the nnzC entries of tarsiaSpGEMM_symbolic, any index types
        ! that hold them, either base; rows (columns for CSC) come out sorted, without duplicates.
        ! (With tarsiaPlan_setSortedOutput(plan, 0) C is CSR, and its rows are in the order that
        ! costs least, the same in every call, without duplicates.) With TARSIA_SPGEMM_ALG_TILE C
        ! may also be a matrix of tarsiaCreateTile, whose tiles are replaced: the new ones are in
        ! memory of the handle's allocator, not counted in the plan's limit, and C may be A or B,
        ! too. Such a call blocks and cannot be captured. alpha: one value of the compute type, on
        ! the host or the device by pointer mode; alpha == 0 writes the pattern with zeros and reads
        ! no values. C's arrays must not overlap A's or B's, and alpha is in none of them.
        !
        ! May allocate and block (not, on a device, once the pattern is kept and reused; a memory
        ! limit may leave no room for it). C by columns of a product that is computed by rows, or
        ! the reverse, takes 28 bytes or more for each entry of C on a device; where these are
        ! missing, some rows at a time are computed, twice.
        !
        ! Deterministic: the same plan and values give the same bits in every call, with C in the
        ! same format and, on a device, with the same amount of free memory. On the host every entry
        ! of C is summed in the order of A's row. On a device that order depends on the algorithm,
        ! on A and B, on C's format and on the memory that is free: TARSIA_SPGEMM_ALG_TILE, which
        ! DEFAULT may choose, has an order of its own; TARSIA_SPGEMM_ALG_HASH may sum rows of more
        ! than 256 entries of A in parts of 128 or more entries, whose sums it adds in order, and
        ! may multiply nearly dense factors by matrix units where C has their format and memory
        ! suffices. The sign and payload of a NaN are not specified.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan, alpha is
        ! NULL, C is NULL, const, of the wrong shape, type or nnz, has a NULL array or one in
        ! ordinary host memory on CUDA, or shares memory with A, B, alpha or itself; with checks on,
        ! alpha is not where the pointer mode says), NOT_SUPPORTED (format of C: CSC, too, with
        ! setSortedOutput(0); tiles from another algorithm), INVALID_STATE (not analyzed, or no
        ! symbolic phase yet; with checks on, arrays of A or B have changed), ALLOC_FAILED,
        ! INSUFFICIENT_RESOURCES (memory limit).
        function tarsiaSpGEMM_numeric(handle, plan, alpha, C) bind(C, name="tarsiaSpGEMM_numeric")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: C
            integer(c_int) :: tarsiaSpGEMM_numeric
        end function tarsiaSpGEMM_numeric
        module procedure tarsiaSpGEMM_numeric_real32
        module procedure tarsiaSpGEMM_numeric_real64
        module procedure tarsiaSpGEMM_numeric_complex32
        module procedure tarsiaSpGEMM_numeric_complex64
    end interface tarsiaSpGEMM_numeric

    interface
        ! Gives the plan new values of A and B, with the same patterns, for the numeric phases that
        ! follow. NULL keeps a matrix's present values; where A and B have one value array that
        ! changed, it is given twice. The arrays must stay valid until they are replaced, or for the
        ! plan's life. Asynchronous for a plan of tarsiaPlan_setValuesInPlace.
        ! (tarsiaPlan_updateValues on a SpGEMM plan is this call with newValuesB NULL.) For a factor
        ! in tiles NULL takes the values that the matrix has now, whose entries must be at the same
        ! positions; both may be NULL then. Such a call blocks and cannot be captured; a graph that
        ! has captured numeric phases of a plan with a factor in tiles must be destroyed before.
        !
        ! newValuesA, newValuesB: in the backend's memory, in the order and type of the descriptors'
        ! values.
        !
        ! A failed call changes nothing, except that after ALLOC_FAILED, where both arrays were
        ! given, the plan may have A's new values and B's old ones; the call may then be repeated.
        !
        ! Statuses: NOT_INITIALIZED, INVALID_VALUE (plan is NULL or not a SpGEMM plan, both arrays
        ! are NULL, an array is misaligned or ordinary host memory on CUDA, an array for a factor in
        ! tiles, tiles with entries at other positions), INVALID_STATE (not analyzed; while a graph
        ! keeps the plan, as tarsiaPlan_updateValues says), ALLOC_FAILED.
        function tarsiaSpGEMM_updateValues(handle, plan, newValuesA, newValuesB &
                ) bind(C, name="tarsiaSpGEMM_updateValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: newValuesA
            type(c_ptr), value, intent(in) :: newValuesB
            integer(c_int) :: tarsiaSpGEMM_updateValues
        end function tarsiaSpGEMM_updateValues
    end interface
    public :: tarsiaGetErrorName
    public :: tarsiaGetErrorString
    public :: tarsiaGetLastErrorMessage
    public :: tarsiaGetVersion
    public :: tarsiaGetProperty
    public :: tarsiaSetNumThreads
    public :: tarsiaGetNumThreads
    public :: tarsiaCreate
    public :: tarsiaCreateWithBackend
    public :: tarsiaDestroy
    public :: tarsiaSetStream
    public :: tarsiaGetStream
    public :: tarsiaSetPointerMode
    public :: tarsiaGetPointerMode
    public :: tarsiaSetDeterministic
    public :: tarsiaGetDeterministic
    public :: tarsiaSetChecks
    public :: tarsiaGetChecks
    public :: tarsiaSetPlanCache
    public :: tarsiaSetAllocator
    public :: tarsiaSetLogger
    public :: tarsiaSetWorkspace
    public :: tarsiaGetBackend
    public :: tarsiaGetDevice
    public :: tarsiaMalloc
    public :: tarsiaFree
    public :: tarsiaMemcpyToDevice
    public :: tarsiaMemcpyToHost
    public :: tarsiaSynchronize
    public :: tarsiaCreateCsr
    public :: tarsiaCreateConstCsr
    public :: tarsiaCreateCsc
    public :: tarsiaCreateConstCsc
    public :: tarsiaCreateCoo
    public :: tarsiaCreateConstCoo
    public :: tarsiaCreateBsr
    public :: tarsiaCreateConstBsr
    public :: tarsiaDestroySpMat
    public :: tarsiaCheckSpMat
    public :: tarsiaCsrGet
    public :: tarsiaConstCsrGet
    public :: tarsiaCsrSetPointers
    public :: tarsiaCscGet
    public :: tarsiaConstCscGet
    public :: tarsiaCscSetPointers
    public :: tarsiaCooGet
    public :: tarsiaConstCooGet
    public :: tarsiaCooSetPointers
    public :: tarsiaBsrGet
    public :: tarsiaConstBsrGet
    public :: tarsiaBsrSetPointers
    public :: tarsiaSpMatGetSize
    public :: tarsiaSpMatGetFormat
    public :: tarsiaSpMatGetIndexBase
    public :: tarsiaSpMatGetSorted
    public :: tarsiaSpMatGetValues
    public :: tarsiaConstSpMatGetValues
    public :: tarsiaSpMatSetValues
    public :: tarsiaCreateTile
    public :: tarsiaTileGet
    public :: tarsiaSparseToTile
    public :: tarsiaTileToSparse
    public :: tarsiaCreateDnVec
    public :: tarsiaCreateConstDnVec
    public :: tarsiaDestroyDnVec
    public :: tarsiaDnVecGet
    public :: tarsiaConstDnVecGet
    public :: tarsiaDnVecGetValues
    public :: tarsiaConstDnVecGetValues
    public :: tarsiaDnVecSetValues
    public :: tarsiaCreateDnMat
    public :: tarsiaCreateConstDnMat
    public :: tarsiaDestroyDnMat
    public :: tarsiaDnMatGet
    public :: tarsiaConstDnMatGet
    public :: tarsiaDnMatGetValues
    public :: tarsiaConstDnMatGetValues
    public :: tarsiaDnMatSetValues
    public :: tarsiaPlan_setEffort
    public :: tarsiaPlan_setReorder
    public :: tarsiaPlan_setBlockDims
    public :: tarsiaPlan_setValueUpdates
    public :: tarsiaPlan_setSelfContained
    public :: tarsiaPlan_setValuesInPlace
    public :: tarsiaPlan_setExpectedExecutes
    public :: tarsiaPlan_setSortedOutput
    public :: tarsiaPlan_setMemoryLimit
    public :: tarsiaPlan_analyze
    public :: tarsiaPlan_getDecisions
    public :: tarsiaPlan_setDecisions
    public :: tarsiaPlan_workspaceSize
    public :: tarsiaPlan_prepare
    public :: tarsiaPlan_updateValues
    public :: tarsiaPlan_getInfo
    public :: tarsiaPlan_destroy
    public :: tarsiaSpMV_createPlan
    public :: tarsiaSpMV
    public :: tarsiaSpMV_into
    public :: tarsiaSpMV_once
    public :: tarsiaSpMM_createPlan
    public :: tarsiaSpMM
    public :: tarsiaSpMM_into
    public :: tarsiaSpMM_once
    public :: tarsiaSpGEMM_createPlan
    public :: tarsiaSpGEMM_symbolic
    public :: tarsiaSpGEMM_numeric
    public :: tarsiaSpGEMM_updateValues

    ! A C string, or a character field of tarsiaPlanInfo_t, as a Fortran string.
    interface tarsiaText
        module procedure text_of_pointer
        module procedure text_of_field
    end interface tarsiaText
    public :: tarsiaText

    public :: tarsiaCheck
    public :: tarsiaLastMessage

    ! Why this module refused a call of the thread, and the text that the library then has. Another text of
    ! the library belongs to a later failure.
    character(len=200), save :: refusal = "", beside = ""
    !$omp threadprivate(refusal, beside)

    interface
        pure function c_strlen(string) bind(C, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: string
            integer(c_size_t) :: c_strlen
        end function c_strlen
    end interface

contains

    ! Returns if status is SUCCESS. Else says on the error unit which call failed (where), with what
    ! status, and why, and stops the program with code 1.
    subroutine tarsiaCheck(status, where)
        integer(c_int), intent(in) :: status
        character(len=*), intent(in) :: where

        if (status == TARSIA_STATUS_SUCCESS) return
        write (error_unit, '(5a)') where, ": ", tarsiaText(tarsiaGetErrorName(status)), ": ", tarsiaLastMessage()
        error stop 1
    end subroutine tarsiaCheck

    ! Text of the calling thread's last failed call; empty before the first failure.
    function tarsiaLastMessage() result(text)
        character(len=:), allocatable :: text

        text = library_message()
        if (refusal /= "" .and. text == beside) text = trim(refusal)
    end function tarsiaLastMessage

    ! INVALID_VALUE, with a text for tarsiaLastMessage.
    function refused(text) result(status)
        character(len=*), intent(in) :: text
        integer(c_int) :: status
        character(kind=c_char) :: nothing(1)

        refusal = text
        ! A call that the library refuses, too, so that its text is none that a program has seen.
        status = tarsiaGetLastErrorMessage(nothing, 0_c_size_t)
        beside = library_message()
        status = TARSIA_STATUS_INVALID_VALUE
    end function refused

    ! Refuses an array that is not contiguous.
    function kept(array, is_contiguous) result(status)
        character(len=*), intent(in) :: array
        logical, intent(in) :: is_contiguous
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (.not. is_contiguous) status = refused(array // ": it is not contiguous, and a copy would be gone after the call")
    end function kept

    ! Refuses an array that has another size than what is expected.
    function sized(array, found, what, expected) result(status)
        character(len=*), intent(in) :: array, what
        integer(c_int64_t), intent(in) :: found, expected
        integer(c_int) :: status
        character(len=120) :: text

        status = TARSIA_STATUS_SUCCESS
        if (found == expected) return
        write (text, '(a, i0, 3a, i0)') ": has the size ", found, ", expected ", what, " = ", expected
        status = refused(array // trim(text))
    end function sized

    ! Text of the last call that the library refused.
    function library_message() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), allocatable :: buffer(:)
        integer :: room

        room = 512
        do
            allocate (buffer(room))
            text = ""
            if (tarsiaGetLastErrorMessage(buffer, int(room, c_size_t)) /= TARSIA_STATUS_SUCCESS) return
            text = text_of_field(buffer)
            ! A text that fills the buffer may have been cut.
            if (len(text) < room - 1) return
            deallocate (buffer)
            room = 2*room
        end do
    end function library_message

    ! The C string that an address points to; empty for NULL.
    function text_of_pointer(string) result(text)
        type(c_ptr), intent(in) :: string
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)

        text = ""
        if (.not. c_associated(string)) return
        call c_f_pointer(string, characters, [c_strlen(string)])
        text = text_of_field(characters)
    end function text_of_pointer

    ! The characters up to the first 0.
    pure function text_of_field(characters) result(text)
        character(kind=c_char), intent(in) :: characters(:)
        character(len=:), allocatable :: text
        integer :: i, length

        length = size(characters)
        do i = size(characters), 1, -1
            if (characters(i) == c_null_char) length = i - 1
        end do
        allocate (character(len=length) :: text)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function text_of_field

    function tarsiaSetPlanCache_text(handle, folder) result(status)
        type(c_ptr), value, intent(in) :: handle
        character(len=*), intent(in) :: folder
        character(kind=c_char), target :: characters(len_trim(folder) + 1)
        integer :: i
        integer(c_int) :: status

        do i = 1, len_trim(folder)
            characters(i) = folder(i:i)
        end do
        characters(size(characters)) = c_null_char
        status = tarsiaSetPlanCache(handle, c_loc(characters))
    end function tarsiaSetPlanCache_text

    function tarsiaSpMV_real32(handle, plan, alpha, x, beta, y) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int) :: status

        status = tarsiaSpMV(handle, plan, c_loc(alpha), x, c_loc(beta), y)
    end function tarsiaSpMV_real32

    function tarsiaSpMV_real64(handle, plan, alpha, x, beta, y) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int) :: status

        status = tarsiaSpMV(handle, plan, c_loc(alpha), x, c_loc(beta), y)
    end function tarsiaSpMV_real64

    function tarsiaSpMV_complex32(handle, plan, alpha, x, beta, y) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int) :: status

        status = tarsiaSpMV(handle, plan, c_loc(alpha), x, c_loc(beta), y)
    end function tarsiaSpMV_complex32

    function tarsiaSpMV_complex64(handle, plan, alpha, x, beta, y) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int) :: status

        status = tarsiaSpMV(handle, plan, c_loc(alpha), x, c_loc(beta), y)
    end function tarsiaSpMV_complex64

    function tarsiaSpMV_into_real32(handle, plan, alpha, x, beta, y, z) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        type(c_ptr), value, intent(in) :: z
        integer(c_int) :: status

        status = tarsiaSpMV_into(handle, plan, c_loc(alpha), x, c_loc(beta), y, z)
    end function tarsiaSpMV_into_real32

    function tarsiaSpMV_into_real64(handle, plan, alpha, x, beta, y, z) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        type(c_ptr), value, intent(in) :: z
        integer(c_int) :: status

        status = tarsiaSpMV_into(handle, plan, c_loc(alpha), x, c_loc(beta), y, z)
    end function tarsiaSpMV_into_real64

    function tarsiaSpMV_into_complex32(handle, plan, alpha, x, beta, y, z) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        type(c_ptr), value, intent(in) :: z
        integer(c_int) :: status

        status = tarsiaSpMV_into(handle, plan, c_loc(alpha), x, c_loc(beta), y, z)
    end function tarsiaSpMV_into_complex32

    function tarsiaSpMV_into_complex64(handle, plan, alpha, x, beta, y, z) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: x
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        type(c_ptr), value, intent(in) :: z
        integer(c_int) :: status

        status = tarsiaSpMV_into(handle, plan, c_loc(alpha), x, c_loc(beta), y, z)
    end function tarsiaSpMV_into_complex64

    function tarsiaSpMV_once_real32(handle, opA, alpha, A, x, beta, y, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: x
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMV_once(handle, opA, c_loc(alpha), A, x, c_loc(beta), y, computeType)
    end function tarsiaSpMV_once_real32

    function tarsiaSpMV_once_real64(handle, opA, alpha, A, x, beta, y, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: x
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMV_once(handle, opA, c_loc(alpha), A, x, c_loc(beta), y, computeType)
    end function tarsiaSpMV_once_real64

    function tarsiaSpMV_once_complex32(handle, opA, alpha, A, x, beta, y, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: x
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMV_once(handle, opA, c_loc(alpha), A, x, c_loc(beta), y, computeType)
    end function tarsiaSpMV_once_complex32

    function tarsiaSpMV_once_complex64(handle, opA, alpha, A, x, beta, y, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: x
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: y
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMV_once(handle, opA, c_loc(alpha), A, x, c_loc(beta), y, computeType)
    end function tarsiaSpMV_once_complex64

    function tarsiaSpMM_real32(handle, plan, alpha, B, beta, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpMM(handle, plan, c_loc(alpha), B, c_loc(beta), C)
    end function tarsiaSpMM_real32

    function tarsiaSpMM_real64(handle, plan, alpha, B, beta, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpMM(handle, plan, c_loc(alpha), B, c_loc(beta), C)
    end function tarsiaSpMM_real64

    function tarsiaSpMM_complex32(handle, plan, alpha, B, beta, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpMM(handle, plan, c_loc(alpha), B, c_loc(beta), C)
    end function tarsiaSpMM_complex32

    function tarsiaSpMM_complex64(handle, plan, alpha, B, beta, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpMM(handle, plan, c_loc(alpha), B, c_loc(beta), C)
    end function tarsiaSpMM_complex64

    function tarsiaSpMM_into_real32(handle, plan, alpha, B, beta, C, D) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        type(c_ptr), value, intent(in) :: D
        integer(c_int) :: status

        status = tarsiaSpMM_into(handle, plan, c_loc(alpha), B, c_loc(beta), C, D)
    end function tarsiaSpMM_into_real32

    function tarsiaSpMM_into_real64(handle, plan, alpha, B, beta, C, D) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        type(c_ptr), value, intent(in) :: D
        integer(c_int) :: status

        status = tarsiaSpMM_into(handle, plan, c_loc(alpha), B, c_loc(beta), C, D)
    end function tarsiaSpMM_into_real64

    function tarsiaSpMM_into_complex32(handle, plan, alpha, B, beta, C, D) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        type(c_ptr), value, intent(in) :: D
        integer(c_int) :: status

        status = tarsiaSpMM_into(handle, plan, c_loc(alpha), B, c_loc(beta), C, D)
    end function tarsiaSpMM_into_complex32

    function tarsiaSpMM_into_complex64(handle, plan, alpha, B, beta, C, D) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: B
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        type(c_ptr), value, intent(in) :: D
        integer(c_int) :: status

        status = tarsiaSpMM_into(handle, plan, c_loc(alpha), B, c_loc(beta), C, D)
    end function tarsiaSpMM_into_complex64

    function tarsiaSpMM_once_real32(handle, opA, opB, alpha, A, B, beta, C, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        integer(c_int), value, intent(in) :: opB
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: B
        real(c_float), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMM_once(handle, opA, opB, c_loc(alpha), A, B, c_loc(beta), C, computeType)
    end function tarsiaSpMM_once_real32

    function tarsiaSpMM_once_real64(handle, opA, opB, alpha, A, B, beta, C, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        integer(c_int), value, intent(in) :: opB
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: B
        real(c_double), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMM_once(handle, opA, opB, c_loc(alpha), A, B, c_loc(beta), C, computeType)
    end function tarsiaSpMM_once_real64

    function tarsiaSpMM_once_complex32(handle, opA, opB, alpha, A, B, beta, C, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        integer(c_int), value, intent(in) :: opB
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: B
        complex(c_float_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMM_once(handle, opA, opB, c_loc(alpha), A, B, c_loc(beta), C, computeType)
    end function tarsiaSpMM_once_complex32

    function tarsiaSpMM_once_complex64(handle, opA, opB, alpha, A, B, beta, C, computeType) result(status)
        type(c_ptr), value, intent(in) :: handle
        integer(c_int), value, intent(in) :: opA
        integer(c_int), value, intent(in) :: opB
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: A
        type(c_ptr), value, intent(in) :: B
        complex(c_double_complex), target, intent(in) :: beta
        type(c_ptr), value, intent(in) :: C
        integer(c_int), value, intent(in) :: computeType
        integer(c_int) :: status

        status = tarsiaSpMM_once(handle, opA, opB, c_loc(alpha), A, B, c_loc(beta), C, computeType)
    end function tarsiaSpMM_once_complex64

    function tarsiaSpGEMM_numeric_real32(handle, plan, alpha, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_float), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpGEMM_numeric(handle, plan, c_loc(alpha), C)
    end function tarsiaSpGEMM_numeric_real32

    function tarsiaSpGEMM_numeric_real64(handle, plan, alpha, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        real(c_double), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpGEMM_numeric(handle, plan, c_loc(alpha), C)
    end function tarsiaSpGEMM_numeric_real64

    function tarsiaSpGEMM_numeric_complex32(handle, plan, alpha, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_float_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpGEMM_numeric(handle, plan, c_loc(alpha), C)
    end function tarsiaSpGEMM_numeric_complex32

    function tarsiaSpGEMM_numeric_complex64(handle, plan, alpha, C) result(status)
        type(c_ptr), value, intent(in) :: handle
        type(c_ptr), value, intent(in) :: plan
        complex(c_double_complex), target, intent(in) :: alpha
        type(c_ptr), value, intent(in) :: C
        integer(c_int) :: status

        status = tarsiaSpGEMM_numeric(handle, plan, c_loc(alpha), C)
    end function tarsiaSpGEMM_numeric_complex64

    function tarsiaMemcpyToDevice_int32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        integer(c_int32_t), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_int32_1d

    function tarsiaMemcpyToDevice_int32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        integer(c_int32_t), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_int32_2d

    function tarsiaMemcpyToDevice_int64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        integer(c_int64_t), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_int64_1d

    function tarsiaMemcpyToDevice_int64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        integer(c_int64_t), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_int64_2d

    function tarsiaMemcpyToDevice_real32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        real(c_float), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_real32_1d

    function tarsiaMemcpyToDevice_real32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        real(c_float), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_real32_2d

    function tarsiaMemcpyToDevice_real64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        real(c_double), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_real64_1d

    function tarsiaMemcpyToDevice_real64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        real(c_double), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_real64_2d

    function tarsiaMemcpyToDevice_complex32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        complex(c_float_complex), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_complex32_1d

    function tarsiaMemcpyToDevice_complex32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        complex(c_float_complex), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_complex32_2d

    function tarsiaMemcpyToDevice_complex64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        complex(c_double_complex), contiguous, target, intent(in) :: src(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_complex64_1d

    function tarsiaMemcpyToDevice_complex64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, dst
        complex(c_double_complex), contiguous, target, intent(in) :: src(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(src) == 0) return
        status = tarsiaMemcpyToDevice(handle, dst, c_loc(src), &
            size(src, kind=c_size_t)*(storage_size(src)/8))
    end function tarsiaMemcpyToDevice_complex64_2d

    function tarsiaMemcpyToHost_int32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        integer(c_int32_t), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_int32_1d

    function tarsiaMemcpyToHost_int32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        integer(c_int32_t), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_int32_2d

    function tarsiaMemcpyToHost_int64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        integer(c_int64_t), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_int64_1d

    function tarsiaMemcpyToHost_int64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        integer(c_int64_t), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_int64_2d

    function tarsiaMemcpyToHost_real32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        real(c_float), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_real32_1d

    function tarsiaMemcpyToHost_real32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        real(c_float), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_real32_2d

    function tarsiaMemcpyToHost_real64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        real(c_double), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_real64_1d

    function tarsiaMemcpyToHost_real64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        real(c_double), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_real64_2d

    function tarsiaMemcpyToHost_complex32_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        complex(c_float_complex), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_complex32_1d

    function tarsiaMemcpyToHost_complex32_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        complex(c_float_complex), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_complex32_2d

    function tarsiaMemcpyToHost_complex64_1d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        complex(c_double_complex), contiguous, target, intent(out) :: dst(:)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_complex64_1d

    function tarsiaMemcpyToHost_complex64_2d(handle, dst, src) result(status)
        type(c_ptr), value, intent(in) :: handle, src
        complex(c_double_complex), contiguous, target, intent(out) :: dst(:, :)
        integer(c_int) :: status

        status = TARSIA_STATUS_SUCCESS
        if (size(dst) == 0) return
        status = tarsiaMemcpyToHost(handle, c_loc(dst), src, &
            size(dst, kind=c_size_t)*(storage_size(dst)/8))
    end function tarsiaMemcpyToHost_complex64_2d

    function tarsiaCreateCsr_int32_real32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateCsr_int32_real32

    function tarsiaCreateCsr_int32_real64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateCsr_int32_real64

    function tarsiaCreateCsr_int32_complex32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateCsr_int32_complex32

    function tarsiaCreateCsr_int32_complex64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateCsr_int32_complex64

    function tarsiaCreateCsr_int64_real32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateCsr_int64_real32

    function tarsiaCreateCsr_int64_real64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateCsr_int64_real64

    function tarsiaCreateCsr_int64_complex32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateCsr_int64_complex32

    function tarsiaCreateCsr_int64_complex64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowOffsets(:), colInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateCsr_int64_complex64

    function tarsiaCreateCsc_int32_real32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateCsc_int32_real32

    function tarsiaCreateCsc_int32_real64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateCsc_int32_real64

    function tarsiaCreateCsc_int32_complex32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateCsc_int32_complex32

    function tarsiaCreateCsc_int32_complex64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateCsc_int32_complex64

    function tarsiaCreateCsc_int64_real32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateCsc_int64_real32

    function tarsiaCreateCsc_int64_real64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateCsc_int64_real64

    function tarsiaCreateCsc_int64_complex32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateCsc_int64_complex32

    function tarsiaCreateCsc_int64_complex64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: colOffsets(:), rowInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateCsc_int64_complex64

    function tarsiaCreateCoo_int32_real32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowInd(:), colInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateCoo_int32_real32

    function tarsiaCreateCoo_int32_real64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowInd(:), colInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateCoo_int32_real64

    function tarsiaCreateCoo_int32_complex32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowInd(:), colInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateCoo_int32_complex32

    function tarsiaCreateCoo_int32_complex64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(inout) :: rowInd(:), colInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateCoo_int32_complex64

    function tarsiaCreateCoo_int64_real32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowInd(:), colInd(:)
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateCoo_int64_real32

    function tarsiaCreateCoo_int64_real64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowInd(:), colInd(:)
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateCoo_int64_real64

    function tarsiaCreateCoo_int64_complex32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowInd(:), colInd(:)
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateCoo_int64_complex32

    function tarsiaCreateCoo_int64_complex64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(inout) :: rowInd(:), colInd(:)
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateCoo_int64_complex64

    function tarsiaCreateDnVec_real32(x, values) result(status)
        type(c_ptr), intent(out) :: x
        real(c_float), target, intent(inout) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_R_32F)
    end function tarsiaCreateDnVec_real32

    function tarsiaCreateDnMat_real32(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        real(c_float), target, intent(inout) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_R_32F, TARSIA_ORDER_COL)
    end function tarsiaCreateDnMat_real32

    function tarsiaCreateDnVec_real64(x, values) result(status)
        type(c_ptr), intent(out) :: x
        real(c_double), target, intent(inout) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_R_64F)
    end function tarsiaCreateDnVec_real64

    function tarsiaCreateDnMat_real64(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        real(c_double), target, intent(inout) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_R_64F, TARSIA_ORDER_COL)
    end function tarsiaCreateDnMat_real64

    function tarsiaCreateDnVec_complex32(x, values) result(status)
        type(c_ptr), intent(out) :: x
        complex(c_float_complex), target, intent(inout) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_C_32F)
    end function tarsiaCreateDnVec_complex32

    function tarsiaCreateDnMat_complex32(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        complex(c_float_complex), target, intent(inout) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_C_32F, TARSIA_ORDER_COL)
    end function tarsiaCreateDnMat_complex32

    function tarsiaCreateDnVec_complex64(x, values) result(status)
        type(c_ptr), intent(out) :: x
        complex(c_double_complex), target, intent(inout) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_C_64F)
    end function tarsiaCreateDnVec_complex64

    function tarsiaCreateDnMat_complex64(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        complex(c_double_complex), target, intent(inout) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_C_64F, TARSIA_ORDER_COL)
    end function tarsiaCreateDnMat_complex64

    function tarsiaCreateConstCsr_int32_real32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowOffsets(:), colInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCsr_int32_real32

    function tarsiaCreateConstCsr_int32_real64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowOffsets(:), colInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCsr_int32_real64

    function tarsiaCreateConstCsr_int32_complex32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowOffsets(:), colInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCsr_int32_complex32

    function tarsiaCreateConstCsr_int32_complex64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowOffsets(:), colInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCsr_int32_complex64

    function tarsiaCreateConstCsr_int64_real32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowOffsets(:), colInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCsr_int64_real32

    function tarsiaCreateConstCsr_int64_real64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowOffsets(:), colInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCsr_int64_real64

    function tarsiaCreateConstCsr_int64_complex32(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowOffsets(:), colInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCsr_int64_complex32

    function tarsiaCreateConstCsr_int64_complex64(A, rows, cols, rowOffsets, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowOffsets(:), colInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowOffsets", is_contiguous(rowOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowOffsets", size(rowOffsets, kind=c_int64_t), "rows + 1", rows + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsr(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowOffsets), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCsr_int64_complex64

    function tarsiaCreateConstCsc_int32_real32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: colOffsets(:), rowInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCsc_int32_real32

    function tarsiaCreateConstCsc_int32_real64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: colOffsets(:), rowInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCsc_int32_real64

    function tarsiaCreateConstCsc_int32_complex32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: colOffsets(:), rowInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCsc_int32_complex32

    function tarsiaCreateConstCsc_int32_complex64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: colOffsets(:), rowInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_32I, TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCsc_int32_complex64

    function tarsiaCreateConstCsc_int64_real32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: colOffsets(:), rowInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCsc_int64_real32

    function tarsiaCreateConstCsc_int64_real64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: colOffsets(:), rowInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCsc_int64_real64

    function tarsiaCreateConstCsc_int64_complex32(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: colOffsets(:), rowInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCsc_int64_complex32

    function tarsiaCreateConstCsc_int64_complex64(A, rows, cols, colOffsets, rowInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: colOffsets(:), rowInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("colOffsets", is_contiguous(colOffsets))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colOffsets", size(colOffsets, kind=c_int64_t), "cols + 1", cols + 1)
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCsc(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(colOffsets), c_loc(rowInd), c_loc(values), &
            TARSIA_INDEX_64I, TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCsc_int64_complex64

    function tarsiaCreateConstCoo_int32_real32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowInd(:), colInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCoo_int32_real32

    function tarsiaCreateConstCoo_int32_real64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowInd(:), colInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCoo_int32_real64

    function tarsiaCreateConstCoo_int32_complex32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowInd(:), colInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCoo_int32_complex32

    function tarsiaCreateConstCoo_int32_complex64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int32_t), target, intent(in) :: rowInd(:), colInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_32I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCoo_int32_complex64

    function tarsiaCreateConstCoo_int64_real32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowInd(:), colInd(:)
        real(c_float), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_R_32F)
    end function tarsiaCreateConstCoo_int64_real32

    function tarsiaCreateConstCoo_int64_real64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowInd(:), colInd(:)
        real(c_double), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_R_64F)
    end function tarsiaCreateConstCoo_int64_real64

    function tarsiaCreateConstCoo_int64_complex32(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowInd(:), colInd(:)
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_C_32F)
    end function tarsiaCreateConstCoo_int64_complex32

    function tarsiaCreateConstCoo_int64_complex64(A, rows, cols, rowInd, colInd, values, base) result(status)
        type(c_ptr), intent(out) :: A
        integer(c_int64_t), value, intent(in) :: rows, cols
        integer(c_int64_t), target, intent(in) :: rowInd(:), colInd(:)
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int), value, intent(in) :: base
        integer(c_int) :: status

        A = c_null_ptr
        status = kept("rowInd", is_contiguous(rowInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("colInd", is_contiguous(colInd))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("rowInd", size(rowInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = sized("colInd", size(colInd, kind=c_int64_t), "size(values)", size(values, kind=c_int64_t))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstCoo(A, rows, cols, size(values, kind=c_int64_t), &
            c_loc(rowInd), c_loc(colInd), c_loc(values), &
            TARSIA_INDEX_64I, base, TARSIA_C_64F)
    end function tarsiaCreateConstCoo_int64_complex64

    function tarsiaCreateConstDnVec_real32(x, values) result(status)
        type(c_ptr), intent(out) :: x
        real(c_float), target, intent(in) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_R_32F)
    end function tarsiaCreateConstDnVec_real32

    function tarsiaCreateConstDnMat_real32(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        real(c_float), target, intent(in) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateConstDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_R_32F, TARSIA_ORDER_COL)
    end function tarsiaCreateConstDnMat_real32

    function tarsiaCreateConstDnVec_real64(x, values) result(status)
        type(c_ptr), intent(out) :: x
        real(c_double), target, intent(in) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_R_64F)
    end function tarsiaCreateConstDnVec_real64

    function tarsiaCreateConstDnMat_real64(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        real(c_double), target, intent(in) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateConstDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_R_64F, TARSIA_ORDER_COL)
    end function tarsiaCreateConstDnMat_real64

    function tarsiaCreateConstDnVec_complex32(x, values) result(status)
        type(c_ptr), intent(out) :: x
        complex(c_float_complex), target, intent(in) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_C_32F)
    end function tarsiaCreateConstDnVec_complex32

    function tarsiaCreateConstDnMat_complex32(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        complex(c_float_complex), target, intent(in) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateConstDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_C_32F, TARSIA_ORDER_COL)
    end function tarsiaCreateConstDnMat_complex32

    function tarsiaCreateConstDnVec_complex64(x, values) result(status)
        type(c_ptr), intent(out) :: x
        complex(c_double_complex), target, intent(in) :: values(:)
        integer(c_int) :: status

        x = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaCreateConstDnVec(x, size(values, kind=c_int64_t), c_loc(values), TARSIA_C_64F)
    end function tarsiaCreateConstDnVec_complex64

    function tarsiaCreateConstDnMat_complex64(B, values, rows) result(status)
        type(c_ptr), intent(out) :: B
        complex(c_double_complex), target, intent(in) :: values(:, :)
        integer(c_int64_t), intent(in), optional :: rows
        integer(c_int64_t) :: ld, taken
        integer(c_int) :: status

        B = c_null_ptr
        status = kept("values", is_contiguous(values))
        if (status /= TARSIA_STATUS_SUCCESS) return
        ld = size(values, 1, kind=c_int64_t)
        taken = ld
        if (present(rows)) taken = rows
        status = tarsiaCreateConstDnMat(B, taken, size(values, 2, kind=c_int64_t), max(ld, 1_c_int64_t), &
            c_loc(values), TARSIA_C_64F, TARSIA_ORDER_COL)
    end function tarsiaCreateConstDnMat_complex64

    function tarsiaPlan_updateValues_real32(handle, plan, newValues) result(status)
        type(c_ptr), value, intent(in) :: handle, plan
        real(c_float), target, intent(in) :: newValues(:)
        integer(c_int) :: status

        status = kept("newValues", is_contiguous(newValues))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaPlan_updateValues(handle, plan, c_loc(newValues))
    end function tarsiaPlan_updateValues_real32

    function tarsiaPlan_updateValues_real64(handle, plan, newValues) result(status)
        type(c_ptr), value, intent(in) :: handle, plan
        real(c_double), target, intent(in) :: newValues(:)
        integer(c_int) :: status

        status = kept("newValues", is_contiguous(newValues))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaPlan_updateValues(handle, plan, c_loc(newValues))
    end function tarsiaPlan_updateValues_real64

    function tarsiaPlan_updateValues_complex32(handle, plan, newValues) result(status)
        type(c_ptr), value, intent(in) :: handle, plan
        complex(c_float_complex), target, intent(in) :: newValues(:)
        integer(c_int) :: status

        status = kept("newValues", is_contiguous(newValues))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaPlan_updateValues(handle, plan, c_loc(newValues))
    end function tarsiaPlan_updateValues_complex32

    function tarsiaPlan_updateValues_complex64(handle, plan, newValues) result(status)
        type(c_ptr), value, intent(in) :: handle, plan
        complex(c_double_complex), target, intent(in) :: newValues(:)
        integer(c_int) :: status

        status = kept("newValues", is_contiguous(newValues))
        if (status /= TARSIA_STATUS_SUCCESS) return
        status = tarsiaPlan_updateValues(handle, plan, c_loc(newValues))
    end function tarsiaPlan_updateValues_complex64

end module tarsia
