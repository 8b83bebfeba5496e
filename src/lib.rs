//! Tarsia: sparse matrix products (SpMV, SpMM, SpGEMM) behind a C ABI.
//!
//! create → analyze (once) → execute (many times) → destroy.
//!
//! Modules:
//! - [`capi`]: the C functions, one file per C object or operation
//! - `context`, `plan`: handles and plans, with the states of a plan
//! - `direct`: products without a plan and without descriptors, for the drop-in for cuSPARSE
//! - `operation`: SpMV, SpMM and SpGEMM, and the trait that another operation would have to implement
//! - `reentrancy`: record of a thread's running calls, for callbacks that call the library again
//! - `algorithm`: the table of algorithms with the formats, types and backends of each
//! - `support`: combinations of value types, and the dispatch on them
//! - `select`: choice of an algorithm and layout, with the reason
//! - `format`: layouts that analysis builds
//! - `reorder`: row orders that bring similar rows together
//! - `problem`, `settings`: the arguments of a plan's creation, and its settings before analysis
//! - `matrix`: borrowed views of the user's arrays
//! - `memory`: allocators, buffers, contexts of calls, work in flight, threads, processes
//! - [`facade`]: names for the command line and the tests, besides the C functions
//! - `backend`: implementations of the products: `reference` (oracle), `host` (threads), `cuda` (NVIDIA GPUs)
//! - `checksum`, `error`, `types`: the checksum of stored data, errors, and enums and number types

#![deny(unsafe_code)]

mod algorithm;
#[allow(unsafe_code)]
mod backend;
#[allow(unsafe_code)]
pub mod capi;
mod checksum;
mod context;
#[doc(hidden)]
pub mod direct;
mod error;
#[doc(hidden)]
pub mod facade;
mod format;
mod matrix;
#[allow(unsafe_code)]
mod memory;
mod operation;
mod plan;
mod problem;
mod reentrancy;
mod reorder;
mod select;
mod settings;
mod support;
mod types;
