//! Tests of SpMV with TARSIA_SPMV_ALG_DASP: its information from getInfo, and that it is used only by name.

use std::ffi::CStr;

use client::{Plan, Session, Sparse};
use tarsia::capi::enums::tarsiaLayout_t;
use tarsia::capi::plan::tarsiaPlanInfo_t;
use tarsia::facade::{BackendKind, ComputeType, DataType, Effort, IndexBase, Operation, SpmvAlg};

use crate::common::backends;
use crate::common::staged::Staging;

/// Numbers of entries of the rows: 2 long, 8 medium, 4 short, 1 empty.
const LENGTHS: [usize; 15] = [300, 9, 9, 9, 9, 1100, 9, 9, 9, 9, 1, 2, 0, 3, 1];
const COLS: usize = 1100;

fn text(field: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&byte| byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes).expect("ended by 0").to_str().expect("UTF-8").to_string()
}

/// Returns the plan's information, and y = A · x for x = 1.
fn run(backend: BackendKind, alg: SpmvAlg, effort: Effort) -> (tarsiaPlanInfo_t, Vec<f64>) {
    let session = Session::new(backend).unwrap();
    let mut offsets = vec![0_i32];
    LENGTHS.iter().for_each(|&length| offsets.push(offsets[offsets.len() - 1] + length as i32));
    let indices: Vec<i32> = LENGTHS.iter().flat_map(|&length| 0..length as i32).collect();
    let values = vec![1.0_f64; indices.len()];
    let stored = (
        session.upload(&offsets).unwrap(),
        session.upload(&indices).unwrap(),
        session.upload(&values).unwrap(),
    );
    let shape = (LENGTHS.len() as i64, COLS as i64);
    let a = Sparse::csr(shape, &stored.0, &stored.1, &stored.2, IndexBase::Zero).unwrap();
    let types = (DataType::R64F, DataType::R64F);
    let plan = Plan::spmv(&session, Operation::NonTranspose, &a, types, ComputeType::R64F, alg).unwrap();
    plan.set_effort(effort).unwrap();
    plan.analyze(&session).unwrap();
    plan.prepare(&session).unwrap();
    let (x, mut y) = (vec![1.0_f64; COLS], vec![f64::NAN; LENGTHS.len()]);
    plan.spmv(&session, 1.0, &x, 0.0, &mut y).unwrap();
    (plan.info().unwrap(), y)
}

#[test]
fn the_plan_says_what_it_holds() {
    let lengths = LENGTHS.map(|length| length as f64);
    for backend in backends() {
        let (info, y) = run(backend, SpmvAlg::Dasp, Effort::Default);
        assert_eq!(y, lengths);
        assert_eq!((info.algorithm, text(&info.algorithmName).as_str()), (4, "dasp"));
        if backend == BackendKind::Reference {
            continue;
        }
        assert_eq!(info.layout, tarsiaLayout_t::TARSIA_LAYOUT_DASP);
        let reason = text(&info.reason);
        // 5 + 18 groups of 64; two blocks of 32 and 8 rows' ninth entries; rows of
        // 2, of 3 and of 1, each part padded to 128.
        let slots = [23 * 64, 64, 8, 3 * 128];
        let [long, regular, irregular, short] = slots;
        let expected = format!(
            "rows: 2 long, 8 medium, 4 short, 1 empty; slots: {long} long, {regular} + {irregular} medium \
             (regular + irregular), {short} short"
        );
        assert!(reason.ends_with(&expected), "{reason}");
        let (filled, entries) = (slots.iter().sum::<usize>(), LENGTHS.iter().sum::<usize>());
        assert_eq!(info.fill, filled as f64 / entries as f64);
        // The row of 1100 entries is split into two tasks.
        assert_eq!(info.workspaceBytes, 2 * size_of::<f64>());
    }
}

#[test]
fn only_its_name_chooses_it() {
    for backend in backends() {
        for effort in Effort::ALL {
            let (info, _) = run(backend, SpmvAlg::Default, *effort);
            assert_ne!(text(&info.algorithmName), "dasp", "{effort:?}");
            let (info, _) = run(backend, SpmvAlg::Dasp, *effort);
            assert_eq!(text(&info.algorithmName), "dasp", "{effort:?}");
        }
    }
}
