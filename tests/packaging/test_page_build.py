# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTML page in a build: made by `make` where Node.js and a network for npm are, and missed in one line elsewhere."""

import os
import shutil
from pathlib import Path
from typing import Dict, List, Union

import pytest

from tests.harness import MADE, PYTHON, Run, check_run, run, source_tree
from tests.reporter.traces import small_training_run
from tests.web.browser import need_page

ASSETS = "reporter/jmassif/assets"
NO_NETWORK = {"npm_config_registry": "http://127.0.0.1:9/"}


@pytest.fixture(scope="module", name="without_node")
def fixture_without_node() -> Dict[str, str]:
    """The environment of a machine that has all but Node.js: /usr/bin, by links."""
    directory = MADE / "without-node"
    if not directory.exists():
        unfinished = MADE / f"without-node.{os.getpid()}"
        unfinished.mkdir(parents=True)
        for program in Path("/usr/bin").iterdir():
            if program.name not in ("node", "nodejs", "npm", "npx"):
                (unfinished / program.name).symlink_to(program)
        unfinished.rename(directory)
    return {"PATH": str(directory)}


class Checkout:
    """A git checkout of its own, for the page is built into the sources, and a build tree beside it."""

    def __init__(self, directory: Path) -> None:
        self.sources = directory / "jmassif"
        self.tree = directory / "build"
        self.installed = directory / "installed"
        shutil.copytree(str(source_tree()), str(self.sources), symlinks=True)
        shutil.rmtree(str(self.sources / ASSETS), ignore_errors=True)
        shutil.rmtree(str(self.sources / "reporter/web/node_modules"), ignore_errors=True)
        (self.sources / ".git").touch()  # what tells it from a release
        self.tree.mkdir()
        self.cache = {"npm_config_cache": str(directory / "npm")}

    def configure(self, env: Dict[str, str], *options: str) -> str:
        done = run([self.sources / "configure", *options], cwd=self.tree, env=env, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, env: Dict[str, str], *targets: str) -> Run:
        """In the reporter's part of the build tree."""
        return run(
            ["make", "-s", "--no-print-directory", "-C", self.tree / "reporter", *targets],
            env={**self.cache, **env},
            timeout=300,
        )

    def install(self, env: Dict[str, str]) -> None:
        assert self.make(env, "install", f"DESTDIR={self.installed}").returncode == 0

    def report(self, *words: Union[str, Path]) -> Run:
        modules = self.installed / "usr/local/share/jmassif/python"
        return run([PYTHON, "-m", "jmassif", "report", *words], cwd=self.installed, env={"PYTHONPATH": str(modules)})

    def page_of(self, trace: Path) -> Run:
        """What the installed reporter says to --html; it writes page.html beside the trace."""
        return self.report("--html", "-o", trace.with_name("page.html"), trace)


@pytest.fixture(name="checkout")
def fixture_checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def said(done: Run) -> List[str]:
    """The lines about the page."""
    return [line for line in (done.stdout + done.stderr).splitlines() if "HTML page" in line]


def test_with_nodejs_the_page_is_built_installed_and_used(checkout: Checkout, tmp_path: Path) -> None:
    need_page()
    checkout.cache = {}
    assert "the HTML page:  make will build it, with Node.js" in checkout.configure({})
    done = checkout.make({})
    assert done.returncode == 0 and said(done) == [], done.stderr
    checkout.install({})
    trace = small_training_run().save(tmp_path)
    page = checkout.page_of(trace)
    assert page.returncode == 0, page.stderr
    assert trace.with_name("page.html").read_text().startswith("<!DOCTYPE html>")

    script = checkout.sources / ASSETS / "page.js"
    before = script.stat().st_mtime_ns
    checkout.make({})
    assert script.stat().st_mtime_ns == before
    (checkout.sources / "reporter/web/src/main.js").touch()
    checkout.make({})
    assert script.stat().st_mtime_ns > before
    assert "the HTML page:  is here" in checkout.configure({})


def test_without_nodejs_all_else_is_built_and_each_step_says_what_to_do(
    checkout: Checkout, without_node: Dict[str, str], tmp_path: Path
) -> None:
    told = checkout.configure(without_node)
    assert "the HTML page:  not built: Node.js 18 or later and npm are not installed. Mend that" in told
    done = checkout.make(without_node)
    assert done.returncode == 0 and len(said(done)) == 1, done.stderr
    assert "Node.js 18 or later and npm are not installed" in said(done)[0]
    assert checkout.make(without_node, "page").returncode != 0

    checkout.install(without_node)
    trace = small_training_run().save(tmp_path)
    page = checkout.page_of(trace)
    assert page.returncode == 2 and page.stderr.count("\n") == 1
    assert "with Node.js 18 or later and npm installed, run make page and make install" in page.stderr
    text = checkout.report(trace)
    assert text.returncode == 0 and "--- By owner" in text.stdout


def test_an_old_nodejs_is_named(checkout: Checkout, without_node: Dict[str, str], tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for program in ("node", "npm"):
        (old / program).write_text("#!/bin/sh\necho v12.22.9\n")
        (old / program).chmod(0o755)
    told = checkout.configure({"PATH": f"{old}:{without_node['PATH']}"})
    assert "not built: Node.js is v12.22.9, and 18 or later is needed" in told


def test_without_a_network_make_succeeds_and_does_not_ask_again(checkout: Checkout) -> None:
    if shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    checkout.configure({})
    done = checkout.make(NO_NETWORK)
    assert done.returncode == 0 and len(said(done)) == 1, done.stderr
    assert "npm could not fetch the packages that build it (ECONNREFUSED; see" in said(done)[0]

    assert f"run make -C {checkout.tree} page," in said(done)[0]

    log = checkout.tree / "reporter/page.log"
    before = log.stat().st_mtime_ns
    again = checkout.make(NO_NETWORK)
    assert again.returncode == 0 and said(again) == said(done) and log.stat().st_mtime_ns == before
    strict = checkout.make(NO_NETWORK, "page")
    assert strict.returncode != 0 and len(said(strict)) == 1 and log.stat().st_mtime_ns > before


def test_a_certificate_that_npm_does_not_know_is_told_with_what_mends_it(
    checkout: Checkout, without_node: Dict[str, str], tmp_path: Path
) -> None:
    """Such as that of a company's proxy."""
    refused = tmp_path / "refused"
    refused.mkdir()
    npm = "#!/bin/sh\necho 'npm ERR! code SELF_SIGNED_CERT_IN_CHAIN' >&2\nexit 1\n"
    for program, text in (("node", "#!/bin/sh\necho v18.20.4\n"), ("npm", npm)):
        (refused / program).write_text(text)
        (refused / program).chmod(0o755)
    checkout.configure({})
    done = checkout.make({"PATH": f"{refused}:{without_node['PATH']}"})
    assert done.returncode == 0 and len(said(done)) == 1, done.stderr
    assert "(SELF_SIGNED_CERT_IN_CHAIN: set NODE_EXTRA_CA_CERTS to a file with the certificate" in said(done)[0]


def test_disable_page_leaves_it_to_make_page(checkout: Checkout) -> None:
    assert "not built unless by make page (--disable-page)" in checkout.configure({}, "--disable-page")
    done = checkout.make(NO_NETWORK)
    assert done.returncode == 0 and said(done) == [] and not (checkout.sources / ASSETS).exists()


def test_a_release_keeps_the_page_that_it_came_with(checkout: Checkout) -> None:
    (checkout.sources / ".git").unlink()
    (checkout.sources / ASSETS).mkdir()
    (checkout.sources / ASSETS / "page.js").write_text("as released\n")
    os.utime(str(checkout.sources / ASSETS / "page.js"), (0, 0))
    checkout.configure({})
    done = checkout.make(NO_NETWORK)
    assert done.returncode == 0 and said(done) == []
    assert (checkout.sources / ASSETS / "page.js").read_text() == "as released\n"


def test_the_pages_tests_fail_with_the_reason_that_bootstrap_found() -> None:
    reason = "the HTML page is not built: no network"
    test = Path(__file__).resolve().parents[1] / "web/test_balance.py"
    done = run(
        [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", test],
        cwd=test.parents[2],
        env={"JMASSIF_NO_PAGE": reason},
    )
    assert done.returncode == 1 and reason in done.stdout and "Traceback" not in done.stdout


def test_the_build_script_says_how_it_is_used() -> None:
    script = source_tree() / "reporter/web/build-page"
    done = run([script])
    assert done.returncode == 2 and done.stderr.startswith("usage: build-page can ") and done.stderr.count("\n") == 3
    check_run(["sh", "-n", script])
