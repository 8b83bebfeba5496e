//! The error for plans that deterministic mode refuses.

use crate::algorithm::Algorithm;
use crate::error::Error;

/// Returns `NOT_SUPPORTED` for a plan that was analyzed outside of deterministic mode and is used in it.
pub(super) fn refused(algorithm: Option<Algorithm>) -> Error {
    let why = match algorithm {
        Some(Algorithm::Dense) => {
            "its products are by cublasLt, whose choice of kernels, and so the last bits, depends on the version \
             that is installed"
        }
        _ => "its products differ in their last bits from run to run",
    };
    Error::unsupported(format!(
        "plan: {why}, which deterministic mode (tarsiaSetDeterministic) forbids; one that is analyzed in that \
         mode takes a form which does not"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_against_deterministic_mode_is_named() {
        let dense = refused(Some(Algorithm::Dense));
        assert!(dense.message.contains("cublasLt") && dense.message.contains("version"), "{dense}");
        let swift = refused(Some(Algorithm::Swift));
        assert!(swift.message.contains("from run to run") && !swift.message.contains("cublasLt"), "{swift}");
        assert!([dense, swift].iter().all(|error| error.status == crate::error::Status::NotSupported));
    }
}
