//! Products whose result and old values are in different arrays: z = alpha · op(A) · x + beta · y. Some
//! executors can read the old values from their own array. For others the old values are copied into the
//! result's array, in the order of the stream, and the product then runs in place, which every algorithm
//! supports.

use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Lines;
use crate::memory::Context;
use crate::types::{Address, ComputeType};

/// Executes by `directly`, which reads the old values from their own array, if possible; otherwise copies
/// them and executes by `in_place`. No copy is made if the old values are in the result's array already or
/// beta is known to be zero. The caller has called [`super::check_scalars`].
pub(super) fn execute(
    backend: &dyn Backend,
    cx: &Context,
    (compute, beta): (ComputeType, Address),
    from: &Lines,
    result: &Lines,
    directly: Option<impl FnOnce() -> Result<()>>,
    in_place: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if !from.are(result) && !backend.is_known_zero(cx, compute, beta)? {
        if let (true, Some(directly)) = (backend.can_read(from.address)?, directly) {
            return directly();
        }
        backend.copy_lines(cx, from, result)?;
    }
    in_place()
}
