// Live values: fetches the open page again and swaps what is marked data-live. Also sends forms that say so on change.
"use strict";

const every = Number(document.body.dataset.every || 0);

async function refresh() {
  if (document.hidden) return;
  let response;
  try {
    response = await fetch(location.href, { headers: { "memd-live": "1" }, credentials: "same-origin" });
  } catch {
    document.body.classList.add("away"); // the server is away: the old values stay, pale, and the next try may find it
    return;
  }
  if (response.status === 401) return void location.reload();
  document.body.classList.toggle("away", !response.ok);
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const now = fresh.getElementById(old.id);
    if (now && !old.contains(document.activeElement) && old.outerHTML !== now.outerHTML) {
      old.replaceWith(document.adoptNode(now));
    }
  }
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
