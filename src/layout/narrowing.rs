//! Lossless value narrowing: a layout keeps its values in fewer bytes where each of
//! them, widened again, has the bits that it had. Products are then the same to the
//! bit, since kernels widen a value exactly before they use it.
//!
//! | values | forms, fewest bytes first |
//! |---|---|
//! | fp64 | all are 1; fp16; fp32 |
//! | fp32 | all are 1; fp16 |
//! | fp16, bf16 | all are 1 |
//! | complex | none |
//!
//! Infinities and NaN are in no form: conversions need not keep a NaN's bits.
//!
//! Analysis decides, where values will not be updated in place
//! (`tarsiaPlan_setValueUpdates(plan, 0)`); new values are looked at again. On a
//! device kernels/convert/values.cu does what [`narrowest`] does here.

use bytemuck::cast_slice;
use half::f16;

use crate::types::{DataType, Element};

/// How a layout keeps its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As the user has them.
    #[default]
    Full,
    /// As fp32.
    Single,
    /// As fp16.
    Half,
    /// Not at all: each is 1.
    Ones,
}

impl Form {
    /// The narrow forms of values of this type, fewest bytes first.
    pub fn of(value_type: DataType) -> &'static [Form] {
        match value_type {
            DataType::R64F => &[Form::Ones, Form::Half, Form::Single],
            DataType::R32F => &[Form::Ones, Form::Half],
            DataType::R16F | DataType::R16BF => &[Form::Ones],
            DataType::C32F | DataType::C64F | DataType::R8I | DataType::R32I => &[],
        }
    }

    /// Type of the stored values, if there are any.
    pub fn stored(self, value_type: DataType) -> Option<DataType> {
        match self {
            Form::Full => Some(value_type),
            Form::Single => Some(DataType::R32F),
            Form::Half => Some(DataType::R16F),
            Form::Ones => None,
        }
    }

    /// Bytes of a value of this type in this form.
    pub fn bytes(self, value_type: DataType) -> usize {
        self.stored(value_type).map_or(0, DataType::size)
    }

    /// The form's bit in a set of narrow forms.
    const fn bit(self) -> u32 {
        match self {
            Form::Full => 0,
            Form::Ones => 1,
            Form::Half => 2,
            Form::Single => 4,
        }
    }

    /// The set of the narrow forms of a type.
    pub fn set(value_type: DataType) -> u32 {
        Form::of(value_type).iter().fold(0, |set, form| set | form.bit())
    }

    /// The form of fewest bytes that is not in the set `lost`.
    pub fn without(value_type: DataType, lost: u32) -> Form {
        let kept = Form::of(value_type).iter().find(|form| lost & form.bit() == 0);
        kept.copied().unwrap_or_default()
    }

    /// For people; empty where values are kept as they are.
    pub fn describe(self) -> &'static str {
        match self {
            Form::Full => "",
            Form::Single => "values kept as fp32",
            Form::Half => "values kept as fp16",
            Form::Ones => "no values kept: all are 1",
        }
    }
}

/// The bits of 1.
pub fn one(value_type: DataType) -> u64 {
    match value_type {
        DataType::R64F => 1_f64.to_bits(),
        DataType::R32F => 1_f32.to_bits().into(),
        DataType::R16F => f16::ONE.to_bits().into(),
        DataType::R16BF => half::bf16::ONE.to_bits().into(),
        // No form asks.
        DataType::C32F | DataType::C64F | DataType::R8I | DataType::R32I => 0,
    }
}

/// The form of fewest bytes that holds all the values; [`Form::Full`] of none.
pub fn narrowest<V: Element>(values: &[V]) -> Form {
    let all = Form::set(V::TYPE);
    if values.is_empty() || all == 0 {
        return Form::Full;
    }
    let lost = match V::TYPE {
        DataType::R64F => lost(all, cast_slice(values), misfits_64),
        DataType::R32F => lost(all, cast_slice(values), misfits_32),
        value_type => lost(all, cast_slice::<_, u16>(values), |bits| misfit_ones(bits.into(), value_type)),
    };
    Form::without(V::TYPE, lost)
}

/// Narrow forms that do not hold all of these bits.
fn lost<B: Copy>(all: u32, values: &[B], misfits: impl Fn(B) -> u32) -> u32 {
    let mut lost = 0;
    for &bits in values {
        lost |= misfits(bits) & all;
        if lost == all {
            break;
        }
    }
    lost
}

fn misfit_ones(bits: u64, value_type: DataType) -> u32 {
    if bits == one(value_type) {
        0
    } else {
        Form::Ones.bit()
    }
}

fn misfits_32(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    let fits = value.is_finite() && f16::from_f32(value).to_f32().to_bits() == bits;
    misfit_ones(bits.into(), DataType::R32F) | if fits { 0 } else { Form::Half.bit() }
}

fn misfits_64(bits: u64) -> u32 {
    let value = f64::from_bits(bits);
    let single = value as f32;
    if !value.is_finite() || f64::from(single).to_bits() != bits {
        return Form::set(DataType::R64F);
    }
    misfit_ones(bits, DataType::R64F) | (misfits_32(single.to_bits()) & Form::Half.bit())
}

#[cfg(test)]
pub(crate) mod tests;
