// Live values: fetches the open page again and swaps what is marked data-live. Also sends forms that say so on change,
// and shows the page of a form marked data-swap while its fields change.
"use strict";

const every = Number(document.body.dataset.every || 0);

let latest = 0;

// Fetches a page and swaps what is marked; whether it did. Of several at once only the latest counts.
async function swap(address, headers) {
  const mine = ++latest;
  let response;
  try {
    response = await fetch(address, { headers, credentials: "same-origin" });
  } catch {
    document.body.classList.add("away"); // the server is away: the old values stay, pale, and the next try may find it
    return false;
  }
  if (response.status === 401 || response.redirected) return void location.reload();
  document.body.classList.toggle("away", !response.ok);
  if (!response.ok) return false;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (mine !== latest) return false;
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const now = fresh.getElementById(old.id);
    if (now && !old.contains(document.activeElement) && old.outerHTML !== now.outerHTML) {
      old.replaceWith(document.adoptNode(now));
    }
  }
  for (const slider of document.querySelectorAll("input[type=range][id]")) {
    const now = fresh.getElementById(slider.id);
    if (now) slider.setAttribute("aria-valuetext", now.getAttribute("aria-valuetext") || "");
  }
  return true;
}

async function refresh() {
  if (!document.hidden) await swap(location.href, { "memd-live": "1" });
}

async function live() {
  await refresh();
  setTimeout(live, every);
}

if (every) setTimeout(live, every);

for (const form of document.querySelectorAll("form[data-at-once]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

for (const box of document.querySelectorAll("input[data-all]")) {
  box.hidden = false;
  box.addEventListener("change", () => {
    for (const one of document.getElementsByName(box.dataset.all)) one.checked = box.checked;
  });
}

for (const form of document.querySelectorAll("form[data-swap]")) {
  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
      if (await swap(address, {})) history.replaceState(null, "", address);
    }, 150);
  });
}
