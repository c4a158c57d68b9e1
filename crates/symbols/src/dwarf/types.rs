//! Types as the debug information has them: what C calls them, how wide they are, how their bytes are to be taken.

use super::{Debug, Die};
use gimli::{AttributeValue, DwTag, constants as c};

/// How deep types refer to types.
const DEPTH: usize = 16;
/// The longest name of a type that is made up.
const MAX_TEXT: usize = 256;

/// How the bytes of a value are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer, a truth value, an enumeration.
    Int {
        /// Its highest bit is a sign.
        signed: bool,
    },
    /// A floating-point number.
    Float,
    /// An address.
    Pointer,
    /// The address of a string that the function does not change: `const char *`.
    Text,
    /// A structure, an array, a slice.
    Aggregate,
    /// Not known.
    Other,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// As its language writes it.
    pub name: String,
    /// Bytes; 0: not known, or none.
    pub size: u64,
    /// How they are to be taken.
    pub kind: Kind,
}

impl<'f> Debug<'f> {
    /// The type that an entry has, described.
    pub(super) fn type_of(&self, die: &Die<'f>) -> Option<TypeInfo> {
        Some(self.describe(&self.referred(die, c::DW_AT_type)?))
    }

    /// Describes a type.
    pub(super) fn describe(&self, ty: &Die<'f>) -> TypeInfo {
        let base = self.strip(ty);
        TypeInfo { name: self.type_name(Some(ty), DEPTH), size: self.size(&base), kind: self.kind(&base) }
    }

    pub(super) fn tag(&self, die: &Die<'f>) -> Option<DwTag> {
        die.entry().map(|e| e.tag())
    }

    /// A type without its other names, and without const and volatile; where it has a unit of its own, that which is there.
    pub(super) fn strip(&self, ty: &Die<'f>) -> Die<'f> {
        let mut ty = ty.clone();
        for _ in 0..DEPTH {
            if let Some(whole) = self.whole(&ty) {
                ty = whole;
            }
            let through = matches!(
                self.tag(&ty),
                Some(
                    c::DW_TAG_typedef
                        | c::DW_TAG_const_type
                        | c::DW_TAG_volatile_type
                        | c::DW_TAG_restrict_type
                        | c::DW_TAG_atomic_type
                )
            );
            match self.referred(&ty, c::DW_AT_type) {
                Some(inner) if through => ty = inner,
                _ => break,
            }
        }
        ty
    }

    /// The full type of a declaration, which is elsewhere.
    fn whole(&self, ty: &Die<'f>) -> Option<Die<'f>> {
        let value = ty.entry()?.attr_value(c::DW_AT_signature)?;
        self.refer(&ty.found, &value)
    }

    /// Bytes of a type that is stripped.
    pub(super) fn size(&self, ty: &Die<'f>) -> u64 {
        let (mut ty, mut many) = (ty.clone(), 1u64);
        for _ in 0..DEPTH {
            let said = self.number(&ty, c::DW_AT_byte_size);
            let one = match self.tag(&ty) {
                Some(tag) if is_pointer(tag) => said.or(Some(8)),
                Some(c::DW_TAG_array_type) => said,
                _ => Some(said.unwrap_or(0)),
            };
            if let Some(one) = one {
                return one.saturating_mul(many);
            }
            let Some((element, n)) = self.array(&ty) else { return 0 };
            many = many.saturating_mul(n);
            ty = element;
        }
        0
    }

    /// The element of an array, and how many there are.
    pub(super) fn array(&self, ty: &Die<'f>) -> Option<(Die<'f>, u64)> {
        let element = self.strip(&self.referred(ty, c::DW_AT_type)?);
        let mut all = 1u64;
        for dimension in self.children(ty, 8) {
            let count = self.number(&dimension, c::DW_AT_count);
            let upper = || self.number(&dimension, c::DW_AT_upper_bound)?.checked_add(1);
            all = all.checked_mul(count.or_else(upper)?)?;
        }
        Some((element, all))
    }

    /// How the bytes of a type that is stripped are to be taken.
    pub(super) fn kind(&self, ty: &Die<'f>) -> Kind {
        let Some(tag) = self.tag(ty) else { return Kind::Other };
        match tag {
            c::DW_TAG_base_type => match self.encoding(ty) {
                Some(c::DW_ATE_signed | c::DW_ATE_signed_char | c::DW_ATE_signed_fixed) => Kind::Int { signed: true },
                Some(
                    c::DW_ATE_unsigned
                    | c::DW_ATE_unsigned_char
                    | c::DW_ATE_boolean
                    | c::DW_ATE_UTF
                    | c::DW_ATE_ASCII
                    | c::DW_ATE_UCS
                    | c::DW_ATE_address,
                ) => Kind::Int { signed: false },
                Some(c::DW_ATE_float | c::DW_ATE_complex_float | c::DW_ATE_imaginary_float) => Kind::Float,
                _ => Kind::Other,
            },
            c::DW_TAG_enumeration_type => Kind::Int { signed: self.enumeration_is_signed(ty) },
            _ if is_pointer(tag) => match self.points_to_text(ty) {
                true => Kind::Text,
                false => Kind::Pointer,
            },
            c::DW_TAG_structure_type
            | c::DW_TAG_class_type
            | c::DW_TAG_union_type
            | c::DW_TAG_array_type
            | c::DW_TAG_variant_part => Kind::Aggregate,
            _ => Kind::Other,
        }
    }

    pub(super) fn encoding(&self, ty: &Die<'f>) -> Option<gimli::DwAte> {
        match self.attribute(ty, c::DW_AT_encoding)?.0 {
            AttributeValue::Encoding(e) => Some(e),
            _ => None,
        }
    }

    /// The sign of the underlying type; else whether one of its values is negative.
    fn enumeration_is_signed(&self, ty: &Die<'f>) -> bool {
        if let Some(below) = self.referred(ty, c::DW_AT_type) {
            return matches!(self.encoding(&self.strip(&below)), Some(c::DW_ATE_signed | c::DW_ATE_signed_char));
        }
        let negative = |value: &Die<'f>| {
            let value = self.attribute(value, c::DW_AT_const_value).map(|v| v.0);
            matches!(value, Some(AttributeValue::Sdata(n)) if n < 0)
        };
        self.children(ty, 64).iter().any(negative)
    }

    /// Whether a pointer leads to characters that are constant: those that are not are room for some, more often than not.
    fn points_to_text(&self, ty: &Die<'f>) -> bool {
        if self.tag(ty) != Some(c::DW_TAG_pointer_type) {
            return false;
        }
        let mut constant = false;
        let mut to = self.referred(ty, c::DW_AT_type);
        for _ in 0..DEPTH {
            let Some(die) = to else { return false };
            match self.tag(&die) {
                Some(c::DW_TAG_const_type) => constant = true,
                Some(c::DW_TAG_typedef | c::DW_TAG_volatile_type) => {}
                Some(c::DW_TAG_base_type) => {
                    return constant && self.size(&die) == 1 && self.name(&die).as_deref() == Some("char");
                }
                _ => return false,
            }
            to = self.referred(&die, c::DW_AT_type);
        }
        false
    }

    /// A type as C and its relatives write it; none is `void`. Pointers of languages that name them have their names.
    fn type_name(&self, ty: Option<&Die<'f>>, depth: usize) -> String {
        let Some(ty) = ty else { return "void".into() };
        let Some(depth) = depth.checked_sub(1) else { return "...".into() };
        let whole = self.whole(ty);
        let ty = whole.as_ref().unwrap_or(ty);
        let inner = || self.type_name(self.referred(ty, c::DW_AT_type).as_ref(), depth);
        let name = || self.name(ty);
        let text = match self.tag(ty) {
            Some(c::DW_TAG_const_type) => {
                let inner = inner();
                // A pointer that is constant, and a pointer to what is.
                if inner.ends_with('*') { format!("{inner}const") } else { format!("const {inner}") }
            }
            Some(c::DW_TAG_volatile_type) => format!("volatile {}", inner()),
            Some(c::DW_TAG_restrict_type | c::DW_TAG_atomic_type) => inner(),
            Some(c::DW_TAG_pointer_type) => name().unwrap_or_else(|| pointer(&inner(), "*")),
            Some(c::DW_TAG_reference_type) => name().unwrap_or_else(|| pointer(&inner(), "&")),
            Some(c::DW_TAG_rvalue_reference_type) => name().unwrap_or_else(|| pointer(&inner(), "&&")),
            Some(c::DW_TAG_ptr_to_member_type) => "member pointer".into(),
            Some(c::DW_TAG_subroutine_type) => "void ()".into(),
            Some(c::DW_TAG_array_type) => {
                let n = self.array(ty).map_or(String::new(), |(_, n)| n.to_string());
                name().unwrap_or_else(|| format!("{}[{n}]", inner()))
            }
            Some(tag) => name().unwrap_or_else(|| nameless(tag).into()),
            None => "?".into(),
        };
        let tagged = self.is_c(ty).then(|| self.tag(ty).and_then(keyword)).flatten();
        let mut text = tagged.map_or(text.clone(), |keyword| format!("{keyword} {text}"));
        if text.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(end);
        }
        text
    }

    /// Whether a unit is of C, where structures have a word in front.
    fn is_c(&self, ty: &Die<'f>) -> bool {
        matches!(
            ty.found.language,
            Some(c::DW_LANG_C | c::DW_LANG_C89 | c::DW_LANG_C99 | c::DW_LANG_C11 | c::DW_LANG_C17)
        )
    }
}

pub(super) fn is_pointer(tag: DwTag) -> bool {
    matches!(tag, c::DW_TAG_pointer_type | c::DW_TAG_reference_type | c::DW_TAG_rvalue_reference_type)
}

fn pointer(to: &str, mark: &str) -> String {
    if to == "void ()" {
        return "void (*)()".into();
    }
    format!("{to}{}{mark}", if to.ends_with(['*', '&']) { "" } else { " " })
}

fn keyword(tag: DwTag) -> Option<&'static str> {
    match tag {
        c::DW_TAG_structure_type => Some("struct"),
        c::DW_TAG_union_type => Some("union"),
        c::DW_TAG_enumeration_type => Some("enum"),
        _ => None,
    }
}

fn nameless(tag: DwTag) -> &'static str {
    match tag {
        c::DW_TAG_structure_type | c::DW_TAG_union_type | c::DW_TAG_class_type | c::DW_TAG_enumeration_type => "{...}",
        c::DW_TAG_unspecified_type => "nullptr_t",
        _ => "?",
    }
}
