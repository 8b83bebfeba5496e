use super::*;
use crate::backend::memory::HostMemory;

fn allocator() -> Arc<Allocator> {
    Allocator::new(Arc::new(HostMemory), Address::NULL, usize::MAX)
}

/// Memory that a step "allocates": an address by number.
fn memory(number: usize, bytes: usize) -> Result<(Address, usize)> {
    allocation(|| Ok((Address::NULL.offset(number), bytes)), |memory| *memory)
}

/// A build of all kinds of steps; `does` is what they find when they are done.
fn build(does: bool) -> Result<(Vec<u32>, u64, Buffer<u16>)> {
    let fails = || Error::new(Status::InternalError, "the step was done");
    let counts = found(Some(3), || if does { Ok(vec![1_u32, 2, 3]) } else { Err(fails()) })?;
    let one = found_one(|| if does { Ok(7_u64) } else { Err(fails()) })?;
    let array = made(&allocator(), || {
        assert_eq!(mode(), Mode::None);
        if does {
            Buffer::from_slice(&allocator(), &[5_u16, 6, 7])
        } else {
            Err(fails())
        }
    })?;
    let kept = memory(64, 4)?;
    let scratch = memory(128, 100)?;
    released(scratch.0);
    let last = memory(128, 3)?;
    let mut found = Vec::new();
    contents(|address, contents| {
        match contents {
            Contents::Read(to) => to.iter_mut().for_each(|byte| *byte = address.value() as u8),
            Contents::Write(from) => assert!(from.iter().all(|&byte| byte == address.value() as u8)),
        }
        found.push(address);
        Ok(())
    })?;
    assert_eq!(found, if mode() == Mode::None { vec![] } else { vec![kept.0, last.0] });
    Ok((counts, one, array))
}

#[test]
fn what_was_recorded_is_found_again() {
    let plain = build(true).unwrap();
    let (recorded, bytes) = record(Vec::new(), || build(true)).unwrap();
    assert_eq!(mode(), Mode::None);
    let restored = restore(&bytes, || build(false)).unwrap();
    for other in [&recorded, &restored] {
        assert_eq!((&other.0, other.1, &other.2[..]), (&plain.0, plain.1, &plain.2[..]));
    }
    // From any address.
    let moved = [&[0][..], &bytes].concat();
    assert_eq!(restore(&moved[1..], || build(false)).unwrap().0, plain.0);
    assert_eq!(mode(), Mode::None);
}

#[test]
fn other_steps_are_refused() {
    let (_, bytes) = record(Vec::new(), || build(true)).unwrap();
    let refused = |bytes: &[u8], build: &dyn Fn() -> Result<()>| {
        let error = restore(bytes, build).unwrap_err();
        assert_eq!(error.status, Status::InvalidValue, "{error}");
        assert_eq!(mode(), Mode::None);
        error.message
    };
    for end in 0..bytes.len() {
        refused(&bytes[..end], &|| build(false).map(drop));
    }
    let longer = [&bytes[..], &[0; 8]].concat();
    assert!(refused(&longer, &|| build(false).map(drop)).contains("8 bytes are left over"));
    assert!(refused(&bytes, &|| Ok(())).contains("left over"));
    assert!(refused(&bytes, &|| found::<u32>(Some(2), || Ok(vec![])).map(drop)).contains("counts"));
    assert!(refused(&bytes, &|| made(&allocator(), || Ok(1_u32)).map(drop)).contains("another step"));
}

#[test]
fn allocations_fail_where_they_failed() {
    let lacking = || Err(Error::out_of_memory(5));
    let either = |second: &dyn Fn() -> Result<(Address, usize)>| {
        memory(64, 8)?;
        let way = match allocation(second, |memory| *memory) {
            Err(error) if error.lacks_memory() => 1,
            Err(error) => return Err(error),
            Ok(_) => 2,
        };
        memory(256, 8)?;
        contents(|_, _| Ok(()))?;
        Ok(way)
    };
    let there = || Ok((Address::NULL.offset(128), 8));
    let (way, bytes) = record(Vec::new(), || either(&lacking)).unwrap();
    assert_eq!((way, restore(&bytes, || either(&there)).unwrap()), (1, 1));
    // The other way round the memory is what is missing, and not a step.
    let (way, bytes) = record(Vec::new(), || either(&there)).unwrap();
    assert_eq!((way, restore(&bytes, || either(&there)).unwrap()), (2, 2));
    let error = restore(&bytes, || either(&lacking)).unwrap_err();
    assert_eq!(error, Error::out_of_memory(5));
}

#[test]
fn a_panic_leaves_no_journal() {
    let panics = || -> Result<()> { panic!("on purpose") };
    assert!(std::panic::catch_unwind(|| record(Vec::new(), panics)).is_err());
    assert_eq!(mode(), Mode::None);
    let (_, bytes) = record(Vec::new(), || Ok(())).unwrap();
    assert!(std::panic::catch_unwind(|| restore(&bytes, panics)).is_err());
    assert_eq!(mode(), Mode::None);
    assert!(with(|_| Ok(())).is_err());
}

#[test]
fn calls_of_the_user_find_none() {
    let inner = || -> Result<u32> {
        assert_eq!(mode(), Mode::None);
        // A plan that the callback serializes.
        record(Vec::new(), || found_one(|| Ok(9_u32))).map(|(one, _)| one)
    };
    let outer = || {
        let first = found_one(|| Ok(1_u32))?;
        let between = suspended(inner)?;
        Ok([first, between, found_one(|| Ok(2_u32))?])
    };
    let (found, bytes) = record(Vec::new(), outer).unwrap();
    assert_eq!((found, restore(&bytes, outer).unwrap()), ([1, 9, 2], [1, 9, 2]));
}
