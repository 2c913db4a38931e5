from collections.abc import Sequence
from xml.etree.ElementTree import Element, fromstring

from hypothesis import strategies as st

from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import Direction, Trace


def parsed(xml: str) -> Element:
    return fromstring(f"<stream xmlns='jabber:client'>{xml}</stream>")[0]  # noqa: S314 - ours


def append(
    trace: Trace, direction: Direction, connection: str, xml: Element | str, at: float
) -> None:
    trace.append(direction, connection, xml, xml_of(xml).encode("utf-8", "surrogatepass"), at)


def trees(
    names: Sequence[str],
    namespaces: Sequence[str],
    attributes: Sequence[str],
    values: Sequence[str],
    depth: int = 3,
) -> st.SearchStrategy[Element]:
    """Elements of these names, with these attributes, that hold one another so deeply."""
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    held = st.dictionaries(st.sampled_from(attributes), st.sampled_from(values) | texts)

    def made(namespace: str, name: str, held: dict[str, str], text: str) -> Element:
        element = Element(f"{{{namespace}}}{name}", held)
        element.text = text
        return element

    def filled(element: Element, children: list[Element]) -> Element:
        element.extend(children)
        return element

    leaves = st.builds(made, st.sampled_from(namespaces), st.sampled_from(names), held, texts)
    elements = leaves
    for _ in range(depth):
        elements = st.builds(filled, leaves, st.lists(elements, max_size=3))
    return elements
