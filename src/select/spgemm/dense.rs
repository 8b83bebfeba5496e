//! Whether the wide rows of SpGEMM `hash` on a device are multiplied as dense matrices are (src/backend/cuda/spgemm/dense.rs),
//! and in which panels.

use crate::select::spmm::dense::Arithmetic;
use crate::support::Types;
use crate::types::DataType;

/// Multiplications and additions a second of dense products on an H100 by the library's own kernels, with some to spare
/// for small ones (fp64 4096 × 4096 × 512: 406 µs), by arithmetic.
fn rate(arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::F64 | Arithmetic::F32 => 30e12,
        Arithmetic::Tf32 => 100e12,
        Arithmetic::Halves => 150e12,
    }
}

/// Bytes a second that zeros are written and products read with.
const BYTES: f64 = 1.5e12;
/// Microseconds of three launches, which small products take more or less.
const LAUNCHES_US: f64 = 20.0;
/// Microseconds of windows of columns: of a product without work, and of a multiplication (4096 × 4096 of fp64
/// with 20 % of all entries: 10.6 ms for 2.7 · 10⁹; 2048 × 512 with 10 %, times its transpose: 0.6 ms for
/// 2.2 · 10⁷).
const WINDOWS_US: f64 = 200.0;
const WINDOWS_PRODUCT_US: f64 = 3.6e-6;

/// Multiplications of a product at the least.
const LEAST_PRODUCTS: i64 = 10_000_000;

/// Whether it is faster for factors of m × k and k × n with so many multiplications in all, most of them of wide rows.
/// Only for real numbers.
pub fn pays(types: Types, (m, k, n): (usize, usize, usize), products: i64) -> bool {
    if products < LEAST_PRODUCTS {
        return false;
    }
    if !matches!(types.a, DataType::R64F | DataType::R32F | DataType::R16F | DataType::R16BF)
        || types.a != types.x
    {
        return false;
    }
    let [m, k, n] = [m, k, n].map(|extent| extent as f64);
    let bytes = (m * k + k * n) * types.a.size() as f64 + 2.0 * m * n * types.y.size() as f64;
    let dense = LAUNCHES_US + 2e6 * m * k * n / rate(Arithmetic::of(types)) + 1e6 * bytes / BYTES;
    dense < WINDOWS_US + WINDOWS_PRODUCT_US * products as f64
}

/// Rows of the left factor and of the product, and columns of the right one and of the product, at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panels {
    pub rows: usize,
    pub columns: usize,
}

/// Rows or columns of a panel at the least, and to whose multiples they are rounded.
const LEAST: usize = 256;

impl Panels {
    /// Elements between rows of so many elements of `size` bytes: whole packs of 16 bytes.
    pub fn ld(columns: usize, size: usize) -> usize {
        let in_pack = 16 / size;
        columns.div_ceil(in_pack) * in_pack
    }

    /// Bytes of the panels of the left factor, of the right one, and of the product, with values of these sizes in
    /// factors and product.
    pub fn bytes(&self, k: usize, [of_factors, of_product]: [usize; 2]) -> [usize; 3] {
        [
            self.rows * Self::ld(k, of_factors) * of_factors,
            k * Self::ld(self.columns, of_factors) * of_factors,
            self.rows * Self::ld(self.columns, of_product) * of_product,
        ]
    }
}

/// The largest panels in so many bytes; `None`: even the smallest take more.
pub fn panels((m, k, n): (usize, usize, usize), sizes: [usize; 2], bytes: usize) -> Option<Panels> {
    let mut panels = Panels { rows: m, columns: n };
    let half = |extent: usize| extent.div_ceil(2).next_multiple_of(LEAST);
    loop {
        let [left, right, product] = panels.bytes(k, sizes);
        if left.saturating_add(right).saturating_add(product) <= bytes {
            return Some(panels);
        }
        // The right factor's panel is written once, the left one's for each of its panels.
        if panels.rows > LEAST && (left >= right || panels.columns <= LEAST) {
            panels.rows = half(panels.rows).min(panels.rows - 1);
        } else if panels.columns > LEAST {
            panels.columns = half(panels.columns).min(panels.columns - 1);
        } else {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{Combo, C64, F16F32, F32, F64};

    #[test]
    fn nearly_dense_factors_pay() {
        let cube = |n| (n, n, n);
        // Layers of 4096 × 4096 with 10 and 20 % of all entries; of 2048 × 512 with 10 % and its transpose.
        assert!(!pays(F64::TYPES, cube(4096), 688_077_421) && pays(F64::TYPES, cube(4096), 2_748_133_681));
        assert!(pays(F64::TYPES, (2048, 512, 2048), 21_563_849));
        assert!(pays(F32::TYPES, (512, 2048, 512), 24_030_025));
        // Matrix units multiply halves much faster; there is nothing for complex numbers.
        assert!(pays(F16F32::TYPES, cube(4096), 688_077_421));
        assert!(!pays(C64::TYPES, (512, 2048, 512), 1 << 40) && !pays(F64::TYPES, cube(100), 1_000_000));
        // A band of 16,384 rows.
        assert!(!pays(F64::TYPES, cube(16_384), 67_000_000));
    }

    #[test]
    fn panels_fit() {
        let sizes = [8, 8];
        let all = panels((2048, 512, 2048), sizes, 1 << 30).unwrap();
        assert_eq!(all, Panels { rows: 2048, columns: 2048 });
        for bytes in [48 << 20, 20 << 20, 10 << 20, 4 << 20] {
            let some = panels((2048, 512, 2048), sizes, bytes).unwrap();
            assert!(some.bytes(512, sizes).iter().sum::<usize>() <= bytes);
            assert!(some.rows % LEAST == 0 && some.columns % LEAST == 0, "{some:?}");
        }
        assert_eq!(panels((2048, 512, 2048), sizes, 1 << 20), None);
        assert_eq!(panels((100, 100, 99), [2, 4], 100_000), Some(Panels { rows: 100, columns: 99 }));
        assert_eq!(panels((100, 100, 99), [2, 4], 1000), None);
    }
}
