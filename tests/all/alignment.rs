//! Tests with arrays at every alignment that the API allows: multiples of the size of an element, or of a
//! part of a complex element. Kernels read several elements, or both parts of a complex number, by one
//! access; on a device a misaligned access ends the launch and with it the process's context.
//!
//! All operations run on such copies of the arrays of the other tests, and are compared with the naive loops.

use std::ptr::null_mut;

use client::{arg, check, Session};
use matrices::SplitMix64;
use num_complex::{Complex32, Complex64};
use proptest::prelude::any;
use tarsia::capi::{dnmat, dnvec, spmat};
use tarsia::facade::{
    Algorithm, ComputeType, DataType, Effort, Format, IndexBase, IndexType, OpKind, Operation, Order,
    PointerMode, Reorder, Result, SpgemmAlg, SpmmAlg, SpmvAlg, Status, Types, TABLE,
};

use crate::common::output::Target;
use crate::common::pattern::{Style, Widths};
use crate::common::staged::{placed, Placement};
use crate::common::{backends, is_small, Outcome};
use crate::properties::cases::{formats_of, types_of, MatrixCase, Places, Scalar, Updates};
use crate::properties::{self, spgemm, spmm, spmv};
use crate::tiles;

/// Bytes of the widest access of a thread: alignment beyond its multiples makes no difference.
const WIDEST: usize = 16;

/// Returns all placements of arrays whose elements are aligned to at least `align` bytes, except the best
/// one.
fn places(align: usize) -> impl Iterator<Item = Placement> {
    (1..WIDEST / align).map(Placement::Behind)
}

/// Returns all placements for the arrays of a product, except the best one.
fn places_of(types: Types) -> impl Iterator<Item = Placement> {
    places(types.a.align().min(types.x.align()).min(types.y.align()))
}

/// Random choices from a seed, which together should cover all kinds of accesses.
struct Choices(SplitMix64);

impl Choices {
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }

    /// Returns a matrix of about 40 × 40 in this format, with a long row and empty rows.
    fn matrix(&mut self, format: Format) -> MatrixCase {
        let style = Style {
            format,
            widths: self.of(&Widths::ALL),
            base: self.of(IndexBase::ALL),
            block: if format == Format::Bsr { (2, 3) } else { (1, 1) },
            block_order: self.of(Order::ALL),
        };
        let shape = (40 / style.block.0, 40 / style.block.1);
        let long = (self.of(&[2, 7]), shape.1 / 2);
        let places = Places::Skewed {
            count: 3 * shape.0,
            long,
            by_columns: self.of(&[false, true]) && long.0 < shape.1,
            seed: self.0.below(1 << 32),
        };
        MatrixCase { style, shape, tidy: self.of(&[false, true]), places }
    }

    fn effort(&mut self) -> Effort {
        self.of(&[Effort::Default, Effort::Quick])
    }

    fn updates(&mut self) -> Updates {
        self.of(&[Updates::Never, Updates::Unannounced, Updates::Announced])
    }
}

/// Runs a test at a placement; the text of a failure has both.
fn run_at(placement: Placement, what: impl FnOnce() -> String, test: impl FnOnce() -> Outcome) {
    if let Err(error) = placed(placement, test) {
        panic!("{placement:?}, {}: {error}", what());
    }
}

/// Returns whether an algorithm, or with `None` the library's choice, supports these types.
fn takes(op: OpKind, algorithm: Option<Algorithm>, types: Types) -> bool {
    let is_meant = |row: &Algorithm| algorithm.is_none_or(|algorithm| algorithm == *row);
    TABLE.iter().any(|row| row.op == op && is_meant(&row.algorithm) && row.types.contains(&types))
}

#[test]
fn spmv_at_every_alignment() {
    let mut seed = 0;
    for types in types_of(OpKind::Spmv) {
        for placement in places_of(types) {
            for format in formats_of(OpKind::Spmv) {
                for alg in SpmvAlg::ALL {
                    seed += 1;
                    let mut choices = Choices(SplitMix64::new(seed));
                    let case = spmv::Case {
                        types,
                        op: choices.of(Operation::ALL),
                        a: choices.matrix(format),
                        alpha: Scalar::Random,
                        beta: choices.of(&[Scalar::Random, Scalar::Zero]),
                        mode: choices.of(PointerMode::ALL),
                        effort: choices.effort(),
                        updates: choices.updates(),
                        reorder: Reorder::Auto,
                        alg: *alg,
                        wild: false,
                        guard: 0,
                        seed,
                    };
                    run_at(placement, || format!("{case:?}"), || spmv::run(&case));
                }
            }
        }
    }
}

/// SpMM with fewer and more columns than kernels treat as few, and with and without padding between rows of B
/// and C.
#[test]
fn spmm_at_every_alignment() {
    let mut seed = 0;
    for types in types_of(OpKind::Spmm) {
        for placement in places_of(types) {
            let algorithms =
                SpmmAlg::ALL.iter().filter(|alg| takes(OpKind::Spmm, Algorithm::from_spmm(**alg), types));
            for alg in algorithms {
                for n in [5, 33] {
                    for order in Order::ALL {
                        for padding in [0, 1] {
                            seed += 1;
                            let mut choices = Choices(SplitMix64::new(seed));
                            let formats = formats_of(OpKind::Spmm);
                            let case = spmm::Case {
                                types,
                                // Three algorithms, which all types have, together cover each op with each n,
                                // order and padding.
                                ops: (choices.of(Operation::ALL), Operation::ALL[seed as usize % 3]),
                                a: choices.matrix(formats[seed as usize % formats.len()]),
                                n,
                                n_hint: n,
                                b: spmm::Layout { order: *order, padding },
                                c: spmm::Layout {
                                    order: choices.of(Order::ALL),
                                    padding: choices.of(&[0, 1, 3]),
                                },
                                alpha: Scalar::Random,
                                beta: choices.of(&[Scalar::Random, Scalar::Zero]),
                                mode: choices.of(PointerMode::ALL),
                                effort: choices.effort(),
                                updates: choices.updates(),
                                reorder: Reorder::Auto,
                                alg: *alg,
                                wild: false,
                                seed,
                            };
                            run_at(placement, || format!("{case:?}"), || spmm::run(&case));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn spgemm_at_every_alignment() {
    let mut seed = 0;
    for types in types_of(OpKind::Spgemm) {
        for placement in places_of(types) {
            let formats = formats_of(OpKind::Spgemm);
            for (a, b) in formats.iter().flat_map(|a| formats.iter().map(move |b| (*a, *b))) {
                for alg in SpgemmAlg::ALL {
                    seed += 1;
                    let mut choices = Choices(SplitMix64::new(seed));
                    // Square matrices, so that every op fits.
                    let mut target = |format| Target {
                        format,
                        widths: choices.of(&Widths::ALL),
                        base: choices.of(IndexBase::ALL),
                    };
                    let targets = (target(Format::Csr), target(Format::Csc));
                    let case = spgemm::Case {
                        types,
                        ops: (choices.of(Operation::ALL), choices.of(Operation::ALL)),
                        a: choices.matrix(a),
                        b: choices.matrix(b),
                        targets,
                        alpha: Scalar::Random,
                        mode: choices.of(PointerMode::ALL),
                        effort: choices.effort(),
                        value_updates: choices.of(&[false, true]),
                        unsorted: false,
                        renewed: spgemm::Renewed::Both,
                        alg: *alg,
                        wild: false,
                        seed,
                    };
                    run_at(placement, || format!("{case:?}"), || spgemm::run(&case));
                }
            }
        }
    }
}

/// Conversions of CSR and CSC to tiles and back, bit for bit, and products of tiles with both.
#[test]
fn tiles_at_every_alignment() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        let at = |align: usize, test: &dyn Fn(&Session)| {
            places(align).for_each(|placement| placed(placement, || test(&session)));
        };
        at(8, &|session| tiles::round_trip::<f64>(session, 1));
        at(4, &|session| tiles::round_trip::<f32>(session, 2));
        at(8, &|session| tiles::round_trip::<Complex64>(session, 3));
        at(4, &|session| tiles::round_trip::<Complex32>(session, 4));
        for format in [Format::Csr, Format::Csc] {
            at(8, &|session| tiles::chain::<f64>(session, ComputeType::R64F, format, 5));
            at(8, &|session| tiles::chain::<Complex64>(session, ComputeType::C64F, format, 6));
        }
        at(4, &|session| tiles::chain::<f32>(session, ComputeType::R32F, Format::Csr, 7));
        at(4, &|session| tiles::chain::<Complex32>(session, ComputeType::C32F, Format::Csr, 8));
    }
}

/// tarsiaCheckSpMat finds the same faults wherever the arrays are.
#[test]
fn checks_at_every_alignment() {
    for kind in backends() {
        let session = Session::new(kind).unwrap();
        for (seed, format) in
            (0..24).flat_map(|seed| formats_of(OpKind::Spmv).into_iter().map(move |f| (seed, f)))
        {
            let case = Choices(SplitMix64::new(seed)).matrix(format);
            let pattern = case.pattern();
            let values = vec![1.0_f32; pattern.entries().len()];
            let found = || -> Outcome<(bool, bool)> {
                Ok(session.check_sparse(&pattern.store(kind, &values).open()?)?)
            };
            let wanted = found().unwrap();
            for placement in places(4) {
                let found = placed(placement, found).unwrap();
                assert_eq!(found, wanted, "{kind:?}, {placement:?}, {case:?}");
            }
        }
    }
}

/// Returns the number of random products of each operation, whose arrays each have a placement of their own.
fn cases() -> u32 {
    if is_small() {
        100
    } else {
        600
    }
}

#[test]
fn random_spmv_at_any_alignment() {
    properties::check(cases(), (spmv::strategy(), any::<u64>()), |(case, seed)| {
        placed(Placement::Anywhere(*seed), || spmv::run(case))
    });
}

#[test]
fn random_spmm_at_any_alignment() {
    properties::check(cases(), (spmm::strategy(), any::<u64>()), |(case, seed)| {
        placed(Placement::Anywhere(*seed), || spmm::run(case))
    });
}

#[test]
fn random_spgemm_at_any_alignment() {
    properties::check(cases(), (spgemm::strategy(), any::<u64>()), |(case, seed)| {
        placed(Placement::Anywhere(*seed), || spgemm::run(case))
    });
}

/// Descriptors accept complex values at multiples of the size of a part, and no others.
#[test]
fn complex_values_are_aligned_to_their_parts() {
    let vector = |at: usize, values: DataType| -> Result<()> {
        let mut raw = null_mut();
        // SAFETY: the answer is valid for a write; the array is not read.
        check(unsafe { dnvec::tarsiaCreateDnVec(&mut raw, 1, at as *mut _, arg(values)) })?;
        check(dnvec::tarsiaDestroyDnVec(raw))
    };
    let matrix = |at: usize, values: DataType| -> Result<()> {
        let mut raw = null_mut();
        // SAFETY: as above.
        check(unsafe {
            dnmat::tarsiaCreateDnMat(&mut raw, 1, 1, 1, at as *mut _, arg(values), arg(Order::Row))
        })?;
        check(dnmat::tarsiaDestroyDnMat(raw))
    };
    let sparse = |at: usize, values: DataType| -> Result<()> {
        let (mut raw, index, base) = (null_mut(), arg(IndexType::I32), arg(IndexBase::Zero));
        let (offsets, indices) = (64 as *mut _, 128 as *mut _);
        // SAFETY: as above.
        check(unsafe {
            spmat::tarsiaCreateCsr(
                &mut raw,
                1,
                1,
                1,
                offsets,
                indices,
                at as *mut _,
                index,
                arg(IndexType::I32),
                base,
                arg(values),
            )
        })?;
        check(spmat::tarsiaDestroySpMat(raw))
    };
    type Create<'a> = &'a dyn Fn(usize, DataType) -> Result<()>;
    let create: [(&str, Create<'_>); 3] = [("vector", &vector), ("matrix", &matrix), ("CSR", &sparse)];
    for (what, create) in create {
        for (values, part) in [(DataType::C32F, 4), (DataType::C64F, 8)] {
            for at in 4096..4096 + 32 {
                let result = create(at, values);
                let what = format!("{what} of {} at {at}", values.short());
                if at % part == 0 {
                    result.expect(&what);
                } else {
                    let error = result.expect_err(&what);
                    assert_eq!(error.status, Status::InvalidValue, "{what}: {error}");
                    assert!(error.message.starts_with("values:"), "{what}: {error}");
                    let says =
                        format!("is not a multiple of {part} bytes, to which its elements must be aligned");
                    assert!(error.message.contains(&says), "{what}: {error}");
                }
            }
        }
    }
}
