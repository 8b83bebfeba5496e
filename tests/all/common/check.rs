//! The one comparison of a result with what the naive loops expect.

use tarsia::facade::{BackendKind, ComputeType};
use testkit::{Number, Rounding, Sum};

use super::number::Numbers;
use super::{ensure, Outcome};

/// How a backend rounds. The reference promises to sum in 64 bits whatever the types.
fn rounding<C: Numbers>(backend: BackendKind) -> Rounding {
    let sums = match backend {
        BackendKind::Reference => f64::ROUNDOFF,
        _ => C::S::ROUNDOFF,
    };
    // TF32 may round both factors to 11 significant bits; fp32 may not.
    let factors = if C::TYPES.compute == ComputeType::Tf32 { 1.0 / 1024.0 } else { 0.0 };
    Rounding { sums, factors }
}

/// The result is as expected: within tolerance, or Inf or NaN as expected.
pub fn close<C: Numbers>(backend: BackendKind, found: C::Y, expected: &Sum<C::Wide>) -> Outcome {
    Ok(rounding::<C>(backend).close(found, expected)?)
}

/// As `close` for a whole vector; the text says which element.
pub fn all_close<C: Numbers>(
    backend: BackendKind,
    found: impl IntoIterator<Item = C::Y>,
    expected: &[Sum<C::Wide>],
) -> Outcome {
    let mut count = 0;
    for (at, found) in found.into_iter().enumerate() {
        close::<C>(backend, found, &expected[at]).map_err(|error| format!("element {at}: {error}"))?;
        count += 1;
    }
    ensure!(count == expected.len(), "{count} elements, expected {}", expected.len());
    Ok(())
}
