//! SpMV: y = alpha · op(A) · x + beta · y, one module an algorithm.

mod csr;
mod dasp;
mod hot_sell;
pub(super) mod mask_block;
mod sell;
mod stream;

use std::sync::Arc;

use super::device::Device;
use crate::backend::{Context, SpmvExecutor, SpmvProblem};
use crate::error::Result;
use crate::select::Choice;
use crate::support::{self, Algorithm, Combo, ComboVisitor};

pub(super) use csr::once;

/// Builds the executor for the problem's types. The context is current.
pub(super) fn build(
    cx: &Context,
    device: &Arc<Device>,
    problem: &SpmvProblem,
    choice: &Choice,
) -> Result<Box<dyn SpmvExecutor>> {
    struct Build<'a>(&'a Context, &'a Arc<Device>, &'a SpmvProblem, &'a Choice);
    impl ComboVisitor for Build<'_> {
        type Output = Box<dyn SpmvExecutor>;
        fn visit<C: Combo>(self) -> Result<Self::Output> {
            let Build(cx, device, problem, choice) = self;
            Ok(match choice.algorithm {
                Algorithm::Dasp => Box::new(dasp::DaspSpmv::<C>::build(cx, device, problem)?),
                Algorithm::Sell => match hot_sell::HotSellSpmv::<C>::build(cx, device, problem)? {
                    Some(executor) => Box::new(executor),
                    None => Box::new(sell::SellSpmv::<C>::build(cx, device, problem, choice)?),
                },
                Algorithm::Stream => Box::new(stream::StreamSpmv::<C>::build(cx, device, problem, choice)?),
                Algorithm::MaskBlock => {
                    Box::new(mask_block::MaskBlockSpmv::<C>::build(cx, device, problem, choice)?)
                }
                _ => Box::new(csr::CsrSpmv::<C>::build(cx, device, problem, choice)?),
            })
        }
    }
    support::dispatch(problem.types, Build(cx, device, problem, choice))
}
