//! Tests of tarsiaPlan_getInfo with different values of structSize.

use std::mem::offset_of;

use client::check;
use tarsia::capi::plan::{self, tarsiaPlanInfo_t};
use tarsia::facade::BackendKind;

use super::bad::{accepts, invalid};
use super::world::World;
use crate::common::{backend, backends};

const SIZE: usize = size_of::<tarsiaPlanInfo_t>();

/// Memory of a caller's struct, and of the bytes after it.
struct Caller(Vec<u64>);

impl Caller {
    fn new(size: usize) -> Self {
        let mut words = vec![u64::from_ne_bytes([0xa5; 8]); (1 << 16) / 8 + 8];
        words[0] = size as u64;
        Caller(words)
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    fn pointer(&mut self) -> *mut tarsiaPlanInfo_t {
        self.0.as_mut_ptr().cast()
    }
}

#[test]
fn sizes_of_the_struct() {
    let world = World::new(backend());
    let mut whole = Caller::new(SIZE);
    // SAFETY: the memory has the size that it says.
    check(unsafe { plan::tarsiaPlan_getInfo(world.spmv, whole.pointer()) }).unwrap();
    let whole = whole.bytes()[..SIZE].to_vec();

    for size in [0, 1, 7, (1 << 16) + 1, usize::MAX] {
        let mut caller = Caller::new(size);
        let before = caller.bytes().to_vec();
        // SAFETY: a size that is not believed must not be used.
        invalid(&format!("structSize {size}"), "info", || unsafe {
            plan::tarsiaPlan_getInfo(world.spmv, caller.pointer())
        });
        assert_eq!(caller.bytes(), before, "structSize {size}: something was written");
    }
    // Structs of older versions end after any field, and those of newer ones are larger; 13 bytes cut a
    // field.
    for size in [8, 13, offset_of!(tarsiaPlanInfo_t, rows), SIZE - 1, SIZE, SIZE + 1, SIZE + 64, 1 << 16] {
        let mut caller = Caller::new(size);
        // SAFETY: the memory has the size that it says.
        accepts(&format!("structSize {size}"), unsafe {
            plan::tarsiaPlan_getInfo(world.spmv, caller.pointer())
        });
        let bytes = caller.bytes();
        let known = size.min(SIZE);
        assert_eq!(bytes[..8], size.to_ne_bytes(), "structSize stays");
        assert_eq!(bytes[8..known], whole[8..known], "structSize {size}: fields");
        assert!(bytes[known..size].iter().all(|&byte| byte == 0), "structSize {size}: unknown fields are 0");
        assert!(bytes[size..].iter().all(|&byte| byte == 0xa5), "structSize {size}: written beyond");
    }
}

fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&byte| byte as u8).collect();
    let end = bytes.iter().position(|&byte| byte == 0).expect("a text ends with 0");
    String::from_utf8(bytes[..end].to_vec()).expect("UTF-8")
}

#[test]
fn facts_before_and_after_analysis() {
    for kind in backends() {
        let world = World::new(kind);
        let get = |plan| {
            let mut info = Caller::new(SIZE);
            // SAFETY: the memory has the size that it says, and the call fills it.
            unsafe {
                check(plan::tarsiaPlan_getInfo(plan, info.pointer())).unwrap();
                info.pointer().read()
            }
        };
        let before = get(world.fresh_plan());
        assert_eq!((before.analyzed, before.algorithm, before.layout as i32), (0, 0, 0));
        assert_eq!((before.rows, before.cols, before.nnz, before.nnzC, before.products), (3, 4, 5, -1, 0));
        assert_eq!((before.planBytes, before.peakBytes, before.workspaceBytes), (0, 0, 0));
        let after = get(world.spmv);
        assert_eq!((after.operation as i32, after.analyzed), (1, 1));
        assert!(after.layout as i32 > 0 && after.fill >= 1.0 && after.analysisSeconds > 0.0);
        assert!(after.peakBytes >= after.planBytes);
        assert_eq!(text(&before.algorithmName), "none");
        // A device makes choices of its own.
        if kind != BackendKind::Cuda {
            assert_eq!((after.algorithm, text(&after.algorithmName).as_str()), (2, "sell"));
        }
        assert!(!text(&after.reason).is_empty());
        let product = get(world.spgemm);
        assert_eq!((product.operation as i32, product.nnzC, product.products), (3, 5, 7));
        assert_eq!(get(world.spmm).operation as i32, 2);
    }
}
