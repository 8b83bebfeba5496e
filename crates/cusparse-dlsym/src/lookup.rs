//! The exported `dlsym`.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

type Pointer = *mut c_void;
type Dlsym = unsafe extern "C" fn(Pointer, *const c_char) -> Pointer;

/// Version of the real `dlsym` that every glibc of the processor has.
#[cfg(target_arch = "x86_64")]
const VERSION: &CStr = c"GLIBC_2.2.5";
#[cfg(target_arch = "aarch64")]
const VERSION: &CStr = c"GLIBC_2.17";

/// Soname of the drop-in.
const DROP_IN: &CStr = c"libtarsia_cusparse.so.0";

/// Address at which a call continues, and the pointer that [`answer`] returns; both are in registers.
#[repr(C)]
pub struct Next {
    address: Pointer,
    found: Pointer,
}

/// Looks up a function: saves the arguments, asks [`decide`], and jumps to the real `dlsym` or to [`answer`].
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[no_mangle]
#[doc(hidden)]
pub extern "C" fn dlsym() {
    // At entry rsp is 8 below a multiple of 16.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "mov rdx, [rsp + 24]",
        "call {decide}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        decide = sym decide,
    )
}

/// Looks up a function: saves the arguments, asks [`decide`], and jumps to the real `dlsym` or to [`answer`].
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[no_mangle]
#[doc(hidden)]
pub extern "C" fn dlsym() {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34", // bti c, a landing pad of indirect calls
        "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x29, -32",
        ".cfi_offset x30, -24",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "mov x2, x30",
        "bl {decide}",
        "mov x16, x0",
        "mov x17, x1",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        ".cfi_restore x29",
        ".cfi_restore x30",
        ".cfi_def_cfa_offset 0",
        "br x16",
        ".cfi_endproc",
        decide = sym decide,
    )
}

/// Returns the pointer that `dlsym` has left in a register to the program.
#[unsafe(naked)]
extern "C" fn answer() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("endbr64", "mov rax, rdx", "ret");
    #[cfg(target_arch = "aarch64")]
    // `hint #34` is `bti c`.
    std::arch::naked_asm!("hint #34", "mov x0, x17", "ret");
}

/// Returns where a call of `dlsym` with these arguments and this return address continues.
extern "C" fn decide(handle: Pointer, name: *const c_char, caller: Pointer) -> Next {
    let answered = |found| Next { address: answer as *const c_void as Pointer, found };
    let Some((real, address)) = real() else { return answered(null_mut()) };
    // SAFETY: the program passes a C string, or NULL.
    match unsafe { in_drop_in(real, handle, name, caller) } {
        Some(found) => answered(found),
        None => Next { address, found: null_mut() },
    }
}

/// Returns the real `dlsym`, which is looked for once.
fn real() -> Option<(Dlsym, Pointer)> {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut address = REAL.load(Ordering::Relaxed);
    if address.is_null() {
        // SAFETY: both are C strings.
        address = unsafe { libc::dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), VERSION.as_ptr()) };
        REAL.store(address, Ordering::Relaxed);
    }
    // SAFETY: the function of this name has this type.
    (!address.is_null()).then(|| (unsafe { std::mem::transmute::<Pointer, Dlsym>(address) }, address))
}

/// Returns the drop-in's function of a name if the lookup would find cuSPARSE's.
///
/// # Safety
/// `name` is NULL or a C string.
unsafe fn in_drop_in(real: Dlsym, handle: Pointer, name: *const c_char, caller: Pointer) -> Option<Pointer> {
    // Lookups by RTLD_DEFAULT and RTLD_NEXT depend on the caller; the first finds the drop-in without help.
    if name.is_null() || handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT {
        return None;
    }
    // SAFETY: the caller's promise; strncmp reads up to the end of the string. The handle is the program's, and the
    // drop-in's one is open for good.
    unsafe {
        if libc::strncmp(name, c"cusparse".as_ptr(), 8) != 0 {
            return None;
        }
        let ours = quietly(|| Some(real(drop_in()?.as_ptr(), name)))?;
        let theirs = quietly(|| Some(real(handle, name)))?;
        let (ours_in, theirs_in) = (Library::of(ours)?, Library::of(theirs)?);
        // The drop-in itself looks for cuSPARSE's functions.
        let is_cusparses = theirs_in.is_cusparse() && Library::of(caller)?.base != ours_in.base;
        is_cusparses.then_some(ours)
    }
}

/// Runs a lookup of this library's own, whose failure must not be what the program reads by `dlerror`.
fn quietly(lookup: impl FnOnce() -> Option<Pointer>) -> Option<Pointer> {
    let found = lookup().filter(|found| !found.is_null());
    if found.is_none() {
        // SAFETY: no preconditions.
        unsafe { libc::dlerror() };
    }
    found
}

/// Returns the handle of the drop-in, if it is loaded.
fn drop_in() -> Option<NonNull<c_void>> {
    static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut handle = HANDLE.load(Ordering::Relaxed);
    if handle.is_null() {
        // SAFETY: the name is a C string, and RTLD_NOLOAD loads nothing, so that no code runs.
        handle = unsafe { libc::dlopen(DROP_IN.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        HANDLE.store(handle, Ordering::Relaxed);
    }
    NonNull::new(handle)
}

/// A loaded library.
struct Library {
    base: Pointer,
    file: *const c_char,
}

impl Library {
    /// Returns the library that has an address.
    fn of(address: Pointer) -> Option<Self> {
        // SAFETY: Dl_info is a structure of pointers, which may be null.
        let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is valid for a write.
        let is_known: c_int = unsafe { libc::dladdr(address, &mut info) };
        (is_known != 0 && !info.dli_fname.is_null())
            .then_some(Library { base: info.dli_fbase, file: info.dli_fname })
    }

    /// Returns whether the library is cuSPARSE by its file's name.
    fn is_cusparse(&self) -> bool {
        // SAFETY: the loader's name is a C string that lives as long as the library.
        let path = unsafe { CStr::from_ptr(self.file) }.to_bytes();
        path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(b"libcusparse.so"))
    }
}
