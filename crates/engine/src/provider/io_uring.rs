//! `io_uring:NAME`: operations of io_uring, from their submission to their completion.
//!
//! An event is a span of the thread that has submitted the operation, wherever the kernel completes it. All operations of a pattern share their
//! programs, because a ring's tracepoints are those of all operations ([`super::operations`]).

use super::operations::{Kernel, Operations, record};
use super::{ArgInfo, ArgLocation, ArgType, AttachPoint, Encoding, Probe, Provider, Ready, Refusal};
use events::io_uring::{self, FIELDS, OTHER};
use events::types::{Int, Type};
use lang::pattern::glob;

/// The provider.
pub struct IoUring;

const FORM: &str = "io_uring:NAME: operations of io_uring, from their submission to their completion";

impl Provider for IoUring {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn describe(&self) -> &'static str {
        FORM
    }

    fn list(&self, pattern: &str, details: bool) -> Result<Vec<Probe>, Refusal> {
        let all = named();
        let matching = all.iter().filter(|(_, name)| glob(pattern.as_bytes(), name.as_bytes()));
        let found: Vec<Probe> = matching.map(|(_, name)| probe(name, details)).collect();
        match found.is_empty() {
            true => Err(Refusal::nothing("io_uring", pattern, all.iter().map(|(_, name)| name.as_str()))),
            false => Ok(found),
        }
    }

    fn ready(&self, pattern: &str) -> Result<Vec<Ready>, Refusal> {
        let kernel = Kernel::read()?;
        let one = |probe: Probe| {
            let point = point(std::slice::from_ref(&probe), &kernel);
            Ready::new(probe, point)
        };
        Ok(self.list(pattern, true)?.into_iter().map(one).collect())
    }

    fn together(&self, pattern: &str) -> Result<Option<(Vec<Probe>, Ready)>, Refusal> {
        let probes = self.list(pattern, true)?;
        let point = point(&probes, &Kernel::read()?);
        let all = Probe { name: format!("{}{pattern}", io_uring::PREFIX), ..probe(OTHER, true) };
        Ok(Some((probes, Ready::new(all, point))))
    }
}

/// Opcode and name of each operation, sorted by name.
fn named() -> Vec<(Option<u8>, String)> {
    let mut all: Vec<(Option<u8>, String)> = io_uring::operations().map(|(code, name)| (Some(code), name)).collect();
    all.push((None, OTHER.into()));
    order::by(&mut all, |a, b| a.1.cmp(&b.1));
    all
}

fn probe(name: &str, details: bool) -> Probe {
    let note = match (details, name) {
        (false, _) => "",
        (true, OTHER) => "operations without a name here, and completions without a submission",
        (true, _) if io_uring::has_path(name) => "its address is that of a path, which is read",
        (true, _) => "",
    };
    let fields = io_uring::names(name).into_iter().zip(FIELDS);
    let args = fields.filter(|_| details).filter_map(|(own, generic)| argument(name, own, generic)).collect();
    Probe { name: format!("{}{name}", io_uring::PREFIX), args, note: note.into(), ..Probe::default() }
}

fn point(probes: &[Probe], kernel: &Kernel) -> AttachPoint {
    let all = named();
    let short = |p: &Probe| p.name.strip_prefix(io_uring::PREFIX).unwrap_or_default().to_string();
    let opcode = |p: &Probe| all.iter().find(|(_, name)| *name == short(p)).and_then(|(code, _)| *code);
    AttachPoint::Operations(Operations {
        opcodes: probes.iter().map(opcode).collect(),
        paths: probes.iter().map(|p| io_uring::has_path(&short(p))).collect(),
        kernel: kernel.clone(),
    })
}

/// A field of the record, with its type in C, by the name that it has for the operation and the one that it has for all.
fn argument(operation: &str, name: &str, generic: &str) -> Option<ArgInfo> {
    let (at, c, size) = match generic {
        "fd" => (record::DESCRIPTOR, "int", 8),
        "addr" => (record::ADDR, "const char *", 8),
        "len" => (record::LEN, "u32", 4),
        "offset" => (record::OFFSET, "s64", 8),
        "op_flags" => (record::OP_FLAGS, "u32", 4),
        "file_index" => (record::FILE_INDEX, "u32", 4),
        "registered" => (record::REGISTERED, "int", 8),
        "sqe_flags" => (record::SQE_FLAGS, "u8", 1),
        "cqe_flags" => (record::CQE_FLAGS, "u32", 4),
        "user_data" => (record::USER_DATA, "u64", 8),
        "ring" => (record::RING, "struct io_ring_ctx *", 8),
        _ => return None,
    };
    let (signed, encoding) = match io_uring::field(operation, name)? {
        Type::Int(Int { signed, fmt, .. }) => (signed, Encoding::Shown(fmt)),
        _ => (false, Encoding::Text),
    };
    let ty = ArgType { c: c.into(), size, signed, encoding };
    Some(ArgInfo { name: name.into(), ty, location: ArgLocation::Record(at) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::btf::KernelBtf;

    #[test]
    fn operations_are_listed_with_their_fields() {
        let names = |p: &str| IoUring.list(p, false).map(|l| l.into_iter().map(|p| p.name).collect::<Vec<_>>());
        assert_eq!(names("openat*").unwrap(), ["io_uring:openat", "io_uring:openat2"]);
        assert!(names("*").unwrap().is_sorted() && names("*").unwrap().contains(&"io_uring:other".to_string()));
        assert!(matches!(names("raed"), Err(Refusal::Nothing(near)) if near.contains(&"io_uring:read".to_string())));
        let read = &IoUring.list("read", true).unwrap()[0];
        assert_eq!(read.args.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), io_uring::names("read"));
        assert_eq!(read.args[1].to_string(), "const char *buf");
    }

    #[test]
    fn a_pattern_is_one_attach_point() {
        if KernelBtf::kernel().is_err() {
            return testkit::skip("kernel:btf", "no types of the kernel");
        }
        let (probes, ready) = IoUring.together("*at").unwrap().unwrap();
        let AttachPoint::Operations(point) = ready.point else { panic!("another point") };
        let nth = probes.iter().position(|p| p.name == "io_uring:openat").unwrap();
        assert_eq!((point.opcodes[nth], point.paths[nth], point.opcodes.len()), (Some(18), true, probes.len()));
    }
}
