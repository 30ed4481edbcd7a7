"""All-reduce by JAX on gloo."""

import os

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
from measure import RANK, SIZES, WORLD, measure, runs

jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", WORLD, RANK)

import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

mesh = Mesh(jax.devices(), ("rank",))
split = NamedSharding(mesh, PartitionSpec("rank"))
total = jax.jit(
    jax.shard_map(lambda x: jax.lax.psum(x, "rank"), mesh=mesh, in_specs=PartitionSpec("rank"), out_specs=PartitionSpec())
)
for size in SIZES:
    x = jax.make_array_from_process_local_data(split, jnp.zeros(size // 4, jnp.float32))
    measure(f"all_reduce/{size}", "-", *runs(size), lambda: total(x).block_until_ready())
