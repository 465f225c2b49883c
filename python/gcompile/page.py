"""What a notebook shows for a project: its figures, and the picture of its memory that its report has."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    from .project import Project


def _row(name: str, value: Any) -> str:
    return f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(str(value))}</td></tr>"


def _ports(ports: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{port['name']}: {port['element']}[{', '.join(map(str, port['shape']))}]" for port in ports) or "none"


def html_of(project: Project) -> str:
    manifest = project.manifest
    of_runs = manifest.get("statistics", {})
    rows = [("target", f"{project.target}, {manifest['options']}"), ("inputs", _ports(manifest["inputs"])),
            ("outputs", _ports(manifest["outputs"])), ("arena", f"{manifest['arena_bytes']:,} bytes"),
            ("weights", f"{manifest['weights_bytes']:,} bytes"), ("state", f"{manifest['state_bytes']:,} bytes"),
            *((name, f"{of_runs[key]:,}") for name, key in (("calls", "calls"), ("kernels", "kernels"),
                                                            ("multiply-adds", "multiply_adds")) if key in of_runs),
            ("folder", project.path)]
    table = "".join(_row(name, value) for name, value in rows)
    return f"<h4>gcompile: {html.escape(project.name)}</h4><table>{table}</table>{_memory(project)}"


def _memory(project: Project) -> str:
    """The picture, with those rules of the report's style that are for pictures; empty where there is no report."""
    try:
        report = (project.path / "report.html").read_text(encoding="utf-8")
    except OSError:
        return ""
    picture = re.search(r'<svg[^>]*aria-label="memory plan".*?</svg>', report, re.DOTALL)
    if picture is None:
        return ""
    colors = re.search(r":root (\{[^}]*\})", report)
    rules = re.findall(r"(?:^|(?<=\} ))(svg[^{}]*)(\{[^}]*\})", report, re.MULTILINE)
    style = "".join(", ".join(f".gcompile-plan {part.strip()}" for part in names.split(",")) + body for names, body in rules)
    return (f"<style>.gcompile-plan {colors[1] if colors else '{}'}{style}</style>"
            f"<div class='gcompile-plan' style='background: var(--page); overflow: auto'>{picture[0]}</div>")
