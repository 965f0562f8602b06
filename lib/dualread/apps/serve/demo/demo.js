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
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)); // behind "data:...;base64,"
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });

  async function ask() {
    const sent = { question: at("question").value };
    for (const name of names) {
      const [file] = at(name).files;
      if (file && file.size > megabytes * 1e6) return `${file.name} is too large. At most ${megabytes} MB are read.`;
      if (file && !file.size) return `${file.name} is empty. Choose another file.`;
      try {
        if (file) sent[name] = await read(file);
      } catch (error) {
        return `${file.name} cannot be read (${error.message}). Choose it again.`;
      }
    }
    let answer, text;
    try {
      answer = await fetch("ask", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent),
      });
      text = await answer.text();
    } catch {
      return "The program does not answer. See whether it still runs in its terminal.";
    }
    if (answer.status >= 500) return `The program failed (${answer.status}). Its terminal says why.`;
    if (!answer.ok) return text;
    at("result").innerHTML = text; // the program has escaped every text in it
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
