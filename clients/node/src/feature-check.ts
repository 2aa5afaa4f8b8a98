import { isObject } from "./event-check.js";
import { REQUIREMENTS } from "./generated/features.js";

/** The features of which a worker must list one, for a field and for some of its values and forms. */
export interface Requirement {
  features?: string[];
  values?: Record<string, string[]>;
  forms?: Record<string, string[]>;
}

/**
 * Return the features that a command needs and that a worker does not list.
 *
 * @param command - The command's name.
 * @param fields - Its fields.
 * @param listed - The worker's features.
 */
export function missingFeatures(command: string, fields: object, listed: ReadonlySet<string>): string[] {
  const requirements = REQUIREMENTS[command];
  if (!requirements) return [];
  const missing = new Set<string>();
  const need = (features: string[] | undefined): void => {
    if (features && !features.some((feature) => listed.has(feature))) missing.add(features.join(" or "));
  };
  need(requirements[""]?.features);
  visit(fields, "", (path, value) => {
    const requirement = requirements[path];
    need(requirement?.features);
    if (typeof value === "string") {
      need(requirement?.values?.[value]);
      need(requirement?.forms?.string);
    }
  });
  for (const path of absentPaths(fields)) need(requirements[path]?.forms?.absent);
  return [...missing].sort();
}

/** Call a function with the path and the value of each field that is present. Items of a list share one path. */
function visit(value: unknown, path: string, found: (path: string, value: unknown) => void): void {
  if (path) found(path, value);
  if (Array.isArray(value)) for (const item of value) visit(item, `${path}[]`, found);
  else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (member !== undefined && member !== null) visit(member, path ? `${path}.${name}` : name, found);
    }
  }
}

/** Yield the fields whose absence an older worker refuses. */
function* absentPaths(fields: object): Generator<string> {
  const { path, messages } = fields as { path?: unknown; messages?: unknown };
  if (path === undefined) yield "path";
  if (!Array.isArray(messages)) return;
  for (const message of messages) {
    if (isObject(message) && message.role === "tool" && message.tool_call_id === undefined) {
      yield "messages[].tool_call_id";
    }
  }
}
