//! A page of `--as html` in a headless Chromium, measured by the page's own clock.
//!
//! A script at the page's end zooms in and out, and reports by going to an address of ours. Before the answer, the renderer's memory is read:
//! until then it is there.

use super::memory::{family, high_water};
use crate::lab;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Chromium by the names of its packages, as in `crates/views/tests/browser.rs`.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];
/// No page takes longer.
const LONGEST: Duration = Duration::from_secs(120);
/// 40 steps nearer and 40 back, 20 ms apart, when the tables below the picture are filled.
const SCRIPT: &str = "
    const wait = ms => new Promise(f => setTimeout(f, ms)), steps = [];
    await wait(1000);
    for (const by of [0.7, 1 / 0.7]) {
      for (let n = 0; n < 40; n++) {
        zoom(by, trace.end * 0.37);
        await new Promise(f => requestAnimationFrame(() => setTimeout(f, 20)));
        steps.push(drawn.ms);
      }
    }
    r.steps = steps.map(ms => Math.round(ms * 100) / 100);
    r.items = trace.items;
    r.loaded = performance.getEntriesByType('resource').length;";

/// What was measured of a page.
pub struct Seen {
    /// From navigation to the picture, ms.
    pub ready: f64,
    /// Drawing of each zoom step, ms.
    pub steps: Vec<f64>,
    /// The most memory of the renderer, program included, MB.
    pub memory: f64,
}

/// The version of the browser that is here.
pub fn version() -> Option<String> {
    BROWSERS.iter().map(|program| lab::said(program, &["--version"])).find(|said| said != "unknown")
}

/// Opens a page; `scratch` is for the page with the script and for the browser's profile.
pub fn open(page: &Path, scratch: &Path) -> Result<Seen> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let file = scratch.join("measured.html");
    fs::write(&file, with_script(&fs::read_to_string(page)?, listener.local_addr()?.port())?)?;
    let profile = scratch.join("profile");
    let mut browser = start(&file, &profile)?;
    let seen = answer(&listener, &mut browser);
    // The command may be a script, and the browser has many processes.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", browser.id())]).status();
    let _ = browser.wait();
    let _ = fs::remove_dir_all(&profile);
    seen
}

/// The page, with the script behind all others; it may run by the word of the page's policy.
fn with_script(page: &str, port: u16) -> Result<String> {
    let word =
        page.split_once("'nonce-").and_then(|(_, rest)| rest.split_once('\'')).context("a page without a policy")?;
    let (body, end) = page.rsplit_once("</body>").context("a page without an end")?;
    let script = format!(
        "<script nonce=\"{}\">(async () => {{
           const r = {{}}, {{ dataset }} = document.documentElement;
           while (!dataset.ready && !dataset.failed) await new Promise(f => setTimeout(f, 5));
           r.ready = +dataset.ready;
           try {{ {SCRIPT} }} catch (e) {{ r.error = '' + e; }}
           location.href = 'http://127.0.0.1:{port}/' + JSON.stringify(r).replaceAll('\"', \"'\").replaceAll(' ', '+');
         }})();</script></body>",
        word.0
    );
    Ok([body, &script, end].concat())
}

fn start(file: &Path, profile: &Path) -> Result<Child> {
    let is_root = lab::said("id", &["-u"]) == "0";
    let mut why = None;
    for program in BROWSERS {
        let mut command = Command::new(program);
        command.args([
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--window-size=1400,900",
        ]);
        command.args([
            "--disable-background-networking",
            "--disable-component-update",
            "--force-device-scale-factor=1",
        ]);
        // Without a port for a debugger it would end when the page is there.
        command.args(["--remote-debugging-port=0", &format!("--user-data-dir={}", profile.display())]);
        // A sandbox needs another user.
        command.args(is_root.then_some("--no-sandbox")).arg(format!("file://{}", file.display()));
        match command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => return Ok(child),
            Err(e) => why = Some(e),
        }
    }
    Err(why.context("no name of a browser")?).context("no chromium-headless-shell and no chromium")
}

/// Waits for the report, and reads the memory.
fn answer(listener: &TcpListener, browser: &mut Child) -> Result<Seen> {
    listener.set_nonblocking(true)?;
    let begun = Instant::now();
    let mut connection = loop {
        match listener.accept() {
            Ok((connection, _)) => break connection,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e).context("accept"),
        }
        if let Some(status) = browser.try_wait()? {
            bail!("the browser has ended: {status}");
        }
        ensure!(begun.elapsed() < LONGEST, "the page has not reported in {} s", LONGEST.as_secs());
        sleep(Duration::from_millis(10));
    };
    let report = request(&connection)?;
    let memory = family(browser.id()).into_iter().filter(|pid| is_renderer(*pid)).filter_map(high_water).max();
    connection.write_all(b"HTTP/1.0 204 No Content\r\n\r\n")?;
    ensure!(report["error"].is_null(), "the page has failed: {}", report["error"]);
    ensure!(report["loaded"] == 0, "the page has loaded {} files", report["loaded"]);
    let number = |name: &str| report[name].as_f64().with_context(|| format!("no {name} in {report}"));
    let memory = memory.context("no renderer")? as f64 * 1024.0 / 1e6;
    let steps: Vec<f64> = report["steps"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    ensure!(!steps.is_empty(), "no steps in {report}");
    Ok(Seen { ready: number("ready")?, steps, memory })
}

/// The object of the first line of a request: `GET /{'ready':1} HTTP/1.1`.
fn request(connection: &TcpStream) -> Result<Value> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut line = String::new();
    BufReader::new(connection).read_line(&mut line)?;
    parse(&line).with_context(|| format!("no report: {line}"))
}

fn parse(line: &str) -> Option<Value> {
    let path = line.split(' ').nth(1)?.strip_prefix('/')?;
    let text = [("%7B", "{"), ("%7D", "}"), ("%22", "\""), ("'", "\""), ("%27", "\"")];
    let text = text.iter().fold(path.to_owned(), |text, (from, to)| text.replace(from, to));
    serde_json::from_str(&text).ok()
}

fn is_renderer(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains("--type=renderer"))
}

#[cfg(test)]
mod tests {
    use super::{parse, with_script};

    #[test]
    fn a_report_is_read_as_browsers_write_addresses() {
        for line in [
            "GET /{'ready':12.5,'error':'a+b'} HTTP/1.1\r\n",
            "GET /%7B%27ready%27:12.5,%22error%22:%22a+b%22%7D HTTP/1.1\r\n",
        ] {
            let report = parse(line).expect("a report");
            assert_eq!((report["ready"].as_f64(), report["error"].as_str()), (Some(12.5), Some("a+b")), "{line}");
        }
        assert!(parse("GET /favicon.ico HTTP/1.1\r\n").is_none());
    }

    #[test]
    fn the_script_stands_at_the_end_with_the_word_of_the_policy() {
        let page = "<meta content=\"script-src 'nonce-12ab'\"><body>x</body>\n</html>";
        let page = with_script(page, 80).expect("a page");
        assert!(
            page.contains("<body>x<script nonce=\"12ab\">") && page.ends_with("</script></body>\n</html>"),
            "{page}"
        );
        assert!(with_script("<body></body>", 80).is_err());
    }
}
