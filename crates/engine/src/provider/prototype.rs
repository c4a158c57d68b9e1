//! The arguments of functions of programs: by their debug information, else the registers of the calling convention.

use super::location::Register;
use super::{ArgInfo, ArgLocation, ArgType, Encoding, word};
use symbols::dwarf::{Debug, Kind, Parameter, Prototype, TypeInfo, Where};
use symbols::elf::Function;

/// Arguments that registers pass.
const REGISTERS: u8 = 6;
/// The field names of captures.
const TAKEN: [&str; 4] = ["comm", "kstack", "ustack", "retval"];

/// The argument registers of the calling convention; which of them a function uses is not known.
pub fn registers(at_return: bool) -> Vec<ArgInfo> {
    if at_return {
        return vec![ArgInfo { name: "retval".into(), ty: word("long", 8, true), location: ArgLocation::Result }];
    }
    let arg = |i| ArgInfo { name: format!("arg{i}"), ty: word("long", 8, true), location: ArgLocation::Argument(i) };
    (0..REGISTERS).map(arg).collect()
}

/// Arguments, and what else each may be called in filters: `argN`, by its number.
pub type Arguments = (Vec<ArgInfo>, Vec<(String, String)>);

/// The arguments of functions that are one probe: the common ones if they all agree, else the registers.
pub fn of(debug: Option<&Debug<'_>>, functions: &[&Function], at_return: bool) -> Arguments {
    let known = |f: &&Function| debug?.prototype(f);
    let mut all = functions.iter().map(|f| arguments(&known(f)?, at_return));
    match all.next().flatten() {
        Some(first) if all.all(|other| other.as_ref() == Some(&first)) => first,
        _ => (registers(at_return), Vec::new()),
    }
}

/// The arguments of a prototype; none where nothing is known of where they are.
fn arguments(p: &Prototype, at_return: bool) -> Option<Arguments> {
    if at_return {
        let result = |ty| argument("retval", ty, ArgLocation::Result);
        return Some((p.returns.iter().map(result).collect(), Vec::new()));
    }
    let (mut args, mut aliases) = (Vec::new(), Vec::new());
    for (nth, parameter) in p.parameters.iter().enumerate() {
        let arg = argument(&name(nth, p), &parameter.ty, location(parameter));
        aliases.push((format!("arg{nth}"), arg.name.clone()));
        args.push(arg);
    }
    let is_found = |a: &ArgInfo| a.location != ArgLocation::Unknown;
    (args.is_empty() || args.iter().any(is_found)).then_some((args, aliases))
}

fn location(parameter: &Parameter) -> ArgLocation {
    match parameter.at {
        Where::Register(name) => Register::named(name).map_or(ArgLocation::Unknown, ArgLocation::Register),
        Where::Stack(offset) => ArgLocation::Memory { base: Some("rsp"), index: None, offset },
        Where::Nowhere => ArgLocation::Unknown,
    }
}

/// The name of a parameter in filters: its name, if it is one that can be written and that nothing else has; else its number.
fn name(nth: usize, of: &Prototype) -> String {
    let name = of.parameters[nth].name.as_str();
    let is_word =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let again = of.parameters.iter().filter(|p| p.name == name).count() > 1;
    let usable =
        is_word && !name.is_empty() && name.len() <= 64 && !again && !TAKEN.contains(&name) && number(name).is_none();
    if usable { name.into() } else { format!("arg{nth}") }
}

/// The number of `argN`.
fn number(name: &str) -> Option<usize> {
    name.strip_prefix("arg")?.parse().ok()
}

/// An argument; only of types that fit into a register or a word can a program find it.
fn argument(name: &str, ty: &TypeInfo, location: ArgLocation) -> ArgInfo {
    let (encoding, signed) = match ty.kind {
        Kind::Int { signed } => (Encoding::Int, signed),
        Kind::Pointer => (Encoding::Pointer, false),
        Kind::Text => (Encoding::Text, false),
        Kind::Float => (Encoding::Float, false),
        Kind::Aggregate | Kind::Other => (Encoding::Bytes, false),
    };
    let size = u32::try_from(ty.size).unwrap_or(0);
    let fits = matches!(encoding, Encoding::Int | Encoding::Pointer | Encoding::Text) && matches!(size, 1 | 2 | 4 | 8);
    let location = if fits { location } else { ArgLocation::Unknown };
    ArgInfo { name: name.into(), ty: ArgType { c: ty.name.clone(), size, signed, encoding }, location }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, at: Where) -> Parameter {
        let ty = TypeInfo { name: "int".into(), size: 4, kind: Kind::Int { signed: true } };
        Parameter { name: name.into(), ty, at }
    }

    #[test]
    fn parameters_have_names_of_their_own() {
        let names = ["n", "comm", "", "twice", "twice", "__x", "1x", "a b", "arg9", "where"];
        let parameters = names.iter().map(|n| parameter(n, Where::Register("rdi"))).collect();
        let p = Prototype { parameters, returns: None };
        let found: Vec<String> = arguments(&p, false).unwrap().0.into_iter().map(|a| a.name).collect();
        assert_eq!(found, ["n", "arg1", "arg2", "arg3", "arg4", "__x", "arg6", "arg7", "arg8", "where"]);
        assert_eq!(arguments(&p, true), Some((Vec::new(), Vec::new())));
    }

    #[test]
    fn what_cannot_be_found_is_left_out() {
        let p = Prototype {
            parameters: vec![parameter("a", Where::Nowhere), parameter("b", Where::Stack(8))],
            returns: None,
        };
        let (args, aliases) = arguments(&p, false).unwrap();
        let [a, b] = &args[..] else { panic!() };
        assert_eq!((&a.location, aliases[1].clone()), (&ArgLocation::Unknown, ("arg1".to_string(), "b".to_string())));
        let at = ArgLocation::Memory { base: Some("rsp"), index: None, offset: 8 };
        assert_eq!((b.name.as_str(), &b.location), ("b", &at));
        let p = Prototype { parameters: vec![parameter("a", Where::Nowhere)], returns: None };
        assert_eq!(arguments(&p, false), None);
        assert_eq!(registers(false).len(), 6);
        assert_eq!(registers(true)[0].name, "retval");
    }
}
