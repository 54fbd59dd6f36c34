// FakeRepo: a repository of a hub, with the answers that a healthy hub gives; FakeTransport: those
// answers, or others, without a network.
//
// Threads  FakeRepo: read only. FakeTransport: any.

#pragma once

#include "core/hub/http_fields.h"
#include "core/hub/http_transport.h"
#include "core/hub/hub_hash.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mr::test {

// An answer as it is sent.
struct FakeAnswer {
    int status = 200;
    std::vector<HttpHeader> headers{};
    std::string body{};
    HttpFault fault = HttpFault::None; // after the body; a server cuts or stalls
    bool hasLength = true;             // Content-Length of the body is added, unless one is there
    std::string raw{};                 // a server sends this alone
};

struct FakeFile {
    std::string path;
    std::string content;
    bool isLarge = false;
};

inline HubFile hubFileOf(const FakeFile& fake)
{
    HubFile file{fake.path, fake.content.size(), {}, fake.isLarge};
    Result<HubHash> hash = HubHash::begin(file);
    (void)hash.value().add(std::as_bytes(std::span(fake.content))).ok();
    file.hash = hash.value().end().value();
    return file;
}

// Bytes without a pattern that a cut could hide behind.
inline std::string noise(std::size_t bytes, unsigned seed)
{
    std::string text(bytes, '\0');
    for (char& c : text) {
        seed = seed * 1664525U + 1013904223U;
        c = static_cast<char>(seed >> 24);
    }
    return text;
}

inline const std::string kFakeCommit = "0123456789abcdef0123456789abcdef01234567";

struct FakeRepo {
    std::string name = "org/tiny";
    HubKind kind = HubKind::Model;
    std::vector<FakeFile> files = {{"config.json", "{\"a\": 1}\n", false},
        {"model.safetensors", noise(300'000, 1), true}, {"tokenizer.json", noise(5'000, 2), false},
        {"train.py", "print(1)\n", false}};

    std::string listPath() const
    {
        return (kind == HubKind::Model ? "/api/models/" : "/api/datasets/") + name +
               "/revision/main?blobs=true";
    }
    std::string filePath(const std::string& path) const
    {
        return (kind == HubKind::Model ? "/" : "/datasets/") + name + "/resolve/" + kFakeCommit +
               "/" + path;
    }
    static std::string entryText(const HubFile& file)
    {
        const std::string size = std::to_string(file.bytes);
        std::string text = "{\"rfilename\":\"" + file.path + "\",\"size\":" + size +
                           ",\"blobId\":\"" + (file.isLarge ? std::string(40, 'b') : file.hash) +
                           "\"";
        if (file.isLarge)
            text += ",\"lfs\":{\"sha256\":\"" + file.hash + "\",\"size\":" + size + "}";
        return text + "}";
    }
    std::string listText() const
    {
        std::string text =
            "{\"id\":\"" + name + "\",\"sha\":\"" + kFakeCommit + "\",\"siblings\":[";
        for (std::size_t i = 0; i < files.size(); ++i)
            text += (i == 0 ? "" : ",") + entryText(hubFileOf(files[i]));
        return text + "]}";
    }
    // `range`: the value of the header.
    FakeAnswer answer(const std::string& target, const std::optional<std::string>& range) const
    {
        if (target == listPath())
            return {200, {{"content-type", "application/json"}}, listText()};
        for (const FakeFile& file : files)
            if (target == filePath(file.path))
                return ranged(file, range);
        return {404, {{"x-error-code", "EntryNotFound"}}, "Entry not found"};
    }
    static FakeAnswer ranged(const FakeFile& file, const std::optional<std::string>& range)
    {
        const HubFile facts = hubFileOf(file);
        FakeAnswer answer{200, {{"etag", "\"" + facts.hash + "\""}}, file.content};
        if (!range)
            return answer;
        const std::size_t first = std::stoul(range->substr(std::string("bytes=").size()));
        if (first >= file.content.size())
            return {416, {}, {}};
        answer.status = 206;
        answer.body = file.content.substr(first);
        answer.headers.push_back({"content-range", "bytes " + std::to_string(first) + "-" +
                                                       std::to_string(file.content.size() - 1) +
                                                       "/" + std::to_string(file.content.size())});
        return answer;
    }
};

class FakeTransport final : public HttpTransport
{
public:
    // The answer to a request; nothing: that of the repository.
    using Script =
        std::function<std::optional<FakeAnswer>(const HttpUrl& url, const HttpRequest& request)>;

    explicit FakeTransport(FakeRepo repo, Script script = {})
        : m_repo(std::move(repo))
        , m_script(std::move(script))
    {
    }

    HttpOutcome send(
        const HttpRequest& request, HttpSink& sink, const std::stop_token& stop) override
    {
        const HttpUrl url = parseUrl(request.url).value();
        std::optional<FakeAnswer> answer;
        {
            const std::scoped_lock lock(m_mutex);
            m_requests.push_back(request);
            if (m_script)
                answer = m_script(url, request);
        }
        if (!answer)
            answer = m_repo.answer(url.path, headerOf({0, request.headers}, "range"));
        if (answer->status == 0)
            return {answer->fault, "words"};
        return deliver(*answer, sink, stop);
    }

    std::vector<HttpRequest> requests() const
    {
        const std::scoped_lock lock(m_mutex);
        return m_requests;
    }

private:
    static HttpOutcome deliver(
        const FakeAnswer& answer, HttpSink& sink, const std::stop_token& stop)
    {
        HttpHead head{answer.status, answer.headers};
        if (answer.hasLength && !headerOf(head, "content-length"))
            head.headers.push_back({"content-length", std::to_string(answer.body.size())});
        if (!sink.head(head))
            return {HttpFault::Stopped, {}};
        constexpr std::size_t kPiece = 10'000;
        for (std::size_t at = 0; at < answer.body.size(); at += kPiece) {
            if (stop.stop_requested())
                return {HttpFault::Cancelled, {}};
            const std::string piece = answer.body.substr(at, kPiece);
            if (!sink.body(std::as_bytes(std::span(piece))))
                return {HttpFault::Stopped, {}};
        }
        return {answer.fault, {}};
    }

    const FakeRepo m_repo;
    const Script m_script;
    mutable std::mutex m_mutex;
    std::vector<HttpRequest> m_requests; // guarded by m_mutex
};

} // namespace mr::test
