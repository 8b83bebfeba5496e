//! Linear elasticity of a brick: the stiffness matrix of trilinear hexahedra, and load vectors.

use std::array;

use super::{axis_pairs, dimension, grid, neighbours, Result};
use crate::owned::{try_with_capacity, MatrixError, OwnedCsr, RowBuilder, MAX_DIMENSION};

/// The stiffness matrix K_e = ∫ Bᵀ D B of an 8-node trilinear hexahedron on the unit cube, by
/// 2×2×2 Gauss integration (exact here). Node a sits at (a & 1, a >> 1 & 1, a >> 2); its unknown
/// in direction d is number 3a + d. `young` is E > 0 (pressure), `poisson_ratio` is ν with
/// −1 < ν < 1/2; the result has the unit of E times length and is exactly symmetric. Its null
/// space is the 6 rigid body modes.
pub fn elasticity_element(young: f64, poisson_ratio: f64) -> Result<[[f64; 24]; 24]> {
    if !(young.is_finite() && young > 0.0) {
        return Err(MatrixError::argument("young", young, "0 < E < infinity"));
    }
    if !(poisson_ratio > -1.0 && poisson_ratio < 0.5) {
        let expected = "-1 < nu < 0.5";
        return Err(MatrixError::argument("poisson_ratio", poisson_ratio, expected));
    }
    // Hooke's law for the strains (xx, yy, zz, xy, yz, zx), shear as engineering strain γ = 2ε.
    let mu = young / (2.0 * (1.0 + poisson_ratio));
    let lambda = 2.0 * mu * poisson_ratio / (1.0 - 2.0 * poisson_ratio);
    let hooke: [[f64; 6]; 6] = array::from_fn(|i| {
        array::from_fn(|j| match (i < 3, j < 3) {
            (true, true) if i == j => lambda + 2.0 * mu,
            (true, true) => lambda,
            _ if i == j => mu,
            _ => 0.0,
        })
    });
    let gauss = 0.5 / 3.0f64.sqrt();
    let points = [0.5 - gauss, 0.5 + gauss]; // of the unit interval; each weighs 1/2
    let mut upper = [[0.0; 24]; 24];
    for point in grid([0; 3], [2; 3]) {
        let at = point.map(|p| points[p]);
        let mut strain = [[0.0; 24]; 6]; // B
        for node in 0..8 {
            let bit = |d: usize| node >> d & 1 == 1;
            let shape = |d: usize| if bit(d) { at[d] } else { 1.0 - at[d] };
            let slope = |d: usize| if bit(d) { 1.0 } else { -1.0 };
            for d in 0..3 {
                let gradient = slope(d) * shape((d + 1) % 3) * shape((d + 2) % 3);
                strain[d][3 * node + d] = gradient;
                // Shear strains: 3 couples x and y, 4 y and z, 5 z and x.
                strain[3 + d][3 * node + (d + 1) % 3] = gradient;
                strain[3 + (d + 2) % 3][3 * node + (d + 2) % 3] = gradient;
            }
        }
        for i in 0..24 {
            let stress: [f64; 6] = array::from_fn(|k| (0..6).map(|l| strain[l][i] * hooke[l][k]).sum());
            for j in i..24 {
                let energy: f64 = (0..6).map(|k| stress[k] * strain[k][j]).sum();
                upper[i][j] += energy / 8.0;
            }
        }
    }
    Ok(array::from_fn(|i| array::from_fn(|j| upper[i.min(j)][i.max(j)])))
}

/// 3D linear elasticity: the stiffness matrix of a brick of nx × ny × nz unit-cube trilinear
/// elements ([`elasticity_element`]), its face x = 0 clamped by leaving out that face's unknowns.
///
/// 3·nx·(ny+1)·(nz+1) rows; node (i, j, k), 1 ≤ i ≤ nx, 0 ≤ j ≤ ny, 0 ≤ k ≤ nz, has number
/// (k·(ny+1) + j)·nx + i − 1, and its three unknowns follow each other. Every 3×3 block between
/// nodes of a common element is stored whole, as FEM codes do. Exactly symmetric, positive
/// definite. Elements of edge h: multiply by h. `nx`, `ny`, `nz` ≥ 1.
pub fn elasticity(nx: usize, ny: usize, nz: usize, young: f64, poisson_ratio: f64) -> Result<OwnedCsr<f64>> {
    assemble_elasticity([nx, ny, nz], young, poisson_ratio, 1)
}

/// Checks the element counts and gives the exclusive end of the node grid in each axis.
fn node_grid(elements: [usize; 3]) -> Result<[usize; 3]> {
    for (what, count) in ["nx", "ny", "nz"].into_iter().zip(elements) {
        // The upper bound keeps the sums and products below far from overflow.
        if count == 0 || count > MAX_DIMENSION {
            let expected = format_args!("1 to {MAX_DIMENSION} elements");
            return Err(MatrixError::argument(what, count, expected));
        }
    }
    Ok(elements.map(|count| count + 1))
}

/// Like [`elasticity`], but leaves out only the nodes with i < `first`: 0 gives the free, singular matrix.
pub(super) fn assemble_elasticity(
    elements: [usize; 3],
    young: f64,
    poisson_ratio: f64,
    first: usize,
) -> Result<OwnedCsr<f64>> {
    let end = node_grid(elements)?;
    let element = elasticity_element(young, poisson_ratio)?;
    let sizes = [end[0] - first, end[1], end[2]];
    let rows = dimension([3 * sizes[0], sizes[1], sizes[2]])?;
    let nnz = sizes.iter().fold(9, |nnz, &size| nnz * axis_pairs(size));
    let mut matrix = RowBuilder::new(rows, rows, nnz)?;
    let lowest = [first, 0, 0];
    for node in grid(lowest, end) {
        // Assembled row by row, not element by element, which needs no array beside the result. The elements
        // around a node are visited in the grid's order, so (i, j) and (j, i) are the same sum.
        let mut blocks = [[[0.0; 3]; 27]; 3];
        // The position among 27 of a node at distance −1, 0 or 1 in each axis.
        let block_of = |q: [usize; 3]| (0..3).rev().fold(0, |n, d| 3 * n + q[d] + 1 - node[d]);
        let around_end = array::from_fn(|d| (node[d] + 1).min(elements[d]));
        for corner in grid(node.map(|p| p.saturating_sub(1)), around_end) {
            let a = (0..3).rev().fold(0, |a, d| 2 * a + node[d] - corner[d]);
            for b in 0..8 {
                let q = array::from_fn(|d| corner[d] + (b >> d & 1));
                for (r, row) in blocks.iter_mut().enumerate() {
                    for (c, sum) in row[block_of(q)].iter_mut().enumerate() {
                        *sum += element[3 * a + r][3 * b + c];
                    }
                }
            }
        }
        for row in &blocks {
            for q in neighbours(node, lowest, end) {
                let number = (q[2] * sizes[1] + q[1]) * sizes[0] + q[0] - first;
                for (c, &value) in row[block_of(q)].iter().enumerate() {
                    matrix.push(3 * number + c, value)?;
                }
            }
            matrix.end_row()?;
        }
    }
    Ok(matrix.finish())
}

/// A load on the brick of [`elasticity`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// A force per volume, (x, y, z), on the whole brick.
    Body([f64; 3]),
    /// A force per area, (x, y, z), on the face x = nx, opposite to the clamped one.
    Traction([f64; 3]),
}

/// The consistent load vector f = ∫ Nᵀ load that belongs to [`elasticity`]`(nx, ny, nz, …)`: one value per
/// row, in the unit of a force. Forces on the clamped nodes are left out.
pub fn elasticity_load(nx: usize, ny: usize, nz: usize, load: Load) -> Result<Vec<f64>> {
    let elements = [nx, ny, nz];
    let end = node_grid(elements)?;
    let mut forces = try_with_capacity(dimension([3 * nx, end[1], end[2]])?)?;
    for node in grid([1, 0, 0], end) {
        // A node takes 1/2 per axis from each element on either side of it.
        let share = |d: usize| {
            let sides = usize::from(node[d] > 0) + usize::from(node[d] < elements[d]);
            sides as f64 / 2.0
        };
        let (density, weight) = match load {
            Load::Body(density) => (density, share(0) * share(1) * share(2)),
            Load::Traction(density) if node[0] == nx => (density, share(1) * share(2)),
            Load::Traction(density) => (density, 0.0),
        };
        forces.extend(density.map(|force| force * weight));
    }
    Ok(forces)
}
