//! The traces that are shown as one: which they are, how each is called, and how far its clock is off.

use crate::ask::Ask;
use crate::complain;
use crate::report::trouble::{remedy, unreadable};
use ctf::folder::reason;
use ctf::trace::{Found, HOST, Trace};
use engine::pipeline::functions::shown_name;
use engine::redact::MARK;
use engine::{Error, Result};
use events::rules::Rules;
use events::traces::{MOST, Origin, Renumber};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Traces, opened.
pub struct Set {
    /// The traces.
    pub traces: Vec<Trace>,
    /// Where each comes from.
    pub origins: Vec<Origin>,
    /// What its events become: times are ns since the epoch.
    pub renumber: Vec<Renumber>,
    /// Something that was named could not be opened.
    pub lacks: bool,
}

/// A trace that is named, or found below a directory that is.
pub struct Named {
    /// Its directory.
    pub dir: PathBuf,
    /// It was named itself.
    pub itself: bool,
}

impl Set {
    /// Opens traces, of which texts that the `rules` are about are not shown; what cannot be opened is reported and left out, unless nothing can.
    ///
    /// # Errors
    /// None of them can be read, there are too many, or an offset is of no trace.
    pub fn open(ask: &Ask, named: Vec<Named>, rules: Option<Arc<dyn Rules>>) -> Result<Set> {
        if named.len() > MOST {
            let why = format!("{} traces are too many to be shown as one", named.len());
            return Err(Error::usage("report", why, format!("name at most {MOST}")));
        }
        let (mut traces, mut lacks, mut failed, mut seen) = (Vec::new(), false, None, HashSet::new());
        for Named { dir, itself } in named {
            let trouble = match ctf::trace::open(&dir) {
                Ok(Found::Native(trace)) if trace.metadata.uuid.is_none_or(|uuid| seen.insert(uuid)) => {
                    traces.push(Trace { rules: rules.clone(), ..*trace });
                    continue;
                }
                Ok(Found::Native(_)) => {
                    complain(&format!("{}: a copy of another of these traces: it is left out", dir.display()));
                    continue;
                }
                // What another tracer has written beside them is not asked for.
                Ok(Found::Foreign) if !itself => continue,
                Ok(Found::Foreign) => {
                    Error::failed(dir.display().to_string(), "a trace of another tracer is shown alone", "leave it out")
                }
                Err(e) => unreadable(&dir, &e),
            };
            lacks = true;
            if let Some(before) = failed.replace(trouble) {
                complain(&before.to_string());
            }
        }
        match failed {
            Some(trouble) if traces.is_empty() => return Err(trouble),
            Some(trouble) => complain(&format!("{trouble}; the others are shown")),
            None => {}
        }
        pseudonyms(&mut traces);
        let origins = origins(&traces);
        correct(ask, &mut traces, &origins)?;
        let renumber = renumber(&traces, ask.trace.follow);
        Ok(Set { traces, origins, renumber, lacks })
    }

    /// The traces, each with its number.
    pub fn parts(&self) -> impl Iterator<Item = (&Trace, Renumber)> {
        self.traces.iter().zip(self.renumber.iter().copied())
    }

    /// The first moment of all, ns since the epoch.
    pub fn begin(&self) -> u64 {
        let begin = |(trace, of): (&Trace, Renumber)| Some(trace.data.span()?.0.saturating_add_signed(of.time));
        self.parts().filter_map(begin).min().unwrap_or(0)
    }
}

/// Numbers hosts whose names are not shown: host-1, host-2 and so on, in the order of the traces.
fn pseudonyms(traces: &mut [Trace]) {
    let hidden: Vec<&mut Trace> = traces.iter_mut().filter(|trace| trace.said(HOST) == MARK).collect();
    let hosts: Vec<String> = hidden.iter().map(|t| t.metadata.env_str(HOST).unwrap_or_default().to_owned()).collect();
    for (trace, number) in hidden.into_iter().zip(numbers(&hosts)) {
        trace.host = Some(format!("host-{number}"));
    }
}

/// The number of each host, from 1. A copy may lack the name itself: nothing says that two such copies are of one host.
fn numbers(hosts: &[String]) -> Vec<usize> {
    let mut known: Vec<&String> = Vec::new();
    let number = |host| {
        let same = known.iter().position(|other| *other == host && host != MARK);
        same.unwrap_or_else(|| {
            known.push(host);
            known.len() - 1
        }) + 1
    };
    hosts.iter().map(number).collect()
}

/// CLOCK_REALTIME minus the clock of a trace, ns.
fn to_wall(trace: &Trace) -> i64 {
    let clock = trace.metadata.clock(ctf::classes::CLOCK);
    clock.map_or(0, |c| c.offset_s.saturating_mul(1_000_000_000).saturating_add(c.offset))
}

/// Adds what the command line says to the offsets of the clocks.
fn correct(ask: &Ask, traces: &mut [Trace], origins: &[Origin]) -> Result<()> {
    for text in &ask.trace.clock_offset {
        let (of, offset) = offset(text)?;
        let is_it = |(trace, origin): (&Trace, &Origin)| {
            trace.metadata.env_str(HOST) == Some(of) || origin.trace == of || trace.dir == Path::new(of)
        };
        let meant: Vec<usize> =
            traces.iter().zip(origins).enumerate().filter(|(_, t)| is_it(*t)).map(|(i, _)| i).collect();
        if meant.is_empty() {
            let all: Vec<&str> = origins.iter().map(|origin| origin.trace.as_str()).take(3).collect();
            let todo = format!("for instance {}", all.join(", "));
            return Err(Error::usage(format!("--clock-offset {text}"), "no trace and no host has this name", todo));
        }
        for trace in meant {
            let clocks = traces[trace].metadata.clocks.iter_mut().filter(|clock| clock.name == ctf::classes::CLOCK);
            clocks.for_each(|clock| clock.offset = clock.offset.saturating_add(offset));
        }
    }
    Ok(())
}

/// What the events of each trace become. Traces that are `growing` get functions: each has room for some, of 8 bytes each.
fn renumber(traces: &[Trace], growing: bool) -> Vec<Renumber> {
    const ROOM: u32 = 1 << 18;
    let mut functions = 0u32;
    let numbers = |(nth, trace): (usize, &Trace)| {
        let of = Renumber { nth: nth as u32, time: to_wall(trace), functions, most: if growing { ROOM } else { 0 } };
        if growing {
            functions = functions.saturating_add(ROOM);
            return of;
        }
        if ctf::classes::has_functions(&trace.metadata) {
            functions = functions.saturating_add(trace.functions(shown_name).last());
        }
        of
    };
    traces.iter().enumerate().map(numbers).collect()
}

/// `TRACE=+1.5ms`: the trace or host, and ns.
fn offset(text: &str) -> Result<(&str, i64)> {
    let parsed = text.rsplit_once('=').and_then(|(of, offset)| {
        let span = |text: &str| i64::try_from(lang::duration::parse(text)?).ok();
        let ns = match offset.strip_prefix('-') {
            Some(rest) => -span(rest)?,
            None => span(offset.strip_prefix('+').unwrap_or(offset))?,
        };
        Some((of.trim_end_matches('/'), ns))
    });
    parsed.ok_or_else(|| {
        let todo = "TRACE=+1.5ms or HOST=-20us: what is added to its times";
        Error::usage(format!("--clock-offset {text}"), "not an offset", todo)
    })
}

/// What the traces are called: by their directories, without what those have in common.
fn origins(traces: &[Trace]) -> Vec<Origin> {
    let dirs: Vec<PathBuf> = traces.iter().map(|t| t.dir.canonicalize().unwrap_or_else(|_| t.dir.clone())).collect();
    let common = dirs.iter().skip(1).fold(dirs.first().and_then(|d| d.parent()).map(PathBuf::from), |common, dir| {
        common.and_then(|c| c.ancestors().find(|a| dir.starts_with(a)).map(PathBuf::from))
    });
    let name = |dir: &PathBuf| {
        let rest = common.as_ref().and_then(|c| dir.strip_prefix(c).ok()).filter(|rest| !rest.as_os_str().is_empty());
        rest.unwrap_or(dir).display().to_string()
    };
    let host = |trace: &Trace| trace.said(HOST);
    let mut all: Vec<Origin> = traces
        .iter()
        .zip(&dirs)
        .map(|(trace, dir)| Origin { host: host(trace), trace: name(dir), ..Origin::default() })
        .collect();
    label(&mut all);
    all
}

/// Gives each the shortest label that distinguishes it: its host, its trace, or both.
fn label(all: &mut [Origin]) {
    let hosts: HashSet<&str> = all.iter().map(|origin| origin.host.as_str()).collect();
    let (of_host, one_host) = (hosts.len() == all.len(), hosts.len() == 1);
    for origin in all.iter_mut() {
        origin.label = match (of_host && !origin.host.is_empty(), one_host) {
            (true, false) => origin.host.clone(),
            (_, true) => origin.trace.clone(),
            _ => format!("{}:{}", origin.host, origin.trace),
        };
    }
    let width = all.iter().map(|origin| origin.label.chars().count()).max().unwrap_or(0);
    all.iter_mut().for_each(|origin| origin.width = width);
}

/// The traces that the directories name: a trace names itself, another directory the traces below it.
///
/// # Errors
/// A directory that cannot be read, or has no trace in it.
pub fn named(dirs: &[PathBuf]) -> Result<Vec<Named>> {
    let mut all = Vec::new();
    for dir in dirs {
        let dir: PathBuf = dir.components().collect();
        let found = ctf::generic::find(&dir).map_err(|e| match &e {
            ctf::generic::Error::Io { source, .. } => {
                Error::failed(dir.display().to_string(), reason(source), remedy(source))
            }
            _ => Error::failed(dir.display().to_string(), e.to_string(), "name a trace, or a directory of traces"),
        })?;
        if found.is_empty() {
            let todo = "name the DIR of 'trapline record -o DIR', or a directory of such";
            return Err(Error::failed(dir.display().to_string(), "there is no trace in it", todo));
        }
        all.extend(found.into_iter().map(|found| Named { itself: found == dir, dir: found }));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign() {
        assert_eq!(offset("web-2=+1.5ms").unwrap(), ("web-2", 1_500_000));
        assert_eq!(offset("runs/a=b/=-20us").unwrap(), ("runs/a=b", -20_000));
        assert_eq!(offset("a=2").unwrap(), ("a", 2_000_000_000));
        for bad in ["", "a", "a=", "a=x", "a=+-1", "=1x"] {
            assert!(offset(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_without_names_are_not_one() {
        let of = |hosts: &[&str]| numbers(&hosts.iter().map(|host| (*host).to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["a", "b", "a"]), [1, 2, 1]);
        assert_eq!(of(&["a", MARK, MARK, "a"]), [1, 2, 3, 1]);
    }

    #[test]
    fn labels_are_what_tells_traces_apart() {
        let labels = |all: &[(&str, &str)]| {
            let of = |(host, trace): &(&str, &str)| Origin {
                host: (*host).into(),
                trace: (*trace).into(),
                ..Origin::default()
            };
            let mut all: Vec<Origin> = all.iter().map(of).collect();
            label(&mut all);
            all.into_iter().map(|origin| (origin.label, origin.width)).collect::<Vec<_>>()
        };
        let named = |label: &str, width| (label.to_string(), width);
        assert_eq!(labels(&[("a", "1"), ("bcd", "2")]), [named("a", 3), named("bcd", 3)]);
        assert_eq!(labels(&[("a", "1"), ("a", "2")]), [named("1", 1), named("2", 1)]);
        assert_eq!(labels(&[("a", "1"), ("a", "2"), ("b", "3")])[1], named("a:2", 3));
        assert_eq!(labels(&[("", "1"), ("", "2")])[0], named("1", 1));
    }
}
