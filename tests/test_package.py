"""The package as it is installed: what importing it loads, what it exports, what the wheel holds."""

import ast
import importlib
import importlib.metadata
import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import cstormpy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(cstormpy.__file__).resolve().parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

only_checkout = pytest.mark.skipif(PACKAGE.parent != ROOT, reason="looks at the folders of a checkout")
only_wheel = pytest.mark.skipif(PACKAGE.parent == ROOT, reason="looks at what a wheel installed")


def start(*arguments):
    """Run a fresh interpreter that finds the package under test, and wait for its end."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def run(code):
    """Run code in a fresh interpreter; return what it prints."""
    done = start("-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    heavy = ("numpy", "numba", "llvmlite", "scipy", "bdsim", "matplotlib", "pyqtgraph", "PySide6")
    loaded = run("import sys, cstormpy; dir(cstormpy); print(*sys.modules)").split()
    assert "cstormpy" in loaded
    assert [name for name in loaded if name.split(".")[0] in heavy] == []


def test_describing_a_mechanism_compiles_nothing():
    loaded = run("import sys, cstormpy as cs; cs.library.acrobot(), cs.lie; print(*sys.modules)").split()
    assert "cstormpy.mechanism" in loaded
    assert [name for name in loaded if name.split(".")[0] in ("numba", "scipy", "bdsim", "matplotlib")] == []


def test_every_exported_name_resolves():
    for name in cstormpy.__all__:
        assert getattr(cstormpy, name) is not None


@pytest.mark.parametrize("module", [cstormpy, cstormpy.library, cstormpy.measures], ids=lambda module: module.__name__)
def test_completion_offers_what_is_exported_alone(module):
    assert dir(module) == sorted(module.__all__)


def test_exported_names_are_those_of_their_homes():
    for name, home in cstormpy._HOMES.items():
        module = importlib.import_module(f"cstormpy.{home}")
        assert getattr(cstormpy, name) is getattr(module, name)
        assert name in module.__all__


def test_names_for_type_checkers_are_those_at_run_time():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    stated = {
        alias.name: node.module.removeprefix("cstormpy").lstrip(".")
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "cstormpy"
        for alias in node.names
    }
    # A type checker finds the two packages beside this one only where they are installed.
    submodules = {name: "" for name in cstormpy._SUBMODULES if name not in cstormpy._BESIDE}
    assert stated == {**cstormpy._HOMES, **submodules}


def test_unknown_name_is_an_attribute_error_with_the_nearest_spelling():
    with pytest.raises(AttributeError, match="has no attribute 'Mechanisms'"):
        cstormpy.Mechanisms  # noqa: B018
    told = start("-c", "import cstormpy; cstormpy.Mechanisms").stderr
    assert re.search(r"Did you mean:? '\.?Mechanism'", told), told  # with the dot from Python 3.15 on


def test_version_is_one():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, flags=re.MULTILINE).group(1) == cstormpy.__version__


# --- packages: the list in pyproject.toml, the folders, the wheel


def folders_with_code(top):
    """Return all packages under a folder, as dotted names that begin with the folder's own."""
    return {".".join(init.parent.relative_to(top.parent).parts) for init in top.rglob("__init__.py")}


@only_checkout
def test_listed_packages_are_the_folders():
    beside = {f"cstormpy.{name}" for top in cstormpy._BESIDE for name in folders_with_code(ROOT / top)}
    assert set(SETTINGS["tool"]["setuptools"]["packages"]) == folders_with_code(PACKAGE) | beside


@only_checkout
def test_every_folder_with_python_files_is_a_package():
    tops = [PACKAGE, *(ROOT / name for name in cstormpy._BESIDE)]
    bare = {source.parent for top in tops for source in top.rglob("*.py")}
    assert [str(folder) for folder in bare if not (folder / "__init__.py").is_file()] == []


@only_checkout
def test_no_layers_may_import_each_other():
    """Packages that share a row of the layers are independent: "|", where ":" would let them form a circle."""
    (contract,) = (each for each in SETTINGS["tool"]["importlinter"]["contracts"] if each["id"] == "layers")
    assert [row for row in contract["layers"] if ":" in row] == []
    rows = {name: k for k, row in enumerate(contract["layers"]) for name in row.split(" | ")}
    assert rows["mechanism"] < rows["sensitivity"] < rows["dynamics"] < rows["linkage"]


@only_wheel
def test_wheel_holds_the_listed_packages():
    assert folders_with_code(PACKAGE) == set(SETTINGS["tool"]["setuptools"]["packages"])
    assert (PACKAGE / "py.typed").is_file()


@only_wheel
def test_wheel_installs_one_top_level_name_and_the_license():
    files = importlib.metadata.files("cstormpy")
    tops = {file.parts[0] for file in files if not file.parts[0].endswith(".dist-info")}
    # the command stands in a folder of programs, outside that of the packages
    assert tops <= {"cstormpy", ".."}
    assert {file.stem for file in files if file.parts[0] == ".."} == {"cstorm"}
    assert any(file.name == "LICENSE" for file in files)
    assert importlib.metadata.version("cstormpy") == cstormpy.__version__


# --- the source distribution, and what a package index shows


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory):
    """Build the source distribution from a copy of the checkout, and unpack it elsewhere."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("sdist")
    unwanted = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist")
    shutil.copytree(ROOT, folder / "checkout", ignore=unwanted)
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder / "checkout", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with tarfile.open(folder / f"cstormpy-{cstormpy.__version__}.tar.gz") as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    shutil.rmtree(folder / "checkout")
    return folder / f"cstormpy-{cstormpy.__version__}"


@only_checkout
@pytest.mark.slow
def test_the_suite_collects_and_runs_from_the_source_distribution(source_distribution):
    """Nine support modules of the tests were missing from it, and the examples, the changelog and the citation."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}

    def pytest_there(*arguments):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=source_distribution, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        return done.stdout

    assert re.search(r"^\d{3,} tests collected", pytest_there("--collect-only", "tests"), flags=re.MULTILINE)
    said = pytest_there("tests/test_trajectory_files.py", "tests/test_readme.py", "tests/test_mechanism_json.py")
    assert re.search(r"^\d{2,} passed", said, flags=re.MULTILINE), said
    assert (source_distribution / "CHANGELOG.md").is_file() and (source_distribution / "CITATION.cff").is_file()


@only_checkout
def test_a_package_index_is_shown_nothing_that_it_cannot_resolve(source_distribution):
    """The pictures of the README have relative paths, which show in the repository only."""
    information = HeaderParser().parsestr((source_distribution / "PKG-INFO").read_text(encoding="utf-8"))
    description = information.get_payload()
    assert description.lstrip().startswith("# cstormpy") and "## Where things are" in description
    assert [target for target in re.findall(r"\]\(([^)\s]+)\)", description) if "://" not in target] == []
    assert "![" not in description and "[CHANGELOG.md]" not in description and "CHANGELOG.md" in description
    (url,) = information.get_all("Project-URL")
    doi = re.search(r"doi: (.+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8")).group(1)
    assert url.endswith(f", https://doi.org/{doi}")


def test_the_base_install_needs_no_library_of_windows():
    """Without Qt pyqtgraph cannot even be imported; both come with the extra "live"."""
    project = SETTINGS["project"]
    named = [re.match(r"[\w-]+", requirement).group() for requirement in project["dependencies"]]
    assert not {"pyqtgraph", "PySide6-Essentials"} & set(named)
    live = [re.match(r"[\w-]+", requirement).group() for requirement in project["optional-dependencies"]["live"]]
    assert set(live) == {"PySide6-Essentials", "pyqtgraph"}


@pytest.mark.parametrize("name", ["Simulation", "compare"])
def test_the_first_import_is_silent_about_the_code_of_others(name, tmp_path):
    """Python 3.12 and later warn of escapes in a dependency, when they compile it at the first import."""
    package = tmp_path / "bdsim_with_escapes"
    package.mkdir()
    find = importlib.util.find_spec("bdsim").submodule_search_locations[0]
    (package / "bdsim").mkdir()
    source = Path(find, "__init__.py").read_text(encoding="utf-8")
    (package / "bdsim" / "__init__.py").write_text(
        f"__path__.append({str(find)!r})\nimport warnings\n"
        f"warnings.warn('invalid escape sequence', SyntaxWarning, stacklevel=1)\n{source}"
    )
    code = f"import sys; sys.path.insert(0, {str(package)!r}); import cstormpy; cstormpy.{name}; import bdsim"
    code = f"{code}; print(bdsim.__file__); from cstormpy.doctor import look; look()"
    done = start("-W", "always", "-c", code)
    assert done.returncode == 0 and str(package) in done.stdout, done.stderr
    assert "SyntaxWarning" not in done.stderr


# --- blocks and diagrams: beside the package in a checkout, inside it once installed


@pytest.mark.parametrize("name", cstormpy._BESIDE)
def test_packages_beside_are_importable_lazily(name):
    code = f"""
import sys, cstormpy
assert "cstormpy.{name}" not in sys.modules
import cstormpy.{name} as module
assert module is cstormpy.{name} is sys.modules["cstormpy.{name}"]
print(module.__name__, module.__spec__.name, module.__package__, module.__file__)
"""
    *names, file = run(code).split(maxsplit=3)
    assert names == [f"cstormpy.{name}"] * 3
    inside = PACKAGE / name / "__init__.py"
    assert Path(file) == (inside if inside.exists() else ROOT / name / "__init__.py")


def test_nothing_else_beside_the_package_is_part_of_it():
    beside = {path.stem for path in ROOT.iterdir() if path.is_dir() or path.suffix == ".py"}
    beside = {name for name in beside if name.isidentifier()} - {*cstormpy._BESIDE, "cstormpy"}
    assert "tests" in beside
    code = f"""
import importlib.util, cstormpy
print(*[name for name in {sorted(beside)} if importlib.util.find_spec("cstormpy." + name)])
"""
    assert run(code) == ""


def test_blocks_refuse_another_name():
    source = Path(importlib.util.find_spec("cstormpy.blocks").origin)
    spec = importlib.util.spec_from_file_location("blocks", source)
    with pytest.raises(ImportError, match=r"not as 'blocks': import cstormpy\.blocks"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_finder_is_not_needed_where_the_package_holds_its_blocks():
    registered = run("import sys, cstormpy; print(sum(f is cstormpy._CheckoutFinder for f in sys.meta_path))")
    assert registered == ("0" if (PACKAGE / "blocks").is_dir() else "1")


def test_reload_keeps_one_finder_and_all_names():
    code = """
import importlib, sys, cstormpy
cstormpy.Mechanism, cstormpy.blocks
finders = len(sys.meta_path)
for _ in range(3):
    importlib.reload(cstormpy)
    importlib.reload(cstormpy.blocks)
assert len(sys.meta_path) == finders
import cstormpy.diagrams
print(cstormpy.Mechanism.__name__, cstormpy.diagrams.__name__)
"""
    assert run(code) == "Mechanism cstormpy.diagrams"


@only_checkout
def test_finder_serves_a_module_inside_and_a_pickle_of_its_class(tmp_path):
    copy = make_checkout(tmp_path / "first")
    (copy / "blocks" / "sample.py").write_text("class Sample:\n    pass\n")
    pickled = run_in(copy, "import pickle, cstormpy.blocks.sample as s; print(pickle.dumps(s.Sample()).hex())")
    assert b"cstormpy.blocks.sample" in bytes.fromhex(pickled)
    load = f"import pickle; print(type(pickle.loads(bytes.fromhex({pickled!r}))))"
    assert run_in(copy, load) == "<class 'cstormpy.blocks.sample.Sample'>"


@only_checkout
def test_finder_serves_only_a_checkout(tmp_path):
    copy = make_checkout(tmp_path / "first")
    (copy / "pyproject.toml").unlink()
    assert run_in(copy, "import importlib.util, cstormpy; print(importlib.util.find_spec('cstormpy.blocks'))") == "None"


@only_checkout
def test_package_inside_wins_over_the_folder_beside(tmp_path):
    copy = make_checkout(tmp_path / "first")
    (copy / "cstormpy" / "blocks").mkdir()
    (copy / "cstormpy" / "blocks" / "__init__.py").write_text("inside = True\n")
    assert run_in(copy, "import cstormpy.blocks; print(cstormpy.blocks.inside)") == "True"


@only_checkout
def test_new_processes_find_the_blocks(tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(
        "import multiprocessing as mp\n"
        "def name(_):\n"
        "    import cstormpy.blocks\n"
        "    return cstormpy.blocks.__name__\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(name, [0]))\n"
    )
    done = start(str(script))
    assert done.stdout == "['cstormpy.blocks']\n", done.stderr


def make_checkout(folder):
    """Write the least that is a checkout: two packages' __init__.py, the two folders beside it, pyproject.toml."""
    (folder / "cstormpy").mkdir(parents=True)
    (folder / "cstormpy" / "__init__.py").write_bytes((PACKAGE / "__init__.py").read_bytes())
    for name in cstormpy._BESIDE:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_bytes((ROOT / name / "__init__.py").read_bytes())
    (folder / "cstormpy" / "simulation").mkdir()
    (folder / "cstormpy" / "simulation" / "__init__.py").touch()
    (folder / "pyproject.toml").write_text("")
    return folder


def run_in(checkout, code):
    """Run code in a fresh interpreter that finds the package of another checkout."""
    return run(f"import sys; sys.path.insert(0, {str(checkout)!r})\n{code}")


def test_mechanism_survives_a_pickle_under_the_name_it_is_exported_by():
    mech = cstormpy.library.acrobot()
    again = pickle.loads(pickle.dumps(mech))
    assert type(again) is cstormpy.Mechanism
    assert again == mech
