"use strict";
// Filters rows; on a served board rows are read again every few seconds, with ticks and filter kept.
(() => {
  const filter = document.getElementById("filter"), count = document.getElementById("count");
  const body = () => document.getElementById("rows");
  if (!body()) return;
  const apply = () => {
    const words = filter.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...body().rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || (filter.state.value && row.dataset.state !== filter.state.value);
    }
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} experiments`;
  };
  filter.hidden = false;
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  apply();
  if (!location.protocol.startsWith("http")) return;
  setInterval(async () => {
    try {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const fresh = page.getElementById("rows");
      if (!fresh) return;
      const ticked = new Set([...body().querySelectorAll("input:checked")].map((one) => one.value));
      for (const one of fresh.querySelectorAll("input")) one.checked = ticked.has(one.value);
      body().replaceWith(document.adoptNode(fresh));
      apply();
    } catch {
      count.textContent = "the server has gone";
    }
  }, 5000);
})();
