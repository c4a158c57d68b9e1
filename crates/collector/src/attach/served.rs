//! The agent of a stopped process is called, and served what it asks over a socket.

use super::library::Injected;
use super::suitable::Stacks;
use super::{clear, failed, has_vfork, inject, invoke, io_failed, is_free, leave, look, patiently, target, threads};
use crate::planner::{Planner, apart};
use crate::ticks::ticks_per_ms;
use abi::message::{FREE, HOOKED, Hello, Installed, Order, TRACED, Verdict, Welcome};
use engine::backend::code::Files;
use engine::error::Result;
use engine::request::functions::Functions;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sys::agent::{Listener, Request, Talk};
use sys::maps;
use sys::remote::Threads;

/// The state of a process whose functions a recording traces (`Invocation::session`).
const RECORDED: u32 = 1;

/// How long threads may take to return from the calls that the last tracer has seen. Then the next command does what is left.
const RETURNS: Duration = Duration::from_millis(500);

/// Stops the process, and has a job done with its agent.
pub(super) fn with<T: Send>(
    pid: i32,
    splits: &[Range<u64>],
    hooks: bool,
    job: impl FnOnce(&mut Talk) -> Result<T> + Send,
) -> Result<T> {
    let maps = target::check(pid)?;
    let nothing = Functions { wanted: vec![String::from("\n")], ..Functions::default() };
    let mut planner = Planner::new(nothing, ticks_per_ms());
    let mut all = if hooks { planner.prepare(pid, &maps) } else { Vec::new() };
    all.extend_from_slice(splits);
    let all = apart(all);
    let mut job = Some(job);
    let mut run = |injected: &Injected, mut stacks: Stacks| -> Result<Option<T>> {
        let mut threads = Threads::stop(pid).map_err(|e| io_failed(pid, "its threads do not stop", &e))?;
        if has_vfork(&threads) {
            return Ok(None);
        }
        let seen = look(&mut threads, injected, &mut stacks)?;
        clear(&mut threads, &all, &stacks)?;
        if hooks && seen.flags & HOOKED == 0 {
            serve(pid, &mut threads, injected, Order::Attach, |request| follow(pid, request, &mut planner))?;
        }
        let answer = serve(pid, &mut threads, injected, Order::Tracers, |request| {
            let mut talk = Talk::begin(request).map_err(|e| io_failed(pid, "the agent", &e))?;
            let job = job.take().ok_or_else(|| failed(pid, "the agent asks twice", "restart the program"))?;
            let answer = job(&mut talk)?;
            let status = talk.status().map_err(|e| io_failed(pid, "the agent", &e))?;
            Ok((answer, status.tracers.iter().any(|t| t.place > 0)))
        });
        let none = answer.as_ref().map_or(true, |(_, enabled)| !enabled);
        // With the last tracer libc's functions get their own bytes too, once no exception may pass through stubs any more.
        let (since, mut pause) = (Instant::now(), Duration::from_millis(1));
        let mut hooked = none;
        while hooked {
            let seen = look(&mut threads, injected, &mut stacks)?;
            if seen.session == RECORDED || seen.flags & HOOKED == 0 || seen.flags & TRACED != 0 {
                break;
            }
            if is_free(&mut threads, injected, &seen, &stacks) {
                invoke(&mut threads, injected, Order::Detach, FREE, "")?;
                threads::forget(&mut threads, &seen, true);
                break;
            }
            if since.elapsed() > RETURNS {
                break;
            }
            drop(threads);
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
            match Threads::stop(pid) {
                Ok(again) => threads = again,
                // It has ended.
                Err(_) => return answer.map(|(answer, _)| Some(answer)),
            }
            hooked = !threads.all().is_empty();
        }
        leave(&mut threads, injected);
        answer.map(|(answer, _)| Some(answer))
    };
    let ready = || {
        let mut files = Files::default();
        let (injected, _) = inject::ready(pid, &mut files)?;
        let done = run(&injected, Stacks::of(pid, &mut files));
        inject::give_up(pid, &injected);
        done
    };
    patiently(pid, ready)
}

/// Calls the agent, which connects to a socket, and answers it there.
pub(super) fn serve<T: Send>(
    pid: i32,
    threads: &mut Threads,
    injected: &Injected,
    order: Order,
    answer: impl FnOnce(Request) -> Result<T> + Send,
) -> Result<T> {
    let listener = Listener::near(pid).map_err(|e| target::far(pid, &e))?;
    let name = listener.name().to_string();
    let stop = AtomicBool::new(false);
    let wait = || {
        while !stop.load(Ordering::Acquire) {
            listener.wait(Duration::from_millis(20));
            match listener.accept() {
                Ok(Some(request)) if request.peer.pid == pid => return Some(answer(request)),
                Ok(_) => {}
                Err(e) => return Some(Err(io_failed(pid, "socket", &e))),
            }
        }
        None
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(wait);
        let called = invoke(threads, injected, order, 0, &name);
        stop.store(true, Ordering::Release);
        let answered = server.join().ok().flatten();
        match (called, answered) {
            (_, Some(Err(e))) | (Err(e), _) => Err(e),
            (Ok(_), Some(Ok(answer))) => Ok(answer),
            (Ok(_), None) => Err(failed(pid, "the agent in the process does not connect", "try again")),
        }
    })
}

/// Answers an agent that asks what to patch: hooks only.
fn follow(pid: i32, mut request: Request, planner: &mut Planner) -> Result<()> {
    let mut answer = || -> io::Result<u32> {
        let mut hello = [0; Hello::SIZE];
        request.read(&mut hello)?;
        let hello = Hello::parse(&hello);
        if hello.version != abi::VERSION || hello.maps_len > 16 << 20 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = vec![0; hello.maps_len as usize];
        request.read(&mut text)?;
        let plan = planner.answer(pid, &hello, &maps::in_text(&text), &[]).plan;
        let file = sys::agent::sealed(c"trapline-plan", &plan)?;
        let welcome = Welcome {
            magic: abi::message::MAGIC,
            version: abi::VERSION,
            verdict: Verdict::Follow as u32,
            descriptors: 1,
            shared: 0,
            plan: plan.len() as u64,
            tables: 0,
            keep: 0,
        };
        request.answer(&welcome.bytes(), &[file.as_fd()])?;
        let mut installed = [0; Installed::SIZE];
        request.read(&mut installed)?;
        Ok(Installed::parse(&installed).error)
    };
    match answer() {
        Ok(0) => Ok(()),
        Ok(errno) => {
            let e = io::Error::from_raw_os_error(errno as i32);
            Err(target::at_limit(pid, &e).unwrap_or_else(|| io_failed(pid, "the agent", &e)))
        }
        Err(e) => Err(io_failed(pid, "the agent", &e)),
    }
}
