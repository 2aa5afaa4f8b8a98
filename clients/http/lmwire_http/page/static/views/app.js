// The whole page.
import { html, useEffect, useState } from "./html.js";
import { Banner } from "./banner.js";
import { Composer } from "./composer.js";
import { KeyDialog } from "./key_dialog.js";
import { SettingsDialog } from "./settings_dialog.js";
import { startShortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import { TopBar } from "./top_bar.js";
import { Transcript } from "./transcript.js";

const WIDE = "(min-width: 56rem)";

export function App({ state }) {
  const [hasSidebar, setSidebar] = useState(() => matchMedia(WIDE).matches);
  const [hasSettings, setSettings] = useState(false);
  const closeOnPhone = () => matchMedia(WIDE).matches || setSidebar(false);
  useEffect(() => startShortcuts(state), [state]);
  return html`
    <a class="skip" href="#composer" onClick=${focusComposer}>Skip to the message field</a>
    <div class="page ${hasSidebar ? "with-sidebar" : ""}">
      ${hasSidebar && html`<${Sidebar} state=${state} onOpened=${closeOnPhone} onClose=${() => setSidebar(false)} />`}
      <div class="column">
        <${TopBar}
          state=${state}
          hasSidebar=${hasSidebar}
          onSidebar=${() => setSidebar(!hasSidebar)}
          onSettings=${() => setSettings(true)}
        />
        <${Banner} state=${state} />
        <main>
          <${Transcript} state=${state} />
          <${Composer} state=${state} />
        </main>
      </div>
    </div>
    ${hasSettings && html`<${SettingsDialog} state=${state} onClose=${() => setSettings(false)} />`}
    <${KeyDialog} connection=${state.connection} />
    <div class="visually-hidden" aria-live="polite" id="announcements"></div>
  `;
}

function focusComposer(event) {
  event.preventDefault(); // the address has the open conversation
  document.getElementById("composer").focus();
}
