"""Every command that the README shows exists, with the options that it shows."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest


def readme_lines(repository: Path) -> list[str]:
    """The lines of the README's code blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", (repository / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


@cache
def help_text(*command: str) -> str:
    """The `--help` of an lmk-rag command, unwrapped."""
    code = "import sys; from lmk_rag.cli import main; sys.argv[0] = 'lmk-rag'; main()"
    environment = {**os.environ, "COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"}
    shown = subprocess.run(
        [sys.executable, "-c", code, *command, "--help"], env=environment, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_lmk_rag_commands_and_options_exist(repository: Path) -> None:
    commands = [shlex.split(line) for line in readme_lines(repository) if line.startswith("lmk-rag ")]
    assert {words[1] for words in commands} >= {"ingest", "search", "ui"}
    for _, subcommand, *arguments in commands:
        options = {word.partition("=")[0] for word in arguments if word.startswith("-")}
        known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text(subcommand)))
        assert options <= known, f"lmk-rag {subcommand}: no {options - known}"


def test_commands_named_in_the_text_exist(repository: Path) -> None:
    [sentence] = re.findall(r"^Other commands: (.*?)\. ", (repository / "README.md").read_text(), re.M)
    names = re.findall(r"`(\w+)`", sentence)
    assert len(names) > 3
    for name in names:
        assert help_text(name)


def test_make_targets_and_variables_exist(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text()
    targets = set(re.findall(r"^(\w+):", makefile, re.M))
    variables = set(re.findall(r"^(\w+) \?=", makefile, re.M))
    commands = [line.split("#")[0].split() for line in readme_lines(repository) if line.startswith("make ")]
    assert {words[1] for words in commands} >= {"run", "test", "setup"}
    for _, target, *settings in commands:
        assert target in targets
        assert {setting.partition("=")[0] for setting in settings} <= variables


def test_pip_lines_name_what_is_there(repository: Path) -> None:
    lines = [line for line in readme_lines(repository) if line.startswith("pip install ")]
    pinned = (repository / "constraints.txt").read_text().splitlines()
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any("--constraint constraints.txt" in line for line in lines)
    for line in lines:
        assert all(pin in pinned for pin in re.findall(r"\S+==\S+", line)), line
        for named in re.findall(r"\.\[(.*?)\]", line):
            assert set(named.split(",")) <= set(extras), line


@pytest.mark.parametrize("page", ["README.md", "docs/decisions.md", "CHANGELOG.md"])
def test_links_between_files_lead_somewhere(page: str, repository: Path) -> None:
    source = repository / page
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", source.read_text(encoding="utf-8")):
        assert (source.parent / target).exists(), target
