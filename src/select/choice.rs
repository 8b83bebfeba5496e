//! A choice: which algorithm executes a plan, with everything that the algorithm is given to decide, where it reads
//! its matrices, and why.
//!
//! Selection makes choices, backends carry them out. What depends on counts that exist only while a format is built
//! (the height of windows, the width of blocks), or on the operands of a call (which kernel takes how many columns,
//! whether op(B) is copied), is decided by the functions of `spmv/`, `spmm/` and `spgemm/` here, which a backend asks with
//! its numbers.

use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::error::{Error, Status};
use crate::format::bcsr;
use crate::reorder::{is_kept, KeptOrder};
use crate::types::Reorder;

/// Where an executor reads a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The user's arrays, as they are: rows of op(A) are contiguous there.
    InPlace,
    /// A copy that analysis makes: op applied, base 0, rows sorted, 32-bit
    /// columns.
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

/// The order in which an algorithm on CSR rows takes the rows of op(A).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOrder {
    /// [`Reorder::None`], their own, or a policy by name.
    pub policy: Reorder,
    /// The order that an earlier analysis has computed by the policy; `None`: it is computed.
    pub kept: Option<Arc<KeptOrder>>,
}

impl RowOrder {
    /// The order of a policy, to be computed; [`Reorder::Auto`] leaves rows as they are.
    pub fn new(policy: Reorder) -> Self {
        RowOrder { policy: if policy.is_named() { policy } else { Reorder::None }, kept: None }
    }
}

/// Whether rows of like columns are put together, so that windows or blocks of rows share columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clusters {
    /// Rows stay in their order.
    #[default]
    No,
    /// Clusters are looked for, and taken where the model says that they gain.
    IfFaster,
    /// They are taken: the choice, or an earlier analysis, has found that they gain.
    Yes,
    /// The clusters that an earlier analysis has made.
    Kept(Arc<KeptOrder>),
}

impl Clusters {
    /// Whether rows may leave their order.
    pub fn may_be(&self) -> bool {
        *self != Clusters::No
    }
}

/// Who multiplies op(A) as a dense matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplier {
    /// The library's kernels.
    Own,
    /// The library's kernels for fp32 by matrix units, with factors in three parts of bf16.
    OwnInParts,
    /// cublasLt, where it is installed, else the library's kernels.
    CublasLt {
        /// Its algorithms are timed, and the fastest is taken.
        timed: bool,
        /// op(A) is stored by columns.
        a_by_columns: bool,
    },
}

/// An algorithm of the table with all that it is given to decide.
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
        /// Of row blocks.
        clusters: Clusters,
        /// Columns of a block; `None`: on a device as the model says of both widths, on the host the widest.
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
        /// Its form that gives the same bits from run to run.
        deterministic: bool,
    },
    /// SpGEMM `hash`.
    Hash {
        /// It computes the rows of Cᵀ = op(B)ᵀ·op(A)ᵀ, the columns of C, instead of the rows of C.
        transposed: bool,
    },
    /// SpGEMM `tile`.
    Tile {
        /// As of `hash`.
        transposed: bool,
    },
}

/// What an earlier analysis has decided of an algorithm, as it is kept.
#[derive(Clone, Debug)]
pub struct Decided {
    /// SpGEMM computes columns of C.
    pub transposed: bool,
    /// What orders rows, as [`Method::reorder`] says.
    pub reorder: Reorder,
    /// Columns of a block.
    pub block_width: Option<usize>,
    /// Algorithms of a vendor are timed.
    pub times_vendor: bool,
    /// The order of rows that was computed.
    pub order: Option<Arc<KeptOrder>>,
}

impl Method {
    /// What was decided of an algorithm; else what of it is none of the algorithm's. Who multiplies, and what repeats
    /// its bits, [`super::in_mode`] decides again.
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

    /// The algorithm, with nothing decided but what serves every matrix.
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

    /// `INTERNAL_ERROR`: a backend was asked to build a plan of another operation by it.
    pub fn is_of_another_operation(&self) -> Error {
        let name = self.algorithm().name();
        Error::new(Status::InternalError, format!("plan: {name} is an algorithm of another operation"))
    }

    /// Its row of the table.
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

    /// The order of rows of an algorithm that takes one.
    pub fn row_order(&self) -> Option<&RowOrder> {
        match self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => Some(order),
            _ => None,
        }
    }

    /// The same, to set it.
    pub fn row_order_mut(&mut self) -> Option<&mut RowOrder> {
        match self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => Some(order),
            _ => None,
        }
    }

    /// The clusters of an algorithm that may have them.
    pub fn clusters(&self) -> Option<&Clusters> {
        match self {
            Method::Window(clusters) | Method::Smat { clusters, .. } => Some(clusters),
            _ => None,
        }
    }

    /// The same, to set them.
    pub fn clusters_mut(&mut self) -> Option<&mut Clusters> {
        match self {
            Method::Window(clusters) | Method::Smat { clusters, .. } => Some(clusters),
            _ => None,
        }
    }

    /// What orders rows: a policy by name, [`Reorder::Auto`] where rows may be put in clusters, else
    /// [`Reorder::None`].
    pub fn reorder(&self) -> Reorder {
        match (self.row_order(), self.clusters()) {
            (Some(order), _) => order.policy,
            (_, Some(clusters)) if clusters.may_be() => Reorder::Auto,
            _ => Reorder::None,
        }
    }

    /// The order of rows that an earlier analysis has computed.
    pub fn kept_order(&self) -> Option<&Arc<KeptOrder>> {
        match (self.row_order(), self.clusters()) {
            (Some(order), _) => order.kept.as_ref(),
            (_, Some(Clusters::Kept(order))) => Some(order),
            _ => None,
        }
    }

    /// Keeps what came of a product that was built: whether rows are in clusters where these gain, and the width of
    /// blocks. The order itself is the executor's.
    pub fn settle(&mut self, reorder: Reorder, block_width: Option<usize>) {
        if let Some(clusters) = self.clusters_mut() {
            *clusters = if reorder == Reorder::Auto { Clusters::Yes } else { Clusters::No };
        }
        if let Method::Smat { width, .. } = self {
            *width = block_width;
        }
    }

    /// Without the order of rows that an analysis has computed, which an executor has.
    pub fn without_order(mut self) -> Self {
        match &mut self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => order.kept = None,
            Method::Smat { clusters: clusters @ Clusters::Kept(_), .. } => *clusters = Clusters::Yes,
            _ => {}
        }
        self
    }

    /// The same with the order of rows that an analysis has computed.
    pub fn with_order(mut self, kept: Option<KeptOrder>) -> Self {
        let Some(kept) = kept.map(Arc::new) else { return self };
        match &mut self {
            Method::Csr(order) | Method::Row(order) | Method::SpmmCsr(order) => order.kept = Some(kept),
            Method::Smat { clusters, .. } => *clusters = Clusters::Kept(kept),
            _ => {}
        }
        self
    }

    /// Columns of a block, where that was decided.
    pub fn block_width(&self) -> Option<usize> {
        match self {
            Method::Smat { width, .. } => *width,
            _ => None,
        }
    }

    /// Whether SpGEMM computes columns of C.
    pub fn is_transposed(&self) -> bool {
        matches!(self, Method::Hash { transposed: true } | Method::Tile { transposed: true })
    }

    /// Whether algorithms of a vendor are timed.
    pub fn times_vendor(&self) -> bool {
        matches!(self, Method::Dense(Multiplier::CublasLt { timed: true, .. }))
    }
}

/// One way to execute a plan.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithm, and what is decided of it.
    pub method: Method,
    /// How A is read by algorithms on CSR rows. Formats are made of the user's arrays where rows are in place there,
    /// whatever this says of the plan, which then reads neither.
    pub a: Source,
    /// How B is read (SpGEMM).
    pub b: Source,
    /// Of SpMV `csr` on rows in place: the plan keeps columns of its own in 16 bits, if these hold them. What the
    /// settings and sizes decide, so that decisions do not keep it.
    pub narrow_columns: bool,
    /// Bytes of A and the dense operands that one execute moves; 0 if the cost model
    /// cannot say.
    pub bytes: f64,
    /// Seconds that the cost model expects of one execute; 0 if it cannot say.
    pub predicted_seconds: f64,
    /// One sentence for `tarsiaPlan_getInfo`.
    pub reason: String,
}

impl Choice {
    /// An algorithm that reads its matrices so, with nothing else decided.
    pub fn new(algorithm: Algorithm, source: Source) -> Self {
        Choice::of(Method::new(algorithm), source)
    }

    /// The same of an algorithm of which more is decided.
    pub fn of(method: Method, source: Source) -> Self {
        Choice {
            method,
            a: source,
            b: source,
            narrow_columns: false,
            bytes: 0.0,
            predicted_seconds: 0.0,
            reason: String::new(),
        }
    }

    /// Of the table.
    pub fn algorithm(&self) -> Algorithm {
        self.method.algorithm()
    }

    /// What A is read from.
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
