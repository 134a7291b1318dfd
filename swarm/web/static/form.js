// The form that starts a study: tells its plan as it is filled in, and starts it by Locust's own route.

import { answerOf, reasonOf } from "./server.js";

const PAUSE_MS = 300;
const at = (id) => document.getElementById(id);
const form = at("start");
let timer = 0;
let asked = 0;

const say = (text, wrong) => {
  at("plan").textContent = text;
  at("plan").classList.toggle("tainted", wrong);
};

const post = (url) => answerOf(url, { method: "POST", body: new URLSearchParams(new FormData(form)) });

const plan = async () => {
  asked += 1;
  const turn = asked;
  try {
    const told = await post(`${document.body.dataset.place}/plan`);
    if (turn !== asked) return; // a later question is under way
    at("go").disabled = Boolean(told.fault);
    say(told.fault || `${told.plan}.`, Boolean(told.fault));
    for (const [name, amount] of Object.entries(told.amounts)) at(`option-${name}`).placeholder = amount;
  } catch (error) {
    if (turn === asked) say(reasonOf(error), true);
  }
};

const start = async (event) => {
  event.preventDefault();
  at("go").disabled = true;
  say("Starting…", false);
  try {
    const told = await post(`${form.dataset.locust}swarm`);
    if (told.success) form.dispatchEvent(new Event("started"));
    say(told.success ? "Started." : told.message, !told.success);
  } catch (error) {
    say(reasonOf(error), true);
  }
  at("go").disabled = false;
};

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(plan, PAUSE_MS);
});
form.addEventListener("submit", start);

// Shown where no study is running; the plan is asked for each time.
export const offer = (shown) => {
  const begins = at("start-section").hidden && shown;
  at("start-section").hidden = !shown;
  if (begins) plan();
};
