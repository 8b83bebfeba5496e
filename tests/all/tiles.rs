//! Tests of matrices in tiles that the library owns: conversions, chains of products, new values, and errors.

use std::ptr::{null, null_mut};

use client::{arg, check, Plan, Scalar, Session, Sparse, View, ViewMut};
use half::f16;
use matrices::SplitMix64;
use num_complex::{Complex32, Complex64};
use tarsia::capi::{spgemm, spmat, spmat_access, tile};
use tarsia::facade::{
    ComputeType, DataType, Element, Error, Format, Index, IndexBase, Operation, Order, Result, SpgemmAlg,
    SpmmAlg, SpmvAlg, Status,
};

use crate::common::backends;
use crate::common::number::{Value, Wide};
use crate::common::staged::Staged;
use testkit::Number as _;

const N: Operation = Operation::NonTranspose;
const T: Operation = Operation::Transpose;
const C: Operation = Operation::ConjugateTranspose;

/// Borrows the elements of an array.
fn all<T: bytemuck::Pod>(array: &Staged<T>, len: usize) -> View<'_, T> {
    array.part(0..len)
}

/// Borrows the elements of an array mutably.
fn all_mut<T: bytemuck::Pod>(array: &mut Staged<T>, len: usize) -> ViewMut<'_, T> {
    array.part_mut(0..len)
}

/// CSR or CSC matrix in host memory.
#[derive(Clone, Debug, PartialEq)]
struct Stored<V> {
    format: Format,
    shape: (i64, i64),
    base: IndexBase,
    offsets: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<V>,
}

impl<V: Value> Stored<V> {
    /// Stores entries (row, column, value), which keep their order inside each row or column.
    fn of(format: Format, shape: (i64, i64), base: IndexBase, entries: &[(usize, usize, V)]) -> Self {
        let first = i64::from(base == IndexBase::One);
        let by_columns = format == Format::Csc;
        let major = if by_columns { shape.1 } else { shape.0 } as usize;
        let mut lists = vec![Vec::new(); major];
        for &(row, col, value) in entries {
            let (outer, inner) = if by_columns { (col, row) } else { (row, col) };
            lists[outer].push((inner as i64 + first, value));
        }
        let mut offsets = vec![first];
        for list in &lists {
            offsets.push(offsets.last().unwrap() + list.len() as i64);
        }
        let (indices, values) = lists.into_iter().flatten().unzip();
        Stored { format, shape, base, offsets, indices, values }
    }

    /// Calls `f` with a descriptor of the matrix in the session's memory, with these index types.
    fn with<I: Index, J: Index, R>(&self, session: &Session, f: impl FnOnce(&Sparse<'_>) -> R) -> R {
        let offsets: Vec<I> = self.offsets.iter().map(|&i| I::from_i64(i)).collect();
        let indices: Vec<J> = self.indices.iter().map(|&j| J::from_i64(j)).collect();
        let kind = session.kind();
        let (major, nnz) = (offsets.len(), indices.len());
        let (offsets, indices) = (Staged::new(kind, &offsets), Staged::new(kind, &indices));
        let values = Staged::new(kind, &self.values);
        let (o, i, v) = (all(&offsets, major), all(&indices, nnz), all(&values, nnz));
        let made = match self.format {
            Format::Csr => Sparse::csr(self.shape, o, i, v, self.base),
            _ => Sparse::csc(self.shape, o, i, v, self.base),
        };
        let made = made.unwrap();
        f(&made)
    }

    /// Converts the matrix to this format, base 0.
    fn turned(&self, format: Format) -> Self {
        assert_eq!((self.format, self.base), (Format::Csr, IndexBase::Zero));
        let mut entries = Vec::new();
        for row in 0..self.shape.0 as usize {
            for at in self.offsets[row] as usize..self.offsets[row + 1] as usize {
                entries.push((row, self.indices[at] as usize, self.values[at]));
            }
        }
        Stored::of(format, self.shape, self.base, &entries)
    }

    /// Converts the matrix to tiles.
    fn tiles(&self, session: &Session, value_type: DataType) -> Sparse<'static> {
        let made = Sparse::tile(session, self.shape, value_type).unwrap();
        self.with::<i32, i32, _>(session, |a| made.take(session, a)).unwrap();
        made
    }
}

/// Converts a matrix in tiles to CSR or CSC with these index types.
fn out_of<V: Value, I: Index, J: Index>(
    session: &Session,
    a: &Sparse<'_>,
    format: Format,
    base: IndexBase,
) -> Stored<V> {
    let info = a.tile_info().unwrap();
    let shape = (info.rows, info.cols);
    let major = if format == Format::Csr { info.rows } else { info.cols } as usize;
    let (kind, nnz) = (session.kind(), info.nnz as usize);
    let mut offsets = Staged::new(kind, &vec![I::from_i64(77); major + 1]);
    let mut indices = Staged::new(kind, &vec![J::from_i64(77); nnz]);
    let mut values = Staged::new(kind, &vec![V::nan(); nnz]);
    let mut raw = null_mut();
    let create = if format == Format::Csr { spmat::tarsiaCreateCsr } else { spmat::tarsiaCreateCsc };
    // SAFETY: the arrays have the lengths that the descriptor says and outlive it.
    unsafe {
        let (o, i) = (all_mut(&mut offsets, major + 1), all_mut(&mut indices, nnz));
        let v = all_mut(&mut values, nnz);
        check(create(
            &mut raw,
            shape.0,
            shape.1,
            info.nnz,
            o.as_mut_ptr().cast(),
            i.as_mut_ptr().cast(),
            v.as_mut_ptr().cast(),
            arg(I::TYPE),
            arg(J::TYPE),
            arg(base),
            arg(V::TYPE),
        ))
        .unwrap();
        check(tile::tarsiaTileToSparse(session.raw(), a.raw(), raw)).unwrap();
    }
    spmat::tarsiaDestroySpMat(raw);
    let offsets = offsets.download().unwrap().into_iter().map(Index::to_i64).collect();
    let indices = indices.download().unwrap().into_iter().map(Index::to_i64).collect();
    Stored { format, shape, base, offsets, indices, values: values.download().unwrap() }
}

fn csr_of<V: Value>(session: &Session, a: &Sparse<'_>) -> Stored<V> {
    out_of::<V, i32, i32>(session, a, Format::Csr, IndexBase::Zero)
}

/// Computes alpha · op(A) · op(B) by algorithm `tile` into CSR.
fn product<V: Value + Scalar>(
    session: &Session,
    ops: (Operation, Operation),
    (a, b): (&Sparse<'_>, &Sparse<'_>),
    shape: (i64, i64),
    (compute, alpha): (ComputeType, V),
) -> Stored<V> {
    let plan = Plan::spgemm(session, ops, a, b, compute, SpgemmAlg::Tile).unwrap();
    plan.analyze(session).unwrap();
    let nnz = plan.symbolic(session).unwrap() as usize;
    let kind = session.kind();
    let mut offsets = Staged::new(kind, &vec![0_i32; shape.0 as usize + 1]);
    let mut indices = Staged::new(kind, &vec![0_i32; nnz]);
    let mut values = Staged::new(kind, &vec![V::nan(); nnz]);
    let (o, i) = (all_mut(&mut offsets, shape.0 as usize + 1), all_mut(&mut indices, nnz));
    let v = all_mut(&mut values, nnz);
    plan.numeric_csr(session, alpha, shape, o, i, v, IndexBase::Zero).unwrap();
    Stored {
        format: Format::Csr,
        shape,
        base: IndexBase::Zero,
        offsets: offsets.download().unwrap().into_iter().map(i64::from).collect(),
        indices: indices.download().unwrap().into_iter().map(i64::from).collect(),
        values: values.download().unwrap(),
    }
}

/// Computes alpha · op(A) · op(B) by algorithm `tile` into tiles.
fn product_in_tiles<V: Value + Scalar>(
    session: &Session,
    ops: (Operation, Operation),
    (a, b): (&Sparse<'_>, &Sparse<'_>),
    shape: (i64, i64),
    (compute, alpha): (ComputeType, V),
) -> Sparse<'static> {
    let plan = Plan::spgemm(session, ops, a, b, compute, SpgemmAlg::Tile).unwrap();
    plan.analyze(session).unwrap();
    let nnz = plan.symbolic(session).unwrap();
    let c = Sparse::tile(session, shape, <V as Element>::TYPE).unwrap();
    plan.numeric_tile(session, alpha, &c).unwrap();
    assert_eq!(c.tile_info().unwrap().nnz, nnz);
    c
}

fn bits<V: bytemuck::Pod>(values: &[V]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Checks that both matrices have the same pattern, and the same values to the bit.
fn check_same<V: Value>(what: &str, found: &Stored<V>, wanted: &Stored<V>) {
    assert_eq!((found.format, found.shape), (wanted.format, wanted.shape), "{what}");
    assert_eq!(found.offsets, wanted.offsets, "{what}: offsets");
    assert_eq!(found.indices, wanted.indices, "{what}: indices");
    assert!(bits(&found.values) == bits(&wanted.values), "{what}: values");
}

/// Returns entries of a square matrix, each once, row by row: a full tile of 256, tiles of one row or one
/// column, scattered entries, and empty rows.
fn entries<V: Value>(rng: &mut SplitMix64, n: usize) -> Vec<(usize, usize, V)> {
    let mut out = Vec::new();
    for row in 0..n {
        for col in 0..n {
            let full = row / 16 == 1 && col / 16 == 2 || (row / 16 == 2 && col / 16 == 1);
            let line = row == 5 || col == n - 3;
            let empty = row % 16 == 7 && row / 16 != 1 && row / 16 != 2;
            if (full || line || (row * 31 + col * 17) % 23 == 0) && !empty {
                out.push((row, col, V::random(rng)));
            }
        }
    }
    out
}

const SIDE: usize = 75;
const SHAPE: (i64, i64) = (SIDE as i64, SIDE as i64);

/// Tests the conversion of CSR and CSC to tiles and back, with all index types.
pub fn round_trip<V: Value>(session: &Session, seed: u64) {
    let mut rng = SplitMix64::new(seed);
    let entries = entries::<V>(&mut rng, SIDE);
    let full = (entries.iter()).filter(|(row, col, _)| row / 16 == 1 && col / 16 == 2).count();
    assert_eq!(full, 256);
    // Reversed, so that rows are not sorted.
    let unsorted: Vec<_> = entries.iter().rev().copied().collect();
    for (format, base) in [Format::Csr, Format::Csc].into_iter().zip([IndexBase::One, IndexBase::Zero]) {
        let a = Stored::of(format, SHAPE, base, &unsorted);
        let tiles = a.tiles(session, V::TYPE);
        let info = tiles.tile_info().unwrap();
        assert_eq!((info.rows, info.cols, info.nnz), (SHAPE.0, SHAPE.1, entries.len() as i64));
        assert_eq!(info.value_type, V::TYPE);
        for (to, to_base) in
            [(Format::Csr, IndexBase::Zero), (Format::Csr, IndexBase::One), (Format::Csc, IndexBase::One)]
        {
            let wanted = Stored::of(to, SHAPE, to_base, &entries);
            let what = format!("{format:?} to {to:?} of {}", V::TYPE.short());
            check_same(&what, &out_of::<V, i32, i32>(session, &tiles, to, to_base), &wanted);
            check_same(&what, &out_of::<V, i64, i32>(session, &tiles, to, to_base), &wanted);
            check_same(&what, &out_of::<V, i64, i64>(session, &tiles, to, to_base), &wanted);
        }
    }
}

#[test]
fn conversions_keep_every_entry() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        round_trip::<f64>(&session, 1);
        round_trip::<f32>(&session, 2);
        round_trip::<Complex64>(&session, 3);
        round_trip::<Complex32>(&session, 4);
    }
}

/// Conversions add up entries that are stored twice, widen halves to fp32, and accept empty matrices.
#[test]
fn conversions_add_and_widen() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let half = f16::from_f64;
        let twice = [(0, 1, half(0.1)), (1, 0, half(7.0)), (0, 1, half(0.3)), (2, 17, half(-2.5))];
        for format in [Format::Csr, Format::Csc] {
            let a = Stored::of(format, (3, 18), IndexBase::Zero, &twice);
            let tiles = a.tiles(&session, DataType::R32F);
            let sum = half(0.1).to_f32() + half(0.3).to_f32();
            let wanted = [(0, 1, sum), (1, 0, 7.0), (2, 17, -2.5)];
            let wanted = Stored::of(Format::Csr, (3, 18), IndexBase::Zero, &wanted);
            check_same("twice", &csr_of::<f32>(&session, &tiles), &wanted);
            assert_eq!(tiles.tile_info().unwrap().tiles, 2);
        }
        for shape in [(0, 0), (0, 5), (40, 0), (33, 20)] {
            let none = Stored::<f64>::of(Format::Csr, shape, IndexBase::Zero, &[]);
            let tiles = none.tiles(&session, DataType::R64F);
            check_same("empty", &csr_of::<f64>(&session, &tiles), &none);
        }
    }
}

/// Compares products of three matrices in tiles, also converted to arrays and with factors in arrays, with
/// those in arrays.
pub fn chain<V: Value + Scalar>(session: &Session, compute: ComputeType, format: Format, seed: u64) {
    let mut rng = SplitMix64::new(seed);
    let a = Stored::of(format, SHAPE, IndexBase::One, &entries::<V>(&mut rng, SIDE));
    let alpha = V::random(&mut rng);
    let what = format!("A·A·A of {} in {format:?}", <V as Element>::TYPE.short());
    let tiles = a.tiles(session, <V as Element>::TYPE);
    let both = (&tiles, &tiles);
    let square = product_in_tiles(session, (N, N), both, SHAPE, (compute, alpha));
    let cube = product_in_tiles(session, (N, N), (&square, &tiles), SHAPE, (compute, alpha));
    a.with::<i32, i32, _>(session, |csr| {
        let plain = product(session, (N, N), (csr, csr), SHAPE, (compute, alpha));
        check_same(&what, &csr_of(session, &square), &plain);
        // If A is stored by columns, all matrices are, so that products are summed in the same order.
        plain.turned(format).with::<i64, i32, _>(session, |plain| {
            let plain = product(session, (N, N), (plain, csr), SHAPE, (compute, alpha));
            check_same(&what, &csr_of(session, &cube), &plain);
            // Conversion to arrays at the end, and products with only one factor in tiles.
            let last = product(session, (N, N), (&square, &tiles), SHAPE, (compute, alpha));
            check_same(&what, &last, &plain);
            let mixed = product(session, (N, N), (&square, csr), SHAPE, (compute, alpha));
            check_same(&format!("{what}, B in arrays"), &mixed, &plain);
        });
        for ops in [(T, N), (N, T), (T, T), (C, N), (N, C)] {
            let plain = product(session, ops, (csr, csr), SHAPE, (compute, alpha));
            let found = product(session, ops, both, SHAPE, (compute, alpha));
            let text = format!("{what}: {ops:?}");
            // Sums may have another order if one of the two computes columns.
            assert_eq!((&found.offsets, &found.indices), (&plain.offsets, &plain.indices), "{text}");
            for (x, y) in found.values.iter().zip(&plain.values) {
                let (x, y) = (x.widen(), y.widen());
                let bound = 200.0 * V::ROUNDOFF * SIDE as f64;
                assert!((x - y).magnitude() <= bound, "{text}: {x:?} for {y:?}");
            }
            let again = product_in_tiles(session, ops, both, SHAPE, (compute, alpha));
            check_same(&text, &csr_of(session, &again), &found);
        }
    });
}

#[test]
fn chains_in_tiles_are_those_in_csr() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        for format in [Format::Csr, Format::Csc] {
            chain::<f64>(&session, ComputeType::R64F, format, 5);
            chain::<f32>(&session, ComputeType::R32F, format, 6);
            chain::<Complex64>(&session, ComputeType::C64F, format, 7);
            chain::<Complex32>(&session, ComputeType::C32F, format, 8);
        }
    }
}

/// A · Aᵀ and Aᵀ · A of a rectangular A, with the transpose in tiles of its own and by op.
#[test]
fn rectangular_products_with_their_transposes() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let mut rng = SplitMix64::new(11);
        let shape = (70, 33);
        let entries: Vec<_> = entries::<f64>(&mut rng, 70).into_iter().filter(|entry| entry.1 < 33).collect();
        let a = Stored::of(Format::Csr, shape, IndexBase::Zero, &entries);
        let turned: Vec<_> = entries.iter().map(|&(row, col, value)| (col, row, value)).collect();
        let turned = Stored::of(Format::Csr, (33, 70), IndexBase::Zero, &turned);
        let (tiles, turned) = (a.tiles(&session, DataType::R64F), turned.tiles(&session, DataType::R64F));
        let scale = (ComputeType::R64F, -1.5);
        let by_op = product::<f64>(&session, (N, T), (&tiles, &tiles), (70, 70), scale);
        let by_hand = product::<f64>(&session, (N, N), (&tiles, &turned), (70, 70), scale);
        check_same("A·Aᵀ", &by_op, &by_hand);
        let by_op = product::<f64>(&session, (T, N), (&tiles, &tiles), (33, 33), scale);
        let by_hand = product::<f64>(&session, (N, N), (&turned, &tiles), (33, 33), scale);
        check_same("Aᵀ·A", &by_op, &by_hand);
        // Galerkin product Aᵀ · (B · A) with B = A · Aᵀ.
        let b = product_in_tiles::<f64>(&session, (N, T), (&tiles, &tiles), (70, 70), scale);
        let ba = product_in_tiles::<f64>(&session, (N, N), (&b, &tiles), shape, scale);
        let galerkin = product_in_tiles::<f64>(&session, (T, N), (&tiles, &ba), (33, 33), scale);
        assert!(galerkin.tile_info().unwrap().nnz > 0);
    }
}

/// Products of fp16 and bf16 matrices have the bits of products of the same matrices in tiles of fp32.
#[test]
fn halves_in_tiles_are_single() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let mut rng = SplitMix64::new(12);
        let a = Stored::of(Format::Csr, SHAPE, IndexBase::Zero, &entries::<f16>(&mut rng, SIDE));
        let tiles = a.tiles(&session, DataType::R32F);
        let scale = (ComputeType::R32F, 0.3_f32);
        let found = product_in_tiles(&session, (N, N), (&tiles, &tiles), SHAPE, scale);
        a.with::<i32, i32, _>(&session, |a| {
            let wanted = product(&session, (N, N), (a, a), SHAPE, scale);
            check_same("fp16", &csr_of(&session, &found), &wanted);
        });
    }
}

/// New values of the same pattern are taken by updateValues, another pattern is refused, and a plan outlives
/// the matrices that it was made with.
#[test]
fn values_change_and_matrices_go() {
    for (kind, ops) in backends().into_iter().flat_map(|kind| [(kind, (N, N)), (kind, (T, N))]) {
        let session = Session::new(kind).unwrap();
        let mut rng = SplitMix64::new(13);
        let first = entries::<f64>(&mut rng, SIDE);
        let second: Vec<_> = first.iter().map(|&(i, j, _)| (i, j, f64::random(&mut rng))).collect();
        let [a, renewed] =
            [&first, &second].map(|entries| Stored::of(Format::Csr, SHAPE, IndexBase::Zero, entries));
        let tiles = a.tiles(&session, DataType::R64F);
        let scale = (ComputeType::R64F, 2.5);
        let plan = Plan::spgemm(&session, ops, &tiles, &tiles, scale.0, SpgemmAlg::Default).unwrap();
        plan.set_value_updates(true).unwrap();
        plan.analyze(&session).unwrap();
        assert_eq!(plan.symbolic(&session).unwrap(), plan.info().unwrap().nnzC);
        let c = Sparse::tile(&session, SHAPE, DataType::R64F).unwrap();
        plan.numeric_tile(&session, scale.1, &c).unwrap();
        let old = product::<f64>(&session, ops, (&tiles, &tiles), SHAPE, scale);
        check_same("first values", &csr_of(&session, &c), &old);

        renewed.with::<i32, i32, _>(&session, |renewed| tiles.take(&session, renewed)).unwrap();
        // Until the call, the plan uses the old values.
        plan.numeric_tile(&session, scale.1, &c).unwrap();
        check_same("kept values", &csr_of(&session, &c), &old);
        plan.take_tiles(&session).unwrap();
        plan.numeric_tile(&session, scale.1, &c).unwrap();
        let new = product::<f64>(&session, ops, (&tiles, &tiles), SHAPE, scale);
        check_same("new values", &csr_of(&session, &c), &new);

        let less = Stored::of(Format::Csr, SHAPE, IndexBase::Zero, &second[1..]);
        less.with::<i32, i32, _>(&session, |less| tiles.take(&session, less)).unwrap();
        refused(plan.take_tiles(&session), Status::InvalidValue, "A: its tiles have entries at other places");
        // C may be a factor, and a factor may be destroyed.
        drop(tiles);
        plan.numeric_tile(&session, scale.1, &c).unwrap();
        check_same("without the matrix", &csr_of(&session, &c), &new);
        let plan = Plan::spgemm(&session, (N, N), &c, &c, scale.0, SpgemmAlg::Tile).unwrap();
        plan.analyze(&session).unwrap();
        plan.symbolic(&session).unwrap();
        let wanted = product::<f64>(&session, (N, N), (&c, &c), SHAPE, scale);
        plan.numeric_tile(&session, scale.1, &c).unwrap();
        check_same("C is a factor", &csr_of(&session, &c), &wanted);
    }
}

/// alpha = 0 writes the pattern with zeros and reads no values; Inf and NaN only reach the sums that they are
/// part of.
#[test]
fn alpha_zero_and_what_is_not_finite() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let mut rng = SplitMix64::new(14);
        let mut entries = entries::<f64>(&mut rng, SIDE);
        for (at, entry) in entries.iter_mut().enumerate().step_by(97) {
            entry.2 = if at % 2 == 0 { f64::NAN } else { f64::INFINITY };
        }
        let a = Stored::of(Format::Csr, SHAPE, IndexBase::Zero, &entries);
        let tiles = a.tiles(&session, DataType::R64F);
        let zero = (ComputeType::R64F, 0.0);
        let found =
            csr_of::<f64>(&session, &product_in_tiles(&session, (N, N), (&tiles, &tiles), SHAPE, zero));
        assert!(found.values.iter().all(|&value| value == 0.0), "alpha 0 reads values");
        let one = (ComputeType::R64F, 1.0);
        let product =
            csr_of::<f64>(&session, &product_in_tiles(&session, (N, N), (&tiles, &tiles), SHAPE, one));
        assert_eq!((&product.offsets, &product.indices), (&found.offsets, &found.indices));
        // Marks the sums that have a value which is not finite.
        let mut wild = vec![false; SIDE * SIDE];
        let of_row = |row: usize| entries.iter().filter(move |entry| entry.0 == row);
        for &(row, k, left) in &entries {
            for &(_, col, right) in of_row(k) {
                wild[row * SIDE + col] |= !(left * right).is_finite();
            }
        }
        for row in 0..SIDE {
            for at in product.offsets[row] as usize..product.offsets[row + 1] as usize {
                let col = product.indices[at] as usize;
                assert_eq!(!product.values[at].is_finite(), wild[row * SIDE + col], "({row}, {col})");
            }
        }
    }
}

fn refused<R: std::fmt::Debug>(result: Result<R>, status: Status, text: &str) {
    let error: Error = result.expect_err(text);
    assert!(
        error.status == status && error.message.contains(text),
        "{error} ({:?}) for {text}",
        error.status
    );
}

#[test]
fn wrong_use_is_refused() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let (real, single) = (DataType::R64F, DataType::R32F);
        let tile = |shape, value_type| Sparse::tile(&session, shape, value_type);
        refused(tile((-1, 4), real), Status::InvalidValue, "rows: -1 is negative");
        refused(tile((1, 1 << 31), real), Status::InvalidValue, "cols: 2147483648");
        refused(tile((1, 1), DataType::R16F), Status::NotSupported, "valueType: tiles have the type of sums");
        let a = tile((20, 20), real).unwrap();
        let info = a.tile_info().unwrap();
        assert_eq!((info.nnz, info.tiles), (0, 0));

        // Functions that need arrays refuse a matrix in tiles.
        let (sv, sm) = (SpmvAlg::Default, SpmmAlg::Default);
        let plan = Plan::spmv(&session, N, &a, (real, real), ComputeType::R64F, sv);
        refused(plan, Status::NotSupported, "A: SpMV does not take format tile");
        let orders = (Order::Col, Order::Col);
        let plan = Plan::spmm(&session, (N, N), &a, orders, 4, (real, real), ComputeType::R64F, sm);
        refused(plan, Status::NotSupported, "A: SpMM does not take format tile");
        refused(session.check_sparse(&a), Status::NotSupported, "A: it is in tiles");
        let raw = a.raw().cast_mut();
        let (mut value, mut values, mut base) = (null_mut(), null(), std::mem::MaybeUninit::uninit());
        // SAFETY: answers are valid for writes or NULL.
        unsafe {
            let get = spmat_access::tarsiaSpMatGetValues(raw, &mut value);
            refused(check(get), Status::NotSupported, "A: it is in tiles");
            let get = spmat_access::tarsiaConstSpMatGetValues(raw, &mut values);
            refused(check(get), Status::NotSupported, "A: it is in tiles");
            let get = spmat_access::tarsiaSpMatGetIndexBase(raw, base.as_mut_ptr());
            refused(check(get), Status::NotSupported, "A: it is in tiles");
            let set = spmat_access::tarsiaSpMatSetValues(raw, null_mut());
            refused(check(set), Status::NotSupported, "A: it is in tiles");
            let set = spmat_access::tarsiaCsrSetPointers(raw, null_mut(), null_mut(), null_mut());
            refused(check(set), Status::InvalidValue, "A: it is a tile matrix, this function is for CSR");
        }

        // Products.
        let hash = Plan::spgemm(&session, (N, N), &a, &a, ComputeType::R64F, SpgemmAlg::Hash);
        refused(hash, Status::NotSupported, "A: SpGEMM does not take format tile");
        let plan = Plan::spgemm(&session, (N, N), &a, &a, ComputeType::R64F, SpgemmAlg::Tile).unwrap();
        refused(plan.analyze(&session), Status::InvalidState, "A: nothing is in it yet");
        let csr = Stored::of(Format::Csr, (20, 20), IndexBase::Zero, &[(3, 4, 1.5), (4, 3, 2.5)]);
        csr.with::<i32, i32, _>(&session, |csr| {
            refused(
                csr.tile_info(),
                Status::InvalidValue,
                "A: it is a CSR matrix, this function is for tiles",
            );
            let mixed = Plan::spgemm(&session, (N, N), csr, &a, ComputeType::R64F, SpgemmAlg::Hash);
            refused(mixed, Status::NotSupported, "B: SpGEMM does not take format tile");
            let plan = Plan::spgemm(&session, (N, N), csr, csr, ComputeType::R64F, SpgemmAlg::Hash).unwrap();
            plan.analyze(&session).unwrap();
            plan.symbolic(&session).unwrap();
            let wrong = plan.numeric_tile(&session, 1.0, &a);
            refused(wrong, Status::NotSupported, "C: algorithm hash does not write tiles");
            let plan = Plan::spgemm(&session, (N, N), csr, csr, ComputeType::R64F, SpgemmAlg::Tile).unwrap();
            plan.analyze(&session).unwrap();
            let early = plan.numeric_tile(&session, 1.0, &a);
            refused(early, Status::InvalidState, "needs tarsiaSpGEMM_symbolic first");
            plan.symbolic(&session).unwrap();
            let other = tile((20, 21), real).unwrap();
            let wrong = plan.numeric_tile(&session, 1.0, &other);
            refused(wrong, Status::InvalidValue, "C: it is 20 × 21, expected 20 × 20");
            let other = tile((20, 20), single).unwrap();
            refused(plan.numeric_tile(&session, 1.0, &other), Status::InvalidValue, "C: ");
            // Conversions.
            refused(other.take(&session, csr), Status::InvalidValue, "B: its values are fp32");
            let other = tile((21, 20), real).unwrap();
            refused(other.take(&session, csr), Status::InvalidValue, "B: it is 21 × 20, expected 20 × 20");
            refused(a.take(&session, &a), Status::NotSupported, "A: tiles are made of CSR and CSC");
            a.take(&session, csr).unwrap();
            // SAFETY: no array is read before the arguments are refused.
            unsafe {
                let wrong = tile::tarsiaTileToSparse(session.raw(), a.raw(), csr.raw().cast_mut());
                refused(check(wrong), Status::InvalidValue, "B: it was made by a tarsiaCreateConst function");
                let wrong = tile::tarsiaTileToSparse(session.raw(), csr.raw(), csr.raw().cast_mut());
                refused(
                    check(wrong),
                    Status::InvalidValue,
                    "A: it is a CSR matrix, this function is for tiles",
                );
                let plan =
                    Plan::spgemm(&session, (N, N), &a, csr, ComputeType::R64F, SpgemmAlg::Tile).unwrap();
                plan.analyze(&session).unwrap();
                let values = Staged::new(kind, &[1.0, 2.0]);
                let pointer = all(&values, 2).as_ptr().cast();
                let wrong = spgemm::tarsiaSpGEMM_updateValues(session.raw(), plan.raw(), pointer, null());
                refused(check(wrong), Status::InvalidValue, "newValuesA: the matrix is in tiles");
            }
        });
        for other in backends() {
            if other != kind {
                let elsewhere = Session::new(other).unwrap();
                let plan = Plan::spgemm(&elsewhere, (N, N), &a, &a, ComputeType::R64F, SpgemmAlg::Tile);
                refused(plan, Status::InvalidValue, "");
            }
        }
    }
}
