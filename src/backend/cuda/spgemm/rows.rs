//! Parameters of the kernels of SpGEMM `hash` (factors, lists of rows, output arrays), and the kernels with
//! the shapes of their launches.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use super::bins::{Bins, RowBin, GROUP_SPAN};
use super::kernels::Name;
use super::wide::WINDOW;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::operand;
use crate::error::{Error, Result};
use crate::select::spgemm::bins::is_far;
use crate::select::spgemm::rows::{
    lanes_that_count, lanes_that_multiply, threads_that_count, threads_that_multiply,
};
use crate::select::spgemm::windows::{count_window, multiply_window, window_budget, Window, LARGE_BLOCK};
use crate::support::Types;
use crate::types::{Address, DataType, IndexType};

kernel_structs! {
    /// Array of offsets or column indices of 32 or 64 bits; the kernels' `Ints`.
    pub struct Ints = "spgemm/common.cuh Ints" {
        data: Address,
        wide: i64,
    }
}

impl Ints {
    /// Refers to an array of numbers of this type.
    pub fn new(data: Address, index: IndexType) -> Self {
        Ints { data, wide: index.wide() }
    }

    /// NULL, without numbers.
    pub const NONE: Ints = Ints { data: Address::NULL, wide: 0 };

    /// Refers to the numbers from index `at` on.
    pub fn after(self, at: usize) -> Self {
        match self.data.is_null() {
            true => self,
            false => Ints { data: self.data.offset(at * if self.wide == 0 { 4 } else { 8 }), ..self },
        }
    }
}

kernel_structs! {
    /// Pattern of a factor; the kernels' `Factor`.
    pub struct Factor = "spgemm/common.cuh Factor" {
        offsets: Ints,
        indices: Ints,
        base: i64,
    }
}

impl Factor {
    /// Returns the pattern of these rows.
    pub fn of(rows: &operand::Rows) -> Self {
        Factor {
            offsets: Ints::new(rows.offsets, rows.offset_type),
            indices: Ints::new(rows.indices, rows.index_type),
            base: rows.base,
        }
    }

    /// Returns the row offsets.
    pub fn offsets(&self) -> Ints {
        self.offsets
    }
}

kernel_structs! {
    /// List of the rows of a bin; the kernels' `Listed`.
    pub struct Listed = "spgemm/common.cuh Listed" {
        pub rows: Address,
        pub count: i64,
        /// Address of the number of rows if only the device knows it, or else NULL.
        pub counted: Address,
        /// Low and high halves of the sum of all products. If it is more than `most`, kernels take the list as
        /// empty.
        pub products: Address,
        pub most: i64,
    }
}

impl Listed {
    /// Refers to a list of `count` rows.
    pub fn new(rows: Address, count: i64) -> Self {
        Listed { rows, count, counted: Address::NULL, products: Address::NULL, most: 0 }
    }
}

kernel_structs! {
    /// Arrays that receive column indices and values; the kernels' `Output`.
    pub struct Output = "spgemm/common.cuh Output" {
        /// Row offsets of the product.
        pub offsets: Address,
        /// The user's column indices, or NULL.
        pub columns: Address,
        /// The plan's column indices (base 0), or NULL.
        pub kept: Address,
        /// Values of the product.
        pub values: Address,
        /// 1 if the user's column indices have 64 bits.
        pub wide: i64,
        /// Index base of the user's column indices.
        pub base: i64,
        /// 1 if `kept` has been filled before.
        pub known: i64,
        /// 1 if the columns of a row must ascend; otherwise they may be in the order that costs least, which is
        /// always the same.
        pub sorted: i64,
    }
}

/// Flag of a factor's order: in each row, no column is less than the one before it.
pub const SORTED: i32 = 1;
/// Flag of a factor's order: no row has a column twice.
pub const DISTINCT: i32 = 2;

/// Returns the order of a factor for which kernel `spgemm_order` returned these flags. Columns that descend
/// somewhere may also be repeated, since equal ones need not be neighbours.
pub fn order(flags: u32) -> i32 {
    match flags {
        0 => SORTED | DISTINCT,
        flags if flags & 1 == 0 => SORTED,
        _ => 0,
    }
}

/// Returns a grid with one block for each of `count` rows; an error if a launch takes fewer.
pub fn grid(count: i64) -> Result<u32> {
    i32::try_from(count)
        .map(|count| count as u32)
        .map_err(|_| Error::unsupported(format!("C: {count} long rows are more than a launch takes")))
}

/// Threads of a block of the kernels in which a warp processes a row.
pub const WARPS_BLOCK: u32 = 128;

/// Launch shape of a kernel in which a team of lanes, or a whole warp, processes a row, with a table in shared
/// memory.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Lanes of a team.
    pub lanes: i32,
    /// Slots of a team's table.
    pub table: i32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

/// Maximum number of bytes of sums and buffers with which one or two lanes compute a row of a shifted run: with
/// more, too few warps fit a multiprocessor.
const MOST_BY_LANES: u32 = 14 << 10;

impl Shape {
    /// Teams of `lanes` lanes, each with a table of `table` slots in `bytes` bytes.
    fn new(device: &Device, lanes: i32, table: usize, bytes: usize) -> Self {
        let (threads, shared) = warps_that_fit(device, 32 / lanes as usize * bytes);
        Shape { lanes, table: table as i32, threads, shared }
    }

    /// Returns the number of blocks for `count` rows (less than 2^32).
    pub fn blocks(&self, count: i64) -> u32 {
        (count as u64).div_ceil(u64::from(self.threads) / self.lanes as u64) as u32
    }
}

/// Returns the threads and the bytes of shared memory of a block whose warps need `bytes` each: four warps,
/// or as many as fit.
fn warps_that_fit(device: &Device, bytes: usize) -> (u32, u32) {
    let warps = (device.properties().shared_bytes / bytes).clamp(1, WARPS_BLOCK as usize / 32);
    (32 * warps as u32, (warps * bytes) as u32)
}

/// Returns the number of blocks of `threads` threads for `count` rows (less than 2^32), one warp per row.
pub fn warp_blocks(count: i64, threads: u32) -> u32 {
    (count as u64).div_ceil(u64::from(threads / 32)) as u32
}

/// Returns the bytes of shared memory of a warp of the hash kernels: `table` sums and keys, and `most` keys
/// to sort.
fn warp_bytes(table: usize, most: usize, key: usize, value: usize) -> usize {
    table * (key + value) + most * key
}

/// Returns values of this type and the sums of their products as the names of kernels spell them.
pub fn types_of_factors(values: DataType) -> &'static str {
    match values {
        DataType::R64F => "f64",
        DataType::R16F => "f16f32",
        DataType::R16BF => "bf16f32",
        DataType::C32F => "c32",
        DataType::C64F => "c64",
        _ => "f32",
    }
}

/// Kernels of one product. Each is loaded when it is first needed, since most products have rows for few of
/// them.
pub struct Kernels {
    device: Arc<Device>,
    /// Types of values, as in kernel names.
    types: &'static str,
    /// Type of the right factor's column indices.
    columns: IndexType,
    /// Loaded kernels, indexed by [`Name`].
    loaded: [OnceCell<Kernel>; Name::COUNT],
    /// Bytes of a column index.
    key: usize,
    /// Bytes of a value of C.
    value: usize,
    /// True if blocks with a bitmap would go through many windows of the right factor's columns.
    far: bool,
}

impl Kernels {
    /// Prepares the kernels for a right factor with `cols` columns, whose indices are of type `columns`, without
    /// loading any.
    pub fn new(device: &Arc<Device>, types: Types, (columns, cols): (IndexType, i64)) -> Self {
        Kernels {
            device: Arc::clone(device),
            types: types_of_factors(types.a),
            columns,
            loaded: std::array::from_fn(|_| OnceCell::new()),
            key: columns.size(),
            value: types.y.size(),
            far: is_far(cols),
        }
    }

    /// Returns the bytes of a value of C.
    pub fn value_size(&self) -> usize {
        self.value
    }

    /// Returns whether the kernels can use thread block clusters ([`Kernel::is_of_90`]). The context must be
    /// current.
    pub fn have_clusters(&self) -> Result<bool> {
        Ok(self.get(Name::Products)?.is_of_90())
    }

    /// Returns a kernel, loaded if necessary and with the shared memory that its launches need allowed. The
    /// context must be current.
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

    /// Returns the maximum dynamic shared memory of a launch, for kernels that may need more than the default
    /// limit. Plans share the kernels, so it must not depend on the matrices.
    fn most_shared(&self, name: Name) -> Option<u32> {
        let device = &self.device;
        let (symbolic, numeric) = (self.symbolic_bins(false), self.numeric_bins(false));
        Some(match name {
            Name::HashCount => self.hash_count_shape(device, symbolic.largest(RowBin::Table)).shared,
            Name::HashMultiply => self.hash_multiply_shape(device, numeric.largest(RowBin::Table)).shared,
            Name::BitmapCount => count_window(i64::MAX, LARGE_BLOCK, 1).shared,
            Name::BitmapMultiply => window_budget(device.properties().shared_bytes, LARGE_BLOCK) as u32,
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
            Name::SamePatternMultiply => {
                Self::group_shape(device, numeric.largest(RowBin::SamePattern)).shared
            }
            Name::ShiftedPatternMultiply => {
                let kind = RowBin::ShiftedPattern;
                numeric
                    .of(kind)
                    .map(|bin| self.shifted_run_shape(device, numeric.limit(kind, bin)).shared)
                    .max()?
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
            Name::DenseWindowsMultiply => self.wide_shared(),
            _ => return None,
        })
    }

    /// Returns the launch shape of the hash kernel that counts rows of up to `most` products.
    pub fn hash_count_shape(&self, device: &Device, most: u32) -> Shape {
        let table = 2 * most as usize;
        Shape::new(device, 32, table, table * self.key)
    }

    /// Returns the launch shape of the hash kernel that computes rows of up to `most` entries.
    pub fn hash_multiply_shape(&self, device: &Device, most: u32) -> Shape {
        let most = most as usize;
        Shape::new(device, 32, 2 * most, warp_bytes(2 * most, most, self.key, self.value))
    }

    /// Returns the launch shape of teams of at least `part` lanes that count `rows` rows of up to `most`
    /// products.
    pub fn team_count_shape(&self, device: &Device, part: i32, most: u32, rows: i64) -> Shape {
        let table = 2 * most as usize;
        let lanes = lanes_that_count(part, most, rows, device.properties().multiprocessors);
        Shape::new(device, lanes, table, table * self.key)
    }

    /// Returns the launch shape of teams that compute `rows` rows of up to `most` entries.
    pub fn team_multiply_shape(&self, device: &Device, most: u32, rows: i64) -> Shape {
        let lanes = lanes_that_multiply(most, rows, device.properties().multiprocessors);
        // A whole warp has room for at least one entry per lane.
        let entries = if lanes == 32 { most.max(32) } else { most } as usize;
        let table = 2 * entries;
        Shape::new(device, lanes, table, table * (self.key + self.value) + 2 * entries)
    }

    /// Returns the number of threads of a block with a bitmap that computes a row, in a bin whose blocks
    /// otherwise have `threads`: with complex fp64 and 64-bit column indices, the registers suffice for half
    /// as many as [`LARGE_BLOCK`]. kernels/spgemm/bitmap.cu has the same limit.
    pub fn multiply_threads(&self, threads: u32) -> u32 {
        if self.value > 8 && self.key > 4 {
            threads.min(LARGE_BLOCK / 2)
        } else {
            threads
        }
    }

    /// Returns the window of a block with a bitmap that computes a row.
    pub fn multiply_window(&self, device: &Device, cols: i64, threads: u32, slices: u32) -> Window {
        multiply_window(device.properties().shared_bytes, cols, threads, slices, self.value)
    }

    /// Returns the bytes of shared memory of a block that counts groups whose columns are in a range of
    /// `span`.
    pub fn group_count_shared(span: u32) -> u32 {
        debug_assert!(i64::from(span) <= GROUP_SPAN);
        WARPS_BLOCK / 32 * span.div_ceil(32) * 4
    }

    /// Returns the launch shape of warps with `bytes` of shared memory each that compute groups.
    pub fn group_shape(device: &Device, bytes: u32) -> Shape {
        Shape::new(device, 32, 0, bytes as usize)
    }

    /// Returns the bytes that a warp has for the sums of shifted runs whose rows have up to `most` entries:
    /// those of 16 or 32 rows at a time, of one or two lanes each, and two buffers for as many rows of the right
    /// factor with up to nine entries; or, where that is too much, those of a row, or of several short ones.
    pub fn shifted_run_sums(&self, most: u32) -> u32 {
        let rows = if self.value <= 4 { 32 } else { 16 };
        let by_lanes = ((rows + 1) * most + 2 * rows * 9) * self.value as u32;
        if self.value <= 8 && by_lanes <= MOST_BY_LANES {
            by_lanes
        } else {
            most.max(128) * self.value as u32
        }
    }

    /// Returns the launch shape of warps that compute shifted runs whose rows have up to `most` entries.
    /// kernels/spgemm/shifted_pattern.cu has the same sizes.
    pub fn shifted_run_shape(&self, device: &Device, most: u32) -> Shape {
        let (factors, products) = (64 * 16, 1024 * 2);
        let entries = most as usize * (3 * self.key + 4);
        Shape::new(device, 32, 0, factors + products + entries + self.shifted_run_sums(most) as usize)
    }

    /// Returns the threads and the bytes of shared memory of a block that counts a row of up to `most`
    /// products with one table.
    pub fn block_count_shape(&self, most: u32) -> (u32, u32) {
        let threads = threads_that_count(most);
        (threads, threads * 12 + 2 * most * self.key as u32)
    }

    /// Returns the threads and the bytes of shared memory of a block that computes a row of up to `most`
    /// entries with one table.
    pub fn block_multiply_shape(&self, most: u32) -> (u32, u32) {
        let threads = threads_that_multiply(most);
        (threads, threads * 12 + 2 * most * (self.key + self.value + 4) as u32)
    }

    /// Returns the limits of the symbolic phase's bins, by products.
    pub fn symbolic_bins(&self, distinct: bool) -> Bins {
        Bins::symbolic(distinct, self.far)
    }

    /// Returns the limits of the numeric phase's bins, by entries of C.
    pub fn numeric_bins(&self, distinct: bool) -> Bins {
        Bins::numeric(distinct, self.key, self.value, self.far)
    }

    /// Returns the bytes of shared memory of a block that computes windows of wide rows.
    pub fn wide_shared(&self) -> u32 {
        WARPS_BLOCK / 32 * (WINDOW as usize * self.value) as u32
    }
}
