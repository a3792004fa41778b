"""One connection that speaks Kafka: frames to requests, requests to handlers, answers out in order.

Kafka's rule is one request at a time, in order. Produce is the exception that throughput needs: several may be in
progress (appended, not yet durable), and their answers still leave in order. Any other request waits until all before
it are answered, and nothing is begun after it until it is. While something must wait, or the peer does not read its
answers, received frames are held, and beyond `HELD_BYTES` nothing more is received.

Nobody else waits for long on what one connection asks, be it one huge request or very many small ones: requests are
answered until the turn is over (`broker.turns`), and one that has many elements is decoded, answered and encoded in
steps, during which its connection's other requests wait.

What a client sends that is not Kafka, or not served, ends the connection, as in Kafka; ApiVersions alone is answered in
every version.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator
from functools import partial
from typing import Final, NamedTuple, cast

from ottla.broker.turns import Steps
from ottla.dialects.kafka.answers import LaterAnswer, RequestContext, Settled
from ottla.dialects.kafka.errors import CloseConnection
from ottla.dialects.kafka.handlers.produce import RUN_REQUESTS, answer_usual
from ottla.dialects.kafka.router import Route, Router
from ottla.dialects.session import Carrier, Part
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import DecodeError, Message, TooManyElements, decode, decode_in_steps
from ottla.protocol.connection import FrameReader, InvalidFrame
from ottla.protocol.headers import (
    RequestHeader,
    decode_request_header,
    encode_response_frame,
    encode_response_frame_in_steps,
)

HELD_BYTES: Final = 64 * 1024
IN_PROGRESS_AT_MOST: Final = 1000
"""Produce requests that wait for durability; a client that sends more is not read from until some are answered."""
FLUSH_PARTS: Final = 16
GENERAL_COST: Final = 8
"""What a request that goes the general way counts for beside one of the usual form, about."""
LOOK_AFTER: Final = 2 * GENERAL_COST
"""What is done before it is asked whether the turn is over: for who sends one request at a time it never is."""
AT_ONCE_ELEMENTS: Final = 256
"""A request whose arrays have more elements together is decoded and answered in steps."""
AT_ONCE_BYTES: Final = 1024 * 1024
"""The same for bytes; Kafka's producers send at most this much, unless told otherwise."""
MOST_ELEMENTS: Final = 1_000_000
"""Elements that the arrays of one request may have together: each costs some hundred bytes while it is answered."""

_log = logging.getLogger(__name__)


class Slot(NamedTuple):
    """The place of an answer in the order of the requests."""

    api_key: int
    api_version: int
    correlation_id: int
    answer: LaterAnswer


class KafkaSession:
    """The `Session` of a Kafka connection."""

    __slots__ = (
        "_carrier",
        "_context",
        "_is_advancing",
        "_is_alone",
        "_is_finishing",
        "_is_over",
        "_is_waiting",
        "_out",
        "_parked",
        "_reader",
        "_router",
        "_routes",
        "_slots",
        "_turns",
        "_work",
    )

    def __init__(self, router: Router, context: RequestContext, carrier: Carrier, reader: FrameReader) -> None:
        self._router = router
        self._routes = router.known
        self._context = context
        self._carrier = carrier
        self._reader = reader
        self._out: list[Part] = []
        self._slots: deque[Slot] = deque()
        self._parked: memoryview | None = None  # a frame that waits until all before it are answered
        self._turns = context.broker.turns
        self._is_waiting = False  # until the loop's next turn
        self._work: LaterAnswer | None = None  # of a request that is answered in steps
        self._is_alone = False  # the request in progress allows no other beside it
        self._is_advancing = False
        self._is_finishing = False
        self._is_over = False

    # -- what the stream calls ------------------------------------------------------------------------------------

    def get_buffer(self) -> memoryview:
        return self._reader.get_buffer()

    def received(self, received_bytes: int) -> None:
        self._reader.buffer_updated(received_bytes)
        self._advance()

    def ended(self) -> bool:
        """A client that ends its sending is gone: none half-closes."""
        return False

    def resume(self) -> None:
        self._advance()

    def finish(self) -> None:
        self._is_finishing = True
        for slot in list(self._slots):
            if slot.answer.hurry is not None and not slot.answer.is_complete:
                slot.answer.hurry()
        self._maybe_close()

    def lost(self) -> None:
        self._is_over = True
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.answer.cancel is not None and not slot.answer.is_complete:
                slot.answer.cancel()
        self._parked = None
        self._reader.close()

    # -- requests -------------------------------------------------------------------------------------------------

    def _must_wait(self) -> bool:
        return (
            self._is_alone
            or self._is_waiting
            or self._is_finishing
            or self._is_over
            or self._carrier.is_congested
            or (self._parked is not None and bool(self._slots))
            or len(self._slots) >= IN_PROGRESS_AT_MOST
        )

    def _advance(self) -> None:
        """Handle received frames as far as that is allowed now, and send what they gave."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            self._handle_frames()
        except Exception as error:
            self._end_because(error, after_answers=True)
        finally:
            self._is_advancing = False

    def _handle_frames(self) -> None:
        looked_after = 0
        while not self._must_wait():
            done = self._handle_next()
            if not done:
                self._flush()
                self._carrier.resume_reading()
                return
            if done >= RUN_REQUESTS or len(self._out) >= FLUSH_PARTS:
                self._flush()
            looked_after += done
            if looked_after >= LOOK_AFTER:
                looked_after = LOOK_AFTER - GENERAL_COST
                if self._turns.is_over():
                    self._is_waiting = True
                    self._turns.wait(self._take_turn)
        reader = self._reader
        self._flush()
        reader.hold()
        if self._is_over:
            reader.close()
        elif self._is_waiting or self._work is not None or reader.pending_bytes > HELD_BYTES:
            self._carrier.pause_reading()  # also lest the peer's end be read before what it had sent until then is done

    def _take_turn(self) -> None:
        self._is_waiting = False
        self._advance()

    def _handle_next(self) -> int:
        """Do what the next frames ask, or begin to; returns what that counts for, 0 when none is there."""
        frame, self._parked = self._parked, None
        if frame is None:
            if not self._slots:
                answered, is_next_general = answer_usual(self._reader, self._context, self._out)
                if not is_next_general:
                    return answered
            frame = self._reader.next_frame()
            if frame is None:
                return 0
        self._handle_any(frame)
        return GENERAL_COST

    def _handle_any(self, frame: memoryview) -> None:
        header, body_at = decode_request_header(frame)
        route = self._routes.get(header.api_key) or self._router.find(header.api_key)
        if route is None:
            raise CloseConnection
        if self._slots and not route.is_pipelined:
            self._parked = memoryview(bytes(frame))
            return
        if not route.min_version <= header.api_version <= route.max_version:
            self._answer_unsupported(header)
            return
        context = self._context
        context.api_key = header.api_key
        context.api_version = header.api_version
        context.client_id = header.client_id
        context.is_long = False
        if len(frame) > AT_ONCE_BYTES:
            self._work_on(header, route, self._do_all(header, route, self._reader.detach(frame), body_at))
            return
        try:
            request = decode(route.request, header.api_version, frame, body_at, AT_ONCE_ELEMENTS)
        except TooManyElements:
            self._work_on(header, route, self._do_all(header, route, self._reader.detach(frame), body_at))
            return
        answer = route.handle(request, context)
        if answer is None or isinstance(answer, (Message, LaterAnswer)):
            self._take(header, route, answer)
        else:
            self._begin(header, route, answer)

    def _begin(self, header: RequestHeader, route: Route, steps: Steps[Settled]) -> None:
        """Do the first of a handler's steps, which for nearly all requests is the only one."""
        try:
            next(steps)
        except StopIteration as end:
            answer: Settled = end.value
            if isinstance(answer, LaterAnswer):
                self._work_on(header, route, self._encode(header, answer))
            else:
                self._take(header, route, answer)
        else:
            self._work_on(header, route, self._do_rest(header, steps))

    def _take(self, header: RequestHeader, route: Route, answer: Settled) -> None:
        """Send what a handler came to, or wait for it."""
        if isinstance(answer, Message):
            self._answer(header, answer)
        elif answer is not None:
            self._answer_later(header, route, answer)

    # -- requests that are answered in steps ----------------------------------------------------------------------

    def _work_on(self, header: RequestHeader, route: Route, steps: Steps[Settled]) -> None:
        """Do the steps of the last request that was taken; where that takes another turn, nothing else is begun."""
        work = self._turns.run(steps, partial(self._take_result, header, route), self._give_up)
        if not work.is_over:
            self._work = self._new_slot(header)
            self._is_alone = True

    def _new_slot(self, header: RequestHeader) -> LaterAnswer:
        later = LaterAnswer()
        later.listen(self._settle)
        self._slots.append(Slot(header.api_key, header.api_version, header.correlation_id, later))
        return later

    def _do_all(self, header: RequestHeader, route: Route, frame: memoryview, body_at: int) -> Steps[Settled]:
        """Decode and answer a large request."""
        request = yield from decode_in_steps(route.request, header.api_version, frame, body_at, MOST_ELEMENTS)
        self._context.is_long = True
        answer = route.handle(request, self._context)
        if isinstance(answer, Generator):
            return (yield from self._do_rest(header, answer))
        return (yield from self._encode(header, answer))

    def _do_rest(self, header: RequestHeader, steps: Steps[Settled]) -> Steps[Settled]:
        answer = yield from steps
        return (yield from self._encode(header, answer))

    def _encode(self, header: RequestHeader, answer: Settled) -> Steps[Settled]:
        """Encode a response in steps as well, if it took more than this turn to find it."""
        while isinstance(answer, LaterAnswer) and answer.steps is not None:  # the wait was over before it began
            answer = yield from answer.steps
        if self._work is None or not isinstance(answer, Message):
            return answer
        encoded = LaterAnswer()
        encoded.frame = cast(
            "list[Part]",
            (
                yield from encode_response_frame_in_steps(
                    header.api_key, header.api_version, header.correlation_id, answer
                )
            ),
        )
        encoded.complete(answer)
        return encoded

    def _take_result(self, header: RequestHeader, route: Route, answer: Settled) -> None:
        """The steps are done, at once or in a later turn."""
        later, self._work = self._work, None
        if self._is_over:
            _drop(answer)
        elif isinstance(answer, LaterAnswer) and not answer.is_complete:
            self._wait_for(header, route, answer, later or self._new_slot(header))
        elif later is None:
            self._take(header, route, answer)
        elif isinstance(answer, LaterAnswer):
            later.frame = answer.frame
            later.complete(answer.response)
        else:
            later.complete(answer)

    def _wait_for(self, header: RequestHeader, route: Route, answer: LaterAnswer, later: LaterAnswer) -> None:
        """What the steps came to is still to be waited for."""
        self._is_alone = not route.is_pipelined
        later.cancel, later.hurry = answer.cancel, answer.hurry
        answer.listen(partial(self._go_on, header, route, answer, later))
        if self._is_finishing and later.hurry is not None:
            later.hurry()
        elif not self._is_alone:
            self._advance()

    def _go_on(self, header: RequestHeader, route: Route, answer: LaterAnswer, later: LaterAnswer) -> None:
        """The wait is over; there may be more to do."""
        if answer.steps is None:
            later.complete(answer.response)
            return
        self._work = later
        later.cancel = later.hurry = None
        steps = self._do_rest(header, answer.steps)
        self._turns.run(steps, partial(self._take_result, header, route), self._give_up)

    def _give_up(self, error: Exception) -> None:
        if self._work is not None:
            self._work = None
            if self._slots:  # they are gone with a lost connection
                self._slots.pop()
        self._end_because(error, after_answers=True)

    def _answer_unsupported(self, header: RequestHeader) -> None:
        """Only ApiVersions is answered in a version that is not served, in the layout of version 0 (KIP-511)."""
        if header.api_key != ApiKey.API_VERSIONS:
            raise CloseConnection
        self._say(header.api_key, 0, header.correlation_id, self._router.unsupported_version)

    # -- answers --------------------------------------------------------------------------------------------------

    def _answer(self, header: RequestHeader, response: Message) -> None:
        if self._slots:
            later = LaterAnswer()
            later.complete(response)
            self._slots.append(Slot(header.api_key, header.api_version, header.correlation_id, later))
        else:
            self._say(header.api_key, header.api_version, header.correlation_id, response)

    def _answer_later(self, header: RequestHeader, route: Route, answer: LaterAnswer) -> None:
        if answer.is_complete and answer.response is not None:
            self._answer(header, answer.response)
        elif not answer.is_complete:
            self._slots.append(Slot(header.api_key, header.api_version, header.correlation_id, answer))
            self._is_alone = not route.is_pipelined
            answer.listen(self._settle)

    def _settle(self) -> None:
        """An answer is there: send it and those behind it that waited for their turn, then go on."""
        if self._is_over:
            return
        try:
            self._take_settled()
        except Exception as error:
            self._end_because(error)
            return
        if not self._is_advancing:
            self._flush()
            self._advance()
            self._maybe_close()

    def _take_settled(self) -> None:
        slots = self._slots
        while slots and slots[0].answer.is_complete:
            slot = slots.popleft()
            response = slot.answer.response
            if slot.answer.frame:
                self._out += slot.answer.frame
            elif response is not None:
                self._say(slot.api_key, slot.api_version, slot.correlation_id, response)
        if not slots:
            self._is_alone = False

    def _say(self, api_key: int, api_version: int, correlation_id: int, response: Message) -> None:
        """Encode a response; it leaves with the next flush. Records in it are bytes or leased spans of files."""
        self._out += cast("list[Part]", encode_response_frame(api_key, api_version, correlation_id, response))

    def _flush(self) -> None:
        out = self._out
        if not out:
            return
        self._out = []
        first = out[0]
        if len(out) == 1 and isinstance(first, bytes):
            self._carrier.write(first)
        else:
            self._carrier.write_parts(out)

    def _maybe_close(self) -> None:
        if self._is_finishing and not self._slots and not self._is_over:
            self._end()

    def _end_because(self, error: Exception, *, after_answers: bool = False) -> None:
        """End the connection: the client is not understood, must be told so that way, or met a fault of ours.

        What was asked before a request that ends it is answered first, as by Kafka, who would not have read on yet.
        """
        peer = self._context.peer.host
        if isinstance(error, (InvalidFrame, DecodeError)):
            _log.info("connection ended: %s", error, extra={"peer": peer})
        elif not isinstance(error, CloseConnection):
            _log.error("connection ended: a request met a fault", exc_info=error, extra={"peer": peer})
        if after_answers and self._slots:
            self._flush()  # what is answered is not to wait for them, nor be kept should the peer be gone first
            self._is_finishing = True
        else:
            self._end()

    def _end(self) -> None:
        """Send what was answered, then close, unless that was done or the peer is gone."""
        if self._is_over:
            return
        self._flush()
        self._is_over = True
        self._carrier.close()


def _drop(answer: Settled) -> None:
    """Nobody is left to hear an answer: give back what it holds."""
    if isinstance(answer, LaterAnswer):
        if answer.cancel is not None and not answer.is_complete:
            answer.cancel()
        for part in answer.frame:
            if not isinstance(part, (bytes, memoryview)):
                part.release()
