//! Tests of fingerprints on a device against the CPU's. Skipped without a device.

use super::*;
use crate::backend::cuda::convert::testing::context_of_device;
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::host;
use crate::matrix::{Compressed, Coo, SparseArrays};
use crate::types::{DataType, Index, IndexBase};

/// Compares the fingerprints of arrays on the device and on the host, in CSR (offsets and indices) or COO.
fn compare<I: Index, J: Index>(cx: &DeviceCall<'_>, first: &[I], second: &[J], coo: bool) {
    let (mine, theirs) =
        (DeviceBuffer::from_slice(cx, first).unwrap(), DeviceBuffer::from_slice(cx, second).unwrap());
    let (nnz, values) = (second.len() as i64, Address::new(second.as_ptr()));
    let describe = |first_address, second_address| {
        let arrays = match coo {
            true => SparseArrays::Coo(Coo {
                rows: i64::from(i32::MAX) - 1,
                cols: i64::from(i32::MAX) - 1,
                nnz,
                row_indices: first_address,
                col_indices: second_address,
                values,
                index_type: J::TYPE,
                base: IndexBase::Zero,
                value_type: DataType::R32F,
            }),
            false => SparseArrays::Csr(Compressed {
                major: first.len() as i64 - 1,
                minor: i64::from(i32::MAX) - 1,
                nnz,
                offsets: first_address,
                indices: second_address,
                values,
                offset_type: I::TYPE,
                index_type: J::TYPE,
                base: IndexBase::Zero,
                value_type: DataType::R32F,
            }),
        };
        SparseMatrix { arrays, writable: false, temporary: false }
    };
    let on_device = describe(mine.address(), theirs.address());
    let on_host = describe(Address::new(first.as_ptr()), Address::new(second.as_ptr()));
    let expected = host::fingerprint::of(&on_host, "A").unwrap();
    assert_eq!(of(cx, &on_device, "A").unwrap(), expected, "{} and {nnz} words", first.len());
    assert_ne!(expected, [0; 2]);
}

#[test]
fn the_same_as_the_hosts() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    // The contents do not matter. Lengths: less than a warp, at its end, many blocks, and more than one turn
    // of the grid.
    for count in [1_usize, 31, 32, 33, 4096, 1_000_003] {
        let words: Vec<i64> = (0..count as i64).map(|at| (at * 7919) % 1_000_033 - 5).collect();
        let narrow: Vec<i32> = words.iter().map(|&word| word as i32).collect();
        let offsets: Vec<i64> = (0..=(count as i64 / 3)).collect();
        let narrow_offsets: Vec<i32> = offsets.iter().map(|&word| word as i32).collect();
        compare(cx, &narrow_offsets, &narrow, false);
        compare(cx, &offsets, &narrow, false);
        compare(cx, &offsets, &words, false);
        compare(cx, &narrow, &narrow, true);
        compare(cx, &words, &words, true);
    }
}

#[test]
fn of_values_the_same_as_the_hosts() {
    let Some((device, cx)) = context_of_device() else { return };
    let cx = &device.call(&cx).unwrap();
    let bytes: Vec<u64> = (0..40_002_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let there = DeviceBuffer::from_slice(cx, &bytes).unwrap();
    for value_type in
        [DataType::R16F, DataType::R16BF, DataType::R32F, DataType::R64F, DataType::C32F, DataType::C64F]
    {
        for nnz in [0, 1, 33, 20_000] {
            // Aligned to the type and to no more.
            let skip = value_type.align();
            let of = |first: Address| {
                let (index_type, base) = (crate::types::IndexType::I32, IndexBase::Zero);
                let (row_indices, col_indices, values) = (first, first, first.offset(skip));
                let coo = Coo {
                    rows: 5,
                    cols: 5,
                    nnz,
                    row_indices,
                    col_indices,
                    values,
                    index_type,
                    base,
                    value_type,
                };
                SparseMatrix { arrays: SparseArrays::Coo(coo), writable: false, temporary: false }
            };
            let expected = host::fingerprint::of_values(&of(Address::new(bytes.as_ptr())), "A").unwrap();
            let found = of_values(cx, &of(there.address())).unwrap();
            assert_eq!(found, expected, "{nnz} of {value_type:?}");
            assert_eq!(found == [0; 2], nnz == 0);
        }
    }
}
