//! The result of analysis, as tarsiaPlan_getInfo reports it.

use crate::algorithm::Algorithm;
use crate::backend::LayoutInfo;
use crate::select::Choice;
use crate::types::{LayoutKind, Reorder};

/// Description of the built executor, which new values may change.
pub struct Built {
    /// Layout of the sparse operands.
    pub layout: LayoutInfo,
    /// Row order of op(A) that is in use.
    pub reorder: Reorder,
    /// More details for people; empty if the layout says everything.
    pub details: String,
}

/// The result of analysis.
#[derive(Clone, Debug)]
pub struct Report {
    /// Chosen algorithm; `None` before analysis.
    pub algorithm: Option<Algorithm>,
    /// Layout of the sparse operands.
    pub layout: LayoutInfo,
    /// Row order of op(A) that is in use.
    pub reorder: Reorder,
    /// Wall time of analysis in seconds.
    pub analysis_seconds: f64,
    /// Seconds that the cost model predicts for one execute; 0 if it has no prediction.
    pub predicted_seconds: f64,
    /// Reason of the choice.
    pub reason: String,
}

impl Report {
    /// Returns the report before analysis.
    pub fn empty() -> Self {
        Report {
            algorithm: None,
            layout: LayoutInfo { kind: LayoutKind::None, in_place: false, fill: 0.0 },
            reorder: Reorder::None,
            analysis_seconds: 0.0,
            predicted_seconds: 0.0,
            reason: "not analyzed".into(),
        }
    }

    /// Creates the report of a choice and the executor that was built for it.
    pub fn new(choice: &Choice, built: Built) -> Self {
        let Built { layout, reorder, .. } = built;
        let (predicted_seconds, reason) = match layout.kind {
            // The reference backend has one implementation for all algorithms and no cost model.
            LayoutKind::Triplets => (
                0.0,
                format!("{} by the reference backend, from a list of triplets", choice.algorithm().name()),
            ),
            _ => (choice.predicted_seconds, choice.reason.clone()),
        };
        let algorithm = Some(choice.algorithm());
        Report { algorithm, layout, reorder, analysis_seconds: 0.0, predicted_seconds, reason }
    }

    /// Appends a sentence to the reason, unless it is empty.
    pub fn add(&mut self, details: &str) {
        if !details.is_empty() {
            self.reason.push_str("; ");
            self.reason.push_str(details);
        }
    }

    /// Returns the report with the present state of the executor.
    pub fn with(&self, built: Option<Built>) -> Self {
        let mut report = self.clone();
        if let Some(built) = built {
            (report.layout, report.reorder) = (built.layout, built.reorder);
            report.add(&built.details);
        }
        report
    }
}
