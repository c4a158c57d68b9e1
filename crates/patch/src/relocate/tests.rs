//! Bytes in, bytes out: one case for each form of instruction. Distances are shown as the targets that they lead to.

use super::*;
use std::fmt::Write;

const START: u64 = 0x1000;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|b| u8::from_str_radix(b, 16).unwrap()).collect()
}

/// Moved code as hexadecimal digits, each fix as `<target`, with `+n` if this many bytes of the instruction follow it, or as `=target`.
fn moved_with(hex: &str, profilers: &[u64]) -> Result<String, Refusal> {
    let (mut code, mut fixes) = (vec![], vec![]);
    let moved = relocate((START, 0, 0), &bytes(hex), profilers, &mut code, &mut fixes, &mut vec![])?;
    let mut out = String::new();
    let mut at = 0;
    while at < code.len() {
        if let Some(fix) = fixes.iter().find(|f| f.at as usize == at) {
            let _ = match fix.kind {
                FixKind::Relative(4) => write!(out, "<{:x} ", fix.target),
                FixKind::Relative(n) => write!(out, "<{:x}+{} ", fix.target, n - 4),
                FixKind::Absolute => write!(out, "={:x} ", fix.target),
            };
            at += if fix.kind == FixKind::Absolute { 8 } else { 4 };
        } else {
            let _ = write!(out, "{:02x} ", code[at]);
            at += 1;
        }
    }
    assert_eq!(moved.is_empty, code.is_empty());
    Ok(out.trim_end().to_string())
}

fn check(hex: &str, expected: &str) {
    assert_eq!(moved_with(hex, &[]).as_deref(), Ok(expected), "{hex}");
}

fn refused(hex: &str, refusal: Refusal) {
    assert_eq!(moved_with(hex, &[]), Err(refusal), "{hex}");
}

#[test]
fn instructions_without_places_are_copied() {
    // push rbp; mov rbp, rsp; push r15
    check("55 48 89 e5 41 57 90", "55 48 89 e5 41 57 e9 <1006");
    // sub rsp, 0x128: longer than the patch
    check("48 81 ec 28 01 00 00", "48 81 ec 28 01 00 00 e9 <1007");
    // vmovaps ymm0, [rdi]; ret: nothing goes on
    check("c5 fc 28 07 c3", "c5 fc 28 07 c3");
    // mov eax, 39; ret
    check("b8 27 00 00 00 c3", "b8 27 00 00 00 e9 <1005");
}

#[test]
fn distances_from_rip() {
    // mov rax, [rip+0x10]
    check("48 8b 05 10 00 00 00", "48 8b 05 <1017 e9 <1007");
    // cmp dword [rip+0x10], 5: an immediate follows the distance
    check("83 3d 10 00 00 00 05", "83 3d <1017+1 05 e9 <1007");
    // cmp qword [rip-0x10], 0x11223344
    check("48 81 3d f0 ff ff ff 44 33 22 11", "48 81 3d <ffb+4 44 33 22 11 e9 <100b");
    // lea rdi, [rip]
    check("48 8d 3d 00 00 00 00", "48 8d 3d <1007 e9 <1007");
    // vmovups zmm0, [rip+0x40]: EVEX
    check("62 f1 7c 48 10 05 40 00 00 00", "62 f1 7c 48 10 05 <104a e9 <100a");
    // jmp [rip+0x10]
    check("ff 25 10 00 00 00", "ff 25 <1016");
    // mov eax, [eip+0x10]: 32 bits of address
    refused("67 8b 05 10 00 00 00", Refusal::Unmovable);
}

#[test]
fn jumps() {
    // test rdi, rdi; je +0x20; ret
    check("48 85 ff 74 20 c3", "48 85 ff 0f 84 <1025 e9 <1005");
    // jne near
    check("0f 85 00 01 00 00", "0f 85 <1106 e9 <1006");
    // test edi, edi; je +0x20; xor eax, eax: what follows a conditional jump is moved too
    check("85 ff 74 20 31 c0 c3", "85 ff 0f 84 <1024 31 c0 e9 <1006");
    // jmp near; jmp short over what nobody comes to
    check("e9 00 01 00 00", "e9 <1105");
    check("eb 20 90 90 90", "e9 <1022");
    // jmp rax; notrack jmp rax
    check("ff e0 cc cc cc", "ff e0");
    check("3e ff e0 cc cc", "3e ff e0");
}

#[test]
fn loops_and_jrcxz() {
    // jrcxz +0x20; dec rcx
    check("e3 20 48 ff c9", "e3 02 eb 05 e9 <1022 48 ff c9 e9 <1005");
    // jecxz
    check("67 e3 20 48 ff c9", "67 e3 02 eb 05 e9 <1023 48 ff c9 e9 <1006");
    // nop; loop -0x20; loope, loopne
    check("90 e2 e0 31 c0", "e2 02 eb 05 e9 <fe3 31 c0 e9 <1005");
    check("90 e1 e0 31 c0", "e1 02 eb 05 e9 <fe3 31 c0 e9 <1005");
    check("90 e0 e0 31 c0", "e0 02 eb 05 e9 <fe3 31 c0 e9 <1005");
}

#[test]
fn calls_see_the_original_return_address() {
    // call; push rbx; call
    check("e8 00 01 00 00", "ff 35 05 00 00 00 e9 <1105 =1005");
    check("53 e8 00 01 00 00", "53 ff 35 05 00 00 00 e9 <1106 =1006");
    // call [rip+0x100]: the pushed word lies behind 6 bytes
    check("ff 15 00 01 00 00", "ff 35 06 00 00 00 ff 25 <1106 =1006");
    // sub rsp, 8; call rax; call [rax+8]; call r11
    check("48 83 ec 08 ff d0", "48 83 ec 08 ff 35 02 00 00 00 ff e0 =1006");
    check("48 83 ec 08 ff 50 08", "48 83 ec 08 ff 35 03 00 00 00 ff 60 08 =1007");
    check("48 83 ec 08 41 ff d3", "48 83 ec 08 ff 35 03 00 00 00 41 ff e3 =1007");
    // push rbx; call rax: it would return into the patch
    refused("53 ff d0 5b c3", Refusal::CallInside);
    // sub rsp, 8; call [rsp+8]: the push would change the place
    refused("48 83 ec 08 ff 54 24 08", Refusal::Unmovable);
}

#[test]
fn profilers_and_nops_are_left_out() {
    // push rbp; mov rbp, rsp; call mcount
    let pg = moved_with("55 48 89 e5 e8 f7 00 00 00", &[0x1100]);
    assert_eq!(pg.as_deref(), Ok("55 48 89 e5 e9 <1009"));
    // call __fentry__, direct and through a pointer
    assert_eq!(moved_with("e8 fb 00 00 00", &[0x1100]).as_deref(), Ok(""));
    assert_eq!(moved_with("ff 15 fa 00 00 00", &[0x900, 0x1100]).as_deref(), Ok(""));
    check("90 90 90 90 90 90", "");
    check("0f 1f 44 00 00", "");
    check("90 90 55 48 89 e5", "55 48 89 e5 e9 <1006");
}

#[test]
fn what_cannot_be_moved() {
    refused("b0 27 0f 05 c3", Refusal::SystemCall);
    refused("cd 80 c3 c3 c3", Refusal::SystemCall);
    refused("cc 48 89 e5 53", Refusal::Patched);
    refused("06 06 06 06 06", Refusal::Undecodable);
    refused("48 c7", Refusal::Undecodable);
    refused("90 90", Refusal::TooSmall);
    refused("0f 0b 90 90 90", Refusal::Unmovable);
    refused("cb 90 90 90 90", Refusal::Unmovable);
}

#[test]
fn a_patch_splits_instructions_or_not() {
    let splits =
        |hex: &str| relocate((START, 0, 0), &bytes(hex), &[], &mut vec![], &mut vec![], &mut vec![]).unwrap().splits;
    assert!(splits("55 48 89 e5 53"));
    assert!(!splits("48 81 ec 28 01 00 00"));
}

#[test]
fn each_part_of_moved_code_stands_for_an_instruction() {
    let steps = |kept, hex: &str| {
        let mut steps = vec![];
        relocate((START, kept, 0), &bytes(hex), &[], &mut vec![], &mut vec![], &mut steps).unwrap();
        steps.iter().map(|s| (s.at, s.original, s.pushed)).collect::<Vec<_>>()
    };
    // push rbx, which stays; mov rbx, rdi; test rdi, rdi; back
    assert_eq!(
        steps(1, "53 48 89 fb 48 85 ff"),
        [(0, START, false), (1, START + 1, false), (4, START + 4, false), (7, START + 7, false)]
    );
    // nop, which is left out; je; mov eax, [rdi]; nop
    assert_eq!(steps(0, "90 74 10 8b 07"), [(0, START + 1, false), (6, START + 3, false), (8, START + 5, false)]);
    // sub rsp, 8; call [rdi]: a push, and a jmp with the stack pointer lower
    let called = steps(0, "48 83 ec 08 ff 17");
    assert_eq!(called, [(0, START, false), (4, START + 4, false), (10, START + 4, true)]);
}
