// Asks the server once a second for what is new. All state is the server's: a reload shows the same.

import { Charts } from "./charts.js";
import { cellRow, earlierItem } from "./tables.js";

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
  study: "", next: 0, seconds: [], cells: 0, wide: null, misses: 0, heard: "", timer: 0, asking: false, drawn: true,
};

const say = (id, text) => {
  // A live region is read out whenever it is written, so it is written only where it changes.
  if (at(id).textContent !== text) at(id).textContent = text;
};

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const progressText = ({ study, progress, fault }) => {
  if (fault) return "This page cannot follow the study; Locust's Logs tab has a line for every run.";
  if (study.status === "idle") return "Nothing has been started yet.";
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
  say("facts", begun ? `${study.size}, started ${study.started_utc}, results in ${study.folder}/` : "");
  at("how").hidden = begun;
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

const showTables = ({ cells = [], earlier }) => {
  at("cells").append(...cells.map(cellRow));
  known.cells += cells.length;
  at("cells-section").hidden = !known.cells;
  at("earlier-section").hidden = !earlier.length;
  const list = earlier.map((study) => `${study.id} ${study.report}`).join();
  if (list !== known.earlier) {
    at("earlier").replaceChildren(...earlier.map((study) => earlierItem(study, place)));
  }
  known.earlier = list;
};

const showCharts = () => {
  const last = known.seconds.at(-1);
  at("charts-section").hidden = !last;
  if (!last) return;
  const wide = known.wide ?? known.status !== "running";
  at("show-cell").setAttribute("aria-pressed", String(!wide));
  at("show-all").setAttribute("aria-pressed", String(wide));
  say("show-cell", known.status === "running" ? "The running cell" : "The last cell");
  const ofCell = known.seconds.filter((second) => second.cell === last.cell && second.repeat === last.repeat);
  const absent = charts.draw(wide ? known.seconds : ofCell, wide);
  const older = known.forgotten ? " Older seconds are in timeline.csv at the study's end." : "";
  const which = wide ? "All cells of the last 15 minutes of load" : `${last.cell}, repeat ${last.repeat}`;
  say("showing", `${which}. Shaded: warm-up, then measure.${wide ? older : ""}`);
  say("absent", absent.length ? `No data for: ${absent.join(", ")}.` : "");
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

const forget = (study) => {
  Object.assign(known, { study, seconds: [], cells: 0, wide: null });
  at("cells").replaceChildren();
};

const take = (data) => {
  if (data.study.id !== known.study) forget(data.study.id);
  const named = (row) => Object.fromEntries(data.columns.map((name, index) => [name, row[index]]));
  const rows = (data.seconds ?? []).map(named);
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
  warn(data.refused ? `The study could not begin. ${data.refused}` : fault);
};

const ask = async () => {
  const query = new URLSearchParams({ since: known.next, study: known.study });
  const reply = await fetch(`${place}/data?${query}`, {
    cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (reply.type === "opaqueredirect") throw new Error("Locust asks for its login again: reload this page.");
  if (!reply.ok) throw new Error(`The server answers with an error (${reply.status}).`);
  return reply.json();
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
    const silent = "The server does not answer: it may have ended.";
    const why = error.message.endsWith(".") ? error.message : silent;
    const seen = known.heard ? ` What is shown is from ${known.heard}.` : "";
    warn(`${why}${seen} Trying again in ${ms / 1000} s.`, true);
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
    warn("This page cannot draw what it was told: reload it.");
  }
  wait(known.status === "running" ? BUSY_MS : QUIET_MS);
};

const choose = (wide) => {
  known.wide = wide;
  showCharts();
};

at("show-cell").addEventListener("click", () => choose(false));
at("show-all").addEventListener("click", () => choose(true));
at("retry").addEventListener("click", turn);
dark.addEventListener("change", showCharts);
document.addEventListener("visibilitychange", () => document.hidden || turn());
turn();
