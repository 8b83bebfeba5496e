//! What analysis found, as tarsiaPlan_getInfo tells it.

use crate::algorithm::Algorithm;
use crate::backend::LayoutInfo;
use crate::select::Choice;
use crate::types::{LayoutKind, Reorder};

/// What analysis has built; new values may change it.
pub struct Built {
    /// The layout.
    pub layout: LayoutInfo,
    /// The order of the rows of op(A) that is in force.
    pub reorder: Reorder,
    /// More about it, for people; empty where the layout says all.
    pub details: String,
}

/// What analysis found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Algorithm of the support table; `None` before analysis.
    pub algorithm: Option<Algorithm>,
    /// What was built.
    pub layout: LayoutInfo,
    /// Reordering that is in force.
    pub reorder: Reorder,
    /// Wall time of analysis in seconds.
    pub analysis_seconds: f64,
    /// Seconds that the cost model expects of one execute; 0 if it cannot say.
    pub predicted_seconds: f64,
    /// Why this choice.
    pub reason: String,
}

impl Report {
    /// Before analysis.
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

    /// Of what was chosen and built.
    pub fn new(choice: &Choice, built: Built) -> Self {
        let Built { layout, reorder, .. } = built;
        let (predicted_seconds, reason) = match layout.kind {
            // The oracle has one way for everything and no cost model.
            LayoutKind::Triplets => (
                0.0,
                format!("{} by the reference backend, from a list of triplets", choice.algorithm().name()),
            ),
            _ => (choice.predicted_seconds, choice.reason.clone()),
        };
        let algorithm = Some(choice.algorithm());
        Report { algorithm, layout, reorder, analysis_seconds: 0.0, predicted_seconds, reason }
    }

    /// One more sentence, if there is one.
    pub fn add(&mut self, details: &str) {
        if !details.is_empty() {
            self.reason.push_str("; ");
            self.reason.push_str(details);
        }
    }

    /// The same with what is built now.
    pub fn with(&self, built: Option<Built>) -> Self {
        let mut report = self.clone();
        if let Some(built) = built {
            (report.layout, report.reorder) = (built.layout, built.reorder);
            report.add(&built.details);
        }
        report
    }
}
