//! One library of cuSPARSE or several at once, each opened by its own file: they are timed on the same
//! operands in one process.

use client::{Array, Session};
use matrices::owned::OwnedCsr;
use tarsia::facade::BackendKind;

use super::api::{check, Functions};
use super::{Cusparse, What};
use crate::bench::number::Number;
use crate::bench::report::{AT_VERSION, COPY_OF_VERSION};
use crate::bench::runs::{Layout, MatrixOperand};
use crate::bench::vendor::library::{beside, preload, preload_newest_first, site_packages, Library, Scope};
use crate::bench::vendor::{Choice, Dense, Prepared, SparseProduct, Vendor};
use crate::bench::Op;
use crate::Result;

/// Names under which the loader is asked for cuSPARSE, newest first.
const NAMES: [&str; 3] = ["libcusparse.so.13", "libcusparse.so.12", "libcusparse.so"];
/// Libraries that cuSPARSE needs, which lie beside it where pip put it.
const NEEDED: [&str; 2] = ["libnvJitLink.so.13", "libnvJitLink.so.12"];

/// An open library that has no handle yet.
pub struct Opened {
    library: Library,
    /// Functions of the library.
    pub functions: Functions,
    /// Version that the library reports.
    pub version: String,
}

impl Opened {
    fn new(library: Library) -> Result<Self> {
        let functions = Functions::load(&library)?;
        let mut numbers = [0; 3];
        for (property, number) in (0..).zip(&mut numbers) {
            // SAFETY: the answer is valid for a write.
            check(unsafe { (functions.cusparseGetProperty)(property, number) }, "cusparseGetProperty")?;
        }
        Ok(Opened { library, functions, version: numbers.map(|number| number.to_string()).join(".") })
    }
}

/// Opens each of the files, or, if there are none, the library that the loader finds or pip has installed.
fn open(files: &[String]) -> Result<Vec<Opened>> {
    if files.is_empty() {
        let names = found();
        names.iter().for_each(|name| preload(name, &NEEDED, Scope::Local));
        let library = Library::open(&names, Scope::Local).map_err(|error| {
            format!(
                "cuSPARSE cannot be opened; --library names its file, LD_LIBRARY_PATH its folder: {error}"
            )
        })?;
        return Ok(vec![Opened::new(library)?]);
    }
    match files {
        [file] => preload(file, &NEEDED, Scope::Local),
        _ => {
            let needed: Vec<String> = files.iter().flat_map(|file| beside(file, &NEEDED)).collect();
            preload_newest_first(&needed, c"nvJitLinkVersion");
        }
    }
    let mut out: Vec<Opened> = Vec::new();
    for file in files {
        let said = |error| format!("--library {file}: cuSPARSE cannot be opened: {error}");
        let library = Library::open(std::slice::from_ref(file), Scope::Local).map_err(said)?;
        let opened = Opened::new(library).map_err(said)?;
        let is_same =
            |other: &&Opened| other.version == opened.version && other.library.is_same_file(&opened.library);
        if let Some(other) = out.iter().find(is_same) {
            return Err(format!(
                "--library {} and --library {file} are one file, cuSPARSE {}: name each library by its path",
                other.library.name, opened.version
            )
            .into());
        }
        out.push(opened);
    }
    Ok(out)
}

/// Lists names and files in the order in which they are tried.
fn found() -> Vec<String> {
    let mut names: Vec<String> = NAMES.map(String::from).into();
    let mut folders: Vec<_> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(|name| Some(std::path::PathBuf::from(std::env::var_os(name)?).join("lib64")))
        .collect();
    folders.push("/usr/local/cuda/lib64".into());
    for packages in site_packages() {
        // nvidia/cusparse/lib up to CUDA 12, nvidia/cu13/lib since.
        let Ok(parts) = packages.join("nvidia").read_dir() else { continue };
        folders.extend(parts.flatten().map(|part| part.path().join("lib")));
    }
    for folder in folders {
        let paths = NAMES.iter().map(|name| folder.join(name)).filter(|path| path.exists());
        names.extend(paths.map(|path| path.to_string_lossy().into_owned()));
    }
    names
}

/// Returns the endings of the implementations' names: nothing for a single library, else `@VERSION`; where
/// several report one version, all but the first have a number behind it.
fn suffixes(versions: &[&str]) -> Vec<String> {
    let suffix = |(at, version): (usize, &&str)| {
        let before = versions[..at].iter().filter(|other| *other == version).count();
        match (versions.len(), before) {
            (1, _) => String::new(),
            (_, 0) => format!("{AT_VERSION}{version}"),
            (_, before) => format!("{AT_VERSION}{version}{COPY_OF_VERSION}{}", before + 1),
        }
    };
    versions.iter().enumerate().map(suffix).collect()
}

/// All libraries of a run; each has a handle, descriptors, buffers and preprocess of its own.
pub struct Libraries<'s> {
    libraries: Vec<Cusparse<'s>>,
    /// Endings of the implementations' names.
    suffixes: Vec<String>,
}

impl<'s> Libraries<'s> {
    /// Opens the files that are named, or else the library that is found.
    pub fn open(session: &'s Session, files: &[String], most_fill: f64) -> Result<Self> {
        if session.kind() != BackendKind::Cuda {
            return Err("cuSPARSE runs on CUDA: --backend cuda".into());
        }
        let opened = open(files)?;
        let versions: Vec<&str> = opened.iter().map(|opened| opened.version.as_str()).collect();
        let suffixes = suffixes(&versions);
        let libraries = opened
            .into_iter()
            .map(|opened| Cusparse::new(session, opened, most_fill))
            .collect::<Result<_>>()?;
        Ok(Libraries { libraries, suffixes })
    }
}

impl Vendor for Libraries<'_> {
    /// Index of the library, and the entry within it.
    type What = (usize, What);

    fn version(&self) -> String {
        self.libraries.iter().map(Vendor::version).collect::<Vec<_>>().join(", ")
    }

    fn number(&self) -> String {
        self.libraries.iter().map(Vendor::number).collect::<Vec<_>>().join(",")
    }

    fn set_matrix(&mut self, pattern: &OwnedCsr<()>) -> Result<()> {
        let Some((first, others)) = self.libraries.split_first_mut() else { return Ok(()) };
        first.set_matrix(pattern)?;
        others.iter_mut().for_each(|other| other.share_matrix(first));
        Ok(())
    }

    fn choices<T: Number>(
        &self,
        op: Op,
        a: &MatrixOperand<'_, T>,
        layout: Layout,
    ) -> Vec<Choice<Self::What>> {
        let mut out = Vec::new();
        for (at, (library, suffix)) in self.libraries.iter().zip(&self.suffixes).enumerate() {
            out.extend(library.choices(op, a, layout).into_iter().map(|choice| Choice {
                implementation: format!("{}{suffix}", choice.implementation),
                alg: choice.alg,
                what: (at, choice.what),
            }));
        }
        out
    }

    fn spmv<'a, T: Number>(
        &'a self,
        (library, what): &Self::What,
        a: &'a MatrixOperand<'_, T>,
        x: &'a Array<'_, T>,
        y: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        self.libraries[*library].spmv(what, a, x, y)
    }

    fn spmm<'a, T: Number>(
        &'a self,
        (library, what): &Self::What,
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        self.libraries[*library].spmm(what, a, b, c)
    }

    fn spgemm<'a, T: Number>(
        &'a self,
        (library, what): &Self::What,
        a: &'a MatrixOperand<'_, T>,
        b: Option<&'a MatrixOperand<'_, T>>,
    ) -> Result<Box<dyn SparseProduct<T> + 'a>> {
        self.libraries[*library].spgemm(what, a, b)
    }
}

#[cfg(test)]
mod tests;
