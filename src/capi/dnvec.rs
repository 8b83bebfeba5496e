//! Dense vector descriptors: the functions of descriptors.rs, as the build writes them out.

use std::mem::MaybeUninit;

use libc::c_void;

use super::boundary::{answer, check_enum, guard, out};
use super::enums::{tarsiaDataType_t, tarsiaStatus_t};
use super::objects::{const_pointer, pointer, tarsiaConstDnVecDescr_t, tarsiaDnVecDescr_t, Described};
use crate::matrix::DenseVector;
use crate::types::Address;

include!(concat!(env!("OUT_DIR"), "/dnvec_descriptors.rs"));
