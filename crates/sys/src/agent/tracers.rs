//! Requests for tracers (`abi::tracer`) to an agent that has connected for them.

use super::socket::{Request, sealed};
use abi::VERSION;
use abi::message::{Hello, MAGIC, Reason};
use abi::tracer::{self, Counted, Known, Message, Operation, Printed, Reply, Site, State, Target, Violation};
use std::io;
use std::os::fd::AsFd;

/// The most bytes of an answer.
const MOST: u64 = 256 << 20;

/// An agent that waits for requests. It waits until this is dropped.
pub struct Talk {
    request: Request,
    /// What it said first.
    pub hello: Hello,
}

/// What a process has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Its tracers.
    pub tracers: Vec<Known>,
    /// Its sites; the first has the number 1.
    pub sites: Vec<Site>,
}

/// What a tracer has so far.
#[derive(Clone, Debug, Default)]
pub struct Print {
    /// Times, and how much was lost.
    pub head: Printed,
    /// Counts of functions.
    pub counted: Vec<Counted>,
    /// Violations.
    pub violations: Vec<Violation>,
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the agent speaks another version")
}

impl Talk {
    /// Begins with what the agent says first.
    ///
    /// # Errors
    /// It is no agent of this version that waits for requests.
    pub fn begin(mut request: Request) -> io::Result<Talk> {
        let mut hello = [0; Hello::SIZE];
        request.read(&mut hello)?;
        let hello = Hello::parse(&hello);
        let right = hello.magic == MAGIC && hello.version == VERSION && hello.reason == Reason::Tracers as u32;
        if right && hello.maps_len == 0 { Ok(Talk { request, hello }) } else { Err(wrong()) }
    }

    fn ask(&mut self, request: &tracer::Request, targets: &[Target], plan: &[u8]) -> io::Result<(Reply, Vec<u8>)> {
        let mut bytes = request.bytes().to_vec();
        let file = if plan.is_empty() { None } else { Some(sealed(c"trapline-plan", plan)?) };
        targets.iter().for_each(|t| bytes.extend(t.bytes()));
        let (head, rest) = bytes.split_at(tracer::Request::SIZE);
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        self.request.answer(head, &files)?;
        self.request.answer(rest, &[])?;
        let mut reply = [0; Reply::SIZE];
        self.request.read(&mut reply)?;
        let reply = Reply::parse(&reply);
        if reply.magic != MAGIC || reply.len > MOST {
            return Err(wrong());
        }
        let mut payload = vec![0; reply.len as usize];
        self.request.read(&mut payload)?;
        Ok((reply, payload))
    }

    /// Which tracers and sites there are.
    ///
    /// # Errors
    /// The agent does not answer, or something else.
    pub fn status(&mut self) -> io::Result<Status> {
        let (_, payload) = self.ask(&request(Operation::Status, [0; tracer::NAME]), &[], &[])?;
        let state = State::parse(&payload);
        let (tracers, sites) = (state.tracers as usize * Known::SIZE, state.sites as usize * Site::SIZE);
        let rest = payload.get(State::SIZE..).filter(|r| r.len() == tracers + sites).ok_or_else(wrong)?;
        let (tracers, sites) = rest.split_at(tracers);
        Ok(Status { tracers: all(tracers), sites: all(sites) })
    }

    /// Enables a tracer.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn enable(
        &mut self,
        name: [u8; tracer::NAME],
        options: [u64; 8],
        targets: &[Target],
        plan: &[u8],
    ) -> io::Result<Reply> {
        let mut request = request(Operation::Enable, name);
        (request.options, request.count, request.plan) = (options, targets.len() as u32, plan.len() as u64);
        Ok(self.ask(&request, targets, plan)?.0)
    }

    /// Has the recording on sites that have other tracers.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn join(&mut self, targets: &[Target], plan: &[u8]) -> io::Result<Reply> {
        let mut request = request(Operation::Join, [0; tracer::NAME]);
        (request.count, request.plan) = (targets.len() as u32, plan.len() as u64);
        Ok(self.ask(&request, targets, plan)?.0)
    }

    /// Disables a tracer.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn disable(&mut self, name: [u8; tracer::NAME]) -> io::Result<Reply> {
        Ok(self.ask(&request(Operation::Disable, name), &[], &[])?.0)
    }

    /// What a tracer has so far, or a reply that says why not.
    ///
    /// # Errors
    /// The agent does not answer, or something else.
    pub fn print(&mut self, name: [u8; tracer::NAME]) -> io::Result<(Reply, Print)> {
        let (reply, payload) = self.ask(&request(Operation::Print, name), &[], &[])?;
        if reply.error != 0 {
            return Ok((reply, Print::default()));
        }
        let head = Printed::parse(&payload);
        let counted = head.counted as usize * Counted::SIZE;
        let violations = head.violations as usize * Violation::SIZE;
        let rest = payload.get(Printed::SIZE..).filter(|r| r.len() == counted + violations).ok_or_else(wrong)?;
        let (counted, violations) = rest.split_at(counted);
        Ok((reply, Print { head, counted: all(counted), violations: all(violations) }))
    }
}

fn all<T: Message>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::parse).collect()
}

fn request(operation: Operation, name: [u8; tracer::NAME]) -> tracer::Request {
    let (magic, version, operation) = (MAGIC, VERSION, operation as u32);
    tracer::Request { magic, version, operation, count: 0, name, options: [0; 8], plan: 0 }
}
