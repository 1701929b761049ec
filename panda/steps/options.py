"""What a reply may choose from."""

from dataclasses import dataclass

from panda.documents.times import without_last_seen


@dataclass(frozen=True)
class Option:
    id: str  # what the reply holds when it is chosen
    text: str  # what it says, one line
    node_ids: tuple[str, ...] = ()  # nodes it comes from
    prior: float = 0.0  # how well it fits by words, 0 to 1
    title: str = ""  # what it stands below, as "Turn 809"; it is no part of what is quoted
    shown: str = ""  # what a model that reads all options at once is shown; empty means the text
    label: str = ""  # what a model is shown above it, once above all in a row that have the same

    @property
    def near(self) -> str:
        """The text as the encoder reads it: keys as words, without the mark of when it was last seen."""
        text = without_last_seen(self.text).replace("_", " ")
        return f"{self.title}. {text}" if self.title else text
