//! Scripts in; types and messages out.

mod memory;
mod statements;
mod text;
mod values;

use super::*;
use crate::script::types::Type;
use expect_test::{Expect, expect};

fn world() -> Known {
    let text = || Type::Pointer(Box::new(Type::int(1, true)), types::Space::User);
    let open =
        vec![("filename".into(), text()), ("flags".into(), Type::int(4, true)), ("mode".into(), Type::int(2, false))];
    let mut known = Known::default();
    for name in ["sys_enter_openat", "sys_enter_open"] {
        known.args.insert(format!("tracepoint:syscalls:{name}"), open.clone());
    }
    known.args.insert("tracepoint:syscalls:sys_enter_close".into(), vec![("fd".into(), Type::int(4, false))]);
    let argv = Type::Pointer(Box::new(Type::None), types::Space::User);
    known.args.insert("tracepoint:syscalls:sys_enter_execve".into(), vec![("argv".into(), argv)]);
    let member = |name: &str| cdecl::Member { name: name.into(), ty: Type::int(4, false), offset: 0, bits: None };
    let queue = cdecl::Struct { size: 4, align: 4, members: vec![member("nr_queued")], depth: 1 };
    known.structures.insert("cfs_rq".into(), queue);
    let values = |list: &[(&str, i64)]| list.iter().map(|(of, v)| ((*of).to_string(), *v)).collect::<Vec<_>>();
    known.enumerators.insert("REASON_NONE".into(), values(&[("reason", 2), ("other", 2)]));
    known.enumerators.insert("REASON_LESS".into(), values(&[("reason", -1)]));
    known.enumerators.insert("REASON_TWICE".into(), values(&[("reason", 1), ("", 3)]));
    known.args.insert("syscall:read".into(), vec![("fd".into(), Type::int(4, true)), ("count".into(), Type::UINT)]);
    known
}

fn params() -> Parameters {
    Parameters {
        positional: vec!["42".into(), "cat".into()],
        named: vec![("pid".into(), "7".into())],
        config: vec![],
        may_run: false,
        failures: 0,
        only: None,
    }
}

/// What a script's names hold, or what is wrong with it.
fn outcome(text: &str) -> String {
    let show = |list: &[Diagnostic]| list.iter().map(|d| d.show("stdin", text)).collect::<Vec<_>>().join("\n");
    match compile(text, &params(), &world()) {
        Err(list) => show(&list),
        Ok(p) => {
            let mut out = String::new();
            for c in &p.clauses {
                let points: Vec<String> = c.points.iter().map(attach::Point::name).collect();
                out.push_str(&points.join(", "));
                for l in &c.leaves {
                    out.push_str(&format!(" <{:?}: {}>", l.what, l.ty));
                }
                for v in &c.vars {
                    out.push_str(&format!(" {v}"));
                }
                out.push('\n');
            }
            for m in &p.maps {
                let key: Vec<String> = m.key.iter().map(Type::to_string).collect();
                out.push_str(&format!("@{}[{}]: {}\n", m.name, key.join(", "), m.value));
            }
            out + &show(&p.warnings)
        }
    }
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&outcome(text));
}

/// All of them, one below the other.
#[track_caller]
fn check_all(texts: &[&str], expected: Expect) {
    let all: Vec<String> = texts.iter().map(|t| format!("{}\n", outcome(t).trim_end())).collect();
    expected.assert_eq(&all.join("\n"));
}
