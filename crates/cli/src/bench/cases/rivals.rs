//! The library's entries in turns with the vendor's best ones of a case: ratios whose times are of the same rounds.

use client::Array;

use super::{Bench, Product, Who};
use crate::bench::number::Number;
use crate::bench::paired::{in_turns, ratio, Ratio};
use crate::bench::report::Row;
use crate::bench::vendor::{Choice, Prepared, Vendor};
use crate::Result;

/// So many of the vendor's entries take turns with each of ours.
const RIVALS: usize = 2;

impl<'s, V: Vendor> Bench<'s, V> {
    /// The vendor's entries with the least cold medians of this case; results that are wrong do not count.
    pub(super) fn rivals<T: Number>(&self, product: &Product<'_, 's, T>) -> Vec<Choice<V::What>> {
        let median_us = |choice: &Choice<V::What>| {
            let is_it = |row: &&Row| {
                let names = (row.implementation.as_str(), row.alg.as_str());
                names == (&choice.implementation, &choice.alg) && row.case.key() == product.case.key()
            };
            let times = self.rows.iter().filter(|row| row.counts()).filter(is_it).map(|row| row.median_us);
            times.min_by(f64::total_cmp)
        };
        let choices = self.vendors_choices(product.a, product.op, product.layout);
        let mut timed: Vec<_> =
            choices.into_iter().filter_map(|choice| Some((median_us(&choice)?, choice))).collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0));
        timed.into_iter().take(RIVALS).map(|(_, choice)| choice).collect()
    }

    /// What the note of one of our rows says of it in turns with the rivals; nothing if there are none, it is wrong, or
    /// time is up.
    pub(super) fn paired<T: Number>(
        &self,
        product: &Product<'_, 's, T>,
        row: &Row,
        rivals: &[Choice<V::What>],
        outputs: &mut Vec<Array<'s, T>>,
    ) -> String {
        if rivals.is_empty() || !row.counts() || self.is_over() {
            return String::new();
        }
        match self.take_turns(product, row, rivals, outputs) {
            Ok(text) => text,
            Err(error) => {
                let words = error.to_string().replace(';', ",");
                format!(";not paired: {}", words.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn take_turns<T: Number>(
        &self,
        product: &Product<'_, 's, T>,
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
                    names.push(who.names());
                }
                Err(error) if names.is_empty() => return Err(error),
                // There may be no room for all three.
                Err(error) => refused = Some(error),
            }
        }
        if let (1, Some(error)) = (works.len(), refused) {
            return Err(error);
        }
        let setting = &self.setting;
        let settle = || self.vendor.settle();
        let rounds = in_turns(setting.timer, setting.repeat, &mut works, &settle)?;
        let strongest = |times: &[Vec<f64>]| -> Result<(Ratio, String)> {
            let (ours, theirs) = times.split_first().ok_or("there are no rounds")?;
            let ratios = theirs
                .iter()
                .zip(&names[1..])
                .filter_map(|(theirs, name)| Some((ratio(ours, theirs)?, format!("{}/{}", name.0, name.1))));
            let least = ratios.min_by(|a, b| a.0.mean.total_cmp(&b.0.mean));
            Ok(least.ok_or("the clock has no positive times")?)
        };
        let ((cold, rival), (warm, warm_rival)) = (strongest(&rounds.cold)?, strongest(&rounds.warm)?);
        Ok(format!(
            ";paired={:.4};low={:.4};high={:.4};rival={rival};warm_paired={:.4};warm_low={:.4};\
             warm_high={:.4};warm_rival={warm_rival};rounds={}",
            cold.mean,
            cold.low,
            cold.high,
            warm.mean,
            warm.low,
            warm.high,
            rounds.cold[0].len()
        ))
    }
}
