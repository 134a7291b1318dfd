// Every second of the study: panels under each other on one time axis, what is no measure phase shaded.

const PANEL = { height: 92, gap: 40 };
const [LEFT, RIGHT] = [58, 12];
const BANDS = 30; // px above the panels, for the runs' names

function clock(seconds) {
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

kinds.timeline = (data, look, width, state) => {
  const top = BANDS + 26;
  const [from, to] = rangeOf(data, state);
  const option = { ...base(look), title: [], grid: [], xAxis: [], yAxis: [], series: [],
    axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.soft } } };
  data.panels.forEach((panel, index) => {
    const at = top + index * (PANEL.height + PANEL.gap);
    option.title.push(panelTitle(panel, look, at - 22));
    option.grid.push({ left: LEFT, right: RIGHT, top: at, height: PANEL.height, outerBoundsMode: "none" });
    option.xAxis.push({ type: "value", gridIndex: index, ...axisLook(look), min: from, max: to, minInterval: 1,
      splitLine: { show: false } });
    option.yAxis.push({ type: panel.log ? "log" : "value", gridIndex: index, ...axisLook(look), splitNumber: 2,
      min: panel.log ? undefined : 0, scale: panel.log });
    panel.lines.forEach((line, at) => option.series.push(linesOf(data, panel, line, at, index, look)));
    option.series[option.series.length - panel.lines.length].markArea = asides(data, look, from, to);
  });
  option.grid.push({ left: LEFT, right: RIGHT, top: BANDS, height: 0, outerBoundsMode: "none" });
  option.xAxis.push({ type: "value", gridIndex: data.panels.length, ...axisLook(look), position: "top", min: from, max: to,
    axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false }, axisPointer: { show: false } });
  option.yAxis.push({ type: "value", gridIndex: data.panels.length, show: false });
  option.series.push({ type: "line", xAxisIndex: data.panels.length, yAxisIndex: data.panels.length, data: [],
    silent: true });
  Object.assign(option, merged(option, kinds.timeline.zoomed(data, state, width)));
  option.tooltip = { ...option.tooltip, trigger: "axis", formatter: (shown) => momentTip(data, look, shown) };
  option.dataZoom = [{ type: "slider", xAxisIndex: option.xAxis.map((_, index) => index), bottom: 4, height: 22,
    filterMode: "none", labelFormatter: clock, borderColor: look.rule, textStyle: { color: look.soft },
    showDataShadow: false, brushSelect: false, ...state.zoom }];
  return { option, height: top + data.panels.length * (PANEL.height + PANEL.gap) + 52 };
};

// What hangs on how much of the time is seen: round ticks, and the runs' names above their bands.
kinds.timeline.zoomed = (data, state, width) => {
  const look = lookOf();
  const [from, to] = rangeOf(data, state);
  const [start, end] = [(state.zoom?.start ?? 0) / 100, (state.zoom?.end ?? 100) / 100];
  const [begin, stop] = [from + start * (to - from), from + end * (to - from)];
  const perSecond = (width - LEFT - RIGHT) / (stop - begin);
  const step = STEPS_S.find((one) => one * perSecond >= 64) ?? STEPS_S[STEPS_S.length - 1];
  const ticks = [];
  for (let at = Math.ceil(begin / step) * step; at <= stop; at += step) ticks.push(at);
  const names = new Map(data.runs.filter((run) => run.to > begin && run.from < stop).map((run) => {
    const [left, right] = [Math.max(run.from, begin), Math.min(run.to, stop)];
    return [(left + right) / 2, bandName(run.name, (right - left) * perSecond, look)];
  }));
  const axes = data.panels.map((_, index) => ({ axisTick: { customValues: ticks }, axisLabel: { customValues: ticks,
    show: index === data.panels.length - 1, formatter: clock },
    ...(index === data.panels.length - 1 ? named(look, `${since(data)}, min:s`, 22) : {}) }));
  return { xAxis: [...axes, { axisLabel: { customValues: [...names.keys()], formatter: (at) => names.get(at) ?? "",
    hideOverlap: false, color: look.soft, fontSize: 10, lineHeight: 12, margin: 2 } }] };
};

const since = (data) => `time since ${data.since ?? "the study's start"}`;
const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];
const LEAST_LETTERS = 6; // of a name above a band: less tells nobody which it is

// The endpoint over the rest of a run's name, each cut to what its band has room for; nothing in a narrow one.
function bandName(name, room, look) {
  const slash = name.indexOf("/");
  const parts = slash < 0 ? [name] : [name.slice(0, slash), name.slice(slash + 1)];
  const cut = parts.map((part) => cutTo(part, room - 6, look));
  return cut.some((part, at) => part.length < Math.min(LEAST_LETTERS, parts[at].length)) ? "" : cut.join("\n");
}

function cutTo(text, room, look) {
  if (textWidth(text, 10, look) <= room) return text;
  let kept = text.length - 1;
  while (kept > 0 && textWidth(`${text.slice(0, kept)}…`, 10, look) > room) kept -= 1;
  return kept ? `${text.slice(0, kept)}…` : "";
}

const rangeOf = (data, state) => state.range || [data.runs[0].from, data.runs[data.runs.length - 1].to];

// Axes with what hangs on the zoom.
const merged = (option, { xAxis }) => ({ xAxis: option.xAxis.map((axis, at) => ({ ...axis, ...xAxis[at],
  axisTick: { ...axis.axisTick, ...xAxis[at].axisTick }, axisLabel: { ...axis.axisLabel, ...xAxis[at].axisLabel } })) });

function lineLook(panel, at, look) {
  return { color: look.colour(panel.lines.length > 1 ? `series-${at + 1}` : "bar"), width: 1.6, type: DASHES[at % 3] };
}

function linesOf(data, panel, line, at, index, look) {
  const lineStyle = lineLook(panel, at, look);
  const fits = (value) => (panel.log && value !== null && value <= 0 ? null : value);
  const known = (row) => line.values[row] !== null && line.values[row] !== undefined;
  const single = (row) => known(row) && !known(row - 1) && !known(row + 1); // no line would show it
  return { type: "line", name: line.label, xAxisIndex: index, yAxisIndex: index, lineStyle, symbol: "none",
    itemStyle: { color: lineStyle.color }, data: data.t_s.map((t_s, row) => (single(row)
      ? { value: [t_s, fits(line.values[row])], symbol: "circle", symbolSize: 3 } : [t_s, fits(line.values[row])])) };
}

// The lines' names in their colours and strokes, so that none has to be told by its colour alone.
function panelTitle(panel, look, top) {
  const strokes = ["—", "- -", "···"];
  const rich = {};
  const names = panel.lines.length < 2 ? [] : panel.lines.map((line, at) => {
    rich[`line${at}`] = { color: look.colour(`series-${at + 1}`), fontSize: 11, fontWeight: 400 };
    return `{line${at}|${strokes[at % 3]} ${line.label}}`;
  });
  const unit = panel.unit && panel.unit !== panel.title ? `, ${panel.unit}` : "";
  return { text: [`${panel.title}${unit}`, ...names].join("   "), left: 0, top, padding: 0,
    textStyle: { color: look.ink, fontSize: 12, fontWeight: 600, rich } };
}

function asides(data, look, from, to) {
  const seen = data.runs.filter((run) => run.to > from && run.from < to);
  return { silent: true, itemStyle: { color: look.colour("shade") },
    data: seen.flatMap((run) => run.aside.map(([, begin, end]) => [{ xAxis: begin }, { xAxis: end }])) };
}

// Whether a line's own name says what is counted.
const saysUnit = (panel, line) => panel.unit.split(" and ").includes(line.label);
const momentText = (value, unit) => (Number.isInteger(value) && !isMs(unit) ? tick(value) : inUnit(value, unit));

function momentTip(data, look, shown) {
  const [t_s] = shown[0].value;
  const row = data.t_s.indexOf(t_s);
  const run = data.runs.find((one) => one.from <= t_s && t_s < one.to);
  const aside = run && run.aside.find(([, begin, end]) => begin <= t_s && t_s < end);
  const rows = data.panels.flatMap((panel) => panel.lines.map((line, at) => [lineLook(panel, at, look).color,
    line.label === panel.title.toLowerCase() ? line.label : `${panel.title}: ${line.label}`,
    `${momentText(line.values[row], panel.unit)} ${saysUnit(panel, line) ? "" : panel.unit}`]));
  const where = run ? `${run.name}, ${aside ? aside[0] || "no phase" : "measure"}` : "between runs";
  return tooltip(`${clock(t_s)}: ${where}`, rows);
}

kinds.timeline.controls = (data, state) => {
  const label = element("label", "", "Show ");
  const choice = element("select");
  choice.append(new Option("the whole study", ""), ...data.runs.map((run, index) => new Option(run.name, index)));
  choice.addEventListener("change", () => {
    const run = data.runs[choice.value];
    state.range = run ? [run.from, run.to] : undefined;
    state.zoom = undefined;
    state.redraw();
  });
  label.append(choice);
  return data.runs.length > 1 ? [label] : [];
};

kinds.timeline.rows = (data) => {
  const lines = data.panels.flatMap((panel) => panel.lines.map((line) => ({ line, head: `${panel.title}: ${line.label}`
    + (saysUnit(panel, line) ? "" : `, ${panel.unit}`) })));
  const nameAt = (t_s) => data.runs.find((run) => run.from <= t_s && t_s < run.to)?.name;
  return [[`${since(data)}, s`, "run", ...lines.map(({ head }) => head)],
    ...data.t_s.map((t_s, row) => [t_s, nameAt(t_s), ...lines.map(({ line }) => line.values[row])])
      .filter(([t_s]) => t_s !== null)];
};
