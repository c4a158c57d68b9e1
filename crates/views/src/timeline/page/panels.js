// The panels below the picture: tables of the range that is selected, else of what is seen; and what is chosen.

const element = (name, text, attributes = {}) => {
  const of = document.createElement(name);
  if (text !== undefined && text !== null) of.textContent = text;
  for (const [key, value] of Object.entries(attributes)) of.setAttribute(key, value);
  return of;
};

// A table: columns are [title, value, whether it is a number, text of it].
const tableOf = (into, rows, columns, click) => {
  if (!rows.length) return into.replaceChildren(element('div', 'Nothing in this range.', { class: 'none' }));
  const table = element('table'), head = element('tr'), body = element('tbody');
  let by = null, down = true;
  const fill = () => {
    const all = by === null ? rows : [...rows].sort((a, b) => {
      const [va, vb] = [by(a), by(b)];
      return (va < vb ? -1 : va > vb ? 1 : 0) * (down ? -1 : 1);
    });
    body.replaceChildren(...all.slice(0, 1000).map(row => {
      const line = element('tr');
      for (const [, value, number, text] of columns) {
        line.append(element('td', text ? text(value(row)) : value(row), number ? { class: 'n' } : {}));
      }
      if (click) {
        line.tabIndex = 0;
        line.onclick = () => click(row);
        line.onkeydown = event => { if (event.key === 'Enter') click(row); };
      }
      return line;
    }));
    if (rows.length > 1000) body.append(element('tr', null, {})).append?.(element('td', `… ${rows.length - 1000} more`));
  };
  for (const [title, value, number] of columns) {
    const cell = element('th', title, { scope: 'col', ...(number ? { class: 'n' } : {}) });
    cell.onclick = () => { down = by === value ? !down : number; by = value; fill(); };
    head.append(cell);
  }
  table.append(element('thead'));
  table.firstChild.append(head);
  table.append(body);
  fill();
  into.replaceChildren(table);
};

const count = n => n.toLocaleString('en');
const has = kind => trace.rows.some(row => row.kind === kind);
const show = text => { document.getElementById('query').value = text; look(); };

const PANELS = [
  ['Calls', () => has('call'), (into, range) => tableOf(into, callsIn(range), [
    ['time', r => r.time, true, duration], ['calls', r => r.calls, true, count], ['errors', r => r.failed, true, n => n ? count(n) : ''],
    ['longest', r => r.most, true, duration], ['call', r => r.name],
  ], r => show(r.name))],
  ['Functions', () => has('function'), (into, range) => tableOf(into, functionsIn(range), [
    ['self', r => r.own, true, duration], ['total', r => r.total, true, duration], ['calls', r => r.calls, true, count], ['function', r => r.name],
  ], r => show(r.name))],
  ['Flame graph', () => has('sample') || has('function'), (into, range) => {
    const samples = has('sample'), root = samples ? treeOfSamples(range) : treeOfFunctions(range);
    if (!root.value) return into.replaceChildren(element('div', 'Nothing in this range.', { class: 'none' }));
    return drawTree(into, root, samples ? n => n === 1 ? '1 sample' : `${count(n)} samples` : duration);
  }],
  ['Heap', () => has('heap'), (into, range) => tableOf(into, heapIn(range), [
    ['outstanding', r => r.bytes, true, bytes], ['blocks', r => r.blocks, true, count],
    ['allocated in this range and not released in it, by', r => r.stack ? trace.stacks[r.stack - 1].slice(0, 6).map(frameText).join('  ◂  ') : 'no stack'],
  ])],
  ['Files', () => has('call'), (into, range) => tableOf(into, filesIn(range), [
    ['read', r => r.read, true, n => n ? bytes(n) : ''], ['written', r => r.written, true, n => n ? bytes(n) : ''],
    ['calls', r => r.calls, true, count], ['errors', r => r.failed, true, n => n ? count(n) : ''], ['time', r => r.time, true, duration],
    ['file or socket', r => r.name],
  ], r => show(r.name))],
  ['Spans', () => has('span'), (into, range) => tableOf(into, spansIn(range), [
    ['for', e => e.row.end[e.i] - e.row.start[e.i], true, duration], ['from', e => e.row.start[e.i], true, moment], ['span', e => titleOf(e.row, e.i)],
  ], e => choose(e.row, e.i))],
  ['Processors', () => has('run'), (into, range) => tableOf(into, runsIn(range), [
    ['ran', r => r.ran, true, duration], ['ready', r => r.ready, true, duration], ['off', r => r.off, true, duration],
    ['times', r => r.switches, true, count], ['thread', r => r.name],
  ])],
  ['Processes', () => true, into => tableOf(into, trace.processes.map((p, i) => ({ ...p, i })), [
    ['pid', p => p.pid, true], ['parent', p => p.parent === null ? '' : trace.processes[p.parent].pid, true], ['name', p => p.name || '?'],
    ['from', p => p.first, true, moment], ['for', p => p.last - p.first, true, duration],
    ['end', p => p.exit === null ? '' : p.exit < 0 ? `signal ${-p.exit}` : `exit ${p.exit}`],
  ], p => { const lane = lanes.find(one => one.head === p.i); if (lane) { view.top = lane.y; look(); } })],
  ['Events', () => true, (into, range) => {
    const { events, n } = eventsIn(range, 500);
    tableOf(into, events, [
      ['time', e => e.row.start[e.i], true, moment], ['for', e => e.row.end[e.i] - e.row.start[e.i], true, t => t ? duration(t) : ''],
      ['thread', e => threadOf(e.row) ? `${threadOf(e.row)[2]} ${threadOf(e.row)[0]}` : processOf(e.row).name], ['event', e => titleOf(e.row, e.i)],
    ], e => choose(e.row, e.i));
    if (n > events.length) into.prepend(element('div', `The first ${events.length} of ${count(n)}: select a shorter range for the others.`, { class: 'none' }));
  }],
  ['Trace', () => true, into => {
    const list = element('dl'), { stats } = trace;
    const rows = [['command', stats.command], ['host', stats.host], ['kernel', stats.kernel], ['tracer', stats.tracer], ['backend', stats.backend],
      ['events', count(stats.events)], ['bookkeeping', count(stats.bookkeeping)], ['lost', trace.lost === null ? 'not known' : count(trace.lost)]];
    for (const [name, value] of rows) if (value !== null && value !== undefined) list.append(element('dt', name), element('dd', value));
    const table = element('div');
    tableOf(table, stats.probes, [['events', p => p.events, true, count], ['missing', p => p.missing || 0, true, n => n ? count(n) : ''], ['probe', p => p.name]]);
    into.replaceChildren(list, table);
  }],
];

let panel = 0;

const rangeShown = () => view.range || [view.from, view.to];

const fillPanel = () => {
  const tabs = document.getElementById('tabs');
  const there = PANELS.map((p, i) => [p, i]).filter(([p]) => p[1]());
  if (!PANELS[panel][1]()) panel = there[0][1];
  if (tabs.children.length !== there.length) {
    tabs.replaceChildren(...there.map(([p, i]) => {
      const tab = element('button', p[0], { role: 'tab' });
      tab.onclick = () => { panel = i; fillPanel(); };
      return tab;
    }));
  }
  there.forEach(([, i], n) => tabs.children[n].setAttribute('aria-selected', i === panel));
  PANELS[panel][2](document.getElementById('panel'), rangeShown());
};

// Everything that is known of the chosen item.
const detail = () => {
  const into = document.getElementById('detail');
  if (!view.chosen) return into.replaceChildren('Click something, or walk with the arrow keys.');
  const { row, i } = view.chosen, list = element('dl'), thread = threadOf(row, i), process = processOf(row, i);
  const add = (name, value, kind) => { if (value !== '' && value !== null && value !== undefined) list.append(element('dt', name), element('dd', value, kind ? { class: kind } : {})); };
  const title = titleOf(row, i);
  if (row.kind === 'cpu') add('processor', row.depth);
  if (row.kind === 'files') add('open', levelAt(row, i + 1));
  add('what', row.kind === 'function' || row.kind === 'run' ? trace.strings[row.name[i]] : title, 'code');
  const error = errorOf(row, i);
  if (error) add('error', `${error}: ${(trace.errors.find(e => e[0] === -row.value[i]) || [])[2] || ''}`, 'failed');
  if (row.kind === 'call') { add('call', trace.strings[row.name[i]]); add('file', trace.strings[row.subject[i]]); add('result', row.value[i]); }
  if (row.kind === 'call' && !row.text[i]) add('arguments', 'left out, as the trace has many calls: trapline report --from --to shows them');
  if (row.kind === 'function') {
    add('depth', row.depth);
    if (row.value[i] & 1) add('end', 'left by a jump or an exception');
    if (row.value[i] & 2) add('end', 'it had not returned');
    if (row.value[i] & 4) add('note', 'records are missing in it');
  }
  add('from', moment(row.start[i]));
  if (row.end[i] > row.start[i]) add('for', duration(row.end[i] - row.start[i]));
  add('clock', clockOf(row.start[i]));
  if (thread) add('thread', `${thread[2]} ${thread[0]}`);
  add('process', `${process.name} ${process.pid}`);
  // An exec has released all.
  const released = row.kind === 'heap' && row.subject[i] !== i + 1 ? row.subject[i] : 0;
  if (row.kind === 'heap') add('outstanding', bytes(levelAt(row, i + 1)));
  if (released) add('allocated', moment(row.start[released - 1]));
  into.replaceChildren(list);
  const stack = row.stack && row.stack[i] || released && row.stack[released - 1];
  if (stack) into.append(element('div', 'stack'), element('pre', trace.stacks[stack - 1].map(frameText).join('\n')));
};

const clockOf = ns => {
  const { realtime_offset_ns: offset } = trace.stats;
  return offset === null || offset === undefined ? '' : new Date((trace.begin + offset + ns) / 1e6).toISOString();
};

// Things to know before anything is believed.
const notes = () => {
  const said = [];
  if (trace.lost) said.push(`${count(trace.lost)} events are missing: they were lost while the trace was recorded.`);
  if (trace.stats.live) said.push('The recording was still running when this report began.');
  if (trace.stats.complete === false && !trace.stats.live) said.push('The recording did not come to its end, or parts of it are missing.');
  if (trace.untold) said.push(`Arguments of ${count(trace.untold)} calls are left out: they neither failed nor took long.`);
  if (trace.cut) said.push(`${count(trace.cut)} events behind these are left out: --from and --to make a page of them.`);
  if (trace.pauses.length) said.push(`The recording was stopped ${trace.pauses.length === 1 ? 'once' : `${trace.pauses.length} times`}: hatched.`);
  if (trace.crowded) said.push(`${count(trace.crowded)} spans overlap too many others to be drawn.`);
  if (trace.deep) said.push(`${count(trace.deep)} calls of functions are too deep to be drawn.`);
  document.getElementById('notes').textContent = said.join(' ');
};
