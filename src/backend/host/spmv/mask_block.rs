//! SpMV `mask_block`: y = alpha · op(A) · x + beta · y on [`MaskBlock`], in the order
//! of sums that its file describes, a slab or part a share. Nothing depends on the
//! number of threads.

use crate::backend::host::operand::{with_rows, Operand, Shared};
use crate::backend::host::scalars::Scalars;
use crate::backend::host::schedule;
use crate::backend::{memory, Context, LayoutInfo, SpmvExecutor, SpmvProblem};
use crate::error::Result;
use crate::layout::mask_block::{BlockHead, Rules, COLUMNS, CUT, MOST_ROWS, WORD_ROWS};
use crate::layout::sell::Origin;
use crate::layout::MaskBlock;
use crate::matrix::DenseVector;
use crate::select::{Choice, Source};
use crate::support::Combo;
use crate::types::{Accumulator, Address, LayoutKind, Storage};

/// Slabs of an item: some 4 µs at 25 blocks of 8 rows each, against some 30 ns that taking an
/// item costs.
const ITEM_HEADS: usize = 16;

/// Rows of the blocks whose entries are added to different sums: lanes of a warp.
const WARP: usize = 32;

/// The executor.
pub(super) struct MaskBlockSpmv<C: Combo> {
    problem: SpmvProblem,
    layout: MaskBlock<C::A>,
}

fn arrange<C: Combo>(cx: &Context, problem: &SpmvProblem) -> Result<MaskBlock<C::A>> {
    let keep = problem.value_updates;
    // A copy on the way, since the rows must be sorted.
    let operand = Operand::<C::A>::build(cx, &problem.a, problem.op, Source::Canonical, "A", keep)?;
    let positions = match &operand {
        Operand::InPlace(_) => None,
        Operand::Canonical(layout) => layout.positions(),
    };
    let origin = Origin { keep, positions };
    with_rows!(&operand, "A", rows => {
        let rows: Rows<'_, _, _, C::A> = rows;
        MaskBlock::build(&cx.allocator, &rows.pattern, rows.values, origin, Rules::host)
    })
}

impl<C: Combo> MaskBlockSpmv<C> {
    pub(super) fn build(cx: &Context, problem: &SpmvProblem, _choice: &Choice) -> Result<Self> {
        Ok(MaskBlockSpmv { problem: *problem, layout: arrange::<C>(cx, problem)? })
    }

    /// Execute, on all threads or on this one.
    pub(super) fn run(
        &self,
        cx: &Context,
        parallel: bool,
        (alpha, beta): (Address, Address),
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<()> {
        let scalars = Scalars::<C::Acc>::read(alpha, beta)?;
        let len = y.len as usize;
        // SAFETY: the descriptor promises that many elements, which nothing
        // else uses during the call; the plan has refused an x that overlaps.
        let y = unsafe { memory::open_mut::<C::Y>("y", y.values, len)? };
        if scalars.skip_product() {
            scalars.scale(parallel, y, 1, len, len);
            return Ok(());
        }
        // SAFETY: the descriptor promises that many elements, unchanged during
        // the call.
        let x = unsafe { memory::open::<C::X>("x", x.values, x.len as usize)? };
        cx.workspace.require(self.workspace_bytes())?;
        let layout = &self.layout;
        let height = layout.block_rows;
        // SAFETY: `require` has checked the size; the handle lends its
        // workspace to one call at a time.
        let sums = unsafe {
            memory::open_mut::<C::Acc>("workspace", cx.workspace.address, layout.parts.len() * height)?
        };
        let (y, sums) = (Shared::new(y), Shared::new(sums));
        let store = |slab: usize, sums: &[C::Acc; MOST_ROWS]| {
            let rows = slab * height..layout.row_count.min((slab + 1) * height);
            // SAFETY: each slab is stored once, and y is borrowed until all are done.
            let y = unsafe { y.part(rows) };
            for (y, &sum) in y.iter_mut().zip(sums) {
                scalars.store(sum, y);
            }
        };
        let slabs = layout.slabs();
        schedule::for_each(parallel, layout.heads.len().div_ceil(ITEM_HEADS), |item| {
            let first = item * ITEM_HEADS;
            for number in first..layout.heads.len().min(first + ITEM_HEADS) {
                let head = &layout.heads[number];
                if head.flags & CUT != 0 {
                    continue;
                }
                let total = self.sum(head, x);
                match number.checked_sub(slabs) {
                    None => store(number, &total),
                    Some(part) => {
                        for (row, &sum) in total[..height].iter().enumerate() {
                            // SAFETY: a part's sums belong to one item, and nothing
                            // reads them before all are done.
                            unsafe { sums.set(part * height + row, sum) };
                        }
                    }
                }
            }
        });
        for (number, part) in layout.parts.iter().enumerate() {
            if part.first as usize != number {
                continue;
            }
            let mut total = [C::Acc::ZERO; MOST_ROWS];
            for part in number..number + part.count as usize {
                for (row, total) in total[..height].iter_mut().enumerate() {
                    // SAFETY: all items are done, so nothing writes sums.
                    *total += unsafe { sums.get(part * height + row) };
                }
            }
            store(part.slab as usize, &total);
        }
        Ok(())
    }

    /// The sums of a slab's or part's rows.
    fn sum(&self, head: &BlockHead, x: &[C::X]) -> [C::Acc; MOST_ROWS] {
        let strands = WARP / self.layout.block_rows;
        let mut sums = [[C::Acc::ZERO; MOST_ROWS]; WARP / WORD_ROWS];
        let mut strand = 0;
        self.layout.for_each_block_of(head, |column, mask, first| {
            let (mut left, mut value) = (mask, first);
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                let (row, inside) = (bit / COLUMNS, bit % COLUMNS);
                sums[strand][row] += self.layout.values[value].widen() * x[column + inside].widen();
                value += 1;
                left &= left - 1;
            }
            strand = (strand + 1) % strands;
        });
        let mut step = 1;
        while step < strands {
            for strand in (0..strands).step_by(2 * step) {
                let (left, right) = sums.split_at_mut(strand + step);
                for (sum, &other) in left[strand].iter_mut().zip(&right[0]) {
                    *sum += other;
                }
            }
            step *= 2;
        }
        sums[0]
    }
}

impl<C: Combo> SpmvExecutor for MaskBlockSpmv<C> {
    fn workspace_bytes(&self) -> usize {
        self.layout.parts.len() * self.layout.block_rows * size_of::<C::Acc>()
    }

    fn execute(
        &self,
        cx: &Context,
        alpha: Address,
        x: &DenseVector,
        beta: Address,
        y: &DenseVector,
    ) -> Result<()> {
        let units = self.layout.values.len() + self.layout.row_count;
        self.run(cx, schedule::is_parallel(units), (alpha, beta), x, y)
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
        // SAFETY: the descriptor promises that many values, which stay valid and
        // unchanged while a call that reads them runs.
        let values = unsafe { memory::open("A", values, renewed.a.shape().2 as usize)? };
        if !self.layout.refill(values, renewed.op.conjugates()) {
            self.layout = arrange::<C>(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        LayoutInfo { kind: LayoutKind::MaskBlock, in_place: false, fill: self.layout.fill_ratio() }
    }

    fn details(&self) -> String {
        self.layout.details()
    }
}
