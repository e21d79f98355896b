// The menu, the switch of colors, the versions, and the search. Everything else works
// without scripts.
"use strict";

const { root, page, version } = document.body.dataset;

// The switch of colors.
const themeButton = document.getElementById("theme");

function nameTheme() {
  const theme = document.documentElement.dataset.theme;
  themeButton.textContent = { auto: "◐", light: "☀", dark: "☾" }[theme];
  themeButton.title = `Colors: ${theme}`;
  themeButton.ariaLabel = themeButton.title;
}

themeButton.addEventListener("click", () => {
  const next = themes[(themes.indexOf(chosenTheme()) + 1) % themes.length];
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Storage is disabled: the choice is that of this page.
  }
  applyTheme(next);
  nameTheme();
});
nameTheme();

// The menu on narrow screens.
const menuButton = document.getElementById("menu");
const navigation = document.getElementById("navigation");

function showMenu(shown) {
  navigation.classList.toggle("shown", shown);
  menuButton.ariaExpanded = String(shown);
}

menuButton.addEventListener("click", () => showMenu(menuButton.ariaExpanded !== "true"));
document.getElementById("content").addEventListener("click", () => showMenu(false));
const current = navigation.querySelector("[aria-current]");
if (current && current.offsetTop > navigation.clientHeight) {
  navigation.scrollTop = current.offsetTop - navigation.clientHeight / 2;
}

// The versions: the menu leads to the same page, or to the start page of a version that
// does not have it.
const menu = document.getElementById("versions");
const versions = window.siteVersions || [];
if (versions.length) {
  menu.replaceChildren(...versions.map((one) => new Option(one.name, one.name, false, one.name === version)));
}
menu.addEventListener("change", () => {
  const chosen = versions.find((one) => one.name === menu.value);
  location.href = `${root}../${chosen.name}/${chosen.pages.includes(page) ? page : "index.html"}`;
});

// The search: sections that have all words, the best first.
const input = document.querySelector("#search input");
const results = document.querySelector("#search ol");
const limit = 12;
let loading;

// loadIndex loads the texts on first use. A script also works from a disk, where a page
// cannot fetch files.
function loadIndex() {
  loading ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}search-index.js`;
    script.onload = () => resolve(window.searchIndex);
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

function wordsOf(query) {
  return query.toLowerCase().split(/[^\p{L}\p{N}_.-]+/u).filter(Boolean);
}

// rank returns how well a section fits, or 0 if it lacks a word.
function rank(section, words) {
  const [page, heading, text] = [section.page, section.heading, section.text].map((part) => part.toLowerCase());
  let sum = page === heading ? 1 : 0;
  for (const word of words) {
    const inPage = page.includes(word) ? 5 : 0;
    const inHeading = heading.includes(word) ? 10 : 0;
    const inText = Math.min(text.split(word).length - 1, 5);
    if (!inPage && !inHeading && !inText) {
      return 0;
    }
    sum += inPage + inHeading + inText + (heading === word ? 10 : 0);
  }
  return sum;
}

// excerpt returns the text around the first word, with all words marked.
function excerpt(text, words) {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, lower.length) - 40);
  const shown = (start ? "…" : "") + text.slice(start, start + 140);
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.\-]/g, "\\$&")).join("|")})`, "giu");
  return shown.split(pattern).map((part, i) => (i % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part));
}

function resultOf({ address, page, heading, text }, words) {
  const link = Object.assign(document.createElement("a"), { href: root + address });
  const title = Object.assign(document.createElement("strong"), { textContent: page === heading ? page : `${page}: ${heading}` });
  const shown = document.createElement("span");
  shown.append(...excerpt(text, words));
  link.append(title, shown);
  const entry = document.createElement("li");
  entry.append(link);
  return entry;
}

async function search() {
  const words = wordsOf(input.value);
  if (!words.length) {
    results.hidden = true;
    return;
  }
  const sections = await loadIndex();
  const ranked = sections.map((section) => [rank(section, words), section]).filter(([points]) => points);
  ranked.sort((a, b) => b[0] - a[0]);
  results.replaceChildren(...ranked.slice(0, limit).map(([, section]) => resultOf(section, words)));
  if (!ranked.length) {
    results.append(Object.assign(document.createElement("li"), { className: "none", textContent: "No section has these words." }));
  }
  results.hidden = false;
}

input.addEventListener("input", search);
input.addEventListener("focus", search);

// The keys of the search: / begins it, arrows move, Escape ends it.
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  }
});
document.getElementById("search").addEventListener("keydown", (event) => {
  const stops = [input, ...results.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    const next = stops.indexOf(document.activeElement) + step;
    stops[Math.min(Math.max(next, 0), stops.length - 1)].focus();
  } else if (event.key === "Enter" && document.activeElement === input && stops[1]) {
    stops[1].click();
  } else if (event.key === "Escape") {
    results.hidden = true;
    input.blur();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("#search") || event.target.closest("#search a")) {
    results.hidden = true;
  }
});
