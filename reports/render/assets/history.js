// One measure of a cell over all studies: their figures, the levels between changes, and where the changes are.

const MOST_DOTS = 400; // more are drawn smaller

kinds.history = (data, look, width, state) => {
  const one = data.measures[state.measure ?? 0];
  const last = one.values.length - 1;
  const [low, high] = [Math.min(...one.values), Math.max(...one.values)];
  const room = (high - low || high) * 0.15;
  const step = roundStep((high - low + 2 * room) / 5);
  const min = Math.max(0, Math.floor((low - room) / step) * step);
  const ticks = dateTicks(one.utc, width);
  const option = { ...base(look), grid: { left: 62, right: 16, top: 40, height: 190, outerBoundsMode: "none" },
    title: [heading(look, `${one.title}, ${one.unit}`, 0, 2)],
    xAxis: { type: "value", ...axisLook(look), min: -0.5, max: last + 0.5, splitLine: { show: false },
      ...named(look, "studies in order of time"), axisTick: { customValues: ticks },
      axisLabel: { color: look.soft, fontSize: 11, customValues: ticks, formatter: (at) => one.utc[at]?.slice(0, 10) ?? "" } },
    yAxis: { type: "value", ...axisLook(look), min, max: Math.ceil((high + room) / step) * step, interval: step } };
  const off = new Set(one.outliers);
  const point = (at) => ({ value: [at, one.values[at]], at, ...(off.has(at) ? { symbol: "emptyCircle", symbolSize: 9 } : {}) });
  const dots = { type: "scatter", data: one.values.map((_, at) => point(at)),
    symbolSize: last > MOST_DOTS ? 3 : 6, itemStyle: { color: look.colour("series-1"), opacity: 0.75 } };
  const levels = one.levels.map(([begin, end, level]) => ({ type: "line", silent: true, symbol: "none",
    data: [[begin - 0.5, level], [end + 0.5, level]], lineStyle: { color: look.ink, width: 2 } }));
  const colourOf = (change) => look.colour(change.worse ? "series-2" : "series-3");
  const marks = { type: "line", data: [], silent: true,
    markLine: { symbol: "none", silent: true, data: one.changes.map((change) => ({ xAxis: change.at - 0.5,
      lineStyle: { color: colourOf(change), width: 1.5, type: "dashed" },
      label: { show: true, position: "end", formatter: change.label, color: colourOf(change), fontSize: 12, fontWeight: 600 } })) },
    markArea: { silent: true, itemStyle: { color: look.colour("shade") }, data: one.changes.map((change) =>
      [{ xAxis: change.first - 0.5 }, { xAxis: change.last + 0.5 }]) } };
  option.series = [marks, dots, ...levels];
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: mark }) => studyTip(one, mark.at, look) };
  return { option, height: 284 };
};

// As many studies as there is room for their dates, evenly.
function dateTicks(utc, width) {
  const most = Math.max(1, Math.floor((width - 80) / 90));
  const step = Math.max(1, Math.ceil(utc.length / most));
  return utc.map((_, at) => at).filter((at) => at % step === 0);
}

function studyTip(one, at, look) {
  const colour = look.colour("series-1");
  const rows = [[colour, one.title, `${one.in_ms ? milliseconds(one.values[at]) : digits(one.values[at])} ${one.unit}`],
    [look.paper, "began", one.utc[at].replace("T", " ")], [look.paper, "repeats", String(one.runs[at])]];
  if (one.outliers.includes(at)) rows.push([look.paper, "outlier", "set aside"]);
  for (const change of one.changes) if (change.at === at) rows.push([look.paper, "new level", change.told]);
  return tooltip(one.names[at], rows);
}

kinds.history.controls = (data, state) => {
  const label = element("label", "", "Show ");
  const choice = element("select");
  choice.append(...data.measures.map((one, at) => new Option(
    one.changes.length ? `${one.title} (${one.changes.length} changed)` : one.title, at)));
  choice.addEventListener("change", () => { state.measure = Number(choice.value); state.redraw(); });
  label.append(choice);
  return data.measures.length > 1 ? [label] : [];
};

kinds.history.rows = (data) => [
  ["measure", "unit", "began, UTC", "study", "value", "repeats", "level", "outlier", "new level"],
  ...data.measures.flatMap((one) => one.values.map((value, at) => [one.title, one.unit, one.utc[at], one.names[at], value,
    one.runs[at], one.levels.find(([begin, end]) => begin <= at && at <= end)[2], one.outliers.includes(at) ? "yes" : "no",
    one.changes.find((change) => change.at === at)?.told ?? ""])),
];
