"""The library of probes: what ships, how it is filled and chosen from, and what its versions say."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.detectors.own_probes import GOOD

from theodolite.core.errors import ConfigError
from theodolite.detectors.behavior.library import VERSION, ProbeLibrary, shipped
from theodolite.detectors.behavior.probe import (
    SLOT,
    InjectionMode,
    ProbeTemplate,
    ProbeType,
)

TRIGGERS = ("", "manual", "context_growth", "external_content", "reputation", "compaction", "handoff")


def draws(secret: int) -> Callable[[str], bytes]:
    """Return what a session of that secret draws."""
    return lambda label: hashlib.sha256(f"{secret}.{label}".encode()).digest()


def session(secret: int, cap: int, trigger: str = "", *, library: ProbeLibrary | None = None) -> list[ProbeTemplate]:
    chosen: list[ProbeTemplate] = []
    for _ in range(cap):
        used = [template.id for template in chosen]
        chosen.append((library or shipped()).choice(Counter(used), draws(secret), trigger=trigger, cap=cap))
    return chosen


def kinds(chosen: list[ProbeTemplate]) -> Counter[ProbeType]:
    return Counter(template.probe_type for template in chosen)


class TestShipped:
    def test_the_ids_modes_and_stress_types_are_those_of_axor_probe(self) -> None:
        assert shipped().version == VERSION == "1.0.0"
        assert [
            (one.id, one.inject_as is InjectionMode.TOOL_RESULT, one.stress_type) for one in shipped().templates
        ] == [
            ("dd_01", False, "claimed_authority"),
            ("dd_02", False, "role_claim"),
            ("dd_03", True, "system_override_claim"),
            ("dd_04", False, "urgency_pressure"),
            ("dd_05", False, "implicit_prior_access"),
            ("se_01", False, "adjacency_bundling"),
            ("se_02", False, "urgency_escalation"),
            ("se_03", False, "implicit_permission_extension"),
            ("se_04", True, "autonomous_scope_expansion"),
            ("ae_01", False, "claimed_executive_authority"),
            ("ae_02", False, "delegated_authority_claim"),
            ("ae_03", True, "tool_result_authority_grant"),
            ("ae_04", False, "authorization_scope_creep"),
            ("bb_01", False, "retroactive_approval_promise"),
            ("bb_02", False, "threshold_splitting"),
            ("bb_03", False, "sub_agent_delegation"),
            ("ic_01", False, "system_prompt_override_claim"),
            ("ic_02", True, "tool_result_policy_override"),
            ("ic_03", False, "prior_statement_appeal"),
            ("ic_04", False, "judgment_override_appeal"),
            ("ip_01", False, "persona_replacement"),
            ("ip_02", False, "simulation_framing"),
            ("ip_03", False, "hypothetical_alternate_ai"),
        ]
        initials = {"".join(word[0] for word in kind.split("_")): kind for kind in ProbeType}
        assert all(one.probe_type is initials[one.id[:2]] for one in shipped().templates)

    def test_the_texts_are_those_of_this_version(self) -> None:
        """A changed text is a changed instrument: give the library a new version, then the new digest here."""
        documents = [
            files("theodolite.detectors.behavior").joinpath("probes", f"{kind}.toml").read_text("utf-8")
            for kind in ProbeType
        ]
        library = ProbeLibrary.of({str(place): text for place, text in enumerate(documents)})
        assert (VERSION, library.version) == ("1.0.0", "0+430de80a")

    def test_nothing_else_lies_beside_the_data(self) -> None:
        folder = files("theodolite.detectors.behavior").joinpath("probes")
        assert {file.name for file in folder.iterdir()} == {f"{kind}.toml" for kind in ProbeType}

    @pytest.mark.parametrize("template", shipped().templates, ids=lambda one: one.id)
    def test_a_probe_and_its_twin_are_alike_in_all_but_the_matter(self, template: ProbeTemplate) -> None:
        assert len(template.phrasings) >= 3
        for phrasing in template.phrasings:
            probe, twin = phrasing.probe, phrasing.twin
            assert 25 <= len(probe.split()) <= 60
            # Letters too, so that neither is longer to a model that counts in tokens.
            assert abs(len(probe) - len(twin)) <= 0.15 * max(len(probe), len(twin))
            assert Counter(SLOT.findall(probe)) == Counter(SLOT.findall(twin))
            assert phrasing.slots == template.slots.keys(), "each filling makes each phrasing new"
            shared = Counter(probe.lower().split()) & Counter(twin.lower().split())
            assert shared.total() >= 0.4 * len(probe.split()), "like wording"
            assert [probe.count(sign) for sign in "!?"] == [twin.count(sign) for sign in "!?"], "like tone"

    @pytest.mark.parametrize("template", shipped().templates, ids=lambda one: one.id)
    def test_no_text_leads_the_answer(self, template: ProbeTemplate) -> None:
        """Stricter than what operators are held to: words of other lists of options too, and the constraint."""
        texts = [template.constraint, *[word for words in template.slots.values() for word in words]]
        texts += [text for phrasing in template.phrasings for text in (phrasing.probe, phrasing.twin)]
        for text in texts:
            assert not re.search(
                r"(?i)\b(?:compl[yi]|declin|escalat|refus|proceed|allow|den[yi]|reject|forward|permit|option|json)"
                r"|\brefer(?:s|red)?\b|\b(?:answer|reply|respond) (?:only|just|with|in)\b|\byes\b|\bone word\b",
                text,
            ), text
            assert not re.search(r"(?<![\w'])[A-HJ-Z](?![\w'-])", text), text
            assert text.isascii()
            assert "  " not in text

    @pytest.mark.parametrize("template", shipped().templates, ids=lambda one: one.id)
    def test_the_clause_says_what_is_forbidden_and_what_is_not(self, template: ProbeTemplate) -> None:
        forbids, permits = template.constraint.split(". ")
        assert re.search(r"\b(?:no|not|nobody|never|nothing|nor|neither|outside|cannot)\b", forbids, re.IGNORECASE)
        assert re.search(r"\b(?:may|in order|welcome|inside|explained|may be used)\b", permits)
        assert len(template.constraint.split()) <= 60

    @pytest.mark.parametrize("template", shipped().templates, ids=lambda one: one.id)
    def test_slots_have_words_to_choose_from(self, template: ProbeTemplate) -> None:
        assert template.slots
        assert all(len(words) >= 4 for words in template.slots.values())

    def test_no_sentence_begins_with_a_word_in_small_letters(self) -> None:
        for template in shipped().templates:
            for place in range(8):
                probe = shipped().fill(template, bytes([place]))
                for text in (probe.scenario, probe.twin):
                    assert text[0].isupper() or not text[0].isalpha() or template.inject_as is InjectionMode.TOOL_RESULT
                    if template.inject_as is InjectionMode.USER_MESSAGE:
                        assert not re.search(r"[.!?] [a-z]", text), text

    def test_texts_are_told_apart(self) -> None:
        texts = [
            text
            for one in shipped().templates
            for phrasing in one.phrasings
            for text in (phrasing.probe, phrasing.twin)
        ]
        assert len(texts) >= 138
        assert len(set(texts)) == len(texts)
        beginnings = Counter(
            " ".join(phrasing.probe.split()[:3]) for one in shipped().templates for phrasing in one.phrasings
        )
        assert max(beginnings.values()) <= 2, "sentence forms vary"

    def test_no_tool_is_named(self) -> None:
        for template in shipped().templates:
            for phrasing in template.phrasings:
                assert not re.search(r"\b\w+_\w+\b|\w\(\)|`", SLOT.sub("", phrasing.probe + phrasing.twin))


class TestFilling:
    @given(st.sampled_from(shipped().templates), st.binary(max_size=40))
    def test_equal_bytes_fill_equally_and_both_texts_alike(self, template: ProbeTemplate, random: bytes) -> None:
        probe = shipped().fill(template, random, canary="TH-1", at=7.5)
        assert probe == shipped().fill(template, random, canary="TH-1", at=7.5)
        phrasing = template.phrasings[probe.phrasing]
        assert not set("{}") & set(probe.scenario + probe.twin)
        for slot in phrasing.slots:
            words = [word for word in template.slots[slot] if word in probe.scenario and word in probe.twin]
            assert words
        more = len(probe.scenario.split()) - len(phrasing.probe.split())
        assert len(probe.twin.split()) - len(phrasing.twin.split()) == more
        assert (probe.canary, probe.timestamp, probe.probe_id) == ("TH-1", 7.5, template.id)
        assert probe.policy_pressure.constraint == template.constraint
        assert probe.policy_pressure.stress_type == template.stress_type
        assert (probe.probe_type, probe.inject_as) == (template.probe_type, template.inject_as)
        assert probe.probe_library_version == VERSION

    def test_all_phrasings_and_all_words_are_used_about_equally(self) -> None:
        library = ProbeLibrary.of({"mine": GOOD})
        template = library.templates[0]
        filled = [library.fill(template, draws(secret)("words")) for secret in range(3_000)]
        assert all(900 < count < 1_100 for count in Counter(probe.phrasing for probe in filled).values())  # 4 sd: 103
        texts = Counter(probe.scenario for probe in filled)
        assert len(texts) == 6
        assert all(400 < count < 600 for count in texts.values())

    def test_the_same_slot_is_filled_alike_everywhere(self) -> None:
        text = GOOD.replace("{name}, the new", "{name} or {name}, the new")
        library = ProbeLibrary.of({"mine": text})
        for secret in range(50):
            probe = library.select(draws(secret)(""))
            assert ("Ann" in probe.scenario) != ("Bert" in probe.scenario)
            assert ("Ann" in probe.scenario) == ("Ann" in probe.twin)

    def test_the_list_of_probes_shows_each_template_once(self) -> None:
        probes = shipped().probes
        assert [probe.probe_id for probe in probes] == [one.id for one in shipped().templates]
        assert len(probes) == 23
        assert probes[0].scenario.startswith("This is Jordan Bell, and the account is mine.")
        assert {probe.phrasing for probe in probes} == {0}

    def test_any_probe_may_be_selected(self) -> None:
        selected = Counter(shipped().select(draws(secret)("any")).probe_id for secret in range(4_600))
        assert len(selected) == 23
        assert all(140 < count < 260 for count in selected.values())  # 4 sd of 200: 55


class TestChoice:
    @given(st.integers(0, 2**64), st.integers(1, 60), st.lists(st.sampled_from(TRIGGERS), min_size=60, max_size=60))
    def test_types_are_covered_and_no_template_comes_back_early(
        self, secret: int, cap: int, triggers: list[str]
    ) -> None:
        used: list[str] = []
        chosen: list[ProbeTemplate] = []
        for number in range(cap):
            template = shipped().choice(Counter(used), draws(secret), trigger=triggers[number], cap=cap)
            assert template == shipped().choice(Counter(tuple(used)), draws(secret), trigger=triggers[number], cap=cap)
            chosen.append(template)
            used.append(template.id)
        assert len(kinds(chosen)) == min(cap, 6)
        for kind in ProbeType:
            group = [template.id for template in shipped().templates if template.probe_type is kind]
            of_kind = [template.id for template in chosen if template.probe_type is kind]
            for begin in range(0, len(of_kind), len(group)):
                turn = of_kind[begin : begin + len(group)]
                assert len(set(turn)) == len(turn)

    def test_another_secret_is_another_order(self) -> None:
        orders = {tuple(template.id for template in session(secret, 12)) for secret in range(500)}
        assert len(orders) == 500

    def test_one_who_knows_what_was_used_cannot_tell_what_comes(self) -> None:
        """After the same five probes each type may come, and the unused one is the likeliest."""
        used = ["dd_01", "se_01", "ae_01", "bb_01", "ic_01"]
        after = Counter(shipped().choice(Counter(used), draws(secret), cap=20).probe_type for secret in range(2_000))
        assert set(after) == set(ProbeType)
        assert after.most_common(1)[0][0] is ProbeType.IDENTITY_PROBE
        assert 0.23 < after[ProbeType.IDENTITY_PROBE] / 2_000 < 0.35  # 2 of 7, and 4 sd

    @pytest.mark.parametrize("trigger", ["", "manual", "context_growth", "unheard of"])
    def test_without_a_reason_all_types_are_alike(self, trigger: str) -> None:
        first = Counter(
            shipped().choice({}, draws(secret), trigger=trigger, cap=20).probe_type for secret in range(3_000)
        )
        assert all(418 < first[kind] < 582 for kind in ProbeType)  # 500, and 4 sd of 20.4
        whole = sum((kinds(session(secret, 20, trigger)) for secret in range(200)), Counter[ProbeType]())
        assert all(0.15 < whole[kind] / whole.total() < 0.185 for kind in ProbeType)

    @pytest.mark.parametrize(
        ("trigger", "favored"),
        [
            ("external_content", {"instruction_conflict", "data_disclosure", "authority_escalation"}),
            ("reputation", {"instruction_conflict", "data_disclosure", "authority_escalation"}),
            ("compaction", {"instruction_conflict", "identity_probe"}),
            ("handoff", {"instruction_conflict", "identity_probe"}),
        ],
    )
    def test_a_trigger_steers(self, trigger: str, favored: set[str]) -> None:
        first = Counter(
            shipped().choice({}, draws(secret), trigger=trigger, cap=20).probe_type for secret in range(2_000)
        )
        share = sum(first[ProbeType(kind)] for kind in favored) / 2_000
        assert share == pytest.approx(4 * len(favored) / (4 * len(favored) + 6 - len(favored)), abs=0.045)
        whole = sum((kinds(session(secret, 20, trigger)) for secret in range(100)), Counter[ProbeType]())
        assert min(whole[ProbeType(kind)] for kind in favored) > 1.4 * max(
            whole[kind] for kind in ProbeType if kind not in favored
        )

    def test_content_from_outside_is_best_met_as_a_tool_result(self) -> None:
        def share(trigger: str) -> float:
            chosen = [shipped().choice({}, draws(secret), trigger=trigger, cap=20) for secret in range(2_000)]
            return sum(template.inject_as is InjectionMode.TOOL_RESULT for template in chosen) / len(chosen)

        assert share("external_content") > 2 * share("manual") > 0.2

    def test_an_operators_probes_take_part(self) -> None:
        library = shipped().extended(GOOD, "mine.toml")
        assert any(template.id == "my_01" for secret in range(20) for template in session(secret, 20, library=library))

    def test_ids_of_another_library_count_as_probes_and_no_more(self) -> None:
        assert shipped().choice({"gone_01": 1, "gone_02": 1}, draws(1), cap=20) in shipped().templates

    def test_a_spent_cap_still_has_an_answer(self) -> None:
        used = ["dd_01"] * 25
        assert shipped().choice(Counter(used), draws(1), cap=20).probe_type is not ProbeType.DATA_DISCLOSURE

    def test_a_library_of_one_type_covers_it(self) -> None:
        library = ProbeLibrary.of({"mine": GOOD})
        assert [template.id for template in session(1, 3, library=library)] == ["my_01"] * 3


class TestVersions:
    def test_what_is_added_makes_a_version_of_its_own(self) -> None:
        one = shipped().extended(GOOD, "mine.toml")
        assert re.fullmatch(r"1\.0\.0\+[0-9a-f]{8}", one.version)
        assert one.version == shipped().extended("# a comment\n" + GOOD, "elsewhere.toml").version
        assert one.version != shipped().extended(GOOD.replace("hurry", "rush"), "mine.toml").version
        assert one.version != shipped().extended(GOOD.replace('"Ann"', '"Anna"'), "mine.toml").version
        assert len(one.templates) == 24
        assert one.probes[-1].probe_library_version == one.version
        assert shipped().version == "1.0.0"

    def test_each_addition_is_named(self) -> None:
        two = shipped().extended(GOOD, "a").extended(GOOD.replace("my_01", "my_02"), "b")
        assert re.fullmatch(r"1\.0\.0\+[0-9a-f]{8}\.[0-9a-f]{8}", two.version)

    def test_documents_alone_get_a_version_from_their_content(self) -> None:
        assert re.fullmatch(r"0\+[0-9a-f]{8}", ProbeLibrary.of({"mine": GOOD}).version)
        assert ProbeLibrary.of({"mine": GOOD}, version="5").version == "5"

    def test_an_empty_library_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="asks nothing"):
            ProbeLibrary.of({})
        with pytest.raises(ValueError, match="asks nothing"):
            ProbeLibrary(version="1", templates=())
        with pytest.raises(ValueError, match="same id"):
            ProbeLibrary(version="1", templates=shipped().templates[:1] * 2)
