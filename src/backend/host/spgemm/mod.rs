//! SpGEMM on the host, algorithm `hash`: C = alpha · op(A) · op(B) by rows (Gustavson 1978), with hash tables
//! or arrays as accumulators (Nagasaka et al. 2018), one thread per row, rows balanced by multiplications.
//!
//! build counts the multiplications of each row, symbolic finds the columns of C, and numeric writes C. Between
//! calls the executor holds 9 bytes per row, a byte per row of the right factor and, where memory permits, the
//! columns of C (2, 4 or 8 bytes an entry), with value updates also the accumulators and, where that is no more than
//! A, B and C take, 2 bytes per multiplication.
//!
//! - [`rows`]: factors, multiplications per row, items of work
//! - [`places`]: accumulators, and the rule that chooses between them
//! - [`sort`]: vector code that sorts the columns of a row
//! - [`window`]: rows with neighbouring columns
//! - [`lists`]: columns of C
//! - [`ranks`]: where each product is added, in plans that keep the pattern
//! - [`scratch`]: working memory of the threads
//! - [`symbolic`], [`numeric`]: the two phases
//! - [`output`]: arrays of C
//! - [`tile`]: algorithm `tile`; [`tiles`]: matrices in tiles that the library owns

mod lists;
mod numeric;
mod output;
mod places;
mod ranks;
pub mod rows;
mod scratch;
#[cfg(vector_sort)]
mod sort;
mod symbolic;
#[cfg(test)]
mod tests;
mod tile;
pub mod tiles;
mod window;

use super::operand::Factor;
use lists::{Form, Lists};
use numeric::Task;
use output::{Output, Staged, Target};
use places::{Key, Rule};
use ranks::Ranks;
use scratch::{Needs, Scratch};
use symbolic::{Counted, Finder};

use super::operand::Operand;
use super::Host;
use crate::algorithm::Algorithm;
use crate::backend::{LayoutInfo, SpgemmExecutor};
use crate::error::{Error, Result};
use crate::matrix::tiles::{TileFactors, Tiles};
use crate::matrix::SparseMatrix;
use crate::memory::{self, pool, Buffer, Context};
use crate::operation::{not_counted, SpgemmBackend};
use crate::problem::SpgemmProblem;
use crate::select::{Choice, Source, SpgemmInspection};
use crate::support::{dispatch_spgemm, Combo, ComboVisitor};
use crate::types::{Accumulator, Address, LayoutKind};

impl SpgemmBackend for Host {
    /// Validates A and B, builds the operands of `choice`, and counts the multiplications: O(nnz(A) + nnz(B))
    /// time, O(rows of C) memory besides the copies that `choice` asks for.
    fn build_spgemm(
        &self,
        cx: &Context,
        problem: &SpgemmProblem,
        choice: &Choice,
        _inspection: Option<SpgemmInspection>,
        factors: &TileFactors,
    ) -> Result<Box<dyn SpgemmExecutor>> {
        dispatch_spgemm(problem.types, Build { cx, problem, choice, factors })
    }

    fn make_tiles(&self, cx: &Context, a: &SparseMatrix) -> Result<Tiles> {
        tiles::make(cx, a)
    }

    fn write_tiles(&self, cx: &Context, tiles: &Tiles, b: &SparseMatrix) -> Result<()> {
        tiles::write(cx, tiles, b)
    }
}

struct Build<'a> {
    cx: &'a Context,
    problem: &'a SpgemmProblem,
    choice: &'a Choice,
    /// Factors that are in tiles.
    factors: &'a TileFactors,
}

impl ComboVisitor for Build<'_> {
    type Output = Box<dyn SpgemmExecutor>;
    fn visit<C: Combo>(self) -> Result<Self::Output> {
        let (cx, problem) = (self.cx, self.problem);
        if self.factors.iter().any(Option::is_some) {
            return Ok(Box::new(tile::HostTile::<C>::of_tiles(cx, *problem, self.choice, self.factors)?));
        }
        let operands = Operands::<C>::build(cx, problem, self.choice)?;
        if self.choice.algorithm() == Algorithm::Tile {
            return Ok(Box::new(tile::HostTile::<C>::new(cx, *problem, operands)?));
        }
        // 32-bit columns halve the tables; few products have more columns.
        let wide = i32::try_from(operands.factors()?.1.cols).is_err();
        if wide {
            Ok(Box::new(HostSpgemm::<i64, C>::new(cx, *problem, operands)?))
        } else {
            Ok(Box::new(HostSpgemm::<i32, C>::new(cx, *problem, operands)?))
        }
    }
}

/// A and B in the form in which the product reads them.
#[derive(Debug)]
struct Operands<C: Combo> {
    a: Operand<C::A>,
    b: Operand<C::X>,
    /// True if the arrays hold the rows of op(A)ᵀ and op(B)ᵀ, and the product is Cᵀ = op(B)ᵀ · op(A)ᵀ: B is
    /// the left factor.
    transposed: bool,
}

impl<C: Combo> Operands<C> {
    fn build(cx: &Context, problem: &SpgemmProblem, choice: &Choice) -> Result<Self> {
        let transposed = choice.method.is_transposed();
        if transposed && (choice.a, choice.b) != (Source::InPlace, Source::InPlace) {
            return Err(Error::unsupported("A, B: columns of C are computed from arrays in place only"));
        }
        let keep = problem.value_updates;
        let a = Operand::build(cx, &problem.a, problem.op_a, choice.a, "A", keep)?;
        let b = Operand::build(cx, &problem.b, problem.op_b, choice.b, "B", keep)?;
        Ok(Operands { a, b, transposed })
    }

    /// Returns the left and the right factor, without values.
    fn factors(&self) -> Result<(Factor<'_>, Factor<'_>)> {
        let (a, b) = (self.a.rows("A")?.0, self.b.rows("B")?.0);
        Ok(if self.transposed { (b, a) } else { (a, b) })
    }
}

/// Memory of numeric phases; with value updates it stays in the plan.
#[derive(Debug)]
struct Kept<K: Key, C: Combo> {
    /// Numeric phases that have run with this memory.
    calls: u32,
    scratch: Option<Scratch<K, C::Acc>>,
    ranks: KeptRanks,
    /// Values to be transposed into C, memory for that in `starts`, and their columns unless these are listed.
    values: Option<Buffer<C::Y>>,
    starts: Option<Buffer<i64>>,
    columns: Option<Buffer<K>>,
}

/// Ranks of all products, which plans with value updates may keep.
#[derive(Debug)]
enum KeptRanks {
    /// Undecided: the next numeric phase decides whether ranks are kept.
    Unknown,
    /// No ranks, since they do not pay, or there is no memory for them.
    NotKept,
    /// Ranks, or memory for them before a numeric phase has recorded them.
    Kept(Ranks),
}

/// Requirements on the memory of a numeric phase.
struct Room<'a> {
    threads: usize,
    /// Sizes of a thread's memory, before those that depend on lists and ranks.
    needs: Needs,
    /// Largest number of products in a trace.
    trace: usize,
    /// Largest number of columns with a sum each.
    summed: usize,
    /// C and its number of entries, if the computed rows are transposed into it.
    transposed: Option<(&'a Target<'a>, usize)>,
}

impl<K: Key, C: Combo> Kept<K, C> {
    const NONE: Self = Kept {
        calls: 0,
        scratch: None,
        ranks: KeptRanks::Unknown,
        values: None,
        starts: None,
        columns: None,
    };

    /// Allocates what is not there yet; `listed` says whether the columns of C are listed.
    fn reserve(&mut self, cx: &Context, room: &Room<'_>, listed: bool) -> Result<()> {
        let needs = if listed { room.needs } else { room.needs.to_find(0, true) };
        let needs = needs.to_sum(room.trace, room.summed, matches!(self.ranks, KeptRanks::Kept(_)));
        get_or_try_insert(&mut self.scratch, || Scratch::new(cx, room.threads, needs))?;
        if let Some((target, nnz)) = room.transposed {
            get_or_try_insert(&mut self.starts, || target.starts(cx))?;
            get_or_try_insert(&mut self.values, || Buffer::zeroed(&cx.allocator, nnz))?;
            if !listed {
                get_or_try_insert(&mut self.columns, || Buffer::zeroed(&cx.allocator, nnz))?;
            }
        }
        Ok(())
    }

    /// Does the same; where memory lacks, ranks and then lists are given up, since they only save time.
    fn reserve_what_fits(&mut self, cx: &Context, room: &Room<'_>, lists: &mut Option<Lists>) -> Result<()> {
        let lacks = |result: &Result<()>| result.as_ref().is_err_and(Error::lacks_memory);
        let mut reserved = self.reserve(cx, room, lists.is_some());
        if lacks(&reserved) && matches!(self.ranks, KeptRanks::Kept(_)) {
            (self.ranks, self.scratch) = (KeptRanks::NotKept, None);
            reserved = self.reserve(cx, room, lists.is_some());
        }
        if lacks(&reserved) && lists.is_some() {
            (*lists, *self) = (None, Kept::NONE);
            reserved = self.reserve(cx, room, false);
        }
        reserved
    }

    /// Sorts the lists, or gives them up where memory lacks for that.
    fn sort_lists(
        &mut self,
        cx: &Context,
        (items, offsets): (&[i64], &[i64]),
        lists: &mut Option<Lists>,
    ) -> Result<()> {
        let Some(unsorted) = lists.as_mut() else { return Ok(()) };
        // Ranks are found anew, and the scratch memory depends on whether there are any.
        (self.ranks, self.scratch) = (KeptRanks::Unknown, None);
        match unsorted.sort::<K>(cx, items, offsets) {
            Err(error) if error.lacks_memory() => {
                (*lists, *self) = (None, Kept::NONE);
                Ok(())
            }
            result => result,
        }
    }
}

/// The executor of algorithm `hash`. K is the type of column indices of the product.
struct HostSpgemm<K: Key, C: Combo> {
    problem: SpgemmProblem,
    operands: Operands<C>,
    products: i64,
    phase: Phase,
    /// Rows of each work item: `items[i]..items[i + 1]` of item i.
    items: Buffer<i64>,
    /// Columns of the product, if there was memory for them.
    lists: Option<Lists>,
    kept: Option<Kept<K, C>>,
    threads: usize,
    rule: Rule,
}

/// Knowledge about the rows of the product.
enum Phase {
    /// Number of multiplications of each row.
    Analyzed(Buffer<i64>),
    /// Number of entries of each row in C.
    Counted(Counted),
}

impl<K: Key, C: Combo> HostSpgemm<K, C> {
    fn new(cx: &Context, problem: SpgemmProblem, operands: Operands<C>) -> Result<Self> {
        let (left, right) = operands.factors()?;
        let (row_products, products) = rows::count_products(cx, &left, &right)?;
        let items = rows::cut_items(cx, &row_products, products)?;
        Ok(HostSpgemm {
            problem,
            operands,
            products,
            phase: Phase::Analyzed(row_products),
            items,
            lists: None,
            kept: None,
            threads: pool::size(),
            rule: Rule::of(pool::size()),
        })
    }

    /// Returns the number of threads for which there is work.
    fn working_threads(&self) -> usize {
        self.threads.min(self.items.len() - 1).max(1)
    }

    /// Returns the largest number of columns for which a sum each pays.
    fn summed_columns(&self, left: &Factor<'_>, right: &Factor<'_>, runs: bool) -> usize {
        match runs {
            _ if numeric::is_wide::<K>() => 0,
            // Sums by column need a comparison of fingerprints, which reads all of A and B: that takes longer than
            // they save where there are so few products.
            _ if (self.products as usize) < left.indices.len() + right.indices.len() => 0,
            true => places::SUMMED_RUNS,
            false => places::SUMMED_COLS,
        }
    }

    /// Runs the numeric phase with this memory, and allocates what it lacks.
    fn write(
        &self,
        cx: &Context,
        alpha: Address,
        c: &SparseMatrix,
        lists: &mut Option<Lists>,
        kept: &mut Kept<K, C>,
    ) -> Result<()> {
        let Phase::Counted(counted) = &self.phase else {
            return Err(not_counted());
        };
        let (left, right) = self.operands.factors()?;
        let (a_values, b_values) = (self.operands.a.rows("A")?.1, self.operands.b.rows("B")?.1);
        let transposed = self.operands.transposed;
        let (offsets, items) = (&counted.offsets, &self.items[..]);
        let nnz = offsets[left.rows] as usize;

        let (rows, cols) = if transposed { (right.cols, left.rows) } else { (left.rows, right.cols) };
        let target = Target::check(c, "C", (rows, cols, nnz as i64), self.problem.types.y)?;
        // SAFETY: alpha points to a scalar of the compute type in host memory.
        let alpha: C::Acc = unsafe { memory::read_scalar("alpha", alpha)? };
        let direct = target.takes_rows(transposed);

        let mut copy = None;
        let of_right = right.indices.to_slice(cx, &mut copy)?;
        // The transposition into C searches the rows, which must then be sorted.
        let sorted = self.problem.sorted_output || !direct;
        if sorted && lists.as_ref().is_some_and(|lists| !lists.form.sorted) {
            kept.sort_lists(cx, (items, offsets), lists)?;
        }
        if self.problem.value_updates && lists.is_some() && matches!(kept.ranks, KeptRanks::Unknown) {
            let ranks = Ranks::new(cx, &left, &right, self.products, offsets)?;
            kept.ranks = ranks.map_or(KeptRanks::NotKept, KeptRanks::Kept);
        }
        let runs = window::meets_runs(&left, &right, of_right);
        let count = |row: usize| (offsets[row + 1] - offsets[row]) as usize;
        let follows = counted.steps.iter().any(|&step| step != rows::NEW);
        let room = Room {
            threads: self.working_threads(),
            needs: Needs::of::<K>((0..left.rows).map(count), right.cols, self.rule),
            trace: if follows { numeric::TRACE } else { 0 },
            summed: self.summed_columns(&left, &right, runs),
            transposed: (!direct).then_some((&target, nnz)),
        };
        kept.reserve_what_fits(cx, &room, lists)?;
        // Recording ranks takes as long as they save in a few calls.
        let mut ranks = match &mut kept.ranks {
            KeptRanks::Kept(ranks) if kept.calls >= ranks::CALLS => Some(ranks),
            _ => None,
        };
        let scratch = kept.scratch.as_mut().expect("it was reserved");
        let task = Task {
            left,
            right,
            columns: of_right,
            counted,
            items,
            lists: lists.as_ref().ok_or_else(|| {
                let repeats = counted.repeats.then_some(&counted.right_steps[..]);
                Finder::new(&left, &right, of_right, repeats, (self.rule, sorted))
            }),
            ranks: ranks.as_mut().map(|ranks| ranks.share()),
            rule: self.rule,
            runs,
            far: rows::is_far(&left, &right),
        };
        let out = match direct {
            false => {
                let values = kept.values.as_mut().expect("they were reserved");
                Output::staging(kept.columns.as_deref_mut().filter(|_| task.lists.is_err()), values)
            }
            // SAFETY: C has been checked, and its owner does not access it while the call runs.
            true => unsafe { Output::direct(&target)? },
        };
        if alpha == C::Acc::ZERO {
            numeric::write_pattern(&task, scratch, &out);
        } else if transposed {
            numeric::multiply(&task, b_values, a_values, alpha, scratch, &out);
        } else {
            numeric::multiply(&task, a_values, b_values, alpha, scratch, &out);
        }
        let columns = match (lists.as_ref(), &kept.columns) {
            (Some(lists), _) => output::Rows::Listed(lists, items),
            (None, Some(columns)) => output::Rows::Plain(columns),
            (None, None) => output::Rows::Plain(&[]),
        };
        if let Some(ranks) = ranks.filter(|_| alpha != C::Acc::ZERO) {
            ranks.recorded = true;
        }
        // SAFETY: as for `Output::direct` above.
        unsafe {
            match (&kept.values, &mut kept.starts) {
                (Some(values), Some(starts)) if !direct => {
                    Staged { offsets, columns, values }.transpose_into(&target, starts, self.threads)
                }
                _ => output::write_offsets(&target, offsets),
            }
        }
    }
}

impl<K: Key, C: Combo> SpgemmExecutor for HostSpgemm<K, C> {
    fn symbolic(&mut self, cx: &Context) -> Result<i64> {
        if let Phase::Analyzed(products) = &self.phase {
            let (left, right) = self.operands.factors()?;
            let how = (self.rule, Form::new(self.problem.sorted_output, self.products));
            let (counted, lists) = symbolic::count_entries::<K>(
                cx,
                (&left, &right),
                products,
                &self.items,
                self.working_threads(),
                how,
            )?;
            (self.phase, self.lists) = (Phase::Counted(counted), lists);
        }
        match &self.phase {
            Phase::Counted(counted) => Ok(counted.offsets[counted.offsets.len() - 1]),
            Phase::Analyzed(_) => unreachable!("counted above"),
        }
    }

    fn numeric(&mut self, cx: &Context, alpha: Address, c: &SparseMatrix) -> Result<()> {
        // The memory is taken out, so that a panic drops it in its inconsistent state.
        let (mut lists, kept) = (self.lists.take(), self.kept.take());
        let complete = kept.is_some();
        let mut kept = kept.unwrap_or(Kept::NONE);
        let result = self.write(cx, alpha, c, &mut lists, &mut kept);
        kept.calls = kept.calls.saturating_add(u32::from(result.is_ok()));
        self.lists = lists;
        // After a failure the memory is kept only if an earlier call needed it.
        if self.problem.value_updates && (result.is_ok() || complete) {
            self.kept = Some(kept);
        }
        result
    }

    /// Updates A's values first: if B's fail (out of memory), A's new ones stay, and the call can be
    /// repeated.
    fn update_values(&mut self, cx: &Context, a: Address, b: Address) -> Result<()> {
        if !a.is_null() {
            let renewed = self.problem.a.with_values(a);
            self.operands.a.update_values(cx, &renewed, self.problem.op_a, "A")?;
            self.problem.a = renewed;
        }
        if !b.is_null() {
            let renewed = self.problem.b.with_values(b);
            self.operands.b.update_values(cx, &renewed, self.problem.op_b, "B")?;
            self.problem.b = renewed;
        }
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        let in_place = self.operands.a.layout().in_place && self.operands.b.layout().in_place;
        LayoutInfo { kind: LayoutKind::Csr, in_place, fill: 1.0 }
    }

    fn products(&self) -> i64 {
        self.products
    }
}

fn get_or_try_insert<T>(slot: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
    let value = match slot.take() {
        Some(value) => value,
        None => make()?,
    };
    Ok(slot.insert(value))
}
