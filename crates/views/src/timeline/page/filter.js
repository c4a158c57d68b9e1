// Filters, in the words of --where: dur > 1ms && (retval == -ENOENT || contains(path, "/etc")).

const compiled = source => {
  const tokens = [];
  const pattern = /\s*(?:(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|k|M|G)?|"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w.]*)|(&&|\|\||==|!=|<=|>=|[<>!~(),-]))/gy;
  const units = { ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, m: 6e10, k: 1024, M: 1048576, G: 1073741824 };
  const end = source.trimEnd().length;
  while (pattern.lastIndex < end) {
    const at = pattern.lastIndex, found = pattern.exec(source);
    if (!found) throw new Error(`${source.slice(at).trim()}: not understood`);
    const [, number, unit, string, name, sign] = found;
    if (number !== undefined) tokens.push({ value: number * (unit ? units[unit] : 1) });
    else if (string !== undefined) tokens.push({ value: string.replace(/\\(.)/g, '$1') });
    else tokens.push(name !== undefined ? { name } : { sign });
  }
  let at = 0;
  const sign = s => tokens[at] && tokens[at].sign === s && (at++, true);
  const must = s => { if (!sign(s)) throw new Error(`'${s}' is missing`); };
  const fields = {
    name: (r, i) => trace.strings[r.name[i]], probe: (r, i) => trace.strings[r.name[i]],
    text: (r, i) => r.text ? trace.strings[r.text[i]] : '',
    path: (r, i) => r.kind === 'call' ? trace.strings[r.subject[i]] : '',
    comm: (r, i) => (threadOf(r, i) || processOf(r, i))[threadOf(r, i) ? 2 : 'name'],
    pid: (r, i) => processOf(r, i).pid, tid: (r, i) => threadOf(r, i) ? threadOf(r, i)[0] : 0,
    dur: (r, i) => r.end[i] - r.start[i], retval: (r, i) => r.kind === 'call' ? r.value[i] : 0,
    kind: r => r.kind, start: (r, i) => r.start[i],
  };
  const functions = {
    contains: (a, b) => String(a).includes(b), startswith: (a, b) => String(a).startsWith(b), endswith: (a, b) => String(a).endsWith(b),
  };
  const operand = () => {
    const token = tokens[at++];
    if (!token) throw new Error('something is missing at the end');
    if (token.sign === '-') { const of = operand(); return (r, i) => -of(r, i); }
    if (token.sign === '(') { const of = any(); must(')'); return of; }
    if ('value' in token) return () => token.value;
    if (token.sign) throw new Error(`'${token.sign}' is not expected`);
    if (sign('(')) {
      const of = functions[token.name];
      if (!of) throw new Error(`no function ${token.name} (${Object.keys(functions).join(', ')})`);
      const a = any();
      must(',');
      const b = any();
      must(')');
      return (r, i) => of(a(r, i), b(r, i));
    }
    if (trace.errorNumbers.has(token.name)) { const n = trace.errorNumbers.get(token.name); return () => n; }
    const of = fields[token.name];
    if (!of) throw new Error(`no field ${token.name} (${Object.keys(fields).join(', ')})`);
    return of;
  };
  const compare = {
    '==': (a, b) => a === b, '!=': (a, b) => a !== b, '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
    '~': (a, b) => String(a).includes(b),
  };
  const test = () => {
    if (sign('!')) { const of = test(); return (r, i) => !of(r, i); }
    const a = operand(), by = tokens[at] && compare[tokens[at].sign];
    if (!by) return a;
    at++;
    const b = operand();
    return (r, i) => by(a(r, i), b(r, i));
  };
  const all = () => {
    let of = test();
    while (sign('&&')) { const a = of, b = test(); of = (r, i) => a(r, i) && b(r, i); }
    return of;
  };
  const any = () => {
    let of = all();
    while (sign('||')) { const a = of, b = all(); of = (r, i) => a(r, i) || b(r, i); }
    return of;
  };
  const whole = any();
  if (at < tokens.length) throw new Error('more than an expression');
  return whole;
};

// Hides what does not pass. Where threads ran and what is missing stays.
const hide = source => {
  const passes = source.trim() ? compiled(source) : null;
  for (const row of trace.rows) {
    row.hidden = null;
    if (!passes || isDerived(row) || row.kind === 'lost') continue;
    row.hidden = new Uint8Array(row.n);
    for (let i = 0; i < row.n; i++) row.hidden[i] = passes(row, i) ? 0 : 1;
  }
};
