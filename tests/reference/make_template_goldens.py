"""Makes tests/core/data/goldens/chat_*.json: what jinja2 renders with transformers' settings.

Usage: python make_template_goldens.py SHARED_DATA OUT
Needs jinja2 (made with 3.1.6). The environment is the one transformers builds for chat templates:
sandboxed and immutable, trim_blocks, lstrip_blocks, loop controls, tojson by json.dumps,
raise_exception, strftime_now and the {% generation %} tag, here with a fixed clock.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

CLOCK = datetime.datetime(2024, 7, 26, 13, 45, 9)


class Generation(jinja2.ext.Extension):
    """Wraps what a generation block writes in two marks, which are taken out again afterwards."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller):
        return "\ue000" + caller() + "\ue001"


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: CLOCK.strftime(form)
    return env


ENV = environment()


def render(source, variables):
    """The text and the byte spans inside generation blocks, or the error's words."""
    try:
        marked = ENV.from_string(source).render(**variables)
    except Exception as error:  # every refusal is a result here
        return {"error": str(error)}
    text, spans = b"", []
    for piece in marked.replace("\ue001", "\ue000").split("\ue000"):
        spans.append([len(text), len(text) + len(piece.encode())])
        text += piece.encode()
    joined = []
    for begin, end in (s for s in spans[1::2] if s[0] < s[1]):
        if joined and joined[-1][1] == begin:
            joined[-1][1] = end
        else:
            joined.append([begin, end])
    return {"output": text.decode(), "generated": joined}


def chats(folder, shared):
    """Every template with every conversation, with and without the generation prompt."""
    templates = {p.stem: p.read_text() for p in sorted((folder / "chat_templates").glob("*.jinja"))}
    tokens = {name: {"bos_token": "<s>", "eos_token": "</s>"} for name in templates}
    for path in sorted((shared / "chat_templates").glob("*.json")):
        config = json.loads(path.read_text())
        if "chat_template" in config:
            templates[path.name] = config["chat_template"]
            tokens[path.name] = {k: config[k] or "" for k in ("bos_token", "eos_token")}
    conversations = json.loads((folder / "conversations.json").read_text())
    cases = []
    for name in templates:
        for chat, variables in conversations.items():
            for prompt in (False, True):
                full = {"tools": None, "documents": None} | variables | tokens[name]
                full["add_generation_prompt"] = prompt
                case = {"template": name, "conversation": chat, "prompt": prompt}
                cases.append(case | render(templates[name], full))
    return {"templates": templates, "tokens": tokens, "conversations": conversations, "cases": cases}


def expressions(folder):
    variables = json.loads((folder / "variables.json").read_text())
    sources = [s for s in (folder / "expressions.txt").read_text().split("\n") if s and s[0] != "#"]
    sources = [s.replace("⏎", "\n") for s in sources]
    sources = [s if "{%" in s or "{{" in s or "{#" in s else "{{ " + s + " }}" for s in sources]
    return {"variables": variables, "cases": [{"template": s} | render(s, variables) for s in sources]}


def main():
    shared, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder = pathlib.Path(__file__).parent / "templates"
    for name, content in (("chats", chats(folder, shared)), ("expressions", expressions(folder))):
        text = json.dumps(content, ensure_ascii=False, indent=0, separators=(",", ":"))
        (out / f"chat_{name}.json").write_text(text + "\n")
        print(name, len(content["cases"]), "cases", len(text), "bytes")


if __name__ == "__main__":
    main()
