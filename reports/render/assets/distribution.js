// How latencies of one batch and load are distributed: by percentile, and as a histogram of each endpoint.

const groupOf = (data, state) => data.groups[state.group ?? 0];

// The axis of percentiles shows each further nine in the same width.
const nines = (percent) => -Math.log10(1 - percent / 100);
const NINES = [0, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999];

const pointsOf = (data, one) => one.ms.map((ms, at) => [data.percents[at], ms]);

kinds.percentiles = (data, look, width, state) => {
  const narrow = width < NARROW;
  const lines = groupOf(data, state).lines.map((one) => ({ ...one, points: pointsOf(data, one) }));
  const { legend, height: above } = lineLegend(look, width, lines.map(labelOf));
  const height = narrow ? 240 : 300;
  const axis = axisLook(look);
  const ends = lines.map((one) => nines(one.points[one.points.length - 1][0]));
  const ticks = new Map(NINES.map((percent) => [nines(percent), `${percent} %`]));
  const values = lines.flatMap((one) => one.points.map(([, value]) => value));
  const log = Math.min(...values) > 0 && Math.max(...values) > WIDE_SPAN * Math.min(...values);
  const option = { ...base(look), legend,
    title: [heading(look, `Latency, ms${log ? " (log scale)" : ""}`, 0, above)],
    grid: { left: 52, right: 24, top: above + 26, height, outerBoundsMode: "none" },
    xAxis: { type: "value", ...axis, ...named(look, "percentile, log scale of what lies beyond", 26), min: 0,
      max: Math.max(...ends) + 0.02, splitLine: { show: true, lineStyle: { color: look.rule, type: "dotted" } },
      axisTick: { ...axis.axisTick, customValues: [...ticks.keys()] },
      axisLabel: { ...axis.axisLabel, customValues: [...ticks.keys()], formatter: (at) => ticks.get(at) ?? "" } },
    yAxis: { type: log ? "log" : "value", ...axis, ...(log ? powersAround(values) : stepsTo(Math.max(...values), 5)) },
    series: lines.map((one, at) => percentileLine(one, at, look)) };
  option.tooltip = { ...option.tooltip, trigger: "axis", formatter: (shown) => percentileTip(lines, shown[0], look) };
  return { option, height: above + height + 76 };
};

function percentileLine(one, at, look) {
  const colour = look.colour(`series-${(at % 8) + 1}`);
  const last = one.points.length - 1;
  return { type: "line", name: labelOf(one), itemStyle: { color: colour }, symbolSize: 8,
    symbol: SYMBOLS[at % SYMBOLS.length], showAllSymbol: true,
    lineStyle: { color: colour, width: 2, type: DASHES[Math.floor(at / 8) % 3] },
    data: one.points.map(([percent, ms], place) => ({ value: [nines(percent), ms],
      symbol: place === last ? SYMBOLS[at % SYMBOLS.length] : "none" })) };
}

function percentileTip(lines, shown, look) {
  const found = lines.flatMap((one) => one.points).find(([percent]) => nines(percent) === shown.value[0]);
  const rows = lines.map((one, at) => [look.colour(`series-${(at % 8) + 1}`), labelOf(one),
    one.points.find(([percent]) => percent === found[0])]);
  return tooltip(`p${found[0]}`, rows.map(([colour, label, point]) => [colour, label,
    point ? `${milliseconds(point[1])} ms` : "too few results"]));
}

kinds.percentiles.rows = (data) => [["batch and load", "name", "requests", "percentile, %", "latency, ms"],
  ...data.groups.flatMap(({ title, lines }) => lines.flatMap((one) => pointsOf(data, one).map(([percent, ms]) =>
    [title, one.name, one.requests, percent, ms])))];

const SHAPE_HEIGHT = 44;
const SHAPE_STEP = 74;

kinds.distribution = (data, look, width, state) => {
  const { lines, edges, log } = groupOf(data, state);
  const [left, right] = [46, 14];
  const axis = axisLook(look);
  const shares = lines.map((one) => one.counts.map((count) => (100 * count) / one.requests));
  const { max: most } = stepsTo(Math.max(...shares.flat()), 5);
  const option = { ...base(look), title: [], grid: [], xAxis: [], yAxis: [], series: [] };
  lines.forEach((one, at) => {
    const top = 20 + at * SHAPE_STEP;
    const last = at === lines.length - 1;
    option.title.push(heading(look, labelOf(one), 0, top - 18));
    option.grid.push({ left, right, top, height: SHAPE_HEIGHT, outerBoundsMode: "none" });
    option.xAxis.push({ type: log ? "log" : "value", gridIndex: at, ...axis, min: edges[0], max: edges[edges.length - 1],
      splitLine: { show: true, lineStyle: { color: look.rule, type: "dotted" } },
      axisTick: { show: last, customValues: log ? logTicks(edges) : undefined },
      ...(last ? named(look, `latency, ms${log ? " (log scale)" : ""}`, 26) : {}),
      axisLabel: { ...axis.axisLabel, show: last, customValues: log ? logTicks(edges) : undefined,
        showMinLabel: log, showMaxLabel: log } });
    option.yAxis.push({ type: "value", gridIndex: at, min: 0, max: most, interval: most, ...axis,
      axisLabel: { ...axis.axisLabel, formatter: (share) => `${tick(share)} %` }, splitLine: { show: false } });
    option.series.push(shapeOf(one, shares[at], edges, at, look));
  });
  option.tooltip = { ...option.tooltip, trigger: "axis", formatter: (shown) => shapeTip(lines, edges, shown[0], look) };
  return { option, height: 20 + lines.length * SHAPE_STEP + 36 };
};

// 10, 20, 50, 100 within the edges, and more of them where those are few.
function logTicks(edges) {
  const [from, to] = [edges[0], edges[edges.length - 1]];
  const times = Math.log10(to / from) > 2.2 ? [1] : [1, 2, 3, 5];
  const powers = Array.from({ length: 14 }, (_, at) => 10 ** (at - 4));
  return powers.flatMap((power) => times.map((one) => Number((one * power).toPrecision(1))))
    .filter((tickAt) => from <= tickAt && tickAt <= to);
}

// A stair from edge to edge, filled down to 0.
function shapeOf(one, shares, edges, at, look) {
  const colour = look.colour(`series-${(at % 8) + 1}`);
  const stairs = shares.map((share, place) => [edges[place], share]);
  return { type: "line", step: "end", name: labelOf(one), xAxisIndex: at, yAxisIndex: at, symbol: "none",
    itemStyle: { color: colour }, lineStyle: { color: colour, width: 1.5 }, areaStyle: { color: colour, opacity: 0.28 },
    data: [[edges[0], 0], ...stairs, [edges[edges.length - 1], shares[shares.length - 1]]] };
}

function shapeTip(lines, edges, shown, look) {
  const one = lines[shown.axisIndex ?? shown.seriesIndex] ?? lines[shown.seriesIndex];
  const place = Math.min(edges.indexOf(shown.value[0]), one.counts.length - 1);
  const span = `${milliseconds(edges[place])}–${milliseconds(edges[place + 1])} ms`;
  const count = one.counts[place];
  return tooltip(labelOf(one), [[look.colour(`series-${(lines.indexOf(one) % 8) + 1}`), span,
    `${count.toLocaleString("en-US")} requests, ${digits((100 * count) / one.requests)} %`]]);
}

kinds.distribution.rows = (data) => [["batch and load", "name", "from, ms", "to, ms", "requests"],
  ...data.groups.flatMap(({ title, lines, edges }) => lines.flatMap((one) => one.counts.map((count, place) =>
    [title, one.name, edges[place], edges[place + 1], count])))];

// Both drawings show the same batch and load: a choice in one is made in the other.
function groupChoice(data, state) {
  if (data.groups.length < 2) return [];
  const label = element("label", "", "Show ");
  const choice = element("select", "group");
  choice.append(...data.groups.map((group, at) => new Option(group.title, at)));
  choice.addEventListener("change", () => {
    state.group = Number(choice.value);
    state.redraw();
    for (const other of document.querySelectorAll("select.group")) {
      if (other.value === choice.value) continue;
      other.value = choice.value;
      other.dispatchEvent(new Event("change"));
    }
  });
  label.append(choice);
  return [label];
}

kinds.percentiles.controls = groupChoice;
kinds.distribution.controls = groupChoice;
