//! Vectors and dense matrices, with memory around and between their elements that must not be written.

use std::ops::{Deref, DerefMut, Range};

use client::DenseLayout;
use tarsia::facade::{Operation, Order};

use super::number::{bits, Value, Wide};
use super::staged::{Operand, OperandMut};
use super::{ensure, Outcome};

/// Elements in the middle of memory that is otherwise NaN (the guards). They have the alignment of an element
/// only, unless the size of the guard is a multiple of a larger one.
#[derive(Clone, Debug)]
pub struct Guarded<V> {
    memory: Vec<V>,
    guard: usize,
}

impl<V: Value> Guarded<V> {
    /// Stores these elements with `guard` elements on either side.
    pub fn new(values: &[V], guard: usize) -> Self {
        let nan = vec![V::nan(); guard];
        Guarded { memory: [&nan, values, &nan].concat(), guard }
    }

    /// Checks that the guards are unchanged.
    pub fn same_guards(&self) -> Outcome {
        let len = self.len();
        let guards = [&self.memory[..self.guard], &self.memory[self.guard + len..]].concat();
        let fresh = vec![V::nan(); 2 * self.guard];
        ensure!(bits(&guards) == bits(&fresh), "memory outside of an array was written: {guards:?}");
        Ok(())
    }
}

impl<V> Deref for Guarded<V> {
    type Target = [V];
    fn deref(&self) -> &[V] {
        &self.memory[self.guard..self.memory.len() - self.guard]
    }
}

impl<V> DerefMut for Guarded<V> {
    fn deref_mut(&mut self) -> &mut [V] {
        let end = self.memory.len() - self.guard;
        &mut self.memory[self.guard..end]
    }
}

/// The guards are copied with the elements.
impl<V: Value> Operand for Guarded<V> {
    type Item = V;
    fn memory(&self) -> &[V] {
        &self.memory
    }
    fn range(&self) -> Range<usize> {
        self.guard..self.memory.len() - self.guard
    }
}

impl<V: Value> OperandMut for Guarded<V> {
    fn memory_mut(&mut self) -> &mut [V] {
        &mut self.memory
    }
}

/// Dense matrix and its memory, the last line's padding included.
#[derive(Clone, Debug)]
pub struct Dense<V> {
    /// Shape, leading dimension, order.
    pub shape: DenseLayout,
    /// Memory of the elements and of the padding.
    pub values: Guarded<V>,
}

impl<V: Value> Dense<V> {
    /// Creates a matrix filled with NaN, with `padding` elements between its lines and around all of them.
    pub fn new((rows, cols): (usize, usize), order: Order, padding: usize) -> Self {
        let (inner, outer) = if order == Order::Row { (cols, rows) } else { (rows, cols) };
        let ld = (inner + padding).max(1);
        let shape = DenseLayout { rows: rows as i64, cols: cols as i64, ld: ld as i64, order };
        Dense { shape, values: Guarded::new(&vec![V::nan(); ld * outer], padding) }
    }

    /// Returns the position of element (i, j).
    pub fn at(&self, i: usize, j: usize) -> usize {
        let ld = self.shape.ld as usize;
        match self.shape.order {
            Order::Row => i * ld + j,
            Order::Col => i + j * ld,
        }
    }

    /// Returns element (i, j).
    pub fn get(&self, i: usize, j: usize) -> V {
        self.values[self.at(i, j)]
    }

    /// Returns element (i, j) of op of the matrix.
    pub fn get_op(&self, op: Operation, i: usize, j: usize) -> V::Wide {
        match op {
            Operation::NonTranspose => self.get(i, j).widen(),
            Operation::Transpose => self.get(j, i).widen(),
            Operation::ConjugateTranspose => self.get(j, i).widen().conjugate(),
        }
    }

    /// Iterates over all (row, column) pairs, row by row.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let (rows, cols) = (self.shape.rows as usize, self.shape.cols as usize);
        (0..rows).flat_map(move |i| (0..cols).map(move |j| (i, j)))
    }

    /// Sets every element, row by row.
    pub fn fill(&mut self, mut value: impl FnMut(usize, usize) -> V) {
        for (i, j) in self.places() {
            let at = self.at(i, j);
            self.values[at] = value(i, j);
        }
    }

    /// Checks that all memory outside of the elements has the same bits as in `before`.
    pub fn same_padding(&self, before: &Self) -> Outcome {
        self.values.same_guards()?;
        let mut is_element = vec![false; self.values.len()];
        self.places().for_each(|(i, j)| is_element[self.at(i, j)] = true);
        for (at, _) in is_element.iter().enumerate().filter(|(_, &is_element)| !is_element) {
            let (now, then) = (self.values[at], before.values[at]);
            ensure!(bits(&[now]) == bits(&[then]), "padding at {at} was {then:?} and is {now:?}");
        }
        Ok(())
    }
}
