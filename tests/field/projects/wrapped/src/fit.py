"""The program behind the wrapper."""

import random
import sys

seed, lr = int(sys.argv[1]), float(sys.argv[2])
draws = random.Random(seed)
score = sum(lr * (1 + draws.random()) for _ in range(20))
print(f"final score: {score}")
