//! Generator of the support table in docs/formats-and-types.md.

use tarsia::facade::{BackendKind, ComputeType, Row, Types, TABLE};

/// Returns the table of algorithms in docs/formats-and-types.md as Markdown. An algorithm that is
/// deterministic only on some backends has a line for these and one for the others.
pub fn text() -> String {
    let mut out = String::from(
        "| operation | algorithm | formats | types (A, x or B → y or C; compute) | backends | deterministic | pedantic, of real types |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in TABLE {
        for deterministic in [true, false] {
            let is_meant = |backend: &BackendKind| row.deterministic.contains(backend) == deterministic;
            let backends: Vec<_> = row.backends.iter().copied().filter(is_meant).collect();
            if !backends.is_empty() {
                out.push_str(&line(row, &backends, deterministic));
            }
        }
    }
    out
}

/// Returns a line of the table: a row of the support table, on some of its backends.
fn line(row: &Row, backends: &[BackendKind], deterministic: bool) -> String {
    let formats: Vec<_> = row.formats.iter().map(|format| format.short()).collect();
    let types: Vec<_> = row.types.iter().map(types_text).collect();
    let names: Vec<_> =
        backends.iter().map(|b| b.c_name().trim_start_matches("TARSIA_BACKEND_").to_lowercase()).collect();
    format!(
        "| {} | `{}` | {} | {} | {} | {} | {} |\n",
        row.op.short(),
        row.name,
        formats.join(", "),
        types.join(" · "),
        names.join(", "),
        if deterministic { "yes" } else { "in deterministic mode" },
        pedantic_text(row, backends)
    )
}

/// Returns the text of a row's types.
fn types_text(t: &Types) -> String {
    if t.a == t.x && t.x == t.y && t.compute.scalar() == t.a && t.compute != ComputeType::Tf32 {
        t.a.short().to_string()
    } else {
        format!("{}, {} → {}; {}", t.a.short(), t.x.short(), t.y.short(), t.compute.short())
    }
}

/// Returns the text that says for which of its real types a row supports TARSIA_COMPUTE_32F_PEDANTIC or
/// 64F_PEDANTIC on all of these backends.
fn pedantic_text(row: &Row, backends: &[BackendKind]) -> String {
    let asked = |t: &&Types| matches!(t.compute, ComputeType::R32F | ComputeType::R64F);
    let takes = |t: &&Types| backends.iter().all(|&backend| row.algorithm.is_pedantic(backend, **t));
    let all: Vec<_> = row.types.iter().filter(asked).collect();
    let taken: Vec<_> = all.iter().copied().filter(|t| takes(t)).map(types_text).collect();
    let host = if backends.contains(&BackendKind::Host) { "host all; cuda " } else { "" };
    match taken.len() {
        count if count == all.len() => "yes".into(),
        0 => format!("{host}none"),
        _ => format!("{host}{}", taken.join(" · ")),
    }
}
