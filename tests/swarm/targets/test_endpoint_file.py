"""--endpoint NAME=TARGET: what URLs and files become, and one sentence for whatever is wrong with them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from hypothesis import given

from swarm.errors import UsageError
from swarm.targets.endpoint_file import endpoint_of, read_endpoint, target_endpoint
from tests.bad_input import Tally, is_clear, tried
from tests.bad_toml import bad_tomls
from users.backends.registry import compressions_of
from users.codecs.registry import codec_named
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.inputs.preparation import CLIP, PRESETS
from users.redact import redacted
from users.tls import OPEN, Security

JPEG = Input("image", "BYTES", (1,), "jpeg")
LEAST = """
url = "http://gpu:7997/embeddings"
[body]
json = { input = ["$data_url"] }
[answer]
vectors = "data[].embedding"
"""
TALLY = Tally(files=300)


@pytest.fixture(autouse=True)
def _no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INFERSWARM_TOKEN", "INFERSWARM_MINE_TOKEN", "NOT_SET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")


def read(folder: Path, text: str) -> Endpoint:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return read_endpoint("mine", str(path), OPEN)


def refused(folder: Path, text: str) -> str:
    """What is said of a file, behind its name."""
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    said = str(caught.value)
    assert said.startswith("--endpoint mine: ")
    assert is_clear(said)
    assert "s3cr3t-value" not in said
    return said.removeprefix(f"--endpoint mine: {folder / 'mine.toml'}: ")


def with_line(line: str, of: str = "url") -> str:
    """The least file with a line before its table, or as one of its fields."""
    lines = LEAST.splitlines()
    at = next(number for number, one in enumerate(lines) if one.strip(" []").startswith(of))
    return "\n".join((*lines[: at + 1], line, *lines[at + 1 :]))


@pytest.mark.parametrize(
    ("target", "backend", "protocol", "address", "tls", "model", "version"),
    [
        ("triton+grpc://gpu:8001/siglip", "triton", "grpc", "gpu:8001", False, "siglip", ""),
        ("triton+grpcs://gpu:8001/a-b.c_d/versions/3", "triton", "grpc", "gpu:8001", True, "a-b.c_d", "3"),
        ("triton+https://[::1]:8000/clip/", "triton", "http", "[::1]:8000", True, "clip", ""),
        ("v2+http://127.0.0.1:8080/clip", "v2", "http", "127.0.0.1:8080", False, "clip", ""),
        ("triton+http://[::1]:8000/m@v2/versions/1", "triton", "http", "[::1]:8000", False, "m@v2", "1"),
        ("triton+grpc://gpu:8001/org/model/", "triton", "grpc", "gpu:8001", False, "org/model", ""),
        ("v2+http://gpu:8000/org%2Fm%252F=x", "v2", "http", "gpu:8000", False, "org/m%2F=x", ""),
        ("v2+grpc://gpu:8001/модель b", "v2", "grpc", "gpu:8001", False, "модель b", ""),
    ],
)
def test_urls(target: str, backend: str, protocol: str, address: str, tls: bool, model: str, version: str):
    made = endpoint_of(f"mine={target}", Security(ca="ca.pem"))
    assert (made.name, made.backend, made.protocol, made.address) == ("mine", backend, protocol, address)
    assert (made.tls, made.model, made.version, made.space) == (tls, model, version, model)
    assert made.settings == {"asked": {}}
    assert made.security == Security(ca="ca.pem")
    assert made == target_endpoint("mine", target, Security(ca="ca.pem"))


@pytest.mark.parametrize(
    ("url", "path", "page"),
    [
        ("http://gpu:1/openai/emb?api-version=2024-02-01", "/openai/emb?api-version=2024-02-01", ""),
        ("https://api.example?v=1&key=s3cr3t-value", "/?v=1&key=s3cr3t-value", ""),
        ("http://gpu:1/run/@cf/baai?for=a@b", "/run/@cf/baai?for=a@b", ""),
        ("http://gpu:1/x", "/x", "http://gpu:2/metrics?format=prometheus"),
    ],
)
def test_a_url_keeps_its_query(tmp_path: Path, url: str, path: str, page: str) -> None:
    times = f'[times.metrics]\nurl = "{page}"\nqueue = "wait ms"' if page else ""
    made = read(tmp_path, LEAST.replace("http://gpu:7997/embeddings", url) + times)
    assert codec_named(made.codec)(made).path == path
    assert made.settings.get("times", {}).get("metrics", {}).get("url", "") == page
    assert "s3cr3t-value" not in redacted(f"POST {made.path}")


def test_a_token_is_sent_to_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSWARM_MINE_TOKEN", "abc")
    assert endpoint_of("mine=v2+http://gpu:1/m", OPEN).security.token == "INFERSWARM_MINE_TOKEN"
    assert endpoint_of("other=v2+http://gpu:1/m", OPEN).security.token == ""


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("triton+grpc://gpu:8001/siglip", "triton+grpc://gpu:8001/siglip: has no name; give NAME=TARGET, "),
        ("mine=", "mine: has no target; give a URL such as triton+grpc://"),
        ("a b=v2+http://gpu:1/m", "a b: is not a valid name; give at most 64 letters"),
        ("old-floor=v2+http://gpu:1/m", "old-floor: is not a valid name; give at most 64 letters, digits, d"),
        ("x" * 65 + "=v2+http://gpu:1/m", f"{'x' * 65}: is not a valid name"),
        ("mine=http://gpu:1/embed", "mine: http://gpu:1/embed does not say how an HTTP service is called; "),
        ("mine=grpc://gpu:1", "mine: grpc://gpu:1 does not say how a gRPC service is called; describe it, "),
        ("mine=triton://gpu:1/m", "mine: triton://gpu:1/m has no scheme that is known; give one of http, "),
        ("mine=triton+http://gpu/m", "mine: triton+http://gpu/m has no sound host and port; give them as"),
        ("mine=v2+grpc://gpu:1", "mine: v2+grpc://gpu:1 names no model; give /MODEL or /MODEL/versions/2 "),
        ("mine=v2+http://me:pw@gpu:1/m", ": has a name or a password in it, which would be kept"),
        ("mine=v2+http://me:p/w@gpu:1/m", ": has a name or a password in it, which would be kept"),
        ("mine=v2+http://gpu:1/m?key=s3cr3t", "mine: v2+http://gpu:1/m?key=[hidden] has a query, which only"),
        ("mine=v2+grpc://gpu:1/v2/models/a", "mine: v2+grpc://gpu:1/v2/models/a names no model; give /MODEL"),
        ("mine=v2+grpc://gpu:1/a%1b[2J", "mine: v2+grpc://gpu:1/a%1b[2J names a model with characters that"),
        (
            "org/mine=v2+grpc://gpu:1/m",
            "org/mine: is not a valid name; give at most 64 letters, digits, dots",
        ),
        ("mine=nowhere.toml", "mine: nowhere.toml: cannot be read (No such file or directory); give a TOML"),
    ],
)
def test_bad_arguments(argument: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        endpoint_of(argument, OPEN)
    assert str(caught.value).removeprefix("--endpoint").lstrip().startswith(said)
    assert is_clear(str(caught.value))


def test_the_least_file(tmp_path: Path) -> None:
    settings = {"body": {"json": {"input": ["$data_url"]}}, "answer": {"vectors": "data[].embedding"}}
    found = Endpoint("mine", "service", "http", "jpeg", "gpu:7997", path="/embeddings", space="mine")
    found = replace(found, codec="declared-http", contract=Contract((JPEG,)), settings=settings)
    assert read(tmp_path, LEAST) == found


def test_a_file_with_all_that_a_service_may_have(tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_text("a\n")
    made = read(
        tmp_path,
        """
        url = "https://[::1]:8443/v1/embed:all"
        model = "clip"
        host = "clip.example:80"
        space = "towers"
        server = "old"
        max_batch = 4
        stands_for = "trt"
        computes = false
        compression = ["deflate"]
        [headers]
        Authorization = "Bearer ${MY_TOKEN}"
        X-Api-Version = "2"
        [body]
        json = { a = ["$text"], b = [1, 2.5, true] }
        repeat = "a"
        [answer]
        vectors = "data[].e"
        encoding = "base64"
        dtype = "float16"
        dimension = 768
        order = "data[].i"
        success = [200, 201]
        [ready]
        path = "/health"
        [times]
        metrics = { url = "http://gpu:7998", requests = "r_total", queue = "q_sum s", compute = "c_sum us" }
        """,
    )
    assert (made.address, made.tls, made.path) == ("[::1]:8443", True, "/v1/embed:all")
    assert made.authority == "clip.example:80"
    assert (made.model, made.space, made.server) == ("clip", "towers", "old")
    assert (made.stands_for, made.computes, made.payload) == ("trt", False, "text")
    assert made.headers == (("Authorization", "Bearer ${MY_TOKEN}"), ("X-Api-Version", "2"))
    assert made.contract == Contract((Input("text", "BYTES", (1,), "text"),), dimension=768, max_batch=4)
    assert compressions_of(made) == ("deflate",)
    assert made.settings["ready"] == {"path": "/health"}
    counters = {"requests": "r_total", "queue": "q_sum s", "compute": "c_sum us"}
    assert made.settings["times"]["metrics"] == {"url": "http://gpu:7998/metrics", **counters}
    assert Endpoint.from_dict(made.to_dict()) == made


def test_a_url_without_a_port_has_its_schemes(tmp_path: Path) -> None:
    made = read(tmp_path, LEAST.replace("http://gpu:7997/embeddings", "https://gpu.example"))
    assert (made.address, made.authority, made.path) == ("gpu.example:443", "gpu.example", "/")
    assert read(tmp_path, LEAST.replace(":7997", "")).address == "gpu:80"


def test_what_holds_one_item_takes_one(tmp_path: Path) -> None:
    """Nobody need say it of a body in which nothing repeats."""
    one = LEAST.replace('json = { input = ["$data_url"] }', 'raw = "$jpeg"')
    assert read(tmp_path, one).contract.max_batch == 1
    assert read(tmp_path, LEAST).contract.max_batch == 0


def test_pixels_are_an_input_that_is_prepared(tmp_path: Path) -> None:
    text = LEAST.replace('"$data_url"', '"$pixels"')
    guessed = read(tmp_path, text)
    assert guessed.payload == "fp32"
    assert guessed.contract.inputs == (Input("pixels", "FP32", (3, 224, 224), "picture", "NCHW"),)
    assert guessed.contract.preparation == CLIP
    as_clip, as_sent = guessed.contract.guesses
    assert as_clip == "Pixels are prepared as for CLIP, since no preparation is declared (prepare)."
    assert as_sent == "Pixels are sent as [3,224,224], since no shape is declared (shape)."
    lines = 'prepare = "siglip"\nshape = { pixels = "B,384,256,3" }'
    told = read(tmp_path, text.replace("[body]", f"{lines}\n[body]"))
    assert told.contract.inputs == (Input("pixels", "FP32", (384, 256, 3), "picture", "NHWC"),)
    assert told.contract.preparation == PRESETS["siglip"]
    assert told.contract.guesses == ()
    larger = read(tmp_path, text.replace("[body]", 'prepare = "clip-336"\n[body]'))
    assert larger.contract.inputs[0].shape == (3, 336, 336)
    (tmp_path / "own.toml").write_text('resize = "squash"\n')
    made = read(tmp_path, text.replace("[body]", 'prepare = "own.toml"\n[body]'))
    assert (made.contract.preparation.name, made.contract.preparation.resize) == ("own", "squash")


def test_a_url_that_the_server_fetches(tmp_path: Path) -> None:
    text = LEAST.replace('"$data_url"', '"http://pictures/1.jpg"') + "[ready]\npath = '/'\n"
    made = read(tmp_path, text.replace("[answer]", "fetched_by_server = true\n[answer]"))
    assert (made.payload, made.contract.inputs, made.contract.max_batch) == ("json", (), 1)
    assert made.settings["body"]["fetched_by_server"] is True


def test_a_triton_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "own.toml").write_text('resize = "squash"\n')
    made = read(
        tmp_path,
        """
        url = "triton+grpc://gpu:8001/siglip/versions/2"
        host = "siglip.example"
        prepare = "own.toml"
        output = "image_embeds"
        shape = { pixel_values = "B,3,384,384" }
        max_batch = 8
        tokenizer = "tokenizer.json"
        metrics = "http://gpu:8002"
        """,
    )
    assert (made.backend, made.protocol, made.model, made.version) == ("triton", "grpc", "siglip", "2")
    assert (made.authority, made.codec, made.space) == ("siglip.example", "", "siglip")
    assert made.contract == Contract(max_batch=8, tokenizer=str(tmp_path / "tokenizer.json"))
    asked = {"output": "image_embeds", "shape": {"pixel_values": "B,3,384,384"}}
    asked["prepare"] = str(tmp_path / "own.toml")
    assert made.settings == {"asked": asked, "metrics": "http://gpu:8002/metrics"}


CODEC = """
from users import Codec
class Mine(Codec):
    name, wire, path = "mine", "http", "/x"
    def prepare(self, images, indices, request_id=""): ...
    def vectors(self, answer): ...
"""


def test_a_codec_of_ones_own_needs_no_tables(tmp_path: Path) -> None:
    (tmp_path / "my_codec.py").write_text(CODEC)
    made = read(tmp_path, 'url = "http://gpu:1/x"\ncodec = "my_codec.py"\n')
    assert made.codec == str(tmp_path / "my_codec.py")
    assert len(made.codec_sha256) == 64
    assert (made.payload, made.contract.inputs, made.contract.max_batch) == ("jpeg", (JPEG,), 0)
    said = refused(tmp_path, 'url = "v2+grpc://gpu:1/m"\ncodec = "my_codec.py"\n')
    assert said == "field codec: my_codec.py is for http, and the url for grpc; give one that matches"
    for name, why in (("none.py", "the codec "), ("none", "there is no codec ")):
        said = refused(tmp_path, f'url = "v2+grpc://gpu:1/m"\ncodec = "{name}"\n')
        assert said.startswith(f"field codec: {why}")
    assert read(tmp_path, 'url = "triton+http://gpu:1/m"\ncodec = "v2-json"\n').codec == "v2-json"
    assert read(tmp_path, with_line('codec = "declared-http"')) == read(tmp_path, LEAST)
    said = refused(tmp_path, 'url = "http://gpu:1/x"\ncodec = "declared-http"')
    assert said.startswith("field body: is missing")


def protoset(folder: Path) -> None:
    """`t.p` of a service with one method: `Ask {bytes image = 1}` to `Told {repeated float values = 1}`."""
    of = FieldDescriptorProto
    file = FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    image = of(name="image", number=1, type=of.TYPE_BYTES, label=of.LABEL_OPTIONAL)
    values = of(name="values", number=1, type=of.TYPE_FLOAT, label=of.LABEL_REPEATED)
    for name, field in (("Ask", image), ("Told", values)):
        file.message_type.add(name=name).field.append(field)
    file.service.add(name="Tower").method.add(name="Embed", input_type=".t.Ask", output_type=".t.Told")
    (folder / "t.p").write_bytes(FileDescriptorSet(file=[file]).SerializeToString())


def test_a_method_of_grpc(tmp_path: Path) -> None:
    protoset(tmp_path)
    text = """
    url = "grpcs://gpu:9000"
    method = "t.Tower/Embed"
    protoset = "t.p"
    model = "clip"
    host = "clip.example"
    [body]
    message = { image = "$jpeg" }
    [answer]
    vectors = "values"
    """
    made = read(tmp_path, text)
    assert (made.backend, made.protocol, made.address, made.tls) == ("rpc", "grpc", "gpu:9000", True)
    assert (made.path, made.codec, made.payload) == ("/t.Tower/Embed", "declared-grpc", "jpeg")
    assert (made.space, made.authority, made.contract.max_batch) == ("clip", "clip.example", 1)
    images = ImageSet((b"one",), "test")
    assert codec_named(made.codec)(made).prepare(images, (0,)).body == b"\n\x03one"
    for old, new, said in (
        ("t.p", "none.p", "field protoset "),
        ('"values"', '"rows"', "field answer.vectors rows: there is no "),
        ("Embed", "Ask", "field method: there is no /t.Tower/Ask in"),
    ):
        assert refused(tmp_path, text.replace(old, new)).startswith(said)
    said = refused(tmp_path, text.replace('protoset = "t.p"', ""))
    assert said == "field protoset: describes what the method takes; give either a protoset or a proto"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "field url: is missing; give one such as http://127.0.0.1:7997/embeddings"),
        ("x = ", "is not TOML ("),
        ("url = 1", "field url: cannot be 1; give a text in quotes"),
        ('url = "gpu:1"', "field url: gpu:1 has no scheme that is known; give one of http"),
        ('url = "http://gpu:1/a b"', "field url: http://gpu:1/a b has a path that is none; give blanks"),
        ('url = "http://:1/a"', "field url: http://:1/a has no sound host and port; give them as in"),
        ('url = "http://me:pw@gpu:1/"', "field url: has a name or a password in it, which would be"),
        ('url = "http://me:p/w@gpu:1/"', "field url: has a name or a password in it, which would be"),
        ('url = "grpc://gpu:1/x"', "field url: grpc://gpu:1/x has a path, and gRPC has none; give what is c"),
        ('url = "http://gpu:1/x"', "field body: is missing; give what a request holds, such as json = "),
        ('url = "http://gpu:1/x"\nbody = { json = ["$text"] }', "field answer: is missing; give where its v"),
        (with_line('modle = "m"'), "field modle: is unknown here; give url, model"),
        ('url = "v2+http://gpu:1/m"\nmodel = "x"', "field model: is unknown here; give url, host"),
        (with_line("max_batch = 0"), "field max_batch: cannot be 0; give a whole number from 1 to 65536"),
        (with_line("max_batch = true"), "field max_batch: cannot be True; give a whole number from 1"),
        (with_line('computes = "no"'), "field computes: cannot be 'no'; give true or false"),
        *(
            (with_line(f"compression = {text}"), "field compression: cannot be ")
            for text in ('"gzip"', "[]", '["br"]', '["gzip", 3]')
        ),
        (with_line('host = "a b"'), "field host: cannot be 'a b'; give a host"),
        (with_line('prepare = "clip"'), "field prepare: needs $pixels, which the body does not have;"),
        ('url = "v2+http://gpu:1/m"\nprepare = "clop"', "field prepare: "),
        ('url = "v2+http://gpu:1/m"\nshape = { x = 3 }', "field shape: cannot be {'x': 3}; give a table of "),
        ('url = "v2+http://gpu:1/m"\ntokenizer = "none"', "field tokenizer: "),
        (with_line("max_batch = 4", "answer"), "field answer.max_batch: is unknown here; it goes above all "),
        (with_line('encoding = "lists"', "answer"), "field answer.encoding: cannot be 'lists'; give \"list"),
        (with_line("success = [500]", "answer"), "field answer.success: cannot be [500]; give a list of tho"),
        (LEAST.replace("data[].embedding", "data[x]"), "field answer.vectors: 'data[x]' is not a path; give"),
        (LEAST.replace("vectors =", "vector ="), "field answer.vector: is unknown here; give vectors, encod"),
        (LEAST.replace("vectors =", "order ="), "field answer.vectors: is missing; give the path of the vec"),
        (LEAST.replace("$data_url", "cat"), "field body.json: has no placeholder for a picture or a text;"),
        (LEAST.replace("$data_url", "http://x/y"), "field body.json.input[0]: has a URL, which the server w"),
        (LEAST.replace("$data_url", "$jpeg"), "field body.json.input[0]: has $jpeg in json, which cannot"),
        (LEAST.replace('["$data_url"]', '"$data_url"').replace("[body]", "max_batch = 2\n[body]"),
         "field body.json: nothing in it repeats for a batch of 2; put"),
        (with_line('raw = "$jpeg"', "body"), "field body: has json and raw; give exactly one of json, multi"),
        (with_line('message = { a = "$jpeg" }', "body"), "field body.message: is unknown here; give json"),
        (LEAST + '[ready]\npath = "health"', "field ready.path: cannot be 'health'; give "),
        (LEAST + '[times]\nheader = "a b"', "field times.header: cannot be 'a b'; give the name of a header"),
        (LEAST + '[times]\nheader = "a"\nheaders = { b = "queue ms" }', "field times: has header and header"),
        (LEAST + '[times]\nheaders = { a = "wait ms" }', "field times.headers.a: cannot be 'wait ms'; give "),
        (LEAST + '[times]\nheaders = { "a b" = "queue ms" }', "field times.headers.a b: is no header's name"),
        (LEAST + '[times]\nmetrics = { url = "http://gpu:1" }', "field times.metrics: is incomplete; give"),
        (LEAST + '[times]\nmetrics = { url = "http://a@gpu:1", queue = "q s" }', "field times.metrics.url: "),
        (LEAST + '[times]\nmetrics = { url = "http://gpu:1", queue = "q" }', "field times.metrics.queue: ca"),
        (LEAST + '[times]\nmetrics = { url = "http://gpu:1", waits = "q" }', "field times.metrics.waits: is"),
        (LEAST + '[headers]\nX-Tenant = "${NOT_SET}"', "field headers.X-Tenant: NOT_SET is not set, and the"),
        (LEAST + '[headers]\nX-Tenant = "$"', "field headers.X-Tenant: the header X-Tenant has a $ that"),
        (LEAST + '[headers]\nX-Api-Key = "s3cr3t-value"', "field headers.X-Api-Key: may be a secret, which "),
        (LEAST + '[headers]\nAuthorization = "Bearer s3cr3t-value"', "field headers.Authorization: may be a"),
        (LEAST + '[headers]\ncookie = "s3cr3t-value"', "field headers.cookie: may be a secret, which would "),
        (LEAST.replace('json = { input = ["$data_url"]', 'multipart = { a = "$jpeg"') + '[headers]\n'
         'Content-Type = "x"',
         "field headers.Content-Type: is set by the client itself; leave it out"),
        (LEAST + '[headers]\nTraceparent = "1"',
         "field headers.Traceparent: is set by the client itself; give --traceparent"),
        (LEAST + '[headers]\nContent-Length = "1"', "field headers.Content-Length: is set by the client"),
        (LEAST + '[headers]\nA = "1"\na = "2"', "field headers.A: is given twice; give it once"),
        (LEAST + "[headers]\nA = 1", "field headers: cannot be {'A': 1}; give a table of texts"),
        (LEAST.replace("http://gpu:7997/embeddings", "grpc://gpu:1").replace("json", "message"),
         "field method: is missing; give one such as \"package.Service/Method\""),
    ],
)  # fmt: skip
def test_bad_files(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


def test_a_deep_body_is_refused(tmp_path: Path) -> None:
    deep = "[" * 400 + '"$text"' + "]" * 400
    said = refused(tmp_path, LEAST.replace('["$data_url"]', deep).replace("[body]", "max_batch = 1\n[body]"))
    assert said == "field body.json: is nested more than 32 deep; give a body like that of a request"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.toml"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(UsageError, match=r"mine.toml: cannot be read \(.*\); give a TOML file, or a URL"):
        read_endpoint("mine", str(path), OPEN)


FIELDS = {
    "url": '"http://gpu:7997/x"', "model": '"m"', "host": '"h"', "space": '"s"', "server": '"o"',
    "max_batch": "1", "prepare": '"clip"', "stands_for": '"trt"', "computes": "true", "codec": '"embed"',
    "compression": '["gzip"]',
    "headers": '{ A = "1" }', "body": '{ json = ["$pixels"] }', "answer": '{ vectors = "[]" }',
    "ready": '{ path = "/" }', "times": '{ header = "X" }', "shape": '{ pixels = "3,8,8" }',
}  # fmt: skip
INNER = {
    "json": '["$text"]', "multipart": '{ a = "$jpeg" }', "raw": '"$jpeg"', "repeat": '"."',
    "fetched_by_server": "true", "vectors": '"[]"', "encoding": '"list"', "dtype": '"float32"',
    "dimension": "8", "order": '"[].i"', "success": "[200]", "path": '"/"', "header": '"X"',
    "headers": '{ a = "queue ms" }', "metrics": '{ url = "http://gpu:1", queue = "q s" }',
}  # fmt: skip
HEADS = [
    "",
    'url = "v2+grpc://gpu:1/m"\n[headers]',
    *(
        f'url = "http://gpu:1/x"\nbody.json = ["$text"]\nanswer.vectors = "[]"\n[{table}]'
        for table in ("ready", "times", "headers")
    ),
    'url = "http://gpu:1/x"\nanswer = { vectors = "[]" }\n[body]',
    'url = "http://gpu:1/x"\nbody = { json = ["$text"] }\n[answer]',
]


@pytest.mark.slow
@tried(900)
@given(bad_tomls(HEADS, FIELDS) | bad_tomls(HEADS, INNER))
def test_whatever_is_wrong_is_one_sentence(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bad.toml"
    path.write_bytes(text)
    try:
        read_endpoint("mine", str(path), OPEN)
    except UsageError as error:
        said = str(error)
    else:
        return
    assert said.startswith(f"--endpoint mine: {path}: ")
    assert is_clear(said)
    TALLY.refused("files", text)


@pytest.mark.slow
def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
