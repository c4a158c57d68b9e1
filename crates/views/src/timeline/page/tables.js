// What is in a range, added up.

// Items of a row in a range, with the part of each that is in it.
const within = (row, [from, to], each) => {
  for (let i = atLeast(row.end, from); i < row.n && row.start[i] <= to; i++) {
    if (row.hidden && row.hidden[i]) continue;
    each(i, Math.min(row.end[i], to) - Math.max(row.start[i], from));
  }
};

const rowsOf = kind => trace.rows.filter(row => row.kind === kind);

// Calls by name: how many, how many failed, their time.
const callsIn = range => {
  const by = new Map();
  for (const row of rowsOf('call')) {
    within(row, range, (i, time) => {
      let of = by.get(row.name[i]);
      if (!of) by.set(row.name[i], of = { name: trace.strings[row.name[i]], calls: 0, failed: 0, time: 0, most: 0 });
      of.calls++;
      of.time += time;
      if (errorOf(row, i)) of.failed++;
      of.most = Math.max(of.most, row.end[i] - row.start[i]);
    });
  }
  return [...by.values()].sort((a, b) => b.time - a.time);
};

// Functions by name: calls, the time in them, and without that of what they call. A function that calls itself counts its time once.
const functionsIn = range => {
  const by = new Map(), ofThread = new Map();
  for (const row of rowsOf('function')) {
    if (!ofThread.has(row.thread)) ofThread.set(row.thread, []);
    ofThread.get(row.thread)[row.depth] = row;
  }
  const of = name => {
    let one = by.get(name);
    if (!one) by.set(name, one = { name: trace.strings[name], calls: 0, total: 0, own: 0 });
    return one;
  };
  for (const depths of ofThread.values()) {
    // Where in each row the one is that is around what is looked at.
    const at = depths.map(() => 0);
    depths.forEach((row, depth) => {
      at.fill(0);
      within(row, range, (i, time) => {
        const one = of(row.name[i]);
        one.calls++;
        one.own += time;
        let again = false;
        for (let above = depth - 1; above >= 0; above--) {
          const outer = depths[above];
          if (!outer) continue;
          while (at[above] + 1 < outer.n && outer.start[at[above] + 1] <= row.start[i]) at[above]++;
          const k = at[above];
          if (outer.start[k] > row.start[i] || outer.end[k] < row.end[i]) continue;
          if (above === depth - 1) of(outer.name[k]).own -= time;
          if (outer.name[k] === row.name[i]) { again = true; break; }
          if (depth > 40 && above < depth - 40) break;
        }
        if (!again) one.total += time;
      });
    });
  }
  return [...by.values()].sort((a, b) => b.own - a.own);
};

// Files and sockets: calls, errors, bytes, time.
const filesIn = range => {
  const by = new Map();
  for (const row of rowsOf('call')) {
    within(row, range, (i, time) => {
      if (!row.subject[i]) return;
      let of = by.get(row.subject[i]);
      if (!of) by.set(row.subject[i], of = { name: trace.strings[row.subject[i]], calls: 0, failed: 0, read: 0, written: 0, time: 0 });
      of.calls++;
      of.time += time;
      if (errorOf(row, i)) of.failed++;
      const name = trace.strings[row.name[i]];
      if (row.value[i] > 0 && trace.reads.includes(name)) of.read += row.value[i];
      if (row.value[i] > 0 && trace.writes.includes(name)) of.written += row.value[i];
    });
  }
  return [...by.values()].sort((a, b) => b.read + b.written - a.read - a.written || b.calls - a.calls);
};

// What is allocated in a range and not released in it, by stack.
const heapIn = range => {
  const by = new Map();
  for (const row of rowsOf('heap')) {
    const released = new Set();
    let exec = -1;
    within(row, range, i => {
      if (row.subject[i] === i + 1) exec = i;
      if (row.subject[i]) released.add(row.subject[i] - 1);
    });
    within(row, range, i => {
      if (i < exec || row.subject[i] || released.has(i)) return;
      let of = by.get(row.stack[i]);
      if (!of) by.set(row.stack[i], of = { stack: row.stack[i], blocks: 0, bytes: 0 });
      of.blocks++;
      of.bytes += row.value[i];
    });
  }
  return [...by.values()].sort((a, b) => b.bytes - a.bytes);
};

// Spans that are in a range or reach into it, the longest first.
const spansIn = range => {
  const all = [];
  for (const row of rowsOf('span')) within(row, range, i => all.push({ row, i }));
  return all.sort((a, b) => b.row.end[b.i] - b.row.start[b.i] - a.row.end[a.i] + a.row.start[a.i]);
};

// Events in a range in their order, at most so many; and how many there are.
const eventsIn = (range, most) => {
  const all = [];
  let n = 0;
  for (const row of trace.rows) {
    if (row.kind === 'function' || row.kind === 'span' || isDerived(row)) continue;
    let here = 0;
    within(row, range, i => { n++; if (here++ < most) all.push({ row, i }); });
  }
  all.sort((a, b) => a.row.start[a.i] - b.row.start[b.i]);
  return { events: all.slice(0, most), n };
};

// Who ran and who did not: threads and their states.
const runsIn = range => {
  const by = new Map();
  for (const row of rowsOf('run')) {
    const of = { row, name: `${threadOf(row)[2]} ${threadOf(row)[0]}`, ran: 0, ready: 0, off: 0, switches: 0 };
    by.set(row, of);
    within(row, range, (i, time) => {
      const name = trace.strings[row.name[i]];
      if (name === 'on a processor') { of.ran += time; of.switches++; } else if (name === 'waits for a processor') of.ready += time; else of.off += time;
    });
  }
  return [...by.values()].sort((a, b) => b.ran - a.ran);
};
