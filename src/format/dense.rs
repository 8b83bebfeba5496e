//! Dense layout of op(A): all elements, zeros included, row by row. Element (i, j) is `values[i · ld + j]`,
//! padding is 0. An element that is not stored is indistinguishable from a stored 0, so the pattern is kept
//! beside it: where a result is not finite, it is recomputed from the stored entries alone.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::matrix::compressed::Pattern;
use crate::memory::{Allocator, Buffer};
use crate::support::Combo;
use crate::types::{Accumulator, Index, Storage};

/// Bytes of which a row is a multiple: the granularity of one load and of matrix units.
const ALIGNMENT: usize = 16;

/// Largest ratio of the dense matrix's bytes to the bytes of the entries (values and 32-bit columns) and rows
/// (32-bit offsets). With 98 % zeros the ratio is 17 in fp16 and 33 in fp64; a memory-bound product that
/// reads 64 times as much cannot win.
const MOST_FILL: usize = 64;

/// Bytes that a dense matrix may always take: those of a layer of 4096 × 8192 halves.
const ALWAYS: usize = 64 << 20;

/// Sizes of the dense layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseShape {
    /// Number of rows of op(A).
    pub rows: usize,
    /// Number of columns of op(A).
    pub cols: usize,
    /// Leading dimension: elements from one row to the next.
    pub ld: usize,
}

impl DenseShape {
    /// Computes the sizes for values of `size` bytes. Fails with `NOT_SUPPORTED`, naming the bytes, where the
    /// matrix would be too large for `nnz` stored entries.
    pub fn new(rows: usize, cols: usize, nnz: usize, size: usize) -> Result<Self> {
        let in_pack = ALIGNMENT / size;
        let ld = cols.div_ceil(in_pack).saturating_mul(in_pack);
        let sparse = nnz.saturating_mul(size + 4).saturating_add(rows.saturating_mul(4));
        let limit = sparse.saturating_mul(MOST_FILL).max(ALWAYS);
        let bytes = rows.checked_mul(ld).and_then(|elements| elements.checked_mul(size));
        match bytes {
            Some(bytes) if bytes <= limit => Ok(DenseShape { rows, cols, ld }),
            _ => Err(Error::unsupported(format!(
                "A: algorithm dense would take {} bytes for its {rows} × {cols} elements; for {nnz} entries it may \
                 take {limit}",
                bytes.map_or("more than 2^64".into(), |bytes| bytes.to_string())
            ))),
        }
    }

    /// Returns the number of elements, padding included.
    pub fn elements(&self) -> usize {
        self.rows * self.ld
    }

    /// Returns the number of elements divided by the number of stored entries.
    pub fn fill(&self, nnz: usize) -> f64 {
        super::fill_ratio(self.elements(), nnz)
    }

    /// Returns a readable summary such as `4096 × 4096 elements, 20.0 % stored`.
    pub fn details(&self, nnz: usize) -> String {
        let all = self.rows as f64 * self.cols as f64;
        let percent = if all > 0.0 { 100.0 * nnz as f64 / all } else { 0.0 };
        format!("{} × {} elements, {percent:.1} % stored", self.rows, self.cols)
    }
}

/// Dense matrix in the type in which products are added, so that sums of repeated entries lose no precision.
#[derive(Debug)]
pub struct Dense<V: bytemuck::Pod> {
    /// Sizes of the layout.
    pub shape: DenseShape,
    /// Elements, row by row.
    pub values: Buffer<V>,
}

impl<V: Accumulator> Dense<V> {
    /// Builds the matrix from rows of op(A); repeated entries are added in the order in which they are
    /// stored.
    pub fn build<C: Combo<Acc = V>, I: Index, J: Index>(
        allocator: &Arc<Allocator>,
        pattern: &Pattern<'_, I, J>,
        values: &[C::A],
    ) -> Result<Self> {
        let shape = DenseShape::new(pattern.major, pattern.minor, values.len(), size_of::<C::A>())?;
        let mut dense = Dense { shape, values: Buffer::zeroed(allocator, shape.elements())? };
        dense.fill::<C, I, J>(pattern, values);
        Ok(dense)
    }

    /// Replaces the values; the pattern is the one that the matrix was built from.
    pub fn refill<C: Combo<Acc = V>, I: Index, J: Index>(
        &mut self,
        pattern: &Pattern<'_, I, J>,
        values: &[C::A],
    ) {
        self.values.fill(V::ZERO);
        self.fill::<C, I, J>(pattern, values);
    }

    fn fill<C: Combo<Acc = V>, I: Index, J: Index>(&mut self, pattern: &Pattern<'_, I, J>, values: &[C::A]) {
        let ld = self.shape.ld.max(1);
        for (row, to) in self.values.chunks_exact_mut(ld).enumerate() {
            for at in pattern.range(row) {
                to[pattern.index(at)] += values[at].widen();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HostMemory;
    use crate::support::F16;
    use crate::types::Address;

    #[test]
    fn entries_stand_in_their_places() {
        let allocator = Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX);
        let pattern = Pattern {
            major: 3,
            minor: 9,
            base: 1,
            offsets: &[1_i64, 4, 4, 6],
            indices: &[2_i32, 9, 2, 1, 9],
            by_columns: false,
        };
        let values: Vec<_> = [1.0, 2.0, 1.0 / 4096.0, 4.0, 0.0].map(half::f16::from_f32).to_vec();
        let mut dense = Dense::build::<F16, _, _>(&allocator, &pattern, &values).unwrap();
        assert_eq!(dense.shape, DenseShape { rows: 3, cols: 9, ld: 16 });
        let mut expected = [0.0_f32; 48];
        // A column that is stored twice has a sum that fp16 cannot represent.
        (expected[1], expected[8], expected[32]) = (1.0 + 1.0 / 4096.0, 2.0, 4.0);
        assert_eq!(dense.values[..], expected);
        dense.refill::<F16, _, _>(&pattern, &values);
        assert_eq!(dense.values[..], expected);
        assert_eq!(dense.shape.details(5), "3 × 9 elements, 18.5 % stored");
    }

    #[test]
    fn what_takes_too_much_is_refused() {
        // 64 MiB are always allowed; more only with entries of 1/64 of those bytes.
        assert!(DenseShape::new(4096, 8192, 0, 2).is_ok());
        let text = DenseShape::new(4097, 8192, 0, 2).unwrap_err().message;
        assert!(text.contains("67125248 bytes") && text.contains("may take 67108864"), "{text}");
        let nnz = 4097 * 8192 / 128;
        assert!(DenseShape::new(4097, 8192, nnz, 2).is_ok());
        assert!(DenseShape::new(1 << 20, 1 << 20, 10 << 20, 8).is_err());
        for huge in [i64::MAX as usize, usize::MAX] {
            let text = DenseShape::new(huge, huge, 5, 8).unwrap_err().message;
            assert!(text.contains("more than 2^64"), "{text}");
        }
        let empty = DenseShape::new(0, 0, 0, 8).unwrap();
        assert_eq!((empty.elements(), empty.fill(0)), (0, 1.0));
    }
}
