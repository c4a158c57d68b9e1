//! `--where`: a filter for the calls of a session or of a trace, and what it held back.
//!
//! ```text
//! text ─► Where (a filter per class) ─┬─► programs of the kernel backend ─────► counters of the programs ─┐
//!                                     ├─► front end, events that are shown ──► Tally ─────────────────────┼─► Filtered
//!                                     └─► recorder, events that are kept ────► Gate ──────────────────────┘
//! ```
//!
//! Only calls are filtered; signals, ends and trapline's own events have selections of their own. A notice that a call is still
//! running is shown where the filter can be decided before the call is carried out.

use crate::plan::{Plan, for_descriptors};
use crate::select::Calls;
use crate::threads::Threads;
use events::names::Names;
use events::schema::Ret;
use events::{Event, Schema, schema};
use lang::{Code, Context, Diagnostic, Filter, Missing, Verdict};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A filter, typed for each call that is selected.
#[derive(Debug)]
pub struct Where {
    /// As it was given.
    pub text: String,
    /// What `$1`, `$2`, … stand for.
    pub params: Vec<String>,
    /// By class. A selected class without one has nothing that passes.
    filters: Vec<Option<Filter>>,
    selected: Calls,
    parts: Vec<String>,
}

impl Where {
    /// Parses the text and types it for the selected calls. Calls of no table and 32-bit ones have no arguments by name: they pass a
    /// filter only if it names none. Calls that never return have no result, and are no reason to refuse a filter that asks for it:
    /// they lack a value.
    pub fn new(text: &str, params: &[String], calls: &Calls) -> Result<Where, Diagnostic> {
        let parsed = lang::filter::parse(text, params)?;
        let all = || schema::syscalls().filter(|s| s.name != "raw" && calls.contains(s));
        let some_return = all().any(|s| s.ret != Ret::Never);
        let lacks = |s: &Schema| parsed.check(s).is_err_and(|d| d.code == Code::NotAvailable);
        let selected: Vec<&Schema> = all().filter(|s| s.ret != Ret::Never || !some_return || !lacks(s)).collect();
        let typed = parsed.check_all(&selected)?;
        let parts = typed.first().map_or(&[][..], Filter::parts).iter().map(|p| p.text.clone()).collect();
        let mut filters = vec![None; events::generated::SCHEMAS.len()];
        let raw = &events::generated::C_RAW;
        if calls.has_unknown() {
            filters[usize::from(raw.id)] = parsed.check(raw).ok().filter(|f| f.needs().args == 0);
        }
        for (s, f) in selected.iter().zip(typed) {
            filters[usize::from(s.id)] = Some(f);
        }
        Ok(Where { text: text.into(), params: params.to_vec(), filters, selected: calls.clone(), parts })
    }

    /// The operands of its outermost `&&`, as they are written.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The filter of a class.
    pub fn of(&self, schema: &Schema) -> Option<&Filter> {
        self.filters.get(usize::from(schema.base))?.as_ref()
    }

    fn any(&self, wants: impl Fn(&Filter) -> bool) -> bool {
        self.filters.iter().flatten().any(wants)
    }

    /// Whether names of threads are asked for.
    pub fn asks_comm(&self) -> bool {
        self.any(|f| f.needs().comm)
    }

    /// Whether users or groups are asked for.
    pub fn asks_ids(&self) -> bool {
        self.any(|f| f.needs().uid || f.needs().gid)
    }

    /// Whether processors are asked for.
    pub fn asks_cpu(&self) -> bool {
        self.any(|f| f.needs().cpu)
    }

    /// How many bytes of strings decide.
    pub fn text_bytes(&self) -> usize {
        self.filters.iter().flatten().flat_map(|f| &f.needs().strings).map(|s| s.bytes).max().unwrap_or(0)
    }

    /// What becomes of a call.
    pub fn verdict(&self, ev: &Event<'_>, names: &dyn Names) -> Verdict {
        let Some(filter) = self.of(ev.schema) else { return Verdict::Unknown(Missing::Probe) };
        let (uid, gid) = names.ids(ev.tid());
        filter.matches(ev, &Context { comm: names.comm(ev.tid()), uid, gid })
    }

    /// Whether the notice of a call that is not over passes: if what the filter asks for is known before the call is carried out.
    pub fn passes_notice(&self, call: &Event<'_>, names: &dyn Names) -> bool {
        self.of(call.schema).is_some_and(|f| f.needs().at_entry()) && self.verdict(call, names).passes()
    }
}

/// What a filter has held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// By part.
    pub parts: Vec<u64>,
    /// Calls that lack what it names.
    pub unknown: u64,
    /// By class of the call.
    pub classes: BTreeMap<u16, u64>,
}

impl Filtered {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.parts.iter().sum::<u64>() + self.unknown
    }

    /// The sum of both.
    pub fn add(&mut self, other: &Filtered) {
        self.parts.resize(self.parts.len().max(other.parts.len()), 0);
        self.parts.iter_mut().zip(&other.parts).for_each(|(n, more)| *n += more);
        self.unknown += other.unknown;
        for (class, n) in &other.classes {
            *self.classes.entry(*class).or_default() += n;
        }
    }
}

/// Counts what is held back, from several threads.
#[derive(Debug)]
pub struct Tally {
    passed: AtomicU64,
    parts: Vec<AtomicU64>,
    unknown: AtomicU64,
    classes: Vec<AtomicU64>,
}

impl Tally {
    /// Counts for a filter.
    pub fn of(filter: &Where) -> Tally {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Tally {
            passed: AtomicU64::new(0),
            parts: zeros(filter.parts.len()),
            unknown: AtomicU64::new(0),
            classes: zeros(events::generated::SCHEMAS.len()),
        }
    }

    /// Counts a call of this class; whether it passes.
    pub fn count(&self, class: u16, verdict: Verdict) -> bool {
        let counter = match verdict {
            Verdict::Pass => {
                self.passed.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Verdict::Rejected(part) => self.parts.get(part).unwrap_or(&self.unknown),
            Verdict::Unknown(_) => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(n) = self.classes.get(usize::from(class)) {
            n.fetch_add(1, Ordering::Relaxed);
        }
        false
    }

    /// How many have passed.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// What was counted.
    pub fn total(&self) -> Filtered {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let classes = self.classes.iter().map(read).enumerate().filter(|(_, n)| *n > 0);
        Filtered {
            parts: self.parts.iter().map(read).collect(),
            unknown: read(&self.unknown),
            classes: classes.map(|(id, n)| (id as u16, n)).collect(),
        }
    }
}

/// A filter, the classes that it is asked about, and what it has held back. Can be asked by several threads.
#[derive(Debug)]
pub struct Sieve {
    filter: Arc<Where>,
    looks: Vec<bool>,
    tally: Arc<Tally>,
}

impl Sieve {
    /// Asks `filter` about the classes that `looks` names; all others pass.
    pub fn new(filter: Arc<Where>, looks: impl Fn(&Schema) -> bool) -> Sieve {
        let tally = Arc::new(Tally::of(&filter));
        Sieve { filter, looks: events::generated::SCHEMAS.iter().map(|s| looks(s)).collect(), tally }
    }

    /// For the events of a session that are shown; none where nothing is filtered.
    pub fn shown(plan: &Plan) -> Option<Sieve> {
        let filter = Arc::clone(plan.filter.as_ref()?);
        Some(Sieve::new(filter, |s| plan.calls.contains(s) && !plan.filters_in_kernel(s)))
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// The filter.
    pub fn filter(&self) -> &Where {
        &self.filter
    }

    /// Whether an event passes.
    pub fn passes(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        if ev.is_syscall() {
            let looked_at = self.looks.get(usize::from(ev.schema.base)).copied().unwrap_or(false);
            return !looked_at || self.tally.count(ev.schema.base, self.filter.verdict(ev, names));
        }
        if ev.schema.id != events::generated::P_INFLIGHT.id {
            return true;
        }
        let Ok(call) = Event::parse(ev.bytes_of("call")) else { return true };
        !self.filter.selected.contains(call.schema) || self.filter.passes_notice(&call, names)
    }
}

/// A sieve on the way to where events are kept.
#[derive(Debug)]
pub struct Gate {
    sieve: Sieve,
    threads: Threads,
}

impl Gate {
    /// The gate of a session; none where nothing is filtered. Calls that the table of descriptors needs are kept, whether they pass
    /// or not: who reads the trace asks the filter again.
    pub fn of(plan: &Plan) -> Option<Gate> {
        let filter = Arc::clone(plan.filter.as_ref()?);
        let looks =
            |s: &Schema| plan.calls.contains(s) && !plan.filters_in_kernel(s) && !(plan.fd_names && for_descriptors(s));
        Some(Gate { sieve: Sieve::new(filter, looks), threads: Threads::default() })
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        self.sieve.tally()
    }

    /// Whether an event passes.
    pub fn passes(&mut self, event: &[u8]) -> bool {
        let Ok(ev) = Event::parse(event) else { return true };
        self.threads.before(&ev);
        let passes = self.sieve.passes(&ev, &self.threads);
        self.threads.after(&ev);
        passes
    }
}

/// The filters that the programs of the kernel backend carry out, as [`bpf::calls::Target::filters`] wants them. A call that is seen
/// and not filtered there has one that is always true.
pub fn in_programs(plan: &Plan) -> Vec<(u32, Filter)> {
    let Some(filter) = &plan.filter else { return Vec::new() };
    let seen = plan.seen_calls();
    let Ok(always) = lang::filter::parse("true", &[]) else { return Vec::new() };
    let mut filters = Vec::new();
    let mut some = false;
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(s) = schema::by_number(nr.into()).filter(|s| s.name != "raw" && seen.contains(s)) else { continue };
        let own = filter.of(s).filter(|_| plan.filters_in_kernel(s)).cloned();
        some |= own.is_some();
        filters.extend(own.or_else(|| always.check(s).ok()).map(|f| (nr, f)));
    }
    if some { filters } else { Vec::new() }
}
