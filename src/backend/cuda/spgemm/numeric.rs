//! The numeric phase. Computed rows go directly into C's arrays if C is stored by the dimension that is
//! computed; otherwise they are staged in the plan's memory and transposed.

use super::columns::{allowance, ByParts, Origin, Transposition};
use super::rows::{self, Output};
use super::wide::Wide;
use super::{bytes, target, Counted, CudaSpgemm, Job, Kept};
use crate::backend::cuda::device::DeviceCall;
use crate::backend::cuda::launch::Overlap;
use crate::backend::cuda::memory::{optional, DeviceBuffer};
use crate::backend::cuda::scalars::Scalar;
use crate::error::Result;
use crate::matrix::Compressed;
use crate::operation::not_counted;
use crate::select::spgemm::columns::{Staging, Way};
use crate::types::Address;

impl CudaSpgemm {
    /// Runs the numeric phase with the memory in `kept`, which it allocates if it is missing. It works part
    /// by part if there is too little memory, or if staging would take more than a product may take.
    pub(super) fn write(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        kept: &mut Kept,
    ) -> Result<()> {
        let counted = self.counted.as_ref().ok_or_else(not_counted)?;
        // Memory that is kept for later phases is not limited: they gain from it.
        let room = match direct || self.problem.value_updates {
            true => usize::MAX,
            false => allowance(cx, &self.problem, c),
        };
        if direct || self.staging(counted).way(room) != Way::Parts {
            match self.write_whole(cx, alpha, c, direct, counted, (kept, room)) {
                Err(error) if !direct && error.lacks_memory() => {
                    (kept.values, kept.transposition) = (None, None);
                    if !self.problem.value_updates || !kept.known {
                        (kept.columns, kept.known) = (None, false);
                    }
                }
                done => return done,
            }
        }
        self.write_parts(cx, alpha, c, counted, room)
    }

    /// Computes all rows at one time; if C is stored by the other dimension, transposes them in up to `room`
    /// bytes.
    fn write_whole(
        &self,
        cx: &DeviceCall<'_>,
        alpha: Scalar,
        c: &Compressed,
        direct: bool,
        counted: &Counted,
        (kept, room): (&mut Kept, usize),
    ) -> Result<()> {
        let (left, right) = self.factors();
        let (offsets, nnz) = (&counted.offsets, counted.nnz as usize);
        if kept.columns.is_none() && (self.problem.value_updates || !direct) {
            kept.fresh = true;
            let columns = DeviceBuffer::new(cx, bytes(nnz, right.index_type.size())?);
            // If there is no memory to keep them, each phase computes them again.
            kept.columns = if direct { optional(columns)? } else { Some(columns?) };
        }
        if kept.values.is_none() && !direct {
            kept.fresh = true;
            kept.values = Some(DeviceBuffer::new(cx, bytes(nnz, self.problem.types.y.size())?)?);
        }
        let staged = kept.values.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let columns = kept.columns.as_ref().map_or(Address::NULL, DeviceBuffer::address);
        let output = Output {
            offsets: offsets.address(),
            columns: if direct { c.indices } else { Address::NULL },
            kept: columns,
            values: if direct { c.values } else { staged },
            wide: c.index_type.wide(),
            base: i64::from(c.base.code()),
            known: i64::from(kept.known),
            // Phases with a kept pattern and the transposition need sorted rows.
            sorted: i64::from(self.problem.sorted_output || self.problem.value_updates || !direct),
        };
        let found = rows::Ints::new(columns, right.index_type);
        if let Some(map) = &kept.map {
            map.multiply(cx, &self.kernels, (left.values, right.values), alpha, found, &output)?;
            if direct {
                target::write_offsets(cx, &self.kernels, offsets.address(), c)?;
            }
        } else {
            let (statistics, binned) = (self.statistics.at(), &counted.binned);
            let overlap = Overlap::new(true);
            let tasks = counted.wide.as_ref().and_then(Wide::whole);
            let dense = counted.dense.as_ref().filter(|_| direct && tasks.is_some());
            let wide_apart = match (&counted.wide, dense, tasks) {
                (Some(_), Some(dense), Some(tasks)) => {
                    let product = self.wide_product(cx, &left, &right, statistics);
                    dense.multiply(&product, alpha, &output, tasks)?;
                    true
                }
                (Some(wide), ..) => {
                    let product = self.wide_product(cx, &left, &right, statistics);
                    let before = kept.tasks.is_some();
                    let done = wide.multiply(&product, alpha, &output, &mut kept.tasks, &overlap)?;
                    kept.fresh |= kept.tasks.is_some() != before;
                    done
                }
                (None, ..) => false,
            };
            let job = Job { left, right, statistics, binned, wide_apart, overlap };
            self.multiply(cx, alpha, &job, &output)?;
            if direct {
                let offsets = offsets.address();
                target::write_offsets_overlapping(cx, &self.kernels, offsets, c, &job.overlap)?;
            }
            if let (Some(wide), true, None) = (&counted.wide, wide_apart, dense) {
                wide.add_parts(&self.wide_product(cx, &left, &right, statistics), alpha, &output)?;
            }
            // If C is dense in part, phases that write into the caller's arrays use tensor cores, and a map
            // would give other bits.
            let makes_map = self.problem.value_updates && !kept.known && kept.columns.is_some();
            if makes_map && counted.dense.is_none() {
                kept.map = self.map(cx, counted, wide_apart, found)?;
                kept.fresh |= kept.map.is_some();
            }
        }
        kept.known = kept.columns.is_some();
        if direct {
            return Ok(());
        }
        let indices = rows::Ints::new(columns, right.index_type);
        let staging = self.staging(counted);
        if kept.transposition.is_none() && staging.way(room) == Way::Whole {
            kept.fresh = true;
            let made = Transposition::new(cx, &self.kernels, indices, nnz, right.cols);
            kept.transposition = optional(made)?;
        }
        if let Some(transposition) = &kept.transposition {
            let values = (staged, self.problem.types.y.size());
            return transposition.write(cx, &self.kernels, (offsets, left.rows), values, c);
        }
        let taken = nnz.saturating_mul(right.index_type.size() + self.problem.types.y.size());
        let by_parts = self.by_parts(cx, counted, 1, room.saturating_sub(taken));
        by_parts.write(c, Origin::Staged([columns, staged]))
    }

    /// Returns the transposition of the rows into C with up to `room` bytes, some rows after the others from
    /// multiples of `step` on.
    pub(super) fn by_parts<'a>(
        &'a self,
        cx: &'a DeviceCall<'_>,
        counted: &'a Counted,
        step: usize,
        room: usize,
    ) -> ByParts<'a> {
        let (kernels, rows) = (&self.kernels, self.staging(counted));
        ByParts { cx, kernels, rows, offsets: &counted.offsets, step, room }
    }

    /// Returns the sizes of the staged rows, from which the way of the transposition is chosen.
    pub(super) fn staging(&self, counted: &Counted) -> Staging {
        let (_, right) = self.factors();
        let (index, value) = (right.index_type, self.problem.types.y.size());
        Staging { index, value, cols: right.cols, entries: counted.nnz as usize }
    }
}
