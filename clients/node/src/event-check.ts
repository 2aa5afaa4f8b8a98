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

/** Return whether an event is one that this version knows. Others are ignored. */
export function isKnown(event: string): boolean {
  return event === "done" || event in SHAPES;
}

/**
 * Return whether an event has the shape that the schema gives it. Bounds of numbers and lengths are not checked.
 *
 * @param event - The event, without null members.
 * @param command - The name of its request's command. It decides the shape of `done`.
 */
export function isWellFormed(event: RawEvent, command: string): boolean {
  const shape = SHAPES[event.event === "done" ? (DONES[command] ?? "") : event.event];
  return shape === undefined || fits(event, shape);
}

function fits(value: unknown, shape: Shape): boolean {
  if (typeof shape === "string")
    return shape === "any" || (shape === "object" ? isObject(value) : typeof value === shape);
  if ("anyOf" in shape) return shape.anyOf.some((member) => fits(value, member));
  if ("items" in shape) return Array.isArray(value) && value.every((item) => fits(item, shape.items));
  return isObject(value) && hasMembers(value, shape);
}

function hasMembers(value: Record<string, unknown>, shape: { required: object; optional: object }): boolean {
  for (const [name, member] of Object.entries(shape.required)) if (!fits(value[name], member)) return false;
  for (const [name, member] of Object.entries(shape.optional)) {
    if (value[name] !== undefined && !fits(value[name], member)) return false;
  }
  return true;
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
