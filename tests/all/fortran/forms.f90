! Tests of the overloads of tarsia.f90 for Fortran's own scalars, strings and arrays, on the host backend: every
! kind, and what they refuse.
!
! usage: forms FOLDER       an empty one, for the decisions of plans
program forms
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    use tarsia
    implicit none

    ! [[1, 0, 2], [0, 3, 0]] in CSR, CSC and COO.
    integer(c_int32_t), target :: offsets(3) = [1, 3, 4], columns(3) = [1, 3, 2], rows(3) = [1, 1, 2]
    integer(c_int64_t), target :: wide_offsets(3) = [1, 3, 4], wide_columns(3) = [1, 3, 2]
    integer(c_int32_t), target :: column_offsets(4) = [1, 2, 3, 4], row_indices(3) = [1, 2, 1]
    integer(c_int64_t), parameter :: m = 2, n = 3
    ! Numbers are small integers and their halves, so that no result is rounded.
    real, parameter :: exact = tiny(1.0)
    integer :: checks = 0
    type(c_ptr) :: handle

    call check(tarsiaCreateWithBackend(handle, TARSIA_BACKEND_HOST, 0), "tarsiaCreateWithBackend")
    call products_real32()
    call products_real64()
    call products_complex32()
    call products_complex64()
    call formats()
    call copies()
    call sparse_product()
    call refusals()
    call folder_of_plans()
    call check(tarsiaDestroy(handle), "tarsiaDestroy")
    print '(i0, a)', checks, " checks"

contains

    subroutine check(status, where)
        integer(c_int), intent(in) :: status
        character(len=*), intent(in) :: where

        call tarsiaCheck(status, where)
        checks = checks + 1
    end subroutine check

    subroutine expect(holds, what)
        logical, intent(in) :: holds
        character(len=*), intent(in) :: what

        checks = checks + 1
        if (holds) return
        write (error_unit, '(2a)') "wrong: ", what
        error stop 1
    end subroutine expect

    ! Creates an analyzed SpMV plan of A; the caller destroys both.
    subroutine make_plan(A, data_type, compute_type, plan)
        type(c_ptr), intent(in) :: A
        integer(c_int), intent(in) :: data_type, compute_type
        type(c_ptr), intent(out) :: plan

        call check(tarsiaSpMV_createPlan(handle, plan, TARSIA_OPERATION_NON_TRANSPOSE, A, data_type, &
            data_type, compute_type, TARSIA_SPMV_ALG_DEFAULT), "createPlan")
        call check(tarsiaPlan_setValueUpdates(plan, 1), "setValueUpdates")
        call check(tarsiaPlan_analyze(handle, plan), "analyze")
    end subroutine make_plan

    ! Creates an SpMM plan of A.
    subroutine make_wide_plan(A, data_type, compute_type, plan)
        type(c_ptr), intent(in) :: A
        integer(c_int), intent(in) :: data_type, compute_type
        type(c_ptr), intent(out) :: plan

        call check(tarsiaSpMM_createPlan(handle, plan, TARSIA_OPERATION_NON_TRANSPOSE, &
            TARSIA_OPERATION_NON_TRANSPOSE, A, TARSIA_ORDER_COL, TARSIA_ORDER_COL, 2_c_int64_t, data_type, &
            data_type, compute_type, TARSIA_SPMM_ALG_DEFAULT), "createPlan")
        call check(tarsiaPlan_analyze(handle, plan), "analyze")
    end subroutine make_wide_plan

    subroutine products_real32()
        real(c_float), target :: values(3) = [1, 2, 3], x(3) = [1, 10, 100], y(2), z(2), changed(3) = [2, 4, 6]
        real(c_float), target :: wide_x(3, 2), wide_y(2, 2), wide_z(2, 2)
        real(c_float), parameter :: one = 1, two = 2, none = 0
        type(c_ptr) :: A, vec_x, vec_y, vec_z, mat_x, mat_y, mat_z, plan

        call check(tarsiaCreateCsr(A, m, n, offsets, columns, values, TARSIA_INDEX_BASE_ONE), "A")
        call check(tarsiaCreateConstDnVec(vec_x, x), "x")
        call check(tarsiaCreateDnVec(vec_y, y), "y")
        call check(tarsiaCreateDnVec(vec_z, z), "z")
        call make_plan(A, TARSIA_R_32F, TARSIA_COMPUTE_32F, plan)
        call check(tarsiaSpMV(handle, plan, one, vec_x, none, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [201, 30]) < exact), "real32: y")
        call check(tarsiaSpMV_into(handle, plan, two, vec_x, one, vec_y, vec_z), "tarsiaSpMV_into")
        call expect(all(abs(z - [603, 90]) < exact), "real32: z")
        call check(tarsiaPlan_updateValues(handle, plan, changed), "tarsiaPlan_updateValues")
        call check(tarsiaSpMV(handle, plan, one, vec_x, two, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [804, 120]) < exact), "real32: y of new values")
        call check(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, two, A, vec_x, none, vec_y, &
            TARSIA_COMPUTE_32F), "tarsiaSpMV_once")
        call expect(all(abs(y - [402, 60]) < exact), "real32: y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")

        wide_x(:, 1) = x
        wide_x(:, 2) = 2*x
        call check(tarsiaCreateConstDnMat(mat_x, wide_x), "X")
        call check(tarsiaCreateDnMat(mat_y, wide_y), "Y")
        call check(tarsiaCreateDnMat(mat_z, wide_z), "Z")
        call make_wide_plan(A, TARSIA_R_32F, TARSIA_COMPUTE_32F, plan)
        call check(tarsiaSpMM(handle, plan, one, mat_x, none, mat_y), "tarsiaSpMM")
        call expect(all(abs(wide_y - reshape([201, 30, 402, 60], [2, 2])) < exact), "real32: Y")
        call check(tarsiaSpMM_into(handle, plan, one, mat_x, one, mat_y, mat_z), "tarsiaSpMM_into")
        call expect(all(abs(wide_z - 2*wide_y) < exact), "real32: Z")
        call check(tarsiaSpMM_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE, &
            two, A, mat_x, none, mat_y, TARSIA_COMPUTE_32F), "tarsiaSpMM_once")
        call expect(all(abs(wide_y - wide_z) < exact), "real32: Y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")
        call check(tarsiaDestroyDnMat(mat_x), "X")
        call check(tarsiaDestroyDnMat(mat_y), "Y")
        call check(tarsiaDestroyDnMat(mat_z), "Z")
        call check(tarsiaDestroyDnVec(vec_x), "x")
        call check(tarsiaDestroyDnVec(vec_y), "y")
        call check(tarsiaDestroyDnVec(vec_z), "z")
        call check(tarsiaDestroySpMat(A), "A")
    end subroutine products_real32

    subroutine products_real64()
        real(c_double), target :: values(3) = [1, 2, 3], x(3) = [1, 10, 100], y(2), z(2), changed(3) = [2, 4, 6]
        real(c_double), target :: wide_x(3, 2), wide_y(2, 2), wide_z(2, 2)
        real(c_double), parameter :: one = 1, two = 2, none = 0
        type(c_ptr) :: A, vec_x, vec_y, vec_z, mat_x, mat_y, mat_z, plan

        call check(tarsiaCreateCsr(A, m, n, wide_offsets, wide_columns, values, TARSIA_INDEX_BASE_ONE), "A")
        call check(tarsiaCreateConstDnVec(vec_x, x), "x")
        call check(tarsiaCreateDnVec(vec_y, y), "y")
        call check(tarsiaCreateDnVec(vec_z, z), "z")
        call make_plan(A, TARSIA_R_64F, TARSIA_COMPUTE_64F, plan)
        call check(tarsiaSpMV(handle, plan, one, vec_x, none, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [201, 30]) < exact), "real64: y")
        call check(tarsiaSpMV_into(handle, plan, two, vec_x, one, vec_y, vec_z), "tarsiaSpMV_into")
        call expect(all(abs(z - [603, 90]) < exact), "real64: z")
        call check(tarsiaPlan_updateValues(handle, plan, changed), "tarsiaPlan_updateValues")
        call check(tarsiaSpMV(handle, plan, one, vec_x, two, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [804, 120]) < exact), "real64: y of new values")
        call check(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, two, A, vec_x, none, vec_y, &
            TARSIA_COMPUTE_64F), "tarsiaSpMV_once")
        call expect(all(abs(y - [402, 60]) < exact), "real64: y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")

        wide_x(:, 1) = x
        wide_x(:, 2) = 2*x
        call check(tarsiaCreateConstDnMat(mat_x, wide_x), "X")
        call check(tarsiaCreateDnMat(mat_y, wide_y), "Y")
        call check(tarsiaCreateDnMat(mat_z, wide_z), "Z")
        call make_wide_plan(A, TARSIA_R_64F, TARSIA_COMPUTE_64F, plan)
        call check(tarsiaSpMM(handle, plan, one, mat_x, none, mat_y), "tarsiaSpMM")
        call expect(all(abs(wide_y - reshape([201, 30, 402, 60], [2, 2])) < exact), "real64: Y")
        call check(tarsiaSpMM_into(handle, plan, one, mat_x, one, mat_y, mat_z), "tarsiaSpMM_into")
        call expect(all(abs(wide_z - 2*wide_y) < exact), "real64: Z")
        call check(tarsiaSpMM_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE, &
            two, A, mat_x, none, mat_y, TARSIA_COMPUTE_64F), "tarsiaSpMM_once")
        call expect(all(abs(wide_y - wide_z) < exact), "real64: Y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")
        call check(tarsiaDestroyDnMat(mat_x), "X")
        call check(tarsiaDestroyDnMat(mat_y), "Y")
        call check(tarsiaDestroyDnMat(mat_z), "Z")
        call check(tarsiaDestroyDnVec(vec_x), "x")
        call check(tarsiaDestroyDnVec(vec_y), "y")
        call check(tarsiaDestroyDnVec(vec_z), "z")
        call check(tarsiaDestroySpMat(A), "A")
    end subroutine products_real64

    subroutine products_complex32()
        complex(c_float_complex), target :: values(3) = [1, 2, 3], x(3) = [1, 10, 100], y(2), z(2), changed(3) = [2, 4, 6]
        complex(c_float_complex), target :: wide_x(3, 2), wide_y(2, 2), wide_z(2, 2)
        complex(c_float_complex), parameter :: one = 1, two = 2, none = 0
        type(c_ptr) :: A, vec_x, vec_y, vec_z, mat_x, mat_y, mat_z, plan

        call check(tarsiaCreateCsr(A, m, n, wide_offsets, wide_columns, values, TARSIA_INDEX_BASE_ONE), "A")
        call check(tarsiaCreateConstDnVec(vec_x, x), "x")
        call check(tarsiaCreateDnVec(vec_y, y), "y")
        call check(tarsiaCreateDnVec(vec_z, z), "z")
        call make_plan(A, TARSIA_C_32F, TARSIA_COMPUTE_C_32F, plan)
        call check(tarsiaSpMV(handle, plan, one, vec_x, none, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [201, 30]) < exact), "complex32: y")
        call check(tarsiaSpMV_into(handle, plan, two, vec_x, one, vec_y, vec_z), "tarsiaSpMV_into")
        call expect(all(abs(z - [603, 90]) < exact), "complex32: z")
        call check(tarsiaPlan_updateValues(handle, plan, changed), "tarsiaPlan_updateValues")
        call check(tarsiaSpMV(handle, plan, one, vec_x, two, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [804, 120]) < exact), "complex32: y of new values")
        call check(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, two, A, vec_x, none, vec_y, &
            TARSIA_COMPUTE_C_32F), "tarsiaSpMV_once")
        call expect(all(abs(y - [402, 60]) < exact), "complex32: y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")

        wide_x(:, 1) = x
        wide_x(:, 2) = 2*x
        call check(tarsiaCreateConstDnMat(mat_x, wide_x), "X")
        call check(tarsiaCreateDnMat(mat_y, wide_y), "Y")
        call check(tarsiaCreateDnMat(mat_z, wide_z), "Z")
        call make_wide_plan(A, TARSIA_C_32F, TARSIA_COMPUTE_C_32F, plan)
        call check(tarsiaSpMM(handle, plan, one, mat_x, none, mat_y), "tarsiaSpMM")
        call expect(all(abs(wide_y - reshape([201, 30, 402, 60], [2, 2])) < exact), "complex32: Y")
        call check(tarsiaSpMM_into(handle, plan, one, mat_x, one, mat_y, mat_z), "tarsiaSpMM_into")
        call expect(all(abs(wide_z - 2*wide_y) < exact), "complex32: Z")
        call check(tarsiaSpMM_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE, &
            two, A, mat_x, none, mat_y, TARSIA_COMPUTE_C_32F), "tarsiaSpMM_once")
        call expect(all(abs(wide_y - wide_z) < exact), "complex32: Y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")
        call check(tarsiaDestroyDnMat(mat_x), "X")
        call check(tarsiaDestroyDnMat(mat_y), "Y")
        call check(tarsiaDestroyDnMat(mat_z), "Z")
        call check(tarsiaDestroyDnVec(vec_x), "x")
        call check(tarsiaDestroyDnVec(vec_y), "y")
        call check(tarsiaDestroyDnVec(vec_z), "z")
        call check(tarsiaDestroySpMat(A), "A")
    end subroutine products_complex32

    subroutine products_complex64()
        complex(c_double_complex), target :: values(3) = [1, 2, 3], x(3) = [1, 10, 100], y(2), z(2), changed(3) = [2, 4, 6]
        complex(c_double_complex), target :: wide_x(3, 2), wide_y(2, 2), wide_z(2, 2)
        complex(c_double_complex), parameter :: one = 1, two = 2, none = 0
        type(c_ptr) :: A, vec_x, vec_y, vec_z, mat_x, mat_y, mat_z, plan

        call check(tarsiaCreateCsr(A, m, n, offsets, columns, values, TARSIA_INDEX_BASE_ONE), "A")
        call check(tarsiaCreateConstDnVec(vec_x, x), "x")
        call check(tarsiaCreateDnVec(vec_y, y), "y")
        call check(tarsiaCreateDnVec(vec_z, z), "z")
        call make_plan(A, TARSIA_C_64F, TARSIA_COMPUTE_C_64F, plan)
        call check(tarsiaSpMV(handle, plan, one, vec_x, none, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [201, 30]) < exact), "complex64: y")
        call check(tarsiaSpMV_into(handle, plan, two, vec_x, one, vec_y, vec_z), "tarsiaSpMV_into")
        call expect(all(abs(z - [603, 90]) < exact), "complex64: z")
        call check(tarsiaPlan_updateValues(handle, plan, changed), "tarsiaPlan_updateValues")
        call check(tarsiaSpMV(handle, plan, one, vec_x, two, vec_y), "tarsiaSpMV")
        call expect(all(abs(y - [804, 120]) < exact), "complex64: y of new values")
        call check(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, two, A, vec_x, none, vec_y, &
            TARSIA_COMPUTE_C_64F), "tarsiaSpMV_once")
        call expect(all(abs(y - [402, 60]) < exact), "complex64: y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")

        wide_x(:, 1) = x
        wide_x(:, 2) = 2*x
        call check(tarsiaCreateConstDnMat(mat_x, wide_x), "X")
        call check(tarsiaCreateDnMat(mat_y, wide_y), "Y")
        call check(tarsiaCreateDnMat(mat_z, wide_z), "Z")
        call make_wide_plan(A, TARSIA_C_64F, TARSIA_COMPUTE_C_64F, plan)
        call check(tarsiaSpMM(handle, plan, one, mat_x, none, mat_y), "tarsiaSpMM")
        call expect(all(abs(wide_y - reshape([201, 30, 402, 60], [2, 2])) < exact), "complex64: Y")
        call check(tarsiaSpMM_into(handle, plan, one, mat_x, one, mat_y, mat_z), "tarsiaSpMM_into")
        call expect(all(abs(wide_z - 2*wide_y) < exact), "complex64: Z")
        call check(tarsiaSpMM_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE, &
            two, A, mat_x, none, mat_y, TARSIA_COMPUTE_C_64F), "tarsiaSpMM_once")
        call expect(all(abs(wide_y - wide_z) < exact), "complex64: Y at once")
        call check(tarsiaPlan_destroy(plan), "destroy")
        call check(tarsiaDestroyDnMat(mat_x), "X")
        call check(tarsiaDestroyDnMat(mat_y), "Y")
        call check(tarsiaDestroyDnMat(mat_z), "Z")
        call check(tarsiaDestroyDnVec(vec_x), "x")
        call check(tarsiaDestroyDnVec(vec_y), "y")
        call check(tarsiaDestroyDnVec(vec_z), "z")
        call check(tarsiaDestroySpMat(A), "A")
    end subroutine products_complex64

    ! Descriptors of every format from arrays, also const ones and with indices of 8 bytes.
    subroutine formats()
        real(c_double), target :: values(3) = [1, 2, 3], by_columns(3) = [1, 3, 2]
        type(c_ptr) :: A
        integer(c_int64_t) :: found_rows, found_nnz

        call check(tarsiaCreateCsc(A, m, n, column_offsets, row_indices, by_columns, &
            TARSIA_INDEX_BASE_ONE), "Csc")
        call expect_matrix(A, "Csc")
        call check(tarsiaCreateConstCsc(A, m, n, column_offsets, row_indices, by_columns, &
            TARSIA_INDEX_BASE_ONE), "ConstCsc")
        call expect_matrix(A, "ConstCsc")
        call check(tarsiaCreateCoo(A, m, n, rows, columns, values, TARSIA_INDEX_BASE_ONE), "Coo")
        call expect_matrix(A, "Coo")
        call check(tarsiaCreateConstCoo(A, m, n, rows, columns, values, TARSIA_INDEX_BASE_ONE), "ConstCoo")
        call expect_matrix(A, "ConstCoo")
        call check(tarsiaCreateConstCsr(A, m, n, wide_offsets, wide_columns, values, &
            TARSIA_INDEX_BASE_ONE), "ConstCsr")
        call check(tarsiaSpMatGetSize(A, rows=found_rows, nnz=found_nnz), "tarsiaSpMatGetSize")
        call expect(found_rows == m .and. found_nnz == 3, "size of ConstCsr")
        call expect_matrix(A, "ConstCsr")
    end subroutine formats

    ! Checks that A is the matrix above, and destroys it.
    subroutine expect_matrix(A, what)
        type(c_ptr), intent(in) :: A
        character(len=*), intent(in) :: what
        real(c_double), target :: x(3) = [1, 10, 100], y(2)
        type(c_ptr) :: vec_x, vec_y

        call check(tarsiaCreateConstDnVec(vec_x, x), "x")
        call check(tarsiaCreateDnVec(vec_y, y), "y")
        call check(tarsiaSpMV_once(handle, TARSIA_OPERATION_NON_TRANSPOSE, 1.0_c_double, A, vec_x, &
            0.0_c_double, vec_y, TARSIA_COMPUTE_64F), what)
        call expect(all(abs(y - [201, 30]) < exact), what)
        call check(tarsiaDestroyDnVec(vec_x), "x")
        call check(tarsiaDestroyDnVec(vec_y), "y")
        call check(tarsiaDestroySpMat(A), what)
    end subroutine expect_matrix

    ! Copies to the backend's memory and back: kinds, ranks, sections, empty arrays.
    subroutine copies()
        integer(c_int32_t) :: i32(2, 3), i32_back(2, 3)
        integer(c_int64_t) :: i64(4), i64_back(4)
        real(c_float) :: r32(4), r32_back(4)
        complex(c_double_complex) :: c64(2, 2), c64_back(2, 2)
        complex(c_float_complex) :: c32(6), c32_back(3)
        real(c_double) :: none(0)
        type(c_ptr) :: memory
        integer :: i

        call check(tarsiaMalloc(handle, memory, 256_c_size_t), "tarsiaMalloc")
        i32 = reshape([(i, i=1, 6)], [2, 3])
        call check(tarsiaMemcpyToDevice(handle, memory, i32), "int32")
        call check(tarsiaMemcpyToHost(handle, i32_back, memory), "int32")
        call expect(all(i32 == i32_back), "int32")
        i64 = 2_c_int64_t**40 + [1, 2, 3, 4]
        call check(tarsiaMemcpyToDevice(handle, memory, i64), "int64")
        call check(tarsiaMemcpyToHost(handle, i64_back, memory), "int64")
        call expect(all(i64 == i64_back), "int64")
        r32 = [1.5, 2.5, 3.5, 4.5]
        call check(tarsiaMemcpyToDevice(handle, memory, r32), "real32")
        call check(tarsiaMemcpyToHost(handle, r32_back, memory), "real32")
        call expect(all(abs(r32 - r32_back) < exact), "real32")
        c64 = reshape([(cmplx(i, -i, c_double_complex), i=1, 4)], [2, 2])
        call check(tarsiaMemcpyToDevice(handle, memory, c64), "complex64")
        call check(tarsiaMemcpyToHost(handle, c64_back, memory), "complex64")
        call expect(all(abs(c64 - c64_back) < exact), "complex64")
        ! A section that is not contiguous is copied on the way.
        c32 = [(cmplx(i, 2*i, c_float_complex), i=1, 6)]
        c32_back = 0
        call check(tarsiaMemcpyToDevice(handle, memory, c32(1:6:2)), "complex32")
        call check(tarsiaMemcpyToHost(handle, c32_back, memory), "complex32")
        call expect(all(abs(c32(1:6:2) - c32_back) < exact), "complex32")
        call check(tarsiaMemcpyToDevice(handle, c_null_ptr, none), "no elements")
        call check(tarsiaMemcpyToHost(handle, none, c_null_ptr), "no elements")
        call check(tarsiaFree(handle, memory), "tarsiaFree")
    end subroutine copies

    ! C = alpha A A' for the matrix A above: [[5, 0], [0, 9]] by its entries.
    subroutine sparse_product()
        real(c_double), target :: values(3) = [1, 2, 3], c_values(2)
        integer(c_int32_t), target :: c_offsets(3), c_columns(2)
        type(c_ptr) :: A, C, plan
        integer(c_int64_t) :: nnz

        call check(tarsiaCreateCsr(A, m, n, offsets, columns, values, TARSIA_INDEX_BASE_ONE), "A")
        call check(tarsiaSpGEMM_createPlan(handle, plan, TARSIA_OPERATION_NON_TRANSPOSE, &
            TARSIA_OPERATION_TRANSPOSE, A, A, TARSIA_COMPUTE_64F, TARSIA_SPGEMM_ALG_DEFAULT), "createPlan")
        call check(tarsiaPlan_analyze(handle, plan), "analyze")
        call check(tarsiaSpGEMM_symbolic(handle, plan, nnz), "symbolic")
        call expect(nnz == 2, "entries of C")
        call check(tarsiaCreateCsr(C, m, m, c_offsets, c_columns, c_values, TARSIA_INDEX_BASE_ONE), "C")
        call check(tarsiaSpGEMM_numeric(handle, plan, 0.5_c_double, C), "numeric")
        call expect(all(c_offsets == [1, 2, 3]) .and. all(c_columns == [1, 2]), "pattern of C")
        call expect(all(abs(c_values - [2.5_c_double, 4.5_c_double]) < exact), "values of C")
        call check(tarsiaPlan_destroy(plan), "destroy")
        call check(tarsiaDestroySpMat(A), "A")
        call check(tarsiaDestroySpMat(C), "C")
    end subroutine sparse_product

    ! Arrays that cannot be borrowed, and sizes that do not fit.
    subroutine refusals()
        real(c_double), target :: values(6) = 1, wide(4, 3) = 1
        type(c_ptr) :: object
        integer(c_int64_t) :: ld, found_rows

        call refused(tarsiaCreateCsr(object, m, n, offsets, columns, values(1:6:2), &
            TARSIA_INDEX_BASE_ONE), object, "values: it is not contiguous")
        call refused(tarsiaCreateCsr(object, m, n, offsets, columns, values(1:2), &
            TARSIA_INDEX_BASE_ONE), object, "colInd: has the size 3, expected size(values) = 2")
        call refused(tarsiaCreateCsr(object, 3_c_int64_t, n, offsets, columns, values(1:3), &
            TARSIA_INDEX_BASE_ONE), object, "rowOffsets: has the size 3, expected rows + 1 = 4")
        call refused(tarsiaCreateCsc(object, m, m, column_offsets, row_indices, values(1:3), &
            TARSIA_INDEX_BASE_ONE), object, "colOffsets: has the size 4, expected cols + 1 = 3")
        call refused(tarsiaCreateCoo(object, m, n, rows(1:2), columns, values(1:3), &
            TARSIA_INDEX_BASE_ONE), object, "rowInd: has the size 2, expected size(values) = 3")
        call refused(tarsiaCreateDnVec(object, values(1:6:2)), object, "values: it is not contiguous")
        call refused(tarsiaCreateDnMat(object, wide(1:2, :)), object, "values: it is not contiguous")
        call later_refusals()
        ! A part of the rows is described by its number of rows.
        call check(tarsiaCreateDnMat(object, wide, rows=2_c_int64_t), "two of four rows")
        call check(tarsiaDnMatGet(object, rows=found_rows, ld=ld), "tarsiaDnMatGet")
        call expect(found_rows == 2 .and. ld == 4, "two of four rows")
        call check(tarsiaDestroyDnMat(object), "two of four rows")
    end subroutine refusals

    subroutine refused(status, object, why)
        integer(c_int), intent(in) :: status
        type(c_ptr), intent(in) :: object
        character(len=*), intent(in) :: why

        call expect(status == TARSIA_STATUS_INVALID_VALUE .and. .not. c_associated(object), why)
        call expect(index(tarsiaLastMessage(), why) == 1, tarsiaLastMessage())
    end subroutine refused

    ! The text is that of the last failure, whoever refused the call.
    subroutine later_refusals()
        real(c_double), target :: values(3) = 1
        integer(c_int32_t), target :: outside(3) = [1, 4, 2]
        integer(c_int) :: sorted, unique
        type(c_ptr) :: object

        call expect(tarsiaSetPlanCache(handle, "") == TARSIA_STATUS_INVALID_VALUE, "an empty path")
        call expect(index(tarsiaLastMessage(), "folder") > 0, "the library's text")
        call refused(tarsiaCreateDnVec(object, values(1:3:2)), object, "values: it is not contiguous")
        call expect(tarsiaSetPlanCache(handle, "") == TARSIA_STATUS_INVALID_VALUE, "an empty path")
        call expect(index(tarsiaLastMessage(), "folder") > 0, "the same text of the library again")
        ! Positions count from 0 in a text, which says so.
        call check(tarsiaCreateCsr(object, m, n, offsets, outside, values, TARSIA_INDEX_BASE_ONE), "outside")
        call expect(tarsiaCheckSpMat(handle, object, sorted, unique) == TARSIA_STATUS_INVALID_VALUE, "outside")
        call expect(index(tarsiaLastMessage(), "colInd[1] = 4 is outside [1, 3] (positions count from 0)") > 0, &
            tarsiaLastMessage())
        call check(tarsiaDestroySpMat(object), "outside")
    end subroutine later_refusals

    ! A path is a string, with blanks at its end or without.
    subroutine folder_of_plans()
        character(len=500) :: folder
        logical :: is_there

        call get_command_argument(1, folder)
        folder = trim(folder)//"/made"
        call check(tarsiaSetPlanCache(handle, folder), "tarsiaSetPlanCache")
        inquire (file=trim(folder)//"/.", exist=is_there)
        call expect(is_there, "the folder")
        call check(tarsiaSetPlanCache(handle, c_null_ptr), "tarsiaSetPlanCache")
        call expect(tarsiaSetPlanCache(handle, "") == TARSIA_STATUS_INVALID_VALUE, "an empty path")
        call expect(index(tarsiaLastMessage(), "folder") > 0, "the text of an empty path")
    end subroutine folder_of_plans

end program forms
