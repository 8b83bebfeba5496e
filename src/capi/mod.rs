//! The C API, one C object or operation per file. Functions are written out, not made by macros, so that
//! cbindgen sees them: here, or, for the functions that all descriptors have, by the build from the list in
//! descriptors.rs. Arguments have the names that the header shows.

#![allow(non_snake_case, non_camel_case_types)]
// The header's text says what a C caller must promise; in Rust terms it is the
// same for every function: pointers are NULL or valid as their comment says.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]

pub mod boundary;
pub mod dnmat;
pub mod dnvec;
pub mod enums;
pub mod handle;
pub mod memory;
pub mod objects;
pub mod plan;
pub mod spgemm;
pub mod spmat;
pub mod spmat_access;
pub mod spmm;
pub mod spmv;
pub mod status;
pub mod threads;
pub mod tile;

/// Text of the C header that cbindgen generated from this module in this build.
pub const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/tarsia.h"));
