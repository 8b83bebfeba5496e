// SPDX-License-Identifier: MIT OR Apache-2.0
//
// C++ interface of tarsia: objects that own what the library made, exceptions, arrays of which
// types and sizes are known. Header-only, from C++17 on, over the C functions of tarsia.h, which
// say what each call computes, reads, writes, blocks and allocates; here stands what C++ adds.
//
//     tarsia::Handle handle; // a GPU where there is one, else the CPU
//     tarsia::DeviceBuffer dOffsets(handle, offsets), dColumns(handle, columns);
//     tarsia::DeviceBuffer dValues(handle, values), dX(handle, x), dY(handle, y);
//     auto A = tarsia::ConstSparseMatrix::csr(m, n, dOffsets, dColumns, dValues);
//     tarsia::ConstDenseVector vecX(dX);
//     tarsia::DenseVector vecY(dY);
//     tarsia::SpMVPlan plan(handle, TARSIA_OPERATION_NON_TRANSPOSE, A, vecX, vecY);
//     plan.analyze(handle);                       // once
//     plan.execute(handle, 1.0, vecX, 0.0, vecY); // many times
//     dY.copyTo(y);                               // waits for the product
//
// Errors: a C function that fails throws tarsia::Error, which has the name of the function, its
// status and the library's text on what was wrong. Destructors throw nothing and ignore the
// status; destroy() of a handle or a plan is the call that reports it.
//
// Objects are moved, not copied. One that was moved from is empty, as after destroy(): get() is a
// null pointer, and other calls with it throw, as the C functions refuse NULL.
//
// What must outlive what, as in tarsia.h:
//
// - Arrays: a descriptor (SparseMatrix, DenseVector, DenseMatrix) has the addresses of the caller's
//   arrays and copies nothing, as std::span. The arrays of a plan's sparse matrices live, with an
//   unchanged pattern, as long as the plan (with setSelfContained(true) until it is analyzed);
//   those of dense operands until the product is done.
// - Descriptors: a plan copies their fields, so that they may end before it. Whether a descriptor
//   is const says nothing of its arrays: those of SparseMatrix, DenseVector and DenseMatrix may be
//   written, those of the types with Const in their names are only read.
// - Handles: a plan may outlive the handle that it was made with and be executed with another. A
//   DeviceBuffer must end before the handle that it was made with, else its memory is not freed.
// - What setStream, setAllocator and setWorkspace take, as tarsiaSetStream and so on say.
//
// execute(), executeInto() and numeric() allocate nothing beside what the C functions do. Threads:
// as in tarsia.h, one handle per concurrent stream; executing changes no plan.

#ifndef TARSIA_HPP
#define TARSIA_HPP

#if __cplusplus < 201703L
#error "tarsia.hpp needs C++17"
#endif

#include "tarsia/core.hpp"
#include "tarsia/handle.hpp"
#include "tarsia/matrices.hpp"
#include "tarsia/plans.hpp"

#undef TARSIA_HPP_CALL

#endif // TARSIA_HPP
