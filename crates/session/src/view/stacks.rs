//! `--as VIEW[=FILE]` of profiles, and the table that is drawn again and again on a terminal.

use super::screen::Clocks;
use super::{Form, Kind, Make};
use crate::ask::Ask;
use crate::output::Output;
use crate::view;
use engine::{Error, Result};
use std::io;
use views::profile::functions::Sort;
use views::profile::lens::Lens;
use views::profile::style::{Style, Terminal};
use views::profile::table::{Table, redraw};
use views::profile::{By, Stacks};

/// What the command line asks for.
///
/// # Errors
/// An option has an invalid number.
pub fn style(ask: &Ask, title: String, clocks: Clocks) -> Result<Style> {
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

/// What of stacks is shown, and from how many thousandths of the whole on nodes of trees are.
///
/// # Errors
/// `--percent-limit` has an invalid share.
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

/// The size of the terminal.
pub fn size() -> Terminal {
    let (columns, rows) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    (columns.into(), rows.into())
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
        Ok(Drawing { kind, output: view::open(kind, file)? })
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
            draw(stacks, style, self.output.is_terminal().then(size), &mut text);
        }
        self.write(&text)
    }

    /// Draws the screen over the one before.
    pub fn screen(&mut self, stacks: &Stacks, style: &Style) -> Result<()> {
        let (terminal, mut text) = (size(), Vec::new());
        style.lens.whole(stacks, |seen| redraw(&Table::of(style, Some(terminal)).screen(seen, terminal.1), &mut text));
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
