//! `--where`: a filter for the calls of a session or of a trace, and how many events it rejected.
//!
//! ```text
//! text ─► Expression (a filter per class) ─┬─► programs of the kernel backend ─────► counters of the programs ─┐
//!                                     ├─► front end, events that are shown ──► Tally ─────────────────────┼─► Filtered
//!                                     └─► recorder, events that are kept ────► RecorderFilter ──────────────────────┘
//! ```
//!
//! It filters calls, other probes, and thread events (signals, stops, ends). A thread event is rejected only if the filter certainly
//! rejects its thread (`Lives`). trapline's own events have selections of their own. A notice that a call is still running
//! is shown where the filter can be decided before the call is carried out.

use crate::pipeline::threads::Threads;
use crate::select::Calls;
use events::generated as g;
use events::names::Names;
use events::schema::Ret;
use events::{Class, Event, Schema, registry};
use lang::{Code, Context, Diagnostic, Filter, Missing, Needs, Verdict};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A filter, typed for each call and each other probe that is selected.
#[derive(Debug)]
pub struct Expression {
    /// The text of the expression.
    pub text: String,
    /// The values of `$1`, `$2`, ….
    pub params: Vec<String>,
    /// The filter of each class. No event of a selected class without one passes.
    filters: Vec<Option<Filter>>,
    selected: Calls,
    /// The selected calls that have what the filter names.
    having: Calls,
    /// What the other calls lack, as the filter names it; how many have it, of how many.
    lacking: Option<(String, usize, usize)>,
    parts: Vec<String>,
    lives: Option<Lives>,
}

/// The parts of a filter that are about threads, not calls: those that name `pid`, `tid`, `comm`, `uid` or `gid` and nothing else, typed for
/// thread events (signals, stops, ends).
#[derive(Debug)]
struct Lives {
    filters: Vec<Filter>,
    /// Names and users change, and not every change is reported: once an event of a thread has passed, its thread events pass too, whatever is
    /// known of it later.
    may_change: bool,
}

impl Lives {
    fn of(parts: &[String], params: &[String]) -> Option<Lives> {
        let of_threads = |text: &&String| {
            let parsed = lang::filter::parse(text, params).ok();
            let typed = parsed.and_then(|p| p.check(&g::P_EXIT).ok());
            // `probe` has another value for these events.
            !text.contains("probe") && typed.is_some_and(|f| names_threads_only(&f))
        };
        let parts: Vec<String> = parts.iter().filter(of_threads).map(|p| format!("({p})")).collect();
        let parsed = lang::filter::parse(&parts.join(" && "), params).ok()?;
        let classes = [&g::P_EXIT, &g::P_SUPERSEDED, &g::P_SIGNAL, &g::P_STOP];
        let filters: Vec<Filter> = classes.iter().filter_map(|s| parsed.check(s).ok()).collect();
        let needs = filters.first()?.needs();
        let may_change = needs.comm || needs.uid || needs.gid;
        Some(Lives { filters, may_change })
    }
}

fn names_threads_only(f: &Filter) -> bool {
    let n = f.needs();
    f.constant().is_none() && n.args == 0 && !(n.cpu || n.nsecs || n.start || n.retval)
}

/// Whether an event is a thread event: a signal, stop or end.
fn is_of_lives(s: &Schema) -> bool {
    [g::P_EXIT.id, g::P_SUPERSEDED.id, g::P_SIGNAL.id, g::P_STOP.id].contains(&s.base)
}

impl Expression {
    /// Parses the text and types it for the selected calls and for the classes of other probes, of which those without an argument that
    /// it names are skipped where some have it. Calls of no table and 32-bit ones have no arguments by name: they pass a
    /// filter only if it names none. Calls that never return have no result, and are no reason to refuse a filter that asks for it:
    /// they lack a value.
    pub fn new(
        text: &str,
        params: &[String],
        calls: &Calls,
        probes: &[&'static Schema],
    ) -> Result<Expression, Diagnostic> {
        let parsed = lang::filter::parse(text, params)?;
        let all = || registry::syscalls().filter(|s| s.name != "raw" && calls.contains(s));
        let some_return = all().any(|s| s.ret != Ret::Never);
        let lacks = |s: &Schema| parsed.check(s).is_err_and(|d| d.code == Code::NotAvailable);
        let calls_that_return = all().filter(|s| s.ret != Ret::Never || !some_return || !lacks(s));
        let (typable, lacking) = having(&parsed, calls_that_return.chain(probes.iter().copied()).collect());
        let typed = parsed.check_all(&typable)?;
        let parts: Vec<String> = typed.first().map_or(&[][..], Filter::parts).iter().map(|p| p.text.clone()).collect();
        let last = probes.iter().map(|s| usize::from(s.id)).max().unwrap_or(0);
        let mut filters = vec![None; g::SCHEMAS.len().max(last + 1)];
        let raw = &g::C_RAW;
        if calls.has_unknown() {
            filters[usize::from(raw.id)] = parsed.check(raw).ok().filter(|f| f.needs().args == 0);
        }
        let mut having = if lacking.is_some() { Calls::none() } else { calls.clone() };
        for (s, f) in typable.iter().zip(typed) {
            filters[usize::from(s.id)] = Some(f);
            if s.class == Class::Syscall {
                having.insert(s);
            }
        }
        let lives = Lives::of(&parts, params);
        let lacking = lacking.map(|names| (names, typable.len(), all().count() + probes.len()));
        let (text, params, selected) = (text.into(), params.to_vec(), calls.clone());
        Ok(Expression { text, params, filters, selected, having, lacking, parts, lives })
    }

    /// The selected calls that have what the filter names: no other passes.
    pub fn calls(&self) -> &Calls {
        &self.having
    }

    /// The note for a filter that names what only some of the selected calls have.
    pub fn note(&self) -> Option<String> {
        let (names, some, all) = self.lacking.as_ref()?;
        let what = if self.filters.len() == g::SCHEMAS.len() { "calls" } else { "probes" };
        let have = if *some == 1 { "1 has".to_string() } else { format!("{some} have") };
        Some(format!("--where: of {all} selected {what} {have} {names}: the others are skipped"))
    }

    /// Whether a thread event passes: its thread may be one whose calls pass.
    fn passes_life(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let filter = self.lives.iter().flat_map(|l| &l.filters).find(|f| f.schema() == ev.schema.base);
        let (uid, gid) = names.ids(ev.tid());
        let context = Context { comm: names.comm(ev.tid()), uid, gid, cpu: None };
        filter.is_none_or(|f| !matches!(f.matches(ev, &context), Verdict::Rejected(_)))
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

    /// Whether the filter names threads' names.
    pub fn asks_comm(&self) -> bool {
        self.any(|f| f.needs().comm)
    }

    /// Whether the filter names users or groups.
    pub fn asks_ids(&self) -> bool {
        self.any(|f| f.needs().uid || f.needs().gid)
    }

    /// What the filter of each class needs; not of probes other than calls.
    pub fn needs(&self) -> impl Iterator<Item = &Needs> {
        let is_call = |f: &&Filter| registry::by_id(f.schema()).is_some_and(|s| s.class == Class::Syscall);
        self.filters.iter().flatten().filter(is_call).map(Filter::needs)
    }

    /// Whether the filter names CPUs.
    pub fn asks_cpu(&self) -> bool {
        self.any(|f| f.needs().cpu)
    }

    /// How many bytes of a string the filter needs.
    pub fn text_bytes(&self) -> usize {
        self.filters.iter().flatten().flat_map(|f| &f.needs().strings).map(|s| s.bytes).max().unwrap_or(0)
    }

    /// Whether a call passes, or what it lacks.
    pub fn verdict(&self, ev: &Event<'_>, names: &dyn Names) -> Verdict {
        let Some(filter) = self.of(ev.schema) else { return Verdict::Unknown(Missing::Probe) };
        let (uid, gid) = names.ids(ev.tid());
        filter.matches(ev, &Context { comm: names.comm(ev.tid()), uid, gid, cpu: None })
    }

    /// Whether the notice of a running call passes: only if the filter needs nothing but values that are known before the call runs.
    pub fn passes_notice(&self, call: &Event<'_>, names: &dyn Names) -> bool {
        self.of(call.schema).is_some_and(|f| f.needs().at_entry()) && self.verdict(call, names).passes()
    }
}

/// Of these calls, those that have the arguments that a filter names, and what the others lack; all, where none has them.
fn having<'s>(parsed: &lang::Parsed, calls: Vec<&'s Schema>) -> (Vec<&'s Schema>, Option<String>) {
    // What a call has and another probe lacks: start, result.
    let missing = |s: &Schema, d: &Diagnostic| {
        d.code == Code::UnknownField || d.code == Code::NotAvailable && s.class == Class::Probe
    };
    let lacks = |s: &Schema| parsed.check(s).err().filter(|d| missing(s, d));
    let without: Vec<Diagnostic> = calls.iter().filter_map(|s| lacks(s)).collect();
    if without.is_empty() || without.len() == calls.len() {
        return (calls, None);
    }
    let mut names: Vec<&str> = without.iter().map(|d| d.span.of(&parsed.text)).collect();
    names.sort_unstable();
    names.dedup();
    let some = calls.into_iter().filter(|s| lacks(s).is_none()).collect();
    (some, Some(names.join(" and ")))
}

/// How many events a filter rejected.
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

/// Counts rejected events, from several threads.
#[derive(Debug)]
pub struct Tally {
    passed: AtomicU64,
    parts: Vec<AtomicU64>,
    unknown: AtomicU64,
    classes: Vec<AtomicU64>,
}

impl Tally {
    /// Counts for a filter.
    pub fn of(filter: &Expression) -> Tally {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Tally {
            passed: AtomicU64::new(0),
            parts: zeros(filter.parts.len()),
            unknown: AtomicU64::new(0),
            classes: zeros(filter.filters.len()),
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

/// A filter, the classes that it applies to, and the counts of what it rejected. Several threads can use it.
#[derive(Debug)]
pub struct EventFilter {
    filter: Arc<Expression>,
    looks: Vec<bool>,
    tally: Arc<Tally>,
    /// Threads of which an event has passed, where that matters.
    known: Mutex<HashSet<u32>>,
}

impl EventFilter {
    /// Asks `filter` about the classes that `looks` names; all others pass.
    pub fn new(filter: Arc<Expression>, looks: impl Fn(&Schema) -> bool) -> EventFilter {
        let tally = Arc::new(Tally::of(&filter));
        let looks = (0..filter.filters.len()).map(|id| registry::by_id(id as u16).is_some_and(&looks)).collect();
        EventFilter { filter, looks, tally, known: Mutex::default() }
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// The filter.
    pub fn filter(&self) -> &Expression {
        &self.filter
    }

    fn known(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event passes.
    pub fn passes(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
        let may_change = self.filter.lives.as_ref().is_some_and(|l| l.may_change);
        if ev.is_syscall() || ev.schema.class == Class::Probe {
            let looked_at = self.looks.get(usize::from(ev.schema.base)).copied().unwrap_or(false);
            let passes = !looked_at || self.tally.count(ev.schema.base, self.filter.verdict(ev, names));
            if passes && may_change && self.filter.selected.contains(ev.schema) {
                self.known().insert(ev.tid());
            }
            return passes;
        }
        if is_of_lives(ev.schema) {
            return self.filter.passes_life(ev, names) || may_change && self.known().contains(&ev.tid());
        }
        if ev.schema.id != g::P_INFLIGHT.id {
            return true;
        }
        let Ok(call) = Event::parse(ev.bytes_of("call")) else { return true };
        !self.filter.selected.contains(call.schema) || self.filter.passes_notice(&call, names)
    }
}

/// A filter before the recorder.
#[derive(Debug)]
pub struct RecorderFilter {
    filter: EventFilter,
    threads: Threads,
}

impl RecorderFilter {
    /// Asks `filter` about the classes that `looks` names; all others pass.
    pub fn new(filter: Arc<Expression>, looks: impl Fn(&Schema) -> bool) -> RecorderFilter {
        RecorderFilter { filter: EventFilter::new(filter, looks), threads: Threads::default() }
    }

    /// What it has held back, also later.
    pub fn tally(&self) -> Arc<Tally> {
        self.filter.tally()
    }

    /// Whether an event passes.
    pub fn passes(&mut self, event: &[u8]) -> bool {
        let Ok(ev) = Event::parse(event) else { return true };
        self.threads.before(&ev);
        // The reader of the trace needs the ends, and applies the filter again.
        let passes = is_of_lives(ev.schema) || self.filter.passes(&ev, &self.threads);
        self.threads.after(&ev);
        passes
    }
}
