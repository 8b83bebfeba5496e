//! A second reader, as simple as possible: it takes the whole text line by line and uses only the standard
//! library. It reports the line of the first error, but not its kind.

use num_complex::Complex;

/// (row, column, value), indices from 0.
pub type Entry = (i64, i64, Complex<f64>);

/// Contents of a file.
pub struct Slow {
    pub rows: usize,
    pub cols: usize,
    pub is_complex: bool,
    /// Entries with mirror images, in the order of the file.
    pub entries: Vec<Entry>,
}

/// Reads a text, or returns the line of its first error.
pub fn read(text: &[u8]) -> Result<Slow, u64> {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').zip(1u64..).map(|(line, number)| {
        let long = line.len() > 65536;
        let blank = line.iter().all(|byte| byte.is_ascii_whitespace());
        let comment = line.trim_ascii_start().first() == Some(&b'%');
        (number, line, long, blank || comment)
    });
    let end = text.split_inclusive(|&byte| byte == b'\n').count() as u64;
    let (_, line, long, _) = lines.next().ok_or(1u64)?;
    if long {
        return Err(1);
    }
    let head: Vec<String> =
        words(line).ok_or(1u64)?.into_iter().map(|word| word.to_ascii_lowercase()).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = head[..] else { return Err(1) };
    let is_array = match format {
        "coordinate" => false,
        "array" => true,
        _ => return Err(1),
    };
    let symmetries: &[&str] = match field {
        "real" | "integer" => &["general", "symmetric", "skew-symmetric"],
        "complex" => &["general", "symmetric", "skew-symmetric", "hermitian"],
        "pattern" if !is_array => &["general", "symmetric"],
        _ => return Err(1),
    };
    if !symmetries.contains(&symmetry) {
        return Err(1);
    }
    // Positions that an array states, by columns.
    let mut places = Vec::new();
    let mut sizes: Option<(usize, usize, u64)> = None;
    let mut entries = Vec::new();
    let mut stated = 0;
    for (number, line, long, skipped) in lines {
        if long {
            return Err(number);
        }
        if skipped {
            continue;
        }
        if sizes.is_some_and(|(_, _, expected)| stated == expected) {
            return Err(number);
        }
        let mut tokens = words(line).ok_or(number)?.into_iter();
        let Some((rows, cols, _)) = sizes else {
            let mut next = || tokens.next()?.parse::<u64>().ok();
            let (rows, cols) = (next().ok_or(number)?, next().ok_or(number)?);
            let announced = if is_array { 0 } else { next().ok_or(number)? };
            if tokens.next().is_some() || (symmetry != "general" && rows != cols) {
                return Err(number);
            }
            for col in 0..cols {
                let first = match symmetry {
                    "general" => 0,
                    "skew-symmetric" => col + 1,
                    _ => col,
                };
                places.extend((first..rows).map(|row| (row as i64, col as i64)).filter(|_| is_array));
            }
            let expected = if is_array { places.len() as u64 } else { announced };
            sizes = Some((rows as usize, cols as usize, expected));
            continue;
        };
        let mut read = || -> Option<Entry> {
            let (row, col) = if is_array {
                places[stated as usize]
            } else {
                let mut index = || tokens.next()?.parse::<i64>().ok();
                let (row, col) = (index()?, index()?);
                ((1..=rows as i64).contains(&row) && (1..=cols as i64).contains(&col)).then_some(())?;
                (row - 1, col - 1)
            };
            let mut value = || -> Option<f64> {
                let token = tokens.next()?;
                if field == "integer" {
                    return Some(token.parse::<i64>().ok()? as f64);
                }
                let fortran = || token.replacen(['d', 'D'], "e", 1).parse();
                let value: f64 = token.parse().or_else(|_| fortran()).ok()?;
                (value.is_finite() || !token.contains(|c: char| c.is_ascii_digit())).then_some(value)
            };
            let re = if field == "pattern" { 1.0 } else { value()? };
            let im = if field == "complex" { value()? } else { 0.0 };
            let fits = match symmetry {
                "general" => true,
                _ if row != col => row > col,
                "skew-symmetric" => re == 0.0 && im == 0.0,
                "hermitian" => im == 0.0,
                _ => true,
            };
            (fits && tokens.next().is_none()).then_some((row, col, Complex::new(re, im)))
        };
        let (row, col, value) = read().ok_or(number)?;
        entries.push((row, col, value));
        if symmetry != "general" && row != col {
            let image = match symmetry {
                "skew-symmetric" => -value,
                "hermitian" => value.conj(),
                _ => value,
            };
            entries.push((col, row, image));
        }
        stated += 1;
    }
    match sizes {
        Some((rows, cols, expected)) if stated == expected => {
            Ok(Slow { rows, cols, is_complex: field == "complex", entries })
        }
        _ => Err(end),
    }
}

fn words(line: &[u8]) -> Option<Vec<&str>> {
    Some(std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect())
}
