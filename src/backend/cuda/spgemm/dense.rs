//! Wide rows of a product of nearly dense factors: both factors are copied into dense panels, zeros included,
//! which are multiplied as dense matrices, a panel of rows and a panel of columns at a time. C's pattern is
//! that of the symbolic phase.

use super::kernels::Name;
use super::rows::{Factor, Kernels, Output};
use super::wide::{Product, Tasks};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::layouts::kernel_structs;
use crate::backend::cuda::memory::{filled_members, optional, DeviceBuffer};
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::backend::cuda::spmm::dense::own::Own;
use crate::backend::cuda::spmm::dense::DenseOperand;
use crate::error::Result;
use crate::format::dense::DenseShape;
use crate::select::grids;
use crate::select::spgemm::dense::{Panels, Wanted};
use crate::select::spmm::dense::own::Plan;
use crate::support::Types;
use crate::types::Address;

kernel_structs! {
    /// Dense copy of some rows and columns of a matrix; the kernels' `Panel`.
    pub struct Panel = "spgemm/dense.cu Panel" {
        data: Address,
        first_row: i64,
        rows: i64,
        first_column: i64,
        columns: i64,
        ld: i64,
    }
}

/// Dense multiplication, panel by panel, of the wide rows of a product.
pub struct Dense {
    types: Types,
    own: Own,
    plan: Plan,
    panels: Panels,
    /// Memory of one panel each of the left factor, of the right factor and of the product.
    left: DeviceBuffer<u8>,
    right: DeviceBuffer<u8>,
    product: DeviceBuffer<u8>,
}

impl Dense {
    /// Prepares the dense multiplication of the product `wanted`; `None` if it would not be faster or there
    /// is no memory for it.
    pub fn new(cx: &DeviceCall<'_>, kernels: &Kernels, wanted: &Wanted) -> Result<Option<Self>> {
        let Some(panels) = wanted.panels(&cx.device.machine().ratios(wanted.types.compute)) else {
            return Ok(None);
        };
        let (types, k) = (wanted.types, wanted.shape.1);
        let sizes = [types.a.size(), types.y.size()];
        let own = Own::load(cx.device, types, false)?;
        let plan = own.whole(cx.device, panels.rows, k, panels.columns);
        kernels.get(Name::DenseFill)?;
        kernels.get(Name::DenseTake)?;
        let [left, right, product] = panels.bytes(k, sizes);
        let buffers = || -> Result<_> {
            Ok((DeviceBuffer::new(cx, left)?, DeviceBuffer::new(cx, right)?, DeviceBuffer::new(cx, product)?))
        };
        let Some((left, right, product)) = optional(buffers())? else {
            return Ok(None);
        };
        Ok(Some(Dense { types, own, plan, panels, left, right, product }))
    }

    /// Writes column indices and values of the rows of `tasks`. Only launches.
    pub fn multiply(
        &self,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        (tasks, count): (&Tasks, i64),
    ) -> Result<()> {
        let Product { left, right, .. } = *product;
        let (m, k, n) = (left.rows as usize, left.cols as usize, right.cols as usize);
        let types = self.types;
        for first_column in (0..n).step_by(self.panels.columns) {
            let columns = self.panels.columns.min(n - first_column);
            let of_right = self.panel(&self.right, (0, k), (first_column, columns), types.x.size());
            self.fill(product, right, &of_right)?;
            let b = DenseOperand::by_rows(self.right.address(), of_right.ld, types.x);
            for first_row in (0..m).step_by(self.panels.rows) {
                let rows = self.panels.rows.min(m - first_row);
                let of_left = self.panel(&self.left, (first_row, rows), (0, k), types.a.size());
                self.fill(product, left, &of_left)?;
                let target =
                    self.panel(&self.product, (first_row, rows), (first_column, columns), types.y.size());
                let shape = DenseShape { rows, cols: k, ld: of_left.ld as usize };
                let one = Scalar::real(types.compute.scalar(), 1.0);
                let d = DenseOperand::by_rows(self.product.address(), target.ld, types.y);
                self.own.multiply(
                    product.cx,
                    &self.plan,
                    (&shape, self.left.address()),
                    b,
                    (d, columns, 0),
                    one,
                )?;
                self.take(product, alpha, output, (tasks, count), &target)?;
            }
        }
        Ok(())
    }

    /// Describes the panel in `buffer`, given first row and number of rows, the same of columns, and bytes of
    /// a value.
    fn panel(
        &self,
        buffer: &DeviceBuffer<u8>,
        rows: (usize, usize),
        columns: (usize, usize),
        size: usize,
    ) -> Panel {
        Panel {
            data: buffer.address(),
            first_row: rows.0 as i64,
            rows: rows.1 as i64,
            first_column: columns.0 as i64,
            columns: columns.1 as i64,
            ld: Panels::ld(columns.1, size) as i64,
        }
    }

    /// Copies the part of `matrix` that the panel covers into it.
    fn fill(&self, product: &Product<'_>, matrix: &Rows, panel: &Panel) -> Result<()> {
        let blocks = grids::of_rows(panel.rows, 32, product.cx.device.properties().multiprocessors);
        // SAFETY: the pattern has been validated, its columns are distinct, and the panel has room for its
        // rows.
        unsafe {
            launch!(product.kernels.get(Name::DenseFill)?, blocks, 256, 0, product.cx.stream;
                Factor::of(matrix), matrix.values, *panel)
        }
    }

    /// Writes the entries of C that the product's panel covers.
    fn take(
        &self,
        product: &Product<'_>,
        alpha: Scalar,
        output: &Output,
        (tasks, count): (&Tasks, i64),
        panel: &Panel,
    ) -> Result<()> {
        let Product { kernels, left, right, .. } = *product;
        let blocks = (count as u64).div_ceil(4) as u32;
        let [places, masks, before] = tasks.addresses();
        // SAFETY: as in `fill`; C has room for the entries that were counted by these masks.
        unsafe {
            launch!(kernels.get(Name::DenseTake)?, blocks, 128, 0, product.cx.stream;
                Factor::of(left), Factor::of(right), left.values, right.values, alpha, *panel, places, count, masks,
                before, *output)
        }
    }
}
filled_members!(Dense { left, right, product });
