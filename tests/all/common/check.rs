//! The one comparison of a result with what the naive loops expect.

use tarsia::types::{BackendKind, ComputeType};

use super::naive::Sum;
use super::number::{Numbers, Value, Wide};
use super::{ensure, Outcome};

/// Largest error of a product that is allowed:
/// c · (terms) · eps(accumulator) · Σ|a·x|, and one rounding of the storage type.
///
/// The reference backend promises to sum in 64 bits whatever the types. A
/// factor 2 is for the error of `expected` itself, the 4 terms more for alpha,
/// beta, their sum, and the products of complex numbers.
pub fn tolerance<C: Numbers>(backend: BackendKind, expected: &Sum<C::Wide>) -> f64 {
    let accumulator = match backend {
        BackendKind::Reference => f64::ROUNDOFF,
        _ => C::S::ROUNDOFF,
    };
    let sum = 2.0 * (expected.terms + 4) as f64 * (2.0 * accumulator) * expected.magnitude;
    // TF32 may round both factors to 11 significant bits; fp32 may not.
    let factors = if C::TYPES.compute == ComputeType::Tf32 { expected.magnitude / 1024.0 } else { 0.0 };
    let error = sum + factors;
    error + C::Y::ROUNDOFF * (expected.value.magnitude() + error) + C::Y::TINY
}

/// The result is as expected: within tolerance, or Inf or NaN as expected.
///
/// Of complex numbers only whether a result is finite is compared: which part
/// becomes Inf or NaN depends on how a product of complex numbers is formed.
pub fn close<C: Numbers>(backend: BackendKind, found: C::Y, expected: &Sum<C::Wide>) -> Outcome {
    let (wide, value) = (found.widen(), expected.value);
    if !value.is_finite() {
        let alike = if C::TYPES.y.is_complex() {
            !wide.is_finite()
        } else {
            let (found, expected) = (wide.parts()[0], value.parts()[0]);
            found == expected || (found.is_nan() && expected.is_nan())
        };
        ensure!(alike, "found {found:?}, expected {value:?}");
        return Ok(());
    }
    let tolerance = tolerance::<C>(backend, expected);
    let error = (wide - value).magnitude();
    ensure!(
        error <= tolerance,
        "found {found:?}, expected {value:?}: error {error:e}, tolerance {tolerance:e} ({} terms)",
        expected.terms
    );
    Ok(())
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
