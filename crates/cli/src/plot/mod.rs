//! Pictures: a canvas that plotters draws on, which needs neither fonts nor libraries of the system.
//!
//! - [`font`]: drawing of letters
//! - [`png`]: file format

mod font;
pub mod png;

use std::convert::Infallible;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use crate::Result;

/// Pixels in memory, white at first.
pub struct Canvas {
    size: (u32, u32),
    pixels: Vec<u8>,
}

/// A canvas as a backend of plotters, which takes it by value.
pub struct Pen<'a>(&'a mut Canvas);

type Drawn = std::result::Result<(), DrawingErrorKind<Infallible>>;

impl Canvas {
    /// Makes an empty canvas.
    pub fn new(width: u32, height: u32) -> Self {
        Canvas { size: (width, height), pixels: vec![255; 3 * width as usize * height as usize] }
    }

    /// Returns a pen to draw with.
    pub fn pen(&mut self) -> Pen<'_> {
        Pen(self)
    }

    /// Writes the canvas as a PNG file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::create(path).map_err(named)?;
        Ok(png::write(BufWriter::new(file), self.size, &self.pixels).map_err(named)?)
    }

    fn mix(&mut self, (x, y): BackendCoord, color: BackendColor) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
        if x >= self.size.0 || y >= self.size.1 {
            return;
        }
        let at = 3 * (y as usize * self.size.0 as usize + x as usize);
        let (red, green, blue) = color.rgb;
        for (old, new) in self.pixels[at..at + 3].iter_mut().zip([red, green, blue]) {
            let mixed = f64::from(*old) + (f64::from(new) - f64::from(*old)) * color.alpha;
            *old = mixed.round() as u8;
        }
    }
}

/// Returns the width in pixels of a point of a letter.
fn scale<S: BackendTextStyle>(style: &S) -> i32 {
    // The style's size is the height of letters, including the space between lines.
    (style.size() / f64::from(font::LINE)).round().max(1.0) as i32
}

fn extent<S: BackendTextStyle>(text: &str, style: &S) -> (i32, i32) {
    let letters = text.chars().count() as i32;
    ((letters * font::ADVANCE - 1).max(0) * scale(style), font::HEIGHT * scale(style))
}

impl DrawingBackend for Pen<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.0.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        self.0.mix(point, color);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        // The whole canvas is filled by this call, so pixels are not drawn one by one as parts of lines.
        let color = style.color();
        for y in top.max(0)..=bottom.min(self.0.size.1 as i32 - 1) {
            for x in left.max(0)..=right.min(self.0.size.0 as i32 - 1) {
                if fill || y == top || y == bottom || x == left || x == right {
                    self.0.mix((x, y), color);
                }
            }
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, position: BackendCoord) -> Drawn {
        let (color, scale, transform) = (style.color(), scale(style), style.transform());
        let (width, height) = extent(text, style);
        let anchor = style.anchor();
        let left = match anchor.h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let top = match anchor.v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        for (letter, at) in text.chars().zip(0..) {
            for (row, y) in font::glyph(letter).into_iter().zip(0..) {
                for x in (0..5).filter(|x| row >> (4 - x) & 1 == 1) {
                    for (dx, dy) in (0..scale * scale).map(|point| (point % scale, point / scale)) {
                        let x = left + (at * font::ADVANCE + x) * scale + dx;
                        let (x, y) = transform.transform(x, top + y * scale + dy);
                        self.0.mix((position.0 + x, position.1 + y), color);
                    }
                }
            }
        }
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> std::result::Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let (width, height) = extent(text, style);
        Ok((width as u32, height as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::prelude::*;

    #[test]
    fn text_is_drawn_where_it_is_put() {
        let mut canvas = Canvas::new(60, 20);
        {
            let area = canvas.pen().into_drawing_area();
            let style = ("sans-serif", 9).into_font().color(&BLACK);
            area.draw(&Text::new("I", (10, 5), style)).unwrap();
        }
        let is_black = |x: usize, y: usize| canvas.pixels[3 * (60 * y + x)] == 0;
        // The stem is the third of five columns.
        assert!((5..12).all(|y| is_black(12, y)));
        assert!(!is_black(12, 4) && !is_black(12, 12) && !is_black(13, 8));
        assert!(is_black(11, 5) && is_black(13, 11));
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let mut canvas = Canvas::new(4, 4);
        let color = BackendColor { alpha: 1.0, rgb: (0, 0, 0) };
        for point in [(-1, 0), (4, 0), (0, -1), (0, 4)] {
            canvas.mix(point, color);
        }
        assert!(canvas.pixels.iter().all(|byte| *byte == 255));
        canvas.mix((3, 3), BackendColor { alpha: 0.5, rgb: (0, 0, 255) });
        assert_eq!(canvas.pixels[45..], [128, 128, 255]);
    }
}
