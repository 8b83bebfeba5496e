! SPDX-License-Identifier: MIT OR Apache-2.0
! Conjugate gradients for A x = b with the 7-point Laplacian of an n x n x n grid in Fortran: index
! base 1, one SpMV plan that is analyzed once and executed in every iteration.
!
! Tarsia multiplies sparse matrices; dot products and vector updates are not its work. Here they are
! array expressions on host copies, so that the example needs no other library and runs unchanged on
! every backend. On a GPU a real solver keeps all vectors there and takes them from a BLAS.
program cg
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    use tarsia
    implicit none

    integer(c_int32_t), parameter :: n = 16, rows = n**3, most = 7*rows
    real(c_double), parameter :: tolerance = 1.0e-10_c_double
    integer(c_int32_t) :: offsets(rows + 1), columns(most)
    real(c_double) :: values(most), p(rows), Ap(rows), x(rows), b(rows), r(rows), solution(rows)
    ! alpha and beta have the kind of the compute type.
    real(c_double), parameter :: one = 1, zero = 0
    real(c_double) :: rr, next, size_b, residual
    integer(c_int32_t) :: i, nnz
    integer :: iterations
    type(c_ptr) :: handle, matA, vecP, vecAp, plan
    type(c_ptr) :: dOffsets, dColumns, dValues, dP, dAp
    type(tarsiaPlanInfo_t) :: info

    call laplacian()
    solution = [(sin(0.9_c_double*i) + 0.3_c_double, i=1, rows)]
    b = product_with(solution)

    call tarsiaCheck(tarsiaCreate(handle), "tarsiaCreate")
    ! Arrays in the backend's memory. Copies take sizes and types from the arrays of Fortran.
    dOffsets = memory(c_sizeof(offsets))
    dColumns = memory(nnz*c_sizeof(columns(1)))
    dValues = memory(nnz*c_sizeof(values(1)))
    dP = memory(c_sizeof(p))
    dAp = memory(c_sizeof(Ap))
    call tarsiaCheck(tarsiaMemcpyToDevice(handle, dOffsets, offsets), "copy of offsets")
    call tarsiaCheck(tarsiaMemcpyToDevice(handle, dColumns, columns(1:nnz)), "copy of columns")
    call tarsiaCheck(tarsiaMemcpyToDevice(handle, dValues, values(1:nnz)), "copy of values")

    ! Dimensions are 64-bit integers, enums the parameters of the module.
    call tarsiaCheck(tarsiaCreateCsr(matA, int(rows, c_int64_t), int(rows, c_int64_t), &
        int(nnz, c_int64_t), dOffsets, dColumns, dValues, TARSIA_INDEX_32I, TARSIA_INDEX_32I, &
        TARSIA_INDEX_BASE_ONE, TARSIA_R_64F), "tarsiaCreateCsr")
    call tarsiaCheck(tarsiaCreateDnVec(vecP, int(rows, c_int64_t), dP, TARSIA_R_64F), "vecP")
    call tarsiaCheck(tarsiaCreateDnVec(vecAp, int(rows, c_int64_t), dAp, TARSIA_R_64F), "vecAp")
    call tarsiaCheck(tarsiaSpMV_createPlan(handle, plan, TARSIA_OPERATION_NON_TRANSPOSE, matA, &
        TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F, TARSIA_SPMV_ALG_DEFAULT), "createPlan")
    call tarsiaCheck(tarsiaPlan_analyze(handle, plan), "tarsiaPlan_analyze")
    call tarsiaCheck(tarsiaPlan_getInfo(plan, info), "tarsiaPlan_getInfo")
    print '(i0, a, i0, 2a)', rows, " unknowns, ", info%nnz, " stored entries, algorithm ", &
        tarsiaText(info%algorithmName)
    if (info%rows /= rows .or. info%nnz /= nnz) call failed("getInfo tells another matrix")

    x = 0
    r = b
    p = b
    rr = dot_product(r, r)
    size_b = sqrt(rr)
    iterations = 0
    do while (sqrt(rr) > tolerance*size_b .and. iterations < 20*n + 50)
        call tarsiaCheck(tarsiaMemcpyToDevice(handle, dP, p), "copy of p")
        call tarsiaCheck(tarsiaSpMV(handle, plan, one, vecP, zero, vecAp), "tarsiaSpMV")
        ! Waits for the product.
        call tarsiaCheck(tarsiaMemcpyToHost(handle, Ap, dAp), "copy of A p")
        associate (step => rr/dot_product(p, Ap))
            x = x + step*p
            r = r - step*Ap
        end associate
        next = dot_product(r, r)
        p = r + (next/rr)*p
        rr = next
        iterations = iterations + 1
    end do

    ! The residual that the iteration carries along may drift: compute it anew, with plain loops.
    residual = norm2(b - product_with(x))/size_b
    print '(i0, a, es9.2, a, es9.2)', iterations, " iterations, relative residual ", residual, &
        ", largest error of x ", maxval(abs(x - solution))

    call tarsiaCheck(tarsiaPlan_destroy(plan), "tarsiaPlan_destroy")
    call tarsiaCheck(tarsiaDestroyDnVec(vecAp), "tarsiaDestroyDnVec")
    call tarsiaCheck(tarsiaDestroyDnVec(vecP), "tarsiaDestroyDnVec")
    call tarsiaCheck(tarsiaDestroySpMat(matA), "tarsiaDestroySpMat")
    call tarsiaCheck(tarsiaFree(handle, dOffsets), "tarsiaFree")
    call tarsiaCheck(tarsiaFree(handle, dColumns), "tarsiaFree")
    call tarsiaCheck(tarsiaFree(handle, dValues), "tarsiaFree")
    call tarsiaCheck(tarsiaFree(handle, dP), "tarsiaFree")
    call tarsiaCheck(tarsiaFree(handle, dAp), "tarsiaFree")
    call tarsiaCheck(tarsiaDestroy(handle), "tarsiaDestroy")
    if (.not. residual <= 10*tolerance) call failed("no convergence")

contains

    subroutine failed(text)
        character(len=*), intent(in) :: text

        write (error_unit, '(a)') text
        error stop 1
    end subroutine failed

    ! bytes bytes of the backend's memory.
    function memory(bytes)
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr) :: memory

        call tarsiaCheck(tarsiaMalloc(handle, memory, bytes), "tarsiaMalloc")
    end function memory

    ! The matrix in CSR, base 1: offsets, columns, values, nnz.
    subroutine laplacian()
        integer(c_int32_t) :: i, j, k, row
        integer :: s
        logical :: inside(7)
        integer(c_int32_t), parameter :: step(7) = [-n*n, -n, -1, 0, 1, n, n*n]

        nnz = 0
        row = 0
        offsets(1) = 1
        do k = 1, n
            do j = 1, n
                do i = 1, n
                    row = row + 1
                    inside = [k > 1, j > 1, i > 1, .true., i < n, j < n, k < n]
                    do s = 1, 7
                        if (.not. inside(s)) cycle
                        nnz = nnz + 1
                        columns(nnz) = row + step(s)
                        values(nnz) = merge(6.0_c_double, -1.0_c_double, s == 4)
                    end do
                    offsets(row + 1) = nnz + 1
                end do
            end do
        end do
    end subroutine laplacian

    ! A v with plain loops.
    function product_with(v) result(Av)
        real(c_double), intent(in) :: v(:)
        real(c_double) :: Av(size(v))
        integer :: row

        do row = 1, size(v)
            associate (first => offsets(row), last => offsets(row + 1) - 1)
                Av(row) = sum(values(first:last)*v(columns(first:last)))
            end associate
        end do
    end function product_with

end program cg
