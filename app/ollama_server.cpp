#include "app/ollama_server.h"

#include "app/net_plugin.h"
#include "core/base/shown_text.h"
#include "core/exchange/json_reads.h"
#include "core/hub/hub_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

namespace mr::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
constexpr const char* kUsualPort = ":11434";
constexpr std::size_t kLongestPart = 80; // of a name
constexpr std::size_t kMostText = std::size_t{1} << 20;
constexpr std::chrono::minutes kSilence{10}; // it hashes and reads a file without a word

Status wrongHost(const std::string& named, const std::string& what)
{
    return Status::error(
        ErrorKind::InvalidArgument, "OLLAMA_HOST names " + shownName(named) + ", " + what);
}

// "host", "host:port" or "http://host:port"; the host of a server that listens everywhere is this
// machine.
std::string urlText(std::string named)
{
    std::string scheme = "http://";
    const std::size_t colons = named.find("://");
    const bool hasScheme = colons != std::string::npos;
    if (hasScheme) {
        scheme = named.substr(0, colons + 3);
        named.erase(0, colons + 3);
    }
    named.resize(std::min(named.find('/'), named.size()));
    const std::size_t bracket = named.rfind(']');
    const std::size_t colon = named.rfind(':');
    const bool hasPort =
        colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
    std::string host = named.substr(0, hasPort ? colon : named.size());
    if (host.empty() || host == "0.0.0.0" || host == "[::]")
        host = "127.0.0.1";
    return scheme + host + (hasPort ? named.substr(colon) : hasScheme ? "" : kUsualPort);
}

bool isNamePart(std::string_view part)
{
    const auto isLetter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    return !part.empty() && part.size() <= kLongestPart && isLetter(part.front()) &&
           std::ranges::all_of(part, [&](char c) { return isLetter(c) || c == '-' || c == '.'; });
}

// Texts of a tokenizer may be no UTF-8; such bytes become U+FFFD.
std::string createBody(
    const std::string& name, const std::string& digest, const Modelfile& modelfile)
{
    Json parameters = Json::object();
    if (!modelfile.stops.empty())
        parameters["stop"] = modelfile.stops;
    for (const auto& [key, value] : modelfile.parameters)
        parameters[key] = Json::parse(value); // of numbers
    Json body{{"model", name}, {"files", {{"model.gguf", digest}}}, {"stream", true}};
    if (!modelfile.chatTemplate.empty())
        body["template"] = modelfile.chatTemplate;
    if (!parameters.empty())
        body["parameters"] = std::move(parameters);
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The field of the last line of JSON that has it; empty: none has.
std::string lastFieldOf(std::string_view lines, const char* field)
{
    std::string last;
    while (!lines.empty()) {
        const std::size_t end = std::min(lines.find('\n'), lines.size());
        if (std::string value = textOf(Json::parse(lines.substr(0, end), nullptr, false), field);
            !value.empty())
            last = std::move(value);
        lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    return last;
}

} // namespace

struct OllamaServer::Reply {
    int status = 0;
    std::string text; // its beginning
};

namespace {

// Keeps the beginning of an answer, and passes on how far the request is.
class ReplySink final : public HttpSink
{
public:
    ReplySink(std::uint64_t bytes, const WriteProgress& progress)
        : m_bytes(bytes)
        , m_progress(progress)
    {
    }

    bool sent(std::uint64_t bytes) override
    {
        if (m_progress)
            m_stop = m_progress(m_bytes + std::min(bytes, m_bytes), 2 * m_bytes);
        return m_stop.ok();
    }
    bool head(const HttpHead& head) override
    {
        m_status = head.status;
        return true;
    }
    bool body(std::span<const std::byte> piece) override
    {
        const std::size_t room = kMostText - std::min(kMostText, m_text.size());
        m_text.append(reinterpret_cast<const char*>(piece.data()), std::min(room, piece.size()));
        return true;
    }

    int status() const { return m_status; }
    const std::string& text() const { return m_text; }
    const Status& stop() const { return m_stop; }

private:
    const std::uint64_t m_bytes; // of the request's body
    const WriteProgress& m_progress;
    int m_status = 0;
    std::string m_text;
    Status m_stop;
};

} // namespace

Result<HttpUrl> ollamaAddress(const Environment& environment)
{
    const char* value = environment("OLLAMA_HOST");
    const std::string named = value == nullptr ? std::string() : std::string(value);
    auto url = parseUrl(urlText(named));
    if (!url.ok())
        return wrongHost(named, "which is no address: " + url.status().message());
    if (!isLoopback(url.value()))
        return wrongHost(named,
            "another machine: the model would leave this PC. Unset it, or copy the folder there "
            "and use ollama create");
    return url;
}

Status checkOllamaName(const std::string& name)
{
    std::string_view rest = name;
    bool isGood = true;
    if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
        isGood = isNamePart(rest.substr(0, slash)) &&
                 rest.substr(0, slash).find('.') == std::string_view::npos;
        rest.remove_prefix(slash + 1);
    }
    if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
        isGood = isGood && isNamePart(rest.substr(colon + 1));
        rest = rest.substr(0, colon);
    }
    if (isGood && isNamePart(rest))
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        "Ollama takes no model of the name " + shownName(name) +
            "; use letters, digits, - and _, as in my-model or my-model:v2");
}

OllamaServer::OllamaServer(std::unique_ptr<HttpTransport> network, HttpUrl address)
    : m_network(std::move(network))
    , m_address(std::move(address))
{
}

Result<std::unique_ptr<OllamaServer>> OllamaServer::open(const Environment& environment)
{
    MR_ASSIGN(HttpUrl address, ollamaAddress(environment));
    auto network = openNetwork();
    if (!network.ok())
        return Status::error(network.status().kind(),
            network.status().message() + "; or export without --create and use ollama create");
    return std::make_unique<OllamaServer>(std::move(network).value(), std::move(address));
}

Result<OllamaServer::Reply> OllamaServer::ask(HttpRequest request, const WriteProgress& progress)
{
    HttpUrl url = m_address;
    url.path = request.url;
    request.url = url.text();
    request.stall = kSilence;
    std::error_code error;
    const std::uintmax_t bytes = request.file.empty() ? 0 : fs::file_size(request.file, error);
    ReplySink sink(error ? 0 : bytes, progress);
    const HttpOutcome outcome = m_network->send(request, sink, {});
    MR_TRY(sink.stop());
    if (outcome.fault == HttpFault::None)
        return Reply{sink.status(), sink.text()};
    const std::string host = m_address.shownHost();
    if (outcome.fault == HttpFault::Refused || outcome.fault == HttpFault::Host)
        return Status::error(ErrorKind::Io,
            "no Ollama answers at " + host +
                ": start it (its app, or ollama serve) and try again; OLLAMA_HOST names another "
                "address");
    return Status::error(ErrorKind::Io,
        "the connection with Ollama at " + host + " broke (" +
            (outcome.words.empty() ? "nothing came" : terminalText(outcome.words)) + ")");
}

Result<OllamaServer::Reply> OllamaServer::post(const std::string& path, const std::string& json)
{
    HttpRequest request;
    request.url = path;
    request.method = HttpMethod::Post;
    request.headers = {{"Content-Type", "application/json"}};
    request.text = json;
    return ask(std::move(request), {});
}

Status OllamaServer::refused(const std::string& act, const Reply& reply) const
{
    const std::string words = lastFieldOf(reply.text, "error");
    return Status::error(ErrorKind::Io,
        fmt::format("Ollama at {} {}: {}", m_address.shownHost(), act,
            words.empty() ? fmt::format("status {}", reply.status) : terminalText(words)));
}

Status OllamaServer::checkFree(const std::string& name)
{
    MR_TRY(checkOllamaName(name));
    HttpRequest version;
    version.url = "/api/version";
    MR_ASSIGN(const Reply answered, ask(version, {}));
    if (answered.status != 200 ||
        textOf(Json::parse(answered.text, nullptr, false), "version").empty())
        return Status::error(ErrorKind::Io,
            m_address.shownHost() + " answers, but is no Ollama; OLLAMA_HOST names its address");
    MR_ASSIGN(const Reply shown, post("/api/show", Json{{"model", name}}.dump()));
    if (shown.status == 200)
        return Status::error(ErrorKind::InvalidArgument,
            "Ollama has a model " + name +
                " already; choose another name, or remove it: ollama rm " + name);
    return shown.status == 404 ? Status() : refused("does not say whether it has " + name, shown);
}

Status OllamaServer::sendFile(
    const std::string& digest, const fs::path& weights, const WriteProgress& progress)
{
    HttpRequest request;
    request.url = "/api/blobs/" + digest;
    request.method = HttpMethod::Head;
    MR_ASSIGN(const Reply known, ask(request, {}));
    if (known.status == 200)
        return {};
    request.method = HttpMethod::Post;
    request.headers = {{"Content-Type", "application/octet-stream"}};
    request.file = weights;
    MR_ASSIGN(const Reply taken, ask(request, progress));
    return taken.status == 200 || taken.status == 201 ? Status()
                                                      : refused("refuses the file", taken);
}

Status OllamaServer::create(const std::string& name, const fs::path& weights,
    const Modelfile& modelfile, const WriteProgress& progress)
{
    std::error_code error;
    const HubFile file{weights.filename().string(), fs::file_size(weights, error), {}, true};
    if (error)
        return Status::error(ErrorKind::Io, weights.string() + ": " + error.message());
    MR_ASSIGN(HubHash hash, HubHash::begin(file));
    const WriteProgress half = [&progress](std::uint64_t done, std::uint64_t all) {
        return progress ? progress(done, 2 * all) : Status();
    };
    MR_TRY(addFile(hash, weights, file.bytes, half));
    MR_ASSIGN(const std::string hex, hash.end());
    const std::string digest = "sha256:" + hex;
    MR_TRY(sendFile(digest, weights, progress));
    MR_ASSIGN(const Reply made, post("/api/create", createBody(name, digest, modelfile)));
    const std::string status = lastFieldOf(made.text, "status");
    if (made.status != 200 || status != "success" || !lastFieldOf(made.text, "error").empty())
        return refused("makes no model of it", made);
    return {};
}

} // namespace mr::app
