//! Matrix layouts that analysis builds. A layout's file documents its arrays (element types and invariants)
//! and holds the builder and its inverse.

pub mod bcsr;
pub mod csr;
pub mod dasp;
pub mod dense;
pub mod hot_sell;
pub mod mask_block;
pub mod masked_window;
pub mod narrowing;
pub mod quads;
pub mod sell;
pub mod stream;
pub mod swift;
#[cfg(test)]
pub(crate) mod testing;
pub mod tile;
pub mod warp_sell;
pub mod window;

use crate::memory::pieces;
use crate::types::Element;

/// Number of elements that one parallel task fills: some 10 µs of work.
const GRAIN: usize = 1 << 14;

/// Runs `$body` with the slices `$from: &[V]` and `$to: &mut [V]` cast to words of the size of V: code that
/// moves values without computing with them is compiled once per size.
macro_rules! as_words {
    ($V:ty, ($from:ident, $to:ident) => $body:expr) => {
        match size_of::<$V>() {
            2 => as_words!($V, 1, ($from, $to) => $body),
            4 => as_words!($V, 2, ($from, $to) => $body),
            8 => as_words!($V, 4, ($from, $to) => $body),
            _ => as_words!($V, 8, ($from, $to) => $body),
        }
    };
    ($V:ty, $halves:literal, ($from:ident, $to:ident) => $body:expr) => {{
        let $from = bytemuck::cast_slice::<$V, [u16; $halves]>($from);
        let $to = bytemuck::cast_slice_mut::<$V, [u16; $halves]>($to);
        $body
    }};
}
pub(crate) use as_words;

/// Copies new values into the slots of a layout. `positions` has for each slot the index in the user's array
/// that its value comes from; padding has −1 and keeps its zero. Returns false, and changes nothing, without
/// `positions`.
fn refill<V: Element>(filled: &mut [V], positions: Option<&[i64]>, values: &[V], conjugate: bool) -> bool {
    let Some(positions) = positions else { return false };
    pieces::for_each(pieces::chunks(filled, GRAIN), |at, places| {
        for (place, &position) in places.iter_mut().zip(&positions[at * GRAIN..]) {
            if let Some(value) = usize::try_from(position).ok().and_then(|at| values.get(at)) {
                *place = if conjugate { value.conjugate() } else { *value };
            }
        }
    });
    true
}

/// Copies new values into a layout by `slots`, the slot of each value of the user's array. Returns false
/// without `slots`.
fn scatter<V: Element>(filled: &mut [V], slots: Option<&[u64]>, values: &[V], conjugate: bool) -> bool {
    for (&to, value) in slots.into_iter().flatten().zip(values) {
        filled[to as usize] = if conjugate { value.conjugate() } else { *value };
    }
    slots.is_some()
}

/// Returns the number of slots of a layout divided by the number of stored entries; 1 without entries.
pub fn fill_ratio(places: usize, nnz: usize) -> f64 {
    match nnz {
        0 => 1.0,
        nnz => places as f64 / nnz as f64,
    }
}

pub use bcsr::Bcsr;
pub use dasp::DaspLayout;
pub use mask_block::MaskBlock;
pub use masked_window::MaskedWindow;
pub use quads::Quads;
pub use stream::StreamLayout;
pub use swift::Swift;
pub use window::Window;
