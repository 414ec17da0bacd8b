
// ---- What opens on a click: things by kind, packed into the page, with what they are related to.
const panel = document.getElementById("panel"), told = document.getElementById("told");
const opened = document.getElementById("opened");
const SHOWN = 25;
const TIMES = [["s", 1], ["min", 60], ["h", 3600], ["day", 86400]];
let plans = [], opener = null;

async function unpacked() {
  const packed = document.getElementById("things");
  if (!packed || !globalThis.DecompressionStream) return [];
  const bytes = Uint8Array.from(atob(packed.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Numbers, written as in tables.
function figure(value) {
  if (typeof value !== "number") return value;
  const digits = Math.abs(value) >= 1000 || Number.isInteger(value) ? { maximumFractionDigits: 0 }
    : { maximumSignificantDigits: 3 };
  return value.toLocaleString("en", digits).replace("-", "−");
}
function rate(value) {
  const [time, long] = TIMES.find(([, many]) => Math.abs(value) * many >= 0.5) || TIMES.at(-1);
  return value === 0 ? "0" : `${figure(value * long)}/${time}`;
}
function written(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "rate") return rate(value);
  return unit === "percent" ? `${figure(100 * value)} %` : String(figure(value));
}

// Elements are made of texts, never of markup: names are data.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  Object.entries(attributes).forEach(([key, text]) => made.setAttribute(key, text));
  made.append(...children);
  return made;
}
const address = (plan, kind, number) => `#/${plan}/${kind}/${number}`;
const shelf = (plan, kind) => plans[plan]?.things[kind];
const title = (kind, name) => `${kind[0].toUpperCase()}${kind.slice(1)} ${name}`;

function numbered(plan, kind, name) {
  const known = shelf(plan, kind);
  if (!known) return -1;
  known.numbers ??= new Map(known.names.map((one, number) => [one, number]));
  return known.numbers.get(name) ?? -1;
}
function starts(relation) {
  if (!relation.starts) {
    relation.starts = [0];
    relation.sizes.forEach((size) => relation.starts.push(relation.starts.at(-1) + size));
  }
  return relation.starts;
}
// The same relation from the other side: of each item the rows that have it.
function turned(relation) {
  if (!relation.turned) {
    relation.turned = new Map();
    relation.sizes.forEach((size, row) => {
      for (let at = starts(relation)[row]; at < starts(relation)[row + 1]; at += 1) {
        const item = relation.items[at];
        if (!relation.turned.has(item)) relation.turned.set(item, []);
        relation.turned.get(item).push([row, at]);
      }
    });
  }
  return relation.turned;
}
// All lists of a thing: {title, kind, rows: [[number, place]], columns, total, note}.
function lists(plan, kind, number) {
  const found = [];
  for (const relation of shelf(plan, kind).related) {
    const from = starts(relation)[number], to = starts(relation)[number + 1];
    const rows = relation.items.slice(from, to).map((item, i) => [item, from + i]);
    found.push({ ...relation, rows, total: relation.totals?.[number] ?? rows.length });
  }
  for (const [other, { related }] of Object.entries(plans[plan].things)) {
    for (const relation of related.filter((one) => one.back && one.kind === kind)) {
      const rows = turned(relation).get(number) || [];
      const note = relation.totals ? "Only of what this page has." : "";
      found.push({ ...relation, title: relation.back, kind: other, rows, total: rows.length, note });
    }
  }
  return found.filter((one) => one.rows.length || one.total);
}
function words(plan, kind, number) {
  const says = shelf(plan, kind)?.facts.find(([, unit]) => unit === "words");
  return says?.[2][number] || "";
}
function named(plan, kind, number) {
  const link = element("a", { href: address(plan, kind, number) }, shelf(plan, kind).names[number]);
  const more = words(plan, kind, number);
  return more ? [link, element("span", { class: "note" }, ` ${more}`)] : [link];
}

const numeric = ([, unit, values]) => unit || values.every((one) => one === null || typeof one === "number");
// A row of a table; where it would have many columns, the name with all that is said of it below.
function cellRow(plan, list, right, [item, at]) {
  return element("tr", {}, element("td", {}, ...named(plan, list.kind, item)),
    ...list.columns.map(([, unit, values], i) => element(
      "td", right[i] ? { class: "number" } : {}, written(values[at], unit))));
}
function wordRow(plan, list, [item, at]) {
  const said = list.columns.map(([column, unit, values]) => element("span", {},
    element("b", {}, column), ` ${written(values[at], unit)}`));
  return element("li", {}, ...named(plan, list.kind, item), element("div", { class: "said" }, ...said));
}
function rowsOf(plan, list) {
  if (list.columns.length > 2) {
    const rows = element("ul", { class: "rows", tabindex: "0", "aria-label": list.title });
    return [rows, (some) => rows.append(...some.map((row) => wordRow(plan, list, row)))];
  }
  const right = list.columns.map(numeric), body = element("tbody");
  const head = element("tr", {}, ...[list.kind, ...list.columns.map(([column]) => column)].map(
    (column, i) => element("th", { scope: "col", ...(right[i - 1] ? { class: "number" } : {}) }, column)));
  const table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": list.title },
    element("table", {}, element("thead", {}, head), body));
  return [table, (some) => body.append(...some.map((row) => cellRow(plan, list, right, row)))];
}
function tableOf(plan, list) {
  const [rows, fill] = rowsOf(plan, list);
  fill(list.rows.slice(0, SHOWN));
  const parts = [element("h3", {}, `${list.title} (${list.total.toLocaleString("en")})`), rows];
  if (list.rows.length > SHOWN) {
    const more = element("button", { type: "button" }, `Show all ${list.rows.length.toLocaleString("en")}`);
    more.addEventListener("click", () => { fill(list.rows.slice(SHOWN)); more.remove(); });
    parts.push(more);
  }
  const left = list.total - list.rows.length;
  if (left > 0) parts.push(element("p", { class: "note" }, `${left.toLocaleString("en")} more are in the plan's tables.`));
  if (list.note) parts.push(element("p", { class: "note" }, list.note));
  return parts;
}

function open(plan, kind, number) {
  const thing = shelf(plan, kind), name = thing.names[number];
  opened.textContent = title(kind, name);
  const facts = thing.facts.filter(([, , values]) => values[number] !== null);
  told.replaceChildren();
  if (plans.length > 1) told.append(element("p", { class: "kind" }, plans[plan].name));
  if (words(plan, kind, number)) told.append(element("p", {}, words(plan, kind, number)));
  told.append(element("dl", { class: "facts" }, ...facts.filter(([, unit]) => unit !== "words").map(
    ([fact, unit, values]) => element("div", {},
      element("dt", {}, fact), element("dd", {}, written(values[number], unit))))));
  lists(plan, kind, number).forEach((list) => told.append(...tableOf(plan, list)));
  panel.hidden = false;
  panel.scrollTop = 0;
  root.classList.add("opened");
  light(plan, kind, number);
  opened.focus({ preventScroll: true });
}
function close() {
  if (panel.hidden) return;
  panel.hidden = true;
  root.classList.remove("opened");
  dim();
  opener?.focus({ preventScroll: true });
  opener = null;
}

// The pictures show the same: the brokers and links that a thing has to do with, and its channel.
function dim() {
  all(".lit").forEach((one) => one.classList.remove("lit"));
  all("svg.dimmed").forEach((one) => one.classList.remove("dimmed"));
  all(".band").forEach((one) => one.remove());
}
function related(plan, kind, number) {
  const found = new Set([`${kind} ${shelf(plan, kind).names[number]}`]);
  for (const list of lists(plan, kind, number)) {
    for (const [item] of list.rows) {
      found.add(`${list.kind} ${shelf(plan, list.kind).names[item]}`);
      if (list.kind !== "subscriber" || kind === "broker") continue;
      for (const home of lists(plan, "subscriber", item).filter((one) => one.kind === "broker")) {
        home.rows.forEach(([broker]) => found.add(`broker ${shelf(plan, "broker").names[broker]}`));
      }
    }
  }
  return found;
}
function light(plan, kind, number) {
  dim();
  const lit = related(plan, kind, number);
  all("svg.network").filter((svg) => planOf(svg) === plan).forEach((svg) => {
    const own = all("[data-kind]", svg).filter((one) => lit.has(`${one.dataset.kind} ${one.dataset.name}`));
    own.forEach((one) => one.classList.add("lit"));
    svg.classList.toggle("dimmed", own.length > 0);
  });
  all(".matrix-box[data-bands]").filter((box) => planOf(box) === plan).forEach((box) => {
    bands(box).filter(([channel]) => lit.has(`channel ${channel}`)).forEach(([, from, to]) => {
      const band = element("div", { class: "band" });
      band.style.left = `${100 * from}%`;
      band.style.width = `${100 * (to - from)}%`;
      box.append(band);
    });
  });
}
const planOf = (within) => Number(within.closest("section")?.dataset.plan);
const bands = (box) => (box.bands ??= JSON.parse(box.dataset.bands));

// The address says what is open, so that the browser's own way back works.
function follow() {
  const [, plan, kind, number] = /^#\/(\d+)\/(\w+)\/(\d+)$/.exec(location.hash) || [];
  if (shelf(plan, kind)?.names[number] === undefined) close();
  else open(Number(plan), kind, Number(number));
}
function go(plan, kind, number, from) {
  opener ??= from;
  location.hash = address(plan, kind, number);
}
function leave() {
  history.pushState(null, "", location.pathname + location.search);
  close();
}
function thingAt(target) {
  const box = target.closest?.("[data-kind][data-name]");
  if (!box) return null;
  const plan = planOf(box), number = numbered(plan, box.dataset.kind, box.dataset.name);
  return number < 0 ? null : [plan, box.dataset.kind, number, box];
}
function bandAt(event) {
  const box = event.target.closest?.(".matrix-box[data-bands]");
  if (!box) return null;
  const { left, width } = box.getBoundingClientRect(), at = (event.clientX - left) / width;
  const band = bands(box).find(([, from, to]) => at >= from && at < to);
  return band && { box, channel: String(band[0]), number: numbered(planOf(box), "channel", String(band[0])) };
}
function press(event) {
  const thing = thingAt(event.target);
  if (thing) { go(...thing); event.preventDefault(); return; }
  const band = bandAt(event);
  if (band && band.number >= 0) go(planOf(band.box), "channel", band.number, band.box);
}

function linkCells(listing) {
  const plan = planOf(listing);
  all("th[data-kind]", listing).forEach((heading) => {
    const { kind } = heading.dataset, column = heading.cellIndex;
    all("tbody tr", listing).forEach(({ cells }) => {
      const cell = cells[column], number = numbered(plan, kind, cell.textContent.replace(/,/g, ""));
      const same = number < 0 ? numbered(plan, kind, cell.textContent) : number;
      if (same >= 0) cell.replaceChildren(element("a", { href: address(plan, kind, same) }, cell.textContent));
    });
  });
}
function linkDrawing(svg) {
  const parts = all("[data-kind]", svg).filter(thingAt);
  parts.forEach((one) => {
    one.classList.add("opens");
    one.setAttribute("role", "button");
    one.setAttribute("aria-label", one.dataset.tip);
    if (parts.length <= 150) one.setAttribute("tabindex", "0");
  });
}
unpacked().then((found) => {
  plans = found;
  all(".listing").forEach(linkCells);
  all("svg.network").forEach(linkDrawing);
  document.addEventListener("click", press);
  document.addEventListener("click", (event) => { opener ??= event.target.closest?.("a[href^='#/']"); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) leave();
    if ((event.key === "Enter" || event.key === " ") && event.target.matches?.("svg [data-kind]")) press(event);
  });
  document.getElementById("close").addEventListener("click", leave);
  addEventListener("hashchange", follow);
  follow();
  root.dataset.ready = "";
});
