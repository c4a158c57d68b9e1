//! From addresses to frames that can be shown, each distinct address once.
//!
//! ```text
//!  (process, address, time) ─► Process::locate ─► module, offset in its file ─► address in the file ─► frames, kept
//!  address of the kernel ─► Kallsyms ─► name [module]
//!  memory without a file ─► PerfMap
//! ```
//!
//! A symbolizer belongs to one thread.

use crate::ReadAt;
use crate::demangle;
use crate::dwarf::Call;
use crate::files::{Files, Identity, Stamp};
use crate::kallsyms::Kallsyms;
use crate::module::Module;
use crate::module_id::ModuleId;
use crate::pack::{Pack, PackWriter};
use crate::process::Process;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// The most frames that are kept, names that are kept, and modules.
const MAX_FRAMES: usize = 4 << 20;
const MAX_NAMES: usize = 1 << 20;
const MAX_MODULES: usize = 1 << 16;
/// From here on addresses are the kernel's.
const KERNEL: u64 = 1 << 63;
/// The number under which frames of the kernel are kept.
const KERNEL_MODULE: u32 = u32::MAX;
/// What is shown where nothing is known.
const UNKNOWN: &str = "[unknown]";

/// A function that an address belongs to, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// The function's name; of the kernel's modules with the module: `helper [nf_tables]`. Where it is not known, the file and the address
    /// in it: `/lib/libx.so+0x1234`; or `[unknown]`.
    pub function: Rc<str>,
    /// Bytes from the start of the function whose code it is; 0 where that is not known.
    pub offset: u64,
    /// Source file.
    pub file: Option<Rc<str>>,
    /// Line in it; 0: not known.
    pub line: u32,
    /// It was inlined into the next frame.
    pub inlined: bool,
    /// `function` is a function's name.
    pub known: bool,
}

/// How names of C++ and Rust are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameStyle {
    /// With parameters: `acme::Widget::poke(int)`.
    #[default]
    Full,
    /// Without: `acme::Widget::poke`.
    Plain,
    /// As the linker knows them.
    Raw,
}

/// What distinguishes modules.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    BuildId(Vec<u8>),
    File(PathBuf, Option<Stamp>),
}

/// Turns addresses into frames.
pub struct Symbolizer {
    files: Rc<dyn Files>,
    style: NameStyle,
    lines: bool,
    modules: Vec<Module>,
    ids: HashMap<Key, ModuleId>,
    kernel: Option<Kallsyms>,
    kernel_pack: Option<Pack>,
    /// Names as they are shown, by names as the linker knows them.
    names: HashMap<Rc<str>, Rc<str>>,
    /// First frame and number of frames, by module and address.
    known: HashMap<(u32, u64), (u32, u32)>,
    frames: Vec<StackFrame>,
    /// The frames that were asked for last, where they are not kept.
    once: Vec<StackFrame>,
    calls: Vec<Call>,
}

impl Symbolizer {
    /// With files from `files`.
    pub fn new(files: impl Files + 'static) -> Symbolizer {
        Symbolizer {
            files: Rc::new(files),
            style: NameStyle::Full,
            lines: true,
            modules: Vec::new(),
            ids: HashMap::new(),
            kernel: None,
            kernel_pack: None,
            names: HashMap::new(),
            known: HashMap::new(),
            frames: Vec::new(),
            once: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// How names are shown.
    pub fn style(mut self, style: NameStyle) -> Symbolizer {
        self.style = style;
        self
    }

    /// Looks for functions only, and for those that were inlined, but not for source files and lines: at a fraction of the time.
    pub fn without_lines(mut self) -> Symbolizer {
        self.lines = false;
        self
    }

    /// The kernel's functions.
    pub fn set_kernel(&mut self, kernel: Kallsyms) {
        self.kernel = Some(kernel);
        self.known.retain(|(module, _), _| *module != KERNEL_MODULE);
    }

    /// The kernel's functions as they were packed ([`Self::packed_kernel`]).
    pub fn set_kernel_pack(&mut self, pack: Pack) {
        self.kernel_pack = Some(pack);
        self.known.retain(|(module, _), _| *module != KERNEL_MODULE);
    }

    /// The module of an identity; the same one for the same build id, whatever its path. None: there are too many.
    pub fn module(&mut self, identity: &Identity) -> Option<ModuleId> {
        self.add(identity, |s| Module::new(identity.clone(), Rc::clone(&s.files), s.lines))
    }

    /// A module whose bytes the caller has, such as the vDSO. Has no effect where the module is known.
    pub fn module_of_bytes(&mut self, identity: &Identity, bytes: Rc<dyn ReadAt>) -> Option<ModuleId> {
        self.add(identity, |s| Module::of_bytes(identity.clone(), bytes, Rc::clone(&s.files), s.lines))
    }

    fn add(&mut self, identity: &Identity, make: impl FnOnce(&Symbolizer) -> Module) -> Option<ModuleId> {
        let key = match &identity.build_id[..] {
            [] => Key::File(identity.path.clone(), identity.stamp),
            id => Key::BuildId(id.to_vec()),
        };
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        if self.modules.len() >= MAX_MODULES {
            return None;
        }
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(make(self));
        self.ids.insert(key, id);
        Some(id)
    }

    /// All modules.
    pub fn modules(&self) -> impl Iterator<Item = (ModuleId, &Module)> {
        self.modules.iter().enumerate().map(|(i, m)| (ModuleId(i as u32), m))
    }

    /// The frames of an address of a process, or of the kernel, at a time: the innermost first, at least one.
    ///
    /// A return address is that of the instruction behind the call, which may belong to another line: ask for the byte before it.
    pub fn resolve(&mut self, process: &Process, address: u64, time: u64) -> &[StackFrame] {
        if address >= KERNEL {
            return self.kernel_frames(address);
        }
        let located = process.locate(address, time);
        if let Some((id, offset)) = located.and_then(|l| Some((l.module?, l.offset))) {
            return match self.address_of(id, offset) {
                Some(address) => self.frames(id, address),
                None => self.unknown(id, offset),
            };
        }
        self.once.clear();
        let frame = match process.perf_map().find(address) {
            Some((name, start)) => StackFrame { offset: address - start, ..frame(self.shown(&Rc::from(name)), true) },
            None => frame(UNKNOWN.into(), false),
        };
        self.once.push(frame);
        &self.once
    }

    /// The address, in the file's own address space, of the byte at an offset of a module's file.
    pub fn address_of(&self, module: ModuleId, offset: u64) -> Option<u64> {
        self.modules.get(module.0 as usize)?.address_of(offset)
    }

    /// The frames of an address in a module's own address space: the innermost first, at least one.
    pub fn frames(&mut self, module: ModuleId, address: u64) -> &[StackFrame] {
        let key = (module.0, address);
        if let Some((first, count)) = self.known.get(&key) {
            return &self.frames[*first as usize..][..*count as usize];
        }
        let mut calls = std::mem::take(&mut self.calls);
        calls.clear();
        if let Some(module) = self.modules.get(module.0 as usize) {
            module.calls(address, &mut calls);
        }
        let mut frames: Vec<StackFrame> = calls.iter().map(|c| self.of_call(c, address, module)).collect();
        self.calls = calls;
        if frames.is_empty() {
            frames.push(frame(self.place(module, address), false));
        }
        self.keep(key, frames)
    }

    fn of_call(&mut self, call: &Call, address: u64, module: ModuleId) -> StackFrame {
        let function = match &call.function {
            Some(name) => self.shown(name),
            None => self.place(module, address),
        };
        let (file, known) = (call.file.clone(), call.function.is_some());
        let offset = if known { address.saturating_sub(call.start) } else { 0 };
        StackFrame { function, offset, file, line: call.line, inlined: call.inlined, known }
    }

    /// The frames of an address of the kernel: one.
    pub fn kernel_frames(&mut self, address: u64) -> &[StackFrame] {
        let key = (KERNEL_MODULE, address);
        if let Some((first, count)) = self.known.get(&key) {
            return &self.frames[*first as usize..][..*count as usize];
        }
        let found = self.kernel_call(address);
        let found = match found {
            Some(call) => {
                let name = call.function.unwrap_or_else(|| UNKNOWN.into());
                StackFrame { offset: address.saturating_sub(call.start), ..frame(self.shown(&name), true) }
            }
            None => frame(UNKNOWN.into(), false),
        };
        self.keep(key, vec![found])
    }

    fn kernel_call(&self, address: u64) -> Option<Call> {
        let mut calls = Vec::new();
        if let Some(pack) = &self.kernel_pack {
            pack.calls(address, &mut calls);
            if let Some(call) = calls.pop().or_else(|| pack.function(address)) {
                return Some(call);
            }
        }
        let f = self.kernel.as_ref()?.find(address)?;
        let name = match f.module {
            Some(module) => format!("{} [{module}]", f.name),
            None => f.name.to_string(),
        };
        Some(Call { function: Some(name.into()), file: None, line: 0, start: f.start, inlined: false })
    }

    /// Packs what is known of addresses of a module, and, where `whole`, of all its functions. The file is to be called
    /// [`crate::pack::file_name`].
    pub fn packed(&self, module: ModuleId, addresses: impl IntoIterator<Item = u64>, whole: bool) -> Option<Vec<u8>> {
        Some(self.modules.get(module.0 as usize)?.packed(addresses, whole))
    }

    /// Packs what is known of addresses of the kernel.
    pub fn packed_kernel(&self, addresses: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut writer = PackWriter::new(&Identity::new("[kernel]", &[]), None);
        for address in addresses {
            if let Some(call) = self.kernel_call(address) {
                writer.address(address, &[call]);
            }
        }
        writer.finish()
    }

    fn keep(&mut self, key: (u32, u64), frames: Vec<StackFrame>) -> &[StackFrame] {
        if self.frames.len() + frames.len() > MAX_FRAMES {
            self.frames.clear();
            self.known.clear();
        }
        let first = self.frames.len();
        self.known.insert(key, (first as u32, frames.len() as u32));
        self.frames.extend(frames);
        &self.frames[first..]
    }

    /// A frame of which nothing is known but the file.
    fn unknown(&mut self, module: ModuleId, offset: u64) -> &[StackFrame] {
        self.once.clear();
        let place = self.place(module, offset);
        self.once.push(frame(place, false));
        &self.once
    }

    fn place(&self, module: ModuleId, address: u64) -> Rc<str> {
        match self.modules.get(module.0 as usize) {
            Some(m) => format!("{}+{address:#x}", m.identity().path.display()).into(),
            None => UNKNOWN.into(),
        }
    }

    /// A name as it is shown.
    fn shown(&mut self, name: &Rc<str>) -> Rc<str> {
        if let Some(shown) = self.names.get(name) {
            return Rc::clone(shown);
        }
        let demangled = if self.style == NameStyle::Raw { None } else { demangle::of(name) };
        let shown: Rc<str> = match demangled {
            Some(d) if self.style == NameStyle::Plain => d.plain.into(),
            Some(d) => d.full.into(),
            None => Rc::clone(name),
        };
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(Rc::clone(name), Rc::clone(&shown));
        shown
    }
}

fn frame(function: Rc<str>, known: bool) -> StackFrame {
    StackFrame { function, offset: 0, file: None, line: 0, inlined: false, known }
}
