//! Naive products, in f64 and complex f64. With each sum they keep the measures of its error: Σ|a·x| and the
//! number of terms.

use std::collections::BTreeMap;

use crate::number::{Number, Wide};

/// A sum of products, with the measures of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sum<W> {
    /// Σ a·x.
    pub value: W,
    /// Σ |a|·|x|.
    pub magnitude: f64,
    /// Number of terms.
    pub terms: usize,
}

impl<W: Wide> Sum<W> {
    /// Returns the sum without terms.
    pub fn empty() -> Self {
        Sum { value: W::zero(), magnitude: 0.0, terms: 0 }
    }

    fn add(&mut self, a: W, x: W) {
        self.value += a * x;
        self.magnitude += a.magnitude() * x.magnitude();
        self.terms += 1;
    }

    /// Returns alpha · sum + beta · old; a factor of 0 removes its term.
    pub fn combine(self, alpha: W, beta: W, old: W) -> Self {
        let mut out = Sum::empty();
        if alpha != W::zero() {
            out.value = alpha * self.value;
            out.magnitude = alpha.magnitude() * self.magnitude;
            out.terms = self.terms;
        }
        if beta != W::zero() {
            out.value += beta * old;
            out.magnitude += beta.magnitude() * old.magnitude();
        }
        out
    }
}

/// The operation on a factor of a product: none, its transpose, or its conjugate transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// op N: the factor itself.
    Plain,
    /// op T: the transpose.
    Transposed,
    /// op C: the conjugate transpose.
    Adjoint,
}

/// A sparse factor of a product: positions, values and op.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a, V> {
    /// (row, column) of every value.
    pub entries: &'a [(usize, usize)],
    /// The values.
    pub values: &'a [V],
    /// Operation on the factor.
    pub op: Op,
}

impl<V: Number> Factor<'_, V> {
    /// Returns (row, column, value) of each entry of op(A), in storage order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, V::Wide)> + '_ {
        self.entries.iter().zip(self.values).map(|(&(row, col), value)| {
            let value = value.widen();
            match self.op {
                Op::Plain => (row, col, value),
                Op::Transposed => (col, row, value),
                Op::Adjoint => (col, row, value.conjugate()),
            }
        })
    }
}

/// Computes op(A) · op(B) for B dense: m × n sums, row by row.
pub fn dense_product<V: Number>(
    a: &Factor<'_, V>,
    (m, n): (usize, usize),
    b: impl Fn(usize, usize) -> V::Wide,
) -> Vec<Sum<V::Wide>> {
    let mut sums = vec![Sum::empty(); m * n];
    for (i, k, value) in a.iter() {
        for (j, sum) in sums[i * n..(i + 1) * n].iter_mut().enumerate() {
            sum.add(value, b(k, j));
        }
    }
    sums
}

/// Computes op(A) · op(B) for two sparse factors: the sums at all positions of the result's pattern.
pub fn sparse_product<V: Number, X: Number<Wide = V::Wide>>(
    a: &Factor<'_, V>,
    b: &Factor<'_, X>,
) -> BTreeMap<(usize, usize), Sum<V::Wide>> {
    let mut rows_of_b: BTreeMap<usize, Vec<(usize, V::Wide)>> = BTreeMap::new();
    for (k, j, value) in b.iter() {
        rows_of_b.entry(k).or_default().push((j, value));
    }
    let mut sums = BTreeMap::new();
    for (i, k, value) in a.iter() {
        for &(j, other) in rows_of_b.get(&k).map_or(&[][..], Vec::as_slice) {
            sums.entry((i, j)).or_insert_with(Sum::empty).add(value, other);
        }
    }
    sums
}

/// Returns the values by position, with duplicates added up in the order of storage.
fn merged<V: Number>(factor: &Factor<'_, V>) -> BTreeMap<(usize, usize), V::Wide> {
    let mut values = BTreeMap::new();
    for (i, j, value) in factor.iter() {
        *values.entry((i, j)).or_insert_with(V::Wide::zero) += value;
    }
    values
}

/// Like [`sparse_product`], but adds up duplicates of each factor first; that gives other sums only where an
/// infinity or a NaN is among them.
pub fn sparse_product_of_merged<V: Number, X: Number<Wide = V::Wide>>(
    a: &Factor<'_, V>,
    b: &Factor<'_, X>,
) -> BTreeMap<(usize, usize), Sum<V::Wide>> {
    let mut sums = sparse_product(a, b);
    sums.values_mut().for_each(|sum| sum.value = V::Wide::zero());
    let b = merged(b);
    for ((i, k), value) in merged(a) {
        for (&(_, j), &other) in b.range((k, 0)..(k + 1, 0)) {
            sums.get_mut(&(i, j)).expect("the same places").value += value * other;
        }
    }
    sums
}
