import pytest

from esper_ab.contracts.failure_cause import (
    UNKNOWN,
    cause_of_exception,
    cause_of_exit,
    cause_of_text,
    without_particulars,
)


@pytest.mark.parametrize(
    ("first_text", "second_text"),
    [
        ("cannot open /data/5459/x for seed 1126779243", "cannot open /data/7/y for seed 3"),
        ("<Net object at 0x7f1712a4ca40>", "<Net object at 0x7f0000000000>"),
        ("run 4be43c7b5f failed at 12:30:07", "run aa43c7b5f0 failed at 07:01:59"),
        ("no file 'runs/lr_1-0/out/model.pt'", "no file 'runs/lr_3-0/out/model.pt'"),
        ("loss is -1.5e-3", "loss is 2"),
    ],
)
def test_errors_that_differ_only_in_details_of_a_run_have_the_same_cause(first_text: str, second_text: str) -> None:
    assert without_particulars(first_text) == without_particulars(second_text)


@pytest.mark.parametrize(
    ("first_text", "second_text"),
    [
        ("no module named torch", "no module named jax"),
        ("KeyError: 'lr'", "KeyError: 'seed'"),
        ("ValueError: no", "TypeError: no"),
    ],
)
def test_different_errors_have_different_causes(first_text: str, second_text: str) -> None:
    assert without_particulars(first_text) != without_particulars(second_text)


@pytest.mark.parametrize("long_text", ["A", "1", "1.", "ab/"])
def test_the_cause_of_a_very_long_error_is_found_quickly(long_text: str) -> None:
    """An exception may hold the bytes of a file, and a progress bar may be one line; this once took hours."""
    assert without_particulars(f"ValueError: {long_text * 2_000_000}").startswith("ValueError: ")


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
def test_the_cause_of_a_failed_command_is_its_exit_status_and_last_line(
    status: int, lines: list[str], cause: str
) -> None:
    assert cause_of_exit(status, lines).masked == f"exit status {status}, {cause}"


def test_people_are_shown_the_last_line_of_a_failed_command_as_it_was_written() -> None:
    lines = ["Traceback", "ValueError: /data/a/x.csv:  expected 3 features, not 7", "goodbye"]
    assert cause_of_exit(1, lines).text == "exit status 1, ValueError: /data/a/x.csv: expected 3 features, not 7"


def test_the_words_of_a_very_long_error_are_cut() -> None:
    cause = cause_of_text("ValueError: " + "Z" * 2_000_000)
    assert len(cause.text) == len(cause.masked) == 300


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 98] Address already in use (while attempting to bind on address ('127.0.0.1', 19517))",
        "torch.distributed.DistNetworkError: port: 29500, useIpv6: false, code: -98, name: EADDRINUSE",
    ],
)
def test_a_port_that_is_in_use_is_a_cause_with_its_remedies(line: str) -> None:
    cause = cause_of_exit(1, [line, "x" * 400])
    for text in (cause.masked, cause.text):
        assert "give it {port}, which is a free one for each run, or run one at a time with --max-parallel 1" in text
        assert len(text) < 400


@pytest.mark.parametrize("status", [137, 143])
def test_a_command_killed_by_a_signal_has_no_cause(status: int) -> None:
    assert cause_of_exit(status, ["step 7"]) == UNKNOWN


def test_the_cause_of_an_exception_is_its_type_and_message() -> None:
    cause = cause_of_exception(KeyError(731551898))
    assert (cause.masked, cause.text) == ("KeyError: #", "KeyError: 731551898")
