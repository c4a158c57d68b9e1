//! The text of a script: declarations in C, macros, functions, imports, settings; and how messages show it.

use super::*;

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
