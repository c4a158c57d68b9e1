//! The linker's options: a library that needs no other, not even libc.

fn main() {
    for option in [
        "-nostdlib",
        "-nostartfiles",
        "-nodefaultlibs",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,-z,noexecstack",
        "-Wl,-z,nodelete",
        // What a collector calls in a running process.
        "-Wl,-e,trapline_invoke",
    ] {
        println!("cargo::rustc-link-arg-cdylib={option}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
