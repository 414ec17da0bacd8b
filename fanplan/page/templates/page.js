"use strict";
const root = document.documentElement;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Light or dark: as the system says, until one is chosen; the choice is remembered where it can be.
const KEY = "fanplan-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const remembered = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
const remember = (theme) => { try { localStorage.setItem(KEY, theme); } catch { /* not allowed here */ } };
const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
const button = document.getElementById("theme");
const label = () => {
  const isDark = current() === "dark";
  button.textContent = isDark ? "Light" : "Dark";
  button.setAttribute("aria-pressed", String(isDark));
};
if (remembered()) root.dataset.theme = remembered();
label();
dark.addEventListener("change", label);
button.addEventListener("click", () => {
  root.dataset.theme = current() === "dark" ? "light" : "dark";
  remember(root.dataset.theme);
  label();
});

// Tables: a click on a column sorts by it, another one turns the order round; a search hides rows.
const value = (cell) => {
  if (cell.dataset.value === undefined) return cell.textContent;
  return cell.dataset.value === "" ? -Infinity : Number(cell.dataset.value);
};
const compare = (a, b) => typeof a === "number" && typeof b === "number"
  ? a - b || 0 : String(a).localeCompare(String(b), "en", { numeric: true });

function sortBy(table, column, heading) {
  const was = heading.getAttribute("aria-sort");
  const first = heading.classList.contains("number") ? "descending" : "ascending";
  const order = was === null ? first : was === "ascending" ? "descending" : "ascending";
  all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const rows = all("tbody tr", table).map((row) => [value(row.cells[column]), row]);
  rows.sort((one, other) => sign * compare(one[0], other[0]));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function search(listing, words) {
  const wanted = words.trim().toLowerCase();
  const rows = all("tbody tr", listing);
  rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
  const found = rows.filter((row) => !row.hidden).length;
  const total = rows.length.toLocaleString("en");
  listing.querySelector(".count").textContent =
    wanted ? `${found.toLocaleString("en")} of ${total} rows` : `${total} rows`;
}

all(".listing").forEach((listing) => {
  all("th", listing).forEach((heading, column) => heading.addEventListener(
    "click", () => sortBy(listing.querySelector("table"), column, heading)));
  listing.querySelector("input")?.addEventListener(
    "input", (event) => search(listing, event.target.value));
});

// Figures of what the pointer or the keyboard is at.
const tip = document.getElementById("tip");
function show(target, x, y) {
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
  tip.style.top = `${y + 16 + height > innerHeight ? y - height - 12 : y + 16}px`;
}
const tipped = (event) => event.target.closest?.("[data-tip]");
document.addEventListener("pointermove", (event) => {
  const target = tipped(event);
  if (target) show(target, event.clientX, event.clientY); else tip.hidden = true;
});
document.addEventListener("focusin", (event) => {
  const target = tipped(event);
  if (!target || !target.matches(":focus-visible")) return;
  const { right, bottom } = target.getBoundingClientRect();
  show(target, right, bottom);
});
document.addEventListener("focusout", () => { tip.hidden = true; });
// A finger cannot hover: what it touches tells its figures until something else is touched.
document.addEventListener("click", (event) => {
  const target = tipped(event);
  if (target) show(target, event.clientX, event.clientY); else tip.hidden = true;
});

// Contents are open beside a wide page, and closed above a narrow one.
const contents = document.getElementById("contents");
const wide = matchMedia("(min-width: 75rem)");
const arrange = () => { contents.open = wide.matches; };
arrange();
wide.addEventListener("change", arrange);
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && !wide.matches) contents.open = false;
});

// A network can be looked at closer, and moved when it is.
function box(svg) { return svg.viewBox.baseVal; }
function zoom(svg, factor) {
  const b = box(svg), whole = svg.whole;
  const share = factor === "all" ? 1 : Math.min(1, b.width * Number(factor) / whole.width);
  const width = whole.width * share, height = whole.height * share;
  const x = b.x + (b.width - width) / 2, y = b.y + (b.height - height) / 2;
  svg.setAttribute("viewBox", share === 1 ? whole.box : `${x} ${y} ${width} ${height}`);
  svg.style.touchAction = share < 1 ? "none" : "";
  svg.style.cursor = share < 1 ? "grab" : "";
  declutter(svg);
}
// Names are seen where they have room, those of large brokers first; closer there is more of it.
function declutter(svg) {
  const whole = svg.getBoundingClientRect(), taken = [];
  for (const name of all(".name", svg)) {
    name.classList.remove("late");
    const own = name.getBoundingClientRect();
    const inside = own.left >= whole.left && own.right <= whole.right
      && own.top >= whole.top && own.bottom <= whole.bottom;
    const free = inside && taken.every((other) => own.right < other.left || other.right < own.left
      || own.bottom < other.top || other.bottom < own.top);
    if (free) taken.push(own); else name.classList.add("late");
  }
}
function drag(svg, event) {
  const b = box(svg);
  if (!event.buttons || b.width === svg.whole.width) return;
  const scale = b.width / svg.clientWidth;
  const x = b.x - event.movementX * scale, y = b.y - event.movementY * scale;
  svg.setAttribute("viewBox", `${x} ${y} ${b.width} ${b.height}`);
}
all("svg.network").forEach((svg) => {
  svg.whole = { box: svg.getAttribute("viewBox"), width: box(svg).width, height: box(svg).height };
  svg.addEventListener("pointermove", (event) => drag(svg, event));
  svg.addEventListener("pointerup", () => declutter(svg));
  new ResizeObserver(() => declutter(svg)).observe(svg);
  all("[data-zoom]", svg.closest("figure")).forEach((one) => one.addEventListener(
    "click", () => zoom(svg, one.dataset.zoom)));
});

all(".matrix-box").forEach((box) => {
  let width = 1;
  all("[data-zoom]", box.closest("figure")).forEach((one) => one.addEventListener("click", () => {
    width = one.dataset.zoom === "all" ? 1 : Math.min(16, Math.max(1, width / Number(one.dataset.zoom)));
    box.style.width = `${100 * width}%`;
  }));
});

// Pictures can be saved. A drawing takes its colours from the page's style, so they are written in.
const STYLED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font", "paint-order", "text-anchor"];
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...all("*", copy)];
  [svg, ...all("*", svg)].forEach((element, i) => {
    const style = getComputedStyle(element);
    STYLED.forEach((name) => copies[i].style.setProperty(name, style.getPropertyValue(name)));
  });
  const { width, height } = box(svg);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.style.background = getComputedStyle(svg.closest("figure")).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}
function download(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
function saveDrawing(svg, name, kind) {
  const file = new Blob([standalone(svg)], { type: "image/svg+xml" });
  const address = URL.createObjectURL(file);
  if (kind === "svg") { download(address, `${name}.svg`); return; }
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.width;
    canvas.height = 2 * image.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    download(canvas.toDataURL("image/png"), `${name}.png`);
  };
  image.src = address;
}
all("[data-save]").forEach((one) => one.addEventListener("click", () => {
  const figure = one.closest("figure");
  const svg = figure.dataset.kind === "svg" && figure.querySelector("svg");
  if (svg) saveDrawing(svg, figure.id, one.dataset.save);
  else download(figure.querySelector("img").src, `${figure.id}.png`);
}));
