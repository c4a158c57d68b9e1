//! The entries of BTF as they lie in the bytes: reading one, and finding where each starts.
//!
//! Every access is checked; nothing here follows a reference.

use std::fmt;

/// Kinds of types (`include/uapi/linux/btf.h`), up to those of Linux 6.18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Int = 1,
    Ptr,
    Array,
    Struct,
    Union,
    Enum,
    Fwd,
    Typedef,
    Volatile,
    Const,
    Restrict,
    Func,
    FuncProto,
    Var,
    DataSec,
    Float,
    DeclTag,
    TypeTag,
    Enum64,
}

const KINDS: [Kind; 19] = {
    use Kind::*;
    [
        Int, Ptr, Array, Struct, Union, Enum, Fwd, Typedef, Volatile, Const, Restrict, Func, FuncProto, Var, DataSec,
        Float, DeclTag, TypeTag, Enum64,
    ]
};

/// Bytes of `struct btf_type`.
const TYPE: usize = 12;

/// Why bytes are not BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtfError {
    /// Not BTF of this machine's byte order, or another version.
    Magic,
    /// A section is outside the bytes, or a type outside its section.
    Truncated,
    /// A type of a kind that is not known, and so of unknown length.
    UnknownKind(u8),
}

impl fmt::Display for BtfError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            BtfError::Magic => f.write_str("not BTF"),
            BtfError::Truncated => f.write_str("BTF is cut off"),
            BtfError::UnknownKind(k) => write!(f, "BTF has a type of unknown kind {k}"),
        }
    }
}

impl std::error::Error for BtfError {}

/// One entry of the type section.
#[derive(Clone, Copy)]
pub(super) struct Type {
    pub name: u32,
    pub kind: Kind,
    /// Members, parameters, values.
    pub count: usize,
    /// A structure's member offsets hold widths too.
    pub flag: bool,
    /// Size or type, by kind.
    pub value: u32,
    /// Where the extra data starts in the type section.
    pub extra: usize,
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let b = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*b))
}

pub(super) fn text_is(strings: &[u8], at: usize, text: &[u8]) -> bool {
    let Some(rest) = strings.get(at..) else { return false };
    rest.starts_with(text) && rest.get(text.len()) == Some(&0)
}

pub(super) fn read_type(types: &[u8], at: usize) -> Result<Type, BtfError> {
    let get = |at| word(types, at).ok_or(BtfError::Truncated);
    let (name, info, value) = (get(at)?, get(at + 4)?, get(at + 8)?);
    let raw = (info >> 24 & 0x1f) as u8;
    let kind = *KINDS.get((raw as usize).wrapping_sub(1)).ok_or(BtfError::UnknownKind(raw))?;
    let (count, flag) = ((info & 0xffff) as usize, info >> 31 != 0);
    Ok(Type { name, kind, count, flag, value, extra: at + TYPE })
}

/// Bytes after a type's header, by kind: always, and for each member, parameter or value.
const EXTRA: [(u8, u8); KINDS.len() + 1] = {
    use Kind::*;
    let mut all = [(0, 0); KINDS.len() + 1];
    let mut i = 0;
    while i < KINDS.len() {
        all[i + 1] = match KINDS[i] {
            Int | Var | DeclTag => (4, 0),
            Array => (12, 0),
            Struct | Union | DataSec | Enum64 => (0, 12),
            Enum | FuncProto => (0, 8),
            Ptr | Fwd | Typedef | Volatile | Const | Restrict | Func | Float | TypeTag => (0, 0),
        };
        i += 1;
    }
    all
};

/// Kind and name of the type at `at`, and where the next one starts.
pub(super) fn step(types: &[u8], at: usize) -> Result<(u8, u32, usize), BtfError> {
    let head: &[u8; 8] = types.get(at..).and_then(|t| t.first_chunk()).ok_or(BtfError::Truncated)?;
    let [a, b, c, d, e, f, g, h] = *head;
    let (name, info) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
    let kind = (info >> 24 & 0x1f) as u8;
    match EXTRA.get(usize::from(kind)) {
        Some((fixed, each)) if kind > 0 => {
            let extra = usize::from(*fixed) + usize::from(*each) * (info & 0xffff) as usize;
            Ok((kind, name, at + TYPE + extra))
        }
        _ => Err(BtfError::UnknownKind(kind)),
    }
}
