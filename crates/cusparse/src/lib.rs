//! Drop-in library for cuSPARSE, libtarsia_cusparse.so: it exports functions with cuSPARSE's names, which
//! programs call in cuSPARSE's place when it is preloaded or linked in front of cuSPARSE. docs/drop-in.md is
//! the user's page.
//!
//! A call is *taken* if Tarsia computes its product, *forwarded* if it goes on to the real cuSPARSE as it
//! came; the few that are neither are answered with an error. A summary counts the calls. Any call of SpMV and
//! SpMM can be forwarded at any time: objects stay cuSPARSE's own, and Tarsia keeps no information about the
//! contents of the program's arrays. A product of sparse matrices, which has steps, is taken or forwarded as a
//! whole.
//!
//! - `functions`: the functions of cuSPARSE that this library intercepts
//! - `entry`: the exported functions. Each asks `decision`, and then jumps to the real function or returns
//! - `arguments`: the arguments of a call, read from the saved registers and the stack
//! - `real`: the cuSPARSE library to which this process's calls are forwarded
//! - `getters`: descriptions of cuSPARSE's objects, read by its public getters
//! - `decision`: the decision whether a call is taken or forwarded, with the reason
//! - `rules`: the products that cuSPARSE computes faster, which are forwarded although Tarsia could take them
//! - `products`: calls that are taken: translates cuSPARSE's arguments and runs Tarsia's products
//! - `spgemm`: the steps of SpGEMMs that are taken, and their plans
//! - `spmvop`: products of `cusparseSpMVOp` that are taken
//! - `place`: the place of nnz in cuSPARSE's descriptors, which SpGEMM sets
//! - `handles`: Tarsia's own state for each of cuSPARSE's handles, and marks of preprocessed matrices
//! - `plans`: plans of matrices that the program has preprocessed
//! - `settings`: the environment variables
//! - `summary`: counts of the calls, printed at exit
//! - `messages`: messages on stderr
//! - `testing`: behavior that tests without a device ask for
//! - `load`: functions that run when the library is loaded and when the process exits

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
#[allow(unsafe_code)]
mod place;
mod plans;
mod products;
#[allow(unsafe_code)]
mod real;
mod rules;
mod settings;
#[allow(unsafe_code)]
mod spgemm;
#[allow(unsafe_code)]
mod spmvop;
mod summary;
mod testing;

use std::panic::{catch_unwind, AssertUnwindSafe};

/// Returns the result of `f`, or `None` if it panics; the panic's text goes to stderr.
fn catch<T>(f: impl FnOnce() -> T) -> Option<T> {
    // The payload is not dropped, since its drop may panic.
    catch_unwind(AssertUnwindSafe(f)).map_err(std::mem::forget).ok()
}

#[cfg(test)]
mod tests {
    /// Panic payload whose drop panics too, which would end the process.
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
