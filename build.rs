//! Compiles the kernels, writes the C enums, the functions of descriptors and the C header, and sets how the
//! shared library is linked.

#[path = "build/archs.rs"]
mod archs;
#[path = "build/descriptors.rs"]
mod descriptors;
#[path = "build/enums.rs"]
mod enums;
#[path = "build/kernel_names.rs"]
mod kernel_names;
#[path = "build/kernels.rs"]
mod kernels;
#[path = "build/layouts.rs"]
mod layouts;
#[path = "build/nvcc.rs"]
mod nvcc;
#[path = "build/symbols.rs"]
mod symbols;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    vectors();
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let c_enums = out.join("c_enums.rs");
    write(&c_enums, enums::source().as_bytes());
    for file in descriptors::FILES {
        write(&descriptors_of(&out, file), descriptors::source(file).as_bytes());
    }
    header(&root, &out, &c_enums);
    kernels::build(&root, &out);
    link(&root, &out);
}

/// Sets `avx512` where the compiler has its instructions (1.89), and `vector_sort` where functions with other
/// vector instructions are safe in their like (1.87). The rest needs less.
fn vectors() {
    println!("cargo::rustc-check-cfg=cfg(avx512, vector_sort)");
    let rustc = env::var_os("RUSTC").expect("Cargo sets it");
    let said = Command::new(rustc).arg("--version").output().map(|said| said.stdout).unwrap_or_default();
    let minor = String::from_utf8_lossy(&said).split('.').nth(1).and_then(|minor| minor.parse().ok());
    let is_x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    for (name, least) in [("avx512", 89), ("vector_sort", 87)] {
        if is_x86_64 && minor.is_some_and(|minor: u32| minor >= least) {
            println!("cargo::rustc-cfg={name}");
        }
    }
}

/// Files of src/capi that have no C functions or types: cbindgen does not read them.
const NOT_IN_HEADER: &[&str] = &["boundary", "descriptors", "enums", "mod"];

/// Functions and types of the C API, in the order in which a reader wants them; the enums come before, files that
/// are not listed here behind, by name.
const SECTIONS: &[&str] = &[
    "objects",
    "status",
    "threads",
    "handle",
    "memory",
    "spmat",
    "spmat_access",
    "tile",
    "dnvec",
    "dnmat",
    "plan",
    "spmv",
    "spmm",
    "spgemm",
];

/// Where the functions are that a file of src/capi includes.
fn descriptors_of(out: &Path, file: &str) -> PathBuf {
    out.join(format!("{file}_descriptors.rs"))
}

fn header(root: &Path, out: &Path, c_enums: &Path) {
    let capi = root.join("src/capi");
    println!("cargo:rerun-if-changed={}", capi.display());
    println!("cargo:rerun-if-changed={}", root.join("cbindgen.toml").display());
    let mut config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is readable");
    let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).expect("Cargo sets it");
    config.after_includes = Some(format!(
        "\n#define TARSIA_VERSION_MAJOR {major}\n#define TARSIA_VERSION_MINOR {minor}\n\
         #define TARSIA_VERSION_PATCH {patch}\n\
         #define TARSIA_VERSION ({major} * 10000 + {minor} * 100 + {patch})",
        major = part("MAJOR"),
        minor = part("MINOR"),
        patch = part("PATCH"),
    ));
    let mut builder = cbindgen::Builder::new().with_config(config).with_src(c_enums);
    let files =
        fs::read_dir(&capi).expect("src/capi is there").map(|file| file.expect("it can be read").path());
    let mut more: Vec<_> = files
        .filter(|path| {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let is_rust = path.extension().is_some_and(|kind| kind == "rs");
            is_rust && !SECTIONS.contains(&name) && !NOT_IN_HEADER.contains(&name)
        })
        .collect();
    more.sort();
    for section in SECTIONS {
        if descriptors::FILES.contains(section) {
            builder = builder.with_src(descriptors_of(out, section));
        }
        builder = builder.with_src(capi.join(section).with_extension("rs"));
    }
    for path in more {
        builder = builder.with_src(path);
    }
    let mut text = Vec::new();
    builder.generate().expect("src/capi is what cbindgen understands").write(&mut text);
    write(&out.join("tarsia.h"), &text);
}

/// Writes a file of OUT_DIR only where it differs, so that what is unchanged rebuilds nothing.
fn write(path: &Path, text: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(text) {
        fs::write(path, text).expect("OUT_DIR can be written");
    }
}

/// What programs that were linked with the library may rely on changes with this number: while the
/// version is 0.x, with each minor version.
fn interface_version() -> String {
    let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).expect("Cargo sets it");
    match (part("MAJOR"), part("MINOR")) {
        (major, minor) if major == "0" => format!("0.{minor}"),
        (major, _) => major,
    }
}

/// How the shared library is linked. The arguments go to the tests' executables as well, where they change nothing:
/// those of `rustc-cdylib-link-arg` would go to every shared library that depends on this package (Cargo's issue
/// 9562), behind its own, so that crates/cusparse would get this library's name and version of symbols.
fn link(root: &Path, out: &Path) {
    let target = env::var("CARGO_CFG_TARGET_OS").expect("Cargo sets it");
    if target != "linux" {
        println!("cargo:rustc-env=TARSIA_SYMBOL_VERSION=");
        return;
    }
    let version = interface_version();
    symbols::link(root, out, &format!("TARSIA_{version}"));
    // A fuzzer links its sanitizers' runtime into the program, not into this.
    if env::var_os("CARGO_CFG_FUZZING").is_none() {
        // A symbol that nothing defines is an error now, not at load time.
        println!("cargo:rustc-link-arg=-Wl,-z,defs");
    }
    for argument in [
        &format!("-Wl,-soname,libtarsia.so.{version}"),
        // The library's threads outlive any dlclose.
        "-Wl,-z,nodelete",
        "-Wl,-z,relro,-z,now",
        "-Wl,--as-needed",
    ] {
        println!("cargo:rustc-link-arg={argument}");
    }
}
