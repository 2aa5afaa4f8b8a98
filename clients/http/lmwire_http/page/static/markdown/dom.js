// Creates elements. Attributes are set one by one: no text is ever parsed as HTML.
export function element(name, attributes = {}, children = []) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}
