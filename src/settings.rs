//! What may be set of a plan before analysis.

use crate::types::{Effort, Reorder};

/// What may be set before analysis.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How much analysis may cost.
    pub effort: Effort,
    /// Row reordering.
    pub reorder: Reorder,
    /// Columns of a block of `smat`; `None`: the model chooses.
    pub block_width: Option<usize>,
    /// Values will change.
    pub value_updates: bool,
    /// Every execute reads the values in the user's array, analysis none of them.
    pub values_in_place: bool,
    /// Executes that the plan is for: the choice minimises analysis and so many executes; 0: not known.
    pub expected_executes: i64,
    /// SpGEMM: the columns of each row of C ascend.
    pub sorted_output: bool,
    /// The same bits from run to run: what the handle says when it analyzes.
    pub deterministic: bool,
    /// Bytes that the plan may hold at one time.
    pub memory_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            effort: Effort::Default,
            reorder: Reorder::Auto,
            block_width: None,
            value_updates: false,
            values_in_place: false,
            expected_executes: 0,
            sorted_output: true,
            deterministic: false,
            memory_limit: usize::MAX,
        }
    }
}
