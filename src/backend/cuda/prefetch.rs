//! Arrays that the threads of a product prefetch into L2 before they begin (kernels/ptx/prefetch.cuh).

use super::layouts::kernel_structs;
use crate::select::spmm::copies::LINE;

/// Maximum number of arrays.
const ARRAYS: usize = 4;

kernel_structs! {
    /// Number of lines of each array that a launch prefetches, laid out as the kernels' `Prefetch`.
    pub(super) struct Prefetch = "ptx/prefetch.cuh Prefetch" {
        lines: [u32; ARRAYS],
    }
}

impl Prefetch {
    /// Prefetches nothing.
    pub(super) const NONE: Self = Prefetch { lines: [0; ARRAYS] };

    /// Prefetches arrays of these numbers of bytes, in the order of the kernel's arrays.
    pub(super) fn new(bytes: [usize; ARRAYS]) -> Self {
        Prefetch { lines: bytes.map(|bytes| bytes.div_ceil(LINE) as u32) }
    }
}
