//! The commands that `cargo xtask compare-strace --corpus` compares, and the table of the outcome in bench/RESULTS.md.

use super::report::Comparison;
use super::{Job, Lab, Options, Tracer, complaints};
use crate::lab::{self, User};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One command of the corpus. Every run happens in the same directory, so that names, inodes and sizes agree.
struct Case {
    name: &'static str,
    /// Shell commands that prepare the directory, once.
    setup: &'static str,
    /// Shell commands before each run: they remove what the run before left.
    reset: &'static str,
    /// `@NAME` is the compiled tests/programs/NAME.c, `@python` the system's Python.
    argv: &'static [&'static str],
}

const TREE: &str = "mkdir -p tree/a/b tree/c && for i in 1 2 3 4 5 6 7 8; do echo text $i > tree/a/$i.txt; \
                    echo data $i > tree/a/b/$i.dat; ln -s ../a/$i.txt tree/c/$i; done";
/// With files older than the index, `git status` has no reason to read or to write them again.
const REPOSITORY: &str = "git init -q repo && cd repo && mkdir dir && for i in 1 2 3 4 5; do echo $i > $i.txt; \
                          echo $i > dir/$i.txt; touch -d 2020-01-01 $i.txt dir/$i.txt; done && git add . && \
                          git commit -q -m first && echo more >> 1.txt && git commit -q -a -m second && echo open > new.txt && \
                          touch -d 2020-01-02 1.txt new.txt && git status > /dev/null";
const SERVER: &str = r#"cat > serve.py <<'END'
import http.client, http.server, os, signal
signal.alarm(20)
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
child = os.fork()
if child == 0:
    for path in ("/", "/serve.py", "/missing"):
        client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        client.request("GET", path)
        client.getresponse().read()
        client.close()
    os._exit(0)
for _ in range(3):
    server.handle_request()
os.waitpid(child, 0)
END"#;

const CASES: &[Case] = &[
    Case { name: "`git status`", setup: REPOSITORY, reset: "", argv: &["git", "-C", "repo", "status"] },
    Case { name: "`git log -p`", setup: REPOSITORY, reset: "", argv: &["git", "-C", "repo", "log", "-p"] },
    Case {
        name: "`git clone` (local)",
        setup: REPOSITORY,
        reset: "rm -rf copy",
        argv: &["git", "clone", "-q", "--no-hardlinks", "repo", "copy"],
    },
    Case {
        name: "`python3 -c 'import json'`",
        setup: "",
        reset: "",
        argv: &["@python", "-c", "import json, os; print(json.dumps(sorted(os.listdir('/'))))"],
    },
    Case { name: "python3 `http.server` and a client", setup: SERVER, reset: "", argv: &["@python", "serve.py"] },
    Case {
        name: "`gcc -c`",
        setup: "printf '#include <stdio.h>\\nint main(void) { return puts(\"x\"); }\\n' > a.c",
        reset: "rm -f a.o",
        argv: &["gcc", "-O1", "-c", "a.c"],
    },
    Case { name: "`tar -cf`", setup: TREE, reset: "rm -f a.tar", argv: &["tar", "-cf", "a.tar", "tree"] },
    Case { name: "`find`", setup: TREE, reset: "", argv: &["find", "tree", "-name", "*.txt", "-size", "-2"] },
    Case {
        name: "`sqlite3`",
        setup: "",
        reset: "rm -f a.db*",
        argv: &[
            "sqlite3",
            "a.db",
            "create table t(a, b); insert into t values(1, 'x'), (2, 'y'); create index i on t(b); select * from t order by b;",
        ],
    },
    Case {
        name: "`perl`",
        setup: TREE,
        reset: "",
        argv: &["perl", "-MPOSIX", "-e", "for (glob 'tree/a/*') { open F, $_ or die; print while <F> } print getcwd"],
    },
    Case {
        name: "a `bash` pipeline",
        setup: "",
        reset: "",
        argv: &[
            "bash",
            "-c",
            "seq 5000 | grep 7 | sort -r | wc -l; for i in 1 2 3; do echo $i; done > list; cat < list",
        ],
    },
    Case {
        name: "`dd`",
        setup: "",
        reset: "rm -f out",
        argv: &["dd", "if=/dev/zero", "of=out", "bs=4096", "count=2000"],
    },
    Case { name: "threads.c, 8 threads", setup: "", reset: "", argv: &["@threads", "200"] },
    Case { name: "`sleep 0.3`", setup: "", reset: "", argv: &["sleep", "0.3"] },
    Case { name: "`ls -l`", setup: TREE, reset: "", argv: &["ls", "-lR", "tree", "/etc/alternatives"] },
    Case {
        name: "`sort --parallel=2`",
        // Few different lines: which thread writes a piece of a long output is chance.
        setup: "seq 200000 | awk '{ print ($1 * 7919) % 97 }' > numbers",
        reset: "rm -f sorted",
        argv: &["sort", "--parallel=2", "-n", "-u", "-o", "sorted", "numbers"],
    },
    Case { name: "families.c", setup: "", reset: "", argv: &["@families"] },
    Case { name: "families_net.c", setup: "", reset: "", argv: &["@families_net"] },
    Case { name: "signals.c", setup: "", reset: "", argv: &["@signals"] },
    Case { name: "names.c", setup: "", reset: "", argv: &["@names"] },
    Case { name: "fds.c", setup: "", reset: "", argv: &["@fds"] },
    Case { name: "bad_pointers.c", setup: "", reset: "", argv: &["@bad_pointers"] },
];

/// What a row of the table says; the second comparison is missing with `--self`, the third without `--backend kernel`.
struct Row {
    noise: Comparison,
    trapline: Option<Comparison>,
    /// With trapline's ptrace backend.
    ptrace: Option<Comparison>,
}

/// Compares all commands and writes the table.
pub(super) fn run(lab: &Lab, options: &Options) -> Result<()> {
    let word = options.command.first().map_or("", String::as_str);
    let (mut table, mut failed) = (table_head(options.kernel()), 0);
    for (index, case) in CASES.iter().enumerate().filter(|(_, case)| case.name.contains(word)) {
        let line = match row(lab, case, index, options.show) {
            Ok(row) => table_line(case.name, &row),
            Err(error) => {
                failed += 1;
                eprintln!("{}: {error:#}", case.name);
                format!("| {} | failed | | |{}\n", case.name, if options.kernel() { " |" } else { "" })
            }
        };
        table.push_str(&line);
    }
    println!("\n{table}");
    if !options.against_itself && word.is_empty() {
        let name = if options.kernel() { "compare-strace kernel" } else { "compare-strace" };
        lab::write_section(name, &section(options, &table))?;
    }
    if failed > 0 {
        bail!("{failed} commands could not be compared");
    }
    Ok(())
}

fn row(lab: &Lab, case: &Case, index: usize, show: usize) -> Result<Row> {
    let directory = lab.scratch.path().join(format!("case{index}"));
    fs::create_dir(&directory)?;
    lab.user.own(&directory)?;
    let job = Job { argv: argv(case, lab.scratch.path())?, environment: Some(environment(&directory)), directory };
    shell(lab, &job, case.setup)?;
    let record = |tracer| {
        shell(lab, &job, case.reset)?;
        lab.record(tracer, &job)
    };
    // The first run fills caches, and with them decides what later runs find.
    record(Tracer::Strace)?;
    let same = [record(Tracer::Strace)?, record(Tracer::Strace)?];
    let noise = lab.compare(&same);
    if lab.trapline.is_empty() {
        print!("\n## {}\n{}", case.name, noise.text(show));
        return Ok(Row { noise, trapline: None, ptrace: None });
    }
    let [strace, _] = same;
    let both = [strace, record(Tracer::Trapline)?];
    let trapline = lab.compare(&both);
    print!("\n## {}\n{}", case.name, trapline.text(show));
    complaints(&both).iter().for_each(|line| println!("{line}"));
    let [_, kernel] = both;
    let ptrace = if lab.ptrace.is_empty() {
        None
    } else {
        let both = [record(Tracer::Ptrace)?, kernel];
        let ptrace = lab.compare(&both);
        print!("\nthe backends:\n{}", ptrace.text(show));
        complaints(&both).iter().for_each(|line| println!("{line}"));
        Some(ptrace)
    };
    Ok(Row { noise, trapline: Some(trapline), ptrace })
}

/// Runs shell commands in the directory of a case, as its user.
fn shell(lab: &Lab, job: &Job, script: &str) -> Result<()> {
    if script.is_empty() {
        return Ok(());
    }
    let mut command = lab.user.command(&["sh", "-c", script]);
    command.current_dir(&job.directory).env_clear().envs(job.environment.iter().flatten());
    lab::run(&mut command)
}

fn argv(case: &Case, scratch: &Path) -> Result<Vec<String>> {
    let word = |word: &&str| match word.strip_prefix('@') {
        Some("python") => Ok(python()),
        Some(program) => {
            let built = lab::build_program(program, scratch).with_context(|| format!("cannot build {program}"))?;
            Ok(built.to_string_lossy().into_owned())
        }
        None => Ok(word.to_string()),
    };
    case.argv.iter().map(word).collect()
}

/// The system's Python is the same for every user; one in a home directory is not.
fn python() -> String {
    let system = "/usr/bin/python3";
    if PathBuf::from(system).exists() { system } else { "python3" }.to_string()
}

/// The environment of all runs: without hash seeds and the current date.
fn environment(home: &Path) -> BTreeMap<String, String> {
    let home = home.to_string_lossy().into_owned();
    let date = "2024-01-01T00:00:00Z".to_string();
    let mut environment =
        BTreeMap::from([("HOME".to_string(), home), ("GIT_COMMITTER_DATE".to_string(), date.clone())]);
    environment.insert("GIT_AUTHOR_DATE".to_string(), date);
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
        ("LC_ALL", "C"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PERL_HASH_SEED", "0"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.org"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ("GIT_PAGER", "cat"),
    ];
    environment.extend(fixed.map(|(name, value)| (name.to_string(), value.to_string())));
    environment
}

fn table_head(kernel: bool) -> String {
    let (more, line) = if kernel { (" Identical to the ptrace backend |", "---:|") } else { ("", "") };
    format!("| Command | Calls | Identical to strace | strace against strace |{more}\n|---|---:|---:|---:|{line}\n")
}

fn table_line(name: &str, row: &Row) -> String {
    let trapline = row.trapline.as_ref().map_or("-".to_string(), |it| format!("{:.2} %", it.calls.percent()));
    let ptrace = row.ptrace.as_ref().map_or(String::new(), |it| format!(" {:.2} % |", it.calls.percent()));
    format!("| {name} | {} | {trapline} | {:.2} % |{ptrace}\n", row.noise.left_calls, row.noise.calls.percent())
}

fn section(options: &Options, table: &str) -> String {
    let user = if matches!(options.user, User::Nobody) { "nobody" } else { "the user who ran it" };
    let backend = options.backend.as_deref().unwrap_or("chosen by trapline");
    let machine = lab::said("uname", &["-srm"]);
    let heading = if options.kernel() { ", kernel backend" } else { "" };
    format!(
        "## compare-strace{heading}\n\nCalls with the same name, arguments and result, of all calls that at least one of the two shows, after \
         removal of what differs between two runs of strace (addresses, pids, times, ...). `cargo xtask compare-strace \
         --corpus`, as {user}, backend {backend}, {}, {machine}, {}, commit {}.\n\n{table}",
        lab::said("sh", &["-c", "strace -V | head -n 1"]),
        lab::said("date", &["-u", "+%F"]),
        lab::said("git", &["rev-parse", "--short", "HEAD"]),
    )
}
