//! The factors as kernels take them, and the kernels with the shapes of their
//! launches.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::bins::{Bins, RowBin, GROUP_SPAN};
use super::kernels::Name;
use super::wide::WINDOW;
use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::operand;
use crate::error::{Error, Result};
use crate::memory::Context;
use crate::select::spgemm::bins::is_far;
use crate::select::spgemm::rows::{
    lanes_that_count, lanes_that_multiply, threads_that_count, threads_that_multiply,
};
use crate::select::spgemm::windows::{count_window, multiply_window, window_budget, Window, LARGE_BLOCK};
use crate::support::Types;
use crate::types::{Address, DataType, IndexType};

/// Offsets or columns of either width: the kernels' `Ints`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ints {
    data: Address,
    wide: i64,
}

impl Ints {
    /// Of this type.
    pub fn new(data: Address, index: IndexType) -> Self {
        Ints { data, wide: index.wide() }
    }

    /// No numbers.
    pub const NONE: Ints = Ints { data: Address::NULL, wide: 0 };

    /// Those from the `at`-th on.
    pub fn after(self, at: usize) -> Self {
        match self.data.is_null() {
            true => self,
            false => Ints { data: self.data.offset(at * if self.wide == 0 { 4 } else { 8 }), ..self },
        }
    }
}

/// A factor's pattern: the kernels' `Factor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    offsets: Ints,
    indices: Ints,
    base: i64,
}

impl Factor {
    /// The pattern of these rows.
    pub fn of(rows: &operand::Rows) -> Self {
        Factor {
            offsets: Ints::new(rows.offsets, rows.offset_type),
            indices: Ints::new(rows.indices, rows.index_type),
            base: rows.base,
        }
    }

    /// Where its rows begin.
    pub fn offsets(&self) -> Ints {
        self.offsets
    }
}

/// Rows of a bin: the kernels' `Listed`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub rows: Address,
    pub count: i64,
    /// How many there are, where only the device knows; else NULL.
    pub counted: Address,
    /// Low and high halves of the sum of all products: there are no rows if they are more than `most`.
    pub products: Address,
    pub most: i64,
}

impl Listed {
    /// So many rows.
    pub fn new(rows: Address, count: i64) -> Self {
        Listed { rows, count, counted: Address::NULL, products: Address::NULL, most: 0 }
    }
}

/// Where columns and values go: the kernels' `Output`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Offsets of the rows of the product.
    pub offsets: Address,
    /// The user's columns, or NULL.
    pub columns: Address,
    /// The plan's columns, or NULL.
    pub kept: Address,
    /// Values.
    pub values: Address,
    /// The user's columns have 64 bits.
    pub wide: i64,
    /// The user's index base.
    pub base: i64,
    /// `kept` has been filled before.
    pub known: i64,
    /// Columns of a row ascend; else they are in the order that costs least, always the same.
    pub sorted: i64,
}

/// Bits of the order of a factor's columns: none descends in its row.
pub const SORTED: i32 = 1;
/// None is twice in its row.
pub const DISTINCT: i32 = 2;

/// What is known where kernel `spgemm_order` found these flags. Columns that
/// descend somewhere may be there twice without following each other.
pub fn order(flags: u32) -> i32 {
    match flags {
        0 => SORTED | DISTINCT,
        flags if flags & 1 == 0 => SORTED,
        _ => 0,
    }
}

same_layout!(Ints = "spgemm/common.cuh Ints" { data, wide });
same_layout!(Factor = "spgemm/common.cuh Factor" { offsets, indices, base });
same_layout!(Listed = "spgemm/common.cuh Listed" { rows, count, counted, products, most });
same_layout!(Output = "spgemm/common.cuh Output" { offsets, columns, kept, values, wide, base, known, sorted });

/// Numbers at the most that one block sums up (`scan_in_block` in kernels/spgemm/common.cuh).
pub const SCANNED_BY_A_BLOCK: usize = 4096;

/// Each of the numbers becomes the sum of those before it. Only launches.
///
/// # Safety
/// There are `count` numbers on the device of the current context.
pub unsafe fn scan(cx: &Context, kernels: &Kernels, numbers: Address, count: usize) -> Result<()> {
    if count > SCANNED_BY_A_BLOCK {
        // SAFETY: the caller's promise.
        return unsafe { device_wide::exclusive_scan(cx, numbers, numbers, count) };
    }
    // SAFETY: the same; as many as the kernel takes.
    unsafe { launch!(kernels.get(Name::ScanFew)?, 1, 1024, 0, cx.stream; numbers, count as i32) }
}

/// A grid of one block a row.
pub fn grid(count: i64) -> Result<u32> {
    i32::try_from(count)
        .map(|count| count as u32)
        .map_err(|_| Error::unsupported(format!("C: {count} long rows are more than a launch takes")))
}

/// Threads of a block of the kernels with a warp a row.
pub const WARPS_BLOCK: u32 = 128;

/// Launch of a kernel with a warp a row and a table in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Slots of a warp's table.
    pub table: i32,
}

impl Shape {
    /// Four warps, or as many as the shared memory serves.
    fn new(device: &Device, table: u32, bytes: usize) -> Self {
        let (threads, shared) = warps_that_fit(device, bytes);
        Shape { threads, shared, table: table as i32 }
    }

    /// Blocks for this many rows.
    pub fn blocks(&self, count: i64) -> u32 {
        warp_blocks(count, self.threads)
    }
}

/// Launch of a kernel with a team a row.
#[derive(Clone, Copy, Debug)]
pub struct Teams {
    /// Lanes of a team.
    pub lanes: i32,
    /// Slots of a team's table.
    pub table: i32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

impl Teams {
    /// Of so many lanes, with a table of so many slots in `bytes`.
    fn new(device: &Device, lanes: i32, table: usize, bytes: usize) -> Self {
        let (threads, shared) = warps_that_fit(device, 32 / lanes as usize * bytes);
        Teams { lanes, table: table as i32, threads, shared }
    }

    /// Blocks for this many rows (less than 2^32).
    pub fn blocks(&self, count: i64) -> u32 {
        (count as u64).div_ceil(u64::from(self.threads) / self.lanes as u64) as u32
    }
}

/// Threads of a block of four warps that take these bytes each, or of as many as the
/// shared memory serves, and the block's bytes.
fn warps_that_fit(device: &Device, bytes: usize) -> (u32, u32) {
    let warps = (device.properties().shared_bytes / bytes).clamp(1, WARPS_BLOCK as usize / 32);
    (32 * warps as u32, (warps * bytes) as u32)
}

/// Blocks of so many threads for this many rows (less than 2^32), a warp each.
pub fn warp_blocks(count: i64, threads: u32) -> u32 {
    (count as u64).div_ceil(u64::from(threads / 32)) as u32
}

/// Bytes that a block of the hash kernels needs for a warp: `table` sums and
/// keys, and `most` keys to sort.
fn warp_bytes(table: usize, most: usize, key: usize, value: usize) -> usize {
    table * (key + value) + most * key
}

/// The kernels of one product, each fetched when it is first needed: most products have rows for few.
pub struct Kernels {
    device: Arc<Device>,
    /// As kernels have them: the types of values, and of the right factor's columns.
    types: &'static str,
    columns: IndexType,
    /// By [`Name`].
    loaded: [OnceCell<Kernel>; Name::COUNT],
    key: usize,
    value: usize,
    /// Blocks with a bitmap would look at many windows of the right factor's columns.
    far: bool,
}

impl Kernels {
    /// None is loaded yet.
    pub fn new(device: &Arc<Device>, types: Types, right: &operand::Rows) -> Self {
        Kernels {
            device: Arc::clone(device),
            types: match types.a {
                DataType::R64F => "f64",
                DataType::R16F => "f16f32",
                DataType::R16BF => "bf16f32",
                DataType::C32F => "c32",
                DataType::C64F => "c64",
                _ => "f32",
            },
            columns: right.index_type,
            loaded: std::array::from_fn(|_| OnceCell::new()),
            key: right.index_type.size(),
            value: types.y.size(),
            far: is_far(right.cols),
        }
    }

    /// Bytes of a value of C.
    pub fn value_size(&self) -> usize {
        self.value
    }

    /// Whether blocks of the kernels can be in clusters, and begin early ([`Kernel::is_of_90`]). The context is current.
    pub fn are_of_90(&self) -> Result<bool> {
        Ok(self.get(Name::Products)?.is_of_90())
    }

    /// A kernel, which is allowed the shared memory that launches ask for. The context is current.
    pub fn get(&self, name: Name) -> Result<Kernel> {
        let load = || {
            let kernel = name.load(&self.device, self.types, self.columns)?;
            if let Some(shared) = self.most_shared(name) {
                kernel.allow_shared(shared)?;
            }
            Ok(kernel)
        };
        self.loaded[name as usize].get_or_try_init(load).copied()
    }

    /// Most dynamic shared memory of a launch, where it may be more than any kernel has. Plans share the
    /// kernels, so it must not depend on the matrices.
    fn most_shared(&self, name: Name) -> Option<u32> {
        let device = &self.device;
        let (symbolic, numeric) = (self.symbolic_bins(false), self.numeric_bins(false));
        Some(match name {
            Name::HashCount => self.hash_count_shape(device, symbolic.largest(RowBin::Table)).shared,
            Name::HashMultiply => self.hash_multiply_shape(device, numeric.largest(RowBin::Table)).shared,
            Name::WindowCount => count_window(i64::MAX, LARGE_BLOCK, 1).shared,
            Name::WindowMultiply => window_budget(device.properties().shared_bytes, LARGE_BLOCK) as u32,
            Name::TeamCount => {
                let bins = self.symbolic_bins(true);
                let shape = |bin| self.team_count_shape(device, 4, bins.limit(RowBin::Table, bin), i64::MAX);
                bins.of(RowBin::Table).map(|bin| shape(bin).shared).max()?
            }
            Name::TeamMultiply => {
                let bins = self.numeric_bins(true);
                let shape = |bin| self.team_multiply_shape(device, bins.limit(RowBin::Table, bin), i64::MAX);
                bins.of(RowBin::Table).map(|bin| shape(bin).shared).max()?
            }
            Name::GroupMultiply => Self::group_shape(device, numeric.largest(RowBin::SamePattern)).shared,
            Name::SlideMultiply => {
                let kind = RowBin::ShiftedPattern;
                numeric.of(kind).map(|bin| self.slide_shape(device, numeric.limit(kind, bin)).shared).max()?
            }
            Name::BlockCount => {
                let (bins, kind) = (Bins::symbolic(false, true), RowBin::BlockTable);
                bins.of(kind).map(|bin| self.block_count_shape(bins.limit(kind, bin)).1).max()?
            }
            Name::BlockMultiply => {
                let bins = Bins::numeric(false, self.key, self.value, true);
                let kind = RowBin::BlockTable;
                bins.of(kind).map(|bin| self.block_multiply_shape(bins.limit(kind, bin)).1).max()?
            }
            Name::WideMultiply => self.wide_shared(),
            _ => return None,
        })
    }

    /// A warp that counts rows of up to `most` products.
    pub fn hash_count_shape(&self, device: &Device, most: u32) -> Shape {
        Shape::new(device, 2 * most, 2 * most as usize * self.key)
    }

    /// A warp that computes rows of up to `most` entries.
    pub fn hash_multiply_shape(&self, device: &Device, most: u32) -> Shape {
        let most_entries = most as usize;
        Shape::new(device, 2 * most, warp_bytes(2 * most_entries, most_entries, self.key, self.value))
    }

    /// Teams that count so many rows of up to `most` products, at least `part` lanes each.
    pub fn team_count_shape(&self, device: &Device, part: i32, most: u32, rows: i64) -> Teams {
        let table = 2 * most as usize;
        let lanes = lanes_that_count(part, most, rows, device.properties().multiprocessors);
        Teams::new(device, lanes, table, table * self.key)
    }

    /// Teams that compute so many rows of up to `most` entries.
    pub fn team_multiply_shape(&self, device: &Device, most: u32, rows: i64) -> Teams {
        let lanes = lanes_that_multiply(most, rows, device.properties().multiprocessors);
        // A warp has an entry for each lane.
        let entries = if lanes == 32 { most.max(32) } else { most } as usize;
        let table = 2 * entries;
        Teams::new(device, lanes, table, table * (self.key + self.value) + 2 * entries)
    }

    /// Threads of a block that computes, of a bin whose blocks have so many: complex fp64 with 64-bit
    /// columns fits the registers of half as many; kernels/spgemm/window.cu has the same.
    pub fn multiply_threads(&self, threads: u32) -> u32 {
        if self.value > 8 && self.key > 4 {
            threads.min(LARGE_BLOCK / 2)
        } else {
            threads
        }
    }

    /// A block that computes.
    pub fn multiply_window(&self, device: &Device, cols: i64, threads: u32, slices: u32) -> Window {
        multiply_window(device.properties().shared_bytes, cols, threads, slices, self.value)
    }

    /// Bytes of shared memory of a block that counts groups whose columns are in
    /// a range of `span`.
    pub fn group_count_shared(span: u32) -> u32 {
        debug_assert!(i64::from(span) <= GROUP_SPAN);
        WARPS_BLOCK / 32 * span.div_ceil(32) * 4
    }

    /// Warps of `bytes` that sum groups.
    pub fn group_shape(device: &Device, bytes: u32) -> Shape {
        Shape::new(device, 0, bytes as usize)
    }

    /// Bytes that a warp has for the sums of slides of rows of up to `most` entries:
    /// of several rows where they are short.
    pub fn slide_sums(&self, most: u32) -> u32 {
        most.max(128) * self.value as u32
    }

    /// Warps that sum slides of rows of up to `most` entries; kernels/spgemm/slide.cu
    /// has the same.
    pub fn slide_shape(&self, device: &Device, most: u32) -> Shape {
        let (factors, products) = (64 * 16, 1024 * 2);
        let entries = most as usize * (3 * self.key + 4);
        Shape::new(device, 0, factors + products + entries + self.slide_sums(most) as usize)
    }

    /// Threads and bytes of shared memory of a block that counts a row of up to `most`
    /// products with one table.
    pub fn block_count_shape(&self, most: u32) -> (u32, u32) {
        let threads = threads_that_count(most);
        (threads, threads * 12 + 2 * most * self.key as u32)
    }

    /// The same where it computes a row of up to `most` entries.
    pub fn block_multiply_shape(&self, most: u32) -> (u32, u32) {
        let threads = threads_that_multiply(most);
        (threads, threads * 12 + 2 * most * (self.key + self.value + 4) as u32)
    }

    /// Bins of rows whose products are known.
    pub fn symbolic_bins(&self, distinct: bool) -> Bins {
        Bins::symbolic(distinct, self.far)
    }

    /// Bins of rows whose entries are known.
    pub fn numeric_bins(&self, distinct: bool) -> Bins {
        Bins::numeric(distinct, self.key, self.value, self.far)
    }

    /// Bytes of shared memory of a block that sums windows of wide rows.
    pub fn wide_shared(&self) -> u32 {
        WARPS_BLOCK / 32 * (WINDOW as usize * self.value) as u32
    }
}
