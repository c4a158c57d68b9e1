//! Rows, and the columns that they are kept in: numbers of 7 bits a byte, the lowest first, of what has changed since the item before.
//!
//! ```text
//! start     since the end of the item before, or its start in rows whose items overlap; zigzag
//! length    as it is
//! name, subject, text, stack: since that of the item before, zigzag        value: as it is, zigzag
//! ```
//!
//! A column without any number but 0 takes no memory: most rows have only a few.

use super::{Kind, Of};
use events::hash::Table;

/// One thing of a row. Times are ns of the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    /// When it begins.
    pub start: u64,
    /// How long it takes.
    pub length: u64,
    /// What it is called, a string.
    pub name: u32,
    /// The result of a call, the size of a block, how many events are missing: [`Kind`].
    pub value: i64,
    /// More about it, a string.
    pub text: u32,
    /// A stack.
    pub stack: u64,
    /// The file of a call, a string; the allocation that a release is of: [`Kind`].
    pub subject: u64,
}

/// How many columns there are.
pub(super) const COLUMNS: usize = 7;

/// Their names, in order.
pub(super) const NAMES: [&str; COLUMNS] = ["start", "length", "name", "value", "text", "stack", "subject"];

/// What follows each other in one lane.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub of: Of,
    pub kind: Kind,
    pub depth: u32,
    len: u64,
    /// The end of the last item.
    end: u64,
    before: Item,
    /// A bit for each column with a number that is not 0.
    has: u32,
    columns: [Vec<u8>; COLUMNS],
}

/// Appends a number.
pub(super) fn number(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The number at a place of a column, which moves behind it.
pub(super) fn read(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut n, mut shift) = (0, 0);
    while let Some(byte) = bytes.get(*at) {
        *at += 1;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift = (shift + 7) % 64;
    }
    n
}

pub(super) fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

/// Small numbers of either sign as small numbers.
pub(super) fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

fn since(now: u64, before: u64) -> u64 {
    zigzag(now.wrapping_sub(before) as i64)
}

impl Row {
    pub fn new(of: Of, kind: Kind, depth: u32) -> Row {
        Row { of, kind, depth, len: 0, end: 0, before: Item::default(), has: 1, columns: Default::default() }
    }

    /// Appends an item.
    pub fn push(&mut self, item: &Item) {
        let before = self.before;
        let values = [
            since(item.start, self.end),
            item.length,
            since(item.name.into(), before.name.into()),
            zigzag(item.value),
            since(item.text.into(), before.text.into()),
            since(item.stack, before.stack),
            since(item.subject, before.subject),
        ];
        for (nth, (column, value)) in self.columns.iter_mut().zip(values).enumerate() {
            if self.has >> nth & 1 == 0 {
                if value == 0 {
                    continue;
                }
                self.has |= 1 << nth;
                column.resize(self.len as usize, 0);
            }
            number(value, column);
        }
        self.end = item.start.saturating_add(item.length);
        self.before = *item;
        self.len += 1;
    }

    /// The items, in the order in which they came.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        let (mut at, mut before, mut end) = ([0; COLUMNS], Item::default(), 0u64);
        (0..self.len).map(move |_| {
            let mut next = |nth: usize| read(&self.columns[nth], &mut at[nth]);
            let sum = |before: u64, n: u64| before.wrapping_add(unzigzag(n) as u64);
            let item = Item {
                start: sum(end, next(0)),
                length: next(1),
                name: sum(before.name.into(), next(2)) as u32,
                value: unzigzag(next(3)),
                text: sum(before.text.into(), next(4)) as u32,
                stack: sum(before.stack, next(5)),
                subject: sum(before.subject, next(6)),
            };
            (before, end) = (item, item.start.saturating_add(item.length));
            item
        })
    }

    /// The end of the last item.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many items it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// A bit for each column that is there; the others are all 0.
    pub fn has(&self) -> u32 {
        self.has
    }

    /// The bytes of a column; none where it is all 0.
    pub fn column(&self, nth: usize) -> &[u8] {
        self.columns.get(nth).map_or(&[], |c| c)
    }
}

/// Rows by owner, kind and depth.
#[derive(Debug, Default)]
pub(super) struct Rows {
    all: Vec<Row>,
    by: Table<(Of, Kind, u32), usize>,
    /// The latest row: most items follow another one of their row.
    latest: Option<usize>,
}

impl Rows {
    /// A row, which may be new.
    pub fn of(&mut self, of: Of, kind: Kind, depth: u32) -> &mut Row {
        if let Some(latest) = self.latest
            && let Some(row) = self.all.get(latest)
            && (row.of, row.kind, row.depth) == (of, kind, depth)
        {
            return &mut self.all[latest];
        }
        let next = self.all.len();
        let nth = *self.by.entry((of, kind, depth)).or_insert(next);
        if nth == next {
            self.all.push(Row::new(of, kind, depth));
        }
        self.latest = Some(nth);
        &mut self.all[nth]
    }

    /// All of them, in the order in which they came.
    pub fn all(&self) -> &[Row] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_as_they_were() {
        let mut random = testkit::Random::new(3);
        let mut any = |bits: u32| random.next() >> (64 - bits);
        let items: Vec<Item> = (0..500)
            .map(|n| Item {
                start: n * 1000 + any(20),
                length: any(1 + n as u32 % 40),
                name: any(20) as u32,
                value: any(63) as i64 - any(63) as i64,
                text: any(31) as u32,
                stack: any(40),
                subject: any(50),
            })
            .chain([Item { start: u64::MAX, length: 9, value: i64::MIN, ..Item::default() }, Item::default()])
            .collect();
        let mut row = Row::new(Of::Process(0), Kind::Heap, 0);
        items.iter().for_each(|item| row.push(item));
        assert_eq!(row.items().collect::<Vec<_>>(), items);
        assert_eq!((row.len(), row.has()), (502, 127));
    }

    #[test]
    fn a_column_begins_with_its_first_number() {
        let items: Vec<Item> =
            (0..300).map(|n| Item { start: n, length: 1, value: i64::from(n > 200), ..Item::default() }).collect();
        let mut row = Row::new(Of::Process(0), Kind::Function, 0);
        items.iter().for_each(|item| row.push(item));
        assert_eq!(row.items().collect::<Vec<_>>(), items);
        assert_eq!((row.has(), row.column(3).len(), row.column(4)), (0b1011, 300, &[][..]));
    }
}
