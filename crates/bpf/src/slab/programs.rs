//! The programs.

use super::{Bytes, FRAMES, Maps, Offsets, Place, Turn, Which, counter, record, state, value};
use crate::asm::{AsmError, Assembler, Label};
use crate::helper::Helper;
use crate::insn::{Alu, Atomic, Cond, Reg, Reg::*, Size};
use crate::program::Program;

/// Frames that belong to the program and to what has called it, at least: the program itself and bpf_trace_run.
const OWN_FRAMES: i32 = 2;

/// The stack of a program.
pub(super) mod slot {
    use super::value;
    /// Key of the objects: u64.
    pub const KEY: i16 = -8;
    /// The value of an object.
    pub const VALUE: i16 = KEY - value::BYTES as i16;
    /// A name that is compared.
    pub const NAME: i16 = VALUE - NAME_BYTES as i16;
    pub const NAME_BYTES: usize = 72;
}

/// The longest name that [`Which::Named`] finds.
pub const MAX_NAME: usize = slot::NAME_BYTES - 2;

fn argument(number: u8) -> i16 {
    8 * i16::from(number)
}

/// The program at an allocation.
///
/// # Errors
/// The program breaks a rule, which is a mistake here.
pub fn allocated(maps: &Maps, offsets: &Offsets, place: &Place, size: Bytes, turn: Turn) -> Result<Program, AsmError> {
    let mut a = Assembler::new();
    let out = a.new_label();
    a.mov(R6, R1);
    which(&mut a, maps, offsets, place, out);
    a.note("recording?");
    a.map_value(R1, maps.state, state::RUNNING as u32);
    a.load(Size::D, R1, R1, 0);
    a.jump_if(Cond::Eq, R1, 0, out);
    a.load(Size::D, R8, R6, argument(place.object));
    a.jump_if(Cond::Eq, R8, 0, out);
    taken(&mut a, maps, turn, out);
    table(&mut a, maps, out);
    if turn == Turn::Second {
        a.store(Size::D, R10, slot::KEY, R8);
        entry(&mut a);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Ne, R0, 0, out);
    }
    describe(&mut a, offsets, place, size);
    store(&mut a);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

/// The program at a release, in both turns: an object that is gone cannot go again.
///
/// # Errors
/// The program breaks a rule, which is a mistake here.
pub fn released(maps: &Maps, offsets: &Offsets, place: &Place) -> Result<Program, AsmError> {
    let mut a = Assembler::new();
    let out = a.new_label();
    a.mov(R6, R1);
    which(&mut a, maps, offsets, place, out);
    a.load(Size::D, R8, R6, argument(place.object));
    a.jump_if(Cond::Eq, R8, 0, out);
    table(&mut a, maps, out);
    a.store(Size::D, R10, slot::KEY, R8);
    // A lookup takes no lock, and much of what passes here is not in the table.
    entry(&mut a);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.note("the object goes");
    entry(&mut a);
    a.call(Helper::MapDelete);
    const ENOENT: i32 = -2;
    a.jump_if32(Cond::Eq, R0, 0, out);
    a.jump_if32(Cond::Eq, R0, ENOENT, out);
    a.mov(R7, counter::KEPT as i32);
    count(&mut a, out);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

/// The program for `bpf_iter_kmem_cache` (context: meta, cache; Linux 6.13), which writes a record for each cache.
///
/// # Errors
/// The program breaks a rule, which is a mistake here.
pub fn listed(offsets: &Offsets) -> Result<Program, AsmError> {
    const RECORD: i16 = -(record::BYTES as i16);
    const POINTER: i16 = RECORD - 8;
    let mut a = Assembler::new();
    let out = a.new_label();
    a.load(Size::D, R7, R1, 8);
    a.load(Size::D, R6, R1, 0);
    a.load(Size::D, R6, R6, 0);
    a.note("no cache: the end");
    a.jump_if(Cond::Eq, R7, 0, out);
    for word in 0..record::BYTES / 8 {
        a.store(Size::D, R10, RECORD + 8 * word as i16, 0);
    }
    a.store(Size::D, R10, RECORD + record::ADDRESS as i16, R7);
    let read = |a: &mut Assembler, to: i16, bytes: i32, offset: i16| {
        a.mov(R1, R10);
        a.alu(Alu::Add, R1, i32::from(to));
        a.mov(R2, bytes);
        a.mov(R3, R7);
        a.alu(Alu::Add, R3, i32::from(offset));
        a.call(Helper::ProbeReadKernel);
    };
    read(&mut a, RECORD + record::SIZE as i16, 4, offsets.cache_size);
    read(&mut a, RECORD + record::OBJECT_SIZE as i16, 4, offsets.cache_object_size);
    read(&mut a, POINTER, 8, offsets.cache_name);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(RECORD) + record::NAME as i32);
    a.mov(R2, (record::BYTES - record::NAME) as i32);
    a.load(Size::D, R3, R10, POINTER);
    a.call(Helper::ProbeReadKernelStr);
    a.mov(R1, R6);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(RECORD));
    a.mov(R3, record::BYTES as i32);
    a.call(Helper::SeqWrite);
    a.bind(out);
    a.mov(R0, 0);
    a.exit();
    a.finish()
}

/// Goes on where the object is one of the cache.
fn which(a: &mut Assembler, maps: &Maps, offsets: &Offsets, place: &Place, out: Label) {
    match &place.which {
        Which::Known { arg } => {
            a.note("this cache?");
            a.load(Size::D, R1, R6, argument(*arg));
            a.jump_if(Cond::Eq, R1, 0, out);
            a.map_value(R2, maps.state, state::CACHE as u32);
            a.load(Size::D, R2, R2, 0);
            a.jump_if(Cond::Ne, R1, R2, out);
        }
        Which::Named { arg, name } => named(a, maps, offsets, *arg, name, out),
        _ => is_of(a, R6, place, out),
    }
}

/// Goes on where the object is one of the cache, by the arguments at `context` alone. Loses r1 to r5.
pub(crate) fn is_of<E>(a: &mut Assembler<E>, context: Reg, place: &Place, out: Label) {
    a.note("this cache?");
    let asked = |a: &mut Assembler<E>, function: i32, cache: u64| {
        a.load(Size::D, R1, context, argument(place.object));
        a.jump_if(Cond::Eq, R1, 0, out);
        a.call_kfunc(function);
        a.imm64(R1, cache);
        a.jump_if(Cond::Ne, R0, R1, out);
    };
    match &place.which {
        Which::Cache { arg, address } => {
            a.load(Size::D, R1, context, argument(*arg));
            a.imm64(R2, *address);
            a.jump_if(Cond::Ne, R1, R2, out);
        }
        Which::Sized { arg, size, of } => {
            a.load(Size::D, R1, context, argument(*arg));
            a.constant(R2, *size);
            a.jump_if(Cond::Ne, R1, R2, out);
            if let Some((function, cache)) = of {
                asked(a, *function, *cache);
            }
        }
        Which::Asked { function, address } => asked(a, *function, *address),
        Which::Order { arg, order: Some(order) } => {
            a.load(Size::W, R1, context, argument(*arg));
            a.jump_if(Cond::Ne, R1, *order as i32, out);
        }
        // What the maps of a session decide.
        Which::Order { order: None, .. } | Which::Tracked | Which::Known { .. } | Which::Named { .. } => {}
    }
}

/// Compares the name of the cache, until one has it.
fn named(a: &mut Assembler, maps: &Maps, offsets: &Offsets, arg: u8, name: &str, out: Label) {
    let [unknown, found] = [a.new_label(), a.new_label()];
    // One byte after the NUL: a longer name differs there.
    let len = (name.len() + 2).next_multiple_of(8).min(slot::NAME_BYTES);
    a.load(Size::D, R7, R6, argument(arg));
    a.jump_if(Cond::Eq, R7, 0, out);
    a.map_value(R9, maps.state, state::CACHE as u32);
    a.load(Size::D, R1, R9, 0);
    a.jump_if(Cond::Eq, R1, 0, unknown);
    a.jump_if(Cond::Ne, R1, R7, out);
    a.jump(found);
    a.bind(unknown);
    a.note("its name");
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::NAME));
    a.mov(R2, 8);
    a.mov(R3, R7);
    a.alu(Alu::Add, R3, i32::from(offsets.cache_name));
    a.call(Helper::ProbeReadKernel);
    a.load(Size::D, R3, R10, slot::NAME);
    for word in 0..len / 8 {
        a.store(Size::D, R10, slot::NAME + 8 * word as i16, 0);
    }
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(slot::NAME));
    a.mov(R2, len as i32);
    a.call(Helper::ProbeReadKernelStr);
    let mut wanted = name.as_bytes().to_vec();
    wanted.resize(len, 0);
    for (nth, word) in wanted.chunks_exact(8).enumerate() {
        a.load(Size::D, R1, R10, slot::NAME + 8 * nth as i16);
        a.imm64(R2, u64::from_le_bytes(word.try_into().unwrap_or_default()));
        a.jump_if(Cond::Ne, R1, R2, out);
    }
    a.store(Size::D, R9, 0, R7);
    a.bind(found);
}

/// Notes which object was taken, or leaves where the first program has taken it.
fn taken(a: &mut Assembler, maps: &Maps, turn: Turn, out: Label) {
    let other = a.new_label();
    a.note("taken by the first program?");
    a.store(Size::W, R10, slot::KEY, 0);
    a.map_fd(R1, maps.taken);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot::KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    match turn {
        Turn::First => a.store(Size::D, R0, 0, R8),
        Turn::Second => {
            a.load(Size::D, R1, R0, 0);
            a.jump_if(Cond::Ne, R1, R8, other);
            a.store(Size::D, R0, 0, 0);
            a.jump(out);
        }
    }
    a.bind(other);
}

/// r9 = the table of objects.
fn table(a: &mut Assembler, maps: &Maps, out: Label) {
    a.note("the table of objects");
    a.store(Size::W, R10, slot::KEY, 0);
    a.map_fd(R1, maps.objects);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot::KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.mov(R9, R0);
}

/// r1, r2 = the table and the key.
fn entry(a: &mut Assembler) {
    a.mov(R1, R9);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(slot::KEY));
}

fn in_value(at: usize) -> i16 {
    slot::VALUE + at as i16
}

/// The value of the object in r8, on the stack.
fn describe(a: &mut Assembler, offsets: &Offsets, place: &Place, size: Bytes) {
    a.note("who, and when");
    a.call(Helper::KtimeGetNs);
    a.store(Size::D, R10, in_value(value::TIME), R0);
    a.call(Helper::GetCurrentPidTgid);
    a.store(Size::D, R10, in_value(value::TID), R0);
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(in_value(value::COMM)));
    a.mov(R2, 16);
    a.call(Helper::GetCurrentComm);
    match size {
        Bytes::Fixed(size) => a.constant(R1, size),
        Bytes::Pages { order, shift } => {
            a.load(Size::W, R2, R6, argument(order));
            a.alu(Alu::And, R2, 31);
            a.mov(R1, 1);
            a.alu(Alu::Lsh, R1, i32::from(shift));
            a.alu(Alu::Lsh, R1, R2);
        }
    }
    a.store(Size::D, R10, in_value(value::SIZE), R1);
    match place.call_site {
        Some(arg) => a.load(Size::D, R1, R6, argument(arg)),
        None => a.mov(R1, 0),
    }
    a.store(Size::D, R10, in_value(value::CALL_SITE), R1);
    user(a, offsets);
    a.note("kernel stack");
    a.mov(R1, R6);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(in_value(value::STACK)));
    a.mov(R3, 8 * FRAMES as i32);
    a.mov(R4, OWN_FRAMES);
    a.call(Helper::GetStack);
}

/// Where user space is, and which program that is. A thread of the kernel has no memory of its own, and neither of them.
fn user(a: &mut Assembler, offsets: &Offsets) {
    let done = a.new_label();
    a.note("user space");
    a.store(Size::D, R10, in_value(value::USER_PC), 0);
    a.store(Size::D, R10, in_value(value::INODE), 0);
    a.call(Helper::GetCurrentTaskBtf);
    a.load(Size::D, R7, R0, offsets.task_mm);
    a.jump_if(Cond::Eq, R7, 0, done);
    a.mov(R1, R0);
    a.call(Helper::TaskPtRegs);
    a.load(Size::D, R1, R0, offsets.regs_ip);
    a.store(Size::D, R10, in_value(value::USER_PC), R1);
    for at in [offsets.mm_exe, offsets.file_inode] {
        a.load(Size::D, R7, R7, at);
        a.jump_if(Cond::Eq, R7, 0, done);
    }
    a.load(Size::D, R1, R7, offsets.inode_number);
    a.store(Size::D, R10, in_value(value::INODE), R1);
    a.bind(done);
}

/// Puts the object into the table, or counts why not.
fn store(a: &mut Assembler) {
    const E2BIG: i32 = -7;
    const EEXIST: i32 = -17;
    let [stored, counted, seen] = std::array::from_fn(|_| a.new_label());
    let update = |a: &mut Assembler, flags: i32| {
        entry(a);
        a.mov(R3, R10);
        a.alu(Alu::Add, R3, i32::from(slot::VALUE));
        a.mov(R4, flags);
        a.call(Helper::MapUpdate);
    };
    a.note("into the table");
    a.store(Size::D, R10, slot::KEY, R8);
    update(a, 1);
    // An error is an int, whose upper half means nothing; since Linux 6.4 it is a long.
    a.jump_if32(Cond::Eq, R0, 0, stored);
    a.mov(R7, counter::FULL as i32);
    a.jump_if32(Cond::Eq, R0, E2BIG, counted);
    a.mov(R7, counter::FAILED as i32);
    a.jump_if32(Cond::Eq, R0, EEXIST, seen);
    a.jump(counted);
    a.bind(seen);
    a.note("its address is in use: no tracepoint has seen the release of the object before");
    update(a, 0);
    a.mov(R7, counter::REPLACED as i32);
    a.bind(counted);
    count(a, stored);
    a.bind(stored);
}

/// Adds one to the counter whose offset is in r7; leaves where the table has none.
fn count(a: &mut Assembler, out: Label) {
    a.note("a counter");
    a.store(Size::D, R10, slot::KEY, 0);
    entry(a);
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, out);
    a.alu(Alu::Add, R0, R7);
    a.mov(R1, 1);
    a.atomic(Atomic::Add, Size::D, R0, 0, R1);
}
