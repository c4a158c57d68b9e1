//! What the interpreter does, one case per thing that generated programs rely on.

use super::*;
use crate::Helper::*;
use crate::Reg::*;
use crate::{Alu, Assembler, Atomic, Cond, Reg, Size};

const FD: i32 = 5;

fn program(f: impl FnOnce(&mut Assembler)) -> Program {
    let mut a = Assembler::new();
    f(&mut a);
    a.exit();
    a.finish().unwrap()
}
fn run(m: &mut Machine, f: impl FnOnce(&mut Assembler)) -> Result<u64, Fault> {
    m.run(&program(f), &[])
}
fn fault(m: &mut Machine, f: impl FnOnce(&mut Assembler)) -> (usize, Cause) {
    let fault = run(m, f).unwrap_err();
    (fault.pc, fault.cause)
}
/// `dst = r10 + off`
fn frame(a: &mut Assembler, dst: Reg, off: i32) {
    a.mov(dst, R10);
    a.alu(Alu::Add, dst, off);
}

#[test]
fn context_and_stack() {
    let p = program(|a| {
        a.load(Size::D, R2, R1, 8);
        a.store(Size::D, R10, -8, R2);
        a.load(Size::W, R0, R10, -8);
    });
    assert_eq!(Machine::new().run_words(&p, &[1, 0x1_0000_0002]), Ok(2));
}

#[test]
fn what_is_not_there_is_a_fault() {
    let m = &mut Machine::new();
    assert_eq!(fault(m, |_| ()), (0, Cause::Uninitialised(0)));
    assert!(matches!(fault(m, |a| a.load(Size::B, R0, R1, 0)), (0, Cause::Memory { write: false, .. })));
    assert!(matches!(fault(m, |a| a.store(Size::B, R10, 0, 1)), (0, Cause::Memory { write: true, .. })));
    assert!(matches!(fault(m, |a| a.store(Size::D, R10, -520, 1)), (0, Cause::Memory { .. })));
    assert!(matches!(fault(m, |a| a.store(Size::D, R10, -12, 1)), (0, Cause::Unaligned(_))));
    assert!(matches!(fault(m, |a| a.load(Size::D, R0, R10, -8)), (0, Cause::StackUnwritten(_))));
    let (lost, why) = fault(m, |a| {
        a.call(KtimeGetNs);
        a.mov(R0, R1);
    });
    assert_eq!((lost, why), (1, Cause::Uninitialised(1)));
    assert_eq!(fault(m, |a| a.call(GetFuncIp)), (0, Cause::Helper(173)));
    assert_eq!(fault(m, |a| a.map_fd(R1, 9)), (0, Cause::NoMap(9)));
    assert_eq!(fault(m, |a| a.call_kfunc(7)), (0, Cause::Kfunc(7)));
}

#[test]
fn endless_programs_end() {
    let m = &mut Machine::new();
    let endless = |a: &mut Assembler| {
        a.mov(R0, 0);
        let again = a.here();
        a.jump_if(Cond::Eq, R0, 0, again);
    };
    assert_eq!(fault(m, endless), (1, Cause::Limit));
    let p = program(|a| {
        let out = a.new_label();
        a.mov(R0, 0);
        let again = a.here();
        a.may_goto(out);
        a.alu(Alu::Add, R0, 1);
        a.jump(again);
        a.bind(out);
    });
    m.loop_budget = 10;
    assert_eq!(m.run(&p, &[]), Ok(10));
}

#[test]
fn objects_behind_pointers() {
    let m = &mut Machine::new();
    let typed = m.add_kernel(&7u64.to_le_bytes(), Access::ReadOnly);
    let untyped = m.add_kernel(&8u64.to_le_bytes(), Access::Probe);
    let load = program(|a| {
        a.load(Size::D, R2, R1, 0);
        a.load(Size::D, R0, R2, 0);
    });
    assert_eq!(m.run_words(&load, &[typed]), Ok(7));
    assert!(matches!(m.run_words(&load, &[untyped]).unwrap_err().cause, Cause::Memory { .. }));
    let probe = program(|a| {
        a.load(Size::D, R3, R1, 0);
        a.mov(R2, 8);
        frame(a, R1, -8);
        a.call(ProbeReadKernel);
        a.load(Size::D, R0, R10, -8);
    });
    assert_eq!(m.run_words(&probe, &[untyped]), Ok(8));
    assert_eq!(m.run_words(&probe, &[typed + 1]), Ok(0));
}

fn user_read(helper: crate::Helper, address: u64, len: i32) -> Program {
    program(|a| {
        a.store(Size::D, R10, -8, 0x7777_7777);
        frame(a, R1, -8);
        a.mov(R2, len);
        a.imm64(R3, address);
        a.call(helper);
        a.load(Size::W, R1, R10, -8);
        a.alu(Alu::Lsh, R0, 32);
        a.alu(Alu::Or, R0, R1);
    })
}

#[test]
fn user_memory() {
    let m = &mut Machine::new();
    m.add_user(0x1000, b"ab\0");
    let at = |m: &mut Machine, helper, address, len| {
        let r = m.run(&user_read(helper, address, len), &[]).unwrap();
        ((r as i64) >> 32, (r as u32).to_le_bytes())
    };
    assert_eq!(at(m, ProbeReadUser, 0x1000, 2), (0, *b"abww"));
    assert_eq!(at(m, ProbeReadUser, 0x1001, 4), (-14, [0; 4]));
    assert_eq!(at(m, ProbeReadUserStr, 0x1000, 8), (3, *b"ab\0w"));
    assert_eq!(at(m, ProbeReadUserStr, 0x1000, 2), (2, *b"a\0ww"));
    assert_eq!(at(m, ProbeReadUserStr, 0x0fff, 4), (-14, [0; 4]));
    assert_eq!(at(m, ProbeReadUserStr, 0x1000, 0), (0, *b"wwww"));
    assert_eq!(at(m, ProbeReadKernel, 0x1000, 2), (-14, *b"\0\0ww"));
    assert_eq!(at(m, ProbeRead, 0x1000, 2), (0, *b"abww"));
}

#[test]
fn arrays_and_hashes() {
    let m = &mut Machine::new();
    m.add_array(FD, 16, 1);
    m.add_hash(6, 4, 8, 2);
    let count = program(|a| {
        a.map_value(R1, FD, 8);
        a.mov(R2, 5);
        a.atomic(Atomic::FetchAdd, Size::D, R1, 0, R2);
        a.mov(R0, R2);
    });
    assert_eq!((m.run(&count, &[]), m.run(&count, &[])), (Ok(0), Ok(5)));
    assert_eq!(m.value(FD, &[0; 4]).unwrap()[8], 10);
    let put = |key: i32, flags: i32| {
        program(|a| {
            a.store(Size::W, R10, -4, key);
            a.store(Size::D, R10, -16, 42);
            a.map_fd(R1, 6);
            frame(a, R2, -4);
            frame(a, R3, -16);
            a.mov(R4, flags);
            a.call(MapUpdate);
        })
    };
    let put = |m: &mut Machine, key, flags| m.run(&put(key, flags), &[]).unwrap() as i64;
    assert_eq!([put(m, 1, 0), put(m, 1, 1), put(m, 2, 2), put(m, 2, 0), put(m, 3, 0)], [0, -17, -2, 0, -7]);
    let find = program(|a| {
        let out = a.new_label();
        a.store(Size::W, R10, -4, 2);
        a.map_fd(R1, 6);
        frame(a, R2, -4);
        a.call(MapLookup);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.load(Size::D, R0, R0, 0);
        a.bind(out);
    });
    assert_eq!(m.run(&find, &[]), Ok(42));
    assert!(m.set_value(6, &2u32.to_le_bytes(), &7u64.to_le_bytes()));
    assert_eq!(m.run(&find, &[]), Ok(7));
    assert!(!m.set_value(6, &[0; 3], &[0; 8]));
}

fn emit_record(a: &mut Assembler) {
    let full = a.new_label();
    a.map_fd(R1, FD);
    a.mov(R2, 16);
    a.mov(R3, 0);
    a.call(RingbufReserve);
    a.jump_if(Cond::Eq, R0, 0, full);
    a.mov(R6, R0);
    a.call(KtimeGetNs);
    a.store(Size::D, R6, 0, R0);
    a.mov(R1, R6);
    a.mov(R2, 1);
    a.call(RingbufSubmit);
    a.bind(full);
    a.mov(R0, 0);
}

#[test]
fn a_ring_fills_and_drains() {
    let m = &mut Machine { time: 100, ..Machine::new() };
    m.add_ring(FD, 64);
    let p = program(emit_record);
    for _ in 0..3 {
        m.run(&p, &[]).unwrap();
    }
    // 24 bytes each, of at most 63: as in the kernel, two fit.
    assert_eq!((m.records(FD).len(), m.dropped(FD)), (2, 1));
    let records = m.drain(FD);
    assert_eq!(records[1][..8], 101u64.to_le_bytes());
    assert_eq!(records[1][8..], [0xa5; 8], "bytes never written are what the ring held before");
    m.run(&p, &[]).unwrap();
    assert_eq!(m.records(FD).len(), 1);
}

#[test]
fn ring_records_are_released_once() {
    let m = &mut Machine::new();
    m.add_ring(FD, 4096);
    let reserve = |a: &mut Assembler| {
        a.map_fd(R1, FD);
        a.mov(R2, 16);
        a.mov(R3, 0);
        a.call(RingbufReserve);
        a.mov(R6, R0);
    };
    assert_eq!(run(m, reserve).unwrap_err().cause, Cause::Unreleased(1));
    let late = run(m, |a| {
        reserve(a);
        a.mov(R1, R6);
        a.mov(R2, 0);
        a.call(RingbufDiscard);
        a.store(Size::B, R6, 0, 0);
    });
    assert!(matches!(late.unwrap_err().cause, Cause::Memory { write: true, .. }));
    assert!(m.records(FD).is_empty());
}

#[test]
fn task_storage_is_by_task() {
    let m = &mut Machine::new();
    m.add_task_storage(FD, 8);
    let get = |flags: i32| {
        program(|a| {
            let out = a.new_label();
            a.call(GetCurrentTaskBtf);
            a.map_fd(R1, FD);
            a.mov(R2, R0);
            a.mov(R3, 0);
            a.mov(R4, flags);
            a.call(TaskStorageGet);
            a.jump_if(Cond::Eq, R0, 0, out);
            a.mov(R1, 1);
            a.atomic(Atomic::FetchAdd, Size::D, R0, 0, R1);
            a.mov(R0, R1);
            a.alu(Alu::Add, R0, 100);
            a.bind(out);
        })
    };
    let (find, make) = (get(0), get(1));
    let go = |m: &mut Machine, p| m.run(p, &[]).unwrap();
    assert_eq!((go(m, &find), go(m, &make), go(m, &find)), (0, 100, 101));
    m.task = m.add_kernel(&[], Access::ReadOnly);
    assert_eq!(go(m, &find), 0);
    assert_eq!(m.keys(FD).len(), 1);
}

#[test]
fn functions_and_callbacks() {
    let m = &mut Machine::new();
    let mut a = Assembler::new();
    let (add, each) = (a.new_label(), a.new_label());
    a.store(Size::D, R10, -8, 0);
    a.mov(R6, 1000);
    a.mov(R1, 4);
    a.func(R2, each);
    frame(&mut a, R3, -8);
    a.mov(R4, 0);
    a.call(Loop);
    a.mov(R1, R0);
    a.load(Size::D, R2, R10, -8);
    a.call_local(add);
    a.alu(Alu::Add, R0, R6);
    a.exit();
    a.bind(add);
    a.mov(R0, R1);
    a.alu(Alu::Add, R0, R2);
    a.mov(R6, 0);
    a.exit();
    a.bind(each);
    a.atomic(Atomic::Add, Size::D, R2, 0, R1);
    a.mov(R0, 0);
    a.exit();
    // 4 iterations, 0 + 1 + 2 + 3, and R6, which calls leave alone.
    assert_eq!(m.run(&a.finish().unwrap(), &[]), Ok(1010));
    let deep = |a: &mut Assembler| {
        let f = a.new_label();
        a.call_local(f);
        a.exit();
        a.bind(f);
        a.call_local(f);
    };
    assert_eq!(run(m, deep).unwrap_err().cause, Cause::Depth);
}

#[test]
fn who_and_where() {
    let m = &mut Machine::new();
    m.comm[..3].copy_from_slice(b"cat");
    m.pid_ns = Some(PidNs { dev: 4, ino: 99, tid: 7, tgid: 6 });
    m.user_stack = vec![0x10, 0x20];
    let comm = |a: &mut Assembler| {
        frame(a, R1, -16);
        a.mov(R2, 16);
        a.call(GetCurrentComm);
        a.load(Size::W, R0, R10, -16);
    };
    assert_eq!(run(m, comm), Ok(0x0074_6163));
    let ids = |ino: i32| {
        move |a: &mut Assembler| {
            a.mov(R1, 4);
            a.mov(R2, ino);
            frame(a, R3, -8);
            a.mov(R4, 8);
            a.call(GetNsCurrentPidTgid);
            a.load(Size::D, R1, R10, -8);
            a.alu(Alu::Add, R0, R1);
        }
    };
    assert_eq!(run(m, ids(99)), Ok(6 << 32 | 7));
    assert_eq!(run(m, ids(98)), Ok(-22i64 as u64));
    let stack = |a: &mut Assembler| {
        frame(a, R2, -24);
        a.mov(R3, 24);
        a.mov(R4, 1 << 8 | 1);
        a.call(GetStack);
        a.load(Size::D, R1, R10, -24);
        a.alu(Alu::Add, R0, R1);
    };
    assert_eq!(run(m, stack), Ok(8 + 0x20));
}
