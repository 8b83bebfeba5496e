// Tests of tarsia.hpp apart from products: errors and their texts, moves, destruction, settings,
// callbacks, memory.
//
// usage: behaviour BACKEND FOLDER
//
//   FOLDER   an empty one, for the decisions of plans

#include <array>
#include <new>

#include "check.hpp"

// ---- allocations of this program, counted ----

namespace {
long allocations = 0;
}
void *operator new(std::size_t size) {
    ++allocations;
    if (void *memory = std::malloc(size ? size : 1))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

namespace {

// ---- checks at compile time ----

template <class T>
constexpr bool isMoveOnly =
    std::is_nothrow_move_constructible_v<T> &&std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_destructible_v<T>;
static_assert(isMoveOnly<tarsia::Handle> && isMoveOnly<tarsia::DeviceBuffer<double>>);
static_assert(isMoveOnly<tarsia::SparseMatrix> && isMoveOnly<tarsia::ConstSparseMatrix>);
static_assert(isMoveOnly<tarsia::DenseVector> && isMoveOnly<tarsia::ConstDenseVector>);
static_assert(isMoveOnly<tarsia::DenseMatrix> && isMoveOnly<tarsia::ConstDenseMatrix>);
static_assert(isMoveOnly<tarsia::SpMVPlan> && isMoveOnly<tarsia::SpMMPlan> &&
              isMoveOnly<tarsia::SpGEMMPlan>);
// Plans and descriptors cannot be sliced to their common base class.
static_assert(!std::is_constructible_v<tarsia::Plan, tarsia::SpMVPlan> &&
              !std::is_constructible_v<tarsia::AnyDenseVector, tarsia::DenseVector>);

// Descriptors of names and of views; those of temporaries are refused with a sentence (cpp.rs).
using Vector = std::vector<double>;
static_assert(std::is_constructible_v<tarsia::DenseVector, Vector &>);
static_assert(std::is_constructible_v<tarsia::DenseVector, tarsia::span<double>>);
static_assert(std::is_constructible_v<tarsia::DenseMatrix, int, int, Vector &, tarsiaOrder_t>);

// A ConstDenseVector cannot be y.
template <class Y, class = void> struct CanBeY : std::false_type {};
template <class Y>
struct CanBeY<Y, std::void_t<decltype(std::declval<const tarsia::SpMVPlan &>().execute(
                     std::declval<const tarsia::Handle &>(), 1.0,
                     std::declval<const tarsia::ConstDenseVector &>(), 0.0, std::declval<Y &>()))>>
    : std::true_type {};
static_assert(CanBeY<tarsia::DenseVector>::value && !CanBeY<tarsia::ConstDenseVector>::value);

static_assert(tarsia::dataTypeOf<const std::complex<float>> == TARSIA_C_32F);
static_assert(tarsia::indexTypeOf<const long> ==
              (sizeof(long) == 8 ? TARSIA_INDEX_64I : TARSIA_INDEX_32I));
static_assert(sizeof(tarsia::half) == 2 && sizeof(tarsia::bfloat16) == 2);
#if __cplusplus >= 202002L
static_assert(std::is_same_v<tarsia::span<int>, std::span<int>>);
#endif

// ---- a small problem ----

// [[1, 0, 2], [0, 3, 0]]
struct Problem {
    explicit Problem(tarsiaBackend_t backend)
        : handle(backend), offsets(handle, std::vector<int>{0, 2, 3}),
          columns(handle, std::vector<int>{0, 2, 1}), values(handle, Vector{1, 2, 3}),
          x(handle, Vector{1, 10, 100}), y(handle, Vector{-1, -1}),
          A(tarsia::SparseMatrix::csr(2, 3, offsets, columns, values)), vecX(x), vecY(y) {}

    tarsia::SpMVPlan plan() const {
        return tarsia::SpMVPlan(handle, TARSIA_OPERATION_NON_TRANSPOSE, A, vecX, vecY);
    }

    tarsia::Handle handle;
    tarsia::DeviceBuffer<int> offsets, columns;
    tarsia::DeviceBuffer<double> values, x, y;
    tarsia::SparseMatrix A;
    tarsia::ConstDenseVector vecX;
    tarsia::DenseVector vecY;
};

void errors(tarsiaBackend_t backend) {
    Problem p(backend);
    const auto invalid = TARSIA_STATUS_INVALID_VALUE;
    auto plan = p.plan();
    THROWS(plan.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY), "tarsiaSpMV",
           TARSIA_STATUS_INVALID_STATE, "analyze");
    // Errors are exceptions of the standard library, too, and can be copied.
    try {
        plan.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY);
        CHECK(false);
    } catch (const std::runtime_error &error) {
        const tarsia::Error copy = dynamic_cast<const tarsia::Error &>(error);
        CHECK(std::string(copy.what()) == error.what() && copy.text() > copy.what());
        CHECK(std::string(error.what()).rfind("tarsiaSpMV: TARSIA_STATUS_INVALID_STATE: ", 0) == 0);
        CHECK(tarsia::lastErrorMessage() == copy.text());
    }
    plan.analyze(p.handle);
    THROWS(plan.analyze(p.handle), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    THROWS(plan.setEffort(TARSIA_EFFORT_QUICK), "tarsiaPlan_setEffort", TARSIA_STATUS_INVALID_STATE,
           "");
    THROWS(plan.execute(p.handle, 1.0, tarsia::ConstDenseVector(2, p.x.data()), 0.0, p.vecY),
           "tarsiaSpMV", invalid, "x");
    // Errors of the C++ header itself.
    THROWS(plan.execute(p.handle, std::complex<double>(1, 2), p.vecX, 0.0, p.vecY), "tarsiaSpMV",
           invalid, "alpha has an imaginary part");
    const tarsia::DeviceBuffer one(p.handle, std::vector<float>{1});
    const tarsia::DeviceScalar scalar(one.data());
    THROWS(plan.execute(p.handle, scalar, p.vecX, scalar, p.vecY), "tarsiaSpMV", invalid,
           "alpha: elements");
    const tarsia::DeviceBuffer floats(p.handle, std::vector<float>{1, 2, 3});
    THROWS(plan.updateValues(p.handle, floats), "tarsia::Plan::updateValues", invalid,
           "values: elements of type TARSIA_R_32F, expected TARSIA_R_64F");
    THROWS(plan.updateValues(p.handle, p.y), "tarsia::Plan::updateValues", invalid,
           "values: 2 elements, expected A's = 3");
    THROWS(p.A.values<float>(), "tarsia::SparseMatrix::values", invalid, "T: ");
    THROWS(p.A.setValues(static_cast<float *>(nullptr)), "tarsia::SparseMatrix::setValues", invalid,
           "values: ");
    THROWS(p.vecY.setValues(static_cast<float *>(nullptr)), "tarsia::DenseVector::setValues",
           invalid, "");
    THROWS(tarsia::SparseMatrix::csr(3, 3, p.offsets, p.columns, p.values),
           "tarsia::SparseMatrix::csr", invalid, "rowOffsets: 3 elements, expected rows + 1 = 4");
    THROWS(tarsia::SparseMatrix::csr(2, 3, p.offsets, p.offsets, p.y), "tarsia::SparseMatrix::csr",
           invalid, "colInd: 3 elements, expected those of values = 2");
    THROWS(tarsia::ConstSparseMatrix::csc(2, 3, p.offsets, p.columns, p.values),
           "tarsia::SparseMatrix::csc", invalid, "colOffsets: 3 elements, expected cols + 1 = 4");
    THROWS(tarsia::SparseMatrix::coo(2, 3, p.columns, p.columns, p.y), "tarsia::SparseMatrix::coo",
           invalid, "rowInd: 3 elements");
    THROWS(tarsia::SparseMatrix::bsr(2, 3, 2, 2, p.offsets, p.columns, p.values, TARSIA_ORDER_ROW),
           "tarsia::SparseMatrix::bsr", invalid, "values: 3 elements, expected those of 3 blocks");
    THROWS(tarsia::SparseMatrix::csr(-1, 3, p.offsets, p.columns, p.values), "tarsiaCreateCsr",
           invalid, "rows");
    THROWS(tarsia::DenseMatrix(2, 2, p.values, TARSIA_ORDER_ROW), "tarsia::DenseMatrix", invalid,
           "values: 3 elements, expected 2 x 2");
    THROWS(tarsia::DenseMatrix(2, 2, 2, p.values, TARSIA_ORDER_ROW), "tarsia::DenseMatrix", invalid,
           "values: 3 elements, too few");
    CHECK(tarsia::DenseMatrix(1, 2, 2, p.values, TARSIA_ORDER_ROW).ld() == 2);
    CHECK(tarsia::DenseMatrix(2, 1, 2, p.values, TARSIA_ORDER_ROW).ld() == 2);
    CHECK(tarsia::DenseMatrix(0, 5, tarsia::span<double>(), TARSIA_ORDER_COL).rows() == 0);
    THROWS(tarsia::DenseMatrix(2, 2, 0, p.values, TARSIA_ORDER_ROW), "tarsiaCreateDnMat", invalid,
           "ld");
    THROWS(p.x.copyFrom(Vector(2)), "tarsia::DeviceBuffer::copyFrom", invalid,
           "host: 2 elements, expected the buffer's = 3");
    Vector four(4);
    THROWS(p.x.copyTo(four), "tarsia::DeviceBuffer::copyTo", invalid, "");
    THROWS(tarsia::DeviceBuffer<double>(p.handle, static_cast<std::size_t>(-1)),
           "tarsia::DeviceBuffer", TARSIA_STATUS_ALLOC_FAILED, "more than memory");
    // The error of a wrong pattern names the position.
    const tarsia::DeviceBuffer wrong(p.handle, std::array<int, 3>{0, 2, 7});
    const auto outside = tarsia::ConstSparseMatrix::csr(2, 3, p.offsets, wrong, p.values);
    THROWS(outside.checkPattern(p.handle), "tarsiaCheckSpMat", invalid, "colInd[2] = 7");
    THROWS(tarsia::Handle(TARSIA_BACKEND_HOST, 7), "tarsiaCreateWithBackend", invalid, "device");
    THROWS(tarsia::check(tarsiaSetNumThreads(-1), "my call"), "my call", invalid, "n");
    // A text that is longer than the first buffer is not truncated: it has the folder's name.
    const std::string folder = "/proc/" + std::string(700, 'a');
    THROWS(p.handle.setPlanCache(folder), "tarsiaSetPlanCache", invalid, folder);
}

// Use of a moved-from object throws and does not crash.
void moves(tarsiaBackend_t backend) {
    Problem p(backend);
    const auto invalid = TARSIA_STATUS_INVALID_VALUE, none = TARSIA_STATUS_NOT_INITIALIZED;
    auto first = p.plan();
    const tarsiaPlan_t raw = first.get();
    tarsia::SpMVPlan second(std::move(first));
    CHECK(second.get() == raw && first.get() == nullptr); // NOLINT: after the move on purpose
    THROWS(first.analyze(p.handle), "tarsiaPlan_analyze", invalid, "plan");
    THROWS(first.setEffort(TARSIA_EFFORT_QUICK), "tarsiaPlan_setEffort", invalid, "plan");
    THROWS(first.info(), "tarsiaPlan_getInfo", invalid, "plan");
    THROWS(first.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY), "tarsiaSpMV", invalid, "plan");
    THROWS(first.updateValues(p.handle, p.values), "tarsiaPlan_updateValues", invalid, "plan");
    second.analyze(p.handle);
    first = std::move(second); // the object that was empty is used again
    first.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY);
    CHECK(p.y.toVector() == (Vector{201, 30}));
    auto &self = first;
    first = std::move(self);
    CHECK(first.get() == raw);
    first = p.plan(); // the plan that was there ends
    CHECK(first.get() != nullptr && first.info().analyzed == 0);
    THROWS(tarsia::SpMMPlan().analyze(p.handle), "tarsiaPlan_analyze", invalid, "plan");
    THROWS(tarsia::SpGEMMPlan().symbolic(p.handle), "tarsiaSpGEMM_symbolic", invalid, "plan");

    // Descriptors, and vectors of them.
    std::vector<tarsia::ConstDenseVector> vectors;
    for (int i = 0; i < 5; ++i)
        vectors.emplace_back(p.x);
    for (const auto &vector : vectors)
        CHECK(vector.size() == 3 && vector.values<double>() == p.x.data());
    auto moved = std::move(p.A);
    THROWS(p.A.rows(), "tarsiaSpMatGetSize", invalid, "A");
    THROWS(p.A.valueType(), "tarsiaSpMatGetFormat", invalid, "A");
    THROWS(p.plan(), "tarsiaSpMatGetFormat", invalid, "A");
    p.A = std::move(moved);
    CHECK(p.A.rows() == 2);
    auto vecY = std::move(p.vecY);
    THROWS(p.vecY.size(), "tarsiaConstDnVecGet", invalid, "x");
    THROWS(tarsia::DenseMatrix().rows(), "tarsiaConstDnMatGet", invalid, "B");
    THROWS(first.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY), "tarsiaSpMV", invalid, "y");
    p.vecY = std::move(vecY);

    // Memory.
    const double *const data = p.x.data();
    tarsia::DeviceBuffer<double> other(std::move(p.x));
    CHECK(other.data() == data && p.x.data() == nullptr && p.x.empty() && p.x.toVector().empty());
    THROWS(p.x.copyFrom(Vector(3)), "tarsia::DeviceBuffer::copyFrom", invalid, "host: 3 elements");
    p.x = std::move(other);
    CHECK(p.x.data() == data && (p.x.toVector() == Vector{1, 10, 100}));

    // Handles: objects that were made with one still know it after a move.
    tarsia::Handle handle(std::move(p.handle));
    THROWS(p.handle.backend(), "tarsiaGetBackend", none, "handle");
    THROWS(p.handle.setStream(nullptr), "tarsiaSetStream", none, "handle");
    THROWS(first.analyze(p.handle), "tarsiaPlan_analyze", none, "handle");
    first.analyze(handle);
    THROWS(first.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY), "tarsiaSpMV", none, "handle");
    first.execute(handle, 2.0, p.vecX, 0.0, p.vecY);
    CHECK(p.y.toVector() == (Vector{402, 60}));
    p.handle = std::move(handle);
    CHECK(p.handle.backend() == backend);
}

// Objects may be destroyed in any order that the header allows, and a wrong order does not crash.
void ends(tarsiaBackend_t backend) {
    // A plan outlives its descriptors and its handle.
    tarsia::Handle later(backend);
    tarsia::SpMVPlan plan;
    tarsia::DeviceBuffer<double> values(later, Vector{1, 2, 3}), x(later, Vector{1, 10, 100}),
        y(later, 2);
    const tarsia::DeviceBuffer offsets(later, std::vector<int>{0, 2, 3}),
        columns(later, std::vector<int>{0, 2, 1});
    {
        tarsia::Handle handle(backend);
        const auto A = tarsia::ConstSparseMatrix::csr(2, 3, offsets, columns, values);
        plan = tarsia::SpMVPlan(handle, TARSIA_OPERATION_NON_TRANSPOSE, A,
                                tarsia::ConstDenseVector(x), tarsia::DenseVector(y));
        plan.analyze(handle);
        handle.destroy();
        CHECK(handle.get() == nullptr);
        handle.destroy(); // as of NULL: nothing
        THROWS(handle.synchronize(), "tarsiaSynchronize", TARSIA_STATUS_NOT_INITIALIZED, "handle");
    }
    plan.prepare(later);
    plan.execute(later, 1.0, tarsia::ConstDenseVector(x), 0.0, tarsia::DenseVector(y));
    CHECK(y.toVector() == (Vector{201, 30}));
    plan.destroy();
    CHECK(plan.get() == nullptr);
    THROWS(plan.info(), "tarsiaPlan_getInfo", TARSIA_STATUS_INVALID_VALUE, "plan");

    // A buffer whose handle was destroyed (an error of the program) leaks its memory, and reports
    // that if it can.
    tarsia::DeviceBuffer<double> orphan;
    {
        const tarsia::Handle handle(backend);
        orphan = tarsia::DeviceBuffer<double>(handle, Vector{1});
    }
    THROWS(orphan.toVector(), "tarsiaMemcpyToHost", TARSIA_STATUS_NOT_INITIALIZED, "handle");

    // Objects created by C code.
    tarsiaHandle_t raw = nullptr;
    tarsia::check(tarsiaCreateWithBackend(&raw, backend, 0), "tarsiaCreateWithBackend");
    const auto adopted = tarsia::Handle::adopt(raw);
    CHECK(adopted.get() == raw && adopted.backend() == backend);
    tarsiaDnVecDescr_t vector = nullptr;
    tarsia::check(tarsiaCreateDnVec(&vector, 2, y.data(), TARSIA_R_64F), "tarsiaCreateDnVec");
    CHECK(tarsia::DenseVector::adopt(vector).size() == 2);
    CHECK(tarsiaDestroyDnVec(vector) == TARSIA_STATUS_INVALID_VALUE); // its owner has ended it
}

void settings(tarsiaBackend_t backend, const std::string &folder) {
    Problem p(backend);
    CHECK(tarsia::version() == TARSIA_VERSION);
    const int threads = tarsia::numThreads();
    tarsia::setNumThreads(2);
    CHECK(threads >= 1 && tarsia::numThreads() <= 2);
    tarsia::setNumThreads(0);
    CHECK(p.handle.backend() == backend && p.handle.device() == 0);
    CHECK(!p.handle.deterministic() && !p.handle.checks() && p.handle.stream() == nullptr);
    p.handle.setDeterministic(true);
    p.handle.setChecks(true);
    CHECK(p.handle.deterministic() && p.handle.checks());
    auto tuned = p.plan();
    tuned.setEffort(TARSIA_EFFORT_TUNED);
    THROWS(tuned.analyze(p.handle), "tarsiaPlan_analyze", TARSIA_STATUS_NOT_SUPPORTED,
           "deterministic");
    p.handle.setDeterministic(false);

    // Checks find values that have changed without a call.
    auto plan = p.plan();
    plan.setValueUpdates(true);
    plan.setExpectedExecutes(1000);
    plan.setMemoryLimit(1 << 20);
    plan.analyze(p.handle);
    const auto info = plan.info();
    CHECK(info.operation == TARSIA_OP_SPMV && info.analyzed == 1 && info.rows == 2 &&
          info.cols == 3);
    CHECK(info.nnz == 3 && info.valueUpdates == 1 && info.expectedExecutes == 1000 &&
          info.checked == 1);
    CHECK(std::string(info.algorithmName).size() > 1 &&
          plan.workspaceSize() == info.workspaceBytes);
    p.values.copyFrom(Vector{4, 5, 6});
    THROWS(plan.execute(p.handle, 1, p.vecX, 0, p.vecY), "tarsiaSpMV", TARSIA_STATUS_INVALID_STATE,
           "tarsiaPlan_updateValues");
    plan.updateValues(p.handle, p.values);
    plan.execute(p.handle, 1, p.vecX, 0, p.vecY);
    CHECK(p.y.toVector() == (Vector{504, 60}));
    p.handle.setChecks(false);

    auto inPlace = p.plan();
    inPlace.setValuesInPlace(true);
    inPlace.analyze(p.handle);
    p.values.copyFrom(Vector{1, 2, 3});
    inPlace.execute(p.handle, 1, p.vecX, 0, p.vecY);
    CHECK(p.y.toVector() == (Vector{201, 30}));

    auto own = p.plan();
    own.setSelfContained(true);
    own.setReorder(TARSIA_REORDER_PLAIN_SORT);
    own.analyze(p.handle);
    CHECK(backend == TARSIA_BACKEND_REFERENCE || own.info().reorder == TARSIA_REORDER_PLAIN_SORT);

    // Decisions are passed from plan to plan, and through the folder.
    const auto decisions = plan.decisions(p.handle);
    CHECK(!decisions.empty());
    auto next = p.plan();
    next.setValueUpdates(true);
    next.setExpectedExecutes(1000);
    next.setDecisions(p.handle, decisions);
    next.setDecisions(p.handle, {});
    next.setDecisions(p.handle, decisions);
    next.analyze(p.handle);
    CHECK(std::string(next.info().algorithmName) == info.algorithmName);
    auto wrong = p.plan();
    THROWS(wrong.setDecisions(p.handle, tarsia::span<const std::byte>(decisions.data(), 7)),
           "tarsiaPlan_setDecisions", TARSIA_STATUS_INVALID_VALUE, "");
    p.handle.setPlanCache(folder);
    p.plan().analyze(p.handle);
    auto cached = p.plan();
    cached.analyze(p.handle);
    CHECK(std::string(cached.info().reason).find("cache") != std::string::npos ||
          std::string(cached.info().reason).find(folder) != std::string::npos);
    p.handle.setPlanCache(nullptr);

    // The program's own workspace; one that is too small is an error.
    const tarsia::DeviceBuffer<unsigned char> workspace(p.handle, 4096);
    p.handle.setWorkspace(const_cast<unsigned char *>(workspace.data()), workspace.bytes());
    plan.prepare(p.handle);
    p.handle.setWorkspace(nullptr, 0);
    THROWS(p.handle.setWorkspace(nullptr, 1), "tarsiaSetWorkspace", TARSIA_STATUS_INVALID_VALUE,
           "");
    p.handle.synchronize();
}

int taken = 0, given = 0;

void callbacks(tarsiaBackend_t backend) {
    const Problem p(backend);
    tarsia::Handle logged(backend);
    std::vector<std::string> lines;
    logged.setLogger([&](tarsiaLogLevel_t level, std::string_view message) {
        lines.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(message));
    });
    auto plan = p.plan();
    plan.analyze(logged);
    CHECK(!lines.empty() && lines.front().rfind("3 ", 0) == 0);
    // The logger moves with the handle, and is destroyed when it is replaced.
    tarsia::Handle handle(std::move(logged));
    const auto before = lines.size();
    THROWS(plan.analyze(handle), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    CHECK(lines.size() == before + 1 && lines.back().rfind("1 ", 0) == 0);
    // Exceptions of a logger are discarded.
    int calls = 0;
    handle.setLogger([&](tarsiaLogLevel_t, std::string_view) {
        ++calls;
        throw std::runtime_error("of the logger");
    });
    THROWS(plan.analyze(handle), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    CHECK(calls == 1 && lines.size() == before + 1);
    handle.setLogger({});
    THROWS(plan.analyze(handle), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    CHECK(calls == 1);
    // A handle is move-assigned to another one that has a logger.
    tarsia::Handle another(backend);
    another.setLogger([&](tarsiaLogLevel_t, std::string_view) { ++calls; });
    handle = std::move(another);
    CHECK(another.get() == nullptr);
    THROWS(plan.analyze(handle), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    CHECK(calls == 2);
    logged = std::move(handle);
    THROWS(plan.analyze(logged), "tarsiaPlan_analyze", TARSIA_STATUS_INVALID_STATE, "");
    CHECK(calls == 3);

    if (backend == TARSIA_BACKEND_CUDA)
        return; // the allocator here has memory of the host
    {
        tarsia::Handle counted(backend);
        const auto alloc = [](void *, std::size_t bytes, void *) -> void * {
            ++taken;
            return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        };
        const auto free = [](void *, void *memory, std::size_t, void *) {
            ++given;
            std::free(memory);
        };
        counted.setAllocator(alloc, free, nullptr);
        auto copy = tarsia::SpMVPlan(counted, TARSIA_OPERATION_NON_TRANSPOSE, p.A, p.vecX, p.vecY,
                                     TARSIA_SPMV_ALG_SELL);
        copy.analyze(counted);
        copy.execute(counted, 1, p.vecX, 0, p.vecY);
        THROWS(counted.setAllocator(alloc, free, nullptr), "tarsiaSetAllocator",
               TARSIA_STATUS_INVALID_STATE, "");
    }
    CHECK(given == taken && (taken > 0 || backend == TARSIA_BACKEND_REFERENCE));
}

// Products do not call operator new, whatever the form of alpha and beta, and keep the pointer mode
// of C calls.
void products(tarsiaBackend_t backend) {
    Problem p(backend);
    auto plan = p.plan();
    plan.analyze(p.handle);
    const tarsia::DeviceBuffer scalars(p.handle, Vector{2, 0});
    const tarsia::DeviceScalar two(scalars.data()), zero(scalars.data() + 1);
    tarsia::check(tarsiaSetPointerMode(p.handle.get(), TARSIA_POINTER_MODE_DEVICE),
                  "tarsiaSetPointerMode");
    const long before = allocations;
    plan.execute(p.handle, 1.0, p.vecX, 0.0, p.vecY);
    plan.execute(p.handle, two, p.vecX, zero, p.vecY);
    plan.executeInto(p.handle, 1.0F, p.vecX, 0, p.vecY, p.vecY);
    plan.updateValues(p.handle, p.values);
    CHECK(allocations == before);
    CHECK(p.y.toVector() == (Vector{201, 30}));
    tarsiaPointerMode_t mode = TARSIA_POINTER_MODE_HOST;
    tarsia::check(tarsiaGetPointerMode(p.handle.get(), &mode), "tarsiaGetPointerMode");
    CHECK(mode == TARSIA_POINTER_MODE_DEVICE);
    // A call that fails keeps it, too.
    THROWS(plan.execute(p.handle, 1.0, p.vecY, 0.0, p.vecY), "tarsiaSpMV",
           TARSIA_STATUS_INVALID_VALUE, "x");
    mode = TARSIA_POINTER_MODE_HOST;
    tarsia::check(tarsiaGetPointerMode(p.handle.get(), &mode), "tarsiaGetPointerMode");
    CHECK(mode == TARSIA_POINTER_MODE_DEVICE);
    CHECK(allocations > before); // they are counted
}

// Arrays of every kind, with sizes that fit: spans, C arrays, std::array. (Of the CPU backends:
// host memory.)
void arrays(tarsiaBackend_t backend) {
    if (backend == TARSIA_BACKEND_CUDA)
        return;
    const tarsia::Handle handle(backend);
    static const int offsets[] = {0, 2, 3};
    const std::array<int, 3> columns = {0, 2, 1};
    Vector values = {1, 2, 3};
    const Vector x = {1, 10, 100};
    Vector y(2);
    const tarsia::span<double> viewOfValues(values);
    const auto A = tarsia::ConstSparseMatrix::csr(2, 3, offsets, columns, viewOfValues);
    tarsia::spmv(handle, TARSIA_OPERATION_NON_TRANSPOSE, 1, A, tarsia::ConstDenseVector(x), 0,
                 tarsia::DenseVector(tarsia::span<double>(y)));
    CHECK(y == (Vector{201, 30}));
    tarsia::DenseVector vecY(y);
    Vector z(2);
    vecY.setValues(z.data());
    CHECK(vecY.values<double>() == z.data());
    std::vector<int> ownOffsets(std::begin(offsets), std::end(offsets)),
        ownColumns(columns.begin(), columns.end());
    auto B = tarsia::SparseMatrix::csr(2, 3, ownOffsets, ownColumns, values);
    Vector others = {3, 2, 1};
    B.setValues(others.data());
    CHECK(B.values<double>() == others.data());
}

} // namespace

int main(int, char **arguments) {
    const auto backend = backendOf(arguments[1]);
    errors(backend);
    moves(backend);
    ends(backend);
    settings(backend, arguments[2]);
    callbacks(backend);
    products(backend);
    arrays(backend);
    std::printf("%d checks\n", checks);
}
