//! Settings for the values that a plan reads, the number of its executes, checks and sorted output; and the
//! sorted flag of a sparse matrix.

use libc::c_int;

use super::{check, Plan, Session, Sparse};
use tarsia::capi::{handle, plan, spmat_access};
use tarsia::facade::Result;

impl Session {
    /// Calls `tarsiaSetChecks`.
    pub fn set_checks(&self, on: bool) -> Result<()> {
        check(handle::tarsiaSetChecks(self.raw, on.into()))
    }

    /// Calls `tarsiaGetChecks`.
    pub fn checks(&self) -> Result<bool> {
        let mut on: c_int = 0;
        // SAFETY: the answer is valid for a write.
        check(unsafe { handle::tarsiaGetChecks(self.raw, &mut on) })?;
        Ok(on != 0)
    }
}

impl Plan<'_> {
    /// Calls `tarsiaPlan_setValuesInPlace`.
    pub fn set_values_in_place(&self, on: bool) -> Result<()> {
        check(plan::tarsiaPlan_setValuesInPlace(self.raw, on.into()))
    }

    /// Calls `tarsiaPlan_setExpectedExecutes`.
    pub fn set_expected_executes(&self, executes: i64) -> Result<()> {
        check(plan::tarsiaPlan_setExpectedExecutes(self.raw, executes))
    }

    /// Calls `tarsiaPlan_setSortedOutput`.
    pub fn set_sorted_output(&self, on: bool) -> Result<()> {
        check(plan::tarsiaPlan_setSortedOutput(self.raw, on.into()))
    }
}

impl Sparse<'_> {
    /// Calls `tarsiaSpMatGetSorted`.
    pub fn is_sorted(&self) -> Result<bool> {
        let mut sorted: c_int = -1;
        // SAFETY: the answer is valid for a write.
        check(unsafe { spmat_access::tarsiaSpMatGetSorted(self.raw, &mut sorted) })?;
        Ok(sorted != 0)
    }
}
