"""What the NERVES model did not expect."""

from panda.compression.order import UnitText
from panda.compression.surprise import NervesReader
from panda.models.llama.model import LlamaCppModel
from tests.scripted_model import Asked, ScriptedModel

UNITS = [UnitText("Plain words here.", 1), UnitText("Strange words there.", 1), UnitText("Plain again.", 2)]


def surprise(asked: Asked) -> list[float]:
    return [-9.0 if "Strange" in case.continuation else -1.0 for case in asked.cases]


def test_surprise_is_a_rank() -> None:
    """The least expected unit has 1, the most expected 0."""
    assert NervesReader(ScriptedModel(surprise))(UNITS) == [0.0, 1.0, 0.5]


def test_long_documents_are_read_in_windows() -> None:
    """What does not fit a window is read in several, each once, with a little of the text before."""
    model = ScriptedModel(surprise, n_ctx=1000)
    units = [UnitText(f"word number {n} of many that follow", n) for n in range(100)]
    assert len(NervesReader(model)(units) or ()) == 100
    assert len(model.asked) > 1


def test_no_answer_without_scores() -> None:
    """A model that does not score, and a document that is too long, give no surprise."""
    assert NervesReader(ScriptedModel(surprise, scores=False))(UNITS) is None
    assert NervesReader(ScriptedModel(surprise), max_chars=10)(UNITS) is None


def test_the_embedded_model_reads(model: LlamaCppModel) -> None:
    """The embedded model expects a proverb's end more than nonsense."""
    units = [
        UnitText("The early bird catches the worm.", 1),
        UnitText("Purple seventeen refrigerators negotiated cheese upward.", 2),
    ]
    assert NervesReader(model)(units) == [0.0, 1.0]
