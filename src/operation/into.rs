//! Products whose result goes elsewhere than where the old values are: z = alpha · op(A) · x + beta · y. What
//! is added is put where the result goes, behind everything on the stream; the product is then the one in
//! place, which every algorithm has.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::matrix::Lines;
use crate::memory::Context;
use crate::types::{Address, ComputeType};

/// Puts the old values where the result goes, unless they are there already or are not read. The scalars must be
/// there before anything is written, and apart from the result, which gets the old values before they are read.
pub(super) fn put_old_values(
    backend: &dyn Backend,
    cx: &Context,
    (compute, [alpha, beta]): (ComputeType, [Address; 2]),
    from: &Lines,
    (result_name, result): (&str, &Lines),
) -> Result<()> {
    for (name, address) in [("alpha", alpha), ("beta", beta)] {
        if address.is_null() {
            return Err(Error::invalid(name, "the pointer is NULL"));
        }
        let bytes = compute.scalar().size();
        if result.overlaps(&Lines { address, bytes, distance: bytes, count: 1 }) {
            return Err(Error::invalid(
                name,
                format!("it lies in {result_name}, which is written before it is read"),
            ));
        }
    }
    if from.are(result) || backend.is_known_zero(cx, compute, beta)? {
        return Ok(());
    }
    backend.copy_lines(cx, from, result)
}
