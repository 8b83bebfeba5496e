//! alpha and beta as kernels take them.

use num_complex::{Complex32, Complex64};

use super::launch::{AnyScalar, Scalar};
use crate::error::{Error, Result};
use crate::memory::{self, Context};
use crate::types::{Accumulator, Address, DataType, PointerMode};

/// Pointer mode HOST: the value, read now. DEVICE: the address, read when the
/// kernel runs, so that a graph replays with new values.
pub(super) fn scalar<T: Accumulator>(cx: &Context, name: &str, address: Address) -> Result<Scalar<T>> {
    match cx.pointer_mode {
        PointerMode::Host => {
            // SAFETY: the caller of execute promises one scalar of the compute
            // type at the address.
            let value = unsafe { memory::read_scalar(name, address)? };
            Ok(Scalar { value, pointer: Address::NULL })
        }
        PointerMode::Device => {
            if address.is_null() {
                return Err(Error::invalid(name, "the pointer is NULL"));
            }
            if !address.is_aligned(T::TYPE.align()) {
                return Err(Error::invalid(
                    name,
                    format!("the pointer is not aligned to {} bytes", T::TYPE.align()),
                ));
            }
            Ok(Scalar { value: T::ZERO, pointer: address })
        }
    }
}

/// Does what [`scalar`] does, for a compute type that is known only at run time.
pub(super) fn any_scalar(cx: &Context, name: &str, compute: DataType, address: Address) -> Result<AnyScalar> {
    Ok(match compute {
        DataType::R64F => scalar::<f64>(cx, name, address)?.into(),
        DataType::C32F => scalar::<Complex32>(cx, name, address)?.into(),
        DataType::C64F => scalar::<Complex64>(cx, name, address)?.into(),
        _ => scalar::<f32>(cx, name, address)?.into(),
    })
}

/// 0 of a type that is known at run time.
pub(super) fn any_zero(compute: DataType) -> AnyScalar {
    match compute {
        DataType::R64F => Scalar::of(0.0_f64).into(),
        DataType::C32F => Scalar::of(<Complex32 as Accumulator>::ZERO).into(),
        DataType::C64F => Scalar::of(<Complex64 as Accumulator>::ZERO).into(),
        _ => Scalar::of(0.0_f32).into(),
    }
}
