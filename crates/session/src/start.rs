//! How a session starts: the backend that its plan names, and what takes the events from it.

use crate::joined::{self, Sampled};
use collector::Agent;
use engine::error::{Error, Result};
use engine::pipeline::backend::Backend;
use engine::pipeline::recorder::Recorder;
use engine::pipeline::source::Source;
use engine::pipeline::thread::Threaded;
use engine::plan::{self, OnFull, Plan};
use engine::request::functions::Functions;
use engine::rights;
use engine::target::Target;
use kernel::Kernel;
use unprivileged::{perf, ptrace};

/// Starts the plan. Must be called before any thread is started. Events go to the recorder `keep`, if there is one, and with `live` also to the
/// caller that polls. Where functions are traced beside something else, the environment of the plan's command gets the variables that load the
/// agent.
pub fn start(plan: &mut Plan, keep: Option<Recorder>, live: bool) -> Result<Source<'static>> {
    plan.share_callers();
    let mut beside = joined::offer(plan)?;
    let plan = &*plan;
    let first: Box<dyn Backend> = match plan.backend {
        plan::Backend::Agent => {
            let none = Functions::default();
            let functions = plan.functions.as_ref().unwrap_or(&none);
            Box::new(Agent::start(plan, functions)?)
        }
        plan::Backend::Kernel | plan::Backend::Perf if plan.on_full == OnFull::Block => {
            return Err(Error::usage(
                "--on-full block",
                format!("the {} backend cannot block the target", plan.backend.name()),
                if matches!(plan.target, Target::All { .. }) || plan.backend == plan::Backend::Perf {
                    "leave it out: the rest is dropped and counted"
                } else {
                    "use --backend ptrace, or --on-full drop"
                },
            ));
        }
        plan::Backend::Kernel => {
            rights::of_targets(&plan.target)?;
            beside = beside.or(joined::inject(plan)?);
            Box::new(Kernel::start(plan)?)
        }
        plan::Backend::Perf => {
            rights::of_targets(&plan.target)?;
            // Each thread has rights of its own: before there are others.
            rights::act_as_the_user();
            beside = beside.or(joined::inject(plan)?);
            Box::new(perf::Perf::start(plan)?)
        }
        _ if matches!(plan.target, Target::All { .. }) => {
            return Err(Error::usage(
                "-a",
                "the whole machine needs the kernel backend",
                "leave --backend out, or use -p PID",
            ));
        }
        plan::Backend::Auto | plan::Backend::Ptrace => {
            let mut session = ptrace::Session::start(plan)?;
            beside = beside.or(joined::inject(plan)?);
            let samples = Sampled::samples(&mut session, plan)?;
            session.attach();
            match samples {
                Some(samples) => Box::new(Sampled::new(Box::new(session), samples)),
                None => Box::new(session),
            }
        }
    };
    let backend = match beside {
        Some(beside) => Box::new(joined::Joined::start(first, beside, plan)?),
        None if plan.may_get_agent() => Box::new(joined::Joined::alone(first, plan)),
        None => first,
    };
    let mut source = Source::new(backend, keep);
    match plan.backend {
        plan::Backend::Agent | plan::Backend::Perf => {}
        _ => source.set_call_enablings(&plan.enablings, &plan.evaluated_calls()),
    }
    match plan.backend {
        // A slow view makes the target wait.
        plan::Backend::Auto | plan::Backend::Ptrace => Ok(source),
        _ => Ok(Source::of_thread(Box::new(Threaded::start(source, plan, live)?))),
    }
}
