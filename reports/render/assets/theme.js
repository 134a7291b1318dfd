"use strict";
// What every chart of the page shares: colours from its style sheet, text as text, drawing again when it changes.

const kinds = {}; // a chart's kind → (data, look, width, state) → {option, height}
const NARROW = 620;

function lookOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return { colour, ink: colour("ink"), soft: colour("soft"), rule: colour("rule"), paper: colour("paper"),
    font: style.getPropertyValue("--sans").trim(), still: matchMedia("(prefers-reduced-motion: reduce)").matches };
}

// Three significant digits, as in the tables: 5270, 41.9, 0.0414.
function digits(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(12, Math.max(0, 2 - size));
  return Number(value.toPrecision(3)).toLocaleString("en-US",
    { minimumFractionDigits: value === 0 ? 0 : decimals, maximumFractionDigits: decimals });
}

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

function heading(look, text, left, top) {
  return { text, left, top, padding: 0, textStyle: { color: look.ink, fontSize: 12, fontWeight: 600 } };
}

function mount(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const canvas = figure.querySelector(".canvas");
  const chart = echarts.init(canvas, null, { renderer: "svg" });
  const state = { chart };
  let drawn = 0;
  state.redraw = () => {
    const { option, height } = kinds[figure.dataset.kind](data, lookOf(), canvas.clientWidth, state);
    canvas.style.height = `${height}px`;
    drawn = canvas.clientWidth;
    chart.resize({ width: drawn, height });
    chart.setOption(option, { notMerge: true });
  };
  const controls = kinds[figure.dataset.kind].controls;
  if (controls) figure.querySelector(".controls").append(...controls(data, state));
  state.redraw();
  new ResizeObserver(() => canvas.clientWidth !== drawn && state.redraw()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", state.redraw);
  chart.on("datazoom", () => { state.zoom = chart.getOption().dataZoom.map(({ start, end }) => ({ start, end }))[0]; });
  const paper = (on) => () => { document.documentElement.classList.toggle("on-paper", on); state.redraw(); };
  addEventListener("beforeprint", paper(true));
  addEventListener("afterprint", paper(false));
}
