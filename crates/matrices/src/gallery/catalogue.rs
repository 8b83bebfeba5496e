//! The gallery's list: matrices of fixed size, by name.

use super::comparison::{self as c, libstdcxx_hash};
use super::grids::{arrow, band, hex_mesh, lattice4, markov_triangle, wilson, Reach};
use super::layers::{hypersparse, pruned, pruned_skewed};
use super::networks::{circuit, web, Hubs};
use super::transform::{expand, permute, random_permutation, window_permutation};
use super::{kinds, Result};
use crate::owned::{MatrixError, OwnedCsr};

/// The parts of the gallery's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The 25 matrices of the comparison tables: 0.5 to 56 million entries.
    Comparison,
    /// Smaller matrices with further structures: 10⁴ to 5·10⁶ entries.
    More,
}

/// End of the name of a stand-in: a matrix that imitates a well-known one and is not that one.
pub const STAND_IN: char = '~';

/// A matrix of the gallery's list.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Name of the matrix; that of a stand-in ends in [`STAND_IN`].
    pub name: &'static str,
    /// Part of the list to which it belongs.
    pub set: Set,
    /// Description in one line.
    pub description: &'static str,
    /// Number of entries of a stand-in, by which it is told from the matrix that it imitates.
    entries: Option<usize>,
    /// Function that makes the pattern from its seed.
    make: fn(u64) -> Result<OwnedCsr<()>>,
}

impl Named {
    /// Returns the name without the mark of a stand-in, which is that of the matrix that it imitates.
    fn bare_name(&self) -> &'static str {
        self.name.trim_end_matches(STAND_IN)
    }

    /// Returns its seed, a hash of its name without the mark of a stand-in.
    pub fn seed(&self) -> u64 {
        libstdcxx_hash(self.bare_name())
    }

    /// Makes its pattern. Error: `OutOfMemory`.
    pub fn pattern(&self) -> Result<OwnedCsr<()>> {
        (self.make)(self.seed())
    }
}

/// Returns the list, the matrices of the comparison tables first.
pub fn names() -> &'static [Named] {
    &LIST
}

/// Finds a matrix of the list by its name, that of a stand-in with or without its mark.
pub fn find(name: &str) -> Option<&'static Named> {
    LIST.iter().find(|entry| entry.name == name || entry.bare_name() == name)
}

/// Returns the name of a matrix in a table, with the mark that tables of before version 0.2 leave out behind
/// the names of stand-ins. `nnz` tells these from the matrices that they imitate; without it, as in tables
/// that do not hold it, the name alone decides. What follows the name (`:f32`, `^T`) stays.
pub fn name_in_table(name: &str, nnz: Option<usize>) -> String {
    let (base, rest) = name.split_at(name.find([':', '^']).unwrap_or(name.len()));
    let is_stand_in =
        |entry: &&Named| entry.entries.is_some_and(|entries| nnz.is_none_or(|nnz| nnz == entries));
    match find(base).filter(is_stand_in) {
        Some(entry) => format!("{}{rest}", entry.name),
        None => name.into(),
    }
}

/// Makes the pattern called `name`: one of the list ([`find`]), or a kind with arguments as
/// [`by_name`](super::by_name) takes it. Identical on every platform; see the module.
///
/// Errors: `Argument` if there is no such name or an argument is invalid; those of the generator.
pub fn named(name: &str) -> Result<OwnedCsr<()>> {
    if let Some(entry) = find(name) {
        return entry.pattern();
    }
    if name.contains(':') {
        return kinds::pattern(name);
    }
    let known: Vec<&str> = LIST.iter().map(|entry| entry.name).collect();
    let expected = format_args!("one of {}, or a kind with its arguments", known.join(", "));
    Err(MatrixError::argument("name of a matrix", name, expected))
}

const fn comparison(
    name: &'static str,
    description: &'static str,
    make: fn(u64) -> Result<OwnedCsr<()>>,
) -> Named {
    Named { name, set: Set::Comparison, description, entries: None, make }
}

const fn stand_in(
    name: &'static str,
    entries: usize,
    description: &'static str,
    make: fn(u64) -> Result<OwnedCsr<()>>,
) -> Named {
    Named { name, set: Set::Comparison, description, entries: Some(entries), make }
}

const fn more(name: &'static str, description: &'static str, make: fn(u64) -> Result<OwnedCsr<()>>) -> Named {
    Named { name, set: Set::More, description, entries: None, make }
}

static LIST: [Named; 47] = [
    stand_in("mc2depi~", 2_100_225, "Markov chain on a triangle of states, 4 a row", c::mc2depi),
    stand_in("cant~", 4_325_625, "cantilever: hexahedra, 3 unknowns a node", c::cant),
    stand_in(
        "consph~",
        6_342_336,
        "spheres: hexahedra, 3 unknowns, nodes shuffled in windows of 128",
        c::consph,
    ),
    stand_in("pwtk~", 11_675_808, "wind tunnel: one layer of nodes, 6 unknowns each", c::pwtk),
    stand_in(
        "shipsec1~",
        7_518_564,
        "ship: one layer, 6 unknowns, nodes shuffled in windows of 512",
        c::shipsec1,
    ),
    stand_in("conf5~", 1_916_928, "quantum chromodynamics: Wilson's operator on 8⁴ sites", c::conf5),
    stand_in("webbase~", 2_872_605, "web crawl: 3 links a page, up to 4,425", c::webbase),
    comparison("rmat20", "R-MAT graph of 2²⁰ vertices, 16 edges each", c::rmat20),
    comparison("rmat16", "R-MAT graph of 2¹⁶ vertices, 8 edges each", c::rmat16),
    comparison("hpcg128", "27-point stencil on 128³ points", c::hpcg128),
    comparison("poisson160", "7-point stencil on 160³ points", c::poisson160),
    stand_in("cop20k~", 2_207_592, "19-point mesh, nodes in random order", c::cop20k),
    stand_in("scircuit~", 954_252, "circuit, 40 nets of up to 349 pins", c::scircuit),
    stand_in("dc2~", 758_701, "circuit, nets of 114,000, 47,000 and 14,000 pins", c::dc2),
    comparison("uniform", "16 random columns a row", c::uniform),
    stand_in(
        "mip1~",
        12_162_315,
        "integer program: diagonal blocks, 300 long and 4 full rows and columns",
        c::mip1,
    ),
    stand_in("si41~", 13_660_545, "electrons: lines of 13 points in 3D, and 84 dense balls", c::si41),
    stand_in("gupta3~", 9_635_799, "dense blocks that overlap, long rows and columns", c::gupta3),
    stand_in("tsopf~", 15_490_745, "power flow: groups of rows share long runs of columns", c::tsopf),
    comparison("band64", "64 diagonals of 16,384 rows", c::band64),
    comparison("band256", "256 diagonals", c::band256),
    comparison("band1024", "1,024 diagonals", c::band1024),
    comparison("dnn90", "pruned layer, 4096 × 4096, 10% kept", c::dnn90),
    comparison("dnn80", "pruned layer, 20% kept", c::dnn80),
    stand_in("mac_econ~", 1_207_313, "economy: 6 a row, near the diagonal and anywhere", c::mac_econ),
    more("lattice4d", "4D lattice of 6³·8 sites, dense blocks of 12 × 12", |_| lattice4([6, 6, 6, 8], 12)),
    more("wilson6", "Wilson's operator on 6³·12 sites", |_| wilson([6, 6, 6, 12])),
    more("markov400", "Markov chain on a triangle of 400 states a side", |_| markov_triangle(400)),
    more("web200k", "web by copying: power laws of rows and columns", |seed| web(200_000, 0.37, 0.6, seed)),
    more("hubs", "circuit of 50,000 nodes, three hubs, two of them tied to nearly all", |seed| {
        circuit(50_000, 2, Hubs::Spread(&[(7, 48_000), (31_000, 45_000), (40_001, 9_000)]), seed)
    }),
    more("buses", "circuit of 80,000 nodes, 300 nets of 1,000 to 4,999 pins", |seed| {
        circuit(80_000, 1, Hubs::Random { count: 300, shortest: 1_000, spread: 4_000 }, seed)
    }),
    more("pruned70", "pruned layer, 1024 × 4096, 30% kept", |seed| pruned(1024, 4096, 0.7, seed)),
    more("pruned95", "pruned layer, 2048 × 2048, 5% kept", |seed| pruned(2048, 2048, 0.95, seed)),
    more("pruned98tall", "pruned embedding, 32,768 × 512, 2% kept", |seed| pruned(32_768, 512, 0.98, seed)),
    more("skewed90", "pruned layer, 2048 × 4096, 10% kept, row lengths 0 to 4 times the mean", |seed| {
        pruned_skewed(2048, 4096, 0.9, 1.0, seed)
    }),
    more("arrow", "3 full rows and columns and a tridiagonal, 200,000 rows", |_| arrow(200_000, 3, 1)),
    more("hypersparse", "2,000,000 rows of which 1% hold 8 entries", |seed| {
        hypersparse(2_000_000, 2_000_000, 20_000, 8, seed)
    }),
    more("gaps", "half of 100,000 rows empty, 20 entries in the others", |seed| {
        Ok(super::with_empty_rows(100_000, 100_000, 20, 0.5, seed)?.into_pattern())
    }),
    more("shuffled27", "27-point stencil on 40³ points in random order", |seed| {
        let graph = hex_mesh([40; 3], Reach::Corners)?;
        permute(&graph, &random_permutation(graph.rows, seed)?)
    }),
    more("windowed7", "7-point stencil on 64³ points, shuffled in windows of 1,024", |seed| {
        let graph = hex_mesh([64; 3], Reach::Faces)?;
        permute(&graph, &window_permutation(graph.rows, 1024, seed)?)
    }),
    more("blocks16", "5-point stencil on 40² points, dense blocks of 16 × 16", |_| {
        expand(&hex_mesh([40, 40, 1], Reach::Faces)?, 16)
    }),
    more("graph5", "R-MAT graph of 2¹² vertices, dense blocks of 5 × 5", |seed| {
        expand(&super::rmat(12, 8, 0.57, 0.19, 0.19, seed)?, 5)
    }),
    more("tridiagonal", "3 diagonals of 1,000,000 rows", |_| band(1_000_000, 1, 1)),
    more("band401", "401 diagonals of 4,096 rows", |_| band(4096, 200, 200)),
    more("tall", "2 entries in each of 500,000 rows, 256 columns", |seed| {
        Ok(super::uniform(500_000, 256, 2, seed)?.into_pattern())
    }),
    more("wide", "5,000 entries in each of 200 rows, 500,000 columns", |seed| {
        Ok(super::uniform(200, 500_000, 5_000, seed)?.into_pattern())
    }),
    more("plate", "9-point stencil on 52 × 24 points: small enough for caches", |_| {
        hex_mesh([52, 24, 1], Reach::Corners)
    }),
];
