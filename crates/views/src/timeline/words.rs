//! Names, categories and notes of items for the formats of other programs. None has control characters.

use super::columns::{Item, Row};
use super::{Kind, Timeline};
use crate::calls::label;
use crate::profile::name::visible;
use crate::profile::words::losses;
use std::borrow::Cow;

/// The words of a picture.
pub(super) struct Words<'t> {
    timeline: &'t Timeline,
    strings: Vec<&'t str>,
    /// Names and files of functions.
    functions: Vec<(String, String)>,
}

impl<'t> Words<'t> {
    pub(super) fn new(timeline: &'t Timeline) -> Words<'t> {
        let functions = timeline.functions.view().all().iter();
        let file = |module: &str| if module.is_empty() { "-".to_owned() } else { visible(module).into_owned() };
        Words {
            timeline,
            strings: timeline.strings.all().collect(),
            functions: functions.map(|f| (label::bounded(&f.name), file(&f.module))).collect(),
        }
    }

    /// A string of the traced program, as it is.
    pub(super) fn string(&self, number: u32) -> &'t str {
        self.strings.get((number as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// Name and category of an item.
    pub(super) fn name(&self, row: &Row, item: &Item) -> (Cow<'_, str>, &str) {
        let category = match row.kind {
            Kind::Function => {
                let of = self.functions.get((item.name as usize).wrapping_sub(1));
                return of.map_or((Cow::default(), "-"), |(name, file)| (name.into(), file));
            }
            Kind::Lost => return ("events are missing".into(), "trapline"),
            Kind::Call => "syscall",
            Kind::Run | Kind::Cpu => "sched",
            Kind::Span => "span",
            Kind::Sample => "sample",
            Kind::Mark | Kind::Heap | Kind::Files => "probe",
        };
        (visible(self.string(item.name)), category)
    }

    /// The name of a row's own track. Overlapping spans of one name have a track each.
    pub(super) fn row(&self, row: &Row) -> Cow<'static, str> {
        match row.kind {
            Kind::Function => "functions".into(),
            Kind::Call => "calls".into(),
            Kind::Run => "runs".into(),
            Kind::Sample => "samples".into(),
            Kind::Mark => "marks".into(),
            Kind::Lost => "missing".into(),
            Kind::Heap => "heap".into(),
            Kind::Files => "descriptors".into(),
            Kind::Cpu => format!("processor {}", row.depth).into(),
            Kind::Span => {
                let of = row.items().next().map_or("", |item| self.string(item.name));
                format!("spans {}", visible(of)).into()
            }
        }
    }

    /// Notes about an item: a key and a text each.
    pub(super) fn notes(&self, row: &Row, item: &Item, note: &mut dyn FnMut(&str, &str)) {
        let text = |number: u32| visible(self.string(number));
        let mut of = |what: &str, text: &str| {
            if !text.is_empty() {
                note(what, text);
            }
        };
        match row.kind {
            Kind::Function => of("end", ending(item)),
            Kind::Call => {
                of("call", &text(item.text));
                of("file", &text(item.subject as u32));
                of("result", &item.value.to_string());
            }
            Kind::Lost => of("events", &item.value.to_string()),
            Kind::Span => of("span", &text(item.text)),
            Kind::Mark => of("event", &text(item.text)),
            Kind::Run | Kind::Sample | Kind::Heap | Kind::Files | Kind::Cpu => {}
        }
    }

    /// A frame: its function, and the file that has it.
    pub(super) fn frame(&self, number: u32) -> (Cow<'t, str>, Cow<'t, str>) {
        let of = self.timeline.frames.all().get((number as usize).wrapping_sub(1));
        let [function, module, ..] = of.copied().unwrap_or_default();
        (visible(self.string(function)), visible(self.string(module)))
    }
}

/// How a call of a function has ended; empty where it has returned.
pub(super) fn ending(item: &Item) -> &'static str {
    match item.value & 3 {
        1 => "left without a recorded return",
        2 => "has not returned",
        _ => "",
    }
}

/// The kinds of events that a picture leaves out, in words, and their numbers.
pub(super) fn left_out(timeline: &Timeline) -> impl Iterator<Item = (&'static str, u64)> {
    let crowded = timeline.operations.crowded + timeline.spans.sets.iter().map(|set| set.crowded).sum::<u64>();
    let all = [
        ("later events are left out: --from and --to make a picture of them", timeline.cut),
        ("arguments of calls that neither failed nor took long are left out", timeline.untold),
        ("calls of functions are too deep", timeline.functions.view().deep),
        ("spans overlap too many others", crowded),
    ];
    all.into_iter().filter(|(_, n)| *n > 0)
}

/// The number of lost events, and how many of them are in no row, because their thread or time is unknown.
pub(super) fn lost(timeline: &Timeline, rows: &[&Row]) -> Option<(u64, u64)> {
    let all = timeline.lost?;
    let shown: i64 = rows.iter().filter(|r| r.kind == Kind::Lost).flat_map(|r| r.items()).map(|i| i.value).sum();
    Some((all, all.saturating_sub(u64::try_from(shown).unwrap_or(0))))
}

/// Appends a line that says how many events were lost, if any were: numbers of a table lack theirs.
pub(super) fn line_of_loss(timeline: &Timeline, out: &mut Vec<u8>) {
    if let Some(lost) = losses(timeline.lost) {
        out.extend_from_slice(format!("\n{lost}, and are in no number here\n").as_bytes());
    }
}
