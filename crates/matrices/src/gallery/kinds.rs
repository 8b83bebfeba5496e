//! Matrices of any size by a name with arguments, for command lines and tests.

use super::{
    arrow, banded, circuit, cliques, dense_rows_cols, dimension, elasticity, empty, expand, hex_mesh,
    hypersparse, lattice4, markov_triangle, permute, poisson, pruned, pruned_columns, pruned_skewed,
    random_permutation, rectangular, rmat, uniform, web, wilson, window_permutation, with_empty_rows,
    with_values, Hubs, Reach, Result, Stencil,
};
use crate::owned::{MatrixError, OwnedCsr};

/// Returns the kinds of names that [`by_name`] knows, each with its arguments; those in brackets may be left
/// out.
pub fn kinds() -> &'static [&'static str] {
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
        "mesh:NXxNYxNZ:UNKNOWNS[:SEED]",
        "lattice4:NXxNYxNZxNT:UNKNOWNS[:SEED]",
        "wilson:NXxNYxNZxNT[:SEED]",
        "markov:N[:SEED]",
        "arrow:N:WIDTH:HALF[:SEED]",
        "web:PAGES:GROWTH:LOCAL[:SEED]",
        "circuit:NODES:LINKS:HUBS:PINS[:SEED]",
        "pruned:ROWSxCOLS:SPARSITY[:SEED]",
        "skewed:ROWSxCOLS:SPARSITY:SKEW[:SEED]",
        "columns:ROWSxCOLS:SPARSITY:EXPONENT[:SEED]",
        "hypersparse:ROWSxCOLS:FILLED:K[:SEED]",
        "cliques:NODES:GROUPS:LARGEST:NEAR[:SEED]",
    ]
}

/// Returns the changes that may follow a kind, each behind a slash and in any number: each makes a new matrix
/// of the one before it.
pub fn changes() -> &'static [&'static str] {
    &["shuffled[:SEED]", "window:ROWS[:SEED]", "unknowns:U[:SEED]"]
}

/// Makes the matrix called `name`: a kind and its arguments as [`kinds`] lists them, e.g. `poisson7:32`,
/// `elasticity:10x10x10`, `rmat:12:8`. Arguments are separated by colons or by `x`, which are
/// interchangeable.
///
/// `poisson*` is [`poisson`]; `elasticity` is [`elasticity`] (E = 1, NU = 0.3); `rmat` is [`rmat`] with
/// Graph500's probabilities and EDGES a row; `banded` is [`banded`]; `uniform` is [`uniform`] with K entries
/// a row; `rectangular` is [`rectangular`]; `dense` is [`dense_rows_cols`]; `empty` is [`empty`]; `gaps` is
/// [`with_empty_rows`].
///
/// The other kinds are patterns, with values from SEED: `mesh` is [`hex_mesh`] of 27 points with UNKNOWNS
/// unknowns per node; `lattice4`, `wilson`, `web`, `pruned`, `hypersparse`, `cliques` and `arrow` are the
/// functions of these names; `markov` is [`markov_triangle`]; `circuit` is [`circuit`] with HUBS random hubs
/// of PINS pins; `skewed` is [`pruned_skewed`], `columns` [`pruned_columns`]. SEED is 1 unless given.
///
/// [`changes`] follow behind slashes, e.g. `poisson7:32/window:64/unknowns:3`, and make patterns: `shuffled`
/// permutes rows and columns by one random permutation, `window` shuffles them within windows of ROWS
/// ([`window_permutation`]), `unknowns` is [`expand`].
///
/// Errors: `Argument`, which names the invalid part; those of the generator.
pub fn by_name(name: &str) -> Result<OwnedCsr<f64>> {
    match make(name)? {
        Made::Matrix(matrix) => Ok(matrix),
        Made::Pattern(pattern, seed) => with_values(pattern, seed),
    }
}

/// Makes the pattern of [`by_name`]'s matrix.
pub(super) fn pattern(name: &str) -> Result<OwnedCsr<()>> {
    Ok(match make(name)? {
        Made::Matrix(matrix) => matrix.into_pattern(),
        Made::Pattern(pattern, _) => pattern,
    })
}

enum Made {
    Matrix(OwnedCsr<f64>),
    /// A pattern, and the seed of its values.
    Pattern(OwnedCsr<()>, u64),
}

fn make(name: &str) -> Result<Made> {
    if let Some((before, change)) = name.rsplit_once('/') {
        return changed(pattern(before)?, &Arguments::new(change, changes())?);
    }
    let arguments = Arguments::new(name, kinds())?;
    let n = |k| arguments.get::<usize>(k, None);
    let real = |k| arguments.get::<f64>(k, None);
    let seed = |k| arguments.get::<u64>(k, Some(1));
    let matrix = match arguments.found[0] {
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
        "empty" => empty(n(1)?, n(2)?),
        kind => {
            // SEED comes last.
            let seed = seed(arguments.labels.len() - 1)?;
            return Ok(Made::Pattern(make_pattern(kind, &arguments, seed)?, seed));
        }
    };
    Ok(Made::Matrix(matrix?))
}

/// Applies a change to a pattern.
fn changed(before: OwnedCsr<()>, arguments: &Arguments) -> Result<Made> {
    let seed = arguments.get(arguments.labels.len() - 1, Some(1))?;
    let permuted = |order: Result<Vec<u32>>| permute(&before, &order?);
    let after = match arguments.found[0] {
        "shuffled" => permuted(random_permutation(before.rows, seed)),
        "window" => permuted(window_permutation(before.rows, arguments.get(1, None)?, seed)),
        _ => {
            let unknowns = arguments.get(1, None)?;
            dimension([before.rows.max(before.cols), unknowns])?;
            expand(&before, unknowns)
        }
    };
    Ok(Made::Pattern(after?, seed))
}

fn make_pattern(kind: &str, arguments: &Arguments, seed: u64) -> Result<OwnedCsr<()>> {
    let n = |k| arguments.get::<usize>(k, None);
    let real = |k| arguments.get::<f64>(k, None);
    match kind {
        "mesh" => {
            let (nodes, unknowns) = ([n(1)?, n(2)?, n(3)?], n(4)?);
            dimension([dimension(nodes)?, unknowns])?;
            expand(&hex_mesh(nodes, Reach::Corners)?, unknowns)
        }
        "lattice4" => lattice4([n(1)?, n(2)?, n(3)?, n(4)?], n(5)?),
        "wilson" => wilson([n(1)?, n(2)?, n(3)?, n(4)?]),
        "markov" => markov_triangle(n(1)?),
        "arrow" => arrow(n(1)?, n(2)?, n(3)?),
        "web" => web(n(1)?, real(2)?, real(3)?, seed),
        "circuit" => {
            let hubs = Hubs::Random { count: n(3)?, shortest: n(4)?, spread: 1 };
            circuit(n(1)?, n(2)?, hubs, seed)
        }
        "pruned" => pruned(n(1)?, n(2)?, real(3)?, seed),
        "skewed" => pruned_skewed(n(1)?, n(2)?, real(3)?, real(4)?, seed),
        "columns" => pruned_columns(n(1)?, n(2)?, real(3)?, real(4)?, seed),
        "cliques" => cliques(n(1)?, n(2)?, n(3)?, real(4)?, seed),
        _ => hypersparse(n(1)?, n(2)?, n(3)?, n(4)?, seed),
    }
}

/// A name split into its arguments; position 0 is the kind.
struct Arguments<'a> {
    grammar: &'static str,
    labels: Vec<&'static str>,
    found: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn new(name: &'a str, kinds: &'static [&'static str]) -> Result<Self> {
        const SEPARATORS: [char; 2] = [':', 'x'];
        let found: Vec<&str> = name.split(SEPARATORS).collect();
        let is_kind = |grammar: &&&'static str| grammar.split([':', '[']).next() == Some(found[0]);
        let Some(&grammar) = kinds.iter().find(is_kind) else {
            let expected = format_args!("one of {}", kinds.join(", "));
            return Err(MatrixError::argument("kind of matrix", found[0], expected));
        };
        let labels: Vec<&str> = grammar.split(SEPARATORS).collect();
        if let Some(extra) = found.get(labels.len()) {
            return Err(MatrixError::argument(grammar, extra, "no more arguments"));
        }
        Ok(Self { grammar, labels, found })
    }

    /// Returns argument `k`, counted from 1, or `default` if the name ends before it.
    fn get<T: std::str::FromStr>(&self, k: usize, default: Option<T>) -> Result<T> {
        let value = match self.found.get(k) {
            Some(text) => text.parse().ok(),
            None => default,
        };
        value.ok_or_else(|| {
            let label = self.labels[k].trim_matches(['[', ']']);
            let what = format_args!("{label} of {}", self.grammar);
            let found = self.found.get(k).unwrap_or(&"the end");
            let expected = match std::any::type_name::<T>() {
                "f64" => "a number",
                _ => "a whole number that is not negative",
            };
            MatrixError::argument(what, found, expected)
        })
    }
}
