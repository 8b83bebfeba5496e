// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A part of tarsia.hpp, which programs include: handles, and arrays in a backend's memory.

#ifndef TARSIA_HPP_HANDLE
#define TARSIA_HPP_HANDLE

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core.hpp"

namespace tarsia {

// ---- handle ----

// The library's context: backend, stream, workspace. One per concurrent stream.
//
// There is no pointer mode to set: Scalar and DeviceScalar say at each call where alpha and beta
// are.
class Handle {
  public:
    // A log line; it ends when the function returns. No exception leaves a logger: what it throws
    // is lost.
    using Logger = std::function<void(tarsiaLogLevel_t level, std::string_view message)>;

    // On the device of the current CUDA context, else on device 0, else on the CPU.
    Handle() {
        tarsiaHandle_t raw = nullptr;
        TARSIA_HPP_CALL(tarsiaCreate, &raw);
        raw_ = Raw(raw);
    }
    explicit Handle(tarsiaBackend_t backend, int device = 0) {
        tarsiaHandle_t raw = nullptr;
        TARSIA_HPP_CALL(tarsiaCreateWithBackend, &raw, backend, device);
        raw_ = Raw(raw);
    }
    // Owns a handle that C code has made.
    static Handle adopt(tarsiaHandle_t raw) noexcept { return Handle(Raw(raw)); }

    Handle(Handle &&other) noexcept = default;
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            end();
            raw_ = std::move(other.raw_);
            logger_ = std::move(other.logger_);
        }
        return *this;
    }
    ~Handle() { end(); }

    // For calls of C functions; the handle stays this object's.
    tarsiaHandle_t get() const noexcept { return raw_.get(); }
    // Destroys the handle now, and throws if that cannot be done (see tarsiaDestroy).
    void destroy() {
        check(raw_.destroy(), "tarsiaDestroy");
        logger_.reset();
    }

    // A cudaStream_t; nullptr is the default stream.
    void setStream(void *stream) { TARSIA_HPP_CALL(tarsiaSetStream, get(), stream); }
    void *stream() const {
        void *stream = nullptr;
        TARSIA_HPP_CALL(tarsiaGetStream, get(), &stream);
        return stream;
    }
    void setDeterministic(bool deterministic) {
        TARSIA_HPP_CALL(tarsiaSetDeterministic, get(), deterministic ? 1 : 0);
    }
    bool deterministic() const {
        int deterministic = 0;
        TARSIA_HPP_CALL(tarsiaGetDeterministic, get(), &deterministic);
        return deterministic != 0;
    }
    // For development: every product compares the arrays with what was analyzed.
    void setChecks(bool checks) { TARSIA_HPP_CALL(tarsiaSetChecks, get(), checks ? 1 : 0); }
    bool checks() const {
        int checks = 0;
        TARSIA_HPP_CALL(tarsiaGetChecks, get(), &checks);
        return checks != 0;
    }
    // The folder in which analyses keep what they decide; nullptr: none.
    void setPlanCache(const char *folder) { TARSIA_HPP_CALL(tarsiaSetPlanCache, get(), folder); }
    void setPlanCache(const std::string &folder) { setPlanCache(folder.c_str()); }
    // Memory for plans and workspace. Functions and ctx live as long as the handle and its plans,
    // and throw nothing.
    void setAllocator(tarsiaAllocFn_t alloc, tarsiaFreeFn_t free, void *ctx) {
        TARSIA_HPP_CALL(tarsiaSetAllocator, get(), alloc, free, ctx);
    }
    // What the handle's calls log. An empty function stops it. Not to be called by the logger
    // itself.
    void setLogger(Logger logger) {
        if (!logger) {
            TARSIA_HPP_CALL(tarsiaSetLogger, get(), nullptr, nullptr);
            logger_.reset();
            return;
        }
        auto next = std::make_unique<Logger>(std::move(logger));
        TARSIA_HPP_CALL(tarsiaSetLogger, get(), log, next.get());
        logger_ = std::move(next);
    }
    // Scratch memory of products, in the backend's memory; nullptr and 0: the handle's own again.
    void setWorkspace(void *memory, std::size_t bytes) {
        TARSIA_HPP_CALL(tarsiaSetWorkspace, get(), memory, bytes);
    }
    tarsiaBackend_t backend() const {
        tarsiaBackend_t backend = TARSIA_BACKEND_AUTO;
        TARSIA_HPP_CALL(tarsiaGetBackend, get(), &backend);
        return backend;
    }
    int device() const {
        int device = 0;
        TARSIA_HPP_CALL(tarsiaGetDevice, get(), &device);
        return device;
    }
    // Waits for all work on the stream.
    void synchronize() const { TARSIA_HPP_CALL(tarsiaSynchronize, get()); }

  private:
    using Raw = detail::Owner<tarsiaHandle_t, tarsiaDestroy>;
    explicit Handle(Raw raw) noexcept : raw_(std::move(raw)) {}

    static void log(void *ctx, tarsiaLogLevel_t level, const char *message) noexcept {
        try {
            (*static_cast<Logger *>(ctx))(level, message);
        } catch (...) { // the library is called from C and passes no exceptions on
        }
    }
    // A handle that cannot be destroyed now still has the logger.
    void end() noexcept {
        if (!raw_.end())
            static_cast<void>(logger_.release());
        logger_.reset();
    }

    std::unique_ptr<Logger> logger_;
    Raw raw_;
};

// ---- memory ----

// Elements in the memory of a handle's backend (of the CPU backends: host memory). The handle must
// outlive the buffer. Copies are in the order of that handle's stream.
template <class T> class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                  "elements are copied as bytes");

  public:
    using value_type = T;

    DeviceBuffer() noexcept = default;
    // Elements without values.
    DeviceBuffer(const Handle &handle, std::size_t size) : handle_(handle.get()) {
        if (size > std::numeric_limits<std::size_t>::max() / sizeof(T))
            throw Error("tarsia::DeviceBuffer", TARSIA_STATUS_ALLOC_FAILED,
                        std::to_string(size) + " elements are more than memory holds");
        void *data = nullptr;
        TARSIA_HPP_CALL(tarsiaMalloc, handle_, &data, size * sizeof(T));
        data_ = static_cast<T *>(data);
        size_ = size;
    }
    // A copy of an array in host memory.
    template <class Range, class = detail::IfArray<const Range>>
    DeviceBuffer(const Handle &handle, const Range &host) : DeviceBuffer(handle, std::size(host)) {
        copyFrom(host);
    }
    DeviceBuffer(DeviceBuffer &&other) noexcept { swap(other); }
    DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
        DeviceBuffer(std::move(other)).swap(*this);
        return *this;
    }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;
    ~DeviceBuffer() {
        if (data_)
            static_cast<void>(tarsiaFree(handle_, data_));
    }

    T *data() noexcept { return data_; }
    const T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::size_t bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }

    // From an array in host memory of as many elements, which may be used again when this returns.
    template <class Range, class = detail::IfArray<const Range>> void copyFrom(const Range &host) {
        static_assert(std::is_same_v<std::remove_cv_t<detail::Element<const Range>>, T>,
                      "the array has elements of another type");
        detail::expectLength("tarsia::DeviceBuffer::copyFrom", "host", detail::length(host),
                             "the buffer's", detail::length(*this));
        if (size_ > 0)
            TARSIA_HPP_CALL(tarsiaMemcpyToDevice, handle_, data_, std::data(host), bytes());
    }
    // To an array in host memory of as many elements. Waits until it is written.
    template <class Range, class = detail::IfArray<std::remove_reference_t<Range>>>
    void copyTo(Range &&host) const {
        static_assert(std::is_same_v<detail::Element<std::remove_reference_t<Range>>, T>,
                      "the array has elements of another type");
        detail::expectLength("tarsia::DeviceBuffer::copyTo", "host", detail::length(host),
                             "the buffer's", detail::length(*this));
        if (size_ > 0)
            TARSIA_HPP_CALL(tarsiaMemcpyToHost, handle_, std::data(host), data_, bytes());
    }
    // A copy in host memory.
    std::vector<T> toVector() const {
        std::vector<T> host(size_);
        copyTo(host);
        return host;
    }

    void swap(DeviceBuffer &other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

  private:
    tarsiaHandle_t handle_ = nullptr;
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
// DeviceBuffer(handle, vector) has the vector's type of elements.
template <class Range, class = detail::IfArray<const Range>>
DeviceBuffer(const Handle &, const Range &)
    -> DeviceBuffer<std::remove_cv_t<detail::Element<const Range>>>;

} // namespace tarsia

#endif // TARSIA_HPP_HANDLE
