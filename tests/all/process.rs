//! Tests of the library in unusual processes: threads cannot be created, memory is missing, the process
//! forks, or the floating-point environment is not the default one. They are C programs of their own, on the
//! host backend; `fork cuda` runs with the tests of a GPU bundle.

use crate::abi::tools::Programs;

fn programs() -> Programs {
    let programs = Programs::new();
    programs.add("fork", "process/fork.c", &[]);
    // The program has a pthread_create of its own, which the library must find first.
    programs.add("threads", "process/threads.c", &["-rdynamic", "-ldl", "-lpthread"]);
    programs.add("num_threads", "process/num_threads.c", &["-rdynamic", "-ldl", "-lpthread"]);
    programs.add("environment", "process/environment.c", &["-lm"]);
    // Like pthread_create above, malloc and related functions are the program's own.
    if cfg!(target_env = "gnu") {
        programs.add("small_allocations", "process/small_allocations.c", &["-rdynamic"]);
    }
    programs
}

#[test]
fn children_of_a_fork_work() {
    let text = programs().run("fork", |command| command.arg("host").env("TARSIA_NUM_THREADS", "4"));
    assert_eq!(text, "30 children, 0 failed\n");
}

#[test]
fn without_threads_the_caller_does_the_work() {
    for mode in ["refused", "memory"] {
        let text = programs().run("threads", |command| command.arg(mode).env("TARSIA_NUM_THREADS", "4"));
        assert!(text.contains("warning: no threads can be made"), "{mode}: {text}");
        assert!(text.ends_with("\n1 warnings\n"), "{mode}: {text}");
    }
}

/// The number of threads may change at any time: products have the same bits, and threads are created once
/// for the requested number.
#[test]
fn the_number_of_threads_changes_at_any_time() {
    let text = programs().run("num_threads", |command| command.env("TARSIA_NUM_THREADS", "3"));
    assert_eq!(text, "done\n");
}

#[test]
fn numbers_of_threads_that_are_none_are_told() {
    let programs = programs();
    let run = |value: &str| {
        programs.run("threads", |command| command.arg("number").env("TARSIA_NUM_THREADS", value))
    };
    let expected = run("2");
    assert!(expected.starts_with("bits ") && expected.ends_with("\n0 warnings\n"), "{expected}");
    assert_eq!(run("1"), expected);
    let bits = expected.lines().next().unwrap();
    for (value, word) in [("abc", "not a number"), ("0", "not a number"), ("4000000000", "too many")] {
        let text = run(value);
        assert!(text.contains(&format!("warning: TARSIA_NUM_THREADS={value} is {word}")), "{text}");
        assert!(text.contains(bits) && text.ends_with("\n1 warnings\n"), "{value}: {text}");
    }
}

#[test]
fn floating_point_environments_change_no_bit_and_come_back() {
    let programs = programs();
    let run = |mode: &str, when: &str| {
        programs.run("environment", |command| command.args([mode, when]).env("TARSIA_NUM_THREADS", "3"))
    };
    let expected = run("nearest", "after");
    assert!(expected.starts_with("bits "), "{expected}");
    for mode in ["up", "down", "zero", "flush", "trap", "callbacks"] {
        if mode == "flush" && cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
            continue;
        }
        for when in ["before", "after"] {
            assert_eq!(run(mode, when), expected, "{mode}, {when} the threads are made");
        }
    }
}

/// Every allocation of a scenario with all operations fails once alone, and once with all that follow it.
/// process/small_allocations.txt lists the effects on the process, before the library had a reserve of memory
/// and since then.
#[test]
#[cfg_attr(
    not(target_env = "gnu"),
    ignore = "the program calls the C library's malloc by glibc's names for it"
)]
fn allocations_that_fail_end_no_process() {
    let programs = programs();
    for (threads, mode, step) in [("1", "once", 1), ("1", "from", 3), ("3", "once", 3), ("3", "from", 3)] {
        // A scenario takes a tenth of a second without optimization, and there are up to 3,000.
        let step = if cfg!(debug_assertions) { 29 } else { step };
        let text = programs.run("small_allocations", |command| {
            command.args([mode, &step.to_string()]).env("TARSIA_NUM_THREADS", threads)
        });
        let what = format!("{mode}, {threads} threads:\n{text}");
        let mut tried = 0;
        for line in text.lines().filter(|line| line.starts_with("tarsia")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let counts: Vec<usize> = words[1..4].iter().map(|word| word.parse().unwrap()).collect();
            tried += counts.iter().sum::<usize>();
            // Allocations of the C library and of Rust's own for a thread: the caller's, or those of the pool
            // and the team, which these calls need first.
            let most = match (words[0], threads) {
                ("tarsiaCreateWithBackend", _) => 8,
                ("tarsiaCheckSpMat" | "tarsiaSpGEMM_symbolic", "3") => 80,
                _ => 0,
            };
            assert!(counts[2] <= most, "{}: {what}", words[0]);
        }
        assert!(tried >= 1500 / step, "hardly anything was tried: {what}");
    }
}
