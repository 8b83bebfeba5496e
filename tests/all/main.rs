//! Test executable of all tests, with a module for each subject.
//!
//! TARSIA_TEST_BACKEND says which backend is tested in addition to the reference: host (the default) or cuda.
//! All arrays are copied to that backend's memory and back (see `common::staged`), on the host, too. Tests
//! that concern only the host say so.

// C's characters are signed on some processors and not on others, where casts of them change nothing.
#![cfg_attr(target_arch = "aarch64", allow(clippy::unnecessary_cast))]

mod abi;
mod alignment;
mod bad_input;
mod boundary;
mod chains;
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
