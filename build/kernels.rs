//! Compiles kernels/**/*.cu and writes the lists of what was made:
//!
//! - OUT_DIR/kernel_names.rs: the names of all kernels (build/kernel_names.rs), in every build
//! - OUT_DIR/layouts.rs: the layouts of the kernels' structures (build/layouts.rs), in every build
//! - OUT_DIR/kernels.rs: `MODULES`, a fatbin for each image (of a file, or of its kernels with the same first
//!   argument), cfg `tarsia_kernels`
//! - OUT_DIR/ptxas.rs: `PTXAS_REPORTS`, what ptxas says of registers and spills
//! - libtarsia_device_wide.a of the one file with host code, cfg `tarsia_device_wide`
//!
//! Without a CUDA compiler the other lists are empty, `TARSIA_KERNELS_MISSING` says
//! why, and the library has the host backends only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::{env, fs, process, thread};

use crate::archs::{self, Arch};
use crate::kernel_names::{self, File, Image};
use crate::layouts::{self, Layout};
use crate::nvcc::{self, Nvcc};

/// CUB's device-wide algorithms launch from host code, so this file becomes an
/// object of the library and not a fatbin.
const DEVICE_WIDE: &str = "format/device_wide";

/// Files that take nvcc longest (sum over their images), which are compiled first; the others follow by length of text.
const SLOWEST: &[&str] = &[
    "spgemm/team",
    "spmm/row",
    "spmm/sell",
    "spmm/window",
    "spmv/sell",
    "spmm/smat",
    "spgemm/shifted_pattern",
];

fn flags(nvcc: &Nvcc) -> [&'static str; 5] {
    ["-O3", "-std=c++17", nvcc::compression(nvcc.release), "-Xptxas", "-v"]
}

/// The library needs no libstdc++ at run time: no exceptions, and
/// format/local_statics.cpp has what local statics call.
const HOST_FLAGS: &[&str] =
    &["-Xcompiler", "-fPIC,-fno-exceptions,-fno-rtti,-fvisibility=hidden,-fvisibility-inlines-hidden"];

/// Results of earlier builds that are kept for each image: going back and forth
/// between two states of a kernel compiles it once each.
const KEPT: usize = 6;

pub fn build(root: &Path, out: &Path) {
    println!("cargo:rustc-check-cfg=cfg(tarsia_kernels, tarsia_device_wide)");
    let folder = root.join("kernels");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-env-changed=TARSIA_CUDA_ARCHS");
    let sources = sources(&folder);
    write_names(&folder, &sources, out);
    match plan(root, sources) {
        Ok(Plan { nvcc, archs, sources }) => {
            let made = compile(&nvcc, &archs, &sources, &folder, out);
            write_lists(&made, out);
            println!("cargo:rustc-cfg=tarsia_kernels");
            let (major, minor) = nvcc.release;
            println!("cargo:rustc-env=TARSIA_KERNELS_CUDA={major}.{minor}");
            if made.contains_key(DEVICE_WIDE) {
                link_device_wide(&nvcc, out);
            }
        }
        Err(Missing { reason, wanted }) => {
            println!("cargo:rustc-env=TARSIA_KERNELS_MISSING={reason}");
            if !wanted {
                println!("cargo:warning=no CUDA kernels, so no CUDA backend: {reason}");
            }
            write_lists(&BTreeMap::new(), out);
        }
    }
}

struct Plan {
    nvcc: Nvcc,
    archs: Vec<Arch>,
    sources: Vec<Source>,
}

/// Why there are no kernels, and whether somebody asked for that.
struct Missing {
    reason: String,
    wanted: bool,
}

fn plan(root: &Path, sources: Vec<Source>) -> Result<Plan, Missing> {
    let wanted = |reason: &str| Missing { reason: reason.to_string(), wanted: true };
    let text = env::var("TARSIA_CUDA_ARCHS").unwrap_or_default();
    let text = if text.trim().is_empty() { archs::DEFAULT } else { &text };
    let archs = archs::parse(text).unwrap_or_else(|error| fail(&format!("TARSIA_CUDA_ARCHS={error}")));
    if archs.is_empty() {
        return Err(wanted("it was built with TARSIA_CUDA_ARCHS=none"));
    }
    // Fuzzers run without a device and would compile everything once more, in
    // a target folder of their own.
    if env::var_os("CARGO_CFG_FUZZING").is_some() {
        return Err(wanted("it was built for a fuzzer"));
    }
    if sources.is_empty() {
        return Err(wanted("there are no kernels"));
    }
    let nvcc = nvcc::find(root).map_err(|reason| Missing { reason, wanted: false })?;
    Ok(Plan { nvcc, archs, sources })
}

/// A file that nvcc compiles.
struct Source {
    path: PathBuf,
    /// Its text and that of all headers of ours that it may include.
    text: String,
    /// The structures of these files.
    layouts: BTreeMap<String, Vec<Layout>>,
    /// Its name, `spmv/csr`, and its kernels.
    file: File,
}

impl Source {
    /// Images of the file, each of which a run of nvcc makes.
    fn images(&self) -> Vec<Image> {
        match self.file.name == DEVICE_WIDE {
            true => vec![Image { name: self.file.name.clone(), first: None }],
            false => self.file.images(),
        }
    }
}

fn sources(folder: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    paths.sort();
    let source = |path: PathBuf| {
        let relative = path.strip_prefix(folder).expect("it was found there").with_extension("");
        let name = relative.to_str().expect("kernels have ASCII names").to_string();
        let mut seen = BTreeMap::new();
        read_closure(folder, &path, &mut seen);
        // Without the paths' beginning, so that moving the tree compiles nothing anew.
        let text = seen.iter().fold(String::new(), |text, (path, own)| {
            text + &path.strip_prefix(folder).unwrap_or(path).to_string_lossy() + "\n" + own
        });
        let relative = |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        // Twice, for structures of structures of other files.
        let mut known = BTreeMap::new();
        for text in seen.values() {
            known.extend(layouts::read(text, &known).into_iter().map(|layout| (layout.name.clone(), layout)));
        }
        let layouts = seen.iter().map(|(path, text)| (relative(path), layouts::read(text, &known))).collect();
        let file =
            File::read(&name, &text).unwrap_or_else(|error| fail(&format!("kernels/{name}.cu: {error}")));
        Source { path, text, layouts, file }
    };
    let mut sources: Vec<_> = paths.into_iter().map(source).collect();
    // Those that take longest first, lest one core compile them while the others have nothing to do.
    let first = |name: &str| SLOWEST.iter().position(|slow| *slow == name).unwrap_or(SLOWEST.len());
    sources.sort_by_key(|source| (first(&source.file.name), std::cmp::Reverse(source.text.len())));
    sources
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            paths.push(path);
        }
    }
}

/// Every file that an `#include` may mean, whatever #ifdef it is in. Headers
/// outside `folder` belong to the compiler, whose version is in the key.
fn read_closure(folder: &Path, path: &Path, seen: &mut BTreeMap<PathBuf, String>) {
    if seen.contains_key(path) {
        return;
    }
    let text = fs::read_to_string(path).unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
    seen.insert(path.to_path_buf(), text.clone());
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
        let Some(rest) = rest.trim_start().strip_prefix("include") else { continue };
        let name = rest.trim_start().trim_start_matches(['"', '<']);
        let name = &name[..name.find(['"', '>']).unwrap_or(name.len())];
        for start in [path.parent().unwrap_or(folder), folder] {
            let header = without_dots(&start.join(name));
            if header.starts_with(folder) && header.is_file() {
                read_closure(folder, &header, seen);
                break;
            }
        }
    }
}

/// One name for a file, however it is included.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Result of the run of nvcc that compiles an image.
struct Made {
    /// Name of its file.
    file: String,
    /// In the cache, where another build may remove it.
    image: PathBuf,
    ptxas: String,
}

fn compile(
    nvcc: &Nvcc,
    archs: &[Arch],
    sources: &[Source],
    folder: &Path,
    out: &Path,
) -> BTreeMap<String, Made> {
    let cache = cache(out);
    fs::create_dir_all(&cache).unwrap_or_else(|error| fail(&format!("{}: {error}", cache.display())));
    let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1usize);
    let of_source = |source| Source::images(source).into_iter().map(move |image| (source, image));
    let images: Vec<_> = sources.iter().flat_map(of_source).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let made = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, images.len()) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let Some((source, image)) = images.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    match compile_one(nvcc, archs, (source, image), folder, &cache) {
                        Ok(result) => {
                            made.lock().expect("no thread panics").insert(image.name.clone(), result);
                        }
                        Err(error) => {
                            eprintln!("kernels/{}.cu: {error}", source.file.name);
                            failed.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    if failed.into_inner() {
        fail("kernels do not compile");
    }
    made.into_inner().expect("no thread panics")
}

/// One folder for all profiles: the kernels of a debug build are the release's.
fn cache(out: &Path) -> PathBuf {
    // target/PROFILE/build/tarsia-HASH/out
    let built = out.ancestors().nth(2).filter(|build| build.ends_with("build"));
    let target = built.and_then(|build| build.ancestors().nth(2));
    target.unwrap_or(out).join("tarsia-kernels")
}

fn compile_one(
    nvcc: &Nvcc,
    archs: &[Arch],
    (source, Image { name, first }): (&Source, &Image),
    folder: &Path,
    cache: &Path,
) -> Result<Made, String> {
    let hosted = source.file.name == DEVICE_WIDE;
    let mut flags: Vec<String> = flags(nvcc).iter().map(|flag| flag.to_string()).collect();
    for arch in archs {
        flags.extend(["-gencode".to_string(), arch.to_string()]);
    }
    if hosted {
        flags.extend(HOST_FLAGS.iter().map(|flag| flag.to_string()));
    }
    flags.push(if hosted { "-c" } else { "-fatbin" }.to_string());

    let mut hasher = DefaultHasher::new();
    (&source.text, first, &flags, &nvcc.version).hash(&mut hasher);
    let stem = name.replace(['/', ' '], "-");
    let image =
        cache.join(format!("{stem}-{:016x}.{}", hasher.finish(), if hosted { "o" } else { "fatbin" }));
    let report = image.with_extension("ptxas");
    let kept = fs::read_to_string(&report).ok().filter(|_| image.is_file());
    let said = match kept {
        Some(said) => said,
        None => {
            // Under a name of its own until it is complete: another build may
            // do the same, and this one may be interrupted.
            let partial = cache.join(format!("{stem}.{}.partial", process::id()));
            // What the library takes for the layout of structures is compiled with them.
            let checked = partial.with_extension("cu");
            let assertions: String =
                source.layouts.values().map(|layouts| layouts::assertions(layouts)).collect();
            let define = first.as_ref().map(|first| format!("#define KERNELS_IN_{first} ~, 1\n"));
            let define = define.unwrap_or_default();
            fs::write(&checked, format!("{define}#include {:?}\n{assertions}", source.path))
                .map_err(|error| format!("{}: {error}", checked.display()))?;
            let mut command = nvcc.command();
            command.args(&flags).arg("-I").arg(folder).arg("-o").arg(&partial).arg(&checked);
            let said = run(&mut command).inspect_err(|_| drop(fs::remove_file(&partial)));
            let _ = fs::remove_file(&checked);
            let said = said?;
            let partial_report = partial.with_extension("report");
            let put = || {
                fs::write(&partial_report, &said)?;
                fs::rename(&partial_report, &report)?;
                fs::rename(&partial, &image)
            };
            put().map_err(|error| format!("{}: {error}", image.display()))?;
            prune(cache, &stem, &image);
            said
        }
    };
    let (ptxas, rest): (Vec<_>, Vec<_>) = said.lines().partition(|line| is_of_ptxas(line));
    for line in rest.iter().filter(|line| !line.trim().is_empty()) {
        println!("cargo:warning=kernels/{}.cu: {line}", source.file.name);
    }
    // How long it took differs from build to build.
    let kept = ptxas.into_iter().filter(|line| !line.contains("Compile time"));
    let file = source.file.name.clone();
    Ok(Made { file, image, ptxas: kept.fold(String::new(), |text, line| text + line + "\n") })
}

/// Lines of `-Xptxas -v`; all others are warnings.
fn is_of_ptxas(line: &str) -> bool {
    line.starts_with("ptxas info") || line.trim_end().ends_with("bytes spill loads")
}

/// Removes old results of an image.
fn prune(cache: &Path, stem: &str, newest: &Path) {
    let extension = newest.extension();
    let is_one = |path: &Path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let hash = name.strip_prefix(stem).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
        path.extension() == extension && hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    let mut old: Vec<_> = entries
        .filter(|entry| is_one(&entry.path()) && entry.path() != newest)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    old.sort();
    let surplus = (old.len() + 1).saturating_sub(KEPT);
    for (_, path) in old.into_iter().take(surplus) {
        let _ = fs::remove_file(path.with_extension("ptxas"));
        let _ = fs::remove_file(path);
    }
}

/// Writes the names of the kernels that are compiled to fatbins, by file, of the row bins and the structures.
fn write_names(folder: &Path, sources: &[Source], out: &Path) {
    let sources: Vec<_> = sources.iter().filter(|source| source.file.name != DEVICE_WIDE).collect();
    let mut files: Vec<_> = sources.iter().map(|source| &source.file).collect();
    files.sort_by_key(|file| &file.name);
    write(&out.join("kernel_names.rs"), kernel_names::source(&files).as_bytes());
    let layouts: BTreeMap<_, _> = sources.iter().flat_map(|source| &source.layouts).collect();
    let layouts = layouts.iter().map(|(file, layouts)| (file.as_str(), layouts.as_slice()));
    write(&out.join("layouts.rs"), layouts::source(layouts).as_bytes());
    let bins = folder.join("spgemm/row_bins.cuh");
    let read = fs::read_to_string(&bins).map_err(|error| error.to_string());
    let source = read.and_then(|text| kernel_names::row_bins(&text));
    let source = source.unwrap_or_else(|error| fail(&format!("{}: {error}", bins.display())));
    write(&out.join("row_bins.rs"), source.as_bytes());
}

/// Copies the images to OUT_DIR, under names that stay, and lists them.
fn write_lists(made: &BTreeMap<String, Made>, out: &Path) {
    let mut modules = String::from(
        "/// A fatbin starts with 64-bit words.\n#[repr(C, align(64))]\nstruct Aligned<T: ?Sized>(T);\n\n\
         pub const MODULES: &[EmbeddedModule] = &[\n",
    );
    let mut reports: BTreeMap<&str, String> = BTreeMap::new();
    for (name, Made { file, image, ptxas }) in made {
        reports.entry(file).or_default().push_str(ptxas);
        let extension = if name == DEVICE_WIDE { "o" } else { "fatbin" };
        let file = out.join(name.replace(['/', ' '], "-")).with_extension(extension);
        let bytes = fs::read(image).unwrap_or_else(|error| fail(&format!("{}: {error}", image.display())));
        write(&file, &bytes);
        if name != DEVICE_WIDE {
            let _ = writeln!(
                modules,
                "    EmbeddedModule {{\n        name: {name:?},\n        image: {{\n            \
                 static IMAGE: &Aligned<[u8]> = &Aligned(*include_bytes!({file:?}));\n            \
                 &IMAGE.0\n        }},\n    }},"
            );
        }
    }
    write(&out.join("kernels.rs"), (modules + "];\n").as_bytes());
    let mut list = String::from("pub const PTXAS_REPORTS: &[(&str, &str)] = &[\n");
    for (file, report) in reports {
        let _ = writeln!(list, "    ({file:?}, {report:?}),");
    }
    write(&out.join("ptxas.rs"), (list + "];\n").as_bytes());
}

/// Writes only what differs, so that what is unchanged rebuilds nothing.
fn write(path: &Path, bytes: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::write(path, bytes).unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
    }
}

/// Links the object of [`DEVICE_WIDE`] and the static CUDA runtime, which opens
/// the driver when it is first called.
fn link_device_wide(nvcc: &Nvcc, out: &Path) {
    let Some(cudart) = nvcc.static_runtime() else {
        println!("cargo:warning=no libcudart_static.a beside {}", nvcc.path.display());
        return;
    };
    let statics = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it"))
        .join("kernels")
        .join("format/local_statics.cpp");
    let object = out.join("local_statics.o");
    let mut command = nvcc.command();
    command.args(["-O2", "-std=c++17", "-c"]).args(HOST_FLAGS).arg("-o").arg(&object).arg(&statics);
    let archive = out.join("libtarsia_device_wide.a");
    let device_wide = out.join(DEVICE_WIDE.replace('/', "-")).with_extension("o");
    // ar adds to an archive that is there.
    let _ = fs::remove_file(&archive);
    let made = run(&mut command)
        .and_then(|_| run(Command::new("ar").arg("crs").arg(&archive).args([&device_wide, &object])));
    if let Err(error) = made {
        fail(&error);
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-search=native={}", cudart.display());
    println!("cargo:rustc-link-lib=static=tarsia_device_wide");
    println!("cargo:rustc-link-lib=static=cudart_static");
    // Part of libc since glibc 2.34; the linker drops what it does not need.
    for library in ["dl", "rt", "pthread"] {
        println!("cargo:rustc-link-lib={library}");
    }
    println!("cargo:rustc-cfg=tarsia_device_wide");
}

/// What a command that succeeds prints.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let text: String = text.lines().filter(|line| !is_of_ptxas(line)).flat_map(|line| [line, "\n"]).collect();
    Err(format!("{}\n{text}{command:?}", output.status))
}

/// Ends the build with a message.
fn fail(message: &str) -> ! {
    eprintln!("{message}");
    process::exit(1);
}
