//! Who an event is of: ids as the pid namespace of the session knows them.

use super::Emitter;
use crate::filter::{Place, Places};
use crate::helper::Helper;
use crate::insn::{Alu, Reg, Reg::*, Size};

impl Emitter<'_> {
    /// `to` = the thread id of `task`, as the session's namespace knows it. Both are registers, and may be the same.
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

    /// `to` = the process id of `task`, as the session's namespace knows it.
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

    /// Stores the ids of the task in r1 at 12 and 16 of the scratch buffer.
    pub(crate) fn whose(&mut self) {
        self.thread_id(R2, R1);
        self.store_event(Size::W, 12, R2);
        self.process_id(R2, R1);
        self.store_event(Size::W, 16, R2);
    }

    /// Stores tid and pid of the current task, as the session's namespace knows them, at 12 and 16 of the scratch buffer.
    pub(crate) fn who(&mut self) {
        let offsets = self.offsets;
        if offsets.namespace.is_some() {
            self.call(Helper::GetCurrentTaskBtf);
            self.mov(R1, R0);
            return self.whose();
        }
        self.call(Helper::GetCurrentPidTgid);
        self.store_event(Size::W, 12, R0);
        self.alu(Alu::Rsh, R0, 32);
        self.store_event(Size::W, 16, R0);
    }

    /// Where a filter finds users and groups, where that is known.
    pub(crate) fn find_ids(&self, places: &mut Places) {
        use Place::Credential;
        if let Some([cred, uid, gid]) = self.offsets.users {
            (places.uid, places.gid) = (Credential(cred, uid), Credential(cred, gid));
        }
    }
}
