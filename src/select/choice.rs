//! Choice of a plan: the algorithm that executes it, with everything that the algorithm is given to decide,
//! the arrays from which it reads its matrices, and the reason.
//!
//! Selection makes choices, and backends carry them out. Decisions that depend on counts that exist only
//! while a format is built (the height of windows, the width of blocks), or on the operands of a call (which
//! kernel takes how many columns, whether op(B) is copied), are made by the functions of `spmv/`, `spmm/` and
//! `spgemm/` here, which a backend calls with its numbers.

use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::error::{Error, Status};
use crate::format::bcsr;
use crate::reorder::{is_kept, KeptOrder};
use crate::types::Reorder;

/// Arrays from which an executor reads a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's arrays as they are: rows of op(A) are contiguous there.
    InPlace,
    /// A copy that analysis makes, with op applied, base 0, sorted rows and 32-bit columns.
    Canonical,
}

impl Source {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Source::InPlace => "the user's arrays in place",
            Source::Canonical => "a sorted CSR copy with 32-bit columns",
        }
    }
}

/// Order in which an algorithm on CSR rows processes the rows of op(A).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOrder {
    /// Policy by name, or [`Reorder::None`] for the rows' own order.
    pub policy: Reorder,
    /// Order that an earlier analysis has computed by the policy; `None` if it is still to be computed.
    pub kept: Option<Arc<KeptOrder>>,
}

impl RowOrder {
    /// Order of a policy, to be computed; [`Reorder::Auto`] leaves rows as they are.
    pub fn new(policy: Reorder) -> Self {
        RowOrder { policy: if policy.is_named() { policy } else { Reorder::None }, kept: None }
    }
}

/// Decision on clustering: rows with similar columns are put together, so that windows or blocks of rows
/// share columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clusters {
    /// Rows stay in their order.
    #[default]
    No,
    /// Clusters are computed, and taken if the cost model predicts a gain.
    IfFaster,
    /// Clusters are taken: the choice, or an earlier analysis, has found that they gain.
    Yes,
    /// Clusters that an earlier analysis has computed.
    Kept(Arc<KeptOrder>),
}

impl Clusters {
    /// Returns whether rows may leave their order.
    pub fn may_be(&self) -> bool {
        *self != Clusters::No
    }
}

/// Library or kernels that multiply op(A) as a dense matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// The library's kernels.
    Own,
    /// The library's kernels for fp32 on matrix units, with each factor split into three bf16 parts.
    OwnInParts,
    /// cublasLt where it is installed, else the library's kernels.
    CublasLt {
        /// True if cublasLt's algorithms are timed and the fastest is taken.
        timed: bool,
        /// True if op(A) is stored by columns.
        a_by_columns: bool,
    },
}

/// Algorithm of the support table with all that it is given to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// SpMV `csr`.
    Csr(RowOrder),
    /// SpMV `sell`.
    Sell,
    /// SpMV `stream`.
    Stream,
    /// SpMV `dasp`.
    Dasp,
    /// SpMV `mask_block`.
    MaskBlock,
    /// SpMM `row`.
    Row(RowOrder),
    /// SpMM `window`.
    Window(Clusters),
    /// SpMM `smat`.
    Smat {
        /// Clustering of the rows before they are cut into row blocks.
        clusters: Clusters,
        /// Columns of a block. With `None`, a device takes the width that the cost model prefers, and the
        /// host the widest.
        width: Option<usize>,
    },
    /// SpMM `dense`.
    Dense(Multiplier),
    /// SpMM `sell`.
    SpmmSell,
    /// SpMM `csr`.
    SpmmCsr(RowOrder),
    /// SpMM `swift`.
    Swift {
        /// True for the form that gives the same bits from run to run.
        deterministic: bool,
    },
    /// SpGEMM `hash`.
    Hash {
        /// True if the rows of Cᵀ = op(B)ᵀ·op(A)ᵀ, the columns of C, are computed instead of the rows of C.
        transposed: bool,
    },
    /// SpGEMM `tile`.
    Tile {
        /// True if columns of C are computed, as for `hash`.
        transposed: bool,
    },
}

/// Decisions of an earlier analysis about an algorithm, in the form in which they are stored.
#[derive(Clone, Debug)]
pub struct Decided {
    /// True if SpGEMM computes columns of C.
    pub transposed: bool,
    /// Policy of the row order, as [`Method::reorder`] returns it.
    pub reorder: Reorder,
    /// Columns of a block of `smat`.
    pub block_width: Option<usize>,
    /// True if a vendor's algorithms are timed.
    pub times_vendor: bool,
    /// Row order that was computed.
    pub order: Option<Arc<KeptOrder>>,
}

impl Method {
    /// Builds the method from stored decisions. An error names the decision that does not belong to the
    /// algorithm. The multiplier of `dense` and reproducibility are decided again by [`super::in_mode`].
    pub fn decided(algorithm: Algorithm, decided: Decided) -> std::result::Result<Self, String> {
        let name = algorithm.name();
        let Decided { transposed, reorder, block_width, times_vendor, order } = decided;
        let mut method = Method::new(algorithm);
        match &mut method {
            Method::Hash { transposed: own } | Method::Tile { transposed: own } => *own = transposed,
            _ if transposed => return Err(format!("columns of C computed by {name}")),
            Method::Smat { width, .. } => *width = block_width,
            Method::Dense(own) if times_vendor => {
                *own = Multiplier::CublasLt { timed: true, a_by_columns: false }
            }
            _ => {}
        }
        if method.block_width() != block_width {
            return Err(format!("blocks, which {name} has none of"));
        }
        if method.times_vendor() != times_vendor {
            return Err(format!("a vendor's algorithms timed for {name}"));
        }
        let refused = format!("an order of rows that {name} with {} does not take", reorder.c_name());
        if let Some(own) = method.row_order_mut() {
            let takes = order.as_ref().is_none_or(|order| is_kept(reorder) && !order.has_windows());
            if reorder == Reorder::Auto || !takes {
                return Err(refused);
            }
            *own = RowOrder { policy: reorder, kept: order };
        } else if let (Some(clusters), Reorder::Auto) = (method.clusters_mut(), reorder) {
            *clusters = match order {
                Some(order) if algorithm == Algorithm::Smat && order.is_in_windows(bcsr::ROWS) => {
                    Clusters::Kept(order)
                }
                Some(_) => return Err(refused),
                None => Clusters::Yes,
            };
        } else if reorder != Reorder::None || order.is_some() {
            return Err(refused);
        }
        Ok(method)
    }

    /// Method of an algorithm with default decisions, which serve every matrix.
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Csr => Method::Csr(RowOrder::new(Reorder::None)),
            Algorithm::Sell => Method::Sell,
            Algorithm::Stream => Method::Stream,
            Algorithm::Dasp => Method::Dasp,
            Algorithm::MaskBlock => Method::MaskBlock,
            Algorithm::Row => Method::Row(RowOrder::new(Reorder::None)),
            Algorithm::Window => Method::Window(Clusters::No),
            Algorithm::Smat => Method::Smat { clusters: Clusters::No, width: None },
            Algorithm::Dense => Method::Dense(Multiplier::Own),
            Algorithm::SpmmSell => Method::SpmmSell,
            Algorithm::SpmmCsr => Method::SpmmCsr(RowOrder::new(Reorder::None)),
            Algorithm::Swift => Method::Swift { deterministic: false },
            Algorithm::Hash => Method::Hash { transposed: false },
            Algorithm::Tile => Method::Tile { transposed: false },
        }
    }

    /// `INTERNAL_ERROR` for a backend that was asked to build a plan of another operation by this method.
    pub fn is_of_another_operation(&self) -> Error {
        let name = self.algorithm().name();
        Error::new(Status::InternalError, format!("plan: {name} is an algorithm of another operation"))
    }

    /// The algorithm in the support table.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Method::Csr(_) => Algorithm::Csr,
            Method::Sell => Algorithm::Sell,
            Method::Stream => Algorithm::Stream,
            Method::Dasp => Algorithm::Dasp,
            Method::MaskBlock => Algorithm::MaskBlock,
            Method::Row(_) => Algorithm::Row,
            Method::Window(_) => Algorithm::Window,
            Method::Smat { .. } => Algorithm::Smat,
            Method::Dense(_) => Algorithm::Dense,
            Method::SpmmSell => Algorithm::SpmmSell,
            Method::SpmmCsr(_) => Algorithm::SpmmCsr,
            Method::Swift { .. } => Algorithm::Swift,
            Method::Hash { .. } => Algorithm::Hash,
            Method::Tile { .. } => Algorithm::Tile,
        }
    }

    /// Row order of an algorithm that takes one.
    pub fn row_order(&self) -> Option<&RowOrder> {
        match self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => Some(order),
            _ => None,
        }
    }

    /// Row order of an algorithm that takes one, to be set.
    pub fn row_order_mut(&mut self) -> Option<&mut RowOrder> {
        match self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => Some(order),
            _ => None,
        }
    }

    /// Decision on clustering, for an algorithm that may cluster rows.
    pub fn clusters(&self) -> Option<&Clusters> {
        match self {
            Method::Window(clusters) | Method::Smat { clusters, .. } => Some(clusters),
            _ => None,
        }
    }

    /// Decision on clustering, for an algorithm that may cluster rows, to be set.
    pub fn clusters_mut(&mut self) -> Option<&mut Clusters> {
        match self {
            Method::Window(clusters) | Method::Smat { clusters, .. } => Some(clusters),
            _ => None,
        }
    }

    /// Policy of the row order: one by name, [`Reorder::Auto`] where rows may be put in clusters, else
    /// [`Reorder::None`].
    pub fn reorder(&self) -> Reorder {
        match (self.row_order(), self.clusters()) {
            (Some(order), _) => order.policy,
            (_, Some(clusters)) if clusters.may_be() => Reorder::Auto,
            _ => Reorder::None,
        }
    }

    /// Row order that an earlier analysis has computed.
    pub fn kept_order(&self) -> Option<&Arc<KeptOrder>> {
        match (self.row_order(), self.clusters()) {
            (Some(order), _) => order.kept.as_ref(),
            (_, Some(Clusters::Kept(order))) => Some(order),
            _ => None,
        }
    }

    /// Records what the build of the executor has decided: whether rows are in clusters, and the width of
    /// blocks. The order itself stays in the executor.
    pub fn settle(&mut self, reorder: Reorder, block_width: Option<usize>) {
        if let Some(clusters) = self.clusters_mut() {
            *clusters = if reorder == Reorder::Auto { Clusters::Yes } else { Clusters::No };
        }
        if let Method::Smat { width, .. } = self {
            *width = block_width;
        }
    }

    /// Drops the computed row order, which the executor has.
    pub fn without_order(mut self) -> Self {
        match &mut self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => order.kept = None,
            Method::Smat { clusters: clusters @ Clusters::Kept(_), .. } => *clusters = Clusters::Yes,
            _ => {}
        }
        self
    }

    /// Adds the row order that an analysis has computed.
    pub fn with_order(mut self, kept: Option<KeptOrder>) -> Self {
        let Some(kept) = kept.map(Arc::new) else { return self };
        match &mut self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => order.kept = Some(kept),
            Method::Smat { clusters, .. } => *clusters = Clusters::Kept(kept),
            _ => {}
        }
        self
    }

    /// Columns of a block, if they are decided.
    pub fn block_width(&self) -> Option<usize> {
        match self {
            Method::Smat { width, .. } => *width,
            _ => None,
        }
    }

    /// Returns whether SpGEMM computes columns of C.
    pub fn is_transposed(&self) -> bool {
        matches!(self, Method::Hash { transposed: true } | Method::Tile { transposed: true })
    }

    /// Returns whether a vendor's algorithms are timed.
    pub fn times_vendor(&self) -> bool {
        matches!(self, Method::Dense(Multiplier::CublasLt { timed: true, .. }))
    }
}

/// One way to execute a plan.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Algorithm with its decisions.
    pub method: Method,
    /// Source from which algorithms on CSR rows read A. Converted layouts are built from the user's arrays if
    /// rows are in place there, whatever this field says; their plans then read neither source.
    pub a: Source,
    /// Source from which B is read (SpGEMM).
    pub b: Source,
    /// True if SpMV `csr` (CUDA) or SpMM `row` (host), which read rows in place, keeps columns of its own: SpMV of 16
    /// bits, provided that the columns fit. It follows from settings and sizes, so that stored decisions leave it out.
    pub keeps_columns: bool,
    /// Bytes of A and the dense operands that one execution moves; 0 if the cost model cannot say.
    pub bytes: f64,
    /// Seconds of one execution by the cost model; 0 if it cannot say.
    pub predicted_seconds: f64,
    /// Reason for the choice, one sentence for `tarsiaPlan_getInfo`.
    pub reason: String,
}

impl Choice {
    /// Choice of an algorithm with default decisions, which reads all its matrices from `source`.
    pub fn new(algorithm: Algorithm, source: Source) -> Self {
        Choice::of(Method::new(algorithm), source)
    }

    /// Choice of a method, which reads all its matrices from `source`.
    pub fn of(method: Method, source: Source) -> Self {
        Choice {
            method,
            a: source,
            b: source,
            keeps_columns: false,
            bytes: 0.0,
            predicted_seconds: 0.0,
            reason: String::new(),
        }
    }

    /// Algorithm in the support table.
    pub fn algorithm(&self) -> Algorithm {
        self.method.algorithm()
    }

    /// Describes the layout or source from which A is read.
    pub(super) fn describe(&self) -> &'static str {
        match self.algorithm() {
            Algorithm::Sell | Algorithm::SpmmSell => "slices of sorted rows with relative columns",
            Algorithm::Stream => "equal tiles of nonzeros with relative columns",
            Algorithm::Dasp => "blocks of long, medium and short rows",
            Algorithm::MaskBlock => "blocks of 8 × 4 or 4 × 4 with bit masks",
            Algorithm::Window => "windows of rows with the columns that they have",
            Algorithm::Smat => "dense blocks of 16 rows",
            Algorithm::Dense => "all of op(A), zeros and all",
            Algorithm::Swift => "blocks of columns sorted by length",
            Algorithm::Csr | Algorithm::Row | Algorithm::SpmmCsr | Algorithm::Hash | Algorithm::Tile => {
                self.a.describe()
            }
        }
    }
}
