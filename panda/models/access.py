"""How the servers of a model are reached: addresses, headers, proxy, certificates, with secrets filled in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from panda.documents.secrets import has_userinfo
from panda.models.models_file import VARIABLES, ModelsFile, ModelSpec, server_place

_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ServerAccess:
    """Where the servers of a model are and what they are sent; nothing of it but the keys may be shown."""

    addresses: Mapping[str, str]  # real base URLs by those of models.yaml, which may name variables
    headers: Mapping[str, str]
    proxy: str | None = None  # None goes by the environment
    ca_file: Path | None = None  # certificates that are trusted beside the usual ones
    secrets: tuple[str, ...] = field(default=(), repr=False)  # values of variables in headers and proxy
    hosts: tuple[str, ...] = field(default=(), repr=False)
    """Values of variables in addresses: no error may hold them, but a reply may speak of the same host."""


def plain_access(spec: ModelSpec, *, headers: Mapping[str, str] | None = None) -> ServerAccess:
    """Return the access to the servers of a model whose entry names no variables."""
    return ServerAccess(
        addresses={url: url for url in spec.servers}, headers={**(headers or {}), **spec.headers}
    )


def read_access(spec: ModelSpec, file: ModelsFile, environ: Mapping[str, str]) -> ServerAccess:
    """
    Return the access to the servers of a model, with the key and the values of environment variables.

    Raises:
        ModelFileError: A variable is not set, or its value cannot stand where it is named; the error names
            file, key and variable, and quotes no value.
    """
    values: dict[str, list[str]] = {"location": [], "headers": [], "proxy": []}
    at = f"models.{spec.name}"

    def fill(text: str, key: str) -> str:
        def value_of(match: re.Match[str]) -> str:
            value = environ.get(match[1], "").strip()
            if not value:
                message = f"the environment variable {match[1]} is not set"
                raise file.error(
                    f"{at}.{key}", message, f"export {match[1]}, or write the value into the file"
                )
            values[key].append(value)
            return value

        return VARIABLES.sub(value_of, text)

    addresses: dict[str, str] = {}
    for url in spec.servers:
        addresses[url] = fill(url, "location")
        if addresses[url] != url and (has_userinfo(addresses[url]) or server_place(addresses[url]) is None):
            message = f"{url} is no http:// or https:// URL with the values of its variables"
            fix = "correct the variables: a URL without blanks, user name and password"
            raise file.error(f"{at}.location", message, fix)
    headers = _key_header(spec, file, environ)
    for name, text in spec.headers.items():
        headers[name] = fill(text, "headers")
        if not _HEADER_VALUE.fullmatch(headers[name]):
            message = f"the header {name} has a value that cannot be sent, with its variables"
            raise file.error(f"{at}.headers", message, "set them to printable ASCII characters")
    ca_file = file.path.parent / Path(spec.ca_file).expanduser() if spec.ca_file else None
    if ca_file is not None and not ca_file.is_file():
        fix = "name a PEM file with the certificates of the authority that signed the server's"
        raise file.error(f"{at}.ca_file", f"there is no file {ca_file}", fix)
    return ServerAccess(
        addresses=addresses,
        headers=headers,
        proxy=fill(spec.proxy, "proxy") if spec.proxy else None,
        ca_file=ca_file,
        secrets=(*values["headers"], *values["proxy"]),
        hosts=tuple(values["location"]),
    )


def _key_header(spec: ModelSpec, file: ModelsFile, environ: Mapping[str, str]) -> dict[str, str]:
    if spec.api_key_env is None:
        return {}
    key = environ.get(spec.api_key_env, "").strip()
    place = f"models.{spec.name}.api_key_env"
    if not key:
        message = f"the environment variable {spec.api_key_env} is not set"
        raise file.error(place, message, f"export {spec.api_key_env} with the server's key")
    if not (key.isascii() and key.isprintable()):
        message = f"the key in {spec.api_key_env} has characters that no header can hold"
        raise file.error(place, message, "set it to the key alone: printable ASCII characters")
    return {"Authorization": f"Bearer {key}"}
