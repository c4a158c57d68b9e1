//! The kernel's functions, as `/proc/kallsyms` lists them.
//!
//! ```text
//!  ffffffff81000000 T _stext                       address, type, name
//!  ffffffffc0201000 t helper [nf_tables]            and the module that it belongs to
//! ```
//!
//! A function ends where the next symbol of any type begins. Who may not see addresses reads zeros.

use std::collections::HashMap;

/// The most lines that are read, and the longest name (`KSYM_NAME_LEN`, since Linux 6.1).
const MAX_LINES: usize = 4 << 20;
const MAX_NAME: usize = 512;
const MAX_MODULES: usize = 1 << 14;
/// The lower half of the address space is not the kernel's: offsets of per-CPU variables look like addresses there.
const LOWEST: u64 = 1 << 63;
/// How far the last function of all reaches at most.
const MAX_FUNCTION: u64 = 1 << 20;

/// Why there is no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KallsymsError {
    /// All addresses are zero: the reader may not see them (`kernel.kptr_restrict`, CAP_SYSLOG).
    #[error("/proc/kallsyms hides addresses (run as root, or set kernel.kptr_restrict=0)")]
    Hidden,
    /// It has no functions.
    #[error("/proc/kallsyms lists no functions")]
    Empty,
}

/// A function of the kernel that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFunction<'k> {
    /// Its name.
    pub name: &'k str,
    /// The module that it belongs to; none: the kernel itself.
    pub module: Option<&'k str>,
    /// Where it begins.
    pub start: u64,
    /// Where the next symbol begins.
    pub end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: u64,
    end: u64,
    /// Offset and length of its name.
    name: (u32, u16),
    /// Number of its module; 0: the kernel itself.
    module: u16,
}

/// The kernel's functions by address.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    symbols: Vec<Symbol>,
    names: String,
    modules: Vec<String>,
    text: Option<(u64, u64)>,
}

impl Kallsyms {
    /// Of the text of `/proc/kallsyms`. Lines that are not as they should be are left out.
    ///
    /// # Errors
    /// Addresses are hidden, or there are no functions.
    pub fn parse(text: &[u8]) -> Result<Kallsyms, KallsymsError> {
        let mut all = Kallsyms::default();
        let mut numbers: HashMap<&str, u16> = HashMap::new();
        let mut starts = Vec::new();
        let (mut first, mut last, mut hidden) = (None, None, false);
        for line in text.split(|b| *b == b'\n').take(MAX_LINES) {
            let Some((address, kind, name, module)) = fields(line) else { continue };
            hidden |= address == 0;
            if address < LOWEST {
                continue;
            }
            starts.push(address);
            match name {
                "_stext" => first = Some(address),
                "_etext" => last = Some(address),
                _ => {}
            }
            let number = match module {
                None => 0,
                Some(m) => match numbers.get(m) {
                    Some(n) => *n,
                    None if all.modules.len() < MAX_MODULES => {
                        all.modules.push(m.to_string());
                        numbers.insert(m, all.modules.len() as u16);
                        all.modules.len() as u16
                    }
                    None => continue,
                },
            };
            let Ok(at) = u32::try_from(all.names.len()) else { break };
            if matches!(kind, b't' | b'T' | b'w' | b'W') {
                all.names.push_str(name);
                all.symbols.push(Symbol { start: address, end: 0, name: (at, name.len() as u16), module: number });
            }
        }
        if all.symbols.is_empty() {
            return Err(if hidden { KallsymsError::Hidden } else { KallsymsError::Empty });
        }
        all.text = first.zip(last).filter(|(from, to)| from < to);
        all.finish(starts);
        Ok(all)
    }

    fn finish(&mut self, mut starts: Vec<u64>) {
        starts.sort_unstable();
        for s in &mut self.symbols {
            let next = starts.get(starts.partition_point(|a| *a <= s.start));
            s.end = next.copied().unwrap_or(u64::MAX).min(s.start.saturating_add(MAX_FUNCTION));
        }
        let names = &self.names;
        let text =
            |s: &Symbol| names.get(s.name.0 as usize..s.name.0 as usize + usize::from(s.name.1)).unwrap_or_default();
        self.symbols.sort_by(|a, b| {
            let key = |s: &Symbol| (s.start, text(s).starts_with('_'), s.name.1);
            key(a).cmp(&key(b)).then_with(|| text(a).cmp(text(b)))
        });
        self.symbols.dedup_by_key(|s| s.start);
        self.symbols.shrink_to_fit();
    }

    /// The function that holds an address.
    pub fn find(&self, address: u64) -> Option<KernelFunction<'_>> {
        let at = self.symbols.partition_point(|s| s.start <= address).checked_sub(1)?;
        self.symbols.get(at).filter(|s| address < s.end).map(|s| self.function(s))
    }

    fn function(&self, s: &Symbol) -> KernelFunction<'_> {
        let from = s.name.0 as usize;
        let name = self.names.get(from..from + usize::from(s.name.1)).unwrap_or_default();
        let module = usize::from(s.module).checked_sub(1).and_then(|m| self.modules.get(m)).map(String::as_str);
        KernelFunction { name, module, start: s.start, end: s.end }
    }

    /// All functions in order of addresses, one of each address.
    pub fn functions(&self) -> impl Iterator<Item = KernelFunction<'_>> {
        self.symbols.iter().map(|s| self.function(s))
    }

    /// Where the code of the kernel itself lies: `_stext`, `_etext`.
    pub fn text(&self) -> Option<(u64, u64)> {
        self.text
    }
}

/// Address, type, name and module of a line.
fn fields(line: &[u8]) -> Option<(u64, u8, &str, Option<&str>)> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let address = hexadecimal(words.next()?)?;
    let [kind] = *words.next()? else { return None };
    let text = |word| std::str::from_utf8(word).ok().filter(|w| w.len() <= MAX_NAME);
    let name = text(words.next()?)?;
    let module = words.next().and_then(|w| text(w.strip_prefix(b"[")?.strip_suffix(b"]")?));
    Some((address, kind, name, module.filter(|m| !m.is_empty())))
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digit = |n: u64, b: &u8| Some(n << 4 | u64::from(char::from(*b).to_digit(16)?));
    if word.len() > 16 { None } else { word.iter().try_fold(0, digit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000001000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81000040 t helper.cold
ffffffff81000100 D data_in_between
ffffffff81000200 T _etext
ffffffffc0201000 t helper\t[nf_tables]
ffffffffc0201040 b state\t[nf_tables]
ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_fw_ingress\t[bpf]
";

    fn named(k: &Kallsyms, at: u64) -> Option<(&str, Option<&str>, u64)> {
        k.find(at).map(|f| (f.name, f.module, at - f.start))
    }

    #[test]
    fn addresses_belong_to_functions_up_to_the_next_symbol() {
        let k = Kallsyms::parse(TEXT.as_bytes()).unwrap();
        assert_eq!(named(&k, 0xffff_ffff_8100_0005), Some(("startup_64", None, 5)));
        assert_eq!(named(&k, 0xffff_ffff_8100_00ff), Some(("helper.cold", None, 0xbf)));
        assert_eq!(named(&k, 0xffff_ffff_8100_0100), None);
        assert_eq!(named(&k, 0xffff_ffff_c020_1003), Some(("helper", Some("nf_tables"), 3)));
        assert_eq!(named(&k, 0xffff_ffff_c020_1040), None);
        assert_eq!(named(&k, 0xffff_ffff_c030_0001).unwrap().1, Some("bpf"));
        assert_eq!(named(&k, u64::MAX), None);
        assert_eq!(named(&k, 0x1000), None);
        assert_eq!(k.text(), Some((0xffff_ffff_8100_0000, 0xffff_ffff_8100_0200)));
        assert_eq!(k.functions().count(), 5);
    }

    #[test]
    fn hidden_addresses_are_said() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t helper\t[nf_tables]\n";
        assert_eq!(Kallsyms::parse(hidden.as_bytes()).unwrap_err(), KallsymsError::Hidden);
        assert_eq!(Kallsyms::parse(b"").unwrap_err(), KallsymsError::Empty);
        assert_eq!(Kallsyms::parse(b"ffffffff81000000 D jiffies\n").unwrap_err(), KallsymsError::Empty);
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        let long = "x".repeat(MAX_NAME + 1);
        let bad = format!(
            "ffffffff81000000\nffffffff81000000 T\n+fffffff81000000 T plus\n1ffffffff81000000 T long\nffffffff81000000 TT two\n\
             ffffffff81000000 T {long}\n\u{1}\u{2} T x\n\n \n\0\nffffffff81000010 T good\t[]\nffffffff81000020 T also [open\n"
        );
        let mut bytes = bad.into_bytes();
        bytes.extend(b"ffffffff81000030 T not\xffutf8\nffffffff81000040 T end");
        let k = Kallsyms::parse(&bytes).unwrap();
        let names: Vec<_> = k.functions().map(|f| (f.name, f.module)).collect();
        assert_eq!(names, [("good", None), ("also", None), ("end", None)]);
    }

    #[test]
    fn text_at_random_is_no_trouble() {
        let mut r = testkit::Random::new(5);
        for _ in 0..testkit::rounds(2000) {
            let mut bytes = TEXT.as_bytes().to_vec();
            for _ in 0..r.below(20) {
                let at = r.index(bytes.len());
                bytes[at] = r.of(&[b'\n', b' ', b'\t', b'0', b'f', b'[', b']', 0, 0xff]);
            }
            if let Ok(k) = Kallsyms::parse(&bytes) {
                assert!(k.functions().all(|f| k.find(f.start) == Some(f) || f.end <= f.start));
            }
        }
    }
}
