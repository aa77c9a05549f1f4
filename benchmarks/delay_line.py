"""A network that is far away, between programs of one machine: what passes is held for a while.

A port of the loopback interface leads to a server's. Each chunk goes on so many seconds after it
came, in order, and any number of them may be on the way: latency grows, bandwidth does not shrink.
It counts what passes, and how often a client has waited for an answer.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Self

from tests.servers.server import free_port

__all__ = ["DelayLine"]

_CHUNK = 1 << 16


class DelayLine:
    """The way to one server; a context manager that relays while it is entered.

    Attributes
    ----------
    port : int
        Leads to the server's.
    seconds : float
        For which each chunk is held, on the way there and on the way back; may change at any time.
    n_bytes : list of int
        What has passed: there, and back.
    n_trips : int
        How often a client has spoken after the server had, on all connections together.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.seconds = 0.0
        self.n_bytes, self.n_trips = [0, 0], 0
        self._to = 0
        self._relays: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def to(self, port: int) -> Self:
        """Lead to this port."""
        self._to = port
        return self

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        """Cut what is connected."""
        self._server.close()
        for each in self._open:
            each.close()
        await asyncio.gather(*self._relays)

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        spoke, both = [1], {back, writer}
        self._open |= both
        ways = ((reader, back, 0), (there, writer, 1))
        await asyncio.gather(*(self._pass(*ends, way, spoke) for *ends, way in ways))
        self._open -= both
        for each in both:
            each.close()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        way: int,
        spoke: list[int],
    ) -> None:
        """Pass on what comes one way; ``spoke`` is who has spoken last on the connection."""
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sending, chunk = asyncio.create_task(self._send(held, writer)), b"-"
        while chunk:
            try:
                chunk = await reader.read(_CHUNK)
            except OSError:
                chunk = b""
            self.n_bytes[way] += len(chunk)
            self.n_trips += bool(chunk) and (spoke[0], way) == (1, 0)
            spoke[0] = way
            held.put_nowait((self._loop.time() + self.seconds, chunk))
        await sending

    async def _send(
        self, held: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        """Send each chunk when it is due; an empty one is the end."""
        chunk = b"-"
        # Whoever has gone wants no more.
        with suppress(OSError):
            while chunk:
                due, chunk = await held.get()
                if (wait := due - self._loop.time()) > 0.0:
                    await asyncio.sleep(wait)
                writer.write(chunk)
                await writer.drain()
            writer.write_eof()
