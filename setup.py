"""The part of the build that pyproject.toml cannot say: the kernel's libraries, which are optional (workers/native)."""

import importlib.util
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

NATIVE = Path("workers", "native")
spec = importlib.util.spec_from_file_location("kernel_build", NATIVE / "build.py")
recipe = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipe)


class BuildKernel(build_ext):
    """Builds plain shared libraries, each with its record beside it; what cannot be built is a warning."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.failed = []  # widths

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = True  # a width for each core

    def get_ext_filename(self, fullname: str) -> str:
        *folders, width = fullname.split(".")
        return str(Path(*folders, recipe.library(width)))

    def build_extension(self, ext: Extension) -> None:
        width = ext.name.rpartition(".")[2]
        folder = Path(self.get_ext_fullpath(ext.name)).parent
        try:
            recipe.make(width, folder)
        except recipe.CannotBuild as error:
            self.failed.append(width)
            raise CompileError(str(error)) from None

    def build_extensions(self) -> None:
        """Build all widths; each that fails is a warning, with the reason. Say at the end what follows from them."""
        super().build_extensions()
        if self.failed:
            built = [width for width in recipe.built_here() if width not in self.failed]
            instead = f"the kernel of width {built[0]} is used" if built else "torch is used in place of the kernel"
            self.warn(f"not built: {', '.join(self.failed)}; {instead}. To have all: {recipe.REMEDY}")

    def copy_extensions_to_source(self) -> None:
        """For an editable installation: the libraries and records lie beside their sources."""
        for ext in self.extensions:
            built = Path(self.build_lib, self.get_ext_filename(ext.name))
            for file in (built, built.with_suffix(".json")):
                (NATIVE / file.name).unlink(missing_ok=True)  # of an earlier build, perhaps in use
                if file.exists():
                    shutil.copy2(file, NATIVE / file.name)


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 on this platform: libraries know no Python, but a processor. Without any, for all."""

    def get_tag(self) -> tuple[str, str, str]:
        built = Path(self.get_finalized_command("build").build_lib, NATIVE)
        kernel = any((built / recipe.library(width)).is_file() for width in recipe.built_here())
        return "py3", "none", super().get_tag()[2] if kernel else "any"


setup(
    ext_modules=[
        Extension(f"workers.native.{width}", [str(path) for path in recipe.sources(NATIVE)], optional=True)
        for width in recipe.built_here()
    ],
    cmdclass={"build_ext": BuildKernel, "bdist_wheel": PlatformWheel},
)
