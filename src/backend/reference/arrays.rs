//! The user's arrays, opened as bytes with a type known at run time. Each element is converted when it is
//! read or written, so that the oracle's algorithms are not generic over storage and index types.

use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::error::{Error, Result};
use crate::matrix::{DenseMatrix, DenseVector, SparseMatrix};
use crate::memory::{self, Workspace};
use crate::types::{Address, ComputeType, DataType, IndexType, Order};

use super::number::{is_complex, round_to_bf16, round_to_f16, Number};

/// Returns element `at` of an array of T.
fn get<T: Pod>(bytes: &[u8], at: usize) -> T {
    bytemuck::pod_read_unaligned(&bytes[at * size_of::<T>()..][..size_of::<T>()])
}

fn set<T: Pod>(bytes: &mut [u8], at: usize, element: T) {
    bytes[at * size_of::<T>()..][..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&element));
}

/// An array of values, which can be read, and written if B is mutable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<B> {
    bytes: B,
    data_type: DataType,
}

impl<B: Deref<Target = [u8]>> Values<B> {
    /// Returns the whole array as stored bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the value at a position exactly; the imaginary part of a real one is 0.
    pub(super) fn get(&self, at: usize) -> Complex64 {
        let (real, bytes) = (|value| Complex64::new(value, 0.0), &*self.bytes);
        match self.data_type {
            DataType::R32F => real(get::<f32>(bytes, at).into()),
            DataType::R64F => real(get(bytes, at)),
            DataType::R16F => real(get::<f16>(bytes, at).to_f32().into()),
            DataType::R16BF => real(get::<bf16>(bytes, at).to_f32().into()),
            DataType::C32F => {
                let Complex32 { re, im } = get(bytes, at);
                Complex64::new(re.into(), im.into())
            }
            DataType::C64F => get(bytes, at),
            DataType::R8I | DataType::R32I => unreachable!("values of integers are not opened"),
        }
    }
}

impl<B: DerefMut<Target = [u8]>> Values<B> {
    /// Stores a number at a position, rounded to nearest, ties to even; for a real type its real part.
    pub(super) fn set(&mut self, at: usize, number: Complex64) {
        let (Complex64 { re, im }, bytes) = (number, &mut *self.bytes);
        match self.data_type {
            DataType::R32F => set(bytes, at, re as f32),
            DataType::R64F => set(bytes, at, re),
            DataType::R16F => set(bytes, at, round_to_f16(re)),
            DataType::R16BF => set(bytes, at, round_to_bf16(re)),
            DataType::C32F => set(bytes, at, Complex32::new(re as f32, im as f32)),
            DataType::C64F => set(bytes, at, number),
            DataType::R8I | DataType::R32I => unreachable!("values of integers are not opened"),
        }
    }
}

impl Values<&[u8]> {
    /// Opens the array for reading.
    pub(super) fn read(name: &str, place: impl Into<Place>) -> Result<Self> {
        let Place { address, len, data_type } = place.into();
        // SAFETY: the promise of `Place`, and nothing changes the values while a call that reads them runs.
        let bytes = unsafe { memory::open(name, address, bytes_of_values(name, len, data_type)?)? };
        Ok(Values { bytes, data_type })
    }
}

impl Values<&mut [u8]> {
    /// Opens the array for writing.
    pub(super) fn write(name: &str, place: impl Into<Place>) -> Result<Self> {
        let Place { address, len, data_type } = place.into();
        // SAFETY: the promise of `Place`, and nothing else accesses the values while a call that writes them
        // runs: the plan has refused inputs that overlap them.
        let bytes = unsafe { memory::open_mut(name, address, bytes_of_values(name, len, data_type)?)? };
        Ok(Values { bytes, data_type })
    }
}

/// Location and type of values, as a descriptor or the caller of execute promises them.
pub(super) struct Place {
    address: Address,
    len: usize,
    data_type: DataType,
}

impl From<&SparseMatrix> for Place {
    fn from(a: &SparseMatrix) -> Self {
        Place { address: a.values(), len: a.shape().2 as usize, data_type: a.value_type() }
    }
}

impl From<&DenseVector> for Place {
    fn from(x: &DenseVector) -> Self {
        Place { address: x.values, len: x.len as usize, data_type: x.value_type }
    }
}

impl Place {
    /// Returns the location of one element of a matrix. The whole range is never opened, since another thread
    /// may write the memory between its rows or columns.
    pub(super) fn of_element(m: &DenseMatrix, row: usize, col: usize) -> Self {
        let elements = match m.order {
            Order::Col => row + col * m.ld as usize,
            Order::Row => row * m.ld as usize + col,
        };
        let first = m.values.as_ptr::<u8>();
        let address = Address::new(first.wrapping_add(elements * m.value_type.size()));
        Place { address, len: 1, data_type: m.value_type }
    }

    /// Returns the location of alpha or beta.
    pub(super) fn of_scalar(address: Address, compute: ComputeType) -> Self {
        Place { address, len: 1, data_type: compute.scalar() }
    }
}

/// Returns the bytes of `len` values; an error for integers, which no operation supports.
fn bytes_of_values(name: &str, len: usize, data_type: DataType) -> Result<usize> {
    match data_type {
        DataType::R8I | DataType::R32I => {
            Err(Error::unsupported(format!("{name}: no operation takes integer values")))
        }
        other => Ok(len.saturating_mul(other.size())),
    }
}

/// An array of offsets or indices, which can be read, and written if B is mutable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indices<B> {
    bytes: B,
    index_type: IndexType,
}

impl<B: Deref<Target = [u8]>> Indices<B> {
    /// Returns the number at a position as stored, without subtracting the base.
    pub(super) fn get(&self, at: usize) -> i64 {
        match self.index_type {
            IndexType::I64 => get(&self.bytes, at),
            _ => get::<i32>(&self.bytes, at).into(),
        }
    }
}

impl<B: DerefMut<Target = [u8]>> Indices<B> {
    /// Stores a number; an error if it does not fit.
    pub(super) fn set(&mut self, at: usize, number: i64) -> Result<()> {
        if self.index_type == IndexType::I64 {
            set(&mut self.bytes, at, number);
            return Ok(());
        }
        let Ok(number) = i32::try_from(number) else {
            return Err(Error::invalid("C", format!("{number} does not fit in 32 bits")));
        };
        set(&mut self.bytes, at, number);
        Ok(())
    }
}

impl Indices<&[u8]> {
    /// # Safety
    /// The conditions of [`memory::open`], with elements of `index_type`.
    pub(super) unsafe fn open(
        name: &str,
        address: Address,
        len: usize,
        index_type: IndexType,
    ) -> Result<Self> {
        let len = bytes_of_indices(name, len, index_type)?;
        // SAFETY: the caller's promise.
        Ok(Indices { bytes: unsafe { memory::open(name, address, len)? }, index_type })
    }
}

impl Indices<&mut [u8]> {
    /// # Safety
    /// The conditions of [`memory::open_mut`], with elements of `index_type`.
    pub(super) unsafe fn open_mut(
        name: &str,
        address: Address,
        len: usize,
        index_type: IndexType,
    ) -> Result<Self> {
        let len = bytes_of_indices(name, len, index_type)?;
        // SAFETY: the caller's promise.
        Ok(Indices { bytes: unsafe { memory::open_mut(name, address, len)? }, index_type })
    }
}

/// Returns the bytes of `len` offsets or indices.
fn bytes_of_indices(name: &str, len: usize, index_type: IndexType) -> Result<usize> {
    match index_type {
        IndexType::U16 => Err(Error::unsupported(format!("{name}: 16-bit indices are not accepted"))),
        other => Ok(len.saturating_mul(other.size())),
    }
}

/// Opens the workspace as an array of sums, all set to 0.
///
/// # Safety
/// The result of an earlier call for the same workspace is not used any more, and the workspace is used by
/// the calling execute alone.
pub(super) unsafe fn sums<'a, N: Number>(workspace: Workspace, len: usize) -> Result<&'a mut [N]> {
    workspace.require(len.saturating_mul(size_of::<N>()))?;
    // SAFETY: the workspace is that large and aligned to 16 bytes, and any bytes are a valid number; the rest
    // is the caller's promise.
    let sums = unsafe { memory::open_mut::<N>("workspace", workspace.address, len)? };
    sums.fill(N::ZERO);
    Ok(sums)
}

/// Returns the bytes of workspace for `len` sums.
pub(super) fn sums_bytes(len: usize, compute: ComputeType) -> usize {
    len.saturating_mul(if is_complex(compute) { size_of::<Complex64>() } else { size_of::<f64>() })
}
