//! Shared libraries that are opened while the program runs.

use std::ffi::{c_void, CStr, CString};
use std::path::{Path, PathBuf};

use crate::Result;

/// Visibility of the symbols of a library that is opened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    /// Visible to all libraries that are opened later: MKL's parts find each other in this way, and AOCL its
    /// OpenMP.
    Global,
    /// Visible to the library itself, and to lookups in it by name. With global visibility the second of two
    /// versions of one library would use the functions of the first in place of its own.
    Local,
}

/// An open library. It stays open until the process ends: its threads and its exit handlers outlive the code
/// that opened it.
pub struct Library {
    handle: *mut c_void,
    /// Name under which it was opened.
    pub name: String,
}

/// Largest number of files beside a library that are opened for it.
const MOST_NEEDED: usize = 16;

impl Library {
    /// Opens the first of the names (as the loader takes them) that can be opened.
    pub fn open(names: &[String], scope: Scope) -> Result<Library> {
        let mut refused = Vec::new();
        for name in names {
            match open_with_needed(name, scope, MOST_NEEDED) {
                Ok(handle) => return Ok(Library { handle, name: name.clone() }),
                Err(text) => refused.push(text),
            }
        }
        Err(refused.join("; ").into())
    }

    /// Returns whether both are of one file: the loader opens a file once, under whatever names it is asked
    /// for.
    pub fn is_same_file(&self, other: &Library) -> bool {
        self.handle == other.handle
    }

    /// Returns the address of a symbol as a pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to the symbol's function or object.
    pub unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the library is open, the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        // SAFETY: the sizes are equal, and the caller vouches for the type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// Like [`Library::symbol`], but a missing symbol is an error.
    ///
    /// # Safety
    /// See [`Library::symbol`].
    pub unsafe fn required<F: Copy>(&self, name: &CStr) -> Result<F> {
        // SAFETY: the caller's promise.
        let symbol = unsafe { self.symbol(name) };
        Ok(symbol.ok_or_else(|| format!("{} has no {}", self.name, name.to_string_lossy()))?)
    }
}

fn open(name: &str, scope: Scope) -> std::result::Result<*mut c_void, String> {
    let scope = if scope == Scope::Global { libc::RTLD_GLOBAL } else { libc::RTLD_LOCAL };
    let name = CString::new(name).map_err(|_| format!("{name:?} is no file name"))?;
    // SAFETY: the name is a C string. What runs as the library is loaded is the
    // affair of who asked for this library.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | scope) };
    if !handle.is_null() {
        return Ok(handle);
    }
    // SAFETY: dlerror's text is valid until the next call on this thread.
    let text = unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    Err(text.unwrap_or_else(|| format!("{} cannot be opened", name.to_string_lossy())))
}

/// Opens a library; those that it needs, where the loader does not find them, from its own folder, where pip
/// puts them. `most` bounds their number.
fn open_with_needed(name: &str, scope: Scope, most: usize) -> std::result::Result<*mut c_void, String> {
    let said = match open(name, scope) {
        Ok(handle) => return Ok(handle),
        Err(said) => said,
    };
    // What the loader says of a file that it does not find begins with its name.
    let missing =
        said.split(':').next().filter(|missing| most > 0 && !missing.is_empty() && *missing != name);
    let Some(needed) = missing.and_then(|missing| beside(name, &[missing]).pop()) else { return Err(said) };
    open_with_needed(&needed, scope, most - 1)?;
    open_with_needed(name, scope, most - 1)
}

/// Returns the address of a symbol of any library that is open with [`Scope::Global`], as a pointer of type
/// `F`: the one that their own references are bound to.
///
/// # Safety
/// `F` must be the type of a pointer to the symbol's function or object.
pub unsafe fn loaded<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the handle stands for all such libraries; the rest is the caller's promise.
    unsafe { Library { handle: libc::RTLD_DEFAULT, name: String::new() }.symbol(name) }
}

/// Opens files that lie beside a library and are needed by it, if they exist; it does no harm if the loader
/// finds them anyway, or they are not needed.
pub fn preload(library: &str, needed: &[&str], scope: Scope) {
    for path in beside(library, needed) {
        drop(open(&path, scope));
    }
}

/// Lists the files that a library needs and that lie beside it.
pub fn beside(library: &str, needed: &[&str]) -> Vec<String> {
    let Some(folder) = Path::new(library).parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Vec::new();
    };
    let paths = needed.iter().map(|name| folder.join(name)).filter(|path| path.exists());
    paths.map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Opens all of these files for the libraries that need them, the newest first: of several libraries of one
/// name the loader gives every user the one that was opened first, and newer ones have all functions of older
/// ones. `version` is the name of a function that writes the numbers of its version to two integers.
pub fn preload_newest_first(paths: &[String], version: &CStr) {
    let mut paths: Vec<_> = paths.iter().map(|path| (version_of(path, version), path)).collect();
    paths.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    for (_, path) in paths {
        drop(open(path, Scope::Local));
    }
}

/// Returns the version that the function reports for a library, which is closed again; zeros if there is
/// none.
fn version_of(path: &str, function: &CStr) -> (u32, u32) {
    let Ok(handle) = open(path, Scope::Local) else { return (0, 0) };
    let (mut major, mut minor) = (0, 0);
    let library = Library { handle, name: path.into() };
    // SAFETY: the caller names a function of this type, whose answers are valid for writes.
    unsafe {
        let ask: Option<unsafe extern "C" fn(*mut u32, *mut u32) -> i32> = library.symbol(function);
        if let Some(ask) = ask {
            ask(&mut major, &mut minor);
        }
        libc::dlclose(handle);
    }
    (major, minor)
}

/// Lists `lib/python*/site-packages/` beside each folder of PATH: pip puts shared libraries there, where no
/// loader searches.
pub fn site_packages() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        let Ok(pythons) = folder.join("../lib").read_dir() else { continue };
        for python in pythons.flatten().map(|entry| entry.path()) {
            let is_python =
                python.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"));
            let packages = python.join("site-packages");
            if is_python && packages.is_dir() && !out.contains(&packages) {
                out.push(packages);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_is_named() {
        let names = ["libno-such-thing.so.1", "/no/such/folder/lib.so"].map(String::from);
        let text = Library::open(&names, Scope::Local).err().unwrap().to_string();
        assert!(names.iter().all(|name| text.contains(name.as_str())), "{text}");
    }

    /// Makes a shared library from C in a folder, linked with others there, whose folder it does not keep.
    fn make(folder: &Path, name: &str, text: &str, needed: &[&str]) -> String {
        let source = folder.join(format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        let library = folder.join(format!("lib{name}.so"));
        let mut cc = std::process::Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-L").arg(folder);
        // By this name the loader knows a library that is open.
        cc.arg(format!("-Wl,-soname,lib{name}.so"));
        assert!(cc.args(needed.iter().map(|name| format!("-l{name}"))).status().unwrap().success());
        library.to_string_lossy().into_owned()
    }

    #[test]
    fn what_a_library_needs_is_found_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let name = |part: &str| format!("tarsia_{part}_{}", std::process::id());
        let (inner, middle) = (name("inner"), name("middle"));
        make(folder.path(), &inner, "int inner(void) { return 7; }", &[]);
        make(folder.path(), &middle, "int inner(void); int middle(void) { return inner(); }", &[&inner]);
        let text = "int middle(void); int outer(void) { return middle() + 1; }";
        let outer = make(folder.path(), &name("outer"), text, &[&middle]);
        let library = Library::open(&[outer], Scope::Local).unwrap();
        // SAFETY: it is such a function.
        let outer_function: extern "C" fn() -> i32 = unsafe { library.required(c"outer") }.unwrap();
        assert_eq!(outer_function(), 8);
    }

    #[test]
    fn symbols_are_found() {
        let libc = Library::open(&["libc.so.6".into()], Scope::Global).unwrap();
        // SAFETY: the C library's abs is such a function.
        let abs: extern "C" fn(i32) -> i32 = unsafe { libc.required(c"abs") }.unwrap();
        assert_eq!(abs(-5), 5);
        // SAFETY: there is no such symbol.
        let none = unsafe { libc.required::<extern "C" fn()>(c"tarsia_no_such_symbol") };
        assert!(none.err().unwrap().to_string().contains("tarsia_no_such_symbol"));
    }
}
