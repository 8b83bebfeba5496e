// Dependent products of cuSPARSE back to back: X1 = A · X0, X2 = A · X1, …, enqueued on one stream
// without a wait between them. The last result of a chain must be that of products after each of
// which the host waits. Each X has memory of its own: that a product does not overwrite what the
// one before it still reads, as with two X in turn, is not tested.
//
// Times of products back to back mean something only where this holds: a kernel that begins before
// the one in front of it has ended, and does not wait for it, is "fast" and wrong.
//
//     nvcc -O2 -std=c++17 benches/dependent_products.cu -lcusparse -o dependent_products
//     ./dependent_products
//
// Another version of cuSPARSE is taken by LD_LIBRARY_PATH. For each algorithm, type and matrix a
// line is printed: how many of the chains were wrong, and microseconds of a product in a chain.
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int status = int(call);                                                              \
        if (status != 0) {                                                                         \
            std::printf("line %d: status %d\n", __LINE__, status);                                 \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

// Products of a chain, and chains of each kind.
constexpr int PRODUCTS = 16, CHAINS = 100;

template <class T> T *on_device(const std::vector<T> &from) {
    T *to = nullptr;
    CHECK(cudaMalloc(&to, from.size() * sizeof(T)));
    CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return to;
}

// Number from -0.5 to 0.5.
template <class T> T number() { return std::rand() / T(RAND_MAX) - T(0.5); }

// Square matrix with about `per_row` entries at random in each row.
template <class T> struct Matrix {
    int n, entries;
    int *offsets, *columns;
    T *values;

    Matrix(int n, int per_row) : n(n) {
        std::srand(1);
        std::vector<int> begins{0}, all;
        for (int row = 0; row < n; ++row) {
            std::vector<int> found(per_row);
            for (int &column : found)
                column = std::rand() % n;
            std::sort(found.begin(), found.end());
            found.erase(std::unique(found.begin(), found.end()), found.end());
            all.insert(all.end(), found.begin(), found.end());
            begins.push_back(int(all.size()));
        }
        entries = int(all.size());
        // The numbers of a chain neither grow nor vanish.
        std::vector<T> numbers(entries);
        for (T &value : numbers)
            value = number<T>() * T(std::sqrt(12.0 * n / entries));
        offsets = on_device(begins), columns = on_device(all), values = on_device(numbers);
    }
    ~Matrix() { cudaFree(offsets), cudaFree(columns), cudaFree(values); }
};

// Chains of products by one algorithm; `width` is the number of columns of X, 0 for vectors.
template <class T> void run(const Matrix<T> &matrix, int width, int algorithm, const char *name) {
    const cudaDataType type = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
    const auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    const size_t elements = size_t(matrix.n) * std::max(width, 1);
    cusparseHandle_t handle;
    cudaStream_t stream;
    CHECK(cusparseCreate(&handle));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cusparseSetStream(handle, stream));
    cusparseSpMatDescr_t a;
    CHECK(cusparseCreateCsr(&a, matrix.n, matrix.n, matrix.entries, matrix.offsets, matrix.columns,
                            matrix.values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, type));
    std::vector<T> first(elements);
    for (T &value : first)
        value = number<T>();
    std::vector<T *> x;
    std::vector<cusparseDnMatDescr_t> matrices(PRODUCTS + 1);
    std::vector<cusparseDnVecDescr_t> vectors(PRODUCTS + 1);
    for (int k = 0; k <= PRODUCTS; ++k) {
        x.push_back(on_device(first));
        if (width > 0) {
            CHECK(cusparseCreateDnMat(&matrices[k], matrix.n, width, width, x[k], type,
                                      CUSPARSE_ORDER_ROW));
        } else {
            CHECK(cusparseCreateDnVec(&vectors[k], matrix.n, x[k], type));
        }
    }
    const T one = 1, zero = 0;
    void *buffer = nullptr;
    size_t bytes = 0;
    const auto spmm = cusparseSpMMAlg_t(algorithm);
    const auto spmv = cusparseSpMVAlg_t(algorithm);
    if (width > 0) {
        CHECK(cusparseSpMM_bufferSize(handle, plain, plain, &one, a, matrices[0], &zero,
                                      matrices[1], type, spmm, &bytes));
        CHECK(cudaMalloc(&buffer, bytes + 16));
        CHECK(cusparseSpMM_preprocess(handle, plain, plain, &one, a, matrices[0], &zero,
                                      matrices[1], type, spmm, buffer));
    } else {
        CHECK(cusparseSpMV_bufferSize(handle, plain, &one, a, vectors[0], &zero, vectors[1], type,
                                      spmv, &bytes));
        CHECK(cudaMalloc(&buffer, bytes + 16));
        CHECK(cusparseSpMV_preprocess(handle, plain, &one, a, vectors[0], &zero, vectors[1], type,
                                      spmv, buffer));
    }
    const auto multiply = [&](int k) {
        if (width > 0) {
            CHECK(cusparseSpMM(handle, plain, plain, &one, a, matrices[k], &zero, matrices[k + 1],
                               type, spmm, buffer));
        } else {
            CHECK(cusparseSpMV(handle, plain, &one, a, vectors[k], &zero, vectors[k + 1], type,
                               spmv, buffer));
        }
    };
    const auto last = [&] {
        std::vector<T> out(elements);
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(out.data(), x[PRODUCTS], elements * sizeof(T), cudaMemcpyDeviceToHost));
        return out;
    };
    for (int k = 0; k < PRODUCTS; ++k) {
        multiply(k);
        CHECK(cudaStreamSynchronize(stream));
    }
    const std::vector<T> right = last();
    double largest = 0;
    for (const T value : right)
        largest = std::max(largest, std::fabs(double(value)));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    int wrong = 0;
    std::vector<float> micros;
    for (int chain = 0; chain < CHAINS; ++chain) {
        // Bytes of 0x7f are huge numbers.
        for (int k = 1; k <= PRODUCTS; ++k)
            CHECK(cudaMemsetAsync(x[k], 0x7f, elements * sizeof(T), stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaEventRecord(begin, stream));
        for (int k = 0; k < PRODUCTS; ++k)
            multiply(k);
        CHECK(cudaEventRecord(end, stream));
        const std::vector<T> found = last();
        double off = 0;
        for (size_t i = 0; i < elements; ++i) {
            const double difference = std::fabs(double(found[i]) - double(right[i]));
            off = difference <= 1e300 ? std::max(off, difference) : 1e300;
        }
        wrong += off > 1e-3 * largest;
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        micros.push_back(1e3f * milliseconds / PRODUCTS);
    }
    std::nth_element(micros.begin(), micros.begin() + CHAINS / 2, micros.end());
    std::printf("%-14s %s %8d rows %9d entries  N = %-3d  wrong %3d of %d   %.2f µs\n", name,
                sizeof(T) == 4 ? "f32" : "f64", matrix.n, matrix.entries, width, wrong, CHAINS,
                micros[CHAINS / 2]);
    for (T *one_of : x)
        cudaFree(one_of);
    cudaFree(buffer);
    CHECK(cusparseDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
}

template <class T> void run_all(int n, int per_row) {
    const Matrix<T> matrix(n, per_row);
    run(matrix, 0, CUSPARSE_SPMV_CSR_ALG1, "SPMV_CSR_ALG1");
    run(matrix, 0, CUSPARSE_SPMV_CSR_ALG2, "SPMV_CSR_ALG2");
    for (const int width : {8, 32, 128}) {
        run(matrix, width, CUSPARSE_SPMM_CSR_ALG1, "SPMM_CSR_ALG1");
        run(matrix, width, CUSPARSE_SPMM_CSR_ALG2, "SPMM_CSR_ALG2");
        run(matrix, width, CUSPARSE_SPMM_CSR_ALG3, "SPMM_CSR_ALG3");
    }
}

int main() {
    cusparseHandle_t handle;
    int version = 0;
    CHECK(cusparseCreate(&handle));
    CHECK(cusparseGetVersion(handle, &version));
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    std::printf("cuSPARSE %d.%d.%d, %s\n", version / 1000, version / 100 % 10, version % 100,
                device.name);
    const int shapes[][2] = {{512, 470}, {1024, 290}, {2048, 190}, {4096, 64},
                             {4096, 16}, {16384, 7},  {65536, 16}};
    for (const auto &[n, per_row] : shapes) {
        run_all<float>(n, per_row);
        run_all<double>(n, per_row);
    }
}
