// The messages of a conversation as a tree: an edit or another answer is a version beside the first one.

/** Return the messages from the first one to the leaf. */
export function pathTo(messages, leaf) {
  const path = [];
  for (let message = messages.get(leaf); message; message = messages.get(message.parent)) path.push(message);
  return path.reverse();
}

/** Return the versions of a message, itself included, oldest first. */
export function versionsOf(messages, message) {
  return childrenOf(messages, message.parent).filter(({ role }) => role === message.role);
}

/** Return the id of the newest message below one, or its own. */
export function newestLeaf(messages, id) {
  for (;;) {
    const children = childrenOf(messages, id);
    if (!children.length) return id;
    id = children.at(-1).id;
  }
}

function childrenOf(messages, parent) {
  const children = [...messages.values()].filter((message) => message.parent === parent);
  return children.sort((one, other) => one.created - other.created || (one.id < other.id ? -1 : 1));
}
