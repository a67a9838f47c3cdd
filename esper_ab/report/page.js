"use strict";
// Pointing at a mark names its run and shows it in every figure; a click keeps it. Groups can be hidden, figures
// enlarged. Without this script the page says the same: titles of marks are shown by the browser.
(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const make = (tag, properties, parent) => parent.appendChild(Object.assign(document.createElement(tag), properties));
  const marks = all("[data-mark]");
  if (!marks.length) return;
  const box = make("div", { className: "tip", hidden: true }, document.body);
  const groupsOf = (mark) => mark.dataset.mark.split("-")[0].split(".");
  const replicateOf = (mark) => mark.dataset.mark.split("-")[1];
  const meets = (mark, token) => {
    const [groups, replicate] = token.split("-");
    return replicateOf(mark) === replicate && groupsOf(mark).some((group) => groups.split(".").includes(group));
  };
  let kept = "";
  const show = (token) => {
    document.body.classList.toggle("tracing", token !== "");
    for (const mark of marks) mark.classList.toggle("traced", token !== "" && meets(mark, token));
  };
  const keep = (token) => {
    kept = token;
    show(token);
    history.replaceState(null, "", token ? `#run=${token}` : location.pathname + location.search);
  };
  for (const mark of marks) {
    const title = mark.querySelector("title");
    if (title) {
      mark.dataset.tip = title.textContent;
      title.remove();
    }
    for (const path of title ? all("path[style*='fill: none']", mark) : []) {  // a thin line is hard to point at
      const wide = mark.appendChild(path.cloneNode());
      wide.removeAttribute("style");
      wide.classList.add("reach");
    }
  }
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    box.hidden = !mark;
    if (!kept) show(mark ? mark.dataset.mark : "");
    if (mark) box.textContent = mark.dataset.tip;
  });
  document.addEventListener("pointermove", (event) => {
    box.style.left = `${Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8)}px`;
    box.style.top = `${event.clientY + (event.clientY > innerHeight - 80 ? -40 : 16)}px`;
  });
  document.addEventListener("click", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    if (mark) {
      keep(kept === mark.dataset.mark ? "" : mark.dataset.mark);
    } else if (kept && !event.target.closest?.("button, a, summary, input, label")) keep("");
  });
  const asked = /^#run=([0-9.-]+)$/.exec(location.hash);
  if (asked) keep(asked[1]);

  const legend = document.getElementById("legend");
  for (const item of all("li", legend)) {
    const label = make("label", {}, legend.appendChild(document.createElement("li")));
    const tick = make("input", { type: "checkbox", checked: true }, label);
    label.append(...item.childNodes);
    item.replaceWith(label.parentNode);
    tick.addEventListener("change", () => {
      const shown = all("input", legend).map((one) => one.checked);
      for (const mark of marks) mark.style.display = groupsOf(mark).every((group) => shown[group]) ? "" : "none";
    });
  }

  const dialog = make("dialog", { className: "enlarged" }, document.body);
  const enlarge = (figure) => {
    dialog.replaceChildren();
    const close = make("button", { textContent: "Close", type: "button" }, dialog);
    close.addEventListener("click", () => dialog.close());
    make("p", { textContent: `${figure.querySelector("h3").textContent}: turn the wheel to zoom, drag to move.` }, dialog);
    const drawn = all("svg", figure).find((one) => one.getBoundingClientRect().width) || figure.querySelector("svg");
    const svg = dialog.appendChild(drawn.cloneNode(true));
    const view = svg.viewBox.baseVal;
    const whole = [view.x, view.y, view.width, view.height];
    const place = (x, y, width, height) => svg.setAttribute("viewBox", [x, y, width, height].join(" "));
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const factor = Math.min(Math.max(view.width * (event.deltaY > 0 ? 1.2 : 1 / 1.2), whole[2] / 20), whole[2]) / view.width;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      place(at.x - (at.x - view.x) * factor, at.y - (at.y - view.y) * factor, view.width * factor, view.height * factor);
      if (view.width >= whole[2]) place(...whole);
    }, { passive: false });
    svg.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      const scale = view.width / svg.getBoundingClientRect().width;
      place(view.x - event.movementX * scale, view.y - event.movementY * scale, view.width, view.height);
    });
    svg.addEventListener("dblclick", () => place(...whole));
    dialog.append(box);  // a dialog lies above everything else
    dialog.showModal();
  };
  dialog.addEventListener("close", () => document.body.append(box));
  for (const figure of all("figure")) {
    const button = make("button", { textContent: "Enlarge", type: "button", className: "enlarge" }, figure);
    button.addEventListener("click", () => enlarge(figure));
  }
})();
