//! Wide rows: windows of columns, each a warp's task, with what the symbolic
//! phase finds for the numeric one.

use super::bins::{Binned, Facts};
use super::rows::{warp_blocks, Factor, Kernels, Output, WARPS_BLOCK};
use crate::backend::cuda::convert::device_wide;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, launch_beside, Beside, Parameter, Scalar};
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::cuda::operand::Rows;
use crate::backend::Context;
use crate::error::{Result, Status};
use crate::types::Address;

/// Columns of a window; kernels/spgemm/wide.cu has the same.
pub const WINDOW: i64 = 1024;
/// Words of bits of a window.
const WORDS: usize = WINDOW as usize / 32;
/// Bytes an entry of the right factor that the starts of its windows may take:
/// about what the factor takes itself. The bits of its rows may take as much.
const BYTES_AN_ENTRY: i64 = 16;
/// Bytes that they may take in any case.
const LEAST_BYTES: i64 = 1 << 20;

/// Windows of the columns of the right factor.
fn windows(right: &Rows) -> i64 {
    // Not `div_ceil` of i64, which is not stable.
    (right.cols as u64).div_ceil(WINDOW as u64) as i64
}

/// Bytes that an array with an entry for each row of the right factor may take.
fn budget(right: &Rows) -> i64 {
    right.nnz.saturating_mul(BYTES_AN_ENTRY).max(LEAST_BYTES)
}

/// Whether the starts of windows are worth their memory.
pub fn is_possible(right: &Rows) -> bool {
    let starts = (windows(right) + 1).saturating_mul(right.rows).saturating_mul(4);
    u32::try_from(windows(right)).is_ok() && starts <= budget(right)
}

/// The kernels' `Starts`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Starts {
    data: Address,
    windows: i64,
}

// SAFETY: the kernels' structure has the same members in this order, both of 8
// bytes.
unsafe impl Parameter for Starts {}

/// The tasks of a product.
pub struct Wide {
    /// Starts of windows in the rows of the right factor.
    starts: DeviceBuffer<u32>,
    /// A row and a window each.
    tasks: DeviceBuffer<u64>,
    /// Columns that the task's row has in its window.
    masks: DeviceBuffer<u32>,
    /// Entries of the row before the window.
    before: DeviceBuffer<u32>,
    count: i64,
    windows: i64,
}

impl Wide {
    /// Counts the entries of the wide rows into `counts`; `None` if there are none, or
    /// the memory for it is missing, so that another way must be taken.
    pub fn count(
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
        (left, right): (&Rows, &Rows),
        facts: &Facts,
        binned: &Binned,
        counts: Address,
    ) -> Result<Option<Wide>> {
        if binned.windows == 0 {
            return Ok(None);
        }
        match Self::try_count(cx, device, kernels, (left, right), facts, binned, counts) {
            Err(error) if matches!(error.status, Status::AllocFailed | Status::InsufficientResources) => {
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    fn try_count(
        cx: &Context,
        device: &Device,
        kernels: &Kernels,
        (left, right): (&Rows, &Rows),
        facts: &Facts,
        binned: &Binned,
        counts: Address,
    ) -> Result<Wide> {
        let (windows, rows) = (windows(right), right.rows as usize);
        let (list, listed) = binned.bin(kernels.symbolic_bins(facts.distinct).wide());
        let count = binned.windows;
        let wide = Wide {
            starts: DeviceBuffer::new(cx, rows * (windows as usize + 1))?,
            tasks: DeviceBuffer::new(cx, count)?,
            masks: DeviceBuffer::new(cx, count * WORDS)?,
            before: DeviceBuffer::new(cx, count)?,
            count: count as i64,
            windows,
        };
        let first = DeviceBuffer::<i64>::zeroed(cx, listed as usize + 1)?;
        let words = right.rows.saturating_mul(windows).saturating_mul(WORDS as i64);
        // Only faster with them, so their memory may be missing.
        let bits = match words.saturating_mul(4) <= budget(right) {
            true => DeviceBuffer::<u32>::zeroed(cx, words as usize).ok(),
            false => None,
        };
        let bits_at = bits.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let (left_factor, right_factor) = (Factor::of(left), Factor::of(right));
        let facts = facts.at();
        let blocks =
            (right.rows as u64).div_ceil(8).min(u64::from(device.properties().multiprocessors) * 8) as u32;
        let list_blocks = (listed as u64).div_ceil(256) as u32;
        // SAFETY: the patterns have been validated, and the right factor's columns
        // ascend; each array has the elements that the kernels say, by the number of
        // windows that was counted for the rows of the list.
        unsafe {
            launch!(kernels.wide_starts, blocks, 256, 0, cx.stream;
                right_factor, right.rows, windows, wide.starts.address(), bits_at)?;
            launch!(kernels.wide_windows, list_blocks, 256, 0, cx.stream;
                list, listed, facts.lows, facts.spans, first.address())?;
            device_wide::exclusive_scan(cx, first.address(), first.address(), first.len())?;
            launch!(kernels.wide_tasks, list_blocks, 256, 0, cx.stream;
                list, listed, facts.lows, first.address(), wide.tasks.address())?;
            launch!(kernels.wide_count, warp_blocks(wide.count, WARPS_BLOCK), WARPS_BLOCK, 0, cx.stream;
                left_factor, right_factor, wide.starts(), bits_at, wide.tasks.address(), wide.count,
                wide.masks.address(), wide.before.address())?;
            launch!(kernels.wide_sums, list_blocks, 256, 0, cx.stream;
                list, listed, first.address(), wide.before.address(), counts)?;
        }
        Ok(wide)
    }

    fn starts(&self) -> Starts {
        Starts { data: self.starts.address(), windows: self.windows }
    }

    /// Columns and values of the wide rows. Only launches.
    pub fn multiply<T: Copy + 'static>(
        &self,
        cx: &Context,
        kernels: &Kernels,
        (left, right): (&Rows, &Rows),
        alpha: Scalar<T>,
        output: &Output,
        beside: &Beside,
    ) -> Result<()>
    where
        Scalar<T>: Parameter,
    {
        let blocks = warp_blocks(self.count, WARPS_BLOCK);
        // SAFETY: the patterns have been validated and C has room for what was
        // counted, by these masks; the shared memory is what the kernel says.
        unsafe {
            launch_beside!(beside, kernels.wide_multiply, blocks, WARPS_BLOCK, kernels.wide_shared(), cx.stream;
                Factor::of(left), Factor::of(right), left.values, right.values, alpha, self.starts(),
                self.tasks.address(), self.count, self.masks.address(), self.before.address(), *output)
        }
    }

    /// The stream has been waited for.
    pub fn seal(&mut self) {
        self.starts.seal();
        self.tasks.seal();
        self.masks.seal();
        self.before.seal();
    }
}
