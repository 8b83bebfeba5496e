//! Reads the structures of the kernels' files that the library may pass to kernels, and writes OUT_DIR/layouts.rs
//! (`LAYOUTS`), to which `kernel_structs!` of src/backend/cuda/layouts.rs compares the library's, and static assertions
//! for the CUDA compiler, so that both agree on what was read here.
//!
//! Nothing but std: the tests include this file.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A structure of plain members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// With its namespaces, and a type for each parameter that it has.
    pub c_type: String,
    pub name: String,
    pub size: usize,
    align: usize,
    /// Offsets of the members.
    pub members: Vec<(String, usize)>,
}

/// The structures of a file that have members of known types only; `known` are those of files that it includes.
pub fn read(text: &str, known: &BTreeMap<String, Layout>) -> Vec<Layout> {
    let mut layouts: Vec<Layout> = Vec::new();
    let (mut namespaces, mut parameters) = (Vec::new(), 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("namespace ") {
            namespaces.push(name.trim_end_matches('{').trim().to_string());
        } else if line.starts_with("} // namespace") {
            namespaces.pop();
        } else if line.starts_with("template <") {
            let list = line.trim_start_matches("template <").split('>').next().unwrap_or_default();
            // Of values there is none to take for all structures.
            let of_types = list.split(',').all(|parameter| parameter.trim().starts_with("class "));
            parameters = if of_types { list.split(',').count() } else { usize::MAX };
        }
        if let Some((_, rest)) = line
            .split_once("struct ")
            .filter(|(before, _)| before.is_empty() || before.starts_with("template <"))
        {
            let (name, inside) = rest.split_once('{').unwrap_or((rest, ""));
            let name = name.trim();
            let body: String = match inside.split_once('}') {
                Some((members, _)) => members.to_string(),
                None => lines
                    .by_ref()
                    .take_while(|line| !line.starts_with('}'))
                    .map(|line| format!("{line}\n"))
                    .collect(),
            };
            let prefix: String =
                namespaces.iter().filter(|name| !name.is_empty()).map(|name| format!("{name}::")).collect();
            // `alignas` is read where its argument is a number that is written out.
            let aligned = rest.strip_prefix("alignas(").and_then(|rest| rest.split_once(") "));
            let aligned =
                aligned.and_then(|(align, _)| Some((align.parse().ok()?, name.rsplit(' ').next()?)));
            let (least, name) = match (aligned, name) {
                (Some(found), _) => found,
                (None, name) => (1, name),
            };
            let is_plain = name.trim().bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_plain || parameters == usize::MAX {
                parameters = 0;
                continue;
            }
            let types = vec!["double"; parameters].join(", ");
            let c_type =
                prefix + name.trim() + &if parameters > 0 { format!("<{types}>") } else { String::new() };
            let of = |ty: &str| layouts.iter().find(|layout| layout.name == ty).or_else(|| known.get(ty));
            if let Some(layout) = layout(c_type, name.trim(), least, &body, of) {
                layouts.push(layout);
            }
        }
        if !line.starts_with("template <") || line.contains("struct ") {
            parameters = 0;
        }
    }
    layouts
}

fn layout<'a>(
    c_type: String,
    name: &str,
    least: usize,
    body: &str,
    of: impl Fn(&str) -> Option<&'a Layout>,
) -> Option<Layout> {
    let mut layout = Layout { c_type, name: name.to_string(), size: 0, align: least, members: Vec::new() };
    for line in body.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        if line.contains('&') {
            return None;
        }
        // Constants and functions come after the members.
        if line.contains('(') || line.starts_with("static ") {
            break;
        }
        for declaration in line.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let declaration = declaration.trim_start_matches("const ");
            let (first, others) = declaration.split_once(',').unwrap_or((declaration, ""));
            let (ty, first) = first.rsplit_once(' ')?;
            for member in [first].into_iter().chain(others.split(',').map(str::trim)) {
                if member.is_empty() {
                    continue;
                }
                let (member, count) = match member.split_once('[') {
                    Some((member, count)) => (member, count.trim_end_matches(']').parse().ok()?),
                    None => (member, 1),
                };
                let (size, align) = match (member.starts_with('*'), of(ty.trim())) {
                    (true, _) => (8, 8),
                    (false, Some(inner)) => (inner.size, inner.align),
                    (false, None) => plain(ty.trim()).map(|size| (size, size))?,
                };
                let offset = layout.size.next_multiple_of(align);
                layout.members.push((member.trim_start_matches('*').to_string(), offset));
                layout.size = offset + count * size;
                layout.align = layout.align.max(align);
            }
        }
    }
    layout.size = layout.size.next_multiple_of(layout.align);
    (!layout.members.is_empty()).then_some(layout)
}

/// Bytes of a number.
fn plain(ty: &str) -> Option<usize> {
    Some(match ty {
        "int64_t" | "uint64_t" | "double" => 8,
        "int32_t" | "uint32_t" | "int" | "unsigned" | "float" => 4,
        "int16_t" | "uint16_t" => 2,
        "int8_t" | "uint8_t" => 1,
        _ => return None,
    })
}

/// Rust source of `LAYOUTS`: a structure by its file and name.
pub fn source<'a>(files: impl Iterator<Item = (&'a str, &'a [Layout])>) -> String {
    let mut out = String::from("pub const LAYOUTS: &[Layout] = &[\n");
    for (file, layouts) in files {
        for Layout { name, size, members, .. } in layouts {
            let name = format!("{file} {name}");
            writeln!(out, "    Layout {{ name: {name:?}, size: {size}, members: &{members:?} }},").unwrap();
        }
    }
    out + "];\n"
}

/// Assertions of the same for the CUDA compiler. NVRTC of CUDA 12.9, which scripts/nvcc-of-cuda-12 uses, cannot tell
/// where a member is when it compiles.
pub fn assertions(layouts: &[Layout]) -> String {
    let mut out = String::new();
    for Layout { c_type, size, members, .. } in layouts {
        writeln!(out, "static_assert(sizeof({c_type}) == {size});\n#ifndef __CUDACC_RTC__").unwrap();
        for (member, offset) in members {
            writeln!(out, "static_assert(__builtin_offsetof({c_type}, {member}) == {offset});").unwrap();
        }
        out.push_str("#endif\n");
    }
    out
}
