"""The documented quick start of zeph's ShadowMemory, line by line, with only its imports changed."""

from __future__ import annotations

from theodolite.api.trajectory import ShadowEvent, ShadowMemory, ShadowMemoryConfig


def opened(config: ShadowMemoryConfig) -> ShadowMemory:
    memory = ShadowMemory.new(config)
    assert memory is not None
    return memory


def test_new_gives_a_memory_only_when_it_is_enabled() -> None:
    assert ShadowMemory.new(ShadowMemoryConfig(enabled=True)) is not None
    assert ShadowMemory.new(ShadowMemoryConfig()) is None


def test_the_oldest_event_falls_out_when_max_events_are_kept() -> None:
    memory = opened(ShadowMemoryConfig(enabled=True, max_events=2))
    for turn, task in enumerate(["task A", "task B", "task C"]):
        memory.record(ShadowEvent(turn=turn, tools=[], max_permission_class=0, deviation_score=0.0, goal_summary=task))
    assert memory.len() == 2


def test_fewer_than_two_events_score_nothing() -> None:
    result = opened(ShadowMemoryConfig(enabled=True)).goal_drift_score()
    assert result.score < 1e-6
    assert not result.should_alert


def test_config_len_and_is_empty() -> None:
    config = ShadowMemoryConfig(enabled=True)
    memory = opened(config)
    assert memory.config() == config
    assert memory.len() == 0
    assert memory.is_empty()
