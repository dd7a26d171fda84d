"""Help and documentation: every command has examples, pages are true and their links lead
somewhere, the scripts of examples/ run."""

import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

import program
from program import CHECKOUT, PROGRAM

PAGES = sorted([*CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("*.md"), CHECKOUT / "plait/README.md",
                *CHECKOUT.glob("examples/*.md")])


def commands(plait, path=()):
    """Yields every command with its help, found in the help itself."""
    text = plait.ok(*path, "--help").out
    yield path, text
    below = text.partition("Subcommands:")[2].split("\n\n")[0]
    for name in re.findall(r"^  ([\w-]+)", below, re.MULTILINE):
        yield from commands(plait, (*path, name))


def test_help_of_every_command(plait):
    """Help describes the command and each option, and has examples that name it and known options;
    commands that print a result have --json."""
    all_commands = dict(commands(plait))
    assert len(all_commands) >= 19
    for path, text in all_commands.items():
        lines = text.strip().splitlines()
        assert lines[0].split(), path
        assert "Usage: plait" in text and "--help" in text, path
        if not path:
            continue
        assert ("--json" in text and "--quiet" in text) or path == ("bench",), path
        name = " ".join(path)
        examples = text.partition("Examples:")[2]
        parent = all_commands[path[:1]].partition("Examples:")[2]
        assert f"plait {name}" in (examples or parent), path
        known = set(re.findall(r"--?[\w-]+", text.partition("Examples:")[0]))
        for line in examples.splitlines():
            called = re.search(rf"plait {name} ([^#>|]*)", line)
            given = re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", called[1]) if called else []
            # A command with subcommands shows examples of those.
            below = "".join(t for p, t in all_commands.items() if p[:len(path)] == path)
            assert all(option in known or option in below for option in given), (path, line)


def test_commands_page():
    """The page is made from --help."""
    done = subprocess.run([CHECKOUT / "scripts/commands-doc", "--check"], capture_output=True,
                          text=True, env=program.environment(PLAIT_PROGRAM=PROGRAM))
    assert done.returncode == 0, done.stderr


def anchors(page):
    """Returns the anchors that GitHub and mkdocs make of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{page}: {link}"
        assert not anchor or anchor in anchors(target), f"{page}: {link}"


def test_site_has_every_page():
    """mkdocs.yml lists the pages of docs/, and nothing else; pages link to no page outside, which a
    site would not have."""
    listed = re.findall(r"^  - .*: (\S+\.md)$", (CHECKOUT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.name for page in sorted(CHECKOUT.glob("docs/*.md"))]
    for page in CHECKOUT.glob("docs/*.md"):
        assert "](../" not in page.read_text(), page


def test_files_that_guides_name():
    for page in (CHECKOUT / "docs/adding.md", CHECKOUT / "docs/README.md"):
        for path in re.findall(r"`((?:plait|cli|tests|scripts|examples)/[\w./-]+)`",
                               page.read_text()):
            assert "NAME" in path or (CHECKOUT / path).exists(), (page, path)


# --- examples ---


def run_example(name, folder, **settings):
    done = subprocess.run(["sh", CHECKOUT / "examples" / name, folder], capture_output=True,
                          text=True, timeout=300, cwd=folder,
                          env=program.environment(PLAIT=PROGRAM, **settings))
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_first_run(tmp_path):
    run_example("first_run.sh", tmp_path)
    result = json.loads((tmp_path / "gcn.json").read_text())
    assert result["ranks"] == 2 and result["test_accuracy"] > 0.9
    assert np.load(tmp_path / "classes.npy").shape == (2000,)
    assert "</html>" in (tmp_path / "report.html").read_text()


def test_compare_models(tmp_path):
    run_example("compare_models.sh", tmp_path)
    page = (tmp_path / "comparison.html").read_text()
    assert all(f"{model}, training" in page for model in ("mlp", "gcn", "sage", "gat"))


def test_aggregate(tmp_path):
    python = CHECKOUT / ".venv/bin/python"
    out = run_example("aggregate.sh", tmp_path,
                      PYTHON=str(python) if python.exists() else shutil.which("python3"))
    assert "largest difference within the grid: 0.0" in out


def test_examples_are_listed():
    scripts = {name for name in os.listdir(CHECKOUT / "examples") if name.endswith(".sh")}
    assert scripts == set(re.findall(r"\w+\.sh", (CHECKOUT / "examples/README.md").read_text()))
