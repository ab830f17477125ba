// RMSNorm over the channels of images.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

inline void reference(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, P = a.P;
  kb::parallel_for(
      exec, a.B * P, KB_LAMBDA(long long i) {
        const long long first = i / P * C * P + i % P;
        float sum = 0;
        for (long long c = 0; c < C; ++c) sum += a.x[first + c * P] * a.x[first + c * P];
        const float rms = std::sqrt(sum / float(C) + a.eps);
        for (long long c = 0; c < C; ++c) a.y[first + c * P] = a.x[first + c * P] / rms;
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, P = a.P;
  kb::parallel_for(
      exec, a.B * P, KB_LAMBDA(long long i) {
        const long long first = i / P * C * P + i % P;
        double sum = 0;
        for (long long c = 0; c < C; ++c) sum += double(a.x[first + c * P]) * double(a.x[first + c * P]);
        const double scale = 1 / std::sqrt(sum / double(C) + double(a.eps));
        for (long long c = 0; c < C; ++c) a.y[first + c * P] = float(double(a.x[first + c * P]) * scale);
      });
}

// Leaves out the mean's division.
inline void control(const kbench_args& a, kbench_exec& exec) {
  const long long C = a.C, P = a.P;
  kb::parallel_for(
      exec, a.B * P, KB_LAMBDA(long long i) {
        const long long first = i / P * C * P + i % P;
        float sum = 0;
        for (long long c = 0; c < C; ++c) sum += a.x[first + c * P] * a.x[first + c * P];
        const float rms = std::sqrt(sum + a.eps);
        for (long long c = 0; c < C; ++c) a.y[first + c * P] = a.x[first + c * P] / rms;
      });
}
