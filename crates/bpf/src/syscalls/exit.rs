//! `sys_exit`: the end of a call.

use super::{call, descriptors, filters, no_entry, signals, tasks, unseen};
use crate::asm::Label;
use crate::btf_offsets::BtfOffsets;
use crate::capture_row;
use crate::frame::registers::{AX, ENOSYS};
use crate::frame::{At, Emitter, Generated, Lost, Maps, Session, Source, field, held, program, slot, state};
use crate::insn::{Alu, Cond, Reg::*, Size};

/// With the result of a call in r2: leaves a call open that has none because its thread is about to die (exit_group, a fatal signal,
/// another thread's execve); the end of the task shows it. Goes to `cut` where the call was interrupted, to `out` where it was not
/// carried out at all, so that no program has seen its entry.
fn cut_off(e: &mut Emitter<'_>, cut: Label, out: Label) {
    let [refused, goes_on] = std::array::from_fn(|_| e.new_label());
    e.jump_if(Cond::Eq, R2, -ENOSYS, refused);
    e.jump_if(Cond::Sgt, R2, -512, goes_on);
    e.jump_if(Cond::Slt, R2, -516, goes_on);
    // The thread that is given the signal which ends them all returns first.
    e.load_state(R1, state::HELD);
    e.jump_if(Cond::Eq, R1, held::FATAL, goes_on);
    about_to_die(e, cut);
    e.jump(goes_on);
    e.bind(refused);
    if !e.session.no_entry {
        e.load_state(R1, state::FLAGS);
        e.alu(Alu::And, R1, state::ATTACHED);
        e.jump_if(Cond::Eq, R1, 0, goes_on);
    }
    about_to_die(e, out);
    e.bind(goes_on);
}

/// Goes to `dies` where all threads of the process are to end, or all others.
fn about_to_die(e: &mut Emitter<'_>, dies: Label) {
    const SIGNAL_GROUP_EXIT: i32 = 4; // include/linux/sched/signal.h
    let offsets = e.offsets;
    e.task(R0);
    e.follow(R9, R0, offsets.task_signal);
    e.follow(R2, R9, offsets.signal_flags);
    e.alu(Alu::And, R2, SIGNAL_GROUP_EXIT);
    e.jump_if(Cond::Ne, R2, 0, dies);
    e.follow(R2, R9, offsets.signal_exec);
    e.jump_if(Cond::Ne, R2, 0, dies);
}

/// What the entry of the call has stored, or what the registers say; r2 = its result, which is stored too. `out` where it is none.
fn with_entry(e: &mut Emitter<'_>, source: Source, out: Label) {
    let seen = e.new_label();
    e.load_state(R1, state::FLAGS);
    e.mov(R2, R1);
    e.alu(Alu::And, R2, state::IN_CALL | state::STARTING);
    e.jump_if(Cond::Eq, R2, state::IN_CALL, seen);
    unseen::returns(e, source, out);
    e.bind(seen);
    e.load_slot(R2, slot::CTX);
    match source {
        Source::All if e.offsets.end_has_two => e.load_slot(R2, slot::RET),
        Source::All => e.follow(R2, R2, AX),
        Source::Single(_) => e.load(Size::D, R2, R2, 16),
    }
    e.store_state(state::RET, R2);
}

/// The program for `sys_exit`, of sessions without programs at entry alone (tp_btf, or the tracepoints of single calls). Else, from
/// [`Source::All`] (raw tracepoint; context: pt_regs) it is also that of
/// [`tasks::exit`] (context: task), because it is the longest: the verifier then reads it once. Its context is the current
/// task at the end of that.
pub fn sys_exit(maps: &Maps, offsets: &BtfOffsets, session: &Session, source: Source) -> Generated {
    program(maps, offsets, session, |e, out| {
        let [event, told, raw_call, ending, ended, returned, lost, cut] = std::array::from_fn(|_| e.new_label());
        let alone = source != Source::All || session.no_entry;
        let shared = (!alone).then(|| signals::Shared { show: e.new_label(), shown: e.new_label() });
        let call_ends = e.new_label();
        if alone {
            e.store_slot(slot::CTX, R1);
        } else {
            if offsets.end_has_two {
                e.load(Size::D, R3, R1, 8);
                e.store_slot(slot::RET, R3);
            }
            e.load(Size::D, R2, R1, 0);
            e.store_slot(slot::CTX, R2);
        }
        e.state_of_call(At::Exit, source, call_ends);
        if !alone {
            e.task(R0);
            e.load_slot(R2, slot::CTX);
            e.jump_if(Cond::Eq, R0, R2, ending);
            if maps.slots.is_some() {
                e.forget_task();
            }
        }
        e.bind(call_ends);
        e.leave_out(out);
        if session.no_entry {
            no_entry::returns(e, source, out);
        } else {
            with_entry(e, source, out);
        }
        e.store_slot(slot::RET, R2);
        cut_off(e, if session.no_entry { cut } else { out }, out);
        e.load_state(R1, state::FLAGS);
        if !session.no_entry {
            e.mov(R3, R1);
            e.alu(Alu::And, R3, !(state::IN_CALL | state::REJECTED));
            e.store_state(state::FLAGS, R3);
        }
        if session.hidden.is_some() && source == Source::All {
            let shown = e.new_label();
            e.mov(R3, R1);
            e.alu(Alu::And, R3, state::ON_BEHALF);
            e.jump_if(Cond::Eq, R3, 0, shown);
            e.load_slot(R3, slot::RET);
            e.jump_if(Cond::Ne, R3, 0, returned);
            e.bind(shown);
        }
        if filters::decide_at_entry(e) {
            e.jump_if(Cond::Set, R1, state::REJECTED, returned);
        }
        if !session.no_entry {
            e.jump_if(Cond::Set, R1, state::ENTRY_LOST, lost);
        }
        e.alu(Alu::And, R1, state::COMPAT);
        e.jump_if(Cond::Ne, R1, 0, raw_call);
        e.load_state(R1, state::NR);
        e.row(raw_call);
        e.load_row(Size::H, R1, capture_row::FLAGS);
        e.mov(R2, R1);
        e.alu(Alu::And, R1, i32::from(capture_row::NO_ROW));
        e.jump_if(Cond::Ne, R1, 0, raw_call);
        e.alu(Alu::And, R2, i32::from(capture_row::WANTED));
        e.jump_if(Cond::Eq, R2, 0, returned);
        e.claimed_or(out, |e| {
            e.load_row(Size::H, R3, capture_row::ID);
            e.count_lost(Lost::InR3);
            e.jump(out);
        });
        if offsets.names.is_some() {
            descriptors::made(e);
        }
        e.call_is_held_back(told);
        filters::before(e, filters::Outcome::Returned, told);
        e.set_ended(false);
        e.load_slot(R1, slot::RET);
        e.set_result();
        e.bind(event);
        call::call_event(e);
        if !alone {
            e.get_ended(R1);
            e.jump_if(Cond::Ne, R1, 0, ended);
        }
        e.bind(told);
        if offsets.names.is_some() {
            descriptors::changed(e);
        }
        e.jump(returned);
        if !alone {
            e.bind(ending);
            e.gives_slot_back();
            e.leave_out(out);
            tasks::reached_its_end(e, out);
            call::unfinished(e, event, ended, out);
            e.bind(ended);
            tasks::end(e, shared, out);
            e.jump(out);
        }
        e.bind(raw_call);
        if session.unknown && source == Source::All {
            e.claimed(Lost::Class(events::generated::C_RAW.id), out);
            e.raw_is_held_back(returned);
            call::raw_event(e, |e| e.load_slot(R3, slot::CTX));
            e.load_event(Size::H, R1, field::CAP);
            call::attached_bit(e);
            e.store_event(Size::H, field::CAP, R1);
            e.output();
        }
        e.jump(returned);
        if session.no_entry {
            e.bind(cut);
            e.find(out);
            no_entry::count_unreturned(e, out);
        }
        e.bind(lost);
        e.find(out);
        call::entry_lost(e, out);
        e.bind(returned);
        signals::after_call(e, shared, out);
    })
}
