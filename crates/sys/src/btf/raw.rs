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

impl Type {
    fn extra_len(&self) -> usize {
        use Kind::*;
        match self.kind {
            Int | Var | DeclTag => 4,
            Array => 12,
            Struct | Union | DataSec | Enum64 => self.count * 12,
            Enum | FuncProto => self.count * 8,
            Ptr | Fwd | Typedef | Volatile | Const | Restrict | Func | Float | TypeTag => 0,
        }
    }
}

pub(super) fn starts(types: &[u8]) -> Result<Vec<u32>, BtfError> {
    // The kernel's types take 29 bytes on average (6.18).
    let mut starts = Vec::with_capacity(types.len() / 28);
    let mut at = 0;
    while at < types.len() {
        let t = read_type(types, at)?;
        starts.push(at as u32);
        at = t.extra + t.extra_len();
    }
    if at == types.len() { Ok(starts) } else { Err(BtfError::Truncated) }
}
