//! A column of a table: the values of a row group, and how they become pages.
//!
//! ```text
//! texts, numbers   a page with the dictionary, a page with the numbers of its values
//! times            a page of differences
//! truths           a page of bits
//! ```
//!
//! All pages are of the first version, and packed.

use super::dictionary::{Numbers, Texts};
use super::encode;
use super::gzip::packed;
use super::thrift::{self, Struct};
use crate::escape;
use std::borrow::Cow;

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// The same text in every row of a file.
    Constant,
    /// Numbers of 32 bits.
    Int,
    /// Numbers of 64 bits.
    Long,
    /// Times, us since the epoch: given as ns.
    Time,
    /// Numbers of 64 bits that are much like those before them.
    Rising,
    /// Truths.
    Truth,
}

/// A column of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it has.
    pub kind: Kind,
    /// Whether rows may have nothing there.
    pub optional: bool,
    /// What it means, and when it is NULL.
    pub about: &'static str,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A number, a time in ns, or a truth.
    Int(i64),
    /// A text: what is not UTF-8 is escaped.
    Text(&'a [u8]),
    /// A text of the row group, by its number.
    Known(u32),
}

impl<'a> Value<'a> {
    /// A number that may not be known.
    pub fn maybe(n: Option<impl Into<i64>>) -> Value<'a> {
        n.map_or(Value::Null, |n| Value::Int(n.into()))
    }

    /// A number without a sign, that may not be known.
    pub fn unsigned(n: Option<u64>) -> Value<'a> {
        n.map_or(Value::Null, |n| Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
    }

    /// A text; nothing where it is empty.
    pub fn text(text: &'a [u8]) -> Value<'a> {
        if text.is_empty() { Value::Null } else { Value::Text(text) }
    }
}

/// Numbers of Parquet's format (parquet.thrift).
mod format {
    pub const BOOLEAN: i32 = 0;
    pub const INT32: i32 = 1;
    pub const INT64: i32 = 2;
    pub const BYTE_ARRAY: i32 = 6;
    pub const PLAIN: i32 = 0;
    pub const RLE: i32 = 3;
    pub const DELTA: i32 = 5;
    pub const RLE_DICTIONARY: i32 = 8;
    pub const DATA_PAGE: i32 = 0;
    pub const DICTIONARY_PAGE: i32 = 2;
    pub const GZIP: i32 = 2;
    pub const UTF8: i32 = 0;
    pub const TIMESTAMP_MICROS: i32 = 10;
}

impl Kind {
    fn physical(self) -> i32 {
        match self {
            Kind::Text | Kind::Constant => format::BYTE_ARRAY,
            Kind::Int => format::INT32,
            Kind::Long | Kind::Time | Kind::Rising => format::INT64,
            Kind::Truth => format::BOOLEAN,
        }
    }

    /// Its name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text | Kind::Constant => "STRING",
            Kind::Int => "INT32",
            Kind::Long | Kind::Rising => "INT64",
            Kind::Time => "TIMESTAMP",
            Kind::Truth => "BOOLEAN",
        }
    }

    fn encoding(self) -> i32 {
        match self {
            Kind::Time | Kind::Rising => format::DELTA,
            Kind::Truth => format::PLAIN,
            Kind::Text | Kind::Constant | Kind::Int | Kind::Long => format::RLE_DICTIONARY,
        }
    }
}

impl Column {
    /// What its numbers count, where that is more than a number.
    pub fn unit(&self) -> Option<&'static str> {
        match self.name {
            _ if self.kind == Kind::Time => Some("us"),
            "bytes" | "size" => Some("bytes"),
            name => name.ends_with("_ns").then_some("ns"),
        }
    }

    /// The column as an element of a schema.
    pub fn element(&self) -> Vec<u8> {
        thrift::written(|s| {
            s.i32(1, self.kind.physical());
            s.i32(3, self.optional.into());
            s.binary(4, self.name.as_bytes());
            match self.kind {
                Kind::Text | Kind::Constant => {
                    s.i32(6, format::UTF8);
                    s.nested(10, |logical| logical.nested(1, |_| {}));
                }
                Kind::Time => {
                    s.i32(6, format::TIMESTAMP_MICROS);
                    s.nested(10, |logical| {
                        logical.nested(8, |time| {
                            time.boolean(1, true);
                            time.nested(2, |unit| unit.nested(2, |_| {}));
                        });
                    });
                }
                Kind::Int | Kind::Long | Kind::Rising | Kind::Truth => {}
            }
        })
    }
}

/// The values of a column in a row group.
#[derive(Debug)]
pub struct Values {
    column: Column,
    /// The dictionary: of texts, or of numbers.
    texts: Texts,
    numbers: Numbers,
    /// Which value of the dictionary each row has that has one.
    indices: Vec<u32>,
    /// Values that are in no dictionary.
    plain: Vec<i64>,
    /// Lengths of runs of rows, by turns with a value and without one, and the last run, which is not among them.
    runs: Vec<u32>,
    last: (bool, u32),
    escaped: Vec<u8>,
}

/// The longest text that is written as the least or the greatest of a column.
const LONGEST_BOUND: usize = 64;

impl Values {
    /// None so far.
    pub fn new(column: Column) -> Values {
        Values {
            column,
            texts: Texts::default(),
            numbers: Numbers::default(),
            indices: Vec::new(),
            plain: Vec::new(),
            runs: Vec::new(),
            last: (true, 0),
            escaped: Vec::new(),
        }
    }

    /// Bytes of the values so far.
    pub fn size(&self) -> usize {
        self.texts.plain().len()
    }

    /// Adds the value of a row.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) {
        let has = value != Value::Null;
        if self.last.0 == has {
            self.last.1 += 1;
        } else {
            self.runs.push(self.last.1);
            self.last = (has, 1);
        }
        match value {
            Value::Null => {}
            Value::Int(n) => self.int(n),
            Value::Text(text) => self.text(text),
            Value::Known(number) => self.indices.push(number),
        }
    }

    /// The number of the text that was added last.
    pub fn last_number(&self) -> Option<u32> {
        self.indices.last().copied()
    }

    #[inline]
    fn int(&mut self, n: i64) {
        let n = match self.column.kind {
            Kind::Time => n.div_euclid(1000),
            Kind::Int => i64::from(n as i32),
            _ => n,
        };
        match self.column.kind {
            Kind::Int | Kind::Long => self.indices.push(self.numbers.number(n)),
            _ => self.plain.push(n),
        }
    }

    #[inline]
    fn text(&mut self, text: &[u8]) {
        let is_utf8 = |text| std::str::from_utf8(text).is_ok().then_some(text);
        let index = self.texts.number(text, is_utf8).or_else(|| {
            self.escaped.clear();
            escape::name(text, &mut self.escaped);
            self.texts.number(&self.escaped, Some)
        });
        self.indices.extend(index);
    }

    /// The dictionary, and how many values it has.
    fn dictionary(&self) -> (Cow<'_, [u8]>, usize) {
        let numbers = self.numbers.all();
        match self.column.kind {
            Kind::Int => (numbers.iter().flat_map(|n| (*n as i32).to_le_bytes()).collect(), numbers.len()),
            Kind::Long => (numbers.iter().flat_map(|n| n.to_le_bytes()).collect(), numbers.len()),
            _ => (self.texts.plain().into(), self.texts.len()),
        }
    }

    /// Appends the pages of `rows` rows, which begin at `offset` of the file, and forgets the values. Returns the column's part of the
    /// description of the row group.
    pub fn write(&mut self, rows: usize, offset: u64, out: &mut Vec<u8>) -> Vec<u8> {
        let (from, mut unpacked) = (out.len(), 0);
        let in_dictionary = self.column.kind.encoding() == format::RLE_DICTIONARY;
        if in_dictionary {
            let (values, n) = self.dictionary();
            unpacked += page(format::DICTIONARY_PAGE, &values, out, |head| {
                head.nested(7, |of| {
                    of.i32(1, n as i32);
                    of.i32(2, format::PLAIN);
                });
            });
        }
        self.runs.push(self.last.1);
        let data_at = out.len() - from;
        let data = self.data(rows);
        unpacked += page(format::DATA_PAGE, &data, out, |head| {
            head.nested(5, |of| {
                of.i32(1, rows as i32);
                of.i32(2, self.column.kind.encoding());
                of.i32(3, format::RLE);
                of.i32(4, format::RLE);
            });
        });
        let packed = out.len() - from;
        let described = thrift::written(|chunk| {
            chunk.i64(2, 0);
            chunk.nested(3, |meta| {
                meta.i32(1, self.column.kind.physical());
                let encodings = [self.column.kind.encoding(), format::RLE, format::PLAIN].map(|n| 2 * n as u8);
                meta.list(2, thrift::I32, encodings.len(), &encodings);
                let mut path = Vec::new();
                thrift::binary(self.column.name.as_bytes(), &mut path);
                meta.list(3, thrift::BINARY, 1, &path);
                meta.i32(4, format::GZIP);
                meta.count(5, rows);
                meta.count(6, unpacked);
                meta.count(7, packed);
                meta.i64(9, offset as i64 + data_at as i64);
                if in_dictionary {
                    meta.i64(11, offset as i64);
                }
                meta.nested(12, |bounds| self.bounds(bounds));
            });
        });
        self.clear();
        described
    }

    /// What a page of data has.
    fn data(&self, rows: usize) -> Vec<u8> {
        let mut out = Vec::new();
        if self.column.optional {
            let runs = self.runs.iter().enumerate();
            let present: Vec<u32> =
                runs.flat_map(|(nth, n)| std::iter::repeat_n(u32::from(nth % 2 == 0), *n as usize)).collect();
            let mut levels = Vec::new();
            encode::hybrid(&present, 1, &mut levels);
            out.extend_from_slice(&(levels.len() as u32).to_le_bytes());
            out.extend_from_slice(&levels);
        }
        match self.column.kind {
            Kind::Time | Kind::Rising => encode::delta(&self.plain, &mut out),
            Kind::Truth => encode::truths(&self.plain, &mut out),
            Kind::Text | Kind::Int | Kind::Long | Kind::Constant => {
                let values = self.texts.len().max(self.numbers.all().len());
                let width = encode::width((values as u32).saturating_sub(1)).max(1);
                out.push(width as u8);
                if self.column.kind == Kind::Constant {
                    encode::run(0, rows, width, &mut out);
                } else {
                    encode::hybrid(&self.indices, width, &mut out);
                }
            }
        }
        out
    }

    /// How many rows have nothing; the least and the greatest value.
    fn bounds(&self, out: &mut Struct) {
        let none: u32 = self.runs.iter().skip(1).step_by(2).sum();
        out.count(3, none as usize);
        match self.column.kind {
            Kind::Text | Kind::Constant => {
                let Some((least, most)) = range(self.texts.all()) else { return };
                if least.len().max(most.len()) <= LONGEST_BOUND {
                    out.binary(5, most);
                    out.binary(6, least);
                }
            }
            kind => {
                let all = if kind.encoding() == format::RLE_DICTIONARY { self.numbers.all() } else { &self.plain };
                let Some((least, most)) = range(all.iter().copied()) else { return };
                let size = match kind {
                    Kind::Int => 4,
                    Kind::Truth => 1,
                    _ => 8,
                };
                out.binary(5, &most.to_le_bytes()[..size]);
                out.binary(6, &least.to_le_bytes()[..size]);
            }
        }
    }

    fn clear(&mut self) {
        if self.column.kind != Kind::Constant {
            self.texts.clear();
        }
        self.numbers.clear();
        self.indices.clear();
        self.plain.clear();
        self.runs.clear();
        self.last = (true, 0);
    }
}

/// The least and the greatest.
fn range<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Option<(T, T)> {
    all.fold(None, |range, v| Some(range.map_or((v, v), |(least, most): (T, T)| (least.min(v), most.max(v)))))
}

/// Appends a page; returns how long it is unpacked, with its head.
fn page(kind: i32, bytes: &[u8], out: &mut Vec<u8>, of: impl FnOnce(&mut Struct)) -> usize {
    let packed = packed(bytes);
    let head = thrift::written(|head| {
        head.i32(1, kind);
        head.i32(2, bytes.len() as i32);
        head.i32(3, packed.len() as i32);
        of(head);
    });
    out.extend_from_slice(&head);
    out.extend_from_slice(&packed);
    head.len() + bytes.len()
}
