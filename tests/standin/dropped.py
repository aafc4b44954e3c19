"""``dropped.py ARTIFACT COPY KERNELS BACKEND``: threads that launch on shared arrays and drop streams while others ask
for what was on them, on a stand-in driver. Prints "right", or fails."""

import json
import random
import sys
import threading
import time

import numpy as np
from stage import backend, open_driver, open_library

library = open_library()
library.use(backend)
open_driver(library)
kernel = library.kernels.saxpy_kernel
arrays = [library.device.zeros(1000, np.float32) for _ in range(4)]
streams = [library.stream() for _ in range(3)]
wrong: list[object] = []
END = time.monotonic() + 1.5


def work(seed: int) -> None:
    choose = random.Random(seed)
    try:
        while time.monotonic() < END:
            if choose.random() < 0.3:
                streams[choose.randrange(3)] = library.stream()
            else:
                kernel[4, 256, choose.choice(streams)](choose.choice(arrays), choose.choice(arrays), 0)
    except Exception as error:
        wrong.append(error)


sys.setswitchinterval(1e-5)
sys.unraisablehook = lambda told: wrong.append(told.exc_value)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong[:3]
print(json.dumps("right"))
