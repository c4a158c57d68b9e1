//! Names of C++ and Rust functions as their sources write them.
//!
//! ```text
//!  _ZN4acme6Widget4pokeEi ──► plain acme::Widget::poke, full acme::Widget::poke(int)
//!  _ZN2ru7compute17h626c423f24a92086E ──► plain and full ru::compute
//! ```
//!
//! A mangled name may encode a text of any length, so whatever is longer than [`MAX`] stays as it is. What a compiler
//! has split off a function keeps its suffix: `acme::Widget::poke.cold`.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use std::fmt::{self, Write};

/// The longest demangled name, bytes.
pub const MAX: usize = 4096;
/// How deep names nest that are demangled.
const DEPTH: u32 = 96;

/// A name of C++ or Rust.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demangled {
    /// Without parameters, without the type that it returns, without tags of its ABI.
    pub plain: String,
    /// With parameters, which distinguish overloaded functions. Of Rust: equal to `plain`.
    pub full: String,
}

/// Whether a symbol may be a mangled name.
pub fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_Z") || symbol.starts_with("_R")
}

/// The name that a symbol encodes; `None` where it is not a mangled name, or the name is too long.
pub fn of(symbol: &str) -> Option<Demangled> {
    if !is_mangled(symbol) {
        return None;
    }
    rust(symbol).or_else(|| cpp(symbol))
}

fn rust(symbol: &str) -> Option<Demangled> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut text = Bounded::default();
    // `#` leaves out the hash.
    write!(text, "{name:#}").ok()?;
    Some(Demangled { plain: text.0.clone(), full: text.0 })
}

fn cpp(symbol: &str) -> Option<Demangled> {
    let (base, suffix) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let options = ParseOptions::default().recursion_limit(DEPTH);
    let (parsed, rest) = BorrowedSymbol::with_tail_and_options(base.as_bytes(), &options).ok()?;
    if !rest.is_empty() {
        return None;
    }
    // ThinLTO renames functions so; they are the ones of the source.
    let suffix = if suffix.starts_with(".llvm.") { "" } else { suffix };
    let text = |options: &DemangleOptions| {
        let mut text = Bounded::default();
        parsed.structured_demangle(&mut text, options).ok()?;
        text.write_str(suffix).ok()?;
        Some(text.0)
    };
    let full = DemangleOptions::new().no_return_type().recursion_limit(DEPTH);
    let plain = DemangleOptions::new().no_return_type().no_params().recursion_limit(DEPTH);
    Some(Demangled { plain: without_tags(text(&plain)?), full: text(&full)? })
}

/// A name without `[abi:cxx11]` and its like, which no source has.
fn without_tags(mut name: String) -> String {
    while let Some(from) = name.find("[abi:") {
        let Some(len) = name[from..].find(']') else { break };
        name.replace_range(from..=from + len, "");
    }
    name
}

/// Text of at most [`MAX`] bytes.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.0.len() + s.len() > MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(s);
        Ok(())
    }
}

/// The suffixes with which compilers mark functions that do not take the arguments in the source: parts split off, and copies made for
/// certain arguments (GCC's `ipa-sra`, `ipa-cp`, `ipa-split`, hot and cold parts).
const CHANGED: [&str; 4] = [".isra.", ".constprop.", ".part.", ".cold"];

/// Whether the function of this symbol takes other arguments than those in its source.
pub fn is_changed(symbol: &str) -> bool {
    CHANGED.iter().any(|c| symbol.contains(c))
}

/// The longest run of a name's letters and digits in a text that must stand in the mangled names of everything that the text, which
/// may have `*` and `?`, can name: compilers write each identifier out where it first occurs. None where there is no such run.
pub fn identifier(text: &str) -> Option<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let usable = words.filter(|w| w.len() > 2 && !WITHOUT_IDENTIFIER.contains(w) && w.parse::<u64>().is_err());
    usable.max_by_key(|w| w.len())
}

/// Words of demangled names that are abbreviated in mangled ones, or are not identifiers.
#[rustfmt::skip]
const WITHOUT_IDENTIFIER: &[&str] = &[
    // Itanium C++ ABI 5.1: types, substitutions, operators, special names.
    "__float128", "__int128", "abi", "allocator", "anonymous", "arg", "auto", "basic_iostream", "basic_istream",
    "basic_ostream", "basic_string", "bool", "char", "char16_t", "char32_t", "char8_t", "char_traits", "complex", "const",
    "decimal128", "decimal32", "decimal64", "decltype", "default", "delete", "double", "false", "float", "for", "function",
    "guard", "half", "imaginary", "init", "int", "iostream", "istream", "lambda", "long", "namespace", "new", "noexcept",
    "nullptr_t", "offset", "operator", "ostream", "override", "reference", "restrict", "short", "signed", "sizeof", "std",
    "string", "temporary", "thunk", "TLS", "true", "type", "typeinfo", "unnamed", "unsigned", "variable", "virtual", "void",
    "volatile", "vtable", "wchar_t",
    // Rust's v0 mangling: basic types, namespaces.
    "clone", "closure", "dyn", "enum", "extern", "f16", "f32", "f64", "f128", "i16", "i32", "i64", "i128", "impl", "isize",
    "mut", "shim", "str", "u16", "u32", "u64", "u128", "unsafe", "usize",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(symbol: &str, plain: &str, full: &str) {
        let want = Demangled { plain: plain.into(), full: full.into() };
        assert_eq!(of(symbol), Some(want), "{symbol}");
    }

    #[test]
    fn names_are_those_of_the_source() {
        is("_ZN4acme6Widget4pokeEi", "acme::Widget::poke", "acme::Widget::poke(int)");
        is("_ZNK4acme6Widget3getEv", "acme::Widget::get", "acme::Widget::get() const");
        is("_ZN4acme1fIiEEvT_", "acme::f<int>", "acme::f<int>(int)");
        is("_ZN12_GLOBAL__N_14hideEv", "(anonymous namespace)::hide", "(anonymous namespace)::hide()");
        is("_ZN4acme6Widget4nameB5cxx11Eb", "acme::Widget::name", "acme::Widget::name[abi:cxx11](bool)");
        is("_Znwm", "operator new", "operator new(unsigned long)");
        is("_ZN2ru7compute17h626c423f24a92086E", "ru::compute", "ru::compute");
        is("_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo");
        for plain in ["main", "_start", "_Zebra", "_R", "_Z", "", "_ZN", "Z4pokei"] {
            assert_eq!(of(plain), None, "{plain}");
        }
    }

    #[test]
    fn parts_of_functions_are_told_from_them() {
        is("_ZN4acme6Widget4pokeEi.cold", "acme::Widget::poke.cold", "acme::Widget::poke(int).cold");
        is("_ZN4acme6Widget4pokeEi.llvm.123", "acme::Widget::poke", "acme::Widget::poke(int)");
        is("_ZN2ru7compute17h626c423f24a92086E.llvm.77", "ru::compute", "ru::compute");
        assert!(is_changed("compute.constprop.0") && is_changed("_Z1fi.isra.0.cold") && !is_changed("compute.local"));
    }

    /// Each substitution doubles the text of the one before.
    #[test]
    fn a_name_that_stands_for_gigabytes_stays_as_it_is() {
        let mut symbol = String::from("_Z1fI1aE1bIS_S_E");
        for i in 1..40 {
            let to = char::from_digit(i % 36, 36).unwrap().to_ascii_uppercase();
            symbol.push_str(&format!("1bIS{to}_S{to}_E"));
        }
        assert!(of(&symbol).is_none_or(|d| d.full.len() <= MAX));
        let deep = format!("_Z1f{}i", "P".repeat(100_000));
        assert!(of(&deep).is_none_or(|d| d.full.len() <= MAX));
        let nested = format!("_RNvC1a{}", "NvC1a".repeat(10_000));
        let _ = of(&nested);
        assert!(of(&format!("_R{}", "INvC1a1b".repeat(5_000))).is_none());
    }

    /// What a text names has the identifier in its mangled name.
    #[test]
    fn identifiers_stand_in_mangled_names() {
        assert_eq!(identifier("acme::Widget::po*"), Some("Widget"));
        assert_eq!(identifier("std::string::operator*"), None);
        assert_eq!(identifier("*"), None);
        for symbol in ["_ZN4acme6Widget4pokeEi", "_ZN2ru7compute17h626c423f24a92086E", "_RNCNvC4main4main0B3_"] {
            let name = of(symbol).unwrap();
            let found = identifier(&name.full).unwrap();
            assert!(symbol.contains(found), "{symbol}: {found}");
        }
    }
}
