//! Objects of every kind on one backend, small enough to check all results by hand, which the good calls use.

use std::cell::RefCell;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use client::{arg, check};
use libc::c_void;
use tarsia::capi::enums::tarsiaStatus_t;
use tarsia::capi::objects::*;
use tarsia::capi::plan::tarsiaPlanInfo_t;
use tarsia::capi::{dnmat, dnvec, handle, memory, plan, spgemm, spmat, spmm, spmv, tile};
use tarsia::facade::{
    BackendKind, ComputeType, DataType, IndexBase, IndexType, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg,
};
use tempfile::TempDir;

use crate::common::staged::memory as memory_of;

/// User's arrays in the backend's memory. A is 3 × 4 with 5 entries:
///
/// ```text
///     1 . 2 .        CSR 0 2 3 5 | 0 2 1 0 3
///     . 3 . .        CSC 0 2 3 4 5 | 0 2 1 0 2
///     4 . . 5
/// ```
///
/// B of SpGEMM is Aᵀ; the BSR matrix is 4 × 4 of two 2 × 2 blocks.
#[derive(Clone, Copy)]
pub struct Arrays {
    pub offsets: [i32; 4],
    pub indices: [i32; 5],
    pub rows: [i32; 5],
    pub values: [f64; 5],
    pub column_offsets: [i32; 5],
    pub row_indices: [i32; 5],
    pub column_values: [f64; 5],
    pub block_offsets: [i32; 3],
    pub block_indices: [i32; 2],
    pub block_values: [f64; 8],
    pub x: [f64; 4],
    pub y: [f64; 3],
    pub b: [f64; 8],
    pub c: [f64; 6],
    pub c_offsets: [i32; 4],
    pub c_indices: [i32; 5],
    pub c_values: [f64; 5],
    pub copied: [f64; 4],
    pub scratch: [u128; 16],
}

/// Memory that the library reads and writes as the program's own.
pub struct Buffers {
    pub copied: [f64; 4],
    pub text: [u8; 1024],
}

/// Offsets, columns and values of A · Aᵀ.
const PRODUCT: ([i32; 4], [i32; 5], [f64; 5]) = ([0, 2, 3, 5], [0, 2, 1, 0, 2], [5.0, 4.0, 9.0, 4.0, 41.0]);
/// Result of A · (1, 10, 100, 1000).
const AX: [f64; 3] = [201.0, 30.0, 5004.0];

/// Objects of one backend.
pub struct World {
    pub kind: BackendKind,
    /// User's arrays, from tarsiaMalloc.
    arrays: *mut Arrays,
    /// Program's memory, allocated and freed by hand, since calls hold pointers into it.
    buffers: *mut Buffers,
    /// Folder for a plan cache.
    pub folder: CString,
    /// Owner of the folder.
    _folder: TempDir,
    pub handle: tarsiaHandle_t,
    pub csr: tarsiaSpMatDescr_t,
    pub csc: tarsiaSpMatDescr_t,
    pub coo: tarsiaSpMatDescr_t,
    pub bsr: tarsiaSpMatDescr_t,
    /// Aᵀ in CSR.
    pub transposed: tarsiaSpMatDescr_t,
    /// C of SpGEMM in CSR.
    pub product: tarsiaSpMatDescr_t,
    pub const_csr: tarsiaConstSpMatDescr_t,
    pub x: tarsiaDnVecDescr_t,
    pub y: tarsiaDnVecDescr_t,
    pub const_y: tarsiaConstDnVecDescr_t,
    /// Matrix of 4 × 2 in column-major order.
    pub b: tarsiaDnMatDescr_t,
    /// Matrix of 3 × 2 in column-major order.
    pub c: tarsiaDnMatDescr_t,
    pub const_c: tarsiaConstDnMatDescr_t,
    pub spmv: tarsiaPlan_t,
    pub spmm: tarsiaPlan_t,
    pub spgemm: tarsiaPlan_t,
    /// Destroyed objects: handle, sparse matrix, vector, matrix, plan.
    pub stale: [usize; 5],
    pub one: f64,
    pub zero: f64,
    pub info: RefCell<MaybeUninit<tarsiaPlanInfo_t>>,
    /// Decisions of the plan `spmv`.
    pub decisions: Vec<u8>,
    temporary: RefCell<Vec<Temporary>>,
}

/// Object that lives until the end of a call.
enum Temporary {
    Handle(tarsiaHandle_t),
    Sparse(tarsiaSpMatDescr_t),
    Vector(tarsiaDnVecDescr_t),
    Matrix(tarsiaDnMatDescr_t),
    Plan(tarsiaPlan_t),
}

/// Runs a creating call that must succeed, and returns what it made.
pub fn made<T: Copy>(create: impl FnOnce(*mut T) -> tarsiaStatus_t) -> T {
    let mut out = MaybeUninit::<T>::zeroed();
    check(create(out.as_mut_ptr())).expect("the call is a good one");
    // SAFETY: T is a token, for which zeros are a value, and the call has written it.
    unsafe { out.assume_init() }
}

const I32: IndexType = IndexType::I32;
const F64: DataType = DataType::R64F;
const N: Operation = Operation::NonTranspose;

impl World {
    pub fn new(kind: BackendKind) -> Self {
        let mut a: *mut Arrays = null_mut();
        // SAFETY: the answer is valid for a write.
        let code =
            unsafe { memory::tarsiaMalloc(memory_of(kind).raw(), (&raw mut a).cast(), size_of::<Arrays>()) };
        check(code).unwrap();
        let arrays = Arrays {
            offsets: [0, 2, 3, 5],
            indices: [0, 2, 1, 0, 3],
            rows: [0, 0, 1, 2, 2],
            values: [1.0, 2.0, 3.0, 4.0, 5.0],
            column_offsets: [0, 2, 3, 4, 5],
            row_indices: [0, 2, 1, 0, 2],
            column_values: [1.0, 4.0, 3.0, 2.0, 5.0],
            block_offsets: [0, 1, 2],
            block_indices: [1, 0],
            block_values: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
            x: [1.0, 10.0, 100.0, 1000.0],
            y: [0.0; 3],
            b: [1.0, 10.0, 100.0, 1000.0, 2.0, 20.0, 200.0, 2000.0],
            c: [0.0; 6],
            c_offsets: [0; 4],
            c_indices: [0; 5],
            c_values: [0.0; 5],
            copied: [0.0; 4],
            scratch: [0; 16],
        };
        write(kind, a, &arrays);
        let folder = tempfile::tempdir().unwrap();
        let buffers = Box::into_raw(Box::new(Buffers { copied: [0.0; 4], text: [0; 1024] }));
        // SAFETY: the descriptors describe the arrays as they are, which live
        // as long as the world; every answer is valid for a write.
        unsafe {
            let handle = made(|out| handle::tarsiaCreateWithBackend(out, arg(kind), 0));
            let vector = |values: *mut f64, len| {
                made(|out| dnvec::tarsiaCreateDnVec(out, len, values.cast(), arg(F64)))
            };
            let matrix = |values: *mut f64, rows, cols| {
                made(|out| {
                    dnmat::tarsiaCreateDnMat(out, rows, cols, rows, values.cast(), arg(F64), arg(Order::Col))
                })
            };
            let mut world = World {
                kind,
                handle,
                csr: csr(a, 3, 4),
                csc: csc(a),
                coo: coo(a),
                bsr: bsr(a),
                transposed: transposed(a),
                product: product(a),
                const_csr: const_csr(a),
                x: vector((&raw mut (*a).x).cast(), 4),
                y: vector((&raw mut (*a).y).cast(), 3),
                const_y: made(|out| {
                    dnvec::tarsiaCreateConstDnVec(out, 3, (&raw const (*a).y).cast(), arg(F64))
                }),
                b: matrix((&raw mut (*a).b).cast(), 4, 2),
                c: matrix((&raw mut (*a).c).cast(), 3, 2),
                const_c: made(|out| {
                    let values = (&raw const (*a).c).cast();
                    dnmat::tarsiaCreateConstDnMat(out, 3, 2, 3, values, arg(F64), arg(Order::Col))
                }),
                spmv: null_mut(),
                spmm: null_mut(),
                spgemm: null_mut(),
                stale: [0; 5],
                one: 1.0,
                zero: 0.0,
                info: RefCell::new(MaybeUninit::zeroed()),
                decisions: Vec::new(),
                temporary: RefCell::default(),
                arrays: a,
                buffers,
                folder: CString::new(folder.path().to_str().unwrap()).unwrap(),
                _folder: folder,
            };
            (world.spmv, world.spmm, world.spgemm) = (world.new_spmv(), world.new_spmm(), world.new_spgemm());
            for plan in [world.spmv, world.spmm, world.spgemm] {
                check(plan::tarsiaPlan_analyze(world.handle, plan)).unwrap();
            }
            let (mut bytes, null) = (0, null_mut());
            check(plan::tarsiaPlan_getDecisions(handle, world.spmv, null, 0, &mut bytes)).unwrap();
            world.decisions = vec![0; bytes];
            let buffer = world.decisions.as_mut_ptr().cast();
            check(plan::tarsiaPlan_getDecisions(handle, world.spmv, buffer, bytes, &mut bytes)).unwrap();
            let mut nnz = 0;
            check(spgemm::tarsiaSpGEMM_symbolic(world.handle, world.spgemm, &mut nnz)).unwrap();
            assert_eq!(nnz, 5);
            world.stale = [
                world.fresh_handle().addr(),
                world.fresh_csr().addr(),
                world.fresh_vector().addr(),
                world.fresh_matrix().addr(),
                world.fresh_plan().addr(),
            ];
            world.tidy();
            world
        }
    }

    /// Returns the user's arrays, for descriptors.
    pub fn a(&self) -> *mut Arrays {
        self.arrays
    }

    /// Returns the program's memory.
    pub fn buffers(&self) -> *mut Buffers {
        self.buffers
    }

    /// Returns a copy of the user's arrays.
    fn read(&self) -> Arrays {
        let mut out = MaybeUninit::<Arrays>::uninit();
        let (h, bytes) = (memory_of(self.kind).raw(), size_of::<Arrays>());
        // SAFETY: both have that many bytes, and all of them are copied.
        unsafe {
            check(memory::tarsiaMemcpyToHost(h, out.as_mut_ptr().cast(), self.a().cast(), bytes)).unwrap();
            out.assume_init()
        }
    }

    fn keep<T: Copy>(&self, object: T, wrap: impl FnOnce(T) -> Temporary) -> T {
        self.temporary.borrow_mut().push(wrap(object));
        object
    }

    /// Creates a handle that lives until [`World::tidy`], like the other `fresh` objects.
    pub fn fresh_handle(&self) -> tarsiaHandle_t {
        // SAFETY: the answer is valid for a write.
        let made = made(|out| unsafe { handle::tarsiaCreateWithBackend(out, arg(self.kind), 0) });
        self.keep(made, Temporary::Handle)
    }

    /// Creates a CSR descriptor.
    pub fn fresh_csr(&self) -> tarsiaSpMatDescr_t {
        self.keep(csr(self.a(), 3, 4), Temporary::Sparse)
    }

    /// Creates a descriptor of the arrays by `make`.
    pub fn fresh(&self, make: fn(*mut Arrays) -> tarsiaSpMatDescr_t) -> tarsiaSpMatDescr_t {
        self.keep(make(self.a()), Temporary::Sparse)
    }

    /// Creates a matrix in tiles from the CSR matrix.
    pub fn fresh_tile(&self) -> tarsiaSpMatDescr_t {
        // SAFETY: the answer is valid for a write; A's arrays live as long as the world.
        let made = unsafe {
            let made = made(|out| tile::tarsiaCreateTile(self.handle, out, 3, 4, arg(F64)));
            check(tile::tarsiaSparseToTile(self.handle, self.csr, made)).unwrap();
            made
        };
        self.keep(made, Temporary::Sparse)
    }

    /// Creates a vector of 4 elements.
    pub fn fresh_vector(&self) -> tarsiaDnVecDescr_t {
        // SAFETY: it is the place of an array, which nothing reads here.
        self.vector_of(unsafe { &raw mut (*self.a()).x })
    }

    /// Creates a vector of one of the arrays.
    pub fn vector_of<const LEN: usize>(&self, values: *mut [f64; LEN]) -> tarsiaDnVecDescr_t {
        // SAFETY: the answer is valid for a write; the array lives as long as the world.
        let made = made(|out| unsafe { dnvec::tarsiaCreateDnVec(out, LEN as i64, values.cast(), arg(F64)) });
        self.keep(made, Temporary::Vector)
    }

    /// Creates a 4 × 2 matrix.
    pub fn fresh_matrix(&self) -> tarsiaDnMatDescr_t {
        // SAFETY: the array lives as long as the world.
        let made = made(|out| unsafe {
            let values = (&raw mut (*self.a()).b).cast();
            dnmat::tarsiaCreateDnMat(out, 4, 2, 4, values, arg(F64), arg(Order::Col))
        });
        self.keep(made, Temporary::Matrix)
    }

    /// Creates an SpMV plan that is not analyzed.
    pub fn fresh_plan(&self) -> tarsiaPlan_t {
        self.keep(self.new_spmv(), Temporary::Plan)
    }

    /// Creates an SpMM plan that is not analyzed.
    pub fn fresh_spmm(&self) -> tarsiaPlan_t {
        self.keep(self.new_spmm(), Temporary::Plan)
    }

    /// Creates an SpGEMM plan that is not analyzed.
    pub fn early_spgemm(&self) -> tarsiaPlan_t {
        self.keep(self.new_spgemm(), Temporary::Plan)
    }

    /// Creates an SpGEMM plan that has been analyzed, without a symbolic phase.
    pub fn fresh_spgemm(&self) -> tarsiaPlan_t {
        self.analyzed(self.new_spgemm())
    }

    /// Analyzes a plan of any operation, and keeps it until [`World::tidy`].
    pub fn analyzed(&self, plan: tarsiaPlan_t) -> tarsiaPlan_t {
        check(plan::tarsiaPlan_analyze(self.handle, plan)).unwrap();
        self.keep(plan, Temporary::Plan)
    }

    /// Destroys the objects that the `fresh_` functions made, unless a call has done so already.
    pub fn tidy(&self) {
        for object in self.temporary.take() {
            match object {
                Temporary::Handle(object) => handle::tarsiaDestroy(object),
                Temporary::Sparse(object) => spmat::tarsiaDestroySpMat(object),
                Temporary::Vector(object) => dnvec::tarsiaDestroyDnVec(object),
                Temporary::Matrix(object) => dnmat::tarsiaDestroyDnMat(object),
                Temporary::Plan(object) => plan::tarsiaPlan_destroy(object),
            };
        }
    }

    pub fn new_spmv(&self) -> tarsiaPlan_t {
        // SAFETY: the answer is valid for a write; A's arrays live as long as the world.
        made(|out| unsafe {
            let (compute, alg) = (arg(ComputeType::R64F), arg(SpmvAlg::Default));
            spmv::tarsiaSpMV_createPlan(self.handle, out, arg(N), self.csr, arg(F64), arg(F64), compute, alg)
        })
    }

    pub fn new_spmm(&self) -> tarsiaPlan_t {
        let (order, compute, alg) = (arg(Order::Col), arg(ComputeType::R64F), arg(SpmmAlg::Default));
        // SAFETY: as above.
        made(|out| unsafe {
            spmm::tarsiaSpMM_createPlan(
                self.handle,
                out,
                arg(N),
                arg(N),
                self.csr,
                order,
                order,
                2,
                arg(F64),
                arg(F64),
                compute,
                alg,
            )
        })
    }

    pub fn new_spgemm(&self) -> tarsiaPlan_t {
        let (compute, alg) = (arg(ComputeType::R64F), arg(SpgemmAlg::Default));
        // SAFETY: as above.
        made(|out| unsafe {
            let (a, b) = (self.csr, self.transposed);
            spgemm::tarsiaSpGEMM_createPlan(self.handle, out, arg(N), arg(N), a, b, compute, alg)
        })
    }

    /// Returns a pointer to an info struct whose size is set.
    pub fn info(&self) -> *mut tarsiaPlanInfo_t {
        let mut info = self.info.borrow_mut();
        let pointer = info.as_mut_ptr();
        // SAFETY: the first field is the size, and the pointer is valid for a write.
        unsafe { pointer.cast::<usize>().write(size_of::<tarsiaPlanInfo_t>()) };
        pointer
    }

    /// Runs all three products, whose results must be right.
    pub fn verify(&self) {
        let (one, zero) = ((&raw const self.one).cast(), (&raw const self.zero).cast());
        let nan = f64::NAN;
        let before = Arrays { y: [nan; 3], c: [nan; 6], c_values: [nan; 5], ..self.read() };
        write(self.kind, self.a(), &before);
        // SAFETY: the world's objects describe its arrays, and alpha and beta
        // are f64, the plans' compute type.
        unsafe {
            check(spmv::tarsiaSpMV(self.handle, self.spmv, one, self.x, zero, self.y)).unwrap();
            check(spmm::tarsiaSpMM(self.handle, self.spmm, one, self.b, zero, self.c)).unwrap();
            check(spgemm::tarsiaSpGEMM_numeric(self.handle, self.spgemm, one, self.product)).unwrap();
        }
        check(memory::tarsiaSynchronize(self.handle)).unwrap();
        let a = self.read();
        assert_eq!(a.y, AX);
        assert_eq!(a.c, [AX[0], AX[1], AX[2], 2.0 * AX[0], 2.0 * AX[1], 2.0 * AX[2]]);
        assert_eq!((a.c_offsets, a.c_indices, a.c_values), PRODUCT);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tidy();
        let results = [
            plan::tarsiaPlan_destroy(self.spmv),
            plan::tarsiaPlan_destroy(self.spmm),
            plan::tarsiaPlan_destroy(self.spgemm),
            dnvec::tarsiaDestroyDnVec(self.x),
            dnvec::tarsiaDestroyDnVec(self.y),
            dnvec::tarsiaDestroyDnVec(self.const_y),
            dnmat::tarsiaDestroyDnMat(self.b),
            dnmat::tarsiaDestroyDnMat(self.c),
            dnmat::tarsiaDestroyDnMat(self.const_c),
            spmat::tarsiaDestroySpMat(self.const_csr),
            spmat::tarsiaDestroySpMat(self.csr),
            spmat::tarsiaDestroySpMat(self.csc),
            spmat::tarsiaDestroySpMat(self.coo),
            spmat::tarsiaDestroySpMat(self.bsr),
            spmat::tarsiaDestroySpMat(self.transposed),
            spmat::tarsiaDestroySpMat(self.product),
            handle::tarsiaDestroy(self.handle),
            // SAFETY: nothing points into the arrays any more.
            unsafe { memory::tarsiaFree(memory_of(self.kind).raw(), self.arrays.cast()) },
        ];
        // SAFETY: as above; it came from a box.
        drop(unsafe { Box::from_raw(self.buffers) });
        if !std::thread::panicking() {
            assert_eq!(results, [tarsiaStatus_t::TARSIA_STATUS_SUCCESS; 18]);
        }
    }
}

/// Overwrites the user's arrays.
fn write(kind: BackendKind, to: *mut Arrays, arrays: &Arrays) {
    let (h, from, bytes) = (memory_of(kind).raw(), std::ptr::from_ref(arrays).cast(), size_of::<Arrays>());
    // SAFETY: both have that many bytes.
    check(unsafe { memory::tarsiaMemcpyToDevice(h, to.cast(), from, bytes) }).unwrap();
}

fn void<T>(pointer: *mut T) -> *mut c_void {
    pointer.cast()
}

/// Describes the arrays of A as CSR of this shape.
pub fn csr(a: *mut Arrays, rows: i64, cols: i64) -> tarsiaSpMatDescr_t {
    let (i, zero, f) = (arg(I32), arg(IndexBase::Zero), arg(F64));
    // SAFETY: the arrays live as long as the world; nothing is read here.
    made(|out| unsafe {
        let (offsets, indices, values) =
            (void(&raw mut (*a).offsets), void(&raw mut (*a).indices), void(&raw mut (*a).values));
        spmat::tarsiaCreateCsr(out, rows, cols, 5, offsets, indices, values, i, i, zero, f)
    })
}

fn const_csr(a: *mut Arrays) -> tarsiaConstSpMatDescr_t {
    let (i, zero, f) = (arg(I32), arg(IndexBase::Zero), arg(F64));
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (offsets, indices, values) =
            (void(&raw mut (*a).offsets), void(&raw mut (*a).indices), void(&raw mut (*a).values));
        spmat::tarsiaCreateConstCsr(out, 3, 4, 5, offsets, indices, values, i, i, zero, f)
    })
}

/// Describes A as CSC.
pub fn csc(a: *mut Arrays) -> tarsiaSpMatDescr_t {
    let (i, zero, f) = (arg(I32), arg(IndexBase::Zero), arg(F64));
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (offsets, indices, values) = (
            void(&raw mut (*a).column_offsets),
            void(&raw mut (*a).row_indices),
            void(&raw mut (*a).column_values),
        );
        spmat::tarsiaCreateCsc(out, 3, 4, 5, offsets, indices, values, i, i, zero, f)
    })
}

/// Describes Aᵀ as CSR, with the arrays of A as CSC.
pub fn transposed(a: *mut Arrays) -> tarsiaSpMatDescr_t {
    let (i, zero, f) = (arg(I32), arg(IndexBase::Zero), arg(F64));
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (offsets, indices, values) = (
            void(&raw mut (*a).column_offsets),
            void(&raw mut (*a).row_indices),
            void(&raw mut (*a).column_values),
        );
        spmat::tarsiaCreateCsr(out, 4, 3, 5, offsets, indices, values, i, i, zero, f)
    })
}

/// Describes C = A · Aᵀ as CSR.
pub fn product(a: *mut Arrays) -> tarsiaSpMatDescr_t {
    let (i, zero, f) = (arg(I32), arg(IndexBase::Zero), arg(F64));
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (offsets, indices, values) =
            (void(&raw mut (*a).c_offsets), void(&raw mut (*a).c_indices), void(&raw mut (*a).c_values));
        spmat::tarsiaCreateCsr(out, 3, 3, 5, offsets, indices, values, i, i, zero, f)
    })
}

/// Describes A as COO.
pub fn coo(a: *mut Arrays) -> tarsiaSpMatDescr_t {
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (rows, cols, values) =
            (void(&raw mut (*a).rows), void(&raw mut (*a).indices), void(&raw mut (*a).values));
        spmat::tarsiaCreateCoo(out, 3, 4, 5, rows, cols, values, arg(I32), arg(IndexBase::Zero), arg(F64))
    })
}

/// Describes the BSR matrix.
pub fn bsr(a: *mut Arrays) -> tarsiaSpMatDescr_t {
    let (i, zero, f, order) = (arg(I32), arg(IndexBase::Zero), arg(F64), arg(Order::Row));
    // SAFETY: as in `csr`.
    made(|out| unsafe {
        let (offsets, indices, values) = (
            void(&raw mut (*a).block_offsets),
            void(&raw mut (*a).block_indices),
            void(&raw mut (*a).block_values),
        );
        spmat::tarsiaCreateBsr(out, 2, 2, 2, 2, 2, offsets, indices, values, i, i, zero, f, order)
    })
}
