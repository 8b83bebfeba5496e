// Host time of tarsiaSpMV and tarsiaSpMM, beside that of a bare kernel launch in the same process;
// of what destroys objects and frees memory while a kernel holds the stream; and how the time of a
// call grows with the number of threads that call with objects of their own.
//
//   lib=$PWD/dist/gpu/programs/lib
//   nvcc -O2 -std=c++17 -arch=sm_90 -Iinclude benches/call_overhead.cu -o call_overhead \
//       -Xlinker $lib/libtarsia.so.0.2 -Xlinker -rpath=$lib
//   ./call_overhead
//
// Microseconds of a call, the median of 31 runs of 200 calls; the stream is waited for between
// runs.

#include <tarsia.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != TARSIA_STATUS_SUCCESS) {                                                     \
            char text[512];                                                                        \
            tarsiaGetLastErrorMessage(text, sizeof text);                                          \
            std::fprintf(stderr, "%s: %s\n", #call, text);                                         \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

using Clock = std::chrono::steady_clock;

static double micros(Clock::time_point from) {
    return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

__global__ void nothing(float *) {}

// Runs until the host lets it go.
__global__ void hold(const volatile int *go) {
    while (!*go) {
    }
}

// A product with objects of its own: a band of three diagonals.
struct Product {
    tarsiaHandle_t handle;
    tarsiaSpMatDescr_t a;
    tarsiaDnVecDescr_t x, y;
    tarsiaDnMatDescr_t b, c;
    tarsiaPlan_t plan;
    int columns_of_b;
    void *result;
    double alpha = 1, beta = 0;

    // columns_of_b: 0 for SpMV.
    Product(tarsiaBackend_t backend, int rows, tarsiaEffort_t effort, int columns_of_b = 0)
        : columns_of_b(columns_of_b) {
        CHECK(tarsiaCreateWithBackend(&handle, backend, 0));
        std::vector<int> offsets{0}, columns;
        const int64_t n = std::max(columns_of_b, 1);
        std::vector<double> values, dense(rows * n, 0.7);
        for (int row = 0; row < rows; ++row) {
            for (int column = std::max(row - 1, 0); column < std::min(row + 2, rows); ++column) {
                columns.push_back(column);
                values.push_back(1.0 / (1 + row + column));
            }
            offsets.push_back(int(columns.size()));
        }
        auto upload = [&](const auto &from) {
            void *to;
            CHECK(tarsiaMalloc(handle, &to, from.size() * sizeof from[0]));
            CHECK(tarsiaMemcpyToDevice(handle, to, from.data(), from.size() * sizeof from[0]));
            return to;
        };
        CHECK(tarsiaCreateCsr(&a, rows, rows, int64_t(columns.size()), upload(offsets),
                              upload(columns), upload(values), TARSIA_INDEX_32I, TARSIA_INDEX_32I,
                              TARSIA_INDEX_BASE_ZERO, TARSIA_R_64F));
        void *factor = upload(dense);
        result = upload(dense);
        if (columns_of_b) {
            CHECK(tarsiaCreateDnMat(&b, rows, n, n, factor, TARSIA_R_64F, TARSIA_ORDER_ROW));
            CHECK(tarsiaCreateDnMat(&c, rows, n, n, result, TARSIA_R_64F, TARSIA_ORDER_ROW));
            CHECK(tarsiaSpMM_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE,
                                        TARSIA_OPERATION_NON_TRANSPOSE, a, TARSIA_ORDER_ROW,
                                        TARSIA_ORDER_ROW, n, TARSIA_R_64F, TARSIA_R_64F,
                                        TARSIA_COMPUTE_64F, TARSIA_SPMM_ALG_DEFAULT));
        } else {
            CHECK(tarsiaCreateDnVec(&x, rows, factor, TARSIA_R_64F));
            CHECK(tarsiaCreateDnVec(&y, rows, result, TARSIA_R_64F));
            CHECK(tarsiaSpMV_createPlan(handle, &plan, TARSIA_OPERATION_NON_TRANSPOSE, a,
                                        TARSIA_R_64F, TARSIA_R_64F, TARSIA_COMPUTE_64F,
                                        TARSIA_SPMV_ALG_DEFAULT));
        }
        CHECK(tarsiaPlan_setEffort(plan, effort));
        CHECK(tarsiaPlan_analyze(handle, plan));
    }

    void run() {
        if (columns_of_b)
            CHECK(tarsiaSpMM(handle, plan, &alpha, b, &beta, c));
        else
            CHECK(tarsiaSpMV(handle, plan, &alpha, x, &beta, y));
    }
};

template <class F> static double median(F f) {
    std::vector<double> all;
    for (int run = 0; run < 31; ++run)
        all.push_back(f());
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

int main() {
    const int calls = 200;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    auto bare = [&] {
        auto start = Clock::now();
        for (int call = 0; call < calls; ++call)
            nothing<<<1, 32, 0, stream>>>(nullptr);
        double time = micros(start);
        cudaStreamSynchronize(stream);
        return time / calls;
    };
    std::printf("bare launch              %7.3f us\n", median(bare));
    for (int columns_of_b : {0, 32}) {
        for (auto effort : {TARSIA_EFFORT_QUICK, TARSIA_EFFORT_DEFAULT}) {
            Product product(TARSIA_BACKEND_CUDA, 10000, effort, columns_of_b);
            CHECK(tarsiaSetStream(product.handle, stream));
            auto run = [&] {
                auto start = Clock::now();
                for (int call = 0; call < calls; ++call)
                    product.run();
                double time = micros(start);
                cudaStreamSynchronize(stream);
                return time / calls;
            };
            std::printf("%s, %-7s      %7.3f us\n", columns_of_b ? "tarsiaSpMM" : "tarsiaSpMV",
                        effort == TARSIA_EFFORT_QUICK ? "QUICK" : "DEFAULT", median(run));
        }
    }
    std::printf("bare launch again        %7.3f us\n", median(bare));

    // What goes while a kernel holds the stream that the product is on.
    int *go;
    cudaMallocHost(&go, sizeof *go);
    double destroying[3];
    for (int run = 0; run < 2; ++run) { // the first one warms up
        Product product(TARSIA_BACKEND_CUDA, 10000, TARSIA_EFFORT_DEFAULT);
        CHECK(tarsiaSetStream(product.handle, stream));
        product.run();
        cudaStreamSynchronize(stream);
        *go = 0;
        hold<<<1, 1, 0, stream>>>(go);
        product.run();
        auto start = Clock::now();
        CHECK(tarsiaPlan_destroy(product.plan));
        destroying[0] = micros(start);
        start = Clock::now();
        CHECK(tarsiaFree(product.handle, product.result));
        destroying[1] = micros(start);
        start = Clock::now();
        CHECK(tarsiaDestroy(product.handle));
        destroying[2] = micros(start);
        if (cudaStreamQuery(stream) != cudaErrorNotReady) {
            std::fprintf(stderr, "the stream was not held\n");
            return 1;
        }
        *go = 1;
        cudaStreamSynchronize(stream);
    }
    std::printf("while a kernel holds the stream: tarsiaPlan_destroy %.1f us, tarsiaFree %.1f us, "
                "tarsiaDestroy %.1f us\n",
                destroying[0], destroying[1], destroying[2]);

    // Threads with handles, plans and streams of their own on the device, beside threads that
    // launch an empty kernel on streams of their own.
    std::printf("threads   bare launch [us a call]   tarsiaSpMV on the device [us a call]\n");
    for (int threads : {1, 2, 4, 8, 16, 32, 64}) {
        double times[2];
        for (int what = 0; what < 2; ++what) {
            std::atomic<int> ready{0};
            std::atomic<bool> start_all{false};
            std::atomic<long long> nanos{0};
            const int count = 2000, between = 100;
            std::vector<std::thread> pool;
            for (int thread = 0; thread < threads; ++thread)
                pool.emplace_back([&] {
                    Product product(TARSIA_BACKEND_CUDA, 1000, TARSIA_EFFORT_DEFAULT);
                    cudaStream_t own;
                    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
                    CHECK(tarsiaSetStream(product.handle, own));
                    product.run();
                    cudaStreamSynchronize(own);
                    ++ready;
                    while (!start_all)
                        std::this_thread::yield();
                    double total = 0;
                    for (int call = 0; call < count; call += between) {
                        auto start = Clock::now();
                        for (int i = 0; i < between; ++i) {
                            if (what)
                                product.run();
                            else
                                nothing<<<1, 32, 0, own>>>(nullptr);
                        }
                        total += micros(start);
                        cudaStreamSynchronize(own);
                    }
                    nanos += (long long)(total * 1000);
                });
            while (ready != threads)
                std::this_thread::yield();
            start_all = true;
            for (auto &thread : pool)
                thread.join();
            times[what] = nanos / 1000.0 / threads / count;
        }
        std::printf("%7d   %10.3f   %10.3f\n", threads, times[0], times[1]);
    }

    // Threads with objects of their own: what a call takes on the host backend, of a matrix of one
    // row, and of getters, which do nothing but find the object.
    std::printf("threads   SpMV of one row on the host [us a call]   tarsiaPlan_workspaceSize [us "
                "a call]\n");
    for (int threads : {1, 2, 4, 8, 16, 32, 64}) {
        double times[2];
        for (int what = 0; what < 2; ++what) {
            std::atomic<int> ready{0};
            std::atomic<bool> go{false};
            std::atomic<long long> nanos{0};
            const int count = what ? 200000 : 100000;
            std::vector<std::thread> pool;
            for (int thread = 0; thread < threads; ++thread)
                pool.emplace_back([&] {
                    Product product(TARSIA_BACKEND_HOST, 1, TARSIA_EFFORT_QUICK);
                    size_t bytes;
                    ++ready;
                    while (!go)
                        std::this_thread::yield();
                    auto start = Clock::now();
                    for (int call = 0; call < count; ++call) {
                        if (what)
                            CHECK(tarsiaPlan_workspaceSize(product.plan, 1, &bytes));
                        else
                            product.run();
                    }
                    nanos += (long long)(micros(start) * 1000);
                });
            while (ready != threads)
                std::this_thread::yield();
            go = true;
            for (auto &thread : pool)
                thread.join();
            times[what] = nanos / 1000.0 / threads / count;
        }
        std::printf("%7d   %10.3f   %10.3f\n", threads, times[0], times[1]);
    }
}
