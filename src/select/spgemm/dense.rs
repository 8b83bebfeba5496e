//! Decision whether the wide rows of SpGEMM `hash` on a device are multiplied as dense matrices
//! (src/backend/cuda/spgemm/dense.rs), and the panels for it.

use crate::select::device::Ratios;
use crate::select::spmm::dense::Arithmetic;
use crate::support::{Combo, Types, F64};
use crate::types::DataType;

/// Multiplications and additions a second of dense products on an H100 by the library's own kernels. These
/// are conservative guesses, about half the peak of the matrix units, since panels are small.
fn rate(arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::F64 | Arithmetic::F32 => 30e12,
        Arithmetic::Tf32 => 100e12,
        Arithmetic::Halves => 150e12,
    }
}

/// Bytes a second at which zeros are written and products read.
const BYTES: f64 = 1.5e12;
/// Microseconds of the launches of a panel of the product, and per column of the left factor for panels too
/// small to fill the device. Both follow from one measurement: dlmc_rn50_vd095_final, 1000 × 2048 times its
/// transpose in eight panels of 256 rows, took 462 µs.
const PANEL_US: f64 = 12.0;
const COLUMN_US: f64 = 0.022;
/// Microseconds of the kernels with windows of columns: of a product without work, and per multiplication
/// (4096 × 4096 of fp64 with 20 % of all entries: 10.6 ms for 2.7 · 10⁹; 2048 × 512 with 10 %, times its
/// transpose: 0.6 ms for 2.2 · 10⁷).
const WINDOWS_US: f64 = 200.0;
const WINDOWS_PRODUCT_US: f64 = 3.6e-6;
/// Minimum number of multiplications of a product for which panels are considered.
const LEAST_PRODUCTS: i64 = 10_000_000;

/// Product of factors of m × k and k × n, most rows of which are wide.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub types: Types,
    pub shape: (usize, usize, usize),
    /// Number of multiplications.
    pub products: i64,
    /// Stored entries of both factors and of the product together.
    pub entries: i64,
    /// Bytes that are kept of the pattern.
    pub kept: usize,
}

impl Wanted {
    /// Panels by which the product is faster than by windows of columns, in no more bytes than the factors
    /// and the product take; `None` if it is not, or for complex numbers. `device` has the ratios to an H100
    /// in the arithmetic of the types.
    pub fn panels(&self, device: &Ratios) -> Option<Panels> {
        let Wanted { types, shape: (m, k, n), products, entries, kept } = *self;
        let is_real = matches!(types.a, DataType::R64F | DataType::R32F | DataType::R16F | DataType::R16BF);
        if products < LEAST_PRODUCTS || !is_real || types.a != types.x {
            return None;
        }
        let sizes = [types.a.size(), types.y.size()];
        // Column indices have at least 32 bits.
        let bytes = (entries as usize).saturating_mul(sizes[0] + 4).saturating_sub(kept);
        let panels = panels(self.shape, sizes, bytes)?;
        let [left, right, product] = panels.bytes(k, sizes);
        let across = n.div_ceil(panels.columns);
        let count = across * m.div_ceil(panels.rows);
        let arithmetic = Arithmetic::of(types);
        let faster = match arithmetic {
            Arithmetic::F64 => device.cycles,
            Arithmetic::F32 => device.singles,
            Arithmetic::Tf32 | Arithmetic::Halves => device.matrix_units,
        };
        let [rows, inner, columns] = [panels.rows, k, panels.columns].map(|extent| extent as f64);
        let work = 2e6 * rows * inner * columns / (rate(arithmetic) * faster)
            + 1e6 * device.doubles[1] * rows * inner * columns;
        let moved = (left + 2 * product) * count + right * across;
        let dense = count as f64 * (PANEL_US + work.max(COLUMN_US * k as f64))
            + 1e6 * moved as f64 / (BYTES * device.memory);
        let product = super::of_product(WINDOWS_PRODUCT_US, device);
        (dense < WINDOWS_US + product * products as f64).then_some(panels)
    }

    /// An fp64 product of which only sizes and numbers of entries are known, if all its rows are expected to
    /// be wide.
    pub fn expected([m, k, n]: [i64; 3], entries: [i64; 2]) -> Option<Wanted> {
        // Expected number of multiplications if entries are placed at random.
        let products = entries[0] as f64 * entries[1] as f64 / k.max(1) as f64;
        let places = m as f64 * n as f64;
        let size = |extent: i64| usize::try_from(extent).ok();
        (products >= places && places < i64::MAX as f64 / 4.0).then_some(())?;
        let of_product = places * (1.0 - (-products / places).exp());
        Some(Wanted {
            types: <F64 as Combo>::TYPES,
            shape: (size(m)?, size(k)?, size(n)?),
            products: products as i64,
            entries: entries[0].saturating_add(entries[1]).saturating_add(of_product as i64),
            // Two bits for each element of C.
            kept: (places / 4.0) as usize,
        })
    }
}

/// Size of panels: rows of the left factor and of the product, and columns of the right factor and of the
/// product, that are multiplied at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panels {
    pub rows: usize,
    pub columns: usize,
}

/// Minimum number of rows or columns of a panel; larger numbers are rounded up to its multiples.
const LEAST: usize = 256;

impl Panels {
    /// Leading dimension of rows of `columns` elements of `size` bytes: whole packs of 16 bytes.
    pub fn ld(columns: usize, size: usize) -> usize {
        let in_pack = 16 / size;
        columns.div_ceil(in_pack) * in_pack
    }

    /// Bytes of the panels of the left factor, of the right factor and of the product, given the bytes of a
    /// value of the factors and of the product.
    pub fn bytes(&self, k: usize, [of_factors, of_product]: [usize; 2]) -> [usize; 3] {
        [
            self.rows * Self::ld(k, of_factors) * of_factors,
            k * Self::ld(self.columns, of_factors) * of_factors,
            self.rows * Self::ld(self.columns, of_product) * of_product,
        ]
    }
}

/// Largest panels that fit into `bytes`; `None` if even the smallest do not.
pub fn panels((m, k, n): (usize, usize, usize), sizes: [usize; 2], bytes: usize) -> Option<Panels> {
    let mut panels = Panels { rows: m, columns: n };
    let half = |extent: usize| extent.div_ceil(2).next_multiple_of(LEAST);
    loop {
        let [left, right, product] = panels.bytes(k, sizes);
        if left.saturating_add(right).saturating_add(product) <= bytes {
            return Some(panels);
        }
        // The right factor's panel is written once, the left factor's once for each panel of the right one.
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
    use crate::support::{C64, F16F32, F32};

    fn pays(types: Types, shape: (usize, usize, usize), products: i64, entries: i64) -> bool {
        Wanted { types, shape, products, entries, kept: 0 }.panels(&Ratios::SAME).is_some()
    }

    #[test]
    fn nearly_dense_factors_pay() {
        let cube = |n| (n, n, n);
        // Layers of 4096 × 4096 with 10 and 20 % of all entries, and of 2048 × 512 with 10 %, times its
        // transpose.
        assert!(!pays(F64::TYPES, cube(4096), 688_077_421, 20_000_000));
        assert!(pays(F64::TYPES, cube(4096), 2_748_133_681, 23_000_000));
        assert!(pays(F64::TYPES, (2048, 512, 2048), 21_563_849, 4_300_000));
        assert!(pays(F32::TYPES, (2048, 512, 2048), 21_563_849, 4_300_000));
        // So little memory requires so many panels that windows are faster: 350 and 460 µs.
        assert!(!pays(F64::TYPES, (1000, 2048, 1000), 35_882_465, 1_500_000));
        // Matrix units multiply halves much faster; complex numbers are not supported.
        assert!(pays(F16F32::TYPES, cube(4096), 688_077_421, 20_000_000));
        assert!(
            !pays(C64::TYPES, (512, 2048, 512), 1 << 40, 680_000)
                && !pays(F64::TYPES, cube(100), 1_000_000, 30_000)
        );
        // A band matrix of 16,384 rows.
        assert!(!pays(F64::TYPES, cube(16_384), 67_000_000, 4_000_000));
    }

    #[test]
    fn they_are_expected_by_their_entries() {
        let expected =
            |shape, entries| Wanted::expected(shape, entries).and_then(|w| w.panels(&Ratios::SAME)).is_some();
        assert!(expected([2048, 512, 2048], [104_857; 2]) && expected([2048, 512, 2048], [383_955; 2]));
        // C is so small that panels of the factors must be small, too.
        assert!(!expected([1000, 2048, 1000], [259_091; 2]) && !expected([512, 2048, 512], [209_715; 2]));
        // Finite elements, and empty or impossible shapes.
        assert!(
            !expected([62_451; 3], [4_007_383; 2])
                && !expected([0; 3], [0; 2])
                && !expected([i64::MAX; 3], [1; 2])
        );
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

    /// Minimum number of multiplications of a 4096 × 4096 product for which matrix units pay.
    fn least(types: Types, device: &crate::select::device::Attributes) -> i64 {
        let ratios = Ratios::of(device).of_compute(types.compute);
        let pays = |products| {
            let wanted = Wanted { types, shape: (4096, 4096, 4096), products, entries: 23_000_000, kept: 0 };
            wanted.panels(&ratios).is_some()
        };
        let (mut no, mut yes) = (0, 1 << 50);
        while yes - no > 1 {
            let middle = (no + yes) / 2;
            *if pays(middle) { &mut yes } else { &mut no } = middle;
        }
        yes
    }

    #[test]
    fn matrix_units_pay_where_a_device_has_them() {
        use crate::select::device::tests::{A100, H200, HALVES, RTX_4090};
        use crate::select::device::FITTED;
        for types in [F64::TYPES, F32::TYPES, F16F32::TYPES] {
            let of = |device| least(types, device) as f64 / least(types, &FITTED) as f64;
            let [small, slow] = [&HALVES[0], &HALVES[1]].map(of);
            // Panels depend on bandwidth, windows do not; half the multiprocessors slow both down.
            assert!(slow > 1.02 && of(&H200) < 0.99, "{types:?} {slow}");
            assert!((0.5..1.2).contains(&small), "{types:?} {small}");
            // On that card matrix units are no faster on doubles than plain instructions, and zeros cost as
            // much.
            assert_eq!(of(&RTX_4090) > 10.0, types.a == DataType::R64F, "{types:?} {}", of(&RTX_4090));
            // Panels of singles and halves are half as fast as the A100's cycles suggest, and windows are
            // not.
            assert!((0.8..2.2).contains(&of(&A100)), "{types:?} {}", of(&A100));
        }
        // Layers with 20 % of their entries: 105 ms by panels on an RTX 4090, 12 by windows.
        assert!(least(F64::TYPES, &FITTED) < 2_748_133_681 && least(F64::TYPES, &RTX_4090) > 2_748_133_681);
    }
}
