//! Statistics and predictions of a matrix before it is measured, computed on the host while other matrices
//! are measured.

use matrices::owned::OwnedCsr;
use tarsia::facade::{
    order_rows, Algorithm, BackendKind, ComputeType, CountedProblem, DataType, FeatureSet, Operation,
    Reorder, SpmmStatistics, SpmvStatistics, Types, SENSIBLE,
};

use super::draw::Draw;
use crate::bench::number::Precision;
use crate::demo::rows::{row_lengths, row_products};
use crate::inspect::layouts;
use crate::inspect::pattern::{compression, Pattern as FlatPattern};
use crate::Result;

/// Names of the numbers in SpGEMM's line.
pub const SPGEMM: [&str; 15] = [
    "rows",
    "cols",
    "nnz",
    "longest",
    "products",
    "most_products",
    "compression",
    "tiles",
    "right_longest",
    "heavy_rows",
    "heavy_products",
    "most_tiles",
    "right_most_tiles",
    "pairs",
    "most_pairs",
];

/// Algorithms among which SpMV chooses.
const SPMV: [Algorithm; 5] =
    [Algorithm::Sell, Algorithm::Csr, Algorithm::Stream, Algorithm::Dasp, Algorithm::MaskBlock];
/// Algorithms among which SpMM chooses; `swift` is measured beside them.
const SPMM: [Algorithm; 5] =
    [Algorithm::Row, Algorithm::SpmmSell, Algorithm::Window, Algorithm::Smat, Algorithm::Dense];
/// All algorithms that can be measured.
pub const ALGORITHMS: [Algorithm; 13] = [
    SPMV[0],
    SPMV[1],
    SPMV[2],
    SPMV[3],
    SPMV[4],
    SPMM[0],
    SPMM[1],
    SPMM[2],
    SPMM[3],
    SPMM[4],
    Algorithm::Swift,
    Algorithm::Hash,
    Algorithm::Tile,
];

/// Number of rows and of columns of a tile of SpGEMM.
const SIDE: usize = 16;
/// A row with more products than this is heavy: it exceeds what teams take in `hash`.
const HEAVY: u64 = 1024;

/// A group of candidates that are measured together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Group {
    /// SpMV with all layouts.
    Spmv(Precision),
    /// SpMM with all algorithms, for this number of columns.
    Spmm(Precision, usize),
    /// SpGEMM with both algorithms, in fp64.
    Spgemm,
    /// One product with its rows in each order of [`ORDERS`].
    Orders(Form),
}

impl Group {
    /// Returns the group's names in tables: operation, precision, columns of the dense operands.
    pub fn names(self) -> (&'static str, &'static str, usize) {
        match self {
            Group::Spmv(precision) => ("spmv", precision.name(), 1),
            Group::Spmm(precision, n) => ("spmm", precision.name(), n),
            Group::Spgemm => ("spgemm", "f64", 0),
            Group::Orders(form) => (form.name(), "f32", form.columns()),
        }
    }
}

/// Products that support row orders (tarsiaPlan_setReorder), all in fp32 like the paper on row permutations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// SpMV `csr`.
    SpmvCsr,
    /// SpMM `row`, B and C by rows.
    SpmmRow,
    /// SpMM `csr`, B and C by columns: the experiment of the paper.
    SpmmCsr,
}

impl Form {
    /// Returns the form's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Form::SpmvCsr => "orders-spmv-csr",
            Form::SpmmRow => "orders-spmm-row",
            Form::SpmmCsr => "orders-spmm-csr",
        }
    }

    /// Returns the number of columns of the dense operands.
    pub fn columns(self) -> usize {
        match self {
            Form::SpmvCsr => 1,
            Form::SpmmRow | Form::SpmmCsr => ORDERS_N,
        }
    }
}

/// Forms that `--orders` measures.
pub const FORMS: [Form; 3] = [Form::SpmvCsr, Form::SpmmRow, Form::SpmmCsr];

/// All groups but row orders, with their weights in draws. Row orders are measured only on request, and then
/// alone.
pub const GROUPS: [(Group, usize); 19] = [
    (Group::Spmv(Precision::F64), 4),
    (Group::Spmv(Precision::F32), 4),
    (Group::Spmv(Precision::F16), 4),
    (Group::Spmm(Precision::F16, 8), 2),
    (Group::Spmm(Precision::F16, 32), 4),
    (Group::Spmm(Precision::F16, 128), 4),
    (Group::Spmm(Precision::F16, 512), 1),
    (Group::Spmm(Precision::F32, 8), 2),
    (Group::Spmm(Precision::F32, 32), 4),
    (Group::Spmm(Precision::F32, 128), 4),
    (Group::Spmm(Precision::F32, 512), 1),
    (Group::Spmm(Precision::F64, 8), 2),
    (Group::Spmm(Precision::F64, 32), 4),
    (Group::Spmm(Precision::F64, 128), 4),
    (Group::Spmm(Precision::F64, 512), 1),
    (Group::Spmm(Precision::Tf32, 32), 2),
    (Group::Spmm(Precision::Tf32, 128), 2),
    (Group::Spmm(Precision::Tf32, 512), 1),
    (Group::Spgemm, 4),
];

/// The rows' own order, and every other order, with their names in tables.
pub const ORDERS: [(&str, Reorder); 13] = [
    ("none", Reorder::None),
    ("dcsr", Reorder::Dcsr),
    ("plain_sort", Reorder::PlainSort),
    ("flipped_sort", Reorder::FlippedSort),
    ("lpt", Reorder::Lpt),
    ("warp_aware", Reorder::WarpAware),
    ("cta_aware", Reorder::CtaAware),
    ("hybrid_1", Reorder::Hybrid1),
    ("hybrid_2_1", Reorder::Hybrid21),
    ("hybrid_2_2", Reorder::Hybrid22),
    ("hybrid_2_3", Reorder::Hybrid23),
    ("rcm", Reorder::Rcm),
    ("gray_code", Reorder::GrayCode),
];
/// Number of columns of the paper's product.
const ORDERS_N: usize = 128;
/// Largest number of rows for which orders are computed: an order by similarity takes some 10 µs per row.
const ORDERS_ROWS: usize = 1 << 17;

/// Largest number of elements of a dense matrix.
const MOST_DENSE: usize = 1 << 26;
/// Largest number of multiplications of a sparse product.
const MOST_PRODUCTS: u64 = 300_000_000;
/// Largest number of bytes of A in an algorithm that stores zeros.
const MOST_BYTES: f64 = 1e9;
/// Number of draws in search of groups that suit a matrix.
const PATIENCE: usize = 30;

/// A candidate: one way to compute a product.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name in tables.
    pub name: &'static str,
    /// Microseconds predicted by the roofline model for an H100; 0 if there is no prediction.
    pub predicted_us: f64,
}

/// A product with its candidates.
#[derive(Clone, Debug)]
pub struct Case {
    /// Group of the product.
    pub group: Group,
    /// Pattern statistics for the product; empty for SpMV and row orders.
    pub numbers: Vec<f32>,
    /// Candidates that are measured.
    pub candidates: Vec<Candidate>,
}

/// A matrix that is ready to be measured.
pub struct SampledMatrix {
    /// Number of the sampled matrix; -1 if it was named.
    pub number: i64,
    /// Name from which it is made.
    pub name: String,
    /// Pattern of the matrix.
    pub pattern: OwnedCsr<()>,
    /// Features by which learned row orders are chosen.
    pub features: Vec<f32>,
    /// Products that are measured.
    pub cases: Vec<Case>,
    /// Row orders that are measured, one for each candidate of a [`Group::Orders`].
    pub orders: Vec<RowOrder>,
}

/// A row order by name.
pub struct RowOrder {
    /// Policy of the order.
    pub policy: Reorder,
    /// The row at each position, computed while other matrices are measured; `None` if analysis makes the
    /// order, in one pass over the rows.
    pub rows: Option<Vec<u32>>,
}

impl SampledMatrix {
    /// Computes the statistics that these groups need; groups that do not suit the matrix are left out. SpMM is
    /// predicted for a device whose memory moves `memory` times the bytes of an H100's.
    pub fn new(
        number: i64,
        name: &str,
        pattern: OwnedCsr<()>,
        wanted: Wanted<'_>,
        memory: f64,
    ) -> Result<Self> {
        let features =
            FeatureSet::of(&layouts::pattern(&pattern)).numbers().map(|number| number as f32).to_vec();
        let mut out = SampledMatrix {
            number,
            name: name.into(),
            pattern,
            features,
            cases: Vec::new(),
            orders: Vec::new(),
        };
        match wanted {
            Wanted::Orders => out.add_orders()?,
            Wanted::All => {
                for (group, _) in GROUPS {
                    out.add(group, None, memory)?;
                }
            }
            Wanted::These(groups) => {
                for &group in groups {
                    out.add(group, None, memory)?;
                }
            }
            Wanted::Some(count, draw) => {
                let weights = GROUPS.map(|(_, weight)| weight);
                for _ in 0..PATIENCE {
                    if out.cases.len() == count {
                        break;
                    }
                    let (group, _) = GROUPS[draw.pick(&weights)];
                    if out.cases.iter().all(|case| case.group != group) {
                        out.add(group, Some(&mut *draw), memory)?;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Adds a case unless the matrix is too large for it. Without `draw` nothing is left to chance.
    fn add(&mut self, group: Group, draw: Option<&mut Draw>, memory: f64) -> Result<()> {
        let a = &self.pattern;
        let case = match group {
            Group::Spmv(precision) => Some(spmv(a, precision)),
            Group::Spmm(_, n) if a.rows.max(a.cols).saturating_mul(n) > MOST_DENSE => None,
            Group::Spmm(precision, n) => {
                let with_swift = draw.is_none_or(|draw| draw.below(3) == 0);
                Some(of_spmm(a, precision, n, with_swift, memory))
            }
            Group::Spgemm => spgemm(a)?,
            // Added by `add_orders`, all together.
            Group::Orders(_) => None,
        };
        // A single candidate leaves no choice.
        self.cases.extend(case.filter(|case| case.candidates.len() > 1));
        Ok(())
    }

    /// Adds all row orders for all forms, unless the matrix is too large for them.
    fn add_orders(&mut self) -> Result<()> {
        let a = &self.pattern;
        if a.rows == 0 || a.rows > ORDERS_ROWS || a.cols > MOST_DENSE / ORDERS_N {
            return Ok(());
        }
        let mut candidates = Vec::new();
        for (name, policy) in ORDERS {
            if policy == Reorder::Rcm && a.rows != a.cols {
                continue;
            }
            let is_made = !matches!(policy, Reorder::None | Reorder::Dcsr);
            let rows = if is_made { Some(order_rows(&layouts::pattern(a), policy)?) } else { None };
            self.orders.push(RowOrder { policy, rows });
            candidates.push(Candidate { name, predicted_us: 0.0 });
        }
        let case =
            |form| Case { group: Group::Orders(form), numbers: Vec::new(), candidates: candidates.clone() };
        self.cases = FORMS.map(case).to_vec();
        Ok(())
    }

    /// Removes all candidates but these, and the cases without any of them.
    pub fn keep(&mut self, algorithms: &[String]) {
        for case in &mut self.cases {
            case.candidates.retain(|candidate| algorithms.iter().any(|name| name == candidate.name));
        }
        self.cases.retain(|case| !case.candidates.is_empty());
    }
}

/// Selection of the groups that are measured.
pub enum Wanted<'d> {
    /// All groups.
    All,
    /// The groups in this list.
    These(&'d [Group]),
    /// A number of groups, drawn.
    Some(usize, &'d mut Draw),
    /// Row orders only.
    Orders,
}

fn flat(a: &OwnedCsr<()>) -> FlatPattern<'_, i64, i32> {
    FlatPattern { cols: a.cols, offsets: &a.offsets, indices: &a.indices }
}

fn types(precision: Precision) -> Types {
    let (value, compute) = match precision {
        Precision::F64 => (DataType::R64F, ComputeType::R64F),
        Precision::F32 => (DataType::R32F, ComputeType::R32F),
        Precision::Tf32 => (DataType::R32F, ComputeType::Tf32),
        Precision::F16 => (DataType::R16F, ComputeType::R32F),
        Precision::Bf16 => (DataType::R16BF, ComputeType::R32F),
    };
    Types { a: value, x: value, y: value, compute }
}

/// Describes the matrix and the types of its products for the cost model of a GPU.
fn on_device(a: &OwnedCsr<()>, types: Types) -> CountedProblem {
    CountedProblem { rows: a.rows, cols: a.cols, nnz: a.nnz(), types, backend: BackendKind::Cuda }
}

/// Removes candidates that are predicted to be far slower than the best.
fn sensible(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    let known = candidates.iter().map(|candidate| candidate.predicted_us).filter(|us| *us > 0.0);
    let best = known.fold(f64::INFINITY, f64::min);
    candidates.retain(|candidate| candidate.predicted_us <= SENSIBLE * best);
    candidates
}

fn spmv(a: &OwnedCsr<()>, precision: Precision) -> Case {
    let types = types(precision);
    let statistics = SpmvStatistics::of(&layouts::pattern(a), types.x.size());
    let problem = on_device(a, types);
    let candidate = |algorithm: Algorithm| {
        let seconds = problem.spmv_seconds(&statistics, algorithm);
        Candidate { name: algorithm.name(), predicted_us: 1e6 * seconds }
    };
    let candidates = sensible(SPMV.map(candidate).to_vec());
    Case { group: Group::Spmv(precision), numbers: Vec::new(), candidates }
}

fn of_spmm(a: &OwnedCsr<()>, precision: Precision, n: usize, with_swift: bool, memory: f64) -> Case {
    let types = types(precision);
    let statistics = SpmmStatistics::of(&layouts::pattern(a), types.a);
    let value = types.a.size() as f64;
    let mut candidates = Vec::new();
    for algorithm in SPMM {
        let bytes = match algorithm {
            Algorithm::Dense => a.rows as f64 * a.cols as f64 * value,
            Algorithm::Smat => statistics.counts.all_spans(16, value == 2.0) * 128.0 * (4.0 + value),
            _ => 0.0,
        };
        // SMAT has no blocks for plain fp32, which matrix units do not compute.
        let has_none = algorithm == Algorithm::Smat && precision == Precision::F32;
        if bytes <= MOST_BYTES && !has_none {
            let seconds = on_device(a, types).spmm_seconds(&statistics, algorithm, n as i64, memory);
            candidates.push(Candidate { name: algorithm.name(), predicted_us: 1e6 * seconds });
        }
    }
    let mut candidates = sensible(candidates);
    if with_swift && matches!(precision, Precision::F32 | Precision::F64) {
        candidates.push(Candidate { name: Algorithm::Swift.name(), predicted_us: 0.0 });
    }
    let numbers = statistics.numbers(types, n as i64).to_vec();
    Case { group: Group::Spmm(precision, n), numbers, candidates }
}

/// Describes A·A, or A·Aᵀ for a rectangular A; `None` if that takes too long.
fn spgemm(a: &OwnedCsr<()>) -> Result<Option<Case>> {
    let partner = if a.rows == a.cols { Operation::NonTranspose } else { Operation::Transpose };
    let of_rows = row_products(a, &row_lengths(a, partner));
    let products: u64 = of_rows.iter().sum();
    if products > MOST_PRODUCTS || a.nnz() == 0 {
        return Ok(None);
    }
    let transposed = if a.rows == a.cols { None } else { Some(a.transpose()?) };
    let b = transposed.as_ref().unwrap_or(a);
    let found = compression(&flat(a), &flat(b))?;
    let statistics = SpmmStatistics::of(&layouts::pattern(a), DataType::R16F);
    let heavy = of_rows.iter().copied().filter(|&products| products > HEAVY);
    let right_tiles = sum_of_tiles(b, |_| 1);
    let tiles = sum_of_tiles(a, |_| 1);
    let pairs = sum_of_tiles(a, |column| right_tiles[column]);
    let largest = |values: &[u64]| values.iter().copied().max().unwrap_or(0) as f64;
    let numbers = [
        a.rows as f64,
        a.cols as f64,
        a.nnz() as f64,
        statistics.longest as f64,
        products as f64,
        of_rows.iter().copied().max().unwrap_or(0) as f64,
        found.ratio(),
        statistics.counts.all_spans(16, true),
        row_lengths(b, Operation::NonTranspose).into_iter().max().unwrap_or(0) as f64,
        heavy.clone().count() as f64,
        heavy.sum::<u64>() as f64,
        largest(&tiles),
        largest(&right_tiles),
        pairs.iter().sum::<u64>() as f64,
        largest(&pairs),
    ];
    let hash = 1e6 * on_device(a, types(Precision::F64)).products_seconds(products as i64);
    let candidates = vec![
        Candidate { name: Algorithm::Hash.name(), predicted_us: hash },
        Candidate { name: Algorithm::Tile.name(), predicted_us: 0.0 },
    ];
    let numbers = numbers.map(|number| number as f32).to_vec();
    Ok(Some(Case { group: Group::Spgemm, numbers, candidates }))
}

/// For each row of 16 × 16 tiles, sums `of_column` over the tile columns of its tiles.
fn sum_of_tiles(a: &OwnedCsr<()>, of_column: impl Fn(usize) -> u64) -> Vec<u64> {
    let mut seen = vec![usize::MAX; a.cols.div_ceil(SIDE)];
    let mut sums = vec![0; a.rows.div_ceil(SIDE)];
    for row in 0..a.rows {
        let tile_row = row / SIDE;
        for &column in a.row(row).0 {
            let column = column as usize / SIDE;
            if seen[column] != tile_row {
                seen[column] = tile_row;
                sums[tile_row] += of_column(column);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use matrices::gallery;

    use super::*;

    #[test]
    fn all_groups_have_numbers_and_candidates() {
        let matrix =
            SampledMatrix::new(3, "rmat:8:6", gallery::named("rmat:8:6").unwrap(), Wanted::All, 1.0).unwrap();
        assert_eq!(matrix.cases.iter().map(|case| case.group).collect::<Vec<_>>(), GROUPS.map(|all| all.0));
        assert_eq!(matrix.features.len(), FeatureSet::NAMES.len());
        for case in &matrix.cases {
            let names = match case.group {
                Group::Spmv(_) | Group::Orders(_) => 0,
                Group::Spmm(..) => SpmmStatistics::NAMES.len(),
                Group::Spgemm => SPGEMM.len(),
            };
            assert_eq!(case.numbers.len(), names, "{case:?}");
            assert!(case.candidates.len() > 1 && case.numbers.iter().all(|number| number.is_finite()));
        }
    }

    #[test]
    fn products_of_spmm_are_predicted_for_the_memory() {
        let predicted = |memory| {
            let pattern = gallery::named("uniform:60000x60000:8").unwrap();
            let wanted = Wanted::These(&[Group::Spmm(Precision::F64, 128)]);
            let matrix = SampledMatrix::new(3, "uniform:60000x60000:8", pattern, wanted, memory).unwrap();
            let row = matrix.cases[0].candidates.iter().find(|candidate| candidate.name == "row");
            row.unwrap().predicted_us
        };
        let (h100, h200) = (predicted(1.0), predicted(1.4667));
        assert!(h200 < 0.98 * h100 && h200 > h100 / 1.4667, "{h100} {h200}");
    }

    #[test]
    fn orders_are_those_of_all_rows() {
        for (name, expected) in [("rmat:8:6", 13), ("uniform:60x40:3", 12)] {
            let pattern = gallery::named(name).unwrap();
            let count = pattern.rows as u32;
            let matrix = SampledMatrix::new(3, name, pattern, Wanted::Orders, 1.0).unwrap();
            let groups: Vec<_> = matrix.cases.iter().map(|case| case.group).collect();
            assert_eq!(groups, FORMS.map(Group::Orders));
            assert!(matrix.cases.iter().all(|case| case.candidates.len() == expected));
            assert_eq!(matrix.orders.len(), expected);
            for RowOrder { policy, rows } in &matrix.orders {
                let is_made = !matches!(policy, Reorder::None | Reorder::Dcsr);
                assert_eq!(rows.is_some(), is_made, "{policy:?}");
                let mut sorted = rows.clone().unwrap_or((0..count).collect());
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count), "{policy:?}");
            }
            // Rows of equal length keep their positions in an order by load.
            let lpt = matrix.orders.iter().find(|order| order.policy == Reorder::Lpt).unwrap();
            assert_eq!(lpt.rows.as_ref().unwrap().is_sorted(), name.starts_with("uniform"));
        }
    }

    #[test]
    fn tiles_and_their_pairs_are_counted() {
        // Rows of tiles have tiles in the columns 0 and 2, then 1, then 0 to 2.
        let entries: [&[i32]; 3] = [&[3, 40], &[16, 17, 31], &[0, 20, 47]];
        let mut a =
            OwnedCsr { rows: 48, cols: 48, offsets: vec![0], indices: vec![], values: Vec::<()>::new() };
        for row in 0..48 {
            if row % 16 == 5 {
                a.indices.extend_from_slice(entries[row / 16]);
            }
            a.offsets.push(a.indices.len() as i64);
        }
        a.values = vec![(); a.indices.len()];
        let tiles = sum_of_tiles(&a, |_| 1);
        assert_eq!(tiles, [2, 1, 3]);
        assert_eq!(sum_of_tiles(&a, |column| tiles[column]), [5, 1, 6]);
        let found = spgemm(&a).unwrap().unwrap();
        assert_eq!(found.numbers[8..], [3.0, 0.0, 0.0, 3.0, 3.0, 12.0, 6.0]);
    }

    #[test]
    fn draws_choose_groups() {
        let of = |number| {
            let pattern = gallery::named("uniform:60x40:3").unwrap();
            let mut draw = Draw::new(1, number);
            let matrix =
                SampledMatrix::new(number as i64, "", pattern, Wanted::Some(2, &mut draw), 1.0).unwrap();
            matrix.cases.iter().map(|case| case.group).collect::<Vec<_>>()
        };
        assert!((0..20).all(|number| of(number).len() == 2 && of(number) == of(number)));
        assert!((1..20).any(|number| of(number) != of(0)));
    }
}
