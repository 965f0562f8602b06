"use strict";
// A click on the head of a column sorts the rows of each part of the table. Without scripts, tables are as they are.
(() => {
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value || cell.textContent.trim();
  };
  // ".873±.004", "1 033", "≤.001", "+.130 (.004)"; anything else is text.
  const numberOf = (text) => {
    const found = /^[<≤+]?([-−]?\d*\.?\d+)(?![\w.-])/.exec(text.replace(/(\d)[,\u202f](?=\d{3})/g, "$1"));
    return found ? Number(found[1].replace("−", "-")) : NaN;
  };

  function compared(one, other, sign) {
    const [a, b] = [one, other].map(numberOf);
    if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1; // what has no value comes last
    return sign * (Number.isNaN(a) ? one.localeCompare(other) : a - b);
  }

  function sort(table, head, column) {
    const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const rows = [...body.rows].sort((a, b) => compared(valueOf(a, column), valueOf(b, column), sign));
      body.append(...rows);
    }
  }

  const isSingle = (cell) => cell.rowSpan === 1 && cell.colSpan === 1;
  for (const table of document.querySelectorAll("table")) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    const last = table.tHead && table.tHead.rows[table.tHead.rows.length - 1];
    const isPlain = last && rows.length > 1 && rows.every((row) =>
      row.cells.length === last.cells.length && [...row.cells].every(isSingle));
    if (!isPlain || ![...last.cells].every(isSingle)) continue;
    [...last.cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorts";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, column));
      head.append(button);
    });
  }
})();
