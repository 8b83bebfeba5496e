//! What the operations on dense operands have in common: y = alpha · op(A) · x + beta · y and
//! C = alpha · op(A) · op(B) + beta · C, and the same with the old values in another array than the result's.

use super::{check_scalars, Built, Executor, Operation, Planned};
use crate::backend::{Backend, LayoutInfo};
use crate::error::{refuse_if, Result};
use crate::matrix::Lines;
use crate::memory::Context;
use crate::reorder::KeptOrder;
use crate::types::{Address, Reorder, ScalarsAt};

/// A built product with dense operands of type `M` (vectors or matrices), which executes do not change.
pub trait DenseExecutor<M>: Send + Sync {
    /// Returns the bytes of workspace that execute needs for a result of `n` columns; a vector has one.
    fn workspace_bytes(&self, n: usize) -> usize;
    /// Computes D = alpha · op(A) · op(B) + beta · C for `scalars` alpha and beta and `operands` B, C and D;
    /// B is as the user gave it. D is C, or has C's order and shares no element with it; the latter requires
    /// [`Self::reads_elsewhere`].
    fn product(&self, cx: &Context, scalars: ScalarsAt, operands: [&M; 3]) -> Result<()>;
    /// Returns whether the executor can read the old values from C if the result D is elsewhere.
    fn reads_elsewhere(&self, _c: &M, _d: &M) -> bool {
        false
    }
    /// Computes C = alpha · op(A) · op(B) + beta · C.
    fn execute(&self, cx: &Context, alpha: Address, b: &M, beta: Address, c: &M) -> Result<()> {
        self.product(cx, (alpha, beta), [b, c, c])
    }
    /// Returns whether products read the user's value array.
    fn reads_values(&self) -> bool {
        self.layout().in_place
    }
    /// Returns whether new values leave the plan's arrays at their addresses, even if the plan was not asked
    /// to prepare for value updates.
    fn keeps_arrays(&self) -> bool {
        self.layout().in_place
    }
    /// Takes new values for the same pattern, in the order of the user's array.
    fn update_values(&mut self, cx: &Context, values: Address) -> Result<()>;
    /// Returns a description of the layout.
    fn layout(&self) -> LayoutInfo;
    /// Returns whether products have the same bits from run to run.
    fn is_deterministic(&self) -> bool {
        true
    }
    /// Returns the named order of the rows of op(A); [`Reorder::Auto`] if rows with similar columns are
    /// clustered.
    fn reorder(&self) -> Reorder {
        Reorder::None
    }
    /// Returns the order of the rows of op(A) that the host has computed, if the plan's decisions (what
    /// `tarsiaPlan_getDecisions` gives out) store it. Blocks.
    fn row_order(&self, _cx: &Context) -> Result<Option<KeptOrder>> {
        Ok(None)
    }
    /// Returns the columns of a block, for layouts of blocks.
    fn block_width(&self) -> Option<usize> {
        None
    }
    /// Returns more details for people; empty if [`LayoutInfo`] says everything.
    fn details(&self) -> String {
        String::new()
    }
}

impl<M: 'static> Executor for Box<dyn DenseExecutor<M>> {
    fn built(&self) -> Built {
        Built { layout: self.layout(), reorder: self.reorder(), details: self.details() }
    }

    fn reads_values(&self) -> [bool; 2] {
        [(**self).reads_values(), false]
    }

    fn keeps_arrays(&self) -> bool {
        (**self).keeps_arrays()
    }

    fn is_deterministic(&self) -> bool {
        (**self).is_deterministic()
    }

    fn row_order(&self, cx: &Context) -> Result<Option<KeptOrder>> {
        (**self).row_order(cx)
    }
}

/// An operation whose operands besides A are dense.
pub trait DenseOperation: Operation<Executor = Box<dyn DenseExecutor<Self::Operand>>> {
    /// Type of the operands.
    type Operand: 'static;
    /// Name of the dense factor.
    const FACTOR: &'static str;
    /// Names of the old values and of a result that is elsewhere; otherwise the result has the first name.
    const RESULTS: [&'static str; 2];
    /// Text of the error where a result shares memory with the old values but is not in the same place.
    const OVERLAP: &'static str;

    /// Memory of an operand.
    fn lines(operand: &Self::Operand) -> Lines;
    /// Columns of a result; a vector has one.
    fn columns(result: &Self::Operand) -> usize;
    /// Checks the dense factor and the result, which errors call `name`.
    fn check_operands(
        planned: &Planned<Self>,
        factor: &Self::Operand,
        result: &Self::Operand,
        name: &str,
    ) -> Result<()>;
    /// Checks the shape and the type of old values that are not in the result.
    fn check_old(planned: &Planned<Self>, old: &Self::Operand, result: &Self::Operand) -> Result<()>;
}

impl<O: DenseOperation> Planned<O> {
    /// Checks the arguments and executes. `old` is an operand with the old values, if they are not in the
    /// result, with the backend that copies them if need be. Error messages then call the result by another
    /// name.
    ///
    /// Old values elsewhere are read from there if the executor and the machine can; for others they are
    /// copied into the result's array, in the order of the stream, and the product then runs in place, which
    /// every algorithm supports. No copy is made if they are in the result's array already or beta is known
    /// to be zero.
    pub fn execute(
        &self,
        cx: &Context,
        scalars: ScalarsAt,
        factor: &O::Operand,
        old: Option<(&dyn Backend, &O::Operand)>,
        result: &O::Operand,
    ) -> Result<()> {
        let (compute, to) = (self.compute.plain(), O::lines(result));
        let name = O::RESULTS[usize::from(old.is_some())];
        O::check_operands(self, factor, result, name)?;
        check_scalars(compute, scalars, name, &to)?;
        if let Some((_, old)) = old {
            O::check_old(self, old, result)?;
            let from = O::lines(old);
            refuse_if!(!from.are(&to) && from.overlaps(&to), invalid(name), "{}", O::OVERLAP);
        }
        let executor = self.executor()?;
        cx.workspace.require(executor.workspace_bytes(O::columns(result)))?;
        if let Some((backend, old)) = old {
            let from = O::lines(old);
            if !from.are(&to) && !backend.is_known_zero(cx, compute, scalars.1)? {
                if backend.can_read(from.address)? && executor.reads_elsewhere(old, result) {
                    return executor.product(cx, scalars, [factor, old, result]);
                }
                backend.copy_lines(cx, &from, &to)?;
            }
        }
        executor.product(cx, scalars, [factor, result, result])
    }
}
