//! `--off-cpu`: how long threads were blocked, by the stacks with which they left the CPU.

use super::gather::Gather;
use engine::pipeline::world::World;
use events::Event;
use serde_json::Value;

/// Pairs what leaves a CPU with what comes back.
pub struct OffCpu {}

impl OffCpu {
    /// Learns from an event.
    pub fn event(&mut self, _ev: &Event<'_>, _world: &World, _gather: &mut Gather) {}
    /// The session has ended.
    pub fn end(&mut self, _gather: &mut Gather) {}
    /// What it lacks.
    pub fn tell(&self, _lines: &mut Vec<String>, _counters: &mut Value) {}
}
