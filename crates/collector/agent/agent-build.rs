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
        // Before the constructors of libraries: what they allocate is seen, and what they call.
        "-Wl,-z,initfirst",
        // What a collector calls in a running process.
        "-Wl,-e,trapline_invoke",
    ] {
        println!("cargo::rustc-link-arg-cdylib={option}");
    }
    println!("cargo::rustc-link-arg-cdylib=-Wl,{}=0x10ff00000000", base_option());
    println!("cargo::rerun-if-changed=build.rs");
}

/// The linker's option for where a library is linked (`abi::CODE`). From 1.90 on rustc links with LLD, which has another one than GNU ld.
fn base_option() -> &'static str {
    let rustc = std::env::var_os("RUSTC").expect("cargo sets it");
    let version = std::process::Command::new(rustc).arg("-V").output().expect("rustc runs").stdout;
    let text = String::from_utf8_lossy(&version).into_owned();
    let minor = text.split('.').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    if minor < 90 { "-Ttext-segment" } else { "--image-base" }
}
