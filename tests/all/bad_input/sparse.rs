//! Tests of bad sparse matrix descriptors: sizes, types, alignment, formats.

use std::ptr::{null, null_mut};

use client::{arg, check};
use libc::c_void;
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::{tarsiaConstSpMatDescr_t, tarsiaSpMatDescr_t};
use tarsia::capi::{spmat, spmat_access};
use tarsia::facade::{DataType, Format, IndexBase, IndexType, Order, Status};

use super::bad::{accepts, forget_message, invalid, mentions, refuses};
use super::world::World;
use crate::common::backends;

/// Arguments of a `tarsiaCreate…` function of any format.
#[derive(Clone, Copy, Debug)]
pub struct Create {
    /// Format, which says which function is called.
    pub format: Format,
    /// True for the function for const arrays.
    pub constant: bool,
    /// Number of rows and of columns (BSR: of blocks).
    pub shape: (i64, i64),
    /// Number of entries (BSR: of blocks).
    pub nnz: i64,
    /// Rows and columns of a block of BSR.
    pub block: (i64, i64),
    /// Addresses of offsets (COO: row indices), indices and values.
    pub arrays: [usize; 3],
    /// Type of offsets.
    pub offset: IndexType,
    /// Type of indices.
    pub index: IndexType,
    /// Index base.
    pub base: IndexBase,
    /// Type of values.
    pub value: DataType,
}

impl Create {
    /// Describes a 3 × 4 matrix of 5 entries without arrays.
    pub fn new(format: Format) -> Self {
        Create {
            format,
            constant: false,
            shape: (3, 4),
            nnz: 5,
            block: (2, 3),
            arrays: [0; 3],
            offset: IndexType::I32,
            index: IndexType::I32,
            base: IndexBase::Zero,
            value: DataType::R64F,
        }
    }

    /// Returns the names of (rows, columns, entries) in the header.
    pub fn sizes(&self) -> [&'static str; 3] {
        match self.format {
            Format::Bsr => ["blockRows", "blockCols", "blockNnz"],
            _ => ["rows", "cols", "nnz"],
        }
    }

    /// Returns the names of the arrays in the header.
    pub fn names(&self) -> [&'static str; 3] {
        match self.format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr | Format::Bsr => ["rowOffsets", "colInd", "values"],
            Format::Csc => ["colOffsets", "rowInd", "values"],
            Format::Coo => ["rowInd", "colInd", "values"],
        }
    }

    /// Calls the function; the descriptor is in `out` if it succeeds.
    pub fn call(&self, out: &mut tarsiaSpMatDescr_t) -> tarsiaStatus_t {
        let (rows, cols) = self.shape;
        let [i, j, v] = self.arrays.map(std::ptr::with_exposed_provenance_mut::<c_void>);
        let (ot, it, b, vt) = (arg(self.offset), arg(self.index), arg(self.base), arg(self.value));
        let (height, width, order) = (self.block.0, self.block.1, arg(Order::Row));
        let mut constant: tarsiaConstSpMatDescr_t = null();
        let c = &mut constant;
        // SAFETY: nothing is read through the arrays here; `out` is valid for a write.
        let code = unsafe {
            match (self.format, self.constant) {
                (Format::Tile, _) => unreachable!("a matrix in tiles has no arrays"),
                (Format::Csr, false) => {
                    spmat::tarsiaCreateCsr(out, rows, cols, self.nnz, i, j, v, ot, it, b, vt)
                }
                (Format::Csc, false) => {
                    spmat::tarsiaCreateCsc(out, rows, cols, self.nnz, i, j, v, ot, it, b, vt)
                }
                (Format::Coo, false) => spmat::tarsiaCreateCoo(out, rows, cols, self.nnz, i, j, v, it, b, vt),
                (Format::Bsr, false) => spmat::tarsiaCreateBsr(
                    out, rows, cols, self.nnz, height, width, i, j, v, ot, it, b, vt, order,
                ),
                (Format::Csr, true) => {
                    spmat::tarsiaCreateConstCsr(c, rows, cols, self.nnz, i, j, v, ot, it, b, vt)
                }
                (Format::Csc, true) => {
                    spmat::tarsiaCreateConstCsc(c, rows, cols, self.nnz, i, j, v, ot, it, b, vt)
                }
                (Format::Coo, true) => {
                    spmat::tarsiaCreateConstCoo(c, rows, cols, self.nnz, i, j, v, it, b, vt)
                }
                (Format::Bsr, true) => spmat::tarsiaCreateConstBsr(
                    c, rows, cols, self.nnz, height, width, i, j, v, ot, it, b, vt, order,
                ),
            }
        };
        if self.constant {
            *out = constant.cast_mut();
        }
        code
    }

    /// Calls both functions of the format, which must succeed.
    #[track_caller]
    fn accepted(self) {
        for constant in [false, true] {
            let create = Create { constant, ..self };
            let mut a = null_mut();
            accepts(&format!("{create:?}"), create.call(&mut a));
            accepts("destroy", spmat::tarsiaDestroySpMat(a));
        }
    }

    /// Calls both functions of the format, which must fail and name an argument.
    #[track_caller]
    fn refused(self, status: Status, name: &str) {
        for constant in [false, true] {
            let create = Create { constant, ..self };
            let mut a = null_mut();
            refuses(&format!("{create:?}"), status, name, || create.call(&mut a));
            assert!(a.is_null(), "{create:?}: an answer was written");
        }
    }
}

const ALL: [Format; 4] = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr];
const COMPRESSED: [Format; 3] = [Format::Csr, Format::Csc, Format::Bsr];
const I32_MAX: i64 = i32::MAX as i64;

/// Sets the dimension that indices number (columns of CSR, rows of CSC), and returns its argument's name.
fn with_minor(create: Create, minor: i64) -> (Create, &'static str) {
    let [rows, cols, _] = create.sizes();
    match create.format {
        Format::Csc => (Create { shape: (minor, create.shape.1), ..create }, rows),
        _ => (Create { shape: (create.shape.0, minor), ..create }, cols),
    }
}

#[test]
fn dimensions_that_indices_cannot_number() {
    for format in ALL {
        for (base, most) in [(IndexBase::Zero, I32_MAX), (IndexBase::One, I32_MAX - 1)] {
            // Blocks of 1 × 1 keep the numbers of scalars small.
            let create = Create { base, block: (1, 1), ..Create::new(format) };
            with_minor(create, most).0.accepted();
            let (create, name) = with_minor(create, most + 1);
            create.refused(Status::InvalidValue, name);
            Create { offset: IndexType::I64, index: IndexType::I64, ..create }.accepted();
        }
    }
    // COO has indices for both dimensions.
    let tall = Create { shape: (I32_MAX + 1, 4), ..Create::new(Format::Coo) };
    tall.refused(Status::InvalidValue, "rows");
    Create { index: IndexType::I64, ..tall }.accepted();
}

#[test]
fn more_entries_than_offsets_can_count() {
    for format in COMPRESSED {
        for (base, most) in [(IndexBase::Zero, I32_MAX), (IndexBase::One, I32_MAX - 1)] {
            let create = Create { base, nnz: most, block: (1, 1), ..Create::new(format) };
            create.accepted();
            let create = Create { nnz: most + 1, ..create };
            create.refused(Status::InvalidValue, create.sizes()[2]);
            Create { offset: IndexType::I64, ..create }.accepted();
        }
    }
    // COO has no offsets: its entries are limited by memory alone.
    Create { nnz: 1 << 40, ..Create::new(Format::Coo) }.accepted();
}

#[test]
fn sizes_that_memory_cannot_hold() {
    for format in ALL {
        let create = Create { offset: IndexType::I64, index: IndexType::I64, ..Create::new(format) };
        let [rows, cols, nnz] = create.sizes();
        Create { nnz: 1 << 60, ..create }.refused(Status::InvalidValue, nnz);
        match format {
            Format::Tile => unreachable!("a matrix in tiles has no arrays"),
            Format::Csr | Format::Bsr => {
                Create { shape: (1 << 60, 4), ..create }.refused(Status::InvalidValue, rows);
                Create { shape: (i64::MAX, 4), ..create }.refused(Status::InvalidValue, rows);
            }
            Format::Csc => Create { shape: (3, 1 << 60), ..create }.refused(Status::InvalidValue, cols),
            Format::Coo => Create { shape: (i64::MAX, i64::MAX), ..create }.accepted(),
        }
    }
}

#[test]
fn entries_of_a_matrix_without_rows_or_columns() {
    for format in ALL {
        for shape in [(0, 4), (3, 0), (0, 0)] {
            let create = Create { shape, ..Create::new(format) };
            create.refused(Status::InvalidValue, create.sizes()[2]);
            Create { nnz: 0, ..create }.accepted();
        }
    }
}

#[test]
fn blocks_without_size_and_blocks_that_are_too_large() {
    let create = Create::new(Format::Bsr);
    for size in [0, -1, i64::MIN] {
        Create { block: (size, 2), ..create }.refused(Status::InvalidValue, "rowBlockSize");
        Create { block: (2, size), ..create }.refused(Status::InvalidValue, "colBlockSize");
    }
    // 3 · 2^62 rows, 4 · 2^61 columns do not fit 64 bits.
    Create { block: (1 << 62, 1), ..create }.refused(Status::InvalidValue, "rowBlockSize");
    Create { block: (1, 1 << 61), ..create }.refused(Status::InvalidValue, "colBlockSize");
    // 2^60 rows and columns fit, 5 · 2^60 values do not.
    Create { block: (1 << 30, 1 << 30), ..create }.refused(Status::InvalidValue, "blockNnz");
    Create { block: (1 << 40, 1 << 40), ..create }.refused(Status::InvalidValue, "blockNnz");
    Create { block: (1 << 20, 1 << 20), ..create }.accepted();
}

#[test]
fn types_that_no_operation_takes() {
    for format in ALL {
        let create = Create::new(format);
        for value in [DataType::R8I, DataType::R32I] {
            Create { value, ..create }.refused(Status::NotSupported, "valueType");
        }
        Create { index: IndexType::U16, ..create }.refused(Status::NotSupported, "indexType");
    }
    for format in COMPRESSED {
        let create = Create::new(format);
        Create { offset: IndexType::U16, ..create }.refused(Status::NotSupported, "offsetType");
        let narrow = Create { index: IndexType::I64, ..create };
        narrow.refused(Status::NotSupported, "offsetType");
        narrow.refused(Status::NotSupported, "indexType");
    }
}

#[test]
fn misaligned_arrays() {
    for format in ALL {
        let create = Create {
            arrays: [0x1000, 0x2000, 0x3000],
            offset: IndexType::I64,
            index: IndexType::I32,
            ..Create::new(format)
        };
        create.accepted();
        // COO has row indices instead of offsets.
        let offset = if format == Format::Coo { 2 } else { 4 };
        for (array, shift) in [(0, offset), (1, 2), (2, 4)] {
            let mut arrays = create.arrays;
            arrays[array] += shift;
            Create { arrays, ..create }.refused(Status::InvalidValue, create.names()[array]);
        }
        // Complex numbers are aligned as their parts are.
        let arrays = [0x1000, 0x2000, 0x3008];
        Create { arrays, value: DataType::C64F, ..create }.accepted();
        let arrays = [0x1000, 0x2000, 0x3004];
        Create { arrays, value: DataType::C64F, ..create }.refused(Status::InvalidValue, "values");
        Create { arrays, value: DataType::C32F, ..create }.accepted();
        let arrays = [0x1000, 0x2000, 0x3001];
        Create { arrays, value: DataType::R16BF, ..create }.refused(Status::InvalidValue, "values");
    }
}

type SetPointers =
    unsafe extern "C" fn(tarsiaSpMatDescr_t, *mut c_void, *mut c_void, *mut c_void) -> tarsiaStatus_t;

fn set_pointers(format: Format) -> SetPointers {
    match format {
        Format::Tile => unreachable!("a matrix in tiles has no arrays"),
        Format::Csr => spmat_access::tarsiaCsrSetPointers,
        Format::Csc => spmat_access::tarsiaCscSetPointers,
        Format::Coo => spmat_access::tarsiaCooSetPointers,
        Format::Bsr => spmat_access::tarsiaBsrSetPointers,
    }
}

/// Returns the value array that a descriptor has now.
fn values_of(a: tarsiaSpMatDescr_t) -> usize {
    let mut values = null_mut();
    // SAFETY: the answer is valid for a write.
    check(unsafe { spmat_access::tarsiaSpMatGetValues(a, &mut values) }).unwrap();
    values.addr()
}

#[test]
fn setters_refuse_misaligned_arrays_and_change_nothing() {
    for format in ALL {
        let create = Create { arrays: [0x1000, 0x2000, 0x3000], ..Create::new(format) };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        for array in 0..3 {
            let mut arrays = [0x4000, 0x5000, 0x6000];
            arrays[array] += 2;
            let [i, j, v] = arrays.map(std::ptr::with_exposed_provenance_mut);
            let what = format!("{format:?} with {} misaligned", create.names()[array]);
            // SAFETY: nothing is read through the arrays.
            invalid(&what, create.names()[array], || unsafe { set_pointers(format)(a, i, j, v) });
            assert_eq!(values_of(a), 0x3000, "{what}");
        }
        let odd = std::ptr::without_provenance_mut(0x6004);
        // SAFETY: as above.
        invalid("SetValues", "values", || unsafe { spmat_access::tarsiaSpMatSetValues(a, odd) });
        assert_eq!(values_of(a), 0x3000);
        let even = std::ptr::without_provenance_mut(0x6008);
        // SAFETY: as above.
        accepts("SetValues", unsafe { spmat_access::tarsiaSpMatSetValues(a, even) });
        assert_eq!(values_of(a), 0x6008);
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
    }
}

/// Runs the getters and setters of one format on a matrix of another.
fn wrong_format(a: tarsiaSpMatDescr_t, format: Format) -> [tarsiaStatus_t; 3] {
    macro_rules! nulls {
        ($get:ident $const_get:ident: $($null:ident)*) => {
            // SAFETY: no answer is wanted; nothing is read through the arrays.
            unsafe {
                [
                    spmat_access::$get(a, $(nulls!(@ $null)),*),
                    spmat_access::$const_get(a, $(nulls!(@ $null)),*),
                    set_pointers(format)(a, null_mut(), null_mut(), null_mut()),
                ]
            }
        };
        (@ $null:ident) => { null_mut() };
    }
    match format {
        Format::Tile => unreachable!("a matrix in tiles has no arrays"),
        Format::Csr => nulls!(tarsiaCsrGet tarsiaConstCsrGet: a b c d e f g h i j),
        Format::Csc => nulls!(tarsiaCscGet tarsiaConstCscGet: a b c d e f g h i j),
        Format::Coo => nulls!(tarsiaCooGet tarsiaConstCooGet: a b c d e f g h i),
        Format::Bsr => nulls!(tarsiaBsrGet tarsiaConstBsrGet: a b c d e f g h i j k l m),
    }
}

#[test]
fn getters_and_setters_of_another_format() {
    for has in ALL {
        let create = Create { arrays: [0x1000, 0x2000, 0x3000], ..Create::new(has) };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        for asked in ALL {
            if asked == has {
                continue;
            }
            let text = format!("{} matrix as {}", has.short(), asked.short());
            forget_message();
            for code in wrong_format(a, asked) {
                for word in ["A", has.short(), asked.short()] {
                    mentions(code, Status::InvalidValue, word)
                        .unwrap_or_else(|error| panic!("{text}: {error}"));
                }
            }
            assert_eq!(values_of(a), 0x3000, "{text}");
        }
        for code in wrong_format(a, has) {
            accepts("the right format", code);
        }
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
    }
}

#[test]
fn descriptors_of_const_arrays_cannot_be_changed() {
    for format in ALL {
        let create = Create { arrays: [0x1000, 0x2000, 0x3000], constant: true, ..Create::new(format) };
        let mut a = null_mut();
        accepts("create", create.call(&mut a));
        let mut values = null_mut();
        // SAFETY: the answer is valid for a write; nothing is read through the arrays.
        unsafe {
            invalid("GetValues", "A", || spmat_access::tarsiaSpMatGetValues(a, &mut values));
            invalid("SetValues", "A", || spmat_access::tarsiaSpMatSetValues(a, null_mut()));
            invalid("SetPointers", "A", || set_pointers(format)(a, null_mut(), null_mut(), null_mut()));
            let mut values = null();
            accepts("ConstGetValues", spmat_access::tarsiaConstSpMatGetValues(a, &mut values));
            assert_eq!(values.addr(), 0x3000);
        }
        accepts("destroy", spmat::tarsiaDestroySpMat(a));
        invalid("destroyed twice", "A", || spmat::tarsiaDestroySpMat(a));
    }
}

/// Without arrays a matrix can be described, but not used.
#[test]
fn matrices_without_arrays() {
    for kind in backends() {
        let world = World::new(kind);
        for format in ALL {
            let create = Create { block: (1, 1), ..Create::new(format) };
            for missing in 0..3 {
                let mut arrays = [0x1000, 0x2000, 0x3000];
                arrays[missing] = 0;
                let create = Create { arrays, ..create };
                let mut a = null_mut();
                accepts("create", create.call(&mut a));
                let what = format!("{kind:?}: {create:?}");
                // SAFETY: no answer is wanted; the missing array is found before
                // the others are read.
                let call = || unsafe { spmat::tarsiaCheckSpMat(world.handle, a, null_mut(), null_mut()) };
                invalid(&what, "A", call);
                mentions(call(), Status::InvalidValue, create.names()[missing])
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                accepts("destroy", spmat::tarsiaDestroySpMat(a));
            }
        }
        world.verify();
    }
}
