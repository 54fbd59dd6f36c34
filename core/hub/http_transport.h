// HttpTransport: one HTTP request and its answer, piece by piece.
//
// The rules of a hub (redirects, tokens, tries, resuming) are above it and need no network to be
// tested. An implementation follows no redirect, keeps no cookies and changes no byte of a body.
//
// Threads    send() from any number of threads; the sink is called on the thread of its send().
// Ownership  Request and sink are lent for the call.
// Errors     A fault with the library's own words; a status of 400 and more is no fault.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace mr {

struct HttpHeader {
    std::string name;
    std::string value;
};

enum class HttpMethod : std::uint8_t { Get, Head, Post };

struct HttpRequest {
    std::string url;
    std::vector<HttpHeader> headers;
    // Without a byte in either direction for so long, the request has failed.
    std::chrono::milliseconds stall{60'000};
    HttpMethod method = HttpMethod::Get;
    std::string text = {};           // body of Post
    std::filesystem::path file = {}; // its bytes are the body instead; empty: the text is
};

struct HttpHead {
    int status = 0;
    std::vector<HttpHeader> headers; // names in lower case
};

enum class HttpFault : std::uint8_t {
    None,
    Host,      // its name has no address
    Refused,   // nobody listens, or there is no way to it
    Tls,       // no secure connection
    Stalled,   // no bytes within the time limit
    Cut,       // the connection ended before the answer
    Stopped,   // by the sink
    Cancelled, // by the stop token
    Other
};

struct HttpOutcome {
    HttpFault fault = HttpFault::None;
    std::string words; // of the library
};

class HttpSink
{
public:
    virtual ~HttpSink() = default;
    // Bytes of the request's body that are on their way. Before head(); false as there.
    virtual bool sent(std::uint64_t bytes)
    {
        (void)bytes;
        return true;
    }
    // Once, before any body; false stops the request. So below.
    virtual bool head(const HttpHead& head) = 0;
    virtual bool body(std::span<const std::byte> piece) = 0;
};

class HttpTransport
{
public:
    virtual ~HttpTransport() = default;
    // Blocks until the answer has ended.
    virtual HttpOutcome send(
        const HttpRequest& request, HttpSink& sink, const std::stop_token& stop) = 0;
};

} // namespace mr
