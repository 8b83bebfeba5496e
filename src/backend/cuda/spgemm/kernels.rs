//! Names of the kernels of SpGEMM `hash`, and which of them process the rows of each bin.

use std::ops::Range;

use super::bins::{Binned, Bins, RowBin};
use super::rows::Kernels;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::Result;
use crate::types::IndexType;

kernel_kinds! {
    "spgemm/hash" {
        TINY_COUNT(IndexType) = "tiny_count" for [index_types()];
        TINY_MULTIPLY(&'static str, IndexType) = "tiny_multiply" for [types(Algorithm::Hash), index_types()];
        HASH_COUNT(IndexType) = "count" for [index_types()];
        HASH_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/window" {
        WINDOW_COUNT(IndexType) = "count" for [index_types()];
        WINDOW_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/team" {
        TEAM_COUNT(IndexType) = "count" for [index_types()];
        TEAM_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/group" {
        GROUP_COUNT(IndexType) = "count" for [index_types()];
        GROUP_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/slide" {
        SLIDE_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/block" {
        BLOCK_COUNT(IndexType) = "count" for [index_types()];
        BLOCK_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/single" {
        SINGLE_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
    }
    "spgemm/wide" {
        WIDE_COUNT(IndexType) = "count" for [index_types()];
        WIDE_MULTIPLY(&'static str, IndexType) = "multiply" for [types(Algorithm::Hash), index_types()];
        WIDE_PARTS(&'static str) = "parts" for [types(Algorithm::Hash)];
    }
    "spgemm/dense" {
        DENSE_FILL(&'static str) = "fill" for [["f64", "f32", "f16f32", "bf16f32"]];
        DENSE_TAKE(&'static str, IndexType) = "take" for [["f64", "f32", "f16f32", "bf16f32"], index_types()];
    }
    "spgemm/map" {
        MAP_MULTIPLY(&'static str) = "multiply" for [types(Algorithm::Hash)];
        MAP_MULTIPLY_FEW(&'static str) = "multiply_few" for [types(Algorithm::Hash)];
    }
}

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        /// Kernel of SpGEMM `hash`, without the types of its values and indices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Name { $($name),* }

        impl Name {
            pub const COUNT: usize = [$(stringify!($name)),*].len();
        }
    };
}
names! {
    Products, Order, Extents, Spans, Repeats, Groups, Slides, SlideCounts, CountBins, FillBins, ScanFew, WriteOffsets,
    SortInput, ColumnOffsets, Transpose, ColumnCounts, Advance, TransposePart, TinyCount, TinyMultiply,
    HashCount, HashMultiply, WindowCount, WindowMultiply, TeamCount, TeamMultiply, GroupCount,
    GroupMultiply, SlideMultiply, BlockCount, BlockMultiply, SingleCounts, SingleMultiply, WideStarts,
    WideBits, WideWindows, WideTasks, WideMerge, WideSums, WideCount, WideMultiply, WideParts, MapRowsInParts,
    MapLongRows, MapMake, MapMakeLong, MapMultiply, MapMultiplyFew, DenseFill, DenseTake,
}

impl Name {
    /// Loads the kernel for values of these types and a right factor with this column index type.
    pub fn load(self, device: &Device, types: &'static str, columns: IndexType) -> Result<Kernel> {
        let plain = |file, name| device.modules().kernel(file, name);
        match self {
            Name::Products => plain("spgemm/rows", "spgemm_products"),
            Name::Order => plain("spgemm/rows", "spgemm_order"),
            Name::Extents => plain("spgemm/rows", "spgemm_extents"),
            Name::Spans => plain("spgemm/rows", "spgemm_spans"),
            Name::CountBins => plain("spgemm/rows", "spgemm_count_bins"),
            Name::FillBins => plain("spgemm/rows", "spgemm_fill_bins"),
            Name::ScanFew => plain("spgemm/rows", "spgemm_scan_few"),
            Name::WriteOffsets => plain("spgemm/rows", "spgemm_write_offsets"),
            Name::SortInput => plain("spgemm/rows", "spgemm_sort_input"),
            Name::ColumnOffsets => plain("spgemm/rows", "spgemm_column_offsets"),
            Name::Transpose => plain("spgemm/rows", "spgemm_transpose"),
            Name::ColumnCounts => plain("spgemm/rows", "spgemm_column_counts"),
            Name::Advance => plain("spgemm/rows", "spgemm_advance"),
            Name::TransposePart => plain("spgemm/rows", "spgemm_transpose_part"),
            Name::Repeats => plain("spgemm/group", "spgemm_repeats"),
            Name::Groups => plain("spgemm/group", "spgemm_groups"),
            Name::Slides => plain("spgemm/slide", "spgemm_slides"),
            Name::SlideCounts => plain("spgemm/slide", "spgemm_slide_counts"),
            Name::SingleCounts => plain("spgemm/single", "spgemm_single_counts"),
            Name::WideStarts => plain("spgemm/wide", "spgemm_wide_starts"),
            Name::WideBits => plain("spgemm/wide", "spgemm_wide_bits"),
            Name::WideWindows => plain("spgemm/wide", "spgemm_wide_windows"),
            Name::WideTasks => plain("spgemm/wide", "spgemm_wide_tasks"),
            Name::WideMerge => plain("spgemm/wide", "spgemm_wide_merge"),
            Name::WideSums => plain("spgemm/wide", "spgemm_wide_sums"),
            Name::MapRowsInParts => plain("spgemm/map", "spgemm_map_rows_in_parts"),
            Name::MapLongRows => plain("spgemm/map", "spgemm_map_long_rows"),
            Name::MapMake => plain("spgemm/map", "spgemm_map_make"),
            Name::MapMakeLong => plain("spgemm/map", "spgemm_map_make_long"),
            Name::TinyCount => TINY_COUNT.load(device, (columns,)),
            Name::HashCount => HASH_COUNT.load(device, (columns,)),
            Name::WindowCount => WINDOW_COUNT.load(device, (columns,)),
            Name::TeamCount => TEAM_COUNT.load(device, (columns,)),
            Name::GroupCount => GROUP_COUNT.load(device, (columns,)),
            Name::BlockCount => BLOCK_COUNT.load(device, (columns,)),
            Name::WideCount => WIDE_COUNT.load(device, (columns,)),
            Name::TinyMultiply => TINY_MULTIPLY.load(device, (types, columns)),
            Name::HashMultiply => HASH_MULTIPLY.load(device, (types, columns)),
            Name::WindowMultiply => WINDOW_MULTIPLY.load(device, (types, columns)),
            Name::TeamMultiply => TEAM_MULTIPLY.load(device, (types, columns)),
            Name::GroupMultiply => GROUP_MULTIPLY.load(device, (types, columns)),
            Name::SlideMultiply => SLIDE_MULTIPLY.load(device, (types, columns)),
            Name::BlockMultiply => BLOCK_MULTIPLY.load(device, (types, columns)),
            Name::SingleMultiply => SINGLE_MULTIPLY.load(device, (types, columns)),
            Name::WideMultiply => WIDE_MULTIPLY.load(device, (types, columns)),
            Name::WideParts => WIDE_PARTS.load(device, (types,)),
            Name::DenseFill => DENSE_FILL.load(device, (types,)),
            Name::DenseTake => DENSE_TAKE.load(device, (types, columns)),
            Name::MapMultiply => MAP_MULTIPLY.load(device, (types,)),
            Name::MapMultiplyFew => MAP_MULTIPLY_FEW.load(device, (types,)),
        }
    }
}

/// Returns the kernels that the numeric phase needs for the bins that have rows. Rows of
/// [`RowBin::DenseWindows`] have the kernel of windows if `wide_apart`, and else that of bitmaps.
pub fn of_numeric(bins: &Bins, has_rows: impl Fn(usize) -> bool, wide_apart: bool) -> Vec<Name> {
    let mut names = vec![Name::WriteOffsets];
    let mut add = |name, mut bins: Range<usize>| {
        if bins.any(&has_rows) && !names.contains(&name) {
            names.push(name);
        }
    };
    let tables = bins.of(RowBin::Table);
    match bins.by_teams() {
        true => add(Name::TeamMultiply, tables),
        false => {
            add(Name::TinyMultiply, tables.start..tables.start + 1);
            add(Name::HashMultiply, tables.start + 1..tables.end);
        }
    }
    add(if wide_apart { Name::WideMultiply } else { Name::WindowMultiply }, bins.of(RowBin::DenseWindows));
    add(Name::WindowMultiply, bins.of(RowBin::Bitmap));
    add(Name::GroupMultiply, bins.of(RowBin::SamePattern));
    add(Name::SlideMultiply, bins.of(RowBin::ShiftedPattern));
    add(Name::BlockMultiply, bins.of(RowBin::BlockTable));
    add(Name::SingleMultiply, bins.of(RowBin::ScaledRow));
    names
}

impl Kernels {
    /// Loads the kernels of the numeric phase, so that it only launches. The context must be current.
    pub fn prepare(&self, bins: &Bins, binned: &Binned, wide_apart: bool) -> Result<()> {
        let names = of_numeric(bins, |bin| binned.bin(bin).1 > 0, wide_apart);
        names.into_iter().try_for_each(|name| self.get(name).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(distinct: bool, rows: &[RowBin], wide_apart: bool) -> Vec<Name> {
        let bins = Bins::numeric(distinct, 4, 8, true);
        let has_rows = |bin| rows.iter().any(|kind| kind.bins().contains(&bin));
        let names = of_numeric(&bins, has_rows, wide_apart);
        assert_eq!(names[0], Name::WriteOffsets);
        names[1..].to_vec()
    }

    #[test]
    fn only_kernels_of_bins_with_rows_are_fetched() {
        assert_eq!(of(true, &[], true), []);
        assert_eq!(of(true, &[RowBin::Table], true), [Name::TeamMultiply]);
        assert_eq!(of(false, &[RowBin::Table], true), [Name::TinyMultiply, Name::HashMultiply]);
        assert_eq!(of(true, &[RowBin::DenseWindows], true), [Name::WideMultiply]);
        assert_eq!(of(true, &[RowBin::DenseWindows, RowBin::Bitmap], false), [Name::WindowMultiply]);
        let rest = [RowBin::SamePattern, RowBin::ShiftedPattern, RowBin::BlockTable, RowBin::ScaledRow];
        let kernels = [Name::GroupMultiply, Name::SlideMultiply, Name::BlockMultiply, Name::SingleMultiply];
        for (bin, kernel) in rest.into_iter().zip(kernels) {
            assert_eq!(of(true, &[bin], true), [kernel], "{bin:?}");
        }
        assert_eq!(of(true, &rest, true), kernels);
    }

    #[test]
    fn a_bin_that_is_not_used_asks_for_nothing() {
        // Blocks with one table are used only for right factors of many columns.
        let near = Bins::numeric(true, 4, 8, false);
        assert_eq!(
            of_numeric(&near, |bin| RowBin::BlockTable.bins().contains(&bin), true),
            [Name::WriteOffsets]
        );
    }
}
