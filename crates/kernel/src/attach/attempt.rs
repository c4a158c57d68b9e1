//! Attaches a program by the first of several ways that the kernel takes.

use super::{Attached, Way};
use crate::functions::Functions;
use engine::error::{Error, Result};
use engine::rights::refusal::{reason, refused, rejected};
use std::fmt::Display;
use std::io;
use sys::bpf::prog::{LoadError, Program};

/// What went wrong with a way.
pub enum Refused {
    /// No program could be made.
    Program(Error),
    /// The way does not have this argument.
    Argument(&'static str),
    /// The verifier rejects the program.
    Load(Box<(LoadError, bpf::Program)>),
    /// It cannot be attached.
    Attach(io::Error),
}

/// A program cannot be made, which is a bug in trapline.
pub fn mistake(e: impl Display) -> Refused {
    Refused::Program(Error::failed("BPF generator", e.to_string(), "please report it"))
}

impl Refused {
    /// What it means and what to do about it, where that is known.
    fn reason(&self, way: &dyn Way) -> Option<(String, String)> {
        match self {
            Refused::Program(_) => None,
            Refused::Argument(name) => {
                Some((format!("kprobes do not have its argument '{name}'"), "use a tracepoint".into()))
            }
            Refused::Load(load) => way.refusal(&load.0.error),
            Refused::Attach(e) => way.refusal(e),
        }
    }

    /// Why another program is to be taken.
    fn why(&self) -> Option<String> {
        match self {
            Refused::Program(Error::Usage { why, .. } | Error::Failed { why, .. }) => Some(why.clone()),
            Refused::Load(load) => Some(reason(&load.0)),
            Refused::Program(_) | Refused::Argument(_) | Refused::Attach(_) => None,
        }
    }

    fn said(self, way: &dyn Way, name: &str) -> Error {
        match (self.reason(way), self) {
            (_, Refused::Program(e)) => e,
            (Some((why, todo)), _) => Error::failed(name, why, todo),
            (None, Refused::Load(load)) => rejected(&load.0, &load.1),
            (None, Refused::Attach(e)) => refused(name, &e),
            (None, Refused::Argument(argument)) => {
                Error::failed(name, format!("no argument '{argument}'"), "leave it out")
            }
        }
    }
}

/// A program that is attached, and how.
pub struct Found {
    /// The program.
    pub program: Program,
    /// Where.
    pub attached: Attached,
    /// Its instructions.
    pub source: bpf::Program,
    /// Closing its links takes long.
    pub slow: bool,
    /// It is attached in the second way.
    pub fell_back: bool,
    /// Why it is none of those that were preferred, in their order.
    pub instead: Vec<Option<String>>,
}

/// Makes a program for a way.
pub type Make<'m> = dyn Fn(&dyn Way) -> std::result::Result<bpf::Program, Refused> + 'm;

/// Attaches a program by the first way, or else by the second. Each has a program of its own, because contexts differ. `makes`: the programs that
/// would do, the best one first; the kernel may not take it.
pub fn attach_somehow(
    ways: &[Box<dyn Way + '_>],
    name: &str,
    functions: &Functions,
    makes: &[&Make<'_>],
) -> Result<Found> {
    let [way, others @ ..] = ways else { unreachable!("every point has a way") };
    let first = match attach_by(way.as_ref(), functions, makes) {
        Ok(found) => return Ok(found),
        Err(first) => first,
    };
    let other = match (&first, others) {
        (Refused::Load(_) | Refused::Attach(_), [other, ..]) => other,
        _ => return Err(first.said(way.as_ref(), name)),
    };
    match attach_by(other.as_ref(), functions, makes) {
        Ok(found) => Ok(Found { fell_back: true, ..found }),
        // What both refusals mean, where that is known.
        Err(second) => Err(match (first.reason(way.as_ref()), second.reason(other.as_ref())) {
            (Some((why, _)), Some((also, todo))) if why == also => Error::failed(name, why, todo),
            (Some((why, _)), Some((also, todo))) => Error::failed(name, format!("{why}, and {also}"), todo),
            _ => first.said(way.as_ref(), name),
        }),
    }
}

fn attach_by(way: &dyn Way, functions: &Functions, makes: &[&Make<'_>]) -> std::result::Result<Found, Refused> {
    let mut instead = Vec::new();
    let mut loaded = None;
    for (nth, make) in makes.iter().enumerate() {
        let refused = match make(way) {
            Ok(source) => match functions.load(way.spec("trapline_probe", &source.bytes()), &source) {
                Ok(program) => {
                    loaded = Some((program, source));
                    break;
                }
                Err(e) => Refused::Load(Box::new((e, source))),
            },
            Err(refused) => refused,
        };
        if nth + 1 == makes.len() {
            return Err(refused);
        }
        instead.push(refused.why());
    }
    let Some((program, source)) = loaded else { unreachable!("there is a program") };
    let attached = way.attach(&program).map_err(Refused::Attach)?;
    Ok(Found { program, attached, source, slow: way.is_slow_to_close(), fell_back: false, instead })
}
