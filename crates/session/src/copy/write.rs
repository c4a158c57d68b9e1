//! A packed copy of a trace, without the texts that `--redact` is about.
//!
//! ```text
//! events, in order ─► their stacks' functions, and which calls the recording's filter had rejected
//! streams, names of functions, what is said of the trace ─► rules ─► NEW
//! ```

use super::said;
use crate::ask::Ask;
use crate::pack::{AllStacks, packs_of};
use crate::redact;
use crate::report::traces::selected_of;
use ctf::folder::reason;
use ctf::rewrite::Rewrite;
use ctf::store::Dir;
use ctf::trace::Trace;
use engine::pipeline::pump::{Flow, Sink};
use engine::pipeline::recorder::identity;
use engine::pipeline::selection::Selection;
use engine::pipeline::world::World;
use engine::redact::Redact;
use engine::resolver::{AsShown, Packed, Texts};
use engine::{Error, Result};
use events::Event;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::rc::Rc;

/// Time, thread and class of a call.
type Key = (u64, u32, u16);

/// Writes the copy.
pub fn write(ask: &Ask, trace: &Trace, to: &Path) -> Result<Vec<Packed>> {
    let rules = redact::rules(ask)?;
    let rejected = Rc::default();
    let (selection, _) = selected_of(ask, trace)?;
    let packed = packs_of(ask, trace, Box::new(Seen { selection, rejected: Rc::clone(&rejected) }))?;
    let nothing = Redact::default();
    let shown = AsShown(rules.as_deref().unwrap_or(&nothing));
    let mut texts = Texts::new(&shown);
    let (env, end) = match &rules {
        Some(_) => (said::env(trace, &shown), said::end(trace, &shown)),
        None => (trace.metadata.env.clone(), trace.end.clone()),
    };
    let failed = |what: &Path, why: String| {
        Error::failed(
            format!("-o {}", what.display()),
            why,
            "choose a directory that does not exist yet, where you may write",
        )
    };
    let cannot = |e: io::Error| failed(to, reason(&e));
    let dir = Dir::create(to, sys::process::euid()).map_err(cannot)?;
    let rejected = rejected.borrow();
    let mut keeps = |ev: &Event<'_>| {
        texts.note(ev);
        rules.is_none() || !rejected.contains(&key(ev))
    };
    let written = Rewrite { trace, rules: &shown, uuid: identity()?, env, end }.write(dir, &mut keeps);
    written.map_err(cannot)?;
    let packs = texts.packs(&trace.dir, &packed);
    let packs: Vec<(&str, &[u8])> = packs.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    ctf::packs::write(to, sys::process::euid(), &packs).map_err(|why| failed(to, why))?;
    Ok(packed)
}

fn key(ev: &Event<'_>) -> Key {
    (ev.time(), ev.tid(), ev.schema.id)
}

/// Asks for the functions of every stack, and finds the calls that the recording's filter has rejected: they are there for names of
/// descriptors, and the copy has no filter that would hide them.
struct Seen {
    selection: Selection,
    rejected: Rc<RefCell<HashSet<Key>>>,
}

impl Sink for Seen {
    fn event(&mut self, ev: &Event<'_>, world: &World) -> Result<Flow> {
        if ev.is_syscall() && !self.selection.filters.iter().all(|filter| filter.passes(ev, world.whole())) {
            self.rejected.borrow_mut().insert(key(ev));
        }
        AllStacks.event(ev, world)
    }

    fn has_written(&self) -> bool {
        false
    }
}
