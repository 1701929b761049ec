"""Why a line came into the evidence of a turn or was left out of it, as evidence.json tells it."""

from enum import StrEnum


class Reason(StrEnum):
    """
    One reason. A line has those that brought it in, in order, and at most one that left it out.

    The values are the words of evidence.json, which older turns have too; a condition compares members.
    """

    # what brings a line in
    CLOSEST = "closest"
    ASKED_FOR = "asked for"
    PAGE_DETAIL = "detail of the page"
    REST_OF_LIST = "rest of a list"
    FROM_DOCUMENT = "in a document that was handed over"
    CLAIMED_BY_TOOL = "claimed by a tool"
    FOUND_BY_TOOL = "found by a tool"
    FOUND_AS_ORDERED = "found as ordered"
    WORDED_BY_MODEL = "worded by a model"
    CONTESTED = "contested"
    NAMES_WHAT_IS_MEANT = "names what is meant"
    COMPARED = "set side by side"
    MATCHES_VALUE = "meant by its value"
    CLOSEST_LIST = "the list that is closest"
    ADDED_UP = "added up"
    SUM = "a sum"
    TOLD_SINCE = "told since"
    OF_NAMED_TURN = "of a turn that is named"
    SESSION_TOPIC = "the session was about it"
    STEP_ASKED_FOR = "the step asked for"
    LIST_ASKED_FOR = "the list asked for"
    STILL_COUNTS = "still counts"
    ANSWERS = "answers"
    IN_PASSAGE = "in one of the closest passages"
    LIST_OF_ANSWER = "of the list of a line that answers"

    # what leaves a line out
    NOT_ORDERED = "not what the ordered research found"
    NOT_IN_DOCUMENTS = "not in what was handed over"
    OF_EARLIER_DOCUMENT = "of a document of an earlier turn"
    READ_ANEW = "read anew since"
    OTHER_PAGE_ADDRESS = "the address of another page"
    EXCLUDED_BY_USER = "put aside by the user"
    OLDER_PRICE = "an older price"
    ADDRESS = "an address, which the sources tell"
    REFUSED_BEFORE = "refused before"
    NO_PAGE_DETAIL = "no detail of a page"
    OTHERS_ANSWER_BETTER = "others answer better"
    FURTHER_THAN_OTHERS = "further from the query than others"
