//! Unwinding through stubs: the stand-ins for `_Unwind_Find_FDE` and `_Unwind_Backtrace` of libgcc.
//!
//! A pc in a moved beginning has the description of the original. A pc in a stub gets a description of its own, made for the frame that is
//! being unwound, in the thread's memory: a CIE and an FDE that say where the CFA is, and what the return address is. So does one behind the
//! push of a moved call, whose caller is the call itself. The pc may be that of any instruction: an asynchronous cancellation unwinds from
//! there.
//!
//! - The caller's CFA is the stub's too. libgcc compares CFAs to find a frame again, and counts a signal frame's as one less: so stubs are
//!   signal frames (augmentation `S`). For the caller of a signal frame, libgcc does not subtract 1 from the return address: the description
//!   does.
//! - Stubs have a personality routine: in the second phase, which leaves the frame for good, it ends the function's call.
//! - libgcc passes the address of `bases` in its context, behind the CFA and the return address of the frame below. They say
//!   which entry of the shadow stack it is. Where they do not fit, because another unwinder calls, the entry is found by an expression, which
//!   goes down from the top to the last entry whose slot is not above the CFA.

use crate::areas;
use crate::dwarf::{DEF_CFA, RA, RSP, VAL_EXPRESSION, Writer, op};
use crate::memory::{load, store};
use crate::originals::original;
use crate::shadow;
use crate::thread::{ENTRY, Local, local};
use crate::{kernel, permits};
use abi::message::Hook;
use abi::stub::Layout;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// struct dwarf_eh_bases of libgcc.
#[repr(C)]
pub struct Bases {
    text: u64,
    data: u64,
    function: u64,
}

/// Descriptions that a thread has, one after the other: a handler may unwind while the code that it has interrupted does.
const DESCRIPTIONS: u32 = 16;
const SIZE: usize = 256;

/// `_Unwind_Find_FDE(pc, bases)`.
///
/// # Safety
/// As of libgcc's, which passes bases that are in its own frame.
pub unsafe extern "C" fn find(pc: u64, bases: *mut Bases) -> u64 {
    let Some(frame) = frame_at(pc) else {
        let original = original(Hook::FindFde);
        // SAFETY: the plan has put a relocated `_Unwind_Find_FDE` there.
        let original: extern "C" fn(u64, *mut Bases) -> u64 = unsafe { core::mem::transmute(original) };
        let Some(moved) = areas::moved(pc) else { return original(pc, bases) };
        let found = original(moved.original, bases);
        if found != 0 {
            // Tables of a function count from its beginning: that is as far from the pc as it is from the instruction.
            // SAFETY: the caller's own, which the original has just filled in.
            let function = unsafe { &mut (*bases).function };
            *function = pc.wrapping_sub(moved.original.wrapping_sub(*function));
        }
        return found;
    };
    // SAFETY: the caller's own.
    unsafe { bases.write(Bases { text: 0, data: 0, function: pc }) };
    // SAFETY: so says the caller.
    describe(local(), pc, frame, unsafe { known_cfa(pc, bases) })
}

/// The frame of what is not the program's at a pc.
fn frame_at(pc: u64) -> Option<Frame> {
    if let Some(moved) = areas::moved(pc).filter(|m| m.lowered != 0) {
        // A moved call has pushed its return address, and not jumped yet; or the code of a probe runs: the program is at the instruction.
        return Some(Frame { cfa: moved.lowered as u32, returns: Returns::To(moved.original) });
    }
    if let Some((by, _)) = areas::raises_at(pc) {
        // In front of a stub or of a hook: the stack pointer is not yet what it was at the call.
        return Some(Frame { cfa: 8_u32.wrapping_add_signed(by), returns: Returns::ToMemory });
    }
    let (layout, offset) = areas::stub_of(pc)?;
    Some(frame(layout, offset))
}

/// Whether handlers of signals return to an address, which libgcc knows by these bytes where it has no description: `mov rax, 15 ;
/// syscall` (rt_sigreturn).
fn is_restorer(address: u64) -> bool {
    const CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    // A function that does not return may be the last of its mapping.
    permits::records()
        && kernel::is_readable(address)
        && kernel::is_readable(address + 1)
        // SAFETY: it is readable.
        && unsafe { (address as *const [u8; 9]).read() == CODE }
}

/// Words of struct _Unwind_Context of libgcc: 18 registers, the CFA, the return address; later, the flags.
const CONTEXT_CFA: u64 = 18 * 8;
const CONTEXT_RA: u64 = 19 * 8;
const CONTEXT_FLAGS: u64 = 24 * 8;
/// The flag of a context that was reached from a signal frame.
const SIGNAL_FRAME: u64 = 1 << 63;

/// What the program has a backtrace done with: a function and its argument.
struct Walk {
    visit: extern "C" fn(u64, u64) -> u32,
    argument: u64,
    /// The frame of [`backtrace`] itself was left out.
    begun: bool,
    /// The frame before was a stub's.
    behind_stub: bool,
}

/// `_Unwind_Backtrace(visit, argument)`: the program sees its own frames as they would be without stubs.
pub extern "C" fn backtrace(visit: extern "C" fn(u64, u64) -> u32, argument: u64) -> u32 {
    // SAFETY: the plan has put a relocated `_Unwind_Backtrace` there.
    let original: extern "C" fn(extern "C" fn(u64, u64) -> u32, u64) -> u32 =
        unsafe { core::mem::transmute(original(Hook::Backtrace)) };
    let mut walk = Walk { visit, argument, begun: false, behind_stub: false };
    original(visit_own, &raw mut walk as u64)
}

/// Leaves out stubs. What is behind one is no caller of a signal frame, though libgcc has it as one, and its pc is not one less.
extern "C" fn visit_own(context: u64, walk: u64) -> u32 {
    const GO_ON: u32 = 0;
    // SAFETY: `backtrace` has passed it, and waits.
    let walk = unsafe { &mut *(walk as *mut Walk) };
    // SAFETY: libgcc's context is that large, and its own; it reads neither word while it calls.
    unsafe {
        let (pc, flags) = (load(context + CONTEXT_RA), load(context + CONTEXT_FLAGS));
        if !core::mem::replace(&mut walk.begun, true) {
            return GO_ON;
        }
        if let Some(frame) = frame_at(pc) {
            walk.behind_stub = !matches!(frame.returns, Returns::To(_));
            return GO_ON;
        }
        if !core::mem::take(&mut walk.behind_stub) || flags & SIGNAL_FRAME == 0 || is_restorer(pc) {
            return (walk.visit)(context, walk.argument);
        }
        store(context + CONTEXT_RA, pc + 1);
        store(context + CONTEXT_FLAGS, flags & !SIGNAL_FRAME);
        let answer = (walk.visit)(context, walk.argument);
        store(context + CONTEXT_RA, pc);
        store(context + CONTEXT_FLAGS, flags);
        answer
    }
}

/// The personality routine of stubs: what an exception, or the end of a thread, leaves has ended.
extern "C" fn personality(_version: i32, actions: u32, _class: u64, _exception: u64, context: u64) -> u32 {
    const CLEANUP_PHASE: u32 = 2;
    const CONTINUE_UNWIND: u32 = 8;
    // SAFETY: libgcc's context, in which the CFA is that of the frame below. `describe` has checked that it is one.
    let (sp, pc) = unsafe { (load(context + CONTEXT_CFA), load(context + CONTEXT_RA)) };
    let frame = frame_at(pc).filter(|f| actions & CLEANUP_PHASE != 0 && !matches!(f.returns, Returns::To(_)));
    if let Some(frame) = frame {
        shadow::leave_frame(local(), sp.wrapping_add(u64::from(frame.cfa)).wrapping_sub(8));
    }
    CONTINUE_UNWIND
}

/// A frame that is not the program's.
#[derive(Clone, Copy)]
struct Frame {
    /// The CFA is rsp plus this.
    cfa: u32,
    returns: Returns,
}

/// Where the caller goes on.
#[derive(Clone, Copy)]
enum Returns {
    /// The shadow stack has the return address, if the stack has that of a stub.
    ToShadow,
    /// It is below the CFA.
    ToMemory,
    /// At an instruction, which has not been executed.
    To(u64),
}

/// The frame of a stub.
fn frame(layout: &Layout, offset: u32) -> Frame {
    // A return address less 1 is in the call; what counts is behind it.
    let offset = if offset + 1 == layout.returns { layout.returns } else { offset };
    let found = layout.frames.iter().rev().find(|f| f.from <= offset).map_or((0, true), |f| (f.cfa, f.shadow));
    Frame { cfa: found.0, returns: if found.1 { Returns::ToShadow } else { Returns::ToMemory } }
}

/// The CFA of the frame below, which libgcc has before `bases`, then the return address, then a pointer.
///
/// # Safety
/// `bases` is on the stack, with its caller's frame around it.
unsafe fn known_cfa(pc: u64, bases: *mut Bases) -> Option<u64> {
    let bases = bases as u64;
    // SAFETY: so says the caller.
    let (cfa, returns) = unsafe { (load(bases - 24), load(bases - 16)) };
    (returns == pc || returns == pc + 1).then_some(cfa)
}

/// Descriptions for threads that have no memory yet: their first call is about to give it to them.
static SPARE: [AtomicU64; DESCRIPTIONS as usize * SIZE / 8] = [const { AtomicU64::new(0) }; _];
/// Which of those was used last.
static USED: AtomicU32 = AtomicU32::new(0);

/// Room for a description.
fn room(local: &Local) -> *mut u8 {
    let (memory, used) = match local.memory.load(Relaxed) {
        0 => (SPARE.as_ptr() as u64, &USED),
        memory => (memory, &local.frame),
    };
    (memory + u64::from(used.fetch_add(1, Relaxed) % DESCRIPTIONS) * SIZE as u64) as *mut u8
}

/// Writes a CIE and an FDE, and returns the address of the FDE; 0 where it cannot be known where the caller goes on.
fn describe(local: &Local, pc: u64, Frame { cfa, returns }: Frame, known: Option<u64>) -> u64 {
    let place = known.map(|sp| sp.wrapping_add(u64::from(cfa)).wrapping_sub(8));
    let returns = match (returns, place) {
        // The slow code of an exit puts the address back before it goes on in the stub.
        // SAFETY: the frame is being unwound: its return address can be read.
        (Returns::ToShadow, Some(place)) if !areas::is_return(unsafe { load(place) }) => Returns::ToMemory,
        (Returns::ToShadow, Some(place)) => {
            let returned = |address| Returns::To(address - u64::from(!is_restorer(address)));
            shadow::return_address(local, place).map_or(returns, returned)
        }
        _ => returns,
    };
    if matches!(returns, Returns::ToShadow) && local.top.load(Relaxed) == 0 {
        return 0;
    }
    let at = room(local);
    // SAFETY: a description has this many bytes in the thread's memory.
    let mut w = unsafe { Writer::new(at, SIZE) };
    // Length, no CIE pointer, version, augmentation, factors of code and data, return address; pointers are absolute.
    w.put(&[0, 0, 0, 0, 0, 0, 0, 0, 1]);
    if known.is_some() {
        w.put(b"zPRS\0").put(&[1, 0x78, RA, 10, 0]).number(personality as *const () as u64).put(&[0]);
    } else {
        w.put(b"zRS\0").put(&[1, 0x78, RA, 1, 0]);
    }
    w.put(&[DEF_CFA, RSP]);
    let mut rest = cfa;
    while rest >= 0x80 {
        w.put(&[rest as u8 | 0x80]);
        rest >>= 7;
    }
    w.put(&[rest as u8]);
    w.finish(0);
    let fde = w.len;
    w.put(&[0; 4]).put(&((fde + 4) as u32).to_le_bytes()).number(pc).number(1).put(&[0]);
    w.put(&[VAL_EXPRESSION, RA]).expression(|w| match returns {
        Returns::To(address) => {
            w.put(&[op::CONST8U]).number(address);
        }
        Returns::ToMemory => {
            w.put(&[op::LIT0 + 8, op::MINUS, op::DEREF, op::LIT0 + 1, op::MINUS]);
        }
        Returns::ToShadow => {
            let top = &raw const local.top as u64;
            let size = ENTRY as u8;
            w.put(&[op::LIT0 + 8, op::MINUS, op::DUP, op::CONST8U]).number(top).put(&[op::DEREF]);
            // Each round: the entry below; on while its slot is not above the CFA's.
            let round = w.len;
            w.put(&[op::CONST1U, size, op::MINUS, op::DUP, op::DEREF, op::PICK, 2, op::LE]).jump_to(op::BRA, round);
            w.put(&[op::PLUS_UCONST, size + 8, op::DEREF, op::LIT0 + 1, op::MINUS]);
        }
    });
    w.finish(fde);
    at as u64 + fde as u64
}
