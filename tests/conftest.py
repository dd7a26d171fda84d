"""Settings of all tests, and their order."""

import os

# Threads that wait sleep. Tests run side by side and have more threads than there are cores: a thread that spins for
# another one takes the core from it, and small operations of torch cost many times their work. OpenMP reads this when
# torch loads it, so nothing before may import torch.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Files with tests of many seconds come first, so that no worker of pytest-xdist begins such a test when the others
# have nothing left to do.
LONG = ("test_real_tasks.py", "test_spread_layers.py", "test_real_graphs.py", "test_parallel.py", "test_json.py",
        "test_doctor_measure.py", "test_study_command.py", "test_dlrm_example.py", "test_sampled_accuracy.py",
        "test_cooperative_batches.py", "test_embedding_bag.py", "test_parallel_example.py", "test_trials.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
