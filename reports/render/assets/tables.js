// Tables that can be sorted by any column and saved as CSV; without this script they are whole all the same.

// What a cell says, without the marks of its footnotes.
const cellText = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SUP")
  .map((node) => node.textContent).join("").trim();
const bodyRows = (table) => [...table.tBodies[0].rows];

// What a numeric cell sorts by: its exact value where the page has it, else the number its text begins with.
function numberIn(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const found = /^[▲▼]?\s*(-?[\d,]*\.?\d+)/.exec(cellText(cell));
  return found ? Number(found[1].replaceAll(",", "")) : null;
}

// Those without a number, or without a text, stay at the end whichever way the others go.
function sortBy(table, column, descending) {
  const numeric = table.tHead.rows[0].cells[column].classList.contains("number");
  const keyed = bodyRows(table).map((row) => {
    const cell = row.cells[column];
    return { row, key: numeric ? numberIn(cell) : cellText(cell) || null };
  });
  const compare = (a, b) => (numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
  const ordered = keyed.filter(({ key }) => key !== null).sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
  const others = keyed.filter(({ key }) => key === null);
  table.tBodies[0].append(...[...ordered, ...others].map(({ row }) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = element("button", "sort");
    button.type = "button";
    button.append(...head.childNodes);
    button.title = "sort by this column";
    if (!button.textContent) button.setAttribute("aria-label", "sort by this column");
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(table, column, descending);
    });
    head.append(button);
  });
}

// The footnotes of a row, since a doubt must not be lost on the way into a spreadsheet.
function notesOf(row, notes) {
  const marks = [...row.querySelectorAll("sup")].flatMap((mark) => mark.dataset.notes.split(","));
  return [...new Set(marks)].map((mark) => notes[Number(mark) - 1]).join(" | ");
}

function csvOf(table) {
  const [scroll, heads] = [table.closest(".scroll"), table.tHead.rows[0]];
  const notes = [...scroll.parentNode.querySelectorAll(":scope > ol.notes > li")].map((note) => note.textContent);
  const more = (text) => (notes.length ? [text] : []);
  const lines = [[...[...heads.cells].map((cell) => cell.textContent.trim()), ...more("notes")],
    ...bodyRows(table).map((row) => [...[...row.cells].map(cellText), ...more(notesOf(row, notes))])];
  return csvText(lines);
}

function makeSavable(table) {
  const link = element("button", "save", "CSV");
  link.type = "button";
  link.title = `save “${table.dataset.title}” as CSV`;
  link.setAttribute("aria-label", link.title);
  link.addEventListener("click", () => {
    download(table.dataset.title, "csv", new Blob([csvOf(table)], { type: "text/csv" }));
  });
  table.closest(".scroll").after(link);
}

// A long table shows the rows that hold every word that is looked for.
function makeSearchable(table) {
  if (table.dataset.long === undefined) return;
  const field = element("input", "find");
  field.type = "search";
  field.placeholder = "Search rows";
  field.setAttribute("aria-label", `search “${table.dataset.title}”`);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of bodyRows(table)) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
  table.closest(".scroll").before(field);
}

for (const table of document.querySelectorAll("table")) {
  makeSortable(table);
  makeSavable(table);
  makeSearchable(table);
}

// A link to a folded section opens it.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const folded = target && target.closest("details");
  if (folded) folded.open = true;
  if (target) target.scrollIntoView();
}

addEventListener("hashchange", openTarget);
openTarget();
