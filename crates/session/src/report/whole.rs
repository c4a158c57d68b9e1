//! What a report prints about the trace itself: whether it is still running, what was lost during the recording, what is missing. It does so
//! every time, and exits with 125 if recorded events are missing.

use super::untraced;
use crate::ask::Ask;
use crate::complain;
use ctf::end::End;
use ctf::trace::{Missing, Trace};
use engine::stats::NotCaptured;

/// The exit status of a report that is not of a whole trace.
pub const INCOMPLETE: u8 = 125;

/// Prints these lines, unless `-q` is given. Returns the exit status. `read` is how many events the whole trace had, if all of it
/// was read.
pub fn tell(ask: &Ask, trace: &Trace, read: Option<u64>) -> u8 {
    let lost = lines_of_loss(trace, read);
    if ask.quiet == 0 {
        let all = [lines_of_state(trace), lost.clone(), lines_of_recording(trace), untraced::lines(trace)].concat();
        all.iter().for_each(|line| complain(&format!("{}: {line}", trace.dir.display())));
    }
    let whole = trace.live || trace.is_whole() && lost.is_empty();
    if whole { 0 } else { INCOMPLETE }
}

/// Whether there is an end, and what else is in the directory.
fn lines_of_state(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    if trace.live {
        lines.push("the recording is still running (this is what has been written so far)".into());
    } else if trace.end.is_none() {
        lines.push("the end is missing: the recording was killed (this is what was written)".into());
    }
    let others = &trace.data.others;
    if others.count > 0 {
        lines.push(format!("ignored, because they are not part of this trace: {others}"));
    }
    if trace.data.doubled > 0 {
        lines.push(format!("{} packets are there twice, in copies of files; each was read once", trace.data.doubled));
    }
    lines
}

/// What the recorder wrote and is missing. Nothing is known while the recording is running.
fn lines_of_loss(trace: &Trace, read: Option<u64>) -> Vec<String> {
    let mut lines = Vec::new();
    if trace.live {
        return lines;
    }
    let truncated: u64 = trace.data.truncated.iter().map(|t| t.rest).sum();
    if truncated > 0 {
        let todo = "'trapline repair' removes them, for other readers";
        lines.push(format!("{truncated} bytes of incomplete packets were skipped ({todo})"));
    }
    if trace.data.unreadable.count > 0 {
        lines.push(format!("cannot be read: {}", trace.data.unreadable));
    }
    if !trace.missing.is_empty() {
        lines.push(format!("missing: {} (if the original has more, copy the trace again)", words(&trace.missing)));
    } else if let (Some(wanted), Some(read), 0) =
        (trace.end.as_ref().and_then(|e| e.events()), read, trace.data.damage().places)
        && read < wanted
    {
        // Only an end record of version 1 does not list it by stream.
        lines.push(format!(
            "missing: {} of {wanted} events (if the original has more, copy the trace again)",
            wanted - read
        ));
    }
    lines
}

/// Packets and events that are missing, by stream.
fn words(missing: &[Missing]) -> String {
    const SHOWN: usize = 3;
    let of = |m: &Missing| {
        let packets = if m.packets == 1 { "packet" } else { "packets" };
        let events = m.events.map(|n| format!(" with {n} events")).unwrap_or_default();
        format!("{} {packets} of {}{events}", m.packets, m.stream)
    };
    let mut parts: Vec<String> = missing.iter().take(SHOWN).map(of).collect();
    if missing.len() > SHOWN {
        parts.push(format!("and of {} more streams", missing.len() - SHOWN));
    }
    parts.join(", ")
}

/// Of the events that were dropped, those of trapline's own bookkeeping.
fn own_dropped(end: &End) -> u64 {
    let maps = end.streams.iter().filter(|s| s.name == "maps").map(|s| s.discarded.saturating_sub(s.unwritten));
    maps.chain([processes(&end.dropped)]).fold(0, u64::saturating_add)
}

/// The sum of what trapline keeps for itself, which are no events of enabled probes.
fn processes(counts: &[(String, u64)]) -> u64 {
    counts.iter().filter(|(probe, _)| probe.starts_with("process:")).fold(0, |sum, (_, n)| sum.saturating_add(*n))
}

/// `all` events in words, `own` of them trapline's own; `None` for no events.
fn counted(all: u64, own: u64) -> Option<String> {
    match (all.saturating_sub(own), own.min(all)) {
        (0, 0) => None,
        (0, own) => Some(format!("{own} of trapline's own events")),
        (n, 0) => Some(format!("{n} events")),
        (n, own) => Some(format!("{n} events and {own} of trapline's own")),
    }
}

/// What was lost while it was recorded, as the recorder has counted it.
fn lines_of_recording(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    let unwritten = trace.end.as_ref().map_or(0, |e| e.unwritten());
    let dropped = trace.discarded().saturating_sub(unwritten);
    let own = trace.end.as_ref().map_or(0, own_dropped);
    let dropped =
        counted(dropped, own).map(|n| format!("{n} were dropped while it was recorded (see --buffer and --on-full)"));
    lines.extend(dropped);
    if let Some(why) = trace.end.as_ref().and_then(|e| e.failed.as_deref()) {
        let own = trace.end.as_ref().map_or(0, |e| processes(&e.unwritten));
        lines.extend(counted(unwritten, own).map(|n| format!("{n} could not be written: {why}")));
    }
    let lost = trace.end.iter().flat_map(|e| &e.more).find_map(|line| NotCaptured::parse(line));
    lines.extend(lost.map(|lost| lost.words()));
    let old = trace.end.as_ref().and_then(|e| e.overwritten).unwrap_or(0);
    if old > 0 {
        lines.push(format!("{old} older events were overwritten by newer ones"));
    }
    lines
}
