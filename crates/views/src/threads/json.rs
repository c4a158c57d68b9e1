//! Threads as JSON: one object, on one line.

use super::{Actor, Deadlock, Found, Process, Thread, Wait};
use crate::stack;
use crate::write::json as w;

/// Appends what was found; docs/STACKS.md describes the members.
pub fn write(found: &Found, deadlocks: &[Deadlock], out: &mut Vec<u8>) {
    out.push(b'{');
    w::key(out, "processes");
    array(&found.processes, process, out);
    w::key(out, "deadlocks");
    array(deadlocks, deadlock, out);
    w::key(out, "stopped_ns");
    w::number(out, found.stopped);
    out.extend_from_slice(b"}\n");
}

fn array<T>(items: &[T], each: fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for item in items {
        w::comma(out);
        out.push(b'{');
        each(item, out);
        out.push(b'}');
    }
    out.push(b']');
}

fn text(key: &str, value: &str, out: &mut Vec<u8>) {
    w::key(out, key);
    w::string(out, value);
}

fn number(key: &str, value: impl itoa::Integer, out: &mut Vec<u8>) {
    w::key(out, key);
    w::number(out, value);
}

fn flag(key: &str, set: bool, out: &mut Vec<u8>) {
    if set {
        w::key(out, key);
        w::boolean(out, true);
    }
}

fn process(p: &Process, out: &mut Vec<u8>) {
    number("pid", p.pid, out);
    if let Some(own) = p.own {
        number("own_pid", own, out);
    }
    text("comm", &p.name, out);
    flag("other", p.other, out);
    w::key(out, "threads");
    array(&p.threads, thread, out);
}

fn thread(t: &Thread, out: &mut Vec<u8>) {
    number("tid", t.tid, out);
    if let Some(own) = t.own {
        number("own_tid", own, out);
    }
    text("comm", &t.name, out);
    text("state", &t.state.to_string(), out);
    if let Some((name, line)) = &t.call {
        text("call", name, out);
        text("text", line, out);
    }
    if let Some(ns) = t.idle {
        number("idle_ns", ns, out);
    }
    if let Some(wait) = &t.wait {
        w::key(out, "waits_for");
        out.push(b'{');
        self::wait(wait, out);
        out.push(b'}');
    }
    w::key(out, "stack");
    stack::json(&t.stack.iter().map(super::Frame::place).collect::<Vec<_>>(), out);
    if let Some(why) = &t.incomplete {
        text("incomplete", why, out);
    }
}

fn wait(wait: &Wait, out: &mut Vec<u8>) {
    text("kind", wait.kind, out);
    text("object", &wait.object, out);
    if !wait.relation.is_empty() {
        text("relation", wait.relation, out);
    }
    w::key(out, "by");
    array(&wait.by, actor, out);
    for (key, set) in [("complete", wait.complete), ("likely", wait.likely), ("timed", wait.timed)] {
        flag(key, set, out);
    }
    if !wait.note.is_empty() {
        text("note", &wait.note, out);
    }
}

fn actor(a: &Actor, out: &mut Vec<u8>) {
    number("pid", a.pid, out);
    if let Some(tid) = a.tid {
        number("tid", tid, out);
    }
    text("comm", &a.name, out);
}

fn deadlock(d: &Deadlock, out: &mut Vec<u8>) {
    for (key, all) in [("threads", &d.circle), ("behind", &d.behind)] {
        w::key(out, key);
        out.push(b'[');
        for tid in all {
            w::comma(out);
            w::number(out, *tid);
        }
        out.push(b']');
    }
    flag("likely", d.likely, out);
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    #[test]
    fn it_is_one_object() {
        let by = vec![Actor { pid: 1, tid: Some(2), name: "a".into(), how: String::new() }];
        let wait = Wait { kind: "mutex", object: "mutex 0x1".into(), by, complete: true, ..Wait::default() };
        let stack = vec![Frame { function: "f".into(), line: 3, file: "x.c".into(), ..Frame::default() }];
        let call = Some(("read".into(), "read(0".into()));
        let thread = Thread {
            tid: 2,
            name: "\u{1b}".into(),
            state: 'S',
            call,
            idle: Some(5),
            wait: Some(wait),
            stack,
            ..Thread::default()
        };
        let processes = vec![Process { pid: 7, own: Some(1), name: "a".into(), threads: vec![thread], other: true }];
        let deadlocks = [Deadlock { circle: vec![2], behind: vec![3, 4], likely: true }];
        let mut out = Vec::new();
        write(&Found { processes, stopped: 9 }, &deadlocks, &mut out);
        let parsed: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let thread = &parsed["processes"][0]["threads"][0];
        assert_eq!((&parsed["processes"][0]["own_pid"], thread.get("own_tid")), (&1.into(), None));
        assert_eq!(thread["waits_for"]["by"][0]["tid"], 2);
        assert_eq!((&thread["stack"][0]["function"], &thread["comm"]), (&"f".into(), &"\u{1b}".into()));
        assert_eq!(parsed["deadlocks"][0]["behind"], serde_json::json!([3, 4]));
        assert_eq!(parsed["stopped_ns"], 9);
    }
}
