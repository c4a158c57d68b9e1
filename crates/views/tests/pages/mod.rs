//! Everything of a trace in a browser, used as a person does: looked at, searched, zoomed, clicked, filtered, walked through by keys.

mod shop;

use crate::Browser;
use crate::build::Call;
use crate::perfetto_classes::read_by_perfetto;
use events::Event;
use events::dynamic::{self, Field};
use events::functions;
use events::generated::P_EXEC;
use events::names::{FdName, Frame, FunctionName, Names, Stack};
use events::types::{Fmt, Int, Type};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use views::View;
use views::timeline::spans::Definition;
use views::timeline::{Timeline, Writer, html, perfetto};
use views::trace_stats::{Trace, TraceStats};

/// Knows processes 7 and 8, functions 1 and 2, and stack 1.
struct Known;

const HOSTILE: &str = "</script><img src=x onerror=\"window.owned = 1\"><!--\u{202e}\u{1}";

impl Names for Known {
    fn fd(&self, _: u32, fd: i32) -> Option<&FdName> {
        static LOG: FdName = FdName { path: Vec::new(), detail: Vec::new() };
        static NAMED: std::sync::OnceLock<FdName> = std::sync::OnceLock::new();
        let named = NAMED.get_or_init(|| FdName { path: b"/var/log/app".to_vec(), ..LOG.clone() });
        (fd == 3).then_some(named)
    }
    fn cpu(&self) -> Option<u32> {
        Some(1)
    }
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        match tid {
            7 => Some(b"app"),
            8 => Some(HOSTILE.as_bytes()),
            _ => None,
        }
    }
    fn function(&self, number: u32) -> Option<FunctionName<'_>> {
        let name = match number {
            1 => "main",
            2 => "parse",
            _ => return None,
        };
        Some(FunctionName { name, symbol: name, module: "/usr/bin/app", build_id: &[], address: 0, aliases: &[] })
    }
    fn stack(&self, id: u64) -> Option<Stack<'_>> {
        (id == 1).then_some(Stack { kernel: false, ended: 1, guessed: 0, frames: &[0x10, 0x20] })
    }
    fn frames(&self, _: u32, _: u64, _: &Stack<'_>, each: &mut dyn FnMut(&Frame<'_>)) {
        each(&Frame { function: "parse", module: "/usr/bin/app", file: "src/parse.c", line: 12, ..Frame::default() });
        each(&Frame { function: "main", module: "/usr/bin/app", file: "src/main.c", line: 3, ..Frame::default() });
    }
}

/// ms, as ns of a clock that has run for a while.
fn at(ms: u64) -> u64 {
    5_000_000_000 + ms * 1_000_000
}

fn probe(name: &str, fields: &[&str]) -> &'static events::Schema {
    let ty = |field: &str| {
        let fmt = if field == "ustack" { Fmt::Stack } else { Fmt::Dec };
        Type::Int(Int { size: 8, signed: false, fmt })
    };
    let fields: Vec<Field> = fields.iter().map(|f| Field { name: (*f).into(), ty: ty(f) }).collect();
    dynamic::class(name, &fields).expect("a class")
}

/// Two processes over 100 ms: calls of which one fails, functions, samples, allocations, switches, a signal, something lost.
fn events() -> Vec<Vec<u8>> {
    let call = |name: &str, from: u64, to: u64| Call::new(name).times(at(from), at(to)).who(7, 7);
    let point = |schema, time: u64| Call::of(schema).times(at(time), at(time)).who(7, 7);
    let function = |schema, number: u64, time: u64| point(schema, time).arg("number", number);
    let sample = probe("profile:hz:99", &["ustack"]);
    let malloc = probe("heap:malloc", &["address", "size", "ustack"]);
    let free = probe("heap:free", &["address", "ustack"]);
    let switch = probe("tracepoint:sched:sched_switch", &["prev_pid", "prev_state", "next_pid"]);
    let mut all = vec![
        point(&P_EXEC, 0).str("comm", b"app"),
        call("openat", 1, 2).str("filename", b"/etc/passwd").ret(3),
        function(functions::entry(), 1, 3),
        function(functions::entry(), 2, 10),
        call("openat", 12, 13).str("filename", HOSTILE.as_bytes()).ret(-2),
        point(sample, 15).arg("ustack", 1),
        point(malloc, 16).arg("address", 0x1000).arg("size", 4096).arg("ustack", 1),
        point(malloc, 17).arg("address", 0x3000).arg("size", 100).arg("ustack", 1),
        point(sample, 20).arg("ustack", 1),
        call("read", 22, 62).arg("fd", 3).ret(500),
        point(switch, 22).arg("prev_pid", 7).arg("prev_state", 1).arg("next_pid", 0),
        point(switch, 62).arg("prev_pid", 0).arg("next_pid", 7),
        function(functions::exit(), 2, 70),
        point(free, 71).arg("address", 0x1000),
        call("close", 72, 73).arg("fd", 3),
        point(functions::lost(), 75).arg("records", 17),
        Call::process("signal").times(at(80), at(80)).who(7, 7).arg("signo", 15),
        Call::process("paused").times(at(84), at(84)).who(0, 0),
        Call::process("resumed").times(at(86), at(86)).who(0, 0),
        Call::process("resumed").times(at(86), at(86)).who(0, 0),
        function(functions::exit(), 1, 90),
        call("write", 91, 92).arg("fd", 3).ret(42).who(8, 8),
        Call::process("exit").times(at(100), at(100)).who(7, 7).arg("code", 3),
    ];
    all.extend((93..98).map(|n| call("getppid", n, n + 1).ret(1).who(8, 8)));
    all.iter().map(Call::encode).collect()
}

/// A process that allocates and opens before and after an exec, and ends.
fn around_an_exec() -> Vec<Vec<u8>> {
    let point = |schema, time: u64| Call::of(schema).times(at(time), at(time)).who(7, 7);
    let malloc = |time: u64, address: u64, size: u64| {
        point(probe("heap:malloc", &["address", "size", "ustack"]), time).arg("address", address).arg("size", size)
    };
    let free = |time: u64, address: u64| {
        point(probe("heap:free", &["address", "ustack"]), time).arg("address", address).arg("ustack", 0)
    };
    let open = |time: u64, fd: i64, flags: u64| {
        Call::new("openat").times(at(time), at(time)).who(7, 7).str("filename", b"/f").arg("flags", flags).ret(fd)
    };
    const O_CLOEXEC: u64 = 0o2_000_000;
    let all = [
        malloc(1, 0x1000, 1000),
        malloc(2, 0x2000, 500),
        free(3, 0x2000),
        open(4, 3, O_CLOEXEC),
        open(5, 4, 0),
        point(&P_EXEC, 10).str("comm", b"other"),
        malloc(11, 0x1000, 64),
        free(12, 0x1000),
        // It is not known: the memory that it was in is gone.
        free(13, 0x2000),
        malloc(14, 0x2000, 32),
        Call::process("exit").times(at(20), at(20)).who(7, 7).arg("code", 0),
    ];
    all.iter().map(Call::encode).collect()
}

/// All of it, as a writer writes it.
fn written(writer: Writer) -> Vec<u8> {
    written_of(&events(), writer)
}

fn written_of(events: &[Vec<u8>], writer: Writer) -> Vec<u8> {
    let stats = TraceStats::new(Trace { command: format!("app {HOSTILE}"), ..Trace::default() });
    let request = Definition {
        name: "request <b>".into(),
        probes: ["syscall:openat", "syscall:read"].map(str::to_owned),
        keys: ["retval", "fd"].map(str::to_owned),
        first: false,
    };
    let (mut view, mut out) = (Timeline::new(stats, writer).spans(vec![request], 10), Vec::new());
    for bytes in events {
        let ev = Event::parse(bytes).expect("an event");
        view.see(&ev);
        view.event(&ev, &Known, &mut out);
    }
    view.lost(17);
    view.end(&mut out);
    out
}

fn page() -> String {
    String::from_utf8(written(html::WRITER)).expect("UTF-8")
}

/// What is in the page is in Perfetto's file too.
#[test]
fn perfetto_s_own_classes_read_everything() {
    let Some(text) = read_by_perfetto(&written(perfetto::WRITER)) else { return };
    let has = |line: &str| assert!(text.lines().any(|l| l.trim_end() == line), "{line}:\n{text}");
    has("process 7 app");
    has("thread 7/7 app");
    has("7/7:   'parse' [app] 5010000000..5070000000");
    has("7/7: 'main' [app] 5003000000..5090000000");
    has(
        "7/7/calls: 'read' [syscall] 5022000000..5062000000 call='read(3, NULL, 0) = 500' file='/var/log/app' result='500'",
    );
    has("7/7/runs: 'waits' [sched] 5022000000..5062000000");
    has("7/spans-request-<b>: 'request <b>' [span] 5002000000..5062000000 span='request <b> retval 3, 7 (app)'");
    has("7/heap: 4196 at 5017000000");
    has("7/heap: 100 at 5071000000");
    has("7/descriptors: 1 at 5002000000");
    has("7/descriptors: 0 at 5073000000");
    has("whole/processor-1: 'app 7' [sched] 5000000000..5022000000");
    has("sample of 7/7 at 5015000000: main;parse");
    has("7/7/missing: 'events are missing' [trapline] at 5075000000 events='17'");
    has("whole: 'stopped' [trapline] 5084000000..5086000000");
    assert!(text.contains("7/7/marks: 'process:signal' [probe] at 5080000000"), "{text}");
    assert!(text.ends_with("lost 17\n"), "{text}");
}

/// Who wakes a thread that is not in the trace is not connected with it, but has done it.
#[test]
fn a_wakeup_of_an_unknown_thread_is_a_mark() {
    let wakeup = probe("tracepoint:sched:sched_wakeup", &["pid"]);
    let wakes = |time: u64, pid: u64| Call::of(wakeup).times(at(time), at(time)).who(7, 7).arg("pid", pid).encode();
    let Some(text) = read_by_perfetto(&written_of(&[wakes(1, 99), wakes(2, 7)], perfetto::WRITER)) else { return };
    let count = |what: &str| text.matches(what).count();
    assert_eq!((count("'tracepoint:sched:sched_wakeup' [probe] at 5001000000"), count("[probe]")), (1, 1), "{text}");
    assert_eq!((count("'wakes' [sched] at 5002000000"), count("'wakes'")), (1, 1), "{text}");
}

/// Memory is gone with the program, and descriptors that are closed on exec.
#[test]
fn perfetto_s_own_classes_read_curves_around_an_exec() {
    let Some(text) = read_by_perfetto(&written_of(&around_an_exec(), perfetto::WRITER)) else { return };
    let of = |name: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(name));
        lines.map(|line| line.replace("000000", "")).collect()
    };
    let heap = [
        "1000 at 5001",
        "1500 at 5002",
        "1000 at 5003",
        "0 at 5010",
        "64 at 5011",
        "0 at 5012",
        "32 at 5014",
        "0 at 5020",
    ];
    assert_eq!(of("7/heap: "), heap, "{text}");
    assert_eq!(of("7/descriptors: "), ["1 at 5004", "2 at 5005", "1 at 5010", "0 at 5020"], "{text}");
}

#[test]
fn a_curve_ends_at_an_exec() {
    let Some(browser) = Browser::new() else { return };
    let page = String::from_utf8(written_of(&around_an_exec(), html::WRITER)).expect("UTF-8");
    let script = format!(
        "{TOOLS} const heap = rowOf('heap'), open = rowOf('files'), levels = w => Array.from(w.start, (_, i) => levelAt(w, i + 1));
         r.heap = levels(heap); r.open = levels(open); r.most = [heap.most, open.most]; r.title = titleOf(heap, 3);
         tab('Heap'); r.table = table(); [view.from, view.to] = [4 * ms, 8 * ms]; r.pixels = pixelsOf(heap); whole();
         r.extremes = [pixelsOf(heap).map(p => p.slice(1)), extremes(heap, 1, 4, 1000)];"
    );
    let r = browser.ask_page(&page, "", &script);
    assert_eq!(r["errors"], json!([]));
    assert_eq!(r["heap"], json!([1000, 1500, 1000, 0, 64, 0, 32]));
    assert_eq!(r["open"], json!([1, 2, 1]));
    assert_eq!((&r["most"], &r["title"]), (&json!([1500, 2]), &json!("process:exec -1000 B")));
    // What the exec took was no leak.
    assert_eq!(r["table"], json!(["32 B|1|parse  parse.c:12  ◂  main  main.c:3"]));
    assert_eq!(r["pixels"], json!([[190, 1000, 1000, 1000, 1000]]));
    assert_eq!(r["extremes"][1], json!([0, 1500, 0]));
    assert_eq!((&r["extremes"][0][0], &r["extremes"][0][6]), (&json!([0, 1000, 0, 1000]), &json!([0, 32, 0, 32])));
}

/// A curve of more items than are drawn one by one: each pixel has the highest and the lowest level of those in it.
#[test]
fn a_long_curve_is_drawn_from_its_steps() {
    let Some(browser) = Browser::new() else { return };
    let malloc = probe("heap:malloc", &["address", "size", "ustack"]);
    let free = probe("heap:free", &["address", "ustack"]);
    let point = |schema, n: u64| {
        Call::of(schema).times(at(0) + n * 1000, at(0) + n * 1000).who(7, 7).arg("address", 1 + n / 2 * 16)
    };
    let all: Vec<Vec<u8>> = (0..5000)
        .map(|n| if n % 2 == 0 { point(malloc, n).arg("size", 1 + n * 7919 % 1000) } else { point(free, n) })
        .chain([point(malloc, 5000).arg("size", 9)])
        .map(|call| call.encode())
        .collect();
    let page = String::from_utf8(written_of(&all, html::WRITER)).expect("UTF-8");
    let script = format!(
        "{TOOLS} const row = rowOf('heap'), sums = []; let sum = 0; row.value.forEach(v => sums.push(sum += v));
         r.n = row.n; r.wrong = sums.filter((s, i) => levelAt(row, i + 1) !== s).length; r.different = 0; r.pixels = 0;
         for (const [from, to] of [[-1e3, 5.1e6], [1e6, 1.3e6], [2e6, 2.01e6]]) {{
           [view.from, view.to] = [from, to];
           for (const [pixel, before, top, bottom, behind] of pixelsOf(row)) {{
             const of = [before, ...sums.filter((_, i) => row.start[i] <= to && Math.floor(x(row.start[i])) === pixel && row.start[i] >= from)];
             r.pixels++;
             if (top !== Math.max(...of) || bottom !== Math.min(...of) || behind !== of[of.length - 1]) r.different++;
           }}
         }}"
    );
    let r = browser.ask_page(&page, "", &script);
    assert_eq!((&r["errors"], &r["n"]), (&json!([]), &json!(5001)));
    assert_eq!((&r["wrong"], &r["different"]), (&json!(0), &json!(0)), "{r}");
    assert!(r["pixels"].as_u64() > Some(1000), "{r}");
}

/// What the scripts use.
const TOOLS: &str = "
    const wait = ms => new Promise(f => setTimeout(f, ms));
    const text = id => document.getElementById(id).textContent;
    const key = (k, more = {}) => dispatchEvent(new KeyboardEvent('keydown', { key: k, bubbles: true, ...more }));
    const press = (k, more) => { canvas.dispatchEvent(new KeyboardEvent('keydown', { key: k, bubbles: true, ...more })); };
    const mouse = (kind, px, py, more = {}) => {
        const b = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new PointerEvent(kind, { clientX: b.x + px, clientY: b.y + py, bubbles: true, ...more }));
    };
    const click = (px, py) => { mouse('pointerdown', px, py); mouse('pointerup', px, py); };
    const rowOf = (kind, depth = 0) => trace.rows.find(r => r.kind === kind && r.depth === depth);
    const place = (row, time) => { const lane = lanes.find(l => l.row === row); return [x(time), lane.y - view.top + RULER + lane.high / 2]; };
    const pixel = (row, time) => {
        const ratio = devicePixelRatio, [px, py] = place(row, time);
        return Array.from(pen.getImageData(Math.round(px * ratio), Math.round((py - 4) * ratio), 1, 1).data);
    };
    const tab = name => { Array.from(document.querySelectorAll('#tabs button')).find(b => b.textContent === name).click(); };
    const table = () => Array.from(document.querySelectorAll('#panel tbody tr'), tr => Array.from(tr.cells, td => td.textContent).join('|'));
    const ms = 1e6;
";

fn ask(browser: &Browser, hash: &str, script: &str) -> Value {
    let r = browser.ask_page(&page(), hash, &format!("{TOOLS} {script}"));
    assert_eq!((&r["errors"], &r["loaded"]), (&json!([]), &json!([])), "{r}");
    assert_eq!(browser.requests.load(Ordering::Relaxed), 0);
    r
}

#[test]
fn a_page_has_everything_of_its_trace() {
    let Some(browser) = Browser::new() else { return };
    let r = ask(
        &browser,
        "",
        "r.counts = {}; trace.rows.forEach(row => { r.counts[row.kind] = (r.counts[row.kind] || 0) + row.n; });
         r.title = text('title'); r.note = text('notes'); r.owned = window.owned; r.images = document.querySelectorAll('img').length;
         const call = rowOf('call'); r.calls = Array.from(call.start.keys(), i => [titleOf(call, i), call.start[i] / ms, call.end[i] / ms]);
         r.functions = [0, 1].map(d => { const f = rowOf('function', d); return [trace.strings[f.name[0]], f.start[0] / ms, f.end[0] / ms]; });
         r.runs = Array.from(rowOf('run').name, n => trace.strings[n]); r.exit = trace.processes[0].exit;
         r.files = Array.from(call.subject, s => trace.strings[s]); r.heap = Array.from(rowOf('heap').value);
         const cpu = rowOf('cpu', 1), open = rowOf('files');
         r.cpu = [titleOf(cpu, 0), cpu.start[0] / ms, cpu.end[0] / ms, lanes.find(l => l.row === cpu).name, threadOf(cpu, 0)[0]];
         r.open = Array.from(open.value, (n, i) => [n, open.start[i] / ms]);
         r.heads = lanes.filter(l => l.head !== undefined).map(l => l.head);
         r.lost = rowOf('lost').value[0]; r.drawn = pixel(call, 40 * ms); r.empty = pixel(call, 80 * ms);
         r.pauses = trace.pauses.map(p => p.map(t => (t - trace.begin) / ms));
         r.hatched = pixel(rowOf('lost'), 75 * ms);
         tab('Spans'); r.spans = table(); r.lane = lanes.find(l => l.row && l.row.kind === 'span').name; r.span = pixel(rowOf('span'), 40 * ms);",
    );
    let counts = json!({
        "call": 10, "function": 2, "run": 3, "sample": 2, "mark": 3, "heap": 3, "lost": 1, "span": 1, "files": 2, "cpu": 1,
    });
    assert_eq!(r["counts"], counts);
    assert_eq!(r["cpu"], json!(["app 7", 0, 22, "processor 1", 7]));
    assert_eq!(r["open"], json!([[1, 2], [-1, 73]]));
    assert_eq!(r["heads"], json!([null, 0, 1]));
    assert!(r["title"].as_str().is_some_and(|t| t.starts_with("app </script>")), "{}", r["title"]);
    assert!(r["note"].as_str().is_some_and(|t| t.contains("17 events are missing")), "{}", r["note"]);
    assert_eq!((&r["owned"], &r["images"]), (&Value::Null, &json!(0)));
    assert_eq!(r["calls"][0], json!([r#"openat(0, "/etc/passwd", O_RDONLY) = 3"#, 1, 2]));
    assert_eq!(r["calls"][2], json!(["read(3, NULL, 0) = 500", 22, 62]), "{}", r["calls"]);
    assert_eq!(r["functions"], json!([["main", 3, 90], ["parse", 10, 70]]));
    assert_eq!((&r["runs"], &r["exit"]), (&json!(["on a processor", "waits", "on a processor"]), &json!(3)));
    assert_eq!((&r["files"][0], &r["files"][2]), (&json!("/etc/passwd"), &json!("/var/log/app")));
    assert_eq!((&r["heap"], &r["lost"]), (&json!([4096, 100, -4096]), &json!(17)));
    assert_eq!(r["pauses"], json!([[84, 86]]));
    assert!(r["note"].as_str().is_some_and(|t| t.contains("stopped once")), "{}", r["note"]);
    // Something is drawn where a call is, and nothing where none is.
    assert_ne!(r["drawn"], r["empty"]);
    assert_ne!(r["hatched"], r["empty"]);
    assert_ne!(r["span"], r["empty"]);
    assert_eq!(r["spans"], json!(["60.0 ms|0.002000000 s|request <b> retval 3, 7 (app)"]));
    assert_eq!(r["lane"], json!("request <b>"));
}

#[test]
fn a_click_shows_everything_that_was_captured() {
    let Some(browser) = Browser::new() else { return };
    let r = ask(
        &browser,
        "",
        "const call = rowOf('call'); click(...place(call, 12.5 * ms)); r.call = text('detail');
         click(...place(rowOf('sample'), 15 * ms)); r.sample = text('detail');
         click(...place(rowOf('function', 1), 40 * ms)); r.function = text('detail');
         mouse('pointermove', ...place(call, 40 * ms)); r.tip = [document.getElementById('tip').hidden, text('tip')];
         const fold = () => click(40, lanes.find(l => l.head === 0).y - view.top + RULER + 5);
         fold(); r.folded = lanes.filter(l => l.row && l.row.process === 0).length; fold();
         r.unfolded = lanes.filter(l => l.row && l.row.process === 0).length > 0;",
    );
    let has = |what: &str, texts: &[&str]| {
        let text = r[what].as_str().unwrap_or_default();
        texts.iter().for_each(|t| assert!(text.contains(t), "{what}: {t}: {text}"));
    };
    has("call", &["ENOENT: No such file or directory", "0.012000000 s", "1.00 ms", "app 7"]);
    has("sample", &["profile:hz:99", "parse  parse.c:12\nmain  main.c:3"]);
    has("function", &["parse", "60.0 ms", "depth1"]);
    assert_eq!(r["tip"], json!([false, "read(3, NULL, 0) = 500  40.0 ms"]));
    assert_eq!((&r["folded"], &r["unfolded"]), (&json!(0), &json!(true)));
}

#[test]
fn a_range_has_tables_and_an_address() {
    let Some(browser) = Browser::new() else { return };
    let r = ask(
        &browser,
        "",
        "const row = rowOf('call'), [left, y] = place(row, 10 * ms), [right] = place(row, 42 * ms);
         mouse('pointerdown', left, y); mouse('pointermove', (left + right) / 2, y); mouse('pointermove', right, y); mouse('pointerup', right, y);
         await wait(300); r.range = view.range.map(n => Math.round(n / ms)); r.hash = location.hash; r.calls = table();
         tab('Functions'); r.functions = table(); tab('Heap'); r.heap = table(); tab('Files'); r.files = table();
         tab('Processors'); r.processors = table(); tab('Events'); r.events = table().length; tab('Processes'); r.processes = table().length;
         tab('Flame graph'); r.flame = text('panel'); tab('Trace'); r.trace = text('panel').includes('syscall:openat');
         press('r'); await wait(200); r.zoomed = [view.from, view.to].map(n => Math.round(n / ms)); press('Escape'); r.none = view.range;
         press('0'); press('w'); r.nearer = view.to - view.from; press('s'); press('s'); r.farther = view.to - view.from;",
    );
    assert_eq!(r["range"], json!([10, 42]));
    assert!(r["hash"].as_str().is_some_and(|h| h.contains("&r=")), "{}", r["hash"]);
    // 20 of the 40 ms of read are in it.
    assert_eq!(r["calls"], json!(["20.0 ms|1||40.0 ms|read", "1.00 ms|1|1|1.00 ms|openat"]));
    assert_eq!(r["functions"], json!(["32.0 ms|32.0 ms|1|parse", "0 ns|32.0 ms|1|main"]));
    assert_eq!(r["heap"], json!(["4.1 KiB|2|parse  parse.c:12  ◂  main  main.c:3"]));
    assert_eq!(r["files"][0], json!("500 B||1||20.0 ms|/var/log/app"));
    assert_eq!(r["processors"], json!(["12.0 ms|0 ns|20.0 ms|1|app 7"]));
    assert_eq!((&r["events"], &r["processes"]), (&json!(6), &json!(2)));
    assert_eq!(r["flame"], json!("all: 2 samples, 100.0 %"));
    assert_eq!((&r["trace"], &r["zoomed"], &r["none"]), (&json!(true), &json!([10, 42]), &Value::Null));
    assert!(r["nearer"].as_f64() < r["farther"].as_f64());
    // The address of a range opens it.
    let r = ask(&browser, "#t=10000000,50000000&r=20000000,30000000", "r.view = [view.from, view.to, view.range];");
    assert_eq!(r["view"], json!([10_000_000, 50_000_000, [20_000_000, 30_000_000]]));
}

#[test]
fn a_search_counts_its_matches_and_walks_through_them() {
    let Some(browser) = Browser::new() else { return };
    let r = ask(
        &browser,
        "",
        "const query = t => { const q = document.getElementById('query'); q.value = t; q.dispatchEvent(new Event('input')); return text('found'); };
         r.name = query('openat'); r.file = query('/var/log'); r.error = query('ENOENT'); r.none = query('nothing like that'); r.empty = query('');
         query('openat'); press('n'); const first = view.chosen.i; press('n'); r.next = [first, view.chosen.i]; press('n', { shiftKey: true });
         r.back = view.chosen.i; query('parse'); r.function = view.matches; query('');
         press('Escape'); press('ArrowRight'); r.walked = !!view.chosen; const row = view.chosen.row; press('ArrowDown'); r.down = view.chosen.row !== row;
         r.said = text('detail').length > 0;",
    );
    let found = |n: u32| json!(format!("{n} found"));
    assert_eq!((&r["name"], &r["file"], &r["error"]), (&found(2), &found(3), &found(1)));
    assert_eq!((&r["none"], &r["empty"]), (&found(0), &json!("")));
    assert_eq!((&r["next"], &r["back"]), (&json!([0, 1]), &json!(0)));
    assert_eq!(r["function"], json!(1));
    assert_eq!((&r["walked"], &r["down"], &r["said"]), (&json!(true), &json!(true), &json!(true)));
}

#[test]
fn a_filter_is_that_of_where() {
    let Some(browser) = Browser::new() else { return };
    let r = ask(
        &browser,
        "",
        "const set = t => { const f = document.getElementById('filter'); f.value = t; f.dispatchEvent(new Event('change'));
            return [trace.rows.filter(w => w.kind === 'call').reduce((n, w) => n + (w.hidden ? w.hidden.filter(h => !h).length : w.n), 0), text('wrong')]; };
         r.all = ['', 'retval < 0', 'retval == -ENOENT || dur > 10ms', '!contains(path, \"passwd\") && pid == 7', 'comm == \"app\"',
            'startswith(name, \"open\") && (tid == 7)', 'dru > 1', 'dur >', 'dur > 1 )'].map(set);
         set('retval < 0'); await wait(200); r.table = table(); set('');",
    );
    let all = json!([
        [10, ""],
        [1, ""],
        [2, ""],
        [3, ""],
        [4, ""],
        [2, ""],
        [2, "no field dru (name, probe, text, path, comm, pid, tid, dur, retval, kind, start)"],
        [2, "something is missing at the end"],
        [2, "more than an expression"]
    ]);
    assert_eq!(r["all"], all);
    assert_eq!(r["table"], json!(["1.00 ms|1|1|1.00 ms|openat"]));
}

/// The pictures of docs/TIMELINE.md.
#[test]
fn pictures_of_a_page() {
    let Some(browser) = Browser::new() else { return };
    let stats = TraceStats::new(Trace { command: "shop".into(), ended: true, ..Trace::default() });
    let (mut view, mut out, known) = (Timeline::new(stats, html::WRITER), Vec::new(), shop::Known::default());
    for (_, cpu, bytes) in shop::events() {
        let ev = Event::parse(&bytes).expect("an event");
        known.on(cpu);
        view.see(&ev);
        view.event(&ev, &known, &mut out);
    }
    view.end(&mut out);
    let page = String::from_utf8(out).expect("UTF-8");
    browser.screenshot_of("timeline.html", (1250, 980), &page);
    let dark =
        page.replace("(prefers-color-scheme: dark)", "all").replace("color-scheme: light dark", "color-scheme: dark");
    browser.screenshot_of("timeline-dark.html", (1250, 980), &dark);
}
