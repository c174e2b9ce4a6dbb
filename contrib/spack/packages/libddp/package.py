# package.py - libddp for Spack
#
#     spack repo add contrib/spack
#     spack dev-build libddp@0.1.0 +mpi        # in the source of libddp
#
# SPDX-License-Identifier: LGPL-2.1-or-later
import os

from spack.package import *


class Libddp(AutotoolsPackage):
    """Trains neural networks from C as StarPU task graphs, with the same bits
    on any number of devices."""

    # There is no server to download from: dev-build uses the source at hand,
    # install the tarball of "make dist" in the current folder.
    manual_download = True
    url = f"file://{os.getcwd()}/libddp-0.1.0.tar.gz"
    license("LGPL-2.1-or-later")

    version("0.1.0")

    variant("mpi", default=True, description="train in several processes")
    variant("onednn", default=True, description="fast kernels for CPUs")
    variant("cuda", default=False, description="NVIDIA GPUs")
    variant("png", default=True, description="read PNG files")
    variant("webp", default=True, description="read WebP files")
    variant("gif", default=True, description="read GIF files")
    variant("tiff", default=True, description="read TIFF files")
    variant("avif", default=True, description="read AVIF files")
    variant("zlib", default=True, description="read data in gzip files")
    variant("curl", default=True, description="read data on S3 and web servers")
    variant("archive", default=True, description="write data to tar files")
    variant("onnx", default=False, description="export networks as ONNX")

    for tool in ("autoconf", "automake", "libtool", "m4"):
        depends_on(tool, type="build")
    depends_on("pkgconfig", type="build")
    depends_on("c", type="build")

    depends_on("starpu@1.3.10:1.4")
    depends_on("hwloc@2:")
    depends_on("libjpeg-turbo")
    depends_on("jansson@2.7:")
    depends_on("mpi", when="+mpi")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("libpng@1.6:", when="+png")
    depends_on("libwebp@1:", when="+webp")
    depends_on("giflib@5.1:", when="+gif")
    depends_on("libtiff@4.5:", when="+tiff")
    depends_on("libavif@0.11:", when="+avif")
    depends_on("zlib-api", when="+zlib")
    depends_on("curl@7.87:", when="+curl")
    depends_on("expat", when="+curl")
    depends_on("libarchive@3.3:", when="+archive")
    depends_on("protobuf-c@1.3:", when="+onnx")
    depends_on("onnx", when="+onnx")
    depends_on("starpu+cuda", when="+cuda")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9.8:", when="+cuda")

    def autoreconf(self, spec, prefix):
        if not os.path.exists("configure"):
            Executable("./autogen.sh")()

    def configure_args(self):
        spec = self.spec
        args = ["--without-simgrid"]
        for name in ("archive", "avif", "curl", "gif", "mpi", "png", "tiff",
                     "webp", "zlib"):
            args += self.with_or_without(name)
        places = {
            "onednn": lambda: spec["onednn"].prefix,
            "onnx": lambda: join_path(
                spec["onnx"].prefix.include, "onnx", "onnx-ml.proto"),
            "cuda": lambda: spec["cuda"].prefix,
        }
        for name, place in places.items():
            if spec.satisfies(f"+{name}"):
                args.append(f"--with-{name}={place()}")
            else:
                args.append(f"--without-{name}")
        if spec.satisfies("+cuda"):
            args.append(f"--with-cudnn={spec['cudnn'].prefix}")
        return args
