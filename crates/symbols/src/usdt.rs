//! Static probes (USDT): the notes that `sys/sdt.h` leaves in the section `.note.stapsdt`, and the words that say where the
//! arguments are.
//!
//! ```text
//!  note type 3 "stapsdt": u64 pc │ u64 base │ u64 semaphore │ provider NUL │ name NUL │ arguments NUL
//!  arguments: -4@%edi 8@-8(%rbp) 4@$5      size, negative for signed, `f` for floating; @; an operand as the assembler writes it
//! ```

use crate::Elf;
use std::fmt;

/// A static probe: one place in the code. Probes of one name may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Static {
    /// Who offers it.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// Address.
    pub address: u64,
    /// Where the instruction lies in the file.
    pub offset: u64,
    /// Offset of the counter (semaphore) in the file that must be raised while the probe is in use; 0 for none.
    pub semaphore: u64,
    /// Arguments.
    pub args: Vec<Arg>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Bytes.
    pub size: u8,
    /// Signed.
    pub signed: bool,
    /// Floating point.
    pub float: bool,
    /// Where it is.
    pub at: Operand,
}

/// Where an argument is when the probe is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// In a register, or in its lower part: `rdi`, `edi`, `x0`.
    Register(String),
    /// A number.
    Constant(i64),
    /// In memory: `offset + base + index * scale`.
    Memory {
        /// Bytes to add.
        offset: i64,
        /// A register.
        base: String,
        /// Another one, and what it is multiplied by.
        index: Option<(String, u8)>,
    },
    /// Written in a way that is not understood: its text.
    Other(String),
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match (self.float, self.size) {
            (true, 4) => "float",
            (true, _) => "double",
            _ => return write!(f, "{}int{}", if self.signed { "" } else { "u" }, u32::from(self.size) * 8),
        })
    }
}

/// `NT_STAPSDT`.
const KIND: u32 = 3;
/// The most probes of a file, and arguments of a probe.
const MAX_PROBES: usize = 1 << 20;
const MAX_ARGS: usize = 12;

/// The static probes of a file, in the order of the file. Damaged notes end the list.
pub fn of(elf: &Elf) -> Vec<Static> {
    texts(&elf.notes).filter_map(|text| probe(text, elf)).take(MAX_PROBES).collect()
}

/// The addresses of the static probes in a file's notes, sorted; damaged notes end them. `base`: the address of `.stapsdt.base`.
pub(crate) fn addresses(notes: &[u8], base: Option<u64>) -> Vec<u64> {
    let mut found: Vec<u64> = texts(notes).filter_map(|text| address(text, base)).take(MAX_PROBES).collect();
    found.sort_unstable();
    found
}

/// The contents of the notes that are probes'.
fn texts(mut notes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let next = move || {
        let (text, rest) = note(notes)?;
        notes = rest;
        Some(text)
    };
    std::iter::from_fn(next).flatten()
}

/// Where a probe is.
fn address(text: &[u8], base: Option<u64>) -> Option<u64> {
    Some(u64_at(text, 0)?.wrapping_add(moved(text, base)?))
}

/// What a prelinker has added to addresses: it moves the section of which `base` is the address, too, and does not change the notes.
fn moved(text: &[u8], base: Option<u64>) -> Option<u64> {
    let then = u64_at(text, 8)?;
    Some(base.map_or(0, |now| now.wrapping_sub(then)))
}

fn u32_at(b: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?) as usize)
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

/// The contents of the first note, if it is a probe's, and what follows it.
fn note(b: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    const HEAD: usize = 12;
    let (name_len, len, kind) = (u32_at(b, 0)?, u32_at(b, 4)?, u32_at(b, 8)?);
    let from = HEAD.checked_add(name_len)?.checked_next_multiple_of(4)?;
    let to = from.checked_add(len)?;
    let (name, text) = (b.get(HEAD..HEAD.checked_add(name_len)?)?, b.get(from..to)?);
    let rest = b.get(to.checked_next_multiple_of(4)?.min(b.len())..)?;
    Some(((kind == KIND as usize && name == b"stapsdt\0").then_some(text), rest))
}

fn probe(text: &[u8], elf: &Elf) -> Option<Static> {
    let (address, semaphore) = (address(text, elf.note_base)?, u64_at(text, 16)?);
    let moved = moved(text, elf.note_base)?;
    let mut words = text[24..].split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned());
    let (provider, name, args) = (words.next()?, words.next()?, words.next().unwrap_or_default());
    let semaphore = match semaphore {
        0 => 0,
        at => elf.file_offset(at.wrapping_add(moved))?,
    };
    Some(Static { provider, name, address, offset: elf.code_offset(address)?, semaphore, args: arguments(&args) })
}

/// Takes the words of a note apart.
pub fn arguments(text: &str) -> Vec<Arg> {
    // An operand of some architectures has blanks inside its brackets: `4@[sp, 12]`.
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.contains('[') && !last.contains(']') => last.push_str(word),
            _ => words.push(word.to_string()),
        }
    }
    words.iter().take(MAX_ARGS).map(|w| argument(w)).collect()
}

fn argument(word: &str) -> Arg {
    let other = || Arg { size: 8, signed: false, float: false, at: Operand::Other(word.to_string()) };
    let (size, operand) = match word.split_once('@') {
        // Without a size: as wide as a register.
        None => ("8", word),
        Some(parts) => parts,
    };
    let (size, float) = match size.strip_suffix('f') {
        Some(s) => (s, true),
        None => (size, false),
    };
    let Ok(n @ (-8 | -4 | -2 | -1 | 1 | 2 | 4 | 8)) = size.parse::<i8>() else { return other() };
    let at = match operand_of(operand).unwrap_or_else(|| Operand::Other(operand.to_string())) {
        // Compilers write constants below zero for large ones, too.
        Operand::Constant(v) => {
            let unused = 64 - 8 * u32::from(n.unsigned_abs());
            Operand::Constant(if n < 0 { v << unused >> unused } else { ((v as u64) << unused >> unused) as i64 })
        }
        at => at,
    };
    Arg { size: n.unsigned_abs(), signed: n < 0, float, at }
}

fn number(text: &str) -> Option<i64> {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(d) => (true, d),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse::<u64>().ok()? as i64,
    };
    Some(if minus { value.wrapping_neg() } else { value })
}

fn is_register(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn operand_of(text: &str) -> Option<Operand> {
    if let Some(n) = text.strip_prefix('$') {
        return number(n).map(Operand::Constant);
    }
    if let Some(r) = text.strip_prefix('%').filter(|r| is_register(r)) {
        return Some(Operand::Register(r.to_string()));
    }
    if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let (base, offset) = inside.split_once(',').unwrap_or((inside, "0"));
        let (base, offset) = (base.trim(), number(offset.trim().trim_start_matches('#'))?);
        return is_register(base).then(|| Operand::Memory { offset, base: base.to_string(), index: None });
    }
    if let Some((offset, inside)) = text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        return x86_memory(offset, inside);
    }
    match number(text) {
        Some(n) => Some(Operand::Constant(n)),
        None => is_register(text).then(|| Operand::Register(text.to_string())),
    }
}

/// `offset(%base,%index,scale)`.
fn x86_memory(offset: &str, inside: &str) -> Option<Operand> {
    let offset = if offset.is_empty() { 0 } else { number(offset)? };
    let mut parts = inside.split(',').map(str::trim);
    let register = |text: &str| text.strip_prefix('%').filter(|r| is_register(r)).map(str::to_string);
    let base = register(parts.next()?)?;
    let index = match parts.next() {
        None => None,
        Some(index) => {
            let scale: u8 = parts.next().map_or(Ok(1), str::parse).ok()?;
            Some((register(index)?, Some(scale).filter(|s| matches!(s, 1 | 2 | 4 | 8))?))
        }
    };
    parts.next().is_none().then_some(Operand::Memory { offset, base, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(r: &str) -> Operand {
        Operand::Register(r.into())
    }

    #[test]
    fn constants_are_as_wide_as_their_argument() {
        let value = |text: &str| match arguments(text)[..] {
            [Arg { at: Operand::Constant(n), .. }] => n,
            _ => panic!("{text}"),
        };
        // What gcc writes for 4092785136, which it has as an int.
        assert_eq!((value("4@$-202182160"), value("-4@$4092785136")), (4092785136, -202182160));
        assert_eq!((value("1@$-16"), value("-2@$61936"), value("8@$-1"), value("-1@$16")), (240, -3600, -1, 16));
    }

    #[test]
    fn operands_are_those_of_the_assembler() {
        let args =
            arguments("-4@%edi 8@-8(%rbp) 4@$5 8f@%xmm0 1@3(%rax,%rbx,4) 8@(%rsp) -8@$-0x10 8@counter(%rip) %rdi");
        let memory = |offset, base: &str, index| Operand::Memory { offset, base: base.into(), index };
        let want = [
            (4, true, false, register("edi")),
            (8, false, false, memory(-8, "rbp", None)),
            (4, false, false, Operand::Constant(5)),
            (8, false, true, register("xmm0")),
            (1, false, false, memory(3, "rax", Some(("rbx".into(), 4)))),
            (8, false, false, memory(0, "rsp", None)),
            (8, true, false, Operand::Constant(-16)),
            (8, false, false, Operand::Other("counter(%rip)".into())),
            (8, false, false, register("rdi")),
        ];
        let want: Vec<Arg> =
            want.into_iter().map(|(size, signed, float, at)| Arg { size, signed, float, at }).collect();
        assert_eq!(args, want);
        let arm = arguments("-4@[sp, 12] 8@x0 4@[x1] 8@7");
        let at: Vec<Operand> = arm.into_iter().map(|a| a.at).collect();
        assert_eq!(at, [memory(12, "sp", None), register("x0"), memory(0, "x1", None), Operand::Constant(7)]);
        assert_eq!(arguments("3@%edi")[0].at, Operand::Other("3@%edi".into()));
        assert_eq!(
            arguments("-4@%edi 4@$1 8f@%xmm0").iter().map(Arg::to_string).collect::<Vec<_>>(),
            ["int32", "uint32", "double"]
        );
    }

    #[test]
    fn any_text_is_taken_apart() {
        for text in
            ["", "@", "4@", "-@%", "8@(", "8@)", "8@()", "8@(%)", "4@$", "4@[", "4@[]", "[ [ [", "8@(%a,%b,%c,%d)"]
        {
            let _ = arguments(text);
        }
    }

    #[test]
    #[allow(clippy::field_reassign_with_default)]
    fn damaged_notes_end_the_list() {
        let mut notes = Vec::new();
        for w in [8u32, 40, 3] {
            notes.extend(w.to_le_bytes());
        }
        notes.extend(b"stapsdt\0");
        notes.extend([0; 40]);
        for n in 0..notes.len() {
            for at in 0..12 {
                let mut bad = notes[..n].to_vec();
                if let Some(b) = bad.get_mut(at) {
                    *b = 0xff;
                }
                let mut elf = Elf::default();
                elf.notes = bad;
                assert_eq!(of(&elf), []);
            }
        }
    }
}
