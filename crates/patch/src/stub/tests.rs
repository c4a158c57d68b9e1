//! Templates: their bytes are what an assembler makes of their text, and `abi::stub` has the offsets of their parts.

use super::*;
use abi::stub::{Again, Frame};
use std::fmt::Write;
use std::fs;
use std::process::Command;
use testkit::{Scratch, has, skip};

fn at(lines: &[Line], label: Label) -> Option<u32> {
    places(lines).0.iter().find(|(l, _)| *l == label).map(|(_, at)| *at as u32)
}

/// The part from one label to before another, and the slow calls of it.
fn part(lines: &[Line], from: Label, to: Label, calls: &[Label]) -> Vec<Again> {
    let (Some(start), Some(end)) = (at(lines, from), at(lines, to)) else { return vec![] };
    let mut parts = vec![Again { start, end, at: start }];
    for call in calls {
        let Some(call) = at(lines, *call) else { continue };
        // Of the call's lines those up to the call itself: behind it, the slow code has been.
        let mut end = call;
        let (mut place, mut seen) = (padding(lines) as u32, false);
        for line in lines {
            seen |= place >= call && !matches!(line, At(_));
            if seen && end == call && matches!(line, Call(_)) {
                end = place + 1;
            }
            place += length(line) as u32;
        }
        parts.push(Again { start: call, end, at: start });
    }
    parts
}

fn parts(lines: &[Line], variant: Variant) -> Vec<Again> {
    let mut parts = if variant == Variant::Timed {
        [
            part(lines, Push, Pushed, &[CallEnter]),
            part(lines, Exit, Pop, &[CallExit, CallLate]),
            part(lines, Pop, End, &[]),
        ]
        .concat()
    } else if matches!(variant, Variant::CountTimed | Variant::Measured) {
        let rows = at(lines, Rows).zip(at(lines, Measure)).map(|(rows, at)| Again { start: rows, end: rows + 1, at });
        [
            part(lines, Count, Push, &[CallCount]),
            part(lines, Push, Pushed, &[CallEnter]),
            part(lines, Exit, Left, &[CallExit]),
            part(lines, Measure, CallRows, &[]),
            rows.into_iter().collect(),
        ]
        .concat()
    } else if variant == Variant::Count {
        part(lines, Count, Done, &[CallCount])
    } else if variant == Variant::Called {
        vec![]
    } else {
        [
            part(lines, Push, Pushed, &[CallEnter]),
            part(lines, Record, Commit, &[CallHigh, CallChunk]),
            part(lines, Exit, Left, &[CallExit]),
            part(lines, Left, LeftCommit, &[CallHighLeft, CallChunkLeft]),
        ]
        .concat()
    };
    parts.sort_by_key(|a| a.start);
    parts
}

/// Follows rsp through the lines.
fn frames(lines: &[Line]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = vec![];
    let (mut cfa, mut shadow) = (32, false);
    let mut place = padding(lines) as u32;
    let mut note = |from, cfa, shadow| {
        frames.retain(|f| f.from != from);
        if frames.last().is_none_or(|f| (f.cfa, f.shadow) != (cfa, shadow)) {
            frames.push(Frame { from, cfa, shadow });
        }
    };
    note(0, cfa, shadow);
    for line in lines {
        match line {
            At(CallHigh | CallChunk | CallChunkLeft | CallHighLeft | CallCount | Rows | Torn) => {
                (cfa, shadow) = (32, false)
            }
            At(CallExit | CallLate) => (cfa, shadow) = (32, true),
            At(Entry) => (cfa, shadow) = (8, false),
            At(Returns) => (cfa, shadow) = (0, true),
            At(Restored) => shadow = false,
            _ => {}
        }
        note(place, cfa, shadow);
        match line {
            Code(text, code) if text.starts_with("push") => code.iter().for_each(|_| {
                (place, cfa) = (place + 1, cfa + 8);
                note(place, cfa, shadow);
            }),
            Code(text, code) if text.starts_with("pop") => code.iter().for_each(|_| {
                (place, cfa) = (place + 1, cfa - 8);
                note(place, cfa, shadow);
            }),
            Code("lea rsp, [rsp+8]", code) => (place, cfa) = (place + code.len() as u32, cfa - 8),
            Code("lea rsp, [rsp-8]", code) => (place, cfa) = (place + code.len() as u32, cfa + 8),
            other => place += length(other) as u32,
        }
    }
    frames
}

/// The layout as it is written in `abi::stub`.
fn text(variant: Variant) -> String {
    let lines = lines(variant);
    let mut out = String::new();
    let size = places(&lines).1.next_multiple_of(16);
    let returns = at(&lines, Returns).unwrap_or(0);
    let template = Template::new(variant, -0x1000);
    let number = template.fixes.iter().find(|(_, f)| matches!(f, Fix::Word(_) | Fix::Entry(_) | Fix::Row(_)));
    let (entry, number) = (at(&lines, Entry).unwrap(), number.unwrap().0);
    let _ = writeln!(out, "size: {size}, entry: {entry}, returns: {returns}, number: {number}");
    let _ = write!(out, "again: &[");
    for a in parts(&lines, variant) {
        let _ = write!(out, "again({}, {}, {}), ", a.start, a.end, a.at);
    }
    let _ = write!(out, "],\ncommit: &[");
    let advance = length(&ADVANCE) as u32;
    let of_entry = if variant == Variant::Callers { u32::from(BOTH) } else { 8 };
    for (label, bytes) in [(Commit, of_entry), (LeftCommit, 8)] {
        let Some(commit) = at(&lines, label) else { continue };
        let _ = write!(out, "commit({commit}, {}, {bytes}), ", commit + advance);
    }
    let _ = write!(out, "],\nframes: &[");
    for f in frames(&lines) {
        let _ = write!(out, "frame({}, {}, {}), ", f.from, f.cfa, f.shadow);
    }
    out + "]"
}

fn text_of_abi(layout: &Layout) -> String {
    let mut out = String::new();
    let (size, entry, returns, number) = (layout.size, layout.entry, layout.returns, layout.number);
    let _ = writeln!(out, "size: {size}, entry: {entry}, returns: {returns}, number: {number}");
    let _ = write!(out, "again: &[");
    for a in layout.again {
        let _ = write!(out, "again({}, {}, {}), ", a.start, a.end, a.at);
    }
    let _ = write!(out, "],\ncommit: &[");
    for abi::stub::Commit { at, next, bytes } in layout.commit {
        let _ = write!(out, "commit({at}, {next}, {bytes}), ");
    }
    let _ = write!(out, "],\nframes: &[");
    for f in layout.frames {
        let _ = write!(out, "frame({}, {}, {}), ", f.from, f.cfa, f.shadow);
    }
    out + "]"
}

#[test]
fn abi_has_the_layout_of_each_variant() {
    let (made, there): (Vec<_>, Vec<_>) = Variant::ALL
        .iter()
        .map(|v| (format!("{v:?} {}", text(*v)), format!("{v:?} {}", text_of_abi(stub::layout(*v)))))
        .unzip();
    let made = made.join("\n");
    assert_eq!(made, there.join("\n"), "abi::stub should have:\n{made}");
    for variant in Variant::ALL {
        let (template, layout) = (Template::new(variant, -0x1000), stub::layout(variant));
        assert_eq!(template.size(), layout.size as usize);
        let mut stub = vec![0; template.size()];
        template.write(&mut stub, 0x1000, 0x12345, 0x2000, 0x3000, crate::Undo::Raise(8));
        let word = u32::from_le_bytes(*stub[layout.number as usize..].first_chunk().unwrap());
        assert_eq!(stub::number(variant, word), 0x12345, "{variant:?}");
    }
}

/// The listing as text for an assembler: the thread's data is at fs:-0x1000, the number 0x123456, the beginning at `original`.
fn listing(variant: Variant) -> String {
    let lines = lines(variant);
    let mut out = String::from(".intel_syntax noprefix\n.set THREAD, -0x1000\n");
    for (name, field) in [
        ("TOP", TOP),
        ("TOP_SLOT", TOP_SLOT),
        ("CUR", CUR),
        ("END", END),
        ("HIGH", HIGH),
        ("COUNTS", COUNTS),
        ("FULL", FULL),
    ] {
        let _ = writeln!(out, ".set {name}, THREAD + {field}");
    }
    let _ = writeln!(out, ".fill {}, 1, 0xcc", padding(&lines));
    for line in &lines {
        let _ = match line {
            At(label) => writeln!(out, "{label:?}:"),
            Code(text, _) | Field(text, ..) => writeln!(out, "{text}"),
            Jump(text, _, to) => writeln!(out, "{text} {to:?}"),
            // The assembler makes short jumps where it can.
            Far(text, _, to) => writeln!(out, "{{disp32}} {text} {to:?}"),
            Call(slow) => writeln!(out, "call [rip + pointers + {}]", *slow as u32 * 8),
            Word(text, _, exit) => writeln!(out, "{}", text.replace("WORD", &(0x0024_68ac | exit).to_string())),
            Line::Entry(text, _, written) => {
                writeln!(out, "{}", text.replace("ENTRY", &((0x0012_3456 | written) as i32).to_string()))
            }
            Row(text, ..) => writeln!(out, "{}", text.replace("ROW", &(0x0012_3456 * row_of(variant)).to_string())),
            Original(text, _) => writeln!(out, "{{disp32}} {text} original"),
            Undo => writeln!(out, "lea rsp, [rsp+0x128]"),
            Minimum(text, _) => writeln!(out, "{}", text.replace("MINIMUM", &format!("pointers + {MINIMUM}"))),
        };
    }
    let _ = writeln!(out, ".p2align 4, 0xcc\npointers: .fill {POINTERS}\noriginal:");
    out
}

#[test]
fn an_assembler_makes_the_same_bytes() {
    if !has("as") || !has("objcopy") {
        skip("package:binutils", "no assembler");
        return;
    }
    let scratch = Scratch::new("stubs");
    for variant in Variant::ALL {
        let [source, object, binary] = ["s.s", "s.o", "s.bin"].map(|n| scratch.join(n));
        fs::write(&source, listing(variant)).unwrap();
        assert!(
            Command::new("as").arg("-o").args([&object, &source]).status().unwrap().success(),
            "{}",
            listing(variant)
        );
        let copied = Command::new("objcopy").args(["-O", "binary", "-j", ".text"]).args([&object, &binary]).status();
        assert!(copied.unwrap().success());
        let assembled = fs::read(&binary).unwrap();
        let template = Template::new(variant, -0x1000);
        let mut made = vec![0; template.size()];
        let at = 0x7fff_0000_0000;
        let pointers = at + made.len() as u64;
        template.write(&mut made, at, 0x0012_3456, pointers + POINTERS as u64, pointers, crate::Undo::Raise(0x128));
        assert_eq!(made, assembled[..made.len()], "{variant:?}");
    }
}
