//! One test executable, a module per surface.
//!
//! TARSIA_TEST_BACKEND says which backend is tested beside the reference: host
//! (without it) or cuda. All arrays are copied to that backend's memory and
//! back (see `common::staged`), on the host too. What is about the host alone
//! says so and stays there.

mod abi;
mod alignment;
mod bad_input;
mod boundary;
mod common;
mod concurrency;
mod cpp;
mod cuda;
mod dasp;
mod decisions;
mod docs;
mod driver;
mod examples;
mod fortran;
mod generated;
mod house;
mod install;
mod into;
mod kernels;
mod memory;
mod narrowing;
mod oracle;
mod orders;
mod precision;
mod process;
mod properties;
mod scaling;
mod self_contained;
mod subnormals;
mod support;
mod tiles;
mod unsorted;
mod values;
