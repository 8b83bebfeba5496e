//! Linear systems of the demo: the built-in problem, or a file.

use std::path::Path;

use matrices::file::read_file;
use matrices::gallery::{self, Load};
use matrices::market::{MarketField, MarketValues};
use matrices::owned::OwnedCsr;
use matrices::SplitMix64;
use num_complex::Complex64;
use tarsia::facade::run_in_pool;

use super::cg::Limits;
use super::scalar::Scalar;
use crate::progress::step;
use crate::Result;

/// Material of the built-in steel brick: Young's modulus in GPa, Poisson's ratio.
const STEEL: (f64, f64) = (210.0, 0.3);
/// Force per volume with long mantissas: the weight of a tilted brick.
const WEIGHT: [f64; 3] = [0.01, -0.02, -0.073];
/// Tolerance for the rounding of an assembly whose halves were summed differently.
const SYMMETRY_TOLERANCE: f64 = 1e-14;
/// Limits for a file, for which it is not known whether CG can solve it.
const FILE_LIMITS: Limits = Limits { iterations: 500, seconds: 10.0 };
/// Seed of the values of patterns.
const PATTERN_SEED: u64 = 0x7a25_1a00_2026_0002;

/// The linear system A · x = b.
#[derive(Debug)]
pub struct System<T> {
    /// Name that is printed.
    pub name: String,
    /// Matrix A of the system.
    pub a: OwnedCsr<T>,
    /// Right-hand side b; `None`, for files, means a random one.
    pub b: Option<Vec<T>>,
    /// Limits of CG.
    pub limits: Limits,
    /// True if the file has a pattern only, so that the values are made up.
    pub made_up_values: bool,
}

/// The system of a file, by value type.
#[derive(Debug)]
pub enum File {
    /// System of a real, integer or pattern file.
    Real(System<f64>),
    /// System of a complex file.
    Complex(System<Complex64>),
}

/// Reads a file.
pub fn read(path: &Path) -> Result<File> {
    let read = || run_in_pool(|| read_file(path))?.into_values();
    let matrix = step(&format!("reading {}", path.display()), read);
    let (field, values) = matrix.map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let made_up_values = field == MarketField::Pattern;
    let limits = FILE_LIMITS;
    Ok(match values {
        MarketValues::Real(mut a) => {
            if made_up_values {
                make_up_values(&mut a);
            }
            File::Real(System { name, a, b: None, limits, made_up_values })
        }
        MarketValues::Complex(a) => File::Complex(System { name, a, b: None, limits, made_up_values }),
    })
}

/// Sets values in [0.5, 1.5) with full mantissas, a_ij = a_ji: ones would be multiplied and summed as
/// integers without any rounding, which hides errors.
fn make_up_values(a: &mut OwnedCsr<f64>) {
    for row in 0..a.rows {
        for at in a.offsets[row] as usize..a.offsets[row + 1] as usize {
            let col = a.indices[at] as usize;
            let place = (row.min(col) as u64) << 32 | row.max(col) as u64;
            a.values[at] = 0.5 + SplitMix64::new(PATTERN_SEED ^ place).unit();
        }
    }
}

/// Makes the built-in problem.
pub fn brick([nx, ny, nz]: [usize; 3]) -> Result<System<f64>> {
    let a = step("assembling", || gallery::elasticity(nx, ny, nz, STEEL.0, STEEL.1))?;
    let b = gallery::elasticity_load(nx, ny, nz, Load::Body(WEIGHT))?;
    // CG solves this problem for certain, so no time limit is needed: in exact arithmetic it takes at most
    // one iteration per row, and rounding costs a slender brick more.
    let limits = Limits { iterations: (3 * a.rows).max(500), seconds: f64::INFINITY };
    let name = format!("elastic brick of {nx}×{ny}×{nz} elements");
    Ok(System { name, a, b: Some(b), limits, made_up_values: false })
}

/// Returns the reason why A cannot be symmetric positive definite, if it is easy to see.
pub fn not_a_candidate<T: Scalar>(a: &OwnedCsr<T>) -> Option<&'static str> {
    if a.rows != a.cols {
        return Some("it is not square");
    }
    if a.rows == 0 {
        return Some("it is empty");
    }
    if !a.is_hermitian(SYMMETRY_TOLERANCE) {
        let (symmetric, hermitian) = ("it is not symmetric", "it is not Hermitian");
        return Some(if T::TYPE.is_complex() { hermitian } else { symmetric });
    }
    if !a.is_cg_candidate(SYMMETRY_TOLERANCE) {
        return Some("an entry of its diagonal is not positive");
    }
    None
}

/// Returns the largest sum of absolute values of a row: ‖A‖∞, which is at least ‖A‖₂ for a Hermitian A.
pub fn row_sum_norm<T: Scalar>(a: &OwnedCsr<T>) -> f64 {
    let sum = |row| a.row(row).1.iter().map(|value| value.magnitude()).sum();
    (0..a.rows).map(sum).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_values_keep_symmetry() {
        let mut a = gallery::poisson(gallery::Stencil::Five, 7).unwrap();
        make_up_values(&mut a);
        assert!(a.is_hermitian(0.0) && a.is_cg_candidate(0.0));
        assert!(a.values.iter().all(|value| (0.5..1.5).contains(value)));
        assert!(a.values[0] != a.values[1]);
        let a = gallery::uniform(9, 9, 3, 1).unwrap();
        assert_eq!(not_a_candidate(&a), Some("it is not symmetric"));
    }
}
