// Hosts the book's widgets on a page: no kernel, no widget manager. Each [data-ntk="module.js"] element is given to the
// module of that name, whose text the page already has (NTK_ESM), since a page opened as a file may not import one.
(() => {
  const here = document.currentScript.src, modules = {};
  const load = name => modules[name] ??= import(URL.createObjectURL(new Blob([window.NTK_ESM[name]], { type: "text/javascript" })));
  const asked = new Set();
  async function mount(el) {
    if (asked.has(el)) return;
    asked.add(el);
    const spec = JSON.parse(el.querySelector("script[type='application/json']").textContent);
    const model = { page: true, module: load, url: path => new URL(path, here).href, get: key => spec[key], set() {}, on() {}, off() {}, send() {}, save_changes() {} };
    try { await (await load(el.dataset.ntk)).default.render({ model, el }); }
    catch (e) {
      console.error(`${el.id} did not start:`, e);
      const says = el.querySelector("[data-readout]");
      if (says) says.textContent += " (The controls did not load: reload the page to try again.)";
    }
  }
  async function start() {
    const all = [...document.querySelectorAll("[data-ntk]")], linked = all.find(el => location.hash.startsWith(`#${el.id}?`));
    if (linked) await mount(linked);
    const near = new IntersectionObserver(seen => seen.forEach(e => { if (e.isIntersecting) { near.unobserve(e.target); mount(e.target); } }), { rootMargin: "600px" });
    all.forEach(el => el.dataset.ntk === "explorable.js" ? near.observe(el) : mount(el));
    const rest = () => (window.requestIdleCallback ?? (f => setTimeout(f, 300)))(async () => {      // the far ones, one by one, when idle
      const next = all.find(el => !asked.has(el));
      if (next) { await mount(next); rest(); }
    });
    document.readyState === "complete" ? rest() : addEventListener("load", rest);
  }
  document.readyState === "loading" ? addEventListener("DOMContentLoaded", start) : start();
})();
