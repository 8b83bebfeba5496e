//! What analysis builds. A layout's file describes its arrays once: widths,
//! invariants, the builder, and the way back.

pub mod csr;
pub mod mask_block;
pub mod sell;
pub mod warp_sell;

pub use csr::CsrLayout;
pub use mask_block::MaskBlock;
pub use sell::SellLayout;
pub use warp_sell::WarpSell;
