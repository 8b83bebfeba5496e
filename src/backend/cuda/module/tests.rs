//! Tests of the lists of kernels against the kernels that the backend may ask for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::kinds::Argument;
use super::{find, named, NamedKernel};

/// Variant of a kind of kernels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::backend::cuda) struct Variant {
    pub kind: &'static str,
    pub arguments: Vec<String>,
}

/// Panics unless the list of a file consists of these variants and of kernels without variants.
pub(in crate::backend::cuda) fn compare(file: &str, asked: &BTreeSet<Variant>) {
    let found = named::FILES.iter().find(|named| named.name == file);
    let found = found.unwrap_or_else(|| panic!("there is no kernels/{file}.cu"));
    let variants = found.kernels.iter().filter(|kernel| !kernel.arguments.is_empty());
    let listed: BTreeSet<Variant> = variants
        .map(|&NamedKernel { kind, arguments, .. }| Variant {
            kind,
            arguments: arguments.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let missing: Vec<_> = asked.difference(&listed).collect();
    assert!(missing.is_empty(), "kernels/{file}.cu does not list {missing:?}");
    let unused: Vec<_> = listed.difference(asked).collect();
    assert!(unused.is_empty(), "nothing asks for these of kernels/{file}.cu: {unused:?}");
    for Variant { kind, arguments } in asked {
        assert!(find(file, kind, arguments).is_ok());
    }
}

/// Extends each list of arguments by each of these values.
pub(in crate::backend::cuda) fn cross<A: Argument>(
    lists: &mut Vec<Vec<String>>,
    values: impl IntoIterator<Item = A>,
) {
    let values: Vec<A> = values.into_iter().collect();
    let with = |list: &Vec<String>, value: &A| {
        let mut longer = list.clone();
        value.write(&mut longer);
        longer
    };
    *lists = lists.iter().flat_map(|list| values.iter().map(move |value| with(list, value))).collect();
}

/// Values that each argument of a kind may have.
pub(in crate::backend::cuda) mod domain {
    use crate::backend::cuda::operand::Widths;
    use crate::backend::cuda::{result_name, types_name};
    use crate::format::narrowing::Form;
    use crate::format::stream::tile_slots;
    use crate::support::Types;
    use crate::types::IndexType;

    pub use crate::algorithm::Algorithm;

    /// Sizes of values; complex ones are two numbers.
    pub const BITS: [&str; 5] = ["16", "32", "64", "32x2", "64x2"];
    /// Types of products of halves.
    pub const HALVES: [&str; 4] = ["f16", "f16f32", "bf16", "bf16f32"];

    pub fn index_types() -> [IndexType; 2] {
        [IndexType::I32, IndexType::I64]
    }

    pub fn widths() -> [Widths; 3] {
        [Widths::NARROW, Widths::WIDE_OFFSETS, Widths::WIDE]
    }

    pub fn narrow_offsets() -> [Widths; 1] {
        [Widths::NARROW]
    }

    /// Widths of matrices that may have more entries than 32 bits count.
    pub fn wide_offsets() -> [Widths; 2] {
        [Widths::WIDE_OFFSETS, Widths::WIDE]
    }

    /// Slots per tile of `stream`, for all sizes of values.
    pub fn tiles() -> Vec<usize> {
        let mut tiles: Vec<usize> = [2, 4, 8, 16].map(tile_slots).to_vec();
        tiles.dedup();
        tiles
    }

    /// Bits of sort keys and of the positions that are sorted with them.
    pub fn sorts() -> [[usize; 2]; 3] {
        [[32, 32], [64, 32], [64, 64]]
    }

    /// Bits of keys and positions for matrices whose entries 32 bits can count.
    pub fn narrow_sorts() -> [[usize; 2]; 2] {
        [[32, 32], [64, 32]]
    }

    /// Types of an algorithm's products, as the names of kernels spell them.
    pub fn types(algorithm: Algorithm) -> Vec<String> {
        let mut names: Vec<String> = algorithm.row().types.iter().map(|&types| types_name(types)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Types of SpMM's `row` with several elements per 16 bytes.
    pub fn packed_types() -> Vec<String> {
        types(Algorithm::Row).into_iter().filter(|name| name != "c64").collect()
    }

    /// Types of an algorithm's results and sums, as the names of kernels spell them.
    pub fn results(algorithm: Algorithm) -> Vec<String> {
        let mut names: Vec<String> = algorithm.row().types.iter().map(|&types| result_name(types)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Types of products with the values of A in each form that may hold them.
    fn stored(filter: impl Fn(Types, Form) -> bool) -> Vec<String> {
        let types = Algorithm::Sell.row().types.iter();
        let forms = |&types: &Types| {
            let forms = [Form::Full].into_iter().chain(Form::of(types.a).iter().copied());
            forms.map(move |form| (types, form))
        };
        let mut names: Vec<String> = types
            .flat_map(forms)
            .filter(|&(types, form)| filter(types, form))
            .map(|(types, form)| crate::backend::cuda::spmv::sell::kernel_types(types, form))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    pub fn stored_types() -> Vec<String> {
        stored(|_, _| true)
    }

    pub fn real_stored_types() -> Vec<String> {
        stored(|types, _| !types.a.is_complex())
    }

    /// Types for which [`takes_pairs`](crate::select::spmv::sell::takes_pairs) may hold.
    pub fn paired_types() -> Vec<String> {
        stored(|types, form| form.bytes(types.a) <= 2 && types.x.size() <= 4)
    }
}

/// Reads the text of all files of the backend.
fn sources() -> Vec<String> {
    fn collect(folder: &Path, out: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => collect(&entry, out),
                false => out.push(fs::read_to_string(&entry).unwrap()),
            }
        }
    }
    let mut out = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda"), &mut out);
    out
}

#[test]
fn a_kernels_name_is_one_kernels() {
    let all: Vec<&str> =
        named::FILES.iter().flat_map(|file| file.kernels.iter().map(|kernel| kernel.name)).collect();
    let unique: BTreeSet<&str> = all.iter().copied().collect();
    assert!(all.len() > 1000);
    assert_eq!(all.len(), unique.len());
}

/// Asserts that code asks for kernels without variants by name, and for the others by declaring their kinds.
#[test]
fn every_kernel_is_asked_for() {
    let sources = sources();
    let is_there = |text: String| sources.iter().any(|source| source.contains(&text));
    for file in named::FILES {
        let (plain, variants): (Vec<_>, Vec<_>) =
            file.kernels.iter().partition(|kernel| kernel.arguments.is_empty());
        for kernel in plain {
            assert!(is_there(format!("\"{}\"", kernel.name)), "nothing asks for {}", kernel.name);
        }
        let declared = format!("\"{}\" {{", file.name);
        assert!(variants.is_empty() || is_there(declared), "{}: no kinds are declared", file.name);
    }
}

#[test]
fn a_kernel_that_is_not_there_is_named() {
    let error = find("spmv/csr", "rows", &["f64".to_string(), "16".to_string()]).unwrap_err();
    assert!(error.to_string().contains("kernels/spmv/csr.cu has no kernel (rows, f64, 16)"), "{error}");
    assert!(find("spmv/none", "rows", &[]).is_err());
}
