"""What bench/jax_programs.py measures: programs of JAX, lowered to linalg, on every backend."""
