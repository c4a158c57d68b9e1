//! Hooked functions: alone, and traced at the same time.

use abi::message::Hook;
use abi::stub::Variant;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};
use patch::link::{Beside, Inside, LinkError, Linked, Places, link};
use patch::{Frame, Function, Module, Plan, Refusal, Segment};

const CODE: u64 = 0x1000;
const AREA: u64 = 0x1_0000;
const AGENT: u64 = 0x7fff_1234_5678;

/// Two functions: push rbp; mov rbp, rsp; push rbx; ret and endbr64 with six nops.
const BYTES: [u8; 32] = [
    0x55, 0x48, 0x89, 0xe5, 0x53, 0x5b, 0x5d, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, //
    0xf3, 0x0f, 0x1e, 0xfa, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
];

fn plan(traced: &[u64]) -> Plan {
    let function = |(i, a): (usize, &u64)| Function { address: *a, size: 11, number: i as u32, refusal: None };
    let functions: Vec<_> = traced.iter().enumerate().map(function).collect();
    let frames = [CODE, CODE + 16].map(|start| Frame { start, len: 11, is_as_called: true });
    Plan::new(&Module {
        segments: &[Segment { address: CODE, bytes: &BYTES }],
        functions: &functions,
        frames: &frames,
        hooks: &[(Hook::Fork, CODE), (Hook::Clone, CODE + 16)],
        ..Module::default()
    })
}

fn linked(plan: &Plan) -> Result<Linked, LinkError> {
    let variant = Variant::Paired;
    link(
        plan,
        &Places { bias: 0, area: AREA, tls: -64, slow: [1; 11], hooks: [AGENT; 32], variant, minimum: 0 },
        |_| Some(9),
        Beside::default(),
    )
}

fn at(linked: &Linked, address: u64) -> Instruction {
    let bytes = &linked.content[(address - AREA) as usize..];
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
}

/// Where a patch leads to, behind what raises the stack pointer if the function's first instruction has lowered it.
fn target(linked: &Linked, patch: u32) -> u64 {
    let patch = &linked.patches[patch as usize];
    let target =
        Decoder::with_ip(64, &patch.new[..5], patch.address, DecoderOptions::NONE).decode().near_branch_target();
    let first = at(linked, target);
    if first.code() == Code::Lea_r64_m && first.op0_register() == Register::RSP { first.next_ip() } else { target }
}

/// It is a jump to the agent.
fn check_thunk(linked: &Linked, address: u64) {
    let jump = at(linked, address);
    assert_eq!((jump.code(), jump.ip_rel_memory_address()), (Code::Jmp_rm64, address + 6));
    assert_eq!(linked.content[(address - AREA) as usize + 6..][..8], AGENT.to_le_bytes());
    assert_eq!(linked.inside(address), Some(Inside::Other));
}

/// Where the patch of a function with these bytes begins, from its first one on; else why it has none.
fn place(bytes: &[u8; 16], stops: &[u64], statics: &[u64]) -> Result<u64, Refusal> {
    let plan = Plan::new(&Module {
        segments: &[Segment { address: CODE, bytes }],
        functions: &[Function { address: CODE, size: 16, number: 0, refusal: None }],
        frames: &[Frame { start: CODE, len: 16, is_as_called: true }],
        stops,
        statics,
        ..Module::default()
    });
    plan.sites.first().map(|site| site.address - CODE).ok_or_else(|| plan.refusals[0].1)
}

/// Where a patch begins is chosen so that a debugger's breakpoint is at its first byte, or not in it.
#[test]
fn a_patch_lies_beside_a_debugger_s_breakpoint() {
    // push r15; push r14; push rbx; mov ebx, edi; nop; …; ret
    const PUSHES: [u8; 16] =
        [0x41, 0x57, 0x41, 0x56, 0x53, 0x89, 0xfb, 0x90, 0x90, 0x90, 0x5b, 0x41, 0x5e, 0x41, 0x5f, 0xc3];
    // push rbp; mov rbp, rsp; push rbx; …; a jump to the push of rbx, or not
    const FRAME: [u8; 16] =
        [0x55, 0x48, 0x89, 0xe5, 0x53, 0x89, 0xfb, 0x90, 0x90, 0x90, 0x5b, 0x5d, 0xc3, 0x90, 0x90, 0x90];
    const JUMPS: [u8; 16] =
        [0x55, 0x48, 0x89, 0xe5, 0x53, 0x89, 0xfb, 0x90, 0x90, 0x90, 0x5b, 0x5d, 0x90, 0x90, 0xeb, 0xf4];
    let patched = |bytes: &[u8; 16], stop: u64| place(bytes, &[CODE - 1, CODE + stop, CODE + 99], &[]);
    assert_eq!([0, 2, 7, 9].map(|stop| patched(&PUSHES, stop)), [Ok(2); 4]);
    assert_eq!([4, 5].map(|stop| patched(&PUSHES, stop)), [Ok(4), Ok(5)], "more of the pushes stay");
    // mov rbx, rdi; …
    let mut other = [0x90; 16];
    other[..3].copy_from_slice(&[0x48, 0x89, 0xfb]);
    assert_eq!([3, 4, 5].map(|stop| patched(&other, stop).is_ok()), [false, false, true]);
    assert_eq!([0, 1, 4, 5].map(|stop| patched(&FRAME, stop)), [Ok(1), Ok(1), Ok(4), Ok(0)]);
    assert_eq!([0, 4].map(|stop| patched(&JUMPS, stop)), [Err(Refusal::JumpInside); 2]);
}

/// Other tools' probes lie in no patch, not at its first byte either, and the first instruction is not replaced for them.
#[test]
fn a_patch_lies_beside_a_static_probe() {
    // push r15; push r14; push rbx; nop; …; ret
    const PUSHES: [u8; 16] =
        [0x41, 0x57, 0x41, 0x56, 0x53, 0x90, 0x90, 0x90, 0x90, 0x90, 0x5b, 0x41, 0x5e, 0x41, 0x5f, 0xc3];
    // inc edi; nop …: its first instruction cannot stay
    let mut other = [0x90; 16];
    other[..2].copy_from_slice(&[0xff, 0xc7]);
    // sub rsp, 0x1128; nop …: its first instruction is longer than a jump
    let mut far = [0x90; 16];
    far[..7].copy_from_slice(&[0x48, 0x81, 0xec, 0x28, 0x11, 0, 0]);
    // nop …: the probe is the first instruction
    let nops = [0x90; 16];
    let patched = |bytes: &[u8; 16], at: u64| place(bytes, &[], &[CODE - 1, CODE + at, CODE + 99]);
    assert_eq!([5, 6, 7].map(|at| patched(&PUSHES, at)), [Ok(6), Ok(7), Ok(2)]);
    assert_eq!([0, 1, 5].map(|at| patched(&nops, at)), [Ok(1), Ok(2), Ok(6)]);
    assert_eq!([2, 5].map(|at| patched(&other, at)), [Err(Refusal::StaticProbe), Ok(0)]);
    assert_eq!([6, 11].map(|at| patched(&far, at)), [Ok(7), Err(Refusal::StaticProbe)]);
}

#[test]
fn hooks_alone() {
    let linked = linked(&plan(&[])).unwrap();
    assert_eq!((linked.stubs, linked.patches.len(), linked.originals.len()), (0, 2, 2));
    check_thunk(&linked, target(&linked, linked.originals[0].patch));
    check_thunk(&linked, target(&linked, linked.originals[1].patch));
    // The first original is moved; the second has only nops to leave out, behind endbr64.
    assert_eq!(linked.inside(linked.originals[0].address), Some(Inside::Beginning(CODE)));
    assert_eq!(linked.patches[1].address, CODE + 20);
    assert_eq!(linked.originals[1].address, CODE + 25);
}

#[test]
fn a_traced_function_is_traced_before_it_is_hooked() {
    let linked = linked(&plan(&[CODE])).unwrap();
    assert_eq!((linked.functions.as_slice(), linked.patches.len()), (&[9][..], 2));
    let fork = linked.originals[0];
    assert_eq!((fork.hook, fork.patch), (Hook::Fork, 0));
    let layout = abi::stub::layout(Variant::Paired);
    assert_eq!(target(&linked, 0), AREA + u64::from(layout.entry));
    let call = at(&linked, AREA + u64::from(layout.returns) - 5);
    assert_eq!(call.code(), Code::Call_rel32_64);
    check_thunk(&linked, call.near_branch_target());
    assert_eq!(linked.inside(fork.address), Some(Inside::Beginning(CODE)));
}

#[test]
fn what_cannot_be_linked() {
    let plan = plan(&[CODE]);
    let places =
        |area, bias| Places { bias, area, tls: 0, slow: [0; 11], hooks: [0; 32], variant: Variant::Paired, minimum: 0 };
    assert_eq!(link(&plan, &places(AREA, 0), |_| Some(0), Beside::default()).unwrap_err(), LinkError::Number(0));
    assert_eq!(
        link(&plan, &places(AREA, 0), |_| Some(1 << 31), Beside::default()).unwrap_err(),
        LinkError::Number(1 << 31)
    );
    assert_eq!(link(&plan, &places(1 << 31, 0), |_| Some(1), Beside::default()).unwrap_err(), LinkError::OutOfReach);
    assert_eq!(link(&plan, &places(AREA, 1 << 32), |_| Some(1), Beside::default()).unwrap_err(), LinkError::OutOfReach);
    assert_eq!(
        link(&plan, &places(u64::MAX - 4095, 0), |_| Some(1), Beside::default()).unwrap_err(),
        LinkError::OutOfReach
    );
    // A hook that the agent does not have is not made.
    assert_eq!(link(&plan, &places(AREA, 0), |_| None, Beside::default()).unwrap().patches, []);
}
