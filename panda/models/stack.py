"""
The models that the specification names for the layers, as files of a hub.

Source:
    S3 §3.
"""

from dataclasses import dataclass

STACK_NAME = "s3"


@dataclass(frozen=True, kw_only=True)
class StackPart:
    """What serves one layer."""

    layer: str
    model: str  # as the specification calls it
    repository: str | None = None  # of the hub; None where no file of it can serve the layer
    file_name: str = ""
    projector_name: str | None = None  # the file that goes with a model that sees
    reason: str = ""  # why no file can serve it


STACK: tuple[StackPart, ...] = (
    StackPart(
        layer="REFLEX",
        model="Qwen3-0.6B",
        repository="Qwen/Qwen3-0.6B-GGUF",
        file_name="Qwen3-0.6B-Q8_0.gguf",
    ),
    StackPart(
        layer="NERVES",
        model="Youtu-LLM-2B-Base",
        reason="a base model has no chat template, so it cannot reply: NERVES stays as it is",
    ),
    StackPart(
        layer="MIND",
        model="Qwen3-Coder-30B-Instruct",
        repository="unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        file_name="Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
    ),
    StackPart(
        layer="VOICE",
        model="Llama-3.1-8B-Instruct",
        repository="bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
        file_name="Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
    ),
    StackPart(
        layer="EYES",
        model="Qwen3-VL-8B-Instruct",
        repository="Qwen/Qwen3-VL-8B-Instruct-GGUF",
        file_name="Qwen3VL-8B-Instruct-Q4_K_M.gguf",
        projector_name="mmproj-Qwen3VL-8B-Instruct-F16.gguf",
    ),
)
