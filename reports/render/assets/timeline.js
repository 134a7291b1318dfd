// Every second of the study: panels under each other on one time axis, what is no measure phase shaded.

const LINES = ["solid", "dashed", "dotted"];
const PANEL = { height: 92, gap: 40 };

function clock(seconds) {
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

kinds.timeline = (data, look, width, state) => {
  const [left, right, top] = [58, 12, 26];
  const [from, to] = state.range || [data.runs[0].from, data.runs[data.runs.length - 1].to];
  const option = { ...base(look), title: [], grid: [], xAxis: [], yAxis: [], series: [],
    axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.soft } } };
  data.panels.forEach((panel, index) => {
    const at = top + index * (PANEL.height + PANEL.gap);
    const last = index === data.panels.length - 1;
    option.title.push(panelTitle(panel, look, at - 22));
    option.grid.push({ left, right, top: at, height: PANEL.height, outerBoundsMode: "none" });
    option.xAxis.push({ type: "value", gridIndex: index, ...axisLook(look), min: from, max: to, minInterval: 1,
      splitLine: { show: false }, axisLabel: { show: last, hideOverlap: true, color: look.soft, fontSize: 11, formatter: clock } });
    option.yAxis.push({ type: panel.log ? "log" : "value", gridIndex: index, ...axisLook(look), splitNumber: 2,
      min: panel.log ? undefined : 0, scale: panel.log });
    panel.lines.forEach((line, at) => option.series.push(linesOf(data, panel, line, at, index, look)));
    option.series[option.series.length - panel.lines.length].markArea = asides(data, look, from, to);
  });
  option.tooltip = { ...option.tooltip, trigger: "axis", formatter: (shown) => momentTip(data, look, shown) };
  option.dataZoom = [{ type: "slider", xAxisIndex: option.xAxis.map((_, index) => index), bottom: 4, height: 22,
    filterMode: "none", labelFormatter: clock, borderColor: look.rule, textStyle: { color: look.soft },
    showDataShadow: false, brushSelect: false, ...state.zoom }];
  return { option, height: top + data.panels.length * (PANEL.height + PANEL.gap) + 44 };
};

function lineLook(panel, at, look) {
  return { color: look.colour(panel.lines.length > 1 ? `series-${at + 1}` : "bar"), width: 1.6, type: LINES[at % 3] };
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

function momentTip(data, look, shown) {
  const [t_s] = shown[0].value;
  const row = data.t_s.indexOf(t_s);
  const run = data.runs.find((one) => one.from <= t_s && t_s < one.to);
  const aside = run && run.aside.find(([, begin, end]) => begin <= t_s && t_s < end);
  const rows = data.panels.flatMap((panel) => panel.lines.map((line, at) => [lineLook(panel, at, look).color,
    line.label === panel.title.toLowerCase() ? line.label : `${panel.title}: ${line.label}`,
    `${digits(line.values[row])} ${panel.unit === line.label ? "" : panel.unit}`]));
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
