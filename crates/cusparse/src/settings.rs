//! Settings from the environment variables `TARSIA_CUSPARSE`, `TARSIA_CUSPARSE_TAKE`, `TARSIA_CUSPARSE_FP32`,
//! `TARSIA_CUSPARSE_VALUES`, and two for tests.

use std::sync::OnceLock;

use crate::functions::Operation;

/// Mode that `TARSIA_CUSPARSE` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Calls are taken, and only problems are reported.
    #[default]
    Quiet,
    /// Every call is forwarded and not counted.
    Off,
    /// A summary of the calls is printed at exit.
    Summary,
    /// A line is printed for each call, and the summary at exit.
    Trace,
    /// The summary is printed at exit, and every call that can be taken is, whatever the rules say.
    Force,
}

/// Settings that the environment variables ask for.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    pub mode: Mode,
    /// Operations whose calls may be taken.
    pub take: Vec<Operation>,
    /// True if fp32 products may use faster arithmetic than IEEE operations alone.
    pub fast_fp32: bool,
    /// True if the values of a matrix that the program has preprocessed stay as they are.
    pub frozen_values: bool,
    /// True in tests without a device: products are computed by the host backend, on the host memory of
    /// cuSPARSE's stand-in.
    pub on_host: bool,
    /// Place at which such a test lets the drop-in panic; empty if there is none.
    pub panic_at: String,
    /// Most entries that such a test lets offsets of 32 bits count; 0 if as many as they do.
    pub most_entries: i64,
    /// Messages about invalid values of the variables.
    pub problems: Vec<String>,
}

impl Settings {
    /// Returns whether calls are taken even if a rule says that cuSPARSE is faster.
    pub fn is_forced(&self) -> bool {
        self.mode == Mode::Force
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Returns the settings, which are read when the library is loaded, since the program may change its
/// environment later.
pub fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let variable = |name: &str| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
        let names = ["FP32", "VALUES", "TEST_ON_HOST", "TEST_PANIC", "TEST_MOST"];
        let others = names.map(|name| variable(&format!("TARSIA_CUSPARSE_{name}")));
        read(&variable("TARSIA_CUSPARSE"), &variable("TARSIA_CUSPARSE_TAKE"), &others)
    })
}

/// Parses the texts of the variables; an empty text means that the variable is not set.
fn read(mode: &str, take: &str, [fp32, values, on_host, panic_at, most]: &[String; 5]) -> Settings {
    let mut problems = Vec::new();
    let mode = match mode.trim() {
        "" => Mode::Quiet,
        "off" => Mode::Off,
        "summary" => Mode::Summary,
        "trace" => Mode::Trace,
        "force" => Mode::Force,
        other => {
            let other = beginning(other);
            problems.push(format!(
                "TARSIA_CUSPARSE is `{other}`, which is ignored: it can be off, summary, trace or force"
            ));
            Mode::Quiet
        }
    };
    let mut taken = Vec::new();
    let words = take.split(',').map(str::trim);
    for word in words.filter(|_| !take.trim().is_empty()) {
        match Operation::ALL.into_iter().find(|operation| operation.word() == word) {
            Some(operation) => taken.push(operation),
            None => problems.push(format!(
                "TARSIA_CUSPARSE_TAKE has `{}`, which is ignored: it can list spmv, spmm and spgemm",
                beginning(word)
            )),
        }
    }
    let all = take.trim().is_empty();
    let take = Operation::ALL.into_iter().filter(|operation| all || taken.contains(operation)).collect();
    // Returns whether a variable has its second word; the first one is as if it were not set.
    let mut is_second = |name: &str, text: &str, [first, second]: [&str; 2]| {
        let text = text.trim();
        if ![first, second, ""].contains(&text) {
            problems.push(format!(
                "{name} is `{}`, which is ignored: it can be {first} or {second}",
                beginning(text)
            ));
        }
        text == second
    };
    let fast_fp32 = is_second("TARSIA_CUSPARSE_FP32", fp32, ["pedantic", "fast"]);
    let frozen_values = is_second("TARSIA_CUSPARSE_VALUES", values, ["changing", "frozen"]);
    let (on_host, panic_at) = (on_host.trim() == "1", panic_at.clone());
    let most_entries = most.trim().parse().unwrap_or_default();
    Settings { mode, take, fast_fp32, frozen_values, on_host, panic_at, most_entries, problems }
}

/// Returns the first 40 characters of a text, which may have any length.
fn beginning(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the first two variables, with the others not set.
    fn read(mode: &str, take: &str) -> Settings {
        super::read(mode, take, &Default::default())
    }

    #[test]
    fn what_is_not_set_asks_for_nothing() {
        for blank in ["", "  "] {
            let settings = read(blank, blank);
            let expected = Settings {
                mode: Mode::Quiet,
                take: Operation::ALL.to_vec(),
                fast_fp32: false,
                frozen_values: false,
                on_host: false,
                panic_at: String::new(),
                most_entries: 0,
                problems: Vec::new(),
            };
            assert_eq!(settings, expected);
        }
    }

    #[test]
    fn modes_have_names() {
        for (text, mode) in
            [("off", Mode::Off), (" summary ", Mode::Summary), ("trace", Mode::Trace), ("force", Mode::Force)]
        {
            assert_eq!(read(text, ""), Settings { mode, ..read("", "") }, "{text}");
        }
        for text in ["OFF", "1", "off,trace"] {
            let settings = read(text, "");
            assert_eq!(settings.mode, Mode::Quiet, "{text}");
            assert_eq!(settings.problems.len(), 1, "{text}");
            assert!(settings.problems[0].contains(text), "{}", settings.problems[0]);
        }
    }

    #[test]
    fn fp32_is_pedantic_unless_it_is_to_be_fast() {
        let of = |text: &str| super::read("", "", &[text, "", "", "", ""].map(str::to_string));
        assert_eq!((of("fast").fast_fp32, of(" pedantic ").fast_fp32), (true, false));
        let wrong = of("tf32");
        assert!(!wrong.fast_fp32 && wrong.problems[0].contains("`tf32`"), "{wrong:?}");
    }

    #[test]
    fn values_change_unless_they_are_frozen() {
        let of = |text: &str| super::read("", "", &["", text, "", "", ""].map(str::to_string));
        assert_eq!((of("frozen").frozen_values, of("changing").frozen_values), (true, false));
        assert!(of(" frozen ").problems.is_empty() && of("").problems.is_empty());
        let wrong = of("cold");
        assert!(!wrong.frozen_values && wrong.problems[0].contains("`cold`"), "{wrong:?}");
    }

    #[test]
    fn operations_are_taken_by_name() {
        use Operation::*;
        for (text, take) in
            [("spmv", vec![Spmv]), ("spgemm, spmm", vec![Spmm, Spgemm]), ("spmv,spmv", vec![Spmv])]
        {
            assert_eq!(read("", text), Settings { take, ..read("", "") }, "{text}");
        }
    }

    #[test]
    fn words_that_are_no_operation_are_named_and_take_nothing() {
        let settings = read("", "spmv,SpMM,,all");
        assert_eq!(settings.take, [Operation::Spmv]);
        let named: Vec<_> = ["`SpMM`", "``", "`all`"].into_iter().collect();
        assert_eq!(settings.problems.len(), named.len(), "{:?}", settings.problems);
        for (problem, name) in settings.problems.iter().zip(named) {
            assert!(problem.contains(name) && problem.contains("spgemm"), "{problem}");
        }
        assert_eq!(read("", "spvm").take, []);
        let long = read("", &"x".repeat(100_000));
        assert!(long.problems[0].len() < 200, "the whole text is repeated");
    }
}
