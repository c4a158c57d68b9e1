//! Runs commands in turn and measures how long they take; a run that fails its check is an error, never a sample.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Reads what a run has written and returns how many events it recorded.
pub type Check = Box<dyn Fn() -> Result<u64>>;

/// A command to measure.
pub struct Case {
    pub name: String,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Called after each run that exited with 0.
    pub check: Check,
}

impl Case {
    /// The command, ready to run, without terminal; what it prints is thrown away, complaints are kept.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// What was measured of one case.
pub struct Samples {
    pub name: String,
    pub walls: Vec<Duration>,
    /// The number of events, the same in each run.
    pub events: u64,
}

impl Samples {
    pub fn median(&self) -> Duration {
        let mut walls = self.walls.clone();
        walls.sort();
        let middle = walls.len() / 2;
        if walls.len() % 2 == 1 { walls[middle] } else { (walls[middle - 1] + walls[middle]) / 2 }
    }

    pub fn min(&self) -> Duration {
        self.walls.iter().min().copied().unwrap_or_default()
    }

    pub fn max(&self) -> Duration {
        self.walls.iter().max().copied().unwrap_or_default()
    }

    /// The ratio of the medians.
    pub fn ratio(&self, base: &Samples) -> f64 {
        self.median().as_secs_f64() / base.median().as_secs_f64()
    }
}

/// Between runs, so that writeback and dying processes of one do not fall into the next.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs all cases in turn, so many times: whatever the machine does meanwhile hits all of them.
pub fn alternate(cases: &[Case], runs: usize) -> Result<Vec<Samples>> {
    let mut samples: Vec<Samples> =
        cases.iter().map(|case| Samples { name: case.name.clone(), walls: Vec::new(), events: 0 }).collect();
    // One round that does not count fills the caches.
    for round in 0..=runs {
        for (case, samples) in cases.iter().zip(&mut samples) {
            sleep(PAUSE);
            let (wall, events) = once(case).with_context(|| format!("{}, round {round}", case.name))?;
            if round == 0 {
                samples.events = events;
                continue;
            }
            if events != samples.events {
                bail!("{}: {events} events in round {round}, {} before", case.name, samples.events);
            }
            samples.walls.push(wall);
        }
    }
    Ok(samples)
}

fn once(case: &Case) -> Result<(Duration, u64)> {
    let mut command = case.command();
    let start = Instant::now();
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let wall = start.elapsed();
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let events = (case.check)().with_context(|| format!("{command:?}"))?;
    Ok((wall, events))
}

#[cfg(test)]
mod tests {
    use super::{Case, Samples, alternate};
    use std::cell::Cell;
    use std::time::Duration;

    fn case(program: &str, check: super::Check) -> Case {
        Case { name: program.into(), argv: vec![program.into()], env: Vec::new(), check }
    }

    #[test]
    fn median_of_odd_and_even() {
        let samples = |walls: &[u64]| Samples {
            name: String::new(),
            walls: walls.iter().map(|&ms| Duration::from_millis(ms)).collect(),
            events: 0,
        };
        assert_eq!(samples(&[5, 1, 9]).median(), Duration::from_millis(5));
        assert_eq!(samples(&[4, 1, 9, 2]).median(), Duration::from_millis(3));
    }

    #[test]
    fn a_failing_command_and_a_changing_count_are_errors() {
        assert!(alternate(&[case("false", Box::new(|| Ok(1)))], 1).is_err());
        let count = Cell::new(0);
        let changing = Box::new(move || Ok(count.replace(count.get() + 1)));
        assert!(alternate(&[case("true", changing)], 1).is_err());
        assert_eq!(alternate(&[case("true", Box::new(|| Ok(1)))], 3).unwrap()[0].walls.len(), 3);
    }
}
