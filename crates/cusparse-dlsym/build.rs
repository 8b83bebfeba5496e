//! Linker arguments of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        "-Wl,-soname,libtarsia_cusparse_dlsym.so.0",
        "-Wl,--exclude-libs,ALL",
        // The library is never unloaded: every call of dlsym goes through it.
        "-Wl,-z,nodelete",
        "-Wl,-z,defs",
        "-Wl,-z,relro,-z,now",
        "-Wl,--as-needed",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
