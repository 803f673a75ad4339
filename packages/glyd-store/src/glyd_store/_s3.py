# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""A store in a bucket of S3, or of a service that speaks the same language."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from glyd import ParameterError
from glyd_store._s3_calls import call, create_client, read_body
from glyd_store._s3_lock import S3Lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

_READ_AHEAD_NBYTES = 4 << 20
_PART_NBYTES = 32 << 20


def split_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix of ``s3://bucket/prefix``; the prefix is empty or ends with a slash.

    Raises
    ------
    ParameterError
        When it is no such URL.
    """
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not url.startswith("s3://") or not bucket:
        raise ParameterError(f"{url!r} is no s3://bucket/prefix")
    prefix = prefix.strip("/")
    return bucket, prefix + "/" if prefix else ""


class S3File(io.RawIOBase):
    """An object of a bucket as a file that can seek.

    Parameters
    ----------
    client, bucket, name
        Where it is.
    """

    def __init__(self, client: Any, bucket: str, name: str) -> None:
        super().__init__()
        self._client, self._bucket, self._name = client, bucket, name
        self._size = int(call(lambda: client.head_object(Bucket=bucket, Key=name), name)["ContentLength"])
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place."""
        at = (0, self._at, self._size)[whence] + offset
        if at < 0:
            raise ValueError(f"cannot seek to {at}")
        self._at = at
        return at

    def readinto(self, out: Any) -> int:
        """Read the next bytes."""
        view = memoryview(out).cast("B")
        n = min(len(view), max(self._size - self._at, 0))
        if n:
            view[:n] = self._range(self._at, n)
            self._at += n
        return n

    def _range(self, start: int, n: int) -> bytes:
        def get() -> bytes:
            wanted = f"bytes={start}-{start + n - 1}"
            answer = self._client.get_object(Bucket=self._bucket, Key=self._name, Range=wanted)
            return read_body(answer, n)

        return call(get, self._name)


class S3Staged:
    """A temporary file here, until it is uploaded."""

    def __init__(self, backend: S3Backend) -> None:
        self._backend = backend
        self.file = cast("BinaryIO", tempfile.TemporaryFile())

    def publish(self, key: str, *, exclusive: bool = False) -> None:
        """Upload the file."""
        self.file.seek(0)
        self._backend.upload(key, self.file, exclusive=exclusive)
        self.file.close()

    def discard(self) -> None:
        """Close the file, which removes it."""
        self.file.close()


class S3Backend:
    """A store in a bucket.

    Parameters
    ----------
    url
        ``s3://bucket/prefix``.
    cache
        Folder for the index; None: the cache folder of the user.
    client
        A client of boto3; None: one as the environment configures it.
    """

    private_index = True
    decodes_max = 8  # each is a request, and some 30 ms
    read_only = False

    def __init__(self, url: str, cache: str | os.PathLike[str] | None = None, client: Any = None) -> None:
        self.url = url
        self.bucket, self.prefix = split_url(url)
        self._client = client or create_client()
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        self._cache = os.fspath(cache) if cache is not None else os.path.join(home, "glyd-store")

    def _name(self, key: str) -> str:
        return self.prefix + key

    def open(self, key: str) -> BinaryIO:
        """Open for reading; neighbouring bytes are fetched together."""
        return io.BufferedReader(S3File(self._client, self.bucket, self._name(key)), _READ_AHEAD_NBYTES)

    def read(self, key: str) -> bytes:
        """Return all bytes of a small object."""
        name = self._name(key)
        return call(lambda: read_body(self._client.get_object(Bucket=self.bucket, Key=name)), name)

    def size(self, key: str) -> int:
        """Return the number of bytes."""
        name = self._name(key)
        return int(call(lambda: self._client.head_object(Bucket=self.bucket, Key=name), name)["ContentLength"])

    def list(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys in order, with sizes."""
        for page in self._pages(Prefix=self._name(prefix)):
            for found in page.get("Contents", []):
                yield found["Key"][len(self.prefix) :], int(found["Size"])

    def _pages(self, **options: Any) -> Iterator[Any]:
        token: dict[str, str] = {}
        while True:
            page = call(
                lambda token=token: self._client.list_objects_v2(Bucket=self.bucket, **options, **token),  # type: ignore[misc]
                options["Prefix"],
            )
            yield page
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def last_entry(self) -> str | None:
        """Return the last key below ``journal/``: two listings, however many entries there are."""
        while True:
            folders = [
                found["Prefix"]
                for page in self._pages(Prefix=self._name("journal/"), Delimiter="/")
                for found in page.get("CommonPrefixes", [])
            ]
            if not folders:
                return None
            keys = [found["Key"] for page in self._pages(Prefix=max(folders)) for found in page.get("Contents", [])]
            if keys:
                return str(max(keys)[len(self.prefix) :])
            # a writer has emptied it since, so there is a later one

    def stage(self) -> S3Staged:
        """Start a temporary file."""
        return S3Staged(self)

    def upload(self, key: str, file: BinaryIO, *, exclusive: bool) -> None:
        """Write an object; it is visible whole or not at all."""
        name = self._name(key)
        size = file.seek(0, 2)
        file.seek(0)
        if size > 2 * _PART_NBYTES and not exclusive:
            self._upload_parts(name, file)
            return
        data = file.read()
        options = {"IfNoneMatch": "*"} if exclusive else {}
        try:
            call(lambda: self._client.put_object(Bucket=self.bucket, Key=name, Body=data, **options), name)
        except FileExistsError:
            # an answer that got lost is asked for again: then it is ourselves who were first
            if self.read(key) != data:
                raise

    def _upload_parts(self, name: str, file: BinaryIO) -> None:
        client, bucket = self._client, self.bucket
        upload = call(lambda: client.create_multipart_upload(Bucket=bucket, Key=name), name)["UploadId"]
        where = {"Bucket": bucket, "Key": name, "UploadId": upload}
        try:
            parts = []
            for number, data in enumerate(iter(lambda: file.read(_PART_NBYTES), b""), 1):
                part = call(
                    lambda number=number, data=data: client.upload_part(**where, PartNumber=number, Body=data),  # type: ignore[misc]
                    name,
                )
                parts.append({"PartNumber": number, "ETag": part["ETag"]})
            call(lambda: client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts}), name)
        except BaseException:
            with suppress(OSError):
                call(lambda: client.abort_multipart_upload(**where), name)
            raise

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects."""
        names = [self._name(key) for key in keys]
        for start in range(0, len(names), 1000):
            some = [{"Key": name} for name in names[start : start + 1000]]
            answer = call(
                lambda some=some: self._client.delete_objects(  # type: ignore[misc]
                    Bucket=self.bucket, Delete={"Objects": some, "Quiet": True}
                ),
                some[0]["Key"],
            )
            for failed in answer.get("Errors", []):
                raise OSError(errno.EIO, f"{failed.get('Code')}: {failed.get('Message')}", failed.get("Key"))

    def make_root(self) -> None:
        """Do nothing: the bucket must exist."""

    def prepare(self) -> None:
        """Do nothing: there are no folders."""

    def index_path(self, store_id: str | None) -> str | None:
        """Return the path in the cache folder."""
        return os.path.join(self._cache, store_id or "unknown", "index.sqlite")

    def free_reserve(self) -> bool:
        """Do nothing: buckets do not fill."""
        return False

    def fill_reserve(self) -> None:
        """Do nothing."""

    def clear_unfinished(self) -> None:
        """Abort uploads in parts that nobody goes on with."""
        found = call(
            lambda: self._client.list_multipart_uploads(Bucket=self.bucket, Prefix=self._name("streams/")), self.prefix
        )
        for upload in found.get("Uploads", []):
            where = {"Bucket": self.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
            with suppress(FileNotFoundError):
                call(lambda where=where: self._client.abort_multipart_upload(**where), upload["Key"])  # type: ignore[misc]

    @contextmanager
    def lock(self, timeout_s: float, *, force: bool = False) -> Iterator[None]:
        """Hold the object ``lock``, and keep it fresh meanwhile."""
        held = S3Lock(self._client, self.bucket, self._name("lock"), self.url)
        held.acquire(timeout_s, force=force)
        try:
            yield
        finally:
            held.release()


def iter_bucket(url: str) -> Iterator[tuple[str, int]]:
    """Yield URLs and sizes of the objects below ``s3://bucket/prefix``."""
    backend = S3Backend(url)
    for key, size in backend.list(""):
        yield f"s3://{backend.bucket}/{backend.prefix}{key}", size


def open_object(url: str) -> BinaryIO:
    """Open an object by its URL."""
    bucket, _, name = url.removeprefix("s3://").partition("/")
    return io.BufferedReader(S3File(create_client(), bucket, name), _READ_AHEAD_NBYTES)
