// The choice of a model, with the state of each.
import { downloaded } from "../server/downloads.js";
import { NO_MODEL, isToy, loadProgress } from "../server/models.js";
import { html, useChanges } from "./html.js";
import { Icon } from "./icons.js";

export function ModelPicker({ models, downloads, onDownload }) {
  useChanges(models, downloads);
  const { current } = models;
  const name = current ? shortName(current.id) : models.isKnown ? "No model" : "…";
  return html`<div class="picker">
    <button type="button" class="picker-button" popovertarget="models" data-action="models" title=${current?.id}>
      <span class="visually-hidden">Model: </span><${Dot} model=${current} /><span class="name">${name}</span>${current && isToy(current) && html`<span class="badge">toy</span>`}
      <${Icon} name="chevron" />
    </button>
    <div popover="auto" id="models" class="popover" role="dialog" aria-label="Models">
      ${models.isKnown && !models.list.length && html`<p class="faint">${NO_MODEL}</p>`}
      <ul>
        ${models.list.map((model) => html`<${Row} key=${model.id} model=${model} models=${models} />`)}
      </ul>
      ${downloads.isAllowed && html`<${DownloadButton} downloads=${downloads} onDownload=${onDownload} />`}
    </div>
  </div>`;
}

function DownloadButton({ downloads, onDownload }) {
  const { current, isRunning } = downloads;
  const share = isRunning ? downloaded(current) : null;
  const open = () => {
    document.getElementById("models").hidePopover();
    onDownload();
  };
  return html`<button type="button" class="download-button" data-action="download-dialog" onClick=${open}>
    <${Icon} name="down" /><span>${isRunning ? `Downloading ${shortName(current.model)}${share === null ? "" : ` ${Math.round(share * 100)} %`}` : "Download a model"}</span>
  </button>`;
}

function Row({ model, models }) {
  const { id } = model;
  const isCurrent = models.current?.id === id;
  const choose = () => {
    models.choose(id);
    document.getElementById("models").hidePopover();
    if (!model.loaded) models.load(id);
  };
  return html`<li class="model" data-model=${id} data-state=${model.state}>
    <button type="button" class="model-name" aria-current=${isCurrent ? "true" : undefined} onClick=${choose}>
      <${Dot} model=${model} />
      <span><span class="name">${id}</span><span class="faint">${describe(model)}</span></span>
    </button>
    <${Memory} model=${model} models=${models} />
    <${Progress} model=${model} />
    ${models.problems.has(id) && html`<p class="problem" role="alert">${models.problems.get(id)}</p>`}
  </li>`;
}

function Memory({ model, models }) {
  if (models.isBusy(model.id) || model.state === "loading") return null;
  if (model.loaded) {
    return html`<button type="button" class="quiet" onClick=${() => models.unload(model.id)}>Unload</button>`;
  }
  return html`<button type="button" class="quiet" onClick=${() => models.load(model.id)}>Load</button>`;
}

export function Progress({ model }) {
  const progress = loadProgress(model);
  if (!progress) return null;
  const { text, value } = progress;
  const known = value === null ? {} : { value };
  return html`<p class="progress">
    <progress aria-label="${text} ${model.id}" max="1" ...${known} />
    <span>${text}${value !== null && ` ${Math.round(value * 100)} %`}</span>
  </p>`;
}

function Dot({ model }) {
  const state = model?.state ?? "unloaded";
  return html`<span class="dot ${state}" aria-hidden="true" />`;
}

function describe(model) {
  const { state, context_length: length, capabilities = [] } = model;
  const inputs = [capabilities.includes("images") && "images", capabilities.includes("sounds") && "sounds"];
  const context = length && `${shortCount(length)} context`;
  return [isToy(model) && "toy model", state === "loaded" ? "in memory" : state === "loading" ? "loading" : "not loaded", context, ...inputs]
    .filter(Boolean)
    .join(" · ");
}

export function shortCount(count) {
  if (count >= 1024 * 1024) return `${Math.round(count / 1024 / 1024)}M`;
  return count >= 1024 ? `${Math.round(count / 1024)}K` : count;
}

/** Return the last part of a model's id, such as `Qwen3-4B` of `owner/Qwen3-4B`. */
export function shortName(id) {
  return id.split("/").at(-1) || id;
}
