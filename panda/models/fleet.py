"""The servers of one model: each call goes to one of them, and on to others when that fails."""

import math
import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import current_process
from typing import TypeVar

from panda.errors import ModelAwayError, ModelTimeoutError, Problem
from panda.models.model_server import AttemptError, FailureKind, ModelServer, TimeLimit

_Reply = TypeVar("_Reply")
_ROUNDS = 5
"""How often one call asks the servers there are."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0
_MOST_FAILURES = 3
"""Failures in a row after which a server is left alone."""
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 2.0, 30.0

_TOLD: Mapping[FailureKind, tuple[str, str, str]] = {
    "away": (
        "does not answer",
        "do not answer",
        "start the server, or correct location in models.yaml; then run the command again",
    ),
    "busy": ("is busy", "are busy", "run the command again once it has less to do, or name more servers"),
    "failing": (
        "fails",
        "fail",
        "see the server's log; if it lacks memory, give it a smaller model, context or number of slots",
    ),
}
"""What is told of one server and of several that failed in one way, and what to do about it."""


@dataclass
class Breaker:
    """
    Whether a server is asked: after failures in a row it is left alone for a growing while. One where nobody
    listens is dead: calls neither ask it meanwhile nor wait for it. One that has answered before may only be
    starting anew: it is dead once a whole call has waited for it in vain.
    """

    most_failures: float  # in a row, after which it is left alone; infinite if there is nowhere else to go
    failures: int = 0  # in a row
    rest_seconds: float = 0.0  # for how long it was left alone last; 0 once it has answered
    until: float = 0.0  # until when it is left alone
    words: str = ""  # what it said when it failed last
    kind: FailureKind = "failing"  # how it failed last
    is_expected: bool = False  # whether it has answered since it was last dead

    @property
    def is_dead(self) -> bool:
        return bool(self.failures) and self.kind == "away" and not self.is_expected

    def fail(self, now: float, error: AttemptError) -> None:
        """Note a failed attempt, and for how long the server asks to be left alone."""
        self.failures += 1
        self.words, self.kind = error.words, error.kind
        if (self.failures >= self.most_failures or self.is_dead) and now >= self.until:
            self._rest(now)
        self.until = max(self.until, now + error.asked_seconds)

    def give_up(self, now: float) -> None:
        """Note that a call has waited for it as long as it may."""
        if self.failures and self.kind == "away" and self.is_expected:
            self.is_expected = False
            self._rest(now)

    def succeed(self) -> None:
        self.failures = 0
        self.rest_seconds = self.until = 0.0
        self.is_expected = True

    def _rest(self, now: float) -> None:
        self.rest_seconds = min(2 * self.rest_seconds or _FIRST_REST_SECONDS, _LONGEST_REST_SECONDS)
        self.until = now + self.rest_seconds


class Fleet:
    """
    The servers of one model; what is known of them holds for the process. Worker i of a pool prefers server
    i, counted round, so that workers as many as servers never meet at one. Another process, which may be one
    of several on different machines, begins where its id says: if all began with the first server, it would
    have all first requests.
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[ModelServer],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self.servers = tuple(servers)
        self._sleep = sleep
        self._clock = clock
        self._breakers = [Breaker(_MOST_FAILURES if len(servers) > 1 else math.inf) for _ in servers]
        worker = re.search(r"-(\d+)$", current_process().name)
        self._turn = int(worker[1]) if worker else os.getpid()
        self._takes_turns = worker is None

    def limit(self, seconds: float) -> TimeLimit:
        return TimeLimit(seconds, self._clock() + seconds)

    def ask(self, exchange: Callable[[ModelServer], _Reply], limit: TimeLimit) -> _Reply:
        """
        What an exchange with one of the servers gives; it raises AttemptError if that failed. Another server
        follows at once; there is a pause when none is left that is not dead, and up to five such rounds while
        the time lasts. What has been answered is not asked again. Raises ModelAwayError where all failed or
        are left alone, ModelTimeoutError where the time was over while a server was at it.
        """
        final: set[int] = set()  # servers that this call does not ask again
        for round_number in range(_ROUNDS):
            for number in self._askable(final):
                try:
                    return self._try(number, exchange)
                except AttemptError as exc:
                    if exc.is_final:
                        final.add(number)
            awaited = [one for n, one in enumerate(self._breakers) if n not in final and not one.is_dead]
            if not awaited or round_number == _ROUNDS - 1:
                break
            pause = min(_FIRST_PAUSE_SECONDS * 2**round_number, _LONGEST_PAUSE_SECONDS)
            now = self._clock()
            soonest = min(one.until for one in awaited) - now
            pause = max(pause + random.uniform(0, _FIRST_PAUSE_SECONDS), soonest)
            if now + pause >= limit.end:
                break
            self._sleep(pause)
        for breaker in self._breakers:
            breaker.give_up(self._clock())
        raise self._away()

    def check_alive(self, *, within_seconds: float) -> None:
        """Raises ModelAwayError that names each server that does not answer in time."""
        dead: dict[str, str] = {}
        for server in self.servers:
            try:
                server.check_alive(within_seconds=within_seconds)
            except AttemptError as exc:
                dead[server.url] = exc.words
        if dead:
            raise self._error(dead, "away")

    def close(self) -> None:
        for server in self.servers:
            server.close()

    def _askable(self, without: Collection[int]) -> Iterator[int]:
        count, first = len(self.servers), self._turn
        for number in ((first + n) % count for n in range(count)):
            breaker = self._breakers[number]
            waited = count == 1 and not breaker.is_dead  # a lone server is asked after each pause
            if number not in without and (waited or self._clock() >= breaker.until):
                if self._takes_turns:
                    self._turn = number + 1
                yield number

    def _try(self, number: int, exchange: Callable[[ModelServer], _Reply]) -> _Reply:
        breaker = self._breakers[number]
        try:
            reply = exchange(self.servers[number])
        except AttemptError as exc:
            breaker.fail(self._clock(), exc)
            raise
        except ModelTimeoutError as exc:
            breaker.fail(self._clock(), AttemptError(exc.message))
            raise
        except Problem:  # there was an answer, if not the wanted one
            breaker.succeed()
            raise
        breaker.succeed()
        return reply

    def _away(self) -> ModelAwayError:
        now = self._clock()
        reasons, kinds = {}, set()
        for server, breaker in zip(self.servers, self._breakers, strict=True):
            rest = breaker.until - now
            is_told = rest >= 1 and len(self.servers) > 1
            pause = f" (left alone for {rest:,.0f} seconds more)" if is_told else ""
            reasons[server.url] = breaker.words + pause
            kinds.add(breaker.kind)
        return self._error(reasons, kinds.pop() if len(kinds) == 1 else "away")

    def _error(self, reasons: Mapping[str, str], kind: FailureKind) -> ModelAwayError:
        one, several, fix = _TOLD[kind]
        if len(self.servers) == 1:
            ((url, reason),) = reasons.items()
            return ModelAwayError(f"the model server of {self._name} {one}: {reason}", where=url, fix=fix)
        told = "; ".join(f"{url}: {reason}" for url, reason in reasons.items())
        count = f"{len(reasons)} of {len(self.servers)} model servers of {self._name}"
        return ModelAwayError(f"{count} {several}: {told}", where=f"models.{self._name}.location", fix=fix)
