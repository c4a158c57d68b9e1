//! Scripts as people write them: old spelling and new, one-liners and longer ones. All are accepted, without a warning.

use lang::script::attach::Point;
use lang::script::cdecl::{Member, Struct};
use lang::script::ir::Leaf;
use lang::script::run::{Counts, Datum, Event, Host, Machine, Memory, Output};
use lang::script::table::{Class, ROWS};
use lang::script::time::Wall;
use lang::script::types::{Space, Type};
use lang::script::{Parameters, World, compile};

/// A kernel with a few tracepoints and one structure.
struct Kernel;

impl World for Kernel {
    fn args(&self, point: &Point) -> Option<Vec<(String, Type)>> {
        let text = || Type::Pointer(Box::new(Type::int(1, true)), Space::User);
        let (int, long) = (Type::int(4, true), Type::INT);
        let list = match point.name().as_str() {
            n if n.starts_with("tracepoint:syscalls:sys_enter_open") => vec![("filename", text()), ("flags", int)],
            n if n.contains("sys_exit_") => vec![("ret", long)],
            "tracepoint:syscalls:sys_enter_execve" => vec![("argv", Type::Pointer(Box::new(text()), Space::User))],
            "tracepoint:raw_syscalls:sys_enter" => vec![("id", long)],
            "tracepoint:sched:sched_switch" => {
                let comm = || Type::Array(Box::new(Type::int(1, true)), 16);
                vec![("prev_comm", comm()), ("prev_pid", int.clone()), ("next_comm", comm()), ("next_pid", int)]
            }
            "tracepoint:block:block_rq_issue" => vec![("dev", Type::int(4, false)), ("bytes", Type::int(4, false))],
            "heap:malloc" => vec![("size", Type::UINT)],
            "iter:task_file" => vec![("task", Type::UINT), ("fd", int)],
            "process:exit" => vec![("status", int)],
            _ => return None,
        };
        Some(list.into_iter().map(|(n, t)| (n.to_owned(), t)).collect())
    }

    fn kernel_symbol(&self, _: &str) -> Option<u64> {
        Some(0xffff_ffff_8100_0000)
    }

    fn symbol(&self, _: &Point, _: &str) -> Option<u64> {
        Some(8)
    }

    fn cgroup(&self, _: &str) -> Option<u64> {
        Some(1)
    }

    fn structure(&self, name: &str) -> Option<Struct> {
        let task = Type::Pointer(Box::new(Type::Struct("task_struct".into())), Space::Kernel);
        let member = |name: &str, ty, offset| Member { name: name.into(), ty, offset, bits: None };
        let members = vec![
            member("pid", Type::int(4, true), 8),
            member("real_parent", task, 16),
            member("comm", Type::Array(Box::new(Type::int(1, true)), 16), 24),
        ];
        (name == "task_struct").then_some(Struct { size: 64, align: 8, members, depth: 1 })
    }

    fn child(&self) -> Option<u32> {
        Some(4711)
    }
}

#[rustfmt::skip]
const ONE_LINERS: &[&str] = &[
    "BEGIN { printf(\"hello\\n\"); }",
    "begin { exit(); }",
    "tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }",
    "tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args->filename)); }",
    "tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }",
    "t:syscalls:sys_exit_read /pid == 4242/ { @size = hist(args.ret); }",
    "k:vfs_read { @since[tid] = nsecs; } kr:vfs_read /@since[tid]/ { @took[comm] = hist(nsecs - @since[tid]); delete(@since[tid]); }",
    "kretprobe:vfs_write { @amount = lhist(retval, 0, 4000, 500); }",
    "tracepoint:sched:sched_switch { @[kstack] = count(); }",
    "tracepoint:sched:sched_switch { printf(\"%s -> %s\\n\", args.prev_comm, args.next_comm); }",
    "tracepoint:block:block_rq_issue { @[args.dev] = hist(args.bytes); }",
    "p:hz:97 { @[ustack, comm] = count(); } i:s:10 { exit(); }",
    "profile:hz:99 { @[ustack(6)] = count(); }",
    "tracepoint:syscalls:sys_enter_* { @[probe] = count(); } interval:5s { print(@, 3); clear(@); time(\"%H:%M\\n\"); }",
    "tracepoint:syscalls:sys_enter_execve { join(args.argv); }",
    "software:page-faults:100 { @[comm, pid] = count(); }",
    "hardware:cache-misses:1000000 { @[pid] = count(); }",
    "uprobe:/bin/bash:readline { @[comm] = sum(arg0); } interval:s:1 { print(@, 5); clear(@); }",
    "uretprobe:/bin/bash:readline { printf(\"%d %s\\n\", pid, str(retval)); }",
    "usdt:/usr/lib/libc.so.6:libc:memory_heap_new { @[arg1] = count(); }",
    "syscall:read /retval > 0/ { @bytes = hist(retval); @us[comm] = hist(dur / 1us); }",
    "syscall:fsync { @[comm] = stats(dur); @slow[strace] = max(dur); }",
    "function:parse_*:return { @us[func] = count(); } heap:malloc /args.size > 1M/ { @[ustack] = sum(args.size); }",
    "tracepoint:syscalls:sys_enter_openat /args.flags & O_CREAT/ { @[str(args.filename)] = count(); } end { print(@, 3); clear(@); }",
    "process:exit { @[args.status >> 8, args.status & 0x7f] = count(); }",
    "kprobe:do_exit { $t = (struct task_struct *)curtask; printf(\"%s %d\\n\", $t->real_parent->comm, $t->real_parent->pid); }",
    "interval:1s /cpid != 0/ { printf(\"%d\\n\", cpid); }",
    "kprobe:f* /uid == 0 && comm != \"sshd\"/ { @[func, reg(\"ip\")] = count(); }",
    "watchpoint:0x10000000:8:w { printf(\"%s\", ustack(perf)); }",
    "iter:task_file { @files[ctx->task, ctx->fd] = 1; }",
    "config = { missing_probes = warn } kprobe:a, kprobe:b { @x = count(); }",
];

/// How long calls block, by process: with a header, a macro of C, two clauses for one thing, and maps that are cleared at the end.
const LONG: &str = r#"#!/usr/bin/env bpftrace
/*
 * How long files take to open, and which failed.
 */
#ifndef BPFTRACE_HAVE_BTF
#include <linux/fs.h>
#endif
#define SLOW_US 1000

BEGIN
{
	printf("Opening files of %d ... Ctrl-C ends.\n", $1);
	printf("%-6s %-16s %4s %s\n", "PID", "COMM", "ERR", "PATH");
}

tracepoint:syscalls:sys_enter_open,
tracepoint:syscalls:sys_enter_openat
/$1 == 0 || pid == $1/
{
	@name[tid] = args.filename;
	@since[tid] = nsecs;
}

tracepoint:syscalls:sys_exit_open,
tracepoint:syscalls:sys_exit_openat
/@name[tid]/
{
	$ret = args.ret;
	$fd = $ret >= 0 ? $ret : -1;
	$errno = $ret >= 0 ? 0 : - $ret;
	$us = (nsecs - @since[tid]) / 1000;
	if ($us > SLOW_US) {
		printf("%-6d %-16s %4d %s\n", pid, comm, $errno, str(@name[tid]));
	} else if ($fd < 0) {
		@failed[$errno, comm] = count();
	}
	@us = hist($us);
	delete(@name[tid]);
	delete(@since[tid]);
}

END
{
	clear(@name);
	clear(@since);
}
"#;

#[test]
fn all_are_accepted() {
    let params = Parameters { positional: vec!["0".into()], ..Parameters::default() };
    for script in ONE_LINERS.iter().chain([&LONG]) {
        let program = compile(script, &params, &Kernel).unwrap_or_else(|list| {
            panic!("{}", list.iter().map(|d| d.show("stdin", script)).collect::<Vec<_>>().join("\n"))
        });
        let warnings: Vec<String> = program.warnings.iter().map(|d| d.show("stdin", script)).collect();
        assert_eq!(warnings, [""; 0], "{script}");
    }
}

/// Every function of the table.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "delete(@m, 1)", "has_key(@m, 1)", "find(@m, 1, $v)", "len(@m)", "len(kstack)", "str(arg0)", "str(arg0 + 1, 9)", "buf(arg0, 4)", "buf(\"a\")",
    "strftime(\"%F\", nsecs)", "strncmp(comm, \"a\", 1)", "strcontains(comm, \"a\")", "startswith(comm, \"a\")", "strlen(comm)", "strstr(comm, \"a\")",
    "str_concat(comm, \"a\")", "strcap(comm)", "memcmp(comm, \"a\", 1)", "bswap(pid)", "ntop(pid)", "ntop(2, arg0)", "pton(\"::1\")", "macaddr((char *)arg0)",
    "cgroupid(\"/sys/fs/cgroup\")", "cgroup_path(1)", "cgroup_path(1, \"unified\")", "strerror(1)", "signal_name(1)", "syscall_name(1)", "kptr(arg0)", "uptr(arg0)", "ksym(arg0)", "usym(arg0)", "kaddr(\"x\")", "uaddr(\"x\")", "reg(\"ip\")",
    "getopt(\"a\", 1)", "speculation()",
];

struct All;

impl Event for All {
    fn leaf(&self, _: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        Some(match leaf.ty {
            Type::Str(_) => Datum::Text(b"cat", false),
            Type::Stack(..) => Datum::Of(1, 1),
            _ => Datum::Int(5),
        })
    }

    fn memory(&self, _: Space, _: u64, length: usize) -> Memory {
        Memory::Bytes(vec![1; length])
    }

    fn text(&self, _: Space, _: u64, most: usize) -> Memory {
        Memory::Bytes(vec![b'x'; most])
    }

    fn frames(&self, _: u64) -> Option<u64> {
        Some(3)
    }
}

impl Host for All {
    fn output(&mut self, _: Output<'_>) {}

    fn wall(&mut self, _: Option<u64>) -> Wall {
        Wall::default()
    }
}

#[test]
fn every_function_runs() {
    for r in ROWS.iter().filter(|r| r.class == Class::Function) {
        assert!(CALLS.iter().any(|c| c.starts_with(&format!("{}(", r.name))), "{}", r.name);
    }
    for call in CALLS {
        let script = format!("uprobe:/bin/x:f {{ let $v; @m[1] = 1; @keep = {call}; print(@keep); }}");
        let program = compile(&script, &Parameters::default(), &Kernel)
            .unwrap_or_else(|e| panic!("{}", e[0].show("stdin", &script)));
        let mut machine = Machine::new(program, 1);
        machine.run(0, &All, &mut All);
        assert_eq!(machine.counts(), [Counts { done: 1, ..Counts::default() }], "{call}");
    }
}
