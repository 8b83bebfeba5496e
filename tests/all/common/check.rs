//! Comparison of results with those of the naive loops, used by all tests.

use tarsia::facade::{BackendKind, ComputeType};
use testkit::{Number, Rounding, Sum};

use super::number::Numbers;
use super::{ensure, Outcome};

/// Returns how a backend rounds. The reference sums in 64 bits for all types.
fn rounding<C: Numbers>(backend: BackendKind) -> Rounding {
    let sums = match backend {
        BackendKind::Reference => f64::ROUNDOFF,
        _ => C::S::ROUNDOFF,
    };
    // TF32 may round both factors to 11 significant bits; fp32 may not.
    let factors = if C::TYPES.compute == ComputeType::Tf32 { 1.0 / 1024.0 } else { 0.0 };
    Rounding { sums, factors }
}

/// Checks that a result is within tolerance, or Inf or NaN as expected.
pub fn close<C: Numbers>(backend: BackendKind, found: C::Y, expected: &Sum<C::Wide>) -> Outcome {
    Ok(rounding::<C>(backend).close(found, expected)?)
}

/// Checks a whole vector as [`close`] does; the text of an error names the element.
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
