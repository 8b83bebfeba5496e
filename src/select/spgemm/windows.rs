//! Sizes of the column windows in which a block with a bitmap takes a long row of SpGEMM `hash`
//! (kernels/spgemm/bitmap.cu): the number of columns, and of sums in shared memory.

/// Threads of a block for rows of up to `medium` products; rows with more take [`LARGE_BLOCK`].
pub const SMALL_BLOCK: u32 = 256;
/// Threads of a block for the longest rows, the most that a block may have: such rows are few.
pub const LARGE_BLOCK: u32 = 1024;

/// Bytes of a multiprocessor's shared memory that the driver reserves for each block.
const RESERVED: usize = 1024;
/// Bytes of static shared memory of the window kernels.
const FIXED: usize = 384;

/// Launch parameters of a kernel with a block per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Columns of a window.
    pub bits: i32,
    /// Number of sums that fit into shared memory.
    pub room: i32,
    /// Columns of a window in rows with more entries than `room`; 0 if they have the same windows.
    pub dense: i32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Window {
    /// Bytes of shared memory per thread: two 64-bit numbers for the entry in hand.
    const THREAD_BYTES: usize = 16;
    /// Maximum number of windows that a row of many entries is cut into so that its sums stay in shared
    /// memory. Each window costs two searches in every row of the right factor; a sum in global memory costs
    /// some ten times one in shared memory.
    const DENSE_WINDOWS: usize = 8;

    /// Columns of a window, at most `most`, if `slices` blocks share the columns.
    fn slice(cols: i64, slices: u32, most: usize) -> usize {
        let each = (cols as u64).div_ceil(u64::from(slices)).next_multiple_of(64);
        each.min(most as u64) as usize
    }

    /// Window of a kernel that counts, with a bitmap only.
    pub fn count(cols: i64, threads: u32, most_bits: usize) -> Self {
        let bits = (cols as u64).min(most_bits as u64).next_multiple_of(64) as usize;
        let shared = bits / 8 + Self::THREAD_BYTES * threads as usize;
        Window { bits: bits as i32, room: 0, dense: 0, shared: shared as u32 }
    }

    /// Window of a kernel that multiplies, with a bitmap, a rank for each of its 64-bit words, and sums of
    /// `value` bytes, in `budget` bytes.
    pub fn multiply(cols: i64, threads: u32, most_bits: usize, budget: usize, value: usize) -> Self {
        let fixed = Self::THREAD_BYTES * threads as usize;
        let bytes = |bits: usize, room: usize| bits / 8 + bits / 16 + fixed + room * value;
        let dense = (budget - fixed) * 16 / (16 * value + 3) / 64 * 64;
        let bits = (cols as u64).min(most_bits as u64).next_multiple_of(64) as usize;
        if bits <= dense {
            let shared = bytes(bits, bits) as u32;
            return Window { bits: bits as i32, room: bits as i32, dense: 0, shared };
        }
        let room = (budget - bytes(bits, 0)) / value;
        let few = cols as u64 <= (Self::DENSE_WINDOWS * dense) as u64;
        let dense = if few { dense } else { 0 };
        let shared = bytes(bits, room).max(bytes(dense, dense)) as u32;
        Window { bits: bits as i32, room: room as i32, dense: dense as i32, shared }
    }
}

/// Window of a block that counts. The bitmaps leave a multiprocessor with 164 KiB room for two large blocks
/// or four small ones.
pub fn count_window(cols: i64, threads: u32, slices: u32) -> Window {
    let most = if threads == LARGE_BLOCK { 1 << 19 } else { 1 << 18 };
    Window::count(cols, threads, Window::slice(cols, slices, most))
}

/// Bytes of shared memory for a block that multiplies: two large blocks or four small ones fill an H100's
/// multiprocessor. It is at least enough for a bitmap of 2^18 columns and some sums.
pub fn window_budget(shared_bytes: usize, threads: u32) -> usize {
    let most = shared_bytes;
    match threads {
        LARGE_BLOCK => ((most + RESERVED) / 2 - RESERVED - FIXED).max(96 << 10).min(most - FIXED),
        _ => 55 << 10,
    }
}

/// Window of a block that multiplies values of `value` bytes, on a device whose blocks may have
/// `shared_bytes` of shared memory.
pub fn multiply_window(shared_bytes: usize, cols: i64, threads: u32, slices: u32, value: usize) -> Window {
    let most_bits = if threads == LARGE_BLOCK { 1 << 18 } else { 1 << 17 };
    let most_bits = Window::slice(cols, slices, most_bits);
    Window::multiply(cols, threads, most_bits, window_budget(shared_bytes, threads), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fit_their_budget() {
        for value in [4, 8, 16] {
            for budget in [55 << 10, 96 << 10, 115_328] {
                for cols in [1, 64, 65, 4000, 11_000, 12_500, 60_000, 97_000, 200_000, 1 << 20, i64::MAX] {
                    let (threads, most) = if budget < 60 << 10 { (256, 1 << 17) } else { (1024, 1 << 18) };
                    let window = Window::multiply(cols, threads, most, budget, value);
                    assert!(window.shared as usize <= budget, "{window:?}");
                    assert!(
                        window.bits > 0 && window.bits % 64 == 0 && window.room > 0 && window.dense % 64 == 0
                    );
                    assert!(window.dense == 0 || window.dense > window.room.min(window.dense - 1));
                }
            }
        }
    }

    #[test]
    fn blocks_fill_a_multiprocessor() {
        // Maximum shared memory of a block on an H100 and on an A100, of 228 and 164 KiB: two large blocks,
        // four small ones.
        for (shared, all) in [(227 << 10, 228 << 10), (163 << 10, 164 << 10)] {
            let (small, large) = (window_budget(shared, SMALL_BLOCK), window_budget(shared, LARGE_BLOCK));
            assert!(small == 55 << 10 && (96 << 10..=shared - FIXED).contains(&large));
            assert!(2 * (large + FIXED + RESERVED) <= all || large == 96 << 10, "{shared}");
            for (cols, threads, slices) in
                [(1 << 20, LARGE_BLOCK, 1), (1 << 20, SMALL_BLOCK, 1), (1 << 20, LARGE_BLOCK, 4)]
            {
                let (counts, sums) =
                    (count_window(cols, threads, slices), multiply_window(shared, cols, threads, slices, 8));
                assert!(sums.shared as usize <= window_budget(shared, threads), "{sums:?}");
                assert!(counts.bits >= sums.bits && sums.bits > 0);
                assert_eq!(
                    counts.bits,
                    if slices == 4 || threads == SMALL_BLOCK { 1 << 18 } else { 1 << 19 }
                );
            }
        }
        // All of few columns have sums.
        let few = multiply_window(227 << 10, 1000, SMALL_BLOCK, 1, 8);
        assert_eq!((few.bits, few.room, few.dense), (1024, 1024, 0));
    }
}
