// Elements, without any text that is taken as markup.

export const $ = (id) => document.getElementById(id);

// el makes an element: properties, "data-…" and "aria-…" attributes, children that are nodes or texts.
export function el(name, properties = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(properties)) {
    if (k.includes("-") || k === "for" || k === "scope") e.setAttribute(k, v);
    else e[k] = v;
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// fill puts rows into a table. Each cell gets the title of its column, which it shows where the page is narrow.
export function fill(table, rows) {
  const titles = [...table.tHead.rows[0].cells].map((c) => c.textContent);
  for (const r of rows) for (const c of r.cells) if (c.tagName === "TD") c.dataset.label = titles[c.cellIndex];
  table.tBodies[0].replaceChildren(...rows);
}

export const number = (v, digits = 1) => (v === 0 ? "0" : v < 0.1 && digits > 0 ? v.toPrecision(2) : v.toLocaleString("en", { maximumFractionDigits: digits }));

export function size(bytes) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (bytes < 1024) return `${number(bytes)} ${unit}`;
    bytes /= 1024;
  }
  return `${number(bytes)} GiB`;
}
