//! `sys_enter`: number, arguments and start of a call, and what is read of it before it runs.

use super::{call, filters, ops};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::capture_row::{self, SHORT_CALL};
use crate::frame::registers::{ARG_REGISTERS, IP, TS_COMPAT};
use crate::frame::{At, Emitter, Generated, Maps, Session, Source, program, reg, slot, state};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use std::ops::Range;

/// Stores arguments from the registers, with their address in r3. Each load checks the address: 2 ns.
fn store(e: &mut Emitter<'_>, which: Range<usize>) {
    for i in which {
        e.load(Size::D, R4, R3, ARG_REGISTERS[i]);
        e.store_state(state::ARGS + 8 * i as i16, R4);
    }
}

/// Stores the arguments that a call has which is not short.
fn others(e: &mut Emitter<'_>) {
    e.load_slot(R3, slot::CTX);
    e.load(Size::D, R3, R3, 0);
    store(e, SHORT_CALL..ARG_REGISTERS.len());
}

/// Number and first arguments from the registers, with the context in r2; where a filter is evaluated, all arguments.
fn arguments(e: &mut Emitter<'_>) {
    let no_frame = e.new_label();
    e.load(Size::D, R1, R2, 8);
    e.store_state(state::NR, R1);
    e.load(Size::D, R3, R2, 0);
    store(e, 0..SHORT_CALL);
    if filters::decide_at_entry(e) {
        store(e, SHORT_CALL..ARG_REGISTERS.len());
    }
    // rt_sigreturn's mask is in the signal frame: see the ptrace backend's SIGFRAME_MASK.
    e.jump_if(Cond::Ne, R1, 15, no_frame);
    e.load(Size::D, R4, R3, 152);
    e.alu(Alu::Add, R4, 296);
    e.store_state(state::ARGS, R4);
    e.bind(no_frame);
}

/// Ends without an event for a call of hidden code, with the context in r2 and flags in r1. What is changed: r1, which gets a flag for an
/// execve, r3, r4.
fn hide(e: &mut Emitter<'_>, source: Source, out: Label) {
    const EXECVE: i32 = 59;
    const EXECVEAT: i32 = 322;
    let Some(upper) = e.session.hidden.filter(|_| source == Source::All) else { return };
    let [shown, on_behalf] = [e.new_label(), e.new_label()];
    e.note("calls of hidden code");
    e.load(Size::D, R3, R2, 0);
    e.load(Size::D, R4, R3, IP);
    e.alu(Alu::Rsh, R4, 32);
    e.jump_if(Cond::Ne, R4, upper as i32, shown);
    e.load(Size::D, R3, R2, 8);
    e.jump_if(Cond::Eq, R3, EXECVE, on_behalf);
    e.jump_if(Cond::Ne, R3, EXECVEAT, out);
    e.bind(on_behalf);
    e.alu(Alu::Or, R1, state::ON_BEHALF);
    e.bind(shown);
}

/// The program for `sys_enter` (tp_btf; context: pt_regs, number).
pub fn sys_enter(maps: &Maps, offsets: &BtfOffsets, session: &Session, source: Source) -> Generated {
    program(maps, offsets, session, |e, out| {
        let native = e.new_label();
        let traced = e.new_label();
        e.store_slot(slot::CTX, R1);
        e.state_of_call(At::Enter, source, traced);
        e.bind(traced);
        e.leave_out(out);
        e.task(R0);
        e.load(Size::W, R2, R0, offsets.thread_status);
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::STARTING);
        e.alu(Alu::Or, R1, state::IN_CALL);
        e.alu(Alu::And, R2, TS_COMPAT);
        e.jump_if(Cond::Eq, R2, 0, native);
        e.alu(Alu::Or, R1, state::COMPAT);
        e.bind(native);
        e.load_slot(R2, slot::CTX);
        hide(e, source, out);
        e.store_state(state::FLAGS, R1);
        e.note("number, arguments, start");
        match source {
            Source::All => arguments(e),
            Source::Single(n) => {
                e.load(Size::W, R1, R2, 8);
                e.store_state(state::NR, R1);
                for i in 0..i16::from(n.min(6)) {
                    e.load(Size::D, R4, R2, 16 + 8 * i);
                    e.store_state(state::ARGS + 8 * i, R4);
                }
            }
        }
        e.store_state(state::LEN, 0);
        e.store_state(state::CAPS, 0);
        filters::at_entry(e, out);
        e.call(Helper::GetSmpProcessorId);
        e.store_state(state::CPU, R0);
        e.call(Helper::KtimeGetNs);
        e.store_state(state::START, R0);
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::COMPAT);
        e.jump_if(Cond::Ne, R1, 0, out);
        let no_row = e.new_label();
        e.load_state(R1, state::NR);
        e.row(no_row);
        if source == Source::All && !filters::decide_at_entry(e) {
            let short = e.new_label();
            e.load_row(Size::H, R1, capture_row::FLAGS);
            e.jump_if(Cond::Set, R1, i32::from(capture_row::SHORT), short);
            others(e);
            e.bind(short);
        }
        e.load_row(Size::H, R1, capture_row::FLAGS);
        e.alu(Alu::And, R1, i32::from(capture_row::AT_ENTRY | capture_row::WANTED));
        e.not_read();
        e.jump_if(Cond::Ne, R1, i32::from(capture_row::AT_ENTRY | capture_row::WANTED), out);
        e.note("tails of entry");
        e.claimed_or(out, |e| {
            e.load_state(R1, state::FLAGS);
            e.alu(Alu::Or, R1, state::ENTRY_LOST);
            e.store_state(state::FLAGS, R1);
            e.jump(out);
        });
        call::stacks_at_entry(e);
        e.mov(reg::END, 0);
        e.mov(R1, 0);
        e.set_caps(R1);
        e.store_slot(slot::RET, 0);
        e.mov(R1, 0);
        e.set_result();
        e.mov(R1, 0);
        e.load_row(Size::B, R2, capture_row::N_IN);
        ops::choose(e);
        ops::run(e, ops::Nested::Strings, out);
        e.jump_if(Cond::Gt, reg::END, state::ROOM, out);
        e.jump_if(Cond::Eq, reg::END, 0, out);
        e.home(out);
        e.mov(R1, R0);
        e.alu(Alu::Add, R1, i32::from(state::TAILS));
        e.mov(R2, reg::END);
        e.mov(R3, reg::BUFFER);
        e.call(Helper::ProbeReadKernel);
        e.store_state(state::LEN, reg::END);
        e.get_caps(R1);
        e.store_state(state::CAPS, R1);
        e.jump(out);
        e.bind(no_row);
        if source == Source::All {
            others(e);
        }
    })
}
