//! Numbers of either width, as positions in arrays are.

use super::DeviceBuffer;
use crate::error::Result;
use crate::memory::Context;
use crate::types::Address;

/// Numbers of 32 bits while these suffice, else of 64.
pub enum Numbers {
    Narrow(DeviceBuffer<u32>),
    Wide(DeviceBuffer<u64>),
}

impl Numbers {
    /// So many, with contents that are not set.
    pub fn new(cx: &Context, count: usize, is_wide: bool) -> Result<Self> {
        Ok(match is_wide {
            true => Numbers::Wide(DeviceBuffer::new(cx, count)?),
            false => Numbers::Narrow(DeviceBuffer::new(cx, count)?),
        })
    }

    /// Where number `at` is.
    pub fn at(&self, at: usize) -> Address {
        match self {
            Numbers::Narrow(numbers) => numbers.at(at),
            Numbers::Wide(numbers) => numbers.at(at),
        }
    }

    /// Where they begin.
    pub fn address(&self) -> Address {
        match self {
            Numbers::Narrow(numbers) => numbers.address(),
            Numbers::Wide(numbers) => numbers.address(),
        }
    }

    /// How many there are.
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

    /// No work that fills them is under way any more.
    pub fn seal(&mut self) {
        match self {
            Numbers::Narrow(numbers) => numbers.seal(),
            Numbers::Wide(numbers) => numbers.seal(),
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
