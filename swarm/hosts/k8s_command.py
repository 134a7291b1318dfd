"""`python -m swarm hosts manifests`: the YAML that runs a study on Kubernetes.

    python -m swarm hosts manifests [hosts.toml] -f FILE --image IMAGE [--workers N] [study options …]

Nothing is sent to a cluster: `kubectl apply -f` does that.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from reports.format import plain
from swarm.errors import UsageError
from swarm.hosts.host import GIVEN
from swarm.hosts.k8s import MARK, ClusterStudy, TokenSecret, objects, stream, targets_of, write_folder
from swarm.hosts.ssh import TOKEN, VARIABLE

DEFAULTS = {"image": "", "namespace": "inferswarm", "workers": 1, "cpu": 1, "memory": "1Gi"}
FIELDS = tuple(DEFAULTS)
OURS = GIVEN | {"--results-dir", "--link"}
"""What the manifests say to Locust themselves, and what is of no use on a cluster."""
FILES = frozenset({"--tls-ca", "--tls-client-cert", "--tls-client-key"})
EMBEDDED = frozenset({"--emulate", "--pretrained", "--trace"})
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
"""Shorter than a label, so that `-worker-0` still fits; and a Service's name begins with a letter."""
_SECRET = re.compile(r"(?!.{254})[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_MEMORY = re.compile(r"[1-9][0-9]*(Mi|Gi)")


class ManifestParser(argparse.ArgumentParser):
    """One that says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(message)


def main(argv: list[str]) -> int:
    """Print the manifests, or write them to `--output`; 2 and one sentence where something is wrong."""
    try:
        parsed, options = parse(argv)
        made = objects(study_of(parsed, options))
        # YAML ends a comment at more characters than one thinks.
        origin = MARK + plain(shlex.join(argv))
        if parsed.output:
            write_folder(parsed.output, made, origin)
        else:
            print(stream(made, origin), end="")
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own options, and those of the study as they were typed. Raises UsageError."""
    table, rest = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = ManifestParser(
        prog="python -m swarm hosts manifests",
        usage="%(prog)s [hosts.toml] -f FILE [options] [study options]",
        allow_abbrev=False,
    )
    parser.add_argument("-f", "--locustfile", type=Path, required=True, metavar="FILE", help="The study")
    parser.add_argument("--image", help="Image of examples/k8s/Dockerfile, where your cluster finds it")
    parser.add_argument("--namespace", help="Namespace of the study's own (default: inferswarm)")
    parser.add_argument("--workers", type=int, metavar="N", help="Locust workers (default: 1)")
    parser.add_argument(
        "--cpu", metavar="CORES", help="Whole cores of each worker and the master (default: 1)"
    )
    parser.add_argument("--memory", help="Memory of each worker and the master (default: 1Gi)")
    parser.add_argument(
        "--token-secret", action="append", default=[], metavar="[VARIABLE=]SECRET",
        help="Take a token from this Secret of the namespace, under the variable's name"
        " (default: INFERSWARM_TOKEN); may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="Write one file an object into this folder"
    )
    parsed, options = parser.parse_known_args(list(rest))
    for field, value in asked(table).items():
        if getattr(parsed, field) is None:
            setattr(parsed, field, value)
        elif getattr(parsed, field) == []:
            # What argparse makes of `--memory=--`.
            setattr(parsed, field, "")
    return parsed, options


def asked(table: str) -> dict[str, Any]:
    """What the one host of kind k8s in a hosts file says, over the defaults. Raises UsageError."""
    if not table:
        return DEFAULTS
    from swarm.hosts.hosts_file import read_hosts

    found = [host for host in read_hosts(Path(table)) if host.kind == "k8s"]
    if len(found) != 1:
        raise UsageError(f'{table}: has {len(found)} hosts of kind = "k8s", and manifests need one')
    told = {field: getattr(found[0], field, None) for field in FIELDS}
    return {field: value or DEFAULTS[field] for field, value in told.items()}


def study_of(parsed: argparse.Namespace, options: Sequence[str]) -> ClusterStudy:
    """The study, checked. Raises UsageError naming the option and the mend."""
    file: Path = parsed.locustfile
    check_options(options)
    if not _IMAGE.fullmatch(parsed.image or ""):
        raise UsageError("--image: name the client's image, built from examples/k8s/Dockerfile")
    if not _LABEL.fullmatch(parsed.namespace) or re.match("default$|kube-", parsed.namespace):
        raise UsageError(
            f"--namespace {parsed.namespace}: give the study one of its own, of a-z, 0-9 and - (at most 63)"
        )
    if parsed.workers < 1:
        raise UsageError(f"--workers {parsed.workers}: give 1 or more")
    if not re.fullmatch(r"[1-9][0-9]*", str(parsed.cpu)):
        raise UsageError(f"--cpu {parsed.cpu}: give whole cores; a share of one would throttle the generator")
    if not _MEMORY.fullmatch(parsed.memory):
        raise UsageError(f"--memory {parsed.memory}: give a quantity such as 512Mi or 1Gi")
    return ClusterStudy(
        name=name_of(file),
        namespace=parsed.namespace,
        image=parsed.image,
        file=file.name,
        text=text_of(file),
        options=tuple(options),
        targets=tuple(targets_of(options)),
        workers=parsed.workers,
        cpu=int(parsed.cpu),
        memory=parsed.memory,
        tokens=tuple(map(token_secret, parsed.token_secret)),
    )


def token_secret(text: str) -> TokenSecret:
    """`triton` or `INFERSWARM_ONNX_TOKEN=triton`. Raises UsageError."""
    variable, _, secret = text.rpartition("=")
    if VARIABLE.fullmatch(variable or TOKEN) and _SECRET.fullmatch(secret):
        return TokenSecret(variable or TOKEN, secret)
    # Not quoted: whoever took it for the token's own place has typed the token.
    raise UsageError("--token-secret: name a Secret, of a-z, 0-9, - and ., or INFERSWARM_…_TOKEN=SECRET")


def check_options(options: Sequence[str]) -> None:
    """May the study's options be what they are on a cluster? Raises UsageError."""
    if options and not options[0].startswith("-"):
        raise UsageError(f"{options[0]}: belongs to no option; a hosts file comes first")
    for word in options:
        option = word.partition("=")[0]
        if option in OURS:
            raise UsageError(f"{option}: is set by the manifests; leave it out")
        if option in FILES:
            raise UsageError(
                f"{option}: the client image has no such file, and pods get none from here; leave it out"
            )
        if option in EMBEDDED:
            raise UsageError(f"{option}: is of embedded servers, which the client image lacks; leave it out")


def name_of(file: Path) -> str:
    """`step7-contention` for `step7_contention.py`: what the objects are called. Raises UsageError."""
    name = file.stem.lower().replace("_", "-")
    if file.suffix != ".py" or not _NAME.fullmatch(name):
        raise UsageError(
            f"-f {file}: objects are named after it; call it NAME.py, of a-z, 0-9 and _ (at most 40),"
            " a letter first"
        )
    return name


def text_of(file: Path) -> str:
    """What is in the locustfile. Raises UsageError."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UsageError(f"-f {file}: cannot be read ({reason}); name a locustfile") from error
