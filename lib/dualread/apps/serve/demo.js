(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const names = ["image", "donor"];
  const megabytes = Number(at("form").dataset.megabytes);
  let isAsking = false;

  // Show what was chosen. A browser shows no TIFF, which the program can read all the same.
  function preview(name) {
    const [file] = at(name).files;
    const picture = at(`preview-${name}`);
    URL.revokeObjectURL(picture.src);
    picture.hidden = !file;
    if (file) picture.src = URL.createObjectURL(file);
    else picture.removeAttribute("src");
    at("remove").hidden = !at("donor").files.length;
  }

  for (const name of names) {
    const area = at(`drop-${name}`);
    at(name).addEventListener("change", () => preview(name));
    at(`preview-${name}`).addEventListener("error", (event) => { event.target.hidden = true; });
    area.addEventListener("dragover", () => area.classList.add("over"));
    area.addEventListener("dragleave", () => area.classList.remove("over"));
    area.addEventListener("drop", (event) => {
      area.classList.remove("over");
      const [file] = event.dataTransfer.files;
      if (file) put(name, file);
    });
  }

  function put(name, file) {
    const one = new DataTransfer();
    one.items.add(file);
    at(name).files = one.files;
    preview(name);
  }

  // The image of an example as a file; its address ends with its bytes in base64.
  function drawn(picture, name) {
    const bytes = Uint8Array.from(atob(picture.src.slice(picture.src.indexOf(",") + 1)), (char) => char.charCodeAt(0));
    return new File([bytes], `${name}.png`, { type: "image/png" });
  }

  for (const example of document.querySelectorAll(".example")) {
    example.addEventListener("click", () => {
      if (isAsking) return;
      const pictures = example.querySelectorAll("img");
      names.forEach((name, i) => put(name, drawn(pictures[i], name)));
      at("question").value = example.dataset.question;
      at("form").requestSubmit();
    });
  }
  // A file that is dropped beside the areas would replace the page.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());

  at("remove").addEventListener("click", () => {
    at("donor").value = "";
    preview("donor");
    at("donor").focus();
  });

  // The result's heading is seen below, so that the status is for screen readers alone then.
  function say(status, problem, isSeen = true) {
    at("status").className = isSeen ? "" : "spoken";
    at("status").textContent = status;
    at("problem").textContent = problem;
  }

  const read = (file) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result); // "data:...;base64,..."
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });

  // Ask about the image in `name`; return the choice of the reply, in which `dualread` says how far to trust it.
  async function reply(name) {
    const [file] = at(name).files;
    if (file.size > megabytes * 1e6) throw new Error(`${file.name} is too large. At most ${megabytes} MB are read.`);
    if (!file.size) throw new Error(`${file.name} is empty. Choose another file.`);
    const url = await read(file).catch((error) => {
      throw new Error(`${file.name} cannot be read (${error.message}). Choose it again.`);
    });
    const content = [{ type: "image_url", image_url: { url } }, { type: "text", text: at("question").value }];
    const headers = { "Content-Type": "application/json" };
    if (at("key").value) headers.Authorization = `Bearer ${at("key").value}`;
    let answer, said;
    try {
      const body = JSON.stringify({ messages: [{ role: "user", content }] });
      answer = await fetch("v1/chat/completions", { method: "POST", headers, body });
      said = await answer.json();
    } catch {
      throw new Error("The server does not answer. See whether it still runs in its terminal.");
    }
    if (answer.status === 401) at("key-line").hidden = false;
    if (!answer.ok) throw new Error(`${name === "donor" ? "The second image: " : ""}${said.error.message}`);
    return said.choices[0];
  }

  // Whatever the model said becomes a text of an element, never HTML.
  function element(tag, content = "", properties = {}) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...[content].flat());
    return made;
  }

  const signed = (value) => (value < 0 ? "" : "+") + value.toFixed(4);

  function row(label, cells, properties = {}) {
    return element("tr", [element("th", label, { scope: "row" }), ...cells], properties);
  }

  // A row of a table: a confidence on each image, and the drop.
  function confidences(label, values, properties) {
    const cells = values.map(({ confidence, imputed, reason }) => {
      if (confidence === null) return element("td", reason ? `none: ${reason}` : "none");
      const meter = element("meter", "", { min: 0, max: 1, value: confidence, ariaHidden: "true" });
      return element("td", [meter, ` ${confidence.toFixed(4)}${imputed ? " (the method has no value here)" : ""}`]);
    });
    if (values.length > 1) cells.push(element("td", drop(values), { className: "number" }));
    return row(label, cells, properties);
  }

  function drop(values) {
    const [first, second] = values.map(({ confidence }) => confidence);
    return values.length > 1 && first !== null && second !== null ? signed(first - second) : "";
  }

  function table(header, rows) {
    return element("table", [
      element("thead", element("tr", header.map((text) => element("th", text, { scope: "col" })))),
      element("tbody", rows),
    ]);
  }

  // A report has a confidence for each of its claims, and none as a whole.
  function reports(all) {
    const decisions = { true: "Keep", false: "Do not keep", null: "Undecided" };
    const tables = all.map(({ claims }, i) => [
      element("h3", i ? "On the second image" : "On the image"),
      table(["Claim", "Confidence", "Decision"], claims.map((claim) => {
        const judged = confidences(claim.text, [claim]);
        judged.append(element("td", decisions[claim.keep]));
        return judged;
      })),
    ]);
    const n = all.map(({ claims }) => (claims.length === 1 ? "1 claim" : `${claims.length} claims`));
    return [element("h2", `Report: ${n.join(", on the second image ")}`), ...tables.flat()];
  }

  // An answer has a confidence, its parts, and what other methods say.
  function answers(all) {
    const method = at("form").dataset.method;
    const [{ answer, confidence, threshold, abstain, methods }] = all;
    const shown = (text) => (text === null ? "none" : text);
    const fallen = drop(all);
    const sure = confidence === null ? "no confidence" : `confidence ${confidence.toFixed(4)}`;
    const title = `Answer: ${shown(answer)}, ${sure}${fallen && `, drop on the second image ${fallen}`}`;
    const decision = abstain === null ? "Undecided" : abstain ? "Do not keep" : "Keep";
    const unknown = confidence === null ? "there is no confidence" : "no threshold travels with this reader";
    const why = threshold?.decision ?? unknown;
    const hasParts = all.some(({ psr, per }) => psr !== null && per !== null);
    const part = (name) => all.map((judged) => ({ confidence: judged[name] }));
    const of = (name) => all.map((judged) => judged.methods[name] ?? { confidence: null });
    const header = ["", "Image", ...(all.length > 1 ? ["Second image", "Drop"] : [])];
    const said = all.map((judged) => element("td", shown(judged.answer)));
    const rows = [row("Answer", all.length > 1 ? [...said, element("td")] : said)];
    if (hasParts) rows.push(confidences("PSR, before the answer", part("psr")));
    if (hasParts) rows.push(confidences("PER, after the answer", part("per")));
    for (const name of Object.keys(methods).filter((other) => other !== method)) rows.push(confidences(name, of(name)));
    const both = hasParts ? `${method}, both together` : method;
    rows.push(confidences(both, part("confidence"), { className: "chosen" }));
    return [element("h2", title), element("p", [element("strong", decision), `: ${why}`]), table(header, rows)];
  }

  // Show one choice, or those of the image and of the second one.
  function show(choices) {
    const all = choices.map((choice) => choice.dualread);
    const [{ claims, notes }] = all;
    const remarks = [...notes.map((note) => `Note: ${note}`), ...all.slice(1).flatMap((judged) => (
      judged.notes.filter((note) => !notes.includes(note)).map((note) => `Note on the second image: ${note}`)))];
    const said = choices.flatMap(({ message }, i) => [
      element("p", `About the ${i ? "second image" : "image"}`, { className: "quiet" }),
      element("pre", message.content ?? message.refusal),
    ]);
    at("result").replaceChildren(
      ...(claims === null ? answers(all) : reports(all)),
      ...remarks.map((remark) => element("p", remark, { className: "caution" })),
      element("details", [element("summary", "All that the actor said"), ...said]),
    );
  }

  // Return what went wrong in a sentence, or nothing.
  async function ask() {
    if (!at("image").files.length) return "There is no image. Drop one on the page, or choose a file.";
    try {
      show(await Promise.all(names.filter((name) => at(name).files.length).map(reply)));
    } catch (error) {
      return error.message;
    }
    return "";
  }

  at("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isAsking) return;
    isAsking = true;
    at("result").replaceChildren();
    say("Asking. A large model takes a while.", "");
    const problem = await ask();
    if (problem) say("", problem);
    else say(at("result").querySelector("h2").textContent, "", false);
    (problem ? at("problem") : at("result")).scrollIntoView({ block: "nearest" });
    isAsking = false;
  });
})();
