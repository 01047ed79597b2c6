"use strict";
// A table that is wider than the screen says so, until its end is in view.
(() => {
  const tell = (table) => table.classList.toggle(
    "more", table.scrollLeft + table.clientWidth < table.scrollWidth - 1);
  const tellAll = () => document.querySelectorAll(".scroll").forEach(tell);
  addEventListener("resize", tellAll);
  for (const kind of ["scroll", "toggle", "click"]) addEventListener(kind, tellAll, true);
  tellAll();
})();

// All rows of a report: search, filter, sort. Texts are shown as text, never as markup.
(async () => {
  const part = (id) => document.getElementById(id);
  const packed = Uint8Array.from(atob(part("rows-data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { judges, people, rows } = await new Response(stream).json();
  const list = part("rows-list"), space = part("rows-space"), view = part("rows-view");
  const height = 44;
  let chosen = rows, open = null;

  const make = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const words = (row) => {
    row.words ??= [row.id, row.category, row.task, ...row.texts.flat(),
      ...row.judges.flatMap((j) => (j ? [j.answer, j.reason] : []))].join("\n").toLowerCase();
    return row.words;
  };
  const judged = (row, test) => row.judges.some((j) => j && test(j));
  const kinds = {
    all: () => true,
    differ: (row) => judged(row, (j) => j.cost > 0),
    flips: (row) => judged(row, (j) => j.flipped),
    ties: (row) => judged(row, (j) => j.answer === "tie"),
    lost: (row) => judged(row, (j) => j.answer === null),
    split: (row) => new Set(row.votes).size > 1,
  };
  const most = (row) => Math.max(...row.judges.map((j) => (j ? j.cost : 0)));
  const orders = {
    cost: (a, b) => most(b) - most(a) || a.number - b.number,
    file: (a, b) => a.number - b.number,
    id: (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }),
    score: (a, b) => (b.judges[0]?.score ?? -1) - (a.judges[0]?.score ?? -1),
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / height) - 5);
    const last = Math.min(chosen.length, first + Math.ceil(list.clientHeight / height) + 10);
    space.style.height = `${chosen.length * height}px`;
    space.replaceChildren(...chosen.slice(first, last).map((row, place) => {
      const line = make("button", undefined, row === open ? "row open" : "row");
      line.type = "button";
      line.style.top = `${(first + place) * height}px`;
      const said = row.judges.map((j) => (j ? j.answer ?? "not judged" : "–")).join(" · ");
      const name = make("b");
      name.append(make("bdi", row.id));
      line.append(name, make("span", row.category ?? "", "kind"),
        make("span", `${people}: ${row.label ?? "–"}`, "people"), make("span", said, "judge"));
      line.addEventListener("click", () => { open = row; show(row); draw(); });
      return line;
    }));
  };
  const table = (each) => {
    const made = make("table"), head = make("tr"), wide = make("div", undefined, "scroll");
    head.append(...each.head.map((name) => make("th", name)));
    made.append(head, ...each.rows.map((cells) => {
      const line = make("tr");
      line.append(...cells.map((cell) => make("td", cell)));
      return line;
    }));
    wide.append(made);
    return wide;
  };
  const show = (row) => {
    const parts = [make("h3", row.id)];
    const add = (name, text) => {
      if (text) parts.push(make("h4", name), make("div", text, "text"));
    };
    add("Task", row.task);
    const both = make("div", undefined, "texts");
    for (const [name, text] of row.texts) {
      const side = make("div");
      side.append(make("h4", name), make("div", text, "text"));
      both.append(side);
    }
    parts.push(both);
    add(people, [row.label ?? "no label", row.votes.length ? `votes: ${row.votes.join(", ")}` : ""]
      .filter(Boolean).join("; "));
    row.judges.forEach((j, place) => {
      if (!j) return;
      const score = j.score === null ? "" : `, score ${j.score.toFixed(2)}`;
      const both_orders = j.orders ? `; A first: ${j.orders[0] ?? "–"}, B first: ${j.orders[1] ?? "–"}` : "";
      add(judges[place], `${j.answer ?? "not judged"}${score}${both_orders}`);
      add("Reason", j.reason);
      for (const each of j.evidence) parts.push(make("h4", each.title), table(each));
    });
    view.replaceChildren(...parts);
  };
  const choose = () => {
    const text = part("rows-search").value.trim().toLowerCase();
    const kind = kinds[part("rows-kind").value], category = part("rows-category").value;
    chosen = rows.filter((row) => kind(row) && (!category || row.category === category)
      && (!text || words(row).includes(text)));
    chosen.sort(orders[part("rows-order").value]);
    part("rows-count").textContent = `${chosen.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    list.scrollTop = 0;
    draw();
  };
  const categories = [...new Set(rows.map((row) => row.category).filter(Boolean))].sort();
  part("rows-category").append(...categories.map((name) => {
    const option = make("option", name);
    option.value = name;
    return option;
  }));
  part("rows-category").hidden = categories.length < 2;
  for (const id of ["rows-kind", "rows-category", "rows-order"]) part(id).addEventListener("change", choose);
  let later;
  part("rows-search").addEventListener("input", () => { clearTimeout(later); later = setTimeout(choose, 150); });
  list.addEventListener("scroll", draw);
  addEventListener("resize", draw);
  part("rows").querySelector("details").addEventListener("toggle", draw);
  part("rows").hidden = false;
  choose();
})();
