"""Reads a trace from stdin with the protobuf classes of Perfetto, and prints its tracks and slices.

Usage: read_timeline.py < FILE. It fails on anything that Perfetto's interface could not show: fields that the classes lack, names that are
not known, times that go back in a track, ends without a beginning.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def check_known(message):
    assert len(UnknownFieldSet(message)) == 0, f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if hasattr(value, "__len__") else [value]:
                check_known(one)


trace = Trace()
trace.ParseFromString(sys.stdin.buffer.read())
check_known(trace)
tracks, names, categories, open_slices, last = {}, {}, {}, {}, {}
functions, frames, callstacks, flows, ended_flows = {}, {}, {}, set(), set()
sequences = {p.trusted_packet_sequence_id for p in trace.packet}
assert len(sequences) <= 1, sequences
for packet in trace.packet:
    if packet.HasField("clock_snapshot"):
        clocks = {c.clock_id: c.timestamp for c in packet.clock_snapshot.clocks}
        print("clocks", clocks, "primary", packet.clock_snapshot.primary_trace_clock)
    # Of the packet itself, too: names that are new in an event are in the event's packet.
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    for entry in packet.interned_data.event_categories:
        categories[entry.iid] = entry.name
    for entry in packet.interned_data.function_names:
        functions[entry.iid] = entry.str.decode()
    paths = {entry.iid for entry in packet.interned_data.mapping_paths}
    for mapping in packet.interned_data.mappings:
        assert set(mapping.path_string_ids) <= paths, mapping
    for frame in packet.interned_data.frames:
        frames[frame.iid] = functions[frame.function_name_id]
    for stack in packet.interned_data.callstacks:
        callstacks[stack.iid] = ";".join(frames[f] for f in stack.frame_ids)
    if packet.HasField("perf_sample"):
        sample = packet.perf_sample
        print(f"sample of {sample.pid}/{sample.tid} at {packet.timestamp}: {callstacks[sample.callstack_iid]}")
    if packet.HasField("track_descriptor"):
        t = packet.track_descriptor
        assert t.uuid not in tracks, "a track is described twice"
        if t.HasField("process"):
            tracks[t.uuid] = f"process {t.process.pid} {t.process.process_name}"
        elif t.parent_uuid:
            tracks[t.uuid] = f"track {tracks[t.parent_uuid].split()[1]}/{t.name.replace(' ', '-')}"
        elif not t.HasField("thread"):
            tracks[t.uuid] = f"track whole {t.name}"
        else:
            tracks[t.uuid] = f"thread {t.thread.pid}/{t.thread.tid} {t.thread.thread_name}"
        open_slices[t.uuid], last[t.uuid] = [], 0
        print(tracks[t.uuid])
    for buffer in packet.trace_stats.buffer_stats:
        print("lost", buffer.trace_writer_packet_loss)
    if not packet.HasField("track_event"):
        continue
    event, time = packet.track_event, packet.timestamp
    track = event.track_uuid
    assert time >= last[track], f"{tracks[track]}: {time} after {last[track]}"
    last[track] = time
    notes = " ".join(f"{a.name}={a.string_value!r}" for a in event.debug_annotations)
    flows |= set(event.flow_ids)
    ended_flows |= set(event.terminating_flow_ids)
    if event.type == TrackEvent.TYPE_COUNTER:
        print(f"{tracks[track].split()[1]}: {event.counter_value} at {time}")
        continue
    if event.type == TrackEvent.TYPE_SLICE_END:
        name, begin, said = open_slices[track].pop()
        notes = f"{said} {notes}".strip()
        depth, text = len(open_slices[track]), f"{name} {begin}..{time}"
    else:
        name = f"{names[event.name_iid]!r} [{categories[event.category_iids[0]]}]"
        depth, text = len(open_slices[track]), f"{name} at {time}"
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[track].append((name, time, notes))
            continue
        assert event.type == TrackEvent.TYPE_INSTANT, event.type
    print(" ".join([f"{tracks[track].split()[1]}:", "  " * depth + text, notes]).rstrip())
assert not any(open_slices.values()), open_slices
assert flows == ended_flows, (flows, ended_flows)
