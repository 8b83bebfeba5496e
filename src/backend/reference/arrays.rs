//! The user's arrays, opened as what they are; each element is converted when
//! it is read or written, so that the oracle's algorithms are not generic over
//! storage and index types.

use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};
use crate::matrix::{DenseMatrix, DenseVector, SparseMatrix};
use crate::memory::{self, Buffer, Context, Workspace};
use crate::types::{Address, DataType, IndexType, Order};

use super::number::Number;

/// Values to read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values<'a> {
    /// 32-bit real.
    R32F(&'a [f32]),
    /// 64-bit real.
    R64F(&'a [f64]),
    /// IEEE half.
    R16F(&'a [f16]),
    /// bfloat16.
    R16BF(&'a [bf16]),
    /// Complex of two 32-bit reals.
    C32F(&'a [Complex32]),
    /// Complex of two 64-bit reals.
    C64F(&'a [Complex64]),
}

/// The values of a matrix: the user's array, which every execute reads, or where that may go after analysis a
/// copy.
pub(super) struct Kept {
    copy: Option<Buffer<u8>>,
}

impl Kept {
    /// A copy of the values of a self-contained plan's matrix, which then reads the copy; none for other plans.
    pub(super) fn new(cx: &Context, name: &str, a: &mut SparseMatrix) -> Result<Self> {
        if !a.temporary {
            return Ok(Kept { copy: None });
        }
        let copy = Buffer::from_slice(&cx.allocator, bytes_of(name, a)?)?;
        *a = a.with_values(copy.address());
        Ok(Kept { copy: Some(copy) })
    }

    /// New ones.
    pub(super) fn renew(&mut self, name: &str, a: &mut SparseMatrix, values: Address) -> Result<()> {
        let renewed = a.with_values(values);
        match &mut self.copy {
            Some(copy) => copy.copy_from_slice(bytes_of(name, &renewed)?),
            None => *a = renewed,
        }
        Ok(())
    }
}

fn bytes_of<'a>(name: &str, a: &SparseMatrix) -> Result<&'a [u8]> {
    let bytes = a.shape().2 as usize * a.value_type().size();
    // SAFETY: the descriptor promises that many values of its type, which nothing changes during the call.
    unsafe { memory::open(name, a.values(), bytes) }
}

/// Values to write.
#[derive(Debug)]
pub(super) enum ValuesMut<'a> {
    /// 32-bit real.
    R32F(&'a mut [f32]),
    /// 64-bit real.
    R64F(&'a mut [f64]),
    /// IEEE half.
    R16F(&'a mut [f16]),
    /// bfloat16.
    R16BF(&'a mut [bf16]),
    /// Complex of two 32-bit reals.
    C32F(&'a mut [Complex32]),
    /// Complex of two 64-bit reals.
    C64F(&'a mut [Complex64]),
}

impl Values<'_> {
    /// # Safety
    /// As [`memory::open`], with elements of `data_type`.
    unsafe fn open(name: &str, address: Address, len: usize, data_type: DataType) -> Result<Self> {
        // SAFETY: the caller's promise, whatever the type.
        unsafe {
            Ok(match data_type {
                DataType::R32F => Values::R32F(memory::open(name, address, len)?),
                DataType::R64F => Values::R64F(memory::open(name, address, len)?),
                DataType::R16F => Values::R16F(memory::open(name, address, len)?),
                DataType::R16BF => Values::R16BF(memory::open(name, address, len)?),
                DataType::C32F => Values::C32F(memory::open(name, address, len)?),
                DataType::C64F => Values::C64F(memory::open(name, address, len)?),
                DataType::R8I | DataType::R32I => return Err(no_integers(name)),
            })
        }
    }

    /// The stored values of a sparse matrix.
    pub(super) fn of_sparse(name: &str, a: &SparseMatrix) -> Result<Self> {
        // SAFETY: the descriptor promises that many values of its type, which
        // nothing changes while a call that reads them runs.
        unsafe { Values::open(name, a.values(), a.shape().2 as usize, a.value_type()) }
    }

    /// The elements of a vector.
    pub(super) fn of_vector(name: &str, x: &DenseVector) -> Result<Self> {
        // SAFETY: as in `of_sparse`; the vector's descriptor promises it.
        unsafe { Values::open(name, x.values, x.len as usize, x.value_type) }
    }

    /// One element of a matrix. Never the whole range: what lies between its
    /// rows or columns may be a matrix that somebody writes.
    pub(super) fn of_element(name: &str, b: &DenseMatrix, row: usize, col: usize) -> Result<Self> {
        // SAFETY: as in `of_sparse`; the matrix' descriptor promises it.
        unsafe { Values::open(name, element(b, row, col), 1, b.value_type) }
    }
}

impl ValuesMut<'_> {
    /// # Safety
    /// As [`memory::open_mut`], with elements of `data_type`.
    pub(super) unsafe fn open(name: &str, address: Address, len: usize, data_type: DataType) -> Result<Self> {
        // SAFETY: the caller's promise, whatever the type.
        unsafe {
            Ok(match data_type {
                DataType::R32F => ValuesMut::R32F(memory::open_mut(name, address, len)?),
                DataType::R64F => ValuesMut::R64F(memory::open_mut(name, address, len)?),
                DataType::R16F => ValuesMut::R16F(memory::open_mut(name, address, len)?),
                DataType::R16BF => ValuesMut::R16BF(memory::open_mut(name, address, len)?),
                DataType::C32F => ValuesMut::C32F(memory::open_mut(name, address, len)?),
                DataType::C64F => ValuesMut::C64F(memory::open_mut(name, address, len)?),
                DataType::R8I | DataType::R32I => return Err(no_integers(name)),
            })
        }
    }

    /// The room for the values of a sparse matrix.
    pub(super) fn of_sparse(name: &str, c: &SparseMatrix) -> Result<Self> {
        // SAFETY: the descriptor promises room for that many values of its
        // type, which nothing else touches while a call that writes them runs.
        unsafe { ValuesMut::open(name, c.values(), c.shape().2 as usize, c.value_type()) }
    }

    /// The elements of a vector.
    pub(super) fn of_vector(name: &str, y: &DenseVector) -> Result<Self> {
        // SAFETY: as in `of_sparse`; the plan has refused an x that overlaps y.
        unsafe { ValuesMut::open(name, y.values, y.len as usize, y.value_type) }
    }

    /// One element of a matrix, as in [`Values::of_element`].
    pub(super) fn of_element(name: &str, c: &DenseMatrix, row: usize, col: usize) -> Result<Self> {
        // SAFETY: as in `of_sparse`; the plan has refused a B that overlaps C.
        unsafe { ValuesMut::open(name, element(c, row, col), 1, c.value_type) }
    }

    /// Reads what was there.
    pub(super) fn as_values(&self) -> Values<'_> {
        match self {
            ValuesMut::R32F(v) => Values::R32F(v),
            ValuesMut::R64F(v) => Values::R64F(v),
            ValuesMut::R16F(v) => Values::R16F(v),
            ValuesMut::R16BF(v) => Values::R16BF(v),
            ValuesMut::C32F(v) => Values::C32F(v),
            ValuesMut::C64F(v) => Values::C64F(v),
        }
    }
}

fn no_integers(name: &str) -> Error {
    Error::unsupported(format!("{name}: no operation takes integer values"))
}

/// Address of an element of a dense matrix.
fn element(m: &DenseMatrix, row: usize, col: usize) -> Address {
    let ld = m.ld as usize;
    let elements = match m.order {
        Order::Col => row + col * ld,
        Order::Row => row * ld + col,
    };
    Address::new(m.values.as_ptr::<u8>().wrapping_add(elements * m.value_type.size()))
}

/// Offsets or indices to read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Indices<'a> {
    /// 32 bits.
    I32(&'a [i32]),
    /// 64 bits.
    I64(&'a [i64]),
}

impl Indices<'_> {
    /// # Safety
    /// As [`memory::open`], with elements of `index_type`.
    pub(super) unsafe fn open(
        name: &str,
        address: Address,
        len: usize,
        index_type: IndexType,
    ) -> Result<Self> {
        // SAFETY: the caller's promise, whatever the type.
        unsafe {
            Ok(match index_type {
                IndexType::I32 => Indices::I32(memory::open(name, address, len)?),
                IndexType::I64 => Indices::I64(memory::open(name, address, len)?),
                IndexType::U16 => return Err(no_16_bits(name)),
            })
        }
    }

    /// The number at a position, as it is stored.
    pub(super) fn get(&self, at: usize) -> i64 {
        match self {
            Indices::I32(v) => i64::from(v[at]),
            Indices::I64(v) => v[at],
        }
    }
}

/// Offsets or indices to write.
#[derive(Debug)]
pub(super) enum IndicesMut<'a> {
    /// 32 bits.
    I32(&'a mut [i32]),
    /// 64 bits.
    I64(&'a mut [i64]),
}

impl IndicesMut<'_> {
    /// # Safety
    /// As [`memory::open_mut`], with elements of `index_type`.
    pub(super) unsafe fn open(
        name: &str,
        address: Address,
        len: usize,
        index_type: IndexType,
    ) -> Result<Self> {
        // SAFETY: the caller's promise, whatever the type.
        unsafe {
            Ok(match index_type {
                IndexType::I32 => IndicesMut::I32(memory::open_mut(name, address, len)?),
                IndexType::I64 => IndicesMut::I64(memory::open_mut(name, address, len)?),
                IndexType::U16 => return Err(no_16_bits(name)),
            })
        }
    }

    /// Stores a number, which must fit.
    pub(super) fn set(&mut self, at: usize, number: i64) -> Result<()> {
        match self {
            IndicesMut::I32(v) => {
                v[at] = i32::try_from(number)
                    .map_err(|_| Error::invalid("C", format!("{number} does not fit in 32 bits")))?;
            }
            IndicesMut::I64(v) => v[at] = number,
        }
        Ok(())
    }
}

fn no_16_bits(name: &str) -> Error {
    Error::unsupported(format!("{name}: 16-bit indices are not accepted"))
}

/// The workspace as sums, all 0.
///
/// # Safety
/// What an earlier call gave of the same workspace is not used any more, and
/// the workspace is the calling execute's alone.
pub(super) unsafe fn sums<'a, N: Number>(workspace: Workspace, len: usize) -> Result<&'a mut [N]> {
    workspace.require(sums_bytes::<N>(len))?;
    // SAFETY: the workspace is that large and aligned to 16 bytes, and any
    // bytes are a number; the rest is the caller's promise.
    let sums = unsafe { memory::open_mut::<N>("workspace", workspace.address, len)? };
    sums.fill(N::ZERO);
    Ok(sums)
}

/// Bytes of workspace for so many sums.
pub(super) fn sums_bytes<N: Number>(len: usize) -> usize {
    len.saturating_mul(std::mem::size_of::<N>())
}
