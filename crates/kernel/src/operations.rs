//! Operations of io_uring: their maps, and the programs beside that of completions.

use super::attach::Way;
use super::attach::attempt::{Make, attach_somehow};
use super::attach::operation::At;
use super::functions::Functions;
use bpf::BtfOffsets;
use bpf::frame::Generated;
use bpf::probes::operations::{self, Arguments, From, Offsets, Plan};
use bpf::probes::{Field, Whose};
use bpf::syscalls::{Maps, Session};
use engine::error::Result;
use engine::provider::operations::{Kernel, OVERFLOWN, Operations, REFUSED};
use engine::request::probe_enabling::{ProbeEnabling, Source};
use events::Event;
use events::layout::CAP_NO_RESULT;
use lang::filter::Context;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use sys::bpf::link::Link;
use sys::bpf::map::Map;
use sys::bpf::prog::Program;

/// The operations of an enabling that are submitted and not completed, and what the programs are made from.
pub struct Pending {
    map: Map,
    /// Kept for the programs.
    _classes: Map,
    plan: Plan<'static>,
    kernel: Kernel,
    /// The programs beside that of completions.
    pub programs: Vec<Program>,
}

fn offsets(kernel: &Kernel) -> Offsets {
    let (request, ring) = (&kernel.request, &kernel.ring);
    Offsets {
        request: [request.opcode, request.ring, request.user_data],
        ring: [ring.flags, ring.array, ring.entries, ring.head, ring.count],
    }
}

impl Pending {
    /// The maps of an enabling whose events have these fields.
    pub fn new(of: &Operations, enabling: &ProbeEnabling, fields: Vec<Field>, whose: Whose) -> io::Result<Pending> {
        let schema = enabling.schema;
        let place = |name: &str| schema.arg(name).unwrap_or(usize::MAX);
        let mut plan = Plan {
            schema,
            fields,
            cqe_flags: place("cqe_flags"),
            path: place("addr"),
            whose,
            filter: enabling.filter.clone(),
            offsets: offsets(&of.kernel),
            pending: -1,
            classes: -1,
        };
        let map = Map::hash("trapline_ops", operations::KEY_SIZE, plan.value_size(), operations::MOST, 0)?;
        let classes = Map::array("trapline_opcode", 4, 256, 0)?;
        (plan.pending, plan.classes) = (map.as_fd().as_raw_fd(), classes.as_fd().as_raw_fd());
        // A string that is hidden is not read.
        let reads = !matches!(enabling.fields.get(plan.path), Some(Source::Hidden { .. }));
        for (opcode, word) in words(of, enabling, reads) {
            classes.update(&u32::from(opcode).to_le_bytes(), &word.to_le_bytes(), 0)?;
        }
        Ok(Pending { map, _classes: classes, plan, kernel: of.kernel.clone(), programs: Vec::new() })
    }

    /// What its scratch buffers are made for.
    pub fn shape(&self, offsets: &BtfOffsets) -> bpf::scratch::Shape {
        self.plan.shape(offsets)
    }

    /// The program of completions.
    pub fn completions(&self, maps: &Maps, offsets: &BtfOffsets, session: &Session) -> Generated {
        let arguments = if self.kernel.entry_by_address { Arguments::Entry } else { Arguments::Values };
        operations::complete(maps, offsets, session, &self.plan, arguments)
    }

    /// Loads and attaches the other programs: that of submissions last, so that no operation completes unseen that was seen before.
    pub fn attach(
        &mut self,
        (maps, offsets, session): (&Maps, &BtfOffsets, &Session),
        name: &str,
        functions: &Functions,
        made: impl Fn(Generated) -> std::result::Result<bpf::Program, super::attach::attempt::Refused>,
    ) -> Result<Vec<Link>> {
        let plan = &self.plan;
        let overflown = || operations::complete(maps, offsets, session, plan, Arguments::Overflown);
        let refused = || operations::submit(maps, offsets, session, plan, From::Refused);
        let submitted = || operations::submit(maps, offsets, session, plan, From::Submitted);
        let all: [(&'static str, &dyn Fn() -> Generated); 3] =
            [(OVERFLOWN, &overflown), (REFUSED, &refused), (self.kernel.submitted, &submitted)];
        let (mut links, mut programs) = (Vec::new(), Vec::new());
        for (tracepoint, make) in all {
            let ways: Vec<Box<dyn Way>> = vec![Box::new(At::new(tracepoint))];
            let make = |_: &dyn Way| made(make());
            let found = attach_somehow(&ways, name, functions, &[&make as &Make<'_>])?;
            links.extend(found.attached.links);
            programs.push(found.program);
        }
        self.programs = programs;
        Ok(links)
    }

    /// The events of the operations that have not completed, without a result: those that pass the filter, and how many do not.
    pub fn unfinished(&self, now: u64) -> (Vec<Vec<u8>>, u64) {
        let (mut events, mut rejected) = (Vec::new(), 0);
        // What cannot be read is not there any more.
        let _ = self.map.each(operations::MOST as usize, |_, value| {
            let Some(mut event) = self.plan.event_of(value).map(<[u8]>::to_vec) else { return };
            let Some(caps) = event.get(events::layout::CAP..).and_then(|b| b.first_chunk()).copied() else { return };
            let caps = u16::from_le_bytes(caps) | CAP_NO_RESULT;
            event[events::layout::CAP..][..2].copy_from_slice(&caps.to_le_bytes());
            event[..8].copy_from_slice(&now.to_le_bytes());
            let Ok(parsed) = Event::parse(&event) else { return };
            let passes = |f: &lang::Filter| f.matches(&parsed, &Context::default()).passes();
            match self.plan.filter.as_ref().is_none_or(passes) {
                true => events.push(event),
                false => rejected += 1,
            }
        });
        (events, rejected)
    }
}

/// The words of the opcodes that are wanted.
fn words(of: &Operations, enabling: &ProbeEnabling, reads: bool) -> Vec<(u8, u32)> {
    let class = |nth: usize| enabling.classes().get(nth).map_or(0, |s| s.id);
    let known: Vec<u8> = events::io_uring::operations().map(|(code, _)| code).collect();
    let mut words = Vec::new();
    for (nth, (opcode, path)) in of.opcodes.iter().zip(&of.paths).enumerate() {
        let word = operations::class_word(class(nth), *path && reads);
        match opcode {
            Some(code) => words.push((*code, word)),
            None => words.extend((0..=u8::MAX).filter(|code| !known.contains(code)).map(|code| (code, word))),
        }
    }
    words
}
