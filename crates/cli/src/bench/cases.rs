//! The cases of a matrix, one after the other: contestants, timing, checks, and the rows of the table.

use std::collections::HashSet;
use std::time::Instant;

use client::Array;
use matrices::owned::OwnedCsr;
use tarsia::facade::{Effort, IndexType, Operation, Order};

use super::args::{reorder, spgemm_alg, spmm_alg, spmv_alg, Args, NO_PREPROCESS, ONCE};
use super::check;
use super::input::Input;
use super::number::{blank, filled, room, values, Number, Precision};
use super::pairs::Pair;
use super::report::{
    floor_us, split_layout, split_version, Case, Key, Origin, Row, Writer, AT_VERSION, OURS,
};
use super::runs::{self, csr_bytes, wrong, Layout, MatrixOperand, Setting, Stored, Wishes, SPARSE_PATIENCE};
use super::timer::{self, Times};
use super::vendor::{Choice, Dense, Prepared, SparseProduct, Vendor};
use super::{is_declined, Declined, Op};
use crate::demo::products::median;
use crate::demo::rows::{row_lengths, row_products, RowSample};
use crate::progress::{say, step};
use crate::Result;

/// Seed of the dense operand.
const DENSE_SEED: u64 = 2;
/// A value larger than all sums of the benchmark's values, and representable in every type.
const LARGE: f64 = 60_000.0;

/// A benchmark in progress.
pub struct Bench<'a, V: Vendor> {
    /// The command's arguments.
    pub args: &'a Args,
    /// Settings that all cases share.
    pub setting: Setting<'a>,
    /// The vendor that takes part.
    pub vendor: V,
    /// Writer of the results' table.
    pub writer: Writer,
    /// All results, beginning with those of the table that is continued.
    pub rows: Vec<Row>,
    /// True as long as no result of ours is wrong and no case of ours has failed.
    pub passed: bool,
    /// Cases that the table already has.
    pub done: HashSet<Done>,
    /// Time after which no new case begins.
    pub deadline: Option<Instant>,
    /// Number of cases that were not begun for that reason.
    pub left: usize,
    /// Factor for floors: the copy rate of an H100, at which they are computed, over the table's own rate.
    pub floor_scale: f64,
    /// Machine and date of the measurement.
    pub origin: Origin,
}

/// A case with its implementation and algorithm, as [`done`] returns it.
pub type Done = (Key, String, String);

/// Returns the keys under which a finished row is found: its own names, and, where the name of a vendor's
/// library has no version, also the name with the version that the note has.
pub fn done(row: &Row) -> Vec<Done> {
    let entry = |implementation: String| (row.case.key(), implementation, asked_for(&row.alg).to_string());
    let versioned = row.version().filter(|_| row.is_vendors() && !row.implementation.contains(AT_VERSION));
    let versioned = versioned.map(|version| entry(format!("{}{AT_VERSION}{version}", row.who())));
    [Some(entry(row.implementation.clone())), versioned].into_iter().flatten().collect()
}

/// Returns the name under which a vendor's algorithm was asked for: one that had to be run in another way
/// counts as the same case.
fn asked_for(alg: &str) -> &str {
    alg.trim_end_matches("_freeb3")
}

/// A contestant of a case.
#[derive(Clone)]
enum Who<W> {
    /// The library, with an algorithm of this name, or without a plan.
    Ours(String),
    /// An entry of the vendor.
    Theirs(Choice<W>),
}

impl<W> Who<W> {
    /// Returns the contents of the columns `impl` and `alg`.
    fn names(&self) -> (&str, &str) {
        match self {
            Who::Ours(alg) => (OURS, alg),
            Who::Theirs(choice) => (&choice.implementation, &choice.alg),
        }
    }
}

/// A product with a dense factor, as all contestants compute it.
struct DenseProduct<'a, 's, T: Number> {
    op: Op,
    layout: Layout,
    n: usize,
    a: &'a MatrixOperand<'s, T>,
    /// The factor on the host, row-major; `b` is the same on the backend in this layout.
    host_b: Vec<T>,
    b: Array<'s, T>,
    case: Case,
    floor_us: f64,
    /// Rows of C that are compared with exact sums.
    rows: RowSample,
}

/// Result of a case, before it becomes a row.
struct Found {
    analysis_ms: f64,
    bytes: f64,
    note: String,
    times: Times,
}

impl<'s, V: Vendor> Bench<'s, V> {
    /// Returns whether there is time for another matrix; counts it as left out if not.
    pub fn begins(&mut self) -> bool {
        let is_over = self.is_over();
        self.left += usize::from(is_over);
        !is_over
    }

    /// Runs all cases of one matrix.
    pub fn input(&mut self, input: &Input) -> Result<()> {
        self.vendor.set_matrix(&input.pattern)?;
        for &precision in &self.args.types {
            match precision {
                Precision::F64 => self.matrix::<f64>(input, precision)?,
                Precision::F32 | Precision::Tf32 => self.matrix::<f32>(input, precision)?,
                Precision::F16 => self.matrix::<half::f16>(input, precision)?,
                Precision::Bf16 => self.matrix::<half::bf16>(input, precision)?,
            }
        }
        Ok(())
    }

    /// Runs SpGEMM of two matrices, in the precisions that SpGEMM has.
    pub fn pair(&mut self, pair: &Pair) -> Result<()> {
        self.vendor.set_matrix(&pair.a)?;
        for &precision in &self.args.types {
            match precision {
                Precision::F64 => self.factors::<f64>(pair, precision)?,
                Precision::F32 => self.factors::<f32>(pair, precision)?,
                Precision::Tf32 | Precision::F16 | Precision::Bf16 => {}
            }
        }
        Ok(())
    }

    fn factors<T: Number>(&mut self, pair: &Pair, precision: Precision) -> Result<()> {
        if self.is_over() {
            self.left += 1;
            return Ok(());
        }
        let (session, numbers) = (self.setting.session, (precision, self.args.values));
        let plain = (Operation::NonTranspose, IndexType::I32);
        let a = MatrixOperand::<T>::new(session, &pair.name, &pair.a, numbers, plain);
        match a.and_then(|a| Ok((a, MatrixOperand::second(session, &pair.b, numbers)?))) {
            Ok((a, b)) => self.sparse(&a, Some(&b)),
            Err(error) if is_declined(&*error) => {
                say(format!("{} {}: not run: {error}", pair.name, precision.name()));
                Ok(())
            }
            Err(error) => Err(format!("{}: {error}", pair.name).into()),
        }
    }

    fn matrix<T: Number>(&mut self, input: &Input, precision: Precision) -> Result<()> {
        for stored in Args::stored() {
            let products = self.args.products(stored);
            if !products.is_empty() {
                self.stored::<T>(input, precision, stored, &products)?;
            }
        }
        Ok(())
    }

    /// Runs the products of a matrix that is stored in this form.
    fn stored<T: Number>(
        &mut self,
        input: &Input,
        precision: Precision,
        stored: Stored,
        products: &[Op],
    ) -> Result<()> {
        if self.is_over() {
            self.left += 1;
            return Ok(());
        }
        let (args, session) = (self.args, self.setting.session);
        let numbers = (precision, args.values);
        let a = &match MatrixOperand::<T>::new(session, &input.name, &input.pattern, numbers, stored) {
            Ok(a) => a,
            Err(error) if is_declined(&*error) => {
                say(format!("{} {}: not run: {error}", input.name, precision.name()));
                return Ok(());
            }
            Err(error) => return Err(format!("{}: {error}", input.name).into()),
        };
        for &op in products {
            match op {
                // TF32 exists in SpMM only, and SpGEMM has no 16-bit types of C.
                Op::Spmv if precision == Precision::Tf32 => {}
                Op::Spgemm if !matches!(precision, Precision::F64 | Precision::F32) => {}
                Op::Spmv => self.dense(a, op, Layout::PLAIN, 1)?,
                Op::Spmm => {
                    for &n in &args.n {
                        for layout in args.layouts() {
                            self.dense(a, op, layout, n as usize)?;
                        }
                    }
                }
                Op::Spgemm => {
                    let transpose = if a.is_by_transpose() { Some(a.transposed(session)?) } else { None };
                    self.sparse(a, transpose.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether time is up.
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Lists the contestants of a case, without those whose results the table already has.
    fn contestants<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        op: Op,
        layout: Layout,
        case: &Case,
    ) -> Vec<Who<V::What>> {
        let suffix = if op == Op::Spmm { layout.suffix() } else { String::new() };
        let known = |name: &String| match op {
            Op::Spmv => spmv_alg(name).is_some(),
            Op::Spmm => spmm_alg(name).is_some(),
            Op::Spgemm => spgemm_alg(name).is_some(),
        };
        let ours = self.args.algorithms(op).into_iter().filter(known);
        let mut out: Vec<_> = ours.map(|name| Who::Ours(format!("{name}{suffix}"))).collect();
        if op != Op::Spgemm && self.args.once {
            out.push(Who::Ours(format!("{ONCE}{suffix}")));
        }
        out.extend(self.vendors_choices(a, op, layout).into_iter().map(Who::Theirs));
        out.retain(|who| !self.is_done(case, who.names()));
        out
    }

    /// Returns whether the table already has this result: under this name, or under this version of a
    /// vendor's library.
    fn is_done(&self, case: &Case, (implementation, alg): (&str, &str)) -> bool {
        let has = |implementation: String| self.done.contains(&(case.key(), implementation, alg.into()));
        let (who, version) = split_version(implementation);
        has(implementation.into())
            || version.is_none() && has(format!("{who}{AT_VERSION}{}", self.vendor.number()))
    }

    /// Lists the vendor's entries that are asked for.
    fn vendors_choices<T: Number>(
        &self,
        a: &MatrixOperand<'_, T>,
        op: Op,
        layout: Layout,
    ) -> Vec<Choice<V::What>> {
        // A vendor's f32 is not TF32.
        if a.precision == Precision::Tf32 && !self.vendor.has_tf32() {
            return Vec::new();
        }
        let wanted = &self.args.vendor_alg;
        let is_wanted = |choice: &Choice<V::What>| {
            let is_named = wanted.iter().any(|name| choice.alg.starts_with(name.as_str()));
            // SpMM without preprocess is the vendor's counterpart of `once`.
            let is_due = op != Op::Spmm || self.args.once || !choice.alg.contains(NO_PREPROCESS);
            is_due && (wanted.is_empty() || is_named)
        };
        self.vendor.choices(op, a, layout).into_iter().filter(is_wanted).collect()
    }

    /// Times a product with a dense operand by all contestants.
    fn dense<T: Number>(&mut self, a: &MatrixOperand<'s, T>, op: Op, layout: Layout, n: usize) -> Result<()> {
        let mut case = a.case(op.name(), n);
        if self.args.behind_line > 0 {
            case.matrix += &format!(":+{}", self.args.behind_line);
        }
        let who = self.contestants(a, op, layout, &case);
        if who.is_empty() {
            return Ok(());
        }
        let floor_us = a.dense_floor_us(n);
        let product = match self.operands(a, op, layout, case.clone()) {
            Ok(product) => product,
            Err(error) => {
                for who in who {
                    self.fail(case.clone(), who.names(), floor_us, &*error)?;
                }
                return Ok(());
            }
        };
        // On the host all contestants at once, in turns; on a device, where clocks are steady and memory is
        // scarce, one after the other.
        let is_host = self.setting.timer.shares_cores();
        let at_once = if is_host { who.len() } else { 1 };
        let mut outputs: Vec<Array<'s, T>> = Vec::new();
        // Our rows wait here until the rivals with which they take turns are known.
        let mut held = Vec::new();
        for who in who.chunks(at_once) {
            if self.is_over() {
                self.left += who.len();
                continue;
            }
            if let Err(error) = self.blank(&product, &mut outputs, who) {
                for who in who {
                    self.fail(case.clone(), who.names(), floor_us, &*error)?;
                }
                continue;
            }
            let found = self.race(&product, who, &mut outputs);
            for ((who, found), c) in who.iter().zip(found).zip(&outputs) {
                match found.and_then(|found| self.row(&product, who.names(), found, c)) {
                    Ok(row) if self.args.paired && row.is_ours() => held.push(row),
                    Ok(row) => self.add(row)?,
                    Err(error) => self.fail(case.clone(), who.names(), floor_us, &*error)?,
                }
            }
        }
        if !held.is_empty() {
            let rivals = self.rivals(&product);
            for mut row in held {
                row.note += &self.paired(&product, &row, &rivals, &mut outputs);
                self.add(row)?;
            }
        }
        Ok(())
    }

    fn operands<'a, T: Number>(
        &self,
        a: &'a MatrixOperand<'s, T>,
        op: Op,
        layout: Layout,
        case: Case,
    ) -> Result<DenseProduct<'a, 's, T>> {
        let n = case.n;
        let host_b = step("making B", || values::<T>(DENSE_SEED, a.host.cols * n))?;
        let upload = |b: &[T]| self.setting.session.upload_behind(self.args.behind_line, b);
        let b = match layout.is_by_rows() {
            true => upload(&host_b)?,
            false => upload(&transposed(&host_b, a.host.cols, n)?)?,
        };
        let (floor_us, rows) = (a.dense_floor_us(n), check::dense_rows(&a.host, n));
        Ok(DenseProduct { op, layout, n, a, host_b, b, case, floor_us, rows })
    }

    /// Fills the outputs with values that no product has: NaN, which the library must not read, or, for
    /// vendors that multiply it by beta = 0, a large number. Only elements that will be compared need it.
    fn blank<T: Number>(
        &self,
        product: &DenseProduct<'_, 's, T>,
        outputs: &mut Vec<Array<'s, T>>,
        who: &[Who<V::What>],
    ) -> Result<()> {
        let n = product.n;
        let len = product.a.host.rows * n;
        let fill = |who: &Who<V::What>| match who {
            Who::Ours(_) => T::narrow(f64::NAN),
            Who::Theirs(_) => T::narrow(LARGE),
        };
        if product.layout.order == Order::Row && !product.rows.is_all() {
            for (output, who) in outputs.iter_mut().zip(who) {
                let part = filled(n, fill(who))?;
                for row in product.rows.iter() {
                    output.write(row * n, &part)?;
                }
            }
        } else {
            outputs.clear();
        }
        for who in &who[outputs.len().min(who.len())..] {
            let filled = filled(len, fill(who))?;
            outputs.push(self.setting.session.upload_behind(self.args.behind_line, &filled)?);
        }
        Ok(())
    }

    /// Prepares all contestants and times those that are ready.
    fn race<T: Number>(
        &self,
        product: &DenseProduct<'_, 's, T>,
        who: &[Who<V::What>],
        outputs: &mut [Array<'s, T>],
    ) -> Vec<Result<Found>> {
        let lanes = who.iter().zip(outputs).map(|(who, c)| self.prepare(product, who, c));
        let (mut works, mut facts) = (Vec::new(), Vec::new());
        for lane in lanes {
            facts.push(lane.map(|Prepared { analysis_ms, bytes, note, run }| {
                works.push(run);
                (analysis_ms, bytes, note)
            }));
        }
        let Setting { timer, repeat, .. } = self.setting;
        let mut times = timer::race(timer, repeat, &mut works, &|| self.vendor.settle()).into_iter();
        let join = |facts: Result<(f64, f64, String)>| {
            let (analysis_ms, bytes, note) = facts?;
            let times = times.next().ok_or("it was not timed")??;
            Ok(Found { analysis_ms, bytes, note, times })
        };
        facts.into_iter().map(join).collect()
    }

    fn prepare<'a, T: Number>(
        &'a self,
        product: &'a DenseProduct<'_, 's, T>,
        who: &Who<V::What>,
        c: &'a mut Array<'s, T>,
    ) -> Result<Prepared<'a>> {
        let (session, a, b) = (self.setting.session, product.a, &product.b);
        let factor = Dense { array: b, rows: a.host.cols, cols: product.n, layout: product.layout };
        let executes = self.setting.expected_executes;
        let wishes = |effort, alg| Wishes { effort, reorder: reorder(alg), executes };
        match (product.op, who) {
            (Op::Spmv, Who::Ours(alg)) if alg == ONCE => runs::prepare_once(session, a, b, c),
            (Op::Spmv, Who::Ours(alg)) => {
                let (code, effort) = spmv_alg(alg).ok_or("no such algorithm")?;
                let mut prepared = runs::prepare_spmv(session, code, wishes(effort, alg), a, b, c)?;
                prepared.note += &self.setting.features(a);
                Ok(prepared)
            }
            (_, Who::Ours(alg)) => {
                let alg = split_layout(alg).0;
                if alg == ONCE {
                    return runs::prepare_spmm_once(session, a, factor, c);
                }
                let code = spmm_alg(alg).ok_or("no such algorithm")?;
                runs::prepare_spmm(session, (code, wishes(Effort::Default, alg)), a, factor, c)
            }
            (Op::Spmv, Who::Theirs(choice)) => self.vendor.spmv(&choice.what, a, b, c),
            (_, Who::Theirs(choice)) => self.vendor.spmm(&choice.what, a, factor, c),
        }
    }

    fn row<T: Number>(
        &self,
        product: &DenseProduct<'_, 's, T>,
        (implementation, alg): (&str, &str),
        found: Found,
        c: &Array<'s, T>,
    ) -> Result<Row> {
        let DenseProduct { a, n, .. } = *product;
        let accuracy = if self.setting.check {
            let c = gather(product, c)?;
            let bound = match implementation == OURS && product.case.op == "spmm" {
                true => check::Bound::of_spmm(a.precision),
                false => check::Bound::of(a.precision),
            };
            let judge = || check::dense(&a.host, &product.host_b, (&product.rows, &c), n, bound);
            self.setting.accuracy(judge)
        } else {
            None
        };
        let Found { analysis_ms, bytes, note, times } = found;
        let mut text = format!("{}warm_us={:.2};runs={}", wrong(accuracy), times.warm_us, times.runs);
        if !note.is_empty() {
            text = format!("{text};{note}");
        }
        Ok(Row {
            case: product.case.clone(),
            implementation: implementation.into(),
            alg: alg.into(),
            median_us: times.cold_us,
            gflops: 2e-3 * a.host.nnz() as f64 * n as f64 / times.cold_us,
            floor_us: product.floor_us,
            analysis_ms,
            max_rel_err: accuracy.map_or(-1.0, |accuracy| accuracy.relative),
            note: text,
            peak_bytes: bytes,
            ..Row::default()
        })
    }

    /// Times a product of sparse matrices, A·A or A·B, by all contestants.
    fn sparse<T: Number>(
        &mut self,
        a: &MatrixOperand<'s, T>,
        b: Option<&MatrixOperand<'s, T>>,
    ) -> Result<()> {
        let case = a.case(Op::Spgemm.name(), 0);
        let mut without_memory = HashSet::new();
        // A C that the run's limit refuses is refused to all contestants: a vendor that numbers C's entries
        // with 32 bits (MKL) would end the process instead of the product.
        let mut declined: Option<Declined> = None;
        // Our rows wait here until the rivals with which they take turns are known.
        let mut held = Vec::new();
        for who in self.contestants(a, Op::Spgemm, Layout::PLAIN, &case) {
            if self.is_over() {
                self.left += 1;
                continue;
            }
            // The entry with the smaller chunk runs only where the larger chunk does not fit.
            let needs_reason = who.names().1 == "ALG3_c0.05" && self.args.vendor_alg.is_empty();
            if needs_reason && !without_memory.contains(who.names().0) {
                continue;
            }
            if let (Some(declined), Who::Theirs(_)) = (&declined, &who) {
                self.fail(case.clone(), who.names(), -1.0, declined)?;
                continue;
            }
            self.vendor.settle();
            let row = match &who {
                Who::Ours(alg) => match spgemm_alg(alg) {
                    Some(code) => self.setting.spgemm(a, b, (alg, code)),
                    None => continue,
                },
                Who::Theirs(choice) => self.theirs(choice, a, b),
            };
            match row {
                Ok(row) if self.args.paired && row.is_ours() => held.push(row),
                Ok(row) => self.add(row)?,
                Err(error) => {
                    if who.names().1 == "ALG3_c0.2" {
                        without_memory.insert(who.names().0.to_string());
                    }
                    declined = declined.or_else(|| error.downcast_ref::<Declined>().cloned());
                    self.fail(case.clone(), who.names(), -1.0, &*error)?;
                }
            }
        }
        for mut row in held {
            row.note += &self.paired_sparse((a, b), &row);
            self.add(row)?;
        }
        Ok(())
    }

    fn theirs<T: Number>(
        &self,
        choice: &Choice<V::What>,
        a: &MatrixOperand<'s, T>,
        b: Option<&MatrixOperand<'s, T>>,
    ) -> Result<Row> {
        let host_b: &OwnedCsr<T> = b.map_or(&a.host, |b| &b.host);
        let lengths = row_lengths(host_b, tarsia::facade::Operation::NonTranspose);
        let products: u64 = row_products(&a.host, &lengths).iter().sum();
        let mut product = self.vendor.spgemm(&choice.what, a, b)?;
        let (mut seconds, mut spent) = (Vec::new(), 0.0);
        // The first round warms up, as for our product, unless there is time for only one.
        for round in 0..=self.setting.repeat {
            let this = product.run()?;
            spent += this;
            let is_last = spent > SPARSE_PATIENCE;
            if round > 0 || is_last {
                seconds.push(this);
            }
            if is_last {
                break;
            }
        }
        let (runs, total) = (seconds.len(), median(seconds));
        let judge = |product: &mut dyn SparseProduct<T>| -> Result<_> {
            let (offsets, mut indices, mut values) = product.result()?;
            let order = if check::sort_rows(&offsets, &mut indices, &mut values) {
                ""
            } else {
                ";columns not sorted"
            };
            let c = check::Sparse { offsets: &offsets, indices: &indices, values: &values };
            let accuracy = self.setting.accuracy(|| check::sparse(&a.host, host_b, &c, a.precision));
            Ok((accuracy, indices.len(), order))
        };
        let (mut accuracy, nnz, order) = judge(&mut *product)?;
        let (peak, more) = (product.peak_bytes(), product.note());
        let reuse = match self.again(&mut *product) {
            Ok(None) => String::new(),
            Ok(Some(micros)) => {
                // The product with new values is checked like the first one.
                let (again, ..) = judge(&mut *product)?;
                accuracy = accuracy.zip(again).map(|(first, again)| first.with(again));
                format!(";reuse_us={micros:.2}")
            }
            Err(error) => format!(";reuse: {error}"),
        };
        let factor_bytes = a.bytes() + b.unwrap_or(a).bytes();
        let c_bytes = csr_bytes::<T>(a.host.rows, nnz);
        let (wrong, of_b) = (wrong(accuracy), a.entries_of(b.unwrap_or(a)));
        let note = format!("{wrong}products={products};{of_b}nnzC={nnz};{more};reps={runs}{order}{reuse}");
        Ok(Row {
            case: a.case(Op::Spgemm.name(), 0),
            implementation: choice.implementation.clone(),
            alg: format!("{}{}", choice.alg, product.suffix()),
            median_us: 1e6 * total,
            gflops: 2e-9 * products as f64 / total,
            floor_us: floor_us(factor_bytes + c_bytes),
            max_rel_err: accuracy.map_or(-1.0, |accuracy| accuracy.relative),
            note,
            peak_bytes: peak,
            ..Row::default()
        })
    }

    /// Times a vendor's numeric phase with new values; returns the median microseconds, or `None` if the
    /// vendor has no such phase.
    fn again<T: Number>(&self, product: &mut dyn SparseProduct<T>) -> Result<Option<f64>> {
        let (mut micros, mut spent) = (Vec::new(), 0.0);
        // The first round warms up, as for our product, unless there is time for only one.
        for round in 0..=self.setting.repeat {
            let Some(seconds) = product.again()? else { return Ok(None) };
            spent += seconds;
            let is_last = spent > SPARSE_PATIENCE;
            if round > 0 || is_last {
                micros.push(1e6 * seconds);
            }
            if is_last {
                break;
            }
        }
        Ok(Some(median(micros)))
    }

    /// Writes a row to the table, and a short line to stderr.
    pub fn add(&mut self, row: Row) -> Result<()> {
        let case = &row.case;
        let verdict = if row.is_wrong() { "WRONG" } else { "" };
        if row.is_product() {
            say(format!(
                "{:6} {:4} {:4} {:12} {:13} {:16} {:12.2} µs {:8.1} Gflop/s {verdict}",
                case.op,
                case.precision,
                case.n,
                case.matrix,
                row.implementation,
                row.alg,
                row.median_us,
                row.gflops
            ));
        }
        self.passed &= !(row.is_ours() && row.is_wrong());
        self.write(row)
    }

    fn write(&mut self, mut row: Row) -> Result<()> {
        row.origin = self.origin.clone();
        // A negative floor means that there is none.
        if row.is_product() && row.floor_us > 0.0 {
            row.floor_us *= self.floor_scale;
        }
        if row.is_vendors() {
            let number = split_version(&row.implementation).1.map_or(self.vendor.number(), String::from);
            row.note = format!("{};version={number}", row.note);
        }
        self.writer.write(&row)?;
        self.rows.push(row);
        Ok(())
    }

    /// Records a case without a result; the reason goes to the table. A case that a vendor does not support
    /// is not a failure of ours.
    fn fail(
        &mut self,
        case: Case,
        who: (&str, &str),
        floor_us: f64,
        error: &(dyn std::error::Error + 'static),
    ) -> Result<()> {
        let is_ours = who.0 == OURS;
        let declined = !is_ours || is_declined(error);
        self.passed &= declined;
        let verdict = if declined { "not run" } else { "FAILED" };
        let Case { op, precision, n, matrix, .. } = &case;
        say(format!("{op:6} {precision:4} {n:4} {matrix:12} {:13} {:16} {verdict}: {error}", who.0, who.1));
        self.write(Row::failed(case, who, floor_us, &error.to_string()))
    }
}

/// Copies a row-major matrix to column-major order.
fn transposed<T: Number>(matrix: &[T], rows: usize, cols: usize) -> Result<Vec<T>> {
    let mut out = room(rows * cols)?;
    for col in 0..cols {
        out.extend((0..rows).map(|row| matrix[row * cols + col]));
    }
    Ok(out)
}

/// Copies the compared rows of C to the host, one behind the other.
fn gather<T: Number>(product: &DenseProduct<'_, '_, T>, c: &Array<'_, T>) -> Result<Vec<T>> {
    let (n, rows) = (product.n, product.a.host.rows);
    if product.layout.order == Order::Row && product.rows.is_all() {
        let mut out = blank::<T>(rows * n)?;
        c.download_to(&mut out)?;
        return Ok(out);
    }
    let mut out = blank::<T>(product.rows.len() * n)?;
    if product.layout.order == Order::Row {
        for (row, part) in product.rows.iter().zip(out.chunks_mut(n)) {
            c.read(row * n, part)?;
        }
    } else {
        let mut all = blank::<T>(rows * n)?;
        c.download_to(&mut all)?;
        for (row, part) in product.rows.iter().zip(out.chunks_mut(n)) {
            for (col, value) in part.iter_mut().enumerate() {
                *value = all[col * rows + row];
            }
        }
    }
    Ok(out)
}

mod rivals;
#[cfg(test)]
mod tests;
