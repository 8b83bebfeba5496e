//! Products whose result goes elsewhere than where the old values are: z = alpha · op(A) · x + beta · y. What
//! is added is put where the result goes, behind everything on the stream; the product is then the one in
//! place, which every algorithm has.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::matrix::Lines;
use crate::memory::Context;
use crate::types::{Address, ComputeType};

/// Copies the old values, unless they are there already or are not read.
pub(super) fn put_old_values(
    backend: &dyn Backend,
    cx: &Context,
    (compute, beta): (ComputeType, Address),
    from: &Lines,
    to: &Lines,
) -> Result<()> {
    if from == to || backend.is_known_zero(cx, compute, beta)? {
        return Ok(());
    }
    backend.copy_lines(cx, from, to)
}

/// Scalars must be there before anything is written.
pub(super) fn require_scalars(alpha: Address, beta: Address) -> Result<()> {
    for (name, address) in [("alpha", alpha), ("beta", beta)] {
        if address.is_null() {
            return Err(Error::invalid(name, "the pointer is NULL"));
        }
    }
    Ok(())
}
