//! The metadata of a trace: what was traced, where and how, and the classes of its events.

use super::Config;
use ctf::format::{self, Format};
use ctf::model::{ByteOrder, Clock, EnvValue, Metadata};
use sys::proc;

/// The text of the metadata.
pub fn text(config: &Config, uuid: [u8; 16]) -> String {
    ctf::print::tsdl(&metadata(config, uuid))
}

/// What is said of the trace as a whole.
fn metadata(config: &Config, uuid: [u8; 16]) -> Metadata {
    let offset = config.realtime_offset;
    let text = |s: &str| EnvValue::Str(s.to_string());
    let version: Vec<i64> = env!("CARGO_PKG_VERSION").split('.').map(|n| n.parse().unwrap_or(0)).collect();
    let part = |i: usize| EnvValue::Int(version.get(i).copied().unwrap_or(0));
    let env = vec![
        ("hostname".into(), text(&proc::host_name())),
        ("domain".into(), text("trapline")),
        (format::KEY.into(), EnvValue::Int(Format::NOW.version())),
        ("tracer_name".into(), text("trapline")),
        ("tracer_major".into(), part(0)),
        ("tracer_minor".into(), part(1)),
        ("tracer_patchlevel".into(), part(2)),
        ("sysname".into(), text("Linux")),
        ("kernel_release".into(), text(&proc::kernel_release())),
        ("boot_id".into(), text(&proc::boot_id())),
        ("architecture".into(), text(std::env::consts::ARCH)),
        ("command".into(), text(&config.command)),
        ("backend".into(), text(&config.backend)),
        ("utc_offset".into(), EnvValue::Int(config.utc_offset)),
    ];
    let mut env = env;
    if let Some((filter, params)) = &config.filter {
        env.push(("where".into(), text(filter)));
        env.push(("string_limit".into(), EnvValue::Int(config.string.try_into().unwrap_or(i64::MAX))));
        env.extend(params.iter().enumerate().map(|(i, p)| (format!("where_{}", i + 1), text(p))));
    }
    env.extend(config.select.iter().map(|s| ("select".to_string(), text(s))));
    let mut stream = ctf::classes::stream_class();
    stream.events.extend(config.classes.iter().map(|s| ctf::classes::event_class(s)));
    let clock = Clock {
        name: ctf::classes::CLOCK.into(),
        uuid: None,
        description: "CLOCK_MONOTONIC".into(),
        freq: 1_000_000_000,
        precision: 0,
        offset_s: offset.div_euclid(1_000_000_000),
        offset: offset.rem_euclid(1_000_000_000),
        absolute: true,
    };
    Metadata {
        order: ByteOrder::Little,
        uuid: Some(uuid),
        packet_header: Some(ctf::classes::packet_header()),
        env,
        clocks: vec![clock],
        streams: vec![stream],
    }
}
