//! Where the filter of a session is evaluated: in the kernel's programs, on the way to the views, on the way to the recorder.

use crate::pipeline::filter::{EventFilter, RecorderFilter};
use crate::plan::Plan;
use crate::request::call_enabling::call_filters;
use crate::request::select::for_descriptors;
use events::functions::{self, Kind};
use events::generated as g;
use events::{Schema, registry};
use lang::Filter;
use std::sync::Arc;

impl Plan {
    /// For the events of the session that are shown; none where nothing is filtered.
    pub fn shown_filter(&self) -> Option<EventFilter> {
        let filter = Arc::clone(self.filter.as_ref()?);
        // No backend filters functions.
        let is_function = |s: &Schema| matches!(functions::kind(s), Some(Kind::Entry | Kind::Exit));
        let calls = self.calls();
        let looks = |s: &Schema| is_function(s) || calls.contains(s) && !self.filters_in_kernel(s);
        Some(EventFilter::new(filter, looks))
    }

    /// For those that are kept; none where nothing is filtered. Calls that the table of descriptors needs are kept, whether they pass or
    /// not: the reader of the trace applies the filter again.
    pub fn recorder_filter(&self) -> Option<RecorderFilter> {
        let filter = Arc::clone(self.filter.as_ref()?);
        let calls = self.calls();
        let looks =
            |s: &Schema| calls.contains(s) && !self.filters_in_kernel(s) && !(self.fd_names && for_descriptors(s));
        Some(RecorderFilter::new(filter, looks))
    }

    /// The filters that the programs of the kernel backend carry out, as [`bpf::syscalls::Session::filters`] wants them. A call that is seen
    /// and not filtered there has one that is always true. Of a filter of the whole session and those of calls there is only one kind.
    pub fn program_filters(&self) -> Vec<(u32, Filter)> {
        let seen = self.seen_calls();
        let Some(filter) = &self.filter else { return call_filters(self.call_enablings(), &seen) };
        let Ok(always) = lang::filter::parse("true", &[]) else { return Vec::new() };
        let mut filters = Vec::new();
        let mut some = false;
        for nr in 0..g::X86_64.len() as u32 {
            let Some(s) = registry::by_number(nr.into()).filter(|s| s.name != "raw" && seen.contains(s)) else {
                continue;
            };
            let own = filter.of(s).filter(|_| self.filters_in_kernel(s)).cloned();
            some |= own.is_some();
            filters.extend(own.or_else(|| always.check(s).ok()).map(|f| (nr, f)));
        }
        if some { filters } else { Vec::new() }
    }
}
