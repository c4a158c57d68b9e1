//! What mistakes of metadata are said to be, and where.

use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    let error = ctf::tsdl::parse("metadata", text).expect_err("a mistake");
    expected.assert_eq(&error.to_string());
}

/// A trace with that in it, from line 2 on.
fn with(text: &str) -> String {
    format!("trace {{ byte_order = le; }}; typealias integer {{ size = 8; }} := u8;\n{text}")
}

#[test]
fn lexical() {
    check("trace { @ };", expect!["metadata:1:9: `@` is not part of the language"]);
    check("/* no end", expect!["metadata:1:1: a comment that does not end"]);
    check("trace {\n  uuid = \"abc\n};", expect!["metadata:2:10: a string that does not end on its line"]);
    check("env { a = \"\\q\"; };", expect!["metadata:1:12: an unknown escape in a string"]);
    check(
        "env { a = 99999999999999999999; };",
        expect!["metadata:1:11: `99999999999999999999` is not an integer of 64 bits"],
    );
    check("env { a = 08; };", expect!["metadata:1:11: `08` is not an integer of 64 bits"]);
}

#[test]
fn blocks() {
    check("", expect!["metadata:1:1: there is no trace block with a `byte_order`"]);
    check("trace { byte_order = le; major = 2; };", expect!["metadata:1:34: `major` is an integer from 1 to 1"]);
    check(&with("trace { };"), expect!["metadata:2:1: there are two trace blocks"]);
    check(&with("probe { };"), expect!["metadata:2:1: `probe` begins neither a block nor a declaration"]);
    check(&with("event { id = 1; };"), expect!["metadata:2:1: an event needs a `name`"]);
    check(
        &with("stream { id = 1; };\nevent { name = a; stream_id = 2; };"),
        expect!["metadata:3:1: event `a`: there is no stream for `stream_id = 2`"],
    );
    check(
        &with("stream { id = 1; };\nevent { name = a; };\nevent { name = b; };"),
        expect!["metadata:4:1: two events of a stream have the id 0, which is the default"],
    );
    check(
        &with("stream { };\nstream { id = 1; };"),
        expect!["metadata:3:1: streams of one trace need different `id`s"],
    );
    check(
        &with("clock { freq = 0; name = x; };"),
        expect!["metadata:2:16: `freq` is an integer from 1 to 18446744073709551615"],
    );
    check("trace { byte_order = le; uuid = \"12\"; };", expect!["metadata:1:33: a UUID has 32 hexadecimal digits"]);
}

#[test]
fn types() {
    let field = |text: &str| with(&format!("event {{ name = e; fields := struct {{ {text} }}; }};"));
    check(&field("u9 x;"), expect!["metadata:2:38: there is no type `u9`"]);
    check(&field("integer { size = 65; } x;"), expect!["metadata:2:55: `size` is an integer from 1 to 64"]);
    check(&field("integer { signed = true; } x;"), expect!["metadata:2:38: an integer needs a `size`"]);
    check(
        &field("integer { size = 8; align = 3; } x;"),
        expect!["metadata:2:66: an alignment is a power of two up to 65536"],
    );
    check(&field("integer { size = 8; map = clock.c.value; } x;"), expect!["metadata:2:64: there is no clock `c`"]);
    check(
        &field("floating_point { exp_dig = 5; mant_dig = 11; } x;"),
        expect!["metadata:2:38: a floating point number has exp_dig 8 and mant_dig 24, or 11 and 53"],
    );
    check(&field("u8 a; u8 a;"), expect!["metadata:2:47: there are two fields `a`"]);
    check(&field("enum { A } e;"), expect!["metadata:2:38: an enumeration needs `: TYPE` where `int` is not declared"]);
    check(&field("enum : u8 { A = 5 ... 3 } e;"), expect!["metadata:2:50: the range of label `A` is empty"]);
    check(&field("u8 x[-1];"), expect!["metadata:2:43: a length is not negative"]);
    check(&field("u8 x[n]; u8 n;"), expect!["metadata:2:1: event `e`: `x`: there is no field `n` before it"]);
    check(&field("string s; u8 x[s];"), expect!["metadata:2:1: event `e`: `x`: `s` is not an integer"]);
    check(
        &field("u8 t; variant <t> { u8 a; } v;"),
        expect!["metadata:2:1: event `e`: `v`: the tag `t` is not an enumeration"],
    );
    check(&field("u8 x"), expect!["metadata:2:43: `;` is expected, not `}`"]);
    check(&with("typealias u8 := byte; typealias u8 := byte;"), expect!["metadata:2:39: `byte` is declared twice"]);
}

#[test]
fn bounds() {
    let deep = format!("{} u8 x; {}", "struct { ".repeat(100), "} x; ".repeat(100));
    check(&with(&deep), expect!["metadata:2:577: types nested deeper than 64 levels"]);
    let dimensions = with(&format!("typedef u8 x{};", "[1]".repeat(1000)));
    check(&dimensions, expect!["metadata:2:208: more than 64 dimensions"]);
    // Each type is twice the one before: 2^40 fields in a kilobyte.
    let mut doubling = with("struct s0 { u8 a; };");
    for i in 0..40 {
        doubling += &format!("\nstruct s{} {{ struct s{i} a, b; }};", i + 1);
    }
    check(&doubling, expect!["metadata:17:14: more than 524288 types"]);
    let long = with(&format!("typealias u8 := {};", "x ".repeat(5000)));
    check(&long, expect!["metadata:2:4113: a type's name of more than 4096 characters"]);
}

#[test]
fn packets_of_metadata() {
    let text = super::samples::LTTNG;
    let expected = ctf::tsdl::parse("m", text).expect("metadata");
    for big in [false, true] {
        let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut bytes = Vec::new();
        for chunk in text.as_bytes().chunks(1000) {
            let content = (37 + chunk.len()) as u32 * 8;
            bytes.extend(word(0x75D1_1D57));
            bytes.extend([1; 16]);
            bytes.extend([word(0), word(content), word(content + 80)].concat());
            bytes.extend([0, 0, 0, 1, 8]);
            bytes.extend(chunk);
            bytes.extend([0; 10]);
        }
        assert_eq!(ctf::tsdl::parse_bytes("m", &bytes), Ok(expected.clone()));
        let cut = ctf::tsdl::parse_bytes("m", &bytes[..bytes.len() - 20]).expect_err("cut");
        assert!(cut.to_string().starts_with("m:1:1: packet of metadata at byte "), "{cut}");
    }
}

#[test]
fn forms() {
    let text = with(
        "typealias integer { size = 32; signed = true; } := unsigned long int;
         typedef unsigned long int word, pair[2];
         typealias u8 [4] := quad; // a comment
         variant either { u8 a; struct { word w; } b; };
         enum kind : u8 { a, \"b\" = 0x10, c = 021 ... 'A', };
         event { id = 1; name = \"first\"; stream_id = 3; fields := struct {
             const unsigned long int x, y[2][3]; pair p; quad q; enum kind tag; variant either <tag> v;
             struct { enum kind inner; variant either <event.fields.tag> outer; } s; u8 n; string z[n]; }; };
         stream { id = 3; };
         callsite { name = \"first\"; func = main; file = \"x.c\"; line = 3; };",
    );
    let metadata = ctf::tsdl::parse("metadata", &text).expect("metadata");
    expect![[r#"
        /* CTF 1.8 */

        trace {
        	major = 1;
        	minor = 8;
        	byte_order = le;
        };

        stream {
        	id = 3;
        };

        typealias integer { size = 32; align = 8; signed = true; } := i32;
        typealias integer { size = 8; align = 8; signed = false; } := u8;

        event {
        	name = "first";
        	id = 1;
        	stream_id = 3;
        	fields := struct {
        		i32 x;
        		i32 y[2][3];
        		i32 p[2];
        		u8 q[4];
        		enum : u8 { "a" = 0, "b" = 16, "c" = 17 ... 65 } tag;
        		variant <tag> {
        			u8 a;
        			struct {
        				i32 w;
        			} b;
        		} v;
        		struct {
        			enum : u8 { "a" = 0, "b" = 16, "c" = 17 ... 65 } inner;
        			variant <event.fields.tag> {
        				u8 a;
        				struct {
        					i32 w;
        				} b;
        			} outer;
        		} s;
        		u8 n;
        		string z[n];
        	};
        };

    "#]]
    .assert_eq(&ctf::print::tsdl(&metadata));
}

#[test]
fn appended_classes_are_those_of_the_whole() {
    let metadata = ctf::tsdl::parse("m", super::samples::PACKED).expect("metadata");
    let mut head = metadata.clone();
    let last = head.streams[0].events.pop().expect("an event");
    let mut aliases = ctf::print::Aliases::new(head.order);
    let mut text = ctf::print::tsdl_with(&mut aliases, &head);
    text += &ctf::print::event_class(&mut aliases, head.streams[0].id, &last);
    assert_eq!(ctf::tsdl::parse("m", &text), Ok(metadata));
}
