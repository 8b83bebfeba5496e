//! Selection for plans whose executions read the values in the user's arrays (tarsiaPlan_setValuesInPlace).

use super::analysis::Amortized;
use super::roofline::Machine;
use super::spmv::{csr, Widths};
use super::{canonical, in_place, Choice, Source};
use crate::algorithm::{Algorithm, Row, TABLE};
use crate::error::{require, Error, Result};
use crate::matrix::SparseMatrix;
use crate::problem::SpmvProblem;
use crate::types::{Effort, Format, OpKind, Operation, Reorder};

/// Factor of a product: its name, op and matrix.
type Factor<'a> = (&'a str, Operation, SparseMatrix);

fn refused(text: String) -> Result<()> {
    Err(Error::unsupported(text))
}

/// Returns `NOT_SUPPORTED` unless a plan can read the values of its matrices in place; the text says what
/// prevents it and what would serve. `named` is the algorithm that the caller has asked for by name.
pub fn require(op: OpKind, named: Option<Algorithm>, reorder: Reorder, factors: &[Factor<'_>]) -> Result<()> {
    let Some(serves) = TABLE.iter().find(|row| row.op == op && row.values_in_place) else {
        return refused(format!("valuesInPlace: no algorithm of {} reads them", op.short()));
    };
    for (name, _, a) in factors {
        if a.format() == Format::Tile {
            return refused(format!(
                "valuesInPlace: {name} is in tiles, which the library owns; {} {} reads those of CSR and CSC",
                op.short(),
                serves.name
            ));
        }
    }
    if factors.iter().any(|(_, _, a)| a.temporary) {
        return refused(
            "valuesInPlace: the plan is self-contained (tarsiaPlan_setSelfContained), so that the arrays may be \
             gone; 0 of one of the two"
                .into(),
        );
    }
    if let Some(other) = named.filter(|named| *named != serves.algorithm) {
        return refused(format!(
            "valuesInPlace: {} {} keeps the values in a form of its own; {} reads them where they are",
            op.short(),
            other.name(),
            serves.name
        ));
    }
    if reorder.is_named() {
        return refused(format!(
            "valuesInPlace: rows in the order {} are a copy of the matrix; TARSIA_REORDER_AUTO and NONE read the \
             values where they are",
            reorder.c_name()
        ));
    }
    if by_columns(factors) {
        return Ok(());
    }
    let more = match factors {
        [_, _] => ", or both factors by columns (CSC with op N, CSR with op T)",
        _ => "",
    };
    for (name, op, a) in factors {
        if !in_place(a, *op) {
            return refused(format!(
                "valuesInPlace: {name} is {} with op {}, whose values a plan must put into another order or \
                 conjugate; CSR with op N and CSC with op T (for real values also op C) are read where they are{more}",
                a.format().short(),
                letter(*op)
            ));
        }
    }
    Ok(())
}

fn letter(op: Operation) -> &'static str {
    match op {
        Operation::NonTranspose => "N",
        Operation::Transpose => "T",
        Operation::ConjugateTranspose => "C",
    }
}

/// Returns whether both factors of a sparse product are stored by columns of op(A) and op(B), so that columns
/// of C are computed.
fn by_columns(factors: &[Factor<'_>]) -> bool {
    factors.len() == 2 && factors.iter().all(|(_, op, a)| super::is_by_columns(a, *op))
}

/// Keeps those rows of the support table that read values in place.
pub fn rows<'a>(rows: &'a mut Vec<&'static Row>) -> &'a [&'static Row] {
    rows.retain(|row| row.values_in_place);
    rows
}

/// Checks that a choice made elsewhere reads the values in place.
pub fn require_choice(choice: &Choice) -> Result<()> {
    let sources = [choice.a, choice.b];
    require!(
        choice.algorithm().row().values_in_place && sources == [Source::InPlace; 2],
        invalid("buffer"),
        "its decisions are {} on {}, of a plan that reads the values in place",
        choice.algorithm().name(),
        choice.describe()
    );
    Ok(())
}

/// Picks the choice that reads the values in place; [`require`] has checked that there is one.
pub fn choice(choices: Vec<Choice>) -> Result<Choice> {
    let found = choices.into_iter().find(|choice| [choice.a, choice.b] == [Source::InPlace; 2]);
    let mut choice =
        found.ok_or_else(|| Error::unsupported("valuesInPlace: nothing reads the values in place"))?;
    choice.reason = format!(
        "{} on {}: every execute reads the values there",
        choice.algorithm().name(),
        Source::InPlace.describe()
    );
    Ok(choice)
}

/// Returns whether SpMV `csr`, which reads offsets and values in place, keeps 16-bit columns of its own,
/// provided that the columns fit. QUICK converts nothing; otherwise they have to save more than they cost,
/// which is known on machines whose rates are known.
pub fn keeps_columns(
    problem: &SpmvProblem,
    effort: Effort,
    machine: &Machine,
    amortized: &Amortized,
) -> bool {
    let Some(rates) = machine.spmv.as_ref().filter(|_| effort != Effort::Quick) else { return false };
    // Origins of the 16-bit columns are 32-bit numbers.
    let gain =
        || csr::narrow_gain(rates, problem.a.shape_of(problem.op), &Widths::of(problem, Source::InPlace));
    canonical(&problem.a, problem.op) && gain().is_some_and(|gain| amortized.may_keep_columns(gain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Compressed, SparseArrays};
    use crate::support::{self, Combo};
    use crate::types::{Address, DataType, IndexBase, IndexType};

    fn matrix(format: Format, value_type: DataType) -> SparseMatrix {
        let m = Compressed {
            major: 4,
            minor: 4,
            nnz: 5,
            offsets: Address::NULL,
            indices: Address::NULL,
            values: Address::NULL,
            offset_type: IndexType::I32,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type,
        };
        let arrays = if format == Format::Csr { SparseArrays::Csr(m) } else { SparseArrays::Csc(m) };
        SparseMatrix { arrays, writable: false, temporary: false }
    }

    #[test]
    fn decisions_of_a_copy_are_none_of_a_plan_in_place() {
        let of = |algorithm, source| Choice::new(algorithm, source);
        for algorithm in [Algorithm::Csr, Algorithm::Row, Algorithm::Hash] {
            assert!(require_choice(&of(algorithm, Source::InPlace)).is_ok());
            assert!(require_choice(&of(algorithm, Source::Canonical)).is_err());
        }
        let error = require_choice(&of(Algorithm::Sell, Source::Canonical)).unwrap_err();
        assert!(error.message.contains("sell"), "{error}");
    }

    #[test]
    fn columns_are_kept_where_they_pay() {
        let of = |(rows, cols, nnz), effort, machine: &Machine, executes| {
            let mut a = matrix(Format::Csr, DataType::R64F);
            let SparseArrays::Csr(m) = &mut a.arrays else { unreachable!() };
            (m.major, m.minor, m.nnz) = (rows, cols, nnz);
            let op = Operation::NonTranspose;
            let problem = SpmvProblem { op, a, types: support::F64::TYPES, value_updates: false };
            let amortized = Amortized::new(machine, &problem.a, op, executes);
            keeps_columns(&problem, effort, machine, &amortized)
        };
        let (large, h100) = ((62_451, 62_451, 4_007_383), &Machine::H100);
        assert!(of(large, Effort::Default, h100, 0));
        assert!(of(large, Effort::Tuned, h100, 0));
        assert!(!of(large, Effort::Quick, h100, 0));
        assert!(!of(large, Effort::Default, &Machine::HOST, 0), "the host has no kernels for them");
        assert!(!of((100, 100, 5000), Effort::Default, h100, 0), "too small");
        assert!(
            !of((62_451, 1 << 31, 4_007_383), Effort::Default, h100, 0),
            "more columns than origins number"
        );
        // Making the columns takes about 60 µs, and each execution saves about 3.
        let least = (1..1000).find(|&executes| of(large, Effort::Default, h100, executes)).unwrap();
        assert!((5..100).contains(&least), "{least}");
        assert!(of(large, Effort::Default, h100, 10_000));
    }

    #[test]
    fn what_conjugates_or_transposes_is_refused_by_name() {
        use Operation::{ConjugateTranspose as C, NonTranspose as N, Transpose as T};
        let cases = [
            (Format::Csr, DataType::R64F, N, true),
            (Format::Csr, DataType::R64F, T, false),
            (Format::Csr, DataType::R64F, C, false),
            (Format::Csc, DataType::R64F, N, false),
            (Format::Csc, DataType::R64F, T, true),
            (Format::Csc, DataType::R64F, C, true),
            (Format::Csc, DataType::C64F, T, true),
            (Format::Csc, DataType::C64F, C, false),
        ];
        for (format, value_type, op, is_served) in cases {
            let a = matrix(format, value_type);
            for kind in [OpKind::Spmv, OpKind::Spmm] {
                let found = require(kind, None, Reorder::Auto, &[("A", op, a)]);
                assert_eq!(found.is_ok(), is_served, "{format:?} {value_type:?} {op:?}: {found:?}");
                if let Err(error) = found {
                    assert!(
                        error.message.starts_with("valuesInPlace: A is ")
                            && error.message.contains(letter(op))
                    );
                }
            }
        }
        // Columns of C are computed if both factors are stored by columns; mixtures are refused.
        let [csr, csc] = [Format::Csr, Format::Csc].map(|format| matrix(format, DataType::R64F));
        let of = |a, b| require(OpKind::Spgemm, None, Reorder::Auto, &[("A", N, a), ("B", N, b)]);
        assert!(of(csr, csr).is_ok() && of(csc, csc).is_ok());
        assert!(of(csr, csc).unwrap_err().message.contains("B is CSC with op N"));
        assert!(of(csc, csr).unwrap_err().message.contains("A is CSC with op N"));
    }
}
