//! Descriptors of arrays that a program owns, and the C functions that create, read and change them. The doc
//! comments become those of include/tarsia.h.
//!
//! For each descriptor the list gives the name of the functions' argument, the object (tarsia…Descr_t), the
//! structure of the library that it fills, for a sparse matrix also the format, and the fields: argument
//! name, type (`Array` is the address of an array) and field of the structure. Its functions follow, each
//! with its kind, and `Const` where the arrays are only read.
//! `Const` where the arrays are only read.
//! build/descriptors.rs writes these functions out, since cbindgen does not see functions that a macro makes;
//! spmat.rs, spmat_access.rs, dnvec.rs and dnmat.rs include them. Nothing else may stand in this file.
//! spmat_access.rs, dnvec.rs and dnmat.rs include them. Nothing else may stand in this file.

descriptors! {
    A: SpMat = Compressed as Csr {
        rows: i64 = major,
        cols: i64 = minor,
        nnz: i64 = nnz,
        rowOffsets: Array = offsets,
        colInd: Array = indices,
        values: Array = values,
        offsetType: tarsiaIndexType_t = offset_type,
        indexType: tarsiaIndexType_t = index_type,
        base: tarsiaIndexBase_t = base,
        valueType: tarsiaDataType_t = value_type,
    }
    /// Describes a CSR matrix: row i has the entries rowOffsets[i] - base up to but
    /// not including rowOffsets[i + 1] - base.
    ///
    /// The descriptor borrows the arrays and copies nothing; nothing is read here.
    /// rowOffsets: rows + 1 offsets; colInd, values: nnz each; all in the backend's
    /// memory, aligned to their elements, NULL allowed until the matrix is used.
    /// Columns may be unsorted and stored twice (they add up). (offset, index)
    /// types: 32/32, 64/32 or 64/64 bits.
    ///
    /// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
    /// for its index type or for memory; a misaligned array; not a value of an
    /// enum), NOT_SUPPORTED (index or value type that no operation takes),
    /// ALLOC_FAILED.
    fn tarsiaCreateCsr = Create;
    /// Like tarsiaCreateCsr, but from const arrays: the descriptor cannot be the C of a
    /// SpGEMM.
    ///
    /// Statuses: those of tarsiaCreateCsr.
    fn tarsiaCreateConstCsr = Create, Const;
    /// Gets all fields of a CSR descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from
    /// const arrays; a misaligned answer).
    fn tarsiaCsrGet = Get;
    /// Like tarsiaCsrGet, but for any CSR descriptor, with pointers to const.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSR descriptor; a misaligned answer).
    fn tarsiaConstCsrGet = Get, Const;
    /// Replaces the arrays of a CSR descriptor; sizes and types stay. A plan copies the descriptor's fields,
    /// so this reaches no plan: an existing plan keeps its arrays, and tarsiaPlan_updateValues moves it to
    /// other values. NULL allowed until the matrix is used.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSR descriptor, or was made from
    /// const arrays; a misaligned array).
    fn tarsiaCsrSetPointers = Set;

    A: SpMat = Compressed as Csc {
        rows: i64 = minor,
        cols: i64 = major,
        nnz: i64 = nnz,
        colOffsets: Array = offsets,
        rowInd: Array = indices,
        values: Array = values,
        offsetType: tarsiaIndexType_t = offset_type,
        indexType: tarsiaIndexType_t = index_type,
        base: tarsiaIndexBase_t = base,
        valueType: tarsiaDataType_t = value_type,
    }
    /// Describes a CSC matrix: column j has the entries colOffsets[j] - base up to
    /// but not including colOffsets[j + 1] - base.
    ///
    /// The descriptor borrows the arrays and copies nothing; nothing is read here.
    /// colOffsets: cols + 1 offsets; rowInd, values: nnz each; all in the backend's
    /// memory, aligned to their elements, NULL allowed until the matrix is used.
    /// Rows may be unsorted and stored twice (they add up). (offset, index) types:
    /// 32/32, 64/32 or 64/64 bits.
    ///
    /// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
    /// for its index type or for memory; a misaligned array; not a value of an
    /// enum), NOT_SUPPORTED (index or value type that no operation takes),
    /// ALLOC_FAILED.
    fn tarsiaCreateCsc = Create;
    /// Like tarsiaCreateCsc, but from const arrays: the descriptor cannot be the C of a
    /// SpGEMM.
    ///
    /// Statuses: those of tarsiaCreateCsc.
    fn tarsiaCreateConstCsc = Create, Const;
    /// Gets all fields of a CSC descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from
    /// const arrays; a misaligned answer).
    fn tarsiaCscGet = Get;
    /// Like tarsiaCscGet, but for any CSC descriptor, with pointers to const.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSC descriptor; a misaligned answer).
    fn tarsiaConstCscGet = Get, Const;
    /// Replaces the arrays of a CSC descriptor; sizes and types stay. A plan copies the descriptor's fields,
    /// so this reaches no plan: an existing plan keeps its arrays, and tarsiaPlan_updateValues moves it to
    /// other values. NULL allowed until the matrix is used.
    ///
    /// Statuses: INVALID_VALUE (A is not a live CSC descriptor, or was made from
    /// const arrays; a misaligned array).
    fn tarsiaCscSetPointers = Set;

    A: SpMat = Coo as Coo {
        rows: i64 = rows,
        cols: i64 = cols,
        nnz: i64 = nnz,
        rowInd: Array = row_indices,
        colInd: Array = col_indices,
        values: Array = values,
        indexType: tarsiaIndexType_t = index_type,
        base: tarsiaIndexBase_t = base,
        valueType: tarsiaDataType_t = value_type,
    }
    /// Describes a COO matrix: entry p is in row rowInd[p] - base, column
    /// colInd[p] - base. Any order; entries stored twice add up.
    ///
    /// The descriptor borrows the arrays and copies nothing; nothing is read here.
    /// rowInd, colInd, values: nnz each, in the backend's memory, aligned to their
    /// elements, NULL allowed until the matrix is used. Both index arrays have
    /// indexType, 32 or 64 bits.
    ///
    /// Statuses: INVALID_VALUE (A is NULL; a dimension or nnz is negative, too large
    /// for its index type or for memory; a misaligned array; not a value of an
    /// enum), NOT_SUPPORTED (index or value type that no operation takes),
    /// ALLOC_FAILED.
    fn tarsiaCreateCoo = Create;
    /// Like tarsiaCreateCoo, but from const arrays.
    ///
    /// Statuses: those of tarsiaCreateCoo.
    fn tarsiaCreateConstCoo = Create, Const;
    /// Gets all fields of a COO descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from
    /// const arrays; a misaligned answer).
    fn tarsiaCooGet = Get;
    /// Like tarsiaCooGet, but for any COO descriptor, with pointers to const.
    ///
    /// Statuses: INVALID_VALUE (A is not a live COO descriptor; a misaligned answer).
    fn tarsiaConstCooGet = Get, Const;
    /// Replaces the arrays of a COO descriptor; sizes and types stay. A plan copies the descriptor's fields,
    /// so this reaches no plan: an existing plan keeps its arrays, and tarsiaPlan_updateValues moves it to
    /// other values. NULL allowed until the matrix is used.
    ///
    /// Statuses: INVALID_VALUE (A is not a live COO descriptor, or was made from
    /// const arrays; a misaligned array).
    fn tarsiaCooSetPointers = Set;

    A: SpMat = Bsr as Bsr {
        blockRows: i64 = block_rows,
        blockCols: i64 = block_cols,
        blockNnz: i64 = block_nnz,
        rowBlockSize: i64 = row_block,
        colBlockSize: i64 = col_block,
        rowOffsets: Array = offsets,
        colInd: Array = indices,
        values: Array = values,
        offsetType: tarsiaIndexType_t = offset_type,
        indexType: tarsiaIndexType_t = index_type,
        base: tarsiaIndexBase_t = base,
        valueType: tarsiaDataType_t = value_type,
        blockOrder: tarsiaOrder_t = block_order,
    }
    /// Describes a BSR matrix: a CSR pattern of dense blocks of rowBlockSize ×
    /// colBlockSize values. The matrix has blockRows · rowBlockSize rows and
    /// blockCols · colBlockSize columns. Every value of a stored block is a stored
    /// entry, zeros included.
    ///
    /// The descriptor borrows the arrays and copies nothing; nothing is read here.
    /// rowOffsets: blockRows + 1 offsets in blocks; colInd: blockNnz block columns;
    /// values: blockNnz · rowBlockSize · colBlockSize, block after block, inside a
    /// block in blockOrder; all in the backend's memory, aligned to their elements,
    /// NULL allowed until the matrix is used. Blocks may be unsorted and stored
    /// twice (they add up). SpMV and SpMM take it.
    ///
    /// Statuses: INVALID_VALUE (A is NULL; a dimension or blockNnz is negative, too
    /// large for its index type or for memory; a block size below 1; a misaligned
    /// array; not a value of an enum), NOT_SUPPORTED (index or value type that no
    /// operation takes), ALLOC_FAILED.
    fn tarsiaCreateBsr = Create;
    /// Like tarsiaCreateBsr, but from const arrays.
    ///
    /// Statuses: those of tarsiaCreateBsr.
    fn tarsiaCreateConstBsr = Create, Const;
    /// Gets all fields of a BSR descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from
    /// const arrays; a misaligned answer).
    fn tarsiaBsrGet = Get;
    /// Like tarsiaBsrGet, but for any BSR descriptor, with pointers to const.
    ///
    /// Statuses: INVALID_VALUE (A is not a live BSR descriptor; a misaligned answer).
    fn tarsiaConstBsrGet = Get, Const;
    /// Replaces the arrays of a BSR descriptor; sizes and types stay. A plan copies the descriptor's fields,
    /// so this reaches no plan: an existing plan keeps its arrays, and tarsiaPlan_updateValues moves it to
    /// other values. NULL allowed until the matrix is used.
    ///
    /// Statuses: INVALID_VALUE (A is not a live BSR descriptor, or was made from
    /// const arrays; a misaligned array).
    fn tarsiaBsrSetPointers = Set;

    x: DnVec = DenseVector {
        size: i64 = len,
        values: Array = values,
        valueType: tarsiaDataType_t = value_type,
    }
    /// Describes a dense vector of size elements, contiguous.
    ///
    /// The descriptor borrows the array and copies nothing. values: in the backend's
    /// memory, aligned to its elements, NULL allowed until the vector is used.
    ///
    /// Statuses: INVALID_VALUE (x is NULL, size is negative or more than memory
    /// holds, misaligned values, valueType is not a tarsiaDataType_t), NOT_SUPPORTED
    /// (value type that no operation takes), ALLOC_FAILED.
    fn tarsiaCreateDnVec = Create;
    /// Like tarsiaCreateDnVec, but from a const array: the descriptor cannot be y.
    ///
    /// Statuses: those of tarsiaCreateDnVec.
    fn tarsiaCreateConstDnVec = Create, Const;
    /// Destroys a dense vector descriptor, not the array. NULL does nothing.
    ///
    /// Statuses: INVALID_VALUE (not a live descriptor).
    fn tarsiaDestroyDnVec = Destroy;
    /// Gets all fields of a dense vector descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
    /// array; a misaligned answer).
    fn tarsiaDnVecGet = Get;
    /// Like tarsiaDnVecGet, but for any dense vector descriptor, with a pointer to const.
    ///
    /// Statuses: INVALID_VALUE (x is not a live descriptor; a misaligned answer).
    fn tarsiaConstDnVecGet = Get, Const;
    /// Gets the array of a dense vector descriptor.
    ///
    /// values: host.
    ///
    /// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
    /// array, values is NULL).
    fn tarsiaDnVecGetValues = GetValues;
    /// Gets the array of any dense vector descriptor, as a pointer to const.
    ///
    /// values: host.
    ///
    /// Statuses: INVALID_VALUE (x is not a live descriptor, values is NULL).
    fn tarsiaConstDnVecGetValues = GetValues, Const;
    /// Replaces the array of a dense vector descriptor; size and type stay.
    ///
    /// Statuses: INVALID_VALUE (x is not a live descriptor or was made from a const
    /// array, misaligned values).
    fn tarsiaDnVecSetValues = Set;

    B: DnMat = DenseMatrix {
        rows: i64 = rows,
        cols: i64 = cols,
        ld: i64 = ld,
        values: Array = values,
        valueType: tarsiaDataType_t = value_type,
        order: tarsiaOrder_t = order,
    }
    /// Describes a dense matrix of rows × cols elements. Element (i, j) is at
    /// values[i + j·ld] in order COL (ld ≥ rows) and at values[i·ld + j] in order ROW
    /// (ld ≥ cols); ld ≥ 1, in elements.
    ///
    /// The descriptor borrows the array and copies nothing. values: in the backend's
    /// memory, aligned to its elements, NULL allowed until the matrix is used.
    ///
    /// Statuses: INVALID_VALUE (B is NULL, a dimension is negative, ld is too small or
    /// the matrix more than memory holds, misaligned values, not a value of an enum),
    /// NOT_SUPPORTED (value type that no operation takes), ALLOC_FAILED.
    fn tarsiaCreateDnMat = Create;
    /// Like tarsiaCreateDnMat, but from a const array: the descriptor cannot be C.
    ///
    /// Statuses: those of tarsiaCreateDnMat.
    fn tarsiaCreateConstDnMat = Create, Const;
    /// Destroys a dense matrix descriptor, not the array. NULL does nothing.
    ///
    /// Statuses: INVALID_VALUE (not a live descriptor).
    fn tarsiaDestroyDnMat = Destroy;
    /// Gets all fields of a dense matrix descriptor. Answers: host, each may be NULL.
    ///
    /// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
    /// array; a misaligned answer).
    fn tarsiaDnMatGet = Get;
    /// Like tarsiaDnMatGet, but for any dense matrix descriptor, with a pointer to const.
    ///
    /// Statuses: INVALID_VALUE (B is not a live descriptor; a misaligned answer).
    fn tarsiaConstDnMatGet = Get, Const;
    /// Gets the array of a dense matrix descriptor.
    ///
    /// values: host.
    ///
    /// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
    /// array, values is NULL).
    fn tarsiaDnMatGetValues = GetValues;
    /// Gets the array of any dense matrix descriptor, as a pointer to const.
    ///
    /// values: host.
    ///
    /// Statuses: INVALID_VALUE (B is not a live descriptor, values is NULL).
    fn tarsiaConstDnMatGetValues = GetValues, Const;
    /// Replaces the array of a dense matrix descriptor; shape, order and type stay.
    ///
    /// Statuses: INVALID_VALUE (B is not a live descriptor or was made from a const
    /// array, misaligned values).
    fn tarsiaDnMatSetValues = Set;
}
