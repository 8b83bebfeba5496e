//! Tests of bad descriptors of dense vectors and matrices: sizes, leading dimensions, alignment.

use std::ptr::{null, null_mut};

use client::{arg, check};
use libc::c_void;
use tarsia::capi::objects::{tarsiaDnMatDescr_t, tarsiaDnVecDescr_t};
use tarsia::capi::{dnmat, dnvec};
use tarsia::facade::{DataType, Order, Status};

use super::bad::{accepts, invalid, refuses};

const F64: DataType = DataType::R64F;

fn at(address: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(address)
}

/// Calls both functions that create a vector.
#[track_caller]
fn vector(size: i64, address: usize, value: DataType, expected: Option<(Status, &str)>) {
    let (mut x, mut y) = (null_mut(), null());
    // SAFETY: the answers are valid for a write; nothing is read through the array.
    let mut create = [
        Box::new(|| unsafe { dnvec::tarsiaCreateDnVec(&mut x, size, at(address), arg(value)) })
            as Box<dyn FnMut() -> _>,
        // SAFETY: as above.
        Box::new(|| unsafe { dnvec::tarsiaCreateConstDnVec(&mut y, size, at(address), arg(value)) }),
    ];
    let what = format!("vector of {size} {} at {address:#x}", value.short());
    for create in &mut create {
        match expected {
            Some((status, name)) => refuses(&what, status, name, create),
            None => accepts(&what, create()),
        }
    }
    drop(create);
    assert_eq!((x.is_null(), y.is_null()), (expected.is_some(), expected.is_some()), "{what}: answers");
    accepts("destroy", dnvec::tarsiaDestroyDnVec(x));
    accepts("destroy", dnvec::tarsiaDestroyDnVec(y));
}

#[test]
fn vectors() {
    let invalid = |name| Some((Status::InvalidValue, name));
    vector(0, 0, F64, None);
    vector(1 << 59, 0, F64, None);
    vector(1 << 60, 0, F64, invalid("size"));
    vector(1 << 61, 0, DataType::R16F, None);
    vector(1 << 59, 0, DataType::C64F, invalid("size"));
    vector(i64::MAX, 0, DataType::R16BF, invalid("size"));
    vector(3, 0x1004, F64, invalid("values"));
    vector(3, 0x1004, DataType::R32F, None);
    vector(3, 0x1008, DataType::C64F, None);
    vector(3, 0x1002, DataType::C32F, invalid("values"));
    vector(3, 0x1001, DataType::R16F, invalid("values"));
    for value in [DataType::R8I, DataType::R32I] {
        vector(3, 0, value, Some((Status::NotSupported, "valueType")));
    }
}

/// Calls both functions that create a matrix.
#[track_caller]
fn matrix(
    (rows, cols, ld): (i64, i64, i64),
    order: Order,
    address: usize,
    value: DataType,
    expected: Option<(Status, &str)>,
) {
    let (mut x, mut y) = (null_mut(), null());
    let (t, o) = (arg(value), arg(order));
    // SAFETY: the answers are valid for a write; nothing is read through the array.
    let mut create = [
        Box::new(|| unsafe { dnmat::tarsiaCreateDnMat(&mut x, rows, cols, ld, at(address), t, o) })
            as Box<dyn FnMut() -> _>,
        // SAFETY: as above.
        Box::new(|| unsafe { dnmat::tarsiaCreateConstDnMat(&mut y, rows, cols, ld, at(address), t, o) }),
    ];
    let what = format!("{rows} × {cols}, ld {ld}, {order:?}, {} at {address:#x}", value.short());
    for create in &mut create {
        match expected {
            Some((status, name)) => refuses(&what, status, name, create),
            None => accepts(&what, create()),
        }
    }
    drop(create);
    assert_eq!((x.is_null(), y.is_null()), (expected.is_some(), expected.is_some()), "{what}: answers");
    accepts("destroy", dnmat::tarsiaDestroyDnMat(x));
    accepts("destroy", dnmat::tarsiaDestroyDnMat(y));
}

#[test]
fn matrices() {
    use Order::{Col, Row};
    let invalid = |name| Some((Status::InvalidValue, name));
    // The leading dimension is at least the extent of the contiguous dimension.
    matrix((3, 5, 3), Col, 0, F64, None);
    matrix((3, 5, 2), Col, 0, F64, invalid("ld"));
    matrix((3, 5, 5), Row, 0, F64, None);
    matrix((3, 5, 4), Row, 0, F64, invalid("ld"));
    matrix((3, 5, 3), Row, 0, F64, invalid("ld"));
    // It is at least 1, even if that extent is 0.
    for order in [Col, Row] {
        matrix((0, 0, 1), order, 0, F64, None);
        matrix((0, 0, 0), order, 0, F64, invalid("ld"));
    }
    matrix((0, 5, 1), Col, 0, F64, None);
    matrix((3, 0, 1), Row, 0, F64, None);
    // 2^30 · 2^29 elements of 8 bytes fit, 2^30 · 2^30 do not.
    matrix((4, 1 << 29, 1 << 30), Col, 0, F64, None);
    matrix((4, 1 << 30, 1 << 30), Col, 0, F64, invalid("ld"));
    matrix((1 << 30, 4, 1 << 30), Row, 0, F64, invalid("ld"));
    matrix((4, 1 << 30, i64::MAX), Col, 0, F64, invalid("ld"));
    matrix((3, 5, 3), Col, 0x1004, F64, invalid("values"));
    matrix((3, 5, 3), Col, 0x1008, DataType::C64F, None);
    matrix((3, 5, 3), Col, 0x1001, DataType::R16BF, invalid("values"));
    for value in [DataType::R8I, DataType::R32I] {
        matrix((3, 5, 3), Col, 0, value, Some((Status::NotSupported, "valueType")));
    }
}

#[test]
fn setters_refuse_misaligned_arrays_and_change_nothing() {
    let (mut x, mut b): (tarsiaDnVecDescr_t, tarsiaDnMatDescr_t) = (null_mut(), null_mut());
    let mut found = null_mut();
    // SAFETY: the answers are valid for a write; nothing is read through the arrays.
    unsafe {
        check(dnvec::tarsiaCreateDnVec(&mut x, 3, at(0x1000), arg(F64))).unwrap();
        check(dnmat::tarsiaCreateDnMat(&mut b, 3, 2, 3, at(0x2000), arg(F64), arg(Order::Col))).unwrap();
        invalid("vector", "values", || dnvec::tarsiaDnVecSetValues(x, at(0x1004)));
        invalid("matrix", "values", || dnmat::tarsiaDnMatSetValues(b, at(0x1004)));
        check(dnvec::tarsiaDnVecGetValues(x, &mut found)).unwrap();
        assert_eq!(found, at(0x1000));
        check(dnmat::tarsiaDnMatGetValues(b, &mut found)).unwrap();
        assert_eq!(found, at(0x2000));
        accepts("vector", dnvec::tarsiaDnVecSetValues(x, at(0x1008)));
        accepts("matrix", dnmat::tarsiaDnMatSetValues(b, at(0x2008)));
        check(dnvec::tarsiaDnVecGetValues(x, &mut found)).unwrap();
        assert_eq!(found, at(0x1008));
    }
    accepts("destroy", dnvec::tarsiaDestroyDnVec(x));
    accepts("destroy", dnmat::tarsiaDestroyDnMat(b));
    invalid("destroyed twice", "x", || dnvec::tarsiaDestroyDnVec(x));
    invalid("destroyed twice", "B", || dnmat::tarsiaDestroyDnMat(b));
}
