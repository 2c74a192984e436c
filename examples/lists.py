# SPDX-License-Identifier: BSD-3-Clause
# A list that is twice as long in each version.
import numpy as np

import perdure

with perdure.open("lists") as pool:
    known = {each.name for each in pool.arrays()}
    x = pool.array("x") if "x" in known else pool.array("x", 10)
    pool.restart()
    x.resize(x.shape[0] * 2)  # elements stay, new ones are zero
    x.working[:] = np.arange(x.shape[0])
    print(x.shape[0], "elements in version", pool.commit())
