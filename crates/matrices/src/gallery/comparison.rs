//! The 25 matrices of the comparison tables: stand-ins with the size and the structure of well-known
//! matrices, entry for entry those that the tables' own generator writes.
//!
//! That generator is a C++ program. It seeds SplitMix64 with libstdc++'s `std::hash` of the matrix'
//! name and takes (draw / 2¹⁶) mod n where it wants a number below n ([`SplitMix64::modulo`]).
//!
//! All but [`webbase`] use integers and IEEE additions, multiplications and divisions only, so they
//! are the same on every platform. `webbase` calls `pow` and cuts the results, up to 10⁶, to
//! integers: two libms that differ in the last bit make the same matrix with a probability above 0.9999, and
//! a different matrix would not match the committed checksum.

use super::build::{from_rows_in_order, Edges};
use super::grids::{band, hex_mesh, markov_triangle, wilson, Reach};
use super::networks::{circuit, Hubs};
use super::transform::{expand, permute, shuffle};
use super::{layers, rmat, Result};
use crate::owned::OwnedCsr;
use crate::random::SplitMix64;

/// Returns the value of libstdc++'s `std::hash<std::string>` on 64-bit little-endian machines: the 64-bit
/// MurmurHash that Austin Appleby gave to the public domain, with the seed and the mixing of libstdc++'s
/// definition (`_Hash_bytes`).
pub(super) fn libstdcxx_hash(text: &str) -> u64 {
    const SEED: u64 = 0xc70f_6907;
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| word ^ word >> 47;
    let start = SEED ^ (text.len() as u64).wrapping_mul(MULTIPLIER);
    let hash = text.as_bytes().chunks(8).fold(start, |hash, chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(bytes);
        // Only whole words are mixed before they are combined with the hash.
        let word = match chunk.len() {
            8 => mix(word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER),
            _ => word,
        };
        (hash ^ word).wrapping_mul(MULTIPLIER)
    });
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

/// Makes a mesh whose nodes are shuffled inside windows and have `unknowns` unknowns each.
fn mesh(nodes: [usize; 3], reach: Reach, window: usize, unknowns: usize, seed: u64) -> Result<OwnedCsr<()>> {
    let mut graph = hex_mesh(nodes, reach)?;
    if window > 1 {
        let numbers = shuffle(graph.rows, window, &mut SplitMix64::new(seed))?;
        graph = permute(&graph, &numbers)?;
    }
    match unknowns {
        1 => Ok(graph),
        _ => expand(&graph, unknowns),
    }
}

// Each of the following functions makes a matrix of the catalogue; the argument is the seed.

pub(super) fn mc2depi(_: u64) -> Result<OwnedCsr<()>> {
    markov_triangle(1025)
}

pub(super) fn cant(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([9, 9, 257], Reach::Corners, 1, 3, seed)
}

pub(super) fn consph(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([30, 30, 31], Reach::Corners, 128, 3, seed)
}

pub(super) fn pwtk(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([190, 191, 1], Reach::Corners, 1, 6, seed)
}

pub(super) fn shipsec1(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([153, 153, 1], Reach::Corners, 512, 6, seed)
}

pub(super) fn conf5(_: u64) -> Result<OwnedCsr<()>> {
    wilson([8; 4])
}

pub(super) fn hpcg128(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([128; 3], Reach::Corners, 1, 1, seed)
}

pub(super) fn poisson160(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([160; 3], Reach::Faces, 1, 1, seed)
}

pub(super) fn cop20k(seed: u64) -> Result<OwnedCsr<()>> {
    mesh([50, 50, 48], Reach::Edges, 50 * 50 * 48, 1, seed)
}

pub(super) fn rmat20(seed: u64) -> Result<OwnedCsr<()>> {
    renamed_rmat(20, 16, seed)
}

pub(super) fn rmat16(seed: u64) -> Result<OwnedCsr<()>> {
    renamed_rmat(16, 8, seed)
}

/// Makes an R-MAT graph with Graph500's probabilities and its renaming of the vertices, so that the numbers
/// of vertices do not reveal their degrees.
fn renamed_rmat(scale: u32, edge_factor: usize, seed: u64) -> Result<OwnedCsr<()>> {
    let n = rmat::vertices(scale)?;
    let mut rng = SplitMix64::new(seed);
    let names = shuffle(n, n, &mut rng)?;
    let name = |vertex: u32| names[vertex as usize];
    rmat::draw(scale, n * edge_factor, [0.57, 0.76, 0.95], &mut rng, name)?.into_pattern(n, n)
}

pub(super) fn scircuit(seed: u64) -> Result<OwnedCsr<()>> {
    circuit(170_998, 2, Hubs::Random { count: 40, shortest: 60, spread: 290 }, seed)
}

pub(super) fn dc2(seed: u64) -> Result<OwnedCsr<()>> {
    let hubs = [(17, 114_000), (60_001, 47_000), (100_003, 14_000)];
    circuit(116_835, 1, Hubs::Spread(&hubs), seed)
}

pub(super) fn uniform(seed: u64) -> Result<OwnedCsr<()>> {
    layers::drawn(200_000, 200_000, 16, seed)
}

pub(super) fn band64(_: u64) -> Result<OwnedCsr<()>> {
    band(16_384, 32, 31)
}

pub(super) fn band256(_: u64) -> Result<OwnedCsr<()>> {
    band(16_384, 128, 127)
}

pub(super) fn band1024(_: u64) -> Result<OwnedCsr<()>> {
    band(16_384, 512, 511)
}

pub(super) fn dnn90(seed: u64) -> Result<OwnedCsr<()>> {
    layers::kept(4096, 4096, 0.10, seed)
}

pub(super) fn dnn80(seed: u64) -> Result<OwnedCsr<()>> {
    layers::kept(4096, 4096, 0.20, seed)
}

/// Makes a web crawl: page lengths from a Pareto distribution, two thirds of the links near the page, the
/// others to the page number N·u⁴ for a uniform u, so mostly to the first pages.
pub(super) fn webbase(seed: u64) -> Result<OwnedCsr<()>> {
    const PAGES: usize = 1_000_005;
    const LONGEST: usize = 4700;
    let mut rng = SplitMix64::new(seed);
    from_rows_in_order(PAGES, PAGES, 3_000_000, |page, out| {
        let links = rng.unit().max(1e-12).powf(-1.0 / 1.42) as usize;
        let links = links.min(LONGEST);
        // The page itself, or the first page of its site.
        let home = if rng.modulo(2) != 0 { page } else { page / 64 * 64 };
        out.push(home)?;
        for _ in 1..links {
            let to = if rng.unit() < 0.65 {
                let reach = (3 * links).max(500);
                (page + rng.modulo(2 * reach)).saturating_sub(reach)
            } else {
                (PAGES as f64 * rng.unit().powf(4.0)) as usize
            };
            out.push(to.min(PAGES - 1))?;
        }
        Ok(())
    })
}

/// Makes an economy's matrix: few entries a row, near the diagonal, near eight parallels of it, or anywhere.
pub(super) fn mac_econ(seed: u64) -> Result<OwnedCsr<()>> {
    const N: usize = 206_500;
    let mut rng = SplitMix64::new(seed);
    from_rows_in_order(N, N, 1_300_000, |row, out| {
        out.push(row)?;
        for _ in 0..2 + rng.modulo(7) {
            let u = rng.unit();
            let shift = if u < 0.5 {
                rng.modulo(60) as isize - 30
            } else if u < 0.8 {
                let parallel = rng.modulo(9) as isize - 4;
                500 * parallel + rng.modulo(5) as isize
            } else {
                rng.modulo(N) as isize - row as isize
            };
            // Indices wrap around the ends; no shift is longer than one turn.
            out.push((row as isize + shift).rem_euclid(N as isize) as usize)?;
        }
        Ok(())
    })
}

/// Makes an integer program's matrix: diagonal blocks, 300 columns (and rows) that hold 2 to 12% of all
/// positions, and 4 full ones.
pub(super) fn mip1(seed: u64) -> Result<OwnedCsr<()>> {
    const N: usize = 66_463;
    const LONG: usize = 300;
    let mut rng = SplitMix64::new(seed);
    let mut edges = Edges::with_capacity(13_500_000)?;
    let mut first = 0;
    while first < N {
        let end = N.min(first + 32 + rng.modulo(160));
        edges.push_clique(first..end)?;
        first = end;
    }
    let mut long = [0; LONG];
    long.fill_with(|| rng.modulo(N));
    long.sort_unstable();
    for col in long {
        let density = 0.02 + 0.10 * rng.unit();
        for row in 0..N {
            if rng.unit() < density {
                edges.push_both(row, col)?;
            }
        }
    }
    for _ in 0..4 {
        let full = rng.modulo(N);
        (0..N).try_for_each(|other| edges.push_both(full, other))?;
    }
    edges.into_pattern(N, N)
}

/// Makes an electron structure matrix: finite differences of order 12 on a grid of 57³ points, and 84 atoms,
/// each of which couples all points within √17 of it.
pub(super) fn si41(seed: u64) -> Result<OwnedCsr<()>> {
    const L: usize = 57;
    const REACH: usize = 6;
    const N: usize = L * L * L;
    let mut rng = SplitMix64::new(seed);
    let mut edges = Edges::with_capacity(16_000_000)?;
    for point in 0..N {
        for stride in [1, L, L * L] {
            let x = point / stride % L;
            let line = point - x * stride;
            for y in x.saturating_sub(REACH)..L.min(x + REACH + 1) {
                edges.push(point, line + y * stride)?;
            }
        }
    }
    for _ in 0..84 {
        let centre = [0; 3].map(|_| REACH + rng.modulo(L - 2 * REACH));
        let low = centre.map(|x| x - 5);
        let ball = super::grid(low, centre.map(|x| x + 6)).filter(|p| {
            let squares = p.iter().zip(centre).map(|(x, c)| x.abs_diff(c).pow(2));
            squares.sum::<usize>() <= 17
        });
        let ball: Vec<usize> = ball.map(|[x, y, z]| (z * L + y) * L + x).collect();
        edges.push_clique(ball.iter().copied())?;
    }
    edges.into_pattern(N, N)
}

/// Makes an optimisation problem's matrix: dense diagonal blocks that overlap, and 24 long rows and columns.
pub(super) fn gupta3(seed: u64) -> Result<OwnedCsr<()>> {
    const N: usize = 16_783;
    const OVERLAP: usize = 30;
    let mut rng = SplitMix64::new(seed);
    let mut edges = Edges::with_capacity(12_000_000)?;
    let mut first = 0;
    while first < N {
        let width = (N - first).min(100 + rng.modulo(700));
        edges.push_clique(first..first + width)?;
        first += width.saturating_sub(OVERLAP).max(1);
    }
    for _ in 0..24 {
        let long = rng.modulo(N);
        for _ in 0..2000 + rng.modulo(12_600) {
            edges.push_both(long, rng.modulo(N))?;
        }
    }
    edges.into_pattern(N, N)
}

/// Makes a power flow matrix: groups of 16 to 79 rows share the same 4 to 11 runs of columns.
pub(super) fn tsopf(seed: u64) -> Result<OwnedCsr<()>> {
    const N: usize = 38_120;
    let mut rng = SplitMix64::new(seed);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut left = 0;
    from_rows_in_order(N, N, 16_000_000, |row, out| {
        if left == 0 {
            left = 16 + rng.modulo(64);
            let count = 4 + rng.modulo(8);
            runs.clear();
            runs.extend((0..count).map(|_| {
                let first = (row + rng.modulo(6000)).saturating_sub(3000).min(N - 1);
                (first, N.min(first + 20 + rng.modulo(80)))
            }));
        }
        left -= 1;
        runs.iter().try_for_each(|&(first, end)| out.extend(first, end))?;
        out.push(row)
    })
}

#[cfg(test)]
mod tests;
