import pytest

from esper_ab.contracts.failure_cause import cause_of_exception, cause_of_exit, without_particulars


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cannot open /data/5459/x for seed 1126779243", "cannot open /data/7/y for seed 3"),
        ("<Net object at 0x7f1712a4ca40>", "<Net object at 0x7f0000000000>"),
        ("run 4be43c7b5f failed at 12:30:07", "run aa43c7b5f0 failed at 07:01:59"),
        ("no file 'runs/lr_1-0/out/model.pt'", "no file 'runs/lr_3-0/out/model.pt'"),
        ("loss is -1.5e-3", "loss is 2"),
    ],
)
def test_texts_are_equal_but_for_what_differs_between_runs(one: str, other: str) -> None:
    assert without_particulars(one) == without_particulars(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no module named torch", "no module named jax"),
        ("KeyError: 'lr'", "KeyError: 'seed'"),
        ("ValueError: no", "TypeError: no"),
    ],
)
def test_different_faults_stay_different(one: str, other: str) -> None:
    assert without_particulars(one) != without_particulars(other)


@pytest.mark.parametrize("long", ["A", "1", "1.", "ab/"])
def test_a_text_of_megabytes_without_a_space_has_a_cause_like_any_other(long: str) -> None:
    """As an exception with the bytes of a file, or a progress bar that is one line; it used to take hours."""
    assert without_particulars(f"ValueError: {long * 2_000_000}").startswith("ValueError: ")


@pytest.mark.parametrize(
    ("status", "lines", "cause"),
    [
        (
            1,
            ["Traceback", "ValueError: lr must be positive, not -1", "goodbye"],
            "ValueError: lr must be positive, not #",
        ),
        (1, ["torch.cuda.OutOfMemoryError: 3 GiB"], "torch.cuda.OutOfMemoryError: # GiB"),
        (3, ["step 7", "no such file: /data/x"], "no such file: …"),
        (3, [], "it wrote nothing"),
        (139, ["core dumped"], "core dumped"),
    ],
)
def test_a_cause_is_the_exit_status_with_the_last_exception_or_the_last_line(
    status: int, lines: list[str], cause: str
) -> None:
    assert cause_of_exit(status, lines) == f"exit status {status}, {cause}"


@pytest.mark.parametrize("status", [137, 143])
def test_a_command_that_was_killed_from_outside_has_no_cause(status: int) -> None:
    assert cause_of_exit(status, ["step 7"]) == ""


def test_the_cause_of_an_exception_is_its_type_and_message() -> None:
    assert cause_of_exception(KeyError(731551898)) == "KeyError: #"
