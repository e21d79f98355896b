// The page is made by the server. This script loads its live parts again when something changes, and copies commands.
"use strict";

const status = document.getElementById("status");
let loading = false;
let again = false;

// load replaces the live parts that differ. It keeps the focus on the same link or button.
async function load() {
  if (loading || document.hidden) {
    again = true;
    return;
  }
  loading = true;
  again = false;
  try {
    const answer = await fetch(location.href);
    if (answer.status === 401 || answer.status === 403) {
      say("The page does not let you in anymore. Open it again.");
      stream.close();
      return;
    }
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) {
      document.getElementById("main").replaceChildren(...fresh.getElementById("main").childNodes);
      return;
    }
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(part.id);
      if (now) {
        replace(part, now);
      }
    }
  } catch {
    say("The page cannot be loaded.");
  } finally {
    loading = false;
  }
  if (again) {
    load();
  }
}

function replace(part, now) {
  addButtons(now);
  if (part.innerHTML === now.innerHTML) {
    return;
  }
  const focused = part.contains(document.activeElement) ? keyOf(document.activeElement) : "";
  part.replaceChildren(...now.childNodes);
  if (focused) {
    [...part.querySelectorAll("a, button")].find((one) => keyOf(one) === focused)?.focus({ preventScroll: true });
  }
}

// keyOf names a link or a button across versions of the page.
function keyOf(element) {
  return element.tagName + (element.getAttribute("href") ?? element.dataset.copy ?? "");
}

function say(text) {
  if (status && status.textContent !== text) {
    status.textContent = text;
  }
}

// addButtons adds a button to each command.
function addButtons(within) {
  for (const command of within.querySelectorAll(".commands code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.dataset.copy = command.textContent;
    button.setAttribute("aria-label", "Copy " + command.textContent);
    command.after(" ", button);
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) {
    return;
  }
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied.");
  } catch {
    say("The browser does not let the page copy.");
  }
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && again) {
    load();
  }
});

addButtons(document);
const changes = document.body.dataset.changes;
const stream = changes ? new EventSource(changes) : { close() {} };
if (changes) {
  let lost = false;
  stream.addEventListener("change", load);
  stream.addEventListener("open", () => {
    document.documentElement.dataset.live = "";
    say(lost ? "Connected again." : "");
    if (lost) {
      load();
    }
    lost = false;
  });
  stream.addEventListener("error", () => {
    lost = true;
    say("The connection is lost. What you see is not current.");
  });
}
