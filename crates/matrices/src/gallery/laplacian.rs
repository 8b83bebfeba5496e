//! Grids by name, and the values of the discrete Laplacian on them.

use super::Result;
use crate::owned::{try_filled, MatrixError, OwnedCsr};

/// Matrices of the list that are grids, with the number of neighbours of an inner point.
const NAMED: [(&str, f64); 5] =
    [("hpcg128", 26.0), ("poisson160", 6.0), ("plate", 8.0), ("shuffled27", 26.0), ("windowed7", 6.0)];
/// Kinds of matrices that are grids, with the number of neighbours of an inner point.
const KINDS: [(&str, f64); 3] = [("poisson5", 4.0), ("poisson7", 6.0), ("poisson27", 26.0)];
/// Changes that only reorder the points of a grid.
const ORDERS: [&str; 2] = ["shuffled", "window"];

/// Returns how many neighbours an inner point of the grid called `name` has; `None` if that is not the name
/// of a grid. (Does not check that there is a matrix of this name.)
fn neighbours_of(name: &str) -> Option<f64> {
    if let Some((_, count)) = NAMED.iter().find(|(grid, _)| *grid == name) {
        return Some(*count);
    }
    let mut parts = name.split('/').map(|part| part.split(':').next().unwrap_or_default());
    let kind = parts.next()?;
    let (_, count) = KINDS.iter().find(|(grid, _)| *grid == kind)?;
    parts.all(|change| ORDERS.contains(&change)).then_some(*count)
}

/// Returns whether [`laplacian`] has values for the matrix of this name ([`named`](super::named)).
pub fn is_grid(name: &str) -> bool {
    neighbours_of(name).is_some()
}

/// Gives values to `pattern`, the pattern of the grid called `name` ([`named`](super::named)): the discrete
/// Laplacian −Δ (times h²) with Dirichlet boundary, the number of neighbours of an inner point on the
/// diagonal, −1 for each neighbour in the grid. Symmetric positive definite.
///
/// Errors: `Argument` if [`is_grid`] is false for the name; `OutOfMemory`.
pub fn laplacian(name: &str, pattern: OwnedCsr<()>) -> Result<OwnedCsr<f64>> {
    let Some(diagonal) = neighbours_of(name) else {
        let kinds = KINDS.iter().map(|(kind, _)| format!("{kind}:N"));
        let grids: Vec<String> = kinds.chain(NAMED.iter().map(|(name, _)| name.to_string())).collect();
        let expected = format_args!("a grid: one of {}", grids.join(", "));
        return Err(MatrixError::argument("name of a matrix", name, expected));
    };
    let OwnedCsr { rows, cols, offsets, indices, .. } = pattern;
    let mut values = try_filled(indices.len(), -1.0)?;
    for row in 0..rows {
        // Columns are sorted.
        let (first, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        if let Ok(at) = indices[first..end].binary_search(&(row as i32)) {
            values[first + at] = diagonal;
        }
    }
    Ok(OwnedCsr { rows, cols, offsets, indices, values })
}

#[cfg(test)]
mod tests {
    use super::super::{by_name, named, names, permute, poisson, random_permutation, Stencil};
    use super::*;

    #[test]
    fn kinds_have_the_values_of_the_poisson_operator() {
        for (name, stencil) in [
            ("poisson5:9", Stencil::Five),
            ("poisson7:6", Stencil::Seven),
            ("poisson27:5", Stencil::TwentySeven),
        ] {
            let n = by_name(name).unwrap();
            let found = laplacian(name, named(name).unwrap()).unwrap();
            assert_eq!(found, n, "{name}");
            let side = name.split(':').nth(1).unwrap().parse().unwrap();
            assert_eq!(found, poisson(stencil, side).unwrap(), "{name}");
        }
    }

    #[test]
    fn another_order_is_the_same_operator() {
        let name = "poisson7:5/shuffled:3";
        let found = laplacian(name, named(name).unwrap()).unwrap();
        let order = random_permutation(125, 3).unwrap();
        let pattern = permute(&named("poisson7:5").unwrap(), &order).unwrap();
        assert_eq!((&found.offsets, &found.indices), (&pattern.offsets, &pattern.indices));
        let plain = poisson(Stencil::Seven, 5).unwrap();
        // Row i of one matrix is a row of the other: the row sums are the same, in another order.
        let sums = |a: &OwnedCsr<f64>| {
            let mut sums: Vec<f64> = (0..a.rows).map(|row| a.row(row).1.iter().sum()).collect();
            sums.sort_by(f64::total_cmp);
            sums
        };
        assert_eq!(sums(&found), sums(&plain));
        assert!(found.is_cg_candidate(0.0));
    }

    #[test]
    fn grids_are_known_by_name() {
        let grids: Vec<&str> = names().iter().map(|entry| entry.name).filter(|name| is_grid(name)).collect();
        assert_eq!(grids, ["hpcg128", "poisson160", "shuffled27", "windowed7", "plate"]);
        // No row of a grid has more entries than an inner point, whose row sum is 0.
        let found = laplacian("plate", named("plate").unwrap()).unwrap();
        let sums = |row: usize| found.row(row).1.iter().sum::<f64>();
        let inner = (0..found.rows).filter(|&row| sums(row) == 0.0).count();
        assert_eq!((found.rows, inner), (52 * 24, 50 * 22));
        for name in ["cant", "poisson7:3/unknowns:2", "uniform:9x9:2", "cop20k", "mesh:3x3x3:1", "poisson6:3"]
        {
            assert!(!is_grid(name), "{name}");
        }
        let error = laplacian("cant", named("plate").unwrap()).unwrap_err();
        assert!(error.to_string().contains("poisson7:N"), "{error}");
    }
}
