"""The notebooks of examples/, run from the first cell to the last, as a reader would."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_notebooks_run_one_after_the_other(tmp_path: Path) -> None:
    """They share a folder: the second and third go on with the plan of the first."""
    paths = sorted(EXAMPLES.glob("*.ipynb"))
    assert len(paths) == 3
    for path in paths:
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        NotebookClient(
            notebook,
            timeout=1200,
            kernel_name="python3",
            resources={"metadata": {"path": str(tmp_path)}},
        ).execute()
        shown = [
            output["data"]
            for cell in notebook.cells
            if cell.cell_type == "code"
            for output in cell.outputs
            if output.output_type == "execute_result"
        ]
        assert any("text/html" in data for data in shown), path
    assert (tmp_path / "firm.report" / "index.html").is_file()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_a_run_leaves(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
