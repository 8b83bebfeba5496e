//! C as the user stores it, for both algorithms: checks of the memory for it and of its arrays, and its
//! offsets.

use std::fmt::Display;

use super::kernels::Name;
use super::rows::Kernels;
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch_overlapping, Overlap};
use crate::error::{Error, Result, Status};
use crate::matrix::{Compressed, SparseMatrix};
use crate::operation::check_result;
use crate::problem::SpgemmProblem;
use crate::types::{Address, IndexType};

/// Returns an error with the number of bytes if the device cannot hold `needed` bytes at all: an allocation
/// would fail without saying how much was needed. The free memory does not matter, since the caller may still
/// free memory, or may have allocated C already.
pub fn require_room(needed: u128, what: impl Display, device: &Device) -> Result<()> {
    let total = device.pool()?.total();
    if needed <= total as u128 {
        return Ok(());
    }
    Err(Error::new(
        Status::InsufficientResources,
        format!("C: {what} need at least {needed} bytes of device memory, and the device has {total}"),
    ))
}

/// Returns the bytes of C with this shape, in the smallest index types.
fn bytes_of_c(problem: &SpgemmProblem, (rows, cols, nnz): (i64, i64, i64)) -> u128 {
    let size = |most: i64| if i32::try_from(most).is_ok() { IndexType::I32 } else { IndexType::I64 }.size();
    let entry = problem.types.y.size() + size(rows.max(cols));
    let offsets = (rows.min(cols) as u128 + 1) * size(nnz) as u128;
    nnz as u128 * entry as u128 + offsets
}

/// Returns the bytes of C; an error if the device cannot hold it at all.
pub fn require_room_for_c(problem: &SpgemmProblem, shape: (i64, i64, i64), device: &Device) -> Result<u128> {
    let bytes = bytes_of_c(problem, shape);
    require_room(bytes, format_args!("its {} entries", shape.2), device)?;
    Ok(bytes)
}

/// Writes C's offsets from those of the computed product, which have base 0. Only launches.
pub fn write_offsets(cx: &DeviceCall<'_>, kernels: &Kernels, offsets: Address, c: &Compressed) -> Result<()> {
    write_offsets_overlapping(cx, kernels, offsets, c, &Overlap::new(false))
}

/// Writes C's offsets in the same way, beside the kernels of a sequence that do not read them. Only launches.
pub fn write_offsets_overlapping(
    cx: &DeviceCall<'_>,
    kernels: &Kernels,
    offsets: Address,
    c: &Compressed,
    overlap: &Overlap,
) -> Result<()> {
    if c.offsets.is_null() {
        return Ok(());
    }
    let (kernel, count) = (kernels.get(Name::WriteOffsets)?, c.major + 1);
    // SAFETY: C has room for `count` offsets, by its descriptor, and there are as many at `offsets`.
    unsafe {
        launch_overlapping!(overlap, kernel, blocks(cx.device, count), 256, 0, cx.stream;
            offsets, count, c.offsets, c.offset_type.wide(), i64::from(c.base.code()))
    }
}

/// Checks that C fits the product, and returns its arrays. The plan has checked C's descriptor before, whose
/// creation has checked that its sizes fit its index types. `rows`, `cols` and `nnz` are those of the product
/// of the left and the right factor, of which C is the transpose if `transposed`.
pub fn check(
    device: &Device,
    problem: &SpgemmProblem,
    transposed: bool,
    c: &SparseMatrix,
    (rows, cols, nnz): (i64, i64, i64),
) -> Result<Compressed> {
    let (rows, cols) = if transposed { (cols, rows) } else { (rows, cols) };
    let m = check_result("C", c, (rows, cols, nnz), problem.types.y)?;
    device.require_reachable("C", "offsets", m.offsets)?;
    if m.nnz > 0 {
        device.require_reachable("C", "indices", m.indices)?;
        device.require_reachable("C", "values", m.values)?;
    }
    Ok(m)
}
