//! Conjugate gradients with Jacobi preconditioning, for symmetric (Hermitian)
//! positive definite matrices. Hestenes, Stiefel: Methods of conjugate gradients
//! for solving linear systems, J. Res. NBS 49(6), 1952.

use std::time::Instant;

use super::products::zeros;
use super::scalar::Scalar;
use crate::Result;

/// ‖b − A·x‖ / ‖b‖ at which x counts as a solution: half of the digits, which CG reaches on any problem that
/// is not hopeless.
pub const TOLERANCE: f64 = 1e-8;
/// By rounding, the residual of the recurrence drifts away from b − A·x; at the end the true residual may be
/// this many times the tolerance, or [`Report::attainable`].
pub const DRIFT: f64 = 10.0;

/// Limits at which CG stops without a solution.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest number of iterations.
    pub iterations: usize,
    /// Longest time in seconds.
    pub seconds: f64,
}

/// Reason why CG ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// x is a solution.
    Converged,
    /// A limit was reached first.
    Stopped,
    /// The recurrence's residual is small, that of b − A·x is not, and rounding does not explain the
    /// difference.
    Stagnated,
    /// p·Ap ≤ 0 in this iteration: the matrix is not positive definite.
    NotPositiveDefinite,
    /// An Inf or NaN occurred.
    NotFinite,
}

/// Result of a run of CG.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Reason why it ended.
    pub outcome: Outcome,
    /// Products with A in the iteration.
    pub iterations: usize,
    /// Wall time of the iteration.
    pub seconds: f64,
    /// The part of it spent in products with A.
    pub product_seconds: f64,
    /// ‖b − A·x‖ / ‖b‖, computed anew from x.
    pub residual: f64,
    /// Value of that ratio below which rounding does not let CG get, however long it runs: about eps · ‖A‖ ·
    /// ‖x‖ / ‖b‖ from every iteration (Greenbaum: Estimating the attainable accuracy of recursively computed
    /// residual methods, SIMAX 18(3), 1997), with random signs, so times √iterations.
    pub attainable: f64,
}

/// Solves A·x = b from x = 0. `product` writes A·p into its second argument; `diagonal` is A's diagonal,
/// positive; `a_norm` is at least ‖A‖₂.
pub fn solve<T: Scalar>(
    mut product: impl FnMut(&[T], &mut [T]) -> Result<()>,
    diagonal: &[f64],
    a_norm: f64,
    b: &[T],
    limits: Limits,
) -> Result<Report> {
    let start = Instant::now();
    let mut product_seconds = 0.0;
    let n = b.len();
    let (mut x, mut q): (Vec<T>, Vec<T>) = (zeros(n)?, zeros(n)?);
    let mut r = b.to_vec();
    let mut z: Vec<T> = preconditioned(&r, diagonal).collect();
    let mut p = z.clone();
    let mut rho = dot(&r, &z);
    let goal = TOLERANCE * norm(b);
    let (mut outcome, mut iterations) = (Outcome::Stopped, 0);
    while iterations < limits.iterations {
        // For a NaN this is false, and the test below ends the loop.
        if norm(&r) <= goal {
            outcome = Outcome::Converged;
            break;
        }
        if start.elapsed().as_secs_f64() > limits.seconds {
            break;
        }
        let before = Instant::now();
        product(&p, &mut q)?;
        product_seconds += before.elapsed().as_secs_f64();
        iterations += 1;
        let curvature = dot(&p, &q);
        if !(curvature.is_finite() && rho.is_finite()) {
            outcome = Outcome::NotFinite;
            break;
        }
        if curvature <= 0.0 {
            outcome = Outcome::NotPositiveDefinite;
            break;
        }
        let alpha = rho / curvature;
        for (((x, r), &p), &q) in x.iter_mut().zip(&mut r).zip(&p).zip(&q) {
            *x += p.times(alpha);
            *r += q.times(-alpha);
        }
        for (z, new) in z.iter_mut().zip(preconditioned(&r, diagonal)) {
            *z = new;
        }
        let previous = std::mem::replace(&mut rho, dot(&r, &z));
        let beta = rho / previous;
        for (p, &z) in p.iter_mut().zip(&z) {
            *p = z + p.times(beta);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    product(&x, &mut q)?;
    let difference: Vec<T> = b.iter().zip(&q).map(|(&b, &q)| b - q).collect();
    // If b = 0, the absolute residual is used.
    let scale = if norm(b) == 0.0 { 1.0 } else { norm(b) };
    let residual = norm(&difference) / scale;
    let attainable = (iterations as f64).sqrt() * f64::EPSILON * a_norm * norm(&x) / scale;
    if outcome == Outcome::Stopped && norm(&r) <= goal {
        outcome = Outcome::Converged;
    }
    if outcome == Outcome::Converged && residual > attainable.max(DRIFT * TOLERANCE) {
        outcome = Outcome::Stagnated;
    }
    Ok(Report { outcome, iterations, seconds, product_seconds, residual, attainable })
}

fn preconditioned<'a, T: Scalar>(r: &'a [T], diagonal: &'a [f64]) -> impl Iterator<Item = T> + 'a {
    r.iter().zip(diagonal).map(|(&r, &d)| r.times(1.0 / d))
}

/// Returns the real part of xᴴ·y, which is the whole value where CG uses it.
fn dot<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    x.iter().zip(y).map(|(&x, &y)| (x.conj() * y).real()).sum()
}

fn norm<T: Scalar>(x: &[T]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solve_2x2([a, b, c]: [f64; 3], limits: Limits) -> Report {
        let product = |x: &[f64], y: &mut [f64]| {
            (y[0], y[1]) = (a * x[0] + b * x[1], b * x[0] + c * x[1]);
            Ok(())
        };
        solve(product, &[a, c], 5.0, &[1.0 / 3.0, -0.7], limits).unwrap()
    }

    #[test]
    fn every_way_to_end() {
        let limits = Limits { iterations: 10, seconds: 100.0 };
        let solved = solve_2x2([2.0, 1.0, 3.0], limits);
        assert_eq!((solved.outcome, solved.iterations), (Outcome::Converged, 2));
        assert!(solved.residual < 1e-14);
        assert_eq!(solve_2x2([2.0, 5.0, 3.0], limits).outcome, Outcome::NotPositiveDefinite);
        assert_eq!(solve_2x2([2.0, f64::NAN, 3.0], limits).outcome, Outcome::NotFinite);
        let stopped = solve_2x2([2.0, 1.0, 3.0], Limits { iterations: 1, ..limits });
        assert_eq!((stopped.outcome, stopped.iterations), (Outcome::Stopped, 1));
        assert_eq!(solve_2x2([2.0, 1.0, 3.0], Limits { seconds: -1.0, ..limits }).iterations, 0);
    }
}
