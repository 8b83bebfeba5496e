//! Parser of include/tarsia.h, for the subset of C that cbindgen writes there. It panics at anything else, so
//! that nothing is left out silently.

/// Declarations of a header.
#[derive(Debug, Default)]
pub struct Header {
    /// Functions in the order of the header.
    pub functions: Vec<Function>,
    /// Enums: name and (enumerator, value).
    pub enums: Vec<(String, Vec<(String, i32)>)>,
    /// Structs with fields: name and (C type, field); the type of `char name[32]` is `char[32]`.
    pub structs: Vec<(String, Vec<(String, String)>)>,
    /// Other type names: opaque objects, pointers to them, callbacks.
    pub others: Vec<String>,
}

/// Declaration of a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// C type that it returns.
    pub returns: String,
    /// Name of the function.
    pub name: String,
    /// Arguments: C type without spaces before `*`, and name.
    pub args: Vec<(String, String)>,
}

/// Returns the path of the committed include/tarsia.h.
pub fn path() -> std::path::PathBuf {
    crate::common::root().join("include/tarsia.h")
}

/// Parses the header of this build.
pub fn parse() -> Header {
    parse_text(tarsia::capi::HEADER)
}

/// Parses a header.
pub fn parse_text(text: &str) -> Header {
    let mut header = Header::default();
    for statement in statements(&without_comments(text)) {
        header.take(&statement);
    }
    header
}

/// Removes comments and preprocessor lines.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        let end = rest[start..].find("*/").expect("every comment ends");
        rest = &rest[start + end + 2..];
    }
    out.push_str(rest);
    let lines = out.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// Splits a text into statements that end with `;` outside of braces, with single spaces.
fn statements(text: &str) -> Vec<String> {
    let text = text.replacen("extern \"C\" {", "", 1);
    let (mut out, mut statement, mut depth) = (Vec::new(), String::new(), 0i32);
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth < 0 {
            // The end of extern "C".
            depth = 0;
            continue;
        }
        if c == ';' && depth == 0 {
            out.push(statement.split_whitespace().collect::<Vec<_>>().join(" "));
            statement.clear();
        } else {
            statement.push(c);
        }
    }
    assert!(statement.trim().is_empty(), "the header ends in the middle of `{}`", statement.trim());
    out
}

/// Splits `const void **name` into (`const void**`, `name`), and `char name[32]` into (`char[32]`, `name`).
fn declarator(text: &str) -> (String, String) {
    let text = text.trim();
    let (text, array) = match text.split_once('[') {
        Some((before, array)) => (before.trim_end(), format!("[{array}")),
        None => (text, String::new()),
    };
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let (kind, name) = text.split_at(start);
    assert!(!kind.trim().is_empty() && !name.is_empty(), "`{text}` is not a type and a name");
    (kind.trim().replace(" *", "*") + &array, name.to_string())
}

impl Header {
    fn take(&mut self, statement: &str) {
        if let Some(body) = statement.strip_prefix("typedef enum {") {
            let (body, name) = body.rsplit_once('}').expect("an enum ends with }");
            let values = body.split(',').map(str::trim).filter(|value| !value.is_empty());
            let values = values.map(|value| {
                let (name, code) = value.split_once(" = ").expect("enumerators have values");
                (name.to_string(), code.parse().expect("values are integers"))
            });
            self.enums.push((name.trim().to_string(), values.collect()));
        } else if let Some(body) = statement.strip_prefix("typedef struct {") {
            let (body, name) = body.rsplit_once('}').expect("a struct ends with }");
            let fields = body.split(';').map(str::trim).filter(|field| !field.is_empty()).map(declarator);
            self.structs.push((name.trim().to_string(), fields.collect()));
        } else if let Some(rest) = statement.strip_prefix("typedef ") {
            let callback = rest.split_once("(*").map(|(_, rest)| rest.split(')').next().unwrap_or_default());
            let name = callback.map_or_else(|| declarator(rest).1, str::to_string);
            self.others.push(name);
        } else {
            let (head, args) = statement.split_once('(').unwrap_or_else(|| panic!("what is `{statement}`?"));
            let args = args.strip_suffix(')').unwrap_or_else(|| panic!("what is `{statement}`?"));
            let (returns, name) = declarator(head);
            let args = if args == "void" { Vec::new() } else { args.split(',').map(declarator).collect() };
            self.functions.push(Function { returns, name, args });
        }
    }
}

#[test]
fn reader_understands_what_cbindgen_writes() {
    let header = parse_text(
        "/* typedef enum { X = 1, } no_t; */\n#ifndef H\n#define H\n\
         typedef enum {\n /** text; */\n A = 0,\n B = -2,\n} e_t;\n\
         typedef struct opaque opaque;\ntypedef const opaque *handle_t;\n\
         typedef void *(*fn_t)(void *ctx, size_t bytes);\n\
         typedef struct {\n size_t n;\n char text[32];\n const char *p;\n} s_t;\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif // __cplusplus\n\
         const char *name(e_t e);\nint all(void);\n\
         e_t f(handle_t h,\n      const void **p);\n\
         #ifdef __cplusplus\n}  // extern \"C\"\n#endif\n#endif\n",
    );
    assert_eq!(header.enums, [("e_t".to_string(), vec![("A".to_string(), 0), ("B".to_string(), -2)])]);
    assert_eq!(header.others, ["opaque", "handle_t", "fn_t"]);
    let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
    let fields = vec![pair("size_t", "n"), pair("char[32]", "text"), pair("const char*", "p")];
    assert_eq!(header.structs, [("s_t".to_string(), fields)]);
    let [name, all, f] = &header.functions[..] else { panic!("{:?}", header.functions) };
    assert_eq!((name.returns.as_str(), name.name.as_str()), ("const char*", "name"));
    assert_eq!((all.name.as_str(), all.args.len()), ("all", 0));
    assert_eq!(f.args, [pair("handle_t", "h"), pair("const void**", "p")]);
}
