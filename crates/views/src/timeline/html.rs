//! One file with everything in it: the picture, what draws it, and the data, for a browser without a network.
//!
//! ```text
//! page/page.html ─┬─ style.css
//!                 ├─ data.js picture.js … in one script
//!                 └─ a block for the header (JSON), the strings (JSON), each column and the steps of curves: zlib, base64
//! ```
//!
//! Nothing of the trace is markup: all of it is in the compressed blocks, and the scripts make text nodes of it. The page's policy
//! (Content-Security-Policy) lets it load nothing, and run no script but its own.

use super::columns::{COLUMNS, NAMES};
use super::{Kind, Of, Timeline, Writer, curves, tally};
use crate::advance::Advance;
use events::generated::errno::ERRNO;
use events::generated::{SCHEMAS, SET_NAMES};
use events::schema::Schema;
use events::traces::own;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, compress_to_output, create_comp_flags_from_zip_params};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 8] = [
    include_str!("page/data.js"),
    include_str!("page/curves.js"),
    include_str!("page/filter.js"),
    include_str!("page/picture.js"),
    include_str!("page/tables.js"),
    include_str!("page/flame.js"),
    include_str!("page/panels.js"),
    include_str!("page/input.js"),
];

/// How much is compressed: more takes longer than it saves.
const LEVEL: u8 = 4;

/// Writes pages.
pub const WRITER: Writer = Writer::whole(write);

/// Appends the file.
fn write(timeline: &Timeline, out: &mut Vec<u8>) {
    let rows = timeline.ordered();
    let strings: Vec<&str> = timeline.strings.all().collect();
    let column = |nth: usize| rows.iter().flat_map(|row| row.column(nth)).copied().collect();
    let json = |value: Value| value.to_string().into_bytes();
    let mut parts: Vec<(&str, Vec<u8>)> =
        vec![("header", json(header(timeline, &rows))), ("strings", json(json!(strings)))];
    let mut steps = Vec::new();
    rows.iter().filter(|row| curves::is_curve(row)).for_each(|row| curves::steps(row, &mut steps));
    parts.push(("steps", steps));
    parts.extend(NAMES.iter().enumerate().take(COLUMNS).map(|(nth, name)| (*name, column(nth))));
    let advance = &timeline.advance;
    advance.begin(parts.iter().map(|(_, bytes)| bytes.len() as u64).sum());
    // Each on a processor, as far as there are any.
    let packed: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let begun: Vec<_> = parts.iter().map(|(_, bytes)| scope.spawn(|| pack(bytes, advance))).collect();
        begun.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let mut blocks = Vec::new();
    parts.iter().zip(&packed).for_each(|((name, _), bytes)| block(name, bytes, &mut blocks));
    drop((parts, packed));
    let script = SCRIPTS.concat();
    // What runs is known by this word, which nothing of the trace can contain: none of it is markup.
    let mut hasher = DefaultHasher::new();
    (&blocks, &script).hash(&mut hasher);
    let word = format!("{:016x}", hasher.finish());
    let mut rest = PAGE;
    for (place, with) in [("{WORD}", word.as_bytes()), ("{STYLE}", STYLE.as_bytes()), ("{DATA}", &blocks)] {
        let (before, behind) = rest.split_once(place).unwrap_or((rest, ""));
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(with);
        rest = behind;
    }
    let (before, behind) = rest.split_once("{WORD}").unwrap_or((rest, ""));
    let (between, behind) = behind.split_once("{SCRIPT}").unwrap_or((behind, ""));
    for part in [before, &word, between, &script, behind] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Packs bytes as zlib does.
fn pack(bytes: &[u8], advance: &Advance) -> Vec<u8> {
    /// So much is packed before it is said.
    const STEP: usize = 1 << 18;
    let mut packer = CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL.into(), 1, 0));
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len() / 4), bytes);
    loop {
        let (step, behind) = rest.split_at(rest.len().min(STEP));
        let flush = if behind.is_empty() { TDEFLFlush::Finish } else { TDEFLFlush::None };
        compress_to_output(&mut packer, step, flush, |some| {
            out.extend_from_slice(some);
            true
        });
        advance.add(step.len() as u64);
        rest = behind;
        if rest.is_empty() {
            return out;
        }
    }
}

/// Appends a block of packed data.
fn block(name: &str, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("<script type=\"text/plain\" id=\"{name}\">").as_bytes());
    base64(bytes, out);
    out.extend_from_slice(b"</script>\n");
}

/// Appends bytes as RFC 4648 has them.
fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three.iter().enumerate().fold(0u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { digit } else { b'=' });
        }
    }
}

/// What a call is coloured by.
fn sort(schema: &Schema) -> &'static str {
    let is =
        |set: &str| SET_NAMES.iter().position(|name| *name == set).is_some_and(|bit| schema.sets.0 >> bit & 1 != 0);
    match () {
        () if tally::waits(schema.name) => "wait",
        () if is("network") => "network",
        () if is("memory") => "memory",
        () if is("process") => "process",
        () if is("file") || is("desc") => "file",
        () => "other",
    }
}

/// All but strings and columns.
fn header(timeline: &Timeline, rows: &[&super::columns::Row]) -> Value {
    let (processes, functions) = (timeline.processes.all().iter(), timeline.functions.view());
    let begin = timeline.first();
    let processes: Vec<Value> = processes
        .map(|p| {
            json!({
                "pid": own(p.pid), "parent": p.parent, "name": p.name, "first": p.first.saturating_sub(begin),
                "last": p.last.saturating_sub(begin), "exit": p.exit,
            })
        })
        .collect();
    let threads: Vec<Value> =
        timeline.processes.threads().iter().map(|t| json!([own(t.tid), t.process, t.name])).collect();
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            let (process, thread) = match row.of {
                Of::Cpu(_) => (None, None),
                Of::Process(process) => (Some(process), None),
                Of::Thread(thread) => (Some(timeline.processes.of_thread(thread)), Some(thread)),
            };
            json!([row.kind as u8, process, thread, row.depth, row.len(), row.has()])
        })
        .collect();
    let sorts: serde_json::Map<String, Value> =
        SCHEMAS.iter().map(|schema| (schema.name.to_owned(), sort(schema).into())).collect();
    let errors: Vec<Value> = ERRNO.iter().map(|(n, name, what)| json!([n, name, what])).collect();
    json!({
        "begin": begin.to_string(),
        "end": timeline.last.saturating_sub(begin),
        "stats": timeline.stats.to_json(),
        "kinds": Kind::NAMES,
        "columns": NAMES,
        "step": curves::STEP,
        "processes": processes,
        "threads": threads,
        "rows": rows,
        "functions": functions.all().iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        "frames": timeline.frames.all(),
        "stacks": timeline.frames.stacks().collect::<Vec<_>>(),
        "flows": timeline.flows,
        "pauses": timeline.pauses.iter().map(|[from, to]| [*from, (*to).min(timeline.last)]).collect::<Vec<_>>(),
        "sorts": sorts,
        "reads": tally::READS,
        "writes": tally::WRITES,
        "errors": errors,
        "lost": timeline.lost,
        "untold": timeline.untold,
        "cut": timeline.cut,
        "crowded": timeline.operations.crowded + timeline.spans.sets.iter().map(|set| set.crowded).sum::<u64>(),
        "deep": functions.deep,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_come_back_and_are_counted() {
        let mut random = testkit::Random::new(7);
        let all: Vec<u8> = (0..700_000u32).map(|n| if n % 3 == 0 { random.next() as u8 } else { b'a' }).collect();
        for bytes in [&all[..0], &all[..1 << 18], &all] {
            let advance = Advance::default();
            let back = miniz_oxide::inflate::decompress_to_vec_zlib(&pack(bytes, &advance)).expect("zlib");
            assert!(back == bytes);
            assert_eq!(advance.get().0, bytes.len() as u64);
        }
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        let of = |text: &str| {
            let mut out = Vec::new();
            base64(text.as_bytes(), &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, expected) in known.iter().enumerate() {
            assert_eq!(of(&"foobar"[..length]), *expected);
        }
    }
}
