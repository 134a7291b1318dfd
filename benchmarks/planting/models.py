"""Set-ups whose cause is in the models: a slow step or one that heats up, a lock, batches, one slow size."""

from functools import partial

from benchmarks.planting.models_ensemble import ENSEMBLE, HEATING, SLOW, ensemble, locked
from benchmarks.planting.setup import Setup, emulated

ENSEMBLE_FILE = f"""url = "triton+http://{{address}}/{ENSEMBLE}"
computes = false
"""

SETUPS = (
    # 20 ms an image in one instance: 50 images a second, at which the model executes a third of the time.
    Setup(
        "decode step with one instance", "server-preprocess", "decoding", (), users=8,
        front=partial(ensemble, "7+0", SLOW), file=ENSEMBLE_FILE, said=("decode_jpeg",),
    ),
    # 25 to 50 requests a second for 20 s, of which the warm-up takes some, and then 12.
    Setup(
        "a decoder that heats up", "server-preprocess", "heating", (), users=2, study=("--seconds", "40"),
        front=partial(ensemble, "1+0", HEATING), file=ENSEMBLE_FILE, caveats=("regime-change",),
    ),
    # Free instances would give 148 images a second; one alone gives 70, and the lock allows 87.
    Setup(
        "two instances that share a lock", "offered-load", "emulated-http", (), front=locked,
        more=((8, "server-compute"),),
    ),
    # An execution takes as long for 32 images as for one, and one after another has what waits meanwhile.
    Setup(
        "flat batch curve", "batches-not-full", "emulated-http", emulated("300+0"), users=4,
        more=((16, "batches-not-full"), (64, "batches-not-full")),
    ),
    Setup("one slow shape", "slow-shape", "emulated-http", emulated("5+0,3:300"), users=7),
)  # fmt: skip
