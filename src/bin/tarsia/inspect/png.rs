//! A PNG file of 8-bit RGB (W3C Portable Network Graphics, third edition): the few lines that a
//! picture without any options needs.

use std::io::{Result, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// Writes a picture, three bytes a point, row by row from the top.
///
/// # Panics
/// If `pixels` has not 3 · width · height bytes.
pub fn write<W: Write>(mut out: W, (width, height): (u32, u32), pixels: &[u8]) -> Result<()> {
    let row = 3 * width as usize;
    assert_eq!(pixels.len(), row * height as usize, "bytes of a picture");
    out.write_all(b"\x89PNG\r\n\x1a\n")?;
    let mut head = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // 8 bits, RGB; deflate, filters by row, not interlaced.
    head.extend([8, 2, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &head)?;
    let mut data = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks(row) {
        // Filter: none.
        data.write_all(&[0])?;
        data.write_all(row)?;
    }
    chunk(&mut out, b"IDAT", &data.finish()?)?;
    chunk(&mut out, b"IEND", &[])?;
    out.flush()
}

fn chunk<W: Write>(out: &mut W, kind: &[u8; 4], data: &[u8]) -> Result<()> {
    let mut crc = Crc::new();
    crc.update(kind);
    crc.update(data);
    out.write_all(&(data.len() as u32).to_be_bytes())?;
    out.write_all(kind)?;
    out.write_all(data)?;
    out.write_all(&crc.sum().to_be_bytes())
}
