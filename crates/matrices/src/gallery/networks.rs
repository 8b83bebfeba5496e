//! Networks: circuits whose supply nets make very long rows, and webs with power laws.

use super::build::{from_rows_in_order, Edges};
use super::{at_most, probability, Result};
use crate::owned::{check_dimensions, try_push, MatrixError, OwnedCsr};
use crate::random::SplitMix64;

/// The nets of a [`circuit`] that reach far more nodes than others: supply, ground, clock, buses.
#[derive(Clone, Copy, Debug)]
pub enum Hubs<'a> {
    /// (node, pins) of each hub: as many nodes as it has pins, evenly spread over the circuit, are tied to
    /// it.
    Spread(&'a [(usize, usize)]),
    /// `count` hubs at random nodes with `shortest` to `shortest` + `spread` − 1 pins at random
    /// nodes.
    Random {
        /// Number of hubs.
        count: usize,
        /// Pins of the smallest hub.
        shortest: usize,
        /// Number of different sizes, at least 1.
        spread: usize,
    },
}

/// The conductance pattern of a circuit of `nodes` nodes: the diagonal; `links` elements per node, with
/// probability 0.85 to one of the 60 nodes before it, else to any node; for a quarter of the nodes one more,
/// to one of the 3000 nodes before it; and `hubs`, whose rows and columns are long. Symmetric; elements in
/// parallel count once. A link to before the first node goes to the first node.
pub fn circuit(nodes: usize, links: usize, hubs: Hubs, seed: u64) -> Result<OwnedCsr<()>> {
    check_dimensions(nodes, nodes)?;
    let pins = check_hubs(nodes, hubs)?;
    let mut rng = SplitMix64::new(seed);
    let capacity = nodes as u128 * (2 * links as u128 + 2) + 2 * pins;
    let mut edges = Edges::with_capacity(usize::try_from(capacity).unwrap_or(usize::MAX))?;
    for node in 0..nodes {
        edges.push(node, node)?;
        for _ in 0..links {
            let is_near = rng.unit() < 0.85;
            let to = if is_near { before(node, rng.modulo(60)) } else { rng.modulo(nodes) };
            edges.push_both(node, to)?;
        }
        if rng.unit() < 0.25 {
            edges.push_both(node, before(node, rng.modulo(3000)))?;
        }
    }
    match hubs {
        Hubs::Spread(hubs) => {
            for &(hub, pins) in hubs {
                for pin in 0..pins {
                    let to = pin as u128 * nodes as u128 / pins as u128;
                    edges.push_both(hub, to as usize)?;
                }
            }
        }
        Hubs::Random { count, shortest, spread } => {
            for _ in 0..count {
                let hub = rng.modulo(nodes);
                for _ in 0..shortest + rng.modulo(spread) {
                    edges.push_both(hub, rng.modulo(nodes))?;
                }
            }
        }
    }
    edges.into_pattern(nodes, nodes)
}

/// Returns the largest number of pins that the hubs have together, after checking that hubs and pins are
/// nodes.
fn check_hubs(nodes: usize, hubs: Hubs) -> Result<u128> {
    match hubs {
        Hubs::Spread(hubs) => {
            for &(hub, pins) in hubs {
                if hub >= nodes {
                    return Err(MatrixError::argument("hub", hub, format_args!("a node below {nodes}")));
                }
                at_most("pins of a hub", pins, nodes)?;
            }
            Ok(hubs.iter().map(|&(_, pins)| pins as u128).sum())
        }
        Hubs::Random { count, shortest, spread } => {
            if spread == 0 {
                return Err(MatrixError::argument("spread of the hubs", spread, "at least 1"));
            }
            let most = shortest.saturating_add(spread - 1);
            if count > 0 {
                at_most("pins of a hub", most.max(1), nodes)?;
            }
            Ok((count as u128).saturating_mul(most as u128).min(u128::MAX / 4))
        }
    }
}

/// Returns the node `back` + 1 before `node`, or node 0 if there are fewer.
fn before(node: usize, back: usize) -> usize {
    node.saturating_sub(1 + back)
}

/// The pattern of `nodes` nodes, each coupled with itself, in `groups` groups whose members are all coupled
/// with each other: elements with many nodes, supernodes, orbitals of atoms, or the columns x of a sparse X
/// in X·Xᵀ.
///
/// A group has 2 + ⌊(`largest` − 1) · u·v⌋ members, at most `largest`, u and v uniform in [0, 1): few groups
/// are large. With probability `near` its members follow each other from a random node on; else they are
/// random nodes, some of which may be the same. Symmetric.
pub fn cliques(nodes: usize, groups: usize, largest: usize, near: f64, seed: u64) -> Result<OwnedCsr<()>> {
    check_dimensions(nodes, nodes)?;
    if largest < 2 {
        return Err(MatrixError::argument("members of the largest group", largest, "at least 2"));
    }
    at_most("members of the largest group", largest, nodes)?;
    probability("near", near)?;
    let mut rng = SplitMix64::new(seed);
    // On average a ninth of the square of the largest size per group, and an allowance for small groups.
    let entries =
        groups as u128 * (largest as u128 * largest as u128 / 9 + 4 + largest as u128) + nodes as u128;
    let mut edges = Edges::with_capacity(usize::try_from(entries).unwrap_or(usize::MAX))?;
    for node in 0..nodes {
        edges.push(node, node)?;
    }
    let mut members: Vec<usize> = Vec::new();
    for _ in 0..groups {
        let share = rng.unit() * rng.unit();
        let count = (2 + ((largest - 1) as f64 * share) as usize).min(largest);
        let first = rng.below((nodes - count + 1) as u64) as usize;
        let is_near = rng.unit() < near;
        members.clear();
        for at in 0..count {
            let member = if is_near { first + at } else { rng.below(nodes as u64) as usize };
            try_push(&mut members, member)?;
        }
        for &row in &members {
            for &col in &members {
                edges.push(row, col)?;
            }
        }
    }
    edges.into_pattern(nodes, nodes)
}

/// A web of `pages` pages, row i the links of page i, with power laws in both directions.
///
/// A page links to itself. The number of its links is drawn from d..2·d, where d starts at 1 and doubles as
/// long as draws with probability `growth` < 1/2 succeed, so that P(more than d) ~ d^−log₂(1/`growth`). A
/// link goes with probability `local` to one of the 128 pages around, the site's own; else, with probability
/// 3/4, it copies the target of an earlier link that was not local, and otherwise goes to any page. Copying
/// makes popular pages more popular: a power law of exponent 1 + 4/3 (Kumar and others: Stochastic models for
/// the web graph, FOCS 2000).
pub fn web(pages: usize, growth: f64, local: f64, seed: u64) -> Result<OwnedCsr<()>> {
    if !(0.0..0.5).contains(&growth) {
        return Err(MatrixError::argument("growth", growth, "0 <= growth < 0.5"));
    }
    probability("local", local)?;
    let mut rng = SplitMix64::new(seed);
    // The mean number of links is 1.5 · (1 − growth) / (1 − 2 · growth) where `pages` does not limit it.
    let mean = 1.5 * (1.0 - growth) / (1.0 - 2.0 * growth);
    let nnz = pages as f64 * (1.0 + mean).min(pages as f64);
    let mut far: Vec<u32> = Vec::new();
    from_rows_in_order(pages, pages, nnz as u128, |page, out| {
        out.push(page)?;
        let mut links = 1;
        while 2 * links < pages && rng.unit() < growth {
            links *= 2;
        }
        for _ in 0..links + rng.below(links as u64) as usize {
            let to = if rng.unit() < local {
                (page + rng.below(129) as usize).saturating_sub(64).min(pages - 1)
            } else {
                let copies = rng.unit() < 0.75 && !far.is_empty();
                let to = match far.get(rng.below(far.len() as u64) as usize) {
                    Some(&to) if copies => to,
                    _ => rng.below(pages as u64) as u32,
                };
                try_push(&mut far, to)?;
                to as usize
            };
            out.push(to)?;
        }
        Ok(())
    })
}
