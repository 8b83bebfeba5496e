// C = alpha A B + beta C with dense B and C in C++: objects own what the library made, errors are
// exceptions. A is in COO with base 1, unsorted and with entries stored twice (they add up); B is
// stored by rows, C by columns, C with room between its columns.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <tarsia.h>

namespace {

void check(tarsiaStatus_t status) {
    if (status == TARSIA_STATUS_SUCCESS)
        return;
    char message[512];
    tarsiaGetLastErrorMessage(message, sizeof message);
    throw std::runtime_error(std::string(tarsiaGetErrorName(status)) + ": " + message);
}

// An object of the library that ends with its owner. A destructor cannot throw: the status of a
// destroy function is ignored.
template <auto destroy> struct Destroy {
    template <class T> void operator()(T *object) const { destroy(object); }
};
using Handle = std::unique_ptr<tarsiaContext, Destroy<tarsiaDestroy>>;
using SpMat = std::unique_ptr<tarsiaSpMatDescr, Destroy<tarsiaDestroySpMat>>;
using DnMat = std::unique_ptr<tarsiaDnMatDescr, Destroy<tarsiaDestroyDnMat>>;
using Plan = std::unique_ptr<tarsiaPlan, Destroy<tarsiaPlan_destroy>>;

// Calls create(&raw, args...) and owns the answer.
template <class Owner, class Create, class... Args> Owner make(Create create, Args... args) {
    typename Owner::pointer raw = nullptr;
    check(create(&raw, args...));
    return Owner(raw);
}

// An array in the backend's memory, copied from a host vector.
template <class T> class Array {
  public:
    Array(tarsiaHandle_t handle, const std::vector<T> &host) : handle_(handle) {
        check(tarsiaMalloc(handle, &data_, host.size() * sizeof(T)));
        const auto status =
            tarsiaMemcpyToDevice(handle, data_, host.data(), host.size() * sizeof(T));
        if (status != TARSIA_STATUS_SUCCESS)
            tarsiaFree(handle, data_); // no destructor runs when a constructor throws
        check(status);
    }
    ~Array() { tarsiaFree(handle_, data_); }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;

    void *data() const { return data_; }
    void download(std::vector<T> &host) const {
        check(tarsiaMemcpyToHost(handle_, host.data(), data_, host.size() * sizeof(T)));
    }

  private:
    tarsiaHandle_t handle_;
    void *data_ = nullptr;
};

int run() {
    const int64_t m = 300, k = 200, n = 7, nnz = 2500; // A is m x k, B k x n, C m x n
    const int64_t ldB = n, ldC = m + 5;
    const double alpha = 1.7, beta = -0.6, untouched = 12345.0;

    std::mt19937_64 random(42);
    std::uniform_real_distribution<double> value(-1, 1);
    std::vector<int32_t> rows(nnz), cols(nnz);
    std::vector<double> values(nnz), B(k * ldB), C(n * ldC, untouched);
    for (int64_t p = 0; p < nnz; ++p) {
        rows[p] = static_cast<int32_t>(1 + random() % m);
        cols[p] = static_cast<int32_t>(1 + random() % k);
        values[p] = value(random);
    }
    for (auto &b : B)
        b = value(random);
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i)
            C[i + j * ldC] = value(random);

    const Handle handle = make<Handle>(tarsiaCreate);
    const Array<int32_t> dRows(handle.get(), rows), dCols(handle.get(), cols);
    const Array<double> dValues(handle.get(), values), dB(handle.get(), B), dC(handle.get(), C);
    const SpMat matA =
        make<SpMat>(tarsiaCreateCoo, m, k, nnz, dRows.data(), dCols.data(), dValues.data(),
                    TARSIA_INDEX_32I, TARSIA_INDEX_BASE_ONE, TARSIA_R_64F);
    const DnMat matB =
        make<DnMat>(tarsiaCreateDnMat, k, n, ldB, dB.data(), TARSIA_R_64F, TARSIA_ORDER_ROW);
    const DnMat matC =
        make<DnMat>(tarsiaCreateDnMat, m, n, ldC, dC.data(), TARSIA_R_64F, TARSIA_ORDER_COL);

    tarsiaPlan_t raw = nullptr;
    check(tarsiaSpMM_createPlan(handle.get(), &raw, TARSIA_OPERATION_NON_TRANSPOSE,
                                TARSIA_OPERATION_NON_TRANSPOSE, matA.get(), TARSIA_ORDER_ROW,
                                TARSIA_ORDER_COL, n, TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                TARSIA_SPMM_ALG_DEFAULT));
    const Plan plan(raw);
    check(tarsiaPlan_analyze(handle.get(), plan.get()));
    check(tarsiaSpMM(handle.get(), plan.get(), &alpha, matB.get(), &beta, matC.get()));

    // The same with a plain loop; size is what the rounding errors are in proportion to.
    std::vector<double> expected(C), size(C.size(), 0.0), result(C.size());
    std::vector<int64_t> entries(m, 0);
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i)
            size[i + j * ldC] = std::fabs(expected[i + j * ldC] *= beta);
    for (int64_t p = 0; p < nnz; ++p) {
        const int64_t i = rows[p] - 1, l = cols[p] - 1;
        ++entries[i];
        for (int64_t j = 0; j < n; ++j) {
            expected[i + j * ldC] += alpha * values[p] * B[l * ldB + j];
            size[i + j * ldC] += std::fabs(alpha * values[p] * B[l * ldB + j]);
        }
    }

    dC.download(result); // waits for the product
    double worst = 0;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < ldC; ++i) {
            const int64_t at = i + j * ldC;
            const double error = std::fabs(result[at] - expected[at]);
            // Rows m and beyond are room between the columns: no bit of it may change.
            const double roundings = i < m ? 2.0 * static_cast<double>(entries[i] + 3) : 0.0;
            if (!(error <= roundings * std::numeric_limits<double>::epsilon() * size[at]))
                throw std::runtime_error("C(" + std::to_string(i) + ", " + std::to_string(j) +
                                         ") is off by " + std::to_string(error));
            worst = std::fmax(worst, error);
        }
    std::printf("A: %d x %d in COO, base 1, %d entries; B: %d columns by rows; C by columns\n",
                static_cast<int>(m), static_cast<int>(k), static_cast<int>(nnz),
                static_cast<int>(n));
    std::printf("C = %.1f A B + (%.1f) C: correct, largest error %.2g\n", alpha, beta, worst);
    return 0;
}

} // namespace

int main() {
    try {
        return run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
