//! The real cuSPARSE library of this process, to which calls are forwarded.
//!
//! It is looked for at the first call, when the program already has a handle of it. It is never loaded here,
//! only found among the loaded libraries, so that calls go to the library that made the program's handles and
//! descriptors. No lock is taken, since the dynamic loader has one of its own, which other threads may hold.

use std::ffi::{c_char, c_int, c_void, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::functions::Function;

/// A loaded cuSPARSE library to which calls are forwarded.
pub struct Cusparse {
    /// Handle of the library for dlsym.
    handle: *mut c_void,
    /// Major, minor and patch version; `None` if the library does not tell it.
    pub version: Option<[c_int; 3]>,
    /// Path of the library's file.
    pub file: String,
}

/// Reason why a call cannot be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No cuSPARSE is loaded.
    Library,
    /// The cuSPARSE that is loaded has no such function.
    Function,
}

/// The cuSPARSE that was found; null until then.
static CUSPARSE: AtomicPtr<Cusparse> = AtomicPtr::new(null_mut());

/// Addresses of the real functions that have been looked up; the others are null.
static ADDRESSES: [AtomicPtr<c_void>; Function::ALL.len()] =
    [const { AtomicPtr::new(null_mut()) }; Function::ALL.len()];

/// Returns the address of a function in the real cuSPARSE.
pub fn find(function: Function) -> Result<NonNull<c_void>, Missing> {
    let slot = &ADDRESSES[function as usize];
    if let Some(address) = NonNull::new(slot.load(Ordering::Acquire)) {
        return Ok(address);
    }
    let cusparse = cusparse().ok_or(Missing::Library)?;
    let name = CStr::from_bytes_with_nul(function.c_name().as_bytes()).map_err(|_| Missing::Function)?;
    let address = cusparse.function(name).ok_or(Missing::Function)?;
    slot.store(address.as_ptr(), Ordering::Release);
    Ok(address)
}

/// Returns the real cuSPARSE, which is looked for if it has not been found yet.
pub fn cusparse() -> Option<&'static Cusparse> {
    let mut found = CUSPARSE.load(Ordering::Acquire);
    if found.is_null() {
        let new = Box::into_raw(Box::new(look_for_cusparse()?));
        // Threads that search at the same time find the same library; the first result stays.
        found = match CUSPARSE.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw` above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: `found` is not null, came from `Box::into_raw`, and what CUSPARSE points to is never freed.
    Some(unsafe { &*found })
}

/// Returns the cuSPARSE that an earlier call has found, without a search.
pub fn found() -> Option<&'static Cusparse> {
    // SAFETY: the pointer is null or came from `Box::into_raw`, and its target is never freed.
    unsafe { CUSPARSE.load(Ordering::Acquire).as_ref() }
}

fn look_for_cusparse() -> Option<Cusparse> {
    // A search by soname finds cuSPARSE even if only the client's own extension can see it (RTLD_LOCAL). The
    // handle is never closed, so that functions that are about to be called stay loaded.
    let named = |name: &CStr| {
        // SAFETY: the name is a C string, and RTLD_NOLOAD loads nothing, so that no code runs.
        NonNull::new(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) })
            .and_then(|handle| Cusparse::at(handle.as_ptr()))
    };
    named(c"libcusparse.so.12")
        // The functions that the program would have been bound to without the drop-in: of another version,
        // or linked statically into a library.
        .or_else(|| Cusparse::at(libc::RTLD_NEXT))
        .or_else(|| named(c"libcusparse.so.11"))
        .or_else(|| named(c"libcusparse.so.13"))
}

impl Cusparse {
    /// Returns the address of the library's function with a name.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        symbol(self.handle, name)
    }

    /// Returns the cuSPARSE behind a handle of dlopen; `None` if the handle is of another library, such as
    /// this one under cuSPARSE's name.
    fn at(handle: *mut c_void) -> Option<Self> {
        let get_property = symbol(handle, c"cusparseGetProperty")?;
        // SAFETY: the function has this type, since cusparseStatus_t and libraryPropertyType are ints.
        let get: extern "C" fn(c_int, *mut c_int) -> c_int = unsafe { std::mem::transmute(get_property) };
        let property = |which: c_int| {
            let mut value = 0;
            (get(which, &mut value) == 0).then_some(value)
        };
        let version = || Some([property(0)?, property(1)?, property(2)?]);
        Some(Cusparse { handle, version: version(), file: file_of(get_property) })
    }
}

fn symbol(handle: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the handle is open or RTLD_NEXT, and the name a C string.
    NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })
}

/// Returns the path of the file from which the code at an address was loaded.
fn file_of(address: NonNull<c_void>) -> String {
    // SAFETY: Dl_info is a structure of pointers, which may be null.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is valid for a write.
    let known = unsafe { libc::dladdr(address.as_ptr(), &mut info) } != 0 && !info.dli_fname.is_null();
    match known {
        // SAFETY: the loader's name is a C string that lives as long as the library.
        true => text(unsafe { CStr::from_ptr(info.dli_fname) }),
        false => "a file that the loader does not name".to_string(),
    }
}

fn text(path: &CStr) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the paths of all cuSPARSE libraries that are loaded now.
pub fn loaded() -> Vec<PathBuf> {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `loaded` passes its list as `out`.
        let (name, out) = unsafe { ((*info).dlpi_name, &mut *out.cast::<Vec<PathBuf>>()) };
        if let Some(path) = file(name) {
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libcusparse.so")) {
                out.push(path.to_path_buf());
            }
        }
        0
    }
    let mut out: Vec<PathBuf> = Vec::new();
    // SAFETY: `look` casts the pointer back to the type of `out`, and is not called after the return.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut out).cast()) };
    out
}

/// Returns the path of a library, as the loader gives it.
fn file<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: the loader's names are null or C strings that live during the iteration.
    (!name.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}
