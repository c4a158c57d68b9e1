//! Statements and expressions.

use super::*;

#[test]
fn values() {
    begin(
        r#"print(1); print(-1); print(18446744073709551615); print("a"); print('a'); print(1 == 1); print((1, "b", (2, false)));
           print((uint8)300); print((int8)200); print((void *)50); @ = 5; @x["a", 1] = 2; @x["b", 2] = 1; @y[1, (2, 3)] = 1;"#,
        expect![[r#"
            1
            -1
            18446744073709551615
            a
            97
            true
            (1, b, (2, false))
            44
            -56
            0x32


            @: 5
            @x[b, 2]: 1
            @x[a, 1]: 2
            @y[1, (2, 3)]: 1
        "#]],
    );
}

#[test]
fn numbers() {
    begin(
        "$zero = 0; print(5 / $zero); print(5 % $zero); print(-7 / 2); print(-7 % 2); print((uint64)-7 / 2 > 5); print(1 << 65); print(-8 >> 1); print(~0); print(-5 < (uint8)3);
         print((uint64)-1 > 5); print(0x7fffffffffffffff + 1); $x = (uint8)255; $x++; print($x); let $y: uint8 = 255; $y++; print($y); @c--; @c--; @o |= 6; @o &= 3; @o <<= 2; print(10ms);
         print(3 ?: 4); print(0 ?: 4); print($zero ? 1 : 2); print($zero++ + ++$zero); print(1 && $zero || 0); print(!5); print($1 + $#);",
        expect![[r#"
            1
            1
            -3
            -1
            true
            2
            9223372036854775804
            -1
            true
            true
            -9223372036854775808
            256
            0
            10000000
            3
            4
            2
            2
            true
            false
            5


            @c: -2
            @o: 8
            DivisionByZero at '5 / $zero': 1
            DivisionByZero at '5 % $zero': 1
        "#]],
    );
}

#[test]
fn pointers_count_by_what_they_are_of() {
    begin(
        "@a = (int32 *)32; @a++; $b = (int64 *)32; ++$b; $b++; $b--; @c = (int8 *)32; --@c; print($b); print(@a++); print(@a);",
        expect![[r#"
            0x28
            0x24
            @a: 0x28


            @a: 0x28
            @c: 0x1f
        "#]],
    );
    begin(
        "@a = (uint16 **)32; @a++; print(@a); $t = (int16 *)4; $t += 3; $t--; print($t);",
        expect![[r#"
        @a: 0x28
        0x8


        @a: 0x28
    "#]],
    );
}

#[test]
fn loops() {
    begin(
        r#"for $i : 0..5 { if ($i == 1) { continue; } if ($i == 4) { break; } printf("%d ", $i); } $n = 3; while ($n > 0) { printf("%d ", $n); $n--; } unroll(3) { printf("u"); }
           @m["a"] = 1; @m["b"] = 2; for ($kv : @m) { print($kv); @m["c"] = 3; } @p[1, 2] = count(); for ($kv : @p) { print($kv.0.1); } while (1) { @rounds++; }"#,
        expect![[r#"
            0 2 3 3 2 1 uuu(a, 1)
            (b, 2)
            2


            @m[a]: 1
            @m[b]: 2
            @m[c]: 3
            @p[1, 2]: 1
            @rounds: 986
            TooManyRounds at 'while': 1
        "#]],
    );
    begin(
        r#"print({ $a = 1; $a + 1 }); $b = { if (1) { return; } 5 }; print("never");"#,
        expect![[r#"
        2


    "#]],
    );
    begin(
        "print(1); exit(3); print(2); } interval:1s { print(3); } end { print(4);",
        expect![[r#"
        1
        4


        exit 3
    "#]],
    );
}

#[test]
fn functions() {
    begin(
        r#"print(strlen("abc")); print(strncmp("abcd", "abxx", 2)); print(strncmp("a", "b", 5) != 0); print(strcontains("hello", "ell")); print(strstr("hello", "lo")); print(strstr("a", "b"));
           print(startswith("hello", "he")); print(str_concat("a", "b")); print(bswap((uint16)0x1234)); print(bswap((uint64)1)); print(ntop(0x0100007f)); print(ntop(pton("::1"))); print(ntop(pton("10.0.0.1")));
           print(macaddr((uint8[6])0x665544332211)); print(strerror(2)); print(strerror(9999)); print(signal_name(9)); print(syscall_name(0)); print(memcmp("abc", "abd", 3)); print(memcmp("abc", "abd", 2));
           print(sizeof(uint32)); print((int8[])"ab"); print((uint16[2])0x20001); print(buf("a\x01")); print(len(@m)); @m[1] = 1; print(delete(@m, 1)); print(delete(@m, 1)); print(has_key(@m, 1));
           @t[1] = (1, "x"); if (find(@t, 1, $v)) { print($v.1); } print(find(@t, 2, $v)); print(str($2)); print(str("abcdef", 4)); print(getopt("no", 5)); print(ksym(0x401000)); print(usym(0x401001)); join(("a", "b"), "+");
           $r = rand; print($r != rand);"#,
        expect![[r#"
            3
            0
            true
            true
            3
            -1
            true
            ab
            13330
            72057594037927936
            127.0.0.1
            ::1
            10.0.0.1
            11:22:33:44:55:66
            No such file or directory
            Unknown error 9999
            SIGKILL
            read
            -1
            0
            4
            ab
            [1,2]
            a\x01
            0
            true
            false
            false
            x
            false
            a b
            abc
            5
            work
            0x401001
            a+b
            true


            @t[1]: (1, x)
        "#]],
    );
}

#[test]
fn arrays_of_strings() {
    static BYTES: &[u8] = b"\x18\x10\0\0\0\0\0\0\x1b\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0ls\0-l\0";
    let mut e = event(&[("arg0", 0x1000)], &[]);
    e.memory = BYTES;
    let script = r#"uprobe:/bin/x:f { join((char **)arg0); join((char **)arg0, "|"); }"#;
    expect![[r#"
        ls -l
        ls|-l


    "#]]
    .assert_eq(&run(script, &[e]));
}

#[test]
fn variables_of_threads() {
    let script = "tracepoint:syscalls:sys_enter_open { self->n++; self->s = (self->n, args.flags); printf(\"%d %d %d\\n\", tid, self->n, self->s.1);
        if (self->n == 2) { self->n = 0; } @[tid] = self->n; }";
    let of = |tid, n| event(&[("tid", tid), ("flags", n)], &[]);
    let printed = run(script, &[of(1, 5), of(2, 6), of(1, 7), of(1, 8)]);
    expect![[r#"
        1 1 5
        2 1 6
        1 2 7
        1 1 8


        @[1]: 1
        @[2]: 1
    "#]]
    .assert_eq(&printed);
}

#[test]
fn macros_run() {
    let script =
        "macro add($x, e) { $x += e; } macro twice(e) { e + e } macro note(@m, k) { let $k = k; @m[$k] = count(); }
        begin { $k = 1; add($k, 5); print(twice($k + 1)); note(@seen, $k); print($k); }";
    expect![[r#"
        14
        6


        @seen[6]: 1
    "#]]
    .assert_eq(&run(script, &[]));
}
