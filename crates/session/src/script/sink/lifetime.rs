//! The life of a script: its probes are attached, it begins, intervals pass, it ends.

use super::Script;
use crate::output::complain;
use engine::pipeline::world::World;
use engine::{Error, Result};
use lang::diag::start;
use sys::signal;
use views::script as view;

/// SIGUSR1: who sends it wants to see the maps as they are now, or has a clause for it.
const PRINT: i32 = 10;
/// Intervals that are later than this, ns, are left out.
const LATEST: u64 = 1_000_000_000;
/// Over a trace, all but this many at once.
const MOST_TICKS: u64 = 10_000_000;

impl Script {
    /// Where each clause runs, a line each.
    fn explained(&self) -> Vec<String> {
        let line = |(nth, clause): (usize, &lang::script::ir::Clause)| {
            let at = start(&self.source.0, clause.span, &self.source.1);
            let probes = clause.points.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
            let own = clause.points.iter().all(|p| p.is_own());
            let from_records = self.from_records.as_ref().is_some_and(|w| w.has(nth));
            let how = match own {
                true => "in trapline".into(),
                false if from_records && self.takes_sums => "in the process, in rows of each thread".into(),
                false if from_records => "in trapline, over the records of each thread".into(),
                false => self.in_kernel.place(nth).unwrap_or("in trapline, over the events of its probes".into()),
            };
            format!("{at}: {probes}: {how}")
        };
        self.program.clauses.iter().enumerate().map(line).collect()
    }

    /// It is to say when its probes are attached, and where its clauses run then.
    pub fn announce(&mut self, wanted: bool, explains: bool) {
        // A signal that cannot be taken ends the script, as it would without this.
        let _ = signal::count_signal(PRINT);
        (self.announces, self.explains) = (wanted, explains);
    }

    /// Its probes are attached.
    pub fn attached(&mut self) {
        if std::mem::take(&mut self.explains) {
            self.explained().iter().for_each(|line| complain(line));
        }
        if !std::mem::take(&mut self.announces) {
            return;
        }
        self.in_kernel.refused().iter().for_each(|line| complain(line));
        let n = self.places.count();
        if self.json {
            let mut line = Vec::new();
            view::json::line("attached_probes", &mut line, |out| {
                out.extend_from_slice(format!("{{\"probes\": {n}}}").as_bytes());
            });
            self.output.write_lines(&line);
            self.output.flush();
        } else {
            eprintln!("Attached {n} probe{}", if n == 1 { "" } else { "s" });
        }
    }

    /// Runs `begin`.
    pub fn begin(&mut self, world: Option<&World>) {
        for clause in self.places.begin.clone() {
            self.tick(clause, self.started, world);
        }
        self.set_out(self.started);
        self.output.flush();
    }

    /// Runs the clauses that walk over objects of the kernel: each of its objects once.
    ///
    /// # Errors
    /// The kernel does not walk over them.
    pub fn walk(&mut self) -> Result<()> {
        for (objects, clause) in self.places.objects.clone() {
            let walked = objects.each(|values| {
                let words: Vec<(&str, u64)> = objects.words.iter().map(|w| w.0).zip(values.iter().copied()).collect();
                self.moment(clause, sys::time::monotonic(), None, &words);
                self.machine.exit().is_none() && !self.is_unread()
            });
            let todo = "it takes Linux 5.8 with BTF; task_vma takes 5.12";
            walked.map_err(|e| Error::failed(format!("iter:{}", objects.name), e.to_string(), todo))?;
        }
        self.output.flush();
        Ok(())
    }

    /// Intervals begin now.
    pub fn set_out(&mut self, now: u64) {
        self.due = self.places.intervals.iter().map(|(period, _)| now.saturating_add(*period)).collect();
    }

    /// Runs the intervals that are due until then, in the order of their times.
    pub fn until(&mut self, time: u64, world: Option<&World>) {
        while let Some((due, nth)) = self.due.iter().enumerate().map(|(nth, due)| (*due, nth)).min() {
            if due > time || self.machine.exit().is_some() {
                return;
            }
            let (period, clause) = self.places.intervals[nth];
            self.tick(clause, due, world);
            // What could not be kept up with is made up for, but not without end.
            let late = if self.past { period.saturating_mul(MOST_TICKS) } else { LATEST.max(period) };
            let next = due.saturating_add(period);
            self.due[nth] = if next < time.saturating_sub(late) { time.saturating_add(period) } else { next };
        }
    }

    /// Runs `end`, and prints the maps.
    pub fn finish(&mut self, world: Option<&World>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let time = self.ended.unwrap_or(self.last.max(self.idle));
        self.ended = Some(time);
        self.until(time, world);
        for clause in self.places.end.clone() {
            self.tick(clause, time, world);
        }
        self.sync(0..self.program.maps.len());
        if let Some(told) = self.collected.as_ref().map(|c| c.told()) {
            self.machine.bad_read(told.bad_reads);
            told.refused.iter().for_each(|(map, n)| self.machine.refuse(*map, *n));
            told.faults.iter().for_each(|(fault, at, n)| self.machine.fault(*fault, *at, *n));
        }
        if !self.json {
            self.output.write_lines(b"\n\n");
        }
        self.with_host(world, time, |machine, host, _| machine.print_maps(host));
        self.output.flush();
    }

    /// Runs the clauses of SIGUSR1 as often as it has come; prints all maps, where there are none.
    pub fn print_if_asked(&mut self, world: Option<&World>) {
        let asked = signal::counted(PRINT);
        let before = std::mem::replace(&mut self.asked, asked);
        if before != asked && !self.places.signals.is_empty() {
            for _ in 0..asked.wrapping_sub(before) {
                for clause in self.places.signals.clone() {
                    self.tick(clause, sys::time::monotonic(), world);
                }
            }
            self.output.flush();
        } else if before != asked {
            self.sync(0..self.program.maps.len());
            self.with_host(world, self.last, |machine, host, _| machine.print_maps(host));
            self.output.flush();
        }
    }
}
