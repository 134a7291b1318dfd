// Tables that can be sorted by any column and saved as CSV; without this script they are whole all the same.

// What a cell says, without the marks of its footnotes.
const cellText = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SUP")
  .map((node) => node.textContent).join("").trim();
const bodyRows = (table) => [...table.tBodies[0].rows];

// The number that a text begins with, so that 41.9 (41.5–41.9) sorts as 41.9 and 1,234 as 1234.
function leading(text) {
  const found = /^-?[\d,]*\.?\d+/.exec(text);
  return found ? Number(found[0].replaceAll(",", "")) : null;
}

function sortBy(table, column, descending) {
  const rows = bodyRows(table).map((row) => ({ row, text: cellText(row.cells[column]) }));
  const numbers = rows.every(({ text }) => leading(text) !== null || !/[\p{L}\d]/u.test(text));
  const known = ({ text }) => (numbers ? leading(text) !== null : text !== "");
  const compare = (a, b) => (numbers ? leading(a.text) - leading(b.text)
    : a.text.localeCompare(b.text, "en", { numeric: true }));
  const ordered = rows.filter(known).sort((a, b) => (descending ? -compare(a, b) : compare(a, b)));
  const unknown = rows.filter((row) => !known(row));
  table.tBodies[0].append(...[...ordered, ...unknown].map(({ row }) => row));
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
  const safe = /^[=+@\t\r]/.test(text) || (text.startsWith("-") && leading(text) === null) ? `'${text}` : text;
  return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(table) {
  const rows = [table.tHead.rows[0], ...bodyRows(table)];
  return rows.map((row) => [...row.cells].map((cell) => field(cell.closest("thead") ? cell.textContent.trim()
    : cellText(cell))).join(",")).join("\n") + "\n";
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
