//! Kernels that move values to their slots in a layout, and that store them in the narrower forms of
//! src/format/narrowing.rs, on the device (kernels/format/values.cu).

use super::{bits_of_values, Origins};
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::{Device, DeviceCall};
use crate::backend::cuda::launch::{launch, launch_overlapping, Kernel, Overlap};
use crate::backend::cuda::memory::{filled_members, DeviceBuffer};
use crate::backend::cuda::module::kinds::kernel_kinds;
use crate::error::Result;
use crate::format::narrowing::{self, Form};
use crate::types::{Address, DataType};

kernel_kinds! { "format/values" {
    MISFITS(&'static str) = "misfits" for [["16", "32", "64"]];
    NARROW(&'static str, &'static str) = "narrow" for [["64"], ["32", "16"]], [["32"], ["16"]];
    GATHER(&'static str, &'static str) = "gather" for [BITS, ["32", "64"]];
    SCATTER(usize) = "scatter" for [[16, 32, 64]];
} }

/// Kernel that gathers a value, or 0 for padding, for each slot of a layout.
#[derive(Clone, Copy)]
pub struct Gather(Kernel);

impl Gather {
    /// Loads the kernel for values of this type; `position` is the number of bits of the positions that they
    /// come from.
    pub fn load(device: &Device, value_type: DataType, position: &'static str) -> Result<Self> {
        Ok(Gather(GATHER.load(device, (bits_of_values(value_type)?, position))?))
    }

    /// Enqueues the gathering of `slots` values from an array, whose positions may be NULL where slot i takes
    /// value i.
    pub fn launch(
        &self,
        cx: &DeviceCall<'_>,
        (values, positions): (Address, Address),
        conjugate: bool,
        (slots, to): (i64, Address),
    ) -> Result<()> {
        // SAFETY: callers pass a position in the array, or padding, for each slot of `to`.
        unsafe {
            launch!(self.0, blocks(cx.device, slots), 256, 0, cx.stream;
                values, positions, slots, i32::from(conjugate), to)
        }
    }
}

/// For each of the user's values its slot in a layout, which a layout keeps if values will be updated.
pub struct Slots {
    kernel: Kernel,
    pub slots: DeviceBuffer<u64>,
}
filled_members!(Slots { slots });

impl Slots {
    /// Allocates the slots of `count` values of `size` bytes; `None` if values will not be updated.
    pub fn new(cx: &DeviceCall<'_>, count: usize, size: usize, origins: Origins<'_>) -> Result<Option<Self>> {
        let made = origins.map(|_| {
            Ok(Slots { kernel: SCATTER.load(cx.device, (8 * size,))?, slots: DeviceBuffer::new(cx, count)? })
        });
        made.transpose()
    }

    /// Address of the slots; NULL if there are none.
    pub fn address(slots: Option<&Self>) -> Address {
        slots.map_or(Address::NULL, |of| of.slots.address())
    }

    /// Enqueues scattering the user's new values to their slots, from `to` on.
    pub fn scatter(&self, cx: &DeviceCall<'_>, values: Address, to: Address) -> Result<()> {
        let count = self.slots.len() as i64;
        // SAFETY: there is a slot behind `to` for each of the user's values.
        unsafe {
            launch!(self.kernel, blocks(cx.device, count), 256, 0, cx.stream;
                values, self.slots.address(), count, to)
        }
    }
}

/// Enqueues a search for the forms that do not hold all of these values: one pass over them, or less where
/// the first values fit no form. `lost`: 32 bits that are zero, to be given to [`Form::without`] afterwards.
pub fn enqueue(
    cx: &DeviceCall<'_>,
    values: Address,
    count: i64,
    value_type: DataType,
    lost: Address,
    overlap: &Overlap,
) -> Result<()> {
    let wanted = Form::set(value_type);
    if count == 0 || wanted == 0 {
        return Ok(());
    }
    let kernel = MISFITS.load(cx.device, (bits_of_values(value_type)?,))?;
    // SAFETY: there are `count` values of this type, and one number.
    unsafe {
        launch_overlapping!(overlap, kernel, blocks(cx.device, count), 256, 0, cx.stream;
            values, count, narrowing::one(value_type), wanted, lost)
    }
}

/// Returns the form of fewest bytes that holds all of `count` values, from the bits that [`enqueue`] wrote.
pub fn narrowest(count: i64, value_type: DataType, lost: u32) -> Form {
    match count {
        0 => Form::Full,
        _ => Form::without(value_type, lost),
    }
}

/// Stores the values in a form that holds them, in the same order. Returns `None` if the form is the full
/// one, and an empty buffer if the form stores no values.
pub fn narrowed(
    cx: &DeviceCall<'_>,
    values: Address,
    count: i64,
    value_type: DataType,
    form: Form,
) -> Result<Option<DeviceBuffer<u8>>> {
    let to = match (form, form.stored(value_type)) {
        (Form::Full, _) => return Ok(None),
        (_, None) => return DeviceBuffer::new(cx, 0).map(Some),
        (_, Some(to)) => to,
    };
    let out = DeviceBuffer::new(cx, (count as usize).saturating_mul(to.size()))?;
    let kernel = NARROW.load(cx.device, (bits_of_values(value_type)?, bits_of_values(to)?))?;
    // SAFETY: both arrays have `count` values of their types.
    unsafe {
        launch!(kernel, blocks(cx.device, count), 256, 0, cx.stream; values, count, out.address())?;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests;
