//! An event, as a clause sees it: each value that the clause reads is found once for each class of events.

use super::called::{Called, Which};
use super::catalogue::As;
use super::places::frames_of;
use engine::backend::code::id_of;
use engine::pipeline::world::World;
use events::event::Cap;
use events::functions;
use events::layout::CAP_NO_RESULT;
use events::names::Names as _;
use events::traces::{Origin, is_thread};
use events::{Event, Schema};
use lang::script::ir::{Hoisted, Kind, Leaf, What};
use lang::script::run::{self, Datum};
use lang::script::types::Type;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Get {
    /// Of the event's head, or of the moment: by its name.
    Named(&'static str),
    /// An argument.
    Arg(usize),
    /// An argument that is a thread or process of the trace.
    Thread(usize),
    /// The string of an argument.
    Text(usize),
    /// The address that an argument is, and the string there.
    Pointed(usize),
    /// The number of a stack, and the most frames of it.
    Stack(usize, u32),
    /// The string that was read of memory, and its most bytes.
    Memory(usize, u32),
    /// Bytes that were read of memory.
    Bytes(usize),
    /// The strings of an array.
    Strings(usize),
    /// The result.
    Result,
    /// An argument of a function.
    Of(Which),
    /// The string of an argument of a function.
    TextOf(Which),
    /// The result of a function.
    Returned,
    /// The number of the call.
    Id(i64),
    /// A string that is the same for all events of the class.
    Own(String),
    /// The event's line in a view.
    Line,
    /// Events do not have it.
    Nothing,
}

/// The field of events that a register, or the address of a symbol, becomes.
pub fn field_of(what: &What) -> Option<String> {
    match what {
        What::Register(name) => Some(format!("reg_{name}")),
        What::Address(_, name) => Some(format!("address_of_{name}")),
        _ => None,
    }
}

/// Whether a field is a capture. Captures are the last fields, but for what scripts read of memory, and these are all there are.
fn is_captured(schema: &Schema, hoisted: &[Hoisted], field: usize) -> bool {
    let names = ["comm", "cpu", "uid", "gid", "kstack", "ustack"];
    let of_memory = |name: &str| hoisted.iter().any(|h| h.name == name || h.name_of_length() == name);
    let is = |name: &str| names.contains(&name.strip_prefix("task_").unwrap_or(name)) || of_memory(name);
    schema.args[field..].iter().all(|a| is(a.name))
}

/// The argument whose strings are read.
fn strings_of<'l>(h: &Hoisted, leaves: &'l [Leaf]) -> Option<&'l str> {
    let Kind::Strings(address, _) = &h.expr.kind else { return None };
    let lang::script::ir::Int::Value(of) = &**address else { return None };
    let Kind::Leaf(i) = of.kind else { return None };
    let What::Arg(name) = &leaves.get(i)?.what else { return None };
    Some(name)
}

/// Where a value comes from in a call of a function whose values were captured.
fn of_function(leaf: &Leaf) -> Option<Get> {
    Some(match &leaf.what {
        What::Value("retval") => Get::Returned,
        What::Arg(name) => Get::Of(Which::Named(name.clone())),
        What::Number(n) => Get::Of(Which::Nth((*n).into())),
        What::TextOf(name) => Get::TextOf(Which::Named(name.clone())),
        What::TextOfNumber(n) => Get::TextOf(Which::Nth((*n).into())),
        _ => return None,
    })
}

/// Where a value of the thread comes from, which some events have captured.
fn captured(schema: &Schema, hoisted: &[Hoisted], name: &'static str) -> Get {
    let field = if name == "username" { "uid" } else { name };
    let last = |n: &str| schema.args.iter().rposition(|a| a.name == n);
    match last(&format!("task_{field}")).or_else(|| last(field).filter(|i| is_captured(schema, hoisted, *i))) {
        Some(i) if name == "comm" => Get::Text(i),
        Some(i) => Get::Arg(i),
        None => Get::Named(name),
    }
}

/// Where the values of a clause come from, in events of a class. `aliases` are other names of the class's arguments.
pub fn gets(
    leaves: &[Leaf],
    hoisted: &[Hoisted],
    schema: &'static Schema,
    role: As,
    aliases: &[(String, String)],
) -> Vec<Get> {
    let arg = |name: &str| {
        let alias = aliases.iter().find(|a| a.0 == name).map(|a| a.1.as_str());
        schema.arg(alias.unwrap_or(name)).or_else(|| schema.arg(name))
    };
    let has_text = |i: &usize| !matches!(schema.args[*i].ty, events::types::Type::Int(_));
    let text = |name: &str| {
        let alias = aliases.iter().find(|a| a.0 == name).map_or(name, |a| a.1.as_str());
        let own = schema.arg(&format!("str_{alias}")).or_else(|| schema.arg(&format!("str_{name}")));
        own.or_else(|| arg(name).filter(has_text)).map_or(Get::Nothing, Get::Text)
    };
    let value = |name: &str, ty: &Type| match (role, name) {
        (As::Exit, "ret") if schema.class == events::Class::Syscall => Get::Result,
        (_, "id") if schema.class == events::Class::Syscall && role != As::Whole => {
            Get::Id(schema.x86_64.map_or(-1, i64::from))
        }
        (As::Exit, _) if schema.class == events::Class::Syscall => Get::Nothing,
        _ => arg(name).map_or(Get::Nothing, |i| {
            // What is recorded of some is the string alone, and of others its address too.
            match has_text(&i) && ty.is_text() {
                true => Get::Text(i),
                false if is_thread(schema, schema.args[i].name) => Get::Thread(i),
                false => Get::Arg(i),
            }
        }),
    };
    let is_function = functions::kind(schema).is_some();
    let is_strings = |i: usize| matches!(schema.args[i].ty, events::types::Type::Strv | events::types::Type::Envv);
    // The strings at the addresses of an argument, which calls have.
    let strings = |h: &Hoisted| arg(strings_of(h, leaves)?).filter(|i| role != As::Exit && is_strings(*i));
    let one = |leaf: &Leaf| match &leaf.what {
        What::Value(name @ ("kstack" | "ustack")) | What::Kind(name @ ("kstack" | "ustack"), _) => {
            let task = format!("task_{name}");
            let most = frames_of(leaf);
            schema.arg(&task).or_else(|| schema.arg(name)).map_or(Get::Nothing, |i| Get::Stack(i, most))
        }
        // The name from then on.
        What::Value("comm")
            if schema.class == events::Class::Process && schema.name != "fork" && schema.arg("comm").is_some() =>
        {
            schema.arg("comm").map_or(Get::Nothing, Get::Text)
        }
        // The field of a capture is behind the arguments; one of them may be called so too.
        What::Value(name @ ("comm" | "cpu" | "uid" | "gid" | "username")) if schema.class != events::Class::Process => {
            captured(schema, hoisted, name)
        }
        What::Value("retval") => match schema.is_span() {
            true => Get::Result,
            false => arg("retval").map_or(Get::Nothing, Get::Arg),
        },
        What::Value("probe") => Get::Own(schema.probe().into_owned()),
        What::Value("probetype") => Get::Own(schema.probe().split(':').next().unwrap_or_default().into()),
        What::Value("strace") => Get::Line,
        What::Value("func") => match schema.name.starts_with("function:") {
            true => schema.arg("function").map_or(Get::Nothing, Get::Text),
            false => Get::Own(schema.probe().rsplit(':').next().unwrap_or_default().into()),
        },
        What::Value(
            name @ ("pid" | "tid" | "uid" | "gid" | "username" | "comm" | "nsecs" | "elapsed" | "dur" | "cpu" | "ncpus"
            | "cpid" | "host" | "trace"),
        ) => Get::Named(name),
        of if *of == What::thread_of_all() => Get::Named("thread"),
        What::Kind("nsecs", clock) if clock == "monotonic" => Get::Named("nsecs"),
        What::Arg(name) => match (value(name, &leaf.ty), &leaf.ty) {
            (Get::Arg(i), Type::Pointer(of, _)) if **of == Type::int(1, true) && has_text(&i) => Get::Pointed(i),
            (get, _) => get,
        },
        What::Register(_) | What::Address(..) => {
            field_of(&leaf.what).and_then(|n| arg(&n)).map_or(Get::Nothing, Get::Arg)
        }
        What::Number(n) => match value(&format!("arg{n}"), &leaf.ty) {
            Get::Arg(i) if has_text(&i) && schema.class != events::Class::Syscall => Get::Pointed(i),
            get => get,
        },
        What::TextOf(name) => text(name),
        What::TextOfNumber(n) => text(&format!("arg{n}")),
        What::Memory(n) => match (hoisted.get(*n).and_then(|h| schema.arg(&h.name)), &leaf.ty) {
            (None, _) => hoisted.get(*n).and_then(strings).map_or(Get::Nothing, Get::Strings),
            (Some(i), _) if is_strings(i) => Get::Strings(i),
            (Some(i), Type::Str(most)) => Get::Memory(i, *most),
            (Some(i), ty) if ty.as_int().is_none() && !ty.is_text() => Get::Bytes(i),
            (Some(i), Type::Array(_, n)) => Get::Memory(i, u32::try_from(*n).unwrap_or(u32::MAX)),
            (Some(i), _) => Get::Arg(i),
        },
        _ => Get::Nothing,
    };
    leaves.iter().map(|leaf| of_function(leaf).filter(|_| is_function).unwrap_or_else(|| one(leaf))).collect()
}

/// The stacks that clauses have read.
#[derive(Default)]
pub struct Stacks {
    known: HashMap<u64, Known>,
    /// Numbers of the inner parts of stacks, by stack and number of frames.
    parts: HashMap<(u64, u32), u64>,
}

/// What is known of a stack.
pub struct Known {
    /// When it was first seen: names are those of that time.
    pub time: u64,
    /// Of the inner part of a longer one: whether it is the kernel's, and its frames.
    pub part: Option<(bool, Box<[u64]>)>,
}

/// This many of them are remembered.
const MOST_STACKS: usize = 1 << 20;

impl Stacks {
    /// A stack that was read.
    pub fn get(&self, id: u64) -> Option<&Known> {
        self.known.get(&id)
    }

    /// The number of the innermost `most` frames of a stack. Stacks with the same inner frames have one number, whatever lies further out.
    fn read(&mut self, id: u64, most: u32, time: u64, world: &World) -> u64 {
        if let Some(part) = self.parts.get(&(id, most)) {
            return *part;
        }
        if self.parts.len() >= MOST_STACKS {
            return id;
        }
        let longer = world.stack(id).filter(|s| s.frames.len() > most as usize);
        let part = longer.map(|s| (s.kernel, Box::from(&s.frames[..most as usize])));
        let number = part.as_ref().map_or(id, |(_, frames)| id_of(frames, 0));
        self.parts.insert((id, most), number);
        self.known.entry(number).or_insert(Known { time, part });
        number
    }
}

/// What a clause sees.
pub struct Seen<'a> {
    /// The event.
    pub ev: &'a Event<'a>,
    /// What is known at its moment.
    pub world: &'a World,
    /// Where the values come from.
    pub gets: &'a [Get],
    /// How the clause sees it.
    pub role: As,
    /// When the script began, ns.
    pub started: u64,
    /// How long the call of a function took, ns.
    pub duration: Option<u64>,
    /// Its values, where they were captured.
    pub called: Option<&'a Called<'a>>,
    /// The stacks that were read.
    pub stacks: &'a RefCell<Stacks>,
    /// The process that `-c` started.
    pub child: Option<u32>,
    /// Where the events of all are from, unless they are of several traces.
    pub origin: &'a Origin,
    /// The event's line, once it was wanted.
    pub line: OnceCell<Vec<u8>>,
}

impl Seen<'_> {
    fn time(&self) -> u64 {
        if self.role == As::Entry { self.ev.start() } else { self.ev.time() }
    }

    fn origin(&self) -> &Origin {
        self.world.origin(self.ev.pid()).unwrap_or(self.origin)
    }

    /// The event as `trapline trace` shows it: at the entry of a call what is known then.
    fn line(&self) -> &[u8] {
        self.line.get_or_init(|| {
            let mut line = Vec::new();
            views::text::shown(self.ev, self.world, self.role == As::Entry, &mut line);
            line
        })
    }

    fn named(&self, name: &str) -> Option<Datum<'_>> {
        let ids = || self.world.ids(self.ev.tid());
        let number = |n: u64| Some(Datum::Int(n as i64));
        match name {
            "pid" => number(self.world.own(self.ev.pid()).into()),
            "tid" => number(self.world.own(self.ev.tid()).into()),
            "thread" => number(self.ev.tid().into()),
            "host" => Some(Datum::Text(self.origin().host.as_bytes(), false)),
            "trace" => Some(Datum::Text(self.origin().trace.as_bytes(), false)),
            "uid" | "username" => number(ids().0?.into()),
            "gid" => number(ids().1?.into()),
            "nsecs" => number(self.time()),
            "elapsed" => number(self.time().saturating_sub(self.started)),
            "dur" => number(self.duration.or_else(|| self.ev.duration())?),
            "cpu" => {
                let (entry, exit) = self.ev.cpus();
                number(if self.role == As::Entry { entry } else { exit.or(entry) }?.into())
            }
            "cpid" => number(self.child?.into()),
            "ncpus" => number(std::thread::available_parallelism().map_or(1, |n| n.get() as u64)),
            "comm" => Some(Datum::Text(self.world.comm(self.ev.tid())?, false)),
            _ => None,
        }
    }
}

impl run::Event for Seen<'_> {
    fn leaf(&self, index: usize, leaf: &Leaf) -> Option<Datum<'_>> {
        match self.gets.get(index)? {
            Get::Named(name) => self.named(name),
            Get::Arg(i) => Some(Datum::Int(self.ev.arg(*i) as i64)),
            Get::Thread(i) => Some(Datum::Int(self.world.own(self.ev.arg(*i) as u32).into())),
            Get::Result if self.ev.caps() & CAP_NO_RESULT != 0 => None,
            Get::Result => Some(Datum::Int(self.ev.ret())),
            Get::Of(which) => Some(Datum::Int(self.called?.number(which)?)),
            Get::TextOf(which) => self.called?.text(which).map(|(text, cut)| Datum::Text(text, cut)),
            Get::Returned => Some(Datum::Int(self.called?.result()?)),
            Get::Id(n) => Some(Datum::Int(*n)),
            Get::Own(text) => Some(Datum::Text(text.as_bytes(), false)),
            Get::Line => {
                let most = if let Type::Str(n) = leaf.ty { n as usize } else { usize::MAX };
                let (line, all) = (self.line(), self.line().len());
                Some(Datum::Text(&line[..all.min(most)], all > most))
            }
            Get::Stack(i, most) => {
                let id = self.stacks.borrow_mut().read(self.ev.arg(*i), *most, self.ev.time(), self.world);
                Some(Datum::Of(id, self.ev.pid()))
            }
            Get::Pointed(i) => {
                let address = self.ev.arg(*i) as i64;
                match self.ev.cap(*i) {
                    Cap::None => Some(Datum::Int(address)),
                    Cap::Fault => Some(Datum::At(address, b"", false)),
                    cap => {
                        let tail = self.ev.tail(*i, false).or_else(|| self.ev.tail(*i, true));
                        Some(tail.map_or(Datum::Int(address), |t| Datum::At(address, t.bytes, cap == Cap::Cut)))
                    }
                }
            }
            Get::Text(i) => match self.ev.cap(*i) {
                Cap::None => None,
                Cap::Fault => Some(Datum::Text(b"", false)),
                cap => {
                    let tail = self.ev.tail(*i, false).or_else(|| self.ev.tail(*i, true))?;
                    Some(Datum::Text(tail.bytes, cap == Cap::Cut))
                }
            },
            Get::Memory(i, most) => match self.ev.cap(*i) {
                Cap::None => None,
                Cap::Fault => Some(Datum::Text(b"", false)),
                cap => {
                    let bytes = self.ev.tail(*i, false)?.bytes;
                    let own = bytes.get(..*most as usize).unwrap_or(bytes);
                    Some(Datum::Text(own, own.len() == bytes.len() && cap == Cap::Cut))
                }
            },
            Get::Bytes(i) => match self.ev.cap(*i) {
                Cap::None => None,
                Cap::Fault => Some(Datum::Bytes(b"")),
                _ => Some(Datum::Bytes(self.ev.tail(*i, false)?.bytes)),
            },
            Get::Strings(i) => match self.ev.cap(*i) {
                Cap::None => None,
                Cap::Fault => Some(Datum::Strings(&[])),
                _ => Some(Datum::Strings(self.ev.tail(*i, false)?.bytes)),
            },
            Get::Nothing => None,
        }
    }

    fn is_fault(&self, index: usize) -> bool {
        match self.gets.get(index) {
            Some(Get::Pointed(i) | Get::Text(i) | Get::Memory(i, _) | Get::Bytes(i) | Get::Strings(i)) => {
                self.ev.cap(*i) == Cap::Fault
            }
            _ => false,
        }
    }

    fn frames(&self, stack: u64) -> Option<u64> {
        let stacks = self.stacks.borrow();
        let part = stacks.get(stack).and_then(|known| known.part.as_ref());
        part.map(|(_, frames)| frames.len() as u64).or_else(|| Some(self.world.stack(stack)?.frames.len() as u64))
    }

    fn pid(&self) -> u32 {
        self.ev.pid()
    }
}
