//! Tests that selection minimises analysis and executions together.

use super::*;
use crate::algorithm::{Query, Row, TABLE};
use crate::matrix::testing::pattern;
use crate::matrix::{Compressed, SparseArrays};
use crate::problem::SpmvProblem;
use crate::select::spmv::statistics::SpmvStatistics;
use crate::select::{spmv, spmv_times, Method, RowOrder};
use crate::support::{self, Combo};
use crate::types::{Address, BackendKind, Format, IndexBase, IndexType, OpKind};
use matrices::gallery;

#[test]
fn algorithms_among_which_is_chosen_have_costs() {
    let is_choice = |row: &&Row| TABLE.iter().filter(|other| other.op == row.op).count() > 1;
    let expected: Vec<_> = TABLE.iter().filter(is_choice).map(|row| row.algorithm).collect();
    assert!(expected.len() > 13, "{expected:?}");
    for costs in [H100, HOST] {
        let found: Vec<_> = costs.algorithms.iter().map(|known| known.0).collect();
        assert_eq!(found, expected);
    }
}

fn problem((rows, cols, nnz): (i64, i64, i64)) -> SpmvProblem {
    let m = Compressed {
        major: rows,
        minor: cols,
        nnz,
        offsets: Address::NULL,
        indices: Address::NULL,
        values: Address::NULL,
        offset_type: IndexType::I32,
        index_type: IndexType::I32,
        base: IndexBase::Zero,
        value_type: support::F64::TYPES.a,
    };
    let a = SparseMatrix { arrays: SparseArrays::Csr(m), writable: false, temporary: false };
    SpmvProblem { op: Operation::NonTranspose, a, types: support::F64::TYPES, value_updates: false }
}

fn rows(backend: BackendKind) -> Vec<&'static Row> {
    let (format, types) = (Format::Csr, support::F64::TYPES);
    Query { op: OpKind::Spmv, format, types, backend, algorithm: None }.rows().unwrap()
}

const MANY: i64 = 1 << 50;

/// On an H100, with statistics of real patterns: one execution reads A in place, many take the same choice as
/// an unknown number, and in between the sum of analysis and executions is never more than another choice's,
/// up to the margin of predictions by which `sell` is preferred.
#[test]
fn the_sum_is_least() {
    let (machine, all) = (&Machine::H100, rows(BackendKind::Cuda));
    let margin = crate::select::spmv::MARGIN;
    let mut converted = 0;
    for name in ["webbase", "scircuit", "dc2", "band64", "cant", "mc2depi", "rmat16"] {
        let a = gallery::named(name).unwrap();
        let (problem, statistics) =
            (problem((a.rows as i64, a.cols as i64, a.nnz() as i64)), SpmvStatistics::of(&pattern(&a), 8));
        let unknown = spmv(&problem, &all, Effort::Default, machine, Some(&statistics)).unwrap();
        let of = |executes| {
            spmv_times(&problem, &all, (Effort::Default, executes), machine, Some(&statistics)).unwrap()
        };
        let parts = |choice: &Choice| (choice.algorithm(), choice.a);
        assert_eq!(parts(&of(1)[0]), (Algorithm::Csr, Source::InPlace), "{name}");
        assert_eq!(parts(&of(MANY)[0]), parts(&unknown[0]), "{name}");
        converted += usize::from(unknown[0].algorithm() != Algorithm::Csr);
        let mut before = 0.0;
        for log in 0..24 {
            let choices = of(1 << log);
            let known = Amortized::new(machine, &problem.a, problem.op, 1 << log);
            let sum = |choice: &Choice| {
                let analysis = known.analysis(choice);
                let trust = if choice.algorithm() == Algorithm::Sell { 1.0 - margin } else { 1.0 };
                (analysis, analysis + f64::from(1 << log) * choice.predicted_seconds * trust)
            };
            let (analysis, total) = sum(&choices[0]);
            for other in &choices {
                assert!(total <= sum(other).1 * (1.0 + 1e-12), "{name} {}: {:?}", 1 << log, parts(other));
            }
            // With more executions the best choice never has a cheaper analysis.
            assert!(analysis >= before, "{name} {}", 1 << log);
            before = analysis;
        }
    }
    assert!(converted > 3, "{converted}");
}

/// The sum of analysis and executions of SpMM is the least, too.
#[test]
fn the_sum_of_products_with_matrices_is_least() {
    use crate::problem::SpmmProblem;
    use crate::select::SpmmInspection;
    use crate::settings::Settings;
    use crate::types::Order;
    let (machine, types) = (&Machine::H100, support::F64::TYPES);
    let query =
        Query { op: OpKind::Spmm, format: Format::Csr, types, backend: BackendKind::Cuda, algorithm: None };
    let all: Vec<_> = query.rows().unwrap().into_iter().filter(|row| !row.only_by_name).collect();
    let mut converted = 0;
    for name in ["webbase", "band64", "cant", "mc2depi", "rmat16"] {
        let a = gallery::named(name).unwrap();
        let SpmvProblem { op, a: matrix, .. } = problem((a.rows as i64, a.cols as i64, a.nnz() as i64));
        let (b_order, c_order) = (Order::Row, Order::Row);
        let problem = SpmmProblem {
            op,
            op_b: op,
            a: matrix,
            b_order,
            c_order,
            n_hint: 32,
            types,
            value_updates: false,
            ieee: false,
        };
        let statistics = crate::select::spmm::SpmmStatistics::of(&pattern(&a), types.a);
        let inspection = SpmmInspection { statistics, clustered: None, backend_state: Box::new(()) };
        let of = |expected_executes| {
            let settings = Settings { expected_executes, ..Settings::default() };
            crate::select::spmm(&problem, &all, &settings, machine, Some(&inspection)).unwrap()
        };
        let parts = |choice: &Choice| (choice.algorithm(), choice.a);
        let (unknown, one, many) = (of(0), of(1), of(MANY));
        assert_eq!(parts(&many[0]), parts(&unknown[0]), "{name}");
        converted += usize::from(parts(&one[0]) != parts(&many[0]));
        let known = Amortized::new(machine, &problem.a, op, 1);
        let analyses: Vec<_> = [&one[0], &many[0]].map(|choice| known.analysis(choice)).into();
        assert!(analyses.is_sorted(), "{name}: {analyses:?}");
    }
    assert!(converted > 0);
}

/// Pattern statistics are not counted where that cannot pay.
#[test]
fn a_look_is_for_what_may_pay_for_it() {
    let (machine, problem) = (&Machine::H100, problem((60_000, 60_000, 4_000_000)));
    let of = |executes| Amortized::new(machine, &problem.a, problem.op, executes);
    let execute = crate::select::seconds_by_shape(&problem.a, problem.op, 1, problem.types, machine);
    assert!(
        of(0).may_inspect_spmv(execute)
            && of(MANY).may_inspect_spmv(execute)
            && !of(1).may_inspect_spmv(execute)
    );
    assert!(
        of(0).may_inspect_spmm(execute)
            && of(MANY).may_inspect_spmm(execute)
            && !of(1).may_inspect_spmm(execute)
    );
    assert!(of(0).may_inspect_spgemm(execute) && of(MANY).may_inspect_spgemm(execute));
    // Tiles that are twice as fast pay for many products only.
    assert!(of(0).takes_tiles(1e-3, 2.0) && of(MANY).takes_tiles(1e-3, 2.0) && !of(1).takes_tiles(1e-5, 2.0));
    assert!(of(0).may_cluster(1e-5, 1.5e-3) && !of(1).may_cluster(1e-5, 1.5e-3));
}

/// Analysis with a copy costs more than reading in place, and one with a row order more than a copy.
#[test]
fn what_is_made_takes_longer() {
    for machine in [&Machine::HOST, &Machine::H100] {
        let problem = problem((60_000, 60_000, 4_000_000));
        let known = Amortized::new(machine, &problem.a, problem.op, 5);
        let choices =
            spmv(&problem, &rows(BackendKind::Host), Effort::Default, &Machine::HOST, None).unwrap();
        let of = |algorithm, source| {
            let found = choices.iter().find(|choice| (choice.algorithm(), choice.a) == (algorithm, source));
            found.unwrap().clone()
        };
        let in_place = of(Algorithm::Csr, Source::InPlace);
        let copy = of(Algorithm::Csr, Source::Canonical);
        let ordered = Choice { method: Method::Csr(RowOrder::new(Reorder::GrayCode)), ..copy.clone() };
        let sell = of(Algorithm::Sell, Source::Canonical);
        let seconds = [&in_place, &copy, &ordered].map(|choice| known.analysis(choice));
        assert!(seconds.is_sorted() && seconds[0] < seconds[1] && seconds[1] < seconds[2], "{seconds:?}");
        assert!(known.analysis(&sell) > seconds[0]);
        assert_eq!(known.total(&in_place, 2.0), seconds[0] + 10.0);
    }
}

/// TUNED puts choices that cannot gain what they cost behind the others, and times nothing if only one is
/// left.
#[test]
fn what_cannot_pay_is_not_timed() {
    let problem = problem((60_000, 60_000, 4_000_000));
    let of = |executes| {
        let known = Amortized::new(&Machine::HOST, &problem.a, problem.op, executes);
        let times = (Effort::Tuned, executes);
        let choices = spmv_times(&problem, &rows(BackendKind::Host), times, &Machine::HOST, None).unwrap();
        let count = choices.len();
        let (effort, kept, timed) = known.worth_timing(Effort::Tuned, choices, 2);
        assert_eq!(kept.len(), count, "fallbacks are lost");
        (effort, kept[0].algorithm(), timed)
    };
    assert_eq!((of(0).0, of(0).2), (Effort::Tuned, 2));
    assert_eq!(of(1), (Effort::Default, Algorithm::Csr, 1));
    assert_eq!(of(MANY), (Effort::Tuned, Algorithm::Sell, 2));
}

/// A device with half the memory bandwidth takes twice as long for entries and rows, and as long for the
/// fixed start and the work of the host.
#[test]
fn analyses_follow_memory() {
    use crate::select::device::tests::{A100, H200, HALVES, RTX_4090};
    use crate::select::device::FITTED;
    let problem = problem((60_000, 60_000, 4_000_000));
    let choices = spmv(&problem, &rows(BackendKind::Cuda), Effort::Quick, &Machine::H100, None).unwrap();
    let csr = choices.iter().find(|choice| choice.a == Source::Canonical).unwrap();
    let of_size = |device, (rows, nnz)| {
        let machine = Machine::of_device(device);
        Amortized::new(&machine, &self::problem((rows, rows, nnz)).a, problem.op, 1)
    };
    let of = |device| of_size(device, (60_000, 4_000_000)).analysis(csr);
    let start = of_size(&FITTED, (0, 0)).analysis(csr);
    let [small, slow] = [&HALVES[0], &HALVES[1]].map(of);
    assert_eq!(small.to_bits(), of(&FITTED).to_bits());
    assert!(((slow - start) / (of(&FITTED) - start) - 2.0).abs() < 1e-9, "{slow} {start}");
    assert_eq!(of_size(&HALVES[1], (0, 0)).analysis(csr), start);
    let by_device = [&H200, &FITTED, &A100, &RTX_4090].map(of);
    assert!(by_device.is_sorted() && by_device[0] < by_device[1], "{by_device:?}");
    // The host computes orders: they add the same time on any device.
    let ordered = Choice { method: Method::Csr(RowOrder::new(Reorder::GrayCode)), ..csr.clone() };
    let order = |device| {
        let known = of_size(device, (60_000, 4_000_000));
        known.analysis(&ordered) - known.analysis(csr)
    };
    assert!((order(&RTX_4090) / order(&FITTED) - 1.0).abs() < 1e-9);
    // One product of 0.66 ms, half of which tiles would save: less than a slow device takes to make them.
    let takes = |device| of_size(device, (60_000, 4_000_000)).takes_tiles(660e-6, 2.0);
    assert!(takes(&FITTED) && takes(&H200) && !takes(&HALVES[1]) && !takes(&RTX_4090));
}
