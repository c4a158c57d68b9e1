//! What descriptors are: read from the kernel's structures when a call has made them, and written to the ring before the call's
//! event.
//!
//! ```text
//! task ─► files ─► fdtable ─► file ─► path: dentry ─► parent ─► … ─► root of the mount ─► mount point ─► … ─► the first mount
//! ```
//!
//! The walk ends at the root of the mount namespace, not at that of a task that has called chroot, as the links of `/proc/PID/fd` do
//! when they are read from outside.
//!
//! The record is a `process:fd` event whose tails are not made yet: [`raw`]. The reader of the ring turns the components, leaf
//! first, into a path. The structures are read without their locks: a path that is being renamed may come out half old, half new,
//! and every read may fail.

use super::ops::op::*;
use super::raw;
use crate::btf_offsets::{Names, Sockets};
use crate::capture_row;
use crate::scratch::*;
use events::generated::P_FD;
use events::layout::Layout;

/// The working directory's number, as in openat(2).
const AT_FDCWD: i32 = -100;
/// Descriptors that are described at once.
const MAX_FDS: i32 = FDS_AT_ONCE as i32;
/// Steps from a file to the root: components and mounts.
const MAX_STEPS: i32 = 2200;
/// Bytes of components after which a path is given up, as the links of `/proc/PID/fd` cannot be read then (PATH_MAX).
const MAX_PATH: i32 = 4096;
/// Bytes of a component with its NUL (NAME_MAX).
const MAX_NAME: i32 = 256;
/// `SOCKFS_MAGIC` (`include/uapi/linux/magic.h`).
const SOCKFS: i32 = 0x534f_434b;

/// A pointer that was read.
const POINTER: i16 = slot::ADDR;
/// A `struct path`.
const PATH: i16 = slot::KEY;

/// Describes the descriptors that the call has made ([`capture_row::FLAGS`]).
pub fn made(e: &mut Emitter<'_>) {
    let [none, pair, rights, ready] = std::array::from_fn(|_| e.new_label());
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.alu(Alu::And, R1, i32::from(capture_row::MAKES_FD | capture_row::MAKES_PAIR | capture_row::MAKES_RIGHTS));
    e.jump_if(Cond::Eq, R1, 0, none);
    result_anew(e);
    e.jump_if(Cond::Slt, R2, 0, none);
    e.note("descriptors that the call has made");
    e.mov(R3, R1);
    e.alu(Alu::And, R3, i32::from(capture_row::MAKES_PAIR));
    e.jump_if(Cond::Ne, R3, 0, pair);
    e.alu(Alu::And, R1, i32::from(capture_row::MAKES_RIGHTS));
    e.jump_if(Cond::Ne, R1, 0, rights);
    e.spill(FDS, R2);
    e.mov(R8, 1);
    e.jump(ready);
    e.bind(pair);
    e.load_row(Size::H, R1, capture_row::FLAGS);
    e.alu(Alu::Rsh, R1, i32::from(capture_row::PAIR_SHIFT));
    e.alu(Alu::And, R1, 7);
    e.alu(Alu::Lsh, R1, 3);
    e.alu(Alu::Add, R1, reg::STATE);
    e.load(Size::D, R3, R1, state::ARGS);
    user(e, slot::KEY, 8, none);
    for i in 0..2 {
        e.load(Size::W, R1, R10, slot::KEY + 4 * i);
        e.spill(FDS + 8 * i, R1);
    }
    e.mov(R8, 2);
    e.jump(ready);
    e.bind(rights);
    passed(e, none);
    e.bind(ready);
    describe(e, 2);
    e.bind(none);
    forget(e);
}

/// r2 = the result, loaded again: what the verifier learns of it here must not multiply the paths through the rest.
fn result_anew(e: &mut Emitter<'_>) {
    e.load_state(R2, state::RET);
}

/// Reads `n` bytes of the target at r3 to a slot, or goes to `none`.
fn user(e: &mut Emitter<'_>, to: i16, n: i32, none: Label) {
    e.slot_address(R1, to);
    e.mov(R2, n);
    e.call(Helper::ProbeReadUser);
    e.jump_if(Cond::Slt, R0, 0, none);
}

/// The descriptors that a message has brought: SCM_RIGHTS as the first or the second control message. Their number in r8.
fn passed(e: &mut Emitter<'_>, none: Label) {
    const CONTROL: i32 = 32; // in struct user_msghdr
    const HEADER: i32 = 16; // struct cmsghdr: u64 length, i32 level, i32 type
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    let [found, fits] = [e.new_label(), e.new_label()];
    e.load_state(R3, state::ARGS + 8);
    e.alu(Alu::Add, R3, CONTROL);
    user(e, slot::KEY, 16, none);
    e.load_slot(R8, slot::KEY);
    e.load_slot(R1, slot::KEY + 8);
    e.alu(Alu::Add, R1, R8);
    e.store_slot(slot::TEMP, R1);
    for last in [false, true] {
        let next = e.new_label();
        e.mov(R1, R8);
        e.alu(Alu::Add, R1, HEADER);
        e.load_slot(R2, slot::TEMP);
        e.jump_if(Cond::Gt, R1, R2, none);
        e.mov(R3, R8);
        user(e, slot::KEY, 16, none);
        e.load(Size::W, R1, R10, slot::KEY + 8);
        e.jump_if(Cond::Ne, R1, SOL_SOCKET, next);
        e.load(Size::W, R1, R10, slot::KEY + 12);
        e.jump_if(Cond::Eq, R1, SCM_RIGHTS, found);
        e.bind(next);
        if last {
            e.jump(none);
            continue;
        }
        e.load_slot(R1, slot::KEY);
        e.alu(Alu::Add, R1, 7);
        e.alu(Alu::And, R1, -8);
        e.alu(Alu::Add, R8, R1);
    }
    e.bind(found);
    e.mov(R3, R8);
    e.alu(Alu::Add, R3, HEADER);
    e.load_slot(R8, slot::KEY);
    e.alu(Alu::Sub, R8, HEADER);
    e.alu(Alu::Rsh, R8, 2);
    e.jump_if(Cond::Le, R8, MAX_FDS, fits);
    e.mov(R8, MAX_FDS);
    e.bind(fits);
    e.mov(R1, reg::BUFFER);
    e.mov(R2, R8);
    e.alu(Alu::Lsh, R2, 2);
    e.call(Helper::ProbeReadUser);
    e.jump_if(Cond::Slt, R0, 0, none);
    // All words are stored; their count is the number of descriptors.
    for i in 0..MAX_FDS as i16 {
        e.load_event(Size::W, R1, 4 * i);
        e.spill(FDS + 8 * i, R1);
    }
}

/// Describes a descriptor that the call has changed. The call's own line shows it as it was before.
pub fn changed(e: &mut Emitter<'_>) {
    let offsets = e.offsets;
    let [none, argument, ready] = std::array::from_fn(|_| e.new_label());
    e.load_row(Size::H, R1, capture_row::FLAGS);
    let ends = offsets.names.is_some_and(|n| n.sockets.is_some());
    e.alu(Alu::And, R1, i32::from(capture_row::CHANGES_CWD | if ends { capture_row::CHANGES_FD } else { 0 }));
    e.jump_if(Cond::Eq, R1, 0, none);
    result_anew(e);
    e.jump_if(Cond::Slt, R2, 0, none);
    e.note("a descriptor that the call has changed");
    e.alu(Alu::And, R1, i32::from(capture_row::CHANGES_FD));
    e.jump_if(Cond::Ne, R1, 0, argument);
    e.mov(R1, AT_FDCWD);
    e.jump(ready);
    e.bind(argument);
    e.load(Size::W, R1, reg::STATE, state::ARGS);
    e.bind(ready);
    e.spill(FDS, R1);
    e.mov(R8, 1);
    describe(e, 0);
    e.bind(none);
    forget(e);
}

/// Makes all paths to this point equal for the verifier.
fn forget(e: &mut Emitter<'_>) {
    for slot in [slot::KEY, slot::KEY + 8, slot::TEMP] {
        e.store_slot(slot, 0);
    }
    e.store_slot(slot::SCRATCH, reg::BUFFER);
    e.mov(R8, 0);
}

/// Describes the r8 descriptors in `FDS`, with these flags of `process:fd`.
fn describe(e: &mut Emitter<'_>, flags: i32) {
    e.spill(FD_COUNT, R8);
    e.mov(R1, flags);
    e.spill(FD_FLAGS, R1);
    e.store_slot(slot::SCRATCH, reg::BUFFER);
    e.mov(R8, 0);
    let function = e.callback("a descriptor", descriptor_function);
    call_back(e, function, MAX_FDS);
    e.place_event();
}

/// Bytes of an event before its raw part.
fn fixed() -> i16 {
    Layout::of(&P_FD).fixed as i16
}

/// Reads `n` bytes at `base + off` into the raw part.
fn get(e: &mut Emitter<'_>, to: usize, n: i32, base: Reg, off: i32) {
    e.mov(R3, base);
    e.alu(Alu::Add, R3, off);
    e.mov(R1, reg::BUFFER);
    e.alu(Alu::Add, R1, i32::from(fixed()) + to as i32);
    e.mov(R2, n);
    e.call(Helper::ProbeReadKernel);
}

/// r = the pointer at `base + off`.
fn pointer_at(e: &mut Emitter<'_>, r: Reg, base: Reg, off: i32) {
    e.peek(POINTER, 8, base, off);
    e.load_slot(r, POINTER);
}

/// Describes a descriptor: a function that is called back.
pub(super) fn descriptor_function(e: &mut Emitter<'_>) {
    let offsets = e.offsets;
    let Some(names) = &offsets.names else { return leave(e, 1) };
    let [end, skip, cwd, have] = std::array::from_fn(|_| e.new_label());
    e.note("a descriptor");
    enter(e);
    e.ends_at = end;
    e.place_event();
    e.store_slot(slot::SCRATCH, reg::BUFFER);
    e.load_slot(R1, slot::I);
    e.reload(R2, FD_COUNT);
    e.jump_if(Cond::Ge, R1, R2, end);
    e.alu(Alu::And, R1, MAX_FDS - 1);
    e.alu(Alu::Lsh, R1, 3);
    e.words(R2);
    e.alu(Alu::Add, R2, R1);
    e.load(Size::D, R9, R2, FDS);
    e.begin(&P_FD, 0);
    e.put("fd", R9);
    for word in (0..raw::COMPONENTS as i16).step_by(8) {
        e.store_event(Size::D, fixed() + word, 0);
    }
    e.reload(R1, FD_FLAGS);
    e.store_slot(slot::TEMP, R1);
    e.call(Helper::GetCurrentTaskBtf);
    e.jump_if(Cond::Eq, R9, AT_FDCWD, cwd);
    open_file(e, names, skip);
    e.peek(PATH, 16, R6, names.file[0]);
    if let Some(s) = &names.sockets {
        e.store_slot(slot::WORD, R6);
        socket(e, names, s);
    }
    e.jump(have);
    e.bind(cwd);
    pointer_at(e, R6, R0, names.fs[0]);
    e.peek(PATH, 16, R6, names.fs[1]);
    e.bind(have);
    e.load_slot(R1, slot::TEMP);
    e.put("flags", R1);
    path(e, names);
    e.jump_if(Cond::Gt, reg::END, MAX_EVENT, skip);
    e.output();
    e.bind(skip);
    leave(e, 0);
    e.bind(end);
    leave(e, 1);
}

/// r6 = the open file of descriptor r9 of the task in r0; adds close-on-exec to the flags in TEMP.
fn open_file(e: &mut Emitter<'_>, names: &Names, none: Label) {
    let [max_fds, close_on_exec, fd] = names.fdtable;
    pointer_at(e, R6, R0, names.files[0]);
    pointer_at(e, R6, R6, names.files[1]);
    e.store_slot(POINTER, 0);
    e.peek(POINTER, 4, R6, max_fds);
    e.load(Size::W, R1, R10, POINTER);
    e.jump_if(Cond::Ge, R9, R1, none);
    pointer_at(e, R1, R6, close_on_exec);
    e.mov(R2, R9);
    e.alu(Alu::Rsh, R2, 6);
    e.alu(Alu::Lsh, R2, 3);
    e.alu(Alu::Add, R1, R2);
    pointer_at(e, R1, R1, 0);
    e.mov(R2, R9);
    e.alu(Alu::And, R2, 63);
    e.alu(Alu::Rsh, R1, R2);
    e.alu(Alu::And, R1, 1);
    e.load_slot(R2, slot::TEMP);
    e.alu(Alu::Or, R2, R1);
    e.store_slot(slot::TEMP, R2);
    pointer_at(e, R1, R6, fd);
    e.mov(R2, R9);
    e.alu(Alu::Lsh, R2, 3);
    e.alu(Alu::Add, R1, R2);
    pointer_at(e, R6, R1, 0);
    e.jump_if(Cond::Eq, R6, 0, none);
}

/// What the file at PATH is, and its components.
fn path(e: &mut Emitter<'_>, names: &Names) {
    let [parent, name, inode, sb, op, pprev] = names.dentry;
    let [mount, ..] = names.mount;
    let [linked, plain, done, unreached] = std::array::from_fn(|_| e.new_label());
    e.load_slot(R1, PATH);
    e.alu(Alu::Sub, R1, mount);
    e.spill(MOUNT, R1);
    e.load_slot(R9, PATH + 8);
    e.spill(DENTRY, R9);
    pointer_at(e, R6, R9, inode);
    get(e, raw::INODE, 8, R6, names.inode[0]);
    get(e, raw::DEVICE, 4, R6, names.inode[1]);
    get(e, raw::MODE, 2, R6, names.inode[2]);
    pointer_at(e, R6, R9, sb);
    get(e, raw::MAGIC, 8, R6, names.magic);
    e.mov(R6, 0);
    pointer_at(e, R1, R9, pprev);
    e.jump_if(Cond::Ne, R1, 0, linked);
    pointer_at(e, R1, R9, parent);
    e.jump_if(Cond::Eq, R1, R9, linked);
    e.mov(R6, i32::from(raw::UNLINKED));
    e.bind(linked);
    e.mov(reg::END, i32::from(fixed()) + raw::COMPONENTS as i32);
    pointer_at(e, R1, R9, op);
    e.jump_if(Cond::Eq, R1, 0, plain);
    pointer_at(e, R1, R1, names.dname);
    e.jump_if(Cond::Eq, R1, 0, plain);
    e.alu(Alu::Or, R6, i32::from(raw::SPECIAL));
    component(e, R9, name, unreached);
    e.jump(done);
    e.bind(plain);
    e.mov(R1, 0);
    e.spill(REACHED, R1);
    let function = e.callback("a component", component_function);
    call_back(e, function, MAX_STEPS);
    e.reload(R1, REACHED);
    e.jump_if(Cond::Eq, R1, 0, unreached);
    e.bind(done);
    e.alu(Alu::Or, R6, i32::from(raw::WHOLE));
    e.bind(unreached);
    e.store_event(Size::H, fixed() + raw::BITS as i16, R6);
}

/// Appends the name of the entry in `dentry`, or goes to `none`.
fn component(e: &mut Emitter<'_>, dentry: Reg, name: i32, none: Label) {
    let fine = e.new_label();
    pointer_at(e, R3, dentry, name);
    e.place(R1, 0);
    e.mov(R2, MAX_NAME);
    e.call(Helper::ProbeReadKernelStr);
    e.jump_if(Cond::Sle, R0, 0, none);
    e.jump_if(Cond::Le, R0, MAX_NAME, fine);
    e.jump(none);
    e.bind(fine);
    e.alu(Alu::Add, reg::END, R0);
}

/// A step up, a function that is called back: a component, or from the root of a mount to where it is mounted (`fs/d_path.c`, prepend_path).
pub(super) fn component_function(e: &mut Emitter<'_>) {
    let offsets = e.offsets;
    let Some(names) = &offsets.names else { return leave(e, 1) };
    let [parent, name, ..] = names.dentry;
    let [_, mnt_root, mnt_parent, mountpoint] = names.mount;
    let [inside, reached, give_up] = std::array::from_fn(|_| e.new_label());
    e.note("a step up");
    enter(e);
    e.jump_if(Cond::Gt, reg::END, i32::from(fixed()) + raw::COMPONENTS as i32 + MAX_PATH, give_up);
    e.reload(R6, DENTRY);
    e.reload(R9, MOUNT);
    pointer_at(e, R1, R9, mnt_root);
    e.jump_if(Cond::Ne, R1, R6, inside);
    e.note("the root of a mount");
    pointer_at(e, R6, R9, mnt_parent);
    e.jump_if(Cond::Eq, R6, 0, give_up);
    e.jump_if(Cond::Eq, R6, R9, reached);
    e.spill(MOUNT, R6);
    pointer_at(e, R1, R9, mountpoint);
    e.spill(DENTRY, R1);
    leave(e, 0);
    e.bind(inside);
    pointer_at(e, R1, R6, parent);
    e.jump_if(Cond::Eq, R1, 0, give_up);
    e.jump_if(Cond::Eq, R1, R6, reached);
    e.spill(DENTRY, R1);
    component(e, R6, name, give_up);
    leave(e, 0);
    e.bind(reached);
    e.mov(R1, 1);
    e.spill(REACHED, R1);
    e.bind(give_up);
    leave(e, 1);
}

/// The socket of the file in WORD, if it is one.
fn socket(e: &mut Emitter<'_>, names: &Names, s: &Sockets) {
    use raw::socket as to;
    const AF_UNIX: i32 = 1;
    const AF_NETLINK: i32 = 16;
    /// Bytes of the longest address.
    const UNIX: i32 = 110;
    let at = |field: usize| raw::SOCKET + field;
    let [none, not_unix, bounded] = std::array::from_fn(|_| e.new_label());
    let [family, state, port, peer_port, peer, own] = s.common;
    e.note("a socket");
    e.load_slot(R6, PATH + 8);
    pointer_at(e, R6, R6, names.dentry[3]);
    pointer_at(e, R1, R6, names.magic);
    e.jump_if(Cond::Ne, R1, SOCKFS, none);
    e.load_slot(R6, slot::WORD);
    pointer_at(e, R6, R6, names.file[1]);
    get(e, at(to::TYPE), 2, R6, s.socket[1]);
    pointer_at(e, R6, R6, s.socket[0]);
    for (field, n, off) in [
        (to::FAMILY, 2, family),
        (to::PROTOCOL, 2, s.protocol),
        (to::STATE, 1, state),
        (to::PORT, 2, port),
        (to::PEER_PORT, 2, peer_port),
        (to::PEER4, 4, peer),
        (to::OWN4, 4, own),
    ] {
        get(e, at(field), n, R6, off);
    }
    if let Some([peer, own]) = s.v6 {
        get(e, at(to::PEER6), 16, R6, peer);
        get(e, at(to::OWN6), 16, R6, own);
    }
    let family = fixed() + at(to::FAMILY) as i16;
    if let Some(id) = s.netlink {
        let other = e.new_label();
        e.load_event(Size::H, R1, family);
        e.jump_if(Cond::Ne, R1, AF_NETLINK, other);
        get(e, at(to::NETLINK), 4, R6, id);
        e.bind(other);
    }
    if let Some([address, len, name]) = s.unix {
        e.load_event(Size::H, R1, family);
        e.jump_if(Cond::Ne, R1, AF_UNIX, not_unix);
        pointer_at(e, R6, R6, address);
        e.jump_if(Cond::Eq, R6, 0, not_unix);
        get(e, at(to::UNIX_LEN), 4, R6, len);
        e.load_event(Size::W, R2, fixed() + at(to::UNIX_LEN) as i16);
        e.jump_if(Cond::Le, R2, UNIX, bounded);
        e.mov(R2, UNIX);
        e.bind(bounded);
        e.mov(R1, reg::BUFFER);
        e.alu(Alu::Add, R1, i32::from(fixed()) + at(to::UNIX) as i32);
        e.mov(R3, R6);
        e.alu(Alu::Add, R3, name);
        e.call(Helper::ProbeReadKernel);
        e.bind(not_unix);
    }
    e.bind(none);
}
