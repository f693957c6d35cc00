"""What every implementation of a port must obey, as plain functions: one module a port, one law a function.

Each module has `CHECKS`, its laws in order, a `...Fixture` that says what is under test, and one function that runs all
of them: `check_detector`, `check_asker`, `check_store`, `check_shelf`, `check_model`, `check_reader`, `check_redactor`,
`check_integration`. A broken law is an AssertionError that says which law, of what, and how to see it again. A law may
be skipped by its name with a reason: `skips={"constant_cost": "folds the whole session when it ends"}`.

Nothing here needs pytest. With it, one test a law reads best::

    @pytest.mark.parametrize("check", detector.CHECKS)
    def test_my_detector(check):
        check(detector.DetectorFixture(factory=MyDetector))
"""
