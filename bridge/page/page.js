// Draws a timeline, whose JSON form docs/page.md describes. What strangers wrote only ever becomes
// a text node, or the value of an attribute that nothing runs.

/** The shortest silence that is named, in milliseconds: shorter ones are the pace of a chat. */
const SILENCE = 60_000;
/** The longest pause between two stages of a connection, in milliseconds. */
const PAUSE = 1_000;
/** Pixels of the drawing: a row above the lanes, a lane, and a lane where there is a crowd. */
const [ROW, LANE, CROWDED_LANE] = [22, 36, 22];
/** So many lanes are a crowd. */
const CROWD = 30;
/** So many rows of a list are laid out together, when they are near; and pixels of a row. */
const [CHUNK, LINE] = [100, 21];
/** Pixels of a drawing: on paper, between the margins of A4; and the least, as of a closed part. */
const [PAPER, NARROWEST] = [700, 240];
/** Characters of a text that the drawing looks at: more than a screen is wide. */
const DRAWN = 400;
/** Pixels after which a click is a drag. */
const DRAG = 8;
const SVG = "http://www.w3.org/2000/svg";
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
/** By how many events a key moves the selection. */
const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const MOVES = { ...ARROWS, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
const OURSELVES = { room: "the bridge", stream: "this client", scenario: "this view" };
/** What is folded away, and the words of its switch. */
const FOLDS = {
  bridge: "the bridge's visits",
  history: "old history",
  connecting: "connecting that went well",
};
const SHAPES = {
  unanswered: "m-3-3a3 3 0 1 1 3 4v2m0 2.5v2",
  error: "m-4.5-4.5l9 9m0-9l-9 9",
  warning: "m0-6l6 10h-12z",
  change: "m0-5l5 5-5 5-5-5z",
  said: "m0-6v12",
  in: "v7",
  out: "v-7",
};

const the = (id) => document.getElementById(id);
const copy = (id) => the(id).content.firstElementChild.cloneNode(true);
const page = JSON.parse(the("data").textContent);
const timed = page.zone !== "none";
const details = document.querySelector("aside");
const pen = document.createElement("canvas").getContext("2d");
pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;

const events = new Map();
/** The names of the folds that are open. */
const unfolded = new Set();
let selected;
let origin; // Where the reader was before the details.

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child));
  return node;
}

const html = (name, attributes, ...children) =>
  build(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  build(document.createElementNS(SVG, name), attributes, children);

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
  const lines = [];
  let depth = 0;
  let leaf = false;
  for (const piece of xml.match(/<[^>]*>?|[^<]+/g) ?? []) {
    const tag = piece.startsWith("<");
    const closing = piece.startsWith("</");
    if (closing) depth = Math.max(depth - 1, 0);
    if (lines.length && (!tag || (closing && leaf))) lines.push(lines.pop() + piece);
    else lines.push("  ".repeat(depth) + piece);
    if (!tag) continue;
    leaf = !closing && !piece.endsWith("/>");
    if (leaf) depth += 1;
  }
  return lines.join("\n");
}

const width = (words) => pen.measureText(words.slice(0, DRAWN)).width;

/** A text in the drawing, cut to the pixels there are for it; left out if little would be left. */
function label(x, y, words, room, name = "") {
  // Marks that are piled up on a letter would lie over the lanes above.
  let text = words.replace(/(\p{M}{2})\p{M}+/gu, "$1");
  if (width(text) > room || text.length > DRAWN) {
    const kept = Math.floor((Math.min(text.length, DRAWN) * room) / width(text)) - 2;
    text = kept < 4 ? "" : `${text.slice(0, kept)}…`;
  }
  return svg("text", { x, y, class: name }, text, svg("title", {}, words));
}

/** The role of an occupant, and what the affiliation adds to it. */
function standing({ role, affiliation }) {
  const words = [role === "visitor" ? "visitor, no voice" : role, affiliation];
  return words.filter((word) => word && word !== "none").join(", ");
}

function shape({ severity, kind, direction, answered }) {
  if (answered === false) return "unanswered";
  if (severity === "error" || severity === "warning") return severity;
  if (kind === "stanza") return direction ?? "said";
  if (kind === "message") return "said";
  return kind === "join" || kind === "leave" ? undefined : "change";
}

const count = (shown, all) =>
  `${shown === all ? "" : `${shown.toLocaleString("en")} of `}${all.toLocaleString("en")} events`;

/** A word with its sign, so that colour alone says nothing. */
function sign(node, word = "") {
  node.className = word;
  node.textContent = word && `${SIGNS[word]} ${word}`;
}

// What stands beside a drawing.

function row(event, silence) {
  const item = copy("event");
  const [silent, time, kind, text, took, answer] = item.children;
  const reply = events.get(event.answer);
  item.id = event.id;
  item.hidden = event.hidden;
  silent.textContent = silence ? `silent for ${duration(silence.to - silence.from)}` : "";
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

/** The stages of each connection as bars; the next begins after a failure, or after a pause. */
function connections(stages, folds) {
  const lists = [];
  stages.forEach(({ name, from, to, ok, detail }, index) => {
    const before = stages[index - 1];
    if (!before?.ok || from - before.to > PAUSE) {
      lists.push(html("ol", { class: "stages" }, html("li", {}, moment({ at: from }))));
    }
    const words = `${ok ? "" : "✕ "}${name} ${duration(to - from)} `;
    const hint = detail && html("span", { class: "hint" }, detail);
    const bar = html("li", { class: ok ? "bar" : "bar error" }, words, hint);
    bar.style.flexGrow = Math.max(to - from, 1);
    lists.at(-1).append(bar);
  });
  return folds ? lists.filter((list) => list.querySelector(".error")) : lists;
}

// A part: its heading, its drawing and the list of its events.

class Part {
  constructor(part) {
    Object.assign(this, { lanes: [], events: [], stages: [], gaps: [], findings: [] }, part);
    for (const event of this.events) {
      events.set(event.id, Object.assign(event, { part: this, hidden: false }));
    }
    for (const event of this.events) {
      if (event.answer) events.get(event.answer).question = event;
    }
    /** The events that are drawn, and the events with a row: an answer has none of its own. */
    this.shown = this.listed = this.events;
    this.silences = silences(this);
    this.findings.sort((first, second) => first.at - second.at);
    this.arrange();
    this.roomy = this.order.length <= CROWD;
    this.height = this.roomy ? LANE : CROWDED_LANE;
    /** Pixels from the top of a lane to the middle of its bars. */
    this.middle = this.roomy ? 25 : 11;
    this.view = this.whole = { from: this.from, to: Math.max(this.to, this.from + 1) };
    this.node = copy("part");
    this.node.id = this.id;
    this.node.addEventListener("toggle", () => {
      if (this.node.open) this.fill();
      this.draw();
    });
    const [title, outcome, when] = this.node.querySelector("summary").children;
    const [from, to] = [this.from, this.to].map((at) => moment({ at }));
    title.textContent = this.title;
    sign(outcome, this.outcome);
    when.textContent = timed ? `${from} to ${to}, ${duration(this.to - this.from)}` : "";
  }

  /** Whether a stage is one of connecting: the steps of a scenario begin with who does it. */
  passes({ name }) {
    return this.kind !== "scenario" || !name.includes(": ");
  }

  /** Choose the lanes that are drawn, by their indices: lanes of which nothing is told come last. */
  arrange() {
    const acting = new Set(this.shown.map((event) => event.lane));
    const open = ({ folded }) => !folded || unfolded.has(folded);
    this.order = [...this.lanes.keys()]
      .filter((index) => open(this.lanes[index]))
      .sort((one, other) => acting.has(other) - acting.has(one));
  }

  /** Open the part, and make what it does not need while it is closed. */
  fill() {
    this.node.open = true;
    if (this.list) return;
    const [, verdict, findings, stages, zoom, timeline, list] = this.node.children;
    const said = this.findings.some(({ message }) => message === this.verdict);
    const further = this.findings.filter((found) => found !== headline);
    verdict.textContent = said || this.verdict === page.verdict ? "" : retimed(this.verdict ?? "");
    findings.append(...further.map(finding));
    this.stagesNode = stages;
    zoom.querySelectorAll("button").forEach((button, index) => {
      button.addEventListener("click", () => {
        if (index === 2) this.span = undefined;
        this.zoom([1 / 3, 3, Infinity][index]);
        if (index === 2) filter();
      });
    });
    this.timeline = timeline;
    timeline.setAttribute("aria-label", `Timeline of ${this.title}`);
    timeline.setAttribute("aria-valuemax", this.events.length);
    timeline.addEventListener("pointerdown", ({ clientX }) => {
      this.pressed = clientX;
    });
    timeline.addEventListener("click", (click) => this.pick(click));
    this.list = list;
    list.setAttribute("aria-label", `Events of ${this.title}`);
    list.addEventListener("click", ({ target }) => select(target.closest("[role=option]")?.id));
    for (const node of [timeline, list]) node.addEventListener("keydown", (key) => this.press(key));
    let place = 0;
    const asked = this.events.filter(({ question }) => !question);
    const rows = asked.map((event) => {
      let silence;
      for (; this.silences[place]?.to <= event.at; place += 1) silence = this.silences[place];
      return row(event, silence);
    });
    const chunk = { class: "chunk", role: "presentation" };
    while (rows.length) list.append(html("div", chunk, ...rows.splice(0, CHUNK)));
    this.measure();
    this.draw();
  }

  /** Say how high the chunks are: the browser does not look into those that are far. */
  measure() {
    for (const chunk of this.list?.children ?? []) {
      const shown = chunk.querySelectorAll(":not([hidden])[role=option]").length;
      chunk.hidden = !shown;
      chunk.style.containIntrinsicHeight = `${shown * LINE}px`;
    }
  }

  x(at) {
    const { from, to } = this.view;
    return this.gutter + ((this.width - this.gutter - 12) * (at - from)) / (to - from);
  }

  /** The left and the right end of a time in the drawing; nothing if it is out of view. */
  edges({ from, to = this.whole.to }) {
    if (from > this.view.to || to < this.view.from) return undefined;
    const left = Math.max(this.x(from), this.gutter);
    return [left, Math.max(Math.min(this.x(to), this.width - 4), left + 2)];
  }

  draw() {
    if (!this.list) return;
    const { clientWidth } = this.timeline;
    this.width = matchMedia("print").matches ? PAPER : Math.max(clientWidth, NARROWEST);
    this.gutter = this.width < 600 ? 96 : 150;
    const [head, body] = this.timeline.children;
    const folds = !unfolded.has("connecting");
    const steps = this.stages.filter((stage) => !folds || !stage.ok || !this.passes(stage));
    const shown = this.kind === "scenario" ? steps : this.stages;
    this.stagesNode.replaceChildren(...connections(shown, folds && shown !== steps));
    this.arrange();
    head.replaceChildren(this.above());
    body.replaceChildren(this.inside());
    this.point();
  }

  picture(height, drawn) {
    const shapes = [svg("line", { y2: height }), svg("circle", { r: 11 })];
    const pointer = svg("g", { class: "pointer" }, ...shapes);
    const gaps = this.gaps.map((gap) => this.bar(gap, 0, height, "gap"));
    const attributes = { width: this.width, height, "aria-hidden": "true" };
    return svg("svg", attributes, ...gaps, ...drawn, pointer);
  }

  bar(time, y, height, name, words = "") {
    const [x, right] = this.edges(time) ?? [];
    const place = { class: name, x, y, width: right - x, height };
    return right && svg("rect", place, svg("title", {}, words));
  }

  /** The marks of events at a height: one path for each shape, one mark for each pixel. */
  marks(events, y) {
    const paths = {};
    for (const event of events) {
      const name = shape(event);
      if (!name || event.at < this.view.from || event.at > this.view.to) continue;
      paths[name] ??= new Set();
      paths[name].add(`M${Math.round(this.x(event.at))} ${y}${SHAPES[name]}`);
    }
    return Object.entries(paths).map(([name, d]) =>
      svg("path", { class: `mark ${name}`, d: [...d].join("") }),
    );
  }

  /** What is above the lanes: the axis, silences and gaps, findings, the room itself. */
  above() {
    const drawn = this.axis();
    let y = ROW;
    const times = [
      ...this.silences.map((time) => this.bracket(time, y + 15, "silent for")),
      ...this.gaps.map((time) => this.bracket(time, y + 15, "nothing recorded for")),
    ].flat();
    if (times.length) y += ROW;
    const row = (name, events) => {
      if (!events.length) return;
      drawn.push(label(0, y + 15, name, this.gutter - 8), ...this.marks(events, y + 11));
      y += ROW;
    };
    row("Findings", this.findings);
    this.ownRow = y + 11;
    const own = this.shown.filter(({ lane, kind }) => lane === undefined && kind !== "gap");
    row(this.kind === "stream" ? "The stream" : "The room", own);
    return this.picture(y + 4, [...times, ...drawn]);
  }

  axis() {
    const { from, to } = this.view;
    const least = ((to - from) * 90) / (this.width - this.gutter);
    const power = timed ? 1 : 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    const size = STEPS.find((time) => time * power >= least) * power;
    const end = size < 1_000 ? 23 : size < MINUTE ? 19 : 16;
    const zone = behind(from);
    const name = `Who ↓ ${timed ? "Time" : "Line"} →`;
    const drawn = [label(0, 12, name, DRAWN, "hint")];
    for (let at = Math.ceil((from - zone) / size) * size + zone; at <= to; at += size) {
      const x = Math.round(this.x(at)) + 0.5;
      const text = timed ? local(at).slice(...(size < DAY ? [11, end] : [0, 10])) : `${at}`;
      drawn.push(svg("line", { class: "grid", x1: x, x2: x, y1: 16, y2: 22 }));
      const clear = x - width(text) / 2 > width(name) + 4;
      if (clear && x < this.width - 24) drawn.push(label(x, 12, text, DRAWN, "tick"));
    }
    return drawn;
  }

  /** A time with its length: |—— silent for 4 min 12 s ——|; nothing where there is no room. */
  bracket(time, y, words) {
    const [left, right] = this.edges(time) ?? [0, 0];
    const length = duration(time.to - time.from);
    const sentence = `${words} ${length}`;
    const text = width(sentence) < right - left - 20 ? sentence : length;
    const middle = (left + right) / 2;
    const half = width(text) / 2 + 5;
    if (half > (right - left) / 2) return [];
    const d = `M${left} ${y - 9}v10m0-5H${middle - half}M${middle + half} ${y - 4}H${right}m0-5v10`;
    return [svg("path", { class: "bracket", d }), label(middle, y, text, DRAWN, "tick")];
  }

  /** The lanes: who was there and when, as what, and what happened. */
  inside() {
    const byLane = Map.groupBy(this.shown, ({ lane }) => lane);
    const drawn = this.order.flatMap((index, place) => {
      const { name, self, spans = [] } = this.lanes[index];
      const top = place * this.height;
      const y = top + this.height - 0.5;
      const who = OURSELVES[this.kind];
      const hint = [self && who, standing(spans.at(-1) ?? {})].filter((it) => it).join(", ");
      return [
        svg("line", { class: "grid", x2: this.width, y1: y, y2: y }),
        label(0, top + 15, self && !this.roomy ? `${name} (${who})` : name, this.gutter - 8),
        this.roomy && label(0, top + 29, hint, this.gutter - 8, "hint"),
        ...spans.flatMap((span, at) => this.stay(span, spans[at - 1], spans[at + 1], top)),
        ...this.marks(byLane.get(index) ?? [], top + this.middle),
      ];
    });
    return this.picture(this.order.length * this.height, drawn);
  }

  /** A stay in the room, with the reason of its end, and the role that is new in it. */
  stay(span, before, next, top) {
    const [left, right] = this.edges(span) ?? [];
    if (!right) return [];
    const y = top + this.middle;
    const drawn = [this.bar(span, y - 4, 8, `stay ${span.role}`, standing(span))];
    if (span.before) drawn.push(svg("path", { class: "end", d: `M${left + 5} ${y - 6}l-6 6l6 6` }));
    if (span.left) {
      drawn.push(svg("line", { class: "end", x1: right, x2: right, y1: y - 7, y2: y + 7 }));
      const room = Math.min(next ? this.x(next.from) : Infinity, this.width) - right - 14;
      const beside = room > 100 || width(span.left) < room;
      if (beside) drawn.push(label(right + 14, y + 4, span.left, room));
      else if (this.roomy)
        drawn.push(label(right, top + 15, span.left, right - this.gutter, "last"));
    }
    const changed = before?.to === span.from && before.role !== span.role;
    if (changed && this.roomy) drawn.push(label(left, top + 15, standing(span), this.width - left));
    return drawn;
  }

  /** Show the selected event in the drawing. */
  point() {
    const mine = selected?.part === this;
    const words = mine ? `${moment(selected)} ${told(selected)}` : "nothing is selected";
    this.timeline.setAttribute("aria-valuenow", mine ? this.events.indexOf(selected) + 1 : 0);
    this.timeline.setAttribute("aria-valuetext", words);
    this.list.setAttribute("aria-activedescendant", mine ? selected.row.id : "");
    const place = mine ? this.order.indexOf(selected.lane) : -1;
    const heights = place < 0 ? [this.ownRow, -99] : [-99, place * this.height + this.middle];
    this.timeline.querySelectorAll(".pointer").forEach((pointer, index) => {
      pointer.setAttribute("transform", `translate(${mine ? this.x(selected.at) : -99})`);
      pointer.lastChild.setAttribute("cy", heights[index]);
    });
  }

  zoom(factor) {
    const { from, to } = this.view;
    const middle = selected?.part === this ? selected.at : (from + to) / 2;
    const half = Math.max(((to - from) * factor) / 2, 1);
    const [first, last] = [middle - half, middle + half];
    this.view = { from: Math.max(first, this.whole.from), to: Math.min(last, this.whole.to) };
    this.draw();
  }

  /** Select the event that is nearest to a click; a drag shows its time alone, in the list too. */
  pick({ clientX, clientY }) {
    const { left, top } = this.timeline.lastElementChild.getBoundingClientRect();
    if (Math.abs(clientX - this.pressed) > DRAG) {
      const { from, to } = this.view;
      const scale = (to - from) / (this.width - this.gutter - 12);
      const at = (x) => from + (x - left - this.gutter) * scale;
      const ends = [at(this.pressed), at(clientX)].sort((one, other) => one - other);
      this.view = this.span = { from: Math.max(ends[0], from), to: Math.min(ends[1], to) };
      filter();
      return;
    }
    const lane = this.order[Math.floor((clientY - top) / this.height)];
    const distance = (event) =>
      Math.abs(this.x(event.at) - clientX + left) + (event.lane === lane ? 0 : 40);
    select(this.shown.toSorted((one, other) => distance(one) - distance(other))[0]?.id);
  }

  press(key) {
    if (key.altKey || key.ctrlKey || key.metaKey) return;
    const last = this.listed.length - 1;
    const here = this.listed.indexOf(selected?.question ?? selected);
    const place = here + (MOVES[key.key] ?? Number.NaN);
    if (!Number.isNaN(place)) select(this.listed[Math.min(Math.max(place, 0), last)]?.id);
    else if (key.key === "Enter") {
      origin = key.currentTarget;
      details.focus();
    } else return;
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
  const [kind, who, severity] = [the("kind"), the("who"), the("severity")].map((it) => it.value);
  let all = 0;
  for (const part of parts) {
    const { from, to } = part.span ?? part.whole;
    for (const event of part.events) {
      const { at, text, body, where, folded, stanzas = [] } = event;
      event.hidden =
        (kind !== "" && event.kind !== kind) ||
        (severity !== "" && event.severity !== severity) ||
        (who !== "" && part.lanes[event.lane]?.name !== who.slice(1)) ||
        (part.span && (at < from || at > to)) ||
        (words === ""
          ? folded !== undefined && !unfolded.has(folded)
          : !`${text}\n${body}\n${where}\n${stanzas}`.toLowerCase().includes(words));
    }
    for (const { answer, question, ...event } of part.events) {
      const other = events.get(answer) ?? question;
      if (other && !other.hidden) events.get(event.id).hidden = false;
    }
    for (const event of part.events) if (event.row) event.row.hidden = event.hidden;
    part.shown = part.events.filter((event) => !event.hidden);
    part.listed = part.shown.filter(({ question }) => !question);
    const well = part.kind === "connection" && part.stages.every(({ ok }) => ok);
    part.node.hidden = well && !part.shown.length && !unfolded.has("connecting");
    if (words !== "" && part.shown.length) part.fill();
    part.measure();
    const counted = part.node.querySelector(".count");
    counted.textContent = count(part.shown.length, part.events.length);
    all += part.shown.length;
  }
  the("count").textContent = count(all, events.size);
  const { length } = troubles();
  the("next").textContent = length === 1 ? "1 trouble: show" : `${length} troubles: next`;
  the("next").hidden = !length;
  redraw();
}

/** What went wrong, in the order of the page. */
function troubles() {
  const found = new Set(parts.flatMap((part) => part.findings.map(({ event }) => event)));
  const bad = ({ id, severity, answered }) =>
    ["error", "warning"].includes(severity) || answered === false || found.has(id);
  return parts.flatMap((part) => part.listed.filter(bad));
}

function redraw() {
  for (const part of parts) part.draw();
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
  if (event.hidden && event.folded) unfold(event.folded, true);
  part.fill();
  before?.row.setAttribute("aria-selected", "false");
  before?.part.point();
  event.row.setAttribute("aria-selected", "true");
  const { list } = part;
  const [place, box] = [event.row, list].map((node) => node.getBoundingClientRect());
  if (!before || place.top < box.top || place.bottom > box.bottom)
    list.scrollTop += place.top - box.top - 2 * LINE;
  if (event.at < part.view.from || event.at > part.view.to) part.zoom(1);
  details.replaceChildren(describe(event));
  details.scrollTop = 0;
  if (details.classList.contains("open")) part.point();
  else {
    details.classList.add("open");
    redraw();
  }
}

function back() {
  details.classList.remove("open");
  redraw();
  (origin ?? selected.part.list).focus();
}

/** Show or fold away what has been folded under a name. */
function unfold(name, open) {
  if (open) unfolded.add(name);
  else unfolded.delete(name);
  the(name).checked = open;
  filter();
}

/** Go to the event or the part that an address names. */
function follow(hash) {
  const id = hash.slice(1);
  select(id);
  parts.find((part) => part.id === id)?.fill();
  the(id)?.closest(".part")?.scrollIntoView();
}

/** The event that says most about what went wrong, or else what happened last. */
function worst() {
  const every = [...parts.flatMap((part) => part.findings), ...events.values()];
  const errors = every.filter(({ severity, id, event }) => severity === "error" && (id ?? event));
  const open = every.find(({ answered, event }) => answered === false || event);
  const first =
    headline ?? errors[0] ?? open ?? every.find(({ severity, id }) => severity === "warning" && id);
  const listed = parts.flatMap((part) => part.listed.slice(-1));
  return first?.event ?? first?.id ?? listed[0]?.id;
}

const words = retimed(page.verdict ?? "");
const link = headline && html("a", { href: `#${headline.event}` }, words);
the("verdict").append(link ?? words);
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
the("made").textContent = [
  `Made by ${page.madeBy} on ${local(page.madeAt).slice(0, 16)}.`,
  page.zone === "utc" ? `Times are those of ${timeZone}, ${offset(ends[0] ?? 0)}.` : "",
  page.zone === "unknown" ? "Times are as the log has them; it does not say in which zone." : "",
  page.leftOut ? `${page.leftOut.toLocaleString("en")} older events are left out.` : "",
].join(" ");
const kinds = new Set([...events.values()].map(({ kind }) => kind));
const names = new Set(parts.flatMap((part) => part.lanes.map(({ name }) => name)));
the("kind").append(...[...kinds].map((name) => html("option", {}, name)));
the("who").append(...[...names].map((name) => html("option", { value: `=${name}` }, name)));
for (const [name, words] of Object.entries(FOLDS)) {
  const many = [...events.values()].filter(({ folded }) => folded === name).length;
  const box = html("input", { type: "checkbox", id: name });
  box.addEventListener("change", () => unfold(name, box.checked));
  const steps =
    name === "connecting" &&
    parts.some((part) => part.stages.some((it) => it.ok && part.passes(it)));
  if (many || steps)
    the("folds").append(html("label", {}, box, ` ${words}${many ? ` (${many})` : ""}`));
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
for (const part of parts) if (part.outcome === "failed") part.fill();
if (location.hash) follow(location.hash);
if (!selected) select(worst());
addEventListener("hashchange", () => follow(location.hash));
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && details.classList.contains("open")) back();
});
document.addEventListener("click", ({ target }) => follow(target.closest("a")?.hash ?? ""));
matchMedia("print").addEventListener("change", redraw);
addEventListener("resize", redraw);
