//! A slab session: what its directory has, and what the commands do with it.
//!
//! `stop` returns when no program is recording an allocation any more, and `reset` replaces the table when no program has the old one
//! any more: both by the same call of the kernel, which puts a map into a map of maps and waits until the programs that run have
//! ended. So what is not in the table after a stop and a reset never will be.

use super::caches::Caches;
use super::place::{Folder, LINK, Place};
use super::points::{self, Slab};
use super::programs::{self, ABOUT, MapSet, REMEMBERED_BYTES};
use super::{only_root, unable, words};
use crate::error::{Error, Result};
use bpf::slab::{KEY, state, value};
use std::io;
use std::sync::atomic::Ordering;
use sys::bpf::info::{self, Object};
use sys::bpf::link::Link;
use sys::bpf::map::{ANY, Map, MapKind, Values};
use sys::bpf::pin;
use sys::btf::KernelBtf;

/// The first line of the description of a session.
const FORMAT: &str = "trapline slab session 1";
/// The link of a raw tracepoint (`BPF_LINK_TYPE_RAW_TRACEPOINT`).
const RAW_TRACEPOINT: u32 = 1;

/// How a session is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The slab's name, as the user gives it.
    pub name: String,
    /// Room for this many objects; none: [`Settings::ROOM`].
    pub room: Option<u32>,
}

impl Settings {
    /// Room for objects, where none is asked for: 33 MB.
    pub const ROOM: u32 = 100_000;
    /// The most room: 3.3 GB.
    pub const MOST_ROOM: u32 = 10_000_000;
}

/// What `start` has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// The session was there, stopped, and goes on.
    pub continued: bool,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Recording; none: it is not whole.
    pub running: Option<bool>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Record no more allocations.
    Stop,
    /// Forget all objects.
    Reset,
}

/// A session, open. Nobody changes it meanwhile.
pub struct Session {
    /// The slab's name.
    pub name: String,
    /// The name of the cache; that of the slab for pages.
    pub cache: String,
    /// Room for this many objects.
    pub room: u32,
    state: Values,
    objects: Map,
    pub(super) remembered: Map,
    links: Vec<Link>,
    _place: Place,
}

fn no_session(name: &str) -> Error {
    Error::failed(name, "it is not being traced", format!("trapline slab start {name}"))
}

/// Begins a session, or goes on with one that was stopped.
pub fn start(settings: &Settings) -> Result<Started> {
    only_root()?;
    let name = settings.name.as_str();
    let _ = sys::bpf::raise_memory_limit();
    let btf = KernelBtf::kernel().map_err(|e| unable(name, &e))?;
    let mut caches = None;
    let slab = Slab::named(name, || {
        let all = Caches::read(&btf)?;
        caches = Some(all.clone());
        Ok(all)
    })?;
    let (place, mounted) = Place::make()?;
    let mut notes = Vec::new();
    if mounted {
        notes.push(format!("bpffs was not mounted: it is now, at {}", sys::bpffs::PATH));
    }
    if place.session(name)?.is_some() {
        let session = Session::open(place, name)?;
        if session.is_running() {
            return Err(Error::failed(name, "it is being traced already", format!("trapline slab print {name}")));
        }
        if settings.room.is_some_and(|room| room != session.room) {
            notes.push(format!("{name}: the session has room for {} objects; --max is for new ones", session.room));
        }
        session.set_running(true);
        return Ok(Started { continued: true, notes });
    }
    explain(name, &slab, caches.as_ref(), &mut notes);
    let points = points::of(name, &slab, &btf)?;
    if points.by_name {
        notes.push(format!(
            "{name}: this kernel does not list its caches' addresses (Linux 6.13): the first one of this name is taken"
        ));
    }
    let made = make(&place, settings, &slab, &points, &btf);
    if made.is_err() {
        let _ = place.remove(name);
        place.leave();
    }
    made.map(|()| Started { continued: false, notes })
}

/// What the user should know of the cache.
fn explain(name: &str, slab: &Slab, caches: Option<&Caches>, notes: &mut Vec<String>) {
    let Slab::Cache(found) = slab else { return };
    let cache = &found.cache;
    if found.twins > 1 {
        notes.push(format!("{name}: {} slabs have this name; the first one is taken", found.twins));
    }
    if !cache.aliases.is_empty() {
        let mut all: Vec<&str> = cache.aliases.iter().chain([&cache.name]).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        notes.push(format!(
            "{name}: the kernel has merged {}: objects of all of them are shown (boot with slab_nomerge to keep them apart)",
            all.join(", ")
        ));
    }
    let like = caches.map(|c| c.like(cache)).unwrap_or_default();
    if !like.is_empty() {
        notes.push(format!(
            "{name}: this kernel does not tell it from {} (Linux 6.13 does): objects of all of them are shown",
            like.join(", ")
        ));
    }
}

fn make(place: &Place, settings: &Settings, slab: &Slab, points: &points::Points, btf: &KernelBtf) -> Result<()> {
    let name = settings.name.as_str();
    let cannot = |e: io::Error| unable(name, &e);
    place.remove_unfinished(name)?;
    let room = settings.room.unwrap_or(Settings::ROOM);
    let maps = MapSet::make(room).map_err(cannot)?;
    let cache = match slab {
        Slab::Cache(found) => found.cache.name.as_str(),
        Slab::Pages(_) => name,
    };
    let about = format!("{FORMAT}\n{name}\n{cache}\n{room}\n");
    let mut bytes = about.into_bytes();
    if bytes.len() > ABOUT as usize {
        return Err(cannot(io::ErrorKind::InvalidInput.into()));
    }
    bytes.resize(ABOUT as usize, 0);
    maps.about.update(&[0; 4], &bytes, ANY).map_err(cannot)?;
    let folder = place.begin(name)?;
    let pinned = |what: &dyn Fn(&str) -> io::Result<()>, file: &str| what(file).map_err(cannot);
    for (map, file) in maps_by_name(&maps) {
        pinned(&|file| pin::pin(map, &folder.at(file)), file)?;
    }
    for (nth, (tracepoint, link)) in programs::attach(name, points, &maps, btf)?.iter().enumerate() {
        pinned(&|file| pin::pin(link, &folder.at(file)), &format!("{LINK}{nth:02}-{tracepoint}"))?;
    }
    place.finish(name)?;
    let state = maps.state.mmap().map_err(cannot)?;
    set(&state, true);
    Ok(())
}

fn maps_by_name(maps: &MapSet) -> [(&Map, &'static str); 4] {
    [(&maps.about, "about"), (&maps.state, "state"), (&maps.objects, "objects"), (&maps.remembered, "remembered")]
}

fn set(state: &Values, running: bool) {
    if let Some(word) = state.word(state::RUNNING) {
        word.store(running.into(), Ordering::SeqCst);
    }
}

/// The sessions.
pub fn sessions() -> Result<Vec<Listed>> {
    let Some(place) = Place::find()? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (name, whole) in place.names()? {
        let running = if whole { running_in(&place, &name) } else { None };
        found.push(Listed { name, running });
    }
    Ok(found)
}

/// Whether a session is running; none where it is not whole.
fn running_in(place: &Place, name: &str) -> Option<bool> {
    let parts = Parts::open(&place.session(name).ok()??, name).ok()?;
    Some(is_running(&parts.state))
}

fn is_running(state: &Values) -> bool {
    state.word(state::RUNNING).is_some_and(|w| w.load(Ordering::SeqCst) != 0)
}

/// Ends a session, with everything that it has in the kernel.
pub fn clear(name: &str) -> Result<()> {
    only_root()?;
    let Some(place) = Place::find()? else { return Err(no_session(name)) };
    let found = place.remove(name);
    place.leave();
    match found? {
        true => Ok(()),
        false => Err(no_session(name)),
    }
}

/// What a directory has, checked.
struct Parts {
    lines: Vec<String>,
    state: Values,
    objects: Map,
    remembered: Map,
    links: Vec<Link>,
}

impl Parts {
    fn open(folder: &Folder, name: &str) -> Result<Parts> {
        let broken = |why: &str| {
            let todo = format!("trapline slab clear {name}");
            Error::failed(folder.path.display().to_string(), format!("no session of this trapline: {why}"), todo)
        };
        let object = |file: &str| -> Result<std::os::fd::OwnedFd> {
            if !folder.is_object(file) {
                return Err(broken(&format!("'{file}' is missing, or no object of bpf(2)")));
            }
            pin::open(&folder.at(file)).map_err(|e| broken(&format!("'{file}': {}", words(&e))))
        };
        let map = |file: &str, kind: MapKind, key: usize, value: usize| -> Result<Map> {
            let other = || broken(&format!("'{file}' is no such map"));
            let map = Map::of_descriptor(object(file)?).map_err(|_| other())?;
            if map.kind() == kind && map.sizes() == (key, value) { Ok(map) } else { Err(other()) }
        };
        let about = map("about", MapKind::Array, 4, ABOUT as usize)?;
        let mut text = vec![0; ABOUT as usize];
        about.lookup(&[0; 4], &mut text).map_err(|e| broken(&words(&e)))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<String> = text.trim_end_matches('\0').lines().map(str::to_string).collect();
        if lines.len() != 4 || lines[0] != FORMAT || lines[1] != name {
            return Err(broken("it is described otherwise"));
        }
        let state = map("state", MapKind::Array, 4, state::BYTES)?;
        let objects = map("objects", MapKind::ArrayOfMaps, 4, 4)?;
        let remembered = map("remembered", MapKind::Hash, 8, REMEMBERED_BYTES as usize)?;
        let mut links = Vec::new();
        let mut names = folder.names().map_err(|e| broken(&words(&e)))?;
        names.sort();
        for file in names.iter().filter(|n| n.starts_with(LINK)) {
            let link = Link::of_descriptor(object(file)?).map_err(|_| broken(&format!("'{file}' is no link")))?;
            match info::link(&link) {
                Ok(info) if info.kind == RAW_TRACEPOINT => links.push(link),
                _ => return Err(broken(&format!("'{file}' is another kind of link"))),
            }
        }
        if links.len() < 2 {
            return Err(broken("its programs are not attached"));
        }
        let state = state.mmap().map_err(|e| broken(&words(&e)))?;
        Ok(Parts { lines, state, objects, remembered, links })
    }
}

impl Session {
    /// Finds the session of a slab.
    pub fn find(name: &str) -> Result<Session> {
        only_root()?;
        match Place::find()? {
            Some(place) => Session::open(place, name),
            None => Err(no_session(name)),
        }
    }

    fn open(place: Place, name: &str) -> Result<Session> {
        let Some(folder) = place.session(name)? else { return Err(no_session(name)) };
        let parts = Parts::open(&folder, name)?;
        let room = parts.lines[3].parse().unwrap_or(0);
        let Parts { lines, state, objects, remembered, links } = parts;
        let cache = lines[2].clone();
        Ok(Session { name: name.into(), cache, room, state, objects, remembered, links, _place: place })
    }

    /// Whether allocations are recorded.
    pub fn is_running(&self) -> bool {
        is_running(&self.state)
    }

    fn set_running(&self, running: bool) {
        set(&self.state, running);
    }

    /// The table of objects.
    pub(super) fn table(&self) -> io::Result<Map> {
        let table = self.objects.inner(&[0; 4])?.ok_or(io::ErrorKind::InvalidData)?;
        let is = table.kind() == MapKind::Hash && table.sizes() == (KEY as usize, value::BYTES);
        if is { Ok(table) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    /// How many events no program has seen, at most: those that both programs of a place have missed, because each was running on that
    /// CPU already.
    pub(super) fn missed(&self) -> u64 {
        let missed = |link: &Link| {
            let id = info::link(link).ok()?.program;
            info::program(&info::by_id(Object::Program, id).ok()?).ok().map(|p| p.recursion_misses)
        };
        let of = |pair: &[Link]| pair.iter().map(|l| missed(l).unwrap_or(0)).min().unwrap_or(0);
        self.links.chunks(2).map(of).sum()
    }

    /// Carries a request out.
    pub fn act(&self, command: Command) -> Result<()> {
        let done = match command {
            Command::Stop => self.stop(),
            Command::Reset => self.reset(),
        };
        done.map_err(|e| unable(&self.name, &e))
    }

    fn stop(&self) -> io::Result<()> {
        self.set_running(false);
        // Returns when the programs that run have ended.
        self.objects.put_map(&[0; 4], &self.table()?)
    }

    fn reset(&self) -> io::Result<()> {
        self.objects.put_map(&[0; 4], &programs::table(self.room)?)?;
        self.forget_counts()
    }

    fn forget_counts(&self) -> io::Result<()> {
        let mut keys = Vec::new();
        self.remembered.each(1024, |key, _| keys.push(key.to_vec()))?;
        keys.iter().try_for_each(|key| self.remembered.delete(key).map(drop))
    }
}
