// Tests of the products of tarsia.hpp against plain loops: value types, formats, operations,
// scalars in host and device memory.
//
// usage: products BACKEND

#include <array>

#include "check.hpp"

namespace {

constexpr std::array<tarsiaOperation_t, 3> operations = {TARSIA_OPERATION_NON_TRANSPOSE,
                                                         TARSIA_OPERATION_TRANSPOSE,
                                                         TARSIA_OPERATION_CONJUGATE_TRANSPOSE};

// Returns alpha a + beta b.
template <class T>
std::vector<T> combine(T alpha, const std::vector<T> &a, T beta, const std::vector<T> &b) {
    std::vector<T> out(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        out[i] = alpha * a[i] + beta * b[i];
    return out;
}

// Every way to compute y = alpha op(A) x + beta y with one matrix.
template <class T>
void spmv(const tarsia::Handle &handle, const tarsia::AnySparseMatrix &matA, const Dense<T> &a,
          std::mt19937_64 &random) {
    for (const auto op : operations) {
        const Dense<T> opA = a.op(op);
        Dense<T> x(opA.cols, 1);
        x.values = numbers<T>(x.values.size(), random);
        const auto y = numbers<T>(static_cast<std::size_t>(opA.rows), random);
        const T alpha = number<T>(random), beta = number<T>(random);
        const auto expected = combine(alpha, product(opA, x).values, beta, y);

        const tarsia::DeviceBuffer dX(handle, x.values);
        tarsia::DeviceBuffer dY(handle, y), dZ(handle, y);
        const tarsia::DeviceBuffer dAlpha(handle, std::vector<T>{alpha, beta});
        const tarsia::ConstDenseVector vecX(dX);
        const tarsia::DenseVector vecY(dY), vecZ(dZ);
        CHECK(vecX.size() == opA.cols && vecX.valueType() == tarsia::dataTypeOf<T>);
        tarsia::SpMVPlan plan(handle, op, matA, vecX, vecY);
        plan.setEffort(TARSIA_EFFORT_QUICK);
        plan.analyze(handle);

        plan.execute(handle, alpha, vecX, beta, vecY);
        CHECK(near(dY.toVector(), expected));
        dY.copyFrom(y);
        const tarsia::DeviceScalar deviceAlpha(dAlpha.data()), deviceBeta(dAlpha.data() + 1);
        plan.execute(handle, deviceAlpha, vecX, deviceBeta, vecY);
        CHECK(near(dY.toVector(), expected));
        // The pointer mode of C calls is unchanged.
        tarsiaPointerMode_t mode = TARSIA_POINTER_MODE_DEVICE;
        tarsia::check(tarsiaGetPointerMode(handle.get(), &mode), "tarsiaGetPointerMode");
        CHECK(mode == TARSIA_POINTER_MODE_HOST);

        dY.copyFrom(y);
        plan.executeInto(handle, alpha, vecX, beta, vecY, vecZ);
        CHECK(near(dZ.toVector(), expected) && dY.toVector() == y);
        plan.executeInto(handle, deviceAlpha, vecX, deviceBeta, vecY, vecZ);
        CHECK(near(dZ.toVector(), expected));

        tarsia::spmv(handle, op, alpha, matA, vecX, beta, vecY);
        CHECK(near(dY.toVector(), expected));
        dY.copyFrom(y);
        tarsia::spmv(handle, op, deviceAlpha, matA, vecX, deviceBeta, vecY);
        CHECK(near(dY.toVector(), expected));

        // Plain numbers are converted: y = A x.
        plan.execute(handle, 1, vecX, 0, vecY);
        CHECK(near(dY.toVector(), product(opA, x).values));
    }
}

// SpMM with B in row-major order, and C in column-major order with padding between its columns.
template <class T>
void spmm(const tarsia::Handle &handle, const tarsia::AnySparseMatrix &matA, const Dense<T> &a,
          std::mt19937_64 &random) {
    const std::int64_t n = 3;
    for (const auto op : operations) {
        const Dense<T> opA = a.op(op);
        Dense<T> b(opA.cols, n), c(opA.rows, n);
        b.values = numbers<T>(b.values.size(), random);
        c.values = numbers<T>(c.values.size(), random);
        const T alpha = number<T>(random), beta = number<T>(random), gap = T(7);
        const auto result = combine(alpha, product(opA, b).values, beta, c.values);

        const std::int64_t ld = opA.rows + 2;
        std::vector<T> stored(static_cast<std::size_t>(ld * n), gap), expected(stored);
        for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < opA.rows; ++i) {
                stored[static_cast<std::size_t>(i + j * ld)] = c.at(i, j);
                expected[static_cast<std::size_t>(i + j * ld)] =
                    result[static_cast<std::size_t>(i * n + j)];
            }
        const tarsia::DeviceBuffer dB(handle, b.values),
            dScalars(handle, std::vector<T>{alpha, beta});
        tarsia::DeviceBuffer dC(handle, stored), dD(handle, stored);
        const tarsia::ConstDenseMatrix matB(opA.cols, n, dB, TARSIA_ORDER_ROW);
        const tarsia::DenseMatrix matC(opA.rows, n, ld, dC, TARSIA_ORDER_COL);
        const tarsia::DenseMatrix matD(opA.rows, n, ld, dD, TARSIA_ORDER_COL);
        CHECK(matB.ld() == n && matC.ld() == ld && matC.order() == TARSIA_ORDER_COL);
        tarsia::SpMMPlan plan(handle, op, TARSIA_OPERATION_NON_TRANSPOSE, matA, matB, matC);
        plan.analyze(handle);
        plan.execute(handle, alpha, matB, beta, matC);
        CHECK(near(dC.toVector(), expected));
        dC.copyFrom(stored);
        const tarsia::DeviceScalar deviceAlpha(dScalars.data()), deviceBeta(dScalars.data() + 1);
        plan.execute(handle, deviceAlpha, matB, deviceBeta, matC);
        CHECK(near(dC.toVector(), expected));
        dC.copyFrom(stored);
        plan.executeInto(handle, alpha, matB, beta, matC, matD);
        CHECK(near(dD.toVector(), expected) && dC.toVector() == stored);
        plan.executeInto(handle, deviceAlpha, matB, deviceBeta, matC, matD);
        CHECK(near(dD.toVector(), expected));
        tarsia::spmm(handle, op, TARSIA_OPERATION_NON_TRANSPOSE, alpha, matA, matB, beta, matC);
        CHECK(near(dC.toVector(), expected));
    }
}

// Every format, index width, base and constness.
template <class T, class Index>
void products(const tarsia::Handle &handle, std::int64_t m, std::int64_t n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Dense<T> a = sparse<T>(m, n, random);

    const Compressed<Index, T> rows(a, true, 0), cols(a, false, 1);
    const auto nnz = static_cast<std::int64_t>(rows.values.size());
    tarsia::DeviceBuffer offsets(handle, rows.offsets), indices(handle, rows.indices);
    tarsia::DeviceBuffer values(handle, rows.values);
    const auto csr = tarsia::ConstSparseMatrix::csr(m, n, offsets, indices, values);
    CHECK(csr.rows() == m && csr.cols() == n && csr.nnz() == nnz);
    CHECK(csr.format() == TARSIA_FORMAT_CSR && csr.valueType() == tarsia::dataTypeOf<T>);
    CHECK(csr.indexBase() == TARSIA_INDEX_BASE_ZERO && csr.template values<T>() == values.data());
    const auto pattern = csr.checkPattern(handle);
    CHECK(pattern.sorted && pattern.unique);
    spmv(handle, csr, a, random);
    spmm(handle, csr, a, random);
    spmv(handle,
         tarsia::SparseMatrix::csr(m, n, nnz, offsets.data(), indices.data(), values.data()), a,
         random);

    const tarsia::DeviceBuffer colOffsets(handle, cols.offsets), rowInd(handle, cols.indices);
    const tarsia::DeviceBuffer colValues(handle, cols.values);
    const auto csc =
        tarsia::ConstSparseMatrix::csc(m, n, colOffsets, rowInd, colValues, TARSIA_INDEX_BASE_ONE);
    CHECK(csc.format() == TARSIA_FORMAT_CSC && csc.valueType() == tarsia::dataTypeOf<T>);
    spmv(handle, csc, a, random);
    spmm(handle, csc, a, random);

    // COO in reverse order, with the first entry stored as two halves.
    std::vector<Index> cooRows, cooCols;
    std::vector<T> cooValues;
    for (std::int64_t i = m; i-- > 0;)
        for (std::int64_t j = n; j-- > 0;)
            for (int part = 0; a.at(i, j) != T{} && part < 2; ++part) {
                cooRows.push_back(static_cast<Index>(i));
                cooCols.push_back(static_cast<Index>(j));
                cooValues.push_back(a.at(i, j) / T(2));
            }
    tarsia::DeviceBuffer dRows(handle, cooRows), dCols(handle, cooCols);
    tarsia::DeviceBuffer dValues(handle, cooValues);
    const auto coo = tarsia::SparseMatrix::coo(m, n, dRows, dCols, dValues);
    CHECK(coo.format() == TARSIA_FORMAT_COO && coo.valueType() == tarsia::dataTypeOf<T>);
    spmv(handle, coo, a, random);
    spmm(handle, coo, a, random);

    // BSR with all blocks of 2 x 1, in column-major order inside.
    Dense<T> full(2 * 5, 3);
    full.values = numbers<T>(full.values.size(), random);
    std::vector<Index> blockOffsets{0}, blockCols;
    std::vector<T> blockValues;
    for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) {
            blockCols.push_back(static_cast<Index>(j));
            blockValues.insert(blockValues.end(), {full.at(2 * i, j), full.at(2 * i + 1, j)});
        }
        blockOffsets.push_back(static_cast<Index>(blockCols.size()));
    }
    const tarsia::DeviceBuffer dBlockOffsets(handle, blockOffsets), dBlockCols(handle, blockCols);
    const tarsia::DeviceBuffer dBlockValues(handle, blockValues);
    const auto bsr = tarsia::ConstSparseMatrix::bsr(5, 3, 2, 1, dBlockOffsets, dBlockCols,
                                                    dBlockValues, TARSIA_ORDER_COL);
    CHECK(bsr.rows() == 10 && bsr.nnz() == 30 && bsr.valueType() == tarsia::dataTypeOf<T>);
    spmv(handle, bsr, full, random);
}

// C = alpha A B, then with new values of A and B, and with matrices in tiles.
template <class T> void spgemm(const tarsia::Handle &handle, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Dense<T> a = sparse<T>(20, 15, random), b = sparse<T>(20, 12, random);
    const Compressed<int, T> cA(a, true, 0);
    const Compressed<std::int64_t, T> cB(b, true, 1);
    const tarsia::DeviceBuffer oA(handle, cA.offsets), iA(handle, cA.indices);
    const tarsia::DeviceBuffer oB(handle, cB.offsets), iB(handle, cB.indices);
    const tarsia::DeviceBuffer vA(handle, cA.values), vB(handle, cB.values);
    const auto matA = tarsia::ConstSparseMatrix::csr(20, 15, oA, iA, vA);
    const auto matB = tarsia::ConstSparseMatrix::csr(20, 12, oB, iB, vB, TARSIA_INDEX_BASE_ONE);

    tarsia::SpGEMMPlan plan(handle, TARSIA_OPERATION_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE,
                            matA, matB, TARSIA_SPGEMM_ALG_HASH);
    plan.setValueUpdates(true);
    plan.analyze(handle);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(handle));
    CHECK(plan.info().nnzC == static_cast<std::int64_t>(nnz) && nnz > 0);
    tarsia::DeviceBuffer<std::int32_t> offsets(handle, 16), indices(handle, nnz);
    tarsia::DeviceBuffer<T> values(handle, nnz);
    const auto matC = tarsia::SparseMatrix::csr(15, 12, offsets, indices, values);

    // Returns C as a dense matrix.
    const auto result = [&] {
        Dense<T> c(15, 12);
        const auto o = offsets.toVector(), i = indices.toVector();
        const auto v = values.toVector();
        for (std::int64_t row = 0; row < 15; ++row)
            for (auto p = o[static_cast<std::size_t>(row)];
                 p < o[static_cast<std::size_t>(row + 1)]; ++p)
                c.at(row, i[static_cast<std::size_t>(p)]) = v[static_cast<std::size_t>(p)];
        return c.values;
    };
    const auto expected = [&](T alpha, T scaleA, T scaleB) {
        auto all = product(a.op(TARSIA_OPERATION_TRANSPOSE), b).values;
        for (auto &value : all)
            value *= alpha * scaleA * scaleB;
        return all;
    };
    const T alpha = number<T>(random);
    plan.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(1), T(1))));
    const tarsia::DeviceBuffer dAlpha(handle, std::vector<T>{alpha});
    plan.numeric(handle, tarsia::DeviceScalar(dAlpha.data()), matC);
    CHECK(near(result(), expected(alpha, T(1), T(1))));

    auto doubled = cA.values;
    for (auto &value : doubled)
        value *= T(2);
    auto halved = cB.values;
    for (auto &value : halved)
        value /= T(2);
    const tarsia::DeviceBuffer vA2(handle, doubled), vB2(handle, halved);
    plan.updateValues(handle, vA2);
    plan.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(2), T(1))));
    plan.updateValuesOfB(handle, vB2);
    plan.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(2), T(0.5))));
    plan.updateValues(handle, vA, vB2);
    plan.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(1), T(0.5))));
    THROWS(plan.updateValues(handle, vB2, vB2), "tarsia::SpGEMMPlan::updateValues",
           TARSIA_STATUS_INVALID_VALUE, "valuesA: ");

    // Rows of C may be unsorted.
    CHECK(matC.sorted());
    tarsia::SpGEMMPlan unsorted(handle, TARSIA_OPERATION_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE,
                                matA, matB);
    unsorted.setSortedOutput(false);
    unsorted.analyze(handle);
    CHECK(unsorted.info().sortedOutput == 0 && plan.info().sortedOutput == 1);
    CHECK(static_cast<std::size_t>(unsorted.symbolic(handle)) == nnz);
    unsorted.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(1), T(1))));
    CHECK(!matC.sorted());
    const bool isSorted = matC.checkPattern(handle).sorted;
    CHECK(matC.sorted() == isSorted);

    // A, B and C in tiles, and conversion of C to CSR.
    const auto tileA = tarsia::SparseMatrix::tile(handle, 20, 15, tarsia::dataTypeOf<T>);
    const auto tileB = tarsia::SparseMatrix::tile(handle, 20, 12, tarsia::dataTypeOf<T>);
    const auto tileC = tarsia::SparseMatrix::tile(handle, 15, 12, tarsia::dataTypeOf<T>);
    tarsia::sparseToTile(handle, matA, tileA);
    tarsia::sparseToTile(handle, matB, tileB);
    CHECK(tileA.format() == TARSIA_FORMAT_TILE && tileA.valueType() == tarsia::dataTypeOf<T>);
    tarsia::SpGEMMPlan tiles(handle, TARSIA_OPERATION_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE,
                             tileA, tileB);
    tiles.analyze(handle);
    CHECK(static_cast<std::size_t>(tiles.symbolic(handle)) == nnz);
    tiles.numeric(handle, alpha, tileC);
    tarsia::tileToSparse(handle, tileC, matC);
    CHECK(near(result(), expected(alpha, T(1), T(1))));
    const auto matA2 = tarsia::ConstSparseMatrix::csr(20, 15, oA, iA, vA2);
    tarsia::sparseToTile(handle, matA2, tileA);
    tiles.updateValues(handle);
    tiles.numeric(handle, alpha, matC);
    CHECK(near(result(), expected(alpha, T(2), T(1))));
}

// This program's own type with the representation of an IEEE half.
struct MyHalf {
    std::uint16_t bits;
};

} // namespace

template <> struct tarsia::DataType<MyHalf> : tarsia::DataTypeIs<TARSIA_R_16F> {};

namespace {

// [[1, 2], [0, -1]] times (0.5, 2), which is (4.5, -2), of 16-bit values, to 32 bits.
template <class T>
void halves(const tarsia::Handle &handle, const std::array<std::uint16_t, 5> &bits) {
    const auto [half, one, two, minusOne, fourAndAHalf] = bits;
    const std::vector<int> offsets{0, 2, 3}, columns{0, 1, 1};
    const tarsia::DeviceBuffer o(handle, offsets), c(handle, columns);
    const tarsia::DeviceBuffer v(handle, std::vector<T>{{one}, {two}, {minusOne}});
    const tarsia::DeviceBuffer dX(handle, std::array<T, 2>{T{half}, T{two}});
    tarsia::DeviceBuffer<float> y(handle, 2);
    tarsia::DeviceBuffer<T> y16(handle, 2);
    const auto A = tarsia::ConstSparseMatrix::csr(2, 2, o, c, v);
    const tarsia::ConstDenseVector vecX(dX);
    const tarsia::DenseVector vecY(y), vecY16(y16);
    tarsia::SpMVPlan plan(handle, TARSIA_OPERATION_NON_TRANSPOSE, A, vecX, vecY);
    CHECK(plan.computeType() == TARSIA_COMPUTE_32F);
    plan.analyze(handle);
    plan.execute(handle, 1.0, vecX, 0.0, vecY);
    CHECK(y.toVector() == (std::vector<float>{4.5F, -2.0F}));
    tarsia::spmv(handle, TARSIA_OPERATION_NON_TRANSPOSE, 1, A, vecX, 0, vecY16);
    CHECK(y16.toVector()[0].bits == fourAndAHalf);
}

// A matrix in 32 bits with vectors in 64, and compute types by name.
void mixed(const tarsia::Handle &handle) {
    std::mt19937_64 random(9);
    const Dense<float> a = sparse<float>(20, 10, random);
    const Compressed<int, float> c(a, true, 0);
    const tarsia::DeviceBuffer offsets(handle, c.offsets), columns(handle, c.indices);
    const tarsia::DeviceBuffer values(handle, c.values);
    const auto A = tarsia::ConstSparseMatrix::csr(20, 10, offsets, columns, values);
    Dense<double> exact(20, 10), x(10, 1);
    exact.values.assign(a.values.begin(), a.values.end());
    x.values = numbers<double>(10, random);
    const tarsia::DeviceBuffer dX(handle, x.values);
    tarsia::DeviceBuffer<double> dY(handle, 20);
    const tarsia::ConstDenseVector vecX(dX);
    const tarsia::DenseVector vecY(dY);
    tarsia::SpMVPlan plan(handle, TARSIA_OPERATION_NON_TRANSPOSE, A, vecX, vecY);
    CHECK(plan.computeType() == TARSIA_COMPUTE_64F);
    plan.analyze(handle);
    plan.execute(handle, 0.1, vecX, 0, vecY);
    auto expected = product(exact, x).values;
    for (auto &value : expected)
        value *= 0.1;
    CHECK(near(dY.toVector(), expected));

    tarsia::SpMVPlan pedantic(handle, TARSIA_OPERATION_NON_TRANSPOSE, A, tarsia::dataTypeOf<float>,
                              tarsia::dataTypeOf<float>, TARSIA_COMPUTE_32F_PEDANTIC,
                              TARSIA_SPMV_ALG_CSR);
    CHECK(pedantic.computeType() == TARSIA_COMPUTE_32F_PEDANTIC);
    pedantic.analyze(handle);
    tarsia::SpMMPlan tf32(handle, TARSIA_OPERATION_NON_TRANSPOSE, TARSIA_OPERATION_NON_TRANSPOSE, A,
                          TARSIA_ORDER_ROW, TARSIA_ORDER_ROW, 8, tarsia::dataTypeOf<float>,
                          tarsia::dataTypeOf<float>, TARSIA_COMPUTE_TF32, TARSIA_SPMM_ALG_SMAT);
    tf32.setBlockDims(16, 8);
    tf32.analyze(handle);
    // With a compute type of 32 bits, alpha on the device must have 32 bits.
    const tarsia::DeviceBuffer wide(handle, std::vector<double>{1.0, 0.0});
    const tarsia::DeviceScalar one(wide.data()), zero(wide.data() + 1);
    THROWS(pedantic.execute(handle, one, vecX, zero, vecY), "tarsiaSpMV",
           TARSIA_STATUS_INVALID_VALUE,
           "alpha: elements of type TARSIA_R_64F, expected TARSIA_R_32F");
}

} // namespace

int main(int, char **arguments) {
    const tarsia::Handle handle(backendOf(arguments[1]));
    products<double, std::int32_t>(handle, 23, 17, 1);
    products<float, std::int64_t>(handle, 17, 23, 2);
    products<std::complex<float>, long long>(handle, 9, 31, 3);
    products<std::complex<double>, int>(handle, 31, 9, 4);
    spgemm<double>(handle, 5);
    spgemm<std::complex<float>>(handle, 6);
    halves<tarsia::half>(handle, {0x3800, 0x3C00, 0x4000, 0xBC00, 0x4480});
    halves<tarsia::bfloat16>(handle, {0x3F00, 0x3F80, 0x4000, 0xBF80, 0x4090});
    halves<MyHalf>(handle, {0x3800, 0x3C00, 0x4000, 0xBC00, 0x4480});
    mixed(handle);
    std::printf("%d checks\n", checks);
}
