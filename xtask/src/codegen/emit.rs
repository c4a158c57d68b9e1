//! Turns parsed tables into Rust: resolves names, refuses what does not fit, writes `static` data.

use super::parse::{At, Call, CallArg, Struct, Switch, Table, Tables, number, split};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

const HEADER: &str = "// Written by `cargo xtask codegen` from tables/. Do not edit.\n";

/// All names that rows may refer to.
pub struct Names<'t> {
    t: &'t Tables,
    consts: HashMap<&'t str, u64>,
    clashes: HashSet<&'t str>,
}

/// Who asks for a type: the arguments that a length or a condition may name.
struct Scope<'a> {
    args: Vec<&'a str>,
}

impl Scope<'_> {
    fn index(&self, name: &str) -> Result<usize> {
        self.args.iter().position(|a| *a == name).ok_or_else(|| anyhow!("no argument or field '{name}' in this row"))
    }
}

impl<'t> Names<'t> {
    /// Collects the constants; refuses tables defined twice and constants with two values in one table.
    pub fn new(t: &'t Tables) -> Result<Self> {
        let mut n = Names { t, consts: HashMap::new(), clashes: HashSet::new() };
        let mut seen: HashMap<&str, &At> = HashMap::new();
        for table in &t.tables {
            if let Some(first) = seen.insert(&table.name, &table.at) {
                bail!("{}: table '{}' stands at {first} already", table.at, table.name);
            }
            for e in &table.entries {
                if n.consts.insert(&e.name, e.value).is_some_and(|old| old != e.value) {
                    n.clashes.insert(&e.name);
                }
            }
        }
        Ok(n)
    }

    fn constant(&self, name: &str, prefer: Option<&str>) -> Result<u64> {
        if let Some(v) = number(name) {
            return Ok(v);
        }
        if let Some(t) = prefer
            && let Some(e) = self.entries(t)?.iter().find(|e| e.0 == name)
        {
            return Ok(e.1);
        }
        if self.clashes.contains(name) {
            bail!("'{name}' has several values in the tables: write the number");
        }
        self.consts.get(name).copied().ok_or_else(|| anyhow!("no constant '{name}' in tables/flags"))
    }

    fn table(&self, name: &str) -> Result<&'t Table> {
        self.t.tables.iter().find(|t| t.name == name).ok_or_else(|| anyhow!("no table '{name}' in tables/flags"))
    }

    /// The entries of a table with its includes in place: name, value, mask.
    fn entries(&self, name: &str) -> Result<Vec<(String, u64, u64)>> {
        let t = self.table(name)?;
        let mut out = Vec::new();
        for i in 0..=t.entries.len() {
            for (_, inc) in t.includes.iter().filter(|(at, _)| *at == i) {
                out.extend(self.entries(inc).with_context(|| format!("{}", t.at))?);
            }
            out.extend(t.entries.get(i).map(|e| (e.name.clone(), e.value, e.mask)));
        }
        Ok(out)
    }

    /// `A|B` or `(A|B)` as numbers.
    fn set(&self, s: &str, prefer: Option<&str>) -> Result<Vec<u64>> {
        s.trim_matches(|c| c == '(' || c == ')').split('|').map(|n| self.constant(n.trim(), prefer)).collect()
    }
}

fn ident(prefix: &str, name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    format!("{prefix}{clean}")
}

/// `name(inner)` → (name, inner).
fn call_form(s: &str) -> Option<(&str, &str)> {
    let (n, rest) = s.split_once('(')?;
    Some((n.trim(), rest.strip_suffix(')')?.trim()))
}

impl Names<'_> {
    /// A scalar type as a Rust expression, with its size.
    fn scalar(&self, s: &str) -> Result<Option<(String, u8)>> {
        let int = |size: u8, signed: bool, fmt: &str| {
            Ok(Some((format!("Int{{size:{size},signed:{signed},fmt:Fmt::{fmt}}}"), size)))
        };
        if let Some((kind, table)) = call_form(s) {
            let (name, size) = match kind {
                "flags" | "enum" => (kind, 4),
                "flags8" | "flags16" | "flags64" => ("flags", kind[5..].parse::<u8>()? / 8),
                "enum8" | "enum16" | "enum64" => ("enum", kind[4..].parse::<u8>()? / 8),
                _ => return Ok(None),
            };
            self.table(table)?;
            let variant = if name == "flags" { "Flags" } else { "Enum" };
            return int(size, false, &format!("{variant}(&flags::{})", ident("T_", table)));
        }
        let (size, signed, fmt) = match s {
            "i8" => (1, true, "Dec"),
            "i16" => (2, true, "Dec"),
            "int" | "i32" => (4, true, "Dec"),
            "long" | "off" | "i64" => (8, true, "Dec"),
            "u8" => (1, false, "Dec"),
            "u16" => (2, false, "Dec"),
            "uint" | "u32" => (4, false, "Dec"),
            "ulong" | "size" | "u64" => (8, false, "Dec"),
            "hex8" => (1, false, "Hex"),
            "hex16" => (2, false, "Hex"),
            "hex32" => (4, false, "Hex"),
            "hex" => (8, false, "Hex"),
            "mode" => (4, false, "Oct"),
            "mode16" => (2, false, "Oct"),
            "modet" => (4, false, "ModeType"),
            "modet16" => (2, false, "ModeType"),
            "fd" => (4, true, "Fd"),
            "dirfd" => (4, true, "Dirfd"),
            "pid" | "pgid" => (4, true, "Pid"),
            "tid" => (4, true, "Tid"),
            "uid" | "gid" => (4, false, "Uid"),
            "signal" => (4, true, "Signal"),
            "addr" => (8, false, "Addr"),
            "stack" => (8, false, "Stack"),
            "dev" => (8, false, "Dev"),
            "dev32" => (4, false, "Dev"),
            "time" => (8, true, "Time"),
            "rlim" => (8, false, "Rlim"),
            "handler" => (8, false, "Handler"),
            "be16" => (2, false, "Be16"),
            "be32" => (4, false, "Be32"),
            "inet4" => (4, false, "Inet4"),
            "epoll_data" => (8, false, "EpollData"),
            "clockt" => (8, true, "ClockTicks"),
            "ioctlcmd" => (4, false, "IoctlCmd"),
            "wstatus" => (4, false, "WaitStatus"),
            _ => return Ok(None),
        };
        int(size, signed, fmt)
    }

    /// Something with a fixed size in memory, with its size.
    fn mem(&self, s: &str) -> Result<(String, u64)> {
        if let Some((e, size)) = self.scalar(s)? {
            return Ok((format!("Mem::Int({e})"), u64::from(size)));
        }
        if let Some((base, n)) = s.strip_suffix(']').and_then(|s| s.rsplit_once('[')) {
            let n = self.constant(n, None)?;
            return Ok(match base.trim() {
                "char" => (format!("Mem::Chars({n})"), n),
                "bytes" => (format!("Mem::Bytes({n})"), n),
                "sigset" => (format!("Mem::Sigset({n})"), n),
                base => {
                    let (e, size) = self.mem(base)?;
                    (format!("Mem::Array(&{e},{n})"), size * n)
                }
            });
        }
        if s == "inet6" {
            return Ok(("Mem::Inet6".into(), 16));
        }
        match call_form(s) {
            Some(("struct", name)) => {
                let st = self.t.structs.iter().find(|d| d.name == name);
                let st = st.ok_or_else(|| anyhow!("no struct '{name}' in tables/structs*.def"))?;
                Ok((format!("Mem::Struct(&structs::{})", ident("S_", name)), st.size))
            }
            _ => bail!("no such type '{s}'"),
        }
    }

    fn len(&self, s: &str, scope: &Scope<'_>) -> Result<String> {
        let s = s.trim();
        // A leading * is the dereference, any other the multiplication.
        let cut = s.char_indices().skip(1).find(|(_, c)| matches!(c, '/' | '*')).map(|(i, _)| i);
        let (base, mul, div) = match cut {
            Some(i) => {
                let n = number(&s[i + 1..]).ok_or_else(|| anyhow!("bad length '{s}'"))?;
                if s.as_bytes()[i] == b'/' { (&s[..i], 1, n) } else { (&s[..i], n, 1) }
            }
            None => (s, 1, 1),
        };
        let from = if let Some(n) = number(base) {
            format!("LenFrom::Const({n})")
        } else if base == "ret" {
            "LenFrom::Ret".into()
        } else if let Some(a) = base.strip_prefix('*') {
            format!("LenFrom::Deref({})", scope.index(a.trim())?)
        } else {
            format!("LenFrom::Arg({})", scope.index(base)?)
        };
        Ok(format!("Len{{from:{from},mul:{mul},div:{div}}}"))
    }

    /// A type of an argument.
    fn ty(&self, s: &str, scope: &Scope<'_>) -> Result<String> {
        let s = s.trim();
        if let Some((e, _)) = self.scalar(s)? {
            return Ok(format!("Type::Int({e})"));
        }
        match s {
            "path" => return Ok("Type::Str(StrKind::Path)".into()),
            "str" => return Ok("Type::Str(StrKind::Text)".into()),
            "strv" => return Ok("Type::Strv".into()),
            "envv" => return Ok("Type::Envv".into()),
            "sigset_argpack" => return Ok("Type::SigsetPack".into()),
            "msghdr" => return Ok("Type::Msghdr".into()),
            _ => {}
        }
        if let Some(("switch", inner)) = call_form(s) {
            let parts = split(inner, ',');
            let sw = self.t.switches.iter().any(|w| w.name == parts[0]);
            anyhow::ensure!(sw, "no switch '{}' in tables/switch", parts[0]);
            let on = scope.index(parts.get(1).ok_or_else(|| anyhow!("switch(T, ARGUMENT)"))?)?;
            let on2 = match parts.get(2) {
                Some(a) => format!("Some({})", scope.index(a)?),
                None => "None".into(),
            };
            return Ok(format!(
                "Type::Switch{{table:&switches::{},on:{on},on2:{on2},nth:NTH}}",
                ident("W_", &parts[0])
            ));
        }
        let (base, len) = match s.strip_suffix(']').and_then(|b| open_bracket(b)) {
            Some((b, l)) => (b.trim(), Some(self.len(l, scope)?)),
            None => (s, None),
        };
        if let Some((kind, inner)) = call_form(base) {
            let len = len.clone();
            let opt = len.clone().map_or("None".into(), |l| format!("Some({l})"));
            match kind {
                "ptr" => return Ok(format!("Type::Ptr{{elem:{},len:{opt}}}", self.mem(inner)?.0)),
                "struct" => return Ok(format!("Type::Ptr{{elem:{},len:{opt}}}", self.mem(base)?.0)),
                "dirents" => {
                    let len = len.ok_or_else(|| anyhow!("dirents want a length"))?;
                    return Ok(format!("Type::Dirents{{len:{len},wide:{}}}", inner == "linux_dirent64"));
                }
                _ => {}
            }
        }
        let variant = match base {
            "bytes" => "Bytes",
            "iov" => "Iov",
            "mmsghdr" => "Mmsghdr",
            "sockaddr" => "Sockaddr",
            "sigset" => "Sigset",
            "fdset" => "Fdset",
            "cpuset" => "Cpuset",
            _ => bail!("no such type '{s}'"),
        };
        Ok(format!("Type::{variant}({})", len.ok_or_else(|| anyhow!("'{base}' wants a length: {base}[…]"))?))
    }

    /// A condition; `table_of` gives the flag table of an argument, where its names are looked up first.
    fn cond(&self, s: &str, scope: &Scope<'_>, table_of: impl Fn(usize) -> Option<String>) -> Result<String> {
        let s = s.trim();
        let (s, filetype) = match s.strip_prefix("FILETYPE(") {
            Some(rest) => (rest.replacen(')', "", 1), true),
            None => (s.to_string(), false),
        };
        let (on, op, set) = if let Some((a, b)) = s.split_once("==") {
            (a, if filetype { "FileType" } else { "OneOf" }, b)
        } else if let Some((a, b)) = s.split_once("!=") {
            (a, if filetype { "NotFileType" } else { "NoneOf" }, b)
        } else if let Some((a, b)) = s.split_once('&') {
            (a, "Any", b)
        } else {
            bail!("no such condition '{s}'");
        };
        let on = scope.index(on.trim())?;
        let table = table_of(on);
        let set = self.set(set.trim(), table.as_deref())?;
        let test = if op == "Any" {
            format!("Test::Any({:#x})", set.iter().fold(0, |a, b| a | b))
        } else {
            format!("Test::{op}(&{set:?})")
        };
        Ok(format!("Cond{{on:{on},test:{test}}}"))
    }
}

/// The last `[` that belongs to the closing bracket that was just taken off.
fn open_bracket(s: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (i, c) in s.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return Some((&s[..i], &s[i + 1..])),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn table_name(ty: &str) -> Option<String> {
    let (k, t) = call_form(ty)?;
    (k.starts_with("flags") || k.starts_with("enum")).then(|| t.to_string())
}

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
