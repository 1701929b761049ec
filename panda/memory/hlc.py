"""Hybrid logical clock of assertions: `milliseconds.counter` (S2, settled in scope_synthesis)."""


def parse_hlc(text: str | None) -> tuple[int, int]:
    """
    Milliseconds and counter, to be compared as two integers; a missing one sorts lowest.

    Raises:
        ValueError: Not `milliseconds.counter`.

    >>> parse_hlc("1767470561000.3") == parse_hlc("1767470561000.003")
    True
    >>> parse_hlc(None) < parse_hlc("0.000")
    True
    """
    if text is None:
        return (-1, -1)
    milliseconds, _, counter = text.partition(".")
    if not (milliseconds.isascii() and milliseconds.isdigit() and counter.isascii() and counter.isdigit()):
        raise ValueError(f"{text!r} is no hybrid clock reading like 1767470561000.000")
    return int(milliseconds), int(counter)


def tick(last: str | None, now_ms: int) -> str:
    """
    The next reading.

    Args:
        last: The highest reading so far; None if there is none.
        now_ms: The wall clock in milliseconds since 1970.

    Returns:
        The wall clock with counter 0 if it moved on, else the last reading with its counter one higher;
        past 999 the millisecond moves on.

    >>> tick(None, 1000), tick("999.004", 1000), tick("1000.004", 1000), tick("2000.999", 1000)
    ('1000.000', '1000.000', '1000.005', '2001.000')
    """
    milliseconds, counter = parse_hlc(last)
    if now_ms > milliseconds:
        milliseconds, counter = now_ms, 0
    elif counter >= 999:
        milliseconds, counter = milliseconds + 1, 0
    else:
        counter += 1
    return f"{milliseconds}.{counter:03d}"
