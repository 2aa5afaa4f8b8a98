// The settings of answers, and what this browser keeps.
import { DEFAULTS, EFFORTS, SAMPLING, getSettings, isChanged, jsonProblem, setSettings } from "../conversation/settings.js";
import { html, useState } from "./html.js";
import { Dialog } from "./dialog.js";
import { Presets } from "./presets.js";
import { SHORTCUTS } from "./shortcuts.js";
import { Storage } from "./storage_section.js";

export function SettingsDialog({ state, onClose }) {
  const [settings, setLocal] = useState(getSettings);
  const [count, setCount] = useState(0);
  const problems = { schema: jsonProblem(settings.schema, "object"), tools: jsonProblem(settings.tools, "list") };
  const change = (fields) => {
    const changed = { ...settings, ...fields };
    setLocal(changed);
    const isValid = !jsonProblem(changed.schema, "object") && !jsonProblem(changed.tools, "list");
    if (isValid) setSettings(changed);
  };
  const replace = (fields) => {
    change({ ...DEFAULTS, ...fields });
    setCount(count + 1); // the fields forget what they hold
  };
  return html`<${Dialog} title="Settings" onClose=${onClose}>
    <p class="faint">They hold for the next message, and stay in this browser. ${isChanged(settings) && html`<button type="button" class="quiet" data-action="reset" onClick=${() => replace({})}>Reset all</button>`}</p>
    <${TextSetting} name="system" label="System prompt" rows="4" settings=${settings} change=${change} />
    <fieldset>
      <legend>Sampling</legend>
      <p class="faint">Empty fields leave the choice to the model.</p>
      <div class="grid">
        ${SAMPLING.map((field) => html`<${NumberSetting} key=${field.name + count} field=${field} settings=${settings} change=${change} />`)}
        <label>Reasoning
          <select data-input="effort" value=${settings.effort} onChange=${({ target }) => change({ effort: target.value })}>
            <option value="">Automatic</option>
            ${EFFORTS.map((effort) => html`<option value=${effort}>${effort === "none" ? "off" : effort}</option>`)}
          </select>
        </label>
      </div>
    </fieldset>
    <fieldset>
      <legend>Structured answers</legend>
      <label class="check"><input type="checkbox" data-input="isJson" checked=${settings.isJson} onChange=${({ target }) => change({ isJson: target.checked })} />Answer in JSON</label>
      ${settings.isJson && html`<${TextSetting} name="schema" label="JSON Schema; empty allows any object" rows="6" isCode settings=${settings} change=${change} problem=${problems.schema} />`}
    </fieldset>
    <fieldset>
      <legend>Tools</legend>
      <${TextSetting} name="tools" label="Tools that the model may call, as in OpenAI's API: a JSON list" rows="4" isCode settings=${settings} change=${change} problem=${problems.tools} />
    </fieldset>
    <${Presets} settings=${settings} onChosen=${replace} />
    <${Storage} state=${state} />
    <fieldset>
      <legend>Keys</legend>
      <dl class="keys">${SHORTCUTS.map(([keys, effect]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${effect}</dd></div>`)}</dl>
    </fieldset>
  <//>`;
}

function NumberSetting({ field: { name, label, ...limits }, settings, change }) {
  const [text, setText] = useState(settings.sampling[name] ?? "");
  const [problem, setProblem] = useState("");
  const onChange = ({ target: { value, valueAsNumber, validity } }) => {
    const { [name]: _, ...others } = settings.sampling;
    const isWrong = validity.badInput || validity.rangeUnderflow || validity.rangeOverflow || (limits.step === 1 && valueAsNumber % 1);
    setText(value);
    setProblem(isWrong ? `Not in use: it must be ${rangeOf(limits)}.` : "");
    change({ sampling: isWrong || value === "" ? others : { ...others, [name]: valueAsNumber } });
  };
  const note = problem ? `${name}-problem` : undefined;
  return html`<div><label>${label} <span class="faint">${shortRange(limits)}</span><input type="number" data-input=${name} value=${text} ...${limits} aria-invalid=${problem ? "true" : undefined} aria-describedby=${note} onChange=${onChange} /></label>
    ${problem && html`<p class="problem" id=${note} role="alert">${problem}</p>`}</div>`;
}

function rangeOf({ min, max, step }) {
  const kind = step === 1 ? "a whole number" : "a number";
  if (min === undefined) return kind;
  return max === undefined ? `${kind} from ${min}` : `${kind} from ${min} to ${max}`;
}

function shortRange({ min, max }) {
  if (min === undefined) return "";
  return max === undefined ? `${min} or more` : `${min} to ${max}`;
}

function TextSetting({ name, label, rows, settings, change, problem, isCode }) {
  const note = problem ? `${name}-problem` : undefined;
  return html`<label>${label}<textarea data-input=${name} rows=${rows} class=${isCode ? "code" : ""} spellcheck=${!isCode} aria-invalid=${problem ? "true" : undefined} aria-describedby=${note} value=${settings[name]} onInput=${({ target }) => change({ [name]: target.value })} /></label>
    ${problem && html`<p class="problem" id=${note}>${problem}</p>`}`;
}
