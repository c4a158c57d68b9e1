//! Views of calls with a line for each: the tree, the table `cat`, the short answer.

mod calls;

use calls::{script, thread};
use expect_test::{Expect, expect};
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{CallView, Selection, Step};

#[track_caller]
fn tree(text: &str, want: Expect) {
    want.assert_eq(&script(text).shown(Tree::new(Style::default(), Selection::default())));
}

#[track_caller]
fn selected(text: &str, selection: Selection, want: Expect) {
    want.assert_eq(&script(text).shown(Tree::new(Style::default(), selection)));
}

#[test]
fn calls_are_nested_and_leaves_take_one_line() {
    tree(
        "7: 0 +main 1000 +f 2234 -f 3000 +g 3500 +h 4000 -h 5000 -g 2000000 -main",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           1.234 us [    7] |   f();
                    [    7] |   g() {
           0.500 us [    7] |     h();
           2.000 us [    7] |   } /* g */
           2.000 ms [    7] | } /* main */
    "#]],
    );
}

#[test]
fn threads_take_turns_in_the_order_of_entries() {
    // Thread 8's call begins and ends while f is open; f's line comes first nevertheless.
    tree(
        "7: 0 +main 100 +f 900 -f 1000 -main\n8: 200 +work 300 +g 400 -g 500 -work 600 +late 700 -late",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.800 us [    7] |   f();
                    [    8] | work() {
           0.100 us [    8] |   g();
           0.300 us [    8] | } /* work */
           0.100 us [    8] | late();
           1.000 us [    7] | } /* main */
    "#]],
    );
}

#[test]
fn a_long_jump_or_an_exception_leaves_calls() {
    tree(
        "7: 0 +main 10 +try 20 +a 30 +b 40 -try 50 +c 60 -c 70 -main",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
                    [    7] |   try() {
                    [    7] |     a() {
           0.010 us [    7] |       b(); /* left without a recorded return */
           0.020 us [    7] |     } /* a: left without a recorded return */
           0.030 us [    7] |   } /* try */
           0.010 us [    7] |   c();
           0.070 us [    7] | } /* main */
        # 2 calls left without a recorded return
    "#]],
    );
}

#[test]
fn a_tail_call_is_inside_of_its_caller() {
    tree(
        "7: 0 +f 10 +g 20 -g 20 -f",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | f() {
           0.010 us [    7] |   g();
           0.020 us [    7] | } /* f */
    "#]],
    );
}

#[test]
fn recursion_is_nested() {
    tree(
        "7: 0 +f 10 +f 20 +f 30 -f 40 -f 50 -f",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | f() {
                    [    7] |   f() {
           0.010 us [    7] |     f();
           0.030 us [    7] |   } /* f */
           0.050 us [    7] | } /* f */
    "#]],
    );
}

#[test]
fn tracing_that_begins_and_ends_inside_of_calls() {
    tree(
        "7: 10 -inner 20 +f 30 -f 40 -outer 50 +g 60 +h",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | } /* inner */
           0.010 us [    7] | f();
                    [    7] | } /* outer */
                    [    7] | g() {
           0.000 us [    7] |   h(); /* has not returned */
           0.010 us [    7] | } /* g: has not returned */
        # 2 calls not returned at the end; 2 calls entered before the first record
    "#]],
    );
}

#[test]
fn missing_records_are_shown_where_they_are_missing() {
    tree(
        "7: 0 +main 10 +f 20 ?1000 30 -g 40 +h 50 -h 60 -main",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
                    [    7] |   f() {
                    [    7] |     /* 1000 records are missing */
                    [    7] |     } /* g */
           0.010 us [    7] |     h();
           0.050 us [    7] |   } /* f: left without a recorded return */
           0.060 us [    7] | } /* main */
        # 1000 records are missing; 1 call left without a recorded return; 1 call entered before the first record
    "#]],
    );
}

#[test]
fn a_thread_that_ends_returns_from_nothing() {
    tree(
        "7: 0 +main 10 +exit 20 ! 30 +main 40 -main",
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.010 us [    7] |   exit(); /* has not returned */
           0.020 us [    7] | } /* main: has not returned */
           0.010 us [    7] | main();
        # 2 calls not returned at the end
    "#]],
    );
}

#[test]
fn system_calls_are_leaves() {
    tree(
        r#"7: 0 +main 50 >write(1,"x",1)=1 60 -main 100 >exit(0)=?"#,
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.010 us [    7] |   write(1,"x",1)=1
           0.060 us [    7] | } /* main */
           0.010 us [    7] | exit(0)=?
    "#]],
    );
}

const NESTED: &str =
    "7: 0 +main 100 +f 200 +g 250 +h 300 -h 400 -g 500 -f 600 +g 610 -g 700 +x 710 >read()=0 720 -x 1000 -main";

#[test]
fn depth_functions_and_durations_are_selected() {
    selected(
        NESTED,
        Selection { depth: 2, ..Selection::default() },
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.400 us [    7] |   f();
           0.010 us [    7] |   g();
           0.020 us [    7] |   x();
           1.000 us [    7] | } /* main */
    "#]],
    );
    selected(
        NESTED,
        Selection { only: vec!["g".into()], ..Selection::default() },
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | g() {
           0.050 us [    7] |   h();
           0.200 us [    7] | } /* g */
           0.010 us [    7] | g();
    "#]],
    );
    selected(
        NESTED,
        Selection { without: vec!["f".into(), "x".into()], ..Selection::default() },
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
           0.010 us [    7] |   g();
           1.000 us [    7] | } /* main */
    "#]],
    );
    selected(
        NESTED,
        Selection { shortest: 100, ..Selection::default() },
        expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
                    [    7] |   f() {
           0.200 us [    7] |     g();
           0.400 us [    7] |   } /* f */
           1.000 us [    7] | } /* main */
    "#]],
    );
}

#[test]
fn columns_and_colours() {
    let s = script(
        "7: 0 +main@/opt/a\u{1b}[0mb 10 +f@/lib/libverylongname.so.6 20 -f@/lib/libverylongname.so.6 2000000 -main@/opt/a\u{1b}[0mb",
    );
    let style = Style { time: false, module: true, ..Style::default() };
    expect![[r#"
        # TID              MODULE FUNCTION
        [    7]      a\u{1b}[0mb | main() {
        [    7] libvery..me.so.6 |   f();
        [    7]      a\u{1b}[0mb | } /* main */
    "#]]
    .assert_eq(&s.shown(Tree::new(style, Selection::default())));
    let style = Style { colour: true, ..Style::default() };
    let text = s.shown(Tree::new(style, Selection::default()));
    assert!(text.ends_with("\u{1b}[33m  2.000 ms\u{1b}[0m [    7] | } \u{1b}[90m/* main */\u{1b}[0m\n"), "{text:?}");
}

#[test]
fn hostile_names_control_no_terminal() {
    let s = script("7: 0 +a\u{1b}]0;x\u{7}\u{202e}\u{9b}<script>\" 10 -a\u{1b}]0;x\u{7}\u{202e}\u{9b}<script>\"");
    let screen = Screen { rows: 10, hint: String::new() };
    let views: [Box<dyn CallView>; 3] = [
        Box::new(Tree::new(Style::default(), Selection::default())),
        Box::new(Cat::new(Selection::default())),
        Box::new(Brief::new(Style::default(), Selection::default(), screen)),
    ];
    for mut view in views {
        let text = String::from_utf8(s.bytes(&mut *view)).unwrap();
        assert!(text.contains("\\u{1b}]0;x\\u{7}\\u{202e}\\u{9b}<script>\""), "{text:?}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    }
}

#[test]
fn a_live_tree_shows_calls_that_last() {
    let s = script("7: 0 +main 10 +sleep");
    let mut tree = Tree::new(Style::default(), Selection::default());
    let mut out = Vec::new();
    for step in &s.threads()[0].1 {
        tree.step(thread(7), *step, &s.names, &mut out);
    }
    assert!(!String::from_utf8_lossy(&out).contains("sleep"));
    tree.flush(20, &s.names, &mut out);
    tree.flush(30, &s.names, &mut out);
    tree.step(thread(7), Step::exit(40, 2), &s.names, &mut out);
    expect![[r#"
        # DURATION     TID     FUNCTION
                    [    7] | main() {
                    [    7] |   sleep() {
           0.030 us [    7] |   } /* sleep */
    "#]]
    .assert_eq(std::str::from_utf8(&out).unwrap());
}

#[test]
fn lines_do_not_wait_for_ever() {
    let mut text = "7: 0 +blocks\n8:".to_owned();
    for n in 0..10_000 {
        text += &format!(" {} +f {} -f", 10 * n + 1, 10 * n + 5);
    }
    let s = script(&text);
    let mut tree = Tree::new(Style::default(), Selection::default());
    let mut out = Vec::new();
    for event in &s.events {
        if let calls::Event::Step(tid, step) = event {
            tree.step(thread(*tid), *step, &s.names, &mut out);
        }
    }
    let lines = out.iter().filter(|b| **b == b'\n').count();
    assert!((8_000..10_001).contains(&lines), "{lines}");
    tree.end(&s.names, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!((text.lines().count(), text.matches("blocks();").count()), (1 + 10_000 + 1 + 1, 1));
}

#[test]
fn a_million_frames() {
    let depth = 1_000_000;
    let mut names = calls::Names::default();
    let f = names.id("f");
    let mut tree = Tree::new(Style::default(), Selection::default());
    let (mut bytes, mut last) = (0, String::new());
    let steps = (0..depth).map(|t| Step::entry(t, f)).chain((depth..2 * depth).map(|t| Step::exit(t, f)));
    for step in steps {
        let mut out = Vec::new();
        tree.step(thread(7), step, &names, &mut out);
        bytes += out.len();
        if !out.is_empty() {
            last = String::from_utf8(out).unwrap();
        }
    }
    assert!(last.ends_with("  1.999 ms [    7] | } /* f */\n"), "{last:?}");
    assert!(bytes < 400 * depth as usize, "{bytes}");
    assert_eq!(tree.counts().too_deep, 0);
}

#[test]
fn cat_has_thread_time_on_return_and_calls() {
    let text = "7: 0 +main 1000 +f 2234 -f 2500 ?3 3000 +g 3500 +h 3600 >read()=0 5000 -g 6000 -z 2000000 -main\n8: 10 +work 20 !";
    expect![[r#"
        # THREAD           |  TIME (us) | FUNCTION
        app-7              |            | main() {
        app-8              |            | work() {
        app-8              |      0.010 | } /* has not returned */
        app-7              |            |   f() {
        app-7              |      1.234 |   }
        app-7              |            |   /* missing records: 3 */
        app-7              |            |   g() {
        app-7              |            |     h() {
        app-7              |      0.010 |       read()=0
        app-7              |      1.500 |     } /* left without a recorded return */
        app-7              |      2.000 |   }
        app-7              |            |   } /* z() */
        app-7              |   2000.000 | }
        # 3 records are missing; 1 call left without a recorded return; 1 call not returned at the end; 1 call entered before the first record
    "#]]
    .assert_eq(&script(text).shown(Cat::new(Selection::default())));
}

fn brief(text: &str, rows: usize) -> String {
    let screen = Screen { rows, hint: "All of them: --all".to_owned() };
    script(text).shown(Brief::new(Style::default(), Selection::default(), screen))
}

#[test]
fn a_function_that_calls_itself_is_one_line() {
    let mut text = "7: 0 +main 10 +f".to_owned();
    (0..50).for_each(|n| text += &format!(" {} +f {} +g {} -g", 20 + n * 10, 22 + n * 10, 24 + n * 10));
    (0..51).for_each(|n| text += &format!(" {} -f", 1000 + n));
    text += " 1100 +f 1200 -f 2000 -main";
    expect![[r#"
        # DURATION     TID     FUNCTION
           2.000 us [    7] | main() {
           1.140 us [    7] |   f() {  × 52, recursive
           0.100 us [    7] |     g();  × 50
        # 3 lines for 1 outermost call; 103 calls in all. All of them: --all
    "#]]
    .assert_eq(&brief(&text, 10));
}

#[test]
fn what_fits_is_shown_as_it_is() {
    assert_eq!(
        brief("7: 0 +main 10 +f 20 -f 30 -main", 10),
        script("7: 0 +main 10 +f 20 -f 30 -main").shown(Tree::new(Style::default(), Selection::default()))
    );
}

#[test]
fn the_slowest_call_comes_first_and_repeated_calls_are_joined() {
    let mut text = "8: 5 +other 6 +f 9 -f 10 -other\n7: 0 +main".to_owned();
    for n in 0..1000 {
        let t = 100 + n * 100;
        text += &format!(
            " {t} +parse {} +line {} -line {} +rare{} {} -rare{} {} -parse",
            t + 10,
            t + 60,
            t + 70,
            n % 5,
            t + 71,
            n % 5,
            t + 80
        );
    }
    text += " 200000 +end 250000 -end 300000 -main";
    expect![[r#"
        # DURATION     TID     FUNCTION
         300.000 us [    7] | main() {
          80.000 us [    7] |   parse() {  × 1000
          50.000 us [    7] |     line();  × 1000
                    [    7] |     … 5 more functions, 1.00us
          50.000 us [    7] |   end();
           0.005 us [    8] | other() {
           0.003 us [    8] |   f();
        # 7 lines for the 2 slowest of 2 outermost calls; 3004 calls in all. All of them: --all
    "#]]
    .assert_eq(&brief(&text, 10));
}

#[test]
fn threads_that_make_one_call_at_once_are_not_mixed() {
    let thread = |tid: u32, shift: u64| {
        let times = (0..50).map(|n| format!(" {} +f {} -f", 10 + 20 * n + shift, 20 + 20 * n + shift));
        format!("{tid}: {shift} +main{} {} -main\n", times.collect::<String>(), 2000 + shift)
    };
    let text = brief(&(thread(7, 0) + &thread(8, 5)), 20);
    expect![[r#"
        # DURATION     TID     FUNCTION
           2.000 us [    7] | main() {
           0.500 us [    7] |   f();  × 50
           2.000 us [    8] | main() {
           0.500 us [    8] |   f();  × 50
        # 4 lines for the 2 slowest of 2 outermost calls; 102 calls in all. All of them: --all
    "#]]
    .assert_eq(&text);
}
