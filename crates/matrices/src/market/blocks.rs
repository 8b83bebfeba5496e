//! The text of a file, read in blocks of whole lines.

use std::io::{Error, Read};

use super::super::owned::{try_reserve, MatrixError};
use super::{Result, MAX_LINE};

/// Sizes of the pieces into which a text is cut. No result depends on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Size in bytes of the first block; each later one is twice as large, up to `block`.
    pub first: usize,
    /// Largest size in bytes of a block: the text that is read while the block before is parsed.
    pub block: usize,
    /// Size in bytes of a chunk: the text that one task parses.
    pub chunk: usize,
}

impl Sizes {
    /// A chunk and its entries fit a core's second-level cache (256 KiB of text make up to 340 KiB of
    /// entries, twice that with mirror images). A block is 32 chunks, so that threads wait little for the
    /// last chunk; the first block is small, so that a wrong file is found early.
    pub const DEFAULT: Sizes = Sizes { first: 1 << 20, block: 8 << 20, chunk: 256 << 10 };
}

/// Whole lines of a text.
#[derive(Default)]
pub(super) struct Block {
    /// The bytes; only the last line of a text may lack its end.
    pub text: Vec<u8>,
    /// Number of bytes of `text` that were parsed already.
    pub done: usize,
    /// Number of lines of the file before the first unparsed line.
    pub lines: u64,
}

impl Block {
    /// Returns the text that is not parsed yet.
    pub fn rest(&self) -> &[u8] {
        &self.text[self.done..]
    }
}

/// Source of a text, and the bytes of it that were read ahead.
pub(super) struct Blocks<R> {
    input: R,
    /// Bytes that were read after the last line end.
    tail: Vec<u8>,
    next: usize,
    pub sizes: Sizes,
    /// True if nothing follows: the text has ended, failed, or has a line that is too long.
    ended: bool,
    failure: Option<Error>,
}

impl<R: Read> Blocks<R> {
    pub fn new(input: R, sizes: Sizes) -> Self {
        let next = sizes.first.min(sizes.block);
        Blocks { input, tail: Vec::new(), next, sizes, ended: false, failure: None }
    }

    /// Reads the first block.
    pub fn first(&mut self) -> Result<Block> {
        let mut block = Block::default();
        self.fill(&mut block)?;
        Ok(block)
    }

    /// Puts the next lines into `block`, at least one; none at the end of the text. A read error is kept for
    /// [`Self::check`], until the lines before it are parsed.
    pub fn fill(&mut self, block: &mut Block) -> Result<()> {
        let text = &mut block.text;
        text.clear();
        block.done = 0;
        if self.ended {
            return Ok(());
        }
        // One byte more than needed: the standard library's `read_to_end` then sees no need to grow the
        // vector.
        try_reserve(text, self.tail.len() + self.next + 32)?;
        text.append(&mut self.tail);
        let end = loop {
            let from = text.len();
            try_reserve(text, self.next)?;
            // `read_to_end` retries interrupted reads, and keeps what was read before an error.
            match self.input.by_ref().take(self.next as u64).read_to_end(text) {
                Ok(read) => self.ended = read < self.next,
                Err(error) => (self.ended, self.failure) = (true, Some(error)),
            }
            self.next = self.next.saturating_mul(2).min(self.sizes.block);
            let last = text[from..].iter().rposition(|&byte| byte == b'\n').map(|at| from + at + 1);
            let end = last.unwrap_or(0);
            if text.len() - end > MAX_LINE {
                // The parser reports the line that is too long; no more of it is needed.
                self.ended = true;
                self.failure = None;
                break text.len();
            }
            if self.failure.is_some() {
                // A line that a failure cut off is not given to the parser.
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

    /// Called at the end of the text, after `lines` lines: returns the read error that ended it, if there was
    /// one.
    pub fn check(&mut self, lines: u64) -> Result<()> {
        match self.failure.take() {
            Some(error) => Err(after_line(lines, &error)),
            None => Ok(()),
        }
    }
}

/// Adds to a reader's error the line after which it occurred.
pub(super) fn after_line(lines: u64, error: &Error) -> MatrixError {
    Error::new(error.kind(), format!("after line {lines}: {error}")).into()
}
