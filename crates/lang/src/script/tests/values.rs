//! Types of values, variables and maps.

use super::*;

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
fn numbers_of_threads_are_those_of_their_trace() {
    let text = "syscall:openat { @a[tid] = 1; @a[tid] = 2; @b[trace, tid] = 1; @c[pid] = count(); @d[host] = count(); self->x = 1; }";
    let of = |is_several| {
        let program = compile(text, &params(), &Known { is_several, ..world() }).unwrap();
        let warned: Vec<String> = program.warnings.iter().map(|w| w.show("s", text)).collect();
        let thread = program.clauses[0].leaves.iter().any(|leaf| leaf.what == ir::What::thread_of_all());
        (warned.len(), thread, warned.join(""))
    };
    assert_eq!(of(false), (0, false, String::new()));
    let (n, thread, text) = of(true);
    assert_eq!((n, thread), (2, true), "{text}");
    assert!(text.contains("write @a[trace, tid]") && text.contains("write @c[trace, pid]"), "{text}");
}

#[test]
fn the_mode_of_the_processor_is_read_where_it_is_not_known() {
    check(
        "profile:hz:99 { @[usermode] = count(); } begin, uprobe:/bin/x:f, heap:malloc { @[usermode] = count(); } begin, kprobe:f /!usermode/ { @n++; }",
        expect![[r#"
            profile:hz:99 <Register("cs"): uint64>
            begin, uprobe:/bin/x:f, heap:malloc
            begin, kprobe:f <Register("cs"): uint64>
            @[bool]: count()
            @n[]: int64
        "#]],
    );
}
