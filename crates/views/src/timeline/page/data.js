'use strict';
// The data of the page: blocks of base64 and zlib; columns of numbers of 7 bits a byte, the lowest first.

const trace = { rows: [], strings: [''] };

const bytesOf = id => {
  const element = document.getElementById(id), text = element.textContent;
  element.remove();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
};

const unpacked = async id => {
  const stream = new Blob([bytesOf(id)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
};

// A column: reads `n` numbers and hands over what each adds to the one before, or each as it is.
class Column {
  constructor(buffer) { this.bytes = new Uint8Array(buffer); this.at = 0; }
  // Numbers of either sign.
  signed(into, n) {
    const { bytes } = this;
    let { at } = this;
    for (let i = 0; i < n; i++) {
      let byte = bytes[at++], value = byte & 0x7f, unit = 128;
      while (byte & 0x80) {
        byte = bytes[at++];
        value += (byte & 0x7f) * unit;
        unit *= 128;
      }
      into[i] = value % 2 ? -(value + 1) / 2 : value / 2;
    }
    this.at = at;
  }
  // Sums of numbers of either sign.
  sums(into, n, first) {
    const { bytes } = this;
    let { at } = this, sum = first;
    for (let i = 0; i < n; i++) {
      let byte = bytes[at++], value = byte & 0x7f, unit = 128;
      while (byte & 0x80) {
        byte = bytes[at++];
        value += (byte & 0x7f) * unit;
        unit *= 128;
      }
      sum += value % 2 ? -(value + 1) / 2 : value / 2;
      into[i] = sum;
    }
    this.at = at;
  }
}

// Starts and ends: each start is since the end before, each end since its start.
const times = (starts, lengths, row, begin) => {
  const a = starts.bytes, b = lengths.bytes, { n, start, end } = row;
  let { at } = starts, bt = lengths.at, time = 0;
  for (let i = 0; i < n; i++) {
    let byte = a[at++], value = byte & 0x7f, unit = 128;
    while (byte & 0x80) {
      byte = a[at++];
      value += (byte & 0x7f) * unit;
      unit *= 128;
    }
    time += value % 2 ? -(value + 1) / 2 : value / 2;
    start[i] = time - begin;
    if (row.has & 2) {
      byte = b[bt++];
      value = byte & 0x7f;
      unit = 128;
      while (byte & 0x80) {
        byte = b[bt++];
        value += (byte & 0x7f) * unit;
        unit *= 128;
      }
      time += value;
    }
    end[i] = time - begin;
  }
  starts.at = at;
  lengths.at = bt;
};

// The first index of sorted numbers whose number is at least `wanted`.
const atLeast = (numbers, wanted, from = 0, to = numbers.length) => {
  let lo = from, hi = to;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (numbers[mid] < wanted) lo = mid + 1; else hi = mid;
  }
  return lo;
};

// Of a long column of sorted numbers, each 64th: what is not near is found there. Most of the column is in no cache of the processor, and the
// first picture after a while would wait for each number that it looks at.
const COARSE = 64;
const index = numbers => {
  if (numbers.length > 32 * COARSE) numbers.coarse = Float64Array.from({ length: Math.ceil(numbers.length / COARSE) }, (_, k) => numbers[k * COARSE]);
};

// As `atLeast`, where the answer is probably near `from`.
const nextAtLeast = (numbers, wanted, from) => {
  const { coarse } = numbers, behind = Math.floor(from / COARSE) + 1;
  if (coarse && behind < coarse.length && coarse[behind] < wanted) {
    const k = nextAtLeast(coarse, wanted, behind);
    return atLeast(numbers, wanted, (k - 1) * COARSE + 1, Math.min(k * COARSE, numbers.length));
  }
  let step = 1;
  while (from + step < numbers.length && numbers[from + step] < wanted) { from += step; step *= 2; }
  let lo = from, hi = Math.min(from + step + 1, numbers.length);
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (numbers[mid] < wanted) lo = mid + 1; else hi = mid;
  }
  return lo;
};

// Puts the items of a row into the order of their starts.
const sort = row => {
  let sorted = true;
  for (let i = 1; i < row.n && sorted; i++) sorted = row.start[i] >= row.start[i - 1];
  if (sorted) return;
  const order = Array.from(row.start.keys()).sort((a, b) => row.start[a] - row.start[b] || a - b);
  for (const column of ['start', 'end', 'name', 'value', 'text', 'stack', 'subject']) {
    if (!row[column]) continue;
    const old = row[column].slice();
    order.forEach((from, to) => { row[column][to] = old[from]; });
  }
};

// Which columns rows of a kind have beside start, end and name.
const MORE = {
  function: ['value'], call: ['value', 'text', 'stack', 'subject'], run: [], sample: ['stack'], mark: ['text', 'stack'],
  heap: ['value', 'stack', 'subject'], lost: ['value'], span: ['text'], files: ['value'], cpu: ['subject'],
};

const load = async () => {
  const parse = buffer => JSON.parse(new TextDecoder().decode(buffer));
  const names = ['header', 'strings', 'steps', 'start', 'length', 'name', 'value', 'text', 'stack', 'subject'];
  const [header, strings, steps, ...columns] = await Promise.all(names.map(unpacked));
  Object.assign(trace, parse(header));
  trace.begin = +trace.begin;
  trace.strings = [''].concat(parse(strings));
  // Names of functions are numbered on their own: they come behind the strings.
  const first = trace.strings.length - 1;
  trace.strings = trace.strings.concat(trace.functions);
  const [levels, starts, lengths, name, value, text, stack, subject] = [steps, ...columns].map(buffer => new Column(buffer));
  trace.rows = trace.rows.map(([kind, process, thread, depth, n, present]) => {
    // A bit for each column that is there: else it is all 0.
    const row = { kind: trace.kinds[kind], process, thread, depth, n, has: present };
    const more = MORE[row.kind], at = column => more.includes(column);
    row.start = new Float64Array(n);
    row.end = new Float64Array(n);
    row.name = new Uint32Array(n);
    times(starts, lengths, row, trace.begin);
    if (present & 4) name.sums(row.name, n, row.kind === 'function' ? first : 0);
    if (at('value')) row.value = new Float64Array(n);
    if (present & 8) value.signed(row.value || new Float64Array(n), n);
    [['text', text], ['stack', stack], ['subject', subject]].forEach(([column, from], bit) => {
      if (at(column)) row[column] = new Uint32Array(n);
      if (present & 16 << bit) from.sums(row[column] || new Uint32Array(n), n, 0);
    });
    if (isCurve(row)) readSteps(row, levels); else sort(row);
    index(isCurve(row) ? row.start : row.end);
    return row;
  });
  trace.errorNames = new Map(trace.errors.map(([n, name]) => [n, name]));
  trace.errorNumbers = new Map(trace.errors.map(([n, name]) => [name, n]));
  trace.items = trace.rows.reduce((n, row) => n + row.n, 0);
};

// The threads of processes, and what they are called. On a processor, each item has its own.
const threadOf = (row, i) => row.kind === 'cpu' ? trace.threads[row.subject[i] - 1] : row.thread === null ? null : trace.threads[row.thread];
const processOf = (row, i) => trace.processes[row.kind === 'cpu' ? threadOf(row, i)[1] : row.process];
// Rows that say of other rows' items how they are together: they are no events of their own.
const isDerived = row => row.kind === 'run' || row.kind === 'files' || row.kind === 'cpu';

// A time of so many ns, in the unit that suits it.
const duration = ns => {
  const of = (n, unit) => `${n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)} ${unit}`;
  const a = Math.abs(ns);
  if (a < 1000) return `${Math.round(ns)} ns`;
  if (a < 1e6) return of(ns / 1e3, 'µs');
  if (a < 1e9) return of(ns / 1e6, 'ms');
  return of(ns / 1e9, 's');
};

// A moment, since the beginning.
const moment = ns => `${(ns / 1e9).toFixed(9)} s`;

const bytes = n => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0, a = Math.abs(n);
  while (a >= 1024 && unit < 4) { a /= 1024; unit++; }
  return `${n < 0 ? '-' : ''}${unit && a < 100 ? a.toFixed(1) : Math.round(a)} ${units[unit]}`;
};

// The error that a call has ended with, or null.
const errorOf = (row, i) => {
  if (row.kind !== 'call' || row.value[i] >= 0 || row.value[i] < -4095) return null;
  return trace.errorNames.get(-row.value[i]) || `error ${-row.value[i]}`;
};

// What an item is called.
const titleOf = (row, i) => {
  switch (row.kind) {
    case 'lost': return `${row.value[i]} events are missing`;
    case 'heap': return `${trace.strings[row.name[i]]} ${bytes(row.value[i])}`;
    case 'files': return `${trace.strings[row.name[i]]}: ${row.value[i] < 0 ? '' : '+'}${row.value[i]}`;
    case 'call': return row.text[i] ? trace.strings[row.text[i]] : trace.strings[row.name[i]];
    case 'span':
    case 'mark': return row.text[i] ? trace.strings[row.text[i]] : trace.strings[row.name[i]];
    default: return trace.strings[row.name[i]];
  }
};

// A frame as text: function, file and line or module.
const frameText = number => {
  const [name, module, file, line, kernel] = trace.frames[number - 1];
  const where = file ? `${trace.strings[file].split('/').pop()}:${line}` : trace.strings[module];
  return `${trace.strings[name] || '?'}${kernel ? ' [kernel]' : ''}${where ? `  ${where}` : ''}`;
};
