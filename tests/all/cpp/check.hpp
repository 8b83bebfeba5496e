// Helpers of the programs in this folder: counted checks, and matrices for plain loops.

#ifndef CHECK_HPP
#define CHECK_HPP

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tarsia.hpp>

inline int checks = 0;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        ++checks;                                                                                  \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);     \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

// Checks that the expression throws a tarsia::Error of this function and status whose text has
// these words.
#define THROWS(expression, functionName, statusCode, words)                                        \
    do {                                                                                           \
        bool thrown = false;                                                                       \
        try {                                                                                      \
            static_cast<void>(expression);                                                         \
        } catch (const tarsia::Error &error) {                                                     \
            thrown = true;                                                                         \
            const std::string text = error.text(), name = tarsiaGetErrorName(error.status());      \
            if (error.function() != std::string(functionName) || error.status() != (statusCode) || \
                text.find(words) == std::string::npos ||                                           \
                error.what() != error.function() + (": " + name) + ": " + text) {                  \
                std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error.what());             \
                std::exit(1);                                                                      \
            }                                                                                      \
        }                                                                                          \
        CHECK(thrown);                                                                             \
    } while (false)

inline tarsiaBackend_t backendOf(const std::string &name) {
    if (name == "cuda")
        return TARSIA_BACKEND_CUDA;
    return name == "reference" ? TARSIA_BACKEND_REFERENCE : TARSIA_BACKEND_HOST;
}

template <class T> struct RealOf { using type = T; };
template <class T> struct RealOf<std::complex<T>> { using type = T; };

// Returns a random number with a full mantissa, in both parts if it is complex.
template <class T> T number(std::mt19937_64 &random) {
    std::uniform_real_distribution<typename RealOf<T>::type> part(-1, 1);
    if constexpr (std::is_floating_point_v<T>)
        return part(random);
    else {
        const auto real = part(random);
        return T(real, part(random));
    }
}

template <class T> T conjugate(const T &value) {
    if constexpr (std::is_floating_point_v<T>)
        return value;
    else
        return std::conj(value);
}

template <class T> std::vector<T> numbers(std::size_t count, std::mt19937_64 &random) {
    std::vector<T> all(count);
    for (auto &value : all)
        value = number<T>(random);
    return all;
}

// Dense matrix in row-major order.
template <class T> struct Dense {
    std::int64_t rows, cols;
    std::vector<T> values;
    Dense(std::int64_t m, std::int64_t n)
        : rows(m), cols(n), values(static_cast<std::size_t>(m * n)) {}
    T &at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * cols + j)]; }
    const T &at(std::int64_t i, std::int64_t j) const {
        return values[static_cast<std::size_t>(i * cols + j)];
    }
    // Returns op(this).
    Dense op(tarsiaOperation_t operation) const {
        if (operation == TARSIA_OPERATION_NON_TRANSPOSE)
            return *this;
        Dense out(cols, rows);
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < cols; ++j)
                out.at(j, i) =
                    operation == TARSIA_OPERATION_TRANSPOSE ? at(i, j) : conjugate(at(i, j));
        return out;
    }
};

template <class T> Dense<T> product(const Dense<T> &a, const Dense<T> &b) {
    Dense<T> c(a.rows, b.cols);
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t k = 0; k < a.cols; ++k)
            for (std::int64_t j = 0; j < b.cols; ++j)
                c.at(i, j) += a.at(i, k) * b.at(k, j);
    return c;
}

// Returns a random matrix with about a quarter of its elements nonzero, and an empty row.
template <class T> Dense<T> sparse(std::int64_t rows, std::int64_t cols, std::mt19937_64 &random) {
    Dense<T> a(rows, cols);
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j)
            if (i != 3 && random() % 4 == 0)
                a.at(i, j) = number<T>(random);
    return a;
}

// CSR or CSC arrays of the elements that are not 0.
template <class Index, class T> struct Compressed {
    std::vector<Index> offsets, indices;
    std::vector<T> values;
    Compressed(const Dense<T> &a, bool byRows, Index base) : offsets{base} {
        for (std::int64_t line = 0; line < (byRows ? a.rows : a.cols); ++line) {
            for (std::int64_t at = 0; at < (byRows ? a.cols : a.rows); ++at) {
                const T value = byRows ? a.at(line, at) : a.at(at, line);
                if (value != T{}) {
                    indices.push_back(static_cast<Index>(at) + base);
                    values.push_back(value);
                }
            }
            offsets.push_back(static_cast<Index>(values.size()) + base);
        }
    }
};

// Returns whether numbers differ by some hundred roundings at most; sums here have some ten terms.
template <class T> bool near(const std::vector<T> &found, const std::vector<T> &expected) {
    if (found.size() != expected.size())
        return false;
    for (std::size_t i = 0; i < found.size(); ++i)
        if (!(std::abs(found[i] - expected[i]) <=
              300 * std::numeric_limits<typename RealOf<T>::type>::epsilon()))
            return false;
    return true;
}

#endif
