//! What descriptors are: read from the kernel's own structures when a call has made them, and written to the ring in front of
//! the call's event.
//!
//! ```text
//! task ─► files ─► fdtable ─► file ─► path: dentry ─► parent ─► … ─► root of the mount ─► mount point ─► … ─► the first mount
//! ```
//!
//! The way ends at the root of the mount namespace, not at that of a task that has called chroot: as for whoever reads the links
//! of `/proc/PID/fd` from outside.
//!
//! The record is a `process:fd` event whose tails are not made yet: [`raw`]. Whoever drains the ring turns the components,
//! which stand leaf first, into a path. The structures are read without their locks: what is being renamed meanwhile may come
//! out half old, half new, and every read may fail; nothing is followed but by bounded reads.

use super::*;
use crate::calls::Target;
use crate::calls::emit::output;
use crate::calls::events::{begin, put};
use crate::calls::iter::peek;
use crate::calls::raw;
use events::generated::P_FD;
use events::layout::Layout;

/// Where the kernel keeps what descriptors are: offsets of fields, by structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// `task_struct.files`, `files_struct.fdt`.
    pub files: [i32; 2],
    /// `fdtable`: `max_fds`, `close_on_exec`, `fd`.
    pub fdtable: [i32; 3],
    /// `file`: `f_path`, `private_data`.
    pub file: [i32; 2],
    /// `path`: `mnt`, `dentry`. They are neighbours.
    pub path: [i32; 2],
    /// `task_struct.fs`, `fs_struct.pwd`.
    pub fs: [i32; 2],
    /// `dentry`: `d_parent`, `d_name.name`, `d_inode`, `d_sb`, `d_op`, `d_hash.pprev`.
    pub dentry: [i32; 6],
    /// `dentry_operations.d_dname`.
    pub dname: i32,
    /// `inode`: `i_ino`, `i_rdev`, `i_mode`.
    pub inode: [i32; 3],
    /// `super_block.s_magic`.
    pub magic: i32,
    /// `mount`: `mnt`, `mnt.mnt_root`, `mnt_parent`, `mnt_mountpoint`.
    pub mount: [i32; 4],
    /// The same of sockets, where their ends are wanted.
    pub sockets: Option<Sockets>,
}

/// Where the kernel keeps the ends of sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// `socket`: `sk`, `type`.
    pub socket: [i32; 2],
    /// `sock.sk_protocol`.
    pub protocol: i32,
    /// `sock_common`: `skc_family`, `skc_state`, `skc_num`, `skc_dport`, `skc_daddr`, `skc_rcv_saddr`.
    pub common: [i32; 6],
    /// `sock_common`: `skc_v6_daddr`, `skc_v6_rcv_saddr`; none where the kernel has no IPv6.
    pub v6: Option<[i32; 2]>,
    /// `netlink_sock.portid`.
    pub netlink: Option<i32>,
    /// `unix_sock.addr`, `unix_address`: `len`, `name`.
    pub unix: Option<[i32; 3]>,
}

/// The working directory's number, as in openat(2).
const AT_FDCWD: i32 = -100;
/// Descriptors said at once.
const MAX_FDS: i32 = FDS_AT_ONCE as i32;
/// Steps from a file to the root: components and mounts.
const MAX_STEPS: i32 = 2200;
/// Bytes of components after which a path is given up, as the links of `/proc/PID/fd` cannot be read then (PATH_MAX).
const MAX_PATH: i32 = 4096;
/// Bytes of a component with its NUL (NAME_MAX).
const MAX_NAME: i32 = 256;
/// `SOCKFS_MAGIC` (`include/uapi/linux/magic.h`).
const SOCKFS: i32 = 0x534f_434b;

/// A pointer under way.
const POINTER: i16 = slot::ADDR;
/// A `struct path`.
const PATH: i16 = slot::KEY;

/// What the event of a call with a row says of itself where it makes or changes descriptors (see `plan::FLAGS`).
pub fn made(a: &mut Assembler, cbs: &mut Callbacks) {
    let [none, pair, rights, ready] = std::array::from_fn(|_| a.new_label());
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.alu(Alu::And, R1, i32::from(plan::MAKES_FD | plan::MAKES_PAIR | plan::MAKES_RIGHTS));
    a.jump_if(Cond::Eq, R1, 0, none);
    result_anew(a);
    a.jump_if(Cond::Slt, R2, 0, none);
    a.note("descriptors that the call has made");
    a.mov(R3, R1);
    a.alu(Alu::And, R3, i32::from(plan::MAKES_PAIR));
    a.jump_if(Cond::Ne, R3, 0, pair);
    a.alu(Alu::And, R1, i32::from(plan::MAKES_RIGHTS));
    a.jump_if(Cond::Ne, R1, 0, rights);
    note(a, FDS, R2);
    a.mov(R8, 1);
    a.jump(ready);
    a.bind(pair);
    a.load(Size::H, R1, R9, plan::FLAGS);
    a.alu(Alu::Rsh, R1, i32::from(plan::PAIR_SHIFT));
    a.alu(Alu::And, R1, 7);
    a.alu(Alu::Lsh, R1, 3);
    a.alu(Alu::Add, R1, R6);
    a.load(Size::D, R3, R1, state::ARGS);
    user(a, slot::KEY, 8, none);
    for i in 0..2 {
        a.load(Size::W, R1, R10, slot::KEY + 4 * i);
        note(a, FDS + 8 * i, R1);
    }
    a.mov(R8, 2);
    a.jump(ready);
    a.bind(rights);
    passed(a, none);
    a.bind(ready);
    say(a, cbs, 2);
    a.bind(none);
    forget(a);
}

/// r2 = the result, looked up anew: what the verifier learns of it here must not tell apart the ways through what follows.
fn result_anew(a: &mut Assembler) {
    a.load(Size::D, R2, R6, state::RET);
}

/// Reads `n` bytes of the target at r3 to a slot, or leaves.
fn user(a: &mut Assembler, to: i16, n: i32, none: Label) {
    a.mov(R1, R10);
    a.alu(Alu::Add, R1, i32::from(to));
    a.mov(R2, n);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Slt, R0, 0, none);
}

/// The descriptors that a message has brought: SCM_RIGHTS as the first or the second control message. Their number in r8.
fn passed(a: &mut Assembler, none: Label) {
    const CONTROL: i32 = 32; // in struct user_msghdr
    const HEADER: i32 = 16; // struct cmsghdr: u64 length, i32 level, i32 type
    const SOL_SOCKET: i32 = 1;
    const SCM_RIGHTS: i32 = 1;
    let [found, fits] = [a.new_label(), a.new_label()];
    a.load(Size::D, R3, R6, state::ARGS + 8);
    a.alu(Alu::Add, R3, CONTROL);
    user(a, slot::KEY, 16, none);
    a.load(Size::D, R8, R10, slot::KEY);
    a.load(Size::D, R1, R10, slot::KEY + 8);
    a.alu(Alu::Add, R1, R8);
    a.store(Size::D, R10, slot::TEMP, R1);
    for last in [false, true] {
        let next = a.new_label();
        a.mov(R1, R8);
        a.alu(Alu::Add, R1, HEADER);
        a.load(Size::D, R2, R10, slot::TEMP);
        a.jump_if(Cond::Gt, R1, R2, none);
        a.mov(R3, R8);
        user(a, slot::KEY, 16, none);
        a.load(Size::W, R1, R10, slot::KEY + 8);
        a.jump_if(Cond::Ne, R1, SOL_SOCKET, next);
        a.load(Size::W, R1, R10, slot::KEY + 12);
        a.jump_if(Cond::Eq, R1, SCM_RIGHTS, found);
        a.bind(next);
        if last {
            a.jump(none);
            continue;
        }
        a.load(Size::D, R1, R10, slot::KEY);
        a.alu(Alu::Add, R1, 7);
        a.alu(Alu::And, R1, -8);
        a.alu(Alu::Add, R8, R1);
    }
    a.bind(found);
    a.mov(R3, R8);
    a.alu(Alu::Add, R3, HEADER);
    a.load(Size::D, R8, R10, slot::KEY);
    a.alu(Alu::Sub, R8, HEADER);
    a.alu(Alu::Rsh, R8, 2);
    a.jump_if(Cond::Le, R8, MAX_FDS, fits);
    a.mov(R8, MAX_FDS);
    a.bind(fits);
    a.mov(R1, R7);
    a.mov(R2, R8);
    a.alu(Alu::Lsh, R2, 2);
    a.call(Helper::ProbeReadUser);
    a.jump_if(Cond::Slt, R0, 0, none);
    // More words than there are descriptors: their number tells.
    for i in 0..MAX_FDS as i16 {
        a.load(Size::W, R1, R7, 4 * i);
        note(a, FDS + 8 * i, R1);
    }
}

/// What has become of a descriptor that the call works on. Its own line still shows it as it was.
pub fn changed(a: &mut Assembler, target: &Target, cbs: &mut Callbacks) {
    let [none, argument, ready] = std::array::from_fn(|_| a.new_label());
    a.load(Size::H, R1, R9, plan::FLAGS);
    let ends = target.names.is_some_and(|n| n.sockets.is_some());
    a.alu(Alu::And, R1, i32::from(plan::CHANGES_CWD | if ends { plan::CHANGES_FD } else { 0 }));
    a.jump_if(Cond::Eq, R1, 0, none);
    result_anew(a);
    a.jump_if(Cond::Slt, R2, 0, none);
    a.note("a descriptor that the call has changed");
    a.alu(Alu::And, R1, i32::from(plan::CHANGES_FD));
    a.jump_if(Cond::Ne, R1, 0, argument);
    a.mov(R1, AT_FDCWD);
    a.jump(ready);
    a.bind(argument);
    a.load(Size::W, R1, R6, state::ARGS);
    a.bind(ready);
    note(a, FDS, R1);
    a.mov(R8, 1);
    say(a, cbs, 0);
    a.bind(none);
    forget(a);
}

/// Makes all ways that lead here look the same to the verifier.
fn forget(a: &mut Assembler) {
    for slot in [slot::KEY, slot::KEY + 8, slot::TEMP] {
        a.store(Size::D, R10, slot, 0);
    }
    a.store(Size::D, R10, slot::SCRATCH, R7);
    a.mov(R8, 0);
}

/// Says what the r8 descriptors in `FDS` are, with these flags of `process:fd`.
fn say(a: &mut Assembler, cbs: &mut Callbacks, flags: i32) {
    note(a, FD_COUNT, R8);
    a.mov(R1, flags);
    note(a, FD_FLAGS, R1);
    a.store(Size::D, R10, slot::SCRATCH, R7);
    a.mov(R8, 0);
    let function = callback(a, cbs, Body::Descriptor);
    call_back(a, function, MAX_FDS);
}

/// Bytes of an event in front of its raw part.
fn front() -> i16 {
    Layout::of(&P_FD).fixed as i16
}

/// Reads `n` bytes at `base + off` into the raw part.
fn get(a: &mut Assembler, to: usize, n: i32, base: Reg, off: i32) {
    a.mov(R3, base);
    a.alu(Alu::Add, R3, off);
    a.mov(R1, R7);
    a.alu(Alu::Add, R1, i32::from(front()) + to as i32);
    a.mov(R2, n);
    a.call(Helper::ProbeReadKernel);
}

/// r = the pointer at `base + off`.
fn pointer_at(a: &mut Assembler, r: Reg, base: Reg, off: i32) {
    peek(a, POINTER, 8, base, off);
    a.load(Size::D, r, R10, POINTER);
}

/// A descriptor, called back.
pub(super) fn descriptor_function(a: &mut Assembler, maps: &Maps, target: &Target, cbs: &mut Callbacks) {
    let Some(names) = &target.names else { return leave(a, 1) };
    let [end, skip, cwd, have] = std::array::from_fn(|_| a.new_label());
    a.note("a descriptor");
    enter(a);
    a.store(Size::D, R10, slot::SCRATCH, R7);
    noted(a, R2, FD_COUNT);
    a.jump_if(Cond::Ge, R1, R2, end);
    a.alu(Alu::And, R1, MAX_FDS - 1);
    a.alu(Alu::Lsh, R1, 3);
    words(a, R2);
    a.alu(Alu::Add, R2, R1);
    a.load(Size::D, R9, R2, FDS);
    begin(a, target, &P_FD, 0);
    put(a, &P_FD, "fd", R9);
    for word in (0..raw::COMPONENTS as i16).step_by(8) {
        a.store(Size::D, R7, front() + word, 0);
    }
    noted(a, R1, FD_FLAGS);
    a.store(Size::D, R10, slot::TEMP, R1);
    a.call(Helper::GetCurrentTaskBtf);
    a.jump_if(Cond::Eq, R9, AT_FDCWD, cwd);
    open_file(a, names, skip);
    peek(a, PATH, 16, R6, names.file[0]);
    if let Some(s) = &names.sockets {
        a.store(Size::D, R10, slot::WORD, R6);
        socket(a, names, s);
    }
    a.jump(have);
    a.bind(cwd);
    pointer_at(a, R6, R0, names.fs[0]);
    peek(a, PATH, 16, R6, names.fs[1]);
    a.bind(have);
    a.load(Size::D, R1, R10, slot::TEMP);
    put(a, &P_FD, "flags", R1);
    path(a, cbs, names);
    a.jump_if(Cond::Gt, R8, MAX_EVENT, skip);
    output(a, maps);
    a.bind(skip);
    leave(a, 0);
    a.bind(end);
    leave(a, 1);
}

/// r6 = the open file behind descriptor r9 of the task in r0; adds close-on-exec to the flags in TEMP.
fn open_file(a: &mut Assembler, names: &Names, none: Label) {
    let [max_fds, close_on_exec, fd] = names.fdtable;
    pointer_at(a, R6, R0, names.files[0]);
    pointer_at(a, R6, R6, names.files[1]);
    a.store(Size::D, R10, POINTER, 0);
    peek(a, POINTER, 4, R6, max_fds);
    a.load(Size::W, R1, R10, POINTER);
    a.jump_if(Cond::Ge, R9, R1, none);
    pointer_at(a, R1, R6, close_on_exec);
    a.mov(R2, R9);
    a.alu(Alu::Rsh, R2, 6);
    a.alu(Alu::Lsh, R2, 3);
    a.alu(Alu::Add, R1, R2);
    pointer_at(a, R1, R1, 0);
    a.mov(R2, R9);
    a.alu(Alu::And, R2, 63);
    a.alu(Alu::Rsh, R1, R2);
    a.alu(Alu::And, R1, 1);
    a.load(Size::D, R2, R10, slot::TEMP);
    a.alu(Alu::Or, R2, R1);
    a.store(Size::D, R10, slot::TEMP, R2);
    pointer_at(a, R1, R6, fd);
    a.mov(R2, R9);
    a.alu(Alu::Lsh, R2, 3);
    a.alu(Alu::Add, R1, R2);
    pointer_at(a, R6, R1, 0);
    a.jump_if(Cond::Eq, R6, 0, none);
}

/// What the file at PATH is, and its components.
fn path(a: &mut Assembler, cbs: &mut Callbacks, names: &Names) {
    let [parent, name, inode, sb, op, pprev] = names.dentry;
    let [mount, ..] = names.mount;
    let [linked, plain, done, unreached] = std::array::from_fn(|_| a.new_label());
    a.load(Size::D, R1, R10, PATH);
    a.alu(Alu::Sub, R1, mount);
    note(a, MOUNT, R1);
    a.load(Size::D, R9, R10, PATH + 8);
    note(a, DENTRY, R9);
    pointer_at(a, R6, R9, inode);
    get(a, raw::INODE, 8, R6, names.inode[0]);
    get(a, raw::DEVICE, 4, R6, names.inode[1]);
    get(a, raw::MODE, 2, R6, names.inode[2]);
    pointer_at(a, R6, R9, sb);
    get(a, raw::MAGIC, 8, R6, names.magic);
    a.mov(R6, 0);
    pointer_at(a, R1, R9, pprev);
    a.jump_if(Cond::Ne, R1, 0, linked);
    pointer_at(a, R1, R9, parent);
    a.jump_if(Cond::Eq, R1, R9, linked);
    a.mov(R6, i32::from(raw::UNLINKED));
    a.bind(linked);
    a.mov(R8, i32::from(front()) + raw::COMPONENTS as i32);
    pointer_at(a, R1, R9, op);
    a.jump_if(Cond::Eq, R1, 0, plain);
    pointer_at(a, R1, R1, names.dname);
    a.jump_if(Cond::Eq, R1, 0, plain);
    a.alu(Alu::Or, R6, i32::from(raw::SPECIAL));
    component(a, R9, name, unreached);
    a.jump(done);
    a.bind(plain);
    a.mov(R1, 0);
    note(a, REACHED, R1);
    let function = callback(a, cbs, Body::Component);
    call_back(a, function, MAX_STEPS);
    noted(a, R1, REACHED);
    a.jump_if(Cond::Eq, R1, 0, unreached);
    a.bind(done);
    a.alu(Alu::Or, R6, i32::from(raw::WHOLE));
    a.bind(unreached);
    a.store(Size::H, R7, front() + raw::BITS as i16, R6);
}

/// Appends the name of the entry in `dentry`, or leaves.
fn component(a: &mut Assembler, dentry: Reg, name: i32, none: Label) {
    let fine = a.new_label();
    pointer_at(a, R3, dentry, name);
    place(a, R1, 0);
    a.mov(R2, MAX_NAME);
    a.call(Helper::ProbeReadKernelStr);
    a.jump_if(Cond::Sle, R0, 0, none);
    a.jump_if(Cond::Le, R0, MAX_NAME, fine);
    a.jump(none);
    a.bind(fine);
    a.alu(Alu::Add, R8, R0);
}

/// A step up, called back: a component, or from the root of a mount to where it is mounted (`fs/d_path.c`, prepend_path).
pub(super) fn component_function(a: &mut Assembler, target: &Target) {
    let Some(names) = &target.names else { return leave(a, 1) };
    let [parent, name, ..] = names.dentry;
    let [_, mnt_root, mnt_parent, mountpoint] = names.mount;
    let [inside, reached, give_up] = std::array::from_fn(|_| a.new_label());
    a.note("a step up");
    enter(a);
    a.jump_if(Cond::Gt, R8, i32::from(front()) + raw::COMPONENTS as i32 + MAX_PATH, give_up);
    noted(a, R6, DENTRY);
    noted(a, R9, MOUNT);
    pointer_at(a, R1, R9, mnt_root);
    a.jump_if(Cond::Ne, R1, R6, inside);
    a.note("the root of a mount");
    pointer_at(a, R6, R9, mnt_parent);
    a.jump_if(Cond::Eq, R6, 0, give_up);
    a.jump_if(Cond::Eq, R6, R9, reached);
    note(a, MOUNT, R6);
    pointer_at(a, R1, R9, mountpoint);
    note(a, DENTRY, R1);
    leave(a, 0);
    a.bind(inside);
    pointer_at(a, R1, R6, parent);
    a.jump_if(Cond::Eq, R1, 0, give_up);
    a.jump_if(Cond::Eq, R1, R6, reached);
    note(a, DENTRY, R1);
    component(a, R6, name, give_up);
    leave(a, 0);
    a.bind(reached);
    a.mov(R1, 1);
    note(a, REACHED, R1);
    a.bind(give_up);
    leave(a, 1);
}

/// What is known of the socket behind the file in WORD, if it is one.
fn socket(a: &mut Assembler, names: &Names, s: &Sockets) {
    use raw::socket as to;
    const AF_UNIX: i32 = 1;
    const AF_NETLINK: i32 = 16;
    /// Bytes of the longest address.
    const UNIX: i32 = 110;
    let at = |field: usize| raw::SOCKET + field;
    let [none, not_unix, bounded] = std::array::from_fn(|_| a.new_label());
    let [family, state, port, peer_port, peer, own] = s.common;
    a.note("a socket");
    a.load(Size::D, R6, R10, PATH + 8);
    pointer_at(a, R6, R6, names.dentry[3]);
    pointer_at(a, R1, R6, names.magic);
    a.jump_if(Cond::Ne, R1, SOCKFS, none);
    a.load(Size::D, R6, R10, slot::WORD);
    pointer_at(a, R6, R6, names.file[1]);
    get(a, at(to::TYPE), 2, R6, s.socket[1]);
    pointer_at(a, R6, R6, s.socket[0]);
    for (field, n, off) in [
        (to::FAMILY, 2, family),
        (to::PROTOCOL, 2, s.protocol),
        (to::STATE, 1, state),
        (to::PORT, 2, port),
        (to::PEER_PORT, 2, peer_port),
        (to::PEER4, 4, peer),
        (to::OWN4, 4, own),
    ] {
        get(a, at(field), n, R6, off);
    }
    if let Some([peer, own]) = s.v6 {
        get(a, at(to::PEER6), 16, R6, peer);
        get(a, at(to::OWN6), 16, R6, own);
    }
    let family = front() + at(to::FAMILY) as i16;
    if let Some(id) = s.netlink {
        let other = a.new_label();
        a.load(Size::H, R1, R7, family);
        a.jump_if(Cond::Ne, R1, AF_NETLINK, other);
        get(a, at(to::NETLINK), 4, R6, id);
        a.bind(other);
    }
    if let Some([address, len, name]) = s.unix {
        a.load(Size::H, R1, R7, family);
        a.jump_if(Cond::Ne, R1, AF_UNIX, not_unix);
        pointer_at(a, R6, R6, address);
        a.jump_if(Cond::Eq, R6, 0, not_unix);
        get(a, at(to::UNIX_LEN), 4, R6, len);
        a.load(Size::W, R2, R7, front() + at(to::UNIX_LEN) as i16);
        a.jump_if(Cond::Le, R2, UNIX, bounded);
        a.mov(R2, UNIX);
        a.bind(bounded);
        a.mov(R1, R7);
        a.alu(Alu::Add, R1, i32::from(front()) + at(to::UNIX) as i32);
        a.mov(R3, R6);
        a.alu(Alu::Add, R3, name);
        a.call(Helper::ProbeReadKernel);
        a.bind(not_unix);
    }
    a.bind(none);
}
