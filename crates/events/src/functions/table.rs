//! The names of functions.

use crate::Event;
use crate::generated::P_FUNCTION;
use crate::names::{FdName, FunctionName, Names};
use crate::rules::{self, Rules, What};
use crate::values::{self, Signature};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The functions of a session or a trace, by number, as `process:function` events have reported them.
#[derive(Debug, Default)]
pub struct Table {
    all: Vec<Option<Box<Known>>>,
    bytes: usize,
    signatures: HashMap<u32, Box<Signature>>,
    rules: Option<Arc<dyn Rules>>,
}

#[derive(Debug)]
struct Known {
    name: String,
    symbol: String,
    module: String,
    build_id: Vec<u8>,
    address: u64,
    /// Further names.
    aliases: Vec<String>,
}

/// Knows functions, and nothing else.
impl Names for Table {
    fn fd(&self, _: u32, _: i32) -> Option<&FdName> {
        None
    }
    fn comm(&self, _: u32) -> Option<&[u8]> {
        None
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        self.get(number)
    }
    fn signature(&self, number: u32) -> Option<&Signature> {
        Table::signature(self, number)
    }
}

impl Known {
    /// Whether it names the function that `old` names.
    fn is_function_of(&self, old: &Known) -> bool {
        (self.address, &self.module, &self.build_id) == (old.address, &old.module, &old.build_id)
    }

    fn bytes(&self) -> usize {
        let aliases: usize = self.aliases.iter().map(String::len).sum();
        self.name.len() + self.symbol.len() + self.module.len() + self.build_id.len() + aliases
    }
}

/// Numbers from this one on have no name.
const MOST: u32 = 1 << 22;
/// The most bytes of names that are kept. Functions that come later have none.
const MOST_BYTES: usize = 1 << 30;

impl Table {
    /// Names and files of functions are as these rules want them from now on.
    pub fn redact(&mut self, rules: Option<Arc<dyn Rules>>) {
        self.rules = rules;
    }

    /// Learns a function, where `ev` reports one. Of several names of a function the last is its own, the others are aliases. `demangle` makes
    /// of a linker's name the one that is shown; none where that is the same.
    #[inline]
    pub fn note(&mut self, ev: &Event<'_>, demangle: impl FnOnce(&str) -> Option<String>) {
        if ev.schema.name == values::CLASS {
            return self.note_signature(ev);
        }
        if ev.schema.id != P_FUNCTION.id {
            return;
        }
        let text = |field| String::from_utf8_lossy(ev.bytes_of(field)).into_owned();
        let (number, symbol, module) = (ev.value_of("number") as u32, text("name"), text("path"));
        let name = demangle(&symbol).unwrap_or_else(|| symbol.clone());
        let (name, symbol, module) = self.shown(name, symbol, module);
        let (build_id, address, aliases) = (ev.bytes_of("build_id").to_vec(), ev.value_of("addr"), Vec::new());
        let mut known = Known { name, symbol, module, build_id, address, aliases };
        let at = number as usize;
        if let Some(old) = self.all.get(at).and_then(Option::as_deref).filter(|old| known.is_function_of(old)) {
            let mut names = old.aliases.clone();
            names.push(old.name.clone());
            names.retain(|name| *name != known.name);
            known.aliases = names;
        }
        let bytes = known.bytes();
        if number >= MOST || self.bytes + bytes > MOST_BYTES {
            return;
        }
        self.bytes += bytes;
        self.bytes -= self.all.get(at).and_then(Option::as_ref).map_or(0, |old| old.bytes());
        if at >= self.all.len() {
            self.all.resize_with(at + 1, || None);
        }
        self.all[at] = Some(Box::new(known));
    }

    /// A function's name, the linker's, and its file, as they are to be shown.
    fn shown(&self, name: String, symbol: String, module: String) -> (String, String, String) {
        let Some(rules) = &self.rules else { return (name, symbol, module) };
        let module = rules::string(&**rules, What::Path, &module).into_owned();
        match rules.text(What::Name, name.as_bytes()).or_else(|| rules.text(What::Name, symbol.as_bytes())) {
            Some(other) => {
                let other = String::from_utf8_lossy(&other).into_owned();
                (other.clone(), other, module)
            }
            None => (name, symbol, module),
        }
    }

    fn note_signature(&mut self, ev: &Event<'_>) {
        let (number, text) = (ev.value_of("number") as u32, ev.bytes_of("signature"));
        let known = std::str::from_utf8(text).ok().and_then(Signature::parse);
        if let Some(signature) = known.filter(|_| self.bytes + text.len() <= MOST_BYTES) {
            // As parsed it takes more.
            self.bytes += 8 * text.len();
            self.signatures.insert(number, Box::new(signature));
        }
    }

    /// What the arguments and the result of the function with this number are, if they were captured.
    pub fn signature(&self, number: u32) -> Option<&Signature> {
        self.signatures.get(&number).map(|s| &**s)
    }

    /// Whether values of any function were captured.
    pub fn has_values(&self) -> bool {
        !self.signatures.is_empty()
    }

    /// The function with this number.
    pub fn get(&self, number: u32) -> Option<FunctionName<'_>> {
        let Known { name, symbol, module, build_id, address, aliases } = self.all.get(number as usize)?.as_deref()?;
        Some(FunctionName { name, symbol, module, build_id, address: *address, aliases })
    }

    /// Its names: those of the linker and the demangled ones, of its aliases too; none where it is not known.
    pub fn names(&self, number: u32) -> impl Iterator<Item = &str> + Clone {
        let known = self.all.get(number as usize).and_then(Option::as_deref);
        known.into_iter().flat_map(|f| [&f.symbol, &f.name].into_iter().chain(&f.aliases)).map(String::as_str)
    }

    /// Its name, or its number where it has none.
    pub fn name(&self, number: u32) -> Cow<'_, str> {
        match self.get(number) {
            Some(f) => f.name.into(),
            None => format!("#{number}").into(),
        }
    }

    /// The highest number that has a name; 0: none has.
    pub fn last(&self) -> u32 {
        self.all.len().saturating_sub(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{self, Fixed};
    use crate::layout::Layout;

    #[test]
    fn the_last_of_several_names_is_the_functions() {
        let mut table = Table::default();
        let mut report = |name: &[u8], address: u64| {
            let mut event = Vec::new();
            let fixed = Fixed { cap: 0x15, ..Fixed::default() };
            encode::fixed(&mut event, &P_FUNCTION, &Layout::of(&P_FUNCTION), &fixed, &[1, 1, 1, 9, address]);
            [name, b"/lib/c"].into_iter().for_each(|text| encode::str_tail(&mut event, text));
            encode::bytes_tail(&mut event, &[1, 2]);
            table.note(&Event::parse(&event).unwrap(), |_| None);
            let name = table.name(9).into_owned();
            (name, table.get(9).unwrap().aliases.to_vec(), table.names(9).any(|n| n == "__write"))
        };
        let aliases = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(report(b"__write", 5), ("__write".into(), aliases(&[]), true));
        // Reported again, it is no other one.
        for _ in 0..2 {
            assert_eq!(report(b"write", 5), ("write".into(), aliases(&["__write"]), true));
        }
        // Another function of that number.
        assert_eq!(report(b"read", 6), ("read".into(), aliases(&[]), false));
    }

    #[test]
    fn a_function_is_known_by_its_number() {
        let layout = Layout::of(&P_FUNCTION);
        let mut table = Table::default();
        for number in [3, u64::from(u32::MAX)] {
            let mut bytes = Vec::new();
            encode::fixed(
                &mut bytes,
                &P_FUNCTION,
                &layout,
                &Fixed { cap: 0x15, ..Fixed::default() },
                &[1, 1, 1, number, 77],
            );
            encode::str_tail(&mut bytes, b"_ZN1a1bEv");
            encode::str_tail(&mut bytes, b"/bin/x");
            encode::bytes_tail(&mut bytes, &[1, 2]);
            table.note(&Event::parse(&bytes).unwrap(), |_| Some("a::b".into()));
        }
        let known = FunctionName {
            name: "a::b",
            symbol: "_ZN1a1bEv",
            module: "/bin/x",
            build_id: &[1, 2],
            address: 77,
            aliases: &[],
        };
        assert_eq!((table.get(3), table.get(0), table.get(u32::MAX), table.last()), (Some(known), None, None, 3));
        assert_eq!((table.name(3), table.name(4)), ("a::b".into(), "#4".into()));
    }
}
