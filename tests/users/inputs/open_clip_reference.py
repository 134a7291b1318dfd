"""Run open_clip's own transform over the pictures of a folder; a process of its own, since it imports torch.

python open_clip_reference.py FOLDER OUT.npz
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from server.models.clip import import_open_clip

image_transform = import_open_clip().transform.image_transform
transform = image_transform(
    224, is_train=False, mean=(0.48145466, 0.4578275, 0.40821073), std=(0.26862954, 0.26130258, 0.27577711)
)
folder, out = Path(sys.argv[1]), sys.argv[2]
np.savez(out, **{path.stem: transform(Image.open(path)).numpy() for path in sorted(folder.iterdir())})
