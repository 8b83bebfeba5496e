//! Pictures, as PNG or SVG: drawn by plotters, with a font of the program's own where pixels are drawn, so that
//! no font of the system is needed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Result;

/// Name of the font: SVG files leave the choice to the viewer, and in pixels it is DejaVu Sans.
const FONT: &str = "sans-serif";
/// Sizes of the text of all pictures: titles, what is below them, and everything else.
pub const TITLE: i32 = 36;
pub const SUBTITLE: i32 = 24;
pub const LABEL: i32 = 24;
/// Colour of text that explains, and of axes.
pub const GREY: RGBColor = RGBColor(96, 96, 96);
/// Colour of the lines of a grid.
pub const LIGHT: RGBColor = RGBColor(221, 221, 221);

/// File format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Pixels
    Png,
    /// Shapes and text, for papers and web pages
    Svg,
}

impl Format {
    /// Ending of the names of such files.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Png => "png",
            Format::Svg => "svg",
        }
    }

    /// Returns the format that the ending of a file's name says; PNG for a name without an ending.
    pub fn of(path: &Path) -> Result<Format> {
        let Some(ending) = path.extension() else { return Ok(Format::Png) };
        let formats = [Format::Png, Format::Svg];
        let found = formats.into_iter().find(|format| ending.eq_ignore_ascii_case(format.ending()));
        let (path, ending) = (path.display(), ending.to_string_lossy());
        Ok(found.ok_or_else(|| format!("{path}: pictures are written as .png or .svg, not as .{ending}"))?)
    }
}

/// Distance by which text that is centred about a height must be lowered where plotters draws its pixels, as a part of
/// its size: it centres the line with the room for accents above it, and a viewer of SVG the letters.
const LOWERED: f64 = 0.2;

/// A canvas with what all pictures draw on it.
pub struct Area<'a, B: DrawingBackend> {
    /// The canvas, for plotters' own charts.
    pub canvas: &'a DrawingArea<B, Shift>,
    /// The format for which it is drawn.
    format: Format,
}

/// A picture, which can draw itself with every backend of plotters.
pub trait Picture {
    /// Returns width and height in pixels.
    fn size(&self) -> (u32, u32);

    /// Draws on a white area of that size.
    fn draw<B: DrawingBackend>(&self, area: &Area<'_, B>) -> Result<()>;
}

/// Writes a picture into a file.
pub fn save(picture: &impl Picture, path: &Path, format: Format) -> Result<()> {
    let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut file = BufWriter::new(File::create(path).map_err(|error| in_file(&error))?);
    match format {
        Format::Png => write_png(picture, &mut file),
        Format::Svg => write_svg(picture, &mut file),
    }
    .and_then(|()| Ok(file.flush()?))
    .map_err(|error| in_file(&error).into())
}

fn write_png(picture: &impl Picture, file: impl Write) -> Result<()> {
    let (width, height) = picture.size();
    let mut pixels = crate::demo::products::zeros(3 * width as usize * height as usize)?;
    paint(picture, BitMapBackend::with_buffer(&mut pixels, (width, height)), Format::Png)?;
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    Ok(writer.finish()?)
}

fn write_svg(picture: &impl Picture, file: &mut impl Write) -> Result<()> {
    let mut text = String::new();
    paint(picture, SVGBackend::with_string(&mut text, picture.size()), Format::Svg)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn paint<B: DrawingBackend>(picture: &impl Picture, backend: B, format: Format) -> Result<()> {
    static FONT_IS_KNOWN: Once = Once::new();
    FONT_IS_KNOWN.call_once(|| {
        // A font that cannot be read would be noticed by the first text: plotters then has no such font.
        drop(register_font(FONT, FontStyle::Normal, dejavu::sans::regular()));
    });
    let canvas = backend.into_drawing_area();
    canvas.fill(&WHITE).map_err(failed)?;
    picture.draw(&Area { canvas: &canvas, format })?;
    Ok(canvas.present().map_err(failed)?)
}

/// Describes an error of plotters, whose type depends on the backend.
pub fn failed(error: impl std::fmt::Display) -> String {
    format!("drawing: {error}")
}

/// Returns the style of text of this size and colour, with its anchor at this point of its box.
pub fn text(size: i32, color: &RGBColor, h_pos: HPos, v_pos: VPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(color).pos(Pos::new(h_pos, v_pos))
}

impl<B: DrawingBackend> Area<'_, B> {
    /// Writes text with its anchor at a point.
    pub fn write(&self, what: &str, style: TextStyle<'static>, (x, y): (i32, i32)) -> Result<()> {
        let is_lowered = self.format == Format::Png && matches!(style.pos.v_pos, VPos::Center);
        let lowered = if is_lowered { (LOWERED * style.font.get_size()).round() as i32 } else { 0 };
        Ok(self.canvas.draw(&Text::new(what.to_string(), (x, y + lowered), style)).map_err(failed)?)
    }

    /// Fills a rectangle; the right and the lower edge are not a part of it.
    pub fn fill(&self, (left, top): (i32, i32), (right, bottom): (i32, i32), color: RGBColor) -> Result<()> {
        if left >= right || top >= bottom {
            return Ok(());
        }
        let corners = [(left, top), (right, bottom)];
        Ok(self.canvas.draw(&Rectangle::new(corners, color.filled())).map_err(failed)?)
    }

    /// Draws a line.
    pub fn line(&self, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Result<()> {
        Ok(self.canvas.draw(&PathElement::new(vec![from, to], color)).map_err(failed)?)
    }

    /// Returns the width in pixels of the widest of some texts of the size [`LABEL`].
    pub fn width<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Result<i32> {
        let style = text(LABEL, &BLACK, HPos::Left, VPos::Top);
        let mut widest = 0;
        for text in texts {
            widest = widest.max(self.canvas.estimate_text_size(text, &style).map_err(failed)?.0 as i32);
        }
        Ok(widest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample;

    impl Picture for Sample {
        fn size(&self) -> (u32, u32) {
            (200, 60)
        }

        fn draw<B: DrawingBackend>(&self, area: &Area<'_, B>) -> Result<()> {
            area.fill((0, 40), (10, 60), GREY)?;
            area.write("Łµ≤⋅W", text(TITLE, &BLACK, HPos::Left, VPos::Top), (20, 0))?;
            let widths = [&["iiii"][..], &["WWWW"], &["iiii", "WWWW"]]
                .map(|texts| area.width(texts.iter().copied()).unwrap());
            assert!(0 < widths[0] && widths[0] < widths[1] && widths[1] == widths[2], "{widths:?}");
            Ok(())
        }
    }

    #[test]
    fn pixels_are_where_they_were_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.png");
        save(&Sample, &path, Format::Png).unwrap();
        let file = std::io::BufReader::new(File::open(path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height, pixels.len()), (200, 60, 36_000));
        let at = |x: usize, y: usize| pixels[3 * (200 * y + x)];
        assert_eq!([at(0, 40), at(9, 59), at(10, 59), at(9, 39)], [96, 96, 255, 255]);
        // The text is there, in shades of grey, and nowhere else.
        let dark = |x: usize| (0..40).any(|y| at(x, y) < 100);
        assert!((20..150).any(dark) && !(0..20).any(dark) && !(180..200).any(dark));
        assert!((20..150).any(|x| (0..40).any(|y| (100..200).contains(&at(x, y)))));
    }

    #[test]
    fn shapes_and_text_are_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.svg");
        save(&Sample, &path, Format::Svg).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.starts_with("<svg") && text.contains("Łµ≤⋅W") && text.contains("sans-serif"), "{text}");
    }

    #[test]
    fn the_ending_says_the_format() {
        let of = |name: &str| Format::of(Path::new(name)).map_err(|error| error.to_string());
        assert_eq!([of("a.png"), of("a.PNG"), of("a")], [Ok(Format::Png), Ok(Format::Png), Ok(Format::Png)]);
        assert_eq!(of("b/a.Svg"), Ok(Format::Svg));
        assert!(of("a.png.pdf").unwrap_err().starts_with("a.png.pdf: pictures are written as .png or .svg"));
    }
}
