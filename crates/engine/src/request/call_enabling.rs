//! A call that is enabled: by its name, with a filter of its own.

use crate::request::select::Calls;
use lang::Filter;
use std::collections::HashMap;
use std::sync::Arc;

/// Calls that were enabled together, and their filter.
#[derive(Clone, Debug)]
pub struct CallEnabling {
    /// Its number in the session: numbers are not used again.
    pub id: u32,
    /// As it was written.
    pub names: String,
    /// Its filter, as it was written.
    pub filter: Option<String>,
    /// The calls.
    pub calls: Calls,
    /// The filter, by class; of those in `calls`, all or none.
    pub typed: Arc<HashMap<u16, Filter>>,
}

impl CallEnabling {
    /// Its name and its filter.
    pub fn label(&self) -> String {
        match &self.filter {
            None => self.names.clone(),
            Some(filter) => format!("{} /{filter}/", self.names),
        }
    }

    fn needs(&self, asks: impl Fn(&lang::Needs) -> bool) -> bool {
        self.typed.values().any(|f| asks(f.needs()))
    }

    /// How many bytes of strings decide.
    pub fn text_bytes(&self) -> usize {
        self.typed.values().flat_map(|f| &f.needs().strings).map(|s| s.bytes).max().unwrap_or(0)
    }

    /// Whether names of threads are asked for.
    pub fn asks_comm(&self) -> bool {
        self.needs(|n| n.comm)
    }

    /// Whether users or groups are asked for.
    pub fn asks_ids(&self) -> bool {
        self.needs(|n| n.uid || n.gid)
    }
}

/// The calls among `all` whose filters are evaluated here: those with several enablings one of which has a filter; with `every`, all that
/// have one.
pub fn evaluated(all: &[CallEnabling], every: bool) -> Calls {
    let mut calls = Calls::none();
    if all.iter().all(|e| e.filter.is_none()) {
        return calls;
    }
    for call in events::registry::syscalls().filter(|s| s.name != "raw") {
        let of: Vec<&CallEnabling> = all.iter().filter(|e| e.calls.contains(call)).collect();
        if of.iter().any(|e| e.filter.is_some()) && (every || of.len() > 1) {
            calls.insert(call);
        }
    }
    calls
}
