"""The little that the checks of all SDKs for Python share: entities of their own, a deadline each, and a plain report."""

import itertools
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, TimeoutError as Late

DEADLINE = 60
AT_ONCE = 16

_checks = []
_serial = itertools.count(1)


def check(name):
    """Adds a check, which passes when it ends without raising."""

    def add(fn):
        _checks.append((name, fn))
        return fn

    return add


def unique(prefix):
    """Makes a name that nothing else on this server has."""
    return f"{prefix}-python-{os.getpid()}-{next(_serial)}"


def equal(got, want, what="value"):
    if got != want:
        raise AssertionError(f"{what}: expected {want!r}, got {got!r}")


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def fails(kind, fn, *args, **kwargs):
    """Asserts that fn raises an error of the kind, and returns it."""
    try:
        got = fn(*args, **kwargs)
    except kind as err:
        return err
    except Exception as err:
        raise AssertionError(f"expected {kind.__name__}, got {type(err).__name__}: {err}") from err
    raise AssertionError(f"expected {kind.__name__}, got {got!r}")


def eventually(fn, seconds=15):
    """Runs fn until it no longer raises."""
    end = time.monotonic() + seconds
    while True:
        try:
            return fn()
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _scenario():
    """Returns the directory of the program whose checks these are."""
    return os.path.dirname(os.path.abspath(sys.argv[0]))


def _limited(fn):
    outcome = []

    def body():
        try:
            fn()
            outcome.append(None)
        except BaseException as err:  # reported by the caller
            outcome.append(err)

    t = threading.Thread(target=body, daemon=True)
    t.start()
    t.join(DEADLINE)
    if not outcome:
        raise Late(f"expected an end within {DEADLINE} s, got none")
    if outcome[0] is not None:
        raise outcome[0]


def run(language, only=None, summary=None, at_once=AT_ONCE):
    """Runs every check whose name contains only, prints each outcome and a summary, and says whether all passed."""
    lock = threading.Lock()
    passed = failed = 0

    def one(item):
        nonlocal passed, failed
        name, fn = item
        start = time.monotonic()
        try:
            _limited(fn)
            ok, line = True, f"ok    {language} {name} ({time.monotonic() - start:.1f} s)"
        except Exception as err:
            at = [f for f in traceback.extract_tb(err.__traceback__) if os.path.dirname(f.filename) == _scenario()]
            where = f" ({os.path.basename(at[-1].filename)}:{at[-1].lineno})" if at else ""
            ok, line = False, f"FAIL  {language} {name}: {type(err).__name__}: {err}{where}"
            if os.environ.get("DLQ_INTEROP_TRACE"):
                line += "\n" + "".join(traceback.format_exception(err))
        with lock:
            print(line, flush=True)
            passed += ok
            failed += not ok

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, [c for c in _checks if not only or only in c[0]]))
    if summary:
        print(f"{language}: {summary()}")
    print(f"{language}: {passed} passed, {failed} failed", flush=True)
    return failed == 0
