//! Settings that say which values a plan reads, how often, and whether that is checked.

use libc::c_int;

use super::{check, Plan, Session};
use tarsia::capi::{handle, plan};
use tarsia::facade::Result;

impl Session {
    /// `tarsiaSetChecks`.
    pub fn set_checks(&self, on: bool) -> Result<()> {
        check(handle::tarsiaSetChecks(self.raw, on.into()))
    }

    /// `tarsiaGetChecks`.
    pub fn checks(&self) -> Result<bool> {
        let mut on: c_int = 0;
        // SAFETY: the answer is valid for a write.
        check(unsafe { handle::tarsiaGetChecks(self.raw, &mut on) })?;
        Ok(on != 0)
    }
}

impl Plan<'_> {
    /// `tarsiaPlan_setValuesInPlace`.
    pub fn set_values_in_place(&self, on: bool) -> Result<()> {
        check(plan::tarsiaPlan_setValuesInPlace(self.raw, on.into()))
    }

    /// `tarsiaPlan_setExpectedExecutes`.
    pub fn set_expected_executes(&self, executes: i64) -> Result<()> {
        check(plan::tarsiaPlan_setExpectedExecutes(self.raw, executes))
    }
}
