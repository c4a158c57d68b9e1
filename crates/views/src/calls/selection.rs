//! Which calls are shown: those of some functions and below, without others and below, down to a depth, or of a shortest duration.
//!
//! [`Selected`] stands between a stack and a view, which sees the selected calls only, as if there were no others: depths count from the
//! outermost selected call, and the time of calls that are not shown is that of their callers.

use super::by_function::ByFunction;
use super::stack::{Call, Calls};
use super::{Functions, pattern};

/// The selected calls: by default all.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Patterns of functions: only their calls are shown, with what they call. Empty: all.
    pub only: Vec<String>,
    /// Patterns of functions that are not shown, nor what they call.
    pub without: Vec<String>,
    /// The most calls inside of each other, counted from the outermost that is shown.
    pub depth: usize,
    /// The shortest duration of a call that is shown, ns. A view of whole calls hides shorter ones; totals ignore it.
    pub shortest: u64,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { only: Vec::new(), without: Vec::new(), depth: usize::MAX, shortest: 0 }
    }
}

impl Selection {
    /// Whether some calls are left out for what they are, whatever their duration.
    pub fn is_everything(&self) -> bool {
        self.only.is_empty() && self.without.is_empty() && self.depth == usize::MAX
    }

    /// Whether a function is among those of which calls are shown, and whether it is among those that are hidden.
    pub fn verdict(&self, function: u32, functions: &dyn Functions) -> (bool, bool) {
        let names = [functions.name(function), functions.whole_name(function)].map(Option::unwrap_or_default);
        let names = || names.into_iter().chain(functions.aliases(function).iter().map(String::as_str));
        let any = |patterns: &[String]| patterns.iter().any(|p| names().any(|name| pattern::matches(p, name)));
        (self.only.is_empty() || any(&self.only), any(&self.without))
    }
}

/// What a selection says about functions that were asked about before.
#[derive(Clone, Debug)]
pub struct Verdicts {
    selection: Selection,
    everything: bool,
    of: ByFunction<Option<(bool, bool)>>,
}

impl Verdicts {
    /// Nothing was asked yet.
    pub fn new(selection: Selection) -> Verdicts {
        Verdicts { everything: selection.is_everything(), selection, of: ByFunction::new() }
    }

    /// The selection that these verdicts are of.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether a function is among those of which calls are shown, and whether it is among those that are hidden.
    fn of(&mut self, function: u32, functions: &dyn Functions) -> (bool, bool) {
        let selection = &self.selection;
        *self.of.of(function).get_or_insert_with(|| selection.verdict(function, functions))
    }
}

/// The place of a thread among the selected calls.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Depth of the outermost call that makes the calls inside of it visible.
    shown_from: Option<usize>,
    /// Depth of the outermost hidden call.
    hidden_from: Option<usize>,
    /// Time of hidden callees, for each shown call that is open.
    hidden: Vec<u64>,
    /// How many shown calls of each function are open; not used where everything is selected.
    of_function: ByFunction<u32>,
}

impl Place {
    /// Whether something that the thread does now, other than a call of a function, is shown.
    pub fn shows(&self, verdicts: &Verdicts) -> bool {
        let selection = &verdicts.selection;
        let is_inside = self.shown_from.is_some() || selection.only.is_empty();
        is_inside && self.hidden_from.is_none() && self.hidden.len() < selection.depth
    }
}

/// Passes the selected calls on.
pub struct Selected<'a, C> {
    /// Where the thread is.
    pub place: &'a mut Place,
    /// What is selected.
    pub verdicts: &'a mut Verdicts,
    /// Names.
    pub functions: &'a dyn Functions,
    /// Who gets the calls.
    pub calls: C,
}

impl<C: Calls> Calls for Selected<'_, C> {
    #[inline]
    fn entered(&mut self, function: u32, start: u64, depth: usize) {
        let p = &mut *self.place;
        if p.hidden_from.is_some() {
            return;
        }
        if self.verdicts.everything {
            p.shown_from.get_or_insert(depth);
        } else {
            let (only, without) = self.verdicts.of(function, self.functions);
            if without || p.hidden.len() >= self.verdicts.selection.depth {
                p.hidden_from = Some(depth);
                return;
            }
            if only && p.shown_from.is_none() {
                p.shown_from = Some(depth);
            }
        }
        if p.shown_from.is_some() {
            let depth = p.hidden.len();
            p.hidden.push(0);
            if !self.verdicts.everything {
                *p.of_function.of(function) += 1;
            }
            self.calls.entered(function, start, depth);
        }
    }

    #[inline]
    fn ended(&mut self, call: &Call) {
        let p = &mut *self.place;
        if let Some(from) = p.hidden_from {
            if from == call.depth {
                p.hidden_from = None;
                if let Some(caller) = p.hidden.last_mut() {
                    *caller += call.duration();
                }
            }
            return;
        }
        if p.shown_from.is_none() {
            return;
        }
        let hidden = p.hidden.pop().unwrap_or(0);
        if p.shown_from == Some(call.depth) {
            p.shown_from = None;
        }
        let mut call = Call { depth: p.hidden.len(), own: call.own + hidden, ..*call };
        if !self.verdicts.everything {
            let open = p.of_function.of(call.function);
            *open -= 1;
            call.outermost = *open == 0;
        }
        self.calls.ended(&call);
    }

    fn unmatched(&mut self, function: u32, time: u64) {
        if self.verdicts.selection.only.is_empty() && self.place.hidden_from.is_none() {
            self.calls.unmatched(function, time);
        }
    }

    fn gap(&mut self, time: u64, dropped: u64) {
        self.calls.gap(time, dropped);
    }

    fn paused(&mut self, time: u64) {
        self.calls.paused(time);
    }
}
