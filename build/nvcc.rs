//! Finds the CUDA compiler. Nothing but std: the tests include this file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The oldest version that knows all architectures of releases and can be told how to compress.
pub const OLDEST: Version = (12, 9);

/// Major and minor.
pub type Version = (u32, u32);

const HELP: &str = "scripts/install-nvcc of the source of Tarsia fetches one";

/// An nvcc that works.
pub struct Nvcc {
    pub path: PathBuf,
    /// The CUDA that it is of.
    pub release: Version,
    /// What it and the host compiler say of themselves.
    pub version: String,
}

/// The first nvcc that is new enough, or why there is none.
pub fn find(root: &Path) -> Result<Nvcc, String> {
    for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "NVCC_CCBIN"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let mut unfit = Vec::new();
    for path in candidates(root) {
        match release(&path) {
            Ok((release, text)) if release >= OLDEST => {
                println!("cargo:rerun-if-changed={}", path.display());
                for said in &unfit {
                    println!("cargo:warning={said}");
                }
                let host = host_compiler()?;
                return Ok(Nvcc { path, release, version: text + &host });
            }
            Ok(((major, minor), _)) => {
                let (path, (oldest, its_minor)) = (path.display(), OLDEST);
                unfit.push(format!(
                    "{path} is of CUDA {major}.{minor}, {oldest}.{its_minor} or newer is needed"
                ))
            }
            Err(error) => unfit.push(format!("{}: {error}", path.display())),
        }
    }
    // Watched only now: with a compiler, other values of PATH (an editor's)
    // must not make Cargo build everything anew.
    println!("cargo:rerun-if-env-changed=PATH");
    let mut reason = format!("no CUDA compiler was found; {HELP}");
    for said in unfit {
        reason = format!("{reason} ({said})");
    }
    Err(reason)
}

fn candidates(root: &Path) -> Vec<PathBuf> {
    let value = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let on_path = |name: &Path| -> Vec<PathBuf> {
        let folders = env::var_os("PATH").unwrap_or_default();
        let found = env::split_paths(&folders).filter(|folder| folder.is_absolute());
        found.map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
    };
    let mut paths = Vec::new();
    // What the user names is reported where it does not work; what is only
    // looked for is not.
    if let Some(named) = value("NVCC").map(PathBuf::from) {
        // As a shell does: a name without a folder is looked up.
        let found = if named.components().count() == 1 { on_path(&named) } else { Vec::new() };
        paths.push(found.into_iter().next().unwrap_or(named));
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        paths.extend(value(name).map(|home| Path::new(&home).join("bin/nvcc")));
    }
    paths.extend(on_path(Path::new("nvcc")));
    let others = [PathBuf::from("/usr/local/cuda/bin/nvcc"), root.join(".cuda/bin/nvcc")];
    paths.extend(others.into_iter().filter(|path| path.is_file()));
    paths
}

/// The version of an nvcc, and all that it says of it.
fn release(path: &Path) -> Result<(Version, String), String> {
    let text = output(Command::new(path).arg("--version"))?;
    Ok((parse_release(&text).ok_or("it does not say its version")?, text))
}

/// Of `Cuda compilation tools, release 13.0, V13.0.88`.
pub fn parse_release(text: &str) -> Option<Version> {
    let (release, _) = text.split("release ").nth(1)?.split_once(',')?;
    let (major, minor) = release.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// How fatbins are compressed: as small as the drivers that run them can read. Before R550 (CUDA
/// 12.4) a driver reads what is compressed for speed alone.
pub fn compression(release: Version) -> &'static str {
    match release {
        (13.., _) => "--compress-mode=size",
        _ => "--compress-mode=speed",
    }
}

/// nvcc preprocesses kernels with it, too.
fn host_compiler() -> Result<String, String> {
    let name = env::var_os("NVCC_CCBIN").filter(|name| !name.is_empty()).unwrap_or("g++".into());
    output(Command::new(&name).arg("--version"))
        .map_err(|error| format!("no C++ compiler for nvcc; install g++ or set NVCC_CCBIN ({error})"))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        return Err(format!("{} --version: {}", command.get_program().to_string_lossy(), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Nvcc {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        // Flags from the environment are in no key.
        command.env_remove("NVCC_PREPEND_FLAGS").env_remove("NVCC_APPEND_FLAGS");
        command
    }

    /// The folder of libcudart_static.a.
    pub fn static_runtime(&self) -> Option<PathBuf> {
        let path = fs::canonicalize(&self.path).ok()?;
        let home = path.parent()?.parent()?;
        let folders = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
        let mut folders = folders.into_iter().map(|folder| home.join(folder));
        folders.find(|folder| folder.join("libcudart_static.a").is_file())
    }
}
