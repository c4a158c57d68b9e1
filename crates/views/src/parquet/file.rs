//! A file of Parquet's format: rows in, bytes out.
//!
//! ```text
//! PAR1  row group (a chunk of pages for each column)  row group …  description of all of it  its length  PAR1
//! ```
//!
//! Only the rows of one row group are held: at most [`ROWS`], or as many as have [`BYTES`] of text.

use super::column::{Column, Kind, Value, Values};
use super::thrift;

/// Most rows of a row group.
const ROWS: usize = 1 << 16;
/// Bytes of values after which a row group ends.
const BYTES: usize = 8 << 20;
const MAGIC: &[u8; 4] = b"PAR1";

/// A file that is being written.
#[derive(Debug)]
pub struct File {
    columns: &'static [Column],
    values: Vec<Values>,
    /// Bytes that nobody has taken.
    out: Vec<u8>,
    /// How many bytes were taken.
    taken: u64,
    /// Rows of the row group that is open, and of those before.
    rows: usize,
    all: u64,
    groups: usize,
    described: Vec<u8>,
}

impl File {
    /// A file with these columns; `constants` are the texts of those that are the same in every row, in their order.
    pub fn new(columns: &'static [Column], constants: &[&str]) -> File {
        let mut values: Vec<Values> = columns.iter().map(|column| Values::new(*column)).collect();
        let constant = values.iter_mut().zip(columns).filter(|(_, column)| column.kind == Kind::Constant);
        constant.zip(constants).for_each(|((values, _), text)| values.push(Value::Text(text.as_bytes())));
        File { columns, values, out: MAGIC.to_vec(), taken: 0, rows: 0, all: 0, groups: 0, described: Vec::new() }
    }

    /// Adds a row: the values of all columns but the constant ones.
    #[inline]
    pub fn row<const N: usize>(&mut self, row: [Value<'_>; N]) {
        let mut row = row.into_iter();
        for (values, column) in self.values.iter_mut().zip(self.columns) {
            if column.kind != Kind::Constant {
                values.push(row.next().unwrap_or(Value::Null));
            }
        }
        debug_assert!(row.next().is_none(), "a value without a column");
        self.rows += 1;
        if self.rows.is_multiple_of(64) && (self.rows >= ROWS || self.size() >= BYTES) {
            self.group();
        }
    }

    fn size(&self) -> usize {
        self.values.iter().map(Values::size).sum()
    }

    /// Ends the row group.
    fn group(&mut self) {
        let from = self.taken + self.out.len() as u64;
        let mut chunks = Vec::new();
        for values in &mut self.values {
            let offset = self.taken + self.out.len() as u64;
            chunks.extend_from_slice(&values.write(self.rows, offset, &mut self.out));
        }
        let bytes = self.taken + self.out.len() as u64 - from;
        self.described.extend_from_slice(&thrift::written(|group| {
            group.list(1, thrift::STRUCT, self.columns.len(), &chunks);
            group.i64(2, bytes as i64);
            group.count(3, self.rows);
        }));
        self.all += self.rows as u64;
        self.rows = 0;
        self.groups += 1;
    }

    /// Ends the file; `about` is what is said of it, by keys.
    pub fn end(&mut self, about: &[(&str, &str)]) {
        if self.rows > 0 {
            self.group();
        }
        let mut schema = thrift::written(|root| {
            root.binary(4, b"trapline");
            root.i32(5, self.columns.len() as i32);
        });
        self.columns.iter().for_each(|column| schema.extend_from_slice(&column.element()));
        let pairs = about.iter().map(|(key, value)| {
            thrift::written(|pair| {
                pair.binary(1, key.as_bytes());
                pair.binary(2, value.as_bytes());
            })
        });
        let pairs: Vec<u8> = pairs.flatten().collect();
        // Bounds are in the order of the types.
        let order = thrift::written(|order| order.nested(1, |_| {})).repeat(self.columns.len());
        let footer = thrift::written(|meta| {
            meta.i32(1, 2);
            meta.list(2, thrift::STRUCT, self.columns.len() + 1, &schema);
            meta.i64(3, self.all as i64);
            meta.list(4, thrift::STRUCT, self.groups, &self.described);
            meta.list(5, thrift::STRUCT, about.len(), &pairs);
            meta.binary(6, concat!("trapline version ", env!("CARGO_PKG_VERSION")).as_bytes());
            meta.list(7, thrift::STRUCT, self.columns.len(), &order);
        });
        self.out.extend_from_slice(&footer);
        self.out.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        self.out.extend_from_slice(MAGIC);
    }

    /// The number of the text that the last row has in the last column, as long as its row group is open.
    pub fn last_number(&self) -> Option<u32> {
        self.values.last().and_then(Values::last_number)
    }

    /// Which row group is open.
    pub fn nth_group(&self) -> usize {
        self.groups
    }

    /// Takes the bytes that are there.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }

    /// Whether there are bytes to be taken.
    pub fn is_ready(&self) -> bool {
        !self.out.is_empty()
    }
}
