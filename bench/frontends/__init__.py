"""What bench/frontends.py measures: programs of JAX, lowered to linalg, on every backend."""
