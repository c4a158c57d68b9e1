//! Which functions of a file a name means, and what they are called.
//!
//! ```text
//!  text ─► the symbol itself ─► a demangled name, with or without its parameters ─► a pattern of any of the three
//! ```
//!
//! The first that finds something counts: a whole name may contain `*`, as in `f(char*)`. A function is called by its demangled name;
//! where several of C++ differ only in their parameters, with them. If the text is a symbol as it is in the file, the function has that
//! name. So a printed name, given back to trapline, means the same functions.

use lang::pattern::{glob, is_pattern};
use std::collections::HashMap;
use symbols::Elf;
use symbols::demangle::{self, Demangled};
use symbols::elf::Function;

/// From this number of functions on, a table of all names is made.
const MANY: usize = 8;

/// What symbols begin with before the first identifier, at most this many letters.
const NO_IDENTIFIER: usize = 4;

/// A function and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'e> {
    /// The function.
    pub function: &'e Function,
    /// Its name.
    pub name: String,
}

/// The functions that a text means, in the order of their names.
pub fn find<'e>(elf: &'e Elf, text: &str) -> Vec<Named<'e>> {
    let exact = elf.function(text);
    if !exact.is_empty() {
        return exact.iter().map(|function| Named { function, name: text.into() }).collect();
    }
    let candidates = candidates(elf, text);
    let whole =
        |(_, d): &&(&Function, Option<Demangled>)| d.as_ref().is_some_and(|d| d.plain == text || d.full == text);
    let mut found: Vec<_> = candidates.iter().filter(whole).cloned().collect();
    if found.is_empty() && is_pattern(text) {
        let matches = |name: &str| glob(text.as_bytes(), name.as_bytes());
        let any = |(f, d): &&(&Function, Option<Demangled>)| {
            matches(&f.name) || d.as_ref().is_some_and(|d| matches(&d.plain) || matches(&d.full))
        };
        found = candidates.iter().filter(any).cloned().collect();
    }
    let mut overloads = Overloads::of(elf, found.len());
    let name = |(function, d): (&'e Function, Option<Demangled>)| {
        let name = d.map_or_else(|| function.name.clone(), |d| overloads.name(function, d));
        Named { function, name }
    };
    let mut named: Vec<Named<'e>> = found.into_iter().map(name).collect();
    order::by(&mut named, |a, b| (&a.name, a.function.offset).cmp(&(&b.name, b.function.offset)));
    named
}

/// All names of functions, to find the nearest ones: demangled, without parameters.
pub fn all(elf: &Elf) -> impl Iterator<Item = String> {
    elf.functions().iter().map(|f| demangle::of(&f.name).map_or_else(|| f.name.clone(), |d| d.plain))
}

/// The functions that a text may mean: those whose symbols have its longest word, in which nothing is lost by mangling.
fn candidates<'e>(elf: &'e Elf, text: &str) -> Vec<(&'e Function, Option<Demangled>)> {
    let word = demangle::identifier(text);
    let may = |f: &&Function| word.is_none_or(|w| f.name.contains(w));
    elf.functions().iter().filter(may).map(|f| (f, demangle::of(&f.name))).collect()
}

/// Which names without parameters belong to several functions.
struct Overloads<'e> {
    elf: &'e Elf,
    /// Of all names: the parameters of the first function, and whether there are others. None: looked up one by one.
    all: Option<HashMap<String, (String, bool)>>,
}

impl<'e> Overloads<'e> {
    fn of(elf: &'e Elf, asked: usize) -> Overloads<'e> {
        let all = (asked > MANY).then(|| {
            let mut all: HashMap<String, (String, bool)> = HashMap::new();
            for d in elf.functions().iter().filter_map(|f| demangle::of(&f.name)) {
                let other = all.entry(d.plain).or_insert_with(|| (d.full.clone(), false));
                other.1 |= other.0 != d.full;
            }
            all
        });
        Overloads { elf, all }
    }

    /// What a function is called.
    fn name(&mut self, function: &Function, d: Demangled) -> String {
        if d.plain == d.full {
            return d.plain;
        }
        // Operators have no identifier, and mostly several kinds.
        if without_parameters(&function.name).len() <= NO_IDENTIFIER {
            return d.full;
        }
        let several = match &self.all {
            Some(all) => all.get(&d.plain).is_some_and(|o| o.1),
            None => self.neighbours(&function.name).any(|other| other.plain == d.plain && other.full != d.full),
        };
        if several { d.full } else { d.plain }
    }

    /// The functions whose symbols begin as this one does up to its own name: overloads are among them.
    fn neighbours(&self, symbol: &str) -> impl Iterator<Item = Demangled> {
        let start = without_parameters(symbol);
        // Functions that change nothing of their object have a letter more.
        let other = match start.strip_prefix("_ZNK") {
            Some(rest) => format!("_ZN{rest}"),
            None => start.replacen("_ZN", "_ZNK", 1),
        };
        [start.to_string(), other].into_iter().flat_map(|start| {
            let all = self.elf.functions();
            let from = all.partition_point(|f| f.name.as_str() < start.as_str());
            all[from..].iter().take_while(move |f| f.name.starts_with(&start)).filter_map(|f| demangle::of(&f.name))
        })
    }
}

/// The start of a symbol of C++ up to where something else follows its scopes and its name: template arguments, parameters.
fn without_parameters(symbol: &str) -> &str {
    let bytes = symbol.as_bytes();
    let mut at = bytes.iter().take_while(|b| matches!(b, b'_' | b'A'..=b'Z') || **b == b't').count().min(6);
    // Each identifier is its length and its letters.
    loop {
        let digits = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let Ok(len) = symbol[at..at + digits].parse::<usize>() else { return &symbol[..at] };
        match at.checked_add(digits + len).filter(|end| symbol.is_char_boundary(*end)) {
            Some(end) => at = end,
            None => return &symbol[..at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_symbols() {
        for (symbol, start) in [
            ("_ZN4acme6Widget4pokeEi", "_ZN4acme6Widget4poke"),
            ("_ZNK4acme6Widget4pokeEdl", "_ZNK4acme6Widget4poke"),
            ("_ZN4acme5twiceIiEET_S1_", "_ZN4acme5twice"),
            ("_Z4freei", "_Z4free"),
            ("_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZNSt6vector"),
            ("_Znwm", "_Z"),
            ("_ZN99aE", "_ZN"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(without_parameters(symbol), start);
        }
    }

    #[test]
    fn functions_of_this_program_are_found_by_their_demangled_names() {
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::read(&file).unwrap();
        let found = find(&elf, "engine::provider::names::without_parameters");
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!(one.name, "engine::provider::names::without_parameters");
        // The symbol itself keeps its name, and patterns of it have the demangled one.
        let symbol = &one.function.name;
        assert_eq!(find(&elf, symbol)[0].name, *symbol);
        assert_eq!(find(&elf, &format!("{}*", &symbol[..symbol.len() - 4]))[0].name, one.name);
        assert!(find(&elf, "*::names::without_param?ters").iter().any(|n| n.name == one.name));
        assert_eq!(find(&elf, "engine::provider::names::without"), []);
        assert_eq!(find(&elf, "main")[0].name, "main");
        assert!(all(&elf).any(|n| n == one.name));
    }
}
