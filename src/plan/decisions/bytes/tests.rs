use super::*;

fn some() -> Decisions {
    let choice = Choice {
        algorithm: Algorithm::Smat,
        a: Source::Canonical,
        b: Source::Canonical,
        transposed_product: false,
        reorder: Reorder::Auto,
        tuned: false,
        block_width: Some(16),
        decided: true,
        deterministic: false,
        bytes: 12345.5,
        predicted_seconds: 1.25e-6,
        reason: "smat on dense blocks: 3 µs".into(),
    };
    let problem = Problem {
        origin: Origin { version: [0, 1, 0], backend: BackendKind::Host, model: "a model".into() },
        op: OpKind::Spmm,
        facts: vec![0, -1, i64::MAX],
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

#[test]
fn there_and_back() {
    let (decisions, bytes) = (some(), some().to_bytes());
    let back = Decisions::from_bytes(&bytes).unwrap();
    assert_eq!(format!("{back:?}"), format!("{decisions:?}"));
    assert_eq!(back.to_bytes(), bytes);
}

#[test]
fn the_format_is_what_it_was() {
    // If this fails FORMAT has to count up, or older files are misread.
    let bytes = some().to_bytes();
    assert_eq!((bytes.len(), FORMAT), (179, 1));
    assert_eq!(&bytes[..16], b"TARSIAPD\x01\0\0\0\xb3\0\0\0");
    assert_eq!(&bytes[28..39], b"\x01\0\0\0\x07\0\0\0a m");
    assert_eq!(bytes[171..], checksum(&bytes[..171]).to_le_bytes());
}

#[test]
fn a_change_of_any_byte_is_seen() {
    let bytes = some().to_bytes();
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
    let bytes = some().to_bytes();
    for length in 0..bytes.len() {
        let error = Decisions::from_bytes(&bytes[..length]).unwrap_err();
        assert_eq!(error.status, crate::error::Status::InvalidValue);
        // Of bytes that are consistent in themselves, too.
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

/// Whatever the bytes are behind a right checksum: an error, or decisions that are written as they were.
#[test]
fn sealed_changes_are_read_or_refused() {
    let bytes = some().to_bytes();
    for at in 0..bytes.len() - CHECKSUM {
        for value in [0, 1, 2, 3, 8, 16, 100, 127, 128, 255] {
            let mut changed = bytes.clone();
            changed[at] = value;
            seal(&mut changed);
            if let Ok(read) = Decisions::from_bytes(&changed) {
                assert_eq!(read.to_bytes(), changed, "byte {at} = {value}");
            }
        }
    }
}

#[test]
fn texts_are_cut_between_characters() {
    let mut decisions = some();
    decisions.choice.reason = "µ".repeat(MOST_TEXT);
    let back = Decisions::from_bytes(&decisions.to_bytes()).unwrap();
    assert_eq!(back.choice.reason, "µ".repeat(MOST_TEXT / 2));
}

#[test]
fn another_format_is_named() {
    let mut bytes = some().to_bytes();
    bytes[8] = 2;
    seal(&mut bytes);
    let error = Decisions::from_bytes(&bytes).unwrap_err();
    assert_eq!(error.status, crate::error::Status::NotSupported);
    assert!(error.message.contains("version 2") && error.message.contains("version 1"), "{error}");
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
        key(|problem| problem.facts[1] = 1),
        key(|problem| problem.facts.push(0)),
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
