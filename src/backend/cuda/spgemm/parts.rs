//! The numeric phase of a C that is stored by the dimension that is not computed (C by columns from rows, or
//! the reverse), with little memory: some rows at a time, as a product of their own.

use super::bins::{Binned, RowBin, GROUP_CUT};
use super::columns::{Origin, Part, Wanted};
use super::rows::Output;
use super::{Counted, CudaSpgemm, Job};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::operand::Rows;
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::matrix::Compressed;
use crate::types::Address;

impl CudaSpgemm {
    /// Writes C, whose compressed dimension is not that of the computed rows, with up to `room` bytes.
    /// Blocks.
    pub(super) fn write_parts(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        counted: &Counted,
        room: usize,
    ) -> Result<()> {
        let (left, right) = self.factors();
        let by_parts = self.by_parts(cx, counted, GROUP_CUT, room);
        let compute = &mut |part: &Part, wanted, arrays: [Address; 2]| {
            let alpha = match wanted {
                Wanted::Product => alpha,
                Wanted::Pattern => Scalar::real(self.problem.types.compute.scalar(), 0.0),
            };
            self.multiply_part(cx, alpha, (&left, &right), counted, part, arrays)
        };
        by_parts.write(c, Origin::Computed(compute))
    }

    /// Computes the rows of a part: column indices of base 0, and values.
    fn multiply_part(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        (left, right): (&Rows, &Rows),
        counted: &Counted,
        part: &Part,
        [columns, values]: [Address; 2],
    ) -> Result<()> {
        let (first, rows) = (part.rows.start, part.rows.len() as i64);
        let offsets = left.offsets.offset(first * left.offset_type.size());
        let left = Rows { offsets, rows, ..*left };
        let statistics = self.statistics.at().after(first);
        let offsets = counted.offsets.at(first);
        let bins = self.numeric_bins();
        let binned = Binned::of_rows(cx, &self.kernels, bins, (statistics, rows), offsets)?;
        let output = Output {
            offsets,
            columns: Address::NULL,
            kept: columns,
            values,
            wide: 0,
            base: 0,
            known: 0,
            sorted: 1,
        };
        let wide_apart = match &counted.wide {
            Some(wide) => {
                let product = self.wide_product(cx, &left, right, statistics);
                wide.multiply_listed(&product, binned.bin(RowBin::DenseWindows.bins().start), alpha, &output)?
            }
            None => false,
        };
        let job =
            Job { left, right: *right, statistics, binned: &binned, wide_apart, overlap: Overlap::new(true) };
        self.multiply(cx, alpha, &job, &output)
    }
}
