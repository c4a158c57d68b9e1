//! Scripts in; types and messages out.

use super::*;
use crate::script::types::Type;
use expect_test::{Expect, expect};

fn world() -> Known {
    let text = || Type::Pointer(Box::new(Type::int(1, true)), types::Space::User);
    let open =
        vec![("filename".into(), text()), ("flags".into(), Type::int(4, true)), ("mode".into(), Type::int(2, false))];
    let mut known = Known::default();
    for name in ["sys_enter_openat", "sys_enter_open"] {
        known.args.insert(format!("tracepoint:syscalls:{name}"), open.clone());
    }
    known.args.insert("tracepoint:syscalls:sys_enter_close".into(), vec![("fd".into(), Type::int(4, false))]);
    let argv = Type::Pointer(Box::new(Type::None), types::Space::User);
    known.args.insert("tracepoint:syscalls:sys_enter_execve".into(), vec![("argv".into(), argv)]);
    let member = |name: &str| cdecl::Member { name: name.into(), ty: Type::int(4, false), offset: 0, bits: None };
    let queue = cdecl::Struct { size: 4, align: 4, members: vec![member("nr_queued")], depth: 1 };
    known.structures.insert("cfs_rq".into(), queue);
    let values = |list: &[(&str, i64)]| list.iter().map(|(of, v)| ((*of).to_string(), *v)).collect::<Vec<_>>();
    known.enumerators.insert("REASON_NONE".into(), values(&[("reason", 2), ("other", 2)]));
    known.enumerators.insert("REASON_LESS".into(), values(&[("reason", -1)]));
    known.enumerators.insert("REASON_TWICE".into(), values(&[("reason", 1), ("", 3)]));
    known.args.insert("syscall:read".into(), vec![("fd".into(), Type::int(4, true)), ("count".into(), Type::UINT)]);
    known
}

fn params() -> Parameters {
    Parameters {
        positional: vec!["42".into(), "cat".into()],
        named: vec![("pid".into(), "7".into())],
        config: vec![],
        may_run: false,
        failures: 0,
        only: None,
    }
}

/// What a script's names hold, or what is wrong with it.
fn outcome(text: &str) -> String {
    let show = |list: &[Diagnostic]| list.iter().map(|d| d.show("stdin", text)).collect::<Vec<_>>().join("\n");
    match compile(text, &params(), &world()) {
        Err(list) => show(&list),
        Ok(p) => {
            let mut out = String::new();
            for c in &p.clauses {
                let points: Vec<String> = c.points.iter().map(attach::Point::name).collect();
                out.push_str(&points.join(", "));
                for l in &c.leaves {
                    out.push_str(&format!(" <{:?}: {}>", l.what, l.ty));
                }
                for v in &c.vars {
                    out.push_str(&format!(" {v}"));
                }
                out.push('\n');
            }
            for m in &p.maps {
                let key: Vec<String> = m.key.iter().map(Type::to_string).collect();
                out.push_str(&format!("@{}[{}]: {}\n", m.name, key.join(", "), m.value));
            }
            out + &show(&p.warnings)
        }
    }
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&outcome(text));
}

/// All of them, one below the other.
#[track_caller]
fn check_all(texts: &[&str], expected: Expect) {
    let all: Vec<String> = texts.iter().map(|t| format!("{}\n", outcome(t).trim_end())).collect();
    expected.assert_eq(&all.join("\n"));
}

#[test]
fn types_of_literals_and_what_they_meet() {
    check(
        "begin { $a = 5; $b = 500; $c = -1; $d = 18446744073709551615; $e = 'x'; $f = \"ab\"; $g = 1 == 2; }",
        expect![[r#"
        begin int8 int16 int8 uint64 int8 string[3] bool
    "#]],
    );
    check(
        "begin { $a = 5; $a = (uint8)200; $b = 5; $b = 500; $c = (uint8)1; $c = (int8)1; $d = (uint32)1; $d = (int64)1; }",
        expect![[r#"
        begin uint8 int16 int16 int64
    "#]],
    );
    check(
        "begin { $a = 1 + 2; $b = pid + 1; $c = nsecs - 5; $d = 10ms; $e = pid / 2; $f = $a ? pid : 3; }",
        expect![[r#"
        begin <Value("pid"): uint32> <Value("nsecs"): uint64> int8 uint64 int64 int32 uint64 uint32
    "#]],
    );
    check(
        "begin { @a++; @b += 5; @c -= pid; @d |= nsecs; $i = 0; $i++; @e = @e + 1; }",
        expect![[r#"
        begin <Value("pid"): uint32> <Value("nsecs"): uint64> int64
        @a[]: int64
        @b[]: int64
        @c[]: int64
        @d[]: uint64
        @e[]: int64
    "#]],
    );
    check(
        "begin { $t = (1, \"ab\", (pid, true)); $x = $t.1; $y = $t.2.0; @[$t] = $y; }",
        expect![[r#"
        begin <Value("pid"): uint32> (int8,string[3],(uint32,bool)) string[3] uint32
        @[int8, string[3], (uint32,bool)]: uint32
    "#]],
    );
}

#[test]
fn semicolons_of_structures_may_be_left_out() {
    check_all(
        &[
            "struct a { int x; char y } begin { $s = sizeof(struct a); }",
            "struct a { struct { int x[1] } in } // here\nunion u { int x } uprobe:/bin/x:f { $s = ((struct a *)arg0)->in.x[0]; }",
            "struct a begin { }",
            "typedef struct { int x; } a begin { }",
            "struct a { int x int y; }; begin { }",
        ],
        expect![[r#"
            begin int8

            uprobe:/bin/x:f <Number(0): uint64> int32

            stdin:1:10-15: ERROR: expected ';', found 'begin' [S0002]
            struct a begin { }
                     ~~~~~
            HINT: scripts have structures, unions, enumerations and typedefs of C

            stdin:1:29-34: ERROR: expected ';', found 'begin' [S0002]
            typedef struct { int x; } a begin { }
                                        ~~~~~

            stdin:1:18-21: ERROR: expected ';', found 'int' [S0002]
            struct a { int x int y; }; begin { }
                             ~~~
        "#]],
    );
}

#[test]
fn static_probes_may_leave_out_the_file_and_the_provider() {
    check_all(
        &[
            r#"usdt:/bin/x:"a \"b\" c":n { }"#,
            "usdt:/bin/x::name* { }",
            "usdt::provider:name { }",
            "usdt:::name { }",
            "usdt::name { }",
            "usdt:/bin/x:a: { }",
            r#"usdt:/bin/x:"a"#,
        ],
        expect![[r#"
            usdt:/bin/x:a "b" c:n

            usdt:/bin/x:*:name*

            usdt::provider:name

            usdt::*:name

            stdin:1:1-11: ERROR: 'usdt::name' is not how a probe of 'usdt' is written [S0004]
            usdt::name { }
            ~~~~~~~~~~
            HINT: write usdt:PATH:NAME or usdt:PATH:PROVIDER:NAME

            stdin:1:1-15: ERROR: 'usdt:/bin/x:a:' is not how a probe of 'usdt' is written [S0004]
            usdt:/bin/x:a: { }
            ~~~~~~~~~~~~~~
            HINT: write usdt:PATH:NAME or usdt:PATH:PROVIDER:NAME

            stdin:1:13-14: ERROR: an unterminated string [S0001]
            usdt:/bin/x:"a
                        ~
            HINT: it ends with "
        "#]],
    );
}

#[test]
fn types_do_not_depend_on_the_order_of_clauses() {
    let one = outcome("begin { @a = @b; } end { @b = @c; } interval:1s { @c = pid; @c = 5; }");
    check(
        "interval:1s { @c = 5; @c = pid; } end { @b = @c; } begin { @a = @b; }",
        expect![[r#"
        interval:1s <Value("pid"): uint32>
        end
        begin
        @a[]: uint32
        @b[]: uint32
        @c[]: uint32
    "#]],
    );
    assert_eq!(
        one.lines().skip(3).collect::<Vec<_>>(),
        outcome("interval:1s { @c = pid; @c = 5; } begin { @a = @b; } end { @b = @c; }")
            .lines()
            .skip(3)
            .collect::<Vec<_>>()
    );
}

#[test]
fn aggregations_keys_and_maps() {
    check(
        "interval:s:1 { @ = count(); @s[comm, pid] = sum(1); @h[ustack(3)] = hist(nsecs, 2); @l = lhist(cpu, 0, 10*2, 5); @av = avg(-1);
           if (@ > 5) { @st = stats(cpu); } print(@, 5); for ($kv : @s) { @k = $kv.0.0; @v = $kv.1; } delete(@s, (\"a\", 1)); delete(@s[\"b\", 2]);
           @n = len(@s); if (has_key(@s, (\"a\", 1))) { clear(@s); zero(@h); } if (find(@s, (\"a\", 1), $found)) { print($found); } }",
        expect![[r#"
            interval:s:1 <Value("comm"): string[16]> <Value("pid"): uint32> <Kind("ustack", "3"): ustack> <Value("nsecs"): uint64> <Value("cpu"): uint32> ((string[16],int64),uint64) uint64
            @[]: count()
            @av[]: avg()
            @h[ustack]: hist(…, 2)
            @k[]: string[16]
            @l[]: lhist(…, 0, 20, 5)
            @n[]: uint64
            @s[string[16], int64]: sum()
            @st[]: stats()
            @v[]: uint64
        "#]],
    );
}

#[test]
fn arguments_and_strings() {
    check(
        "tracepoint:syscalls:sys_enter_open, t:syscalls:sys_enter_openat /args.flags & O_CREAT && args->filename == \"x\"/ {
           @[str(args.filename)] = count(); printf(\"%s %s %d\\n\", comm, str(args.filename, 10), args.mode); $f = args.filename; @f = $f; }",
        expect![[r#"
            tracepoint:syscalls:sys_enter_open, tracepoint:syscalls:sys_enter_openat <Arg("flags"): int32> <Arg("filename"): int8 *> <TextOf("filename"): string[1025]> <Value("comm"): string[16]> <Arg("mode"): uint16> int8 *
            @[string[1025]]: count()
            @f[]: int8 *
        "#]],
    );
    check(
        "syscall:read /retval > 0/ { @us[strace] = hist(dur / 1us); } uprobe:/bin/bash:main { @[func, arg1] = max(arg0); }",
        expect![[r#"
        syscall:read <Value("retval"): int64> <Value("strace"): string[1025]> <Value("dur"): uint64>
        uprobe:/bin/bash:main <Value("func"): string[1025]> <Number(1): uint64> <Number(0): uint64>
        @[string[1025], uint64]: max()
        @us[string[1025]]: hist(…, 0)
    "#]],
    );
    check(
        "begin { @a = $1; @b = str($1); @c = $2; @n = $#; @o = getopt(\"pid\", 3); @p = getopt(\"other\", \"x\"); @q = $9; }",
        expect![[r#"
        begin
        @a[]: int8
        @b[]: string[3]
        @c[]: string[4]
        @n[]: int8
        @o[]: int64
        @p[]: string[2]
        @q[]: int8
        stdin:1:105-107: WARNING: '$9' was not given and is 0 [S0013]
        begin { @a = $1; @b = str($1); @c = $2; @n = $#; @o = getopt("pid", 3); @p = getopt("other", "x"); @q = $9; }
                                                                                                                ~~
        HINT: parameters follow the script on the command line"#]],
    );
}

#[test]
fn probes() {
    check(
        "BEGIN { } END { } i:s:1, p:hz:99, interval:100ms { } t:sched:sched_* , tracepoint:a:b /pid/ { } uprobe:\"/opt/a b\":\"x::y\" { } k:vfs_*/pid == 1/{ }
         usdt:./a.out:p:n { } u:/lib/x.so:cpp:f* { } kr:ext4:x { } syscall:read:return { } function:* { } s:faults:100 { } w:0x10000000:8:rw { } h:cycles: { }",
        expect![[r#"
            begin
            end
            interval:s:1, profile:hz:99, interval:100ms
            tracepoint:sched:sched_*, tracepoint:a:b <Value("pid"): uint32>
            uprobe:/opt/a b:x::y
            kprobe:vfs_* <Value("pid"): uint32>
            usdt:./a.out:p:n
            uprobe:/lib/x.so:cpp:f*
            kretprobe:ext4:x
            syscall:read:return
            function:*
            software:faults:100
            watchpoint:0x10000000:8:rw
            hardware:cycles
        "#]],
    );
    check_all(
        &[
            "tracepont:a:b { }",
            "interval:5 { }",
            "interval:s:0 { }",
            "iter:task { }",
            "self:signal:SIGINT { }",
            "tracepoint:a { }",
            "begin:x { }",
            "openat { }",
            "begin",
            "begin { } 5",
            "uprobe:$7:main { }",
            "k:\"f { }",
            "begin // { }",
            "kprobe:a:b:c:d:e:f { }",
        ],
        expect![[r#"
            stdin:1:1-14: ERROR: no provider is called 'tracepont' [S0004]
            tracepont:a:b { }
            ~~~~~~~~~~~~~
            HINT: did you mean tracepoint?

            stdin:1:1-11: ERROR: 'interval:5' is not a time between ticks [S0004]
            interval:5 { }
            ~~~~~~~~~~
            HINT: for instance interval:1s, interval:100ms or interval:hz:99

            stdin:1:1-13: ERROR: 'interval:s:0' is not a time between ticks [S0004]
            interval:s:0 { }
            ~~~~~~~~~~~~
            HINT: for instance interval:1s, interval:100ms or interval:hz:99

            iter:task

            stdin:1:1-19: ERROR: 'self:signal:SIGINT' is no probe [S0004]
            self:signal:SIGINT { }
            ~~~~~~~~~~~~~~~~~~
            HINT: write self:signal:SIGUSR1: other signals end trapline, or are not for it

            stdin:1:1-13: ERROR: 'tracepoint:a' is not how a probe of 'tracepoint' is written [S0004]
            tracepoint:a { }
            ~~~~~~~~~~~~
            HINT: write tracepoint:CATEGORY:EVENT

            stdin:1:1-8: ERROR: 'begin:x' is not how a probe of 'begin' is written [S0004]
            begin:x { }
            ~~~~~~~
            HINT: write begin

            stdin:1:1-7: ERROR: no provider is called 'openat' [S0004]
            openat { }
            ~~~~~~
            HINT: a probe is PROVIDER:NAME; `trapline list` shows them

            stdin:1:6-7: ERROR: expected ',', a predicate or '{', found the end [S0002]
            begin
                 ~
            HINT: write PROBE { … } or PROBE /PREDICATE/ { … }

            stdin:1:11-12: ERROR: no provider is called '5' [S0004]
            begin { } 5
                      ~
            HINT: a probe is PROVIDER:NAME; `trapline list` shows them

            stdin:1:8-10: ERROR: '$7' was not given [S0013]
            uprobe:$7:main { }
                   ~~
            HINT: parameters follow the script on the command line

            stdin:1:3-4: ERROR: an unterminated string [S0001]
            k:"f { }
              ~
            HINT: it ends with "

            stdin:1:13-14: ERROR: expected ',', a predicate or '{', found the end [S0002]
            begin // { }
                        ~
            HINT: write PROBE { … } or PROBE /PREDICATE/ { … }

            stdin:1:1-16: ERROR: no probe has more than four parts [S0004]
            kprobe:a:b:c:d:e:f { }
            ~~~~~~~~~~~~~~~
            HINT: quote colons: "a:b"
        "#]],
    );
}

#[test]
fn statements() {
    check(
        "begin { if (1) { $x = 1; } else if 0 { $x = 2; } else { $x = 3 } while ($#) { break; } unroll(3) { @ = count(); } for $i : 0..10 { if ($i == 5) { continue; } @s = sum($i); }
           for ($j : 1..$1) { @t[$j] = 1 } let $y: uint64 = 5; let $z; $z = \"a\"; { let $y = \"inner\"; } _ = $y; return; }
         end { $b = { $c = 5; $c + 1 }; 1 ? print($b) : exit(); @x = $b ?: 3; printf(\"a\" \"b %d%%\\n\", 1) }",
        expect![[r#"
            begin int8 int8 int8 int64 int64 uint64 string[2] string[6]
            end int8 int64
            @[]: count()
            @s[]: sum()
            @t[int64]: int8
            @x[]: int64
        "#]],
    );
    check_all(
        &[
            "begin { $x = $y; }",
            "begin { if (1) { $x = 1; } print($x); }",
            "begin { break; }",
            "begin { unroll(1000) { } }",
            "begin { return 5; }",
            "begin { let $x: uint8 = 300; }",
            "begin { let $x: int32 = nsecs; }",
            "begin { pid = 5; }",
            "begin { foo = 5; }",
            "begin { 5 }",
            "begin { @x = count() + 1; }",
            "begin { $x = count(); }",
            "begin { $x = print(1); }",
            "begin { print(1) print(2) }",
            "begin { @a = 1; for ($k : @a) { } }",
            "begin { @a[1] = hist(1); for ($k : @a) { } }",
            "begin { if (\"a\") { } }",
            "begin { $x++; }",
            "begin { @m[1] = 1; delete(@m); clear(@m[1]); }",
        ],
        expect![[r#"
            stdin:1:14-16: ERROR: nothing is assigned to '$y' here [S0006]
            begin { $x = $y; }
                         ~~
            HINT: a variable is known in the block where it is assigned first, and in those within

            begin int8
            stdin:1:34-36: WARNING: '$x' is assigned in a block that has ended [S0018]
            begin { if (1) { $x = 1; } print($x); }
                                             ~~
            HINT: declare it before the block: let $x;

            stdin:1:9-14: ERROR: 'break' outside of a loop [S0015]
            begin { break; }
                    ~~~~~
            HINT: return ends the clause

            stdin:1:15-21: ERROR: not a number from 1 to 100 [S0008]
            begin { unroll(1000) { } }
                          ~~~~~~
            HINT: a loop has any number of rounds: for $i : 0..n { … }

            stdin:1:16-17: ERROR: a clause returns no value [S0015]
            begin { return 5; }
                           ~
            HINT: write return;

            stdin:1:9-28: ERROR: '$x' holds uint8, not int16 [S0008]
            begin { let $x: uint8 = 300; }
                    ~~~~~~~~~~~~~~~~~~~
            HINT: use another variable, or a cast

            stdin:1:9-30: ERROR: '$x' holds int32, not uint64 [S0008]
            begin { let $x: int32 = nsecs; }
                    ~~~~~~~~~~~~~~~~~~~~~
            HINT: use another variable, or a cast

            stdin:1:9-12: ERROR: only variables and maps are assigned to [S0015]
            begin { pid = 5; }
                    ~~~
            HINT: a variable is written $pid, a map @pid

            stdin:1:9-12: ERROR: only variables and maps are assigned to [S0015]
            begin { foo = 5; }
                    ~~~
            HINT: a variable is written $foo, a map @foo

            begin
            stdin:1:9-10: WARNING: this does nothing [S0018]
            begin { 5 }
                    ~
            HINT: print() shows a value

            stdin:1:14-21: ERROR: 'count' collects in a map [S0015]
            begin { @x = count() + 1; }
                         ~~~~~~~
            HINT: write @name = count()

            stdin:1:14-21: ERROR: 'count' collects in a map [S0015]
            begin { $x = count(); }
                         ~~~~~~~
            HINT: write @name = count()

            stdin:1:14-22: ERROR: 'print' has no value [S0015]
            begin { $x = print(1); }
                         ~~~~~~~~
            HINT: it is a statement: put it on a line of its own

            stdin:1:18-23: ERROR: expected ';' or '}', found 'print' [S0002]
            begin { print(1) print(2) }
                             ~~~~~

            stdin:1:27-29: ERROR: '@a' has no keys to go through [S0008]
            begin { @a = 1; for ($k : @a) { } }
                                      ~~
            stdin:1:9-11: it is one value here
            HINT: use @a itself

            stdin:1:36-38: ERROR: '@a' holds hist(…, 0), which are no values to go through [S0008]
            begin { @a[1] = hist(1); for ($k : @a) { } }
                                               ~~
            HINT: print(@a) shows it

            stdin:1:12-17: ERROR: a string is neither true nor false [S0008]
            begin { if ("a") { } }
                       ~~~~~
            HINT: compare it: … != ""

            stdin:1:9-11: ERROR: nothing is assigned to '$x' here [S0006]
            begin { $x++; }
                    ~~
            HINT: a variable is known in the block where it is assigned first, and in those within

            stdin:1:27-29: ERROR: '@m' has a key of one part, and no key is used here [S0008]
            begin { @m[1] = 1; delete(@m); clear(@m[1]); }
                                      ~~
            stdin:1:9-14: it got its key here
            HINT: all uses of a map have the same key: use another map
            stdin:1:38-43: ERROR: 'clear' is for a whole map [S0007]
            begin { @m[1] = 1; delete(@m); clear(@m[1]); }
                                                 ~~~~~
            HINT: write clear(@m), or delete(@m, key) for one key
        "#]],
    );
}

#[test]
fn conflicts_show_both_places() {
    check_all(
        &[
            "begin { @x = 1; } end { @x = \"a\"; }",
            "begin { @x = count(); @x = 1; }",
            "begin { @x = hist(1); @x = hist(1, 2); }",
            "begin { @x[1] = 1; @x[\"a\"] = 2; }",
            "begin { @x[1, 2] = 1; @x[1] = 2; @x = 3; }",
            "begin { $x = nsecs; $x = (int64)-1; }",
            "begin { $t = (1, 2); $t = (1, 2, 3); }",
            "begin { @h = hist(1); $x = @h; }",
            "begin { print(@nothing); @nothink = 1; }",
            "begin { @a = @b; @b = @a; }",
        ],
        expect![[r#"
            stdin:1:25-27: ERROR: '@x' holds integers, not strings [S0008]
            begin { @x = 1; } end { @x = "a"; }
                                    ~~
            stdin:1:9-11: it got its type here
            HINT: use another map, or a cast

            stdin:1:23-25: ERROR: '@x' holds count(), not integers [S0008]
            begin { @x = count(); @x = 1; }
                                  ~~
            stdin:1:9-11: it got its type here
            HINT: use another map, or a cast

            stdin:1:23-25: ERROR: '@x' holds hist(…, 0), not hist(…, 2) [S0008]
            begin { @x = hist(1); @x = hist(1, 2); }
                                  ~~
            stdin:1:9-11: it got its type here
            HINT: use another map, or a cast

            stdin:1:20-27: ERROR: the key of '@x' holds integers, not strings [S0008]
            begin { @x[1] = 1; @x["a"] = 2; }
                               ~~~~~~~
            stdin:1:9-14: it got its type here
            HINT: use another map, or a cast

            stdin:1:23-28: ERROR: '@x' has a key of 2 parts, and a key of one part is used here [S0008]
            begin { @x[1, 2] = 1; @x[1] = 2; @x = 3; }
                                  ~~~~~
            stdin:1:9-17: it got its key here
            HINT: all uses of a map have the same key: use another map
            stdin:1:34-36: ERROR: '@x' has a key of 2 parts, and no key is used here [S0008]
            begin { @x[1, 2] = 1; @x[1] = 2; @x = 3; }
                                             ~~
            stdin:1:9-17: it got its key here
            HINT: all uses of a map have the same key: use another map

            stdin:1:21-23: ERROR: '$x' holds uint64, not int64 [S0008]
            begin { $x = nsecs; $x = (int64)-1; }
                                ~~
            stdin:1:9-11: it got its type here
            HINT: use another variable, or a cast

            stdin:1:22-24: ERROR: '$t' holds values of type (int8,int8), not values of type (int8,int8,int8) [S0008]
            begin { $t = (1, 2); $t = (1, 2, 3); }
                                 ~~
            stdin:1:9-11: it got its type here
            HINT: use another variable, or a cast

            stdin:1:28-30: ERROR: '@h' holds hist(…, 0), which is no number [S0008]
            begin { @h = hist(1); $x = @h; }
                                       ~~
            HINT: print(@h) shows it

            stdin:1:15-23: ERROR: nothing is assigned to '@nothing' [S0006]
            begin { print(@nothing); @nothink = 1; }
                          ~~~~~~~~
            HINT: did you mean @nothink?

            stdin:1:14-16: ERROR: the type of this is not known [S0008]
            begin { @a = @b; @b = @a; }
                         ~~
            HINT: assign a value to it, or give it its type with a cast: (uint64)…
            stdin:1:23-25: ERROR: the type of this is not known [S0008]
            begin { @a = @b; @b = @a; }
                                  ~~
            HINT: assign a value to it, or give it its type with a cast: (uint64)…
        "#]],
    );
}

#[test]
fn names_and_calls() {
    check_all(
        &[
            "begin { print(pidd); }",
            "begin { print(O_CREATE); print(TCP_ESTABLISHD); }",
            "#include <linux/tcp.h>\nbegin { print(TCP_FOO_BAR); }",
            "#include <lol/no.h>\nbegin { }",
            "begin { prnt(1); }",
            "begin { printf(1); }",
            "begin { printf(\"%d %s\\n\", 1); }",
            "begin { printf(\"%d\\n\", 1, 2); }",
            "begin { printf(\"%s\\n\", 5); printf(\"%d\", \"a\"); printf(\"%y\", 1); }",
            "begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum(\"a\"); }",
            "begin { print(retval); print(dur); print(arg0); print(args.x); }",
            "tracepoint:syscalls:sys_enter_open { print(args.flgs); }",
            "tracepoint:syscalls:sys_enter_open, tracepoint:syscalls:sys_enter_close { print(args.fd); }",
            "tracepoint:no:such { print(args.fd); }",
            "begin { strncmp(pid, \"a\", 1); strlen(args); nsecs(foo); kstack(-1); }",
            "begin { system(\"x\"); signal(9); override(1); tseries(1); print(kstack(perf, 5)); }",
            "begin { \"a\" < \"b\"; \"a\" == 1; pid == \"x\"; }",
            "begin { print(&$1); }",
            "begin { print(usym(1) ?: usym(2)); }",
            "begin { print(str(\"x\" == \"y\")); time(5); join(pid); ntop(\"1\"); pton(\"x\"); }",
        ],
        expect![[r#"
            stdin:1:15-19: ERROR: 'pidd' is neither a value nor a constant [S0005]
            begin { print(pidd); }
                          ~~~~
            HINT: did you mean pid?

            stdin:1:15-23: ERROR: 'O_CREATE' is neither a value nor a constant [S0005]
            begin { print(O_CREATE); print(TCP_ESTABLISHD); }
                          ~~~~~~~~
            HINT: did you mean O_CREAT?
            stdin:1:32-46: ERROR: 'TCP_ESTABLISHD' is neither a value nor a constant [S0005]
            begin { print(O_CREATE); print(TCP_ESTABLISHD); }
                                           ~~~~~~~~~~~~~~
            HINT: did you mean TCP_ESTABLISHED?

            stdin:2:15-26: ERROR: 'TCP_FOO_BAR' is neither a value nor a constant [S0005]
            begin { print(TCP_FOO_BAR); }
                          ~~~~~~~~~~~
            HINT: headers are not read: write #define TCP_FOO_BAR VALUE

            stdin:1:9-20: ERROR: '<lol/no.h>': file not found [S0005]
            #include <lol/no.h>
                    ~~~~~~~~~~~
            HINT: it is none of Linux or C, and others are not read: declare what the script needs of it

            stdin:1:9-16: ERROR: no function is called 'prnt' [S0005]
            begin { prnt(1); }
                    ~~~~~~~
            HINT: did you mean print?

            stdin:1:16-17: ERROR: the format is a string in quotes [S0012]
            begin { printf(1); }
                           ~
            HINT: write printf("%s\n", …) for a value

            stdin:1:9-29: ERROR: the format takes 2 values, 1 is given [S0012]
            begin { printf("%d %s\n", 1); }
                    ~~~~~~~~~~~~~~~~~~~~
            HINT: %% is a percent sign

            stdin:1:9-29: ERROR: the format takes 1 value, 2 are given [S0012]
            begin { printf("%d\n", 1, 2); }
                    ~~~~~~~~~~~~~~~~~~~~
            HINT: each value has its %d or %s

            stdin:1:24-25: ERROR: '%s' does not show integers [S0012]
            begin { printf("%s\n", 5); printf("%d", "a"); printf("%y", 1); }
                                   ~
            HINT: write %d
            stdin:1:41-44: ERROR: '%d' does not show strings [S0012]
            begin { printf("%s\n", 5); printf("%d", "a"); printf("%y", 1); }
                                                    ~~~
            HINT: write %s
            stdin:1:54-58: ERROR: what follows the % is not known: 'y' [S0012]
            begin { printf("%s\n", 5); printf("%d", "a"); printf("%y", 1); }
                                                                 ~~~~
            HINT: there are %d %i %u %x %X %o %c %s %p %r %rx %rh, and %% for a percent sign

            stdin:1:13-19: ERROR: 'hist' takes 1 to 3, 0 arguments are given [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                        ~~~~~~
            HINT: write hist(n[, bits[, weight]])
            stdin:1:26-41: ERROR: 'lhist' takes 4 to 5, 3 arguments are given [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                                     ~~~~~~~~~~~~~~~
            HINT: write lhist(n, min, max, step[, weight])
            stdin:1:48-66: ERROR: no steps from 10 to 0 [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                                                           ~~~~~~~~~~~~~~~~~~
            HINT: write lhist(n, min, max, step)
            stdin:1:73-95: ERROR: 100000 steps; at most 1000 are allowed [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                                                                                    ~~~~~~~~~~~~~~~~~~~~~~
            HINT: write lhist(n, min, max, step)
            stdin:1:110-113: ERROR: the value of this is not known before the script runs [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                                                                                                                         ~~~
            HINT: write a number, or a parameter such as $1
            stdin:1:125-128: ERROR: 'sum' takes a number here, not strings [S0007]
            begin { @ = hist(); @b = lhist(1, 0, 10); @c = lhist(1, 10, 0, 1); @d = lhist(1, 0, 100000, 1); @e = hist(1, pid); @f = sum("a"); }
                                                                                                                                        ~~~
            HINT: write sum(n)

            stdin:1:15-21: ERROR: 'begin' has no 'retval' [S0010]
            begin { print(retval); print(dur); print(arg0); print(args.x); }
                          ~~~~~~
            stdin:1:1-6: it is one of the clause's probes
            HINT: the value is there at probes that have a result
            stdin:1:30-33: ERROR: 'begin' has no 'dur' [S0010]
            begin { print(retval); print(dur); print(arg0); print(args.x); }
                                         ~~~
            stdin:1:1-6: it is one of the clause's probes
            HINT: the value is there at probes that have a start and an end
            stdin:1:42-46: ERROR: 'begin' has no 'arg0' [S0010]
            begin { print(retval); print(dur); print(arg0); print(args.x); }
                                                     ~~~~
            stdin:1:1-6: it is one of the clause's probes
            HINT: the value is there at probes that have arguments with numbers
            stdin:1:55-61: ERROR: 'begin' has no 'args.x' [S0010]
            begin { print(retval); print(dur); print(arg0); print(args.x); }
                                                                  ~~~~~~
            stdin:1:1-6: it is one of the clause's probes
            HINT: the value is there at probes that have named arguments

            stdin:1:44-53: ERROR: 'tracepoint:syscalls:sys_enter_open' has no argument 'flgs' [S0010]
            tracepoint:syscalls:sys_enter_open { print(args.flgs); }
                                                       ~~~~~~~~~
            stdin:1:1-35: it is one of the clause's probes
            HINT: did you mean args.flags?

            stdin:1:81-88: ERROR: 'tracepoint:syscalls:sys_enter_open' has no argument 'fd' [S0010]
            tracepoint:syscalls:sys_enter_open, tracepoint:syscalls:sys_enter_close { print(args.fd); }
                                                                                            ~~~~~~~
            stdin:1:1-35: it is one of the clause's probes
            HINT: it has filename, flags, mode

            stdin:1:28-35: ERROR: the arguments of 'tracepoint:no:such' are not known [S0010]
            tracepoint:no:such { print(args.fd); }
                                       ~~~~~~~
            HINT: `trapline list -v PROBE` shows those of probes that exist

            stdin:1:17-20: ERROR: 'strncmp' takes a string here, not integers [S0007]
            begin { strncmp(pid, "a", 1); strlen(args); nsecs(foo); kstack(-1); }
                            ~~~
            HINT: write strncmp(a, b, length)
            stdin:1:38-42: ERROR: 'begin' has no 'args' [S0010]
            begin { strncmp(pid, "a", 1); strlen(args); nsecs(foo); kstack(-1); }
                                                 ~~~~
            stdin:1:1-6: it is one of the clause's probes
            HINT: the value is there at probes that have named arguments
            stdin:1:51-54: ERROR: 'nsecs' has no such kind [S0007]
            begin { strncmp(pid, "a", 1); strlen(args); nsecs(foo); kstack(-1); }
                                                              ~~~
            HINT: it has monotonic, boot, tai, sw_tai
            stdin:1:64-66: ERROR: -1 is not a number from 1 to 127 [S0007]
            begin { strncmp(pid, "a", 1); strlen(args); nsecs(foo); kstack(-1); }
                                                                           ~~
            HINT: choose another

            stdin:1:9-20: ERROR: 'system' runs a command, which scripts may not [S0017]
            begin { system("x"); signal(9); override(1); tseries(1); print(kstack(perf, 5)); }
                    ~~~~~~~~~~~
            HINT: allow it with --unsafe
            stdin:1:22-31: ERROR: 'signal' would change the traced system [S0017]
            begin { system("x"); signal(9); override(1); tseries(1); print(kstack(perf, 5)); }
                                 ~~~~~~~~~
            HINT: trapline observes; printf the process, and let another program send the signal
            stdin:1:33-44: ERROR: 'override' would change the traced system [S0017]
            begin { system("x"); signal(9); override(1); tseries(1); print(kstack(perf, 5)); }
                                            ~~~~~~~~~~~
            HINT: trapline observes; the kernel's fault injection (fail_function) changes results
            stdin:1:46-56: ERROR: 'tseries' is not in this version [S0016]
            begin { system("x"); signal(9); override(1); tseries(1); print(kstack(perf, 5)); }
                                                         ~~~~~~~~~~
            HINT: keep a map by time yourself: @[nsecs / 1s] = count()

            stdin:1:9-18: ERROR: '<' of strings [S0008]
            begin { "a" < "b"; "a" == 1; pid == "x"; }
                    ~~~~~~~~~
            HINT: strings are compared with == and !=
            stdin:1:20-28: ERROR: string[2] and int8 cannot be compared [S0008]
            begin { "a" < "b"; "a" == 1; pid == "x"; }
                               ~~~~~~~~
            stdin:1:30-40: ERROR: uint32 and string[2] cannot be compared [S0008]
            begin { "a" < "b"; "a" == 1; pid == "x"; }
                                         ~~~~~~~~~~

            stdin:1:15-18: ERROR: addresses of variables and maps are not in this version [S0016]
            begin { print(&$1); }
                          ~~~
            HINT: use the value itself; a tuple holds several

            stdin:1:15-33: ERROR: '?:' of values of type usym [S0008]
            begin { print(usym(1) ?: usym(2)); }
                          ~~~~~~~~~~~~~~~~~~
            HINT: write the condition: … ? … : …

            stdin:1:19-29: ERROR: bool is no address of a string [S0007]
            begin { print(str("x" == "y")); time(5); join(pid); ntop("1"); pton("x"); }
                              ~~~~~~~~~~
            HINT: str() reads the string at an address
            stdin:1:38-39: ERROR: a string in quotes is needed here [S0007]
            begin { print(str("x" == "y")); time(5); join(pid); ntop("1"); pton("x"); }
                                                 ~
            HINT: its value must be known before the script runs
            stdin:1:47-50: ERROR: 'join' prints strings, not integers [S0007]
            begin { print(str("x" == "y")); time(5); join(pid); ntop("1"); pton("x"); }
                                                          ~~~
            HINT: cast it: (char **)…
            stdin:1:53-62: ERROR: a value of type string[2] is no address of the Internet [S0007]
            begin { print(str("x" == "y")); time(5); join(pid); ntop("1"); pton("x"); }
                                                                ~~~~~~~~~
            HINT: a number, or 4 or 16 bytes are
            stdin:1:69-72: ERROR: 'x' is not an address of the Internet [S0007]
            begin { print(str("x" == "y")); time(5); join(pid); ntop("1"); pton("x"); }
                                                                                ~~~
            HINT: for instance "127.0.0.1" or "::1"
        "#]],
    );
}

#[test]
fn constants_of_headers() {
    check(
        "#include <net/tcp_states.h>\nbegin { $a = TCP_CLOSE; $b = AF_INET6 == 10; $c = IPPROTO_TCP; $d = S_IFREG; $e = ENOENT; $f = SIGKILL; }",
        expect![[r#"
            begin int8 bool int8 int32 int8 int8
        "#]],
    );
}

#[test]
fn names_that_the_kernel_has() {
    check_all(
        &[
            "begin { @a = REASON_NONE; @b = REASON_LESS; } end { $q = (struct cfs_rq *)@a; @c = $q->nr_queued; }",
            "begin { @ = REASON_TWICE; }",
            "begin { @ = ((struct cfs_rq *)5)->nr_running; }",
            "struct cfs_rq { int nr_queued; } begin { @ = ((struct cfs_rq *)5)->nr_running; }",
        ],
        expect![[r#"
            begin
            end struct cfs_rq *
            @a[]: int8
            @b[]: int64
            @c[]: uint32

            stdin:1:13-25: ERROR: 'REASON_TWICE' has several values [S0005]
            begin { @ = REASON_TWICE; }
                        ~~~~~~~~~~~~
            HINT: write the number: 1 (reason), 3 (an enumeration without a name)

            begin
            @[]: uint32
            stdin:1:13-45: WARNING: the running kernel's 'struct cfs_rq' has 'nr_queued' in the place of 'nr_running' [S0010]
            begin { @ = ((struct cfs_rq *)5)->nr_running; }
                        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
            HINT: the name has changed with Linux 6.14

            stdin:1:46-78: ERROR: 'struct cfs_rq' has no member 'nr_running' [S0010]
            struct cfs_rq { int nr_queued; } begin { @ = ((struct cfs_rq *)5)->nr_running; }
                                                         ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        "#]],
    );
}

#[test]
fn arrays_of_strings_are_joined() {
    check_all(
        &[
            "tracepoint:syscalls:sys_enter_execve { join(args.argv); join(args.argv, \",\"); join((char **)5); }",
            "tracepoint:syscalls:sys_enter_execve { join((char *)args.argv); }",
        ],
        expect![[r#"
            tracepoint:syscalls:sys_enter_execve <Arg("argv"): void *>

            stdin:1:45-62: ERROR: 'join' prints strings, not values of type int8 * [S0007]
            tracepoint:syscalls:sys_enter_execve { join((char *)args.argv); }
                                                        ~~~~~~~~~~~~~~~~~
            HINT: cast it: (char **)…
        "#]],
    );
    let p = compile("tracepoint:syscalls:sys_enter_execve { join(args.argv); }", &params(), &world());
    let mut p = p.expect("a script");
    hoist::hoist(&mut p);
    let leaves: Vec<_> = p.clauses[0].leaves.iter().map(|l| format!("{:?}", l.what)).collect();
    assert_eq!(leaves, ["Arg(\"argv\")", "Memory(0)"]);
}

/// What is moved out of a script: of each memory its address, in numbers of leaves.
fn moved(text: &str) -> Vec<String> {
    let mut p = compile(text, &params(), &world()).unwrap_or_else(|e| panic!("{}", e[0].show("stdin", text)));
    hoist::hoist(&mut p);
    p.hoisted.iter().map(|h| address(&hoist::Read::of(&h.expr).expect("memory").address)).collect()
}

fn address(i: &ir::Int) -> String {
    match i {
        ir::Int::Const(v) => v.to_string(),
        ir::Int::Value(e) => match &e.kind {
            ir::Kind::Leaf(n) => format!("leaf{n}"),
            ir::Kind::Load(of, _) => format!("*({})", address(of)),
            other => format!("{other:?}"),
        },
        ir::Int::Binary(op, a, b) => format!("{} {op:?} {}", address(a), address(b)),
        other => format!("{other:?}"),
    }
}

#[test]
fn memory_behind_variables_that_change_is_known() {
    let node = "struct node { struct node *next; int n; } uprobe:/bin/x:f";
    let of = |body: &str| moved(&format!("{node} {{ $p = (struct node *)arg0; {body} }}"));
    // A list, by any loop whose rounds are known.
    let list = ["leaf0 Add 8", "leaf0", "*(leaf0) Add 8", "*(leaf0)"];
    assert_eq!(of("unroll(2) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("for ($i : 0..2) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("$i = 2; while ($i-- > 0) { @ = sum($p->n); $p = $p->next; }"), list);
    assert_eq!(of("$i = 0; while ($i < 2) { if ($p == 0) { break; } @ = sum($p->n); $p = $p->next; $i++; }"), list);
    // An array.
    assert_eq!(of("unroll(3) { @ = sum(($p++)->n); }"), ["leaf0 Add 8", "leaf0 Add 24", "leaf0 Add 40"]);
    // What a map holds, until it is changed.
    assert_eq!(of("@p[1] = $p; print(@p[1]->n);"), ["leaf0 Add 8"]);
    assert_eq!(of("@p[1] = $p; clear(@p); print(@p[1]->n);"), [""; 0]);
    assert_eq!(of("@p[1] = $p; @p[arg1] = $p; print(@p[1]->n);"), [""; 0]);
    // Nobody knows which one it is.
    assert_eq!(of("if (arg1) { $p = (struct node *)arg2; } print($p->n);"), [""; 0]);
    assert_eq!(of("$i = arg1; while ($i-- > 0) { print($p->n); $p++; }"), [""; 0]);
    assert_eq!(of("unroll(2) { if (arg1) { continue; } $p++; print($p->n); }"), [""; 0]);
}

/// Of events whose memory has at each address its lowest byte: the numbers that are printed.
struct Numbers(Vec<i64>);

impl run::Event for Numbers {
    fn leaf(&self, _: usize, leaf: &ir::Leaf) -> Option<run::Datum<'_>> {
        (!matches!(leaf.what, ir::What::Memory(_))).then_some(run::Datum::Int(1 << 16))
    }

    fn memory(&self, _: types::Space, address: u64, length: usize) -> run::Memory {
        let mut bytes = vec![0; length];
        bytes[0] = address as u8;
        run::Memory::Bytes(bytes)
    }
}

impl run::Host for Numbers {
    fn output(&mut self, output: run::Output<'_>) {
        match output {
            run::Output::Value { value, .. } => self.0.push(value.int()),
            run::Output::Map { rows, .. } => self.0.extend(rows.iter().map(|r| r.held.read(&Type::INT).int())),
            _ => {}
        }
    }

    fn wall(&mut self, _: Option<u64>) -> time::Wall {
        time::Wall::default()
    }
}

#[test]
fn loops_that_are_written_out_do_what_they_did() {
    let text = "struct node { struct node *next; uint64 n; } uprobe:/bin/x:f { $p = (struct node *)arg0; $i = 5;
        while ($i-- > 0) { if ($i == 1) { break; } @n += $p->n; $p++; } print(@n); print($i); }";
    let run = |moves: bool| {
        let mut p = compile(text, &params(), &world()).expect("a script");
        if moves {
            hoist::hoist(&mut p);
            assert_eq!(p.hoisted.len(), 5);
        }
        let mut numbers = Numbers(Vec::new());
        run::Machine::new(p, 1).run(0, &Numbers(Vec::new()), &mut numbers);
        numbers.0
    };
    // Each reads the lowest byte of its address: 8, 24, and 40.
    assert_eq!((run(true), run(false)), (vec![72, 1], vec![72, 1]));
}

#[test]
fn doubtful() {
    check(
        "begin { if (pid & 1 == 1) { } if ($1 < 2 < 3) { } if (nsecs < (int64)5) { } pid; }",
        expect![[r#"
        begin <Value("pid"): uint32> <Value("nsecs"): uint64>
        stdin:1:19-25: WARNING: '&' is applied to the result of '==' [S0018]
        begin { if (pid & 1 == 1) { } if ($1 < 2 < 3) { } if (nsecs < (int64)5) { } pid; }
                          ~~~~~~
        HINT: write (a & b) == c, or add parentheses if this is meant
        stdin:1:35-41: WARNING: '<' is applied to the result of '<' [S0018]
        begin { if (pid & 1 == 1) { } if ($1 < 2 < 3) { } if (nsecs < (int64)5) { } pid; }
                                          ~~~~~~
        HINT: write a < b && b < c, or add parentheses if this is meant
        stdin:1:54-72: WARNING: uint64 and int64 are compared as signed [S0018]
        begin { if (pid & 1 == 1) { } if ($1 < 2 < 3) { } if (nsecs < (int64)5) { } pid; }
                                                             ~~~~~~~~~~~~~~~~~~
        HINT: cast one of them: (uint64)…
        stdin:1:77-80: WARNING: this does nothing [S0018]
        begin { if (pid & 1 == 1) { } if ($1 < 2 < 3) { } if (nsecs < (int64)5) { } pid; }
                                                                                    ~~~
        HINT: print() shows a value"#]],
    );
}

#[test]
fn c_declarations_and_directives() {
    check(
        "#include <linux/sched.h>
#define LIMIT 10 // ten
#define TWICE (LIMIT * 2)
#ifndef BPFTRACE_HAVE_BTF
#error no
#else
struct inner { char c; int i; };
#endif
#if LIMIT > 5 && defined(TWICE)
enum colour { RED, GREEN = 5, BLUE };
#elif 1
garbage ))
#else
more garbage
#endif
struct outer { uint8_t a; struct inner in[2]; union { u32 x; u64 y; }; unsigned int b1 : 3, b2 : 13; struct outer *next; char name[16]; void (*f)(int); } __attribute__((packed));
typedef unsigned long word_t;
uprobe:/bin/x:f /arg0 < TWICE/ {
  $o = (struct outer *)arg0;
  @s = (sizeof(struct outer), sizeof(struct inner), offsetof(struct outer, in), offsetof(struct outer, y), sizeof(word_t), sizeof($o));
  @f = ($o->a, $o->in[1].i, $o->next->b2, $o.x, BLUE);
  printf(\"%s %s %d\\n\", $o->name, RED, *(uint16 *)arg1);
  $q = $o + 1; $b = (uint8[4])arg0; $c = $b[1];
}",
        expect![[r#"
            uprobe:/bin/x:f <Number(0): uint64> <Number(1): uint64> struct outer * struct outer * uint8[4] uint8
            @f[]: (uint8,int32,uint32,uint32,enum colour)
            @s[]: (int8,int8,int8,int8,int8,int8)
        "#]],
    );
    check_all(
        &[
            "struct a { int x; struct b y; }; begin { }",
            "struct a { float x; }; begin { }",
            "struct a { int x; }; begin { $a = (struct a *)1; print($a->y); print($a->x->z); print(*$a); print($a.x[1]); }",
            "begin { print(((struct nope *)1)->x); print(sizeof(struct nope)); print((nope)1); }",
            "#define F(x) x\nbegin { print(F(1)); }",
            "#define A B B\n#define B C C\n#define C 1\nbegin { print(A); }",
            "#if 1\nbegin { }",
            "#endif\nbegin { }",
            "#defne X 1\nbegin { }",
            "#define BAD 'xy'\nbegin { print(BAD); }",
            "int x; begin { }",
        ],
        expect![[r#"
            stdin:1:28-29: ERROR: the size of 'struct b' is not known here [S0009]
            struct a { int x; struct b y; }; begin { }
                                       ~
            HINT: declare it before, or make the member a pointer

            stdin:1:12-17: ERROR: 'float': scripts have no floating point [S0009]
            struct a { float x; }; begin { }
                       ~~~~~
            HINT: uint32 or uint64 take the same room

            stdin:1:56-61: ERROR: 'struct a' has no member 'y' [S0010]
            struct a { int x; }; begin { $a = (struct a *)1; print($a->y); print($a->x->z); print(*$a); print($a.x[1]); }
                                                                   ~~~~~
            stdin:1:70-78: ERROR: a value of type int32 has no member 'z' [S0010]
            struct a { int x; }; begin { $a = (struct a *)1; print($a->y); print($a->x->z); print(*$a); print($a.x[1]); }
                                                                                 ~~~~~~~~
            HINT: cast it to the address of a structure: ((struct NAME *)…)
            stdin:1:99-106: ERROR: a value of type int32 has no elements [S0008]
            struct a { int x; }; begin { $a = (struct a *)1; print($a->y); print($a->x->z); print(*$a); print($a.x[1]); }
                                                                                                              ~~~~~~~
            HINT: arrays and addresses have; a map is written @name[…]

            stdin:1:15-36: ERROR: 'struct nope' is not declared, and not a structure of the kernel [S0010]
            begin { print(((struct nope *)1)->x); print(sizeof(struct nope)); print((nope)1); }
                          ~~~~~~~~~~~~~~~~~~~~~
            HINT: declare it in the script: struct nope { … };
            stdin:1:45-64: ERROR: the size of struct nope is not known [S0008]
            begin { print(((struct nope *)1)->x); print(sizeof(struct nope)); print((nope)1); }
                                                        ~~~~~~~~~~~~~~~~~~~
            HINT: declare the structure in the script: struct NAME { … };
            stdin:1:74-78: ERROR: unknown type 'nope' [S0008]
            begin { print(((struct nope *)1)->x); print(sizeof(struct nope)); print((nope)1); }
                                                                                     ~~~~
            HINT: a structure is written struct NAME

            stdin:2:15-16: ERROR: 'F' is a macro of C with parameters [S0014]
            begin { print(F(1)); }
                          ~
            stdin:1:9-10: it is defined here
            HINT: write it in the script's language: macro F(x) { … }

            stdin:4:15-16: ERROR: expected ')', found 'A' [S0002]
            begin { print(A); }
                          ~

            stdin:1:1-6: ERROR: a directive without its #endif [S0009]
            #if 1
            ~~~~~

            stdin:1:1-7: ERROR: #endif without an #if [S0009]
            #endif
            ~~~~~~

            stdin:1:1-11: ERROR: unknown directive 'defne' [S0009]
            #defne X 1
            ~~~~~~~~~~
            HINT: did you mean #define?

            stdin:1:9-12: ERROR: not one character between the quotes [S0001]
            #define BAD 'xy'
                    ~~~
            stdin:2:15-18: it is used here
            HINT: write strings in double quotes

            stdin:1:1-4: ERROR: no provider is called 'int' [S0004]
            int x; begin { }
            ~~~
            HINT: a probe is PROVIDER:NAME; `trapline list` shows them
        "#]],
    );
}

#[test]
fn macros() {
    check(
        "macro add($x, e) { $x += e; } macro twice(e) { e + e } macro count_in(@m, k) { let $k = k; @m[$k] = count(); } macro five { 5 }
         begin { $k = 1; add($k, 5); $r = twice($k + 1); count_in(@a, comm); print($k); }"
            .replace(" macro five { 5 }", "")
            .as_str(),
        expect![[r#"
            begin <Value("comm"): string[16]> int64 int64 string[16]
            @a[string[16]]: count()
        "#]],
    );
    check_all(
        &[
            "macro f($x) { $x } begin { print(f(1)); }",
            "macro f(x) { f(x) } begin { print(f(1)); }",
            "macro f() { @a = 1; } begin { f(); }",
            "macro f(x) { $y } begin { $y = 1; print(f(1)); }",
            "macro f(x) { x = 1; } begin { }",
            "macro f(x) { $z = x; } begin { print(f(1)); f(2); }",
            "macro f(x) { x } begin { print(f(1, 2)); }",
        ],
        expect![[r#"
            stdin:1:34-38: ERROR: no macro 'f' takes these arguments [S0014]
            macro f($x) { $x } begin { print(f(1)); }
                                             ~~~~
            stdin:1:7-8: it is defined here
            HINT: there is f($x): $x takes a variable, @x a map

            stdin:1:14-18: ERROR: the macro 'f' uses itself [S0014]
            macro f(x) { f(x) } begin { print(f(1)); }
                         ~~~~
            stdin:1:7-8: it is defined here
            HINT: a loop does what recursion does: for $i : 0..10 { … }

            stdin:1:13-15: ERROR: '@a' is not one of the macro's parameters [S0014]
            macro f() { @a = 1; } begin { f(); }
                        ~~
            HINT: add @a to its parameters, and pass the map where it is used

            stdin:1:14-16: ERROR: nothing is assigned to '$y' here [S0006]
            macro f(x) { $y } begin { $y = 1; print(f(1)); }
                         ~~
            HINT: macros and functions know their parameters and their own variables only

            stdin:1:14-15: ERROR: only variables and maps are assigned to [S0015]
            macro f(x) { x = 1; } begin { }
                         ~
            HINT: a variable is written $x, a map @x

            stdin:1:38-42: ERROR: this has no value [S0015]
            macro f(x) { $z = x; } begin { print(f(1)); f(2); }
                                                 ~~~~
            HINT: it is a statement: put it on a line of its own

            stdin:1:32-39: ERROR: no macro 'f' takes these arguments [S0014]
            macro f(x) { x } begin { print(f(1, 2)); }
                                           ~~~~~~~
            stdin:1:7-8: it is defined here
            HINT: there is f(x): $x takes a variable, @x a map
        "#]],
    );
}

#[test]
fn functions_records_and_all_arguments() {
    check_all(
        &[
            "fn add($a : int64, $b) : uint8 { return $a + $b; } begin { $x = add(1, 2); @ = add($x, add(3, 4)); }",
            "fn say($what) { if ($what == 1) { return; } @said++; } begin { say(1); say(2); }",
            "fn pair($n) { return (half = $n / 2, all = $n); } begin { $p = pair(7); $h = $p.half; @[$p] = $p.all; }",
            "fn name($n : uint8) : string { if ($n > 3) { return \"big\"; } } begin { $s = name(300); }",
            "syscall:read { $all = args; @[args] = args.count; }",
            "test:a { assert(1 == 1); assert(1, \"one\"); } begin { $x = 1; }",
            // What is wrong.
            "fn f($x) { return f($x); } begin { f(1); }",
            "fn f($x : int32) { return $x; } begin { $y = f(\"a\"); $z = f(1, 2); }",
            "fn f($x) { return $y; } begin { $z = f(1) + f; }",
            "fn f(x) { return 1; } begin { }",
            "fn f($x) { break; } begin { for $i : 0..3 { f($i); } }",
            "fn f() { 1 } begin { $x = f(); return 1; }",
            "begin { $r = (a = 1, b = 2); $x = $r.aa; $y = $r.2; $r = (b = 1, a = 2); $z = (a = 1) == (b = 1); }",
            "begin { $r = (a = 1, a = 2); }",
            "tracepoint:no:such { print(args); } begin { print(args); }",
            "test:a { assert(1 == 1); }",
            "test:a { } begin { assert(\"a\"); assert(1, 2); }",
        ],
        expect![[r#"
            begin int64 int8 uint8 uint8 int64 int64 int8 uint8 uint8 uint8
            @[]: uint8

            begin int8 int8
            @said[]: int64

            begin int8 (half=int64,all=int8) (half=int64,all=int8) int64
            @[(half=int64,all=int8)]: int8

            begin uint8 string[64] string[64]

            syscall:read <Arg("fd"): int32> <Arg("count"): uint64> (fd=int32,count=uint64)
            @[(fd=int32,count=uint64)]: uint64

            begin int8

            stdin:1:19-24: ERROR: the function 'f' uses itself [S0014]
            fn f($x) { return f($x); } begin { f(1); }
                              ~~~~~
            stdin:1:4-5: it is defined here
            HINT: a loop does what recursion does: for $i : 0..10 { … }

            stdin:1:59-66: ERROR: no function 'f' takes these arguments [S0014]
            fn f($x : int32) { return $x; } begin { $y = f("a"); $z = f(1, 2); }
                                                                      ~~~~~~~
            stdin:1:4-5: it is defined here
            HINT: there is f($x)

            stdin:1:19-21: ERROR: nothing is assigned to '$y' here [S0006]
            fn f($x) { return $y; } begin { $z = f(1) + f; }
                              ~~
            HINT: macros and functions know their parameters and their own variables only
            stdin:1:45-46: ERROR: 'f' is a function of 1 parameters [S0005]
            fn f($x) { return $y; } begin { $z = f(1) + f; }
                                                        ~
            stdin:1:4-5: it is defined here
            HINT: write f(…)

            stdin:1:6-7: ERROR: expected a parameter [S0002]
            fn f(x) { return 1; } begin { }
                 ~
            HINT: write $x or $x : type; a macro takes maps: macro name(@m) { … }

            stdin:1:12-17: ERROR: 'break' outside of a loop [S0015]
            fn f($x) { break; } begin { for $i : 0..3 { f($i); } }
                       ~~~~~
            HINT: return ends the clause

            stdin:1:39-40: ERROR: a clause returns no value [S0015]
            fn f() { 1 } begin { $x = f(); return 1; }
                                                  ~
            HINT: write return;

            stdin:1:35-40: ERROR: no member of (a=int8,b=int8) is called 'aa' [S0010]
            begin { $r = (a = 1, b = 2); $x = $r.aa; $y = $r.2; $r = (b = 1, a = 2); $z = (a = 1) == (b = 1); }
                                              ~~~~~
            stdin:1:47-51: ERROR: a tuple of 2 parts has no part 2 [S0010]
            begin { $r = (a = 1, b = 2); $x = $r.aa; $y = $r.2; $r = (b = 1, a = 2); $z = (a = 1) == (b = 1); }
                                                          ~~~~
            HINT: they are .0 to .1
            stdin:1:53-55: ERROR: '$r' holds values of type (a=int8,b=int8), not values of type (b=int8,a=int8) [S0008]
            begin { $r = (a = 1, b = 2); $x = $r.aa; $y = $r.2; $r = (b = 1, a = 2); $z = (a = 1) == (b = 1); }
                                                                ~~
            stdin:1:9-11: it got its type here
            HINT: use another variable, or a cast
            stdin:1:79-97: ERROR: (a=int8) and (b=int8) cannot be compared [S0008]
            begin { $r = (a = 1, b = 2); $x = $r.aa; $y = $r.2; $r = (b = 1, a = 2); $z = (a = 1) == (b = 1); }
                                                                                          ~~~~~~~~~~~~~~~~~~

            stdin:1:22-23: ERROR: a second member 'a' [S0010]
            begin { $r = (a = 1, a = 2); }
                                 ~

            stdin:1:28-32: ERROR: the arguments are not known together [S0010]
            tracepoint:no:such { print(args); } begin { print(args); }
                                       ~~~~
            HINT: write args.NAME
            stdin:1:51-55: ERROR: 'begin' has no 'args' [S0010]
            tracepoint:no:such { print(args); } begin { print(args); }
                                                              ~~~~
            stdin:1:37-42: it is one of the clause's probes
            HINT: the value is there at probes that have named arguments

            stdin:1:1-27: ERROR: a script of tests alone [S0002]
            test:a { assert(1 == 1); }
            ~~~~~~~~~~~~~~~~~~~~~~~~~~
            HINT: run them with trapline test FILE

            stdin:1:27-30: ERROR: a string is neither true nor false [S0008]
            test:a { } begin { assert("a"); assert(1, 2); }
                                      ~~~
            HINT: compare it: … != ""
            stdin:1:43-44: ERROR: '%s' does not show integers [S0012]
            test:a { } begin { assert("a"); assert(1, 2); }
                                                      ~
            HINT: write %d
        "#]],
    );
}

#[test]
fn messages_name_the_file_and_its_line() {
    let library = "// one\nfn f($x) { return $y; }\nmacro m(x) { x + nothing }\n";
    let files =
        [("lib.bt".to_string(), library.to_string()), ("main.bt".into(), "begin {\n  print(f(m(1)));\n}".into())];
    let text = import::join(&files);
    let found = compile(&text, &params(), &world()).map(drop).unwrap_err();
    let all: Vec<String> = found.iter().map(|d| d.show("main.bt", &text)).collect();
    expect![[r#"
        lib.bt:3:18-25: ERROR: 'nothing' is neither a value nor a constant [S0005]
        macro m(x) { x + nothing }
                         ~~~~~~~
        HINT: a variable is written $nothing, a map @nothing
        lib.bt:2:19-21: ERROR: nothing is assigned to '$y' here [S0006]
        fn f($x) { return $y; }
                          ~~
        HINT: macros and functions know their parameters and their own variables only
        main.bt:2:9-16: ERROR: this has no value [S0015]
          print(f(m(1)));
                ~~~~~~~
        HINT: it is a statement: put it on a line of its own"#]]
    .assert_eq(&all.join("\n"));
    assert_eq!(crate::diag::start("main.bt", found[0].span, &text), "lib.bt:3:18");
}

#[test]
fn settings_and_declared_maps() {
    check(
        "config = { max_strlen = 64; stack_mode = perf; BPFTRACE_MAX_MAP_KEYS = 10 } let @m = lruhash(5); begin { @m[1] = comm; @s = probe; print(kstack); }",
        expect![[r#"
        begin <Value("comm"): string[16]> <Value("probe"): string[65]> <Value("kstack"): kstack>
        @m[int8]: string[16]
        @s[]: string[65]
    "#]],
    );
    check_all(
        &[
            "config = { max_strlne = 64 } begin { }",
            "config = { stack_mode = fancy } begin { }",
            "let @m = hsh(5); begin { }",
            "let $m = 5; begin { }",
            "import \"x.bt\"; begin { }",
            "fn f($x) { } begin { }",
            "begin { $r = (a = 1, b = 2); }",
            "let @unused = hash(1); begin { }",
        ],
        expect![[r#"
            stdin:1:12-27: ERROR: no setting is called 'max_strlne' [S0011]
            config = { max_strlne = 64 } begin { }
                       ~~~~~~~~~~~~~~~
            HINT: did you mean max_strlen?

            stdin:1:12-30: ERROR: 'stack_mode' cannot be 'fancy' [S0011]
            config = { stack_mode = fancy } begin { }
                       ~~~~~~~~~~~~~~~~~~
            HINT: it is how stacks are shown: bpftrace, perf or raw

            stdin:1:10-13: ERROR: no kind of map is called 'hsh' [S0005]
            let @m = hsh(5); begin { }
                     ~~~
            HINT: did you mean hash?

            stdin:1:5-7: ERROR: only maps are declared outside of clauses [S0015]
            let $m = 5; begin { }
                ~~
            HINT: write let @name = hash(100);

            stdin:1:1-7: ERROR: an import is a line of its own [S0015]
            import "x.bt"; begin { }
            ~~~~~~
            HINT: write import "FILE"; at the beginning of a line

            begin

            begin (a=int8,b=int8)

            begin
            stdin:1:1-22: WARNING: '@unused' is declared and never used [S0006]
            let @unused = hash(1); begin { }
            ~~~~~~~~~~~~~~~~~~~~~
        "#]],
    );
}

/// Control characters of a text do not reach a terminal, wherever a message quotes them.
#[test]
fn messages_are_printable() {
    for text in [
        "tracepoint:syscalls:a\0b\x1b[31m { print(args.flgs); }",
        "syscall:read { print(args.\x07); }",
        "begin { $a = \"\x1b[2J\" + 1; }",
        "uprobe:/bin/\x1b\x01:f { print(args.x); }",
    ] {
        let said = compile(text, &params(), &world()).expect_err(text);
        for d in said {
            let shown = d.show("a\x1bfile", text);
            assert!(!shown.replace('\n', "").contains(char::is_control), "{shown:?}");
        }
    }
}

#[test]
fn the_reference_has_a_row_for_each_name() {
    let page = table::reference();
    for r in table::ROWS {
        let there = page.contains(&format!("| `{}` |", r.signature()));
        assert_eq!(there, !matches!(r.class, table::Class::Later | table::Class::Refused), "{}", r.name);
        assert!(!r.help.is_empty(), "{}", r.name);
    }
}
