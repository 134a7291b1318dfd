// What each gate measured over its bound, with its interval: a row for each cell under its threshold.

const OUTCOMES = [["fail", "diamond", 13, "series-8"], ["inconclusive", "circle", 9, "series-6"],
  ["pass", "circle", 10, "series-3"]];
const TIMES = [0.05, 0.1, 0.2, 0.5, 0.8, 1, 1.2, 1.5, 2, 5, 10, 20];
const MORE_TIMES = [0.3, 0.7, 0.9, 0.95, 1.05, 1.1, 3];

kinds.gates = (data, look, width) => {
  const narrow = width < NARROW;
  const [legend, step, head] = [34, narrow ? 38 : 26, 26];
  const left = narrow ? Math.min(150, width * 0.4) : Math.min(320, width * 0.3);
  const right = narrow ? 16 : 190;
  const rows = [];
  const option = { ...base(look), title: [], series: [], legend: legendOf(data, look) };
  let below = 0;
  for (const group of data.groups) {
    option.title.push(groupTitle(group.title, look, legend + below, width));
    const top = below + head;
    group.rows.forEach((row, at) => rows.push({ ...row, threshold: group.title, at: top + step * (at + 0.5) }));
    below = top + step * group.rows.length;
  }
  option.grid = { left, right, top: legend, height: below, outerBoundsMode: "none" };
  const [from, to] = data.span.map(Math.log);
  const ticks = ticksIn(from, to, narrow);
  const axis = axisLook(look);
  option.xAxis = { type: "value", ...axis, position: "bottom", min: from, max: to, splitLine: { show: false },
    axisLine: { ...axis.axisLine, onZero: false }, ...named(look, "times the bound"),
    axisTick: { customValues: ticks }, axisLabel: { ...axis.axisLabel, customValues: ticks,
      formatter: (value) => `${tick(Math.exp(value))}×` } };
  option.yAxis = [labels(rows, below, look, "left", left - 10, (row) => row.name),
    labels(narrow ? [] : rows, below, look, "right", right - 14, (row) => row.measured)];
  option.series = [...rows.map((row) => intervalOf(row, look)), ...OUTCOMES.map((one) => marksOf(one, rows, look))];
  option.series[0].markLine = { silent: true, symbol: "none", data: [{ xAxis: 0 }], label: { show: false },
    lineStyle: { color: look.ink, width: 1, type: "solid" } };
  option.series[0].markArea = { silent: true, itemStyle: { color: look.colour("shade") },
    data: rows.map((row) => beyond(row, from, to, step)) };
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: mark }) => gateTip(mark.row, look) };
  return { option, height: legend + below + 50 };
};

function ticksIn(from, to, narrow) {
  const wanted = [...TIMES, ...(narrow ? [] : MORE_TIMES)].sort((a, b) => a - b).map(Math.log);
  return wanted.filter((one) => from <= one && one <= to);
}

function legendOf(data, look) {
  const found = new Set(data.groups.flatMap((group) => group.rows.map((row) => row.outcome)));
  return { left: 0, top: 0, itemGap: 14, textStyle: { color: look.ink, fontSize: 12 }, selectedMode: false,
    data: OUTCOMES.map(([name]) => name).filter((name) => found.has(name)) };
}

function groupTitle(text, look, top, width) {
  const title = heading(look, text, 0, top + 8);
  return { ...title, textStyle: { ...title.textStyle, width: width - 8, overflow: "truncate" } };
}

function labels(rows, below, look, position, width, textOf) {
  const places = new Map(rows.map((row) => [row.at, textOf(row)]));
  return { type: "value", position, inverse: true, min: 0, max: below, axisLine: { show: false },
    axisTick: { show: false }, splitLine: { show: false }, axisLabel: { show: rows.length > 0,
      customValues: [...places.keys()], formatter: (at) => places.get(at) ?? "", color: look.ink, fontSize: 11.5,
      lineHeight: 12, width, overflow: "break", hideOverlap: false } };
}

function intervalOf(row, look) {
  const [, , , colour] = OUTCOMES.find(([name]) => name === row.outcome);
  const ends = [row.low, row.high].map((one) => [Math.log(one), row.at]);
  return { type: "line", silent: true, symbol: "none", data: ends, lineStyle: { color: look.colour(colour), width: 2 } };
}

function marksOf([name, symbol, symbolSize, colour], rows, look) {
  const hollow = name === "inconclusive";
  const itemStyle = { color: hollow ? look.paper : look.colour(colour), borderColor: look.colour(colour),
    borderWidth: hollow ? 2 : 0 };
  return { type: "line", name, symbol, symbolSize, lineStyle: { width: 0 }, itemStyle,
    data: rows.filter((row) => row.outcome === name).map((row) => ({ value: [Math.log(row.value), row.at], row })) };
}

// The part of a row's width that lies beyond what is tolerated.
function beyond(row, from, to, step) {
  const tolerated = Math.log(row.tolerated);
  const [begin, end] = row.at_most ? [tolerated, to] : [from, tolerated];
  const half = step / 2 - 1;
  return [{ coord: [begin, row.at - half] }, { coord: [end, row.at + half] }];
}

function gateTip(row, look) {
  const [, , , colour] = OUTCOMES.find(([name]) => name === row.outcome);
  return tooltip(row.name, [[look.colour(colour), row.threshold, row.said], [look.paper, "measured", row.measured],
    [look.paper, "bound", row.bound], [look.paper, "runs", String(row.runs)]]);
}

kinds.gates.rows = (data) => [
  ["threshold", "name", "outcome", "times the bound", "low", "high", "measured", "bound", "runs"],
  ...data.groups.flatMap((group) => group.rows.map((row) => [group.title, row.name, row.outcome, row.value, row.low,
    row.high, row.measured, row.bound, row.runs])),
];
