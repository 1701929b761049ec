"""Which processor cores this process may use."""

import os


def usable_cores() -> list[int]:
    """Their numbers; where the system keeps no list of a process's own, as macOS does not, those of all."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
