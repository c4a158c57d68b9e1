//! Reads `tables/*.def`: lines in, plain data out. Names are resolved later, by [`super::emit`].
//!
//! The format is documented in docs/HOWTO_ADD_SYSCALL.md. Every error names file and line.

use anyhow::{Context, Result, anyhow, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Where something was written.
#[derive(Clone, Debug)]
pub struct At {
    pub file: String,
    pub line: usize,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A flag or enumeration table.
#[derive(Clone, Debug)]
pub struct Table {
    pub at: At,
    pub name: String,
    pub unknown: String,
    pub flags: bool,
    pub entries: Vec<Entry>,
    pub includes: Vec<(usize, String)>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub value: u64,
    pub mask: u64,
}

#[derive(Debug)]
pub struct Struct {
    pub at: At,
    pub name: String,
    pub size: u64,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub at: At,
    pub name: String,
    pub offset: u64,
    pub ty: String,
    pub verbose: bool,
    pub cond: Option<String>,
}

#[derive(Debug)]
pub struct Switch {
    pub name: String,
    pub rows: Vec<SwitchRow>,
}

#[derive(Debug)]
pub struct SwitchRow {
    pub at: At,
    pub selector: String,
    pub types: Vec<(String, String)>,
    pub ret: Option<String>,
}

#[derive(Debug)]
pub struct Call {
    pub at: At,
    pub name: String,
    pub from: String,
    pub x86_64: Option<u32>,
    pub aarch64: Option<u32>,
    pub args: Vec<CallArg>,
    pub ret: Option<String>,
    pub sets: Vec<String>,
    pub process: bool,
}

#[derive(Debug)]
pub struct CallArg {
    pub name: String,
    pub ty: String,
    pub dir: String,
    pub cond: Option<String>,
}

/// The contents of `tables/`.
#[derive(Default, Debug)]
pub struct Tables {
    pub tables: Vec<Table>,
    pub structs: Vec<Struct>,
    pub switches: Vec<Switch>,
    pub calls: Vec<Call>,
    pub errno: Vec<(u32, String, String)>,
    pub i386: Vec<(u32, String)>,
}

/// The lines of a file without comments, with the `#From` that holds for each.
fn lines(path: &Path) -> Result<Vec<(At, String, String)>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut from = String::new();
    let mut out = Vec::new();
    for (i, raw) in text.lines().enumerate() {
        if let Some(f) = raw.trim().strip_prefix("#From ") {
            from = f.trim().to_string();
            continue;
        }
        let line = raw.split(" #").next().unwrap_or_default();
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        out.push((At { file: file.clone(), line: i + 1 }, from.clone(), line.trim_end().to_string()));
    }
    Ok(out)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut v: Vec<PathBuf> = fs::read_dir(dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "def"))
        .collect();
    v.sort();
    Ok(v)
}

/// A decimal, hexadecimal (`0x`), octal (`0o`) or negative number.
pub fn number(s: &str) -> Option<u64> {
    let s = s.trim();
    if let Some(n) = s.strip_prefix('-') {
        return Some((number(n)? as i64).wrapping_neg() as u64);
    }
    if let Some(h) = s.strip_prefix("0x") {
        return u64::from_str_radix(h, 16).ok();
    }
    if let Some(o) = s.strip_prefix("0o") {
        return u64::from_str_radix(o, 8).ok();
    }
    s.parse().ok()
}

/// Splits at `sep` outside of parentheses and brackets.
pub fn split(s: &str, sep: char) -> Vec<String> {
    let (mut depth, mut part, mut out) = (0, String::new(), Vec::new());
    for c in s.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            c if c == sep && depth == 0 => {
                out.push(std::mem::take(&mut part).trim().to_string());
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    out.push(part.trim().to_string());
    out
}

/// Reads all of `dir`.
pub fn all(dir: &Path) -> Result<Tables> {
    let mut t = Tables::default();
    for f in files(&dir.join("flags"))? {
        flag_file(&f, &mut t.tables)?;
    }
    for f in files(&dir.join("switch"))? {
        switch_file(&f, &mut t.switches)?;
    }
    for f in files(dir)? {
        let name = f.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.as_str() {
            "errno.def" => errno_file(&f, &mut t.errno)?,
            "syscalls_i386.def" => i386_file(&f, &mut t.i386)?,
            n if n.starts_with("structs") => struct_file(&f, &mut t.structs)?,
            n if n.starts_with("syscalls") || n == "process.def" => call_file(&f, &mut t.calls)?,
            _ => bail!("{name}: no such kind of table"),
        }
    }
    Ok(t)
}

fn flag_file(path: &Path, out: &mut Vec<Table>) -> Result<()> {
    for (at, _, line) in lines(path)? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "flags" | "enum" if words.len() >= 2 => out.push(Table {
                name: words[1].to_string(),
                unknown: words.get(2).unwrap_or(&"???").to_string(),
                flags: words[0] == "flags",
                entries: Vec::new(),
                includes: Vec::new(),
                at,
            }),
            "include" if words.len() == 2 => {
                let t = out.last_mut().ok_or_else(|| anyhow!("{at}: include before a table"))?;
                t.includes.push((t.entries.len(), words[1].to_string()));
            }
            _ => {
                let t = out.last_mut().ok_or_else(|| anyhow!("{at}: entry before a table"))?;
                if let Some(e) = entry(&words).with_context(|| format!("{at}: {line}"))? {
                    t.entries.push(e);
                }
            }
        }
    }
    Ok(())
}

fn entry(words: &[&str]) -> Result<Option<Entry>> {
    let value = words.get(1).and_then(|w| number(w)).ok_or_else(|| anyhow!("wants NAME VALUE [/ MASK]"))?;
    let mut mask = value;
    let mut rest = words[2..].iter();
    while let Some(w) = rest.next() {
        match *w {
            "/" => mask = rest.next().and_then(|m| number(m)).ok_or_else(|| anyhow!("wants a mask after /"))?,
            "arch=x86_64" => {}
            w if w.starts_with("arch=") => return Ok(None),
            w => bail!("what is '{w}'?"),
        }
    }
    Ok(Some(Entry { name: words[0].to_string(), value, mask }))
}

fn struct_file(path: &Path, out: &mut Vec<Struct>) -> Result<()> {
    for (at, _, line) in lines(path)? {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "struct" {
            let size = words.get(2).and_then(|w| number(w)).ok_or_else(|| anyhow!("{at}: wants struct NAME SIZE"))?;
            out.push(Struct { at, name: words[1].to_string(), size, fields: Vec::new() });
            continue;
        }
        let s = out.last_mut().ok_or_else(|| anyhow!("{at}: field before a struct"))?;
        let (head, cond) = match line.split_once(" if ") {
            Some((h, c)) => (h.to_string(), Some(c.trim().to_string())),
            None => (line.clone(), None),
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let offset = words.get(1).and_then(|w| number(w)).ok_or_else(|| anyhow!("{at}: wants FIELD OFFSET TYPE"))?;
        let verbose = words.last() == Some(&"verbose");
        let ty = words[2..words.len() - usize::from(verbose)].join(" ");
        s.fields.push(Field { name: words[0].to_string(), offset, ty, verbose, cond, at });
    }
    Ok(())
}

/// `TYPE [in|out|inout|intr|positive]`
fn typed(s: &str) -> (String, String) {
    match s.rsplit_once(' ') {
        Some((t, d)) if matches!(d, "in" | "out" | "inout" | "intr" | "positive") => {
            (t.trim().to_string(), d.to_string())
        }
        _ => (s.trim().to_string(), String::new()),
    }
}

fn switch_file(path: &Path, out: &mut Vec<Switch>) -> Result<()> {
    for (at, _, line) in lines(path)? {
        if let Some(name) = line.strip_prefix("switch ") {
            out.push(Switch { name: name.trim().to_string(), rows: Vec::new() });
            continue;
        }
        let s = out.last_mut().ok_or_else(|| anyhow!("{at}: row before a switch"))?;
        let (head, ret) = match line.split_once("->") {
            Some((h, r)) => (h.trim().to_string(), Some(r.trim().to_string())),
            None => (line.trim().to_string(), None),
        };
        let (selector, types) = head.split_once(char::is_whitespace).unwrap_or((&head, "-"));
        let types = split(types, ',').iter().map(|t| typed(t)).collect();
        s.rows.push(SwitchRow { at, selector: selector.to_string(), types, ret });
    }
    Ok(())
}

fn errno_file(path: &Path, out: &mut Vec<(u32, String, String)>) -> Result<()> {
    for (at, _, line) in lines(path)? {
        let mut w = line.splitn(3, char::is_whitespace);
        let (name, n, text) = (w.next(), w.next(), w.next());
        let n = n.and_then(number).ok_or_else(|| anyhow!("{at}: wants NAME NUMBER TEXT"))?;
        out.push((n as u32, name.unwrap_or_default().to_string(), text.unwrap_or_default().trim().to_string()));
    }
    out.sort();
    out.dedup_by_key(|e| e.0);
    Ok(())
}

fn i386_file(path: &Path, out: &mut Vec<(u32, String)>) -> Result<()> {
    for (at, _, line) in lines(path)? {
        let w: Vec<&str> = line.split_whitespace().collect();
        let n = w.get(1).and_then(|n| number(n)).ok_or_else(|| anyhow!("{at}: wants NAME NUMBER"))?;
        out.push((n as u32, w[0].to_string()));
    }
    out.sort();
    Ok(())
}

fn call_file(path: &Path, out: &mut Vec<Call>) -> Result<()> {
    for (at, from, line) in lines(path)? {
        out.push(call(&at, &from, &line).with_context(|| format!("{at}: {line}"))?);
    }
    Ok(())
}

fn call(at: &At, from: &str, line: &str) -> Result<Call> {
    let open = line.find('(').ok_or_else(|| anyhow!("wants (ARGUMENTS)"))?;
    let close = matching(line, open).ok_or_else(|| anyhow!("unbalanced parentheses"))?;
    let head: Vec<&str> = line[..open].split_whitespace().collect();
    let mut c = Call {
        at: at.clone(),
        name: head.first().ok_or_else(|| anyhow!("wants a name"))?.to_string(),
        from: from.to_string(),
        x86_64: None,
        aarch64: None,
        args: Vec::new(),
        ret: None,
        sets: Vec::new(),
        process: false,
    };
    if let Some(n) = c.name.strip_prefix("process:") {
        (c.name, c.process) = (n.to_string(), true);
    }
    for w in &head[1..] {
        let (arch, n) = w.split_once('=').ok_or_else(|| anyhow!("wants ARCH=NUMBER, not '{w}'"))?;
        let n = if n == "-" { None } else { Some(n.parse().with_context(|| format!("number of {arch}"))?) };
        match arch {
            "x86_64" => c.x86_64 = n,
            "aarch64" => c.aarch64 = n,
            _ => bail!("unknown architecture '{arch}'"),
        }
    }
    for a in split(&line[open + 1..close], ',').iter().filter(|a| !a.is_empty()) {
        let (name, rest) = a.split_once(':').ok_or_else(|| anyhow!("wants NAME: TYPE, not '{a}'"))?;
        let (head, cond) = match rest.split_once(" if ") {
            Some((h, c)) => (h.trim(), Some(c.trim().to_string())),
            None => (rest.trim(), None),
        };
        let (ty, dir) = typed(head);
        c.args.push(CallArg { name: name.trim().to_string(), ty, dir, cond });
    }
    let mut tail = line[close + 1..].split_whitespace();
    while let Some(w) = tail.next() {
        match w {
            "->" => c.ret = Some(tail.next().ok_or_else(|| anyhow!("wants a type after ->"))?.to_string()),
            w if w.starts_with('@') => c.sets.push(w[1..].to_string()),
            w => bail!("what is '{w}'?"),
        }
    }
    Ok(c)
}

fn matching(s: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, c) in s.char_indices().skip_while(|(i, _)| *i < open) {
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}
