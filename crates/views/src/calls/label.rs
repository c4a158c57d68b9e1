//! How functions are called in text: `f()`, `ns::g(int)`.

use super::Functions;
use super::by_function::ByFunction;
use crate::profile::name;
use std::rc::Rc;

/// Names that were asked for before, escaped for a terminal.
#[derive(Debug, Default)]
pub struct Labels {
    calls: ByFunction<Option<Rc<str>>>,
    names: ByFunction<Option<Rc<str>>>,
    modules: ByFunction<Option<Rc<str>>>,
}

impl Labels {
    /// A function with its parentheses.
    pub fn call(&mut self, function: u32, functions: &dyn Functions) -> Rc<str> {
        self.calls.of(function).get_or_insert_with(|| call(&plain(function, functions)).into()).clone()
    }

    /// A function without parentheses that are not in its name.
    pub fn name(&mut self, function: u32, functions: &dyn Functions) -> Rc<str> {
        self.names.of(function).get_or_insert_with(|| plain(function, functions).into()).clone()
    }

    /// The last part of the path of the file that contains a function.
    pub fn module(&mut self, function: u32, functions: &dyn Functions) -> Rc<str> {
        self.modules.of(function).get_or_insert_with(|| module(function, functions).into()).clone()
    }
}

/// The most characters of a name that are shown.
const LONGEST: usize = 4096;

/// The name of a function, escaped; `[function 7]` where it has none.
pub fn plain(function: u32, functions: &dyn Functions) -> String {
    match functions.name(function) {
        Some(n) if !n.is_empty() => bounded(n),
        _ => format!("[function {function}]"),
    }
}

/// A name, escaped, of which a very long one is cut.
pub fn bounded(name: &str) -> String {
    name::shortened(&name::visible(name), LONGEST).into_owned()
}

/// The file that contains a function, without its directories, escaped; `-` where it is not known.
pub fn module(function: u32, functions: &dyn Functions) -> String {
    match name::base(functions.module(function)) {
        "" => "-".to_owned(),
        path => name::visible(path).into_owned(),
    }
}

/// A name with parentheses: its own parameters, or empty ones.
fn call(name: &str) -> String {
    if has_parameters(name) { name.to_owned() } else { format!("{name}()") }
}

/// Whether parameters are at the end of a name, where only qualifiers or what a compiler has added follow.
fn has_parameters(name: &str) -> bool {
    let Some((before, after)) = name.rsplit_once(')') else { return false };
    let is_name = before.ends_with("operator(") || before.ends_with("(anonymous namespace");
    !is_name && (after.is_empty() || after.starts_with([' ', '.', '&']) && !after.contains(['>', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_not_given_twice() {
        assert_eq!(call("main"), "main()");
        assert_eq!(call("ns::f(int) const"), "ns::f(int) const");
        assert_eq!(call("(anonymous namespace)::f"), "(anonymous namespace)::f()");
        assert_eq!(call("<T as Trait>::f"), "<T as Trait>::f()");
        assert_eq!(call("f<void (&)(int)>::g"), "f<void (&)(int)>::g()");
        assert_eq!(call("A::operator()"), "A::operator()()");
        assert_eq!(call("A::operator()()"), "A::operator()()");
        assert_eq!(call("f(int) &&"), "f(int) &&");
        assert_eq!(call("f(int).cold"), "f(int).cold");
        assert_eq!(call("g(int)::{lambda(char)#1}::operator()"), "g(int)::{lambda(char)#1}::operator()()");
    }
}
