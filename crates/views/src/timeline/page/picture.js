// The picture: lanes below each other, drawn for the range that is looked at. In a lane, no pixel is drawn twice: what is too
// narrow to be seen apart is one box.

const view = {
  from: 0, to: 1, top: 0, range: null, chosen: null, closed: new Set(), found: null, matches: 0, dragged: null,
};
const LABEL = 190, RULER = 22, HEAD = 20;
const HEIGHT = { function: 15, call: 15, run: 6, sample: 10, mark: 13, heap: 40, files: 28, lost: 8, span: 15, cpu: 15 };
const canvas = document.getElementById('picture'), pen = canvas.getContext('2d');
let lanes = [], height = 0, colours = {}, width = 0, tall = 0;

const COLOURS = ['back', 'text', 'faint', 'line', 'head', 'select', 'mark', 'file', 'network', 'wait', 'memory', 'process', 'other', 'function',
  'function2', 'run', 'off', 'ready', 'sample', 'failed', 'heap', 'found'];

const recolour = () => {
  const style = getComputedStyle(document.documentElement);
  callColours = [];
  colours = Object.fromEntries(COLOURS.map(name => [name, style.getPropertyValue(`--${name}`).trim()]));
};

// What is in front of a lane.
const nameOf = row => {
  if (row.kind === 'cpu') return `processor ${row.depth}`;
  if (row.thread !== null) return `${threadOf(row)[2] || '?'} ${threadOf(row)[0]}`;
  return row.kind === 'span' ? trace.strings[row.name[0]] : row.kind === 'files' ? 'descriptors' : 'heap';
};

// Processes in the order in which they are drawn: each in front of those that it has started. The processors are in front of all.
const order = () => {
  const children = trace.processes.map(() => []), all = new Map([[null, 0]]), roots = [];
  trace.processes.forEach((p, i) => { (p.parent === null ? roots : children[p.parent]).push(i); });
  const open = roots.reverse();
  while (open.length) {
    const i = open.pop();
    all.set(i, all.size);
    open.push(...children[i].reverse());
  }
  return all;
};

// The lanes, from the top: who is on each processor; a head for each process, then its curves and its spans, then its threads.
const arrange = () => {
  lanes = [];
  let y = 0, process, thread = null;
  const lane = (of, high) => { lanes.push({ y, high, ...of }); y += high; };
  const place = order();
  for (const row of [...trace.rows].sort((a, b) => place.get(a.process) - place.get(b.process))) {
    if (row.process !== process) {
      [process, thread] = [row.process, null];
      if (y) y += 6;
      lane({ head: process }, HEAD);
    }
    if (view.closed.has(process)) continue;
    if (row.thread !== null && row.thread !== thread) {
      thread = row.thread;
      y += 3;
    }
    lane({ row }, HEIGHT[row.kind]);
  }
  // The first lane of a thread has its name, and so has the first of spans.
  let before = null;
  for (const one of lanes) {
    const name = one.row ? nameOf(one.row) : null;
    one.name = name === before ? '' : name;
    before = name;
  }
  height = y;
};

// How many processes are above one: it has been started by them.
const depthOfProcess = n => {
  let depth = 0;
  for (let p = trace.processes[n].parent; p !== null && depth < 100; p = trace.processes[p].parent) depth++;
  return depth;
};

const x = time => LABEL + (time - view.from) / (view.to - view.from) * (width - LABEL);
const timeAt = pixel => view.from + (pixel - LABEL) / (width - LABEL) * (view.to - view.from);

// Of calls by the numbers of their names, as they are met.
let callColours = [];
const colourOfCall = name => callColours[name] || (callColours[name] = colours[trace.sorts[trace.strings[name]] || 'other']);

const colourOf = (row, i) => {
  switch (row.kind) {
    case 'call': return colourOfCall(row.name[i]);
    case 'function': return colours[(row.depth + row.name[i]) % 2 ? 'function2' : 'function'];
    case 'run': {
      const name = trace.strings[row.name[i]];
      return name === 'on a processor' ? colours.run : name === 'waits for a processor' ? colours.ready : colours.off;
    }
    case 'cpu': return colours[['file', 'process', 'memory', 'network', 'function2', 'other'][threadOf(row, i)[1] % 6]];
    case 'sample': return colours.sample;
    case 'lost': return colours.failed;
    case 'span': return colours.network;
    default: return colours.mark;
  }
};

// Finds what has a text in its name, its arguments, its path, or its error: the strings are searched, not the items.
const search = text => {
  view.matches = 0;
  const wanted = text.trim().toLowerCase();
  view.found = wanted || null;
  const strings = wanted ? Uint8Array.from(trace.strings, s => s.toLowerCase().includes(wanted) ? 1 : 0) : null;
  const errors = new Set(wanted ? trace.errors.filter(([, name, what]) => name.toLowerCase() === wanted || what.toLowerCase() === wanted).map(e => e[0]) : []);
  for (const row of trace.rows) {
    row.hits = null;
    if (!wanted || isDerived(row)) continue;
    const hits = [], call = row.kind === 'call';
    for (let i = 0; i < row.n; i++) {
      if (strings[row.name[i]] || row.text && strings[row.text[i]] || call && (strings[row.subject[i]] || errors.has(-row.value[i]))) hits.push(i);
    }
    row.hits = hits;
    view.matches += hits.length;
  }
};

// How wide texts are, by themselves.
const widths = new Map();
const widthOf = text => {
  let wide = widths.get(text);
  if (wide === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(text, wide = pen.measureText(text).width);
  }
  return wide;
};

// As much of a text as there is room for.
const fits = (text, room) => {
  if (text.length * 2 <= room && widthOf(text) <= room) return text;
  let chars = Math.min(text.length - 1, Math.floor(room / 4));
  while (chars > 1 && widthOf(`${text.slice(0, chars)}…`) > room) chars--;
  return chars > 1 ? `${text.slice(0, chars)}…` : '';
};

const isFailed = (row, i) => row.kind === 'call' && row.value[i] < 0 && row.value[i] >= -4095;

// Draws an item, and returns where it ends.
const drawItem = (row, i, y, high, found) => {
  const { start, end } = row;
  const left = Math.max(x(start[i]), LABEL), right = Math.min(Math.max(x(end[i]), left + 1), width);
  drawBox(row, left, right, y, high, found ? colours.found : colourOf(row, i), isFailed(row, i));
  if (row.kind === 'lost') hatch(left, y, Math.max(right - left, 5), high);
  if (right - left > 24 && high > 9 && row.kind !== 'run') {
    pen.fillStyle = colours.text;
    const text = fits(row.kind === 'mark' || row.kind === 'span' ? titleOf(row, i) : trace.strings[row.name[i]], right - left - 4);
    if (text) pen.fillText(text, left + 3, y + high - 3.5);
  }
  return right;
};

const drawBox = (row, left, right, y, high, colour, failed) => {
  pen.fillStyle = colour;
  pen.fillRect(left, y, right - left, high);
  if (failed) {
    pen.fillStyle = colours.failed;
    pen.fillRect(left, y + high - 3, right - left, 3);
  }
};

// Boxes of slices, ticks of what takes no time. Narrow ones that touch each other and look alike are drawn at once.
const NARROW = 2;
const drawRow = (lane, y) => {
  const { row } = lane, { start, end, hidden } = row, high = lane.high - 1;
  if (isCurve(row)) return drawCurve(row, y, high);
  pen.globalAlpha = view.found && !isDerived(row) ? 0.35 : 1;
  let left = 0, right = 0, colour = null, failed = false;
  const flush = () => {
    if (colour) drawBox(row, left, right, y, high, colour, failed);
    colour = null;
  };
  // The first that ends in the range: ends are in order too, as nothing overlaps in a row.
  let i = atLeast(end, view.from);
  while (i < row.n && start[i] < view.to) {
    if (hidden && hidden[i]) { i++; continue; }
    const begin = Math.max(x(start[i]), LABEL);
    let until = Math.min(Math.max(x(end[i]), begin + 1), width);
    if (until - begin > NARROW || row.kind === 'lost') {
      flush();
      until = drawItem(row, i, y, high, false);
    } else {
      const own = colourOf(row, i), wrong = isFailed(row, i);
      if (own !== colour || wrong !== failed || begin > right + 0.01) {
        flush();
        [left, colour, failed] = [begin, own, wrong];
      }
      right = until;
    }
    // The next that is not under this pixel.
    i = Math.max(i + 1, nextAtLeast(end, timeAt(until), i));
  }
  flush();
  pen.globalAlpha = 1;
  return drawHits(row, y, high);
};

// What is found, over the rest.
const drawHits = (row, y, high) => {
  const { hits, start, end } = row;
  if (!hits || !hits.length) return;
  let lo = 0, hi = hits.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (end[hits[mid]] < view.from) lo = mid + 1; else hi = mid;
  }
  for (let n = lo, until = -1; n < hits.length && start[hits[n]] < view.to; n++) {
    const i = hits[n];
    if (row.hidden && row.hidden[i] || x(end[i]) < until) continue;
    until = drawItem(row, i, y, high, true);
  }
};

const hatch = (left, y, wide, high) => {
  pen.strokeStyle = colours.back;
  pen.beginPath();
  for (let at = left; at < left + wide; at += 4) { pen.moveTo(at, y + high); pen.lineTo(at + 4, y); }
  pen.stroke();
};

// Steps of a ruler: 1, 2, 5 times a power of ten.
const stepOf = span => {
  const rough = span / Math.max((width - LABEL) / 110, 1), power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
};

const drawRuler = () => {
  pen.fillStyle = colours.head;
  pen.fillRect(0, 0, width, RULER);
  const step = Math.max(stepOf(view.to - view.from), 1);
  const digits = Math.max(0, Math.ceil(-Math.log10(step / 1e9)));
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.faint;
  pen.beginPath();
  for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) {
    const at = Math.round(x(n * step)) + 0.5;
    pen.moveTo(at, RULER - 6);
    pen.lineTo(at, tall);
    pen.fillText(`${(n * step / 1e9).toFixed(Math.min(digits, 9))} s`, at + 3, 14);
  }
  pen.stroke();
};

// Times in which the session was stopped: nothing is known of them.
const drawPauses = () => {
  for (const [from, to] of trace.pauses) {
    const left = Math.max(x(from - trace.begin), LABEL), right = Math.min(x(to - trace.begin), width);
    if (right <= LABEL || left >= width) continue;
    pen.save();
    pen.beginPath();
    pen.rect(left, RULER, Math.max(right - left, 2), tall);
    pen.clip();
    pen.strokeStyle = colours.line;
    pen.beginPath();
    for (let at = left - tall; at < right; at += 9) { pen.moveTo(at, tall); pen.lineTo(at + tall, 0); }
    pen.stroke();
    pen.restore();
  }
};

// Arrows to what is chosen and from it: who has begun or woken whom.
const drawFlows = () => {
  const wanted = view.chosen && view.chosen.row.thread;
  if (wanted === null || wanted === undefined) return;
  const middle = new Map();
  for (const lane of lanes) {
    if (lane.row && lane.row.thread !== null && !middle.has(lane.row.thread)) middle.set(lane.row.thread, lane.y - view.top + RULER + lane.high / 2);
  }
  let drawn = 0;
  pen.strokeStyle = pen.fillStyle = colours.mark;
  for (const [time, from, to] of trace.flows) {
    const at = time - trace.begin;
    if (at < view.from || at > view.to || from !== wanted && to !== wanted || !middle.has(from) || !middle.has(to) || from === to) continue;
    const a = middle.get(from), b = middle.get(to), px = x(at), down = b > a ? 1 : -1;
    pen.beginPath();
    pen.moveTo(px, a);
    pen.lineTo(px, b);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(px, b);
    pen.lineTo(px - 4, b - 7 * down);
    pen.lineTo(px + 4, b - 7 * down);
    pen.fill();
    if (++drawn > 300) break;
  }
};

const resize = () => {
  const ratio = window.devicePixelRatio || 1;
  [width, tall] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(tall * ratio)];
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
};

let drawn = { ms: 0 };

const draw = () => {
  const begun = performance.now();
  pen.font = '11px system-ui, sans-serif';
  pen.fillStyle = colours.back;
  pen.fillRect(0, 0, width, tall);
  view.top = Math.max(0, Math.min(view.top, height - (tall - RULER) + 20));
  drawRuler();
  pen.save();
  pen.beginPath();
  pen.rect(0, RULER, width, tall - RULER);
  pen.clip();
  // Lanes that are seen.
  let first = 0, last = lanes.length;
  while (first < last) {
    const mid = (first + last) >> 1;
    if (lanes[mid].y + lanes[mid].high < view.top) first = mid + 1; else last = mid;
  }
  const names = [];
  for (let n = first; n < lanes.length && lanes[n].y - view.top < tall; n++) {
    const lane = lanes[n], y = lane.y - view.top + RULER;
    if (!lane.row) {
      const process = lane.head === null ? null : trace.processes[lane.head];
      pen.fillStyle = colours.head;
      pen.fillRect(0, y, width, lane.high);
      pen.fillStyle = colours.text;
      const sign = view.closed.has(lane.head) ? '▸' : '▾';
      const how = !process || process.exit === null ? '' : process.exit < 0 ? `  killed by signal ${-process.exit}` : process.exit ? `  exit ${process.exit}` : '';
      pen.font = 'bold 11px system-ui, sans-serif';
      const title = process ? `${sign} ${process.name || '?'} ${process.pid}${how}` : `${sign} processors`;
      pen.fillText(title, 6 + (process ? 12 * Math.min(depthOfProcess(lane.head), 8) : 0), y + 14);
      pen.font = '11px system-ui, sans-serif';
      continue;
    }
    drawRow(lane, y);
    names.push([lane, y]);
  }
  // Names stand in front of what reaches below them.
  pen.fillStyle = colours.back;
  for (const [lane, y] of names) pen.fillRect(0, y, LABEL - 2, lane.high);
  pen.fillStyle = colours.faint;
  for (const [lane, y] of names) {
    if (lane.name) pen.fillText(fits(lane.name, LABEL - 26), 18, y + Math.min(lane.high, 15) - 3);
  }
  drawPauses();
  drawFlows();
  if (view.chosen) {
    const lane = lanes.find(one => one.row === view.chosen.row), { row, i } = view.chosen;
    if (lane) {
      const left = Math.max(x(row.start[i]), LABEL), right = Math.min(Math.max(x(row.end[i]), left + 2), width);
      if (right > LABEL && left < width) {
        pen.strokeStyle = colours.text;
        pen.lineWidth = 2;
        pen.strokeRect(left - 1, lane.y - view.top + RULER - 1, right - left + 2, lane.high + 1);
        pen.lineWidth = 1;
      }
    }
  }
  pen.restore();
  const range = view.dragged || view.range;
  if (range) {
    pen.fillStyle = colours.select;
    pen.fillRect(Math.max(x(range[0]), LABEL), 0, Math.min(x(range[1]), width) - Math.max(x(range[0]), LABEL), tall);
  }
  drawn = { ms: performance.now() - begun };
};

let waiting = false;
const redraw = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
};

// What is drawn at a pixel: a lane, and the item there.
const hit = (px, py) => {
  if (py < RULER) return null;
  const y = py - RULER + view.top;
  const lane = lanes.find(one => y >= one.y && y < one.y + one.high);
  if (!lane || !lane.row || px < LABEL) return lane ? { lane } : null;
  const { row } = lane;
  if (isCurve(row)) {
    const i = atLeast(row.start, timeAt(px + 1)) - 1;
    return i < 0 ? { lane } : { lane, row, i };
  }
  const near = 3 * (view.to - view.from) / Math.max(width - LABEL, 1), time = timeAt(px);
  let i = atLeast(row.end, time - near), best = null;
  for (let n = 0; i < row.n && row.start[i] <= time + near && n < 1000; i++, n++) {
    if (row.hidden && row.hidden[i]) continue;
    const off = time < row.start[i] ? row.start[i] - time : time > row.end[i] ? time - row.end[i] : 0;
    if (!best || off < best.off) best = { off, i };
  }
  return best ? { lane, row, i: best.i } : { lane };
};
