//! Dense products by the library's kernels (kernels/spmm/dense.cuh).

use super::packs::Packs;
use super::DenseOperand;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::{blocks_of_grid, launch_product, Kernel};
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::types_name;
use crate::error::{Error, Result};
use crate::format::dense::DenseShape;
use crate::memory::Context;
use crate::select::spmm::dense::own::{Kind, Plan, Tile};
use crate::select::spmm::dense::Arithmetic;
use crate::support::Types;
use crate::types::{Address, DataType};

kernel_structs! {
    /// Operands of a product, laid out as the kernels' `Operands`.
    struct Operands = "spmm/dense.cuh Operands" {
        a: Address,
        lda: i64,
        b: Address,
        ldb: i64,
        m: i64,
        n: i64,
        k: i64,
        part: i64,
    }

    /// Destination of a product, laid out as the kernels' `Target`.
    struct Target = "spmm/dense.cuh Target" {
        data: Address,
        row: i64,
        col: i64,
        part: i64,
        pairs: i64,
    }
}

kernel_kinds! { "spmm/dense" {
    OF_HALVES(String, &'static str) = "halves" for [HALVES, ["small", "medium", "large"]];
    OF_TF32(&'static str) = "tf32" for [["small", "medium", "large"]];
    OF_F32(&'static str) = "f32" for [["small", "medium", "large"]];
    OF_TERMS(&'static str) = "terms" for [["small", "medium", "large"]];
    OF_F64(&'static str) = "f64" for [["small", "medium", "large"]];
} }

/// Kernels for one combination of types.
pub struct Own {
    kind: &'static Kind,
    types: Types,
    in_parts: bool,
    /// Kernels that store C, and kernels that store sums, each by size of tile.
    to_c: [Kernel; 3],
    to_sums: [Kernel; 3],
    packs: Packs,
}

impl Own {
    /// Loads the kernels. `in_parts`: those that multiply fp32 by matrix units, in three parts of bf16.
    pub fn load(device: &Device, types: Types, in_parts: bool) -> Result<Self> {
        let kind = Kind::of(types, in_parts);
        let size = types.a.size();
        let load = |y: DataType| {
            let one = |tile: &Tile| {
                let kernel = match Arithmetic::of(types) {
                    Arithmetic::Halves => {
                        OF_HALVES.load(device, (types_name(Types { y, ..types }), tile.name))
                    }
                    Arithmetic::Tf32 => OF_TF32.load(device, (tile.name,)),
                    Arithmetic::F32 if in_parts => OF_TERMS.load(device, (tile.name,)),
                    Arithmetic::F32 => OF_F32.load(device, (tile.name,)),
                    Arithmetic::F64 => OF_F64.load(device, (tile.name,)),
                }?;
                // Devices with less shared memory than a tile needs never take that tile.
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
            in_parts,
            to_c: load(types.y)?,
            to_sums: load(sums)?,
            packs: Packs::load(device, types.a)?,
        })
    }

    /// Returns true if these kernels multiply fp32 by matrix units, each factor in three parts of bf16.
    pub(super) fn is_in_parts(&self) -> bool {
        self.in_parts
    }

    pub(super) fn plan(&self, device: &Device, m: usize, k: usize, n: usize) -> Plan {
        let properties = device.properties();
        let device = (properties.multiprocessors, properties.shared_bytes);
        self.kind.plan(device, self.types.a.size(), m, k, n)
    }

    /// Plans a product that does not cut K.
    pub fn whole(&self, device: &Device, m: usize, k: usize, n: usize) -> Plan {
        let properties = device.properties();
        let device = (properties.multiprocessors, properties.shared_bytes);
        self.kind.whole(device, self.types.a.size(), (m, k, n))
    }

    /// Bytes for a copy of B, which is always possible: the rows of any B may be unaligned.
    pub(super) fn packed_bytes(&self, k: usize, n: usize) -> usize {
        self.packs.bytes(k, n)
    }

    /// Returns B with rows of whole packs: B itself if it has them, else a copy at `to`.
    pub(super) fn prepare(
        &self,
        cx: &Context,
        b: DenseOperand,
        k: usize,
        n: usize,
        to: Address,
    ) -> Result<DenseOperand> {
        match self.packs.has(b) {
            true => Ok(b),
            false => self.packs.copy(cx, b, (k, k, n), to),
        }
    }

    /// Enqueues D = alpha · op(A) · op(B), or its parts along K, `stride` sums apart. A matrix with fewer
    /// columns than the plan is for is cut in the same way. B must come from [`Own::prepare`].
    pub fn multiply(
        &self,
        cx: &Context,
        plan: &Plan,
        (shape, a): (&DenseShape, Address),
        b: DenseOperand,
        (d, n, stride): (DenseOperand, usize, i64),
        alpha: Scalar,
    ) -> Result<()> {
        let tile = &self.kind.tiles[plan.size];
        let kernels = if d.value == self.types.y { &self.to_c } else { &self.to_sums };
        let blocks =
            blocks_of_grid(tile.count(shape.rows, n), "A: it has more rows than one launch can take")?;
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
        // SAFETY: the operands are as described, B has rows of whole packs, and there is room for each part.
        unsafe {
            launch_product!(kernels[plan.size], (blocks, plan.parts as u32), tile.threads, shared, cx.stream;
                operands, target, alpha)
        }
    }
}
