// What an empty chat shows: how to begin, examples, and what is known of the model.
import { NO_MODEL, isToy } from "../server/models.js";
import { html, useChanges, useLayoutEffect, useState } from "./html.js";
import { shortCount } from "./model_picker.js";
import { IS_TOUCH } from "./shortcuts.js";

const EXAMPLES = [
  "Explain recursion to a child in three sentences.",
  "Write a Python function that finds the longest word of a text.",
  "Solve x² − 5x + 6 = 0 step by step.",
  "Compare tea and coffee in a table.",
];

export function Welcome({ state }) {
  const { answering, models } = state;
  useChanges(models);
  const { current } = models;
  return html`<div class="welcome">
    <img src="page/icon.svg" alt="" width="56" height="56" />
    <h1>What is on your mind?</h1>
    ${models.isKnown && !current && html`<p class="problem">${NO_MODEL}</p>`}
    ${current && html`<${Facts} key=${current.id} model=${current} models=${models} />`}
    ${current &&
    html`<ul class="examples">
      ${EXAMPLES.map((text) => html`<li><button type="button" data-action="example" onClick=${() => answering.ask(text)}>${text}</button></li>`)}
    </ul>`}
    <p class="faint">
      Write a message below. ${!IS_TOUCH && "Enter sends it, Shift + Enter starts a new line. Drop images, sounds, texts or PDFs anywhere. "}
      Answers come from your own server. Conversations stay in this browser.
    </p>
  </div>`;
}

function Facts({ model, models }) {
  const [shown, setShown] = useState(null);
  useLayoutEffect(() => void models.describe(model.id).then(setShown), []);
  return html`<p class="facts" data-facts>${factsOf(model, shown).join(" · ")}</p>
    ${isToy(model) &&
    html`<p class="note" data-toy>
      This is a toy model, which shows how the page works: its answers have no sense. <code>lmwire pull smollm2</code> fetches a
      small real one, and <code>lmwire serve OWNER/NAME</code> serves any of the hub.
    </p>`}`;
}

/** Return what is known of a model: its size, its inputs and what it can do. */
function factsOf({ id, context_length: length }, shown) {
  const { family, parameter_size: size, quantization_level: bits } = shown?.details ?? {};
  const abilities = shown?.capabilities ?? [];
  const takes = [abilities.includes("vision") && "sees images", abilities.includes("audio") && "hears sounds"];
  const can = [abilities.includes("tools") && "calls tools", abilities.includes("thinking") && "reasons"];
  const context = length && `${shortCount(length)} tokens of context`;
  return [id, size && `${size} parameters`, bits, family, context, ...takes, ...can].filter(Boolean);
}
