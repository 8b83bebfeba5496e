//! The floating-point environment: rounding mode, flushing of subnormals, masks of exceptions.
//!
//! A program may have changed it (fesetround, -ffast-math's FTZ and DAZ, feenableexcept), for one thread or
//! for all. If the library left it in force, the shares of one product would be rounded by different rules on
//! different threads, and compiled code, which assumes the default, would be wrong. So every call of the C
//! API computes in the default environment and restores the caller's when it returns, flags included: flags
//! that the library's arithmetic raised do not reach the caller. User functions that a call runs start in the
//! default environment, and what they change in it lasts until they return.

/// Guard that keeps the default environment in force until it is dropped, and then restores the one found.
pub struct Default {
    found: Word,
    x87: X87,
}

impl Default {
    /// Enters the default environment.
    #[inline]
    pub fn enter() -> Self {
        let found = read();
        // Writing takes some ten cycles more than reading, and sticky flags alone need no writing.
        if found & !FLAGS != DEFAULT {
            write(DEFAULT);
        }
        Default { found, x87: X87::enter() }
    }
}

impl Drop for Default {
    #[inline]
    fn drop(&mut self) {
        if read() != self.found {
            write(self.found);
        }
        self.x87.leave();
    }
}

/// Runs a user function, which may change the environment; the default is restored afterwards, also where the
/// function unwinds.
pub fn callback<R>(f: impl FnOnce() -> R) -> R {
    struct After;
    impl Drop for After {
        fn drop(&mut self) {
            reset();
        }
    }
    let _after = After;
    f()
}

/// Sets the default environment for one of the library's own threads, which starts with the environment of
/// the thread that created it.
pub fn reset() {
    write(DEFAULT);
    X87::reset();
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    pub type Word = u32;
    /// Default MXCSR: all exceptions masked, rounding to nearest, no FTZ, no DAZ.
    pub const DEFAULT: Word = 0x1f80;
    /// The sticky exception flags.
    pub const FLAGS: Word = 0x3f;

    #[inline]
    pub fn read() -> Word {
        let mut word: Word = 0;
        // SAFETY: stmxcsr stores MXCSR to the 4 bytes that the pointer names.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: the word is the default or was read from MXCSR, so no reserved bit is set.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, preserves_flags)) };
    }

    /// Environment of the x87 unit, in which user functions compute with `long double`: what was found, if it
    /// is not the default. (The library itself does not compute there.)
    pub struct X87(Option<[u32; 7]>);

    impl X87 {
        /// Default control word: all exceptions masked, rounding to nearest, 64 bits of mantissa.
        const DEFAULT: u16 = 0x37f;

        #[inline]
        pub fn enter() -> Self {
            let mut word = 0_u16;
            // SAFETY: fnstcw stores the control word to the 2 bytes that the pointer names.
            unsafe { asm!("fnstcw [{}]", in(reg) &mut word, options(nostack, preserves_flags)) };
            if word == Self::DEFAULT {
                return X87(None);
            }
            let mut found = [0_u32; 7];
            // SAFETY: fnstenv stores 28 bytes, control word, flags and all, to where the pointer names.
            unsafe { asm!("fnstenv [{}]", in(reg) &mut found, options(nostack, preserves_flags)) };
            Self::reset();
            X87(Some(found))
        }

        /// Restores what was found, its flags included.
        #[inline]
        pub fn leave(&self) {
            if let Some(found) = &self.0 {
                // SAFETY: fldenv loads what fnstenv has stored.
                unsafe { asm!("fldenv [{}]", in(reg) found, options(nostack, preserves_flags)) };
            }
        }

        pub fn reset() {
            // SAFETY: fldcw loads the default control word from the 2 bytes that the pointer names.
            unsafe { asm!("fldcw [{}]", in(reg) &Self::DEFAULT, options(nostack, preserves_flags)) };
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod no_x87 {
    /// Placeholder for processors without an x87 unit.
    pub struct X87;

    impl X87 {
        pub fn enter() -> Self {
            X87
        }

        pub fn leave(&self) {}

        pub fn reset() {}
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::arch::asm;

    /// FPCR in the lower half, FPSR in the upper one; both have 32 bits.
    pub type Word = u64;
    /// Default FPCR: no traps, rounding to nearest, no FZ, no FZ16, no default NaN.
    pub const DEFAULT: Word = 0;
    /// The sticky exception flags, which are in FPSR.
    pub const FLAGS: Word = 0xffff_ffff << 32;

    #[inline]
    pub fn read() -> Word {
        let (control, status): (Word, Word);
        // SAFETY: reading the registers has no effect. They are read behind what is computed before.
        unsafe {
            asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) status, options(nostack, preserves_flags));
        }
        control | status << 32
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: the word is the default or was read from the registers.
        unsafe {
            asm!(
                "msr fpcr, {}",
                "msr fpsr, {}",
                in(reg) word & !FLAGS,
                in(reg) word >> 32,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    /// The control word of this processor is not known here: it is left unchanged.
    pub type Word = u32;
    pub const DEFAULT: Word = 0;
    pub const FLAGS: Word = 0;

    pub fn read() -> Word {
        DEFAULT
    }

    pub fn write(_word: Word) {}
}

#[cfg(target_arch = "x86_64")]
use machine::X87;
use machine::{read, write, Word, DEFAULT, FLAGS};
#[cfg(not(target_arch = "x86_64"))]
use no_x87::X87;

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    /// Rounding up.
    const UP: Word = if cfg!(target_arch = "x86_64") { 0x4000 } else { 1 << 22 };
    /// FTZ and DAZ, or FZ.
    const FLUSH: Word = if cfg!(target_arch = "x86_64") { 0x8040 } else { 1 << 24 };

    #[test]
    fn what_was_found_comes_back_and_the_default_holds_meanwhile() {
        let found = read();
        let other = DEFAULT | UP | FLUSH;
        write(other);
        let inside = {
            let _default = Default::enter();
            read()
        };
        let after = read();
        write(found);
        assert_eq!((inside, after), (DEFAULT, other));
    }

    /// Flags that arithmetic raises inside are gone afterwards, those that were there are there again.
    #[test]
    fn flags_of_the_inside_do_not_come_out() {
        let found = read();
        let inside = |number: f64| {
            let _default = Default::enter();
            std::hint::black_box(std::hint::black_box(number) / 3.0);
            read() & FLAGS
        };
        write(DEFAULT);
        let (raised, clear) = (inside(1.0), read());
        write(DEFAULT | raised);
        let (_, set) = (inside(3.0), read());
        write(found);
        assert_ne!(raised, 0);
        assert_eq!((clear, set), (DEFAULT, DEFAULT | raised));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_control_word_of_x87_comes_back_too() {
        let control = || {
            let mut word = 0_u16;
            // SAFETY: fnstcw stores 2 bytes.
            unsafe { std::arch::asm!("fnstcw [{}]", in(reg) &mut word) };
            word
        };
        // Rounding up, division by zero not masked.
        let other = 0xb7b_u16;
        // SAFETY: a control word without reserved bits.
        unsafe { std::arch::asm!("fldcw [{}]", in(reg) &other) };
        let inside = {
            let _default = Default::enter();
            control()
        };
        let after = control();
        reset();
        assert_eq!((inside, after, control()), (0x37f, other, 0x37f));
    }

    #[test]
    fn what_a_callback_changes_is_put_right() {
        let found = read();
        let changed = callback(|| {
            write(DEFAULT | UP);
            read()
        });
        let after = read();
        write(found);
        assert_eq!((changed, after), (DEFAULT | UP, DEFAULT));
    }
}
