//! Tests of the oracle against values that were computed by hand.

mod numbers;
mod patterns;
mod spgemm;
mod spmm;
mod spmv;

use crate::backend::{self, Backend};
use crate::context::Handle;
use crate::error::Result;
use crate::matrix::{compressed, Bsr, Compressed, Coo, DenseMatrix, DenseVector, SparseArrays, SparseMatrix};
use crate::operation::{Operation, Planned};
use crate::plan::Plan;
use crate::types::{Address, BackendKind, Element, IndexBase, IndexType, Order};

/// Opens the reference backend.
fn reference() -> std::sync::Arc<dyn Backend> {
    backend::open(BackendKind::Reference, 0).expect("the reference backend is always there")
}

/// Creates a handle of the reference backend.
fn handle() -> Handle {
    Handle::new(reference()).unwrap()
}

/// Creates a plan of the reference backend without a named algorithm, not analyzed.
fn fresh<O: Operation>(handle: &Handle, problem: O::Problem) -> Plan {
    Plan::new(handle, Planned::<O>::new(BackendKind::Reference, problem, None).unwrap())
}

/// Creates and analyzes a plan as [`fresh`] does.
fn analyzed<O: Operation>(handle: &Handle, problem: O::Problem) -> Result<Plan> {
    let plan = fresh::<O>(handle, problem);
    plan.analyze(handle)?;
    Ok(plan)
}

/// Returns the address of a scalar or of the first element of an array.
fn address<T>(slice: &[T]) -> Address {
    Address::new(slice.as_ptr())
}

/// Returns the address of an array that a call writes.
fn address_mut<T>(slice: &mut [T]) -> Address {
    Address::new(slice.as_mut_ptr())
}

/// The storage form of offsets and indices.
#[derive(Clone, Copy, Debug)]
struct Form {
    offsets: IndexType,
    indices: IndexType,
    base: IndexBase,
}

/// 32-bit offsets and indices with base 0.
const PLAIN: Form = Form { offsets: IndexType::I32, indices: IndexType::I32, base: IndexBase::Zero };

/// Returns all storage forms of offsets and indices.
fn forms() -> Vec<Form> {
    let widths = [
        (IndexType::I32, IndexType::I32),
        (IndexType::I64, IndexType::I32),
        (IndexType::I64, IndexType::I64),
    ];
    let mut out = Vec::new();
    for (offsets, indices) in widths {
        for base in [IndexBase::Zero, IndexBase::One] {
            out.push(Form { offsets, indices, base });
        }
    }
    out
}

/// Integers of a width known at run time.
#[derive(Clone, Debug)]
enum Ints {
    I32(Vec<i32>),
    I64(Vec<i64>),
}

impl Ints {
    /// Stores numbers given with base 0 with `base`.
    fn new(width: IndexType, base: IndexBase, numbers: &[i64]) -> Self {
        let based = numbers.iter().map(|number| number + i64::from(base.code()));
        match width {
            IndexType::I32 => Ints::I32(based.map(|n| n as i32).collect()),
            _ => Ints::I64(based.collect()),
        }
    }

    fn address(&mut self) -> Address {
        match self {
            Ints::I32(v) => address_mut(v),
            Ints::I64(v) => address_mut(v),
        }
    }

    /// Returns the numbers as they are stored.
    fn numbers(&self) -> Vec<i64> {
        match self {
            Ints::I32(v) => v.iter().map(|&n| i64::from(n)).collect(),
            Ints::I64(v) => v.clone(),
        }
    }
}

/// A sparse matrix with its arrays.
#[derive(Clone, Debug)]
struct Stored<T> {
    /// Offsets or row indices; column (or, for CSC, row) indices.
    ints: [Ints; 2],
    values: Vec<T>,
    matrix: SparseMatrix,
}

fn compressed<T: Element>(
    form: Form,
    (major, minor): (i64, i64),
    arrays: [&[i64]; 2],
    values: &[T],
) -> Stored<T> {
    let mut ints =
        [Ints::new(form.offsets, form.base, arrays[0]), Ints::new(form.indices, form.base, arrays[1])];
    let mut values = values.to_vec();
    let m = Compressed {
        major,
        minor,
        nnz: values.len() as i64,
        offsets: ints[0].address(),
        indices: ints[1].address(),
        values: address_mut(&mut values),
        offset_type: form.offsets,
        index_type: form.indices,
        base: form.base,
        value_type: T::TYPE,
    };
    m.check(&compressed::CSR).unwrap();
    Stored {
        ints,
        values,
        matrix: SparseMatrix { arrays: SparseArrays::Csr(m), writable: true, temporary: false },
    }
}

fn csr<T: Element>(form: Form, (rows, cols): (i64, i64), arrays: [&[i64]; 2], values: &[T]) -> Stored<T> {
    compressed(form, (rows, cols), arrays, values)
}

fn csc<T: Element>(form: Form, (rows, cols): (i64, i64), arrays: [&[i64]; 2], values: &[T]) -> Stored<T> {
    let mut stored = compressed(form, (cols, rows), arrays, values);
    if let SparseArrays::Csr(m) = stored.matrix.arrays {
        stored.matrix.arrays = SparseArrays::Csc(m);
    }
    stored
}

fn coo<T: Element>(form: Form, (rows, cols): (i64, i64), arrays: [&[i64]; 2], values: &[T]) -> Stored<T> {
    let mut ints = arrays.map(|numbers| Ints::new(form.indices, form.base, numbers));
    let mut values = values.to_vec();
    let m = Coo {
        rows,
        cols,
        nnz: values.len() as i64,
        row_indices: ints[0].address(),
        col_indices: ints[1].address(),
        values: address_mut(&mut values),
        index_type: form.indices,
        base: form.base,
        value_type: T::TYPE,
    };
    m.check().unwrap();
    Stored {
        ints,
        values,
        matrix: SparseMatrix { arrays: SparseArrays::Coo(m), writable: true, temporary: false },
    }
}

/// Creates a BSR matrix; `shape` is in blocks, `block` is (rows, columns) of a block.
fn bsr<T: Element>(
    form: Form,
    shape: (i64, i64),
    block: (i64, i64),
    block_order: Order,
    arrays: [&[i64]; 2],
    values: &[T],
) -> Stored<T> {
    let mut ints =
        [Ints::new(form.offsets, form.base, arrays[0]), Ints::new(form.indices, form.base, arrays[1])];
    let mut values = values.to_vec();
    let m = Bsr {
        block_rows: shape.0,
        block_cols: shape.1,
        block_nnz: arrays[1].len() as i64,
        row_block: block.0,
        col_block: block.1,
        offsets: ints[0].address(),
        indices: ints[1].address(),
        values: address_mut(&mut values),
        offset_type: form.offsets,
        index_type: form.indices,
        base: form.base,
        value_type: T::TYPE,
        block_order,
    };
    m.check().unwrap();
    assert_eq!(m.stored(), values.len() as i64);
    Stored {
        ints,
        values,
        matrix: SparseMatrix { arrays: SparseArrays::Bsr(m), writable: true, temporary: false },
    }
}

/// The matrix of most tests, in a form and in every format, both tidy and untidy (unsorted, with duplicates
/// that add up to it):
///
/// ```text
///     . . . 1 2 3
/// A = . . . 4 5 6      . is not stored, and (3, 1) is a stored 0
///     7 8 9 . . .
///     1 0 2 . . .
/// ```
fn everywhere<T: Element>(form: Form, number: impl Fn(f64) -> T) -> Vec<(&'static str, Stored<T>)> {
    let shape = (4, 6);
    let v = |numbers: &[f64]| numbers.iter().map(|&n| number(n)).collect::<Vec<T>>();
    let by_rows = v(&[1., 2., 3., 4., 5., 6., 7., 8., 9., 1., 0., 2.]);
    let by_cols = v(&[7., 1., 8., 0., 9., 2., 1., 4., 2., 5., 3., 6.]);
    let block_cols = v(&[1., 4., 2., 5., 3., 6., 7., 1., 8., 0., 9., 2.]);
    let cols = [3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2];
    vec![
        ("CSR", csr(form, shape, [&[0, 3, 6, 9, 12], &cols], &by_rows)),
        // Duplicates: (0, 4) = 5 − 3.
        (
            "untidy CSR",
            csr(
                form,
                shape,
                [&[0, 4, 7, 10, 13], &[4, 5, 3, 4, 3, 5, 4, 2, 0, 1, 0, 1, 2]],
                &v(&[5., 3., 1., -3., 4., 6., 5., 9., 7., 8., 1., 0., 2.]),
            ),
        ),
        (
            "CSC",
            csc(form, shape, [&[0, 2, 4, 6, 8, 10, 12], &[2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1]], &by_cols),
        ),
        // Duplicates: (3, 0) = 4 − 3. Column 3 is not sorted.
        (
            "untidy CSC",
            csc(
                form,
                shape,
                [&[0, 3, 5, 7, 9, 11, 13], &[3, 2, 3, 2, 3, 2, 3, 1, 0, 0, 1, 0, 1]],
                &v(&[4., 7., -3., 8., 0., 9., 2., 4., 1., 2., 5., 3., 6.]),
            ),
        ),
        ("COO", coo(form, shape, [&[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], &cols], &by_rows)),
        // Duplicates: (1, 5) = 1 + 2 + 3.
        (
            "untidy COO",
            coo(
                form,
                shape,
                [&[3, 1, 0, 2, 1, 3, 0, 2, 1, 0, 1, 3, 2, 1], &[2, 5, 5, 0, 4, 0, 3, 2, 5, 4, 3, 1, 1, 5]],
                &v(&[2., 1., 3., 7., 5., 1., 1., 9., 2., 2., 4., 0., 8., 3.]),
            ),
        ),
        ("BSR, blocks by rows", bsr(form, (2, 2), (2, 3), Order::Row, [&[0, 1, 2], &[1, 0]], &by_rows)),
        ("BSR, blocks by columns", bsr(form, (2, 2), (2, 3), Order::Col, [&[0, 1, 2], &[1, 0]], &block_cols)),
        // Duplicates: block (0, 1) is the sum of two.
        (
            "untidy BSR",
            bsr(
                form,
                (2, 2),
                (2, 3),
                Order::Row,
                [&[0, 2, 3], &[1, 1, 0]],
                &v(&[1., 1., 1., 1., 1., 1., 0., 1., 2., 3., 4., 5., 7., 8., 9., 1., 0., 2.]),
            ),
        ),
    ]
}

/// Returns the descriptor of a user's vector.
fn vector<T: Element>(values: &[T]) -> DenseVector {
    DenseVector { len: values.len() as i64, values: address(values), value_type: T::TYPE, writable: true }
}

/// Value between the rows or columns of a dense matrix.
const PADDING: f64 = 777.0;

/// A dense matrix with its array, with two elements of padding after each row or column.
#[derive(Clone, Debug)]
struct Dense<T> {
    values: Vec<T>,
    matrix: DenseMatrix,
}

/// Creates a dense matrix from its rows.
fn dense<T: Element, const N: usize>(order: Order, rows: &[[T; N]], padding: T) -> Dense<T> {
    let (inner, outer) = match order {
        Order::Col => (rows.len(), N),
        Order::Row => (N, rows.len()),
    };
    let ld = inner + 2;
    let mut values = vec![padding; ld * outer];
    for (i, row) in rows.iter().enumerate() {
        for (j, &value) in row.iter().enumerate() {
            match order {
                Order::Col => values[i + j * ld] = value,
                Order::Row => values[i * ld + j] = value,
            }
        }
    }
    let matrix = DenseMatrix {
        rows: rows.len() as i64,
        cols: N as i64,
        ld: ld as i64,
        values: address_mut(&mut values),
        value_type: T::TYPE,
        order,
        writable: true,
    };
    matrix.check().unwrap();
    Dense { values, matrix }
}

/// Returns the transpose of a matrix given by its rows.
fn transpose<T: Copy, const M: usize, const N: usize>(rows: &[[T; N]; M]) -> [[T; M]; N] {
    std::array::from_fn(|j| std::array::from_fn(|i| rows[i][j]))
}
