//! Division of arrays into disjoint pieces, on which the library's threads work in parallel.
//!
//! Rayon's parallel iterators would do the same, but each use of them is compiled with all of rayon's
//! machinery for each combination of types: they were a third of the library's machine code. Here all uses
//! share the code of [`pool::for_each`].

use std::marker::PhantomData;

use super::pool;

/// Data divided into disjoint pieces.
pub trait Pieces: Sync {
    /// Type of one piece.
    type Piece;

    /// Returns the number of pieces.
    fn count(&self) -> usize;

    /// Returns piece number `at`, which must be less than [`Self::count`].
    ///
    /// # Safety
    /// No piece may be requested twice.
    unsafe fn piece(&self, at: usize) -> Self::Piece;
}

/// Division of a slice into runs of consecutive elements.
pub struct Chunks<'a, T> {
    start: *mut T,
    len: usize,
    size: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: the pieces that threads get through it are disjoint parts of a mutable slice.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

/// Divides a slice into runs of `size` elements; the last one may have fewer.
pub fn chunks<T>(slice: &mut [T], size: usize) -> Chunks<'_, T> {
    Chunks { start: slice.as_mut_ptr(), len: slice.len(), size: size.max(1), lifetime: PhantomData }
}

impl<'a, T: Send> Pieces for Chunks<'a, T> {
    type Piece = &'a mut [T];

    fn count(&self) -> usize {
        self.len.div_ceil(self.size)
    }

    unsafe fn piece(&self, at: usize) -> &'a mut [T] {
        let first = at * self.size;
        assert!(first < self.len, "there is no piece {at}");
        let len = self.size.min(self.len - first);
        // SAFETY: it lies inside the slice, which is borrowed for 'a, and no other piece overlaps it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(first), len) }
    }
}

/// Division of a slice into its elements.
pub struct Each<'a, T>(Chunks<'a, T>);

/// Divides a slice so that each element is a piece.
pub fn each<T>(slice: &mut [T]) -> Each<'_, T> {
    Each(chunks(slice, 1))
}

impl<'a, T: Send> Pieces for Each<'a, T> {
    type Piece = &'a mut T;

    fn count(&self) -> usize {
        self.0.count()
    }

    unsafe fn piece(&self, at: usize) -> &'a mut T {
        // SAFETY: as the caller promises.
        let piece = unsafe { self.0.piece(at) };
        &mut piece[0]
    }
}

/// Pieces of two arrays in pairs, as many as the array with fewer pieces has.
impl<A: Pieces, B: Pieces> Pieces for (A, B) {
    type Piece = (A::Piece, B::Piece);

    fn count(&self) -> usize {
        self.0.count().min(self.1.count())
    }

    unsafe fn piece(&self, at: usize) -> Self::Piece {
        // SAFETY: as the caller promises.
        unsafe { (self.0.piece(at), self.1.piece(at)) }
    }
}

/// Calls `f` with the number of each piece and the piece, on all threads. `f` must not allocate from a user's
/// allocator.
pub fn for_each<P: Pieces>(pieces: P, f: impl Fn(usize, P::Piece) + Sync) {
    let one = |at| {
        // SAFETY: each number comes once.
        f(at, unsafe { pieces.piece(at) });
    };
    pool::for_each(pieces.count(), &one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_in_one_piece() {
        for (len, size) in [(0, 3), (1, 3), (3, 3), (1000, 7), (10, 0)] {
            let (mut numbers, mut counts) = (vec![0; len], vec![0; len.div_ceil(size.max(1))]);
            for_each((chunks(&mut numbers, size), each(&mut counts)), |at, (numbers, count)| {
                numbers.iter_mut().for_each(|number| *number += at + 1);
                *count = numbers.len();
            });
            let expected: Vec<_> = (0..len).map(|at| at / size.max(1) + 1).collect();
            assert_eq!(numbers, expected);
            assert_eq!(counts.iter().sum::<usize>(), len);
        }
    }

    #[test]
    fn the_fewest_pieces_count() {
        let (mut many, mut few) = ([0; 10], [0; 3]);
        for_each((each(&mut many), each(&mut few)), |at, (a, b)| (*a, *b) = (at + 1, at + 1));
        assert_eq!((many[..4].to_vec(), few), (vec![1, 2, 3, 0], [1, 2, 3]));
    }
}
