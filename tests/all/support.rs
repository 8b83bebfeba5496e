//! Tests that the support table is right: every combination in it works, and every other one is refused by
//! name.

use std::ptr::null;

use client::{arg, check, Plan, Session, Sparse};
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use tarsia::capi::spmat;
use tarsia::facade::{
    Algorithm, BackendKind, ComputeType, DataType, Effort, Element, Error, Format, IndexBase, OpKind,
    Operation, Order, PointerMode, Query, Reorder, Result, Row, SpgemmAlg, SpmmAlg, SpmvAlg, Status, Types,
    TABLE,
};

use crate::common::output::Target;
use crate::common::pattern::{Style, Widths};
use crate::common::{backends, offers, root};
use crate::properties::cases::{formats_of, types_of, MatrixCase, Places, Scalar, Updates};
use crate::properties::{spgemm, spmm, spmv};

const N: Operation = Operation::NonTranspose;

/// Backends that every machine has.
const CPU: [BackendKind; 2] = [BackendKind::Host, BackendKind::Reference];

fn rows(op: OpKind) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(move |row| row.op == op)
}

/// The table has what design/api.md promises; a change of the table is a change of the API and fails this
/// test.
#[test]
fn the_table_is_what_the_api_promises() {
    let dense = [
        "A fp64, input fp64, output fp64, compute fp64",
        "A fp32, input fp32, output fp32, compute fp32",
        "A fp32, input fp64, output fp64, compute fp64",
        "A fp16, input fp16, output fp16, compute fp32",
        "A fp16, input fp16, output fp32, compute fp32",
        "A bf16, input bf16, output bf16, compute fp32",
        "A bf16, input bf16, output fp32, compute fp32",
        "A complex fp32, input complex fp32, output complex fp32, compute complex fp32",
        "A complex fp64, input complex fp64, output complex fp64, compute complex fp64",
    ];
    let sparse = [dense[0], dense[1], dense[4], dense[6], dense[7], dense[8]];
    let tf32 = "A fp32, input fp32, output fp32, compute tf32";
    let promised = [
        (OpKind::Spmv, dense.to_vec(), &ARRAYS[..]),
        (OpKind::Spmm, [&dense[..], &[tf32]].concat(), &ARRAYS[..]),
        (OpKind::Spgemm, sparse.to_vec(), &[Format::Csr, Format::Csc][..]),
    ];
    for (op, mut types, formats) in promised {
        let mut found: Vec<_> = rows(op).flat_map(|row| row.types).map(Types::describe).collect();
        found.sort();
        found.dedup();
        types.sort_unstable();
        assert_eq!(found, types, "types of {}", op.short());
        let of_cpu = |row: &&Row| row.backends.iter().any(|backend| CPU.contains(backend));
        for row in rows(op).filter(of_cpu) {
            let tiles: &[Format] = if row.algorithm == Algorithm::Tile { &[Format::Tile] } else { &[] };
            assert_eq!(row.formats, [formats, tiles].concat(), "formats of {}", op.short());
            assert!(CPU.iter().all(|backend| row.backends.contains(backend)), "{row:?}");
            assert!(CPU.iter().all(|backend| row.deterministic.contains(backend)), "{row:?}");
            // On a device only in deterministic mode, since they use atomics or a vendor's library.
            let by_mode = [Algorithm::Dense, Algorithm::Swift].contains(&row.algorithm);
            assert_eq!(row.deterministic.contains(&BackendKind::Cuda), !by_mode, "{row:?}");
        }
    }
}

/// Each algorithm has a page of documentation, with a section for each operation where several share the name.
#[test]
fn every_algorithm_has_a_page() {
    let contents = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for row in TABLE {
        let name = format!("docs/algorithms/{}.md", row.name);
        let page =
            std::fs::read_to_string(root().join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(page.starts_with(&format!("# `{}`\n", row.name)), "{name} has another title");
        assert!(
            contents.contains(&format!("(algorithms/{}.md)", row.name)),
            "{name} is not in docs/SUMMARY.md"
        );
        let is_shared = TABLE.iter().any(|other| other.name == row.name && other.op != row.op);
        let heading = format!("\n## {} `{}`", row.op.short(), row.name);
        assert!(!is_shared || page.contains(&heading), "{name} has no section{heading}");
    }
}

/// Every algorithm has a file of kernels with the name of the operation and of the algorithm.
#[test]
fn every_algorithm_has_a_file_of_kernels() {
    for row in TABLE {
        let file = root().join(format!("kernels/{}/{}.cu", row.op.short().to_lowercase(), row.name));
        assert!(file.is_file(), "{} is not there: {row:?}", file.display());
    }
}

/// Returns a 5 × 7 matrix (BSR: of 5 × 7 blocks) with an empty row.
fn tiny(format: Format, widths: Widths, base: IndexBase) -> MatrixCase {
    let style = Style { format, widths, base, block: (2, 3), block_order: Order::Col };
    let places = [(0, 0), (0, 60_000), (20_000, 30_000), (50_000, 10_000), (65_535, 65_535), (0, 0)];
    MatrixCase { style, shape: (5, 7), tidy: false, places: Places::Listed(places.to_vec()) }
}

/// Calls `run` with every format, op, width and base for every type.
fn for_each_supported(op: OpKind, run: impl Fn(Types, Operation, MatrixCase, u64) -> crate::common::Outcome) {
    let mut seed = 0;
    for types in types_of(op) {
        for format in formats_of(op) {
            for operation in Operation::ALL {
                for widths in Widths::ALL {
                    for base in IndexBase::ALL {
                        seed += 1;
                        let a = tiny(format, widths, *base);
                        if let Err(error) = run(types, *operation, a.clone(), seed) {
                            let (op, types) = (op.short(), types.describe());
                            panic!("{op}, {types}, {operation:?} of {a:?}: {error}");
                        }
                    }
                }
            }
        }
    }
}

fn effort(seed: u64) -> Effort {
    [Effort::Default, Effort::Quick, Effort::Tuned][seed as usize % 3]
}

fn mode(seed: u64) -> PointerMode {
    PointerMode::ALL[seed as usize / 3 % 2]
}

#[test]
fn spmv_does_all_that_the_table_says() {
    for_each_supported(OpKind::Spmv, |types, op, a, seed| {
        for alg in SpmvAlg::ALL {
            spmv::run(&spmv::Case {
                types,
                op,
                a: a.clone(),
                alpha: Scalar::Random,
                beta: Scalar::Random,
                mode: mode(seed),
                effort: effort(seed),
                updates: Updates::Never,
                reorder: Reorder::Auto,
                alg: *alg,
                wild: false,
                guard: 1,
                seed,
            })?;
        }
        Ok(())
    });
}

#[test]
fn spmm_does_all_that_the_table_says() {
    for_each_supported(OpKind::Spmm, |types, op, a, seed| {
        for alg in SpmmAlg::ALL {
            for order in Order::ALL {
                spmm::run(&spmm::Case {
                    types,
                    ops: (op, Operation::ALL[seed as usize % 3]),
                    a: a.clone(),
                    n: 3,
                    n_hint: 3,
                    b: spmm::Layout { order: *order, padding: 1 },
                    c: spmm::Layout { order: Order::ALL[seed as usize % 2], padding: 2 },
                    alpha: Scalar::Random,
                    beta: Scalar::Random,
                    mode: mode(seed),
                    effort: effort(seed),
                    updates: Updates::Never,
                    reorder: Reorder::Auto,
                    alg: *alg,
                    wild: false,
                    seed,
                })?;
            }
        }
        Ok(())
    });
}

#[test]
fn spgemm_does_all_that_the_table_says() {
    for_each_supported(OpKind::Spgemm, |types, op, a, seed| {
        // The product op(A) · op(A)ᵀ, from every pair of formats into every format.
        let op_b = if op == N { Operation::Transpose } else { N };
        let formats = formats_of(OpKind::Spgemm);
        for (at, format) in formats.iter().enumerate() {
            let b = MatrixCase { style: Style { format: *format, ..a.style }, ..a.clone() };
            let target = |format, widths| Target { format, widths, base: a.style.base };
            spgemm::run(&spgemm::Case {
                types,
                ops: (op, op_b),
                a: a.clone(),
                b,
                targets: (target(formats[0], a.style.widths), target(formats[1], Widths::ALL[at])),
                alpha: Scalar::Random,
                mode: mode(seed),
                effort: effort(seed),
                value_updates: seed % 2 == 0,
                unsorted: seed % 3 == 0,
                renewed: spgemm::Renewed::Both,
                alg: SpgemmAlg::ALL[seed as usize % SpgemmAlg::ALL.len()],
                wild: false,
                seed,
            })?;
        }
        Ok(())
    });
}

/// Returns a 1 × 1 matrix without entries.
fn empty<V: Element>(format: Format) -> Sparse<'static> {
    let (shape, base) = ((1, 1), IndexBase::Zero);
    let (offsets, none, values): (&[i32], &[i32], &[V]) = (&[0, 0], &[], &[]);
    match format {
        Format::Csr => Sparse::csr(shape, offsets, none, values, base),
        Format::Csc => Sparse::csc(shape, offsets, none, values, base),
        Format::Coo => Sparse::coo(shape, none, none, values, base),
        Format::Bsr => Sparse::bsr(shape, (1, 1), offsets, none, values, base, Order::Row),
        Format::Tile => unreachable!("see crate::tiles"),
    }
    .unwrap()
}

/// Returns an empty matrix with values of a type; `None` for integers (see below).
fn empty_of(format: Format, values: DataType) -> Option<Sparse<'static>> {
    Some(match values {
        DataType::R64F => empty::<f64>(format),
        DataType::R32F => empty::<f32>(format),
        DataType::R16F => empty::<f16>(format),
        DataType::R16BF => empty::<bf16>(format),
        DataType::C64F => empty::<Complex64>(format),
        DataType::C32F => empty::<Complex32>(format),
        DataType::R8I | DataType::R32I => return None,
    })
}

/// Formats of the user's arrays; tests of matrices in tiles are in [`crate::tiles`].
const ARRAYS: [Format; 4] = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr];

/// Calls `f` with all combinations of value types, and a matrix in every format.
fn for_each_combination(mut f: impl FnMut(&Sparse<'_>, Format, Types)) {
    for format in ARRAYS {
        for a in DataType::ALL {
            let Some(matrix) = empty_of(format, *a) else { continue };
            for (x, y) in DataType::ALL.iter().flat_map(|x| DataType::ALL.iter().map(move |y| (x, y))) {
                for compute in ComputeType::ALL {
                    f(&matrix, format, Types { a: *a, x: *x, y: *y, compute: *compute });
                }
            }
        }
    }
}

/// Checks the result of createPlan: success, or NOT_SUPPORTED with a text that names the format of a matrix
/// or the types, whichever is not in the table.
fn verify(
    (op, algorithm): (OpKind, Option<Algorithm>),
    backend: BackendKind,
    formats: &[(&str, Format)],
    types: Types,
    result: Result<()>,
) -> bool {
    let takes_format = |format: Format| rows(op).any(|row| row.formats.contains(&format));
    let is_supported = rows(op).any(|row| {
        row.backends.contains(&backend)
            && algorithm.is_none_or(|algorithm| row.algorithm == algorithm)
            && row.types.contains(&types.plain())
            && (!types.compute.is_pedantic() || row.algorithm.is_pedantic(backend, types.plain()))
            && formats.iter().all(|(_, format)| row.formats.contains(format))
    });
    let what = format!("{} of {formats:?}, {} on {backend:?}", op.short(), types.describe());
    let error = match result {
        Ok(()) => {
            assert!(is_supported, "{what} is not in the table, and was taken");
            return true;
        }
        Err(error) => error,
    };
    assert!(!is_supported, "{what} is in the table, and was refused: {error}");
    assert_eq!(error.status, Status::NotSupported, "{what}: {error}");
    let names_format = formats.iter().any(|(name, format)| {
        !takes_format(*format)
            && error.message.starts_with(&format!("{name}:"))
            && error.message.contains(format.short())
    });
    let names_alg = !offers(op, algorithm, backend) && error.message.starts_with("alg:");
    let by_name = |row: &&Row| algorithm.is_none_or(|algorithm| row.algorithm == algorithm);
    let names_types = !rows(op).filter(by_name).any(|row| row.types.contains(&types))
        && error.message.starts_with("types:")
        && error.message.contains(&types.describe());
    let not_pedantic =
        |row: &Row| row.types.contains(&types.plain()) && !row.algorithm.is_pedantic(backend, types.plain());
    let names_compute = types.compute.is_pedantic()
        && rows(op).filter(by_name).any(not_pedantic)
        && error.message.starts_with("computeType:");
    let names_operation = error.message.contains(op.short());
    assert!(
        (names_alg || names_format || names_types || names_compute) && names_operation,
        "{what}: {error} names nothing that is wrong"
    );
    false
}

/// Runs a test on each backend, in which both supported and refused combinations must occur.
fn for_each_backend(run: impl Fn(&Session, BackendKind, &mut dyn FnMut(bool))) {
    for backend in backends() {
        let (mut taken, mut refused) = (0, 0);
        let session = Session::new(backend).unwrap();
        run(&session, backend, &mut |is_taken| if is_taken { taken += 1 } else { refused += 1 });
        assert!(taken > 0 && refused > 10 * taken, "{taken} taken, {refused} refused");
    }
}

#[test]
fn spmv_refuses_everything_else_by_name() {
    for_each_backend(|session, backend, count| {
        for_each_combination(|a, format, types| {
            for alg in SpmvAlg::ALL {
                let plan = Plan::spmv(session, N, a, (types.x, types.y), types.compute, *alg);
                count(verify(
                    (OpKind::Spmv, Algorithm::from_spmv(*alg)),
                    backend,
                    &[("A", format)],
                    types,
                    plan.map(drop),
                ));
            }
        });
    });
}

#[test]
fn spmm_refuses_everything_else_by_name() {
    for_each_backend(|session, backend, count| {
        for_each_combination(|a, format, types| {
            for alg in SpmmAlg::ALL {
                let (orders, values) = ((Order::Row, Order::Col), (types.x, types.y));
                let plan = Plan::spmm(session, (N, N), a, orders, 1, values, types.compute, *alg);
                count(verify(
                    (OpKind::Spmm, Algorithm::from_spmm(*alg)),
                    backend,
                    &[("A", format)],
                    types,
                    plan.map(drop),
                ));
            }
        });
    });
}

#[test]
fn spgemm_refuses_everything_else_by_name() {
    let mut matrices = Vec::new();
    for format in ARRAYS {
        for values in DataType::ALL {
            matrices.extend(empty_of(format, *values).map(|matrix| (matrix, format, *values)));
        }
    }
    for_each_backend(|session, backend, count| {
        for (a, a_format, a_type) in &matrices {
            for (b, b_format, b_type) in &matrices {
                for compute in ComputeType::ALL {
                    let types = Types { a: *a_type, x: *b_type, y: compute.scalar(), compute: *compute };
                    for alg in SpgemmAlg::ALL {
                        let plan = Plan::spgemm(session, (N, N), a, b, *compute, *alg);
                        let formats = [("A", *a_format), ("B", *b_format)];
                        count(verify(
                            (OpKind::Spgemm, Algorithm::from_spgemm(*alg)),
                            backend,
                            &formats,
                            types,
                            plan.map(drop),
                        ));
                    }
                }
            }
        }
    });
}

/// Descriptors of matrices of integers are refused in every format.
#[test]
fn matrices_of_integers_are_refused_by_name() {
    let (i32s, base) = (tarsia::facade::IndexType::I32, IndexBase::Zero);
    for values in [DataType::R8I, DataType::R32I] {
        let mut raw = null();
        // SAFETY: the answer is valid for a write; arrays may be NULL.
        let results: [Result<()>; 4] = unsafe {
            [
                check(spmat::tarsiaCreateConstCsr(
                    &mut raw,
                    1,
                    1,
                    0,
                    null(),
                    null(),
                    null(),
                    arg(i32s),
                    arg(i32s),
                    arg(base),
                    arg(values),
                )),
                check(spmat::tarsiaCreateConstCsc(
                    &mut raw,
                    1,
                    1,
                    0,
                    null(),
                    null(),
                    null(),
                    arg(i32s),
                    arg(i32s),
                    arg(base),
                    arg(values),
                )),
                check(spmat::tarsiaCreateConstCoo(
                    &mut raw,
                    1,
                    1,
                    0,
                    null(),
                    null(),
                    null(),
                    arg(i32s),
                    arg(base),
                    arg(values),
                )),
                check(spmat::tarsiaCreateConstBsr(
                    &mut raw,
                    1,
                    1,
                    0,
                    1,
                    1,
                    null(),
                    null(),
                    null(),
                    arg(i32s),
                    arg(i32s),
                    arg(base),
                    arg(values),
                    arg(Order::Row),
                )),
            ]
        };
        assert!(raw.is_null(), "a descriptor was written");
        for (result, format) in results.into_iter().zip(ARRAYS) {
            let Error { status, message } = result.expect_err(format.short());
            assert_eq!(status, Status::NotSupported, "{message}");
            assert!(message.starts_with("valueType:") && message.contains(values.short()), "{message}");
        }
    }
}

/// Errors for pedantic compute types name combinations that have one, and for complex values the reason why
/// there is none.
#[test]
fn refused_pedantic_types_are_answered_with_pedantic_ones() {
    use DataType::{C32F, R16BF, R16F, R32F, R64F};
    const VALUES: [DataType; 4] = [R16F, R16BF, R32F, R64F];
    const PEDANTIC: [ComputeType; 2] = [ComputeType::R32FPedantic, ComputeType::R64FPedantic];
    let mut count = 0;
    for backend in [BackendKind::Host, BackendKind::Cuda] {
        for row in TABLE.iter().filter(|row| row.backends.contains(&backend)) {
            for compute in PEDANTIC {
                let ask = |types| {
                    let (op, algorithm) = (row.op, Some(row.algorithm));
                    Query { op, format: row.formats[0], types, backend, algorithm }.rows().map(|_| ())
                };
                for a in [R16F, R32F, R64F, C32F] {
                    for y in [R16F, R32F, R64F, C32F] {
                        let Err(Error { message, .. }) = ask(Types { a, x: a, y, compute }) else { continue };
                        if a == C32F {
                            assert!(message.contains("pedantic types are for real values; "), "{message}");
                            continue;
                        }
                        let Some((_, list)) = message.split_once("; the closest that it takes: ") else {
                            assert!(message.starts_with("computeType: "), "{message}");
                            continue;
                        };
                        let named = list.split("; ").filter(|name| !name.starts_with("and "));
                        for name in named {
                            let known = VALUES.iter().flat_map(|&a| {
                                VALUES.iter().flat_map(move |&x| {
                                    VALUES.iter().flat_map(move |&y| {
                                        PEDANTIC.iter().map(move |&compute| Types { a, x, y, compute })
                                    })
                                })
                            });
                            let mut taken = known.filter(|types| types.describe() == *name);
                            assert!(taken.any(|types| ask(types).is_ok()), "{name}: {message}");
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(count > 100, "{count}");
}

/// The text that refuses types names supported combinations once each, the closest first, within the 512
/// bytes that the header recommends for messages.
#[test]
fn refused_types_are_answered_with_the_closest_ones() {
    let refused = |op, algorithm, [a, x, y]: [DataType; 3], compute| {
        let types = Types { a, x, y, compute };
        let query = Query { op, format: Format::Csr, types, backend: BackendKind::Host, algorithm };
        query.rows().map(|_| ()).map_err(|error| error.message)
    };
    use DataType::{C32F, C64F, R16BF, R16F, R32F, R64F};
    let (mut count, mut with_more) = (0, 0);
    let scalars = [R16F, R16BF, R32F, R64F, C32F, C64F, DataType::R8I, DataType::R32I];
    let algorithms = TABLE.iter().map(|row| (row.op, Some(row.algorithm)));
    let asked =
        [OpKind::Spmv, OpKind::Spmm, OpKind::Spgemm].map(|op| (op, None)).into_iter().chain(algorithms);
    for (op, algorithm) in asked {
        for a in scalars {
            for x in scalars {
                let compute = if a == R64F { ComputeType::R64F } else { ComputeType::R32F };
                let Err(message) = refused(op, algorithm, [a, x, x], compute) else { continue };
                count += 1;
                assert!(message.len() < 512, "{} bytes: {message}", message.len());
                let (_, list) = message.split_once("; the closest that it takes: ").expect(&message);
                let mut named: Vec<&str> = list.split("; ").collect();
                let more = named.last().copied().filter(|last| last.starts_with("and "));
                named.truncate(named.len() - usize::from(more.is_some()));
                with_more += usize::from(more.is_some());
                let mut distinct = named.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), named.len(), "{message}");
                assert!(!named.is_empty() && named.iter().all(|name| name.starts_with("A ")), "{message}");
                // The text counts those that are not named; all that are named are supported.
                let row_takes = |row: &&Row| {
                    row.op == op
                        && row.backends.contains(&BackendKind::Host)
                        && algorithm.map_or(!row.only_by_name, |asked| row.algorithm == asked)
                };
                let mut all: Vec<String> =
                    TABLE.iter().filter(row_takes).flat_map(|row| row.types).map(Types::describe).collect();
                all.sort_unstable();
                all.dedup();
                assert!(named.iter().all(|name| all.iter().any(|other| other == name)), "{message}");
                let prefix = format!("A {},", a.short());
                let same: Vec<&String> = all.iter().filter(|name| name.starts_with(&prefix)).collect();
                let wanted = if same.is_empty() { all.len() } else { same.len() };
                let more: usize = more.map_or(0, |text| text.split(' ').nth(1).unwrap().parse().unwrap());
                assert_eq!(named.len() + more, wanted, "{message}");
            }
        }
    }
    assert!(count > 500 && with_more > 0, "{count}, {with_more}");
    let message = refused(OpKind::Spmm, None, [R16F, R16F, R64F], ComputeType::R32F).unwrap_err();
    assert!(
        message.ends_with(
            "the closest that it takes: A fp16, input fp16, output fp16, compute fp32; \
             A fp16, input fp16, output fp32, compute fp32"
        ),
        "{message}"
    );
}
