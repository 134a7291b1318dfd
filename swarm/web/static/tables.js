// The tables of the page. Whatever comes from outside is set as text, never as markup.

export const made = (tag, text = "", className = "") => {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
};

const opened = (summary, ...texts) => {
  const details = made("details");
  details.append(summary, ...texts.filter(Boolean).map((text) => made("p", text)));
  return details;
};

const limit = (found) => {
  const cell = made("td", "", "words");
  if (!found) cell.textContent = "–";
  else cell.append(opened(made("summary", found.code), found.text, found.advice));
  return cell;
};

const caveats = (found) => {
  const cell = made("td", "", "words");
  for (const caveat of found) {
    const summary = made("summary", caveat.tainted ? `${caveat.code} (invalidates)` : caveat.code);
    if (caveat.tainted) summary.className = "tainted";
    cell.append(opened(summary, caveat.text, caveat.advice));
  }
  if (!found.length) cell.textContent = "none";
  return cell;
};

export const link = (text, href) => {
  const anchor = made("a", text);
  anchor.href = href;
  return anchor;
};

// The name of a run leads to its charts: live.js listens to the page's fragment.
export const cellRow = (cell) => {
  const row = made("tr");
  row.id = `run-${cell.run}`;
  const head = made("th");
  head.append(link(cell.status === "done" ? cell.cell : `${cell.cell} (${cell.status})`, `#${row.id}`));
  head.scope = "row";
  const figures = [cell.run, cell.repeat, cell.images_per_s, cell.p50, cell.p95, cell.p99, cell.failures];
  const heads = [...document.querySelectorAll("#cells-section thead .number")];
  const numbers = figures.map((text, index) => {
    const number = made("td", text, "number");
    number.dataset.head = heads[index].textContent; // shown where there is no room for a row of heads
    return number;
  });
  const words = [limit(cell.limit), caveats(cell.caveats)];
  [words[0].dataset.head, words[1].dataset.head] = ["Bottleneck", "Caveats"];
  row.append(head, ...numbers, ...words);
  return row;
};

export const earlierItem = (study, place) => {
  const item = made("li", `${study.title}, started ${study.started}: ${study.status}`);
  const name = encodeURIComponent(study.id);
  if (study.report) item.append(link("report", `${place}/report/${name}`));
  if (study.csv) item.append(link("cells.csv", `${place}/cells.csv/${name}`));
  return item;
};
