//! Arrays of numbers of 32 or 64 bits, such as positions of values.

use super::{DeviceBuffer, Fill};
use crate::error::Result;
use crate::memory::Context;
use crate::types::Address;

/// Array of 32-bit numbers while these suffice, else of 64-bit numbers.
pub enum Numbers {
    Narrow(DeviceBuffer<u32>),
    Wide(DeviceBuffer<u64>),
}

impl Numbers {
    /// Allocates `count` numbers with uninitialized contents.
    pub fn new(cx: &Context, count: usize, is_wide: bool) -> Result<Self> {
        Ok(match is_wide {
            true => Numbers::Wide(DeviceBuffer::new(cx, count)?),
            false => Numbers::Narrow(DeviceBuffer::new(cx, count)?),
        })
    }

    /// Address of number `at`.
    pub fn at(&self, at: usize) -> Address {
        match self {
            Numbers::Narrow(numbers) => numbers.at(at),
            Numbers::Wide(numbers) => numbers.at(at),
        }
    }

    /// Address of the first number.
    pub fn address(&self) -> Address {
        match self {
            Numbers::Narrow(numbers) => numbers.address(),
            Numbers::Wide(numbers) => numbers.address(),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Numbers::Narrow(numbers) => numbers.len(),
            Numbers::Wide(numbers) => numbers.len(),
        }
    }

    /// Bits of a number, as the names of kernels spell them.
    pub fn bits(&self) -> &'static str {
        match self {
            Numbers::Narrow(_) => "32",
            Numbers::Wide(_) => "64",
        }
    }
}

impl Fill for Numbers {
    fn mark_filled(&mut self) {
        match self {
            Numbers::Narrow(numbers) => numbers.mark_filled(),
            Numbers::Wide(numbers) => numbers.mark_filled(),
        }
    }
}

impl From<DeviceBuffer<u32>> for Numbers {
    fn from(numbers: DeviceBuffer<u32>) -> Self {
        Numbers::Narrow(numbers)
    }
}

impl From<DeviceBuffer<u64>> for Numbers {
    fn from(numbers: DeviceBuffer<u64>) -> Self {
        Numbers::Wide(numbers)
    }
}
