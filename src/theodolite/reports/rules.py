"""What each rule about contracts and calls means, and what to do: the help that code scanning shows."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

__all__ = ("RULES", "Rule", "rule")


class Rule(Struct, frozen=True):
    """A rule: what it means, and what to do about a finding of it. Each is one sentence or two."""

    meaning: str
    remedy: str


_CALL = "Change the arguments as the contract says, or the contract if it is wrong."
_LIMIT = "Send less at a time, or look at the rest once this is mended."
_ADVICE = "It stops nothing. Correct the call, or the contract if the value is meant to be sent."

RULES: Mapping[str, Rule] = {
    "contract.breaking": Rule(
        "A call that kept to the contract as it was may be refused now, or what comes back may be new to its readers.",
        "Change those who call, or give the old form back.",
    ),
    "contract.widening": Rule(
        "The contract takes more than it did, or returns less: what kept to it keeps to it.", "Nothing has to be done."
    ),
    "contract.text_only": Rule(
        "Words changed, and no schema did. Models go by these words.",
        "Read them: a new sentence may be all that an attack needs.",
    ),
    "guard.not_checked": Rule(
        "This part of the contract is not checked.", "Write it in a form that is checked, or check it elsewhere."
    ),
    "guard.unresolved_reference": Rule(
        "A reference leads nowhere, so that what it stands for is not checked.", "Correct the $ref."
    ),
    "guard.repeated_name": Rule(
        "A name stands in a list twice where it may stand once, such as in `required`; it counts once.",
        "Leave one of them out.",
    ),
    "guard.repeated_key": Rule(
        "A key stands in its object more than once, and readers differ about which one counts; here the last one does.",
        "Leave all but one out.",
    ),
    "guard.required_undeclared": Rule("A field is required and nowhere declared.", "Declare it, with its type."),
    "guard.no_type": Rule("A field has no type, so that it takes everything.", "Give it a type."),
    "guard.open_object": Rule(
        "An object names none of its fields, so that any pass.", "Name its fields, or say what their values are."
    ),
    "guard.array_of_anything": Rule(
        "An array does not say what its items are, so that any pass.", "Say what its items are."
    ),
    "guard.ambiguous_name": Rule(
        "One name stands in two parts of the request, so that a flat argument of that name could be either.",
        "Rename one of them.",
    ),
    "guard.alike_names": Rule(
        "Two names differ in their spelling alone, which misleads those who write calls.", "Rename one of them."
    ),
    "guard.no_description": Rule(
        "The operation or tool is not described, so that a model has to guess at when to call it.",
        "Say what it does and when to use it.",
    ),
    "guard.no_result": Rule("Nothing says what comes back, so that no result is checked.", "Describe what comes back."),
    "guard.field_undescribed": Rule("A field is not described.", "Say what it is."),
    "guard.unnamed_enum": Rule("Numbers are listed and not named.", "Say which number means what."),
    "guard.no_example": Rule("Any text is accepted, and none is shown.", "Show an example, or give a format."),
    "guard.binary": Rule(
        "What stands there is binary, such as the contents of a file, and is not looked into.",
        "Nothing has to be done.",
    ),
    "guard.provider_tool": Rule(
        "The tool is the provider's own, which publishes no schema of it: its calls are not checked.",
        "Nothing has to be done. A pin sees when its declaration changes.",
    ),
    "guard.takes_undeclared": Rule(
        "Names that nobody declared are taken, so that an invented field passes.",
        "Close the object with additionalProperties: false.",
    ),
    "guard.unnamed_operation": Rule(
        "The operation has no operationId, and is called by its path.", "Give it an operationId."
    ),
    "payload.missing_required": Rule("A field that is required is not there.", _CALL),
    "payload.unknown_field": Rule("A field is there that the contract refuses.", _CALL),
    "payload.type_mismatch": Rule("A value is of another type than the contract asks for.", _CALL),
    "payload.null_not_allowed": Rule("A value is null where the contract asks for something.", _CALL),
    "payload.double_encoded": Rule("A value is text that holds JSON, where the value itself is due.", _CALL),
    "payload.enum_mismatch": Rule("A value is none of those that the contract lists.", _CALL),
    "payload.const_mismatch": Rule("A value is not the one that the contract asks for.", _CALL),
    "payload.format_mismatch": Rule("A value does not have the format that the contract names.", _ADVICE),
    "payload.range_mismatch": Rule("A number is out of the range of the contract.", _CALL),
    "payload.length_mismatch": Rule("A value is longer or shorter than the contract allows.", _CALL),
    "payload.pattern_mismatch": Rule("A text does not match the pattern of the contract.", _CALL),
    "payload.not_unique": Rule("Items are alike that have to differ.", _CALL),
    "payload.dependency_missing": Rule("A field is not there that another one asks for.", _CALL),
    "payload.contains_mismatch": Rule("An array does not hold the items that the contract asks for.", _CALL),
    "payload.union_no_match": Rule("A value fits none of the forms that the contract offers.", _CALL),
    "payload.union_ambiguous": Rule("A value fits several forms where exactly one is due.", _CALL),
    "payload.forbidden": Rule("A value is of a form that the contract refuses.", _CALL),
    "payload.read_only_sent": Rule("A field was sent that is read-only.", "Leave it out: the server sets it."),
    "payload.wrong_content_type": Rule("The body is of a media type that the contract does not have.", _CALL),
    "payload.not_json": Rule("The body, or a value in it, is no JSON.", "Write it as JSON (RFC 8259)."),
    "payload.too_large": Rule("There is more than is looked at.", _LIMIT),
    "payload.too_deep": Rule("Values are nested deeper than is looked at.", _LIMIT),
    "payload.regex_limit": Rule("A pattern took too long on a value, which is refused.", "Make the pattern simpler."),
    "payload.contract_error": Rule("The contract refuses the value, and does not say how.", "Look at the contract."),
    "payload.unknown_operation": Rule("The contract has no operation of that name.", "Call one that it has."),
    "payload.undeclared_field": Rule(
        "A field is there that the contract does not declare, and does not refuse: it may be ignored.", _ADVICE
    ),
    "payload.repeated_key": Rule(
        "A key stands in its object more than once, and servers differ about which one counts; here the last one does.",
        "Leave all but one out.",
    ),
}
"""All rules, by the name that findings have."""

_UNKNOWN = Rule("A rule about contracts and calls.", "See what its finding says.")


def rule(name: str) -> Rule:
    """Return the rule of that name.

    >>> rule("guard.no_type").remedy
    'Give it a type.'
    """
    return RULES.get(name, _UNKNOWN)
