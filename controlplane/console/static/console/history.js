// Pointing at a moment in one chart shows its values, in all charts of the page. Without this file browsers show titles.
"use strict";

(() => {
  const charts = [...document.querySelectorAll(".plot-card")].map((card) => ({
    readout: card.querySelector(".readout"),
    strips: new Map([...card.querySelectorAll(".strip")].map((strip) => {
      const title = strip.querySelector("title");
      const text = title.textContent;
      title.remove();  // the same, later and above the pointer
      return [strip.dataset.at, { strip, text }];
    })),
  }));
  let shown = null;

  function show(at) {
    if (at === shown) return;
    for (const { readout, strips } of charts) {
      strips.get(shown)?.strip.classList.remove("on");
      const found = strips.get(at);
      found?.strip.classList.add("on");
      readout.textContent = found?.text ?? "";
    }
    shown = at;
  }

  document.addEventListener("pointerover", (event) => show(event.target.closest?.(".strip")?.dataset.at ?? null));
})();
