// The token as a file holds it.
#include <sys/stat.h>

#include <fstream>

#include "client/client.h"

namespace kbench::client {

TokenFile token_in(const std::string& path) {
  TokenFile found;
  std::ifstream in(path);
  std::getline(in, found.token);
  while (!found.token.empty() && (found.token.back() == '\r' || found.token.back() == ' ')) found.token.pop_back();
  struct stat facts{};
  if (!found.token.empty() && ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & 077) != 0)
    found.warning = path + " may be read or written by other users: chmod 600 " + path;
  return found;
}

}  // namespace kbench::client
