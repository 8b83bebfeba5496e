//! The library's entries in turns with the vendor's best entries of a case: ratios of times from the same
//! rounds.

use client::Array;

use super::{asked_for, Bench, DenseProduct, Op, Who};
use crate::bench::args::spgemm_alg;
use crate::bench::number::Number;
use crate::bench::paired::{in_turns, ratio, rounds, Ratio};
use crate::bench::report::{Case, Row};
use crate::bench::runs::{Layout, MatrixOperand};
use crate::bench::vendor::{Choice, Prepared, SparseProduct, Vendor};
use crate::Result;

/// Number of the vendor's entries that take turns with each of ours.
const RIVALS: usize = 2;

/// The ratio to a rival, and the rival's name.
type Strongest = (Ratio, String);

/// Factors of SpGEMM: A, and B where it is another matrix.
type Factors<'a, 's, T> = (&'a MatrixOperand<'s, T>, Option<&'a MatrixOperand<'s, T>>);

/// Part of a sparse product that runs in a turn.
#[derive(Clone, Copy)]
enum Turn {
    /// All phases.
    Whole,
    /// The numeric phase with new values of the factors.
    NewValues,
}

impl Turn {
    /// Runs the product and returns its seconds.
    fn run<T>(self, product: &mut dyn SparseProduct<T>) -> Result<f64> {
        match self {
            Turn::Whole => product.run(),
            Turn::NewValues => Ok(product.again()?.ok_or("every product starts anew")?),
        }
    }

    /// Runs the product untimed before the first round: a whole product allocates the buffers and finds the
    /// pattern that numeric phases need.
    fn warm_up<T>(self, product: &mut dyn SparseProduct<T>) -> Result<()> {
        product.run()?;
        if let Turn::NewValues = self {
            self.run(product)?;
        }
        Ok(())
    }
}

impl<'s, V: Vendor> Bench<'s, V> {
    /// Lists the vendor's entries of a case, sorted by a time of their rows, the least first; wrong results
    /// do not count.
    fn fastest<T: Number>(
        &self,
        (a, op, layout): (&MatrixOperand<'s, T>, Op, Layout),
        case: &Case,
        time: impl Fn(&Row) -> Option<f64>,
    ) -> impl Iterator<Item = Choice<V::What>> {
        let least = |choice: &Choice<V::What>| {
            let is_it = |row: &&Row| {
                let names = (row.implementation.as_str(), asked_for(&row.alg));
                names == (&choice.implementation, &choice.alg) && row.case.key() == case.key()
            };
            let times = self.rows.iter().filter(|row| row.counts()).filter(is_it).filter_map(&time);
            times.min_by(f64::total_cmp)
        };
        let choices = self.vendors_choices(a, op, layout);
        let mut timed: Vec<_> =
            choices.into_iter().filter_map(|choice| Some((least(&choice)?, choice))).collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        timed.into_iter().map(|(_, choice)| choice)
    }

    /// Returns the vendor's entries with the least cold medians of this case.
    pub(super) fn rivals<T: Number>(&self, product: &DenseProduct<'_, 's, T>) -> Vec<Choice<V::What>> {
        let DenseProduct { a, op, layout, .. } = *product;
        self.fastest((a, op, layout), &product.case, |row| Some(row.median_us)).take(RIVALS).collect()
    }

    /// Returns the part of a row's note with the ratios to the rivals, measured in turns; empty if there are
    /// no rivals, the row is wrong, or time is up.
    pub(super) fn paired<T: Number>(
        &self,
        product: &DenseProduct<'_, 's, T>,
        row: &Row,
        rivals: &[Choice<V::What>],
        outputs: &mut Vec<Array<'s, T>>,
    ) -> String {
        if rivals.is_empty() || !row.counts() || self.is_over() {
            return String::new();
        }
        self.take_turns(product, row, rivals, outputs).unwrap_or_else(|error| not_paired("", &*error))
    }

    fn take_turns<T: Number>(
        &self,
        product: &DenseProduct<'_, 's, T>,
        row: &Row,
        rivals: &[Choice<V::What>],
        outputs: &mut Vec<Array<'s, T>>,
    ) -> Result<String> {
        let mut who = vec![Who::Ours(row.alg.clone())];
        who.extend(rivals.iter().cloned().map(Who::Theirs));
        self.blank(product, outputs, &who)?;
        let (mut works, mut names) = (Vec::new(), Vec::new());
        let mut refused = None;
        for (who, c) in who.iter().zip(outputs) {
            match self.prepare(product, who, c) {
                Ok(Prepared { run, .. }) => {
                    works.push(run);
                    let (implementation, alg) = who.names();
                    names.push(format!("{implementation}/{alg}"));
                }
                Err(error) if names.is_empty() => return Err(error),
                // There may be no memory for all three.
                Err(error) => refused = Some(error),
            }
        }
        if let (1, Some(error)) = (works.len(), refused) {
            return Err(error);
        }
        let setting = &self.setting;
        let settle = || self.vendor.settle();
        let rounds = in_turns(setting.timer, setting.repeat, &mut works, &settle)?;
        let (cold, warm) = (strongest(&rounds.cold, &names)?, strongest(&rounds.warm, &names)?);
        Ok(format!("{}{};rounds={}", noted("", &cold), noted("warm_", &warm), rounds.cold[0].len()))
    }

    /// Like [`Self::paired`], for a product of sparse matrices: whole products in turns, and, where both have
    /// them, numeric phases with new values.
    pub(super) fn paired_sparse<T: Number>(&self, factors: Factors<'_, 's, T>, row: &Row) -> String {
        let of_case = (factors.0, Op::Spgemm, Layout::PLAIN);
        let rivals: Vec<_> =
            self.fastest(of_case, &row.case, |row| Some(row.median_us)).take(RIVALS).collect();
        if rivals.is_empty() || !row.counts() || self.is_over() {
            return String::new();
        }
        let whole = self.products_in_turns(factors, row, &rivals, Turn::Whole);
        let (found, rounds) = match whole {
            Ok(found) => found,
            Err(error) => return not_paired("", &*error),
        };
        let reuse_us = |row: &Row| row.noted("reuse_us").filter(|micros| *micros > 0.0);
        let rival = self.fastest(of_case, &row.case, reuse_us).next();
        let rival = rival.filter(|_| reuse_us(row).is_some() && !self.is_over());
        let again = rival.map(|rival| self.products_in_turns(factors, row, &[rival], Turn::NewValues));
        let again = match again {
            Some(Ok((again, rounds))) => format!("{};reuse_rounds={rounds}", noted("reuse_", &again)),
            Some(Err(error)) => not_paired("reuse ", &*error),
            None => String::new(),
        };
        format!("{}{again};rounds={rounds}", noted("", &found))
    }

    /// Returns the ratio to the strongest rival, and the number of rounds.
    fn products_in_turns<T: Number>(
        &self,
        (a, b): Factors<'_, 's, T>,
        row: &Row,
        rivals: &[Choice<V::What>],
        turn: Turn,
    ) -> Result<(Strongest, usize)> {
        let alg = spgemm_alg(&row.alg).ok_or("no such algorithm")?;
        let settle = || self.vendor.settle();
        settle();
        let mut ours = self.setting.sparse_product(a, b, (&row.alg, alg))?;
        turn.warm_up(&mut *ours)?;
        let (mut products, mut names) = (vec![ours], vec![format!("{}/{}", row.implementation, row.alg)]);
        let mut refused = None;
        for rival in rivals {
            settle();
            let ready = self.vendor.spgemm(&rival.what, a, b).and_then(|mut product| {
                turn.warm_up(&mut *product)?;
                Ok(product)
            });
            match ready {
                Ok(product) => {
                    names.push(format!("{}/{}{}", rival.implementation, rival.alg, product.suffix()));
                    products.push(product);
                }
                // There may be no memory for all three.
                Err(error) => refused = Some(error),
            }
        }
        if let (1, Some(error)) = (products.len(), refused) {
            return Err(error);
        }
        let mut timed = |at: usize| -> Result<f64> { Ok(1e6 * turn.run(&mut *products[at])?) };
        let times = rounds(self.setting.repeat, names.len(), &settle, &mut timed)?;
        Ok((strongest(&times, &names)?, times[0].len()))
    }
}

/// Returns the least ratio of the rivals' times to those of the first entry.
fn strongest(times: &[Vec<f64>], names: &[String]) -> Result<Strongest> {
    let (ours, theirs) = times.split_first().ok_or("there are no rounds")?;
    let ratios = theirs
        .iter()
        .zip(&names[1..])
        .filter_map(|(theirs, name)| Some((ratio(ours, theirs)?, name.clone())));
    let least = ratios.min_by(|a, b| a.0.mean.total_cmp(&b.0.mean));
    Ok(least.ok_or("the clock has no positive times")?)
}

/// Formats a ratio for a note, with names that begin with `prefix`.
fn noted(prefix: &str, (ratio, rival): &Strongest) -> String {
    let Ratio { mean, low, high } = ratio;
    format!(";{prefix}paired={mean:.4};{prefix}low={low:.4};{prefix}high={high:.4};{prefix}rival={rival}")
}

/// Formats the reason why there is no ratio, for a note.
fn not_paired(prefix: &str, error: &dyn std::error::Error) -> String {
    let words = error.to_string().replace(';', ",");
    format!(";{prefix}not paired: {}", words.split_whitespace().collect::<Vec<_>>().join(" "))
}
