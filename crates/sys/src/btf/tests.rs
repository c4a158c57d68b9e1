//! Cases on blobs of our own, broken ones, and the running kernel's.

use super::build::{Builder, value_types};
use super::*;

/// `struct task { struct { int pid, tgid; } ; struct task *parent; int numbers[4]; }` and a function on it.
fn sample() -> Vec<u8> {
    let mut b = Builder::new();
    let int = b.int("int", 4, true);
    let inner = b.structure("", 8, &[("pid", int, 0), ("tgid", int, 4)]);
    let parent = b.pointer(5);
    let numbers = b.array(int, int, 4);
    let task = b.structure("task", 32, &[("", inner, 0), ("parent", parent, 8), ("numbers", numbers, 16)]);
    assert_eq!(task, 5);
    b.function("look_at", int, &[("task", parent), ("flags", int)]);
    b.finish()
}

/// A type by hand: name, kind, count, flag, value, extra words.
type Raw<'a> = (u32, Kind, u32, bool, u32, &'a [u32]);

fn blob(types: &[Raw], strings: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    for (name, kind, count, flag, value, extra) in types {
        let info = (*kind as u32) << 24 | count | u32::from(*flag) << 31;
        for w in [*name, info, *value].iter().chain(*extra) {
            section.extend(w.to_ne_bytes());
        }
    }
    let len = section.len() as u32;
    let head = [u32::from(MAGIC) | 1 << 16, 24, 0, len, len, strings.len() as u32];
    let mut out: Vec<u8> = head.iter().flat_map(|w| w.to_ne_bytes()).collect();
    out.extend(section);
    out.extend(strings);
    out
}

#[test]
fn fields_are_found_in_anonymous_structures_through_pointers_and_in_arrays() {
    let btf = Btf::parse(sample()).unwrap();
    let offset = |path: &[&str]| btf.field_of("task", path).map(|f| (f.loads, f.offset, f.size));
    assert_eq!(offset(&["tgid"]), Some((vec![], 4, 4)));
    assert_eq!(offset(&["parent", "tgid"]), Some((vec![8], 4, 4)));
    assert_eq!(offset(&["parent", "parent", "numbers", "3"]), Some((vec![8, 8], 28, 4)));
    assert_eq!(offset(&["numbers"]), Some((vec![], 16, 16)));
    assert_eq!(offset(&["numbers", "4"]), None);
    assert_eq!(offset(&["tgid", "x"]), None);
    assert_eq!(offset(&["absent"]), None);
}

#[test]
fn kind_and_name_both_count() {
    let btf = Btf::parse(sample()).unwrap();
    assert_eq!(btf.find(Kind::Struct, "task"), Some(5));
    assert_eq!(btf.find(Kind::Union, "task"), None);
    assert_eq!(btf.find(Kind::Struct, "tas"), None);
    assert_eq!((btf.name(5), btf.kind(5), btf.size(5)), ("task".into(), Some(Kind::Struct), Some(32)));
    assert_eq!((btf.kind(0), btf.kind(99), btf.size(0)), (None, None, None));
}

#[test]
fn what_is_found_beforehand_is_what_a_search_finds() {
    let names = [
        (Kind::Struct, "task"),
        (Kind::Union, "task"),
        (Kind::Int, "int"),
        (Kind::Func, "look_at"),
        (Kind::Func, "no"),
    ];
    let (plain, btf) = (Btf::parse(sample()).unwrap(), Btf::parse_for(sample(), &names).unwrap());
    for (kind, name) in names {
        assert_eq!(btf.find(kind, name), plain.find(kind, name), "{kind:?} {name}");
    }
    // Also of two types of one name the first.
    let twice = [(1, Kind::Typedef, 0, false, 0, &[][..]), (1, Kind::Typedef, 0, false, 0, &[][..])];
    let btf = Btf::parse_for(blob(&twice, b"\0t\0"), &[(Kind::Typedef, "t")]).unwrap();
    assert_eq!(btf.find(Kind::Typedef, "t"), Some(1));
}

#[test]
fn every_type_is_found_by_its_number() {
    let mut b = Builder::new();
    let int = b.int("int", 4, true);
    for i in 1..100u32 {
        assert_eq!(b.structure(&format!("s{i}"), i, &[("member", int, 0)]), i + 1);
    }
    let btf = Btf::parse(b.finish()).unwrap();
    assert_eq!(btf.len(), 100);
    for i in 1..100 {
        assert_eq!((btf.name(i + 1), btf.size(i + 1)), (format!("s{i}"), Some(i)));
    }
    assert_eq!(btf.kind(101), None);
}

#[test]
fn prototypes_have_names_and_types() {
    let btf = Btf::parse(sample()).unwrap();
    let look_at = btf.prototype(btf.find(Kind::Func, "look_at").unwrap()).unwrap();
    assert_eq!(look_at, Prototype { returns: 1, params: vec![("task".into(), 3), ("flags".into(), 1)] });
    assert_eq!(btf.prototype(1), None);
}

#[test]
fn bit_fields_come_with_their_unit() {
    let strings = b"\0int\0s\0a\0b\0";
    let members = [7, 1, 3 << 24, 9, 1, 5 << 24 | 35];
    let b = blob(&[(1, Kind::Int, 0, false, 4, &[32]), (5, Kind::Struct, 2, true, 8, &members)], strings);
    let btf = Btf::parse(b).unwrap();
    let field = |name| btf.field_of("s", &[name]).unwrap();
    assert_eq!(field("a"), Field { bits: Some((0, 3)), size: 4, type_id: 1, ..Field::default() });
    assert_eq!(field("b"), Field { bits: Some((3, 5)), offset: 4, size: 4, type_id: 1, ..Field::default() });
}

#[test]
fn circles_end() {
    // A typedef of itself, an array of itself, and a structure that holds itself twice without a name.
    let members = [0, 3, 0, 0, 3, 0];
    let b = blob(
        &[
            (1, Kind::Typedef, 0, false, 1, &[]),
            (0, Kind::Array, 0, false, 0, &[2, 1, 1]),
            (1, Kind::Struct, 2, false, 8, &members),
            (0, Kind::Ptr, 0, false, 4, &[]),
        ],
        b"\0x\0",
    );
    let btf = Btf::parse(b).unwrap();
    assert_eq!(btf.strip(1), None);
    assert_eq!(btf.size(2), None);
    assert_eq!(btf.field(3, &["absent"]), None);
    assert_eq!(btf.prototype(4), None);
}

/// Asks everything of whatever parses: nothing may panic or hang.
fn ask(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else { return };
    for id in 0..=btf.len() as u32 + 1 {
        let _ = (btf.kind(id), btf.name(id), btf.size(id), btf.strip(id), btf.prototype(id));
        let _ = (btf.field(id, &["parent", "tgid"]), btf.field(id, &["numbers", "4000000000"]));
    }
    let _ = btf.find(Kind::Func, "look_at");
}

#[test]
fn bytes_cut_off_anywhere_are_refused_or_harmless() {
    let whole = sample();
    for len in 0..whole.len() {
        assert!(Btf::parse(&whole[..len]).is_err(), "{len}");
        let mut extended = whole[..len].to_vec();
        extended.resize(whole.len(), 0xff);
        ask(&extended);
    }
    assert_eq!(Btf::parse(b"\x7fELF....").err(), Some(BtfError::Magic));
    assert_eq!(Btf::parse(b"").err(), Some(BtfError::Truncated));
}

#[test]
fn any_byte_changed_is_harmless() {
    let whole = sample();
    for at in 0..whole.len() {
        for value in [0, 1, 2, 3, 4, 5, 8, 13, 20, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            ask(&bytes);
        }
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = 4 + state as usize % (bytes.len() - 4);
            bytes[at] = (state >> 40) as u8;
        }
        ask(&bytes);
    }
}

#[test]
fn names_of_enumerations_have_values() {
    let values = [1, 0, 5, u32::MAX];
    let wide = [3, 1, 2];
    let types = [
        (7, Kind::Enum, 2, true, 4, &values[..]),
        (0, Kind::Enum, 1, false, 4, &values[2..]),
        (0, Kind::Enum64, 1, false, 8, &wide[..]),
    ];
    let btf = Btf::parse(blob(&types, b"\0A\0B\0C\0sort\0")).unwrap();
    assert_eq!(btf.enumerators("A"), [("sort".to_string(), 0)]);
    assert_eq!(btf.enumerators("C"), [("sort".to_string(), -1), (String::new(), 0xffff_ffff)]);
    assert_eq!(btf.enumerators("B"), [(String::new(), 0x2_0000_0001)]);
    assert_eq!(btf.enumerators("sort"), []);
}

#[test]
fn an_unknown_kind_is_named() {
    let mut bytes = blob(&[(0, Kind::Ptr, 0, false, 0, &[])], b"\0");
    bytes[24 + 7] = 25;
    assert_eq!(Btf::parse(bytes).err(), Some(BtfError::UnknownKind(25)));
}

#[test]
fn map_values_have_the_size_asked_for() {
    let (bytes, key, value) = value_types("calls", 96);
    let btf = Btf::parse(bytes).unwrap();
    assert_eq!((btf.size(key), btf.size(value), btf.name(value)), (Some(4), Some(96), "calls".into()));
}

#[test]
fn the_running_kernel_s_types_are_read_where_there_are_any() {
    let Ok(btf) = KernelBtf::kernel() else { return testkit::skip("kernel:btf", "no types of the kernel") };
    let parent = btf.field_of("task_struct", &["real_parent", "tgid"]).unwrap();
    assert_eq!((parent.loads.len(), parent.size), (1, 4));
    let enter = btf.prototype(btf.find(Kind::Typedef, "btf_trace_sys_enter").unwrap()).unwrap();
    assert_eq!(enter.params.len(), 3); // void *, struct pt_regs *, long
    assert_eq!(btf.field_of("pt_regs", &["orig_ax"]).map(|f| f.offset), cfg!(target_arch = "x86_64").then_some(120));
    let level = btf.field_of("task_struct", &["thread_pid", "numbers", "1", "nr"]).unwrap();
    assert_eq!(level.loads.len(), 1);
}

#[test]
fn types_that_continue_others_are_one_blob_with_them() {
    let mut kernel = Builder::new();
    let int = kernel.int("int", 4, true);
    let first = kernel.function("f", int, &[("a", int)]);
    let kernel = Btf::parse(kernel.finish()).expect("types");
    // A module's ids and offsets of names begin where the kernel's end: its function has the kernel's int for its result.
    let mut module = Builder::new();
    module.function("g", int, &[]);
    let mut module = module.finish();
    let (header, strings) = (24, kernel.strings().len() as u32);
    let move_on = |bytes: &mut [u8], at: usize, by: u32| {
        let word = u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("a word")) + by;
        bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    };
    let second = header + 12;
    move_on(&mut module, second, strings);
    move_on(&mut module, second + 8, kernel.len() as u32);
    let both = Btf::parse(kernel.joined(&module).expect("one blob")).expect("types");
    assert_eq!(both.len(), kernel.len() + 2);
    assert_eq!((both.find(Kind::Func, "f"), both.find(Kind::Func, "g")), (Some(first), Some(first + 2)));
    let p = both.prototype(first + 2).expect("a function");
    assert_eq!((p.returns, both.name(p.returns), p.params.len()), (int, "int".to_string(), 0));
    assert!(kernel.joined(b"not types").is_err());
}
