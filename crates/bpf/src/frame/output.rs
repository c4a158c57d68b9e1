//! The output of an event into the ring of the CPU.

use super::counters::Lost;
use super::{Emitter, field, reg};
use crate::asm::Label;
use crate::helper::Helper;
use crate::insn::{Cond, Reg::*, Size};
use crate::scratch;

impl Emitter<'_> {
    /// Puts the event, `END` bytes of the scratch buffer, into the ring of this CPU. Where the ring is full, the event is counted
    /// as dropped, for calls by its class.
    pub(crate) fn output(&mut self) {
        let maps = self.maps;
        let (dropped, done, found) = (self.new_label(), self.new_label(), self.new_label());
        self.note("into the ring of this CPU");
        self.count(scratch::SEEN);
        self.call(Helper::GetSmpProcessorId);
        self.ring_of_cpu(&maps.rings, 0, found);
        self.bind(found);
        self.jump_if(Cond::Gt, reg::END, scratch::MAX_EVENT, dropped);
        self.mov(R2, reg::BUFFER);
        self.mov(R3, reg::END);
        self.mov(R4, 1); // BPF_RB_NO_WAKEUP: the collector polls.
        self.call(Helper::RingbufOutput);
        self.jump_if(Cond::Eq, R0, 0, done);
        self.bind(dropped);
        let lost = match maps.shape.counts_classes() {
            true => {
                self.load_event(Size::H, R3, field::ID);
                Lost::InR3
            }
            false => Lost::Unknown,
        };
        self.count_dropped(lost);
        self.bind(done);
    }

    /// r1 = the ring of the CPU in r0: a tree of comparisons, because a map of maps costs a grace period of RCU for each ring that
    /// user space puts into it.
    pub(crate) fn ring_of_cpu(&mut self, rings: &[i32], first: i32, found: Label) {
        if let [ring] = rings {
            self.map_fd(R1, *ring);
            self.jump(found);
            return;
        }
        let (low, high) = rings.split_at(rings.len() / 2);
        let upper = self.new_label();
        let middle = first + low.len() as i32;
        self.jump_if(Cond::Ge, R0, middle, upper);
        self.ring_of_cpu(low, first, found);
        self.bind(upper);
        self.ring_of_cpu(high, middle, found);
    }
}
