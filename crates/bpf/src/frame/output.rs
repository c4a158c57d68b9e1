//! The output of an event into the ring of the CPU.

use super::counters::Lost;
use super::{Emitter, field, reg};
use crate::asm::{Label, Operand};
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg::*, Size};
use crate::own_ring::HEADER;
use crate::scratch::{self, DATA, HEAD, LIMIT, MASK, NEXT_RECORD, PUBLISHED, TAIL};

impl Emitter<'_> {
    /// Puts the event, `END` bytes at `BUFFER`, into the ring of this CPU. Where the ring is full, the event is counted as dropped, for
    /// calls by its class. `BUFFER` is where the next one is built.
    pub(crate) fn output(&mut self) {
        let maps = self.maps;
        let (dropped, done) = (self.new_label(), self.new_label());
        self.note("into the ring of this CPU");
        if maps.shape.ring().is_none() {
            self.count(scratch::SEEN);
        }
        self.jump_if(Cond::Gt, reg::END, scratch::MAX_EVENT, dropped);
        match maps.shape.ring() {
            Some(_) => {
                self.publish(dropped);
                self.jump(done);
            }
            None => {
                let found = self.new_label();
                self.call(Helper::GetSmpProcessorId);
                self.ring_of_cpu(&maps.rings, 0, found);
                self.bind(found);
                self.mov(R2, reg::BUFFER);
                self.mov(R3, reg::END);
                self.mov(R4, 1); // BPF_RB_NO_WAKEUP: the collector polls.
                self.call(Helper::RingbufOutput);
                self.jump_if(Cond::Eq, R0, 0, done);
            }
        }
        self.bind(dropped);
        let lost = match maps.shape.counts_classes() {
            true => {
                self.load_event(Size::H, R3, field::ID);
                Lost::InR3
            }
            false => Lost::Unknown,
        };
        match maps.shape.ring() {
            Some(_) => self.count_lost(lost),
            None => self.count_dropped(lost),
        }
        self.bind(done);
    }

    /// Publishes the record that `BUFFER` is in ([`crate::own_ring`]), or goes to `full`. Uses r1 to r4.
    fn publish(&mut self, full: Label) {
        let [tail, mask, head, limit, data, next] = [TAIL, MASK, HEAD, LIMIT, DATA, NEXT_RECORD].map(|w| self.word(w));
        let published = self.word(PUBLISHED);
        let header = HEADER as i32;
        let inside = self.new_label();
        self.store(Size::D, reg::BUFFER, -(HEADER as i16), reg::END);
        self.mov(R2, reg::END);
        self.alu(Alu::Add, R2, header + 7);
        self.alu(Alu::And, R2, -8);
        self.words(R1);
        self.load(Size::D, R3, R1, tail);
        self.alu(Alu::Add, R2, R3);
        self.load(Size::D, R4, R1, mask);
        self.alu(Alu::Or, R3, R4);
        self.alu(Alu::Add, R3, 1);
        // One that continues in the slack ends where the data start anew.
        self.jump_if(Cond::Le, R2, R3, inside);
        self.mov(R2, R3);
        self.bind(inside);
        self.mov(R3, R2);
        self.load(Size::D, R4, R1, head);
        self.alu(Alu::Sub, R3, R4);
        self.load(Size::D, R4, R1, limit);
        self.jump_if(Cond::Gt, R3, R4, full);
        // x86 makes stores visible in their order: whoever sees this one sees the record.
        self.store(Size::D, R1, tail, R2);
        self.load(Size::D, R4, R1, mask);
        self.alu(Alu::And, R2, R4);
        self.load(Size::D, R4, R1, data);
        self.alu(Alu::Add, R2, R4);
        self.store(Size::D, R1, next, R2);
        self.load(Size::D, R2, R1, published);
        self.alu(Alu::Add, R2, 1);
        self.store(Size::D, R1, published, R2);
        self.place_event();
    }

    /// Goes to `full` where the ring has no room for a record with an event of `least` bytes (a number, or a register other than r1 and
    /// r4): it need not be built then. Uses r1, r3 and r4.
    pub(crate) fn has_room(&mut self, least: impl Into<Operand>, full: Label) {
        if self.maps.shape.ring().is_none() {
            return;
        }
        let [tail, head, limit] = [TAIL, HEAD, LIMIT].map(|w| self.word(w));
        self.words(R1);
        self.mov(R3, least);
        self.load(Size::D, R4, R1, tail);
        self.alu(Alu::Add, R3, R4);
        self.load(Size::D, R4, R1, head);
        self.alu(Alu::Sub, R3, R4);
        self.load(Size::D, R4, R1, limit);
        self.jump_if(Cond::Gt, R3, R4, full);
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
