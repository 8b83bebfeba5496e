//! Any sequence of C calls on live, destroyed, NULL and wrong objects, with any
//! enum values, sizes and index arrays: a status, never a crash. The arrays
//! behind the pointers are as large as the descriptors say and outlive them;
//! that is the caller's only duty.

#![no_main]
#![allow(clippy::too_many_arguments)]

use std::ffi::c_void;
use std::ptr;

use arbitrary::Arbitrary;
use client::raw_arg;
use libfuzzer_sys::fuzz_target;
use tarsia::capi::objects::*;
use tarsia::capi::{
    dnmat, dnvec, handle, memory, plan, spgemm, spmat, spmat_access, spmm, spmv, status, threads,
};

/// Rows, columns and blocks that a descriptor may claim.
const SIDE: usize = 9;
/// Entries that a descriptor may claim.
const ENTRIES: usize = 40;
/// Rows and columns of a block that a descriptor may claim.
const BLOCK: usize = 3;
/// Bytes of the largest value array: blocks of the largest type.
const VALUE_BYTES: usize = ENTRIES * BLOCK * BLOCK * 16;

#[derive(Arbitrary, Debug, Clone, Copy)]
struct Sizes {
    rows: u8,
    cols: u8,
    nnz: u8,
    block: (u8, u8),
    ld: u8,
}

/// Mostly valid values of an enum, sometimes any integer.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Code(u8);

impl Code {
    fn of(self, valid: &[i32]) -> i32 {
        match self.0 {
            255 => 77,
            254 => -1,
            n => valid[n as usize % valid.len()],
        }
    }
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Call {
    Create(Code),
    Destroy(u8),
    Modes(u8, Code, u8),
    Workspace(u8, u16),
    Sparse {
        format: u8,
        sizes: Sizes,
        arrays: u8,
        types: (Code, Code, Code),
        base: Code,
        order: Code,
        output: bool,
    },
    DestroySparse(u8),
    Pointers(u8, u8),
    Check(u8, u8),
    Vector(u8, Code, bool),
    Matrix {
        sizes: Sizes,
        value: Code,
        order: Code,
        output: bool,
    },
    DestroyDense(u8, bool),
    PlanSpmv {
        ids: (u8, u8),
        op: Code,
        types: (Code, Code),
        compute: Code,
    },
    PlanSpmm {
        ids: (u8, u8),
        ops: (Code, Code),
        orders: (Code, Code),
        n: i8,
        types: (Code, Code),
        compute: Code,
    },
    PlanSpgemm {
        ids: (u8, u8, u8),
        ops: (Code, Code),
        compute: Code,
    },
    Settings(u8, Code, u8, u32),
    Promises(u8, u8, i8),
    Checks(u8, u8),
    Threads(i8),
    Analyze(u8, u8),
    Prepare(u8, u8),
    Info(u8),
    Spmv(u8, u8, u8, u8),
    Spmm(u8, u8, u8, u8),
    SpmvInto([u8; 5]),
    SpmmInto([u8; 5]),
    Symbolic(u8, u8),
    Numeric(u8, u8, u8),
    Update(u8, u8, bool),
    DestroyPlan(u8),
    Once {
        ids: (u8, u8, u8, u8),
        op: Code,
        compute: Code,
        dense: bool,
    },
    Misc(u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    /// Contents of the index arrays; small numbers hit valid patterns often.
    indices: [[i8; 41]; 3],
    values: [u8; 64],
    calls: Vec<Call>,
}

const TYPES: &[i32] = &[1, 0, 2, 14, 4, 5, 3, 10];
const INDEX: &[i32] = &[2, 3, 1];
const BASE: &[i32] = &[0, 1];
const OPS: &[i32] = &[0, 1, 2];
const COMPUTE: &[i32] = &[1, 0, 4, 5, 100, 101, 102];
const ORDER: &[i32] = &[1, 2];

/// Arrays of one fuzz run. Inputs are never written, outputs never read by
/// descriptors of inputs.
struct Arena {
    narrow: Vec<Vec<i32>>,
    wide: Vec<Vec<i64>>,
    values: Vec<u64>,
    out_narrow: Vec<i32>,
    out_wide: Vec<i64>,
    out_indices: Vec<i64>,
    out_values: Vec<u64>,
    workspace: Vec<u128>,
}

impl Arena {
    fn new(input: &Input) -> Self {
        let ascending = |row: &[i8; 41]| {
            let mut sum = 0i64;
            row.iter()
                .map(|&step| {
                    sum += i64::from(step & 3);
                    sum
                })
                .collect::<Vec<_>>()
        };
        let mut wide: Vec<Vec<i64>> =
            input.indices.iter().map(|row| row.iter().map(|&v| i64::from(v)).collect()).collect();
        wide.extend(input.indices.iter().map(ascending));
        let narrow = wide.iter().map(|row| row.iter().map(|&v| v as i32).collect()).collect();
        let bytes: Vec<u8> = (0..VALUE_BYTES).map(|k| input.values[k % 64]).collect();
        let values =
            bytes.chunks_exact(8).map(|c| u64::from_ne_bytes(c.try_into().expect("8 bytes"))).collect();
        Arena {
            narrow,
            wide,
            values,
            out_narrow: vec![0; 64],
            out_wide: vec![0; 64],
            out_indices: vec![0; SIDE * SIDE],
            out_values: vec![0; VALUE_BYTES / 8],
            workspace: vec![0; 4096],
        }
    }
}

struct World {
    arena: Arena,
    handles: Vec<tarsiaHandle_t>,
    sparse: Vec<tarsiaConstSpMatDescr_t>,
    /// The only ones that SpGEMM writes; never inputs, whose pattern must not
    /// change while a plan reads it.
    outputs: Vec<tarsiaSpMatDescr_t>,
    vectors: Vec<tarsiaConstDnVecDescr_t>,
    matrices: Vec<tarsiaConstDnMatDescr_t>,
    plans: Vec<tarsiaPlan_t>,
    scalars: [f64; 4],
}

/// An object by number: the newest ones, also destroyed ones, and NULL.
fn pick<T: Copy>(list: &[T], at: u8, null: T) -> T {
    if at == 255 || list.is_empty() {
        return null;
    }
    list[list.len() - 1 - at as usize % list.len()]
}

impl World {
    fn sparse_matrix(
        &mut self,
        format: u8,
        s: Sizes,
        arrays: u8,
        types: (Code, Code, Code),
        base: Code,
        order: Code,
        output: bool,
    ) {
        let (rows, cols) = (i64::from(s.rows) % SIDE as i64, i64::from(s.cols) % SIDE as i64);
        let nnz = i64::from(s.nnz) % ENTRIES as i64;
        let (offset_type, index_type) = (types.0.of(INDEX), types.1.of(INDEX));
        let a = &mut self.arena;
        let sets = a.wide.len();
        let (first, second) = (arrays as usize % sets, (arrays as usize / sets) % sets);
        let index_array = |kind: i32, at: usize| -> *mut c_void {
            if kind == 3 {
                a.wide[at].as_ptr().cast_mut().cast()
            } else {
                a.narrow[at].as_ptr().cast_mut().cast()
            }
        };
        let (offsets, indices, values): (*mut c_void, *mut c_void, *mut c_void) = if output {
            let offsets: *mut c_void = if offset_type == 3 {
                a.out_wide.as_mut_ptr().cast()
            } else {
                a.out_narrow.as_mut_ptr().cast()
            };
            (offsets, a.out_indices.as_mut_ptr().cast(), a.out_values.as_mut_ptr().cast())
        } else {
            (
                index_array(offset_type, first),
                index_array(index_type, second),
                a.values.as_ptr().cast_mut().cast(),
            )
        };
        let mut raw: tarsiaSpMatDescr_t = ptr::null_mut();
        let (block_rows, block_cols) =
            (1 + i64::from(s.block.0) % BLOCK as i64, i64::from(s.block.1) % (BLOCK as i64 + 1));
        // SAFETY: every array is at least as long as any claim above.
        unsafe {
            match format % 4 {
                0 => spmat::tarsiaCreateCsr(
                    &mut raw,
                    rows,
                    cols,
                    nnz,
                    offsets,
                    indices,
                    values,
                    raw_arg(offset_type),
                    raw_arg(index_type),
                    raw_arg(base.of(BASE)),
                    raw_arg(types.2.of(TYPES)),
                ),
                1 => spmat::tarsiaCreateCsc(
                    &mut raw,
                    rows,
                    cols,
                    nnz,
                    offsets,
                    indices,
                    values,
                    raw_arg(offset_type),
                    raw_arg(index_type),
                    raw_arg(base.of(BASE)),
                    raw_arg(types.2.of(TYPES)),
                ),
                2 if !output => spmat::tarsiaCreateCoo(
                    &mut raw,
                    rows,
                    cols,
                    nnz,
                    index_array(index_type, first),
                    indices,
                    values,
                    raw_arg(index_type),
                    raw_arg(base.of(BASE)),
                    raw_arg(types.2.of(TYPES)),
                ),
                _ => spmat::tarsiaCreateBsr(
                    &mut raw,
                    rows,
                    cols,
                    nnz,
                    block_rows,
                    block_cols,
                    offsets,
                    indices,
                    values,
                    raw_arg(offset_type),
                    raw_arg(index_type),
                    raw_arg(base.of(BASE)),
                    raw_arg(types.2.of(TYPES)),
                    raw_arg(order.of(ORDER)),
                ),
            };
        }
        if output {
            self.outputs.push(raw);
        } else {
            self.sparse.push(raw);
        }
    }

    fn call(&mut self, call: Call) {
        let handle = |at: u8| pick(&self.handles, at, ptr::null_mut());
        let sparse = |at: u8| pick(&self.sparse, at, ptr::null());
        let vector = |at: u8| pick(&self.vectors, at, ptr::null());
        let matrix = |at: u8| pick(&self.matrices, at, ptr::null());
        let a_plan = |at: u8| pick(&self.plans, at, ptr::null_mut());
        let scalar = |at: u8| -> *const c_void {
            // Two elements each: the largest scalar is a complex of doubles.
            if at == 255 {
                ptr::null()
            } else {
                self.scalars[at as usize % 3..].as_ptr().cast()
            }
        };
        // SAFETY: objects may be anything; all other pointers are NULL or large
        // enough for what the descriptors claim, and outlive the plans.
        unsafe {
            match call {
                Call::Create(kind) => {
                    let mut raw = ptr::null_mut();
                    handle::tarsiaCreateWithBackend(&mut raw, raw_arg(kind.of(&[1, 3, 0, 2])), 0);
                    self.handles.push(raw);
                }
                Call::Destroy(at) => {
                    handle::tarsiaDestroy(handle(at));
                }
                Call::Modes(at, mode, on) => {
                    let h = handle(at);
                    handle::tarsiaSetPointerMode(h, raw_arg(mode.of(&[0, 1])));
                    handle::tarsiaSetDeterministic(h, i32::from(on % 3));
                    handle::tarsiaSetStream(h, ptr::without_provenance_mut(on as usize));
                    handle::tarsiaSetAllocator(h, None, None, ptr::null_mut());
                    memory::tarsiaSynchronize(h);
                }
                Call::Workspace(at, bytes) => {
                    let bytes = bytes as usize;
                    let pointer: *mut c_void =
                        if bytes == 0 { ptr::null_mut() } else { self.arena.workspace.as_mut_ptr().cast() };
                    handle::tarsiaSetWorkspace(handle(at), pointer, bytes.min(4096 * 16));
                }
                Call::Sparse { format, sizes, arrays, types, base, order, output } => {
                    self.sparse_matrix(format, sizes, arrays, types, base, order, output);
                }
                Call::DestroySparse(at) => {
                    spmat::tarsiaDestroySpMat(sparse(at));
                }
                Call::Pointers(at, values) => {
                    let values: *mut c_void = match values % 3 {
                        0 => ptr::null_mut(),
                        1 => self.arena.values.as_ptr().cast_mut().cast(),
                        _ => self.arena.values.as_ptr().cast_mut().cast::<u8>().add(1).cast(),
                    };
                    let a = sparse(at).cast_mut();
                    // Misaligned values are refused; NULL ones are found by analyze.
                    spmat_access::tarsiaSpMatSetValues(a, values);
                }
                Call::Check(h, at) => {
                    let (mut sorted, mut unique) = (0, 0);
                    spmat::tarsiaCheckSpMat(handle(h), sparse(at), &mut sorted, &mut unique);
                    spmat_access::tarsiaSpMatGetSorted(sparse(at), &mut sorted);
                }
                Call::Vector(len, value, output) => {
                    let values: *mut c_void = if output {
                        self.arena.out_values.as_mut_ptr().cast()
                    } else {
                        self.arena.values.as_ptr().cast_mut().cast()
                    };
                    let len = i64::from(len) % (SIDE * BLOCK + 1) as i64;
                    let mut raw: tarsiaDnVecDescr_t = ptr::null_mut();
                    let mut constant: tarsiaConstDnVecDescr_t = ptr::null();
                    if output {
                        dnvec::tarsiaCreateDnVec(&mut raw, len, values, raw_arg(value.of(TYPES)));
                        self.vectors.push(raw);
                    } else {
                        dnvec::tarsiaCreateConstDnVec(&mut constant, len, values, raw_arg(value.of(TYPES)));
                        self.vectors.push(constant);
                    }
                }
                Call::Matrix { sizes: s, value, order, output } => {
                    let (rows, cols) = (i64::from(s.rows) % SIDE as i64, i64::from(s.cols) % SIDE as i64);
                    let ld = i64::from(s.ld) % 16;
                    let mut raw: tarsiaDnMatDescr_t = ptr::null_mut();
                    let mut constant: tarsiaConstDnMatDescr_t = ptr::null();
                    let (value, order) = (raw_arg(value.of(TYPES)), raw_arg(order.of(ORDER)));
                    if output {
                        let values = self.arena.out_values.as_mut_ptr().cast();
                        dnmat::tarsiaCreateDnMat(&mut raw, rows, cols, ld, values, value, order);
                        self.matrices.push(raw);
                    } else {
                        let values = self.arena.values.as_ptr().cast();
                        dnmat::tarsiaCreateConstDnMat(&mut constant, rows, cols, ld, values, value, order);
                        self.matrices.push(constant);
                    }
                }
                Call::DestroyDense(at, vectors) => {
                    if vectors {
                        dnvec::tarsiaDestroyDnVec(vector(at));
                    } else {
                        dnmat::tarsiaDestroyDnMat(matrix(at));
                    }
                }
                Call::PlanSpmv { ids, op, types, compute } => {
                    let mut raw = ptr::null_mut();
                    spmv::tarsiaSpMV_createPlan(
                        handle(ids.0),
                        &mut raw,
                        raw_arg(op.of(OPS)),
                        sparse(ids.1),
                        raw_arg(types.0.of(TYPES)),
                        raw_arg(types.1.of(TYPES)),
                        raw_arg(compute.of(COMPUTE)),
                        raw_arg(i32::from(op.0 & 1)),
                    );
                    self.plans.push(raw);
                }
                Call::PlanSpmm { ids, ops, orders, n, types, compute } => {
                    let mut raw = ptr::null_mut();
                    spmm::tarsiaSpMM_createPlan(
                        handle(ids.0),
                        &mut raw,
                        raw_arg(ops.0.of(OPS)),
                        raw_arg(ops.1.of(OPS)),
                        sparse(ids.1),
                        raw_arg(orders.0.of(ORDER)),
                        raw_arg(orders.1.of(ORDER)),
                        i64::from(n),
                        raw_arg(types.0.of(TYPES)),
                        raw_arg(types.1.of(TYPES)),
                        raw_arg(compute.of(COMPUTE)),
                        raw_arg(0),
                    );
                    self.plans.push(raw);
                }
                Call::PlanSpgemm { ids, ops, compute } => {
                    let mut raw = ptr::null_mut();
                    spgemm::tarsiaSpGEMM_createPlan(
                        handle(ids.0),
                        &mut raw,
                        raw_arg(ops.0.of(OPS)),
                        raw_arg(ops.1.of(OPS)),
                        sparse(ids.1),
                        sparse(ids.2),
                        raw_arg(compute.of(COMPUTE)),
                        raw_arg(0),
                    );
                    self.plans.push(raw);
                }
                Call::Settings(at, effort, flags, limit) => {
                    let p = a_plan(at);
                    plan::tarsiaPlan_setEffort(p, raw_arg(effort.of(&[0, 1, 2])));
                    plan::tarsiaPlan_setReorder(p, raw_arg(effort.of(&[0, 1])));
                    plan::tarsiaPlan_setValueUpdates(p, i32::from(flags & 3));
                    plan::tarsiaPlan_setMemoryLimit(p, if flags & 4 == 0 { 0 } else { limit as usize });
                }
                Call::Promises(at, flags, executes) => {
                    let p = a_plan(at);
                    plan::tarsiaPlan_setValuesInPlace(p, i32::from(flags & 1));
                    plan::tarsiaPlan_setSelfContained(p, i32::from(flags >> 1 & 3));
                    plan::tarsiaPlan_setExpectedExecutes(p, i64::from(executes));
                    plan::tarsiaPlan_setSortedOutput(p, i32::from(flags >> 3 & 3));
                }
                Call::Checks(at, on) => {
                    handle::tarsiaSetChecks(handle(at), i32::from(on % 3));
                }
                Call::Threads(n) => {
                    // More than a few take long to start.
                    threads::tarsiaSetNumThreads(i32::from(n).min(3));
                }
                Call::Analyze(h, at) => {
                    plan::tarsiaPlan_analyze(handle(h), a_plan(at));
                }
                Call::Prepare(h, at) => {
                    plan::tarsiaPlan_prepare(handle(h), a_plan(at));
                    let mut bytes = 0;
                    plan::tarsiaPlan_workspaceSize(a_plan(at), i64::from(h) - 1, &mut bytes);
                }
                Call::Info(at) => {
                    let mut info = std::mem::MaybeUninit::<plan::tarsiaPlanInfo_t>::zeroed();
                    info.as_mut_ptr().cast::<usize>().write(size_of::<plan::tarsiaPlanInfo_t>());
                    plan::tarsiaPlan_getInfo(a_plan(at), info.as_mut_ptr());
                }
                Call::Spmv(h, at, x, y) => {
                    let (alpha, beta) = (scalar(x), scalar(y));
                    spmv::tarsiaSpMV(handle(h), a_plan(at), alpha, vector(x), beta, vector(y).cast_mut());
                }
                Call::Spmm(h, at, b, c) => {
                    let (alpha, beta) = (scalar(b), scalar(c));
                    spmm::tarsiaSpMM(handle(h), a_plan(at), alpha, matrix(b), beta, matrix(c).cast_mut());
                }
                Call::SpmvInto([h, at, x, y, z]) => {
                    let (alpha, beta, z) = (scalar(x), scalar(y), vector(z).cast_mut());
                    spmv::tarsiaSpMV_into(handle(h), a_plan(at), alpha, vector(x), beta, vector(y), z);
                }
                Call::SpmmInto([h, at, b, c, d]) => {
                    let (alpha, beta, d) = (scalar(b), scalar(c), matrix(d).cast_mut());
                    spmm::tarsiaSpMM_into(handle(h), a_plan(at), alpha, matrix(b), beta, matrix(c), d);
                }
                Call::Symbolic(h, at) => {
                    let mut nnz = 0;
                    spgemm::tarsiaSpGEMM_symbolic(handle(h), a_plan(at), &mut nnz);
                }
                Call::Numeric(h, at, c) => {
                    let c = pick(&self.outputs, c, ptr::null_mut());
                    spgemm::tarsiaSpGEMM_numeric(handle(h), a_plan(at), scalar(h), c);
                }
                Call::Update(h, at, both) => {
                    let values: *const c_void = self.arena.values.as_ptr().cast();
                    if both {
                        spgemm::tarsiaSpGEMM_updateValues(handle(h), a_plan(at), values, values);
                    } else {
                        plan::tarsiaPlan_updateValues(handle(h), a_plan(at), values);
                    }
                }
                Call::DestroyPlan(at) => {
                    plan::tarsiaPlan_destroy(a_plan(at));
                }
                Call::Once { ids, op, compute, dense } => {
                    let (op, compute) = (raw_arg(op.of(OPS)), raw_arg(compute.of(COMPUTE)));
                    let (alpha, beta) = (scalar(ids.2), scalar(ids.3));
                    if dense {
                        spmm::tarsiaSpMM_once(
                            handle(ids.0),
                            op,
                            raw_arg(0),
                            alpha,
                            sparse(ids.1),
                            matrix(ids.2),
                            beta,
                            matrix(ids.3).cast_mut(),
                            compute,
                        );
                    } else {
                        spmv::tarsiaSpMV_once(
                            handle(ids.0),
                            op,
                            alpha,
                            sparse(ids.1),
                            vector(ids.2),
                            beta,
                            vector(ids.3).cast_mut(),
                            compute,
                        );
                    }
                }
                Call::Misc(len) => {
                    let mut buffer = [1i8; 256];
                    status::tarsiaGetLastErrorMessage(buffer.as_mut_ptr().cast(), len as usize);
                    if len > 0 {
                        assert!(buffer[..len as usize].contains(&0), "the message ends inside the buffer");
                    }
                    status::tarsiaGetErrorName(raw_arg(i32::from(len)));
                }
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let mut world = World {
        arena: Arena::new(&input),
        handles: Vec::new(),
        sparse: Vec::new(),
        outputs: Vec::new(),
        vectors: Vec::new(),
        matrices: Vec::new(),
        plans: Vec::new(),
        scalars: [1.0, 0.0, -0.5, 2.0],
    };
    world.call(Call::Create(Code(0)));
    for &call in input.calls.iter().take(64) {
        world.call(call);
    }
    for &plan in &world.plans {
        plan::tarsiaPlan_destroy(plan);
    }
    for a in world.sparse.iter().copied().chain(world.outputs.iter().map(|a| a.cast_const())) {
        spmat::tarsiaDestroySpMat(a);
    }
    for &v in &world.vectors {
        dnvec::tarsiaDestroyDnVec(v);
    }
    for &m in &world.matrices {
        dnmat::tarsiaDestroyDnMat(m);
    }
    for &h in &world.handles {
        handle::tarsiaDestroy(h);
    }
});
