//! Tests of the boundary of the C interface: panics, the last message, callbacks.

mod callbacks;

use std::ffi::CStr;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{check, last_message, raw_arg};
use libc::{c_char, c_void};
use tarsia::capi::enums::{tarsiaLogLevel_t, tarsiaStatus_t};
use tarsia::capi::objects::{tarsiaHandle_t, tarsiaPlan_t};
use tarsia::capi::plan::tarsiaPlanInfo_t;
use tarsia::capi::{handle, plan, status};
use tarsia::facade::{Error, Status};

use tarsia::capi::boundary::guard;

use crate::bad_input::bad::{accepts, failed};
use crate::bad_input::world::World;
use crate::common::backends;

/// Runs a closure as a C function of the library would, and returns the result of the call.
pub(crate) fn at_boundary(f: impl FnOnce() -> tarsia::facade::Result<()>) -> tarsia::facade::Result<()> {
    check(guard(f))
}

/// Makes a call fail with this text.
fn fail(text: &str) {
    let error = at_boundary(|| Err(Error::new(Status::InvalidValue, text))).expect_err("it fails");
    assert_eq!((error.status, error.message.as_str()), (Status::InvalidValue, text));
}

#[test]
fn panics_become_internal_errors() {
    let name = "somebody";
    let texts = [
        at_boundary(|| panic!("a text")),
        at_boundary(|| panic!("a text of {name}")),
        at_boundary(|| std::panic::panic_any(42)),
    ];
    let expected = ["a text", "a text of somebody", "a panic without a text"];
    for (result, text) in texts.into_iter().zip(expected) {
        let error = result.expect_err("it panics");
        assert_eq!(error.status, Status::InternalError);
        assert_eq!(error.message, format!("internal error: {text}"));
    }
    // Panics of the library's own checks end here, too.
    let index = std::hint::black_box(3);
    let error = at_boundary(|| Err(Error::invalid("x", [1, 2][index]))).expect_err("it panics");
    assert_eq!(error.status, Status::InternalError);
    assert!(error.message.contains("index out of bounds"), "{error}");
}

#[test]
fn panic_whose_payload_panics_too() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("and once more");
        }
    }
    let error = at_boundary(|| std::panic::panic_any(Grenade)).expect_err("it panics");
    assert_eq!(error.status, Status::InternalError);
}

#[test]
fn panics_of_the_librarys_threads_come_back() {
    let error = at_boundary(|| {
        tarsia::facade::run_in_pool(|| panic!("in the pool"));
        Ok(())
    });
    let error = error.expect_err("it panics");
    assert_eq!(
        (error.status, error.message.as_str()),
        (Status::InternalError, "internal error: in the pool")
    );
    // The threads still work.
    assert_eq!(tarsia::facade::run_in_pool(|| 7), 7);
}

/// Reads the last message into `len` bytes; also returns the bytes behind them.
fn message_in(len: usize) -> (String, Vec<u8>) {
    let mut bytes = vec![0xa5_u8; len + 16];
    // SAFETY: the buffer has that many bytes.
    accepts("GetLastErrorMessage", unsafe {
        status::tarsiaGetLastErrorMessage(bytes.as_mut_ptr().cast(), len)
    });
    let end =
        bytes[..len].iter().position(|&byte| byte == 0).expect("the text ends with 0 inside the buffer");
    assert!(bytes[end + 1..].iter().all(|&byte| byte == 0xa5), "bytes after the final 0 were written");
    let text = String::from_utf8(bytes[..end].to_vec()).expect("the text is cut between characters");
    (text, bytes)
}

#[test]
fn message_is_cut_to_fit_and_always_ends() {
    let text = "0123456789";
    fail(text);
    for len in 1..20 {
        assert_eq!(message_in(len).0, text[..(len - 1).min(10)], "{len} bytes");
    }
    // Characters of 1, 2 and 3 bytes.
    let text = "3 × 4 → 5";
    fail(text);
    for len in 1..20 {
        let cut = message_in(len).0;
        assert!(text.starts_with(&cut), "{len} bytes: {cut}");
        assert!(cut.len() + 3 >= (len - 1).min(text.len()), "{len} bytes: more would fit than `{cut}`");
    }
    assert_eq!(message_in(64).0, text);
    // Long texts are not truncated.
    let long = "x".repeat(100_000);
    fail_long(&long);
    assert_eq!(message_in(100_001).0, long);
    assert_eq!(message_in(100_000).0, long[..99_999]);
}

/// Makes a call fail with a text that is longer than the client's buffer.
fn fail_long(text: &str) {
    at_boundary(|| Err(Error::new(Status::InvalidValue, text))).expect_err("it fails");
}

#[test]
fn success_leaves_the_message() {
    fail("the first");
    let mut version = 0;
    // SAFETY: the answer is valid for a write.
    accepts("GetVersion", unsafe { status::tarsiaGetVersion(&mut version) });
    accepts("Destroy", handle::tarsiaDestroy(std::ptr::null_mut()));
    assert_eq!(message_in(64).0, "the first");
    // Reading the message does not change it.
    assert_eq!(message_in(64).0, "the first");
    // A later failure replaces it, the failure to read it among them.
    // SAFETY: NULL is refused.
    let code = unsafe { status::tarsiaGetLastErrorMessage(std::ptr::null_mut(), 10) };
    failed(code, Status::InvalidValue).unwrap();
    assert!(message_in(64).0.starts_with("buf, len:"), "{}", message_in(64).0);
}

#[test]
fn message_belongs_to_the_thread() {
    fail("of this thread");
    let other = std::thread::spawn(|| {
        let before = message_in(64).0;
        fail("of that thread");
        (before, message_in(64).0)
    });
    assert_eq!(other.join().unwrap(), (String::new(), "of that thread".to_string()));
    assert_eq!(message_in(64).0, "of this thread");
}

/// A program may call the library while a thread's local variables are destroyed.
#[test]
fn calls_while_a_thread_ends() {
    struct Last(mpsc::Sender<(tarsiaStatus_t, tarsiaStatus_t, u8)>);
    impl Drop for Last {
        fn drop(&mut self) {
            let mut text = [7_u8; 64];
            // SAFETY: NULL is refused; the buffer has that many bytes.
            let (code, read) = unsafe {
                let code = status::tarsiaGetVersion(std::ptr::null_mut());
                (code, status::tarsiaGetLastErrorMessage(text.as_mut_ptr().cast(), text.len()))
            };
            let end = text.iter().position(|&byte| byte == 0).map_or(255, |end| end as u8);
            let _ = self.0.send((code, read, end));
        }
    }
    std::thread_local! {
        static LAST: std::cell::RefCell<Vec<Last>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let (sender, receiver) = mpsc::channel();
    for order in [false, true] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            // Variables are destroyed in an order that depends on the order of their creation.
            if order {
                fail("makes the library's variable first");
            }
            LAST.with(|last| last.borrow_mut().push(Last(sender)));
            if !order {
                fail("makes the library's variable last");
            }
        })
        .join()
        .unwrap();
        let (code, read, end) = receiver.recv().unwrap();
        assert_eq!(code, tarsiaStatus_t::TARSIA_STATUS_INVALID_VALUE);
        assert_eq!(read, tarsiaStatus_t::TARSIA_STATUS_SUCCESS);
        assert_ne!(end, 255, "the text has an end");
    }
}

#[test]
fn every_status_has_a_name_and_a_text() {
    let text = |pointer: *const c_char| {
        assert!(!pointer.is_null());
        // SAFETY: the library's strings live as long as the library.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_string()
    };
    let header = crate::generated::header::parse();
    let (_, values) =
        header.enums.iter().find(|(name, _)| name == "tarsiaStatus_t").expect("the header has it");
    let mut texts = std::collections::BTreeSet::new();
    for (name, code) in values {
        assert_eq!(&text(status::tarsiaGetErrorName(raw_arg(*code))), name);
        let sentence = text(status::tarsiaGetErrorString(raw_arg(*code)));
        assert!(sentence.len() > 10, "{name}: {sentence}");
        texts.insert(sentence);
    }
    assert_eq!(texts.len(), values.len(), "two statuses have one text");
    for code in (-3..120).filter(|code| values.iter().all(|(_, known)| known != code)) {
        assert_eq!(text(status::tarsiaGetErrorName(raw_arg(code))), "unknown status");
        assert!(!texts.contains(&text(status::tarsiaGetErrorString(raw_arg(code)))));
    }
}

/// Log lines: level and text.
type Lines = Mutex<Vec<(i32, String)>>;

unsafe extern "C-unwind" fn keep_line(ctx: *mut c_void, level: tarsiaLogLevel_t, message: *const c_char) {
    // SAFETY: ctx is what the test passed, which lives until the logger is
    // gone; the message ends with 0.
    let (lines, text) = unsafe { (&*ctx.cast_const().cast::<Lines>(), CStr::from_ptr(message)) };
    lines.lock().unwrap().push((level as i32, text.to_str().unwrap().to_string()));
}

unsafe extern "C-unwind" fn panicking_logger(_: *mut c_void, _: tarsiaLogLevel_t, _: *const c_char) {
    panic!("the logger gave up");
}

/// Sets a logger, or none.
fn set_logger(handle: tarsiaHandle_t, logger: tarsia::capi::handle::tarsiaLogFn_t, ctx: *const c_void) {
    // SAFETY: the callers keep ctx until they take the logger away.
    accepts("SetLogger", unsafe { handle::tarsiaSetLogger(handle, logger, ctx.cast_mut()) });
}

fn info(plan: tarsiaPlan_t) -> tarsiaPlanInfo_t {
    let mut info = std::mem::MaybeUninit::<tarsiaPlanInfo_t>::zeroed();
    // SAFETY: the size is set first; the call fills the rest.
    unsafe {
        info.as_mut_ptr().cast::<usize>().write(size_of::<tarsiaPlanInfo_t>());
        check(plan::tarsiaPlan_getInfo(plan, info.as_mut_ptr())).unwrap();
        info.assume_init()
    }
}

#[test]
fn log_lines_say_what_failed_and_what_was_chosen() {
    for kind in backends() {
        let world = World::new(kind);
        let lines: Arc<Lines> = Arc::default();
        set_logger(world.handle, Some(keep_line), Arc::as_ptr(&lines).cast());
        let plan = world.fresh_plan();
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        let found = std::mem::take(&mut *lines.lock().unwrap());
        let [(3, line)] = &found[..] else { panic!("analysis logs one line of INFO: {found:?}") };
        assert!(line.contains("SpMV") && line.contains("analyzed"), "{line}");
        failed(plan::tarsiaPlan_analyze(world.handle, plan), Status::InvalidState).unwrap();
        let found = std::mem::take(&mut *lines.lock().unwrap());
        assert_eq!(found, [(1, format!("TARSIA_STATUS_INVALID_STATE: {}", last_message()))]);
        world.verify();
        assert_eq!(*lines.lock().unwrap(), [], "what succeeds, logs nothing");
        // Without a logger, nothing is recorded.
        set_logger(world.handle, None, std::ptr::null());
        failed(plan::tarsiaPlan_analyze(world.handle, plan), Status::InvalidState).unwrap();
        assert_eq!(*lines.lock().unwrap(), []);
    }
}

#[test]
fn logger_that_panics() {
    for kind in backends() {
        let world = World::new(kind);
        for plan in [world.new_spmv(), world.new_spmm(), world.new_spgemm()] {
            set_logger(world.handle, Some(panicking_logger), std::ptr::null());
            for _ in 0..2 {
                let code = plan::tarsiaPlan_analyze(world.handle, plan);
                failed(code, Status::InternalError).unwrap();
                assert_eq!(last_message(), "internal error: the logger gave up");
                // The plan is unchanged.
                let info = info(plan);
                assert_eq!((info.analyzed, info.planBytes, info.layout as i32), (0, 0, 0));
            }
            // A failure that is logged.
            let code = handle::tarsiaSetDeterministic(world.handle, 7);
            failed(code, Status::InternalError).unwrap();
            assert_eq!(last_message(), "internal error: the logger gave up");
            // A call that succeeds logs nothing.
            accepts("SetDeterministic", handle::tarsiaSetDeterministic(world.handle, 0));
            world.verify();
            set_logger(world.handle, None, std::ptr::null());
            accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
            accepts("destroy", plan::tarsiaPlan_destroy(plan));
        }
        world.verify();
    }
}

/// Objects that a logger uses for calls of the library, and the results of these.
struct Caller {
    handle: tarsiaHandle_t,
    plan: tarsiaPlan_t,
    found: Mutex<Vec<(i32, String)>>,
}

unsafe extern "C-unwind" fn calling_logger(ctx: *mut c_void, level: tarsiaLogLevel_t, _: *const c_char) {
    // SAFETY: ctx is what the test passed, which lives until the logger is gone.
    let caller = unsafe { &*ctx.cast_const().cast::<Caller>() };
    let mut backend = std::mem::MaybeUninit::uninit();
    // SAFETY: the answer is valid for a write.
    accepts("GetBackend", unsafe { handle::tarsiaGetBackend(caller.handle, backend.as_mut_ptr()) });
    accepts("SetStream", handle::tarsiaSetStream(caller.handle, std::ptr::null_mut()));
    let info = info(caller.plan);
    let mut bytes = 0;
    // SAFETY: the answer is valid for a write.
    let code = unsafe { plan::tarsiaPlan_workspaceSize(caller.plan, 1, &mut bytes) };
    caller.found.lock().unwrap().push((level as i32, format!("{} {}", info.analyzed, code as i32)));
    // The failure of a call inside the logger must not change the message of the call outside.
    fail("inside the logger");
}

/// Runs `f` on a thread of its own, so that a deadlock is a failure.
fn without_deadlock<R: Send + 'static>(what: &str, f: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = sender.send(f());
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: deadlock"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it sent nothing"))
        }
    }
}

#[test]
fn logger_that_calls_the_library() {
    for kind in backends() {
        without_deadlock("a logger that calls the library", move || {
            let world = World::new(kind);
            let plan = world.fresh_plan();
            let caller = Caller { handle: world.handle, plan, found: Mutex::default() };
            set_logger(world.handle, Some(calling_logger), (&raw const caller).cast());
            accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
            // The plan is ready when the line is logged.
            assert_eq!(std::mem::take(&mut *caller.found.lock().unwrap()), [(3, "1 0".to_string())]);
            failed(plan::tarsiaPlan_analyze(world.handle, plan), Status::InvalidState).unwrap();
            assert!(last_message().starts_with("plan: it is analyzed already"), "{}", last_message());
            assert_eq!(caller.found.lock().unwrap().len(), 1);
            set_logger(world.handle, None, std::ptr::null());
            world.verify();
        });
    }
}

unsafe extern "C-unwind" fn panicking_allocator(_: *mut c_void, _: usize, _: *mut c_void) -> *mut c_void {
    panic!("no memory\nand no patience\r\n");
}

unsafe extern "C-unwind" fn no_release(_: *mut c_void, _: *mut c_void, _: usize, _: *mut c_void) {
    panic!("nothing was allocated");
}

/// A panic whose text has several lines is logged as one line.
#[test]
fn allocator_that_panics_is_one_log_line() {
    for kind in backends() {
        let world = World::new(kind);
        let handle = world.fresh_handle();
        let lines: Arc<Lines> = Arc::default();
        set_logger(handle, Some(keep_line), Arc::as_ptr(&lines).cast());
        let (alloc, free): (handle::tarsiaAllocFn_t, handle::tarsiaFreeFn_t) =
            (Some(panicking_allocator), Some(no_release));
        // SAFETY: the functions live as long as the program.
        accepts("SetAllocator", unsafe {
            handle::tarsiaSetAllocator(handle, alloc, free, std::ptr::null_mut())
        });
        let plan = world.fresh_plan();
        failed(plan::tarsiaPlan_analyze(handle, plan), Status::InternalError).unwrap();
        assert!(last_message().starts_with("internal error: no memory\n"), "{}", last_message());
        let found = std::mem::take(&mut *lines.lock().unwrap());
        let [(1, line)] = &found[..] else { panic!("one line of ERROR: {found:?}") };
        assert!(line.starts_with("TARSIA_STATUS_INTERNAL_ERROR: internal error: no memory"), "{line}");
        assert!(!line.contains(['\n', '\r']), "{line:?} is more than one line");
        // The plan does not depend on the handle's allocator: another handle can analyze it.
        accepts("analyze", plan::tarsiaPlan_analyze(world.handle, plan));
        world.verify();
        set_logger(handle, None, std::ptr::null());
    }
}

unsafe extern "C-unwind" fn destroying_logger(ctx: *mut c_void, _: tarsiaLogLevel_t, _: *const c_char) {
    // SAFETY: the test passes a cell with the handle and room for the answer.
    let cell = unsafe { &*ctx.cast::<Mutex<(usize, Option<Error>)>>() };
    let mut cell = cell.lock().expect("nobody panics");
    let raw = std::ptr::without_provenance_mut(cell.0);
    cell.1 = check(handle::tarsiaDestroy(raw)).err();
}

#[test]
fn a_callback_cannot_destroy_its_own_handle() {
    let mut raw: tarsiaHandle_t = std::ptr::null_mut();
    // SAFETY: the answer is valid for a write.
    check(unsafe { handle::tarsiaCreate(&mut raw) }).unwrap();
    let cell = Mutex::new((raw.addr(), None::<Error>));
    set_logger(raw, Some(destroying_logger), (&raw const cell).cast());
    // A failed call logs, and the logger tries to destroy the handle.
    assert!(check(handle::tarsiaSetDeterministic(raw, 7)).is_err());
    let error = cell.lock().unwrap().1.take().expect("the logger ran and was refused");
    assert_eq!(error.status, Status::InvalidState);
    assert!(error.message.starts_with("handle:"), "{error}");
    // The handle lives until it is destroyed outside of the logger.
    check(handle::tarsiaSetDeterministic(raw, 0)).unwrap();
    check(handle::tarsiaDestroy(raw)).unwrap();
    assert!(check(handle::tarsiaDestroy(raw)).is_err());
}
