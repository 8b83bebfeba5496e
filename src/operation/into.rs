//! Products whose result goes elsewhere than where the old values are: z = alpha · op(A) · x + beta · y.
//! Executors that can read the old values where they are do so. For others they are copied to where the result
//! goes, behind everything on the stream; the product is then the one in place, which every algorithm has.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::matrix::Lines;
use crate::memory::Context;
use crate::types::{Address, ComputeType};

/// Executes by `directly`, which reads the old values where they are, if that can be done, or else by `in_place`
/// after a copy of them; by `in_place` alone where they are the result's or are not read. The scalars must be there
/// before anything is written, and apart from the result, which may be written before they are read.
pub(super) fn execute(
    backend: &dyn Backend,
    cx: &Context,
    (compute, [alpha, beta]): (ComputeType, [Address; 2]),
    from: &Lines,
    (result_name, result): (&str, &Lines),
    directly: Option<impl FnOnce() -> Result<()>>,
    in_place: impl FnOnce() -> Result<()>,
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
    if !from.are(result) && !backend.is_known_zero(cx, compute, beta)? {
        if let (true, Some(directly)) = (backend.can_read(from.address)?, directly) {
            return directly();
        }
        backend.copy_lines(cx, from, result)?;
    }
    in_place()
}
