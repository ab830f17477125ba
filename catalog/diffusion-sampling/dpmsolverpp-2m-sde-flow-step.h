// DPM-Solver++ 2M SDE for flow models, one step in place.
#pragma once

#include "kbench/parallel.h"
#include "task.h"

// x = of_x*x + of_m0*m0 + of_D1*D1 + of_noise*nz
struct Step {
  double s, inverse_r0, of_x, of_m0, of_D1, of_noise;
};

KB_HD Step step_of(const float* sig) {
  const double sp = double(sig[0]), s = double(sig[1]), sn = double(sig[2]);
  const double before = std::log((1 - sp) / sp), here = std::log((1 - s) / s), next = std::log((1 - sn) / sn);
  const double h = next - here, gain = -std::expm1(-2 * h);
  return {s, h / (here - before), sn / s * std::exp(-h), (1 - sn) * gain, 0.5 * (1 - sn) * gain, sn * std::sqrt(gain)};
}

inline void reference(const kbench_args& a, kbench_exec& exec) {
  Step* steps = kb::scratch<Step>(exec, a.B);
  kb::parallel_for(exec, a.B, KB_LAMBDA(long long b) { steps[b] = step_of(a.sig + b * 3); });
  kb::parallel_for(
      exec, a.B * a.M, KB_LAMBDA(long long i) {
        const Step step = steps[i / a.M];
        const float m0 = a.x[i] - float(step.s) * float(a.v[i]);
        const float D1 = (m0 - a.m1[i]) * float(step.inverse_r0);
        a.x[i] = float(step.of_x) * a.x[i] + float(step.of_m0) * m0 + float(step.of_D1) * D1 +
                 float(step.of_noise) * float(a.nz[i]);
        a.m1[i] = m0;
      });
}

// kbench: private from here

inline void independent(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        const Step step = step_of(a.sig + b * 3);
        const double of_history = -step.of_D1 * step.inverse_r0, of_data = step.of_m0 - of_history;
        const float of_x = float(step.of_x + of_data), of_v = float(-step.s * of_data), of_m1 = float(of_history);
        for (long long i = b * a.M; i < (b + 1) * a.M; ++i) {
          const float x = a.x[i], v = float(a.v[i]), m1 = a.m1[i];
          a.m1[i] = std::fma(-float(step.s), v, x);
          a.x[i] = std::fma(of_x, x, std::fma(of_v, v, std::fma(of_m1, m1, float(step.of_noise) * float(a.nz[i]))));
        }
      });
}

// First order.
inline void control(const kbench_args& a, kbench_exec& exec) {
  kb::parallel_for(
      exec, a.B, KB_LAMBDA(long long b) {
        const Step step = step_of(a.sig + b * 3);
        for (long long i = b * a.M; i < (b + 1) * a.M; ++i) {
          const float m0 = a.x[i] - float(step.s) * float(a.v[i]);
          a.x[i] = float(step.of_x) * a.x[i] + float(step.of_m0) * m0 + float(step.of_noise) * float(a.nz[i]);
          a.m1[i] = m0;
        }
      });
}
