//! Reads the names of the kernels from kernels/**/*.cu and the headers that they include, and writes
//! OUT_DIR/kernel_names.rs: `IMAGES`, the names of all images that the compiler makes, and `FILES`, each with its
//! kernels, their kinds, arguments and images; and OUT_DIR/row_bins.rs of kernels/spgemm/row_bins.cuh. Every build
//! has them, with a CUDA compiler or without. kernels/common/kernels.cuh says how names are written.
//!
//! Nothing but std: the tests include this file.

use std::fmt::Write;

/// A kernel as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// What it is a variant of; its own name where it has no variants.
    pub kind: String,
    pub arguments: Vec<String>,
}

/// The kernels of a source with its headers, or what of it cannot be read.
pub fn read(text: &str) -> Result<Vec<Named>, String> {
    let code = code_of(text);
    let mut kernels = Vec::new();
    for (start, line) in lines(&code) {
        let rest = &code[start..];
        if line.starts_with("KERNEL(") {
            kernels.push(one(&items(&rest["KERNEL".len()..])?)?);
        } else if line.starts_with("KERNELS(") {
            several(&items(&rest["KERNELS".len()..])?, &mut kernels)?;
        } else if line.starts_with("GLOBAL ") {
            kernels.push(plain(rest.trim_start_matches("GLOBAL "))?);
        } else if let Some(after) = rest.strip_prefix("extern \"C\" __global__ void ") {
            kernels.push(plain(after)?);
        }
    }
    Ok(kernels)
}

/// `name, kind, arguments…`
fn one(items: &[String]) -> Result<Named, String> {
    match items {
        [name, kind, arguments @ ..] if !arguments.is_empty() => {
            Ok(Named { name: name.clone(), kind: kind.clone(), arguments: arguments.to_vec() })
        }
        _ => Err(format!("KERNEL({}) has no name, kind and argument", items.join(", "))),
    }
}

/// `kind, (first arguments…), (name, last arguments…), …`
fn several(list: &[String], out: &mut Vec<Named>) -> Result<(), String> {
    let [kind, first, own @ ..] = list else {
        return Err(format!("KERNELS({}) has no kind and arguments", list.join(", ")));
    };
    let first = items(first)?;
    for kernel in own {
        let of_kernel = items(kernel)?;
        let [name, last @ ..] = of_kernel.as_slice() else {
            return Err(format!("KERNELS({kind}, …) has a kernel without a name"));
        };
        out.push(one(&[&[name.clone(), kind.clone()], first.as_slice(), last].concat())?);
    }
    Ok(())
}

/// `name(…`, behind launch bounds or none.
fn plain(rest: &str) -> Result<Named, String> {
    let mut rest = rest.trim_start();
    if let Some(bounds) = rest.strip_prefix("__launch_bounds__") {
        rest = bounds[inside(bounds)?.len() + 2..].trim_start();
    }
    let name = rest.split('(').next().unwrap_or_default().trim();
    match name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        true => Err(format!("`{name}` is no name of a kernel")),
        false => Ok(Named { name: name.to_string(), kind: name.to_string(), arguments: Vec::new() }),
    }
}

/// The text without comments and preprocessor directives.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut continues = false;
    for line in text.lines() {
        let is_directive = continues || line.trim_start().starts_with('#');
        continues = is_directive && line.trim_end().ends_with('\\');
        if !is_directive {
            code.push_str(line.split("//").next().unwrap_or_default().trim_end());
            code.push('\n');
        }
    }
    code
}

/// Where each line starts, and the line.
fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    code.split_inclusive('\n').map(move |line| {
        start += line.len();
        (start - line.len(), line)
    })
}

/// What is between the first character, a parenthesis, and the one that closes it.
fn inside(text: &str) -> Result<&str, String> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 && character == ')' {
            return Ok(&text[1..at]);
        }
    }
    Err(format!("`{}` is not closed", text.lines().next().unwrap_or_default()))
}

/// What commas outside of further parentheses divide, in a pair of parentheses that the text starts with.
fn items(text: &str) -> Result<Vec<String>, String> {
    let (mut items, mut depth) = (vec![String::new()], 0);
    for character in inside(text)?.chars() {
        match character {
            ',' if depth == 0 => items.push(String::new()),
            _ => {
                depth += i32::from(character == '(') - i32::from(character == ')');
                items.last_mut().expect("it has one").push(character);
            }
        }
    }
    let items: Vec<_> = items.iter().map(|item| item.trim().to_string()).collect();
    Ok(if items == [""] { Vec::new() } else { items })
}

/// Rust source of `RowBin` of a text with lines `ROW_BIN(NAME, bins)`, of which each begins where the one
/// before ends.
pub fn row_bins(text: &str) -> Result<String, String> {
    let (mut names, mut ranges, mut end) = (String::new(), String::new(), 0);
    for line in code_of(text).lines().map(str::trim).filter(|line| line.starts_with("ROW_BIN(")) {
        let items = items(&line["ROW_BIN".len()..])?;
        let bins = items.get(1).and_then(|bins| bins.parse::<usize>().ok());
        let bins = bins.ok_or_else(|| format!("`{line}` has no number of bins"))?;
        let words = items[0].split('_').map(|word| word[..1].to_string() + &word[1..].to_lowercase());
        let name = words.collect::<String>();
        writeln!(names, "    {name},").unwrap();
        writeln!(ranges, "            RowBin::{name} => {end}..{},", end + bins).unwrap();
        end += bins;
    }
    Ok(format!(
        "/// Kinds of row bins.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum RowBin {{\n{names}}}\n\n\
         impl RowBin {{\n    /// Bins of all kinds.\n    pub const COUNT: usize = {end};\n\n    \
         /// Those of this kind.\n    pub const fn bins(self) -> Range<usize> {{\n        match self {{\n\
         {ranges}        }}\n    }}\n}}\n"
    ))
}

/// A file of kernels.
pub struct File {
    /// `spmv/csr`.
    pub name: String,
    pub kernels: Vec<Named>,
    /// True if there is an image for each first argument (kernels/common/kernels.cuh).
    is_by_first: bool,
}

/// What the compiler makes of a file, or of its kernels with the same first argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Name of the file, and the first argument if the file has an image for each.
    pub name: String,
    pub first: Option<String>,
}

impl File {
    /// Reads a file whose text, with that of its headers, is `text`.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let is_by_first = text.lines().any(|line| line.trim_end() == "#define KERNELS_BY_FIRST");
        let kernels = read(text)?;
        match kernels.iter().find(|kernel| is_by_first && kernel.arguments.is_empty()) {
            Some(kernel) => {
                Err(format!("{} has no arguments, but the file has KERNELS_BY_FIRST", kernel.name))
            }
            None => Ok(File { name: name.to_string(), kernels, is_by_first }),
        }
    }

    /// The image that a kernel is in.
    fn image_of(&self, kernel: &Named) -> Image {
        match kernel.arguments.first().filter(|_| self.is_by_first) {
            Some(first) => Image { name: format!("{} {first}", self.name), first: Some(first.clone()) },
            None => Image { name: self.name.clone(), first: None },
        }
    }

    /// All images, in the order of the first kernel of each.
    pub fn images(&self) -> Vec<Image> {
        let mut images = Vec::new();
        for kernel in &self.kernels {
            let image = self.image_of(kernel);
            if !images.contains(&image) {
                images.push(image);
            }
        }
        images
    }
}

/// Rust source of `IMAGES` and `FILES`.
pub fn source(files: &[&File]) -> String {
    let images: Vec<_> = files.iter().flat_map(|file| file.images()).map(|image| image.name).collect();
    let mut out =
        format!("pub const IMAGES: &[&str] = &{images:?};\n\npub const FILES: &[KernelFile] = &[\n");
    for file in files {
        writeln!(out, "    KernelFile {{ name: {:?}, kernels: &[", file.name).unwrap();
        for kernel in &file.kernels {
            let image = file.image_of(kernel).name;
            let image = images.iter().position(|name| *name == image).expect("it is one of all");
            let Named { name, kind, arguments } = kernel;
            writeln!(
                out,
                "        NamedKernel {{ name: {name:?}, kind: {kind:?}, arguments: &{arguments:?}, image: {image} }},"
            )
            .unwrap();
        }
        out.push_str("    ] },\n");
    }
    out + "];\n"
}
