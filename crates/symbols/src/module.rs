//! A file with code that a process has mapped: which functions its addresses belong to. Nothing is opened or read before an address needs
//! it.
//!
//! ```text
//!  address ─► pack? ─► its calls
//!          └► DWARF of the program or its debug file ─► inlined functions, file:line
//!           + .symtab | .dynsym + .gnu_debugdata | .plt ─► the function whose code it is, by the linker's name
//! ```

use crate::ReadAt;
use crate::build_id;
use crate::debug_link::{DebugLink, SharedLink};
use crate::dwarf::split::Split;
use crate::dwarf::{Call, Debug};
use crate::files::{Files, Identity, OpenFile};
use crate::headers::Headers;
use crate::pack::{Pack, PackWriter};
use crate::plt::{self, Plt};
use crate::symtab::SymbolTable;
use crate::xz;
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

/// The most bytes of `.gnu_debugdata`, packed.
const MAX_PACKED: u64 = 32 << 20;

/// Why less is known of a module than could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No file with its build id was found, and no pack.
    #[error("its file was not found, or has changed (name a directory with it: --symbols)")]
    NotFound,
    /// The file is not an ELF file of 64 bits.
    #[error("not an ELF file of 64 bits")]
    NotElf,
    /// The file has neither symbols nor debug information.
    #[error("it has no symbols")]
    NoSymbols,
    /// Its debug information takes more work than any compiler's does.
    #[error("its debug information is damaged")]
    Debug,
    /// Its debug information has lines alone: the rest is in split files (`.dwo`, `.dwp`), which were not found.
    #[error(
        "inlined functions are not shown: its split debug information (.dwo, .dwp) was not found (name a directory with it: --symbols)"
    )]
    Split,
    /// The file that dwz lets it share with others was not found.
    #[error(
        "inlined functions lack names: the file of dwz that it shares with others (.gnu_debugaltlink) was not found"
    )]
    Shared,
}

/// What was found for a module so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The file itself.
    pub program: Option<PathBuf>,
    /// The file with its debug information, where that is another one.
    pub debug: Option<PathBuf>,
    /// It was packed.
    pub packed: bool,
    /// How many symbols were read.
    pub symbols: usize,
    /// Its debug information is used.
    pub lines: bool,
    /// What is missing.
    pub problem: Option<Problem>,
}

/// An open file and its headers.
struct Opened {
    file: OpenFile,
    headers: Headers,
}

/// A file with code.
pub struct Module {
    identity: Identity,
    files: Rc<dyn Files>,
    /// Its bytes, where the caller has them.
    given: Option<Rc<dyn ReadAt>>,
    /// Whether source files and lines are wanted.
    lines: bool,
    pack: OnceCell<Option<Pack>>,
    program: OnceCell<Option<Opened>>,
    debug: OnceCell<Option<Opened>>,
    dwarf: OnceCell<Option<Debug<'static>>>,
    symbols: OnceCell<SymbolTable>,
    plt: OnceCell<Plt>,
    problem: Cell<Option<Problem>>,
    /// Calls of the address that was asked for last.
    scratch: RefCell<Vec<Call>>,
}

impl Module {
    /// A module whose files are found by `files`. Without `lines` source files and lines are not looked for.
    pub fn new(identity: Identity, files: Rc<dyn Files>, lines: bool) -> Module {
        Module {
            identity,
            files,
            given: None,
            lines,
            pack: OnceCell::new(),
            program: OnceCell::new(),
            debug: OnceCell::new(),
            dwarf: OnceCell::new(),
            symbols: OnceCell::new(),
            plt: OnceCell::new(),
            problem: Cell::new(None),
            scratch: RefCell::default(),
        }
    }

    /// A module whose bytes the caller has: the vDSO, a file that is open but has no name any more.
    pub fn of_bytes(identity: Identity, bytes: Rc<dyn ReadAt>, files: Rc<dyn Files>, lines: bool) -> Module {
        Module { given: Some(bytes), ..Module::new(identity, files, lines) }
    }

    /// What it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What was found so far.
    pub fn status(&self) -> Status {
        fn path(of: &OnceCell<Option<Opened>>) -> Option<PathBuf> {
            of.get().and_then(Option::as_ref).map(|o| o.file.path.clone())
        }
        Status {
            program: path(&self.program),
            debug: path(&self.debug),
            packed: matches!(self.pack.get(), Some(Some(_))),
            symbols: self.symbols.get().map_or(0, SymbolTable::len),
            lines: matches!(self.dwarf.get(), Some(Some(_))) && self.problem.get() != Some(Problem::Debug),
            problem: self.problem.get(),
        }
    }

    /// The address, in the file's own address space, of the byte at an offset of the file.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        if let Some(address) = self.pack().and_then(|p| p.address_of(offset)) {
            return Some(address);
        }
        self.code()?.headers.address_of(offset)
    }

    /// Adds the functions that an address belongs to, the innermost first; whether any is known. Names are as the linker knows them.
    pub fn calls(&self, address: u64, out: &mut Vec<Call>) -> bool {
        let from = out.len();
        if self.pack().is_some_and(|p| p.calls(address, out)) {
            // A pack has lines whether they are wanted or not.
            out[from..].iter_mut().filter(|_| !self.lines).for_each(|call| (call.file, call.line) = (None, 0));
            return out.len() > from;
        }
        let mut calls = self.scratch.take();
        calls.clear();
        let known = self.find(address, &mut calls);
        out.append(&mut calls);
        self.scratch.replace(calls);
        if !known {
            out.extend(self.pack().and_then(|p| p.function(address)));
        }
        out.len() > from
    }

    fn find(&self, address: u64, out: &mut Vec<Call>) -> bool {
        if let Some(debug) = self.dwarf().filter(|_| self.problem.get() != Some(Problem::Debug)) {
            debug.calls(address, self.lines, out);
            if debug.is_split() {
                self.problem.set(Some(Problem::Split));
            }
            if debug.restart() {
                self.problem.set(Some(Problem::Debug));
                out.clear();
            }
        }
        let by_source = out.last().and_then(|c| c.function.clone());
        if let Some(named) = self.symbols().find(address, by_source.as_deref()) {
            // A label of the assembler knows less than its source; a number that a linker has added means nothing.
            let function = match by_source.filter(|name| !named.sized || is_numbered(&named.name, name)) {
                Some(name) => name,
                None => named.name,
            };
            match out.last_mut() {
                Some(last) => last.function = Some(function),
                None => out.push(Call { function: Some(function), file: None, line: 0, start: 0, inlined: false }),
            }
            out.iter_mut().for_each(|c| c.start = named.start);
        } else if by_source.is_none()
            && let Some((name, start)) = self.plt_entry(address)
        {
            out.push(Call { function: Some(name.into()), file: None, line: 0, start, inlined: false });
        }
        !out.is_empty()
    }

    fn plt_entry(&self, address: u64) -> Option<(&str, u64)> {
        let program = self.program()?;
        program.headers.code_section(address).filter(|s| plt::is_plt(s))?;
        self.plt.get_or_init(|| Plt::read(&program.headers, &*program.file.bytes)).find(address)
    }

    fn pack(&self) -> Option<&Pack> {
        let read = || {
            let pack = Pack::parse(&self.files.pack(&self.identity)?).ok()?;
            (pack.identity().build_id == self.identity.build_id).then_some(pack)
        };
        self.pack.get_or_init(|| if self.given.is_some() { None } else { read() }).as_ref()
    }

    fn is_same(&self, bytes: &Rc<dyn ReadAt>) -> bool {
        self.identity.build_id.is_empty() || build_id::of(&**bytes).as_ref() == Some(&self.identity.build_id)
    }

    fn opened(&self, file: OpenFile) -> Option<Opened> {
        let Some(headers) = Headers::read(&*file.bytes) else {
            self.problem.set(Some(Problem::NotElf));
            return None;
        };
        Some(Opened { file, headers })
    }

    /// The file itself.
    fn program(&self) -> Option<&Opened> {
        let open = || {
            let given = self.given.clone().map(|bytes| OpenFile { path: self.identity.path.clone(), bytes });
            given.or_else(|| self.files.program(&self.identity)).filter(|f| self.is_same(&f.bytes))
        };
        self.program.get_or_init(|| self.opened(open()?)).as_ref()
    }

    /// The file with its debug information or symbols, where it lacks them itself.
    fn debug(&self) -> Option<&Opened> {
        let open = || {
            let program = self.program();
            let has = |name: &str| program.is_some_and(|p| p.headers.section(name).is_some_and(|s| s.size > 0));
            if has(".debug_info") {
                return None;
            }
            let link = program.and_then(|p| DebugLink::read(&p.headers, &*p.file.bytes));
            let file = self.files.debug(&self.identity_of(program), link.as_ref())?;
            self.opened(file).filter(|o| self.is_same(&o.file.bytes))
        };
        self.debug.get_or_init(open).as_ref()
    }

    /// What it is, with the build id that its file has where nobody said one.
    fn identity_of(&self, program: Option<&Opened>) -> Identity {
        let mut identity = self.identity.clone();
        if let Some(program) = program.filter(|_| identity.build_id.is_empty()) {
            identity.build_id = build_id::of(&*program.file.bytes).unwrap_or_default();
        }
        identity
    }

    /// Whichever file says where code lies.
    fn code(&self) -> Option<&Opened> {
        let found = self.program().or_else(|| self.debug());
        if found.is_none() && self.problem.get().is_none() && self.pack().is_none() {
            self.problem.set(Some(Problem::NotFound));
        }
        found
    }

    fn dwarf(&self) -> Option<&Debug<'static>> {
        let open = || {
            let has_debug = |o: &&Opened| o.headers.section(".debug_info").is_some_and(|s| s.size > 0);
            let of = self.program().filter(has_debug).or_else(|| self.debug().filter(has_debug))?;
            let link = SharedLink::read(&of.headers, &*of.file.bytes);
            let is_sharing = link.is_some();
            let shared = link.and_then(|l| self.files.shared(&l, &of.file.path).filter(|f| is_shared(f, &l)));
            let shared = shared.and_then(|f| Debug::of(&Headers::read(&*f.bytes)?, f.bytes, None));
            if is_sharing && shared.is_none() {
                self.problem.set(Some(Problem::Shared));
            }
            let debug = Debug::of(&of.headers, Rc::clone(&of.file.bytes), shared)?;
            let (files, path) = (Rc::clone(&self.files), self.identity.path.clone());
            let open = move |wanted: &Split| files.split(wanted, &path).into_iter().map(|f| f.bytes).collect();
            Some(debug.with_split_files(Rc::new(open)))
        };
        self.dwarf.get_or_init(open).as_ref()
    }

    fn symbols(&self) -> &SymbolTable {
        self.symbols.get_or_init(|| {
            let mut table = SymbolTable::default();
            let Some(code) = self.code() else { return table };
            let has_table = |o: &&Opened| o.headers.section(".symtab").is_some_and(|s| s.size > 0);
            match self.program().filter(has_table).or_else(|| self.debug().filter(has_table)) {
                Some(of) => table.add(&of.headers, &of.file.bytes, &code.headers),
                None => {
                    table.add(&code.headers, &code.file.bytes, &code.headers);
                    self.small_table().and_then(|(headers, bytes)| table.add(&headers, &bytes, &code.headers))
                }
            };
            table.finish(&code.headers);
            if table.is_empty() && self.problem.get().is_none() && self.dwarf().is_none() {
                self.problem.set(Some(Problem::NoSymbols));
            }
            table
        })
    }

    /// What `.gnu_debugdata` has in it.
    fn small_table(&self) -> Option<(Headers, Rc<dyn ReadAt>)> {
        let program = self.program()?;
        let packed = program.headers.bytes(&*program.file.bytes, ".gnu_debugdata", MAX_PACKED)?;
        let bytes = xz::unpack(&packed)?;
        Some((Headers::read(&bytes[..])?, Rc::new(bytes)))
    }

    /// Packs what is known of addresses, and, where `whole`, of all functions.
    pub fn packed(&self, addresses: impl IntoIterator<Item = u64>, whole: bool) -> Vec<u8> {
        let code = self.code();
        let mut writer = PackWriter::new(&self.identity, code.map(|o| &o.headers));
        let mut addresses: Vec<u64> = addresses.into_iter().collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut calls = Vec::new();
        for address in addresses {
            calls.clear();
            if self.calls(address, &mut calls) {
                writer.address(address, &calls);
            }
        }
        if whole {
            self.symbols().functions().for_each(|f| writer.function(f.start, f.end, &f.name));
            let plt = self.program().map(|p| Plt::read(&p.headers, &*p.file.bytes));
            plt.iter().flat_map(Plt::entries).for_each(|(from, to, name)| writer.function(*from, *to, name));
        }
        writer.finish()
    }
}

/// Whether a symbol is a name with a number behind it, by which optimisers of whole programs distinguish local functions.
fn is_numbered(symbol: &str, name: &str) -> bool {
    let Some(rest) = symbol.strip_prefix(name) else { return false };
    let number = [".llvm.", ".lto_priv.", "."].iter().find_map(|mark| rest.strip_prefix(mark));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn is_shared(file: &OpenFile, link: &SharedLink) -> bool {
    build_id::of(&*file.bytes).as_ref() == Some(&link.build_id)
}

#[cfg(test)]
mod tests {
    use super::is_numbered;

    #[test]
    fn numbers_of_optimisers_are_no_part_of_names() {
        for symbol in ["f.3599", "f.llvm.12", "f.lto_priv.0"] {
            assert!(is_numbered(symbol, "f"), "{symbol}");
        }
        for symbol in ["f", "f.", "f.cold", "f.constprop.0", "ff.1", "g.1"] {
            assert!(!is_numbered(symbol, "f"), "{symbol}");
        }
    }
}
