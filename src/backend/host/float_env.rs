//! The floating-point environment: rounding mode, flushing of subnormals, masks of exceptions.
//!
//! A program may have changed it (fesetround, -ffast-math's FTZ and DAZ, feenableexcept), for one
//! thread or for all. Were it left in force, the shares of one product would be rounded by different
//! rules on different threads, and compiled code, which assumes the default, would be wrong. So every
//! call of the C API computes in the default environment and gives the caller's back when it returns,
//! flags included: what the library's arithmetic raised does not reach the caller.

/// The default environment, until this is dropped; then the one that was found.
pub struct Default {
    found: Word,
}

impl Default {
    /// From here on.
    #[inline]
    pub fn enter() -> Self {
        let found = read();
        // Writing costs some ten cycles more than reading, and sticky flags alone need no writing.
        if found & !FLAGS != DEFAULT {
            write(DEFAULT);
        }
        Default { found }
    }
}

impl Drop for Default {
    #[inline]
    fn drop(&mut self) {
        if read() != self.found {
            write(self.found);
        }
    }
}

/// Puts a thread of the library's own into the default environment: it starts with that of the
/// thread that made it.
pub fn reset() {
    write(DEFAULT);
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    pub type Word = u32;
    /// MXCSR: all exceptions masked, rounding to nearest, no FTZ, no DAZ.
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
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::arch::asm;

    pub type Word = u64;
    /// FPCR: no traps, rounding to nearest, no FZ, no FZ16, no default NaN.
    pub const DEFAULT: Word = 0;
    /// The sticky flags are in another register (FPSR).
    pub const FLAGS: Word = 0;

    #[inline]
    pub fn read() -> Word {
        let word: Word;
        // SAFETY: reading FPCR has no effect.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
        word
    }

    #[inline]
    pub fn write(word: Word) {
        // SAFETY: the word is the default or was read from FPCR.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    /// The control word of this processor is not known here: it is left as it is.
    pub type Word = u32;
    pub const DEFAULT: Word = 0;
    pub const FLAGS: Word = 0;

    pub fn read() -> Word {
        DEFAULT
    }

    pub fn write(_word: Word) {}
}

use machine::{read, write, Word, DEFAULT, FLAGS};

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_comes_back_and_the_default_holds_meanwhile() {
        let found = read();
        // Rounding up, FTZ and DAZ.
        let other = DEFAULT | 0x4000 | 0x8040;
        write(other);
        let inside = {
            let _default = Default::enter();
            read()
        };
        let after = read();
        write(found);
        assert_eq!((inside, after), (DEFAULT, other));
    }
}
