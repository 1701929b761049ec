"""`panda models add`: from the address of a server, a file or a hub to an entry of models.yaml."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

from panda.cli.command import Invocation, OutputTable, Result, argument, flag, option
from panda.cli.completion import complete_layers, complete_model_sources
from panda.cli.confirmation import can_ask, choose_number, confirm
from panda.cli.models import DryRun, check_own_file
from panda.documents.safe_text import nearest
from panda.errors import CheckError, LimitError, NotFoundError, Problem, TryAgainError, UsageError
from panda.models.addition import (
    Addition,
    check_free,
    check_name,
    choose_name,
    find_same,
    make_entry,
    plan_addition,
)
from panda.models.discovery import ModelDirectory, check_server_url, locate_ollama
from panda.models.file_source import describe_file, locate_file
from panda.models.hub import Hub, HubFile, parse_hub_path
from panda.models.layers import EYES, LoadedLayers
from panda.models.meant_source import find_hub_source, find_meant_source
from panda.models.models_file import LAYERS, USUAL_LAYERS, ModelsFile, load_models_file, parse_models_file
from panda.models.offered_model import THINKING_TOKENS, OfferedModel
from panda.models.stack import STACK, STACK_NAME, StackPart
from panda.models.survey import ModelState, Trial, check_model
from panda.recipes.checks import largest_window_needed
from panda.settings import Settings
from panda.store.files import read_text, write_output
from panda.store.layout import asset
from panda.trust import find_models_claim, read_trust, record_trust, require_trust

_FORMS = "ollama:MODEL, http://HOST:PORT/v1, FILE.gguf, hf:OWNER/REPO/FILE.gguf or s3"
_OLLAMA = "ollama:"
_HUB = "hf:"
_DOWNLOADS = "models"
"""Where files of a hub go, beside models.yaml."""
_NAMED_MODELS = 20
"""So many models of a server are named in an error."""
_SMALL_PARAMETERS = 1_000_000_000
_SMALL_FILE_BYTES = 400_000_000
_COMMAND = "panda models add"
_UNASKED = "give --yes to add it without being asked, or --dry-run to see what would change"
_KINDS: Mapping[str, str] = {
    "llama_cpp": "model file",
    "openai": "server",
    "ollama": "Ollama",
    "llama-server": "llama-server",
    "lmstudio": "LM Studio",
    "vllm": "vLLM",
}
_WIDER: Mapping[str, str] = {
    "ollama": (
        "start it with a larger window: OLLAMA_CONTEXT_LENGTH=16384 ollama serve; where it is a service: "
        'systemctl edit ollama, with Environment="OLLAMA_CONTEXT_LENGTH=16384" below [Service], or '
        "PARAMETER num_ctx 16384 in a Modelfile"
    ),
    "llama-server": "start it with a larger window: llama-server -c 16384 (times its --parallel)",
    "vllm": "start it with a larger window: vllm serve --max-model-len 16384",
    "lmstudio": "load the model with a larger context length",
}
"""What gives a server's model a larger window, by backend."""


@dataclass(frozen=True, kw_only=True)
class _AddOptions:
    """What the options of the command say of the model."""

    name: str | None = None  # its key in models.yaml
    layers: tuple[str, ...] = USUAL_LAYERS
    model: str | None = None  # which of the models of a server
    n_ctx: int | None = None  # window in model tokens
    api_key_env: str | None = None
    projector: Path | None = None  # the file that goes with a model file that sees


def add(
    invocation: Invocation,
    model_source: Annotated[
        str,
        argument(f"Where the model is: {_FORMS}.", "SOURCE", complete=complete_model_sources),
    ],
    model_name: Annotated[
        str | None,
        option("Its name in models.yaml.", "NAME", "--name", show_default="made of the model's own"),
    ] = None,
    layer: Annotated[
        list[str] | None,
        option(
            "A layer that it is to serve; may be repeated.",
            "LAYER",
            complete=complete_layers,
            show_default=" ".join(USUAL_LAYERS),
        ),
    ] = None,
    model_id: Annotated[
        str | None,
        option("Which model of a server that serves several.", "ID", "--model", show_default="the only one"),
    ] = None,
    n_ctx: Annotated[
        int | None,
        option("Its window in model tokens.", "N", "--n-ctx", min=1, show_default="what the source tells"),
    ] = None,
    api_key_env: Annotated[
        str | None,
        option("The variable that holds the server's key.", "VARIABLE", show_default="none"),
    ] = None,
    projector_file: Annotated[
        Path | None,
        option("The file that goes with a model file that sees.", "FILE", "--projector", show_default="none"),
    ] = None,
    yes: Annotated[bool, flag("Do not ask.", "--yes")] = False,
    dry_run: DryRun = False,
) -> Result:
    """
    Add a model to models.yaml and give it layers: looked at, tried once, shown, and written after you agree.

    Example: panda models add ollama:qwen3:4b --dry-run

    The source tells name and window; one small request tells speed, how JSON is asked for, and whether it
    thinks. The project's models.yaml is made if there is none; comments and all else in it stay as they are.
    What serves a layer is sent what the layer works on: your questions, notes and memory. So you are asked
    first, and without a terminal --yes is needed; your yes is recorded as `panda trust` records it. Adding
    the same model again changes nothing. An encoder is not added so: write it into models.yaml with embeds:
    true, and name it for the key encoder there.

    \b
    panda models add http://127.0.0.1:8080/v1
    panda models add models/Qwen3-0.6B-Q8_0.gguf --layer REFLEX --layer NERVES
    panda models add hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf --name small

    A file of a hub (pip install 'panda-turns[hub]') goes to models/ beside models.yaml; an interrupted
    download goes on where it stopped. HF_ENDPOINT names another hub, HF_TOKEN holds your token. The source s3
    is the five models of the specification: sizes are shown first, and each is added or told why not.
    """
    add_options = _AddOptions(
        name=model_name,
        layers=_read_layers(layer),
        model=model_id,
        n_ctx=n_ctx,
        api_key_env=api_key_env,
        projector=projector_file,
    )
    if model_name is not None:
        check_name(model_name)
    settings = invocation.settings
    require_trust(settings, "models_file", "cache_dir")
    if model_source == STACK_NAME:
        if add_options != _AddOptions():
            message = "s3 says itself which models serve which layers"
            raise UsageError(message, where="SOURCE", fix="give it with --yes and --dry-run alone")
        return _add_stack(invocation, yes=yes, dry_run=dry_run)
    return _add(invocation, model_source, add_options, yes=yes, dry_run=dry_run)


def _add(
    invocation: Invocation, model_source: str, add_options: _AddOptions, *, yes: bool, dry_run: bool
) -> Result:
    """Add one model."""
    models_file = _load_target(invocation.settings)
    if model_source.startswith(_HUB):
        download = _plan_download(invocation, models_file, *parse_hub_path(model_source.removeprefix(_HUB)))
        if download.file is not None:
            _check_file_options(add_options)
            if add_options.name is not None:
                check_free(models_file, add_options.name)
            _tell_download(invocation, download, add_options)
            if dry_run:
                return Result(_download_data(models_file, download))
            if not yes:
                question = f"download it, and add it to {models_file.path}"
                confirm(question, where=_COMMAND, undone="nothing was downloaded", fix=_UNASKED)
            yes = True
            _download(invocation, download)
        model_source = str(download.path)
    with ExitStack() as resources:
        offer, directory = _look_at(invocation, model_source, add_options, models_file, resources)
        _tell_offer(invocation, offer)
        addition = _plan(models_file, offer, add_options, is_tried=False)
        trial = None
        if not addition.changes_nothing:
            state = _try(invocation, models_file, addition)
            trial = state.trial
            offer = _seen_in_trial(offer, trial, directory)
            addition = _plan(models_file, offer, add_options, is_tried=True)
            _check_window(invocation, models_file, addition, offer)
            _tell_trial(invocation, addition, trial, offer)
            if set(add_options.layers) >= set(USUAL_LAYERS) and _is_small(offer, directory):
                invocation.reporter.warn(
                    f"{addition.name} is a small model, and those write little sense: "
                    "with --layer VOICE the other steps stay offline"
                )
    return _finish(invocation, models_file, addition, offer, trial=trial, yes=yes, dry_run=dry_run)


@dataclass(frozen=True, kw_only=True)
class _Download:
    """A file of a hub, and where it goes."""

    hub: Hub
    path: Path  # where it goes, or is
    file: HubFile | None  # None where models.yaml has it, and it is there


@dataclass(frozen=True, kw_only=True)
class _PlannedPart:
    """A model of the stack with the files that it needs."""

    part: StackPart
    downloads: tuple[_Download, ...] = ()  # the model, then its projector; empty where it cannot be had
    reason: str = ""  # why it cannot be had

    @property
    def size_bytes(self) -> int:
        """Return how much is to be downloaded."""
        return sum(download.file.size_bytes for download in self.downloads if download.file is not None)


def _add_stack(invocation: Invocation, *, yes: bool, dry_run: bool) -> Result:
    """Add the models of the specification; what cannot be had is told, and the others are added."""
    models_file = _load_target(invocation.settings)
    planned = [_plan_part(invocation, models_file, part) for part in STACK]
    total_bytes = sum(part.size_bytes for part in planned)
    rows = [
        (
            planned_part.part.layer,
            planned_part.part.model,
            f"{planned_part.size_bytes:,}",
            planned_part.reason or "to be added",
        )
        for planned_part in planned
    ]
    columns = ("layer", "model", "bytes to download", "state")
    if not dry_run:
        invocation.reporter.table(columns, rows)
        invocation.reporter.step("they run in panda's own process")
        if not yes:
            question = f"download {total_bytes:,} bytes, and add these to {models_file.path}"
            confirm(question, where=_COMMAND, undone="nothing was downloaded", fix=_UNASKED)
        planned = [_add_part(invocation, planned_part) for planned_part in planned]
        rows = [
            (row[0], row[1], row[2], part.reason or "added") for row, part in zip(rows, planned, strict=True)
        ]
    data = {
        "models_file": str(models_file.path),
        "dry_run": dry_run,
        "bytes": total_bytes,
        "parts": [
            {
                "layer": planned_part.part.layer,
                "model": planned_part.part.model,
                "bytes": planned_part.size_bytes,
                "reason": planned_part.reason or None,
            }
            for planned_part in planned
        ],
    }
    missing = [
        planned_part for planned_part in planned if planned_part.reason and not planned_part.part.reason
    ]
    error = None
    if missing:
        names = ", ".join(planned_part.part.model for planned_part in missing)
        fix = "see the rows; the same command adds what is missing"
        error = CheckError(f"not added: {names}", where=str(models_file.path), fix=fix)
    return Result(data, OutputTable(columns, rows, keeps_words=True), error=error)


def _plan_part(invocation: Invocation, models_file: ModelsFile, stack_part: StackPart) -> _PlannedPart:
    if stack_part.repository is None:
        return _PlannedPart(part=stack_part, reason=stack_part.reason)
    names = [stack_part.file_name]
    if stack_part.projector_name is not None:
        names.append(stack_part.projector_name)
    try:
        downloads = [_plan_download(invocation, models_file, stack_part.repository, name) for name in names]
    except (NotFoundError, TryAgainError) as exc:
        return _PlannedPart(part=stack_part, reason=exc.message)
    return _PlannedPart(part=stack_part, downloads=tuple(downloads))


def _add_part(invocation: Invocation, planned_part: _PlannedPart) -> _PlannedPart:
    """Download and add one model; what stops it becomes its reason."""
    if not planned_part.downloads:
        return planned_part
    part = planned_part.part
    model, *projectors = planned_part.downloads
    projector = projectors[0].path if projectors else None
    add_options = _AddOptions(layers=(part.layer,), projector=projector)
    try:
        for download in planned_part.downloads:
            _download(invocation, download)
        _add(invocation, str(model.path), add_options, yes=True, dry_run=False)
    except Problem as exc:
        return replace(planned_part, reason=exc.message)
    return planned_part


def _read_layers(layers: Sequence[str] | None) -> tuple[str, ...]:
    """Return the layers that were named, in any case; without any those that read and write."""
    names = [layer.upper() for layer in layers or USUAL_LAYERS]
    for name in names:
        if name not in LAYERS:
            raise UsageError(f"there is no layer {name!r:.40}", where="--layer", fix=nearest(name, LAYERS))
    return tuple(dict.fromkeys(names))


def _load_target(settings: Settings) -> ModelsFile:
    """
    Return the models.yaml that is to be written, as it is; where there is none the packaged one in its place.

    Raises:
        UsageError: It is not the project's own.
        ModelFileError: It is broken.
    """
    packaged = asset("models.yaml")
    path = settings.models_file
    if settings.origin("models_file") == "default":
        path = settings.project_dir / "models.yaml"
    if path.exists() and path.samefile(packaged):
        fix = "change to a directory of your own, and give the command there"
        raise UsageError("this models.yaml comes with panda", where=str(path), fix=fix)
    if not path.exists():
        return replace(load_models_file(packaged), path=path)
    check_own_file(settings, path, command="panda models add SOURCE")
    return load_models_file(path)


def _plan_download(invocation: Invocation, models_file: ModelsFile, repository: str, name: str) -> _Download:
    """Return what is to be downloaded; the hub is not asked of a file that models.yaml has already."""
    path = models_file.path.parent / _DOWNLOADS / name
    address = (invocation.environ.get("HF_ENDPOINT") or Hub.address).rstrip("/")
    hub = Hub(address=address, token=invocation.environ.get("HF_TOKEN") or None)
    specs = [spec for spec in models_file.models.values() if not spec.servers]
    locations = [place for spec in specs for place in (spec.location, spec.projector)]
    if path.is_file() and locate_file(path, relative_to=models_file.path.parent) in locations:
        return _Download(hub=hub, path=path, file=None)
    return _Download(hub=hub, path=path, file=hub.find_file(repository, name))


def _tell_download(invocation: Invocation, download: _Download, add_options: _AddOptions) -> None:
    file = download.file
    if file is not None:
        checksum = f"sha256 {file.sha256}" if file.sha256 else "no checksum"
        invocation.reporter.step(
            f"{download.hub.address}/{file.repository}: {file.name}, {file.size_bytes:,} bytes, {checksum}"
        )
        invocation.reporter.step(f"it goes to {download.path}, and runs in panda's own process")
        invocation.reporter.step(f"it is to serve {' '.join(add_options.layers)}")


def _download(invocation: Invocation, download: _Download) -> None:
    if download.file is not None:
        directory = download.path
        for _ in Path(download.file.name).parts:
            directory = directory.parent
        download.hub.download(download.file, directory, cache_dir=invocation.settings.cache_dir)


def _download_data(models_file: ModelsFile, download: _Download) -> dict[str, object]:
    return {
        "models_file": str(models_file.path),
        "dry_run": True,
        "download": {
            "path": str(download.path),
            "address": download.hub.address,
            **(asdict(download.file) if download.file else {}),
        },
    }


def _look_at(
    invocation: Invocation,
    model_source: str,
    add_options: _AddOptions,
    models_file: ModelsFile,
    resources: ExitStack,
) -> tuple[OfferedModel, ModelDirectory | None]:
    """Return the model that a source means, and what asks its server, which is closed with *resources*."""
    is_url = model_source.startswith(("http://", "https://"))
    _check_source(model_source)
    if not is_url and not model_source.startswith(_OLLAMA):
        path = Path(model_source)
        _check_file_options(add_options)
        directory_of_file = models_file.path.parent
        cache_dir = invocation.settings.cache_dir
        offer = describe_file(path, cache_dir=cache_dir, relative_to=directory_of_file)
        if add_options.projector is not None:
            place = locate_file(add_options.projector, relative_to=directory_of_file)
            offer = replace(offer, projector=place)
        _check_replies(offer, where=str(path))
        return offer, None
    address = check_server_url(
        model_source if is_url else locate_ollama(invocation.environ.get("OLLAMA_HOST"))
    )
    start = "start the server, or correct the address; then give the command again"
    if not is_url:
        start = "start it with `ollama serve`, or say where it is: OLLAMA_HOST=HOST:PORT"
    if add_options.projector is not None:
        message = "--projector goes with a file, not with a server"
        raise UsageError(message, where="--projector", fix="leave it out")
    key = _read_key(invocation, add_options.api_key_env)
    directory = resources.enter_context(ModelDirectory(address, api_key=key, start=start))
    if is_url:
        offer = _choose(directory.list_models(), add_options, where=address)
    elif add_options.model is not None:
        fix = f"name the model in the source: {_OLLAMA}{add_options.model}"
        raise UsageError("--model does not go with ollama:MODEL", where="--model", fix=fix)
    else:
        offer = directory.find_on_ollama(model_source.removeprefix(_OLLAMA))
    _check_replies(offer, where=address)
    return offer, directory


def _check_source(model_source: str) -> None:
    """Raises UsageError for a text that is no source, with the one that it may have been meant as."""
    is_file = model_source.lower().endswith(".gguf")
    hub_source = find_hub_source(model_source)
    if hub_source is not None and not (is_file and Path(model_source).exists()):
        message = f"{model_source!r:.120} is a page of Hugging Face"
        raise UsageError(message, where="SOURCE", fix=f"give it as {hub_source}")
    if model_source == _OLLAMA:
        fix = f"name one that `ollama list` shows, as in {_OLLAMA}qwen3:4b"
        raise UsageError(f"{_OLLAMA} names no model", where="SOURCE", fix=fix)
    if is_file or model_source.startswith((_OLLAMA, "http://", "https://")):
        return
    meant = find_meant_source(model_source)
    fix = f"did you mean {meant}?" if meant is not None else f"use {_FORMS}"
    raise UsageError(f"{model_source!r:.80} is no source of a model", where="SOURCE", fix=fix)


def _check_file_options(add_options: _AddOptions) -> None:
    """Raises UsageError for options that a file has no use for, and where it could not see."""
    for option_name, value in (("--model", add_options.model), ("--api-key-env", add_options.api_key_env)):
        if value is not None:
            message = f"{option_name} goes with a server, not with a file"
            raise UsageError(message, where=option_name, fix="leave it out")
    if EYES in add_options.layers and add_options.projector is None:
        fix = "name the projector that comes with it: --projector mmproj-….gguf"
        raise UsageError("a file alone does not see", where="--layer EYES", fix=fix)


def _read_key(invocation: Invocation, variable: str | None) -> str | None:
    """Return the key that a variable holds; None where none is named."""
    if variable is None:
        return None
    key = invocation.environ.get(variable, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        message = f"the environment variable {variable:.80} holds no key"
        raise UsageError(message, where="--api-key-env", fix="export it with the server's key")
    return key


def _check_replies(offer: OfferedModel, *, where: str) -> None:
    """Raises UsageError for a model that cannot reply."""
    if offer.is_encoder:
        fix = "name a model that writes; panda models add --help says where an encoder goes"
        message = f"{offer.model} is an encoder: it turns texts into vectors and writes nothing"
        raise UsageError(message, where=where, fix=fix)
    if not offer.has_chat_template:
        fix = "get the model's chat or instruct version"
        raise UsageError(f"{offer.model} is a base model: it has no chat template", where=where, fix=fix)


def _choose(offers: Sequence[OfferedModel], add_options: _AddOptions, *, where: str) -> OfferedModel:
    """Return the model that --model or --name means, the only one, or the one that is chosen when asked."""
    by_id = {offer.model: offer for offer in offers}
    if add_options.model is not None and add_options.model not in by_id:
        message = f"the server has no model {add_options.model!r:.80}"
        raise UsageError(message, where="--model", fix=nearest(add_options.model, by_id))
    chosen = add_options.model if add_options.model is not None else add_options.name
    if chosen in by_id:
        return by_id[chosen]
    writing = [offer for offer in offers if not offer.is_encoder] or list(offers)
    if len(writing) == 1:
        return writing[0]
    names = [offer.model for offer in writing]
    if can_ask():
        listed = "\n".join(f"{number}. {name}" for number, name in enumerate(names, 1))
        number = choose_number(f"the server serves several models:\n{listed}\nwhich one?", len(names))
        if number is not None:
            return writing[number - 1]
    more = f" and {len(names) - _NAMED_MODELS} more" if len(names) > _NAMED_MODELS else ""
    message = f"the server serves {len(names)} models: {', '.join(names[:_NAMED_MODELS])}{more}"
    raise UsageError(message, where=where, fix=f"choose one: --model {names[0]}")


def _plan(
    models_file: ModelsFile, offer: OfferedModel, add_options: _AddOptions, *, is_tried: bool
) -> Addition:
    """
    Return what is added; a model that the file has already is only given the layers. Before the trial an
    entry for Ollama may have no window: the trial loads the model, and then Ollama tells it.
    """
    same = find_same(models_file, offer)
    if same is not None and add_options.name in (None, same.name):
        return plan_addition(models_file, name=same.name, entry=None, layers=add_options.layers)
    name = add_options.name or choose_name(models_file, offer)
    n_ctx = None
    if is_tried or not _is_window_open(offer):
        n_ctx = _choose_window(offer, add_options)
    entry = make_entry(offer, n_ctx=n_ctx, api_key_env=add_options.api_key_env)
    return plan_addition(models_file, name=name, entry=entry, layers=add_options.layers)


def _is_window_open(offer: OfferedModel) -> bool:
    """Say whether the window is not known until the server has loaded the model."""
    return offer.backend == "ollama" and offer.n_ctx is None


def _choose_window(offer: OfferedModel, add_options: _AddOptions) -> int:
    """Return the window of the entry. Raises UsageError: it is not known, or the server's is smaller."""
    n_ctx = add_options.n_ctx or offer.n_ctx
    if n_ctx is None:
        trained = f" (it was trained with {offer.n_ctx_trained:,})" if offer.n_ctx_trained else ""
        message = f"the server does not tell the window of {offer.model}{trained}"
        raise UsageError(message, where="--n-ctx", fix="give it as the server was started: --n-ctx 16384")
    if offer.is_served and offer.n_ctx is not None and n_ctx > offer.n_ctx:
        message = f"the server's window is {offer.n_ctx:,} tokens, less than {n_ctx:,}"
        fix = _WIDER.get(offer.backend, f"give --n-ctx {offer.n_ctx} or less")
        raise UsageError(message, where="--n-ctx", fix=fix)
    return n_ctx


def _try(invocation: Invocation, models_file: ModelsFile, addition: Addition) -> ModelState:
    """Use the model once, as it would stand in models.yaml. Raises what makes it unusable."""
    after = parse_models_file(addition.text, path=models_file.path)
    invocation.reporter.step(f"trying {addition.name} once")
    with LoadedLayers(after, cache_dir=invocation.settings.cache_dir, environ=invocation.environ) as layers:
        state = check_model(after, layers, addition.name)
    if state.error is not None:
        raise state.error
    return state


def _seen_in_trial(
    offer: OfferedModel, trial: Trial | None, model_directory: ModelDirectory | None
) -> OfferedModel:
    """Return what is known of a model once it has replied: whether it thinks, and Ollama's real window."""
    if trial is not None and trial.thinks:
        offer = replace(offer, thinks=True)
    if offer.backend == "ollama" and model_directory is not None:
        window = model_directory.find_ollama_window(offer.model)
        if window is not None:
            offer = replace(offer, n_ctx=window)
    return offer


def _check_window(
    invocation: Invocation, models_file: ModelsFile, addition: Addition, offer: OfferedModel
) -> None:
    """Raises LimitError where a recipe of a layer does not fit the window: no turn could begin."""
    spec = parse_models_file(addition.text, path=models_file.path).models[addition.name]
    if spec.n_ctx is None or not addition.layers:
        return
    needs = {layer: largest_window_needed(invocation.book(), layer) for layer in addition.layers}
    layer = max(needs, key=needs.__getitem__)
    needed = needs[layer] + spec.thinking_tokens
    if needed <= spec.n_ctx:
        return
    message = f"the window of {addition.name} has {spec.n_ctx:,} tokens, and {layer} needs {needed:,}"
    enough = needs[layer] + (THINKING_TOKENS if spec.thinking_tokens else 0)
    if addition.entry is not None and offer.n_ctx is not None and offer.n_ctx >= enough:
        fix = f"leave --n-ctx out, or give {enough} or more: the source has {offer.n_ctx:,}"
    else:
        fix = _WIDER.get(spec.backend, f"give --n-ctx {enough} or more, or other layers with --layer")
    raise LimitError(message, where=spec.location, fix=fix)


def _is_small(offer: OfferedModel, model_directory: ModelDirectory | None) -> bool:
    """Say whether a model has too few parameters to write much sense; False where that is not told."""
    if model_directory is None:
        return offer.size_bytes is not None and offer.size_bytes < _SMALL_FILE_BYTES
    count = model_directory.count_parameters(offer)
    return count is not None and count < _SMALL_PARAMETERS


def _tell_offer(invocation: Invocation, offer: OfferedModel) -> None:
    parts = [offer.model]
    if offer.architecture:
        parts.append(offer.architecture)
    if offer.size_bytes is not None:
        parts.append(f"{offer.size_bytes:,} bytes")
    if offer.n_ctx is not None:
        parts.append(f"window {offer.n_ctx:,} tokens")
    elif _is_window_open(offer):
        parts.append("window not known until the model is loaded")
    if offer.n_ctx_trained not in (None, offer.n_ctx):
        parts.append(f"trained with {offer.n_ctx_trained:,}")
    if offer.parallel > 1:
        parts.append(f"{offer.parallel} requests at a time")
    invocation.reporter.step(f"{_KINDS[offer.backend]} {offer.location}: {', '.join(parts)}")


def _tell_trial(invocation: Invocation, addition: Addition, trial: Trial | None, offer: OfferedModel) -> None:
    if trial is not None:
        parts = [f"{trial.seconds:.1f} s"]
        if trial.tokens_per_second is not None:
            parts.append(f"{trial.tokens_per_second:.1f} tokens/s")
        if trial.structured is not None:
            parts.append(f"JSON by {trial.structured}")
        if trial.thinks:
            parts.append("it thinks")
        if offer.backend == "ollama" and offer.n_ctx is not None:
            parts.append(f"window {offer.n_ctx:,} tokens")
        invocation.reporter.step(f"{addition.name} replies: {', '.join(parts)}")
    for layer, before in addition.layers.items():
        invocation.reporter.step(f"{layer}: {before or 'unset'} → {addition.name}")
    if offer.is_served:
        invocation.reporter.step(
            f"{offer.location} will be sent what these layers work on: your questions, notes and memory"
        )
    else:
        invocation.reporter.step(f"{offer.location} will run in panda's own process")


def _finish(
    invocation: Invocation,
    models_file: ModelsFile,
    addition: Addition,
    offer: OfferedModel,
    *,
    trial: Trial | None,
    yes: bool,
    dry_run: bool,
) -> Result:
    """Ask, write and record; the result shows the lines that change."""
    path = models_file.path
    tell = invocation.reporter.step
    is_trusted = None
    if addition.changes_nothing:
        tell(f"nothing to add: {path} has {addition.name} for {' '.join(_served(models_file, addition))}")
    elif dry_run:
        tell(f"would change: {path}")
    else:
        if not yes:
            confirm(f"write this to {path}", where=_COMMAND, undone="nothing was added", fix=_UNASKED)
        is_trusted = _write(invocation, models_file, addition)
    existing = models_file.models.get(addition.name)
    if addition.entry is None and existing is not None and offer.n_ctx not in (None, existing.n_ctx):
        invocation.reporter.warn(
            f"{addition.name} has n_ctx {existing.n_ctx:,} in {path.name}, and its source now tells "
            f"{offer.n_ctx:,}: change it there if you want that"
        )
    data = {
        "models_file": str(path),
        "dry_run": dry_run,
        "name": addition.name,
        "entry": addition.entry,
        "layers": {
            layer: {"before": before, "after": addition.name} for layer, before in addition.layers.items()
        },
        "source": asdict(offer),
        "trial": asdict(trial) if trial else None,
        "trusted": is_trusted,
    }
    lines = unified_diff(
        models_file.text.splitlines(), addition.text.splitlines(), path.name, path.name, lineterm="", n=1
    )
    return Result(data, "" if addition.changes_nothing else "".join(f"{line}\n" for line in lines))


def _served(models_file: ModelsFile, addition: Addition) -> list[str]:
    return [layer for layer, name in models_file.layers.items() if name == addition.name]


def _write(invocation: Invocation, models_file: ModelsFile, addition: Addition) -> bool | None:
    """
    Write models.yaml, and record that it is trusted if it was before, or reached nothing.

    Returns:
        Whether it is trusted now; None where it needs no trust.
    """
    path = models_file.path
    settings = replace(invocation.settings, models_file=path)
    was_trusted = True
    is_there = path.exists()
    if is_there:
        if read_text(path) != models_file.text:
            message = "it has changed since it was read"
            raise UsageError(message, where=str(path), fix="give the command again")
        before = find_models_claim(settings)
        was_trusted = before is None or read_trust(settings).get(before.path) == before.digest
    write_output(path, addition.text)
    tell = invocation.reporter.step
    tell(f"written: {path}" if is_there else f"written, as a copy of the packaged one: {path}")
    claim = find_models_claim(settings)
    if claim is None:
        return None
    if not was_trusted or settings.trust:
        tell("it is not trusted yet: look at it with panda trust --dry-run, then panda trust")
        return False
    record_trust(settings, [claim])
    tell(f"trusted, as panda trust does it: {settings.trust_file}")
    return True
