# SPDX-License-Identifier: Apache-2.0
"""Tests of the command ``shunt-controller run`` before it connects to switches."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

import shunt_controller
from shunt_controller.run.applications import APPLICATIONS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command until it ends."""
    command = [sys.executable, "-m", "shunt_controller", "run", *arguments]
    environment = dict(os.environ, PYTHONPATH=str(pathlib.Path(shunt_controller.__file__).parents[1]))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "run: name at least one application"),
        (["nothing"], "run: there is no application 'nothing'"),
        (["keyflow", "nothing"], "run: there is no application 'nothing'"),
        (["keyflow", "--width", "7"], "argument --width: Invalid Integer"),
        (["keyflow", "--lease", "0"], "argument --lease: Invalid Float"),
        (["keyflow", "--lldp-period", "0"], "argument --lldp-period: Invalid Float"),
    ],
    ids=["none", "unknown", "one unknown", "width", "lease", "period"],
)
def test_wrong_usage_is_explained(arguments, sentence):
    ended = run(*arguments)
    assert ended.returncode == 2 and sentence in ended.stderr.replace("_", "-"), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_policy_that_is_missing_is_explained():
    ended = run("low-latency", "--policy", "none", "--ofp-tcp-listen-port", "0")
    assert ended.returncode == 1 and "run: none: the file cannot be read: No such file or directory\n" in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_in_use_is_explained():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = run("keyflow", "--ofp-tcp-listen-port", str(port))
    assert ended.returncode == 1
    assert ended.stderr == f"run: cannot listen at 127.0.0.1:{port}: Address already in use\n"


def test_help_lists_the_applications():
    ended = run("--help")
    assert ended.returncode == 0 and all(name in ended.stdout for name in APPLICATIONS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["keyflow", "--etcd", "localhost"], "run: --etcd: 'localhost' is no endpoint of etcd; one is http://127.0.0.1:2379, for example\n"),
        (
            ["keyflow", "low-latency", "--etcd", "http://127.0.0.1:1", "--policy", "none"],
            "run: low-latency cannot be used with --etcd; start it as a controller of its own\n",
        ),
    ],
)
def test_wrong_use_of_several_controllers_is_explained(arguments, sentence):
    ended = run(*arguments, "--ofp-tcp-listen-port", "0")
    assert ended.returncode == 1 and ended.stderr.endswith(sentence) and "Traceback" not in ended.stderr, ended.stderr
