//! Vectors of accumulators, of any width: the registers of AVX-512 and AVX2, and plain arrays for other types
//! and other processors, where the compiler makes vector code of them (on AArch64 of all but complex numbers).
//! Code that is generic over [`Vector`] is written once and compiled for each.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
#[cfg(target_arch = "x86_64")]
use std::marker::PhantomData;
#[cfg(target_arch = "x86_64")]
use std::mem::transmute_copy;

#[cfg(target_arch = "x86_64")]
use bytemuck::Pod;

#[cfg(target_arch = "x86_64")]
use super::lanes;
use crate::types::{Accumulator, Storage};

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Bytes of a result from which on it is written past the caches, which then need not read it before. From
/// 4 MiB on that gains time (5 to 20 % in SpMM); less than 8 MiB may be wanted from the caches by whoever
/// reads it next.
pub(super) const PAST_CACHES: usize = 8 << 20;

/// The vectors for which code is compiled.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Width {
    /// Plain arrays.
    Arrays,
    /// Registers of AVX2.
    #[cfg(target_arch = "x86_64")]
    Ymm,
    /// Registers of AVX-512.
    #[cfg(avx512)]
    Zmm,
}

impl Width {
    /// Returns the widest that the processor has; the standard library caches the detection.
    #[inline]
    pub fn widest() -> Self {
        #[cfg(avx512)]
        if lanes::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            return Width::Zmm;
        }
        #[cfg(target_arch = "x86_64")]
        if lanes::has_avx2() {
            return Width::Ymm;
        }
        Width::Arrays
    }
}

/// Code for vectors, which is compiled for the registers that they are in: see [`run_compiled`].
pub(super) trait VectorCode<S> {
    /// Runs it on a state that nobody changes meanwhile. Implementations are always inlined, so that they are compiled for
    /// the registers of the caller.
    ///
    /// # Safety
    /// The processor has the registers of the code's vectors. Implementations may ask for more.
    unsafe fn run(self, state: &S);
}

/// Runs code by the vectors `V` that is compiled for their registers. On x86-64 arrays, too, are compiled for those of AVX2.
/// The state is an argument of its own, by reference: of what such an argument refers to, unlike of what a reference in
/// `code` does, the compiler knows that stores of results do not change it, and need not load it again in a loop.
///
/// # Safety
/// The requirements of [`VectorCode::run`], and on x86-64 the processor has AVX2.
#[inline(always)]
pub(super) unsafe fn run_compiled<T: Accumulator, V: Vector<T>, S>(state: &S, code: impl VectorCode<S>) {
    // SAFETY: the caller's promise.
    unsafe {
        match V::WIDTH {
            #[cfg(avx512)]
            Width::Zmm => with_avx512(state, code),
            #[cfg(target_arch = "x86_64")]
            _ => with_avx2(state, code),
            #[cfg(not(target_arch = "x86_64"))]
            Width::Arrays => for_any_processor(state, code),
        }
    }
}

/// Runs code of which the compiler makes vector code: for AVX2, if the processor has it.
///
/// # Safety
/// The requirements of [`VectorCode::run`] for any processor: the code has no vectors of its own.
#[inline(always)]
pub(super) unsafe fn run_vectorised<S>(state: &S, code: impl VectorCode<S>) {
    // SAFETY: the caller's promise, and where the code is compiled for AVX2 the processor has it.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if lanes::has_avx2() {
            return with_avx2(state, code);
        }
        code.run(state);
    }
}

/// A function of its own for each code, as those below are.
///
/// # Safety
/// The requirements of [`VectorCode::run`], for any processor.
#[cfg(not(target_arch = "x86_64"))]
#[inline(never)]
unsafe fn for_any_processor<S>(state: &S, code: impl VectorCode<S>) {
    // SAFETY: the caller's promise.
    unsafe { code.run(state) };
}

/// # Safety
/// The requirements of [`VectorCode::run`], for AVX-512.
#[cfg(avx512)]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
unsafe fn with_avx512<S>(state: &S, code: impl VectorCode<S>) {
    // SAFETY: the caller's promise.
    unsafe { code.run(state) };
}

/// # Safety
/// The requirements of [`VectorCode::run`], for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn with_avx2<S>(state: &S, code: impl VectorCode<S>) {
    // SAFETY: the caller's promise.
    unsafe { code.run(state) };
}

/// Bytes of a core's second-level cache; 0 if the processor does not say.
pub(super) fn second_level_cache() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        // Extended leaf 6 has kibibytes in the upper half of ECX, in AMD's processors and in Intel's.
        // SAFETY: every x86-64 processor has the instruction. (Newer versions of Rust have it as a safe function.)
        #[allow(unused_unsafe)]
        *BYTES.get_or_init(|| unsafe {
            match __cpuid(0x8000_0000).eax {
                0x8000_0006.. => (__cpuid(0x8000_0006).ecx >> 16) as usize * 1024,
                _ => 0,
            }
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// A vector of numbers.
///
/// # Safety
/// The processor has what an implementation is for; pointers are valid for [`Self::LANES`] elements. An
/// implementation has the layout of an array of that many numbers.
pub(super) unsafe trait Vector<T: Accumulator>: Copy {
    /// Width of the registers that the processor must have.
    const WIDTH: Width;
    /// Number of numbers.
    const LANES: usize;
    /// Most vectors of sums at a time: as many as the registers hold beside the operands, of which there may be several.
    const MOST: usize;

    /// Creates a vector of equal numbers.
    unsafe fn splat(value: T) -> Self;
    /// Loads numbers, as their complex conjugates if that is said.
    unsafe fn load<X: Storage<T>>(from: *const X, conjugate: bool) -> Self;
    /// Returns the sum with a product by the numbers of the mask's lanes, as [`Self::plus_product`]; the other lanes are not
    /// read, and keep their value. X has the type T. Only registers of AVX-512 have masks.
    unsafe fn plus_product_of_lanes<X: Storage<T>>(self, _: Self, _: *const X, _: u16) -> Self {
        unreachable!("only registers of AVX-512 have masks")
    }
    /// Stores the numbers whose lanes the mask has. Only registers of AVX-512 have masks.
    unsafe fn store_lanes(self, _: *mut T, _: u16) {
        unreachable!("only registers of AVX-512 have masks")
    }
    /// Stores the numbers.
    unsafe fn store(self, to: *mut T);
    /// Stores the numbers past the caches; `to` is a multiple of the vector's bytes.
    unsafe fn stream(self, to: *mut T);
    /// Returns the product.
    unsafe fn times(self, other: Self) -> Self;
    /// Returns the sum.
    unsafe fn plus(self, other: Self) -> Self;
    /// Returns the numbers.
    #[inline(always)]
    fn as_slice(vectors: &[Self]) -> &[T] {
        // SAFETY: implementations are that many numbers and nothing else.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * Self::LANES) }
    }
    /// Returns the sum with a product, which is not rounded by itself where the processor can do that.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
}

/// Asks for the cache line at this address, which may be any.
#[inline(always)]
pub(super) fn prefetch<X>(at: *const X) {
    // SAFETY: a prefetch reads nothing that the program sees, and faults nowhere.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    // SAFETY: as above. (The compiler's own function for it is not stable.)
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) at.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Orders streaming stores before whatever this thread does next, as other stores are.
#[inline(always)]
pub(super) fn end_streaming() {
    // SAFETY: every x86-64 processor has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_sfence();
    }
}

/// Sets all elements to a value, past the caches where they fill lines.
pub(super) fn fill_past_caches<Y: bytemuck::Pod>(to: &mut [Y], value: Y) {
    #[cfg(target_arch = "x86_64")]
    if LINE % size_of::<Y>() == 0 {
        let (front, lines, back) = bytemuck::pod_align_to_mut::<Y, CacheLine>(to);
        front.fill(value);
        back.fill(value);
        let mut pattern = CacheLine([0; 4]);
        bytemuck::cast_slice_mut(std::slice::from_mut(&mut pattern)).fill(value);
        for line in lines {
            for (to, quarter) in line.0.iter_mut().zip(pattern.0) {
                // SAFETY: every x86-64 processor has it, and a line is aligned.
                unsafe {
                    _mm_stream_si128(
                        std::ptr::from_mut(to).cast(),
                        std::mem::transmute::<u128, __m128i>(quarter),
                    )
                };
            }
        }
        return;
    }
    to.fill(value);
}

/// A line of the caches, in parts of 16 bytes.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u128; 4]);

/// A plain array. Products are added as [`Accumulator::plus_product`] says.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Array<T, const N: usize>([T; N]);

impl<T: Accumulator, const N: usize> Array<T, N> {
    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        Array(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

// SAFETY: it is an array, and needs no particular processor.
unsafe impl<T: Accumulator, const N: usize> Vector<T> for Array<T, N> {
    const WIDTH: Width = Width::Arrays;
    const LANES: usize = N;
    const MOST: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Array([value; N])
    }

    #[inline(always)]
    unsafe fn load<X: Storage<T>>(from: *const X, conjugate: bool) -> Self {
        // SAFETY: the caller's promise.
        let elements = unsafe { from.cast::<[X; N]>().read() };
        Array(elements.map(|x| if conjugate { x.conjugate().widen() } else { x.widen() }))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[T; N]>().write(self.0) };
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.store(to) };
    }

    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        self.with(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Array(std::array::from_fn(|lane| self.0[lane].plus_product(a.0[lane], b.0[lane])))
    }
}

/// Defines vectors of floats or doubles in registers: name, bytes, most sums, type of the register; how
/// floats are taken for doubles and back; what loads halves; and the functions of floats and of doubles.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($(#[$doc:meta]
       $name:ident: $bytes:literal $most:literal
       $register:ident $double:ident $single:ident $halves:ident
       [$splat:ident $load:ident $store:ident $stream:ident $mul:ident $add:ident $fma:ident]
       [$splat_pd:ident $load_pd:ident $store_pd:ident $stream_pd:ident
        $mul_pd:ident $add_pd:ident $fma_pd:ident]
       $([$load_lanes:ident $store_lanes:ident $fma_lanes:ident]
         [$load_lanes_pd:ident $store_lanes_pd:ident $fma_lanes_pd:ident])?;
    )*) => { $(
        #[$doc]
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(in crate::backend::host) struct $name<T>($register, PhantomData<T>);

        // SAFETY: a register is an array of as many numbers.
        unsafe impl<T: Accumulator> Vector<T> for $name<T> {
            const WIDTH: Width = Width::$name;
            const LANES: usize = $bytes / size_of::<T>();
            const MOST: usize = $most;

            #[inline(always)]
            unsafe fn splat(value: T) -> Self {
                // SAFETY: the number has the type of the branch; the rest is the caller's promise.
                let register = unsafe {
                    match is_single::<T>() {
                        true => $splat(transmute_copy(&value)),
                        false => $single($splat_pd(transmute_copy(&value))),
                    }
                };
                $name(register, PhantomData)
            }

            #[inline(always)]
            unsafe fn load<X: Storage<T>>(from: *const X, _: bool) -> Self {
                // SAFETY: a type of as many bytes as T is T, and one of fewer is of halves; the rest is the
                // caller's promise.
                let register = unsafe {
                    match (is_single::<T>(), size_of::<X>() == size_of::<T>()) {
                        (true, true) => $load(from.cast()),
                        (false, true) => $single($load_pd(from.cast())),
                        (_, false) => $halves(from),
                    }
                };
                $name(register, PhantomData)
            }

            $(
                #[inline(always)]
                unsafe fn plus_product_of_lanes<X: Storage<T>>(self, a: Self, from: *const X, lanes: u16) -> Self {
                    // SAFETY: the caller's promise.
                    let register = unsafe {
                        if is_single::<T>() {
                            $fma_lanes(a.0, $load_lanes(lanes, from.cast()), self.0, lanes)
                        } else {
                            let (lanes, a, sum) = (lanes as u8, $double(a.0), $double(self.0));
                            $single($fma_lanes_pd(a, $load_lanes_pd(lanes, from.cast()), sum, lanes))
                        }
                    };
                    $name(register, PhantomData)
                }

                #[inline(always)]
                unsafe fn store_lanes(self, to: *mut T, lanes: u16) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        match is_single::<T>() {
                            true => $store_lanes(to.cast(), lanes, self.0),
                            false => $store_lanes_pd(to.cast(), lanes as u8, $double(self.0)),
                        }
                    }
                }
            )?

            #[inline(always)]
            unsafe fn store(self, to: *mut T) {
                // SAFETY: the caller's promise.
                unsafe {
                    match is_single::<T>() {
                        true => $store(to.cast(), self.0),
                        false => $store_pd(to.cast(), $double(self.0)),
                    }
                }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut T) {
                // SAFETY: the caller's promise.
                unsafe {
                    match is_single::<T>() {
                        true => $stream(to.cast(), self.0),
                        false => $stream_pd(to.cast(), $double(self.0)),
                    }
                }
            }

            #[inline(always)]
            unsafe fn times(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                let register = unsafe {
                    match is_single::<T>() {
                        true => $mul(self.0, other.0),
                        false => $single($mul_pd($double(self.0), $double(other.0))),
                    }
                };
                $name(register, PhantomData)
            }

            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                let register = unsafe {
                    match is_single::<T>() {
                        true => $add(self.0, other.0),
                        false => $single($add_pd($double(self.0), $double(other.0))),
                    }
                };
                $name(register, PhantomData)
            }

            #[inline(always)]
            unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                // SAFETY: the caller's promise.
                let register = unsafe {
                    match is_single::<T>() {
                        true => $fma(a.0, b.0, self.0),
                        false => $single($fma_pd($double(a.0), $double(b.0), $double(self.0))),
                    }
                };
                $name(register, PhantomData)
            }
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
registers! {
    /// A register of AVX2.
    Ymm: 32 8 __m256 _mm256_castps_pd _mm256_castpd_ps eight_halves
        [_mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_mul_ps _mm256_add_ps
         _mm256_fmadd_ps]
        [_mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_mul_pd _mm256_add_pd
         _mm256_fmadd_pd];
}

/// Returns whether the type is that of floats, and not of doubles; complex numbers are in no register.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_single<T: Accumulator>() -> bool {
    debug_assert!(!T::TYPE.is_complex());
    size_of::<T>() == size_of::<f32>()
}

/// Loads eight halves.
///
/// # Safety
/// The processor has AVX2 and F16C; the pointer is valid for eight halves.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn eight_halves<X: Pod>(from: *const X) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        lanes::singles(&from.cast::<[X; 8]>().read())
            .expect("a type of fewer bytes than floats is one of halves")
    }
}

#[cfg(avx512)]
pub(super) use zmm::Zmm;

/// The registers of AVX-512, for whose instructions build.rs asks the compiler.
#[cfg(avx512)]
#[allow(clippy::incompatible_msrv)]
mod zmm {
    use super::*;

    registers! {
        /// A register of AVX-512.
        Zmm: 64 16 __m512 _mm512_castps_pd _mm512_castpd_ps sixteen_halves
            [_mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_mul_ps _mm512_add_ps
             _mm512_fmadd_ps]
            [_mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_mul_pd _mm512_add_pd
             _mm512_fmadd_pd]
            [_mm512_maskz_loadu_ps _mm512_mask_storeu_ps _mm512_mask3_fmadd_ps]
            [_mm512_maskz_loadu_pd _mm512_mask_storeu_pd _mm512_mask3_fmadd_pd];
    }

    /// Loads sixteen halves.
    ///
    /// # Safety
    /// The processor has AVX-512; the pointer is valid for sixteen halves.
    #[inline(always)]
    unsafe fn sixteen_halves<X: Pod>(from: *const X) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let (low, high) = (eight_halves(from), eight_halves(from.add(8)));
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
        }
    }
}
