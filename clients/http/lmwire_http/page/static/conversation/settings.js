// The settings of answers: those of new requests, kept in this browser.
import { getPreference, setPreference } from "../preferences.js";

export const SAMPLING = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.05 },
  { name: "top_k", label: "Top k", min: 0, step: 1 },
  { name: "min_p", label: "Min p", min: 0, max: 1, step: 0.01 },
  { name: "repetition_penalty", label: "Repetition penalty", min: 0, max: 2, step: 0.05 },
  { name: "presence_penalty", label: "Presence penalty", min: -2, max: 2, step: 0.1 },
  { name: "max_tokens", label: "Answer tokens", min: 1, step: 1 },
  { name: "seed", label: "Seed", step: 1 },
];
export const EFFORTS = ["none", "minimal", "low", "medium", "high"];
export const DEFAULTS = { system: "", sampling: {}, effort: "", isJson: false, schema: "", tools: "" };

export function getSettings() {
  return { ...DEFAULTS, ...getPreference("settings", {}) };
}

/** Return whether settings differ from those that a new user has. */
export function isChanged(settings) {
  return JSON.stringify({ ...DEFAULTS, ...settings }) !== JSON.stringify(DEFAULTS);
}

export function setSettings(settings) {
  setPreference("settings", settings);
}

/** Return the presets that the user has saved: settings by name. */
export function getPresets() {
  return new Map(getPreference("presets", []));
}

export function savePreset(name, settings) {
  setPreference("presets", [...getPresets().set(name, settings)]);
}

export function deletePreset(name) {
  setPreference("presets", [...getPresets()].filter(([each]) => each !== name));
}

/** Return the names of the settings that change answers in ways that are easily forgotten. */
export function namesInUse({ system, isJson, tools }) {
  return [system.trim() && "System prompt", isJson && "JSON", tools.trim() && "Tools"].filter(Boolean);
}

/** Return the problem of a text that must be JSON of a kind: "object" or "list". Empty if there is none. */
export function jsonProblem(text, kind) {
  if (!text.trim()) return "";
  try {
    const value = JSON.parse(text);
    const isRight = kind === "list" ? Array.isArray(value) : value && typeof value === "object" && !Array.isArray(value);
    return isRight ? "" : `This must be a JSON ${kind}.`;
  } catch (error) {
    return `This is not JSON: ${error.message}`;
  }
}
