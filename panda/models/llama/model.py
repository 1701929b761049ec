"""The model contract on llama.cpp."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from panda.errors import ModelFileError, RecipeSchemaError
from panda.models.llama.gguf import Weights
from panda.models.llama.llama_context import LlamaContext
from panda.models.llama.projector import Projector, Seen
from panda.models.llama.template import TEMPLATE_FIX, mark_of, render_isolated, render_template
from panda.models.model_contract import (
    Completion,
    Deadline,
    GenerateParams,
    Message,
    ModelInfo,
    ScoreCase,
    ScoreParams,
    Scores,
    Usage,
)
from panda.models.replies import END_OF_THOUGHTS, THINK, compile_schema, split_reasoning

LEAST_SHARE = 0.05
"""Tokens less likely than this share of the likeliest one are never drawn (the tail is noise)."""
_TAIL_BYTES = 64
"""Where the end of thoughts is looked for: the last token may have further bytes behind it."""
Logits = NDArray[np.float32]


class Sampler:
    """Draws tokens, at temperature 0 always the likeliest; the same seed and logits give the same tokens."""

    def __init__(self, *, temperature: float, seed: int) -> None:
        self._temperature = temperature
        self._random = np.random.default_rng(abs(seed))

    def draw(self, logits: Logits) -> int:
        """The next token; -inf marks tokens that are not allowed."""
        if self._temperature <= 0:
            return int(logits.argmax())
        scaled = (logits.astype(np.float64) - float(logits.max())) / self._temperature
        candidates = np.flatnonzero(scaled >= np.log(LEAST_SHARE))
        weights = np.cumsum(np.exp(scaled[candidates]))
        index = int(np.searchsorted(weights, self._random.random() * weights[-1], side="right"))
        return int(candidates[min(index, len(candidates) - 1)])


class GrammarMatcher:
    """Follows a reply through a grammar of compile_schema."""

    def __init__(self, grammar: str, weights: Weights) -> None:
        from llguidance import LLMatcher

        self._matcher = LLMatcher(weights.grammar_tokenizer, grammar, log_level=0)
        self._n_vocab = weights.n_vocab
        self._check()

    @property
    def is_complete(self) -> bool:
        """Return whether nothing more may follow."""
        return bool(self._matcher.is_stopped())

    def forced_tokens(self) -> list[int]:
        """The tokens that must come next whatever the model says; already taken as written."""
        if self.is_complete:
            return []
        tokens = [int(token) for token in self._matcher.compute_ff_tokens()]
        if tokens:
            self._matcher.consume_tokens(tokens)
            self._check()
        return tokens

    def draw(self, logits: Logits, sampler: Sampler) -> int:
        """Draw an allowed token and take it as written; the mask is made only if the free choice is wrong."""
        token = sampler.draw(logits)
        if self._matcher.validate_tokens([token]) != 1:
            bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
            allowed = np.unpackbits(bits, bitorder="little")[: self._n_vocab].astype(bool)
            self._check()
            masked = logits.copy()
            masked[: len(allowed)][~allowed] = -np.inf
            masked[len(allowed) :] = -np.inf
            token = sampler.draw(masked)
        self._matcher.consume_token(token)
        self._check()
        return token

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = " ".join(self._matcher.get_error().split())[:500]
            fix = "make the schema simpler: fewer alternatives, shorter patterns"
            raise RecipeSchemaError(f"the schema cannot be followed: {reason}", fix=fix)


class ChatPart(NamedTuple):
    """A stretch of a rendered chat."""

    text: str
    is_content: bool  # of a message; only the template's own parts may hold control tokens


class RenderedChat(str):
    """A chat as text that still knows its parts, so that its control tokens, and those alone, stay such."""

    parts: Sequence[ChatPart]

    @classmethod
    def of(cls, parts: Sequence[ChatPart]) -> "RenderedChat":
        chat = cls("".join(part.text for part in parts))
        chat.parts = parts
        return chat


def render_parts(weights: Weights, messages: Sequence[Message]) -> list[ChatPart]:
    """
    The chat as the template writes it: template text and contents in turn, beginning and ending with template
    text; 2 * n + 1 parts. Contents never reach the template: it sees a mark for each, so that no content can
    forge a control token, and the parts up to the last leading system message are the same whatever follows.
    """
    if weights.chat_template is None:
        message = "the model file has no chat template, so it cannot reply"
        fix = "use an instruction-tuned model, or set the layer to offline in models.yaml"
        raise ModelFileError(message, str(weights.path), fix=fix)
    bos, eos = (
        weights.piece(token, special=True).decode("utf-8", "replace") if token >= 0 else ""
        for token in (weights.bos, weights.eos)
    )
    render = render_template if weights.is_packaged else render_isolated
    roles = tuple(message.role for message in messages)
    text = render(weights.chat_template, roles, bos, eos, where=str(weights.path))
    marks = [mark_of(number) for number in range(len(messages))]
    parts: list[ChatPart] = []
    for chat_message, mark in zip(messages, marks, strict=True):
        before, separator, text = text.partition(mark)
        if not separator or mark in text:
            role = chat_message.role
            message = f"the chat template of the model does not write the {role} message once, in order"
            raise ModelFileError(message, str(weights.path), fix=TEMPLATE_FIX)
        parts += [ChatPart(before, False), ChatPart(chat_message.content, True)]
    return [*parts, ChatPart(text, False)]


def tokenise_parts(weights: Weights, parts: Sequence[ChatPart], *, is_start: bool) -> list[int]:
    """
    Tokens of a stretch of a chat, its parts tokenised one by one; at the start of the chat BOS first, if the
    model wants it.
    """
    tokens: list[int] = []
    for part in parts:
        tokens += weights.tokenise(part.text, special=not part.is_content)
    if is_start and weights.adds_bos and tokens[:1] != [weights.bos]:
        tokens.insert(0, weights.bos)
    return tokens


class LlamaCppModel:
    """
    A GGUF run in process. *load_weights* is called at the first use; *load_context* gives a window with room
    for so many tokens, which models may share; *load_projector* None is a model that sees nothing.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        check_file: Callable[[], None],
        load_weights: Callable[[], Weights],
        load_context: Callable[[int], LlamaContext],
        load_projector: Callable[[], Projector] | None = None,
    ) -> None:
        self._info = info
        self.check_file = check_file
        self._load_weights = load_weights
        self._load_context = load_context
        self._load_projector = load_projector

    @property
    def info(self) -> ModelInfo:
        return self._info

    def count_model_tokens(self, text: str) -> int:
        """Length of plain text in the model's own tokens, without BOS."""
        weights = self._load_weights()
        if isinstance(text, RenderedChat):
            return len(tokenise_parts(weights, text.parts, is_start=False))
        return len(weights.tokenise(text))

    def render_chat(self, messages: Sequence[Message]) -> str:
        return RenderedChat.of(render_parts(self._load_weights(), messages))

    def generate(self, messages: Sequence[Message], params: GenerateParams) -> Completion:
        """
        The system messages at the front are a prefix of their own: tokenised and computed apart, kept for
        later calls, and the same bits whether kept or not. A model that thinks does so first, without
        grammar, until it ends its thoughts or has no more room for them.
        """
        deadline = Deadline(params.timeout_seconds)
        grammar = None if params.schema is None else compile_schema(params.schema)
        weights = self._load_weights()
        parts = render_parts(weights, messages)
        leading = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
        prefix = tokenise_parts(weights, parts[: 2 * leading], is_start=True) if leading else []
        matcher = None if grammar is None else GrammarMatcher(grammar, weights)
        room = self._info.thinking_tokens
        with ExitStack() as seeing:
            stretches = list(self._stretches(messages, parts, 2 * leading, seeing))
            used = len(prefix) + sum(s.tokens if isinstance(s, Seen) else len(s) for s in stretches)
            self._info.check_room(used, params.max_tokens + room)
            context = self._load_context(used + params.max_tokens + room)
            reused = context.enter_prefix(prefix, deadline)
            rest = stretches.pop()
            assert isinstance(rest, list)
            for stretch in stretches:
                if isinstance(stretch, Seen):
                    context.compute_picture(stretch, deadline)
                elif stretch:
                    context.compute(stretch, deadline, logits=False)
            logits = context.compute(rest, deadline)
            sampler = Sampler(temperature=params.temperature, seed=params.seed)
            thoughts: list[int] = []
            if room:
                thoughts, logits = _think(context, logits, sampler, room, deadline)
            output, is_finished = _write(
                context,
                logits,
                sampler=sampler,
                matcher=matcher,
                max_tokens=params.max_tokens,
                deadline=deadline,
            )
        reasoning = _text(weights, thoughts).partition(END_OF_THOUGHTS)[0].strip()
        text = _text(weights, output)
        if matcher is None:
            inner, text = split_reasoning(text.lstrip("\n") if room else text, is_open=False)
            reasoning = reasoning or inner
        return Completion(
            text=text,
            finish_reason="stop" if is_finished else "length",
            usage=Usage(prompt=used, reused=reused, output=len(thoughts) + len(output)),
            seconds=deadline.elapsed_seconds,
            reasoning=reasoning,
        )

    def _stretches(
        self, messages: Sequence[Message], parts: Sequence[ChatPart], at: int, seeing: ExitStack
    ) -> Iterator[list[int] | Seen]:
        """Yield the tokens and pictures of a chat in turn, from a part on; tokens come last."""
        weights = self._load_weights()
        for number, message in enumerate(messages):
            for picture in message.pictures:
                yield tokenise_parts(weights, parts[at : 2 * number + 1], is_start=not at)
                yield seeing.enter_context(self._projector().seen(picture))
                at = 2 * number + 1
        rest = tokenise_parts(weights, parts[at:], is_start=not at)
        if self._info.thinking_tokens and not parts[-1].text.rstrip().endswith(THINK):
            rest += weights.tokenise(f"{THINK}\n", special=True)
        yield rest

    def _projector(self) -> Projector:
        if self._load_projector is None:
            message = f"the model {self._info.name} has no projector, so it cannot see"
            fix = "name the projector file (mmproj-….gguf) that comes with the model"
            raise ModelFileError(message, f"models.{self._info.name}.projector", fix=fix)
        return self._load_projector()

    def score(self, prefix: str, cases: Sequence[ScoreCase], params: ScoreParams) -> Scores:
        """Computed in two parts with a fixed border: the prefix but for its last token, and all else."""
        deadline, weights, start = self._begin_score(prefix, params)
        shared_prefix = start[:-1]
        tail = start[-1:]
        tokens = [(weights.tokenise(c.context), weights.tokenise(c.continuation)) for c in cases]
        for before, after in tokens:
            self._info.check_room(len(start) + len(before), len(after))
        longest = max((len(before) + len(after) for before, after in tokens), default=0)
        context = self._load_context(len(start) + longest)
        reused = context.enter_prefix(shared_prefix, deadline) if cases else 0
        logprobs: list[float] = []
        for before, after in tokens:
            context.cut(len(shared_prefix))
            values = context.compute_logprobs([*tail, *before, *after], deadline, first=1 + len(before))
            logprobs.append(float(sum(values)))
        counts = tuple(len(after) for _, after in tokens)
        usage = Usage(len(start) + sum(len(before) for before, _ in tokens), reused, sum(counts))
        return Scores(tuple(logprobs), counts, usage, deadline.elapsed_seconds)

    def _begin_score(self, prefix: str, params: ScoreParams) -> tuple[Deadline, Weights, list[int]]:
        """With the tokens of the prefix, at least one: nothing can be predicted from nothing."""
        deadline = Deadline(params.timeout_seconds)
        weights = self._load_weights()
        if isinstance(prefix, RenderedChat):
            return deadline, weights, tokenise_parts(weights, prefix.parts, is_start=True)
        start = weights.tokenise(prefix)
        if weights.adds_bos or not start:
            start.insert(0, weights.bos if weights.bos >= 0 else weights.eos)
        return deadline, weights, start


def _text(weights: Weights, tokens: Sequence[int]) -> str:
    return b"".join(weights.piece(token) for token in tokens).decode("utf-8", "replace")


def _think(
    context: LlamaContext, logits: Logits, sampler: Sampler, room: int, deadline: Deadline
) -> tuple[list[int], Logits]:
    """The tokens of the thoughts with their end, at most *room*, and the logits behind them."""
    weights = context.weights
    end = weights.tokenise(f"\n{END_OF_THOUGHTS}\n\n", special=True)
    tokens: list[int] = []
    written = b""
    while len(tokens) + len(end) < room:
        token = sampler.draw(logits)
        if weights.ends(token):
            break
        tokens.append(token)
        written += weights.piece(token, special=True)
        logits = context.compute([token], deadline)
        if END_OF_THOUGHTS.encode() in written[-_TAIL_BYTES:]:
            return tokens, logits
    return [*tokens, *end], context.compute(end, deadline)


def _write(
    context: LlamaContext,
    logits: Logits,
    *,
    sampler: Sampler,
    matcher: GrammarMatcher | None,
    max_tokens: int,
    deadline: Deadline,
) -> tuple[list[int], bool]:
    """The tokens written, and whether the reply came to its own end."""
    output: list[int] = []
    while True:
        step = matcher.forced_tokens() if matcher else []
        if not step:
            if matcher and matcher.is_complete:
                return output, True
            token = matcher.draw(logits, sampler) if matcher else sampler.draw(logits)
            if context.weights.ends(token):
                return output, True
            step = [token]
        output += step
        if matcher and matcher.is_complete and len(output) <= max_tokens:
            return output, True
        if len(output) >= max_tokens:
            # Nothing is cut if the very next token would have ended the reply, but that is not computed.
            return output[:max_tokens], False
        logits = context.compute(step, deadline)
