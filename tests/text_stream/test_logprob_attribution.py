"""Each token is reported with its text, and with the part of the text that is in the answer."""

import random

from lmwire_protocol.events import Logprob
from lmwire_worker.text_stream.logprob_attribution import LogprobAttribution
from support.many_cases import for_each


def token(data: bytes) -> Logprob:
    text = data.decode(errors="replace")
    return Logprob(len(data), text, -1.0, None if text.encode() == data else list(data))


def own(logprob: Logprob) -> bytes:
    if logprob.text is not None:
        return logprob.text.encode()
    return logprob.token.encode() if logprob.bytes is None else bytes(logprob.bytes)


def test_a_token_waits_for_its_text() -> None:
    attribution = LogprobAttribution()
    attribution.add(token(b"a"), "a")
    attribution.add(token(b"b"), "b")
    attribution.take("ab", 2)
    assert [own(each) for each in attribution.send("a", "content")] == [b"a"]
    assert [own(each) for each in attribution.send("b", "content")] == [b"b"]
    assert attribution.end() == []


def test_a_marker_and_a_stop_string_have_no_text_in_the_answer() -> None:
    attribution = LogprobAttribution()
    for part in ("<call>", "Hel", "lo st", "op"):
        attribution.add(token(part.encode()), part)
    attribution.take("Hello stop", attribution.length)
    sent = attribution.send("Hello ", "content")
    assert [(each.token, each.text) for each in sent] == [("<call>", ""), ("Hel", None)]
    attribution.drop()
    assert [(each.token, each.text) for each in attribution.end()] == [("lo st", "lo "), ("op", "")]


def test_a_token_that_ends_inside_a_character_goes_with_its_neighbour() -> None:
    attribution = LogprobAttribution()
    attribution.add(token(b"x\xe4"), "x")
    attribution.add(token(b"\xbd\xa0y"), "\u4f60y")
    attribution.take("x\u4f60y", 3)
    assert [(own(each), each.text) for each in attribution.send("x\u4f60y", "content")] == [
        (b"x\xe4", None),
        (b"\xbd\xa0y", None),
    ]


def test_a_space_that_the_answer_does_not_begin_with_is_not_in_the_token() -> None:
    attribution = LogprobAttribution()
    attribution.add(token(b" Hello"), "Hello")
    attribution.take("Hello", 5)
    [hello] = attribution.send("Hello", "content")
    assert (hello.token, hello.text) == (" Hello", "Hello")


def test_bytes_that_are_no_text_come_with_what_the_detokenizer_makes_of_them_at_once() -> None:
    attribution = LogprobAttribution()
    for data in (b"\x8b", b"a\xff\xfe"):
        text = data.decode(errors="replace")
        attribution.add(token(data), text)
        attribution.take(text, attribution.length)
        assert [own(each) for each in attribution.send(text, "content")] == [text.encode()]
    assert attribution.end() == []


def test_bytes_that_are_no_text_wait_for_what_the_detokenizer_makes_of_them_later() -> None:
    """It holds each of them back until it has seen the next, and gives the last one at the end."""
    attribution = LogprobAttribution()
    delivered: list[int] = []
    for text in ("", "\ufffd", "\ufffd"):
        attribution.add(token(b"\x8b"), text)
        attribution.take(text, attribution.length)
        sent = attribution.send(text, "content")
        assert b"".join(map(own, sent)) == text.encode()
        delivered.append(len(sent))
    attribution.flush("\ufffd")
    attribution.take("\ufffd", attribution.length)
    [last] = attribution.send("\ufffd", "content")
    assert own(last).decode() == "\ufffd"
    assert delivered == [0, 1, 1]
    assert attribution.end() == []


def test_tokens_that_were_held_back_come_with_their_own_text() -> None:
    attribution = LogprobAttribution()
    attribution.add(token(b"x"), "x")
    attribution.take("x", 1)
    for _ in range(2):
        attribution.add(token(b"\x8b"), "")
    assert [each.token for each in attribution.send("x", "content")] == ["x"]
    attribution.add(token(b"y"), "\ufffd\ufffdy")
    attribution.take("\ufffd\ufffdy", attribution.length)
    assert [own(each).decode() for each in attribution.send("\ufffd\ufffdy", "content")] == ["\ufffd", "\ufffd", "y"]


def test_text_without_a_token_is_sent_all_the_same() -> None:
    attribution = LogprobAttribution()
    attribution.flush("x")
    attribution.take("x", 1)
    assert attribution.send("x", "content") == []
    assert attribution.end() == []


@for_each(range(200))
def test_the_texts_of_the_tokens_are_the_text_of_the_channel(seed: int) -> None:
    """Whatever is dropped, and however long what is between is held back."""
    chance = random.Random(seed)
    attribution, delivered, shown, pending = LogprobAttribution(), b"", "", ""
    for _ in range(40):
        text = "".join(chance.choice("ab\u00e9\u4f60 <") for _ in range(chance.randrange(4)))
        attribution.add(token(text.encode()), text)
        if chance.random() < 0.3:
            continue  # a marker
        attribution.take(text, attribution.length)
        pending += text
        ready = chance.randrange(len(pending) + 1)
        shown += pending[:ready]
        delivered += b"".join(map(own, attribution.send(pending[:ready], "content")))
        pending = pending[ready:]
    attribution.drop()
    delivered += b"".join(map(own, attribution.end()))
    assert delivered.decode() == shown
