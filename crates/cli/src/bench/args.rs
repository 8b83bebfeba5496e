//! Arguments of `tarsia bench`.

use std::path::{Path, PathBuf};

use matrices::gallery;
use tarsia::facade::{
    Algorithm, BackendKind, Effort, IndexType, Operation, Order, Reorder, SpgemmAlg, SpmmAlg, SpmvAlg,
};

use super::number::{Precision, Values};
use super::report::DEFAULT;
use super::runs::{Layout, Stored};
use crate::generate::spelled_out;
use crate::options::{positive, Backend};
use crate::plot::Format;
use crate::Result;

/// Name of the algorithm for products without a plan.
pub const ONCE: &str = "once";
/// Ending of the names of the vendor's algorithms where they run without its preprocess.
pub const NO_PREPROCESS: &str = "-nopre";
/// Name for the library's choice with effort TUNED.
const TUNED: &str = "tuned";
/// Name for no algorithm of the library.
const NO_ALG: &str = "none";

const NOTES: &str = "\
FILES may be Matrix Market (.mtx, .mtx.gz), what `tarsia pack` writes, and what the generator of
the comparison matrices writes (.bin). Only patterns are read: values are seeded, ±[0.5, 1) with
full mantissas (--values: fewer), the same in every run and for any number of threads.

SpGEMM multiplies a matrix by itself, a rectangular one by its transpose, A by B with --pair, and with
--hierarchy the matrices of each level of an algebraic multigrid hierarchy, whose Galerkin products
R·(A·P) make the next level's A: first A·P, then R times that, with R = Pᵀ stored by rows. They are made
before anything is timed. A folder NAME has A0, P0, A1, P1, … (a file each; its kind as above), and the
lines are of matrix NAME/level0/A*P, NAME/level0/R*AP, … scripts/galerkin_hierarchies.py writes such folders.

Each result is a line on stderr: operation, precision, columns of B, matrix, implementation, algorithm, time,
rate. The table (--out FILE; else stdout, unless that and stderr are a terminal), tab-separated:
  op precision N matrix rows nnz impl alg median_us gflops floor_us analysis_ms max_rel_err note
  peak_bytes analysis_executes device driver date commit
  op           spmv, spmm, spgemm; copy: a gigabyte read and written; empty: a launch, or a
               call of the threads, that does nothing
  N            columns of the dense matrix; 1 for SpMV, 0 for SpGEMM
  rows, nnz    of A, the first factor (the note of --pair and --hierarchy has B's entries, nnzB)
  matrix       its name, NAME:f32 with --values, NAME:i64 with 64-bit offsets and columns (--indices 64), NAME^T where
               the transpose is stored (--ops t)
  impl         tarsia; with --against: cusparse, cusparse-coo, cusparse-sell, cusparse-bsr, cublas, mkl, aocl; with several
               --library: cusparse@VERSION, cusparse-bsr@VERSION, …, with mkl,aocl: mkl@VERSION, aocl@VERSION, which all
               that reads tables takes for cusparse, mkl, …
  alg          default, what the library chooses (the note says what), tuned, with effort TUNED;
               NAME, what --alg asked for, NAME+ORDER with --reorder, NAME+unsorted with --unsorted; once;
               the vendor's name, +pre with its preprocess; _col with column-major B and C, _bt where B is stored as
               its transpose (--ops-b t)
  median_us    SpMV, SpMM: of up to --repeat runs, caches cleared by reads before each, analysis done
               and buffers taken beforehand; SpGEMM: wall time of all phases, without the allocation
               of buffers and of C (MKL's and AOCL's include it); -1: no result, the note says why
  floor_us     the matrix with 32-bit indices and the dense operands (SpGEMM: A, B and C), each
               once, at 3028 GB/s, the copy rate of an H100; on the CPU at its own copy rate, which
               is the floor_GB/s of the line copy
  max_rel_err  largest |found − exact| / Σ|a·x| over all rows (below 10⁷ multiplications), else over
               1,000 seeded rows with the longest among them; the note begins with WRONG where
               |found − exact| is over (terms) · eps · Σ|a·x| + the rounding of the store
  note         warm_us: runs back to back; with_alloc_us: C's allocation included; of_bound: most
               memory, C included, over twice C's bytes and A's and B's; reuse_us: new values of A (and
               of B, where that is not A) and a numeric phase that knows the pattern; with --paired, of ours:
               paired: time of the rival over ours, geometric mean over rounds in which each runs once with cold caches,
               SpGEMM with all phases; low, high: its interval of 95 %; rival: IMPL/ALG, of the vendor's two best
               entries the one that is stronger so; warm_paired, warm_low, warm_high, warm_rival: likewise of groups
               back to back, SpMV and SpMM; reuse_paired, reuse_low, reuse_high, reuse_rival, reuse_rounds: likewise of
               SpGEMM with new values, against the vendor's entry with the least reuse_us, if any has one; rounds; …
  peak_bytes   the most memory at one time that plan, workspace, buffers and converted matrices take
               beside A in CSR and the dense operands, SpGEMM with C; -1: nobody knows
  analysis_ms  SpMV, SpMM: a second analysis, of another plan, since the first of a kind loads kernels (the note's
               first_analysis_ms; one of 200 ms or more is not repeated); a vendor's preprocess; SpGEMM: plan and analysis
  analysis_executes  the time of the analysis over median_us

Behind the table: speed-ups over the vendor's best entry, and for SpMV and SpMM totals: for K = 1, 10, 100, 1000
executes the least that any of the vendor's entries takes for its preparation (analysis_ms, with its preprocess) and K
executes, over our analysis and K executes, geometric mean with the worst matrix; and the executes from which on ours
take no longer, in the median and for nine matrices in ten (∞: never). Formats other than CSR do not count there: their conversion is not timed.

Vendors are opened while the program runs. --library FILE opens a file of cuSPARSE, several of them several versions,
each with its own descriptors, buffers and preprocess on the same operands. cuBLAS: LD_LIBRARY_PATH; cuSPARSE: LD_LIBRARY_PATH, CUDA_HOME, pip's folders beside
PATH; MKL, AOCL: LD_LIBRARY_PATH. On the host all take turns, with a rest before each, for their threads keep
the cores busy for 200 ms after a call. What a vendor cannot do is a line with -1.

Exit code: 0; 1 if a result of the library is wrong or a case of it failed (no memory for it, or nothing
that supports it, is no failure); 2 if the benchmark could not run.

Examples:
  tarsia bench matrix.mtx --op spmv --types f64,f32
  tarsia bench --gallery comparison --against cusparse --out mine.tsv --bar bar.tsv --reproduces h100.tsv --plot plots
  tarsia bench --gallery all --against cusparse --out mine.tsv --append --time-limit 500
  tarsia bench --gallery pruned --op spmm --n 32,128,512,4096 --ops n,t --alg dense --against cublas --out layers.tsv
  tarsia bench --hierarchy sa-poisson128 --op spgemm --types f64 --against cusparse --paired --out galerkin.tsv
  tarsia bench --pair A.tsm B.tsm --pair B.tsm C.tsm --op spgemm --types f64
  tarsia bench --gallery comparison --op spmm --types f32 --n 512 --orders col --alg csr --reorder all --out orders.tsv
  tarsia bench --gallery comparison --op spmm --once --paired --against cusparse --library cuda-12/libcusparse.so.12 --library cuda-13/libcusparse.so.12 --out pairs.tsv
  tarsia bench matrix.mtx --op spmm --orders row,col --ops-b n,t --indices 32,64 --against cusparse
  tarsia bench --results mine.tsv more.tsv --bar bar.tsv
  tarsia bench --results mine.tsv --table h100.tsv --impl cusparse --table-alg DEFAULT-nopre";

/// Arguments of `tarsia bench`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// Matrices
    #[arg(value_name = "FILES", required_unless_present_any = ["results", "gallery", "pair", "hierarchy"], conflicts_with = "results")]
    pub files: Vec<PathBuf>,

    /// Matrices of the gallery by name; `comparison`, `more`, `all` are parts of it, `pruned` more layers
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "results")]
    gallery: Vec<String>,

    /// Two matrices whose product A·B SpGEMM makes; any number of times
    #[arg(long, value_names = ["A", "B"], num_args = 2, action = clap::ArgAction::Append, conflicts_with = "results")]
    pair: Vec<PathBuf>,

    /// Folders of multigrid hierarchies (A0, P0, A1, …): SpGEMM makes A·P and R·(A·P) of every level
    #[arg(long, value_name = "FOLDERS", num_args = 1.., conflicts_with = "results")]
    pub hierarchy: Vec<PathBuf>,

    /// Operations
    #[arg(long, value_enum, value_delimiter = ',', default_value = "spmv,spmm,spgemm")]
    pub op: Vec<Op>,

    /// Precisions
    #[arg(long, value_enum, value_delimiter = ',', default_value = "f64,f32,f16")]
    pub types: Vec<Precision>,

    /// Values of the matrices, which are called NAME:f32 and so on in the table
    #[arg(long, value_enum, default_value_t = Values::Full)]
    pub values: Values,

    /// Columns of SpMM's dense matrices
    #[arg(long, value_delimiter = ',', default_value = "8,32,128,512",
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub n: Vec<u32>,

    /// Orders of SpMM's dense matrices
    #[arg(long, value_enum, value_delimiter = ',', default_value = "row")]
    orders: Vec<DenseOrder>,

    /// Storage of the matrix of SpMV and SpMM: as it is (n), or as its transpose (t), for the same product by
    /// op T
    #[arg(long, value_enum, value_delimiter = ',', default_value = "n")]
    ops: Vec<MatrixOp>,

    /// Storage of SpMM's B: as it is (n), or as its transpose (t), for the same product by opB = T
    #[arg(long, value_enum, value_delimiter = ',', default_value = "n")]
    ops_b: Vec<FactorOp>,

    /// Bits of the row offsets and of the columns of the matrix of SpMV and SpMM; SpGEMM has 32
    #[arg(long, value_enum, value_name = "BITS", value_delimiter = ',', default_value = "32")]
    indices: Vec<IndexWidth>,

    /// Algorithms by name; `default` lets the library choose, `tuned` (SpMV) by timing the best,
    /// `none` leaves it out
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = DEFAULT)]
    pub alg: Vec<String>,

    /// Time the algorithms of --alg that take orders of rows with these, too (plain_sort, lpt, …), or
    /// with `all`; speed-ups over their own order are printed at the end
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub reorder: Vec<String>,

    /// Time SpGEMM with the columns of each row of C in the order that costs least, too; the note says
    /// `columns not sorted` where some row is not
    #[arg(long)]
    pub unsorted: bool,

    /// Time SpMV and SpMM in one call without a plan, too, and cuSPARSE's SpMM without its preprocess
    #[arg(long)]
    pub once: bool,

    /// Number of executes for which plans of SpMV and SpMM are made (tarsiaPlan_setExpectedExecutes):
    /// analysis then leaves out what they do not pay for
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub expected_executes: i64,

    /// Bytes by which x and y, and SpMM's B and C, begin behind a cache line: 0, or 16, as large arrays of the C library
    /// mostly do; the matrix is called NAME:+16 then
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = bytes_behind_line)]
    pub behind_line: usize,

    /// Backend that computes the products; with --against, `auto` is what the vendor's library runs on
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    pub backend: Backend,

    /// Time a vendor's library, too: each algorithm that it has; mkl and aocl also together
    #[arg(long, value_enum, value_name = "VENDORS", value_delimiter = ',', conflicts_with = "results")]
    pub against: Vec<Against>,

    /// Time only the vendor's algorithms whose names begin with one of these
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "against")]
    pub vendor_alg: Vec<String>,

    /// The file of libcusparse; given several times, each is timed, on the same operands, as cusparse@VERSION
    #[arg(long, value_name = "FILE", visible_alias = "cusparse", requires = "against")]
    pub library: Vec<String>,

    /// Time each of the library's entries once more, in turns with the vendor's two best entries of the case:
    /// ratios with their intervals in the note
    #[arg(long, requires = "against")]
    pub paired: bool,

    /// The file of libmkl_rt
    #[arg(long, value_name = "FILE", requires = "against")]
    mkl: Option<String>,

    /// The file of libaoclsparse
    #[arg(long, value_name = "FILE", requires = "against")]
    aocl: Option<String>,

    /// Largest fill (values in blocks per entry) with which cuSPARSE's BSR is timed
    #[arg(long, value_name = "FILL", default_value = "2", value_parser = positive, requires = "against")]
    pub bsr_fill: f64,

    /// Largest number of executions behind a median
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,

    /// Do not check results against the host's
    #[arg(long)]
    pub no_check: bool,

    /// Time the features of learned row orders on the CPU before SpMV: features_us in the note
    #[arg(long)]
    pub features: bool,

    /// Largest C that SpGEMM may make, in GiB
    #[arg(long, value_name = "GIB", default_value = "64", value_parser = positive)]
    pub max_c_gib: f64,

    /// Begin no new case after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,

    /// Write the table here instead of stdout; a file that exists is an error without --append or --overwrite
    #[arg(long, value_name = "TSV")]
    pub out: Option<PathBuf>,

    /// Continue the table of --out: cases that it has are not measured again
    #[arg(long, requires = "out", conflicts_with = "overwrite")]
    pub append: bool,

    /// Replace the file of --out
    #[arg(long, requires = "out")]
    overwrite: bool,

    /// Commit of the program, for the table
    #[arg(long, value_name = "ID")]
    pub commit: Option<String>,

    /// Measure nothing, read earlier tables
    #[arg(long, value_name = "TSV", num_args = 1..)]
    pub results: Vec<PathBuf>,

    /// Compare with a table of one time per case, as it is and scaled to this machine
    #[arg(long, value_name = "TSV")]
    pub bar: Option<PathBuf>,

    /// Column of times of the table of --bar
    #[arg(long, value_name = "NAME", default_value = "bar_us", requires = "bar")]
    pub bar_column: String,

    /// Show how well the vendor's times reproduce those of an earlier table
    #[arg(long, value_name = "TSV")]
    pub reproduces: Option<PathBuf>,

    /// Compare with a table of this form (the best of the lines that --impl and --table-alg select)
    #[arg(long, value_name = "TSV")]
    pub table: Option<PathBuf>,

    /// Use only lines of --table with this `impl`
    #[arg(long = "impl", value_name = "NAME", requires = "table")]
    pub implementation: Option<String>,

    /// Use only lines of --table with this `alg`
    #[arg(long, value_name = "NAME", requires = "table")]
    pub table_alg: Option<String>,

    /// Draw the comparison into this folder, and print the names of the pictures (with the comparison to
    /// stderr where the table goes to stdout)
    #[arg(long, value_name = "FOLDER")]
    pub plot: Option<PathBuf>,

    /// File format of the pictures
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Png, requires = "plot")]
    pub plot_format: Format,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Op {
    /// y = A·x
    Spmv,
    /// C = A·B, B dense
    Spmm,
    /// C = A·A, or A·B
    Spgemm,
}

impl Op {
    /// Name of the operation in tables.
    pub fn name(self) -> &'static str {
        match self {
            Op::Spmv => "spmv",
            Op::Spmm => "spmm",
            Op::Spgemm => "spgemm",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DenseOrder {
    /// Row by row
    Row,
    /// Column by column
    Col,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MatrixOp {
    /// Stored as it is
    N,
    /// The transpose is stored; the matrix is called NAME^T in the table
    T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FactorOp {
    /// Stored as it is, k × n
    N,
    /// The transpose is stored, n × k; algorithms are called ALG_bt in the table
    T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum IndexWidth {
    /// Offsets and columns of 32 bits
    #[value(name = "32")]
    Narrow,
    /// Offsets and columns of 64 bits; the matrix is called NAME:i64 in the table
    #[value(name = "64")]
    Wide,
}

/// A vendor's library to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Against {
    /// NVIDIA's cuSPARSE, on CUDA
    Cusparse,
    /// NVIDIA's cuBLAS for dense matrices, on CUDA: SpMM with all of A's zeros
    Cublas,
    /// Intel's MKL, on the CPU
    Mkl,
    /// AMD's AOCL-Sparse, on the CPU
    Aocl,
}

impl Against {
    /// Returns the name in --against and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Against::Cusparse => "cusparse",
            Against::Cublas => "cublas",
            Against::Mkl => "mkl",
            Against::Aocl => "aocl",
        }
    }

    /// Returns the backend whose memory its products take.
    fn kind(self) -> BackendKind {
        match self {
            Against::Cusparse | Against::Cublas => BackendKind::Cuda,
            Against::Mkl | Against::Aocl => BackendKind::Host,
        }
    }
}

/// Largest number that is tried as an enumerator of an algorithm enum.
const LAST_CODE: i32 = 255;

/// Finds an algorithm by its lower-case name.
fn algorithm<A: Copy>(
    name: &str,
    prefix: &str,
    from_code: impl Fn(i32) -> Option<A>,
    c_name: impl Fn(A) -> &'static str,
) -> Option<A> {
    let is_it = |alg: &A| c_name(*alg).strip_prefix(prefix).is_some_and(|end| end.eq_ignore_ascii_case(name));
    (0..=LAST_CODE).filter_map(from_code).find(is_it)
}

/// Separator between an algorithm's name and a row order.
pub const IN_ORDER: char = '+';
/// Name for all row orders.
const ALL_ORDERS: &str = "all";

/// Splits an algorithm's name into the name without the row order, and the order.
fn with_order(name: &str) -> Option<(&str, Reorder)> {
    let Some((alg, order)) = name.split_once(IN_ORDER) else { return Some((name, Reorder::Auto)) };
    let is_it = |reorder: &&Reorder| reorder.is_named() && order_name(**reorder) == order;
    Reorder::ALL.iter().find(is_it).map(|&reorder| (alg, reorder))
}

/// Returns the row order that an algorithm's name asks for.
pub fn reorder(name: &str) -> Reorder {
    with_order(name).map_or(Reorder::Auto, |(_, reorder)| reorder)
}

/// Returns the name of a row order in tables, such as `plain_sort`.
fn order_name(reorder: Reorder) -> String {
    reorder.c_name().trim_start_matches("TARSIA_REORDER_").to_lowercase()
}

/// Finds an algorithm of SpMV, and the effort of its choice.
pub fn spmv_alg(name: &str) -> Option<(SpmvAlg, Effort)> {
    let (name, _) = with_order(name)?;
    if name == TUNED {
        return spmv_alg(DEFAULT).map(|(alg, _)| (alg, Effort::Tuned));
    }
    let alg = algorithm(name, "TARSIA_SPMV_ALG_", SpmvAlg::from_code, SpmvAlg::c_name)?;
    Some((alg, Effort::Default))
}

/// Finds an algorithm of SpMM.
pub fn spmm_alg(name: &str) -> Option<SpmmAlg> {
    let (name, _) = with_order(name)?;
    algorithm(name, "TARSIA_SPMM_ALG_", SpmmAlg::from_code, SpmmAlg::c_name)
}

/// Suffix, behind [`IN_ORDER`], of an algorithm of SpGEMM that leaves the columns of each row of C in the
/// order that costs least.
const UNSORTED: &str = "unsorted";

/// Returns whether an algorithm's name asks for rows of C in ascending order.
pub fn sorted_output(name: &str) -> bool {
    name.split_once(IN_ORDER).is_none_or(|(_, order)| order != UNSORTED)
}

/// Finds an algorithm of SpGEMM.
pub fn spgemm_alg(name: &str) -> Option<SpgemmAlg> {
    let name = name.strip_suffix(UNSORTED).and_then(|name| name.strip_suffix(IN_ORDER)).unwrap_or(name);
    algorithm(name, "TARSIA_SPGEMM_ALG_", SpgemmAlg::from_code, SpgemmAlg::c_name)
}

impl Args {
    /// Lists the names of the algorithms to time; those that take row orders come again with each order that
    /// is asked for.
    pub fn algorithms(&self, op: Op) -> Vec<String> {
        let takes_orders = |name: &str| match op {
            Op::Spmv => spmv_alg(name)
                .is_some_and(|(alg, _)| Algorithm::from_spmv(alg).is_none_or(Algorithm::takes_orders)),
            Op::Spmm => spmm_alg(name)
                .is_some_and(|alg| Algorithm::from_spmm(alg).is_none_or(Algorithm::takes_orders)),
            Op::Spgemm => false,
        };
        let takes_unsorted = |name: &str| {
            let asked = op == Op::Spgemm && self.unsorted && sorted_output(name);
            asked && spgemm_alg(name).is_some_and(|alg| alg != SpgemmAlg::Tile)
        };
        let mut out = Vec::new();
        for name in &self.alg {
            out.push(name.clone());
            if takes_orders(name) && !name.contains(IN_ORDER) {
                let with = |order: &Reorder| format!("{name}{IN_ORDER}{}", order_name(*order));
                out.extend(self.orders_of_rows().iter().map(with));
            }
            if takes_unsorted(name) {
                out.push(format!("{name}{IN_ORDER}{UNSORTED}"));
            }
        }
        out
    }

    /// Lists the row orders that are asked for.
    fn orders_of_rows(&self) -> Vec<Reorder> {
        let all = self.reorder.iter().any(|name| name == ALL_ORDERS);
        let is_asked = |order: &&Reorder| all || self.reorder.contains(&order_name(**order));
        Reorder::ALL.iter().filter(|order| order.is_named()).filter(is_asked).copied().collect()
    }

    /// Returns the factors of SpGEMM, two by two.
    pub fn pairs(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.pair.chunks_exact(2).map(|pair| (pair[0].as_path(), pair[1].as_path()))
    }

    /// Checks that the options fit together and that every algorithm and row order has a known name.
    pub fn check(&self) -> Result<()> {
        if !(self.pair.is_empty() && self.hierarchy.is_empty() || self.op.contains(&Op::Spgemm)) {
            return Err("--pair and --hierarchy are products of SpGEMM, which --op leaves out".into());
        }
        let has = |op: Op| self.op.contains(&op);
        if self.ops_b.contains(&FactorOp::T) && !has(Op::Spmm) {
            return Err("--ops-b is of SpMM, which --op leaves out".into());
        }
        if self.indices.contains(&IndexWidth::Wide) && !(has(Op::Spmv) || has(Op::Spmm)) {
            return Err("--indices 64 is of SpMV and SpMM, which --op leaves out".into());
        }
        if !self.library.is_empty() && self.against != [Against::Cusparse] {
            return Err("--library names files of cuSPARSE, which takes part with --against cusparse".into());
        }
        for (option, file, vendor) in
            [("--mkl", &self.mkl, Against::Mkl), ("--aocl", &self.aocl, Against::Aocl)]
        {
            if file.is_some() && !self.against.contains(&vendor) {
                return Err(format!("{option} names a file of a library that --against leaves out").into());
            }
        }
        if self.against.len() > 1 && self.against.iter().any(|vendor| vendor.kind() != BackendKind::Host) {
            return Err("--against: of several vendors, only mkl and aocl take part together".into());
        }
        let is_order = |name: &str| {
            name == ALL_ORDERS || Reorder::ALL.iter().any(|o| o.is_named() && order_name(*o) == name)
        };
        if let Some(name) = self.reorder.iter().find(|name| !is_order(name)) {
            return Err(format!("--reorder: no order of rows is called '{name}'").into());
        }
        let known = |op: &Op, name: &str| match op {
            Op::Spmv => spmv_alg(name).is_some(),
            Op::Spmm => spmm_alg(name).is_some(),
            Op::Spgemm => spgemm_alg(name).is_some(),
        };
        let is_unknown = |name: &&String| *name != NO_ALG && !self.op.iter().any(|op| known(op, name));
        if let Some(name) = self.alg.iter().find(is_unknown) {
            return Err(format!("--alg: none of the operations has an algorithm '{name}'").into());
        }
        match &self.out {
            Some(path) if path.is_file() && !self.append && !self.overwrite => Err(format!(
                "--out {}: exists; --append goes on with its table, --overwrite replaces it",
                path.display()
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Checks that all files exist, so that a missing file is found before an hour of measuring.
    pub fn files_exist(&self) -> Result<()> {
        let reason = |path: &PathBuf| match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => Some(format!("{}: is a folder", path.display())),
            Ok(_) => None,
            Err(error) => Some(format!("{}: {error}", path.display())),
        };
        let reasons: Vec<String> = self.files.iter().chain(&self.pair).filter_map(reason).collect();
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(reasons.join("\n        ").into()),
        }
    }

    /// Returns whether the table goes to stdout.
    pub fn table_on_stdout(&self) -> bool {
        self.results.is_empty() && self.out.is_none()
    }

    /// Lists the matrices of the gallery that are asked for; unknown names are found before anything is
    /// measured.
    pub fn gallery(&self) -> Result<Vec<String>> {
        let wanted = spelled_out(&self.gallery);
        // The parameters of a name are checked when its matrix is made.
        match wanted.iter().find(|name| !name.contains(':') && gallery::find(name).is_none()) {
            Some(name) => {
                Err(format!("--gallery: no matrix '{name}'; `tarsia generate --list` has them").into())
            }
            None => Ok(wanted),
        }
    }

    /// Lists the storage layouts of SpMM's dense operands.
    pub fn layouts(&self) -> impl Iterator<Item = Layout> + '_ {
        let order = |order: &DenseOrder| match order {
            DenseOrder::Row => Order::Row,
            DenseOrder::Col => Order::Col,
        };
        let op_b = |op: &FactorOp| match op {
            FactorOp::N => Operation::NonTranspose,
            FactorOp::T => Operation::Transpose,
        };
        let of_order = move |order| self.ops_b.iter().map(move |op| Layout { order, op_b: op_b(op) });
        self.orders.iter().map(order).flat_map(of_order)
    }

    /// Lists all forms in which the matrix may be stored.
    pub fn stored() -> impl Iterator<Item = Stored> {
        let ops = [Operation::NonTranspose, Operation::Transpose];
        ops.into_iter().flat_map(|op| [IndexType::I32, IndexType::I64].map(|index| (op, index)))
    }

    /// Lists the products that are asked for with a matrix that is stored for `op`, with indices of this
    /// type.
    pub fn products(&self, (op, index): Stored) -> Vec<Op> {
        let asked = if op.transposes() { MatrixOp::T } else { MatrixOp::N };
        let is_wide = index == IndexType::I64;
        let width = if is_wide { IndexWidth::Wide } else { IndexWidth::Narrow };
        let is_asked = |product: &Op| match product {
            Op::Spmv | Op::Spmm => self.ops.contains(&asked) && self.indices.contains(&width),
            Op::Spgemm => asked == MatrixOp::N && !is_wide,
        };
        self.op.iter().copied().filter(is_asked).collect()
    }

    /// Returns the kind of backend; that of the vendor if none is named.
    pub fn kind(&self) -> BackendKind {
        match (self.backend, self.against.first()) {
            (Backend::Auto, Some(vendor)) => vendor.kind(),
            (backend, _) => backend.kind(),
        }
    }

    /// Lists the vendors' libraries on the CPU that are asked for, with the files that are named.
    pub fn peers(&self) -> Vec<(&'static str, Option<&str>)> {
        let file = |vendor: Against| match vendor {
            Against::Mkl => self.mkl.as_deref(),
            Against::Aocl => self.aocl.as_deref(),
            Against::Cusparse | Against::Cublas => None,
        };
        self.against.iter().map(|&vendor| (vendor.name(), file(vendor))).collect()
    }
}
/// Reads a number of bytes behind a line of 64 bytes, at which elements of all types may begin.
fn bytes_behind_line(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(bytes @ 0..64) if bytes % 8 == 0 => Ok(bytes),
        _ => Err("it is no multiple of 8 below 64".into()),
    }
}
