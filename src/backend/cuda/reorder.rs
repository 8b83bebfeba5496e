//! Clustering of similar rows on the device (kernels/reorder/jaccard.cu): makes the same windows, bit for
//! bit, as src/reorder/jaccard.rs, which describes the algorithm.
//!
//! A pass costs a sort of the clusters that may still grow and two waits for numbers; there are 10 to 20
//! passes. An H100 takes 1.0 to 5.0 ms for matrices of 0.5 to 15 million entries, 9 to 12 ms for 29 to 55
//! million, and a half to a tenth of that where a sample shows that there is nothing to gain.

use super::convert::device_wide::{self, Narrow};
use super::device::DeviceCall;
use super::launch::{blocks_of_grid, launch, Kernel};
use super::memory::{self, DeviceBuffer, Fill};
use super::operand::{Rows, Widths};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::{Error, Result};
use crate::reorder::jaccard::{slots_of, Signature, When, BANDS, FEW, LEVELS, TILE};
use crate::reorder::promise::{one_in, Promise, BAND};
use crate::reorder::{check_rows, BlockShape};
use crate::types::Address;

const MODULE: &str = "reorder/jaccard";

kernel_kinds! { "reorder/jaccard" {
    COUNT_BLOCKS(Widths) = "count_blocks" for [widths()];
    COMPUTE_SIGNATURES(Widths) = "compute_signatures" for [widths()];
} }
/// Threads of a block, and of a warp.
const THREADS: u32 = 256;
const WARP: u32 = 32;
/// Bits of a sort key: those of a cluster that may still grow, and one for a cluster that may not.
const KEY_BITS: u32 = 32;

/// Result of [`cluster`].
#[derive(Debug)]
pub struct Clustered {
    /// Rows of each window: `height` numbers per window, padded with
    /// [`HOLE`](crate::reorder::Windows::HOLE)s. `None` if windows would have no fewer blocks than the
    /// original order of the rows, or if a sample does not promise enough.
    pub places: Option<DeviceBuffer<u32>>,
    /// Number of blocks in the original order of the rows.
    pub before: u64,
    /// Number of blocks of the windows (`before` if there are no windows).
    pub after: u64,
}

/// Indices of the sums that kernels add to.
const ACTIVE: usize = 0;
const JOINED: usize = 1;
const NEAR: usize = 2;
const NOW: usize = 3;
const FOUND: usize = 4;
const SUMS: usize = 5;

/// Blocks of a launch with one thread per item.
fn threads(count: usize) -> Result<u32> {
    per_block(count, THREADS as usize)
}

fn per_block(count: usize, of_block: usize) -> Result<u32> {
    blocks_of_grid(count.div_ceil(of_block), "A: too large for one launch to put its rows in order")
}

/// State of a clustering: arrays that its kernels work on.
struct Clusters<'a> {
    cx: &'a DeviceCall<'a>,
    shape: BlockShape,
    rows: usize,
    /// Signatures of clusters, like those of the host's algorithm.
    signatures: DeviceBuffer<Signature>,
    sizes: DeviceBuffer<u8>,
    parents: DeviceBuffer<u32>,
    /// Numbers of the clusters' first rows, ascending: all clusters that may still grow, and some that may
    /// not any more. The second buffer is for the next list.
    lists: [DeviceBuffer<u32>; 2],
    listed: usize,
    keys: [DeviceBuffer<u32>; 2],
    firsts: [DeviceBuffer<u32>; 2],
    /// One number per row, and one more.
    flags: DeviceBuffer<i64>,
    sums: DeviceBuffer<u64>,
}

/// Counts the blocks with at least one entry. `windows`, if given, has the rows of each window and the place
/// of each row in them.
fn count_blocks(
    cx: &DeviceCall<'_>,
    a: &Rows,
    shape: BlockShape,
    windows: Option<[&DeviceBuffer<u32>; 2]>,
) -> Result<u64> {
    let sum = DeviceBuffer::<u64>::zeroed(cx, 1)?;
    let [places, place_of] = windows.map_or([Address::NULL; 2], |both| both.map(DeviceBuffer::address));
    let kernel = COUNT_BLOCKS.load(cx.device, (a.widths(),))?;
    // SAFETY: there are rows + 1 offsets and nnz columns of these types; each row has a place.
    unsafe {
        launch!(kernel, threads(a.nnz as usize)?, THREADS, 0, cx.stream;
            a.offsets, a.indices, a.base, a.rows, shape.width as i32, a.nnz, shape.height as i32, places,
            place_of, sum.address())?;
    }
    Ok(sum.read(0, 1)?[0])
}

impl<'a> Clusters<'a> {
    fn new(cx: &'a DeviceCall<'_>, a: &Rows, shape: BlockShape) -> Result<Self> {
        let rows = a.rows as usize;
        let numbers = || DeviceBuffer::<u32>::new(cx, rows);
        let out = Clusters {
            cx,
            shape,
            rows,
            signatures: DeviceBuffer::new(cx, rows)?,
            sizes: DeviceBuffer::new(cx, rows)?,
            parents: numbers()?,
            lists: [numbers()?, numbers()?],
            listed: rows,
            keys: [numbers()?, numbers()?],
            firsts: [numbers()?, numbers()?],
            flags: DeviceBuffer::new(cx, rows + 1)?,
            sums: DeviceBuffer::new(cx, SUMS)?,
        };
        let kernel = COMPUTE_SIGNATURES.load(cx.device, (a.widths(),))?;
        // SAFETY: there are rows + 1 offsets and nnz columns of these types; the other arrays have one
        // element per row.
        unsafe {
            launch!(kernel, per_block(rows, (THREADS / WARP) as usize)?, THREADS, 0, cx.stream;
                a.offsets, a.indices, a.base, a.rows, shape.width as i32, out.signatures.address(),
                out.sizes.address(), out.parents.address(), out.lists[0].address())?;
        }
        Ok(out)
    }

    fn kernel(&self, name: &str) -> Result<Kernel> {
        self.cx.device.modules().kernel(MODULE, name)
    }

    fn height(&self) -> i32 {
        self.shape.height as i32
    }

    fn clear_sums(&self) -> Result<()> {
        memory::zero(self.sums.address(), self.sums.bytes(), self.cx.stream)
    }

    /// Writes the clusters that `flags` keeps to the second list; returns how many they are.
    fn keep_flagged(&mut self) -> Result<usize> {
        let (cx, count) = (self.cx, self.listed);
        // SAFETY: the buffer is on the device of the current context and has `count` + 1 elements.
        unsafe {
            device_wide::exclusive_scan(cx, self.flags.address(), self.flags.address(), count + 1)?;
        }
        let kernel = self.kernel("jaccard_keep")?;
        // SAFETY: both lists have `count` numbers, and the flags one more.
        unsafe {
            launch!(kernel, threads(count)?, THREADS, 0, cx.stream;
                count as i64, self.lists[0].address(), self.flags.address(), self.lists[1].address())?;
        }
        Ok(self.flags.read(count, 1)?[0] as usize)
    }

    /// Drops the clusters that may not grow any more from the list.
    fn retain(&mut self) -> Result<()> {
        let (cx, count) = (self.cx, self.listed);
        let kernel = self.kernel("jaccard_flag_active")?;
        // SAFETY: the list has `count` numbers of rows.
        unsafe {
            launch!(kernel, threads(count + 1)?, THREADS, 0, cx.stream;
                count as i64, self.lists[0].address(), self.sizes.address(), self.parents.address(),
                self.height(), self.flags.address())?;
        }
        self.listed = self.keep_flagged()?;
        self.lists.swap(0, 1);
        Ok(())
    }

    /// Sorts `count` clusters of a list by the slots of a band; clusters that may not grow come last.
    fn sort(&mut self, list: Address, count: usize, band: usize) -> Result<()> {
        let cx = self.cx;
        let (slot, other) = slots_of(band);
        let kernel = self.kernel("jaccard_write_keys")?;
        // SAFETY: the list has `count` numbers of rows; keys and firsts are as long.
        unsafe {
            launch!(kernel, threads(count)?, THREADS, 0, cx.stream;
                count as i64, list, self.signatures.address(), self.sizes.address(), self.parents.address(),
                self.height(), slot as i32, other as i32, self.keys[0].address(), self.firsts[0].address(),
                self.sums.at(ACTIVE))?;
        }
        self.sort_keys(count, KEY_BITS)
    }

    fn sort_keys(&mut self, count: usize, bits: u32) -> Result<()> {
        let ([a, b], [c, d]) = (&self.keys, &self.firsts);
        if device_wide::sort_pairs::<Narrow>(self.cx, [a, b], [c, d], count, bits)? == 1 {
            self.keys.swap(0, 1);
            self.firsts.swap(0, 1);
        }
        Ok(())
    }

    /// Runs one pass of the host's algorithm: returns how many clusters were joined to others, and how many
    /// there were.
    fn pass(&mut self, band: Option<usize>, needed: u32) -> Result<(usize, usize)> {
        let (cx, count) = (self.cx, self.listed);
        if count == 0 {
            return Ok((0, 0));
        }
        self.clear_sums()?;
        let (list, keys) = match band {
            None => (self.lists[0].address(), Address::NULL),
            Some(band) => {
                self.sort(self.lists[0].address(), count, band)?;
                (self.firsts[0].address(), self.keys[0].address())
            }
        };
        let kernel = self.kernel("jaccard_join")?;
        let of_block = TILE * (THREADS / WARP) as usize;
        // SAFETY: the list has `count` numbers of rows, each once.
        unsafe {
            launch!(kernel, per_block(count, of_block)?, THREADS, 0, cx.stream;
                count as i64, list, keys, self.height(), needed as i32, self.signatures.address(),
                self.sizes.address(), self.parents.address(), self.sums.at(JOINED))?;
        }
        let sums = self.sums.read(0, SUMS)?;
        let active = if band.is_some() { sums[ACTIVE] as usize } else { count };
        Ok((sums[JOINED] as usize, active))
    }

    /// Samples the rows like the host's `Promise` does.
    fn promise(&mut self) -> Result<Promise> {
        let (cx, rows, one_in) = (self.cx, self.rows, one_in(self.rows));
        self.clear_sums()?;
        let tiles = rows.div_ceil(TILE).div_ceil(one_in);
        let last = (tiles - 1) * TILE * one_in;
        let in_order = (tiles - 1) * TILE + TILE.min(rows - last);
        let kernel = self.kernel("jaccard_sample")?;
        // SAFETY: there are signatures of all rows.
        unsafe {
            launch!(kernel, per_block(tiles, 1)?, TILE as u32, 0, cx.stream;
                rows as i64, Address::NULL, one_in as i64, self.height(), self.signatures.address(),
                self.sums.at(NEAR), self.sums.at(NOW))?;
        }
        let drawn = self.kernel("jaccard_flag_drawn")?;
        // SAFETY: there is a flag for each row, and one more.
        unsafe {
            launch!(drawn, threads(rows + 1)?, THREADS, 0, cx.stream;
                rows as i64, self.signatures.address(), slots_of(BAND).0 as i32, one_in as i64,
                self.flags.address())?;
        }
        let in_band = self.keep_flagged()?;
        if in_band > 0 {
            self.sort(self.lists[1].address(), in_band, BAND)?;
            // SAFETY: as above, for the rows in the list.
            unsafe {
                launch!(kernel, per_block(in_band, TILE)?, TILE as u32, 0, cx.stream;
                    in_band as i64, self.firsts[0].address(), 1i64, self.height(), self.signatures.address(),
                    self.sums.at(FOUND), Address::NULL)?;
            }
        }
        let sums = self.sums.read(0, SUMS)?;
        Ok(Promise {
            in_order: in_order as u64,
            now: sums[NOW],
            near: sums[NEAR],
            in_band: in_band as u64,
            found: sums[FOUND],
        })
    }

    /// Makes the windows: the rows of each, and the place of each row in them.
    fn windows(mut self) -> Result<[DeviceBuffer<u32>; 2]> {
        let (cx, rows, height) = (self.cx, self.rows, self.shape.height);
        let kernel = self.kernel("jaccard_find_roots")?;
        // SAFETY: the arrays have one number per row, and the flags one more.
        unsafe {
            launch!(kernel, threads(rows + 1)?, THREADS, 0, cx.stream;
                rows as i64, self.parents.address(), self.keys[0].address(), self.firsts[0].address(),
                self.flags.address())?;
            device_wide::exclusive_scan(cx, self.flags.address(), self.flags.address(), rows + 1)?;
        }
        let bits = usize::BITS - (rows - 1).leading_zeros();
        self.sort_keys(rows, bits.max(1))?;
        let count = self.flags.read(rows, 1)?[0] as usize * height;
        if u32::try_from(count).is_err() {
            return Err(Error::unsupported(format!("A: its windows have {count} places; 2³² are too many")));
        }
        let places = DeviceBuffer::<u32>::new(cx, count)?;
        let place_of = DeviceBuffer::<u32>::new(cx, rows)?;
        let clear = self.kernel("jaccard_clear_windows")?;
        let position = self.kernel("jaccard_position_rows")?;
        // SAFETY: the flags number the windows, each of which has `height` places.
        unsafe {
            launch!(clear, threads(count)?, THREADS, 0, cx.stream; count as i64, places.address())?;
            launch!(position, threads(rows)?, THREADS, 0, cx.stream;
                rows as i64, self.keys[0].address(), self.firsts[0].address(), self.flags.address(),
                self.height(), places.address(), place_of.address())?;
        }
        Ok([places, place_of])
    }
}

/// Makes windows of similar rows; the rows of `a` must be sorted. Takes 101 bytes per row while it runs.
/// Blocks.
pub fn cluster(cx: &DeviceCall<'_>, a: &Rows, shape: BlockShape, when: When) -> Result<Clustered> {
    shape.check()?;
    check_rows(a.rows as usize)?;
    if a.rows == 0 || a.nnz == 0 {
        return Ok(Clustered { places: None, before: 0, after: 0 });
    }
    let before = count_blocks(cx, a, shape, None)?;
    let none = |before| Clustered { places: None, before, after: before };
    let mut clusters = Clusters::new(cx, a, shape)?;
    if !when.goes_on(|| clusters.promise())? {
        return Ok(none(before));
    }
    let (mut band, mut in_order) = (0, true);
    let is_few = |(joined, of): (usize, usize)| joined * FEW < of;
    for needed in LEVELS {
        clusters.retain()?;
        if in_order {
            in_order = !is_few(clusters.pass(None, needed)?);
        }
        for _ in 0..BANDS {
            band += 1;
            if is_few(clusters.pass(Some(band - 1), needed)?) {
                break;
            }
        }
    }
    clusters.retain()?;
    clusters.pass(None, 0)?;
    let [mut places, place_of] = clusters.windows()?;
    let after = count_blocks(cx, a, shape, Some([&places, &place_of]))?;
    if after >= before {
        return Ok(none(before));
    }
    // The last read waited for all work on it.
    places.mark_filled();
    Ok(Clustered { places: Some(places), before, after })
}

#[cfg(test)]
mod tests;
