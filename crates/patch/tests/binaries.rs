//! Programs and libraries of this machine: nearly every function gets a patch, and what is moved does what the original does.

mod elf;

use elf::File;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic};
use patch::link::{Beside, Linked, Places, area_len, link};
use patch::{Plan, Refusal, Site};
use std::process::Command;
use std::time::Instant;
use testkit::skip;

const LIBRARIES: [&str; 5] = ["libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2", "libcrypto.so.3", "libm.so.6"];

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_string()).filter(|s| s.starts_with('/'))
}

fn files() -> Vec<String> {
    let mut files = vec![std::env::current_exe().unwrap().to_str().unwrap().to_string()];
    // Of the places where distributions have a library, the first that is there, else the first.
    let places = |l: &&str| ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib"].map(|d| format!("{d}/{l}"));
    let chosen = |all: [String; 3]| all.iter().find(|p| std::path::Path::new(p).exists()).unwrap_or(&all[0]).clone();
    files.extend(LIBRARIES.iter().map(|l| chosen(places(l))));
    files.extend(["/usr/bin/perl", "/usr/bin/python3", "/usr/bin/git", "/usr/bin/bash"].map(String::from));
    files.extend(output("gcc", &["-print-prog-name=cc1plus"]));
    files.extend(output("python3", &["-c", "import sys; print(sys.executable)"]));
    if let Some(root) = output("rustc", &["--print", "sysroot"]) {
        files.push(format!("{root}/bin/cargo"));
        let libraries = std::fs::read_dir(format!("{root}/lib")).into_iter().flatten().flatten();
        let paths = libraries.map(|e| e.path().to_string_lossy().into_owned());
        files.extend(paths.filter(|p| p.contains("librustc_driver")));
    }
    files.extend(
        std::env::var("TRAPLINE_PATCH_FILES")
            .into_iter()
            .flat_map(|v| v.split(':').map(String::from).collect::<Vec<_>>()),
    );
    files
}

const BIAS: u64 = 0x5555_0000_0000;

/// Everything linked, behind the module.
fn linked(plan: &Plan) -> Linked {
    let area = (BIAS + plan.reach.end + 0x10_0000) & !0xfff;
    let variant = abi::stub::Variant::Paired;
    let places = Places { bias: BIAS, area, tls: -0x1000, slow: [0; 11], hooks: [0; 32], variant, minimum: 0 };
    let linked = link(plan, &places, |n| Some(n + 1), Beside::default()).unwrap();
    assert_eq!(linked.len(), area_len(plan, (plan.sites.len(), 0), variant));
    linked
}

fn decode(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// Reads moved code.
struct Moved<'l> {
    linked: &'l Linked,
    pc: u64,
}

impl Moved<'_> {
    fn bytes(&self) -> &[u8] {
        &self.linked.content[(self.pc - self.linked.address) as usize..]
    }

    fn next(&mut self) -> Instruction {
        let instruction = decode(self.bytes(), self.pc);
        self.pc += instruction.len() as u64;
        instruction
    }

    /// push of the word behind the next instruction, which is a jump.
    fn pushed(&mut self) -> (u64, Instruction) {
        let push = self.next();
        assert_eq!(push.code(), Code::Push_rm64);
        let jump = self.next();
        assert_eq!(push.ip_rel_memory_address(), self.pc);
        let word = u64::from_le_bytes(self.bytes()[..8].try_into().unwrap());
        self.pc += 8;
        (word, jump)
    }
}

/// Compares a site's original and its moved beginning.
fn compare(file: &File, site: &Site, moved: &mut Moved<'_>) {
    let mut at = site.begins();
    let is_profiler = |target: u64| file.profilers.contains(&target);
    while at < site.address + 5 {
        let original = decode(file.at(at), at);
        let bytes = &file.at(at)[..original.len()];
        at += original.len() as u64;
        let there = BIAS.wrapping_add(original.near_branch_target());
        match original.code() {
            _ if original.mnemonic() == Mnemonic::Nop => continue,
            Code::Call_rel32_64 if is_profiler(original.near_branch_target()) => continue,
            Code::Call_rm64 if original.is_ip_rel_memory_operand() && is_profiler(original.ip_rel_memory_address()) => {
                continue;
            }
            Code::Call_rel32_64 => {
                let (word, jump) = moved.pushed();
                assert_eq!((word, jump.code(), jump.near_branch_target()), (BIAS + at, Code::Jmp_rel32_64, there));
                return;
            }
            Code::Call_rm64 => {
                let (word, jump) = moved.pushed();
                assert_eq!((word, jump.code()), (BIAS + at, Code::Jmp_rm64));
                if original.is_ip_rel_memory_operand() {
                    assert_eq!(jump.ip_rel_memory_address(), BIAS + original.ip_rel_memory_address());
                } else {
                    assert_eq!((jump.op0_kind(), jump.op0_register()), (original.op0_kind(), original.op0_register()));
                    assert_eq!(
                        (jump.memory_base(), jump.memory_index()),
                        (original.memory_base(), original.memory_index())
                    );
                }
                return;
            }
            _ if original.is_jcc_short_or_near() => {
                let new = moved.next();
                assert_eq!((new.condition_code(), new.near_branch_target()), (original.condition_code(), there));
            }
            _ if original.is_jmp_short_or_near() => {
                let new = moved.next();
                assert_eq!((new.code(), new.near_branch_target()), (Code::Jmp_rel32_64, there));
                return;
            }
            _ if original.is_jcx_short() || original.is_loop() || original.is_loopcc() => {
                let (new, over, jump) = (moved.next(), moved.next(), moved.next());
                assert_eq!((new.code(), new.near_branch_target()), (original.code(), jump.ip()));
                assert_eq!((over.code(), over.near_branch_target()), (Code::Jmp_rel8_64, jump.next_ip()));
                assert_eq!(jump.near_branch_target(), there);
            }
            _ if original.is_ip_rel_memory_operand() => {
                let new = moved.next();
                assert_eq!(new.ip_rel_memory_address(), BIAS + original.ip_rel_memory_address());
                assert_eq!(new.code(), original.code());
                let same = |i: usize| new.op_kind(i as u32) == original.op_kind(i as u32);
                assert!((0..new.op_count() as usize).all(same));
                if original.is_jmp_near_indirect() {
                    return;
                }
            }
            _ => {
                assert_eq!(&moved.bytes()[..bytes.len()], bytes);
                moved.pc += bytes.len() as u64;
                if original.mnemonic() == Mnemonic::Ret || original.is_jmp_near_indirect() {
                    return;
                }
            }
        }
    }
    assert_eq!(at, site.back);
    if !site.code.is_empty() {
        let back = moved.next();
        assert_eq!((back.code(), back.near_branch_target()), (Code::Jmp_rel32_64, BIAS + site.back));
    }
}

fn check(path: &str) {
    let Some(file) = File::read(path) else {
        skip(&format!("file:{path}"), "not there");
        return;
    };
    let begin = Instant::now();
    let plan = file.plan();
    let took = begin.elapsed();
    let begin = Instant::now();
    let linked = linked(&plan);
    let link_took = begin.elapsed();
    let counts = File::refusals(&plan);
    let count = |r: Refusal| counts.get(&r).copied().unwrap_or(0);
    let functions = file.functions.len();
    let not_meant: usize = [
        Refusal::Cold,
        Refusal::ReturnsTwice,
        Refusal::OddStack,
        Refusal::Resolver,
        Refusal::Profiler,
        Refusal::NoFrame,
        Refusal::Caller,
        Refusal::Unwinder,
    ]
    .map(count)
    .iter()
    .sum();
    let meant = functions - not_meant;
    let (small, looping) = (count(Refusal::TooSmall), count(Refusal::Loop));
    let patched = plan.sites.len() + plan.aliases.len();
    let share = 100.0 * patched as f64 / meant.max(1) as f64;
    let behind = plan.sites.iter().filter(|s| s.start < s.address).count();
    let behind = 100.0 * behind as f64 / plan.sites.len().max(1) as f64;
    println!(
        "{path}: {:.1} MB, {functions} functions, {patched} patched ({} sites, {behind:.2} % behind their first instruction): {share:.2} % of {meant}; plan {took:?}, link {link_took:?} ({:.0} ns and {:.0} bytes a site, {:.0} of them moved); {counts:?}",
        file.text() as f64 / 1e6,
        plan.sites.len(),
        link_took.as_nanos() as f64 / plan.sites.len().max(1) as f64,
        linked.content.len() as f64 / plan.sites.len().max(1) as f64,
        plan.code.len() as f64 / plan.sites.len().max(1) as f64,
    );
    if std::env::var_os("TRAPLINE_PATCH_REFUSED").is_some() {
        for (number, refusal) in plan.refusals.iter().filter(|(_, r)| *r != Refusal::Cold) {
            let function = file.functions[*number as usize];
            println!("  {:#x}+{} {}: {refusal}", function.address, function.size, file.names[*number as usize]);
        }
    }
    assert_eq!(patched + plan.refusals.len(), functions, "{path}");
    for (i, (site, patch)) in plan.sites.iter().zip(&linked.patches).enumerate() {
        assert_eq!(patch.old[..5], file.at(site.address)[..5]);
        assert_eq!(patch.address, BIAS + site.address);
        let layout = abi::stub::layout(abi::stub::Variant::Paired);
        let stub = linked.address + i as u64 * u64::from(layout.size);
        let undo = if site.is_undone() { u64::from(abi::stub::UNDO) } else { 0 };
        let entry = stub + u64::from(layout.entry) - undo;
        assert_eq!(decode(&patch.new, patch.address).near_branch_target(), entry, "{path}");
        // The call is right before where the function returns to.
        let called = layout.returns as usize - 5;
        let call = decode(&linked.content[i * layout.size as usize + called..], stub + called as u64);
        if site.code.is_empty() {
            assert_eq!(call.near_branch_target(), BIAS + site.back);
        }
        let mut moved = Moved { linked: &linked, pc: call.near_branch_target() };
        if !site.code.is_empty() {
            assert_eq!(linked.inside(moved.pc), Some(patch::link::Inside::Beginning(BIAS + site.begins())));
        }
        assert_eq!(linked.inside(stub + 7), Some(patch::link::Inside::Stub { function: site.number + 1, offset: 7 }));
        compare(&file, site, &mut moved);
    }
    // Bytes of two patches never overlap.
    assert!(plan.sites.windows(2).all(|s| s[0].address + 5 <= s[1].address), "{path}");
    // All but a few, apart from those that are meant to be left out, are too small, or begin with a loop.
    let possible = 100.0 * (patched + small + looping) as f64 / meant.max(1) as f64;
    assert!(meant < 1000 || possible >= 99.5, "{path}: {possible:.2} %");
}

#[test]
fn files_of_this_machine() {
    for path in files() {
        check(&path);
    }
}
