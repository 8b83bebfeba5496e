! SPDX-License-Identifier: MIT OR Apache-2.0
!
! Fortran interface of tarsia: sparse matrix products behind handles, descriptors and plans.
!
! Generated from include/tarsia.h by scripts/fortran-module.py; do not edit. What each function does,
! blocks and returns is said in tarsia.h; names, arguments and their order are the same here.
!
! Compile this file with your program: module files of different compilers do not fit together.
!
!   handles, descriptors, plans   type(c_ptr); c_null_ptr is C's NULL
!   enums                         integer(c_int), with the parameters below
!   dimensions, counts of nnz     integer(c_int64_t)
!   sizes in bytes                integer(c_size_t)
!   arrays, alpha, beta           type(c_ptr): c_loc(x) of a target, or what tarsiaMalloc gave
!   callbacks                     type(c_funptr): c_funloc(f) of a bind(C) procedure; the abstract
!                                 interfaces tarsiaAllocFn_t ... say which arguments it has
!   answers                       intent(out). Those that C may leave out with NULL are optional: use
!                                 keywords, as in tarsiaSpMatGetSize(A, nnz=nnz). After a call that
!                                 failed an answer is undefined.
!
! Fortran's arrays count from 1 and are stored by columns: TARSIA_INDEX_BASE_ONE, TARSIA_ORDER_COL.
! In pointer mode HOST alpha and beta are read before the call returns. Arrays of descriptors and plans
! are borrowed: they must be targets (or memory of tarsiaMalloc) that live as long as they are used.
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

    ! tarsiaStatus_t: What a call reports.
    integer(c_int), parameter, public :: TARSIA_STATUS_SUCCESS = 0
    integer(c_int), parameter, public :: TARSIA_STATUS_NOT_INITIALIZED = 1
    integer(c_int), parameter, public :: TARSIA_STATUS_ALLOC_FAILED = 2
    integer(c_int), parameter, public :: TARSIA_STATUS_INVALID_VALUE = 3
    integer(c_int), parameter, public :: TARSIA_STATUS_ARCH_MISMATCH = 4
    integer(c_int), parameter, public :: TARSIA_STATUS_MAPPING_ERROR = 5
    integer(c_int), parameter, public :: TARSIA_STATUS_EXECUTION_FAILED = 6
    integer(c_int), parameter, public :: TARSIA_STATUS_INTERNAL_ERROR = 7
    integer(c_int), parameter, public :: TARSIA_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8
    integer(c_int), parameter, public :: TARSIA_STATUS_ZERO_PIVOT = 9
    integer(c_int), parameter, public :: TARSIA_STATUS_NOT_SUPPORTED = 10
    integer(c_int), parameter, public :: TARSIA_STATUS_INSUFFICIENT_RESOURCES = 11
    integer(c_int), parameter, public :: TARSIA_STATUS_INVALID_STATE = 100

    ! tarsiaProperty_t: Parts of the version number.
    integer(c_int), parameter, public :: TARSIA_PROPERTY_MAJOR_VERSION = 0
    integer(c_int), parameter, public :: TARSIA_PROPERTY_MINOR_VERSION = 1
    integer(c_int), parameter, public :: TARSIA_PROPERTY_PATCH_LEVEL = 2

    ! tarsiaBackend_t: Who executes.
    integer(c_int), parameter, public :: TARSIA_BACKEND_AUTO = 0
    integer(c_int), parameter, public :: TARSIA_BACKEND_HOST = 1
    integer(c_int), parameter, public :: TARSIA_BACKEND_CUDA = 2
    integer(c_int), parameter, public :: TARSIA_BACKEND_REFERENCE = 3

    ! tarsiaPointerMode_t: Where alpha and beta live.
    integer(c_int), parameter, public :: TARSIA_POINTER_MODE_HOST = 0
    integer(c_int), parameter, public :: TARSIA_POINTER_MODE_DEVICE = 1

    ! tarsiaLogLevel_t: Weight of a log line.
    integer(c_int), parameter, public :: TARSIA_LOG_ERROR = 1
    integer(c_int), parameter, public :: TARSIA_LOG_WARNING = 2
    integer(c_int), parameter, public :: TARSIA_LOG_INFO = 3

    ! tarsiaIndexType_t: Width of offsets and indices.
    integer(c_int), parameter, public :: TARSIA_INDEX_16U = 1
    integer(c_int), parameter, public :: TARSIA_INDEX_32I = 2
    integer(c_int), parameter, public :: TARSIA_INDEX_64I = 3

    ! tarsiaIndexBase_t: Number of the first row and column.
    integer(c_int), parameter, public :: TARSIA_INDEX_BASE_ZERO = 0
    integer(c_int), parameter, public :: TARSIA_INDEX_BASE_ONE = 1

    ! tarsiaDataType_t: Type of stored values.
    integer(c_int), parameter, public :: TARSIA_R_32F = 0
    integer(c_int), parameter, public :: TARSIA_R_64F = 1
    integer(c_int), parameter, public :: TARSIA_R_16F = 2
    integer(c_int), parameter, public :: TARSIA_R_8I = 3
    integer(c_int), parameter, public :: TARSIA_C_32F = 4
    integer(c_int), parameter, public :: TARSIA_C_64F = 5
    integer(c_int), parameter, public :: TARSIA_R_32I = 10
    integer(c_int), parameter, public :: TARSIA_R_16BF = 14

    ! tarsiaOrder_t: Storage order of a dense matrix, and of the values inside a BSR block.
    integer(c_int), parameter, public :: TARSIA_ORDER_COL = 1
    integer(c_int), parameter, public :: TARSIA_ORDER_ROW = 2

    ! tarsiaFormat_t: Format of a sparse matrix.
    integer(c_int), parameter, public :: TARSIA_FORMAT_CSR = 1
    integer(c_int), parameter, public :: TARSIA_FORMAT_CSC = 2
    integer(c_int), parameter, public :: TARSIA_FORMAT_COO = 3
    integer(c_int), parameter, public :: TARSIA_FORMAT_BSR = 6
    integer(c_int), parameter, public :: TARSIA_FORMAT_TILE = 100

    ! tarsiaEffort_t: How much analysis may cost.
    integer(c_int), parameter, public :: TARSIA_EFFORT_DEFAULT = 0
    integer(c_int), parameter, public :: TARSIA_EFFORT_QUICK = 1
    integer(c_int), parameter, public :: TARSIA_EFFORT_TUNED = 2

    ! tarsiaReorder_t: Row reordering.
    integer(c_int), parameter, public :: TARSIA_REORDER_AUTO = 0
    integer(c_int), parameter, public :: TARSIA_REORDER_NONE = 1
    integer(c_int), parameter, public :: TARSIA_REORDER_PLAIN_SORT = 2
    integer(c_int), parameter, public :: TARSIA_REORDER_FLIPPED_SORT = 3
    integer(c_int), parameter, public :: TARSIA_REORDER_LPT = 4
    integer(c_int), parameter, public :: TARSIA_REORDER_WARP_AWARE = 5
    integer(c_int), parameter, public :: TARSIA_REORDER_CTA_AWARE = 6
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_1 = 7
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_1 = 8
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_2 = 9
    integer(c_int), parameter, public :: TARSIA_REORDER_HYBRID_2_3 = 10
    integer(c_int), parameter, public :: TARSIA_REORDER_DCSR = 11
    integer(c_int), parameter, public :: TARSIA_REORDER_RCM = 12
    integer(c_int), parameter, public :: TARSIA_REORDER_GRAY_CODE = 13
    integer(c_int), parameter, public :: TARSIA_REORDER_LEARNED = 14

    ! tarsiaOpKind_t: What a plan computes.
    integer(c_int), parameter, public :: TARSIA_OP_SPMV = 1
    integer(c_int), parameter, public :: TARSIA_OP_SPMM = 2
    integer(c_int), parameter, public :: TARSIA_OP_SPGEMM = 3

    ! tarsiaLayout_t: What analysis built.
    integer(c_int), parameter, public :: TARSIA_LAYOUT_NONE = 0
    integer(c_int), parameter, public :: TARSIA_LAYOUT_CSR = 1
    integer(c_int), parameter, public :: TARSIA_LAYOUT_TRIPLETS = 2
    integer(c_int), parameter, public :: TARSIA_LAYOUT_SELL = 3
    integer(c_int), parameter, public :: TARSIA_LAYOUT_STREAM = 4
    integer(c_int), parameter, public :: TARSIA_LAYOUT_DASP = 5
    integer(c_int), parameter, public :: TARSIA_LAYOUT_MASK_BLOCK = 6
    integer(c_int), parameter, public :: TARSIA_LAYOUT_WINDOW = 7
    integer(c_int), parameter, public :: TARSIA_LAYOUT_BCSR = 8
    integer(c_int), parameter, public :: TARSIA_LAYOUT_DENSE = 9
    integer(c_int), parameter, public :: TARSIA_LAYOUT_TILE = 10
    integer(c_int), parameter, public :: TARSIA_LAYOUT_SWIFT = 11

    ! tarsiaOperation_t: op(A).
    integer(c_int), parameter, public :: TARSIA_OPERATION_NON_TRANSPOSE = 0
    integer(c_int), parameter, public :: TARSIA_OPERATION_TRANSPOSE = 1
    integer(c_int), parameter, public :: TARSIA_OPERATION_CONJUGATE_TRANSPOSE = 2

    ! tarsiaComputeType_t: Type in which products are formed and summed.
    integer(c_int), parameter, public :: TARSIA_COMPUTE_32F = 0
    integer(c_int), parameter, public :: TARSIA_COMPUTE_64F = 1
    integer(c_int), parameter, public :: TARSIA_COMPUTE_C_32F = 4
    integer(c_int), parameter, public :: TARSIA_COMPUTE_C_64F = 5
    integer(c_int), parameter, public :: TARSIA_COMPUTE_TF32 = 100
    integer(c_int), parameter, public :: TARSIA_COMPUTE_32F_PEDANTIC = 101
    integer(c_int), parameter, public :: TARSIA_COMPUTE_64F_PEDANTIC = 102

    ! tarsiaSpMVAlg_t: SpMV algorithm.
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_DEFAULT = 0
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_CSR = 1
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_SELL = 2
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_STREAM = 3
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_DASP = 4
    integer(c_int), parameter, public :: TARSIA_SPMV_ALG_MASK_BLOCK = 5

    ! tarsiaSpMMAlg_t: SpMM algorithm.
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_DEFAULT = 0
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_ROW = 1
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_WINDOW = 2
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SMAT = 3
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_DENSE = 4
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SELL = 5
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_SWIFT = 6
    integer(c_int), parameter, public :: TARSIA_SPMM_ALG_CSR = 7

    ! tarsiaSpGEMMAlg_t: SpGEMM algorithm.
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_DEFAULT = 0
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_HASH = 1
    integer(c_int), parameter, public :: TARSIA_SPGEMM_ALG_TILE = 2

    ! What tarsiaPlan_getInfo tells.
    ! structSize is set here, so that a variable can be passed as it is.
    type, bind(C), public :: tarsiaPlanInfo_t
        integer(c_size_t) :: structSize = 656_c_size_t
        integer(c_int) :: operation
        integer(c_int) :: analyzed
        integer(c_int) :: algorithm
        integer(c_int) :: layout
        integer(c_int) :: reorder
        integer(c_int) :: effort
        integer(c_int) :: valueUpdates
        integer(c_int) :: inPlace
        integer(c_int64_t) :: rows
        integer(c_int64_t) :: cols
        integer(c_int64_t) :: nnz
        integer(c_int64_t) :: nnzC
        integer(c_int64_t) :: products
        integer(c_size_t) :: planBytes
        integer(c_size_t) :: peakBytes
        integer(c_size_t) :: workspaceBytes
        real(c_double) :: fill
        real(c_double) :: analysisSeconds
        real(c_double) :: predictedSeconds
        character(kind=c_char) :: algorithmName(32)
        character(kind=c_char) :: reason(480)
        integer(c_int64_t) :: expectedExecutes
        integer(c_int) :: valuesInPlace
        integer(c_int) :: checked
    end type tarsiaPlanInfo_t

    ! Does not compile (division by 0) where structSize is not the size of the type.
    type(tarsiaPlanInfo_t) :: probe_tarsiaPlanInfo_t
    integer, parameter :: check_tarsiaPlanInfo_t = 1/merge(1, 0, storage_size(probe_tarsiaPlanInfo_t) == 8*656)

    ! Callbacks.
    abstract interface
        ! A user's allocation function.
        function tarsiaAllocFn_t(ctx, bytes, stream) bind(C)
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: ctx
            integer(c_size_t), value, intent(in) :: bytes
            type(c_ptr), value, intent(in) :: stream
            type(c_ptr) :: tarsiaAllocFn_t
        end function tarsiaAllocFn_t

        ! A user's release function for what its allocation function gave when it was asked for
        ! bytes bytes.
        subroutine tarsiaFreeFn_t(ctx, ptr, bytes, stream) bind(C)
            import :: c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: ctx
            type(c_ptr), value, intent(in) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            type(c_ptr), value, intent(in) :: stream
        end subroutine tarsiaFreeFn_t

        ! Receives log lines.
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
        ! Name of a status, such as "TARSIA_STATUS_INVALID_VALUE".
        function tarsiaGetErrorName(status) bind(C, name="tarsiaGetErrorName")
            import :: c_int, c_ptr
            integer(c_int), value, intent(in) :: status
            type(c_ptr) :: tarsiaGetErrorName
        end function tarsiaGetErrorName

        ! One sentence on what a status means.
        function tarsiaGetErrorString(status) bind(C, name="tarsiaGetErrorString")
            import :: c_int, c_ptr
            integer(c_int), value, intent(in) :: status
            type(c_ptr) :: tarsiaGetErrorString
        end function tarsiaGetErrorString

        ! Copies the text of the calling thread's last failed call to buf.
        function tarsiaGetLastErrorMessage(buf, len) bind(C, name="tarsiaGetLastErrorMessage")
            import :: c_char, c_int, c_size_t
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value, intent(in) :: len
            integer(c_int) :: tarsiaGetLastErrorMessage
        end function tarsiaGetLastErrorMessage

        ! Version of the library as 10000*major + 100*minor + patch.
        function tarsiaGetVersion(version) bind(C, name="tarsiaGetVersion")
            import :: c_int
            integer(c_int), intent(out) :: version
            integer(c_int) :: tarsiaGetVersion
        end function tarsiaGetVersion

        ! One part of the library's version.
        function tarsiaGetProperty(property, value) bind(C, name="tarsiaGetProperty")
            import :: c_int
            integer(c_int), value, intent(in) :: property
            integer(c_int), intent(out) :: value
            integer(c_int) :: tarsiaGetProperty
        end function tarsiaGetProperty

        ! How many threads the host backend takes for calls that begin from now on, of all handles
        ! of the process.
        function tarsiaSetNumThreads(n) bind(C, name="tarsiaSetNumThreads")
            import :: c_int
            integer(c_int), value, intent(in) :: n
            integer(c_int) :: tarsiaSetNumThreads
        end function tarsiaSetNumThreads

        ! How many threads the next call takes.
        function tarsiaGetNumThreads(n) bind(C, name="tarsiaGetNumThreads")
            import :: c_int
            integer(c_int), intent(out) :: n
            integer(c_int) :: tarsiaGetNumThreads
        end function tarsiaGetNumThreads

        ! Creates a handle.
        function tarsiaCreate(handle) bind(C, name="tarsiaCreate")
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: handle
            integer(c_int) :: tarsiaCreate
        end function tarsiaCreate

        ! Creates a handle on a backend by name.
        function tarsiaCreateWithBackend(handle, backend, device &
                ) bind(C, name="tarsiaCreateWithBackend")
            import :: c_int, c_ptr
            type(c_ptr), intent(out) :: handle
            integer(c_int), value, intent(in) :: backend
            integer(c_int), value, intent(in) :: device
            integer(c_int) :: tarsiaCreateWithBackend
        end function tarsiaCreateWithBackend

        ! Destroys a handle and its workspace.
        function tarsiaDestroy(handle) bind(C, name="tarsiaDestroy")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int) :: tarsiaDestroy
        end function tarsiaDestroy

        ! Sets the stream (a cudaStream_t) on which the handle's calls run from now on.
        function tarsiaSetStream(handle, stream) bind(C, name="tarsiaSetStream")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: stream
            integer(c_int) :: tarsiaSetStream
        end function tarsiaSetStream

        ! The handle's stream.
        function tarsiaGetStream(handle, stream) bind(C, name="tarsiaGetStream")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: stream
            integer(c_int) :: tarsiaGetStream
        end function tarsiaGetStream

        ! Says where alpha and beta live from now on.
        function tarsiaSetPointerMode(handle, mode) bind(C, name="tarsiaSetPointerMode")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: mode
            integer(c_int) :: tarsiaSetPointerMode
        end function tarsiaSetPointerMode

        ! Where alpha and beta live.
        function tarsiaGetPointerMode(handle, mode) bind(C, name="tarsiaGetPointerMode")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: mode
            integer(c_int) :: tarsiaGetPointerMode
        end function tarsiaGetPointerMode

        ! Deterministic mode (0 after create).
        function tarsiaSetDeterministic(handle, deterministic &
                ) bind(C, name="tarsiaSetDeterministic")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: deterministic
            integer(c_int) :: tarsiaSetDeterministic
        end function tarsiaSetDeterministic

        ! Whether deterministic mode is on (1) or off (0).
        function tarsiaGetDeterministic(handle, deterministic &
                ) bind(C, name="tarsiaGetDeterministic")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: deterministic
            integer(c_int) :: tarsiaGetDeterministic
        end function tarsiaGetDeterministic

        ! Checks for development (0 after create).
        function tarsiaSetChecks(handle, checks) bind(C, name="tarsiaSetChecks")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), value, intent(in) :: checks
            integer(c_int) :: tarsiaSetChecks
        end function tarsiaSetChecks

        ! Whether checks are on (1) or off (0).
        function tarsiaGetChecks(handle, checks) bind(C, name="tarsiaGetChecks")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: checks
            integer(c_int) :: tarsiaGetChecks
        end function tarsiaGetChecks

        ! Keeps what tarsiaPlan_analyze decides in a folder, for the analyses that follow, in later
        ! processes too.
        function tarsiaSetPlanCache(handle, folder) bind(C, name="tarsiaSetPlanCache")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: folder
            integer(c_int) :: tarsiaSetPlanCache
        end function tarsiaSetPlanCache

        ! Takes memory for plans, conversions and the handle's own workspace from the user's
        ! functions.
        function tarsiaSetAllocator(handle, alloc, free, ctx) bind(C, name="tarsiaSetAllocator")
            import :: c_funptr, c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_funptr), value, intent(in) :: alloc
            type(c_funptr), value, intent(in) :: free
            type(c_ptr), value, intent(in) :: ctx
            integer(c_int) :: tarsiaSetAllocator
        end function tarsiaSetAllocator

        ! Sends the handle's log lines to callback.
        function tarsiaSetLogger(handle, callback, ctx) bind(C, name="tarsiaSetLogger")
            import :: c_funptr, c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_funptr), value, intent(in) :: callback
            type(c_ptr), value, intent(in) :: ctx
            integer(c_int) :: tarsiaSetLogger
        end function tarsiaSetLogger

        ! Gives execute its scratch memory.
        function tarsiaSetWorkspace(handle, ptr, bytes) bind(C, name="tarsiaSetWorkspace")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaSetWorkspace
        end function tarsiaSetWorkspace

        ! The handle's backend.
        function tarsiaGetBackend(handle, backend) bind(C, name="tarsiaGetBackend")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: backend
            integer(c_int) :: tarsiaGetBackend
        end function tarsiaGetBackend

        ! Number of the handle's device.
        function tarsiaGetDevice(handle, device) bind(C, name="tarsiaGetDevice")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int), intent(out) :: device
            integer(c_int) :: tarsiaGetDevice
        end function tarsiaGetDevice

        ! Allocates bytes bytes of the backend's memory, aligned to at least 256 bytes (not through
        ! tarsiaSetAllocator).
        function tarsiaMalloc(handle, ptr, bytes) bind(C, name="tarsiaMalloc")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: ptr
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMalloc
        end function tarsiaMalloc

        ! Frees what tarsiaMalloc gave.
        function tarsiaFree(handle, ptr) bind(C, name="tarsiaFree")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: ptr
            integer(c_int) :: tarsiaFree
        end function tarsiaFree

        ! Copies bytes bytes from host memory (src) to the backend's memory (dst), in the order of
        ! the handle's stream.
        function tarsiaMemcpyToDevice(handle, dst, src, bytes) bind(C, name="tarsiaMemcpyToDevice")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: dst
            type(c_ptr), value, intent(in) :: src
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMemcpyToDevice
        end function tarsiaMemcpyToDevice

        ! Copies bytes bytes from the backend's memory (src) to host memory (dst), in the order of
        ! the handle's stream.
        function tarsiaMemcpyToHost(handle, dst, src, bytes) bind(C, name="tarsiaMemcpyToHost")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: dst
            type(c_ptr), value, intent(in) :: src
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaMemcpyToHost
        end function tarsiaMemcpyToHost

        ! Blocks until all work on the handle's stream is done.
        function tarsiaSynchronize(handle) bind(C, name="tarsiaSynchronize")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            integer(c_int) :: tarsiaSynchronize
        end function tarsiaSynchronize

        ! Describes a CSR matrix.
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

        ! As tarsiaCreateCsr, from const arrays.
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

        ! Describes a CSC matrix.
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

        ! As tarsiaCreateCsc, from const arrays.
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

        ! Describes a COO matrix.
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

        ! As tarsiaCreateCoo, from const arrays.
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

        ! Describes a BSR matrix.
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

        ! As tarsiaCreateBsr, from const arrays.
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

        ! Destroys a sparse matrix descriptor, not the arrays.
        function tarsiaDestroySpMat(A) bind(C, name="tarsiaDestroySpMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int) :: tarsiaDestroySpMat
        end function tarsiaDestroySpMat

        ! Reads the whole pattern of a matrix that is not trusted.
        function tarsiaCheckSpMat(handle, A, sorted, unique) bind(C, name="tarsiaCheckSpMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out), optional :: sorted
            integer(c_int), intent(out), optional :: unique
            integer(c_int) :: tarsiaCheckSpMat
        end function tarsiaCheckSpMat

        ! All fields of a CSR descriptor.
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

        ! As tarsiaCsrGet, for any CSR descriptor, with pointers to const.
        function tarsiaConstCsrGet(A, rows, cols, nnz, rowOffsets, colInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaConstCsrGet")
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
            integer(c_int) :: tarsiaConstCsrGet
        end function tarsiaConstCsrGet

        ! Replaces the arrays of a CSR descriptor.
        function tarsiaCsrSetPointers(A, rowOffsets, colInd, values &
                ) bind(C, name="tarsiaCsrSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCsrSetPointers
        end function tarsiaCsrSetPointers

        ! All fields of a CSC descriptor.
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

        ! As tarsiaCscGet, for any CSC descriptor, with pointers to const.
        function tarsiaConstCscGet(A, rows, cols, nnz, colOffsets, rowInd, values, offsetType, &
                indexType, base, valueType) bind(C, name="tarsiaConstCscGet")
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
            integer(c_int) :: tarsiaConstCscGet
        end function tarsiaConstCscGet

        ! Replaces the arrays of a CSC descriptor.
        function tarsiaCscSetPointers(A, colOffsets, rowInd, values &
                ) bind(C, name="tarsiaCscSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: colOffsets
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCscSetPointers
        end function tarsiaCscSetPointers

        ! All fields of a COO descriptor.
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

        ! As tarsiaCooGet, for any COO descriptor, with pointers to const.
        function tarsiaConstCooGet(A, rows, cols, nnz, rowInd, colInd, values, indexType, base, &
                valueType) bind(C, name="tarsiaConstCooGet")
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
            integer(c_int) :: tarsiaConstCooGet
        end function tarsiaConstCooGet

        ! Replaces the arrays of a COO descriptor.
        function tarsiaCooSetPointers(A, rowInd, colInd, values &
                ) bind(C, name="tarsiaCooSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowInd
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaCooSetPointers
        end function tarsiaCooSetPointers

        ! All fields of a BSR descriptor.
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

        ! As tarsiaBsrGet, for any BSR descriptor, with pointers to const.
        function tarsiaConstBsrGet(A, blockRows, blockCols, blockNnz, rowBlockSize, colBlockSize, &
                rowOffsets, colInd, values, offsetType, indexType, base, valueType, blockOrder &
                ) bind(C, name="tarsiaConstBsrGet")
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
            integer(c_int) :: tarsiaConstBsrGet
        end function tarsiaConstBsrGet

        ! Replaces the arrays of a BSR descriptor.
        function tarsiaBsrSetPointers(A, rowOffsets, colInd, values &
                ) bind(C, name="tarsiaBsrSetPointers")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: rowOffsets
            type(c_ptr), value, intent(in) :: colInd
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaBsrSetPointers
        end function tarsiaBsrSetPointers

        ! Rows, columns and stored entries, in scalars also for BSR.
        function tarsiaSpMatGetSize(A, rows, cols, nnz) bind(C, name="tarsiaSpMatGetSize")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: nnz
            integer(c_int) :: tarsiaSpMatGetSize
        end function tarsiaSpMatGetSize

        ! Format of a descriptor.
        function tarsiaSpMatGetFormat(A, format) bind(C, name="tarsiaSpMatGetFormat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out) :: format
            integer(c_int) :: tarsiaSpMatGetFormat
        end function tarsiaSpMatGetFormat

        ! Index base of a descriptor.
        function tarsiaSpMatGetIndexBase(A, base) bind(C, name="tarsiaSpMatGetIndexBase")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            integer(c_int), intent(out) :: base
            integer(c_int) :: tarsiaSpMatGetIndexBase
        end function tarsiaSpMatGetIndexBase

        ! Value array of a descriptor.
        function tarsiaSpMatGetValues(A, values) bind(C, name="tarsiaSpMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaSpMatGetValues
        end function tarsiaSpMatGetValues

        ! Value array of any descriptor, to read.
        function tarsiaConstSpMatGetValues(A, values) bind(C, name="tarsiaConstSpMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstSpMatGetValues
        end function tarsiaConstSpMatGetValues

        ! Replaces the value array of a descriptor.
        function tarsiaSpMatSetValues(A, values) bind(C, name="tarsiaSpMatSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaSpMatSetValues
        end function tarsiaSpMatSetValues

        ! Creates a matrix in sparse tiles of 16 x 16, whose memory is the library's, with nothing
        ! in it.
        function tarsiaCreateTile(handle, A, rows, cols, valueType) bind(C, name="tarsiaCreateTile")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), intent(out) :: A
            integer(c_int64_t), value, intent(in) :: rows
            integer(c_int64_t), value, intent(in) :: cols
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateTile
        end function tarsiaCreateTile

        ! What is in a matrix of tarsiaCreateTile.
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

        ! B = A, into tiles.
        function tarsiaSparseToTile(handle, A, B) bind(C, name="tarsiaSparseToTile")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaSparseToTile
        end function tarsiaSparseToTile

        ! B = A, out of tiles.
        function tarsiaTileToSparse(handle, A, B) bind(C, name="tarsiaTileToSparse")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: A
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaTileToSparse
        end function tarsiaTileToSparse

        ! Describes a dense vector of size elements, contiguous.
        function tarsiaCreateDnVec(x, size, values, valueType) bind(C, name="tarsiaCreateDnVec")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: x
            integer(c_int64_t), value, intent(in) :: size
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateDnVec
        end function tarsiaCreateDnVec

        ! As tarsiaCreateDnVec, from a const array.
        function tarsiaCreateConstDnVec(x, size, values, valueType &
                ) bind(C, name="tarsiaCreateConstDnVec")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), intent(out) :: x
            integer(c_int64_t), value, intent(in) :: size
            type(c_ptr), value, intent(in) :: values
            integer(c_int), value, intent(in) :: valueType
            integer(c_int) :: tarsiaCreateConstDnVec
        end function tarsiaCreateConstDnVec

        ! Destroys a dense vector descriptor, not the array.
        function tarsiaDestroyDnVec(x) bind(C, name="tarsiaDestroyDnVec")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int) :: tarsiaDestroyDnVec
        end function tarsiaDestroyDnVec

        ! All fields of a dense vector descriptor.
        function tarsiaDnVecGet(x, size, values, valueType) bind(C, name="tarsiaDnVecGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int64_t), intent(out), optional :: size
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaDnVecGet
        end function tarsiaDnVecGet

        ! As tarsiaDnVecGet, for any dense vector descriptor, with a pointer to const.
        function tarsiaConstDnVecGet(x, size, values, valueType) bind(C, name="tarsiaConstDnVecGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: x
            integer(c_int64_t), intent(out), optional :: size
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: valueType
            integer(c_int) :: tarsiaConstDnVecGet
        end function tarsiaConstDnVecGet

        ! The array of a dense vector descriptor.
        function tarsiaDnVecGetValues(x, values) bind(C, name="tarsiaDnVecGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaDnVecGetValues
        end function tarsiaDnVecGetValues

        ! The array of any dense vector descriptor, to read.
        function tarsiaConstDnVecGetValues(x, values) bind(C, name="tarsiaConstDnVecGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstDnVecGetValues
        end function tarsiaConstDnVecGetValues

        ! Replaces the array of a dense vector descriptor.
        function tarsiaDnVecSetValues(x, values) bind(C, name="tarsiaDnVecSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: x
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaDnVecSetValues
        end function tarsiaDnVecSetValues

        ! Describes a dense matrix of rows x cols elements.
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

        ! As tarsiaCreateDnMat, from a const array.
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

        ! Destroys a dense matrix descriptor, not the array.
        function tarsiaDestroyDnMat(B) bind(C, name="tarsiaDestroyDnMat")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            integer(c_int) :: tarsiaDestroyDnMat
        end function tarsiaDestroyDnMat

        ! All fields of a dense matrix descriptor.
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

        ! As tarsiaDnMatGet, for any dense matrix descriptor, with a pointer to const.
        function tarsiaConstDnMatGet(B, rows, cols, ld, values, valueType, order &
                ) bind(C, name="tarsiaConstDnMatGet")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: B
            integer(c_int64_t), intent(out), optional :: rows
            integer(c_int64_t), intent(out), optional :: cols
            integer(c_int64_t), intent(out), optional :: ld
            type(c_ptr), intent(out), optional :: values
            integer(c_int), intent(out), optional :: valueType
            integer(c_int), intent(out), optional :: order
            integer(c_int) :: tarsiaConstDnMatGet
        end function tarsiaConstDnMatGet

        ! The array of a dense matrix descriptor.
        function tarsiaDnMatGetValues(B, values) bind(C, name="tarsiaDnMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaDnMatGetValues
        end function tarsiaDnMatGetValues

        ! The array of any dense matrix descriptor, to read.
        function tarsiaConstDnMatGetValues(B, values) bind(C, name="tarsiaConstDnMatGetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), intent(out) :: values
            integer(c_int) :: tarsiaConstDnMatGetValues
        end function tarsiaConstDnMatGetValues

        ! Replaces the array of a dense matrix descriptor.
        function tarsiaDnMatSetValues(B, values) bind(C, name="tarsiaDnMatSetValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: B
            type(c_ptr), value, intent(in) :: values
            integer(c_int) :: tarsiaDnMatSetValues
        end function tarsiaDnMatSetValues

        ! How much tarsiaPlan_analyze may cost.
        function tarsiaPlan_setEffort(plan, effort) bind(C, name="tarsiaPlan_setEffort")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: effort
            integer(c_int) :: tarsiaPlan_setEffort
        end function tarsiaPlan_setEffort

        ! Row reordering.
        function tarsiaPlan_setReorder(plan, reorder) bind(C, name="tarsiaPlan_setReorder")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: reorder
            integer(c_int) :: tarsiaPlan_setReorder
        end function tarsiaPlan_setReorder

        ! Blocks of TARSIA_SPMM_ALG_SMAT.
        function tarsiaPlan_setBlockDims(plan, rowBlockDim, colBlockDim &
                ) bind(C, name="tarsiaPlan_setBlockDims")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: rowBlockDim
            integer(c_int64_t), value, intent(in) :: colBlockDim
            integer(c_int) :: tarsiaPlan_setBlockDims
        end function tarsiaPlan_setBlockDims

        ! Whether values will change.
        function tarsiaPlan_setValueUpdates(plan, valueUpdates &
                ) bind(C, name="tarsiaPlan_setValueUpdates")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: valueUpdates
            integer(c_int) :: tarsiaPlan_setValueUpdates
        end function tarsiaPlan_setValueUpdates

        ! Whether the plan is self-contained (0 after create).
        function tarsiaPlan_setSelfContained(plan, selfContained &
                ) bind(C, name="tarsiaPlan_setSelfContained")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: selfContained
            integer(c_int) :: tarsiaPlan_setSelfContained
        end function tarsiaPlan_setSelfContained

        ! Whether every execute reads the values in the user's arrays as they are then.
        function tarsiaPlan_setValuesInPlace(plan, valuesInPlace &
                ) bind(C, name="tarsiaPlan_setValuesInPlace")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int), value, intent(in) :: valuesInPlace
            integer(c_int) :: tarsiaPlan_setValuesInPlace
        end function tarsiaPlan_setValuesInPlace

        ! How often the plan will be executed (of SpGEMM.
        function tarsiaPlan_setExpectedExecutes(plan, executes &
                ) bind(C, name="tarsiaPlan_setExpectedExecutes")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: executes
            integer(c_int) :: tarsiaPlan_setExpectedExecutes
        end function tarsiaPlan_setExpectedExecutes

        ! The most bytes that the plan may hold at one time, temporary memory of analysis and of
        ! SpGEMM's phases included, C not.
        function tarsiaPlan_setMemoryLimit(plan, bytes) bind(C, name="tarsiaPlan_setMemoryLimit")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: plan
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaPlan_setMemoryLimit
        end function tarsiaPlan_setMemoryLimit

        ! Reads and validates the matrix (offsets ascend and end at nnz, indices are in range),
        ! chooses algorithm and layout, converts, and grows the handle's own workspace to what
        ! execute will need.
        function tarsiaPlan_analyze(handle, plan) bind(C, name="tarsiaPlan_analyze")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_analyze
        end function tarsiaPlan_analyze

        ! Writes what analysis of a plan has decided into a buffer.
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

        ! Gives a plan, before tarsiaPlan_analyze and after its other settings, the decisions of
        ! another plan of the same problem.
        function tarsiaPlan_setDecisions(handle, plan, buffer, bytes &
                ) bind(C, name="tarsiaPlan_setDecisions")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: buffer
            integer(c_size_t), value, intent(in) :: bytes
            integer(c_int) :: tarsiaPlan_setDecisions
        end function tarsiaPlan_setDecisions

        ! Bytes of workspace that execute needs with n columns (SpMM.
        function tarsiaPlan_workspaceSize(plan, n, bytes) bind(C, name="tarsiaPlan_workspaceSize")
            import :: c_int, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), value, intent(in) :: n
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: tarsiaPlan_workspaceSize
        end function tarsiaPlan_workspaceSize

        ! Makes all that execute will need on this handle.
        function tarsiaPlan_prepare(handle, plan) bind(C, name="tarsiaPlan_prepare")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_prepare
        end function tarsiaPlan_prepare

        ! New values of A for the same pattern.
        function tarsiaPlan_updateValues(handle, plan, newValues &
                ) bind(C, name="tarsiaPlan_updateValues")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: newValues
            integer(c_int) :: tarsiaPlan_updateValues
        end function tarsiaPlan_updateValues

        ! What the plan is and what analysis chose.
        function tarsiaPlan_getInfo(plan, info) bind(C, name="tarsiaPlan_getInfo")
            import :: c_int, c_ptr, tarsiaPlanInfo_t
            type(c_ptr), value, intent(in) :: plan
            type(tarsiaPlanInfo_t), intent(inout) :: info
            integer(c_int) :: tarsiaPlan_getInfo
        end function tarsiaPlan_getInfo

        ! Destroys a plan.
        function tarsiaPlan_destroy(plan) bind(C, name="tarsiaPlan_destroy")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: plan
            integer(c_int) :: tarsiaPlan_destroy
        end function tarsiaPlan_destroy

        ! Creates a plan for y = alpha * op(A) * x + beta * y.
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

        ! y = alpha * op(A) * x + beta * y with an analyzed plan.
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

        ! z = alpha * op(A) * x + beta * y with an analyzed plan.
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

        ! y = alpha * op(A) * x + beta * y in one call, for a matrix that is used once.
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

        ! Creates a plan for C = alpha * op(A) * op(B) + beta * C, B and C dense.
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

        ! C = alpha * op(A) * op(B) + beta * C with an analyzed plan.
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

        ! D = alpha * op(A) * op(B) + beta * C with an analyzed plan.
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

        ! C = alpha * op(A) * op(B) + beta * C in one call, for a matrix that is used once.
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

        ! Creates a plan for C = alpha * op(A) * op(B), all three sparse.
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

        ! Counts the stored entries of C, so that the caller can allocate it.
        function tarsiaSpGEMM_symbolic(handle, plan, nnzC) bind(C, name="tarsiaSpGEMM_symbolic")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            integer(c_int64_t), intent(out) :: nnzC
            integer(c_int) :: tarsiaSpGEMM_symbolic
        end function tarsiaSpGEMM_symbolic

        ! C = alpha * op(A) * op(B).
        function tarsiaSpGEMM_numeric(handle, plan, alpha, C) bind(C, name="tarsiaSpGEMM_numeric")
            import :: c_int, c_ptr
            type(c_ptr), value, intent(in) :: handle
            type(c_ptr), value, intent(in) :: plan
            type(c_ptr), value, intent(in) :: alpha
            type(c_ptr), value, intent(in) :: C
            integer(c_int) :: tarsiaSpGEMM_numeric
        end function tarsiaSpGEMM_numeric

        ! New values for A and B, same patterns, for the numeric phases that follow.
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
    end function tarsiaLastMessage

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

end module tarsia
