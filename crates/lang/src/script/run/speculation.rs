//! What is printed, and what of it is kept until somebody knows whether it is wanted.

use super::{Host, Output};
use crate::script::ir::{Program, Speculate, Writing};
use crate::script::maps::Row;
use crate::script::types::Type;
use crate::script::value::Value;
use std::collections::BTreeMap;

/// This many speculations may be open.
pub const MAX_OPEN: usize = 1 << 12;
/// This many lines all of them keep.
pub const MAX_KEPT: usize = 1 << 16;

/// Something that is printed.
#[derive(Debug)]
pub(super) enum Printed {
    /// By the format of a place.
    Write(Writing, usize, Vec<Value>),
    /// A value; whether it is a text of the script itself.
    Value(Type, Value, bool),
    /// Lines of a map, whose values are divided.
    Map(usize, Vec<Row>, i64),
    /// The time of day.
    Time(Vec<u8>),
    /// Strings that were joined.
    Join(Vec<u8>),
}

impl Printed {
    pub fn show(&self, program: &Program, host: &mut dyn Host) {
        host.output(match self {
            Printed::Write(writing, site, args) => {
                Output::Write { writing: *writing, site: &program.sites[*site], args }
            }
            Printed::Value(ty, value, own) => Output::Value { ty, value, own: *own },
            Printed::Map(map, rows, div) => Output::Map { map: &program.maps[*map], rows, div: *div },
            Printed::Time(text) => Output::Time(text),
            Printed::Join(text) => Output::Join(text),
        });
    }

    fn lines(&self) -> usize {
        if let Printed::Map(_, rows, _) = self { rows.len().max(1) } else { 1 }
    }
}

/// The open speculations.
#[derive(Debug, Default)]
pub(super) struct Speculations {
    open: BTreeMap<u64, Vec<Printed>>,
    last: u64,
    lines: usize,
    /// Speculations that there was no room for.
    pub refused: u64,
    /// Lines that there was no room for.
    pub lost: u64,
}

impl Speculations {
    /// The number of a new one; 0: too many are open, and what would be kept is lost.
    pub fn open(&mut self) -> u64 {
        if self.open.len() >= MAX_OPEN {
            self.refused += 1;
            return 0;
        }
        self.last += 1;
        self.open.insert(self.last, Vec::new());
        self.last
    }

    /// Keeps what is printed. What belongs to one that is not open is not wanted.
    pub fn keep(&mut self, number: u64, printed: Printed) {
        let Some(kept) = self.open.get_mut(&number) else { return };
        let lines = printed.lines();
        if self.lines + lines > MAX_KEPT {
            self.lost += lines as u64;
            return;
        }
        self.lines += lines;
        kept.push(printed);
    }

    /// Ends one: its lines, if they are to be shown.
    pub fn end(&mut self, number: u64, how: Speculate) -> Vec<Printed> {
        let kept = self.open.remove(&number).unwrap_or_default();
        self.lines -= kept.iter().map(Printed::lines).sum::<usize>();
        if how == Speculate::Commit { kept } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut all = Speculations::default();
        for nth in 1..=MAX_OPEN as u64 {
            assert_eq!(all.open(), nth);
        }
        assert_eq!((all.open(), all.refused), (0, 1));
        (0..MAX_KEPT + 3).for_each(|_| all.keep(7, Printed::Join(Vec::new())));
        all.keep(0, Printed::Join(Vec::new()));
        assert_eq!(all.lost, 3);
        assert_eq!(all.end(8, Speculate::Commit).len(), 0);
        assert_eq!(all.end(7, Speculate::Commit).len(), MAX_KEPT);
        assert_eq!((all.lines, all.end(7, Speculate::Commit).len()), (0, 0));
        assert_ne!(all.open(), 0);
    }
}
