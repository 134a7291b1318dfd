"""Which packages are installed."""

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str:
    """The installed version; empty where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
