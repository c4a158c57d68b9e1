//! Probes, statements, calls and names.

use super::*;

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
fn the_reference_has_a_row_for_each_name() {
    let page = table::reference();
    for r in table::ROWS {
        let is_there = !matches!(r.class, table::Class::Later | table::Class::Refused);
        let shown = if is_there { r.signature() } else { r.name.to_string() };
        assert!(page.contains(&format!("| `{shown}` |")), "{}", r.name);
        assert!(!r.help.is_empty(), "{}", r.name);
    }
}
