//! Tests of the library without a CUDA driver, with a driver that returns errors, and in a program that has
//! functions with the driver's names.

use std::path::{Path, PathBuf};

use crate::abi::tools::{compile, Compiler, Programs};
use tarsia::facade::Status;

/// Output of a client program.
struct Outcome {
    cuda: String,
    device7: String,
    auto: String,
    own_driver_called: bool,
    /// Names of the fake driver's functions that were called, in order.
    calls: Vec<String>,
}

struct World {
    programs: Programs,
}

impl World {
    fn new() -> Self {
        let programs = Programs::new();
        programs.add("client", "driver/client.c", &[]);
        programs.add("own_driver", "driver/client.c", &["-DOWN_DRIVER", "-rdynamic"]);
        World { programs }
    }

    fn with_driver() -> Self {
        let world = World::new();
        compile(
            Compiler::C,
            &["-std=c11", "-shared", "-fPIC"],
            &source("libcuda.c"),
            &world.path("libcuda.so.1"),
        )
        .unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.programs.path(name)
    }

    /// Runs a client, with every symbol bound when it is loaded.
    fn run(&self, client: &str, environment: &[(&str, &str)]) -> Outcome {
        let log = self.path("log");
        let _ = std::fs::remove_file(&log);
        let text = self.programs.run(client, |command| {
            command.env("LD_BIND_NOW", "1").env("FAKE_LOG", &log).envs(environment.iter().copied())
        });
        let line = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            found.unwrap_or_else(|| panic!("no {name} in {text}")).to_string()
        };
        let calls = std::fs::read_to_string(&log).unwrap_or_default();
        Outcome {
            cuda: line("cuda"),
            device7: line("device 7"),
            auto: line("auto"),
            own_driver_called: text.contains("own cuInit"),
            calls: calls.lines().map(str::to_string).collect(),
        }
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/driver").join(name)
}

/// Returns whether this is the line of a client that failed with this status and text.
fn is_error(line: &str, status: Status, text: &str) -> bool {
    line.starts_with(&format!("{} backend 0 ", status.code())) && line.contains(text)
}

/// Returns whether this line says that `tarsiaCreate` returned a handle of the host backend.
fn is_host(line: &str) -> bool {
    line.trim() == "0 backend 1"
}

/// Returns whether the build has kernels; a build without them gives the same error to everything, which is
/// checked.
fn kernels(outcome: &Outcome) -> bool {
    if cfg!(tarsia_kernels) {
        return true;
    }
    assert!(is_error(&outcome.cuda, Status::NotSupported, "built without CUDA kernels"), "{}", outcome.cuda);
    assert!(is_host(&outcome.auto), "{}", outcome.auto);
    println!("SKIP the CUDA driver: this build has no kernels");
    false
}

#[test]
fn without_a_driver_there_is_the_host_and_a_clear_error() {
    let world = World::new();
    // A library that cannot be loaded replaces the driver, so that a machine with a driver behaves like one
    // without.
    std::fs::write(world.path("libcuda.so.1"), "not a library").unwrap();
    let outcome = world.run("client", &[]);
    if kernels(&outcome) {
        assert!(is_error(&outcome.cuda, Status::NotInitialized, "no CUDA driver"), "{}", outcome.cuda);
        assert!(outcome.cuda.contains("libcuda.so.1"), "{}", outcome.cuda);
        assert!(is_host(&outcome.auto), "{}", outcome.auto);
    }
}

#[test]
fn a_driver_is_really_asked() {
    let world = World::with_driver();
    let outcome = world.run("client", &[("FAKE_INIT", "100")]);
    if kernels(&outcome) {
        assert_eq!(outcome.calls.first().map(String::as_str), Some("cuInit"));
        assert!(is_error(&outcome.cuda, Status::NotInitialized, "CUDA_ERROR_NO_DEVICE"), "{}", outcome.cuda);
        assert!(is_host(&outcome.auto), "{}", outcome.auto);
    }
}

#[test]
fn a_code_that_nobody_knows_is_an_error_like_any_other() {
    let outcome = World::with_driver().run("client", &[("FAKE_INIT", "4711")]);
    if kernels(&outcome) {
        assert!(is_error(&outcome.cuda, Status::InternalError, "error 4711"), "{}", outcome.cuda);
    }
}

#[test]
fn old_drivers_and_devices_are_told_and_not_taken_for_none() {
    let world = World::with_driver();
    // Driver version that the kernels' compiler requires.
    let (old, of, name) = match option_env!("TARSIA_KERNELS_CUDA").unwrap_or_default() {
        cuda if cuda.starts_with("12.") => ("11080", "11.8", "R525"),
        _ => ("12090", "12.9", "R580"),
    };
    let outcome = world.run("client", &[("FAKE_VERSION", old)]);
    if !kernels(&outcome) {
        return;
    }
    for line in [&outcome.cuda, &outcome.auto] {
        assert!(is_error(line, Status::NotSupported, name), "{line}");
        assert!(line.contains(&format!("for CUDA {of}")), "{line}");
    }
    let outcome = world.run("client", &[("FAKE_CAPABILITY", "75")]);
    for line in [&outcome.cuda, &outcome.auto] {
        assert!(is_error(line, Status::NotSupported, "compute capability is 7.5"), "{line}");
    }
    assert!(is_error(&outcome.device7, Status::InvalidValue, "device: 7"), "{}", outcome.device7);
    // A driver with no devices.
    let outcome = world.run("client", &[("FAKE_COUNT", "0")]);
    assert!(is_error(&outcome.cuda, Status::NotInitialized, "no CUDA device"), "{}", outcome.cuda);
    assert!(is_host(&outcome.auto), "{}", outcome.auto);
}

#[test]
fn contexts_are_left_as_they_were() {
    let world = World::with_driver();
    // A driver without the functions for memory: create fails after it has entered the context.
    let outcome = world.run("client", &[]);
    if kernels(&outcome) {
        let count = |name: &str| outcome.calls.iter().filter(|call| *call == name).count();
        assert!(count("cuCtxPushCurrent_v2") > 0, "{:?}", outcome.calls);
        assert_eq!(count("cuCtxPushCurrent_v2"), count("cuCtxPopCurrent_v2"));
        assert!(outcome.cuda.contains("too old: it lacks cu"), "{}", outcome.cuda);
    }
}

#[test]
fn a_program_keeps_its_own_functions() {
    let outcome = World::with_driver().run("own_driver", &[("FAKE_INIT", "100")]);
    assert!(!outcome.own_driver_called);
    if kernels(&outcome) {
        assert_eq!(outcome.calls.first().map(String::as_str), Some("cuInit"));
    }
}
