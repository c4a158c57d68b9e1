//! The constants that a filter may name: flags, enumerations, errors, signals.
//!
//! ```text
//! the table of the other operand's type ─► errors ─► signals ─► a few of C's ─► every table, if all agree on the value
//! ```

use events::generated::SCHEMAS;
use events::generated::errno::ERRNO;
use events::generated::flags::T_SIGNAL;
use events::types::{Fmt, Int, Mem, Struct, Table, Type};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What an operand's type determines about the names next to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Beside {
    pub table: &'static Table,
    pub int: Int,
}

impl Beside {
    /// Of an argument's type, if its values have names.
    pub fn of(ty: &Type) -> Option<Beside> {
        let Type::Int(int) = ty else { return None };
        let table = table_of(int.fmt)?;
        Some(Beside { table, int: *int })
    }
}

fn table_of(fmt: Fmt) -> Option<&'static Table> {
    match fmt {
        Fmt::Flags(t) | Fmt::Enum(t) => Some(t),
        Fmt::Signal => Some(&T_SIGNAL),
        _ => None,
    }
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Value(i64),
    /// Several tables have it with different values.
    Ambiguous(Vec<(&'static str, i64)>),
    None,
}

/// Names of C that no table has (include/uapi/linux/fcntl.h for the first).
const OTHERS: &[(&str, i64)] = &[("AT_FDCWD", -100), ("NULL", 0)];

/// Looks a constant up.
pub(crate) fn constant(name: &str, beside: Option<Beside>) -> Found {
    if let Some(b) = beside
        && let Some(e) = b.table.entries().find(|e| e.name == name)
    {
        return Found::Value(b.int.fit(e.value) as i64);
    }
    if let Some(e) = ERRNO.iter().find(|e| e.1 == name) {
        return Found::Value(e.0.into());
    }
    if let Some(e) = T_SIGNAL.entries().find(|e| e.name == name) {
        return Found::Value(e.value as i64);
    }
    if let Some(e) = OTHERS.iter().find(|e| e.0 == name) {
        return Found::Value(e.1);
    }
    agreed(TABLES.get(name).map(Vec::as_slice).unwrap_or_default())
}

/// The value that all tables give. The kernel's headers have few names twice, and none of the present tables disagree.
fn agreed(values: &[(&'static str, i64)]) -> Found {
    match values {
        [] => Found::None,
        [first, rest @ ..] if rest.iter().all(|r| r.1 == first.1) => Found::Value(first.1),
        several => Found::Ambiguous(several.to_vec()),
    }
}

/// Every name that [`constant`] knows, those of `beside` first.
pub(crate) fn all(beside: Option<Beside>) -> impl Iterator<Item = &'static str> {
    let entries = beside.into_iter().flat_map(|b| b.table.entries());
    let first = entries.chain(T_SIGNAL.entries()).map(|e| e.name);
    first.chain(ERRNO.iter().map(|e| e.1)).chain(OTHERS.iter().map(|e| e.0)).chain(TABLES.keys().copied())
}

type Values = BTreeMap<&'static str, Vec<(&'static str, i64)>>;

/// By name: the tables that have it, and its value there. All tables that a type of some schema leads to.
static TABLES: LazyLock<Values> = LazyLock::new(|| {
    let mut tables = BTreeMap::new();
    for schema in SCHEMAS {
        schema.args.iter().for_each(|a| of_type(&a.ty, &mut tables));
        if let events::schema::Ret::Int(i) = schema.ret {
            of_int(i, &mut tables);
        }
    }
    let mut values = Values::new();
    for table in tables.values() {
        for e in table.entries() {
            values.entry(e.name).or_default().push((table.name, e.value as i64));
        }
    }
    values
});

type Tables = BTreeMap<&'static str, &'static Table>;

fn of_int(int: Int, tables: &mut Tables) {
    if let Some(t) = table_of(int.fmt) {
        tables.insert(t.name, t);
    }
}

fn of_mem(mem: &Mem, tables: &mut Tables) {
    match mem {
        Mem::Int(i) => of_int(*i, tables),
        Mem::Struct(s) => of_struct(s, tables),
        Mem::Array(e, _) => of_mem(e, tables),
        _ => {}
    }
}

fn of_struct(s: &Struct, tables: &mut Tables) {
    s.fields.iter().for_each(|f| of_mem(&f.mem, tables));
}

fn of_type(ty: &Type, tables: &mut Tables) {
    match ty {
        Type::Int(i) => of_int(*i, tables),
        Type::Ptr { elem, .. } => of_mem(elem, tables),
        // Rows of a switch hold no switches.
        Type::Switch { table, .. } => {
            for types in table.cases.iter().map(|c| &c.types).chain([&table.default]) {
                types.args.iter().flatten().for_each(|(ty, _)| of_row(ty, tables));
            }
        }
        _ => {}
    }
}

fn of_row(ty: &Type, tables: &mut Tables) {
    if !matches!(ty, Type::Switch { .. }) {
        of_type(ty, tables);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::generated::flags::T_OPEN;

    #[test]
    fn tables_that_disagree() {
        assert_eq!(agreed(&[]), Found::None);
        assert_eq!(agreed(&[("a", 1), ("b", 1)]), Found::Value(1));
        assert_eq!(agreed(&[("a", 1), ("b", 2)]), Found::Ambiguous(vec![("a", 1), ("b", 2)]));
    }

    #[test]
    fn found_where_they_should_be() {
        for (name, value) in [("ENOENT", 2), ("SIGKILL", 9), ("O_CREAT", 0x40), ("AT_FDCWD", -100), ("PROT_EXEC", 4)] {
            assert_eq!(constant(name, None), Found::Value(value), "{name}");
        }
        assert_eq!(constant("O_CREATE", None), Found::None);
        let int = Int { size: 4, signed: false, fmt: Fmt::Flags(&T_OPEN) };
        let beside = Beside::of(&Type::Int(int));
        assert_eq!(constant("O_ACCMODE", beside), Found::Value(3));
        assert!(TABLES.len() > 1000, "{} names", TABLES.len());
    }
}
