//! Builder of windows on the device, bit-identical to [`crate::format::window::WindowLayout::build`], with
//! either kind of tiles ([`TileStore`]).

use bytemuck::Pod;

use super::number::{windows_of, Numbering};
use super::Form;
use crate::backend::cuda::convert::values::Slots;
use crate::backend::cuda::convert::{origins_address, Origins};
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::Parameter;
use crate::backend::cuda::memory::{filled, filled_from, filled_members, DeviceBuffer, Fill};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::spmm::analysis::Analysis;
use crate::backend::cuda::spmm::packing::{Packed, Packing};
use crate::backend::cuda::spmm::parts::WindowLists;
use crate::error::Result;
use crate::format::window::{Rules, WindowShape, WorkItem, WHOLE};
use crate::memory::Context;
use crate::problem::SpmmProblem;
use crate::select::spmm::prefetch::Operands;
use crate::types::Address;

/// Storage of a window's tiles on the device, which records which slots hold an entry, and the kernels that
/// multiply such tiles.
pub(in crate::backend::cuda::spmm) trait TileStore:
    Fill + Sized + Send + Sync
{
    /// Element of the array of values.
    type Value: Pod + Send + Sync;
    /// Layout of the matrix as the kernels take it.
    type Matrix: Parameter;
    /// Shape by which the columns of windows are numbered.
    const NUMBERED: WindowShape;

    /// Chooses the rules by which the windows of a plan are made. Blocks.
    fn rules(analysis: &Analysis<'_>, clusters: bool) -> Result<Rules>;

    /// Returns an error if the layout cannot hold so many entries.
    fn check_entries(nnz: i64) -> Result<()>;

    /// Allocates the tiles of numbered windows of `height` rows, and the array of their values. `counts`: number of
    /// entries, and bytes of a value.
    fn new(
        cx: &Context,
        found: &Numbering,
        height: usize,
        counts: (usize, usize),
    ) -> Result<(Self, DeviceBuffer<Self::Value>)>;

    /// Makes the tiles of a matrix without entries.
    fn empty(cx: &Context) -> Result<Self>;

    /// Enqueues the kernel that fills the tiles and the arrays at these addresses: columns, values, positions in
    /// the user's array (or NULL) and slots (or NULL). `sizes`: rows of a window, and bytes of a value.
    fn fill(
        &self,
        cx: &DeviceCall<'_>,
        rows: &Rows,
        found: &Numbering,
        sizes: (usize, usize),
        arrays: [Address; 4],
    ) -> Result<()>;

    /// Returns the layout as a kernel parameter; `order` has the row of C for each row, or is NULL. `prefetched`:
    /// operands that kernels which can prefetch into L2.
    fn matrix(&self, arrays: &Arrays<Self>, order: Address, prefetched: Option<&Operands>) -> Self::Matrix;

    /// Loads the kernels of a plan, by columns of C.
    fn forms(
        device: &Device,
        problem: &SpmmProblem,
        arrays: &Arrays<Self>,
        rules: &Rules,
    ) -> Result<Vec<Form>>;

    /// Returns which of the kernels multiplies for `n` columns of C.
    fn form_of(forms: &[Form], n: usize) -> usize;

    /// Returns the grid for so many items and tiles along N, and the kernels' last argument.
    fn grid(form: &Form, problem: &SpmmProblem, items: usize, tiles: usize) -> Result<((u32, u32), i32)>;

    /// Returns the rules for copies of B.
    fn packing(device: &Device, problem: &SpmmProblem, arrays: &Arrays<Self>) -> Result<Packing>;

    /// Returns the kernels' flags that only this kind of tiles has.
    fn flags(b: &Packed) -> i64;

    /// Returns the ratio of slots for values to stored entries.
    fn fill_ratio(arrays: &Arrays<Self>) -> f64;

    /// Returns a readable summary.
    fn details(arrays: &Arrays<Self>, clustered: bool) -> String;
}

/// Layout `window` on the device.
pub(in crate::backend::cuda::spmm) struct Arrays<T: TileStore> {
    pub(super) height: usize,
    pub(super) row_count: i64,
    pub(super) nnz: i64,
    /// Number of columns of all windows together.
    pub(super) distinct: i64,
    pub(super) lists: WindowLists,
    pub(super) columns: DeviceBuffer<u32>,
    pub(super) tiles: T,
    pub(super) values: DeviceBuffer<T::Value>,
    pub(super) slots: Option<Slots>,
}
filled_members!(where T: TileStore, Arrays<T> { lists, columns, tiles, values, slots });

impl<T: TileStore> Arrays<T> {
    /// Makes the layout of rows that have been validated and are sorted, with values of `size` bytes. `origins`
    /// is given if values will be updated, with the positions of the user's values. Blocks.
    pub(super) fn build(
        cx: &DeviceCall<'_>,
        rows: &Rows,
        size: usize,
        rules: Rules,
        origins: Origins<'_>,
    ) -> Result<Self> {
        T::check_entries(rows.nnz)?;
        let slots = |nnz: i64| Slots::new(cx, nnz as usize, size, origins);
        let height = rules.height;
        if rows.rows == 0 || rows.nnz == 0 {
            // Every window has no blocks.
            let windows = windows_of(rows.rows, height) as u32;
            let item = |window| WorkItem { window, first: 0, end: 0, part: WHOLE };
            let items: Vec<_> = (0..windows).map(item).collect();
            let empty = Arrays {
                height,
                row_count: rows.rows,
                nnz: 0,
                distinct: 0,
                lists: WindowLists { items: DeviceBuffer::from_slice(cx, &items)?, ..WindowLists::none(cx)? },
                columns: DeviceBuffer::new(cx, 0)?,
                tiles: T::empty(cx)?,
                values: DeviceBuffer::new(cx, 0)?,
                slots: slots(0)?,
            };
            return filled(cx, empty);
        }
        let found = Numbering::new(cx, rows, T::NUMBERED, height, rules.most)?;
        let columns = DeviceBuffer::<u32>::new(cx, found.blocks as usize * T::NUMBERED.block)?;
        let (tiles, values) = T::new(cx, &found, height, (rows.nnz as usize, size))?;
        let slots = slots(rows.nnz)?;
        let (from, to) = (origins_address(origins), Slots::address(slots.as_ref()));
        let arrays = [columns.address(), values.address(), from, to];
        tiles.fill(cx, rows, &found, (height, size), arrays)?;
        let (row_count, nnz, distinct) = (rows.rows, rows.nnz, found.distinct);
        let lists = found.lists;
        let made = Arrays { height, row_count, nnz, distinct, lists, columns, tiles, values, slots };
        filled_from(cx, made, found.arrays)
    }
}
