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
use super::load::Later;
use super::probes::{AttachedProbe, Kit, Outlet};
use super::ring_set::{self, RingSet};
use crate::moved::Agents;
use bpf::syscalls::session_switch::STOPPED;
use engine::control::{Addition, Order, Preparer};
use engine::error::Result;
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
    fn prepare(&mut self, order: Order) -> Result<Order> {
        match order {
            Order::Enable(addition) => {
                sys::caps::with(sys::caps::TO_ATTACH, || self.attach(addition)).map(Order::Enable)
            }
            other => Ok(other),
        }
    }
}

impl Live {
    fn attach(&mut self, addition: Addition) -> Result<Addition> {
        let enabling = addition.enabling;
        let size = ring_set::share(self.buffer, self.sets + 1);
        self.later.session.switch = Some(STOPPED);
        let Later { offsets, session, functions, tables, .. } = &self.later;
        let (cpus, own_rings) = (self.cpus, self.own_rings);
        let agents = &Agents::default();
        let kit = Kit { tasks: &self.tasks, offsets, session, functions, tables: *tables, agents, cpus, own_rings };
        let mut probe = AttachedProbe::load(&enabling, kit, Outlet::Own(size), (0, true))?;
        let made = probe.as_mut().and_then(|p| p.made.take());
        let Some((probe, rings)) = probe.zip(made) else { return Ok(Addition { enabling, prepared: None }) };
        self.sets += 1;
        Ok(Addition { enabling, prepared: Some(Box::new(Prepared { probe, rings })) })
    }
}

impl Kernel {
    /// Takes a probe into the session.
    pub(super) fn join(&mut self, addition: Addition) {
        let Some(Ok(prepared)) = addition.prepared.map(|p| p.downcast::<Prepared>()) else { return };
        let Prepared { mut probe, rings } = *prepared;
        probe.rings = (self.loaded.sets.len(), true);
        probe.begin();
        probe.switch(self.held.word());
        self.loaded.sets.push(rings);
        self.loaded.probes.push(probe);
    }

    /// Takes a probe out of the session: it counts and records nothing from now on.
    pub(super) fn leave(&mut self, nth: usize) {
        if let Some(probe) = self.loaded.probes.get_mut(nth) {
            probe.disable();
        }
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
