//! Eight sums side by side: the inner loops of SELL, for any processor and for AVX2.
//!
//! The compiler makes vector code of arrays of eight where a function is compiled for AVX2; what it would not find
//! is written out here. x is gathered by eight loads and not by a gather instruction: on a
//! Zen 4 core that takes 0.35 ns an entry instead of 0.55 (16-bit columns, f64,
//! rows of 8 entries), and processors that guard gathers against data sampling
//! are slower still.

use std::any::TypeId;

use bytemuck::Pod;
use half::{bf16, f16};

use crate::format::narrowing::{Holds, Reader};
use crate::format::sell::LANES;
use crate::support::Combo;
use crate::types::{Accumulator, Element, Storage};

/// Whether the processor has AVX2, FMA and F16C. The standard library asks once.
#[inline]
pub(super) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// Whether sums of these types are formed by the code for AVX2, which adds products without rounding them first.
#[inline]
pub(super) fn uses_avx2<C: Combo>() -> bool {
    !C::Acc::TYPE.is_complex() && has_avx2()
}

/// What values in a narrower form are read by; `None`: nothing reads them, which is so on x86-64 without AVX2, for
/// whose sake the code for each form is not compiled twice.
pub(super) fn reader() -> Option<Reader> {
    let half = has_avx2();
    // Conversions of fp32 obey the caller's denormals-are-zero mode, those of fp16 do not.
    (half || cfg!(not(target_arch = "x86_64"))).then_some(Reader { half, subnormal: false })
}

/// Columns of eight entries that follow each other in memory.
pub(super) trait Cols: Copy {
    /// `u16`s an entry.
    const WIDTH: usize;
    /// From the first column on.
    fn new(first: *const u16) -> Self;
    /// Column of one entry.
    ///
    /// # Safety
    /// The column is inside the array that `first` points into.
    unsafe fn one(self, entry: usize) -> usize;
    /// Columns of eight entries.
    ///
    /// # Safety
    /// As [`Self::one`].
    #[inline(always)]
    unsafe fn eight(self) -> [usize; LANES] {
        // SAFETY: the caller's promise.
        std::array::from_fn(|entry| unsafe { self.one(entry) })
    }
}

/// 16 bits a column.
#[derive(Clone, Copy)]
pub(super) struct Narrow(*const u16);

/// 32 bits a column, in two halves, the low one first.
#[derive(Clone, Copy)]
pub(super) struct Wide(*const u16);

impl Cols for Narrow {
    const WIDTH: usize = 1;
    #[inline(always)]
    fn new(first: *const u16) -> Self {
        Narrow(first)
    }
    #[inline(always)]
    unsafe fn one(self, entry: usize) -> usize {
        // SAFETY: the caller's promise.
        usize::from(unsafe { self.0.add(entry).read() })
    }
    #[inline(always)]
    unsafe fn eight(self) -> [usize; LANES] {
        // Two loads instead of eight: loads are what the loop is bound by.
        // SAFETY: the caller's promise.
        let words = unsafe { self.0.cast::<[u64; 2]>().read_unaligned() }.map(u64::from_le);
        std::array::from_fn(|entry| usize::from(u16::from_le((words[entry / 4] >> (entry % 4 * 16)) as u16)))
    }
}

impl Cols for Wide {
    const WIDTH: usize = 2;
    #[inline(always)]
    fn new(first: *const u16) -> Self {
        Wide(first)
    }
    #[inline(always)]
    unsafe fn one(self, entry: usize) -> usize {
        // SAFETY: the caller's promise, for both halves.
        let (low, high) = unsafe { (self.0.add(2 * entry).read(), self.0.add(2 * entry + 1).read()) };
        usize::from(low) | usize::from(high) << 16
    }
}

/// x at eight columns.
///
/// # Safety
/// All are inside x. With `AVX2` the processor has that; so for all functions here.
#[inline(always)]
pub(super) unsafe fn gather<const AVX2: bool, C: Combo>(
    x: *const C::X,
    columns: [usize; LANES],
) -> [C::Acc; LANES] {
    // SAFETY: the caller's promise.
    unsafe { widen::<AVX2, _, _>(columns.map(|column| x.add(column).read()), C::X::widen) }
}

/// x at eight columns that follow each other.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
pub(super) unsafe fn load<const AVX2: bool, C: Combo>(x: *const C::X) -> [C::Acc; LANES] {
    // SAFETY: the caller's promise.
    unsafe { widen::<AVX2, _, _>(x.cast::<[C::X; LANES]>().read(), C::X::widen) }
}

/// Adds eight values of A, which are stored as S, times `xs`.
///
/// # Safety
/// There are eight values; as [`gather`].
#[inline(always)]
pub(super) unsafe fn add_products<const AVX2: bool, C: Combo, S: Holds<C::A>>(
    sums: &mut [C::Acc; LANES],
    values: *const S,
    xs: [C::Acc; LANES],
) {
    // SAFETY: the caller's promise.
    let values = unsafe {
        widen::<AVX2, _, C::Acc>(values.cast::<[S; LANES]>().read(), |value: S| value.value().widen())
    };
    for ((sum, value), x) in sums.iter_mut().zip(values).zip(xs) {
        if AVX2 {
            sum.add_product(value, x);
        } else {
            *sum += value * x;
        }
    }
}

/// Widens eight stored numbers, each as `one` does. Halves are widened at once on AVX2: for one, the compiler
/// takes care of NaNs that signal, and of subnormals.
///
/// # Safety
/// As [`gather`].
#[inline(always)]
unsafe fn widen<const AVX2: bool, S: Pod, T: Accumulator>(
    from: [S; LANES],
    one: impl Fn(S) -> T,
) -> [T; LANES] {
    #[cfg(target_arch = "x86_64")]
    if AVX2 && TypeId::of::<S>() == TypeId::of::<f16>() {
        use std::arch::x86_64::_mm256_cvtph_ps;
        // SAFETY: they are eight halves, the processor widens them, and a vector is eight floats.
        let singles = unsafe {
            std::mem::transmute::<_, [f32; LANES]>(_mm256_cvtph_ps(std::mem::transmute_copy(&from)))
        };
        return singles.map(T::from_single);
    }
    if AVX2 && TypeId::of::<S>() == TypeId::of::<bf16>() {
        // SAFETY: they are eight numbers of 16 bits.
        let bits = unsafe { std::mem::transmute_copy::<_, [u16; LANES]>(&from) };
        return bits.map(|bits| T::from_single(f32::from_bits(u32::from(bits) << 16)));
    }
    from.map(one)
}

/// The first `active` (at most 8) of eight numbers, and zeros, whose bits are 0. By masks that are loaded: of
/// comparisons the compiler makes branches.
#[inline(always)]
pub(super) fn keep<T: Accumulator>(xs: [T; LANES], active: usize) -> [T; LANES] {
    const MOST: usize = LANES * 16;
    const MASKS: [u8; 2 * MOST] = {
        let mut masks = [0; 2 * MOST];
        let mut at = 0;
        while at < MOST {
            masks[at] = 0xff;
            at += 1;
        }
        masks
    };
    static ONES_THEN_ZEROS: [u8; 2 * MOST] = MASKS;
    #[inline(always)]
    fn masked<T: Accumulator, W: Pod + std::ops::BitAnd<Output = W>>(
        xs: [T; LANES],
        mask: &[u8],
    ) -> [T; LANES] {
        let (words, masks) =
            (bytemuck::cast::<_, [W; LANES]>(xs), bytemuck::pod_read_unaligned::<[W; LANES]>(mask));
        bytemuck::cast(std::array::from_fn::<W, LANES, _>(|lane| words[lane] & masks[lane]))
    }
    let mask = &ONES_THEN_ZEROS[MOST - active * size_of::<T>()..][..LANES * size_of::<T>()];
    match size_of::<T>() {
        4 => masked::<T, u32>(xs, mask),
        8 => masked::<T, u64>(xs, mask),
        _ => masked::<T, u128>(xs, mask),
    }
}
