"""The fingerprint of a completion, with OpenAI's own client."""

from dataclasses import replace

from openai import OpenAI

from lmwire_http.openai.response_fields import system_fingerprint
from lmwire_http.settings import Settings
from support.http.http_server import Server

SETTINGS = Settings(load_options={"kv_bits": 8})


def test_all_responses_about_a_model_have_one_fingerprint(mock_server: Server) -> None:
    client = OpenAI(base_url=f"{mock_server.url}/v1", api_key="any", max_retries=0)
    chat, text = client.chat.completions, client.completions
    fingerprints = {
        chat.create(model="mock", messages=[{"role": "user", "content": "hello"}]).system_fingerprint,
        *(
            c.system_fingerprint
            for c in chat.create(model="mock", messages=[{"role": "user", "content": "a"}], stream=True)
        ),
        text.create(model="mock", prompt="hello").system_fingerprint,
        *(chunk.system_fingerprint for chunk in text.create(model="mock", prompt="hello", stream=True)),
    }
    [fingerprint] = fingerprints
    assert fingerprint is not None
    assert fingerprint.startswith("fp_")


def test_the_fingerprint_changes_with_the_model_and_with_options_that_change_answers() -> None:
    first = system_fingerprint("a", SETTINGS)
    assert first == system_fingerprint("a", replace(SETTINGS, port=9, api_keys=("k",), max_requests=2))
    others = {
        system_fingerprint("b", SETTINGS),
        system_fingerprint("a", replace(SETTINGS, load_options={"kv_bits": 4})),
        system_fingerprint("a", replace(SETTINGS, generation_config=False)),
        system_fingerprint("a", replace(SETTINGS, reasoning="on")),
        system_fingerprint("a", replace(SETTINGS, default_max_tokens=5)),
    }
    assert len(others | {first}) == 6
