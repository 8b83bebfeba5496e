//! Written by train/train.py from measurements; there are none yet.

use super::Weights;

/// Of the numbers that these are for.
pub const VERSION: u32 = 1;

/// An H100's.
pub const H100: Option<&Weights> = None;
