// Brings an explorable's markup to life (markup.py made it, whole). Two hosts, one front end:
// JupyterLab, where a kernel answers each question, and a page of the book, where a packed table or a twin of `compute` does.

const dark = () => document.documentElement.dataset.theme === "dark" || document.body.dataset.jpThemeLight === "false";
const script = src => new Promise((done, failed) => {
  document.head.append(Object.assign(document.createElement("script"), { src, onload: done, onerror: () => failed(new Error(`cannot load ${src}`)) }));
});

// ---- Vega, once a page: a file beside this one, or the kernel's copy ----
function loadVega(model) {
  return globalThis.__ntkVega ??= model.page
    ? script(model.url("vega.js")).then(() => globalThis.NTKVega)
    : new Promise((done, failed) => {
      const got = message => {
        if (!message.vega) return;
        model.off("msg:custom", got);
        script(URL.createObjectURL(new Blob([message.vega], { type: "text/javascript" }))).then(() => done(globalThis.NTKVega), failed);
      };
      model.on("msg:custom", got);
      model.send("vega");
    });
}

// ---- numbers: base64 -> gzip -> byte planes -> float32 (tables.py packs them) ----
async function unpack(text) {
  const zipped = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const n = planes.length / 4, bytes = new Uint8Array(planes.length);
  for (let p = 0; p < 4; p++) for (let i = 0; i < n; i++) bytes[4 * i + p] = planes[p * n + i];
  return new Float32Array(bytes.buffer);
}
async function packed(model, root, spec) {
  const tag = root.querySelector("script[data-table]"), key = tag.dataset.src;
  if (key) await script(model.url(`tables/${key}.js`));
  const all = await unpack(key ? globalThis.NTK_TABLES[key] : tag.textContent);
  const width = spec.fields.reduce((sum, [, , n]) => sum + n, 0);
  const place = (c, v) => c.values.reduce((best, x, i) => Math.abs(x - v) < Math.abs(c.values[best] - v) ? i : best, 0);
  return state => {
    let index = 0;
    for (const c of spec.controls) index = index * c.values.length + (c.kind === "choice" ? c.values.indexOf(state[c.name]) : place(c, state[c.name]));
    const out = {};
    for (const t in spec.constant) out[t] = { ...spec.constant[t] };
    let o = index * width;
    for (const [table, column, n, levels] of spec.fields) {
      const v = Array.from(all.subarray(o, o += n), x => Number.isFinite(x) ? x : table === "scalar" && x > 0 ? "∞" : null);
      (out[table] ??= {})[column] = levels ? v.map(i => levels[i]) : v;
    }
    return out;
  };
}
// ---- numbers that no table could hold: `compute` once more, in JavaScript (explorable.py, Twin) ----
async function twin(model, { module, function: name, given }) {
  const compute = (await model.module(module))[name];
  return state => compute(state, given);
}
const same = (a, b) => Object.keys(a).every(c => a[c] === b[c] || a[c].length === b[c]?.length && a[c].every((v, i) => v === b[c][i]));
const rows = columns => {
  const names = Object.keys(columns), n = columns[names[0]]?.length ?? 0, out = new Array(n);
  for (let i = 0; i < n; i++) { out[i] = {}; for (const c of names) out[i][c] = columns[c][i]; }
  return out;
};

// ---- text: the part of Python's format() that readouts use (markup.py, `number`) ----
export function number(v, spec = "") {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  if (typeof v !== "number") return String(v);
  if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
  const [, digits, kind] = /^\.(\d+)([fge%])$/.exec(spec) ?? [, "6", "g"], d = +digits;
  let s;
  if (kind === "f") s = v.toFixed(d);
  else if (kind === "%") s = (100 * v).toFixed(d) + "%";
  else if (kind === "e") s = v.toExponential(d);
  else {
    s = v === 0 ? "0" : v.toExponential(Math.max(d, 1) - 1);
    const e = v === 0 ? 0 : +s.split("e")[1];
    if (e >= -4 && e < Math.max(d, 1)) s = v === 0 ? "0" : String(+v.toPrecision(Math.max(d, 1)));
    else s = s.replace(/\.?0+e/, "e");
  }
  return s.replace(/e([+-]?\d+)/, (_, e) => "×10" + [...String(+e)].map(c => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")).replace(/^-/, "−");
}
const fill = (template, values) => template.replace(/\{(\w+)(?::([^}]*))?\}/g, (_, k, f) => k in values ? number(values[k], f) : "?\u2060");         // no line break between it and its unit
const withUnit = (text, unit) => ["", "°", "%"].includes(unit) ? text + unit : `${text}\u2009${unit}`;

// ---- a position in a view as values of controls, and where the mark of such values is (controls.py, Drag) ----
const radian = Math.PI / 180, COS = Math.cos(30 * radian), SIN = Math.sin(30 * radian);
const disc = view => { const w = view.signal("width"), h = view.signal("height"); return [w / 2, h / 2, Math.min(w, h) / 2.5]; };      // as figures.plane
const READ = {
  x: { values: (view, x) => [view.scale("x").invert(x)], mark: (view, [v]) => [view.scale("x")(v), null] },
  y: { values: (view, x, y) => [view.scale("y").invert(y)], mark: (view, [v]) => [null, view.scale("y")(v)] },
  angle: {
    values: (view, x, y) => { const [cx, cy] = disc(view); return [Math.atan2(cy - y, x - cx) / radian]; },
    mark: (view, [a]) => { const [cx, cy, r] = disc(view); return [cx + r * Math.cos(a * radian), cy - r * Math.sin(a * radian)]; },
  },
  globe: {
    values(view, x, y) {
      const [cx, cy, r] = disc(view), out = Math.max(r, Math.hypot(x - cx, y - cy)), p = (x - cx) / out, q = (cy - y) / out;
      return [Math.atan2(p, Math.sqrt(Math.max(0, 1 - p * p - q * q))) / radian, Math.asin(q) / radian];
    },
    mark(view, [longitude, latitude]) {
      const [cx, cy, r] = disc(view);
      return [cx + r * Math.cos(latitude * radian) * Math.sin(longitude * radian), cy - r * Math.sin(latitude * radian)];
    },
  },
  sphere: {                                     // as figures.leaning: the pole leans 30° towards the reader
    values(view, x, y) {
      const [cx, cy, r] = disc(view), out = Math.max(r, Math.hypot(x - cx, y - cy)), p = (x - cx) / out, q = (cy - y) / out;
      const near = Math.sqrt(Math.max(0, 1 - p * p - q * q)), pole = q * COS + near * SIN;
      return [Math.acos(Math.max(-1, Math.min(1, pole))) / radian, Math.atan2(p, near * COS - q * SIN) / radian];
    },
    mark(view, [from, turn]) {
      const [cx, cy, r] = disc(view), s = Math.sin(from * radian);
      return [cx + r * s * Math.sin(turn * radian), cy - r * (Math.cos(from * radian) * COS - s * Math.cos(turn * radian) * SIN)];
    },
  },
};

async function render({ model, el }) {
  if (!model.page) el.innerHTML = model.get("html");
  const root = model.page ? el : el.querySelector("figure"), $ = s => root.querySelector(s), $$ = s => [...root.querySelectorAll(s)];
  const spec = JSON.parse($("script[type='application/json']").textContent);
  const stop = new AbortController(), listen = (node, type, f) => node.addEventListener(type, f, { signal: stop.signal });
  const plots = $$(".ex-plot"), readout = $("[data-readout]"), code = $(".ex-code"), guessKey = `ntk-guess:${spec.id}`;
  const ui = Object.fromEntries(spec.controls.map(c => [c.name, { c, input: $(`[data-control="${c.name}"]`), output: $(`[data-control="${c.name}"] + output`) }]));
  let state = { ...spec.default }, shown = state, views = [], queued = 0, again = false, settle, saveTimer;
  const least = spec.predict?.range[0] ?? -Infinity, most = spec.predict?.range[1] ?? Infinity;       // of a guess
  let guess = spec.predict && recall();

  // ---- controls <-> state ----
  function show(name) {
    const { c, input, output } = ui[name], v = state[name];
    if (c.kind === "choice") { input.value = String(v); return; }
    input.value = c.even ? v : nearest(c, v);
    output.textContent = withUnit(number(v, c.format), c.unit);
    input.setAttribute("aria-valuetext", output.textContent);
  }
  const nearest = (c, v) => c.values.reduce((best, x, i) => Math.abs(x - v) < Math.abs(c.values[best] - v) ? i : best, 0);
  function read(c, input) {
    if (c.kind === "choice") return c.values.find(v => String(v) === input.value);
    return c.even ? c.values[nearest(c, +input.value)] : c.values[+input.value];
  }
  function set(change, { quiet = false } = {}) {
    state = { ...state, ...change };
    for (const name in change) show(name);
    root.dataset.state = JSON.stringify(state);
    if (!quiet) { clearTimeout(saveTimer); saveTimer = setTimeout(save, 200); }
    answer(state);
  }
  for (const { c, input } of Object.values(ui)) listen(input, "input", () => set({ [c.name]: read(c, input) }));
  for (const b of $$("[data-preset]")) listen(b, "click", () => set(spec.presets[b.dataset.preset]));
  listen($("[data-reset]"), "click", () => set(spec.default));

  // ---- state -> numbers: the page looks them up; with a kernel one question is in flight at a time ----
  let data = spec.initial, waiting = null, dirty = false, late;
  const look = !model.page ? null : spec.twin ? await twin(model, spec.twin) : await packed(model, root, spec);
  if (look) data = look(state);
  function answer(s) {
    if (look) { data = look(s); shown = s; queue(); return; }
    if (waiting) { dirty = true; return; }
    waiting = s; model.send({ ask: s });
    late = setTimeout(() => say("The kernel has not answered yet: it may be busy, or need a restart."), 4000);
  }
  function answered(message) {
    if (!message.tables && !message.error) return;
    clearTimeout(late); waiting = null;
    if (message.error) say(message.error);
    else { data = message.tables; shown = message.state; if (!dirty) { state = { ...shown }; for (const k in state) show(k); } queue(); }
    if (dirty) { dirty = false; answer(state); }
  }
  if (!look) model.on("msg:custom", answered);

  // ---- numbers -> marks and words ----
  const hidden = () => spec.predict && !guess.open;
  function queue() {                            // at once, so that the next frame has it; whatever else comes before that frame waits for it
    if (queued) { again = true; return; }
    queued = requestAnimationFrame(() => { queued = 0; if (again) { again = false; queue(); } });
    draw();
  }
  function columns(name) {                      // a table as the reader may see it
    if (name === "guess") return { guess: Number.isFinite(guess?.value) ? [guess.value] : [] };
    if (!data[name] || !hidden()) return data[name];
    return Object.fromEntries(Object.entries(data[name]).map(([c, v]) => [c, spec.predict.columns.includes(c) ? v.map(() => null) : v]));
  }
  function draw() {
    for (const { view, last } of views) {              // only what has changed goes to Vega, and a view without a change keeps its picture
      const fresh = Object.keys(last).filter(name => { const cols = columns(name), known = last[name]; last[name] = cols; return !same(cols, known); });
      for (const name of fresh) view.data(name, rows(last[name]));
      if (fresh.length) view.run();
    }
    const scalar = hidden() ? {} : Object.fromEntries(Object.entries(data.scalar ?? {}).map(([k, [v]]) => [k, typeof v === "number" ? Math.fround(v) : v]));
    if (code) $("[data-code]").textContent = fill(spec.code, shown);
    say(fill(spec.readout, { ...shown, ...scalar }));
    root.dataset.state = JSON.stringify(state);
  }
  // Sliders and words lie in boxes of their own size (explorable.css), so that a new number is no reason to lay out the page again.
  // A box grows with its text, and shrinks only when the figure gets another size. All are measured before any is changed.
  const boxes = [$(".ex-controls"), readout, code].filter(Boolean);
  function grow() {
    if (!root.dataset.ready) return;
    const lack = boxes.map(box => box.scrollHeight - box.clientHeight);
    boxes.forEach((box, i) => { if (lack[i] > 0) box.style.height = `${box.offsetHeight + lack[i]}px`; });
  }
  function fit() { for (const box of boxes) box.style.height = ""; grow(); }
  function say(text) {                          // busy while it moves: a screen reader speaks when it has settled
    readout.setAttribute("aria-busy", "true");
    readout.textContent = text;
    grow();
    $(".ex-plots").setAttribute("aria-label", `${spec.alt} ${text}`);
    clearTimeout(settle);
    settle = setTimeout(() => readout.setAttribute("aria-busy", "false"), 500);
  }

  // ---- predict, then reveal: the verdict speaks of the question's state only, so Reveal returns to it ----
  function recall() {
    try {
      const { value, open } = JSON.parse(localStorage.getItem(guessKey)) ?? {};
      return { value: Number.isFinite(value) && least <= value && value <= most ? value : undefined, open: open === true };
    } catch { return {}; }
  }
  function keep(g) {
    guess = g;
    try { localStorage.setItem(guessKey, JSON.stringify(g)); } catch { /* private mode: it lasts as long as the page */ }
    verdict(); queue();
  }
  function verdict() {
    const p = spec.predict, has = Number.isFinite(guess.value), unit = t => withUnit(t, p.unit);
    $("[data-reveal]").textContent = has ? "Reveal" : "Show without a guess";
    $("[data-reveal]").disabled = !!guess.open;
    $("[data-reveal]").hidden = !!guess.open;
    $("[data-again]").hidden = !guess.open;
    $("[data-guess]").readOnly = !!guess.open;
    $("[data-verdict]").textContent = !guess.open ? $("[data-guess]").validity.valid ? "" : $("[data-guess]").validationMessage : has
      ? `You guessed ${unit(number(guess.value, p.format))}; it is ${unit(number(truth, p.format))}: off by ${unit(number(Math.abs(guess.value - truth), p.format))}.`
      : `It is ${unit(number(truth, p.format))}.`;
  }
  const truth = spec.predict && data.scalar[spec.predict.answer][0];
  if (spec.predict) {
    const field = $("[data-guess]"), clamp = v => Math.min(most, Math.max(least, v));
    if (Number.isFinite(guess.value)) field.value = +guess.value.toPrecision(4);
    const reveal = () => { set(spec.default); keep({ ...guess, open: true }); $("[data-again]").focus(); };
    listen(field, "input", () => keep({ ...guess, value: field.checkValidity() && Number.isFinite(field.valueAsNumber) ? field.valueAsNumber : undefined }));
    listen(field, "keydown", e => { if (e.key === "Enter" && Number.isFinite(guess.value)) { e.preventDefault(); reveal(); } });      // else the same Enter presses the button it lands on
    listen($("[data-reveal]"), "click", reveal);
    listen($("[data-again]"), "click", () => { field.value = ""; keep({}); field.focus(); });
    drag(0, () => !guess.open, [{ read: spec.predict.axis, controls: [], from: () => 0, move([v]) { const g = +clamp(v).toPrecision(3); field.value = g; keep({ ...guess, value: g }); } }]);
    verdict();
  }

  // ---- dragging on a plot: a pointer takes the nearest of the view's marks ----
  function drag(i, allowed, marks) {
    const plot = plots[i], solid = marks.some(m => ["globe", "sphere"].includes(m.read)) || marks.length > 1;
    plot.dataset.drag = marks[0].read;
    const at = e => {
      const view = views[i]?.view;
      if (!view || !allowed()) return null;
      const box = plot.getBoundingClientRect(), [ox, oy] = view.origin(), { left, top } = view.padding();      // the origin lies inside the padding
      return [view, e.clientX - box.left - left - ox, e.clientY - box.top - top - oy];
    };
    const far = (mark, [view, ...xy]) => Math.hypot(...READ[mark.read].mark(view, mark.controls.map((c, k) => state[c.name] + mark.from(k))).map((p, k) => p === null ? 0 : p - xy[k]));
    const pick = where => marks.length > 1 ? marks.reduce((best, m) => far(m, where) < far(best, where) ? m : best) : marks[0];
    const on = where => where && solid && far(pick(where), where) < 24;
    let held = null, mark = null, from = null;          // a touch that scrolls the page never moves a mark: it must go sideways first, or begin on a point
    const follow = e => {
      const where = at(e);
      if (!where) return;
      mark ??= pick(where);
      mark.move(READ[mark.read].values(...where));
      e.preventDefault();
    };
    listen(plot, "pointerdown", e => {
      if (e.button !== 0 || !e.isPrimary) return;
      held = e.pointerId; mark = null;
      from = e.pointerType === "touch" && !on(at(e)) ? [e.clientX, e.clientY] : null;
      if (!from) { plot.setPointerCapture(held); follow(e); }
    });
    const hold = e => { if (e.touches.length === 1 && on(at(e.touches[0]))) e.preventDefault(); };
    if (solid) plot.addEventListener("touchstart", hold, { signal: stop.signal, passive: false });
    listen(plot, "pointermove", e => {
      if (e.pointerId !== held || !e.buttons) return;
      if (from && Math.abs(e.clientX - from[0]) < Math.max(8, Math.abs(e.clientY - from[1]))) return;
      from = null; follow(e);
    });
    for (const end of ["pointerup", "pointercancel"]) listen(plot, end, e => { if (e.pointerId === held) held = null; });
  }
  const turned = (c, a) => c.values.at(-1) > 180 ? (a + 360) % 360 : c.values[0] < 0 ? a : Math.abs(a);      // a full turn, both sides, or one
  function round(c, v) {                        // a turn about the pole goes on from where it is; a slider of one full turn comes round again
    v += 360 * Math.round((state[c.name] - v) / 360);
    const lo = c.values[0], hi = c.values.at(-1);
    return hi - lo > 360 || (lo <= v && v <= hi) ? v : v > hi ? v - 360 : v + 360;
  }
  const marks = spec.drag.map(d => {
    const controls = d.controls.map(name => ui[name].c), from = k => d.base.length ? state[d.base[k]] : 0;
    const value = (c, v, k) => d.read === "angle" ? turned(c, v) : d.read === "sphere" && k === 1 ? round(c, v) : v;
    const move = values => set(Object.fromEntries(controls.map((c, k) => [c.name, c.values[nearest(c, value(c, values[k] - from(k), k))]])));
    return { view: d.view, read: d.read, controls, from, move };
  });
  for (const i of new Set(marks.map(m => m.view))) drag(i, () => !spec.predict || guess.open || i > 0, marks.filter(m => m.view === i));

  // ---- a link to this state ----
  // It keeps a prediction as it is: open only where the sender had seen the answer.
  function link() { return `#${spec.id}?${new URLSearchParams({ ...state, ...(guess?.open && { answer: "shown" }) })}`; }
  function save() { if (model.page) try { history.replaceState(null, "", link()); } catch { /* some hosts forbid it */ } }
  function restore({ newURL = location.href } = {}) {       // the event's address: the bar may have got another since
    const [id, query] = new URL(newURL).hash.slice(1).split("?");
    if (id !== spec.id || !query) return;
    const change = {}, wrong = [];
    let open = false;
    for (const [k, text] of new URLSearchParams(query)) {
      if (spec.predict && k === "answer") { open = text === "shown"; continue; }
      const c = ui[k]?.c, v = c?.kind === "choice" ? c.values.find(x => String(x) === text) : text.trim() === "" ? NaN : +text;
      if (!c || v === undefined || typeof v === "number" && !Number.isFinite(v)) { wrong.push(`${k}=${text}`); continue; }
      change[k] = c.kind === "choice" ? v : c.values[nearest(c, v)];
      if (c.kind !== "choice" && Math.abs(change[k] - v) > 1e-6 * Math.abs(v)) wrong.push(`${k}=${text}, shown at ${number(change[k])}`);
    }
    if (open) keep({ ...guess, open });
    set(change, { quiet: true });
    if (wrong.length) requestAnimationFrame(() => requestAnimationFrame(() => say(`${readout.textContent} (Not in this figure: ${wrong.join("; ")}.)`)));
    root.scrollIntoView({ block: "center" });
  }
  const linkButton = $("[data-link]");
  if (model.page) {
    listen(linkButton, "click", async () => {
      save();
      let copied = true;
      try { await navigator.clipboard.writeText(location.href); } catch { copied = false; }
      linkButton.textContent = copied ? "Link copied" : "Link is in the address bar";
      setTimeout(() => { linkButton.textContent = "Copy link"; }, 2000);
    });
    listen(window, "hashchange", restore);
  } else linkButton.hidden = true;

  // ---- on paper the still shows the default state, and so must the words ----
  let before = state;
  listen(window, "beforeprint", () => { before = state; set(spec.default, { quiet: true }); if (look) draw(); });
  listen(window, "afterprint", () => set(before, { quiet: true }));

  // ---- full screen, for the back row ----
  const full = $("[data-fullscreen]");
  full.hidden = !document.fullscreenEnabled;
  listen(full, "click", () => document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  listen(document, "fullscreenchange", () => { full.textContent = document.fullscreenElement === root ? "Leave full screen" : "Full screen"; build(); });

  // ---- Vega views, rebuilt when the theme or the zoom changes ----
  const embed = await loadVega(model);
  let turn = 0;
  async function build() {
    const mine = ++turn, mode = dark() ? "dark" : "light", config = (document.fullscreenElement === root ? spec.zoomed : spec.config)[mode];
    const hosts = plots.map(() => Object.assign(document.createElement("div"), { className: "ex-canvas" }));
    plots.forEach((plot, i) => plot.append(hosts[i]));
    const first = spec.views.map(s => Object.fromEntries((s.data ?? []).map(d => [d.name, columns(d.name)]).filter(([, cols]) => cols)));
    const ready = (s, i) => ({ ...s, data: (s.data ?? []).map(d => first[i][d.name] ? { ...d, values: rows(first[i][d.name]) } : d),      // a first frame with numbers
      signals: (s.signals ?? []).map(g => ({ ...g, ...(g.name in spec.signals[mode] ? { value: spec.signals[mode][g.name] } : {}) })) });
    const made = await Promise.all(spec.views.map((s, i) => embed(hosts[i], ready(s, i), { mode: "vega", config, renderer: "canvas", actions: false, hover: false, defaultStyle: false, tooltip: false })));
    if (mine !== turn || stop.signal.aborted) { made.forEach((r, i) => { r.finalize(); hosts[i].remove(); }); return; }
    views.forEach(v => { v.finalize(); v.host.remove(); });
    views = made.map(({ view, finalize }, i) => {
      view.width(plots[i].clientWidth).height(plots[i].clientHeight).run();
      return { view, finalize, host: hosts[i], last: first[i] };
    });
    draw();
  }
  const sizes = new ResizeObserver(entries => {
    requestAnimationFrame(fit);
    for (const e of entries) {
      const view = views[plots.indexOf(e.target)]?.view, { width, height } = e.contentRect;
      if (view && width && (Math.abs(view.width() - width) > 1 || Math.abs(view.height() - height) > 1)) view.width(width).height(height).run();
    }
  });
  await build();
  plots.forEach(p => sizes.observe(p));
  const themes = new MutationObserver(build);
  themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  themes.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  listen(root, "keydown", e => e.stopPropagation());            // else JupyterLab takes the arrow keys from a slider
  $$("[disabled]").forEach(node => { node.disabled = false; });
  if (spec.predict) verdict();
  if (model.page) restore();
  root.dataset.ready = "1";
  fit();

  return () => {
    stop.abort(); themes.disconnect(); sizes.disconnect();
    if (!look) model.off("msg:custom", answered);
    views.forEach(v => v.finalize());
  };
}
export default { render };
