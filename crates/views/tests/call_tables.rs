//! Views of calls that add up: functions, the table `stat`, differences, graphs of callers, profiles.

mod calls;

use calls::{Names, Script, script, thread};
use expect_test::{Expect, expect};
use views::calls::contexts::Contexts;
use views::calls::diff::{Diff, Side, Style};
use views::calls::edges::{Edges, Language};
use views::calls::functions::Table;
use views::calls::profile::{self, Weight};
use views::calls::runs::Runs;
use views::calls::sort::{SORTS, Sort};
use views::calls::stack::Stack;
use views::calls::totals::{Totals, in_parallel};
use views::calls::{Functions, Selection, Step, stat};
use views::profile::flame::Flame;
use views::profile::{By, folded};

fn totals(s: &Script, selection: &Selection) -> Totals {
    let threads: Vec<_> = s.threads().into_iter().map(|(_, steps)| steps).collect();
    in_parallel(threads, 2, 0, (selection, &s.names), |steps, feed| feed.steps(steps))
}

fn contexts(s: &Script) -> Vec<(u32, Contexts)> {
    let of = |(tid, steps): (u32, Vec<_>)| {
        let (mut stack, mut contexts) = (Stack::new(), Contexts::default());
        for step in steps {
            stack.step(step, &mut contexts);
        }
        stack.finish(0, &mut contexts);
        (tid, contexts)
    };
    s.threads().into_iter().map(of).collect()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[track_caller]
fn table(s: &str, table: Table, want: Expect) {
    let s = script(s);
    want.assert_eq(&text(|o| table.write(&totals(&s, &Selection::default()), &s.names, o)));
}

/// Two threads, one of which calls itself.
const USUAL: &str = "
    7: 0 +main 100 +f 200 +f 300 +f 400 -f 500 -f 1000 -f 1100 +g@/lib/libg.so 1200 -g@/lib/libg.so 3000000 -main
    8: 0 +work 1000 +g@/lib/libg.so 1500 -g@/lib/libg.so 2000 -work
";

#[test]
fn functions_by_total_time() {
    table(
        USUAL,
        Table::default(),
        expect![[r#"
         total   self calls    min    avg    max module  function
        ------ ------ ----- ------ ------ ------ ------- --------
        3.00ms 3.00ms     1 3.00ms 3.00ms 3.00ms app     main
        2.00us 1.50us     1 2.00us 2.00us 2.00us app     work
         900ns  900ns     3  100ns  433ns  900ns app     f
         600ns  600ns     2  100ns  300ns  500ns libg.so g
        7 calls of 4 functions in 2 threads
    "#]],
    );
}

#[test]
fn a_few_functions_in_narrow_lines() {
    let few = Table { sort: Sort::Calls, rows: 1, width: 60 };
    table(
        "7: 0 +a_function_with_a_very_long_name\u{1b} 10 -a_function_with_a_very_long_name\u{1b} 20 +b 30 -b 40 +c 50 -c",
        few,
        expect![[r#"
        total self calls  min  avg  max module function
        ----- ---- ----- ---- ---- ---- ------ ---------------------
         10ns 10ns     1 10ns 10ns 10ns app    a_functio..name\u{1b}
        2 more functions
        3 calls of 3 functions in 1 thread
    "#]],
    );
}

#[test]
fn uncertain_numbers_are_named_below_the_table() {
    table(
        "7: 0 -x 10 +main 20 +f 30 ?5 40 -f 50 +g 60 +h 70 -main 80 +main 90 +f",
        Table::default(),
        expect![[r#"
        total self calls min  avg  max module function
        ----- ---- ----- --- ---- ---- ------ --------
         70ns 30ns     2   - 35ns 60ns app    main
         20ns 20ns     2   - 10ns 20ns app    f
         20ns 10ns     1   - 20ns 20ns app    g
         10ns 10ns     1   - 10ns 10ns app    h
        6 calls of 4 functions in 1 thread; 5 records are missing; 2 calls left without a recorded return; 2 calls not returned at the end; 1 call entered before the first record
    "#]],
    );
    table(
        "7: 5 ?1",
        Table::default(),
        expect![[r#"
        0 calls of 0 functions in 1 thread; 1 record is missing
    "#]],
    );
}

#[test]
fn each_order_has_a_name() {
    for (name, sort) in SORTS {
        assert_eq!(Sort::parse(name), Some(sort));
        table_has_rows(sort);
    }
    assert_eq!(Sort::parse("x"), None);
}

fn table_has_rows(sort: Sort) {
    let s = script(USUAL);
    let text = text(|o| Table { sort, ..Table::default() }.write(&totals(&s, &Selection::default()), &s.names, o));
    assert_eq!(text.lines().count(), 2 + 4 + 1, "{text}");
}

#[test]
fn stat_has_fixed_units() {
    let s = script(USUAL);
    expect![[r#"
          Total (s) Per Call (ms)      Calls Name
           0.003000      3.000000          1 main
           0.000002      0.002000          1 work
           0.000000      0.000433          3 f
           0.000000      0.000300          2 g
    "#]]
    .assert_eq(&text(|o| stat::write(&totals(&s, &Selection::default()), &s.names, o)));
}

#[test]
fn time_of_unselected_functions_is_that_of_their_caller() {
    let s = script("7: 0 +g 10 +main 20 +f 30 +g 40 +g 50 -g 60 -g 70 -f 100 -main 110 -g");
    let of = |selection: Selection| {
        let totals = totals(&s, &selection);
        let mut all: Vec<_> = totals.iter().map(|(f, t)| (s.names.name(f).unwrap(), t.calls, t.total, t.own)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(of(Selection::default()), [("f", 1, 50, 20), ("g", 3, 110, 50), ("main", 1, 90, 40)]);
    let only = |f: &str| Selection { only: vec![f.to_owned()], ..Selection::default() };
    assert_eq!(of(only("f")), [("f", 1, 50, 20), ("g", 2, 30, 30)]);
    let without = Selection { without: vec!["f".to_owned()], ..Selection::default() };
    assert_eq!(of(without), [("g", 1, 110, 20), ("main", 1, 90, 90)]);
    assert_eq!(of(Selection { depth: 2, ..Selection::default() }), [("g", 1, 110, 20), ("main", 1, 90, 90)]);
    assert_eq!(of(Selection { depth: 2, ..only("main") }), [("f", 1, 50, 50), ("main", 1, 90, 40)]);
}

#[test]
fn two_traces_are_compared_by_names() {
    let before = script("7: 0 +main 10 +f 20 -f 30 +gone 40 -gone 50 +same 60 -same 1000 -main");
    // The numbers of the functions differ.
    let after = script(
        "7: 0 +new 5 -new 6 +main@/opt/app 10 +f@/opt/app 2020 -f@/opt/app 2021 +f@/opt/app 2022 -f@/opt/app 2023 +same 2033 -same 3000 -main@/opt/app",
    );
    let (a, b) = (totals(&before, &Selection::default()), totals(&after, &Selection::default()));
    let diff = Diff {
        before: Side { totals: &a, functions: &before.names },
        after: Side { totals: &b, functions: &after.names },
    };
    expect![[r#"
         total  change   self  change calls change module function
        ------ ------- ------ ------- ----- ------ ------ --------
        2.01us +2.00us 2.01us +2.00us     2     +1 app    f
        2.99us +1.99us  973ns    +3ns     1      0 app    main
           0ns   -10ns    0ns   -10ns     0     -1 app    gone
           5ns    +5ns    5ns    +5ns     1     +1 app    new
    "#]]
    .assert_eq(&text(|o| diff.table(Style { sort: Sort::Total, rows: usize::MAX, width: 100, colour: false }, o)));
    expect![[r#"
         total  change   self  change calls change module function
        ------ ------- ------ ------- ----- ------ ------ --------
        2.01us +2.00us 2.01us +2.00us     2     +1 app    f
           5ns    +5ns    5ns    +5ns     1     +1 app    new
        2 more functions
    "#]]
    .assert_eq(&text(|o| diff.table(Style { sort: Sort::Calls, rows: 2, width: 100, colour: false }, o)));
    let same = Diff { after: diff.before, ..diff };
    assert_eq!(
        text(|o| same.table(Style { sort: Sort::Own, rows: 10, width: 100, colour: false }, o)),
        "No function has changed.\n"
    );
}

#[test]
fn runs_are_compared_with_their_spread() {
    let run =
        |f: u64, g: u64| script(&format!("7: 0 +main 10 +f {} -f {} +g {} -g 90000 -main", 10 + f, 20000, 20000 + g));
    let before: Vec<Script> = [(1000, 5000), (1100, 5500), (1050, 4500)].map(|(f, g)| run(f, g)).into();
    // A function that is new in one run, and one that is slower in all.
    let mut after: Vec<Script> = [(3000, 5100), (3150, 5600)].map(|(f, g)| run(f, g)).into();
    after
        .push(script("7: 0 +main 10 +f 3060 -f 20000 +g 24700 -g 30000 +new@/opt/app 30010 -new@/opt/app 90000 -main"));
    let [old, new] =
        [&before, &after].map(|all| all.iter().map(|s| totals(s, &Selection::default())).collect::<Vec<_>>());
    fn sides<'s>(scripts: &'s [Script], totals: &'s [Totals]) -> Vec<Side<'s>> {
        scripts.iter().zip(totals).map(|(s, totals)| Side { totals, functions: &s.names }).collect()
    }
    let (a, b) = (sides(&before, &old), sides(&after, &new));
    let style = Style { sort: Sort::Total, rows: usize::MAX, width: 100, colour: false };
    let runs = Runs { before: &a, after: &b };
    expect![[r#"
        means of 3 and 3 runs; ~ where a change may be chance (Welch's t-test, 1 %)

                 total  change           self   change calls change module function
        -------------- ------- -------------- -------- ----- ------ ------ --------
         3.07us +-76ns +2.02us  3.07us +-76ns  +2.02us     1      0 app    f
        5.13us +-450ns ~+133ns 5.13us +-450ns  ~+133ns     1      0 app    g
             3ns +-5ns   ~+3ns      3ns +-5ns    ~+3ns   0.3  ~+0.3 app    new
          90.0us +-0ns       0 81.8us +-503ns ~-2.15us     1      0 app    main
    "#]]
    .assert_eq(&text(|o| runs.table(style, o)));
    expect![[r#"
        {"v":1,"type":"change","function":"new","module":"app","calls":{"after":{"deviation":0.5773502691896258,"mean":0.3333333333333333},"before":{"deviation":0.0,"mean":0.0},"chance":true},"total_ns":{"after":{"deviation":5.773502691896257,"mean":3.3333333333333335},"before":{"deviation":0.0,"mean":0.0},"chance":true},"self_ns":{"after":{"deviation":5.773502691896257,"mean":3.3333333333333335},"before":{"deviation":0.0,"mean":0.0},"chance":true}}
        {"v":1,"type":"change","function":"f","module":"app","calls":{"after":{"deviation":0.0,"mean":1.0},"before":{"deviation":0.0,"mean":1.0},"chance":true},"total_ns":{"after":{"deviation":76.37626158259734,"mean":3066.6666666666665},"before":{"deviation":50.0,"mean":1050.0},"chance":false},"self_ns":{"after":{"deviation":76.37626158259734,"mean":3066.6666666666665},"before":{"deviation":50.0,"mean":1050.0},"chance":false}}
    "#]].assert_eq(&text(|o| runs.json(Sort::Calls, 2, o)));
    let same = Runs { before: &a, after: &a };
    assert!(text(|o| same.table(style, o)).ends_with("\n\nNo function has changed.\n"));
    // With one run on one side, what is within the spread of the others is chance.
    let one = Runs { before: &a[..1], after: &b };
    assert!(text(|o| one.table(style, o)).contains("+2.0"), "{}", text(|o| one.table(style, o)));
}

#[test]
fn edges_in_graphviz_s_language() {
    let s = script(USUAL);
    let mut all = Contexts::default();
    contexts(&s).iter().for_each(|(_, c)| all.join(c));
    let edges = Edges::new(&all);
    expect![[r##"
        digraph calls {
          node [shape=box, style=filled, fillcolor="#fff4e6", fontname="sans-serif", fontsize=10];
          edge [fontname="sans-serif", fontsize=9];
          f1 [label="main\napp\n3.00ms (self 3.00ms), 1x"];
          f2 [label="f\napp\n900ns (self 900ns), 3x"];
          f3 [label="g\nlibg.so\n600ns (self 600ns), 2x"];
          f4 [label="work\napp\n2.00us (self 1.50us), 1x"];
          f1 -> f2 [label="1x\n900ns", penwidth=1.0];
          f4 -> f3 [label="1x\n500ns", penwidth=1.0];
          f2 -> f2 [label="2x\n300ns", penwidth=1.0];
          f1 -> f3 [label="1x\n100ns", penwidth=1.0];
        }
    "##]]
    .assert_eq(&text(|o| edges.write(Language::Dot, 100, &s.names, o)));
    expect![[r#"
        %% 2 of 4 edges are not drawn, each of 300ns at most
        flowchart TD
          f1["main<br/>app<br/>3.00ms (self 3.00ms), 1x"]
          f2["f<br/>app<br/>900ns (self 900ns), 3x"]
          f3["g<br/>libg.so<br/>600ns (self 600ns), 2x"]
          f4["work<br/>app<br/>2.00us (self 1.50us), 1x"]
          f1 -->|"1x, 900ns"| f2
          f4 -->|"1x, 500ns"| f3
          note["2 of 4 edges are not drawn, each of 300ns at most"]
    "#]]
    .assert_eq(&text(|o| edges.write(Language::Mermaid, 2, &s.names, o)));
}

#[test]
fn hostile_names_stay_inside_of_their_labels() {
    let s = script("7: 0 +a\"];x\\\u{1b}<script>%%{init}`# 1 +b 2 -b 3 -a\"];x\\\u{1b}<script>%%{init}`#");
    let edges = Edges::new(&contexts(&s)[0].1);
    let dot = text(|o| edges.write(Language::Dot, 100, &s.names, o));
    assert!(dot.contains("label=\"a\\\"];x\\\\\\\\u{1b}<script>%%{init}`#\\napp"), "{dot}");
    let mermaid = text(|o| edges.write(Language::Mermaid, 100, &s.names, o));
    let want = "[\"a#34;]#59;x#92;#92;u{1b}#60;script#62;#37;#37;{init}#96;#35;<br/>app<br/>";
    assert!(mermaid.contains(want), "{mermaid}");
}

#[test]
fn profiles_are_weighed_by_time_or_by_calls() {
    let s = script(USUAL);
    let profile = |weight: Weight| {
        let mut stacks = weight.profile();
        for (tid, contexts) in contexts(&s) {
            profile::add(&mut stacks, &contexts, thread(tid), weight, &s.names);
        }
        stacks
    };
    expect![[r#"
        app-4711/7;main 2999000
        app-4711/7;main;f 600
        app-4711/7;main;f;f 200
        app-4711/7;main;f;f;f 100
        app-4711/7;main;g 100
        app-4711/8;work 1500
        app-4711/8;work;g 500
    "#]]
    .assert_eq(&text(|o| folded::write(&profile(Weight::Own), By::Thread, o)));
    expect![[r#"
        main 1
        main;f 1
        main;f;f 1
        main;f;f;f 1
        main;g 1
        work 1
        work;g 1
    "#]]
    .assert_eq(&text(|o| folded::write(&profile(Weight::Calls), By::Nothing, o)));
    let own = profile(Weight::Own);
    assert_eq!(own.kept(), 3_000_000 + 2000);
    let svg = text(|o| Flame::default().write(&own, o));
    assert!(svg.starts_with("<?xml") && svg.contains("3.00ms in 7 events"), "{}", &svg[..1000.min(svg.len())]);
}

#[test]
fn contexts_that_do_not_fit_are_counted_and_keep_their_time() {
    let s = script("7: 0 +main 10 +a 20 +b 30 +c 40 -c 50 -b 60 -a 70 +d 80 -d 100 -main");
    let mut contexts = Contexts::new(3);
    let mut stack = Stack::new();
    for step in &s.threads()[0].1 {
        stack.step(*step, &mut contexts);
    }
    assert_eq!((contexts.nodes.len(), contexts.unplaced), (3, 3));
    let own: u64 = contexts.nodes.iter().map(|n| n.own).sum();
    assert_eq!((own, contexts.nodes[0].total, contexts.path(2)), (100, 100, vec![1, 2]));
    let edges = Edges::new(&contexts);
    assert!(text(|o| edges.write(Language::Dot, 9, &s.names, o)).contains("3 calls are missing"));
}

#[test]
fn functions_without_names_have_numbers() {
    let s = script("7: 0 +f 10 -f");
    let nameless = Names::default();
    expect![[r#"
        total self calls  min  avg  max module function
        ----- ---- ----- ---- ---- ---- ------ ------------
         10ns 10ns     1 10ns 10ns 10ns -      [function 1]
        1 call of 1 function in 1 thread
    "#]]
    .assert_eq(&text(|o| Table::default().write(&totals(&s, &Selection::default()), &nameless, o)));
}

#[test]
fn deep_recursion_has_few_contexts() {
    let (depth, mut names) = (300_000, Names::default());
    let f = names.id("f");
    let steps = (0..depth).map(|t| Step::entry(t, f)).chain((depth..2 * depth).map(|t| Step::exit(t, f)));
    let (mut stack, mut contexts, mut totals) = (Stack::new(), Contexts::default(), Totals::new());
    for step in steps.clone() {
        stack.step(step, &mut contexts);
    }
    assert_eq!((contexts.nodes.len(), contexts.unplaced), (1 + 4096, depth - 4096));
    let own: u64 = contexts.nodes.iter().map(|n| n.own).sum();
    assert_eq!((own, contexts.nodes[0].total), (2 * depth - 1, 2 * depth - 1));
    totals.thread(steps, 0);
    let t = totals.get(f).expect("f");
    assert_eq!((t.calls, t.total, t.own, t.max, t.min), (depth, 2 * depth - 1, 2 * depth - 1, 2 * depth - 1, 1));
    let mut stacks = Weight::Own.profile();
    profile::add(&mut stacks, &contexts, thread(7), Weight::Own, &names);
    assert_eq!((stacks.kept() + stacks.not_held().weight, stacks.len()), (2 * depth - 1, 3999));
}
