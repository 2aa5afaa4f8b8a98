import { isObject } from "./event-check.js";
import { REQUIREMENTS } from "./generated/features.js";

/** The features of which a worker must list one, for a field and for some of its values and forms. */
export interface Requirement {
  features?: string[];
  values?: Record<string, string[]>;
  forms?: Record<string, string[]>;
  /** Members that the object around the field has wherever a form counts. */
  when?: Record<string, Record<string, string>>;
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
  for (const [path, { forms, when }] of Object.entries(requirements)) {
    if (forms?.absent && isAbsent(fields, path, when?.absent)) need(forms.absent);
  }
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

/** Return whether a field is absent in an object that has some other members. */
function isAbsent(fields: object, path: string, when: Record<string, string> = {}): boolean {
  const around = path.split(".");
  const name = around.pop()!;
  return objectsAt(fields, around).some(
    (object) => object[name] === undefined && Object.entries(when).every(([other, value]) => object[other] === value),
  );
}

/** Return the objects at a path. */
function objectsAt(value: unknown, [name, ...rest]: string[]): Record<string, unknown>[] {
  if (!isObject(value)) return [];
  if (name === undefined) return [value];
  const member = value[name.replace("[]", "")];
  return (Array.isArray(member) ? member : [member]).flatMap((item) => objectsAt(item, rest));
}
