//! Options that several commands have.

use tarsia::facade::BackendKind;

/// Backend that computes the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// CUDA if there is a device, else the host
    Auto,
    /// The threads of the CPU
    Host,
    /// An NVIDIA GPU
    Cuda,
    /// One thread, simple and slow, which results are compared with
    Reference,
}

impl Backend {
    /// Returns the library's enumerator of this backend.
    pub fn kind(self) -> BackendKind {
        match self {
            Backend::Auto => BackendKind::Auto,
            Backend::Host => BackendKind::Host,
            Backend::Cuda => BackendKind::Cuda,
            Backend::Reference => BackendKind::Reference,
        }
    }
}

/// Parses a number that is greater than 0 and finite.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a positive number".into())
}

/// Returns the name of a backend as `--backend` takes it.
pub fn backend_name(kind: BackendKind) -> String {
    kind.c_name().trim_start_matches("TARSIA_BACKEND_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positive_and_finite() {
        assert_eq!(positive("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(positive(bad).is_err(), "{bad}");
        }
    }
}
