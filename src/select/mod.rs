//! Selection of the algorithm of a plan, and of where it reads its matrices, with the reason as text. These
//! are pure functions of the problem: nothing here times anything (except [`autotune`]), reads memory (except
//! the pattern statistics, such as [`spmv::statistics`], which read a pattern), or looks at the environment.

pub mod analysis;
pub mod autotune;
mod choice;
pub mod counted;
pub mod device;
pub mod grids;
pub mod in_place;
pub mod inspection;
pub mod learned;
pub mod orders;
pub mod roofline;
pub mod spgemm;
pub mod spmm;
pub mod spmv;

use self::analysis::Amortized;
pub use self::choice::{Choice, Clusters, Decided, Method, Multiplier, RowOrder, Source};
use self::device::Ratios;
pub use self::inspection::{SpgemmInspection, SpmmInspection, SpmvInspection};
use self::roofline::Machine;
use self::spmv::statistics::SpmvStatistics;
use self::spmv::{estimate, Widths};
use crate::algorithm::{Algorithm, Row};
use crate::error::{refuse_if, Error, Result};
use crate::matrix::{SparseArrays, SparseMatrix};
use crate::problem::{SpgemmProblem, SpmmProblem, SpmvProblem};
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{Effort, IndexType, Operation, Reorder};

/// Error for an operation or algorithm that does not take the row order that was asked for by name.
fn no_orders(reorder: Reorder, what: &str) -> Error {
    Error::unsupported(format!(
        "reorder: {} is for SpMV csr and for SpMM row and csr, not for {what}",
        reorder.c_name()
    ))
}

/// Returns the rows of the support table whose algorithms can process the rows of op(A) in this order.
pub fn rows_in_order(rows: &[&'static Row], reorder: Reorder) -> Result<Vec<&'static Row>> {
    let takes = |row: &&&'static Row| !reorder.is_named() || row.algorithm.takes_orders();
    let found: Vec<_> = rows.iter().filter(takes).copied().collect();
    match rows {
        [row] if found.is_empty() => {
            Err(no_orders(reorder, &format!("{} {}", row.op.short(), row.algorithm.name())))
        }
        [row, ..] if found.is_empty() => Err(no_orders(reorder, row.op.short())),
        _ => Ok(found),
    }
}

/// Restricts choices to those that can have a row order by name, which takes a copy of A, and sets the order
/// in them.
pub fn put_in_order(choices: &mut Vec<Choice>, reorder: Reorder) -> Result<()> {
    if !reorder.is_named() {
        return Ok(());
    }
    choices.retain(|choice| choice.a == Source::Canonical);
    for choice in choices.iter_mut() {
        if let Some(order) = choice.method.row_order_mut() {
            *order = RowOrder::new(reorder);
        }
        choice.reason = format!("{}; rows in the order {}", choice.reason, reorder.c_name());
    }
    match choices.is_empty() {
        true => Err(no_copy(reorder)),
        false => Ok(()),
    }
}

fn no_copy(reorder: Reorder) -> Error {
    Error::unsupported(format!(
        "reorder: {} takes a copy of A, which has columns of 32 bits",
        reorder.c_name()
    ))
}

/// Returns `NOT_SUPPORTED` unless the model that predicts the fastest row order covers products of op(A) by
/// the algorithm of these rows of the support table.
pub fn require_learned(a: &SparseMatrix, op: Operation, rows: &[&'static Row]) -> Result<Algorithm> {
    // Only one algorithm in `rows` takes orders: `csr` of SpMM is chosen by name only.
    let algorithm = rows.first().map_or(Algorithm::Row, |row| row.algorithm);
    orders::h100().require(algorithm)?;
    match canonical(a, op) {
        true => Ok(algorithm),
        false => Err(no_copy(Reorder::Learned)),
    }
}

/// Row orders that effort TUNED times where the caller leaves the order open: those of the paper on row
/// permutations that gained on matrices from files (docs/algorithms/orders.md, what orders gain).
pub const TRIED: [Reorder; 2] = [Reorder::Lpt, Reorder::GrayCode];
/// Number of rows beyond which orders are not tried: the host computes them, which takes too long.
const MOST_TRIED: i64 = 1 << 18;

/// Takes the best of the first `most` choices whose algorithm can process rows in any order, and inserts it
/// behind these once for each order of [`TRIED`]. Returns the number of choices to time.
pub fn try_orders(choices: &mut Vec<Choice>, most: usize, rows: i64) -> usize {
    let most = most.min(choices.len());
    let found = choices[..most].iter().find(|choice| choice.algorithm().takes_orders());
    let Some(algorithm) = found.map(|choice| choice.algorithm()).filter(|_| rows <= MOST_TRIED) else {
        return most;
    };
    let is_copy = |choice: &&Choice| choice.algorithm() == algorithm && choice.a == Source::Canonical;
    let Some(copy) = choices.iter().find(is_copy).cloned() else { return most };
    let tried = TRIED.map(|reorder| {
        let mut choice = copy.clone();
        if let Some(order) = choice.method.row_order_mut() {
            *order = RowOrder::new(reorder);
        }
        choice
    });
    choices.splice(most..most, tried);
    most + TRIED.len()
}

/// Returns whether the rows of op(A) are contiguous in the user's arrays, with values that need no
/// conjugation.
pub fn in_place(a: &SparseMatrix, op: Operation) -> bool {
    let by_columns = match &a.arrays {
        SparseArrays::Csr(_) => false,
        SparseArrays::Csc(_) => true,
        SparseArrays::Tile(m) => m.by_columns,
        SparseArrays::Coo(_) | SparseArrays::Bsr(_) => return false,
    };
    match op {
        Operation::NonTranspose => !by_columns,
        Operation::Transpose => by_columns,
        Operation::ConjugateTranspose => by_columns && !a.value_type().is_complex(),
    }
}

/// Returns whether a canonical copy can hold the columns of op(A), which it numbers by 32 bits.
fn canonical(a: &SparseMatrix, op: Operation) -> bool {
    a.shape_of(op).1 <= i64::from(i32::MAX)
}

/// Returns whether a converted layout can hold op(A): layouts number rows and columns by 32 bits.
fn convertible(a: &SparseMatrix, op: Operation) -> bool {
    canonical(a, op) && a.shape_of(op).0 <= i64::from(i32::MAX)
}

/// Sources from which A can be read, the one with fewest bytes per product first.
fn sources(a: &SparseMatrix, op: Operation, name: &str) -> Result<Vec<Source>> {
    let mut out = Vec::new();
    if in_place(a, op) && !a.temporary {
        out.push(Source::InPlace);
    }
    if canonical(a, op) {
        out.push(Source::Canonical);
    }
    if out.is_empty() {
        return Err(Error::unsupported(format!(
            "{name}: op(A) has {} columns; a matrix that must be converted may have at most {}",
            a.shape_of(op).1,
            i32::MAX
        )));
    }
    Ok(out)
}

/// Predicted seconds of `row` reading the matrix from `source`, from those that are predicted, and corrected by what was
/// learned, for the kernels that a product of this size suits. Where it suits the kernels for aligned rows and its
/// operands do not, others compute it, and the correction is theirs, too.
fn seconds_of_row(
    problem: &SpmmProblem,
    source: Source,
    (rates, statistics): (&spmm::Rates, &spmm::SpmmStatistics),
    (by_rates, corrected): (f64, f64),
) -> f64 {
    let width = match (source, &problem.a.arrays) {
        (Source::InPlace, SparseArrays::Csr(m) | SparseArrays::Csc(m)) => m.index_type,
        _ => IndexType::I32,
    };
    let counts = (statistics.counts.rows as i64, statistics.counts.nnz as i64);
    let suits = spmm::row::suits_groups(problem.types.x, problem.n_hint, counts);
    if suits && !spmm::row::is_for_groups(problem, width, counts) {
        let of_any = spmm::seconds_of_any_rows(rates, statistics, problem.types, problem.n_hint);
        return of_any * (corrected / by_rates);
    }
    corrected
}

/// Least seconds of algorithms with the rows in their order, from what is predicted for each and the seconds as they
/// are corrected.
fn least_in_order(
    problem: &SpmmProblem,
    of_rows: (&spmm::Rates, &spmm::SpmmStatistics),
    in_order: &[(Algorithm, spmm::Estimate, f64)],
) -> Result<f64> {
    let mut least = f64::INFINITY;
    for &(algorithm, predicted, corrected) in in_order {
        least = match algorithm {
            Algorithm::Row => sources(&problem.a, problem.op, "A")?
                .into_iter()
                .map(|source| seconds_of_row(problem, source, of_rows, (predicted.seconds, corrected)))
                .fold(least, f64::min),
            _ => least.min(corrected),
        };
    }
    Ok(least)
}

/// Choices for a product with dense operands, best first. `cost` returns bytes and seconds of one execution;
/// with `amortized`, choices are ranked by the cost of analysis and all executions.
fn dense_choices(
    a: &SparseMatrix,
    op: Operation,
    rows: &[&'static Row],
    effort: Effort,
    amortized: Option<&Amortized>,
    mut cost: impl FnMut(Algorithm, Source) -> (f64, f64),
) -> Result<Vec<Choice>> {
    let mut choices = Vec::new();
    for row in rows {
        let converted = row.algorithm.is_converted();
        if converted && !convertible(a, op) {
            continue;
        }
        for source in sources(a, op, "A")? {
            if converted && source == Source::InPlace {
                continue;
            }
            let (bytes, predicted_seconds) = cost(row.algorithm, source);
            choices.push(Choice { bytes, predicted_seconds, ..Choice::new(row.algorithm, source) });
        }
    }
    if choices.is_empty() {
        return Err(Error::unsupported(format!(
            "A: algorithm {} takes at most {} rows and columns of op(A)",
            rows.first().map_or("", |row| row.algorithm.name()),
            i32::MAX
        )));
    }
    let converts = |choice: &Choice| match effort {
        Effort::Quick => (choice.a != Source::InPlace, choice.algorithm().is_converted()),
        _ => (false, false),
    };
    // The sort is stable: among equals the first, which is in place, wins.
    choices.sort_by(|x, y| {
        let cost = cost_of(amortized, x).total_cmp(&cost_of(amortized, y));
        converts(x).cmp(&converts(y)).then(cost)
    });
    Ok(choices)
}

/// Lower bound, from shapes alone, of the seconds that the simplest algorithm takes for a product with `n`
/// columns.
pub fn seconds_by_shape(a: &SparseMatrix, op: Operation, n: i64, types: Types, machine: &Machine) -> f64 {
    let source = if in_place(a, op) { Source::InPlace } else { Source::Canonical };
    let bytes = roofline::matrix_bytes(a, op, source) + roofline::dense_bytes(a, op, n, types.x, types.y);
    roofline::seconds(machine, bytes, a.shape().2 as f64 * n as f64)
}

/// Cost by which choices are ranked: predicted seconds of an execution, or of analysis and all executions.
fn cost_of(amortized: Option<&Amortized>, choice: &Choice) -> f64 {
    let seconds = choice.predicted_seconds;
    amortized.map_or(seconds, |amortized| amortized.total(choice, seconds))
}

/// Every algorithm with every source of A, for products where no model predicts which is faster; in place
/// comes first.
pub fn candidates(a: &SparseMatrix, op: Operation, rows: &[&'static Row]) -> Result<Vec<Choice>> {
    let mut choices = dense_choices(a, op, rows, Effort::Default, None, |_, _| (0.0, 0.0))?;
    for choice in &mut choices {
        choice.reason = format!("{} on {}", choice.algorithm().name(), choice.describe());
    }
    Ok(choices)
}

/// Checks that a choice made elsewhere is among the candidates of this product with dense operands.
pub fn admits_dense(a: &SparseMatrix, op: Operation, rows: &[&'static Row], choice: &Choice) -> Result<()> {
    let own = candidates(a, op, rows)?;
    let same = |own: &Choice| (own.algorithm(), own.a, own.b) == (choice.algorithm(), choice.a, choice.b);
    admitted(own.iter().any(same), choice)?;
    admits_order(a.shape_of(op).0, choice)
}

/// Checks that a row order that comes with a choice has as many rows as op(A), and is for a copy.
fn admits_order(rows: i64, choice: &Choice) -> Result<()> {
    let method = &choice.method;
    let Some(order) = method.kept_order() else { return Ok(()) };
    refuse_if!(
        method.row_order().is_some() && choice.a != Source::Canonical,
        invalid("buffer"),
        "its decisions have an order of rows for rows in place, which only a copy takes"
    );
    refuse_if!(
        order.rows() as i64 != rows,
        invalid("buffer"),
        "its decisions have an order of {} rows, and op(A) has {rows}",
        order.rows()
    );
    Ok(())
}

/// Checks that a choice made elsewhere is among the candidates of this sparse product.
pub fn admits_spgemm(problem: &SpgemmProblem, rows: &[&'static Row], choice: &Choice) -> Result<()> {
    let parts = |choice: &Choice| (choice.algorithm(), choice.a, choice.b, choice.method.is_transposed());
    let own = spgemm(problem, rows)?;
    admitted(own.iter().any(|own| parts(own) == parts(choice)), choice)
}

fn admitted(is_admitted: bool, choice: &Choice) -> Result<()> {
    if is_admitted {
        return Ok(());
    }
    let name = choice.algorithm().name();
    let layout = choice.describe();
    Err(Error::invalid("buffer", format!("its decisions are {name} on {layout}, which the plan cannot take")))
}

/// Bytes of the unit of reasons.
const MIB: f64 = 1024.0 * 1024.0;

/// Formats a time for a reason, such as `3.2 µs`, `12.5 ms`, `2.0 s`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        ..1e-2 => format!("{:.1} µs", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// Writes the reason of each choice where only shapes are known.
fn explain_by_shapes(choices: &mut [Choice], effort: Effort, is_named: bool, more: &str) {
    let (all, count) = (described(choices), choices.len());
    for choice in choices {
        let (name, layout) = (choice.algorithm().name(), choice.describe());
        choice.reason = if effort == Effort::Quick && choice.a == Source::InPlace {
            format!("{name} on {layout}: effort QUICK converts nothing")
        } else if is_named {
            format!("{name} on {layout}: by name")
        } else if count == 1 {
            format!("{name} on {layout}: the only candidate for this format and op")
        } else {
            format!("{name} on {layout}: predicted {all}{more}")
        };
    }
}

/// Choices for SpMV, best first; never empty. With pattern `statistics`, and on machines whose rates
/// are known, choices are ranked by the predicted time of each layout; else by shapes alone, among `csr` and
/// `sell`, since shapes say too little about the other layouts.
pub fn spmv(
    problem: &SpmvProblem,
    rows: &[&'static Row],
    effort: Effort,
    machine: &Machine,
    statistics: Option<&SpmvStatistics>,
) -> Result<Vec<Choice>> {
    spmv_times(problem, rows, (effort, 0), machine, statistics)
}

/// Makes the choices of [`spmv()`] for a plan that is executed `executes` times (0: unknown): choices are ranked by analysis
/// and all executions together.
pub fn spmv_times(
    problem: &SpmvProblem,
    rows: &[&'static Row],
    (effort, executes): (Effort, i64),
    machine: &Machine,
    statistics: Option<&SpmvStatistics>,
) -> Result<Vec<Choice>> {
    let types = problem.types;
    let amortized = &Amortized::new(machine, &problem.a, problem.op, executes);
    // An algorithm asked for by name leaves one row of the table.
    let named = rows.len() == 1;
    let rates = machine.spmv.as_ref();
    if let (Some(statistics), Some(rates), false, false) = (statistics, rates, named, effort == Effort::Quick)
    {
        let mut bounds = Vec::new();
        let mut choices =
            dense_choices(&problem.a, problem.op, rows, effort, Some(amortized), |algorithm, source| {
                let found = estimate(rates, statistics, algorithm, &Widths::of(problem, source));
                bounds.push((algorithm, source, found.bound));
                (found.bytes, found.seconds)
            })?;
        prefer(&mut choices, Algorithm::Sell, spmv::MARGIN, Some(amortized));
        let mut choices = different_first(choices);
        let all = described(&choices) + &amortized.compare(&choices);
        let numbers = statistics.describe();
        for choice in &mut choices {
            let known = bounds.iter().find(|known| (known.0, known.1) == (choice.algorithm(), choice.a));
            choice.reason = format!(
                "{} on {}: {:.1} MiB, bound by {}; predicted {all}; {numbers}",
                choice.algorithm().name(),
                choice.describe(),
                choice.bytes / MIB,
                known.map_or("", |known| known.2.describe())
            );
        }
        return Ok(choices);
    }
    let known: Vec<_> =
        rows.iter().copied().filter(|row| named || !row.algorithm.needs_statistics()).collect();
    let mut choices =
        dense_choices(&problem.a, problem.op, &known, effort, Some(amortized), |algorithm, source| {
            let matrix = match algorithm.is_converted() {
                true => spmv::bytes_by_shape(&problem.a, problem.op, algorithm),
                false => roofline::matrix_bytes(&problem.a, problem.op, source),
            };
            let bytes = matrix + roofline::dense_bytes(&problem.a, problem.op, 1, types.x, types.y);
            (bytes, roofline::seconds(machine, bytes, problem.a.shape().2 as f64))
        })?;
    let is_foreign = machine.spmv.is_some() && !in_place(&problem.a, problem.op);
    let more = if is_foreign { ", by shapes alone: rows of op(A) are not in place" } else { "" };
    let is_named = named && choices.len() == 1;
    let more = more.to_string() + &amortized.compare(&choices);
    explain_by_shapes(&mut choices, effort, is_named, &more);
    Ok(choices)
}

/// Moves an algorithm to the front unless the first is predicted to be faster by more than the margin.
fn prefer(choices: &mut [Choice], algorithm: Algorithm, margin: f64, amortized: Option<&Amortized>) {
    let Some(at) = choices.iter().position(|choice| choice.algorithm() == algorithm) else { return };
    let total = |choice: &Choice, seconds| amortized.map_or(seconds, |known| known.total(choice, seconds));
    let (first, preferred) = (&choices[0], &choices[at]);
    // The margin is for errors of predictions; analysis costs count unscaled.
    if total(first, first.predicted_seconds) > total(preferred, preferred.predicted_seconds * (1.0 - margin))
    {
        choices[..=at].rotate_right(1);
    }
}

/// Moves the first choice of each algorithm before all repeated ones, so that the second candidate that is
/// timed has another layout.
fn different_first(choices: Vec<Choice>) -> Vec<Choice> {
    let (mut first, mut again) = (Vec::<Choice>::new(), Vec::new());
    for choice in choices {
        let is_again = first.iter().any(|other| other.algorithm() == choice.algorithm());
        if is_again { &mut again } else { &mut first }.push(choice);
    }
    first.append(&mut again);
    first
}

/// Best prediction of each algorithm as text: `sell 21.2 µs, csr 26.0, …`.
fn described(choices: &[Choice]) -> String {
    let mut out = String::new();
    for (at, choice) in choices.iter().enumerate() {
        if choices[..at].iter().any(|other| other.algorithm() == choice.algorithm()) {
            continue;
        }
        let (name, us) = (choice.algorithm().name(), choice.predicted_seconds * 1e6);
        match at {
            0 => out = format!("{name} {us:.1} µs"),
            _ => out.push_str(&format!(", {name} {us:.1}")),
        }
    }
    out
}

/// Choices for SpMM, best first; never empty. With an `inspection` of the pattern, choices are ranked by the
/// predicted time of each algorithm; else by shapes alone, among the algorithms that shapes say enough about.
pub fn spmm(
    problem: &SpmmProblem,
    rows: &[&'static Row],
    settings: &Settings,
    machine: &Machine,
    inspection: Option<&SpmmInspection>,
) -> Result<Vec<Choice>> {
    let types = problem.types;
    let ratios = &machine.ratios(types.compute);
    let amortized = &Amortized::new(machine, &problem.a, problem.op, settings.expected_executes);
    let named = rows.len() == 1;
    if let (Some(inspection), Some(rates), false) = (inspection, machine.spmm_rates(), named) {
        // The rates of `dense` are cublasLt's, which neither deterministic plans nor products in three bf16
        // parts use.
        let own_kernels = if spmm::dense::is_in_parts(types, problem.ieee, dense_sizes(problem), ratios) {
            spmm::dense::in_parts_slower(dense_sizes(problem))
        } else if settings.deterministic {
            spmm::dense::own_kernels_slower(types, dense_sizes(problem))
        } else {
            1.0
        };
        let of = |statistics, algorithm| {
            let found = spmm::estimate(rates, statistics, algorithm, types, problem.n_hint);
            let slower = if algorithm == Algorithm::Dense { own_kernels } else { 1.0 };
            spmm::Estimate { seconds: found.seconds * slower, ..found }
        };
        let clustered =
            inspection.clustered.as_ref().map(|statistics| (statistics, of(statistics, Algorithm::Window)));
        let in_order = rows
            .iter()
            .map(|row| (row.algorithm, of(&inspection.statistics, row.algorithm)))
            .collect::<Vec<_>>();
        let predicted: Vec<_> =
            in_order.iter().map(|(algorithm, found)| (*algorithm, found.seconds)).collect();
        let n = problem.n_hint;
        let own = spmm::correction(machine, &inspection.statistics, types, n, &predicted);
        let of_rows = (rates, &inspection.statistics);
        // A correction takes microseconds, and is computed once for each algorithm.
        let in_order: Vec<_> = in_order
            .into_iter()
            .map(|(algorithm, found)| {
                (algorithm, found, spmm::corrected(own.as_ref(), algorithm, found.seconds))
            })
            .collect();
        let gains = match &clustered {
            Some((statistics, found)) => {
                let of_clusters =
                    spmm::correction_of_clusters(machine, statistics, types, n, (&predicted, found.seconds));
                let with = spmm::corrected(of_clusters.as_ref(), Algorithm::Window, found.seconds);
                let best = least_in_order(problem, of_rows, &in_order)?;
                spmm::clusters_pay(with, best, own.is_some()).then_some((*found, with))
            }
            None => None,
        };
        let (a, effort) = (&problem.a, settings.effort);
        let choices = dense_choices(a, problem.op, rows, effort, Some(amortized), |algorithm, source| {
            let (_, found, corrected) =
                in_order.iter().find(|(other, ..)| *other == algorithm).expect("rows are of the same table");
            match (algorithm, &gains) {
                (Algorithm::Window, Some((found, with))) => (found.bytes, *with),
                (Algorithm::Row, _) => {
                    (found.bytes, seconds_of_row(problem, source, of_rows, (found.seconds, *corrected)))
                }
                _ => (found.bytes, *corrected),
            }
        })?;
        let mut choices = different_first(choices);
        let found = match (settings.reorder, &gains) {
            (Reorder::Auto, Some(_)) => Clusters::Yes,
            _ => Clusters::No,
        };
        let all = described(&choices) + &amortized.compare(&choices);
        let mut numbers = inspection.statistics.describe();
        if let Some((statistics, _)) = clustered {
            numbers = format!("{numbers}; rows in clusters: {}", statistics.describe());
        }
        for choice in &mut choices {
            choice.method = method(problem, settings, choice.algorithm(), found.clone(), ratios);
            choice.reason = format!(
                "{} on {}: {:.1} MiB; predicted {all}; {numbers}",
                choice.algorithm().name(),
                choice.describe(),
                choice.bytes / MIB
            );
        }
        return Ok(choices);
    }
    // Algorithms that are timed need no prediction; but dense blocks with their zeros may exceed the memory.
    let is_compact = |row: &Row| !matches!(row.algorithm, Algorithm::Dense | Algorithm::Smat);
    let timed = |row: &Row| settings.effort == Effort::Tuned && is_compact(row);
    let is_known = |row: &&'static Row| named || timed(row) || !row.algorithm.needs_statistics();
    let known: Vec<_> = rows.iter().copied().filter(is_known).collect();
    let (a, effort) = (&problem.a, settings.effort);
    let mut choices = dense_choices(a, problem.op, &known, effort, Some(amortized), |_, source| {
        let n = problem.n_hint.max(1);
        let bytes = roofline::matrix_bytes(&problem.a, problem.op, source)
            + roofline::dense_bytes(&problem.a, problem.op, n, types.x, types.y);
        (bytes, roofline::seconds(machine, bytes, problem.a.shape().2 as f64 * n as f64))
    })?;
    let is_named = named && choices.len() == 1;
    let more = amortized.compare(&choices);
    explain_by_shapes(&mut choices, settings.effort, is_named, &more);
    if settings.effort == Effort::Tuned {
        choices = different_first(choices);
    }
    for choice in &mut choices {
        choice.method = method(problem, settings, choice.algorithm(), wanted_clusters(settings), ratios);
    }
    Ok(choices)
}

/// Row clusters where nothing is known of the pattern: taken if they are found to gain, unless the caller has
/// set the order of rows.
fn wanted_clusters(settings: &Settings) -> Clusters {
    match settings.reorder {
        Reorder::Auto => Clusters::IfFaster,
        _ => Clusters::No,
    }
}

/// Method of an SpMM algorithm with its settings; `windows` says whether `window` puts rows in clusters.
/// Orders by name are set by [`put_in_order`].
fn method(
    problem: &SpmmProblem,
    settings: &Settings,
    algorithm: Algorithm,
    windows: Clusters,
    ratios: &Ratios,
) -> Method {
    match Method::new(algorithm) {
        Method::Window(_) => Method::Window(windows),
        Method::Smat { .. } => {
            Method::Smat { clusters: wanted_clusters(settings), width: settings.block_width }
        }
        Method::Dense(_) => {
            let timed = settings.effort == Effort::Tuned;
            Method::Dense(multiplier(problem, settings.deterministic, timed, ratios))
        }
        Method::Swift { .. } => Method::Swift { deterministic: settings.deterministic },
        other => other,
    }
}

/// Method of an SpMM algorithm from an earlier analysis, adapted to the mode of this one: whether results are
/// reproducible, and who multiplies, is decided again.
pub fn in_mode(problem: &SpmmProblem, method: &Method, deterministic: bool, ratios: &Ratios) -> Method {
    match method {
        Method::Dense(_) => Method::Dense(multiplier(problem, deterministic, method.times_vendor(), ratios)),
        Method::Swift { .. } => Method::Swift { deterministic },
        other => other.clone(),
    }
}

/// Multiplier of `dense`: the library's kernels or cublasLt.
fn multiplier(problem: &SpmmProblem, deterministic: bool, timed: bool, ratios: &Ratios) -> Multiplier {
    let (types, sizes) = (problem.types, dense_sizes(problem));
    match spmm::dense::is_in_parts(types, problem.ieee, sizes, ratios) {
        true => Multiplier::OwnInParts,
        false => spmm::dense::multiplier(types, sizes, deterministic, timed),
    }
}

/// Sizes that `dense` multiplies: rows and columns of op(A), and columns of C.
fn dense_sizes(problem: &SpmmProblem) -> (usize, usize, usize) {
    let (m, k, _) = problem.a.shape_of(problem.op);
    (m as usize, k as usize, problem.n_hint.max(0) as usize)
}

/// Returns whether the columns of op(A) are contiguous in the user's arrays, with values that need no
/// conjugation.
fn is_by_columns(a: &SparseMatrix, op: Operation) -> bool {
    let flipped = match op {
        Operation::NonTranspose => Operation::Transpose,
        Operation::Transpose => Operation::NonTranspose,
        // The conjugate of A is neither A nor its transpose, so that op C is never in place for complex
        // values; for real values it is the transpose.
        Operation::ConjugateTranspose => Operation::NonTranspose,
    };
    let conjugates = op.conjugates() && a.value_type().is_complex();
    !conjugates && !a.temporary && in_place(a, flipped)
}

/// Choices for SpGEMM, best first; never empty. `hash` comes before `tile`, since shapes do not say how full
/// tiles would be ([`spgemm::ProductStatistics`] does).
///
/// Gustavson's algorithm reads rows of op(A) and of op(B). Where both are stored by columns, the rows of Cᵀ
/// need no conversion at all.
pub fn spgemm(problem: &SpgemmProblem, rows: &[&'static Row]) -> Result<Vec<Choice>> {
    let transposed = is_by_columns(&problem.a, problem.op_a) && is_by_columns(&problem.b, problem.op_b);
    let pick = |a: &SparseMatrix, op: Operation, name: &str| {
        if transposed {
            Ok(Source::InPlace)
        } else {
            Ok(sources(a, op, name)?[0])
        }
    };
    let (a, b) = (pick(&problem.a, problem.op_a, "A")?, pick(&problem.b, problem.op_b, "B")?);
    Ok(rows
        .iter()
        .map(|row| Choice {
            b,
            reason: format!(
                "{} over the {} of C: A from {}, B from {}",
                row.algorithm.name(),
                if transposed { "columns" } else { "rows" },
                a.describe(),
                b.describe()
            ),
            ..Choice::of(product(row.algorithm, transposed), a)
        })
        .collect())
}

/// Method of an SpGEMM algorithm, for the rows or the columns (`transposed`) of C.
fn product(algorithm: Algorithm, transposed: bool) -> Method {
    match Method::new(algorithm) {
        Method::Hash { .. } => Method::Hash { transposed },
        Method::Tile { .. } => Method::Tile { transposed },
        other => other,
    }
}

/// Bytes of a column index and of a row offset in the arrays from which A is read.
fn index_bytes(a: &SparseMatrix, source: Source) -> (usize, usize) {
    match (source, &a.arrays) {
        (Source::InPlace, SparseArrays::Csr(m) | SparseArrays::Csc(m)) => {
            (m.index_type.size(), m.offset_type.size())
        }
        _ => (IndexType::I32.size(), IndexType::I64.size()),
    }
}

#[cfg(test)]
mod tests;
