"""The how-to "Amend a running experiment", done as it is printed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from sottovoce.device.transport import Request, send
from support.paths import ROOT
from support.services import COMMAND, TOKEN, Service

PAGE = (ROOT / "docs" / "how-to" / "amend-a-running-experiment.md").read_text()
RUN = (ROOT / "docs" / "how-to" / "run-the-service.md").read_text()
COMMANDS = re.findall(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", PAGE, re.DOTALL)


def plain(text: str) -> str:
    """Leave out what is different each time: places in the log, releases, moments."""
    text = re.sub(r"Z\]", "]", re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "", text))
    text = re.sub(r"in release \d+, after [\d,]+ reports", "", text)
    return re.sub(r"amendment \d+", "amendment", text).replace("[y/N]: y\n", "[y/N]: ")


def test_the_page_works_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(COMMAND[0]).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SOTTOVOCE_ADMIN_TOKEN", TOKEN)
    toml = re.findall(r"```toml\n(.*?)```", RUN, re.DOTALL)[0]
    (token, _), *steps = COMMANDS
    assert token.startswith("export SOTTOVOCE_ADMIN_TOKEN=")
    assert len(steps) == 5
    # In the order in which they were run for the page: the end comes last.
    steps = [steps[0], steps[2], steps[3], steps[1], steps[4]]
    with Service(tmp_path, toml, database=f"sqlite:///{tmp_path}/store.db") as service:
        service.wait_until_ready()
        for text, printed in steps:
            lines = text.replace("\\\n", " ").replace("http://127.0.0.1:8000", service.url)
            for line in lines.splitlines():
                if " stop " in line or " archive " in line:
                    continue
                done = subprocess.run(
                    ["/bin/sh", "-ec", line],
                    input="y\n",
                    capture_output=True,
                    text=True,
                    check=True,
                )
                if printed:
                    said = (done.stderr + done.stdout).replace(": \n ", ": ")
                    assert plain(said) == plain(printed)
        for end in ("stop", "archive"):
            (line,) = re.findall(rf"^sottovoce amend walking {end} .*$", PAGE, re.MULTILINE)
            line = line.replace("http://127.0.0.1:8000", service.url)
            subprocess.run(["/bin/sh", "-ec", line], input="y\n", text=True, check=True)
        listed = send(Request("GET", f"{service.url}/experiments")).body
        assert b'"state":"archived"' in listed
