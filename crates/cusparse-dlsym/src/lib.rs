//! libtarsia_cusparse_dlsym.so: a `dlsym` that leads programs which look up cuSPARSE's functions in cuSPARSE's own
//! handle, as JAX and Julia do, to the drop-in libtarsia_cusparse.so. It is preloaded beside the drop-in, by those
//! who need it alone, since every other call of `dlsym` in the process passes through it, too.
//!
//! It is a library of its own, and not part of the drop-in, so that without it nothing stands in front of the
//! loader's functions. All other lookups are a jump to the real `dlsym`: that searches for `RTLD_NEXT` and
//! `RTLD_DEFAULT` by the return address, which must stay the program's. Nothing here allocates, takes a lock or
//! calls a function of Rust's library that might call `dlsym` itself.

#![deny(unsafe_code)]

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("this library is for Linux with glibc on x86-64 and AArch64");

#[allow(unsafe_code)]
mod lookup;
