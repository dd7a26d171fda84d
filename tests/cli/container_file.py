"""Writes .plait containers by their documented layout, with right checksums around any content: files
that no honest writer would make. io/container.h describes the layout."""

import struct

import numpy as np
import xxhash

KINDS = {"offsets": 1, "neighbours": 2, "weights": 3, "features": 4, "feature offsets": 5,
         "feature columns": 6, "feature values": 7, "labels": 8, "splits": 9, "original ids": 10}
ELEMENTS = {"u1": 1, "i4": 2, "u4": 3, "u8": 4, "f4": 5}
HEADER = struct.Struct("<8sIIQQQQQIIIIII")
MARK = b"\x89PLAIT\r\n"


def container(sections, *, header=None, name="hand"):
    """`sections`: kind -> array. `header`: fields that differ from the sections. `name`: a text, or
    bytes that need not be one."""
    title = name if isinstance(name, bytes) else name.encode()
    fields = {"version": 1, "vertices": len(sections["offsets"]) - 1,
              "edges": len(sections["neighbours"]), "width": 0, "classes": 0, "splits": 0,
              "flags": 0} | (header or {})
    header_bytes = HEADER.size + 32 * len(sections) + len(title)
    table, data, end = b"", b"", header_bytes
    for kind, array in sorted(sections.items(), key=lambda item: KINDS[item[0]]):
        begin = -(-end // 64) * 64
        values = np.ascontiguousarray(array).tobytes()
        table += struct.pack("<IIQQQ", KINDS[kind], ELEMENTS[array.dtype.str[1:]], begin,
                             len(values), xxhash.xxh3_64_intdigest(values))
        data += bytes(begin - end) + values
        end = begin + len(values)

    def head(checksum):
        return HEADER.pack(MARK, fields["version"], header_bytes, end, checksum, fields["vertices"],
                           fields["edges"], fields["width"], fields["classes"], fields["splits"],
                           fields["flags"], len(sections), len(title), 0)

    checksum = xxhash.xxh3_64_intdigest(head(0) + table + title)
    return head(checksum) + table + title + data


def triangle():
    """The sections of 0 -> 1 -> 2 -> 0: each vertex aggregates from the one before."""
    return {"offsets": np.array([0, 1, 2, 3], "u8"), "neighbours": np.array([2, 0, 1], "u4")}
