//! Folders with test programs and the stand-in for cuSPARSE, and functions that run the programs with and
//! without the drop-in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a library of the same build as this test, which is beside the test's executable.
pub fn built(name: &str) -> PathBuf {
    let executable = std::env::current_exe().expect("the test knows its own path");
    let path = executable.parent().expect("it is in a folder").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// Returns the path of the drop-in.
pub fn drop_in() -> PathBuf {
    built("libtarsia_cusparse.so")
}

/// Runs a tool, which must succeed, and returns its standard output.
pub fn tool(program: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = Command::new(program);
    // The output must not depend on the user's language.
    arguments(command.env("LC_ALL", "C"));
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text.into_owned()
}

/// Temporary folder with the stand-in `libcusparse.so.12` and test programs.
pub struct World {
    folder: tempfile::TempDir,
    /// Value of the macro SPMVOP of cusparse.h, by which all files are compiled.
    spmvop: u32,
}

/// Output of a program that has run, and the calls that reached the stand-in.
#[derive(Debug)]
pub struct Outcome {
    /// Standard output of the program.
    pub output: String,
    /// Calls that reached the stand-in, one in a line.
    pub log: String,
    /// Messages of the drop-in, without its name and the process number at the beginning of each line.
    pub messages: Vec<String>,
}

impl Outcome {
    /// Returns the summary's lines about functions: name, number of calls and outcome.
    pub fn counts(&self) -> Vec<(String, u64, String)> {
        let lines = self.messages.iter().filter_map(|line| line.strip_prefix("summary: "));
        let parts = lines.filter_map(|line| {
            let (calls, rest) = line.trim_start().split_once(' ')?;
            let (name, outcome) = rest.split_once(' ')?;
            name.starts_with("cusparse").then_some(())?;
            Some((name.to_string(), calls.parse().ok()?, outcome.to_string()))
        });
        parts.collect()
    }

    /// Returns the number of calls of a function in the summary.
    pub fn calls(&self, name: &str) -> u64 {
        self.counts().iter().filter(|(found, ..)| found == name).map(|(_, calls, _)| calls).sum()
    }

    /// Returns the message that contains a text, which must be the only one.
    pub fn message(&self, text: &str) -> &str {
        let found: Vec<_> = self.messages.iter().filter(|line| line.contains(text)).collect();
        assert_eq!(found.len(), 1, "{text}: {self:?}");
        found[0]
    }
}

impl World {
    /// Creates a folder with a stand-in for cuSPARSE 12.9.4.
    pub fn new() -> Self {
        World::of_version([12, 9, 4], 1290)
    }

    /// Creates a folder with a stand-in for a version of cuSPARSE with the variant `spmvop` of SpMVOp.
    pub fn of_version([major, minor, patch]: [u32; 3], spmvop: u32) -> Self {
        let world = World { folder: tempfile::tempdir().unwrap(), spmvop };
        let version = [format!("-DMAJOR={major}"), format!("-DMINOR={minor}"), format!("-DPATCH={patch}")];
        let version: Vec<&str> = version.iter().map(String::as_str).collect();
        world.stand_in("libcusparse.so.12", "libcusparse.so.12", &version);
        world
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of a file in the folder as text, for arguments.
    pub fn file(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Compiles a C file of the folder of this test into the temporary folder.
    pub fn compile(&self, source: &str, output: &str, flags: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drop_in").join(source);
        let spmvop = format!("-DSPMVOP={}", self.spmvop);
        tool(&std::env::var("CC").unwrap_or_else(|_| "cc".to_string()), |cc| {
            let cc = cc.current_dir(self.folder.path());
            let cc = cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC"]);
            // Libraries among the flags must follow the source.
            cc.arg(spmvop).arg(source).args(flags).arg("-o").arg(output)
        });
    }

    /// Builds a stand-in as cuSPARSE is built: with a soname, one symbol version, and calls within the
    /// library bound to itself.
    pub fn stand_in(&self, output: &str, soname: &str, flags: &[&str]) {
        let map = self.path("versions.map");
        std::fs::write(&map, format!("{soname} {{ global: cusparse*; local: *; }};\n")).unwrap();
        let soname = format!("-Wl,-soname,{soname}");
        let map = format!("-Wl,--version-script={}", map.display());
        let all = [&["-shared", "-Wl,-Bsymbolic", soname.as_str(), map.as_str()], flags].concat();
        self.compile("libcusparse.c", output, &all);
    }

    /// Builds the client as a program that is linked with the stand-in and finds it by DT_RPATH or
    /// DT_RUNPATH.
    pub fn linked(&self, name: &str, tag: &str) {
        self.compile("client.c", name, &["./libcusparse.so.12", "-Wl,-rpath,$ORIGIN", tag]);
    }

    /// Builds the client as a library that is linked with the stand-in, as extensions for Python are.
    pub fn extension(&self, name: &str, flags: &[&str]) {
        self.compile("client.c", name, &[&["-shared", "-DEXTENSION", "./libcusparse.so.12"], flags].concat());
    }

    /// Builds the program of host.c, which loads libraries.
    pub fn host(&self) {
        self.compile("host.c", "host", &["-ldl", "-pthread"]);
    }

    /// Builds a fake driver with one device, which the loader finds as libcuda.so.1 by LD_LIBRARY_PATH.
    pub fn driver(&self) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/all/driver/libcuda.c");
        std::fs::create_dir(self.path("driver")).unwrap();
        tool("cc", |cc| {
            cc.args(["-shared", "-fPIC"]).arg(source).arg("-o").arg(self.path("driver/libcuda.so.1"))
        });
    }

    /// Returns whether the loader finds a library on the system's path; needs [`Self::host`].
    pub fn loads(&self, name: &str) -> bool {
        let mut host = Command::new(self.path("host"));
        host.args(["local", name]).env_remove("LD_LIBRARY_PATH").output().unwrap().status.success()
    }

    /// Runs a program of the folder, which must succeed, without the drop-in.
    pub fn without(&self, program: &[&str]) -> Outcome {
        self.run(program, |command| command)
    }

    /// Runs a program of the folder, which must succeed, with the drop-in preloaded and with these
    /// environment variables.
    pub fn with(&self, program: &[&str], variables: &[(&str, &str)]) -> Outcome {
        self.run(program, |command| command.env("LD_PRELOAD", drop_in()).envs(variables.iter().copied()))
    }

    /// Runs a program of the folder, which must succeed, after `change` has changed the command.
    pub fn run(&self, program: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Outcome {
        let log = self.path("log");
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new(self.path(program[0]));
        command.args(&program[1..]).env("STAND_IN_LOG", &log);
        // The developer's own settings are removed, and the only driver is that of the folder, if any.
        command.env_remove("TARSIA_CUSPARSE").env_remove("TARSIA_CUSPARSE_TAKE");
        command.env_remove("TARSIA_CUSPARSE_FP32").env_remove("TARSIA_CUSPARSE_TEST_ON_HOST");
        command.env_remove("TARSIA_CUSPARSE_VALUES").env_remove("TARSIA_CUSPARSE_TEST_PANIC");
        command.env_remove("TARSIA_CUSPARSE_TEST_MOST");
        command.env("LD_LIBRARY_PATH", self.path("driver"));
        change(&mut command);
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let errors = String::from_utf8(output.stderr).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
        let message = |line: &str| {
            let rest = line.strip_prefix("libtarsia_cusparse[").and_then(|rest| rest.split_once("]: "));
            let (process, message) = rest.unwrap_or_else(|| panic!("not of the drop-in: {line}"));
            assert!(process.parse::<u32>().is_ok(), "{line}");
            message.to_string()
        };
        Outcome {
            output: text,
            log: std::fs::read_to_string(&log).unwrap_or_default(),
            messages: errors.lines().map(message).collect(),
        }
    }
}
