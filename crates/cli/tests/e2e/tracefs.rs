//! Where tracefs is not mounted, as in most containers.

use crate::lab::{self, Outcome, User};

/// Runs a script as root where neither tracefs nor debugfs is mounted; `$trapline` is trapline. None where that cannot be had, which
/// is said.
#[track_caller]
fn without_tracefs(script: &str) -> Option<Outcome> {
    if !lab::kernel_backend_is_possible() {
        return None;
    }
    if !lab::run(&mut lab::as_user(User::Me, &["unshare", "-m", "true"])).status.success() {
        lab::skip("package:util-linux", "no unshare, or no mount namespaces");
        return None;
    }
    let script = format!(
        "for d in /sys/kernel/debug/tracing /sys/kernel/tracing /sys/kernel/debug; do \
         while umount -l $d 2>/dev/null; do :; done; done; ! [ -e /sys/kernel/tracing/events ] || exit 99; {script}"
    );
    let mut command = lab::as_user(User::Me, &["unshare", "-m", "sh", "-c", &script]);
    let out = lab::run(command.env("trapline", lab::dir().join("trapline")).current_dir(lab::scratch()));
    assert_ne!(out.code(), 99, "tracefs is still there");
    Some(out)
}

#[test]
fn selected_calls_have_tracepoints_of_their_own() {
    let script = "\"$trapline\" trace --backend kernel --explain -o t -e openat cat /etc/hostname >/dev/null; cat t";
    let Some(out) = without_tracefs(script) else { return };
    assert!(out.stderr.contains("attach: each call through its own tracepoints"), "{}", out.stderr);
    assert!(out.stderr.contains("not mounted: opened by itself (fsopen)"), "{}", out.stderr);
    assert!(out.out().contains("openat(AT_FDCWD, \"/etc/hostname\""), "{} {}", out.out(), out.stderr);
}

#[test]
fn tracepoints_are_listed_and_recorded() {
    let script = "\"$trapline\" list -v 'tracepoint:sched:sched_swi*' && \
        \"$trapline\" record -q -o r -e tracepoint:sched:sched_switch sleep 0.05 && \"$trapline\" report r";
    let Some(out) = without_tracefs(script) else { return };
    assert_eq!(out.code(), 0, "{}", out.stderr);
    assert!(out.out().starts_with("tracepoint:sched:sched_switch(char prev_comm"), "{}", out.out());
    assert!(out.out().contains(" tracepoint:sched:sched_switch(prev_comm=\"sleep\""), "{}", out.out());
}

#[test]
fn doctor_says_how_it_was_reached() {
    let Some(out) = without_tracefs("\"$trapline\" doctor") else { return };
    let line = out.out().lines().find(|l| l.contains("tracefs")).map(str::to_string).unwrap_or_default();
    assert!(line.starts_with("ok  tracefs") && line.contains("opened by itself (fsopen)"), "{line}");
}

#[test]
fn nothing_of_it_is_seen_by_anybody() {
    let look = "sh -c 'cat /proc/self/mountinfo; ls -l /proc/self/fd | wc -l'";
    let script = format!(
        "{look} > alone; \"$trapline\" trace --backend kernel -q -o t -e openat {look} > traced; cmp alone traced"
    );
    let Some(out) = without_tracefs(&script) else { return };
    assert_eq!((out.code(), out.out().as_str()), (0, ""), "{}", out.stderr);
}

#[test]
fn without_the_right_to_open_it_all_calls_are_looked_at() {
    if !lab::has("setpriv") {
        return lab::skip("unprivileged", "no setpriv to give a capability up");
    }
    let script = "exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin -- sh -c '\"$trapline\" doctor | grep tracefs; \
        exec \"$trapline\" trace --backend kernel --explain -e openat -o /dev/null sh -c \"exit 3\"'";
    let Some(out) = without_tracefs(script) else { return };
    assert!(out.out().starts_with("no  tracefs"), "{}", out.out());
    assert_eq!(out.code(), 3, "{}", out.stderr);
    let why =
        "attach: all calls pass typed tracepoints, because those of single calls need tracefs: tracefs is not mounted";
    assert!(out.stderr.contains(why), "{}", out.stderr);
}
