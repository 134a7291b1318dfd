"use strict";
// What every chart of the page shares: colours from its style sheet, text as text, drawing again when it changes.

// A chart's kind → (data, look, width, state) → {option, height}. Of a kind, too: `rows(data)`, its numbers with
// heads that name their units; `controls(data, state)`, what a reader can choose; `zoomed(data, state, width)`, what
// changes with the zoom.
const kinds = {};
const NARROW = 620;
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow"];
const DASHES = ["solid", "dashed", "dotted"];

function lookOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return { colour, ink: colour("ink"), soft: colour("soft"), rule: colour("rule"), paper: colour("paper"),
    font: style.getPropertyValue("--sans").trim(), still: matchMedia("(prefers-reduced-motion: reduce)").matches };
}

// Three significant digits, as in the tables: 5270, 41.9, 0.0414.
function digits(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const rounded = Number(value.toPrecision(3));
  const size = rounded === 0 ? 0 : Math.floor(Math.log10(Math.abs(rounded)));
  const decimals = Math.min(12, Math.max(0, 2 - size));
  return rounded.toLocaleString("en-US",
    { minimumFractionDigits: value === 0 ? 0 : decimals, maximumFractionDigits: decimals });
}

// A latency, in the page's finest: three significant digits, but no finer than 0.1 ms.
function milliseconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value !== 0 && Math.abs(value) < 0.05) return "<0.1";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.abs(rounded) >= 100 ? 0 : 1;
  return rounded.toLocaleString("en-US",
    { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

const isMs = (unit) => /\bms\b/.test(unit);
const inUnit = (value, unit) => (isMs(unit) ? milliseconds(value) : digits(value));

// A round number on an axis: 30, 0.5, 1,000.
const tick = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", { maximumFractionDigits: 9 });

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A tooltip of foreign names must be made of nodes, never of HTML.
function tooltip(head, rows) {
  const box = element("div", "tip");
  box.append(element("strong", "", head));
  for (const [colour, label, value] of rows) {
    const row = element("div");
    const key = element("i");
    key.style.background = colour;
    row.append(key, element("span", "", label), element("b", "", value));
    box.append(row);
  }
  return box;
}

const RUNS = "[=+@]|-(?![\\d,.]+(?:e[-+]?\\d+)?(?:$|[;\\t\\r\\n]))"; // a formula's beginning, and not a negative number
const RUNS_FIRST = new RegExp(`^(?=${RUNS}|[\\t\\r])`);
const RUNS_LATER = new RegExp(`([;\\t\\r\\n])(?="*(?:${RUNS}))`, "g");

// A text as a field of CSV. What a spreadsheet would run as a formula has a ' before it, also within the text: one
// that separates cells by `;` splits the text there, whatever quotes are around it.
function field(text) {
  const safe = text.replace(RUNS_FIRST, "'").replace(RUNS_LATER, "$1'");
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csvText = (rows) => rows.map((row) => row.map((value) => field(String(value ?? ""))).join(",")).join("\n") + "\n";

// Hands a file to the reader, named after a title.
function download(title, ending, blob) {
  const address = URL.createObjectURL(blob);
  const anchor = element("a");
  anchor.href = address;
  anchor.download = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.${ending}`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function base(look) {
  return {
    animation: false,
    textStyle: { fontFamily: look.font, color: look.ink },
    aria: { enabled: true, label: { enabled: false } },
    tooltip: { confine: true, backgroundColor: look.paper, borderColor: look.rule, padding: 8,
      textStyle: { color: look.ink, fontSize: 12, fontFamily: look.font }, extraCssText: "max-width: 20rem" },
  };
}

function axisLook(look) {
  return { axisLine: { lineStyle: { color: look.soft } }, axisTick: { lineStyle: { color: look.soft } },
    axisLabel: { color: look.soft, fontSize: 11, hideOverlap: true, formatter: tick },
    splitLine: { lineStyle: { color: look.rule } }, nameTextStyle: { color: look.soft, fontSize: 11 } };
}

// An axis with its unit under its middle.
const named = (look, name, gap = 24) => ({ name, nameLocation: "middle", nameGap: gap,
  nameTextStyle: { color: look.soft, fontSize: 11 } });

// Around a label that lines may pass behind.
const halo = (look) => ({ textBorderColor: look.paper, textBorderWidth: 3 });

const measuring = document.createElement("canvas").getContext("2d");

// How many px a text takes.
function textWidth(text, size, look, weight = 400) {
  measuring.font = `${weight} ${size}px ${look.font}`;
  return measuring.measureText(text).width;
}

const MOST_NAMES = 10; // in a legend that shows all at once

// The names of lines above a chart, in as many rows as they need; where they are many, one row that can be paged.
function lineLegend(look, width, names) {
  const shared = { left: 0, top: 0, data: names, itemGap: 14, textStyle: { color: look.ink, fontSize: 12 },
    inactiveColor: look.rule };
  if (names.length > MOST_NAMES) return { height: 34, legend: { ...shared, type: "scroll", width: width - 8,
    pageIconColor: look.ink, pageTextStyle: { color: look.ink } } };
  let [rows, used] = [1, 0];
  for (const name of names) {
    const taken = 44 + textWidth(name, 12, look);
    if (used && used + taken > width) [rows, used] = [rows + 1, 0];
    used += taken;
  }
  return { height: 14 + 24 * rows, legend: { ...shared, type: "plain", width } };
}

// Where labels of one height stand: as near to their places as they can without touching, none below the lowest.
function apart(places, height, lowest) {
  const order = places.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  const groups = [];
  for (const one of order) {
    groups.push({ members: [one], middle: one.at });
    while (groups.length > 1) {
      const [above, below] = groups.slice(-2);
      const gap = (height * (above.members.length + below.members.length)) / 2;
      if (below.middle - above.middle >= gap) break;
      const members = [...above.members, ...below.members];
      groups.splice(-2, 2, { members, middle: members.reduce((sum, { at }) => sum + at, 0) / members.length });
    }
  }
  const found = [];
  for (const { members, middle } of groups) members.forEach(({ index }, place) => {
    found[index] = middle + height * (place - (members.length - 1) / 2);
  });
  let limit = lowest;
  for (const { index } of order.reverse()) {
    found[index] = Math.min(found[index], limit);
    limit = found[index] - height;
  }
  return found;
}

// Round steps from 0 to over the most, about so many.
function stepsTo(most, count) {
  const step = roundStep(Math.max(most, 1e-9) / count);
  return { min: 0, max: Math.ceil(most / step - 1e-9) * step || step, interval: step };
}

// Whole powers of 10 around some values.
const powersAround = (values) => ({ min: 10 ** Math.floor(Math.log10(Math.min(...values))),
  max: 10 ** Math.ceil(Math.log10(Math.max(...values)) - 1e-9) });

// The next of 1, 2 and 5, ten times or a tenth as much, from a size on.
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= size * (1 - 1e-9));
}

function heading(look, text, left, top) {
  return { text, left, top, padding: 0, textStyle: { color: look.ink, fontSize: 12, fontWeight: 600 } };
}
