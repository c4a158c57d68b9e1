//! Packs of a trace: what is known of its addresses, in `.trapline/symbols` of its directory, a file for each module and one for the
//! kernel ([`symbols::pack`]), and for each process those lines of `/tmp/perf-PID.map` that it needs.

use super::Resolver;
use ctf::folder::Folder;
use ctf::store::{OWN, PACKS};
use std::io::Read;
use std::path::Path;
use symbols::files::Identity;
use symbols::module::Problem;
use symbols::pack;

/// The largest pack that is read, bytes.
const MAX: u64 = 1 << 30;

/// What the kernel is called as a module.
pub fn kernel_identity() -> Identity {
    Identity::new("[kernel]", &[])
}

/// The pack of a module. No link is followed.
pub fn read(trace: &Path, of: &Identity) -> Option<Vec<u8>> {
    read_file(trace, &pack::file_name(of))
}

/// All packs of a trace: their names and what is in them.
pub fn all(trace: &Path) -> Vec<(String, Vec<u8>)> {
    let own = Folder::open(trace).and_then(|folder| folder.inner(OWN)?.inner(PACKS));
    let names = own.and_then(|packs| packs.names()).unwrap_or_default();
    let text = names.iter().filter_map(|name| name.to_str());
    text.filter_map(|name| Some((name.to_owned(), read_file(trace, name)?))).collect()
}

/// The pack of this name. No link is followed.
pub fn read_file(trace: &Path, name: &str) -> Option<Vec<u8>> {
    let folder = Folder::open(trace).ok()?.inner(OWN).ok()?.inner(PACKS).ok()?;
    let file = folder.read(name).ok()?;
    let len = file.metadata().ok().map(|m| m.len()).filter(|n| *n <= MAX)?;
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A pack to be written.
pub struct Packed {
    /// The name of its file.
    pub file: String,
    /// The module, for messages.
    pub module: String,
    /// Addresses in it.
    pub addresses: usize,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl Resolver {
    /// Packs of everything that was asked for of a resolver made by [`Resolver::to_pack`]; none of modules whose files were not found.
    pub fn packed(&self) -> Vec<Packed> {
        let Some(asked) = &self.asked else { return Vec::new() };
        let mut all = Vec::new();
        for (id, module) in self.symbolizer.modules() {
            let Some(addresses) = asked.modules.get(&id) else { continue };
            if module.status().problem == Some(Problem::NotFound) {
                continue;
            }
            let Some(bytes) = self.symbolizer.packed(id, addresses.iter().copied(), false) else { continue };
            let identity = module.identity();
            let (file, module) = (pack::file_name(identity), identity.path.display().to_string());
            all.push(Packed { file, module, addresses: addresses.len(), bytes });
        }
        all.extend(self.jit.packed());
        if !asked.kernel.is_empty() && self.kernel.trouble().is_none() {
            let identity = kernel_identity();
            let bytes = self.symbolizer.packed_kernel(asked.kernel.iter().copied());
            let (file, module) = (pack::file_name(&identity), "[kernel]".to_string());
            all.push(Packed { file, module, addresses: asked.kernel.len(), bytes });
        }
        all
    }
}
