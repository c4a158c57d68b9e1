'use strict';
(() => {
  // Not the document's own element: a drawing may be called FILE.html, or be pasted into a page.
  const svg = document.currentScript.ownerSVGElement, id = name => document.getElementById(name);
  const { pad: PAD, char: CHAR, total: TOTAL, gap: GAP, wide: WIDE } =
    Object.fromEntries(Object.entries(svg.dataset).map(([name, value]) => [name, +value]));
  const frames = Array.from(document.querySelectorAll('.f'), g => ({
    g, rect: g.querySelector('rect'), text: g.querySelector('text'), full: g.querySelector('title').textContent,
    x: +g.dataset.x, w: +g.dataset.w, depth: +g.dataset.d,
  }));
  // The advance of a character of the title.
  const TITLE = CHAR * 17 / 12, title = id('title').textContent;
  frames.forEach(f => { f.name = f.full.split('\n')[0]; });
  let left = 0, range = TOTAL, zoomed = null, wide = 0;

  // A name in so many characters: its beginning and its end. Wide characters count twice.
  const short = (name, room) => {
    const chars = Array.from(name), size = c => c.codePointAt(0) >= 0x1100 ? 2 : 1;
    if (chars.reduce((n, c) => n + size(c), 0) <= room) return name;
    if (room < 5) return '';
    let head = '', tail = '', free = room - 2;
    for (let i = 0, j = chars.length - 1, front = true; i <= j; front = !front) {
      const c = front ? chars[i++] : chars[j--];
      if ((free -= size(c)) < 0) break;
      if (front) head += c; else tail = c + tail;
    }
    return head + '..' + tail;
  };

  // Draws what is in the range, over the width of the window.
  const draw = () => {
    wide = Math.max(svg.clientWidth || 0, 400);
    const scale = (wide - 2 * PAD) / range;
    for (const f of frames) {
      const from = Math.max(f.x, left), to = Math.min(f.x + f.w, left + range);
      const width = (to - from) * scale;
      f.g.toggleAttribute('hidden', !(width > 0.05));
      if (!(width > 0.05)) continue;
      const x = PAD + (from - left) * scale;
      f.rect.setAttribute('x', x.toFixed(2));
      f.rect.setAttribute('width', (width - (width > WIDE ? GAP : 0)).toFixed(2));
      f.text.setAttribute('x', (x + 4).toFixed(2));
      f.text.textContent = short(f.name, Math.floor((width - 7) / CHAR));
      f.g.classList.toggle('p', zoomed !== null && f.depth < zoomed.depth);
    }
    id('back').setAttribute('width', wide);
    id('box').setAttribute('x', wide - PAD - 260);
    id('found').setAttribute('x', wide - PAD - 270);
    id('reset').setAttribute('x', wide - PAD - 440);
    id('title').textContent = short(title, Math.max(8, Math.floor((wide - 2 * PAD - 520) / TITLE)));
  };

  const zoom = f => {
    zoomed = f;
    [left, range] = f ? [f.x, f.w] : [0, TOTAL];
    id('reset').toggleAttribute('hidden', !f);
    draw();
  };

  // Marks the functions that match, and says how much of the whole they are, each part once.
  const search = pattern => {
    let wanted = null, bad = false;
    try { wanted = pattern ? new RegExp(pattern, 'i') : null; } catch { bad = true; }
    id('query').classList.toggle('bad', bad);
    const hits = frames.filter(f => {
      const hit = wanted !== null && wanted.test(f.name);
      f.g.classList.toggle('m', hit);
      return hit;
    });
    let sum = 0, end = 0;
    hits.sort((a, b) => a.x - b.x || b.w - a.w);
    for (const h of hits) {
      sum += Math.max(0, h.x + h.w - Math.max(end, h.x));
      end = Math.max(end, h.x + h.w);
    }
    const n = hits.length;
    id('found').textContent = bad ? 'not a regular expression'
      : wanted ? n + (n === 1 ? ' frame, ' : ' frames, ') + (100 * sum / TOTAL).toFixed(2) + '%' : '';
  };

  const detail = f => { id('detail').textContent = f ? f.full.replace(/\n/g, ' · ') : ''; };
  const of = e => { const g = e.target.closest && e.target.closest('.f'); return g ? frames[+g.dataset.n] : null; };
  svg.addEventListener('click', e => { const f = of(e); if (f) zoom(f.depth === 0 ? null : f); });
  svg.addEventListener('mouseover', e => { const f = of(e); if (f) detail(f); });
  svg.addEventListener('mouseout', () => detail(null));
  id('reset').addEventListener('click', () => zoom(null));
  id('query').addEventListener('input', e => search(e.target.value));
  window.addEventListener('keydown', e => {
    const typing = e.target === id('query');
    if (e.key === 'Escape' && typing) { e.target.value = ''; search(''); e.target.blur(); }
    else if (e.key === 'Escape') zoom(null);
    else if (e.key === '/' && !typing) { e.preventDefault(); id('query').focus(); }
  });
  // What is above stays in sight.
  const stay = () => id('head').setAttribute('transform', 'translate(0,' + window.scrollY + ')');
  window.addEventListener('scroll', stay);
  window.addEventListener('resize', draw);
  svg.setAttribute('width', '100%');
  svg.removeAttribute('viewBox');
  id('tools').removeAttribute('hidden');
  draw();
  if (svg.dataset.up === '1') window.scrollTo(0, document.documentElement.scrollHeight);
  stay();
})();
