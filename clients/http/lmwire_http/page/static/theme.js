// Runs before the first paint, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("lmwire.theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {} // without storage the theme is that of the system
