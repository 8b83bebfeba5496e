//! What a backend has counted of a pattern for a choice.

use std::any::Any;

use super::spmv::survey::Survey;

/// Counts of the pattern of a problem of SpMV, for the choice of its algorithm.
pub struct Surveyed {
    /// The counts.
    pub survey: Survey,
    /// What else the backend saw on the way, for when it builds what was chosen.
    pub seen: Box<dyn Any>,
}

/// Counts of the pattern of a problem of SpMM, for the choice of its algorithm.
pub struct SpmmSurveyed {
    /// The counts.
    pub survey: super::spmm::Survey,
    /// Those of the rows in clusters, where these were made.
    pub clustered: Option<super::spmm::Survey>,
    /// What else the backend saw on the way, for when it builds what was chosen.
    pub seen: Box<dyn Any>,
}

/// Counts of the pattern of a problem of SpGEMM, for the choice of its algorithm.
pub struct SpgemmSurveyed {
    /// How many times as long as `tile` `hash` is predicted to take, if it is longer.
    pub gain: Option<f64>,
    /// What the backend saw, for when it builds what was chosen.
    pub seen: Box<dyn Any>,
}
