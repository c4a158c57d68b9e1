//! `--as VIEW[=FILE]` of profiles, and the table that is drawn again and again on a terminal.

use super::screen::Clocks;
use super::{Form, Kind, Make};
use crate::ask::Ask;
use crate::output::Output;
use engine::Result;
use std::io;
use views::profile::flame::Flame;
use views::profile::functions::Sort;
use views::profile::table::{Table, redraw};
use views::profile::{By, Stacks, folded, json, pprof};

/// How a profile is drawn.
#[derive(Clone)]
pub struct Style {
    /// What stacks are grouped by.
    pub by: By,
    sort: Sort,
    rows: Option<usize>,
    icicle: bool,
    /// The heading of graphs.
    pub title: String,
    realtime_offset: i64,
}

impl Style {
    /// What the command line asks for.
    pub fn of(ask: &Ask, title: String, clocks: Clocks) -> Style {
        Style {
            by: ask.profile.group.as_deref().and_then(By::parse).unwrap_or_default(),
            sort: ask.profile.order.as_deref().and_then(Sort::parse).unwrap_or_default(),
            rows: ask.table.rows.map(|n| n as usize),
            icicle: ask.profile.icicle,
            title,
            realtime_offset: clocks.realtime_offset,
        }
    }

    /// The table, for a terminal or for a file: its lines are cut to those of a terminal only.
    pub fn table(&self, terminal: bool) -> Table {
        let (columns, _) = if terminal { size() } else { (usize::MAX, 0) };
        Table {
            sort: self.sort,
            rows: self.rows.unwrap_or(if terminal { on_terminal() } else { usize::MAX }),
            width: columns,
        }
    }

    /// The graph.
    pub fn flame(&self) -> Flame {
        Flame { title: self.title.clone(), by: self.by, icicle: self.icicle }
    }
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    let (columns, rows) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    (columns.into(), rows.into())
}

/// Functions of a table that leave its heading and the last lines on the screen.
fn on_terminal() -> usize {
    size().1.saturating_sub(8).max(10)
}

/// A drawing and where it goes.
pub struct Drawing {
    /// Its kind.
    pub kind: &'static Kind,
    /// Its destination.
    pub output: Output,
}

impl Drawing {
    /// A view of a profile, and where it goes.
    ///
    /// # Errors
    /// Its file cannot be made, or a terminal cannot show it.
    pub fn open(kind: &'static Kind, file: Option<&str>) -> Result<Drawing> {
        Ok(Drawing { kind, output: kind.open(file)? })
    }

    /// Whether it has source files and lines in it.
    pub fn has_lines(&self) -> bool {
        matches!(self.kind.make, Make::Stacks { lines: true, .. })
    }

    /// Whether it is a table that somebody looks at.
    pub fn is_on_terminal(&self) -> bool {
        self.kind.form == Form::Text && self.output.is_terminal()
    }

    /// Draws a profile.
    pub fn draw(&mut self, stacks: &Stacks, style: &Style) -> Result<()> {
        let mut text = Vec::new();
        if let Make::Stacks { draw, .. } = self.kind.make {
            draw(stacks, style, self.output.is_terminal(), &mut text);
        }
        self.write(&text)
    }

    /// Draws the screen over the one before.
    pub fn screen(&mut self, stacks: &Stacks, style: &Style) -> Result<()> {
        let (_, rows) = size();
        let mut text = Vec::new();
        redraw(&style.table(true).screen(stacks, rows), &mut text);
        self.write(&text)
    }

    /// Clears the screen.
    pub fn clear(&mut self) -> Result<()> {
        let mut text = Vec::new();
        redraw(&[], &mut text);
        self.write(&text)
    }

    /// Writes text to the destination.
    pub fn write(&mut self, text: &[u8]) -> Result<()> {
        self.output.write_lines(text);
        self.output.flush();
        self.output.take_trouble().map_or(Ok(()), Err)
    }
}

/// A table of functions.
pub fn table(stacks: &Stacks, style: &Style, terminal: bool, out: &mut Vec<u8>) {
    style.table(terminal).write(stacks, out);
}

/// Lines of stacks.
pub fn folded(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    folded::write(stacks, style.by, out);
}

/// A flame graph.
pub fn flame(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    style.flame().write(stacks, out);
}

/// pprof's format.
pub fn pprof(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    pprof::write(stacks, style.realtime_offset, out);
}

/// speedscope's format.
pub fn json(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    json::write(stacks, style.by, out);
}
