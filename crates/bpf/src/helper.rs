//! The kernel helpers that a tracer calls: their numbers and names.
//!
//! Not the whole list, and not their semantics: the interpreter has those of the helpers that generated programs call.
//!
//! Invariant: the numbers are those of `enum bpf_func_id` in `include/uapi/linux/bpf.h`, where they never change;
//! compared with the header of 6.1 and with the BTF of 6.18.

macro_rules! helpers {
    ($($variant:ident = $id:literal $name:literal $doc:literal;)*) => {
        /// A helper function of the kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(i32)]
        pub enum Helper { $(#[doc = $doc] $variant = $id,)* }

        impl Helper {
            /// Every helper of the list.
            pub const ALL: &'static [Helper] = &[$(Helper::$variant,)*];

            /// The name that the kernel's verifier and bpftool print.
            pub fn name(self) -> &'static str {
                match self { $(Helper::$variant => concat!("bpf_", $name),)* }
            }
        }
    };
}

#[rustfmt::skip]
helpers! {
    MapLookup = 1 "map_lookup_elem" "`(map, key) -> value or NULL`";
    MapUpdate = 2 "map_update_elem" "`(map, key, value, flags) -> 0 or -errno`";
    MapDelete = 3 "map_delete_elem" "`(map, key) -> 0 or -errno`";
    ProbeRead = 4 "probe_read" "`(dst, size, address) -> 0 or -errno`; the two that know the address space are better.";
    KtimeGetNs = 5 "ktime_get_ns" "`() -> ns` of the monotonic clock";
    TracePrintk = 6 "trace_printk" "`(format, size, …)`; for debugging only";
    GetPrandomU32 = 7 "get_prandom_u32" "`() -> u32`";
    GetSmpProcessorId = 8 "get_smp_processor_id" "`() -> cpu`";
    TailCall = 12 "tail_call" "`(ctx, program array, index)`";
    GetCurrentPidTgid = 14 "get_current_pid_tgid" "`() -> tgid << 32 | tid`, in the initial pid namespace";
    GetCurrentUidGid = 15 "get_current_uid_gid" "`() -> gid << 32 | uid`";
    GetCurrentComm = 16 "get_current_comm" "`(dst, size) -> 0 or -errno`";
    PerfEventOutput = 25 "perf_event_output" "`(ctx, map, flags, data, size) -> 0 or -errno`";
    GetStackid = 27 "get_stackid" "`(ctx, map, flags) -> id or -errno`";
    GetCurrentTask = 35 "get_current_task" "`() -> task`, as a number";
    CurrentTaskUnderCgroup = 37 "current_task_under_cgroup" "`(map, index) -> 0, 1 or -errno`";
    GetNumaNodeId = 42 "get_numa_node_id" "`() -> node`";
    ProbeReadStr = 45 "probe_read_str" "`(dst, size, address) -> length with NUL or -errno`";
    PerfEventReadValue = 55 "perf_event_read_value" "`(map, flags, dst, size) -> 0 or -errno`";
    GetStack = 67 "get_stack" "`(ctx, dst, size, flags) -> bytes or -errno`";
    GetCurrentCgroupId = 80 "get_current_cgroup_id" "`() -> id`";
    SendSignal = 109 "send_signal" "`(signal) -> 0 or -errno`: to the current process";
    ProbeReadUser = 112 "probe_read_user" "`(dst, size, address) -> 0 or -errno`; dst is zeroed on failure";
    ProbeReadKernel = 113 "probe_read_kernel" "`(dst, size, address) -> 0 or -errno`; dst is zeroed on failure";
    ProbeReadUserStr = 114 "probe_read_user_str" "`(dst, size, address) -> length with NUL or -errno`";
    ProbeReadKernelStr = 115 "probe_read_kernel_str" "`(dst, size, address) -> length with NUL or -errno`";
    Jiffies64 = 118 "jiffies64" "`() -> ticks`";
    GetNsCurrentPidTgid = 120 "get_ns_current_pid_tgid" "`(dev, ino, dst, 8) -> 0 or -errno`: {u32 tid, u32 tgid} there";
    KtimeGetBootNs = 125 "ktime_get_boot_ns" "`() -> ns` since boot, with suspension";
    SeqWrite = 127 "seq_write" "`(seq, data, size) -> 0 or -errno`; in iterators";
    RingbufOutput = 130 "ringbuf_output" "`(ring, data, size, flags) -> 0 or -errno`";
    RingbufReserve = 131 "ringbuf_reserve" "`(ring, constant size, 0) -> record or NULL`";
    RingbufSubmit = 132 "ringbuf_submit" "`(record, flags)`";
    RingbufDiscard = 133 "ringbuf_discard" "`(record, flags)`";
    RingbufQuery = 134 "ringbuf_query" "`(ring, what) -> number`";
    GetTaskStack = 141 "get_task_stack" "`(task, dst, size, flags) -> bytes or -errno`";
    CopyFromUser = 148 "copy_from_user" "`(dst, size, address) -> 0 or -errno`; sleepable programs only";
    PerCpuPtr = 153 "per_cpu_ptr" "`(per-cpu symbol, cpu) -> pointer or NULL`";
    ThisCpuPtr = 154 "this_cpu_ptr" "`(per-cpu symbol) -> pointer`";
    TaskStorageGet = 156 "task_storage_get" "`(map, task, initial value or 0, flags) -> value or NULL`";
    TaskStorageDelete = 157 "task_storage_delete" "`(map, task) -> 0 or -errno`";
    GetCurrentTaskBtf = 158 "get_current_task_btf" "`() -> task`, as a typed pointer";
    ForEachMapElem = 164 "for_each_map_elem" "`(map, callback, ctx, 0) -> count or -errno`";
    TimerInit = 169 "timer_init" "`(timer, map, clock) -> 0 or -errno`";
    TimerSetCallback = 170 "timer_set_callback" "`(timer, callback) -> 0 or -errno`";
    TimerStart = 171 "timer_start" "`(timer, ns, flags) -> 0 or -errno`";
    TimerCancel = 172 "timer_cancel" "`(timer) -> 0, 1 or -errno`";
    GetFuncIp = 173 "get_func_ip" "`(ctx) -> address of the traced function`";
    GetAttachCookie = 174 "get_attach_cookie" "`(ctx) -> cookie` given when attached";
    TaskPtRegs = 175 "task_pt_regs" "`(task) -> pt_regs`";
    FindVma = 180 "find_vma" "`(task, address, callback, ctx, 0) -> 0 or -errno`";
    Loop = 181 "loop" "`(count, callback, ctx, 0) -> iterations or -errno`";
    Strncmp = 182 "strncmp" "`(string, size, constant string) -> order`";
    CopyFromUserTask = 191 "copy_from_user_task" "`(dst, size, address, task, 0) -> 0 or -errno`; sleepable only";
    MapLookupPercpuElem = 195 "map_lookup_percpu_elem" "`(map, key, cpu) -> value or NULL`";
    KtimeGetTaiNs = 208 "ktime_get_tai_ns" "`() -> ns` of International Atomic Time";
}

impl Helper {
    /// The number that a call's `imm` holds.
    pub fn id(self) -> i32 {
        self as i32
    }

    /// From the number, if the list has it.
    pub fn from_id(id: i32) -> Option<Helper> {
        Helper::ALL.binary_search_by_key(&id, |h| h.id()).ok().map(|at| Helper::ALL[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_and_found() {
        assert!(Helper::ALL.is_sorted());
        for h in Helper::ALL {
            assert_eq!(Helper::from_id(h.id()), Some(*h));
        }
        assert_eq!(Helper::from_id(9), None);
        assert_eq!(Helper::RingbufSubmit.name(), "bpf_ringbuf_submit");
    }
}
