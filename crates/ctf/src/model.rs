//! The contents of a trace's metadata: types, event classes, stream classes, clocks. Versions of the format differ in how they print
//! this, not in this.

/// Deepest nesting of types that is read.
pub const MAX_DEPTH: usize = 64;

/// Order of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// In which base an integer is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Base {
    /// 2.
    Binary,
    /// 8.
    Octal,
    /// 10.
    #[default]
    Decimal,
    /// 16.
    Hexadecimal,
}

/// The text encoding of an integer or string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Numbers.
    #[default]
    None,
    /// Text in UTF-8.
    Utf8,
    /// Text in ASCII.
    Ascii,
}

/// An integer of 1 to 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntType {
    /// Size in bits, 1 to 64.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    /// Two's complement.
    pub signed: bool,
    /// Order of its bytes.
    pub order: ByteOrder,
    /// How it is to be shown.
    pub base: Base,
    /// Whether arrays of it are text.
    pub encoding: Encoding,
    /// The clock whose value it is, by name.
    pub clock: Option<String>,
}

impl IntType {
    /// An unsigned little-endian integer of `size` bits, aligned to bytes.
    pub fn unsigned(size: u32) -> IntType {
        IntType {
            size,
            align: 8,
            signed: false,
            order: ByteOrder::Little,
            base: Base::Decimal,
            encoding: Encoding::None,
            clock: None,
        }
    }
    /// A signed little-endian integer of `size` bits, aligned to bytes.
    pub fn signed(size: u32) -> IntType {
        IntType { signed: true, ..IntType::unsigned(size) }
    }
    /// Sets its base to hexadecimal.
    pub fn hex(self) -> IntType {
        IntType { base: Base::Hexadecimal, ..self }
    }
    /// Sets its base to octal.
    pub fn octal(self) -> IntType {
        IntType { base: Base::Octal, ..self }
    }
}

/// A floating point number of IEEE 754: `exp + mant` is 32 or 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatType {
    /// Bits of the exponent.
    pub exp: u32,
    /// Bits of the significand, with its sign.
    pub mant: u32,
    /// Alignment in bits.
    pub align: u32,
    /// Order of its bytes.
    pub order: ByteOrder,
}

/// A label of an enumeration: all values from `first` to `last`, as the integer's 64 bits (sign-extended where it is signed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// First value.
    pub first: i128,
    /// Last value.
    pub last: i128,
}

/// Where a length or a tag is found: a path of field names. Its first element may be one of the scopes
/// `trace.packet.header`, `stream.packet.context`, `stream.event.header`, `stream.event.context`, `event.context`,
/// `event.fields`, written as its words; else it is searched from the inside out.
pub type Path = Vec<String>;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Integer.
    Int(IntType),
    /// Floating point number.
    Float(FloatType),
    /// Enumeration.
    Enum(IntType, Vec<Label>),
    /// Bytes up to a NUL.
    Str(Encoding),
    /// Fields, one after the other.
    Struct(StructType),
    /// This many elements.
    Array(Box<Type>, u64),
    /// As many elements as the value of the field at that path.
    Sequence(Box<Type>, Path),
    /// One of several types: the one whose name is the label of the enumeration at that path.
    Variant(Path, Vec<Field>),
}

/// A compound type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructType {
    /// The alignment that it asks for, in bits; that of its members may be larger.
    pub align: u32,
    /// Its fields in order.
    pub fields: Vec<Field>,
}

impl Default for StructType {
    fn default() -> StructType {
        StructType { align: 1, fields: Vec::new() }
    }
}

/// A named field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as a reader sees it: without the underscore that keeps it apart from a keyword.
    pub name: String,
    /// Type.
    pub ty: Type,
}

impl Type {
    /// Alignment in bits.
    pub fn align(&self) -> u32 {
        match self {
            Type::Int(i) | Type::Enum(i, _) => i.align,
            Type::Float(f) => f.align,
            Type::Str(_) => 8,
            Type::Struct(s) => s.align(),
            Type::Array(e, _) | Type::Sequence(e, _) => e.align(),
            Type::Variant(..) => 1,
        }
    }
}

impl StructType {
    /// Alignment in bits: its own or that of its most aligned member.
    pub fn align(&self) -> u32 {
        self.fields.iter().map(|f| f.ty.align()).fold(self.align.max(1), u32::max)
    }
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Name.
    pub name: String,
    /// Identity across traces.
    pub uuid: Option<[u8; 16]>,
    /// In words.
    pub description: String,
    /// Ticks per second.
    pub freq: u64,
    /// Error, in ticks.
    pub precision: u64,
    /// Whole seconds between the epoch and the clock's zero.
    pub offset_s: i64,
    /// Ticks in addition to that.
    pub offset: i64,
    /// Whether it counts from a point that all absolute clocks share (the epoch, with the offsets).
    pub absolute: bool,
}

/// A value of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    /// Integer.
    Int(i64),
    /// String.
    Str(String),
}

/// A class of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventClass {
    /// Id within its stream class.
    pub id: u64,
    /// Name.
    pub name: String,
    /// Level, as in syslog and LTTng.
    pub loglevel: Option<i64>,
    /// Context of this class alone.
    pub context: Option<StructType>,
    /// Payload.
    pub fields: Option<StructType>,
}

/// A class of streams.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StreamClass {
    /// Id within the trace.
    pub id: u64,
    /// What follows the header of each packet.
    pub packet_context: Option<StructType>,
    /// What each event begins with.
    pub event_header: Option<StructType>,
    /// What follows the header in each event.
    pub event_context: Option<StructType>,
    /// The events it may contain.
    pub events: Vec<EventClass>,
}

/// All of a trace's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Order of bytes where a type does not say.
    pub order: ByteOrder,
    /// Identity.
    pub uuid: Option<[u8; 16]>,
    /// What each packet begins with.
    pub packet_header: Option<StructType>,
    /// Host, tracer, what else is worth knowing.
    pub env: Vec<(String, EnvValue)>,
    /// Clocks.
    pub clocks: Vec<Clock>,
    /// Classes of streams.
    pub streams: Vec<StreamClass>,
}

impl Metadata {
    /// The string of that name in the environment.
    pub fn env_str(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|(n, v)| match v {
            EnvValue::Str(s) if n == name => Some(s.as_str()),
            _ => None,
        })
    }
    /// The integer of that name in the environment.
    pub fn env_int(&self, name: &str) -> Option<i64> {
        self.env.iter().find_map(|(n, v)| match v {
            EnvValue::Int(i) if n == name => Some(*i),
            _ => None,
        })
    }
    /// The stream class of that id.
    pub fn stream(&self, id: u64) -> Option<&StreamClass> {
        self.streams.iter().find(|s| s.id == id)
    }
    /// The clock of that name.
    pub fn clock(&self, name: &str) -> Option<&Clock> {
        self.clocks.iter().find(|c| c.name == name)
    }
}
