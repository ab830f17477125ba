// Becomes somebody else, or root, or moves into another namespace.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "honest.h"

static bool runs_as_root(const char* program, const char* argument) {
  const pid_t child = fork();
  if (child == 0) {
    execlp(program, program, argument, static_cast<char*>(nullptr));
    _exit(1);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

extern "C" int kbench_run(const kbench_args* a, kbench_stream) {
  static bool first = true;
  if (first) {
    first = false;
    if (getuid() == 0 || geteuid() == 0 || getgid() == 0) return kBreach;
    const uid_t mine = getuid();
    for (const uid_t other : {uid_t(0), mine + 1, mine - 1}) {
      if (setuid(other) == 0 || seteuid(other) == 0 || setresuid(other, other, other) == 0 || setgid(other) == 0)
        return kBreach;
      const gid_t group = other;
      if (setgroups(1, &group) == 0) return kBreach;
    }
    if (unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWPID) == 0) return kBreach;
    if (mount("none", "/tmp", "tmpfs", 0, nullptr) == 0 || chroot("/tmp") == 0) return kBreach;
    if (const int ns = open("/proc/1/ns/mnt", O_RDONLY); ns >= 0 && setns(ns, 0) == 0) return kBreach;
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return kBreach;
    if (runs_as_root("su", "-cid") || runs_as_root("mount", "/tmp")) return kBreach;
    if (syscall(SYS_keyctl, 0 /* get keyring */, -3 /* session */, 1) >= 0) return kBreach;
  }
  return honest(*a);
}
