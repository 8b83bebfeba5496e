//! Choice of the library's own kernel for dense matrices on a device, and of the parts that K is split into
//! (kernels/spmm/dense.cuh).

use super::Arithmetic;
use crate::support::Types;

/// Tile of C that a kernel computes.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Part of the kernel's name.
    pub name: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// Number of stages of factors in shared memory; 0 for kernels in three bf16 parts, which have two.
    stages: usize,
    /// Threads of a block.
    pub threads: u32,
}

const fn tile(name: &'static str, sizes: [usize; 4], threads: u32) -> Tile {
    Tile { name, m: sizes[0], n: sizes[1], k: sizes[2], stages: sizes[3], threads }
}

/// Tiles and thresholds for an arithmetic; kernels/spmm/dense.cu has the same tiles, the largest first.
pub struct Kind {
    pub tiles: [Tile; 3],
    /// Minimum number of columns of op(A) in a part of K for which a block of its own and the addition of
    /// partial sums pay.
    part: usize,
    /// Number of blocks per multiprocessor up to which K is split.
    wanted: f64,
    /// Minimum number of tiles per multiprocessor, with K split into as many parts as possible, for which the
    /// first and the second tile are taken.
    least: [f64; 2],
}

// The thresholds are chosen by times of 32 shapes from 512 × 512 to 4096 × 4096, N = 32, 64, 128 and 512, on
// an H100 (docs/algorithms/dense.md): choices take 1.02 times the best of all tiles and parts in geomean
// (select::spmm::dense says where they are as fast as cublasLt).
const HALVES: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 64, 3], 256),
        tile("medium", [64, 64, 64, 4], 128),
        tile("small", [32, 32, 64, 6], 128),
    ],
    part: 256,
    wanted: 1.2,
    least: [1.4; 2],
};
const TF32: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 32, 3], 128),
        tile("medium", [64, 64, 32, 4], 128),
        tile("small", [32, 32, 32, 5], 128),
    ],
    part: 128,
    wanted: 2.0,
    least: [2.5; 2],
};
const F32: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 16, 3], 256),
        tile("medium", [64, 64, 16, 4], 128),
        tile("small", [32, 32, 32, 4], 64),
    ],
    part: 128,
    wanted: 4.0,
    least: [200.0, 2.5],
};
/// fp32 factors in three bf16 parts (kernels/spmm/dense_terms.cuh).
const F32_IN_PARTS: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 32, 0], 256),
        tile("medium", [128, 64, 32, 0], 256),
        tile("small", [128, 32, 32, 0], 256),
    ],
    part: 128,
    wanted: 1.0,
    least: [0.95; 2],
};
const F64: Kind = Kind {
    tiles: [
        tile("large", [128, 64, 16, 3], 128),
        tile("medium", [64, 64, 16, 4], 128),
        tile("small", [32, 32, 16, 5], 128),
    ],
    part: 256,
    wanted: 2.0,
    least: [2.5; 2],
};

/// Launch parameters of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Index of the tile in [`Kind::tiles`].
    pub size: usize,
    /// Number of parts that K is split into.
    pub parts: usize,
    /// Columns of op(A) in a part.
    pub columns: usize,
}

impl Kind {
    /// Tiles for these types; `in_parts` selects fp32 by matrix units in three bf16 parts.
    pub fn of(types: Types, in_parts: bool) -> &'static Self {
        match Arithmetic::of(types) {
            Arithmetic::Halves => &HALVES,
            Arithmetic::Tf32 => &TF32,
            Arithmetic::F32 if in_parts => &F32_IN_PARTS,
            Arithmetic::F32 => &F32,
            Arithmetic::F64 => &F64,
        }
    }

    /// Picks the largest tile of which there are enough, and which is not much wider than C, and splits K
    /// where blocks are few.
    pub fn plan(
        &self,
        (multiprocessors, shared): (u32, usize),
        size: usize,
        m: usize,
        k: usize,
        n: usize,
    ) -> Plan {
        let blocks_of = |per_multiprocessor: f64| per_multiprocessor * f64::from(multiprocessors);
        let mut most = 1;
        while k >= 2 * most * self.part {
            most *= 2;
        }
        let fits = |(tile, least): (&Tile, &f64)| {
            tile.n < 2 * n.max(32)
                && tile.count(m, n).saturating_mul(most) as f64 >= blocks_of(*least)
                && tile.shared(size) as usize <= shared
        };
        let taken = self.tiles.iter().zip(&self.least).position(fits).unwrap_or(2);
        let tile = &self.tiles[taken];
        let blocks = tile.count(m, n) as f64;
        let mut parts = 1;
        while parts < most && 2.0 * parts as f64 * blocks <= 1.05 * blocks_of(self.wanted) {
            parts *= 2;
        }
        let columns = k.div_ceil(parts).div_ceil(tile.k).max(1) * tile.k;
        Plan { size: taken, parts: k.div_ceil(columns).max(1), columns }
    }

    /// Picks a tile with all of K in one part on any device, so that sums have the same order everywhere.
    pub fn whole(
        &self,
        (multiprocessors, shared): (u32, usize),
        size: usize,
        (m, k, n): (usize, usize, usize),
    ) -> Plan {
        let fits = |(tile, least): (&Tile, &f64)| {
            tile.n < 2 * n.max(32)
                && tile.count(m, n) as f64 >= least.min(2.5) * f64::from(multiprocessors)
                && tile.shared(size) as usize <= shared
        };
        let taken = self.tiles.iter().zip(&self.least).position(fits).unwrap_or(2);
        let step = self.tiles[taken].k;
        Plan { size: taken, parts: 1, columns: k.div_ceil(step).max(1) * step }
    }
}

impl Tile {
    /// Number of tiles of an m × n result.
    pub fn count(&self, m: usize, n: usize) -> usize {
        m.div_ceil(self.m).saturating_mul(n.div_ceil(self.n))
    }

    /// Bytes of dynamic shared memory: the kernels' `Stage::BYTES` times the number of stages.
    pub fn shared(&self, size: usize) -> u32 {
        if self.stages == 0 {
            // `PartStage::BYTES`: blocks of 8 × 8 halves, with padding.
            let (of_a, of_b) = (self.m / 8 * 128 + 32, self.n / 8 * (128 + 16));
            return (2 * 3 * self.k / 8 * (of_a + of_b)) as u32;
        }
        let (pad_a, pad_b) = match size {
            2 => (0, 0),
            4 => (4, 8),
            _ => (4, 4),
        };
        ((self.m * (self.k + pad_a) + self.k * (self.n + pad_b)) * size * self.stages) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{Combo, F32};

    const H100: (u32, usize) = (132, 227 << 10);

    fn named(kind: &Kind, m: usize, k: usize, n: usize) -> (&'static str, usize) {
        let plan = kind.plan(H100, 4, m, k, n);
        (kind.tiles[plan.size].name, plan.parts)
    }

    #[test]
    fn k_is_cut_until_all_multiprocessors_work() {
        // The fastest choices on an H100, or within a tenth of the fastest.
        assert_eq!(named(&super::F32, 512, 512, 32), ("small", 4));
        assert_eq!(named(&super::F32, 1024, 4096, 32), ("small", 16));
        assert_eq!(named(&super::F32, 512, 2048, 512), ("medium", 8));
        assert_eq!(named(&super::F32, 4096, 4096, 64), ("medium", 8));
        assert_eq!(named(&super::F32, 4096, 4096, 512), ("medium", 1));
        assert_eq!(named(&super::F32, 4096, 4096, 4096), ("large", 1));
        assert_eq!(named(&HALVES, 512, 512, 32), ("small", 2));
        assert_eq!(named(&HALVES, 1024, 4096, 128), ("medium", 4));
        assert_eq!(named(&HALVES, 4096, 4096, 4096), ("large", 1));
        assert_eq!(named(&TF32, 512, 2048, 32), ("small", 16));
        for kind in [&HALVES, &TF32, &super::F32] {
            for (m, k, n) in
                [(512, 512, 32), (512, 4096, 32), (777, 3001, 5), (64, 16_384, 1), (4096, 512, 4)]
            {
                let plan = kind.plan(H100, 4, m, k, n);
                let blocks = kind.tiles[plan.size].count(m, n) * plan.parts;
                // Twice as many parts would be too many blocks, or too short.
                let is_full = 2.0 * blocks as f64 > 1.05 * kind.wanted * 132.0;
                assert!(is_full || k < 4 * kind.part * plan.parts, "{m} × {k} × {n}: {plan:?}");
                assert!(plan.columns * plan.parts >= k && plan.columns * (plan.parts - 1) < k);
            }
        }
        let in_parts = Kind::of(F32::TYPES, true);
        assert_eq!(
            [(512, 512, 128), (1024, 1024, 128), (2048, 2048, 128), (4096, 4096, 64), (4096, 4096, 512)]
                .map(|(m, k, n)| named(in_parts, m, k, n)),
            [("small", 4), ("medium", 8), ("large", 8), ("medium", 4), ("large", 1)]
        );
        // Two stages of three bf16 parts of 128 × 32 and 32 × 128, with padding.
        assert_eq!(in_parts.tiles.each_ref().map(|tile| tile.shared(4)), [105_216, 77_568, 63_744]);
        // A tile needs enough shared memory; an empty K is not split.
        assert_eq!(super::F32.plan((132, 48 << 10), 4, 4096, 4096, 4096).size, 1);
        assert_eq!(super::F32.plan(H100, 4, 32, 0, 32).parts, 1);
    }
}
