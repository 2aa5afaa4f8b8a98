// The bar at the top: the model, the theme and the settings.
import { isDark, toggleTheme } from "../theme_choice.js";
import { html, useState } from "./html.js";
import { IconButton } from "./icons.js";
import { ModelPicker } from "./model_picker.js";

export function TopBar({ state, hasSidebar, onSidebar, onSettings, onDownload }) {
  const [dark, setDark] = useState(isDark);
  const toggle = () => {
    toggleTheme();
    setDark(isDark());
  };
  const sidebarLabel = hasSidebar ? "Hide conversations" : "Show conversations";
  return html`<header class="top-bar">
    <${IconButton} icon="menu" label=${sidebarLabel} aria-expanded=${hasSidebar} data-action="sidebar" onClick=${onSidebar} />
    <${ModelPicker} models=${state.models} downloads=${state.downloads} onDownload=${onDownload} />
    <span class="gap" />
    ${!hasSidebar && html`<${IconButton} icon="plus" label="New chat" onClick=${() => state.conversations.open("")} />`}
    <${IconButton} icon="sun" label=${dark ? "Light theme" : "Dark theme"} data-action="theme" onClick=${toggle} />
    <${IconButton} icon="settings" label="Settings" data-action="settings" onClick=${onSettings} />
  </header>`;
}
