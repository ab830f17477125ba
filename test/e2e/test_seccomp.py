"""docker/seccomp.json against the Engine: what it refuses, and that compilers, threads and memfds still work."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support")]
import kbenchd  # noqa: E402

ENV = {**os.environ, "DOCKER_HOST": kbenchd.engine_host()}
# System calls of x86-64 by number; 38 (ENOSYS) for clone3, so that the C library takes clone.
REFUSED = r'''
import ctypes, errno, os
libc, me = ctypes.CDLL(None, use_errno=True), os.getpid()
calls = dict(shmget=(29, 0, 4096, 0o1600), shmat=(30, 0, 0, 0), semget=(64, 0, 1, 0o1600), msgget=(68, 0, 0o1600),
             mq_open=(240, b"/x", 0o102, 0o600, 0), add_key=(248, 0, 0, 0, 0, 0), request_key=(249, 0, 0, 0, 0), keyctl=(250, 0, 0, 0, 0, 0),
             io_uring_setup=(425, 8, 0), userfaultfd=(323, 0), ptrace=(101, 0, 0, 0, 0), process_vm_readv=(310, me, 0, 0, 0, 0, 0),
             process_vm_writev=(311, me, 0, 0, 0, 0, 0), pidfd_getfd=(438, 0, 0, 0), kcmp=(312, me, me, 0, 0, 0), bpf=(321, 0, 0, 0),
             perf_event_open=(298, 0, 0, 0, -1, 0), unshare=(272, 0x10000000), setns=(308, 0, 0), clone_newuser=(56, 0x10000011, 0, 0, 0, 0),
             clone3=(435, 0, 0), mount=(165, 0, 0, 0, 0, 0), chroot=(161, b"/"), open_by_handle_at=(304, 0, 0, 0), swapon=(167, 0, 0),
             init_module=(175, 0, 0, 0), iopl=(172, 3), fanotify_init=(300, 0, 0), memfd_secret=(447, 0), personality=(135, 0x0040000),
             socket_netlink=(41, 16, 3, 0), socket_packet=(41, 17, 3, 0), socket_alg=(41, 38, 5, 0), socket_vsock=(41, 40, 1, 0))
for name, call in calls.items():
    ctypes.set_errno(0)
    result, error = libc.syscall(*call), ctypes.get_errno()
    if result != -1 or error != (errno.ENOSYS if name == "clone3" else errno.EPERM):
        print(name, result, errno.errorcode.get(error, error))
'''
ALLOWED = r'''
import os, socket, subprocess, threading
thread = threading.Thread(target=os.getpid); thread.start(); thread.join()
socket.socketpair(); os.memfd_create("x"); socket.socket(socket.AF_INET).close()
open("/tmp/a.cpp", "w").write("#include <thread>\nint main() { std::thread t([] {}); t.join(); }")
subprocess.run(["g++", "-fopenmp", "/tmp/a.cpp", "-o", "/tmp/a"], check=True)
subprocess.run(["/tmp/a"], check=True)
'''


class Seccomp(unittest.TestCase):
    def run_in_container(self, program):
        return subprocess.run(["docker", "run", "--rm", "--network", "none", "--cap-add", "SYS_PTRACE", "--security-opt",
                               f"seccomp={kbenchd.ROOT}/docker/seccomp.json", "kbench/base:cpu", "python3", "-c", program],
                              env=ENV, capture_output=True, text=True, timeout=120)

    def test_refused(self):
        ran = self.run_in_container(REFUSED)
        self.assertEqual((ran.returncode, ran.stdout), (0, ""), ran.stderr)

    def test_allowed(self):
        ran = self.run_in_container(ALLOWED)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


if __name__ == "__main__":
    unittest.main()
