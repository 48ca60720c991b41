// The book's own layer on the theme: what markup and style alone cannot do.
(() => {
  const root = document.documentElement;

  // A formula wider than its column scrolls in its own box; only then is that box a stop for the Tab key.
  function reach() {
    const boxes = [...document.querySelectorAll("article mjx-container")], room = box => box.parentElement.closest(":not(span, em, strong, a)").clientWidth;
    const wide = boxes.map(box => box.hasAttribute("display") ? box.scrollWidth > box.clientWidth + 1 : box.firstElementChild.offsetWidth > room(box));
    boxes.forEach((box, i) => {
      if (wide[i] === box.hasAttribute("data-wide")) return;
      box.toggleAttribute("data-wide", wide[i]);
      if (wide[i]) { box.tabIndex = 0; box.setAttribute("role", "group"); box.setAttribute("aria-label", "Formula, scrolls sideways"); }
      else for (const a of ["tabindex", "role", "aria-label"]) box.removeAttribute(a);
    });
  }
  addEventListener("DOMContentLoaded", async () => {
    await window.MathJax?.startup?.promise;
    delete root.dataset.typesetting;
    if (location.hash && !scrollY) document.querySelector(":target")?.scrollIntoView();             // it has moved
    reach();
    new ResizeObserver(reach).observe(document.querySelector("article") ?? document.body);
  });

  // The colour switch says which mode it is in.
  const say = () => document.querySelectorAll(".theme-switch-button").forEach(b => b.setAttribute("aria-label", `Color mode: ${root.dataset.mode}`));
  new MutationObserver(say).observe(root, { attributeFilter: ["data-mode"] });
  say();

  // "Run this page" closes like a menu.
  const menu = document.querySelector(".run-here");
  if (menu) {
    addEventListener("click", e => { if (!menu.contains(e.target)) menu.open = false; });
    menu.addEventListener("keydown", e => { if (e.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); } });
  }
})();
