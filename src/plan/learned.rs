//! `TARSIA_REORDER_LEARNED`: which order of rows it stands for in a plan.

use crate::algorithm::Row;
use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::SparseMatrix;
use crate::memory::Context;
use crate::select::{self, orders, Choice};
use crate::settings::Settings;
use crate::types::{Operation, Reorder};

/// The settings that a choice is made by, in which the order of rows is a name or none, and what to say of it.
pub(super) struct Resolved {
    pub settings: Settings,
    learned: bool,
}

impl Resolved {
    /// For products of op(A), by an algorithm of these rows of the table. Blocks, and reads the pattern, where the
    /// order is to be the one that is predicted to be the fastest; on the reference backend, which has no orders, rows
    /// keep theirs.
    pub fn new(
        backend: &dyn Backend,
        cx: &Context,
        (a, op): (&SparseMatrix, Operation),
        rows: &[&'static Row],
        settings: &Settings,
    ) -> Result<Self> {
        if settings.reorder != Reorder::Learned {
            return Ok(Resolved { settings: *settings, learned: false });
        }
        let algorithm = select::require_learned(a, op, rows)?;
        let reorder = match backend.row_features(cx, a, op)? {
            Some(features) => orders::h100().choose(algorithm, &features)?,
            None => Reorder::None,
        };
        Ok(Resolved { settings: Settings { reorder, ..*settings }, learned: true })
    }

    /// Says in the reason of a choice that its order of rows is a learned one.
    pub fn explain(&self, choice: &mut Choice) {
        if self.learned {
            let found = match self.settings.reorder {
                Reorder::None => "the rows' own order",
                policy => policy.c_name(),
            };
            let learned = Reorder::Learned.c_name();
            choice.reason.push_str(&format!("; {learned} predicts that {found} is the fastest order"));
        }
    }
}
