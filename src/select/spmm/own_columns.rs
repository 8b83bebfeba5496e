//! Decision whether SpMM `row` on rows in place reads columns of its own, on machines where products check the columns
//! of the user's array.

use crate::matrix::{SparseArrays, SparseMatrix};
use crate::problem::SpmmProblem;
use crate::select::analysis::Amortized;
use crate::select::roofline::Machine;
use crate::select::{canonical, in_place};
use crate::types::{Effort, IndexType, Order};

/// Bytes of a row of C up to which products read columns of the plan's own. For longer rows the check takes less of the
/// time than the 3 % that it takes for these, and was not timed (docs/algorithms/host.md, "Columns of the plan's own").
pub const MOST_ROW_BYTES: usize = 256;

/// Returns whether the plan keeps columns of its own. QUICK copies nothing; otherwise the executions that the program has
/// stated must gain more than the copy takes.
pub fn keeps_columns(
    problem: &SpmmProblem,
    effort: Effort,
    machine: &Machine,
    amortized: &Amortized,
) -> bool {
    let (rows, entries) = (problem.a, problem.a.shape().2 as f64);
    let row_bytes = problem.columns().saturating_mul(problem.types.y.size());
    let of_sums = problem.types.compute.scalar();
    machine.column_check > 0.0
        && effort != Effort::Quick
        && has_32_bit_rows(&rows)
        && canonical(&rows, problem.op)
        && in_place(&rows, problem.op)
        // Other products do not take the loops that read these columns.
        && problem.c_order == Order::Row
        && (problem.types.x, problem.types.y) == (of_sums, of_sums)
        && !of_sums.is_complex()
        && (1..=MOST_ROW_BYTES).contains(&row_bytes)
        && amortized.may_keep_columns(machine.column_check * entries)
}

fn has_32_bit_rows(a: &SparseMatrix) -> bool {
    match &a.arrays {
        SparseArrays::Csr(m) | SparseArrays::Csc(m) => {
            (m.offset_type, m.index_type) == (IndexType::I32, IndexType::I32)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Compressed;
    use crate::support::{self, Combo};
    use crate::types::{Address, DataType, IndexBase, Operation};

    fn problem(n: i64) -> SpmmProblem {
        let m = Compressed {
            major: 4_000,
            minor: 4_000,
            nnz: 100_000,
            offsets: Address::NULL,
            indices: Address::NULL,
            values: Address::NULL,
            offset_type: IndexType::I32,
            index_type: IndexType::I32,
            base: IndexBase::Zero,
            value_type: DataType::R32F,
        };
        SpmmProblem {
            op: Operation::NonTranspose,
            op_b: Operation::NonTranspose,
            a: SparseMatrix { arrays: SparseArrays::Csr(m), writable: false, temporary: false },
            b_order: Order::Row,
            c_order: Order::Row,
            n_hint: n,
            types: support::F32::TYPES,
            value_updates: false,
            ieee: false,
        }
    }

    fn keeps(problem: &SpmmProblem, effort: Effort, executes: i64, machine: &Machine) -> bool {
        let amortized = Amortized::new(machine, &problem.a, problem.op, executes);
        keeps_columns(problem, effort, machine, &amortized)
    }

    #[test]
    fn few_columns_of_c_read_own_columns_unless_the_copy_costs_more() {
        let kept = |problem: &SpmmProblem| keeps(problem, Effort::Default, 0, &Machine::HOST);
        assert_eq!([0, 1, 8, 64, 65].map(|n| kept(&problem(n))), [false, true, true, true, false]);
        assert!(kept(&SpmmProblem { b_order: Order::Col, ..problem(8) }));
        assert!(!kept(&SpmmProblem { c_order: Order::Col, ..problem(8) }));
        assert!(!kept(&SpmmProblem { op: Operation::Transpose, ..problem(8) }));
        for types in [support::F16::TYPES, support::F16F32::TYPES, support::C32::TYPES] {
            assert!(!kept(&SpmmProblem { types, ..problem(8) }));
        }
        assert!(kept(&SpmmProblem { types: support::F32F64::TYPES, ..problem(8) }));
        let of_widths = |offsets, indices, minor| {
            let mut wide = problem(8);
            let SparseArrays::Csr(m) = &mut wide.a.arrays else { panic!("it is CSR") };
            (m.offset_type, m.index_type, m.minor) = (offsets, indices, minor);
            kept(&wide)
        };
        assert!(of_widths(IndexType::I32, IndexType::I32, i64::from(i32::MAX)));
        assert!(!of_widths(IndexType::I32, IndexType::I32, i64::from(i32::MAX) + 1));
        assert!(!of_widths(IndexType::I64, IndexType::I32, 4_000));
        assert!(!of_widths(IndexType::I64, IndexType::I64, 4_000));
        let SparseArrays::Csr(m) = problem(8).a.arrays else { panic!("it is CSR") };
        let by_columns = SparseMatrix { arrays: SparseArrays::Csc(m), ..problem(8).a };
        assert!(kept(&SpmmProblem { a: by_columns, op: Operation::Transpose, ..problem(8) }));
        assert!(!kept(&SpmmProblem { a: by_columns, ..problem(8) }));
        assert!(!keeps(&problem(8), Effort::Quick, 0, &Machine::HOST));
        assert!(!keeps(&problem(8), Effort::Default, 5, &Machine::HOST));
        assert!(keeps(&problem(8), Effort::Default, 20, &Machine::HOST));
        assert!(!keeps(&problem(8), Effort::Default, 0, &Machine::H100));
    }
}
