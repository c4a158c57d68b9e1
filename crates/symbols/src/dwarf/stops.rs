//! Where a debugger puts the breakpoint of a function: behind its prologue, which it takes from the line table where LLVM has made that (clang, rustc).

use super::Debug;
use gimli::constants as c;

/// How far from the beginning of a function places are looked for.
const NEAR: u64 = 32;

/// A function whose rows are passing.
struct Passing {
    start: u64,
    /// The prologue goes on, for all rows and for those of statements.
    open: [bool; 2],
}

impl Debug<'_> {
    /// The places behind the prologues of functions that begin at these addresses, sorted, near their beginnings. gdb takes the second row of a
    /// function, unless its line is less, and it is not of inlined code or of another file, which no compiler writes there; lldb takes the row that
    /// says so. Those of other compilers are not among them: gdb reads their instructions.
    pub fn stops(&self, functions: &[u64]) -> Vec<u64> {
        let mut stops = Vec::new();
        for at in self.headers() {
            let header = self.dwarf.unit_header(gimli::DebugInfoOffset(*at)).ok();
            let Some(found) = header.and_then(|h| self.parse_unit(h)) else { continue };
            let root = found.unit.entry(found.unit.header.root_offset());
            let producer = root.ok().and_then(|root| self.text(&found, root.attr_value(c::DW_AT_producer)));
            // A skeleton does not say who has made it.
            if producer.is_some_and(|p| !p.contains("clang") && !p.contains("LLVM")) {
                continue;
            }
            let Some(program) = found.unit.line_program.clone() else { continue };
            let (mut rows, mut passing) = (program.rows(), None);
            while let Ok(Some((_, row))) = rows.next_row() {
                if !self.source.spend(1) {
                    break;
                }
                if row.end_sequence() {
                    passing = None;
                } else {
                    let line = row.line().map_or(0, |line| line.get());
                    pass(&mut passing, functions, (row.address(), line, row.is_stmt(), row.prologue_end()), &mut stops);
                }
            }
        }
        stops.sort_unstable();
        stops.dedup();
        stops
    }
}

/// Looks at a row: its address and line, whether it is a statement, and whether a prologue ends there.
fn pass(
    passing: &mut Option<Passing>,
    functions: &[u64],
    (address, line, is_statement, ends): (u64, u64, bool, bool),
    stops: &mut Vec<u64>,
) {
    if passing.as_ref().is_none_or(|p| p.start != address) && functions.binary_search(&address).is_ok() {
        *passing = Some(Passing { start: address, open: [true; 2] });
        return;
    }
    let Some(p) = passing.as_mut().filter(|p| address.wrapping_sub(p.start) < NEAR) else { return };
    for (open, counts) in p.open.iter_mut().zip([true, is_statement]) {
        if !counts || !*open {
            continue;
        }
        if address > p.start {
            stops.push(address);
        }
        // With two rows there, the prologue has no instruction.
        *open = address == p.start && line == 0;
    }
    if ends && address > p.start {
        stops.push(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stops(rows: &[(u64, u64, bool, bool)]) -> Vec<u64> {
        let (mut passing, mut stops) = (None, Vec::new());
        rows.iter().for_each(|row| pass(&mut passing, &[100, 200], *row, &mut stops));
        stops.sort_unstable();
        stops.dedup();
        stops
    }

    #[test]
    fn the_second_row_of_a_function_is_behind_its_prologue() {
        let row = |address, line| (address, line, true, false);
        assert_eq!(stops(&[row(100, 7), row(104, 8), row(109, 9), row(200, 20), row(201, 21)]), [104, 201]);
        // A line from further above, of inlined code.
        assert_eq!(stops(&[row(100, 7), row(104, 5), row(109, 9), row(120, 3)]), [104]);
        assert_eq!(stops(&[row(100, 7), row(100, 8), row(104, 9)]), []);
        assert_eq!(stops(&[row(100, 7), row(180, 8)]), []);
        assert_eq!(stops(&[row(90, 7), row(95, 8)]), []);
        // Rows that begin no statement, and one that says where the prologue ends.
        assert_eq!(stops(&[row(100, 7), (102, 8, false, false), row(105, 8), (107, 8, true, true)]), [102, 105, 107]);
    }
}
