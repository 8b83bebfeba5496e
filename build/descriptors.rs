//! The functions of src/capi/descriptors.rs, written out for the library and for cbindgen, which sees none that a
//! macro makes. What they do is in src/capi/objects.rs; here are their arguments, and which of them is which field.

use std::fmt::Write;

use super::enums;

/// What a function does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Makes a descriptor of all fields.
    Create,
    /// Destroys it.
    Destroy,
    /// Tells all fields; each answer may be NULL.
    Get,
    /// Tells the address of the values.
    GetValues,
    /// Replaces the addresses of all arrays.
    Set,
}

/// A descriptor of the list.
pub struct Descriptor {
    /// Its argument.
    argument: &'static str,
    /// Its C type without `tarsia` and `Descr_t`.
    object: &'static str,
    /// The structure that its fields are in.
    structure: &'static str,
    /// The format of a sparse matrix, or nothing.
    format: &'static str,
    fields: &'static [Field],
    functions: &'static [Function],
}

/// A field of a descriptor.
pub struct Field {
    argument: &'static str,
    /// `Array`, `i64` or a C enum.
    kind: &'static str,
    /// Its name in the structure.
    name: &'static str,
}

/// A function of a descriptor.
pub struct Function {
    /// Lines of its comment.
    doc: &'static [&'static str],
    name: &'static str,
    kind: Kind,
    /// The arrays are only read.
    is_const: bool,
}

macro_rules! descriptors {
    ($(
        $argument:ident: $object:ident = $structure:ident $(as $format:ident)? {
            $($field:ident: $kind:ident = $place:ident,)*
        }
        $($(#[doc = $doc:literal])* fn $function:ident = $does:ident $(, $const:ident)?;)*
    )*) => {
        pub const ALL: &[super::Descriptor] = &[$(super::Descriptor {
            argument: stringify!($argument),
            object: stringify!($object),
            structure: stringify!($structure),
            format: stringify!($($format)?),
            fields: &[$(super::Field {
                argument: stringify!($field),
                kind: stringify!($kind),
                name: stringify!($place),
            }),*],
            functions: &[$(super::Function {
                doc: &[$($doc),*],
                name: stringify!($function),
                kind: super::Kind::$does,
                is_const: !stringify!($($const)?).is_empty(),
            }),*],
        }),*];
    };
}

#[path = "../src/capi/descriptors.rs"]
mod list;

/// The files of src/capi that include functions of the list.
pub const FILES: &[&str] = &["spmat", "spmat_access", "dnvec", "dnmat"];

/// The file that a function is for.
fn file_of(descriptor: &Descriptor, function: &Function) -> &'static str {
    match (descriptor.object, function.kind) {
        ("SpMat", Kind::Create) => "spmat",
        ("SpMat", _) => "spmat_access",
        ("DnVec", _) => "dnvec",
        _ => "dnmat",
    }
}

/// Rust source of the functions for one of [`FILES`].
pub fn source(file: &str) -> String {
    let mut out = String::new();
    for descriptor in list::ALL {
        for function in descriptor.functions.iter().filter(|function| file_of(descriptor, function) == file) {
            enums::comment(&mut out, "", function.doc);
            descriptor.write(&mut out, function);
        }
    }
    out
}

impl Descriptor {
    /// Writes a function: its arguments, and a body of calls of boundary.rs and objects.rs.
    fn write(&self, out: &mut String, function: &Function) {
        let &Function { name, kind, is_const, .. } = function;
        let Descriptor { argument, object, structure, .. } = self;
        let (access, pointer) = if is_const { ("const", "const_pointer") } else { ("mut", "pointer") };
        let fields = self.fields.iter().filter(|field| match kind {
            Kind::Create | Kind::Get => true,
            Kind::Destroy => false,
            Kind::GetValues => field.argument == "values",
            Kind::Set => field.kind == "Array",
        });
        let each = |of: &dyn Fn(&Field) -> String| fields.clone().map(of).collect::<String>();
        let (arguments, body) = match kind {
            Kind::Create => {
                let described = self.described(&each(&Field::given), !is_const, "");
                let body =
                    format!("let out = out!({argument}); out.set({pointer}({described}.insert()?)); Ok(())");
                (each(&|field| field.argument(access)), body)
            }
            Kind::Destroy => {
                (String::new(), format!("{structure}::registry().destroy(\"{argument}\", {argument}.addr())"))
            }
            Kind::Get => {
                let answers = each(&|field| format!("{}: {}, ", field.argument, field.answer(access)));
                let body = format!("{} answer! {{ {answers} }} Ok(())", self.found(!is_const));
                (each(&|field| field.pointer(access)), body)
            }
            Kind::GetValues => {
                let answers = each(&|field| format!("out!({}).{};", field.argument, field.answer(access)));
                (each(&|field| field.pointer(access)), format!("{} {answers} Ok(())", self.found(!is_const)))
            }
            Kind::Set => {
                let described = self.described(&each(&Field::given), true, "..m");
                let body =
                    format!("{} {described}.replace(\"{argument}\", {argument}.addr())", self.found(true));
                (each(&|field| field.argument(access)), body)
            }
        };
        let to_const = if is_const || kind == Kind::Destroy { "Const" } else { "" };
        let to_write = if kind == Kind::Create { "*mut " } else { "" };
        let promises = if kind == Kind::Destroy { "" } else { "unsafe " };
        writeln!(
            out,
            "#[no_mangle]\npub {promises}extern \"C\" fn {name}(\n    \
             {argument}: {to_write}tarsia{to_const}{object}Descr_t,\n{arguments}) -> tarsiaStatus_t {{\n    \
             guard(|| {{ {body} }})\n}}\n"
        )
        .unwrap();
    }

    /// What the descriptor describes, with these fields and otherwise as `rest` has it.
    fn described(&self, fields: &str, writable: bool, rest: &str) -> String {
        let structure = self.structure;
        match self.format {
            "" => format!("{structure} {{ {fields} writable: {writable}, {rest} }}"),
            format => format!(
                "SparseMatrix {{ arrays: SparseArrays::{format}({structure} {{ {fields} {rest} }}), \
                 writable: {writable}, temporary: false }}"
            ),
        }
    }

    /// Finds the structure of a live descriptor, as `m`.
    fn found(&self, to_write: bool) -> String {
        let Descriptor { argument, structure, .. } = self;
        match self.format {
            "" => format!("let m = {structure}::of(\"{argument}\", {argument}.addr(), {to_write})?;"),
            format => format!(
                "let a = SparseMatrix::of(\"{argument}\", {argument}.addr(), {to_write})?; \
                 let SparseArrays::{format}(m) = a.arrays else {{ return Err(other_format(&a, Format::{format})) }};"
            ),
        }
    }
}

impl Field {
    /// The argument of a function that is given the field.
    fn argument(&self, access: &str) -> String {
        let Field { argument, kind, .. } = self;
        match *kind {
            "Array" => format!("    {argument}: *{access} c_void,\n"),
            "i64" => format!("    {argument}: i64,\n"),
            c_enum => format!("    {argument}: MaybeUninit<{c_enum}>,\n"),
        }
    }

    /// The argument of a function that tells the field.
    fn pointer(&self, access: &str) -> String {
        let Field { argument, kind, .. } = self;
        match *kind {
            "Array" => format!("    {argument}: *mut *{access} c_void,\n"),
            kind => format!("    {argument}: *mut {kind},\n"),
        }
    }

    /// The field of the structure, from the argument.
    fn given(&self) -> String {
        let Field { argument, kind, name } = self;
        match *kind {
            "Array" => format!("{name}: Address::new({argument}), "),
            "i64" if name == argument => format!("{name}, "),
            "i64" => format!("{name}: {argument}, "),
            _ => format!("{name}: check_enum(\"{argument}\", {argument})?, "),
        }
    }

    /// How an answer (`Out`) is set to the field of `m`.
    fn answer(&self, access: &str) -> String {
        let Field { kind, name, .. } = self;
        match (*kind, access) {
            ("Array", "const") => format!("set(m.{name}.as_ptr())"),
            ("Array", _) => format!("set(m.{name}.as_mut_ptr())"),
            ("i64", _) => format!("set(m.{name})"),
            _ => format!("set_enum(m.{name})"),
        }
    }
}
