//! Names of matrices of all kinds of the gallery, with sampled parameters: matrix number k of a seed is
//! always the same.

use matrices::SplitMix64;

/// Range of the number of entries in which most matrices are; all are within the range of the arguments,
/// approximately.
const USUAL: (f64, f64) = (1e4, 3e6);
/// Shares of the matrices that have fewer entries than that, and more.
const UNUSUAL: (f64, f64) = (0.1, 0.1);
/// Largest number of weights of a pruned layer, each of which takes a draw.
const MOST_WEIGHTS: f64 = 6.4e7;
/// Largest number of rows and of columns.
const MOST_ROWS: f64 = 4e6;
/// Share of the square matrices that are made from another one.
const CHANGED: f64 = 0.4;

/// Source of random draws for one matrix.
pub struct Draw {
    rng: SplitMix64,
}

impl Draw {
    /// Makes the draws for matrix `number` of this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut first = SplitMix64::new(seed).after(number);
        Draw { rng: SplitMix64::new(first.next_u64()) }
    }

    /// Draws a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    /// Returns true with probability `share`.
    fn chance(&mut self, share: f64) -> bool {
        self.rng.unit() < share
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.rng.unit()
    }

    /// Draws a number for which each order of magnitude is equally likely.
    fn scale(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.rng.unit())
    }

    /// Draws an integer like [`Self::scale`].
    fn count(&mut self, least: f64, most: f64) -> f64 {
        self.scale(least, most).round()
    }

    /// Draws an index, in proportion to the weights.
    pub fn pick(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, &weight) in weights.iter().enumerate() {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return at,
            }
        }
        0
    }

    /// Draws the name of a matrix with about `least` to `most` entries, in the form that `tarsia generate`
    /// takes.
    pub fn matrix(&mut self, (least, most): (f64, f64)) -> String {
        let unit = self.rng.unit();
        let (low, high) = (USUAL.0.clamp(least, most), USUAL.1.clamp(least, most));
        let entries = match unit {
            _ if unit < UNUSUAL.0 => self.scale(least, low),
            _ if unit > 1.0 - UNUSUAL.1 => self.scale(high, most),
            _ => self.scale(low, high),
        };
        let unknowns = if self.chance(CHANGED) && self.chance(0.4) { self.count(2.0, 12.0) } else { 1.0 };
        let (mut name, is_square) = self.kind(entries / (unknowns * unknowns));
        if unknowns > 1.0 {
            // Comes before or after the new order, which decides whether the unknowns of a node stay
            // together.
            name = format!("{name}/unknowns:{unknowns}");
        }
        if is_square && self.chance(CHANGED) {
            let seed = self.below(1 << 20);
            name = match self.chance(0.4) {
                true => format!("{name}/shuffled:{seed}"),
                false => format!("{name}/window:{}:{seed}", self.count(4.0, 20_000.0)),
            };
        }
        name
    }

    /// Draws a kind with its arguments, for about `entries` entries; also returns whether it is square.
    fn kind(&mut self, entries: f64) -> (String, bool) {
        // Number of rows with `mean` entries on average, but at least `least`.
        let rows = |mean: f64, least: f64| (entries / mean).clamp(least, MOST_ROWS).round();
        let seed = self.below(1 << 30);
        let name = match self.pick(&[2, 2, 2, 5, 3, 5, 4, 4, 4, 5, 2, 1, 1, 3, 5, 5, 3, 3, 3, 3, 2, 7, 3]) {
            0 => format!("poisson5:{}", (entries / 5.0).sqrt().max(2.0).round()),
            1 => format!("poisson7:{}", (entries / 7.0).cbrt().max(2.0).round()),
            2 => format!("poisson27:{}", (entries / 27.0).cbrt().max(2.0).round()),
            3 => {
                let edges = self.count(2.0, 64.0);
                let scale = (entries / edges).max(16.0).log2().round();
                format!("rmat:{scale}:{edges}:{seed}")
            }
            4 => {
                let half = self.count(1.0, 400.0);
                format!("banded:{}:{half}:{seed}", rows(2.0 * half + 1.0, half + 2.0))
            }
            5 => {
                let mean = self.count(1.0, 400.0);
                let rows = rows(mean, 1.0);
                let cols = (rows * self.wide()).clamp(mean, MOST_ROWS).round();
                return (format!("uniform:{rows}x{cols}:{mean}:{seed}"), rows == cols);
            }
            6 => {
                let mean = self.scale(1.0, 300.0);
                let rows = rows(mean, 1.0);
                let cols = (rows * self.wide()).clamp(2.0 * mean, MOST_ROWS).ceil();
                let density = mean / cols;
                return (format!("rectangular:{rows}x{cols}:{density:.3e}:{seed}"), rows == cols);
            }
            7 => {
                let (long, wide, mean) = (self.below(5), self.below(4), self.count(1.0, 24.0));
                let of_row = mean + wide as f64 + long as f64;
                format!("dense:{}:{long}:{wide}:{mean}:{seed}", rows(of_row, mean + 8.0))
            }
            8 => {
                let (mean, empty) = (self.count(1.0, 200.0), self.between(0.05, 0.98));
                let rows = rows(mean * (1.0 - empty), 4.0);
                let cols = (rows * self.wide()).clamp(mean, MOST_ROWS).round();
                return (format!("gaps:{rows}x{cols}:{mean}:{empty:.3}:{seed}"), rows == cols);
            }
            9 => {
                let unknowns = self.count(1.0, 8.0);
                let flat = self.below(3);
                let around = [27.0, 9.0, 18.0][flat];
                let nodes = (entries / (around * unknowns * unknowns)).max(4.0);
                let depth = [nodes.cbrt(), 1.0, 2.0][flat].max(1.0).round();
                let width = (nodes / depth).sqrt() * self.scale(0.3, 3.0);
                let (width, height) = (width.max(1.0).round(), (nodes / depth / width).max(1.0).round());
                format!("mesh:{width}x{height}x{depth}:{unknowns}:{seed}")
            }
            10 => {
                let unknowns = self.count(1.0, 12.0);
                let side = (entries / (9.0 * unknowns * unknowns)).powf(0.25).max(2.0).round();
                format!("lattice4:{side}x{side}x{side}x{side}:{unknowns}:{seed}")
            }
            11 => {
                let side = (entries / (12.0 * 39.0)).powf(0.25).max(2.0).round();
                format!("wilson:{side}x{side}x{side}x{side}:{seed}")
            }
            12 => {
                // With 1,024 it would be a matrix of the comparison tables.
                let states = (entries / 2.0).sqrt().max(4.0).round();
                format!("markov:{}:{seed}", if states == 1024.0 { 1023.0 } else { states })
            }
            13 => {
                let (width, half) = (1 + self.below(8), self.below(9));
                let mean = (2 * width + 2 * half + 1) as f64;
                format!("arrow:{}:{width}:{half}:{seed}", rows(mean, 32.0))
            }
            14 => {
                let (growth, local) = (self.between(0.1, 0.46), self.between(0.0, 0.95));
                let mean = 1.0 + 1.5 * (1.0 - growth) / (1.0 - 2.0 * growth);
                format!("web:{}:{growth:.3}:{local:.3}:{seed}", rows(mean, 16.0))
            }
            15 => {
                let (links, hubs) = (self.count(1.0, 6.0), self.count(1.0, 100.0) - 1.0);
                let nodes = rows(2.0 * links + 1.5, 64.0);
                // Hubs have at most half of the entries together.
                let most = (entries / 4.0 / hubs.max(1.0)).clamp(2.0, nodes - 1.0);
                format!("circuit:{nodes}:{links}:{hubs}:{}:{seed}", self.count(1.0, most))
            }
            20 => {
                let mean = self.count(1.0, 64.0);
                let filled = rows(mean, 1.0);
                let rows = (filled * self.scale(2.0, 200.0)).clamp(mean, MOST_ROWS).max(filled).round();
                let cols = (rows * self.wide()).clamp(mean, MOST_ROWS).round();
                return (format!("hypersparse:{rows}x{cols}:{filled}:{mean}:{seed}"), rows == cols);
            }
            21 => {
                let largest = self.count(4.0, 600.0);
                let of_group = largest * largest / 9.0 + 2.0 * largest + 4.0;
                let groups = (entries / of_group).max(1.0).round();
                // Each node is in zero to twenty of the groups.
                let nodes =
                    (groups * (2.0 + largest / 4.0) / self.scale(0.5, 20.0)).clamp(largest, MOST_ROWS);
                let near = [0.0, 1.0, self.between(0.0, 1.0)][self.below(3)];
                format!("cliques:{}:{groups}:{largest}:{near:.2}:{seed}", nodes.round())
            }
            22 => {
                // Few rows, such as constraints or classes, all of them long.
                let rows = self.count(2.0, 500.0);
                let density = self.scale(0.003, 0.9);
                let cols = (entries / rows / density).clamp(1.0, MOST_ROWS).round();
                return (format!("rectangular:{rows}x{cols}:{density:.3e}:{seed}"), rows == cols);
            }
            layer => {
                let sparsity = 1.0 - self.scale(0.01, 0.5);
                let weights = (entries / (1.0 - sparsity)).min(MOST_WEIGHTS);
                let rows = (weights.sqrt() * self.scale(0.35, 2.8)).max(8.0).round();
                let cols = (weights / rows).max(8.0).round();
                let shape = format!("{rows}x{cols}:{sparsity:.3}");
                let name = match layer {
                    16 => format!("pruned:{shape}:{seed}"),
                    17 => format!("skewed:{shape}:{:.2}:{seed}", self.between(0.1, 1.0)),
                    18 => format!("columns:{shape}:{:.2}:{seed}", self.between(0.2, 1.5)),
                    _ => {
                        // Three unknowns per node, each with 81 neighbours.
                        let side = (entries / 243.0).cbrt().max(1.0).round();
                        return (format!("elasticity:{side}x{side}x{side}"), true);
                    }
                };
                return (name, rows == cols);
            }
        };
        (name, true)
    }

    /// Draws the ratio of columns to rows; one matrix in two is square.
    fn wide(&mut self) -> f64 {
        if self.chance(0.5) {
            1.0
        } else {
            self.scale(0.1, 10.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use matrices::gallery;

    use super::*;

    #[test]
    fn all_kinds_are_drawn_and_can_be_made() {
        let mut drawn = BTreeSet::new();
        let (mut squares, mut within) = (0, 0);
        for number in 0..600 {
            let name = Draw::new(7, number).matrix((1e3, 8e3));
            assert_eq!(Draw::new(7, number).matrix((1e3, 8e3)), name);
            // Not all are made, which would take half a minute.
            if number % 6 == 0 {
                let made = gallery::named(&name).unwrap_or_else(|error| panic!("{name}: {error}"));
                squares += usize::from(made.rows == made.cols);
                within += usize::from((300..=30_000).contains(&made.nnz()));
            }
            drawn.extend(name.split('/').map(|part| part.split(':').next().unwrap().to_string()));
        }
        let all = gallery::kinds().iter().chain(gallery::changes());
        let all: BTreeSet<_> = all.map(|kind| kind.split([':', '[']).next().unwrap().to_string()).collect();
        let missing: Vec<_> = all.difference(&drawn).collect();
        assert_eq!(missing, ["empty"]);
        assert!(squares > 50 && within > 80, "{squares} {within}");
        assert_ne!(Draw::new(8, 3).matrix((1e3, 8e3)), Draw::new(7, 3).matrix((1e3, 8e3)));
    }
}
