//! Skipping of blank lines and comments, eight bytes at a time.
//!
//! A few megabytes of gzip can hold billions of such lines. Taken one by one they cost tens of nanoseconds
//! each; here a line costs less than its decompression, however short it is.

use super::MAX_LINE;

/// A word with a 1 in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// A word with all bits of every byte set but the highest.
const LOW_BITS: u64 = 0x7f * ONES;
/// Number of bytes of a word.
const WORD: usize = 8;

/// Returns the number of bytes of whole blank lines and comments at the start of `text`, which begins at the
/// start of a line, and the number of these lines. It may stop before the last of them: at a line whose end
/// shares a word with the start of a data line, at the last bytes of the text, and at lines about as long as
/// the format allows. The caller checks what follows line by line.
pub(super) fn blank_and_comment_lines(text: &[u8]) -> (usize, u64) {
    // Bytes and lines up to the last line end that was found.
    let (mut end, mut lines) = (0, 0);
    // 1 if only blanks stand between the last line end and the present word.
    let mut at_start = 1;
    for (word, at) in text.chunks_exact(WORD).zip((0..).step_by(WORD)) {
        if at + WORD - end > MAX_LINE {
            break;
        }
        // In each of these masks a byte is 1 where the text's byte is of the kind, else 0.
        let word = u64::from_le_bytes(word.try_into().expect("a chunk is a word"));
        let line_ends = equal(word, b'\n');
        let skipped = line_ends | equal(word, b'%');
        let starts = line_ends << 8 | at_start;
        at_start = line_ends >> 56;
        if starts & !skipped != 0 {
            // A line starts with something else: it can still be blank, or a comment after blanks.
            let blanks = [b' ', b'\t', b'\r', 0x0c].map(|byte| equal(word, byte));
            let blanks = blanks[0] | blanks[1] | blanks[2] | blanks[3];
            // The sum carries each start over the run of blanks that begins there to the byte behind the run.
            let runs = blanks * 0xff;
            let (sum, carry) = runs.overflowing_add(starts & blanks);
            let first = (starts & !blanks) | (sum & !runs);
            if first & !skipped != 0 {
                break;
            }
            at_start |= u64::from(carry);
        }
        if line_ends != 0 {
            end = at + WORD - line_ends.leading_zeros() as usize / 8;
            lines += line_ends.wrapping_mul(ONES) >> 56;
        }
    }
    (end, lines)
}

/// Returns a word with a 1 in every byte where `word` has the byte `byte`, and 0 elsewhere.
fn equal(word: u64, byte: u8) -> u64 {
    let differs = word ^ (u64::from(byte) * ONES);
    // Sets the highest bit of each byte in which any bit is set.
    let differs = ((differs & LOW_BITS) + LOW_BITS) | differs;
    (!differs >> 7) & ONES
}

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::*;
    use crate::SplitMix64;

    /// Counts blank lines and comments at the start of a text, line by line.
    fn one_by_one(text: &[u8]) -> (usize, u64) {
        let (mut rest, mut lines) = (text, 0);
        while !rest.is_empty() {
            let before = rest;
            match Line::take(&mut rest, 1) {
                Ok(line) if !line.is_data() => lines += 1,
                _ => return (text.len() - before.len(), lines),
            }
        }
        (text.len(), lines)
    }

    #[test]
    fn what_is_skipped_are_whole_blank_lines_and_comments() {
        let pieces: [&[u8]; 14] = [
            b"\n",
            b"\n",
            b"\r\n",
            b"%\n",
            b"% 1 1 2.5\n",
            b" \t\n",
            b"  % late\r\n",
            b"\x0c\n",
            b"        ",
            b"%",
            b"% 12345678901\n\n",
            b"1 2 3\n",
            b" 7",
            b"\x0b\n",
        ];
        let mut rng = SplitMix64::new(11);
        for round in 0..20_000 {
            // Most texts have data only near the end, so that there is something to skip.
            let count = rng.below(40);
            let kinds = |left: u64| if round % 3 == 0 || left < 3 { 14 } else { 11 };
            let text: Vec<u8> =
                (0..count).flat_map(|at| pieces[rng.below(kinds(count - at)) as usize]).copied().collect();
            let (bytes, lines) = blank_and_comment_lines(&text);
            let (all, all_lines) = one_by_one(&text);
            let shown = text.escape_ascii();
            assert!(bytes <= all && lines <= all_lines, "{shown}: {bytes} of {all}");
            assert!(bytes == 0 || text[bytes - 1] == b'\n', "{shown}: {bytes}");
            assert_eq!(one_by_one(&text[..bytes]), (bytes, lines), "{shown}");
            // The rest is less than a word, or lines that reach into the word that stops the skip.
            let left = text[bytes..all].iter().filter(|&&byte| byte == b'\n').count();
            assert!(left <= WORD, "{shown}: {bytes} of {all}");
        }
    }

    #[test]
    fn lines_that_are_too_long_are_left() {
        for length in [MAX_LINE - 9, MAX_LINE, MAX_LINE + 1, 3 * MAX_LINE] {
            for start in [b'%', b' '] {
                let mut text = b"\n%\n\n%\n\n\n".to_vec();
                let before = text.len();
                text.push(start);
                text.resize(before + length - 1, b' ');
                text.extend_from_slice(b"\n\n\n\n\n\n\n\n\n\n\n\n\n\n");
                let (bytes, _) = blank_and_comment_lines(&text);
                assert!(bytes >= before, "{length}: {bytes}");
                if length > MAX_LINE {
                    assert_eq!(bytes, before, "{length}");
                }
            }
        }
    }
}
