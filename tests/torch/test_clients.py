# SPDX-License-Identifier: BSD-3-Clause
"""What is built on torch.distributed: trained in parallel as in one process."""

import clients
import pytest
import ranks


def run(size, function, *arguments):
    return ranks.team(size).run(function, *arguments)


@pytest.mark.parametrize("how", clients.DDP_HOOKS)
def test_ddp_hooks(how):
    run(2, clients.ddp, how)


@pytest.mark.parametrize("option", ["static_graph", "gradient_as_bucket_view", "buckets"])
def test_ddp_options(option):
    run(3, clients.ddp_option, option)


def test_ddp_refuses_bf16_by_name():
    run(2, clients.ddp_bf16)


def test_ddp_hooks_that_need_not_be_exact():
    run(2, clients.ddp_power_sgd)


def test_ddp_no_sync():
    run(2, clients.ddp_no_sync)


def test_ddp_unused_parameters():
    run(2, clients.ddp_unused)


def test_ddp_uneven_inputs():
    run(3, clients.ddp_join)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("divide", [None, 3.0])
@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
def test_fsdp2(size, precision, divide):
    run(size, clients.fsdp2, precision, divide)


def test_fsdp2_hybrid():
    run(4, clients.fsdp2_hybrid)


@pytest.mark.parametrize("shape", [(8, 4), (5, 7), (1, 3), (6, 3)])
def test_dtensor_redistributes(shape):
    run(4, clients.redistribute, shape)


def test_tensor_parallel():
    run(2, clients.tensor_parallel)


def test_pipeline_1f1b():
    run(2, clients.pipeline)


def test_pipeline_of_four():
    run(4, clients.pipeline)


def test_checkpoint(tmp_path):
    run(4, clients.checkpoint, str(tmp_path))


@pytest.mark.parametrize("size", [2, 3])
def test_zero_redundancy_optimizer(size):
    run(size, clients.zero)


def test_objects():
    run(3, clients.objects)


def test_functions_with_gradients():
    run(3, clients.functions_with_gradients)


def test_sync_batch_norm_refuses_cpu():
    run(2, clients.sync_batch_norm)


def test_groups_of_every_kind():
    run(4, clients.groups)


def test_groups_of_members_only():
    run(4, clients.member_groups)


def test_meshes():
    run(4, clients.meshes)
