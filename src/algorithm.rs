//! The table of algorithms: one row per algorithm, with its names, the formats, types and backends that it
//! supports, and its properties. NOT_SUPPORTED errors, the choice of plans, the table of
//! docs/formats-and-types.md and the tests all read this table.

use crate::error::{Error, Result};
use crate::support::{Bf16, Bf16F32, Combo, Tf32, Types, C32, C64, F16, F16F32, F32, F32F64, F64};
use crate::types::{BackendKind, ComputeType, Format, OpKind, SpgemmAlg, SpmmAlg, SpmvAlg};

/// One row of the table. The algorithm supports every combination of these formats, types and backends, with
/// op N, T and C, index base 0 and 1, (offset, index) types 32/32, 64/32 and 64/64, and any order and leading
/// dimension of dense matrices.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The algorithm that the row describes.
    pub algorithm: Algorithm,
    /// Lower-case name, as in file names; the C enumerator ends with it.
    pub name: &'static str,
    /// Operation that the algorithm computes.
    pub op: OpKind,
    /// Value in the C enum of the operation's algorithms.
    pub code: i32,
    /// Supported formats of A (for SpGEMM: of A, B and C).
    pub formats: &'static [Format],
    /// Supported value and compute types.
    pub types: &'static [Types],
    /// Backends that implement the algorithm.
    pub backends: &'static [BackendKind],
    /// Backends on which results have the same bits from run to run, whatever the number of threads. On other
    /// backends that holds only for plans that are analyzed in deterministic mode.
    pub deterministic: &'static [BackendKind],
    /// Types for which products or sums on CUDA are not IEEE operations of the compute type (exact, fused by
    /// FMA, or rounded once).
    pub not_ieee_on_cuda: &'static [Types],
    /// True if the algorithm runs on a converted copy that is neither the user's arrays nor canonical CSR.
    pub is_converted: bool,
    /// True if the library chooses the algorithm only after it has gathered pattern statistics of op(A),
    /// because the shape alone does not predict its cost. A caller may still name it.
    pub needs_statistics: bool,
    /// True if the algorithm is used only when the caller names it: its cost cannot be predicted, or its bits
    /// differ from run to run.
    pub only_by_name: bool,
    /// True if the algorithm can process rows in the order of a named [`Reorder`](crate::types::Reorder).
    pub takes_orders: bool,
    /// True if executes can read the values in the user's array, when the plan asks for that
    /// (tarsiaPlan_setValuesInPlace). An operation has at most one such algorithm.
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
// TF32 pays off only on tensor cores, so SpMV does not offer it.
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

/// Defines [`Algorithm`] and [`TABLE`] from the rows below. A field that a row does not name has the default
/// of [`plain`], or of [`spgemm`] for SpGEMM.
macro_rules! table {
    ($($(#[$doc:meta])* $algorithm:ident = $operation:ident($alg:expr, $name:literal) {
        $($field:ident: $value:expr),* $(,)?
    })*) => {
        /// Algorithms of all operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Algorithm { $($(#[$doc])* $algorithm,)* }

        /// The table of algorithms, in the order of [`Algorithm`].
        pub const TABLE: &[Row] = &[$(Row {
            $($field: $value,)*
            ..$operation(Algorithm::$algorithm, $alg, $name)
        },)*];
    };
}

/// Row with the most common properties, which the rows of the table override.
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
        needs_statistics: false,
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
    /// SpMV with the rows in CSR.
    Csr = spmv(SpmvAlg::Csr, "csr") { takes_orders: true, values_in_place: true }

    /// SpMV with slices of rows sorted by length, SELL-C-σ.
    Sell = spmv(SpmvAlg::Sell, "sell") { is_converted: true }

    /// SpMV with tiles of equally many nonzeros.
    Stream = spmv(SpmvAlg::Stream, "stream") { is_converted: true, needs_statistics: true }

    /// SpMV with rows in classes by length, DASP.
    Dasp = spmv(SpmvAlg::Dasp, "dasp") {
        // Tensor cores truncate the addends of sums of 16-bit types; sums of doubles follow IEEE.
        not_ieee_on_cuda: &HALVES,
        is_converted: true,
        needs_statistics: true,
    }

    /// SpMV with blocks of 8 × 4 or 4 × 4 whose entries are marked in bit masks.
    MaskBlock = spmv(SpmvAlg::MaskBlock, "mask_block") { is_converted: true, needs_statistics: true }

    /// SpMM with the rows in CSR.
    Row = spmm(SpmmAlg::Row, "row") { types: &FP_AND_TF32, takes_orders: true, values_in_place: true }

    /// SpMM with windows: neighbouring rows with the columns that any of them has.
    Window = spmm(SpmmAlg::Window, "window") {
        types: &WINDOW,
        // 16-bit types as in `dasp`; an fp32 factor is split into three bf16 numbers.
        not_ieee_on_cuda: &HALVES_AND_F32,
        is_converted: true,
        needs_statistics: true,
    }

    /// SpMM with dense blocks, SMaT.
    Smat = spmm(SpmmAlg::Smat, "smat") {
        types: &SMAT,
        // The row has no fp32 (TARSIA_COMPUTE_32F) today; the kernels would split it as those of `window` do.
        not_ieee_on_cuda: &HALVES_AND_F32,
        is_converted: true,
        needs_statistics: true,
    }

    /// SpMM with op(A) stored as a dense matrix, zeros included.
    Dense = spmm(SpmmAlg::Dense, "dense") {
        types: &REAL_AND_TF32,
        // Outside of deterministic mode CUDA uses cublasLt, whose bits depend on the installed version.
        deterministic: &CPU,
        // This holds for the form of deterministic mode, which does not use cublasLt.
        not_ieee_on_cuda: &HALVES,
        is_converted: true,
        needs_statistics: true,
    }

    /// SpMM with slices of rows sorted by length, for few columns of B.
    SpmmSell = spmm(SpmmAlg::Sell, "sell") { types: &REAL, is_converted: true, needs_statistics: true }

    /// SpMM with sorted columns in blocks and segmented sums, Swift.
    Swift = spmm(SpmmAlg::Swift, "swift") {
        types: &[F64::TYPES, F32::TYPES],
        // On CUDA the partial sums are added in C by atomics; deterministic mode has a form without atomics.
        deterministic: &CPU,
        is_converted: true,
        needs_statistics: true,
        only_by_name: true,
    }

    /// SpMM with the CSR rows of a block distributed over its warps.
    SpmmCsr = spmm(SpmmAlg::Csr, "csr") { needs_statistics: true, only_by_name: true, takes_orders: true }

    /// SpGEMM with hash or dense accumulators.
    Hash = spgemm(SpgemmAlg::Hash, "hash") { values_in_place: true }

    /// SpGEMM on sparse tiles, TileSpGEMM.
    Tile = spgemm(SpgemmAlg::Tile, "tile") {
        formats: &[Format::Csr, Format::Csc, Format::Tile],
        is_converted: true,
        needs_statistics: true,
    }
}

impl Algorithm {
    /// Returns the algorithm's row of the table.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Returns the algorithm of `op` with this value in the C enum; `None` for DEFAULT (the library chooses)
    /// and for unknown values.
    pub fn from_code(op: OpKind, code: i32) -> Option<Self> {
        TABLE.iter().find(|row| row.op == op && row.code == code).map(|row| row.algorithm)
    }

    /// Returns the algorithm that SpMV's enum names; `None` if the library is to choose.
    pub fn from_spmv(alg: SpmvAlg) -> Option<Self> {
        Self::from_code(OpKind::Spmv, alg.code())
    }

    /// Returns the algorithm that SpMM's enum names; `None` if the library is to choose.
    pub fn from_spmm(alg: SpmmAlg) -> Option<Self> {
        Self::from_code(OpKind::Spmm, alg.code())
    }

    /// Returns the algorithm that SpGEMM's enum names; `None` if the library is to choose.
    pub fn from_spgemm(alg: SpgemmAlg) -> Option<Self> {
        Self::from_code(OpKind::Spgemm, alg.code())
    }

    /// Returns [`Row::name`].
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns [`Row::code`].
    pub fn code(self) -> i32 {
        self.row().code
    }

    /// Returns [`Row::is_converted`].
    pub fn is_converted(self) -> bool {
        self.row().is_converted
    }

    /// Returns [`Row::needs_statistics`].
    pub fn needs_statistics(self) -> bool {
        self.row().needs_statistics
    }

    /// Returns [`Row::takes_orders`].
    pub fn takes_orders(self) -> bool {
        self.row().takes_orders
    }

    /// Returns whether all products and sums for these types (as in the table) are IEEE operations of the
    /// compute type, which a pedantic compute type requires. On CUDA `dense` and `swift` meet this in their
    /// form for deterministic mode, without cublasLt and without atomics.
    pub fn is_pedantic(self, backend: BackendKind, types: Types) -> bool {
        matches!(types.compute, ComputeType::R32F | ComputeType::R64F)
            && (backend != BackendKind::Cuda || !self.row().not_ieee_on_cuda.contains(&types))
    }
}

/// Name of an operation in messages, and the arguments of its createPlan that determine its types.
struct Names {
    op: OpKind,
    short: &'static str,
    types: &'static str,
}

/// Names of all operations, one row each.
const NAMES: &[Names] = &[
    Names { op: OpKind::Spmv, short: "SpMV", types: "valueType of A, xType, yType, computeType" },
    Names { op: OpKind::Spmm, short: "SpMM", types: "valueType of A, bType, cType, computeType" },
    Names { op: OpKind::Spgemm, short: "SpGEMM", types: "valueType of A and of B, C by computeType" },
];

impl OpKind {
    fn names(self) -> &'static Names {
        NAMES.iter().find(|names| names.op == self).expect("each operation has a row")
    }

    /// Returns the operation's name in messages: `SpMV`, `SpMM` or `SpGEMM`.
    pub fn short(self) -> &'static str {
        self.names().short
    }
}

/// Longest message about types, in bytes. It fits with its terminating 0 into the buffer of 512 bytes that
/// the header recommends for tarsiaGetLastErrorMessage.
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
    /// Algorithm that the caller named; `None` if the library chooses.
    pub algorithm: Option<Algorithm>,
}

impl Query {
    /// Returns the rows that support the query. If there are none the error is `NOT_SUPPORTED` with the first
    /// reason, tested in this order: backend, algorithm, format, types, pedantic arithmetic.
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

/// Returns the error message for types that no row of the query's backend, algorithm and format supports. It
/// lists the supported combinations, the closest first, as many as fit into a message.
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
        // Keep room for the count of the combinations that come after this one.
        if at > 0 && message.len() + separator.len() + text.len() + more.len() > MESSAGE_BYTES {
            message.push_str(&more);
            break;
        }
        message.push_str(if at > 0 { separator } else { "" });
        message.push_str(&text);
    }
    message
}

/// Returns the combinations that rows support, each once: those with the query's type of A if there are any,
/// otherwise all. They are sorted by the number of types that differ from the query's. If the query asks for
/// pedantic arithmetic of real values, only combinations that provide it are returned.
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

    /// Each C enumerator except DEFAULT has one row whose name it ends with, and each row has one enumerator.
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
