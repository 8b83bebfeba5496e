//! What a backend has found out about a pattern for a choice.

use std::any::Any;

use super::spmv::statistics::SpmvStatistics;

/// Inspection of the pattern of an SpMV problem, for the choice of its algorithm.
pub struct SpmvInspection {
    /// Statistics of the pattern.
    pub statistics: SpmvStatistics,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub backend_state: Box<dyn Any>,
}

/// Inspection of the pattern of an SpMM problem, for the choice of its algorithm.
pub struct SpmmInspection {
    /// Statistics of the rows in their order.
    pub statistics: super::spmm::SpmmStatistics,
    /// Statistics of the rows in clusters, if these were computed.
    pub clustered: Option<super::spmm::SpmmStatistics>,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub backend_state: Box<dyn Any>,
}

/// Inspection of the pattern of an SpGEMM problem, for the choice of its algorithm.
pub struct SpgemmInspection {
    /// Predicted time of `hash` over that of `tile`, if `hash` takes longer.
    pub gain: Option<f64>,
    /// Backend's by-products of counting, reused when it builds the choice.
    pub backend_state: Box<dyn Any>,
}
