//! Lossless value narrowing: a layout stores its values in fewer bytes where each of them, widened again, has
//! its original bits. Products are then the same to the bit, since kernels widen a value exactly before they
//! use it.
//!
//! | values | forms, fewest bytes first |
//! |---|---|
//! | fp64 | all are 1; fp16; fp32 |
//! | fp32 | all are 1; fp16 |
//! | fp16, bf16 | all are 1 |
//! | complex | none |
//!
//! Infinities and NaN are in no narrow form: conversions need not keep a NaN's bits.
//!
//! Analysis chooses the form, where values will not be updated in place (`tarsiaPlan_setValueUpdates(plan,
//! 0)`), and chooses again for new values. On a device kernels/format/values.cu does the work of
//! [`narrowest`]. [`super::sell`] is built in any form, [`super::warp_sell`] in any form on a device.

use std::sync::atomic::{AtomicU32, Ordering};

use bytemuck::cast_slice;
use half::f16;

use crate::memory::pool;
use crate::types::{DataType, Element};

pub use stored::{Holds, Narrow, One};

mod stored;

/// Form in which a layout stores its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The user's type.
    #[default]
    Full,
    /// Stored as fp32.
    Single,
    /// Stored as fp16.
    Half,
    /// No stored values, since each is 1.
    Ones,
}

impl Form {
    /// Returns the narrow forms of values of this type, fewest bytes first.
    pub fn of(value_type: DataType) -> &'static [Form] {
        match value_type {
            DataType::R64F => &[Form::Ones, Form::Half, Form::Single],
            DataType::R32F => &[Form::Ones, Form::Half],
            DataType::R16F | DataType::R16BF => &[Form::Ones],
            DataType::C32F | DataType::C64F | DataType::R8I | DataType::R32I => &[],
        }
    }

    /// Returns the type of the stored values, if any are stored.
    pub fn stored(self, value_type: DataType) -> Option<DataType> {
        match self {
            Form::Full => Some(value_type),
            Form::Single => Some(DataType::R32F),
            Form::Half => Some(DataType::R16F),
            Form::Ones => None,
        }
    }

    /// Returns the bytes of a value of type `value_type` in this form.
    pub fn bytes(self, value_type: DataType) -> usize {
        self.stored(value_type).map_or(0, DataType::size)
    }

    /// Returns the form's bit in a set of narrow forms.
    const fn bit(self) -> u32 {
        match self {
            Form::Full => 0,
            Form::Ones => 1,
            Form::Half => 2,
            Form::Single => 4,
        }
    }

    /// Returns the set of the narrow forms of a type.
    pub fn set(value_type: DataType) -> u32 {
        Form::of(value_type).iter().fold(0, |set, form| set | form.bit())
    }

    /// Returns the form of fewest bytes that is not in the set `lost`.
    pub fn without(value_type: DataType, lost: u32) -> Form {
        let kept = Form::of(value_type).iter().find(|form| lost & form.bit() == 0);
        kept.copied().unwrap_or_default()
    }

    /// Returns a readable description; empty where values are stored in full.
    pub fn describe(self) -> &'static str {
        match self {
            Form::Full => "",
            Form::Single => "values kept as fp32",
            Form::Half => "values kept as fp16",
            Form::Ones => "no values kept: all are 1",
        }
    }
}

/// Returns the bits of 1 in a value type.
pub fn one(value_type: DataType) -> u64 {
    match value_type {
        DataType::R64F => 1_f64.to_bits(),
        DataType::R32F => 1_f32.to_bits().into(),
        DataType::R16F => f16::ONE.to_bits().into(),
        DataType::R16BF => half::bf16::ONE.to_bits().into(),
        // These types have no narrow form, so their 1 is never used.
        DataType::C32F | DataType::C64F | DataType::R8I | DataType::R32I => 0,
    }
}

/// Conversions that the code reading narrow values can do.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// True if the code widens fp16 fast.
    pub half: bool,
    /// True if the code widens subnormal fp32 exactly, in whatever mode a caller has set the processor to.
    pub subnormal: bool,
}

impl Reader {
    /// Reader of all forms.
    #[cfg(test)]
    pub const ANY: Reader = Reader { half: true, subnormal: true };
}

/// Number of values that are tested between two checks whether any form is left.
const BLOCK: usize = 1 << 10;

/// Number of values of a parallel task: some 50 µs of work.
const GRAIN: usize = 1 << 16;

/// Returns the form of fewest bytes that holds all the values for this reader; [`Form::Full`] if there are no
/// values.
pub fn narrowest<V: Element>(values: &[V], reader: Reader) -> Form {
    let all = Form::set(V::TYPE);
    if values.is_empty() || all == 0 {
        return Form::Full;
    }
    let refused = if reader.half { 0 } else { Form::Half.bit() };
    let lost = match V::TYPE {
        DataType::R64F => lost(all, refused, cast_slice(values), |form, value: f64| match form {
            Form::Ones => value == 1.0,
            Form::Half => is_half_64(value),
            _ => is_single(value, reader.subnormal),
        }),
        DataType::R32F => lost(all, refused, cast_slice(values), |form, value: f32| match form {
            Form::Ones => value == 1.0,
            _ => is_half_32(value),
        }),
        value_type => {
            let one = one(value_type) as u16;
            lost(all, refused, cast_slice(values), |_, bits: u16| bits == one)
        }
    };
    Form::without(V::TYPE, lost)
}

/// Returns the forms of the set `all` that do not hold all of the values, and those that are `refused`.
fn lost<B: Copy + Sync>(all: u32, refused: u32, values: &[B], holds: impl Fn(Form, B) -> bool + Sync) -> u32 {
    let lost = AtomicU32::new(refused & all);
    let test_values = |values: &[B]| {
        for block in values.chunks(BLOCK) {
            let known = lost.load(Ordering::Relaxed);
            if known == all {
                break;
            }
            // Loops without an early exit, one for each form, become vector code.
            let misses = |form| block.iter().fold(false, |misses, &value| misses | !holds(form, value));
            let mut found = 0;
            for form in [Form::Ones, Form::Half, Form::Single] {
                if all & !known & form.bit() != 0 {
                    let misses = match form {
                        Form::Ones => misses(Form::Ones),
                        Form::Half => misses(Form::Half),
                        _ => misses(Form::Single),
                    };
                    found |= u32::from(misses) * form.bit();
                }
            }
            lost.fetch_or(found, Ordering::Relaxed);
        }
    };
    // Most arrays fit no narrow form, and the first values show it.
    let (first, others) = values.split_at(values.len().min(GRAIN));
    test_values(first);
    if !others.is_empty() && lost.load(Ordering::Relaxed) != all {
        pool::for_each(others.len().div_ceil(GRAIN), &|at| {
            test_values(&others[at * GRAIN..others.len().min((at + 1) * GRAIN)]);
        });
    }
    lost.into_inner()
}

// Bits, not numbers, are compared, since a caller's floating-point mode may treat subnormal numbers as zeros.

/// Returns whether fp16 holds the value: at most the largest fp16, a multiple of the smallest, and of no more
/// than 11 significant bits.
#[inline(always)]
fn is_half_64(value: f64) -> bool {
    /// Power of two whose unit in the last place is 2^−24.
    const UNIT: f64 = (1_u64 << 28) as f64;
    let magnitude = value.abs();
    let whole = ((magnitude + UNIT) - UNIT).to_bits() == magnitude.to_bits();
    (magnitude <= 65504.0) & whole & (value.to_bits() << (11 + 11) == 0)
}

/// Returns whether fp16 holds the fp32 value.
#[inline(always)]
fn is_half_32(value: f32) -> bool {
    /// Power of two whose unit in the last place is 2^−24; sums with larger fp16 are exact.
    const UNIT: f32 = 0.5;
    let magnitude = value.abs();
    let whole = ((magnitude + UNIT) - UNIT).to_bits() == magnitude.to_bits();
    (magnitude <= 65504.0) & whole & (value.to_bits() << (8 + 11) == 0)
}

#[inline(always)]
fn is_single(value: f64, subnormal: bool) -> bool {
    let single = value as f32;
    let is_normal = value.abs() >= f64::from(f32::MIN_POSITIVE);
    let is_allowed = is_normal | subnormal | (value.to_bits() << 1 == 0);
    (value.abs() <= f64::from(f32::MAX)) & (f64::from(single).to_bits() == value.to_bits()) & is_allowed
}

#[cfg(test)]
pub(crate) mod tests;
