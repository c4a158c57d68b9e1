//! The end record of a trace, `.trapline/end`: what the recorder counted, a line each.
//!
//! ```text
//! trapline 1
//! overwritten 0                                   events that were overwritten by newer ones
//! clamped 0                                       events whose time was set to that of the event before them
//! failed No space left on device                  why nothing more was written
//! stream cpu_0 id 0 packets 3 events 120 discarded 4 taken 124 unwritten 4
//! taken syscall:read 57                           events of a probe that the recorder took
//! unwritten syscall:read 4                        those of them that could not be written
//! dropped syscall:read 9                          events of a probe that found a ring full and never reached the recorder
//! enabling 9 0 0 0 uprobe:./small:twice           what a program in the kernel counted
//! ```
//!
//! It is written when the recording ends. Traces of version 1 have no `stream`, `unwritten`,
//! `dropped` and `failed` lines. Unknown lines and words are skipped. What a reader needs most comes first:
//! where there is no room for all of it, the last lines are omitted.

use crate::format::Format;
use events::StreamId;

/// The first line.
const FIRST: &str = "trapline 1";

/// The most bytes that are read of a record.
pub const MAX: u64 = 16 << 20;

/// Bytes that the line of a stream takes at most.
pub const LINE: u64 = 224;

/// What a recorder counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Events that were overwritten by newer ones.
    pub overwritten: Option<u64>,
    /// Events whose time was set to that of the event before them.
    pub clamped: Option<u64>,
    /// Why nothing more was written.
    pub failed: Option<String>,
    /// Its streams.
    pub streams: Vec<StreamEnd>,
    /// Events that were taken, by probe.
    pub taken: Vec<(String, u64)>,
    /// Of these, events that could not be written.
    pub unwritten: Vec<(String, u64)>,
    /// Events that found a ring full, as far as their probe is known.
    pub dropped: Vec<(String, u64)>,
    /// Other lines, whole.
    pub more: Vec<String>,
}

/// What a recorder counted of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// The name of its file, without the number of a part.
    pub name: String,
    /// The stream, written as its number.
    pub id: StreamId,
    /// Packets that are in its files.
    pub packets: u64,
    /// Events that are in its files.
    pub events: u64,
    /// Events that were lost: those that found a ring full, and those that could not be written.
    pub discarded: u64,
    /// Events that the recorder took.
    pub taken: u64,
    /// Of these, events that could not be written.
    pub unwritten: u64,
}

impl End {
    /// The record as it is stored.
    pub fn text(&self) -> String {
        let mut lines = vec![FIRST.to_string()];
        lines.extend(self.overwritten.map(|n| format!("overwritten {n}")));
        lines.extend(self.clamped.map(|n| format!("clamped {n}")));
        lines.extend(self.failed.as_ref().map(|why| format!("failed {why}")));
        lines.extend(self.streams.iter().map(StreamEnd::line));
        lines.extend(self.taken.iter().map(|(probe, n)| format!("taken {probe} {n}")));
        lines.extend(self.unwritten.iter().map(|(probe, n)| format!("unwritten {probe} {n}")));
        lines.extend(self.dropped.iter().map(|(probe, n)| format!("dropped {probe} {n}")));
        lines.extend(self.more.iter().cloned());
        // A name may hold anything; each has one line.
        lines.iter().map(|l| l.replace('\n', "?") + "\n").collect()
    }

    /// Reads a record of a trace of this version of the format; `None` if the text is not a record.
    pub fn parse(text: &str, format: Format) -> Option<End> {
        let mut lines = text.lines();
        lines.next().filter(|l| *l == FIRST)?;
        let mut end = End::default();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let counted = || rest.rsplit_once(' ').and_then(|(name, n)| Some((name.to_string(), n.parse().ok()?)));
            match word {
                "overwritten" => end.overwritten = rest.trim().parse().ok(),
                "clamped" => end.clamped = rest.trim().parse().ok(),
                "failed" => end.failed = Some(rest.to_string()),
                "stream" => end.streams.extend(StreamEnd::parse(rest, format)),
                "taken" => end.taken.extend(counted()),
                "unwritten" => end.unwritten.extend(counted()),
                "dropped" => end.dropped.extend(counted()),
                _ => end.more.push(line.to_string()),
            }
        }
        Some(end)
    }

    /// Events that must be in the files; `None` where the record does not have the number.
    pub fn events(&self) -> Option<u64> {
        let sum = |all: &[(String, u64)]| all.iter().fold(0u64, |n, (_, m)| n.saturating_add(*m));
        if !self.streams.is_empty() {
            return Some(self.streams.iter().fold(0, |n, s| n.saturating_add(s.events)));
        }
        let gone = self.overwritten.unwrap_or(0).saturating_add(sum(&self.unwritten));
        (!self.taken.is_empty()).then(|| sum(&self.taken).saturating_sub(gone))
    }

    /// Events that could not be written.
    pub fn unwritten(&self) -> u64 {
        self.streams.iter().fold(0, |n, s| n.saturating_add(s.unwritten))
    }
}

impl StreamEnd {
    /// Nothing of a stream, in a file of that name.
    pub fn new(name: String, id: StreamId) -> StreamEnd {
        StreamEnd { name, id, packets: 0, events: 0, discarded: 0, taken: 0, unwritten: 0 }
    }

    fn line(&self) -> String {
        let StreamEnd { name, id, packets, events, discarded, taken, unwritten } = self;
        format!(
            "stream {name} id {} packets {packets} events {events} discarded {discarded} taken {taken} unwritten {unwritten}",
            id.number()
        )
    }

    /// From `NAME WORD N WORD N …`.
    fn parse(text: &str, format: Format) -> Option<StreamEnd> {
        let mut words = text.split(' ');
        let mut s = StreamEnd::new(words.next()?.to_string(), StreamId::cpu(0));
        let mut named = false;
        while let (Some(word), Some(n)) = (words.next(), words.next()) {
            let n = n.parse().ok()?;
            match word {
                "id" => (s.id, named) = (format.stream(n)?, true),
                "packets" => s.packets = n,
                "events" => s.events = n,
                "discarded" => s.discarded = n,
                "taken" => s.taken = n,
                "unwritten" => s.unwritten = n,
                _ => {}
            }
        }
        named.then_some(s)
    }
}

/// As much of a text as has room, by whole lines.
pub fn fit(text: &str, room: u64) -> &str {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if text.len() <= room {
        return text;
    }
    let cut = text.as_bytes()[..room].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    &text[..cut]
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::stream::Scope;

    const NOW: Format = Format::NOW;

    fn end() -> End {
        let stream = |name: &str, id, unwritten| StreamEnd {
            packets: 3,
            events: 120,
            discarded: unwritten + 2,
            taken: 120 + unwritten,
            unwritten,
            ..StreamEnd::new(name.into(), id)
        };
        End {
            overwritten: Some(0),
            clamped: Some(7),
            failed: Some("No space left on device".into()),
            streams: vec![stream("cpu_0", StreamId::cpu(0), 4), stream("tracer", StreamId::TRACER, 0)],
            taken: vec![("syscall:read".into(), 200), ("uprobe:./a b:f".into(), 44)],
            unwritten: vec![("syscall:read".into(), 4)],
            dropped: vec![("uprobe:./a b:f".into(), 1 << 40)],
            more: vec!["enabling 9 0 0 0 uprobe:./a b:f".into()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(End::parse(&end().text(), NOW), Some(end()));
        assert_eq!(End::parse(&End::default().text(), NOW), Some(End::default()));
        assert_eq!((end().events(), end().unwritten()), (Some(240), 4));
        let id = StreamId::new(Scope::Process(u32::MAX), u16::MAX);
        let long = StreamEnd { packets: u64::MAX, events: u64::MAX, ..StreamEnd::new(id.to_string(), id) };
        let long = StreamEnd { discarded: u64::MAX, taken: u64::MAX, unwritten: u64::MAX, ..long };
        assert!((long.line().len() as u64) < LINE, "{}", long.line().len());
    }

    #[test]
    fn numbers_of_streams_are_those_of_the_version() {
        let text = "trapline 1\nstream probe_1_cpu_3 id 65539 packets 1\nstream tracer id 4294967295 packets 1\n";
        let streams = |format| End::parse(text, format).expect("a record").streams;
        let ids: Vec<StreamId> = streams(Format::V1).iter().map(|s| s.id).collect();
        assert_eq!(ids, [StreamId::new(Scope::Cpu(3), 1), StreamId::TRACER]);
        assert_eq!(streams(NOW)[0].id, StreamId::cpu(65539));
    }

    #[test]
    fn a_name_cannot_make_a_line() {
        let evil = End { taken: vec![("uprobe:a\nstream x id 1 packets 9".into(), 1)], ..End::default() };
        assert_eq!(End::parse(&evil.text(), NOW).map(|e| e.streams.len()), Some(0));
    }

    #[test]
    fn records_of_the_first_version_are_read() {
        let old = End::parse(
            "trapline 1\ntaken process:exec 1\ntaken syscall:read 57\noverwritten 3\nclamped 0\n",
            Format::V1,
        );
        let old = old.expect("a record");
        assert_eq!((old.events(), old.overwritten, old.clamped), (Some(55), Some(3), Some(0)));
        // Of a snapshot.
        assert_eq!(End::parse("trapline 1\noverwritten 3\n", Format::V1).and_then(|e| e.events()), None);
    }

    #[test]
    fn what_is_no_record_is_none_and_bad_lines_are_passed_over() {
        for bad in ["", "\n", "trapline 2\n", "{}", "\0\0\0\0"] {
            assert_eq!(End::parse(bad, NOW), None, "{bad:?}");
        }
        let strange = "trapline 1\nstream\nstream x\nstream y id\nstream z id q\nstream n packets 4\ntaken\ntaken x\noverwritten -1\n\
            stream ok id 3 packets 1 colour 9 events 2\nstream big id 4 events 18446744073709551615\n";
        let end = End::parse(strange, NOW).expect("a record");
        assert_eq!(end.streams.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["ok", "big"]);
        assert_eq!((end.overwritten, end.events()), (None, Some(u64::MAX)));
    }

    #[test]
    fn what_has_no_room_is_left_out_by_lines() {
        let text = end().text();
        assert_eq!(fit(&text, text.len() as u64), text);
        for room in 0..text.len() {
            let part = fit(&text, room as u64);
            assert!(part.len() <= room && text.starts_with(part) && (part.is_empty() || part.ends_with('\n')));
        }
        assert!(End::parse(fit(&text, text.len() as u64 - 1), NOW).is_some_and(|e| e.streams == end().streams));
    }
}
