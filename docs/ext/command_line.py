"""The page of the command line, written from the commands' own help before every build."""

from __future__ import annotations

from typing import Any

import typer.main

from docs.ext.made_pages import made

INTRODUCTION = """# Command line

Made from `gaussfold --help`; the command itself says the same, `gaussfold train --help` for one of them.
"""


def page() -> str:
    """All commands, their panels of options as tables."""
    from gaussfold.cli.app import app
    from gaussfold.cli.errors import HELP

    group = typer.main.get_command(app)
    parts = [INTRODUCTION]
    for name, command in group.commands.items():  # type: ignore[attr-defined]  # a group has commands
        parts.append(f"## gaussfold {name}\n\n{_paragraphs(command.help or '')}\n")
        usage = " ".join(
            (part.metavar or part.name).upper() for part in command.params if part.param_type_name == "argument"
        )
        parts.append(f"```text\ngaussfold {name} [OPTIONS] {usage}\n```\n")
        panels: dict[str, list[Any]] = {}
        for part in command.params:
            panels.setdefault(getattr(part, "rich_help_panel", None) or "Options", []).append(part)
        for panel, members in panels.items():
            rows = [_row(part) for part in members if part.name != "help"]
            if rows:
                parts.append(f"**{panel}**\n\n| option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n")
    parts.append("## Exit codes\n\n| code | meaning |\n|---|---|\n" + "\n".join(_codes(HELP)) + "\n")
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    return "\n".join(line.strip() for line in text.replace("\b", "").split("\n"))


def _row(part: Any) -> str:
    names = (
        [*part.opts, *part.secondary_opts]
        if part.param_type_name == "option"
        else [(part.metavar or part.name).upper()]
    )
    said = " ".join((part.help or "").split()).replace("|", r"\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {said} |"


def _codes(text: str) -> list[str]:
    entries = text.removeprefix("Exit codes: ").rstrip(".").split("; ")
    rows = []
    for entry in entries:
        words = entry.split(" ")
        numbers = [word for word in words if word.rstrip(",").isdigit()]
        rows.append(f"| {' '.join(numbers)} | {' '.join(words[len(numbers) :])} |")
    return rows


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    return made(app, "command_line", page)
