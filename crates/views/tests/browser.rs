//! Flame graphs in a browser: a headless Chromium opens the file, a script of the test uses it as a reader does, and says what it has
//! found. Nothing may be loaded: all requests go to a proxy that counts them.
//!
//! `cargo xtask browser` runs these tests and keeps the screenshots. Without a browser they are skipped (tier `browser`).

mod build;
mod pages;
mod perfetto_classes;
mod stacks;

use serde_json::Value;
use stacks::{add, later, usual};
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use testkit::Scratch;
use views::profile::flame::Flame;
use views::profile::{By, Frame, Labels, Stacks, Unit};

/// Chromium by the names of its packages, the smallest first.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// The directory for screenshots, else they are removed.
const SCREENSHOTS: &str = "TRAPLINE_SCREENSHOTS";

/// Why the browser does not start: as an ordinary user, it needs user namespaces for its sandbox.
fn cannot_start(program: &str) -> Option<&'static str> {
    static WHY: OnceLock<Option<&'static str>> = OnceLock::new();
    *WHY.get_or_init(|| {
        if testkit::is_root() {
            return None;
        }
        let home = Scratch::new("browser-start");
        let mut command = Command::new("timeout");
        command.args(["60", program, "--headless", "--disable-gpu", "--dump-dom", "about:blank"]);
        command.arg(format!("--user-data-dir={}", home.join("profile").display())).env("HOME", &*home);
        let out = command.output().expect("timeout(1)");
        let said = String::from_utf8_lossy(&out.stderr);
        (!out.status.success() && said.contains("sandbox")).then_some("the browser's sandbox cannot be made here")
    })
}

struct Browser {
    program: &'static str,
    scratch: Scratch,
    proxy: String,
    /// Connections to the proxy.
    requests: Arc<AtomicUsize>,
}

impl Browser {
    #[track_caller]
    fn new() -> Option<Browser> {
        let Some(program) = BROWSERS.into_iter().find(|b| testkit::has(b)) else {
            testkit::skip("browser", "no chromium-headless-shell and no chromium");
            return None;
        };
        if let Some(why) = cannot_start(program) {
            testkit::skip("browser", why);
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = format!("--proxy-server=http://{}", listener.local_addr().expect("its number"));
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                let _ = connection.read(&mut [0; 16]);
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        Some(Browser { program, scratch: Scratch::new("browser"), proxy, requests })
    }

    fn run(&self, size: (u32, u32), file: &Path, arguments: &[&str]) -> String {
        let home = self.scratch.to_str().expect("UTF-8").to_owned();
        // No test waits for ever.
        let mut command = Command::new("timeout");
        command.args(["120", self.program]);
        command.args(["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args([&format!("--window-size={},{}", size.0, size.1), &self.proxy]);
        command.args([&format!("--user-data-dir={home}/profile"), "--force-device-scale-factor=1"]);
        if testkit::is_root() {
            // A sandbox needs another user.
            command.arg("--no-sandbox");
        }
        command.args(arguments).arg(format!("file://{}", file.display()));
        let out = command.env("HOME", &home).stderr(Stdio::piped()).output().expect("a browser that starts");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{}: {said}", out.status);
        String::from_utf8(out.stdout).expect("UTF-8")
    }

    /// Opens a drawing, runs `script` in it, and returns the object `r` to which that adds its findings: `r.errors` are the errors of
    /// all scripts.
    fn ask(&self, svg: &str, script: &str) -> Value {
        self.ask_of(svg, script, "page.svg")
    }

    /// As [`Browser::ask`], of a file with this name.
    fn ask_of(&self, svg: &str, script: &str, name: &str) -> Value {
        const FIRST: &str = "<script>window.problems = []; \
            window.addEventListener('error', e => window.problems.push(e.message || 'resource'), true);</script>";
        let (before, rest) = svg.split_once("<style>").expect("a style");
        let body = rest.strip_suffix("</svg>\n").expect("an end");
        let last = format!(
            "<script><![CDATA[{TOOLS} (() => {{ const r = {{}}; try {{ {script} }} catch (e) {{ problems.push('' + e); }}
             window.addEventListener('load', () => {{
                r.errors = problems; r.loaded = performance.getEntriesByType('resource').map(e => e.name);
                document.documentElement.setAttribute('data-report', encodeURIComponent(JSON.stringify(r)));
             }}); }})(); ]]></script></svg>"
        );
        let file = self.scratch.join(name);
        std::fs::write(&file, [before, FIRST, "<style>", body, &last].concat()).expect("a file");
        let dom = self.run((1200, 800), &file, &["--dump-dom"]);
        let report = dom.split("data-report=\"").nth(1).and_then(|r| r.split('"').next());
        let report = report.unwrap_or_else(|| panic!("no report in {dom:.2000}"));
        serde_json::from_str(&decoded(report)).expect("a report")
    }

    /// Opens a page with everything of a trace, at an address that ends so, runs `script` in it when it is ready, and returns the object
    /// `r` to which that adds its findings.
    fn ask_page(&self, page: &str, hash: &str, script: &str) -> Value {
        let word = page.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
        let first = format!(
            "<head><script nonce=\"{word}\">window.problems = []; window.addEventListener('error', e => problems.push(e.message || 'resource'), true);
             window.addEventListener('unhandledrejection', e => problems.push('' + e.reason));
             document.addEventListener('securitypolicyviolation', e => problems.push(e.violatedDirective));</script>"
        );
        let last = format!(
            "<script nonce=\"{word}\">(async () => {{ const r = {{}}, {{ dataset }} = document.documentElement;
             while (!dataset.ready && !dataset.failed) await new Promise(f => setTimeout(f, 5));
             try {{ {script} }} catch (e) {{ problems.push('' + e + e.stack); }}
             r.errors = problems; r.loaded = performance.getEntriesByType('resource').map(e => e.name);
             dataset.report = encodeURIComponent(JSON.stringify(r)); }})();</script></body>"
        );
        // The policy is in force from where it stands.
        let policy = page.find("<meta http-equiv").and_then(|at| Some(at + page[at..].find('\n')?)).expect("a policy");
        let (before, behind) = page.split_at(policy);
        let page = format!("{before}{}{behind}", &first["<head>".len()..]).replacen("</body>", &last, 1);
        let file = self.scratch.join("page.html");
        std::fs::write(&file, page).expect("a file");
        let file = PathBuf::from(format!("{}{hash}", file.display()));
        let dom = self.run((1200, 800), &file, &["--virtual-time-budget=30000", "--dump-dom"]);
        let report = dom.split("data-report=\"").nth(1).and_then(|r| r.split('"').next());
        let report = report.unwrap_or_else(|| panic!("no report in {dom:.2000}"));
        serde_json::from_str(&decoded(report)).expect("a report")
    }

    /// Takes a picture of a window.
    fn screenshot(&self, name: &str, size: (u32, u32), svg: &str) {
        self.screenshot_of(&format!("{name}.svg"), size, svg);
    }

    fn screenshot_of(&self, name: &str, size: (u32, u32), page: &str) {
        let file = self.scratch.join(name);
        std::fs::write(&file, page).expect("a file");
        let name = name.rsplit_once('.').map_or(name, |(name, _)| name);
        let to = std::env::var_os(SCREENSHOTS).map_or_else(|| self.scratch.to_path_buf(), PathBuf::from);
        let to = to.join(format!("{name}.png"));
        self.run(size, &file, &["--virtual-time-budget=5000", &format!("--screenshot={}", to.display())]);
        let png = std::fs::read(to).expect("a picture");
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
        // Its header begins with the width and the height.
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("4 bytes"));
        assert_eq!((number(16), number(20)), size);
    }
}

/// What the scripts of the tests use.
const TOOLS: &str = "
    const all = () => Array.from(document.querySelectorAll('.f'));
    const name = g => g.querySelector('title').textContent.split('\\n')[0];
    const frame = wanted => all().find(g => name(g) === wanted);
    const wide = g => Math.round(g.querySelector('rect').getBoundingClientRect().width);
    const shown = () => all().filter(g => g.getBoundingClientRect().width > 0).map(name);
    const click = g => {
        const b = g.getBoundingClientRect();
        document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)
            .dispatchEvent(new MouseEvent('click', { bubbles: true }));
    };
    const search = text => {
        const q = document.getElementById('query');
        q.value = text;
        q.dispatchEvent(new Event('input', { bubbles: true }));
        return [document.getElementById('found').textContent, document.querySelectorAll('.m').length];
    };
    const pixels = () => all().map(g => ['x', 'y', 'width'].map(a => g.querySelector('rect').getAttribute(a)).join());
";

/// What encodeURIComponent has encoded.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |h: &[u8]| u8::from_str_radix(std::str::from_utf8(h).unwrap_or_default(), 16).ok();
        match (first, tail) {
            (b'%', [a, b, more @ ..]) => {
                bytes.extend(hex(&[*a, *b]));
                rest = more;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

fn flame(stacks: &Stacks, icicle: bool) -> String {
    let mut out = Vec::new();
    Flame { title: "app --fast".to_owned(), by: By::Comm, icicle }.write(stacks, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn a_search_counts_what_it_finds() {
    let Some(browser) = Browser::new() else { return };
    let r = browser.ask(
        &flame(&usual(), false),
        "r.one = search('^parse$'); r.nested = search('main|parse'); r.case = search('PUSH_back');
         r.none = search('nothing of that name'); r.bad = search('('); r.empty = search('');",
    );
    assert_eq!(r["errors"], Value::from(Vec::<Value>::new()));
    // 400 + 150 of main, and 30 of another caller, of 1000.
    assert_eq!(r["one"], serde_json::json!(["2 frames, 58.00%", 2]));
    // What parse has in main is counted once.
    assert_eq!(r["nested"], serde_json::json!(["3 frames, 90.00%", 3]));
    assert_eq!(r["case"], serde_json::json!(["1 frame, 9.00%", 1]));
    assert_eq!(r["none"], serde_json::json!(["0 frames, 0.00%", 0]));
    assert_eq!(r["bad"], serde_json::json!(["not a regular expression", 0]));
    assert_eq!(r["empty"], serde_json::json!(["", 0]));
}

#[test]
fn a_click_zooms_and_a_reset_shows_all_again() {
    let Some(browser) = Browser::new() else { return };
    let r = browser.ask(
        &flame(&usual(), false),
        "r.before = pixels(); r.narrow = wide(frame('vfs_write')); click(frame('do_syscall_64'));
         r.wide = wide(frame('vfs_write')); r.shown = shown(); r.callers = document.querySelectorAll('.p').length;
         r.label = frame('vfs_write').querySelector('text').textContent; r.zoomed = pixels();
         click(document.getElementById('reset')); r.reset = pixels();
         click(frame('do_syscall_64')); click(frame('all')); r.root = pixels();
         click(frame('do_syscall_64'));
         window.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' })); r.escape = pixels();",
    );
    assert_eq!(r["errors"], Value::from(Vec::<Value>::new()));
    // 12 % of 1180 pixels, and then all of them, but for the gap to the next frame.
    assert_eq!((r["narrow"].as_u64(), r["wide"].as_u64()), (Some(141), Some(1179)));
    let shown = ["all", "app", "_start", "main", "write", "do_syscall_64", "ksys_write", "vfs_write"];
    assert_eq!(r["shown"], serde_json::json!(shown));
    assert_eq!((r["callers"].as_u64(), r["label"].as_str()), (Some(5), Some("vfs_write")));
    assert_ne!(r["zoomed"], r["before"]);
    for way in ["reset", "root", "escape"] {
        assert_eq!(r[way], r["before"], "{way}");
    }
}

#[test]
fn an_icicle_has_its_root_at_the_top_and_a_flame_at_the_bottom() {
    let Some(browser) = Browser::new() else { return };
    let script = "const y = n => frame(n).getBoundingClientRect().y; r.y = [y('all'), y('main'), y('vfs_write')];";
    for icicle in [false, true] {
        let r = browser.ask(&flame(&usual(), icicle), script);
        let y: Vec<f64> = r["y"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
        assert_eq!((y.is_sorted(), y.iter().rev().is_sorted()), (icicle, !icicle), "{y:?}");
    }
}

#[test]
fn nothing_is_loaded_and_no_name_becomes_code() {
    let Some(browser) = Browser::new() else { return };
    let mut s = Stacks::new(Unit::Bytes);
    let names = [
        "</text></script></svg><script>window.owned = 1</script>",
        "]]><image href=\"http://example.com/1.png\"/>",
        "<img src=x onerror=\"window.owned = 1\">",
        "\u{0}\u{1b}]0;title\u{7}\u{202e}\u{ffff}&amp;'\"",
        "a\nb\r\n--><!--",
    ];
    let long = "<http://example.com>".repeat(500);
    let names = || names.into_iter().chain([&*long]);
    let frames: Vec<_> =
        names().map(|n| s.frame(&Frame { function: n, module: n, file: n, ..Frame::default() })).collect();
    for (i, comm) in names().enumerate() {
        let (stack, labels) = (s.stack(&frames[i..]), s.labels(Labels { pid: 1, tid: 1, comm }));
        s.add(stack, labels, 1 << i, 0);
    }
    let script = "r.owned = window.owned; r.scripts = document.querySelectorAll('script').length;
        r.images = document.querySelectorAll('img, image').length; r.frames = all().length;
        all().forEach(g => g.dispatchEvent(new MouseEvent('mouseover', { bubbles: true })));
        r.detail = document.getElementById('detail').textContent.length > 0; r.found = search('script')[1];";
    let drawing = flame(&s, false);
    let r = browser.ask(&drawing, script);
    assert_eq!((&r["errors"], &r["loaded"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert_eq!((r["owned"].as_u64(), r["scripts"].as_u64(), r["images"].as_u64()), (None, Some(3), Some(0)));
    // The whole; six groups; 6, 5, … frames in them.
    assert_eq!((r["frames"].as_u64(), r["detail"].as_bool()), (Some(1 + 6 + 21), Some(true)));
    // One stack has the name, and one group.
    assert_eq!(r["found"].as_u64(), Some(2));
    assert_eq!(browser.requests.load(Ordering::Relaxed), 0);

    // The test notices what it looks for.
    let bad =
        drawing.replacen("<style>", "<image href=\"http://example.com/1.png\" width=\"9\" height=\"9\"/><style>", 1);
    let r = browser.ask(&bad.replacen("'use strict';", "'use strict'; nothing();", 1), "");
    assert!(r["errors"].to_string().contains("nothing is not defined"), "{r}");
    assert!(browser.requests.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_tall_flame_shows_its_root_and_its_heading_first() {
    let Some(browser) = Browser::new() else { return };
    let script = "addEventListener('load', () => { const y = n => Math.round(n.getBoundingClientRect().y);
        const last = document.elementFromPoint(600, innerHeight - 20).parentNode;
        r.at = [scrollY > 1000, y(document.getElementById('head')), name(last)]; });";
    let r = browser.ask(&flame(&deep(), false), script);
    assert_eq!((&r["errors"], &r["at"]), (&serde_json::json!([]), &serde_json::json!([true, 0, "all"])));
}

/// Who writes a drawing to FILE.html sees the same.
#[test]
fn a_drawing_is_a_page_too() {
    let Some(browser) = Browser::new() else { return };
    let script = "const at = g => Math.round(g.querySelector('rect').getBoundingClientRect().width);
        r.widths = all().map(at).filter(w => w > 0).length; r.search = document.getElementById('query') !== null;
        r.first = name(all()[0]);";
    let [page, drawing] = ["page.html", "page.svg"].map(|file| browser.ask_of(&flame(&usual(), false), script, file));
    assert_eq!((&page["errors"], &page["search"]), (&serde_json::json!([]), &serde_json::json!(true)), "{page}");
    assert_eq!((&page["widths"], &page["first"]), (&drawing["widths"], &drawing["first"]));
}

// Slow: a browser starts for each picture.
#[test]
fn pictures() {
    let Some(browser) = Browser::new() else { return };
    browser.screenshot("usual", (1200, 400), &flame(&usual(), false));
    browser.screenshot("icicle", (800, 400), &flame(&usual(), true));
    let mut out = Vec::new();
    Flame::default().write_difference(&usual(), &later(), &mut out);
    browser.screenshot("difference", (1200, 400), &String::from_utf8(out).expect("UTF-8"));
    let used = "document.getElementById('query').value = 'alloc|insert';
        document.getElementById('query').dispatchEvent(new Event('input'));
        const main = Array.from(document.querySelectorAll('.f')).find(g => g.textContent.startsWith('main'));
        for (const e of ['click', 'mouseover']) main.firstChild.dispatchEvent(new MouseEvent(e, { bubbles: true }));";
    let usual = flame(&usual(), false).replace("</svg>", &format!("<script>{used}</script></svg>"));
    browser.screenshot("zoomed", (1200, 400), &usual);
    let mut few = Stacks::new(Unit::Nanoseconds);
    add(&mut few, "1500000 sh main wait");
    browser.screenshot("few", (1200, 300), &flame(&few, false));
    // All of it: a picture of a page that is scrolled is empty.
    browser.screenshot("deep", (1200, 3600), &flame(&deep(), false));
    browser.screenshot("deep-icicle", (1200, 900), &flame(&deep(), true));
}

/// Stacks of 200 frames that part ever more often.
fn deep() -> Stacks {
    let mut s = Stacks::new(Unit::Samples { period: 10_101_010 });
    let mut random = testkit::Random::new(7);
    let mut text = String::new();
    for n in 0..300 {
        text += &format!("{} deep", 1 + random.below(40));
        let part = 20 + n % 150;
        for depth in 0..200 {
            let variant = if depth > part { n } else { depth / 7 % 3 };
            text += &format!(
                " {}level_{depth}_{variant}@/usr/lib/lib{}.so",
                if depth > 190 { "k:" } else { "" },
                depth / 20
            );
        }
        text.push('\n');
    }
    add(&mut s, &text);
    s
}
