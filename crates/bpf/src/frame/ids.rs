//! The ids of tasks in the session's pid namespace.

use super::{Emitter, field, reg, slot, state};
use crate::filter::{Place, Places};
use crate::helper::Helper;
use crate::insn::{Alu, Reg, Reg::*, Size};

impl Emitter<'_> {
    /// `to` = the thread id of `task`, in the session's namespace. Both are registers, and may be equal.
    pub(crate) fn thread_id(&mut self, to: Reg, task: Reg) {
        let offsets = self.offsets;
        match offsets.namespace {
            None => self.load(Size::W, to, task, offsets.task_pid),
            Some(ns) => {
                self.load(Size::D, to, task, ns.thread_pid);
                self.load(Size::W, to, to, ns.number);
            }
        }
    }

    /// `to` = the process id of `task` in the session's namespace.
    pub(crate) fn process_id(&mut self, to: Reg, task: Reg) {
        let offsets = self.offsets;
        match offsets.namespace {
            None => self.load(Size::W, to, task, offsets.task_tgid),
            Some(ns) => {
                self.load(Size::D, to, task, ns.group_leader);
                self.thread_id(to, to);
            }
        }
    }

    /// Stores the ids of the task in r1 in the event.
    pub(crate) fn whose(&mut self) {
        self.thread_id(R2, R1);
        self.store_event(Size::W, field::TID, R2);
        self.process_id(R2, R1);
        self.store_event(Size::W, field::PID, R2);
    }

    /// Stores the ids of the current task in the event.
    pub(crate) fn who(&mut self) {
        if self.has_state {
            self.load(Size::W, R1, reg::STATE, state::TID);
            self.store_event(Size::W, field::TID, R1);
            self.load(Size::W, R1, reg::STATE, state::PID);
            return self.store_event(Size::W, field::PID, R1);
        }
        if self.knows_task || self.offsets.namespace.is_some() {
            self.task(R1);
            return self.whose();
        }
        self.call(Helper::GetCurrentPidTgid);
        self.store_event(Size::W, field::TID, R0);
        self.alu(Alu::Rsh, R0, 32);
        self.store_event(Size::W, field::PID, R0);
    }

    /// r1 = the id of the current task's process, or of its thread.
    pub(crate) fn current_id(&mut self, of_process: bool) {
        if self.has_state {
            return self.load(Size::W, R1, reg::STATE, if of_process { state::PID } else { state::TID });
        }
        if self.knows_task || self.offsets.namespace.is_some() {
            self.task(R1);
            return if of_process { self.process_id(R1, R1) } else { self.thread_id(R1, R1) };
        }
        self.call(Helper::GetCurrentPidTgid);
        self.mov(R1, R0);
        if !of_process {
            self.alu(Alu::Lsh, R1, 32);
        }
        self.alu(Alu::Rsh, R1, 32);
    }

    /// Sets where a filter finds ids: users and groups, where the offsets are known, threads and processes where the task is.
    pub(crate) fn find_ids(&self, places: &mut Places) {
        use Place::{Credential, Memory, OfTask};
        if self.has_state {
            places.pid = Memory(reg::STATE, state::PID, Size::W);
            places.tid = Memory(reg::STATE, state::TID, Size::W);
        } else if self.knows_task && self.offsets.namespace.is_none() {
            places.pid = OfTask(slot::TASK, self.offsets.task_tgid);
            places.tid = OfTask(slot::TASK, self.offsets.task_pid);
        }
        if let Some([cred, uid, gid]) = self.offsets.users {
            (places.uid, places.gid) = (Credential(cred, uid), Credential(cred, gid));
        }
    }
}
