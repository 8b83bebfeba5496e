//! Cache of small pieces of device memory that were released and that no work uses: an allocation and a release by
//! the driver take some 4 µs and 1 µs (H100), of which the analysis of a small matrix would have a dozen.

use std::collections::BTreeMap;

use crate::types::Address;

/// Most bytes of a piece that is kept: the analysis of a matrix with larger arrays takes far longer than their
/// allocation.
const MOST_OF_PIECE: usize = 8 << 20;
/// Most bytes of all pieces.
const MOST: usize = 64 << 20;
/// Least difference between two capacities.
const STEP: usize = 512;

/// Released pieces of memory by their capacity.
pub struct Cache {
    pieces: BTreeMap<usize, Vec<Address>>,
    bytes: usize,
    most: usize,
}

impl Cache {
    /// Makes an empty cache, which keeps nothing where TARSIA_CUDA_MEMORY_CACHE is 0: programs that check accesses
    /// to memory then see each array by itself.
    pub fn of_environment() -> Self {
        let is_off = std::env::var_os("TARSIA_CUDA_MEMORY_CACHE").is_some_and(|text| text == "0");
        Self::new(if is_off { 0 } else { MOST })
    }

    fn new(most: usize) -> Self {
        Cache { pieces: BTreeMap::new(), bytes: 0, most }
    }

    /// Returns the bytes that are allocated for a piece of `bytes`: pieces of similar sizes can take each other's
    /// place, since sizes that may be kept are rounded up by at most an eighth.
    pub fn capacity(bytes: usize) -> usize {
        if bytes > MOST_OF_PIECE {
            return bytes;
        }
        bytes.next_multiple_of(STEP.max(bytes.next_power_of_two() / 16))
    }

    /// Takes a piece for `bytes` out of the cache.
    pub fn take(&mut self, bytes: usize) -> Option<Address> {
        let capacity = Self::capacity(bytes);
        let address = self.pieces.get_mut(&capacity)?.pop()?;
        self.bytes -= capacity;
        Some(address)
    }

    /// Puts a piece that was asked for with `bytes` into the cache; returns false where that is full, or the piece is
    /// too large or of unknown size (0).
    pub fn keep(&mut self, (address, bytes): (Address, usize)) -> bool {
        let capacity = Self::capacity(bytes);
        if bytes == 0 || bytes > MOST_OF_PIECE || self.bytes + capacity > self.most {
            return false;
        }
        self.pieces.entry(capacity).or_default().push(address);
        self.bytes += capacity;
        true
    }

    /// Takes all pieces out of the cache.
    pub fn drain(&mut self) -> Vec<Address> {
        self.bytes = 0;
        std::mem::take(&mut self.pieces).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address of a byte that nobody reads.
    fn address(at: usize) -> Address {
        Address::new(std::ptr::without_provenance::<u8>(at))
    }

    #[test]
    fn pieces_take_the_place_of_pieces_of_about_their_size() {
        let mut cache = Cache::new(MOST);
        assert!(cache.take(100).is_none() && cache.keep((address(1), 100)) && cache.keep((address(2), 5000)));
        assert!(cache.take(513).is_none() && cache.take(4608).is_none());
        assert_eq!([cache.take(4609), cache.take(512)], [Some(address(2)), Some(address(1))]);
        assert!(cache.take(512).is_none() && cache.drain().is_empty());
    }

    #[test]
    fn a_full_cache_and_large_pieces_go_to_the_driver() {
        let mut cache = Cache::new(MOST);
        assert!(!cache.keep((address(1), MOST_OF_PIECE + 1)) && !cache.keep((address(1), 0)));
        let kept = (1..).take_while(|&at| cache.keep((address(at), MOST_OF_PIECE))).count();
        assert_eq!(kept, MOST / MOST_OF_PIECE);
        assert_eq!(cache.drain().len(), kept);
        assert!(cache.keep((address(1), MOST_OF_PIECE)));
        assert!(!Cache::new(0).keep((address(1), 1)) && !Cache::new(0).keep((address(1), 0)));
    }

    #[test]
    fn capacities_are_little_more_than_what_was_asked_for() {
        assert_eq!([1, 512, 513, 4096, 4097].map(Cache::capacity), [512, 512, 1024, 4096, 4608]);
        for bytes in (1..MOST_OF_PIECE + 5).step_by(777) {
            let capacity = Cache::capacity(bytes);
            assert!(capacity >= bytes && capacity <= (bytes + bytes / 8).max(bytes + STEP), "{bytes}");
            assert_eq!(Cache::capacity(capacity), capacity, "{bytes}");
        }
        assert_eq!(Cache::capacity(MOST_OF_PIECE + 1), MOST_OF_PIECE + 1);
    }
}
