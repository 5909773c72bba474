// Draws the charts of a page with Chart.js: lines, what happened as marks, and the values of a moment in all of them at once.
//
// A card with [data-plot] names the JSON of its chart (console/charts.py): values of steps, from `start`, every `step_s` seconds.
// Texts are those of the table behind the chart; moments are in the browser's time zone. A chart that has the focus is moved
// through by keys, and #plots-said tells it. Nothing moves by itself. Without this file the tables stand open.
"use strict";

(() => {
  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const DASH = "–", NARROW = "\u202f";
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const SPANS = [[DAY, "days", HOUR, "h"], [HOUR, "h", MINUTE, "min"], [MINUTE, "min", 1, "s"]];
  const LINES = { most: { borderWidth: 1 }, limit: { borderWidth: 1.5 }, allocation: { borderWidth: 1.5, borderDash: [5, 4] } };
  const MARKS = { throttling: [2, 3], failover: [8, 4] };
  const FONT_PX = 12, MARK_PX = 20, TICK_PX = 90;

  // --- values in words: the same as templatetags/console.py and over_time.py write --------------------------------------

  let words = {};
  const say = (text) => words[text] ?? text;
  const rounded = (value, digits) => Number(value.toFixed(digits));

  function amount(value) {
    const [whole, part] = rounded(value, 6).toFixed(6).split(".");
    const digits = part.replace(/0+$/, "");
    return whole.replace(/\B(?=(\d{3})+$)/g, NARROW) + (digits && `.${digits}`);
  }

  function bytes(value) {
    let unit = 0;
    while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
    const text = value.toFixed(unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2);
    return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${UNITS[unit]}`;
  }

  function duration(seconds) {
    const whole = Math.round(seconds);
    if (whole < MINUTE) return `${amount(rounded(seconds, 1))} ${say("s")}`;
    const [size, unit, nextSize, nextUnit] = SPANS.find(([least]) => whole >= least);
    const count = Math.floor(whole / size), rest = Math.floor((whole % size) / nextSize);
    const text = `${amount(count)} ${say(count === 1 && unit === "days" ? "day" : unit)}`;
    return rest ? `${text} ${rest} ${say(nextUnit)}` : text;
  }

  const TEXTS = {
    amount,
    bytes,
    duration,
    rate: (value) => `${bytes(value)}/s`,
    percent: (value) => `${amount(rounded(value, 1))} %`,
    per_s: (value) => `${amount(rounded(value / 1000, 3))}/s`,
    latency: (value) => `${amount(rounded(value / 1000, 3))} ms`,
    records: (value) => amount(rounded(value, 1)),
  };

  // --- moments ------------------------------------------------------------------------------------------------------------

  const lang = document.documentElement.lang;
  const dated = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" };
  const form = (options) => new Intl.DateTimeFormat(lang, options);
  const FORMS = {
    minute: form(dated),
    second: form({ ...dated, second: "2-digit" }),
    clock: form({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
    seconds: form({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }),
    day: form({ month: "short", day: "numeric" }),
    month: form({ month: "short", year: "numeric" }),
  };
  const STEPS = [10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR];
  const zoned = (at) => new Date(at * 1000).getTimezoneOffset() * MINUTE;

  // Round moments of the reader's clock between two, at most so many, each with its text.
  function ticks(first, last, most) {
    const found = [];
    const fits = (step) => (last - first) / step <= most;
    const step = STEPS.find(fits);
    if (step) {
      // By the reader's clock, which may be another after a change to or from summer time.
      for (let local = Math.ceil((first - zoned(first)) / step) * step; ; local += step) {
        let at = local + zoned(first);
        at = local + zoned(at);
        if (at > last) break;
        if (at < first || at - zoned(at) !== local) continue; // an hour that the clock leaves out
        const date = new Date(at * 1000);
        const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds();
        found.push([at, (isMidnight ? FORMS.day : step < MINUTE ? FORMS.seconds : FORMS.clock).format(date)]);
      }
      return found;
    }
    const days = [1, 2, 3, 7, 14].find((count) => fits(count * DAY));
    const months = days ? 0 : [1, 2, 3, 6].find((count) => fits(count * 30 * DAY)) ?? 12;
    const date = new Date(first * 1000);
    date.setHours(24, 0, 0, 0);
    if (months && date.getDate() > 1) date.setMonth(date.getMonth() + 1, 1);
    while (months && date.getMonth() % months) date.setMonth(date.getMonth() + 1);
    while (date / 1000 <= last) {
      found.push([date / 1000, (days ? FORMS.day : FORMS.month).format(date)]);
      if (days) date.setDate(date.getDate() + days); else date.setMonth(date.getMonth() + months);
    }
    return found;
  }

  // --- one chart ----------------------------------------------------------------------------------------------------------

  class Plot {
    constructor(card) {
      this.data = JSON.parse(document.getElementById(card.dataset.plot).textContent);
      this.box = card.querySelector(".plot");
      this.readout = card.querySelector(".readout");
      this.text = TEXTS[this.data.unit];
      this.marks = new Map(this.data.marks.map((mark) => [mark.at, mark]));
      this.ink = document.createElement("i");
      this.cursor = document.createElement("i");
      this.cursor.className = "plot-cursor";
      this.ink.hidden = this.cursor.hidden = true;
      this.box.append(this.ink, this.cursor);
      this.box.hidden = this.readout.hidden = false;
      const details = card.querySelector("details");
      if (!("whole" in details.dataset)) details.open = false;
      this.chart = new Chart(card.querySelector("canvas"), this.config());
      this.listen();
    }

    config() {
      const { start, step_s, count, levels, lines } = this.data;
      const last = start + step_s * Math.max(1, count - 1);
      return {
        type: "line",
        data: { datasets: lines.map((line, number) => this.dataset(line, lines.length - number)) },
        options: {
          animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true, events: [],
          layout: { padding: { top: MARK_PX, right: 4 } },
          scales: {
            x: {
              type: "linear", min: start, max: last, grid: { display: false },
              ticks: { autoSkip: false, maxRotation: 0, callback: (value, number, all) => all[number].label },
              afterBuildTicks: (axis) => {
                const most = Math.max(2, Math.floor(axis.chart.width / TICK_PX));
                axis.ticks = ticks(start, last, most).map(([value, label]) => ({ value, label }));
              },
            },
            y: {
              min: 0, max: levels.at(-1), border: { display: false },
              ticks: { autoSkip: false, callback: (value) => this.text(value) },
              afterBuildTicks: (axis) => { axis.ticks = levels.map((value) => ({ value })); },
            },
          },
          plugins: { legend: { display: false }, tooltip: { enabled: false } },
        },
        plugins: [{
          id: "ours",
          beforeUpdate: (chart) => this.paint(chart),
          afterDatasetsDraw: (chart) => this.drawMarks(chart),
          afterLayout: () => this.place(),
        }],
      };
    }

    dataset(line, order) {
      const { start, step_s } = this.data;
      const around = [null, ...line.values, null];
      return {
        label: line.title,
        kind: line.kind,
        data: line.values.map((y, step) => ({ x: start + step * step_s, y })),
        // A value between two gaps is no stroke: a point shows it.
        pointRadius: line.values.map((y, step) => (y !== null && around[step] === null && around[step + 2] === null ? 2 : 0)),
        pointBorderWidth: 0,
        borderWidth: 2,
        borderJoinStyle: "round",
        spanGaps: false,
        stepped: line.is_set,
        order,
        ...LINES[line.kind],
      };
    }

    color(name) {
      this.ink.className = `ink ${name}`;
      return getComputedStyle(this.ink).color;
    }

    // Colours of the page as they are now: they change with its theme.
    paint(chart) {
      for (const set of chart.data.datasets) set.borderColor = set.pointBackgroundColor = this.color(set.kind);
      const font = { size: FONT_PX, family: getComputedStyle(this.box).fontFamily };
      for (const axis of Object.values(chart.config.options.scales)) {
        Object.assign(axis.ticks, { color: this.color("muted"), font });
        axis.grid = { ...axis.grid, color: this.color("line") };
        axis.border = { ...axis.border, color: this.color("line") };
      }
    }

    // A line for each, with a head, and what it is called where there is room: colours are not all that tells them apart.
    drawMarks({ ctx, chartArea: { top, bottom, left, right }, scales: { x } }) {
      ctx.save();
      ctx.font = `${FONT_PX}px ${getComputedStyle(this.box).fontFamily}`;
      ctx.textBaseline = "middle";
      ctx.lineWidth = 1.5;
      let free = left;
      for (const mark of this.data.marks) {
        const at = x.getPixelForValue(mark.at);
        ctx.strokeStyle = ctx.fillStyle = this.color(mark.kind);
        ctx.setLineDash(MARKS[mark.kind] ?? []);
        ctx.beginPath();
        ctx.moveTo(at, top - 4);
        ctx.lineTo(at, bottom);
        ctx.stroke();
        ctx.beginPath();
        ctx.arc(at, top - 8, 3.5, 0, 2 * Math.PI);
        ctx.fill();
        const width = ctx.measureText(mark.title).width;
        const from = at + 7 + width <= right ? at + 7 : at - 7 - width;
        if (from >= free) ctx.fillText(mark.title, from, top - 8);
        free = Math.max(free, from + width, at) + 10;
      }
      ctx.restore();
    }

    listen() {
      this.box.addEventListener("pointermove", (event) => show(this.pointed(event)));
      this.box.addEventListener("pointerdown", (event) => show(this.pointed(event)));
      this.box.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse" && document.activeElement !== this.box) show(null); // a finger leaves when it is lifted
      });
      this.box.addEventListener("focus", () => {
        if (shown === null) show(this.moment(this.next(this.data.count, -1)));
        tell(this);
      });
      this.box.addEventListener("blur", () => { show(null); tell(null); });
      this.box.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { count } = this.data;
      const here = shown === null ? count : this.step(shown) ?? count;
      const steps = {
        ArrowLeft: () => this.next(here, -1), ArrowRight: () => this.next(here, 1),
        Home: () => this.next(-1, 1), End: () => this.next(count, -1),
      };
      if (event.key === "Escape") {
        this.box.blur();
      } else if (event.key in steps) {
        const step = steps[event.key]();
        if (step !== null) { show(this.moment(step)); tell(this); }
      } else return;
      event.preventDefault();
    }

    moment(step) { return step === null ? null : this.data.start + step * this.data.step_s; }

    // The step of a moment; null: it is not in this chart.
    step(at) {
      const step = Math.floor((at - this.data.start) / this.data.step_s);
      return step >= 0 && step < this.data.count ? step : null;
    }

    isTold(step) {
      return this.marks.has(this.moment(step)) || this.data.lines.some((line) => line.values[step] !== null);
    }

    // The next one from a step on of which anything is known, in a direction; null: there is none.
    next(step, way) {
      for (step += way; step >= 0 && step < this.data.count; step += way) if (this.isTold(step)) return step;
      return null;
    }

    pointed(event) {
      const { x } = this.chart.scales;
      const at = x.getValueForPixel(event.clientX - this.box.getBoundingClientRect().left);
      const step = Math.round((at - this.data.start) / this.data.step_s);
      return this.moment(Math.min(this.data.count - 1, Math.max(0, step)));
    }

    said(at) {
      const step = at === null ? null : this.step(at);
      if (step === null) return "";
      const moment = this.moment(step);
      const time = (this.data.step_s < MINUTE ? FORMS.second : FORMS.minute).format(moment * 1000);
      if (!this.isTold(step)) return `${time}: ${say("nothing is known")}`;
      const values = this.data.lines.map((line) => {
        const value = line.values[step];
        return `${line.title} ${line.words[step] ?? (value === null ? DASH : this.text(value))}`;
      });
      return [`${time}: ${values.join(", ")}`, ...(this.marks.get(moment)?.texts ?? [])].join(" · ");
    }

    show(at) {
      this.readout.textContent = this.said(at);
      this.place();
    }

    // The line at the moment that is shown; also when the chart has got another width.
    place() {
      const step = shown === null ? null : this.step(shown);
      this.cursor.hidden = step === null || !this.chart;
      if (this.cursor.hidden) return;
      const { chartArea: { top, height }, scales: { x } } = this.chart;
      this.cursor.dataset.at = this.moment(step);
      Object.assign(this.cursor.style, { top: `${top}px`, height: `${height}px`, left: `${x.getPixelForValue(this.moment(step))}px` });
    }
  }

  // --- all charts of the page ---------------------------------------------------------------------------------------------

  const plots = new Map();
  let shown = null;

  function show(at) {
    if (at === shown) return;
    shown = at;
    for (const plot of plots.values()) plot.show(at);
  }

  function tell(plot) {
    const said = document.getElementById("plots-said");
    if (said) said.textContent = plot ? plot.said(shown) : "";
  }

  // Also of a part that has come since, in the place of one that is gone.
  function start() {
    for (const [card, plot] of plots) if (!card.isConnected) { plot.chart.destroy(); plots.delete(card); }
    words = JSON.parse(document.getElementById("plot-words")?.textContent ?? "{}");
    for (const card of document.querySelectorAll("[data-plot]")) if (!plots.has(card)) plots.set(card, new Plot(card));
    const keys = document.getElementById("plots-keys");
    if (keys) keys.hidden = false;
    for (const times of document.querySelectorAll("[data-times]")) if (!times.dataset.zone) zone(times);
  }

  function repaint() {
    for (const plot of plots.values()) plot.chart.update("none");
  }

  // Moments of the page are UTC: here they are shown and typed in the browser's time zone, and sent as UTC.
  function zone(times) {
    times.dataset.zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const inputs = [...times.querySelectorAll("[data-moment]")];
    for (const [input, label] of inputs.map((each, number) => [each, number ? times.dataset.to : times.dataset.from])) {
      const part = times.querySelector(`label[for="${input.id}"]`).firstChild;
      part.textContent = `${label.replace("{zone}", times.dataset.zone)} `;
      const at = Date.parse(`${input.value}Z`);
      if (!Number.isNaN(at)) input.value = new Date(at - zoned(at / 1000) * 1000).toISOString().slice(0, 16);
    }
    times.addEventListener("submit", (event) => {
      event.preventDefault();
      const wanted = new URLSearchParams();
      for (const { name, value } of inputs) {
        const moment = new Date(value);
        wanted.set(name, Number.isNaN(moment.getTime()) ? value : `${moment.toISOString().slice(0, 16)}Z`);
      }
      location.assign(`${times.action}?${wanted}`);
    });
  }

  start();
  document.addEventListener("htmx:load", start);
  new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
