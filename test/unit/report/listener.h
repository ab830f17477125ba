// A listener for reports over a raw unix socket, which can be told to misbehave.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/kbench-report-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

class Listener {
 public:
  enum class Mood { good, refuses, silent, drops_posts, gap_once, nonsense };

  explicit Listener(std::string folder, Mood mood = Mood::good, std::int64_t next = 1) : mood_(mood), next_(next) {
    path_ = folder + "/report.sock";
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(fd_, 8) != 0) std::abort();
    thread_ = std::thread([this] { accept_loop(); });
  }
  ~Listener() {
    stop_ = true;
    thread_.join();
    ::close(fd_);
  }

  void mood(Mood mood) { mood_ = mood; }
  std::vector<nlohmann::json> received() {
    const std::scoped_lock lock(mutex_);
    return received_;
  }
  std::int64_t next() {
    const std::scoped_lock lock(mutex_);
    return next_;
  }
  int posts() const { return posts_; }
  std::size_t largest_post() const { return largest_; }
  bool wait_for(std::int64_t next_wanted, int seconds = 5) {
    for (int i = 0; i < seconds * 200; ++i) {
      if (next() >= next_wanted) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  bool readable(int fd) {
    while (!stop_) {
      pollfd wait{fd, POLLIN, 0};
      if (::poll(&wait, 1, 20) > 0) return true;
    }
    return false;
  }

  void accept_loop() {
    while (readable(fd_)) {
      const int peer = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      if (peer < 0) continue;
      while (serve(peer)) {
      }
      ::close(peer);
    }
  }

  bool serve(int peer) {
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
      char c;
      if (!readable(peer) || ::recv(peer, &c, 1, 0) != 1) return false;
      head += c;
    }
    std::size_t length = 0;
    if (const auto at = head.find("Content-Length: "); at != std::string::npos)
      length = std::stoul(head.substr(at + 16));
    std::string body(length, '\0');
    for (std::size_t done = 0; done < length;) {
      const ssize_t got = readable(peer) ? ::recv(peer, body.data() + done, length - done, 0) : 0;
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    const bool post = head.rfind("POST /events ", 0) == 0;
    if (post) largest_ = std::max<std::size_t>(largest_, length), ++posts_;
    if (mood_ == Mood::silent) {
      while (!stop_ && mood_ == Mood::silent) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return false;
    }
    if (mood_ == Mood::refuses) return answer(peer, "503 Service Unavailable", "{}");
    if (mood_ == Mood::nonsense) return answer(peer, "200 OK", "[1,2");
    if (post && mood_ == Mood::drops_posts) return false;
    const std::scoped_lock lock(mutex_);
    if (post && mood_ == Mood::gap_once) {
      mood_ = Mood::good;
      next_ = 1;  // it has lost all it had
      received_.clear();
      return answer(peer, "409 Conflict", R"({"next": 1})");
    }
    if (post) {
      const auto lines = lines_of(body);
      if (!lines.empty() && lines[0]["seq"] > next_)
        return answer(peer, "409 Conflict", R"({"next": )" + std::to_string(next_) + "}");
      for (const auto& line : lines) {
        if (line["seq"] < next_) continue;
        received_.push_back(line);
        next_ = line["seq"].get<std::int64_t>() + 1;
      }
    }
    return answer(peer, "200 OK", R"({"next": )" + std::to_string(next_) + "}");
  }

  bool answer(int peer, const std::string& status, const std::string& body) {
    const std::string text =
        "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return ::send(peer, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  std::string path_;
  int fd_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<Mood> mood_;
  std::atomic<int> posts_ = 0;
  std::atomic<std::size_t> largest_ = 0;
  std::mutex mutex_;
  std::int64_t next_;
  std::vector<nlohmann::json> received_;
  std::thread thread_;
};
