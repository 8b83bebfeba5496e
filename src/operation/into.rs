//! Products whose result goes elsewhere than where the old values are: z = alpha · op(A) · x + beta · y.
//! Executors that can read the old values where they are do so. For others they are copied to where the result
//! goes, behind everything on the stream; the product is then the one in place, which every algorithm has.

use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Lines;
use crate::memory::Context;
use crate::types::{Address, ComputeType};

/// Executes by `directly`, which reads the old values where they are, if that can be done, or else by `in_place`
/// after a copy of them; by `in_place` alone where they are the result's or are not read. [`super::check_scalars`] has
/// been called.
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
