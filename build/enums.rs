//! The enums of src/types/enums.rs as C has them: cbindgen sees no enum that a macro makes, so the build
//! writes them out, for it and for src/capi/enums.rs.

use std::fmt::Write;

/// An enum of the list.
pub struct Enum {
    /// Lines of its comment.
    doc: &'static [&'static str],
    /// Name in the library.
    name: &'static str,
    /// C type.
    c_type: &'static str,
    values: &'static [Value],
}

/// A value of an enum.
pub struct Value {
    /// Lines of its comment.
    doc: &'static [&'static str],
    /// Name in the library.
    name: &'static str,
    code: i32,
    /// C enumerator.
    c_name: &'static str,
}

macro_rules! code_enums {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $name:ident = $c_type:ident {
            $($(#[doc = $value_doc:literal])* $value:ident = $code:literal, $c_name:ident;)*
        }
    )*) => {
        pub const ALL: &[super::Enum] = &[$(super::Enum {
            doc: &[$($doc),*],
            name: stringify!($name),
            c_type: stringify!($c_type),
            values: &[$(super::Value {
                doc: &[$($value_doc),*],
                name: stringify!($value),
                code: $code,
                c_name: stringify!($c_name),
            }),*],
        }),*];
    };
}

#[path = "../src/types/enums.rs"]
mod list;

/// Rust source: each enum under its C names, then a call of `bind!` (src/capi/enums.rs), which converts between
/// them and the library's.
pub fn source() -> String {
    let mut out = String::new();
    let mut bindings = String::new();
    for Enum { doc, name, c_type, values } in list::ALL {
        comment(&mut out, "", doc);
        writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum {c_type} {{")
            .unwrap();
        writeln!(bindings, "    {c_type} => {name} {{").unwrap();
        for Value { doc, name, code, c_name } in *values {
            comment(&mut out, "    ", doc);
            writeln!(out, "    {c_name} = {code},").unwrap();
            writeln!(bindings, "        {c_name} => {name},").unwrap();
        }
        out.push_str("}\n\n");
        bindings.push_str("    }\n");
    }
    writeln!(out, "bind! {{\n{bindings}}}").unwrap();
    out
}

/// Lines of a comment of the list.
pub fn comment(out: &mut String, indent: &str, lines: &[&str]) {
    for line in lines {
        writeln!(out, "{indent}///{line}").unwrap();
    }
}
