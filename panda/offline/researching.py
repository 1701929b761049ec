"""The decisions of research, by closeness to the query and by what code has rated."""

from collections.abc import Mapping
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.offline.selecting import best, best_ids, priors
from panda.steps.request import Request


def choose_strategy(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return what kind of research the query asks for."""
    text = request.asked
    name = "research_kind"
    return {"kind": best(models.classify(name, text) or models.classify_by_examples(name, text))}


def choose_phrases(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which phrases are searched for."""
    scores = models.rank(request.asked, request.options_of("phrases"), prior=1.0)
    return {"phrases": best_ids(scores, limit=2, least_score=0.0, behind=2.0)}


def judge_sources(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which results are worth a look."""
    return {"results": best_ids(priors(request.options_of("results")), limit=12, least_score=0.3, behind=1.0)}


def choose_sources(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which sources are read."""
    scores = models.rank(request.asked, request.options_of("sources"), prior=1.0)
    return {"sources": best_ids(scores, limit=4, least_score=0.3, behind=0.6)}


def choose_pages(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which pages are about the query."""
    scores = models.rank(request.asked, request.options_of("pages"), prior=0.6)
    return {"pages": best_ids(scores, limit=4, least_score=0.25, behind=0.6)}


def check_extraction(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which pages were read well enough, which are read again, and what the others lack."""
    return {
        "accepted": best_ids(priors(request.options_of("accepted")), limit=4, least_score=0.35, behind=1.0),
        "again": best_ids(priors(request.options_of("again")), limit=4, least_score=0.65, behind=1.0),
        "missing": "too little was found of what such a page should give",
    }


def choose_zones(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which parts of long pages speak of the query."""
    scores = models.rank(request.asked, request.options_of("zones"), prior=0.6)
    return {"zones": best_ids(scores, limit=16, least_score=0.2, behind=0.6)}


def choose_claims(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which lines of the pages answer the query."""
    scores = models.rank(request.asked, request.options_of("claims"), prior=0.3)
    return {"claims": best_ids(scores, limit=8, least_score=0.3, behind=0.4)}


def find_conflicts(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return which pairs of differing prices are those of the same thing."""
    return {"same": best_ids(priors(request.options_of("same")), limit=12, least_score=0.6, behind=1.0)}


def report(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return how much was found, counted."""
    return {"summary": request.variables["counted"]}
