"""One query put to the native model, from how it is shown to what is read of the answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from random import Random

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from theodolite.core.errors import ModelError
from theodolite.core.inquiry import Draw, Query, Reply, Usage
from theodolite.core.reading import Cause
from theodolite.core.text import printable
from theodolite.models.local.choice import Forced, Scored, chances, force
from theodolite.models.local.engine import Engine
from theodolite.models.local.line import Line
from theodolite.models.local.rendering import BEGUN, Turn, answers, grammar, turns
from theodolite.models.local.tool_calls import NativeCall, attempted, declared, named

__all__ = ("Asking", "Sampling")

# Characters. No vocabulary that we know has a longer token, so what has more of them for each token of the context
# cannot fit, and is not worth the seconds that counting its tokens takes.
_LONGEST_TOKEN = 256
# How the control tokens of all chat templates that we know begin: <|im_end|>, <start_of_turn>, </s>, [INST].
_OPENING = re.compile(r"([<\[])")


class Sampling(Struct, frozen=True, kw_only=True):
    """How draws are made. `context` is the number of tokens for a question and its answer."""

    temperature: float
    max_tokens: int
    seed: int
    context: int

    def of(self, number: int) -> int:
        """Return the seed of a draw, by its number. llama.cpp takes the largest of 32 bits to mean a random one."""
        drawn = hashlib.blake2b(f"{self.seed} {number}".encode(), digest_size=4).digest()
        return int.from_bytes(drawn, "big") % (2**32 - 1)


class _Answer(Struct, frozen=True):
    content: str | None = None
    tool_calls: tuple[NativeCall, ...] = ()


class _Alternative(Struct, frozen=True):
    message: _Answer
    finish_reason: str = ""


class _Used(Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(Struct, frozen=True):
    choices: tuple[_Alternative]
    usage: _Used = _Used()


class _Prompt(Struct, frozen=True):
    prompt: str


class _Tokens(Struct, frozen=True):
    tokens: tuple[int, ...]


class _Abilities(Struct, frozen=True):
    supports_tools: bool = False


class _Properties(Struct, frozen=True):
    chat_template_caps: _Abilities = _Abilities()


class Asking:
    """Puts one query to an engine, over its caller's line. Blocks; for one thread."""

    def __init__(self, engine: Engine, line: Line, *, name: str, sampling: Sampling) -> None:
        self._engine = engine
        self._line = line
        self._name = name
        self._sampling = sampling

    def reply(self, query: Query) -> Reply:
        """Return the answer to a query. Raises ModelError, and HungUpError when nobody waits for it any more."""
        with self._engine.slot(self._line) as slot:
            return self._choice(query, slot) if query.options else self._draws(query, slot)

    def _draws(self, query: Query, slot: int) -> Reply:
        native = self.takes_tools(query)
        request: dict[str, object] = {
            "messages": self._shown(turns(query, spell_out_tools=not native)),
            "id_slot": slot,
            "temperature": self._sampling.temperature,
            # Nothing but the temperature shapes what is drawn: the runtime's own defaults cut off the tails.
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "chat_template_kwargs": {"enable_thinking": False},
        }
        if native:
            request["tools"] = declared(query.tools)
        if isinstance(query.schema, Raw):
            request["grammar"] = grammar(query.schema)
        # Read once, from the beginning, and then drawn from again and again: no draw depends on what was asked before.
        read = self._completed({**request, "max_tokens": 0, "cache_prompt": False})
        request |= {"max_tokens": self._sampling.max_tokens, "cache_prompt": True}
        numbers = range(max(1, query.samples))
        said = [self._completed({**request, "seed": self._sampling.of(number)}) for number in numbers]
        usage = Usage(
            input_tokens=read.usage.prompt_tokens,
            output_tokens=sum(completion.usage.completion_tokens for completion in said),
            cost=0.0,
        )
        draws = tuple([_draw(completion.choices[0], query) for completion in said])
        return Reply(query=query, model=self._name, draws=draws, usage=usage)

    def _completed(self, request: dict[str, object]) -> _Completion:
        return self._engine.ask("/v1/chat/completions", request, self._line, _Completion)

    def _choice(self, query: Query, slot: int) -> Reply:
        if len(set(query.options)) < len(query.options):
            raise ModelError("two options of the query are the same: give options that differ")
        options = self.inert(query.options)
        shown = self._shown(turns(replace(query, options=options), spell_out_tools=True))
        template = {"messages": shown, "chat_template_kwargs": {"enable_thinking": False}}
        begun = self._engine.ask("/apply-template", template, self._line, _Prompt).prompt + BEGUN
        candidates = force([begun + answer for answer in answers(options)], self._tokens)
        longest = max(len(forced.answer) for forced in candidates)
        if longest > self._sampling.max_tokens:
            raise ModelError(
                f"an option of the query has {longest} tokens, more than the {self._sampling.max_tokens} of an answer: "
                "give shorter options, or LocalModel more `max_tokens`"
            )
        read = self._engine.ask("/completion", {**candidates[0].reading, "id_slot": slot}, self._line, Scored)
        logprobs = [self._scored(forced, slot) if forced.answer else 0.0 for forced in candidates]
        written = sum(len(forced.answer) for forced in candidates)
        used = Usage(input_tokens=read.tokens_evaluated, output_tokens=written, cost=0.0)
        probabilities = chances(logprobs)
        dice = Random(self._sampling.of(0))  # noqa: S311 - draws that can be repeated, not secrets
        draws = tuple([Draw(text=text) for text in dice.choices(query.options, probabilities, k=max(1, query.samples))])
        choice = tuple(zip(query.options, probabilities, strict=True))
        return Reply(query=query, model=self._name, draws=draws, choice=choice, exact=True, usage=used)

    def _scored(self, forced: Forced, slot: int) -> float:
        scored = self._engine.ask("/completion", {**forced.scoring, "id_slot": slot}, self._line, Scored)
        return forced.logprob(scored)

    def takes_tools(self, query: Query) -> bool:
        """Whether the tools of a query go through the model's template: it has a place for them and nothing forbids it.

        A schema does: the runtime holds an answer to a schema or to its tools, not to both.
        """
        if not query.tools or isinstance(query.schema, Raw):
            return False
        properties = self._engine.ask("/props", None, self._line, _Properties)
        told = msgspec.json.encode(declared(query.tools)).decode()
        return properties.chat_template_caps.supports_tools and self._is_inert(told)

    def _shown(self, conversation: Sequence[Turn]) -> list[Turn]:
        length = sum(len(turn.content) for turn in conversation)
        if length > _LONGEST_TOKEN * self._sampling.context:
            raise ModelError(
                f"the query has {length} characters, which is more than a context of {self._sampling.context} tokens "
                "takes: ask with less context, or give LocalModel a larger `context`"
            )
        contents = self.inert([turn.content for turn in conversation])
        return [Turn(turn.role, content) for turn, content in zip(conversation, contents, strict=True)]

    def inert(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return texts that cannot end their turn or begin another: no control token of the model is left in them.

        Where there is one, a space goes into each place where one may begin; other texts stay as they are.
        """
        texts = tuple([printable(text) for text in texts])
        if self._is_inert("\n".join(texts)):
            return texts
        broken = tuple([text if self._is_inert(text) else _OPENING.sub(r"\1 ", text) for text in texts])
        if not self._is_inert("\n".join(broken)):
            raise ModelError("the query holds control tokens of the model that cannot be taken apart: ask without them")
        return broken

    def _is_inert(self, text: str) -> bool:
        return self._tokens(text) == self._tokens(text, control=False)

    def _tokens(self, text: str, *, control: bool = True) -> tuple[int, ...]:
        body = {"content": text, "add_special": True, "parse_special": control}
        return self._engine.ask("/tokenize", body, self._line, _Tokens).tokens


def _draw(said: _Alternative, query: Query) -> Draw:
    text = said.message.content or ""
    if isinstance(query.schema, Raw):
        _refuse_unheld(text)
    calls = named(said.message.tool_calls) or (attempted(text) if query.tools else ())
    return Draw(text=text, tool_calls=calls)


def _refuse_unheld(text: str) -> None:
    """Raise ModelError for a draw that was not held to its schema.

    The runtime drops, without a word, a schema that it does not understand. One that was merely cut by `max_tokens` is
    an answer, and is for the asker to judge.
    """
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if "truncated" in str(error):
            return
        raise ModelError(
            "xllamacpp did not hold the draw to the query's schema: it holds a keyword that its grammars do not know, "
            "such as uniqueItems, not or $ref to elsewhere: give a plainer schema",
            cause=Cause.MALFORMED,
        ) from None
