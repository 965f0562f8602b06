"""Fail the build of the site if a page loads anything from another server: without a network it would look broken."""

import re
from typing import Any

from mkdocs.exceptions import PluginError

# What a browser loads by itself, in contrast to a link that a person follows.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\s(?:src|srcset|data)=["']?(?P<of_element>(?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|icon|preconnect|preload|prefetch|modulepreload))[^>]*?\shref=["']?(?P<of_link>(?:https?:)?//[^"'\s>]+)"""
    r"""|\burl\(["']?(?P<of_style>(?:https?:)?//[^"')\s]+)"""
)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Check a page as it will be written (an event of mkdocs)."""
    if found := loaded_from_elsewhere(output):
        raise PluginError(f"{page.file.src_uri}: loads {found[0]}. Everything that a page loads belongs into docs/.")
    return output


def loaded_from_elsewhere(html: str) -> list[str]:
    """Return the addresses of other servers from which a browser would load something."""
    return [next(filter(None, match.groups())) for match in _LOADED.finditer(html)]
