//! libtarsia_cusparse.so: functions of cuSPARSE's names, which programs call in cuSPARSE's place when this library is
//! preloaded or linked in front of it. docs/drop-in.md is the user's page.
//!
//! A call is *taken* if Tarsia computes its product, *forwarded* if it goes on to the real cuSPARSE as it
//! came; the few that are neither are answered with an error. A summary says what was called. Any call can be
//! forwarded at any time: objects stay cuSPARSE's own, and what Tarsia keeps beside them says nothing of what
//! is in the program's arrays.
//!
//! - `functions`: cuSPARSE's functions that come this way
//! - `entry`: the exported functions. Each asks `decision`, and then jumps to the address that it is given
//! - `arguments`: a call's arguments, as registers and stack hold them
//! - `real`: the real cuSPARSE of this process
//! - `getters`: what its objects say of themselves
//! - `decision`: what becomes of a call, and why
//! - `rules`: which products cuSPARSE computes faster, so that calls that could be taken are forwarded
//! - `products`: calls that are taken: cuSPARSE's arguments as Tarsia's, and Tarsia's products
//! - `handles`: what is kept beside cuSPARSE's handles and descriptors
//! - `settings`: the environment variables
//! - `summary`: how often what was called, told at exit
//! - `messages`: lines on stderr
//! - `load`: what is done when the library is loaded and when the process exits

#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("the drop-in for cuSPARSE is for Linux on x86-64 and AArch64");

#[cfg(panic = "abort")]
compile_error!("the drop-in needs panic = \"unwind\": a panic in it must not end the program");

#[allow(unsafe_code)]
mod arguments;
#[allow(unsafe_code)]
mod decision;
#[allow(unsafe_code)]
mod entry;
mod functions;
#[allow(unsafe_code)]
mod getters;
mod handles;
#[allow(unsafe_code)]
mod load;
#[allow(unsafe_code)]
mod messages;
mod products;
#[allow(unsafe_code)]
mod real;
mod rules;
mod settings;
mod summary;

use std::panic::{catch_unwind, AssertUnwindSafe};

/// What a function returns if it does not panic; a panic's text is on stderr.
fn catch<T>(f: impl FnOnce() -> T) -> Option<T> {
    // A payload may panic when it is dropped.
    catch_unwind(AssertUnwindSafe(f)).map_err(std::mem::forget).ok()
}

#[cfg(test)]
mod tests {
    /// Its drop would be a second panic, which ends the process.
    struct Payload;

    impl Drop for Payload {
        fn drop(&mut self) {
            panic!("in the drop of a payload");
        }
    }

    #[test]
    fn panics_end_where_they_are_caught() {
        assert_eq!(super::catch(|| 7), Some(7));
        assert_eq!(super::catch(|| -> i32 { panic!("with a text") }), None);
        assert_eq!(super::catch(|| -> i32 { std::panic::panic_any(Payload) }), None);
    }
}
