//! Tarsia: sparse matrix products (SpMV, SpMM, SpGEMM) behind a C ABI.
//!
//! create → analyze (once) → execute (many times) → destroy.
//!
//! Where things are:
//! - [`capi`]: the C functions, one file per C object or operation
//! - `context`, `plan`: what a handle and a plan are; the state machine
//! - `direct`: products without a plan and without descriptors, for the drop-in for cuSPARSE
//! - `operation`: what is computed: SpMV, SpMM, SpGEMM, and what another operation would have to supply
//! - `inside`: what a thread's calls are in the midst of, for callbacks that call back
//! - `algorithm`: the table of algorithms, and what each supports
//! - `support`: combinations of value types, and the dispatch on them
//! - `select`: which algorithm and layout, and why
//! - `format`: what analysis builds
//! - `reorder`: orders of rows that bring like rows together
//! - `problem`, `settings`: what a plan computes, and what may be set of it before analysis
//! - `matrix`: borrowed views of the user's arrays
//! - `memory`: allocators, buffers, what a call carries, which work is in flight, threads, processes
//! - [`facade`]: what the command line and the tests use beside the C functions
//! - `backend`: who executes: `reference` (oracle), `host` (threads), `cuda` (NVIDIA GPUs)

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
mod inside;
mod matrix;
#[allow(unsafe_code)]
mod memory;
mod operation;
mod plan;
mod problem;
mod reorder;
mod select;
mod settings;
mod support;
mod types;
