//! Which memory of calls is captured: all, no buffers, or no strings either (`--capture`). What is not captured cannot leak from a trace.

use crate::schema::Schema;
use crate::types::Type;

/// How much is captured, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Numbers and structs only: no path, no argument of a program, no data.
    None,
    /// Strings too: paths, names, arguments.
    Strings,
    /// Everything, the contents of buffers too.
    #[default]
    All,
}

impl Keep {
    /// Whether memory of this type is captured.
    pub fn has(self, ty: &Type) -> bool {
        self >= match ty {
            Type::Bytes(_)
            | Type::Msgbuf(_)
            | Type::Iov(_)
            | Type::Msghdr
            | Type::Mmsghdr(_)
            | Type::Dirents { .. } => Keep::All,
            Type::Str(_) | Type::Strv | Type::Envv => Keep::Strings,
            _ => Keep::None,
        }
    }

    /// By its name on the command line.
    pub fn parse(name: &str) -> Option<Keep> {
        Some(match name {
            "none" => Keep::None,
            "strings" => Keep::Strings,
            "all" => Keep::All,
            _ => return None,
        })
    }
}

/// How much is captured of each call. It lives as long as the process, so that copies are cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepByCall(Option<&'static [Keep]>);

impl KeepByCall {
    /// Everything of every call.
    pub const ALL: KeepByCall = KeepByCall(None);

    /// What `of` says of each call.
    pub fn new(of: impl Fn(&'static Schema) -> Keep) -> KeepByCall {
        let all: Vec<Keep> = crate::generated::SCHEMAS.iter().map(|s| of(s)).collect();
        KeepByCall(all.iter().any(|k| *k != Keep::All).then(|| &*all.leak()))
    }

    /// Of a call.
    pub fn of(self, schema: &Schema) -> Keep {
        self.0.and_then(|all| all.get(usize::from(schema.base))).copied().unwrap_or_default()
    }

    /// Whether everything is captured of every call.
    pub fn is_all(self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated as g;

    #[test]
    fn buffers_and_strings_are_kept_out() {
        let ty = |s: &Schema, name: &str| s.args.iter().find(|a| a.name == name).unwrap().ty;
        let (buf, path) = (ty(&g::C_READ, "buf"), ty(&g::C_OPENAT, "filename"));
        for (keep, buffer, string) in
            [(Keep::All, true, true), (Keep::Strings, false, true), (Keep::None, false, false)]
        {
            assert_eq!((keep.has(&buf), keep.has(&path)), (buffer, string), "{keep:?}");
            assert!(keep.has(&ty(&g::C_STAT, "statbuf")));
        }
        let some = KeepByCall::new(|s| if s.name == "read" { Keep::None } else { Keep::All });
        assert_eq!((some.of(&g::C_READ), some.of(&g::C_OPENAT), some.is_all()), (Keep::None, Keep::All, false));
        assert!(KeepByCall::new(|_| Keep::All).is_all());
    }
}
