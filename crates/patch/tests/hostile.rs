//! Bytes and tables that nobody has made on purpose: no panic, bounded work, and whatever is planned is consistent.

use abi::message::Hook;
use abi::stub::Variant;
use patch::file::{parse, write};
use patch::link::{Beside, Places, copy_at_probes, link};
use patch::{Frame, Function, Module, Plan, Point, Refusal, Segment};
use proptest::prelude::*;

/// Bytes that are often instructions of beginnings.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
        &[0xf3, 0x0f, 0x1e, 0xfa],
        &[0x55],
        &[0x48, 0x89, 0xe5],
        &[0xe8, 0x10, 0, 0, 0],
        &[0x74, 0xfc],
        &[0xeb, 0x02],
        &[0xe9, 0xf0, 0xff, 0xff, 0xff],
        &[0xff, 0x15, 0x10, 0, 0, 0],
        &[0x48, 0x8b, 0x05, 0x10, 0, 0, 0],
        &[0xe3, 0x01],
        &[0xc3],
        &[0x90],
        &[0xcc],
    ];
    let piece = prop_oneof![
        3 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..8),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|p| p.concat())
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0x1000..0x1200u64, 1 => any::<u64>(), 1 => (u64::MAX - 0x100)..u64::MAX]
}

/// A function that begins within the endbr64 of another gets a patch, and the other none.
#[test]
fn functions_in_one_another() {
    let bytes = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0x90; 28]].concat();
    let segments = [Segment { address: 0x1000, bytes: &bytes }];
    let function = |address, number| Function { address, size: 16, number, refusal: None };
    let functions = [function(0x1000, 0), function(0x1003, 1)];
    let frames = functions.map(|f| Frame { start: f.address, len: f.size, is_as_called: true });
    let module = Module { segments: &segments, functions: &functions, frames: &frames, ..Module::default() };
    let plan = Plan::new(&module);
    assert_eq!(plan.sites.iter().map(|s| s.number).collect::<Vec<_>>(), [1], "{:?}", plan.refusals);
    assert_eq!(plan.refusals, [(0, Refusal::SymbolInside)]);
}

/// A probe in a function that ends behind the last address.
#[test]
fn a_function_beyond_the_last_address() {
    let (bytes, start) = ([0x90; 40], u64::MAX - 31);
    let segments = [Segment { address: start, bytes: &bytes }];
    let frames = [Frame { start, len: bytes.len() as u64, is_as_called: false }];
    for address in [start, start + 8, u64::MAX] {
        let points = [Point { address, at_return: false, number: 0, refusal: None }];
        let plan = Plan::new(&Module { segments: &segments, frames: &frames, points: &points, ..Module::default() });
        assert_eq!(plan.points.len() + plan.refused_points.len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testkit::rounds(400) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_module(
        bytes in code(),
        more in code(),
        base in prop_oneof![4 => Just(0x1000u64), 1 => address()],
        functions in prop::collection::vec((address(), prop_oneof![0..40u64, any::<u64>()]), 0..20),
        mut frames in prop::collection::vec((address(), prop_oneof![0..40u64, any::<u64>()], any::<bool>()), 0..20),
        mut symbols in prop::collection::vec(address(), 0..10),
        mut profilers in prop::collection::vec(address(), 0..3),
        probed in prop::collection::vec((address(), any::<bool>()), 0..10),
        all_framed in any::<bool>(),
        area in prop_oneof![Just(0x10000u64), any::<u64>().prop_map(|a| a & !0xfff)],
        bias in prop_oneof![Just(0u64), any::<u64>()],
    ) {
        let segments = [Segment { address: base, bytes: &bytes }, Segment { address: 0x1100, bytes: &more }];
        let functions: Vec<Function> = functions
            .iter()
            .enumerate()
            .map(|(i, (address, size))| Function { address: *address, size: *size, number: i as u32, refusal: None })
            .collect();
        if all_framed {
            frames.extend(functions.iter().map(|f| (f.address, f.size, true)));
        }
        let mut frames: Vec<Frame> =
            frames.iter().map(|(start, len, called)| Frame { start: *start, len: *len, is_as_called: *called }).collect();
        frames.sort();
        symbols.sort_unstable();
        profilers.sort_unstable();
        let mut statics: Vec<u64> = probed.iter().map(|(address, _)| *address).collect();
        statics.sort_unstable();
        let hooks = [(Hook::Fork, 0x1010), (Hook::Clone, 0x1000)];
        let mut points: Vec<Point> =
            probed.iter().map(|(address, at_return)| Point { address: *address, at_return: *at_return, number: 0, refusal: None }).collect();
        points.sort_unstable();
        points.dedup();
        points.iter_mut().zip(100..).for_each(|(p, n)| p.number = n);
        let module = Module {
            segments: &segments,
            functions: &functions,
            frames: &frames,
            symbols: &symbols,
            profilers: &profilers,
            hooks: &hooks,
            captures: false,
            stops: &[],
            statics: &statics,
            points: &points,
            data: &[],
            pointers: &[],
            is_fixed: false,
        };
        let plan = Plan::new(&module);
        prop_assert_eq!(plan.sites.len() + plan.aliases.len() + plan.refusals.len(), functions.len());
        prop_assert_eq!(plan.hooks.len() + plan.refused_hooks.len(), 2);
        prop_assert_eq!(plan.points.len() + plan.returns.len() + plan.refused_points.len(), points.len());
        let mut patches: Vec<u64> = plan.sites.iter().chain(plan.hooks.iter().map(|h| &h.1)).chain(&plan.points).map(|s| s.address).collect();
        patches.extend(plan.returns.iter().map(|s| s.address));
        patches.sort_unstable();
        patches.dedup();
        prop_assert!(patches.windows(2).all(|p| p[1] - p[0] >= 5));
        prop_assert!(plan.sites.windows(2).all(|s| s[1].address.checked_sub(s[0].address).is_some_and(|d| d >= 5)));
        let places =
            Places { bias, area, tls: -64, slow: [1; 11], hooks: [7; 32], variant: Variant::Paired, minimum: 0 };
        let returns: Vec<_> = plan.returns.iter().map(|s| (s, 1 + s.number)).collect();
        let returns = returns.iter().filter(|(r, _)| plan.sites.iter().all(|s| s.address != r.address)).copied().collect::<Vec<_>>();
        let probes: Vec<_> = plan.points.iter().collect();
        let beside = Beside { returns: &returns, points: &probes };
        if let Ok(mut linked) = link(&plan, &places, |n| (n % 3 != 0).then_some(n + 1), beside) {
            prop_assert_eq!(linked.probes(), probes.len());
            copy_at_probes(&mut linked, |n| (n, &[]));
            linked.counters = (0..linked.patches.len() as u32).map(|n| (8 * u64::from(n), n)).collect();
            let bytes = write(std::slice::from_ref(&linked), &[]);
            let read = parse(&bytes).unwrap();
            prop_assert_eq!(read.areas[0].content, &linked.content[..]);
            prop_assert_eq!(read.patches.len(), linked.patches.len());
            prop_assert_eq!(read.originals.len(), plan.hooks.len());
            prop_assert_eq!(&read.counters, &linked.counters);
        }
    }

    #[test]
    fn damaged_plans(bytes in code(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in any::<prop::sample::Index>()) {
        let segments = [Segment { address: 0x1000, bytes: &bytes }];
        let functions = [Function { address: 0x1000, size: 40, number: 0, refusal: None }];
        let frames = [Frame { start: 0x1000, len: 40, is_as_called: true }];
        let hooks = [(Hook::Fork, 0x1010)];
        let module = Module { segments: &segments, functions: &functions, frames: &frames, hooks: &hooks, ..Module::default() };
        let places =
            Places { bias: 0, area: 0x10000, tls: -64, slow: [1; 11], hooks: [7; 32], variant: Variant::Paired, minimum: 0 };
        let linked = link(&Plan::new(&module), &places, |_| Some(1), Beside::default()).unwrap();
        let whole = write(&[linked], &[[1, 2, 3, 4]]);
        let mut damaged = whole.clone();
        for (at, byte) in changes {
            // In the tables, mostly.
            let end = damaged.len().min(300);
            let at = at.index(end);
            damaged[at] = byte;
        }
        let _ = parse(&damaged);
        prop_assert!(parse(&whole[..cut.index(whole.len().min(200))]).is_err());
    }

    #[test]
    fn any_bytes_are_no_plan(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
    }
}
