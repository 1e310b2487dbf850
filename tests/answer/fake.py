"""A chat model that says what a function makes of its prompt, word by word."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class FakeChat(BaseChatModel):
    """Answers by ``reply``, which gets the last message's text; ``seen`` keeps all prompts."""

    reply: Callable[[str], str]
    seen: list[str] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._said(messages)))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for word in self._said(messages).split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))

    def _said(self, messages: Sequence[BaseMessage]) -> str:
        self.seen.append("\n".join(str(message.content) for message in messages))
        return self.reply(str(messages[-1].content))
