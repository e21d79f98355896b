// Runs before the page is shown: applies the colors that the reader has chosen. Without
// a choice, the style sheets for dark and light follow the system.
"use strict";

const themes = ["auto", "light", "dark"];

function chosenTheme() {
  try {
    return localStorage.getItem("theme") || "auto";
  } catch {
    return "auto"; // storage is disabled
  }
}

function applyTheme(theme) {
  const dark = { auto: "(prefers-color-scheme: dark)", light: "not all", dark: "all" };
  const light = { auto: "not (prefers-color-scheme: dark)", light: "all", dark: "not all" };
  document.getElementById("dark").media = dark[theme];
  document.getElementById("light").media = light[theme];
  document.documentElement.dataset.theme = theme;
}

applyTheme(chosenTheme());
