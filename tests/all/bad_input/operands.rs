//! Tests of operands that do not fit a plan (shapes, types, orders, const, overlaps), and of plans for
//! products that do not exist.

use std::ptr::null_mut;

use client::arg;
use libc::c_void;
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::{tarsiaDnMatDescr_t, tarsiaDnVecDescr_t, tarsiaPlan_t, tarsiaSpMatDescr_t};
use tarsia::capi::{dnmat, dnvec, handle, plan, spgemm, spmat, spmat_access, spmm, spmv};
use tarsia::facade::{
    ComputeType, DataType, Format, Operation, Order, PointerMode, SpgemmAlg, SpmmAlg, SpmvAlg, Status,
};

use super::bad::{accepts, forget_message, invalid, mentions, refuses};
use super::sparse::Create;
use super::world::{made, World};
use crate::common::backends;
use crate::common::staged::upload;

const F64: DataType = DataType::R64F;
const F32: DataType = DataType::R32F;
const N: Operation = Operation::NonTranspose;
const T: Operation = Operation::Transpose;
const R64: ComputeType = ComputeType::R64F;

/// Checks that the last message has this word.
#[track_caller]
fn says(what: &str, status: Status, word: &str, call: impl FnOnce() -> tarsiaStatus_t) {
    forget_message();
    mentions(call(), status, word).unwrap_or_else(|error| panic!("{what}: {error}"));
}

/// Vector descriptor that is destroyed at the end of the scope.
struct Vector(tarsiaDnVecDescr_t);

impl Vector {
    fn new(size: i64, values: *mut f64, value: DataType) -> Self {
        // SAFETY: the answer is valid for a write; the callers keep the array.
        Vector(made(|out| unsafe { dnvec::tarsiaCreateDnVec(out, size, values.cast(), arg(value)) }))
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        dnvec::tarsiaDestroyDnVec(self.0);
    }
}

/// Matrix descriptor that is destroyed at the end of the scope.
struct DenseDescriptor(tarsiaDnMatDescr_t);

impl DenseDescriptor {
    fn new((rows, cols, ld): (i64, i64, i64), order: Order, values: *mut f64, value: DataType) -> Self {
        // SAFETY: the answer is valid for a write; the callers keep the array.
        DenseDescriptor(made(|out| unsafe {
            dnmat::tarsiaCreateDnMat(out, rows, cols, ld, values.cast(), arg(value), arg(order))
        }))
    }
}

impl Drop for DenseDescriptor {
    fn drop(&mut self) {
        dnmat::tarsiaDestroyDnMat(self.0);
    }
}

/// SpMV with a plan and without one, whose answers must agree.
struct Spmv<'a> {
    world: &'a World,
    plan: tarsiaPlan_t,
    a: tarsiaSpMatDescr_t,
}

impl Spmv<'_> {
    fn calls(&self, x: tarsiaDnVecDescr_t, y: tarsiaDnVecDescr_t) -> [tarsiaStatus_t; 1] {
        let (one, zero) = ((&raw const self.world.one).cast(), (&raw const self.world.zero).cast());
        // SAFETY: the descriptors' arrays are there, or the call must fail.
        [unsafe { spmv::tarsiaSpMV(self.world.handle, self.plan, one, x, zero, y) }]
    }

    fn once(&self, x: tarsiaDnVecDescr_t, y: tarsiaDnVecDescr_t) -> tarsiaStatus_t {
        let (one, zero) = ((&raw const self.world.one).cast(), (&raw const self.world.zero).cast());
        // SAFETY: as above.
        unsafe { spmv::tarsiaSpMV_once(self.world.handle, arg(N), one, self.a, x, zero, y, arg(R64)) }
    }

    #[track_caller]
    fn refused(&self, what: &str, name: &str, x: tarsiaDnVecDescr_t, y: tarsiaDnVecDescr_t) {
        let what = format!("{:?}: SpMV, {what}", self.world.kind);
        invalid(&what, name, || self.calls(x, y)[0]);
        invalid(&format!("{what}, once"), name, || self.once(x, y));
        self.world.verify();
    }

    #[track_caller]
    fn accepted(&self, what: &str, x: tarsiaDnVecDescr_t, y: tarsiaDnVecDescr_t) {
        accepts(what, self.calls(x, y)[0]);
        accepts(what, self.once(x, y));
    }
}

#[test]
fn vectors_that_do_not_fit() {
    for kind in backends() {
        let world = World::new(kind);
        let spmv = Spmv { world: &world, plan: world.spmv, a: world.csr };
        let mut memory = upload(kind, &[1.0_f64; 16]);
        let m = memory.part_mut(0..16).as_mut_ptr();
        let (x, y) = (world.x, world.y);
        for size in [0, 3, 5] {
            spmv.refused("x of another length", "x", Vector::new(size, m, F64).0, y);
        }
        for size in [0, 2, 4] {
            spmv.refused("y of another length", "y", x, Vector::new(size, m, F64).0);
        }
        spmv.refused("x without array", "x", Vector::new(4, null_mut(), F64).0, y);
        spmv.refused("y without array", "y", x, Vector::new(3, null_mut(), F64).0);
        spmv.refused("const y", "y", x, world.const_y.cast_mut());

        // With a plan, the descriptors' types must be the plan's; without one, their combination is not
        // supported.
        let (x32, y32) = (Vector::new(4, m, F32), Vector::new(3, m, F32));
        invalid("x of another type", "x", || spmv.calls(x32.0, y)[0]);
        invalid("y of another type", "y", || spmv.calls(x, y32.0)[0]);
        refuses("x of another type, once", Status::NotSupported, "types", || spmv.once(x32.0, y));
        refuses("y of another type, once", Status::NotSupported, "types", || spmv.once(x, y32.0));
        world.verify();
        spmv.accepted("good vectors", Vector::new(4, m, F64).0, y);
    }
}

#[test]
fn vectors_that_share_memory() {
    for kind in backends() {
        let world = World::new(kind);
        // The BSR matrix is square.
        // SAFETY: the answer is valid for a write.
        let plan = made(|out| unsafe {
            let (compute, alg) = (arg(R64), arg(SpmvAlg::Default));
            spmv::tarsiaSpMV_createPlan(
                world.handle,
                out,
                arg(N),
                world.bsr,
                arg(F64),
                arg(F64),
                compute,
                alg,
            )
        });
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        let spmv = Spmv { world: &world, plan, a: world.bsr };
        let mut memory = upload(kind, &[1.0_f64; 16]);
        let base = memory.part_mut(0..16).as_mut_ptr();
        let at = |elements: usize| base.wrapping_add(elements);
        let x = Vector::new(4, at(4), F64);
        spmv.refused("y is x", "y", x.0, x.0);
        for shared in [1, 4, 7] {
            spmv.refused("y and x share elements", "y", x.0, Vector::new(4, at(shared), F64).0);
        }
        for beside in [0, 8] {
            spmv.accepted("y beside x", x.0, Vector::new(4, at(beside), F64).0);
        }
        let values = values_of(world.bsr);
        spmv.refused("y is A's values", "y", x.0, Vector::new(4, values, F64).0);
        spmv.refused("y ends in A's values", "y", x.0, Vector::new(4, values.wrapping_sub(3), F64).0);
        accepts("destroy", plan::tarsiaPlan_destroy(plan));
    }
}

/// Scalars in the result's memory are refused if kernels read them, since the result would overwrite them
/// before all kernels have read them.
#[test]
fn scalars_in_the_result() {
    for kind in backends() {
        let world = World::new(kind);
        let h = world.handle;
        accepts("mode", handle::tarsiaSetPointerMode(h, arg(PointerMode::Device)));
        let mut memory = upload(kind, &[1.0_f64; 16]);
        let base = memory.part_mut(0..16).as_mut_ptr();
        let behind = base.wrapping_add(8);
        let y = Vector::new(3, base, F64);
        let c = DenseDescriptor::new((3, 2, 2), Order::Row, base, F64);
        let spmm = Spmm::new(&world, world.csr, N, (Order::Col, Order::Row));
        let is_refused = |what: &str, name: &str, call: &dyn Fn(*const c_void) -> tarsiaStatus_t| {
            for at in [0, 1, 2] {
                invalid(&format!("{kind:?}: {what}, {name} in the result"), name, || {
                    call(base.wrapping_add(at).cast())
                });
                assert!(client::last_message().contains("it lies in"), "{}", client::last_message());
            }
            accepts(what, call(behind.cast()));
        };
        let good: *const c_void = behind.wrapping_add(4).cast();
        let (op, compute) = (arg(N), arg(R64));
        // SAFETY: the descriptors' arrays and the scalars are there.
        unsafe {
            is_refused("SpMV", "alpha", &|at| spmv::tarsiaSpMV(h, world.spmv, at, world.x, good, y.0));
            is_refused("SpMV", "beta", &|at| spmv::tarsiaSpMV(h, world.spmv, good, world.x, at, y.0));
            is_refused("SpMV, once", "alpha", &|at| {
                spmv::tarsiaSpMV_once(h, op, at, world.csr, world.x, good, y.0, compute)
            });
            is_refused("SpMM", "alpha", &|at| spmm::tarsiaSpMM(h, spmm.plan, at, world.b, good, c.0));
            is_refused("SpMM", "beta", &|at| spmm::tarsiaSpMM(h, spmm.plan, good, world.b, at, c.0));
            is_refused("SpMM, once", "beta", &|at| {
                spmm::tarsiaSpMM_once(h, op, op, good, world.csr, world.b, at, c.0, compute)
            });
            // Between the rows of C, whose elements are 0, 1, 4, 5, 8 and 9.
            let between = base.wrapping_add(2).cast();
            let narrow = DenseDescriptor::new((3, 2, 4), Order::Row, base, F64);
            accepts("alpha between rows", spmm::tarsiaSpMM(h, spmm.plan, between, world.b, good, narrow.0));
        }
        let values = values_of(world.product);
        // SAFETY: as above.
        let numeric = |alpha: *const f64| unsafe {
            spgemm::tarsiaSpGEMM_numeric(h, world.spgemm, alpha.cast(), world.product)
        };
        for at in [0, 4] {
            invalid("SpGEMM, alpha in C", "alpha", || numeric(values.wrapping_add(at)));
        }
        accepts("SpGEMM", numeric(behind));
        accepts("mode", handle::tarsiaSetPointerMode(h, arg(PointerMode::Host)));
        world.verify();
    }
}

/// Returns the address of a matrix's values.
fn values_of(a: tarsiaSpMatDescr_t) -> *mut f64 {
    let mut values: *mut c_void = null_mut();
    // SAFETY: the answer is valid for a write.
    accepts("values", unsafe { spmat_access::tarsiaSpMatGetValues(a, &mut values) });
    values.cast()
}

/// SpMM with a plan and without one.
struct Spmm<'a> {
    world: &'a World,
    plan: tarsiaPlan_t,
    a: tarsiaSpMatDescr_t,
    op_b: Operation,
}

impl<'a> Spmm<'a> {
    fn new(world: &'a World, a: tarsiaSpMatDescr_t, op_b: Operation, orders: (Order, Order)) -> Self {
        // SAFETY: the answer is valid for a write.
        let plan = made(|out| unsafe {
            let (b, c, alg) = (arg(orders.0), arg(orders.1), arg(SpmmAlg::Default));
            spmm::tarsiaSpMM_createPlan(
                world.handle,
                out,
                arg(N),
                arg(op_b),
                a,
                b,
                c,
                2,
                arg(F64),
                arg(F64),
                arg(R64),
                alg,
            )
        });
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        Spmm { world, plan, a, op_b }
    }

    fn call(&self, b: tarsiaDnMatDescr_t, c: tarsiaDnMatDescr_t) -> tarsiaStatus_t {
        let (one, zero) = ((&raw const self.world.one).cast(), (&raw const self.world.zero).cast());
        // SAFETY: the descriptors' arrays are there, or the call must fail.
        unsafe { spmm::tarsiaSpMM(self.world.handle, self.plan, one, b, zero, c) }
    }

    fn once(&self, b: tarsiaDnMatDescr_t, c: tarsiaDnMatDescr_t) -> tarsiaStatus_t {
        let (one, zero) = ((&raw const self.world.one).cast(), (&raw const self.world.zero).cast());
        let (op_a, op_b) = (arg(N), arg(self.op_b));
        // SAFETY: as above.
        unsafe { spmm::tarsiaSpMM_once(self.world.handle, op_a, op_b, one, self.a, b, zero, c, arg(R64)) }
    }

    #[track_caller]
    fn refused(&self, what: &str, name: &str, b: tarsiaDnMatDescr_t, c: tarsiaDnMatDescr_t) {
        let what = format!("{:?}: SpMM, {what}", self.world.kind);
        invalid(&what, name, || self.call(b, c));
        invalid(&format!("{what}, once"), name, || self.once(b, c));
        self.world.verify();
    }

    #[track_caller]
    fn accepted(&self, what: &str, b: tarsiaDnMatDescr_t, c: tarsiaDnMatDescr_t) {
        accepts(what, self.call(b, c));
        accepts(what, self.once(b, c));
    }
}

impl Drop for Spmm<'_> {
    fn drop(&mut self) {
        plan::tarsiaPlan_destroy(self.plan);
    }
}

#[test]
fn matrices_that_do_not_fit() {
    use Order::{Col, Row};
    for kind in backends() {
        let world = World::new(kind);
        let mut memory = upload(kind, &[1.0_f64; 64]);
        let m = memory.part_mut(0..64).as_mut_ptr();
        let far = m.wrapping_add(32);
        let spmm = Spmm::new(&world, world.csr, N, (Col, Col));
        let (b, c) = (world.b, world.c);
        let of = |rows, cols| DenseDescriptor::new((rows, cols, 8), Col, far, F64);
        for (rows, cols) in [(3, 2), (5, 2), (2, 4)] {
            spmm.refused("B of another shape", "B", of(rows, cols).0, c);
        }
        for (rows, cols) in [(4, 2), (2, 2), (3, 1), (3, 3), (2, 3)] {
            spmm.refused("C of another shape", "C", b, of(rows, cols).0);
        }
        spmm.refused("B without array", "B", DenseDescriptor::new((4, 2, 4), Col, null_mut(), F64).0, c);
        spmm.refused("C without array", "C", b, DenseDescriptor::new((3, 2, 3), Col, null_mut(), F64).0);
        spmm.refused("const C", "C", b, world.const_c.cast_mut());
        // The number of columns may differ from nHint.
        spmm.accepted("3 columns", of(4, 3).0, DenseDescriptor::new((3, 3, 3), Col, m, F64).0);
        spmm.accepted("no column", of(4, 0).0, DenseDescriptor::new((3, 0, 3), Col, null_mut(), F64).0);

        // With a plan, types and orders must be the plan's; without one, the descriptors' combination is what
        // counts.
        let (b32, c32) =
            (DenseDescriptor::new((4, 2, 4), Col, m, F32), DenseDescriptor::new((3, 2, 3), Col, m, F32));
        invalid("B of another type", "B", || spmm.call(b32.0, c));
        invalid("C of another type", "C", || spmm.call(b, c32.0));
        refuses("B of another type, once", Status::NotSupported, "types", || spmm.once(b32.0, c));
        refuses("C of another type, once", Status::NotSupported, "types", || spmm.once(b, c32.0));
        let (b_row, c_row) =
            (DenseDescriptor::new((4, 2, 2), Row, m, F64), DenseDescriptor::new((3, 2, 2), Row, far, F64));
        invalid("B of another order", "B", || spmm.call(b_row.0, c));
        invalid("C of another order", "C", || spmm.call(b, c_row.0));
        accepts("B of another order, once", spmm.once(b_row.0, c));
        accepts("C of another order, once", spmm.once(b, c_row.0));
        world.verify();

        // With opB, the number of rows of op(B) must fit.
        let transposed = Spmm::new(&world, world.csr, T, (Row, Col));
        let b_row = DenseDescriptor::new((2, 4, 4), Row, m, F64);
        transposed.accepted("Bᵀ", b_row.0, c);
        transposed.refused("B instead of Bᵀ", "B", DenseDescriptor::new((4, 2, 2), Row, m, F64).0, c);
        transposed.refused(
            "C with B's columns",
            "C",
            b_row.0,
            DenseDescriptor::new((3, 4, 3), Col, far, F64).0,
        );
    }
}

#[test]
fn matrices_that_share_memory() {
    for kind in backends() {
        let world = World::new(kind);
        for order in [Order::Col, Order::Row] {
            // The BSR matrix is 4 × 4: B and C are 4 × 4 panels of a memory of
            // 10 lines of 8 elements.
            let spmm = Spmm::new(&world, world.bsr, N, (order, order));
            let mut memory = upload(kind, &[1.0_f64; 80]);
            let base = memory.part_mut(0..80).as_mut_ptr();
            let panel = |line: usize, element: usize| {
                DenseDescriptor::new((4, 4, 8), order, base.wrapping_add(8 * line + element), F64)
            };
            let b = panel(3, 0);
            spmm.refused("C is B", "C", b.0, b.0);
            let in_a = DenseDescriptor::new((4, 4, 8), order, values_of(world.bsr), F64);
            spmm.refused("C begins with A's values", "C", b.0, in_a.0);
            for (line, element) in [(3, 1), (3, 3), (0, 0), (1, 2), (6, 3), (6, 0)] {
                let shared = panel(line, element);
                spmm.refused(&format!("C at line {line}, element {element}"), "C", b.0, shared.0);
            }
            for (line, element) in [(3, 4), (0, 4), (6, 4), (5, 4)] {
                spmm.accepted(&format!("C at line {line}, element {element}"), b.0, panel(line, element).0);
            }
            // Another leading dimension: the ranges must be apart.
            let compact = DenseDescriptor::new((4, 4, 4), order, base.wrapping_add(8 * 3 + 4), F64);
            spmm.refused("C with another ld inside B's range", "C", b.0, compact.0);
            let apart = DenseDescriptor::new((4, 4, 4), order, base, F64);
            spmm.accepted("C with another ld", b.0, apart.0);
        }
    }
}

/// tarsiaSpGEMM_numeric with descriptors of C that differ from the right one.
struct SparseProductCall<'a> {
    world: &'a World,
    create: Create,
}

impl<'a> SparseProductCall<'a> {
    fn new(world: &'a World) -> Self {
        let a = world.a();
        // SAFETY: the world's arrays live.
        let arrays = unsafe {
            [
                (&raw mut (*a).c_offsets).cast(),
                (&raw mut (*a).c_indices).cast(),
                (&raw mut (*a).c_values).cast(),
            ]
        };
        let arrays = arrays.map(|array: *mut c_void| array.expose_provenance());
        SparseProductCall {
            world,
            create: Create { shape: (3, 3), arrays, block: (1, 1), ..Create::new(Format::Csr) },
        }
    }

    /// Calls tarsiaSpGEMM_numeric with a C of these arguments.
    fn call(&self, create: Create) -> tarsiaStatus_t {
        let mut c = null_mut();
        accepts("create C", create.call(&mut c));
        let one = (&raw const self.world.one).cast();
        // SAFETY: C's arrays are the world's, or the call must fail.
        let code = unsafe { spgemm::tarsiaSpGEMM_numeric(self.world.handle, self.world.spgemm, one, c) };
        spmat::tarsiaDestroySpMat(c);
        code
    }

    #[track_caller]
    fn refused(&self, what: &str, create: Create) {
        invalid(&format!("{:?}: C {what}", self.world.kind), "C", || self.call(create));
        self.world.verify();
    }
}

#[test]
fn products_that_do_not_fit() {
    for kind in backends() {
        let world = World::new(kind);
        let product = SparseProductCall::new(&world);
        let good = product.create;
        accepts("C", product.call(good));
        for shape in [(3, 4), (4, 3), (2, 3), (3, 2)] {
            product.refused("of another shape", Create { shape, ..good });
        }
        for nnz in [0, 4, 6] {
            product.refused("with other room", Create { nnz, ..good });
        }
        for value in [F32, DataType::C64F] {
            product.refused("of another type", Create { value, ..good });
        }
        product.refused("of const arrays", Create { constant: true, ..good });
        for missing in 0..3 {
            let mut arrays = good.arrays;
            arrays[missing] = 0;
            let what = format!("without {}", good.names()[missing]);
            product.refused(&what, Create { arrays, ..good });
            says(&what, Status::InvalidValue, good.names()[missing], || {
                product.call(Create { arrays, ..good })
            });
        }
        for format in [Format::Coo, Format::Bsr] {
            let create = Create { format, ..good };
            refuses("C of another format", Status::NotSupported, "C", || product.call(create));
        }
        // Every array of C in turn is put where an array of A, of B or another one of C is.
        // SAFETY: the world's arrays live.
        let others = unsafe {
            let a = world.a();
            [
                (&raw mut (*a).offsets).expose_provenance(),
                (&raw mut (*a).indices).expose_provenance(),
                (&raw mut (*a).values).expose_provenance(),
                (&raw mut (*a).column_offsets).expose_provenance(),
                (&raw mut (*a).row_indices).expose_provenance(),
                (&raw mut (*a).column_values).expose_provenance(),
            ]
        };
        for array in 0..3 {
            for other in others.into_iter().chain((0..3).filter(|&at| at != array).map(|at| good.arrays[at]))
            {
                let mut arrays = good.arrays;
                // Values must be aligned to 8 bytes; moved up to there, they still overlap.
                arrays[array] = other.next_multiple_of(8);
                product.refused("shares memory", Create { arrays, ..good });
            }
        }
        world.verify();
    }
}

/// createPlan refuses products of valid matrices that do not exist.
#[test]
fn plans_of_products_that_do_not_exist() {
    for kind in backends() {
        let world = World::new(kind);
        let mut plan: tarsiaPlan_t = null_mut();
        let (h, csr) = (world.handle, world.csr);
        let (f, r, order) = (arg(F64), arg(R64), arg(Order::Col));
        let out = &raw mut plan;
        // SAFETY: the answer is valid for a write, and nothing is read.
        unsafe {
            for (x, y, compute) in [
                (F32, F64, R64),
                (F64, F32, R64),
                (F64, F64, ComputeType::R32F),
                (F64, F64, ComputeType::Tf32),
                (F64, F64, ComputeType::C64F),
                (DataType::R8I, F64, R64),
                (DataType::R32I, DataType::R32I, R64),
            ] {
                let (x, y, compute) = (arg(x), arg(y), arg(compute));
                let what = format!("{kind:?}: types");
                refuses(&what, Status::NotSupported, "types", || {
                    spmv::tarsiaSpMV_createPlan(h, out, arg(N), csr, x, y, compute, arg(SpmvAlg::Default))
                });
                refuses(&what, Status::NotSupported, "types", || {
                    let alg = arg(SpmmAlg::Default);
                    spmm::tarsiaSpMM_createPlan(
                        h,
                        out,
                        arg(N),
                        arg(N),
                        csr,
                        order,
                        order,
                        2,
                        x,
                        y,
                        compute,
                        alg,
                    )
                });
            }
            for compute in [ComputeType::R32F, ComputeType::C64F, ComputeType::Tf32] {
                refuses("SpGEMM types", Status::NotSupported, "types", || {
                    let (compute, alg) = (arg(compute), arg(SpgemmAlg::Default));
                    spgemm::tarsiaSpGEMM_createPlan(
                        h,
                        out,
                        arg(N),
                        arg(N),
                        csr,
                        world.transposed,
                        compute,
                        alg,
                    )
                });
            }
            let spgemm = |a, b, op_b: Operation| {
                spgemm::tarsiaSpGEMM_createPlan(h, out, arg(N), arg(op_b), a, b, r, arg(SpgemmAlg::Default))
            };
            for other in [world.coo, world.bsr] {
                refuses("format of A", Status::NotSupported, "A", || spgemm(other, csr, N));
                refuses("format of B", Status::NotSupported, "B", || spgemm(csr, other, N));
            }
            // 3 × 4 times 3 × 4, and times the transpose of 4 × 3.
            refuses("inner dimensions", Status::InvalidValue, "B", || spgemm(csr, csr, N));
            refuses("inner dimensions", Status::InvalidValue, "B", || spgemm(csr, world.transposed, T));
            refuses("nHint", Status::InvalidValue, "nHint", || {
                let alg = arg(SpmmAlg::Default);
                spmm::tarsiaSpMM_createPlan(h, out, arg(N), arg(N), csr, order, order, -1, f, f, r, alg)
            });
        }
        assert!(plan.is_null(), "an answer was written");
        world.verify();
    }
}

#[test]
fn new_values_that_cannot_be_read() {
    for kind in backends() {
        let world = World::new(kind);
        // SAFETY: the world's arrays live.
        let values = unsafe { (&raw const (*world.a()).values).cast::<u8>() };
        let odd: *const c_void = values.wrapping_add(4).cast();
        let null = std::ptr::null::<c_void>();
        // SAFETY: what cannot be read must be refused.
        unsafe {
            for plan in [world.spmv, world.spmm] {
                invalid("misaligned", "newValues", || plan::tarsiaPlan_updateValues(world.handle, plan, odd));
                invalid("NULL", "newValues", || plan::tarsiaPlan_updateValues(world.handle, plan, null));
            }
            // For SpGEMM, too, the error calls the argument by its name in the header.
            let update = |values| plan::tarsiaPlan_updateValues(world.handle, world.spgemm, values);
            invalid("misaligned", "newValues", || update(odd));
            invalid("NULL", "newValues", || update(null));
            let both = |a, b| spgemm::tarsiaSpGEMM_updateValues(world.handle, world.spgemm, a, b);
            invalid("A misaligned", "newValuesA", || both(odd, null));
            invalid("B misaligned", "newValuesB", || both(null, odd));
            invalid("B misaligned", "newValuesB", || both(values.cast(), odd));
            invalid("both NULL", "newValuesA", || both(null, null));
            invalid("both NULL", "newValuesB", || both(null, null));
        }
        world.verify();
    }
}
