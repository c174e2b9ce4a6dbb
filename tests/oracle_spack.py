# oracle_spack.py - runs the recipe for Spack as Spack would, without building:
# prints "version V" and "option O" for what each variant gives to configure
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys
import types


class Place(str):
    """A folder of a package, with its attributes."""

    prefix = include = property(lambda self: Place(self + "/p"))


class Spec:
    def __init__(self, on):
        self.on = on

    def satisfies(self, text):
        return self.on[text[1:]] == (text[0] == "+")

    def __getitem__(self, name):
        if name not in dependencies:
            raise KeyError(f"{name} is used, but no dependency")
        return Place(name)


class AutotoolsPackage:
    def with_or_without(self, name):
        return [f"--with{'' if self.spec.on[name] else 'out'}-{name}"]


variants, dependencies = {}, set()


def depends_on(name, when=None, type=None):
    if when is not None and when[1:] not in variants:
        raise ValueError(f"{name}: there is no variant {when}")
    dependencies.add(name.split("@")[0].split("+")[0])


module = types.ModuleType("spack.package")
module.AutotoolsPackage = AutotoolsPackage
module.version = lambda number: print("version", number)
module.variant = lambda name, default, description: variants.update(
    {name: default})
module.depends_on = depends_on
module.license = lambda name: None
module.join_path = lambda *parts: "/".join(parts)
module.Executable = None
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = module
scope = {}
with open(sys.argv[1]) as file:
    exec(compile(file.read(), sys.argv[1], "exec"), scope)
for value in (False, True):
    package = scope["Libddp"]()
    package.spec = Spec({name: value for name in variants})
    for option in package.configure_args():
        print("option", option.split("=")[0])
