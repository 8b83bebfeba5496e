// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A part of tarsia.hpp, which programs include: descriptors of sparse and dense matrices and of
// vectors.

#ifndef TARSIA_HPP_MATRICES
#define TARSIA_HPP_MATRICES

#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>

#include "handle.hpp"

namespace tarsia {

// ---- sparse matrices ----

// A descriptor of a sparse matrix, of either kind below: what products take as A and B.
class AnySparseMatrix {
  public:
    tarsiaConstSpMatDescr_t get() const noexcept { return raw_.get(); }

    std::int64_t rows() const { return size().rows; }
    std::int64_t cols() const { return size().cols; }
    // Stored entries; of BSR those of whole blocks.
    std::int64_t nnz() const { return size().nnz; }
    tarsiaFormat_t format() const {
        tarsiaFormat_t format = TARSIA_FORMAT_CSR;
        TARSIA_HPP_CALL(tarsiaSpMatGetFormat, get(), &format);
        return format;
    }
    tarsiaIndexBase_t indexBase() const {
        tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO;
        TARSIA_HPP_CALL(tarsiaSpMatGetIndexBase, get(), &base);
        return base;
    }
    tarsiaDataType_t valueType() const {
        tarsiaDataType_t type = TARSIA_R_32F;
        switch (format()) {
        case TARSIA_FORMAT_CSR:
            TARSIA_HPP_CALL(tarsiaConstCsrGet, get(), nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, nullptr, &type);
            break;
        case TARSIA_FORMAT_CSC:
            TARSIA_HPP_CALL(tarsiaConstCscGet, get(), nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, nullptr, &type);
            break;
        case TARSIA_FORMAT_COO:
            TARSIA_HPP_CALL(tarsiaConstCooGet, get(), nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, &type);
            break;
        case TARSIA_FORMAT_BSR:
            TARSIA_HPP_CALL(tarsiaConstBsrGet, get(), nullptr, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &type, nullptr);
            break;
        case TARSIA_FORMAT_TILE:
            TARSIA_HPP_CALL(tarsiaTileGet, get(), nullptr, nullptr, nullptr, nullptr, &type);
            break;
        }
        return type;
    }
    // The value array, to read. T must be its type.
    template <class T> const T *values() const {
        detail::expectType("tarsia::SparseMatrix::values", "T", dataTypeOf<T>, valueType());
        const void *values = nullptr;
        TARSIA_HPP_CALL(tarsiaConstSpMatGetValues, get(), &values);
        return static_cast<const T *>(values);
    }

    // Whether the indices of each row (CSC: column) are known to ascend (see tarsiaSpMatGetSorted).
    bool sorted() const {
        int sorted = 0;
        TARSIA_HPP_CALL(tarsiaSpMatGetSorted, get(), &sorted);
        return sorted != 0;
    }

    // Reads the pattern, throws if it is wrong, and tells what else there is to know (see
    // tarsiaCheckSpMat). Blocks.
    struct Pattern {
        bool sorted, unique;
    };
    Pattern checkPattern(const Handle &handle) const {
        int sorted = 0, unique = 0;
        TARSIA_HPP_CALL(tarsiaCheckSpMat, handle.get(), get(), &sorted, &unique);
        return {sorted != 0, unique != 0};
    }

  protected:
    using Raw = detail::Owner<tarsiaConstSpMatDescr_t, tarsiaDestroySpMat>;
    AnySparseMatrix() noexcept = default;
    AnySparseMatrix(AnySparseMatrix &&) noexcept = default;
    AnySparseMatrix &operator=(AnySparseMatrix &&) noexcept = default;
    ~AnySparseMatrix() = default;
    explicit AnySparseMatrix(tarsiaConstSpMatDescr_t raw) noexcept : raw_(raw) {}

  private:
    struct Size {
        std::int64_t rows, cols, nnz;
    };
    Size size() const {
        Size size{};
        TARSIA_HPP_CALL(tarsiaSpMatGetSize, get(), &size.rows, &size.cols, &size.nnz);
        return size;
    }

    Raw raw_;
};

// SparseMatrix and ConstSparseMatrix are this: a descriptor of arrays that may be written, as the C
// of a SpGEMM needs, or of arrays that are only read, whether they are const or not.
//
// Each format has two functions: one takes arrays whose sizes are known and must fit the shape; the
// other takes pointers and the number of entries. Both take types from the arrays. Arrays are in
// the backend's memory. The first takes no temporary std::vector or DeviceBuffer: the descriptor
// would outlive it.
template <bool isConst> class BasicSparseMatrix : public AnySparseMatrix {
  public:
    using Descriptor = std::conditional_t<isConst, tarsiaConstSpMatDescr_t, tarsiaSpMatDescr_t>;

    // Empty, for an assignment later.
    BasicSparseMatrix() noexcept = default;
    // Owns a descriptor that C code has made.
    static BasicSparseMatrix adopt(Descriptor raw) noexcept { return BasicSparseMatrix(raw); }
    // For calls of C functions; the descriptor stays this object's.
    Descriptor get() const noexcept { return const_cast<Descriptor>(AnySparseMatrix::get()); }

    // rowOffsets: rows + 1, colInd and values: nnz elements.
    template <class Offset, class Index, class Value>
    static BasicSparseMatrix csr(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                 Offset *rowOffsets, Index *colInd, Value *values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        writable<Offset, Index, Value>();
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstCsr, &raw, rows, cols, nnz, rowOffsets, colInd, values,
                            indexTypeOf<Offset>, indexTypeOf<Index>, base, dataTypeOf<Value>);
        else
            TARSIA_HPP_CALL(tarsiaCreateCsr, &raw, rows, cols, nnz, rowOffsets, colInd, values,
                            indexTypeOf<Offset>, indexTypeOf<Index>, base, dataTypeOf<Value>);
        return BasicSparseMatrix(raw);
    }
    template <class Offsets, class Indices, class Values,
              class = detail::IfArray<Offsets, Indices, Values>>
    static BasicSparseMatrix csr(std::int64_t rows, std::int64_t cols, Offsets &&rowOffsets,
                                 Indices &&colInd, Values &&values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        detail::expectBorrowed<Offsets, Indices, Values>();
        const std::int64_t nnz = detail::length(values);
        const char *const function = "tarsia::SparseMatrix::csr";
        expectOffsets(function, "rowOffsets", rowOffsets, "rows + 1", rows);
        detail::expectLength(function, "colInd", detail::length(colInd), "those of values", nnz);
        return csr(rows, cols, nnz, std::data(rowOffsets), std::data(colInd), std::data(values),
                   base);
    }

    // colOffsets: cols + 1, rowInd and values: nnz elements.
    template <class Offset, class Index, class Value>
    static BasicSparseMatrix csc(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                 Offset *colOffsets, Index *rowInd, Value *values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        writable<Offset, Index, Value>();
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstCsc, &raw, rows, cols, nnz, colOffsets, rowInd, values,
                            indexTypeOf<Offset>, indexTypeOf<Index>, base, dataTypeOf<Value>);
        else
            TARSIA_HPP_CALL(tarsiaCreateCsc, &raw, rows, cols, nnz, colOffsets, rowInd, values,
                            indexTypeOf<Offset>, indexTypeOf<Index>, base, dataTypeOf<Value>);
        return BasicSparseMatrix(raw);
    }
    template <class Offsets, class Indices, class Values,
              class = detail::IfArray<Offsets, Indices, Values>>
    static BasicSparseMatrix csc(std::int64_t rows, std::int64_t cols, Offsets &&colOffsets,
                                 Indices &&rowInd, Values &&values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        detail::expectBorrowed<Offsets, Indices, Values>();
        const std::int64_t nnz = detail::length(values);
        const char *const function = "tarsia::SparseMatrix::csc";
        expectOffsets(function, "colOffsets", colOffsets, "cols + 1", cols);
        detail::expectLength(function, "rowInd", detail::length(rowInd), "those of values", nnz);
        return csc(rows, cols, nnz, std::data(colOffsets), std::data(rowInd), std::data(values),
                   base);
    }

    // rowInd, colInd and values: nnz elements.
    template <class Index, class Value>
    static BasicSparseMatrix coo(std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                                 Index *rowInd, Index *colInd, Value *values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        writable<Index, Index, Value>();
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstCoo, &raw, rows, cols, nnz, rowInd, colInd, values,
                            indexTypeOf<Index>, base, dataTypeOf<Value>);
        else
            TARSIA_HPP_CALL(tarsiaCreateCoo, &raw, rows, cols, nnz, rowInd, colInd, values,
                            indexTypeOf<Index>, base, dataTypeOf<Value>);
        return BasicSparseMatrix(raw);
    }
    template <class RowIndices, class ColIndices, class Values,
              class = detail::IfArray<RowIndices, ColIndices, Values>>
    static BasicSparseMatrix coo(std::int64_t rows, std::int64_t cols, RowIndices &&rowInd,
                                 ColIndices &&colInd, Values &&values,
                                 tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        detail::expectBorrowed<RowIndices, ColIndices, Values>();
        const char *const function = "tarsia::SparseMatrix::coo";
        const std::int64_t nnz = detail::length(values);
        detail::expectLength(function, "rowInd", detail::length(rowInd), "those of values", nnz);
        detail::expectLength(function, "colInd", detail::length(colInd), "those of values", nnz);
        // Both may be read through pointers to const, whichever of them is of const elements.
        using Index = std::conditional_t<isConst, const detail::Element<RowIndices>,
                                         detail::Element<RowIndices>>;
        return coo<Index>(rows, cols, nnz, std::data(rowInd), std::data(colInd), std::data(values),
                          base);
    }

    // rowOffsets: blockRows + 1, colInd: blockNnz, values: blockNnz * rowBlockSize * colBlockSize
    // elements, those of a block in blockOrder.
    template <class Offset, class Index, class Value>
    static BasicSparseMatrix
    bsr(std::int64_t blockRows, std::int64_t blockCols, std::int64_t blockNnz,
        std::int64_t rowBlockSize, std::int64_t colBlockSize, Offset *rowOffsets, Index *colInd,
        Value *values, tarsiaOrder_t blockOrder, tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        writable<Offset, Index, Value>();
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstBsr, &raw, blockRows, blockCols, blockNnz,
                            rowBlockSize, colBlockSize, rowOffsets, colInd, values,
                            indexTypeOf<Offset>, indexTypeOf<Index>, base, dataTypeOf<Value>,
                            blockOrder);
        else
            TARSIA_HPP_CALL(tarsiaCreateBsr, &raw, blockRows, blockCols, blockNnz, rowBlockSize,
                            colBlockSize, rowOffsets, colInd, values, indexTypeOf<Offset>,
                            indexTypeOf<Index>, base, dataTypeOf<Value>, blockOrder);
        return BasicSparseMatrix(raw);
    }
    template <class Offsets, class Indices, class Values,
              class = detail::IfArray<Offsets, Indices, Values>>
    static BasicSparseMatrix
    bsr(std::int64_t blockRows, std::int64_t blockCols, std::int64_t rowBlockSize,
        std::int64_t colBlockSize, Offsets &&rowOffsets, Indices &&colInd, Values &&values,
        tarsiaOrder_t blockOrder, tarsiaIndexBase_t base = TARSIA_INDEX_BASE_ZERO) {
        detail::expectBorrowed<Offsets, Indices, Values>();
        const char *const function = "tarsia::SparseMatrix::bsr";
        const std::int64_t blockNnz = detail::length(colInd);
        expectOffsets(function, "rowOffsets", rowOffsets, "blockRows + 1", blockRows);
        if (rowBlockSize > 0 && colBlockSize > 0 &&
            !detail::isProduct(detail::length(values), {blockNnz, rowBlockSize, colBlockSize}))
            detail::refuse(function, "values: " + std::to_string(detail::length(values)) +
                                         " elements, expected those of " +
                                         std::to_string(blockNnz) + " blocks");
        return bsr(blockRows, blockCols, blockNnz, rowBlockSize, colBlockSize,
                   std::data(rowOffsets), std::data(colInd), std::data(values), blockOrder, base);
    }

    // A matrix in sparse tiles of 16 x 16 in memory of the library, with nothing in it (see
    // tarsiaCreateTile); sparseToTile and SpGEMMPlan::numeric fill it.
    static BasicSparseMatrix tile(const Handle &handle, std::int64_t rows, std::int64_t cols,
                                  tarsiaDataType_t valueType) {
        static_assert(!isConst, "a matrix in tiles is a SparseMatrix");
        Descriptor raw = nullptr;
        TARSIA_HPP_CALL(tarsiaCreateTile, handle.get(), &raw, rows, cols, valueType);
        return BasicSparseMatrix(raw);
    }

    // Another value array for the descriptor. No plan takes notice: Plan::updateValues does that.
    template <class T> void setValues(T *values) {
        static_assert(!isConst, "only a SparseMatrix takes other values");
        detail::expectType("tarsia::SparseMatrix::setValues", "values", dataTypeOf<T>, valueType());
        TARSIA_HPP_CALL(tarsiaSpMatSetValues, get(), values);
    }

  private:
    explicit BasicSparseMatrix(Descriptor raw) noexcept : AnySparseMatrix(raw) {}

    template <class... T> static constexpr void writable() {
        static_assert(isConst || !(std::is_const_v<T> || ...),
                      "a SparseMatrix can be written: arrays of const elements make a "
                      "ConstSparseMatrix");
    }

    template <class Offsets>
    static void expectOffsets(const char *function, const char *name, const Offsets &offsets,
                              const char *expected, std::int64_t lines) {
        if (lines >= 0 && lines < std::numeric_limits<std::int64_t>::max())
            detail::expectLength(function, name, detail::length(offsets), expected, lines + 1);
    }
};
using SparseMatrix = BasicSparseMatrix<false>;
using ConstSparseMatrix = BasicSparseMatrix<true>;

// tiles = A, and A = tiles (see tarsiaSparseToTile and tarsiaTileToSparse). Both block.
inline void sparseToTile(const Handle &handle, const AnySparseMatrix &A,
                         const SparseMatrix &tiles) {
    TARSIA_HPP_CALL(tarsiaSparseToTile, handle.get(), A.get(), tiles.get());
}
inline void tileToSparse(const Handle &handle, const AnySparseMatrix &tiles,
                         const SparseMatrix &A) {
    TARSIA_HPP_CALL(tarsiaTileToSparse, handle.get(), tiles.get(), A.get());
}

// ---- dense vectors and matrices ----

// A descriptor of a dense vector, of either kind below: what products take as x.
class AnyDenseVector {
  public:
    tarsiaConstDnVecDescr_t get() const noexcept { return raw_.get(); }

    std::int64_t size() const {
        std::int64_t size = 0;
        TARSIA_HPP_CALL(tarsiaConstDnVecGet, get(), &size, nullptr, nullptr);
        return size;
    }
    tarsiaDataType_t valueType() const {
        tarsiaDataType_t type = TARSIA_R_32F;
        TARSIA_HPP_CALL(tarsiaConstDnVecGet, get(), nullptr, nullptr, &type);
        return type;
    }
    // The array, to read. T must be its type.
    template <class T> const T *values() const {
        detail::expectType("tarsia::DenseVector::values", "T", dataTypeOf<T>, valueType());
        const void *values = nullptr;
        TARSIA_HPP_CALL(tarsiaConstDnVecGetValues, get(), &values);
        return static_cast<const T *>(values);
    }

  protected:
    AnyDenseVector() noexcept = default;
    AnyDenseVector(AnyDenseVector &&) noexcept = default;
    AnyDenseVector &operator=(AnyDenseVector &&) noexcept = default;
    ~AnyDenseVector() = default;
    explicit AnyDenseVector(tarsiaConstDnVecDescr_t raw) noexcept : raw_(raw) {}

  private:
    detail::Owner<tarsiaConstDnVecDescr_t, tarsiaDestroyDnVec> raw_;
};

// DenseVector, which can be the y of a product, and ConstDenseVector.
template <bool isConst> class BasicDenseVector : public AnyDenseVector {
  public:
    using Descriptor = std::conditional_t<isConst, tarsiaConstDnVecDescr_t, tarsiaDnVecDescr_t>;

    // Empty, for an assignment later.
    BasicDenseVector() noexcept = default;
    // All elements of an array in the backend's memory, which must be no temporary.
    template <class Range, class = detail::IfArray<Range>>
    explicit BasicDenseVector(Range &&values)
        : BasicDenseVector(detail::length(values), std::data(values)) {
        detail::expectBorrowed<Range>();
    }
    template <class T>
    BasicDenseVector(std::int64_t size, T *values) : AnyDenseVector(create(size, values)) {}
    // Owns a descriptor that C code has made.
    static BasicDenseVector adopt(Descriptor raw) noexcept {
        return BasicDenseVector(Adopted{raw});
    }
    // For calls of C functions; the descriptor stays this object's.
    Descriptor get() const noexcept { return const_cast<Descriptor>(AnyDenseVector::get()); }

    // Another array of the same size and type.
    template <class T> void setValues(T *values) {
        static_assert(!isConst, "only a DenseVector takes other values");
        detail::expectType("tarsia::DenseVector::setValues", "values", dataTypeOf<T>, valueType());
        TARSIA_HPP_CALL(tarsiaDnVecSetValues, get(), values);
    }

  private:
    struct Adopted {
        Descriptor raw;
    };
    explicit BasicDenseVector(Adopted adopted) noexcept : AnyDenseVector(adopted.raw) {}

    template <class T> static Descriptor create(std::int64_t size, T *values) {
        static_assert(isConst || !std::is_const_v<T>,
                      "a DenseVector can be written: an array of const elements makes a "
                      "ConstDenseVector");
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstDnVec, &raw, size, values, dataTypeOf<T>);
        else
            TARSIA_HPP_CALL(tarsiaCreateDnVec, &raw, size, values, dataTypeOf<T>);
        return raw;
    }
};
using DenseVector = BasicDenseVector<false>;
using ConstDenseVector = BasicDenseVector<true>;

// A descriptor of a dense matrix, of either kind below: what products take as B.
class AnyDenseMatrix {
  public:
    tarsiaConstDnMatDescr_t get() const noexcept { return raw_.get(); }

    std::int64_t rows() const { return fields().rows; }
    std::int64_t cols() const { return fields().cols; }
    std::int64_t ld() const { return fields().ld; }
    tarsiaDataType_t valueType() const { return fields().type; }
    tarsiaOrder_t order() const { return fields().order; }
    // The array, to read. T must be its type.
    template <class T> const T *values() const {
        detail::expectType("tarsia::DenseMatrix::values", "T", dataTypeOf<T>, valueType());
        const void *values = nullptr;
        TARSIA_HPP_CALL(tarsiaConstDnMatGetValues, get(), &values);
        return static_cast<const T *>(values);
    }

  protected:
    AnyDenseMatrix() noexcept = default;
    AnyDenseMatrix(AnyDenseMatrix &&) noexcept = default;
    AnyDenseMatrix &operator=(AnyDenseMatrix &&) noexcept = default;
    ~AnyDenseMatrix() = default;
    explicit AnyDenseMatrix(tarsiaConstDnMatDescr_t raw) noexcept : raw_(raw) {}

  private:
    struct Fields {
        std::int64_t rows, cols, ld;
        tarsiaDataType_t type;
        tarsiaOrder_t order;
    };
    Fields fields() const {
        Fields f{0, 0, 0, TARSIA_R_32F, TARSIA_ORDER_COL};
        TARSIA_HPP_CALL(tarsiaConstDnMatGet, get(), &f.rows, &f.cols, &f.ld, nullptr, &f.type,
                        &f.order);
        return f;
    }

    detail::Owner<tarsiaConstDnMatDescr_t, tarsiaDestroyDnMat> raw_;
};

// DenseMatrix, which can be the C of a product, and ConstDenseMatrix. ld is the distance, in
// elements, between columns (TARSIA_ORDER_COL) or rows (TARSIA_ORDER_ROW).
template <bool isConst> class BasicDenseMatrix : public AnyDenseMatrix {
  public:
    using Descriptor = std::conditional_t<isConst, tarsiaConstDnMatDescr_t, tarsiaDnMatDescr_t>;

    // Empty, for an assignment later.
    BasicDenseMatrix() noexcept = default;
    // All elements of an array in the backend's memory, which must be no temporary, without gaps.
    template <class Range, class = detail::IfArray<Range>>
    BasicDenseMatrix(std::int64_t rows, std::int64_t cols, Range &&values, tarsiaOrder_t order)
        : BasicDenseMatrix(rows, cols, tightLd(rows, cols, order), std::data(values), order) {
        detail::expectBorrowed<Range>();
        if (!detail::isProduct(detail::length(values), {rows, cols}))
            detail::refuse("tarsia::DenseMatrix",
                           "values: " + std::to_string(std::size(values)) + " elements, expected " +
                               std::to_string(rows) + " x " + std::to_string(cols));
    }
    // With gaps; the array may be larger than the matrix.
    template <class Range, class = detail::IfArray<Range>>
    BasicDenseMatrix(std::int64_t rows, std::int64_t cols, std::int64_t ld, Range &&values,
                     tarsiaOrder_t order)
        : BasicDenseMatrix(rows, cols, ld, std::data(values), order) {
        detail::expectBorrowed<Range>();
        const std::int64_t inner = order == TARSIA_ORDER_COL ? rows : cols;
        const std::int64_t outer = order == TARSIA_ORDER_COL ? cols : rows;
        const std::int64_t found = detail::length(values);
        if (inner > 0 && outer > 0 && (found < inner || (found - inner) / ld < outer - 1))
            detail::refuse("tarsia::DenseMatrix",
                           "values: " + std::to_string(found) + " elements, too few for " +
                               std::to_string(rows) + " x " + std::to_string(cols) +
                               " with ld = " + std::to_string(ld));
    }
    template <class T>
    BasicDenseMatrix(std::int64_t rows, std::int64_t cols, std::int64_t ld, T *values,
                     tarsiaOrder_t order)
        : AnyDenseMatrix(create(rows, cols, ld, values, order)) {}
    // Owns a descriptor that C code has made.
    static BasicDenseMatrix adopt(Descriptor raw) noexcept {
        return BasicDenseMatrix(Adopted{raw});
    }
    // For calls of C functions; the descriptor stays this object's.
    Descriptor get() const noexcept { return const_cast<Descriptor>(AnyDenseMatrix::get()); }

    // Another array of the same shape, order and type.
    template <class T> void setValues(T *values) {
        static_assert(!isConst, "only a DenseMatrix takes other values");
        detail::expectType("tarsia::DenseMatrix::setValues", "values", dataTypeOf<T>, valueType());
        TARSIA_HPP_CALL(tarsiaDnMatSetValues, get(), values);
    }

  private:
    struct Adopted {
        Descriptor raw;
    };
    explicit BasicDenseMatrix(Adopted adopted) noexcept : AnyDenseMatrix(adopted.raw) {}

    static std::int64_t tightLd(std::int64_t rows, std::int64_t cols, tarsiaOrder_t order) {
        const std::int64_t inner = order == TARSIA_ORDER_COL ? rows : cols;
        return inner > 1 ? inner : 1;
    }
    template <class T>
    static Descriptor create(std::int64_t rows, std::int64_t cols, std::int64_t ld, T *values,
                             tarsiaOrder_t order) {
        static_assert(isConst || !std::is_const_v<T>,
                      "a DenseMatrix can be written: an array of const elements makes a "
                      "ConstDenseMatrix");
        Descriptor raw = nullptr;
        if constexpr (isConst)
            TARSIA_HPP_CALL(tarsiaCreateConstDnMat, &raw, rows, cols, ld, values, dataTypeOf<T>,
                            order);
        else
            TARSIA_HPP_CALL(tarsiaCreateDnMat, &raw, rows, cols, ld, values, dataTypeOf<T>, order);
        return raw;
    }
};
using DenseMatrix = BasicDenseMatrix<false>;
using ConstDenseMatrix = BasicDenseMatrix<true>;

} // namespace tarsia

#endif // TARSIA_HPP_MATRICES
