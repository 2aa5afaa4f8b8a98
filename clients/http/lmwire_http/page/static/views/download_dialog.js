// The download of a model: its size first, then the progress, and a way to cancel it.
import { asSentence } from "../conversation/advice.js";
import { downloaded, endOf, formatBytes } from "../server/downloads.js";
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { Dialog } from "./dialog.js";

export function DownloadDialog({ downloads, onClose }) {
  useChanges(downloads);
  const { isRunning } = downloads;
  const body = useRef(null);
  const wasRunning = useRef(isRunning);
  const [hasRun, setHasRun] = useState(isRunning); // whether this dialog has seen a download
  useLayoutEffect(() => {
    if (wasRunning.current !== isRunning) body.current.querySelector(isRunning ? "button" : "input").focus(); // what had the focus is gone
    wasRunning.current = isRunning;
    if (isRunning) setHasRun(true);
  }, [isRunning]);
  return html`<${Dialog} title="Download a model" onClose=${onClose}>
    <div class="download" ref=${body}>${isRunning ? html`<${Running} downloads=${downloads} />` : html`<${Choice} downloads=${downloads} />`}</div>
    <p class="visually-hidden" role="status">${isRunning ? `Downloading ${downloads.current.model}` : hasRun && endOf(downloads.current)}</p>
  <//>`;
}

function Choice({ downloads }) {
  const [name, setName] = useState("");
  const [size, setSize] = useState(null);
  const [problem, setProblem] = useState("");
  const [question, setQuestion] = useState(null);
  useLayoutEffect(() => () => question?.abort(), [question]); // the answer to an earlier question does not count
  const change = ({ target }) => {
    setName(target.value);
    setSize(null);
    setQuestion(null);
  };
  const ask = async (event) => {
    event.preventDefault();
    const asked = new AbortController();
    setQuestion(asked);
    setProblem("");
    setSize(null);
    try {
      setSize(await downloads.size(name.trim(), asked.signal));
    } catch (error) {
      if (error.name !== "AbortError") setProblem(error.message);
    }
    setQuestion((latest) => (latest === asked ? null : latest));
  };
  const start = () => downloads.start(size.model, size.missing_bytes).catch((error) => setProblem(error.message));
  return html`<form onSubmit=${ask}>
      <p class="faint">The server fetches it from the model hub and keeps it on its disk. You see the size first.</p>
      <label>Name on the hub, or an alias<input type="text" autofocus required spellcheck=${false} autocapitalize="off" autocomplete="off" placeholder="owner/name" data-input="hub-model" aria-describedby=${problem ? "download-problem" : undefined} value=${name} onInput=${change} /></label>
      <div class="dialog-actions"><button type="submit" class=${size ? "" : "primary"} disabled=${question !== null}>Show its size</button></div>
    </form>
    <p role="status" data-download="size">
      ${question && html`<span class="faint"><span class="spinner" /> The hub is asked…</span>`}
      ${size && describe(size)}
    </p>
    ${problem && html`<p class="problem" id="download-problem" role="alert">${asSentence(problem)}</p>`}
    ${size?.missing_bytes > 0 && html`<div class="dialog-actions"><button type="button" class="primary" data-action="download" onClick=${start}>Download ${formatBytes(size.missing_bytes)}</button></div>`}
    ${!size && !problem && !question && html`<${Last} download=${downloads.current} />`}`;
}

function Running({ downloads }) {
  const { model, current_bytes: current, total_bytes: total } = downloads.current;
  const [problem, setProblem] = useState("");
  const value = downloaded(downloads.current);
  const known = value === null ? {} : { value };
  const cancel = () => downloads.cancel().catch((error) => setProblem(error.message));
  return html`<p>Downloading <strong>${model}</strong></p>
    <p class="progress">
      <progress aria-label="Download of ${model}" max="1" ...${known} />
      <span data-download="progress">${total === null ? "The hub is asked…" : `${formatBytes(current)} of ${formatBytes(total)}`}</span>
    </p>
    <p class="faint">It goes on when you close this dialog or the page.</p>
    ${problem && html`<p class="problem" role="alert">${asSentence(problem)}</p>`}
    <div class="dialog-actions"><button type="button" data-action="cancel-download" onClick=${cancel}>Cancel the download</button></div>`;
}

function Last({ download }) {
  if (!download) return null;
  if (download.state === "failed") return html`<p class="problem" data-download="last">${endOf(download)}</p>`;
  return html`<p class="note" data-download="last">${endOf(download)}</p>`;
}

function describe({ model, files, total_bytes: total, missing_bytes: missing, arrived_bytes: arrived, free_bytes: free }) {
  const whole = `${model}: ${files} files, ${formatBytes(total)} in all.`;
  if (!missing) return `${whole} All of them are here.`;
  const rest = arrived ? ` ${formatBytes(arrived)} of it has arrived earlier.` : "";
  return `${whole} ${formatBytes(missing)} must be downloaded; the server's disk has ${formatBytes(free)} free.${rest}`;
}
