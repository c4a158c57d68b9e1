//! The line table of a unit: which line of which file an instruction comes from.

use super::section::Bytes;
use super::{Debug, Found, MAX_NAME};
use gimli::Reader;

/// The most rows of a unit, and sequences that are looked at for one address: damaged files let them overlap.
const MAX_ROWS: usize = 16 << 20;
const MAX_OVERLAPS: usize = 64;

/// The rows of a unit by address.
#[derive(Default)]
pub(super) struct Lines {
    rows: Vec<Row>,
    sequences: Vec<Sequence>,
}

/// From this address on, up to the next row's.
struct Row {
    address: u64,
    file: u32,
    line: u32,
}

/// Rows in order of their addresses.
struct Sequence {
    from: u64,
    to: u64,
    /// Numbers of its rows.
    rows: (u32, u32),
}

impl Lines {
    /// File number and line of an address. Line 0: the instruction comes from no line.
    pub(super) fn at(&self, address: u64) -> Option<(u64, u32)> {
        let before = self.sequences.partition_point(|s| s.from <= address);
        let sequence = self.sequences[..before].iter().rev().take(MAX_OVERLAPS).find(|s| address < s.to)?;
        let rows = self.rows.get(sequence.rows.0 as usize..sequence.rows.1 as usize)?;
        let row = rows.get(rows.partition_point(|r| r.address <= address).checked_sub(1)?)?;
        Some((row.file.into(), row.line))
    }

    /// Bytes that the table takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>() + self.sequences.len() * size_of::<Sequence>()
    }

    fn end_sequence(&mut self, first: usize, to: u64) {
        match self.rows.get(first) {
            Some(row) if row.address < to => {
                let rows = (first as u32, self.rows.len() as u32);
                self.sequences.push(Sequence { from: row.address, to, rows });
            }
            _ => self.rows.truncate(first),
        }
    }
}

impl<'f> Debug<'f> {
    /// The line table of a unit; empty where it has none, cut off where it is damaged.
    pub(super) fn lines_of(&self, found: &Found<'f>) -> Lines {
        let mut lines = Lines::default();
        let Some(program) = found.unit.line_program.clone() else { return lines };
        let mut rows = program.rows();
        let mut first = 0;
        while let Ok(Some((_, row))) = rows.next_row() {
            if row.end_sequence() {
                lines.end_sequence(first, row.address());
                first = lines.rows.len();
                continue;
            }
            let number = |n: u64| u32::try_from(n).unwrap_or(0);
            let line = row.line().map_or(0, |l| number(l.get()));
            let new = Row { address: row.address(), file: number(row.file_index()), line };
            match lines.rows.get_mut(first..).and_then(<[Row]>::last_mut) {
                // No instruction belongs to the earlier one.
                Some(last) if last.address == new.address => *last = new,
                // In a sequence, addresses never fall.
                Some(last) if last.address > new.address => {}
                _ => lines.rows.push(new),
            }
            if lines.rows.len() >= MAX_ROWS || !self.source.spend(1) {
                break;
            }
        }
        lines.rows.truncate(lines.rows.len().min(u32::MAX as usize));
        lines.sequences.sort_by_key(|s| s.from);
        lines
    }

    /// The path of a file by its number in the line table.
    pub(super) fn path_of(&self, found: &Found<'f>, number: u64) -> Option<String> {
        let unit = &found.unit;
        let header = unit.line_program.as_ref()?.header();
        let file = header.file(number)?;
        let bounded = |mut bytes: Bytes<'f>| {
            let _ = bytes.truncate(MAX_NAME);
            bytes.to_string_lossy().ok().map(|t| t.into_owned())
        };
        let name = self.text(found, Some(file.path_name()))?;
        let mut path = String::new();
        // The directory of number 0 is the compiler's own; before DWARF 5 it is not in the table.
        let has_directory = file.directory_index() != 0 || header.version() >= 5;
        let directory = file.directory(header).filter(|_| has_directory && !name.starts_with('/'));
        let directory = directory.and_then(|d| self.text(found, Some(d))).unwrap_or_default();
        if !name.starts_with('/') && !directory.starts_with('/') {
            path.extend(unit.comp_dir.clone().and_then(bounded));
        }
        for part in [&directory, &name] {
            if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
                path.push('/');
            }
            path.push_str(part);
        }
        Some(path)
    }
}
