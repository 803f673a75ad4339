# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Headers and small files of a model that may be far away: nothing else is fetched."""

from __future__ import annotations

import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Protocol

from glyd_codec._errors import FormatError, ParameterError, TruncatedError
from glyd_codec._models._safetensors import HEADER_MAX, parse
from glyd_codec._models._source import (
    HUB_ID,
    INDEX_MAX,
    INDEX_SUFFIX,
    read_file,
    read_header,
    weight_files,
    weight_map_of,
)
from glyd_codec._version import __version__

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import Any

    from glyd_codec._models._safetensors import Header

_FIRST_NBYTES = 1 << 17  # of a header: most are shorter; the rest of a longer one takes a second request
_TIMEOUT_S = 30
_INDEX = f"model{INDEX_SUFFIX}"


class Place(Protocol):
    """Where the files of a model are."""

    def small_file(self, name: str, limit: int) -> bytes | None:
        """Return a file, or None when there is none."""

    def header(self, name: str) -> Header:
        """Return the header of a weight file."""

    def weight_files(self) -> list[str]:
        """Return the names of the weight files."""


class Folder:
    """A model on disk."""

    def __init__(self, path: str) -> None:
        self.path = path

    def small_file(self, name: str, limit: int) -> bytes | None:
        """Return a file, or None when there is none."""
        path = os.path.join(self.path, name)
        return read_file(path, limit) if os.path.exists(path) else None

    def header(self, name: str) -> Header:
        """Return the header of a weight file."""
        return read_header(self.path, name)

    def weight_files(self) -> list[str]:
        """Return the names of the weight files."""
        return weight_files(self.path)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and gives no token to another host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None:
            old, target = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(new.full_url)
            if (old.scheme, old.netloc) != (target.scheme, target.netloc):
                new.remove_header("Authorization")
        return new


class Web:
    """A model behind a URL.

    Parameters
    ----------
    base
        URL of its directory, without a slash at the end.
    token
        For the server, or None.
    """

    def __init__(self, base: str, token: str | None = None) -> None:
        self.base = base
        self._token = token
        self._opener = urllib.request.OpenerDirector()  # http and https, nothing else
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPErrorProcessor(),
            urllib.request.HTTPDefaultErrorHandler(),
            _Redirects(),
            urllib.request.UnknownHandler(),
        ):
            self._opener.add_handler(handler)

    def _get(self, name: str, first: int | None, nbytes: int) -> tuple[bytes, int | None]:
        """Return bytes of a file from ``first`` on (None: all of it), and the size of the file if it is known.

        Raises
        ------
        FileNotFoundError, PermissionError, OSError
            What the server said.
        """
        url = f"{self.base}/{urllib.parse.quote(name)}"
        request = urllib.request.Request(url, headers={"User-Agent": f"glyd-codec/{__version__}"})  # noqa: S310
        request.add_header("Accept-Encoding", "identity")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if first is not None:
            request.add_header("Range", f"bytes={first}-{first + nbytes - 1}")
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                if first is None:
                    return answer.read(nbytes), None
                if answer.status == 206:
                    return answer.read(nbytes), _file_nbytes(answer.headers.get("Content-Range"))
                size = answer.headers.get("Content-Length")  # all of it: read what is wanted and hang up
                if first > nbytes:
                    raise FormatError(f"{url}: the server does not send parts of files")
                data = answer.read(first + nbytes)
                return data[first:], int(size) if size and size.isdecimal() else None
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 404:
                raise FileNotFoundError(f"{url}: not there (404)") from None
            if error.code == 416:
                return b"", None
            if error.code in {401, 403}:
                raise PermissionError(
                    f"{url}: not allowed ({error.code}): it may need a token, or terms accepted"
                ) from None
            raise OSError(f"{url}: the server says {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise OSError(f"{url}: {error.reason}") from None
        except http.client.HTTPException as error:
            raise OSError(f"{url}: {type(error).__name__}, the answer is cut short or none") from None
        except TimeoutError:
            raise OSError(f"{url}: no answer within {_TIMEOUT_S} s") from None

    def small_file(self, name: str, limit: int) -> bytes | None:
        """Return a file, or None when there is none."""
        try:
            data, _ = self._get(name, None, limit + 1)
        except FileNotFoundError:
            return None
        if len(data) > limit:
            raise FormatError(f"{name}: more than {limit} bytes", expected=limit, found=len(data))
        return data

    def header(self, name: str) -> Header:
        """Return the header of a weight file: one request, or two for one of more than 128 KiB."""
        raw, size = self._get(name, 0, _FIRST_NBYTES)
        if len(raw) < 8:
            raise TruncatedError(f"{name}: {len(raw)} bytes are no safetensors file", expected=8, found=len(raw))
        length = int.from_bytes(raw[:8], "little")
        if length > HEADER_MAX:
            raise FormatError(f"{name}: header of {length} bytes, more than {HEADER_MAX}: no safetensors file")
        missing = 8 + length - len(raw)
        if missing > 0:
            if len(raw) == _FIRST_NBYTES:
                raw += self._get(name, _FIRST_NBYTES, missing)[0]
            if len(raw) < 8 + length:
                raise TruncatedError(
                    f"{name}: header of {length} bytes in a file of {len(raw)}", expected=8 + length, found=len(raw)
                )
        raw = raw[: 8 + length]
        return parse(raw, None if size is None else size - len(raw), name)

    def weight_files(self) -> list[str]:
        """Return the names of the weight files: those of the index, or the one that goes without."""
        raw = self.small_file(_INDEX, INDEX_MAX)
        return ["model.safetensors"] if raw is None else sorted(set(weight_map_of(raw, _INDEX).values()))


def _file_nbytes(content_range: str | None) -> int | None:
    match = re.fullmatch(r"bytes \d+-\d+/(\d{1,18})", content_range or "")
    return int(match[1]) if match else None


def find_place(model: str, revision: str | None, token: str | bool | None) -> tuple[Place, str | None]:
    """Return where the files of a model are, and the name of its one weight file, if ``model`` names it.

    Raises
    ------
    FileNotFoundError
        Neither there nor a name that the hub may have.
    ParameterError
        A revision for what is not of the hub.
    """
    is_url = re.match(r"https?://", model) is not None
    if os.path.lexists(model) or not (is_url or HUB_ID.fullmatch(model)):
        if revision is not None:
            raise ParameterError(f"revision {revision!r} goes with a model of the hub; {model} is a path")
        if model.endswith(".safetensors") and os.path.isfile(model):
            return Folder(os.path.dirname(model) or "."), os.path.basename(model)
        os.listdir(model)  # raises what fits
        return Folder(model), None
    if is_url:
        if revision is not None:
            raise ParameterError(f"revision {revision!r} goes with a model of the hub; {model} is a URL")
        base, _, last = model.partition("?")[0].rstrip("/").rpartition("/")
        if last.endswith(".safetensors"):
            return Web(base), urllib.parse.unquote(last)
        return Web(f"{base}/{last}"), None
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return Folder(_cached(model, revision)), None
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    return Web(f"{endpoint}/{model}/resolve/{urllib.parse.quote(revision or 'main', safe='')}", _token(token)), None


def _cached(model: str, revision: str | None) -> str:
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - only its cache needs it
    except ImportError:
        raise ParameterError(
            f"{model}: looking into the cache of the hub takes: pip install 'glyd-codec[models]'"
        ) from None
    return str(snapshot_download(model, revision=revision, local_files_only=True))


def _token(token: str | bool | None) -> str | None:
    if isinstance(token, str) or token is False:
        return token or None
    try:
        from huggingface_hub import get_token  # noqa: PLC0415 - where the user may have logged in
    except ImportError:
        return os.environ.get("HF_TOKEN") or None
    found = get_token()
    return str(found) if found else None
