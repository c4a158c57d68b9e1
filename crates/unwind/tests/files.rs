//! Tables of the machine's own programs and libraries: at each address of a sample the rule is what gimli's rows say.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, Operation, Register, RegisterRule, UnwindContext,
    UnwindSection, UnwindTableRow,
};
use object::LittleEndian as Le;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use testkit::skip;
use unwind::build::Module;
use unwind::rule::SavedBx;
use unwind::{Kind, Rule, SavedBp};

type Section<'b> = EhFrame<EndianSlice<'b, LittleEndian>>;

/// Registers and memory out of nowhere: what a row and a rule make of them is compared.
struct Machine {
    pc: u64,
    sp: u64,
    bp: u64,
}

/// The word at an address: any function of it will do.
fn word(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) & 0x7fff_ffff_fff8
}

impl Machine {
    fn register(&self, r: Register) -> Option<u64> {
        match r.0 {
            6 => Some(self.bp),
            7 => Some(self.sp),
            16 => Some(self.pc),
            n @ 0..16 => Some(0x7000_3000 + u64::from(n) * 0x108),
            _ => None,
        }
    }

    /// Evaluates an expression with a stack machine of its own; none where it needs a register that is not known.
    fn evaluate(&self, section: &Section<'_>, e: &gimli::UnwindExpression<usize>) -> Option<u64> {
        let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 5 };
        let mut operations = e.get(section).unwrap().operations(encoding);
        let mut stack: Vec<u64> = Vec::new();
        while let Some(operation) = operations.next().unwrap() {
            let mut two = || Some((stack.pop()?, stack.pop()?));
            let value = match operation {
                Operation::RegisterOffset { register, offset, .. } => {
                    self.register(register)?.wrapping_add(offset as u64)
                }
                Operation::PlusConstant { value } => stack.pop()?.wrapping_add(value),
                Operation::UnsignedConstant { value } => value,
                Operation::SignedConstant { value } => value as u64,
                Operation::Deref { .. } => word(stack.pop()?),
                Operation::Plus => two().map(|(b, a)| a.wrapping_add(b))?,
                Operation::And => two().map(|(b, a)| a & b)?,
                Operation::Shl => two().map(|(b, a)| a << b)?,
                Operation::Ge => two().map(|(b, a)| u64::from(a as i64 >= b as i64))?,
                _ => return None,
            };
            stack.push(value);
        }
        stack.pop()
    }

    /// CFA, place of the return address, and the caller's rbp, by a row. None: the row needs something else.
    fn by_row(&self, section: &Section<'_>, row: &UnwindTableRow<usize>) -> Option<(u64, u64, u64)> {
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => self.register(*register)?.wrapping_add(*offset as u64),
            CfaRule::Expression(e) => self.evaluate(section, e)?,
        };
        let at = |rule: Option<RegisterRule<usize>>| match rule {
            Some(RegisterRule::Offset(offset)) => Some(cfa.wrapping_add(offset as u64)),
            Some(RegisterRule::Expression(e)) => self.evaluate(section, &e),
            _ => None,
        };
        let bp = match row.register(Register(6)) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => self.bp,
            saved => word(at(saved)?),
        };
        Some((cfa, at(row.register(Register(16)))?, bp))
    }

    /// CFA, return address and rbp of the caller, by a rule.
    fn by_rule(&self, rule: Rule) -> Option<(u64, u64, u64)> {
        let offset = rule.offset() as u64;
        if rule.kind() == Kind::Signal {
            let context = self.sp.wrapping_add(offset);
            return Some((word(context + 0xa0), context + 0xa8, word(context + 0x78)));
        }
        let cfa = match rule.kind() {
            Kind::Sp => self.sp.wrapping_add(offset),
            Kind::Bp => self.bp.wrapping_add(offset),
            Kind::Register => self.register(Register(rule.extra().into()))?.wrapping_add(offset),
            Kind::Plt => self.sp + offset + if self.pc & 15 >= u64::from(rule.extra()) { 8 } else { 0 },
            Kind::SpAt => word(self.sp.wrapping_add(offset)).wrapping_add(rule.extra() as i8 as u64),
            Kind::BpAt => word(self.bp.wrapping_add(offset)).wrapping_add(rule.extra() as i8 as u64),
            _ => return None,
        };
        let bp = match rule.bp() {
            SavedBp::Same => self.bp,
            SavedBp::Cfa(at) => word(cfa.wrapping_add(at as u64)),
            SavedBp::Bp(at) => word(self.bp.wrapping_add(at as u64)),
            SavedBp::Sp(at) => word(self.sp.wrapping_add(at as u64)),
        };
        Some((cfa, cfa.wrapping_sub(8), bp))
    }
}

/// Every row that is not merged into another is compared, at its first, its last and a middle address.
struct Compared {
    addresses: u64,
    unknown: u64,
}

fn compare(path: &str, bytes: &[u8]) -> Compared {
    let module = Module::build(bytes).unwrap_or_else(|e| panic!("{path}: {e}"));
    let header = FileHeader64::<Le>::parse(bytes).unwrap();
    let sections = header.sections(Le, bytes).unwrap();
    let section = |name: &[u8]| sections.iter().find(|s| sections.section_name(Le, s) == Ok(name));
    let frame = section(b".eh_frame").unwrap();
    let address = |name: &[u8]| section(name).map_or(0, |s| s.sh_addr(Le));
    let bases =
        BaseAddresses::default().set_eh_frame(frame.sh_addr(Le)).set_text(address(b".text")).set_got(address(b".got"));
    let data = frame.data(Le, bytes).unwrap();
    let eh_frame = EhFrame::new(data, LittleEndian);
    let mut context = UnwindContext::new();
    let mut entries = eh_frame.entries(&bases);
    let mut all = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        all.push(partial.parse(EhFrame::cie_from_offset).unwrap());
    }
    all.sort_by_key(|f| f.initial_address());
    let mut compared = Compared { addresses: 0, unknown: 0 };
    // A sample of large files: every this many functions.
    let every = (all.len() / 20_000).max(1);
    for (nth, fde) in all.iter().enumerate().step_by(every) {
        // Where functions overlap, the later one counts.
        let next = all.get(nth + 1).map_or(u64::MAX, |f| f.initial_address());
        let signal = fde.is_signal_trampoline();
        let mut rows = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            let (start, end) = (row.start_address(), row.end_address().min(next));
            for pc in [start, end.saturating_sub(1), start + end.saturating_sub(start) / 2] {
                if pc < start || pc >= end {
                    continue;
                }
                compared.addresses += 1;
                let rule = module.rule(pc);
                let machine = Machine { pc, sp: 0x7000_1000, bp: 0x7000_2040 };
                if matches!(row.register(Register(16)), Some(RegisterRule::Undefined)) && !signal {
                    assert_eq!(rule, Rule::END, "{path} {pc:x}");
                    continue;
                }
                if rule == Rule::UNKNOWN {
                    // Nothing that a rule could express.
                    let simple = machine.by_row(&eh_frame, row).filter(|r| r.1 == r.0.wrapping_sub(8));
                    let odd = matches!(
                        row.register(Register(6)),
                        Some(RegisterRule::Register(_) | RegisterRule::ValOffset(_))
                    ) || matches!(row.cfa(), CfaRule::Expression(_));
                    assert!(simple.is_none() || odd, "{path} {pc:x} {row:?}");
                    compared.unknown += 1;
                    continue;
                }
                let want = machine.by_row(&eh_frame, row);
                assert!(want.is_some() && machine.by_rule(rule) == want, "{path} {pc:x}: {rule:?} {row:?} {want:x?}");
                if matches!(rule.kind(), Kind::Sp | Kind::Bp) {
                    let bx = match row.register(Register(3)) {
                        None | Some(RegisterRule::SameValue) => SavedBx::Same,
                        Some(RegisterRule::Offset(at @ -2032..0)) => SavedBx::Below(at.unsigned_abs()),
                        _ => SavedBx::Lost,
                    };
                    assert_eq!(rule.bx(), bx, "{path} {pc:x}: {row:?}");
                }
            }
        }
    }
    compared
}

/// Candidates by what they are: at least one of each is compared, or the test counts as skipped.
#[test]
fn rules_are_what_gimli_says() {
    let lib = "/usr/lib/x86_64-linux-gnu";
    let root = std::process::Command::new("rustc").args(["--print", "sysroot"]).output();
    let root = root.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default();
    let of_rust = |start: &str| {
        let files = std::fs::read_dir(format!("{root}/lib")).into_iter().flatten().flatten();
        let found =
            files.map(|f| f.path()).find(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(start)));
        found.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let files = [
        vec![own],
        vec![format!("{lib}/libc.so.6")],
        vec![format!("{lib}/ld-linux-x86-64.so.2"), "/lib64/ld-linux-x86-64.so.2".into()],
        vec![format!("{lib}/libstdc++.so.6")],
        vec![format!("{lib}/libcrypto.so.3")],
        vec![format!("{lib}/libpython3.11.so.1.0"), "/usr/bin/python3".into()],
        (10..16).map(|n| format!("/usr/lib/gcc/x86_64-linux-gnu/{n}/cc1plus")).collect(),
        vec![of_rust("librustc_driver")],
        vec![of_rust("libLLVM.so")],
    ];
    let mut missing = Vec::new();
    for candidates in files {
        let Some((path, bytes)) = candidates.iter().find_map(|p| Some((p, std::fs::read(p).ok()?))) else {
            missing.push(candidates);
            continue;
        };
        let Compared { addresses, unknown } = compare(path, &bytes);
        eprintln!("{path}: {addresses} addresses, {unknown} unknown");
        assert!(addresses > 200 && unknown * 250 < addresses, "{path}: {addresses} {unknown}");
    }
    if !missing.is_empty() {
        skip("package:several", &format!("not there: {missing:?}"));
    }
}

/// Linkers of the LLVM family write no rows for linkage tables; rustc's own libraries are linked by one.
#[test]
fn linkage_tables_without_rows_get_some() {
    let Ok(bytes) = std::fs::read("/usr/bin/true").or_else(|_| std::fs::read("/bin/true")) else {
        return skip("package:coreutils", "no true");
    };
    // GNU ld's: the rows that it has written are those that would be made up.
    let header = FileHeader64::<Le>::parse(&bytes[..]).unwrap();
    let sections = header.sections(Le, &bytes[..]).unwrap();
    let Some(plt) = sections.iter().find(|s| sections.section_name(Le, s) == Ok(b".plt")) else {
        return skip("package:coreutils", "no .plt");
    };
    let (plt, len) = (plt.sh_addr(Le), plt.sh_size(Le));
    let written = Module::build(&bytes).unwrap();
    assert_eq!(written.counts().linkage_tables, 0);
    // Without its .eh_frame (renamed in place) everything is made up.
    let names = sections.iter().nth(usize::from(header.e_shstrndx(Le))).unwrap().sh_offset(Le) as usize;
    let mut without = bytes.clone();
    let at = bytes[names..].windows(10).position(|w| w == b".eh_frame\0").unwrap() + names;
    without[at + 1] = b'x';
    // The header of unwind information leads to it too.
    let at = bytes[names..].windows(14).position(|w| w == b".eh_frame_hdr\0").unwrap() + names;
    without[at + 1] = b'x';
    let by_header = Module::build(&without).unwrap();
    assert_eq!(by_header.tables().rules.len(), written.tables().rules.len(), "the header leads to it");
    for p in without[64..64 + 56 * 16].chunks_exact_mut(56).filter(|p| p[..4] == 0x6474_e550u32.to_le_bytes()) {
        p[0] = 0;
    }
    let made_up = Module::build(&without).unwrap();
    assert!(made_up.counts().linkage_tables >= 1 && made_up.counts().functions == 0);
    for pc in plt..plt + len {
        let machine = Machine { pc, sp: 0x7000_1000, bp: 0 };
        let [a, b] = [&written, &made_up].map(|m| machine.by_rule(m.rule(pc)));
        assert_eq!(a, b, "{:x}", pc - plt);
    }
}
