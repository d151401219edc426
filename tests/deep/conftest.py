"""Compile quickly rather than well: these tests run few steps of many programs."""

import jax

jax.config.update("jax_disable_most_optimizations", True)
