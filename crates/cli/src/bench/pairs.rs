//! Products of two matrices: pairs of files, and the Galerkin products of algebraic multigrid hierarchies,
//! A·P and R·(A·P) of each level, which make the matrix of the next level.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use matrices::owned::OwnedCsr;
use rayon::prelude::*;

use super::input;
use super::number::room;
use crate::Result;

/// Endings of the files of a hierarchy, in the order in which they are tried.
const ENDINGS: [&str; 4] = ["tsm", "mtx", "mtx.gz", "bin"];

/// Patterns of two matrices whose product is timed.
pub struct Pair {
    /// The product's name in tables.
    pub name: String,
    /// The first factor.
    pub a: OwnedCsr<()>,
    /// The second factor, which has as many rows as the first one has columns.
    pub b: OwnedCsr<()>,
}

impl Pair {
    fn new(name: String, a: OwnedCsr<()>, b: OwnedCsr<()>) -> Result<Self> {
        if a.cols != b.rows {
            let [a, b] = [&a, &b].map(|matrix| format!("{} × {}", matrix.rows, matrix.cols));
            return Err(format!("{name}: a matrix of {a} cannot be multiplied by one of {b}").into());
        }
        Ok(Pair { name, a, b })
    }

    /// Reads the matrices in two files.
    pub fn read(a: &Path, b: &Path) -> Result<Self> {
        let (a, b) = (input::read(a)?, input::read(b)?);
        Pair::new(format!("{}*{}", a.name, b.name), a.pattern, b.pattern)
    }
}

/// The files of a multigrid hierarchy.
pub struct Hierarchy {
    /// Name of its folder.
    pub name: String,
    /// Files of A and P of each level that has a coarser level below it.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Hierarchy {
    /// Looks for A0, P0, A1, P1, … in a folder; the coarsest level has no P, and its A is not needed.
    pub fn find(folder: &Path) -> Result<Self> {
        let said = |reason: &dyn std::fmt::Display| format!("--hierarchy {}: {reason}", folder.display());
        let whole = folder.canonicalize().map_err(|error| said(&error))?;
        let name = whole.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut levels = Vec::new();
        for entry in whole.read_dir().map_err(|error| said(&error))? {
            levels.extend(level_of_prolongation(&entry.map_err(|error| said(&error))?.file_name()));
        }
        levels.sort_unstable();
        levels.dedup();
        let file = |letter: char, level: usize| {
            let names = ENDINGS.iter().map(|ending| format!("{letter}{level}.{ending}"));
            let path = names.map(|name| folder.join(name)).find(|path| path.is_file());
            path.ok_or_else(|| said(&format_args!("there is no {letter}{level} ({})", ENDINGS.join(", "))))
        };
        // Requires at least one level, and no gap between levels.
        let count = levels.last().map_or(1, |last| last + 1);
        let files = (0..count).map(|level| Ok((file('A', level)?, file('P', level)?)));
        Ok(Hierarchy { name, files: files.collect::<Result<_>>()? })
    }

    /// Returns the number of levels that have products.
    pub fn levels(&self) -> usize {
        self.files.len()
    }

    /// Makes A·P and R·(A·P) of a level, with R = Pᵀ.
    pub fn products(&self, level: usize) -> Result<[Pair; 2]> {
        let (a, p) = &self.files[level];
        let (a, p) = (input::read(a)?.pattern, input::read(p)?.pattern);
        let name = |product: &str| format!("{}/level{level}/{product}", self.name);
        let (r, first) = (p.transpose()?, Pair::new(name("A*P"), a, p)?);
        let second = Pair::new(name("R*AP"), r, product(&first.a, &first.b)?)?;
        Ok([first, second])
    }
}

/// Returns the level of P from the name of a file such as `P3.tsm`.
fn level_of_prolongation(name: &OsStr) -> Option<usize> {
    let (level, ending) = name.to_str()?.strip_prefix('P')?.split_once('.')?;
    ENDINGS.contains(&ending).then(|| level.parse().ok()).flatten()
}

/// Returns the pattern of A·B, including entries whose terms may cancel, as numeric products keep them.
fn product(a: &OwnedCsr<()>, b: &OwnedCsr<()>) -> Result<OwnedCsr<()>> {
    let row = |row: usize| {
        let terms = a.row(row).0.iter().flat_map(|&k| b.row(k as usize).0);
        let mut cols: Vec<i32> = terms.copied().collect();
        cols.sort_unstable();
        cols.dedup();
        cols
    };
    let rows: Vec<Vec<i32>> = (0..a.rows).into_par_iter().map(row).collect();
    let nnz = rows.iter().map(Vec::len).sum();
    let (mut offsets, mut indices) = (room(a.rows + 1)?, room(nnz)?);
    offsets.push(0);
    for cols in rows {
        indices.extend(cols);
        offsets.push(indices.len() as i64);
    }
    Ok(OwnedCsr { rows: a.rows, cols: b.cols, offsets, indices, values: vec![(); nnz] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gallery::by_name;

    #[test]
    fn the_pattern_of_a_product() {
        let pattern = |rows, cols, places: &[(i32, i32)]| {
            let entries = places.iter().map(|&(row, col)| (row, col, 1.0)).collect();
            OwnedCsr::from_triplets(rows, cols, entries).unwrap().into_pattern()
        };
        let a = pattern(3, 2, &[(0, 1), (2, 0), (2, 1)]);
        let b = pattern(2, 4, &[(0, 1), (0, 3), (1, 0), (1, 3)]);
        let c = product(&a, &b).unwrap();
        assert_eq!((c.rows, c.cols), (3, 4));
        assert_eq!((c.offsets, c.indices), (vec![0, 2, 2, 5], vec![0, 3, 0, 1, 3]));
        let wide = by_name("uniform:4x3:2").unwrap().into_pattern();
        let error = Pair::new("c".into(), wide, by_name("uniform:4x3:2").unwrap().into_pattern()).err();
        assert_eq!(error.unwrap().to_string(), "c: a matrix of 4 × 3 cannot be multiplied by one of 4 × 3");
    }

    #[test]
    fn files_of_prolongations_are_known_by_their_names() {
        let found = ["P0.tsm", "P12.mtx.gz", "A1.tsm", "P.tsm", "P1.txt", "Px.tsm", "P3"];
        let found = found.map(|name| level_of_prolongation(OsStr::new(name)));
        assert_eq!(found, [Some(0), Some(12), None, None, None, None, None]);
    }
}
