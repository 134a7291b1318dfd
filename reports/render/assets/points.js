// One number of each endpoint as a dot on a line, and throughput against latency as a curve.

const DOT_ROW = 26;

kinds.dots = (data, look, width) => {
  const narrow = width < NARROW;
  const widest = (texts) => 24 + Math.max(0, ...texts.map((text) => textWidth(text, 12, look, 700)));
  const longest = widest(data.rows.map(labelOf));
  const left = Math.min(longest, width * 0.4);
  // Names break between words, so that those of two lines' length may take three.
  const lines = Math.ceil(longest / left + 0.5);
  const right = Math.min(widest(data.rows.map((row) => valueText(row, data.unit))), width * 0.36);
  const height = Math.max(DOT_ROW, 12 * lines + 6) * data.rows.length;
  const axis = axisLook(look);
  const scale = stepsTo(mostOf(data.rows), narrow ? 3 : 5);
  const names = data.rows.map((row) => ({ value: labelOf(row),
    textStyle: { color: look.ink, fontWeight: row.best ? 700 : 400 } }));
  const values = data.rows.map((row) => ({ value: valueText(row, data.unit),
    textStyle: { color: row.best ? look.ink : look.soft, fontWeight: row.best ? 700 : 400 } }));
  const side = { type: "category", inverse: true, axisLine: { show: false }, axisTick: { show: false } };
  const option = { ...base(look), grid: { left, right, top: 4, height, outerBoundsMode: "none" },
    xAxis: { type: "value", ...axis, ...named(look, data.unit), ...scale },
    yAxis: [
      { ...side, data: names, splitLine: { show: true, lineStyle: { color: look.rule, type: "dotted" } },
        axisLabel: { interval: 0, fontSize: 12, lineHeight: 12, width: left - 10, overflow: "break" } },
      { ...side, data: values, position: "right", splitLine: { show: false },
        axisLabel: { interval: 0, fontSize: 12, width: right - 10, overflow: "truncate" } }],
    series: data.rows.flatMap((row, at) => dotOf(row, at, scale, look)) };
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: dot }) => dotTip(dot.row, data.unit, look) };
  return { option, height: height + 50 };
};

kinds.dots.rows = (data) => [["name", data.unit, `${data.unit} low`, `${data.unit} high`, "note"],
  ...data.rows.map((row) => [row.name, row.value, row.low, row.high, row.note])];

const labelOf = (one) => one.name + (one.doubted ? " (invalidated)" : "");
const ranged = (row) => row.low !== null && row.high !== null && row.low < row.high;

function valueText(row, unit) {
  const range = ranged(row) ? ` (${inUnit(row.low, unit)}–${inUnit(row.high, unit)})` : "";
  return `${inUnit(row.value, unit)}${range}`;
}

const rangeText = (point, key, unit) =>
  valueText({ value: point[key], low: point[`${key}_low`], high: point[`${key}_high`] }, unit);

// Times the highest value, up to which intervals are drawn: one from two repeats may reach ten times its value.
const REACH = 1.6;

function mostOf(rows) {
  const value = Math.max(0, ...rows.map((row) => row.value ?? 0));
  const high = Math.max(value, ...rows.map((row) => row.high ?? 0));
  return value ? Math.min(high, REACH * value) : high;
}

// An interval's end, or the axis's with an arrow where it lies beyond.
function endOf(end, at, { min, max }, size) {
  if (min <= end && end <= max) return [end, at];
  const [edge, symbolRotate] = end < min ? [min, 90] : [max, -90];
  return { value: [edge, at], symbol: "triangle", symbolSize: size, symbolRotate };
}

function dotOf(row, at, scale, look) {
  const colour = row.best ? look.colour("series-2") : look.colour("bar");
  const size = row.best ? 13 : 10;
  const interval = { type: "line", silent: true, symbol: "rect", symbolSize: [2, 9], itemStyle: { color: colour },
    lineStyle: { color: colour, width: row.best ? 3 : 2 },
    data: [row.low, row.high].map((end) => endOf(end, at, scale, size)) };
  const dot = { type: "scatter", symbol: "circle", symbolSize: size, z: 3, data: [{ value: [row.value, at], row,
    itemStyle: { color: row.doubted ? look.paper : colour, borderColor: colour, borderWidth: 2 } }] };
  return [...(ranged(row) ? [interval] : []), ...(row.value === null ? [] : [dot])];
}

function dotTip(row, unit, look) {
  const rows = [[row.best ? look.colour("series-2") : look.colour("bar"), unit, valueText(row, unit)]];
  if (row.note) rows.push([look.paper, row.note, ""]);
  if (row.doubted) rows.push([look.paper, "invalidated", "see the caveats"]);
  return tooltip(row.name, rows);
}

const WIDE_SPAN = 20; // times the least, from which on an axis is logarithmic

kinds.tradeoff = (data, look, width) => {
  const narrow = width < NARROW;
  const axis = axisLook(look);
  const points = data.series.flatMap(knownOf);
  const all = (key) => points.flatMap((point) => SPREAD.map((end) => point[key + end]))
    .filter((value) => typeof value === "number" && value > 0);
  const latencies = all("latency");
  const log = Math.max(...latencies) > WIDE_SPAN * Math.min(...latencies);
  const { legend, height: above } = lineLegend(look, width, data.series.map((one) => one.name));
  const grid = { left: 52, right: narrow ? 22 : 40, top: above + 26, height: narrow ? 260 : 300,
    outerBoundsMode: "none" };
  const xAxis = { type: "value", ...axis, ...named(look, data.x, 26),
    ...stepsTo(Math.max(...all("rate")) * 1.02, narrow ? 4 : 6) };
  const yAxis = { type: log ? "log" : "value", ...axis,
    ...(log ? powersAround(latencies) : stepsTo(Math.max(...latencies) * 1.04, 5)) };
  const labels = labelPlaces(points, placeIn(grid, xAxis, yAxis, width), look, width);
  const option = { ...base(look), title: [heading(look, `${data.y}${log ? " (log scale)" : ""}`, 0, above)], grid, legend,
    xAxis, yAxis, series: data.series.flatMap((one, at) => pathOf(one, at, labels, look)) };
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: dot }) => pathTip(dot, data, look) };
  return { option, height: above + grid.height + 76 };
};

const knownOf = (one) => one.points.filter((point) => point.rate !== null && point.latency !== null && point.latency > 0);

// Where a point is drawn, in px.
function placeIn(grid, xAxis, yAxis, width) {
  const scale = yAxis.type === "log" ? Math.log10 : (value) => value;
  const [low, high] = [scale(yAxis.min), scale(yAxis.max)];
  return ({ rate, latency }) => [grid.left + ((width - grid.left - grid.right) * rate) / xAxis.max,
    grid.top + (grid.height * (high - scale(latency))) / (high - low)];
}

const SIDES = ["top", "right", "bottom", "left"];

// On which side of each point its label has room, knees first; a point whose label has none is not in it.
function labelPlaces(points, placeOf, look, width) {
  const boxes = points.map((point) => { const [x, y] = placeOf(point); return [x - 6, y - 6, x + 6, y + 6]; });
  const found = new Map();
  for (const point of [...points].sort((a, b) => Number(b.knee) - Number(a.knee))) {
    const [x, y] = placeOf(point);
    const half = textWidth(labelText(point), 11, look, 600) / 2 + 2;
    const reach = point.knee ? 14 : 9;
    const places = { top: [x - half, y - reach - 13, x + half, y - reach],
      bottom: [x - half, y + reach, x + half, y + reach + 13],
      right: [x + reach, y - 6, x + reach + 2 * half, y + 6], left: [x - reach - 2 * half, y - 6, x - reach, y + 6] };
    const free = (box) => box[0] >= 0 && box[2] <= width && !boxes.some((other) => other !== box
      && box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
    const side = SIDES.find((one) => free(places[one]));
    if (!side) continue;
    boxes.push(places[side]);
    found.set(point, side);
  }
  return found;
}

const labelText = (point) => point.label + (point.knee ? ", knee" : "");

const SPREAD = ["", "_low", "_high"];

kinds.tradeoff.rows = (data) => [
  ["series", "point", ...SPREAD.map((end) => data.x + end.replace("_", " ")),
    ...SPREAD.map((end) => data.y + end.replace("_", " ")), "knee"],
  ...data.series.flatMap((one) => one.points.map((point) => [one.name, point.label,
    ...SPREAD.map((end) => point[`rate${end}`]), ...SPREAD.map((end) => point[`latency${end}`]), point.knee ? "yes" : "no"])),
];

function pathOf(one, at, labels, look) {
  const colour = look.colour(`series-${(at % 8) + 1}`);
  const of = { type: "line", name: one.name, itemStyle: { color: colour } };
  const known = knownOf(one);
  const points = known.map((point) => ({ value: [point.rate, point.latency], point, of: one.name, colour,
    ...(point.doubted ? { symbol: "emptyCircle" } : {}),
    label: { show: labels.has(point), position: labels.get(point), distance: point.knee ? 10 : 5,
      formatter: labelText(point), color: point.knee ? look.ink : look.soft, fontSize: 11,
      fontWeight: point.knee ? 600 : 400, ...halo(look) } }));
  const lines = [{ ...of, z: 3, symbol: SYMBOLS[at % SYMBOLS.length], symbolSize: 8, data: points,
    lineStyle: { color: colour, width: 2, type: DASHES[Math.floor(at / 8) % 3] } }];
  const cross = { ...of, silent: true, symbol: "none", lineStyle: { color: colour, width: 1, opacity: 0.6 } };
  for (const point of known) {
    if (point.rate_low < point.rate_high) lines.push({ ...cross,
      data: [[point.rate_low, point.latency], [point.rate_high, point.latency]] });
    if (point.latency_low < point.latency_high) lines.push({ ...cross,
      data: [[point.rate, point.latency_low], [point.rate, point.latency_high]] });
  }
  const knees = known.filter((point) => point.knee).map((point) => [point.rate, point.latency]);
  return [...lines, ...ringsAround(knees, of, colour)];
}

// The rings that mark knees.
function ringsAround(places, of, colour, label = { show: false }) {
  return places.map((place) => ({ ...of, silent: true, lineStyle: { width: 0 }, data: [place], symbol: "circle",
    symbolSize: 18, itemStyle: { color: "transparent", borderColor: colour, borderWidth: 2 }, label }));
}

function pathTip({ of, colour, point }, data, look) {
  if (!point) return "";
  const rows = [[colour, data.x, rangeText(point, "rate", data.x)], [look.paper, data.y, rangeText(point, "latency", data.y)]];
  if (point.knee) rows.push([look.paper, "knee", ""]);
  if (point.doubted) rows.push([look.paper, "invalidated", "see the caveats"]);
  return tooltip(`${of}, ${point.label}`, rows);
}
