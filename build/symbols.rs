//! Has the linker give every exported function a version (`tarsiaCreate@@TARSIA_0.2`), so that a
//! program that was linked with one minor version does not start with another.
//!
//! rustc offers no way to do this: build/symbol-version, which runs in front of the linker, says how
//! it is done. Nothing else of the link changes, whichever linker it is.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Sets the arguments of the link; `version` is the name of the version.
///
/// The tests learn by TARSIA_SYMBOL_VERSION whether the library has it.
pub fn link(root: &Path, out: &Path, version: &str) {
    let script = root.join("build/symbol-version");
    println!("cargo:rerun-if-changed={}", script.display());
    // The linker that Cargo is given runs the script itself.
    println!("cargo:rerun-if-env-changed=TARSIA_VERSIONS_BY_LINKER");
    let by_linker = env::var("TARSIA_VERSIONS_BY_LINKER").is_ok_and(|value| value == "1");
    let arguments = if by_linker { Ok(Vec::new()) } else { arguments(&script, out, version) };
    match &arguments {
        Ok(arguments) => {
            for argument in arguments {
                println!("cargo:rustc-link-arg={argument}");
            }
        }
        Err(reason) => println!(
            "cargo:warning=the symbols of libtarsia.so get no version: {reason}; \
             build/symbol-version says what to do"
        ),
    }
    println!("cargo:rustc-env=TARSIA_SYMBOL_VERSION={}", if arguments.is_ok() { version } else { "" });
}

fn arguments(script: &Path, out: &Path, version: &str) -> Result<Vec<String>, String> {
    let path = script.to_str().ok_or("the path of the sources is not UTF-8")?;
    let flags = flags();
    let linker = linker(&flags);
    let asked = Command::new(&linker).arg("--version").env("LC_ALL", "C").output();
    let asked = asked.map_err(|error| format!("{linker}: {error}"))?;
    let is = String::from_utf8_lossy(&asked.stdout);
    if is.contains("Free Software Foundation") && !is.contains("GNU ld") {
        // GCC cuts the value at each comma.
        if path.contains(',') {
            return Err(format!("there is a comma in {path}"));
        }
        return Ok(vec!["-wrapper".to_string(), format!("/bin/sh,{path},{version}")]);
    }
    if is.contains("clang version") && !is.contains("zig") {
        let file = in_front_of_clangs_linker(path, out, version, &linker, &flags)?;
        return Ok(vec![format!("--ld-path={file}")]);
    }
    Err(format!("`{linker}`, which links, is neither GCC nor clang"))
}

/// Flags that Cargo passes to rustc.
fn flags() -> Vec<String> {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    flags.split('\x1f').map(str::to_string).collect()
}

/// The compiler by which rustc links.
fn linker(flags: &[String]) -> String {
    let named = flags.iter().rev().find_map(|flag| flag.trim_start_matches("-C").strip_prefix("linker="));
    named.map(str::to_string).or_else(|| env::var("RUSTC_LINKER").ok()).unwrap_or_else(|| "cc".to_string())
}

/// A program for clang's `--ld-path`. It runs the linker that the flags name, else `ld`; rustc's own
/// choice, which may be its lld, is not known here.
fn in_front_of_clangs_linker(
    script: &str,
    out: &Path,
    version: &str,
    clang: &str,
    flags: &[String],
) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let named = |option: &str| {
        let value = flags.iter().rev().find_map(|flag| flag.split(option).nth(1));
        value.map(|value| value.split(' ').next().unwrap_or_default().to_string())
    };
    let name = named("--ld-path=").or_else(|| named("-fuse-ld=").map(|name| format!("ld.{name}")));
    let name = name.unwrap_or_else(|| "ld".to_string());
    let ld = if name.contains('/') {
        name
    } else {
        let asked = Command::new(clang).arg(format!("-print-prog-name={name}")).output();
        let asked = asked.map_err(|error| format!("{clang}: {error}"))?;
        String::from_utf8_lossy(&asked.stdout).trim().to_string()
    };
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let text = format!("#!/bin/sh\nexec /bin/sh {} {version} {} \"$@\"\n", quoted(script), quoted(&ld));
    let file = out.join("linker-with-versions");
    let written =
        fs::write(&file, text).and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", file.display()))?;
    file.to_str().map(str::to_string).ok_or("OUT_DIR is not UTF-8".to_string())
}
