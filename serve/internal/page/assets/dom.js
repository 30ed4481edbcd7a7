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

export const number = (v, digits = 1) => (v === 0 ? "0" : v < 0.1 && digits > 0 ? v.toPrecision(2) : v.toLocaleString("en", { maximumFractionDigits: digits }));

export function size(bytes) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (bytes < 1024) return `${number(bytes)} ${unit}`;
    bytes /= 1024;
  }
  return `${number(bytes)} GiB`;
}
