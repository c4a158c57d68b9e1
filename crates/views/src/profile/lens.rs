//! The visible part of a profile: without some frames, from one function on, threads with numbered names as one.
//!
//! Every view draws this part: a table, a tree and a graph through the same lens have the same numbers.

use super::stacks::{FrameId, LabelsId, Stacks};
use super::{Frame, Labels};
use lang::pattern::glob;
use std::collections::{HashMap, HashSet};

/// The frames to leave out, and the threads to join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lens {
    /// Functions that are left out of stacks, by patterns with `*` and `?`: their callers are shown as if they had called what those call.
    pub hide: Vec<String>,
    /// Inlined functions are left out.
    pub no_inline: bool,
    /// Only stacks with such a function.
    pub focus: Option<String>,
    /// Threads whose names differ in numbers only are one: `worker-1` and `worker-2` are `worker-*`.
    pub join_numbered: bool,
}

/// Where stacks with the function in focus are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere.
    #[default]
    No,
    /// They begin with it: without its callers, at its outermost call.
    Callers,
    /// They end in it: without what it calls, at its innermost call.
    Callees,
}

impl Lens {
    /// The profile as it is seen. `turned`: with the innermost frames outermost.
    pub fn through(&self, stacks: &Stacks, cut: Cut, turned: bool) -> Stacks {
        let mut seen = stacks.empty();
        let frames: Vec<Option<FrameId>> = (0..stacks.frame_count() as u32)
            .map(|id| {
                let f = stacks.frame_at(id);
                (!self.hides(&f)).then(|| seen.frame(&f))
            })
            .collect();
        let in_focus: Vec<bool> =
            (0..stacks.frame_count() as u32).map(|id| self.is_focus(&stacks.frame_at(id))).collect();
        let is_focus = |id: &u32| in_focus.get(*id as usize) == Some(&true);
        let joined = if self.join_numbered { numbered(stacks) } else { HashSet::new() };
        let mut labels: HashMap<LabelsId, LabelsId> = HashMap::new();
        for e in stacks.entries() {
            let mut all = stacks.frames_of(e.stack);
            if self.focus.is_some() {
                let at = match cut {
                    Cut::Callees => all.iter().position(is_focus),
                    _ => all.iter().rposition(is_focus),
                };
                let Some(at) = at else { continue };
                all = match cut {
                    Cut::No => all,
                    Cut::Callers => all.get(..=at).unwrap_or_default(),
                    Cut::Callees => all.get(at..).unwrap_or_default(),
                };
            }
            let mut kept: Vec<FrameId> = all.iter().filter_map(|id| *frames.get(*id as usize)?).collect();
            if turned {
                kept.reverse();
            }
            let stack = seen.stack(&kept);
            let who = *labels.entry(e.labels).or_insert_with(|| {
                let l = stacks.labels_of(e.labels);
                match without_numbers(l.comm).filter(|plain| joined.contains(plain)) {
                    Some(plain) => seen.labels(Labels { comm: &plain, ..l }),
                    None => seen.labels(l),
                }
            });
            seen.add_many(stack, who, e.tally, stacks.span().map_or(0, |s| s.0));
        }
        seen.set_span(stacks.span());
        seen.add_not_held(stacks.not_held());
        seen
    }

    /// Hands over the profile with the visible parts of whole stacks.
    pub fn whole(&self, stacks: &Stacks, mut each: impl FnMut(&Stacks)) {
        let cuts = !self.hide.is_empty() || self.no_inline || self.focus.is_some();
        let joins = self.join_numbered && !numbered(stacks).is_empty();
        match cuts || joins {
            true => each(&self.through(stacks, Cut::No, false)),
            false => each(stacks),
        }
    }

    fn hides(&self, f: &Frame<'_>) -> bool {
        self.no_inline && f.inlined || self.hide.iter().any(|pattern| is(pattern, f))
    }

    fn is_focus(&self, f: &Frame<'_>) -> bool {
        self.focus.as_ref().is_some_and(|pattern| is(pattern, f))
    }
}

/// Whether a frame is of such a function: by its whole name, or by what comes before its arguments.
fn is(pattern: &str, f: &Frame<'_>) -> bool {
    let plain = f.function.split('(').next().unwrap_or_default();
    [f.function, plain].iter().any(|name| !name.is_empty() && glob(pattern.as_bytes(), name.as_bytes()))
}

/// A name with `*` for its last number; none where it has none.
fn without_numbers(name: &str) -> Option<String> {
    let end = name.rfind(|c: char| c.is_ascii_digit())?;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    // A name that is all digits has nothing to be known by.
    let (before, after) = (name.get(..start)?, name.get(end + 1..)?);
    (before.chars().chain(after.chars()).any(char::is_alphabetic)).then(|| format!("{before}*{after}"))
}

/// The names that several threads have but for a number.
fn numbered(stacks: &Stacks) -> HashSet<String> {
    let mut names: HashMap<String, HashSet<&str>> = HashMap::new();
    for e in stacks.entries() {
        let comm = stacks.labels_of(e.labels).comm;
        if let Some(plain) = without_numbers(comm) {
            names.entry(plain).or_default().insert(comm);
        }
    }
    names.into_iter().filter(|(_, all)| all.len() > 1).map(|(plain, _)| plain).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{By, Unit, folded};
    use super::*;

    fn sample() -> Stacks {
        let mut s = Stacks::new(Unit::Samples { period: 1 });
        let mut add = |comm: &str, frames: &[&str], weight| {
            let ids: Vec<FrameId> = frames
                .iter()
                .map(|f| s.frame(&Frame { function: f, inlined: f.starts_with("in"), ..Frame::default() }))
                .collect();
            let stack = s.stack(&ids);
            let who = s.labels(Labels { pid: 1, tid: 1, comm });
            s.add(stack, who, weight, 5);
        };
        add("w-1", &["leaf", "inlined", "work(int)", "main"], 3);
        add("w-2", &["leaf", "other", "main"], 2);
        add("x86", &["work(int)", "work(int)", "main"], 1);
        s
    }

    fn seen(lens: &Lens, cut: Cut, turned: bool) -> String {
        let mut out = Vec::new();
        folded::write(&lens.through(&sample(), cut, turned), By::Comm, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_clear_lens_changes_nothing() {
        let mut plain = Vec::new();
        folded::write(&sample(), By::Comm, &mut plain);
        assert_eq!(seen(&Lens::default(), Cut::No, false).as_bytes(), plain);
    }

    #[test]
    fn frames_are_left_out_and_threads_joined() {
        let lens = Lens { hide: vec!["m?in".into()], no_inline: true, join_numbered: true, ..Lens::default() };
        assert_eq!(seen(&lens, Cut::No, false), "w-*;other;leaf 2\nw-*;work(int);leaf 3\nx86;work(int);work(int) 1\n");
    }

    #[test]
    fn a_focus_cuts_callers_or_callees() {
        let lens = Lens { focus: Some("work".into()), no_inline: true, ..Lens::default() };
        assert_eq!(seen(&lens, Cut::No, false), "w-1;main;work(int);leaf 3\nx86;main;work(int);work(int) 1\n");
        assert_eq!(seen(&lens, Cut::Callers, false), "w-1;work(int);leaf 3\nx86;work(int);work(int) 1\n");
        assert_eq!(seen(&lens, Cut::Callees, true), "w-1;work(int);main 3\nx86;work(int);work(int);main 1\n");
    }

    #[test]
    fn numbers_in_names() {
        let plain = |name| without_numbers(name);
        assert_eq!((plain("tokio-12"), plain("a1b2c")), (Some("tokio-*".into()), Some("a1b*c".into())));
        assert_eq!((plain("main"), plain("123"), plain("1-2")), (None, None, None));
    }
}
