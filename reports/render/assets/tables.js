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

// A text that a spreadsheet would run as a formula is kept from that by a quote before it.
function field(text) {
  const runs = /^[=+@\t\r]/.test(text) || (text.startsWith("-") && !/^-[\d,.]+$/.test(text));
  const safe = runs ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// The footnotes of a row, since a doubt must not be lost on the way into a spreadsheet.
function notesOf(row, notes) {
  const marks = [...row.querySelectorAll("sup")].flatMap((mark) => mark.textContent.split(","));
  return [...new Set(marks)].map((mark) => notes[Number(mark) - 1]).join(" | ");
}

function csvOf(table) {
  const [scroll, heads] = [table.closest(".scroll"), table.tHead.rows[0]];
  const notes = [...scroll.parentNode.querySelectorAll(":scope > ol.notes > li")].map((note) => note.textContent);
  const more = (text) => (notes.length ? [text] : []);
  const lines = [[...[...heads.cells].map((cell) => cell.textContent.trim()), ...more("notes")],
    ...bodyRows(table).map((row) => [...[...row.cells].map(cellText), ...more(notesOf(row, notes))])];
  return lines.map((line) => line.map(field).join(",")).join("\n") + "\n";
}

function makeSavable(table) {
  const link = element("button", "save", "CSV");
  link.type = "button";
  link.title = `save “${table.dataset.title}” as CSV`;
  link.setAttribute("aria-label", link.title);
  link.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
    const anchor = element("a");
    anchor.href = address;
    anchor.download = `${table.dataset.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")}.csv`;
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  table.closest(".scroll").after(link);
}

for (const table of document.querySelectorAll("table")) {
  makeSortable(table);
  makeSavable(table);
}
