//! SpGEMM: C = alpha · op(A) · op(B), all sparse. `symbolic` counts C's entries, the caller allocates C,
//! `numeric` writes it.

use std::sync::Arc;

use super::arguments::{self, PlanArguments};
use super::{
    check_inner, check_new_values, check_shape, check_type, check_writable, not_analyzed, Analysis, Built,
    Executor, Operation, Planned, ProblemFields,
};
use crate::algorithm::{Algorithm, Row};
use crate::backend::LayoutInfo;
use crate::error::{refuse_if, Error, Result};
use crate::matrix::tiles::{Contents, TileFactors, TileMatrix, Tiles};
use crate::matrix::{Compressed, Lines, SparseArrays, SparseMatrix};
use crate::memory::{Allocator, Context};
use crate::problem::SpgemmProblem;
use crate::select::{self, in_place, roofline, Choice, SpgemmInspection};
use crate::settings::Settings;
use crate::types::{Address, DataType, Effort, Format, OpKind, Reorder};

/// Methods that a backend implements for SpGEMM.
pub trait SpgemmBackend {
    /// Gathers statistics of the factors as `choice` reads them, for the choice between the algorithms `hash`
    /// and `tile`. Backends that always choose `hash` return `None`. Errors name `A` or `B`. Blocks.
    fn inspect_spgemm(
        &self,
        _cx: &Context,
        _problem: &SpgemmProblem,
        _choice: &Choice,
    ) -> Result<Option<SpgemmInspection>> {
        Ok(None)
    }
    /// Builds the executor for `choice`. `inspection` is the result of [`Self::inspect_spgemm`] for this
    /// problem and a choice that reads the factors in the same way, if it was called; `factors` are the tiles
    /// of A and B, where these are in tiles and the choice is algorithm `tile`.
    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        choice: &Choice,
        inspection: Option<SpgemmInspection>,
        factors: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>>;
    /// Converts a matrix in CSR or CSC to tiles with values of the type of its sums. Blocks.
    fn make_tiles(&self, cx: &Context, a: &SparseMatrix) -> Result<Tiles>;
    /// Writes tiles into CSR or CSC of the same shape, type and number of entries. Blocks.
    fn write_tiles(&self, cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()>;
}

/// A built SpGEMM.
pub trait SpgemmExecutor: Send + Sync {
    /// Counts the stored entries of C.
    fn symbolic(&mut self, cx: &Context) -> Result<i64>;
    /// Writes C's pattern and values into the user's arrays, without duplicates. Rows are sorted, unless the
    /// problem allows any order of the backend's, for which C is CSR. `symbolic` has run and C has the
    /// counted number of entries.
    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()>;
    /// Computes C into tiles in memory of `into`'s allocator. Blocks. Only algorithm `tile` supports this.
    fn numeric_tiles(&mut self, _cx: &Context, _into: &Context, _alpha: Address) -> Result<Tiles> {
        Err(Error::unsupported("C: this algorithm does not write tiles"))
    }
    /// Returns, for A and B, whether numeric phases read the user's value array.
    fn reads_values(&self) -> [bool; 2] {
        [self.layout().in_place; 2]
    }
    /// Takes new values for the same patterns; NULL keeps the present ones.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()>;
    /// Takes new contents of factors in tiles, which must have the same patterns.
    fn update_tiles(&mut self, _cx: &Context, _factors: &TileFactors) -> Result<()> {
        Ok(())
    }
    /// Returns a description of the layout.
    fn layout(&self) -> LayoutInfo;
    /// Returns more details for people; empty if [`LayoutInfo`] says everything.
    fn details(&self) -> String {
        String::new()
    }
    /// Returns the number of multiplications of one numeric phase.
    fn products(&self) -> i64;
    /// Returns the approximate number of products per pair of tiles of 16 × 16, if algorithm `tile` is likely
    /// to be faster than this executor. Blocks if that has to be computed.
    fn suits_tiles(&self, _cx: &Context) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// SpGEMM as an [`Operation`], with the factors that are in tiles.
#[derive(Default)]
pub struct Spgemm {
    /// A and B, each if it is in tiles.
    tiles: [Option<Arc<TileMatrix>>; 2],
    /// Allocators of the tiles that the executor may read but does not own.
    shared: Vec<Arc<Allocator>>,
}

/// The built executor, with the count of the symbolic phase.
pub struct BuiltProduct {
    executor: Box<dyn SpgemmExecutor>,
    algorithm: Algorithm,
    nnz_c: Option<i64>,
}

impl Executor for BuiltProduct {
    fn built(&self) -> Built {
        let BuiltProduct { executor, .. } = self;
        Built { layout: executor.layout(), reorder: Reorder::None, details: executor.details() }
    }

    fn reads_values(&self) -> [bool; 2] {
        self.executor.reads_values()
    }

    fn counts(&self) -> (i64, Option<i64>) {
        (self.executor.products(), self.nnz_c)
    }
}

impl Operation for Spgemm {
    const KIND: OpKind = OpKind::Spgemm;
    type Problem = SpgemmProblem;
    type Executor = BuiltProduct;

    fn parts(problem: &mut SpgemmProblem) -> ProblemFields<'_> {
        let SpgemmProblem { op_a, op_b, a, b, types, value_updates, .. } = problem;
        ProblemFields { factors: vec![("A", *op_a, a), ("B", *op_b, b)], types, value_updates }
    }

    fn note_pedantic(problem: &mut SpgemmProblem, is_pedantic: bool) {
        problem.ieee = is_pedantic;
    }

    fn check(problem: &SpgemmProblem) -> Result<()> {
        let (_, k, _) = problem.a.shape_of(problem.op_a);
        let (b_rows, _, _) = problem.b.shape_of(problem.op_b);
        check_inner(k, b_rows)
    }

    fn arguments(planned: &Planned<Self>, arguments: &mut PlanArguments) {
        let SpgemmProblem { op_a, op_b, a, b, .. } = &planned.problem;
        arguments::operation(arguments, "opA", *op_a);
        arguments::operation(arguments, "opB", *op_b);
        arguments::matrix(arguments, "A", a);
        arguments::matrix(arguments, "B", b);
        arguments::types(arguments, planned.types(), ["B's values", "C's values"]);
    }

    fn check_settings(planned: &Planned<Self>, settings: &Settings) -> Result<()> {
        planned.named().map_or(Ok(()), |named| require_sorted(settings, named))
    }

    fn analyze(
        planned: &mut Planned<Self>,
        analysis: &Analysis<'_>,
        decided: Option<&Choice>,
    ) -> Result<(BuiltProduct, Choice)> {
        let contents = planned.more.contents()?;
        planned.more.shared = memory_of(&contents);
        let factors = tiles_of(contents);
        planned.problem.sorted_output = analysis.settings.sorted_output;
        let SpgemmProblem { a, b, .. } = &mut planned.problem;
        for (matrix, tiles) in [a, b].into_iter().zip(&factors) {
            if let Some(tiles) = tiles {
                *matrix = tiles.matrix();
            }
        }
        let (executor, mut choice) = match decided {
            Some(choice) => {
                require_sorted(analysis.settings, choice.algorithm())?;
                let executor =
                    analysis.backend.build_spgemm(analysis.cx, &planned.problem, choice, None, &factors)?;
                (executor, choice.clone())
            }
            None => planned.choose(analysis, &factors)?,
        };
        choice.predicted_seconds =
            roofline::products_seconds(analysis.backend.machine(), executor.products());
        if decided.is_none() {
            analysis.amortized(&planned.problem.a, planned.problem.op_a).explain(&mut choice);
            if !planned.problem.sorted_output {
                choice.reason.push_str("; columns of a row of C in any order (setSortedOutput)");
            }
        }
        Ok((BuiltProduct { executor, algorithm: choice.algorithm(), nnz_c: None }, choice))
    }

    fn admits(planned: &Planned<Self>, choice: &Choice) -> Result<()> {
        select::admits_spgemm(&planned.problem, &planned.rows, choice)
    }

    fn update_values(planned: &mut Planned<Self>, cx: &Context, values: Address) -> Result<()> {
        planned.update_values(cx, [("newValues", values), ("newValues", Address::NULL)])
    }

    fn shared_memory(planned: &Planned<Self>) -> Vec<Arc<Allocator>> {
        planned.more.shared.clone()
    }
}

/// Returns whether an algorithm can leave the columns of a row of C unsorted to save time.
fn writes_unsorted(algorithm: Algorithm) -> bool {
    algorithm != Algorithm::Tile
}

/// Returns `NOT_SUPPORTED` if a plan allows rows in any order but the algorithm writes sorted rows only.
fn require_sorted(settings: &Settings, algorithm: Algorithm) -> Result<()> {
    if settings.sorted_output || writes_unsorted(algorithm) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "setSortedOutput: algorithm {}, which alone takes A and B in tiles, writes rows of C in ascending order only; \
         tarsiaPlan_setSortedOutput(plan, 0) is for TARSIA_SPGEMM_ALG_HASH and DEFAULT",
        algorithm.name()
    )))
}

impl Spgemm {
    /// Returns the present contents of A and B, each if it is in tiles.
    fn contents(&self) -> Result<[Option<Contents>; 2]> {
        let of =
            |at: usize, name: &str| self.tiles[at].as_ref().map(|tiles| tiles.contents(name)).transpose();
        Ok([of(0, "A")?, of(1, "B")?])
    }
}

/// Returns the allocators of the contents.
fn memory_of(contents: &[Option<Contents>; 2]) -> Vec<Arc<Allocator>> {
    contents.iter().flatten().map(|contents| Arc::clone(&contents.memory)).collect()
}

/// Returns the tiles of the contents.
fn tiles_of(contents: [Option<Contents>; 2]) -> TileFactors {
    contents.map(|contents| contents.map(|contents| contents.tiles))
}

/// End of the reason of `hash` where tiles would be faster.
const NO_ROOM: &str = "; tile would be faster, but its memory is missing";

/// `INVALID_STATE` for a numeric phase whose entries were not counted.
pub fn not_counted() -> Error {
    Error::state("plan: tarsiaSpGEMM_numeric needs tarsiaSpGEMM_symbolic first")
}

/// `NOT_SUPPORTED` for a product whose multiplications no 64-bit number counts.
pub fn too_many_products() -> Error {
    Error::unsupported("A, B: the product needs more than 2^63 − 1 multiplications")
}

/// Returns the arrays of a matrix that takes entries of these numbers and this type. Errors call it `name`.
pub fn check_result(
    name: &str,
    c: &SparseMatrix,
    (rows, cols, nnz): (i64, i64, i64),
    value_type: DataType,
) -> Result<Compressed> {
    let (SparseArrays::Csr(arrays) | SparseArrays::Csc(arrays)) = c.arrays else {
        return Err(Error::unsupported(format!(
            "{name}: SpGEMM does not write format {}",
            c.format().short()
        )));
    };
    let (found_rows, found_cols, found) = c.shape();
    check_shape(name, (found_rows, found_cols), (rows, cols))?;
    refuse_if!(
        found != nnz,
        invalid(name),
        "it has room for {found} entries, expected the {nnz} that tarsiaSpGEMM_symbolic counted"
    );
    check_type(name, arrays.value_type, value_type)?;
    c.require_arrays(name)?;
    Ok(arrays)
}

impl Planned<Spgemm> {
    /// Sets the A and B that are in tiles.
    pub fn with_tiles(mut self, tiles: [Option<Arc<TileMatrix>>; 2]) -> Self {
        self.more.tiles = tiles;
        self
    }

    /// Returns the rows of the table of algorithms that write C in the requested order.
    fn candidates(&self) -> Vec<&'static Row> {
        let writes = |row: &&&Row| self.problem.sorted_output || writes_unsorted(row.algorithm);
        self.rows.iter().filter(writes).copied().collect()
    }

    fn choose(
        &self,
        analysis: &Analysis<'_>,
        factors: &TileFactors,
    ) -> Result<(Box<dyn SpgemmExecutor>, Choice)> {
        let &Analysis { backend, cx, settings } = analysis;
        let build = |choice: &Choice, inspection| {
            backend.build_spgemm(cx, &self.problem, choice, inspection, factors)
        };
        if settings.values_in_place {
            let choices = select::spgemm(&self.problem, in_place::rows(&mut self.candidates()))?;
            let choice = in_place::choice(choices)?;
            return Ok((build(&choice, None)?, choice));
        }
        // This is the best choice without the patterns; no effort times the others.
        let mut choices = select::spgemm(&self.problem, &self.candidates())?;
        let mut choice = choices.swap_remove(0);
        if !matches!(factors, [None, None]) {
            return Ok((build(&choice, None)?, choice));
        }
        let tile = choices.into_iter().find(|choice| choice.algorithm() == Algorithm::Tile);
        let machine = backend.machine();
        let amortized = analysis.amortized(&self.problem.a, self.problem.op_a);
        let execute = roofline::products_seconds(machine, self.products_by_shape());
        let unlooked = match (&tile, settings.effort) {
            (None, _) => Some("the only candidate"),
            (_, Effort::Quick) => Some("effort QUICK looks at no other"),
            _ if !amortized.may_inspect_spgemm(execute) => Some("too few executes to look at tiles"),
            _ => None,
        };
        let Some(mut tile) = tile.filter(|_| unlooked.is_none()) else {
            choice.reason.extend(unlooked.iter().flat_map(|why| ["; ", why]));
            return Ok((build(&choice, None)?, choice));
        };
        // Tiles take more memory: if it is missing, the other algorithm is used.
        let if_it_fits = |built: Result<_>| match built {
            Err(error) if error.lacks_memory() => Ok(None),
            built => built.map(Some),
        };
        let mut inspection = backend.inspect_spgemm(cx, &self.problem, &choice)?;
        let gain = inspection.as_ref().and_then(|inspection| inspection.gain);
        if let Some(gain) = gain.filter(|&gain| amortized.takes_tiles(execute, gain)) {
            if let Some(executor) = if_it_fits(build(&tile, inspection.take()))? {
                tile.reason.push_str(&format!("; hash is predicted to take {gain:.1} times as long"));
                return Ok((executor, tile));
            }
            choice.reason.push_str(NO_ROOM);
            return Ok((build(&choice, None)?, choice));
        }
        let mut executor = build(&choice, inspection)?;
        let execute = roofline::products_seconds(machine, executor.products());
        // The gain is unknown here, so the most optimistic one is assumed.
        let may_gain = gain.is_none() && amortized.takes_tiles(execute, f64::INFINITY);
        let suits = if may_gain { executor.suits_tiles(cx)? } else { None };
        let Some(of_pair) = suits else {
            choice.reason.push_str("; tile is not expected to pay");
            return Ok((executor, choice));
        };
        match if_it_fits(build(&tile, None))? {
            Some(tiles) => {
                (executor, choice) = (tiles, tile);
                let more = format!("; two tiles that meet have {of_pair:.0} products in the mean");
                choice.reason.push_str(&more);
            }
            None => choice.reason.push_str(NO_ROOM),
        }
        Ok((executor, choice))
    }

    /// Returns whether the columns in each row of C ascend (tarsiaPlan_setSortedOutput).
    pub fn sorted_output(&self) -> bool {
        self.problem.sorted_output
    }

    /// Returns the number of stored entries of C, which the first call counts.
    pub fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        let product = self.executor_mut()?;
        let nnz = match product.nnz_c {
            Some(nnz) => nnz,
            None => product.executor.symbolic(cx)?,
        };
        product.nnz_c = Some(nnz);
        Ok(nnz)
    }

    /// Returns the number of entries of C that the symbolic phase has counted; an error if it has not run.
    fn counted(&self) -> Result<i64> {
        let counted = self.executor.as_ref().and_then(|product| product.nnz_c);
        counted.ok_or_else(not_counted)
    }

    /// Checks the descriptor of C and computes C.
    pub fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        let nnz = self.counted()?;
        check_writable("C", c.writable, "a tarsiaCreateConst function")?;
        if !self.rows.iter().any(|row| row.formats.contains(&c.format())) {
            return Err(Error::unsupported(format!(
                "C: SpGEMM does not write format {}",
                c.format().short()
            )));
        }
        if !self.problem.sorted_output && c.format() != Format::Csr {
            return Err(Error::unsupported(format!(
                "C: it is {}, and a plan of tarsiaPlan_setSortedOutput(plan, 0) writes CSR",
                c.format().short()
            )));
        }
        let (rows, cols) = self.shape_c();
        check_result("C", c, (rows, cols, nnz), self.problem.types.y)?;
        // The memory of factors that may have been freed may now belong to C.
        let factors = [("A", &self.problem.a), ("B", &self.problem.b)];
        check_overlap(c, factors.into_iter().filter(|(_, factor)| !factor.temporary))?;
        let bytes = self.problem.types.compute.scalar().size();
        let scalar = Lines::one(alpha, bytes);
        if let (false, Some(array)) = (alpha.is_null(), c.array_in(&scalar)) {
            let reason = format!("it lies in the {array} of C, which may be written before it is read");
            return Err(Error::invalid("alpha", reason));
        }
        self.executor_mut()?.executor.numeric(cx, alpha, c)
    }

    /// Computes C into new tiles in memory of `into`'s allocator.
    pub fn numeric_tiles(
        &mut self,
        cx: &Context,
        into: &Context,
        alpha: Address,
        c: &TileMatrix,
    ) -> Result<()> {
        self.counted()?;
        let algorithm = self.executor()?.algorithm;
        if algorithm != Algorithm::Tile {
            let name = algorithm.name();
            let sorted = if self.problem.sorted_output { "" } else { " and without setSortedOutput(0)" };
            return Err(Error::unsupported(format!(
                "C: algorithm {name} does not write tiles; create the plan with TARSIA_SPGEMM_ALG_TILE{sorted}"
            )));
        }
        let shape = c.shape();
        check_shape("C", (shape.rows, shape.cols), self.shape_c())?;
        check_type("C", shape.value_type, self.problem.types.y)?;
        let executor = &mut self.executor_mut()?.executor;
        c.fill(into, |into| executor.numeric_tiles(cx, into, alpha))
    }

    /// Takes new values of A and B, each given with the name of its argument. NULL keeps a matrix's present
    /// values; for a matrix in tiles it takes the values that the tiles have now.
    pub fn update_values(
        &mut self,
        cx: &Context,
        [(a_name, a), (b_name, b)]: [(&str, Address); 2],
    ) -> Result<()> {
        let in_tiles = self.more.tiles.each_ref().map(Option::is_some);
        for (given, in_tiles, name) in [(a, in_tiles[0], a_name), (b, in_tiles[1], b_name)] {
            refuse_if!(
                in_tiles && !given.is_null(),
                invalid(name),
                "the matrix is in tiles: NULL takes the values that it has"
            );
        }
        let problem = &mut self.problem;
        let none = a.is_null() && b.is_null() && in_tiles == [false, false];
        if none && (problem.a.shape().2 > 0 || problem.b.shape().2 > 0) {
            let all = if a_name == b_name { a_name.to_string() } else { format!("{a_name}, {b_name}") };
            return Err(Error::invalid(&all, "the pointer is NULL: no new values were given"));
        }
        let given = [(a_name, &mut problem.a, a), (b_name, &mut problem.b, b)];
        for (name, matrix, values) in given.iter().filter(|(_, _, values)| !values.is_null()) {
            check_new_values(name, matrix, *values, problem.value_updates)?;
        }
        let executor = &mut self.executor.as_mut().ok_or_else(not_analyzed)?.executor;
        if in_tiles != [false, false] {
            let contents = self.more.contents()?;
            let memory = memory_of(&contents);
            // Until the update is complete the executor may read both old and new tiles.
            self.more.shared.extend(memory.iter().cloned());
            executor.update_tiles(cx, &tiles_of(contents))?;
            self.more.shared = memory;
        }
        executor.update_values(cx, a, b)?;
        for (_, matrix, values) in given.into_iter().filter(|(_, _, values)| !values.is_null()) {
            *matrix = matrix.with_values(values);
        }
        Ok(())
    }

    /// Estimates the number of multiplications by the mean length of a row of op(B) for each entry of op(A).
    fn products_by_shape(&self) -> i64 {
        let (_, k, left) = self.problem.a.shape_of(self.problem.op_a);
        (left as f64 * (self.problem.b.shape().2 as f64 / k.max(1) as f64)) as i64
    }

    fn shape_c(&self) -> (i64, i64) {
        let (m, _, _) = self.problem.a.shape_of(self.problem.op_a);
        let (_, n, _) = self.problem.b.shape_of(self.problem.op_b);
        (m, n)
    }
}

/// Checks that C's arrays share no memory with each other nor with those of the factors.
fn check_overlap<'a>(
    c: &SparseMatrix,
    factors: impl Iterator<Item = (&'a str, &'a SparseMatrix)> + Clone,
) -> Result<()> {
    let arrays = c.user_arrays();
    let arrays = arrays.as_ref().map_or(&[][..], |arrays| &arrays[..]);
    for (at, array) in arrays.iter().enumerate() {
        let (name, lines) = (array.name, array.lines());
        if let Some(other) = arrays[..at].iter().find(|other| lines.overlaps(&other.lines())) {
            let reason = format!("its {name} share memory with its {}", other.name);
            return Err(Error::invalid("C", reason));
        }
        let shared = |(of, factor): (&'a str, &SparseMatrix)| Some((of, factor.array_in(&lines)?));
        if let Some((of, other)) = factors.clone().find_map(shared) {
            return Err(Error::invalid("C", format!("its {name} share memory with the {other} of {of}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::testing;
    use crate::support::Types;
    use crate::types::{BackendKind, ComputeType, DataType, Operation as Op};
    use half::f16;
    use matrices::owned::OwnedCsr;

    /// Kernels that multiply 16-bit types on matrix units are allowed unless the problem requires IEEE sums,
    /// which only a pedantic compute type does.
    #[test]
    fn pedantic_types_reach_the_problem() {
        for (compute, ieee) in [(ComputeType::R32F, false), (ComputeType::R32FPedantic, true)] {
            for backend in [BackendKind::Host, BackendKind::Cuda] {
                let stored = OwnedCsr {
                    rows: 1,
                    cols: 1,
                    offsets: vec![0, 1],
                    indices: vec![0],
                    values: vec![f16::ONE],
                };
                let a = testing::csr(&stored);
                let types = Types { a: DataType::R16F, x: DataType::R16F, y: DataType::R32F, compute };
                let (op_a, op_b) = (Op::NonTranspose, Op::NonTranspose);
                let problem = SpgemmProblem {
                    op_a,
                    op_b,
                    a,
                    b: a,
                    types,
                    value_updates: false,
                    ieee: false,
                    sorted_output: true,
                };
                let planned = Planned::<Spgemm>::new(backend, problem, None).unwrap();
                assert_eq!(planned.problem.ieee, ieee, "{compute:?}");
                assert_eq!(planned.problem.types.compute, ComputeType::R32F);
                assert_eq!(planned.types().compute, compute);
            }
        }
    }
}
