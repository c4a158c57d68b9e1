//! Programs whose code is reached, or read, by its addresses: they run as without trapline.

use crate::lab::{self, User};

/// What a program prints untraced and traced, and the summary's lines of the traced run.
#[track_caller]
fn same(program: &str, options: &[&str]) -> String {
    let bare = lab::run(&mut lab::as_user(User::Me, &[program]));
    let args = [&["graph", "--as", "functions"], options, &["--", program]].concat();
    let traced = lab::run(&mut lab::trapline(User::Me, &args));
    assert_eq!((bare.code(), traced.code()), (0, 0), "{}", traced.stderr);
    let first = traced.out().lines().next().map(|l| format!("{l}\n"));
    assert_eq!(first, Some(bare.out()), "{}", traced.stderr);
    traced.out()
}

#[test]
fn gotos_and_tables() {
    let ways: [(&str, &[&str]); 8] = [
        ("gcc", &["-Os"]),
        ("gcc", &["-Os", "-no-pie", "-fno-pie"]),
        ("gcc", &["-O2"]),
        ("gcc", &["-O2", "-flto"]),
        ("gcc", &["-Os", "-fcf-protection"]),
        ("clang", &["-Os"]),
        ("clang", &["-O2", "-no-pie", "-fno-pie"]),
        // Addresses in data that the loader finds in a bitmap, not in a table.
        ("gcc", &["-Os", "-Wl,-z,pack-relative-relocs"]),
    ];
    for (i, (compiler, flags)) in ways.iter().enumerate() {
        let program = testkit::compile(compiler, &format!("code_addresses_{i}"), "code_addresses.c", flags);
        let Some(program) = program else { continue };
        same(&program, &[]);
    }
}

#[test]
fn code_that_is_read_can_be_left() {
    let Some(program) = testkit::compile("gcc", "reads_itself", "reads_itself.c", &["-O1"]) else { return };
    let table = same(&program, &["--leave", "check*"]);
    assert!(table.contains("other") && !table.contains("checked"), "{table}");
}
