# SPDX-License-Identifier: BSD-3-Clause
"""What a page of HTML is made of."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page by name, what is not closed, and what is referred to."""

    VOID = {"meta", "br", "link", "img", "hr"}

    def __init__(self, text):
        super().__init__()
        self.counts, self.open, self.text, self.links = Counter(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.counts[tag] += 1
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] += 1
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        """Its text in one line."""
        return " ".join(" ".join(self.text).split())
