// Throughput and p95 against the number of users, with the fitted curve and the knee.

const MOST_CURVES = 8; // more cannot be told apart

kinds.curves = (whole, look, width, state) => {
  const data = { ...whole, series: whole.series.filter((one) => shownIn(whole, one, state)) };
  const narrow = width < NARROW;
  const levels = [...new Set(data.series.flatMap((one) => one.points.map((point) => point.users)))].sort((a, b) => a - b);
  if (levels.length <= 2) return slopes(data, levels, look, width);
  const { legend, height: above } = lineLegend(look, width, data.series.map((one) => one.name));
  const grids = panelGrids(data.panels.length, narrow, width, above + 4);
  const option = { ...base(look), title: [], grid: grids, xAxis: [], yAxis: [], series: [], legend };
  data.panels.forEach((panel, index) => {
    option.title.push(heading(look, panel.title, grids[index].left - 44, grids[index].top - 24));
    option.xAxis.push({ type: "log", logBase: 2, gridIndex: index, ...axisLook(look), min: levels[0],
      max: levels[levels.length - 1], ...named(look, "users"), splitLine: { show: false },
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
  choice.addEventListener("change", () => { state.batch = choice.value; state.redraw(); });
  label.append(choice);
  return data.series.length > MOST_CURVES ? [label] : [];
};

// Two levels are no curve: a line from one to the other, with its values at both ends and its name at the right.
function slopes(data, levels, look, width) {
  const narrow = width < NARROW;
  const columns = narrow ? 1 : data.panels.length;
  const span = width / columns;
  const height = Math.max(150, 24 * data.series.length + 40);
  const alone = new Set(data.series.map((one) => one.batch)).size === 1;
  const nameOf = (one) => (alone ? one.name.replace(`, batch ${one.batch}`, "") : one.name);
  const right = Math.min(span * 0.5, 70 + Math.max(...data.series.map((one) => textWidth(nameOf(one), 11, look))));
  const option = { ...base(look), title: [], grid: [], xAxis: [], yAxis: [], series: [] };
  data.panels.forEach((panel, index) => {
    const [left, top] = [(index % columns) * span, 26 + Math.floor(index / columns) * (height + 86)];
    option.title.push(heading(look, panel.title, left, top - 24));
    option.grid.push({ left: left + 62, top, width: span - 62 - right, height, outerBoundsMode: "none" });
    option.xAxis.push({ type: "category", gridIndex: index, boundaryGap: levels.length < 2, ...axisLook(look),
      ...named(look, "users"), data: levels.map(String), splitLine: { show: true, lineStyle: { color: look.rule } },
      axisLabel: { color: look.soft, fontSize: 11 } });
    const { max } = stepsTo(Math.max(...data.series.flatMap((one) => one.points.map((point) =>
      point[`${panel.key}_high`] ?? 0))), 5);
    option.yAxis.push({ type: "value", gridIndex: index, min: 0, max, show: false });
    const shifts = shiftsOf(data.series, panel.key, height / max);
    data.series.forEach((one, at) => option.series.push(
      ...slopeOf({ ...one, shown: nameOf(one) }, at, panel, index, look, shifts, right)));
  });
  option.tooltip = { ...option.tooltip, trigger: "item", formatter: ({ data: point }) => pointTip(point, look) };
  return { option, height: 26 + Math.ceil(data.panels.length / columns) * (height + 86) - 30 };
}

// By how many px the label of each point is moved, so that those of one level do not touch.
function shiftsOf(series, key, perUnit) {
  const points = series.flatMap((one) => one.points.filter((point) => point[key] !== null));
  const found = new Map();
  for (const level of new Set(points.map((point) => point.users))) {
    const here = points.filter((point) => point.users === level);
    const places = here.map((point) => -point[key] * perUnit);
    apart(places, 13, -5).forEach((at, index) => found.set(here[index], at - places[index]));
  }
  return found;
}

function slopeOf(one, at, panel, index, look, shifts, right) {
  const { key, title } = panel;
  const colour = look.colour(`series-${(at % 8) + 1}`);
  const of = { type: "line", name: one.name, xAxisIndex: index, yAxisIndex: index, itemStyle: { color: colour } };
  const points = one.points.filter((point) => point[key] !== null);
  const data = points.map((point, place) => {
    const [value, isLast] = [inUnit(point[key], title), place === points.length - 1];
    const label = { show: true, color: isLast ? look.ink : colour, fontSize: 11, position: isLast ? "right" : "left", distance: 8,
      offset: [0, shifts.get(point)], formatter: isLast ? `${value}  ${one.shown}` : value,
      ...(isLast ? { width: right - 14, overflow: "truncate" } : {}) };
    return { value: [String(point.users), point[key]], ...(point.doubted ? { symbol: "emptyCircle" } : {}),
      label, of: one.name, colour, point, key };
  });
  const line = { ...of, data, symbol: SYMBOLS[at % SYMBOLS.length], symbolSize: 8,
    lineStyle: { color: colour, width: 2, type: DASHES[Math.floor(at / 8) % 3] } };
  const ranges = points.filter((point) => point[`${key}_low`] < point[`${key}_high`]);
  const knees = points.filter((point) => point.users === one.knee).map((point) => [String(point.users), point[key]]);
  return [line, ...ringsAround(knees, of, colour),
    ...ranges.map((point) => ({ ...of, silent: true, symbol: "none", lineStyle: { color: colour, width: 1 },
      data: [[String(point.users), point[`${key}_low`]], [String(point.users), point[`${key}_high`]]] }))];
}

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
  if (knee && knee[key] !== null) lines.push(...ringsAround([[knee.users, knee[key]]], of, colour,
    { show: true, position: "top", formatter: "knee", color: look.ink, fontSize: 11, ...halo(look) }));
  return lines;
}

function pointTip({ of, colour, point, key }, look) {
  if (!point) return "";
  const rows = [[key === "rate" ? colour : look.paper, "images/s", rangeText(point, "rate", "images/s")],
    [key === "p95" ? colour : look.paper, "p95 ms", rangeText(point, "p95", "ms")]];
  if (point.doubted) rows.push([look.paper, "invalidated", "see the caveats"]);
  return tooltip(`${of}, ${point.users} ${point.users === 1 ? "user" : "users"}`, rows);
}

kinds.curves.rows = (data) => [
  ["name", "users", "images/s", "images/s low", "images/s high", "p95, ms", "p95 low, ms", "p95 high, ms", "knee"],
  ...data.series.flatMap((one) => one.points.map((point) => [one.name, point.users, point.rate, point.rate_low,
    point.rate_high, point.p95, point.p95_low, point.p95_high, one.knee === point.users ? "yes" : "no"])),
];
