"""Test a module that is loaded when it is first used, in a process of its own: it changes what is loaded."""

import subprocess
import sys

import pytest

from makewhole.lazy_import import loaded_at_first_use

pytestmark = pytest.mark.unit


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_is_loaded_when_it_is_used_and_is_the_same_in_every_place_then() -> None:
    program = """if True:
        import sys
        from makewhole.lazy_import import loaded_at_first_use
        with loaded_at_first_use("xml.dom"):
            from xml import dom
        print("xml.dom.domreg" in sys.modules)
        import xml.dom as again
        print(again is dom, dom.Node.ELEMENT_NODE, "xml.dom.domreg" in sys.modules, type(dom).__name__)
    """
    assert run(program) == "False\nTrue 1 True module\n"


def test_a_module_that_is_loaded_stays_as_it_is() -> None:
    program = """if True:
        import xml.dom as loaded
        from makewhole.lazy_import import loaded_at_first_use
        with loaded_at_first_use("xml.dom"):
            import xml.dom
        print(xml.dom is loaded)
    """
    assert run(program) == "True\n"


def test_a_module_that_is_not_there_is_none_of_ours() -> None:
    with loaded_at_first_use("xml.nowhere"):
        import xml
    assert not hasattr(xml, "nowhere")


def test_a_substitute_loads_its_module_when_something_of_it_is_used_and_leaves_no_trace() -> None:
    program = """if True:
        import sys
        from makewhole.lazy_import import substituted
        with substituted("colorsys"):
            import colorsys as taken
        print("colorsys" in sys.modules)
        print(taken.hls_to_rgb(0.5, 0.5, 0), "colorsys" in sys.modules)
    """
    assert run(program) == "False\n(0.5, 0.5, 0.5) True\n"


def test_a_module_that_is_loaded_has_no_substitute() -> None:
    program = """if True:
        import colorsys as loaded, sys
        from makewhole.lazy_import import substituted
        with substituted("colorsys"):
            import colorsys
        print(colorsys is loaded, sys.modules["colorsys"] is loaded)
    """
    assert run(program) == "True True\n"


def test_a_substitute_has_nothing_that_its_module_has_not() -> None:
    program = """if True:
        from makewhole.lazy_import import substituted
        with substituted("colorsys"):
            import colorsys as taken
            print(hasattr(taken, "hls_to_rgb"))
        print(hasattr(taken, "nothing"))
    """
    assert run(program) == "False\nFalse\n"


def test_a_module_that_is_left_out_is_so_for_one_thread_and_within_the_block() -> None:
    program = """if True:
        import sys, threading
        from makewhole.lazy_import import absent
        def tell(name):
            try:
                __import__(name)
                print(name)
            except ModuleNotFoundError as error:
                print(error)
        import xml.dom
        with absent("colorsys", "xml"):
            tell("colorsys")
            tell("xml.sax")
            tell("xml.dom")
            other = threading.Thread(target=tell, args=("colorsys",))
            other.start()
            other.join()
        tell("xml.sax")
    """
    left_out = "colorsys is left out\nxml.sax is left out\n"
    assert run(program) == f"{left_out}xml.dom\ncolorsys\nxml.sax\n"
