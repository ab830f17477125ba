// Images: looked up, built, tagged, removed.
#include <algorithm>
#include <cctype>
#include <sstream>

#include "daemon/engine/impl.h"
#include "daemon/engine/streams.h"

namespace kbench::engine {

namespace {

Image image_of(const Json& answer) {
  Image image;
  image.id = text_of(answer, "Id");
  image.tags = list_of(answer, "RepoTags");
  std::erase(image.tags, "<none>:<none>");    // what Engines before 25 say where there is none
  image.labels = texts_of(answer, "Labels");  // of a list
  if (image.labels.empty()) image.labels = texts_of(child_of(answer, "Config"), "Labels");  // of an inspection
  image.created_s = number_of(answer, "Created");
  image.bytes = number_of(answer, "Size");
  return image;
}

std::string build_path(const BuildSpec& spec) {
  // version=1: the classic builder needs no session. q is never used: with labels it prints the id of the wrong step
  // on 20.10.
  std::string path = "/build?version=1&rm=1&forcerm=1&networkmode=" + url_encoded(spec.network);
  path += "&labels=" + url_encoded(Json(spec.labels).dump()) + "&buildargs=" + url_encoded(Json(spec.args).dump());
  for (const std::string& tag : spec.tags) path += "&t=" + url_encoded(tag);
  return path;
}

bool begins_stage(const std::string& instruction) {
  const std::size_t first = instruction.find_first_not_of(" \t\r");
  if (first == instruction.npos) return false;
  std::string word = instruction.substr(first, instruction.find_first_of(" \t\r", first) - first);
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word == "from";
}

// What a build's stream has said so far.
struct Progress {
  TailText log;
  std::string id, error;
  void take(std::string_view object, const std::function<void(std::string_view)>& listener) {
    const Json message = Json::parse(object, nullptr, false);
    if (message.is_discarded()) throw BadStream("a message that is no JSON");
    std::string text = text_of(message, "stream");
    if (const std::string status = text_of(message, "status"); !status.empty()) text += status + "\n";
    if (const std::string made = text_of(child_of(message, "aux"), "ID"); !made.empty()) id = made;
    const Json& detail = child_of(message, "errorDetail");
    if (!detail.is_null()) error = text_of(detail, "message");
    if (error.empty()) error = text_of(message, "error");
    if (!detail.is_null() && error.empty()) error = "error without a message";
    if (text.empty()) return;
    log.add(text);
    if (listener) listener(sanitised(text));
  }
};

}  // namespace

// The Engine puts `labels` on the last image alone, in a step at the end. What a build that was cut off or failed has
// left would be known to nobody, so every stage begins with them. (The classic builder knows no here-documents.)
std::string labelled(const std::string& dockerfile, const std::map<std::string, std::string>& labels) {
  std::string step = "LABEL";
  for (const auto& [name, value] : labels) {
    const bool plain = std::ranges::all_of(
        name + value, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-' || c == '_'; });
    if (!plain) throw EngineError(Kind::bad_request, 0, "build: the label " + name + "=" + value + " needs quotes");
    step.append(" ").append(name).append("=").append(value);
  }
  if (labels.empty()) return dockerfile;
  std::string out, instruction;  // the one that the line belongs to, as the builder joins its lines
  std::istringstream lines(dockerfile);
  for (std::string line; std::getline(lines, line);) {
    out += line + "\n";
    const std::size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
    if (first == line.npos || line[first] == '#') continue;  // also within an instruction
    const bool continues = line[last] == '\\';
    instruction += line.substr(0, continues ? last : line.size());
    if (continues) continue;
    if (begins_stage(instruction)) out += step + "\n";
    instruction.clear();
  }
  return out;
}

std::optional<Image> Engine::image(const std::string& reference) {
  const Call call{.method = "GET", .path = "/images/" + reference + "/json", .timeout = impl_->options.inspect_timeout};
  const HttpReply reply = impl_->call(call);
  if (reply.status == 404) return std::nullopt;
  if (reply.status != 200) throw impl_->failure(reply, "image " + reference);
  Image image = image_of(impl_->json_of(reply.body, "image " + reference));
  if (image.id.empty()) throw EngineError(Kind::failed, reply.status, "image " + reference + ": the answer has no Id");
  return image;
}

std::vector<Image> Engine::images(const std::string& label) {
  const Json answer = impl_->demand_json({.method = "GET",
                                          .path = "/images/json?filters=" + label_filter(label),
                                          .timeout = impl_->options.inspect_timeout});
  std::vector<Image> images;
  if (!answer.is_array()) throw EngineError(Kind::failed, 0, "images: the answer is no list");
  for (const Json& item : answer) images.push_back(image_of(item));
  return images;
}

std::string Engine::build(const BuildSpec& spec, const std::function<void(std::string_view)>& log,
                          const std::stop_token& stop) {
  Progress progress{TailText(impl_->options.build_log_bytes_max), {}, {}};
  JsonSplitter splitter(impl_->options.build_message_bytes_max,
                        [&](std::string_view object) { progress.take(object, log); });
  Call call{.method = "POST",
            .path = build_path(spec),
            .content_type = "application/x-tar",
            .timeout = impl_->options.build_timeout};
  try {
    std::vector<TarEntry> context = spec.context;
    for (TarEntry& entry : context)
      if (entry.path == "Dockerfile") entry.content = labelled(entry.content, spec.labels);
    call.body = write_tar(std::move(context), impl_->options.context);
    call.on_body = [&](std::string_view bytes) { splitter.feed(bytes); };
    call.stop = stop;
    impl_->demand(call);
  } catch (const EngineError& error) {
    if (error.kind != Kind::timeout) throw;
    throw EngineError(Kind::timeout, error.status,
                      std::string(error.what()) + " (see engine.build_timeout)\n" + progress.log.text());
  } catch (const BadStream& error) {
    throw EngineError(Kind::failed, 200, std::string("build: ") + error.what());
  } catch (const BadTar& error) {
    throw EngineError(Kind::failed, 0, std::string("build context: ") + error.what());
  }
  // 200 came before the first step ran: it says nothing of how the build went.
  if (!progress.error.empty()) {
    const bool full = progress.error.find("no space left on device") != std::string::npos;
    throw EngineError(full ? Kind::no_space : Kind::failed, 200,
                      "build: " + sanitised(progress.error) + "\n" + progress.log.text());
  }
  if (!splitter.between()) throw EngineError(Kind::unreachable, 200, "build: the answer ended inside a message");
  if (progress.id.empty())
    throw EngineError(Kind::failed, 200, "build: it ended without an image\n" + progress.log.text());
  if (const std::optional<Image> made = image(progress.id)) return made->id;
  throw EngineError(Kind::failed, 404, "build: the image " + sanitised(progress.id) + " is not there");
}

void Engine::tag(const std::string& image, const std::string& repository, const std::string& tag) {
  impl_->demand({.method = "POST",
                 .path = "/images/" + image + "/tag?repo=" + url_encoded(repository) + "&tag=" + url_encoded(tag),
                 .timeout = impl_->options.inspect_timeout});
}

void Engine::remove_image(const std::string& reference) {
  const Turnstile::Pass pass(impl_->changes);
  const Call call{.method = "DELETE", .path = "/images/" + reference, .timeout = impl_->options.image_timeout};
  const HttpReply reply = impl_->call(call);
  if (reply.status != 404 && reply.status != 200) throw impl_->failure(reply, "removing image " + reference);
}

}  // namespace kbench::engine
