// SPDX-License-Identifier: MIT OR Apache-2.0
// C = alpha A B + beta C with dense B and C in C++: objects own what the library made, errors are
// exceptions, types come from the arrays. A is in COO with base 1, unsorted and with entries stored
// twice (they add up); B is stored by rows, C by columns, C with room between its columns.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <tarsia.hpp>

namespace {

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

    // Arrays in the backend's memory, copied from the host's; descriptors that have their
    // addresses.
    const tarsia::Handle handle;
    const tarsia::DeviceBuffer dRows(handle, rows), dCols(handle, cols);
    const tarsia::DeviceBuffer dValues(handle, values), dB(handle, B);
    tarsia::DeviceBuffer dC(handle, C);
    const auto matA =
        tarsia::ConstSparseMatrix::coo(m, k, dRows, dCols, dValues, TARSIA_INDEX_BASE_ONE);
    const tarsia::ConstDenseMatrix matB(k, n, ldB, dB, TARSIA_ORDER_ROW);
    const tarsia::DenseMatrix matC(m, n, ldC, dC, TARSIA_ORDER_COL);

    tarsia::SpMMPlan plan(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE,
                          matA, matB, matC);
    plan.analyze(handle);
    plan.execute(handle, alpha, matB, beta, matC);

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

    dC.copyTo(result); // waits for the product
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
