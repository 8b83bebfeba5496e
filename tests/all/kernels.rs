//! Tests of the compiled CUDA kernels without a device: that they keep their values in registers, and for
//! which architectures they are compiled.

use std::collections::BTreeSet;

use crate::common::skip;

#[path = "../../build/archs.rs"]
mod archs;
#[allow(dead_code)]
#[path = "../../build/kernel_names.rs"]
mod kernel_names;
#[allow(dead_code)]
#[path = "../../build/layouts.rs"]
mod layouts;
#[allow(dead_code)]
#[path = "../../build/nvcc.rs"]
mod nvcc;

include!(concat!(env!("OUT_DIR"), "/ptxas.rs"));

/// Kernels that may use local memory: file, beginning of the kernel's name, reason.
const MAY_SPILL: &[(&str, &str, &str)] =
    &[("format/device_wide", "", "CUB's kernels, which run in analysis only")];

/// Local memory of one kernel for one architecture, as reported by ptxas.
#[derive(Debug, PartialEq)]
struct Usage {
    kernel: String,
    arch: String,
    stack: u64,
    stores: u64,
    loads: u64,
}

/// Reads the report of one file, in which lines follow each other so:
/// "Compiling entry function 'NAME' for 'ARCH'", "Function properties for NAME",
/// "N bytes stack frame, N bytes spill stores, N bytes spill loads".
fn usages(report: &str) -> Vec<Usage> {
    let mut usages = Vec::new();
    let mut arch = "";
    let mut lines = report.lines();
    while let Some(line) = lines.next() {
        if let Some((_, rest)) = line.split_once("' for '") {
            arch = rest.trim_end_matches('\'');
        }
        let Some((_, kernel)) = line.split_once("Function properties for ") else { continue };
        let numbers = lines.next().unwrap_or_default();
        let bytes = |what: &str| {
            let part = numbers.split(',').find(|part| part.trim_end().ends_with(what));
            let number = part.and_then(|part| part.trim().split(' ').next()?.parse().ok());
            number.unwrap_or_else(|| panic!("{kernel}: no {what} in `{numbers}`"))
        };
        usages.push(Usage {
            kernel: kernel.trim().to_string(),
            arch: arch.to_string(),
            stack: bytes("bytes stack frame"),
            stores: bytes("bytes spill stores"),
            loads: bytes("bytes spill loads"),
        });
    }
    usages
}

#[test]
fn kernels_do_not_spill() {
    if !cfg!(tarsia_kernels) {
        skip("spills of kernels: this build has none (no nvcc)");
        return;
    }
    let mut spilling = Vec::new();
    let machine_code = PTXAS_REPORTS.iter().any(|(_, report)| report.contains("Compiling entry function"));
    if !machine_code {
        skip("spills of kernels: TARSIA_CUDA_ARCHS has PTX only");
        return;
    }
    for (file, report) in PTXAS_REPORTS {
        let usages = usages(report);
        assert_eq!(
            usages.len(),
            report.matches("Function properties for ").count(),
            "{file}: lines of the report were not understood:\n{report}"
        );
        assert!(!usages.is_empty(), "kernels/{file}.cu has no kernel");
        let allowed =
            |kernel: &str| MAY_SPILL.iter().any(|(name, start, _)| name == file && kernel.starts_with(start));
        spilling.extend(
            usages
                .into_iter()
                .filter(|usage| usage.stack + usage.stores + usage.loads > 0 && !allowed(&usage.kernel))
                .map(|usage| format!("{file}: {usage:?}")),
        );
    }
    assert!(spilling.is_empty(), "kernels use local memory:\n{}", spilling.join("\n"));
}

/// Every file of kernels is compiled into the library.
#[test]
fn every_kernel_file_has_a_report() {
    if !cfg!(tarsia_kernels) {
        skip("list of kernels: this build has none (no nvcc)");
        return;
    }
    fn count(folder: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| match path.is_dir() {
                true => count(&path),
                false => usize::from(path.extension().is_some_and(|extension| extension == "cu")),
            })
            .sum()
    }
    let files = count(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels"));
    assert_eq!(PTXAS_REPORTS.len(), files);
}

#[test]
fn spills_are_found_in_a_report() {
    let report = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 0 barriers, 552 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
";
    let usage = |kernel: &str, arch: &str, stack, stores, loads| {
        let (kernel, arch) = (kernel.to_string(), arch.to_string());
        Usage { kernel, arch, stack, stores, loads }
    };
    assert_eq!(usages(report), [usage("one", "sm_80", 0, 0, 0), usage("two", "sm_90a", 16, 8, 12)]);
}

#[test]
fn names_of_kernels_are_read() {
    let text = "\
// KERNEL(spmv_old, rows, f64)
#define KERNEL_rows(name, types, O)                             \\
    extern \"C\" __global__ void name(const int##O##_t *offsets) { \\
    }
KERNEL(spmv_places_32, places, 32)
KERNELS(rows, (f64, int), (spmv_rows_32, 32), // the narrow one
        (spmv_rows_64, 64))
KERNELS(finish, (), (spmv_finish_f64, f64))
extern \"C\" __global__ void __launch_bounds__(32 * (W + 1), 2)
    spmv_lengths(const int64_t *sums) {
    KERNELS_ARE_CALLED(1);
}
GLOBAL spmv_starts(Segments segments) {}
extern \"C\" __global__ void spmv_fill(void *out) {}
";
    let read = kernel_names::read(text).unwrap();
    let read: Vec<_> = read.iter().map(|k| format!("{} {} {:?}", k.name, k.kind, k.arguments)).collect();
    assert_eq!(
        read,
        [
            r#"spmv_places_32 places ["32"]"#,
            r#"spmv_rows_32 rows ["f64", "int", "32"]"#,
            r#"spmv_rows_64 rows ["f64", "int", "64"]"#,
            r#"spmv_finish_f64 finish ["f64"]"#,
            "spmv_lengths spmv_lengths []",
            "spmv_starts spmv_starts []",
            "spmv_fill spmv_fill []",
        ]
    );
}

#[test]
fn lists_of_kernels_that_make_no_sense_are_errors() {
    for text in [
        "KERNEL(name)",
        "KERNEL(name, kind)",
        "KERNELS(kind)",
        "KERNELS(kind, (a), ())",
        "KERNEL(name, kind, 1",
    ] {
        assert!(kernel_names::read(text).is_err(), "{text}");
    }
}

#[test]
fn a_file_has_one_image_or_one_for_each_first_argument() {
    let text =
        "KERNELS(rows, (f64), (rows_f64_32, 32), (rows_f64_64, 64))\nKERNEL(rows_f32_32, rows, f32, 32)\n";
    let images = |text: &str| {
        let file = kernel_names::File::read("spmv/csr", text)?;
        let names: Vec<_> = file.images().into_iter().map(|image| (image.name, image.first)).collect();
        Ok::<_, String>((names, kernel_names::source(&[&file])))
    };
    let (names, source) = images(text).unwrap();
    assert_eq!(names, [("spmv/csr".to_string(), None)]);
    assert!(source.contains("image: 0") && !source.contains("image: 1"), "{source}");
    let split = format!("#define KERNELS_BY_FIRST\n{text}");
    let (names, source) = images(&split).unwrap();
    let image = |first: &str| (format!("spmv/csr {first}"), Some(first.to_string()));
    assert_eq!(names, [image("f64"), image("f32")]);
    assert!(source.contains("IMAGES: &[&str] = &[\"spmv/csr f64\", \"spmv/csr f32\"]"), "{source}");
    let line = |name: &str| source.lines().find(|line| line.contains(&format!("name: \"{name}\""))).unwrap();
    assert!(line("rows_f64_64").contains("image: 0") && line("rows_f32_32").contains("image: 1"), "{source}");
    // A kernel without arguments would be in none of these.
    let error = images(&format!("{split}extern \"C\" __global__ void alone(int n) {{}}\n")).unwrap_err();
    assert!(error.contains("alone has no arguments"), "{error}");
}

#[test]
fn layouts_of_structures_are_read() {
    let text = "\
namespace tarsia::spmm {
struct Ints {
    // Of either width; or none.
    const void *data;
    int64_t wide;

    __device__ int64_t operator[](int64_t at) const { return at; }
};
template <class T, class Y> struct alignas(16) Matrix {
    Ints offsets;
    const T *values, *others;
    uint16_t steps, length[3];
    int32_t count; // of both
};
template <class T, int V> struct Pack { T v[V]; };
struct View {
    const Ints &ints;
    int64_t first;
};
} // namespace tarsia::spmm
namespace {
struct Task {
    uint8_t kind;
    uint32_t row;
};
} // namespace
";
    let read = layouts::read(text, &Default::default());
    let read: Vec<_> = read.iter().map(|l| format!("{} {} {:?}", l.c_type, l.size, l.members)).collect();
    assert_eq!(
        read,
        [
            r#"tarsia::spmm::Ints 16 [("data", 0), ("wide", 8)]"#,
            r#"tarsia::spmm::Matrix<double, double> 48 [("offsets", 0), ("values", 16), ("others", 24), ("steps", 32), ("length", 34), ("count", 40)]"#,
            r#"Task 8 [("kind", 0), ("row", 4)]"#,
        ]
    );
    let task =
        layouts::read("struct Task {\n    uint8_t kind;\n    uint32_t row;\n};\n", &Default::default());
    assert_eq!(
        layouts::assertions(&task),
        "static_assert(sizeof(Task) == 8);\n#ifndef __CUDACC_RTC__\n\
         static_assert(__builtin_offsetof(Task, kind) == 0);\n\
         static_assert(__builtin_offsetof(Task, row) == 4);\n#endif\n"
    );
}

#[test]
fn row_bins_follow_each_other() {
    let read = kernel_names::row_bins(
        "enum RowBin {\n    // ROW_BIN(OLD, 7)\n    ROW_BIN(TABLE, 6)\n    ROW_BIN(BLOCK_TABLE, 2)\n};\n",
    );
    let read = read.unwrap();
    for line in ["RowBin::Table => 0..6,", "RowBin::BlockTable => 6..8,", "COUNT: usize = 8;"] {
        assert!(read.contains(line), "{line} in\n{read}");
    }
    assert!(kernel_names::row_bins("ROW_BIN(TABLE)").is_err());
}

/// Returns the names and architectures in the report's lines "Compiling entry function 'NAME' for 'ARCH'", sorted.
fn entry_functions(report: &str) -> Vec<(&str, &str)> {
    let after = report.lines().filter_map(|line| line.split_once("Compiling entry function '"));
    let mut found: Vec<_> = after.filter_map(|(_, rest)| rest.split_once("' for ")).collect();
    found.sort();
    found
}

/// The kernels that ptxas has compiled are those of the lists, and each is in one image alone.
#[test]
fn compiled_kernels_are_those_of_the_lists() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let reports = PTXAS_REPORTS.iter().filter(|(file, report)| {
        *file != "format/device_wide" && report.contains("Compiling entry function")
    });
    let mut checked = 0;
    for (file, report) in reports {
        let text = std::fs::read_to_string(folder.join(file).with_extension("cu")).unwrap();
        let listed: BTreeSet<_> = kernel_names::read(&text).unwrap().into_iter().map(|k| k.name).collect();
        let functions = entry_functions(report);
        let compiled: BTreeSet<_> = functions.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(listed, compiled, "{file}");
        let twice = functions.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "{file}: {twice:?} is in several images: KERNELS_BY_FIRST must stand first");
        checked += 1;
    }
    if checked == 0 {
        skip("names of compiled kernels: this build has none (no nvcc, or PTX only)");
    }
}

#[test]
fn architectures_are_read() {
    let read =
        |text: &str| archs::parse(text).map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>());
    let (sm_80, sm_90a, ptx_80) =
        ("arch=compute_80,code=sm_80", "arch=compute_90a,code=sm_90a", "arch=compute_80,code=compute_80");
    assert_eq!(read(archs::DEFAULT).unwrap(), [sm_80, sm_90a, ptx_80]);
    assert_eq!(read("90a").unwrap(), [sm_90a]);
    assert_eq!(read(" 80 , ptx80 ").unwrap(), [sm_80, ptx_80]);
    assert_eq!(read("120f").unwrap(), ["arch=compute_120f,code=sm_120f"]);
    assert_eq!(read(archs::NONE).unwrap(), [""; 0]);
}

#[test]
fn the_compilers_version_decides_how_kernels_are_compressed() {
    let says =
        |release: &str| format!("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, {release}\n");
    let read = |release: &str| nvcc::parse_release(&says(release));
    assert_eq!(read("release 12.9, V12.9.86"), Some((12, 9)));
    assert_eq!(read("release 13.0, V13.0.88"), Some((13, 0)));
    assert_eq!(read("V13.0.88"), None);
    // 12.10 would come after 12.9, and 12.4 is too old.
    assert!((12, 10) > nvcc::OLDEST && (12, 4) < nvcc::OLDEST && (13, 0) > nvcc::OLDEST);
    // A driver before R550 cannot read the other compression format.
    assert_eq!(nvcc::compression((12, 9)), "--compress-mode=speed");
    assert_eq!(nvcc::compression((13, 0)), "--compress-mode=size");
}

#[test]
fn architectures_that_make_no_sense_are_errors() {
    for text in [
        "", ",", "80,", "75", "sm_80", "8", "080", "90b", "90aa", "ptx", "ptx-80", "+80", "80 90a",
        "80,none", "80,80", "1000", "９０",
    ] {
        let error = archs::parse(text).expect_err(text);
        assert!(error.contains(&format!("`{text}`")), "{error}");
    }
}
