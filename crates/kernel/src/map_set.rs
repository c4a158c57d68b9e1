//! The maps of the programs of calls and tasks: task storage, scratch buffers, rows, rings.

use super::buffers::Buffers;
use super::ring::Ring;
use super::{rings_of_calls, switch, tables};
use bpf::scratch::Shape;
use bpf::syscalls::{Maps, Slots, state};
use engine::plan::Plan;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::map::{Map, Values};
use sys::bpf::prog::btf_load;
use sys::bpf::ring::Ring as KernelRing;
use sys::processors;

/// The maps of the programs of calls and tasks.
pub struct MapSet {
    pub tasks: Map,
    /// Slots for the words of calls: 2 to this power.
    pub slots: Option<(Map, u32)>,
    shape: Shape,
    /// Bytes of a ring.
    ring_size: usize,
    pub cpus: u32,
    /// scratch, rows, switches.
    pub others: Vec<Map>,
    pub ring_maps: Vec<Map>,
}

/// The number of slots, as a power of 2: 256 threads share few of them, and all take 900 KB.
const SLOTS: u32 = 12;

impl MapSet {
    /// `own`: programs write their rings themselves. `slots`: calls pass where the registers' address says whose they are.
    pub fn make(plan: &Plan, own: bool, slots: bool) -> io::Result<MapSet> {
        let cpus = processors::possible()?.into_iter().max().unwrap_or(0) + 1;
        let (blob, key, value) = sys::btf::build::value_types("trapline_state", state::SIZE);
        let types = btf_load(&blob).map_err(|e| e.error)?;
        let tasks = Map::task_storage("trapline_tasks", types.as_fd(), key, value, state::SIZE)?;
        let slots = slots.then(|| {
            let bits = plan.slots.unwrap_or(SLOTS);
            let entries = Slots { map: 0, bits }.entries(cpus);
            Ok::<_, io::Error>((Map::array("trapline_slots", state::SLOT, entries, 0)?, bits))
        });
        let slots = slots.transpose()?;
        let ring_size = rings_of_calls::size(plan);
        let shape = rings_of_calls::shape(ring_size).filter(|_| own).unwrap_or(Shape::CALLS);
        let kernels = if shape.has_rings() { 0 } else { cpus };
        let ring_maps =
            (0..kernels).map(|_| Map::ring("trapline_ring", ring_size as u32)).collect::<io::Result<_>>()?;
        let scratch = Buffers::map("trapline_scrat", shape, cpus)?;
        let (rows, switches) = tables::make(plan)?;
        Ok(MapSet { tasks, slots, shape, ring_size, cpus, others: vec![scratch, rows, switches], ring_maps })
    }

    /// The rows that a session which takes orders may change.
    pub fn open_to_orders(&self, plan: &Plan) -> io::Result<Option<Values>> {
        let [_, rows, _] = &self.others[..] else { unreachable!("made with three") };
        plan.named.then(|| rows.mmap()).transpose()
    }

    /// Writes the rows and switches of the plan's calls.
    pub fn fill(&self, plan: &Plan) -> io::Result<()> {
        let [_, rows, switches] = &self.others[..] else { unreachable!("made with three") };
        tables::fill(plan, rows, switches)
    }

    /// Maps the scratch buffers and the rings, which takes a while for every page: programs can be loaded before.
    pub fn rings(&self, plan: &Plan) -> io::Result<(Buffers, Vec<Ring>)> {
        let [scratch, _, _] = &self.others[..] else { unreachable!("made with three") };
        let buffers = Buffers::of(scratch, self.shape, self.cpus, switch::first(plan))?;
        let rings = match self.shape.has_rings() {
            true => buffers.rings(self.ring_size)?,
            false => {
                self.ring_maps.iter().map(|map| KernelRing::new(map).map(Ring::Kernel)).collect::<io::Result<_>>()?
            }
        };
        Ok((buffers, rings))
    }

    pub fn descriptors(&self) -> Maps {
        let fd = |m: &Map| m.as_fd().as_raw_fd();
        let [buffers, rows, switches] = &self.others[..] else { unreachable!("made with three") };
        Maps {
            tasks: fd(&self.tasks),
            scratch: fd(buffers),
            shape: self.shape,
            rings: self.ring_maps.iter().map(fd).collect(),
            rows: fd(rows),
            row_count: rows.entries() as i32,
            switches: fd(switches),
            stacks: None,
            slots: self.slots.as_ref().map(|(map, bits)| Slots { map: fd(map), bits: *bits }),
        }
    }
}
