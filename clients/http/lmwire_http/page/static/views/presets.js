// Presets: settings that the user has saved by a name, such as a prompt with its sampling.
import { deletePreset, getPresets, savePreset } from "../conversation/settings.js";
import { html, useState } from "./html.js";
import { IconButton } from "./icons.js";

export function Presets({ settings, onChosen }) {
  const [presets, setPresets] = useState(getPresets);
  const [name, setName] = useState("");
  const save = (event) => {
    event.preventDefault();
    savePreset(name.trim(), settings);
    setPresets(getPresets());
    setName("");
  };
  const remove = (each) => {
    deletePreset(each);
    setPresets(getPresets());
  };
  return html`<fieldset>
    <legend>Presets</legend>
    <ul class="presets">
      ${[...presets].map(
        ([each, saved]) => html`<li key=${each}>
          <button type="button" data-preset=${each} onClick=${() => onChosen(saved)}>${each}</button>
          <${IconButton} icon="close" label="Delete the preset ${each}" onClick=${() => remove(each)} />
        </li>`,
      )}
    </ul>
    <form class="preset-form" onSubmit=${save}>
      <input aria-label="Name of the preset" placeholder="Name for these settings" maxlength="60" data-input="preset" value=${name} onInput=${({ target }) => setName(target.value)} />
      <button type="submit" disabled=${!name.trim()}>Save as preset</button>
    </form>
  </fieldset>`;
}
