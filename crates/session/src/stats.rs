//! `--stats FILE`: counters as one JSON object.
//!
//! `missed` of a probe comes from its program; where one program serves many calls, only the total has it.

use engine::pipeline::pump::{Counters, Pump};
use engine::plan::Plan;
use engine::request::enabling::{self, Enabling, What};
use engine::request::expression::{Expression, Filtered};
use engine::request::probe_enabling::ProbeEnabling;
use engine::stats::totals::Totals;
use engine::stats::{Cost, Counts, Ended, Losses, Missed, NotCaptured, Spent, StackCounts};
use events::Schema;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// What a session did, in numbers.
pub struct Stats {
    /// Events of enabled probes that were shown or written.
    pub events: u64,
    /// trapline's own events.
    pub bookkeeping: u64,
    /// Events of enabled probes that were lost, wherever.
    pub dropped: u64,
    /// trapline's own events that were lost.
    pub bookkeeping_dropped: u64,
    /// Missed runs: the kernel skipped the program because it was already running on that CPU. Nobody has seen these events.
    pub missed: u64,
    /// From the start of trapline to the first event, ns.
    pub first_event_ns: Option<u64>,
    /// Events that were overwritten by newer ones.
    pub overwritten: u64,
    /// Calls that `--where` rejected, by part, and those that lack what it names.
    filter: Option<(Value, u64)>,
    probes: Map<String, Value>,
    /// Of probes other than calls, each as it was enabled.
    enablings: Vec<Value>,
    cost: Value,
    stacks: Value,
    /// What a session without durations has not captured.
    not_captured: Option<NotCaptured>,
    /// What a view has to say: for the last line, and its counters.
    told: Option<(Vec<String>, Value)>,
}

impl Stats {
    /// Adds up what the pump counted; `lost` events never reached it.
    pub fn gather(pump: &Pump<'_>, lost: &Losses, missed: &Missed, started: u64) -> Stats {
        let first = pump.first_event().map(|t| t.saturating_sub(started));
        // What stands where records are missing is no event of a probe, nor are types of values.
        let is_lost = |s: &Schema| events::functions::kind(s) == Some(events::functions::Kind::Lost);
        let is_event = |s: &Schema| !is_lost(s) && s.name != events::values::CLASS;
        let mut stats = Stats::of(pump.counters().filter(|(s, _)| is_event(s)).collect(), first, lost, missed);
        stats.dropped += pump.malformed();
        stats
    }

    /// The figures of a trace, as its recorder counted them.
    pub fn kept(t: &Totals, lost: &Losses, missed: &Missed, started: u64) -> Stats {
        let of_types = |id| {
            u16::try_from(id).ok().and_then(events::registry::by_id).is_some_and(|s| s.name == events::values::CLASS)
        };
        let taken = t.taken.iter().enumerate().filter(|(id, n)| **n > 0 && !of_types(*id));
        let counted = taken.filter_map(|(id, &seen)| {
            let dropped = t.unwritten.get(id).copied().unwrap_or(0);
            let counters = Counters { seen, recorded: seen - dropped, dropped, filtered: 0 };
            events::registry::by_id(id as u16).map(|schema| (schema, counters))
        });
        let first = t.first_event.map(|t| t.saturating_sub(started));
        let mut stats = Stats::of(counted.collect(), first, lost, missed);
        stats.bookkeeping_dropped += t.lost_mappings;
        stats.overwritten = t.overwritten;
        stats
    }

    fn of(
        mut counted: Vec<(&'static Schema, Counters)>,
        first_event_ns: Option<u64>,
        lost: &Losses,
        missed: &Missed,
    ) -> Stats {
        // All events of a class may be lost, or missed.
        for (id, _) in missed.classes.iter().chain(&lost.classes) {
            if let Some(schema) = events::registry::by_id(*id).filter(|s| !counted.iter().any(|(c, _)| c.id == s.id)) {
                counted.push((schema, Counters::default()));
            }
        }
        for (schema, n) in &mut counted {
            n.seen += lost.of(schema.id);
            n.dropped += lost.of(schema.id);
        }
        // What is of a known class is added below.
        let unknown = lost.total - lost.classes.iter().map(|(_, n)| n).sum::<u64>().min(lost.total);
        let mut s = Stats {
            events: 0,
            bookkeeping: 0,
            dropped: unknown,
            bookkeeping_dropped: 0,
            missed: missed.total,
            first_event_ns,
            overwritten: 0,
            filter: None,
            probes: Map::new(),
            enablings: Vec::new(),
            cost: Value::Null,
            stacks: Value::Null,
            not_captured: None,
            told: None,
        };
        for (schema, n) in counted {
            s.add(schema, n, missed);
        }
        s
    }

    fn add(&mut self, schema: &Schema, n: Counters, missed: &Missed) {
        let shown_to_user = matches!(schema.name, "signal" | "exit" | "stop" | "superseded" | "untraced")
            || schema.class != events::Class::Process;
        if schema.class != events::Class::Process {
            self.events += n.recorded;
            self.dropped += n.dropped;
        } else {
            self.bookkeeping += n.recorded;
            self.bookkeeping_dropped += n.dropped;
        }
        if shown_to_user {
            let name = schema.probe().into_owned();
            let missed = missed.classes.iter().find(|(id, _)| *id == schema.id).map_or(0, |(_, n)| *n);
            let counts = json!({
                "seen": n.seen,
                "recorded": n.recorded,
                "dropped": n.dropped,
                "filtered": n.filtered,
                "missed": missed,
            });
            // Classes of one name differ in their captures.
            match self.probes.get_mut(&name) {
                None => drop(self.probes.insert(name, counts)),
                Some(known) => add(
                    known,
                    &[
                        ("seen", n.seen),
                        ("recorded", n.recorded),
                        ("dropped", n.dropped),
                        ("filtered", n.filtered),
                        ("missed", missed),
                    ],
                ),
            }
        }
    }

    /// Adds calls that were rejected before they were counted as seen, and all that `--where` rejected.
    pub fn add_filtered(&mut self, unseen: &Filtered, all: Option<(&Expression, &Filtered)>) {
        for (id, n) in &unseen.classes {
            let Some(schema) = events::registry::by_id(*id) else { continue };
            let probe = self
                .probes
                .entry(schema.probe().into_owned())
                .or_insert_with(|| json!({ "seen": 0, "recorded": 0, "dropped": 0, "filtered": 0, "missed": 0 }));
            for counter in ["seen", "filtered"] {
                probe[counter] = json!(probe[counter].as_u64().unwrap_or(0) + n);
            }
        }
        self.filter = all.map(|(filter, counts)| {
            let rejected = |i: usize| counts.parts.get(i).copied().unwrap_or(0);
            let parts = filter.parts().iter().enumerate();
            (parts.map(|(i, part)| json!({ "part": part, "rejected": rejected(i) })).collect(), counts.unknown)
        });
    }

    /// Adds what was counted of enablings, by number. What was counted of `kept` is lost too if it could not be written.
    pub fn add_enablings(&mut self, plan: &Plan, counts: &[(u32, Counts)], kept: Option<&Totals>) {
        let counted = enabling::counted(&plan.enablings, counts);
        let is_of_agent = |e: &Enabling| matches!(e.what, What::Functions(_) | What::Heap(_) | What::InProcess(_));
        // Of several enablings, nobody knows which a lost record was of; nor, of the heap, whether it was of one that is enabled.
        let several = counted.iter().filter(|(e, _)| is_of_agent(e)).count() > 1;
        let mut known: HashSet<&str> = HashSet::new();
        for (e, n) in counted {
            let (mut unwritten, rejected) = (0, n.parts.iter().sum::<u64>());
            let mut parts: Vec<(String, u64)> =
                e.filter().map(|text| (text.into_owned(), rejected)).into_iter().collect();
            match &e.what {
                What::Probe(probe) => {
                    let is_first = known.insert(&probe.name);
                    self.add_probe(probe, n, is_first);
                    unwritten = kept.map_or(0, |k| unwritten_of(probe, n, k));
                    let own = probe.filter.iter().flat_map(|f| f.parts()).zip(&n.parts);
                    parts = own.map(|(part, n)| (part.text.clone(), *n)).collect();
                }
                // These are not shown one by one.
                What::Heap(heap) if n.seen > 0 && plan.has_consumer() => {
                    self.events += n.recorded;
                    let probe = self.probe(heap.probe.name());
                    (probe["seen"], probe["recorded"]) = (json!(n.seen), json!(n.recorded));
                }
                _ => {}
            }
            let has_stacks = e.in_process().is_some() && plan.heap().is_some();
            let is_unknown = is_of_agent(e) && (several || e.heap().is_some() || has_stacks);
            self.enablings.push(json!({
                "probe": e.name(),
                "seen": n.seen,
                "recorded": n.recorded.saturating_sub(unwritten),
                "dropped": if is_unknown { Value::Null } else { json!(n.dropped + unwritten) },
                "filtered": n.filtered,
                "missed": n.missed,
                "entered": n.entered,
                "enabled": !e.removed,
                "filter": parts.iter().map(|(text, n)| json!({ "part": text, "rejected": n })).collect::<Vec<_>>(),
            }));
        }
    }

    /// Adds what a program has counted to the probe's counters.
    fn add_probe(&mut self, e: &ProbeEnabling, n: &Counts, is_first: bool) {
        let probe = self.probe(&e.name);
        if is_first {
            // Whatever has arrived somewhere is among those that the programs have seen.
            probe["seen"] = json!(0);
        }
        add(
            probe,
            &[("seen", n.seen_by_name(e)), ("dropped", n.dropped), ("filtered", n.filtered), ("missed", n.missed)],
        );
        self.missed += n.missed;
    }

    /// Adds what was counted of stacks; views had no room for `not_held` of them.
    pub fn add_stacks(&mut self, n: &StackCounts, not_held: u64) {
        let ended = Ended::ALL.iter().zip(&n.endings).filter(|(_, n)| **n > 0);
        let ended: Map<String, Value> = ended.map(|(e, n)| (e.text().to_string(), json!(n))).collect();
        let tables: Map<String, Value> = n.tables.iter().map(|(name, n)| (name.to_string(), json!(n))).collect();
        self.stacks = json!({
            "ended": ended,
            "repaired": n.repaired,
            "lost": n.lost,
            "not_held": not_held,
            "tables": tables,
        });
    }

    /// Adds what a session without durations has not captured.
    pub fn add_not_captured(&mut self, lost: Option<NotCaptured>) {
        self.not_captured = lost;
    }

    /// Adds what the session has cost.
    pub fn add_cost(&mut self, cost: Option<&Cost>) {
        let program = |s: &Spent| json!({ "name": s.name, "runs": s.runs, "ns": s.ns });
        self.cost = json!({
            "programs": cost.and_then(|c| Some(c.programs.as_ref()?.iter().map(program).collect::<Vec<_>>())),
            "drain_ns": cost.map(|c| c.drain_ns),
            "process_ns": sys::time::of_process(),
        });
    }

    /// Adds what a profile has counted.
    pub fn add_told(&mut self, told: (Vec<String>, Value)) {
        self.told = Some(told);
    }

    /// The end of the last line.
    pub fn told(&self) -> String {
        self.told.iter().flat_map(|(words, _)| words).map(|words| format!("; {words}")).collect()
    }

    /// Events of a probe that were shown or written.
    pub fn recorded(&self, name: &str) -> u64 {
        self.probes.get(name).and_then(|counts| counts["recorded"].as_u64()).unwrap_or(0)
    }

    fn probe(&mut self, name: &str) -> &mut Value {
        let none = || json!({ "seen": 0, "recorded": 0, "dropped": 0, "filtered": 0, "missed": 0 });
        self.probes.entry(name).or_insert_with(none)
    }

    /// What the session has cost, a line for each program.
    pub fn cost_lines(&self) -> Vec<String> {
        let number = |v: &Value| v.as_u64().unwrap_or(0);
        let ms = |ns: u64| format!("{}.{:03} ms", ns / 1_000_000, ns / 1000 % 1000);
        let programs = self.cost["programs"].as_array().into_iter().flatten();
        let mut lines: Vec<String> = programs
            .map(|p| {
                let (runs, ns) = (number(&p["runs"]), number(&p["ns"]));
                let each = ns.checked_div(runs).unwrap_or(0);
                format!("cost: {}: {} in {runs} runs, {each} ns each", p["name"].as_str().unwrap_or(""), ms(ns))
            })
            .collect();
        let (drain, all) = (number(&self.cost["drain_ns"]), number(&self.cost["process_ns"]));
        lines.push(format!("cost: trapline: {} of CPU, {} of it to take events over", ms(all), ms(drain)));
        lines
    }

    /// The rest of the last line.
    pub fn more(&self) -> String {
        let mut more = String::new();
        if self.bookkeeping_dropped > 0 {
            more += &format!(", {} of trapline's own dropped", self.bookkeeping_dropped);
        }
        if self.missed > 0 {
            more += &format!(", {} missed", self.missed);
        }
        if let Some(lost) = &self.not_captured {
            more += &format!(", {}", lost.words());
        }
        if self.overwritten > 0 {
            more += &format!(", {} overwritten by newer ones", self.overwritten);
        }
        more
    }

    /// The JSON object.
    pub fn to_json(&self, backend: &str) -> String {
        let mut all = json!({
            "backend": backend,
            "events": self.events,
            "bookkeeping": self.bookkeeping,
            "dropped": self.dropped,
            "bookkeeping_dropped": self.bookkeeping_dropped,
            "overwritten": self.overwritten,
            "missed": self.missed,
            "probes": self.probes,
            "first_event_ns": self.first_event_ns,
            "enablings": self.enablings,
            "cost": self.cost,
            "stacks": self.stacks,
        });
        if let Some(lost) = &self.not_captured {
            all["not_captured"] = json!({ "arguments": lost.arguments, "calls": lost.calls });
        }
        if let Some((parts, unknown)) = &self.filter {
            all["where"] = parts.clone();
            all["unknown"] = json!(unknown);
        }
        if let Some((_, profile)) = &self.told {
            all["profile"] = profile.clone();
        }
        all.to_string()
    }
}

/// Events of an enabling that could not be written.
fn unwritten_of(e: &ProbeEnabling, n: &Counts, kept: &Totals) -> u64 {
    let of_class = |id: u16| kept.unwritten.get(usize::from(id)).copied().unwrap_or(0);
    match n.streams {
        Some(nth) => kept.of_enabling(nth).unwritten,
        None => e.classes().iter().map(|s| of_class(s.id)).sum(),
    }
}

fn add(probe: &mut Value, counters: &[(&str, u64)]) {
    for (counter, n) in counters {
        probe[*counter] = json!(probe[*counter].as_u64().unwrap_or(0) + n);
    }
}
