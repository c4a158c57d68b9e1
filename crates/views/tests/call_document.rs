//! The examples of docs/GRAPH.md: each line is what a view shows of one small program.

mod calls;

use calls::{Script, script, thread};
use std::fmt::Write;
use views::calls::brief::{Brief, Screen};
use views::calls::cat::Cat;
use views::calls::contexts::Contexts;
use views::calls::diff::{Diff, Side, Style as DiffStyle};
use views::calls::edges::{Edges, Language};
use views::calls::functions::Table;
use views::calls::json::Json;
use views::calls::profile::{self, Weight};
use views::calls::runs::Runs;
use views::calls::sort::Sort;
use views::calls::stack::Stack;
use views::calls::totals::Totals;
use views::calls::tree::Tree;
use views::calls::tree::style::Style;
use views::calls::{Selection, stat, totals_json};
use views::profile::{By, folded};

/// main reads its configuration and 1000 lines, each of which takes `each` ns, and fails in the last one; a second thread waits.
fn program(each: u64) -> Script {
    let mut main = "4711: 0 +main 20000 +read_config 30000 +open_file 51500 >openat(AT_FDCWD,\"shop.conf\",O_RDONLY)=3 52000 -open_file \
                    60000 +parse_line 61234 -parse_line 90000 -read_config 100000 +serve"
        .to_owned();
    let mut t = 110_000;
    for n in 0..1000 {
        let _ = write!(main, " {t} +handle {} +parse_line {} -parse_line", t + 500, t + 500 + each);
        if n % 100 == 7 {
            let _ = write!(main, " {} +write_log {} -write_log", t + 600 + each, t + 900 + each);
        }
        t += 1500 + each;
        let _ = write!(main, " {t} -handle");
        t += 100;
    }
    let _ = write!(main, " {t} +handle {} +fail {} -serve {} -main", t + 100, t + 400, t + 1000);
    script(&format!("{main}\n4712: 105000 +wait_for_work 400000 ?12 450000 +sync 460000 -sync 900000 -wait_for_work"))
}

fn totals(s: &Script) -> Totals {
    let mut totals = Totals::new();
    s.threads().into_iter().for_each(|(_, steps)| totals.thread(steps, 0));
    totals
}

/// Three runs compared with three others.
fn runs(before: [u64; 3], after: [u64; 3], out: &mut Vec<u8>) {
    let scripts = [before, after].map(|side| side.map(program));
    let sums = scripts.each_ref().map(|side| side.each_ref().map(totals));
    let sides = [0, 1].map(|n| [0, 1, 2].map(|i| Side { totals: &sums[n][i], functions: &scripts[n][i].names }));
    let style = DiffStyle { sort: Sort::Total, rows: 4, width: 120, colour: false };
    Runs { before: &sides[0], after: &sides[1] }.table(style, out);
}

fn shown() -> String {
    let (s, slower) = (program(2000), program(2600));
    let everything = Selection::default;
    let hint = "All calls: --as tree | less. By function: --as functions".to_owned();
    let mut text = s.shown(Tree::new(Style::default(), everything()));
    text += &s.shown(Brief::new(Style::default(), everything(), Screen { rows: 14, hint }));
    text += &s.shown(Cat::new(everything()));
    text += &s.shown(Json::new(everything()));
    let mut out = Vec::new();
    let (before, after) = (totals(&s), totals(&slower));
    Table::default().write(&before, &s.names, &mut out);
    stat::write(&before, &s.names, &mut out);
    let side = |totals, functions| Side { totals, functions };
    Diff { before: side(&before, &s.names), after: side(&after, &slower.names) }
        .table(DiffStyle { sort: Sort::Total, rows: 3, width: 100, colour: false }, &mut out);
    runs([2000, 2010, 1990], [2600, 2590, 2610], &mut out);
    totals_json::write(&before, &s.names, Sort::Total, 1, &mut out);
    let (mut all, mut stacks) = (Contexts::default(), Weight::Own.profile());
    for (tid, steps) in s.threads() {
        let (mut stack, mut contexts) = (Stack::new(), Contexts::default());
        steps.into_iter().for_each(|step| stack.step(step, &mut contexts));
        stack.finish(0, &mut contexts);
        profile::add(&mut stacks, &contexts, thread(tid), Weight::Own, &s.names);
        all.join(&contexts);
    }
    folded::write(&stacks, By::Nothing, &mut out);
    Edges::new(&all).write(Language::Mermaid, 3, &s.names, &mut out);
    text + std::str::from_utf8(&out).expect("UTF-8")
}

#[test]
fn examples_of_the_document_are_real() {
    let shown = shown();
    if let Some(file) = std::env::var_os("TRAPLINE_KEEP") {
        std::fs::write(file, &shown).expect("a file");
    }
    let document = include_str!("../../../docs/GRAPH.md");
    let examples: Vec<&str> = document.split("```text\n").skip(1).flat_map(|b| b.split("```").next()).collect();
    assert!(examples.len() >= 8);
    for line in examples.into_iter().flat_map(str::lines).filter(|l| !l.trim().is_empty() && *l != "…") {
        assert!(shown.lines().any(|l| l == line), "no view shows: {line}");
    }
}
