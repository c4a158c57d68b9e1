//! A clock whose program walks the user stacks of one group's processes, by the tables of an unwinder.

use bpf::unwind::{UserStacks, area};
use bpf::{Alu, Assembler, Cond, Helper, Reg::*, Size};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use sys::bpf::link::Link;
use sys::bpf::map::Map;
use sys::bpf::prog::{Program, ProgramKind, ProgramSpec, btf_load};
use sys::bpf::ring::Ring;
use sys::btf::KernelBtf;
use sys::perf::attach::{Rate, profile};
use unwind::{Ended, Frame, Record};

use kernel::unwinder::{Maps, Unwinder};

/// What is before the record: u64 process and thread, u64 flags of the task, the name.
const HEAD: i32 = 32;
/// `PF_EXITING` (include/linux/sched.h).
const EXITING: u64 = 4;

/// A sample.
#[derive(Clone, Debug)]
pub struct Sample {
    pub pid: u32,
    pub comm: String,
    /// The thread is past the beginning of its end.
    pub exiting: bool,
    pub ended: Ended,
    pub guessed: u32,
    pub frames: Vec<Frame>,
}

pub struct Sampler {
    ring: Ring,
    _links: Vec<Link>,
    _kept: (Map, Map, Program, Arc<Maps>),
}

impl Sampler {
    /// Samples the processes of a group, or all.
    pub fn start(unwinder: &Unwinder, btf: &KernelBtf, group: Option<u32>, rate: Rate) -> Sampler {
        let cpus = sys::processors::possible().unwrap().last().unwrap() + 1;
        let buffers = Map::array("tl_area", HEAD as u32 + area::SIZE as u32, cpus, 0).unwrap();
        let ring = Map::ring("tl_ring", 1 << 24).unwrap();
        let flags = btf.field_of("task_struct", &["flags"]).unwrap().offset as i32;
        let mut a: Assembler = Assembler::new();
        let out = a.new_label();
        let stacks = UserStacks::new(&mut a, unwinder.tables());
        if let Some(group) = group {
            a.call(Helper::GetCurrentUidGid);
            a.alu(Alu::Rsh, R0, 32);
            a.jump_if(Cond::Ne, R0, group as i32, out);
        }
        a.call(Helper::GetSmpProcessorId);
        a.store(Size::W, R10, -4, R0);
        a.map_fd(R1, buffers.as_fd().as_raw_fd());
        a.mov(R2, R10);
        a.alu(Alu::Add, R2, -4);
        a.call(Helper::MapLookup);
        a.jump_if(Cond::Eq, R0, 0, out);
        a.mov(R6, R0);
        // The record is behind the area's other fields: what is sent begins before it.
        a.mov(R9, R6);
        a.alu(Alu::Add, R9, area::SIZE as i32);
        match sys::proc::pid_namespace() {
            None => {
                a.call(Helper::GetCurrentPidTgid);
                a.mov(R7, R0);
            }
            Some((device, inode)) => {
                a.constant(R1, device);
                a.constant(R2, inode);
                a.mov(R3, R10);
                a.alu(Alu::Add, R3, -16);
                a.mov(R4, 8);
                a.call(Helper::GetNsCurrentPidTgid);
                a.jump_if(Cond::Ne, R0, 0, out);
                a.load(Size::W, R7, R10, -12);
                a.alu(Alu::Lsh, R7, 32);
            }
        }
        a.store(Size::D, R9, 0, R7);
        a.call(Helper::GetCurrentTask);
        a.mov(R3, R0);
        a.alu(Alu::Add, R3, flags);
        a.mov(R1, R9);
        a.alu(Alu::Add, R1, 8);
        a.store(Size::D, R9, 8, 0);
        a.mov(R2, 4);
        a.call(Helper::ProbeReadKernel);
        a.mov(R1, R9);
        a.alu(Alu::Add, R1, 16);
        a.mov(R2, 16);
        a.call(Helper::GetCurrentComm);
        a.alu(Alu::Rsh, R7, 32);
        a.mov(R1, R6);
        a.mov(R2, R7);
        stacks.call(&mut a);
        a.map_fd(R1, ring.as_fd().as_raw_fd());
        a.mov(R2, R6);
        a.alu(Alu::Add, R2, i32::from(area::RECORD));
        a.mov(R3, unwind::stack::RECORD as i32 + HEAD);
        // BPF_RB_NO_WAKEUP
        a.mov(R4, 1);
        a.call(Helper::RingbufOutput);
        a.bind(out);
        a.mov(R0, 0);
        a.exit();
        stacks.finish(&mut a);
        let source = a.finish().unwrap();
        let (blob, main, callback) = sys::btf::build::program_types();
        let types = btf_load(&blob).unwrap();
        let ids = std::iter::once(main).chain(std::iter::repeat(callback));
        let pair = |(at, id): (&usize, u32)| [(*at as u32).to_ne_bytes(), id.to_ne_bytes()].concat();
        let records: Vec<u8> = source.functions().iter().zip(ids).flat_map(pair).collect();
        let insns = source.bytes();
        let mut spec = ProgramSpec::new(ProgramKind::PerfEvent, "tl_clock", &insns);
        spec.functions = Some((types.as_fd(), &records));
        let program = Program::load(&spec).unwrap_or_else(|e| panic!("{e}\n{}", e.log));
        let cpus = sys::processors::online().unwrap();
        let links = cpus.into_iter().map(|c| Link::perf(&program, profile(c, rate).unwrap(), 0).unwrap()).collect();
        Sampler { ring: Ring::new(&ring).unwrap(), _links: links, _kept: (buffers, ring, program, unwinder.maps()) }
    }

    /// The samples since the last call.
    pub fn take(&mut self) -> Vec<Sample> {
        let mut all = Vec::new();
        self.ring.drain(|bytes| {
            let (record, head) = bytes.split_at(unwind::stack::RECORD);
            let word = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().unwrap());
            let record = Record::parse(record).unwrap();
            let comm = head[16..32].split(|b| *b == 0).next().unwrap();
            all.push(Sample {
                pid: (word(0) >> 32) as u32,
                comm: String::from_utf8_lossy(comm).into_owned(),
                exiting: word(8) & EXITING != 0,
                ended: record.ended,
                guessed: record.guessed,
                frames: record.frames().collect(),
            });
        });
        all
    }
}
