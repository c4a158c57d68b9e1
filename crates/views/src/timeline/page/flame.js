// A flame graph of the samples in a range; where there are none, of the time in functions.

const treeOfSamples = range => {
  const root = { name: 'all', value: 0, children: new Map() };
  for (const row of rowsOf('sample')) {
    within(row, range, i => {
      const stack = row.stack[i] ? trace.stacks[row.stack[i] - 1] : [];
      let node = root;
      node.value++;
      for (let n = stack.length - 1; n >= 0; n--) node = below(node, trace.strings[trace.frames[stack[n] - 1][0]] || '?', 1);
    });
  }
  return root;
};

const below = (node, name, value) => {
  let child = node.children.get(name);
  if (!child) node.children.set(name, child = { name, value: 0, children: new Map() });
  child.value += value;
  return child;
};

const treeOfFunctions = range => {
  const root = { name: 'all', value: 0, children: new Map() }, ofThread = new Map();
  for (const row of rowsOf('function')) {
    if (!ofThread.has(row.thread)) ofThread.set(row.thread, []);
    ofThread.get(row.thread).push(row);
  }
  for (const depths of ofThread.values()) {
    let outer = null;
    for (const row of depths) {
      const nodes = new Map();
      let k = 0;
      within(row, range, (i, time) => {
        let parent = root;
        if (outer) {
          while (k + 1 < outer.row.n && outer.row.start[k + 1] <= row.start[i]) k++;
          parent = outer.nodes.get(k);
          if (!parent) return;
        } else {
          root.value += time;
        }
        nodes.set(i, below(parent, trace.strings[row.name[i]], time));
      });
      outer = { row, nodes };
    }
  }
  return root;
};

// Draws a tree into a canvas; a click looks at a part of it.
const drawTree = (into, root, text) => {
  const one = document.createElement('canvas'), line = document.createElement('div');
  line.setAttribute('aria-live', 'polite');
  into.replaceChildren(line, one);
  let top = root, boxes = [];
  const depthOf = node => 1 + Math.max(0, ...[...node.children.values()].map(depthOf));
  const paint = () => {
    const wide = into.clientWidth - 20, high = Math.min(depthOf(top), 120) * 17, ratio = window.devicePixelRatio || 1;
    one.width = wide * ratio;
    one.height = high * ratio;
    one.style.cssText = `width:${wide}px;height:${high}px`;
    const brush = one.getContext('2d');
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.font = '11px system-ui, sans-serif';
    boxes = [];
    const box = (node, left, room, depth) => {
      if (room < 0.5 || depth > 119) return;
      boxes.push({ node, left, room, depth });
      let hash = 0;
      for (const c of node.name) hash = (hash * 31 + c.charCodeAt(0)) | 0;
      brush.fillStyle = node === root ? colours.head : `hsl(${20 + Math.abs(hash) % 35} 75% ${matchMedia('(prefers-color-scheme: dark)').matches ? 32 : 68}%)`;
      brush.fillRect(left, depth * 17, Math.max(room - 0.5, 0.5), 16);
      if (room > 26) {
        brush.fillStyle = colours.text;
        brush.fillText(fits(node.name, room - 4), left + 3, depth * 17 + 12);
      }
      let at = left;
      for (const child of [...node.children.values()].sort((a, b) => b.value - a.value)) {
        const part = room * child.value / node.value;
        box(child, at, part, depth + 1);
        at += part;
      }
    };
    box(top, 0, wide, 0);
    say(top);
  };
  const say = node => { line.textContent = `${node.name}: ${text(node.value)}, ${(100 * node.value / (root.value || 1)).toFixed(1)} %${top === root ? '' : ' (click the first row for all)'}`; };
  const at = event => boxes.find(b => b.depth === Math.floor(event.offsetY / 17) && event.offsetX >= b.left && event.offsetX < b.left + b.room);
  one.onmousemove = event => { const b = at(event); if (b) say(b.node); };
  one.onclick = event => { const b = at(event); if (b) { top = b.depth ? b.node : root; paint(); } };
  paint();
};
