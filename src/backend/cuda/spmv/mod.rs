//! SpMV on the device, y = alpha · op(A) · x + beta · y, with one module per algorithm.

mod csr;
mod dasp;
mod hot_sell;
mod inspection;
pub(super) mod mask_block;
pub(super) mod sell;
mod stream;

use std::sync::Arc;

use super::device::Device;
use super::{timing, Cuda};
use crate::backend::SpmvExecutor;
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::Context;
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::select::{self, Choice, Method, SpmvInspection};
use crate::types::ScalarsAt;

use csr::once;
#[cfg(test)]
pub(super) use inspection::enqueue_shared;
use inspection::inspect;

impl SpmvBackend for Cuda {
    fn inspect_spmv(&self, cx: &Context, problem: &SpmvProblem) -> Result<Option<SpmvInspection>> {
        if !select::in_place(&problem.a, problem.op) {
            return Ok(None);
        }
        let _entered = self.device.enter()?;
        self.require_on_device(&problem.a, "A")?;
        inspect(cx, &self.device, problem).map(Some)
    }

    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        inspection: Option<&SpmvInspection>,
    ) -> Result<Box<dyn SpmvExecutor>> {
        let _entered = self.device.enter()?;
        if inspection.is_none() {
            self.require_on_device(&problem.a, "A")?;
        }
        build(cx, &self.device, problem, choice, inspection)
    }

    fn spmv_once_bytes(&self, problem: &SpmvProblem) -> usize {
        csr::once_bytes(&self.device, problem)
    }

    fn spmv_once(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        scalars: ScalarsAt,
        x: &DenseVector,
        y: &DenseVector,
    ) -> Result<bool> {
        let _entered = self.device.enter()?;
        once(cx, &self.device, problem, scalars, x, y).map(|()| true)
    }

    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &dyn SpmvExecutor) -> Result<f64> {
        let _entered = self.device.enter()?;
        timing::spmv(cx, &self.device, problem, executor)
    }
}

/// Builds the executor of the chosen method; `inspection` is the result of [`inspect`] for the problem. The
/// context must be current.
pub(super) fn build(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmvProblem,
    choice: &Choice,
    inspection: Option<&SpmvInspection>,
) -> Result<Box<dyn SpmvExecutor>> {
    let inspected = inspection.and_then(|inspection| inspection.backend_state.downcast_ref());
    Ok(match &choice.method {
        Method::Dasp => Box::new(dasp::DaspSpmv::build(cx, device, problem, inspected)?),
        Method::Sell => {
            let mine = if inspected.is_none() {
                inspection::inspect_if_in_place(cx, device, problem)?
            } else {
                None
            };
            let inspected = inspected.or(mine.as_ref());
            match hot_sell::HotSellSpmv::build(cx, device, problem, inspected)? {
                Some(executor) => Box::new(executor),
                None => Box::new(sell::SellSpmv::build(cx, device, problem, inspected)?),
            }
        }
        Method::Stream => Box::new(stream::StreamSpmv::build(cx, device, problem, inspected)?),
        Method::MaskBlock => Box::new(mask_block::MaskBlockSpmv::build(cx, device, problem, inspected)?),
        Method::Csr(order) => Box::new(csr::CsrSpmv::build(cx, device, problem, (choice, order), inspected)?),
        other => return Err(other.is_of_another_operation()),
    })
}
