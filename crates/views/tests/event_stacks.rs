//! The stacks of events in every view, with functions that the collector names, and without.

use events::dynamic::{self, Field};
use events::encode::{self, Fixed};
use events::names::{EXACT, FdName, Frame, GUESSED, Names, NoNames, Stack};
use events::types::{Fmt, Int, Type};
use events::{Event, registry};
use expect_test::{Expect, expect, expect_file};
use views::View;
use views::json::Json;
use views::options::{Options, Prefix, Stacks};
use views::record::Record;
use views::stack_table::StackTable;
use views::text::Text;

/// Knows one stack of a process and one of the kernel.
struct Known;

const USER: [u64; 2] = [0x10 | EXACT, 0x20 | GUESSED];
const KERNEL: [u64; 1] = [!0 << 31];

impl Names for Known {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
    fn stack(&self, id: u64) -> Option<Stack<'_>> {
        match id {
            1 => Some(Stack { kernel: false, ended: 1, guessed: 1, frames: &USER }),
            2 => Some(Stack { kernel: true, ended: 0, guessed: 0, frames: &KERNEL }),
            _ => None,
        }
    }
    fn frames(&self, pid: u32, time: u64, stack: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        assert_eq!((pid, time), (7, 20));
        for f in stack.frames {
            let app = Frame { module: "/usr/bin/app", file: "src/app.c", address: Some(0x2ea2), ..Frame::default() };
            match f & !(EXACT | GUESSED) {
                0x10 => {
                    each(&Frame { function: "flush", line: 42, inlined: true, ..app });
                    each(&Frame { function: "main", line: 17, offset: Some(0x1d), ..app });
                }
                0x20 => each(&Frame { file: "", address: Some(0x60c4), guessed: true, ..app }),
                _ => each(&Frame {
                    function: "vfs\nwrite",
                    offset: Some(0x1c),
                    address: Some(*f),
                    kernel: true,
                    ..Frame::default()
                }),
            }
        }
    }
}

/// A getppid with these stacks, by their ids.
fn call(stacks: &[(&str, u64)]) -> Vec<u8> {
    let id = Type::Int(Int { size: 8, signed: false, fmt: Fmt::Stack });
    let fields: Vec<Field> = stacks.iter().map(|(n, _)| Field { name: (*n).into(), ty: id }).collect();
    let schema = dynamic::with_captures(registry::by_name("getppid").unwrap(), &fields).unwrap();
    let ids: Vec<u64> = stacks.iter().map(|s| s.1).collect();
    let f = Fixed { time: 20, start: 10, ret: 5, pid: 7, tid: 7, ..Fixed::default() };
    let mut bytes = Vec::new();
    encode::fixed(&mut bytes, schema, registry::layout(schema.id).unwrap(), &f, &ids);
    bytes
}

fn shown(view: &mut dyn View, names: &dyn Names) -> String {
    let mut out = Vec::new();
    for stacks in [&[("kstack", 2), ("ustack", 1)][..], &[("ustack", 0)]] {
        view.event(&Event::parse(&call(stacks)).unwrap(), names, &mut out);
    }
    view.end(&mut out);
    String::from_utf8(out).unwrap()
}

fn options(stacks: Stacks) -> Options {
    Options { stacks, prefix: Prefix::Never, column: 0, ..Options::default() }
}

fn check(view: &mut dyn View, expected: &Expect) {
    expected.assert_eq(&shown(view, &Known));
}

#[test]
fn text_shows_stacks_below_the_event() {
    check(
        &mut Text::new(options(Stacks::Lines)),
        &expect![[r#"
        getppid() = 5
         > [kernel](vfs\012write+0x1c) [0xffffffff80000000]
         > /usr/bin/app(flush) [0x2ea2] (inlined)
         > /usr/bin/app(main+0x1d) [0x2ea2]
         > /usr/bin/app() [0x60c4] (guessed)
        getppid() = 5
         > (lost)
    "#]],
    );
    check(
        &mut Text::new(options(Stacks::Sources)),
        &expect![[r#"
        getppid() = 5
         > [kernel](vfs\012write+0x1c) [0xffffffff80000000]
         > /usr/bin/app(flush) [0x2ea2] src/app.c:42 (inlined)
         > /usr/bin/app(main+0x1d) [0x2ea2] src/app.c:17
         > /usr/bin/app() [0x60c4] (guessed)
        getppid() = 5
         > (lost)
    "#]],
    );
    check(
        &mut Text::new(options(Stacks::Fold)),
        &expect![[r#"
        getppid() = 5
         > vfs\nwrite_[k]
         > [app]_[g];main;flush_[i]
        getppid() = 5
         > (lost)
    "#]],
    );
    check(
        &mut Text::new(options(Stacks::Fields)),
        &expect![[r#"
        getppid() = 5
        getppid() = 5
    "#]],
    );
}

#[test]
fn addresses_are_shown_where_nothing_names_functions() {
    struct Addresses;
    impl Names for Addresses {
        fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
            None
        }
        fn comm(&self, _: u32) -> Option<&[u8]> {
            None
        }
        fn stack(&self, id: u64) -> Option<Stack<'_>> {
            Known.stack(id).map(|s| Stack { frames: if s.kernel { &KERNEL } else { &USER }, ..s })
        }
    }
    expect![[r#"
        getppid() = 5
         > [kernel]() [0xffffffff80000000]
         > [unknown]() [0x10]
         > [unknown]() [0x20] (guessed)
        getppid() = 5
         > (lost)
    "#]]
    .assert_eq(&shown(&mut Text::new(options(Stacks::Lines)), &Addresses));
    expect![[r#"
        getppid() = 5
         > (lost)
         > (lost)
        getppid() = 5
         > (lost)
    "#]]
    .assert_eq(&shown(&mut Text::new(options(Stacks::Lines)), &NoNames));
}

#[test]
fn json_and_record_have_every_frame() {
    check(
        &mut Json::new(options(Stacks::Lines)),
        &expect![[r#"
        {"v":1,"type":"syscall","name":"getppid","pid":7,"tid":7,"start_ns":10,"end_ns":20,"args":{},"ret":5,"errno":null,"kstack":[{"function":"vfs\nwrite","offset":"0x1c","address":"0xffffffff80000000","kernel":true}],"ustack":[{"function":"flush","module":"/usr/bin/app","file":"src/app.c","line":42,"address":"0x2ea2","inlined":true},{"function":"main","module":"/usr/bin/app","file":"src/app.c","line":17,"offset":"0x1d","address":"0x2ea2"},{"module":"/usr/bin/app","address":"0x60c4","guessed":true}]}
        {"v":1,"type":"syscall","name":"getppid","pid":7,"tid":7,"start_ns":10,"end_ns":20,"args":{},"ret":5,"errno":null,"ustack":[]}
    "#]],
    );
    check(
        &mut Json::new(options(Stacks::Fields)),
        &expect![[r#"
        {"v":1,"type":"syscall","name":"getppid","pid":7,"tid":7,"start_ns":10,"end_ns":20,"args":{},"ret":5,"errno":null}
        {"v":1,"type":"syscall","name":"getppid","pid":7,"tid":7,"start_ns":10,"end_ns":20,"args":{},"ret":5,"errno":null}
    "#]],
    );
    check(
        &mut Record::new().stacks(true),
        &expect![[r#"
        E 10 - 7 7 getppid 110 - - - - - -
        X 10 20 10 - 7 7 getppid 5 -
        S kstack [kernel](vfs\012write+0x1c) [0xffffffff80000000]
        S ustack /usr/bin/app(flush) [0x2ea2] src/app.c:42 (inlined)
        S ustack /usr/bin/app(main+0x1d) [0x2ea2] src/app.c:17
        S ustack /usr/bin/app() [0x60c4] (guessed)
        E 10 - 7 7 getppid 110 - - - - - -
        X 10 20 10 - 7 7 getppid 5 -
        S ustack (lost)
    "#]],
    );
}

#[test]
fn the_table_counts_stacks() {
    expect_file!["golden/by_stack.txt"].assert_eq(&shown(&mut StackTable::new(None), &Known));
    let kernel = shown(&mut StackTable::new(Some("kstack")), &Known);
    assert!(kernel.contains("vfs") && !kernel.contains("main"), "{kernel}");
}
