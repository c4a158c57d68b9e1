//! Functions as a table, and as a screen that is drawn again and again.
//!
//! ```text
//! 1234 samples, one every 10.1ms (12.5s in all), of 20 stacks
//!
//!  self% total% self total module    function
//! ------ ------ ---- ----- --------- --------------------
//! 48.62% 99.10%  600  1223 libfoo.so hash_table::insert
//! ```
//!
//! Invariant: printable ASCII, whatever the names are; no line of a function is wider than was asked for unless its numbers are.

use super::blocked;
use super::functions::{Function, Sort, sorted};
use super::name::{self, percent};
use super::stacks::Stacks;
use super::style::{Style, Terminal};
use super::words::{ascii, in_all, module, rest};
use crate::table::{Align, Table as Columns};

/// Names of functions are never shortened to less.
const LEAST_FUNCTION: usize = 16;
/// Nor those of modules.
const LEAST_MODULE: usize = 10;
/// Lines of a terminal that are left for what is above and below the functions of a table.
const AROUND: usize = 8;
/// The fewest functions of a table on a terminal.
const FEWEST: usize = 10;
/// Lines of a screen above and below the functions.
const FRAMING: usize = 5;

/// Draws the table.
pub fn draw(stacks: &Stacks, style: &Style, terminal: Option<Terminal>, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| Table::of(style, terminal).write(seen, out));
}

/// How the table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The order of the rows.
    pub sort: Sort,
    /// The most rows.
    pub rows: usize,
    /// The longest line, in characters: longer names are shortened. [`usize::MAX`] for any length.
    pub width: usize,
}

impl Default for Table {
    /// All functions, by their own weight, in lines of 100 characters.
    fn default() -> Table {
        Table { sort: Sort::Own, rows: usize::MAX, width: 100 }
    }
}

impl Table {
    /// The table of this style. Its lines are cut to those of a terminal only.
    pub fn of(style: &Style, terminal: Option<Terminal>) -> Table {
        let (width, rows) = match terminal {
            Some((columns, lines)) => (columns, lines.saturating_sub(AROUND).max(FEWEST)),
            None => (usize::MAX, usize::MAX),
        };
        Table { sort: style.sort, rows: style.rows.unwrap_or(rows), width }
    }

    /// Appends the table.
    pub fn write(&self, stacks: &Stacks, out: &mut Vec<u8>) {
        if stacks.is_of_blocked_time() {
            return blocked::write(stacks, self.sort, self.rows, out);
        }
        summary(stacks, out);
        let functions = sorted(stacks, self.sort);
        if functions.is_empty() {
            return;
        }
        let shown = &functions[..functions.len().min(self.rows)];
        out.push(b'\n');
        self.columns(stacks, shown).write(out);
        rest(functions.len() - shown.len(), out);
    }

    /// A screen of at most `rows` lines, none wider than the table: the functions that weigh most of a profile that goes on.
    pub fn screen(&self, stacks: &Stacks, rows: usize) -> Vec<String> {
        let mut out = Vec::new();
        Table { rows: self.rows.min(rows.saturating_sub(FRAMING)), ..*self }.write(stacks, &mut out);
        let text = String::from_utf8_lossy(&out);
        text.lines().take(rows).map(|l| l.chars().take(self.width).collect()).collect()
    }

    fn columns(&self, stacks: &Stacks, functions: &[Function<'_>]) -> Columns {
        let (unit, whole) = (stacks.unit(), stacks.kept());
        let numbers =
            |f: &Function<'_>| [percent(f.own, whole), percent(f.total, whole), unit.short(f.own), unit.short(f.total)];
        let names = functions.iter().map(|f| (module(&f.key), ascii(&name::function(&f.key.frame())))).collect();
        columns(&["self%", "total%", "self", "total"], functions.iter().map(numbers).collect(), names, self.width)
    }
}

/// A table of numbers, and of names that are shortened to what they leave of `width`.
pub(crate) fn columns<const N: usize>(
    headings: &[&str; N],
    numbers: Vec<[String; N]>,
    names: Vec<(String, String)>,
    width: usize,
) -> Columns {
    let widest = |i: usize| numbers.iter().map(|n| n[i].len()).max().unwrap_or(0).max(headings[i].len()) + 1;
    let room = width.saturating_sub((0..N).map(widest).sum());
    let widest = |len: fn(&(String, String)) -> usize| names.iter().map(len).max().unwrap_or(0);
    // A module gets what functions leave, and a third of the room in any case.
    let most = room.saturating_sub(widest(|n| n.1.len()) + 1).max(room / 3).max(LEAST_MODULE);
    let module_room = widest(|n| n.0.len()).min(most).max("module".len());
    let function_room = room.saturating_sub(module_room + 1).max(LEAST_FUNCTION);
    let heads = headings.iter().map(|h| (*h, Align::Right));
    let mut table = Columns::new(heads.chain([("module", Align::Left), ("function", Align::Left)]));
    for (numbers, (module, function)) in numbers.into_iter().zip(names) {
        let names = [name::shortened(&module, module_room), name::shortened(&function, function_room)];
        table.row(numbers.into_iter().chain(names.map(|n| n.into_owned())).collect());
    }
    table
}

/// Appends what there is in all.
fn summary(stacks: &Stacks, out: &mut Vec<u8>) {
    out.extend_from_slice(in_all(stacks).as_bytes());
    out.push(b'\n');
}

/// Appends a screen over the one before, with the cursor's control sequences of a terminal (ECMA-48).
pub fn redraw(screen: &[String], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[H");
    for (i, line) in screen.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(line.as_bytes());
        // To the end of the line.
        out.extend_from_slice(b"\x1b[K");
    }
    // To the end of the screen.
    out.extend_from_slice(b"\x1b[J");
}
