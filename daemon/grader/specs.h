// The containers of design and contract, as specifications. Pure. Internal to daemon/grader.
#pragma once

#include <string>
#include <vector>

#include "daemon/grader/grader.h"

namespace kbench::grader {

extern const char* const kSeccompProfile;  // docker/seccomp.json

struct Attempt {  // what names an attempt's containers
  std::string owner, submission;
  int number = 0;
};
std::string container_name(const Attempt& attempt, const std::string& kind);

struct CompileJob {
  std::string image, device, language;
  std::string submission_folder, out_folder;
  std::uint32_t uid = 0;
};
engine::ContainerSpec compile_spec(const Options& options, const Attempt& attempt, const CompileJob& job,
                                   const std::string& seccomp);

struct ReferenceJob {
  std::string image, device, key;  // key: of the judge image it is for
  std::string tests_folder, out_folder;
  std::uint32_t uid = 0;
};
engine::ContainerSpec reference_spec(const Options& options, const ReferenceJob& job, const std::string& seccomp);

struct MeasureJob {
  std::string image, device, language;
  std::string artefact_folder, out_folder, report_folder;
  std::string cpuset;
  std::uint32_t uid_base = 0;
  std::vector<std::string> slots{};  // by slot_name
};
engine::ContainerSpec measure_spec(const Options& options, const Attempt& attempt, const MeasureJob& job,
                                   const std::string& seccomp);

// The same after a restart, as long as the GPU is there or the CPU slots are configured as they were.
std::string slot_name(const gpu::Slot& slot);
bool is_on(const engine::Container& container, const gpu::Slot& slot);  // by its label

inline constexpr char kOwnerLabel[] = "kbench.owner";
inline constexpr char kImageLabel[] = "kbench.image";  // env | judge
inline constexpr char kImageOwnerLabel[] =
    "kbench.image-owner";  // not kbench.owner: containers inherit their image's labels

}  // namespace kbench::grader
