//! Pattern statistics that a backend has counted for a choice.

use std::any::Any;

use super::spmv::survey::Survey;

/// Pattern statistics of an SpMV problem, for the choice of its algorithm.
pub struct Surveyed {
    /// Statistics of the pattern.
    pub survey: Survey,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub seen: Box<dyn Any>,
}

/// Pattern statistics of an SpMM problem, for the choice of its algorithm.
pub struct SpmmSurveyed {
    /// Statistics of the rows in their order.
    pub survey: super::spmm::Survey,
    /// Statistics of the rows in clusters, if these were computed.
    pub clustered: Option<super::spmm::Survey>,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub seen: Box<dyn Any>,
}

/// Pattern statistics of an SpGEMM problem, for the choice of its algorithm.
pub struct SpgemmSurveyed {
    /// Predicted time of `hash` over that of `tile`, if `hash` takes longer.
    pub gain: Option<f64>,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub seen: Box<dyn Any>,
}
