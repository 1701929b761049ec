"""What a text that is no source of a model may have been meant as."""

import re

_HUB_PAGE = re.compile(
    r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/([^/:?#]+)/([^/:?#]+)([^?#]*)", re.IGNORECASE
)
_REVISION = re.compile(r"/(?:resolve|blob|raw|tree)/[^/]+(?=/|$)")
_SERVER_ADDRESS = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):\d{2,5}(?:/\S*)?", re.ASCII)
_TAGGED_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)*:[\w.-]+", re.ASCII)


def find_hub_source(text: str) -> str | None:
    """
    Return the source that a page of Hugging Face means, None for any other text.

    >>> find_hub_source("https://huggingface.co/ann/tiny/resolve/main/q4/small.gguf?download=true")
    'hf:ann/tiny/q4/small.gguf'
    >>> find_hub_source("hf.co/ann/tiny:Q4_K_M")
    'hf:ann/tiny/FILE.gguf'
    """
    match = _HUB_PAGE.match(text)
    if match is None:
        return None
    name = _REVISION.sub("", match[3], count=1).strip("/")
    if not name.lower().endswith(".gguf"):
        name = "FILE.gguf"
    return f"hf:{match[1]}/{match[2]}/{name}"


def find_meant_source(text: str) -> str | None:
    """
    Return the source that an address without http://, or a name without ollama:, means; None for other texts.

    >>> find_meant_source("127.0.0.1:8080/v1"), find_meant_source("qwen3:4b"), find_meant_source("qwen3")
    ('http://127.0.0.1:8080/v1', 'ollama:qwen3:4b', None)
    """
    if _SERVER_ADDRESS.fullmatch(text):
        return f"http://{text}"
    if _TAGGED_NAME.fullmatch(text):
        return f"ollama:{text}"
    return None
