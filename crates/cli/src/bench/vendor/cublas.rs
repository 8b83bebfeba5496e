//! cublasLt: products with all of A, zeros included, as a row-major dense matrix. They show the cost of
//! ignoring that A is sparse.

use std::sync::Arc;
use std::time::Instant;

use client::{Array, Memory, MemoryMut, Session};
use matrices::owned::OwnedCsr;
use tarsia::facade::{
    Accumulator, Address, BackendKind, CublasLt, Device, Entered, Factor, Matmul, Order, Sizes,
};

use super::{Choice, Dense, Prepared, Vendor};
use crate::bench::number::{room, Number, Precision};
use crate::bench::runs::{Layout, MatrixOperand};
use crate::bench::{Declined, Op};
use crate::Result;

/// Largest dense matrix that is made, in bytes: a tenth of the device's memory.
const MOST_BYTES: usize = 8 << 30;
/// Size in bytes of the workspace that cuBLAS's authors recommend for these devices.
const WORKSPACE: usize = 32 << 20;
/// The length in bytes of A's rows is a multiple of this.
const PACK: usize = 16;

/// An open cublasLt library.
pub struct Cublas<'s> {
    library: Arc<CublasLt>,
    session: &'s Session,
    // The last field, dropped last: the context stays current until all other fields are gone.
    _entered: Entered,
}

impl<'s> Cublas<'s> {
    /// Opens the library where the loader finds it.
    pub fn open(session: &'s Session) -> Result<Self> {
        if session.kind() != BackendKind::Cuda {
            return Err("cuBLAS runs on CUDA: --backend cuda".into());
        }
        let device = Device::open(Some(0))?;
        let entered = device.enter()?;
        let library =
            device.cublaslt().ok_or("libcublasLt cannot be opened; LD_LIBRARY_PATH may name its folder")?;
        Ok(Cublas { library, session, _entered: entered })
    }
}

/// Makes the dense row-major matrix with rows of whole packs; returns it with its leading dimension.
fn dense<T: Number>(a: &OwnedCsr<T>) -> Result<(Vec<T>, usize)> {
    let in_pack = PACK / size_of::<T>();
    let ld = a.cols.div_ceil(in_pack) * in_pack;
    let elements = a.rows.checked_mul(ld).filter(|&elements| elements <= MOST_BYTES / size_of::<T>());
    let Some(elements) = elements else {
        return Err(Declined(format!("{} × {} elements are too many", a.rows, a.cols)).into());
    };
    let mut out = room(elements)?;
    out.resize(elements, T::narrow(0.0));
    for (row, to) in out.chunks_exact_mut(ld.max(1)).enumerate() {
        for at in a.offsets[row] as usize..a.offsets[row + 1] as usize {
            to[a.indices[at] as usize] = a.values[at];
        }
    }
    Ok((out, ld))
}

impl Vendor for Cublas<'_> {
    type What = ();

    fn version(&self) -> String {
        "cublasLt".into()
    }

    fn number(&self) -> String {
        "Lt".into()
    }

    fn has_tf32(&self) -> bool {
        true
    }

    fn choices<T: Number>(&self, op: Op, _: &MatrixOperand<'_, T>, layout: Layout) -> Vec<Choice<()>> {
        if op != Op::Spmm || layout.op_b.transposes() {
            return Vec::new();
        }
        vec![Choice { implementation: "cublas".into(), alg: format!("DENSE{}", layout.suffix()), what: () }]
    }

    fn spmm<'a, T: Number>(
        &'a self,
        _: &(),
        a: &'a MatrixOperand<'_, T>,
        b: Dense<'a, T>,
        c: &'a mut Array<'_, T>,
    ) -> Result<Prepared<'a>> {
        let start = Instant::now();
        let transposed = a.op.transposes();
        let (elements, ld) = match transposed {
            true => dense(&a.host.transpose()?)?,
            false => dense(&a.host)?,
        };
        let values = self.session.upload(&elements)?;
        drop(elements);
        let workspace = self.session.scratch(WORKSPACE)?;
        let (rows, inner, n) = (a.host.rows, b.rows, b.cols);
        let address = |array: &Array<'_, T>| Address::new(array.view().as_ptr());
        let (a_at, b_at) = (address(&values), address(b.array));
        let c_at = Address::new(c.view_mut().as_mut_ptr());
        let alignment = |at: Address| 1 << at.value().trailing_zeros().min(8);
        let factor =
            |at, ld: usize, transposed| Factor { ld: ld.max(1) as i64, transposed, alignment: alignment(at) };
        // A row-major matrix is the transpose of a column-major one: Cᵀ = Bᵀ · Aᵀ.
        let by_rows = b.layout.order == Order::Row;
        let (m, n, first, second) = match by_rows {
            true => (n, rows, factor(b_at, n, false), factor(a_at, ld, transposed)),
            false => (rows, n, factor(a_at, ld, !transposed), factor(b_at, inner, false)),
        };
        let sizes = Sizes {
            m: m as i64,
            n: n as i64,
            k: inner as i64,
            a: first,
            b: second,
            d: factor(c_at, m, false),
            input: T::TYPE,
            output: T::TYPE,
            tf32: a.precision == Precision::Tf32,
            workspace: WORKSPACE,
        };
        let matmul = Matmul::new(&self.library, &sizes, 0)?;
        self.session.synchronize()?;
        let analysis_ms = 1e3 * start.elapsed().as_secs_f64();
        let (first, second) = if by_rows { (b_at, a_at) } else { (a_at, b_at) };
        let bytes = (values.len() * size_of::<T>() + WORKSPACE) as f64;
        let run = move || {
            // Borrowed whole, so that the closure owns the arrays, and not only their addresses.
            let (_values, workspace) = (&values, &workspace);
            let (at, one) = (Address::new(workspace.as_mut_ptr()), <T::Sum as Accumulator>::ONE);
            // SAFETY: the arrays have these sizes and are borrowed for as long as this can be
            // called.
            unsafe { matmul.run(bytemuck::bytes_of(&one), first, second, c_at, at, Address::NULL)? };
            Ok(())
        };
        Ok(Prepared { analysis_ms, bytes, note: String::new(), run: Box::new(run) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_in_their_places() {
        let a = OwnedCsr {
            rows: 2,
            cols: 3,
            offsets: vec![0, 2, 3],
            indices: vec![0, 2, 1],
            values: vec![1.0_f64, 2.0, 3.0],
        };
        assert_eq!(dense(&a).unwrap(), (vec![1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0], 4));
    }
}
