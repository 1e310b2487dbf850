"""A page that describes the server, from its own OpenAPI description; it loads nothing and runs no script."""

from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
code, pre { font: 14px/1.5 ui-monospace, monospace; } pre { background: #f4f4f4; padding: .75rem; overflow-x: auto; }
h2 { font-size: 1.1rem; margin-top: 2rem; } table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd; } pre { background: #2a2a2a; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The content security policy of the page."""


def render(api: Mapping[str, Any]) -> str:
    """Write an OpenAPI description as a page.

    Args:
        api: what FastAPI's ``openapi()`` gives.
    """
    schemas = api.get("components", {}).get("schemas", {})
    parts = [
        _operation(path, method, operation, schemas)
        for path, methods in api["paths"].items()
        for method, operation in methods.items()
    ]
    title = escape(f"{api['info']['title']} {api['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f'<h1>{title}</h1><p>The same for programs: <a href="/openapi.json">/openapi.json</a></p>'
        f"{''.join(parts)}</html>"
    )


def _operation(path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(_kind(about))}<td>{escape(about.get('description', ''))}"
        for body in content.values()
        for name, about in schemas.get(_named(body.get("schema", {})), {}).get("properties", {}).items()
    )
    kinds = ", ".join(map(escape, content))
    text = escape(operation.get("description", operation.get("summary", ""))).replace("\n\n", "<p>")
    body = f"<p>Body: {kinds}<table>{rows}</table>" if content else ""
    return f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{text}{body}"


def _named(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _kind(about: Mapping[str, Any]) -> str:
    kinds = [about, *about.get("anyOf", ())]
    return " or ".join(str(each["type"]) for each in kinds if "type" in each) or "any"
