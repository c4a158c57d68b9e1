//! Filters that the programs evaluate decide as [`lang`] does.

use super::*;

/// Filters that say something of this event.
fn filters(event: &Event<'_>) -> Vec<String> {
    let general = [
        "pid == 20 && tid == 21",
        "pid == 21",
        "retval < 0",
        "dur >= 0 && retval >= 0",
        "nsecs == 0 && tid == 21",
        "comm == \"\" && uid == 0 && cpu == 0 && gid != 0",
        "retval == -ENOENT || retval > 20",
    ];
    let mut all = general.map(String::from).to_vec();
    for (i, arg) in event.schema.args.iter().enumerate().take(6) {
        let (name, value) = (arg.name, event.arg(i) as i64);
        if matches!(arg.ty, Type::Str(_)) {
            let bytes = event.tail(i, false).or_else(|| event.tail(i, true)).map(|t| t.bytes).unwrap_or_default();
            let exact: String = bytes.iter().take(200).map(|b| format!("\\x{b:02x}")).collect();
            all.push(format!("retval != 7 && args.{name} == \"{exact}\""));
            all.push(format!("args.{name} == \"{exact}\" && retval > 7"));
            all.push(format!("args.{name} != \"{exact}a\""));
            all.push(format!("startswith(args.{name}, \"a\")"));
            all.push(format!("args.{name} == \"\""));
        } else {
            all.push(format!("args.{name} & 1"));
            all.push(format!("args.{name} == {value:#x}"));
            all.push(format!("args.{name} > 3 && args.{name} / 3 != 2"));
        }
    }
    all
}

#[test]
fn filters_decide_as_the_evaluator_does() {
    let mut random = Random::new(0x7261_706c_696e_6502);
    let [mut passed, mut rejected] = [0; 2];
    for nr in 0..events::generated::X86_64.len() as u32 {
        let Some(schema) = events::registry::by_number(nr.into()) else { continue };
        let (memory, args, ret) = (random.memory(), std::array::from_fn(|_| random.argument()), random.result());
        let bytes = match filtered(schema, nr, &args, ret, &memory, (None, Vec::new())).1.pop() {
            Some(bytes) if schema.name != "rt_sigreturn" => bytes,
            _ => continue,
        };
        let event = Event::parse(&bytes).unwrap();
        // All about strings, and some of the others.
        for text in filters(&event) {
            if random.below(3) > 0 && !text.contains('"') {
                continue;
            }
            let list = with_neighbours(&text, nr);
            let Some((_, filter)) = list.iter().find(|(n, _)| *n == nr) else { continue };
            let context = lang::Context { comm: Some(b""), uid: Some(0), gid: Some(0), cpu: None };
            let verdict = filter.matches(&event, &context);
            let (m, events) = filtered(schema, nr, &args, ret, &memory, (None, list));
            let about = format!("{} {args:x?} = {ret}: {text}", schema.name);
            assert_eq!(counter(&m, SEEN), 1, "{about}");
            match verdict {
                Verdict::Pass => {
                    assert_eq!(events, std::slice::from_ref(&bytes), "{about}");
                    passed += 1;
                }
                Verdict::Rejected(part) => {
                    assert_eq!(events.len(), 0, "{about}");
                    assert_eq!(counter(&m, FILTERED + 8 * part as i16), 1, "{about}");
                    rejected += 1;
                }
                // Too little of the string is in the event; the programs read what they need.
                Verdict::Unknown(lang::Missing::Text(_)) => {}
                Verdict::Unknown(m) => panic!("{m:?} {about}"),
            }
        }
    }
    assert!(passed > 300 && rejected > 300, "{passed} passed, {rejected} rejected");
}

#[test]
fn filters_know_the_ids_of_the_session_s_namespace() {
    let close = events::registry::by_name("close").unwrap();
    let inner = Some(Namespace { thread_pid: 40, group_leader: 48, number: 0 });
    for (text, namespace, passes) in [
        ("pid == 20 && tid == 21", None, true),
        ("pid == 7 && tid == 8", inner, true),
        ("pid == 7 && tid == 8 && nsecs >= 0", inner, true),
        ("pid == 20", inner, false),
        ("nsecs >= 0 && pid == 20", inner, false),
    ] {
        let list = with_neighbours(text, 3);
        let (_, events) = filtered(close, 3, &[1; 6], 0, &[], (namespace, list));
        assert_eq!(events.len(), usize::from(passes), "{text}");
        if let (Some(bytes), Some(_)) = (events.first(), namespace) {
            let event = Event::parse(bytes).unwrap();
            assert_eq!((event.pid(), event.tid()), (7, 8), "{text}");
        }
    }
}
