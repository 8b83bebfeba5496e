//! Dense matrix descriptors: the functions of descriptors.rs, as the build writes them out.

use std::mem::MaybeUninit;

use libc::c_void;

use super::boundary::{answer, check_enum, guard, out};
use super::enums::{tarsiaDataType_t, tarsiaOrder_t, tarsiaStatus_t};
use super::objects::{const_pointer, pointer, tarsiaConstDnMatDescr_t, tarsiaDnMatDescr_t, Described};
use crate::matrix::DenseMatrix;
use crate::types::Address;

include!(concat!(env!("OUT_DIR"), "/dnmat_descriptors.rs"));
