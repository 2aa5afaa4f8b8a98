// Starts the page: the stored conversations first, so that a message has a place before it can be written.
import { html, render } from "./views/html.js";
import { App } from "./views/app.js";
import { startCopyButtons, startCopyingFormulas } from "./views/copy.js";
import { startFootnotes } from "./markdown/footnotes.js";
import { createState } from "./state.js";

const state = createState();
await state.conversations.start();
render(html`<${App} state=${state} />`, document.getElementById("app"));
startCopyButtons(document);
startCopyingFormulas(document);
startFootnotes(document);
await state.start();
