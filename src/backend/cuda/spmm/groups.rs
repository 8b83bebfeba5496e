//! The kernels of `row` for aligned rows of B and C (kernels/spmm/row_groups.cuh).

use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::Kernel;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::types_name;
use crate::error::Result;
use crate::problem::SpmmProblem;
use crate::select::spmm::row;
use crate::support::Types;
use crate::types::{IndexType, Order};

kernel_kinds! { "spmm/row_groups" {
    GROUPS(&'static str, usize, usize) = "groups" for [["f64"], [8, 16, 32], [1, 2]],
            [["f32"], [4, 8, 16, 32], [1]], [["f32"], [8, 16], [2]], [["f16f32"], [4, 8, 16, 32], [1]];
} }

/// Whether a product may use them.
pub(super) fn may_have(problem: &SpmmProblem, width: IndexType) -> bool {
    let n = problem.columns();
    let pack = 16 / problem.types.x.size();
    width == IndexType::I32
        && ["f64", "f32", "f16f32"].contains(&types_name(problem.types).as_str())
        && problem.c_order == Order::Row
        && n > row::NARROW
        && n % pack == 0
        && std::env::var_os("TARSIA_NO_GROUPS").is_none()
}

/// By lanes and packs.
pub(super) fn load(device: &Device, types: Types) -> Result<Vec<((usize, usize), Kernel)>> {
    let (name, kinds): (_, &[(usize, usize)]) = match types.x.size() {
        8 => ("f64", &[(32, 2), (16, 2), (8, 2), (32, 1), (16, 1), (8, 1)]),
        4 => ("f32", &[(16, 2), (8, 2), (32, 1), (16, 1), (8, 1), (4, 1)]),
        _ => ("f16f32", &[(32, 1), (16, 1), (8, 1), (4, 1)]),
    };
    kinds
        .iter()
        .map(|&(lanes, packs)| Ok(((lanes, packs), GROUPS.load(device, (name, lanes, packs))?)))
        .collect()
}
