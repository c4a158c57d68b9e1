//! What is enabled, of whatever kind: the one list of a plan. What is taken away stays in it, because what it has counted is still
//! reported; so the number of an enabling is its place.

use crate::request::call_enabling::{CallEnabling, of_wanted};
use crate::request::functions::FunctionEnabling;
use crate::request::heap_enabling::HeapEnabling;
use crate::request::parse::label;
use crate::request::probe_enabling::ProbeEnabling;
use crate::request::select::Calls;
use events::Schema;
use std::borrow::Cow;
use std::sync::Arc;

/// Something that is enabled, with its own filter.
#[derive(Clone, Debug)]
pub struct Enabling {
    /// Its number in the session: numbers are not used again.
    pub id: u32,
    /// It was taken away.
    pub removed: bool,
    /// What is enabled.
    pub what: What,
}

/// What an enabling enables.
#[derive(Clone, Debug)]
pub enum What {
    /// System calls.
    Calls(CallEnabling),
    /// A probe with programs of its own.
    Probe(Arc<ProbeEnabling>),
    /// Functions that the agent patches.
    Functions(FunctionEnabling),
    /// A probe of the heap.
    Heap(HeapEnabling),
    /// A probe in a file, which the agent reaches in the process.
    InProcess(Arc<ProbeEnabling>),
}

impl Enabling {
    /// Its name, as it was written.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.what {
            What::Calls(e) => Cow::Borrowed(&e.names),
            What::Probe(e) | What::InProcess(e) => Cow::Borrowed(&e.name),
            What::Functions(e) => Cow::Owned(e.probe()),
            What::Heap(e) => Cow::Borrowed(e.probe.name()),
        }
    }

    /// Its filter.
    pub fn filter(&self) -> Option<Cow<'_, str>> {
        match &self.what {
            What::Calls(e) => e.filter.as_deref().map(Cow::Borrowed),
            What::Probe(e) | What::InProcess(e) => e.filter_text().map(Cow::Owned),
            What::Functions(e) => e.filter.as_deref().map(Cow::Borrowed),
            What::Heap(e) => e.text.as_deref().map(Cow::Borrowed),
        }
    }

    /// Its name and its filter.
    pub fn label(&self) -> String {
        label(&self.name(), self.filter().as_deref())
    }

    /// The calls that it enables.
    pub fn calls(&self) -> Option<&CallEnabling> {
        if let What::Calls(e) = &self.what { Some(e) } else { None }
    }

    /// The probe that it enables.
    pub fn probe(&self) -> Option<&Arc<ProbeEnabling>> {
        if let What::Probe(e) = &self.what { Some(e) } else { None }
    }

    /// The probe that it enables in the process.
    pub fn in_process(&self) -> Option<&Arc<ProbeEnabling>> {
        if let What::InProcess(e) = &self.what { Some(e) } else { None }
    }

    /// The functions that it enables.
    pub fn functions(&self) -> Option<&FunctionEnabling> {
        if let What::Functions(e) = &self.what { Some(e) } else { None }
    }

    /// The probe of the heap that it enables.
    pub fn heap(&self) -> Option<&HeapEnabling> {
        if let What::Heap(e) = &self.what { Some(e) } else { None }
    }

    /// The classes of its events, where these are not described in every trace.
    pub fn classes(&self) -> Vec<&'static Schema> {
        match &self.what {
            What::Calls(_) | What::Functions(_) => Vec::new(),
            What::Probe(e) | What::InProcess(e) => e.classes().to_vec(),
            What::Heap(e) => e.probe.class(e.stack).into_iter().collect(),
        }
    }

    /// Whether it was not taken away, and there is something to record of it while a session runs.
    pub fn is_live(&self) -> bool {
        !self.removed && self.probe().is_none_or(|e| e.point.is_some())
    }
}

/// Adds to the list of a session, which numbers what is added.
pub fn add(all: &mut Vec<Enabling>, more: impl IntoIterator<Item = What>) {
    for what in more {
        all.push(Enabling { id: all.len() as u32, removed: false, what });
    }
}

/// The list of a session that begins with these.
pub fn list(first: impl IntoIterator<Item = What>) -> Vec<Enabling> {
    let mut all = Vec::new();
    add(&mut all, first);
    all
}

/// The list of a session that enables these calls.
pub fn of_calls(calls: &Calls) -> Vec<Enabling> {
    list(of_wanted(Vec::new(), calls).into_iter().map(What::Calls))
}

/// The calls of all that were not taken away.
pub fn calls_of(all: &[Enabling]) -> Calls {
    let mut calls = Calls::none();
    all.iter().filter(|e| !e.removed).filter_map(Enabling::calls).for_each(|e| calls.join(&e.calls));
    calls
}

/// What was counted by number, with the enablings in their order.
pub fn counted<'a, T>(all: &'a [Enabling], counts: &'a [(u32, T)]) -> Vec<(&'a Enabling, &'a T)> {
    let mut found: Vec<_> = counts.iter().filter_map(|(id, n)| Some((all.get(*id as usize)?, n))).collect();
    found.sort_by_key(|(e, _)| e.id);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::captures::Captures;
    use crate::request::call_enabling::call_enablings;
    use crate::request::functions::function_enablings;
    use crate::request::heap_enabling::heap_enablings;
    use crate::request::parse::Request;

    #[test]
    fn one_list_has_all_kinds_and_numbers_them() {
        let texts = ["read,write /args.fd == 1/", "function:main", "heap:free"];
        let requests = texts.map(|text| Request::parse(text).unwrap());
        let wanted = Calls::parse("write,close").unwrap();
        // What an enabling has of others goes, and what none has gets one.
        let calls = of_wanted(call_enablings(&requests).unwrap(), &wanted);
        let mut all = list(calls.into_iter().map(What::Calls));
        add(&mut all, function_enablings(&requests).unwrap().into_iter().map(What::Functions));
        add(&mut all, heap_enablings(&requests, Captures::default()).unwrap().into_iter().map(What::Heap));
        let labels: Vec<String> = all.iter().map(Enabling::label).collect();
        assert_eq!(labels, ["read,write /args.fd == 1/", "close", "function:main", "heap:free"]);
        assert_eq!(all.iter().map(|e| e.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(calls_of(&all), wanted);
        all[1].removed = true;
        assert_eq!(calls_of(&all).names(), ["write"]);
        let counts = [(3, 'd'), (7, 'x'), (1, 'b')];
        let found: Vec<_> = counted(&all, &counts).into_iter().map(|(e, n)| (e.id, *n)).collect();
        assert_eq!(found, [(1, 'b'), (3, 'd')]);
    }
}
