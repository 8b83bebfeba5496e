//! The text of a file in blocks of whole lines.

use std::io::{Error, Read};

use super::super::owned::{try_reserve, MatrixError};
use super::{Result, MAX_LINE};

/// How a text is cut. No result depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Bytes of the first block; each later one is twice as large, up to `block`.
    pub first: usize,
    /// Bytes of a block: what is read while the block before is parsed.
    pub block: usize,
    /// Bytes of a chunk: what one task parses.
    pub chunk: usize,
}

impl Sizes {
    /// A chunk and its entries fit a core's second-level cache (256 KiB of text make up to 340 KiB
    /// of entries, twice that with mirror images). A block is 32 of them, so that the threads that
    /// wait for the last chunk wait little; the first is small, so that a wrong file is found early.
    pub const DEFAULT: Sizes = Sizes { first: 1 << 20, block: 8 << 20, chunk: 256 << 10 };
}

/// Whole lines of a text.
#[derive(Default)]
pub(super) struct Block {
    /// The bytes; only the last line of a text may lack its end.
    pub text: Vec<u8>,
    /// Bytes of `text` that were parsed already.
    pub done: usize,
    /// Lines of the file before the first that is not parsed.
    pub lines: u64,
}

impl Block {
    /// What is to be parsed.
    pub fn rest(&self) -> &[u8] {
        &self.text[self.done..]
    }
}

/// Where a text comes from, and what of it was read too early.
pub(super) struct Blocks<R> {
    input: R,
    /// Bytes after the last line end.
    tail: Vec<u8>,
    next: usize,
    pub sizes: Sizes,
    /// Nothing follows: the text has ended, failed, or has a line that is too long.
    ended: bool,
    failure: Option<Error>,
}

impl<R: Read> Blocks<R> {
    pub fn new(input: R, sizes: Sizes) -> Self {
        let next = sizes.first.min(sizes.block);
        Blocks { input, tail: Vec::new(), next, sizes, ended: false, failure: None }
    }

    /// The first block.
    pub fn first(&mut self) -> Result<Block> {
        let mut block = Block::default();
        self.fill(&mut block)?;
        Ok(block)
    }

    /// Puts the next lines into `block`, at least one; none at the end of the text. What the reader
    /// says about a failure is kept for [`Self::check`], until the lines before it are parsed.
    pub fn fill(&mut self, block: &mut Block) -> Result<()> {
        let text = &mut block.text;
        text.clear();
        block.done = 0;
        if self.ended {
            return Ok(());
        }
        // One more than what is needed tells the standard library that no growth is needed.
        try_reserve(text, self.tail.len() + self.next + 32)?;
        text.append(&mut self.tail);
        let end = loop {
            let from = text.len();
            try_reserve(text, self.next)?;
            // Retries what was interrupted; keeps what was read before an error.
            match self.input.by_ref().take(self.next as u64).read_to_end(text) {
                Ok(read) => self.ended = read < self.next,
                Err(error) => (self.ended, self.failure) = (true, Some(error)),
            }
            self.next = self.next.saturating_mul(2).min(self.sizes.block);
            let last = text[from..].iter().rposition(|&byte| byte == b'\n').map(|at| from + at + 1);
            let end = last.unwrap_or(0);
            if text.len() - end > MAX_LINE {
                // The parser will say so; no more of the line is wanted.
                self.ended = true;
                self.failure = None;
                break text.len();
            }
            if self.failure.is_some() {
                // A line that was cut off by a failure is no line.
                break end;
            }
            if self.ended {
                break text.len();
            }
            if last.is_some() {
                break end;
            }
        };
        try_reserve(&mut self.tail, text.len() - end)?;
        self.tail.extend_from_slice(&text[end..]);
        text.truncate(end);
        Ok(())
    }

    /// At the end of the text, after `lines` lines: why it ended, if not because that is all.
    pub fn check(&mut self, lines: u64) -> Result<()> {
        match self.failure.take() {
            Some(error) => Err(after_line(lines, &error)),
            None => Ok(()),
        }
    }
}

/// A reader's error with the place that it was at.
pub(super) fn after_line(lines: u64, error: &Error) -> MatrixError {
    Error::new(error.kind(), format!("after line {lines}: {error}")).into()
}
