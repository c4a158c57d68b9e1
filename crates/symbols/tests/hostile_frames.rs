//! Frames of files that are damaged, or made to do harm: there is an answer, and no more than that.

use std::rc::Rc;
use symbols::dwarf::Call;
use symbols::files::{Files, Identity, OpenFile};
use symbols::headers::Headers;
use symbols::module::{Module, Problem};
use symbols::{Symbolizer, build_id};
use testkit::{Random, rounds};

/// No files at all.
struct Nothing;

impl Files for Nothing {
    fn program(&self, _: &Identity) -> Option<OpenFile> {
        None
    }
}

fn module(bytes: &[u8]) -> Module {
    Module::of_bytes(Identity::new("/x", &[]), Rc::new(bytes.to_vec()), Rc::new(Nothing), true)
}

/// Everything that is asked of a module.
fn ask(bytes: &[u8], addresses: &[u64]) {
    let m = module(bytes);
    let mut calls = Vec::new();
    for a in addresses {
        calls.clear();
        m.calls(*a, &mut calls);
        let _ = m.address_of(*a);
    }
    let _ = (m.status(), build_id::of(bytes));
    let _ = symbols::pack::Pack::parse(&m.packed(addresses.iter().copied().take(5), true)).expect("a pack of its own");
}

/// Bytes changed where most of what leads elsewhere stands: the headers, the tables, the debug information.
fn damage(r: &mut Random, whole: &[u8], headers: &Headers) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let tables: Vec<_> = headers.sections.iter().filter(|s| s.size > 0).collect();
    for _ in 0..=r.below(10) {
        let at = match r.below(5) {
            0 => r.index(1024.min(bytes.len())),
            1 => bytes.len() - 1 - r.index(4096.min(bytes.len() - 1)),
            _ => {
                let s = tables[r.index(tables.len())];
                (s.offset + r.below(s.size)) as usize
            }
        };
        let any = r.below(256) as u8;
        bytes[at] = r.of(&[0, 1, 0x7f, 0x80, 0xff, any]);
    }
    if r.below(10) == 0 {
        bytes.truncate(r.index(bytes.len()));
    }
    bytes
}

#[test]
fn damaged_files_have_fewer_frames() {
    let all: &[(&str, &str, &[&str])] = &[
        ("gcc", "inlines.c", &["-O2", "-g"]),
        ("gcc", "inlines.c", &["-O2", "-g", "-gdwarf-4", "-gz=zlib"]),
        ("gcc", "inlines.c", &["-O2", "-g", "-gdwarf-4", "-gz=zlib-gnu"]),
        ("g++", "inlines.cc", &["-O2", "-g"]),
    ];
    for (i, (compiler, source, flags)) in all.iter().enumerate() {
        let Some(path) = testkit::compile(compiler, &format!("hostile-frames-{i}"), source, flags) else { return };
        let whole = std::fs::read(path).unwrap();
        let headers = Headers::read(&whole[..]).unwrap();
        let text = headers.section(".text").unwrap();
        let plt = headers.section(".plt").unwrap();
        let addresses: Vec<u64> = (text.address..text.address + text.size)
            .step_by(23)
            .chain([plt.address, plt.address + 20, 0, u64::MAX])
            .collect();
        ask(&whole, &addresses);
        let mut r = Random::new(77 + i as u64);
        for _ in 0..rounds(150) {
            ask(&damage(&mut r, &whole, &headers), &addresses);
        }
    }
}

/// A file with these sections: name, bytes, address of code.
fn elf(sections: &[(&str, &[u8], u64)]) -> Vec<u8> {
    let mut names = b"\0.shstrtab\0".to_vec();
    let mut bytes = vec![0; 64];
    let mut table = vec![0; 64];
    let mut add = |name: u32, kind: u32, flags: u64, address: u64, offset: usize, size: usize| {
        table.extend([name, kind].iter().flat_map(|n| n.to_le_bytes()));
        table.extend([flags, address, offset as u64, size as u64].iter().flat_map(|n| n.to_le_bytes()));
        table.extend([0; 24]);
    };
    for (name, data, address) in sections {
        let at = names.len() as u32;
        names.extend(name.as_bytes());
        names.push(0);
        add(at, 1, if *address > 0 { 6 } else { 0 }, *address, bytes.len(), data.len());
        bytes.extend(*data);
    }
    add(1, 3, 0, 0, bytes.len(), names.len());
    bytes.extend(&names);
    let (at, count) = (bytes.len() as u64, sections.len() as u16 + 2);
    bytes.extend(&table);
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..20].copy_from_slice(&[3, 0, 62, 0]);
    bytes[40..48].copy_from_slice(&at.to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

/// One unit of DWARF 4 with a function `fn` from 0x1000 to 0x2000, and what is in it.
fn unit(abbreviations: &[u8], inside: &[u8]) -> Vec<u8> {
    let table =
        [&[1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0, 2, 0x2e, 1, 3, 8, 0x11, 1, 0x12, 7, 0, 0][..], abbreviations, &[0]]
            .concat();
    let extent = [0x1000u64.to_le_bytes(), 0x1000u64.to_le_bytes()].concat();
    let body = [&[4, 0, 0, 0, 0, 0, 8, 1][..], &extent, b"\x02fn\0", &extent, inside].concat();
    let info = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    elf(&[(".text", &[0x90; 0x1000], 0x1000), (".debug_info", &info, 0), (".debug_abbrev", &table, 0)])
}

fn names(bytes: &[u8], address: u64) -> Vec<Option<String>> {
    let mut calls: Vec<Call> = Vec::new();
    module(bytes).calls(address, &mut calls);
    calls.iter().map(|c| c.function.as_deref().map(str::to_string)).collect()
}

/// Each call is inlined into the one before it. Whoever follows them by recursion runs out of stack.
#[test]
fn calls_that_nest_without_end_end() {
    let bare = unit(&[3, 0x1d, 1, 0, 0], &vec![3; 3_000_000]);
    assert_eq!(names(&bare, 0x1010), [Some("fn".to_string())]);
    // With code of their own, as many as are shown at all.
    let one = [&[3][..], &0x1000u64.to_le_bytes(), &0x1000u64.to_le_bytes()].concat();
    let deep = unit(&[3, 0x1d, 1, 0x11, 1, 0x12, 7, 0, 0], &one.repeat(10_000));
    assert_eq!(names(&deep, 0x1010).len(), 257);
    // Functions inside of functions.
    let nested = unit(&[3, 0x2e, 1, 0, 0], &vec![3; 3_000_000]);
    assert_eq!(names(&nested, 0x1010), [Some("fn".to_string())]);
}

/// An inlined call whose origin is itself.
#[test]
fn origins_that_lead_back_have_no_name() {
    let at: u32 = 11 + 1 + 16 + 4 + 16;
    let one = [&[3][..], &0x1000u64.to_le_bytes(), &0x1000u64.to_le_bytes(), &at.to_le_bytes(), &[0, 0, 0]].concat();
    let bytes = unit(&[3, 0x1d, 1, 0x11, 1, 0x12, 7, 0x31, 0x13, 0, 0], &one);
    assert_eq!(names(&bytes, 0x1010), [None, Some("fn".to_string())]);
}

/// Entries without bytes cost work: of a file with too many of them only symbols are used from then on.
#[test]
fn debug_information_that_takes_too_much_work_is_not_used() {
    // Each entry has 4000 attributes without bytes.
    let attributes = [0x3f, 0x19].repeat(4000);
    let heavy = unit(&[&[3, 0x34, 0][..], &attributes, &[0, 0]].concat(), &vec![3; 40_000]);
    let m = module(&heavy);
    let mut calls = Vec::new();
    m.calls(0x1010, &mut calls);
    assert_eq!((m.status().problem, calls.len()), (Some(Problem::Debug), 0));
}

#[test]
fn compressed_sections_that_lie_about_their_size_are_empty() {
    let Some(path) = testkit::compile("gcc", "hostile-frames-z", "inlines.c", &["-O2", "-g", "-gz=zlib"]) else {
        return;
    };
    let whole = std::fs::read(path).unwrap();
    let headers = Headers::read(&whole[..]).unwrap();
    let info = headers.section(".debug_info").unwrap();
    assert!(info.compressed);
    for size in [0, 1, 1 << 20, 1 << 40, u64::MAX] {
        let mut bytes = whole.clone();
        bytes[info.offset as usize + 8..][..8].copy_from_slice(&u64::to_le_bytes(size));
        let text = headers.section(".text").unwrap();
        ask(&bytes, &[text.address, text.address + text.size / 2]);
    }
}

#[test]
fn files_that_are_no_elf_files_are_said() {
    for bytes in [&b"#!/bin/sh\n"[..], b"", b"\x7fELF\x01\x01\x01 a file of 32 bits"] {
        let mut s = Symbolizer::new(Nothing);
        let id = s.module_of_bytes(&Identity::new("/bin/x", &[]), Rc::new(bytes.to_vec())).unwrap();
        assert_eq!(&*s.frames(id, 0x1234)[0].function, "/bin/x+0x1234");
        assert_eq!(s.modules().next().unwrap().1.status().problem, Some(Problem::NotElf));
    }
}
