//! The real cuSPARSE of this process.
//!
//! It is looked for when the first call comes: the program has a handle of it by then. It is never loaded here, only
//! found among what is loaded, so that calls go to the library that made the program's handles and descriptors.
//! No lock is taken, since the dynamic loader has one of its own, which other threads may hold.

use std::ffi::{c_char, c_int, c_void, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::functions::Function;

/// The cuSPARSE that calls are forwarded to.
pub struct Cusparse {
    /// What dlsym looks functions up in.
    handle: *mut c_void,
    /// Major, minor, patch; `None` where it does not say.
    pub version: Option<[c_int; 3]>,
    /// Its file.
    pub file: String,
}

/// What a call lacks to be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No cuSPARSE is loaded.
    Library,
    /// The cuSPARSE that is loaded has no such function.
    Function,
}

static CUSPARSE: AtomicPtr<Cusparse> = AtomicPtr::new(null_mut());

/// Addresses of the real functions, as far as they have been looked up.
static ADDRESSES: [AtomicPtr<c_void>; Function::ALL.len()] =
    [const { AtomicPtr::new(null_mut()) }; Function::ALL.len()];

/// The address of a real function.
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

/// The real cuSPARSE, looked for if it has not been found yet.
pub fn cusparse() -> Option<&'static Cusparse> {
    let mut found = CUSPARSE.load(Ordering::Acquire);
    if found.is_null() {
        let new = Box::into_raw(Box::new(look_for_cusparse()?));
        // Threads that look at the same time find the same; the first one's stays.
        found = match CUSPARSE.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: it came from `Box::into_raw` above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: it is not null, came from `Box::into_raw`, and what is in CUSPARSE is never freed.
    Some(unsafe { &*found })
}

/// The cuSPARSE that was found, if calls have come.
pub fn found() -> Option<&'static Cusparse> {
    // SAFETY: it is null or came from `Box::into_raw`, and is never freed.
    unsafe { CUSPARSE.load(Ordering::Acquire).as_ref() }
}

fn look_for_cusparse() -> Option<Cusparse> {
    // By its name cuSPARSE is found even where only the client's own extension sees it (RTLD_LOCAL). The handle is
    // never closed: functions of it that are about to be called stay.
    let named = |name: &CStr| {
        // SAFETY: the name is a C string; nothing is loaded, so that no code runs.
        NonNull::new(unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) })
            .and_then(|handle| Cusparse::at(handle.as_ptr()))
    };
    named(c"libcusparse.so.12")
        // What the program would have been bound to without the drop-in: another version, or functions that were
        // linked statically into a library.
        .or_else(|| Cusparse::at(libc::RTLD_NEXT))
        .or_else(|| named(c"libcusparse.so.11"))
        .or_else(|| named(c"libcusparse.so.13"))
}

impl Cusparse {
    /// The address of a function of it.
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        symbol(self.handle, name)
    }

    /// `None`: there is no cuSPARSE behind the handle, but, say, this library under cuSPARSE's name.
    fn at(handle: *mut c_void) -> Option<Self> {
        let get_property = symbol(handle, c"cusparseGetProperty")?;
        // SAFETY: this is its type: cusparseStatus_t and libraryPropertyType are ints.
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

/// The file that an address has been loaded from.
fn file_of(address: NonNull<c_void>) -> String {
    // SAFETY: a structure of pointers, which may be null.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is valid for a write.
    let known = unsafe { libc::dladdr(address.as_ptr(), &mut info) } != 0 && !info.dli_fname.is_null();
    match known {
        // SAFETY: a C string of the loader's, which lives as long as the library.
        true => text(unsafe { CStr::from_ptr(info.dli_fname) }),
        false => "a file that the loader does not name".to_string(),
    }
}

fn text(path: &CStr) -> String {
    path.to_string_lossy().into_owned()
}

/// The files of all cuSPARSE libraries that are loaded now.
pub fn loaded() -> Vec<PathBuf> {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, out: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `loaded` the list.
        let (name, out) = unsafe { ((*info).dlpi_name, &mut *out.cast::<Vec<PathBuf>>()) };
        if let Some(path) = file(name) {
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libcusparse.so")) {
                out.push(path.to_path_buf());
            }
        }
        0
    }
    let mut out: Vec<PathBuf> = Vec::new();
    // SAFETY: `look` takes what it is given here, and is not called after the return.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut out).cast()) };
    out
}

/// A path of the loader's.
fn file<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: the loader's names are null or C strings, which live while it is iterated over.
    (!name.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}
