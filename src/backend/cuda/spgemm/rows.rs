//! The factors as kernels take them, and the kernels with the shapes of their
//! launches.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::bins::{Bins, RowBin, GROUP_SPAN};
use super::kernels::Name;
use super::wide::WINDOW;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::operand;
use crate::error::{Error, Result};
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
        Ints { data, wide: i64::from(index == IndexType::I64) }
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
same_layout!(Output = "spgemm/common.cuh Output" { offsets, columns, kept, values, wide, base, known });
/// Threads of a block that takes a row of up to `medium` products, and of more.
pub const SMALL_BLOCK: u32 = 256;
/// All that a block may have: such rows are few.
pub const LARGE_BLOCK: u32 = 1024;

/// A grid of one block a row.
pub fn grid(count: i64) -> Result<u32> {
    i32::try_from(count)
        .map(|count| count as u32)
        .map_err(|_| Error::unsupported(format!("C: {count} long rows are more than a launch takes")))
}

/// Blocks that take a row together, windows of its columns side by side, where there are
/// few rows: no more than run at one time, which are two a multiprocessor, twice; than there are
/// `NARROWEST` columns for; and than four (eight took 235 µs for 28 rows of webbase, four 202).
/// `clusters`: kernels can have them.
pub fn slices(device: &Device, clusters: bool, rows: i64, cols: i64) -> u32 {
    const NARROWEST: i64 = 1024;
    let properties = device.properties();
    let room = 4 * i64::from(properties.multiprocessors);
    let fits = |slices: &u32| {
        let slices = i64::from(*slices);
        rows.saturating_mul(slices) <= room && cols / slices >= NARROWEST
    };
    match clusters {
        true => [4, 2].into_iter().find(fits).unwrap_or(1),
        false => 1,
    }
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
    /// Of at least `part` and `least` lanes, as far as a warp has them, with a
    /// table of so many slots in `bytes`.
    fn new(device: &Device, part: i32, least: u32, table: usize, bytes: usize) -> Self {
        let lanes = (part as u32).max(least.next_power_of_two()).min(32);
        let (threads, shared) = warps_that_fit(device, 32 / lanes as usize * bytes);
        Teams { lanes: lanes as i32, table: table as i32, threads, shared }
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

/// Lanes that take a row of the right factor, where rows have this mean length:
/// most such rows at once, and few lanes without an entry.
pub fn part(mean: f64) -> i32 {
    match mean {
        mean if mean <= 4.5 => 4,
        mean if mean <= 9.0 => 8,
        mean if mean <= 20.0 => 16,
        _ => 32,
    }
}

/// Blocks of so many threads for this many rows (less than 2^32), a warp each.
pub fn warp_blocks(count: i64, threads: u32) -> u32 {
    (count as u64).div_ceil(u64::from(threads / 32)) as u32
}

/// Launch of a kernel with a block a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Columns of a window.
    pub bits: i32,
    /// Sums that shared memory has room for.
    pub room: i32,
    /// Columns of a window of a row with more entries; 0: as the others.
    pub dense: i32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

impl Window {
    /// Shared memory of a thread: two 64-bit numbers for an entry in hand.
    const THREAD_BYTES: usize = 16;
    /// Windows of the whole matrix up to which a row of many entries is better
    /// cut so that its sums stay in shared memory: each costs two searches in
    /// every row of the right factor, a sum in memory some ten times one in
    /// shared memory.
    const DENSE_WINDOWS: usize = 8;

    /// Bits of a window, at most `most`, where so many blocks share the columns.
    fn slice(cols: i64, slices: u32, most: usize) -> usize {
        let each = (cols as u64).div_ceil(u64::from(slices)).next_multiple_of(64);
        each.min(most as u64) as usize
    }

    /// A bitmap alone.
    pub fn count(cols: i64, threads: u32, most_bits: usize) -> Self {
        let bits = (cols as u64).min(most_bits as u64).next_multiple_of(64) as usize;
        let shared = bits / 8 + Self::THREAD_BYTES * threads as usize;
        Window { bits: bits as i32, room: 0, dense: 0, shared: shared as u32 }
    }

    /// A bitmap, a rank for each of its 64-bit words, and sums of `value` bytes,
    /// in `budget` bytes.
    pub fn multiply(cols: i64, threads: u32, most_bits: usize, budget: usize, value: usize) -> Self {
        let fixed = Self::THREAD_BYTES * threads as usize;
        let bytes = |bits: usize, room: usize| bits / 8 + bits / 16 + fixed + room * value;
        let dense = (budget - fixed) * 16 / (16 * value + 3) / 64 * 64;
        let bits = (cols as u64).min(most_bits as u64).next_multiple_of(64) as usize;
        if bits <= dense {
            let shared = bytes(bits, bits) as u32;
            return Window { bits: bits as i32, room: bits as i32, dense: 0, shared };
        }
        let room = (budget - bytes(bits, 0)) / value;
        let few = cols as u64 <= (Self::DENSE_WINDOWS * dense) as u64;
        let dense = if few { dense } else { 0 };
        let shared = bytes(bits, room).max(bytes(dense, dense)) as u32;
        Window { bits: bits as i32, room: room as i32, dense: dense as i32, shared }
    }
}

/// Bytes that a block of the hash kernels needs for a warp: `table` sums and
/// keys, and `most` keys to sort.
fn warp_bytes(table: usize, most: usize, key: usize, value: usize) -> usize {
    table * (key + value) + most * key
}

/// Bytes of a multiprocessor's shared memory that the driver keeps for a block,
/// and may not be asked for.
const RESERVED: usize = 1024;
/// Bytes that the window kernels have besides what a launch asks for.
const FIXED: usize = 384;

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
            // Above, blocks with one table have no bits for a slot beside a column.
            far: right.cols > 1 << 19 && right.cols < 1 << 47,
        }
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
            Name::WindowCount => self.count_window(i64::MAX, LARGE_BLOCK, 1).shared,
            Name::WindowMultiply => Self::window_budget(device, LARGE_BLOCK) as u32,
            Name::TeamCount => {
                let bins = self.symbolic_bins(true);
                let shared = |bin| self.team_count_shape(device, 4, bins.limit(RowBin::Table, bin)).shared;
                bins.of(RowBin::Table).map(shared).max()?
            }
            Name::TeamMultiply => {
                let bins = self.numeric_bins(true);
                let shared = |bin| self.team_multiply_shape(device, bins.limit(RowBin::Table, bin)).shared;
                bins.of(RowBin::Table).map(shared).max()?
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

    /// Lanes that take a row of the right factor where entries are only counted, of
    /// those that take one where their order matters: several rows at a time, which
    /// leaves few lanes without an entry.
    pub fn count_part(part: i32) -> i32 {
        part.min(8)
    }

    /// Teams that count rows of up to `most` products, at least `part` lanes each.
    pub fn team_count_shape(&self, device: &Device, part: i32, most: u32) -> Teams {
        let table = 2 * most as usize;
        Teams::new(device, part, most.div_ceil(16), table, table * self.key)
    }

    /// Teams that compute rows of up to `most` entries; kernels/spgemm/team.cu chooses
    /// the same lanes.
    pub fn team_multiply_shape(&self, device: &Device, most: u32) -> Teams {
        let lanes = match most {
            ..=16 => 4,
            17..=64 => 8,
            65..=128 => 16,
            _ => 32,
        };
        let (table, entries) = (2 * most as usize, most as usize);
        Teams::new(device, lanes, 1, table, table * (self.key + self.value) + 2 * entries)
    }

    /// A block that counts. The bitmaps leave a multiprocessor of 164 KiB two
    /// large blocks, and four small ones.
    pub fn count_window(&self, cols: i64, threads: u32, slices: u32) -> Window {
        let most = if threads == LARGE_BLOCK { 1 << 19 } else { 1 << 18 };
        Window::count(cols, threads, Window::slice(cols, slices, most))
    }

    /// Bytes of shared memory that a block which computes may have: two large
    /// ones or four small ones fill an H100's multiprocessor. At least what a
    /// bitmap of 2^18 columns and some sums need.
    fn window_budget(device: &Device, threads: u32) -> usize {
        let most = device.properties().shared_bytes;
        match threads {
            LARGE_BLOCK => ((most + RESERVED) / 2 - RESERVED - FIXED).max(96 << 10).min(most - FIXED),
            _ => 55 << 10,
        }
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
        let most_bits = if threads == LARGE_BLOCK { 1 << 18 } else { 1 << 17 };
        let most_bits = Window::slice(cols, slices, most_bits);
        Window::multiply(cols, threads, most_bits, Self::window_budget(device, threads), self.value)
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
        let threads = if most <= 2048 { 128 } else { 256 };
        (threads, threads * 12 + 2 * most * self.key as u32)
    }

    /// The same where it computes a row of up to `most` entries.
    pub fn block_multiply_shape(&self, most: u32) -> (u32, u32) {
        let threads = if most <= 1024 { 256 } else { 512 };
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
