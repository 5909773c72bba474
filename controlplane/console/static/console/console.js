// Copy buttons, "/" for the search box, Ctrl-K for the palette, tabs, and a word when the server cannot be reached. Everything else is HTML.
"use strict";

// Parts that poll are replaced as a whole, which a screen reader would read out every time: only a new text is said.
function announce(text) {
  const announcer = document.getElementById("announcer");
  if (announcer.textContent !== text) announcer.textContent = text;
}
document.addEventListener("htmx:load", (event) => {
  const said = event.detail.elt.closest?.("[data-announce]")?.dataset.announce;
  if (said) announce(said);
});

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent;
  const label = button.querySelector("span");
  label.dataset.was ??= label.textContent;
  let said = document.body.dataset.copied;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No permission, or no clipboard on plain http: select it, so that one keystroke does the rest.
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    said = document.body.dataset.selected;
  }
  label.textContent = said;
  announce(said);
  setTimeout(() => { label.textContent = label.dataset.was; announce(""); }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector("[data-slash]");
  if (search) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// The palette: Ctrl-K, or the button; arrows choose, Enter goes there, Escape closes it. The focus stays in its box.
const palette = document.getElementById("palette");
const typed = document.getElementById("palette-text");

function openPalette() {
  if (palette.open) return;
  palette.showModal();
  typed.value = "";
  document.getElementById("palette-hits").replaceChildren();
  document.getElementById("palette-count").textContent = "";
  leadToAll();
  typed.dispatchEvent(new Event("palette:open"));
}

function leadToAll() {
  document.getElementById("palette-all").search = typed.value ? new URLSearchParams({ q: typed.value }) : "";
}

function choose(option) {
  for (const each of palette.querySelectorAll("[aria-selected='true']")) each.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  typed.setAttribute("aria-activedescendant", option?.id ?? "");
}

if (palette) {
  document.addEventListener("keydown", (event) => {
    if (event.key?.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (palette.open) palette.close();
    else openPalette();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      openPalette();
    } else if (event.target === palette) palette.close();
  });
  typed.addEventListener("keydown", (event) => {
    const options = [...palette.querySelectorAll("[role='option']")];
    const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && options.length) {
      event.preventDefault();
      choose(options[(at + steps[event.key] + options.length) % options.length]);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      (options[at] ?? document.getElementById("palette-all")).click();
    }
  });
  typed.addEventListener("input", () => {
    leadToAll();
    choose(null);  // what is listed fits the text before: Enter does not go there
  });
  palette.addEventListener("htmx:afterSettle", () => {
    choose(palette.querySelector("[role='option']"));
    document.getElementById("palette-count").textContent = document.getElementById("palette-hits").dataset.count;
  });
}

function offline(away) {
  const sign = document.getElementById("offline");
  if (sign) sign.hidden = !away;
}
document.addEventListener("htmx:sendError", () => offline(true));
document.addEventListener("htmx:afterOnLoad", () => offline(false));

// On a phone a row of tabs is longer than the screen: the one of this page stands in its middle.
document.addEventListener("DOMContentLoaded", () => {
  for (const tab of document.querySelectorAll(".tabs [aria-current='page']")) {
    const row = tab.closest(".tabs"), [own, whole] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
    row.scrollLeft += own.left - whole.left - (whole.width - own.width) / 2;
  }
});

// The first wrong field takes the focus: whoever cannot see the red line hears what is wrong.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("[aria-invalid='true']")?.focus();
});
