//! Sets how the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // A name of its own. The loader tells libraries apart by it, so this one never stands for cuSPARSE where
        // a program asks for libcusparse.so.12, and forwarded calls find the real one by that name.
        "-Wl,-soname,libtarsia_cusparse.so.0",
        // Of the libraries that are linked statically nothing is exported: rustc lists the functions of the
        // library tarsia among the exports, and programs may have loaded libtarsia.so, too.
        "-Wl,--exclude-libs,ALL",
        // Programs may hold the addresses of its functions, and a handler for fork is registered.
        "-Wl,-z,nodelete",
        // A symbol that nothing defines is an error now, not at load time.
        "-Wl,-z,defs",
        "-Wl,-z,relro,-z,now",
        "-Wl,--as-needed",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
