// What needs a script: charts, copy buttons, the drag state of drop zones, the tray of ticked runs. Everything else is HTML and htmx.
(() => {
  "use strict";

  const script = document.currentScript;
  const root = document.documentElement;

  /* ---- charts: each figure[data-chart] holds its plotly figure as JSON, with what differs in the dark theme ------------------ */

  const NARROW = 430; // px of container: below it figures are lower and words named "roomy" are left out
  const NARROW_HEIGHT = 260;
  const CONFIG = {
    displaylogo: false,
    displayModeBar: "hover",
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
    plotlyServerURL: "",
    responsive: true,
    showSendToCloud: false,
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  const drawn = new Map(); // plot element -> the width it was drawn at
  let library = null;
  let printing = false;

  function loaded(element) {
    return new Promise((resolve, reject) => {
      element.addEventListener("load", resolve, { once: true });
      element.addEventListener("error", reject, { once: true });
      document.head.append(element);
    });
  }

  // plotly.js is fetched by the first page that has a chart. It wants its rules linked under this id, or it would write them itself.
  function plotly() {
    library ??= (async () => {
      const style = document.createElement("link");
      style.id = "plotly.js-style-global";
      style.className = "no-inline-styles";
      style.rel = "stylesheet";
      style.href = script.dataset.plotlyCss;
      await loaded(style);
      const code = document.createElement("script");
      code.src = script.dataset.plotly;
      await loaded(code);
      return window.Plotly;
    })();
    return library;
  }

  function isDark() {
    if (printing) return false;
    return root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  }

  function themed(text, width) {
    const { data, layout, dark: differences } = JSON.parse(text);
    const figure = { data, layout };
    if (isDark()) {
      for (const [path, value] of differences) {
        const last = path.pop();
        path.reduce((part, key) => part[key], figure)[last] = value;
      }
    }
    layout.autosize = true;
    layout.uirevision = "kept"; // a zoom survives a change of theme or width
    if (coarse.matches) layout.dragmode = false; // a finger scrolls the page
    if (width < NARROW) {
      layout.height = Math.min(layout.height, NARROW_HEIGHT);
      layout.annotations = layout.annotations.filter((word) => word.name !== "roomy");
    }
    return figure;
  }

  async function draw(plot) {
    const source = plot.parentElement?.querySelector('script[type="application/json"]');
    const width = plot.clientWidth;
    if (!source || !width) return;
    drawn.set(plot, width);
    try {
      const Plotly = await plotly();
      const figure = themed(source.textContent, width);
      await Plotly.react(plot, figure.data, figure.layout, CONFIG);
      const opens = plot.closest("[data-opens]")?.dataset.opens;
      // A point that stands for a run opens it; its number is all that the figure holds.
      if (opens && plot.removeAllListeners) plot.removeAllListeners("plotly_click");
      if (opens) plot.on("plotly_click", ({ points }) => Number.isInteger(points[0].customdata) && location.assign(`${opens}${points[0].customdata}`));
    } catch {
      plot.textContent = "The chart could not be drawn. The table beneath has the same numbers.";
    }
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.clientWidth !== drawn.get(target)) draw(target);
  });

  function drawAll() {
    for (const plot of drawn.keys()) {
      if (plot.isConnected) continue;
      sizes.unobserve(plot);
      window.Plotly?.purge(plot);
      drawn.delete(plot);
    }
    for (const plot of document.querySelectorAll("figure[data-chart] > .plot")) if (!drawn.has(plot)) sizes.observe(plot);
  }

  function redraw() {
    for (const plot of drawn.keys()) if (plot.isConnected) draw(plot);
  }

  new MutationObserver(redraw).observe(root, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", redraw);
  for (const [name, value] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(name, () => {
      printing = value;
      redraw();
    });
  }

  /* ---- copy buttons: the words of the button's own data-copy, else the `pre` beside it ---------------------------------------- */

  async function copy(text, beside) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // No clipboard outside a secure context: select the words, so that one key copies them.
      if (beside) getSelection().selectAllChildren(beside);
      return false;
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const beside = button.parentElement.querySelector("pre");
    const done = await copy(button.dataset.copy || beside?.textContent || "", beside);
    const words = [...button.childNodes].findLast((node) => node.textContent.trim());
    if (!words || button.dataset.said) return;
    button.dataset.said = words.textContent;
    words.textContent = done ? "Copied" : "Selected";
    setTimeout(() => {
      words.textContent = button.dataset.said;
      delete button.dataset.said;
    }, 2000);
  });

  /* ---- drop zones: the area is a file input already; here only what dragging looks like, and the names of what was chosen ------ */

  function mark(zone) {
    for (const other of document.querySelectorAll(".drop")) other.classList.toggle("over", other === zone);
  }

  document.addEventListener("dragover", (event) => {
    if (!document.querySelector(".drop")) return;
    const zone = event.target.closest?.(".drop");
    mark(zone);
    if (zone || event.target.closest?.("input, textarea")) return;
    event.preventDefault(); // a file let go beside the zone must not replace the page
    event.dataTransfer.dropEffect = "none";
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) mark(null);
  });
  document.addEventListener("drop", () => mark(null));
  document.addEventListener("change", (event) => {
    const zone = event.target.matches('input[type="file"]') && event.target.closest(".drop");
    const names = zone && zone.querySelector("[data-drop-names]");
    if (!names) return;
    names.dataset.said ??= names.textContent;
    const files = [...event.target.files];
    const list = files.slice(0, 5).map((file) => file.name).join(", ") + (files.length > 5 ? ", …" : "");
    names.textContent = files.length ? `${files.length} ${files.length === 1 ? "file" : "files"}: ${list}` : names.dataset.said;
  });

  /* ---- the tray: how many runs are ticked ------------------------------------------------------------------------------------- */

  function count(form) {
    const boxes = [...form.querySelectorAll('input[type="checkbox"][name="run"]')];
    const ticked = boxes.filter((box) => box.checked);
    for (const box of boxes) box.closest("tr")?.classList.toggle("sel", box.checked);
    const tray = form.querySelector(".tray");
    if (!tray) return;
    tray.hidden = !ticked.length;
    const words = tray.querySelector("[data-tray-count]");
    const names = tray.querySelector("[data-tray-names]");
    const button = tray.querySelector('button[type="submit"], button:not([type])');
    if (words) words.textContent = ticked.length === 1 ? "1 run ticked" : `${ticked.length} runs ticked`;
    if (names) {
      const links = ticked.map((box) => box.closest("tr")?.querySelector("th a")?.textContent.trim() ?? `#${box.value}`);
      names.textContent = ticked.length === 1 ? `${links[0]}; tick another to compare` : links.join(", ");
    }
    if (button) button.disabled = ticked.length < 2;
  }

  document.addEventListener("change", (event) => {
    const form = event.target.name === "run" && event.target.closest("form[data-tray]");
    if (form) count(form);
  });
  document.addEventListener("reset", (event) => {
    if (event.target.matches("form[data-tray]")) setTimeout(() => count(event.target));
  });

  /* ---- sliders of powers of two: the factor beside the name, while it moves ---------------------------------------------------- */

  document.addEventListener("input", (event) => {
    const words = event.target.matches('input[type="range"]') && event.target.closest("label")?.querySelector("output[data-power]");
    if (!words) return;
    const power = Number(event.target.value);
    const factor = Number((2 ** Math.abs(power)).toPrecision(3));
    words.textContent = power ? `${power > 0 ? "×" : "÷"}${factor}` : "as it is";
  });

  /* ---- at load, after every swap, and when a page comes back from the cache ---------------------------------------------------- */

  function refresh() {
    for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
    for (const form of document.querySelectorAll("form[data-tray]")) count(form);
    drawAll();
  }

  document.addEventListener("htmx:after:swap", refresh);
  document.addEventListener("htmx:after:settle", refresh);
  addEventListener("pageshow", refresh);
  refresh();
})();
