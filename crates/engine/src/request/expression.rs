//! The filter of a session or of an enabling, typed for the classes that it applies to, and how many events it rejected.

use crate::request::select::Calls;
use events::generated as g;
use events::names::Names;
use events::schema::Ret;
use events::{Class, Event, Schema, registry};
use lang::{Code, Context, Diagnostic, Filter, Missing, Needs, Verdict};
use std::collections::BTreeMap;

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

    /// Whether a call is selected, whatever the filter names.
    pub fn selects(&self, schema: &Schema) -> bool {
        self.selected.contains(schema)
    }

    /// One more than the last class that it can be asked about.
    pub fn classes(&self) -> usize {
        self.filters.len()
    }

    /// Whether thread events of a thread of which an event has passed always pass: what the filter names of it may change.
    pub fn lives_may_change(&self) -> bool {
        self.lives.as_ref().is_some_and(|l| l.may_change)
    }

    /// Whether a thread event passes: its thread may be one whose calls pass.
    pub fn passes_life(&self, ev: &Event<'_>, names: &dyn Names) -> bool {
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

    /// Whether the filter searches strings, which no program does.
    pub fn searches(&self) -> bool {
        self.any(|f| f.needs().search)
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
