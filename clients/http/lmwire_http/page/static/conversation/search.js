// Search in the texts of conversations.
const BEFORE = 30;
const AFTER = 70;

/** Return the place of a text in another one, as { before, found, after }. Null if it is not there. */
export function excerpt(text, wanted) {
  const start = text.toLowerCase().indexOf(wanted.toLowerCase());
  if (start < 0) return null;
  const end = start + wanted.length;
  const before = text.slice(Math.max(0, start - BEFORE), start);
  const after = text.slice(end, end + AFTER);
  return {
    before: `${start > BEFORE ? "…" : ""}${before}`,
    found: text.slice(start, end),
    after: `${after}${end + AFTER < text.length ? "…" : ""}`,
  };
}

/** Return the name of the time that a conversation belongs to in the list. */
export function periodOf(updated, now = new Date()) {
  const day = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate());
  const then = new Date(updated);
  const days = Math.round((day(now) - day(then)) / 86_400_000);
  if (days < 1) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Last 7 days";
  if (days < 30) return "Last 30 days";
  return then.toLocaleDateString("en", { month: "long", year: "numeric" });
}
