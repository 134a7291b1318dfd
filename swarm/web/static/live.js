// Asks the server once a second for what is new. All state is the server's: a reload shows the same.

import { Charts, byRun, whole } from "./charts.js";
import { offer } from "./form.js";
import { answerOf, reasonOf } from "./server.js";
import { cellRow, earlierItem, link, made } from "./tables.js";

const KEPT = 900;
const [BUSY_MS, QUIET_MS, LONGEST_MS, PATIENCE_MS] = [1000, 3000, 30000, 8000];
const VERDICTS = {
  0: "",
  1: " More requests failed than are allowed.",
  3: " It is inconclusive: see the caveats.",
};
const ENDS = { failed: "The study failed", interrupted: "The study was interrupted" };
const place = document.body.dataset.place;
const at = (id) => document.getElementById(id);
const charts = new Charts(at("charts"));
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const known = {
  study: "", next: 0, seconds: [], cells: 0, view: null, runs: new Map(), misses: 0, heard: "", timer: 0, asking: false, drawn: true,
};

const say = (id, text) => {
  // A live region is read out whenever it is written, so it is written only where it changes.
  if (at(id).textContent !== text) at(id).textContent = text;
};

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const progressText = ({ study, progress, fault }) => {
  if (fault) return "This page cannot follow the study; Locust's Logs tab has a line for every run.";
  if (study.status === "idle") return "No study has been started yet.";
  const [done, runs] = [progress.done, progress.runs];
  const of = runs === null ? counted(done, "run") : `${done} of ${counted(runs, "run")}`;
  const report = study.report ? "" : " Its report could not be made: see Locust's Logs tab.";
  if (study.status === "complete") {
    return `The study is complete: ${of} done.${VERDICTS[study.code] ?? ""}${report}`;
  }
  if (study.status !== "running") {
    const run = `in run ${progress.run}${runs === null ? "" : ` of ${runs}`}`;
    const where = progress.run > done ? run : done ? `after ${of}` : "before its first run";
    return `${ENDS[study.status] ?? study.status} ${where}: ${study.reason}.${report}`;
  }
  if (progress.cell) {
    const which = runs === null ? `Run ${progress.run}` : `Run ${progress.run} of ${runs}`;
    return `${which}: ${progress.cell}, repeat ${progress.repeat}, ${progress.phase}`;
  }
  if (!done) return "Getting ready: workers, images, targets.";
  return done === runs ? "All runs are done; the report is being written." : "Between two runs.";
};

const showHead = ({ study, progress, forgotten }) => {
  const begun = study.status !== "idle";
  say("title", begun ? study.title : "No study yet");
  say("facts", begun ? `${study.size}, started ${study.started}, results in ${study.folder}/` : "");
  offer(study.status !== "running");
  at("another").hidden = !begun || study.status === "running";
  at("stop").hidden = study.status !== "running" || !progress.cell;
  const left = study.status === "running" && progress.left;
  say("left", left ? `About ${left} left at the pace so far.` : "");
  at("bar").hidden = !(progress?.runs > 0);
  if (progress?.runs) [at("bar").max, at("bar").value] = [progress.runs, progress.done];
  document.title = `${progress?.runs ? `${progress.done}/${progress.runs} ` : ""}${study.status}: inferswarm`;
  for (const [id, has, path] of [["report", study.report, "report"], ["csv", study.csv, "cells.csv"]]) {
    at(id).hidden = !has;
    if (has) at(id).href = `${place}/${path}/${encodeURIComponent(study.id)}`;
  }
  known.forgotten = forgotten;
};

const showTables = ({ study, cells = [], earlier }) => {
  at("cells").append(...cells.map(cellRow));
  for (const cell of cells) known.runs.set(cell.run, named(cell));
  known.cells += cells.length;
  at("cells-section").hidden = !known.cells;
  const ended = [study, ...earlier].filter(({ status }) => status !== "running" && status !== "idle");
  at("earlier-section").hidden = !ended.length;
  const list = ended.map((one) => `${one.id} ${one.report}`).join();
  if (list !== known.earlier) {
    at("earlier").replaceChildren(...ended.map((one) => earlierItem(one, place)));
  }
  known.earlier = list;
};

const named = ({ cell, repeat }) => `${cell}, repeat ${repeat}`;

// The numbers above the bands of the charts, with the names of their cells.
const showBands = (seconds, wide) => {
  const runs = wide ? new Map(seconds.map((second) => [second.run, named(second)])) : new Map();
  at("bands").replaceChildren(...[...runs].map(([run, name]) => {
    const item = made("li");
    item.value = run;
    item.append(link(name, `#run-${run}`));
    return item;
  }));
};

const pressed = (view, chosen) => {
  for (const [id, name] of [["show-cell", "cell"], ["show-all", "all"], ["show-chosen", "chosen"]]) {
    at(id).setAttribute("aria-pressed", String(view === name));
  }
  say("show-cell", known.status === "running" ? "The running cell" : "The last cell");
  at("show-chosen").hidden = !chosen;
  if (chosen) say("show-chosen", `Run ${chosen}: ${known.runs.get(chosen)}`);
};

const showCharts = () => {
  const last = known.seconds.at(-1);
  at("charts-section").hidden = !last;
  if (!last) return;
  const chosen = known.runs.has(known.chosen) ? known.chosen : 0;
  const asked = known.view === "chosen" && !chosen ? null : known.view;
  const view = asked ?? (known.status === "running" ? "cell" : "all");
  pressed(view, chosen);
  // Of runs at the same time it stays with one.
  const stays = known.seconds.findLast((one) => one.run === known.running && one.t_s >= last.t_s - 1);
  known.running = (stays ?? last).run;
  const run = view === "chosen" ? chosen : known.running;
  const wide = view === "all";
  const seconds = whole(wide ? byRun(known.seconds) : known.seconds.filter((second) => second.run === run));
  const absent = charts.draw(seconds, wide);
  showBands(seconds, wide);
  const older = known.forgotten ? " Older seconds are in timeline.csv when the study has ended." : "";
  const what = wide ? "All runs of the last 15 minutes, by their numbers" : `Run ${run}: ${known.runs.get(run) ?? named(stays ?? last)}`;
  say("showing", `${what}. Whole seconds only; shaded: warm-up, then measure.${wide || !seconds.length ? older : ""}`);
  const nothing = known.status === "running" ? "No whole second yet." : "No whole second.";
  say("absent", !seconds.length ? nothing : absent.length ? `No data for: ${absent.join(", ")}.` : "");
};

const warn = (text, retry = false) => {
  say("notice-text", text);
  at("notice").hidden = !text;
  at("retry").hidden = !retry;
};

// A second that comes again has records that came late: it takes its own place.
const put = (seconds, row) => {
  const next = seconds.findIndex((one) => one.cell === row.cell && one.repeat === row.repeat && one.t_s >= row.t_s);
  if (next < 0) seconds.push(row);
  else seconds.splice(next, seconds[next].t_s === row.t_s ? 1 : 0, row);
};

const fragment = () => Number(/^#run-(\d+)$/.exec(window.location.hash)?.[1] ?? 0);

const forget = (study) => {
  Object.assign(known, { study, seconds: [], cells: 0, view: null, runs: new Map(), chosen: fragment() });
  at("cells").replaceChildren();
};

const take = (data) => {
  if (data.study.id !== known.study) forget(data.study.id);
  const read = (row) => Object.fromEntries(data.columns.map((name, index) => [name, row[index]]));
  const rows = (data.seconds ?? []).map(read);
  for (const row of rows) put(known.seconds, row);
  known.seconds = known.seconds.slice(-KEPT);
  const changed = known.status !== data.study.status;
  Object.assign(known, { next: data.next, status: data.study.status });
  showHead(data);
  say("progress", progressText(data));
  showTables(data);
  if (rows.length || changed || !known.seconds.length || !known.drawn) {
    known.drawn = false; // until it is: what fails is tried again, and told again
    showCharts();
    known.drawn = true;
  }
  const lost = `The live page cannot follow this study (${data.fault}); its report will have everything.`;
  const fault = data.fault && lost;
  warn(data.refused ? `The study could not start. ${data.refused}` : fault);
};

const ask = () => {
  const query = new URLSearchParams({ since: known.next, study: known.study });
  return answerOf(`${place}/data?${query}`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
};

const wait = (ms) => {
  clearTimeout(known.timer);
  if (!document.hidden) known.timer = setTimeout(turn, ms); // nobody looks: nobody is asked
};

const turn = async () => {
  if (known.asking) return; // two answers to one question would be shown twice
  clearTimeout(known.timer);
  known.asking = true;
  let data;
  try {
    data = await ask();
  } catch (error) {
    known.misses += 1;
    const ms = Math.min(LONGEST_MS, BUSY_MS * 2 ** known.misses);
    const seen = known.heard ? ` What is shown is from ${known.heard}.` : "";
    warn(`${reasonOf(error)}${seen} Trying again in ${ms / 1000} s.`, true);
    wait(ms);
    return;
  } finally {
    known.asking = false;
  }
  known.misses = 0;
  known.heard = new Date().toLocaleTimeString([], { hour12: false });
  try {
    take(data);
  } catch {
    warn("This page cannot draw its data: reload it.");
  }
  wait(known.status === "running" ? BUSY_MS : QUIET_MS);
};

const choose = (view) => {
  known.view = view;
  showCharts();
};

// A link to a run, on this page or from elsewhere: its charts, evidence and advice.
const openRun = () => {
  known.chosen = fragment();
  if (!known.chosen) return;
  choose("chosen");
  for (const details of document.querySelectorAll(`#run-${known.chosen} details`)) details.open = true;
};

const stop = async () => {
  at("stop").disabled = true;
  await fetch(`${at("start").dataset.locust}stop`, { method: "POST" }).catch(() => null); // the page says what came of it
  at("stop").disabled = false;
  turn();
};

at("show-cell").addEventListener("click", () => choose("cell"));
at("show-all").addEventListener("click", () => choose("all"));
at("show-chosen").addEventListener("click", () => choose("chosen"));
at("stop").addEventListener("click", stop);
at("start").addEventListener("started", turn);
window.addEventListener("hashchange", openRun);
at("retry").addEventListener("click", turn);
dark.addEventListener("change", showCharts);
document.addEventListener("visibilitychange", () => document.hidden || turn());
turn();
