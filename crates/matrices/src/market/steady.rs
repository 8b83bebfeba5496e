//! A reader that reads its input in pieces of one size, whatever size is asked for.

use std::io::{Error, Read, Result};

use super::MAX_LINE;

/// Size in bytes of a piece: small against the second-level cache, through which it passes once more, and
/// large against the cost of a call.
const PIECE: usize = MAX_LINE;

/// Reads `input` in pieces of [`PIECE`] bytes. How much text a decoder gives before it finds that its stream
/// is damaged depends on the room that it has. With pieces of one size the room is always the same, and so is
/// the error that is found first.
pub(super) struct Steady<R> {
    input: R,
    piece: Vec<u8>,
    /// Number of bytes of the piece that were given out.
    given: usize,
    /// Error that ended the piece, returned after its last byte.
    failure: Option<Error>,
}

impl<R: Read> Steady<R> {
    pub fn new(input: R) -> Self {
        Steady { input, piece: Vec::with_capacity(PIECE + 1), given: 0, failure: None }
    }

    /// Returns the first bytes that are not given out yet: before any read, the whole text or its first
    /// [`PIECE`] bytes. Empty also where the text cannot be read: the next read returns the error.
    pub fn peek(&mut self) -> &[u8] {
        if self.given == self.piece.len() && self.failure.is_none() {
            self.next_piece();
        }
        &self.piece[self.given..]
    }

    fn next_piece(&mut self) {
        self.piece.clear();
        self.given = 0;
        // `read_to_end` retries interrupted reads, and keeps what was read before an error.
        self.failure = self.input.by_ref().take(PIECE as u64).read_to_end(&mut self.piece).err();
    }
}

impl<R: Read> Read for Steady<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.given == self.piece.len() {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            self.next_piece();
            if self.piece.is_empty() {
                return self.failure.take().map_or(Ok(0), Err);
            }
        }
        let count = out.len().min(self.piece.len() - self.given);
        out[..count].copy_from_slice(&self.piece[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}
