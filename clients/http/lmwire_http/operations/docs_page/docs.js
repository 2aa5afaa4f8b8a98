// Shows the OpenAPI document of this server. Text goes into the page as text, never as HTML.

import { alternatives, example, resolve, typeName } from "./schema.js";

const openapi = await (await fetch("openapi.json")).json();
const key = document.getElementById("key");

/** Return an element with attributes and children, which may be texts. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Return a block that is filled when it is first opened: schemas may refer to themselves. */
function folded(summary, fill) {
  const block = element("details", {}, element("summary", {}, ...summary));
  block.addEventListener("toggle", () => block.append(...fill()), { once: true });
  return block;
}

function schemaBlocks(schema) {
  const kinds = alternatives(resolve(openapi, schema)).map((each) => resolve(openapi, each));
  return kinds.flatMap((kind) => [
    ...(kind.description ? [element("p", { class: "note" }, kind.description)] : []),
    ...Object.entries(kind.properties ?? {}).map(([name, field]) => fieldBlock(kind, name, field)),
    ...(kind.items ? schemaBlocks(kind.items) : []),
  ]);
}

function fieldBlock(parent, name, field) {
  const needed = parent.required?.includes(name) ? ", required" : "";
  const words = [element("code", {}, name), ` ${typeName(field)}${needed}. ${field.description ?? ""}`];
  const inner = JSON.stringify(field).includes('"$ref"') || field.properties;
  return inner ? folded(words, () => schemaBlocks(field)) : element("div", {}, ...words);
}

function contentBlocks(content = {}) {
  return Object.entries(content).map(([type, { schema }]) => folded([type], () => schemaBlocks(schema)));
}

function responseBlock(status, response) {
  const found = resolve(openapi, response);
  return folded([`${status} ${found.description}`], () => contentBlocks(found.content));
}

function tryBlock(method, path, operation) {
  const json = operation.requestBody?.content["application/json"];
  if (operation.requestBody && !json) return element("p", { class: "note" }, "Send a form, for example with curl -F.");
  const address = element("input", { value: path, size: "60" });
  const body = element("textarea", { spellcheck: "false" });
  body.value = json ? JSON.stringify(example(openapi, json.schema), null, 2) : "";
  const send = element("button", {}, "Send");
  const output = element("pre");
  send.addEventListener("click", () => request(method, address.value, json && body.value, output));
  return element("div", {}, address, ...(json ? [body] : []), send, output);
}

/** Send a request, and show the response as it comes. */
async function request(method, path, body, output) {
  const headers = { ...(body && { "content-type": "application/json" }), ...(key.value && { "x-api-key": key.value }) };
  try {
    const response = await fetch(path.replace(/^\//, ""), { method, headers, ...(body && { body }) });
    output.textContent = `${response.status} ${response.statusText}\n\n`;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) output.append(part.value);
  } catch (error) {
    output.textContent = String(error);
  }
}

function operationBlock(path, method, operation) {
  const title = [element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path), ` ${operation.summary}`];
  return folded(title, () => [
    ...contentBlocks(operation.requestBody?.content),
    ...Object.entries(operation.responses).map(([status, response]) => responseBlock(status, response)),
    folded(["Try it"], () => [tryBlock(method.toUpperCase(), path, operation)]),
  ]);
}

document.getElementById("about").textContent = `${openapi.info.summary} Version ${openapi.info.version}.`;
document.getElementById("operations").append(
  ...Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => operationBlock(path, method, operation))),
);
