//! One test executable, a module per surface.

mod abi;
mod bad_input;
mod boundary;
mod cli;
mod common;
mod concurrency;
mod examples;
mod generated;
mod memory;
mod oracle;
mod properties;
mod support;
