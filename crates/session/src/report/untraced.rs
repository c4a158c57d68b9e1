//! What a report prints about programs that ran without the agent: a line for each reason, as the recording printed it.

use collector::untraced::{Gap, Gaps, STREAM};
use ctf::trace::Trace;
use events::Event;
use events::generated::P_UNTRACED;

/// The lines; none where every program was traced.
pub fn lines(trace: &Trace) -> Vec<String> {
    let mut gaps = Gaps::default();
    let mut events = trace.data.events_of(&trace.known, STREAM);
    while let Some((bytes, _)) = events.next() {
        let Ok(ev) = Event::parse(bytes) else { continue };
        if ev.schema.id == P_UNTRACED.id {
            let why = String::from_utf8_lossy(ev.bytes_of("why")).into_owned();
            gaps.note(&Gap { pid: ev.pid() as i32, path: ev.bytes_of("path").to_vec(), why });
        }
    }
    gaps.lines()
}
