// Exercises: Python writes the markup, this marks the answers, keeps them on this machine and counts what is solved.
// The same module serves a page of the book (mount.js gives it the element) and JupyterLab (anywidget gives it an empty one).

// ---- numbers: the grammar of ntklib/book/exercises/parse.py -----------------------------------------------------------
const TOKEN = /\s*(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|([a-zπ√]+)|(\*\*|[-+*/^()]))/y;
const FUNCTIONS = {
  sqrt: Math.sqrt, "√": Math.sqrt, sin: Math.sin, cos: Math.cos, tan: Math.tan, exp: Math.exp, ln: Math.log, log: Math.log,
  asin: Math.asin, arcsin: Math.asin, acos: Math.acos, arccos: Math.acos, atan: Math.atan, arctan: Math.atan,
};
const NAMES = ["pi", "π", ...Object.keys(FUNCTIONS)];
const SAME = { "−": "-", "–": "-", "×": "*", "·": "*", "÷": "/" };

export function parseNumber(text, units = []) {
  let s = text.trim().toLowerCase().replace(/[−–×·÷]/g, c => SAME[c]);
  if (!s) throw Error("Type a number first.");
  if (s.length > 200) throw Error("That is too long: a number, or a short expression.");
  if (s.includes(",")) throw Error("Decimals take a point here, not a comma: 0.5 instead of 0,5.");
  const unit = [...units].sort((a, b) => b.length - a.length).find(u => s.endsWith(u) && s !== u);
  if (unit) s = s.slice(0, -unit.length);
  s = s.trimEnd();
  const tokens = [];
  for (let at = 0; at < s.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const m = TOKEN.exec(s);
    if (!m || (m[2] && !NAMES.includes(m[2])))
      throw Error(`I cannot read “${m ? m[2] : s.slice(at).trim()[0]}”: type a number such as 0.5, 1/2, pi/3 or sqrt(2).`);
    tokens.push(m[0].trim());
  }
  const next = (...wanted) => (wanted.includes(tokens[0]) ? tokens.shift() : null);
  const real = x => { if (Number.isNaN(x)) throw Error("That is not a real number."); return x; };
  function sum() {
    let value = product();
    for (let sign; (sign = next("+", "-"));) value += sign === "+" ? product() : -product();
    return value;
  }
  function product() {
    let value = signed();
    for (;;) {
      if (next("/")) {
        const by = signed();
        if (by === 0) throw Error("That divides by zero.");
        value /= by;
      } else if (next("*") || tokens[0] === "(" || NAMES.includes(tokens[0])) value *= signed();
      else return value;
    }
  }
  function signed() {
    const sign = next("+", "-");
    if (sign) return sign === "+" ? signed() : -signed();
    const base = atom();
    return next("^", "**") ? real(base ** signed()) : base;
  }
  function atom() {
    const token = tokens.shift();
    if (token === undefined) throw Error("Something is missing at the end.");
    if (token === "pi" || token === "π") return Math.PI;
    if (FUNCTIONS[token]) {
      const x = FUNCTIONS[token](atom());
      return real(Number.isFinite(x) ? x : NaN);
    }
    if (token === "(") {
      const value = sum();
      if (!next(")")) throw Error("A bracket is not closed.");
      return value;
    }
    if (!/^[\d.]/.test(token)) throw Error(`I do not understand “${token}” there.`);
    return Number(token);
  }
  const value = sum();
  if (tokens.length) throw Error(`I do not understand “${tokens[0]}” there.`);
  if (!Number.isFinite(value)) throw Error(`${text.trim()} is not a finite number.`);
  return value;
}

// ---- marking ----------------------------------------------------------------------------------------------------------
const right = spec => ({ correct: true, html: spec.praise });
const wrong = html => ({ correct: false, html });
const note = html => ({ correct: null, html });          // not an answer yet

const MARK = {
  number(spec, answer) {
    let value;
    try { value = parseNumber(answer, spec.units); } catch (e) { return note(escape(e.message)); }
    if (Math.abs(value - spec.answer) <= spec.tolerance) return right(spec);
    const known = spec.wrong.find(w => Math.abs(value - w.value) <= w.tolerance);
    if (known) return wrong(known.feedback);
    return wrong(escape(Math.abs(value - spec.answer) <= 2.5 * spec.tolerance ? spec.near : spec.far));
  },
  choice(spec, answer) {
    if (!answer.length) return note("Choose an answer first.");
    const option = spec.options[answer[0]];
    return option.right ? right(spec) : wrong(option.feedback);
  },
  multiple(spec, answer) {
    if (!answer.length) return note("Tick at least one statement first.");
    const ticked = spec.options.map((_, i) => answer.includes(i));
    const misjudged = spec.options.map((o, i) => i).filter(i => spec.options[i].right !== ticked[i]);
    if (!misjudged.length) return right(spec);
    const score = `${spec.options.length - misjudged.length} of ${spec.options.length} judged rightly.`;
    const first = misjudged.find(i => ticked[i]);        // one misconception at a time, and the rest is left to find
    if (first !== undefined) return wrong(`${score} Look again at ${"ABCDEFGHIJ"[first]}: ${spec.options[first].feedback}`);
    const more = misjudged.length === 1 ? "one more is" : `${misjudged.length} more are`;
    return wrong(`${score} What you ticked is true, and ${more} as well.`);
  },
};
export const mark = (spec, answer) => MARK[spec.kind](spec, answer);

function escape(text) {
  return text.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
}

// ---- memory: what the reader answered, on this machine; what localStorage refuses, until the page is left -------------
const memory = (globalThis.ntkBookAnswers ??= new Map());
const key = id => `ntk-book:${id}`;
const kept = {
  get(id) {
    try { return memory.get(id) ?? JSON.parse(localStorage.getItem(key(id))) ?? {}; } catch { return {}; }
  },
  set(id, record) {
    memory.delete(id);
    try { localStorage.setItem(key(id), JSON.stringify(record)); } catch { memory.set(id, record); /* private mode, or full */ }
    dispatchEvent(new CustomEvent("ntk-answer"));
  },
  clear(ids) {
    for (const id of ids) {
      memory.delete(id);
      try { localStorage.removeItem(key(id)); } catch { /* nothing was stored */ }
    }
    dispatchEvent(new CustomEvent("ntk-answer", { detail: { cleared: ids } }));
  },
};

// ---- the two kinds of element -----------------------------------------------------------------------------------------
function bringToLife(root, spec, model, signal) {
  const $ = selector => root.querySelector(selector);
  const form = $("form"), feedback = $("[data-feedback]"), claim = $("[data-claim]");
  const inputs = [...form.querySelectorAll("input")];
  const text = spec.kind === "number" ? inputs[0] : null;
  const read = () => text ? text.value : inputs.filter(i => i.checked).map(i => Number(i.value));

  function fill(answer) {
    if (text) text.value = typeof answer === "string" ? answer : "";
    else for (const i of inputs) i.checked = Array.isArray(answer) && answer.includes(Number(i.value));
  }
  function showSolved(solved) {
    root.toggleAttribute("data-solved", solved);
    $("[data-mark]").textContent = solved ? "✓ solved" : "not solved yet";
    claim?.setAttribute("aria-pressed", solved);
  }
  function say(verdict) {
    const head = { true: "✓ Right.", false: "✗ Not yet." }[verdict.correct] ?? "";
    feedback.dataset.verdict = { true: "right", false: "wrong" }[verdict.correct] ?? "note";
    feedback.innerHTML = (head ? `<strong>${head}</strong> ` : "") + verdict.html;
    if (verdict.html.includes("<math")) globalThis.MathJax?.typesetPromise?.([feedback]);
    text?.setAttribute("aria-invalid", verdict.correct === null);
  }
  function silence() {
    feedback.replaceChildren();
    delete feedback.dataset.verdict;
    text?.removeAttribute("aria-invalid");
  }
  const solve = answer => { kept.set(spec.id, { answer, solved: true }); showSolved(true); };

  const stored = kept.get(spec.id);
  fill(stored.answer);
  showSolved(stored.solved === true);
  form.addEventListener("submit", e => {
    e.preventDefault();
    if (spec.kind === "function") return;
    const answer = read(), verdict = mark(spec, answer);
    say(verdict);
    if (verdict.correct) solve(answer);
    else kept.set(spec.id, { answer, solved: kept.get(spec.id).solved === true });     // solved once is solved
  });
  form.addEventListener("input", silence);
  claim?.addEventListener("click", () => {
    const solved = claim.getAttribute("aria-pressed") !== "true";
    kept.set(spec.id, { solved });
    showSolved(solved);
  });
  model.on("change:solved", () => { if (model.get("solved")) solve(kept.get(spec.id).answer); });
  addEventListener("ntk-answer", e => {
    if (!e.detail?.cleared.includes(spec.id)) return;
    fill();
    silence();
    showSolved(false);
  }, { signal });
}

function count(root, spec, model, signal) {
  const show = () => {
    const n = spec.ids.filter(id => kept.get(id).solved === true).length;
    root.querySelector("[data-count]").textContent = `${n} of ${spec.ids.length}`;
    root.querySelector("progress").value = n;
  };
  root.querySelector("[data-clear]").addEventListener("click", () => {
    kept.clear(spec.ids);
    root.querySelector("[data-said]").textContent = "Cleared.";
  });
  addEventListener("ntk-answer", e => { show(); if (!e.detail) root.querySelector("[data-said]").textContent = ""; }, { signal });
  addEventListener("storage", show, { signal });          // answered in another tab
  show();
}

function render({ model, el }) {
  const live = !model.page, stop = new AbortController();
  if (live) el.innerHTML = model.get("html");
  const root = live ? el.firstElementChild : el, spec = model.get("spec");
  // in JupyterLab's command mode the arrow keys of a radio button would move to the next cell
  if (live) root.addEventListener("keydown", e => e.stopPropagation());
  (spec.kind === "progress" ? count : bringToLife)(root, spec, model, stop.signal);
  for (const button of root.querySelectorAll("button")) button.disabled = false;
  root.dataset.ready = "1";
  return () => stop.abort();
}

export default { render };
