//! Runner for tests that may hang or fill the memory if the library is wrong: each runs in a process of its
//! own with limits, so that a failure does not stop other tests.

use std::fs::File;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tarsia::facade::BackendKind;

use super::{backend, command_of};

/// Time limit of a test, in seconds.
const SECONDS: u64 = 120;

/// Limit of the address space, in KiB: more than the tests need, and far less than a machine's memory. It is
/// not set for a device, whose driver reserves more than any machine has.
const ADDRESS_SPACE: usize = 6 << 20;

/// Runs the ignored test of this name in a process of its own, which is ended after [`SECONDS`].
pub fn run(module: &str, test: &str) {
    let name = format!("{}::{test}", module.split_once("::").expect("inside a crate").1);
    let output = tempfile::NamedTempFile::new().unwrap();
    let limit = if backend() == BackendKind::Cuda { "unlimited".into() } else { ADDRESS_SPACE.to_string() };
    let writer = || Stdio::from(File::options().append(true).open(output.path()).unwrap());
    let command = command_of(std::env::current_exe().unwrap());
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {limit}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args())
        .args(["--exact", &name, "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::null())
        .stdout(writer())
        .stderr(writer())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let status: Option<ExitStatus> = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
        }
    };
    let text = std::fs::read_to_string(output.path()).unwrap_or_default();
    let passed = status.is_some_and(|status| status.success()) && text.contains("test result: ok. 1 passed");
    let how = status.map_or(format!("no end after {SECONDS} s"), |status| status.to_string());
    assert!(passed, "{name}: {how}\n{text}");
}
