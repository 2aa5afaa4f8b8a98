import { DONES, SHAPES } from "./generated/shapes.js";

/** What a reader checks in a value: a JSON type, one of several shapes, the items of a list, or the members of an object. */
export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "object"
  | "any"
  | { anyOf: Shape[] }
  | { items: Shape }
  | { required: Record<string, Shape>; optional: Record<string, Shape> };

/** An event as it came from the worker, before its shape is known. */
export type RawEvent = Record<string, unknown> & { event: string };

/** Return whether a value is an object, and neither null nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Check = (value: unknown) => boolean;

interface Member {
  check: Check;
  isRequired: boolean;
}

/** Checks by event, and by the name of a command's `done`. They are compiled once, since each token is checked. */
const CHECKS: ReadonlyMap<string, Check> = new Map(
  Object.entries(SHAPES).map(([name, shape]) => [name, compile(shape)]),
);

/** Return whether an event is one that this version knows. Others are ignored. */
export function isKnown(event: string): boolean {
  return event === "done" || CHECKS.has(event);
}

/**
 * Return whether an event has the shape that the schema gives it. Bounds of numbers and lengths are not checked.
 *
 * @param event - The event, without null members.
 * @param command - The name of its request's command. It decides the shape of `done`.
 */
export function isWellFormed(event: RawEvent, command: string): boolean {
  const check = CHECKS.get(event.event === "done" ? (DONES[command] ?? "") : event.event);
  return check === undefined || check(event);
}

function compile(shape: Shape): Check {
  if (shape === "any") return () => true;
  if (shape === "object") return isObject;
  if (typeof shape === "string") return (value) => typeof value === shape;
  if ("anyOf" in shape) {
    const checks = shape.anyOf.map(compile);
    return (value) => checks.some((check) => check(value));
  }
  if ("items" in shape) {
    const check = compile(shape.items);
    return (value) => Array.isArray(value) && value.every(check);
  }
  const members = new Map([...compileMembers(shape.required, true), ...compileMembers(shape.optional, false)]);
  const requiredCount = Object.keys(shape.required).length;
  return (value) => isObject(value) && haveShape(value, members, requiredCount);
}

function compileMembers(members: Record<string, Shape>, isRequired: boolean): Array<[string, Member]> {
  return Object.entries(members).map(([name, shape]) => [name, { check: compile(shape), isRequired }]);
}

/** Return whether the members that an object has are well-formed, and all required ones are among them. */
function haveShape(
  value: Record<string, unknown>,
  members: ReadonlyMap<string, Member>,
  requiredCount: number,
): boolean {
  let missing = requiredCount;
  for (const name in value) {
    const member = members.get(name);
    if (member === undefined) continue;
    if (!member.check(value[name])) return false;
    if (member.isRequired) missing--;
  }
  return missing === 0;
}

/** Remove null members at any depth: they count as absent. Nulls in lists are values. */
export function dropNulls(value: unknown): void {
  if (Array.isArray(value)) for (const item of value) dropNulls(item);
  else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (member === null) delete value[name];
      else dropNulls(member);
    }
  }
}
