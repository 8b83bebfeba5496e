//! Kernels of `row` for rows of B and C that are aligned to 16 bytes (kernels/spmm/row_groups.cuh).

use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::select::spmm::row::group_kinds;
use crate::support::Types;

kernel_kinds! { "spmm/row_groups" {
    GROUPS(String, usize, usize) = "groups" for [["f64", "f32f64"], [8, 16, 32], [1, 2]],
            [["f64", "f32f64"], [4], [1]], [["f32"], [2, 4, 8, 16, 32], [1]], [["f32"], [8, 16], [2]],
            [["f16", "f16f32", "bf16", "bf16f32"], [4, 8, 16, 32], [1]];
} }

/// Loads the kernels for these types, each with its lanes per group and packs per lane.
pub(super) fn load(device: &Device, types: Types) -> Result<Vec<((usize, usize), Kernel)>> {
    let kinds = group_kinds(types.x.size());
    kinds
        .iter()
        .map(|&(lanes, packs)| Ok(((lanes, packs), GROUPS.load(device, (types_name(types), lanes, packs))?)))
        .collect()
}
