//! alpha and beta as kernels take them.

use super::launch::Scalar;
use crate::error::{Error, Result};
use crate::memory::{self, Context};
use crate::types::{Accumulator, Address, PointerMode};

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
