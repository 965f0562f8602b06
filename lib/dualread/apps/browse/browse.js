"use strict";
// Everything is drawn from the JSON in #data; `questions.collect` documents its form. All texts are set as text, never
// as HTML, because questions and completions come from data sets and models.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const controls = ["run", "method", "dataset", "verdict", "low", "high", "donor", "order", "search"].map(at);
  const defaults = {};
  const CONFIDENT = 0.9;
  let shown = []; // indices of the questions that pass the filters, in order
  let current = null; // the index of the question on the right

  const label = (kind, name) => (data.labels[kind] || {})[name] || name;
  const run = () => data.runs[Number(at("run").value)];
  const method = () => run().methods[at("method").value];
  const number = (value) => (value === null || value === undefined ? "—" : value.toFixed(3));

  /** Make an element with attributes and children; strings become text. */
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function options(select, entries) {
    const before = select.value;
    select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
    if (entries.some(([value]) => String(value) === before)) select.value = before;
  }

  /** The chosen method's answer and confidence for a question: what the list, the filters and the order need. */
  function reading(index) {
    const chosen = method();
    const actor = run().actors[chosen.actor];
    const [answer, donor] = [actor.original[index], actor.donor[index]];
    const [confidence, onDonor] = [chosen.original[index], chosen.donor[index]];
    const known = confidence !== null && onDonor !== null;
    return { answer, donor, confidence, onDonor, drop: known ? confidence - onDonor : null };
  }

  const verdicts = {
    right: ({ answer }) => answer && answer[1],
    wrong: ({ answer }) => answer && answer[1] === false,
    invalid: ({ answer }) => answer && answer[0] === null,
  };
  const donors = {
    paired: ({ donor }) => donor !== null,
    decisive: ({ answer, donor }) => answer && donor && answer[1] && !donor[1],
    falls: ({ drop }) => drop !== null && drop > 0,
    stays: ({ drop }) => drop !== null && drop <= 0,
  };
  const orders = { high: ["confidence", -1], low: ["confidence", 1], drop: ["drop", -1], rise: ["drop", 1] };

  function passes(index) {
    const question = data.questions[index];
    const read = reading(index);
    const [low, high] = [at("low"), at("high")].map((input) => input.valueAsNumber);
    const isNarrowed = low > 0 || high < 1;
    if (at("dataset").value && question.dataset !== at("dataset").value) return false;
    if (at("verdict").value && !verdicts[at("verdict").value](read)) return false;
    if (at("donor").value && !donors[at("donor").value](read)) return false;
    if (isNarrowed && (read.confidence === null || read.confidence < low || read.confidence > high)) return false;
    const texts = [question.question, question.id, ...question.gold, (read.answer && read.answer[0]) || ""];
    const wanted = at("search").value.trim().toLowerCase();
    return !wanted || texts.some((text) => text.toLowerCase().includes(wanted));
  }

  function filter() {
    options(at("method"), Object.entries(run().methods).map(([name, { actor }]) => [
      name, `${label("methods", name)} (${label("actors", actor)})`,
    ]));
    shown = data.questions.map((_, index) => index).filter(passes);
    const order = orders[at("order").value];
    if (order) {
      const [name, sign] = order;
      const values = new Map(shown.map((index) => [index, reading(index)[name]]));
      const undefinedLast = (value) => (value === null ? Infinity : sign * value);
      shown.sort((a, b) => {
        const [first, second] = [a, b].map((index) => undefinedLast(values.get(index)));
        return first === second ? a - b : first - second;
      });
    }
    drawList();
    select(shown.includes(current) ? current : shown.length ? shown[0] : null);
  }

  function drawList() {
    at("list").replaceChildren(...shown.map((index) => {
      const question = data.questions[index];
      const { answer, confidence } = reading(index);
      const row = make("div", { role: "option", id: `row-${index}`, "aria-selected": "false" },
        mark(answer), make("span", { class: "number" }, number(confidence)),
        make("span", {}, question.question, make("small", {}, `${label("datasets", question.dataset)}: ${
          answer ? answer[0] ?? "no valid answer" : "not asked"}`)));
      row.addEventListener("click", () => select(index));
      return row;
    }));
    at("count").textContent = `${shown.length} of ${data.questions.length} questions (${data.split}): ${counted()}`;
  }

  /** How many of the shown answers, or of their claims, are right. */
  function counted() {
    const readings = shown.map(reading);
    const [right, wrong] = [verdicts.right, verdicts.wrong].map((verdict) => readings.filter(verdict).length);
    const reports = readings.filter(({ answer }) => answer && answer[3]);
    if (!reports.length) return `${right} right, ${wrong} wrong`;
    const labels = reports.flatMap(({ answer }) => answer[3].map((claim) => claim[2]));
    const [supported, unsupported, none] = [true, false, null].map((kind) => labels.filter((of) => of === kind).length);
    return `${labels.length} claims: ${supported} supported, ${unsupported} unsupported, ${none} without a label`;
  }

  function mark(answer) {
    if (!answer) return make("span", { class: "quiet", title: "not asked" }, "–");
    if (answer[3]) return make("span", { class: "quiet", title: "a report" }, "¶");
    const [kind, sign] = answer[1] ? ["right", "✓"] : ["wrong", "✗"];
    return make("span", { class: kind, role: "img", "aria-label": kind, title: kind }, sign);
  }

  function select(index) {
    const before = at("list").querySelector('[aria-selected="true"]');
    if (before) before.setAttribute("aria-selected", "false");
    current = index;
    if (index === null) {
      at("list").removeAttribute("aria-activedescendant");
      at("question").replaceChildren(make("p", {}, "No question passes these filters."));
    } else {
      const row = at(`row-${index}`);
      row.setAttribute("aria-selected", "true");
      row.scrollIntoView({ block: "nearest" });
      at("list").setAttribute("aria-activedescendant", row.id);
      at("question").replaceChildren(...drawQuestion(index));
      at("question").scrollTop = 0;
    }
    remember();
  }

  function drawQuestion(index) {
    const question = data.questions[index];
    const plural = question.images.length > 1 ? "s" : "";
    const picture = (images, name, gold) => make("figure", {},
      ...images.map((image) => make("img", { src: data.images[image], alt: `${name} of question ${question.id}` })),
      make("figcaption", {}, make("strong", {}, name), `, reference answer: ${gold.join(" | ")}`));
    return [
      make("h2", {}, question.question),
      make("p", { class: "quiet" }, `${label("datasets", question.dataset)}, ${question.type}, ${question.id}`),
      question.options.length ? make("p", {}, `Options: ${question.options.join(" | ")}`) : null,
      make("div", { class: "images" }, picture(question.images, `Image${plural}`, question.gold),
        question.donor ? picture(question.donor.images, `Donor image${plural}`, question.donor.gold) : null),
      question.donor ? null : make("p", { class: "quiet" }, "This question has no same-question donor."),
      make("h3", {}, "Answers"), drawAnswers(index),
      ...drawClaims(index),
      make("h3", {}, "Confidence in the answer"), drawConfidences(index),
      make("h3", {}, "Completions"), ...drawCompletions(index),
    ].filter((part) => part !== null);
  }

  function table(head, rows) {
    const titles = head.map(([text, kind]) => make("th", { scope: "col", class: kind }, text));
    const drawn = make("table", {}, make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...rows));
    return make("div", { class: "table" }, drawn);
  }

  function drawAnswers(index) {
    const told = (answer) => (answer ? [mark(answer), ` ${answer[0] ?? "no valid answer"}`] : ["—"]);
    const rows = Object.entries(run().actors).map(([name, actor]) => make("tr", {},
      make("th", { scope: "row" }, label("actors", name)),
      make("td", {}, ...told(actor.original[index])), make("td", {}, ...told(actor.donor[index]))));
    return table([["Actor", ""], ["On the image", ""], ["On the donor image", ""]], rows);
  }

  function drawConfidences(index) {
    const cell = (of, side) => {
      const value = of[side][index];
      const isImputed = of.imputed[side].includes(index);
      const bar = value === null ? null : make("meter", { min: 0, max: 1, value, "aria-hidden": "true" });
      return make("td", { class: "number" }, bar, ` ${number(value)}${isImputed ? " (none stated)" : ""}`);
    };
    const rows = Object.entries(run().methods).map(([name, of]) => {
      const [here, there] = [of.original[index], of.donor[index]];
      return make("tr", name === at("method").value ? { class: "chosen" } : {},
        make("th", { scope: "row" }, label("methods", name)), make("td", {}, label("actors", of.actor)),
        cell(of, "original"), cell(of, "donor"),
        make("td", { class: "number" }, number(here === null || there === null ? null : here - there)));
    });
    return table([["Method", ""], ["Actor", ""], ["On the image", "number"], ["On the donor image", "number"],
      ["Drop", "number"]], rows);
  }

  /** The report of the chosen method's actor; the more confidence in a claim, the greener it is. */
  function drawClaims(index) {
    const chosen = method();
    const sides = [["original", "On the image"], ["donor", "The same report, forced on the donor image"]];
    const reports = sides.flatMap(([side, title]) => {
      const answer = run().actors[chosen.actor][side][index];
      if (!answer || !answer[3] || answer[2] === null) return [];
      const characters = [...answer[2]]; // places count code points
      const text = (start, end) => characters.slice(start, end).join("");
      const parts = answer[3].flatMap(([start, end, supported, id], k) => {
        const value = chosen.claims?.[side]?.[id] ?? null;
        const said = supported === null ? "no label" : supported ? "supported ✓" : "unsupported ✗";
        const claim = make("mark", { title: said }, text(start, end), make("sup", {}, ` ${number(value)} ${said.slice(-1)}`));
        if (value !== null) claim.style.setProperty("--confidence", `${Math.round(value * 50)}%`);
        if (supported === null) claim.lastChild.textContent = " no label";
        return [text(k ? answer[3][k - 1][1] : 0, start), claim];
      });
      const rest = text(answer[3].length ? answer[3][answer[3].length - 1][1] : 0, characters.length);
      return [make("p", {}, `${title}:`), make("p", { class: "report" }, ...parts, rest)];
    });
    return reports.length ? [make("h3", {}, "Confidence in each claim"), ...reports] : [];
  }

  function drawCompletions(index) {
    const text = (answer) => (answer && answer[2] !== null ? answer[2] : "—");
    return Object.entries(run().actors).map(([name, actor]) => make("details", {},
      make("summary", {}, label("actors", name)),
      make("div", {}, "On the image:", make("pre", {}, text(actor.original[index]))),
      make("div", {}, "On the donor image:", make("pre", {}, text(actor.donor[index])))));
  }

  // --- The address of the page names the question and the filters, so that a view can be sent to somebody else.

  function remember() {
    const state = new URLSearchParams();
    for (const control of controls) if (control.value !== defaults[control.id]) state.set(control.id, control.value);
    if (current !== null) state.set("question", data.questions[current].id);
    history.replaceState(null, "", `#${state}`);
  }

  function recall() {
    const state = new URLSearchParams(location.hash.slice(1));
    if (state.has("run")) at("run").value = state.get("run");
    if (!run()) at("run").value = "0";
    filter();
    for (const control of controls) if (state.has(control.id)) control.value = state.get(control.id);
    if (!method()) at("method").value = defaults.method;
    current = data.questions.findIndex((question) => question.id === state.get("question"));
    filter();
  }

  // --- Keys and controls

  function step(by) {
    const place = shown.indexOf(current) + by;
    if (shown.length) select(shown[Math.max(0, Math.min(shown.length - 1, place))]);
  }

  function showAll() {
    for (const name of ["dataset", "verdict", "donor", "order", "search", "low", "high"]) at(name).value = defaults[name];
    filter();
  }

  function showOverconfident() {
    showAll();
    Object.assign(at("verdict"), { value: "wrong" });
    Object.assign(at("low"), { value: String(CONFIDENT) });
    Object.assign(at("order"), { value: "high" });
    filter();
  }

  const keys = {
    ArrowDown: () => step(1), j: () => step(1), ArrowUp: () => step(-1), k: () => step(-1),
    Home: () => step(-shown.length), End: () => step(shown.length),
    "/": () => at("search").focus(), w: showOverconfident, a: showAll,
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return at("list").focus();
    const isTyping = event.target.closest && event.target.closest("input, select, button, summary");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return undefined;
    event.preventDefault();
    return keys[event.key]();
  });
  at("filters").addEventListener("input", filter);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  at("filters").addEventListener("reset", (event) => { event.preventDefault(); showAll(); });
  at("overconfident").addEventListener("click", showOverconfident);
  window.addEventListener("hashchange", recall);

  options(at("run"), data.runs.map(({ backbone, seed }, index) => [
    index, `${label("backbones", backbone)}${seed ? `, seed ${seed}` : ""}`,
  ]));
  options(at("dataset"), [["", "all"], ...[...new Set(data.questions.map(({ dataset }) => dataset))].map(
    (name) => [name, label("datasets", name)])]);
  // Tables list baselines first and the method that a study is about last.
  options(at("method"), Object.keys(data.runs[0].methods).reverse().map((name) => [name, name]));
  for (const control of controls) defaults[control.id] = control.value;
  recall();
  at("filters").hidden = false; // without scripts, it would do nothing
})();
