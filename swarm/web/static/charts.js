// Live charts of the seconds. A chart without any value is not shown.

import { made } from "./tables.js";

const GIB = 2 ** 30;
const CHARTS = [
  ["Throughput", "per second", ["images", "images_per_s"], ["failures", "failures_per_s"]],
  ["Latency", "ms", ["p50", "latency_p50_ms"], ["p95", "latency_p95_ms"], ["p99", "latency_p99_ms"]],
  ["Goodput", "per second", ["good", "goodput_per_s"]],
  ["Load", "count", ["in flight", "in_flight"], ["users", "users"]],
  ["Busiest worker's CPU", "% of a core", ["CPU", "worker_cpu_pct"]],
  ["Worst worker's loop lag", "ms, p99", ["lag", "loop_lag_ms"]],
  ["Server", "ms per request", ["queue wait", "server_queue_ms"], ["compute", "server_compute_ms"]],
  ["Executed batch", "images", ["batch", "executed_batch"]],
  ["Pending requests", "in the server", ["pending", "pending_requests"]],
  ["GPU utilisation", "%", ["GPUs", "gpu_util_pct"]],
  ["GPU memory", "GiB", ["GPUs", "gpu_memory_bytes", GIB]],
  ["GPU power", "W", ["GPUs", "gpu_power_w"]],
];
const COLOURS = ["--one", "--two", "--three"];
const DASHES = ["solid", "dashed", "dotted"];
const SHADES = { "warm-up": "--warm", measure: "--wash" };
const SVG = "http://www.w3.org/2000/svg";

export const digits = (value) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
};

// Counts are whole and shown so; on an axis, digits that say nothing are left out.
const COUNTED = new Set(["per second", "count", "in the server"]);
const shown = (unit) => (value) =>
  COUNTED.has(unit) && Number.isInteger(value) ? value.toLocaleString("en") : digits(value);
const onAxis = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

const sample = (index) => {
  const [box, line] = [document.createElementNS(SVG, "svg"), document.createElementNS(SVG, "line")];
  for (const [name, value] of Object.entries({ x1: 0, x2: 24, y1: 5, y2: 5 })) line.setAttribute(name, value);
  box.setAttribute("aria-hidden", "true");
  line.setAttribute("class", `s${index}`);
  box.append(line);
  return box;
};

const LOADED = new Set(["warm-up", "measure"]);

// Run by run, since some run at the same time.
export const byRun = (seconds) => seconds.toSorted((one, other) => one.run - other.run || one.t_s - other.t_s);

// The seconds that are wholly under the load of one phase: others would be drawn as drops that were none.
export const whole = (seconds) => seconds.filter((second, index) => {
  const before = seconds[index - 1];
  return LOADED.has(second.phase) && before && before.t_s === second.t_s - 1
    && before.run === second.run && before.phase === second.phase;
});

// [ms, value] of each second; a hole where seconds or cells do not follow one another.
const points = (seconds, column, scale) => {
  const found = [];
  seconds.forEach((second, index) => {
    const before = seconds[index - 1];
    const follows = before && before.t_s === second.t_s - 1 && before.run === second.run;
    if (before && !follows) found.push([second.t_s * 1000 - 500, null]);
    found.push([second.t_s * 1000, second[column] === null ? null : second[column] / scale]);
  });
  return found;
};

// [phase, from, to] in ms, of seconds that follow one another in one phase of one run.
const spans = (seconds) => {
  const found = [];
  for (const second of seconds) {
    const [from, to, last] = [second.t_s * 1000 - 500, second.t_s * 1000 + 500, found.at(-1)];
    if (last && last.run === second.run && last.phase === second.phase) last.to = to;
    else found.push({ run: second.run, first: last?.run !== second.run, phase: second.phase, from, to });
  }
  return found;
};

class Chart {
  constructor([title, unit, ...series], root) {
    Object.assign(this, { title, unit, series });
    this.figure = made("figure");
    const head = made("h3", `${title} `);
    head.append(made("small", unit));
    this.readout = made("ul", "", "readout");
    this.plot = made("div", "", "plot");
    this.plot.setAttribute("role", "img");
    const caption = made("figcaption");
    caption.append(head, this.readout);
    this.figure.append(caption, this.plot);
    root.append(this.figure);
  }

  has(seconds) {
    return this.series.some(([, column]) => seconds.some((second) => second[column] !== null));
  }

  draw(seconds, wide) {
    this.figure.hidden = !this.has(seconds);
    if (this.figure.hidden) return;
    this.chart ??= this.#begun();
    const latest = this.series.map(([name, column, scale = 1]) => {
      const last = seconds.findLast((second) => second[column] !== null);
      return `${name} ${shown(this.unit)(last ? last[column] / scale : null)}`;
    });
    this.readout.replaceChildren(...latest.map((text, index) => {
      const item = made("li");
      item.append(sample(index), text);
      return item;
    }));
    this.plot.setAttribute("aria-label", `${this.title} in ${this.unit}; last: ${latest.join(", ")}`);
    this.chart.setOption(this.#option(seconds, wide), { replaceMerge: ["series"] });
  }

  #begun() {
    const chart = window.echarts.init(this.plot);
    new ResizeObserver(() => chart.resize()).observe(this.plot);
    return chart;
  }

  #option(seconds, wide) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = { color: colour("--soft"), fontSize: 11 };
    const line = { lineStyle: { color: colour("--rule") } };
    const cells = new Map();
    for (const { t_s, run, cell, phase } of seconds) {
      cells.set(t_s * 1000, [...(cells.get(t_s * 1000) ?? []), `run ${run}: ${cell}, ${phase}`]);
    }
    const times = seconds.map((second) => second.t_s * 1000);
    return {
      animation: false,
      grid: { left: 46, right: 10, top: 12, bottom: 24 },
      xAxis: {
        type: "time", min: Math.min(...times) - 500, max: Math.max(...times) + 500, splitNumber: 3,
        axisLine: line, axisTick: line,
        axisLabel: { ...text, hideOverlap: true, formatter: clock },
      },
      yAxis: {
        type: "value", min: 0, splitNumber: 3, splitLine: line, axisLabel: { ...text, formatter: onAxis },
        boundaryGap: [0, "8%"], minInterval: COUNTED.has(this.unit) ? 1 : 0,
      },
      tooltip: {
        trigger: "axis", renderMode: "richText", confine: true,
        axisPointer: { lineStyle: { color: colour("--soft") } },
        backgroundColor: colour("--paper"), borderColor: colour("--rule"),
        textStyle: { color: colour("--ink"), fontSize: 12 },
        formatter: (found) => [
          `${clock(found[0].value[0])}  ${(cells.get(found[0].value[0]) ?? []).join("; ")}`,
          ...found.map((one) => `${one.seriesName}: ${shown(this.unit)(one.value[1])}`),
        ].join("\n"),
      },
      series: this.series.map(([name, column, scale = 1], index) => ({
        id: column, name, type: "line", data: points(seconds, column, scale), showSymbol: seconds.length < 40,
        symbolSize: 4, itemStyle: { color: colour(COLOURS[index]) },
        lineStyle: { color: colour(COLOURS[index]), width: 1.8, type: DASHES[index] },
        ...(index === 0 && { markArea: shaded(seconds, wide, colour, text) }),
      })),
    };
  }
}

// The numbers of the runs that begin at the same time, above the first one's band.
const numbers = (span, begins) => {
  const beside = begins.filter(({ from }) => Math.abs(from - span.from) <= 2000).map(({ run }) => run);
  return span.first && beside[0] === span.run ? beside.join(", ") : "";
};

const shaded = (seconds, wide, colour, text) => {
  const found = spans(seconds);
  const begins = found.filter(({ first }) => first);
  return {
    silent: true,
    label: { ...text, position: "insideTopLeft", fontSize: 10 },
    data: found.map((span) => [
      { name: wide ? numbers(span, begins) : span.phase, xAxis: span.from, itemStyle: { color: colour(SHADES[span.phase]) } },
      { xAxis: span.to },
    ]),
  };
};

export class Charts {
  constructor(root) {
    this.charts = CHARTS.map((definition) => new Chart(definition, root));
  }

  // Returns the titles of the charts that have nothing to show.
  draw(seconds, wide) {
    for (const chart of this.charts) chart.draw(seconds, wide);
    return this.charts.filter((chart) => chart.figure.hidden).map((chart) => chart.title);
  }
}
