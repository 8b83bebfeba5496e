//! SpGEMM: C = alpha · op(A) · op(B), all sparse. `symbolic` counts C's
//! entries, the caller allocates C, `numeric` writes it.

use std::ops::Range;
use std::sync::Arc;

use super::decisions::{self, Facts};
use super::spmv::{check_new_values, check_renewable, check_type, shape_of};
use super::Report;
use crate::algorithm::{Algorithm, Query, Row};
use crate::backend::{Backend, SpgemmExecutor};
use crate::error::{Error, Result};
use crate::matrix::tiles::{TileFactors, TileMatrix};
use crate::matrix::{compressed, SparseArrays, SparseMatrix};
use crate::memory::Context;
use crate::problem::SpgemmProblem;
use crate::select::analysis::Amortized;
use crate::select::{self, in_place, roofline, Choice};
use crate::settings::Settings;
use crate::support::Types;
use crate::types::{Address, BackendKind, ComputeType, Effort, OpKind};

/// State of an SpGEMM plan.
pub struct SpgemmPlan {
    problem: SpgemmProblem,
    /// As the plan was asked for; the problem has it without what is pedantic, of which the rows take care.
    compute: ComputeType,
    pub(super) rows: Vec<&'static Row>,
    /// A and B where they are in tiles.
    tiles: [Option<Arc<TileMatrix>>; 2],
    executor: Option<Box<dyn SpgemmExecutor>>,
    /// What analysis chose.
    algorithm: Option<Algorithm>,
    nnz_c: Option<i64>,
}

impl SpgemmPlan {
    /// Checks the shapes and looks the problem up in the support table.
    pub fn new(backend: BackendKind, problem: SpgemmProblem, algorithm: Option<Algorithm>) -> Result<Self> {
        let types = problem.types;
        let find =
            |format| crate::algorithm::find(&Query { op: OpKind::Spgemm, format, types, backend, algorithm });
        let mut rows = find(problem.a.format())?;
        find(problem.b.format()).map_err(|mut error| {
            if let Some(rest) = error.message.strip_prefix("A:") {
                error.message = format!("B:{rest}");
            }
            error
        })?;
        rows.retain(|row| row.formats.contains(&problem.b.format()));
        let (_, k, _) = shape_of(&problem.a, problem.op_a);
        let (b_rows, _, _) = shape_of(&problem.b, problem.op_b);
        if k != b_rows {
            return Err(Error::invalid(
                "B",
                format!("op(B) has {b_rows} rows, expected the {k} columns of op(A)"),
            ));
        }
        let (problem, compute) = (SpgemmProblem { types: types.plain(), ..problem }, types.compute);
        let tiles = [None, None];
        Ok(SpgemmPlan { problem, compute, rows, tiles, executor: None, algorithm: None, nnz_c: None })
    }

    /// The same with A and B that are in tiles.
    pub fn with_tiles(mut self, tiles: [Option<Arc<TileMatrix>>; 2]) -> Self {
        self.tiles = tiles;
        self
    }

    /// The present contents of A and B that are in tiles.
    fn contents(&self) -> Result<TileFactors> {
        let of =
            |at: usize, name: &str| self.tiles[at].as_ref().map(|tiles| tiles.contents(name)).transpose();
        Ok([of(0, "A")?, of(1, "B")?])
    }

    pub(super) fn analyze(
        &mut self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
        decided: Option<&Choice>,
        report: &mut Report,
    ) -> Result<Choice> {
        self.problem.a.require_arrays("A")?;
        self.problem.b.require_arrays("B")?;
        self.problem.value_updates = settings.value_updates;
        let factors = self.contents()?;
        if let Some(tiles) = &factors[0] {
            self.problem.a = tiles.matrix();
        }
        if let Some(tiles) = &factors[1] {
            self.problem.b = tiles.matrix();
        }
        if settings.values_in_place {
            let SpgemmProblem { op_a, op_b, a, b, .. } = &self.problem;
            let named = (self.rows.len() == 1).then(|| self.rows[0].algorithm);
            in_place::require(OpKind::Spgemm, named, settings.reorder, &[("A", a, *op_a), ("B", b, *op_b)])?;
            decided.map_or(Ok(()), in_place::require_choice)?;
        }
        let (executor, mut choice) = match (decided, &factors) {
            (Some(choice), [None, None]) => {
                (backend.build_spgemm(cx, &self.problem, choice, None)?, choice.clone())
            }
            _ => self.choose(backend, cx, settings, &factors)?,
        };
        choice.predicted_seconds = roofline::products_seconds(backend.machine(), executor.products());
        if decided.is_none() {
            let (a, op) = (&self.problem.a, self.problem.op_a);
            Amortized::new(backend.machine(), a, op, settings.expected_executes).explain(&mut choice);
        }
        report.set(&choice, executor.layout());
        (self.executor, self.algorithm) = (Some(executor), Some(choice.algorithm));
        Ok(choice)
    }

    fn choose(
        &self,
        backend: &dyn Backend,
        cx: &Context,
        settings: &Settings,
        factors: &TileFactors,
    ) -> Result<(Box<dyn SpgemmExecutor>, Choice)> {
        if settings.values_in_place {
            let choices = select::spgemm(&self.problem, in_place::rows(&mut self.rows.clone()))?;
            let choice = in_place::choice(choices)?;
            return Ok((backend.build_spgemm(cx, &self.problem, &choice, None)?, choice));
        }
        // The best by what is known without a look at the patterns; no effort times others.
        let mut choices = select::spgemm(&self.problem, &self.rows)?;
        let mut choice = choices.swap_remove(0);
        if !matches!(factors, [None, None]) {
            return Ok((backend.build_spgemm_of_tiles(cx, &self.problem, &choice, factors)?, choice));
        }
        let build = |choice: &Choice, surveyed| backend.build_spgemm(cx, &self.problem, choice, surveyed);
        let tile = choices.into_iter().find(|choice| choice.algorithm == Algorithm::Tile);
        let machine = backend.machine();
        let amortized =
            Amortized::new(machine, &self.problem.a, self.problem.op_a, settings.expected_executes);
        let execute = roofline::products_seconds(machine, self.products_by_shape());
        let looks = settings.effort != Effort::Quick && amortized.may_look_spgemm(execute);
        let Some(mut tile) = tile.filter(|_| looks) else {
            return Ok((build(&choice, None)?, choice));
        };
        // Tiles take more memory, which may be missing.
        let if_it_fits = |built: Result<_>| match built {
            Err(error) if error.lacks_memory() => Ok(None),
            built => built.map(Some),
        };
        let mut surveyed = backend.survey_spgemm(cx, &self.problem, &choice)?;
        let gain = surveyed.as_ref().and_then(|surveyed| surveyed.gain);
        if let Some(gain) = gain.filter(|&gain| amortized.takes_tiles(execute, gain)) {
            if let Some(executor) = if_it_fits(build(&tile, surveyed.take()))? {
                tile.reason.push_str(&format!("; hash is predicted to take {gain:.1} times as long"));
                return Ok((executor, tile));
            }
            return Ok((build(&choice, None)?, choice));
        }
        let mut executor = build(&choice, surveyed)?;
        let execute = roofline::products_seconds(machine, executor.products());
        // How much faster is not known: at the most infinitely.
        let may_gain = gain.is_none() && amortized.takes_tiles(execute, f64::INFINITY);
        let suits = if may_gain { executor.suits_tiles(cx)? } else { None };
        if let Some(of_pair) = suits {
            if let Some(tiles) = if_it_fits(build(&tile, None))? {
                (executor, choice) = (tiles, tile);
                let more = format!("; two tiles that meet have {of_pair:.0} products in the mean");
                choice.reason.push_str(&more);
            }
        }
        Ok((executor, choice))
    }

    pub(super) fn facts(&self, facts: &mut Facts) {
        let SpgemmProblem { op_a, op_b, a, b, types, .. } = &self.problem;
        decisions::operation(facts, "opA", *op_a);
        decisions::operation(facts, "opB", *op_b);
        decisions::matrix(facts, "A", a);
        decisions::matrix(facts, "B", b);
        decisions::types(facts, Types { compute: self.compute, ..*types }, ["B's values", "C's values"]);
    }

    pub(super) fn matrices(&self) -> Vec<(&'static str, SparseMatrix)> {
        vec![("A", self.problem.a), ("B", self.problem.b)]
    }

    /// A choice that was made elsewhere is one of this plan's.
    pub(super) fn admits(&self, choice: &Choice) -> Result<()> {
        select::admits_spgemm(&self.problem, &self.rows, choice)
    }

    /// Whether the arrays of A and B may go after analysis.
    pub(super) fn set_temporary(&mut self, temporary: bool) {
        (self.problem.a.temporary, self.problem.b.temporary) = (temporary, temporary);
    }

    /// Forgets what analysis built.
    pub(super) fn reset(&mut self) {
        (self.executor, self.algorithm, self.nnz_c) = (None, None, None);
    }

    /// Number of stored entries of C.
    pub fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        if let Some(nnz) = self.nnz_c {
            return Ok(nnz);
        }
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        let nnz = executor.symbolic(cx)?;
        self.nnz_c = Some(nnz);
        Ok(nnz)
    }

    /// Checks C and writes it.
    pub fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let Some(nnz) = self.nnz_c else {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        };
        if !c.writable {
            return Err(Error::invalid(
                "C",
                "it was made by a tarsiaCreateConst function and cannot be written",
            ));
        }
        if !self.rows.iter().any(|row| row.formats.contains(&c.format())) {
            return Err(Error::unsupported(format!(
                "C: SpGEMM does not write format {}",
                c.format().short()
            )));
        }
        self.check_shape(c)?;
        let nnz_c = c.shape().2;
        if nnz_c != nnz {
            return Err(Error::invalid(
                "C",
                format!(
                    "it has room for {nnz_c} entries, expected the {nnz} that tarsiaSpGEMM_symbolic counted"
                ),
            ));
        }
        check_type("C", c.value_type(), self.problem.types.y)?;
        c.require_arrays("C")?;
        // Of arrays that may be gone their place may be C's.
        let factors = [("A", &self.problem.a), ("B", &self.problem.b)];
        check_overlap(c, factors.into_iter().filter(|(_, factor)| !factor.temporary))?;
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        executor.numeric(cx, alpha, c)
    }

    fn check_shape(&self, c: &SparseMatrix) -> Result<()> {
        let ((m, n), (rows, cols, _)) = (self.shape_c(), c.shape());
        if (rows, cols) == (m, n) {
            return Ok(());
        }
        Err(Error::invalid(
            "C",
            format!("it is {rows} × {cols}, expected {m} × {n} (rows of op(A) × columns of op(B))"),
        ))
    }

    /// Fills C with new tiles, in memory of `into`'s allocator.
    pub fn numeric_tiles(
        &mut self,
        cx: &Context,
        into: &Context,
        alpha: Address,
        c: &TileMatrix,
    ) -> Result<()> {
        if self.nnz_c.is_none() {
            return Err(Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first"));
        }
        if self.algorithm != Some(Algorithm::Tile) {
            let name = self.algorithm.map_or("", Algorithm::name);
            return Err(Error::unsupported(format!(
                "C: algorithm {name} does not write tiles; create the plan with TARSIA_SPGEMM_ALG_TILE"
            )));
        }
        let shape = SparseMatrix { arrays: SparseArrays::Tile(c.shape()), writable: true, temporary: false };
        self.check_shape(&shape)?;
        check_type("C", shape.value_type(), self.problem.types.y)?;
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        c.fill(executor.numeric_tiles(cx, into, alpha)?)
    }

    /// New values; NULL keeps a matrix's present ones, or takes those that it has where it is in
    /// tiles. `names` are the arguments that errors name.
    pub fn update_values(
        &mut self,
        cx: &Context,
        (a, b): (Address, Address),
        names: (&str, &str),
    ) -> Result<()> {
        let in_tiles = [self.tiles[0].is_some(), self.tiles[1].is_some()];
        for (given, in_tiles, name) in [(a, in_tiles[0], names.0), (b, in_tiles[1], names.1)] {
            if in_tiles && !given.is_null() {
                return Err(Error::invalid(
                    name,
                    "the matrix is in tiles: NULL takes the values that it has",
                ));
            }
        }
        let none = a.is_null() && b.is_null() && in_tiles == [false, false];
        if none && (self.problem.a.shape().2 > 0 || self.problem.b.shape().2 > 0) {
            let all =
                if names.0 == names.1 { names.0.to_string() } else { format!("{}, {}", names.0, names.1) };
            return Err(Error::invalid(&all, "the pointer is NULL: no new values were given"));
        }
        if !a.is_null() {
            check_new_values(names.0, &self.problem.a, a)?;
            check_renewable(&self.problem.a, self.problem.value_updates)?;
        }
        if !b.is_null() {
            check_new_values(names.1, &self.problem.b, b)?;
            check_renewable(&self.problem.b, self.problem.value_updates)?;
        }
        let executor = self.executor.as_mut().ok_or_else(|| Error::state("plan: not analyzed"))?;
        if in_tiles != [false, false] {
            let of =
                |at: usize, name: &str| self.tiles[at].as_ref().map(|tiles| tiles.contents(name)).transpose();
            executor.update_tiles(cx, &[of(0, "A")?, of(1, "B")?])?;
        }
        executor.update_values(cx, a, b)?;
        if !a.is_null() {
            self.problem.a = self.problem.a.with_values(a);
        }
        if !b.is_null() {
            self.problem.b = self.problem.b.with_values(b);
        }
        Ok(())
    }

    /// Multiplications, if each entry of op(A) meets a row of op(B) of mean length.
    fn products_by_shape(&self) -> i64 {
        let (_, k, left) = shape_of(&self.problem.a, self.problem.op_a);
        (left as f64 * (self.problem.b.shape().2 as f64 / k.max(1) as f64)) as i64
    }

    fn shape_c(&self) -> (i64, i64) {
        let (m, _, _) = shape_of(&self.problem.a, self.problem.op_a);
        let (_, n, _) = shape_of(&self.problem.b, self.problem.op_b);
        (m, n)
    }

    /// (rows, columns) of op(A) and stored entries of A.
    pub(super) fn shape(&self) -> (i64, i64, i64) {
        shape_of(&self.problem.a, self.problem.op_a)
    }

    pub(super) fn products(&self) -> i64 {
        self.executor.as_ref().map_or(0, |executor| executor.products())
    }

    pub(super) fn nnz_c(&self) -> Option<i64> {
        self.nnz_c
    }
}

/// An array of a matrix: its argument's name and its bytes.
type Extent = (&'static str, Range<usize>);

/// The arrays of a CSR or CSC matrix.
fn extents(matrix: &SparseMatrix) -> Option<[Extent; 3]> {
    let (m, names) = match &matrix.arrays {
        SparseArrays::Csr(m) => (m, &compressed::CSR),
        SparseArrays::Csc(m) => (m, &compressed::CSC),
        SparseArrays::Coo(_) | SparseArrays::Bsr(_) | SparseArrays::Tile(_) => return None,
    };
    let bytes = |address: Address, count: i64, size: usize| {
        let start = address.value();
        // NULL is an array without elements; creation has checked the size.
        start..if address.is_null() { start } else { start + count as usize * size }
    };
    Some([
        (names.offsets, bytes(m.offsets, m.major + 1, m.offset_type.size())),
        (names.indices, bytes(m.indices, m.nnz, m.index_type.size())),
        ("values", bytes(m.values, m.nnz, m.value_type.size())),
    ])
}

/// C's arrays share no memory with each other nor with those of the factors.
fn check_overlap<'a>(
    c: &SparseMatrix,
    factors: impl Iterator<Item = (&'a str, &'a SparseMatrix)> + Clone,
) -> Result<()> {
    let Some(mine) = extents(c) else {
        return Ok(());
    };
    let shared = |x: &Extent, others: &[Extent]| -> Option<&'static str> {
        let overlap =
            |y: &&Extent| !x.1.is_empty() && !y.1.is_empty() && x.1.start < y.1.end && y.1.start < x.1.end;
        others.iter().find(overlap).map(|other| other.0)
    };
    for (at, array) in mine.iter().enumerate() {
        if let Some(other) = shared(array, &mine[..at]) {
            return Err(Error::invalid("C", format!("its {} share memory with its {other}", array.0)));
        }
        for (name, factor) in factors.clone() {
            if let Some(other) = extents(factor).and_then(|theirs| shared(array, &theirs)) {
                return Err(Error::invalid(
                    "C",
                    format!("its {} share memory with the {other} of {name}", array.0),
                ));
            }
        }
    }
    Ok(())
}
