//! Probes that are added to a session that runs, and taken away from it.
//!
//! ```text
//! front end: Live::prepare ─► program, scratch buffers, rings; attached, and stopped ─► Prepared
//! drain thread: join ─► its rings are drained from now on, and the switch says what the session's says
//!               leave ─► the switch says stop; a thread detaches; what was counted stays, the rings go
//! ```
//!
//! The front end keeps the capabilities that attaching takes, and is not late for any ring while the verifier works.

use super::Kernel;
use super::probes::{AttachedProbe, Kit, Outlet};
use super::programs::Later;
use super::ring_set::{self, RingSet};
use crate::moved::Agents;
use bpf::syscalls::session_switch::STOPPED;
use engine::control::{Order, Preparer};
use engine::error::Result;
use engine::request::enabling::Enabling;
use engine::request::probe_enabling::ProbeEnabling;
use std::any::Any;
use std::sync::Arc;
use sys::bpf::map::Map;

/// What a session that runs needs for further probes.
pub struct Live {
    pub(super) later: Later,
    pub(super) tasks: Arc<Map>,
    /// Kept, because programs are made with their descriptors.
    pub(super) _maps: Arc<Vec<Map>>,
    pub(super) cpus: u32,
    /// Bytes of a ring, as asked for.
    pub(super) buffer: usize,
    /// Ring sets so far.
    pub(super) sets: usize,
    /// The kernel takes programs that write rings themselves.
    pub(super) own_rings: bool,
}

/// A probe that is attached and waits to join the session.
struct Prepared {
    probe: AttachedProbe,
    rings: RingSet,
}

impl Preparer for Live {
    fn prepare(&mut self, mut order: Order) -> Result<Order> {
        if let Order::Enable(enabled) = &mut order {
            let attach = || enabled.new_probes().map(|(id, e)| self.attach(id, e)).collect::<Result<Vec<_>>>();
            enabled.prepared.extend(sys::caps::with(sys::caps::TO_ATTACH, attach)?.into_iter().flatten());
        }
        Ok(order)
    }
}

impl Live {
    fn attach(&mut self, id: u32, enabling: &ProbeEnabling) -> Result<Option<Box<dyn Any + Send>>> {
        let size = ring_set::share(self.buffer, self.sets + 1);
        self.later.session.switch = Some(STOPPED);
        let Later { offsets, session, functions, tables, .. } = &self.later;
        let (cpus, own_rings) = (self.cpus, self.own_rings);
        let agents = &Agents::default();
        let left_out = None;
        let kit =
            Kit { tasks: &self.tasks, offsets, session, functions, tables: *tables, agents, cpus, own_rings, left_out };
        let mut probe = AttachedProbe::load((id, enabling), kit, Outlet::Own(size), (0, true))?;
        let made = probe.as_mut().and_then(|p| p.made.take());
        let Some((probe, rings)) = probe.zip(made) else { return Ok(None) };
        self.sets += 1;
        Ok(Some(Box::new(Prepared { probe, rings })))
    }
}

impl Kernel {
    /// Takes a probe into the session.
    pub(super) fn join(&mut self, prepared: Box<dyn Any + Send>) {
        let Ok(prepared) = prepared.downcast::<Prepared>() else { return };
        let Prepared { mut probe, rings } = *prepared;
        probe.rings = (self.loaded.sets.len(), true);
        probe.begin();
        probe.switch(self.held.word());
        self.loaded.sets.push(rings);
        self.loaded.probes.push(probe);
    }

    /// Takes the probes that are enabled no more out of the session: they count and record nothing from now on.
    pub(super) fn leave(&mut self, all: &[Enabling]) {
        let is_removed = |p: &&mut AttachedProbe| all.get(p.id as usize).is_some_and(|e| e.removed);
        self.loaded.probes.iter_mut().filter(is_removed).for_each(AttachedProbe::disable);
    }

    /// Frees the rings of probes that have been detached since.
    pub(super) fn free_rings(&mut self) {
        let loaded = &mut self.loaded;
        for probe in &mut loaded.probes {
            if probe.is_detached()
                && let Some(set) = loaded.sets.get_mut(probe.rings.0).filter(|_| probe.rings.1)
                && set.is_drained()
            {
                probe.unload();
                set.free();
            }
        }
    }
}
