// What a reader gains with a script: keys, and pages that follow what is new. Everything works without it.
"use strict";

const steps = () => [...document.querySelectorAll("[data-row]")].concat([...document.querySelectorAll("[data-step]")]);

function step(by) {
  const all = steps();
  const here = all.indexOf(document.activeElement);
  const next = all[here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by];
  if (next) {
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: next.hasAttribute("data-row") ? "nearest" : "start" });
  }
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => document.activeElement.hasAttribute("data-row") && (step(1), true),
  ArrowUp: () => document.activeElement.hasAttribute("data-row") && (step(-1), true),
  n: () => follow("[rel=next]"),
  p: () => follow("[rel=prev]"),
  "/": () => document.querySelector("[data-search]")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
  if (keys[event.key]() !== false) event.preventDefault();
});

function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
  target.focus({ preventScroll: true });
}
addEventListener("hashchange", openTarget);
openTarget();

document.querySelector("[data-filter]")?.addEventListener("submit", (event) => {
  for (const field of event.target.elements) if (!field.value) field.disabled = true;
});

async function look() {
  const main = document.querySelector("main[data-live]");
  if (!main || document.hidden) return;
  try {
    const reply = await fetch(location.href, { cache: "no-cache" });
    if (!reply.ok) return;
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html").querySelector("main");
    const parts = main.querySelector("ol.turns") && fresh.querySelector("ol.turns") ? ["ol.turns", ".count"] : [""];
    for (const part of parts) {
      const here = part ? main.querySelector(part) : main;
      const there = part ? fresh.querySelector(part) : fresh;
      if (here.innerHTML === there.innerHTML) continue;
      const focused = document.activeElement.getAttribute("href");
      const open = new Set([...here.querySelectorAll("details[open]")].map((one) => one.id));
      here.innerHTML = there.innerHTML;
      for (const one of here.querySelectorAll("details")) one.open = open.has(one.id);
      if (focused) here.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    if (!fresh.hasAttribute("data-live")) main.removeAttribute("data-live");
  } catch {
    // the server has stopped: the page stays as it is
  }
}

const live = document.querySelector("main[data-live]");
if (live) setInterval(look, 1000 * Number(live.dataset.live));
