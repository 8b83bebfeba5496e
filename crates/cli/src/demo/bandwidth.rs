//! Copy bandwidth of this machine's memory, with which the products' bandwidths are compared.

use std::thread;
use std::time::Instant;

use super::products::median;
use crate::Result;

/// Size of the last-level cache if the system does not report it: larger than most.
const UNKNOWN_CACHE: usize = 64 << 20;
/// Size of the second-level cache if the system does not report it.
const UNKNOWN_SECOND_LEVEL: usize = 4 << 20;
/// Least and largest size of one array of the copy: large enough for a copy to take some milliseconds, and
/// small beside the memory of present machines.
const ARRAY: (usize, usize) = (64 << 20, 512 << 20);
/// Number of copies that are timed.
const RUNS: usize = 9;

/// A measured copy bandwidth.
#[derive(Clone, Copy, Debug)]
pub struct Bandwidth {
    /// Bytes read and written in a second.
    pub bytes_per_second: f64,
    /// Size of each of the two arrays, in bytes.
    pub array_bytes: usize,
    /// Threads that copied.
    pub threads: usize,
}

/// Copies an array of four times the last-level cache with the library's number of threads, each its own
/// contiguous part; returns the median of some runs.
pub fn measure() -> Result<Bandwidth> {
    let threads = tarsia::facade::pool_size();
    let array_bytes = last_level_cache().saturating_mul(4).clamp(ARRAY.0, ARRAY.1);
    let part = (array_bytes / size_of::<u64>()).div_ceil(threads).max(1);
    let (from, mut to) = (pages(part * threads)?, pages(part * threads)?);
    let copy = |to: &mut [u64], from: &[u64]| {
        thread::scope(|scope| {
            for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
    };
    copy(&mut to, &from);
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        copy(&mut to, &from);
        seconds.push(start.elapsed().as_secs_f64());
    }
    // The copy is read, so that the compiler cannot drop it.
    if to.last() != from.last() {
        return Err("a copy in memory differs from its source".into());
    }
    let bytes = 2.0 * size_of_val(&to[..]) as f64;
    Ok(Bandwidth { bytes_per_second: bytes / median(seconds), array_bytes, threads })
}

/// Makes an array of words in resident pages, with values other than zeros, which a machine may compress.
fn pages(words: usize) -> Result<Vec<u64>> {
    let mut out: Vec<u64> = Vec::new();
    out.try_reserve_exact(words).map_err(|_| format!("out of memory: {words} words were refused"))?;
    out.extend((1..=words.min(4096) as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    while out.len() < words {
        out.extend_from_within(..out.len().min(words - out.len()));
    }
    Ok(out)
}

/// Returns the bytes of the largest cache of the first core, if Linux reports it.
pub fn last_level_cache() -> usize {
    caches_of_first_core().map(|(_, bytes)| bytes).max().unwrap_or(UNKNOWN_CACHE)
}

/// Returns the bytes of the first core's second-level cache, if Linux reports it.
pub fn second_level_cache() -> usize {
    caches_of_first_core()
        .filter_map(|(level, bytes)| (level == 2).then_some(bytes))
        .max()
        .unwrap_or(UNKNOWN_SECOND_LEVEL)
}

/// Returns levels and bytes of the first core's caches.
fn caches_of_first_core() -> impl Iterator<Item = (u32, usize)> {
    let levels_and_sizes = cache_files(0, "level").zip(cache_files(0, "size"));
    levels_and_sizes.filter_map(|(level, size)| {
        let bytes = size.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1024)?;
        Some((level.trim().parse().ok()?, bytes))
    })
}

/// Returns what Linux says about each cache of a CPU in the files of this name, the last-level cache at the end.
pub fn cache_files(cpu: usize, name: &'static str) -> impl DoubleEndedIterator<Item = String> {
    let path = move |index| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}");
    (0..8).filter_map(move |index: usize| std::fs::read_to_string(path(index)).ok())
}
