//! Tests of the choice of an algorithm: every choice has a reason, QUICK and missing statistics choose by
//! shapes, what a layout cannot hold is no candidate, and effort TUNED tries orders of rows behind what it
//! times.

use super::spmv::MARGIN;
use super::*;
use crate::algorithm::Query;
use crate::matrix::testing::pattern;
use crate::matrix::Compressed;
use crate::support::{self, Combo};
use crate::types::{Address, BackendKind, Format, IndexBase, OpKind, Order};
use matrices::gallery;
use matrices::owned::OwnedCsr;

/// SpMV problem with a matrix of this shape; nothing reads its arrays.
fn problem(a: (i64, i64, i64), op: Operation) -> SpmvProblem {
    let compressed = Compressed {
        major: a.0,
        minor: a.1,
        nnz: a.2,
        offsets: Address::NULL,
        indices: Address::NULL,
        values: Address::NULL,
        offset_type: IndexType::I32,
        index_type: IndexType::I32,
        base: IndexBase::Zero,
        value_type: support::F64::TYPES.a,
    };
    let a = SparseMatrix { arrays: SparseArrays::Csr(compressed), writable: false, temporary: false };
    SpmvProblem { op, a, types: support::F64::TYPES, value_updates: false }
}

/// SpMM problem with a matrix of this shape; nothing reads its arrays.
fn spmm_problem<V>(a: &OwnedCsr<V>, types: Types, c_order: Order, n: i64) -> SpmmProblem {
    let of_spmv = problem((a.rows as i64, a.cols as i64, a.nnz() as i64), Operation::NonTranspose);
    SpmmProblem {
        op: of_spmv.op,
        op_b: Operation::NonTranspose,
        a: of_spmv.a,
        b_order: Order::Row,
        c_order,
        n_hint: n,
        types,
        value_updates: false,
        ieee: false,
    }
}

fn rows(backend: BackendKind, algorithm: Option<Algorithm>) -> Vec<&'static Row> {
    let (format, types) = (Format::Csr, support::F64::TYPES);
    Query { op: OpKind::Spmv, format, types, backend, algorithm }.rows().unwrap()
}

fn of<V>(a: &OwnedCsr<V>) -> (SpmvProblem, SpmvStatistics) {
    let shape = (a.rows as i64, a.cols as i64, a.nnz() as i64);
    (problem(shape, Operation::NonTranspose), SpmvStatistics::of(&pattern(a), 8))
}

fn corpus() -> Vec<(SpmvProblem, SpmvStatistics)> {
    let named = ["webbase", "scircuit", "dc2", "band64", "cant", "mc2depi", "rmat16"];
    let mut out: Vec<_> = named.iter().map(|name| of(&gallery::named(name).unwrap())).collect();
    out.push(of(&gallery::empty(0, 0).unwrap()));
    out.push(of(&gallery::empty(1000, 3).unwrap()));
    out.push(of(&gallery::uniform(50, 7, 3, 1).unwrap()));
    out
}

#[test]
fn every_choice_is_explained() {
    let all = rows(BackendKind::Cuda, None);
    for (problem, statistics) in corpus() {
        for effort in [Effort::Default, Effort::Tuned] {
            let choices = spmv(&problem, &all, effort, &Machine::H100, Some(&statistics)).unwrap();
            // `csr` comes twice: in place and as a copy.
            assert_eq!(choices.len(), all.len() + 1);
            let sell = choices.iter().find(|choice| choice.algorithm() == Algorithm::Sell).unwrap();
            for (at, choice) in choices.iter().enumerate() {
                let start = format!("{} on {}: ", choice.algorithm().name(), choice.describe());
                assert!(choice.reason.starts_with(&start), "{}", choice.reason);
                assert!(choice.reason.len() < 480, "{}: {}", choice.reason.len(), choice.reason);
                assert!(all.iter().all(|row| choice.reason.contains(row.algorithm.name())));
                assert!(choice.predicted_seconds > 0.0 && choice.predicted_seconds.is_finite());
                // The first choices, which TUNED times, have different layouts.
                let others = choices[..at].iter().filter(|other| other.algorithm() == choice.algorithm());
                assert!(at >= all.len() || others.count() == 0);
            }
            let first = &choices[0];
            let is_clear = first.predicted_seconds <= sell.predicted_seconds * (1.0 - MARGIN);
            assert!(first.algorithm() == Algorithm::Sell || is_clear, "{}", first.reason);
        }
    }
}

#[test]
fn quick_converts_nothing_in_place() {
    for backend in [BackendKind::Cuda, BackendKind::Host] {
        let machine = if backend == BackendKind::Cuda { Machine::H100 } else { Machine::HOST };
        for (problem, statistics) in corpus() {
            for statistics in [None, Some(&statistics)] {
                let choices =
                    spmv(&problem, &rows(backend, None), Effort::Quick, &machine, statistics).unwrap();
                assert_eq!((choices[0].a, choices[0].algorithm()), (Source::InPlace, Algorithm::Csr));
                assert!(choices[0].reason.contains("QUICK converts nothing"));
            }
        }
    }
}

#[test]
fn without_statistics_shapes_choose_between_two() {
    for (problem, statistics) in corpus() {
        for (machine, statistics) in
            [(Machine::H100, None), (Machine::HOST, None), (Machine::HOST, Some(&statistics))]
        {
            let choices =
                spmv(&problem, &rows(BackendKind::Host, None), Effort::Default, &machine, statistics)
                    .unwrap();
            let is_known = |choice: &Choice| matches!(choice.algorithm(), Algorithm::Csr | Algorithm::Sell);
            assert!(choices.iter().all(is_known));
            assert!(choices.is_sorted_by(|a, b| a.predicted_seconds <= b.predicted_seconds));
            assert!(!choices[0].reason.contains("shapes alone"), "{}", choices[0].reason);
        }
    }
    let foreign = problem((1000, 1000, 5000), Operation::Transpose);
    let choices =
        spmv(&foreign, &rows(BackendKind::Cuda, None), Effort::Default, &Machine::H100, None).unwrap();
    assert!(choices[0].reason.ends_with("by shapes alone: rows of op(A) are not in place"));
    assert!(choices.iter().all(|choice| choice.a == Source::Canonical));
}

#[test]
fn what_a_layout_cannot_hold_is_no_candidate() {
    let (_, statistics) = of(&gallery::uniform(50, 7, 3, 1).unwrap());
    let all = rows(BackendKind::Cuda, None);
    for (shape, converted, canonical) in [
        ((1 << 31, 10, 5), false, true),
        ((10, 1 << 31, 5), false, false),
        ((1 << 20, 1 << 20, 1 << 33), true, true),
    ] {
        let problem = problem(shape, Operation::NonTranspose);
        for statistics in [None, Some(&statistics)] {
            let choices = spmv(&problem, &all, Effort::Default, &Machine::H100, statistics).unwrap();
            assert_eq!(choices.iter().any(|choice| choice.algorithm().is_converted()), converted);
            assert_eq!(choices.iter().any(|choice| choice.a == Source::Canonical), canonical);
        }
        let sell = rows(BackendKind::Cuda, Some(Algorithm::Sell));
        assert_eq!(spmv(&problem, &sell, Effort::Default, &Machine::H100, None).is_ok(), converted);
    }
    // An algorithm asked for by name is the only candidate.
    for row in &all {
        let named = rows(BackendKind::Cuda, Some(row.algorithm));
        let choices =
            spmv(&corpus()[0].0, &named, Effort::Default, &Machine::H100, Some(&statistics)).unwrap();
        assert!(choices.iter().all(|choice| choice.algorithm() == row.algorithm));
    }
}

#[test]
fn orders_are_tried_behind_what_is_timed() {
    let all = rows(BackendKind::Cuda, None);
    let (problem, statistics) = of(&gallery::named("webbase").unwrap());
    let choices = spmv(&problem, &all, Effort::Tuned, &Machine::H100, Some(&statistics)).unwrap();
    let csr = choices.iter().position(|choice| choice.algorithm() == Algorithm::Csr).unwrap();
    let tried = |most, rows| {
        let mut out = choices.clone();
        let timed = try_orders(&mut out, most, rows);
        assert_eq!(out[..most].len(), choices[..most].len());
        assert_eq!(out.len() - choices.len(), timed - most);
        out[most..timed]
            .iter()
            .map(|choice| (choice.algorithm(), choice.a, choice.method.reorder()))
            .collect::<Vec<_>>()
    };
    let copies = TRIED.map(|reorder| (Algorithm::Csr, Source::Canonical, reorder));
    assert_eq!(tried(csr + 1, problem.a.shape().0.min(MOST_TRIED)), copies);
    // No orders for an algorithm that is not among the best, nor for very many rows.
    assert_eq!(tried(csr, 1000), []);
    assert_eq!(tried(csr + 1, MOST_TRIED + 1), []);
    // `csr` by name has two candidates: the user's rows and a copy.
    let named = rows(BackendKind::Cuda, Some(Algorithm::Csr));
    let mut named = spmv(&problem, &named, Effort::Tuned, &Machine::H100, None).unwrap();
    assert_eq!((named.len(), try_orders(&mut named, 2, 1000)), (2, 4));
}

/// Deterministic plans multiply `dense` by the library's own kernels, which are slower than cublasLt for
/// large products: the choice then leaves `dense` for another algorithm at a smaller share of zeros.
#[test]
fn deterministic_plans_price_their_own_kernels() {
    let mut machine = Machine::H100;
    machine.learned = None;
    let (side, n) = (2048, 512);
    let types = support::Tf32::TYPES;
    let query =
        Query { op: OpKind::Spmm, format: Format::Csr, types, backend: BackendKind::Cuda, algorithm: None };
    let rows = query.rows().unwrap();
    let slower = spmm::dense::own_kernels_slower(types, (side, side, n));
    assert!(slower > 1.5, "{slower}");
    let mut differ = 0;
    for of_a_row in [64, 96, 128, 160, 192, 256, 512] {
        let a = gallery::uniform(side, side, of_a_row, 1).unwrap();
        let problem = spmm_problem(&a, types, Order::Row, n as i64);
        let statistics = spmm::SpmmStatistics::of(&pattern(&a), types.a);
        let inspection = SpmmInspection { statistics, clustered: None, backend_state: Box::new(()) };
        let choices = |deterministic| {
            let settings = Settings { deterministic, ..Settings::default() };
            super::spmm(&problem, &rows, &settings, &machine, Some(&inspection)).unwrap()
        };
        let (all, own) = (choices(false), choices(true));
        let seconds = |choices: &[Choice], algorithm| {
            choices.iter().find(|choice| choice.algorithm() == algorithm).unwrap().predicted_seconds
        };
        for row in &rows {
            let ratio = seconds(&own, row.algorithm) / seconds(&all, row.algorithm);
            let expected = if row.algorithm == Algorithm::Dense { slower } else { 1.0 };
            assert!((ratio - expected).abs() < 1e-9, "{} {ratio}", row.algorithm.name());
        }
        differ +=
            usize::from(all[0].algorithm() == Algorithm::Dense && own[0].algorithm() != Algorithm::Dense);
    }
    assert!(differ > 0);
}

/// `row` counts with the rates of its kernels for aligned rows only if the operands allow these, with the same
/// correction, and clusters of rows are weighed against that time.
#[test]
fn row_is_predicted_with_the_kernel_that_operands_allow() {
    let types = support::F32::TYPES;
    let query =
        Query { op: OpKind::Spmm, format: Format::Csr, types, backend: BackendKind::Cuda, algorithm: None };
    let rows = query.rows().unwrap();
    let a = gallery::uniform(50_000, 50_000, 12, 1).unwrap();
    let statistics = spmm::SpmmStatistics::of(&pattern(&a), types.a);
    let mut uncorrected = Machine::H100;
    uncorrected.learned = None;
    let settings = Settings::default();
    let choices = |machine: &Machine, c_order, clustered| {
        let problem = spmm_problem(&a, types, c_order, 64);
        let inspection = SpmmInspection { statistics, clustered, backend_state: Box::new(()) };
        super::spmm(&problem, &rows, &settings, machine, Some(&inspection)).unwrap()
    };
    let seconds = |choices: &[Choice], algorithm| {
        choices.iter().find(|choice| choice.algorithm() == algorithm).unwrap().predicted_seconds
    };
    let mut ratios = Vec::new();
    for machine in [&Machine::H100, &uncorrected] {
        let [by_rows, by_columns] = [Order::Row, Order::Col].map(|order| choices(machine, order, None));
        ratios.push(seconds(&by_columns, Algorithm::Row) / seconds(&by_rows, Algorithm::Row));
        assert_eq!(seconds(&by_columns, Algorithm::Window), seconds(&by_rows, Algorithm::Window));
    }
    assert!(ratios[0] > 1.1 && (ratios[0] / ratios[1] - 1.0).abs() < 1e-9, "{ratios:?}");
    // Clusters with ever fewer columns are taken at some point, and by columns of C no later than by rows.
    for machine in [&Machine::H100, &uncorrected] {
        let taken = |order| {
            let has_gained = |share: &f64| {
                let clustered =
                    spmm::SpmmStatistics { counts: statistics.counts.hoped(*share), ..statistics };
                let with = choices(machine, order, Some(clustered));
                seconds(&with, Algorithm::Window)
                    != seconds(&choices(machine, order, None), Algorithm::Window)
            };
            let shares: Vec<_> = (1..=40).map(|at| f64::from(at) / 40.0).collect();
            shares.iter().rposition(has_gained)
        };
        let (by_rows, by_columns) = (taken(Order::Row), taken(Order::Col));
        assert!(by_rows.is_some() && by_columns >= by_rows, "{by_rows:?} {by_columns:?}");
        assert!(by_columns < Some(39), "{by_columns:?}");
    }
}
