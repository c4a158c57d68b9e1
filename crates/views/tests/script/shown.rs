//! How values and maps are shown.

use super::*;

#[test]
fn formats() {
    begin(
        r#"printf("%5s|%-5s|%.2s|%5.1s|\n", "abc", "ab", "abcd", "xyz"); printf("%5d|%-5d|%05d|%+d|% d|%.3d\n", -3, -3, -3, 3, 3, 3);
           printf("%x|%X|%#x|%o|%p|%p|%c|%u\n", 255, 255, 255, 8, 255, 0, 65, -1); printf("%ld %llu %hd %hhd %lu %lx\n", -1, -1, 65537, 257, 3, -1);
           printf("%d %u\n", (uint64)1099511627776, (int8)-1); printf("%r|%rx|%rh\n", buf("ab\n", 3), buf("ab", 2), buf("ab", 2));
           printf("%s %d %s%%\n", true, true, (string)"x"); errorf("bad %d", 5); warnf("hm"); cat("/proc/%d/maps", 12); time(); time("%F\n");
           printf("%s\n", strftime("%H:%M:%S.%f", 1500000)); printf("no newline");"#,
        expect![[r#"
              abc|ab   |ab|    x|
               -3|-3   |-0003|+3| 3|003
            ff|FF|0xff|10|0xff|(nil)|A|4294967295
            -1 18446744073709551615 1 1 3 ffffffffffffffff
            1099511627776 4294967295
            ab\x0a|\x61\x62|61 62
            true 1 x%
            </proc/12/maps>
            01:46:40
            2001-09-09
            00:00:00.001500
            no newline

            stdin:4:61-80: ERROR: bad 5
            stdin:4:82-93: WARNING: hm
        "#]],
    );
}

#[test]
fn order_of_maps() {
    begin(
        r#"@a["x", 1] = 1; @a["x", 2] = 1; @a["a", 3] = 0; @b[1] = "z"; @b[0] = "y"; @c = ("a", (1, "b")); @d = count(); @e[1] = count(); @e[3] = count();
           @e[3] = count(); @f[1] = min(3); @f[2] = min(-4); @f[3] = min(7); @g[1] = avg(3); @g[2] = avg(-4); @h[1] = stats(5); @h[2] = stats(1); @h[2] = stats(3);
           @i[-3, "a"] = "v"; @i[1, "b"] = "v"; @i[1, "a"] = "v"; @s["x"] = sum(5); @s["y"] = sum(2); @s["z"] = sum(9); print(@s, 2); print(@s, 2, 2); print(@s["y"]);
           @m = max(-1); @m = max(-5); @n = min(5); print(@unset); print(@unsets); @k[1] = 1; clear(@k); print(@k); if (0) { @unset = 1; @unsets = "a"; } zero(@e);"#,
        expect![[r#"
            @s[x]: 5
            @s[z]: 9
            @s[x]: 2
            @s[z]: 4
            @s[y]: 2
            @unset: 0
            @unsets: 


            @a[a, 3]: 0
            @a[x, 1]: 1
            @a[x, 2]: 1
            @b[0]: y
            @b[1]: z
            @c: (a, (1, b))
            @d: 1
            @e[1]: 0
            @e[3]: 0
            @f[1]: 3
            @f[3]: 7
            @f[2]: -4
            @g[2]: -4
            @g[1]: 3
            @h[2]: { .count = 2, .average = 2, .total = 4 }
            @h[1]: { .count = 1, .average = 5, .total = 5 }
            @i[-3, a]: v
            @i[1, a]: v
            @i[1, b]: v
            @m: -1
            @n: 5
            @s[y]: 2
            @s[x]: 5
            @s[z]: 9
        "#]],
    );
}

#[test]
fn charts() {
    begin(
        "@h = hist(-5); @h = hist(0); @h = hist(1); @h = hist(5); @h = hist(5); @h = hist(1023); @h = hist(1025); @big = hist(1 << 40); @big = hist(1 << 41);
         @fine = hist(4, 2); @fine = hist(5, 2); @fine = hist(9, 2); @fine = hist(12, 2); @fine = hist(4096, 2); @k[\"a\"] = hist(1); @k[\"b\"] = hist(1); @k[\"b\"] = hist(2);
         @l = lhist(-1, 0, 10, 5); @l = lhist(0, 0, 10, 5); @l = lhist(10, 0, 10, 5); @kilo = lhist(5000, 0, 10240, 1024); @kilo = lhist(2000, 0, 10240, 1024); print(@k, 1); print(@h, 0, 2); print(@l, 0, 2);",
        expect![[r#"
            @k[b]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2, 4)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @h:
            (..., 0)               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [0]                    0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1]                    0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [2, 4)                 0 |                                                    |
            [4, 8)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [8, 16)                0 |                                                    |
            [16, 32)               0 |                                                    |
            [32, 64)               0 |                                                    |
            [64, 128)              0 |                                                    |
            [128, 256)             0 |                                                    |
            [256, 512)             0 |                                                    |
            [512, 1K)              0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1K, 2K)               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |

            @l:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [0, 5)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5, 10)                0 |                                                    |
            [10, ...)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|



            @big:
            [1T, 2T)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2T, 4T)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @fine:
            [4]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [6]                    0 |                                                    |
            [7]                    0 |                                                    |
            [8, 10)                1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [10, 12)               0 |                                                    |
            [12, 14)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [14, 16)               0 |                                                    |
            [16, 20)               0 |                                                    |
            [20, 24)               0 |                                                    |
            [24, 28)               0 |                                                    |
            [28, 32)               0 |                                                    |
            [32, 40)               0 |                                                    |
            [40, 48)               0 |                                                    |
            [48, 56)               0 |                                                    |
            [56, 64)               0 |                                                    |
            [64, 80)               0 |                                                    |
            [80, 96)               0 |                                                    |
            [96, 112)              0 |                                                    |
            [112, 128)             0 |                                                    |
            [128, 160)             0 |                                                    |
            [160, 192)             0 |                                                    |
            [192, 224)             0 |                                                    |
            [224, 256)             0 |                                                    |
            [256, 320)             0 |                                                    |
            [320, 384)             0 |                                                    |
            [384, 448)             0 |                                                    |
            [448, 512)             0 |                                                    |
            [512, 640)             0 |                                                    |
            [640, 768)             0 |                                                    |
            [768, 896)             0 |                                                    |
            [896, 1024)            0 |                                                    |
            [1024, 1280)           0 |                                                    |
            [1280, 1536)           0 |                                                    |
            [1536, 1792)           0 |                                                    |
            [1792, 2048)           0 |                                                    |
            [2048, 2560)           0 |                                                    |
            [2560, 3072)           0 |                                                    |
            [3072, 3584)           0 |                                                    |
            [3584, 4K)             0 |                                                    |
            [4K, 5K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @h:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [0]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [2, 4)                 0 |                                                    |
            [4, 8)                 2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [8, 16)                0 |                                                    |
            [16, 32)               0 |                                                    |
            [32, 64)               0 |                                                    |
            [64, 128)              0 |                                                    |
            [128, 256)             0 |                                                    |
            [256, 512)             0 |                                                    |
            [512, 1K)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |
            [1K, 2K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@                          |

            @k[a]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @k[b]:
            [1]                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2, 4)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @kilo:
            [1K, 2K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [2K, 3K)               0 |                                                    |
            [3K, 4K)               0 |                                                    |
            [4K, 5K)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

            @l:
            (..., 0)               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [0, 5)                 1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|
            [5, 10)                0 |                                                    |
            [10, ...)              1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|

        "#]],
    );
}

#[test]
fn as_json() {
    let script = r#"begin { @ = 5; @b["x", 1] = 2; @c = hist(5); @c = hist(-5); @d = lhist(5, 0, 10, 2); @d = lhist(50, 0, 10, 2); @e = stats(3); @f = avg(3); @g[1] = stats(2); @h[1, 2] = hist(3);
        printf("%d \"q\"\n", -1); print((1, "a", (2, true))); time("%Y\n"); @t = (1, "x"); print(@); @u = (uint64)-1; print("\n"); }"#;
    expect![[r#"
        {"type": "printf", "data": "-1 \"q\"\n"}
        {"type": "value", "data": [1,"a",[2,true]]}
        {"type": "time", "data": "2001\n"}
        {"type": "map", "data": {"@": 5}}
        {"type": "value", "data": "\n"}


        {"type": "map", "data": {"@": 5}}
        {"type": "map", "data": {"@b": {"x,1": 2}}}
        {"type": "hist", "data": {"@c": [{"max": -1, "count": 1}, {"min": 0, "max": 0, "count": 0}, {"min": 1, "max": 1, "count": 0}, {"min": 2, "max": 3, "count": 0}, {"min": 4, "max": 7, "count": 1}]}}
        {"type": "hist", "data": {"@d": [{"min": 4, "max": 5, "count": 1}, {"min": 6, "max": 7, "count": 0}, {"min": 8, "max": 9, "count": 0}, {"min": 10, "count": 1}]}}
        {"type": "stats", "data": {"@e": {"count": 1, "average": 3, "total": 3}}}
        {"type": "stats", "data": {"@f": 3}}
        {"type": "stats", "data": {"@g": {"1": {"count": 1, "average": 2, "total": 2}}}}
        {"type": "hist", "data": {"@h": {"1,2": [{"min": 2, "max": 3, "count": 1}]}}}
        {"type": "map", "data": {"@t": [1,"x"]}}
        {"type": "map", "data": {"@u": 18446744073709551615}}
    "#]].assert_eq(&run_as(script, &[], true));
}

#[test]
fn structures_are_objects_in_json() {
    let script = "struct s { int m; struct { int x[2]; bool b } in; char c[4]; int lo : 3, hi : 5; };
        uprobe:/x:f { $s = *(struct s *)arg0; print($s); @[$s.m] = ($s.in, $s.c); }";
    let memory = b"\x02\0\0\0\x03\0\0\0\xff\xff\xff\xff\x01\0\0\0abc\0\x0f\0\0\0";
    let e = || Fake { memory, ..event(&[("arg0", 0x1000)], &[]) };
    expect![[r#"
        { .m = 2, .in = { .x = [3,-1], .b = true }, .c = abc, .lo = -1, .hi = 1 }


        @[2]: ({ .x = [3,-1], .b = true }, abc)
    "#]]
    .assert_eq(&run(script, &[e()]));
    expect![[r#"
        {"type": "value", "data": { "m": 2, "in": { "x": [3,-1], "b": true }, "c": "abc", "lo": -1, "hi": 1 }}


        {"type": "map", "data": {"@": {"2": [{ "x": [3,-1], "b": true },"abc"]}}}
    "#]]
    .assert_eq(&run_as(script, &[e()], true));
}

#[test]
fn strings_of_the_target_are_escaped_and_marked() {
    let script = "config = { max_strlen = 8 } begin { print(str_concat(\"12345\", \"6789\")); printf(\"\\033[1m%s|%s\\n\", \"\\033[0m\", comm); print(comm); print(\"\\033[0m\"); }";
    expect![[r#"
        12345678..
        [1m[0m|trapline
        trapline
        [0m


    "#]]
    .assert_eq(&run(script, &[]));
}

#[test]
fn maps_side_by_side() {
    let maps = r#"@n["a", 1] = count(); @n["a", 1] = count(); @n["b", 2] = count(); @t["b", 2] = avg(7); @t["c", 3] = avg(5);"#;
    begin(
        &format!(r#"{maps} printa(@n, @t); printa("%s/%d is %@d and %@d\n", @n, @t); clear(@n); clear(@t);"#),
        expect![[r#"
            c                                               3                0                5
            b                                               2                1                7
            a                                               1                2                0
            c/3 is 0 and 5
            b/2 is 1 and 7
            a/1 is 2 and 0


        "#]],
    );
    begin(
        r#"printa(@one, @two); @one = count(); @two = sum(4); printa("%@u of %@u\n", @one, @two); clear(@one); clear(@two); printa(@one); clear(@one)"#,
        expect![[r#"
            1 of 4
                           0


            @one: 0
        "#]],
    );
}

#[test]
fn output_waits_for_the_outcome() {
    begin(
        r#"$a = speculation(); $b = speculation(); @m[1] = 2;
           speculate($a); printf("first of %d\n", $a); print(@m); print((1, "x")); time("%Y\n");
           speculate($b); print("unwanted"); discard($b); print("at once");
           commit($a); commit($a);
           speculate($b); print("too late"); commit($b);
           print(speculation());"#,
        expect![[r#"
            at once
            first of 1
            @m[1]: 2
            (1, x)
            2001
            3


            @m[1]: 2
        "#]],
    );
    // What nobody commits is not printed; the next run prints again.
    let script =
        "tracepoint:syscalls:sys_enter_open { print(args.flags); speculate(speculation()); print(args.flags); }";
    let flags = |n| event(&[("flags", n)], &[]);
    assert_eq!(run(script, &[flags(1), flags(2)]), "1\n2\n\n\n");
}

#[test]
fn maps_are_not_printed_where_settings_say_so() {
    assert_eq!(run("config = { print_maps_on_exit = false } begin { @ = 1; }", &[]), "\n\n");
}
