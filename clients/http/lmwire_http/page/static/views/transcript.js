// The messages of the open conversation.
import { NO_MODEL } from "../server/models.js";
import { html, useChanges, useLayoutEffect, useRef, useState } from "./html.js";
import { Answer } from "./answer.js";
import { Icon } from "./icons.js";
import { IS_TOUCH } from "./shortcuts.js";
import { ToolResult } from "./tool_calls.js";
import { UserMessage } from "./user_message.js";

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
      ${path.length ? html`<h1 class="visually-hidden">${current.title}</h1>` : html`<${Welcome} models=${state.models} />`}
      ${path.map((message, index) => {
        const View = VIEWS[message.role];
        return html`<${View} key=${message.id} message=${message} state=${state} isLast=${index === path.length - 1} />`;
      })}
    </div>
    ${!isAtEnd &&
    html`<button type="button" class="to-end" onClick=${scrollToEnd} aria-label="Scroll to the end"><${Icon} name="down" /></button>`}
  </div>`;
}

function Welcome({ models }) {
  useChanges(models);
  return html`<div class="welcome">
    <img src="page/icon.svg" alt="" width="56" height="56" />
    <h1>What is on your mind?</h1>
    ${models.isKnown && !models.current && html`<p class="problem">${NO_MODEL}</p>`}
    <p class="faint">
      Write a message below. ${!IS_TOUCH && "Enter sends it, Shift + Enter starts a new line. Drop images, sounds or texts anywhere. "}
      Answers come from your own server. Conversations stay in this browser.
    </p>
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
  useLayoutEffect(scrollToEnd, [conversation, count]);
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
