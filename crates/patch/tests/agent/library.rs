//! What the agent's file is, as readelf shows it.

use crate::collector::agent;
use std::process::Command;
use testkit::{has, skip};

fn readelf(option: &str) -> Option<String> {
    if !has("readelf") {
        skip("package:binutils", "no readelf");
        return None;
    }
    let out = Command::new("readelf").args(["-W", option, agent()]).output().expect("readelf");
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn it_needs_nothing() {
    let Some(dynamic) = readelf("-d") else { return };
    for word in ["(NEEDED)", "(VERNEED)", "(TEXTREL)", "(RPATH)", "(RUNPATH)", "(JMPREL)"] {
        assert!(!dynamic.contains(word), "{word}: {dynamic}");
    }
    let symbols = readelf("--dyn-syms").expect("readelf");
    let named: Vec<&str> = symbols.lines().filter_map(|l| l.split_whitespace().nth(7)).collect();
    // What tracers of the program ask the agent through. No symbol is asked for, and no other one is offered.
    assert_eq!(named.iter().filter(|n| **n != "Name").collect::<Vec<_>>(), [&"trapline_agent"], "{symbols}");
}

#[test]
fn its_relocations_need_no_symbol() {
    let Some(relocations) = readelf("-r") else { return };
    for line in relocations.lines().filter(|l| l.contains("R_X86_64")) {
        let mut words = line.split_whitespace();
        let info = words.nth(1).expect("the second column");
        assert!(info.starts_with("00000000"), "{line}");
        let kind = words.next();
        assert!(matches!(kind, Some("R_X86_64_RELATIVE" | "R_X86_64_TPOFF64")), "{line}");
    }
}

#[test]
fn its_thread_local_storage_is_small() {
    let Some(segments) = readelf("-l") else { return };
    let tls = segments.lines().find(|l| l.trim_start().starts_with("TLS")).expect("a TLS segment");
    let size = tls.split_whitespace().nth(5).and_then(|s| u64::from_str_radix(s.trim_start_matches("0x"), 16).ok());
    assert!(size.is_some_and(|s| s > 0 && s < 512), "{tls}");
    assert!(!segments.contains("RWE"), "{segments}");
}
