//! Scalars alpha and beta in the form in which kernels take them.

use num_complex::Complex64;

use super::launch::Parameter;
use crate::error::{Error, Result};
use crate::memory::{self, Context};
use crate::types::{Address, DataType, PointerMode};

/// Scalar alpha or beta, laid out as the kernels' `Scalar<T>` of the compute type T: a value and a pointer.
/// If the pointer is not NULL, the value is read when the kernel runs, so that a graph replays with new
/// values. T is known at run time only, so that executors are not compiled once per type.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// Value, padded to whole words, followed by the pointer.
    words: [u64; 3],
    compute: DataType,
}

// SAFETY: the words are the bytes of the kernels' structure, which a test checks.
unsafe impl Parameter for Scalar {
    fn bytes(&self) -> usize {
        (self.value_words() + 1) * size_of::<u64>()
    }
}

impl Scalar {
    /// Makes a real number that is known on the host.
    pub fn real(compute: DataType, value: f64) -> Self {
        let mut scalar = Scalar { words: [0; 3], compute };
        let single = matches!(compute, DataType::R32F | DataType::C32F);
        scalar.words[0] = if single { u64::from((value as f32).to_bits()) } else { value.to_bits() };
        scalar
    }

    /// Returns whether this is a number that is known on the host and not 0.
    pub fn is_known_and_not_zero(&self) -> bool {
        self.on_host().is_some() && !self.is(0.0)
    }

    /// Takes the argument `name` of a product with this compute type. In pointer mode HOST its value is read
    /// now; in mode DEVICE its address is passed to kernels.
    pub fn of_argument(cx: &Context, name: &str, compute: DataType, address: Address) -> Result<Self> {
        let mut scalar = Scalar { words: [0; 3], compute };
        match cx.pointer_mode {
            // SAFETY: the caller of execute promises one scalar of the compute type, which has this many
            // bytes.
            PointerMode::Host => unsafe {
                match compute.size() {
                    4 => scalar.words[0] = u64::from(memory::read_scalar::<u32>(name, address)?),
                    8 => scalar.words[0] = memory::read_scalar(name, address)?,
                    _ => scalar.words[..2].copy_from_slice(&memory::read_scalar::<[u64; 2]>(name, address)?),
                }
            },
            PointerMode::Device => {
                if address.is_null() {
                    return Err(Error::invalid(name, "the pointer is NULL"));
                }
                let align = compute.align();
                if !address.is_aligned(align) {
                    return Err(Error::invalid(name, format!("the pointer is not aligned to {align} bytes")));
                }
                scalar.words[scalar.value_words()] = address.value() as u64;
            }
        }
        Ok(scalar)
    }

    /// Type of the number.
    pub fn compute(&self) -> DataType {
        self.compute
    }

    fn value_words(&self) -> usize {
        self.compute.size().div_ceil(size_of::<u64>())
    }

    /// Bytes of the value, followed by zeros; `None` if it is on the device and unknown before a kernel runs.
    pub fn on_host(&self) -> Option<[u64; 2]> {
        let value = [self.words[0], if self.value_words() == 2 { self.words[1] } else { 0 }];
        (self.words[self.value_words()] == 0).then_some(value)
    }

    /// Returns whether the scalar is known to be this real number.
    pub fn is(&self, number: f64) -> bool {
        let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
        let value = self.on_host().map(|[first, second]| match self.compute {
            DataType::C64F => Complex64::new(f64::from_bits(first), f64::from_bits(second)),
            DataType::R64F => f64::from_bits(first).into(),
            DataType::C32F => Complex64::new(single(first), single(first >> 32)),
            _ => single(first).into(),
        });
        value == Some(number.into())
    }
}

/// Takes alpha and beta of a product.
pub(super) fn scalars(
    cx: &Context,
    compute: DataType,
    alpha: Address,
    beta: Address,
) -> Result<(Scalar, Scalar)> {
    let scalar = |name, address| Scalar::of_argument(cx, name, compute, address);
    Ok((scalar("alpha", alpha)?, scalar("beta", beta)?))
}

#[cfg(test)]
mod tests {
    use num_complex::Complex32;

    use super::*;
    use crate::types::Accumulator;

    /// The kernels' structure (kernels/common/scalar.cuh), whose members the CUDA compiler lays out as C
    /// does.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Typed<T> {
        value: T,
        pointer: u64,
    }

    fn bytes_of<T: Accumulator>(scalar: &Scalar) -> Vec<u8> {
        assert_eq!(scalar.bytes(), size_of::<Typed<T>>());
        bytemuck::cast_slice(&scalar.words)[..scalar.bytes()].to_vec()
    }

    fn check<T: Accumulator>(value: T, number: Option<f64>) {
        let (size, at) = (size_of::<T>(), std::mem::offset_of!(Typed<T>, pointer));
        let mut cx = crate::backend::host::testing::context();
        let given = Address::new(std::ptr::from_ref(&value).cast::<u8>());
        let host = Scalar::of_argument(&cx, "alpha", T::TYPE, given).unwrap();
        let bytes = bytes_of::<T>(&host);
        assert_eq!(&bytes[..size], bytemuck::bytes_of(&value));
        assert!(bytes[size..].iter().all(|&byte| byte == 0));
        assert_eq!(&bytemuck::bytes_of(&host.on_host().unwrap())[..size], bytemuck::bytes_of(&value));
        assert_eq!(host.is(1.0), number == Some(1.0));
        assert_eq!(host.is(0.0), number == Some(0.0));
        assert_eq!(host.is_known_and_not_zero(), number != Some(0.0));
        if let Some(number) = number {
            assert_eq!(bytes_of::<T>(&Scalar::real(T::TYPE, number)), bytes);
        }

        cx.pointer_mode = PointerMode::Device;
        let there = Address::new(std::ptr::without_provenance::<u8>(0x1234_5678_9abc_def0));
        let device = Scalar::of_argument(&cx, "alpha", T::TYPE, there).unwrap();
        let bytes = bytes_of::<T>(&device);
        assert!(bytes[..at].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[at..at + 8], 0x1234_5678_9abc_def0_u64.to_ne_bytes());
        assert!(device.on_host().is_none() && !device.is(0.0) && !device.is(1.0));
        assert!(!device.is_known_and_not_zero());
        let crooked = Address::new(std::ptr::without_provenance::<u8>(0x1002));
        assert!(Scalar::of_argument(&cx, "alpha", T::TYPE, crooked).is_err());
        assert!(Scalar::of_argument(&cx, "alpha", T::TYPE, Address::NULL).is_err());
    }

    #[test]
    fn scalars_have_the_bytes_of_their_type() {
        for number in [0.0, 1.0, -2.5] {
            check(number as f32, Some(number));
            check(number, Some(number));
            check(Complex32::new(number as f32, 0.0), Some(number));
            check(Complex64::new(number, 0.0), Some(number));
        }
        check(Complex32::new(1.0, -3.0), None);
        check(Complex64::new(1.0, -3.0), None);
    }
}
