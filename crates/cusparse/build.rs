//! Linker arguments of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // A soname that differs from cuSPARSE's. The loader tells libraries apart by it, so this one
        // never stands for cuSPARSE where a program asks for libcusparse.so.12, and forwarded calls find
        // the real one by that name.
        "-Wl,-soname,libtarsia_cusparse.so.0",
        // Symbols of statically linked libraries are not exported: rustc would export the functions of
        // the library tarsia, and programs may have loaded libtarsia.so, too.
        "-Wl,--exclude-libs,ALL",
        // The library is never unloaded: programs may hold addresses of its functions, and a handler for fork
        // is registered.
        "-Wl,-z,nodelete",
        // Undefined symbols are errors at link time, not at load time.
        "-Wl,-z,defs",
        "-Wl,-z,relro,-z,now",
        "-Wl,--as-needed",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
