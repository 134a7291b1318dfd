// Throughput and p95 against the number of users, with the fitted curve and the knee.

const SYMBOLS = ["circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow"];
const DASHES = ["solid", "dashed", "dotted"];

const MOST_CURVES = 8; // more cannot be told apart

kinds.curves = (whole, look, width, state) => {
  const data = { ...whole, series: whole.series.filter((one) => shownIn(whole, one, state)) };
  const narrow = width < NARROW;
  const legend = 38;
  const grids = panelGrids(data.panels.length, narrow, width, legend);
  const levels = [...new Set(data.series.flatMap((one) => one.points.map((point) => point.users)))].sort((a, b) => a - b);
  const option = { ...base(look), title: [], grid: grids, xAxis: [], yAxis: [], series: [],
    legend: { type: "scroll", left: 0, top: 0, width: width - 8, pageIconColor: look.ink,
      pageTextStyle: { color: look.ink }, data: data.series.map((one) => one.name), itemGap: 14,
      textStyle: { color: look.ink, fontSize: 12 }, inactiveColor: look.rule } };
  data.panels.forEach((panel, index) => {
    option.title.push(heading(look, panel.title, grids[index].left - 44, grids[index].top - 24));
    option.xAxis.push({ type: "log", logBase: 2, gridIndex: index, ...axisLook(look), min: levels[0],
      max: levels[levels.length - 1], name: "users", nameLocation: "middle", nameGap: 24, splitLine: { show: false },
      axisTick: { customValues: levels }, axisLabel: { customValues: levels, color: look.soft, fontSize: 11,
        hideOverlap: true, formatter: (value) => value.toLocaleString("en-US") } });
    option.yAxis.push({ type: "value", gridIndex: index, ...axisLook(look), min: 0, splitNumber: 4 });
    data.series.forEach((one, at) => option.series.push(...lineOf(one, at, panel.key, index, look)));
  });
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: point }) => pointTip(point, look) };
  const last = grids[grids.length - 1];
  return { option, height: last.top + last.height + 48 };
};

const batchesOf = (data) => [...new Set(data.series.map((one) => one.batch))];

function shownIn(data, one, state) {
  return data.series.length <= MOST_CURVES || one.batch === (state.batch ?? batchesOf(data)[0]);
}

kinds.curves.controls = (data, state) => {
  const label = element("label", "", "Show batch ");
  const choice = element("select");
  choice.append(...batchesOf(data).map((batch) => new Option(batch, batch)));
  choice.addEventListener("change", () => { state.batch = Number(choice.value); state.redraw(); });
  label.append(choice);
  return data.series.length > MOST_CURVES ? [label] : [];
};

function panelGrids(count, narrow, width, legend) {
  const columns = narrow ? 1 : count;
  const span = width / columns;
  return Array.from({ length: count }, (_, index) => ({ left: (index % columns) * span + 48,
    top: legend + 34 + Math.floor(index / columns) * 300, width: span - 48 - 28, height: 220 }));
}

function lineOf(one, at, key, index, look) {
  const colour = look.colour(`series-${(at % 8) + 1}`);
  const symbol = SYMBOLS[at % SYMBOLS.length];
  const of = { type: "line", name: one.name, xAxisIndex: index, yAxisIndex: index, symbol, symbolSize: 8,
    itemStyle: { color: colour } };
  const points = one.points.filter((point) => point[key] !== null).map((point) => ({ value: [point.users, point[key]],
    ...(point.doubted ? { symbol: "emptyCircle" } : {}), of: one.name, colour, point, key }));
  const lines = [{ ...of, data: points, lineStyle: { color: colour, width: 2,
    type: DASHES[Math.floor(at / 8) % 3] } }];
  const ranges = one.points.filter((point) => point[`${key}_low`] < point[`${key}_high`]);
  lines.push(...ranges.map((point) => ({ ...of, silent: true, symbol: "none", lineStyle: { color: colour, width: 1 },
    data: [[point.users, point[`${key}_low`]], [point.users, point[`${key}_high`]]] })));
  if (key === "rate" && one.fit) lines.push({ ...of, silent: true, symbol: "none", data: one.fit,
    lineStyle: { color: colour, width: 1, type: "dotted" } });
  const knee = one.knee === null ? undefined : one.points.find((point) => point.users === one.knee);
  if (knee && knee[key] !== null) lines.push({ ...of, silent: true, data: [[knee.users, knee[key]]], symbol: "circle",
    symbolSize: 18, itemStyle: { color: "transparent", borderColor: colour, borderWidth: 2 },
    label: { show: true, position: "top", formatter: "knee", color: look.ink, fontSize: 11 } });
  return lines;
}

function pointTip({ of, colour, point, key }, look) {
  if (!point) return "";
  const range = (name) => (point[`${name}_low`] < point[`${name}_high`]
    ? `${digits(point[name])} (${digits(point[`${name}_low`])}–${digits(point[`${name}_high`])})` : digits(point[name]));
  const rows = [[key === "rate" ? colour : look.paper, "images/s", range("rate")],
    [key === "p95" ? colour : look.paper, "p95 ms", range("p95")]];
  if (point.doubted) rows.push([look.paper, "disqualified", "see the caveats"]);
  return tooltip(`${of}, ${point.users} users`, rows);
}
