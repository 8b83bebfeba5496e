//! Generators of random cases for all operations.

use client::{Plan, Session};
use matrices::SplitMix64;
use proptest::prelude::*;
use proptest::sample::select;
use tarsia::facade::{
    BackendKind, Effort, Format, IndexBase, OpKind, Operation, Order, PointerMode, Reorder, Result, Row,
    Types, TABLE,
};

use crate::common::number::{Value, Wide};
use crate::common::pattern::{Pattern, Style, Widths};
use crate::common::{backends, ensure, Outcome};

/// Returns the items of the support table's rows of an operation that all backends support.
fn taken<T: Copy + PartialEq + 'static>(op: OpKind, of: impl Fn(&'static Row) -> &'static [T]) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for row in TABLE.iter().filter(|row| row.op == op) {
        for item in of(row) {
            let rows = || TABLE.iter().filter(|row| row.op == op && of(row).contains(item));
            let by_all = backends().iter().all(|backend| rows().any(|row| row.backends.contains(backend)));
            if by_all && !out.contains(item) {
                out.push(*item);
            }
        }
    }
    out
}

/// Returns all combinations of types that an operation supports.
pub fn types_of(op: OpKind) -> Vec<Types> {
    taken(op, |row| row.types)
}

/// Returns all formats of the user's arrays that an operation supports.
pub fn formats_of(op: OpKind) -> Vec<Format> {
    let mut formats = taken(op, |row| row.formats);
    formats.retain(|format| *format != Format::Tile);
    formats
}

pub fn operation() -> impl Strategy<Value = Operation> {
    select(Operation::ALL)
}

pub fn order() -> impl Strategy<Value = Order> {
    select(Order::ALL)
}

pub fn effort() -> impl Strategy<Value = Effort> {
    select(Effort::ALL)
}

/// Returns the row order to request: one by name only if the algorithm supports it.
pub fn reorder(asked: Reorder, takes_orders: bool, pattern: &Pattern) -> Reorder {
    match asked {
        Reorder::Rcm if pattern.rows != pattern.cols => Reorder::None,
        _ if asked.is_named() && !takes_orders => Reorder::Auto,
        _ => asked,
    }
}

/// Analyzes a plan, in every third case with the decisions of another plan.
pub fn analyzed<'a>(
    session: &Session,
    seed: u64,
    create: impl Fn() -> Result<Plan<'a>>,
) -> Outcome<Plan<'a>> {
    let first = create()?;
    first.analyze(session)?;
    if seed % 3 != 0 {
        return Ok(first);
    }
    let (bytes, said) = (first.decisions(session)?, said(&first)?);
    drop(first);
    let second = create()?;
    second.set_decisions(session, &bytes)?;
    second.analyze(session)?;
    let says = self::said(&second)?;
    ensure!(says == said, "the plan by decisions says {says}, the other one said {said}");
    Ok(second)
}

/// Returns the information of an analyzed plan, without bytes, seconds and texts.
fn said(plan: &Plan<'_>) -> Result<String> {
    let info = plan.info()?;
    Ok(format!(
        "algorithm {} layout {} reorder {} updates {} in place {} fill {} shape {} × {} entries {} products {}",
        info.algorithm,
        info.layout as i32,
        info.reorder as i32,
        info.valueUpdates,
        info.inPlace,
        info.fill,
        info.rows,
        info.cols,
        info.nnz,
        info.products,
    ))
}

/// Checks that the plan reports a requested order by name as in use; the reference has no orders.
pub fn is_in_order(plan: &Plan<'_>, backend: BackendKind, reorder: Reorder) -> Outcome {
    let expected = if backend == BackendKind::Reference { Reorder::None } else { reorder };
    let found = plan.info()?.reorder as i32;
    let is_any =
        expected == Reorder::Learned && ![Reorder::Auto, Reorder::Learned].iter().any(|r| r.code() == found);
    ensure!(
        !reorder.is_named() || found == expected.code() || is_any,
        "{} is asked for, {found} in force",
        reorder.c_name()
    );
    Ok(())
}

/// Value of alpha or beta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    Zero,
    One,
    MinusOne,
    Random,
}

impl Scalar {
    pub fn value<S: Value>(self, rng: &mut SplitMix64) -> S {
        let real = |re| S::narrow(S::Wide::new(re, 0.0));
        match self {
            Scalar::Zero => real(0.0),
            Scalar::One => real(1.0),
            Scalar::MinusOne => real(-1.0),
            Scalar::Random => S::random(rng),
        }
    }
}

pub fn pointer_mode() -> impl Strategy<Value = PointerMode> {
    select(PointerMode::ALL)
}

pub fn scalar() -> impl Strategy<Value = Scalar> {
    select(vec![Scalar::Random, Scalar::Zero, Scalar::One, Scalar::MinusOne])
}

/// Updates of the values between analysis and the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Updates {
    /// setValueUpdates(0) and no update.
    Never,
    /// setValueUpdates(0) and yet an update.
    Unannounced,
    /// setValueUpdates(1) and no update.
    Unused,
    /// setValueUpdates(1) and an update.
    Announced,
}

impl Updates {
    /// Returns the argument of setValueUpdates.
    pub fn announced(self) -> bool {
        matches!(self, Updates::Unused | Updates::Announced)
    }

    /// Returns whether the values are updated.
    pub fn happen(self) -> bool {
        matches!(self, Updates::Unannounced | Updates::Announced)
    }
}

pub fn updates() -> impl Strategy<Value = Updates> {
    select(vec![Updates::Never, Updates::Unannounced, Updates::Unused, Updates::Announced])
}

/// Generates dimensions: mostly small, sometimes 0 or 1.
pub fn dimension() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0), 2 => Just(1), 12 => 2..=40_usize]
}

/// Places of entries, independent of the shape.
#[derive(Clone, Debug)]
pub enum Places {
    /// (row, column) as fractions of the shape in 1/65536.
    Listed(Vec<(u16, u16)>),
    /// `count` entries from a seed: most rows (or columns) are short or empty, a few are long, and row number
    /// `long.0` has `long.1` further entries.
    Skewed { count: usize, long: (usize, usize), by_columns: bool, seed: u64 },
    /// `long.0` rows (or columns), spread over the matrix, of `long.1` entries each, and `count` entries
    /// anywhere.
    FewLong { count: usize, long: (usize, usize), by_columns: bool, seed: u64 },
    /// 27-point stencil on a cube of `side`³ points, of a matrix with as many rows and columns: most rows have the
    /// columns of the row before, plus 1.
    Stencil { side: usize },
}

/// Random sparse matrix without values.
#[derive(Clone, Debug)]
pub struct MatrixCase {
    pub style: Style,
    /// Number of rows and columns (BSR: of blocks).
    pub shape: (usize, usize),
    /// True if entries are sorted and none is stored twice.
    pub tidy: bool,
    pub places: Places,
}

impl MatrixCase {
    pub fn pattern(&self) -> Pattern {
        let (rows, cols) = self.shape;
        let mut places: Vec<(usize, usize)> = if rows == 0 || cols == 0 {
            Vec::new()
        } else {
            match &self.places {
                Places::Listed(list) => list
                    .iter()
                    .map(|&(row, col)| ((usize::from(row) * rows) >> 16, (usize::from(col) * cols) >> 16))
                    .collect(),
                &Places::Skewed { count, long, by_columns, seed } => {
                    by_rows(self.shape, by_columns, |shape| skewed(shape, count, long, seed))
                }
                &Places::FewLong { count, long, by_columns, seed } => {
                    by_rows(self.shape, by_columns, |shape| few_long(shape, count, long, seed))
                }
                &Places::Stencil { side } => stencil(side),
            }
        };
        if self.tidy {
            let by_columns = self.style.format == Format::Csc;
            places.sort_by_key(|&(row, col)| if by_columns { (col, row) } else { (row, col) });
            places.dedup();
        }
        Pattern::new(self.style, self.shape, &places)
    }
}

/// Generates places row by row, of the matrix or of its transpose.
fn by_rows(
    (rows, cols): (usize, usize),
    is_transposed: bool,
    places: impl FnOnce((usize, usize)) -> Vec<(usize, usize)>,
) -> Vec<(usize, usize)> {
    if !is_transposed {
        return places((rows, cols));
    }
    places((cols, rows)).into_iter().map(|(col, row)| (row, col)).collect()
}

fn few_long(
    (rows, cols): (usize, usize),
    count: usize,
    long: (usize, usize),
    seed: u64,
) -> Vec<(usize, usize)> {
    let mut rng = SplitMix64::new(seed);
    let mut any = |below: usize| rng.below(below as u64) as usize;
    let mut places: Vec<_> = (0..count).map(|_| (any(rows), any(cols))).collect();
    for at in 0..long.0 {
        places.extend((0..long.1).map(|_| (at * rows / long.0, any(cols))));
    }
    places
}

fn stencil(side: usize) -> Vec<(usize, usize)> {
    let near = |at: usize| at.saturating_sub(1)..(at + 2).min(side);
    let mut places = Vec::new();
    for row in 0..side * side * side {
        let (x, y, z) = (row / (side * side), row / side % side, row % side);
        for other in near(x) {
            for line in near(y) {
                places.extend(near(z).map(|point| (row, (other * side + line) * side + point)));
            }
        }
    }
    places
}

fn skewed(
    (rows, cols): (usize, usize),
    count: usize,
    long: (usize, usize),
    seed: u64,
) -> Vec<(usize, usize)> {
    let mut rng = SplitMix64::new(seed);
    let mut places: Vec<_> = (0..count)
        .map(|_| {
            let skew = rng.unit().powi(4);
            ((skew * rows as f64) as usize, rng.below(cols as u64) as usize)
        })
        .collect();
    places.extend((0..long.1).map(|_| (long.0, rng.below(cols as u64) as usize)));
    places
}

/// Generates styles in these formats.
pub fn style(formats: Vec<Format>) -> impl Strategy<Value = Style> {
    let block = (1..=4_usize, 1..=4_usize);
    (select(formats), select(&Widths::ALL[..]), select(IndexBase::ALL), block, order()).prop_map(
        |(format, widths, base, block, block_order)| Style { format, widths, base, block, block_order },
    )
}

/// Generates matrices in these formats, with shapes from `shape`.
pub fn matrix(
    formats: Vec<Format>,
    shape: impl Strategy<Value = (usize, usize)>,
) -> impl Strategy<Value = MatrixCase> {
    let places = prop::collection::vec(any::<(u16, u16)>(), 0..=160);
    (style(formats), shape, any::<bool>(), places).prop_map(|(style, shape, tidy, places)| {
        let (height, width) = if style.format == Format::Bsr { style.block } else { (1, 1) };
        // In scalars, a BSR matrix has about the same shape as one of another format.
        let shape = (shape.0.div_ceil(height), shape.1.div_ceil(width));
        MatrixCase { style, shape, tidy, places: Places::Listed(places) }
    })
}

/// Random numbers of one case, from its seed.
pub struct Source {
    pub rng: SplitMix64,
    /// True if Inf, NaN and zeros are among the numbers.
    wild: bool,
}

impl Source {
    pub fn new(seed: u64, wild: bool) -> Self {
        Source { rng: SplitMix64::new(seed), wild }
    }

    /// Returns a number; if `wild`, a quarter of them are 0, and some are not finite.
    pub fn number<V: Value>(&mut self) -> V {
        let special = match (self.wild, self.rng.below(64)) {
            (true, 0) => f64::INFINITY,
            (true, 1) => f64::NEG_INFINITY,
            (true, 2) => f64::NAN,
            (true, 3..16) => 0.0,
            _ => return V::random(&mut self.rng),
        };
        V::narrow(V::Wide::new(special, 0.0))
    }

    /// Returns `count` numbers.
    pub fn numbers<V: Value>(&mut self, count: usize) -> Vec<V> {
        (0..count).map(|_| self.number()).collect()
    }

    /// Returns NaN or Inf, for places that must never be read.
    pub fn trap<V: Value>(&mut self) -> V {
        let re = if self.rng.below(2) == 0 { f64::NAN } else { f64::INFINITY };
        V::narrow(V::Wide::new(re, re))
    }
}
