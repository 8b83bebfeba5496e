//! Settings of a plan that may change before analysis.

use crate::types::{Effort, Reorder};

/// Settings of a plan that may change before analysis.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How much analysis may cost.
    pub effort: Effort,
    /// Order of the rows of op(A).
    pub reorder: Reorder,
    /// Columns of a block of `smat`; `None` lets the cost model choose.
    pub block_width: Option<usize>,
    /// True if new values will come (tarsiaPlan_setValueUpdates).
    pub value_updates: bool,
    /// True if every execute reads the values in the user's array, and analysis reads none of them.
    pub values_in_place: bool,
    /// Number of executes to expect: the choice minimises the time of analysis and these executes; 0 if
    /// unknown.
    pub expected_executes: i64,
    /// True if SpGEMM writes the columns of each row of C in ascending order.
    pub sorted_output: bool,
    /// True if results must have the same bits from run to run; taken from the handle at analysis.
    pub deterministic: bool,
    /// Limit of the bytes that the plan may hold at one time.
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
