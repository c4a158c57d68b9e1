//! Backends: how a session is carried out. All deliver the same events through one trait.

pub mod agent;
mod code;
mod elf_file;
mod ids;
mod interface;
pub mod kernel;
mod launch;
pub mod perf;
pub mod ptrace;
pub mod recorded;
pub mod stats;

pub use interface::{Attached, Backend, Deliver, Polled};

use crate::error::{Error, Result};
use crate::functions::Functions;
use crate::pipeline::recorder::Recorder;
use crate::pipeline::source::Source;
use crate::pipeline::thread::Threaded;
use crate::plan::{self, OnFull, Plan};
use crate::target::Target;

/// Starts what the plan asks for. Must be called before any thread is started. Events go to the recorder `keep`, if there is one, and
/// with `live` also to the caller that polls.
pub fn start(plan: &Plan, keep: Option<Recorder>, live: bool) -> Result<Source<'static>> {
    match plan.backend {
        plan::Backend::Agent => {
            let none = Functions::default();
            let functions = plan.functions.as_ref().unwrap_or(&none);
            let source = Source::new(Box::new(agent::Agent::start(plan, functions)?), keep);
            Ok(Source::of_thread(Box::new(Threaded::start(source, plan, live)?)))
        }
        plan::Backend::Kernel | plan::Backend::Perf if plan.on_full == OnFull::Block => Err(Error::usage(
            "--on-full block",
            format!("the {} backend cannot block the target", plan.backend.name()),
            if matches!(plan.target, Target::All { .. }) || plan.backend == plan::Backend::Perf {
                "leave it out: the rest is dropped and counted"
            } else {
                "use --backend ptrace, or --on-full drop"
            },
        )),
        plan::Backend::Kernel => {
            crate::rights::of_targets(&plan.target)?;
            let mut source = Source::new(Box::new(kernel::Kernel::start(plan)?), keep);
            source.set_call_enablings(&plan.call_enablings, &plan.evaluated_calls());
            Ok(Source::of_thread(Box::new(Threaded::start(source, plan, live)?)))
        }
        plan::Backend::Perf => {
            crate::rights::of_targets(&plan.target)?;
            let source = Source::new(Box::new(perf::Perf::start(plan)?), keep);
            Ok(Source::of_thread(Box::new(Threaded::start(source, plan, live)?)))
        }
        _ if matches!(plan.target, Target::All { .. }) => {
            Err(Error::usage("-a", "the whole machine needs the kernel backend", "leave --backend out, or use -p PID"))
        }
        plan::Backend::Auto | plan::Backend::Ptrace => {
            let mut source = Source::new(Box::new(ptrace::Session::start(plan)?), keep);
            source.set_call_enablings(&plan.call_enablings, &plan.evaluated_calls());
            Ok(source)
        }
    }
}
