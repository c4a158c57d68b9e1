//! Which clauses of a script run in the kernel: those that collect in maps, and read only what programs have.
//!
//! ```text
//! clauses that may ─► of each probe all its clauses, or none ─► maps that no other clause of an event uses ─┐
//!        ▲                                                                                                  │
//!        └────────────────────────────────── without those that use other maps ◄────────────────────────────┘
//! ```
//!
//! What they have collected is added to the executor's maps before a clause of the script itself reads these: `begin`, `end`, intervals.

use super::catalogue::As;
use super::places::{Places, register};
use super::seen::{Get, field_of, gets};
use engine::Result;
use engine::provider::ArgLocation;
use engine::request::collecting::{
    Clause, Collected, Collecting, From, Number, Taken, bytes_of, can_collect, is_readable, layout,
};
use engine::request::enabling::{Enabling, What};
use engine::request::probe_enabling::{Number as Argument, ProbeEnabling, Read as Memory, ReadWhat, Script, Source};
use engine::rights;
use events::Extent;
use events::dynamic::Field;
use events::types::{Fmt, Int, Len, LenFrom, StrKind, Type as FieldType};
use lang::script::Program;
use lang::script::ir::{Kind, Leaf, What as Read};
use lang::script::types::Space;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The clauses of an enabling.
struct Of {
    /// Its number in the list.
    nth: usize,
    clauses: Vec<Clause>,
}

/// Has clauses run in the kernel, where they can: the enablings of their probes report no events then.
pub fn assign(program: &Arc<Program>, places: &Places, enablings: &mut [Enabling]) -> Option<Arc<Collected>> {
    let mut all: Vec<Of> = Vec::new();
    for (nth, enabling) in enablings.iter().enumerate() {
        if let What::Probe(probe) = &enabling.what
            && let Some(clauses) = clauses_of(program, places, probe, from, |c| {
                can_collect(program, c) && may_drop_keys(program, probe, c)
            })
        {
            all.push(Of { nth, clauses });
        }
    }
    // Clauses that also run for what is no such enabling see events.
    let names = |of: &Of| match &enablings[of.nth].what {
        What::Probe(probe) => probe.classes().iter().map(|s| s.probe().into_owned()).collect(),
        _ => Vec::new(),
    };
    loop {
        let covered: BTreeSet<String> = all.iter().flat_map(names).collect();
        let elsewhere = |clause: usize| {
            let runs = |runs: &[(As, usize)]| runs.iter().any(|run| run.1 == clause);
            places.probes.iter().any(|(name, all)| !covered.contains(name) && runs(all))
                || places.functions.iter().any(|(_, run)| run.1 == clause)
                || places.intervals.iter().any(|(_, c)| *c == clause)
                || places.objects.iter().any(|(_, c)| *c == clause)
                || places.begin.contains(&clause)
                || places.end.contains(&clause)
                || places.signals.contains(&clause)
        };
        let inside: BTreeSet<usize> = all.iter().flat_map(|of| of.clauses.iter().map(|c| c.number)).collect();
        let of_events =
            |clause: usize| !inside.contains(&clause) && !program.clauses[clause].points.iter().all(|p| p.is_own());
        let others = (0..program.clauses.len()).filter(|c| of_events(*c));
        let taken: BTreeSet<usize> = others.flat_map(|c| program.clauses[c].maps.iter().copied()).collect();
        let before = all.len();
        all.retain(|of| {
            of.clauses
                .iter()
                .all(|c| !elsewhere(c.number) && program.clauses[c.number].maps.iter().all(|m| !taken.contains(m)))
        });
        if all.len() == before {
            break;
        }
    }
    if all.is_empty() {
        return None;
    }
    let numbers: BTreeSet<usize> = all.iter().flat_map(|of| of.clauses.iter().map(|c| c.number)).collect();
    let numbers: Vec<usize> = numbers.into_iter().collect();
    let used: BTreeSet<usize> = numbers.iter().flat_map(|c| program.clauses[*c].maps.iter().copied()).collect();
    let maps = (0..program.maps.len()).map(|m| used.contains(&m) && layout(&program.maps[m]).is_some()).collect();
    let collected = Arc::new(Collected::new(Arc::clone(program), &numbers, maps));
    for of in all {
        if let What::Probe(probe) = &mut enablings[of.nth].what
            && let Some(probe) = Arc::get_mut(probe)
        {
            probe.collects = Some(Collecting { collected: Arc::clone(&collected), clauses: of.clauses });
        }
    }
    Some(collected)
}

/// Whether a clause may use its maps at a probe. The kernel does not guard the lock of a map that drops keys against programs that run
/// while it is held (raw_spin_lock_irqsave in kernel/bpf/bpf_lru_list.c): those of counters' interrupts, of the tracepoints of locks, and of functions
/// that take locks or keep the map.
fn may_drop_keys(program: &Program, probe: &ProbeEnabling, clause: &Clause) -> bool {
    const WITHIN: [&str; 6] = ["hardware:", "contention_", "spin_", "tracepoint:lock:", "lru", "htab"];
    let drops = program.clauses[clause.number].maps.iter().any(|m| program.maps[*m].drops_keys());
    !drops || probe.classes().iter().all(|class| WITHIN.iter().all(|part| !class.probe().contains(part)))
}

/// The clauses of an enabling, if all of them fit, with values from there.
pub(super) fn clauses_of(
    program: &Program,
    places: &Places,
    probe: &ProbeEnabling,
    from: impl Fn((&Leaf, &Get)) -> From,
    fits: impl Fn(&Clause) -> bool,
) -> Option<Vec<Clause>> {
    // What a span is is known at its end: no program of one place has it.
    let is_of_one_place = probe.point.as_ref().is_some_and(|p| p.extent() == Extent::Point);
    if !is_of_one_place || probe.filter.is_some() || probe.anonymous {
        return None;
    }
    let (first, others) = probe.classes().split_first()?;
    let runs = places.probes.get(first.probe().as_ref()).filter(|runs| !runs.is_empty())?;
    if others.iter().any(|s| places.probes.get(s.probe().as_ref()) != Some(runs)) {
        return None;
    }
    let aliases = places.aliases_of(&first.probe());
    let clause = |(role, number): &(As, usize)| {
        let leaves = &program.clauses.get(*number).filter(|_| *role == As::Whole)?.leaves;
        let found = gets(leaves, &program.hoisted, first, *role, aliases);
        let clause = Clause { number: *number, leaves: leaves.iter().zip(&found).map(&from).collect() };
        fits(&clause).then_some(clause)
    };
    runs.iter().map(clause).collect()
}

/// Where a program has a value.
fn from((leaf, get): (&Leaf, &Get)) -> From {
    match (&leaf.what, get) {
        (Read::Value("comm"), _) => From::Comm,
        (Read::Value("pid"), _) => From::Pid,
        (Read::Value("tid"), _) => From::Tid,
        (Read::Value("uid"), _) => From::Uid,
        (Read::Value("gid"), _) => From::Gid,
        (Read::Value("curtask"), _) => From::Task,
        (Read::Value("ctx"), _) => From::Context,
        (Read::Value("jiffies"), _) => From::Jiffies,
        (Read::Value("numaid"), _) => From::Numa,
        (Read::Value("cgroup"), _) => From::Cgroup,
        (Read::Kind("nsecs", of), _) if of == "boot" => From::Boot,
        (Read::Kind("nsecs", of), _) if of == "tai" => From::Tai,
        (Read::Value("cpu"), _) => From::Cpu,
        (_, Get::Named("nsecs")) => From::Nsecs,
        (Read::Memory(n), _) => From::Memory(*n),
        (_, Get::Arg(i) | Get::Pointed(i)) => From::Field(*i),
        _ => From::Nothing,
    }
}

/// Has the programs of probes read the registers that their clauses want, and the addresses of symbols: a field for each.
///
/// # Errors
/// Too many classes of events.
pub fn read_registers(program: &Program, places: &Places, enablings: &mut [Enabling]) -> Result<()> {
    for enabling in enablings {
        if let What::Probe(probe) = &mut enabling.what
            && let Some(probe) = Arc::get_mut(probe)
            && let Some(point) = probe.point.as_ref().filter(|_| !probe.anonymous)
        {
            let mut fields: Vec<(Field, Source)> = Vec::new();
            let runs = probe.classes().first().and_then(|first| places.probes.get(first.probe().as_ref()));
            let clauses = runs.into_iter().flatten().filter_map(|(_, number)| program.clauses.get(*number));
            for leaf in clauses.flat_map(|c| &c.leaves) {
                let at = match &leaf.what {
                    Read::Register(name) => register(name).map(ArgLocation::Register),
                    Read::Address(_, name) => {
                        point.in_file().and_then(|file| file.distance(name)).map(ArgLocation::Distance)
                    }
                    _ => continue,
                };
                let name = field_of(&leaf.what).unwrap_or_default();
                if let Some(at) = at.filter(|_| fields.iter().all(|(f, _)| f.name != name)) {
                    let ty = FieldType::Int(Int { size: 8, signed: false, fmt: Fmt::Hex });
                    fields.push((Field { name, ty }, Source::Number(Argument { at, size: 8, signed: false })));
                }
            }
            if !fields.is_empty() {
                probe.extend(fields)?;
            }
        }
    }
    Ok(())
}

/// Has the programs of clauses that see events read the memory that these want: a field for each. Those of others are there if the kernel
/// refuses the program that collects.
///
/// # Errors
/// Too many classes of events.
pub fn read_memory(program: &Program, places: &Places, enablings: &mut [Enabling]) -> Result<()> {
    for enabling in enablings {
        if let What::Probe(probe) = &mut enabling.what
            && let Some(probe) = Arc::get_mut(probe)
            && probe.point.is_some()
        {
            let fields = fields_of(program, places, probe);
            if !fields.is_empty() {
                probe.extend(fields)?;
            }
        }
    }
    Ok(())
}

/// What the clauses of a probe read of memory: names, types and sources.
fn fields_of(program: &Program, places: &Places, probe: &ProbeEnabling) -> Vec<(Field, Source)> {
    let mut all = Vec::new();
    let Some(first) = probe.classes().first() else { return all };
    let aliases = places.aliases_of(&first.probe());
    for (role, number) in places.probes.get(first.probe().as_ref()).into_iter().flatten() {
        let Some(c) = program.clauses.get(*number) else { continue };
        let found = gets(&c.leaves, &program.hoisted, first, *role, aliases);
        let clause = Clause { number: *number, leaves: c.leaves.iter().zip(&found).map(from).collect() };
        for leaf in &c.leaves {
            let Read::Memory(n) = leaf.what else { continue };
            let is_there = all.iter().any(|(f, _): &(Field, Source)| f.name == program.hoisted[n].name);
            if is_there || probe.anonymous || !is_readable(program, &clause, n, rights::is_root()) {
                continue;
            }
            let name = program.hoisted[n].name.clone();
            let expr = &program.hoisted[n].expr;
            let mut add = |name: String, ty: FieldType, number: Number, read: Option<Memory>| {
                all.push((Field { name, ty }, Source::Script(Script { number: Arc::new(number), read })));
                u16::try_from(first.args.len() + all.len() - 1).ok()
            };
            let of_number = |signed: bool| FieldType::Int(Int { size: 8, signed, fmt: Fmt::Dec });
            let number = |number| Number { number, leaves: clause.leaves.clone() };
            match lang::script::hoist::Read::of(expr).filter(|_| expr.ty.as_int().is_none()) {
                None => {
                    let signed = expr.ty.as_int().is_some_and(|c| c.signed);
                    add(name, of_number(signed), number(expr.clone().int()), None);
                }
                Some(read) => {
                    let what = match bytes_of(program, &expr.ty) {
                        _ if matches!(expr.kind, Kind::Strings(..)) => ReadWhat::Strings,
                        Some(size) if !expr.ty.is_text() => ReadWhat::Bytes(size),
                        _ => ReadWhat::Text,
                    };
                    let ty = match what {
                        ReadWhat::Bytes(n) => FieldType::Bytes(Len { from: LenFrom::Const(n.into()), mul: 1, div: 1 }),
                        ReadWhat::Text => FieldType::Str(StrKind::Text),
                        ReadWhat::Strings => FieldType::Strv,
                    };
                    let length = read
                        .length
                        .map(|length| add(program.hoisted[n].name_of_length(), of_number(true), number(length), None));
                    let memory = Memory { of_process: read.space == Space::User, what, length: length.flatten() };
                    add(name, ty, number(read.address), Some(memory));
                }
            }
        }
    }
    all
}

/// What the kernel has collected since the last time: `each` gets maps and what they have held; why something could not be read.
pub fn taken(
    collected: &Collected,
    maps: impl Iterator<Item = usize>,
    mut each: impl FnMut(usize, Taken),
) -> Vec<String> {
    let mut failed = Vec::new();
    let maps: Vec<usize> = maps.filter(|m| collected.has(*m)).collect();
    for (map, taken) in maps.iter().copied().zip(collected.take_all(&maps)) {
        match taken {
            Ok(found) => found.into_iter().for_each(|taken| each(map, taken)),
            Err(e) => failed.push(format!("@{}: what it holds cannot be read: {e}", collected.script.maps[map].name)),
        }
    }
    failed
}
