//! Products of dense matrices by the kernels of kernels/spmm/dense.cuh.

use super::packs::Packs;
use super::Matrix;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel};
use crate::backend::cuda::layouts::same_layout;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::error::{Error, Result};
use crate::format::dense::Shape;
use crate::memory::Context;
use crate::select::spmm::dense::Arithmetic;
use crate::support::Types;
use crate::types::{Address, DataType};

/// Kernels' `Operands`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Operands {
    a: Address,
    lda: i64,
    b: Address,
    ldb: i64,
    m: i64,
    n: i64,
    k: i64,
    part: i64,
}
same_layout!(Operands = "spmm/dense.cuh Operands" { a, lda, b, ldb, m, n, k, part });

/// Kernels' `Target`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Target {
    data: Address,
    row: i64,
    col: i64,
    part: i64,
    pairs: i64,
}
same_layout!(Target = "spmm/dense.cuh Target" { data, row, col, part, pairs });

/// Tiles of a kernel.
#[derive(Clone, Copy)]
struct Tile {
    name: &'static str,
    m: usize,
    n: usize,
    k: usize,
    stages: usize,
    threads: u32,
}

const fn tile(name: &'static str, sizes: [usize; 4], threads: u32) -> Tile {
    Tile { name, m: sizes[0], n: sizes[1], k: sizes[2], stages: sizes[3], threads }
}

kernel_kinds! { "spmm/dense" {
    OF_HALVES(String, &'static str) = "halves" for [HALVES, ["small", "medium", "large"]];
    OF_TF32(&'static str) = "tf32" for [["small", "medium", "large"]];
    OF_F32(&'static str) = "f32" for [["small", "medium", "large"]];
    OF_F64(&'static str) = "f64" for [["small", "medium", "large"]];
} }

/// What a type of products is made with; kernels/spmm/dense.cu has the same tiles, the largest
/// first.
struct Kind {
    tiles: [Tile; 3],
    /// Columns of op(A) from which a part of them is worth a block of its own and the addition.
    part: usize,
    /// Blocks a multiprocessor that are worth cutting K for.
    wanted: f64,
    /// Tiles of all parts of K a multiprocessor from which on the first and the second are taken.
    least: [f64; 2],
}

// Times of 32 shapes from 512 × 512 to 4096 × 4096, N = 32, 64, 128 and 512, on an H100
// (benches/NOTES.md) say the numbers: choices take 1.02 times the best of all tiles and parts
// in geomean (select::spmm::dense says where they are as fast as cublasLt).
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

/// How a product is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Which of the tiles.
    size: usize,
    /// Parts of K.
    pub(super) parts: usize,
    /// Columns of op(A) of a part.
    columns: usize,
}

/// The kernels of a combination of types.
pub(super) struct Own {
    kind: &'static Kind,
    types: Types,
    /// To C, and to sums, by size.
    to_c: [Kernel; 3],
    to_sums: [Kernel; 3],
    packs: Packs,
}

impl Kind {
    fn of(types: Types) -> &'static Self {
        match Arithmetic::of(types) {
            Arithmetic::Halves => &HALVES,
            Arithmetic::Tf32 => &TF32,
            Arithmetic::F32 => &F32,
            Arithmetic::F64 => &F64,
        }
    }

    /// The largest of tiles of which there are enough, not much wider than the result; parts of K
    /// where there are few.
    fn plan(
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
}

impl Tile {
    /// Tiles of a result of m × n.
    fn count(&self, m: usize, n: usize) -> usize {
        m.div_ceil(self.m).saturating_mul(n.div_ceil(self.n))
    }

    /// Dynamic shared memory: kernels' `Stage::kBytes` by stages.
    fn shared(&self, size: usize) -> u32 {
        let (pad_a, pad_b) = match size {
            2 => (0, 0),
            4 => (4, 8),
            _ => (4, 4),
        };
        ((self.m * (self.k + pad_a) + self.k * (self.n + pad_b)) * size * self.stages) as u32
    }
}

impl Own {
    pub(super) fn load(device: &Device, types: Types) -> Result<Self> {
        let kind = Kind::of(types);
        let size = types.a.size();
        let load = |y: DataType| {
            let one = |tile: &Tile| {
                let kernel = match Arithmetic::of(types) {
                    Arithmetic::Halves => {
                        OF_HALVES.load(device, (types_name(Types { y, ..types }), tile.name))
                    }
                    Arithmetic::Tf32 => OF_TF32.load(device, (tile.name,)),
                    Arithmetic::F32 => OF_F32.load(device, (tile.name,)),
                    Arithmetic::F64 => OF_F64.load(device, (tile.name,)),
                }?;
                // Devices with little shared memory never take a tile that needs more.
                if tile.shared(size) as usize <= device.properties().shared_bytes {
                    kernel.allow_shared(tile.shared(size))?;
                }
                Ok(kernel)
            };
            Ok::<_, Error>([one(&kind.tiles[0])?, one(&kind.tiles[1])?, one(&kind.tiles[2])?])
        };
        let sums = if size == 8 { DataType::R64F } else { DataType::R32F };
        Ok(Own {
            kind,
            types,
            to_c: load(types.y)?,
            to_sums: load(sums)?,
            packs: Packs::load(device, types.a)?,
        })
    }

    pub(super) fn plan(&self, device: &Device, m: usize, k: usize, n: usize) -> Plan {
        let properties = device.properties();
        let device = (properties.multiprocessors, properties.shared_bytes);
        self.kind.plan(device, self.types.a.size(), m, k, n)
    }

    /// Room for a copy of B: any may begin anywhere.
    pub(super) fn packed_bytes(&self, k: usize, n: usize) -> usize {
        self.packs.bytes(k, n)
    }

    /// B by rows of whole packs, copied there if it is not.
    pub(super) fn prepare(&self, cx: &Context, b: Matrix, k: usize, n: usize, to: Address) -> Result<Matrix> {
        match self.packs.has(b) {
            true => Ok(b),
            false => self.packs.copy(cx, b, k, n, to),
        }
    }

    /// D = alpha · op(A) · op(B), or the parts of that, `stride` sums apart. A matrix with fewer
    /// columns than the plan is for is cut in the same way. B is [`Own::prepare`]d.
    pub(super) fn multiply(
        &self,
        cx: &Context,
        plan: &Plan,
        (shape, a): (&Shape, Address),
        b: Matrix,
        (d, n, stride): (Matrix, usize, i64),
        alpha: Scalar,
    ) -> Result<()> {
        let tile = &self.kind.tiles[plan.size];
        let kernels = if d.value == self.types.y { &self.to_c } else { &self.to_sums };
        let blocks = u32::try_from(tile.count(shape.rows, n))
            .ok()
            .filter(|&blocks| blocks <= i32::MAX as u32)
            .ok_or_else(|| Error::unsupported("A: it has more rows than one launch can take"))?;
        let operands = Operands {
            a,
            lda: shape.ld as i64,
            b: b.at,
            ldb: b.strides.row,
            m: shape.rows as i64,
            n: n as i64,
            k: shape.cols as i64,
            part: plan.columns as i64,
        };
        let pair = 2 * d.value.size();
        let pairs = d.is_by_rows() && d.at.is_aligned(pair) && d.strides.row % 2 == 0;
        let target = Target {
            data: d.at,
            row: d.strides.row,
            col: d.strides.col,
            part: stride,
            pairs: i64::from(pairs),
        };
        let shared = tile.shared(self.types.a.size());
        // SAFETY: the operands are as they say, B by rows of whole packs, and there is room for
        // each part.
        unsafe {
            launch!(kernels[plan.size], (blocks, plan.parts as u32), tile.threads, shared, cx.stream;
                operands, target, alpha)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: (u32, usize) = (132, 227 << 10);

    fn named(kind: &Kind, m: usize, k: usize, n: usize) -> (&'static str, usize) {
        let plan = kind.plan(H100, 4, m, k, n);
        (kind.tiles[plan.size].name, plan.parts)
    }

    #[test]
    fn k_is_cut_until_all_multiprocessors_work() {
        // What was fastest on an H100, or within a tenth of that.
        assert_eq!(named(&F32, 512, 512, 32), ("small", 4));
        assert_eq!(named(&F32, 1024, 4096, 32), ("small", 16));
        assert_eq!(named(&F32, 512, 2048, 512), ("medium", 8));
        assert_eq!(named(&F32, 4096, 4096, 64), ("medium", 8));
        assert_eq!(named(&F32, 4096, 4096, 512), ("medium", 1));
        assert_eq!(named(&F32, 4096, 4096, 4096), ("large", 1));
        assert_eq!(named(&HALVES, 512, 512, 32), ("small", 2));
        assert_eq!(named(&HALVES, 1024, 4096, 128), ("medium", 4));
        assert_eq!(named(&HALVES, 4096, 4096, 4096), ("large", 1));
        assert_eq!(named(&TF32, 512, 2048, 32), ("small", 16));
        for kind in [&HALVES, &TF32, &F32] {
            for (m, k, n) in
                [(512, 512, 32), (512, 4096, 32), (777, 3001, 5), (64, 16_384, 1), (4096, 512, 4)]
            {
                let plan = kind.plan(H100, 4, m, k, n);
                let blocks = kind.tiles[plan.size].count(m, n) * plan.parts;
                // Twice as many parts are too many blocks, or too short.
                let is_full = 2.0 * blocks as f64 > 1.05 * kind.wanted * 132.0;
                assert!(is_full || k < 4 * kind.part * plan.parts, "{m} × {k} × {n}: {plan:?}");
                assert!(plan.columns * plan.parts >= k && plan.columns * (plan.parts - 1) < k);
            }
        }
        // Without the shared memory for it a tile is not taken; nothing to add is one part.
        assert_eq!(F32.plan((132, 48 << 10), 4, 4096, 4096, 4096).size, 1);
        assert_eq!(F32.plan(H100, 4, 32, 0, 32).parts, 1);
    }
}
