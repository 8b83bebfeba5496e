//! What a backend has counted of a pattern for a choice.

use std::any::Any;

use super::survey::Survey;

/// What [`Backend::survey_spmv`] found.
pub struct Surveyed {
    /// The counts.
    pub survey: Survey,
    /// What else the backend saw on the way, for its [`Backend::build_spmv`].
    pub seen: Box<dyn Any>,
}

/// What [`Backend::survey_spmm`] found.
pub struct SpmmSurveyed {
    /// The counts.
    pub survey: super::spmm::Survey,
    /// Those of the rows in clusters, where these were made.
    pub clustered: Option<super::spmm::Survey>,
    /// What else the backend saw on the way, for its [`Backend::build_spmm`].
    pub seen: Box<dyn Any>,
}

/// What [`Backend::survey_spgemm`] found.
pub struct SpgemmSurveyed {
    /// How many times as long as `tile` `hash` is predicted to take, if it is longer.
    pub gain: Option<f64>,
    /// What the backend saw, for its [`Backend::build_spgemm`].
    pub seen: Box<dyn Any>,
}
