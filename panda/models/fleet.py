"""The servers of one model: each call goes to the least busy one, and on to others when that fails."""

import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from panda.errors import ModelAwayError, ModelTimeoutError, PandaError
from panda.models.model_server import AttemptError, ModelServer, TimeLimit
from panda.models.server_slots import ServerSlots

_Reply = TypeVar("_Reply")
_ROUNDS = 5
"""How often one call asks the servers there are."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0
_MOST_FAILURES = 3
"""Failures in a row after which a server is left alone."""
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 2.0, 30.0


@dataclass
class Breaker:
    """
    Whether a server is asked: after failures in a row it is left alone for a growing while, then one request
    is let through (half open), which closes the breaker or opens it for twice as long.
    """

    most_failures: float  # in a row, after which it opens; infinite if it never does
    in_flight: int = 0  # requests of this process that the server has now
    failures: int = 0  # in a row
    rest_seconds: float = 0.0  # for how long it was left alone last; 0 once it has answered
    until: float = 0.0  # until when it is left alone
    words: str = ""  # what it said when it failed last

    def lets_through(self, now: float) -> bool:
        """Whether a request may go to the server: always if closed, one at a time if half open."""
        return now >= self.until and (self.failures < self.most_failures or not self.in_flight)

    def fail(self, now: float, words: str, asked_seconds: float) -> None:
        """Note a failed attempt, and for how long the server asks to be left alone."""
        self.failures += 1
        self.words = words
        if self.failures >= self.most_failures and now >= self.until:
            self.rest_seconds = min(2 * self.rest_seconds or _FIRST_REST_SECONDS, _LONGEST_REST_SECONDS)
            self.until = now + self.rest_seconds
        self.until = max(self.until, now + asked_seconds)

    def succeed(self) -> None:
        """Note that the server has answered."""
        self.failures = 0
        self.rest_seconds = self.until = 0.0


@dataclass(frozen=True)
class _Taken:
    """A server that was chosen for one request."""

    number: int  # its place in the list
    slot: int | None  # what holds the slot between processes


class Fleet:
    """
    The servers of one model. Calls may come from several threads.

    The requests of other processes of this machine are known by their slots. Of servers with equally few
    requests each is taken in its turn. Where the turns begin depends on the process: workers on several
    machines share a fleet without knowing of each other's requests, and if all began with the first server,
    it would have all first requests and the others none.

    A lone server has no breaker, since there is nowhere else to go.

    Args:
        name: The model's key in models.yaml.
        servers: At least one.
        slots: The requests that they have from all processes.
        sleep: Waits for so many seconds.
        clock: Gives monotonic seconds; the same for the servers.
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[ModelServer],
        slots: ServerSlots,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self.servers = tuple(servers)
        self._slots = slots
        self._sleep = sleep
        self._clock = clock
        self._is_lone = len(self.servers) == 1
        self._breakers = [Breaker(math.inf if self._is_lone else _MOST_FAILURES) for _ in self.servers]
        self._turn = os.getpid() % len(self.servers)
        self._lock = threading.Lock()

    def limit(self, seconds: float) -> TimeLimit:
        """A time limit that begins now."""
        return TimeLimit(seconds, self._clock() + seconds)

    def ask(self, exchange: Callable[[ModelServer], _Reply], limit: TimeLimit) -> _Reply:
        """
        What an exchange with one of the servers gives.

        A server that fails is followed by another one at once; there is a pause when none is left, and up to
        five such rounds while the time lasts. What has been answered is not asked again.

        Args:
            exchange: Asks the server it is given and raises AttemptError if that failed.

        Raises:
            ModelAwayError: All servers failed or are left alone.
            ModelTimeoutError: The time was over while a server was at it.
            PandaError: Whatever else the exchange raises.
        """
        final: set[int] = set()  # servers that this call does not ask again
        rounds = 0
        while True:
            before = frozenset(final)
            failed = set(before)
            while (taken := self._take(failed)) is not None:
                try:
                    return self._try(taken, exchange)
                except AttemptError as exc:
                    failed.add(taken.number)
                    if exc.is_final:
                        final.add(taken.number)
            if failed != before:  # else all are left alone, or busy with a request that decides
                rounds += 1
            if rounds == _ROUNDS or len(final) == len(self.servers):
                raise self._away()
            pause = self._pause(rounds, final)
            if self._clock() + pause >= limit.end:
                raise self._away()
            self._sleep(pause)

    def check_alive(self, *, within_seconds: float) -> None:
        """
        Raises:
            ModelAwayError: A server does not answer in time; it names each such server.
        """
        dead: dict[str, str] = {}
        for server in self.servers:
            try:
                server.check_alive(within_seconds=within_seconds)
            except AttemptError as exc:
                dead[server.url] = exc.words
        if dead:
            raise self._error(dead)

    def close(self) -> None:
        """Give all connections up."""
        for server in self.servers:
            server.close()

    def _take(self, without: set[int]) -> "_Taken | None":
        """The least busy server that may be asked, which then has one request more; None if none may be."""
        with self._lock:
            now = self._clock()
            free = [
                number
                for number, breaker in enumerate(self._breakers)
                if number not in without and (self._is_lone or breaker.lets_through(now))
            ]
            if not free:
                return None
            count = len(self.servers)
            free.sort(key=lambda n: (self._breakers[n].in_flight, (n - self._turn) % count))
            index, slot = self._slots.take([self.servers[number].url for number in free])
            number = free[index]
            self._turn = (number + 1) % count
            self._breakers[number].in_flight += 1
            return _Taken(number, slot)

    def _try(self, taken: "_Taken", exchange: Callable[[ModelServer], _Reply]) -> _Reply:
        """What the exchange gives with a server that was taken; what became of it is noted."""
        breaker = self._breakers[taken.number]
        try:
            reply = exchange(self.servers[taken.number])
        except AttemptError as exc:
            self._note_failure(breaker, exc.words, exc.asked_seconds)
            raise
        except ModelTimeoutError as exc:
            self._note_failure(breaker, exc.message)
            raise
        except PandaError:  # there was an answer, if not the wanted one
            self._note_answer(breaker)
            raise
        else:
            self._note_answer(breaker)
            return reply
        finally:
            self._slots.give_back(taken.slot)
            with self._lock:
                breaker.in_flight -= 1

    def _note_failure(self, breaker: Breaker, words: str, asked_seconds: float = 0.0) -> None:
        with self._lock:
            breaker.fail(self._clock(), words, asked_seconds)

    def _note_answer(self, breaker: Breaker) -> None:
        with self._lock:
            breaker.succeed()

    def _pause(self, rounds: int, final: set[int]) -> float:
        """Seconds until servers are asked again: more after each round, and at least until one may be."""
        pause: float = min(_FIRST_PAUSE_SECONDS * 2 ** (rounds - 1), _LONGEST_PAUSE_SECONDS)
        with self._lock:
            soonest = min(one.until for number, one in enumerate(self._breakers) if number not in final)
        return max(pause + random.uniform(0, _FIRST_PAUSE_SECONDS), soonest - self._clock())

    def _away(self) -> ModelAwayError:
        """The error when all servers have failed; of each it tells what it said last."""
        now = self._clock()
        reasons = {}
        for server, breaker in zip(self.servers, self._breakers, strict=True):
            rest = breaker.until - now
            pause = f" (left alone for {rest:,.0f} seconds more)" if rest >= 1 and not self._is_lone else ""
            reasons[server.url] = breaker.words + pause
        return self._error(reasons)

    def _error(self, reasons: Mapping[str, str]) -> ModelAwayError:
        """
        Args:
            reasons: What is wrong, by URL of a server.
        """
        if self._is_lone:
            ((url, reason),) = reasons.items()
            return ModelAwayError(
                f"the model server of {self._name} does not answer: {reason}",
                where=url,
                fix="start the server, or correct location in models.yaml; then run the command again",
            )
        told = "; ".join(f"{url}: {reason}" for url, reason in reasons.items())
        count = f"{len(reasons)} of {len(self.servers)}"
        return ModelAwayError(
            f"{count} model servers of {self._name} do not answer: {told}",
            where=f"models.{self._name}.location",
            fix="start the servers, or correct location in models.yaml; then run the command again",
        )
