"""Writes what was learned as the files that src/select/learned/file.rs and src/select/orders/file.rs describe and
read."""

import struct

MAGIC = b"TARSIALT"
ORDERS_MAGIC = b"TARSIARO"
FORMAT = 2
ORDERS_FORMAT = 1
# Algorithms by their names in tables, in the order of the file.
ALGORITHMS = ["row", "sell", "window", "smat", "dense"]


def checksum(data):
    """FNV-1a of 64 bits."""
    out = 0xCBF29CE484222325
    for byte in data:
        out = (out ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return out


def name(algorithm):
    return struct.pack("16s", algorithm.encode())


def packed(model, shape, numbers, version):
    """The file for trees of this shape; `numbers` of a product, counted as this version of their list says."""
    out = MAGIC + struct.pack("<4I", FORMAT, version, numbers, shape.depth) + struct.pack("<2d", *shape.bounds)
    out += struct.pack("<I", len(shape.relative)) + b"".join(name(other) for other in shape.relative)
    forests = [(algorithm, model.forests[algorithm]) for algorithm in ALGORITHMS if algorithm in model.forests]
    out += struct.pack("<I", len(forests))
    for algorithm, found in forests:
        out += name(algorithm) + struct.pack("<iI", found.base, len(found.leaves))
        out += found.inputs.astype("u1").tobytes()
        out += found.limits.astype("<f4").tobytes()
        out += found.leaves.astype("<i2").tobytes()
    return out + struct.pack("<Q", checksum(out))


def packed_orders(choosers, codes, features, version):
    """The file for the networks of choosers by form; `codes` of orders of rows by name."""
    out = ORDERS_MAGIC + struct.pack("<4I", ORDERS_FORMAT, version, features, len(choosers))
    for form, chooser in choosers.items():
        network = chooser.network
        out += name(form) + network.shift.astype("<f4").tobytes() + network.scale.astype("<f4").tobytes()
        out += struct.pack("<I", len(network.layers))
        for weights, biases in network.layers:
            out += struct.pack("<I", len(biases)) + weights.astype("<f4").tobytes() + biases.astype("<f4").tobytes()
        out += b"".join(struct.pack("<I", codes[policy]) for policy in chooser.policies)
    return out + struct.pack("<Q", checksum(out))
