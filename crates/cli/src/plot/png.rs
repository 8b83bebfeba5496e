//! Writer of PNG files with 8-bit RGB (W3C Portable Network Graphics, third edition).

use std::io::{Result, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

/// Writes a picture, three bytes per pixel, row by row from the top; panics unless there are 3 · width ·
/// height bytes.
pub fn write<W: Write>(mut out: W, (width, height): (u32, u32), pixels: &[u8]) -> Result<()> {
    let stride = 3 * width as usize;
    assert_eq!(pixels.len(), stride * height as usize, "bytes of a picture");
    let mut data = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in pixels.chunks(stride.max(1)) {
        // Filter type 0: no filter.
        data.write_all(&[0])?;
        data.write_all(row)?;
    }
    let mut head = Vec::new();
    head.extend(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    // 8 bits, RGB, deflate, filters by row, not interlaced.
    head.extend([8, 2, 0, 0, 0]);
    out.write_all(b"\x89PNG\r\n\x1a\n")?;
    for (kind, data) in [(b"IHDR", head), (b"IDAT", data.finish()?), (b"IEND", Vec::new())] {
        let mut sum = Crc::new();
        sum.update(kind);
        sum.update(&data);
        out.write_all(&(data.len() as u32).to_be_bytes())?;
        out.write_all(kind)?;
        out.write_all(&data)?;
        out.write_all(&sum.sum().to_be_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    #[test]
    fn chunks_are_whole() {
        let pixels: Vec<u8> = (0..18).collect();
        let mut file = Vec::new();
        write(&mut file, (2, 3), &pixels).unwrap();
        let (mark, mut rest) = file.split_at(8);
        assert_eq!(mark, [0x89, b'P', b'N', b'G', 13, 10, 26, 10]);
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let len = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (kind, data) = (&rest[4..8], &rest[8..8 + len]);
            let mut sum = Crc::new();
            sum.update(&rest[4..8 + len]);
            assert_eq!(sum.sum().to_be_bytes(), rest[8 + len..12 + len]);
            if kind == b"IDAT" {
                let mut rows = Vec::new();
                ZlibDecoder::new(data).read_to_end(&mut rows).unwrap();
                assert_eq!(rows.len(), 3 * 7);
                assert_eq!(rows[1..7], pixels[..6]);
            }
            kinds.push(kind.to_vec());
            rest = &rest[12 + len..];
        }
        assert_eq!(kinds, [b"IHDR", b"IDAT", b"IEND"]);
    }
}
