//! What analysis builds. A layout's file describes its arrays once: widths,
//! invariants, the builder, and the way back.

pub mod csr;
pub mod dasp;
pub mod sell;

pub use csr::CsrLayout;
pub use dasp::DaspLayout;
pub use sell::SellLayout;
