# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""A test target for a file that pytest runs."""

def pytest_test(name, srcs, deps = [], data = [], timeout = "long", **kwargs):
    """Declares a py_test that hands its sources to pytest.

    Args:
      name: The stem of the test file, or all_tests.
      srcs: The test files.
      deps: The libraries that it imports, each conftest.py included.
      data: What it reads.
      timeout: Bazel's limit for all of them; pytest limits each test.
      **kwargs: Other attributes of py_test.
    """
    native.py_test(
        name = name,
        timeout = timeout,
        srcs = srcs + ["//build_defs:pytest_main.py"],
        main = "//build_defs:pytest_main.py",
        args = ["$(location %s)" % src for src in srcs],
        data = srcs + data + ["//:pyproject.toml"],
        legacy_create_init = 0,
        deps = deps,
        **kwargs
    )
