//! Which options are used often, and what the others are about.

/// The options that `--help` of a command shows. The others, and those of commands that are not here, are in `--help-all`, under headings.
const OFTEN: &[(&str, &str)] = &[
    (
        "trace",
        "attach all expr trace-path where failed-only string-limit time syscall-times fd \
         stack-trace summary-only as output duration",
    ),
    ("record", "attach all expr script-file where ustack kstack output max-size flight name pack as duration"),
    ("profile", "attach all frequency expr off-cpu wall wakers focus rows as output duration"),
    ("graph", "attach function no-function depth min-time lib args syscalls summary-sort-by rows as output duration"),
    ("heap", "attach sample top min-age as output duration"),
    (
        "report",
        "as expr where trace-path failed-only pid from to fd summary-only latency by function \
         follow-recording",
    ),
    ("run", "script args cmd attach trace from to format output quiet"),
    ("open", "output expr where span redact pid from to quiet"),
    ("list", "verbose pattern"),
    ("diff", "as function no-function summary-sort-by rows top of symbols"),
];

/// The headings of `--help-all` and of the man pages, with their options.
const HEADINGS: &[(&str, &str)] = &[
    ("What is traced", "attach all follow follow-only no-follow program env user kill-on-exit process collector here"),
    (
        "What is selected",
        "expr trace trace-fds signal status trace-path where param successful-only failed-only function \
         no-function depth min-time lib leave section thread loop budget pid from to frequency off-cpu wall wakers \
         sample max script script-file for cmd config",
    ),
    ("What is recorded of each event", "capture args kstack ustack unwind comm no-duration syscalls no-time cost"),
    ("Recordings", "max-size flight pack name paused force mappings follow-recording no-script clock-offset"),
    (
        "Lines",
        "string-limit time absolute-timestamps relative-timestamps syscall-times fd decode-fds decode-pids \
         comm-names always-show-pid syscall-number instruction-pointer hex strings-in-hex const-print-style \
         no-abbrev abbrev verbose raw read write types arg-names columns sort color",
    ),
    (
        "Stacks and names of functions",
        "stack-trace no-stacks each no-inline hide focus no-stop stop symbols debuginfod demangle module",
    ),
    (
        "Views and tables",
        "as redact summary-only summary summary-wall-clock summary-sort-by summary-columns latency span hist by unit \
         group rows order percent-limit icicle of top min-age json",
    ),
    (
        "Output",
        "format raw-strings dry-run watch failures output output-append-mode output-separately quiet quiet-set stats explain",
    ),
    (
        "How it is traced",
        "unsafe include usdt-file-activation no-warnings duration backend on-full buffer no-seccomp seccomp-bpf",
    ),
    ("Help", "help help-all version"),
];

fn has(ids: &str, id: &str) -> bool {
    ids.split(' ').any(|known| known == id)
}

/// What an option is about.
pub fn heading(id: &str) -> Option<&'static str> {
    HEADINGS.iter().find(|(_, ids)| has(ids, id)).map(|(heading, _)| *heading)
}

/// All headings, in their order.
pub fn headings() -> impl Iterator<Item = &'static str> {
    HEADINGS.iter().map(|(heading, _)| *heading)
}

/// Whether the help of a command shows an option where not all are asked for.
pub fn is_often(command: &str, id: &str) -> bool {
    let listed = OFTEN.iter().find(|(name, _)| *name == command);
    listed.is_none_or(|(_, ids)| has(ids, id))
}

/// How many lines of an option's text the help may have: half of a list is of no use.
pub fn lines(id: &str) -> usize {
    match id {
        "as" => 3,
        "expr" | "of" | "by" | "group" | "summary-sort-by" => 2,
        _ => 1,
    }
}

/// Whether a command has options that only `--help-all` shows.
pub fn has_more(command: &str) -> bool {
    OFTEN.iter().any(|(name, _)| *name == command)
}
