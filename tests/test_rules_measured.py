"""Rules that a measurement switches off are those of the program."""

import pytest

from bench.rules import RULES, without


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_off_within_the_block_and_on_behind_it(rule: str) -> None:
    """Its function is another one only there."""
    path, replacement = RULES[rule]
    module, _, name = path.rpartition(".")
    namespace = __import__(module, fromlist=[name]).__dict__
    own = namespace[name]
    with without(rule):
        assert namespace[name] is replacement
    assert namespace[name] is own
