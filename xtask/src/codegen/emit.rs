//! Turns parsed tables into Rust: writes `static` data.

use super::names::{Names, Scope, call_form, ident, table_name};
use super::parse::{Call, CallArg, Struct, Switch, Tables, split};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

const HEADER: &str = "// Written by `cargo xtask codegen` from tables/. Do not edit.\n";

/// `flags.rs`. Names are in one text, each once.
pub fn flags(n: &Names<'_>) -> Result<String> {
    let mut names = Joined::default();
    let mut tables = String::new();
    for t in &n.t.tables {
        let mut entries = n.entries(&t.name)?;
        if !t.flags {
            entries.sort_by_key(|e| e.1);
            entries.dedup_by_key(|e| e.1);
        }
        let kind = if t.flags { "Flags" } else { "Enum" };
        writeln!(tables, "/// `{}`", t.name)?;
        write!(
            tables,
            "pub static {}: Table = Table {{ name: {:?}, unknown: {:?}, kind: TableKind::{kind}, names: NAMES, rows: &[",
            ident("T_", &t.name),
            t.name,
            t.unknown
        )?;
        for (name, value, mask) in entries {
            let at = names.place(&name);
            write!(tables, "\n    r({at}, {}, {value:#x}, {mask:#x}), // {name}", name.len())?;
        }
        tables.push_str("\n] };\n");
    }
    let mut o = format!("//! Flag and enumeration tables.\n{HEADER}\nuse crate::types::{{Row, Table, TableKind}};\n\n");
    o.push_str("const fn r(at: u32, len: u8, value: u64, mask: u64) -> Row {\n    Row { at, len, value, mask }\n}\n");
    o.push_str("static NAMES: &str = \"");
    for line in names.text.as_bytes().chunks(120) {
        write!(o, "\\\n    {}", String::from_utf8_lossy(line))?;
    }
    o.push_str("\";\n");
    Ok(o + &tables)
}

/// Texts, one after the other; the same one only once.
#[derive(Default)]
struct Joined {
    text: String,
    places: HashMap<String, usize>,
}

impl Joined {
    fn place(&mut self, name: &str) -> usize {
        *self.places.entry(name.to_string()).or_insert_with(|| {
            self.text.push_str(name);
            self.text.len() - name.len()
        })
    }
}

/// `structs.rs`.
pub fn structs(n: &Names<'_>) -> Result<String> {
    let mut o = format!(
        "//! Structs of the kernel's interface.\n{HEADER}\nuse super::{{flags, structs}};\nuse crate::types::{{Cond, Field, Fmt, Int, Mem, Struct, Test}};\n\n"
    );
    let mut seen = HashSet::new();
    for s in &n.t.structs {
        anyhow::ensure!(seen.insert(&s.name), "{}: struct '{}' stands twice", s.at, s.name);
        struct_def(n, s, &mut o)?;
    }
    Ok(o)
}

fn struct_def(n: &Names<'_>, s: &Struct, o: &mut String) -> Result<()> {
    let scope = Scope { args: s.fields.iter().map(|f| f.name.as_str()).collect() };
    writeln!(o, "/// `struct {}`", s.name)?;
    write!(
        o,
        "pub static {}: Struct = Struct {{ name: {:?}, size: {}, fields: &[",
        ident("S_", &s.name),
        s.name,
        s.size
    )?;
    for f in &s.fields {
        let here = || format!("{}: {} {}", f.at, f.name, f.ty);
        let (mem, size) = n.mem(&f.ty).with_context(here)?;
        anyhow::ensure!(f.offset + size <= s.size, "{}: '{}' ends beyond the struct's {} bytes", f.at, f.name, s.size);
        let cond = match &f.cond {
            Some(c) => format!("Some({})", n.cond(c, &scope, |i| table_name(&s.fields[i].ty)).with_context(here)?),
            None => "None".into(),
        };
        write!(o, "\n    Field{{name:{:?},offset:{},mem:{mem},verbose:{},cond:{cond}}},", f.name, f.offset, f.verbose)?;
    }
    o.push_str("\n] };\n");
    Ok(())
}

fn dir(s: &str, ty: &str) -> Result<&'static str> {
    Ok(match s {
        "in" => "Dir::In",
        "out" => "Dir::Out",
        "inout" => "Dir::InOut",
        "intr" => "Dir::OutIntr",
        "positive" => "Dir::OutPositive",
        "" if ty.starts_with("Type::Int(") || ty.starts_with("Type::Switch") => "Dir::In",
        _ => bail!("a type that leads to memory wants in, out, inout, intr or positive"),
    })
}

/// The calls that use a switch: they determine what its lengths may name.
fn switch_scope<'a>(t: &'a Tables, name: &str) -> Option<&'a Call> {
    let form = format!("switch({name},");
    t.calls.iter().find(|c| c.args.iter().any(|a| a.ty.replace(' ', "").starts_with(&form)))
}

/// `switches.rs`.
pub fn switches(n: &Names<'_>) -> Result<String> {
    let mut o = format!(
        "//! Types chosen by another argument.\n{HEADER}\nuse super::{{flags, structs}};\nuse crate::schema::Dir;\nuse crate::types::{{Case, CaseTypes, Fmt, Int, Len, LenFrom, Mem, StrKind, Switch, Type}};\n\n"
    );
    for s in &n.t.switches {
        let Some(user) = switch_scope(n.t, &s.name) else { continue };
        switch_def(n, s, user, &mut o)?;
    }
    Ok(o)
}

fn switch_def(n: &Names<'_>, s: &Switch, user: &Call, o: &mut String) -> Result<()> {
    let scope = Scope { args: user.args.iter().map(|a| a.name.as_str()).collect() };
    let mut cases: BTreeMap<u64, String> = BTreeMap::new();
    let mut default = "CaseTypes{args:&[],ret:None}".to_string();
    let prefer =
        user.args.iter().find(|a| a.ty.replace(' ', "").starts_with(&format!("switch({},", s.name))).and_then(|a| {
            let parts = split(call_form(&a.ty)?.1, ',');
            user.args
                .iter()
                .find(|b| b.name == parts[1])
                .map(|b| if b.ty == "ioctlcmd" { "ioctl".to_string() } else { table_name(&b.ty).unwrap_or_default() })
        });
    let prefer = prefer.filter(|p| !p.is_empty());
    for r in &s.rows {
        let here = || format!("{}: {}", r.at, r.selector);
        let mut types = Vec::new();
        for (ty, d) in &r.types {
            types.push(if ty == "-" {
                "None".to_string()
            } else {
                let ty = n.ty(ty, &scope).with_context(here)?;
                let d = dir(d, &ty).with_context(here)?;
                format!("Some(({ty},{d}))")
            });
        }
        let ret = match &r.ret {
            Some(t) => {
                format!("Some({})", n.scalar(t)?.ok_or_else(|| anyhow!("{}: no such result type '{t}'", r.at))?.0)
            }
            None => "None".into(),
        };
        let body = format!("CaseTypes{{args:&[{}],ret:{ret}}}", types.join(","));
        if r.selector == "*" {
            default = body;
            continue;
        }
        let key = match r.selector.split_once('.') {
            Some((a, b)) => {
                n.constant(a, None).with_context(here)? << 32 | n.constant(b, None).with_context(here)? & 0xffff_ffff
            }
            None => n.constant(&r.selector, prefer.as_deref()).with_context(here)? & 0xffff_ffff,
        };
        cases.entry(key).or_insert(body);
    }
    writeln!(o, "/// `{}`", s.name)?;
    write!(o, "pub static {}: Switch = Switch {{ name: {:?}, cases: &[", ident("W_", &s.name), s.name)?;
    for (key, body) in cases {
        write!(o, "\n    Case{{key:{key:#x},types:{body}}},")?;
    }
    writeln!(o, "\n], default: {default} }};")?;
    Ok(())
}

/// `syscalls.rs`: the schemas, and how to find them.
pub fn syscalls(n: &Names<'_>) -> Result<String> {
    let calls = ordered(n.t)?;
    let mut sets: Vec<&str> = calls.iter().flat_map(|c| c.sets.iter().map(String::as_str)).collect();
    sets.sort_unstable();
    sets.dedup();
    anyhow::ensure!(sets.len() <= 32, "more than 32 sets");
    let mut o = format!(
        "//! The schemas of all events.\n{HEADER}\nuse super::{{flags, structs, switches}};\nuse crate::schema::{{Arg, Class, Dir, Extent, Ret, Schema, Sets}};\nuse crate::types::{{Cond, Fmt, Int, Len, LenFrom, Mem, StrKind, Test, Type}};\n\n"
    );
    writeln!(o, "/// The names of the bits of [`Sets`].\npub static SET_NAMES: &[&str] = &{sets:?};\n")?;
    for (id, c) in calls.iter().enumerate() {
        let at = || format!("{}: {}", c.at, c.name);
        schema(n, id, c, &sets, &mut o).with_context(at)?;
    }
    writeln!(o, "/// All schemas; the index is the id.\npub static SCHEMAS: &[&Schema] = &[")?;
    for c in &calls {
        writeln!(o, "    &{},", schema_ident(c))?;
    }
    o.push_str("];\n\n");
    let top = calls.iter().filter_map(|c| c.x86_64).max().unwrap_or(0) as usize;
    let mut by_nr = vec![u16::MAX; top + 1];
    for (id, c) in calls.iter().enumerate() {
        if let Some(nr) = c.x86_64 {
            by_nr[nr as usize] = id as u16;
        }
    }
    writeln!(
        o,
        "/// The id of the schema of each x86_64 number, `u16::MAX` for none.\npub static X86_64: &[u16] = &{by_nr:?};\n"
    )?;
    let top = n.t.i386.iter().map(|c| c.0).max().unwrap_or(0) as usize;
    let mut names = vec![""; top + 1];
    for (nr, name) in &n.t.i386 {
        names[*nr as usize] = name;
    }
    writeln!(o, "/// The names of the i386 calls by number, empty for none.\npub static I386: &[&str] = &{names:?};")?;
    Ok(o)
}

fn schema_ident(c: &Call) -> String {
    ident(if c.process { "P_" } else { "C_" }, &c.name)
}

/// Process events first, then `raw`, then the calls by number; refuses duplicate numbers and names.
fn ordered(t: &Tables) -> Result<Vec<&Call>> {
    let mut calls: Vec<&Call> = t.calls.iter().collect();
    calls.sort_by_key(|c| (!c.process, c.x86_64.unwrap_or(u32::MAX), c.aarch64, c.name.clone()));
    let (mut names, mut x86, mut arm) = (HashMap::new(), HashMap::new(), HashMap::new());
    for c in &calls {
        if let Some(first) = names.insert((c.process, &c.name), &c.at) {
            bail!("{}: '{}' stands at {first} already", c.at, c.name);
        }
        for (arch, nr, map) in [("x86_64", c.x86_64, &mut x86), ("aarch64", c.aarch64, &mut arm)] {
            if let Some(nr) = nr
                && let Some(first) = map.insert(nr, &c.at)
            {
                bail!("{}: {arch}={nr} stands at {first} already", c.at);
            }
        }
    }
    Ok(calls)
}

fn schema(n: &Names<'_>, id: usize, c: &Call, sets: &[&str], o: &mut String) -> Result<()> {
    let scope = Scope { args: c.args.iter().map(|a| a.name.as_str()).collect() };
    let (class, extent) = if c.process { ("Process", "Point") } else { ("Syscall", "Span") };
    anyhow::ensure!(c.args.len() <= if c.process || c.name == "raw" { 12 } else { 6 }, "too many arguments");
    write!(
        o,
        "/// `{}`\npub static {}: Schema = Schema {{ id: {id}, base: {id}, name: {:?}, class: Class::{class}, extent: Extent::{extent}, more_caps: false, x86_64: {:?}, aarch64: {:?}, args: &[",
        c.name,
        schema_ident(c),
        c.name,
        c.x86_64,
        c.aarch64
    )?;
    let mut nth: HashMap<String, usize> = HashMap::new();
    for a in &c.args {
        let mut ty = n.ty(&a.ty, &scope).with_context(|| a.name.clone())?;
        if ty.starts_with("Type::Switch") {
            let k = nth.entry(ty.clone()).or_default();
            let with = ty.replace("nth:NTH", &format!("nth:{k}"));
            *k += 1;
            ty = with;
        }
        let d = dir(&a.dir, &ty).with_context(|| a.name.clone())?;
        let cond = cond_of(n, a, c, &scope)?;
        write!(o, "\n    Arg{{name:{:?},ty:{ty},dir:{d},cond:{cond}}},", a.name)?;
    }
    let bits = c.sets.iter().map(|s| 1u32 << sets.iter().position(|x| x == s).unwrap_or(0)).fold(0, |a, b| a | b);
    let ret = match c.ret.as_deref() {
        None if c.process => "Ret::Never".into(),
        Some("never") => "Ret::Never".into(),
        None => bail!("wants -> RETURN"),
        Some(t) => format!("Ret::Int({})", n.scalar(t)?.ok_or_else(|| anyhow!("no such result type '{t}'"))?.0),
    };
    writeln!(o, "\n], ret: {ret}, sets: Sets({bits:#x}), from: {:?} }};", c.from)?;
    Ok(())
}

fn cond_of(n: &Names<'_>, a: &CallArg, c: &Call, scope: &Scope<'_>) -> Result<String> {
    Ok(match &a.cond {
        Some(s) => {
            let s = n.cond(s, scope, |i| table_name(&c.args[i].ty)).with_context(|| a.name.clone())?;
            format!("Some({s})")
        }
        None => "None".into(),
    })
}

/// `errno.rs`.
pub fn errno(t: &Tables) -> Result<String> {
    let mut o = format!(
        "//! Error numbers: number, name, text, sorted.\n{HEADER}\n/// Sorted by number.\npub static ERRNO: &[(u16, &str, &str)] = &[\n"
    );
    for (n, name, text) in &t.errno {
        writeln!(o, "    ({n}, {name:?}, {text:?}),")?;
    }
    o.push_str("];\n");
    Ok(o)
}
