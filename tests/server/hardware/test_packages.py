"""How the embedded servers are installed, as a checkout, an installed package and an image have it."""

from pathlib import Path

import pytest

from server.errors import SetUpError
from server.hardware.packages import check_servers
from server.triton.tritonserver import INSTALL, how_to_install


def test_an_installed_package_names_the_pin_and_others_the_file(tmp_path: Path) -> None:
    file = tmp_path / "requirements-triton.txt"
    named = "run `pip install --no-deps -r requirements-triton.txt`"
    assert how_to_install(checkout=False, file=file) == named
    file.write_text('# Why.\nnvidia-pytriton==1.2.3 ; python_version < "3.14"\n')
    assert how_to_install(checkout=False, file=file) == "run `pip install --no-deps nvidia-pytriton==1.2.3`"
    assert how_to_install(checkout=True, file=file) == INSTALL == named


def test_an_installed_package_without_the_servers_says_how_to_add_them() -> None:
    with pytest.raises(SetUpError) as caught:
        check_servers(installed=True, torch="")
    assert str(caught.value) == (
        "the embedded servers are not installed: run `pip install -r requirements.txt`, then `pip install"
        " --no-deps -r requirements-triton.txt`, or test a server of yours with --endpoint NAME=URL."
    )
    check_servers(installed=True, torch="2.13.0")
    check_servers(installed=False, torch="")
