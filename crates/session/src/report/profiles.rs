//! Profiles of recorded events.

use crate::ask::Ask;
use crate::show::Sinks;
use crate::view::screen::Clocks;
use crate::view::stacks::{self, Drawing};
use crate::{profile, spans};
use ctf::trace::Trace;
use engine::pipeline::selection::Selection;
use engine::{Error, Result};
use events::{Class, Schema};

/// Options of profiles.
const OF_PROFILES: &[crate::combinations::Name] = &[
    ("--unit", |ask| ask.profile.unit.is_some()),
    ("--off-cpu", |ask| ask.profile.off_cpu),
    ("--group", |ask| ask.profile.group.is_some()),
    ("--rows", |ask| ask.table.rows.is_some() && !spans::has_table(ask)),
    ("--order", |ask| ask.profile.order.is_some()),
    ("--icicle", |ask| ask.profile.icicle),
];

/// Refuses options of profiles in a report without a profile.
pub fn without_profile(ask: &Ask) -> Result<()> {
    match OF_PROFILES.iter().find(|(_, given)| given(ask)) {
        Some((option @ "--icicle", _)) => Err(Error::usage(*option, "it is for flame graphs", "add --as flame")),
        Some((option, _)) => {
            Err(Error::usage(*option, "it is for profiles", "add --as table, folded, flame, pprof or profile-json"))
        }
        None => Ok(()),
    }
}

/// What draws a profile of the selected events that have stacks, if there are views of one.
pub fn profile_of(
    ask: &Ask,
    trace: &Trace,
    selection: &Selection,
    drawings: Vec<Drawing>,
    clocks: Clocks,
) -> Result<Option<Sinks>> {
    if drawings.is_empty() {
        return Ok(None);
    }
    let classes = selected_classes(trace, selection);
    profile::has_selected_stacks(&trace.dir, &classes)?;
    let style = stacks::style(ask, trace.said("command"), clocks)?;
    Ok(Some(profile::sinks(ask, &classes, drawings, style, false)?))
}

/// The classes of the selected events of a trace.
pub fn selected_classes(trace: &Trace, selection: &Selection) -> Vec<&'static Schema> {
    let selected = |s: &&'static Schema| {
        if s.class == Class::Probe { selection.is_selected(s) } else { selection.calls.contains(s) }
    };
    trace.classes().filter(selected).collect()
}
