//! SpMV on the device, y = alpha · op(A) · x + beta · y, with one module per algorithm.

mod csr;
mod dasp;
mod hot_sell;
mod inspection;
pub(super) mod mask_block;
pub(super) mod sell;
mod stream;

use std::sync::Arc;

use self::dasp::DaspSpmv;
use self::hot_sell::HotSellSpmv;
use self::inspection::InspectedMatrix;
use self::mask_block::MaskBlockSpmv;
use self::sell::SellSpmv;
use self::stream::StreamSpmv;
use super::device::{Device, DeviceCall};
use super::scalars::{scalars, Scalar};
use super::{timing, Cuda};
use crate::backend::{DenseExecutor, LayoutInfo, SpmvExecutor};
use crate::error::Result;
use crate::matrix::DenseVector;
use crate::memory::Context;
use crate::operation::SpmvBackend;
use crate::problem::SpmvProblem;
use crate::select::spmv::hot_sell::DEMANDS;
use crate::select::{self, Choice, Method, SpmvInspection};
use crate::support::Types;
use crate::types::{Address, ScalarsAt};

use csr::once;
#[cfg(test)]
pub(super) use inspection::enqueue_shared;
use inspection::inspect;
pub(super) use inspection::{SharedColumns, StorageProperties};

impl SpmvBackend for Cuda {
    fn inspect_spmv(&self, cx: &Context, problem: &SpmvProblem) -> Result<Option<SpmvInspection>> {
        if !select::in_place(&problem.a, problem.op) {
            return Ok(None);
        }
        let cx = &self.device.call(cx)?;
        self.require_on_device(&problem.a, "A")?;
        inspect(cx, problem).map(Some)
    }

    fn build_spmv(
        &self,
        cx: &Context,
        problem: &SpmvProblem,
        choice: &Choice,
        inspection: Option<&SpmvInspection>,
    ) -> Result<Box<SpmvExecutor>> {
        let cx = &self.device.call(cx)?;
        if inspection.is_none() {
            self.require_on_device(&problem.a, "A")?;
        }
        build(cx, problem, choice, inspection)
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
        let cx = &self.device.call(cx)?;
        once(cx, problem, scalars, x, y).map(|()| true)
    }

    fn time_spmv(&self, cx: &Context, problem: &SpmvProblem, executor: &SpmvExecutor) -> Result<f64> {
        let cx = &self.device.call(cx)?;
        timing::spmv(cx, problem, executor)
    }
}

/// Layout that analysis makes of op(A), with the kernels that multiply by it.
trait SpmvLayout: Send + Sync + Sized {
    /// True if products can read old values from another array than the result's.
    const READS_ELSEWHERE: bool = false;
    /// True if new values leave all arrays at their addresses.
    const KEEPS_ARRAYS: bool = false;

    /// Makes the layout; `inspected` is the result of inspecting the matrix, if that has been done. Blocks.
    fn make(cx: &DeviceCall<'_>, problem: &SpmvProblem, inspected: Option<&InspectedMatrix>) -> Result<Self>;

    /// Enqueues taking new values from the user's array, without allocation or wait. Returns false, and does
    /// nothing, if the layout has not kept where its values come from.
    fn refill(&self, cx: &DeviceCall<'_>, values: Address) -> Result<bool>;

    /// Makes the layout again, for new values of the same pattern. Blocks.
    fn renew(&mut self, cx: &DeviceCall<'_>, problem: &SpmvProblem) -> Result<()> {
        *self = Self::make(cx, problem, None)?;
        Ok(())
    }

    /// Returns the bytes of workspace.
    fn workspace_bytes(&self, _types: Types) -> usize {
        0
    }

    /// Enqueues a product of x, y and z, like [`SpmvExecutor::product`]. There is enough workspace.
    fn multiply(
        &self,
        cx: &DeviceCall<'_>,
        types: Types,
        scalars: (Scalar, Scalar),
        vectors: [&DenseVector; 3],
    ) -> Result<()>;

    /// Returns a description of the layout.
    fn info(&self) -> LayoutInfo;

    /// Returns more details for people.
    fn details(&self) -> String {
        String::new()
    }
}

/// Executor that multiplies by a layout.
struct LayoutSpmv<L> {
    device: Arc<Device>,
    problem: SpmvProblem,
    made: L,
}

impl<L: SpmvLayout> LayoutSpmv<L> {
    fn build(
        cx: &DeviceCall<'_>,
        problem: &SpmvProblem,
        inspected: Option<&InspectedMatrix>,
    ) -> Result<Self> {
        Ok(Self::of(cx.device, problem, L::make(cx, problem, inspected)?))
    }

    fn of(device: &Arc<Device>, problem: &SpmvProblem, made: L) -> Self {
        LayoutSpmv { device: Arc::clone(device), problem: *problem, made }
    }
}

impl<L: SpmvLayout> DenseExecutor<DenseVector> for LayoutSpmv<L> {
    fn workspace_bytes(&self, _n: usize) -> usize {
        self.made.workspace_bytes(self.problem.types)
    }

    fn product(&self, cx: &Context, (alpha, beta): ScalarsAt, vectors: [&DenseVector; 3]) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let types = self.problem.types;
        let scalars = scalars(cx, types.compute.scalar(), alpha, beta)?;
        cx.workspace.require(self.workspace_bytes(1))?;
        self.made.multiply(cx, types, scalars, vectors)
    }

    fn reads_elsewhere(&self, _: &DenseVector, _: &DenseVector) -> bool {
        L::READS_ELSEWHERE
    }

    fn keeps_arrays(&self) -> bool {
        L::KEEPS_ARRAYS
    }

    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()> {
        let cx = &self.device.call(cx)?;
        let renewed = SpmvProblem { a: self.problem.a.with_values(values), ..self.problem };
        if !self.made.refill(cx, values)? {
            self.made.renew(cx, &renewed)?;
        }
        self.problem = renewed;
        Ok(())
    }

    fn layout(&self) -> LayoutInfo {
        self.made.info()
    }

    fn details(&self) -> String {
        self.made.details()
    }
}

/// Builds the executor of the chosen method; `inspection` is the result of [`inspect`] for the problem.
pub(super) fn build(
    cx: &DeviceCall<'_>,
    problem: &SpmvProblem,
    choice: &Choice,
    inspection: Option<&SpmvInspection>,
) -> Result<Box<SpmvExecutor>> {
    let inspected =
        inspection.and_then(|inspection| inspection.backend_state.downcast_ref::<InspectedMatrix>());
    if let Some(inspected) = inspected.filter(|_| !matches!(choice.method, Method::Sell)) {
        inspected.properties().discard_slices(cx);
    }
    Ok(match &choice.method {
        Method::Dasp => Box::new(LayoutSpmv::<DaspSpmv>::build(cx, problem, inspected)?),
        Method::Sell => {
            let mine = if inspected.is_none() { inspection::inspect_if_in_place(cx, problem)? } else { None };
            let inspected = inspected.or(mine.as_ref());
            match HotSellSpmv::make_if(cx, problem, DEMANDS, inspected)? {
                Some(made) => Box::new(LayoutSpmv::of(cx.device, problem, made)),
                None => Box::new(LayoutSpmv::<SellSpmv>::build(cx, problem, inspected)?),
            }
        }
        Method::Stream => Box::new(LayoutSpmv::<StreamSpmv>::build(cx, problem, inspected)?),
        Method::MaskBlock => Box::new(LayoutSpmv::<MaskBlockSpmv>::build(cx, problem, inspected)?),
        Method::Csr(order) => Box::new(csr::CsrSpmv::build(cx, problem, (choice, order), inspected)?),
        other => return Err(other.is_of_another_operation()),
    })
}
