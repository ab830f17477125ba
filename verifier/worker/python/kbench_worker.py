"""The Python host: loads a submission's solution.py and calls its kbench_run whenever the verifier says go.

    kbench_worker.py --task-json FILE [--library LIBKBENCH_WORKER] SUBMISSION_FOLDER     (the verifier's socket is descriptor 3)

kbench_run gets every argument by name: dims and scalars as numbers, tensors as PyTorch tensors over the verifier's own memory. Outputs are
tensors to be written in place; in a task on several GPUs every tensor is a list, one a GPU. It returns None or 0; anything else, and any exception, ends the grading as a runtime error. On a GPU all
work of the process is waited for afterwards, on whatever stream.
"""
import argparse
import contextlib
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import sys
import traceback

SOCKET = 3
DEVICE_TYPES = {0: 1, 1: 2}  # the worker's to DLPack's: CPU, CUDA
SCALARS = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i64": ctypes.c_longlong}
# The torch dtypes that mean a tensor's format, best first; bits as integers where PyTorch lacks it.
DTYPES = {"f64": ("float64",), "f32": ("float32",), "bf16": ("bfloat16",), "f16": ("float16",), "e4m3": ("float8_e4m3fn", "uint8"),
          "e5m2": ("float8_e5m2", "uint8"), "e8m0": ("float8_e8m0fnu", "uint8"), "e2m1x2": ("uint8",), "i8": ("int8",), "u8": ("uint8",),
          "u16": ("uint16", "int16"), "i32": ("int32",), "u32": ("uint32", "int32"), "i64": ("int64",), "u64": ("uint64", "int64")}


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def load_library(path):
    library = ctypes.CDLL(path)
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
            ("open", pointer, [integer]), ("error", ctypes.c_char_p, []), ("device", integer, [pointer]), ("gpus", integer, [pointer]), ("stream", pointer, [pointer]), ("ready", None, [pointer]),
            ("fail", None, [pointer, integer, ctypes.c_char_p]), ("next", integer, [pointer]), ("args", pointer, [pointer]),
            ("slot_count", integer, [pointer]), ("finish", None, [pointer, integer]),
            ("finish_text", None, [pointer, integer, ctypes.c_char_p]), ("no_deleter", None, [pointer])):
        function = getattr(library, "kbench_worker_" + name)
        function.restype, function.argtypes = result, arguments
    return library


def evaluate(expression, dims):
    """Integer arithmetic of the tasks (the text is the task's own): + - * / // % >> ( ) min max; `/` divides exactly."""
    if not re.fullmatch(r"[\w\s+\-*/%>(),]*", expression):
        raise ValueError(f"not an expression: {expression!r}")
    return int(eval(expression.replace("//", "/").replace("/", "//"), {"__builtins__": {}}, {**dims, "min": min, "max": max}))


class Arguments:
    """From the slots of kbench_args to the keyword arguments of kbench_run. Tensors are made once a shape."""

    def __init__(self, task, device_type, library, torch):
        self._task, self._device_type, self._library, self._torch = task, device_type, library, torch
        self._made, self._kept = {}, []

    def of(self, shape, address, count):
        if shape not in self._made:
            self._made[shape] = self._make((ctypes.c_uint64 * count).from_address(address))
        return self._made[shape]

    def _make(self, slots):
        task, values, at = self._task, {}, iter(range(len(slots)))
        for name in task["dims"] + [derived["name"] for derived in task["derived"]]:
            values[name] = ctypes.c_longlong(slots[next(at)]).value
        dims = dict(values)
        for scalar in task["scalars"]:
            raw = ctypes.c_uint64(slots[next(at)])
            values[scalar["name"]] = SCALARS[scalar["type"]].from_buffer(raw).value
        gpus = task.get("gpus", 1)
        for tensor in task["tensors"]:
            shape = [evaluate(extent, dims) for extent in tensor["shape"]]
            made = [self._tensor(slots[next(at)], tensor["dtype"], shape, gpu) for gpu in range(gpus)]
            values[tensor["name"]] = made if gpus > 1 else made[0]
        return values

    def _tensor(self, address, dtype, shape, gpu):
        torch = self._torch
        kind = next(getattr(torch, name) for name in DTYPES[dtype] if hasattr(torch, name))
        count = 1
        for extent in shape:
            count *= extent
        if count == 0:
            return torch.empty(shape, dtype=kind, device=f"cuda:{gpu}" if self._device_type == 2 else "cpu")
        size = count * torch.empty(0, dtype=kind).element_size()
        managed = DLManagedTensor()
        extents = (ctypes.c_int64 * 1)(size)
        managed.tensor = DLTensor(address, self._device_type, gpu if self._device_type == 2 else 0, 1, 1, 8, 1, extents, None, 0)  # bytes: code 1 is unsigned
        managed.deleter = ctypes.cast(self._library.kbench_worker_no_deleter, ctypes.c_void_p)
        self._kept += [managed, extents]  # for as long as the process lives
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return torch.utils.dlpack.from_dlpack(new_capsule(ctypes.addressof(managed), b"dltensor", None)).view(kind).view(shape)


def load_solution(folder):
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("solution", folder / "solution.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "kbench_run", None)):
        raise AttributeError("solution.py defines no function kbench_run")
    return module.kbench_run


def words_of(error):
    return "".join(traceback.format_exception_only(type(error), error)).strip().encode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task-json", required=True)
    parser.add_argument("--library", default=str(pathlib.Path(__file__).resolve().parent.parent / "lib" / "libkbench_worker.so"))
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    library = load_library(options.library)
    worker = library.kbench_worker_open(SOCKET)
    if not worker:
        sys.exit("kbench_worker: " + library.kbench_worker_error().decode())
    try:
        import torch
        import torch.utils.dlpack
        currents = []
        if library.kbench_worker_device(worker) == 1:
            torch.cuda.init()
            # The stream whose events take the worker's own time; Triton launches on the current one. The first GPU's is entered last.
            gpus, stream = library.kbench_worker_gpus(worker), library.kbench_worker_stream(worker)
            streams = [stream] if gpus == 1 else list((ctypes.c_void_p * gpus).from_address(stream))
            currents = [torch.cuda.stream(torch.cuda.ExternalStream(streams[gpu], device=gpu)) for gpu in reversed(range(gpus))]
        with open(options.task_json) as file:
            arguments = Arguments(json.load(file), DEVICE_TYPES[library.kbench_worker_device(worker)], library, torch)
        run = load_solution(options.folder)
    except BaseException as error:  # also SystemExit: the submission's code has run
        traceback.print_exc()
        library.kbench_worker_fail(worker, 1, words_of(error))
        sys.exit(1)
    library.kbench_worker_ready(worker)
    while (shape := library.kbench_worker_next(worker)) >= 0:
        try:
            values = arguments.of(shape, library.kbench_worker_args(worker), library.kbench_worker_slot_count(worker))
            with contextlib.ExitStack() as stack:
                for current in currents:
                    stack.enter_context(current)
                code = run(**values)
        except Exception as error:
            traceback.print_exc()
            library.kbench_worker_finish_text(worker, 1, words_of(error))
        else:
            if code is None or (isinstance(code, int) and -2**31 <= code < 2**31):
                library.kbench_worker_finish(worker, int(code or 0))
            else:
                library.kbench_worker_finish_text(worker, 1, f"kbench_run returned {type(code).__name__}".encode())
    sys.stdout.flush()
    os._exit(0)  # no destructors over memory that is not Python's


main()
