//! Choices of the library for a matrix: plans of each operation in two precisions, by the public C functions.

use client::{Array, Plan, Session, Sparse};
use matrices::owned::{Entry, OwnedCsr};
use num_complex::{Complex32, Complex64};
use serde::Serialize;
use tarsia::facade::{
    ComputeType, Effort, Element, Index, IndexBase, Operation, Order, SpgemmAlg, SpmmAlg, SpmvAlg,
};

use super::Report;
use crate::demo::products::Info;
use crate::progress::step;
use crate::Result;

/// Columns of the dense matrix in SpMM.
pub const N: usize = 32;
const AS_STORED: Operation = Operation::NonTranspose;

/// A value type of files, and the type of half its size.
pub trait Number: Element + Entry {
    /// Compute type of this value type.
    const COMPUTE: ComputeType;
    /// Name of the type.
    const NAME: &'static str;
    /// Value type with half as many bits.
    type Half: Element;
    /// Compute type of the half.
    const HALF_COMPUTE: ComputeType;
    /// Name of the half.
    const HALF_NAME: &'static str;
    /// Converts to the nearest number with half as many bits.
    fn half(self) -> Self::Half;
}

impl Number for f64 {
    const COMPUTE: ComputeType = ComputeType::R64F;
    const NAME: &'static str = "fp64";
    type Half = f32;
    const HALF_COMPUTE: ComputeType = ComputeType::R32F;
    const HALF_NAME: &'static str = "fp32";
    fn half(self) -> f32 {
        self as f32
    }
}

impl Number for Complex64 {
    const COMPUTE: ComputeType = ComputeType::C64F;
    const NAME: &'static str = "complex fp64";
    type Half = Complex32;
    const HALF_COMPUTE: ComputeType = ComputeType::C32F;
    const HALF_NAME: &'static str = "complex fp32";
    fn half(self) -> Complex32 {
        Complex32::new(self.re as f32, self.im as f32)
    }
}

/// A plan for an operation, or the reason why there is none.
#[derive(Debug, Serialize)]
pub struct Choice {
    pub operation: String,
    pub precision: &'static str,
    /// Least number of bytes that the product must move.
    pub bytes: f64,
    /// Time in seconds that `bytes` take at the machine's copy bandwidth.
    pub roofline_seconds: Option<f64>,
    pub plan: Option<Chosen>,
    pub error: Option<String>,
}

/// Information of an analyzed plan.
#[derive(Debug, Serialize)]
pub struct Chosen {
    pub algorithm: String,
    /// Layout in which A is read.
    pub layout: String,
    pub in_place: bool,
    /// Slots for values over stored entries.
    pub fill: f64,
    /// Prediction of the cost model, or measured time with effort tuned; `None` if there is neither.
    pub predicted_seconds: Option<f64>,
    pub analysis_seconds: f64,
    pub plan_bytes: usize,
    pub peak_bytes: usize,
    pub workspace_bytes: usize,
    pub reason: String,
}

/// Makes the choices for a matrix, in its own precision and in half of it.
pub fn of<T: Number>(
    session: &Session,
    a: &OwnedCsr<T>,
    effort: Effort,
    report: &Report,
) -> Result<Vec<Choice>> {
    let mut out = in_type(session, a, effort, report, (T::NAME, T::COMPUTE))?;
    let half = a.map_values(Number::half)?;
    out.extend(in_type(session, &half, effort, report, (T::HALF_NAME, T::HALF_COMPUTE))?);
    Ok(out)
}

fn in_type<T: Element>(
    session: &Session,
    a: &OwnedCsr<T>,
    effort: Effort,
    report: &Report,
    (precision, compute): (&'static str, ComputeType),
) -> Result<Vec<Choice>> {
    // Uses 32-bit offsets where these suffice, as most programs do.
    let mut narrow = Vec::new();
    narrow.try_reserve_exact(a.offsets.len())?;
    if i32::try_from(a.nnz()).is_ok() {
        narrow.extend(a.offsets.iter().map(|&offset| offset as i32));
    }
    let stored = (session.upload(&a.indices)?, session.upload(&a.values)?);
    let asked = Asked { session, effort, precision, compute, report };
    if narrow.len() == a.offsets.len() {
        asked.choices(a, &session.upload(&narrow)?, &stored)
    } else {
        asked.choices(a, &session.upload(&a.offsets)?, &stored)
    }
}

struct Asked<'s> {
    session: &'s Session,
    effort: Effort,
    precision: &'static str,
    compute: ComputeType,
    report: &'s Report,
}

impl Asked<'_> {
    fn choices<T: Element, I: Index>(
        &self,
        a: &OwnedCsr<T>,
        offsets: &Array<'_, I>,
        (indices, values): &(Array<'_, i32>, Array<'_, T>),
    ) -> Result<Vec<Choice>> {
        let shape = (a.rows as i64, a.cols as i64);
        let sparse = Sparse::csr(shape, offsets, indices, values, IndexBase::Zero)?;
        let (session, compute, types) = (self.session, self.compute, (T::TYPE, T::TYPE));
        let entry = (size_of::<T>() + size_of::<i32>()) as f64;
        let matrix = a.nnz() as f64 * entry + (a.rows + 1) as f64 * size_of::<I>() as f64;
        let dense = |n: usize| (a.rows as f64 + a.cols as f64) * (n * size_of::<T>()) as f64;
        let spgemm = &self.report.statistics.spgemm;
        let product = spgemm.nnz * entry + (a.rows + 1) as f64 * size_of::<I>() as f64;
        let op_b = if a.rows == a.cols { AS_STORED } else { Operation::Transpose };
        Ok(vec![
            self.choice("SpMV".into(), matrix + dense(1), || {
                Plan::spmv(session, AS_STORED, &sparse, types, compute, SpmvAlg::Default)
            }),
            self.choice(format!("SpMM, N = {N}"), matrix + dense(N), || {
                let (ops, orders) = ((AS_STORED, AS_STORED), (Order::Row, Order::Row));
                Plan::spmm(session, ops, &sparse, orders, N as i64, types, compute, SpmmAlg::Default)
            }),
            self.choice(format!("SpGEMM, {}", spgemm.product), 2.0 * matrix + product, || {
                let ops = (AS_STORED, op_b);
                Plan::spgemm(session, ops, &sparse, &sparse, compute, SpgemmAlg::Default)
            }),
        ])
    }

    /// Makes and analyzes a plan, and reads its information. A plan that cannot be made is a result, too.
    fn choice<'a>(
        &self,
        operation: String,
        bytes: f64,
        create: impl FnOnce() -> tarsia::facade::Result<Plan<'a>>,
    ) -> Choice {
        let analyzed = || -> Result<Chosen> {
            let plan = create()?;
            plan.set_effort(self.effort)?;
            plan.analyze(self.session)?;
            Chosen::by(&plan)
        };
        let what = format!("{operation}, {}: analysis", self.precision);
        let (plan, error) = match step(&what, analyzed) {
            Ok(chosen) => (Some(chosen), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let roofline_seconds = self.report.copy_bytes_per_second.map(|rate| bytes / rate);
        Choice { operation, precision: self.precision, bytes, roofline_seconds, plan, error }
    }
}

impl Chosen {
    fn by(plan: &Plan<'_>) -> Result<Self> {
        let (raw, info) = (plan.info()?, Info::of(plan)?);
        Ok(Chosen {
            layout: info.layout(),
            algorithm: info.algorithm,
            in_place: info.in_place,
            fill: info.fill,
            predicted_seconds: (raw.predictedSeconds > 0.0).then_some(raw.predictedSeconds),
            analysis_seconds: info.analysis_seconds,
            plan_bytes: raw.planBytes,
            peak_bytes: raw.peakBytes,
            workspace_bytes: raw.workspaceBytes,
            reason: info.reason,
        })
    }
}
