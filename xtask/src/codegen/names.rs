//! The names of tables: constants, tables, types and conditions of rows, resolved; what does not fit is refused.

use super::parse::{At, Table, Tables, number, split};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{HashMap, HashSet};

/// All names that rows may refer to.
pub struct Names<'t> {
    pub(super) t: &'t Tables,
    consts: HashMap<&'t str, u64>,
    clashes: HashSet<&'t str>,
}

/// Who asks for a type: the arguments that a length or a condition may name.
pub(super) struct Scope<'a> {
    pub(super) args: Vec<&'a str>,
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

    pub(super) fn constant(&self, name: &str, prefer: Option<&str>) -> Result<u64> {
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
    pub(super) fn entries(&self, name: &str) -> Result<Vec<(String, u64, u64)>> {
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

pub(super) fn ident(prefix: &str, name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    format!("{prefix}{clean}")
}

/// `name(inner)` → (name, inner).
pub(super) fn call_form(s: &str) -> Option<(&str, &str)> {
    let (n, rest) = s.split_once('(')?;
    Some((n.trim(), rest.strip_suffix(')')?.trim()))
}

impl Names<'_> {
    /// A scalar type as a Rust expression, with its size.
    pub(super) fn scalar(&self, s: &str) -> Result<Option<(String, u8)>> {
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
    pub(super) fn mem(&self, s: &str) -> Result<(String, u64)> {
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
    pub(super) fn ty(&self, s: &str, scope: &Scope<'_>) -> Result<String> {
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
            "msgbuf" => "Msgbuf",
            "sockaddr" => "Sockaddr",
            "sigset" => "Sigset",
            "fdset" => "Fdset",
            "cpuset" => "Cpuset",
            _ => bail!("no such type '{s}'"),
        };
        Ok(format!("Type::{variant}({})", len.ok_or_else(|| anyhow!("'{base}' wants a length: {base}[…]"))?))
    }

    /// A condition; `table_of` gives the flag table of an argument, where its names are looked up first.
    pub(super) fn cond(
        &self,
        s: &str,
        scope: &Scope<'_>,
        table_of: impl Fn(usize) -> Option<String>,
    ) -> Result<String> {
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

pub(super) fn table_name(ty: &str) -> Option<String> {
    let (k, t) = call_form(ty)?;
    (k.starts_with("flags") || k.starts_with("enum")).then(|| t.to_string())
}
