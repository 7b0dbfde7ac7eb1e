"""Runs a command line of AWS, many times a second when it is a program in Python.

Most of the second that a command takes is spent on reading the program, so a process that has done
that already is forked for each.
"""

import contextlib
import io
import multiprocessing
import os
import re
import subprocess

try:
    import awscli
    from awscli.clidriver import create_clidriver
except ImportError:  # a program of its own, or it belongs to another Python
    create_clidriver = None



def _quietly(argv):
    """Runs a command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = create_clidriver().main(argv)
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


# Much is read only when it is needed; this needs it, and calls nobody. Version 2 has threads then,
# and a process with threads must not be forked.
if create_clidriver and awscli.__version__.startswith("1."):
    _quietly(["sqs", "list-queues", "--generate-cli-skeleton"])

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["command"])


class Command:
    """The command line of AWS at a path, with an environment."""

    def __init__(self, path, environment):
        self.path, self.environment = path, environment
        _, out, err = self._run(["--version"])
        self.version = re.search(r"aws-cli/([0-9.]+)", out + err).group(1)

    def __call__(self, argv):
        """Runs it and returns the status, and what it has written to its two outputs."""
        if create_clidriver is None:
            return self._run(argv)
        here, there = _forks.Pipe()
        child = _forks.Process(target=_main, args=(argv, self.environment, there))
        child.start()
        there.close()
        answer = here.recv()
        child.join()
        return answer

    def _run(self, argv):
        done = subprocess.run([self.path, *argv], env=self.environment, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


def _main(argv, environment, answer):
    data = os.environ["AWS_DATA_PATH"]  # where the program has found itself
    os.environ.clear()
    os.environ.update(environment, AWS_DATA_PATH=data)
    answer.send(_quietly(argv))
