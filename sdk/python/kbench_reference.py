"""Runs a task's C++ reference from Python: compiles reference.h once a device, passes tensors by address.

Needs g++ (cpu) or nvcc (GPU). The compiled library is kept in $XDG_CACHE_HOME/kbench (~/.cache/kbench) under a hash of its sources.
"""
import ctypes
import hashlib
import os
import pathlib
import subprocess
import tempfile

_BYTES = {"f64": 8, "f32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1, "e8m0": 1, "e2m1x2": 1, "i8": 1, "u8": 1, "u16": 2,
          "i32": 4, "u32": 4, "i64": 8, "u64": 8}
_SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_longlong}
_SOURCE = '''#include "task.h"
#include "reference.h"
#include "kbench/local_exec.h"
KB_REFERENCE_EXPORTS
extern "C" int kbench_call(const kbench_args* args) {
#if defined(__CUDACC__) && defined(KB_PEERS)
  // Runs on the first GPU, over the tensors of all. Fails where it has been enabled before.
  cudaSetDevice(0);
  for (int gpu = 1; gpu < kbench_gpus; ++gpu) cudaDeviceEnablePeerAccess(gpu, 0);
  cudaGetLastError();
#endif
  kb::LocalExec exec;
  const int code = kbench_reference(args, exec.get());
#ifdef __CUDACC__
  const cudaError_t error = cudaDeviceSynchronize();
  if (code == 0 && error != cudaSuccess) return static_cast<int>(error);
#endif
  return code;
}
'''


def _include_folder():
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here.parent / "include", here.parent):  # /opt/kbench/python, and sdk/python in the source tree
        if (folder / "kbench" / "parallel.h").exists():
            return folder
    raise RuntimeError("kbench/parallel.h was not found beside kbench_reference.py")


def _address(name, tensor, count, element_bytes):
    """(address, on_gpu) of a PyTorch tensor or a NumPy array, checked for size and layout."""
    if hasattr(tensor, "data_ptr"):
        size, address, gpu = tensor.numel() * tensor.element_size(), tensor.data_ptr(), tensor.is_cuda
        contiguous = tensor.is_contiguous()
    elif hasattr(tensor, "ctypes"):
        size, address, gpu = tensor.nbytes, tensor.ctypes.data, False
        contiguous = tensor.flags["C_CONTIGUOUS"]
    else:
        raise TypeError(f"{name}: neither a PyTorch tensor nor a NumPy array")
    if size != count * element_bytes:
        raise ValueError(f"{name}: has {size} bytes, must have {count * element_bytes}")
    if not contiguous:
        raise ValueError(f"{name}: must be contiguous")
    return address, gpu


def _compile(folder, gpu, peers):
    include = _include_folder()
    texts = [_SOURCE] + [(folder / name).read_text() for name in ("task.h", "reference.h")]
    texts += [path.read_text() for path in sorted((include / "kbench").glob("*.h"))]
    key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "kbench"
    library = cache / f"reference-{'cuda' if gpu else 'cpu'}{'-peers' if peers else ''}-{key}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            source = pathlib.Path(scratch) / ("call.cu" if gpu else "call.cpp")
            source.write_text(_SOURCE)
            made = pathlib.Path(scratch) / "call.so"
            compiler = (["nvcc", "-O3", "-std=c++20", "--extended-lambda", "-arch=native", "-Xcompiler=-fPIC"] if gpu else
                        ["g++", "-O3", "-march=native", "-std=c++20", "-fPIC", "-pthread"])
            subprocess.run(compiler + (["-DKB_PEERS"] if peers else []) + ["-shared", f"-I{folder}", f"-I{include}", str(source), "-o", str(made)], check=True)
            made.rename(library)
    return ctypes.CDLL(str(library))


def _evaluate(expression, dims):
    """Integer arithmetic of the tasks: + - * / // % >> min max, where `/` divides exactly. The text is the task's own."""
    return int(eval(expression.replace("//", "/").replace("/", "//"), {"__builtins__": {}}, {**dims, "min": min, "max": max}))


class Reference:
    def __init__(self, folder, dims, derived, scalars, tensors, gpus=1):
        self._folder = pathlib.Path(folder)
        self._dims, self._derived, self._scalars, self._tensors, self._gpus = dims, derived, scalars, tensors, gpus
        self._libraries = {}

    def __call__(self, **values):
        """Dims and tensors by name, tensors of several GPUs as lists; scalars default to the task's. Outputs are written in place."""
        missing = [name for name in self._dims + [t[0] for t in self._tensors] if name not in values]
        if missing:
            raise TypeError(f"missing arguments: {', '.join(missing)}")
        dims = {name: int(values.pop(name)) for name in self._dims}
        for name, expression in self._derived:
            dims[name] = _evaluate(expression, dims)
        slots = [ctypes.c_longlong(value) for value in dims.values()]
        for name, kind, value in self._scalars:
            slots.append(_SCALARS[kind](values.pop(name, value)))
        on_gpu = set()
        for name, dtype, shape in self._tensors:
            count = 1
            for extent in shape:
                count *= _evaluate(extent, dims)
            given = values.pop(name)
            if self._gpus == 1:
                given = [given]
            elif len(given) != self._gpus:
                raise ValueError(f"{name}: {len(given)} tensors, must be one for each of {self._gpus} GPUs")
            for tensor in given:
                address, gpu = _address(name, tensor, count, _BYTES[dtype])
                on_gpu.add(gpu)
                slots.append(ctypes.c_void_p(address))
        if values:
            raise TypeError(f"unknown arguments: {', '.join(values)}")
        if len(on_gpu) > 1:
            raise ValueError("all tensors must be on the same device" if self._gpus == 1 else "tensors must be all on GPUs or none")
        gpu = True in on_gpu
        if gpu not in self._libraries:
            self._libraries[gpu] = _compile(self._folder, gpu, self._gpus > 1)
        args = (ctypes.c_uint64 * len(slots))()  # each argument has an 8-byte slot
        for i, slot in enumerate(slots):
            ctypes.memmove(ctypes.byref(args, 8 * i), ctypes.byref(slot), ctypes.sizeof(slot))
        code = self._libraries[gpu].kbench_call(args)
        if code:
            raise RuntimeError(f"the reference failed with code {code}")


def load(file, **task):
    """The reference of the task.h and reference.h beside `file`; `task` says what its arguments are."""
    return Reference(pathlib.Path(file).resolve().parent, **task)
