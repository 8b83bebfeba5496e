// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A part of tarsia.hpp, which programs include: scalars, plans, and products without a plan.

#ifndef TARSIA_HPP_PLANS
#define TARSIA_HPP_PLANS

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include "matrices.hpp"

namespace tarsia {

// ---- alpha and beta ----

// alpha or beta by value: any real number or std::complex, converted to the compute type of the
// call, which reads it before it returns. One with an imaginary part is refused where the compute
// type is real.
class Scalar {
  public:
    template <class T,
              class = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>>>
    Scalar(T value) noexcept : value_(static_cast<double>(value)) {}
    template <class T>
    Scalar(std::complex<T> value) noexcept
        : value_(static_cast<double>(value.real()), static_cast<double>(value.imag())) {}

    std::complex<double> value() const noexcept { return value_; }

  private:
    std::complex<double> value_;
};

// alpha or beta in the backend's memory, which the operation reads when it runs: one element of the
// compute type, which lives until then.
class DeviceScalar {
  public:
    template <class T>
    explicit DeviceScalar(const T *value) noexcept : value_(value), type_(dataTypeOf<T>) {}

    const void *data() const noexcept { return value_; }
    tarsiaDataType_t type() const noexcept { return type_; }

  private:
    const void *value_;
    tarsiaDataType_t type_;
};

namespace detail {

// A handle's pointer mode as a call needs it, and afterwards as it was.
class PointerMode {
  public:
    PointerMode(const char *function, tarsiaHandle_t handle, tarsiaPointerMode_t mode)
        : handle_(handle), before_(mode) {
        check(tarsiaGetPointerMode(handle, &before_), function);
        changed_ = before_ != mode;
        if (changed_)
            check(tarsiaSetPointerMode(handle, mode), function);
    }
    PointerMode(const PointerMode &) = delete;
    PointerMode &operator=(const PointerMode &) = delete;
    ~PointerMode() {
        if (changed_)
            static_cast<void>(tarsiaSetPointerMode(handle_, before_));
    }

  private:
    tarsiaHandle_t handle_;
    tarsiaPointerMode_t before_;
    bool changed_ = false;
};

// alpha or beta as a C function takes it.
class Coefficient {
  public:
    static constexpr tarsiaPointerMode_t modeOf(const Scalar &) { return TARSIA_POINTER_MODE_HOST; }
    static constexpr tarsiaPointerMode_t modeOf(const DeviceScalar &) {
        return TARSIA_POINTER_MODE_DEVICE;
    }

    Coefficient(const char *function, const char *name, const Scalar &scalar,
                tarsiaComputeType_t computeType)
        : data_(bytes_) {
        const std::complex<double> value = scalar.value();
        const auto type = scalarTypeOf(computeType);
        if ((type == TARSIA_R_32F || type == TARSIA_R_64F) && value.imag() != 0.0)
            refuse(function,
                   std::string(name) + " has an imaginary part, the compute type is real");
        if (type == TARSIA_R_32F)
            store(static_cast<float>(value.real()));
        else if (type == TARSIA_R_64F)
            store(value.real());
        else if (type == TARSIA_C_32F)
            store(std::complex<float>(value));
        else
            store(value);
    }
    Coefficient(const char *function, const char *name, const DeviceScalar &scalar,
                tarsiaComputeType_t computeType)
        : data_(scalar.data()) {
        expectType(function, name, scalar.type(), scalarTypeOf(computeType));
    }
    Coefficient(const Coefficient &) = delete;
    Coefficient &operator=(const Coefficient &) = delete;

    const void *data() const noexcept { return data_; }

  private:
    template <class T> void store(const T &value) { std::memcpy(bytes_, &value, sizeof value); }

    alignas(16) unsigned char bytes_[16] = {};
    const void *data_;
};

// Calls a C function with alpha and beta of one kind: call(alpha, beta) returns its status.
template <class S, class Call>
void scaled(const char *function, const Handle &handle, tarsiaComputeType_t computeType,
            const S &alpha, const S &beta, const Call &call) {
    const Coefficient a(function, "alpha", alpha, computeType);
    const Coefficient b(function, "beta", beta, computeType);
    const PointerMode mode(function, handle.get(), Coefficient::modeOf(alpha));
    check(call(a.data(), b.data()), function);
}

} // namespace detail

// ---- plans ----

// What the plans of all products have in common. The setters come before analyze(); a plan is
// analyzed once and executed many times. tarsia.h says what each of them means.
class Plan {
  public:
    // For calls of C functions; the plan stays this object's.
    tarsiaPlan_t get() const noexcept { return raw_.get(); }
    // Destroys the plan now, and throws if that cannot be done (see tarsiaPlan_destroy).
    void destroy() { check(raw_.destroy(), "tarsiaPlan_destroy"); }
    // The type of sums, alpha and beta.
    tarsiaComputeType_t computeType() const noexcept { return computeType_; }

    void setEffort(tarsiaEffort_t effort) { TARSIA_HPP_CALL(tarsiaPlan_setEffort, get(), effort); }
    void setReorder(tarsiaReorder_t reorder) {
        TARSIA_HPP_CALL(tarsiaPlan_setReorder, get(), reorder);
    }
    void setValueUpdates(bool valueUpdates) {
        TARSIA_HPP_CALL(tarsiaPlan_setValueUpdates, get(), valueUpdates ? 1 : 0);
    }
    void setValuesInPlace(bool valuesInPlace) {
        TARSIA_HPP_CALL(tarsiaPlan_setValuesInPlace, get(), valuesInPlace ? 1 : 0);
    }
    void setSelfContained(bool selfContained) {
        TARSIA_HPP_CALL(tarsiaPlan_setSelfContained, get(), selfContained ? 1 : 0);
    }
    void setExpectedExecutes(std::int64_t executes) {
        TARSIA_HPP_CALL(tarsiaPlan_setExpectedExecutes, get(), executes);
    }
    void setMemoryLimit(std::size_t bytes) {
        TARSIA_HPP_CALL(tarsiaPlan_setMemoryLimit, get(), bytes);
    }

    // Validates the matrix, chooses, converts. Blocks.
    void analyze(const Handle &handle) { TARSIA_HPP_CALL(tarsiaPlan_analyze, handle.get(), get()); }
    // What analyze does for its handle: for every other one with which the plan is executed.
    // Blocks.
    void prepare(const Handle &handle) const {
        TARSIA_HPP_CALL(tarsiaPlan_prepare, handle.get(), get());
    }
    std::size_t workspaceSize(std::int64_t n = 1) const {
        std::size_t bytes = 0;
        TARSIA_HPP_CALL(tarsiaPlan_workspaceSize, get(), n, &bytes);
        return bytes;
    }
    // What the plan is and what analysis chose; its character fields are C strings.
    tarsiaPlanInfo_t info() const {
        tarsiaPlanInfo_t info{};
        info.structSize = sizeof info;
        TARSIA_HPP_CALL(tarsiaPlan_getInfo, get(), &info);
        return info;
    }

    // New values of A for the same pattern: as many, and of the type, as A's array has, in the
    // backend's memory. They live until they are replaced, or as long as the plan.
    template <class Range, class = detail::IfArray<Range>>
    void updateValues(const Handle &handle, Range &&values) {
        detail::expectBorrowed<Range>();
        const char *const function = "tarsia::Plan::updateValues";
        detail::expectLength(function, "values", detail::length(values), "A's", valuesOfA_.count);
        updateValues(handle, std::data(values));
    }
    template <class T> void updateValues(const Handle &handle, const T *values) {
        detail::expectType("tarsia::Plan::updateValues", "values", dataTypeOf<T>, valuesOfA_.type);
        TARSIA_HPP_CALL(tarsiaPlan_updateValues, handle.get(), get(), values);
    }

    // What analysis has decided, to be kept and given to a plan of the same problem. Both block.
    std::vector<std::byte> decisions(const Handle &handle) const {
        std::size_t bytes = 0;
        TARSIA_HPP_CALL(tarsiaPlan_getDecisions, handle.get(), get(), nullptr, 0, &bytes);
        std::vector<std::byte> decisions(bytes);
        TARSIA_HPP_CALL(tarsiaPlan_getDecisions, handle.get(), get(), decisions.data(), bytes,
                        &bytes);
        decisions.resize(bytes);
        return decisions;
    }
    // An empty array takes back what was given before.
    void setDecisions(const Handle &handle, span<const std::byte> decisions) {
        TARSIA_HPP_CALL(tarsiaPlan_setDecisions, handle.get(), get(),
                        decisions.empty() ? nullptr : decisions.data(), decisions.size());
    }

  protected:
    // Of the value array of a sparse matrix.
    struct Values {
        explicit Values(const AnySparseMatrix &A) : count(A.nnz()), type(A.valueType()) {}
        Values() = default;
        std::int64_t count = 0;
        tarsiaDataType_t type = TARSIA_R_32F;
    };

    Plan() noexcept = default;
    Plan(Plan &&) noexcept = default;
    Plan &operator=(Plan &&) noexcept = default;
    ~Plan() = default;
    Plan(const AnySparseMatrix &A, tarsiaComputeType_t computeType)
        : computeType_(computeType), valuesOfA_(A) {}
    void own(tarsiaPlan_t raw) noexcept { raw_ = Raw(raw); }
    const Values &valuesOfA() const noexcept { return valuesOfA_; }

  private:
    using Raw = detail::Owner<tarsiaPlan_t, tarsiaPlan_destroy>;

    Raw raw_;
    tarsiaComputeType_t computeType_ = TARSIA_COMPUTE_32F;
    Values valuesOfA_;
};

// y = alpha * op(A) * x + beta * y, A sparse, x and y dense vectors.
class SpMVPlan : public Plan {
  public:
    // Empty, for an assignment later.
    SpMVPlan() noexcept = default;
    // For vectors of the types of these two, which stand for all that the plan is executed with.
    SpMVPlan(const Handle &handle, tarsiaOperation_t opA, const AnySparseMatrix &A,
             const AnyDenseVector &x, const AnyDenseVector &y,
             tarsiaSpMVAlg_t alg = TARSIA_SPMV_ALG_DEFAULT)
        : SpMVPlan(handle, opA, A, x.valueType(), y.valueType(),
                   computeTypeOf({A.valueType(), x.valueType(), y.valueType()}), alg) {}
    // With types by name: dataTypeOf<float>, TARSIA_COMPUTE_32F_PEDANTIC.
    SpMVPlan(const Handle &handle, tarsiaOperation_t opA, const AnySparseMatrix &A,
             tarsiaDataType_t xType, tarsiaDataType_t yType, tarsiaComputeType_t computeType,
             tarsiaSpMVAlg_t alg = TARSIA_SPMV_ALG_DEFAULT)
        : Plan(A, computeType) {
        tarsiaPlan_t raw = nullptr;
        TARSIA_HPP_CALL(tarsiaSpMV_createPlan, handle.get(), &raw, opA, A.get(), xType, yType,
                        computeType, alg);
        own(raw);
    }

    void execute(const Handle &handle, Scalar alpha, const AnyDenseVector &x, Scalar beta,
                 const DenseVector &y) const {
        run(handle, alpha, x, beta, y);
    }
    void execute(const Handle &handle, DeviceScalar alpha, const AnyDenseVector &x,
                 DeviceScalar beta, const DenseVector &y) const {
        run(handle, alpha, x, beta, y);
    }
    // z = alpha * op(A) * x + beta * y.
    void executeInto(const Handle &handle, Scalar alpha, const AnyDenseVector &x, Scalar beta,
                     const AnyDenseVector &y, const DenseVector &z) const {
        runInto(handle, alpha, x, beta, y, z);
    }
    void executeInto(const Handle &handle, DeviceScalar alpha, const AnyDenseVector &x,
                     DeviceScalar beta, const AnyDenseVector &y, const DenseVector &z) const {
        runInto(handle, alpha, x, beta, y, z);
    }

  private:
    template <class S>
    void run(const Handle &handle, const S &alpha, const AnyDenseVector &x, const S &beta,
             const DenseVector &y) const {
        const auto call = [&](const void *a, const void *b) {
            return tarsiaSpMV(handle.get(), get(), a, x.get(), b, y.get());
        };
        detail::scaled("tarsiaSpMV", handle, computeType(), alpha, beta, call);
    }
    template <class S>
    void runInto(const Handle &handle, const S &alpha, const AnyDenseVector &x, const S &beta,
                 const AnyDenseVector &y, const DenseVector &z) const {
        const auto call = [&](const void *a, const void *b) {
            return tarsiaSpMV_into(handle.get(), get(), a, x.get(), b, y.get(), z.get());
        };
        detail::scaled("tarsiaSpMV_into", handle, computeType(), alpha, beta, call);
    }
};

// C = alpha * op(A) * op(B) + beta * C, A sparse, B and C dense matrices.
class SpMMPlan : public Plan {
  public:
    // Empty, for an assignment later.
    SpMMPlan() noexcept = default;
    // For matrices of the types and orders of these two, and any number of columns; C's is what the
    // plan is made for.
    SpMMPlan(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB,
             const AnySparseMatrix &A, const AnyDenseMatrix &B, const AnyDenseMatrix &C,
             tarsiaSpMMAlg_t alg = TARSIA_SPMM_ALG_DEFAULT)
        : SpMMPlan(handle, opA, opB, A, B.order(), C.order(), C.cols(), B.valueType(),
                   C.valueType(), computeTypeOf({A.valueType(), B.valueType(), C.valueType()}),
                   alg) {}
    // With types by name: dataTypeOf<float>, TARSIA_COMPUTE_TF32.
    SpMMPlan(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB,
             const AnySparseMatrix &A, tarsiaOrder_t bOrder, tarsiaOrder_t cOrder,
             std::int64_t nHint, tarsiaDataType_t bType, tarsiaDataType_t cType,
             tarsiaComputeType_t computeType, tarsiaSpMMAlg_t alg = TARSIA_SPMM_ALG_DEFAULT)
        : Plan(A, computeType) {
        tarsiaPlan_t raw = nullptr;
        TARSIA_HPP_CALL(tarsiaSpMM_createPlan, handle.get(), &raw, opA, opB, A.get(), bOrder,
                        cOrder, nHint, bType, cType, computeType, alg);
        own(raw);
    }

    // Blocks of TARSIA_SPMM_ALG_SMAT.
    void setBlockDims(std::int64_t rowBlockDim, std::int64_t colBlockDim) {
        TARSIA_HPP_CALL(tarsiaPlan_setBlockDims, get(), rowBlockDim, colBlockDim);
    }

    void execute(const Handle &handle, Scalar alpha, const AnyDenseMatrix &B, Scalar beta,
                 const DenseMatrix &C) const {
        run(handle, alpha, B, beta, C);
    }
    void execute(const Handle &handle, DeviceScalar alpha, const AnyDenseMatrix &B,
                 DeviceScalar beta, const DenseMatrix &C) const {
        run(handle, alpha, B, beta, C);
    }
    // D = alpha * op(A) * op(B) + beta * C.
    void executeInto(const Handle &handle, Scalar alpha, const AnyDenseMatrix &B, Scalar beta,
                     const AnyDenseMatrix &C, const DenseMatrix &D) const {
        runInto(handle, alpha, B, beta, C, D);
    }
    void executeInto(const Handle &handle, DeviceScalar alpha, const AnyDenseMatrix &B,
                     DeviceScalar beta, const AnyDenseMatrix &C, const DenseMatrix &D) const {
        runInto(handle, alpha, B, beta, C, D);
    }

  private:
    template <class S>
    void run(const Handle &handle, const S &alpha, const AnyDenseMatrix &B, const S &beta,
             const DenseMatrix &C) const {
        const auto call = [&](const void *a, const void *b) {
            return tarsiaSpMM(handle.get(), get(), a, B.get(), b, C.get());
        };
        detail::scaled("tarsiaSpMM", handle, computeType(), alpha, beta, call);
    }
    template <class S>
    void runInto(const Handle &handle, const S &alpha, const AnyDenseMatrix &B, const S &beta,
                 const AnyDenseMatrix &C, const DenseMatrix &D) const {
        const auto call = [&](const void *a, const void *b) {
            return tarsiaSpMM_into(handle.get(), get(), a, B.get(), b, C.get(), D.get());
        };
        detail::scaled("tarsiaSpMM_into", handle, computeType(), alpha, beta, call);
    }
};

// C = alpha * op(A) * op(B), all three sparse. After analyze(): symbolic() tells C's entries, the
// caller makes C's arrays and its descriptor, numeric() fills them, as often as wanted.
class SpGEMMPlan : public Plan {
  public:
    // Empty, for an assignment later.
    SpGEMMPlan() noexcept = default;
    // C's values have the compute type, here that of A's and B's (32 bits for those of 16).
    SpGEMMPlan(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB,
               const AnySparseMatrix &A, const AnySparseMatrix &B,
               tarsiaSpGEMMAlg_t alg = TARSIA_SPGEMM_ALG_DEFAULT)
        : SpGEMMPlan(handle, opA, opB, A, B, computeTypeOf({A.valueType(), B.valueType()}), alg) {}
    SpGEMMPlan(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB,
               const AnySparseMatrix &A, const AnySparseMatrix &B, tarsiaComputeType_t computeType,
               tarsiaSpGEMMAlg_t alg = TARSIA_SPGEMM_ALG_DEFAULT)
        : Plan(A, computeType), valuesOfB_(B) {
        tarsiaPlan_t raw = nullptr;
        TARSIA_HPP_CALL(tarsiaSpGEMM_createPlan, handle.get(), &raw, opA, opB, A.get(), B.get(),
                        computeType, alg);
        own(raw);
    }

    // Whether the columns of each row of C ascend (before analyze(); see
    // tarsiaPlan_setSortedOutput).
    void setSortedOutput(bool sortedOutput) {
        TARSIA_HPP_CALL(tarsiaPlan_setSortedOutput, get(), sortedOutput ? 1 : 0);
    }

    // Entries of C. Blocks.
    std::int64_t symbolic(const Handle &handle) {
        std::int64_t nnz = 0;
        TARSIA_HPP_CALL(tarsiaSpGEMM_symbolic, handle.get(), get(), &nnz);
        return nnz;
    }
    void numeric(const Handle &handle, Scalar alpha, const SparseMatrix &C) {
        run(handle, alpha, C);
    }
    void numeric(const Handle &handle, DeviceScalar alpha, const SparseMatrix &C) {
        run(handle, alpha, C);
    }

    // New values of A (as of other plans), of B, or of both.
    using Plan::updateValues;
    template <class Range, class = detail::IfArray<Range>>
    void updateValuesOfB(const Handle &handle, Range &&valuesB) {
        detail::expectBorrowed<Range>();
        expectB(valuesB);
        TARSIA_HPP_CALL(tarsiaSpGEMM_updateValues, handle.get(), get(), nullptr,
                        std::data(valuesB));
    }
    template <class RangeA, class RangeB, class = detail::IfArray<RangeA, RangeB>>
    void updateValues(const Handle &handle, RangeA &&valuesA, RangeB &&valuesB) {
        detail::expectBorrowed<RangeA, RangeB>();
        expectA(valuesA);
        expectB(valuesB);
        TARSIA_HPP_CALL(tarsiaSpGEMM_updateValues, handle.get(), get(), std::data(valuesA),
                        std::data(valuesB));
    }
    // Of factors in tiles: those that their matrices have now.
    void updateValues(const Handle &handle) {
        TARSIA_HPP_CALL(tarsiaSpGEMM_updateValues, handle.get(), get(), nullptr, nullptr);
    }

  private:
    template <class S> void run(const Handle &handle, const S &alpha, const SparseMatrix &C) {
        const auto call = [&](const void *a, const void *) {
            return tarsiaSpGEMM_numeric(handle.get(), get(), a, C.get());
        };
        detail::scaled("tarsiaSpGEMM_numeric", handle, computeType(), alpha, alpha, call);
    }
    template <class Range> void expectA(const Range &values) const {
        const char *const function = "tarsia::SpGEMMPlan::updateValues";
        detail::expectLength(function, "valuesA", detail::length(values), "A's", valuesOfA().count);
        detail::expectType(function, "valuesA", dataTypeOf<detail::Element<const Range>>,
                           valuesOfA().type);
    }
    template <class Range> void expectB(const Range &values) const {
        const char *const function = "tarsia::SpGEMMPlan::updateValues";
        detail::expectLength(function, "valuesB", detail::length(values), "B's", valuesOfB_.count);
        detail::expectType(function, "valuesB", dataTypeOf<detail::Element<const Range>>,
                           valuesOfB_.type);
    }

    Values valuesOfB_;
};

// ---- one call, no plan ----

namespace detail {

template <class S>
void spmvOnce(const Handle &handle, tarsiaOperation_t opA, const S &alpha, const AnySparseMatrix &A,
              const AnyDenseVector &x, const S &beta, const DenseVector &y,
              tarsiaComputeType_t computeType) {
    const auto call = [&](const void *a, const void *b) {
        return tarsiaSpMV_once(handle.get(), opA, a, A.get(), x.get(), b, y.get(), computeType);
    };
    scaled("tarsiaSpMV_once", handle, computeType, alpha, beta, call);
}

template <class S>
void spmmOnce(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB, const S &alpha,
              const AnySparseMatrix &A, const AnyDenseMatrix &B, const S &beta,
              const DenseMatrix &C, tarsiaComputeType_t computeType) {
    const auto call = [&](const void *a, const void *b) {
        return tarsiaSpMM_once(handle.get(), opA, opB, a, A.get(), B.get(), b, C.get(),
                               computeType);
    };
    scaled("tarsiaSpMM_once", handle, computeType, alpha, beta, call);
}

} // namespace detail

// y = alpha * op(A) * x + beta * y for a matrix that is used once (see tarsiaSpMV_once for what
// blocks).
inline void spmv(const Handle &handle, tarsiaOperation_t opA, Scalar alpha,
                 const AnySparseMatrix &A, const AnyDenseVector &x, Scalar beta,
                 const DenseVector &y, tarsiaComputeType_t computeType) {
    detail::spmvOnce(handle, opA, alpha, A, x, beta, y, computeType);
}
inline void spmv(const Handle &handle, tarsiaOperation_t opA, DeviceScalar alpha,
                 const AnySparseMatrix &A, const AnyDenseVector &x, DeviceScalar beta,
                 const DenseVector &y, tarsiaComputeType_t computeType) {
    detail::spmvOnce(handle, opA, alpha, A, x, beta, y, computeType);
}
// In the compute type of the operands' types.
template <class S, class T>
void spmv(const Handle &handle, tarsiaOperation_t opA, S alpha, const AnySparseMatrix &A,
          const AnyDenseVector &x, T beta, const DenseVector &y) {
    spmv(handle, opA, alpha, A, x, beta, y,
         computeTypeOf({A.valueType(), x.valueType(), y.valueType()}));
}

// C = alpha * op(A) * op(B) + beta * C for a matrix that is used once. Blocks.
inline void spmm(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB, Scalar alpha,
                 const AnySparseMatrix &A, const AnyDenseMatrix &B, Scalar beta,
                 const DenseMatrix &C, tarsiaComputeType_t computeType) {
    detail::spmmOnce(handle, opA, opB, alpha, A, B, beta, C, computeType);
}
inline void spmm(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB,
                 DeviceScalar alpha, const AnySparseMatrix &A, const AnyDenseMatrix &B,
                 DeviceScalar beta, const DenseMatrix &C, tarsiaComputeType_t computeType) {
    detail::spmmOnce(handle, opA, opB, alpha, A, B, beta, C, computeType);
}
// In the compute type of the operands' types.
template <class S, class T>
void spmm(const Handle &handle, tarsiaOperation_t opA, tarsiaOperation_t opB, S alpha,
          const AnySparseMatrix &A, const AnyDenseMatrix &B, T beta, const DenseMatrix &C) {
    spmm(handle, opA, opB, alpha, A, B, beta, C,
         computeTypeOf({A.valueType(), B.valueType(), C.valueType()}));
}

} // namespace tarsia

#endif // TARSIA_HPP_PLANS
