// Where a request's time goes: stacked bars, a panel for each batch and load.

const PATTERNS = { send_delay: 0, resolve: 1, connect: 2, encode: 1, stream_wait: 1, flow_wait: 2, send: 0, network: 2,
  server_queue: 1, server_compute: 0, server_other: 2, receive: 0, decode: 2, unclear: 1, unexplained: 3 };
const DECALS = [
  { symbol: "none" },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [2, 5], rotation: -Math.PI / 4, color: "rgba(255,255,255,0.35)" },
  { symbol: "circle", symbolSize: 0.5, dashArrayX: [[3, 3], [0, 3, 3, 0]], dashArrayY: [3, 0],
    color: "rgba(255,255,255,0.45)" },
  { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [1, 3], rotation: Math.PI / 4, color: "rgba(255,255,255,0.6)" },
];

const ROW = 27;
const GAP = 12;

kinds.breakdown = (data, look, width, state) => {
  const narrow = width < NARROW;
  const columns = narrow || data.panels.length < 2 ? 1 : 2;
  const span = width / columns;
  const left = Math.min(columns === 1 ? 210 : 160, span * 0.34);
  const legend = legendHeight(data.parts, width, look);
  const every = data.panels.flatMap((panel) => panel.bars);
  const row = Math.max(ROW, ...every.map((bar) => labelHeight(bar, left - 10, look)));
  const heights = data.panels.map((panel) => 76 + row * panel.bars.length);
  const rows = data.panels.map((_, index) => Math.floor(index / columns));
  const tallest = [];
  heights.forEach((height, index) => { tallest[rows[index]] = Math.max(tallest[rows[index]] || 0, height); });
  const topOf = (row) => legend + tallest.slice(0, row).reduce((sum, height) => sum + height, 0);
  const option = { ...base(look), title: [], grid: [], xAxis: [], yAxis: [], series: [], legend: {
    data: data.parts.map((part) => part.label), left: 0, top: 0, itemWidth: 14, itemHeight: 10, itemGap: GAP,
    textStyle: { color: look.ink, fontSize: 12 }, inactiveColor: look.rule, type: "plain", width: width - 8 } };
  const scale = scaleOf(data, state);
  data.panels.forEach((panel, index) => {
    const at = { left: (index % columns) * span, top: topOf(rows[index]) };
    option.title.push(heading(look, panel.title, at.left, at.top));
    option.grid.push({ left: at.left + left, top: at.top + 20, width: span - left - 64, height: row * panel.bars.length });
    option.xAxis.push({ type: "value", gridIndex: index, ...axisLook(look), ...scale,
      ...named(look, state.share ? "share of the mean, %" : "ms", 22),
      axisLabel: { ...axisLook(look).axisLabel, customValues: scale.ticks } });
    option.yAxis.push({ type: "category", gridIndex: index, inverse: true, ...axisLook(look), splitLine: { show: false },
      data: panel.bars.map(nameOfBar), axisTick: { show: false },
      axisLabel: { interval: 0, color: look.ink, fontSize: 12, width: left - 10, overflow: "break", lineHeight: 12 } });
    option.series.push(...barsOf(panel, index, data.parts, look, state));
  });
  option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow" },
    formatter: (shown) => tipOf(data, look, shown) };
  const height = topOf(tallest.length) + 4;
  return { option, height };
};

// What the legend's rows take, in px: each part's name is set beside the last one where there is room for it.
function legendHeight(parts, width, look) {
  let [rows, end] = [1, 0];
  for (const part of parts) {
    const item = 14 + 5 + textWidth(part.label, 12, look) + GAP;
    [rows, end] = end + item > width - 8 ? [rows + 1, item] : [rows, end + item];
  }
  return 4 + rows * (14 + GAP);
}

const nameOfBar = (bar) => bar.name + (bar.doubted ? "\n(invalidated)" : "");

// What a bar's label takes with a little room, in px; a name is broken where it is too long.
function labelHeight(bar, room, look) {
  const lines = nameOfBar(bar).split("\n").map((line) => Math.ceil(textWidth(line, 12, look) / room));
  return 3 + 12 * sumOf(lines);
}

// One for all panels, so that bars can be compared across them; a hair wider than its last tick, where labels stand.
function scaleOf(data, state) {
  const ends = data.panels.flatMap((panel) => panel.bars).map((bar) => {
    const parts = Object.values(bar.parts);
    const per = state.share ? 100 / totalOf(bar) : 1;
    return [per * sumOf(parts.filter((ms) => ms < 0)), per * sumOf(parts.filter((ms) => ms > 0))];
  });
  const [low, high] = [Math.min(0, ...ends.map(([end]) => end)), Math.max(1e-6, ...ends.map(([, end]) => end))];
  const step = state.share ? 25 : roundStep((high - low) / 5);
  const [first, last] = [Math.floor(low / step + 1e-6), Math.ceil(high / step - 1e-6)];
  const ticks = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
  return { min: first * step, max: last * step * (1 + 1e-9), interval: step, ticks };
}

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);
const totalOf = (bar) => sumOf(Object.values(bar.parts));

function barsOf(panel, index, parts, look, state) {
  const totals = panel.bars.map(totalOf);
  const scale = (ms, at) => (state.share && totals[at] ? (100 * ms) / totals[at] : ms);
  const of = { type: "bar", stack: `panel-${index}`, xAxisIndex: index, yAxisIndex: index, barWidth: 15 };
  const drawn = parts.map((part) => ({ ...of, name: part.label,
    itemStyle: { color: look.colour(`part-${part.name}`), decal: DECALS[PATTERNS[part.name]] },
    data: panel.bars.map((bar, at) => (part.name in bar.parts ? scale(bar.parts[part.name], at) : null)) }));
  const label = { show: true, position: "right", color: look.ink, fontSize: 11,
    formatter: ({ dataIndex }) => `${milliseconds(totals[dataIndex])} ms` };
  // Next to nothing, so that the label stands at the end of the parts above 0.
  return [...drawn, { ...of, name: "", silent: true, data: totals.map(() => 1e-12), label }];
}

function tipOf(data, look, shown) {
  const panel = data.panels[shown[0].axisIndex];
  const bar = panel.bars[shown[0].dataIndex];
  const total = totalOf(bar);
  const rows = data.parts.filter((part) => part.name in bar.parts).map((part) => [look.colour(`part-${part.name}`),
    part.label, `${milliseconds(bar.parts[part.name])} ms, ${((100 * bar.parts[part.name]) / total).toFixed(1)} %`]);
  return tooltip(`${bar.name}, ${panel.title}: ${milliseconds(total)} ms`, rows);
}

kinds.breakdown.controls = (data, state) => [["milliseconds", false], ["share of each, %", true]].map(([text, share]) => {
  const button = element("button", "", text);
  button.type = "button";
  button.setAttribute("aria-pressed", String(!share));
  button.addEventListener("click", () => {
    state.share = share;
    for (const other of button.parentNode.children) other.setAttribute("aria-pressed", String(other === button));
    state.redraw();
  });
  return button;
});

kinds.breakdown.rows = (data) => [["batch and load", "name", ...data.parts.map((part) => `${part.label}, ms`), "mean, ms"],
  ...data.panels.flatMap((panel) => panel.bars.map((bar) => [panel.title, bar.name,
    ...data.parts.map((part) => bar.parts[part.name] ?? null), Number(totalOf(bar).toPrecision(6))]))];
