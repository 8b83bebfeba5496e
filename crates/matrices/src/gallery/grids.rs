//! Graphs of regular grids: meshes, the lattices of quantum chromodynamics, a Markov chain.

use super::build::from_rows;
use super::transform::expand;
use super::{axis_pairs, dimension, neighbours, Result};
use crate::owned::{MatrixError, OwnedCsr};

/// Pairs of nodes of a mesh of hexahedra that share an entry, beside each node with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nodes one step apart along an axis: 7 points, the finite differences of second order.
    Faces,
    /// Also nodes at most one step apart along each of two axes: 19 points.
    Edges,
    /// Nodes of a common element: 27 points, trilinear finite elements; 9 in one layer of nodes.
    Corners,
}

/// The graph of a mesh of nx × ny × nz nodes, x fastest: (p, q) where every coordinate of p and q
/// differs by at most 1, and all together by at most 1, 2 or 3 as `reach` says. nx·ny·nz rows;
/// symmetric, with its diagonal. [`expand`] gives each node its unknowns.
pub fn hex_mesh(nodes: [usize; 3], reach: Reach) -> Result<OwnedCsr<()>> {
    let rows = dimension(nodes)?;
    let (steps, points) = match reach {
        Reach::Faces => (1, 7),
        Reach::Edges => (2, 19),
        Reach::Corners => (3, 27),
    };
    let box_pairs = nodes.iter().fold(1u128, |pairs, &n| pairs.saturating_mul(axis_pairs(n)));
    from_rows(rows, rows, box_pairs.min(points * rows as u128), |row, cols| {
        let [nx, ny, _] = nodes;
        let p = [row % nx, row / nx % ny, row / nx / ny];
        for q in neighbours(p, [0; 3], nodes) {
            if (0..3).map(|d| p[d].abs_diff(q[d])).sum::<usize>() <= steps {
                cols.push((q[2] * ny + q[1]) * nx + q[0])?;
            }
        }
        Ok(())
    })
}

/// The sites one step from `site` in a periodic lattice of four dimensions, x fastest, each with its axis. A
/// site across a period of 1 or 2 comes twice.
fn around(site: usize, dims: [usize; 4]) -> impl Iterator<Item = (usize, usize)> {
    let mut stride = 1;
    (0..4).flat_map(move |axis| {
        let (here, n) = (stride, dims[axis]);
        stride *= n;
        let x = site / here % n;
        let to = move |y: usize| site - x * here + y * here;
        [(axis, to((x + n - 1) % n)), (axis, to((x + 1) % n))]
    })
}

/// A periodic 4D lattice with `unknowns` a site: every site is coupled to itself and to its 8
/// neighbours by a dense block. nx·ny·nz·nt·`unknowns` rows, x fastest; symmetric.
pub fn lattice4(dims: [usize; 4], unknowns: usize) -> Result<OwnedCsr<()>> {
    let sites = dimension(dims)?;
    dimension([sites, unknowns])?;
    let graph = from_rows(sites, sites, 9 * sites as u128, |site, cols| {
        cols.push(site)?;
        around(site, dims).try_for_each(|(_, neighbour)| cols.push(neighbour))
    })?;
    expand(&graph, unknowns)
}

/// A stand-in for Wilson's fermion operator on a periodic 4D lattice: 4 spins of 3 colours per site. A spin
/// is coupled, by full 3×3 blocks of colours, to itself on its own site and on the 8 neighbouring sites;
/// along the third axis also to spin ^ 1, along the fourth to spin ^ 2. 39 entries a row, like the published
/// matrices of quantum chromodynamics, fewer if a period is 1 or 2; nx·ny·nz·nt·12 rows; symmetric.
pub fn wilson(dims: [usize; 4]) -> Result<OwnedCsr<()>> {
    const SPINS: usize = 4;
    const COLOURS: usize = 3;
    let sites = dimension(dims)?;
    dimension([sites, SPINS * COLOURS])?;
    let rows = sites * SPINS;
    let spins = from_rows(rows, rows, 13 * rows as u128, |row, cols| {
        let (site, spin) = (row / SPINS, row % SPINS);
        cols.push(row)?;
        around(site, dims).try_for_each(|(axis, neighbour)| {
            cols.push(neighbour * SPINS + spin)?;
            match axis {
                2 => cols.push(neighbour * SPINS + (spin ^ 1)),
                3 => cols.push(neighbour * SPINS + (spin ^ 2)),
                _ => Ok(()),
            }
        })
    })?;
    expand(&spins, COLOURS)
}

/// A Markov chain on the triangle of states (i, j), i + j < `n`: a state is coupled to itself, to (i + 1, j),
/// (i − 1, j) and (i, j − 1) where they exist. States are numbered by (i, j), j fastest; n·(n + 1)/2 rows of
/// at most 4 entries, whose distances to the diagonal change from row to row.
pub fn markov_triangle(n: usize) -> Result<OwnedCsr<()>> {
    let states = n as u128 * (n as u128 + 1) / 2;
    let rows = dimension([usize::try_from(states).unwrap_or(usize::MAX)])?;
    from_rows(rows, rows, 4 * states, |row, cols| {
        // Line i begins at i·n − i·(i − 1)/2.
        let start = |i: usize| i * (2 * n + 1 - i) / 2;
        let i = line(n, row);
        let j = row - start(i);
        cols.push(row)?;
        if i + 1 + j < n {
            cols.push(start(i + 1) + j)?;
        }
        if i > 0 {
            cols.push(start(i - 1) + j)?;
        }
        if j > 0 {
            cols.push(row - 1)?;
        }
        Ok(())
    })
}

/// Returns the line i of [`markov_triangle`]'s state number `row`: the last line that begins at or before it.
fn line(n: usize, row: usize) -> usize {
    let (mut low, mut high) = (0, n);
    while high - low > 1 {
        let i = (low + high) / 2;
        if i * (2 * n + 1 - i) / 2 <= row {
            low = i;
        } else {
            high = i;
        }
    }
    low
}

/// A band: every (i, j) with i − `below` ≤ j ≤ i + `above`, `n` rows and columns.
pub fn band(n: usize, below: usize, above: usize) -> Result<OwnedCsr<()>> {
    let width = (below.min(n) + above.min(n) + 1).min(n);
    from_rows(n, n, n as u128 * width as u128, |row, cols| {
        cols.extend(row.saturating_sub(below), row.saturating_add(above).saturating_add(1).min(n))
    })
}

/// An arrow: the first `width` rows and columns full, and every (i, j) with |i − j| ≤ `half_bandwidth`.
/// Symmetric; elimination from the first row on fills it completely.
pub fn arrow(n: usize, width: usize, half_bandwidth: usize) -> Result<OwnedCsr<()>> {
    if width > n {
        return Err(MatrixError::argument("width", width, format_args!("0 to {n}")));
    }
    let body = (half_bandwidth.min(n) * 2 + 1 + width).min(n);
    let nnz = width as u128 * n as u128 + (n - width) as u128 * body as u128;
    from_rows(n, n, nnz, |row, cols| {
        if row < width {
            return cols.extend(0, n);
        }
        let first = row.saturating_sub(half_bandwidth);
        cols.extend(0, width.min(first))?;
        cols.extend(first, row.saturating_add(half_bandwidth).saturating_add(1).min(n))
    })
}
