use super::*;
use engine::own_events;
use events::StreamId;
use events::functions::Moment;
use events::generated::P_FUNCTION;
use events::stream::Scope;
use sys::proc;

/// Upper half of the counter in these tests.
const HALF: u32 = 7;

fn enabling(id: u32, pattern: &str, filter: Option<&str>) -> (u32, FunctionEnabling) {
    let (pattern, filter) = (pattern.to_string(), filter.map(str::to_string));
    (id, FunctionEnabling { pattern, filter, without: Vec::new() })
}

fn at(low: u32) -> u64 {
    u64::from(HALF) << 32 | u64::from(low)
}

/// Functions `main`, `work` and `leaf` with numbers from 1.
fn record_filter(enablings: &[(u32, FunctionEnabling)], whole: Option<&str>) -> RecordFilter {
    let typed = |text| Arc::new(Expression::new(text, &[], &Calls::none(), &[entry(), exit()]).unwrap());
    let mut record_filter = RecordFilter::new(enablings, whole.map(typed), true, Arc::default());
    for (n, name) in (1u64..).zip(["main", "work", "leaf"]) {
        let tails: [&[u8]; 3] = [name.as_bytes(), b"/bin/x", b""];
        record_filter.note(&own_events::process(&P_FUNCTION, 1, (1, 1), &[0, 0, 0, n, 0x1000], &tails));
    }
    record_filter
}

/// What is delivered of these records of a thread: words.
fn words(record_filter: &mut RecordFilter, tid: u32, records: &[(u32, u32)]) -> Vec<u32> {
    let bytes: Vec<u8> = records.iter().flat_map(|(t, w)| [t.to_le_bytes(), w.to_le_bytes()].concat()).collect();
    let moment = |low| Moment { tsc: at(low), monotonic: u64::from(low) };
    let run = Run {
        stream: StreamId::new(Scope::Thread(tid), 1),
        pid: 40,
        begins: false,
        records: &bytes,
        high: HALF,
        from: moment(0),
        to: moment(1_000_000),
        dropped: 0,
    };
    let Some(run) = record_filter.take(&run) else { return Vec::new() };
    let parts = run.parts().inspect(|(high, _)| assert_eq!(*high, HALF));
    parts.flat_map(|(_, part)| part.as_chunks::<RECORD>().0.iter().map(word).collect::<Vec<_>>()).collect()
}

const MAIN: u32 = 1 << 1;
const WORK: u32 = 2 << 1;
const LEAF: u32 = 3 << 1;

fn counts(record_filter: &RecordFilter) -> Vec<(u64, u64, u64)> {
    record_filter.counts(0).iter().map(|(_, c)| (c.seen, c.recorded, c.filtered)).collect()
}

#[test]
fn the_time_of_a_record_decides_whether_the_session_was_stopped() {
    let mut s = record_filter(&[enabling(0, "*", None)], None);
    s.switch(at(100), false);
    s.switch(at(200), true);
    let records = [(99, MAIN), (100, WORK), (150, WORK | 1), (199, LEAF), (200, LEAF | 1), (201, MAIN | 1)];
    assert_eq!(words(&mut s, 41, &records), [MAIN, LEAF | 1, MAIN | 1]);
    // Another thread's are read later, and are from before.
    assert_eq!(words(&mut s, 42, &[(50, WORK), (120, WORK | 1), (300, MAIN)]), [WORK, MAIN]);
    assert_eq!(counts(&s), [(5, 5, 0)]);
    assert_eq!(s.filtered(), Filtered::default());
}

#[test]
fn a_stop_does_not_reach_back_when_a_later_one_was_asked_for_earlier() {
    let mut s = record_filter(&[enabling(0, "*", None)], None);
    s.switch(at(100), false);
    s.switch(at(50), true);
    assert_eq!(words(&mut s, 41, &[(60, MAIN), (100, WORK), (101, LEAF)]), [MAIN, WORK, LEAF]);
}

#[test]
fn enablings_come_and_go_at_a_moment() {
    let (all, mut less) = (enabling(0, "*", None), enabling(0, "*", None));
    let mut s = record_filter(std::slice::from_ref(&all), None);
    less.1.without.push("wo*".into());
    s.select(at(100), &[less.clone(), enabling(1, "work", Some("tid == 42"))]);
    assert!(s.is_without(&"wo*".to_string()) && s.knows(1) && !s.knows(2));
    let records = [(90, WORK), (99, WORK | 1), (100, WORK), (110, LEAF), (111, LEAF | 1), (112, WORK | 1)];
    assert_eq!(words(&mut s, 41, &records), [WORK, WORK | 1, LEAF, LEAF | 1]);
    assert_eq!(words(&mut s, 42, &records), [WORK, WORK | 1, WORK, LEAF, LEAF | 1, WORK | 1]);
    assert_eq!(counts(&s), [(8, 8, 0), (4, 2, 2)]);
    // Both records of each call that the filter rejects are counted, once.
    let classes = [(entry().id, 1), (exit().id, 1)];
    assert_eq!(s.filtered().classes, classes.into_iter().collect());
    s.select(at(200), &[enabling(1, "work", Some("tid == 42"))]);
    assert_eq!(words(&mut s, 41, &[(201, LEAF), (202, MAIN)]), [0; 0]);
    assert_eq!(counts(&s), [(8, 8, 0), (4, 2, 2)]);
}

#[test]
fn an_event_of_several_enablings_is_delivered_once() {
    let mut s = record_filter(&[enabling(0, "w*", None), enabling(1, "work", Some("args.function == \"leaf\""))], None);
    assert_eq!(words(&mut s, 41, &[(1, WORK), (2, WORK | 1)]), [WORK, WORK | 1]);
    assert_eq!(counts(&s), [(2, 2, 0), (2, 0, 2)]);
    // It was rejected by one of them, and has passed.
    assert_eq!(s.filtered().total(), 0);
    let own = &s.counts(0)[1].1;
    assert_eq!((own.parts.as_slice(), own.dropped), (&[2][..], 0));
}

#[test]
fn a_filter_counts_what_it_rejects_by_its_parts() {
    let mut s = record_filter(&[enabling(0, "*", None)], Some("pid == 40 && args.function != \"leaf\" && nsecs < 500"));
    let records = [(1, WORK), (2, LEAF), (3, LEAF | 1), (4, WORK | 1), (600, MAIN)];
    assert_eq!(words(&mut s, 41, &records), [WORK, WORK | 1]);
    let f = s.filtered();
    assert_eq!((f.parts.as_slice(), f.unknown), (&[0, 2, 1][..], 0));
    assert_eq!(f.classes, [(entry().id, 2), (exit().id, 1)].into_iter().collect());
    // The only enabling has the losses too.
    let (_, c) = &s.counts(9)[0];
    assert_eq!((c.seen, c.recorded, c.filtered, c.dropped), (14, 2, 3, 9));
}

#[test]
fn names_are_those_of_the_thread_or_of_its_process() {
    let mut s = record_filter(&[enabling(0, "*", None)], Some("comm == \"name\""));
    // No process has such a number.
    let nobody = (1 << 30) + 7;
    assert_eq!(words(&mut s, nobody, &[(1, WORK)]), [0; 0]);
    assert_eq!(s.filtered().unknown, 1);
    s.begin(40, Some(b"name".to_vec()), None);
    assert_eq!(words(&mut s, nobody + 1, &[(1, WORK)]), [WORK]);
    s.end(40);
    assert_eq!(words(&mut s, nobody + 2, &[(1, WORK)]), [0; 0]);
    let own = proc::comm(sys::process::own_pid()).unwrap();
    let text = format!("comm == \"{}\"", String::from_utf8_lossy(&own));
    let mut s = record_filter(&[enabling(0, "*", None)], Some(&text));
    assert_eq!(words(&mut s, sys::process::own_pid() as u32, &[(1, WORK)]), [WORK]);
}

#[test]
fn any_number_may_be_written() {
    let mut s = record_filter(&[enabling(0, "work", None)], Some("pid == 40"));
    let wild = [(0, i32::MAX as u32), (u32::MAX, i32::MAX as u32 - 1), (5, 1 << 30)];
    assert_eq!((words(&mut s, 41, &wild), s.impossible()), (vec![], 3));
    // Values that are longer than what is there.
    assert_eq!(words(&mut s, 41, &[(5, 1 << 31), (u32::MAX, u32::MAX)]), [0; 0]);
    assert!(s.threads.values().all(|t| t.outcomes.len() <= 8), "the room is that of the functions");
    let mut random = testkit::Random::new(1);
    for n in 0..testkit::rounds(200) as u32 {
        let records: Vec<(u32, u32)> = (0..50).map(|_| (random.next() as u32, random.next() as u32)).collect();
        words(&mut s, 41 + n % 3, &records);
        if n % 20 == 0 {
            s.switch(at(random.next() as u32), n % 40 == 0);
        }
    }
    assert!(s.outcomes.len() < 10, "{}", s.outcomes.len());
}
