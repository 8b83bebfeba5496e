//! What analysis builds. A layout's file describes its arrays once: widths,
//! invariants, the builder, and the way back.

pub mod bcsr;
pub mod csr;
pub mod dasp;
pub mod dense;
pub mod hot_sell;
pub mod mask_block;
pub mod masked_window;
pub mod narrowing;
pub mod sell;
pub mod stream;
pub mod swift;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod warp_sell;
pub mod window;

pub use bcsr::Bcsr;
pub use dasp::DaspLayout;
pub use mask_block::MaskBlock;
pub use masked_window::MaskedWindow;
pub use stream::StreamLayout;
pub use swift::Swift;
pub use window::Window;
