// Wheel, mouse, keys, the search, the filter, and the address of a range.

const span = () => Math.max(trace.end, 1);

const clampView = () => {
  const most = span() * 1.02, room = Math.min(Math.max(view.to - view.from, 20), most);
  const middle = (view.from + view.to) / 2;
  view.from = Math.max(Math.min(middle - room / 2, span() - room * 0.02), -room * 0.98);
  if (room >= most) view.from = -span() * 0.01;
  view.to = view.from + room;
};

let later = 0;

// The picture at once, the tables when the hand rests.
const changed = () => {
  clampView();
  redraw();
  const [from, to] = rangeShown();
  document.getElementById('range').textContent = `${view.range ? 'selected' : 'seen'}: ${moment(Math.max(from, 0))} for ${duration(to - from)}`;
  clearTimeout(later);
  later = setTimeout(() => {
    fillPanel();
    const part = [view.from, view.to].map(n => Math.round(n)).join(',');
    const range = view.range ? `&r=${view.range.map(n => Math.round(n)).join(',')}` : '';
    history.replaceState(null, '', `#t=${part}${range}`);
  }, 120);
};

const zoom = (by, at = (view.from + view.to) / 2) => {
  view.from = at - (at - view.from) * by;
  view.to = at + (view.to - at) * by;
  changed();
};

const pan = part => {
  const by = (view.to - view.from) * part;
  view.from += by;
  view.to += by;
  changed();
};

// Chooses an item, and has it be seen.
const choose = (row, i) => {
  view.chosen = { row, i };
  if (view.closed.delete(row.process)) arrange();
  const room = view.to - view.from, lane = lanes.find(one => one.row === row);
  if (row.end[i] < view.from || row.start[i] > view.to) {
    const long = row.end[i] - row.start[i], wide = Math.min(Math.max(room, long * 1.2), span());
    view.from = row.start[i] + long / 2 - wide / 2;
    view.to = view.from + wide;
  }
  if (lane && (lane.y < view.top || lane.y + lane.high > view.top + tall - RULER)) view.top = lane.y - tall / 3;
  detail();
  changed();
};

const look = () => {
  search(document.getElementById('query').value);
  document.getElementById('found').textContent = view.found ? `${count(view.matches)} found` : '';
  changed();
};

// The next that is found, behind what is chosen.
const nextFound = back => {
  if (!view.found || !view.matches) return;
  const time = view.chosen ? view.chosen.row.start[view.chosen.i] : view.from;
  const key = one => [one.row.start[one.i], trace.rows.indexOf(one.row), one.i];
  const less = (a, b) => { const [x1, y1] = [key(a), key(b)]; for (let n = 0; n < 3; n++) if (x1[n] !== y1[n]) return x1[n] < y1[n]; return false; };
  let best = null, wrap = null;
  for (const row of trace.rows) {
    if (!row.hits) continue;
    for (const i of row.hits) {
      if (row.hidden && row.hidden[i]) continue;
      const one = { row, i };
      if (!wrap || (back ? less(wrap, one) : less(one, wrap))) wrap = one;
      if (Math.abs(row.start[i] - time) === 0 && view.chosen && view.chosen.row === row && view.chosen.i === i) continue;
      const behind = view.chosen ? (back ? less(one, view.chosen) : less(view.chosen, one)) : row.start[i] >= time;
      if (behind && (!best || (back ? less(best, one) : less(one, best)))) best = one;
    }
  }
  const to = best || wrap;
  if (to) choose(to.row, to.i);
};

// To the neighbour in the row, or to the next row.
const walk = (along, down) => {
  const rows = lanes.filter(one => one.row && one.row.n).map(one => one.row);
  if (!rows.length) return;
  if (!view.chosen) return choose(rows[0], Math.min(atLeast(rows[0].end, view.from), rows[0].n - 1));
  const { row, i } = view.chosen;
  if (along) {
    let to = i + along;
    while (to >= 0 && to < row.n && row.hidden && row.hidden[to]) to += along;
    if (to >= 0 && to < row.n) choose(row, to);
    return;
  }
  const next = rows[rows.indexOf(row) + down];
  if (next) choose(next, Math.min(atLeast(next.end, row.start[i]), next.n - 1));
};

const KEYS = [
  ['W S', 'zoom in and out'], ['A D', 'to the left and to the right'], ['wheel', 'up and down; with Ctrl zoom, with Shift sideways'],
  ['drag', 'select a range: the tables show it'], ['Shift drag', 'move the picture'], ['← → ↑ ↓', 'to the neighbour of what is chosen'],
  ['F', 'zoom to what is chosen'], ['R', 'zoom to the selected range'], ['Esc', 'no selection'], ['0', 'the whole trace'], ['/', 'search'],
  ['N  Shift N', 'next and previous that is found'], ['click a process', 'fold and unfold it'], ['?', 'this'],
];

const keyed = event => {
  if (event.target.matches('input, dialog *') || event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    w: () => zoom(0.7), s: () => zoom(1 / 0.7), a: () => pan(-0.25), d: () => pan(0.25), n: () => nextFound(event.shiftKey),
    '/': () => document.getElementById('query').focus(), '0': whole, '?': help, escape: () => { view.range = null; view.chosen = null; detail(); changed(); },
    f: () => { if (view.chosen) { const { row, i } = view.chosen, long = Math.max(row.end[i] - row.start[i], 50); [view.from, view.to] = [row.start[i] - long * 0.1, row.start[i] + long * 1.1]; changed(); } },
    r: () => { if (view.range) { [view.from, view.to] = view.range; changed(); } },
    arrowleft: () => walk(-1, 0), arrowright: () => walk(1, 0), arrowup: () => walk(0, -1), arrowdown: () => walk(0, 1),
  };
  // In a table, arrows scroll.
  const key = event.key.toLowerCase();
  if (key.startsWith('arrow') && event.target.closest('#panel')) return;
  if (acts[key]) { event.preventDefault(); acts[key](); }
};

const whole = () => { [view.from, view.to, view.range] = [-span() * 0.01, span() * 1.01, null]; changed(); };

const help = () => {
  const dialog = document.getElementById('keys'), table = element('table');
  for (const [key, what] of KEYS) {
    const line = element('tr'), cell = element('td');
    cell.append(element('kbd', key));
    line.append(cell, element('td', what));
    table.append(line);
  }
  const close = element('button', 'close');
  close.onclick = () => dialog.close();
  dialog.replaceChildren(table, close);
  dialog.showModal();
};

const listen = () => {
  addEventListener('keydown', keyed);
  addEventListener('resize', () => { resize(); changed(); });
  addEventListener('hashchange', () => { address(); changed(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { recolour(); redraw(); });
  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey) return zoom(Math.exp(event.deltaY * unit * 0.002), timeAt(Math.max(event.offsetX, LABEL)));
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return pan((event.deltaX || event.deltaY) * unit / Math.max(width - LABEL, 1));
    view.top += event.deltaY * unit;
    return redraw();
  }, { passive: false });
  let down = null;
  canvas.addEventListener('pointerdown', event => {
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    down = { x: event.offsetX, y: event.offsetY, from: view.from, to: view.to, top: view.top, pan: event.shiftKey || event.button === 1, moved: false };
  });
  canvas.addEventListener('pointermove', event => {
    if (!down) return tip(event);
    if (Math.abs(event.offsetX - down.x) + Math.abs(event.offsetY - down.y) > 3) down.moved = true;
    if (!down.moved) return undefined;
    if (down.pan) {
      const by = (event.offsetX - down.x) * (down.to - down.from) / Math.max(width - LABEL, 1);
      [view.from, view.to, view.top] = [down.from - by, down.to - by, down.top - (event.offsetY - down.y)];
      return changed();
    }
    const ends = [timeAt(Math.max(down.x, LABEL)), timeAt(Math.max(event.offsetX, LABEL))].sort((a, b) => a - b);
    view.dragged = ends;
    return redraw();
  });
  const up = event => {
    if (!down) return;
    const was = down;
    down = null;
    if (view.dragged) { [view.range, view.dragged] = [view.dragged, null]; return changed(); }
    if (was.moved) return undefined;
    const found = hit(event.offsetX, event.offsetY);
    if (found && found.lane.head !== undefined) {
      if (!view.closed.delete(found.lane.head)) view.closed.add(found.lane.head);
      arrange();
      return changed();
    }
    view.chosen = found && found.row ? { row: found.row, i: found.i } : null;
    detail();
    return changed();
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', () => { down = null; view.dragged = null; redraw(); });
  canvas.addEventListener('pointerleave', () => { document.getElementById('tip').hidden = true; });
  document.getElementById('search').addEventListener('submit', event => { event.preventDefault(); nextFound(false); });
  document.getElementById('query').addEventListener('input', look);
  const filter = () => {
    const wrong = document.getElementById('wrong');
    wrong.textContent = '';
    try { hide(document.getElementById('filter').value); } catch (e) { wrong.textContent = e.message; }
    changed();
  };
  document.getElementById('where').addEventListener('submit', event => { event.preventDefault(); filter(); });
  document.getElementById('filter').addEventListener('change', filter);
  document.getElementById('all').onclick = whole;
  document.getElementById('help').onclick = help;
  const split = document.getElementById('split'), panels = document.getElementById('panels');
  split.addEventListener('pointerdown', event => {
    split.setPointerCapture(event.pointerId);
    const move = e => { panels.style.flexBasis = `${Math.max(innerHeight - e.clientY, 60)}px`; resize(); redraw(); };
    split.addEventListener('pointermove', move);
    split.addEventListener('pointerup', () => { split.removeEventListener('pointermove', move); changed(); }, { once: true });
  });
};

const tip = event => {
  const box = document.getElementById('tip'), found = hit(event.offsetX, event.offsetY);
  box.hidden = !(found && found.row);
  if (box.hidden) return;
  const { row, i } = found;
  box.textContent = `${titleOf(row, i).slice(0, 300)}${row.end[i] > row.start[i] ? `  ${duration(row.end[i] - row.start[i])}` : ''}`;
  box.style.left = `${Math.min(event.offsetX + 14, width - box.offsetWidth - 4)}px`;
  box.style.top = `${Math.min(event.offsetY + 16, tall - box.offsetHeight - 2)}px`;
};

// The range of the page's address, if it has one.
const address = () => {
  const parts = new URLSearchParams(location.hash.slice(1)), pair = name => {
    const of = (parts.get(name) || '').split(',').map(Number);
    return of.length === 2 && of.every(Number.isFinite) && of[0] < of[1] ? of : null;
  };
  [view.from, view.to] = pair('t') || [-span() * 0.01, span() * 1.01];
  view.range = pair('r');
};

const start = async () => {
  await load();
  const { stats } = trace;
  document.title = `${stats.command || stats.host || 'trace'} – trapline`;
  document.getElementById('title').textContent = stats.command || stats.host || 'trace';
  recolour();
  arrange();
  resize();
  address();
  notes();
  listen();
  changed();
  fillPanel();
  canvas.focus({ preventScroll: true });
  draw();
  document.documentElement.dataset.ready = Math.round(performance.now());
};

start().catch(error => {
  document.getElementById('notes').textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  document.documentElement.dataset.failed = error.message;
});
