//! `--stats FILE`: counters as one JSON object.

use engine::collector::Collector;
use serde_json::{Map, Value, json};

/// What a session did, in numbers.
pub struct Stats {
    /// Events of enabled probes that were shown or written.
    pub events: u64,
    /// trapline's own events.
    pub bookkeeping: u64,
    /// Events lost, wherever.
    pub dropped: u64,
    /// From the start of trapline to the first event, ns.
    pub first_event_ns: Option<u64>,
    probes: Map<String, Value>,
}

impl Stats {
    /// Adds up what the collector counted; `lost` events never reached it.
    pub fn gather(c: &Collector, lost: u64, started: u64) -> Stats {
        let mut s = Stats {
            events: 0,
            bookkeeping: 0,
            dropped: lost + c.malformed,
            first_event_ns: c.first_event.map(|t| t.saturating_sub(started)),
            probes: Map::new(),
        };
        for (schema, n) in c.counters() {
            let shown_to_user = matches!(schema.name, "signal" | "exit" | "stop" | "superseded")
                || schema.class == events::Class::Syscall;
            if schema.class == events::Class::Syscall {
                s.events += n.recorded;
            } else {
                s.bookkeeping += n.recorded;
            }
            s.dropped += n.dropped;
            if shown_to_user {
                let name = format!("{}:{}", schema.provider(), schema.name);
                let counts = json!({
                    "seen": n.seen, "recorded": n.recorded, "dropped": n.dropped, "filtered": n.filtered, "skipped": 0
                });
                s.probes.insert(name, counts);
            }
        }
        s
    }

    /// The JSON object.
    pub fn to_json(&self, backend: &str) -> String {
        json!({
            "backend": backend,
            "events": self.events,
            "bookkeeping": self.bookkeeping,
            "dropped": self.dropped,
            "probes": self.probes,
            "first_event_ns": self.first_event_ns,
        })
        .to_string()
    }
}
