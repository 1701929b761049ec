"""Pages in a real Chromium whose scripts never end: each ends at the deadline, with a clear failure."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.api import LAPTOPS, ROOT, Panda
from tests.web.site import Site, running_site, slow

HAS_BROWSER = find_spec("playwright") is not None and any(map(shutil.which, ("chromium", "google-chrome")))
pytestmark = pytest.mark.skipif(not HAS_BROWSER, reason="playwright or Chromium is not installed")
MOST_SECONDS = 45


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as running:
        yield running


@pytest.fixture
def panda(tmp_path: Path, site: Site) -> Panda:
    """A project that reads pages of the site in a browser, each within four seconds."""
    environ = {"PANDA_WEB_BROWSER": "on", "PANDA_WEB_TIMEOUT_SECONDS": "4", "PANDA_WEB_ALLOW": site.place}
    project = Panda(tmp_path / "project", LAPTOPS, user="ann", **environ)
    lines = (ROOT / "models.yaml").read_text(encoding="utf-8").splitlines()
    lines = ["encoder: null" if line.startswith("encoder:") else line for line in lines]
    project.write("models.yaml", "\n".join(lines))
    return project


def navigate(panda: Panda, url: str) -> dict[str, Any]:
    """The first result of internet.navigate in a turn, after which no process of the browser is left."""
    query = f"Open {url} and find the opening hours."
    with TemporaryDirectory(prefix="browser-") as temporary:  # short: sockets are made in it
        started = time.monotonic()
        ended = panda.process("turn", "--json", "--", query, TMPDIR=temporary, HOME=temporary)
        assert time.monotonic() - started < MOST_SECONDS
        assert not processes_of(temporary)
    assert ended.code in (0, 22), ended.out
    steps = sorted(Path(ended.data["turn_dir"], "steps").glob("step_*.json"))
    values = [json.loads(path.read_text(encoding="utf-8")) for path in steps]
    assert values[0]["tool"] == "internet.navigate"
    assert isinstance(values[0], dict)
    return values[0]


def processes_of(temporary: str) -> list[str]:
    """Processes with a profile in a directory, once those that are ending have had time."""
    end = time.monotonic() + 10
    while True:
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                lines.append(path.read_bytes().decode("utf-8", "replace"))
        lines = [line for line in lines if temporary in line]
        if not lines or time.monotonic() > end:
            return lines
        time.sleep(0.1)


@pytest.mark.parametrize(
    "script",
    [
        "while (true) {}",
        "while (true) alert(1)",
        "let t = 'word '; for (;;) { t += t.slice(0, 1e6); document.body.textContent = t }",
    ],
)
def test_scripts_that_never_end_are_ended(panda: Panda, site: Site, script: str) -> None:
    """And so is Chromium; the turn goes on as without the page."""
    url = site.add("/", f"<title>Museum</title><body><p>Hello</p><script>{script}</script>")
    error = str(navigate(panda, url)["error"])
    assert "the browser" in error
    assert "the most that is" in error, error
    assert url in error


def test_slow_pictures_end_at_the_deadline(panda: Panda, site: Site) -> None:
    """A hundred of them, which drip."""
    for n in range(100):
        site.add(f"/{n}.png", drip=slow(b"x", 0.2), headers={"Content-Type": "image/png"})
    pictures = "".join(f"<img src=/{n}.png>" for n in range(100))
    url = site.add("/", f"<title>Museum</title><p>Hello</p>{pictures}<script>1</script>")
    error = str(navigate(panda, url)["error"])
    assert "the browser needs more than 4 seconds" in error


def test_floods_end(panda: Panda, site: Site) -> None:
    """Of popups, frames, service workers, downloads, text and navigations: the page is read, or refused."""
    script = """
        for (let n = 0; n < 500; n++) {
            window.open('/other?' + n);
            navigator.serviceWorker.register('/sw.js?' + n).catch(() => 0);
            const frame = document.createElement('iframe');
            frame.srcdoc = '<p>x';
            const link = document.createElement('a');
            link.href = URL.createObjectURL(new Blob(['x']));
            link.download = 'f' + n;
            document.body.append(frame, link, 'word '.repeat(2000));
            link.click();
            print();
        }
        setInterval(() => { location.href = '/?' + Math.random() }, 1);
    """
    url = site.add("/", f"<title>Museum</title><body><p>Hello</p><script>{script}</script>")
    result = navigate(panda, url)
    assert result["error"] is None or url.rstrip("/") in str(result["error"])


def test_the_page_after_a_killed_one_is_read(panda: Panda, site: Site) -> None:
    """In a new Chromium."""
    hours = "The museum is open Tuesday to Sunday from 10:00 to 17:30."
    good = f"document.body.innerHTML = '<h1>Opening hours</h1><p>{hours}</p>'"
    site.add("/hours", f"<title>Opening hours</title><body><p>Loading</p><script>{good}</script>")
    site.add("/news", "<title>Opening hours news</title><body><p>Hi</p><script>while (true) {}</script>")
    menu = "<p><a href=/news>Opening hours</a></p><p><a href=/hours>Opening hours of the museum</a></p>"
    words = "The museum of the harbour and its lights, run by the town. " * 4
    url = site.add("/", f"<title>Museum</title><h1>Museum</h1><p>{words}</p>{menu}")
    result = navigate(panda, url)
    assert "17:30" in json.dumps(result["claims"])
