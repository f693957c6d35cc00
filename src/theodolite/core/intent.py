"""What a call is, without its content: its permission class, its effect, where its arguments came from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from theodolite.core.text import brief, printable

__all__ = (
    "FLAGS",
    "TOOL_LENGTH",
    "ArgumentOrigin",
    "Call",
    "DataFlow",
    "DestinationKind",
    "Effect",
    "Grounds",
    "Margin",
    "NormalizedIntent",
    "Operation",
    "Operator",
    "Origin",
    "Permission",
    "Provenance",
    "Role",
    "TargetKind",
    "ToolRule",
)


class Permission(IntEnum):
    """The permission class of a call, in the order of zeph's ShadowMemory: a higher number may do more harm."""

    READ = 0
    WRITE = 1
    EXECUTE = 2
    NETWORK = 3


class Effect(StrEnum):
    """Whether running the tool changes anything outside the agent. What is not known counts as a write."""

    READ = "read"
    WRITE = "write"
    UNKNOWN = "unknown"


class Operation(StrEnum):
    """What a call does. OTHER: none of these, and known to be none; UNKNOWN: a word that nobody has listed."""

    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    TEST = "test"
    SEARCH = "search"
    NETWORK_REQUEST = "network_request"
    PACKAGE_INSTALL = "package_install"
    EXECUTE_GENERATED_CODE = "execute_generated_code"
    OTHER = "other"
    UNKNOWN = "unknown"


class TargetKind(StrEnum):
    """What a call reaches; the worst of it, where it reaches several things."""

    WORKDIR = "workdir"
    SYSTEM_PATH = "system_path"
    SECRET = "secret"  # noqa: S105 - a kind of target
    EXTERNAL_URL = "external_url"
    LOCALHOST = "localhost"
    PRIVATE_NETWORK = "private_network"
    CLOUD_METADATA = "cloud_metadata"
    DOCKER_SOCKET = "docker_socket"
    UNKNOWN = "unknown"


class DestinationKind(StrEnum):
    """Where what a call sends would go. SAME_ORIGIN: to a domain that the user has named."""

    NONE = "none"
    LOCALHOST = "localhost"
    SAME_ORIGIN = "same_origin"
    EXTERNAL_DOMAIN = "external_domain"
    PRIVATE_NETWORK = "private_network"
    UNKNOWN = "unknown"


class Provenance(StrEnum):
    """Whose content a call works on, as far as the call itself shows."""

    USER = "user"
    REPO = "repo"
    OFFICIAL_DOCS = "official_docs"
    EXTERNAL_WEB = "external_web"
    UNKNOWN = "unknown"


class DataFlow(StrEnum):
    """Which way data goes: nowhere, within the machine, out of it, or from outside into what is executed."""

    NONE = "none"
    LOCAL_TO_LOCAL = "local_to_local"
    LOCAL_TO_EXTERNAL = "local_to_external"
    EXTERNAL_TO_SHELL = "external_to_shell"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Where an argument value first stood: in what the user said, in a tool result, or nowhere before the model.

    RECORD is the result of a tool that only the operator or the user can write to.
    """

    USER = "user"
    RECORD = "record"
    TOOL_RESULT = "tool_result"
    MODEL = "model"


class Role(StrEnum):
    """What an argument is for. A target, a command and a credential give authority; content and selectors are work.

    The roles of PACT (arXiv 2605.11039).
    """

    TARGET = "target"
    COMMAND = "command"
    CREDENTIAL = "credential"
    CONTENT = "content"
    SELECTOR = "selector"
    CONTROL = "control"


class ArgumentOrigin(Struct, frozen=True, kw_only=True, gc=False):
    """One argument value, by its JSON Pointer, and the event it first came from (None: from the model).

    `start` and `end` give the passage there, in characters of that event's text. `within`: not the whole value but a
    link or an address inside it.
    """

    path: str
    origin: Origin
    seq: int | None = None
    role: Role = Role.SELECTOR
    start: int = 0
    end: int = 0
    within: bool = False


class NormalizedIntent(Struct, frozen=True, kw_only=True, gc=False):
    """A call as behavior: what it would do, not what it says. Source of fields and words: axor-classifier-llm 0.2.

    `tool` is free text of the host's, cut at 128 characters: it is escaped wherever it is shown. Words are taken in any
    case, also as text; a word that is none of its list is UNKNOWN, which is never a sign of harmlessness. `permission`
    and `effect` are our own: what the policy and the trajectory read.

    Raises ValueError for a word that is no text, a flag that is not true or false, and a number that is no permission.

    >>> intent = NormalizedIntent(tool="bash", operation="Network_Request", target_kind="external_url")
    >>> intent.operation.value, intent.destination_kind.value, intent.provenance.value
    ('network_request', 'none', 'unknown')
    >>> NormalizedIntent(tool="relay", operation="power_state_change").operation.value
    'unknown'
    """

    tool: str
    operation: Operation = Operation.OTHER
    target_kind: TargetKind = TargetKind.UNKNOWN
    destination_kind: DestinationKind = DestinationKind.NONE
    provenance: Provenance = Provenance.UNKNOWN
    reads_secret_like_data: bool = False
    writes_outside_workdir: bool = False
    executes_generated_code: bool = False
    after_external_read: bool = False
    after_secret_access: bool = False
    data_flow: DataFlow = DataFlow.NONE
    permission: Permission = Permission.READ
    effect: Effect = Effect.UNKNOWN

    def __post_init__(self) -> None:
        kinds = (
            type(self.operation),
            type(self.target_kind),
            type(self.destination_kind),
            type(self.provenance),
            type(self.data_flow),
            type(self.reads_secret_like_data),
            type(self.writes_outside_workdir),
            type(self.executes_generated_code),
            type(self.after_external_read),
            type(self.after_secret_access),
            type(self.permission),
            type(self.effect),
        )
        if kinds != _KINDS:  # what the normalizer makes needs no second look
            _hold(self)
        if type(self.tool) is not str or len(self.tool) > TOOL_LENGTH or not self.tool.isascii():
            force_setattr(self, "tool", _name(self.tool))

    @classmethod
    def of(cls, tool: str, **fields: str | bool) -> NormalizedIntent:
        """Return an intent of plain words, as a type checker would not have it in the constructor.

        Raises TypeError for what is no field, and ValueError as the constructor does.

        >>> NormalizedIntent.of("cat", operation="file_read", target_kind="SECRET").target_kind.value
        'secret'
        """
        made = cls(tool=tool)
        for name, value in fields.items():
            if name not in _FIELDS:
                raise TypeError(f"an intent has no words or flags called {name!r}; it has {', '.join(_FIELDS)}")
            force_setattr(made, name, value)
        _hold(made)
        return made

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its flags that are set, in the order of the fields."""
        return tuple([name for name in FLAGS if getattr(self, name)])


TOOL_LENGTH = 128
"""Characters of a tool's name that are kept: the APIs of OpenAI and Anthropic take 64, MCP names its server before."""

FLAGS = (
    "reads_secret_like_data",
    "writes_outside_workdir",
    "executes_generated_code",
    "after_external_read",
    "after_secret_access",
)

_WORDS: tuple[tuple[str, type[StrEnum]], ...] = (
    ("operation", Operation),
    ("target_kind", TargetKind),
    ("destination_kind", DestinationKind),
    ("provenance", Provenance),
    ("data_flow", DataFlow),
)
_FIELDS = (*[name for name, _ in _WORDS], *FLAGS)
_KINDS = (*[kind for _, kind in _WORDS], *[bool for _ in FLAGS], Permission, Effect)


def _hold(intent: NormalizedIntent) -> None:
    """Make words members of their lists, and refuse what is none. Raises ValueError."""
    words = {name: _word(name, getattr(intent, name)) for name, _ in _WORDS}
    # axor-core 0.11 gives a destination that its documentation does not list: what is reached is then the target.
    if words["destination_kind"] == TargetKind.CLOUD_METADATA:
        words["destination_kind"] = DestinationKind.PRIVATE_NETWORK
        words["target_kind"] = TargetKind.CLOUD_METADATA
    for name, kind in _WORDS:
        force_setattr(intent, name, _member(kind, words[name]))
    for name in FLAGS:
        flag: object = getattr(intent, name)
        if type(flag) is not bool:
            raise ValueError(f"{name} of an intent is true or false, not {type(flag).__name__}")
    force_setattr(intent, "permission", _permission(intent.permission))
    force_setattr(intent, "effect", _member(Effect, _word("effect", intent.effect)))


def _permission(number: object) -> Permission:
    if isinstance(number, int) and not isinstance(number, bool) and number in set(Permission):
        return Permission(number)
    raise ValueError(f"permission of an intent is one of {', '.join(map(str, Permission))}, not {brief(number)}")


def _name(tool: object) -> str:
    if not isinstance(tool, str):
        raise ValueError(f"the tool of an intent is its name, not {type(tool).__name__}")  # noqa: TRY004 - as all values
    return printable(str.__str__(tool)[:TOOL_LENGTH])[:TOOL_LENGTH]


def _word(name: str, word: object) -> str:
    if not isinstance(word, str):
        raise ValueError(f"{name} of an intent is a word, not {type(word).__name__}")  # noqa: TRY004 - as all values
    return str.__str__(word).strip().lower()


def _member(kind: type[StrEnum], word: str) -> StrEnum:
    try:
        return kind(word)
    except ValueError:
        return kind("unknown")


class ToolRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What an operator says of a tool of their own; what is None the normalizer finds out by itself.

    A target that is said takes the place of what the arguments show unless these are worse; `secret` says that its
    results hold secrets, `outside` that they hold text which others may have written; `arguments` gives the roles of
    arguments by name.

    >>> ToolRule(effect=Effect.READ, operation=Operation.SEARCH, outside=True).outside
    True
    """

    effect: Effect | None = None
    operation: Operation | None = None
    target: TargetKind | None = None
    destination: DestinationKind | None = None
    provenance: Provenance | None = None
    flow: DataFlow | None = None
    secret: bool | None = None
    outside: bool | None = None
    arguments: Mapping[str, Role] = {}


Operator = Mapping[str, Effect | ToolRule]
"""The operator's map of tool names: to an effect alone, or to a rule."""


class Margin(Struct, frozen=True, kw_only=True, gc=False):
    """How much better untrusted text explains a call than the user's goal does.

    `score` is in [0, 1]: 0.5 means equally well, 1 means that only untrusted text does. `lead` is the same in [-1, 1],
    without the discount for calls that only fetch. `seq`, `start` and `end` give the passage that explains it best, in
    characters of that event's text; `seq` is None where there is none. `lost` counts the untrusted sentences so far
    that were not compared, since there were too many.
    """

    score: float
    lead: float
    goal: float
    untrusted: float
    seq: int | None = None
    start: int = 0
    end: int = 0
    lost: int = 0


class Grounds(Struct, frozen=True, kw_only=True, gc=False):
    """What the goal says of a call.

    `beyond`: it reads a page, and the goal asks for no page, or for its own and no other, and the passage that names
    the page says nothing of what the goal is about. `pages`: the goal speaks of pages or links at all. `delegated`: it
    tells the agent to do what a list or a text says. `referred`: the passage that explains the call stands beside
    something of which the goal speaks, and orders nothing, where the goal asks for such a deed: it may have led there.
    """

    beyond: bool = False
    pages: bool = False
    delegated: bool = False
    referred: bool = False


class Call(Struct, frozen=True, kw_only=True, gc=False):
    """What was folded about the call under judgment. A part that no detector needs is None.

    `text` is its beginning, at most 256 characters: the tool and its argument values in order.
    """

    seq: int
    text: str
    intent: NormalizedIntent
    origins: tuple[ArgumentOrigin, ...] | None = None
    margin: Margin | None = None
    grounds: Grounds | None = None
