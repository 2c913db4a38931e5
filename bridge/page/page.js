// Draws a timeline, whose JSON form docs/page.md describes. What strangers wrote only ever becomes
// a text node, or the value of an attribute that nothing runs. CSS places what is drawn.

/** The shortest silence that is named, in milliseconds: shorter ones are the pace of a chat. */
const SILENCE = 60_000;
/** The longest pause between two stages of a connection, in milliseconds. */
const PAUSE = 1_000;
/** Pixels after which a click is a drag; and how far an event of another lane is away from it. */
const [DRAG, ASIDE] = [8, 40];
/** The marks of an axis divide it into so many pieces at most. */
const PIECES = 6;
/** So many marks of a kind are told apart in a row of the drawing. */
const DOTS = 700;
/** A reason stands beside the end of a stay if this share of the time is free there. */
const ROOM = 0.2;
const [MINUTE, DAY] = [60_000, 86_400_000];
/** Round distances between the marks of an axis, in milliseconds. */
const STEPS = [
  [1, 2, 5, 10, 20, 50, 100, 200, 500],
  [1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * MINUTE),
  [1, 2, 7, 30, 365, 3650].map((days) => days * DAY),
].flat();
const STAMP = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const SIGNS = { error: "✕", failed: "✕", warning: "▲", note: "●", passed: "✓" };
const MARKS = { ...SIGNS, unanswered: "?", change: "◆", said: "|", in: "╷", out: "╵" };
/** By how many events a key moves the selection. */
const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const MOVES = { ...ARROWS, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
const OURSELVES = { room: "the bridge", stream: "this client", scenario: "this view" };

const the = (id) => document.getElementById(id);
const copy = (id) => the(id).content.firstElementChild.cloneNode(true);
const page = JSON.parse(the("data").textContent);
const timed = page.zone !== "none";
const details = document.querySelector("aside");

const events = new Map();
let selected;

function html(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child));
  return node;
}

/** Whether what is folded away under a name is shown. */
const isOpen = (fold) => !fold || the(fold).checked;

// Times and texts.

/** Milliseconds by which the reader's zone is behind; times of no known zone stay as they are. */
const behind = (at) => (page.zone === "utc" ? new Date(at).getTimezoneOffset() * MINUTE : 0);
/** A date and a time, with milliseconds: in UTC, and in the reader's zone. */
const written = (at) => new Date(at).toISOString().slice(0, -1).replace("T", " ");
const local = (at) => written(at - behind(at));
const offset = (at) =>
  `UTC${behind(at) > 0 ? "−" : "+"}${written(Math.abs(behind(at))).slice(11, 16)}`;
const ends = page.parts.flatMap(({ from, to }) => [from, to]);
const severalDays = timed && new Set(ends.map((at) => local(at).slice(0, 10))).size > 1;
/** When something was, in few characters; in a log without times, at which line. */
const moment = ({ at, where }) =>
  timed ? local(at).slice(severalDays ? 0 : 11, 19) : `line ${where?.match(/\d+$/) ?? at}`;
const placed = (where) => where?.replace(/:(\d+)$/, ", line $1");
/** A sentence of ours with its times in the form that all other times have. */
const retimed = (text) =>
  page.zone === "utc"
    ? text.replace(STAMP, (at) => moment({ at: Date.parse(at) }))
    : text.replace(/^(\S+):(\d+): /, "$1, line $2: ");
/** What an event says; of a message only the note before its words is ours. */
const told = ({ kind, text }) =>
  kind === "message"
    ? text.replace(/^<[^>]*> \(said [^)]*\)/, retimed)
    : ["gap", "connection"].includes(kind)
      ? retimed(text)
      : text;

function duration(milliseconds) {
  if (!timed) return milliseconds === 1 ? "1 line" : `${milliseconds} lines`;
  if (milliseconds < 1_000) return `${milliseconds} ms`;
  if (milliseconds < 10_000) return `${Math.round(milliseconds / 100) / 10} s`;
  const words = [];
  let rest = Math.round(milliseconds / 1_000);
  for (const [unit, seconds] of Object.entries({ d: 86_400, h: 3_600, min: 60, s: 1 })) {
    if (rest >= seconds && words.length < 2) words.push(`${Math.floor(rest / seconds)} ${unit}`);
    rest %= seconds;
  }
  return words.join(" ");
}

/** The times in which nobody said anything, as far as the records can tell. */
function silences({ events, gaps, to }) {
  const said = events.filter(({ kind }) => kind === "message" || kind === "stanza");
  const times = said.flatMap(({ at: from }, index) => {
    const until = said[index + 1]?.at ?? to;
    const holes = gaps.filter((gap) => gap.from < until && gap.to > from);
    const starts = [from, ...holes.map((gap) => gap.to)];
    return starts.map((start, place) => ({ from: start, to: holes[place]?.from ?? until }));
  });
  return times.filter((time) => timed && time.to - time.from >= SILENCE);
}

/** XML with a line for each element. */
function pretty(xml) {
  let depth = 0;
  return xml.replace(/<(\/?)[^<>]*?(\/?)>(?=(<\/?)?)/g, (tag, closing, empty, next) => {
    if (closing) depth = Math.max(depth - 1, 0);
    else if (!empty) depth += 1;
    const opens = !closing && !empty;
    if (!next || (opens && next === "</")) return tag;
    return `${tag}\n${"  ".repeat(Math.max(depth - next.length + 1, 0))}`;
  });
}

/** The role of an occupant, and what the affiliation adds to it. */
function standing({ role, affiliation }) {
  const words = [role === "visitor" ? "visitor, no voice" : role, affiliation];
  return words.filter((word) => word && word !== "none").join(", ");
}

const count = (shown, all) =>
  `${shown === all ? "" : `${shown.toLocaleString("en")} of `}${all.toLocaleString("en")} events`;

/** A word with its sign, so that colour alone says nothing. */
function sign(node, word = "") {
  node.className = word;
  node.textContent = word && `${SIGNS[word]} ${word}`;
}

// What stands beside a drawing.

function row(event) {
  const item = copy("event");
  const [time, kind, text, took, answer] = item.children;
  const reply = events.get(event.answer);
  item.id = event.id;
  item.hidden = event.hidden;
  time.textContent = moment(event);
  kind.textContent = `${SIGNS[event.severity] ?? ""} ${event.kind}`;
  kind.classList.add(event.severity ?? "none");
  text.textContent = told(event);
  took.textContent = event.answered === false ? "? no answer" : outcome(event);
  took.classList.toggle("error", event.answered === false);
  answer.textContent = reply?.text ?? "";
  event.row = item;
  if (reply) reply.row = item;
  return item;
}

/** How long the answer to a question took. */
function outcome({ answer, answerMs }) {
  return answerMs === undefined ? answer && "→" : `→ ${duration(answerMs)} →`;
}

function finding({ severity, message, hint, clause, at, event, where }) {
  const item = copy("finding");
  const [word, time, link, advice] = item.children;
  sign(word, severity);
  time.textContent = at === undefined ? placed(where) : moment({ at, where });
  link.textContent = retimed(message);
  if (event) link.href = `#${event}`;
  advice.textContent = [retimed(hint ?? ""), clause && `(${clause})`]
    .filter((words) => words)
    .join(" ");
  return item;
}

/** Whether a stage of connecting went well. A step of a scenario begins with who does it. */
const isPassed = ({ name, ok }) => ok && !name.includes(": ");

/** The stages of each connection as bars; the next begins after a failure, or after a pause. */
function connections(stages) {
  const lists = [];
  stages.forEach((stage, index) => {
    const { name, from, to, ok, detail } = stage;
    const before = stages[index - 1];
    if (!before?.ok || from - before.to > PAUSE) {
      lists.push(html("ol", { class: "stages" }, html("li", {}, moment({ at: from }))));
    }
    const words = `${ok ? "" : "✕ "}${name} ${duration(to - from)} `;
    const hint = detail && html("span", { class: "hint" }, detail);
    const how = isPassed(stage) ? "connecting" : ok ? "" : "error";
    const bar = html("li", { class: `bar ${how}` }, words, hint);
    bar.style.flexGrow = Math.max(to - from, 1);
    lists.at(-1).append(bar);
  });
  return lists;
}

// A part: its heading, its drawing and the list of its events.

/** A node of the drawing, with its times and words. */
function drawn(name, { from, to }, words = "", title = words) {
  const node = html("span", { class: name, title }, words);
  node.style.setProperty("--from", from);
  node.style.setProperty("--to", to ?? from);
  return node;
}

/** What an event looks like in the drawing; a stay shows by itself that somebody came or left. */
function shape({ severity, kind, direction, answered }) {
  if (answered === false) return "unanswered";
  if (severity === "error" || severity === "warning") return severity;
  if (kind === "stanza") return direction ?? "said";
  if (kind === "message") return "said";
  return ["join", "leave", "gap"].includes(kind) ? undefined : "change";
}

/** The marks of events or findings in a time; one for those that would lie over each other. */
function marks(events, { from, to }) {
  const places = new Map();
  for (const event of events) {
    const name = shape(event);
    const place = `${name} ${Math.round(((event.at - from) / (to - from)) * DOTS)}`;
    if (!name || places.has(place) || !(event.at >= from && event.at <= to)) continue;
    places.set(place, drawn(`mark ${name}`, { from: event.at }, MARKS[name]));
  }
  return places.values();
}

/** A row of the drawing: who or what it is about, and what is drawn at its times. */
function lane(name, hint, ...nodes) {
  const made = copy("lane");
  const [who, track] = made.children;
  [name, hint].forEach((words, index) => {
    Object.assign(who.children[index], { textContent: words, title: words });
  });
  track.append(...nodes.filter((node) => node));
  return made;
}

class Part {
  constructor(part) {
    Object.assign(this, { lanes: [], events: [], stages: [], gaps: [], findings: [] }, part);
    for (const event of this.events) {
      events.set(event.id, Object.assign(event, { part: this, hidden: false }));
    }
    for (const event of this.events) {
      if (event.answer) events.get(event.answer).question = event;
    }
    /** The events that fit the filters, and those with a row: an answer has none of its own. */
    this.shown = this.listed = this.events;
    this.findings.sort((first, second) => first.at - second.at);
    /** The time that is seen. */
    this.view = this.whole = { from: this.from, to: Math.max(this.to, this.from + 1) };
    this.node = copy("part");
    this.node.id = this.id;
    const [title, outcome, when] = this.node.querySelector("summary").children;
    const [from, to] = [this.from, this.to].map((at) => moment({ at }));
    title.textContent = this.title;
    sign(outcome, this.outcome);
    when.textContent = timed ? `${from} to ${to}, ${duration(this.to - this.from)}` : "";
    this.fill(...this.node.children);
  }

  fill(_, verdict, findings, stages, zoom, timeline, list) {
    const said = this.findings.some(({ message }) => message === this.verdict);
    const further = this.findings.filter((found) => found !== headline);
    verdict.textContent = said || this.verdict === page.verdict ? "" : retimed(this.verdict ?? "");
    findings.append(...further.map(finding));
    stages.append(...connections(this.stages));
    zoom.firstElementChild.addEventListener("click", () => this.look(this.whole));
    this.timeline = timeline;
    timeline.setAttribute("aria-label", `Timeline of ${this.title}`);
    timeline.addEventListener("pointerdown", ({ clientX }) => {
      this.pressed = clientX;
    });
    timeline.addEventListener("click", (click) => this.pick(click));
    this.list = list;
    list.setAttribute("aria-label", `Events of ${this.title}`);
    list.addEventListener("click", ({ target }) => select(target.closest("[role=option]")?.id));
    list.addEventListener("keydown", (key) => this.press(key));
    list.append(...this.events.filter(({ question }) => !question).map(row));
    this.draw();
  }

  /** Draw who was there and when, as what, and what happened. */
  draw() {
    const [head, over] = this.timeline.firstElementChild.children;
    const lasting = (time) => drawn("silence", time, duration(time.to - time.from));
    const axis = lane(`Who ↓ ${timed ? "Time" : "Line"} →`, "");
    this.axis = axis.lastElementChild;
    this.pointer = over.firstElementChild;
    const found = lane("Findings", "");
    const own = lane(this.kind === "stream" ? "The stream" : "The room", "");
    const quiet = lane("Silent for", "", ...silences(this).map(lasting));
    head.append(axis, quiet, lane("Not recorded", "", ...this.gaps.map(lasting)), found, own);
    over.append(...this.gaps.map((gap) => drawn("gap", gap)));
    // Lanes of which nothing is told come last.
    const acting = new Set(this.events.filter(({ folded }) => !folded).map(({ lane }) => lane));
    const order = [...this.lanes.keys()];
    order.sort((one, other) => acting.has(other) - acting.has(one));
    const lanes = order.map((index) => {
      const { name, self, spans = [] } = this.lanes[index];
      const hint = [self && OURSELVES[this.kind], standing(spans.at(-1) ?? {})];
      const stays = spans.flatMap((span, at) => this.stay(span, spans[at - 1], spans[at + 1]));
      return [index, lane(name, hint.filter((it) => it).join(", "), ...stays)];
    });
    over.before(...lanes.map(([, node]) => node));
    /** The rows with marks, by the lane of their events. */
    this.rows = new Map([["findings", found], [undefined, own], ...lanes]);
  }

  /** A stay in the room, the role that is new in it, and the reason of its end. */
  stay(span, former, next) {
    const { role = "", left = "", before } = span;
    const [from, to] = [Math.max(span.from, this.from), span.to ?? this.whole.to];
    const changed = former?.to === span.from && former.role !== role ? standing(span) : "";
    const until = next?.from ?? this.whole.to;
    const isBeside = until - to > ROOM * (this.whole.to - this.from);
    const names = `stay ${role} ${before ? "before" : ""}`;
    const above = drawn("above", { from: former?.to ?? this.from, to });
    for (const words of [changed, isBeside ? "" : left]) {
      above.append(html("span", { title: words }, words));
    }
    const beside = isBeside && drawn("beside", { from: to, to: until }, left);
    return [drawn(names, { from, to }, "", standing(span)), above, beside];
  }

  /** Show a time, in the list too: CSS moves all that is drawn. */
  look({ from, to }) {
    this.view = { from: Math.max(from, this.whole.from), to: Math.min(to, this.whole.to) };
    filter();
  }

  /** Say to CSS which time is seen, and mark round times on the axis. */
  scale() {
    const length = this.view.to - this.view.from;
    this.timeline.style.setProperty("--begin", this.view.from);
    this.timeline.style.setProperty("--length", length);
    const least = length / PIECES;
    const power = timed ? 1 : 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    const size = STEPS.find((time) => time * power >= least) * power;
    const end = size < 1_000 ? 23 : size < MINUTE ? 19 : 16;
    const zone = behind(this.view.from);
    const ticks = [];
    let at = Math.ceil((this.view.from - zone) / size) * size + zone;
    for (; at < this.view.to - least / 2; at += size) {
      const words = timed ? local(at).slice(...(size < DAY ? [11, end] : [0, 10])) : `${at}`;
      ticks.push(drawn("tick", { from: at }, words));
    }
    this.axis.replaceChildren(...ticks);
  }

  /** Show what fits the filters. */
  refresh() {
    this.scale();
    for (const { row, hidden } of this.events) if (row) row.hidden = hidden;
    const byLane = Map.groupBy(this.shown, ({ lane }) => lane).set("findings", this.findings);
    for (const [lane, node] of this.rows) {
      node.hidden = !isOpen(this.lanes[lane]?.folded);
      for (const mark of node.querySelectorAll(".mark")) mark.remove();
      node.lastElementChild.append(...marks(byLane.get(lane) ?? [], this.view));
    }
    this.point();
  }

  /** Show the selected event in the drawing. */
  point() {
    const mine = selected?.part === this;
    this.list.setAttribute("aria-activedescendant", mine ? selected.row.id : "");
    for (const [lane, node] of this.rows) {
      node.classList.toggle("selected", mine && lane === selected.lane);
    }
    this.pointer.hidden = !mine;
    this.pointer.style.setProperty("--from", selected?.at);
  }

  /** Select the event that is nearest to a click; a drag shows its time alone, in the list too. */
  pick({ clientX, target }) {
    const { left, width } = this.axis.getBoundingClientRect();
    const { from, to } = this.view;
    const scale = (to - from) / width;
    const [first, last] = [this.pressed, clientX].map((x) => from + (x - left) * scale);
    if (Math.abs(clientX - this.pressed) > DRAG) {
      this.look({ from: Math.min(first, last), to: Math.max(first, last) });
      return;
    }
    const [lane] = [...this.rows].find(([, node]) => node.contains(target)) ?? [];
    const distance = (event) =>
      Math.abs(event.at - last) + (event.lane === lane ? 0 : ASIDE * scale);
    select(this.shown.toSorted((one, other) => distance(one) - distance(other))[0]?.id);
  }

  press(key) {
    if (key.altKey || key.ctrlKey || key.metaKey) return;
    const last = this.listed.length - 1;
    const here = this.listed.indexOf(selected?.question ?? selected);
    const place = here + (MOVES[key.key] ?? Number.NaN);
    if (!Number.isNaN(place)) select(this.listed[Math.min(Math.max(place, 0), last)]?.id);
    else if (key.key === "Enter") details.focus();
    else return;
    key.preventDefault();
  }
}

// The page: its filters, its parts, and the details of the selected event.

const troubled = ({ kind, findings = [] }) => kind === "room" && findings.length > 0;
/** The finding that the verdict on a log consists of. */
const headline = page.parts
  .flatMap(({ findings = [] }) => findings)
  .find(({ message }) => page.source === "log" && page.verdict?.includes(message));
const parts = page.parts
  .toSorted((one, other) => troubled(other) - troubled(one))
  .map((part) => new Part(part));
function filter() {
  const words = the("words").value.toLowerCase();
  const [kind, who] = [the("kind"), the("who")].map((it) => it.value);
  let all = 0;
  for (const part of parts) {
    const { from, to } = part.view;
    for (const event of part.events) {
      const { at, text, body, where, folded, stanzas = [] } = event;
      event.hidden =
        (kind !== "" && event.kind !== kind) ||
        (who !== "" && part.lanes[event.lane]?.name !== who.slice(1)) ||
        at < from ||
        at > to ||
        (words === ""
          ? !isOpen(folded)
          : !`${text}\n${body}\n${where}\n${stanzas}`.toLowerCase().includes(words));
    }
    for (const { answer, question, ...event } of part.events) {
      const other = events.get(answer) ?? question;
      if (other && !other.hidden) events.get(event.id).hidden = false;
    }
    part.shown = part.events.filter((event) => !event.hidden);
    part.listed = part.shown.filter(({ question }) => !question);
    const well = part.kind === "connection" && part.stages.every(({ ok }) => ok);
    part.node.hidden = well && !part.shown.length && !isOpen("connecting");
    if (words !== "" && part.shown.length) part.node.open = true;
    part.refresh();
    const counted = part.node.querySelector(".count");
    counted.textContent = count(part.shown.length, part.events.length);
    all += part.shown.length;
  }
  the("count").textContent = count(all, events.size);
  const { length } = troubles();
  the("next").textContent = length === 1 ? "1 trouble: show" : `${length} troubles: next`;
  the("next").hidden = !length;
}

/** What went wrong, in the order of the page. */
function troubles() {
  const found = new Set(parts.flatMap((part) => part.findings.map(({ event }) => event)));
  const bad = ({ id, severity, answered }) =>
    ["error", "warning"].includes(severity) || answered === false || found.has(id);
  return parts.flatMap((part) => part.listed.filter(bad));
}

function describe(event) {
  const { id, at, time, kind, severity, direction, where, body, stanzas = [], part } = event;
  const exact = time ?? local(at);
  const zoned = page.zone === "utc";
  const other = events.get(event.answer) ?? event.question;
  const answer = other ? html("a", { href: `#${other.id}` }, told(other)) : "no answer";
  const facts = [
    [event.question ? "Answers" : "Answer", (other || event.answered === false) && answer],
    ["After", timed && other && duration(Math.abs(other.at - at))],
    [zoned ? "Local time" : "Time", timed && (zoned ? `${exact}, ${offset(at)}` : exact)],
    ["UTC", zoned && written(at)],
    ["What", kind + ({ in: ", received", out: ", sent" }[direction] ?? "")],
    ["Who", part.lanes[event.lane]?.name],
    ["Where", placed(where)],
  ];
  const described = copy("details");
  const [head, heading, findings, list, words, xml] = described.children;
  const [word, when, link, button] = head.children;
  sign(word, severity);
  when.textContent = moment(event);
  heading.textContent = told(event);
  for (const [name, value] of facts.filter(([, text]) => text)) {
    list.append(html("dt", {}, name), html("dd", {}, value));
  }
  findings.append(...part.findings.filter((found) => found.event === id).map(finding));
  words.textContent = event.text.endsWith(` ${body}`) ? "" : (body ?? "");
  if (stanzas.length) xml.append(html("h3", {}, "The stanza behind it"));
  xml.append(...stanzas.map((stanza) => html("pre", {}, pretty(stanza))));
  link.href = `#${id}`;
  button.addEventListener("click", back);
  return described;
}

/** Show an event everywhere: in the list, in the drawing, in the details. */
function select(id) {
  const event = events.get(id);
  if (!event) return;
  const before = selected;
  selected = event;
  const { part } = event;
  part.node.open = true;
  if (event.hidden) {
    if (event.folded) the(event.folded).checked = true;
    part.look(part.whole);
  }
  before?.row.setAttribute("aria-selected", "false");
  before?.part.point();
  event.row.setAttribute("aria-selected", "true");
  part.point();
  const { list } = part;
  const [place, box] = [event.row, list].map((node) => node.getBoundingClientRect());
  if (!before || place.top < box.top || place.bottom > box.bottom)
    list.scrollTop += place.top - box.top - 2 * place.height;
  details.replaceChildren(describe(event));
  details.scrollTop = 0;
  details.hidden = false;
}

function back() {
  details.hidden = true;
  selected.part.list.focus();
}

/** Go to the event or the part that an address names. */
function follow(hash) {
  const id = hash.slice(1);
  select(id);
  const part = the(id)?.closest(".part");
  if (part) part.open = true;
  part?.scrollIntoView();
}

/** The event that says most about what went wrong, or else what happened last. */
function worst() {
  const bad = troubles();
  const first = bad.find(({ severity }) => severity === "error") ?? bad[0];
  return headline?.event ?? (first ?? parts.flatMap(({ listed }) => listed.slice(-1))[0])?.id;
}

const words = retimed(page.verdict ?? "");
const link = headline && html("a", { href: `#${headline.event}` }, words);
the("verdict").append(link ?? words);
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
the("made").textContent = [
  `Made by ${page.madeBy} on ${local(page.madeAt).slice(0, 16)}.`,
  page.zone === "utc" ? `Times are those of ${timeZone}, ${offset(ends[0] ?? 0)}.` : "",
  page.zone === "unknown" ? "Times are as the log has them; it does not say in which zone." : "",
  page.leftOut ? `Older events that are left out: ${page.leftOut.toLocaleString("en")}.` : "",
].join(" ");
const kinds = new Set([...events.values()].map(({ kind }) => kind));
const names = new Set(parts.flatMap((part) => part.lanes.map(({ name }) => name)));
the("kind").append(...[...kinds].map((name) => html("option", {}, name)));
the("who").append(...[...names].map((name) => html("option", { value: `=${name}` }, name)));
for (const box of the("folds").querySelectorAll("input")) {
  const many = [...events.values()].filter(({ folded }) => folded === box.id).length;
  const passed = box.id === "connecting" && parts.some(({ stages }) => stages.some(isPassed));
  box.parentElement.hidden = !many && !passed;
  box.parentElement.append(many ? ` (${many})` : "");
}
the("filters").addEventListener("input", filter);
the("words").addEventListener("keydown", ({ key }) => {
  if (key === "Enter") select(parts.find(({ listed }) => listed.length)?.listed[0].id);
});
the("next").addEventListener("click", () => {
  const found = troubles();
  select(found[(found.indexOf(selected?.question ?? selected) + 1) % found.length].id);
});
const main = document.querySelector("main");
main.append(...parts.map((part) => part.node));
main.hidden = false;
filter();
for (const part of parts) part.node.open = part.outcome === "failed";
if (location.hash) follow(location.hash);
if (!selected) select(worst());
addEventListener("hashchange", () => follow(location.hash));
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && !details.hidden) back();
});
document.addEventListener("click", ({ target }) => follow(target.closest("a")?.hash ?? ""));
