//! Aligned tables: a column is as wide as its widest cell. Cells are printable.

/// Ends a colour.
const PLAIN: &str = "\x1b[0m";

/// The side of its column that a cell is aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table in the making.
pub struct Table {
    head: Vec<(String, Align)>,
    /// Below the headings and above the total.
    has_rules: bool,
    /// Blanks between columns.
    gap: usize,
    /// Columns are never narrower; empty where all widths follow from the cells.
    least: Vec<usize>,
    rows: Vec<Vec<String>>,
    /// Escape sequences before cells: row, column, sequence.
    painted: Vec<(usize, usize, &'static str)>,
    /// A row below a rule of its own.
    total: Option<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub fn new(head: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Table {
        Table {
            head: head.into_iter().map(|(h, a)| (h.into(), a)).collect(),
            has_rules: true,
            gap: 1,
            least: Vec::new(),
            rows: Vec::new(),
            painted: Vec::new(),
            total: None,
        }
    }

    /// An empty list: without rules, two blanks between columns. Where all headings are empty, there is no line of them.
    pub fn list(head: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Table {
        Table { gap: 2, ..Table::new(head).without_rules() }
    }

    /// Leaves out the rules below the heading.
    pub fn without_rules(self) -> Table {
        Table { has_rules: false, ..self }
    }

    /// Sets the least widths of columns, for readers that go by position: lines keep blanks at their ends.
    pub fn at_least(self, widths: impl IntoIterator<Item = usize>) -> Table {
        Table { least: widths.into_iter().collect(), ..self }
    }

    /// Adds a row, one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Shows a cell of a row in a colour: an escape sequence. To be called in the order of the rows.
    pub fn paint(&mut self, row: usize, column: usize, colour: &'static str) {
        self.painted.push((row, column, colour));
    }

    /// Sets the last row, below the others and a rule.
    pub fn total(&mut self, cells: Vec<String>) {
        self.total = Some(cells);
    }

    fn all(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().chain(&self.total)
    }

    /// The width of column `i`.
    fn width(&self, i: usize) -> usize {
        let cells = self.all().filter_map(|r| r.get(i)).chain([&self.head[i].0]);
        cells.map(|c| c.chars().count()).chain(self.least.get(i).copied()).max().unwrap_or(0)
    }

    /// Shortens the cells of column `i` from the front where a line would be wider than `line`, to no less than `least`
    /// characters each.
    pub fn squeeze(&mut self, i: usize, line: usize, least: usize) {
        let others: usize = (0..self.head.len()).filter(|&c| c != i).map(|c| self.width(c) + self.gap).sum();
        let room = line.saturating_sub(others).max(least);
        for cell in self.rows.iter_mut().chain(&mut self.total).filter_map(|r| r.get_mut(i)) {
            *cell = shortened(cell, room);
        }
    }

    /// Appends the table.
    pub fn write(&self, out: &mut Vec<u8>) {
        let widths: Vec<usize> = (0..self.head.len()).map(|i| self.width(i)).collect();
        let rule: Vec<String> = widths.iter().map(|&w| "-".repeat(w)).collect();
        let head: Vec<String> = self.head.iter().map(|(h, _)| h.clone()).collect();
        let line_up = |out: &mut Vec<u8>| {
            if self.has_rules {
                self.line(&rule, &widths, &[], out)
            }
        };
        if head.iter().any(|h| !h.is_empty()) {
            self.line(&head, &widths, &[], out);
            line_up(out);
        }
        let mut painted = &self.painted[..];
        for (n, row) in self.rows.iter().enumerate() {
            let (here, rest) = painted.split_at(painted.partition_point(|p| p.0 <= n));
            painted = rest;
            self.line(row, &widths, here, out);
        }
        if let Some(total) = &self.total {
            line_up(out);
            self.line(total, &widths, &[], out);
        }
    }

    /// A line, without blanks at its end unless positions matter.
    fn line(&self, cells: &[String], widths: &[usize], painted: &[(usize, usize, &str)], out: &mut Vec<u8>) {
        let (mut text, is_fixed) = (String::new(), !self.least.is_empty());
        for (i, ((cell, &w), (_, align))) in cells.iter().zip(widths).zip(&self.head).enumerate() {
            if i > 0 {
                text.extend(std::iter::repeat_n(' ', self.gap));
            }
            let cell = match align {
                Align::Left if is_fixed && i + 1 == cells.len() => cell.clone(),
                Align::Left => format!("{cell:<w$}"),
                Align::Right => format!("{cell:>w$}"),
            };
            text += &match painted.iter().find(|p| p.1 == i) {
                Some((.., colour)) => format!("{colour}{cell}{PLAIN}"),
                None => cell,
            };
        }
        out.extend_from_slice(if is_fixed { &text } else { text.trim_end() }.as_bytes());
        out.push(b'\n');
    }
}

/// An escaped name in at most `room` characters: `...` and its end where it is longer. An escape sequence is kept whole or
/// omitted.
pub fn shortened(name: &str, room: usize) -> String {
    if name.len() <= room {
        return name.to_owned();
    }
    let mut at = name.len() - room.saturating_sub(3).min(name.len());
    let near = at.saturating_sub(3);
    if let Some(slash) = name[near..at].rfind('\\').map(|i| near + i) {
        let digits = name[slash + 1..].bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
        at = at.max((slash + 1 + digits.max(1)).min(name.len()));
    }
    format!("...{}", &name[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_ends_and_whole_escapes() {
        assert_eq!(shortened("/usr/lib/x86_64-linux-gnu/libc.so.6", 16), "...gnu/libc.so.6");
        assert_eq!(shortened("aaaaaaaaa\\033b", 6), "...b");
        assert_eq!(shortened("aaaaaaaaa\\033b", 8), "...\\033b");
        assert_eq!(shortened("aaaaaaaaaa\\nbc", 6), "...bc");
    }

    #[test]
    fn colours_take_no_room() {
        let mut g = Table::new([("n", Align::Right), ("change", Align::Right)]);
        for n in ["1", "22"] {
            g.row(vec![n.into(), format!("+{n}")]);
        }
        g.paint(1, 1, "\x1b[31m");
        let mut out = Vec::new();
        g.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), " n change\n-- ------\n 1     +1\n22 \x1b[31m   +22\x1b[0m\n");
    }

    #[test]
    fn lists_have_no_rules_and_fixed_columns_keep_their_blanks() {
        let shown = |table: Table| {
            let mut out = Vec::new();
            table.write(&mut out);
            String::from_utf8(out).unwrap()
        };
        let mut g = Table::list([("NAME", Align::Left), ("N", Align::Right)]);
        g.row(vec!["é".into(), "10".into()]);
        assert_eq!(shown(g), "NAME   N\né     10\n");
        let mut g = Table::list([("", Align::Left), ("", Align::Left)]);
        g.row(vec!["a".into(), "b".into()]);
        assert_eq!(shown(g), "a  b\n");
        let mut g = Table::new([("n", Align::Right), ("m", Align::Right)]).at_least([3, 2]);
        g.row(vec!["1".into(), String::new()]);
        assert_eq!(shown(g), "  n  m\n--- --\n  1   \n");
    }

    #[test]
    fn only_lines_that_are_too_long_are_squeezed() {
        let mut g = Table::new([("n", Align::Right), ("name", Align::Left)]);
        g.row(vec!["100".into(), "short".into()]);
        g.row(vec!["1".into(), "a-name-that-is-too-long".into()]);
        g.squeeze(1, 16, 8);
        let mut out = Vec::new();
        g.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "  n name\n--- ------------\n100 short\n  1 ...-too-long\n");
    }
}
