"""Tiny models with chosen chat templates."""

import json
from pathlib import Path

from random_model import write_model


def write_templated_model(
    folder: Path, template: str | None = None, named: dict[str, str] | None = None, *, listed: bool = True
) -> Path:
    """Write a tiny random model that never ends its turn, and return its folder.

    Args:
        folder: Receives the model.
        template: Its chat template; None for a model without one.
        named: Templates by name, in place of `template`.
        listed: Put the named ones into tokenizer_config.json. Otherwise `default` is chat_template.jinja, and the
            others are in additional_chat_templates.
    """
    write_model(folder, end_scale=0)
    settings = folder / "tokenizer_config.json"
    config = json.loads(settings.read_text())
    del config["chat_template"]
    if template is not None:
        config["chat_template"] = template
    elif named and listed:
        config["chat_template"] = [{"name": name, "template": source} for name, source in named.items()]
    settings.write_text(json.dumps(config))
    if named and not listed:
        others = folder / "additional_chat_templates"
        others.mkdir()
        for name, source in named.items():
            path = folder / "chat_template.jinja" if name == "default" else others / f"{name}.jinja"
            path.write_text(source)
    return folder
