//! Recursive-matrix (Kronecker) graphs: power laws in both directions, no locality.

use super::build::Edges;
use super::{dimension, probability, Result};
use crate::owned::{OwnedCsr, MAX_DIMENSION};
use crate::random::SplitMix64;

/// A recursive-matrix (Kronecker) graph: 2^`scale` rows and columns, `edge_factor`·2^`scale` edges
/// drawn, each by `scale` choices of a quadrant with the probabilities a (top left), b (top right),
/// c (bottom left) and 1 − a − b − c; repeated edges count once. Chakrabarti, Zhan, Faloutsos:
/// R-MAT, SDM 2004. Graph500 has a = 0.57, b = c = 0.19. `scale` ≤ 30; values random.
pub fn rmat(scale: u32, edge_factor: usize, a: f64, b: f64, c: f64, seed: u64) -> Result<OwnedCsr<f64>> {
    for (what, value) in [("a", a), ("b", b), ("c", c), ("a + b + c", a + b + c)] {
        probability(what, value)?;
    }
    let n = vertices(scale)?;
    let mut rng = SplitMix64::new(seed);
    let edges = draw(scale, n.saturating_mul(edge_factor), [a, a + b, a + b + c], &mut rng, |v| v)?;
    let pattern = edges.into_pattern(n, n)?;
    super::fill_values(pattern, rng)
}

/// Returns 2^`scale` if it is a valid dimension.
pub(super) fn vertices(scale: u32) -> Result<usize> {
    dimension([1usize.checked_shl(scale).unwrap_or(MAX_DIMENSION + 1)])
}

/// Draws `count` edges between 2^`scale` vertices, renamed by `name`. `below` are the cumulative
/// probabilities of the first quadrant, the first two, and the first three. `rng` continues after the draws.
pub(super) fn draw(
    scale: u32,
    count: usize,
    below: [f64; 3],
    rng: &mut SplitMix64,
    name: impl Fn(u32) -> u32 + Sync,
) -> Result<Edges> {
    let draws = |edges: usize| u64::from(scale).wrapping_mul(edges as u64);
    let edges = Edges::generate(
        count,
        |first| rng.after(draws(first)),
        |rng| {
            let (mut row, mut col) = (0, 0);
            for _ in 0..scale {
                // Computed without branches, which no processor would predict.
                let u = rng.unit();
                let quadrant = below.iter().map(|&p| u32::from(u >= p)).sum::<u32>();
                row = 2 * row + quadrant / 2;
                col = 2 * col + quadrant % 2;
            }
            (name(row), name(col))
        },
    )?;
    *rng = rng.after(draws(count));
    Ok(edges)
}
