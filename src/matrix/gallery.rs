//! A small gallery of matrices: deterministic, and identical on every platform.
//!
//! Pseudo-random matrices come from [`SplitMix64`] and use only integer operations and IEEE
//! additions and multiplications, never libm. Their values are uniform in [−1, 1) with full
//! mantissas: values of few bits would hide lost precision. `f64` throughout; other types come by
//! [`OwnedCsr::map_values`]. Entries are counted (where lengths are drawn, estimated) and reserved
//! before the first is made, so that a matrix that cannot fit fails at once.
//!
//! Errors of every generator: `TooLarge` (a dimension above
//! [`MAX_DIMENSION`](super::owned::MAX_DIMENSION)), `OutOfMemory`, and `Argument` (a parameter out of its
//! range).

use std::array;

use super::owned::{
    check_dimensions, try_filled, try_reserve, try_with_capacity, MatrixError, OwnedCsr, RowBuilder,
};

mod elasticity;
#[cfg(test)]
mod tests;

pub use elasticity::{elasticity, elasticity_element, elasticity_load, Load};

type Result<T> = std::result::Result<T, MatrixError>;

/// The generator SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014, figure 17): equidistributed 64-bit values, any seed is good.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator whose sequence is a function of `seed` alone.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        // The golden-ratio increment and the variant-13 mixer of the paper.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer in 0..`n` (0 for `n` = 0), with a bias below n / 2⁶⁴.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A multiple of 2⁻⁵³, uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A multiple of 2⁻⁵², uniform in [−1, 1): the value of a random entry.
    pub fn value(&mut self) -> f64 {
        2.0 * self.unit() - 1.0 // exact
    }
}

/// Which neighbours a point of [`poisson`] is coupled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stencil {
    /// 2D, the 4 neighbours along the axes; 4 on the diagonal.
    Five,
    /// 3D, the 6 neighbours along the axes; 6 on the diagonal.
    Seven,
    /// 3D, all 26 neighbours; 26 on the diagonal.
    TwentySeven,
}

/// All points [x, y, z] with `first[d] <= p[d] < end[d]`, x fastest.
fn grid(first: [usize; 3], end: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (first[2]..end[2])
        .flat_map(move |z| (first[1]..end[1]).flat_map(move |y| (first[0]..end[0]).map(move |x| [x, y, z])))
}

/// The points of `grid(first, end)` at most 1 from `p` in every axis, `p` among them.
fn neighbours(p: [usize; 3], first: [usize; 3], end: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let low = array::from_fn(|d| p[d].saturating_sub(1).max(first[d]));
    grid(low, array::from_fn(|d| (p[d] + 2).min(end[d])))
}

/// Number of (point, neighbour) pairs of [`neighbours`] on an axis of `n` points.
fn axis_pairs(n: usize) -> u128 {
    (3 * n as u128).saturating_sub(2)
}

/// The product of the sizes if it is at most [`MAX_DIMENSION`], else `TooLarge`.
fn dimension(sizes: [usize; 3]) -> Result<usize> {
    let product = sizes.iter().fold(1u128, |product, &size| product.saturating_mul(size as u128));
    let rows = usize::try_from(product).unwrap_or(usize::MAX);
    check_dimensions(rows, 0)?;
    Ok(rows)
}

/// The discrete Poisson operator −Δ (times h²) on a grid of `n` points an axis with Dirichlet
/// boundary: (number of neighbours) on the diagonal, −1 for each neighbour in the grid, x fastest.
/// n² or n³ rows. Symmetric positive definite.
pub fn poisson(stencil: Stencil, n: usize) -> Result<OwnedCsr<f64>> {
    let (depth, diagonal) = match stencil {
        Stencil::Five => (1, 4.0),
        Stencil::Seven => (n, 6.0),
        Stencil::TwentySeven => (n, 26.0),
    };
    let rows = dimension([n, n, depth])?;
    let (plane, pairs) = (n as u128 * n as u128, axis_pairs(n));
    let nnz = match stencil {
        Stencil::Five => 2 * pairs * n as u128 - plane,
        Stencil::Seven => 3 * pairs * plane - 2 * plane * n as u128,
        Stencil::TwentySeven => pairs.pow(3),
    };
    let mut matrix = RowBuilder::new(rows, rows, nnz)?;
    let end = [n, n, depth];
    for p in grid([0; 3], end) {
        for q in neighbours(p, [0; 3], end) {
            let distance: usize = (0..3).map(|d| p[d].abs_diff(q[d])).sum();
            if distance <= 1 || stencil == Stencil::TwentySeven {
                let value = if distance == 0 { diagonal } else { -1.0 };
                matrix.push((q[2] * n + q[1]) * n + q[0], value)?;
            }
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// Draws sets of distinct columns, sorted.
struct ColumnSampler {
    /// Number of the draw that took the column last.
    taken: Vec<u32>,
    draw: u32,
    picked: Vec<usize>,
}

impl ColumnSampler {
    fn new(cols: usize) -> Result<Self> {
        Ok(Self { taken: try_filled(cols, 0)?, draw: 0, picked: Vec::new() })
    }

    /// `count` ≤ cols columns, every set equally likely (Floyd's algorithm: Bentley, Programming
    /// Pearls, CACM 30(9), 1987): `count` draws even when nearly all columns are taken.
    fn pick(&mut self, rng: &mut SplitMix64, count: usize) -> Result<&[usize]> {
        // One draw a row and two more: below 2^32, as rows are.
        self.draw += 1;
        self.picked.clear();
        try_reserve(&mut self.picked, count)?;
        let cols = self.taken.len();
        for last in cols - count..cols {
            let mut col = rng.below(last as u64 + 1) as usize;
            if self.taken[col] == self.draw {
                col = last;
            }
            self.taken[col] = self.draw;
            self.picked.push(col);
        }
        self.picked.sort_unstable();
        Ok(&self.picked)
    }
}

/// `Argument` unless `count` ≤ `limit`.
fn at_most(what: &str, count: usize, limit: usize) -> Result<()> {
    if count <= limit {
        return Ok(());
    }
    Err(MatrixError::argument(what, count, format_args!("0 to {limit}")))
}

/// `Argument` unless 0 ≤ `value` ≤ 1.
fn probability(what: &str, value: f64) -> Result<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(MatrixError::argument(what, value, "0 to 1"))
}

/// A recursive-matrix (Kronecker) graph: 2^`scale` rows and columns, `edge_factor`·2^`scale` edges
/// drawn, each by `scale` choices of a quadrant with the probabilities a (top left), b (top right),
/// c (bottom left) and 1 − a − b − c; repeated edges count once. Chakrabarti, Zhan, Faloutsos:
/// R-MAT, SDM 2004. Graph500 has a = 0.57, b = c = 0.19. `scale` ≤ 30; values random.
pub fn rmat(scale: u32, edge_factor: usize, a: f64, b: f64, c: f64, seed: u64) -> Result<OwnedCsr<f64>> {
    for (what, value) in [("a", a), ("b", b), ("c", c), ("a + b + c", a + b + c)] {
        probability(what, value)?;
    }
    let n = dimension([1usize.checked_shl(scale).unwrap_or(usize::MAX), 1, 1])?;
    let mut rng = SplitMix64::new(seed);
    let count = n.saturating_mul(edge_factor);
    let mut edges: Vec<u64> = try_with_capacity(count)?;
    for _ in 0..count {
        let (mut row, mut col) = (0u64, 0u64);
        for _ in 0..scale {
            let u = rng.unit();
            row = 2 * row + u64::from(u >= a + b);
            col = 2 * col + u64::from((a..a + b).contains(&u) || u >= a + b + c);
        }
        edges.push(row << 32 | col);
    }
    edges.sort_unstable();
    edges.dedup();
    let mut matrix = RowBuilder::new(n, n, edges.len() as u128)?;
    let mut edges = edges.into_iter().peekable();
    for row in 0..n as u64 {
        while let Some(edge) = edges.next_if(|edge| edge >> 32 == row) {
            matrix.push((edge & 0xffff_ffff) as usize, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// A full band: every (i, j) with |i − j| ≤ `half_bandwidth`, `n` rows and columns, values random.
pub fn banded(n: usize, half_bandwidth: usize, seed: u64) -> Result<OwnedCsr<f64>> {
    check_dimensions(n, n)?;
    let reach = half_bandwidth.min(n.saturating_sub(1));
    // The full parallelogram less its two corners.
    let nnz = n as u128 * (2 * reach as u128 + 1) - reach as u128 * (reach as u128 + 1);
    let mut rng = SplitMix64::new(seed);
    let mut matrix = RowBuilder::new(n, n, nnz)?;
    for row in 0..n {
        for col in row.saturating_sub(reach)..(row + reach + 1).min(n) {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// Exactly `per_row` ≤ `cols` entries in each row, at columns drawn uniformly; values random.
pub fn uniform(rows: usize, cols: usize, per_row: usize, seed: u64) -> Result<OwnedCsr<f64>> {
    at_most("per_row", per_row, cols)?;
    let nnz = rows as u128 * per_row as u128;
    random_rows(rows, cols, nnz, seed, |_, _| per_row)
}

/// Rows whose lengths vary: uniform in 0..=2·m for a mean m = `density`·`cols` up to `cols`/2, in
/// 2·m − `cols`..=`cols` above; columns drawn uniformly, values random. 0 ≤ `density` ≤ 1, where 0
/// gives no entries and 1 a full matrix.
pub fn rectangular(rows: usize, cols: usize, density: f64, seed: u64) -> Result<OwnedCsr<f64>> {
    probability("density", density)?;
    check_dimensions(rows, cols)?;
    let longest = (2.0 * density * cols as f64).round() as usize;
    let shortest = longest.saturating_sub(cols);
    let choices = longest.min(cols) - shortest + 1;
    let mean = (longest as u128 * rows as u128).div_ceil(2);
    random_rows(rows, cols, mean, seed, |_, rng| shortest + rng.below(choices as u64) as usize)
}

/// No entries at all.
pub fn empty(rows: usize, cols: usize) -> Result<OwnedCsr<f64>> {
    random_rows(rows, cols, 0, 0, |_, _| 0)
}

/// As [`uniform`], but each row is empty with probability `empty_fraction` (0 to 1), and the first
/// and the last row always are: the rows where offset arrays go wrong.
pub fn with_empty_rows(
    rows: usize,
    cols: usize,
    per_row: usize,
    empty_fraction: f64,
    seed: u64,
) -> Result<OwnedCsr<f64>> {
    at_most("per_row", per_row, cols)?;
    probability("empty_fraction", empty_fraction)?;
    let mean = rows as f64 * per_row as f64 * (1.0 - empty_fraction);
    random_rows(rows, cols, mean as u128, seed, |row, rng| {
        let is_empty = rng.unit() < empty_fraction || row == 0 || row + 1 == rows;
        if is_empty {
            0
        } else {
            per_row
        }
    })
}

/// Rows of `length(row, rng)` entries at columns drawn uniformly; `nnz` is about their sum.
fn random_rows(
    rows: usize,
    cols: usize,
    nnz: u128,
    seed: u64,
    length: impl Fn(usize, &mut SplitMix64) -> usize,
) -> Result<OwnedCsr<f64>> {
    let mut matrix = RowBuilder::new(rows, cols, nnz)?;
    let mut rng = SplitMix64::new(seed);
    let mut sampler = ColumnSampler::new(cols)?;
    for row in 0..rows {
        let count = length(row, &mut rng);
        for &col in sampler.pick(&mut rng, count)? {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// `dense_rows` full rows and `dense_cols` full columns, at positions drawn uniformly, on a
/// background of `per_row` entries a row (as [`uniform`]; overlaps count once). `n` rows and
/// columns, values random.
pub fn dense_rows_cols(
    n: usize,
    dense_rows: usize,
    dense_cols: usize,
    per_row: usize,
    seed: u64,
) -> Result<OwnedCsr<f64>> {
    check_dimensions(n, n)?;
    for (what, count) in [("dense_rows", dense_rows), ("dense_cols", dense_cols), ("per_row", per_row)] {
        at_most(what, count, n)?;
    }
    let sparse_row = (per_row + dense_cols).min(n);
    let nnz = dense_rows as u128 * n as u128 + (n - dense_rows) as u128 * sparse_row as u128;
    let mut matrix = RowBuilder::new(n, n, nnz)?;
    let mut rng = SplitMix64::new(seed);
    let mut sampler = ColumnSampler::new(n)?;
    let mut full_row = try_filled(n, false)?;
    for &row in sampler.pick(&mut rng, dense_rows)? {
        full_row[row] = true;
    }
    let mut full_cols = try_with_capacity(dense_cols)?;
    full_cols.extend_from_slice(sampler.pick(&mut rng, dense_cols)?);
    let mut cols = Vec::new();
    for is_full in full_row {
        cols.clear();
        if is_full {
            try_reserve(&mut cols, n)?;
            cols.extend(0..n);
        } else {
            try_reserve(&mut cols, dense_cols + per_row)?;
            cols.extend_from_slice(&full_cols);
            cols.extend_from_slice(sampler.pick(&mut rng, per_row)?);
            cols.sort_unstable();
            cols.dedup();
        }
        for &col in &cols {
            matrix.push(col, rng.value())?;
        }
        matrix.end_row()?;
    }
    Ok(matrix.finish())
}

/// The kinds of names that [`by_name`] knows, each with its arguments; those in brackets may be
/// left out.
pub fn names() -> &'static [&'static str] {
    &[
        "poisson5:N",
        "poisson7:N",
        "poisson27:N",
        "elasticity:NXxNYxNZ[:E:NU]",
        "rmat:SCALE:EDGES[:SEED]",
        "banded:N:HALF[:SEED]",
        "uniform:ROWSxCOLS:K[:SEED]",
        "rectangular:ROWSxCOLS:DENSITY[:SEED]",
        "dense:N:ROWS:COLS:K[:SEED]",
        "empty:ROWSxCOLS",
        "gaps:ROWSxCOLS:K:FRACTION[:SEED]",
    ]
}

/// The matrix called `name`: a kind and its arguments as [`names`] lists them, e.g. `poisson7:32`,
/// `elasticity:10x10x10`, `rmat:12:8`. Colons and `x` separate the arguments, either for the other.
///
/// `poisson*` is [`poisson`]; `elasticity` is [`elasticity`] (E = 1, NU = 0.3); `rmat` is [`rmat`]
/// with Graph500's probabilities and EDGES a row; `banded` is [`banded`]; `uniform` is [`uniform`]
/// with K a row; `rectangular` is [`rectangular`]; `dense` is [`dense_rows_cols`]; `empty` is
/// [`empty`]; `gaps` is [`with_empty_rows`]. SEED is 1 unless given.
///
/// Errors: `Argument` that names the bad part; those of the generator.
pub fn by_name(name: &str) -> Result<OwnedCsr<f64>> {
    let arguments = Arguments::new(name)?;
    let n = |k| arguments.get::<usize>(k, None);
    let real = |k| arguments.get::<f64>(k, None);
    let seed = |k| arguments.get::<u64>(k, Some(1));
    match arguments.found[0] {
        "poisson5" => poisson(Stencil::Five, n(1)?),
        "poisson7" => poisson(Stencil::Seven, n(1)?),
        "poisson27" => poisson(Stencil::TwentySeven, n(1)?),
        "elasticity" => {
            let (young, nu) = (arguments.get(4, Some(1.0))?, arguments.get(5, Some(0.3))?);
            elasticity(n(1)?, n(2)?, n(3)?, young, nu)
        }
        "rmat" => rmat(arguments.get(1, None)?, n(2)?, 0.57, 0.19, 0.19, seed(3)?),
        "banded" => banded(n(1)?, n(2)?, seed(3)?),
        "uniform" => uniform(n(1)?, n(2)?, n(3)?, seed(4)?),
        "rectangular" => rectangular(n(1)?, n(2)?, real(3)?, seed(4)?),
        "dense" => dense_rows_cols(n(1)?, n(2)?, n(3)?, n(4)?, seed(5)?),
        "gaps" => with_empty_rows(n(1)?, n(2)?, n(3)?, real(4)?, seed(5)?),
        _ => empty(n(1)?, n(2)?),
    }
}

/// A name taken apart: position 0 is the kind.
struct Arguments<'a> {
    grammar: &'static str,
    labels: Vec<&'static str>,
    found: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn new(name: &'a str) -> Result<Self> {
        const SEPARATORS: [char; 2] = [':', 'x'];
        let found: Vec<&str> = name.split(SEPARATORS).collect();
        let is_kind = |grammar: &&&str| grammar.split(':').next() == Some(found[0]);
        let Some(&grammar) = names().iter().find(is_kind) else {
            let expected = format_args!("one of {}", names().join(", "));
            return Err(MatrixError::argument("kind of matrix", found[0], expected));
        };
        let labels: Vec<&str> = grammar.split(SEPARATORS).collect();
        if let Some(extra) = found.get(labels.len()) {
            return Err(MatrixError::argument(grammar, extra, "no more arguments"));
        }
        Ok(Self { grammar, labels, found })
    }

    /// Argument `k`, counted from 1; `default` if the name ends before it.
    fn get<T: std::str::FromStr>(&self, k: usize, default: Option<T>) -> Result<T> {
        let value = match self.found.get(k) {
            Some(text) => text.parse().ok(),
            None => default,
        };
        value.ok_or_else(|| {
            let label = self.labels[k].trim_matches(['[', ']']);
            let what = format_args!("{label} of {}", self.grammar);
            let found = self.found.get(k).unwrap_or(&"the end");
            let type_name = std::any::type_name::<T>();
            MatrixError::argument(what, found, format_args!("a number ({type_name})"))
        })
    }
}
