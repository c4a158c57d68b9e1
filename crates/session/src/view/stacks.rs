//! `--as VIEW[=FILE]` of profiles, and the table that is drawn again and again on a terminal.

use super::screen::Clocks;
use super::{Form, Kind, Make};
use crate::ask::Ask;
use crate::output::Output;
use engine::{Error, Result};
use std::io;
use views::profile::calltree::CallTree;
use views::profile::flame::Flame;
use views::profile::functions::Sort;
use views::profile::lens::Lens;
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
    lens: Lens,
    least: u64,
    /// The heading of graphs.
    pub title: String,
    realtime_offset: i64,
}

impl Style {
    /// What the command line asks for.
    ///
    /// # Errors
    /// Of a number that is none.
    pub fn of(ask: &Ask, title: String, clocks: Clocks) -> Result<Style> {
        let (lens, least) = lens(ask)?;
        Ok(Style {
            lens,
            least,
            by: ask.profile.group.as_deref().and_then(By::parse).unwrap_or_default(),
            sort: ask.profile.order.as_deref().and_then(Sort::parse).unwrap_or_default(),
            rows: ask.table.rows.map(|n| n as usize),
            icicle: ask.profile.icicle,
            title,
            realtime_offset: clocks.realtime_offset,
        })
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

    /// The tree; on a terminal its lines are cut.
    fn tree(&self, bottom_up: bool, terminal: bool) -> CallTree {
        CallTree {
            bottom_up,
            lens: self.lens.clone(),
            by: self.by,
            least: self.least,
            rows: self.rows.unwrap_or(usize::MAX),
            width: if terminal { size().0 } else { usize::MAX },
        }
    }

    /// The graph.
    pub fn flame(&self) -> Flame {
        Flame { title: self.title.clone(), by: self.by, icicle: self.icicle }
    }
}

/// What of stacks is shown, and from how many thousandths of the whole on nodes of trees are.
///
/// # Errors
/// Of a share that is none.
pub fn lens(ask: &Ask) -> Result<(Lens, u64)> {
    const LEAST: u64 = 5;
    let asked = &ask.lens;
    let limit = asked.percent_limit.as_ref().map(|text| {
        let number = text.trim_end_matches('%').parse::<f64>().ok().filter(|n| (0.0..=100.0).contains(n));
        let bad = || Error::usage(format!("--percent-limit {text}"), "not a share of a whole", "for instance 2 or 0.5");
        number.map(|n| (n * 10.0).round() as u64).ok_or_else(bad)
    });
    let by_thread = ask.profile.group.as_deref() == Some("thread");
    let lens = Lens {
        hide: asked.hide.clone(),
        no_inline: asked.no_inline,
        focus: asked.focus.clone(),
        join_numbered: !by_thread,
    };
    Ok((lens, limit.transpose()?.unwrap_or(LEAST)))
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
        style.lens.whole(stacks, |seen| redraw(&style.table(true).screen(seen, rows), &mut text));
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
    style.lens.whole(stacks, |seen| style.table(terminal).write(seen, out));
}

/// Functions below their callers.
pub fn calltree(stacks: &Stacks, style: &Style, terminal: bool, out: &mut Vec<u8>) {
    style.tree(false, terminal).write(stacks, out);
}

/// Functions below what they call.
pub fn bottom_up(stacks: &Stacks, style: &Style, terminal: bool, out: &mut Vec<u8>) {
    style.tree(true, terminal).write(stacks, out);
}

/// Lines of stacks.
pub fn folded(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| folded::write(seen, style.by, out));
}

/// A flame graph.
pub fn flame(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| style.flame().write(seen, out));
}

/// pprof's format.
pub fn pprof(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| pprof::write(seen, style.realtime_offset, out));
}

/// speedscope's format.
pub fn json(stacks: &Stacks, style: &Style, _: bool, out: &mut Vec<u8>) {
    style.lens.whole(stacks, |seen| json::write(seen, style.by, out));
}
