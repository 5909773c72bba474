"""The counter file of one boot: memory-mapped, so that what was counted outlives a killed process.

Words of 64 bits in this machine's byte order (the file never leaves it). A header, then slots of a fixed size:

    header  0 magic  1 boot  2 broker  3 number of slots  4 last sign of life, ms  5 hour of the last sign of life
            6 the hour behind the last one that was said to be told in full, by this boot or one before it, 0: none
            7 the last boot of this broker that is known to have said so, 0: none
    slot    0 length of the name, 0: free   1 generation   2 produced bytes   3 consumed bytes
            4 stored byte-seconds, as of   5 stored bytes   6 as of when, ms   7… the physical topic name, UTF-8
            35, 36 the topic's UUID where the name has at most 224 bytes; zeros: not known

Word 7 of slot 0 is 2 in a file whose slots have UUIDs. The release before this one left that word at 0, and looks at none of
these: each release reads what the other has left. A slot named `=` and a boot in hexadecimal counts nothing: it says that
what that one counted was told, by this boot or by one that it knows of in the same way; its generation is their order.

Times in ms are the boot's monotonic clock: differences only. Every counter is one aligned word that is stored at once,
so a kill between two instructions finds the old value or the new one. (Rejected: `struct.pack_into`, which clears the
place before it writes.) A slot is taken by writing its name's length last, and given back by clearing that first.

Slot 0 belongs to nobody: writers without a slot use it, and nobody reads it. When all are taken the file is mapped anew
at twice the size; where the disk is too full for that, further topics are counted in memory only.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.doors import Files

WORD = 8
HEADER_WORDS = 8
SLOT_WORDS = 37
FIRST_SLOTS = 1024
NOWHERE = HEADER_WORDS
"""The first word of slot 0."""
MAX_WORD = 2**63 - 1

GENERATION, PRODUCED, CONSUMED, BYTE_SECONDS, BYTES, AS_OF = range(1, 7)
_NAME_AT = 7
_NAME_BYTES = (SLOT_WORDS - _NAME_AT) * WORD
_ID_AT = SLOT_WORDS - 2
_ID_BYTES = 2 * WORD
_BESIDE_ID = (_ID_AT - _NAME_AT) * WORD
"""The longest name that leaves room for a UUID."""
NO_ID = bytes(_ID_BYTES)
_EDITION_AT, _WITH_IDS = NOWHERE + _NAME_AT, 2
_TOLD, _TOLD_BYTES = "=", 17
MOST_TOLD = 200
"""Boots that a file names. Who comes after more than that names the last of them."""
_MAGIC, _BOOT, _BROKER, _SLOTS, _ALIVE, _HOUR, _FLOOR, _SPOKE = range(8)
_MAGIC_VALUE = int.from_bytes(b"SLUSAGE1", "big")


class CountersError(Exception):
    """A file is not one of ours, or a power cut has left only part of it."""


class Counters:
    """The file of this boot. Raises OSError where it cannot be made."""

    def __init__(self, files: Files, path: str, *, boot: int, broker: int, slots: int = FIRST_SLOTS) -> None:
        self.path = path
        self._files = files
        self._slots = slots
        self._told: dict[int, int] = {}  # boots, and the slots that name them, the oldest first
        self._told_number = 0
        self.words = self._map(slots)
        self._free = list(range(slots - 1, 0, -1))
        words = self.words
        words[_BOOT], words[_BROKER], words[_SLOTS] = boot, broker, slots
        words[_EDITION_AT] = _WITH_IDS
        words[_MAGIC] = _MAGIC_VALUE

    def _map(self, slots: int) -> memoryview:
        return self._files.map(self.path, WORD * (HEADER_WORDS + SLOT_WORDS * slots)).cast("Q")

    def claim(self, name: str, generation: int, topic_id: bytes = NO_ID) -> int:
        """A slot for a topic: the index of its first word, counters at 0."""
        data = name.encode()
        if (not self._free and not self._grow()) or len(data) > _NAME_BYTES:
            return NOWHERE
        at = _first_word(self._free.pop())
        words = self.words
        for offset in range(GENERATION, _NAME_AT):
            words[at + offset] = 0
        words[at + GENERATION] = generation
        start, id_start = (at + _NAME_AT) * WORD, (at + _ID_AT) * WORD
        if len(data) <= _BESIDE_ID:
            words.cast("B")[id_start : id_start + _ID_BYTES] = topic_id
        words.cast("B")[start : start + len(data)] = data
        words[at] = len(data)
        return at

    def release(self, at: int) -> None:
        """The slot is free again. Harmless for the one that is nobody's."""
        if at != NOWHERE:
            self.words[at] = 0
            self._free.append((at - HEADER_WORDS) // SLOT_WORDS)

    def alive(self, now_ms: int, hour: int) -> None:
        """A sign of life: until now, what is stored was stored."""
        self.words[_HOUR] = hour
        self.words[_ALIVE] = now_ms

    def open_from(self, hour: int) -> None:
        """Hours before this one are closed: nothing may be counted under them, whatever a clock says."""
        self.words[_FLOOR] = hour

    def has_told(self, boot: int) -> None:
        """What an earlier boot counted is in the topic: its file may go, and who finds this one still knows."""
        if boot in self._told:
            return
        at = self.claim(f"{_TOLD}{boot:016x}", self._told_number)
        if at == NOWHERE:
            return
        self._told[boot] = at
        self._told_number += 1
        if len(self._told) > MOST_TOLD:
            self.release(self._told.pop(next(iter(self._told))))

    def spoke(self, boot: int) -> None:
        """That hours before are closed is in the topic, as this boot has said it."""
        self.words[_SPOKE] = boot

    def _grow(self) -> bool:
        slots = 2 * self._slots
        try:
            self.words = self._map(slots)
        except OSError:
            return False
        self.words[_SLOTS] = slots
        self._free = list(range(slots - 1, self._slots - 1, -1))
        self._slots = slots
        return True


def _first_word(slot: int) -> int:
    return HEADER_WORDS + SLOT_WORDS * slot


class Row(NamedTuple):
    """The counters of one topic, as a boot left them."""

    name: str
    generation: int
    produced_bytes: int
    consumed_bytes: int
    byte_seconds: int
    topic_id: bytes = NO_ID


class CounterSnapshot:
    """The file of a boot that has ended. Raises CountersError."""

    def __init__(self, data: bytes) -> None:
        if len(data) % WORD or len(data) < WORD * HEADER_WORDS:
            raise CountersError(f"{len(data)} bytes are not a counter file")
        self._data = data
        self._words = memoryview(data).cast("Q")
        if self._words[_MAGIC] != _MAGIC_VALUE:
            raise CountersError("the magic number is another")
        self._slots = min(self._words[_SLOTS], (len(self._words) - HEADER_WORDS) // SLOT_WORDS)
        self._has_ids = len(self._words) > _EDITION_AT and self._words[_EDITION_AT] == _WITH_IDS
        self.boot = int(self._words[_BOOT])
        self.broker = int(self._words[_BROKER])
        self.hour = int(self._words[_HOUR])
        self.floor = int(self._words[_FLOOR])
        self.spoke = int(self._words[_SPOKE])

    def boots(self) -> list[int]:
        """Boots of which it is known here that what they counted was told, the oldest first; the last is the one of this file."""
        told = [boot for _, boot in sorted(self._told())]
        return list(dict.fromkeys(boot for boot in (*told, self.spoke, self.boot) if boot))

    def _told(self) -> Iterator[tuple[int, int]]:
        for slot in range(1, self._slots):
            at = _first_word(slot)
            if self._words[at] == _TOLD_BYTES:
                start = (at + _NAME_AT) * WORD
                name = self._data[start : start + _TOLD_BYTES]
                if name.startswith(_TOLD.encode()):
                    with contextlib.suppress(ValueError):
                        yield self._words[at + GENERATION], int(name[1:], 16)

    def rows(self) -> Iterator[Row | None]:
        """For each slot: the topic, if it has counted anything, with its storage up to the last sign of life; else None."""
        words = self._words
        for slot in range(1, self._slots):
            at = _first_word(slot)
            row = None
            if words[at] and (
                words[at + PRODUCED] or words[at + CONSUMED] or words[at + BYTE_SECONDS] or words[at + BYTES]
            ):
                with contextlib.suppress(UnicodeDecodeError):
                    found = self._row(at)
                    if found.produced_bytes or found.consumed_bytes or found.byte_seconds:
                        row = found
            yield row

    def _row(self, at: int) -> Row:
        words = self._words
        start, id_start, length = (at + _NAME_AT) * WORD, (at + _ID_AT) * WORD, min(words[at], _NAME_BYTES)
        name = self._data[start : start + length].decode()
        has_id = self._has_ids and length <= _BESIDE_ID
        topic_id = bytes(self._data[id_start : id_start + _ID_BYTES]) if has_id else NO_ID
        unsettled_ms = max(0, words[_ALIVE] - words[at + AS_OF])
        byte_seconds = words[at + BYTE_SECONDS] + words[at + BYTES] * unsettled_ms // 1000
        return Row(
            name,
            words[at + GENERATION],
            words[at + PRODUCED],
            words[at + CONSUMED],
            min(byte_seconds, MAX_WORD),
            topic_id,
        )
