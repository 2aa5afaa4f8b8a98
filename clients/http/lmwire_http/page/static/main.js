// Starts the page: the state first, then what shows it.
import { html, render } from "./views/html.js";
import { App } from "./views/app.js";
import { startCopyButtons } from "./views/copy.js";
import { createState } from "./state.js";

const state = createState();
render(html`<${App} state=${state} />`, document.getElementById("app"));
startCopyButtons(document);
await state.start();
