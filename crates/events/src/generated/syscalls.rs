//! The schemas of all events.
// Written by `cargo xtask codegen` from tables/. Do not edit.

use super::{flags, structs, switches};
use crate::schema::{Arg, Class, Dir, Extent, Ret, Schema, Sets};
use crate::types::{Cond, Fmt, Int, Len, LenFrom, Mem, StrKind, Test, Type};

/// The names of the bits of [`Sets`].
pub static SET_NAMES: &[&str] = &["clock", "creds", "desc", "file", "fstat", "fstatfs", "ipc", "lstat", "memory", "network", "process", "pure", "signal", "stat", "stat_like", "statfs", "statfs_like"];

/// `attach`
pub static P_ATTACH: Schema = Schema { id: 0, base: 0, name: "attach", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"comm",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"uid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"gid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `detach`
pub static P_DETACH: Schema = Schema { id: 1, base: 1, name: "detach", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `exec`
pub static P_EXEC: Schema = Schema { id: 2, base: 2, name: "exec", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"comm",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"old_tid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
    Arg{name:"uid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"gid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `exit`
pub static P_EXIT: Schema = Schema { id: 3, base: 3, name: "exit", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"code",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"signo",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"core",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `fd`
pub static P_FD: Schema = Schema { id: 4, base: 4, name: "fd", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"detail",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `fork`
pub static P_FORK: Schema = Schema { id: 5, base: 5, name: "fork", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"comm",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"child",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"tid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `function`
pub static P_FUNCTION: Schema = Schema { id: 6, base: 6, name: "function", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"build_id",ty:Type::Bytes(Len{from:LenFrom::Const(0),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"number",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "trapline's agent" };
/// `inflight`
pub static P_INFLIGHT: Schema = Schema { id: 7, base: 7, name: "inflight", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"call",ty:Type::Bytes(Len{from:LenFrom::Const(0),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"attach",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `map`
pub static P_MAP: Schema = Schema { id: 8, base: 8, name: "map", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"build_id",ty:Type::Bytes(Len{from:LenFrom::Const(0),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pgoff",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"prot",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PROT)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MAP)}),dir:Dir::In,cond:None},
    Arg{name:"dev",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dev}),dir:Dir::In,cond:None},
    Arg{name:"inode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/linux/perf_event.h 6.18" };
/// `paused`
pub static P_PAUSED: Schema = Schema { id: 9, base: 9, name: "paused", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
], ret: Ret::Never, sets: Sets(0x0), from: "trapline's sessions" };
/// `resumed`
pub static P_RESUMED: Schema = Schema { id: 10, base: 10, name: "resumed", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
], ret: Ret::Never, sets: Sets(0x0), from: "trapline's sessions" };
/// `signal`
pub static P_SIGNAL: Schema = Schema { id: 11, base: 11, name: "signal", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"signo",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"code",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"errno",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"uid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"status",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"utime",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),dir:Dir::In,cond:None},
    Arg{name:"stime",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"nr",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"arch",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `stack`
pub static P_STACK: Schema = Schema { id: 12, base: 12, name: "stack", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"frames",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),len:Some(Len{from:LenFrom::Const(0),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"id",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Stack}),dir:Dir::In,cond:None},
    Arg{name:"kind",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"ended",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"guessed",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "trapline's stacks" };
/// `stop`
pub static P_STOP: Schema = Schema { id: 13, base: 13, name: "stop", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"signo",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `superseded`
pub static P_SUPERSEDED: Schema = Schema { id: 14, base: 14, name: "superseded", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"by",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "include/uapi/asm-generic/siginfo.h 6.18" };
/// `untraced`
pub static P_UNTRACED: Schema = Schema { id: 15, base: 15, name: "untraced", class: Class::Process, extent: Extent::Point, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"why",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x0), from: "trapline's agent" };
/// `read`
pub static C_READ: Schema = Schema { id: 16, base: 16, name: "read", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(0), aarch64: Some(63), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `write`
pub static C_WRITE: Schema = Schema { id: 17, base: 17, name: "write", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(1), aarch64: Some(64), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `open`
pub static C_OPEN: Schema = Schema { id: 18, base: 18, name: "open", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(2), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:Some(Cond{on:1,test:Test::Any(0x400040)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `close`
pub static C_CLOSE: Schema = Schema { id: 19, base: 19, name: "close", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(3), aarch64: Some(57), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `stat`
pub static C_STAT: Schema = Schema { id: 20, base: 20, name: "stat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(4), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"statbuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STAT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x6008), from: "include/linux/syscalls.h 6.18" };
/// `fstat`
pub static C_FSTAT: Schema = Schema { id: 21, base: 21, name: "fstat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(5), aarch64: Some(80), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"statbuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STAT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4014), from: "include/linux/syscalls.h 6.18" };
/// `lstat`
pub static C_LSTAT: Schema = Schema { id: 22, base: 22, name: "lstat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(6), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"statbuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STAT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4088), from: "include/linux/syscalls.h 6.18" };
/// `poll`
pub static C_POLL: Schema = Schema { id: 23, base: 23, name: "poll", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(7), aarch64: None, args: &[
    Arg{name:"ufds",ty:Type::Ptr{elem:Mem::Struct(&structs::S_POLLFD),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::InOut,cond:None},
    Arg{name:"nfds",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"timeout_msecs",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `lseek`
pub static C_LSEEK: Schema = Schema { id: 24, base: 24, name: "lseek", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(8), aarch64: Some(62), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"whence",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_WHENCE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mmap`
pub static C_MMAP: Schema = Schema { id: 25, base: 25, name: "mmap", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(9), aarch64: Some(222), args: &[
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"prot",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PROT)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MAP)}),dir:Dir::In,cond:None},
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"off",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Addr}), sets: Sets(0x104), from: "include/linux/syscalls.h 6.18" };
/// `mprotect`
pub static C_MPROTECT: Schema = Schema { id: 26, base: 26, name: "mprotect", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(10), aarch64: Some(226), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"prot",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PROT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `munmap`
pub static C_MUNMAP: Schema = Schema { id: 27, base: 27, name: "munmap", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(11), aarch64: Some(215), args: &[
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `brk`
pub static C_BRK: Schema = Schema { id: 28, base: 28, name: "brk", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(12), aarch64: Some(214), args: &[
    Arg{name:"brk",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Addr}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigaction`
pub static C_RT_SIGACTION: Schema = Schema { id: 29, base: 29, name: "rt_sigaction", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(13), aarch64: Some(134), args: &[
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"act",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGACTION),len:None},dir:Dir::In,cond:None},
    Arg{name:"oact",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGACTION),len:None},dir:Dir::Out,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigprocmask`
pub static C_RT_SIGPROCMASK: Schema = Schema { id: 30, base: 30, name: "rt_sigprocmask", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(14), aarch64: Some(135), args: &[
    Arg{name:"how",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SIGPROCMASK)}),dir:Dir::In,cond:None},
    Arg{name:"nset",ty:Type::Sigset(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"oset",ty:Type::Sigset(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigreturn`
pub static C_RT_SIGRETURN: Schema = Schema { id: 31, base: 31, name: "rt_sigreturn", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(15), aarch64: Some(139), args: &[
    Arg{name:"mask",ty:Type::Sigset(Len{from:LenFrom::Const(8),mul:1,div:1}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `ioctl`
pub static C_IOCTL: Schema = Schema { id: 32, base: 32, name: "ioctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(16), aarch64: Some(29), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::IoctlCmd}),dir:Dir::In,cond:None},
    Arg{name:"arg",ty:Type::Switch{table:&switches::W_IOCTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pread64`
pub static C_PREAD64: Schema = Schema { id: 33, base: 33, name: "pread64", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(17), aarch64: Some(67), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pwrite64`
pub static C_PWRITE64: Schema = Schema { id: 34, base: 34, name: "pwrite64", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(18), aarch64: Some(68), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `readv`
pub static C_READV: Schema = Schema { id: 35, base: 35, name: "readv", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(19), aarch64: Some(65), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `writev`
pub static C_WRITEV: Schema = Schema { id: 36, base: 36, name: "writev", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(20), aarch64: Some(66), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `access`
pub static C_ACCESS: Schema = Schema { id: 37, base: 37, name: "access", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(21), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ACCESS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `pipe`
pub static C_PIPE: Schema = Schema { id: 38, base: 38, name: "pipe", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(22), aarch64: None, args: &[
    Arg{name:"fildes",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `select`
pub static C_SELECT: Schema = Schema { id: 39, base: 39, name: "select", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(23), aarch64: None, args: &[
    Arg{name:"n",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"inp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"outp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"exp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"tvp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEVAL),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `sched_yield`
pub static C_SCHED_YIELD: Schema = Schema { id: 40, base: 40, name: "sched_yield", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(24), aarch64: Some(124), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mremap`
pub static C_MREMAP: Schema = Schema { id: 41, base: 41, name: "mremap", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(25), aarch64: Some(216), args: &[
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"old_len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"new_len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MREMAP)}),dir:Dir::In,cond:None},
    Arg{name:"new_addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:Some(Cond{on:3,test:Test::Any(0x2)})},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Addr}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `msync`
pub static C_MSYNC: Schema = Schema { id: 42, base: 42, name: "msync", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(26), aarch64: Some(227), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSYNC)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `mincore`
pub static C_MINCORE: Schema = Schema { id: 43, base: 43, name: "mincore", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(27), aarch64: Some(232), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Ptr{elem:Mem::Int(Int{size:1,signed:false,fmt:Fmt::Dec}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:4096})},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `madvise`
pub static C_MADVISE: Schema = Schema { id: 44, base: 44, name: "madvise", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(28), aarch64: Some(233), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"behavior",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_MADVISE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `shmget`
pub static C_SHMGET: Schema = Schema { id: 45, base: 45, name: "shmget", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(29), aarch64: Some(194), args: &[
    Arg{name:"key",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IPC_PRIVATE)}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"shmflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SHMFLG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `shmat`
pub static C_SHMAT: Schema = Schema { id: 46, base: 46, name: "shmat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(30), aarch64: Some(196), args: &[
    Arg{name:"shmid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"shmaddr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"shmflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SHMAT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Addr}), sets: Sets(0x140), from: "include/linux/syscalls.h 6.18" };
/// `shmctl`
pub static C_SHMCTL: Schema = Schema { id: 47, base: 47, name: "shmctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(31), aarch64: Some(195), args: &[
    Arg{name:"shmid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SHMCTL)}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Switch{table:&switches::W_SHMCTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `dup`
pub static C_DUP: Schema = Schema { id: 48, base: 48, name: "dup", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(32), aarch64: Some(23), args: &[
    Arg{name:"fildes",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `dup2`
pub static C_DUP2: Schema = Schema { id: 49, base: 49, name: "dup2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(33), aarch64: None, args: &[
    Arg{name:"oldfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"newfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pause`
pub static C_PAUSE: Schema = Schema { id: 50, base: 50, name: "pause", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(34), aarch64: None, args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `nanosleep`
pub static C_NANOSLEEP: Schema = Schema { id: 51, base: 51, name: "nanosleep", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(35), aarch64: Some(101), args: &[
    Arg{name:"rqtp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"rmtp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::OutIntr,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getitimer`
pub static C_GETITIMER: Schema = Schema { id: 52, base: 52, name: "getitimer", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(36), aarch64: Some(102), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_ITIMER)}),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERVAL),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `alarm`
pub static C_ALARM: Schema = Schema { id: 53, base: 53, name: "alarm", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(37), aarch64: None, args: &[
    Arg{name:"seconds",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `setitimer`
pub static C_SETITIMER: Schema = Schema { id: 54, base: 54, name: "setitimer", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(38), aarch64: Some(103), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_ITIMER)}),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERVAL),len:None},dir:Dir::In,cond:None},
    Arg{name:"ovalue",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERVAL),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getpid`
pub static C_GETPID: Schema = Schema { id: 55, base: 55, name: "getpid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(39), aarch64: Some(172), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x800), from: "include/linux/syscalls.h 6.18" };
/// `sendfile`
pub static C_SENDFILE: Schema = Schema { id: 56, base: 56, name: "sendfile", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(40), aarch64: Some(71), args: &[
    Arg{name:"out_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"in_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x204), from: "include/linux/syscalls.h 6.18" };
/// `socket`
pub static C_SOCKET: Schema = Schema { id: 57, base: 57, name: "socket", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(41), aarch64: Some(198), args: &[
    Arg{name:"family",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_AF)}),dir:Dir::In,cond:None},
    Arg{name:"type",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SOCK_TYPE)}),dir:Dir::In,cond:None},
    Arg{name:"protocol",ty:Type::Switch{table:&switches::W_SOCKET,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `connect`
pub static C_CONNECT: Schema = Schema { id: 58, base: 58, name: "connect", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(42), aarch64: Some(203), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"uservaddr",ty:Type::Sockaddr(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"addrlen",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `accept`
pub static C_ACCEPT: Schema = Schema { id: 59, base: 59, name: "accept", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(43), aarch64: Some(202), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"upeer_sockaddr",ty:Type::Sockaddr(Len{from:LenFrom::Deref(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"upeer_addrlen",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `sendto`
pub static C_SENDTO: Schema = Schema { id: 60, base: 60, name: "sendto", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(44), aarch64: Some(206), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buff",ty:Type::Bytes(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Sockaddr(Len{from:LenFrom::Arg(5),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"addr_len",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `recvfrom`
pub static C_RECVFROM: Schema = Schema { id: 61, base: 61, name: "recvfrom", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(45), aarch64: Some(207), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"ubuf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Sockaddr(Len{from:LenFrom::Deref(5),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"addr_len",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `sendmsg`
pub static C_SENDMSG: Schema = Schema { id: 62, base: 62, name: "sendmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(46), aarch64: Some(211), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"msg",ty:Type::Msghdr,dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `recvmsg`
pub static C_RECVMSG: Schema = Schema { id: 63, base: 63, name: "recvmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(47), aarch64: Some(212), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"msg",ty:Type::Msghdr,dir:Dir::Out,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `shutdown`
pub static C_SHUTDOWN: Schema = Schema { id: 64, base: 64, name: "shutdown", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(48), aarch64: Some(210), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"how",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SHUT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `bind`
pub static C_BIND: Schema = Schema { id: 65, base: 65, name: "bind", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(49), aarch64: Some(200), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"umyaddr",ty:Type::Sockaddr(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"addrlen",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `listen`
pub static C_LISTEN: Schema = Schema { id: 66, base: 66, name: "listen", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(50), aarch64: Some(201), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"backlog",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `getsockname`
pub static C_GETSOCKNAME: Schema = Schema { id: 67, base: 67, name: "getsockname", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(51), aarch64: Some(204), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"usockaddr",ty:Type::Sockaddr(Len{from:LenFrom::Deref(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"usockaddr_len",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `getpeername`
pub static C_GETPEERNAME: Schema = Schema { id: 68, base: 68, name: "getpeername", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(52), aarch64: Some(205), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"usockaddr",ty:Type::Sockaddr(Len{from:LenFrom::Deref(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"usockaddr_len",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `socketpair`
pub static C_SOCKETPAIR: Schema = Schema { id: 69, base: 69, name: "socketpair", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(53), aarch64: Some(199), args: &[
    Arg{name:"family",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_AF)}),dir:Dir::In,cond:None},
    Arg{name:"type",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SOCK_TYPE)}),dir:Dir::In,cond:None},
    Arg{name:"protocol",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"usockvec",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `setsockopt`
pub static C_SETSOCKOPT: Schema = Schema { id: 70, base: 70, name: "setsockopt", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(54), aarch64: Some(208), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"level",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SOL)}),dir:Dir::In,cond:None},
    Arg{name:"optname",ty:Type::Switch{table:&switches::W_OPTNAME,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"optval",ty:Type::Switch{table:&switches::W_SETSOCKOPT,on:1,on2:Some(2),nth:0},dir:Dir::In,cond:None},
    Arg{name:"optlen",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `getsockopt`
pub static C_GETSOCKOPT: Schema = Schema { id: 71, base: 71, name: "getsockopt", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(55), aarch64: Some(209), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"level",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SOL)}),dir:Dir::In,cond:None},
    Arg{name:"optname",ty:Type::Switch{table:&switches::W_GETOPTNAME,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"optval",ty:Type::Switch{table:&switches::W_GETSOCKOPT,on:1,on2:Some(2),nth:0},dir:Dir::In,cond:None},
    Arg{name:"optlen",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `clone`
pub static C_CLONE: Schema = Schema { id: 72, base: 72, name: "clone", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(56), aarch64: Some(220), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_CLONE_EXITSIG)}),dir:Dir::In,cond:None},
    Arg{name:"child_stack",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"parent_tid",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),len:None},dir:Dir::Out,cond:Some(Cond{on:0,test:Test::Any(0x101000)})},
    Arg{name:"child_tidptr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:Some(Cond{on:0,test:Test::Any(0x1200000)})},
    Arg{name:"tls",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:Some(Cond{on:0,test:Test::Any(0x80000)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `fork`
pub static C_FORK: Schema = Schema { id: 73, base: 73, name: "fork", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(57), aarch64: None, args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `vfork`
pub static C_VFORK: Schema = Schema { id: 74, base: 74, name: "vfork", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(58), aarch64: None, args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `execve`
pub static C_EXECVE: Schema = Schema { id: 75, base: 75, name: "execve", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(59), aarch64: Some(221), args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"argv",ty:Type::Strv,dir:Dir::In,cond:None},
    Arg{name:"envp",ty:Type::Envv,dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x408), from: "include/linux/syscalls.h 6.18" };
/// `exit`
pub static C_EXIT: Schema = Schema { id: 76, base: 76, name: "exit", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(60), aarch64: Some(93), args: &[
    Arg{name:"error_code",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `wait4`
pub static C_WAIT4: Schema = Schema { id: 77, base: 77, name: "wait4", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(61), aarch64: Some(260), args: &[
    Arg{name:"upid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"stat_addr",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::WaitStatus}),len:None},dir:Dir::OutPositive,cond:None},
    Arg{name:"options",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_WAIT)}),dir:Dir::In,cond:None},
    Arg{name:"ru",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RUSAGE),len:None},dir:Dir::OutPositive,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `kill`
pub static C_KILL: Schema = Schema { id: 78, base: 78, name: "kill", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(62), aarch64: Some(129), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1400), from: "include/linux/syscalls.h 6.18" };
/// `uname`
pub static C_UNAME: Schema = Schema { id: 79, base: 79, name: "uname", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(63), aarch64: Some(160), args: &[
    Arg{name:"name",ty:Type::Ptr{elem:Mem::Struct(&structs::S_UTSNAME),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `semget`
pub static C_SEMGET: Schema = Schema { id: 80, base: 80, name: "semget", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(64), aarch64: Some(190), args: &[
    Arg{name:"key",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IPC_PRIVATE)}),dir:Dir::In,cond:None},
    Arg{name:"nsems",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"semflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IPC)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `semop`
pub static C_SEMOP: Schema = Schema { id: 81, base: 81, name: "semop", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(65), aarch64: Some(193), args: &[
    Arg{name:"semid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"tsops",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SEMBUF),len:Some(Len{from:LenFrom::Arg(2),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"nsops",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `semctl`
pub static C_SEMCTL: Schema = Schema { id: 82, base: 82, name: "semctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(66), aarch64: Some(191), args: &[
    Arg{name:"semid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"semnum",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SEMCTL)}),dir:Dir::In,cond:None},
    Arg{name:"arg",ty:Type::Switch{table:&switches::W_SEMCTL,on:2,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `shmdt`
pub static C_SHMDT: Schema = Schema { id: 83, base: 83, name: "shmdt", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(67), aarch64: Some(197), args: &[
    Arg{name:"shmaddr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x140), from: "include/linux/syscalls.h 6.18" };
/// `msgget`
pub static C_MSGGET: Schema = Schema { id: 84, base: 84, name: "msgget", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(68), aarch64: Some(186), args: &[
    Arg{name:"key",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IPC_PRIVATE)}),dir:Dir::In,cond:None},
    Arg{name:"msgflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IPC)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `msgsnd`
pub static C_MSGSND: Schema = Schema { id: 85, base: 85, name: "msgsnd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(69), aarch64: Some(189), args: &[
    Arg{name:"msqid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msgp",ty:Type::Msgbuf(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"msgsz",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msgflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSGFLG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `msgrcv`
pub static C_MSGRCV: Schema = Schema { id: 86, base: 86, name: "msgrcv", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(70), aarch64: Some(188), args: &[
    Arg{name:"msqid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msgp",ty:Type::Msgbuf(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"msgsz",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msgtyp",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msgflg",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSGFLG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `msgctl`
pub static C_MSGCTL: Schema = Schema { id: 87, base: 87, name: "msgctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(71), aarch64: Some(187), args: &[
    Arg{name:"msqid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_MSGCTL)}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Switch{table:&switches::W_MSGCTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `fcntl`
pub static C_FCNTL: Schema = Schema { id: 88, base: 88, name: "fcntl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(72), aarch64: Some(25), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_FCNTL)}),dir:Dir::In,cond:None},
    Arg{name:"arg",ty:Type::Switch{table:&switches::W_FCNTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `flock`
pub static C_FLOCK: Schema = Schema { id: 89, base: 89, name: "flock", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(73), aarch64: Some(32), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FLOCK)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fsync`
pub static C_FSYNC: Schema = Schema { id: 90, base: 90, name: "fsync", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(74), aarch64: Some(82), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fdatasync`
pub static C_FDATASYNC: Schema = Schema { id: 91, base: 91, name: "fdatasync", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(75), aarch64: Some(83), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `truncate`
pub static C_TRUNCATE: Schema = Schema { id: 92, base: 92, name: "truncate", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(76), aarch64: Some(45), args: &[
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"length",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `ftruncate`
pub static C_FTRUNCATE: Schema = Schema { id: 93, base: 93, name: "ftruncate", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(77), aarch64: Some(46), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"length",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `getdents`
pub static C_GETDENTS: Schema = Schema { id: 94, base: 94, name: "getdents", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(78), aarch64: None, args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"dirent",ty:Type::Dirents{len:Len{from:LenFrom::Ret,mul:1,div:1},wide:false},dir:Dir::Out,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `getcwd`
pub static C_GETCWD: Schema = Schema { id: 95, base: 95, name: "getcwd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(79), aarch64: Some(17), args: &[
    Arg{name:"buf",ty:Type::Str(StrKind::Path),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `chdir`
pub static C_CHDIR: Schema = Schema { id: 96, base: 96, name: "chdir", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(80), aarch64: Some(49), args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fchdir`
pub static C_FCHDIR: Schema = Schema { id: 97, base: 97, name: "fchdir", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(81), aarch64: Some(50), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `rename`
pub static C_RENAME: Schema = Schema { id: 98, base: 98, name: "rename", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(82), aarch64: None, args: &[
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `mkdir`
pub static C_MKDIR: Schema = Schema { id: 99, base: 99, name: "mkdir", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(83), aarch64: None, args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `rmdir`
pub static C_RMDIR: Schema = Schema { id: 100, base: 100, name: "rmdir", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(84), aarch64: None, args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `creat`
pub static C_CREAT: Schema = Schema { id: 101, base: 101, name: "creat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(85), aarch64: None, args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `link`
pub static C_LINK: Schema = Schema { id: 102, base: 102, name: "link", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(86), aarch64: None, args: &[
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `unlink`
pub static C_UNLINK: Schema = Schema { id: 103, base: 103, name: "unlink", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(87), aarch64: None, args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `symlink`
pub static C_SYMLINK: Schema = Schema { id: 104, base: 104, name: "symlink", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(88), aarch64: None, args: &[
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `readlink`
pub static C_READLINK: Schema = Schema { id: 105, base: 105, name: "readlink", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(89), aarch64: None, args: &[
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"bufsiz",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `chmod`
pub static C_CHMOD: Schema = Schema { id: 106, base: 106, name: "chmod", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(90), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fchmod`
pub static C_FCHMOD: Schema = Schema { id: 107, base: 107, name: "fchmod", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(91), aarch64: Some(52), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `chown`
pub static C_CHOWN: Schema = Schema { id: 108, base: 108, name: "chown", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(92), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"user",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"group",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fchown`
pub static C_FCHOWN: Schema = Schema { id: 109, base: 109, name: "fchown", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(93), aarch64: Some(55), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"user",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"group",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `lchown`
pub static C_LCHOWN: Schema = Schema { id: 110, base: 110, name: "lchown", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(94), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"user",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"group",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `umask`
pub static C_UMASK: Schema = Schema { id: 111, base: 111, name: "umask", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(95), aarch64: Some(166), args: &[
    Arg{name:"mask",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Oct}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `gettimeofday`
pub static C_GETTIMEOFDAY: Schema = Schema { id: 112, base: 112, name: "gettimeofday", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(96), aarch64: Some(169), args: &[
    Arg{name:"tv",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEVAL),len:None},dir:Dir::Out,cond:None},
    Arg{name:"tz",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEZONE),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `getrlimit`
pub static C_GETRLIMIT: Schema = Schema { id: 113, base: 113, name: "getrlimit", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(97), aarch64: Some(163), args: &[
    Arg{name:"resource",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_RESOURCE)}),dir:Dir::In,cond:None},
    Arg{name:"rlim",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RLIMIT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getrusage`
pub static C_GETRUSAGE: Schema = Schema { id: 114, base: 114, name: "getrusage", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(98), aarch64: Some(165), args: &[
    Arg{name:"who",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_RUSAGE_WHO)}),dir:Dir::In,cond:None},
    Arg{name:"ru",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RUSAGE),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sysinfo`
pub static C_SYSINFO: Schema = Schema { id: 115, base: 115, name: "sysinfo", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(99), aarch64: Some(179), args: &[
    Arg{name:"info",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SYSINFO),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `times`
pub static C_TIMES: Schema = Schema { id: 116, base: 116, name: "times", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(100), aarch64: Some(153), args: &[
    Arg{name:"tbuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TMS),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::ClockTicks}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `ptrace`
pub static C_PTRACE: Schema = Schema { id: 117, base: 117, name: "ptrace", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(101), aarch64: Some(117), args: &[
    Arg{name:"request",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_PTRACE)}),dir:Dir::In,cond:None},
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:Some(Cond{on:0,test:Test::NoneOf(&[0])})},
    Arg{name:"addr",ty:Type::Switch{table:&switches::W_PTRACE,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"data",ty:Type::Switch{table:&switches::W_PTRACE,on:0,on2:None,nth:1},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getuid`
pub static C_GETUID: Schema = Schema { id: 118, base: 118, name: "getuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(102), aarch64: Some(174), args: &[
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x802), from: "include/linux/syscalls.h 6.18" };
/// `syslog`
pub static C_SYSLOG: Schema = Schema { id: 119, base: 119, name: "syslog", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(103), aarch64: Some(116), args: &[
    Arg{name:"type",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SYSLOG)}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Switch{table:&switches::W_SYSLOG,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Switch{table:&switches::W_SYSLOG,on:0,on2:None,nth:1},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getgid`
pub static C_GETGID: Schema = Schema { id: 120, base: 120, name: "getgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(104), aarch64: Some(176), args: &[
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x802), from: "include/linux/syscalls.h 6.18" };
/// `setuid`
pub static C_SETUID: Schema = Schema { id: 121, base: 121, name: "setuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(105), aarch64: Some(146), args: &[
    Arg{name:"uid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setgid`
pub static C_SETGID: Schema = Schema { id: 122, base: 122, name: "setgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(106), aarch64: Some(144), args: &[
    Arg{name:"gid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `geteuid`
pub static C_GETEUID: Schema = Schema { id: 123, base: 123, name: "geteuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(107), aarch64: Some(175), args: &[
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x802), from: "include/linux/syscalls.h 6.18" };
/// `getegid`
pub static C_GETEGID: Schema = Schema { id: 124, base: 124, name: "getegid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(108), aarch64: Some(177), args: &[
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x802), from: "include/linux/syscalls.h 6.18" };
/// `setpgid`
pub static C_SETPGID: Schema = Schema { id: 125, base: 125, name: "setpgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(109), aarch64: Some(154), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"pgid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getppid`
pub static C_GETPPID: Schema = Schema { id: 126, base: 126, name: "getppid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(110), aarch64: Some(173), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x800), from: "include/linux/syscalls.h 6.18" };
/// `getpgrp`
pub static C_GETPGRP: Schema = Schema { id: 127, base: 127, name: "getpgrp", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(111), aarch64: None, args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x800), from: "include/linux/syscalls.h 6.18" };
/// `setsid`
pub static C_SETSID: Schema = Schema { id: 128, base: 128, name: "setsid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(112), aarch64: Some(157), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `setreuid`
pub static C_SETREUID: Schema = Schema { id: 129, base: 129, name: "setreuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(113), aarch64: Some(145), args: &[
    Arg{name:"ruid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"euid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setregid`
pub static C_SETREGID: Schema = Schema { id: 130, base: 130, name: "setregid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(114), aarch64: Some(143), args: &[
    Arg{name:"rgid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"egid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `getgroups`
pub static C_GETGROUPS: Schema = Schema { id: 131, base: 131, name: "getgroups", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(115), aarch64: Some(158), args: &[
    Arg{name:"gidsetsize",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"grouplist",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setgroups`
pub static C_SETGROUPS: Schema = Schema { id: 132, base: 132, name: "setgroups", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(116), aarch64: Some(159), args: &[
    Arg{name:"gidsetsize",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"grouplist",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:Some(Len{from:LenFrom::Arg(0),mul:1,div:1})},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setresuid`
pub static C_SETRESUID: Schema = Schema { id: 133, base: 133, name: "setresuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(117), aarch64: Some(147), args: &[
    Arg{name:"ruid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"euid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"suid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `getresuid`
pub static C_GETRESUID: Schema = Schema { id: 134, base: 134, name: "getresuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(118), aarch64: Some(148), args: &[
    Arg{name:"ruidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"euidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"suidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setresgid`
pub static C_SETRESGID: Schema = Schema { id: 135, base: 135, name: "setresgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(119), aarch64: Some(149), args: &[
    Arg{name:"rgid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"egid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"sgid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `getresgid`
pub static C_GETRESGID: Schema = Schema { id: 136, base: 136, name: "getresgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(120), aarch64: Some(150), args: &[
    Arg{name:"rgidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"egidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"sgidp",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `getpgid`
pub static C_GETPGID: Schema = Schema { id: 137, base: 137, name: "getpgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(121), aarch64: Some(155), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `setfsuid`
pub static C_SETFSUID: Schema = Schema { id: 138, base: 138, name: "setfsuid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(122), aarch64: Some(151), args: &[
    Arg{name:"uid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `setfsgid`
pub static C_SETFSGID: Schema = Schema { id: 139, base: 139, name: "setfsgid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(123), aarch64: Some(152), args: &[
    Arg{name:"gid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Uid}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `getsid`
pub static C_GETSID: Schema = Schema { id: 140, base: 140, name: "getsid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(124), aarch64: Some(156), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `capget`
pub static C_CAPGET: Schema = Schema { id: 141, base: 141, name: "capget", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(125), aarch64: Some(90), args: &[
    Arg{name:"header",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CAP_HEADER),len:None},dir:Dir::In,cond:None},
    Arg{name:"dataptr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CAP_DATA),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `capset`
pub static C_CAPSET: Schema = Schema { id: 142, base: 142, name: "capset", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(126), aarch64: Some(91), args: &[
    Arg{name:"header",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CAP_HEADER),len:None},dir:Dir::In,cond:None},
    Arg{name:"data",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CAP_DATA),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigpending`
pub static C_RT_SIGPENDING: Schema = Schema { id: 143, base: 143, name: "rt_sigpending", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(127), aarch64: Some(136), args: &[
    Arg{name:"uset",ty:Type::Sigset(Len{from:LenFrom::Arg(1),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigtimedwait`
pub static C_RT_SIGTIMEDWAIT: Schema = Schema { id: 144, base: 144, name: "rt_sigtimedwait", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(128), aarch64: Some(137), args: &[
    Arg{name:"uthese",ty:Type::Sigset(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"uinfo",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGINFO),len:None},dir:Dir::Out,cond:None},
    Arg{name:"uts",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Signal}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigqueueinfo`
pub static C_RT_SIGQUEUEINFO: Schema = Schema { id: 145, base: 145, name: "rt_sigqueueinfo", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(129), aarch64: Some(138), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"uinfo",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGINFO),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1400), from: "include/linux/syscalls.h 6.18" };
/// `rt_sigsuspend`
pub static C_RT_SIGSUSPEND: Schema = Schema { id: 146, base: 146, name: "rt_sigsuspend", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(130), aarch64: Some(133), args: &[
    Arg{name:"unewset",ty:Type::Sigset(Len{from:LenFrom::Arg(1),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `sigaltstack`
pub static C_SIGALTSTACK: Schema = Schema { id: 147, base: 147, name: "sigaltstack", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(131), aarch64: Some(132), args: &[
    Arg{name:"uss",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STACK),len:None},dir:Dir::In,cond:None},
    Arg{name:"uoss",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STACK),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1000), from: "include/linux/syscalls.h 6.18" };
/// `utime`
pub static C_UTIME: Schema = Schema { id: 148, base: 148, name: "utime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(132), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"times",ty:Type::Ptr{elem:Mem::Struct(&structs::S_UTIMBUF),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `mknod`
pub static C_MKNOD: Schema = Schema { id: 149, base: 149, name: "mknod", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(133), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::ModeType}),dir:Dir::In,cond:None},
    Arg{name:"dev",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dev}),dir:Dir::In,cond:Some(Cond{on:1,test:Test::Any(0x2000)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `uselib`
pub static C_USELIB: Schema = Schema { id: 150, base: 150, name: "uselib", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(134), aarch64: None, args: &[
    Arg{name:"library",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `personality`
pub static C_PERSONALITY: Schema = Schema { id: 151, base: 151, name: "personality", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(135), aarch64: Some(92), args: &[
    Arg{name:"personality",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PERSONALITY)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PERSONALITY)}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `ustat`
pub static C_USTAT: Schema = Schema { id: 152, base: 152, name: "ustat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(136), aarch64: None, args: &[
    Arg{name:"dev",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dev}),dir:Dir::In,cond:None},
    Arg{name:"ubuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_USTAT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x10000), from: "include/linux/syscalls.h 6.18" };
/// `statfs`
pub static C_STATFS: Schema = Schema { id: 153, base: 153, name: "statfs", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(137), aarch64: Some(43), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STATFS),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x18008), from: "include/linux/syscalls.h 6.18" };
/// `fstatfs`
pub static C_FSTATFS: Schema = Schema { id: 154, base: 154, name: "fstatfs", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(138), aarch64: Some(44), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STATFS),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x10024), from: "include/linux/syscalls.h 6.18" };
/// `sysfs`
pub static C_SYSFS: Schema = Schema { id: 155, base: 155, name: "sysfs", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(139), aarch64: None, args: &[
    Arg{name:"option",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getpriority`
pub static C_GETPRIORITY: Schema = Schema { id: 156, base: 156, name: "getpriority", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(140), aarch64: Some(141), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_PRIORITY_WHICH)}),dir:Dir::In,cond:None},
    Arg{name:"who",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `setpriority`
pub static C_SETPRIORITY: Schema = Schema { id: 157, base: 157, name: "setpriority", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(141), aarch64: Some(140), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_PRIORITY_WHICH)}),dir:Dir::In,cond:None},
    Arg{name:"who",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"niceval",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_setparam`
pub static C_SCHED_SETPARAM: Schema = Schema { id: 158, base: 158, name: "sched_setparam", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(142), aarch64: Some(118), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"param",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_getparam`
pub static C_SCHED_GETPARAM: Schema = Schema { id: 159, base: 159, name: "sched_getparam", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(143), aarch64: Some(121), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"param",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_setscheduler`
pub static C_SCHED_SETSCHEDULER: Schema = Schema { id: 160, base: 160, name: "sched_setscheduler", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(144), aarch64: Some(119), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"policy",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_POLICY)}),dir:Dir::In,cond:None},
    Arg{name:"param",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_getscheduler`
pub static C_SCHED_GETSCHEDULER: Schema = Schema { id: 161, base: 161, name: "sched_getscheduler", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(145), aarch64: Some(120), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_POLICY)}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_get_priority_max`
pub static C_SCHED_GET_PRIORITY_MAX: Schema = Schema { id: 162, base: 162, name: "sched_get_priority_max", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(146), aarch64: Some(125), args: &[
    Arg{name:"policy",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_POLICY)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_get_priority_min`
pub static C_SCHED_GET_PRIORITY_MIN: Schema = Schema { id: 163, base: 163, name: "sched_get_priority_min", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(147), aarch64: Some(126), args: &[
    Arg{name:"policy",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SCHED_POLICY)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_rr_get_interval`
pub static C_SCHED_RR_GET_INTERVAL: Schema = Schema { id: 164, base: 164, name: "sched_rr_get_interval", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(148), aarch64: Some(127), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"interval",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mlock`
pub static C_MLOCK: Schema = Schema { id: 165, base: 165, name: "mlock", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(149), aarch64: Some(228), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `munlock`
pub static C_MUNLOCK: Schema = Schema { id: 166, base: 166, name: "munlock", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(150), aarch64: Some(229), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `mlockall`
pub static C_MLOCKALL: Schema = Schema { id: 167, base: 167, name: "mlockall", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(151), aarch64: Some(230), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MCL)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `munlockall`
pub static C_MUNLOCKALL: Schema = Schema { id: 168, base: 168, name: "munlockall", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(152), aarch64: Some(231), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `vhangup`
pub static C_VHANGUP: Schema = Schema { id: 169, base: 169, name: "vhangup", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(153), aarch64: Some(58), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `modify_ldt`
pub static C_MODIFY_LDT: Schema = Schema { id: 170, base: 170, name: "modify_ldt", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(154), aarch64: None, args: &[
    Arg{name:"func",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"ptr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_USER_DESC),len:None},dir:Dir::In,cond:None},
    Arg{name:"bytecount",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/kernel/ldt.c 6.18" };
/// `pivot_root`
pub static C_PIVOT_ROOT: Schema = Schema { id: 171, base: 171, name: "pivot_root", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(155), aarch64: Some(41), args: &[
    Arg{name:"new_root",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"put_old",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `_sysctl`
pub static C__SYSCTL: Schema = Schema { id: 172, base: 172, name: "_sysctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(156), aarch64: None, args: &[
    Arg{name:"args",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SYSCTL_ARGS),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `prctl`
pub static C_PRCTL: Schema = Schema { id: 173, base: 173, name: "prctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(157), aarch64: Some(167), args: &[
    Arg{name:"option",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_PRCTL)}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Switch{table:&switches::W_PRCTL,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Switch{table:&switches::W_PRCTL,on:0,on2:None,nth:1},dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Switch{table:&switches::W_PRCTL,on:0,on2:None,nth:2},dir:Dir::In,cond:None},
    Arg{name:"arg5",ty:Type::Switch{table:&switches::W_PRCTL,on:0,on2:None,nth:3},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x2), from: "include/linux/syscalls.h 6.18" };
/// `arch_prctl`
pub static C_ARCH_PRCTL: Schema = Schema { id: 174, base: 174, name: "arch_prctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(158), aarch64: None, args: &[
    Arg{name:"option",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_ARCH_PRCTL)}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Switch{table:&switches::W_ARCH_PRCTL,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/kernel/process_64.c 6.18" };
/// `adjtimex`
pub static C_ADJTIMEX: Schema = Schema { id: 175, base: 175, name: "adjtimex", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(159), aarch64: Some(171), args: &[
    Arg{name:"txc_p",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEX),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_ADJTIMEX_STATE)}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `setrlimit`
pub static C_SETRLIMIT: Schema = Schema { id: 176, base: 176, name: "setrlimit", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(160), aarch64: Some(164), args: &[
    Arg{name:"resource",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_RESOURCE)}),dir:Dir::In,cond:None},
    Arg{name:"rlim",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RLIMIT),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `chroot`
pub static C_CHROOT: Schema = Schema { id: 177, base: 177, name: "chroot", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(161), aarch64: Some(51), args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `sync`
pub static C_SYNC: Schema = Schema { id: 178, base: 178, name: "sync", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(162), aarch64: Some(81), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `acct`
pub static C_ACCT: Schema = Schema { id: 179, base: 179, name: "acct", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(163), aarch64: Some(89), args: &[
    Arg{name:"name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `settimeofday`
pub static C_SETTIMEOFDAY: Schema = Schema { id: 180, base: 180, name: "settimeofday", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(164), aarch64: Some(170), args: &[
    Arg{name:"tv",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEVAL),len:None},dir:Dir::In,cond:None},
    Arg{name:"tz",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEZONE),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `mount`
pub static C_MOUNT: Schema = Schema { id: 181, base: 181, name: "mount", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(165), aarch64: Some(40), args: &[
    Arg{name:"dev_name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"dir_name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"type",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT)}),dir:Dir::In,cond:None},
    Arg{name:"data",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `umount2`
pub static C_UMOUNT2: Schema = Schema { id: 182, base: 182, name: "umount2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(166), aarch64: Some(39), args: &[
    Arg{name:"name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_UMOUNT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `swapon`
pub static C_SWAPON: Schema = Schema { id: 183, base: 183, name: "swapon", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(167), aarch64: Some(224), args: &[
    Arg{name:"specialfile",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"swap_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SWAPON)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `swapoff`
pub static C_SWAPOFF: Schema = Schema { id: 184, base: 184, name: "swapoff", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(168), aarch64: Some(225), args: &[
    Arg{name:"specialfile",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `reboot`
pub static C_REBOOT: Schema = Schema { id: 185, base: 185, name: "reboot", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(169), aarch64: Some(142), args: &[
    Arg{name:"magic1",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_REBOOT_MAGIC1)}),dir:Dir::In,cond:None},
    Arg{name:"magic2",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_REBOOT_MAGIC2)}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_REBOOT)}),dir:Dir::In,cond:None},
    Arg{name:"arg",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:Some(Cond{on:2,test:Test::OneOf(&[2712847316])})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sethostname`
pub static C_SETHOSTNAME: Schema = Schema { id: 186, base: 186, name: "sethostname", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(170), aarch64: Some(161), args: &[
    Arg{name:"name",ty:Type::Bytes(Len{from:LenFrom::Arg(1),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `setdomainname`
pub static C_SETDOMAINNAME: Schema = Schema { id: 187, base: 187, name: "setdomainname", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(171), aarch64: Some(162), args: &[
    Arg{name:"name",ty:Type::Bytes(Len{from:LenFrom::Arg(1),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `iopl`
pub static C_IOPL: Schema = Schema { id: 188, base: 188, name: "iopl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(172), aarch64: None, args: &[
    Arg{name:"level",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/kernel/ioport.c 6.18" };
/// `ioperm`
pub static C_IOPERM: Schema = Schema { id: 189, base: 189, name: "ioperm", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(173), aarch64: None, args: &[
    Arg{name:"from",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"num",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"turn_on",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/kernel/ioport.c 6.18" };
/// `create_module`
pub static C_CREATE_MODULE: Schema = Schema { id: 190, base: 190, name: "create_module", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(174), aarch64: None, args: &[
    Arg{name:"name",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `init_module`
pub static C_INIT_MODULE: Schema = Schema { id: 191, base: 191, name: "init_module", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(175), aarch64: Some(105), args: &[
    Arg{name:"umod",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"uargs",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `delete_module`
pub static C_DELETE_MODULE: Schema = Schema { id: 192, base: 192, name: "delete_module", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(176), aarch64: Some(106), args: &[
    Arg{name:"name_user",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_DELETE_MODULE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `get_kernel_syms`
pub static C_GET_KERNEL_SYMS: Schema = Schema { id: 193, base: 193, name: "get_kernel_syms", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(177), aarch64: None, args: &[
    Arg{name:"table",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `query_module`
pub static C_QUERY_MODULE: Schema = Schema { id: 194, base: 194, name: "query_module", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(178), aarch64: None, args: &[
    Arg{name:"name",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"which",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"bufsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"ret_size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `quotactl`
pub static C_QUOTACTL: Schema = Schema { id: 195, base: 195, name: "quotactl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(179), aarch64: Some(60), args: &[
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_QUOTACTL)}),dir:Dir::In,cond:None},
    Arg{name:"special",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"id",ty:Type::Switch{table:&switches::W_QUOTACTL_ID,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Switch{table:&switches::W_QUOTACTL,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `nfsservctl`
pub static C_NFSSERVCTL: Schema = Schema { id: 196, base: 196, name: "nfsservctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(180), aarch64: Some(42), args: &[
    Arg{name:"cmd",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"argp",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"resp",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `getpmsg`
pub static C_GETPMSG: Schema = Schema { id: 197, base: 197, name: "getpmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(181), aarch64: None, args: &[
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `putpmsg`
pub static C_PUTPMSG: Schema = Schema { id: 198, base: 198, name: "putpmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(182), aarch64: None, args: &[
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `afs_syscall`
pub static C_AFS_SYSCALL: Schema = Schema { id: 199, base: 199, name: "afs_syscall", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(183), aarch64: None, args: &[
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `tuxcall`
pub static C_TUXCALL: Schema = Schema { id: 200, base: 200, name: "tuxcall", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(184), aarch64: None, args: &[
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `security`
pub static C_SECURITY: Schema = Schema { id: 201, base: 201, name: "security", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(185), aarch64: None, args: &[
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "arch/x86/entry/syscalls/syscall_64.tbl 6.18" };
/// `gettid`
pub static C_GETTID: Schema = Schema { id: 202, base: 202, name: "gettid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(186), aarch64: Some(178), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Tid}), sets: Sets(0x800), from: "include/linux/syscalls.h 6.18" };
/// `readahead`
pub static C_READAHEAD: Schema = Schema { id: 203, base: 203, name: "readahead", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(187), aarch64: Some(213), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `setxattr`
pub static C_SETXATTR: Schema = Schema { id: 204, base: 204, name: "setxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(188), aarch64: Some(5), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_XATTR)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `lsetxattr`
pub static C_LSETXATTR: Schema = Schema { id: 205, base: 205, name: "lsetxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(189), aarch64: Some(6), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_XATTR)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fsetxattr`
pub static C_FSETXATTR: Schema = Schema { id: 206, base: 206, name: "fsetxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(190), aarch64: Some(7), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_XATTR)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `getxattr`
pub static C_GETXATTR: Schema = Schema { id: 207, base: 207, name: "getxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(191), aarch64: Some(8), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `lgetxattr`
pub static C_LGETXATTR: Schema = Schema { id: 208, base: 208, name: "lgetxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(192), aarch64: Some(9), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fgetxattr`
pub static C_FGETXATTR: Schema = Schema { id: 209, base: 209, name: "fgetxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(193), aarch64: Some(10), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"value",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `listxattr`
pub static C_LISTXATTR: Schema = Schema { id: 210, base: 210, name: "listxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(194), aarch64: Some(11), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"list",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `llistxattr`
pub static C_LLISTXATTR: Schema = Schema { id: 211, base: 211, name: "llistxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(195), aarch64: Some(12), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"list",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `flistxattr`
pub static C_FLISTXATTR: Schema = Schema { id: 212, base: 212, name: "flistxattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(196), aarch64: Some(13), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"list",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `removexattr`
pub static C_REMOVEXATTR: Schema = Schema { id: 213, base: 213, name: "removexattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(197), aarch64: Some(14), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `lremovexattr`
pub static C_LREMOVEXATTR: Schema = Schema { id: 214, base: 214, name: "lremovexattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(198), aarch64: Some(15), args: &[
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `fremovexattr`
pub static C_FREMOVEXATTR: Schema = Schema { id: 215, base: 215, name: "fremovexattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(199), aarch64: Some(16), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `tkill`
pub static C_TKILL: Schema = Schema { id: 216, base: 216, name: "tkill", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(200), aarch64: Some(130), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1400), from: "include/linux/syscalls.h 6.18" };
/// `time`
pub static C_TIME: Schema = Schema { id: 217, base: 217, name: "time", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(201), aarch64: None, args: &[
    Arg{name:"tloc",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Time}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Time}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `futex`
pub static C_FUTEX: Schema = Schema { id: 218, base: 218, name: "futex", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(202), aarch64: Some(98), args: &[
    Arg{name:"uaddr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"op",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_FUTEX)}),dir:Dir::In,cond:None},
    Arg{name:"val",ty:Type::Switch{table:&switches::W_FUTEX,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Switch{table:&switches::W_FUTEX,on:1,on2:None,nth:1},dir:Dir::In,cond:None},
    Arg{name:"uaddr2",ty:Type::Switch{table:&switches::W_FUTEX,on:1,on2:None,nth:2},dir:Dir::In,cond:None},
    Arg{name:"val3",ty:Type::Switch{table:&switches::W_FUTEX,on:1,on2:None,nth:3},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_setaffinity`
pub static C_SCHED_SETAFFINITY: Schema = Schema { id: 219, base: 219, name: "sched_setaffinity", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(203), aarch64: Some(122), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"user_mask_ptr",ty:Type::Cpuset(Len{from:LenFrom::Arg(1),mul:1,div:1}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_getaffinity`
pub static C_SCHED_GETAFFINITY: Schema = Schema { id: 220, base: 220, name: "sched_getaffinity", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(204), aarch64: Some(123), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"user_mask_ptr",ty:Type::Cpuset(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `set_thread_area`
pub static C_SET_THREAD_AREA: Schema = Schema { id: 221, base: 221, name: "set_thread_area", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(205), aarch64: None, args: &[
    Arg{name:"u_info",ty:Type::Ptr{elem:Mem::Struct(&structs::S_USER_DESC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `io_setup`
pub static C_IO_SETUP: Schema = Schema { id: 222, base: 222, name: "io_setup", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(206), aarch64: Some(0), args: &[
    Arg{name:"nr_events",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"ctxp",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `io_destroy`
pub static C_IO_DESTROY: Schema = Schema { id: 223, base: 223, name: "io_destroy", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(207), aarch64: Some(1), args: &[
    Arg{name:"ctx",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `io_getevents`
pub static C_IO_GETEVENTS: Schema = Schema { id: 224, base: 224, name: "io_getevents", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(208), aarch64: Some(4), args: &[
    Arg{name:"ctx_id",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"min_nr",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"nr",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IO_EVENT),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `io_submit`
pub static C_IO_SUBMIT: Schema = Schema { id: 225, base: 225, name: "io_submit", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(209), aarch64: Some(2), args: &[
    Arg{name:"ctx_id",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"nr",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"iocbpp",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `io_cancel`
pub static C_IO_CANCEL: Schema = Schema { id: 226, base: 226, name: "io_cancel", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(210), aarch64: Some(3), args: &[
    Arg{name:"ctx_id",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"iocb",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IOCB),len:None},dir:Dir::In,cond:None},
    Arg{name:"result",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IO_EVENT),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `get_thread_area`
pub static C_GET_THREAD_AREA: Schema = Schema { id: 227, base: 227, name: "get_thread_area", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(211), aarch64: None, args: &[
    Arg{name:"u_info",ty:Type::Ptr{elem:Mem::Struct(&structs::S_USER_DESC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `lookup_dcookie`
pub static C_LOOKUP_DCOOKIE: Schema = Schema { id: 228, base: 228, name: "lookup_dcookie", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(212), aarch64: Some(18), args: &[
    Arg{name:"cookie64",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `epoll_create`
pub static C_EPOLL_CREATE: Schema = Schema { id: 229, base: 229, name: "epoll_create", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(213), aarch64: None, args: &[
    Arg{name:"size",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `epoll_ctl_old`
pub static C_EPOLL_CTL_OLD: Schema = Schema { id: 230, base: 230, name: "epoll_ctl_old", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(214), aarch64: None, args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"op",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"fd",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"event",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `epoll_wait_old`
pub static C_EPOLL_WAIT_OLD: Schema = Schema { id: 231, base: 231, name: "epoll_wait_old", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(215), aarch64: None, args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"maxevents",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `remap_file_pages`
pub static C_REMAP_FILE_PAGES: Schema = Schema { id: 232, base: 232, name: "remap_file_pages", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(216), aarch64: Some(234), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"prot",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PROT)}),dir:Dir::In,cond:None},
    Arg{name:"pgoff",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MAP)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `getdents64`
pub static C_GETDENTS64: Schema = Schema { id: 233, base: 233, name: "getdents64", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(217), aarch64: Some(61), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"dirent",ty:Type::Dirents{len:Len{from:LenFrom::Ret,mul:1,div:1},wide:true},dir:Dir::Out,cond:None},
    Arg{name:"count",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `set_tid_address`
pub static C_SET_TID_ADDRESS: Schema = Schema { id: 234, base: 234, name: "set_tid_address", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(218), aarch64: Some(96), args: &[
    Arg{name:"tidptr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `restart_syscall`
pub static C_RESTART_SYSCALL: Schema = Schema { id: 235, base: 235, name: "restart_syscall", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(219), aarch64: Some(128), args: &[
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `semtimedop`
pub static C_SEMTIMEDOP: Schema = Schema { id: 236, base: 236, name: "semtimedop", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(220), aarch64: Some(192), args: &[
    Arg{name:"semid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"tsops",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SEMBUF),len:Some(Len{from:LenFrom::Arg(2),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"nsops",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40), from: "include/linux/syscalls.h 6.18" };
/// `fadvise64`
pub static C_FADVISE64: Schema = Schema { id: 237, base: 237, name: "fadvise64", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(221), aarch64: Some(223), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"advice",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_FADVISE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `timer_create`
pub static C_TIMER_CREATE: Schema = Schema { id: 238, base: 238, name: "timer_create", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(222), aarch64: Some(107), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"timer_event_spec",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGEVENT),len:None},dir:Dir::In,cond:None},
    Arg{name:"created_timer_id",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `timer_settime`
pub static C_TIMER_SETTIME: Schema = Schema { id: 239, base: 239, name: "timer_settime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(223), aarch64: Some(110), args: &[
    Arg{name:"timer_id",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TIMER)}),dir:Dir::In,cond:None},
    Arg{name:"new_setting",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"old_setting",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `timer_gettime`
pub static C_TIMER_GETTIME: Schema = Schema { id: 240, base: 240, name: "timer_gettime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(224), aarch64: Some(108), args: &[
    Arg{name:"timer_id",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"setting",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `timer_getoverrun`
pub static C_TIMER_GETOVERRUN: Schema = Schema { id: 241, base: 241, name: "timer_getoverrun", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(225), aarch64: Some(109), args: &[
    Arg{name:"timer_id",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `timer_delete`
pub static C_TIMER_DELETE: Schema = Schema { id: 242, base: 242, name: "timer_delete", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(226), aarch64: Some(111), args: &[
    Arg{name:"timer_id",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `clock_settime`
pub static C_CLOCK_SETTIME: Schema = Schema { id: 243, base: 243, name: "clock_settime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(227), aarch64: Some(112), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"tp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `clock_gettime`
pub static C_CLOCK_GETTIME: Schema = Schema { id: 244, base: 244, name: "clock_gettime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(228), aarch64: Some(113), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"tp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `clock_getres`
pub static C_CLOCK_GETRES: Schema = Schema { id: 245, base: 245, name: "clock_getres", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(229), aarch64: Some(114), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"tp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `clock_nanosleep`
pub static C_CLOCK_NANOSLEEP: Schema = Schema { id: 246, base: 246, name: "clock_nanosleep", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(230), aarch64: Some(115), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TIMER)}),dir:Dir::In,cond:None},
    Arg{name:"rqtp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"rmtp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::OutIntr,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `exit_group`
pub static C_EXIT_GROUP: Schema = Schema { id: 247, base: 247, name: "exit_group", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(231), aarch64: Some(94), args: &[
    Arg{name:"error_code",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Never, sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `epoll_wait`
pub static C_EPOLL_WAIT: Schema = Schema { id: 248, base: 248, name: "epoll_wait", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(232), aarch64: None, args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Ptr{elem:Mem::Struct(&structs::S_EPOLL_EVENT),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"maxevents",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `epoll_ctl`
pub static C_EPOLL_CTL: Schema = Schema { id: 249, base: 249, name: "epoll_ctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(233), aarch64: Some(21), args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"op",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_EPOLL_CTL)}),dir:Dir::In,cond:None},
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"event",ty:Type::Switch{table:&switches::W_EPOLL_CTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `tgkill`
pub static C_TGKILL: Schema = Schema { id: 250, base: 250, name: "tgkill", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(234), aarch64: Some(131), args: &[
    Arg{name:"tgid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1400), from: "include/linux/syscalls.h 6.18" };
/// `utimes`
pub static C_UTIMES: Schema = Schema { id: 251, base: 251, name: "utimes", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(235), aarch64: None, args: &[
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"utimes",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEVAL),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x8), from: "include/linux/syscalls.h 6.18" };
/// `vserver`
pub static C_VSERVER: Schema = Schema { id: 252, base: 252, name: "vserver", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(236), aarch64: None, args: &[
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mbind`
pub static C_MBIND: Schema = Schema { id: 253, base: 253, name: "mbind", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(237), aarch64: Some(235), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_MEMPOLICY)}),dir:Dir::In,cond:None},
    Arg{name:"nmask",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Arg(4),mul:1,div:64})},dir:Dir::In,cond:None},
    Arg{name:"maxnode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MBIND)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `set_mempolicy`
pub static C_SET_MEMPOLICY: Schema = Schema { id: 254, base: 254, name: "set_mempolicy", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(238), aarch64: Some(237), args: &[
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MEMPOLICY)}),dir:Dir::In,cond:None},
    Arg{name:"nmask",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Arg(2),mul:1,div:64})},dir:Dir::In,cond:None},
    Arg{name:"maxnode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `get_mempolicy`
pub static C_GET_MEMPOLICY: Schema = Schema { id: 255, base: 255, name: "get_mempolicy", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(239), aarch64: Some(236), args: &[
    Arg{name:"policy",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MEMPOLICY)}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"nmask",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Arg(2),mul:1,div:64})},dir:Dir::Out,cond:None},
    Arg{name:"maxnode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_GET_MEMPOLICY)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `mq_open`
pub static C_MQ_OPEN: Schema = Schema { id: 256, base: 256, name: "mq_open", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(240), aarch64: Some(180), args: &[
    Arg{name:"u_name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"oflag",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:Some(Cond{on:1,test:Test::Any(0x40)})},
    Arg{name:"u_attr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MQ_ATTR),len:None},dir:Dir::In,cond:Some(Cond{on:1,test:Test::Any(0x40)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mq_unlink`
pub static C_MQ_UNLINK: Schema = Schema { id: 257, base: 257, name: "mq_unlink", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(241), aarch64: Some(181), args: &[
    Arg{name:"u_name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mq_timedsend`
pub static C_MQ_TIMEDSEND: Schema = Schema { id: 258, base: 258, name: "mq_timedsend", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(242), aarch64: Some(182), args: &[
    Arg{name:"mqdes",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"u_msg_ptr",ty:Type::Bytes(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"msg_len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"msg_prio",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"u_abs_timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mq_timedreceive`
pub static C_MQ_TIMEDRECEIVE: Schema = Schema { id: 259, base: 259, name: "mq_timedreceive", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(243), aarch64: Some(183), args: &[
    Arg{name:"mqdes",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"u_msg_ptr",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"msg_len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"u_msg_prio",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"u_abs_timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mq_notify`
pub static C_MQ_NOTIFY: Schema = Schema { id: 260, base: 260, name: "mq_notify", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(244), aarch64: Some(184), args: &[
    Arg{name:"mqdes",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"u_notification",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGEVENT),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mq_getsetattr`
pub static C_MQ_GETSETATTR: Schema = Schema { id: 261, base: 261, name: "mq_getsetattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(245), aarch64: Some(185), args: &[
    Arg{name:"mqdes",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"u_mqstat",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MQ_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"u_omqstat",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MQ_ATTR),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `kexec_load`
pub static C_KEXEC_LOAD: Schema = Schema { id: 262, base: 262, name: "kexec_load", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(246), aarch64: Some(104), args: &[
    Arg{name:"entry",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"nr_segments",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"segments",ty:Type::Ptr{elem:Mem::Struct(&structs::S_KEXEC_SEGMENT),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_KEXEC_LOAD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `waitid`
pub static C_WAITID: Schema = Schema { id: 263, base: 263, name: "waitid", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(247), aarch64: Some(95), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_WAITID_TYPE)}),dir:Dir::In,cond:None},
    Arg{name:"upid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"infop",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGINFO),len:None},dir:Dir::Out,cond:None},
    Arg{name:"options",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_WAIT)}),dir:Dir::In,cond:None},
    Arg{name:"ru",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RUSAGE),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `add_key`
pub static C_ADD_KEY: Schema = Schema { id: 264, base: 264, name: "add_key", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(248), aarch64: Some(217), args: &[
    Arg{name:"_type",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"_description",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"_payload",ty:Type::Bytes(Len{from:LenFrom::Arg(3),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"plen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"ringid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_KEYSPEC)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `request_key`
pub static C_REQUEST_KEY: Schema = Schema { id: 265, base: 265, name: "request_key", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(249), aarch64: Some(218), args: &[
    Arg{name:"_type",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"_description",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"_callout_info",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"destringid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_KEYSPEC)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `keyctl`
pub static C_KEYCTL: Schema = Schema { id: 266, base: 266, name: "keyctl", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(250), aarch64: Some(219), args: &[
    Arg{name:"option",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_KEYCTL)}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Switch{table:&switches::W_KEYCTL,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Switch{table:&switches::W_KEYCTL,on:0,on2:None,nth:1},dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Switch{table:&switches::W_KEYCTL,on:0,on2:None,nth:2},dir:Dir::In,cond:None},
    Arg{name:"arg5",ty:Type::Switch{table:&switches::W_KEYCTL,on:0,on2:None,nth:3},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `ioprio_set`
pub static C_IOPRIO_SET: Schema = Schema { id: 267, base: 267, name: "ioprio_set", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(251), aarch64: Some(30), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IOPRIO_WHO)}),dir:Dir::In,cond:None},
    Arg{name:"who",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"ioprio",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IOPRIO)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `ioprio_get`
pub static C_IOPRIO_GET: Schema = Schema { id: 268, base: 268, name: "ioprio_get", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(252), aarch64: Some(31), args: &[
    Arg{name:"which",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IOPRIO_WHO)}),dir:Dir::In,cond:None},
    Arg{name:"who",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `inotify_init`
pub static C_INOTIFY_INIT: Schema = Schema { id: 269, base: 269, name: "inotify_init", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(253), aarch64: None, args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `inotify_add_watch`
pub static C_INOTIFY_ADD_WATCH: Schema = Schema { id: 270, base: 270, name: "inotify_add_watch", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(254), aarch64: Some(27), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mask",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_INOTIFY)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `inotify_rm_watch`
pub static C_INOTIFY_RM_WATCH: Schema = Schema { id: 271, base: 271, name: "inotify_rm_watch", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(255), aarch64: Some(28), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"wd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `migrate_pages`
pub static C_MIGRATE_PAGES: Schema = Schema { id: 272, base: 272, name: "migrate_pages", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(256), aarch64: Some(238), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"maxnode",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"old_nodes",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:64})},dir:Dir::In,cond:None},
    Arg{name:"new_nodes",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:64})},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `openat`
pub static C_OPENAT: Schema = Schema { id: 273, base: 273, name: "openat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(257), aarch64: Some(56), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x400040)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `mkdirat`
pub static C_MKDIRAT: Schema = Schema { id: 274, base: 274, name: "mkdirat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(258), aarch64: Some(34), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `mknodat`
pub static C_MKNODAT: Schema = Schema { id: 275, base: 275, name: "mknodat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(259), aarch64: Some(33), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::ModeType}),dir:Dir::In,cond:None},
    Arg{name:"dev",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dev}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x2000)})},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `fchownat`
pub static C_FCHOWNAT: Schema = Schema { id: 276, base: 276, name: "fchownat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(260), aarch64: Some(54), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"user",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"group",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"flag",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `futimesat`
pub static C_FUTIMESAT: Schema = Schema { id: 277, base: 277, name: "futimesat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(261), aarch64: None, args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"utimes",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEVAL),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `newfstatat`
pub static C_NEWFSTATAT: Schema = Schema { id: 278, base: 278, name: "newfstatat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(262), aarch64: Some(79), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"statbuf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STAT),len:None},dir:Dir::Out,cond:None},
    Arg{name:"flag",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x401c), from: "include/linux/syscalls.h 6.18" };
/// `unlinkat`
pub static C_UNLINKAT: Schema = Schema { id: 279, base: 279, name: "unlinkat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(263), aarch64: Some(35), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flag",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `renameat`
pub static C_RENAMEAT: Schema = Schema { id: 280, base: 280, name: "renameat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(264), aarch64: Some(38), args: &[
    Arg{name:"olddfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newdfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `linkat`
pub static C_LINKAT: Schema = Schema { id: 281, base: 281, name: "linkat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(265), aarch64: Some(37), args: &[
    Arg{name:"olddfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newdfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `symlinkat`
pub static C_SYMLINKAT: Schema = Schema { id: 282, base: 282, name: "symlinkat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(266), aarch64: Some(36), args: &[
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newdfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `readlinkat`
pub static C_READLINKAT: Schema = Schema { id: 283, base: 283, name: "readlinkat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(267), aarch64: Some(78), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"bufsiz",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `fchmodat`
pub static C_FCHMODAT: Schema = Schema { id: 284, base: 284, name: "fchmodat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(268), aarch64: Some(53), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `faccessat`
pub static C_FACCESSAT: Schema = Schema { id: 285, base: 285, name: "faccessat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(269), aarch64: Some(48), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ACCESS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `pselect6`
pub static C_PSELECT6: Schema = Schema { id: 286, base: 286, name: "pselect6", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(270), aarch64: Some(72), args: &[
    Arg{name:"n",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"inp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"outp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"exp",ty:Type::Fdset(Len{from:LenFrom::Arg(0),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"tsp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"sig",ty:Type::SigsetPack,dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `ppoll`
pub static C_PPOLL: Schema = Schema { id: 287, base: 287, name: "ppoll", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(271), aarch64: Some(73), args: &[
    Arg{name:"ufds",ty:Type::Ptr{elem:Mem::Struct(&structs::S_POLLFD),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::InOut,cond:None},
    Arg{name:"nfds",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"tsp",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"sigmask",ty:Type::Sigset(Len{from:LenFrom::Arg(4),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `unshare`
pub static C_UNSHARE: Schema = Schema { id: 288, base: 288, name: "unshare", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(272), aarch64: Some(97), args: &[
    Arg{name:"unshare_flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_UNSHARE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `set_robust_list`
pub static C_SET_ROBUST_LIST: Schema = Schema { id: 289, base: 289, name: "set_robust_list", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(273), aarch64: Some(99), args: &[
    Arg{name:"head",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `get_robust_list`
pub static C_GET_ROBUST_LIST: Schema = Schema { id: 290, base: 290, name: "get_robust_list", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(274), aarch64: Some(100), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"head_ptr",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"len_ptr",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `splice`
pub static C_SPLICE: Schema = Schema { id: 291, base: 291, name: "splice", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(275), aarch64: Some(76), args: &[
    Arg{name:"fd_in",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"off_in",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
    Arg{name:"fd_out",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"off_out",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SPLICE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `tee`
pub static C_TEE: Schema = Schema { id: 292, base: 292, name: "tee", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(276), aarch64: Some(77), args: &[
    Arg{name:"fdin",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"fdout",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SPLICE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `sync_file_range`
pub static C_SYNC_FILE_RANGE: Schema = Schema { id: 293, base: 293, name: "sync_file_range", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(277), aarch64: Some(84), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"nbytes",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SYNC_FILE_RANGE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `vmsplice`
pub static C_VMSPLICE: Schema = Schema { id: 294, base: 294, name: "vmsplice", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(278), aarch64: Some(75), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"uiov",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"nr_segs",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SPLICE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `move_pages`
pub static C_MOVE_PAGES: Schema = Schema { id: 295, base: 295, name: "move_pages", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(279), aarch64: Some(239), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"nr_pages",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pages",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"nodes",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"status",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MOVE_PAGES)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `utimensat`
pub static C_UTIMENSAT: Schema = Schema { id: 296, base: 296, name: "utimensat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(280), aarch64: Some(88), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"utimes",ty:Type::Ptr{elem:Mem::Struct(&structs::S_UTIMESPEC),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `epoll_pwait`
pub static C_EPOLL_PWAIT: Schema = Schema { id: 297, base: 297, name: "epoll_pwait", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(281), aarch64: Some(22), args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Ptr{elem:Mem::Struct(&structs::S_EPOLL_EVENT),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"maxevents",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"sigmask",ty:Type::Sigset(Len{from:LenFrom::Arg(5),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `signalfd`
pub static C_SIGNALFD: Schema = Schema { id: 298, base: 298, name: "signalfd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(282), aarch64: None, args: &[
    Arg{name:"ufd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"user_mask",ty:Type::Sigset(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sizemask",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x1004), from: "include/linux/syscalls.h 6.18" };
/// `timerfd_create`
pub static C_TIMERFD_CREATE: Schema = Schema { id: 299, base: 299, name: "timerfd_create", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(283), aarch64: Some(85), args: &[
    Arg{name:"clockid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TIMERFD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `eventfd`
pub static C_EVENTFD: Schema = Schema { id: 300, base: 300, name: "eventfd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(284), aarch64: None, args: &[
    Arg{name:"count",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fallocate`
pub static C_FALLOCATE: Schema = Schema { id: 301, base: 301, name: "fallocate", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(285), aarch64: Some(47), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FALLOCATE)}),dir:Dir::In,cond:None},
    Arg{name:"offset",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `timerfd_settime`
pub static C_TIMERFD_SETTIME: Schema = Schema { id: 302, base: 302, name: "timerfd_settime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(286), aarch64: Some(86), args: &[
    Arg{name:"ufd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_TIMERFD_SETTIME)}),dir:Dir::In,cond:None},
    Arg{name:"utmr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"otmr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `timerfd_gettime`
pub static C_TIMERFD_GETTIME: Schema = Schema { id: 303, base: 303, name: "timerfd_gettime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(287), aarch64: Some(87), args: &[
    Arg{name:"ufd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"otmr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_ITIMERSPEC),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `accept4`
pub static C_ACCEPT4: Schema = Schema { id: 304, base: 304, name: "accept4", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(288), aarch64: Some(242), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"upeer_sockaddr",ty:Type::Sockaddr(Len{from:LenFrom::Deref(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"upeer_addrlen",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SOCK_FLAGS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `signalfd4`
pub static C_SIGNALFD4: Schema = Schema { id: 305, base: 305, name: "signalfd4", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(289), aarch64: Some(74), args: &[
    Arg{name:"ufd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"user_mask",ty:Type::Sigset(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sizemask",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SIGNALFD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x1004), from: "include/linux/syscalls.h 6.18" };
/// `eventfd2`
pub static C_EVENTFD2: Schema = Schema { id: 306, base: 306, name: "eventfd2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(290), aarch64: Some(19), args: &[
    Arg{name:"count",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_EVENTFD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `epoll_create1`
pub static C_EPOLL_CREATE1: Schema = Schema { id: 307, base: 307, name: "epoll_create1", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(291), aarch64: Some(20), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_EPOLL_CREATE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `dup3`
pub static C_DUP3: Schema = Schema { id: 308, base: 308, name: "dup3", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(292), aarch64: Some(24), args: &[
    Arg{name:"oldfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"newfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_DUP3)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pipe2`
pub static C_PIPE2: Schema = Schema { id: 309, base: 309, name: "pipe2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(293), aarch64: Some(59), args: &[
    Arg{name:"fildes",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PIPE2)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `inotify_init1`
pub static C_INOTIFY_INIT1: Schema = Schema { id: 310, base: 310, name: "inotify_init1", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(294), aarch64: Some(26), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_INOTIFY_INIT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `preadv`
pub static C_PREADV: Schema = Schema { id: 311, base: 311, name: "preadv", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(295), aarch64: Some(69), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_l",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_h",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x0)})},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pwritev`
pub static C_PWRITEV: Schema = Schema { id: 312, base: 312, name: "pwritev", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(296), aarch64: Some(70), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_l",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_h",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x0)})},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `rt_tgsigqueueinfo`
pub static C_RT_TGSIGQUEUEINFO: Schema = Schema { id: 313, base: 313, name: "rt_tgsigqueueinfo", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(297), aarch64: Some(240), args: &[
    Arg{name:"tgid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Tid}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"uinfo",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGINFO),len:None},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1400), from: "include/linux/syscalls.h 6.18" };
/// `perf_event_open`
pub static C_PERF_EVENT_OPEN: Schema = Schema { id: 314, base: 314, name: "perf_event_open", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(298), aarch64: Some(241), args: &[
    Arg{name:"attr_uptr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_PERF_EVENT_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"cpu",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"group_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PERF_EVENT_OPEN)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `recvmmsg`
pub static C_RECVMMSG: Schema = Schema { id: 315, base: 315, name: "recvmmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(299), aarch64: Some(243), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"mmsg",ty:Type::Mmsghdr(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `fanotify_init`
pub static C_FANOTIFY_INIT: Schema = Schema { id: 316, base: 316, name: "fanotify_init", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(300), aarch64: Some(262), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FANOTIFY_INIT)}),dir:Dir::In,cond:None},
    Arg{name:"event_f_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fanotify_mark`
pub static C_FANOTIFY_MARK: Schema = Schema { id: 317, base: 317, name: "fanotify_mark", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(301), aarch64: Some(263), args: &[
    Arg{name:"fanotify_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FANOTIFY_MARK)}),dir:Dir::In,cond:None},
    Arg{name:"mask",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_FANOTIFY_MASK)}),dir:Dir::In,cond:None},
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `prlimit64`
pub static C_PRLIMIT64: Schema = Schema { id: 318, base: 318, name: "prlimit64", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(302), aarch64: Some(261), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"resource",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_RESOURCE)}),dir:Dir::In,cond:None},
    Arg{name:"new_rlim",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RLIMIT64),len:None},dir:Dir::In,cond:None},
    Arg{name:"old_rlim",ty:Type::Ptr{elem:Mem::Struct(&structs::S_RLIMIT64),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `name_to_handle_at`
pub static C_NAME_TO_HANDLE_AT: Schema = Schema { id: 319, base: 319, name: "name_to_handle_at", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(303), aarch64: Some(264), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"handle",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FILE_HANDLE),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"mnt_id",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"flag",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT_HANDLE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `open_by_handle_at`
pub static C_OPEN_BY_HANDLE_AT: Schema = Schema { id: 320, base: 320, name: "open_by_handle_at", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(304), aarch64: Some(265), args: &[
    Arg{name:"mountdirfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"handle",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FILE_HANDLE),len:None},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `clock_adjtime`
pub static C_CLOCK_ADJTIME: Schema = Schema { id: 321, base: 321, name: "clock_adjtime", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(305), aarch64: Some(266), args: &[
    Arg{name:"which_clock",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
    Arg{name:"utx",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMEX),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1), from: "include/linux/syscalls.h 6.18" };
/// `syncfs`
pub static C_SYNCFS: Schema = Schema { id: 322, base: 322, name: "syncfs", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(306), aarch64: Some(267), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `sendmmsg`
pub static C_SENDMMSG: Schema = Schema { id: 323, base: 323, name: "sendmmsg", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(307), aarch64: Some(269), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"mmsg",ty:Type::Mmsghdr(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::InOut,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MSG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x200), from: "include/linux/syscalls.h 6.18" };
/// `setns`
pub static C_SETNS: Schema = Schema { id: 324, base: 324, name: "setns", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(308), aarch64: Some(268), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SETNS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `getcpu`
pub static C_GETCPU: Schema = Schema { id: 325, base: 325, name: "getcpu", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(309), aarch64: Some(168), args: &[
    Arg{name:"cpup",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"nodep",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::Out,cond:None},
    Arg{name:"unused",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `process_vm_readv`
pub static C_PROCESS_VM_READV: Schema = Schema { id: 326, base: 326, name: "process_vm_readv", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(310), aarch64: Some(270), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"lvec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"liovcnt",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"rvec",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IOVEC),len:Some(Len{from:LenFrom::Arg(4),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"riovcnt",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `process_vm_writev`
pub static C_PROCESS_VM_WRITEV: Schema = Schema { id: 327, base: 327, name: "process_vm_writev", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(311), aarch64: Some(271), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"lvec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"liovcnt",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"rvec",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IOVEC),len:Some(Len{from:LenFrom::Arg(4),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"riovcnt",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `kcmp`
pub static C_KCMP: Schema = Schema { id: 328, base: 328, name: "kcmp", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(312), aarch64: Some(272), args: &[
    Arg{name:"pid1",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"pid2",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"type",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_KCMP)}),dir:Dir::In,cond:None},
    Arg{name:"idx1",ty:Type::Switch{table:&switches::W_KCMP,on:2,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"idx2",ty:Type::Switch{table:&switches::W_KCMP,on:2,on2:None,nth:1},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `finit_module`
pub static C_FINIT_MODULE: Schema = Schema { id: 329, base: 329, name: "finit_module", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(313), aarch64: Some(273), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"uargs",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_INIT_MODULE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `sched_setattr`
pub static C_SCHED_SETATTR: Schema = Schema { id: 330, base: 330, name: "sched_setattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(314), aarch64: Some(274), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"uattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SCHED_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `sched_getattr`
pub static C_SCHED_GETATTR: Schema = Schema { id: 331, base: 331, name: "sched_getattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(315), aarch64: Some(275), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"uattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SCHED_ATTR),len:None},dir:Dir::Out,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `renameat2`
pub static C_RENAMEAT2: Schema = Schema { id: 332, base: 332, name: "renameat2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(316), aarch64: Some(276), args: &[
    Arg{name:"olddfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"oldname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"newdfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"newname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_RENAMEAT2)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `seccomp`
pub static C_SECCOMP: Schema = Schema { id: 333, base: 333, name: "seccomp", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(317), aarch64: Some(277), args: &[
    Arg{name:"op",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_SECCOMP_OP)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SECCOMP_FILTER)}),dir:Dir::In,cond:None},
    Arg{name:"uargs",ty:Type::Switch{table:&switches::W_SECCOMP,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `getrandom`
pub static C_GETRANDOM: Schema = Schema { id: 334, base: 334, name: "getrandom", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(318), aarch64: Some(278), args: &[
    Arg{name:"buf",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_GETRANDOM)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `memfd_create`
pub static C_MEMFD_CREATE: Schema = Schema { id: 335, base: 335, name: "memfd_create", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(319), aarch64: Some(279), args: &[
    Arg{name:"uname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MFD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `kexec_file_load`
pub static C_KEXEC_FILE_LOAD: Schema = Schema { id: 336, base: 336, name: "kexec_file_load", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(320), aarch64: Some(294), args: &[
    Arg{name:"kernel_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"initrd_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmdline_len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"cmdline_ptr",ty:Type::Bytes(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_KEXEC_FILE_LOAD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `bpf`
pub static C_BPF: Schema = Schema { id: 337, base: 337, name: "bpf", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(321), aarch64: Some(280), args: &[
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_BPF_CMD)}),dir:Dir::In,cond:None},
    Arg{name:"uattr",ty:Type::Switch{table:&switches::W_BPF,on:0,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `execveat`
pub static C_EXECVEAT: Schema = Schema { id: 338, base: 338, name: "execveat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(322), aarch64: Some(281), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"argv",ty:Type::Strv,dir:Dir::In,cond:None},
    Arg{name:"envp",ty:Type::Envv,dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT_EXECVE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x40c), from: "include/linux/syscalls.h 6.18" };
/// `userfaultfd`
pub static C_USERFAULTFD: Schema = Schema { id: 339, base: 339, name: "userfaultfd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(323), aarch64: Some(282), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_USERFAULTFD)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `membarrier`
pub static C_MEMBARRIER: Schema = Schema { id: 340, base: 340, name: "membarrier", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(324), aarch64: Some(283), args: &[
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_MEMBARRIER)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MEMBARRIER_FLAGS)}),dir:Dir::In,cond:None},
    Arg{name:"cpu_id",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:Some(Cond{on:1,test:Test::Any(0x1)})},
], ret: Ret::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MEMBARRIER_CMDS)}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mlock2`
pub static C_MLOCK2: Schema = Schema { id: 341, base: 341, name: "mlock2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(325), aarch64: Some(284), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MLOCK2)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `copy_file_range`
pub static C_COPY_FILE_RANGE: Schema = Schema { id: 342, base: 342, name: "copy_file_range", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(326), aarch64: Some(285), args: &[
    Arg{name:"fd_in",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"off_in",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
    Arg{name:"fd_out",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"off_out",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),len:None},dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `preadv2`
pub static C_PREADV2: Schema = Schema { id: 343, base: 343, name: "preadv2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(327), aarch64: Some(286), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_l",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_h",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x0)})},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_RWF)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pwritev2`
pub static C_PWRITEV2: Schema = Schema { id: 344, base: 344, name: "pwritev2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(328), aarch64: Some(287), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Iov(Len{from:LenFrom::Arg(2),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_l",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"pos_h",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:Some(Cond{on:2,test:Test::Any(0x0)})},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_RWF)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `pkey_mprotect`
pub static C_PKEY_MPROTECT: Schema = Schema { id: 345, base: 345, name: "pkey_mprotect", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(329), aarch64: Some(288), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"prot",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PROT)}),dir:Dir::In,cond:None},
    Arg{name:"pkey",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `pkey_alloc`
pub static C_PKEY_ALLOC: Schema = Schema { id: 346, base: 346, name: "pkey_alloc", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(330), aarch64: Some(289), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"init_val",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Flags(&flags::T_PKEY_ACCESS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `pkey_free`
pub static C_PKEY_FREE: Schema = Schema { id: 347, base: 347, name: "pkey_free", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(331), aarch64: Some(290), args: &[
    Arg{name:"pkey",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `statx`
pub static C_STATX: Schema = Schema { id: 348, base: 348, name: "statx", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(332), aarch64: Some(291), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_STATX_FLAGS)}),dir:Dir::In,cond:None},
    Arg{name:"mask",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_STATX_MASK)}),dir:Dir::In,cond:None},
    Arg{name:"buffer",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STATX),len:None},dir:Dir::Out,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x401c), from: "include/linux/syscalls.h 6.18" };
/// `io_pgetevents`
pub static C_IO_PGETEVENTS: Schema = Schema { id: 349, base: 349, name: "io_pgetevents", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(333), aarch64: Some(292), args: &[
    Arg{name:"ctx_id",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"min_nr",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"nr",ty:Type::Int(Int{size:8,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IO_EVENT),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"usig",ty:Type::SigsetPack,dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `rseq`
pub static C_RSEQ: Schema = Schema { id: 350, base: 350, name: "rseq", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(334), aarch64: Some(293), args: &[
    Arg{name:"rseq",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"rseq_len",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_RSEQ)}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `uretprobe`
pub static C_URETPROBE: Schema = Schema { id: 351, base: 351, name: "uretprobe", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(335), aarch64: None, args: &[
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `uprobe`
pub static C_UPROBE: Schema = Schema { id: 352, base: 352, name: "uprobe", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(336), aarch64: None, args: &[
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `pidfd_send_signal`
pub static C_PIDFD_SEND_SIGNAL: Schema = Schema { id: 353, base: 353, name: "pidfd_send_signal", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(424), aarch64: Some(424), args: &[
    Arg{name:"pidfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"sig",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Signal}),dir:Dir::In,cond:None},
    Arg{name:"info",ty:Type::Ptr{elem:Mem::Struct(&structs::S_SIGINFO),len:None},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PIDFD_SIGNAL)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1404), from: "include/linux/syscalls.h 6.18" };
/// `io_uring_setup`
pub static C_IO_URING_SETUP: Schema = Schema { id: 354, base: 354, name: "io_uring_setup", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(425), aarch64: Some(425), args: &[
    Arg{name:"entries",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"params",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IO_URING_PARAMS),len:None},dir:Dir::InOut,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `io_uring_enter`
pub static C_IO_URING_ENTER: Schema = Schema { id: 355, base: 355, name: "io_uring_enter", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(426), aarch64: Some(426), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"to_submit",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"min_complete",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_IO_URING_ENTER)}),dir:Dir::In,cond:None},
    Arg{name:"argp",ty:Type::Switch{table:&switches::W_IO_URING_ENTER,on:3,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"argsz",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x1004), from: "include/linux/syscalls.h 6.18" };
/// `io_uring_register`
pub static C_IO_URING_REGISTER: Schema = Schema { id: 356, base: 356, name: "io_uring_register", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(427), aarch64: Some(427), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"opcode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_IO_URING_REGISTER)}),dir:Dir::In,cond:None},
    Arg{name:"arg",ty:Type::Switch{table:&switches::W_IO_URING_REGISTER,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"nr_args",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x104), from: "include/linux/syscalls.h 6.18" };
/// `open_tree`
pub static C_OPEN_TREE: Schema = Schema { id: 357, base: 357, name: "open_tree", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(428), aarch64: Some(428), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN_TREE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `move_mount`
pub static C_MOVE_MOUNT: Schema = Schema { id: 358, base: 358, name: "move_mount", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(429), aarch64: Some(429), args: &[
    Arg{name:"from_dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"from_pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"to_dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"to_pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MOVE_MOUNT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `fsopen`
pub static C_FSOPEN: Schema = Schema { id: 359, base: 359, name: "fsopen", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(430), aarch64: Some(430), args: &[
    Arg{name:"_fs_name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FSOPEN)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fsconfig`
pub static C_FSCONFIG: Schema = Schema { id: 360, base: 360, name: "fsconfig", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(431), aarch64: Some(431), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_FSCONFIG)}),dir:Dir::In,cond:None},
    Arg{name:"_key",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"_value",ty:Type::Switch{table:&switches::W_FSCONFIG,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"aux",ty:Type::Switch{table:&switches::W_FSCONFIG,on:1,on2:None,nth:1},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `fsmount`
pub static C_FSMOUNT: Schema = Schema { id: 361, base: 361, name: "fsmount", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(432), aarch64: Some(432), args: &[
    Arg{name:"fs_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FSMOUNT)}),dir:Dir::In,cond:None},
    Arg{name:"attr_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT_ATTR)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fspick`
pub static C_FSPICK: Schema = Schema { id: 362, base: 362, name: "fspick", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(433), aarch64: Some(433), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FSPICK)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `pidfd_open`
pub static C_PIDFD_OPEN: Schema = Schema { id: 363, base: 363, name: "pidfd_open", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(434), aarch64: Some(434), args: &[
    Arg{name:"pid",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Pid}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_PIDFD_OPEN)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `clone3`
pub static C_CLONE3: Schema = Schema { id: 364, base: 364, name: "clone3", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(435), aarch64: Some(435), args: &[
    Arg{name:"uargs",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CLONE_ARGS),len:None},dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Pid}), sets: Sets(0x400), from: "include/linux/syscalls.h 6.18" };
/// `close_range`
pub static C_CLOSE_RANGE: Schema = Schema { id: 365, base: 365, name: "close_range", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(436), aarch64: Some(436), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"max_fd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_CLOSE_RANGE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `openat2`
pub static C_OPENAT2: Schema = Schema { id: 366, base: 366, name: "openat2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(437), aarch64: Some(437), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"how",ty:Type::Ptr{elem:Mem::Struct(&structs::S_OPEN_HOW),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `pidfd_getfd`
pub static C_PIDFD_GETFD: Schema = Schema { id: 367, base: 367, name: "pidfd_getfd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(438), aarch64: Some(438), args: &[
    Arg{name:"pidfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `faccessat2`
pub static C_FACCESSAT2: Schema = Schema { id: 368, base: 368, name: "faccessat2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(439), aarch64: Some(439), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_ACCESS)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT_ACCESS)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `process_madvise`
pub static C_PROCESS_MADVISE: Schema = Schema { id: 369, base: 369, name: "process_madvise", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(440), aarch64: Some(440), args: &[
    Arg{name:"pidfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"vec",ty:Type::Ptr{elem:Mem::Struct(&structs::S_IOVEC),len:Some(Len{from:LenFrom::Arg(2),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"vlen",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"behavior",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_MADVISE)}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `epoll_pwait2`
pub static C_EPOLL_PWAIT2: Schema = Schema { id: 370, base: 370, name: "epoll_pwait2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(441), aarch64: Some(441), args: &[
    Arg{name:"epfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"events",ty:Type::Ptr{elem:Mem::Struct(&structs::S_EPOLL_EVENT),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"maxevents",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"sigmask",ty:Type::Sigset(Len{from:LenFrom::Arg(5),mul:1,div:1}),dir:Dir::In,cond:None},
    Arg{name:"sigsetsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `mount_setattr`
pub static C_MOUNT_SETATTR: Schema = Schema { id: 371, base: 371, name: "mount_setattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(442), aarch64: Some(442), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"path",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MOUNT_SETATTR)}),dir:Dir::In,cond:None},
    Arg{name:"uattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MOUNT_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `quotactl_fd`
pub static C_QUOTACTL_FD: Schema = Schema { id: 372, base: 372, name: "quotactl_fd", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(443), aarch64: Some(443), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cmd",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_QUOTACTL)}),dir:Dir::In,cond:None},
    Arg{name:"id",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Uid}),dir:Dir::In,cond:None},
    Arg{name:"addr",ty:Type::Switch{table:&switches::W_QUOTACTL,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `landlock_create_ruleset`
pub static C_LANDLOCK_CREATE_RULESET: Schema = Schema { id: 373, base: 373, name: "landlock_create_ruleset", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(444), aarch64: Some(444), args: &[
    Arg{name:"attr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_LANDLOCK_RULESET_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_CREATE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `landlock_add_rule`
pub static C_LANDLOCK_ADD_RULE: Schema = Schema { id: 374, base: 374, name: "landlock_add_rule", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(445), aarch64: Some(445), args: &[
    Arg{name:"ruleset_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"rule_type",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_LANDLOCK_RULE)}),dir:Dir::In,cond:None},
    Arg{name:"rule_attr",ty:Type::Switch{table:&switches::W_LANDLOCK_ADD_RULE,on:1,on2:None,nth:0},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_ADD_RULE)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `landlock_restrict_self`
pub static C_LANDLOCK_RESTRICT_SELF: Schema = Schema { id: 375, base: 375, name: "landlock_restrict_self", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(446), aarch64: Some(446), args: &[
    Arg{name:"ruleset_fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LANDLOCK_RESTRICT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `memfd_secret`
pub static C_MEMFD_SECRET: Schema = Schema { id: 376, base: 376, name: "memfd_secret", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(447), aarch64: Some(447), args: &[
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_MEMFD_SECRET)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `process_mrelease`
pub static C_PROCESS_MRELEASE: Schema = Schema { id: 377, base: 377, name: "process_mrelease", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(448), aarch64: Some(448), args: &[
    Arg{name:"pidfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `futex_waitv`
pub static C_FUTEX_WAITV: Schema = Schema { id: 378, base: 378, name: "futex_waitv", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(449), aarch64: Some(449), args: &[
    Arg{name:"waiters",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FUTEX_WAITV),len:Some(Len{from:LenFrom::Arg(1),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"nr_futexes",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"clockid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `set_mempolicy_home_node`
pub static C_SET_MEMPOLICY_HOME_NODE: Schema = Schema { id: 379, base: 379, name: "set_mempolicy_home_node", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(450), aarch64: Some(450), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"home_node",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `cachestat`
pub static C_CACHESTAT: Schema = Schema { id: 380, base: 380, name: "cachestat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(451), aarch64: Some(451), args: &[
    Arg{name:"fd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Fd}),dir:Dir::In,cond:None},
    Arg{name:"cstat_range",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CACHESTAT_RANGE),len:None},dir:Dir::In,cond:None},
    Arg{name:"cstat",ty:Type::Ptr{elem:Mem::Struct(&structs::S_CACHESTAT),len:None},dir:Dir::Out,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x4), from: "include/linux/syscalls.h 6.18" };
/// `fchmodat2`
pub static C_FCHMODAT2: Schema = Schema { id: 381, base: 381, name: "fchmodat2", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(452), aarch64: Some(452), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"mode",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Oct}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `map_shadow_stack`
pub static C_MAP_SHADOW_STACK: Schema = Schema { id: 382, base: 382, name: "map_shadow_stack", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(453), aarch64: Some(453), args: &[
    Arg{name:"addr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_SHADOW_STACK)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Addr}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `futex_wake`
pub static C_FUTEX_WAKE: Schema = Schema { id: 383, base: 383, name: "futex_wake", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(454), aarch64: Some(454), args: &[
    Arg{name:"uaddr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"mask",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"nr",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FUTEX2)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `futex_wait`
pub static C_FUTEX_WAIT: Schema = Schema { id: 384, base: 384, name: "futex_wait", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(455), aarch64: Some(455), args: &[
    Arg{name:"uaddr",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"val",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"mask",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_FUTEX2)}),dir:Dir::In,cond:None},
    Arg{name:"timeout",ty:Type::Ptr{elem:Mem::Struct(&structs::S_TIMESPEC),len:None},dir:Dir::In,cond:None},
    Arg{name:"clockid",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_CLOCK)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `futex_requeue`
pub static C_FUTEX_REQUEUE: Schema = Schema { id: 385, base: 385, name: "futex_requeue", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(456), aarch64: Some(456), args: &[
    Arg{name:"waiters",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FUTEX_WAITV),len:Some(Len{from:LenFrom::Const(2),mul:1,div:1})},dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"nr_wake",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"nr_requeue",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `statmount`
pub static C_STATMOUNT: Schema = Schema { id: 386, base: 386, name: "statmount", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(457), aarch64: Some(457), args: &[
    Arg{name:"req",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MNT_ID_REQ),len:None},dir:Dir::In,cond:None},
    Arg{name:"buf",ty:Type::Ptr{elem:Mem::Struct(&structs::S_STATMOUNT),len:None},dir:Dir::Out,cond:None},
    Arg{name:"bufsize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `listmount`
pub static C_LISTMOUNT: Schema = Schema { id: 387, base: 387, name: "listmount", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(458), aarch64: Some(458), args: &[
    Arg{name:"req",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MNT_ID_REQ),len:None},dir:Dir::In,cond:None},
    Arg{name:"mnt_ids",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"nr_mnt_ids",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LISTMOUNT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `lsm_get_self_attr`
pub static C_LSM_GET_SELF_ATTR: Schema = Schema { id: 388, base: 388, name: "lsm_get_self_attr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(459), aarch64: Some(459), args: &[
    Arg{name:"attr",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_LSM_ATTR)}),dir:Dir::In,cond:None},
    Arg{name:"ctx",ty:Type::Ptr{elem:Mem::Struct(&structs::S_LSM_CTX),len:None},dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_LSM_FLAG)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `lsm_set_self_attr`
pub static C_LSM_SET_SELF_ATTR: Schema = Schema { id: 389, base: 389, name: "lsm_set_self_attr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(460), aarch64: Some(460), args: &[
    Arg{name:"attr",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Enum(&flags::T_LSM_ATTR)}),dir:Dir::In,cond:None},
    Arg{name:"ctx",ty:Type::Ptr{elem:Mem::Struct(&structs::S_LSM_CTX),len:None},dir:Dir::In,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `lsm_list_modules`
pub static C_LSM_LIST_MODULES: Schema = Schema { id: 390, base: 390, name: "lsm_list_modules", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(461), aarch64: Some(461), args: &[
    Arg{name:"ids",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Enum(&flags::T_LSM_ID)}),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Ptr{elem:Mem::Int(Int{size:4,signed:false,fmt:Fmt::Dec}),len:None},dir:Dir::InOut,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.18" };
/// `mseal`
pub static C_MSEAL: Schema = Schema { id: 391, base: 391, name: "mseal", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(462), aarch64: Some(462), args: &[
    Arg{name:"start",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Addr}),dir:Dir::In,cond:None},
    Arg{name:"len",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x100), from: "include/linux/syscalls.h 6.18" };
/// `setxattrat`
pub static C_SETXATTRAT: Schema = Schema { id: 392, base: 392, name: "setxattrat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(463), aarch64: Some(463), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"uargs",ty:Type::Ptr{elem:Mem::Struct(&structs::S_XATTR_ARGS),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `getxattrat`
pub static C_GETXATTRAT: Schema = Schema { id: 393, base: 393, name: "getxattrat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(464), aarch64: Some(464), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
    Arg{name:"uargs",ty:Type::Ptr{elem:Mem::Struct(&structs::S_XATTR_ARGS),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `listxattrat`
pub static C_LISTXATTRAT: Schema = Schema { id: 394, base: 394, name: "listxattrat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(465), aarch64: Some(465), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
    Arg{name:"list",ty:Type::Bytes(Len{from:LenFrom::Ret,mul:1,div:1}),dir:Dir::Out,cond:None},
    Arg{name:"size",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `removexattrat`
pub static C_REMOVEXATTRAT: Schema = Schema { id: 395, base: 395, name: "removexattrat", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(466), aarch64: Some(466), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"pathname",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
    Arg{name:"name",ty:Type::Str(StrKind::Text),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `open_tree_attr`
pub static C_OPEN_TREE_ATTR: Schema = Schema { id: 396, base: 396, name: "open_tree_attr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(467), aarch64: Some(467), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_OPEN_TREE)}),dir:Dir::In,cond:None},
    Arg{name:"uattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_MOUNT_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Fd}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `file_getattr`
pub static C_FILE_GETATTR: Schema = Schema { id: 397, base: 397, name: "file_getattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(468), aarch64: Some(468), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"ufattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FILE_ATTR),len:None},dir:Dir::Out,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `file_setattr`
pub static C_FILE_SETATTR: Schema = Schema { id: 398, base: 398, name: "file_setattr", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(469), aarch64: Some(469), args: &[
    Arg{name:"dfd",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dirfd}),dir:Dir::In,cond:None},
    Arg{name:"filename",ty:Type::Str(StrKind::Path),dir:Dir::In,cond:None},
    Arg{name:"ufattr",ty:Type::Ptr{elem:Mem::Struct(&structs::S_FILE_ATTR),len:None},dir:Dir::In,cond:None},
    Arg{name:"usize",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"at_flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Flags(&flags::T_AT)}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0xc), from: "include/linux/syscalls.h 6.18" };
/// `listns`
pub static C_LISTNS: Schema = Schema { id: 399, base: 399, name: "listns", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(470), aarch64: Some(470), args: &[
    Arg{name:"req",ty:Type::Ptr{elem:Mem::Struct(&structs::S_NS_ID_REQ),len:None},dir:Dir::In,cond:None},
    Arg{name:"ns_ids",ty:Type::Ptr{elem:Mem::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),len:Some(Len{from:LenFrom::Ret,mul:1,div:1})},dir:Dir::Out,cond:None},
    Arg{name:"nr_ns_ids",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"flags",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:false,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 6.19" };
/// `rseq_slice_yield`
pub static C_RSEQ_SLICE_YIELD: Schema = Schema { id: 400, base: 400, name: "rseq_slice_yield", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: Some(471), aarch64: Some(471), args: &[
], ret: Ret::Int(Int{size:4,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/linux/syscalls.h 7.0" };
/// `raw`
pub static C_RAW: Schema = Schema { id: 401, base: 401, name: "raw", class: Class::Syscall, extent: Extent::Span, more_caps: false, x86_64: None, aarch64: None, args: &[
    Arg{name:"nr",ty:Type::Int(Int{size:4,signed:true,fmt:Fmt::Dec}),dir:Dir::In,cond:None},
    Arg{name:"arch",ty:Type::Int(Int{size:4,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg0",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg1",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg2",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg3",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg4",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
    Arg{name:"arg5",ty:Type::Int(Int{size:8,signed:false,fmt:Fmt::Hex}),dir:Dir::In,cond:None},
], ret: Ret::Int(Int{size:8,signed:true,fmt:Fmt::Dec}), sets: Sets(0x0), from: "include/uapi/linux/ptrace.h 6.18" };
/// All schemas; the index is the id.
pub static SCHEMAS: &[&Schema] = &[
    &P_ATTACH,
    &P_DETACH,
    &P_EXEC,
    &P_EXIT,
    &P_FD,
    &P_FORK,
    &P_FUNCTION,
    &P_INFLIGHT,
    &P_MAP,
    &P_PAUSED,
    &P_RESUMED,
    &P_SIGNAL,
    &P_STACK,
    &P_STOP,
    &P_SUPERSEDED,
    &P_UNTRACED,
    &C_READ,
    &C_WRITE,
    &C_OPEN,
    &C_CLOSE,
    &C_STAT,
    &C_FSTAT,
    &C_LSTAT,
    &C_POLL,
    &C_LSEEK,
    &C_MMAP,
    &C_MPROTECT,
    &C_MUNMAP,
    &C_BRK,
    &C_RT_SIGACTION,
    &C_RT_SIGPROCMASK,
    &C_RT_SIGRETURN,
    &C_IOCTL,
    &C_PREAD64,
    &C_PWRITE64,
    &C_READV,
    &C_WRITEV,
    &C_ACCESS,
    &C_PIPE,
    &C_SELECT,
    &C_SCHED_YIELD,
    &C_MREMAP,
    &C_MSYNC,
    &C_MINCORE,
    &C_MADVISE,
    &C_SHMGET,
    &C_SHMAT,
    &C_SHMCTL,
    &C_DUP,
    &C_DUP2,
    &C_PAUSE,
    &C_NANOSLEEP,
    &C_GETITIMER,
    &C_ALARM,
    &C_SETITIMER,
    &C_GETPID,
    &C_SENDFILE,
    &C_SOCKET,
    &C_CONNECT,
    &C_ACCEPT,
    &C_SENDTO,
    &C_RECVFROM,
    &C_SENDMSG,
    &C_RECVMSG,
    &C_SHUTDOWN,
    &C_BIND,
    &C_LISTEN,
    &C_GETSOCKNAME,
    &C_GETPEERNAME,
    &C_SOCKETPAIR,
    &C_SETSOCKOPT,
    &C_GETSOCKOPT,
    &C_CLONE,
    &C_FORK,
    &C_VFORK,
    &C_EXECVE,
    &C_EXIT,
    &C_WAIT4,
    &C_KILL,
    &C_UNAME,
    &C_SEMGET,
    &C_SEMOP,
    &C_SEMCTL,
    &C_SHMDT,
    &C_MSGGET,
    &C_MSGSND,
    &C_MSGRCV,
    &C_MSGCTL,
    &C_FCNTL,
    &C_FLOCK,
    &C_FSYNC,
    &C_FDATASYNC,
    &C_TRUNCATE,
    &C_FTRUNCATE,
    &C_GETDENTS,
    &C_GETCWD,
    &C_CHDIR,
    &C_FCHDIR,
    &C_RENAME,
    &C_MKDIR,
    &C_RMDIR,
    &C_CREAT,
    &C_LINK,
    &C_UNLINK,
    &C_SYMLINK,
    &C_READLINK,
    &C_CHMOD,
    &C_FCHMOD,
    &C_CHOWN,
    &C_FCHOWN,
    &C_LCHOWN,
    &C_UMASK,
    &C_GETTIMEOFDAY,
    &C_GETRLIMIT,
    &C_GETRUSAGE,
    &C_SYSINFO,
    &C_TIMES,
    &C_PTRACE,
    &C_GETUID,
    &C_SYSLOG,
    &C_GETGID,
    &C_SETUID,
    &C_SETGID,
    &C_GETEUID,
    &C_GETEGID,
    &C_SETPGID,
    &C_GETPPID,
    &C_GETPGRP,
    &C_SETSID,
    &C_SETREUID,
    &C_SETREGID,
    &C_GETGROUPS,
    &C_SETGROUPS,
    &C_SETRESUID,
    &C_GETRESUID,
    &C_SETRESGID,
    &C_GETRESGID,
    &C_GETPGID,
    &C_SETFSUID,
    &C_SETFSGID,
    &C_GETSID,
    &C_CAPGET,
    &C_CAPSET,
    &C_RT_SIGPENDING,
    &C_RT_SIGTIMEDWAIT,
    &C_RT_SIGQUEUEINFO,
    &C_RT_SIGSUSPEND,
    &C_SIGALTSTACK,
    &C_UTIME,
    &C_MKNOD,
    &C_USELIB,
    &C_PERSONALITY,
    &C_USTAT,
    &C_STATFS,
    &C_FSTATFS,
    &C_SYSFS,
    &C_GETPRIORITY,
    &C_SETPRIORITY,
    &C_SCHED_SETPARAM,
    &C_SCHED_GETPARAM,
    &C_SCHED_SETSCHEDULER,
    &C_SCHED_GETSCHEDULER,
    &C_SCHED_GET_PRIORITY_MAX,
    &C_SCHED_GET_PRIORITY_MIN,
    &C_SCHED_RR_GET_INTERVAL,
    &C_MLOCK,
    &C_MUNLOCK,
    &C_MLOCKALL,
    &C_MUNLOCKALL,
    &C_VHANGUP,
    &C_MODIFY_LDT,
    &C_PIVOT_ROOT,
    &C__SYSCTL,
    &C_PRCTL,
    &C_ARCH_PRCTL,
    &C_ADJTIMEX,
    &C_SETRLIMIT,
    &C_CHROOT,
    &C_SYNC,
    &C_ACCT,
    &C_SETTIMEOFDAY,
    &C_MOUNT,
    &C_UMOUNT2,
    &C_SWAPON,
    &C_SWAPOFF,
    &C_REBOOT,
    &C_SETHOSTNAME,
    &C_SETDOMAINNAME,
    &C_IOPL,
    &C_IOPERM,
    &C_CREATE_MODULE,
    &C_INIT_MODULE,
    &C_DELETE_MODULE,
    &C_GET_KERNEL_SYMS,
    &C_QUERY_MODULE,
    &C_QUOTACTL,
    &C_NFSSERVCTL,
    &C_GETPMSG,
    &C_PUTPMSG,
    &C_AFS_SYSCALL,
    &C_TUXCALL,
    &C_SECURITY,
    &C_GETTID,
    &C_READAHEAD,
    &C_SETXATTR,
    &C_LSETXATTR,
    &C_FSETXATTR,
    &C_GETXATTR,
    &C_LGETXATTR,
    &C_FGETXATTR,
    &C_LISTXATTR,
    &C_LLISTXATTR,
    &C_FLISTXATTR,
    &C_REMOVEXATTR,
    &C_LREMOVEXATTR,
    &C_FREMOVEXATTR,
    &C_TKILL,
    &C_TIME,
    &C_FUTEX,
    &C_SCHED_SETAFFINITY,
    &C_SCHED_GETAFFINITY,
    &C_SET_THREAD_AREA,
    &C_IO_SETUP,
    &C_IO_DESTROY,
    &C_IO_GETEVENTS,
    &C_IO_SUBMIT,
    &C_IO_CANCEL,
    &C_GET_THREAD_AREA,
    &C_LOOKUP_DCOOKIE,
    &C_EPOLL_CREATE,
    &C_EPOLL_CTL_OLD,
    &C_EPOLL_WAIT_OLD,
    &C_REMAP_FILE_PAGES,
    &C_GETDENTS64,
    &C_SET_TID_ADDRESS,
    &C_RESTART_SYSCALL,
    &C_SEMTIMEDOP,
    &C_FADVISE64,
    &C_TIMER_CREATE,
    &C_TIMER_SETTIME,
    &C_TIMER_GETTIME,
    &C_TIMER_GETOVERRUN,
    &C_TIMER_DELETE,
    &C_CLOCK_SETTIME,
    &C_CLOCK_GETTIME,
    &C_CLOCK_GETRES,
    &C_CLOCK_NANOSLEEP,
    &C_EXIT_GROUP,
    &C_EPOLL_WAIT,
    &C_EPOLL_CTL,
    &C_TGKILL,
    &C_UTIMES,
    &C_VSERVER,
    &C_MBIND,
    &C_SET_MEMPOLICY,
    &C_GET_MEMPOLICY,
    &C_MQ_OPEN,
    &C_MQ_UNLINK,
    &C_MQ_TIMEDSEND,
    &C_MQ_TIMEDRECEIVE,
    &C_MQ_NOTIFY,
    &C_MQ_GETSETATTR,
    &C_KEXEC_LOAD,
    &C_WAITID,
    &C_ADD_KEY,
    &C_REQUEST_KEY,
    &C_KEYCTL,
    &C_IOPRIO_SET,
    &C_IOPRIO_GET,
    &C_INOTIFY_INIT,
    &C_INOTIFY_ADD_WATCH,
    &C_INOTIFY_RM_WATCH,
    &C_MIGRATE_PAGES,
    &C_OPENAT,
    &C_MKDIRAT,
    &C_MKNODAT,
    &C_FCHOWNAT,
    &C_FUTIMESAT,
    &C_NEWFSTATAT,
    &C_UNLINKAT,
    &C_RENAMEAT,
    &C_LINKAT,
    &C_SYMLINKAT,
    &C_READLINKAT,
    &C_FCHMODAT,
    &C_FACCESSAT,
    &C_PSELECT6,
    &C_PPOLL,
    &C_UNSHARE,
    &C_SET_ROBUST_LIST,
    &C_GET_ROBUST_LIST,
    &C_SPLICE,
    &C_TEE,
    &C_SYNC_FILE_RANGE,
    &C_VMSPLICE,
    &C_MOVE_PAGES,
    &C_UTIMENSAT,
    &C_EPOLL_PWAIT,
    &C_SIGNALFD,
    &C_TIMERFD_CREATE,
    &C_EVENTFD,
    &C_FALLOCATE,
    &C_TIMERFD_SETTIME,
    &C_TIMERFD_GETTIME,
    &C_ACCEPT4,
    &C_SIGNALFD4,
    &C_EVENTFD2,
    &C_EPOLL_CREATE1,
    &C_DUP3,
    &C_PIPE2,
    &C_INOTIFY_INIT1,
    &C_PREADV,
    &C_PWRITEV,
    &C_RT_TGSIGQUEUEINFO,
    &C_PERF_EVENT_OPEN,
    &C_RECVMMSG,
    &C_FANOTIFY_INIT,
    &C_FANOTIFY_MARK,
    &C_PRLIMIT64,
    &C_NAME_TO_HANDLE_AT,
    &C_OPEN_BY_HANDLE_AT,
    &C_CLOCK_ADJTIME,
    &C_SYNCFS,
    &C_SENDMMSG,
    &C_SETNS,
    &C_GETCPU,
    &C_PROCESS_VM_READV,
    &C_PROCESS_VM_WRITEV,
    &C_KCMP,
    &C_FINIT_MODULE,
    &C_SCHED_SETATTR,
    &C_SCHED_GETATTR,
    &C_RENAMEAT2,
    &C_SECCOMP,
    &C_GETRANDOM,
    &C_MEMFD_CREATE,
    &C_KEXEC_FILE_LOAD,
    &C_BPF,
    &C_EXECVEAT,
    &C_USERFAULTFD,
    &C_MEMBARRIER,
    &C_MLOCK2,
    &C_COPY_FILE_RANGE,
    &C_PREADV2,
    &C_PWRITEV2,
    &C_PKEY_MPROTECT,
    &C_PKEY_ALLOC,
    &C_PKEY_FREE,
    &C_STATX,
    &C_IO_PGETEVENTS,
    &C_RSEQ,
    &C_URETPROBE,
    &C_UPROBE,
    &C_PIDFD_SEND_SIGNAL,
    &C_IO_URING_SETUP,
    &C_IO_URING_ENTER,
    &C_IO_URING_REGISTER,
    &C_OPEN_TREE,
    &C_MOVE_MOUNT,
    &C_FSOPEN,
    &C_FSCONFIG,
    &C_FSMOUNT,
    &C_FSPICK,
    &C_PIDFD_OPEN,
    &C_CLONE3,
    &C_CLOSE_RANGE,
    &C_OPENAT2,
    &C_PIDFD_GETFD,
    &C_FACCESSAT2,
    &C_PROCESS_MADVISE,
    &C_EPOLL_PWAIT2,
    &C_MOUNT_SETATTR,
    &C_QUOTACTL_FD,
    &C_LANDLOCK_CREATE_RULESET,
    &C_LANDLOCK_ADD_RULE,
    &C_LANDLOCK_RESTRICT_SELF,
    &C_MEMFD_SECRET,
    &C_PROCESS_MRELEASE,
    &C_FUTEX_WAITV,
    &C_SET_MEMPOLICY_HOME_NODE,
    &C_CACHESTAT,
    &C_FCHMODAT2,
    &C_MAP_SHADOW_STACK,
    &C_FUTEX_WAKE,
    &C_FUTEX_WAIT,
    &C_FUTEX_REQUEUE,
    &C_STATMOUNT,
    &C_LISTMOUNT,
    &C_LSM_GET_SELF_ATTR,
    &C_LSM_SET_SELF_ATTR,
    &C_LSM_LIST_MODULES,
    &C_MSEAL,
    &C_SETXATTRAT,
    &C_GETXATTRAT,
    &C_LISTXATTRAT,
    &C_REMOVEXATTRAT,
    &C_OPEN_TREE_ATTR,
    &C_FILE_GETATTR,
    &C_FILE_SETATTR,
    &C_LISTNS,
    &C_RSEQ_SLICE_YIELD,
    &C_RAW,
];

/// The id of the schema of each x86_64 number, `u16::MAX` for none.
pub static X86_64: &[u16] = &[16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 270, 271, 272, 273, 274, 275, 276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293, 294, 295, 296, 297, 298, 299, 300, 301, 302, 303, 304, 305, 306, 307, 308, 309, 310, 311, 312, 313, 314, 315, 316, 317, 318, 319, 320, 321, 322, 323, 324, 325, 326, 327, 328, 329, 330, 331, 332, 333, 334, 335, 336, 337, 338, 339, 340, 341, 342, 343, 344, 345, 346, 347, 348, 349, 350, 351, 352, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 65535, 353, 354, 355, 356, 357, 358, 359, 360, 361, 362, 363, 364, 365, 366, 367, 368, 369, 370, 371, 372, 373, 374, 375, 376, 377, 378, 379, 380, 381, 382, 383, 384, 385, 386, 387, 388, 389, 390, 391, 392, 393, 394, 395, 396, 397, 398, 399, 400];

/// The names of the i386 calls by number, empty for none.
pub static I386: &[&str] = &["restart_syscall", "exit", "fork", "read", "write", "open", "close", "waitpid", "creat", "link", "unlink", "execve", "chdir", "time", "mknod", "chmod", "lchown", "break", "oldstat", "lseek", "getpid", "mount", "umount", "setuid", "getuid", "stime", "ptrace", "alarm", "oldfstat", "pause", "utime", "stty", "gtty", "access", "nice", "ftime", "sync", "kill", "rename", "mkdir", "rmdir", "dup", "pipe", "times", "prof", "brk", "setgid", "getgid", "signal", "geteuid", "getegid", "acct", "umount2", "lock", "ioctl", "fcntl", "mpx", "setpgid", "ulimit", "oldolduname", "umask", "chroot", "ustat", "dup2", "getppid", "getpgrp", "setsid", "sigaction", "sgetmask", "ssetmask", "setreuid", "setregid", "sigsuspend", "sigpending", "sethostname", "setrlimit", "getrlimit", "getrusage", "gettimeofday", "settimeofday", "getgroups", "setgroups", "select", "symlink", "oldlstat", "readlink", "uselib", "swapon", "reboot", "readdir", "mmap", "munmap", "truncate", "ftruncate", "fchmod", "fchown", "getpriority", "setpriority", "profil", "statfs", "fstatfs", "ioperm", "socketcall", "syslog", "setitimer", "getitimer", "stat", "lstat", "fstat", "olduname", "iopl", "vhangup", "idle", "vm86old", "wait4", "swapoff", "sysinfo", "ipc", "fsync", "sigreturn", "clone", "setdomainname", "uname", "modify_ldt", "adjtimex", "mprotect", "sigprocmask", "create_module", "init_module", "delete_module", "get_kernel_syms", "quotactl", "getpgid", "fchdir", "bdflush", "sysfs", "personality", "afs_syscall", "setfsuid", "setfsgid", "_llseek", "getdents", "_newselect", "flock", "msync", "readv", "writev", "getsid", "fdatasync", "_sysctl", "mlock", "munlock", "mlockall", "munlockall", "sched_setparam", "sched_getparam", "sched_setscheduler", "sched_getscheduler", "sched_yield", "sched_get_priority_max", "sched_get_priority_min", "sched_rr_get_interval", "nanosleep", "mremap", "setresuid", "getresuid", "vm86", "query_module", "poll", "nfsservctl", "setresgid", "getresgid", "prctl", "rt_sigreturn", "rt_sigaction", "rt_sigprocmask", "rt_sigpending", "rt_sigtimedwait", "rt_sigqueueinfo", "rt_sigsuspend", "pread64", "pwrite64", "chown", "getcwd", "capget", "capset", "sigaltstack", "sendfile", "getpmsg", "putpmsg", "vfork", "ugetrlimit", "mmap2", "truncate64", "ftruncate64", "stat64", "lstat64", "fstat64", "lchown32", "getuid32", "getgid32", "geteuid32", "getegid32", "setreuid32", "setregid32", "getgroups32", "setgroups32", "fchown32", "setresuid32", "getresuid32", "setresgid32", "getresgid32", "chown32", "setuid32", "setgid32", "setfsuid32", "setfsgid32", "pivot_root", "mincore", "madvise", "getdents64", "fcntl64", "", "", "gettid", "readahead", "setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr", "tkill", "sendfile64", "futex", "sched_setaffinity", "sched_getaffinity", "set_thread_area", "get_thread_area", "io_setup", "io_destroy", "io_getevents", "io_submit", "io_cancel", "fadvise64", "", "exit_group", "lookup_dcookie", "epoll_create", "epoll_ctl", "epoll_wait", "remap_file_pages", "set_tid_address", "timer_create", "timer_settime", "timer_gettime", "timer_getoverrun", "timer_delete", "clock_settime", "clock_gettime", "clock_getres", "clock_nanosleep", "statfs64", "fstatfs64", "tgkill", "utimes", "fadvise64_64", "vserver", "mbind", "get_mempolicy", "set_mempolicy", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr", "kexec_load", "waitid", "", "add_key", "request_key", "keyctl", "ioprio_set", "ioprio_get", "inotify_init", "inotify_add_watch", "inotify_rm_watch", "migrate_pages", "openat", "mkdirat", "mknodat", "fchownat", "futimesat", "fstatat64", "unlinkat", "renameat", "linkat", "symlinkat", "readlinkat", "fchmodat", "faccessat", "pselect6", "ppoll", "unshare", "set_robust_list", "get_robust_list", "splice", "sync_file_range", "tee", "vmsplice", "move_pages", "getcpu", "epoll_pwait", "utimensat", "signalfd", "timerfd_create", "eventfd", "fallocate", "timerfd_settime", "timerfd_gettime", "signalfd4", "eventfd2", "epoll_create1", "dup3", "pipe2", "inotify_init1", "preadv", "pwritev", "rt_tgsigqueueinfo", "perf_event_open", "recvmmsg", "fanotify_init", "fanotify_mark", "prlimit64", "name_to_handle_at", "open_by_handle_at", "clock_adjtime", "syncfs", "sendmmsg", "setns", "process_vm_readv", "process_vm_writev", "kcmp", "finit_module", "sched_setattr", "sched_getattr", "renameat2", "seccomp", "getrandom", "memfd_create", "bpf", "execveat", "socket", "socketpair", "bind", "connect", "listen", "accept4", "getsockopt", "setsockopt", "getsockname", "getpeername", "sendto", "sendmsg", "recvfrom", "recvmsg", "shutdown", "userfaultfd", "membarrier", "mlock2", "copy_file_range", "preadv2", "pwritev2", "pkey_mprotect", "pkey_alloc", "pkey_free", "statx", "arch_prctl", "io_pgetevents", "rseq", "", "", "", "", "", "", "semget", "semctl", "shmget", "shmctl", "shmat", "shmdt", "msgget", "msgsnd", "msgrcv", "msgctl", "clock_gettime64", "clock_settime64", "clock_adjtime64", "clock_getres_time64", "clock_nanosleep_time64", "timer_gettime64", "timer_settime64", "timerfd_gettime64", "timerfd_settime64", "utimensat_time64", "pselect6_time64", "ppoll_time64", "", "io_pgetevents_time64", "recvmmsg_time64", "mq_timedsend_time64", "mq_timedreceive_time64", "semtimedop_time64", "rt_sigtimedwait_time64", "futex_time64", "sched_rr_get_interval_time64", "pidfd_send_signal", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "pidfd_open", "clone3", "close_range", "openat2", "pidfd_getfd", "faccessat2", "process_madvise", "epoll_pwait2", "mount_setattr", "quotactl_fd", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "memfd_secret", "process_mrelease", "futex_waitv", "set_mempolicy_home_node", "cachestat", "fchmodat2", "map_shadow_stack", "futex_wake", "futex_wait", "futex_requeue", "statmount", "listmount", "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "mseal", "setxattrat", "getxattrat", "listxattrat", "removexattrat", "open_tree_attr", "file_getattr", "file_setattr", "listns", "rseq_slice_yield"];
