//! What `TARSIA_CUDA_ARCHS` says. Nothing but std: the tests include this file.

use std::fmt;

/// A target of nvcc: machine code for one architecture, or PTX that drivers
/// compile for it and for newer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arch {
    /// `80`, `90a`.
    pub name: String,
    pub ptx: bool,
}

/// What the kernels need: asynchronous copies, bf16 and fp64 tensor cores.
const OLDEST: u32 = 80;

/// Machine code for A100 and H100, PTX for all others.
pub const DEFAULT: &str = "80,90a,ptx80";

/// Turns the kernels off.
pub const NONE: &str = "none";

/// Reads a list such as `80,90a,ptx80`; of [`NONE`] an empty one.
pub fn parse(text: &str) -> Result<Vec<Arch>, String> {
    let text = text.trim();
    if text == NONE {
        return Ok(Vec::new());
    }
    let mut archs = Vec::new();
    for item in text.split(',').map(str::trim) {
        let arch = parse_one(item).ok_or_else(|| {
            format!(
                "`{text}`: `{item}` is no architecture; the list is `{NONE}` or something like `{DEFAULT}`, \
                 {OLDEST} or newer"
            )
        })?;
        if archs.contains(&arch) {
            return Err(format!("`{text}`: `{item}` comes twice"));
        }
        archs.push(arch);
    }
    Ok(archs)
}

fn parse_one(item: &str) -> Option<Arch> {
    let (name, ptx) = match item.strip_prefix("ptx") {
        Some(name) => (name, true),
        None => (item, false),
    };
    let digits = name.strip_suffix(['a', 'f']).unwrap_or(name);
    let plain = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let new_enough = plain && !digits.starts_with('0') && digits.parse::<u32>().ok()? >= OLDEST;
    new_enough.then(|| Arch { name: name.to_string(), ptx })
}

impl fmt::Display for Arch {
    /// The value of nvcc's `-gencode`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arch { name, ptx } = self;
        write!(f, "arch=compute_{name},code={}_{name}", if *ptx { "compute" } else { "sm" })
    }
}
