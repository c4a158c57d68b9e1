//! Everything over time from the command line.

use super::calls;
use crate::ask::Ask;
use crate::show::Shown;
use crate::spans;
use ctf::trace::Trace;
use engine::Result;
use std::io;
use std::sync::Arc;
use views::advance::Advance;
use views::calls::Demangle;
use views::timeline::{Timeline, Writer};
use views::trace_stats::TraceStats;

/// What writes a picture for the file that it goes to, and how functions are called in it where nobody has said it.
pub type How = (fn(Option<&str>) -> Writer, Demangle);

/// A picture of traces, with what is known of them.
///
/// # Errors
/// The options are none that it has.
pub fn shown(
    ask: &Ask,
    (writer, names): How,
    file: Option<&str>,
    (traces, stats): (&[&Trace], TraceStats),
    advance: &Arc<Advance>,
) -> Result<Shown> {
    let (columns, _) = sys::process::terminal_size(&io::stdout()).unwrap_or((100, 24));
    let names = calls::named(calls::demangle(ask, names));
    let stats = if ask.trace.follow { stats.followed() } else { stats };
    let picture = Timeline::new(stats, writer(file)).functions(calls::selection(ask)?, names);
    let picture = picture.columns(columns.into()).advance(Arc::clone(advance));
    Ok(Shown::table(Box::new(spans::with(ask, traces, picture)?)))
}
