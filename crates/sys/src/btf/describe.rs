//! Types as C writes them, and the properties of their values.

use super::raw::{Kind, read_type, step, text_is, word};
use super::{Btf, DEPTH, ENUMERATOR, ENUMERATOR64, MEMBER};

/// What a type is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// As C writes it: `struct task_struct *`, `unsigned int`.
    pub c: String,
    /// Bytes; 0 where it has no size (`void`).
    pub size: u32,
    /// A signed integer.
    pub signed: bool,
    /// A pointer.
    pub pointer: bool,
    /// A pointer to `char`, which usually is a string.
    pub string: bool,
    /// Neither a number nor a pointer: passed in memory, or in several registers.
    pub aggregate: bool,
}

/// A member of a structure, with those of structures in it that have no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its type.
    pub id: u32,
    /// Bits from the start of the outermost structure.
    pub bit: u32,
    /// Of a bit field, how many bits; else 0.
    pub width: u32,
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing.
    Void,
    /// An integer of this many bytes, signed; enumerations are integers too, and `char` is signed.
    Int(u32, bool),
    /// An address of a type.
    Pointer(u32),
    /// This many of a type.
    Array(u32, u32),
    /// A structure or union; its name, or that of the typedef which leads to it, is empty where it has none.
    Struct(String),
    /// Something else: a function, a floating-point number.
    Other,
}

impl<D: AsRef<[u8]>> Btf<D> {
    /// What a type is made of.
    pub fn shape(&self, id: u32) -> Shape {
        let (mut at, mut named) = (id, String::new());
        for _ in 0..DEPTH {
            let Some(t) = self.get(at) else { return Shape::Void };
            match t.kind {
                Kind::Typedef => {
                    named = self.name(at);
                    at = t.value;
                }
                Kind::Volatile | Kind::Const | Kind::Restrict | Kind::TypeTag => at = t.value,
                Kind::Int => {
                    let signed = word(self.types(), t.extra).is_some_and(|w| w >> 24 & 1 != 0);
                    // The kernel is built with unsigned characters; C's are signed here.
                    return Shape::Int(t.value, signed || self.name(at) == "char");
                }
                Kind::Enum | Kind::Enum64 => return Shape::Int(t.value, t.flag),
                Kind::Ptr => return Shape::Pointer(t.value),
                Kind::Array => {
                    let of = |n| word(self.types(), t.extra + n).unwrap_or(0);
                    return Shape::Array(of(0), of(8));
                }
                Kind::Struct | Kind::Union => {
                    let own = self.name(at);
                    return Shape::Struct(if own.is_empty() { named } else { own });
                }
                Kind::Fwd => return Shape::Struct(self.name(at)),
                _ => return Shape::Other,
            }
        }
        Shape::Other
    }

    /// All members of a structure or union; those of members without a name are among them.
    pub fn parts(&self, id: u32) -> Vec<Part> {
        let (mut all, mut budget) = (Vec::new(), super::BUDGET);
        self.add_parts(id, 0, DEPTH, &mut budget, &mut all);
        all
    }

    fn add_parts(&self, id: u32, from: u32, depth: usize, budget: &mut u32, all: &mut Vec<Part>) {
        let Some(t) = self.stripped(id).filter(|t| matches!(t.kind, Kind::Struct | Kind::Union)) else { return };
        for i in 0..t.count {
            let (Some(left), Some(depth)) = (budget.checked_sub(1), depth.checked_sub(1)) else { return };
            *budget = left;
            let at = t.extra + i * MEMBER;
            let of = |n| word(self.types(), at + n);
            let (Some(name), Some(id), Some(offset)) = (of(0), of(4), of(8)) else { return };
            let (offset, width) = if t.flag { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
            let Some(bit) = from.checked_add(offset) else { return };
            let name = String::from_utf8_lossy(self.text(name)).into_owned();
            if name.is_empty() {
                self.add_parts(id, bit, depth, budget, all);
            } else {
                all.push(Part { name, id, bit, width });
            }
        }
    }

    /// Describes a type.
    pub fn describe(&self, id: u32) -> Described {
        let mut d = Described { c: self.c_name(id, DEPTH), size: self.size(id).unwrap_or(0), ..Described::default() };
        let Some(t) = self.stripped(id) else { return d };
        match t.kind {
            // Bits 24 to 27 of the word: 1 signed, 2 char, 4 bool.
            Kind::Int => d.signed = word(self.types(), t.extra).is_some_and(|w| w >> 24 & 1 != 0),
            Kind::Enum | Kind::Enum64 => d.signed = t.flag,
            Kind::Ptr => {
                d.pointer = true;
                d.string =
                    self.strip(t.value).is_some_and(|to| self.kind(to) == Some(Kind::Int) && self.name(to) == "char");
            }
            _ => d.aggregate = true,
        }
        d
    }

    /// Names and types of a structure's members, with their offsets in bytes; without bit fields and nameless ones.
    pub fn members(&self, id: u32) -> Vec<(String, u32, u32)> {
        let Some(t) = self.stripped(id).filter(|t| matches!(t.kind, Kind::Struct | Kind::Union)) else {
            return Vec::new();
        };
        let member = |i| {
            let at = t.extra + i * MEMBER;
            let (name, id, bits) = (word(self.types(), at)?, word(self.types(), at + 4)?, word(self.types(), at + 8)?);
            let plain = !t.flag || bits >> 24 == 0;
            let name = String::from_utf8_lossy(self.text(name)).into_owned();
            (plain && !name.is_empty()).then_some((name, id, (bits & 0xff_ffff) / 8))
        };
        (0..t.count).filter_map(member).collect()
    }

    /// The values that a name has in enumerations, with the names of these, which may be empty.
    pub fn enumerators(&self, name: &str) -> Vec<(String, i64)> {
        let (types, strings) = (self.types(), self.strings());
        let (mut all, mut at) = (Vec::new(), 0);
        while let Ok((kind, _, next)) = step(types, at) {
            let wide = kind == Kind::Enum64 as u8;
            if wide || kind == Kind::Enum as u8 {
                let Ok(t) = read_type(types, at) else { break };
                let size = if wide { ENUMERATOR64 } else { ENUMERATOR };
                for entry in (0..t.count).map(|i| t.extra + i * size) {
                    let of = |n| word(types, entry + n);
                    let (Some(text), Some(low)) = (of(0), of(4)) else { break };
                    if !text_is(strings, text as usize, name.as_bytes()) {
                        continue;
                    }
                    let value = match (wide, of(8)) {
                        (true, Some(high)) => (u64::from(high) << 32 | u64::from(low)) as i64,
                        _ if t.flag => (low as i32).into(),
                        _ => low.into(),
                    };
                    all.push((String::from_utf8_lossy(self.text(t.name)).into_owned(), value));
                }
            }
            at = next;
        }
        all
    }

    fn c_name(&self, id: u32, depth: usize) -> String {
        use Kind::*;
        let Some(t) = self.get(id) else { return "void".into() };
        let Some(depth) = depth.checked_sub(1) else { return "...".into() };
        let (name, inner) = (|| self.name(id), || self.c_name(t.value, depth));
        let tagged = |tag: &str| format!("{tag} {}", if name().is_empty() { "{...}".into() } else { name() });
        match t.kind {
            Struct => tagged("struct"),
            Union => tagged("union"),
            Enum | Enum64 => tagged("enum"),
            Fwd => tagged(if t.flag { "union" } else { "struct" }),
            Const => match self.get(t.value).map(|t| t.kind) {
                Some(Ptr) => format!("{}const", inner()),
                _ => format!("const {}", inner()),
            },
            Volatile => format!("volatile {}", inner()),
            Restrict | TypeTag => inner(),
            Array => {
                let at = |n| word(self.types(), t.extra + n).unwrap_or(0);
                format!("{}[{}]", self.c_name(at(0), depth), at(8))
            }
            Ptr => match self.stripped(t.value).map(|t| t.kind) {
                Some(FuncProto) if self.kind(t.value) != Some(Typedef) => "void (*)()".into(),
                _ => {
                    let to = inner();
                    format!("{to}{}*", if to.ends_with('*') { "" } else { " " })
                }
            },
            _ => name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::*;

    #[test]
    fn types_are_written_as_in_c() {
        let mut b = Builder::new();
        let int = b.int("int", 4, true);
        let char = b.int("char", 1, true);
        let text = b.pointer(char);
        let list = b.pointer(text);
        let many = b.array(int, int, 4);
        let thing = b.structure("thing", 24, &[("n", int, 0), ("text", text, 8), ("", int, 16)]);
        let to_thing = b.pointer(thing);
        let nothing = b.pointer(0);
        b.function("look_at", int, &[("thing", to_thing)]);
        let btf = Btf::parse(b.finish()).unwrap();
        let c = |id| btf.describe(id).c;
        assert_eq!([c(int), c(text), c(list), c(many)], ["int", "char *", "char **", "int[4]"]);
        assert_eq!([c(thing), c(to_thing), c(nothing), c(0)], ["struct thing", "struct thing *", "void *", "void"]);
        let d = btf.describe(int);
        assert!(d.signed && d.size == 4 && !d.pointer && !d.aggregate);
        assert!(btf.describe(text).string && !btf.describe(list).string && btf.describe(thing).aggregate);
        let part = |name: &str, id, bit| Part { name: name.into(), id, bit, width: 0 };
        assert_eq!(btf.parts(thing), [part("n", int, 0), part("text", text, 64)]);
        let shapes = [Shape::Int(4, true), Shape::Pointer(char), Shape::Array(int, 4), Shape::Struct("thing".into())];
        assert_eq!([int, text, many, thing].map(|id| btf.shape(id)), shapes);
        assert_eq!(btf.members(thing), [("n".into(), int, 0), ("text".into(), text, 8)]);
        let names: Vec<&str> = btf.all(Kind::Func).map(|f| f.1).collect();
        assert_eq!(names, ["look_at"]);
    }

    #[test]
    fn a_type_of_itself_ends() {
        let mut b = Builder::new();
        b.pointer(1);
        let btf = Btf::parse(b.finish()).unwrap();
        assert!(btf.describe(1).c.len() < 200);
        assert_eq!(btf.describe(99), Described { c: "void".into(), ..Described::default() });
    }
}
