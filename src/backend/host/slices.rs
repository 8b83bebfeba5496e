//! The layout [`SellLayout`] for SpMV and SpMM, divided into items of parallel work.

use super::lanes;
use super::layout::{Layout, OpA};
use super::operand::HostRows;
use crate::error::Result;
use crate::format::narrowing::{self, Form};
use crate::format::sell::{SellLayout, LANES};
use crate::memory::{Buffer, Context};
use crate::types::LayoutKind;

/// Work of an item in slots for values, where a row costs about [`ROW_WORK`] slots. With one column an item
/// takes 1 to 2 µs, against some 30 ns for handing it to a thread.
const ITEM_WORK: usize = 1 << 12;

/// Cost of storing one row of the result, in slots for values.
const ROW_WORK: usize = 4;

/// A SELL layout, divided into items.
pub(super) struct Slices<V: narrowing::Narrow> {
    pub layout: SellLayout<V>,
    /// First slice of each item, followed by the number of slices.
    pub items: Buffer<u64>,
}

impl<V: narrowing::Narrow> Slices<V> {
    /// Builds the layout.
    pub fn arrange(cx: &Context, a: &OpA) -> Result<Self> {
        let layout = a.arrange(cx, a.source(), |allocator, rows, origin| {
            let form = Self::form(rows, a.keep);
            SellLayout::<V>::build(allocator, &rows.pattern, rows.values, form, origin)
        })?;
        Self::deal(cx, layout)
    }

    /// Returns the form in which values are stored: that of fewest bytes, unless new values are announced,
    /// which might not fit it.
    pub fn form(rows: &HostRows<'_, V>, keep: bool) -> Form {
        match lanes::reader() {
            Some(reader) if !keep => narrowing::narrowest(rows.values, reader),
            _ => Form::Full,
        }
    }

    /// Divides a layout into items.
    pub fn deal(cx: &Context, layout: SellLayout<V>) -> Result<Self> {
        let slices = &layout.slices;
        let work_before = |number: usize| layout.starts(number).0 + number * LANES * ROW_WORK;
        let cut = |item: &mut dyn FnMut(usize)| {
            let mut first = 0;
            for number in 0..slices.len() {
                if number == 0 || work_before(number) - work_before(first) >= ITEM_WORK {
                    item(number);
                    first = number;
                }
            }
            item(slices.len());
        };
        let mut count = 0;
        cut(&mut |_| count += 1);
        let mut items = Buffer::<u64>::zeroed(&cx.allocator, count)?;
        let mut next = 0;
        cut(&mut |first| {
            items[next] = first as u64;
            next += 1;
        });
        Ok(Slices { layout, items })
    }
}

impl<V: narrowing::Narrow> Layout for Slices<V> {
    const KIND: LayoutKind = LayoutKind::Sell;

    fn update_values(&mut self, cx: &Context, a: &OpA) -> Result<()> {
        let refill = |slices: &mut Self, values: &[V], conjugate| slices.layout.refill(values, conjugate);
        a.renew(self, refill, |_| Self::arrange(cx, a))
    }

    fn size(&self) -> (usize, f64) {
        (self.layout.values.len() + self.layout.slices.len() * LANES * ROW_WORK, self.layout.fill_ratio())
    }

    fn details(&self) -> String {
        self.layout.values.form().describe().into()
    }
}
