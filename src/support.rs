//! ONE table: operation × format × value and compute types × backend ×
//! algorithm. Dispatch, NOT_SUPPORTED errors, the README's table and the tests
//! are all driven by it.
//!
//! A combination of types is a marker type that implements [`Combo`]; the list
//! [`for_each_combo`] names each once, and both the run-time table and the
//! monomorphic dispatch are expanded from that list.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};
use crate::layout::narrowing::Narrow;
use crate::types::{
    Accumulator, BackendKind, ComputeType, DataType, Element, Format, OpKind, SpgemmAlg, SpmmAlg, SpmvAlg,
    Storage,
};

/// Value types of one product: A's, the input's (x, B), the output's (y, C)
/// and the accumulator's.
pub trait Combo: Copy + Send + Sync + 'static {
    /// Values of A.
    type A: Storage<Self::Acc> + Narrow;
    /// Values of x, or of B.
    type X: Storage<Self::Acc>;
    /// Values of y, or of C.
    type Y: Storage<Self::Acc>;
    /// Products, sums, alpha and beta.
    type Acc: Accumulator;
    /// The same at run time.
    const TYPES: Types;
}

/// Value types of one product at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Values of A.
    pub a: DataType,
    /// Values of x, or of B.
    pub x: DataType,
    /// Values of y, or of C.
    pub y: DataType,
    /// Products and sums.
    pub compute: ComputeType,
}

/// Calls `$callback! { $args; Name: A X Y Acc Compute, … }` with every
/// combination of value types.
macro_rules! for_each_combo {
    ($callback:ident!($($args:tt)*)) => {
        $callback! { ($($args)*)
            F64: f64 f64 f64 f64 R64F,
            F32: f32 f32 f32 f32 R32F,
            Tf32: f32 f32 f32 f32 Tf32,
            F32F64: f32 f64 f64 f64 R64F,
            F16: f16 f16 f16 f32 R32F,
            F16F32: f16 f16 f32 f32 R32F,
            Bf16: bf16 bf16 bf16 f32 R32F,
            Bf16F32: bf16 bf16 f32 f32 R32F,
            C32: Complex32 Complex32 Complex32 Complex32 C32F,
            C64: Complex64 Complex64 Complex64 Complex64 C64F,
        }
    };
}

macro_rules! define_combos {
    (() $($name:ident: $a:ident $x:ident $y:ident $acc:ident $compute:ident,)*) => { $(
        #[doc = concat!("A ", stringify!($a), ", input ", stringify!($x), ", output ", stringify!($y), ", compute ", stringify!($compute), ".")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Combo for $name {
            type A = $a;
            type X = $x;
            type Y = $y;
            type Acc = $acc;
            const TYPES: Types = Types {
                a: <$a as Element>::TYPE,
                x: <$x as Element>::TYPE,
                y: <$y as Element>::TYPE,
                compute: ComputeType::$compute,
            };
        }
    )* };
}
for_each_combo!(define_combos!());

/// Runs `visit` with the marker type of `types`; the types must be in the
/// table (the plan has looked them up).
macro_rules! expand_dispatch {
    (($types:expr, $visitor:expr) $($name:ident: $a:ident $x:ident $y:ident $acc:ident $compute:ident,)*) => {
        match $types {
            $(t if t == $name::TYPES => $visitor.visit::<$name>(),)*
            other => Err(Error::unsupported(format!("no code for {}", other.describe()))),
        }
    };
}

/// Something generic over the combination of types.
pub trait ComboVisitor {
    /// What it makes.
    type Output;
    /// The generic code.
    fn visit<C: Combo>(self) -> Result<Self::Output>;
}

/// Run-time types to generic code.
pub fn dispatch<V: ComboVisitor>(types: Types, visitor: V) -> Result<V::Output> {
    for_each_combo!(expand_dispatch!(types, visitor))
}

impl Types {
    /// The same without [`ComputeType::is_pedantic`], as the table has them.
    pub fn plain(self) -> Self {
        Types { compute: self.compute.plain(), ..self }
    }

    /// `A fp16, x fp16, y fp32, compute fp32`.
    pub fn describe(&self) -> String {
        format!(
            "A {}, input {}, output {}, compute {}",
            self.a.short(),
            self.x.short(),
            self.y.short(),
            self.compute.short()
        )
    }
}

/// Algorithms of all operations, as the table names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SpMV on CSR rows.
    Csr,
    /// SpMV on slices of sorted rows, SELL-C-σ.
    Sell,
    /// SpMV on equal tiles of nonzeros.
    Stream,
    /// SpMV on rows in classes by length, DASP.
    Dasp,
    /// SpMV on blocks of 8 × 4 or 4 × 4 with bit masks.
    MaskBlock,
    /// SpMM on CSR rows.
    Row,
    /// SpMM on windows of rows with the columns that they have.
    Window,
    /// SpMM on dense blocks, SMaT.
    Smat,
    /// SpMM on all of op(A), zeros and all.
    Dense,
    /// SpMM on slices of sorted rows, for few columns.
    SpmmSell,
    /// SpMM on sorted columns in blocks, with segment sums, Swift.
    Swift,
    /// SpMM on CSR rows dealt out to the warps of a block.
    SpmmCsr,
    /// SpGEMM with hash or dense accumulators.
    Hash,
    /// SpGEMM on sparse tiles, TileSpGEMM.
    Tile,
}

impl Algorithm {
    /// Lower-case name, as in file names.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Csr => "csr",
            Algorithm::Sell => "sell",
            Algorithm::Stream => "stream",
            Algorithm::Dasp => "dasp",
            Algorithm::MaskBlock => "mask_block",
            Algorithm::Row => "row",
            Algorithm::Window => "window",
            Algorithm::Smat => "smat",
            Algorithm::Dense => "dense",
            Algorithm::SpmmSell => "sell",
            Algorithm::Swift => "swift",
            Algorithm::SpmmCsr => "csr",
            Algorithm::Hash => "hash",
            Algorithm::Tile => "tile",
        }
    }

    /// Its number in the C enum of its operation.
    pub fn code(self) -> i32 {
        match self {
            Algorithm::Csr => SpmvAlg::Csr.code(),
            Algorithm::Sell => SpmvAlg::Sell.code(),
            Algorithm::Stream => SpmvAlg::Stream.code(),
            Algorithm::Dasp => SpmvAlg::Dasp.code(),
            Algorithm::MaskBlock => SpmvAlg::MaskBlock.code(),
            Algorithm::Row => SpmmAlg::Row.code(),
            Algorithm::Window => SpmmAlg::Window.code(),
            Algorithm::Smat => SpmmAlg::Smat.code(),
            Algorithm::Dense => SpmmAlg::Dense.code(),
            Algorithm::SpmmSell => SpmmAlg::Sell.code(),
            Algorithm::Swift => SpmmAlg::Swift.code(),
            Algorithm::SpmmCsr => SpmmAlg::Csr.code(),
            Algorithm::Hash => SpgemmAlg::Hash.code(),
            Algorithm::Tile => SpgemmAlg::Tile.code(),
        }
    }

    /// Whether it is chosen only where op(A)'s pattern has been looked at, or where
    /// the caller names it: shapes do not say what it would cost.
    pub fn needs_survey(self) -> bool {
        use Algorithm::*;
        matches!(self, Stream | Dasp | MaskBlock | Window | Smat | Dense | SpmmSell | Swift | SpmmCsr | Tile)
    }

    /// Whether a plan takes it only where the caller names it: nothing says what it would cost,
    /// or its bits differ from run to run.
    pub fn only_by_name(self) -> bool {
        matches!(self, Algorithm::Swift | Algorithm::SpmmCsr)
    }

    /// Whether it takes rows in the order of a [`Reorder`](crate::types::Reorder) by name.
    pub fn takes_orders(self) -> bool {
        matches!(self, Algorithm::Csr | Algorithm::Row | Algorithm::SpmmCsr)
    }

    /// Whether its products and sums of these types (of the table) are IEEE operations of the compute type: exact,
    /// fused (FMA) or rounded once. Tensor cores are for doubles alone: their sums of halves cut the addends
    /// off, and `window` multiplies fp32 in three parts of bf16. `dense` and `swift` are so on a device in the
    /// form that deterministic mode takes, without cublasLt and without atomics.
    pub fn is_pedantic(self, backend: BackendKind, types: Types) -> bool {
        if !matches!(types.compute, ComputeType::R32F | ComputeType::R64F) {
            return false;
        }
        match self {
            _ if backend != BackendKind::Cuda => true,
            Algorithm::Dasp | Algorithm::Dense => types.a.size() > 2,
            Algorithm::Window | Algorithm::Smat => types.compute == ComputeType::R64F,
            _ => true,
        }
    }

    /// Whether it runs on a copy that is neither the user's arrays nor canonical CSR.
    pub fn is_converted(self) -> bool {
        use Algorithm::*;
        matches!(self, Sell | Stream | Dasp | MaskBlock | Window | Smat | Dense | SpmmSell | Swift | Tile)
    }

    /// From SpMV's enum; `None` lets the library choose.
    pub fn from_spmv(alg: SpmvAlg) -> Option<Self> {
        match alg {
            SpmvAlg::Default => None,
            SpmvAlg::Csr => Some(Algorithm::Csr),
            SpmvAlg::Sell => Some(Algorithm::Sell),
            SpmvAlg::Stream => Some(Algorithm::Stream),
            SpmvAlg::Dasp => Some(Algorithm::Dasp),
            SpmvAlg::MaskBlock => Some(Algorithm::MaskBlock),
        }
    }

    /// From SpMM's enum.
    pub fn from_spmm(alg: SpmmAlg) -> Option<Self> {
        match alg {
            SpmmAlg::Default => None,
            SpmmAlg::Row => Some(Algorithm::Row),
            SpmmAlg::Window => Some(Algorithm::Window),
            SpmmAlg::Smat => Some(Algorithm::Smat),
            SpmmAlg::Dense => Some(Algorithm::Dense),
            SpmmAlg::Sell => Some(Algorithm::SpmmSell),
            SpmmAlg::Swift => Some(Algorithm::Swift),
            SpmmAlg::Csr => Some(Algorithm::SpmmCsr),
        }
    }

    /// From SpGEMM's enum.
    pub fn from_spgemm(alg: SpgemmAlg) -> Option<Self> {
        match alg {
            SpgemmAlg::Default => None,
            SpgemmAlg::Hash => Some(Algorithm::Hash),
            SpgemmAlg::Tile => Some(Algorithm::Tile),
        }
    }
}

/// One row of the table: everything in the lists, in every combination.
/// All rows take op N, T and C, index base 0 and 1, (offset, index) types
/// 32/32, 64/32 and 64/64, and any order and ld of dense matrices.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Operation.
    pub op: OpKind,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Formats of A (SpGEMM: of A, B and C).
    pub formats: &'static [Format],
    /// Value and compute types.
    pub types: &'static [Types],
    /// Backends.
    pub backends: &'static [BackendKind],
    /// The same bits from run to run, whatever the number of threads; else only of a plan that
    /// is analyzed in deterministic mode.
    pub deterministic: bool,
}

const FP: [Types; 9] = [
    F64::TYPES,
    F32::TYPES,
    F32F64::TYPES,
    F16::TYPES,
    F16F32::TYPES,
    Bf16::TYPES,
    Bf16F32::TYPES,
    C32::TYPES,
    C64::TYPES,
];
// TF32 pays only where tensor cores multiply, so SpMV does not offer it.
const FP_AND_TF32: [Types; 10] = [FP[0], FP[1], Tf32::TYPES, FP[2], FP[3], FP[4], FP[5], FP[6], FP[7], FP[8]];
const REAL: [Types; 8] = [FP[0], FP[1], Tf32::TYPES, FP[2], FP[3], FP[4], FP[5], FP[6]];
const HALVES: [Types; 4] = [F16::TYPES, F16F32::TYPES, Bf16::TYPES, Bf16F32::TYPES];
const WINDOW: [Types; 8] = [FP[0], FP[1], Tf32::TYPES, FP[2], HALVES[0], HALVES[1], HALVES[2], HALVES[3]];
const SMAT: [Types; 6] = [HALVES[0], HALVES[1], HALVES[2], HALVES[3], Tf32::TYPES, F64::TYPES];
const REAL_AND_TF32: [Types; 7] = [FP[0], FP[1], Tf32::TYPES, HALVES[0], HALVES[1], HALVES[2], HALVES[3]];
const SPGEMM: [Types; 6] = [F64::TYPES, F32::TYPES, F16F32::TYPES, Bf16F32::TYPES, C32::TYPES, C64::TYPES];
const ALL_FORMATS: [Format; 4] = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr];
const EVERYWHERE: [BackendKind; 3] = [BackendKind::Host, BackendKind::Cuda, BackendKind::Reference];

/// The table.
pub const TABLE: &[Row] = &[
    Row {
        op: OpKind::Spmv,
        algorithm: Algorithm::Csr,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmv,
        algorithm: Algorithm::Sell,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmv,
        algorithm: Algorithm::Stream,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmv,
        algorithm: Algorithm::Dasp,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmv,
        algorithm: Algorithm::MaskBlock,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Row,
        formats: &ALL_FORMATS,
        types: &FP_AND_TF32,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Window,
        formats: &ALL_FORMATS,
        types: &WINDOW,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Smat,
        formats: &ALL_FORMATS,
        types: &SMAT,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Dense,
        formats: &ALL_FORMATS,
        types: &REAL_AND_TF32,
        backends: &[BackendKind::Host, BackendKind::Reference],
        deterministic: true,
    },
    // Outside of deterministic mode by cublasLt, whose bits depend on the version that is installed.
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Dense,
        formats: &ALL_FORMATS,
        types: &REAL_AND_TF32,
        backends: &[BackendKind::Cuda],
        deterministic: false,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::SpmmSell,
        formats: &ALL_FORMATS,
        types: &REAL,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Swift,
        formats: &ALL_FORMATS,
        types: &[F64::TYPES, F32::TYPES],
        backends: &[BackendKind::Host, BackendKind::Reference],
        deterministic: true,
    },
    // In deterministic mode in another form, which is.
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::Swift,
        formats: &ALL_FORMATS,
        types: &[F64::TYPES, F32::TYPES],
        backends: &[BackendKind::Cuda],
        deterministic: false,
    },
    Row {
        op: OpKind::Spmm,
        algorithm: Algorithm::SpmmCsr,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spgemm,
        algorithm: Algorithm::Hash,
        formats: &[Format::Csr, Format::Csc],
        types: &SPGEMM,
        backends: &EVERYWHERE,
        deterministic: true,
    },
    Row {
        op: OpKind::Spgemm,
        algorithm: Algorithm::Tile,
        formats: &[Format::Csr, Format::Csc, Format::Tile],
        types: &SPGEMM,
        backends: &EVERYWHERE,
        deterministic: true,
    },
];

/// Longest message about types, in bytes: the buffer of 512 that the header names for
/// tarsiaGetLastErrorMessage holds it with its end.
const MESSAGE_BYTES: usize = 511;

/// What a plan asks the table for.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Operation.
    pub op: OpKind,
    /// Format of A.
    pub format: Format,
    /// Value and compute types.
    pub types: Types,
    /// Backend.
    pub backend: BackendKind,
    /// Algorithm, `None` for the library's choice.
    pub algorithm: Option<Algorithm>,
}

/// Rows that serve a query; `NOT_SUPPORTED` with the first reason why none
/// does (backend, algorithm, format, types, pedantic arithmetic, in this order).
pub fn find(query: &Query) -> Result<Vec<&'static Row>> {
    let op = query.op.short();
    let mut rows: Vec<&Row> = TABLE.iter().filter(|row| row.op == query.op).collect();
    let mut narrow = |keep: &dyn Fn(&Row) -> bool, reason: String| {
        rows.retain(|row| keep(row));
        if rows.is_empty() {
            Err(Error::unsupported(reason))
        } else {
            Ok(())
        }
    };
    narrow(
        &|row| row.backends.contains(&query.backend),
        format!("handle: {op} has no code for backend {}", query.backend.c_name()),
    )?;
    if query.algorithm.is_none() {
        narrow(&|row| !row.algorithm.only_by_name(), format!("alg: {op} takes an algorithm by name only"))?;
    }
    if let Some(algorithm) = query.algorithm {
        narrow(
            &|row| row.algorithm == algorithm,
            format!("alg: {op} has no algorithm {} on backend {}", algorithm.name(), query.backend.c_name()),
        )?;
    }
    narrow(
        &|row| row.formats.contains(&query.format),
        format!("A: {op} does not take format {}", query.format.short()),
    )?;
    let types = query.types.plain();
    let mut fitting: Vec<&Row> = rows.iter().filter(|row| row.types.contains(&types)).copied().collect();
    if fitting.is_empty() {
        return Err(Error::unsupported(types_refused(query, &rows)));
    }
    if query.types.compute.is_pedantic() {
        fitting.retain(|row| row.algorithm.is_pedantic(query.backend, types));
        if fitting.is_empty() {
            return Err(Error::unsupported(format!(
                "computeType: {op}{} takes no {}: it multiplies {} on tensor cores, whose products or sums are not \
                 those of IEEE 754; algorithm DEFAULT chooses one that does without",
                query.algorithm.map_or(String::new(), |algorithm| format!(" by algorithm {}", algorithm.name())),
                query.types.compute.c_name(),
                types.a.short(),
            )));
        }
    }
    Ok(fitting)
}

/// Why none of the rows that are left for the query's backend, algorithm and format serves it: no row
/// takes its types. Names those that they take, the closest first, as many as a message holds.
fn types_refused(query: &Query, rows: &[&Row]) -> String {
    let mut message = format!(
        "types: {}{} does not take {} ({}){}; the closest that it takes: ",
        query.op.short(),
        query.algorithm.map_or(String::new(), |algorithm| format!(" by algorithm {}", algorithm.name())),
        query.types.describe(),
        match query.op {
            OpKind::Spmv => "valueType of A, xType, yType, computeType",
            OpKind::Spmm => "valueType of A, bType, cType, computeType",
            OpKind::Spgemm => "valueType of A and of B, C by computeType",
        },
        match query.types.compute.is_pedantic() && query.types.a.is_complex() {
            true => ", since pedantic types are for real values",
            false => "",
        },
    );
    let closest = closest(query, rows);
    if closest.is_empty() {
        message.push_str("none by pedantic arithmetic");
    }
    let separator = "; ";
    for (at, types) in closest.iter().enumerate() {
        let text = types.describe();
        let left = closest.len() - at;
        let more = format!("{separator}and {left} more");
        // Room for the count of those that come after this one.
        if at > 0 && message.len() + separator.len() + text.len() + more.len() > MESSAGE_BYTES {
            message.push_str(&more);
            break;
        }
        message.push_str(if at > 0 { separator } else { "" });
        message.push_str(&text);
    }
    message
}

/// What rows offer, each combination once: those with the same type of A if there are any, otherwise
/// all; those first that differ from the query's in the fewest places. Where pedantic arithmetic of real values is
/// asked for, combinations that have it.
fn closest(query: &Query, rows: &[&Row]) -> Vec<Types> {
    let types = &query.types;
    let is_pedantic = types.compute.is_pedantic() && !types.a.is_complex();
    let mut offered: Vec<Types> = Vec::new();
    for row in rows {
        for &plain in row.types {
            let combination = match plain.compute.pedantic() {
                _ if !is_pedantic => plain,
                Some(compute) if row.algorithm.is_pedantic(query.backend, plain) => {
                    Types { compute, ..plain }
                }
                _ => continue,
            };
            if !offered.contains(&combination) {
                offered.push(combination);
            }
        }
    }
    if offered.iter().any(|other| other.a == types.a) {
        offered.retain(|other| other.a == types.a);
    }
    let differences = |other: &Types| {
        let differs = [other.a != types.a, other.x != types.x, other.y != types.y];
        differs.iter().filter(|differs| **differs).count() + usize::from(other.compute != types.compute)
    };
    offered.sort_by_key(differences);
    offered
}

/// The table as Markdown, as it stands in the README.
pub fn markdown() -> String {
    let mut out = String::from(
        "| operation | algorithm | formats | types (A, x or B → y or C; compute) | backends | deterministic | pedantic, of real types |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        let formats: Vec<_> = row.formats.iter().map(|f| f.short()).collect();
        let types: Vec<_> = row.types.iter().map(types_text).collect();
        let backends: Vec<_> = row
            .backends
            .iter()
            .map(|b| b.c_name().trim_start_matches("TARSIA_BACKEND_").to_lowercase())
            .collect();
        out.push_str(&format!(
            "| {} | `{}` | {} | {} | {} | {} | {} |\n",
            row.op.short(),
            row.algorithm.name(),
            formats.join(", "),
            types.join(" · "),
            backends.join(", "),
            if row.deterministic { "yes" } else { "in deterministic mode" },
            pedantic_text(row)
        ));
    }
    out
}

/// Types of a row of the table, as the README has them.
fn types_text(t: &Types) -> String {
    if t.a == t.x && t.x == t.y && t.compute.scalar() == t.a && t.compute != ComputeType::Tf32 {
        t.a.short().to_string()
    } else {
        format!("{}, {} → {}; {}", t.a.short(), t.x.short(), t.y.short(), t.compute.short())
    }
}

/// For which of its real types a row takes TARSIA_COMPUTE_32F_PEDANTIC or 64F_PEDANTIC, as the README has it.
fn pedantic_text(row: &Row) -> String {
    let asked = |t: &&Types| matches!(t.compute, ComputeType::R32F | ComputeType::R64F);
    let takes = |t: &&Types| row.backends.iter().all(|&backend| row.algorithm.is_pedantic(backend, **t));
    let all: Vec<_> = row.types.iter().filter(asked).collect();
    let taken: Vec<_> = all.iter().copied().filter(|t| takes(t)).map(types_text).collect();
    let host = if row.backends.contains(&BackendKind::Host) { "host all; cuda " } else { "" };
    match taken.len() {
        count if count == all.len() => "yes".into(),
        0 => format!("{host}none"),
        _ => format!("{host}{}", taken.join(" · ")),
    }
}
