//! What the helpers do: arguments from registers, the effect on the machine, R0.
//!
//! Not here: maps, rings and memory themselves.
//!
//! Invariant: failures that the kernel reports come back as NULL or -errno in R0; arguments that its verifier would refuse are
//! faults. Semantics of `kernel/bpf/helpers.c`, `kernel/bpf/ringbuf.c` and `kernel/trace/bpf_trace.c`, 6.18.

use super::Cause;
use super::maps::*;
use super::memory::Memory;
use super::run::Run;
use crate::helper::Helper;

/// `BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP`
const WAKEUP_FLAGS: u64 = 3;
/// `BPF_LOCAL_STORAGE_GET_F_CREATE`
const CREATE: u64 = 1;
/// `BPF_F_USER_STACK`
const USER_STACK: u64 = 1 << 8;
/// `BPF_F_SKIP_FIELD_MASK`
const SKIP: u64 = 0xff;
/// `BPF_MAX_LOOPS`
const MAX_LOOPS: u64 = 8 << 20;

type Answer = Result<u64, Cause>;

fn errno(e: i64) -> u64 {
    -e as u64
}

/// Carries a helper out; None is a helper without result.
pub(super) fn call(run: &mut Run<'_>, id: i32) -> Result<Option<u64>, Cause> {
    use Helper::*;
    let helper = Helper::from_id(id).ok_or(Cause::Helper(id))?;
    let answer = match helper {
        MapLookup | MapUpdate | MapDelete => table(run, helper)?,
        TaskStorageGet => storage_get(run)?,
        TaskStorageDelete => storage_delete(run)?,
        ProbeRead | ProbeReadUser | ProbeReadKernel | CopyFromUser | CopyFromUserTask => probe_read(run, helper)?,
        ProbeReadStr | ProbeReadUserStr | ProbeReadKernelStr => probe_string(run, helper)?,
        KtimeGetNs | KtimeGetBootNs => clock(run),
        GetSmpProcessorId => run.machine.cpu.into(),
        GetCurrentPidTgid => run.machine.pid_tgid,
        GetCurrentUidGid => run.machine.uid_gid,
        GetCurrentTask | GetCurrentTaskBtf => run.machine.task,
        TaskPtRegs => run.machine.user_registers,
        GetAttachCookie => run.machine.cookie,
        GetCurrentComm => comm(run)?,
        GetNsCurrentPidTgid => ns_pid(run)?,
        GetStack => stack(run)?,
        GetStackid => stack_id(run)?,
        SeqWrite => seq_write(run)?,
        RingbufOutput => ring_output(run)?,
        RingbufReserve => ring_reserve(run)?,
        RingbufQuery => ring_query(run)?,
        RingbufSubmit | RingbufDiscard => {
            run.machine.release(run.get(1)?, helper == RingbufDiscard)?;
            return Ok(None);
        }
        Loop => repeat(run)?,
        _ => return Err(Cause::Helper(id)),
    };
    Ok(Some(answer))
}

fn size(run: &Run, reg: u8) -> Result<usize, Cause> {
    usize::try_from(run.get(reg)? as u32 as i32).map_err(|_| Cause::Argument("negative size"))
}
fn bytes(run: &Run, address: u8, len: usize) -> Result<Vec<u8>, Cause> {
    run.machine.memory.read(run.get(address)?, len).map(<[u8]>::to_vec)
}
/// Where an output of `len` bytes goes; all of it must be writable.
fn out(run: &mut Run, bytes: &[u8]) -> Result<(), Cause> {
    let to = run.get(1)?;
    run.machine.memory.write(to, bytes)
}

fn clock(run: &mut Run) -> u64 {
    let now = run.machine.time;
    run.machine.time = now.wrapping_add(run.machine.tick);
    now
}

fn table(run: &mut Run, helper: Helper) -> Answer {
    let kinds: &[Kind] = match helper {
        Helper::MapLookup => &[Kind::Array, Kind::Hash, Kind::Stacks, Kind::Maps],
        _ => &[Kind::Array, Kind::Hash, Kind::Stacks],
    };
    let (fd, map) = run.machine.map_of(run.get(1)?, kinds)?;
    let (key_size, value_size) = (map.key_size, map.value_size);
    let key = bytes(run, 2, key_size)?;
    Ok(match helper {
        Helper::MapLookup => run.machine.lookup(fd, &key).unwrap_or(0),
        Helper::MapDelete => run.machine.delete(fd, &key) as u64,
        _ => {
            let value = bytes(run, 3, value_size)?;
            run.machine.update(fd, &key, &value, run.get(4)?) as u64
        }
    })
}

fn storage_get(run: &mut Run) -> Answer {
    let (fd, map) = run.machine.map_of(run.get(1)?, &[Kind::TaskStorage])?;
    let (len, task, flags) = (map.value_size, run.get(2)?, run.get(4)?);
    let initial = if run.get(3)? == 0 { vec![0; len] } else { bytes(run, 3, len)? };
    if task == 0 || flags & !CREATE != 0 {
        return Ok(0);
    }
    let key = task.to_le_bytes();
    Ok(match run.machine.lookup(fd, &key) {
        Some(value) => value,
        None if flags & CREATE != 0 => run.machine.insert(fd, &key, &initial),
        None => 0,
    })
}

fn storage_delete(run: &mut Run) -> Answer {
    let (fd, _) = run.machine.map_of(run.get(1)?, &[Kind::TaskStorage])?;
    let key = run.get(2)?.to_le_bytes();
    Ok(run.machine.delete(fd, &key) as u64)
}

/// Whether a helper reads the user's half; the old helpers decide by the address.
fn reads_user(helper: Helper, address: u64) -> bool {
    use Helper::*;
    match helper {
        ProbeReadUser | ProbeReadUserStr | CopyFromUser | CopyFromUserTask => true,
        ProbeReadKernel | ProbeReadKernelStr => false,
        _ => Memory::is_user(address),
    }
}

fn probe_read(run: &mut Run, helper: Helper) -> Answer {
    let (len, from) = (size(run, 2)?, run.get(3)?);
    if helper == Helper::CopyFromUserTask && run.get(5)? != 0 {
        return Ok(errno(EINVAL));
    }
    let user = reads_user(helper, from);
    // Zeros first: they show that all of the destination may be written, and are what a failure leaves.
    wipe(run, len)?;
    match probe(run, user, from, len) {
        Some(read) => out(run, &read).map(|()| 0),
        None => Ok(errno(EFAULT)),
    }
}

fn probe(run: &Run, user: bool, from: u64, len: usize) -> Option<Vec<u8>> {
    (0..len as u64).map(|at| run.machine.memory.probe(user, from.wrapping_add(at))).collect()
}

/// Writes zeros, without making room for more than there is.
fn wipe(run: &mut Run, len: usize) -> Result<(), Cause> {
    let address = run.get(1)?;
    if run.machine.memory.peek(address, len).is_none() {
        return Err(Cause::Memory { address, len: len as u64, write: true });
    }
    out(run, &vec![0; len])
}

fn probe_string(run: &mut Run, helper: Helper) -> Answer {
    let (len, from) = (size(run, 2)?, run.get(3)?);
    let user = reads_user(helper, from);
    let to = run.get(1)?;
    let before = run.machine.memory.peek(to, len).map(<[u8]>::to_vec);
    let before = before.ok_or(Cause::Memory { address: to, len: len as u64, write: true })?;
    if len == 0 {
        return Ok(0);
    }
    let mut read = Vec::new();
    while read.last() != Some(&0) && read.len() < len {
        match run.machine.memory.probe(user, from.wrapping_add(read.len() as u64)) {
            Some(byte) => read.push(byte),
            None => return wipe(run, len).map(|()| errno(EFAULT)),
        }
    }
    if let Some(last) = read.last_mut() {
        *last = 0;
    }
    let n = read.len();
    // The bytes after the string stay, and count as written; but from the user whole words are copied.
    let word = n.next_multiple_of(8);
    if user && word <= len && probe(run, true, from, word).is_some() {
        read.resize(word, 0);
    }
    read.extend(&before[read.len()..]);
    out(run, &read).map(|()| n as u64)
}

fn comm(run: &mut Run) -> Answer {
    let mut name = vec![0; size(run, 2)?.min(1 << 16)];
    for (to, from) in name.iter_mut().zip(run.machine.comm) {
        *to = from;
    }
    if let Some(last) = name.last_mut() {
        *last = 0;
    }
    out(run, &name).map(|()| 0)
}

fn ns_pid(run: &mut Run) -> Answer {
    let (dev, ino, to, len) = (run.get(1)?, run.get(2)?, run.get(3)?, size(run, 4)?);
    let here = run.machine.pid_ns.filter(|ns| (ns.dev, ns.ino, len) == (dev, ino, 8));
    let ids = here.map_or(0, |ns| u64::from(ns.tgid) << 32 | u64::from(ns.tid));
    run.machine.memory.write(to, &ids.to_le_bytes()[..len.min(8)])?;
    Ok(if here.is_some() { 0 } else { errno(EINVAL) })
}

fn frames(run: &Run, flags: u64) -> Option<Vec<u8>> {
    let stack = if flags & USER_STACK != 0 { &run.machine.user_stack } else { &run.machine.kernel_stack };
    let left = stack.get((flags & SKIP) as usize..)?;
    Some(left.iter().flat_map(|ip| ip.to_le_bytes()).collect())
}

fn stack(run: &mut Run) -> Answer {
    let (to, len, flags) = (run.get(2)?, size(run, 3)?, run.get(4)?);
    run.get(1)?;
    if !len.is_multiple_of(8) {
        return Ok(errno(EINVAL));
    }
    let space = run.machine.memory.peek(to, len).map(<[u8]>::len);
    let mut copy = vec![0; space.ok_or(Cause::Memory { address: to, len: len as u64, write: true })?];
    let stack = frames(run, flags);
    let n = stack.as_ref().map_or(0, |s| s.len().min(len));
    copy[..n].copy_from_slice(&stack.as_deref().unwrap_or_default()[..n]);
    run.machine.memory.write(to, &copy)?;
    Ok(if stack.is_some() { n as u64 } else { errno(EFAULT) })
}

fn stack_id(run: &mut Run) -> Answer {
    run.get(1)?;
    let (fd, map) = run.machine.map_of(run.get(2)?, &[Kind::Stacks])?;
    let len = map.value_size;
    let Some(mut stack) = frames(run, run.get(3)?) else { return Ok(errno(EFAULT)) };
    stack.resize(len, 0);
    Ok(run.machine.stack_number(fd, &stack).map_or(errno(EEXIST), u64::from))
}

fn seq_write(run: &mut Run) -> Answer {
    run.get(1)?;
    let data = bytes(run, 2, size(run, 3)?)?;
    run.machine.seq.extend(data);
    Ok(0)
}

fn ring_output(run: &mut Run) -> Answer {
    let (fd, _) = run.machine.map_of(run.get(1)?, &[Kind::Ring])?;
    let data = bytes(run, 2, size(run, 3)?)?;
    if run.get(4)? & !WAKEUP_FLAGS != 0 {
        return Ok(errno(EINVAL));
    }
    Ok(if run.machine.output(fd, &data)? { 0 } else { errno(EAGAIN) })
}

fn ring_reserve(run: &mut Run) -> Answer {
    let (fd, _) = run.machine.map_of(run.get(1)?, &[Kind::Ring])?;
    let len = size(run, 2)?;
    if run.get(3)? != 0 {
        return Ok(0);
    }
    Ok(run.machine.reserve(fd, len).unwrap_or(0))
}

fn ring_query(run: &mut Run) -> Answer {
    let (_, map) = run.machine.map_of(run.get(1)?, &[Kind::Ring])?;
    Ok(match run.get(2)? {
        0 => map.produced - map.consumed,
        1 => map.max,
        2 => map.consumed,
        3 => map.produced,
        _ => 0,
    })
}

fn repeat(run: &mut Run) -> Answer {
    let (n, entry, ctx, flags) = (run.get(1)?, run.get(2)?, run.get(3)?, run.get(4)?);
    let entry = usize::try_from(entry).map_err(|_| Cause::Pc)?;
    let n = n & 0xffff_ffff;
    match (flags, n) {
        (1.., _) => return Ok(errno(EINVAL)),
        (0, n) if n > MAX_LOOPS => return Ok(errno(E2BIG)),
        _ => {}
    }
    for i in 0..n {
        if run.function(entry, [Some(i), Some(ctx), None, None, None])? != 0 {
            return Ok(i + 1);
        }
    }
    Ok(n)
}
