//! BPF code for filters: straight-line comparisons with immediates, from `lang`'s typed filters. Numbers are [`crate::expr`]'s.
//!
//! ```text
//! [unknown values?] ─► cheapest part ─► … ─► costliest part ─► falls through: the event passes
//!                           └─► label of the part that rejects
//! ```
//!
//! Where values come from is up to the program around it: [`Places`]. Strings are read into [`Places::scratch`], only as far as it
//! takes to decide.
//!
//! Not here: what the operators mean; that is `lang::ir`, and a property compares the two.
//!
//! Invariant: no loop, no function, no instruction newer than Linux 5.5 (`bpf_probe_read_user_str`).

#[cfg(test)]
mod properties;
mod text;

use crate::asm::{Assembler, Label};
use crate::expr::{Generator, NoTemps, Source};
use crate::helper::Helper;
use crate::insn::{Alu, Reg, Reg::*};
use lang::ast::Cast;
use lang::filter::ir::{Leaf, Text, Value};
use lang::{Filter, Missing};

pub use crate::expr::{Place, words};

/// Where the bytes of a string argument are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// In the target, at the address that the argument is.
    User,
    /// In the kernel, at that address.
    Kernel,
    /// Copied already: at an offset from a register, NUL-terminated, with at least as many bytes as
    /// `lang::filter::NeededString::bytes` says. Of a string that could not be read there is a NUL, and the capture bits say so, if they are
    /// anywhere: in a word at an offset from a register, from a bit on.
    Copy(Reg, i16, Option<(Reg, i16, u8)>),
    /// Nowhere: the string is empty.
    Nowhere,
}

/// Where an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its register.
    pub value: Place,
    /// The string that it points to.
    pub bytes: Bytes,
}

/// Where the values of an event come from in the program that the code is put into.
#[derive(Clone, Debug)]
pub struct Places {
    /// Process.
    pub pid: Place,
    /// Thread.
    pub tid: Place,
    /// User.
    pub uid: Place,
    /// Group.
    pub gid: Place,
    /// Processor at entry.
    pub cpu: Place,
    /// Time of the event.
    pub nsecs: Place,
    /// Start of the call, in memory; none where it is not known.
    pub start: Option<Place>,
    /// Result; none where there is none.
    pub retval: Option<Place>,
    /// Arguments, by their index in the schema.
    pub args: Vec<Argument>,
    /// [`room`] bytes to read strings into, aligned to 8.
    pub scratch: (Reg, i16),
    /// Words to keep numbers in, aligned to 8, on the stack or elsewhere: the register, the offset of the first, how many.
    pub temps: (Reg, i16, usize),
}

/// Pid, tid, uid, gid, processor and time from the helpers, in the initial namespaces; no call, no arguments. To be filled in.
pub fn helpers(scratch: (Reg, i16), temps: (Reg, i16, usize)) -> Places {
    Places {
        pid: Place::High(Helper::GetCurrentPidTgid),
        tid: Place::Low(Helper::GetCurrentPidTgid),
        uid: Place::Low(Helper::GetCurrentUidGid),
        gid: Place::High(Helper::GetCurrentUidGid),
        cpu: Place::Low(Helper::GetSmpProcessorId),
        nsecs: Place::Whole(Helper::KtimeGetNs),
        start: None,
        retval: None,
        args: Vec::new(),
        scratch,
        temps,
    }
}

/// Where the code goes when an event does not pass.
#[derive(Clone, Debug)]
pub struct Exits {
    /// By part, as `lang::Filter::parts` numbers them. A label may be there twice.
    pub rejected: Vec<Label>,
    /// A value that the filter names is not known, or a string cannot be read.
    pub unknown: Label,
}

/// Why there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// [`Places`] does not say where this argument is.
    Argument(u8),
    /// [`Places::start`] is not in memory.
    Start,
    /// [`Places::retval`] is none.
    Result,
    /// The expression needs more than [`Places::temps`].
    Temps,
    /// [`Exits::rejected`] has fewer labels than the filter has parts.
    Exits,
    /// A string is searched: it may be longer than what can be read here.
    Search,
    /// Of a script: loops are nested more deeply than functions can be called back.
    Depth,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Argument(i) => write!(f, "argument {i} of the filter has no place"),
            Unfit::Start => f.write_str("the start of the call is not in memory"),
            Unfit::Result => f.write_str("the result of the call has no place"),
            Unfit::Temps => f.write_str("the filter is too complex for the kernel"),
            Unfit::Exits => f.write_str("a part of the filter has no exit"),
            Unfit::Search => f.write_str("the filter searches a string"),
            Unfit::Depth => f.write_str("it has more loops within one another than this kernel calls back"),
        }
    }
}
impl std::error::Error for Unfit {}

impl From<NoTemps> for Unfit {
    fn from(_: NoTemps) -> Unfit {
        Unfit::Temps
    }
}

/// How many bytes of [`Places::scratch`] the filter needs.
pub fn room(filter: &Filter) -> usize {
    let mut room = 0;
    for part in filter.parts() {
        part.cond.leaves(&mut |leaf| {
            if let Leaf::Test(t) = leaf {
                room = room.max(text::room(t));
            }
        });
    }
    room
}

/// Emits the filter. Control falls through where the event passes.
pub fn emit<E>(a: &mut Assembler<E>, filter: &Filter, places: &Places, exits: &Exits) -> Result<(), Unfit> {
    if missing(filter, places).is_some() {
        a.note("the filter names what is not known here");
        a.jump(exits.unknown);
        return Ok(());
    }
    emit_first(a, filter, filter.order().len(), places, exits)
}

/// Emits the first parts, in the order of evaluation. Everything that they name has a place.
pub fn emit_first<E>(
    a: &mut Assembler<E>,
    filter: &Filter,
    parts: usize,
    places: &Places,
    exits: &Exits,
) -> Result<(), Unfit> {
    let source = OfEvent { places, unknown: exits.unknown };
    let mut g = Generator { a, source: &source, temps: places.temps, depth: 0 };
    for &part in &filter.order()[..parts] {
        let p = &filter.parts()[part];
        g.a.note(format!("filter: {}", p.text.escape_debug()));
        g.branch(&p.cond, false, *exits.rejected.get(part).ok_or(Unfit::Exits)?)?;
    }
    Ok(())
}

/// The first value that the filter names and the program cannot know, if any.
pub fn missing(filter: &Filter, places: &Places) -> Option<Missing> {
    let needs = filter.needs();
    match (needs.retval && places.retval.is_none(), needs.start && places.start.is_none()) {
        (true, _) => Some(Missing::Retval),
        (_, true) => Some(Missing::Start),
        _ => None,
    }
}

/// The leaves of filters.
struct OfEvent<'p> {
    places: &'p Places,
    /// Where the code goes where a string cannot be read.
    unknown: Label,
}

impl OfEvent<'_> {
    fn argument(&self, index: u8) -> Result<Argument, Unfit> {
        self.places.args.get(usize::from(index)).copied().ok_or(Unfit::Argument(index))
    }
}

impl<E> Source<E> for OfEvent<'_> {
    type Value = Value;
    type Test = Text;
    type Unfit = Unfit;

    fn place(&self, value: &Value) -> Result<Option<(Place, Option<Cast>)>, Unfit> {
        let p = self.places;
        let place = match value {
            Value::Pid => p.pid,
            Value::Tid => p.tid,
            Value::Uid => p.uid,
            Value::Gid => p.gid,
            Value::Cpu => p.cpu,
            Value::Nsecs => p.nsecs,
            Value::Retval => p.retval.ok_or(Unfit::Result)?,
            Value::Dur => return Ok(None),
            Value::Arg(arg) => return Ok(Some((self.argument(arg.index)?.value, Some(arg.cast)))),
        };
        Ok(Some((place, None)))
    }

    /// `dur`
    fn make(g: &mut Generator<'_, E, Self>, _: &Value) -> Result<(), Unfit> {
        let places = g.source.places;
        g.fetch(places.nsecs, R0);
        let Some(start @ Place::Memory(..)) = places.start else { return Err(Unfit::Start) };
        g.fetch(start, R1);
        g.a.alu(Alu::Sub, R0, R1);
        Ok(())
    }

    fn test(g: &mut Generator<'_, E, Self>, t: &Text, when: bool, to: Label) -> Result<(), Unfit> {
        g.text(t, when, to)
    }
}
