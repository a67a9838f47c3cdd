"""docs/tutorial.ipynb runs from the first cell to the last in an empty folder and shows the expected results."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def stored():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_the_notebook_is_stored_without_outputs(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)


@pytest.mark.slow  # the same calls one by one: tests/unit/esper_ab/api, and test_pages_as_they_stand.py
@pytest.mark.timeout(300)
def test_the_notebook_runs_without_errors_or_warnings(stored, tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    path = filter(None, (str(NOTEBOOK.parents[1]), os.environ.get("PYTHONPATH")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    folder = tmp_path / "work"
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(cells=stored.cells, metadata=stored.metadata)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()

    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(
        output["output_type"] == "error" or output.get("name") == "stderr" for cell in code for output in cell.outputs
    )
    last_outputs = {cell.source.splitlines()[-1]: cell.outputs[-1].get("data") for cell in code if cell.outputs}
    assert "finished: 12 of 12 runs evaluated" in last_outputs["loaded"]["text/html"]
    assert last_outputs['loaded.verdicts["schedule", "wait"]']["text/plain"] == "'BETTER'"
    assert "image/png" in last_outputs['loaded.plot("pairs")']
    policy = last_outputs["policy.spec.settings.controller.name, policy.agent is None"]
    assert policy["text/plain"] == "('schedule', True)"
    assert {path.name for path in folder.iterdir()} == {"experiments"}
