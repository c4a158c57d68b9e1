//! `/tmp/perf-PID.map`: the functions that a just-in-time compiler has made, as it lists them.
//!
//! ```text
//!  7f3a10000000 4f LazyCompile:*fib /app/fib.js:3       start and size in hexadecimal, then a name up to the end of the line
//! ```
//!
//! Where lines overlap, the later one counts: the compiler has used the memory again. Everybody may put a file there under any name, so
//! [`check`] decides whom to believe. Open it with `O_NOFOLLOW | O_NONBLOCK`, and check what is open.

use std::collections::BTreeMap;

/// The most bytes and functions that are read, and the longest name.
pub const MAX_BYTES: usize = 256 << 20;
const MAX_FUNCTIONS: usize = 2 << 20;
const MAX_NAME: usize = 1024;

/// What is known of a file that may be such a map, by fstat(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Whose file it is.
    pub uid: u32,
    /// It is a regular file.
    pub regular: bool,
    /// Others than its owner may write to it.
    pub writable: bool,
}

/// Why a map is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A link, a pipe, a device, a directory.
    #[error("it is not a regular file")]
    Kind,
    /// Neither the process's user nor root has written it.
    #[error("it belongs to user {0}, not to the user of the process")]
    Owner(u32),
    /// Anybody may have written it.
    #[error("others than its owner may write to it")]
    Writable,
}

/// Whether a map of a process that runs as user `process` is to be believed.
///
/// # Errors
/// Why not.
pub fn check(file: Owner, process: u32) -> Result<(), Refused> {
    match file {
        Owner { regular: false, .. } => Err(Refused::Kind),
        Owner { uid, .. } if uid != process && uid != 0 => Err(Refused::Owner(uid)),
        Owner { writable: true, .. } => Err(Refused::Writable),
        _ => Ok(()),
    }
}

/// The functions of a map.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    /// From, to, offset and length of the name; sorted, not overlapping.
    functions: Vec<(u64, u64, u32, u16)>,
    names: String,
    refused: usize,
}

impl PerfMap {
    /// Of the text of a map. Lines that are none are counted and left out.
    pub fn parse(text: &[u8]) -> PerfMap {
        let mut all = PerfMap::default();
        let mut map: BTreeMap<u64, (u64, u32, u16)> = BTreeMap::new();
        let text = &text[..text.len().min(MAX_BYTES)];
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            let Some((from, to, name)) = fields(line).filter(|_| map.len() < MAX_FUNCTIONS) else {
                all.refused += 1;
                continue;
            };
            cut(&mut map, from, to);
            let at = all.names.len();
            all.names.push_str(&String::from_utf8_lossy(name));
            // What is not UTF-8 is longer now.
            map.insert(from, (to, at as u32, (all.names.len() - at) as u16));
        }
        all.functions = map.into_iter().map(|(from, (to, at, len))| (from, to, at, len)).collect();
        all
    }

    /// Name and start of the function that holds an address.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        self.function(address).map(|(from, _, name)| (name, from))
    }

    /// The function that holds an address: where it begins and ends, and its name.
    pub fn function(&self, address: u64) -> Option<(u64, u64, &str)> {
        let at = self.functions.partition_point(|f| f.0 <= address).checked_sub(1)?;
        let (from, to, name, len) = *self.functions.get(at).filter(|f| address < f.1)?;
        Some((from, to, self.names.get(name as usize..name as usize + usize::from(len))?))
    }

    /// How many functions it has.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// How many lines were left out.
    pub fn refused(&self) -> usize {
        self.refused
    }
}

/// Takes a range out of what is there.
fn cut(map: &mut BTreeMap<u64, (u64, u32, u16)>, from: u64, to: u64) {
    if let Some((start, before)) = map.range(..from).next_back().map(|(s, b)| (*s, *b))
        && before.0 > from
    {
        map.insert(start, (from, before.1, before.2));
        if before.0 > to {
            map.insert(to, before);
            return;
        }
    }
    while let Some((start, inside)) = map.range(from..to).next().map(|(s, i)| (*s, *i)) {
        map.remove(&start);
        if inside.0 > to {
            map.insert(to, inside);
        }
    }
}

/// From, to and name of a line.
fn fields(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut parts = line.splitn(3, |b| *b == b' ');
    let mut number = || {
        let text = std::str::from_utf8(parts.next()?).ok()?;
        let text = text.strip_prefix("0x").unwrap_or(text);
        if text.starts_with('+') { None } else { u64::from_str_radix(text, 16).ok() }
    };
    let (from, size) = (number()?, number()?);
    let name = parts.next()?;
    let to = from.checked_add(size).filter(|to| *to > from)?;
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    (!name.is_empty()).then(|| (from, to, &name[..name.len().min(MAX_NAME)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_lines_count() {
        let m = PerfMap::parse(b"1000 100 old one\n2000 10 two\n0x1040 20 LazyCompile:*f /a b.js:3\n1ff0 18 over\n");
        let at = |a| m.find(a);
        assert_eq!(at(0x103f), Some(("old one", 0x1000)));
        assert_eq!(at(0x1040), Some(("LazyCompile:*f /a b.js:3", 0x1040)));
        // The function in which others lie begins anew behind them.
        assert_eq!(at(0x1060), Some(("old one", 0x1060)));
        assert_eq!((at(0x1100), at(0x2007), at(0x2008)), (None, Some(("over", 0x1ff0)), Some(("two", 0x2008))));
        assert_eq!((m.len(), m.refused()), (5, 0));
    }

    #[test]
    fn lines_that_are_none_are_counted() {
        let long = [b"1000 1 ".to_vec(), vec![0xff; 100_000]].concat();
        let m = PerfMap::parse(
            &[&long[..], b"\n\n1000\n1000 10\n1000 0 empty\nffffffffffffffff 2 over\n-1 2 x\n+1 2 x\n1 1 \n"].concat(),
        );
        assert_eq!((m.len(), m.refused()), (1, 7));
        assert_eq!(m.find(0x1000).unwrap().0.len(), 3 * MAX_NAME);
    }

    /// Every address has the name of the last line that holds it.
    #[test]
    fn lines_at_random_are_as_the_last_one_says() {
        let mut r = testkit::Random::new(11);
        for _ in 0..testkit::rounds(300) {
            let lines: Vec<(u64, u64)> = (0..r.below(40)).map(|_| (r.below(200), 1 + r.below(60))).collect();
            let text: String =
                lines.iter().enumerate().map(|(i, (from, size))| format!("{from:x} {size:x} f{i}\n")).collect();
            let m = PerfMap::parse(text.as_bytes());
            for at in 0..270 {
                let want =
                    lines.iter().rposition(|(from, size)| (*from..from + size).contains(&at)).map(|i| format!("f{i}"));
                assert_eq!(m.find(at).map(|f| f.0), want.as_deref(), "{at} {text}");
            }
        }
    }

    #[test]
    fn maps_of_others_are_refused() {
        let file = Owner { uid: 1000, regular: true, writable: false };
        assert_eq!(check(file, 1000), Ok(()));
        assert_eq!(check(Owner { uid: 0, ..file }, 1000), Ok(()));
        assert_eq!(check(file, 0), Err(Refused::Owner(1000)));
        assert_eq!(check(file, 1001), Err(Refused::Owner(1000)));
        assert_eq!(check(Owner { regular: false, ..file }, 1000), Err(Refused::Kind));
        assert_eq!(check(Owner { writable: true, ..file }, 1000), Err(Refused::Writable));
    }
}
