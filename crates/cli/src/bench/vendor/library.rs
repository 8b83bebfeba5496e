//! A shared library that is opened while the program runs.

use std::ffi::{c_void, CStr, CString};
use std::path::{Path, PathBuf};

use crate::Result;

/// An open library. It stays open until the process ends: its threads and its
/// handlers at exit outlive whoever opened it.
pub struct Library {
    handle: *mut c_void,
    /// What it was opened as.
    pub name: String,
}

impl Library {
    /// The first of the names (as the loader takes them) that can be opened.
    pub fn open(names: &[String]) -> Result<Library> {
        let mut refused = Vec::new();
        for name in names {
            match open(name) {
                Ok(handle) => return Ok(Library { handle, name: name.clone() }),
                Err(text) => refused.push(text),
            }
        }
        Err(refused.join("; ").into())
    }

    /// The address of a symbol as what it is.
    ///
    /// # Safety
    /// `F` must be the type of a pointer to what the symbol is.
    pub unsafe fn symbol<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        // SAFETY: the library is open, the name ends with a zero.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        // SAFETY: the sizes are equal, and the caller vouches for the type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// As [`Library::symbol`]; that there is none is an error.
    ///
    /// # Safety
    /// As for [`Library::symbol`].
    pub unsafe fn required<F: Copy>(&self, name: &CStr) -> Result<F> {
        // SAFETY: the caller's promise.
        let symbol = unsafe { self.symbol(name) };
        Ok(symbol.ok_or_else(|| format!("{} has no {}", self.name, name.to_string_lossy()))?)
    }
}

fn open(name: &str) -> std::result::Result<*mut c_void, String> {
    let name = CString::new(name).map_err(|_| format!("{name:?} is no file name"))?;
    // SAFETY: the name is a C string. What runs as the library is loaded is the
    // affair of who asked for this library.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
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

/// Opens what lies beside a library and is needed by it, if it is there; where
/// the loader finds it anyway, or it is not needed, nothing is lost.
pub fn preload(library: &str, needed: &[&str]) {
    let Some(folder) = Path::new(library).parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return;
    };
    for name in needed {
        let path = folder.join(name);
        if path.exists() {
            drop(open(&path.to_string_lossy()));
        }
    }
}

/// `lib/python*/site-packages/` beside each folder of PATH: where pip puts shared
/// libraries, which no loader searches.
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
        let text = Library::open(&names).err().unwrap().to_string();
        assert!(names.iter().all(|name| text.contains(name.as_str())), "{text}");
    }

    #[test]
    fn symbols_are_found() {
        let libc = Library::open(&["libc.so.6".into()]).unwrap();
        // SAFETY: the C library's abs is such a function.
        let abs: extern "C" fn(i32) -> i32 = unsafe { libc.required(c"abs") }.unwrap();
        assert_eq!(abs(-5), 5);
        // SAFETY: there is no such symbol.
        let none = unsafe { libc.required::<extern "C" fn()>(c"tarsia_no_such_symbol") };
        assert!(none.err().unwrap().to_string().contains("tarsia_no_such_symbol"));
    }
}
