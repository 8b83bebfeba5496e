use super::*;
use crate::algorithm::TABLE;
use crate::select::{Clusters, RowOrder};

fn some() -> Decisions {
    let choice = Choice {
        bytes: 12345.5,
        predicted_seconds: 1.25e-6,
        reason: "smat on dense blocks: 3 µs".into(),
        ..Choice::of(Method::Smat { clusters: Clusters::Yes, width: Some(16) }, Source::Canonical)
    };
    let problem = Problem {
        origin: Origin { version: [0, 1, 0], backend: BackendKind::Host, model: "a model".into() },
        op: OpKind::Spmm,
        arguments: vec![0, -1, i64::MAX],
        fingerprints: vec![[1, u64::MAX]],
        fixed: Fixed {
            effort: Effort::Tuned,
            reorder: Reorder::Auto,
            block_width: None,
            value_updates: true,
        },
    };
    Decisions { problem, choice }
}

/// Returns decisions for algorithm `row` with this row order, otherwise as [`some`].
fn in_order(rows: &[u32]) -> Decisions {
    let mut out = some();
    let kept = KeptOrder::of_rows(rows).unwrap().map(Arc::new);
    out.choice.method = Method::Row(RowOrder { policy: Reorder::Lpt, kept });
    out
}

#[test]
fn there_and_back() {
    for decisions in [some(), in_order(&[0]), in_order(&[4, 0, 3, 1, 2])] {
        let bytes = decisions.to_bytes().unwrap();
        let back = Decisions::from_bytes(&bytes).unwrap();
        assert_eq!(format!("{back:?}"), format!("{decisions:?}"));
        assert_eq!(back.to_bytes().unwrap(), bytes);
    }
}

/// With a valid checksum, an order that is no permutation is refused with its fault, as is a wrong number of
/// rows.
#[test]
fn orders_of_rows_that_are_none() {
    let bytes = in_order(&[4, 0, 3, 1, 2]).to_bytes().unwrap();
    let order = bytes.len() - CHECKSUM - 5 * 4;
    let refused = |at: usize, number: u32, text: &str| {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&number.to_le_bytes());
        seal(&mut changed);
        let error = Decisions::from_bytes(&changed).unwrap_err();
        assert_eq!(error.status, crate::error::Status::InvalidValue);
        assert!(
            error.message.starts_with("buffer: it is damaged: ") && error.message.contains(text),
            "{error}"
        );
    };
    refused(order + 4, 4, "position 1 has row 4 again");
    refused(order + 16, 5, "position 4 has row 5 of 5");
    refused(order + 8, u32::MAX, "position 2 has row 2147483647 of 5");
    refused(order - 4, 6, "the order of 6 rows ends before its last row");
    refused(order - 4, u32::MAX, "the order of 4294967295 rows ends before its last row");
    refused(order - 4, 4, "position 0 has row 4 of 4");
    refused(order - 4, 0, "20 bytes are left over");
    let mut short = bytes[..bytes.len() - 4].to_vec();
    seal(&mut short);
    assert!(Decisions::from_bytes(&short).unwrap_err().message.contains("ends before its last row"));
}

/// A requested order may be the learned one, but the order in use is a named one or none.
#[test]
fn the_learned_order_is_none_that_is_in_force() {
    let mut decisions = some();
    decisions.problem.fixed.reorder = Reorder::Learned;
    decisions.choice.method = Method::Row(RowOrder::new(Reorder::Lpt));
    let back = Decisions::from_bytes(&decisions.to_bytes().unwrap()).unwrap();
    assert_eq!((back.problem.fixed.reorder, back.choice.method.reorder()), (Reorder::Learned, Reorder::Lpt));
    decisions.choice.method = Method::Row(RowOrder::new(Reorder::Learned));
    let error = Decisions::from_bytes(&decisions.to_bytes().unwrap()).unwrap_err();
    assert!(
        error.message.starts_with("buffer: it is damaged: ") && error.message.contains("reorder"),
        "{error}"
    );
}

#[test]
fn decisions_are_no_larger_than_the_header_says() {
    let mut largest = some();
    largest.choice.reason = "a".repeat(2 * MOST_TEXT);
    largest.problem.origin.model = "b".repeat(2 * MOST_TEXT);
    largest.problem.arguments = vec![-1; MOST_ARGUMENTS as usize];
    largest.problem.fingerprints = vec![[3, 4]; MOST_ARGUMENTS as usize];
    for rows in [0, 1, 1000] {
        largest.choice.method = in_order(&(0..rows as u32).collect::<Vec<_>>()).choice.method;
        let bytes = largest.to_bytes().unwrap().len();
        assert!(bytes <= most_bytes(rows) && most_bytes(rows) <= (64 << 10) + 4 * rows, "{bytes}");
    }
}

#[test]
fn the_format_is_what_it_was() {
    // If this fails, FORMAT has to be increased, or older files are misread.
    let bytes = some().to_bytes().unwrap();
    assert_eq!((bytes.len(), FORMAT), (187, 2));
    assert_eq!(&bytes[..20], b"TARSIAPD\x02\0\0\0\xbb\0\0\0\0\0\0\0");
    assert_eq!(&bytes[32..43], b"\x01\0\0\0\x07\0\0\0a m");
    assert_eq!(bytes[175..179], [0; 4]);
    assert_eq!(bytes[179..], fnv1a(&bytes[..179]).to_le_bytes());
    let bytes = in_order(&[2, 0, 1]).to_bytes().unwrap();
    assert_eq!(bytes.len(), 199);
    assert_eq!(&bytes[175..191], b"\x03\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0");
}

#[test]
fn a_change_of_any_byte_is_seen() {
    let bytes = some().to_bytes().unwrap();
    for at in 0..bytes.len() {
        for change in 1..=255_u8 {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            assert!(Decisions::from_bytes(&changed).is_err(), "byte {at} ^ {change}");
        }
    }
}

#[test]
fn missing_and_more_bytes_are_seen() {
    let bytes = some().to_bytes().unwrap();
    for length in 0..bytes.len() {
        let error = Decisions::from_bytes(&bytes[..length]).unwrap_err();
        assert_eq!(error.status, crate::error::Status::InvalidValue);
        // Truncated bytes with a valid total and checksum are refused, too.
        let mut sealed = bytes[..length].to_vec();
        seal(&mut sealed);
        assert!(Decisions::from_bytes(&sealed).is_err(), "{length} bytes");
    }
    let mut more = bytes.clone();
    more.push(0);
    assert!(Decisions::from_bytes(&more).is_err());
    seal(&mut more);
    assert!(Decisions::from_bytes(&more).unwrap_err().message.contains("left over"));
}

/// Changed bytes with a valid checksum either are an error or are read as decisions that serialize to the
/// same bytes.
#[test]
fn sealed_changes_are_read_or_refused() {
    let bytes = in_order(&[1, 0, 2]).to_bytes().unwrap();
    for at in 0..bytes.len() - CHECKSUM {
        for value in [0, 1, 2, 3, 8, 16, 100, 127, 128, 255] {
            let mut changed = bytes.clone();
            changed[at] = value;
            seal(&mut changed);
            if let Ok(read) = Decisions::from_bytes(&changed) {
                assert_eq!(read.to_bytes().unwrap(), changed, "byte {at} = {value}");
            }
        }
    }
}

/// A stored choice may only have properties that its algorithm has.
#[test]
fn what_an_algorithm_does_not_have_is_refused() {
    let refused = |method: Method, decided: Decided, text: &str| {
        let fault = Method::decided(method.algorithm(), decided).unwrap_err();
        assert!(fault.contains(text), "{fault}");
    };
    let nothing = || Decided {
        transposed: false,
        reorder: Reorder::None,
        block_width: None,
        times_vendor: false,
        order: None,
    };
    let order = || KeptOrder::of_rows(&[1, 0]).unwrap().map(Arc::new);
    for row in TABLE {
        let method = Method::new(row.algorithm);
        assert_eq!(Method::decided(row.algorithm, nothing()), Ok(method.clone()));
        let name = row.name;
        if row.op != OpKind::Spgemm {
            refused(method.clone(), Decided { transposed: true, ..nothing() }, "columns of C computed by");
        }
        if row.algorithm != Algorithm::Smat {
            refused(method.clone(), Decided { block_width: Some(8), ..nothing() }, "blocks, which");
        }
        if row.algorithm != Algorithm::Dense {
            refused(method.clone(), Decided { times_vendor: true, ..nothing() }, "timed for");
        }
        let by_name = Decided { reorder: Reorder::Lpt, order: order(), ..nothing() };
        match row.takes_orders {
            true => {
                let found = Method::decided(row.algorithm, by_name).unwrap();
                assert_eq!((found.reorder(), found.kept_order()), (Reorder::Lpt, order().as_ref()), "{name}");
            }
            false => refused(method.clone(), by_name, "does not take"),
        }
        // An order without windows is not one for blocks, and an order without a policy is invalid.
        refused(
            method.clone(),
            Decided { reorder: Reorder::Auto, order: order(), ..nothing() },
            "does not take",
        );
        refused(method, Decided { order: order(), ..nothing() }, "does not take");
    }
}

#[test]
fn texts_are_cut_between_characters() {
    let mut decisions = some();
    decisions.choice.reason = "µ".repeat(MOST_TEXT);
    let back = Decisions::from_bytes(&decisions.to_bytes().unwrap()).unwrap();
    assert_eq!(back.choice.reason, "µ".repeat(MOST_TEXT / 2));
}

#[test]
fn another_format_is_named() {
    let mut bytes = some().to_bytes().unwrap();
    bytes[8] = 3;
    seal(&mut bytes);
    let error = Decisions::from_bytes(&bytes).unwrap_err();
    assert_eq!(error.status, crate::error::Status::NotSupported);
    assert!(error.message.contains("version 3") && error.message.contains("version 2"), "{error}");
}

#[test]
fn keys_tell_problems_apart() {
    let key = |change: fn(&mut Problem)| {
        let mut problem = some().problem;
        change(&mut problem);
        problem.key(&[])
    };
    let keys = [
        key(|_| ()),
        some().problem.key(&[0]),
        some().problem.key(&[1]),
        some().problem.key(&[0, 0]),
        key(|problem| problem.origin.version[2] += 1),
        key(|problem| problem.origin.backend = BackendKind::Cuda),
        key(|problem| problem.origin.model.push('s')),
        key(|problem| problem.op = OpKind::Spmv),
        key(|problem| problem.arguments[1] = 1),
        key(|problem| problem.arguments.push(0)),
        key(|problem| problem.fingerprints[0][1] -= 1),
        key(|problem| problem.fixed.effort = Effort::Quick),
        key(|problem| problem.fixed.reorder = Reorder::None),
        key(|problem| problem.fixed.block_width = Some(8)),
        key(|problem| problem.fixed.value_updates = false),
    ];
    for (at, key) in keys.iter().enumerate() {
        assert!(!keys[..at].contains(key), "{at}");
    }
    assert_eq!(keys[0], some().problem.key(&[]));
}
