"use strict";
// The page of rows. A key counts for the row that was on screen when it was pressed; keys wait
// in a line, and the next row shows once the server has written the answer.
const config = JSON.parse(document.getElementById("config").textContent);
const $ = (id) => document.getElementById(id);
const rows = config.rows, order = config.order, done = new Set();
const filters = new Set(), ahead = new Map(), waiting = [];
let begun = {}, row = null, at = -1, name = config.name, opened = false, marked = false, found = null, busy = false, seen = false, news = "";

function el(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== null) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
function keyed(key, text) { const parts = document.createDocumentFragment(); parts.append(el("kbd", key), " " + text); return parts; }
function say(text) { $("told").textContent = [news, text].filter(Boolean).join(" "); news = ""; }
function address(path, query = {}) { return path + "?" + new URLSearchParams({t: config.token, by: name, ...query}); }

async function get(path, query) {
  const answer = await fetch(address(path, query));
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}
async function post(data) {
  let answer;
  try {
    answer = await fetch(address("answer"), {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify({by: name, ...data})});
  } catch { throw new Error("Not saved: the program behind this page does not answer. Start it again and open the address it prints."); }
  if (!answer.ok) { refresh(); throw new Error(await answer.text()); }
  const sent = await answer.json(), place = sent.row.place;
  ahead.delete(place);
  stand(sent.state);
  rows[place].tags = sent.row.tags;
  mark(place);
  return sent.row;
}

// ---- the list
const items = [];
function list() {
  for (const place of order) {
    const item = el("li", null, {role: "option", id: "r" + place, "aria-selected": "false"});
    item.append(el("span", rows[place].id), el("small", ""));
    item.dataset.place = place;
    items[place] = item;
    mark(place);
  }
  $("list").append(...order.map((place) => items[place]));
}
function mark(place) {
  const is = done.has(place), tags = rows[place].tags.filter((tag) => !tag.includes(": "));
  items[place].classList.toggle("done", is);
  items[place].title = config.desk && !is ? rows[place].id : [rows[place].id, ...tags].join(", ");
  items[place].lastChild.textContent = is ? "✓" : config.desk ? begun[place] || "" : tags.join(", ");
}
function shows(place) {
  if (found && !found.has(place)) return false;
  for (const filter of filters) {
    if (filter === "to do" ? done.has(place) : filter === "done" ? !done.has(place) : !rows[place].tags.includes(filter)) return false;
  }
  return true;
}
function visible() { return order.filter((place) => !items[place].hidden); }
function filter() {
  for (const place of order) items[place].hidden = !shows(place);
  const left = visible();
  $("filtered").textContent = filters.size || found ? ` (${left.length} of ${rows.length})` : "";
  for (const button of $("filters").children) button.setAttribute("aria-pressed", filters.has(button.dataset.filter));
  if (left.length && !left.includes(at)) show(left[0]); else if (!left.length) say("No row is like this.");
}
function chips() {
  const counts = new Map();
  for (const each of rows) for (const tag of each.tags) counts.set(tag, (counts.get(tag) || 0) + 1);
  const names = [...counts.keys()].sort((a, b) => a.includes(": ") - b.includes(": ") || a.localeCompare(b));
  for (const tag of [...(config.desk ? ["to do", "done"] : []), ...names.slice(0, 80)]) {
    const button = el("button", tag + (counts.has(tag) ? ` ${counts.get(tag)}` : ""), {"aria-pressed": "false"});
    button.dataset.filter = tag;
    button.onclick = () => { filters.delete(tag) || filters.add(tag); filter(); };
    $("filters").append(button);
  }
}
// A filter by what judges say tells their verdict.
const tells = () => [...filters].some((tag) => tag.includes(": ") || tag === "judge against people");

// ---- a row
function fetched(place) {
  if (config.whole) {
    const [text, verdict] = $("row" + place).content.children;
    return {place, text: text.innerHTML, verdict: verdict.innerHTML};
  }
  if (!ahead.has(place)) ahead.set(place, get("row/" + place, marked ? {marked: 1} : {}));
  return ahead.get(place);
}
async function show(place) {
  if (place === undefined) return;
  at = place;
  let shown;
  try { shown = await fetched(place); } catch (error) { say(error.message); return; } finally { ahead.delete(place); }
  if (at === place) {
    opened = false; seen = tells();
    draw(shown, true);
    for (const next of visible().slice(visible().indexOf(place) + 1).slice(0, 2)) if (!config.whole) fetched(next).catch(() => ahead.delete(next));
  }
}
function draw(shown, anew) {
  row = shown;
  if (anew) { $("item").innerHTML = shown.text; $("item").scrollTop = 0; window.scrollTo(0, 0); }
  $("verdict").innerHTML = shown.verdict || "";
  $("blind").hidden = shown.verdict !== null || !shown.isTold;
  for (const item of document.querySelectorAll("#list [aria-selected=true]")) item.setAttribute("aria-selected", "false");
  items[row.place].setAttribute("aria-selected", "true");
  $("list").setAttribute("aria-activedescendant", "r" + row.place);
  if (config.desk) { $("note").value = shown.note; if ($("mode")) $("mode").value = shown.mode; }
  ask();
  items[row.place].scrollIntoView({block: "nearest"});
  // Keys scroll what has the focus; a button that was pressed is gone.
  if (document.activeElement === document.body) $("item").focus({preventScroll: true});
  if (anew) say(`Row ${order.indexOf(row.place) + 1} of ${rows.length}: ${rows[row.place].id}` + (config.desk && shown.isDone ? ", answered" : "") + asked());
}
function title(question) { return question.name || (row.questions.length > 1 ? "as a whole" : "Your answer"); }
function asked() {
  const now = config.desk && row.questions.length > 1 ? open_question(row) : -1;
  return now < 0 ? "" : `. Question ${now + 1} of ${row.questions.length}: ${title(row.questions[now])}`;
}
function open_question(shown) { return shown.questions.findIndex((each) => !(each.name in shown.said)); }
function ask() {
  if (!config.desk) return;
  const now = open_question(row);
  $("keys").replaceChildren(...row.questions.map((question, number) => {
    const set = el("fieldset", null, number === now ? {"aria-current": "step"} : {});
    set.append(el("legend", title(question)));
    for (const [key, text] of Object.entries(question.keys)) {
      const button = el("button", null, {"aria-pressed": row.said[question.name] === key});
      button.append(keyed(key, text === key ? "" : text.startsWith(key + " ") ? text.slice(2) : text));
      button.setAttribute("aria-label", [question.name, text].filter(Boolean).join(": "));
      button.onclick = () => press(() => answer(row.place, key, question.name));
      set.append(button);
    }
    return set;
  }));
}
function stand(state) {
  done.clear(); for (const place of state.done) done.add(place);
  begun = state.begun;
  $("count").textContent = config.desk ? `${done.size} of ${rows.length} answered` : `${rows.length} rows`;
  if (!config.desk) return;
  $("progress").max = rows.length; $("progress").value = done.size;
  $("count").title = state.told.join(" · ");
  $("next").hidden = !(state.next || state.told.length);
  $("next").replaceChildren([...state.told, state.next && "enough for a report: "].filter(Boolean).join(" · "), el("code", state.next));
}

// ---- answers, one after the other
function press(action) { waiting.push(action); if (!busy) work(); }
async function work() {
  busy = true;
  while (waiting.length) {
    try { await waiting.shift()(); } catch (error) { waiting.length = 0; say(error.message); $("told").classList.add("bad"); continue; }
    $("told").classList.remove("bad");
  }
  busy = false;
}
async function answer(place, key, which, was_done) {
  const shown = row.place === place ? row : await get("row/" + place);
  const now = which !== undefined ? shown.questions.findIndex((each) => each.name === which) : open_question(shown);
  // An answer that was there when the key was pressed is changed; one key too many is not.
  if (now < 0 && !was_done) { say(`${rows[place].id} is answered: the key ${key} came before the next row and does not count.`); return; }
  const question = shown.questions[now < 0 ? shown.questions.length - 1 : now];
  if (!(key in question.keys)) return;
  const mode = $("mode") && row.place === place ? $("mode").value.trim() : "";
  const saved = await post({do: "say", place, name: question.name, key, mode, was: shown.said[question.name], opened: seen || opened});
  if (row.place !== place) return;
  draw(saved, false);
  news = `${rows[place].id}: ${question.keys[key]}, saved${saved.isDone ? ". " + saved.differs : asked()}`.trim();
  if (saved.isDone) await move(1, true); else say("");
}
async function undo() {
  const {place} = await post({do: "undo", place: row.place});
  await show(place);
  say(`${rows[place].id}: the answer is taken back`);
}
async function reveal() {
  if (!config.desk || row.verdict !== null) return;
  if (!row.isTold) { say("No judge and nobody else says anything of this row."); return; }
  const place = row.place, shown = await post({do: "open", place});
  opened = true;
  if (row.place === place) draw(shown, false);
}
async function move(step, onward) {
  const left = visible(), here = left.indexOf(at);
  let next = left[here < 0 ? 0 : here + step];
  if (onward && config.desk) next = left.slice(here + 1).find((place) => !done.has(place)) ?? left.find((place) => !done.has(place));
  if (next !== undefined) await show(next); else if (onward) say("Every row here is answered.");
}
async function note() {
  const place = row.place, text = $("note").value.trim();
  if (text === row.note) return;
  row.note = (await post({do: "note", place, text, was: row.note})).note;
  say("The note is saved.");
}
async function differ() {
  marked = !marked; ahead.clear();
  $("differ").setAttribute("aria-pressed", marked);
  await show(at);
}
async function search() {
  const wanted = $("find").value.trim().toLowerCase();
  if (!wanted) found = null;
  else if (config.whole) found = new Set(order.filter((place) => (rows[place].id + $("row" + place).content.firstElementChild.textContent).toLowerCase().includes(wanted)));
  else found = new Set(await get("find", {q: wanted}));
  filter();
}

const commands = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  s: () => config.desk && move(1, true), u: () => config.desk && undo(), v: () => reveal(),
  d: () => $("differ") && differ(), n: () => config.desk && $("note").focus(),
  m: () => $("mode") && $("mode").focus(), "/": () => $("find").focus(),
  o: unfold, "?": () => $("help").showModal(),
};
function unfold() {
  const folded = [...document.querySelectorAll("main details, aside details")], opens = folded.some((each) => !each.open);
  for (const each of folded) each.open = opens;
  if (!folded.length) say("Nothing is folded here.");
}
document.addEventListener("keydown", (event) => {
  const typed = event.target.closest("input");
  if ($("help").open) return;
  if (event.key === "Escape" || (typed && event.key === "Enter")) { $("item").focus(); for (const each of document.querySelectorAll("header details")) each.open = false; event.preventDefault(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || typed || event.repeat || !row) return;
  const place = row.place, key = event.key, was_done = row.isDone;
  if (config.desk && row.questions.some((each) => key in each.keys)) press(() => answer(place, key, undefined, was_done));
  else if (key in commands) press(commands[key]);
  else if (/^[\p{L}\p{N}\p{P}]$/u.test(key)) say(`The key ${key} does nothing here. ? shows the keys.`);
  else return;
  event.preventDefault();
});
$("list").onclick = (event) => { const item = event.target.closest("li"); if (item) press(() => show(+item.dataset.place)); };
$("last").onclick = () => press(() => move(-1));
$("after").onclick = () => press(() => move(1));
$("unfold").onclick = unfold;
$("keyed").onclick = () => $("help").showModal();
$("find").oninput = () => press(search);
if ($("differ")) $("differ").onclick = () => press(differ);
if (config.desk) {
  $("open").onclick = () => press(reveal);
  $("skip").onclick = () => press(() => move(1, true));
  $("undo").onclick = () => press(undo);
  $("note").onchange = () => press(note);
  $("name").value = name;
  $("name").onchange = () => { name = $("name").value.trim(); press(refresh); };
  // Another tab may have answered meanwhile.
  document.addEventListener("visibilitychange", () => document.hidden || press(refresh));
}
async function refresh() {
  ahead.clear();
  stand(await get("state"));
  order.forEach(mark);
  await show(at);
}
stand(config); list(); chips();
show(config.desk ? order.find((place) => !done.has(place)) ?? order[0] : order[0]);
if (!rows.length) say("There is no row; see the reports.");
if (!rows.length && $("reports")) $("reports").open = true;
