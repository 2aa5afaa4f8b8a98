// The whole page.
import { html, useLayoutEffect, useState } from "./html.js";
import { Banner } from "./banner.js";
import { Composer } from "./composer.js";
import { DownloadDialog } from "./download_dialog.js";
import { KeyDialog } from "./key_dialog.js";
import { SearchDialog } from "./search_dialog.js";
import { SettingsDialog } from "./settings_dialog.js";
import { startShortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import { TopBar } from "./top_bar.js";
import { ToolsDialog } from "./tools_dialog.js";
import { Transcript } from "./transcript.js";

const WIDE = "(min-width: 56rem)";

export function App({ state }) {
  const [isWide, setWide] = useState(() => matchMedia(WIDE).matches);
  const [hasSidebar, setSidebar] = useState(isWide);
  const [hasSettings, setSettings] = useState(false);
  const [hasDownload, setDownload] = useState(false);
  const [hasTools, setTools] = useState(false);
  const [hasSearch, setSearch] = useState(false);
  const isOverlay = hasSidebar && !isWide;
  useLayoutEffect(() => startShortcuts(state, { onSearch: () => setSearch(true) }), [state]);
  useLayoutEffect(() => {
    const onChange = ({ matches }) => (setWide(matches), setSidebar(matches));
    const query = matchMedia(WIDE);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  useLayoutEffect(() => {
    if (!isOverlay) return;
    document.querySelector(".new-chat").focus();
    return () => document.querySelector("[data-action=sidebar]").focus();
  }, [isOverlay]);
  return html`
    <a class="skip" href="#composer" onClick=${focusComposer}>Skip to the message field</a>
    <div class="page ${hasSidebar ? "with-sidebar" : ""}">
      ${hasSidebar && html`<${Sidebar} state=${state} isOverlay=${isOverlay} onSearch=${() => (isWide || setSidebar(false), setSearch(true))} onOpened=${() => isWide || setSidebar(false)} onClose=${() => setSidebar(false)} />`}
      <div class="column" inert=${isOverlay}>
        <${TopBar}
          state=${state}
          hasSidebar=${hasSidebar}
          onSidebar=${() => setSidebar(!hasSidebar)}
          onSettings=${() => setSettings(true)}
          onDownload=${() => setDownload(true)}
        />
        <${Banner} state=${state} />
        <main>
          <${Transcript} state=${state} />
          <${Composer} state=${state} onTools=${() => setTools(true)} />
        </main>
      </div>
    </div>
    ${hasSettings && html`<${SettingsDialog} state=${state} onClose=${() => setSettings(false)} />`}
    ${hasDownload && html`<${DownloadDialog} downloads=${state.downloads} onClose=${() => setDownload(false)} />`}
    ${hasTools && html`<${ToolsDialog} state=${state} onClose=${() => setTools(false)} />`}
    ${hasSearch && html`<${SearchDialog} conversations=${state.conversations} onClose=${() => setSearch(false)} />`}
    <${KeyDialog} connection=${state.connection} />
    <div class="visually-hidden" aria-live="polite" id="announcements"></div>
  `;
}

function focusComposer(event) {
  event.preventDefault(); // the address has the open conversation
  document.getElementById("composer").focus();
}
