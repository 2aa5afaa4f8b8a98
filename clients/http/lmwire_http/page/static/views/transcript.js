// The messages of the open conversation.
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { Answer } from "./answer.js";
import { Icon } from "./icons.js";
import { ToolResult } from "./tool_calls.js";
import { UserMessage } from "./user_message.js";
import { Welcome } from "./welcome.js";

const NEAR_PIXELS = 48;
const VIEWS = { user: UserMessage, assistant: Answer, tool: ToolResult };

export function Transcript({ state }) {
  const { conversations } = state;
  useChanges(conversations);
  const { path, current } = conversations;
  const [scroller, content, isAtEnd, scrollToEnd] = useFollowing(current?.id, path.length);
  useLayoutEffect(() => {
    document.title = current ? `${current.title} · lmwire` : "lmwire";
  }, [current?.title]);
  return html`<div class="transcript" ref=${scroller} tabindex="0" role="region" aria-label="Messages">
    <div class="messages" ref=${content}>
      ${path.length ? html`<h1 class="visually-hidden">${current.title}</h1>` : html`<${Welcome} state=${state} />`}
      ${path.map((message, index) => {
        const View = VIEWS[message.role];
        const isLast = index === path.length - 1;
        const beside = isLast ? conversations.besideOf(message) : [];
        if (beside.length > 1) {
          return html`<div class="beside" key=${message.parent} role="group" aria-label="Answers side by side">
            ${beside.map((each) => html`<${Answer} key=${each.id} message=${each} state=${state} isLast isChosen=${each === message} />`)}
          </div>`;
        }
        return html`<${View} key=${message.id} message=${message} state=${state} isLast=${isLast} />`;
      })}
    </div>
    ${!isAtEnd &&
    path.length > 0 &&
    html`<button type="button" class="to-end" onClick=${scrollToEnd} aria-label="Scroll to the end"><${Icon} name="down" /></button>`}
  </div>`;
}

/** Keep the end in view while it is in view. Returns the refs of the two elements, and whether the end is in view. */
function useFollowing(conversation, count) {
  const scroller = useRef(null);
  const content = useRef(null);
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const scrollToEnd = () => {
    follows.current = true;
    scroller.current.scrollTop = scroller.current.scrollHeight;
  };
  useLayoutEffect(() => {
    if (count) scrollToEnd();
    else [follows.current, scroller.current.scrollTop] = [false, 0]; // an empty chat is read from its beginning
  }, [conversation, count]);
  useLayoutEffect(() => {
    const view = scroller.current;
    const isNear = () => view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_PIXELS;
    let top = 0;
    const onScroll = () => {
      if (isNear() || view.scrollTop < top) follows.current = isNear(); // a text that grows moves the end, not the user
      top = view.scrollTop;
      setAtEnd(follows.current);
    };
    const onClick = ({ target }) => {
      const isUnfolded = target.closest("summary") && !view.querySelector("[data-state=running]");
      if (isUnfolded) follows.current = false; // it opens downwards, where it was clicked
    };
    const observer = new ResizeObserver(() => (follows.current ? scrollToEnd() : setAtEnd(isNear())));
    observer.observe(content.current);
    observer.observe(view);
    view.addEventListener("scroll", onScroll, { passive: true });
    view.addEventListener("click", onClick);
    return () => observer.disconnect();
  }, []);
  return [scroller, content, isAtEnd, scrollToEnd];
}
