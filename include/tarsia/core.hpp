// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A part of tarsia.hpp, which programs include: errors, types of elements, arrays, what owns
// objects.

#ifndef TARSIA_HPP_CORE
#define TARSIA_HPP_CORE

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_span
#include <ranges>
#include <span>
#endif

#include "../tarsia.h"

namespace tarsia {

// ---- errors ----

// A call that failed. what() is "function: NAME_OF_THE_STATUS: text".
class Error : public std::runtime_error {
  public:
    Error(const char *function, tarsiaStatus_t status, const std::string &text)
        : std::runtime_error(std::string(function) + ": " + tarsiaGetErrorName(status) + ": " +
                             text),
          function_(function), status_(status),
          text_(std::strlen(function) + std::strlen(tarsiaGetErrorName(status)) + 4) {}

    tarsiaStatus_t status() const noexcept { return status_; }
    // The function that failed: of tarsia.h, or of this header where it has refused an argument. A
    // string that lives as long as the program.
    const char *function() const noexcept { return function_; }
    // Which argument was wrong, what was found and what was expected. Lives as long as the
    // exception.
    const char *text() const noexcept { return what() + text_; }

  private:
    const char *function_;
    tarsiaStatus_t status_;
    std::size_t text_; // where it begins in what()
};

// Text of the calling thread's last C call that failed; empty before the first failure.
inline std::string lastErrorMessage() {
    std::string text(512, '\0');
    while (tarsiaGetLastErrorMessage(text.data(), text.size()) == TARSIA_STATUS_SUCCESS) {
        const std::size_t length = std::strlen(text.c_str());
        if (length + 1 < text.size()) {
            text.resize(length);
            return text;
        }
        text.assign(2 * text.size(), '\0'); // a text that fills the buffer may have been cut
    }
    return {};
}

// Throws unless a C function has succeeded; for programs that call some of them themselves.
// function: a string literal.
inline void check(tarsiaStatus_t status, const char *function) {
    if (status != TARSIA_STATUS_SUCCESS)
        throw Error(function, status, lastErrorMessage());
}

// A call of a C function that throws if it fails; undefined at the end of tarsia.hpp.
#define TARSIA_HPP_CALL(function, ...) ::tarsia::check(function(__VA_ARGS__), #function)

// ---- types of elements ----

// 16-bit values as arrays have them. They are for storage: the library sums them in 32 bits. An
// array of another type of this format, such as std::uint16_t, is passed as
// reinterpret_cast<tarsia::half *>(array).
struct half {
    std::uint16_t bits;
};
struct bfloat16 {
    std::uint16_t bits;
};

// The library's type of a C++ type, DataType<T>::value. A program's own type of the same
// representation is made known by
//     template <> struct tarsia::DataType<MyHalf> : tarsia::DataTypeIs<TARSIA_R_16F> {};
// CUDA's __half and __nv_bfloat16 are known where cuda_fp16.h and cuda_bf16.h are included before
// this.
template <tarsiaDataType_t type> struct DataTypeIs {
    static constexpr tarsiaDataType_t value = type;
};
template <class T> struct DataType {
    static_assert(sizeof(T) == 0,
                  "not a type of values: float, double, std::complex of these, "
                  "tarsia::half, tarsia::bfloat16, or a specialisation of DataType");
};
template <> struct DataType<float> : DataTypeIs<TARSIA_R_32F> {};
template <> struct DataType<double> : DataTypeIs<TARSIA_R_64F> {};
template <> struct DataType<std::complex<float>> : DataTypeIs<TARSIA_C_32F> {};
template <> struct DataType<std::complex<double>> : DataTypeIs<TARSIA_C_64F> {};
template <> struct DataType<half> : DataTypeIs<TARSIA_R_16F> {};
template <> struct DataType<bfloat16> : DataTypeIs<TARSIA_R_16BF> {};
#ifdef __CUDA_FP16_TYPES_EXIST__
template <> struct DataType<__half> : DataTypeIs<TARSIA_R_16F> {};
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
template <> struct DataType<__nv_bfloat16> : DataTypeIs<TARSIA_R_16BF> {};
#endif
template <class T>
inline constexpr tarsiaDataType_t dataTypeOf = DataType<std::remove_cv_t<T>>::value;

// The library's type of offsets and indices: signed integers of 32 or 64 bits.
template <class T> struct IndexType {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T> &&
                      (sizeof(T) == 4 || sizeof(T) == 8),
                  "offsets and indices are signed integers of 32 or 64 bits");
    static constexpr tarsiaIndexType_t value = sizeof(T) == 4 ? TARSIA_INDEX_32I : TARSIA_INDEX_64I;
};
template <class T>
inline constexpr tarsiaIndexType_t indexTypeOf = IndexType<std::remove_cv_t<T>>::value;

// The type in which products of operands of these types are summed, unless a program names another
// (TF32, PEDANTIC): complex if any is complex, in 64 bits if any has 64 bits, else in 32.
inline tarsiaComputeType_t computeTypeOf(std::initializer_list<tarsiaDataType_t> types) noexcept {
    bool isComplex = false, isDouble = false;
    for (const tarsiaDataType_t type : types) {
        isComplex = isComplex || type == TARSIA_C_32F || type == TARSIA_C_64F;
        isDouble = isDouble || type == TARSIA_R_64F || type == TARSIA_C_64F;
    }
    if (isComplex)
        return isDouble ? TARSIA_COMPUTE_C_64F : TARSIA_COMPUTE_C_32F;
    return isDouble ? TARSIA_COMPUTE_64F : TARSIA_COMPUTE_32F;
}

// The type that alpha and beta of a compute type have.
inline tarsiaDataType_t scalarTypeOf(tarsiaComputeType_t type) noexcept {
    switch (type) {
    case TARSIA_COMPUTE_C_64F:
        return TARSIA_C_64F;
    case TARSIA_COMPUTE_C_32F:
        return TARSIA_C_32F;
    case TARSIA_COMPUTE_64F:
    case TARSIA_COMPUTE_64F_PEDANTIC:
        return TARSIA_R_64F;
    default:
        return TARSIA_R_32F;
    }
}

// ---- arrays ----

// A pointer and a number of elements: std::span where there is one (C++20), else this.
#ifdef __cpp_lib_span
template <class T> using span = std::span<T>;
#else
template <class T> class span {
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    // From std::vector, std::array, a C array or another span, but not from const elements to
    // others.
    template <class Range, class = std::enable_if_t<std::is_convertible_v<
                               decltype(std::data(std::declval<Range &>())), T *>>>
    constexpr span(Range &range) noexcept : data_(std::data(range)), size_(std::size(range)) {}
    template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
    constexpr span(const span<U> &other) noexcept : data_(other.data()), size_(other.size()) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

namespace detail {

// What std::data and std::size take and has its elements one after another: std::vector,
// std::array, C arrays, spans, DeviceBuffer.
template <class Range, class = void> struct IsArray : std::false_type {};
template <class Range>
struct IsArray<Range, std::void_t<decltype(std::data(std::declval<Range &>())),
                                  decltype(std::size(std::declval<Range &>()))>>
    : std::is_pointer<decltype(std::data(std::declval<Range &>()))> {};

template <class Range>
using Element = std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>;

template <class Range> struct IsSpan : std::false_type {};
template <class T> struct IsSpan<span<T>> : std::true_type {};

// Whether the elements live longer than the expression that an argument is: it is the name of an
// object, or it is a view of elements of others.
template <class Range>
inline constexpr bool isBorrowed =
#ifdef __cpp_lib_span
    std::ranges::enable_borrowed_range<std::remove_cv_t<std::remove_reference_t<Range>>> ||
#endif
    IsSpan<std::remove_cv_t<std::remove_reference_t<Range>>>::value ||
    std::is_lvalue_reference_v<Range>;

template <class... Ranges>
using IfArray = std::enable_if_t<(IsArray<std::remove_reference_t<Ranges>>::value && ...)>;

// For arguments that are declared `Range &&` and whose address is kept. They are taken first and
// refused here, since this says why.
template <class... Ranges> constexpr void expectBorrowed() noexcept {
    static_assert((isBorrowed<Ranges> && ...),
                  "a temporary array is gone after this statement, and its address is kept: give "
                  "the array a name");
}

template <class Range> std::int64_t length(const Range &range) {
    return static_cast<std::int64_t>(std::size(range));
}

[[noreturn]] inline void refuse(const char *function, const std::string &text) {
    throw Error(function, TARSIA_STATUS_INVALID_VALUE, text);
}

// An array must have as many elements as the other arguments say; negative numbers are left to the
// C function.
inline void expectLength(const char *function, const char *name, std::int64_t found,
                         const char *reason, std::int64_t expected) {
    if (expected >= 0 && found != expected)
        refuse(function, std::string(name) + ": " + std::to_string(found) + " elements, expected " +
                             reason + " = " + std::to_string(expected));
}

inline const char *nameOf(tarsiaDataType_t type) noexcept {
    switch (type) {
    case TARSIA_R_32F:
        return "TARSIA_R_32F";
    case TARSIA_R_64F:
        return "TARSIA_R_64F";
    case TARSIA_R_16F:
        return "TARSIA_R_16F";
    case TARSIA_R_16BF:
        return "TARSIA_R_16BF";
    case TARSIA_C_32F:
        return "TARSIA_C_32F";
    case TARSIA_C_64F:
        return "TARSIA_C_64F";
    default:
        return "another tarsiaDataType_t";
    }
}

inline void expectType(const char *function, const char *name, tarsiaDataType_t found,
                       tarsiaDataType_t expected) {
    if (found != expected)
        refuse(function, std::string(name) + ": elements of type " + nameOf(found) + ", expected " +
                             nameOf(expected));
}

// Whether a product of counts, none negative, is this number.
inline bool isProduct(std::int64_t found, std::initializer_list<std::int64_t> factors) noexcept {
    for (const std::int64_t factor : factors)
        if (factor == 0)
            return found == 0;
    for (const std::int64_t factor : factors) {
        if (found % factor != 0)
            return false;
        found /= factor;
    }
    return found == 1;
}

// An object of the library that ends with its owner.
template <class Raw, auto destroyRaw> class Owner {
  public:
    constexpr Owner() noexcept = default;
    constexpr explicit Owner(Raw raw) noexcept : raw_(raw) {}
    Owner(Owner &&other) noexcept : raw_(other.release()) {}
    Owner &operator=(Owner &&other) noexcept {
        if (this != &other) {
            end();
            raw_ = other.release();
        }
        return *this;
    }
    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;
    ~Owner() { end(); }

    Raw get() const noexcept { return raw_; }
    Raw release() noexcept { return std::exchange(raw_, nullptr); }
    // The status of the object's end. The owner is empty afterwards if that is SUCCESS.
    tarsiaStatus_t destroy() noexcept {
        const tarsiaStatus_t status = raw_ ? destroyRaw(raw_) : TARSIA_STATUS_SUCCESS;
        if (status == TARSIA_STATUS_SUCCESS)
            raw_ = nullptr;
        return status;
    }
    // Returns false where the object cannot be destroyed now; it is left to the library then.
    bool end() noexcept {
        const bool ended = destroy() == TARSIA_STATUS_SUCCESS;
        raw_ = nullptr;
        return ended;
    }

  private:
    Raw raw_ = nullptr;
};

} // namespace detail

// ---- the library ----

// Version of the library that runs, as TARSIA_VERSION is that of tarsia.h.
inline int version() {
    int version = 0;
    TARSIA_HPP_CALL(tarsiaGetVersion, &version);
    return version;
}

// Threads of the host backend, for all handles; 0: the default again.
inline void setNumThreads(int n) { TARSIA_HPP_CALL(tarsiaSetNumThreads, n); }
inline int numThreads() {
    int n = 0;
    TARSIA_HPP_CALL(tarsiaGetNumThreads, &n);
    return n;
}

} // namespace tarsia

#endif // TARSIA_HPP_CORE
