/* The worker's side of the protocol with the verifier, as a C library: for the C++ host (kbench-worker) and for the
 * Python host (kbench_worker.py, by ctypes). It runs in the process of the submission, so nothing here is trusted by
 * anybody.
 *
 *   kbench_worker* w = kbench_worker_open(KBENCH_WORKER_FD);
 *   … load the submission …
 *   kbench_worker_ready(w);
 *   for (int shape; (shape = kbench_worker_next(w)) >= 0;) {
 *     int code = kbench_run(kbench_worker_args(w), kbench_worker_stream(w));
 *     kbench_worker_finish(w, code);
 *   }
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define KBENCH_WORKER_FD 3 /* the socket that the verifier leaves open */

typedef struct kbench_worker kbench_worker;

/* Receives the set-up, maps pages and buffers (cuda: makes the primary contexts of all GPUs and a stream on each, the
 * first GPU's current on this thread). One a process. Null on failure: kbench_worker_error() says why, and the verifier
 * has been told where that was possible. */
kbench_worker* kbench_worker_open(int socket);
const char* kbench_worker_error(void);

int kbench_worker_device(const kbench_worker*); /* 0 cpu, 1 cuda */
int kbench_worker_gpus(const kbench_worker*);
/* What kbench_run is called with: a CUstream; null on cpu. Of several GPUs: where an array of as many is. */
void* kbench_worker_stream(const kbench_worker*);

/* Ready for calls. */
void kbench_worker_ready(kbench_worker*);
/* The submission cannot be run: `text` is shown to the submitter. The caller should exit then. */
void kbench_worker_fail(kbench_worker*, int code, const char* text);

/* Waits for the next call. Returns the index of its shape, or -1: leave. */
int kbench_worker_next(kbench_worker*);
/* kbench_args of the call waited for: slots of 8 bytes, real pointers; a fresh copy each time. */
const void* kbench_worker_args(const kbench_worker*);
int kbench_worker_slot_count(const kbench_worker*);
int kbench_worker_first_pointer(const kbench_worker*); /* slots from here on are pointers */

/* Ends the call: waits for the GPUs (cuda), then says done (code 0) or refused. */
void kbench_worker_finish(kbench_worker*, int code);
/* The same, with words of why; for code != 0. */
void kbench_worker_finish_text(kbench_worker*, int code, const char* text);

/* Does nothing: the deleter of DLPack tensors over memory that stays. */
void kbench_worker_no_deleter(void*);

#ifdef __cplusplus
}
#endif
