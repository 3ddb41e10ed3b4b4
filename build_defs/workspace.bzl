# Copyright 2026 The tfplugin Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sets the workspace up without a download."""

# A workspace of Python alone still makes Bazel 4 fetch wrappers of its C++,
# Java and proto rules. Repositories of the same names that hand out the rules
# built into Bazel take their place.
_BUILT_IN = {
    "rules_cc": ("cc", [
        "cc_binary",
        "cc_import",
        "cc_library",
        "cc_proto_library",
        "cc_test",
        "cc_toolchain",
        "cc_toolchain_suite",
        "objc_library",
    ]),
    "rules_java": ("java", [
        "java_binary",
        "java_import",
        "java_library",
        "java_package_configuration",
        "java_plugin",
        "java_proto_library",
        "java_runtime",
        "java_test",
        "java_toolchain",
    ]),
    "rules_proto": ("proto", ["proto_library"]),
}

def _built_in_rules_impl(ctx):
    lines = ["{0} = native.{0}".format(rule) for rule in ctx.attr.rules]
    ctx.file("WORKSPACE", "")
    ctx.file(ctx.attr.package + "/BUILD", "")
    ctx.file(ctx.attr.package + "/defs.bzl", "\n".join(lines) + "\n")

_built_in_rules = repository_rule(
    implementation = _built_in_rules_impl,
    attrs = {
        "package": attr.string(mandatory = True),
        "rules": attr.string_list(mandatory = True),
    },
)

_COVERAGE_BUILD = """\
package(default_visibility = ["//visibility:public"])

[filegroup(
    name = name,
    srcs = ["unavailable.sh"],
) for name in ["coverage_report_generator", "lcov_merger"]]
"""

def _coverage_stub_impl(ctx):
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", _COVERAGE_BUILD)
    ctx.file(
        "unavailable.sh",
        "#!/bin/sh\necho 'coverage tools would have to be downloaded' >&2\nexit 1\n",
    )

_coverage_stub = repository_rule(implementation = _coverage_stub_impl)

_PYTHON_BUILD = """\
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
    {stub_shebang}
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

# What the targets import without building it.
_REQUIRED = ["absl", "numpy", "pytest", "pytest_timeout", "setuptools", "tensorflow"]

_CHECK = """\
import importlib.util as u, sys
missing = [name for name in sys.argv[1:] if not u.find_spec(name)]
sys.exit('missing: ' + ', '.join(missing)) if missing else print(sys.executable)
"""

def _interpreter(ctx):
    """The caller's choice, the active virtual environment, .venv, python3."""
    environ = ctx.os.environ
    if environ.get("PYTHON_BIN_PATH"):
        return environ["PYTHON_BIN_PATH"]
    if environ.get("VIRTUAL_ENV"):
        return environ["VIRTUAL_ENV"] + "/bin/python"
    own = ctx.path(Label("//:WORKSPACE")).dirname.get_child(".venv").get_child("bin").get_child("python")
    return own if own.exists else ctx.which("python3")

def _local_python_impl(ctx):
    remedy = "Run `make venv`, or set PYTHON_BIN_PATH to an interpreter that has what requirements/tensorflow-2.15.txt lists."
    python = _interpreter(ctx)
    if not python:
        fail("There is no python3 on PATH. " + remedy)
    result = ctx.execute([python, "-c", _CHECK] + _REQUIRED)
    if result.return_code:
        fail("%s does not serve: %s %s" % (python, result.stderr.strip(), remedy))
    python = result.stdout.strip()
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", _PYTHON_BUILD.format(
        python = python,
        stub_shebang = "stub_shebang = \"#!%s\"," % python if ctx.attr.stub_shebang else "",
    ))

_local_python = repository_rule(
    implementation = _local_python_impl,
    attrs = {"stub_shebang": attr.bool(default = True)},
    environ = ["PATH", "PYTHON_BIN_PATH", "VIRTUAL_ENV"],
    local = True,
)

def tfplugin_workspace():
    """Declares the interpreter, and the stand-ins that old Bazels need."""

    # Debian's build of 4.2.3 does not tell its version.
    version = native.bazel_version
    major = int(version.split(".")[0]) if version else 4
    if major < 5:
        for name, (package, rules) in _BUILT_IN.items():
            _built_in_rules(name = name, package = package, rules = rules)
        _coverage_stub(name = "remote_coverage_tools")
    _local_python(name = "local_python", stub_shebang = major >= 4)
    native.register_toolchains("@local_python//:toolchain")
