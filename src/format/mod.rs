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

use crate::memory::pieces;
use crate::types::Element;

/// Elements that one parallel task fills: some 10 µs of work.
const GRAIN: usize = 1 << 14;

/// Runs `$body` with slices `$from: &[V]` and `$to: &mut [V]` as words of the size of V: code that moves values
/// without looking at them is compiled once a size.
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

/// New values, from the positions in the user's array that each place of a layout takes its value from; false if
/// those were not kept, and then nothing changes. Places that are padding have position −1 and keep their zero.
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

/// The same from the place that each value of the user's array has in the layout; false if those were not kept.
fn scatter<V: Element>(filled: &mut [V], slots: Option<&[u64]>, values: &[V], conjugate: bool) -> bool {
    for (&to, value) in slots.into_iter().flatten().zip(values) {
        filled[to as usize] = if conjugate { value.conjugate() } else { *value };
    }
    slots.is_some()
}

/// Places of a layout over stored entries.
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
pub use stream::StreamLayout;
pub use swift::Swift;
pub use window::Window;
