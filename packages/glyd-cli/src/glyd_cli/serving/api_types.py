# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Bodies of requests, as OpenAI's API defines them, and the additions that vLLM made common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from glyd_cli.serving.engine import ModelInfo, Sampling

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST_STOPS = 16
_MOST_CHOICES = 32
_MOST_LOGPROBS = 20
_FINITE = {"allow_inf_nan": False}

Text = Annotated[str, Field(max_length=4_000_000)]


class Function(BaseModel):
    """A function that the model may call."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[str, Field(min_length=1, max_length=256)]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    """A tool: functions are the only kind."""

    type: Literal["function"] = "function"
    function: Function


class ToolChoiceFunction(BaseModel):
    """Name of the function that must be called."""

    name: str


class ToolChoice(BaseModel):
    """A tool that must be called."""

    type: Literal["function"] = "function"
    function: ToolChoiceFunction


class Message(BaseModel):
    """One message of a chat."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.role in {"system", "developer", "user"}:
            raise ValueError(f"a message of the role {self.role} needs content")
        return self


class JsonSchema(BaseModel):
    """A schema by name."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)
    name: str = "answer"
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


class ResponseFormat(BaseModel):
    """What an answer must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if self.type == "json_schema" and (self.json_schema is None or self.json_schema.schema_ is None):
            raise ValueError("type json_schema needs json_schema.schema")
        return self

    def schema_wanted(self) -> dict[str, Any] | None:
        """Return the JSON schema that an answer must follow; None for any text."""
        if self.type == "text":
            return None
        if self.type == "json_schema" and self.json_schema is not None:
            return self.json_schema.schema_
        return {"type": "object"}


class StreamOptions(BaseModel):
    """Options of streamed answers."""

    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class Request(BaseModel):
    """What both kinds of requests have. Unknown fields are ignored, as other servers do."""

    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, **_FINITE)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1, **_FINITE)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=2**31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, **_FINITE)] | None = None
    n: Annotated[int, Field(ge=1, le=_MOST_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[Annotated[int, Field(ge=0)]] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2, **_FINITE)] = 0.0
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, **_FINITE)] = 0.0
    repetition_penalty: Annotated[float, Field(gt=0, le=10, **_FINITE)] | None = None
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100, **_FINITE)]] | None = None
    user: str | None = None

    @field_validator("stop")
    @classmethod
    def _few_stops(cls, value: str | list[str] | None) -> str | list[str] | None:
        strings = [value] if isinstance(value, str) else value or []
        if len(strings) > _MOST_STOPS:
            raise ValueError(f"at most {_MOST_STOPS} stop strings, found {len(strings)}")
        if any(not s for s in strings):
            raise ValueError("stop strings must not be empty")
        return value

    @property
    def stops(self) -> list[str]:
        """Stop strings as a list."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    def sampling(self, info: ModelInfo, *, n_prompt: int, n_logprobs: int | None, grammar: str | None) -> Sampling:
        """Return the rules of one answer.

        Parameters
        ----------
        info
            The model's window, vocabulary and defaults.
        n_prompt
            Tokens of the prompt; a prompt that fills the window is the engine's to refuse.
        n_logprobs, grammar
            See `Sampling`.

        Raises
        ------
        ValueError
            A token id is outside the vocabulary or no number.
        """
        room = max(info.context - n_prompt, 1)
        n_vocabulary = info.n_vocabulary
        advised = info.defaults
        bias: dict[int, float] = {}
        for key, value in (self.logit_bias or {}).items():
            if not key.isascii() or not key.isdigit() or len(key) > 12 or int(key) >= n_vocabulary:
                raise ValueError(f"logit_bias: token ids are numbers from 0 to {n_vocabulary - 1}, found {key[:40]!r}")
            bias[int(key)] = value
        outside = [t for t in self.stop_token_ids or [] if t >= n_vocabulary]
        if outside:
            raise ValueError(f"stop_token_ids: ids are below {n_vocabulary}, found {outside[0]}")
        return Sampling(
            max_tokens=min(self.most_tokens or room, room),
            temperature=advised.get("temperature", 1.0) if self.temperature is None else self.temperature,
            top_p=advised.get("top_p", 1.0) if self.top_p is None else self.top_p,
            top_k=max(int(advised.get("top_k", 0)) if self.top_k is None else self.top_k, 0),
            min_p=advised.get("min_p", 0.0) if self.min_p is None else self.min_p,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=advised.get("repetition_penalty", 1.0)
            if self.repetition_penalty is None
            else self.repetition_penalty,
            logit_bias=bias,
            seed=self.seed,
            n_logprobs=n_logprobs,
            stop_token_ids=tuple(self.stop_token_ids or ()),
            ignore_eos=self.ignore_eos,
            grammar=grammar,
        )

    @property
    def most_tokens(self) -> int | None:
        """Most tokens wanted, None when not said."""
        return self.max_tokens


class ChatRequest(Request):
    """Body of ``/v1/chat/completions``."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=10_000)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31)] | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=_MOST_LOGPROBS)] | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    response_format: ResponseFormat | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def most_tokens(self) -> int | None:
        """Most tokens wanted, None when not said."""
        return self.max_completion_tokens or self.max_tokens


class CompletionRequest(Request):
    """Body of ``/v1/completions``."""

    prompt: Text | list[Text] | list[int] | list[list[int]]
    echo: bool = False
    suffix: None = None
    best_of: Literal[1] | None = None
    logprobs: Annotated[int, Field(ge=0, le=_MOST_LOGPROBS)] | None = None
    response_format: ResponseFormat | None = None

    @property
    def most_tokens(self) -> int | None:
        """Most tokens wanted: 16 when not said, as OpenAI's API has it."""
        return self.max_tokens or 16


class EmbeddingRequest(BaseModel):
    """Body of ``/v1/embeddings``."""

    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    input: Text | list[Text] | list[int] | list[list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1, le=2**31)] | None = None
    truncate_prompt_tokens: Annotated[int, Field(ge=-1, le=2**31)] | None = None
    user: str | None = None

    @field_validator("truncate_prompt_tokens")
    @classmethod
    def _some_tokens(cls, value: int | None) -> int | None:
        if value is not None and value in {0, 1}:
            raise ValueError("-1 (the model's window) or 2 and more")
        return value


class TokenizeRequest(BaseModel):
    """Body of ``/tokenize``: a prompt or a chat."""

    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    prompt: Text | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool = True
    add_generation_prompt: bool = True


class DetokenizeRequest(BaseModel):
    """Body of ``/detokenize``."""

    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0)]]
