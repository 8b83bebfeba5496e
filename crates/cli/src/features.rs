//! All that is counted in a matrix, where a backend has it, and how long that takes.

use std::time::Instant;

use serde::Serialize;
use tarsia::facade::{
    open, Address, Allocator, BackendKind, Block, Compressed, Context, DataType, IndexBase, IndexType,
    Operation, PointerMode, SparseArrays, SparseMatrix, Workspace, FEATURES_VERSION,
};

use crate::demo::products::median;
use crate::Result;

/// Counts of which the time is the median; the first is none of them.
const ROUNDS: usize = 5;

/// The numbers, in their order.
#[derive(Debug, Serialize)]
pub struct Features {
    /// Of the list.
    pub version: u32,
    /// The median of some counts, validation and waits included.
    pub micros: f64,
    pub numbers: Vec<Feature>,
}

/// A number that choices are made by.
#[derive(Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub value: f64,
    /// It counts something, or estimates such a count, and is printed without decimals.
    #[serde(skip)]
    pub is_count: bool,
}

/// Of the names in [`tarsia::facade::FEATURE_NAMES`], those that count: sizes, the least and the most
/// of something. All others are means, shares and ratios.
fn is_count(name: &str) -> bool {
    ["rows", "cols"].contains(&name) || name.ends_with("_min") || name.ends_with("_max")
}

impl Features {
    /// Of the rows of a matrix in 32-bit columns, with values of this type, which are not looked at.
    pub fn of(
        kind: BackendKind,
        (rows, cols): (usize, usize),
        offsets: &[i64],
        indices: &[i32],
        value_type: DataType,
    ) -> Result<Self> {
        let backend = open(kind, 0)?;
        let allocator = Allocator::new(backend.memory(), Address::NULL, usize::MAX);
        let cx = Context {
            stream: Address::NULL,
            pointer_mode: PointerMode::Host,
            workspace: Workspace { address: Address::NULL, bytes: 0 },
            counters: Address::NULL,
            allocator,
        };
        // 32 bits, as programs have them, where they suffice.
        let narrow: Option<Vec<i32>> = offsets.iter().map(|&offset| i32::try_from(offset).ok()).collect();
        let upload = |from: Address, bytes: usize| -> Result<Block> {
            let block = Block::new(&cx.allocator, bytes)?;
            backend.copy_to_device(block.address(), from, bytes, cx.stream)?;
            Ok(block)
        };
        let on_backend = match &narrow {
            Some(offsets) => upload(Address::new(offsets.as_ptr()), size_of_val(&offsets[..]))?,
            None => upload(Address::new(offsets.as_ptr()), size_of_val(offsets))?,
        };
        let columns = upload(Address::new(indices.as_ptr()), size_of_val(indices))?;
        let compressed = Compressed {
            major: rows as i64,
            minor: cols as i64,
            nnz: indices.len() as i64,
            offsets: on_backend.address(),
            indices: columns.address(),
            // There are some, which are not looked at.
            values: columns.address(),
            offset_type: if narrow.is_some() { IndexType::I32 } else { IndexType::I64 },
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type,
        };
        let a = SparseMatrix { arrays: SparseArrays::Csr(compressed), writable: false, temporary: false };
        let count = || backend.features(&cx, &a, Operation::NonTranspose, "A");
        let found = count()?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            count()?;
            times.push(1e6 * start.elapsed().as_secs_f64());
        }
        let feature = |(name, value)| Feature { name, value, is_count: is_count(name) };
        let numbers = found.list().map(feature).collect();
        Ok(Features { version: FEATURES_VERSION, micros: median(times), numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matrices::gallery;

    #[test]
    fn features_have_names_and_a_time() {
        let a = gallery::band(300, 2, 1).unwrap();
        let of = |kind| Features::of(kind, (a.rows, a.cols), &a.offsets, &a.indices, DataType::R64F).unwrap();
        let found = of(BackendKind::Host);
        let value = |name: &str| found.numbers.iter().find(|number| number.name == name).unwrap().value;
        assert_eq!((value("rows"), value("row_entries_max"), value("rows_empty")), (300.0, 4.0, 0.0));
        assert!(found.micros > 0.0);
        let same = of(BackendKind::Reference);
        assert!(found.numbers.iter().zip(&same.numbers).all(|(a, b)| a.value == b.value));
    }
}
