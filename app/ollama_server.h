// OllamaServer: the Ollama of this machine, which makes a model of an exported file.
//
// It is spoken to only where the user asks for a model in it, and only on this machine: an address
// of another one is refused, as the model would leave this PC.
//
// Threads  One thread; blocks on files and the server.
// Errors   InvalidArgument: OLLAMA_HOST or the name, or the server has a model of that name. Io:
//          nobody answers, or the server refuses, with its words. Cancelled by `progress`.
// Source   docs/api.md of Ollama: version, show, blobs, create.

#pragma once

#include "core/base/write_progress.h"
#include "core/exchange/modelfile.h"
#include "core/hub/http_fields.h"
#include "core/hub/hub_endpoint.h"

#include <millrace/status.h>

#include <filesystem>
#include <memory>
#include <string>

namespace mr::app {

// 127.0.0.1:11434, or what OLLAMA_HOST names.
Result<HttpUrl> ollamaAddress(const Environment& environment);

// "name", "name:tag" or "owner/name:tag".
Status checkOllamaName(const std::string& name);

class OllamaServer
{
public:
    OllamaServer(std::unique_ptr<HttpTransport> network, HttpUrl address);
    // Loads the network plugin; asks nothing yet.
    static Result<std::unique_ptr<OllamaServer>> open(const Environment& environment);

    // It answers, and has no model of that name.
    Status checkFree(const std::string& name);
    // Bytes of `progress`: those of the file twice, as it is hashed and then sent.
    Status create(const std::string& name, const std::filesystem::path& weights,
        const Modelfile& modelfile, const WriteProgress& progress);

private:
    struct Reply;
    Result<Reply> ask(HttpRequest request, const WriteProgress& progress);
    Result<Reply> post(const std::string& path, const std::string& json);
    Status sendFile(const std::string& digest, const std::filesystem::path& weights,
        const WriteProgress& progress);
    Status refused(const std::string& act, const Reply& reply) const;

    std::unique_ptr<HttpTransport> m_network;
    const HttpUrl m_address;
};

} // namespace mr::app
