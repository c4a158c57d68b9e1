//! How functions are called in text: `f()`, `ns::g(int)`.

use super::by_function::ByFunction;
use super::{Functions, pattern};
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

/// The name of a function, escaped; `[function 7]` where it has none.
pub fn plain(function: u32, functions: &dyn Functions) -> String {
    match functions.name(function) {
        Some(n) if !n.is_empty() => name::visible(n).into_owned(),
        _ => format!("[function {function}]"),
    }
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
    if pattern::without_parameters(name).len() < name.len() { name.to_owned() } else { format!("{name}()") }
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
    }
}
