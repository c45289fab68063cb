// Theme: the system's choice until the reader picks one; the pick is kept on this machine only. Runs before the page is drawn.
(() => {
  const root = document.documentElement;
  const known = (name) => name === "light" || name === "dark";

  // A browser may refuse storage: then the pick lasts for this page.
  function stored(name) {
    try {
      if (name) localStorage.setItem("theme", name);
      return localStorage.getItem("theme");
    } catch {
      return null;
    }
  }

  const saved = stored();
  if (known(saved)) root.dataset.theme = saved;
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-toggle]")) button.hidden = false;
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const dark = known(root.dataset.theme) ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    stored(root.dataset.theme);
  });
})();
