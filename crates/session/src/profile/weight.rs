//! What is added up: events, or a number that they have (`--by`).

use crate::ask::Ask;
use engine::{Error, Result};
use events::types::Type;
use events::{Event, Schema};
use std::collections::HashMap;
use views::profile::Unit;

/// What an event weighs.
pub struct Weight {
    what: What,
    /// Where the argument is in the events of a class.
    places: HashMap<u16, Option<usize>>,
    /// Events whose number is negative, or not known: they weigh nothing.
    pub nothing: u64,
}

enum What {
    /// One.
    One,
    /// Its duration, ns.
    Duration,
    /// Its result.
    Result,
    /// An argument.
    Argument(String),
}

impl Weight {
    /// Each event weighs the same.
    pub fn one() -> Weight {
        Weight { what: What::One, places: HashMap::new(), nothing: 0 }
    }

    /// What the command line asks for, of events of these classes; and the unit.
    ///
    /// # Errors
    /// No class has the argument.
    pub fn parse(ask: &Ask, classes: &[&Schema]) -> Result<(Weight, Unit)> {
        let text = ask.table.by.as_deref().filter(|by| !crate::view::is_of_traces(by));
        let what = match text {
            None if only_blocked(classes) => What::Argument("ns".into()),
            None => What::One,
            Some("dur") => What::Duration,
            Some("retval") => What::Result,
            Some(name) => What::Argument(name.strip_prefix("args.").unwrap_or(name).to_string()),
        };
        let text = text.unwrap_or_default();
        let refuse = |class: &Schema, why: &str, todo: String| {
            Error::usage(format!("--by {text}"), format!("{} {why}", class.probe()), todo)
        };
        for class in classes {
            match &what {
                What::Duration if class.extent != events::schema::Extent::Span => {
                    return Err(refuse(class, "has no duration", "calls have one".into()));
                }
                What::Result if class.extent != events::schema::Extent::Span => {
                    let is_argument = place(class, "retval").is_some();
                    if !is_argument {
                        return Err(refuse(class, "has no result", "calls and returns have one".into()));
                    }
                }
                What::Argument(name) if place(class, name).is_none() => {
                    let numbers = class.args.iter().filter(|a| is_number(a.ty)).map(|a| a.name);
                    let numbers: Vec<String> = numbers.map(|n| format!("args.{n}")).collect();
                    let todo = if numbers.is_empty() {
                        "it has no numbers".into()
                    } else {
                        format!("it has {}", numbers.join(", "))
                    };
                    return Err(refuse(class, "has no such number", todo));
                }
                _ => {}
            }
        }
        let unit = match (ask.profile.unit.as_deref(), &what) {
            (Some("bytes"), _) => Unit::Bytes,
            (Some("ns"), _) | (None, What::Duration) => Unit::Nanoseconds,
            (None, What::One) => samples(classes),
            (None, What::Argument(name)) => of_name(name),
            _ => Unit::Events,
        };
        Ok((Weight { what, places: HashMap::new(), nothing: 0 }, unit))
    }

    /// What an event weighs.
    pub fn of(&mut self, ev: &Event<'_>) -> u64 {
        let number = match &self.what {
            What::One => return 1,
            What::Duration => ev.duration(),
            What::Result if ev.is_span() => u64::try_from(ev.ret()).ok(),
            What::Result => self.argument(ev, "retval"),
            What::Argument(name) => {
                let name = name.clone();
                self.argument(ev, &name)
            }
        };
        self.nothing += u64::from(number.is_none());
        number.unwrap_or(0)
    }

    fn argument(&mut self, ev: &Event<'_>, name: &str) -> Option<u64> {
        let nth = (*self.places.entry(ev.schema.id).or_insert_with(|| place(ev.schema, name)))?;
        let signed = matches!(ev.schema.args[nth].ty, Type::Int(int) if int.signed);
        let value = ev.arg(nth);
        if signed { u64::try_from(value as i64).ok() } else { Some(value) }
    }
}

/// Whether all events are of threads that do not run, each of which says for how long.
fn only_blocked(classes: &[&Schema]) -> bool {
    !classes.is_empty() && classes.iter().all(|c| engine::provider::is_of_blocked(c.name))
}

fn is_number(ty: Type) -> bool {
    matches!(ty, Type::Int(int) if int.fmt != events::types::Fmt::Stack)
}

fn place(class: &Schema, name: &str) -> Option<usize> {
    class.args.iter().position(|a| a.name == name && is_number(a.ty))
}

/// The unit of an argument, by its name.
fn of_name(name: &str) -> Unit {
    let words: Vec<&str> = name.split('_').collect();
    let has = |all: &[&str]| words.iter().any(|w| all.contains(w));
    match () {
        _ if has(&["bytes", "size", "len", "length", "nbytes"]) => Unit::Bytes,
        _ if has(&["ns", "nsec", "nsecs", "delay", "runtime"]) => Unit::Nanoseconds,
        _ => Unit::Events,
    }
}

/// Samples of one clock, where the events are; else events.
fn samples(classes: &[&Schema]) -> Unit {
    let period = |class: &&Schema| engine::provider::clock_period(class.name);
    match classes {
        [first, rest @ ..] if rest.iter().all(|c| period(c) == period(first)) => {
            period(first).map_or(Unit::Events, |period| Unit::Samples { period })
        }
        _ => Unit::Events,
    }
}
