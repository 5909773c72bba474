// The live part of an instance's page: asks for JSON every 2 s and draws it.
//
// [data-live="produce.used"] shows a figure, [data-live-bar] a bar, and each broker of a direction gets a panel: its flow
// as an area, what it may carry as a dashed line, over the last 2 minutes. Points outlive a reload in sessionStorage.
"use strict";

const EVERY_MS = 2000;
const POINTS = 60;
const WIDTH = 600;
const HEIGHT = 72;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// Sentences come with the page, in its language: English is their name.
let words = {};
function say(text, values = {}) {
  return (words[text] ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// The same figures as templatetags/console.py writes.
function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  const text = value.toFixed(unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${UNITS[unit]}`;
}
const rate = (value) => (value === null || value === undefined ? say("any rate") : `${bytes(value)}/s`);

// Only what has changed is written: an aria-live part then speaks only when there is something to say.
function write(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

class Live {
  constructor(section) {
    this.section = section;
    this.storageKey = `flow:${section.dataset.liveKey}`;
    this.points = this.restored();
    words = JSON.parse(section.dataset.words || "{}");
  }

  restored() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.storageKey)) || {};
      return Date.now() - kept.at < POINTS * EVERY_MS ? kept.points : {};
    } catch { return {}; }
  }

  keep() {
    try {
      sessionStorage.setItem(this.storageKey, JSON.stringify({ at: Date.now(), points: this.points }));
    } catch { /* a full store loses the past, not the present */ }
  }

  async ask() {
    if (document.hidden) return;
    try {
      const answer = await fetch(this.section.dataset.liveUrl, { headers: { Accept: "application/json", "HX-Request": "true", "HX-Current-URL": location.href } });
      const elsewhere = answer.headers.get("HX-Redirect");
      if (elsewhere) { location.assign(elsewhere); return; }
      if (!answer.ok) throw new Error(answer.status);
      this.show(await answer.json());
    } catch {
      this.away(say("The console cannot be reached. The figures come back by themselves."));
    }
  }

  away(why) {
    this.section.classList.remove("on");
    write(this.section.querySelector("[data-live-state]"), say("Waiting"));
    const notice = this.section.querySelector("[data-live-why]");
    write(notice.querySelector("span"), why);
    notice.hidden = false;
  }

  show(document) {
    if (!document.known) {
      this.away(document.why);
      if (document.last) this.figures(document.last, false);
      return;
    }
    this.section.classList.add("on");
    write(this.section.querySelector("[data-live-state]"), say("Live"));
    this.section.querySelector("[data-live-why]").hidden = true;
    this.figures(document, true);
    this.keep();
  }

  // Of now, or the last known ones: those stand in the figures and are no point of a chart.
  figures(document, now) {
    for (const part of this.section.querySelectorAll("[data-live-figures], [data-direction]")) part.hidden = false;
    this.figure("storage.used", bytes(document.storage.used));
    this.figure("storage.limit", bytes(document.storage.limit));
    this.figure("connections", String(document.connections));
    this.bar("storage", document.storage);
    for (const name of ["produce", "consume"]) this.direction(name, document[name], now);
  }

  figure(name, text) {
    write(this.section.querySelector(`[data-live="${name}"]`), text);
  }

  bar(name, bar) {
    const svg = this.section.querySelector(`[data-live-bar="${name}"]`);
    if (!svg) return;
    svg.setAttribute("class", `bar ${bar.level}`);
    svg.setAttribute("aria-label", `${svg.dataset.label}: ${bar.limit ? say("{percent} percent used", { percent: bar.percent }) : say("no limit")}`);
    svg.querySelector(".fill").setAttribute("width", bar.percent);
  }

  rule(name, direction) {
    const chip = this.section.querySelector(`[data-live="${name}.rule"]`);
    write(chip, direction.rule);
    if (chip) chip.title = say("Rule: {branch}", { branch: direction.branch });
  }

  direction(name, direction, now) {
    this.figure(`${name}.used`, rate(direction.bar.used));
    this.figure(`${name}.limit`, rate(direction.bar.limit));
    this.rule(name, direction);
    this.figure(`${name}.words`, direction.words);
    this.bar(name, direction.bar);
    const list = this.section.querySelector(`[data-direction="${name}"] [data-brokers]`);
    const shown = new Set();
    for (const broker of direction.brokers) {
      shown.add(String(broker.broker));
      this.broker(list, name, broker, now);
    }
    for (const panel of [...list.children]) if (!shown.has(panel.dataset.broker)) panel.remove();
  }

  broker(list, name, broker, now) {
    const points = this.points[`${name}.${broker.broker}`] ||= [];
    if (now) points.push([broker.flow, broker.allocation]);
    points.splice(0, points.length - POINTS);
    const panel = list.querySelector(`[data-broker="${broker.broker}"]`) || this.panel(list, broker.broker);
    write(panel.querySelector(".leaders"), say(broker.leaders === 1 ? "{leaders} leader" : "{leaders} leaders", { leaders: broker.leaders }));
    write(panel.querySelector(".flow-now"), rate(broker.flow));
    write(panel.querySelector(".allocation-now"), rate(broker.allocation));
    write(panel.querySelector(".why"), sentence(broker.explanation));
    const chart = panel.querySelector("svg");
    chart.setAttribute("aria-label", say("Broker {broker}, {direction}: {flow} of {allocation}", {
      broker: broker.broker, direction: say(name), flow: rate(broker.flow), allocation: rate(broker.allocation),
    }));
    draw(chart, points);
  }

  panel(list, broker) {
    const panel = this.section.querySelector("#broker-panel").content.firstElementChild.cloneNode(true);
    panel.dataset.broker = broker;
    panel.querySelector(".broker-name").textContent = say("Broker {broker}", { broker });
    list.append(panel);
    return panel;
  }
}

function sentence(text) {
  if (!text) return "";
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.。]$/.test(text) ? "" : document.documentElement.lang.startsWith("zh") ? "。" : "."}`;
}

function draw(chart, points) {
  const most = Math.max(1, ...points.map(([flow, allocation]) => Math.max(flow, allocation || 0))) * 1.08;
  const x = (index) => WIDTH - (points.length - 1 - index) * (WIDTH / (POINTS - 1));
  const y = (value) => HEIGHT - 1 - (value / most) * (HEIGHT - 2);
  const path = (pick) => points.map((point, index) => {
    const value = pick(point);
    return value === null ? "" : `${index && pick(points[index - 1]) !== null ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
  }).join("");
  if (!points.length) return;
  const line = path(([flow]) => flow);
  chart.querySelector(".line").setAttribute("d", line);
  chart.querySelector(".area").setAttribute("d", `${line}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z`);
  chart.querySelector(".allocation").setAttribute("d", path(([, allocation]) => allocation ?? null));
}

for (const section of document.querySelectorAll("[data-live-url]")) {
  const live = new Live(section);
  live.ask();
  setInterval(() => live.ask(), EVERY_MS);
}
