//! The forms of src/layout/narrowing.rs on the device (kernels/convert/values.cu).

use super::bits_of_values;
use crate::backend::cuda::check::blocks;
use crate::backend::cuda::device::Device;
use crate::backend::cuda::launch::launch;
use crate::backend::cuda::memory::DeviceBuffer;
use crate::backend::Context;
use crate::error::Result;
use crate::layout::narrowing::{self, Form};
use crate::types::{Address, DataType};

const MODULE: &str = "convert/values";

/// The form of fewest bytes that holds all of these values: one pass over them, less
/// where the first ones are in no form, and four bytes come back. Blocks.
pub fn narrowest(
    cx: &Context,
    device: &Device,
    values: Address,
    count: i64,
    value_type: DataType,
) -> Result<Form> {
    let wanted = Form::set(value_type);
    if count == 0 || wanted == 0 {
        return Ok(Form::Full);
    }
    let lost = DeviceBuffer::<u32>::zeroed(cx, 1)?;
    let kernel = device.modules().kernel(MODULE, &format!("misfits_{}", bits_of_values(value_type)?))?;
    // SAFETY: `count` values of this type, and one number.
    unsafe {
        launch!(kernel, blocks(device, count), 256, 0, cx.stream;
            values, count, narrowing::one(value_type), wanted, lost.address())?;
    }
    Ok(Form::without(value_type, lost.read(0, 1)?[0]))
}

/// The values in a form that holds them, in their order: `None` where they are as
/// they were, no element where none is stored.
pub fn narrowed(
    cx: &Context,
    device: &Device,
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
    let name = format!("narrow_{}_{}", bits_of_values(value_type)?, bits_of_values(to)?);
    let kernel = device.modules().kernel(MODULE, &name)?;
    // SAFETY: `count` values of the two types.
    unsafe {
        launch!(kernel, blocks(device, count), 256, 0, cx.stream; values, count, out.address())?;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests;
