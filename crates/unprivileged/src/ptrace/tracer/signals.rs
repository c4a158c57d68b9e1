//! Signals on their way to a thread.

use super::Tracer;
use events::generated as g;
use sys::ptrace;

impl Tracer {
    pub(super) fn signalled(&mut self, tid: i32, sig: i32) {
        if self.leave_code(tid, sig) {
            return self.resume(tid, 0);
        }
        let who = self.who(tid);
        if let Ok(raw) = ptrace::siginfo(tid)
            && !self.threads.get(&tid).is_some_and(|t| t.starting)
        {
            let info = siginfo_args(sig, &raw);
            match self.job.with_stacks.get(&g::P_SIGNAL.id) {
                Some(&(schema, most)) if !self.out.held => {
                    let mut args = [0; 13];
                    args[..12].copy_from_slice(&info);
                    let registers = ptrace::frame_registers(tid);
                    args[12] = registers.map_or(0, |r| self.stack(who, r, most));
                    self.out.process(schema, who, &args, &[]);
                }
                _ => self.out.process(&g::P_SIGNAL, who, &info, &[]),
            }
        }
        self.resume(tid, sig);
    }
}

/// The arguments of `process:signal` from a raw siginfo (`include/uapi/asm-generic/siginfo.h`, 64-bit layout).
fn siginfo_args(sig: i32, raw: &[u8; 128]) -> [u64; 12] {
    let i32_at = |at: usize| i32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]) as i64 as u64;
    let u64_at = |at: usize| {
        let mut le = [0; 8];
        le.copy_from_slice(&raw[at..at + 8]);
        u64::from_le_bytes(le)
    };
    let (errno, code) = (i32_at(4), i32_at(8));
    let mut a = [sig as u64, code, errno, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const CHLD: i32 = 17;
    const SYS: i32 = 31;
    match sig {
        CHLD => {
            (a[3], a[4], a[5]) = (i32_at(16), i32_at(20), i32_at(24));
            (a[6], a[7]) = (u64_at(32), u64_at(40));
        }
        // SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV: fault address, where the kernel raised it (positive code).
        4 | 5 | 7 | 8 | 11 if (code as i64) > 0 => a[8] = u64_at(16),
        SYS if (code as i64) > 0 => (a[8], a[10], a[11]) = (u64_at(16), i32_at(24), i32_at(28) & 0xffff_ffff),
        _ => (a[3], a[4], a[9]) = (i32_at(16), i32_at(20), u64_at(24)),
    }
    a
}
