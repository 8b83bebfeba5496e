//! Products of dense matrices by the kernels of kernels/spmm/dense.cuh.

use super::super::{grid_x, grid_y, product, Strides};
use super::{Matrix, THREADS};
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{launch, Kernel, Parameter, Scalar};
use crate::backend::cuda::memory;
use crate::backend::Context;
use crate::error::{Error, Result};
use crate::layout::dense::Shape;
use crate::support::Types;
use crate::types::{Accumulator, Address, ComputeType, DataType};

/// Bytes of which rows of a packed B are a multiple.
const PACK: usize = 16;
/// Columns of op(A) from which a part of them is worth a block of its own and the addition: with
/// 512 a part 512 × 512 × 32 took 11.2 µs for 6.4, with 1,024 1024 × 4096 × 32 15.3 for 17.7.
const PART: usize = 1024;

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
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Operands {}

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
// SAFETY: the kernels' structure has the same members.
unsafe impl Parameter for Target {}

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

/// What a type of products is made with; kernels/spmm/dense.cu has the same tiles, the largest
/// first.
struct Kind {
    tiles: [Tile; 3],
    /// Blocks a multiprocessor that are worth cutting K for.
    wanted: f64,
    /// Tiles a multiprocessor from which on a size is taken.
    least: f64,
}

// Times of 36 shapes on an H100 (benches/NOTES.md) say the numbers.
const HALVES: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 64, 3], 256),
        tile("medium", [64, 64, 64, 4], 128),
        tile("small", [32, 32, 64, 6], 128),
    ],
    wanted: 1.0,
    least: 0.9,
};
const TF32: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 32, 3], 128),
        tile("medium", [64, 64, 32, 4], 128),
        tile("small", [32, 32, 32, 5], 128),
    ],
    wanted: 2.0,
    least: 0.9,
};
const F32: Kind = Kind {
    tiles: [
        tile("large", [128, 128, 16, 3], 256),
        tile("medium", [64, 64, 16, 4], 128),
        tile("small", [32, 32, 32, 4], 128),
    ],
    wanted: 4.0,
    least: 0.45,
};
const F64: Kind = Kind {
    tiles: [
        tile("large", [128, 64, 16, 3], 128),
        tile("medium", [64, 64, 16, 4], 128),
        tile("small", [32, 32, 16, 5], 128),
    ],
    wanted: 2.0,
    least: 0.9,
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
    pack: Kernel,
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
        let kind = match (types.a, types.compute) {
            (DataType::R64F, _) => &F64,
            (DataType::R32F, ComputeType::Tf32) => &TF32,
            (DataType::R32F, _) => &F32,
            _ => &HALVES,
        };
        let name = |y: DataType| match types.compute {
            ComputeType::Tf32 => "tf32".to_string(),
            _ => crate::backend::cuda::types_name(Types { y, ..types }),
        };
        let size = types.a.size();
        let load = |y: DataType| {
            let one = |tile: &Tile| {
                let kernel = device
                    .modules()
                    .kernel("spmm/dense", &format!("spmm_dense_{}_{}", name(y), tile.name))?;
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
            pack: device.modules().kernel("spmm/row", &format!("spmm_row_pack_{size}"))?,
        })
    }

    /// The largest tiles of which there are enough, not much wider than the result; parts of K
    /// where there are not.
    pub(super) fn plan(&self, device: &Device, m: usize, k: usize, n: usize) -> Plan {
        let properties = device.properties();
        let multiprocessors = f64::from(properties.multiprocessors);
        let fits = |tile: &Tile| {
            tile.n < 2 * n.max(32)
                && tile.count(m, n) as f64 >= self.kind.least * multiprocessors
                && tile.shared(self.types.a.size()) as usize <= properties.shared_bytes
        };
        let size = self.kind.tiles.iter().position(fits).unwrap_or(2);
        let tile = &self.kind.tiles[size];
        let blocks = tile.count(m, n);
        let mut parts = 1;
        while k >= 2 * parts * PART
            && 2.0 * parts as f64 * blocks as f64 <= 1.05 * self.kind.wanted * multiprocessors
        {
            parts *= 2;
        }
        let columns = k.div_ceil(parts).div_ceil(tile.k).max(1) * tile.k;
        Plan { size, parts: k.div_ceil(columns).max(1), columns }
    }

    fn packed_ld(&self, n: usize) -> usize {
        let in_pack = PACK / self.types.x.size();
        n.div_ceil(in_pack).saturating_mul(in_pack)
    }

    /// Room for a copy of B: any may begin anywhere.
    pub(super) fn packed_bytes(&self, k: usize, n: usize) -> usize {
        product(&[k, self.packed_ld(n), self.types.x.size()])
    }

    /// B by rows of whole packs, copied there if it is not.
    pub(super) fn prepare(&self, cx: &Context, b: Matrix, k: usize, n: usize, to: Address) -> Result<Matrix> {
        let row_bytes = (b.strides.row as usize).saturating_mul(b.value.size());
        if b.is_by_rows() && b.at.is_aligned(PACK) && row_bytes % PACK == 0 {
            return Ok(b);
        }
        let strides = Strides { row: self.packed_ld(n) as i64, col: 1 };
        if self.packed_ld(n) > n {
            // Loads of whole packs read what is behind the last column, and drop it.
            memory::zero(to, self.packed_bytes(k, n), cx.stream)?;
        }
        // SAFETY: B is as its descriptor says; the workspace holds the copy.
        unsafe {
            launch!(self.pack, (grid_x(k as i64)?, grid_y(n)), THREADS, 0, cx.stream;
                b.at, b.strides.row, b.strides.col, to, k as i64, n as i64, strides.row, 0i64)?;
        }
        Ok(Matrix { at: to, strides, ..b })
    }

    /// D = alpha · op(A) · op(B), or the parts of that, `stride` sums apart. A matrix with fewer
    /// columns than the plan is for is cut in the same way. B is [`Own::prepare`]d.
    pub(super) fn multiply<T: Accumulator>(
        &self,
        cx: &Context,
        plan: &Plan,
        (shape, a): (&Shape, Address),
        b: Matrix,
        (d, n, stride): (Matrix, usize, i64),
        alpha: T,
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
                operands, target, Scalar::of(alpha))
        }
    }
}
