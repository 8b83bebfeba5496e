//! Results of analyzing op(A) that all algorithms share, computed at most once and partly before an algorithm
//! is chosen.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use super::row_counts::RowCounts;
use super::schedule::Lengths;
use super::window::number;
use crate::algorithm::Algorithm;
use crate::backend::cuda::check::{self, PatternReport};
use crate::backend::cuda::convert::{permute_rows, Origins};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::memory::{self, DeviceBuffer, Readback};
use crate::backend::cuda::operand::{Operand, RowStats, Rows};
use crate::backend::cuda::reorder::cluster;
use crate::backend::cuda::spmv::sell::begin_for_columns;
use crate::backend::cuda::spmv::{SharedColumns, StorageProperties};
use crate::error::Result;
use crate::format::window::{Counts, WindowShape};
use crate::matrix::SparseArrays;
use crate::problem::SpmmProblem;
use crate::reorder::jaccard::When;
use crate::select::spmm::sell::{mostly_slices, FEW_COLUMNS};
use crate::select::spmm::window::CLUSTER;
use crate::select::spmm::{clusters_gain, clusters_may_pay, SpmmStatistics};
use crate::select::{self, Clusters, RowOrder, Source};
use crate::types::Reorder;

/// Sorted rows of op(A), in place or copied, with their counts in windows and their clusters.
pub(crate) struct SharedResults {
    device: Arc<Device>,
    /// True if an algorithm is to be chosen by the results.
    is_for_choice: bool,
    /// Rows of op(A); `None` before they are needed and after an executor has taken them.
    rows: RefCell<Option<InspectedRows>>,
    counts: Cell<Option<(WindowShape, Counts)>>,
    /// Counts of `row` for rows in place, in their own order; `None` if they have not been counted, or an
    /// executor has taken them.
    row_counts: RefCell<Option<RowCounts>>,
    /// What `sell` has to know of rows in place, in their own order; `None` if it has not been counted, or an executor
    /// has taken it.
    properties: RefCell<Option<StorageProperties>>,
    clusters: OnceCell<Option<ClusteredRows>>,
}

/// Rows of op(A), reordered so that similar rows form clusters, for windows of them.
struct ClusteredRows {
    /// Reordered rows. Some of them are holes: empty, and no row of op(A).
    operand: Operand,
    /// Row of C for each of them, or [`Windows::HOLE`](crate::reorder::Windows::HOLE).
    order: Arc<DeviceBuffer<u32>>,
    counts: Cell<Option<(WindowShape, Counts)>>,
}

/// Order of rows that a plan reports.
pub(super) fn reorder_of(clustered: bool) -> Reorder {
    match clustered {
        true => Reorder::Auto,
        false => Reorder::None,
    }
}

/// Rows from which windows are made.
pub(super) struct WindowRows<'a> {
    /// Rows of op(A), each sorted by column.
    pub(super) rows: Rows,
    /// Given if values will be updated: positions of the values in the user's array.
    pub(super) positions: Origins<'a>,
    /// Row of C for each of them; `None` if rows are in their own order.
    pub(super) order: Option<&'a Arc<DeviceBuffer<u32>>>,
}

/// Rows that have been inspected, with the results.
pub(super) struct InspectedRows {
    pub(super) operand: Operand,
    pub(super) stats: RowStats,
    pub(super) report: PatternReport,
}

/// Call, problem and shared results of an analysis in progress.
pub(super) struct Analysis<'a> {
    pub(super) cx: &'a DeviceCall<'a>,
    pub(super) problem: &'a SpmmProblem,
    pub(super) shared: &'a SharedResults,
}

impl SharedResults {
    /// Starts without any results, for an algorithm that is to be chosen by them.
    pub(super) fn for_choice(device: &Arc<Device>) -> Self {
        let mut shared = SharedResults::new(device);
        shared.is_for_choice = true;
        shared
    }

    /// Starts without any results, for an algorithm that has been chosen.
    pub(super) fn new(device: &Arc<Device>) -> Self {
        SharedResults {
            device: Arc::clone(device),
            is_for_choice: false,
            rows: RefCell::new(None),
            counts: Cell::new(None),
            row_counts: RefCell::new(None),
            properties: RefCell::new(None),
            clusters: OnceCell::new(),
        }
    }
}

impl Drop for SharedResults {
    fn drop(&mut self) {
        // An analysis drops this when it has built its plan; the context need not be current. Arrays that the stream
        // still works on must be released in its order, in their context.
        let _entered = self.device.enter();
        self.rows.take();
        self.row_counts.take();
        if let Some(mut properties) = self.properties.take() {
            properties.release();
        }
        self.clusters.take();
    }
}

impl Analysis<'_> {
    /// Validates the pattern and takes the rows, unless that was done already. Blocks.
    fn inspect(&self) -> Result<()> {
        if self.shared.rows.borrow().is_some() {
            return Ok(());
        }
        let &Analysis { cx, problem, .. } = self;
        self.keep(check::inspect(cx, &problem.a, problem.op, "A")?)
    }

    /// Takes the rows of a pattern with this report: in place if they are sorted there, else from a copy.
    fn keep(&self, report: PatternReport) -> Result<()> {
        let &Analysis { cx, problem, .. } = self;
        let (a, op, updates) = (&problem.a, problem.op, problem.value_updates);
        let is_ready = select::in_place(a, op) && report.structure.sorted;
        let source = if is_ready { Source::InPlace } else { Source::Canonical };
        let (operand, stats) = Operand::inspected(cx, a, op, source, updates, &report)?;
        *self.shared.rows.borrow_mut() = Some(InspectedRows { operand, stats, report });
        Ok(())
    }

    /// Validates rows of op(A) in the user's arrays, takes them, and counts them in windows, for `row` and for `sell`, all
    /// in one wait. Rows that are not sorted are copied, and counted for `sell` alone, which takes those in place.
    fn inspect_and_count(&self, rows: &Rows, shape: WindowShape) -> Result<()> {
        const SORTED: usize = number::STATISTICS_WORDS;
        const ROW: usize = SORTED + 1;
        const SHARED: usize = ROW + RowCounts::WORDS;
        const CHECK: usize = SHARED + SharedColumns::WORDS;
        const _: () = assert!(CHECK + check::DEVICE_WORDS <= Readback::WORDS);
        let &Analysis { cx, problem, shared } = self;
        // `sell`, which is chosen for most products of few columns, would need another wait. It counts for itself if
        // memory is missing here.
        let shared_columns = match shared.is_for_choice && problem.n_hint <= FEW_COLUMNS {
            true => memory::optional(SharedColumns::new(cx, problem.types.a, rows))?.flatten(),
            false => None,
        };
        let mut words = Readback::take(cx)?;
        // `row` is the algorithm that is chosen most often, and its counts take less than another wait.
        let groups = super::groups_of(cx.device, problem, rows, &RowOrder::new(Reorder::None));
        let row_counts =
            groups.map(|groups| RowCounts::new(cx, rows, Lengths::OfGroups(groups))).transpose()?;
        let overlap = &Overlap::new(true);
        check::enqueue_rows(cx, rows, &words, CHECK, Some(SORTED), overlap)?;
        if let Some(counts) = &row_counts {
            counts.enqueue(cx, rows, (&words, ROW), overlap)?;
        }
        if let Some(columns) = &shared_columns {
            columns.enqueue(cx, rows, words.at(SHARED), overlap)?;
        }
        number::enqueue_statistics(cx, rows, shape, words.at(SORTED), words.at(0))?;
        words.fetch(cx, CHECK)?;
        cx.device.machine().prepare_spmm_choice(problem.types);
        let found = *words.wait(cx)?;
        // The page is free for the slices.
        drop(words);
        let words = &found;
        let report = &words[CHECK..][..check::WORDS];
        let report = check::pattern_report(cx, &problem.a, problem.op, "A", report)?;
        if report.structure.sorted {
            shared.counts.set(Some((shape, number::counts(rows, words))));
            *shared.row_counts.borrow_mut() = row_counts.map(|mut counts| {
                counts.read(words, ROW);
                counts
            });
        }
        *shared.properties.borrow_mut() = shared_columns.map(|columns| columns.properties(&words[SHARED..]));
        self.keep(report)?;
        // Only after the rows are copied: slices that may not be chosen must not take the memory that the copy needs.
        if let Some(properties) = &*shared.properties.borrow() {
            if mostly_slices(problem.types.a, problem.n_hint) {
                // An error is ignored here: if `sell` is chosen, the layout is made anew, and that reports it.
                let begun = begin_for_columns(cx, problem.types.a, rows, properties).ok().flatten();
                properties.begun.replace(begun);
            }
        }
        Ok(())
    }

    /// Calls `f` with the rows and, if values will be updated, with their positions in the user's array.
    pub(super) fn with_rows<R>(&self, f: impl FnOnce(&Operand, Origins<'_>) -> Result<R>) -> Result<R> {
        self.inspect()?;
        let rows = self.shared.rows.borrow();
        let operand = &rows.as_ref().expect("rows were inspected").operand;
        f(operand, self.positions(operand))
    }

    fn positions<'a>(&self, operand: &'a Operand) -> Origins<'a> {
        operand.origins(self.problem.value_updates)
    }

    /// Takes the rows, for an executor that keeps them.
    pub(super) fn take_rows(&self) -> Result<InspectedRows> {
        self.inspect()?;
        Ok(self.shared.rows.borrow_mut().take().expect("rows were inspected"))
    }

    /// Rows of op(A) in the user's arrays, which are still to be inspected; `None` if inspected rows are held here, or
    /// if rows are not read from there. Rows that an executor has taken are inspected again.
    pub(super) fn unchecked_rows(&self, source: Source) -> Option<Rows> {
        match (&self.problem.a.arrays, source) {
            (SparseArrays::Csr(m) | SparseArrays::Csc(m), Source::InPlace)
                if self.shared.rows.borrow().is_none() =>
            {
                Some(Rows::of(m))
            }
            _ => None,
        }
    }

    /// Takes the counts of `row`, if they have been counted for the rows from this source in this order.
    pub(super) fn take_row_counts(&self, source: Source, order: &RowOrder) -> Option<RowCounts> {
        let is_counted = source == Source::InPlace && !order.policy.is_named();
        is_counted.then(|| self.shared.row_counts.take()).flatten()
    }

    /// Gives up the slices that were begun for `sell`, since another algorithm has been chosen. Blocks if there are any.
    pub(super) fn discard_slices(&self) {
        if let Some(properties) = &*self.shared.properties.borrow() {
            properties.discard_slices(self.cx);
        }
    }

    /// Takes what `sell` has to know of the rows of [`Self::checked_rows`], if it has been counted.
    pub(super) fn take_properties(&self) -> Option<StorageProperties> {
        self.shared.properties.take()
    }

    /// Gives back what [`Self::take_properties`] has taken.
    #[cfg(test)]
    pub(super) fn give_properties(&self, properties: StorageProperties) {
        self.shared.properties.replace(Some(properties));
    }

    /// Takes the rows, in place where they are there, if their pattern has been validated. Rows in place need not
    /// be sorted.
    pub(super) fn checked_rows(&self) -> Result<Option<(Operand, RowStats)>> {
        if self.shared.rows.borrow().is_none() {
            return Ok(None);
        }
        let InspectedRows { operand, stats, .. } = self.rows_from(self.nearest())?;
        Ok(Some((operand, stats)))
    }

    /// Source of rows that need not be sorted.
    fn nearest(&self) -> Source {
        match select::in_place(&self.problem.a, self.problem.op) {
            true => Source::InPlace,
            false => Source::Canonical,
        }
    }

    /// Takes the rows from the source that a choice names; rows in place need not be sorted.
    pub(super) fn rows_from(&self, source: Source) -> Result<InspectedRows> {
        let is_kept = self.shared.rows.borrow().as_ref().is_some_and(|inspected| {
            matches!(inspected.operand, Operand::InPlace(_)) == (source == Source::InPlace)
        });
        if is_kept {
            return self.take_rows();
        }
        let &Analysis { cx, problem, shared } = self;
        let (a, op, updates) = (&problem.a, problem.op, problem.value_updates);
        let report = match &*shared.rows.borrow() {
            Some(inspected) => inspected.report,
            None => check::inspect(cx, a, op, "A")?,
        };
        let (operand, stats) = Operand::inspected(cx, a, op, source, updates, &report)?;
        Ok(InspectedRows { operand, stats, report })
    }

    /// Takes the rows, which are to be put in the chosen order; for an order by name they are sorted by column.
    pub(super) fn rows_in_order(&self, source: Source, order: &RowOrder) -> Result<InspectedRows> {
        match order.policy.is_named() {
            true => self.take_rows(),
            false => self.rows_from(source),
        }
    }

    /// Returns the counts in windows of a shape. Blocks unless they are known.
    pub(super) fn counts(&self, shape: WindowShape) -> Result<Counts> {
        if let Some((_, counts)) = self.shared.counts.get().filter(|(of, _)| *of == shape) {
            return Ok(counts);
        }
        let counts = self.with_rows(|operand, _| number::count_windows(self.cx, &operand.rows(), shape))?;
        self.shared.counts.set(Some((shape, counts)));
        Ok(counts)
    }

    /// Returns the clustered rows, which are made at the first call. `None` if their own order is as good, or
    /// if a sample promises no better one. Blocks.
    fn clusters(&self) -> Result<Option<&ClusteredRows>> {
        if self.shared.clusters.get().is_none() {
            self.discard_slices();
            let found = self.with_rows(|operand, _| self.cluster(operand))?;
            // Nothing has set it meanwhile: a plan is analyzed by one thread.
            let _ = self.shared.clusters.set(found);
        }
        Ok(self.shared.clusters.get().and_then(Option::as_ref))
    }

    fn cluster(&self, operand: &Operand) -> Result<Option<ClusteredRows>> {
        let &Analysis { cx, problem, .. } = self;
        let rows = operand.rows();
        let Some(order) = cluster(cx, &rows, CLUSTER, When::Strongly)?.places else {
            return Ok(None);
        };
        let value_type = problem.types.a;
        let copy = match operand {
            Operand::InPlace(_) => permute_rows(cx, &rows, value_type, &order)?,
            Operand::Canonical(copy) => copy.permuted(cx, value_type, &order)?,
        };
        let (operand, order) = (Operand::Canonical(copy), Arc::new(order));
        Ok(Some(ClusteredRows { operand, order, counts: Cell::new(None) }))
    }

    /// Returns whether windows are made of clustered rows, according to the choice. Blocks.
    pub(super) fn takes_clusters(&self, chosen: &Clusters) -> Result<bool> {
        match chosen {
            Clusters::No => Ok(false),
            Clusters::Yes | Clusters::Kept(_) => Ok(self.clusters()?.is_some()),
            Clusters::IfFaster => {
                let Some(clustered) = self.clustered_statistics(&[Algorithm::Window])? else {
                    return Ok(false);
                };
                Ok(clusters_gain(self.cx.device.machine(), self.problem, &clustered, &self.statistics()?))
            }
        }
    }

    /// Calls `f` with the rows from which windows are made: clustered, if that is asked for and possible.
    /// Blocks.
    pub(super) fn with_window_rows<R>(
        &self,
        clusters: bool,
        f: impl FnOnce(&WindowRows<'_>) -> Result<R>,
    ) -> Result<R> {
        let found = if clusters { self.clusters()? } else { None };
        match found {
            Some(ClusteredRows { operand, order, .. }) => {
                let positions = self.positions(operand);
                f(&WindowRows { rows: operand.rows(), positions, order: Some(order) })
            }
            None => self.with_rows(|operand, positions| {
                f(&WindowRows { rows: operand.rows(), positions, order: None })
            }),
        }
    }

    /// Returns the counts on which the rules for windows are based. Blocks unless they are known.
    pub(super) fn window_counts(&self, clusters: bool, shape: WindowShape) -> Result<Counts> {
        let found = if clusters { self.clusters()? } else { None };
        let Some(ClusteredRows { operand, counts, .. }) = found else { return self.counts(shape) };
        if let Some((_, counts)) = counts.get().filter(|(of, _)| *of == shape) {
            return Ok(counts);
        }
        let all = number::count_windows(self.cx, &operand.rows(), shape)?;
        counts.set(Some((shape, all)));
        Ok(all)
    }

    /// Returns the pattern statistics, with rows clustered, for the choice among these algorithms; `None`
    /// where clusters are not worth their time. Blocks.
    pub(super) fn clustered_statistics(&self, among: &[Algorithm]) -> Result<Option<SpmmStatistics>> {
        let SpmmProblem { types, n_hint, .. } = *self.problem;
        let statistics = self.statistics()?;
        let may_pay = || clusters_may_pay(self.cx.device.machine(), &statistics, types, n_hint, among);
        if self.shared.clusters.get().is_none() && !may_pay() {
            return Ok(None);
        }
        if self.clusters()?.is_none() {
            return Ok(None);
        }
        let counts = self.window_counts(true, crate::select::spmm::shape(types.a))?;
        Ok(Some(SpmmStatistics { counts, ..statistics }))
    }

    /// Returns the pattern statistics for the choice of an algorithm.
    pub(super) fn statistics(&self) -> Result<SpmmStatistics> {
        let shape = crate::select::spmm::shape(self.problem.types.a);
        if let Some(rows) = self.unchecked_rows(self.nearest()) {
            self.inspect_and_count(&rows, shape)?;
        }
        let counts = self.counts(shape)?;
        // An executor may have taken rows that are a copy, while their counts were kept.
        self.inspect()?;
        let rows = self.shared.rows.borrow();
        let InspectedRows { operand, stats, .. } = rows.as_ref().expect("rows were inspected");
        let (cols, longest) = (operand.rows().cols as usize, stats.max as usize);
        Ok(SpmmStatistics { cols, longest, counts })
    }
}
