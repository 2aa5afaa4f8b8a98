// JSON Schemas of an OpenAPI document: references, types in words, and examples.

const MAX_DEPTH = 6;

/** Return a schema, or the one that it refers to. */
export function resolve(document, schema) {
  const name = schema?.$ref?.replace("#/", "").split("/");
  return name ? name.reduce((part, key) => part[key], document) : schema ?? {};
}

/** Return the alternatives of a schema without null. */
export function alternatives(schema) {
  return (schema.anyOf ?? schema.oneOf ?? [schema]).filter((each) => each.type !== "null");
}

/** Return a schema's type in words, such as `string or array of integer`. */
export function typeName(schema) {
  return [...new Set(alternatives(schema).map(oneTypeName))].join(" or ") || "null";
}

function oneTypeName(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf || schema.oneOf) return typeName(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return `array of ${typeName(schema.items ?? {})}`;
  return [schema.type ?? "any"].flat().join(" or ");
}

/** Return a value with the required fields of a schema. */
export function example(document, schema, depth = 0) {
  const [first = {}] = alternatives(resolve(document, schema));
  const found = resolve(document, first);
  if (found !== first && depth < MAX_DEPTH) return example(document, found, depth + 1);
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  switch ([found.type].flat()[0]) {
    case "object": return objectExample(document, found, depth);
    case "array": return depth < MAX_DEPTH ? [example(document, found.items ?? {}, depth + 1)] : [];
    case "integer": case "number": return Math.max(found.minimum ?? 1, 1);
    case "boolean": return false;
    case "string": return "Hello";
    default: return null;
  }
}

function objectExample(document, schema, depth) {
  const eithers = (schema.allOf ?? []).flatMap((part) => part.anyOf?.[0].required ?? []); // the API's own names
  const names = depth < MAX_DEPTH ? [...(schema.required ?? []), ...eithers] : [];
  return Object.fromEntries(names.map((name) => [name, example(document, schema.properties[name], depth + 1)]));
}
