"""Options and targets: what is taken, and the sentence for what is not."""

from locust.argument_parser import get_empty_argument_parser

import argparse
import os

import pytest

from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.options.parse import add_options, changes, resolve
from swarm.targets.endpoints import FIVE, chosen, endpoints_from_options, endpoints_from_ready
from users.backends.registry import facts_of
from users.http2.sender import SCHEDULING, SCHEDULINGS
from users.transport.connections import GIVE


def parsed(*arguments: str, **overrides: object) -> argparse.Namespace:
    parser = get_empty_argument_parser(default_config_files=[])
    add_options(parser)
    namespace = parser.parse_args(list(arguments))
    vars(namespace).update(overrides)
    return namespace


def options(*arguments: str) -> Options:
    return resolve(parsed(*arguments))


FIVE_WAYS = chosen(FIVE, options())


def test_defaults() -> None:
    made = options()
    assert made.embedded
    assert (made.size, made.iterations, made.repeats, made.seed) == ("quick", 0, 0, 0)
    assert made.to_record()["urls"] == {}


def test_study_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY", "full")
    assert options().size == "full"
    assert options("--study", "quick").size == "quick"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--batch-mix 1:0.98,2:0.02 --picture-mix 224:0.96,640:0.04",
         "--batch-mix and --picture-mix: give shares of which none is below 0.001, mixed with each other,"
         " too"),
        ("--iterations 0", "--iterations 0: must be at least 1"),
        ("--repeats 0", "--repeats 0: must be 1 to 10,000"),
        ("--seconds 0", "--seconds 0: give more than 0"),
        ("--request-timeout 0", "--request-timeout 0: give more than 0"),
        ("--min-cosine 2", "--min-cosine 2: must be -1 to 1"),
        ("--max-failure-ratio 1.5", "--max-failure-ratio 1.5: must be 0 to 1"),
        ("--baseline b.json", "--baseline: applies only to gates; also give --gate"),
        ("--repeat-until-decided 5", "--repeat-until-decided: applies only to gates; also give --gate"),
        ("--gate t.toml --repeat-until-decided -1", "--repeat-until-decided -1: must be 0 to 10,000"),
        ("--gate t.toml --repeat-until-decided 5 --find-rate p99<=100",
         "--repeat-until-decided: a search for a rate is not repeated; leave out one of them"),
        ("--rates abc", "--rates abc: give requests a second, up to 100,000, e.g. 50,100"),
        ("--rates 5,0", "--rates 5,0: give"),
        ("--rates 1e9", "--rates 1e9: give"),
        ("--rates nan", "--rates nan: give"),
        ("--arrivals poisson", "--arrivals: applies only to open-loop load; also give --rates or --find-rat"),
        ("--max-in-flight 3", "--max-in-flight: applies only to open-loop load"),
        ("--find-rate p99<=5 --repeats 2", "--find-rate: searches once, from one rate"),
        ("--find-rate p99<=5 --rates 5,6", "--find-rate: searches once, from one rate"),
        ("--find-rate slo", "--find-rate slo: needs the objective that is to be kept; also give --slo"),
        ("--load-profile up:5", "--load-profile up:5: give seconds of ramp, hold and cool"),
        ("--load-profile nowhere.toml", "--load-profile nowhere.toml: cannot be read (No such file"),
        ("--think 0.5,1m", "--think 0.5,1m: give seconds up to 600, e.g. 0.5, or exponential:0.5"),
        ("--load-profile hold:5 --find-rate p99<=5", "--load-profile: a search needs a constant rate"),
        ("--kube-namespace a", "--kube-namespace: applies only to the Kubernetes API; also give --kube-url"),
        ("--kube-url http://h:1", "--kube-url: watches a service of yours; also give its URL"),
        ("--pytorch-url h:1 --kube-url http://h:1 --kube-deployment a/b",
         "--kube-deployment a/b: give a Kubernetes name"),
        ("--prometheus-port 70000", "--prometheus-port 70000: must be 0 to 65535"),
        (
            "--influx-url http://influx:8086",
            "--influx-url http://influx:8086: give http://HOST:8086/write?db=NAME or"
            " http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET",
        ),
        (
            "--influx-url http://influx:8086/write?db=load&p=s3cret",
            "--influx-url: holds a secret; leave it out, and export the token as INFERSWARM_INFLUX_TOKEN",
        ),
        ("--client fast", "--client fast: give one of prepared, library"),
        ("--client library --grpc-scheduling fair",
         "--grpc-scheduling: applies only to --client prepared; leave it out, or add that client"),
        ("--channels one", f"--channels one: {GIVE}"),
        ("--rates 5 --arrivals bursts", "--arrivals bursts: give one of constant, poisson"),
        ("--link lan --onnx-http-url h:1", "--link lan: applies only to embedded servers; leave out the URL"),
        ("--link-mbit -1", "--link-mbit -1: must be at least 0"),
        ("--link-mbit nan", "--link-mbit nan: must be at least 0"),
        ("--usd-per-hour -0.5", "--usd-per-hour -0.5: must be at least 0"),
        ("--usd-per-hour inf", "--usd-per-hour inf: must be at least 0"),
        ("--emulate a100 --onnx-http-url h:1", "--emulate: applies only to embedded servers; leave out the"),
        ("--trace --pytorch-url gpu:8002", "--trace: applies only to embedded servers; leave out the URLs,"),
        *((f"--{name} x=y", f"--{name}: applies only to --endpoint; also give that, or leave out --{name}")
          for name in ("prepare", "output", "shape", "space")),
        ("--batches 1,0", "--batches 1,0: give whole numbers of items in a request from 1 to 4,096, e.g. 1"),
        ("--batches 4097", "--batches 4097: give whole numbers of items in a request from 1 to 4,096"),
        ("--levels 1.5", "--levels 1.5: give whole numbers of users from 1 to 100,000, e.g. 1,8"),
        ("--pool-mb 0", "--pool-mb 0: must be 1 to 1,048,576"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(arguments: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(*arguments.split())
    assert str(caught.value).startswith(sentence)


def test_thresholds_and_baseline_are_found_from_anywhere() -> None:
    made = options("--gate", "t.toml", "--baseline", "b.json")
    assert (made.gate, made.baseline) == (os.path.abspath("t.toml"), os.path.abspath("b.json"))
    assert (options().gate, options().baseline) == ("", "")


def test_blanks_around_a_text_do_not_count() -> None:
    assert options("--find-rate", " slo ", "--slo", "p99<=100").find_rate == "slo"


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_numbers_that_are_none(value: str) -> None:
    for option in ("--seconds", "--request-timeout", "--min-cosine", "--max-failure-ratio"):
        with pytest.raises(UsageError, match=option):
            options(option, value)


def test_clients_and_channels() -> None:
    made = options()
    assert (made.client, made.channels, made.link_mbit) == ("prepared", "per-user", 0)
    made = options("--client", "library", "--channels", "shared", "--link-mbit", "940")
    assert (made.client, made.channels, made.link_mbit) == ("library", "shared", 940)
    record = made.to_record()
    assert (record["client"], record["channels"], record["link_mbit"]) == ("library", "shared", 940)


def test_the_order_of_sending_over_grpc() -> None:
    assert options().to_record()["grpc_scheduling"] == SCHEDULING
    assert [options("--grpc-scheduling", order).grpc_scheduling for order in SCHEDULINGS] == ["fifo", "fair"]
    assert options("--grpc-scheduling", "fair", "--client", "prepared,library").grpc_scheduling == "fair"
    assert options("--client", "library", "--grpc-scheduling", SCHEDULING).client == "library"


def test_another_order_is_refused_as_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parsed("--grpc-scheduling", "lifo")
    assert caught.value.code == 2
    assert "--grpc-scheduling: invalid choice: 'lifo' (choose from" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"^--grpc-scheduling lifo: give one of fifo, fair$"):
        resolve(parsed(grpc_scheduling="lifo"))


def test_endpoints_of_any_model() -> None:
    assert (options().endpoint, options().batches, options().pool_bytes) == ((), (), 256_000_000)
    given = ("--endpoint", "old=v2+http://gpu:1/m", "--endpoint", "new=mine.toml", "--space", "old=clip")
    made = options(*given, "--batches", "8, 1,8", "--levels", "1,64", "--pool-mb", "2")
    assert not made.embedded
    assert made.endpoint == ("old=v2+http://gpu:1/m", "new=mine.toml")
    assert (made.space, made.output) == (("old=clip",), ())
    assert (made.batches, made.levels, made.pool_bytes) == ((8, 1), (1, 64), 2_000_000)
    record = made.to_record()
    assert (record["endpoint"], record["batches"]) == (made.endpoint, made.batches)


def test_kinds_of_pictures_are_those_of_the_mix() -> None:
    assert options().kinds == ()
    assert options("--picture-mix", "224:0.7, 1024:0.3").kinds == ("224", "1024")
    with pytest.raises(
        UsageError, match=r"^--picture-mix 224:0.7: give the shares of all requests, which add up"
    ):
        resolve(parsed(picture_mix="224:0.7"))


def test_the_price_of_the_servers_is_kept_and_unknown_by_default() -> None:
    assert options().to_record()["usd_per_hour"] == 0
    assert options("--usd-per-hour", "0.894").to_record()["usd_per_hour"] == 0.894


def test_switches() -> None:
    made = options()
    assert (made.skip_trt, made.floor, made.trace, made.emulate) == (False, False, False, "")
    made = options("--skip-trt", "--floor", "--trace", "--emulate", "40+1.3")
    assert (made.skip_trt, made.floor, made.trace, made.emulate) == (True, True, True, "40+1.3")
    assert made.embedded
    assert options("--floor", "--onnx-http-url", "gpu:8010").floor, "a Triton elsewhere may have a null model"


def test_the_web_form_may_choose_client_and_channels_but_no_servers() -> None:
    first = options("--floor", "--emulate", "a100")
    form = resolve(parsed("--floor", "--emulate", "a100", client="library", channels="shared"))
    assert changes(first, form) == ["--channels", "shared", "--client", "library"]
    form = resolve(parsed("--floor", "--emulate", "a100", grpc_scheduling="fair"))
    assert changes(first, form) == ["--grpc-scheduling", "fair"]
    with pytest.raises(UsageError, match="--channels both: give per-user, per-request, shared"):
        resolve(parsed(channels="both"))
    parser = get_empty_argument_parser(default_config_files=[])
    add_options(parser)
    shown = set(parser.args_included_in_web_ui)
    assert {"client", "channels", "grpc_scheduling", "link_mbit"} <= shown
    assert not {"floor", "trace", "emulate", "emulated_http_url"} & shown


def test_open_load() -> None:
    made = options("--rates", "50, 12.5,50", "--arrivals", "poisson", "--max-in-flight", "7")
    assert (made.rates, made.arrivals, made.max_in_flight) == ((50, 12.5), "poisson", 7)


def test_what_the_web_form_changes_is_typed_as_options() -> None:
    first = options("--iterations", "3")
    form = resolve(parsed("--iterations", "3", rates="30,60", arrivals="poisson", study="full"))
    assert changes(first, form) == ["--study", "full", "--rates", "30,60", "--arrivals", "poisson"]
    assert changes(first, first) == []
    assert changes(first, resolve(parsed("--iterations", "3", levels="1,64"))) == ["--levels", "1,64"]


def test_the_web_form_sends_text() -> None:
    made = resolve(parsed(iterations="7", seconds="", repeats="2"))
    assert (made.iterations, made.seconds, made.repeats) == (7, 0, 2)


@pytest.mark.parametrize(("field", "value"), [("iterations", "many"), ("repeats", "x"), ("study", "huge")])
def test_the_web_form_sends_nonsense(field: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"--{field}"):
        resolve(parsed(**{field: value}))


def test_only_the_named_targets_are_tested() -> None:
    given = options("--onnx-grpc-url", "gpu:8011", "--pytorch-url", "http://gpu:8002")
    service, triton = endpoints_from_options(given, FIVE_WAYS)
    assert (service.name, service.address, service.model) == ("pytorch-http", "gpu:8002", "")
    assert (triton.name, triton.address, triton.model) == ("onnx-grpc", "gpu:8011", "openclip_vit_b32")


def test_an_emulated_model_elsewhere() -> None:
    given = options("--emulated-http-url", "gpu:8030", "--emulated-grpc-url", "grpc://gpu:8031")
    made = endpoints_from_options(given, FIVE_WAYS)
    assert [(e.name, e.protocol, e.address) for e in made] == [
        *(("emulated-http", "http", "gpu:8030"), ("emulated-grpc", "grpc", "gpu:8031"))
    ]
    assert {(e.backend, e.payload, e.model) for e in made} == {("emulated", "fp32", "emulated")}
    assert not any(facts_of(endpoint).computes for endpoint in made)
    with pytest.raises(UsageError, match=r"--emulated-http-url 'gpu': give host:port"):
        endpoints_from_options(options("--emulated-http-url", "gpu"), FIVE_WAYS)


def test_an_emulated_model_of_our_own_is_no_compiled_engine() -> None:
    ready = {"endpoints": {"emulated": {"http": "h:8030", "grpc": "h:8031", "model": "emulated"}}}
    for given in ((), ("--skip-trt",)):
        made = endpoints_from_ready(ready, chosen(FIVE, options(*given)))
        assert [(e.name, e.backend) for e in made] == [
            (f"emulated-{p}", "emulated") for p in ("http", "grpc")
        ]


def test_skip_trt() -> None:
    left = chosen(FIVE, options("--skip-trt"))
    arguments = ("--onnx-http-url", "gpu:8010", "--trt-http-url", "gpu:8020")
    assert [endpoint.name for endpoint in endpoints_from_options(options(*arguments), left)] == ["onnx-http"]
    with pytest.raises(UsageError, match="no endpoint is left to test: give --pytorch-url or --onnx-http"):
        endpoints_from_options(options("--trt-http-url", "gpu:8020"), left)


def test_embedded_endpoints_are_named_for_what_they_are() -> None:
    ready = {
        "endpoints": {
            "pytorch": {"url": "http://h:2"},
            "openvino": {"http": "h:3", "grpc": "h:4", "model": "n"},
        }
    }
    made = endpoints_from_ready(ready, FIVE_WAYS)
    assert [(e.name, e.address, e.model) for e in made] == [
        *(("pytorch-http", "h:2", ""), ("openvino-http", "h:3", "n"), ("openvino-grpc", "h:4", "n"))
    ]
    assert len(endpoints_from_ready(ready, chosen(FIVE, options("--skip-trt")))) == 1
