//! The model of a heap, against one that counts everything anew, and with input that nobody sends.

#[path = "heap/naive.rs"]
mod naive;

use naive::Naive;
use proptest::prelude::*;
use std::collections::BTreeMap;
use views::heap::model::{MAX_PROCESSES, MAX_STACKS};
use views::heap::{Kind, Model, Sum, Who};

#[derive(Clone, Debug)]
enum Event {
    Malloc(Who, u64, u64, u32),
    Free(Who, u64),
    Temporary(Who, u64, u64, u32),
    Realloc(Who, u64, u64, u64, u32),
    Mmap(Who, u64, u64, u32),
    Unmap(u32, u64, u64),
    Fork(u32, u32),
    End(u32),
    Exec(u32),
    Reset,
}

fn event() -> impl Strategy<Value = Event> {
    let who = || (0..3u32, 0..3u32).prop_map(|(process, tid)| Who { process, tid });
    let address = || (1..24u64).prop_map(|n| n * 16);
    let (size, stack) = (|| 0..200u64, || 0..5u32);
    let page = || (1..12u64).prop_map(|n| n * 4096);
    prop_oneof![
        30 => (who(), address(), size(), stack()).prop_map(|(w, a, n, s)| Event::Malloc(w, a, n, s)),
        30 => (who(), address()).prop_map(|(w, a)| Event::Free(w, a)),
        10 => (who(), address(), size(), stack()).prop_map(|(w, a, n, s)| Event::Temporary(w, a, n, s)),
        5 => (who(), address(), address(), size(), stack()).prop_map(|(w, a, b, n, s)| Event::Realloc(w, a, b, n, s)),
        8 => (who(), page(), 0..20_000u64, stack()).prop_map(|(w, a, n, s)| Event::Mmap(w, a, n, s)),
        8 => (0..3u32, page(), 0..20_000u64).prop_map(|(p, a, n)| Event::Unmap(p, a, n)),
        3 => (0..3u32, 0..3u32).prop_filter("another process", |(p, c)| p != c).prop_map(|(p, c)| Event::Fork(p, c)),
        2 => (0..3u32).prop_map(Event::End),
        2 => (0..3u32).prop_map(Event::Exec),
        1 => Just(Event::Reset),
    ]
}

fn feed(model: &mut Model, naive: &mut Naive, time: u64, event: Event) {
    match event {
        Event::Malloc(who, address, size, stack) => {
            model.alloc(who, time, Kind::Malloc, address, size, stack);
            naive.alloc(who, time, Kind::Malloc, address, size, stack);
        }
        Event::Free(who, address) => {
            model.free(who, time, address);
            naive.free(who, time, address);
        }
        Event::Temporary(who, address, size, stack) => {
            // What is outstanding there goes first: of one whose free was not seen, nobody says that it is temporary.
            if naive.has(who.process, address) {
                feed(model, naive, time, Event::Free(who, address));
            }
            model.temporary(who, time, address, size, stack);
            naive.alloc(who, time, Kind::Malloc, address, size, stack);
            naive.free(who, time, address);
        }
        Event::Realloc(who, from, to, size, stack) => {
            feed(model, naive, time, Event::Free(who, from));
            feed(model, naive, time, Event::Malloc(who, to, size, stack));
        }
        Event::Mmap(who, address, size, stack) => {
            model.alloc(who, time, Kind::Mmap, address, size, stack);
            naive.alloc(who, time, Kind::Mmap, address, size, stack);
        }
        Event::Unmap(process, address, len) => {
            model.unmap(process, time, address, len);
            naive.unmap(process, time, address, len);
        }
        Event::Fork(parent, child) => {
            model.fork(parent, child, time);
            naive.fork(parent, child, time);
        }
        Event::End(process) => {
            model.end(process, time);
            naive.end(process, time);
        }
        Event::Exec(process) => {
            model.exec(process, time);
            naive.exec(process, time);
        }
        Event::Reset => {
            model.reset(time);
            naive.reset(time);
        }
    }
}

fn check(model: &Model, naive: &Naive) {
    let s = model.summary();
    assert_eq!(
        (s.missed_frees, s.unknown_frees, s.frees_of_before, s.frees_of_copies),
        (naive.missed, naive.unknown, naive.before, naive.copies)
    );
    let (peak, peak_time, _) = naive.peak();
    assert_eq!((s.numbers.at_peak, s.peak_time), (peak, peak_time));
    let mut all: BTreeMap<u32, _> = model.stacks().collect();
    let want = naive.numbers();
    all.retain(|_, n| *n != Default::default());
    assert_eq!(all, want);
    for min_age in [0, 700_000, 20_000_000] {
        let mut found: BTreeMap<(u32, Kind), (Sum, u64)> = BTreeMap::new();
        model.outstanding(min_age, &mut |stack, kind, sum, age| {
            let (all, oldest) = found.entry((stack, kind)).or_default();
            all.join(sum);
            *oldest = age.max(*oldest);
        });
        let least = naive.outstanding(s.now, min_age);
        let most = naive.outstanding(s.now, min_age - min_age.div_ceil(64));
        for (key, (sum, oldest)) in &least {
            let (has, age) = found[key];
            assert!(has.blocks >= sum.blocks && has.blocks <= most[key].0.blocks && age == *oldest, "{key:?}");
            assert!(has.bytes >= sum.bytes && has.bytes <= most[key].0.bytes, "{key:?}");
        }
        assert_eq!(found.len(), least.len(), "{min_age}");
    }
    let series = model.series();
    for (nth, point) in series.points().iter().enumerate() {
        let time = series.start() + nth as u64 * series.step();
        assert_eq!(point.malloc, naive.before(time), "{time}");
    }
    // The stacks' series add up to that of the whole.
    let stacks: Vec<Vec<u64>> = (0..5).map(|stack| model.stack_series(stack)).collect();
    for (nth, point) in series.points().iter().step_by(32).enumerate() {
        let sum: u64 = stacks.iter().filter_map(|s| s.get(nth)).sum();
        assert_eq!(sum, point.malloc.bytes + point.mapped.bytes, "{nth}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_model_counts_what_is_there(
        events in prop::collection::vec((event(), 0..1_000_000u64), 1..150),
        checks in prop::collection::vec(0..150usize, 0..3),
    ) {
        let (mut model, mut naive, mut time) = (Model::new(), Naive::default(), 1_000);
        for (nth, (event, wait)) in events.into_iter().enumerate() {
            time += wait;
            feed(&mut model, &mut naive, time, event);
            if checks.contains(&nth) {
                check(&model, &naive);
            }
        }
        check(&model, &naive);
    }

    #[test]
    fn anything_may_come(
        events in prop::collection::vec(
            (0..11u8, prop::num::u32::ANY, prop::num::u64::ANY, extreme(), extreme(), 0..3u32), 1..60),
    ) {
        let mut model = Model::new();
        for (what, number, time, address, size, process) in events {
            let process = if what == 8 { number } else { process };
            let who = Who { process, tid: number % 3 };
            match what {
                0 | 8 => model.alloc(who, time, Kind::Malloc, address, size, process),
                1 => model.free(who, time, address),
                2 | 3 => model.alloc(who, time, Kind::Mmap, address, size, process),
                4 => model.unmap(process, time, address, size),
                5 => model.fork(process, number % 3, time),
                6 => model.end(process, time),
                9 => model.exec(process, time),
                10 => model.temporary(who, time, address, size, process),
                _ => model.reset(time),
            }
        }
        model.summary();
        model.outstanding(0, &mut |_, _, _, _| {});
    }
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), Just(u64::MAX - 4095), Just(1 << 63), prop::num::u64::ANY, 0..20_000u64]
}

const ME: Who = Who { process: 0, tid: 1 };

#[test]
fn sums_that_are_too_large_are_the_largest() {
    let mut m = Model::new();
    m.alloc(ME, 0, Kind::Malloc, 16, u64::MAX, 1);
    m.alloc(ME, 1, Kind::Malloc, 32, u64::MAX, 1);
    m.alloc(ME, 2, Kind::Mmap, u64::MAX - 10, u64::MAX, 1);
    let n = m.summary().numbers;
    assert_eq!((n.live, n.peak), (Sum { blocks: 2, bytes: u64::MAX }, u64::MAX));
    // A mapping ends with the addresses.
    assert_eq!(n.mapped_live, Sum { blocks: 1, bytes: 10 });
    m.unmap(0, 3, 0, u64::MAX);
    assert_eq!(m.summary().numbers.mapped_live, Sum::default());
}

#[test]
fn numbers_that_are_too_large_are_counted() {
    let mut m = Model::new();
    let far = Who { process: MAX_PROCESSES as u32, tid: 1 };
    m.alloc(far, 0, Kind::Malloc, 16, 1, 1);
    m.free(far, 0, 16);
    m.alloc(far, 0, Kind::Mmap, 4096, 1, 1);
    m.fork(0, u32::MAX, 0);
    m.end(u32::MAX, 0);
    assert_eq!(m.summary().lost, 3);
    m.alloc(ME, 0, Kind::Malloc, 16, 5, MAX_STACKS as u32);
    m.alloc(ME, 0, Kind::Malloc, 32, 6, u32::MAX);
    let stacks: Vec<_> = m.stacks().map(|(stack, n)| (stack, n.live)).collect();
    assert_eq!(stacks, [(0, Sum { blocks: 2, bytes: 11 })]);
    let mut seen = Vec::new();
    m.outstanding(0, &mut |stack, _, sum, _| seen.push((stack, sum.bytes)));
    seen.sort_unstable();
    assert_eq!(seen, [(0, 5), (0, 6)]);
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut m = Model::new();
    m.alloc(ME, 1000, Kind::Malloc, 16, 5, 1);
    m.alloc(ME, 10, Kind::Malloc, 32, 5, 1);
    m.end(0, 500);
    assert_eq!((m.summary().start, m.summary().now), (1000, 1000));
    m.outstanding(0, &mut |_, _, _, age| assert_eq!(age, 0));
}

#[test]
fn a_block_is_temporary_if_its_thread_does_nothing_in_between() {
    let temporary = |events: &[(u32, i64)]| {
        let mut m = Model::new();
        for &(tid, what) in events {
            let who = Who { tid, ..ME };
            match what {
                address @ 1.. => m.alloc(who, 0, Kind::Malloc, address as u64, 8, 1),
                address => m.free(who, 0, address.unsigned_abs()),
            }
        }
        m.summary().numbers.temporary
    };
    assert_eq!(temporary(&[(1, 16), (1, -16)]), 1);
    // Other threads do not matter.
    assert_eq!(temporary(&[(1, 16), (2, 32), (2, -32), (1, -16)]), 2);
    assert_eq!(temporary(&[(1, 16), (1, 32), (1, -16), (1, -32)]), 0);
    assert_eq!(temporary(&[(1, 16), (2, -16)]), 0);
    // A block that grows three times.
    assert_eq!(temporary(&[(1, 16), (1, -16), (1, 32), (1, -32), (1, 64), (2, 128), (1, -64)]), 3);
}

#[test]
fn a_child_that_would_have_too_many_copies_has_none() {
    let mut m = Model::with_max_copies(5);
    for n in 1..4 {
        m.alloc(ME, n, Kind::Malloc, 16 * n, 10, 1);
    }
    let child = |process| Who { process, tid: 9 };
    m.fork(0, 1, 10);
    m.fork(0, 2, 11);
    assert_eq!(m.summary().numbers.copies, Sum { blocks: 3, bytes: 30 });
    for process in [1, 2] {
        m.free(child(process), 12, 16);
    }
    assert_eq!((m.summary().frees_of_copies, m.summary().unknown_frees), (2, 0));
    assert_eq!(m.summary().numbers.live, Sum { blocks: 3, bytes: 30 });
    // There is room again.
    m.end(1, 13);
    m.fork(0, 3, 14);
    assert_eq!(m.summary().numbers.copies.blocks, 3);
    m.alloc(child(3), 15, Kind::Malloc, 64, 7, 1);
    (1..4).for_each(|process| m.end(process, 16));
    let n = m.summary().numbers;
    assert_eq!((n.copies.blocks, n.ended), (0, Sum { blocks: 1, bytes: 7 }));
}

#[test]
fn announced_addresses_change_nothing() {
    let mut m = Model::new();
    (0..40_000).for_each(|n| m.alloc(ME, n, Kind::Malloc, 16 * n, 1, 1));
    let before = m.summary();
    m.expect(0, &[16, 17, 32]);
    m.expect(7, &[16]);
    assert_eq!(m.summary(), before);
}
