//! The rule of an address: page, rows, number, rule.

use super::mapping::{BIAS, FIRST_PAGE, FLAGS};
use super::{Ends, Tables};
use crate::asm::Assembler;
use crate::helper::Helper;
use crate::insn::{Alu, Cond, Reg, Reg::*, Size};
use unwind::Ended;
use unwind::table::{CHUNK, CHUNK_BITS, Mapping, PAGE_BITS, STEPS};

/// Stack slot: the key of a chunk.
const KEY: i16 = -8;

/// r7 = the address in r8, counted from the first page of its mapping in r9; `ends.guess` where there are no rows. Uses r1.
pub(super) fn place(a: &mut Assembler<impl Sized>, ends: &Ends) {
    a.load(Size::W, R1, R9, FLAGS);
    a.alu(Alu::And, R1, Mapping::NO_ROWS as i32);
    a.jump_if(Cond::Ne, R1, 0, ends.guess);
    a.mov(R7, R8);
    a.load(Size::D, R1, R9, BIAS);
    a.alu(Alu::Sub, R7, R1);
}

/// r9 = the rule at r7, counted from the first page of the mapping in r9; `ends.guess` where there are no rows. Uses r0 to r5 and r7.
pub(super) fn rule(a: &mut Assembler<impl Sized>, tables: &Tables, ends: &Ends) {
    let damaged = ends.at(Ended::Damaged);
    a.note("r7: rows below this are at or below the address");
    a.mov(R1, R7);
    a.alu(Alu::Rsh, R1, PAGE_BITS as i32);
    a.load(Size::W, R2, R9, FIRST_PAGE);
    a.alu(Alu::Add, R1, R2);
    a.jump_if(Cond::Ge, R1, tables.page_count as i32, damaged);
    a.alu32(Alu::Lsh, R7, 16);
    a.alu(Alu::Add, R7, 1 << 16);
    a.note("the page: u32 first row, u32 rows");
    a.alu(Alu::Lsh, R1, 3);
    a.map_value(R2, tables.pages, 0);
    a.alu(Alu::Add, R2, R1);
    a.load(Size::D, R9, R2, 0);
    a.note("its chunk");
    a.mov32(R1, R9);
    a.alu(Alu::Rsh, R1, CHUNK_BITS as i32);
    a.store(Size::W, R10, KEY, R1);
    a.map_fd(R1, tables.chunks);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, damaged);
    a.mov(R1, R0);
    a.store(Size::W, R10, KEY, 0);
    a.mov(R2, R10);
    a.alu(Alu::Add, R2, i32::from(KEY));
    a.call(Helper::MapLookup);
    a.jump_if(Cond::Eq, R0, 0, damaged);
    search(a, ends);
    a.note("the rule");
    a.alu(Alu::And, R1, 0xffff);
    a.jump_if(Cond::Ge, R1, tables.rule_count as i32, damaged);
    a.alu(Alu::Lsh, R1, 3);
    a.map_value(R2, tables.rules, 0);
    a.alu(Alu::Add, R2, R1);
    a.load(Size::D, R9, R2, 0);
}

/// r1 = the last row that is below r7, of the chunk in r0 and the page in r9.
///
/// With a branch per step: a walk goes through the same rows again and again, so that most branches are predicted, and the next row is
/// loaded before this one is compared. Without branches a frame costs 6 ns more.
fn search(a: &mut Assembler<impl Sized>, ends: &Ends) {
    let found = a.new_label();
    let load = |a: &mut Assembler<_>, to: Reg, offset: Reg| {
        a.jump_if(Cond::Ge, offset, 4 * CHUNK as i32, ends.at(Ended::Damaged));
        a.mov(to, R0);
        a.alu(Alu::Add, to, offset);
        a.load(Size::W, to, to, 0);
    };
    a.note("the row: r1 the first of what is left, in bytes; r2 how many are left");
    a.mov(R1, R9);
    a.alu(Alu::And, R1, CHUNK as i32 - 1);
    a.alu(Alu::Lsh, R1, 2);
    a.mov(R2, R9);
    a.alu(Alu::Rsh, R2, 32);
    a.jump_if(Cond::Eq, R2, 0, ends.guess);
    a.jump_if(Cond::Eq, R2, 1, found);
    for step in 0..STEPS {
        a.mov(R3, R2);
        a.alu(Alu::Rsh, R3, 1);
        a.alu(Alu::Sub, R2, R3);
        a.alu(Alu::Lsh, R3, 2);
        a.mov(R4, R1);
        a.alu(Alu::Add, R4, R3);
        load(a, R5, R4);
        let above = a.new_label();
        a.jump_if(Cond::Ge, R5, R7, above);
        a.alu(Alu::Add, R1, R3);
        a.bind(above);
        if step + 1 < STEPS {
            a.jump_if(Cond::Le, R2, 1, found);
        }
    }
    a.bind(found);
    load(a, R2, R1);
    a.mov(R1, R2);
}
