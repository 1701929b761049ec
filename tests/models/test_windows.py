"""Whether a server read all of a prompt, by the tokens that it counts."""

import pytest

from panda.models.model_contract import Message
from panda.models.windows import count_least_tokens

ENGLISH = "The laptop costs six hundred and ninety-seven dollars, as the page of the shop says. "
JSON = '{"name": "Lenovo LOQ 15", "price": 697.00, "in_stock": true, "tags": ["laptop", "gaming"]}\n'
RUSSIAN = "Ноутбук стоит шестьсот девяносто семь долларов, как написано на странице магазина. "
CHINESE = "这台笔记本电脑的价格是六百九十七美元。"


@pytest.mark.parametrize(
    ("text", "sent", "least"),
    [
        (ENGLISH * 10, "too few to be cut", 0),
        (ENGLISH * 100, "some 1,800 tokens", 1_200),
        (JSON * 50, "some 1,700 tokens", 1_100),
        (RUSSIAN * 100, "of which tokenizers differ by far", 0),
        (CHINESE * 100, "of which tokenizers differ by far", 0),
        (RUSSIAN * 100 + ENGLISH * 100, "the English part", 1_200),
    ],
)
def test_only_far_too_few_tokens_are_a_cut(text: str, sent: str, least: int) -> None:
    """Of English and JSON at least seven tenths are read by any tokenizer; other scripts do not count."""
    counted = count_least_tokens([Message("system", ""), Message("user", text)])
    assert least <= counted <= least * 1.3, sent
