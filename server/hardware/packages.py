"""Which packages are installed, and how those of the embedded servers are."""

from importlib.metadata import PackageNotFoundError, version

from server.errors import SetUpError
from server.spec import CHECKOUT
from server.triton.tritonserver import INSTALL as INSTALL_TRITON

INSTALL = "run `pip install -r requirements.txt`" if CHECKOUT else "run `pip install 'inferswarm[server]'`"


def version_of(package: str) -> str:
    """The installed version; empty where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def check_servers(installed: bool = not CHECKOUT, torch: str | None = None) -> None:
    """SetUpError where an `installed` inferswarm came without the servers; a checkout says what it lacks."""
    if installed and not (version_of("torch") if torch is None else torch):
        raise SetUpError(
            f"the embedded servers are not installed: {INSTALL}, then {INSTALL_TRITON.removeprefix('run ')},"
            " or test a server of yours with --endpoint NAME=URL."
        )
