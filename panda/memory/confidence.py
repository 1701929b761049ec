"""How far a piece of memory is to be believed, and how that fades (design §4)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from panda.language.numbers import states_price
from panda.language.words import phrases, read_words

ContentType = Literal[
    "availability",
    "price",
    "product_spec",
    "vendor_info",
    "strategy",
    "site_pattern",
    "preference",
    "general_fact",
    "default",
]
Level = Literal["HIGH", "MEDIUM", "LOW", "EXPIRED"]

SAID_BY_USER = 0.95
TYPED_BY_HAND = 0.50
HANDED_OVER = 0.90
KNOWLEDGE = 0.80
REFLECTED = 0.60
MISSING = 0.50
EXPIRED_BELOW = 0.30
HALF_WEIGHT_DAYS = 30.0

TURN_STARTS: dict[str, float] = {"approved": 0.90, "imported": 0.70, "clarify": 0.70, "failed": 0.30}
"""Starting confidence of what a turn says, by the turn's status."""


@dataclass(frozen=True)
class Decay:
    per_day: float  # rate of the exponential, per day
    floor: float  # value that is approached but not passed


DECAYS: dict[str, Decay] = {
    "availability": Decay(0.20, 0.10),
    "price": Decay(0.10, 0.20),
    "product_spec": Decay(0.03, 0.50),
    "vendor_info": Decay(0.02, 0.60),
    "strategy": Decay(0.02, 0.50),
    "site_pattern": Decay(0.01, 0.70),
    "preference": Decay(0.005, 0.80),
    "general_fact": Decay(0.005, 0.80),
    "default": Decay(0.02, 0.30),
}


def claim_type(text: str) -> ContentType:
    if states_price(text):
        return "price"
    return "availability" if phrases("topic_words.txt", "in_stock").search(text) else "product_spec"


def field_type(name: str) -> ContentType:
    types: tuple[ContentType, ...] = ("price", "availability", "vendor_info", "site_pattern")
    parts = ((content_type, read_words("topic_words.txt", content_type)) for content_type in types)
    return next(
        (content_type for content_type, of in parts if any(part in name.lower() for part in of)),
        "product_spec",
    )


def age_days(at: datetime, now: datetime) -> float:
    """Days from *at* to *now*; 0 if *at* lies in the future."""
    return max(0.0, (now - at).total_seconds() / 86_400)


def decayed(start: float, content_type: str, days: float) -> float:
    """floor + (start - floor) * e^(-rate * days), negative days as none; never above *start* (design §4)."""
    decay = DECAYS.get(content_type, DECAYS["default"])
    faded = decay.floor + (start - decay.floor) * math.exp(-decay.per_day * max(0.0, days))
    return min(start, faded)


def confidence_at(start: float, content_type: str, at: datetime | None, now: datetime) -> float:
    """Confidence now of something that began at *at*; without a time it does not fade."""
    return start if at is None else decayed(start, content_type, age_days(at, now))


def level(confidence: float) -> Level:
    if confidence >= 0.80:
        return "HIGH"
    if confidence >= 0.50:
        return "MEDIUM"
    return "LOW" if confidence >= EXPIRED_BELOW else "EXPIRED"


def mean_by_recency(nodes: Sequence[tuple[float, datetime | None]], now: datetime) -> float:
    """
    The mean of (confidence, time) of some nodes, at least one, weighted by 0.5^(age_days / 30), to two
    decimals; the simple mean if any has no time (S0 §4.3, design §4 "confidence_avg").
    """
    if not nodes:
        raise ValueError("mean_by_recency needs at least one node")
    times = [at for _, at in nodes if at is not None]
    if len(times) < len(nodes):
        weights = [1.0] * len(nodes)
    else:
        weights = [0.5 ** (age_days(at, now) / HALF_WEIGHT_DAYS) for at in times]
    total = sum(weights)
    if total == 0:  # all weights too small for a float
        weights = [1.0] * len(nodes)
        total = float(len(nodes))
    return round(sum(w * value for w, (value, _) in zip(weights, nodes, strict=True)) / total, 2)
