//! THE table of algorithms: a row each, with its names, what it takes and what sets it apart. NOT_SUPPORTED
//! errors, what plans may choose among, the table of docs/formats-and-types.md and the tests are driven by it.

use crate::error::{Error, Result};
use crate::support::{Bf16, Bf16F32, Combo, Tf32, Types, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{BackendKind, ComputeType, Format, OpKind, SpgemmAlg, SpmmAlg, SpmvAlg};

/// One row of the table. The algorithm takes all combinations of these formats, types and backends, with
/// op N, T and C, index base 0 and 1, (offset, index) types 32/32, 64/32 and 64/64, and any order and ld of
/// dense matrices.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Whose row it is.
    pub algorithm: Algorithm,
    /// Lower-case name, as in file names; the C enumerator ends with it.
    pub name: &'static str,
    /// Operation.
    pub op: OpKind,
    /// Number in the C enum of the operation's algorithms.
    pub code: i32,
    /// Formats of A (SpGEMM: of A, B and C).
    pub formats: &'static [Format],
    /// Value and compute types.
    pub types: &'static [Types],
    /// Backends.
    pub backends: &'static [BackendKind],
    /// Backends on which it gives the same bits from run to run, whatever the number of threads. On others it does
    /// in plans that are analyzed in deterministic mode.
    pub deterministic: &'static [BackendKind],
    /// Types of which products or sums on CUDA are not IEEE operations of the compute type: exact, fused (FMA) or
    /// rounded once.
    pub not_ieee_on_cuda: &'static [Types],
    /// It runs on a copy that is neither the user's arrays nor canonical CSR.
    pub is_converted: bool,
    /// It is chosen only where op(A)'s pattern has been looked at, or where the caller names it: shapes do not
    /// say what it would cost.
    pub needs_survey: bool,
    /// A plan takes it only where the caller names it: nothing says what it would cost, or its bits differ from
    /// run to run.
    pub only_by_name: bool,
    /// It takes rows in the order of a [`Reorder`](crate::types::Reorder) by name.
    pub takes_orders: bool,
    /// Its executes read the values in the user's arrays, where a plan asks for that (tarsiaPlan_setValuesInPlace).
    /// An operation has at most one such algorithm.
    pub values_in_place: bool,
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
const HALVES_AND_F32: [Types; 5] = [HALVES[0], HALVES[1], HALVES[2], HALVES[3], F32::TYPES];
const ALL_FORMATS: [Format; 4] = [Format::Csr, Format::Csc, Format::Coo, Format::Bsr];
const EVERYWHERE: [BackendKind; 3] = [BackendKind::Host, BackendKind::Cuda, BackendKind::Reference];
const CPU: [BackendKind; 2] = [BackendKind::Host, BackendKind::Reference];

/// Makes [`Algorithm`] and [`TABLE`] of the rows below: what a row does not say is as [`plain`] has it,
/// or for SpGEMM as [`spgemm`].
macro_rules! table {
    ($($(#[$doc:meta])* $algorithm:ident = $operation:ident($alg:expr, $name:literal) {
        $($field:ident: $value:expr),* $(,)?
    })*) => {
        /// Algorithms of all operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Algorithm { $($(#[$doc])* $algorithm,)* }

        /// The table, in the order of [`Algorithm`].
        pub const TABLE: &[Row] = &[$(Row {
            $($field: $value,)*
            ..$operation(Algorithm::$algorithm, $alg, $name)
        },)*];
    };
}

/// A row as most are.
const fn plain(algorithm: Algorithm, name: &'static str, op: OpKind, code: i32) -> Row {
    Row {
        algorithm,
        name,
        op,
        code,
        formats: &ALL_FORMATS,
        types: &FP,
        backends: &EVERYWHERE,
        deterministic: &EVERYWHERE,
        not_ieee_on_cuda: &[],
        is_converted: false,
        needs_survey: false,
        only_by_name: false,
        takes_orders: false,
        values_in_place: false,
    }
}

const fn spmv(algorithm: Algorithm, alg: SpmvAlg, name: &'static str) -> Row {
    plain(algorithm, name, OpKind::Spmv, alg as i32)
}

const fn spmm(algorithm: Algorithm, alg: SpmmAlg, name: &'static str) -> Row {
    plain(algorithm, name, OpKind::Spmm, alg as i32)
}

const fn spgemm(algorithm: Algorithm, alg: SpgemmAlg, name: &'static str) -> Row {
    let row = plain(algorithm, name, OpKind::Spgemm, alg as i32);
    Row { formats: &[Format::Csr, Format::Csc], types: &SPGEMM, ..row }
}

table! {
    /// SpMV on CSR rows.
    Csr = spmv(SpmvAlg::Csr, "csr") { takes_orders: true, values_in_place: true }

    /// SpMV on slices of sorted rows, SELL-C-σ.
    Sell = spmv(SpmvAlg::Sell, "sell") { is_converted: true }

    /// SpMV on equal tiles of nonzeros.
    Stream = spmv(SpmvAlg::Stream, "stream") { is_converted: true, needs_survey: true }

    /// SpMV on rows in classes by length, DASP.
    Dasp = spmv(SpmvAlg::Dasp, "dasp") {
        // Tensor cores cut the addends of sums of halves off; doubles they add as IEEE says.
        not_ieee_on_cuda: &HALVES,
        is_converted: true,
        needs_survey: true,
    }

    /// SpMV on blocks of 8 × 4 or 4 × 4 with bit masks.
    MaskBlock = spmv(SpmvAlg::MaskBlock, "mask_block") { is_converted: true, needs_survey: true }

    /// SpMM on CSR rows.
    Row = spmm(SpmmAlg::Row, "row") { types: &FP_AND_TF32, takes_orders: true, values_in_place: true }

    /// SpMM on windows of rows with the columns that they have.
    Window = spmm(SpmmAlg::Window, "window") {
        types: &WINDOW,
        // Halves as in `dasp`; fp32 is multiplied in three parts of bf16.
        not_ieee_on_cuda: &HALVES_AND_F32,
        is_converted: true,
        needs_survey: true,
    }

    /// SpMM on dense blocks, SMaT.
    Smat = spmm(SpmmAlg::Smat, "smat") {
        types: &SMAT,
        // It takes no fp32 (TARSIA_COMPUTE_32F) today; its kernels would multiply that as `window` does.
        not_ieee_on_cuda: &HALVES_AND_F32,
        is_converted: true,
        needs_survey: true,
    }

    /// SpMM on all of op(A), zeros and all.
    Dense = spmm(SpmmAlg::Dense, "dense") {
        types: &REAL_AND_TF32,
        // On CUDA by cublasLt outside of deterministic mode: its bits depend on the version that is installed.
        deterministic: &CPU,
        // In the form that deterministic mode takes, without cublasLt.
        not_ieee_on_cuda: &HALVES,
        is_converted: true,
        needs_survey: true,
    }

    /// SpMM on slices of sorted rows, for few columns.
    SpmmSell = spmm(SpmmAlg::Sell, "sell") { types: &REAL, is_converted: true, needs_survey: true }

    /// SpMM on sorted columns in blocks, with segment sums, Swift.
    Swift = spmm(SpmmAlg::Swift, "swift") {
        types: &[F64::TYPES, F32::TYPES],
        // On CUDA its sums meet in C by atomics; in deterministic mode it has another form, without.
        deterministic: &CPU,
        is_converted: true,
        needs_survey: true,
        only_by_name: true,
    }

    /// SpMM on CSR rows dealt out to the warps of a block.
    SpmmCsr = spmm(SpmmAlg::Csr, "csr") { needs_survey: true, only_by_name: true, takes_orders: true }

    /// SpGEMM with hash or dense accumulators.
    Hash = spgemm(SpgemmAlg::Hash, "hash") { values_in_place: true }

    /// SpGEMM on sparse tiles, TileSpGEMM.
    Tile = spgemm(SpgemmAlg::Tile, "tile") {
        formats: &[Format::Csr, Format::Csc, Format::Tile],
        is_converted: true,
        needs_survey: true,
    }
}

impl Algorithm {
    /// Its row of the table.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The algorithm of an operation with this number in the C enum; `None` lets the library choose, or there is none.
    pub fn from_code(op: OpKind, code: i32) -> Option<Self> {
        TABLE.iter().find(|row| row.op == op && row.code == code).map(|row| row.algorithm)
    }

    /// From SpMV's enum; `None` lets the library choose.
    pub fn from_spmv(alg: SpmvAlg) -> Option<Self> {
        Self::from_code(OpKind::Spmv, alg.code())
    }

    /// From SpMM's enum.
    pub fn from_spmm(alg: SpmmAlg) -> Option<Self> {
        Self::from_code(OpKind::Spmm, alg.code())
    }

    /// From SpGEMM's enum.
    pub fn from_spgemm(alg: SpgemmAlg) -> Option<Self> {
        Self::from_code(OpKind::Spgemm, alg.code())
    }

    /// [`Row::name`].
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// [`Row::code`].
    pub fn code(self) -> i32 {
        self.row().code
    }

    /// [`Row::is_converted`].
    pub fn is_converted(self) -> bool {
        self.row().is_converted
    }

    /// [`Row::needs_survey`].
    pub fn needs_survey(self) -> bool {
        self.row().needs_survey
    }

    /// [`Row::takes_orders`].
    pub fn takes_orders(self) -> bool {
        self.row().takes_orders
    }

    /// Whether its products and sums of these types (of the table) are IEEE operations of the compute type alone, as
    /// a pedantic compute type asks for. `dense` and `swift` are so on a device in the form that deterministic
    /// mode takes, without cublasLt and without atomics.
    pub fn is_pedantic(self, backend: BackendKind, types: Types) -> bool {
        matches!(types.compute, ComputeType::R32F | ComputeType::R64F)
            && (backend != BackendKind::Cuda || !self.row().not_ieee_on_cuda.contains(&types))
    }
}

/// What messages call an operation, and the arguments of its createPlan that say its types.
struct Names {
    op: OpKind,
    short: &'static str,
    types: &'static str,
}

/// A row for each operation.
const NAMES: &[Names] = &[
    Names { op: OpKind::Spmv, short: "SpMV", types: "valueType of A, xType, yType, computeType" },
    Names { op: OpKind::Spmm, short: "SpMM", types: "valueType of A, bType, cType, computeType" },
    Names { op: OpKind::Spgemm, short: "SpGEMM", types: "valueType of A and of B, C by computeType" },
];

impl OpKind {
    fn names(self) -> &'static Names {
        NAMES.iter().find(|names| names.op == self).expect("each operation has a row")
    }

    /// `SpMV`, `SpMM`, `SpGEMM`.
    pub fn short(self) -> &'static str {
        self.names().short
    }
}

/// Longest message about types, in bytes: the buffer of 512 that the header names for
/// tarsiaGetLastErrorMessage holds it with its end.
const MESSAGE_BYTES: usize = 511;

/// The operation, format, types and backend of a plan, and the algorithm if the caller named one.
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

impl Query {
    /// Rows that serve it; `NOT_SUPPORTED` with the first reason why none
    /// does (backend, algorithm, format, types, pedantic arithmetic, in this order).
    pub fn rows(&self) -> Result<Vec<&'static Row>> {
        let op = self.op.short();
        let mut rows: Vec<&Row> = TABLE.iter().filter(|row| row.op == self.op).collect();
        let mut narrow = |keep: &dyn Fn(&Row) -> bool, reason: String| {
            rows.retain(|row| keep(row));
            if rows.is_empty() {
                Err(Error::unsupported(reason))
            } else {
                Ok(())
            }
        };
        narrow(
            &|row| row.backends.contains(&self.backend),
            format!("handle: {op} has no code for backend {}", self.backend.c_name()),
        )?;
        if self.algorithm.is_none() {
            narrow(&|row| !row.only_by_name, format!("alg: {op} takes an algorithm by name only"))?;
        }
        if let Some(algorithm) = self.algorithm {
            narrow(
                &|row| row.algorithm == algorithm,
                format!(
                    "alg: {op} has no algorithm {} on backend {}",
                    algorithm.name(),
                    self.backend.c_name()
                ),
            )?;
        }
        narrow(
            &|row| row.formats.contains(&self.format),
            format!("A: {op} does not take format {}", self.format.short()),
        )?;
        let types = self.types.plain();
        let mut fitting: Vec<&Row> = rows.iter().filter(|row| row.types.contains(&types)).copied().collect();
        if fitting.is_empty() {
            return Err(Error::unsupported(types_refused(self, &rows)));
        }
        if self.types.compute.is_pedantic() {
            fitting.retain(|row| row.algorithm.is_pedantic(self.backend, types));
            if fitting.is_empty() {
                return Err(Error::unsupported(format!(
                    "computeType: {op}{} takes no {}: it multiplies {} on tensor cores, whose products or sums are not \
                     those of IEEE 754; algorithm DEFAULT chooses one that does without",
                    self.algorithm.map_or(String::new(), |algorithm| format!(" by algorithm {}", algorithm.name())),
                    self.types.compute.c_name(),
                    types.a.short(),
                )));
            }
        }
        Ok(fitting)
    }
}

/// Why none of the rows that are left for the query's backend, algorithm and format serves it: no row
/// takes its types. Names those that they take, the closest first, as many as a message holds.
fn types_refused(query: &Query, rows: &[&Row]) -> String {
    let mut message = format!(
        "types: {}{} does not take {} ({}){}; the closest that it takes: ",
        query.op.short(),
        query.algorithm.map_or(String::new(), |algorithm| format!(" by algorithm {}", algorithm.name())),
        query.types.describe(),
        query.op.names().types,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each C enumerator but DEFAULT has a row, whose name it ends with, and each row one enumerator.
    #[test]
    fn rows_are_those_of_the_c_enums() {
        let c_enums = [
            (OpKind::Spmv, "TARSIA_SPMV_ALG_", SpmvAlg::ALL.iter().map(|a| (a.code(), a.c_name())).collect()),
            (OpKind::Spmm, "TARSIA_SPMM_ALG_", SpmmAlg::ALL.iter().map(|a| (a.code(), a.c_name())).collect()),
            (
                OpKind::Spgemm,
                "TARSIA_SPGEMM_ALG_",
                SpgemmAlg::ALL.iter().map(|a| (a.code(), a.c_name())).collect::<Vec<_>>(),
            ),
        ];
        let mut found = Vec::new();
        for (op, prefix, enumerators) in c_enums {
            for (code, c_name) in enumerators {
                let algorithm = Algorithm::from_code(op, code);
                let name = algorithm.map_or("default", Algorithm::name);
                assert_eq!(c_name.strip_prefix(prefix), Some(name.to_uppercase().as_str()), "{op:?}");
                found.extend(algorithm);
            }
        }
        let all: Vec<_> = TABLE.iter().map(|row| row.algorithm).collect();
        assert_eq!(found, all, "an algorithm that C cannot name, or rows in another order");
        assert!(TABLE.iter().all(|row| row.algorithm.row().algorithm == row.algorithm));
    }
}
