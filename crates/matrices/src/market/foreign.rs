//! Recognition of files of other kinds by their first bytes, for the error message.

use super::super::packed;

/// The text that every Matrix Market file starts with, in any case.
const START: &[u8] = b"%%MatrixMarket";
/// Position in a tar archive of the word that marks it, and the word.
const TAR_MARK: (usize, &[u8]) = (257, b"ustar");
/// First bytes that mark a kind of file, and the kind's name: formats in which matrices are published, and
/// common files that are given by mistake.
const MARKS: [(&[u8], &str); 22] = [
    (&packed::MAGIC, "a packed matrix of this program (.tsm)"),
    (b"\x1f\x8b", "gzip data inside of gzip data"),
    (b"BZh", "a file compressed by bzip2"),
    (b"\xfd7zXZ\0", "a file compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"\x04\x22\x4d\x18", "a file compressed by lz4"),
    (b"PK\x03\x04", "a zip archive (.npz files are such, too)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (MATLAB's .mat since version 7.3 is one)"),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file (.mat)"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "an ELF file (a program or a library)"),
    (b"MZ", "a Windows program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
    (b"\xef\xbb\xbf", "text that starts with a byte order mark (EF BB BF)"),
    (b"<", "an HTML or XML page"),
];

/// Returns the kind of a file with the first bytes `start`, if they have the mark of a kind that no reader
/// here knows.
pub fn other_kind(start: &[u8]) -> Option<&'static str> {
    let (at, mark) = TAR_MARK;
    if start.get(at..).is_some_and(|rest| rest.starts_with(mark)) {
        return Some("a tar archive, whose files must be unpacked first");
    }
    MARKS.iter().find(|(mark, _)| start.starts_with(mark)).map(|(_, name)| *name)
}

/// Returns the kind of a file with these first bytes if it is not text, or is text of another kind; `None` if
/// it could be a Matrix Market file with a mistake in its first line.
pub(super) fn not_market(start: &[u8]) -> Option<&'static str> {
    if start.get(..START.len()).is_some_and(|first| first.eq_ignore_ascii_case(START)) {
        return None;
    }
    // Text has no control characters other than blanks and line ends.
    let is_control = |&byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let first_line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    other_kind(start).or_else(|| first_line.iter().any(is_control).then_some("binary data"))
}
