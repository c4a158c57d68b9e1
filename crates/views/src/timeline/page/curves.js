// Curves: how much is outstanding, and how many descriptors are open.

// Rows whose items change a level. They are in the order of time. Each step of so many has the level behind it, the highest, and the lowest.
const isCurve = row => row.kind === 'heap' || row.kind === 'files';

const readSteps = (row, levels) => {
  const n = Math.ceil(row.n / trace.step), all = new Float64Array(3 * n);
  levels.signed(all, 3 * n);
  for (const column of ['level', 'highest', 'lowest']) row[column] = new Float64Array(n);
  for (let k = 0, level = 0; k < n; k++) {
    row.level[k] = level += all[3 * k];
    row.highest[k] = level + all[3 * k + 1];
    row.lowest[k] = level + all[3 * k + 2];
  }
  row.most = Math.max(1, row.highest.reduce((a, b) => Math.max(a, b), 0));
};

// The level behind the first so many items.
const levelAt = (row, n) => {
  const k = Math.floor(n / trace.step);
  let level = k ? row.level[k - 1] : 0;
  for (let i = k * trace.step; i < n; i++) level += row.value[i];
  return level;
};

// The level behind items up to the one before `next`, and the highest and lowest of it in them; `level` is what it was.
const extremes = (row, from, next, level) => {
  const { value, highest, lowest } = row, { step } = trace;
  let i = from, top = level, bottom = level;
  const items = until => {
    for (; i < until; i++) {
      level += value[i];
      if (level > top) top = level;
      if (level < bottom) bottom = level;
    }
  };
  // Up to a step, whole steps, and behind them.
  items(Math.min(next, Math.ceil(i / step) * step));
  const last = next === row.n ? row.level.length : Math.floor(next / step);
  if (i < next && last * step > i) {
    for (let k = i / step; k < last; k++) {
      if (highest[k] > top) top = highest[k];
      if (lowest[k] < bottom) bottom = lowest[k];
    }
    level = row.level[last - 1];
    i = Math.min(last * step, next);
  }
  items(next);
  return [level, top, bottom];
};

// Of each pixel at which a curve changes: where it is, the level before it, the highest, the lowest, and the level behind it.
const pixelsOf = row => {
  const all = [];
  let i = atLeast(row.start, view.from), level = levelAt(row, i);
  while (i < row.n && row.start[i] <= view.to) {
    const pixel = Math.floor(x(row.start[i])), next = Math.max(nextAtLeast(row.start, timeAt(pixel + 1), i), i + 1);
    const [behind, top, bottom] = extremes(row, i, next, level);
    all.push([pixel, level, top, bottom, behind]);
    [i, level] = [next, behind];
  }
  if (!all.length) all.push([LABEL, level, level, level, level]);
  return all;
};

// The area below one of the two edges of a curve: 2 is the upper one, 3 the lower one.
const area = (pixels, edge, until, foot, to) => {
  pen.beginPath();
  pen.moveTo(LABEL, foot);
  pen.lineTo(LABEL, to(pixels[0][1]));
  pixels.forEach((one, n) => {
    const [at] = one, high = to(one[edge]);
    if (!n || pixels[n - 1][0] + 1 < at) pen.lineTo(at, to(one[1]));
    pen.lineTo(at, high);
    pen.lineTo(at + 1, high);
    if (n + 1 === pixels.length || at + 1 < pixels[n + 1][0]) pen.lineTo(at + 1, to(one[4]));
  });
  pen.lineTo(until, to(pixels[pixels.length - 1][4]));
  pen.lineTo(until, foot);
  pen.fill();
};

// A curve: full below its lowest level under a pixel, pale from there to its highest.
const drawCurve = (row, y, high) => {
  const pixels = pixelsOf(row), to = n => y + high - Math.max(n, 0) / row.most * (high - 2);
  // What a process had is gone with it.
  const { exit, last } = processOf(row), until = exit === null ? width : Math.min(Math.max(x(last), LABEL), width);
  pen.fillStyle = row.kind === 'heap' ? colours.heap : colours.file;
  pen.globalAlpha = 0.45;
  area(pixels, 2, until, y + high, to);
  pen.globalAlpha = 1;
  area(pixels, 3, until, y + high, to);
  // What is said of it is legible on the curve.
  const text = row.kind === 'heap' ? `outstanding, at most ${bytes(row.most)}` : `open, at most ${row.most}`;
  pen.fillStyle = colours.back;
  pen.globalAlpha = 0.75;
  pen.fillRect(LABEL + 2, y, widthOf(text) + 4, 13);
  pen.globalAlpha = 1;
  pen.fillStyle = colours.faint;
  pen.fillText(text, LABEL + 4, y + 10);
};
